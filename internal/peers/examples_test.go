package peers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/writ-project/writ/policy"
)

// TestExamples: each example's files are accepted as they stand, name the
// version the tests run against, and pin every tool that version lists.
func TestExamples(t *testing.T) {
	peers := peersDir(t)
	b, err := os.ReadFile(filepath.Join(peers, "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var packages struct{ Dependencies map[string]string }
	if err := json.Unmarshal(b, &packages); err != nil {
		t.Fatal(err)
	}
	examples := filepath.Join("..", "..", "examples")
	root := canonicalTemp(t)
	servers := map[string][]behind{
		"filesystem": {filesServer(t, root)},
		"memory":     {{name: "memory", command: npmServer(t, "memory"), env: []string{"MEMORY_FILE_PATH=" + filepath.Join(root, "graph.jsonl")}}},
		"everything": {everything[0].behind(t, "http://127.0.0.1:9/page")},
		"gopls":      {filesServer(t, root), {name: "gopls", command: []string{filepath.Join(peers, "bin", "gopls"), "mcp"}, dir: root}},
	}
	dirs, err := os.ReadDir(examples)
	if err != nil {
		t.Fatal(err)
	}
	npm := regexp.MustCompile(`(@modelcontextprotocol/[a-z-]+)@([0-9.]+)`)
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Join(examples, d.Name(), "writ.yaml")); err != nil {
			continue // a script, which TestDemos plays
		}
		t.Run(d.Name(), func(t *testing.T) {
			if servers[d.Name()] == nil {
				t.Fatal("no server for this example: add it here")
			}
			file := filepath.Join(examples, d.Name(), "writ.yaml")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if more, err := os.ReadFile(filepath.Join(examples, d.Name(), "mcp.json")); err == nil {
				text = append(text, more...)
			}
			for _, m := range npm.FindAllStringSubmatch(string(text), -1) {
				if packages.Dependencies[m[1]] != m[2] {
					t.Errorf("%s is %s in the example and %s in the tests", m[1], m[2], packages.Dependencies[m[1]])
				}
			}
			if out, err := exec.CommandContext(testContext(t), binary, "check", "--config", file).CombinedOutput(); err != nil {
				t.Errorf("writ check: %v %s", err, out)
			}
			policy, faults := policy.Parse("policy.yaml", read(t, filepath.Join(examples, d.Name(), "policy.yaml")))
			if len(faults) > 0 {
				t.Fatal(faults)
			}

			dir := example(t, d.Name(), config(servers[d.Name()]...))
			out, code := run(t, exec.CommandContext(testContext(t), binary, "tools", "--json", "--config", filepath.Join(dir, "writ.yaml"),
				"--state", canonicalTemp(t)), nil)
			var tools []struct{ Tool, State, Pin string }
			if err := json.Unmarshal([]byte(out), &tools); err != nil || code != 0 {
				t.Fatalf("writ tools: exit code %d, %v: %s", code, err, out)
			}
			for name, c := range policy.Contracts {
				i := slices.IndexFunc(tools, func(x struct{ Tool, State, Pin string }) bool { return x.Tool == name })
				switch {
				case i < 0 && !c.Optional:
					t.Errorf("%s has a contract, and no server lists it", name)
				case i >= 0 && (c.Pin == "" || tools[i].Pin != c.Pin):
					t.Errorf("%s is pinned to %q, and its definition is %s", name, c.Pin, tools[i].Pin)
				case i >= 0 && (tools[i].State == "open") == c.Closed:
					t.Errorf("%s is %s", name, tools[i].State)
				}
			}
			for _, x := range tools {
				if policy.Contracts[x.Tool] == nil && !(d.Name() == "gopls" && x.Tool[:6] == "files/") {
					t.Errorf("%s has no contract, not even a closed one", x.Tool)
				}
			}
		})
	}
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

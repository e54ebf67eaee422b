package hook

import (
	"os"
	"strings"
	"testing"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// policyOf is the policy that a host's contracts make.
func policyOf(t *testing.T, h *Host) *policy.Policy {
	t.Helper()
	if !strings.HasSuffix(h.Policy, "\ncollections:\n"+Declared+"tools:\n"+h.Contracts) {
		t.Errorf("the policy is\n%s", h.Policy)
	}
	p, fs := policy.Parse(h.Name, []byte(h.Policy))
	for _, f := range fs {
		t.Error(f)
	}
	if p == nil || t.Failed() {
		t.FailNow()
	}
	return p
}

// TestCatalogues: each host's contracts are a policy, every tool of its catalogue is
// open under it, and every tool that is known has one.
func TestCatalogues(t *testing.T) {
	for _, name := range []string{"claude-code", "host"} {
		h := Named(name)
		cat, findings := gate.NewCatalogue(h.Definitions(), policyOf(t, h))
		for _, f := range findings {
			t.Error(f)
		}
		for _, tool := range cat.Tools() {
			if tool.State != gate.Open {
				t.Errorf("%s/%s is not open: its pin is %s", name, tool.Name, tool.Pin)
			}
		}
		for tool, row := range h.tools {
			names := []string{tool}
			if row.Shell {
				names = append(names, tool+Reads)
			}
			for _, n := range names {
				if cat.Lookup(name, n) == nil {
					t.Errorf("%s has no %s", name, n)
				}
			}
		}
		if len(cat.Listed(true)) > 0 || cat.Lookup(name, Other) == nil {
			t.Errorf("%s: %v are listed to clients", name, cat.Listed(true))
		}
	}
	if Named("nobody") != nil {
		t.Error("there is a host that nobody is")
	}
}

// TestPins writes the pins into the contracts where WRIT_PINS is set.
func TestPins(t *testing.T) {
	if os.Getenv("WRIT_PINS") == "" {
		t.Skip("WRIT_PINS=1 writes the pins of the definitions into the contracts")
	}
	for _, name := range []string{"claude-code", "host"} {
		h := Named(name)
		pins := map[string]string{}
		for _, d := range h.Definitions() {
			tool, _ := strictjson.Text(strictjson.Get(d.Raw, "name"))
			pins[name+"/"+tool] = gate.PinOf(name, d.Raw)
		}
		lines := strings.Split(h.Policy, "\n")
		at := ""
		for i, l := range lines {
			if strings.HasPrefix(l, "  "+name+"/") {
				at = strings.TrimSuffix(strings.TrimSpace(l), ":")
			}
			if strings.HasPrefix(l, "    pin: ") {
				lines[i] = "    pin: " + pins[at]
			}
		}
		if err := os.WriteFile("hosts/"+name+".yaml", []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRoutes: what a call is judged as.
func TestRoutes(t *testing.T) {
	h := Named("claude-code")
	for _, c := range []struct {
		tool, arguments string
		trusted         bool
		as, judged      string // "" is nothing to judge
		reads           bool
	}{
		{"Bash", `{"command":"ls","description":"x","timeout":5}`, false, "Bash_reads", `{"command":"ls"}`, true},
		{"Bash", `{"command":"ls > x"}`, true, "Bash", `{"command":"ls > x"}`, false},
		{"Bash", `{"command":"ls","run_in_background":true,"dangerouslyDisableSandbox":false}`, false, "Bash_reads", `{"command":"ls","run_in_background":true,"dangerouslyDisableSandbox":false}`, true},
		{"Bash", `{"command":"ls","cwd":"/tmp"}`, true, "Bash", `{"command":"ls","cwd":"/tmp"}`, false}, // whatever else it may come to take
		{"Bash", `{"command":"git status"}`, true, "Bash_reads", `{"command":"git status"}`, true},
		{"Bash", `{"command":"git status"}`, false, "Bash", `{"command":"git status"}`, false},
		{"Bash", `{"command":["ls"]}`, true, "Bash", `{"command":["ls"]}`, false},
		{"Bash", `{}`, true, "Bash", `{}`, false},
		{"Bash", `"ls"`, true, "other", `{"tool":"Bash","input":"\"ls\""}`, false},
		{"bash", `{"command":"ls"}`, true, "other", `{"tool":"bash","input":"{\"command\":\"ls\"}"}`, false},
		{"Bash_reads", `{"command":"rm x"}`, true, "other", `{"tool":"Bash_reads","input":"{\"command\":\"rm x\"}"}`, false},
		{"Read", `{"file_path":"/a"}`, true, "Read", `{"file_path":"/a"}`, true},
		{"Edit", `{"file_path":"/a","old_string":"","new_string":""}`, true, "Edit", `{"file_path":"/a","old_string":"","new_string":""}`, false},
		{"WebFetch", `{"url":"https://a","prompt":"p"}`, true, "WebFetch", `{"url":"https://a"}`, false},
		{"CronCreate", `{"prompt":"p"}`, true, "other", `{"tool":"CronCreate","input":"{\"prompt\":\"p\"}"}`, false},
		{"mcp__files__write_file", `{}`, true, "", "", false},
		{"TodoWrite", `{}`, true, "", "", false},
		{"Agent", `{"description":"d","prompt":"p"}`, true, "", "", false},
		{"Agent", `{"prompt":"p","subagent_type":"Explore","model":"haiku","run_in_background":true}`, true, "", "", false},
		{"Agent", `{"prompt":"p","subagent_type":"reviewer"}`, true, "other", `{"tool":"Agent","input":"{\"prompt\":\"p\",\"subagent_type\":\"reviewer\"}"}`, false},
		{"Agent", `{"prompt":"p","isolation":"remote"}`, true, "other", `{"tool":"Agent","input":"{\"prompt\":\"p\",\"isolation\":\"remote\"}"}`, false},
		{"Task", `{"prompt":"p","mode":"bypassPermissions"}`, true, "other", `{"tool":"Task","input":"{\"prompt\":\"p\",\"mode\":\"bypassPermissions\"}"}`, false},
		{"Agent", `{"prompt":"p","subagent_type":["Explore"]}`, true, "other", `{"tool":"Agent","input":"{\"prompt\":\"p\",\"subagent_type\":[\"Explore\"]}"}`, false},
		{"Skill", `{"skill":"mine"}`, true, "", "", false},
		{"Skill", `{"skill":"mine","args":"; id"}`, true, "other", `{"tool":"Skill","input":"{\"skill\":\"mine\",\"args\":\"; id\"}"}`, false},
		{"Skill", `{"skill":"a:b"}`, true, "other", `{"tool":"Skill","input":"{\"skill\":\"a:b\"}"}`, false},
		{"Skill", `{"skill":"../x"}`, true, "other", `{"tool":"Skill","input":"{\"skill\":\"../x\"}"}`, false},
		{"Skill", `{}`, true, "other", `{"tool":"Skill","input":"{}"}`, false},
		{"TodoWriteX", `{}`, true, "other", `{"tool":"TodoWriteX","input":"{}"}`, false},
	} {
		got := h.Call(c.tool, strictjson.Of([]byte(c.arguments)), c.trusted)
		if d := got.Definition; d != nil && c.as == "" { // the definition is to be looked for
			if got.Tool != Other || d.Kind != "agents" && d.Name != "mine" {
				t.Errorf("%s %s: %+v", c.tool, c.arguments, got)
			}
			continue
		} else if d != nil {
			t.Errorf("%s %s works by %v", c.tool, c.arguments, d)
		}
		if got.Judged != (c.as != "") || got.Tool != c.as || string(got.Arguments.Raw()) != c.judged || got.Reads != c.reads {
			t.Errorf("%s %s: %+v %s", c.tool, c.arguments, got, got.Arguments.Raw())
		}
	}
}

// TestDefinedElsewhere: another host's tool of such a name is any other.
func TestDefinedElsewhere(t *testing.T) {
	for _, tool := range []string{"Agent", "Skill", "Task"} {
		if c := Named("host").Call(tool, strictjson.Of([]byte(`{}`)), true); !c.Judged || c.Tool != Other || c.Definition != nil {
			t.Errorf("%s: %+v", tool, c)
		}
	}
}

// TestSteers: which files say which programs run, and which like them do not.
func TestSteers(t *testing.T) {
	for name, want := range map[string]bool{
		"Makefile": true, "/proj/src/GNUmakefile": true, "rules.mk": true, "CMakeLists.txt": true, "package.json": true, "web/package-lock.json": true, "lefthook.yml": true,
		"conftest.py": true, "tests/conftest.py": true, "pyproject.toml": true, "setup.py": true, "tox.ini": true, "Justfile": true, "Taskfile.yml": true, "build.gradle": true,
		"build.gradle.kts": true, "Dockerfile": true, "Dockerfile.dev": true, "api.Dockerfile": true, "docker-compose.override.yml": true, "vite.config.ts": true, "jest.setup.js": true,
		"requirements-dev.txt": true, "go.mod": true, "Cargo.toml": true, "x.csproj": true, "webpack.config.babel.js": true, "babel.config.json": true, "cdk.json": true, "docs/conf.py": true,
		"lib/tasks/x.rake": true, "project/plugins.sbt": true, "Procfile.dev": true, "App.xcodeproj/project.pbxproj": true, "gulpfile.esm.js": true, "githooks/post-index-change": true, `C:\src\Makefile`: true,
		"repo.git/config": true, "/proj/bare.git/info/attributes": true, `C:\x.git\config`: true, "src/config": false, "repo.git": false, "a.github/x.txt": false,
		"main.go": false, "makefile.md": true, "make.go": false, "package.go": false, "README.md": false, "packages.json": false, "setup.go": false, "config.ts": false,
		"app.component.ts": false, "build/out.txt": false, "Makefiles/a.txt": false, "test_conftest.py": false, "docker.go": false, "notes.txt": false, "data.json": false,
	} {
		if Steers(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	h := Named("claude-code")
	for file, why := range map[string]bool{"/proj/Makefile": true, "/proj/main.go": false} {
		c := h.Call("Edit", strictjson.Of([]byte(`{"file_path":"`+file+`"}`)), true)
		if (c.Why != "") != why || c.Tool != "Edit" {
			t.Errorf("%s: %+v", file, c)
		}
	}
}

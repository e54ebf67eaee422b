package peers

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	writ "github.com/writ-project/writ"
)

// An asked is one file in testdata/ask: requests of `writ ask`, one after
// another, each in a process of its own, in front of server-filesystem under
// examples/filesystem and its rules.yaml. In every text $ROOT is the directory the server works
// on.
type asked struct {
	// About says what it shows, and names the attacks it is.
	About string `yaml:"about"`
	// Files are there before the first request, below $ROOT.
	Files map[string]string `yaml:"files"`
	// Ask is what stands under ask: in writ.yaml.
	Ask   map[string]any `yaml:"ask"`
	Steps []question     `yaml:"steps"`
	// After says which files hold what in the end; null: it is not there.
	After map[string]*string `yaml:"after"`
}

// A question is one request and how it must end.
type question struct {
	Request string `yaml:"request"`
	// Session keeps a session by name; a step without has one of its own.
	Session string `yaml:"session"`
	// Plan is a manual plan, on standard input.
	Plan      string `yaml:"plan"`
	Summarise bool   `yaml:"summarise"`

	// Status and Stage are those of the answer, Reason its rejection's.
	Status string `yaml:"status"`
	Stage  string `yaml:"stage"`
	Reason string `yaml:"reason"`
	// Called is what the server was sent of tools/call, by name; Started says
	// whether the server's process was started at all.
	Called  []string `yaml:"called"`
	Started bool     `yaml:"started"`
	// Holds is a part of the recorded result, or of what is said to the user.
	Holds string `yaml:"holds"`
	// Says, where it is given, are patterns of what a person sees, who does not
	// ask for JSON; Status and Reason are then not looked at, but the exit code
	// that belongs to Status is.
	Says []string `yaml:"says"`
}

// TestAskFilesystem: `writ ask` in front of server-filesystem. What the server
// is sent passes through a file on its way, so that started and called are
// what the real process saw.
func TestAskFilesystem(t *testing.T) {
	peersDir(t)
	if runtime.GOOS == "windows" {
		t.Skip("needs sh and tee, to look at what the server is sent")
	}
	files, err := filepath.Glob(filepath.Join("testdata", "ask", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in testdata/ask: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) { askAll(t, file) })
	}
}

func askAll(t *testing.T, file string) {
	var a asked
	if err := yaml.Load(read(t, file), &a, yaml.WithKnownFields(), yaml.WithUniqueKeys(), yaml.WithSingleDocument()); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if a.About == "" || len(a.Steps) == 0 {
		t.Fatalf("%s says nothing", file)
	}
	root, state := canonicalTemp(t), canonicalTemp(t)
	vars := strings.NewReplacer("$ROOT", root)
	for name, text := range a.Files {
		write(t, filepath.Join(root, name), text)
	}
	sent := filepath.Join(t.TempDir(), "sent")
	tapped := behind{name: "files", command: append([]string{"sh", "-c", `tee -a "$0" | "$@"`, sent}, npmServer(t, "filesystem", root)...)}
	ask, err := json.Marshal(a.Ask) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	dir := example(t, "filesystem", config(tapped)+"ask: "+string(ask)+"\n")
	write(t, filepath.Join(dir, "rules.yaml"), string(read(t, filepath.Join("..", "..", "examples", "filesystem", "rules.yaml"))))
	for i, q := range a.Steps {
		if err := os.Remove(sent); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, s := range []*string{&q.Request, &q.Plan, &q.Holds} {
			*s = vars.Replace(*s)
		}
		if wrong := q.ask(t, dir, state, sent, vars); wrong != "" {
			t.Fatalf("step %d, %q: %s", i+1, q.Request, wrong)
		}
	}
	for name, want := range a.After {
		got, err := os.ReadFile(filepath.Join(root, name))
		if want == nil && !errors.Is(err, os.ErrNotExist) || want != nil && (err != nil || string(got) != *want) {
			t.Errorf("%s holds %q (%v)", name, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(state, "log.key")); err == nil { // else no gateway was ever started
		verify(t, state)
	}
}

// ask asks and says what is wrong with the answer.
func (q *question) ask(t *testing.T, dir, state, sent string, vars *strings.Replacer) (wrong string) {
	args := []string{"ask", "--config", filepath.Join(dir, "writ.yaml"), "--state", state}
	if q.Session != "" {
		args = append(args, "--session", q.Session)
	}
	if q.Plan != "" {
		args = append(args, "--plan", "-")
	}
	if q.Summarise {
		args = append(args, "--summarise")
	}
	if len(q.Says) == 0 {
		args = append(args, "--json")
	}
	out, code := run(t, exec.CommandContext(testContext(t), binary, append(args, q.Request)...), strings.NewReader(q.Plan))
	if want, known := map[string]int{"answered": 0, "needs_more_info": 0, "stopped": 77, "server_error": 1}[q.Status]; !known || code != want {
		return "exit code " + jsonOf(code) + ": " + out
	}
	for _, p := range q.Says {
		if !regexp.MustCompile("(?m)" + vars.Replace(p)).MatchString(out) {
			return "no " + p + " in\n" + out
		}
	}
	var called []string
	b, err := os.ReadFile(sent)
	for line := range bytes.Lines(b) {
		var m struct {
			Method string
			Params struct{ Name string }
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return "the server was sent " + string(line)
		}
		if m.Method == "tools/call" {
			called = append(called, m.Params.Name)
		}
	}
	if !slices.Equal(called, q.Called) {
		return "the server was called for " + strings.Join(called, ", ")
	}
	if (err == nil) != q.Started {
		return "the server was started, or was not: " + jsonOf(err == nil)
	}
	if len(q.Says) > 0 {
		return ""
	}
	var a struct {
		Status, Stage, Message string
		Rejection              *writ.Rejection
		Result                 json.RawMessage
		Summary                *struct{ Record string }
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		return err.Error() + ": " + out
	}
	reason := ""
	if a.Rejection != nil {
		reason = string(a.Rejection.Reason)
	}
	switch {
	case a.Status != q.Status || a.Stage != q.Stage || reason != q.Reason:
		return a.Status + " at " + a.Stage + " for " + reason
	case q.Holds != "" && !strings.Contains(string(a.Result), q.Holds) && !strings.Contains(a.Message, q.Holds):
		return "not in the answer: " + q.Holds + ": " + out
	case q.Status == "answered" && q.Summarise != (a.Summary != nil):
		return "no summary: " + out
	}
	return ""
}

func jsonOf(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

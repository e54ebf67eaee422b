package peers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.yaml.in/yaml/v4"
)

// A scenario is one file in testdata/<server>: one session, step after step.
//
// In every text $ROOT is the directory the server works on, $STATE the
// gateway's own state, $POLICY its policy file.
type scenario struct {
	// About says what it shows, and names the attacks it is.
	About string `yaml:"about"`
	// Files and Links are there before the server starts, below $ROOT.
	Files map[string]string `yaml:"files"`
	Links map[string]string `yaml:"links"`
	// Home: $ROOT is the home directory, and holds $STATE and $POLICY.
	Home  bool   `yaml:"home"`
	Steps []step `yaml:"steps"`
	// After says which files hold what in the end; null: it is not there.
	After map[string]*string `yaml:"after"`
}

// A step is one call and what it must come to: exactly one of the wants.
type step struct {
	Call string         `yaml:"call"`
	Args map[string]any `yaml:"args"`
	// Evidence: it passes, and its result vouches.
	Evidence bool `yaml:"evidence"`
	// Passes: the gateway lets it through and the server does it.
	Passes bool `yaml:"passes"`
	// Void: it passes, and its result vouches for nothing; holds a part of why.
	Void string `yaml:"void"`
	// ServerError: the gateway lets it through and the server refuses.
	ServerError bool `yaml:"server_error"`
	// Unknown: there is no such tool, as far as the client can tell.
	Unknown bool `yaml:"unknown"`
	// Refused: "CODE reason", then each failing pointer with its own reason.
	Refused string            `yaml:"refused"`
	At      map[string]string `yaml:"at"`
	// Need is a part of what the refusal says would make it pass.
	Need string `yaml:"need"`
	// Text is a part of the answer's text.
	Text string `yaml:"text"`
}

// front is a way to reach the gateway.
type front struct {
	name string
	open func(t *testing.T, dir, state string, opts *mcp.ClientOptions, servers ...behind) *session
}

var fronts = []front{
	{"run", func(t *testing.T, dir, state string, opts *mcp.ClientOptions, servers ...behind) *session {
		return overStdio(t, opts, append([]string{"--state", state}, arguments(dir, servers...)...)...)
	}},
	{"serve", func(t *testing.T, dir, state string, opts *mcp.ClientOptions, _ ...behind) *session {
		return connect(t, &mcp.StreamableClientTransport{Endpoint: serve(t, dir, state)}, opts)
	}},
}

// eachScenario plays every scenario of a server through every front. servers
// are what stands behind the gateway, over root; more
// gives further variables once it was made.
func eachScenario(t *testing.T, server string, servers func(t *testing.T, root string) []behind, more ...func() []string) {
	peersDir(t)
	files, err := filepath.Glob(filepath.Join("testdata", server, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios in testdata/%s: %v", server, err)
	}
	for _, file := range files {
		for _, f := range fronts {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml")+"/"+f.name, func(t *testing.T) {
				play(t, file, server, f, servers, more)
			})
		}
	}
}

func play(t *testing.T, file, server string, f front, servers func(t *testing.T, root string) []behind, more []func() []string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s scenario
	if err := yaml.Load([]byte(b), &s, yaml.WithKnownFields(), yaml.WithUniqueKeys(), yaml.WithSingleDocument()); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	root, state, dir := canonicalTemp(t), canonicalTemp(t), canonicalTemp(t)
	if s.Home {
		state, dir = filepath.Join(root, ".local", "state", "writ"), root
		t.Setenv("HOME", root)
	}
	behind := servers(t, root)
	exampleIn(t, dir, server, config(behind...))
	names := []string{"$ROOT", root, "$STATE", state, "$POLICY", filepath.Join(dir, "policy.yaml")}
	for _, m := range more {
		names = append(names, m()...)
	}
	vars := strings.NewReplacer(names...)
	if s.About == "" || len(s.Steps) == 0 {
		t.Fatalf("%s says nothing", file)
	}
	for name, text := range s.Files {
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, filepath.Join(root, vars.Replace(name)), vars.Replace(text))
	}
	for name, to := range s.Links {
		if err := os.Symlink(vars.Replace(to), filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}

	cs := f.open(t, dir, state, nil, behind...)
	var tools []string
	for _, st := range s.Steps {
		if !st.Unknown {
			tools = append(tools, st.Call)
		}
	}
	listed(t, cs, tools...)
	for i, st := range s.Steps {
		st.Args, _ = replaced(st.Args, vars).(map[string]any)
		if st.Args == nil {
			st.Args = map[string]any{}
		}
		st.Text, st.Need = vars.Replace(st.Text), vars.Replace(st.Need)
		if wrong := st.play(t, cs); wrong != "" {
			t.Fatalf("step %d, %s %v: %s", i+1, st.Call, st.Args, wrong)
		}
	}
	cs.Close()
	for name, want := range s.After {
		got, err := os.ReadFile(filepath.Join(root, name))
		switch {
		case want == nil && err == nil:
			t.Errorf("%s is there in the end", name)
		case want != nil && (err != nil || string(got) != vars.Replace(*want)):
			t.Errorf("%s holds %q (%v), want %q", name, got, err, *want)
		}
	}
	verify(t, state)
}

// replaced is a value with the variables of its texts replaced.
func replaced(v any, vars *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return vars.Replace(v)
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = replaced(x, vars)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = replaced(x, vars)
		}
		return out
	}
	return v
}

// play makes the call and says what is wrong with what came of it.
func (st step) play(t *testing.T, cs *session) (wrong string) {
	wants := 0
	for _, w := range []bool{st.Evidence, st.Passes, st.Void != "", st.ServerError, st.Unknown, st.Refused != ""} {
		if w {
			wants++
		}
	}
	if wants != 1 {
		return "the step must want exactly one thing"
	}
	res, err := cs.CallTool(testContext(t), &mcp.CallToolParams{Name: st.Call, Arguments: st.Args})
	if st.Unknown {
		st.Refused = "INVALID_TOOL_NAME name.unknown"
	}
	if err != nil {
		return err.Error()
	}
	r := rejection(t, res.Meta)
	if st.Refused != "" {
		if r == nil || !res.IsError {
			return "it was not refused: " + text(res)
		}
		if got := string(r.Code) + " " + string(r.Reason); got != st.Refused {
			return fmt.Sprintf("it was refused by %s, %+v", got, r.Failures)
		}
		got, need := map[string]string{}, ""
		for _, f := range r.Failures {
			got[f.Pointer], need = string(f.Reason), need+f.Need+"\n"
		}
		for at, reason := range st.At {
			if got[at] != reason {
				return fmt.Sprintf("%s fails by %q, want %q: %+v", at, got[at], reason, r.Failures)
			}
		}
		if len(st.At) > 0 && len(got) != len(st.At) {
			return fmt.Sprintf("these fail: %v, want %v", got, st.At)
		}
		if !strings.Contains(need, st.Need) {
			return fmt.Sprintf("the refusal does not say %q: %s", st.Need, need)
		}
		return leaks(t, st, res)
	}
	is, why := admissible(res.Meta)
	switch {
	case r != nil:
		return fmt.Sprintf("it was refused by %s: %+v", r.Reason, r.Failures)
	case st.ServerError != res.IsError:
		return fmt.Sprintf("isError is %v: %s", res.IsError, text(res))
	case st.ServerError && is:
		return "an error is evidence"
	case st.Evidence && !is:
		return "its result is no evidence: " + why
	case st.Void != "" && (is || !strings.Contains(why, st.Void)):
		return fmt.Sprintf("admissible %v, because %q: %s", is, why, text(res))
	case !strings.Contains(text(res), st.Text):
		return "it says " + text(res)
	}
	return ""
}

// leaks says whether a refusal repeats a value of the call (R24).
func leaks(t *testing.T, st step, res *mcp.CallToolResult) string {
	var values []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if len(v) > 8 {
				values = append(values, v)
			}
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(st.Args)
	b := []byte(text(res))
	if i := slices.IndexFunc(values, func(v string) bool { return bytes.Contains(b, []byte(v)) }); i >= 0 {
		return fmt.Sprintf("the refusal repeats %q", values[i])
	}
	return ""
}

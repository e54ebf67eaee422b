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
	p, fs := policy.Parse(h.Name, []byte("collections:\n"+Declared+"tools:\n"+h.Contracts))
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
		lines := strings.Split(h.Contracts, "\n")
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
		{"TodoWriteX", `{}`, true, "other", `{"tool":"TodoWriteX","input":"{}"}`, false},
	} {
		got := h.Call(c.tool, strictjson.Of([]byte(c.arguments)), c.trusted)
		if got.Judged != (c.as != "") || got.Tool != c.as || string(got.Arguments.Raw()) != c.judged || got.Reads != c.reads {
			t.Errorf("%s %s: %+v %s", c.tool, c.arguments, got, got.Arguments.Raw())
		}
	}
}

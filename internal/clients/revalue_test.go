package clients

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestRevalue: of each client's file every value of an environment and every header can
// be another text, with Writ in front of its server or not, and is put back to the byte.
func TestRevalue(t *testing.T) {
	changed := 0
	for c, a := range cases(t) {
		before := []byte(part(a, "before"))
		was := map[string]string{}
		away := func(server, variable, value, written string) (string, bool, error) {
			key := "at " + strconv.Itoa(len(was))
			was[key] = written
			return strconv.Quote(key), true, nil
		}
		back := func(_, _, value, _ string) (string, bool, error) { w, ok := was[value]; return w, ok, nil }
		out, err := c.Layout.Revalue(before, away)
		if err != nil {
			t.Fatal(c.Name, err)
		}
		if changed += len(was); c.Layout.TOML && len(was) == 0 {
			t.Errorf("%s: no value of a file of TOML", c.Name)
		}
		wrapped, undo, err := c.Layout.Wrap(out, command)
		if err != nil {
			t.Fatal(c.Name, err)
		}
		// What moved into an environment is found there, too.
		if inside, err := c.Layout.Revalue(wrapped, back); err != nil || len(undo) > 0 && len(was) > 0 && string(inside) == string(wrapped) {
			t.Errorf("%s: not found behind Writ: %v", c.Name, err)
		}
		unwrapped, left, err := c.Layout.Unwrap(wrapped, undo)
		if err != nil || len(left) > 0 {
			t.Fatal(c.Name, err, left)
		}
		if again, err := c.Layout.Revalue(unwrapped, back); err != nil || string(again) != string(before) {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.Name, err, again, before)
		}
		if len(was) > 0 {
			if _, err := c.Layout.Revalue(before, func(_, _, _, _ string) (string, bool, error) { return `"a", "b"`, true, nil }); err == nil {
				t.Errorf("%s: a value became two", c.Name)
			}
		}
	}
	if changed < 5 {
		t.Errorf("only %d values", changed)
	}
}

// TestRevalueTOML: however a file of TOML writes an environment, its texts are found, no
// other byte changes, they come back as they stood, and none of them is shown.
func TestRevalueTOML(t *testing.T) {
	const before = `# k-0 stays
[mcp_servers.a]
command = "a" # k-0
env = { A_KEY = "k-1", "B_KEY" = 'k-2', C_KEY="k-\u0033" } # k-0
[mcp_servers.b]
command = "b"
env.D_KEY = """
k-4"""
env."E_KEY" = "k-5"
[mcp_servers.b.tools.x]
F_KEY = "k-0"
[mcp_servers.c.env]
G_KEY = '''k-6''' # k-0
[mcp_servers.c]
command = "c"
[other.env]
H_KEY = "k-0"
`
	l := Layout{Key: "mcp_servers", TOML: true}
	found, was := map[string]string{}, map[string]string{}
	out, err := l.Revalue([]byte(before), func(server, variable, value, written string) (string, bool, error) {
		found[server+" "+variable] = value
		key := "kept " + variable
		was[key] = written
		return strconv.Quote(key), true, nil
	})
	if err != nil || !maps.Equal(found, map[string]string{"a A_KEY": "k-1", "a B_KEY": "k-2", "a C_KEY": "k-3", "b D_KEY": "k-4", "b E_KEY": "k-5", "c G_KEY": "k-6"}) {
		t.Fatal(found, err)
	}
	if s := string(out); strings.Count(s, "k-0") != strings.Count(before, "k-0") || slices.ContainsFunc([]string{"k-1", "k-2", `k-\u`, "k-4", "k-5", "k-6"}, func(k string) bool { return strings.Contains(s, k) }) {
		t.Errorf("made %s", s)
	}
	for _, line := range l.Diff([]byte(before), out) {
		if strings.Contains(line, "KEY") && strings.Contains(line, "k-") && !strings.Contains(line, "# k-0") || strings.Contains(line, "kept") {
			t.Errorf("shown: %s", line)
		}
	}
	back := func(_, _, value, _ string) (string, bool, error) { w, ok := was[value]; return w, ok, nil }
	if again, err := l.Revalue(out, back); err != nil || string(again) != before {
		t.Errorf("%v %s", err, again)
	}
	for _, bad := range []string{`"a", x = "b"`, "\"a\"\n[mcp_servers.z]", "1", `"a`, ""} {
		if _, err := l.Revalue([]byte(before), func(_, _, _, _ string) (string, bool, error) { return bad, true, nil }); err == nil {
			t.Errorf("a value became %s", bad)
		}
	}
}

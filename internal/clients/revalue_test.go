package clients

import (
	"strconv"
	"testing"
)

// TestRevalue: of each client's file every value of an environment and every header can
// be another text, with Writ in front of its server or not, and is put back to the byte.
func TestRevalue(t *testing.T) {
	changed := 0
	for c, a := range cases(t) {
		before := []byte(part(a, "before"))
		was := map[string]string{}
		away := func(server, variable, value, written string) (string, bool) {
			key := "at " + strconv.Itoa(len(was))
			was[key] = written
			return strconv.Quote(key), true
		}
		back := func(_, _, value, _ string) (string, bool) { w, ok := was[value]; return w, ok }
		out, err := c.Layout.Revalue(before, away)
		if err != nil {
			t.Fatal(c.Name, err)
		}
		if changed += len(was); c.Layout.TOML && string(out) != string(before) {
			t.Errorf("%s: a file of TOML was changed", c.Name)
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
			if _, err := c.Layout.Revalue(before, func(_, _, _, _ string) (string, bool) { return `"a", "b"`, true }); err == nil {
				t.Errorf("%s: a value became two", c.Name)
			}
		}
	}
	if changed < 4 {
		t.Errorf("only %d values", changed)
	}
}

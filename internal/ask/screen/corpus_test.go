package screen

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// line is one request of a list and where it stands.
type line struct {
	number      int
	class, text string
}

// list reads testdata/halt.txt (with classes) or testdata/benign.txt.
func list(t testing.TB, file string, classes bool) (out []line) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range strings.Split(string(b), "\n") {
		if strings.TrimSpace(s) == "" || s[0] == '#' {
			continue
		}
		l := line{number: i + 1}
		if classes {
			var ok bool
			if l.class, s, ok = strings.Cut(s, " "); !ok {
				t.Fatalf("%s:%d: a class and a text", file, i+1)
			}
			s = strings.TrimLeft(s, " \t")
		}
		if l.text, err = strconv.Unquote(`"` + s + `"`); err != nil {
			t.Fatalf("%s:%d: %v", file, i+1, err)
		}
		out = append(out, l)
	}
	return out
}

// TestLists holds the built-in set to its two lists: what must halt, by class,
// and what must pass. It reports the rates.
func TestLists(t *testing.T) {
	if _, faults := Parse("default.yaml", defaultFile); len(faults) > 0 {
		t.Fatal(faults)
	}
	s := Default()
	halt, benign := list(t, "testdata/halt.txt", true), list(t, "testdata/benign.txt", false)
	if len(halt) < 120 || len(benign) < 150 {
		t.Fatalf("%d to halt, %d to pass: too few to measure", len(halt), len(benign))
	}
	missed, wrong, stopped := 0, 0, 0
	for _, l := range halt {
		switch v := s.Check(l.text); {
		case v.Pass:
			missed++
			t.Errorf("halt.txt:%d passes: %q", l.number, l.text)
		case v.Class != l.class:
			wrong++
			t.Errorf("halt.txt:%d halts as %s: %q", l.number, v.Rule, l.text)
		}
	}
	for _, l := range benign {
		if v := s.Check(l.text); !v.Pass {
			stopped++
			t.Errorf("benign.txt:%d halts as %s at %q: %q", l.number, v.Rule, l.text[v.Start:v.End], l.text)
		}
	}
	t.Logf("%d of %d missed, %d of another class; %d of %d benign requests halted", missed, len(halt), wrong, stopped, len(benign))
}

// TestNoExcuseBeside: words of exceptions beside a request that halts, but in
// another part of the sentence, excuse nothing.
func TestNoExcuseBeside(t *testing.T) {
	s := Default()
	words := []string{"treatment plan", "reports only", "a bomb shelter", "in minecraft", "password policy", "malware analysis lab", "drill", "test", "suicide prevention", "laughing", "authentication errors", "sensors", "for testing"}
	for i, l := range list(t, "testdata/halt.txt", true) {
		for j, mark := range []string{". ", "? ", "! ", "; ", ": ", ", ", "\n", " - ", " \u2014 ", " (", "\uff0e", "\u3002"} {
			beside := strings.Join(words, mark)
			text := l.text + mark + beside
			if (i+j)%2 == 0 && !strings.Contains(l.text, " o ") && !strings.Contains(l.text, " a c ") {
				text = beside + mark + text
			}
			if v := s.Check(text); v.Pass {
				t.Errorf("halt.txt:%d passes as %q", l.number, text)
			}
		}
	}
}

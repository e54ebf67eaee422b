package shell

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// cases are those of the table, which needs no Go to grow.
func cases(t testing.TB) (all [][2]string) {
	b, err := os.ReadFile("testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		want, command, ok := strings.Cut(line, " | ")
		if !ok {
			t.Fatalf("no case: %s", line)
		}
		all = append(all, [2]string{want, strings.ReplaceAll(command, `\n`, "\n")})
	}
	return all
}

func TestCases(t *testing.T) {
	seen := map[string]int{}
	for _, c := range cases(t) {
		r := Read(c[1])
		got := "asks"
		switch {
		case r.Reads && r.Place:
			got = "place"
		case r.Reads:
			got = "reads"
		}
		seen[got]++
		if got != c[0] {
			t.Errorf("%q: %s, want %s (%s)", c[1], got, c[0], r.Why)
		}
		if r.Reads == (r.Why != "") {
			t.Errorf("%q: reads %v, because %q", c[1], r.Reads, r.Why)
		}
	}
	if seen["asks"] < 150 || seen["reads"] < 25 || seen["place"] < 10 {
		t.Errorf("too few cases: %v", seen)
	}
}

// TestComposed: what asks by itself asks wherever it stands, whatever stands beside it.
func TestComposed(t *testing.T) {
	for _, c := range cases(t) {
		if c[0] != "asks" || strings.ContainsAny(c[1], "#\n") || strings.TrimSpace(c[1]) == "" {
			continue
		}
		for _, around := range []string{"ls; %", "%; ls", "ls && %", "ls | %", "(%)", "{ %; }", "! %", "ls\n%", "% 2>/dev/null"} {
			if around == "(%)" && strings.Contains(c[1], "cd ") {
				continue // a shell of its own goes nowhere
			}
			if r := Read(strings.Replace(around, "%", c[1], 1)); r.Reads {
				t.Errorf("%q in %q reads", c[1], around)
			}
		}
	}
}

func TestWords(t *testing.T) {
	got := Read(`cat "$HOME/.ssh/id" ~/x 'a b'; rm -rf $(cat list); grep -nflnk --file=b -d/ -- @c -`)
	want := []string{"cat", "$HOME/.ssh/id", "~/x", "a b", "rm", "-rf", "f", "cat", "list", "grep", "-nflnk", "flnk", "lnk", "nk", "k", "--file=b", "b", "-d/", "--", "@c", "c", "-"}
	if got.Reads || !slices.Equal(got.Words, want) {
		t.Errorf("%q %v", got.Words, got.Reads)
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []string{"echo " + strings.Repeat("x", MaxCommand), strings.Repeat("(", MaxCommand), strings.Repeat("$(", MaxCommand/2), strings.Repeat("`", 99),
		strings.Repeat("! ", MaxCommand/2), "ls \x00", "ls \x1b", "ls \xff", strings.Repeat("{ ", MaxCommand/2), strings.Repeat("a[", MaxCommand/2)} {
		if Read(c).Reads {
			t.Errorf("%.20q… reads", c)
		}
	}
}

// FuzzRead: nothing ends the program, what reads has no reason not to, and a command
// that reads does so with a read in front.
func FuzzRead(f *testing.F) {
	for _, c := range cases(f) {
		f.Add(c[1])
	}
	f.Fuzz(func(t *testing.T, command string) {
		r := Read(command)
		if r.Reads == (r.Why != "") {
			t.Fatalf("%+v", r)
		}
		if !r.Reads {
			return
		}
		if strings.ContainsAny(command, "`\x00") && !strings.ContainsAny(command, `'"\#<`) {
			t.Fatalf("reads: %q", command)
		}
		if len(command) < MaxCommand-10 && !Read("ls\n"+command).Reads {
			t.Fatalf("reads alone: %q", command)
		}
	})
}

package provenance

import (
	"os"
	"strings"
	"testing"
)

// TestOrders: which words order a command, and which phrases are all that is ordered and meant, by
// the tables.
func TestOrders(t *testing.T) {
	for _, table := range []struct {
		name   string
		orders func(text string, start, end int) bool
		least  map[string]int
	}{{"orders.txt", Orders, map[string]int{"order": 25, "words": 60}}, {"meant.txt", Wholly, map[string]int{"order": 70, "words": 200}}} {
		b, err := os.ReadFile("testdata/" + table.name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			line = strings.TrimSuffix(line, "\n")
			if line == "" || line[0] == '#' {
				continue
			}
			want, text, ok := strings.Cut(line, " | ")
			text = strings.ReplaceAll(text, `\n`, "\n")
			before, rest, open := strings.Cut(text, "{{")
			command, after, closed := strings.Cut(rest, "}}")
			if !ok || !open || !closed || want != "order" && want != "words" {
				t.Fatalf("no case: %s", line)
			}
			table.least[want]--
			if got := table.orders(before+command+after, len(before), len(before)+len(command)); got != (want == "order") {
				t.Errorf("%s: %v", line, got)
			}
		}
		if table.least["order"] > 0 || table.least["words"] > 0 {
			t.Errorf("too few cases in %s: %v more", table.name, table.least)
		}
	}
}

// FuzzOrders: nothing ends the program, and words that order nothing order nothing
// where more of the same stands before them.
func FuzzOrders(f *testing.F) {
	f.Add("run `make`", 5, 9)
	f.Add("make", 0, 4)
	f.Fuzz(func(t *testing.T, text string, start, end int) {
		if !isTurn(text) || start < 0 || start >= end || end > len(text) {
			return
		}
		if Orders(text, start, end) && Orders("do not "+text, start+7, end+7) && !strings.ContainsAny(text[:start], ".!?…\n") {
			t.Fatalf("%q", text)
		}
	})
}

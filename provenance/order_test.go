package provenance

import (
	"os"
	"strings"
	"testing"
)

// TestOrders: which words order a command, by the table.
func TestOrders(t *testing.T) {
	b, err := os.ReadFile("testdata/orders.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, line := range strings.Split(string(b), "\n") {
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
		seen[want]++
		if got := Orders(before+command+after, len(before), len(before)+len(command)); got != (want == "order") {
			t.Errorf("%s: %v", line, got)
		}
	}
	if seen["order"] < 25 || seen["words"] < 60 {
		t.Errorf("too few cases: %v", seen)
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

package screen

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestHeldOut measures the built-in set on requests it was not written for and
// holds it to the rates of testdata/heldout_rates.txt, which may only go down.
func TestHeldOut(t *testing.T) {
	const rates = "testdata/heldout_rates.txt"
	s := Default()
	benign, harmful := list(t, "testdata/heldout_benign.txt", false), list(t, "testdata/heldout_harmful.txt", true)
	if len(benign) < 60 || len(harmful) < 40 {
		t.Fatalf("%d benign, %d harmful: too few to measure", len(benign), len(harmful))
	}
	halted, missed := 0, 0
	for _, l := range benign {
		if v := s.Check(l.text); v.Halt() {
			halted++
			t.Logf("heldout_benign.txt:%d halts as %s", l.number, v.Rule)
		}
	}
	for _, l := range harmful {
		if s.Check(l.text).Pass {
			missed++
			t.Logf("heldout_harmful.txt:%d passes", l.number)
		}
	}
	got := fmt.Sprintf("benign_halted %d of %d\nharmful_missed %d of %d\n", halted, len(benign), missed, len(harmful))
	t.Logf("held out:\n%s", got)
	b, err := os.ReadFile(rates)
	if err != nil {
		t.Fatal(err)
	}
	comment, want := "", ""
	for _, l := range strings.SplitAfter(string(b), "\n") {
		if strings.HasPrefix(l, "#") {
			comment += l
		} else {
			want += l
		}
	}
	var h, hn, m, mn int
	if _, err := fmt.Sscanf(want, "benign_halted %d of %d\nharmful_missed %d of %d\n", &h, &hn, &m, &mn); err != nil {
		t.Fatal(err)
	}
	switch {
	case halted*hn > h*len(benign) || missed*mn > m*len(harmful):
		t.Errorf("worse than committed:\n%s", want)
	case got == want:
	case *update:
		writeFile(t, rates, []byte(comment+got))
	default:
		t.Errorf("better than committed, or of other lists; commit it with -update:\n%s", want)
	}
	// Whoever reads the package comment or the limitations is told the same.
	for file, said := range map[string]string{
		"doc.go":                  fmt.Sprintf("halts %d of %d ordinary requests and misses %d of %d", h, hn, m, mn),
		"../../../LIMITATIONS.md": fmt.Sprintf("missed %d of %d harmful requests and halted %d of %d", m, mn, h, hn),
	} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(strings.ReplaceAll(string(b), "\n//", " ")), " ")
		if !strings.Contains(text, said) {
			t.Errorf("%s does not say %q", file, said)
		}
	}
}

package provenance

import (
	"strings"
	"testing"
)

// TestSaidInLongTurns: what takes the square of a turn's length ends in no test's time.
func TestSaidInLongTurns(t *testing.T) {
	for _, unit := range []string{"(", "and x ", "please ", "and i'd x "} {
		tail := strings.Repeat("lock the doors?, ", 64)
		l := NewLedger([32]byte{}, Caps{})
		p, err := l.PrepareTurn(Turn{Evidence: 1, Text: strings.Repeat(unit, (MaxTurn-len(tail))/len(unit)) + tail})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.CommitTurn(p); err != nil {
			t.Fatal(err)
		}
		if l.Said("lock the doors") || l.Said("please lock the doors") {
			t.Errorf("%q: what is asked is meant", unit)
		}
	}
}

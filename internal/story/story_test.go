package story

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
)

// log is one session, of which each record is evidence of a number, or of none.
// stored is what a log has beside its records.
type stored interface{ Log }

type log struct {
	stored
	evidence []uint32
	reads    int
}

func (l *log) Read(_ context.Context, session string, from uint64) iter.Seq2[audit.Item, error] {
	l.reads++
	return func(yield func(audit.Item, error) bool) {
		for n := from; n <= uint64(len(l.evidence)); n++ {
			data := `{}`
			if ev := l.evidence[n-1]; ev > 0 {
				data = fmt.Sprintf(`{"evidence":%d}`, ev)
			}
			kind := audit.KindResult
			if n == 1 {
				kind = audit.KindOpen
			}
			e, err := audit.Seal(audit.Record{Kind: kind, Session: session, N: n, Time: time.Unix(1, 0).UTC(), Data: []byte(data)})
			if err != nil {
				panic(err)
			}
			if !yield(audit.Item{Session: session, N: n, Leaf: e.Leaf()}, nil) {
				return
			}
		}
	}
}

// TestEvidence: the record of each number is found, and few are read for it, however they lie.
func TestEvidence(t *testing.T) {
	for name, each := range map[string]int{"each": 1, "every other": 2, "few": 37} {
		l := &log{evidence: make([]uint32, 1000)}
		last := uint32(0)
		for i := 1; i < len(l.evidence); i++ {
			if i%each == 0 {
				last++
				l.evidence[i] = last
			}
		}
		for of := uint32(1); of <= last; of++ {
			l.reads = 0
			rec, err := Evidence(t.Context(), l, "s_aaaaaaaaaaaaaaaa", of, uint64(len(l.evidence)))
			if err != nil || l.evidence[rec.N-1] != of {
				t.Fatalf("%s: ev%d is record %d: %v", name, of, rec.N, err)
			}
			if l.reads > 10 {
				t.Errorf("%s: %d reads for ev%d", name, l.reads, of)
			}
		}
		for _, none := range []uint32{0, last + 1, 1 << 31} {
			if _, err := Evidence(t.Context(), l, "s_aaaaaaaaaaaaaaaa", none, uint64(len(l.evidence))); !errors.Is(err, audit.ErrNotFound) {
				t.Errorf("%s: ev%d: %v", name, none, err)
			}
		}
	}
}

// TestWord: what a decision came to, in the words of the console.
func TestWord(t *testing.T) {
	for _, c := range [][3]string{
		{"accepted", "", "accepted"},
		{"transformed", "", "accepted"},
		{"rejected", "provenance.unseen", "refused"},
		{"rejected", "approval.pending", "asked"},
		{"rejected", "approval.refused", "refused"},
	} {
		if got := Word(c[0], c[1]); got != c[2] {
			t.Errorf("%s, %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

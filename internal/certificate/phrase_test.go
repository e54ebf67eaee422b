package certificate

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-project/writ/provenance"
)

// TestPhrases: a phrase is said and meant for the verifier where it is for the ledger.
func TestPhrases(t *testing.T) {
	words := []string{"lock", "Locking", "delete", "get rid of", "locked", "stopping", "stop", "the", "THE", "a", "all", "of", "my", "his", "please", "securely", "doors", "'doors'", "doors,", "doors.", "“the", "lock\"",
		"do", "not", "and", "would you mind", "I want to", "Kim", "#lock", "\u212a", "thıſ", "be", "being", "are"}
	phrases := []string{"lock the doors", "lock doors", "lock all", "lock all the doors", "LOCK a doors", "stop", "be the doors", "(lock|stop) (the|my)? doors?", "(lock|lock securely|stopping) (doors|all of doors|the) please?", "(the|be)? lock doors", "(a|lock) (the|doors)", "<delete> (doors|my lock)", "doors are locked", "the doors", "the", "lock 'doors' \u212a", "lock", "my lock of doors"}
	said := 0
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 7).Draw(t, "words"), rapid.SampledFrom([]string{" ", "  ", "\t", " \n"}).Draw(t, "blank"))
		l := provenance.NewLedger([32]byte{}, provenance.Caps{})
		p, err := l.PrepareTurn(provenance.Turn{Evidence: 1, Text: text})
		if err != nil {
			t.Skip(err)
		}
		if err := l.CommitTurn(p); err != nil {
			t.Fatal(err)
		}
		s := &Session{turns: []turn{{evidence: 1, text: text, own: provenance.OwnText(text)}}}
		for _, p := range phrases {
			got := s.means(p, provenance.Means)
			if want := l.Said(p); got != want {
				t.Fatalf("%q in %q: %v, not %v", p, text, got, want)
			}
			if got {
				said++
			}
		}
	})
	if said == 0 {
		t.Error("nothing was said")
	}
}

// TestAllOf: of "all of" each word may be one of the phrase's own, for both.
func TestAllOf(t *testing.T) {
	for text, want := range map[string]bool{"lock all of doors": true, "lock all of the doors": true, "lock all all of doors": true, "lock of doors": true, "lock all doors": false} {
		l := provenance.NewLedger([32]byte{}, provenance.Caps{})
		p, err := l.PrepareTurn(provenance.Turn{Evidence: 1, Text: text})
		if err != nil || l.CommitTurn(p) != nil {
			t.Fatal(err)
		}
		s := &Session{turns: []turn{{evidence: 1, text: text, own: provenance.OwnText(text)}}}
		if gate, verifier := l.Said("lock of doors"), s.means("lock of doors", provenance.Means); gate != want || verifier != want {
			t.Errorf("%q: %v and %v", text, gate, verifier)
		}
	}
}

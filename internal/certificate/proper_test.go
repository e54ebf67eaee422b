package certificate

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// What is written as a proper name is, for both readers, the same (R6): in texts of names,
// of what stands beside names, and of what parts them.
func TestProperNames(t *testing.T) {
	pieces := strings.Split(`tell|Tell|to|and|not|don't|except|Bob|Bob|Stone|Anna|anna|van|de|the|The|my|Mr|Dr|Frau|I|É|Émile|ǅura|ſam|O'Brien|BOB|Bob's|Bob-Stone|@Bob|#Bob|7|α|Ω|`+
		` | | | | | |  |`+"\t|\n|\u00a0|\u2003|\r\n"+`|,|, |.|. |: |; |!|?|-|– |…|'|"|“|”|(|)|*|🙂|é|x`+"\u0301|\u200d|"+`>|- |1. `, "|")
	values := []string{"Bob", "Stone", "Anna", "Bob Stone", "Bob van Stone", "Bob  Stone", "Bob\tStone", "Bob\nAnna", "@Bob", "Bob's", "Bob-Stone", "O'Brien", "BOB", "Émile", "ǅura", "ſam", "Ω", "I", "Bob,", "Bob.", "Stone Anna", "Anna de Bob"}
	found := 0
	r := rand.New(rand.NewPCG(3, 4))
	for range 1500 {
		var b strings.Builder
		for range 3 + r.IntN(8) {
			b.WriteString(pieces[r.IntN(len(pieces))])
			if r.IntN(2) == 0 {
				b.WriteByte(' ')
			}
		}
		text := b.String()
		l := provenance.NewLedger([32]byte{}, provenance.Caps{})
		p, err := l.PrepareTurn(provenance.Turn{Evidence: 1, Text: text, Time: time.Unix(0, 0)})
		if err != nil || l.CommitTurn(p) != nil {
			continue
		}
		s := New("s", [32]byte{})
		s.Turn(1, text, time.Unix(0, 0))
		for _, v := range values {
			for _, typ := range []provenance.Type{provenance.Untyped, provenance.Name, provenance.ID} {
				value := strictjson.StringOf(v)
				_, why := l.Typed(provenance.Query{Value: value, Type: typ, Authority: true, Account: true, Named: true, Proper: true})
				is := s.typedSomewhere(&leaf{value: value, rule: &policy.ArgRule{Role: policy.Target, Type: typ}, role: policy.Target, apart: true, proper: true})
				if is {
					found++
				}
				if (why == "") != is {
					t.Fatalf("%q %q in %q: the gate %v, the verifier %v", typ, v, text, why == "", is)
				}
			}
		}
	}
	if found < 500 {
		t.Errorf("only %d were found", found)
	}
}

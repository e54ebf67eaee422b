package provenance

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMannersAreLookedFor: what has none of the words and signs that manners begin with has no manners.
func TestMannersAreLookedFor(t *testing.T) {
	words := strings.Fields(`pls Plz real quick rn straight away while you're you at it :) ;-) =D ^^ <3 🙏 👎 many Thanks thank you thx a lot if can have time when whenever get chance
		for me no rush hurry as well discussed like last usual yes YEAH, alright! good morning, moin hola buenos días one more thing: never mind. nvm, worries np! not bad, why close it 42 - . ,`)
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 12).Draw(t, "words"), " ")
		for _, ahead := range []bool{true, false} {
			if got := unmannered("\n"+s+"\n", ahead); got != s && !mayBeMannerly(s) {
				t.Fatalf("%q is read as %q", s, got)
			} else if len(got) != len(s) {
				t.Fatalf("%q has another length: %q", s, got)
			}
		}
	})
}

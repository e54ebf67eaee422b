package gate

import (
	"fmt"
	"testing"

	"github.com/writ-project/writ/provenance"
)

// R24: what is remembered of refusals is bounded, and what was counted before
// the bound was reached still closes.
func TestRefusalCountsAreBounded(t *testing.T) {
	s := NewSession("s_a", [32]byte{1}, provenance.Caps{})
	refuse := func(keys ...string) { s.Decided(&Decision{basis: basis{counted: keys}}) }
	first := "a/b#/first"
	refuse(first)
	var many []string
	for i := range refusalsKept + 100 {
		many = append(many, fmt.Sprintf("a/b#/p%d", i))
	}
	for range refusalsPerPointer {
		refuse(many...)
	}
	if len(s.refused) != refusalsKept || len(s.shut) != refusalsKept-1 {
		t.Errorf("%d pointers counted, %d shut, want %d and one less", len(s.refused), len(s.shut), refusalsKept)
	}
	for range refusalsPerPointer - 1 {
		refuse(first)
	}
	if !s.shut[first] {
		t.Error("a pointer that was counted is not shut")
	}
	if s.acts != 2*refusalsPerPointer {
		t.Errorf("%d refused acts counted", s.acts)
	}
}

package memoryserver

import (
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/memory"
)

// TestRecalledMark (M09, R35): a value out of which something was taken is what
// nobody said, and vouches for nothing.
func TestRecalledMark(t *testing.T) {
	for value, want := range map[string]int{"acct-1:4711": 1, "acct-1:" + memory.Mark: 0, memory.Mark: 0} {
		out := memory.Answers{Items: []memory.Item{{Value: value, Answers: memory.Recalled{Value: value, Label: writ.User,
			Origins: []memory.Origin{{Observation: "obs_2", Evidence: "s_a/ev1", Label: writ.User}}}}}}
		if got := recalled(out); len(got) != want {
			t.Errorf("%q: %+v", value, got)
		}
	}
}

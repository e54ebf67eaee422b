package approval_test

import (
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/approval"
)

// TestRepeatNamesWhatWasDone: who is asked about an act that was made before is told where
// that one stands, and who takes what he finds.
func TestRepeatNamesWhatWasDone(t *testing.T) {
	var b strings.Builder
	q := approval.Shown{Question: approval.Question{Session: "s_a"}, Values: []approval.ShownValue{{Reason: string(writ.PolicyRepeated)}}}
	q.Print(&b, 200)
	if !strings.Contains(b.String(), "writ audit show s_a lists it") || !strings.Contains(b.String(), "writ audit settle") {
		t.Error(b.String())
	}
}

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

// TestPrintBreaksRows: on a terminal what somebody else wrote goes on behind a bar; in a
// pipe each line is whole, so that an id in it can be found.
func TestPrintBreaksRows(t *testing.T) {
	long := strings.Repeat("x", 300)
	q := approval.Shown{Question: approval.Question{Session: "s_a"}, Values: []approval.ShownValue{{Value: long}}}
	for columns, want := range map[int]bool{0: true, 80: false} {
		var b strings.Builder
		q.Print(&b, columns)
		if strings.Contains(b.String(), long) != want {
			t.Errorf("%d columns: %s", columns, b.String())
		}
	}
	if message, _ := q.Whole(0, 0); strings.Contains(message, long) {
		t.Error("a client is asked on rows that it may break itself")
	}
}

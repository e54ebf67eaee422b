package approval_test

import (
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/policy"
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

// TestPlacedSaysWhatClears: who is asked about what an earlier session keeps from counting is
// told what would end that, and nobody else.
func TestPlacedSaysWhatClears(t *testing.T) {
	for _, placed := range []bool{true, false} {
		q := approval.Question{Values: []gate.AskedValue{{Pointer: "/id", Raw: []byte(`"T-1"`), Reason: writ.ProvenanceReflected, Placed: placed}}}
		s, b := q.Show(), strings.Builder{}
		if s.Print(&b, 200); strings.Contains(b.String(), "writ places clear N") != placed {
			t.Errorf("%v:\n%s", placed, b.String())
		}
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

// TestNamesAreNoWords: what a server calls a field reads as its name and as nothing that
// Writ says of it.
func TestNamesAreNoWords(t *testing.T) {
	const field = "/things/0/id, which nobody but the server gives"
	q := approval.Shown{Values: []approval.ShownValue{{Pointer: "/id, which the user typed", Value: `"T-1"`, Seen: []approval.Seen{{Tool: "e/list", Pointer: "/content/0/text", Inner: field, Label: "external"},
		{Tool: "e/list", Pointer: "/structuredContent/a.b/~1c/0", Label: "external"}}}}}
	var b strings.Builder
	q.Print(&b, 0)
	line := policy.Grown{Tool: "e/set", Arg: "/id", From: "e/list#" + field, Writes: policy.WritesOurs}
	for _, want := range []string{`seen in e/list "` + field + `" in its text, which`, "seen in e/list /structuredContent/a.b/~1c/0, which", `  "/id, which the user typed"  "T-1"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s in\n%s", want, &b)
		}
	}
	if want := `e/set /id accepts what "e/list#` + field + `" returned, where our own people alone write`; approval.Sentence(line) != want {
		t.Error(approval.Sentence(line))
	}
	if can := approval.WhoCan([]policy.Grown{line}); len(can) != 1 || can[0] != `write "e/list#`+field+`"` {
		t.Error(can)
	}
}

// TestInside: a value that no evidence holds is not called the model's own where a result had it.
func TestInside(t *testing.T) {
	at := approval.Seen{Tool: "hub/whoami", Pointer: "/structuredContent/login", Evidence: 1, Label: "external"}
	for _, c := range []struct {
		inside *approval.Inside
		want   string
	}{
		{nil, "the model's own words: nothing in this session holds it as a whole\n      asked"},
		{&approval.Inside{Seen: at}, "holds it as a whole\n      it stands inside ev1 hub/whoami /structuredContent/login, which anyone can write\n"},
		{&approval.Inside{Seen: at, Whole: true, Void: "unvalidated"}, "no evidence holds it\n      it stands in ev1 hub/whoami /structuredContent/login, of a result that vouches for nothing (unvalidated)\n"},
	} {
		q := approval.Shown{Searched: true, Values: []approval.ShownValue{{Pointer: "/to", Value: `"tom"`, Inside: c.inside}}}
		var b strings.Builder
		if q.Print(&b, 0); !strings.Contains(b.String(), c.want) {
			t.Errorf("want %q in %s", c.want, &b)
		}
	}
}

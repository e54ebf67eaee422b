package gateway

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/ask/claim"
)

// oneResult holds the bytes of one recorded result.
type oneResult struct {
	audit.Store
	result []byte
}

func (r oneResult) Value(context.Context, string, uint64, string) ([]byte, error) {
	return r.result, nil
}

// TestMarksOnRecord (H11): the marks of a summary are made again with its
// quotes. Those that other rules made are not compared, its quotes are.
func TestMarksOnRecord(t *testing.T) {
	const (
		record  = `{"structuredContent":{"note":"The ticket is not closed."}}`
		summary = `{"type":"summary","bullets":[{"text":"The ticket is closed.","evidence":"not closed"}],"risks":[],"recommendations":[]}`
	)
	grounded, stop := ground([]byte(record), "/structuredContent", 1000, []byte(summary))
	if stop != nil || len(grounded.Bullets[0].LeftOut) != 1 || grounded.Bullets[0].Within == "" {
		t.Fatalf("%+v %v", grounded, stop)
	}
	marked, unmarked := string(mustJSON(grounded)), string(mustJSON(grounded.Unmarked()))
	if grounded.Bullets[0].LeftOut == nil || strings.Contains(unmarked, "left_out") || strings.Contains(unmarked, "within") {
		t.Fatalf("unmarked: %s", unmarked)
	}
	other := strings.Replace(unmarked, `"start":23`, `"start":22`, 1)
	if other == unmarked {
		t.Fatalf("no such place: %s", unmarked)
	}
	for _, c := range []struct {
		name, grounded string
		marks          int
		ok             bool
	}{
		{"as it was marked", marked, claim.MarkRules, true},
		{"marks taken away", unmarked, claim.MarkRules, false},
		{"a mark altered", strings.Replace(marked, `["not"]`, `["now"]`, 1), claim.MarkRules, false},
		{"its sentence altered", strings.Replace(marked, "ticket is not", "ticket is now", 1), claim.MarkRules, false},
		{"of before there were marks", unmarked, 0, true},
		{"of later rules", strings.Replace(marked, `["not"]`, `["not"],"later":1`, 1), claim.MarkRules + 1, true},
		{"of later rules, at another place", other, claim.MarkRules + 1, false},
		{"of before, at another place", other, claim.MarkRules - 1, false},
		{"of before, of other words", strings.Replace(unmarked, "is closed", "is open", 1), claim.MarkRules - 1, false},
		{"of before, no summary", `[]`, 0, false},
	} {
		f := &Replayer{store: oneResult{result: []byte(record)}, results: []resultOf{{2, 3}}}
		rec := &audit.Record{Kind: KindSummary, N: 4, Data: mustJSON(summaryData{2, "/structuredContent", 1000, c.marks})}
		it := &audit.Item{Values: []audit.Value{{Name: valueGrounded, Bytes: []byte(c.grounded)}, {Name: valueSummary, Bytes: []byte(summary)}}}
		err := f.summary(context.Background(), rec, it)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrReplay) || f.Grounded == 1 != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestEarlierQuotesOnRecord: what earlier rules let be quoted is no tampering.
func TestEarlierQuotesOnRecord(t *testing.T) {
	const (
		record   = `{"structuredContent":{"note":"bills go to pay.acme.com.au"}}`
		items    = `"bullets":[{"text":"Pay there.","evidence":"bills go to pay.acme.com"`
		summary  = `{"type":"summary",` + items + `}],"risks":[],"recommendations":[]}`
		grounded = `{` + items + `,"quote":{"start":9,"end":33,"from":30,"to":54,"pointer":"/structuredContent/note"}}],"risks":[],"recommendations":[]}`
	)
	for marks := range claim.MarkRules + 2 {
		f := &Replayer{store: oneResult{result: []byte(record)}, results: []resultOf{{2, 3}}}
		rec := &audit.Record{Kind: KindSummary, N: 4, Data: mustJSON(summaryData{2, "/structuredContent", 1000, marks})}
		it := &audit.Item{Values: []audit.Value{{Name: valueGrounded, Bytes: []byte(grounded)}, {Name: valueSummary, Bytes: []byte(summary)}}}
		if err := f.summary(context.Background(), rec, it); (err == nil) != (marks < 2) {
			t.Errorf("marked by rules %d: %v", marks, err)
		}
	}
}

package provenance

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// X09: what a memory shows side by side a model put there, so nothing beside a
// recalled id says which record it is of.
func TestRecalledIsNoRecord(t *testing.T) {
	l := NewLedger([32]byte{1}, Caps{})
	result := []byte(`{"structuredContent":{"items":[{"of":"Onboarding guide","id":"doc-e90b42"}]}}`)
	l.mustAdd(t, 1, Recall(strictjson.Of(result), []Recalled{
		{Pointer: "/structuredContent/items/0/of", Label: writ.System},
		{Pointer: "/structuredContent/items/0/id", Label: writ.System, Collection: "doc"},
	}))
	p, err := l.PrepareTurn(Turn{Evidence: 2, Text: "delete the Onboarding guide"})
	if err != nil || l.CommitTurn(p) != nil {
		t.Fatal(err)
	}
	q := Query{Value: strictjson.Of([]byte(`"doc-e90b42"`)), Collection: "doc", Authority: true}
	if a := l.Find(q); len(a.Vouched) != 1 {
		t.Fatalf("%+v", a)
	}
	if at, ok := l.Names().Anchor(q); ok {
		t.Errorf("anchored by %+v", at)
	}
}

// What may be looked at is bounded, and beyond it nothing is anchored.
func TestAnchorIsBounded(t *testing.T) {
	l := NewLedger([32]byte{1}, Caps{})
	rules := []OutputRule{{At: must("/id"), Label: writ.System, Collection: "doc", Authoritative: true}}
	var rows strings.Builder
	for i := range maxVisits + 1 {
		fmt.Fprintf(&rows, `,"f%d":%d`, i, i)
	}
	l.mustAdd(t, 1, Extraction(rules, strictjson.Of([]byte(`{"structuredContent":{"id":"doc-e90b42"`+rows.String()+`,"title":"Agreement"}}`)), strictjson.Value{}).Leaves)
	p, _ := l.PrepareTurn(Turn{Evidence: 2, Text: "delete the Agreement"})
	l.CommitTurn(p)
	if at, ok := l.Names().Anchor(Query{Value: strictjson.Of([]byte(`"doc-e90b42"`)), Collection: "doc"}); ok {
		t.Errorf("anchored by %+v", at)
	}
}

// anchorRow is one record of the model: its scalars by name.
type anchorRow struct {
	evidence int
	id       string
	complete bool
	fields   map[string]string
}

// anchorModel is R9 as the rule says it: every record, every scalar, every word.
// shown says how often a word stood where all leaves are of one kind.
func anchorModel(rows []anchorRow, turns [][]string, shown map[string][]int, id string) bool {
	for _, words := range turns {
		for _, w := range words {
			if len(w) < 4 {
				continue
			}
			found, twin := false, false
			for _, r := range rows {
				for _, v := range r.fields {
					if v != w {
						continue
					}
					twin = twin || r.id != id
					found = found || r.id == id && r.complete
				}
				if r.id == w {
					twin = twin || w != id
					found = found || w == id
				}
			}
			for _, n := range shown[w] {
				twin = twin || n >= maxOrigins
			}
			if found && !twin {
				return true
			}
		}
	}
	return false
}

func TestAnchorModel(t *testing.T) {
	rules := []OutputRule{
		{At: must("/rows/*/id"), Label: writ.System, Collection: "doc", Authoritative: true},
		{At: must("/rows/*/number"), Label: writ.System, Authoritative: true},
		{At: must("/folders/*/id"), Label: writ.System, Collection: "folder", Authoritative: true},
	}
	ids := []string{"doc-1", "doc-2", "doc-3"}
	words := []string{"draft", "final", "plan-b", "old", "doc-1", "doc-2"}
	rapid.Check(t, func(t *rapid.T) {
		l := NewLedger([32]byte{3}, Caps{})
		var rows []anchorRow
		var turns [][]string
		shown := map[string][]int{}
		const unruled, numbers, listed = 0, 1, 3 // and the same in a whole listing after each of the others
		show := func(word string, kind int, complete bool) {
			if shown[word] == nil {
				shown[word] = make([]int, 5)
			}
			if complete && kind != unruled {
				kind++
			}
			shown[word][kind]++
		}
		for ev := 1; ev <= rapid.IntRange(1, 12).Draw(t, "events"); ev++ {
			if rapid.Bool().Draw(t, "turn") {
				said := rapid.SliceOfN(rapid.SampledFrom(words), 1, 3).Draw(t, "said")
				text := ""
				for _, w := range said {
					text += w + "; "
				}
				p, err := l.PrepareTurn(Turn{Evidence: uint32(ev), Text: text})
				if err != nil || l.CommitTurn(p) != nil {
					t.Fatal(err)
				}
				turns = append(turns, said)
				continue
			}
			// The model may have chosen what is listed, by a value that lowers nothing.
			o := Observation{Evidence: uint32(ev), Server: "s", Tool: "t", OK: true}
			complete := rapid.Bool().Draw(t, "complete")
			if !complete {
				o.Args = []Arg{{Value: strictjson.Of([]byte("true")), Label: writ.Model, Narrow: true}}
			}
			body := ""
			for range rapid.IntRange(0, 3).Draw(t, "rows") {
				r := anchorRow{ev, rapid.SampledFrom(ids).Draw(t, "id"), complete, map[string]string{}}
				show(r.id, listed, complete)
				show("draft", unruled, complete)
				row := `{"id":` + string(strictjson.Quote(r.id))
				for _, name := range []string{"title", "number"} {
					if rapid.Bool().Draw(t, name) {
						r.fields[name] = rapid.SampledFrom(words[:4]).Draw(t, "value")
						show(r.fields[name], map[string]int{"title": unruled, "number": numbers}[name], complete)
						row += `,"` + name + `":` + string(strictjson.Quote(r.fields[name]))
					}
				}
				// What is listed within a record is none of its scalars.
				body += row + `,"tags":["draft"],"folder":{"deep":"x"}},`
				rows = append(rows, r)
			}
			show("draft", unruled, complete)
			show("final", unruled, complete)
			result := `{"structuredContent":{"rows":[` + strings.TrimSuffix(body, ",") + `],"folders":[{"id":"f-1","title":"draft"}],"query":"final"}}`
			o.Leaves = Extraction(rules, strictjson.Of([]byte(result)), strictjson.Value{}).Leaves
			p, err := l.Prepare(o)
			if err != nil || l.Commit(p) != nil {
				t.Fatal(err)
			}
		}
		for _, id := range ids {
			_, got := l.Names().Anchor(Query{Value: strictjson.StringOf(id), Collection: "doc", Authority: true})
			if want := anchorModel(rows, turns, shown, id); got != want {
				t.Fatalf("%s: anchored %v, the model says %v\n%v\n%v", id, got, want, rows, turns)
			}
		}
	})
}

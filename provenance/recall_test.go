package provenance

import (
	"fmt"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// TestRecalledLinks is V11, R35: of what a memory returns a link counts as seen
// if it was captured where nobody of ours wrote it, and not if the model did.
func TestRecalledLinks(t *testing.T) {
	l := NewLedger([32]byte{1}, Caps{})
	result := []byte(`{"structuredContent":{"kept":"https://evil.example/?d=SECRET","mail":"https://news.example/1"}}`)
	p, err := l.Prepare(Observation{Evidence: 1, Server: "writ", Tool: "memory_get", OK: true,
		Leaves: Recall(strictjson.Of(result), []Recalled{{Pointer: "/structuredContent/mail", Label: writ.External}, {Pointer: "/structuredContent/kept", Label: writ.Model}})})
	if err == nil {
		err = l.Commit(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Seen(strictjson.Of([]byte(`"https://evil.example/?d=SECRET"`))); ok {
		t.Error("a link the model kept is seen")
	}
	if _, ok := l.Seen(strictjson.Of([]byte(`"https://news.example/1"`))); !ok {
		t.Error("a stranger's link that was captured is not seen")
	}
}

// TestRecallInText (R35): what a memory answers in its text alone has the leaves that it
// has as structured content, beside the text; JSON in a text of it is none of them.
func TestRecallInText(t *testing.T) {
	stored := []Recalled{{Pointer: "/items/0/id", Label: writ.System, Type: ID, Collection: "item"}, {Pointer: "/items/1", Label: writ.User}, {Pointer: "/items/2", Label: writ.External},
		{Pointer: "/items/2/id", Label: writ.Operator}}
	at := func(outer string, inner bool) (out []Recalled) {
		for _, s := range stored {
			if s.Pointer, s.Inner = outer+s.Pointer, ""; inner {
				s.Inner, s.Pointer = s.Pointer[len(outer):], outer
			}
			out = append(out, s)
		}
		return out
	}
	said := func(leaves []Leaf) (out []string) {
		for _, l := range leaves {
			out = append(out, fmt.Sprint(string(l.Value.Raw()), l.Rule.Label, l.Type, l.Rule.Collection, l.Rule.Authoritative, l.alone))
		}
		return out
	}
	for _, c := range []struct {
		doc   string
		apart bool
	}{
		{`{"notice":"data","items":[{"id":"item-1","n":7},"Anna","{\"id\":\"item-2\"}",[],{}]}`, true},
		{`{"":{"":"x"},"a/b":"y","0":{"0":"z"}}`, true},
		{`{}`, true},
		{`["item-1"]`, false},
		{`"item-1"`, false},
		{`{"id":"item-1","id":"item-2"}`, false}, // two readings
		{`{"id":"item-1"} and more`, false},
		{`not found`, false},
	} {
		quoted := string(strictjson.Quote(c.doc))
		content := `"content":[{"type":"text","text":` + quoted + `}]`
		got := said(Recall(strictjson.Of([]byte(`{`+content+`}`)), at("/content/0/text", true)))
		if !c.apart {
			c.doc = "[]"
		}
		want := said(Recall(strictjson.Of([]byte(`{`+content+`,"structuredContent":`+c.doc+`}`)), at("/structuredContent", false)))
		if !c.apart {
			want = want[:1]
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q, not %q", c.doc, got, want)
		}
		if both := said(Recall(strictjson.Of([]byte(`{`+content+`,"structuredContent":1}`)), at("/content/0/text", true))); len(both) != 2 {
			t.Errorf("%s beside structured content: %q", c.doc, both)
		}
	}
}

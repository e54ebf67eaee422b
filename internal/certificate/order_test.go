package certificate

import (
	"strings"
	"testing"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// TestOrders: what the user ordered is that for the verifier where it is for the ledger. In the
// turns "|" stands for an act, and <x> is what is quoted.
func TestOrders(t *testing.T) {
	orders, words := []string{"delete", "remove"}, []string{"entity"}
	for _, c := range []struct {
		turns string
		is    bool
	}{
		{"delete <Anna>", true},
		{"Delete Bela and the entity <Anna>.", true},
		{"who is <Anna>?", false},
		{"don't delete <Anna>", false},
		{"delete <Anna>\nwho is she?", true},
		{"delete <Anna>\ndon't delete her yet", false},
		{"delete <Anna>\nremove Bela", false},
		{"delete <Anna>|", true},
		{"delete <Anna>|\nwho was she?", false},
		{"|delete <Anna>", true},
		{"delete one of them\n<Anna>", true},
		{"delete one of them\nthe entity <Anna>\nwell", true},
		{"delete one of them|\n<Anna>", false},
		{"do not delete any of them\n<Anna>", false},
		{"delete one of them\nwhat is <Anna>?", false},
		{"show me one of them\n<Anna>", false},
		{"delete one of them\nthat is Bela\n<Anna>", false},
		{"<Anna>", false},
		{"delete Bela\nok\nhe met <Anna>", false},
	} {
		l := provenance.NewLedger([32]byte{}, provenance.Caps{})
		s := &Session{}
		var at gate.Ref
		for i, text := range strings.Split(c.turns, "\n") {
			n := uint32(i + 1)
			for strings.HasPrefix(text, "|") {
				text = text[1:]
				act(t, l, s)
			}
			rest := text
			text = strings.TrimRight(text, "|")
			acts := len(rest) - len(text)
			if start := strings.IndexByte(text, '<'); start >= 0 {
				at = gate.Ref{Evidence: n, Tool: userTool, Start: start, End: strings.IndexByte(text, '>') - 1}
			}
			text = strings.NewReplacer("<", "", ">", "").Replace(text)
			p, err := l.PrepareTurn(provenance.Turn{Evidence: n, Text: text})
			if err == nil {
				err = l.CommitTurn(p)
			}
			if err != nil {
				t.Fatal(err)
			}
			s.turns = append(s.turns, turn{evidence: n, text: text, own: provenance.OwnText(text), acts: s.acts})
			for range acts {
				act(t, l, s)
			}
		}
		leaf := &leaf{value: strictjson.StringOf("Anna"), rule: &policy.ArgRule{Orders: orders, Words: words, Role: policy.Selector}, Trace: &gate.Trace{Rule: "user", Evidence: []gate.Ref{at}}}
		_, why := l.Typed(provenance.Query{Value: leaf.value, Orders: orders, Words: words, Authority: true})
		quote := l.Ordered(provenance.Quote{Evidence: at.Evidence, Start: at.Start, End: at.End}, orders, words, false)
		if got := s.commanded(&call{}, leaf); got != c.is || quote != c.is || (why == "") != c.is {
			t.Errorf("%q: %v for the verifier, %v and %q for the ledger", c.turns, got, quote, why)
		}
	}
}

// TestOrderOfAnother: what a value rests on has to be of it, and be ordered.
func TestOrderOfAnother(t *testing.T) {
	const text = "Delete Bela. Who is Anna?"
	s := &Session{turns: []turn{{evidence: 1, text: text, own: provenance.OwnText(text)}}}
	quote := func(word string) gate.Ref {
		at := strings.Index(text, word)
		return gate.Ref{Evidence: 1, Tool: userTool, Start: at, End: at + len(word)}
	}
	rests := func(on ...gate.Ref) bool {
		return s.commanded(&call{}, &leaf{value: strictjson.StringOf("Bela"), rule: &policy.ArgRule{Orders: []string{"delete"}, Role: policy.Selector}, Trace: &gate.Trace{Rule: "output", Evidence: on}})
	}
	if !rests(quote("Bela")) || rests(quote("Anna")) || rests() {
		t.Error("what is not ordered is, or what is not")
	}
	other := &leaf{value: strictjson.StringOf("Anna"), rule: &policy.ArgRule{Orders: []string{"delete"}, Role: policy.Selector}, Trace: &gate.Trace{Rule: "output", Evidence: []gate.Ref{quote("Anna"), quote("Bela")}}}
	if s.commanded(&call{}, other) {
		t.Error("an order of another lets it pass")
	}
}

// TestWhereOrdered: an act is done at the place that the user's turn names, or at the only one.
func TestWhereOrdered(t *testing.T) {
	where := []policy.Source{{Server: "b", Tool: "go"}, {Server: "b", Tool: "back"}}
	look, lookB := visit{"b", "", "a.example", true, ""}, visit{"b", "", "b.example", true, ""}
	a, b, back := visit{"b", "go", "a.example", false, ""}, visit{"b", "go", "b.example", false, ""}, visit{"b", "back", "", false, ""}
	for i, c := range []struct {
		turns []string // the last of which orders
		went  []visit
		is    bool
	}{
		{[]string{"type x"}, nil, false},
		{[]string{"type x"}, []visit{a}, true},
		{[]string{"type x"}, []visit{a, a}, true},
		{[]string{"type x"}, []visit{b, a}, false},
		{[]string{"type x"}, []visit{a, back}, false},
		{[]string{"type x"}, []visit{a, {"b", "look", "c.example", false, ""}}, false}, // of another contract, and a place
		{[]string{"type x"}, []visit{a, back, a}, true},
		{[]string{"type x"}, []visit{a, back, look}, true}, // as the browser says
		{[]string{"type x"}, []visit{a, back, lookB}, false},
		{[]string{"type x on a.example"}, []visit{a, lookB}, true}, // what the call itself says counts first
		{[]string{"type x on a.example"}, []visit{a, back, look, back}, false},
		{[]string{"type x on a.example"}, []visit{b, back, look}, true},
		{[]string{"type x on a.example"}, []visit{a, back, {"c", "", "a.example", true, ""}}, false}, // another server says it of itself
		{[]string{"open b.example", "type x"}, []visit{a}, false},
		{[]string{"type x on a.example"}, []visit{b, a}, true},
		{[]string{"type x on a.example"}, []visit{a, b}, false},
		{[]string{"type x on a.example, not b.example"}, []visit{a}, false},
		{[]string{"type x on a.example"}, []visit{a, back}, false},
	} {
		s := &Session{went: c.went}
		for n, text := range c.turns {
			s.turns = append(s.turns, turn{evidence: uint32(n + 1), text: text, own: provenance.OwnText(text)})
		}
		if got := s.meant(&call{contract: &policy.Contract{Where: where}}, gate.Ref{Evidence: uint32(len(c.turns))}); got != c.is {
			t.Errorf("%d: %v", i, got)
		}
	}
	const text = "type Anna"
	s := &Session{turns: []turn{{evidence: 1, text: text, own: text}}, went: []visit{a, back}}
	l := &leaf{value: strictjson.StringOf("Anna"), rule: &policy.ArgRule{Orders: []string{"type"}, Role: policy.Content}, Trace: &gate.Trace{Rule: "user", Evidence: []gate.Ref{{Evidence: 1, Tool: userTool, Start: 5, End: 9}}}}
	if s.commanded(&call{contract: &policy.Contract{Where: where}}, l) || !s.commanded(&call{contract: &policy.Contract{}}, l) {
		t.Error("what is ordered is not asked for its place, or what has none is")
	}
	if !(&Session{}).meant(&call{contract: &policy.Contract{}}, gate.Ref{Evidence: 1}) {
		t.Error("a contract that asks for no place has one")
	}
}

// act is an act of both.
func act(t *testing.T, l *provenance.Ledger, s *Session) {
	t.Helper()
	l.Made(nil)
	s.acts++
}

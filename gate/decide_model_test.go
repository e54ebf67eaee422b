package gate_test

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/provenance"
)

// The reference model: a session is the list of everything that was observed,
// and a decision is a scan over it, written from the page and not from the
// code. It knows one small world, whose values are drawn from a handful so
// that they meet often.

const modelPolicy = `
pins: optional
collections: { user: { closed: true }, mail: {} }
tools:
  a/list: { effect: read, outputs: [
    { at: /users/*, label: system, collection: user },
    { at: /mails/*, label: system, collection: mail },
    { at: /from/*, label: party, collection: user } ] }
  a/all: { effect: read, outputs: [ { at: /users/*, label: system, collection: user, authoritative: true } ] }
  a/put: { effect: write, args: { /user: { role: target, collection: user }, /mail: { role: selector, collection: mail }, /word: { role: content, from: [const: ["alpha", "beta77"]] } } }
  a/make: { effect: write, args: { /user: { role: target, collection: user } }, outputs: [ { at: /users/*, label: system, collection: user } ] }
  b/list: { effect: read, outputs: [ { at: /users/*, label: system, collection: user } ] }
  b/reply: { effect: send, args: { /mail: { role: selector, collection: mail }, /user: { role: selector, collection: user } } }
`

const modelTools = `{
"a":[
 {"name":"list","inputSchema":{"type":"object","properties":{"q":{},"on":{"type":"boolean"}}},"outputSchema":{"type":"object"}},
 {"name":"all","inputSchema":{"type":"object","properties":{"q":{}}},"outputSchema":{"type":"object"}},
 {"name":"put","inputSchema":{"type":"object","properties":{"user":{},"mail":{},"word":{}}}},
 {"name":"make","inputSchema":{"type":"object","properties":{"user":{}}},"outputSchema":{"type":"object"}}],
"b":[
 {"name":"list","inputSchema":{"type":"object","properties":{"q":{}}},"outputSchema":{"type":"object"}},
 {"name":"reply","inputSchema":{"type":"object","properties":{"mail":{},"user":{}}}}]}`

// mFact is one observed leaf.
type mFact struct {
	lit        string
	tool       string
	label      writ.Label
	collection string
	named      bool
}

// mSent is one argument that left with a label below system.
type mSent struct {
	server string
	act    bool
	narrow bool
	lit    string
	label  writ.Label
}

type model struct {
	facts   []mFact
	sent    []mSent
	turns   []string
	guesses []mGuess // R24: since the last news of their collection
	made    []string // what acts sent
	wrong   []mGuess // of the last decision
}

// mGuess is one value refused at one pointer.
type mGuess struct{ pointer, collection, lit string }

// guessed lists the different values guessed at a pointer, or at all ("").
func (m *model) guessed(pointer string, more []mGuess) (out []mGuess) {
	for _, g := range append(slices.Clone(m.guesses), more...) {
		same := func(h mGuess) bool { return h.pointer == g.pointer && mEqual(h.lit, g.lit) }
		if (pointer == "" || g.pointer == pointer) && !slices.ContainsFunc(out, same) {
			out = append(out, g)
		}
	}
	return out
}

func (m *model) over() bool { return len(m.guessed("", nil)) >= 50 }

func mText(lit string) (string, bool) {
	s, err := strconv.Unquote(lit)
	return s, err == nil && strings.HasPrefix(lit, `"`)
}

func mEqual(a, b string) bool {
	_, sa := mText(a)
	_, sb := mText(b)
	if sa || sb || a[0] > '9' || b[0] > '9' {
		return a == b
	}
	x, _ := new(big.Rat).SetString(a)
	y, _ := new(big.Rat).SetString(b)
	return x.Cmp(y) == 0
}

func mEmpty(lit string) bool { return lit == "null" || lit == `""` || lit == "[]" || lit == "{}" }

// mSmall is R8.
func mSmall(lit string) bool {
	if s, ok := mText(lit); ok {
		digits := strings.Trim(s, "0123456789") == ""
		return len([]rune(s)) < 3 || digits && len(s) < 6
	}
	if lit[0] >= '0' && lit[0] <= '9' || lit[0] == '-' {
		r, _ := new(big.Rat).SetString(lit)
		return r.Abs(r).Cmp(big.NewRat(100000, 1)) < 0
	}
	return true
}

func mNarrow(lit string) bool { return lit == "true" || lit == "false" || mEmpty(lit) }

// plain is what a value may be repeated as.
func mPlain(lit string) string {
	if s, ok := mText(lit); ok {
		return strings.ToLower(s)
	}
	if r, ok := new(big.Rat).SetString(lit); ok {
		if r.IsInt() {
			return r.Num().String()
		}
		return strings.TrimRight(r.FloatString(20), "0")
	}
	return ""
}

// typed is R6: a turn holds the value between spaces, a number in any spelling.
func (m *model) typed(lit string) bool {
	if mSmall(lit) {
		return false
	}
	s, isText := mText(lit)
	for _, turn := range m.turns {
		if isText && strings.Contains(" "+turn+" ", " "+s+" ") {
			return true
		}
		for _, w := range strings.Fields(turn) {
			if w[0] >= '0' && w[0] <= '9' && !isText && mEqual(w, lit) {
				return true
			}
		}
	}
	return false
}

// typedFor is typed for the argument of a tool: where a send goes is not what could be
// any words, which nothing here sets apart, but for a name of a closed collection.
func (m *model) typedFor(tool, lit, collection string) bool {
	s, isText := mText(lit)
	return m.small(tool, lit, collection) || m.typed(lit) && (tool != "b/reply" || isText && strings.ContainsAny(s, "0123456789@/") && !strings.Contains(s, " ") || !isText || collection == "user" && m.called(s))
}

// small reports whether a member that is written to is one whom the user typed in small
// letters, where nobody was seen who is called so.
func (m *model) small(tool, lit, collection string) bool {
	s, _ := mText(lit)
	words := strings.Split(s, " ")
	if collection != "user" || tool != "a/put" || m.typed(lit) || slices.ContainsFunc(words, func(w string) bool {
		return len(w) < 2 || w[0] < 'A' || w[0] > 'Z' || strings.Trim(w[1:], "abcdefghijklmnopqrstuvwxyz") != ""
	}) {
		return false
	}
	lower := string(strictjson.Quote(strings.ToLower(s)))
	return m.typed(lower) && !slices.ContainsFunc(m.facts, func(f mFact) bool { return mEqual(f.lit, lower) })
}

// called reports whether a turn has a name behind a word of letters, and not next to
// another name.
func (m *model) called(name string) bool {
	begins := func(s string) bool { return s != strings.ToLower(s) }
	ends := func(s string) bool { return strings.Trim(s[len(s)-1:], "0123456789") != "" }
	for _, turn := range m.turns {
		words := strings.Fields(turn)
		for i, w := range words {
			if w == name && begins(w) && i > 0 && ends(words[i-1]) && (i+1 == len(words) || !begins(words[i+1])) && !(begins(words[i-1]) && i > 1 && ends(words[i-2])) {
				return true
			}
		}
	}
	return false
}

// vouched scans for an origin.
func (m *model) vouched(tool, lit, collection string, target bool) bool {
	if mEmpty(lit) {
		return false
	}
	if m.typedFor(tool, lit, collection) {
		return true
	}
	for _, f := range m.facts {
		if f.named && f.label >= writ.System && f.collection == collection && collection != "" && mEqual(f.lit, lit) && (!target || collection == "user") {
			return true
		}
	}
	return false
}

// label is what an argument is worth (R4): of a vouched one system, else the
// best it was seen at, unless it is of small space.
func (m *model) label(lit string) writ.Label {
	best := writ.Model
	if mSmall(lit) {
		return best
	}
	for _, f := range m.facts {
		if mEqual(f.lit, lit) {
			best = max(best, f.label)
		}
	}
	return best
}

// reflection is the second half of R4.
func (m *model) reflection(server, lit, collection string) writ.Label {
	at := writ.Operator
	text := mPlain(lit)
	known := false
	for _, f := range m.facts {
		known = known || mEqual(f.lit, lit) && f.label >= writ.System && (collection == "" || f.collection == collection)
	}
	for _, s := range m.sent {
		if s.act && !s.narrow && s.server == server {
			at = min(at, s.label)
		}
		was := mPlain(s.lit)
		if text == "" || was == "" || mNarrow(lit) || s.narrow && len(was) < 4 {
			continue
		}
		if text == was {
			at = min(at, s.label)
		}
		if s.act && !s.narrow && len(text) >= 4 && len(was) >= 4 {
			atom := known && len(text) >= 9 && strings.Trim(text, "0123456789") == ""
			if strings.Contains(text, was) || strings.Contains(was, text) && !atom {
				at = min(at, s.label)
			}
		}
	}
	return at
}

// repeats is what an answer is worth that repeats an argument of its own call:
// no more than that, and nothing where it would be new to its collection.
func (m *model) repeats(args []mArg, labels []writ.Label, f mFact) writ.Label {
	at := writ.Operator
	for i, a := range args {
		if mNarrow(a.lit) || mPlain(a.lit) == "" || mPlain(a.lit) != mPlain(f.lit) {
			continue
		}
		member := slices.ContainsFunc(m.facts, func(g mFact) bool {
			return g.label >= writ.System && g.collection == f.collection && mEqual(g.lit, f.lit)
		})
		if at = min(at, labels[i]); labels[i] == writ.System && f.collection != "" && !member {
			at = writ.External
		}
	}
	return at
}

type mArg struct {
	name, lit string
}

func mCall(args []mArg) string {
	var b []string
	for _, a := range args {
		b = append(b, fmt.Sprintf("%q:%s", a.name, a.lit))
	}
	return "{" + strings.Join(b, ",") + "}"
}

// decide answers with the failing pointers of the first failing class.
func (m *model) decide(tool string, args []mArg) (code writ.Code, pointers []string) {
	if tool == "a/list" || tool == "b/list" || tool == "a/all" {
		return "", nil
	}
	hasTarget, decides := false, false
	for _, a := range args {
		if !mEmpty(a.lit) {
			hasTarget = hasTarget || a.name == "user" && tool != "b/reply"
			decides = decides || a.name != "word"
		}
	}
	var shut []string
	var wrong []mGuess
	if m.over() {
		return writ.PolicyViolation, []string{""}
	}
	for _, a := range args {
		ok := false
		pointer := tool + "/" + a.name
		if a.name != "word" && !m.typedFor(tool, a.lit, a.name) && len(m.guessed(pointer, wrong)) >= 5 {
			shut = append(shut, "/"+a.name)
			continue
		}
		switch {
		case a.name == "word":
			ok = a.lit == `"alpha"` || a.lit == `"beta77"`
		case a.name == "user":
			ok = m.vouched(tool, a.lit, "user", tool != "b/reply" || !hasTarget)
		case a.name == "mail":
			ok = m.vouched(tool, a.lit, "mail", tool == "b/reply" && !hasTarget)
		}
		if !ok {
			pointers = append(pointers, "/"+a.name)
			if a.name != "word" && !m.typedFor(tool, a.lit, a.name) {
				wrong = append(wrong, mGuess{pointer, a.name, a.lit})
			}
		}
	}
	m.wrong = wrong
	slices.Sort(pointers)
	if len(pointers) > 0 {
		return writ.MissingProvenance, pointers
	}
	if !decides {
		pointers = append(pointers, "")
	}
	pointers = append(pointers, shut...)
	if len(pointers) > 0 {
		slices.Sort(pointers)
		return writ.PolicyViolation, slices.Compact(pointers)
	}
	return "", nil
}

// decided folds one decision in.
func (m *model) decided(server, tool string, args []mArg, code writ.Code, pointers []string) (labels []writ.Label) {
	act := strings.HasSuffix(tool, "put") || strings.HasSuffix(tool, "make") || strings.HasSuffix(tool, "reply")
	for _, a := range args {
		l := m.label(a.lit)
		if a.name == "word" && (a.lit == `"alpha"` || a.lit == `"beta77"`) {
			l = writ.Operator
		} else if m.typedFor(tool, a.lit, a.name) && (a.name != "word" || !act) {
			l = writ.User
		} else if act && code == "" {
			l = writ.System // vouched, of small space or not
		}
		labels = append(labels, l)
	}
	if code == "" {
		for i, a := range args {
			if act {
				m.made = append(m.made, a.lit)
			}
			if labels[i] < writ.System {
				m.sent = append(m.sent, mSent{server, act, mNarrow(a.lit), a.lit, labels[i]})
			}
		}
		return labels
	}
	if code == writ.MissingProvenance {
		m.guesses = append(m.guesses, m.wrong...)
	}
	return labels
}

type mLeaf struct{ field, lit string }

func (m *model) observe(server, tool string, args []mArg, labels []writ.Label, leaves []mLeaf) {
	lowest := writ.Operator
	decides := writ.Operator
	for i, a := range args {
		if !mNarrow(a.lit) {
			lowest = min(lowest, labels[i])
		}
		decides = min(decides, labels[i])
	}
	var facts []mFact
	for _, l := range leaves {
		f := mFact{lit: l.lit, tool: tool, label: writ.External}
		switch {
		case l.field == "users":
			f.label, f.collection, f.named = writ.System, "user", true
		case l.field == "mails" && tool == "a/list":
			f.label, f.collection, f.named = writ.System, "mail", true
		case l.field == "from" && tool == "a/list":
			f.label, f.collection, f.named = writ.Party, "user", true
		}
		switch {
		case tool == "a/all" && f.named: // authoritative
		case tool == "a/make" && f.named:
			f.label = min(f.label, decides, m.repeats(args, labels, f))
		case tool == "a/make":
			f.label = min(f.label, writ.External)
		default:
			f.label = min(f.label, lowest, m.reflection(server, l.lit, f.collection), m.repeats(args, labels, f))
			for i, a := range args {
				if mNarrow(a.lit) && mEqual(a.lit, l.lit) {
					f.label = min(f.label, labels[i])
				}
			}
		}
		facts = append(facts, f)
	}
	for _, f := range facts {
		known := slices.ContainsFunc(m.facts, func(g mFact) bool { return mEqual(g.lit, f.lit) }) ||
			slices.ContainsFunc(m.made, func(lit string) bool { return mEqual(lit, f.lit) })
		if f.named && f.label >= writ.System && tool != "a/make" && !known {
			m.guesses = slices.DeleteFunc(m.guesses, func(g mGuess) bool { return g.collection == f.collection })
		}
	}
	m.facts = append(m.facts, facts...)
}

// TestModel compares Decide with the model over random sessions (P01, P04, P07,
// P08, P11, P13, P16).
func TestModel(t *testing.T) {
	policy, catalogue := newWorld(t, modelPolicy, modelTools)
	literals := []string{`"bobby"`, `"carol-long"`, `"say bobby now"`, `"x1"`, `"123456"`, `"12345"`, `"123456789"`, `"no 123456789"`, `"alpha"`, `"beta77"`,
		"7", "1000000", "1e6", "1000000.0", "9007199254740993", "9007199254740992", "-0", "0", "true", "false", "null", `""`, "[]", "{}", `"Bobby"`}
	rapid.Check(t, func(t *rapid.T) {
		s := gate.NewSession("s_model", [32]byte{7}, provenance.Caps{})
		m := &model{}
		lit := rapid.SampledFrom(literals)
		fields := map[string][]string{
			"a/list": {"q", "on"}, "a/all": {"q"}, "b/list": {"q"}, "a/put": {"user", "mail", "word"}, "a/make": {"user"}, "b/reply": {"mail", "user"},
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "turn") == 0 {
				words := rapid.SliceOfN(rapid.SampledFrom([]string{"bobby", "carol-long", "say bobby now", "123456", "12345", "1e6", "1000000.0",
					"9007199254740993", "Bobby", "alpha", "beta77", "x1", "true", "null"}), 1, 3).Draw(t, "words")
				o := s.Turn(s.Next(), []byte(strings.Join(words, " ")), time.Unix(0, 0))
				if !o.Admissible {
					t.Fatalf("a turn of %q: %+v", words, o)
				}
				s.Commit(o)
				m.turns = append(m.turns, strings.Join(words, " "))
			}
			tool := rapid.SampledFrom([]string{"a/list", "a/list", "b/list", "a/all", "a/put", "a/make", "b/reply"}).Draw(t, "tool")
			server, name, _ := strings.Cut(tool, "/")
			var args []mArg
			for _, f := range fields[tool] {
				if !rapid.Bool().Draw(t, "given") {
					continue
				}
				l := lit.Draw(t, f)
				if f == "on" {
					l = "true"
				}
				args = append(args, mArg{f, l})
			}
			wantCode, want := m.decide(tool, args)
			d := gate.Decide(gate.Input{Policy: policy, Catalogue: catalogue, Session: s, Time: time.Unix(0, 0),
				Call: gate.Call{Server: server, Tool: name, Arguments: strictjson.Of([]byte(mCall(args)))}})
			var gotCode writ.Code
			var got []string
			if r := d.Outcome.Rejection; r != nil {
				gotCode = r.Code
				for _, f := range r.Failures {
					got = append(got, f.Pointer)
				}
				got = slices.Compact(got)
			}
			if gotCode != wantCode || !slices.Equal(got, want) || d.Allowed() != (wantCode == "") {
				t.Fatalf("%s %s: got %q %v, the model says %q %v", tool, mCall(args), gotCode, got, wantCode, want)
			}
			s.Decided(&d)
			labels := m.decided(server, tool, args, wantCode, want)
			if wantCode != "" {
				continue
			}
			var leaves []mLeaf
			result := map[string][]string{}
			var order []string
			for range rapid.IntRange(0, 4).Draw(t, "leaves") {
				f := rapid.SampledFrom([]string{"users", "users", "mails", "from", "other"}).Draw(t, "field")
				l := lit.Draw(t, "leaf")
				if result[f] == nil {
					order = append(order, f)
				}
				result[f] = append(result[f], l)
			}
			var b []string
			for _, f := range order {
				for _, l := range result[f] {
					leaves = append(leaves, mLeaf{f, l})
				}
				b = append(b, fmt.Sprintf("%q:[%s]", f, strings.Join(result[f], ",")))
			}
			body := `{"structuredContent":{` + strings.Join(b, ",") + `}}`
			if order == nil {
				leaves = append(leaves, mLeaf{"", "{}"}) // an empty object is a leaf
			}
			status := gate.OK
			if name == "put" || name == "reply" || rapid.IntRange(0, 9).Draw(t, "fails") == 0 {
				status = gate.Unknown
			}
			o := s.Observe(&d, gate.Result{Evidence: s.Next(), Status: status, Value: strictjson.Of([]byte(body))})
			s.Commit(o)
			if o.Admissible != (status == gate.OK) || status == gate.OK && o.Facts != len(leaves) {
				t.Fatalf("%s: %+v, the model counts %d", body, o, len(leaves))
			}
			if status == gate.OK {
				m.observe(server, tool, args, labels, leaves)
			}
		}
	})
}

package provenance

import (
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// scenario is one file of testdata/scenario: what a session saw, in order, and
// what then vouches. A case is added there without touching Go.
type scenario struct {
	ID     string // an attack of docs/attacks.md, or the rule
	About  string
	Closed []string // closed collections
	Leaves int      // cap, 0: the default
	Rules  map[string][]ruleText
	Steps  []action
}

type ruleText struct {
	At            *string
	Block         *int // text block instead of structuredContent
	Extract       Extract
	Pattern       string
	Pointer       string
	Join          string
	Label         writ.Label
	Type          Type
	Collection    string
	Authoritative bool
	Keys          bool
	Secret        bool
	Creates       bool
	Owner         string
}

type action struct {
	// One of: a call with a result, a call only sent, a question.
	Call string
	Sent string
	Find *queryText
	Join *queryText
	Seen string

	// of a call
	Act       bool
	Failed    bool // an error, a refusal, a cut or unknown result
	Args      []argText
	Arguments string
	Result    string
	Voided    []string // rules whose extraction must fail
	Full      bool     // the cap must refuse it

	// of a question
	Want      writ.Reason // "" vouched
	No        bool        // for seen
	From      string      // pointer, line and inner pointer of the best origin
	Label     *writ.Label
	Contested bool
}

type argText struct {
	JSON    string
	Type    Type
	Label   writ.Label
	Narrow  bool
	Decides bool
}

type queryText struct {
	JSON       string
	Type       Type
	Collection string
	Server     string
	Tool       string
	At         *string
	Authority  bool
	Target     bool
	Strict     bool
	Owners     []string
}

func mustPattern(t testing.TB, s string) Pattern {
	t.Helper()
	p, err := ParsePattern(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (r ruleText) compile(t testing.TB) OutputRule {
	o := OutputRule{
		Extract: r.Extract, Label: r.Label, Type: r.Type, Collection: r.Collection,
		Authoritative: r.Authoritative, Keys: r.Keys, Secret: r.Secret, Creates: r.Creates,
		Pointer: mustPattern(t, r.Pointer),
	}
	if r.At != nil {
		o.At = mustPattern(t, *r.At)
	}
	if r.Block != nil {
		o.InText, o.Block = true, *r.Block
	}
	if r.Pattern != "" {
		o.Pattern = regexp.MustCompile(r.Pattern)
	}
	if r.Join != "" {
		o.HasJoin, o.Join = true, mustPattern(t, r.Join).Tokens
	}
	if r.Owner != "" {
		o.HasOwner, o.Owner = true, mustPattern(t, r.Owner).Tokens
	}
	return o
}

func (q queryText) compile(t testing.TB, closed []string) Query {
	out := Query{
		Value: strictjson.Of([]byte(q.JSON)), Type: q.Type, Collection: q.Collection, Server: q.Server, Tool: q.Tool,
		Authority: q.Authority, Target: q.Target, Strict: q.Strict,
		Closed: func(c string) bool { return slices.Contains(closed, c) },
	}
	if q.At != nil {
		out.At, out.HasAt = mustPattern(t, *q.At), true
	}
	for _, o := range q.Owners {
		out.Owners = append(out.Owners, []byte(o))
	}
	return out
}

func TestScenarios(t *testing.T) {
	files, _ := filepath.Glob("testdata/scenario/*.yaml")
	covered := map[string]bool{}
	for _, file := range files {
		var all []scenario
		load(t, file, &all)
		for _, s := range all {
			for id := range strings.FieldsSeq(s.ID) {
				covered[id] = true
			}
			t.Run(s.ID+" "+s.About, func(t *testing.T) { s.run(t) })
		}
	}
	for _, id := range strings.Fields("P01 P02 P03 P04 P06 P08 P09 P10 P12 P13 P14 P23 D04 R3 R4 R5 R8 R13 R20 R24 R25 R28 R33 3.1 STTI-001") {
		if !covered[id] {
			t.Errorf("no scenario names %s", id)
		}
	}
}

func (s scenario) run(t *testing.T) {
	rules := map[string][]OutputRule{}
	for tool, rs := range s.Rules {
		for _, r := range rs {
			rules[tool] = append(rules[tool], r.compile(t))
		}
	}
	l := NewLedger([32]byte{1}, Caps{Leaves: s.Leaves})
	for i, st := range s.Steps {
		switch {
		case st.Call != "":
			s.call(t, l, i, st, rules[st.Call])
		case st.Sent != "":
			server, tool, _ := strings.Cut(st.Sent, "/")
			l.Sent(server, tool, st.Act, args(st.Args))
		case st.Find != nil:
			a := l.Find(st.Find.compile(t, s.Closed))
			if a.Reason != st.Want || a.Contested != st.Contested {
				t.Errorf("step %d: find %s: reason %q, contested %v", i+1, st.Find.JSON, a.Reason, a.Contested)
			}
			if st.Label != nil && a.Label != *st.Label {
				t.Errorf("step %d: find %s: label %v", i+1, st.Find.JSON, a.Label)
			}
			if (a.Reason == "") != (len(a.Vouched) > 0) {
				t.Errorf("step %d: reason %q beside %d origins", i+1, a.Reason, len(a.Vouched))
			}
			origin(t, i, st.From, a.Vouched)
		case st.Join != nil:
			j := l.FindJoin(st.Join.compile(t, s.Closed))
			if j.Reason != st.Want {
				t.Errorf("step %d: join %s: reason %q", i+1, st.Join.JSON, j.Reason)
			}
			origin(t, i, st.From, append(slices.Clone(j.Dir), j.Name...))
		case st.Seen != "":
			if _, ok := l.Seen(strictjson.Of([]byte(st.Seen))); ok == st.No {
				t.Errorf("step %d: seen %s: %v", i+1, st.Seen, ok)
			}
		default:
			t.Fatalf("step %d says nothing", i+1)
		}
	}
}

func (s scenario) call(t *testing.T, l *Ledger, i int, st action, rules []OutputRule) {
	for _, text := range []string{st.Result, st.Arguments} {
		if text != "" {
			if err := strictjson.Check([]byte(text), strictjson.Limits{}); err != nil {
				t.Fatalf("step %d: %v in %s", i+1, err, text)
			}
		}
	}
	server, tool, _ := strings.Cut(st.Call, "/")
	own := l.Sent(server, tool, st.Act, args(st.Args))
	x := Extraction(rules, strictjson.Of([]byte(st.Result)), strictjson.Of([]byte(st.Arguments)))
	if !slices.Equal(x.Voided, st.Voided) {
		t.Errorf("step %d: voided %q, want %q", i+1, x.Voided, st.Voided)
	}
	p, err := l.Prepare(Observation{
		Evidence: uint32(i + 1), Server: server, Tool: tool, Act: st.Act, OK: !st.Failed,
		Args: args(st.Args), Leaves: x.Leaves, OwnPlace: own,
	})
	if errors.Is(err, ErrFull) != st.Full {
		t.Fatalf("step %d: prepare: %v", i+1, err)
	}
	if err == nil {
		if err := l.Commit(p); err != nil {
			t.Fatal(err)
		}
	}
}

func args(in []argText) (out []Arg) {
	for _, a := range in {
		out = append(out, Arg{Value: strictjson.Of([]byte(a.JSON)), Type: a.Type, Label: a.Label, Narrow: a.Narrow, Decides: a.Decides})
	}
	return out
}

// origin compares where the origins stand: "ev1 /structuredContent/x#2", one
// after the other, for as many as are named.
func origin(t *testing.T, i int, want string, got []Fact) {
	t.Helper()
	if want == "" {
		return
	}
	var all []string
	for _, f := range got {
		one := writ.EvidenceID{Number: f.Evidence}.String() + f.Pointer
		if f.Line > 0 {
			one += "#" + strconv.Itoa(f.Line)
		}
		if f.Inner != "" {
			one += "!" + f.Inner
		}
		all = append(all, one)
	}
	if s := strings.Join(all, " "); s != want {
		t.Errorf("step %d: stands at %s, want %s", i+1, s, want)
	}
}

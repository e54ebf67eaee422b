package memory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/quote"
	"github.com/writ-project/writ/internal/snapshot"
)

// A script is a file of testdata/cases: what happens to a memory, a line each,
// and behind each a line "-> …" with what came of it.
//
//	mode hardened         (default) or local
//	policy OLD => NEW     the built-in policy, changed, before anything else
//	at 12                 hours since the beginning
//	who alice s1 t1       principal, session, task; alice s1 t1 is the default
//	numbers as seen       evidence is numbered when it is seen, else when it is first recorded
//	widened                what a proposal crops out of what it saw is kept with the sentences beside it
//	seen ev1 system files/read_file TEXT    what Writ saw; a class may stand behind the label: external:web
//	says LABEL | TEXT | VALUE | ABOUT       what a fact with that value is worth, in a memory that has seen this alone
//	screen block, secret VALUE              what the server says of the proposals to come
//	operator COMMAND {…}
//	TOOL {…}
//	repeat 60 TOOL {…}    {i} counts; the outcome is the last one's
//	envelope {…}          ParseProposal
//	explain|get|timeline ID, answer SUBJECT PREDICATE [QUALIFIERS], pending
//	recall WORDS [| {"About":"Anna"}]
//	asof 12, now          what the reads are of
//	show ID               the state of a proposition, or a row of another table
//
// $prop2 is the second proposition that was made, and so on.
type script struct {
	t        testing.TB
	s        *State
	log      []record
	c        Context
	zero     time.Time
	evidence []seen
	reasons  map[writ.Reason]bool
	rules    map[string]bool
	made     map[string][]string
	gone     map[uint64]bool // records whose values were erased
	checked  int
	number   map[int]int // of evidence, from when it is first recorded
	asSeen   bool        // or from when it is seen
	widened  bool
	asOf     time.Time
}

func (x *script) reader() *Reader {
	x.begin()
	return &Reader{State: x.s, Principal: x.c.Principal, Now: x.c.Now, AsOf: x.asOf}
}

type record struct {
	event []byte
	value []byte
}

type seen struct {
	ref, source, text string
	label             writ.Label
	class             TrustClass
}

func newScript(t testing.TB) *script {
	zero := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	return &script{t: t, s: New(), zero: zero, reasons: map[writ.Reason]bool{}, rules: map[string]bool{}, made: map[string][]string{}, gone: map[uint64]bool{}, number: map[int]int{},
		c: Context{Namespace: "main", Mode: Hardened, Principal: "alice", Session: "s1", Task: "t1", Now: zero}}
}

// begin opens the namespace if the script has not.
func (x *script) begin() {
	if x.c.Policy == nil {
		x.c.Policy = Builtin()
	}
	if x.s.Head() == 0 {
		x.operate(CommandOpen, []byte("{}"))
	}
}

func (x *script) operate(command string, args []byte) Decision {
	c := x.c
	c.Principal = "root"
	d := Operate(x.s, c, command, args)
	x.apply(d)
	return d
}

func (x *script) propose(tool string, payload []byte) Decision {
	p := writ.Proposal{ToolName: tool, Payload: payload}
	c := x.c
	c.Exposed = slices.ContainsFunc(x.evidence, func(e seen) bool { return e.label < writ.User })
	if cite, ok := Cites(p); ok {
		for i := len(x.evidence) - 1; i >= 0; i-- {
			e := x.evidence[i]
			if holds := strings.Contains(e.text, cite.Raw); holds || cite.Ref == e.ref {
				if x.number[i] == 0 && (cite.Ref == "" && len(c.Captured) == 0 || cite.Ref == e.ref) {
					x.number[i] = len(x.number) + 1 // it was seen just now
				}
				c.Captured = append(c.Captured, Captured{Ref: e.ref, Evidence: fmt.Sprintf("s_one/ev%d", x.number[i]), Seen: uint64(x.number[i]), Label: e.label, Class: e.class, Source: e.source, Verbatim: holds, Whole: holds && wholeIn(e.text, cite.Raw)})
				if e.label == writ.User {
					c.Captured[len(c.Captured)-1].Offset = max(0, strings.Index(e.text, cite.Raw))
				}
				if x.widened && holds {
					c.Captured[len(c.Captured)-1].Text = quote.Widened(e.text, cite.Raw)
				}
				if tool == ToolRemember && holds {
					last := &c.Captured[len(c.Captured)-1]
					last.Text, last.Value, last.Whole, last.Offset = e.text, []byte(mustJSON(x.t, cite.Raw)), true, 0
				}
			}
		}
	}
	before := x.s.Digest()
	d := Handle(x.s, c, p)
	if x.s.Digest() != before {
		x.t.Fatal("Handle changed the state")
	}
	if again := Handle(x.s, c, p); fmt.Sprint(mustJSON(x.t, again.Event)) != fmt.Sprint(mustJSON(x.t, d.Event)) || !bytes.Equal(again.Value, d.Value) {
		x.t.Fatal("Handle decided twice, and not the same")
	}
	x.apply(d)
	return d
}

// told remembers a fact.
func (x *script) told(fact, about string) Decision {
	x.begin()
	return x.propose(ToolRemember, []byte(mustJSON(x.t, map[string]string{"text": fact, "about": about})))
}

// wholeIn reports whether a span stands between other tokens of a text.
func wholeIn(text, span string) bool {
	i := strings.Index(text, span)
	return edge(text[:i], true) && edge(text[i+len(span):], false)
}

func (x *script) apply(d Decision) {
	if d.Event == nil {
		return
	}
	for _, e := range d.Event.Effects {
		x.rules[e.Effect] = true
	}
	for _, o := range d.Event.Ops {
		switch {
		case o.Observation != nil:
			x.made["obs"] = append(x.made["obs"], o.Observation.ID)
		case o.Entity != nil:
			x.made["ent"] = append(x.made["ent"], o.Entity.ID)
		case o.Proposition != nil:
			x.made["prop"] = append(x.made["prop"], o.Proposition.ID)
		case o.Episode != nil:
			x.made["epi"] = append(x.made["epi"], o.Episode.ID)
		case o.Test != nil:
			x.made["test"] = append(x.made["test"], o.Test.ID)
		case o.Erase != nil:
			for _, n := range o.Erase.Records {
				x.gone[n] = true
			}
		}
	}
	for _, c := range d.Outcome.Transitions {
		x.rules[string(c.Rule)] = true
	}
	for _, a := range d.Outcome.Advisories {
		x.rules[a.Effect] = true
	}
	if d.Event.Reason != "" {
		x.reasons[d.Event.Reason], x.rules[string(d.Event.Reason)], x.rules[d.Outcome.Rule] = true, true, true
		for _, f := range d.Outcome.Rejection.Failures {
			for _, m := range regexp.MustCompile(`rule ([a-z_.]+)`).FindAllStringSubmatch(f.Need, -1) {
				x.rules[m[1]] = true
			}
		}
	}
	b, err := d.Event.Bytes()
	if err != nil {
		x.t.Fatal(err)
	}
	e, err := ParseEvent(b)
	if err != nil {
		x.t.Fatalf("%s: %v", b, err)
	}
	if checked, err := Recheck(x.s, x.c.Policy, e, d.Value); err != nil {
		x.t.Errorf("%s %s: %v", b, d.Value, err)
	} else if checked {
		x.checked++
	}
	if err := x.s.Apply(e, d.Value); err != nil {
		x.t.Fatalf("%s: %v", b, err)
	}
	x.log = append(x.log, record{b, d.Value})
	switch { // how a state is held changes no answer
	case e.N%7 == 0:
		x.s = reopened(x.t, x.s)
	case e.N%3 == 0:
		x.s.pack()
	}
}

// reopened is a state that was stored and read again.
func reopened(t testing.TB, s *State) *State {
	t.Helper()
	var b bytes.Buffer
	if err := snapshot.Encode(&b, s.Clone()); err != nil {
		t.Fatal(err)
	}
	again := New()
	if err := snapshot.Decode(b.Bytes(), again); err != nil || again.Digest() != s.Digest() {
		t.Fatalf("what was stored is another state: %v", err)
	}
	return again
}

// replay folds a log again, without the values of the records named.
func replay(t testing.TB, log []record, erased map[uint64]bool) *State {
	t.Helper()
	s := New()
	for _, r := range log {
		e, err := ParseEvent(r.event)
		if err != nil {
			t.Fatal(err)
		}
		v := r.value
		if erased[e.N] {
			v = nil
		}
		if err := s.Apply(e, v); err != nil {
			t.Fatalf("event %d: %v", e.N, err)
		}
	}
	return s
}

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var ordinals = regexp.MustCompile(`\$(obs|ent|prop|test|epi)([0-9]+)`)

// filled is a line with the ids that its ordinals stand for.
func (x *script) filled(l string) string {
	return ordinals.ReplaceAllStringFunc(l, func(m string) string {
		p := ordinals.FindStringSubmatch(m)
		if n, _ := strconv.Atoi(p[2]); n > 0 && n <= len(x.made[p[1]]) {
			return x.made[p[1]][n-1]
		}
		return p[1] + "_999"
	})
}

// line does one line of a script and returns what came of it.
func (x *script) line(l string) string {
	l = x.filled(l)
	word, rest, _ := strings.Cut(l, " ")
	f := strings.Fields(rest)
	switch word {
	case "mode":
		x.c.Mode = Mode(rest)
		return ""
	case "at":
		h, err := strconv.ParseFloat(rest, 64)
		if err != nil {
			x.t.Fatal(err)
		}
		x.c.Now = x.zero.Add(time.Duration(h * float64(time.Hour)))
		return ""
	case "who":
		x.c.Principal, x.c.Session, x.c.Task = f[0], f[1], f[2]
		return ""
	case "explain":
		r := x.reader()
		e, ok := r.Explain(rest)
		if !ok {
			return "nothing"
		}
		return mustJSON(x.t, e)
	case "get":
		r := x.reader()
		rec, ok := r.Get(rest)
		if !ok {
			return "nothing"
		}
		return mustJSON(x.t, rec)
	case "answer":
		r := x.reader()
		a := r.Answer(x.s.SlotOf(f[0], f[1], []byte(strings.Join(f[2:], " "))))
		out := string(a.Abstention)
		for _, v := range a.Values {
			out += " " + v.ID + " " + string(v.Standing.Status)
			if v.Quote != nil {
				out += " " + v.Quote.Text
			}
			if v.Object != nil {
				out += " [" + v.Object.Value + " " + v.Object.Label.String() + " " + mustJSON(x.t, v.Object.Origins) + "]"
			}
		}
		return strings.TrimSpace(out)
	case "timeline":
		r := x.reader()
		t := r.Timeline(f[0], 0, 100)
		out := ""
		for _, m := range t.Moments {
			out += fmt.Sprintf(" %d %s %s;", m.Record, m.What, strings.TrimSpace(m.ID+" "+m.Other+" "+string(m.State)))
		}
		return strings.TrimSpace(out + map[bool]string{true: " more"}[t.More])
	case "pending":
		r := x.reader()
		return mustJSON(x.t, r.Pending(x.c.Session, x.c.Task, 10))
	case "recall":
		var q Ask
		asked, opts, _ := strings.Cut(rest, "| ")
		if opts != "" {
			if err := json.Unmarshal([]byte(opts), &q); err != nil {
				x.t.Fatal(err)
			}
		}
		q.Query = strings.TrimSpace(asked)
		r := x.reader()
		res := r.Recall(q)
		out := ""
		for _, f := range res.Items {
			out += fmt.Sprintf(" %s %s %q", f.ID, f.Trust, f.Text)
			for _, t := range []string{f.About, f.Value, f.Note, f.FoundBy} {
				if t != "" {
					out += " [" + t + "]"
				}
			}
			out += ";"
		}
		for _, w := range res.HeldBack {
			out += fmt.Sprintf(" held back %d %s;", w.Count, w.Reason)
		}
		if out += " " + string(res.Abstention); res.Abstention != "" && res.More != "" {
			out += ": " + res.More
		}
		if res.Note != "" {
			out += " (" + res.Note + ")"
		}
		return strings.TrimSpace(out)
	case "asof":
		h, err := strconv.ParseFloat(rest, 64)
		if err != nil {
			x.t.Fatal(err)
		}
		x.asOf = x.zero.Add(time.Duration(h * float64(time.Hour)))
		return ""
	case "now":
		x.asOf = time.Time{}
		return ""
	case "seen":
		label, class, _ := strings.Cut(f[1], ":")
		l, err := writ.ParseLabel(label)
		if err != nil {
			x.t.Fatal(err)
		}
		x.evidence = append(x.evidence, seen{f[0], f[2], strings.TrimPrefix(rest, strings.Join(f[:3], " ")+" "), l, TrustClass(class)})
		if x.asSeen {
			x.number[len(x.evidence)-1] = len(x.number) + 1
		}
		return ""
	case "says":
		p := strings.Split(rest, " | ")
		y := newScript(x.t)
		y.line("seen ev1 " + p[0] + " src " + strings.ReplaceAll(p[1], "⏎", "\n"))
		d := y.told(p[2], p[3])
		if d.Outcome.Kept == nil {
			return tell(d)
		}
		return string(y.s.standing(d.Outcome.Kept.ID, 0).Status)
	case "widened":
		x.widened = true
		return ""
	case "numbers": // as seen: and not as first recorded
		x.asSeen = true
		return ""
	case "screen":
		x.c.Screened = Screening(strings.TrimSuffix(rest, "none"))
		return ""
	case "secret":
		x.c.Secrets = append(x.c.Secrets, rest)
		return ""
	case "show":
		x.begin()
		return x.show(rest)
	case "envelope":
		p, r := ParseProposal([]byte(rest))
		if r != nil {
			x.reasons[r.Reason] = true
			return "rejected " + string(r.Code) + " " + string(r.Reason)
		}
		return "proposal " + p.ToolName + " " + string(p.Payload)
	case "policy":
		from, to, _ := strings.Cut(rest, " => ")
		x.c.Policy = changedPolicy(x.t, from, to)
		return ""
	case "operator":
		command, args, _ := strings.Cut(rest, " ")
		if command == CommandOpen && x.c.Policy == nil {
			x.c.Policy = Builtin()
		} else if command != CommandOpen {
			x.begin()
		}
		return tell(x.operate(command, []byte(args)))
	case "repeat":
		n, err := strconv.Atoi(f[0])
		if err != nil {
			x.t.Fatal(err)
		}
		out := ""
		for i := range n {
			out = x.line(strings.ReplaceAll(strings.TrimPrefix(rest, f[0]+" "), "{i}", strconv.Itoa(i+1)))
		}
		return out
	}
	x.begin()
	return tell(x.propose(word, []byte(rest)))
}

// tell is an outcome in one line.
func tell(d Decision) string {
	o := d.Outcome
	out := string(o.Status)
	if k := o.Kept; k != nil {
		out += fmt.Sprintf(" %s %s %q, %s", k.ID, k.Trust, k.Quote, k.Why)
	}
	if o.Rejection != nil {
		out += " " + string(o.Rejection.Code) + " " + string(o.Rejection.Reason)
		for _, f := range o.Rejection.Failures {
			out += " " + f.Pointer
		}
		if o.Rule != "" {
			out += " | " + o.Rule
		}
	}
	list := func(name string, es []Effect) {
		for i, e := range es {
			if i == 0 {
				out += " " + name
			}
			out += " " + strings.TrimSpace(e.Effect+" "+e.ID) + ";"
		}
	}
	list("|", o.Effects)
	list("| advice", o.Advisories)
	for i, c := range o.Transitions {
		if i == 0 {
			out += " |"
		}
		out += fmt.Sprintf(" %s %s>%s %s;", c.Proposition, c.Prior, c.Next, c.Rule)
	}
	return strings.TrimRight(strings.TrimSuffix(out, ";"), " ")
}

func (x *script) show(id string) string {
	switch prefix, _, _, _ := splitID(id); prefix {
	case "prop":
		if x.s.propositions.get(id) == nil {
			return "nothing"
		}
		r := x.reader()
		st := x.s.standing(id, r.upTo())
		x.rules[string(st.Rule)] = true
		return mustJSON(x.t, st)
	case "obs":
		return mustJSON(x.t, x.s.observations.get(id))
	case "ent":
		return mustJSON(x.t, x.s.entities.get(id))
	case "test":
		return mustJSON(x.t, x.s.tests.get(id))
	case "epi":
		return mustJSON(x.t, x.s.episodes.get(id))
	case "dec":
		return mustJSON(x.t, x.s.decided.get(id))
	}
	x.t.Fatalf("show %s", id)
	return ""
}

// TestCases runs the scripts. With -update it writes what came of each line
// into them, for a person to read.
func TestCases(t *testing.T) {
	files, _ := filepath.Glob("testdata/cases/*.txt")
	if len(files) == 0 {
		t.Fatal("the cases were not found")
	}
	reasons, rules := map[writ.Reason]bool{}, map[string]bool{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			x := newScript(t)
			x.reasons, x.rules = reasons, rules
			var out strings.Builder
			var got string
			for n, l := range strings.Split(strings.TrimRight(string(b), "\n"), "\n") {
				switch {
				case strings.HasPrefix(l, "->"):
					if !*update && strings.TrimSpace(l[2:]) != got {
						t.Errorf("%s:%d:\n got %s\nwant %s", file, n+1, got, strings.TrimSpace(l[2:]))
					}
					got = ""
					continue
				case got != "" && !*update:
					t.Errorf("%s:%d: nothing is said of what came of the line before: %s", file, n+1, got)
				}
				out.WriteString(l + "\n")
				if l = strings.TrimSpace(l); l == "" || l[0] == '#' {
					continue
				}
				if got = x.line(l); got != "" && *update {
					out.WriteString("-> " + got + "\n")
				}
			}
			if got != "" && !*update {
				t.Errorf("%s: nothing is said of what came of the last line: %s", file, got)
			}
			if *update {
				if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if replay(t, x.log, nil).Digest() != x.s.Digest() {
				t.Error("the log does not fold to the same state")
			}
			if replay(t, x.log, x.gone).Digest() != x.s.Digest() {
				t.Error("without what was erased the log does not fold to the same state")
			}
		})
	}
	checkCovered(t, reasons, rules)
}

// checkCovered holds that each rule id and each reason a proposal to memory can
// be refused for has a case.
func checkCovered(t *testing.T, reasons map[writ.Reason]bool, rules map[string]bool) {
	if *update {
		return
	}
	// What the cases do not reach, and where it is tested instead.
	elsewhere := map[string]string{
		"payload.too_large": "TestTooLarge",
		"memory.policy":     "TestPolicyInForce",
	}
	of := func(file string, keep func(value string) bool) (out []string) {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok {
				for _, x := range v.Values {
					if lit, ok := x.(*ast.BasicLit); ok {
						if s, _ := strconv.Unquote(lit.Value); keep(s) {
							out = append(out, s)
						}
					}
				}
			}
			return true
		})
		return out
	}
	rulesOf := slices.AppendSeq(of("belief.go", func(s string) bool { return strings.HasPrefix(s, "belief.") }), maps.Values(ruled))
	for _, r := range rulesOf { // memory.r… too
		if !rules[r] {
			t.Errorf("no case comes to the rule %s", r)
		}
	}
	ours := of("../reasons.go", func(s string) bool {
		group, _, _ := strings.Cut(s, ".")
		switch group {
		case "memory", "context", "observation", "source", "entity", "proposition", "evidence", "test", "consolidation", "episode", "command":
			return true
		}
		return s == "name.unknown" || s == "direct.canonical_write" || group == "payload" ||
			s == "schema.unknown_field" || s == "schema.missing_field" || s == "schema.invalid"
	})
	if len(ours) < 30 {
		t.Errorf("only %d reasons were found", len(ours))
	}
	for _, r := range ours {
		if !reasons[writ.Reason(r)] && elsewhere[r] == "" {
			t.Errorf("no case is refused for %s", r)
		}
	}
}

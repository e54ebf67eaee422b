// Package learn proposes how a policy could grow, from what a log recorded: which field
// of which tool's results the agent passed on as which argument, how often, and what
// would have become of the same calls if the field had been accepted there.
//
// It is pure, and decides nothing. It learns where values come from, never who can write
// there: that is not in the records, and whoever wrote into them may be the one who wants
// to be believed. Each proposal is a question to a person, of one field, and without his
// answer it is worth nothing. What it shows names fields and counts, and holds no value
// of a session.
//
// What counts: a value that stood whole in a result of the session before the call, and
// that nobody had said before it stood there. What was told the tools first and came back
// is an echo; what anybody could guess (small numbers, truths, short words, what the
// schema lists), and what stands in many fields, comes from nowhere in particular; what
// the user typed needs no source. What is destroyed is named each time (R9), and free
// text, enums, controls and secrets are the operator's to open.
//
// What is proposed was tried: the gate judges every recorded call again by the grown
// policy, with nobody there to ask, and a field without which no call fewer passes is not
// asked about. It judges as well, in the place of each value that passes by a line, one
// that no tool returned and one of another field.
package learn

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// maxFields bounds the questions: who is asked more reads none.
const maxFields = 24

// Report is what is learned of some sessions.
type Report struct {
	Sessions int `json:"sessions"`
	// Elsewhere is how many sessions more called servers alone that the policy does not name.
	Elsewhere int `json:"elsewhere"`
	Calls     int `json:"calls"`
	// Away is how many calls more of these sessions went to such servers.
	Away int `json:"calls_elsewhere"`
	Trial
	// Later is After for the same work once more, in sessions that read back what these
	// calls sent (R38), and LaterGiven that, if of each field of which it can be said a
	// person says that the server alone gives it.
	Later      Count `json:"later"`
	LaterGiven Count `json:"later_given"`
	// Fields are the questions, the one that saves most first.
	Fields []Field `json:"fields"`
	// Unnamed are fields that arguments came from and no line can say: who wants them
	// accepted has to name them in the contract first.
	Unnamed []Field `json:"unnamed,omitempty"`
	// Redefined is how many calls of a tool were made under another definition than the one
	// that the policy pins: nothing is learned of them.
	Redefined map[string]int `json:"redefined,omitempty"`
	// Tools are the acts that were asked about or refused by the policy as it is, the one
	// that was most often first.
	Tools []Tool `json:"tools"`
}

// Trial is what becomes of recorded calls with nobody there to ask.
type Trial struct {
	// Before is by the policy as it is, After with the lines of all fields.
	Before Count `json:"before"`
	After  Count `json:"after"`
	// Invented are the calls that pass then, with a value no tool returned where one
	// passes by a line; Misplaced with one that a tool returned in another field.
	Invented  Control `json:"invented"`
	Misplaced Control `json:"misplaced"`
}

// Control counts calls that should not pass, and those of them that do.
type Control struct {
	Tried  int `json:"tried"`
	Passed int `json:"passed"`
}

// Tool is how often a tool was asked about.
type Tool struct {
	Tool string `json:"tool"` // server/tool
	Count
}

// Writers is what the name of a field says of who writes there. It is a guess, and no
// answer.
type Writers string

// The guesses.
const (
	WritersUnknown   Writers = "unknown"
	WritersStrangers Writers = "strangers" // it is called as prose or a name is
	WritersServer    Writers = "server"    // it is called as an identifier is
)

// Field is one question: a field of a tool's results, or a collection, and the arguments
// that would accept what stands there.
type Field struct {
	Tool       string  `json:"tool,omitempty"`    // server/tool
	Pointer    string  `json:"pointer,omitempty"` // as its contract writes it
	Collection string  `json:"collection,omitempty"`
	InText     bool    `json:"in_text,omitempty"` // of the JSON that the result's text is
	Given      bool    `json:"given,omitempty"`   // nothing that was seen there speaks against the server alone giving it
	Label      string  `json:"label,omitempty"`   // what the contract calls it, "" where it does not name it
	Writers    Writers `json:"writers,omitempty"`
	// Saves is how many more calls pass with it than with all others.
	Saves int    `json:"saves"`
	Feeds []Edge `json:"feeds"`
	// Why there is no line: text, unnamed, party, secret, prose.
	Why string `json:"why,omitempty"`
}

// Lines are those that would grow if a person says yes.
func (f *Field) Lines() (out []policy.Grown) {
	for _, e := range f.Feeds {
		out = policy.WithLine(out, e.Line)
	}
	return out
}

// GivenLines are the same where he says that the server alone gives what stands there; nil
// where nobody can, and where Lines say so already because less would not help.
func (f *Field) GivenLines() (out []policy.Grown) {
	for _, g := range f.Lines() {
		if g.Writes == policy.WritesOurs && f.Given {
			g.Writes = policy.WritesServer
			out = policy.WithLine(out, g)
		}
	}
	return out
}

// Edge is an argument that a field fed.
type Edge struct {
	Tool string `json:"tool"` // server/tool
	Arg  string `json:"arg"`  // its pointer, as the contract writes it
	Role string `json:"role"`
	// Seen of Of times the argument was given, and not as the user typed it, its value
	// stood in this field before, Alone of these in no other field, with Values different
	// ones.
	Seen   int `json:"seen"`
	Of     int `json:"of"`
	Alone  int `json:"alone"`
	Values int `json:"values"`
	// Also are other fields that the values stood in, at most three.
	Also []string     `json:"also,omitempty"`
	Line policy.Grown `json:"line"`
	// read says that the tool only reads: the line is worth something where what it
	// answers feeds an act.
	read bool
}

// From learns from sessions what a policy could grow by.
func From(p *policy.Policy, sessions []*Session) *Report {
	sessions, elsewhere := of(p, sessions)
	r := &Report{Sessions: len(sessions), Elsewhere: elsewhere, Fields: []Field{}, Tools: []Tool{}, Redefined: map[string]int{}}
	now := newRules(p)
	all := observed{at: map[slot]*given{}, closed: map[string]*Field{}}
	tools := map[string]Count{}
	for _, s := range sessions {
		for _, step := range s.Steps {
			if step.Call != nil && !step.Call.Again && away(p, step.Call) {
				r.Away++
			}
		}
		t := newTrail()
		before, _ := now.again(s, nil, func(i int, in *gate.Input, d *gate.Decision) {
			t.upTo(s, i, p)
			name := in.Call.Server + "/" + in.Call.Tool
			if redefined(s.Steps[i].Call, JudgedOf(d)) {
				r.Redefined[name]++
			}
			if !d.Allowed() {
				n := tools[name]
				n.add(d)
				tools[name] = n
			}
			all.call(t, in, d)
		})
		r.Before.plus(before)
	}
	r.Calls = r.Before.Passed + r.Before.Asked + r.Before.Refused
	for name, n := range tools {
		r.Tools = append(r.Tools, Tool{name, n})
	}
	slices.SortFunc(r.Tools, func(a, b Tool) int {
		return cmp.Or(cmp.Compare(b.Asked+b.Refused, a.Asked+a.Refused), strings.Compare(a.Tool, b.Tool))
	})
	var fields []Field
	fields, r.Unnamed = all.fields(p)
	r.Fields, r.After = settle(p, sessions, fields, r.Before)
	if more := onlyGiven(p, sessions, fields, r.Fields); len(more) > 0 {
		all := slices.Concat(r.Fields, more)
		if rules, ok := grown(p, all); ok && rules.all(sessions).Passed > r.After.Passed {
			r.Fields, r.After = settle(p, sessions, all, r.Before)
		}
	}
	r.controls(p, r.Fields, sessions)
	r.given(p, sessions)
	return r
}

// minting is which of some fields can be given by their server alone, of what was seen of
// them in sessions.
type minting struct {
	fields   []Field
	may, not []bool
}

func newMinting(fields []Field) *minting {
	return &minting{fields, make([]bool, len(fields)), make([]bool, len(fields))}
}

// take takes in one session, as it is at its end.
func (m *minting) take(s *gate.Session) {
	for i := range m.fields {
		f := &m.fields[i]
		server, tool, _ := strings.Cut(f.Tool, "/")
		rule := f.Pointer
		if f.InText {
			rule = "text/0" + rule
		}
		may, not := s.Mints(server, tool, rule)
		m.may[i], m.not[i] = m.may[i] || may, m.not[i] || not || f.Label != writ.External.String()
	}
}

func (m *minting) is(i int) bool { return m.may[i] && !m.not[i] }

// onlyGiven are those of some fields that are not kept because what acts sent lowered them
// (R38), and that a person may say are given by their server alone, with lines that say so.
func onlyGiven(p *policy.Policy, sessions []*Session, fields, kept []Field) (out []Field) {
	var rest []Field
	for _, f := range fields {
		if f.Label == writ.External.String() && !slices.ContainsFunc(kept, func(k Field) bool { return k.slot() == f.slot() }) {
			rest = append(rest, f)
		}
	}
	rules, ok := grown(p, fields)
	if !ok || len(rest) == 0 {
		return nil
	}
	m := newMinting(rest)
	for _, s := range sessions {
		_, after := rules.again(s, nil, nil)
		m.take(after)
	}
	for i, f := range rest {
		if !m.is(i) {
			continue
		}
		f.Given, f.Feeds = true, slices.Clone(f.Feeds)
		for k := range f.Feeds {
			f.Feeds[k].Line.Writes = policy.WritesServer
		}
		out = append(out, f)
	}
	return out
}

// given finds the fields of which a person may say that the server alone gives what stands
// there, and counts what the lines are worth afterwards.
func (r *Report) given(p *policy.Policy, sessions []*Session) {
	r.Later, r.LaterGiven = r.Before, r.Before
	rules, ok := grown(p, r.Fields)
	if !ok || len(r.Fields) == 0 {
		return
	}
	m := newMinting(r.Fields)
	r.Later = rules.later(sessions, m.take)
	for i := range r.Fields {
		r.Fields[i].Given = m.is(i)
	}
	r.LaterGiven = r.Later
	lines := linesOf(r.Fields, func(f *Field) []policy.Grown {
		if of := f.GivenLines(); of != nil {
			return of
		}
		return f.Lines()
	})
	if q, ok := p.With(lines); ok && slices.ContainsFunc(lines, func(g policy.Grown) bool { return g.Writes == policy.WritesServer }) {
		r.LaterGiven = newRules(q).later(sessions, func(*gate.Session) {})
	}
}

// Try judges sessions by a policy, and by it with the lines of some fields.
func Try(p *policy.Policy, fields []Field, sessions []*Session) (t Trial) {
	t.Before = newRules(p).all(sessions)
	t.After = t.Before
	if r, ok := grown(p, fields); ok {
		t.After = r.all(sessions)
	}
	t.controls(p, fields, sessions)
	return t
}

// grown is a policy with the lines of some fields.
func grown(p *policy.Policy, fields []Field) (*rules, bool) {
	q, ok := p.With(linesOf(fields, (*Field).Lines))
	if !ok {
		return nil, false
	}
	return newRules(q), true
}

// linesOf are lines of some fields, each once.
func linesOf(fields []Field, of func(*Field) []policy.Grown) (lines []policy.Grown) {
	for i := range fields {
		for _, g := range of(&fields[i]) {
			lines = policy.WithLine(lines, g)
		}
	}
	return lines
}

// settle keeps the fields without which fewer calls pass, the least first out, and of
// their lines for reads those, and says how many pass by all of them.
func settle(p *policy.Policy, sessions []*Session, fields []Field, before Count) (keep []Field, after Count) {
	passed := func(fields []Field) Count {
		r, ok := grown(p, fields)
		if !ok {
			return before
		}
		return r.all(sessions)
	}
	keep = fields
	if after = before; len(keep) > 0 {
		after = passed(keep)
	}
	for i := len(keep) - 1; i >= 0; i-- {
		less := slices.Delete(slices.Clone(keep), i, i+1)
		n := before
		if len(less) > 0 {
			n = passed(less)
		}
		if n.Passed >= after.Passed {
			keep, after = less, n
		} else {
			keep[i].Saves = after.Passed - n.Passed
		}
	}
	for i := range keep {
		for k := len(keep[i].Feeds) - 1; k >= 0 && len(keep[i].Feeds) > 1; k-- {
			all := keep[i].Feeds
			if !all[k].read {
				continue
			}
			keep[i].Feeds = slices.Delete(slices.Clone(all), k, k+1)
			if passed(keep).Passed < after.Passed {
				keep[i].Feeds = all
			}
		}
	}
	slices.SortStableFunc(keep, func(a, b Field) int { return cmp.Compare(b.Saves, a.Saves) })
	return append([]Field{}, keep...), after
}

// controls judges, where a call passes by a line, the same call with another value there:
// one that no tool returned, and one that stood in another field.
func (n *Trial) controls(p *policy.Policy, fields []Field, sessions []*Session) {
	rules, ok := grown(p, fields)
	if !ok || len(fields) == 0 {
		return
	}
	for _, s := range sessions {
		t := newTrail()
		rules.again(s, nil, func(i int, in *gate.Input, d *gate.Decision) {
			if t.upTo(s, i, p); d.Allowed() && d.Effect.Gated() {
				n.control(rules.policy, fields, t, in, d)
			}
		})
	}
}

// control is controls of one call that passes.
func (n *Trial) control(p *policy.Policy, fields []Field, t *trail, in *gate.Input, d *gate.Decision) {
	for _, leaf := range d.Traces {
		accepts := sources(p, fields, slot{in.Call.Server + "/" + in.Call.Tool, leaf.Pointer})
		if accepts == nil || leaf.Rule != "output" && leaf.Rule != "grown:output" {
			continue
		}
		v := in.Call.Arguments.At(leaf.Pointer)
		if other, ok := t.invented(v); ok {
			n.Invented.try(in, leaf.Pointer, other)
		}
		if other, ok := t.elsewhere(v, accepts); ok {
			n.Misplaced.try(in, leaf.Pointer, other)
		}
	}
}

// sources are the fields whose lines are of an argument, nil where none is. A collection
// stands for every field that its contracts give it.
func sources(p *policy.Policy, fields []Field, a slot) (out []slot) {
	rule := ruleOf(p.Contracts[a.tool], a.pointer)
	if rule == nil {
		return nil
	}
	for _, f := range fields {
		for _, e := range f.Feeds {
			switch {
			case e.Tool != a.tool:
			case f.Collection != "" && f.Collection == rule.Collection:
				out = append(out, placesOf(p, f.Collection)...)
			case e.Arg == rule.At.Source:
				out = append(out, f.slot())
			}
		}
	}
	return out
}

// placesOf are the fields that contracts give a collection.
func placesOf(p *policy.Policy, collection string) (out []slot) {
	for name, c := range p.Contracts {
		for _, o := range c.Outputs {
			if o.Collection != collection {
				continue
			}
			of := Field{Tool: name, Pointer: o.At.Source, InText: o.InText}
			if o.InText {
				of.Pointer = o.Pointer.Source
			}
			out = append(out, of.slot())
		}
	}
	return out
}

// try judges a call with another literal at one argument. What the user typed passes by
// his word, and is not tried.
func (n *Control) try(in *gate.Input, pointer string, literal []byte) {
	other := *in
	other.Call.Arguments = with(in.Call.Arguments, pointer, literal)
	d := decide(other)
	if slices.ContainsFunc(d.Traces, func(t gate.Trace) bool { return t.Pointer == pointer && strings.HasPrefix(t.Rule, "user") }) {
		return
	}
	if n.Tried++; d.Allowed() {
		n.Passed++
	}
}

// slot is an argument of a tool, or a field of its results.
type slot struct{ tool, pointer string }

func (s slot) String() string {
	return s.tool + "#" + strings.TrimPrefix(strings.TrimPrefix(s.pointer, textField), keyedField)
}

// given is what was seen of one argument, over all sessions.
type given struct {
	role  string
	read  bool
	of    int // times that it was given, not as the user typed it
	times []occurrence
}

// occurrence is one value that nothing vouched for, and the fields it stood in before.
type occurrence struct {
	value  string
	fields []slot
}

// observed is what was seen of all arguments.
type observed struct {
	at     map[slot]*given
	closed map[string]*Field // by collection
}

// vouched are the roles of arguments that a field can vouch for.
var vouched = []string{policy.Target.String(), policy.Selector.String(), policy.Amount.String(), policy.TimeRole.String()}

// call takes in one judged call.
func (o *observed) call(t *trail, in *gate.Input, d *gate.Decision) {
	name := in.Call.Server + "/" + in.Call.Tool
	if in.Look || d.Effect&policy.Delete != 0 || d.Tool == nil || d.Tool.Contract == nil ||
		in.Call.Method != policy.CallTool || d.Tool.Contract.CaseAt != nil || in.Call.Server == policy.OwnServer {
		return
	}
	if ask := d.Ask(); ask != nil {
		for _, v := range ask.Values {
			if len(v.Grows) > 0 && v.Grows[0].Closed != "" {
				o.open(name, &v)
			}
		}
	}
	for _, leaf := range d.Traces {
		v, path := in.Call.Arguments.At(leaf.Pointer), pathOf(leaf.Pointer)
		if !slices.Contains(vouched, leaf.Role) || strings.HasPrefix(leaf.Rule, "user") || trivial(v) || d.Tool.Schema().ListsValues(path) {
			continue
		}
		arg := general(leaf.Pointer)
		if rule := ruleOf(d.Tool.Contract, leaf.Pointer); rule != nil {
			arg = rule.At.Source
		}
		at := slot{name, arg}
		g := o.at[at]
		if g == nil {
			g = &given{role: leaf.Role, read: !d.Effect.Gated()}
			o.at[at] = g
		}
		if g.of++; leaf.Rule == "" {
			g.times = append(g.times, occurrence{keyOf(v), t.fieldsOf(v)})
		}
	}
}

// open takes in a value that only an open collection kept from passing (R28).
func (o *observed) open(tool string, v *gate.AskedValue) {
	g := v.Grows[0]
	f := o.closed[g.Closed]
	if f == nil {
		f = &Field{Collection: g.Closed, Writers: WritersUnknown}
		o.closed[g.Closed] = f
	}
	i := slices.IndexFunc(f.Feeds, func(e Edge) bool { return e.Tool == tool && e.Role == v.Role })
	if i < 0 {
		f.Feeds = append(f.Feeds, Edge{Tool: tool, Arg: general(v.Pointer), Role: v.Role, Line: g})
		i = len(f.Feeds) - 1
	}
	f.Feeds[i].Seen++
	f.Feeds[i].Of++
}

// tally is what speaks for a field as the source of an argument.
type tally struct {
	n, alone int
	values   map[string]bool
}

// fields are the fields that explain most of what nothing vouched for, each argument's
// best first until all that can be is explained. What no line can say stands apart.
func (o *observed) fields(p *policy.Policy) (named, unnamed []Field) {
	by := map[slot]*Field{}
	for _, at := range slices.SortedFunc(maps.Keys(o.at), compareSlots) {
		g := o.at[at]
		for left := g.times; len(left) > 0; {
			best, of := strongest(left)
			if best.tool == "" {
				break
			}
			var also []string
			left, also = without(left, best)
			if by[best] == nil {
				by[best] = fieldOf(p, best)
			}
			by[best].Feeds = append(by[best].Feeds, Edge{Tool: at.tool, Arg: at.pointer, Role: g.role, Seen: of.n, Of: g.of, Alone: of.alone, Values: len(of.values), Also: also, read: g.read})
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(by), compareSlots) {
		f := by[at]
		var can []Edge
		for _, e := range f.Feeds {
			if f.line(p, &e) {
				can = append(can, e)
			}
		}
		if f.Why == "" && len(can) > 0 {
			f.Feeds = can
			named = append(named, *f)
		} else if f.Why != "" {
			unnamed = append(unnamed, *f)
		}
	}
	for _, c := range slices.Sorted(maps.Keys(o.closed)) {
		slices.SortFunc(o.closed[c].Feeds, func(a, b Edge) int { return strings.Compare(a.Tool, b.Tool) })
		named = append(named, *o.closed[c])
	}
	most := func(a, b Field) int { return cmp.Compare(b.support(), a.support()) }
	slices.SortStableFunc(named, most)
	slices.SortStableFunc(unnamed, most)
	return named[:min(len(named), maxFields)], unnamed[:min(len(unnamed), maxFields)]
}

// without are the values that did not stand in a field, and other fields that the others stood in,
// at most three.
func without(times []occurrence, field slot) (rest []occurrence, also []string) {
	for _, x := range times {
		if !slices.Contains(x.fields, field) {
			rest = append(rest, x)
			continue
		}
		for _, other := range x.fields {
			if s := other.String(); other != field && !slices.Contains(also, s) && len(also) < 3 {
				also = append(also, s)
			}
		}
	}
	slices.Sort(also)
	return rest, also
}

// slot is where the trail keeps the field.
func (f *Field) slot() slot {
	if f.InText {
		return slot{f.Tool, textField + f.Pointer}
	}
	return slot{f.Tool, f.Pointer}
}

func (f *Field) support() (n int) {
	for _, e := range f.Feeds {
		n += e.Seen
	}
	return n
}

// strongest is the field in which most of the values stood, of several the one in which
// they stood alone more often. One value says nothing where it stood in several.
func strongest(times []occurrence) (best slot, of *tally) {
	all := map[slot]*tally{}
	for _, x := range times {
		for _, f := range x.fields {
			t := all[f]
			if t == nil {
				t = &tally{values: map[string]bool{}}
				all[f] = t
			}
			t.n++
			t.values[x.value] = true
			if len(x.fields) == 1 {
				t.alone++
			}
		}
	}
	for _, f := range slices.SortedFunc(maps.Keys(all), compareSlots) {
		t := all[f]
		if len(t.values) == 1 && t.alone == 0 {
			continue
		}
		if of == nil || cmp.Or(cmp.Compare(t.n, of.n), cmp.Compare(t.alone, of.alone)) > 0 {
			best, of = f, t
		}
	}
	return best, of
}

func compareSlots(a, b slot) int {
	return cmp.Or(strings.Compare(a.tool, b.tool), strings.Compare(a.pointer, b.pointer))
}

// fieldOf says of a field what its contract does.
func fieldOf(p *policy.Policy, at slot) *Field {
	f := &Field{Tool: at.tool, Pointer: at.pointer, Writers: writers(at.pointer)}
	if keyed, ok := strings.CutPrefix(at.pointer, keyedField); ok {
		f.Pointer, f.Why = keyed, "unnamed"
		return f
	}
	f.Pointer, f.InText = strings.CutPrefix(at.pointer, textField)
	o := outputOf(p.Contracts[at.tool], pathOf(f.Pointer), f.InText)
	switch {
	case o == nil && f.InText: // the line names it
		f.Label = writ.External.String()
	case o == nil:
		f.Why = "unnamed"
	case o.Secret:
		f.Why = "secret"
	case o.Label >= writ.System, o.Label == writ.External:
		f.Label = o.Label.String()
	default:
		f.Label, f.Why = o.Label.String(), o.Label.String()
	}
	return f
}

// line gives an edge its line, where the policy takes one.
func (f *Field) line(p *policy.Policy, e *Edge) bool {
	e.Line = policy.Grown{Tool: e.Tool, Arg: e.Arg, From: f.Tool + "#" + f.Pointer}
	if f.Label == writ.External.String() {
		if e.Line.Writes = policy.WritesOurs; f.InText {
			e.Line.In = policy.InText
		}
	}
	if f.Why != "" {
		return false
	}
	_, ok := p.With([]policy.Grown{e.Line})
	switch {
	case ok:
	case f.Writers == WritersStrangers:
		f.Why = "prose"
	case f.InText: // the contract takes that text apart otherwise, or believes it
		f.Why = "text"
	}
	return ok
}

// names of fields: what strangers write, and what servers number.
var (
	prosaic  = strings.Fields(`title name body text content description summary subject comment message snippet notes note label caption bio headline topic tag alias nickname username filename author query keyword reason status`)
	numbered = strings.Fields(`id ids uuid guid sha oid iid hash digest ts key number ref uri arn`)
)

// writers guesses by the last name of a pointer.
func writers(pointer string) Writers {
	p := strings.TrimRight(pointer, "/*")
	ws := text.NameWords(p[strings.LastIndexByte(p, '/')+1:])
	switch {
	case len(ws) == 0:
		return WritersUnknown
	case slices.ContainsFunc(ws, func(w string) bool { return slices.Contains(prosaic, w) }):
		return WritersStrangers
	case slices.Contains(numbered, ws[len(ws)-1]):
		return WritersServer
	}
	return WritersUnknown
}

// ruleOf is the contract's rule for an argument, nil where there is none.
func ruleOf(c *policy.Contract, pointer string) *policy.ArgRule {
	if c == nil {
		return nil
	}
	var best *policy.ArgRule
	path := pathOf(pointer)
	for i := range c.Args {
		if a := &c.Args[i]; a.At.Match(path) && (best == nil || a.At.Beats(best.At)) {
			best = a
		}
	}
	return best
}

// outputOf is the contract's rule for a leaf of structuredContent as it stands, or of the
// JSON that the first text is.
func outputOf(c *policy.Contract, path []string, inText bool) *provenance.OutputRule {
	if c == nil {
		return nil
	}
	at := func(o *provenance.OutputRule) provenance.Pattern {
		if inText {
			return o.Pointer
		}
		return o.At
	}
	var best *provenance.OutputRule
	for i := range c.Outputs {
		o := &c.Outputs[i]
		fits := !o.InText && o.Extract == provenance.NoExtract
		if inText {
			fits = o.InText && o.Block == 0 && o.Extract == provenance.ExtractJSON
		}
		if fits && !o.Keys && at(o).Match(path) && (best == nil || at(o).Beats(at(best))) {
			best = o
		}
	}
	return best
}

package gate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// # Approvals
//
// A call that fails only for want of a person may be put to one. He answers for one
// call, byte for byte: this tool, these arguments and what was answered inside it (R31),
// this session, this policy, to which lines may have been kept since. His
// yes stands for what each value of it lacked when he was asked, for ten minutes and
// once: what a value lacks beyond that when the call is made is another question. It
// makes no value worth anything to another call. Where the answer comes
// from is the door's to hold: never from the agent, nor from what it started.
//
// The verdict stays one of three. While nobody answered, a call is rejected with
// approval.pending, and can be made again.

// Asked says how far a call was put to a person.
type Asked string

// How far it was. NotAsked is that nobody is there to ask, or that nobody was yet, and
// that he said yes, which is on record. Refused is that he said no to this very call, which
// then does not pass, whatever came to vouch for it while he looked.
const (
	NotAsked Asked = ""
	Pending  Asked = "pending"
	Expired  Asked = "expired"
	Denied   Asked = "denied"
)

// ApprovalHolds is how long an answer stands for the call it was said to.
const ApprovalHolds = 10 * time.Minute

// Ask is what a person would have to allow for a refused call to pass.
type Ask struct {
	// Act identifies the call, by keyed digests of its tool, its bytes and the policy: first
	// that of its values, however they are written.
	Act string
	// Question identifies the call and what it lacks: what one answer answers.
	Question string
	// Arguments are what a yes lets through: what came, or what is sent in its stead; and
	// Answers what was answered inside the call, the zero Value where nothing was.
	Arguments strictjson.Value
	Answers   strictjson.Value
	Values    []AskedValue // sorted by pointer
	// Keeps are the lines by which this very call would not be asked again, whatever it
	// says in its free texts, or with these.
	Keeps []policy.Grown
}

// Covered is what a yes stands for at one place of a call: what it lacked there.
type Covered struct {
	Pointer string      `json:"pointer"` // "" for the call as a whole
	Reason  writ.Reason `json:"reason"`
}

// Covers is all that a yes stands for, sorted.
func (a *Ask) Covers() (out []Covered) {
	for _, v := range a.Values {
		out = append(out, Covered{v.Pointer, v.Reason})
	}
	return slices.Compact(out)
}

// AskedValue is one failure that he would stand for.
type AskedValue struct {
	Pointer string // "" for the call as a whole
	Role    string
	Raw     []byte // the exact literal, nil for the call as a whole
	Reason  writ.Reason
	Need    string
	// Placed says that it would count if a person cleared the places that other sessions
	// lowered (R38), and it was read again.
	Placed bool
	// Follows says that it fails for what another value of the question lacks, or the call.
	Follows bool
	// Seen are places where the value stands, the user's own words and then the best first
	// and the earliest: by the labels of these a person tells who wrote it. At most five.
	Seen []Ref
	// Grows are the lines by which it would not be asked again, the widest first: an
	// output that the contract calls system vouches for the argument, or one that it
	// calls external, which a person may say who knows that the server alone gives what
	// stands there, or that strangers cannot write there;
	// a collection is closed, where they cannot enter it; or this exact value. None where the question is of another kind.
	Grows []policy.Grown
}

// Ask returns what a person may allow, nil where the call passed, where nobody may
// allow it, and where the session has asked too often.
func (d *Decision) Ask() *Ask {
	if d == nil {
		return nil
	}
	return d.ask
}

// Approved reports whether the call passes by a person's yes, and would not without it.
func (d *Decision) Approved() bool { return len(d.basis.approvals) > 0 }

// Approval is a person's answer.
type Approval struct {
	Act    string    // Ask.Act
	Covers []Covered // Ask.Covers of what he was shown
	Yes    bool
	By     string     // who answered, as the operator registered him
	Label  writ.Label // User, or Operator of an operator
	At     time.Time
}

// covers reports whether he was asked all that a call lacks.
func (a *Approval) covers(lacks []Covered) bool {
	return !slices.ContainsFunc(lacks, func(c Covered) bool { return !slices.Contains(a.Covers, c) })
}

// answer is an approval folded into a session.
type answer struct {
	Approval
	evidence uint32
}

// Approve says what a person's answer is worth. Like a turn it takes a number,
// whatever it is worth. It only reads the session; Commit folds the answer in once
// it is durable.
func (s *Session) Approve(evidence uint32, a Approval) Observation {
	o := Observation{evidence: evidence, session: s}
	switch {
	case s == nil:
		o.Why = whySession
	case a.Act == "" || a.Label != writ.User && a.Label != writ.Operator:
		o.Why = whyUnvalidated
	default:
		o.Admissible, o.approval = true, &answer{a, evidence}
	}
	return o
}

// approve turns failures that a person may allow into what he said of them, and what
// nothing speaks against but he into a failure. It returns the failures that stand.
func (j *judge) approve(unfounded, against []writ.Failure) (stands []writ.Failure) {
	fs := first(unfounded, against)
	s := j.session()
	if len(fs) == 0 && (j.in.Asked == Denied || s != nil && !j.strict && j.refused(s)) {
		return []writ.Failure{{Reason: writ.ApprovalRefused, Need: saidNo}}
	}
	if s == nil || len(fs) == 0 || j.strict || j.over() || j.in.Shadow || !j.askable(against) {
		return fs
	}
	ask := &Ask{Act: j.askKey(), Arguments: j.sent(), Answers: j.in.Call.Answers}
	lacks := j.lacks(against)
	ask.Question = s.question(ask.Act, lacks)
	said, acts := j.answered()
	switch {
	case j.refused(s):
		j.d.asked = writ.ApprovalRefused
		return fs
	case said.Yes && said.covers(lacks):
		j.approved(said)
		j.d.basis.approvals = acts
		return nil
	case !s.asked[ask.Question] && len(s.asked) >= j.in.Policy.Approvals():
		return fs
	case j.in.Asked == Pending:
		j.d.asked = writ.ApprovalPending
	case j.in.Asked == Expired:
		j.d.asked = writ.ApprovalExpired
	}
	for _, l := range j.leaves {
		if l.failed != "" {
			ask.Values = append(ask.Values, j.askedValue(l, l.failed, j.need(l, l.failed)))
		}
	}
	for _, f := range against {
		v := AskedValue{Pointer: f.Pointer, Reason: f.Reason, Need: f.Need}
		if i := slices.IndexFunc(j.leaves, func(l *leaf) bool { return l.pointer == f.Pointer }); i >= 0 {
			v = j.askedValue(j.leaves[i], f.Reason, f.Need)
		}
		ask.Values = append(ask.Values, v)
	}
	j.d.basis.asked = ask.Question
	slices.SortFunc(ask.Values, func(a, b AskedValue) int {
		return Covered{a.Pointer, a.Reason}.compare(Covered{b.Pointer, b.Reason})
	})
	ask.Keeps = j.keeps()
	j.d.ask = ask
	return fs
}

// refused reports whether a person said no to this call, and the user gave no order since:
// what he ordered before may be what he said no to, and what he agrees to, to leave it.
func (j *judge) refused(s *Session) bool {
	if len(s.approvals) == 0 {
		return false
	}
	no, denied := s.denied(j.askKey(), j.in.Time)
	return denied && s.ledger.LatestOrder() < no.evidence
}

func (c Covered) compare(d Covered) int {
	return cmp.Or(strings.Compare(c.Pointer, d.Pointer), strings.Compare(string(c.Reason), string(d.Reason)))
}

// lacks is all that a person would have to stand for, sorted.
func (j *judge) lacks(against []writ.Failure) (out []Covered) {
	for _, l := range j.leaves {
		if l.failed != "" {
			out = append(out, Covered{l.pointer, l.failed})
		}
	}
	for _, f := range against {
		out = append(out, Covered{f.Pointer, f.Reason})
	}
	slices.SortFunc(out, Covered.compare)
	return slices.Compact(out)
}

// question identifies what is asked of an act.
func (s *Session) question(act string, lacks []Covered) string {
	b := append([]byte("question\x00"), act...)
	for _, c := range lacks {
		b = append(append(b, 0), s.digest([]byte(c.Pointer+"\x00"+string(c.Reason)))...)
	}
	return s.digest(b)
}

// maxAsked bounds the values of one question. Work in bulk has many (the files of a
// commit, the blocks of a page), and a refusal would end it for good: who is asked sees
// each of them, and may say no.
const maxAsked = 200

// askable reports whether a person may allow all that stands against a call: every
// leaf that nothing vouches for, whether or not its failure was told, and what
// stands against the call as a whole.
func (j *judge) askable(against []writ.Failure) bool {
	n := len(against)
	for _, l := range j.leaves {
		if l.failed == "" {
			continue
		}
		// What the operator listed for an enum or a control is his to change, not a
		// matter of evidence, unless he says that a person may.
		lists := l.failed == writ.ProvenanceConst && (l.role == policy.Control || l.role == policy.Enum) &&
			!slices.ContainsFunc(j.sources(l), func(s policy.Source) bool {
				return s.Kind == policy.FromApproval || s.Kind == policy.FromConst && len(s.Phrases) > 0
			})
		if n++; !writ.Askable(l.failed) || lists {
			return false
		}
	}
	return n <= maxAsked && !slices.ContainsFunc(against, func(f writ.Failure) bool {
		switch f.Reason {
		case writ.PolicyNoArguments:
			return j.contract == nil || j.contract.NoArgs == policy.NoArgsRefuse
		case writ.PolicyContested:
			return j.contract.Contested != policy.ContestedAsks
		}
		return !writ.Askable(f.Reason)
	})
}

// askKey digests what one answer is good for. A yes is good for the bytes that are sent,
// whatever came, under the policy it was asked under; a no stands against what they say, so
// that a blank more is no other call, and neither is one after another thing was allowed
// from now on.
func (j *judge) askKey() string { return j.askKeyOf(j.in.Policy.Digest) }

func (j *judge) askKeyOf(policy [32]byte) string {
	sent, answers := j.sent().Raw(), j.in.Call.Answers.Raw()
	return j.digestCall(nil, canonicalForm(sent), canonicalForm(answers)) + "." + j.digestCall(policy[:], sent, answers)
}

// answered is the newest answer to this very call that still holds, the zero one for none,
// and the keys of all there are: asked under this policy, or under one to which persons have
// only added since.
func (j *judge) answered() (said answer, acts []string) {
	s := j.session()
	if len(s.approvals) == 0 {
		return said, nil
	}
	for _, p := range j.in.Policy.Lineage() {
		if a, ok := s.approvals[j.askKeyOf(p)]; ok {
			if acts = append(acts, j.askKeyOf(p)); a.evidence > said.evidence {
				said = a
			}
		}
	}
	if j.in.Time.Sub(said.At) >= ApprovalHolds {
		return answer{}, acts
	}
	return said, acts
}

func (j *judge) digestCall(policy, sent, answers []byte) string {
	b := append([]byte("approval\x00"), policy...)
	for _, part := range [][]byte{[]byte(j.in.Call.Server), []byte(j.in.Call.Tool), []byte(j.in.Call.Method), sent, answers} {
		b = append(b, j.in.Session.digest(append([]byte{}, part...))...)
	}
	return j.in.Session.digest(b)
}

// canonicalForm is the canonical form of what is there.
func canonicalForm(raw []byte) []byte {
	if c, err := strictjson.Canonical(raw); err == nil {
		return c
	}
	return raw
}

// denied is the newest no, within the time that it holds, to a call that says the same.
func (s *Session) denied(act string, now time.Time) (no answer, ok bool) {
	of, _, _ := strings.Cut(act, ".")
	for key, said := range s.approvals {
		if is, _, _ := strings.Cut(key, "."); is == of && !said.Yes && now.Sub(said.At) < ApprovalHolds && said.evidence > no.evidence {
			no, ok = said, true
		}
	}
	return no, ok
}

// askedValue says of one leaf what a person has to know.
func (j *judge) askedValue(l *leaf, r writ.Reason, need string) AskedValue {
	v := AskedValue{Pointer: l.pointer, Role: l.role.String(), Raw: l.value.Literal(), Reason: r, Need: need, Placed: l.placed && l.failed == r, Follows: l.follows}
	seen := j.session().ledger.Where(provenance.Query{Value: l.value, Type: l.typ()}, 5)
	q := j.query(l, policy.Source{Kind: policy.FromUser})
	q.Named = false // his own words too, which may name nothing
	if said, why := j.session().ledger.Typed(q); why == "" {
		v.Seen = append(v.Seen, quoteOf(said))
	}
	for _, at := range seen[:min(len(seen), 5-len(v.Seen))] {
		v.Seen = append(v.Seen, refOf(at))
	}
	v.Grows = j.grows(l, r, seen)
	return v
}

// grows says by which lines a value would pass from now on. What is destroyed is
// anchored anew each time (R9), a record is that of its call (R37), and what a text
// holds or whom it goes to is no value of an argument. What was said of one case of a
// contract is not said of another; and an exact value is kept where it alone was asked
// for, or two calls that were said yes to would make a third.
func (j *judge) grows(l *leaf, reason writ.Reason, seen []provenance.Fact) (out []policy.Grown) {
	if !j.growable(l) {
		return nil
	}
	g := j.lineOf(l)
	switch reason {
	case writ.ProvenanceSource, writ.ProvenanceUnseen, writ.ProvenanceLabel, writ.ProvenanceReflected: // seen by none that the argument accepts
		var fields []field
		for _, at := range seen {
			switch f, ok := j.field(l, at); {
			case !ok:
			case f.system:
				out = policy.WithLine(out, f.lines[0])
			default:
				fields = append(fields, f)
			}
		}
		if len(out) == 0 {
			out = likest(fields, lastName(l.rule.At.Source))
		}
	case writ.ProvenanceOpenTarget:
		if c := l.collection(); c != "" {
			out = append(out, policy.Grown{Closed: c})
		}
	case writ.ProvenanceSmall, writ.ProvenanceConst:
	default:
		return nil
	}
	if len(j.contract.Where) > 0 || slices.ContainsFunc(j.leaves, func(o *leaf) bool { return o != l && o.failed != "" }) {
		return out // what it is decides where it is done, or the rest of the call
	}
	g.Const = l.value.Literal()
	return append(out, g)
}

// growable reports whether a line may say what an argument accepts.
func (j *judge) growable(l *leaf) bool {
	return l.rule != nil && !l.key && !l.answer && !l.empty && j.d.Effect&policy.Delete == 0 && j.contract.CaseAt == nil &&
		(l.role == policy.Target || l.role == policy.Selector || l.role == policy.Amount || l.role == policy.TimeRole)
}

// lineOf is a line of an argument that says nothing yet.
func (j *judge) lineOf(l *leaf) policy.Grown {
	return policy.Grown{Tool: j.in.Call.Server + "/" + toolOf(j.in.Call), Arg: l.rule.At.Source}
}

// field is where a value that is asked about was seen, and the lines by which it would
// vouch there, as the argument would name it.
type field struct {
	name   string
	at     policy.Source
	system bool // by its contract
	lines  []policy.Grown
}

// field is not ok where no line may name the place.
func (j *judge) field(l *leaf, at provenance.Fact) (f field, ok bool) {
	g, pointer := j.lineOf(l), at.Rule
	if of, inText := strings.CutPrefix(pointer, "text/0/"); inText {
		g.In, pointer = policy.InText, "/"+of
	}
	g.From = at.Server + "/" + at.Tool + "#" + pointer
	system := max(at.Label, at.Lifted) >= writ.System
	if pointer == "" || pointer[0] != '/' || g.In != "" && system {
		return f, false
	}
	f = field{name: lastName(pointer), system: system, at: policy.Source{Kind: policy.FromOutput, Server: at.Server, Tool: at.Tool, HasAt: true, InText: g.In != ""}}
	f.at.At, _ = provenance.ParsePattern(pointer) // as the contract has it
	if system {
		f.lines = []policy.Grown{g}
		return f, true
	}
	if _, not := j.session().ledger.Mints(at.Server, at.Tool, at.Rule); at.Minted && !not {
		g.Writes = policy.WritesServer
		f.lines = append(f.lines, g)
	}
	if at.Intact || len(at.Rests) > 0 {
		g.Writes = policy.WritesOurs
		f.lines = append(f.lines, g)
	}
	return f, true
}

// spares are the lines under which a value that a person says yes to would have passed
// without him, and left nothing where it goes (R38): it is judged once more by each. Where
// it stood at places that rest on lines themselves, these come with them, or are enough.
// What no line would let pass alone has none: a value that has to be of a record (R37),
// that is used up (R19), or that only a person may look at (R17).
func (j *judge) spares(l *leaf) (rests [][]provenance.Line) {
	if !j.growable(l) || l.lines || slices.ContainsFunc(j.bindings(), func(b policy.Binding) bool { return l.among(b.Others) }) {
		return nil
	}
	for _, src := range j.sources(l) {
		if rests, ok := j.supposing(l, src); ok {
			return rests
		}
	}
	var lines []provenance.Line
	for _, at := range j.session().ledger.Where(provenance.Query{Value: l.value, Type: l.typ()}, 5) {
		f, _ := j.field(l, at)
		for _, g := range f.lines {
			src := f.at
			src.Ours, src.Minted = g.Writes != "", g.Writes == policy.WritesServer
			if by, ok := j.supposing(l, src); ok && len(g.From) <= maxFrom && !slices.Contains(lines, g.Line()) {
				lines, rests = append(lines, g.Line()), append(rests, by...)
			}
		}
	}
	if len(lines) == 0 {
		return nil
	}
	slices.SortFunc(lines, func(a, b provenance.Line) int {
		return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.In, b.In), strings.Compare(a.Writes, b.Writes))
	})
	return append(rests, lines)
}

// maxFrom bounds the name of an output in a line that is on record: a server chooses the
// names of its fields.
const maxFrom = 1000

// supposing reports whether a value would pass by an output if no place counted that
// rests on lines, and leave nothing; and what that rests on.
func (j *judge) supposing(l *leaf, src policy.Source) (rests [][]provenance.Line, ok bool) {
	once := j.oneTime
	j.lifted = true
	defer func() { j.oneTime, j.lifted = once, false }()
	by := *l
	by.founded = founded{}
	ok = src.Kind == policy.FromOutput && j.from(&by, src) == "" && !by.oneTime && (j.isOurs(&by) || by.carries() >= writ.System)
	return by.supposes, ok
}

// isOurs reports whether a value is of the server that the call goes to, from a field of
// which a person said who writes it.
func (j *judge) isOurs(l *leaf) bool {
	return l.rule_ == grownOutput && strings.HasPrefix(l.refs[0].Tool, j.in.Call.Server+"/")
}

// lastName is the last name of a pointer.
func lastName(pointer string) string {
	tokens := strings.Split(pointer, "/")
	for len(tokens) > 1 && tokens[len(tokens)-1] == "*" {
		tokens = tokens[:len(tokens)-1]
	}
	return tokens[len(tokens)-1]
}

// likest are the lines of one field: whoever writes in another one must not choose which is
// offered by repeating the value there, above it. It is the one whose name has most
// of the argument's words; of equals the first, if they have one name.
func likest(fields []field, arg string) []policy.Grown {
	stems := func(name string) (out []string) {
		for _, w := range text.NameWords(name) {
			out = append(out, strings.TrimSuffix(strings.ToLower(w), "s"))
		}
		return out
	}
	words, most := stems(arg), -1
	var first *field
	alone := true
	for i := range fields {
		n := 0
		for _, w := range stems(fields[i].name) {
			if slices.Contains(words, w) {
				n++
			}
		}
		switch {
		case n > most:
			first, most, alone = &fields[i], n, true
		case n == most && fields[i].name != first.name:
			alone = false
		case n == most && len(first.lines) == 0:
			first = &fields[i]
		}
	}
	if first == nil || !alone {
		return nil
	}
	return first.lines
}

// approved lets the leaves that failed rest on a person's yes. What the model wrote
// stays its own (R4, R38), and what a stranger can have made appear stays open (R28).
func (j *judge) approved(said answer) {
	for _, l := range j.leaves {
		if l.failed == "" {
			continue
		}
		open := j.isOpen(l) || l.role == policy.Content
		l.spared = j.spares(l)
		l.founded = founded{rule_: "approval", label: said.Label, open: !open, newest: said.evidence,
			refs: []Ref{{Evidence: said.evidence, Tool: approvalTool, Label: said.Label}}}
		if open {
			l.label = writ.Model
		}
	}
}

// approvalTool stands for the tool in references to a person's answers.
const approvalTool = "approval"

package memory

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// Context is what the server knows of a proposal and the proposal cannot say.
type Context struct {
	Policy    *Policy
	Namespace string
	Mode      Mode
	// Principal is who the session is bound to; Session and Task what it is.
	Principal, Session, Task string
	// Now is the recorded time. It orders nothing.
	Now time.Time
	// Captured is the evidence the proposal's observation cites, or that its
	// raw payload was found in, best first. Cites says what to look for.
	Captured []Captured
	// Unlooked says that not everything the session saw was looked at for it.
	Unlooked bool
	// Screened is what the content screen said of the proposal's texts.
	Screened Screening
	// Secrets are values that must not be stored: they are redacted in every
	// text of the payload.
	Secrets []string
	// Redacted says that some were redacted before the proposal came here.
	Redacted bool
	// Exposed says that the session has seen something that neither its user nor
	// Writ said.
	Exposed bool
}

// Captured is one piece of evidence that Writ itself saw in this session.
type Captured struct {
	// Ref is the evidence id as proposals name it, such as ev12 or s_…/ev12;
	// both forms match. Evidence is its full id.
	Ref      string `json:"-"`
	Evidence string `json:"evidence"`
	// Label is the lowest label of the bytes that hold the observation.
	Label writ.Label `json:"label"`
	// Source names where it came from, such as files/read_file.
	Source string `json:"source"`
	// Class may narrow the class its label gives: document, web, peer_agent.
	Class TrustClass `json:"class,omitempty"`
	// Verbatim says that the observation's raw payload is a span of the
	// evidence's exact bytes.
	Verbatim bool `json:"verbatim"`
	// Whole says that this span begins and ends where a leaf, or a token of a
	// text, does. What the agent cropped vouches for nothing at its ends.
	Whole bool `json:"whole,omitempty"`
	// Between says that the span stands between words by the rules of a quote
	// (package claim): neither end cuts a word or a number. It is weaker than
	// Whole, and enough for a belief to rest on.
	Between bool `json:"between,omitempty"`
	// Offset is where in the evidence the span begins, for remember what is kept in
	// its place. Seen is where in the log the evidence's record stands, from 1, 0
	// where that is not known: what was seen first is older.
	Offset int    `json:"offset,omitempty"`
	Seen   uint64 `json:"seen,omitempty"`
	// Text is what is kept in place of the span: the whole sentences or the record in
	// which it stands, "" where the span is whole. For remember, Value is the
	// sentence or value that is meant, as JSON.
	Text  string `json:"-"`
	Value []byte `json:"-"`
	// Type and Collection are what the gate's policy declared of the leaf, where
	// the span is one. They are kept for who recalls it, and decide nothing here.
	Type       string `json:"type,omitempty"`
	Collection string `json:"collection,omitempty"`
	// Leaves are those of the record that is kept which have a type or a collection.
	Leaves []Leaf `json:"leaves,omitempty"`
}

// named reports whether a proposal that names this means the evidence.
func (c *Captured) named(ref string) bool { return ref != "" && (ref == c.Ref || ref == c.Evidence) }

// kept is the evidence as the event of a decision has it, without its texts.
func (c Captured) kept(byRef bool) *Capture {
	c.Ref, c.Text, c.Value = "", "", nil
	return &Capture{c, byRef}
}

// Leaf is what the gate's policy declared of one leaf of a record.
type Leaf struct {
	Pointer    string `json:"at"`
	Type       string `json:"type,omitempty" pack:"word"`
	Collection string `json:"collection,omitempty" pack:"word"`
}

// Cite is one observation in a proposal, for whoever looks up its evidence.
type Cite struct {
	Ref string // what it names, "" for nothing
	Raw string // what must stand in the evidence
}

// Cites returns the observation a proposal holds, if it holds one that can be
// read.
func Cites(p writ.Proposal) (Cite, bool) {
	raw := []byte(p.Payload)
	if strictjson.Check(raw, payloadLimits) != nil {
		return Cite{}, false
	}
	switch p.ToolName {
	case ToolRecordObservation:
	case ToolTestResult:
		raw = strictjson.Get(raw, "observation")
	case ToolRemember:
		text, ok := strictjson.Text(strictjson.Get(raw, "text"))
		return Cite{"", text}, ok
	default:
		return Cite{}, false
	}
	text, ok := strictjson.Text(strictjson.Get(raw, "raw_payload"))
	return Cite{textOf(strictjson.Get(raw, "source_ref")), text}, ok
}

var (
	payloadLimits  = strictjson.Limits{Bytes: maxPayload, Depth: 8, Leaves: 20_000, Number: 64}
	envelopeLimits = strictjson.Limits{Bytes: maxPayload + 1024, Depth: 9, Leaves: 20_001, Number: 64}
)

// ParseProposal reads the envelope {tool_name, payload}. A failure is the
// rejection to answer with; it is not recorded.
func ParseProposal(raw []byte) (writ.Proposal, *writ.Rejection) {
	if err := strictjson.Check(raw, envelopeLimits); err != nil {
		return writ.Proposal{}, payloadFault(err).rejection()
	}
	ms, ok := strictjson.Members(raw)
	name, isText := strictjson.Text(strictjson.Get(raw, "tool_name"))
	payload := strictjson.Get(raw, "payload")
	if !ok || len(ms) != 2 || !isText || payload == nil {
		return writ.Proposal{}, refuse("", writ.PayloadNotObject, "an object with exactly tool_name and payload").rejection()
	}
	return writ.Proposal{ToolName: name, Payload: slices.Clone(payload)}, nil
}

func payloadFault(err error) *refusal {
	fault := strictjson.Syntax
	if e, ok := err.(*strictjson.Error); ok {
		fault = e.Fault
	}
	switch fault {
	case strictjson.Size:
		return refuse("", writ.PayloadTooLarge, "a payload of at most 256 KiB and 20000 values")
	case strictjson.Deep:
		return refuse("", writ.PayloadTooDeep, "a payload nested at most 8 deep")
	case strictjson.Numeric:
		return refuse("", writ.PayloadNumber, "numbers of at most 64 characters")
	}
	return refuse("", writ.PayloadSyntax, "strict JSON: each member once, valid UTF-8, nothing after the value")
}

// Handle judges one proposal on a state and a context. It changes neither, has
// no error, and gives the same decision for the same three on any machine. The
// caller writes the decision's event, with its value beside it, and applies
// it; a proposal whose event cannot be written did not happen.
func Handle(s *State, c Context, p writ.Proposal) Decision {
	e := &Event{
		V: EventVersion, N: s.head + 1, Kind: KindProposal, At: recorded(c.Now), Namespace: s.namespace, Mode: s.mode, Policy: s.policy,
		Principal: c.Principal, Session: c.Session, Task: c.Task, Screened: c.Screened, Exposed: c.Exposed,
	}
	j := &judge{s: s, c: c, e: e, t: toolOf(p.ToolName)}
	if j.t != nil {
		e.Tool = j.t.name
	}
	if r := j.judge(p); r != nil {
		d := j.rejected(r, p)
		if s.head == 0 {
			d.Event, d.Value = nil, nil // there is no namespace to record it in
		}
		return d
	}
	value := j.value()
	if value != nil && strictjson.Check(value, valueLimits) != nil || !e.fits() {
		// Written out in full it is larger than it came. What cannot be read
		// again must not be written.
		return j.rejected(refuse("", writ.PayloadTooLarge, "a payload of at most 256 KiB and 20000 values, as it is written out in canonical form"), p)
	}
	return j.accepted(value)
}

// accepted is the decision that was made. What of a command was tidied is no other
// command.
func (j *judge) accepted(value []byte) Decision {
	e := j.e
	e.Status = writ.Accepted
	out := Outcome{Decision: e.decision(), Policy: e.Policy, Mode: e.Mode, Advisories: j.advice, Transitions: j.d.transitions(j.s)}
	if len(j.changed) > 0 && e.Kind == KindProposal {
		e.Status = writ.Transformed
		e.Effects = append(slices.Clone(j.changed), e.Effects...)
		out.Proposal = &writ.Proposal{ToolName: j.t.name, Payload: j.payload()}
	}
	out.Status, out.Effects, out.Kept = e.Status, e.Effects, j.became(out.Transitions)
	return Decision{out.filled(), e, value}
}

// rejected is the decision that refuses: an event that changes nothing.
func (j *judge) rejected(r *refusal, p writ.Proposal) Decision {
	e := j.e
	e.Status, e.Reason, e.Ops, e.Effects = writ.Rejected, r.reason, nil, nil
	e.Capture = heldAgainst(p, j.c.Captured)
	out := Outcome{Decision: e.decision(), Policy: e.Policy, Mode: e.Mode, Rule: ruleOf(j.e.Tool, r)}
	out.Status, out.Rejection = writ.Rejected, r.rejection()
	var value []byte
	// What was erased does not come back to disk by being offered again.
	kept := r.reason != writ.ObservationConflict
	if kept && len(p.Payload) <= maxPayload && len(p.ToolName) <= 256 {
		if payload, err := strictjson.Canonical(p.Payload); err == nil && strictjson.Check(p.Payload, payloadLimits) == nil {
			value = envelope(p.ToolName, Redact(payload, j.c.Secrets))
		} else if utf8.Valid(p.Payload) {
			// It was no JSON: kept as text.
			value = strictjson.Make(strictjson.Member{Name: "payload_text", Value: Redact(strictjson.Quote(string(p.Payload)), j.c.Secrets)},
				strictjson.Member{Name: "tool_name", Value: strictjson.Quote(p.ToolName)}).Raw()
		}
	}
	if len(value) > valueLimits.Bytes {
		value = nil // written out in full it is larger than it came
	}
	return Decision{out.filled(), e, value}
}

// heldAgainst is the evidence a refused proposal was judged on, so that it can
// be judged again: one without an id and a source is none. Of several nothing is
// kept.
func heldAgainst(p writ.Proposal, captured []Captured) *Capture {
	cite, cites := Cites(p)
	switch {
	case !cites || len(captured) > 1:
		return nil
	case len(captured) == 0:
		return &Capture{}
	}
	return captured[0].kept(captured[0].named(cite.Ref))
}

// recorded is the time of an event: never one that has no form.
func recorded(t time.Time) Instant { return min(maxInstant, max(0, InstantOf(t))) }

// filled makes lists of nothing of what is absent.
func (o Outcome) filled() Outcome {
	o.Effects, o.Transitions, o.Advisories = list(o.Effects), list(o.Transitions), list(o.Advisories)
	return o
}

func envelope(name string, payload []byte) []byte {
	return strictjson.Make(strictjson.Member{Name: "payload", Value: payload}, strictjson.Member{Name: "tool_name", Value: strictjson.Quote(name)}).Raw()
}

func array(of [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(of, []byte{','})...), ']')
}

// A judge decides one proposal.
type judge struct {
	s       *State
	c       Context
	e       *Event
	t       *tool
	d       *draftEvent
	m       map[string][]byte // the payload's members, as they will be applied
	texts   map[string]string
	lists   map[string][]string
	times   map[string]Instant
	changed []Effect // transforms
	kept    *Kept    // of remember
	advice  []Effect
	noValue bool
}

// payload is the payload that is applied, canonical.
func (j *judge) payload() []byte {
	var ms []strictjson.Member
	for _, n := range slices.Sorted(maps.Keys(j.m)) { // every name is one of ours, in ASCII
		ms = append(ms, strictjson.Member{Name: n, Value: j.m[n]})
	}
	return strictjson.Make(ms...).Raw()
}

func (j *judge) value() []byte {
	if j.noValue {
		return nil
	}
	return envelope(j.t.name, j.payload())
}

func (j *judge) set(name string, v []byte) { j.m[name] = v }

func (j *judge) transform(word, at string) { j.changed = append(j.changed, Effect{word, at}) }

func (j *judge) task() *Workspace { return j.d.workspaces.get(join(j.c.Session, j.c.Task)) }

// judge is the order of evaluation: the first failure wins.
func (j *judge) judge(p writ.Proposal) *refusal {
	if j.t == nil {
		return refuse("", writ.NameUnknown, "a tool of memory, by its exact name")
	}
	canonical, r := canonicalObject(p.Payload, "a payload that is an object")
	if r != nil {
		return r
	}
	if clean := Redact(canonical, j.c.Secrets); string(clean) != string(canonical) || j.c.Redacted {
		var err error
		if canonical, err = strictjson.Canonical(clean); err != nil {
			return payloadFault(err)
		}
		j.transform("redacted", "")
	}
	if r := forbidden(canonical, j.t.all()); r != nil {
		return r
	}
	if r := j.read(canonical, j.t.all()); r != nil {
		return r
	}
	if r := j.bound(); r != nil {
		return r
	}
	j.d = newDraft(j)
	if j.e.Session != "" {
		j.d.workspace(j.e)
	}
	if r := j.claimed(); r != nil {
		return r
	}
	r = j.t.do(j)
	if r == nil && j.c.Screened == ScreenBlock {
		// Whatever holds the words: not only an observation's are read again.
		return refuse("", writ.ObservationScreened, "a content the screen does not block")
	}
	if r == nil && j.d.err != nil {
		// What was decided does not fit the state it was decided on. That is a
		// defect of this package, and refuses.
		return refuse("", writ.MemoryPolicy, "a state and a proposal that fit together")
	}
	return r
}

func canonicalObject(payload []byte, need string) ([]byte, *refusal) {
	if err := strictjson.Check(payload, payloadLimits); err != nil {
		return nil, payloadFault(err)
	}
	if strictjson.KindOf(payload) != strictjson.Object {
		return nil, refuse("", writ.PayloadNotObject, need)
	}
	canonical, err := strictjson.Canonical(payload)
	if err != nil {
		return nil, payloadFault(err)
	}
	return canonical, nil
}

// bound holds the context to the state.
func (j *judge) bound() *refusal {
	c := &j.c
	if c.Screened != "" && c.Screened != ScreenQuarantine && c.Screened != ScreenBlock {
		j.e.Screened = ScreenBlock
		return refuse("", writ.ObservationScreened, "a verdict of the content screen that is known")
	}
	if c.Policy == nil || j.s.head == 0 || c.Policy.hash != j.s.policy || c.Namespace != j.s.namespace || c.Mode != j.s.mode {
		return refuse("", writ.MemoryPolicy, "the policy, namespace and mode in force")
	}
	if c.Principal == "" || c.Session == "" || c.Task == "" || len(c.Principal) > 256 || len(c.Session) > 128 || len(c.Task) > 128 ||
		strings.ContainsRune(c.Principal+c.Session+c.Task, 0) {
		return refuse("", writ.ContextMismatch, "a session, a task and a principal")
	}
	return nil
}

// claimed holds the payload to the context, after its provenance: a session or
// task that is another's is a matter of policy.
func (j *judge) claimed() *refusal {
	if r := j.cites(j.t.all()); r != nil {
		return r
	}
	for _, f := range [][2]string{{"session_id", j.c.Session}, {"task_id", j.c.Task}} {
		if got, ok := j.texts[f[0]]; ok && got != f[1] {
			return refuse(member(f[0]), writ.ContextMismatch, "the session and task this connection is bound to, or neither")
		}
	}
	return nil
}

// forbiddenNames are what a payload may not even name: computation sets them.
var forbiddenNames = []string{
	"direct_write", "canonical", "is_canonical", "status", "state", "confidence", "support_weight", "contradiction_weight",
	"support_score", "contradiction_score", "source_group_count", "recency", "freshness", "trust", "trust_class", "level",
	"base_reliability", "independence_group", "source_independence_group", "recorded_at", "promote", "promoted", "merge",
	"merge_into", "valid_to", "provenance_summary",
}

// forbidden finds a forbidden name in the payload or in an object directly
// under it. What an observation holds is opaque.
func forbidden(payload []byte, fields []field) *refusal {
	look := func(obj []byte, path ...string) *refusal {
		ms, _ := strictjson.Members(obj)
		for _, m := range ms {
			if slices.Contains(forbiddenNames, m.Name) {
				return refuse(strictjson.Pointer(append(path, m.Name)), writ.DirectCanonical,
					"a proposal without it: trust, state and scores are computed from evidence")
			}
		}
		return nil
	}
	if r := look(payload); r != nil {
		return r
	}
	ms, _ := strictjson.Members(payload)
	for _, m := range ms {
		if m.Name == "parsed_payload" || m.Name == "raw_payload" {
			continue
		}
		if r := look(m.Value, m.Name); r != nil {
			if !slices.ContainsFunc(fields, func(f field) bool { return f.name == m.Name }) {
				r.at = "" // the name of its object is nobody's but the model's
			}
			return r
		}
	}
	return nil
}

// Mark is what stands in place of a secret.
const Mark = "[redacted]"

// Redact replaces every secret in every text of a JSON value, names of members
// too; a number that holds one becomes the mark. Secrets of fewer than 4 bytes
// are left: they would be found everywhere. Where there is none it returns the same
// bytes.
func Redact(raw []byte, secrets []string) []byte {
	if len(secrets) == 0 {
		return raw
	}
	found := false
	clean := func(t string) string {
		out := RedactText(t, secrets)
		found = found || out != t
		return out
	}
	out := mapTexts(raw, clean, func(number []byte) []byte {
		if clean(string(number)) != string(number) {
			return strictjson.Quote(Mark)
		}
		return number
	})
	if !found {
		return raw
	}
	return out
}

// mapTexts changes every text of a JSON value, names of members too, and every
// number where number is not nil. Two names that are changed stay two.
func mapTexts(raw []byte, text func(string) string, number func([]byte) []byte) []byte {
	switch strictjson.KindOf(raw) {
	case strictjson.String:
		if t := textOf(raw); text(t) != t {
			return strictjson.Quote(text(t))
		}
	case strictjson.Number:
		if number != nil {
			return number(raw)
		}
	case strictjson.Array:
		es, _ := strictjson.Elements(raw)
		for i, e := range es {
			es[i] = mapTexts(e, text, number)
		}
		return array(es)
	case strictjson.Object:
		ms, _ := strictjson.Members(raw)
		all := make([][]byte, len(ms))
		for i, m := range ms {
			name := text(m.Name)
			if name != m.Name {
				name += strconv.Itoa(i)
			}
			all[i] = slices.Concat(strictjson.Quote(name), []byte{':'}, mapTexts(m.Value, text, number))
		}
		return slices.Concat([]byte{'{'}, bytes.Join(all, []byte{','}), []byte{'}'})
	}
	return raw
}

// RedactText is Redact of one text.
func RedactText(t string, secrets []string) string {
	for _, s := range secrets {
		if len(s) >= 4 {
			t = strings.ReplaceAll(t, s, Mark)
		}
	}
	return t
}

// tidied is a text as it is kept. What nobody sees goes first: it may stand
// inside of a secret.
func (j *judge) tidied(text string) string {
	t := tidy(text)
	kept := RedactText(t, j.c.Secrets)
	if kept != t {
		j.transform("redacted", "")
	}
	return kept
}

// rateOK holds a source to the cap of observations in a minute.
func (j *judge) rateOK(source string) bool {
	r := j.d.rates.get(source)
	return r == nil || r.over(j.e.At) || r.Count < int(j.c.Policy.Caps.ObservationsPerMinute)
}

func count(n Count) string { return strconv.Itoa(int(n)) }

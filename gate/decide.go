package gate

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// Engine names the version of the rules in this package. It is part of every
// decision's record: a replay under another engine is not a replay.
const Engine = "writ-gate/30"

// Decide says whether a call may be made. It depends on nothing but its input:
// the same input gives the same decision, byte for byte. It only reads the
// session; Session.Decided folds the decision in once it is durable.
//
// Without a policy, or with a catalogue that was not made with that very policy,
// every call is refused.
//
// The classes of refusal are judged in the order
// (name, payload, direct write, schema, provenance, policy). The first class
// that fails gives the code, and every failing pointer of that class is listed.
func Decide(in Input) Decision {
	j := begin(&in)
	j.run()
	j.seal()
	return j.d
}

// maxWork bounds the bytes that are looked at to take a call apart: a value
// nested n deep is looked at n times.
const maxWork = 32 << 20

// judge is the state of one decision.
type judge struct {
	in        *Input
	d         Decision
	contract  *policy.Contract // nil in shadow mode, where there may be none
	args      strictjson.Value // the arguments; {} when absent
	parts     strictjson.Value // the same as they are judged
	apart     bool             // a statement that only adds is judged by its parts, for nothing vouches for it whole
	rules     []policy.ArgRule
	leaves    []*leaf
	lists     []*array
	strict    bool
	readable  bool             // the payload could be taken apart, so d.Traces is complete
	hard      bool             // refused in shadow mode too
	mended    bool             // args are not those that came: nulls and defaults are left out, defaults put in
	less      strictjson.Value // the arguments without what only says a default, where that is judged
	noTarget  bool             // R29: selectors are judged as targets
	notice    bool             // but for what tells those in a record of its change alone
	composes  bool             // it carries a free text (R14)
	kept      kept             // a person allowed it from now on
	lifted    bool             // places that rest on lines do not count (R38): what would pass if these were in force
	unordered bool             // nor what a contract says of orders: what would pass if the user had only to name it
	cleared   bool             // nor do those that other sessions lowered: what would pass once a person cleared them
	// reports holds the failures of the classes after payload.
	direct, schema, unfounded, against []writ.Failure
	replaced                           map[string][]byte  // R17 normalise, by pointer
	fields                             []strictjson.Value // names of form fields in answers
	oneTime                            []*leaf            // that rest on one-time values (R19)
	work                               int                // bytes taken apart so far
	supply                             map[supplyKey]string
	names                              *provenance.Names          // R9, made when it is asked for
	wrong                              map[string]map[string]bool // R24: guesses of this call, by pointer
}

func (j *judge) run() {
	var named, invalid []writ.Failure
	ok := false
	if !j.less.Exists() && !j.apart {
		named, invalid, ok = j.again(j.in.Reading)
	}
	if !ok {
		if named, invalid, ok = j.open(); !ok {
			return
		}
	}
	if j.in.Look && j.d.Effect.Gated() { // whatever its contract came to say meanwhile
		named = append(named, writ.Failure{Reason: writ.NameForbidden, Need: needs[writ.NameForbidden]})
		j.hard = true
	}
	j.own()
	j.schema = append(j.schema, invalid...)
	j.kept = j.keptBy()
	if j.d.Effect.Gated() {
		if j.governed() {
			j.judgeGoverned()
		} else {
			j.forms()
			j.judgeLeaves()
			if j.inParts() {
				*j = begin(j.in)
				j.apart = true
				j.run()
				return
			}
			if less, ok := j.leaveOut(); ok {
				apart := j.apart
				*j = begin(j.in)
				j.less, j.apart = less, apart
				j.run()
				return
			}
			j.acts()
			j.causes()
		}
	} else {
		j.labelLeaves()
		j.steered()
		j.plainly()
	}
	j.closed()
	j.hard = len(j.direct) > 0 // Writ's own state is out of reach in shadow mode too
	failures := first(named, j.direct, j.schema)
	if failures == nil {
		failures = j.approve(j.unfounded, j.against)
	}
	if failures == nil {
		failures = j.unfoundedStill()
	}
	j.trace()
	j.refuse(failures)
	if len(named)+len(j.direct)+len(j.schema) == 0 && len(failures) > 0 {
		j.d.looks = j.looks()
	}
}

// unfoundedStill is that no act is accepted of which a value rests on nothing,
// whatever was asked, told or bounded on the way.
func (j *judge) unfoundedStill() []writ.Failure {
	if !j.d.Effect.Gated() || j.governed() {
		return nil
	}
	for _, l := range j.leaves {
		if l.rule_ == "" {
			return []writ.Failure{{Pointer: l.pointer, Reason: writ.ProvenanceUnseen, Need: j.need(l, writ.ProvenanceUnseen)}}
		}
	}
	return nil
}

// begin is a judge who has seen nothing.
func begin(in *Input) judge {
	return judge{in: in, d: Decision{Call: in.Call, Effect: policy.EveryEffect, look: in.Look}}
}

// A Reading is a call taken apart, as Texts did it.
type Reading struct {
	of             judge
	named, invalid []writ.Failure
}

// again takes a call apart by what was read of it before. It is not ok where that was
// another call, or under another policy.
func (j *judge) again(r *Reading) (named, invalid []writ.Failure, ok bool) {
	if r == nil {
		return nil, nil, false
	}
	now, then := j.in, r.of.in
	if now.Policy != then.Policy || now.Catalogue != then.Catalogue || !now.Call.same(then.Call) {
		return nil, nil, false
	}
	call := j.d.Call
	*j = r.of
	j.in, j.d.Call, j.d.look = now, call, now.Look
	j.schema, j.against = slices.Clip(j.schema), slices.Clip(j.against)
	leaves := make([]leaf, len(j.leaves))
	j.leaves = make([]*leaf, len(leaves))
	for i, l := range r.of.leaves {
		leaves[i] = *l
		j.leaves[i] = &leaves[i]
	}
	return r.named, r.invalid, true
}

// same reports whether two calls are one, byte for byte.
func (c Call) same(d Call) bool {
	return c.Server == d.Server && c.Tool == d.Tool && c.Method == d.Method &&
		c.Arguments.Exists() == d.Arguments.Exists() && bytes.Equal(c.Arguments.Raw(), d.Arguments.Raw()) &&
		c.Answers.Exists() == d.Answers.Exists() && bytes.Equal(c.Answers.Raw(), d.Answers.Raw())
}

// open takes the call apart. It is not ok if what the call is was refused on the
// way; else named and invalid are what is wrong with its name and its arguments.
func (j *judge) open() (named, invalid []writ.Failure, ok bool) {
	in := j.in
	if in.Policy == nil || in.Catalogue == nil || in.Catalogue.policy != in.Policy {
		j.hard = true // nothing says what may happen, and shadow mode cannot either
		j.refuse([]writ.Failure{{Reason: writ.PolicyAbsent, Need: needs[writ.PolicyAbsent]}})
		return nil, nil, false
	}
	j.strict = in.Policy.Profile == policy.Strict
	named = j.name()
	if j.hard {
		j.refuse(named)
		return nil, nil, false
	}
	payload := j.payload()
	if !j.readable {
		j.hard = true // what cannot be read can be neither labelled nor forwarded
		j.refuse(first(named, payload))
		return nil, nil, false
	}
	if j.less.Exists() {
		j.args, j.mended = j.less, true
	}
	j.effectAndRules()
	if invalid = j.validate(); len(invalid) > 0 {
		invalid = j.mend(invalid)
	}
	tooLarge := slices.ContainsFunc(invalid, func(f writ.Failure) bool { return f.Reason == writ.PayloadTooLarge })
	if !tooLarge {
		j.collect()
	}
	if tooLarge || j.work > maxWork {
		// Too large to be judged in bounded time is too large to be forwarded.
		j.hard, j.leaves = true, nil
		j.refuse(first(named, []writ.Failure{{Reason: writ.PayloadTooLarge, Need: needs[writ.PayloadTooLarge]}}))
		return nil, nil, false
	}
	return named, invalid, true
}

// first returns the first class that fails.
func first(classes ...[]writ.Failure) []writ.Failure {
	for _, c := range classes {
		if len(c) > 0 {
			return c
		}
	}
	return nil
}

// refuse turns one class of failures, or none, into the outcome.
func (j *judge) refuse(fs []writ.Failure) {
	d := &j.d
	// A session that shadowed once holds evidence of acts nobody accepted, and
	// one that enforced stays so: the mode of its first decision rules.
	shadow := j.in.Shadow && j.in.Session.mayShadow()
	d.Arguments = j.in.Call.Arguments
	if len(fs) > 0 {
		slices.SortFunc(fs, func(a, b writ.Failure) int {
			if c := strings.Compare(a.Pointer, b.Pointer); c != 0 {
				return c
			}
			return strings.Compare(string(a.Reason), string(b.Reason))
		})
		fs = slices.CompactFunc(fs, func(a, b writ.Failure) bool { return a.Pointer == b.Pointer && a.Reason == b.Reason })
		guesses := j.guesses(fs)
		if d.asked != "" {
			for i := range fs {
				fs[i] = writ.Failure{Pointer: fs[i].Pointer, Reason: d.asked, Need: needs[d.asked] + "; " + fs[i].Need}
			}
		}
		for i := range fs {
			if fs[i].Reason == writ.SchemaInvalid {
				fs[i].Need = invalid(fs[i].Need)
			}
			if at := j.governing(fs[i]); at > 0 {
				fs[i].Line = at
			}
		}
		r := fs[0].Reason
		d.Outcome = writ.Outcome{Status: writ.Rejected, Rejection: &writ.Rejection{Code: writ.CodeOf(r), Reason: r, Failures: fs}}
		d.Shadow = shadow && !j.hard
		if d.Effect.Gated() && !d.Shadow {
			d.basis.guesses = guesses
		}
		return
	}
	if shadow {
		d.Outcome, d.Shadow = writ.Outcome{Status: writ.Accepted}, true
		return
	}
	d.allow = true
	if len(j.replaced) == 0 && !j.mended {
		d.Outcome = writ.Outcome{Status: writ.Accepted}
		return
	}
	d.Arguments = j.sent()
	tool := j.in.Call.Server + "/" + toolOf(j.in.Call)
	d.Outcome = writ.Outcome{Status: writ.Transformed, Proposal: &writ.Proposal{ToolName: tool, Payload: d.Arguments.Raw()}}
}

// sent are the arguments as they are judged and would be sent.
func (j *judge) sent() strictjson.Value {
	if len(j.replaced) == 0 {
		return j.args
	}
	return strictjson.Of(rewrite(j.args, nil, j.replaced))
}

// seal fills in what the decision was made on.
func (j *judge) seal() {
	in, b := j.in, &j.d.basis
	b.time, b.catalogue, b.contract, b.shadow = in.Time, in.Catalogue.Digest(), j.contract != nil, in.Shadow
	b.drafted = b.contract && j.contract.Plain
	if j.d.policy = in.Policy; in.Policy != nil {
		b.policy, b.profile = in.Policy.Digest, in.Policy.Profile
	}
	if j.contract != nil {
		j.d.rules, b.types = j.contract.Outputs, j.types()
	}
	if s := in.Session; s != nil {
		b.session, b.self, b.number = s.id, s.self, s.next
		if c := j.contract; j.d.Allowed() && c != nil && c.Idempotent != nil && !*c.Idempotent {
			b.act, b.once = j.actKey(), j.hasKey()
		}
		b.arguments = s.digest(in.Call.Arguments.Raw())
		b.answers = s.digest(in.Call.Answers.Raw())
		if j.d.Outcome.Status == writ.Transformed {
			b.forwarded = s.digest(j.d.Arguments.Raw())
		}
	}
}

// toolOf is the name a call is judged under: its tool, or its method (R32).
func toolOf(c Call) string {
	if c.Method != policy.CallTool {
		return string(c.Method)
	}
	return c.Tool
}

// name resolves the tool and its contract.
func (j *judge) name() []writ.Failure {
	c := j.in.Call
	fail := func(r writ.Reason) []writ.Failure {
		return []writ.Failure{{Reason: r, Need: needs[r]}}
	}
	t := j.in.Catalogue.Lookup(c.Server, toolOf(c))
	if t != nil && t.Method != c.Method {
		t = nil // a method's name is no tool's
	}
	j.d.Tool = t
	if t == nil {
		if j.contract = MethodContract(c.Server, c.Method); j.contract != nil {
			return nil
		}
		j.hard = true
		return fail(writ.NameUnknown)
	}
	j.contract = t.Contract
	reason := t.Reason
	if t.State == Open && t.Contract != nil {
		return nil
	}
	if reason == "" || reason == writ.PolicyClosed && t.Contract == nil {
		reason = writ.NameForbidden
	}
	code := writ.CodeOf(reason)
	if j.hard = t.State == Refused; j.hard && code != writ.InvalidToolName {
		reason, code = writ.NameForbidden, writ.InvalidToolName
	}
	switch code {
	case writ.InvalidToolName:
		return fail(reason)
	case writ.InvalidPayload: // a schema nobody can use
		j.schema = append(j.schema, fail(reason)...)
	default:
		j.against = append(j.against, fail(reason)...)
	}
	return nil
}

// noArguments is what absent arguments are judged as.
var noArguments = strictjson.Make()

// payload checks that the bytes are a call: one object of strict JSON within
// the limits, and the answers likewise.
func (j *judge) payload() []writ.Failure {
	j.args = j.in.Call.Arguments
	if !j.args.Exists() {
		j.args = noArguments
	}
	var fs []writ.Failure
	check := func(pointer string, v strictjson.Value) {
		err := v.Within(strictjson.Request)
		r := writ.Reason("")
		var e *strictjson.Error
		switch {
		case errors.As(err, &e) && e.Fault == strictjson.Size:
			r = writ.PayloadTooLarge
		case errors.As(err, &e) && e.Fault == strictjson.Deep:
			r = writ.PayloadTooDeep
		case errors.As(err, &e) && e.Fault == strictjson.Numeric:
			r = writ.PayloadNumber
		case err != nil:
			r = writ.PayloadSyntax
		case v.Kind() != strictjson.Object:
			r = writ.PayloadNotObject
		default:
			return
		}
		fs = append(fs, writ.Failure{Pointer: pointer, Reason: r, Need: needs[r]})
	}
	check("", j.args)
	if j.in.Call.Answers.Exists() {
		check(answerPrefix, j.in.Call.Answers)
	}
	j.readable = len(fs) == 0
	return fs
}

func (j *judge) effectAndRules() {
	t := j.d.Tool
	if j.parts = j.args; j.apart {
		j.parts = j.contract.Parts(j.args)
	}
	switch {
	case t != nil && j.contract != nil:
		j.d.Effect, j.rules = t.Effect(j.parts), t.rules(j.parts)
	case j.contract != nil:
		j.d.Effect, j.rules = j.contract.Effect, j.contract.Args
	}
	if j.in.Call.Method.Acts() {
		j.d.Effect |= policy.Egress // R32, whatever a case says
	}
}

// validate is the schema class, but for forms.
func (j *judge) validate() []writ.Failure {
	if j.in.Call.Method != policy.CallTool {
		return methodShape(j.in.Call.Method, j.args)
	}
	if j.governed() && j.d.Effect.Gated() {
		return nil // the memory judges its payloads, in the order its codes demand
	}
	return j.d.Tool.ValidateArguments(j.args)
}

// mend tries arguments that the schema does not admit again as it has them. Clients
// write null for what they leave out: where the schema neither admits nor demands it,
// it is not there. What the schema demands and gives a default for is that default: a
// server relies on what it demands, whatever it says of leaving it out. What comes of it
// has to be what the schema says, or the failures stand. It is judged, hashed and sent,
// a default by the rules for what the client wrote (R7).
func (j *judge) mend(invalid []writ.Failure) []writ.Failure {
	if j.strict || j.in.Call.Method != policy.CallTool {
		return invalid
	}
	args, s := j.args, j.d.Tool.Schema()
	for _, f := range invalid {
		path, err := strictjson.ParsePointer(f.Pointer)
		if err != nil || len(path) != 1 {
			return invalid
		}
		name, given := path[0], s.Default(path[0])
		switch {
		case f.Reason == writ.SchemaInvalid && args.Get(name).Kind() == strictjson.Null && !s.Requires(name):
			args = strictjson.Of(strictjson.Delete(args.Raw(), name))
		case f.Reason == writ.SchemaMissingField && s.Requires(name) && given.Exists():
			args = strictjson.Of(strictjson.Set(args.Raw(), name, given.Raw()))
		default:
			return invalid
		}
	}
	if args.Within(strictjson.Request) != nil || len(j.d.Tool.ValidateArguments(args)) > 0 {
		return invalid
	}
	j.args, j.mended = args, true
	j.effectAndRules() // a case may have been named by one
	return nil
}

// inParts reports whether a statement that nothing vouches for is one that is judged by its parts.
func (j *judge) inParts() bool {
	return !j.apart && !j.strict && j.contract != nil && slices.ContainsFunc(j.leaves, func(l *leaf) bool {
		return l.failed != "" && !l.answer && !l.key && len(l.path) == 1 && l.path[0] == j.contract.PartsAt
	}) && j.contract.Parts(j.args).Get(j.contract.PartsAt).Kind() == strictjson.Object
}

// leaveOut returns the arguments without those for which nothing vouches and which say no
// more than leaving them out (R7): clients write them for that. A server that takes one for
// something else is not told of it, for what is judged is what is sent. What says which case
// the call is stays.
func (j *judge) leaveOut() (less strictjson.Value, ok bool) {
	if j.strict || j.in.Call.Method != policy.CallTool {
		return less, false
	}
	less = j.args
	for _, l := range j.leaves {
		if l.failed == "" || l.answer || j.contract != nil && len(j.contract.CaseAt) > 0 && j.contract.CaseAt[0] == l.path[0] {
			continue
		}
		if name := l.path[0]; j.d.Tool.Schema().Idle(name, less.Get(name)) {
			less, ok = strictjson.Of(strictjson.Delete(less.Raw(), name)), true
		}
	}
	return less, ok && len(j.d.Tool.ValidateArguments(less)) == 0
}

// closed is what stands against the act whatever its arguments rest on: a
// closed contract, and the closures of R24.
func (j *judge) closed() {
	against := func(pointer string, r writ.Reason) {
		need := needs[r]
		if r != writ.PolicyClosed {
			need += "; ask the user for that (`writ session reopen " + shown(j.in.Session.id) + "` in a terminal of his own)"
		}
		j.against = append(j.against, writ.Failure{Pointer: pointer, Reason: r, Need: need})
	}
	if j.contract != nil && j.contract.Closed {
		against("", writ.PolicyClosed)
	}
	if j.over() {
		against("", writ.PolicySessionClosed)
	}
	for _, l := range j.leaves {
		if l.shut {
			against(l.pointer, writ.PolicyPointerClosed)
		}
	}
}

// acts holds the policy class of an act: R21, R25 and protected paths.
func (j *judge) acts() {
	against := func(pointer string, r writ.Reason) {
		j.against = append(j.against, writ.Failure{Pointer: pointer, Reason: r, Need: needs[r]})
	}
	decides, named, local := false, false, false
	for _, l := range j.leaves {
		if !l.answer && !l.key && !l.empty {
			names := (l.role == policy.Target || l.role == policy.Selector) && j.saysWhat(l)
			named = named || names
			decides = decides || names || l.role == policy.Amount && l.rule_ != ruleDue
		}
		local = local || j.isLocal(l)
		if l.contested && j.contract != nil && j.contract.Contested != policy.ContestedAccepted {
			against(l.pointer, writ.PolicyContested)
		}
	}
	if j.d.Effect&policy.Delete != 0 && !j.strict {
		decides = named // a number of records names none of them (R9)
	}
	if !decides && j.kept == keptNot && !j.saidSo() {
		against("", writ.PolicyNoArguments)
	}
	j.budgets(against)
	if last := j.repeated(); last != nil {
		j.against = append(j.against, writ.Failure{Reason: writ.PolicyRepeated, Need: last.need(j.in.Session.id)})
	}
	j.steering(local, against)
}

// rewrite returns the arguments with some leaves replaced (R17), all other
// literals as they were written.
func rewrite(v strictjson.Value, path []string, by map[string][]byte) []byte {
	switch v.Kind() {
	case strictjson.Object:
		out := []byte{'{'}
		for name, m := range v.Members() {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(out, strictjson.Quote(name)...), ':')
			out = append(out, rewrite(m, append(path, name), by)...)
		}
		return append(out, '}')
	case strictjson.Array:
		out := []byte{'['}
		for i, e := range v.Elements() {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, rewrite(e, append(path, itoa(i)), by)...)
		}
		return append(out, ']')
	}
	if r, ok := by[strictjson.Pointer(path)]; ok {
		return r
	}
	return v.Literal()
}

// closedCollection reports whether only the operator's or the user's own side
// can make a member of a collection appear (R28).
func (j *judge) closedCollection(name string) bool {
	if c, ok := j.in.Policy.Collections[name]; ok {
		return c.Closed
	}
	return name != "" && name == builtinCollection(j.in.Call.Server, name)
}

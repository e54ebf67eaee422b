package certificate

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/schema"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// answers stands before the pointer of an answer given inside a call (R31).
const answers = "answers:"

// call is a recorded call, taken apart.
type call struct {
	Call
	server, tool string // the name it is judged under: its tool, or its method (R32)
	method       policy.Method
	known        *gate.Tool
	contract     *policy.Contract // nil where there is none
	schema       *schema.Schema   // nil for a method
	rules        []policy.ArgRule
	args         strictjson.Value // as they are sent
	parts        strictjson.Value // as they are judged
	effect       policy.Effect
	leaves       []*leaf
	fields       []string // names of form fields in answers
	strict       bool
	governed     bool
	answer       uint32   // of a person, which it uses up
	moves        int      // calls before it that do, and itself; 0 where one of its server is under way
	on           string   // the host where it is done, "" where that is not known or makes no difference
	keptThere    bool     // a person allowed every call of its tool there
	acts         int      // acts that were made before it, and itself
	answersTo    []string // how answers may name it, once that was asked
}

// leaf is one value of a call, with its trace.
type leaf struct {
	*gate.Trace
	pointer string
	path    []string
	value   strictjson.Value // canonical, where the contract has it replaced (R17)
	sent    strictjson.Value // as it was written
	rule    *policy.ArgRule  // nil where the contract has none
	role    policy.Role
	key     bool // an object key that the schema does not name
	answer  bool
	alone   bool // the only member of an answer's object
	enum    bool // a member of an enum of the pinned schema

	contested bool
	apart     bool               // words have to be set apart as a name
	title     bool               // what something new is called, or what is entered, whose first letter he may have typed small
	lesser    bool               // what is written to, or entered, may have been typed in small letters
	proper    bool               // which a capital within a sentence does, where strangers are no members
	called    []provenance.Alias // what else users call it
	commands  bool               // it is what an act is told to do, which the user must have ordered
	aim       provenance.Aim     // of a number that the act is done to, what it is done to and where
	open      bool               // anyone can have made it appear (R28)
}

func (l *leaf) typ() provenance.Type {
	if l.rule == nil {
		return provenance.Untyped
	}
	return l.rule.Type
}

func (l *leaf) collection() string {
	if l.rule == nil {
		return ""
	}
	return l.rule.Collection
}

// authority is a leaf for which nothing but a constant vouches where it is empty.
func (l *leaf) authority() bool { return l.role.Authority() || l.key || l.answer }

// plain is an argument as the contract speaks of them.
func (l *leaf) plain() bool { return !l.key && !l.answer && !empty(l.value) }

// names is a leaf that says what the act is about.
func (l *leaf) names() bool { return l.role == policy.Target || l.role == policy.Selector }

// makes reports whether a leaf names what its act newly makes.
func (l *leaf) makes(c *call) bool { return l.rule != nil && l.rule.Makes && l.plain() && !c.strict }

// shows reports whether a call that did not fail says that what a leaf names is there.
func (l *leaf) shows(c *call) bool {
	return c.effect == policy.Read && l.rule != nil && l.rule.Shows && l.plain() && !c.strict
}

// missing reports whether a block of a result says what a contract says of a thing that is not there, or no block is text.
func (l *leaf) missing(result strictjson.Value) bool {
	texts := 0
	for i := 0; i < result.Get("content").Len(); i++ {
		said, text := result.Get("content").Find([]string{strconv.Itoa(i), "text"}).Text()
		if text {
			texts++
		}
		if _, _, is := strings.Cut(said, l.says()+l.rule.Missing); is && l.rule.Missing != "" {
			return true
		}
	}
	return l.rule.Missing != "" && texts == 0
}

// accepts reports whether a word of `from:` is one of the argument's.
func (c *call) accepts(l *leaf, kind policy.SourceKind, op ...string) bool {
	return slices.ContainsFunc(c.from(l), func(s policy.Source) bool {
		return s.Kind == kind && (len(op) == 0 || slices.Contains(op, s.Op))
	})
}

// from are the sources of an argument. What no contract names is accepted from the
// user and from outputs, an answer, which he did not ask for, from outputs alone.
func (c *call) from(l *leaf) []policy.Source {
	output := policy.Source{Kind: policy.FromOutput}
	switch {
	case l.rule != nil:
		return l.rule.From
	case l.answer || c.strict:
		return []policy.Source{output}
	}
	return policy.DefaultSources(policy.Target)
}

// target reports whether what anyone can have made appear does not do (R28, R29).
func (c *call) target(l *leaf) bool {
	if l.answer || c.method != policy.CallTool && l.collection() == "" {
		return true
	}
	if l.role == policy.Target {
		return l.rule != nil || !c.strict
	}
	return l.role == policy.Selector && c.implied()
}

// implied reports whether the selectors are the targets: a send without another one
// (R29). A target that the caller may leave out does not take that from them.
func (c *call) implied() bool {
	if c.effect&(policy.Send|policy.Egress|policy.Transfer) == 0 {
		return false
	}
	return !c.notice() && !slices.ContainsFunc(c.leaves, func(l *leaf) bool {
		return l.role == policy.Target && l.plain() && (l.rule != nil || !c.strict) && (c.method != policy.CallTool || c.schema.Requires(l.path[0]))
	})
}

// notice reports whether the call sends word of a change to those who stand in the record,
// and no text, no secret and to nobody else: then who is named in it is chosen as what is destroyed is.
func (c *call) notice() bool {
	return !c.strict && c.contract != nil && c.contract.Notice && c.effect&policy.Send != 0 && !slices.ContainsFunc(c.leaves, func(l *leaf) bool {
		return !empty(l.value) && (l.role == policy.Target || l.role == policy.SecretRole || l.role == policy.Content || l.role == policy.Query || l.answer || l.key)
	})
}

// destroys reports whether the user has to name the record (R9).
func (c *call) destroys() bool { return !c.strict && (c.effect&policy.Delete != 0 || c.notice()) }

// composes reports whether the call has a place for free text (R14).
func (c *call) composes() bool {
	return !c.strict && slices.ContainsFunc(c.leaves, func(l *leaf) bool { return !l.key && l.role == policy.Content && l.rule != nil && l.rule.Composed })
}

// read takes a call apart and puts each trace to its value. The record has to be one
// of these very bytes.
func (s *Session) read(in Call) (*call, error) {
	r := in.Record
	c := &call{Call: in, server: r.Server, tool: r.Tool, method: policy.Method(r.Method)}
	if c.method == "tools/call" {
		c.method = policy.CallTool
	} else {
		c.tool = r.Method
	}
	if in.Policy == nil || !isDigest(r.Policy, in.Policy.Digest) || !isDigest(r.Catalogue, in.Catalogue.Digest()) {
		return nil, wrong(nil, "it was decided by another policy or catalogue")
	}
	if r.Session != s.id || !s.isKeyed(r.Arguments, in.Arguments.Raw()) || !s.isKeyed(r.Answers, in.Answers.Raw()) {
		return nil, wrong(nil, "it is of another session or of other arguments")
	}
	c.strict = in.Policy.Profile == policy.Strict
	if c.known = in.Catalogue.Lookup(c.server, c.tool); c.known != nil {
		c.contract = c.known.Contract
	} else {
		c.contract = gate.MethodContract(c.server, c.method)
	}
	c.governed = c.server == policy.OwnServer
	if c.method == policy.CallTool {
		c.schema = c.known.Schema()
	}
	if c.args = in.Arguments; !c.args.Exists() {
		c.args = strictjson.Make()
	}
	c.mended()
	if c.parts = c.args; c.apart() {
		c.parts = c.contract.Parts(c.args)
	}
	c.rules = rulesOf(c.contract, c.parts)
	switch {
	case c.known != nil:
		c.effect = c.known.Effect(c.parts)
	case c.contract != nil:
		c.effect = c.contract.Effect
	default:
		c.effect = policy.EveryEffect
	}
	if c.method.Acts() {
		c.effect |= policy.Egress
	}
	c.walk(at{v: c.parts})
	if in.Answers.Exists() {
		c.walk(at{v: in.Answers, pointer: answers, answer: true})
	}
	if len(c.leaves) != len(r.Traces) {
		return nil, wrong(nil, "it has %d traces for %d values", len(r.Traces), len(c.leaves))
	}
	composes, aim := c.composes(), c.aim()
	for i, l := range c.leaves {
		l.Trace = &r.Traces[i]
		l.contested = l.Contested
		l.apart = (c.target(l) || l.names() && composes) && !l.key && c.effect&(policy.Send|policy.Egress|policy.Transfer) != 0
		text, is := l.value.Text()
		l.proper = c.closed(l.collection()) && (c.effect&(policy.Transfer|policy.Delete|policy.Auth) == 0 || l.makes(c)) && !s.letIn[guest{l.collection(), ""}] && !s.letIn[guest{l.collection(), bare(text)}] && !s.letIn[guest{"", bare(text)}]
		if is && !l.key {
			l.called = c.Policy.Collections[l.collection()].Called[text]
		}
		writes := l.typ() == provenance.Untyped && !l.key && !l.answer && c.effect&(policy.Egress|policy.Transfer|policy.Delete|policy.Auth) == 0
		entered := writes && l.role == policy.Content && l.rule != nil && len(l.rule.Orders) > 0
		l.title = writes && l.role == policy.Selector && l.collection() == "" || entered
		kind := policy.Write
		if l.rule != nil && len(l.rule.Orders) > 0 {
			kind = policy.Delete
		}
		l.lesser = entered ||
			l.names() && !l.key && !l.answer && !l.apart && c.closed(l.collection()) && (l.typ() == provenance.Untyped || l.typ() == provenance.Name) &&
				(l.rule == nil || !l.rule.Makes) && c.effect&^policy.Read == kind && c.contract != nil && len(c.contract.Outputs) == 0
		l.commands = l.role == policy.Query && c.effect&(policy.Write|policy.Delete|policy.Send|policy.Transfer|policy.Auth) != 0
		if l.counted() {
			l.aim = aim
		}
		role := l.role.String()
		if l.key {
			role = "key"
		}
		if l.Pointer != l.pointer || l.Role != role || !s.isNamed(l.Digest, l.typ(), l.value) {
			return nil, wrong(l, "the trace is of another value")
		}
	}
	if !slices.Equal(r.Effect, c.effect.Names()) {
		return nil, wrong(nil, "the call has another effect")
	}
	return c, nil
}

// isDigest reports whether a record names a digest.
func isDigest(text string, d [32]byte) bool {
	var b [71]byte
	return text == string(hex.AppendEncode(append(b[:0], "sha256:"...), d[:]))
}

// mended makes of the arguments what a transformed call was sent with, as far as the
// schema has it so: without members that need not be there and were null or their
// empty default, and with the defaults of members that were missing.
func (c *call) mended() {
	if c.Record.Status != writ.Transformed || c.method != policy.CallTool {
		return
	}
	var traced []string // the members that were judged, in their order
	for _, t := range c.Record.Traces {
		if path, err := strictjson.ParsePointer(t.Pointer); err == nil && len(path) > 0 && !slices.Contains(traced, path[0]) {
			traced = append(traced, path[0])
		}
	}
	for name, v := range c.args.Members() {
		idle := v.Kind() == strictjson.Null && !c.schema.Requires(name) || c.schema.Idle(name, v)
		if idle && !slices.Contains(traced, name) {
			c.args = strictjson.Of(strictjson.Delete(c.args.Raw(), name))
		}
	}
	for _, name := range traced {
		if given := c.schema.Default(name); given.Exists() && c.schema.Requires(name) && !c.args.Get(name).Exists() {
			c.args = strictjson.Of(strictjson.Set(c.args.Raw(), name, given.Raw()))
		}
	}
}

// apart reports whether a statement was judged by its parts: what stands in it was.
func (c *call) apart() bool {
	return !c.strict && c.contract != nil && c.contract.PartsAt != "" && slices.ContainsFunc(c.Record.Traces, func(t gate.Trace) bool {
		return strings.HasPrefix(t.Pointer, strictjson.Pointer([]string{c.contract.PartsAt})+"/")
	})
}

// isPart reports whether a path is one within such a statement.
func (c *call) isPart(path []string) bool {
	return c.apart() && len(path) > 1 && path[0] == c.contract.PartsAt
}

// rulesOf are the contract's rules, and those of the case that the arguments name.
func rulesOf(c *policy.Contract, args strictjson.Value) []policy.ArgRule {
	if c == nil {
		return nil
	}
	rules := slices.Clone(c.Args)
	if k := caseOf(c, args); k != nil {
		return append(rules, k.Args...)
	}
	return rules
}

// caseOf is the case that the arguments name, nil for none.
func caseOf(c *policy.Contract, args strictjson.Value) *policy.Case {
	if c.CaseAt == nil {
		return nil
	}
	which := args.Find(c.CaseAt)
	for i, k := range c.Cases {
		for _, v := range k.Values {
			if which.Exists() && schema.Equal(which, strictjson.Of(v)) || !which.Exists() && strictjson.KindOf(v) == strictjson.Null {
				return &c.Cases[i]
			}
		}
	}
	return nil
}

// matches reports whether a pattern names a path.
func matches(p provenance.Pattern, path []string) bool {
	if len(p.Tokens) != len(path) {
		return false
	}
	for i, t := range p.Tokens {
		if t != "*" && t != path[i] {
			return false
		}
	}
	return true
}

// exacter reports whether a pattern that names a path says more of it than another.
func exacter(p, than provenance.Pattern) bool {
	for i, t := range p.Tokens {
		if (t == "*") != (than.Tokens[i] == "*") {
			return t != "*"
		}
	}
	return false
}

func (c *call) ruleAt(path []string) (best *policy.ArgRule) {
	for i := range c.rules {
		if r := &c.rules[i]; matches(r.At, path) && (best == nil || exacter(r.At, best.At)) {
			best = r
		}
	}
	return best
}

// at is a place in the arguments or the answers.
type at struct {
	v       strictjson.Value
	path    []string
	pointer string
	answer  bool
	alone   bool
}

func (a at) below(token string, v strictjson.Value) at {
	a.path = append(slices.Clone(a.path), token)
	a.pointer += strictjson.Pointer([]string{token})
	a.v = v
	return a
}

// walk finds every value that is judged by itself, in the order of the document: each
// scalar, each empty container, and each key nobody but the caller chose (R16).
func (c *call) walk(in at) {
	for name, v := range in.v.Members() {
		m := in.below(name, v)
		if m.answer && own(m.path) {
			if len(m.path) > 2 {
				c.fields = append(c.fields, name)
			}
		} else if m.answer || !c.spelt(m.path) {
			key := m
			key.v = strictjson.StringOf(name)
			c.leaf(key, true)
		}
		m.alone = in.answer && in.v.Len() == 1
		c.walk(m)
	}
	for i, v := range in.v.Elements() {
		c.walk(in.below(strconv.Itoa(i), v))
	}
	if in.v.Len() == 0 && len(in.path) > 0 {
		c.leaf(in, false)
	}
}

// spelt reports whether the schema names a key, or the method does, or a line of the
// contract.
func (c *call) spelt(path []string) bool {
	if c.method != policy.CallTool {
		return len(path) == 1 || c.method == policy.Complete && len(path) == 2
	}
	for _, r := range c.rules {
		if on := r.At.Tokens; len(on) >= len(path) && on[len(path)-1] != "*" && matches(provenance.Pattern{Tokens: on[:len(path)]}, path) {
			return true
		}
	}
	return c.schema.NamesProperty(path)
}

// own reports whether a key of an answer is the protocol's, or a form's plain field.
func own(path []string) bool {
	name := path[len(path)-1]
	if len(path) == 2 {
		return slices.Contains([]string{"action", "content", "role", "model", "stopReason"}, name)
	}
	if _, err := strconv.ParseUint(name, 10, 32); err == nil && len(path) == 1 {
		return true
	}
	word := func(r rune) bool {
		return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	return name != "" && len(name) <= 64 && word(rune(name[0])) &&
		!strings.ContainsFunc(name, func(r rune) bool { return !word(r) && r != '-' && (r < '0' || r > '9') })
}

func (c *call) leaf(in at, key bool) {
	l := &leaf{pointer: in.pointer, path: in.path, value: in.v.Plain(), key: key, answer: in.answer, alone: in.alone}
	switch {
	case in.answer:
	case key:
		if r := c.ruleAt(in.path[:len(in.path)-1]); r != nil && r.Open {
			l.rule = r
		}
	default:
		if l.rule = c.ruleAt(in.path); l.rule == nil && empty(in.v) {
			l.rule = c.ruleAt(append(slices.Clone(in.path), "*"))
		}
		l.enum = c.schema.EnumMember(in.path, in.v)
	}
	if l.rule != nil {
		l.role = l.rule.Role
	}
	if c.governed {
		l.role = policy.Content
	}
	l.sent = l.value
	if c.effect.Gated() && !c.governed && l.rule != nil && l.rule.Normalise && !c.strict && !key && l.role.Authority() && !empty(l.value) {
		if canonical, already, why := provenance.Canonical(l.rule.Type, l.value); why == "" && !already {
			l.value = strictjson.StringOf(canonical)
		}
	}
	c.leaves = append(c.leaves, l)
}

// splitsHead reports whether a text is more than a line of the head that it stands in.
func (l *leaf) splitsHead() bool {
	s, _ := l.value.Text()
	return l.rule != nil && l.rule.Header && !l.key && (provenance.CheckText(l.value) != "" || strings.Contains(s, "=?"))
}

// forms checks that an act is one its tool and contract admit, and that what is sent
// is what was judged (R16, R17).
func (c *call) forms(s *Session) error {
	if c.method == policy.CallTool {
		if c.known == nil || c.known.State != gate.Open || c.contract == nil {
			return wrong(nil, "the tool was not open")
		}
		if !c.governed && len(c.known.ValidateArguments(c.forward())) > 0 {
			return wrong(nil, "the tool's schema does not admit it")
		}
	}
	if c.contract == nil || c.contract.Closed {
		return wrong(nil, "no contract opens it")
	}
	if i := slices.IndexFunc(c.leaves, (*leaf).splitsHead); i >= 0 && !c.governed {
		return wrong(c.leaves[i], "it is more than a line of a head")
	}
	for _, l := range c.leaves {
		if c.governed || empty(l.value) || !l.role.Authority() && !l.key {
			continue
		}
		person := slices.Contains([]string{"const", "grown", keptCall, "approval"}, l.Rule)
		if provenance.CheckText(l.value) != "" && !(person && l.names() && !l.key && !l.answer && l.typ() == provenance.Untyped && onLines(l.value)) {
			return wrong(l, "it holds what nobody sees")
		}
		if _, already, why := provenance.Canonical(l.typ(), l.value); !l.key && l.typ() != provenance.Untyped && (why != "" || !already) {
			return wrong(l, "it is not in canonical form")
		}
	}
	forwarded := ""
	if sent := c.forward(); !bytes.Equal(sent.Raw(), c.judged().Raw()) {
		forwarded = s.digest(sent.Raw())
	}
	if c.Record.Forwarded != forwarded || (c.Record.Status == writ.Transformed) != (forwarded != "") {
		return wrong(nil, "what is sent is not what was judged")
	}
	return nil
}

// judged are the arguments as they came.
func (c *call) judged() strictjson.Value {
	if !c.Arguments.Exists() {
		return strictjson.Make()
	}
	return c.Arguments
}

// forward are the arguments as they are sent: with what the contract replaces.
func (c *call) forward() strictjson.Value {
	by := map[string][]byte{}
	for _, l := range c.leaves {
		if !l.answer && !l.key && !bytes.Equal(l.value.Literal(), l.sent.Literal()) {
			by[l.pointer] = l.value.Raw()
		}
	}
	if len(by) == 0 {
		return c.args
	}
	return strictjson.Of(replaced(c.args, "", by))
}

func replaced(v strictjson.Value, pointer string, by map[string][]byte) []byte {
	var parts [][]byte
	switch v.Kind() {
	case strictjson.Object:
		for name, m := range v.Members() {
			parts = append(parts, slices.Concat(strictjson.Quote(name), []byte{':'}, replaced(m, pointer+strictjson.Pointer([]string{name}), by)))
		}
		return slices.Concat([]byte{'{'}, bytes.Join(parts, []byte{','}), []byte{'}'})
	case strictjson.Array:
		for i, e := range v.Elements() {
			parts = append(parts, replaced(e, pointer+"/"+strconv.Itoa(i), by))
		}
		return slices.Concat([]byte{'['}, bytes.Join(parts, []byte{','}), []byte{']'})
	}
	if new, ok := by[pointer]; ok {
		return new
	}
	return v.Literal()
}

// empty reports whether a value is one that only a constant vouches for.
func empty(v strictjson.Value) bool {
	text, _ := v.Text()
	switch v.Kind() {
	case strictjson.Number, strictjson.Bool:
		return false
	case strictjson.String:
		return text == ""
	}
	return true
}

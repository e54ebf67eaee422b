package gate

import (
	"slices"
	"strconv"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// answerPrefix stands before the pointer of an answer given inside a call
// (R31).
const answerPrefix = "answers:"

// leaf is one value of a call that is judged by itself: a scalar, an empty
// container, or an object key the schema does not name (R16).
type leaf struct {
	pointer string           // as it is reported
	pattern string           // the pointer with every index and every key the caller chose as "*"
	path    []string         // within the arguments or the answers
	value   strictjson.Value // of a key its name as a string
	text    string           // the decoded value of a string
	isText  bool
	empty   bool // null, "", [] or {}
	key     bool
	answer  bool
	// declined marks the one word of an answer that gives none (R31).
	declined bool
	lines    bool            // it has several, so only a person lets it pass (R17)
	guess    string          // R24: the set its refusal tells of, "" when it tells nothing
	shut     bool            // R24: it was not looked up, for too much was guessed at its pointer
	enum     bool            // a member of an enum of the pinned schema
	rule     *policy.ArgRule // nil when the contract names none
	role     policy.Role
	failed   writ.Reason         // why nothing vouches for it, "" where something does
	follows  bool                // R14: it fails for what else the call lacks, whom it goes to
	missing  string              // R14: the kinds of atoms in it that nothing vouches for
	spared   [][]provenance.Line // R38: what would have spared a person his yes to it
	placed   bool                // R38: it would count if a person cleared what other sessions lowered

	founded
}

// founded is what a leaf was found to rest on.
type founded struct {
	rule_     string // Trace.Rule
	label     writ.Label
	refs      []Ref
	contested bool
	open      bool                // it rests on what anyone can have made appear (R28)
	oneTime   bool                // the act uses it up (R19)
	newest    uint32              // the youngest evidence that vouches, for R23
	ordered   bool                // a constant by the user's phrase for it (R21)
	inside    bool                // it is in what other arguments say, and by itself is nobody (R36)
	supposes  [][]provenance.Line // R38: Fact.Rests of what it stood at
}

// collect takes the arguments and the answers apart, in document order.
func (j *judge) collect() {
	j.walk(spot{v: j.parts})
	if j.in.Call.Answers.Exists() {
		j.walk(spot{v: j.in.Call.Answers, pointer: answerPrefix, pattern: answerPrefix, answer: true})
	}
	j.noTarget = j.d.Effect&(policy.Send|policy.Egress|policy.Transfer) != 0
	for _, l := range j.leaves {
		j.composes = j.composes || j.isOpen(l)
		if l.role == policy.Target && !l.empty && !l.answer && !l.key && j.demanded(l) {
			j.noTarget = false
		}
	}
	j.notice = j.noTarget && !j.strict && j.contract != nil && j.contract.Notice && !slices.ContainsFunc(j.leaves, func(l *leaf) bool {
		return !l.empty && (l.role == policy.Target || l.role == policy.SecretRole || l.role == policy.Content || l.role == policy.Query || l.answer || l.key)
	})
	j.noTarget = j.noTarget && !j.notice
}

// demanded reports whether a target is one that every call of the tool has
// (R29). One that the agent may add does not make the thread it answers any
// less a target; under profile strict neither does what no contract declares.
func (j *judge) demanded(l *leaf) bool {
	if j.strict && l.rule == nil {
		return false
	}
	return j.in.Call.Method != policy.CallTool || j.d.Tool.Schema().Requires(l.path[0])
}

// spot is one place in the arguments or the answers on the way down.
type spot struct {
	v                strictjson.Value
	path             []string
	pointer, pattern string
	in               *array // the innermost array around it
	answer           bool
	alone            bool // the only member of its object
}

// array is one array of the arguments, for R16.
type array struct {
	outer   *array
	pointer string
	v       strictjson.Value // the array itself
	members int              // of an object: the members the schema does not name
	path    []string
	bound   int // the least bound of the leaves in it; 0 for none
	// authority says that one of them has authority: then none stands twice.
	authority bool
}

func (j *judge) member(s spot, name string, v strictjson.Value) (at spot, named bool) {
	s.path = append(s.path[:len(s.path):len(s.path)], name)
	step := strictjson.Pointer([]string{name})
	s.v, s.pointer = v, s.pointer+step
	if named = s.answer && answerKey(s.path) || !s.answer && j.namedKey(s.path); !named || s.answer {
		step = "/*"
	}
	s.pattern += step
	return s, named
}

// fieldName is what a form calls its fields.
var fieldName = text.Pattern(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// answerKey reports whether a key of an answer is the protocol's own, or the
// plain name of a field of a form. Any other key says something (R31, R16).
func answerKey(path []string) bool {
	switch name := path[len(path)-1]; len(path) {
	case 1:
		return fieldName().MatchString(name) || isIndex(name)
	case 2:
		return slices.Contains([]string{"action", "content", "role", "model", "stopReason"}, name)
	default:
		return fieldName().MatchString(name)
	}
}

// isIndex reports whether a name is a plain number, as the keys of answers are.
func isIndex(name string) bool {
	_, err := strconv.ParseUint(name, 10, 32)
	return err == nil
}

// mapOf is an object as a list of the members nobody named: where it holds
// recipients, they are bounded like those of an array (R16).
func (j *judge) mapOf(s spot) *array {
	if s.answer {
		return s.in
	}
	a := &array{outer: s.in, pointer: s.pointer, path: s.path}
	path := append(s.path[:len(s.path):len(s.path)], "")
	for name := range s.v.Members() {
		if path[len(s.path)] = name; !j.namedKey(path) {
			a.members++
		}
	}
	if a.members > 0 {
		j.lists = append(j.lists, a)
	}
	return a
}

func (s spot) element(i int, v strictjson.Value, a *array) spot {
	s.path = append(s.path[:len(s.path):len(s.path)], itoa(i))
	s.v, s.pointer, s.pattern, s.in = v, s.pointer+"/"+itoa(i), s.pattern+"/*", a
	return s
}

func (j *judge) walk(s spot) {
	kind, within := s.v.Kind(), s.v.Len()
	if kind == strictjson.Object || kind == strictjson.Array {
		if j.work += len(s.v.Raw()); j.work > maxWork {
			return
		}
	}
	switch kind {
	case strictjson.Object:
		group := j.mapOf(s)
		for name, m := range s.v.Members() {
			at, named := j.member(s, name, m)
			if !named {
				at.in = group
				key := at
				key.v = strictjson.StringOf(name)
				j.leaf(key, true)
			} else if s.answer && len(at.path) > 2 {
				j.fields = append(j.fields, strictjson.StringOf(name))
			}
			at.alone = s.answer && within == 1
			j.walk(at)
		}
	case strictjson.Array:
		a := &array{outer: s.in, pointer: s.pointer, path: s.path, v: s.v}
		if !s.answer {
			j.lists = append(j.lists, a)
		}
		for i, e := range s.v.Elements() {
			j.walk(s.element(i, e, a))
		}
	}
	if within > 0 {
		return
	}
	if len(s.path) > 0 { // {} itself is no argument
		j.leaf(s, false)
	}
}

func (j *judge) leaf(s spot, key bool) {
	l := &leaf{pointer: s.pointer, pattern: s.pattern, path: s.path, value: s.v.Plain(), key: key, answer: s.answer}
	l.text, l.isText = s.v.Text()
	switch s.v.Kind() {
	case strictjson.Null, strictjson.Object, strictjson.Array:
		l.empty = true
	case strictjson.String:
		l.empty = l.text == ""
	}
	switch {
	case s.answer:
		l.declined = s.alone && !key && len(s.path) == 2 && s.path[1] == "action" && (l.text == "decline" || l.text == "cancel")
	case key:
		// A contract that opens an object says there what its keys are.
		if r := j.ruleAt(s.path[:len(s.path)-1]); r != nil && r.Open {
			l.rule = r
		}
	default:
		l.rule = j.ruleAt(s.path)
		if l.rule == nil && l.empty {
			l.rule = j.ruleAt(append(slices.Clone(s.path), "*"))
		}
		l.enum = j.d.Tool.Schema().EnumMember(s.path, s.v)
	}
	if l.rule != nil {
		l.role = l.rule.Role
	}
	if j.governed() {
		l.role = policy.Content
	}
	j.leaves = append(j.leaves, l)
	if s.answer || s.in == nil {
		return
	}
	bound := 0
	if l.rule != nil {
		bound = l.rule.MaxItems
	}
	s.in.holds(bound, l.role.Authority())
	for a := s.in.outer; a != nil; a = a.outer {
		a.holds(0, l.role.Authority())
	}
}

// holds notes that an array holds a leaf: with the bound its rule states, 0 for
// none, and whether it has authority.
func (a *array) holds(bound int, authority bool) {
	a.authority = a.authority || authority
	if bound == 0 && authority {
		bound = 50
	}
	if bound > 0 && (a.bound == 0 || bound < a.bound) {
		a.bound = bound
	}
}

// namedKey reports whether the schema spells this key, or a rule of the contract does,
// so that nobody chose it.
func (j *judge) namedKey(path []string) bool {
	if j.in.Call.Method != policy.CallTool {
		return len(path) == 1 || j.in.Call.Method == policy.Complete && len(path) == 2
	}
	return j.d.Tool.Schema().NamesProperty(path) || slices.ContainsFunc(j.rules, func(r policy.ArgRule) bool { return r.At.Spells(path) })
}

// ruleAt returns the most exact rule for a path.
func (j *judge) ruleAt(path []string) *policy.ArgRule {
	var best *policy.ArgRule
	for i := range j.rules {
		r := &j.rules[i]
		if r.At.Match(path) && (best == nil || r.At.Beats(best.At)) {
			best = r
		}
	}
	return best
}

func itoa(i int) string { return strconv.Itoa(i) }

// typ is the declared type of a leaf.
func (l *leaf) typ() provenance.Type {
	if l.rule == nil {
		return provenance.Untyped
	}
	return l.rule.Type
}

// collection is the declared collection of a leaf.
func (l *leaf) collection() string {
	if l.rule == nil {
		return ""
	}
	return l.rule.Collection
}

// forms judges spelling and number of the values of an act (R16, R17). Its
// failures are of the class of the schema.
func (j *judge) forms() {
	fail := func(pointer string, r writ.Reason) {
		j.schema = append(j.schema, writ.Failure{Pointer: pointer, Reason: r, Need: needs[r]})
	}
	for _, l := range j.leaves {
		if l.empty || !l.role.Authority() && !l.key {
			continue
		}
		if r := provenance.CheckText(l.value); l.isText && r != "" {
			if l.lines = j.forPerson(l) && provenance.Lines(l.value); l.lines {
				continue
			}
			fail(l.pointer, r)
			continue
		}
		if l.typ() == provenance.Untyped || l.key {
			continue
		}
		canonical, already, why := provenance.Canonical(l.typ(), l.value)
		switch {
		case why != "":
			fail(l.pointer, why)
		case already:
		case l.rule.Normalise && !j.strict:
			if j.replaced == nil {
				j.replaced = map[string][]byte{}
			}
			// What is judged, hashed and sent are the same bytes.
			l.value, l.text = strictjson.StringOf(canonical), canonical
			j.replaced[l.pointer] = l.value.Raw()
		default:
			fail(l.pointer, writ.FormNotCanonical)
		}
	}
	j.heads(fail)
	for _, a := range j.lists {
		j.list(a, fail)
	}
	if len(j.replaced) > 0 && j.in.Call.Method == policy.CallTool {
		// The call that is made must satisfy the schema as well.
		j.schema = append(j.schema, j.d.Tool.ValidateArguments(strictjson.Of(rewrite(j.args, nil, j.replaced)))...)
	}
}

// heads judges what the server sets into the head of a message.
func (j *judge) heads(fail func(string, writ.Reason)) {
	for _, l := range j.leaves {
		if l.rule == nil || !l.rule.Header || l.key {
			continue
		}
		if r := provenance.CheckHeader(l.value); r != "" {
			fail(l.pointer, r)
		}
	}
}

// forPerson reports whether no tool's result can vouch for a target: then a text of
// several lines, as a statement or a manifest is, is for a person to look at, who sees
// where they end. What the user typed does not vouch for it, for whose lines run on into
// each other is told by nothing.
func (j *judge) forPerson(l *leaf) bool {
	return !j.strict && !l.key && !l.answer && l.rule != nil && l.typ() == provenance.Untyped && (l.role == policy.Target || l.role == policy.Selector) &&
		!slices.ContainsFunc(l.rule.From, func(s policy.Source) bool {
			return s.Kind != policy.FromUser && s.Kind != policy.FromApproval && s.Kind != policy.FromConst
		})
}

// list bounds an array: its length and, where it holds authority, that nothing
// stands in it twice (R16), or oftener than in the record that it is of (R37).
func (j *judge) list(a *array, fail func(string, writ.Reason)) {
	if a.bound > 0 && max(a.v.Len(), a.members) > a.bound {
		fail(a.pointer, writ.FormTooMany)
		return
	}
	if !a.authority {
		return
	}
	seen := map[string]int{}
	for i, e := range a.v.Elements() {
		k := ""
		if r := j.ruleAt(append(slices.Clone(a.path), itoa(i))); r != nil && r.Type != provenance.Untyped {
			k, _, _ = provenance.Canonical(r.Type, e)
		}
		// What is sent must not repeat itself, however it was spelt.
		sent := rewrite(e, append(slices.Clone(a.path), itoa(i)), j.replaced)
		if c, err := strictjson.Canonical(sent); k == "" && err == nil {
			k = string(c)
		}
		at := a.pointer + "/" + itoa(i)
		if seen[k]++; seen[k] > 1 && seen[k] > j.timesInRecord(at) {
			fail(at, writ.FormDuplicate)
		}
	}
}

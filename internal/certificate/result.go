package certificate

import (
	"cmp"
	"crypto/sha256"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// place is one value that a recorded result showed, and what the contract of its tool
// says of the place it stood at.
type place struct {
	evidence     uint32
	at           time.Time // when its result was recorded
	server, tool string
	// trail are the tokens from the result to the value, with a token of our own
	// before the JSON found in a text and for a line of one.
	trail []string
	tells []int // which of them are keys that tell one of several things apart
	value strictjson.Value
	key   bool
	rule  *provenance.OutputRule // nil where no output names it
	typ   provenance.Type
	owner []string // the trail of the record's owner, nil for none
	acts  int      // how many acts were made before
	// unread says that nobody else reads the record, which holds others beside the value.
	unread bool
	others [32]byte // a digest
	// by is the act that newly made it, and in are the arguments of that which say in what:
	// there alone it is something. Both are nil for all else.
	by *call
	in []provenance.Pattern

	label     writ.Label
	reflected bool     // R4 or R5 lowered it
	clear     bool     // nothing but its contract would have left it below system
	given     bool     // or what its call was asked with, and it is neither that nor holds it
	echoed    bool     // the model said it first
	listed    bool     // in a list of all there is
	found     bool     // by a search that shows every one of its name
	day       string   // the one which narrowed that search
	late      bool     // seen after an act that followed the user's latest turn
	opened    bool     // of a closed collection, and perhaps chosen from an open one (R28)
	alone     bool     // what stands beside it was put there by a model (R35)
	texts     []string // as which it may come back
	invented  bool     // what the act newly made, under a name that no evidence had
	lowered   bool     // places were lowered that it may come from (R38)
	unshown   bool     // Writ read it for itself: it says that a name is there, and no more (R36)
}

const innerJSON = "\x00json" // no token of a pointer that a result can have has a NUL before a word of ours

// split parts a trail where it goes on in the JSON of a text.
func split(trail []string) (outer, inner []string, is bool) {
	if i := slices.Index(trail, innerJSON); i >= 0 {
		return trail[:i], trail[i+1:], true
	}
	return trail, nil, false
}

func lineToken(n int) string { return "\x00line " + strconv.Itoa(n) }

// parts are what a trace names the place by: the tokens of its pointer, those of the pointer
// into the JSON of a text, and a line.
func (p *place) parts() (outer, inner []string, line int) {
	outer, inner, is := split(p.trail)
	if n, ok := strings.CutPrefix(p.trail[len(p.trail)-1], "\x00line "); ok && !is {
		outer = p.trail[:len(p.trail)-1]
		line, _ = strconv.Atoi(n)
	}
	if policy.Method(p.tool).Judged() {
		outer = outer[1:]
	}
	return outer, inner, line
}

// ref is how a trace names the place.
func (p *place) ref() gate.Ref {
	outer, inner, line := p.parts()
	return gate.Ref{Evidence: p.evidence, Tool: p.server + "/" + p.tool, Pointer: strictjson.Pointer(outer), Inner: strictjson.Pointer(inner), Line: line, Label: p.label}
}

// keys are what a place is found under: its exact value, its value as its type, and of
// a path its last element.
func (p *place) keys() []string {
	out := keysOf(p.value, p.typ)
	if base, ok := lastOf(p); ok {
		out = append(out, baseKey(base))
	}
	if text, ok := p.value.Text(); ok && p.rule != nil && !p.key {
		least := 2
		if p.isName() {
			least = 1
		}
		if k := casedKey(text, least); k != "" {
			out = append(out, k)
		}
	}
	return out
}

// casedKey is that of a name in any letters, "" for one with fewer words that are none with which a
// sentence goes on.
func casedKey(name string, least int) string {
	words := slices.DeleteFunc(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return unicode.IsSpace(r) || r == '_' }), provenance.GoesOn)
	if len(name) > 64 || len(words) < least {
		return ""
	}
	return "cased\x00" + strings.ReplaceAll(strings.ToLower(name), "_", " ")
}

func baseKey(name string) string { return "last\x00" + name }

func keysOf(v strictjson.Value, t provenance.Type) (out []string) {
	if c, _, why := provenance.Canonical(provenance.Untyped, v); why == "" {
		out = append(out, string(rune(v.Kind()))+"\x00"+c)
	}
	if c, _, why := provenance.Canonical(t, v); why == "" && t != provenance.Untyped {
		out = append(out, string(t)+"\x00"+c)
	}
	return out
}

// holding are the places that hold a value, exactly or as a type that they declare too,
// the earliest first.
func (s *Session) holding(v strictjson.Value, t provenance.Type) (out []*place) {
	keys := keysOf(v, t)
	for _, k := range keys {
		out = append(out, s.same[k]...)
	}
	if len(keys) > 1 {
		slices.SortStableFunc(out, func(a, b *place) int { return cmp.Compare(a.evidence, b.evidence) })
		out = slices.Compact(out)
	}
	return out
}

func (p *place) collection() string {
	if p.rule == nil {
		return ""
	}
	return p.rule.Collection
}

// member reports whether it stands for one of a collection.
func (p *place) member(collection string) bool {
	return collection != "" && p.rule != nil && p.rule.Collection == collection
}

// record is how much of the trail names the record that a value belongs to, which a
// user names it by (R9); ok is false for a value that is a record of its own.
func (p *place) record() (n int, ok bool) {
	n = len(p.trail)
	if p.key && !p.alone {
		return n, true
	}
	if p.alone || p.lists(n-1) {
		return 0, false
	}
	for n--; n > 1; n-- {
		if p.lists(n - 1) {
			return n, true
		}
	}
	return n, n == 1
}

// direct reports whether a place stands in a record of n tokens and in nothing within it.
func (p *place) direct(n int) bool { return len(p.trail) == n+1 || p.key && len(p.trail) == n }

// lists reports whether a token of the trail tells one of several things apart.
func (p *place) lists(i int) bool { return listing(p.trail[i]) || slices.Contains(p.tells, i) }

// listing reports whether a token tells one of several things apart.
func listing(token string) bool {
	if strings.HasPrefix(token, "\x00") {
		return true
	}
	return token == "0" || len(token) < 10 && token != "" && token[0] != '0' && strings.Trim(token, "0123456789") == ""
}

// within reports whether two places of one result share the first n tokens, which name
// a container around the second.
func within(p *place, in *place, n int) bool {
	return p.evidence == in.evidence && len(p.trail) >= n && slices.Equal(p.trail[:n], in.trail[:n])
}

// Result adds what a call was answered, if the log says that it may vouch. Who tells
// it has checked that with the log; what each value is worth is found here.
func (s *Session) Result(r Result) error {
	c, ok := s.calls[r.Call]
	delete(s.calls, r.Call)
	if c == nil {
		if !ok {
			return wrong(nil, "the result is of no call")
		}
		return nil // of shadow mode
	}
	x := &extraction{names: map[namedBy]*place{}, call: c, evidence: r.Evidence, at: r.Time, places38: r.Places}
	switch {
	case c.governed:
		x.recalled(r)
	case c.method != policy.CallTool:
		x.structured(r.Value, []string{"structuredContent"}, scope{})
	default:
		if err := x.toolResult(r.Value); err != nil {
			return err
		}
	}
	if c.Record.Look {
		x.places = slices.DeleteFunc(x.places, func(p *place) bool { return p.rule == nil || !p.rule.HasJoin })
	}
	s.label(x)
	s.ask(x)
	s.tell(x, r.Value)
	return nil
}

// asked is what a result was asked for with, by name.
type asked []strictjson.Member

func (a asked) called(name string) (out []strictjson.Value) {
	for _, m := range a {
		if m.Name == name {
			out = append(out, strictjson.Of(m.Value))
		}
	}
	return out
}

// ask keeps what a result was asked for with, where it can vouch for anything.
func (s *Session) ask(x *extraction) {
	if x.Record.Look || !slices.ContainsFunc(x.places, func(p *place) bool { return p.rule != nil }) {
		return
	}
	for name, v := range x.forward().Members() {
		s.askedWith[x.evidence] = append(s.askedWith[x.evidence], strictjson.Member{Name: name, Value: slices.Clone(v.Raw())})
	}
}

// End says that a call has an end without a result that could vouch.
func (s *Session) End(call uint64) { delete(s.calls, call) }

// extraction takes one result apart.
type extraction struct {
	*call
	evidence uint32
	at       time.Time
	outputs  []*provenance.OutputRule
	places   []*place
	names    map[namedBy]*place
	places38 bool
}

// toolResult is the result of a tool's call: structured content that the tool's schema
// admits, and what stands beside it.
func (x *extraction) toolResult(v strictjson.Value) error {
	if x.contract == nil || v.Kind() != strictjson.Object || v.Get("isError").Exists() && string(v.Get("isError").Raw()) != "false" {
		return wrong(nil, "a result that cannot vouch is evidence")
	}
	content := v.Get("structuredContent")
	valid := x.known.ValidateOutput(content)
	if x.known.HasOutputSchema() && !valid {
		return wrong(nil, "a result that its schema does not admit is evidence")
	}
	outputs := x.contract.Outputs
	if x.contract.Plain && !x.known.HasOutputSchema() {
		outputs = withFields(outputs, v)
	}
	for i := range outputs {
		if o := &outputs[i]; o.InText || valid {
			x.outputs = append(x.outputs, o)
		}
	}
	for name, m := range v.Members() {
		switch name {
		case "_meta", "isError", "resultType":
		case "structuredContent":
			x.structured(m, []string{name}, scope{})
		case "content":
			for i, b := range m.Elements() {
				x.block(i, b)
			}
		default:
			x.unnamed(m, []string{name})
		}
	}
	sure := !slices.ContainsFunc(x.leaves, func(l *leaf) bool {
		carries := l.Label
		if l.Rule == grownOutput || l.Rule == keptCall {
			carries = min(carries, writ.External)
		}
		return (l.names() || l.role == policy.Amount || l.role == policy.SecretRole) && carries < writ.System && l.Rule != "approval" && l.Rule != "derived:fresh"
	})
	for _, l := range x.leaves {
		made := sure && l.makes(x.call)
		if _, _, why := provenance.Canonical(l.typ(), l.value); !made && !l.shows(x.call) || why != "" || !made && l.missing(v) {
			continue
		}
		x.add(l.value, append([]string{arguments}, l.path...), &provenance.OutputRule{Label: writ.System, Type: l.typ(), Collection: l.collection(), Creates: made, Authoritative: !made}, l.typ(), false, scope{})
		if made {
			p := x.places[len(x.places)-1]
			p.by, p.in = x.call, l.rule.In
		}
	}
	return nil
}

// arguments is the head of the trail of what a call made or showed that stands in its arguments.
const arguments = "arguments"

// allowed reports whether a person allowed the act that made it.
func (p *place) allowed() bool { return p.invented && p.label == writ.External }

// argued reports whether a place is an argument of its act, and what that made.
func (p *place) argued() bool { return p.rule != nil && p.trail[0] == arguments }

// scope is what stands around a value: the trail of the record that its owner is looked
// for in, and the tokens of its own trail that tell one of several things apart.
type scope struct {
	owner  []string
	record strictjson.Value
	tells  []int
}

// member is the scope of a member of an object, which a table keeps several of.
func (sc scope) member(table bool, v strictjson.Value, trail []string) scope {
	if table {
		sc.tells = append(slices.Clone(sc.tells), len(trail)-1)
		if v.Kind() == strictjson.Object {
			sc.owner, sc.record = trail, v
		}
	}
	return sc
}

// element is the scope of an element of an array.
func (sc scope) element(v strictjson.Value, trail []string) scope {
	if v.Kind() == strictjson.Object {
		sc.owner, sc.record = trail, v
	}
	return sc
}

// table reports whether an output tells the members of the object at a path apart: it
// names their keys, or a value below whichever of them.
func table(p provenance.Pattern, keys bool, path []string) bool {
	if keys || len(p.Tokens) < len(path)+2 {
		return keys && matches(p, path)
	}
	return p.Tokens[len(path)] == "*" && matches(provenance.Pattern{Tokens: p.Tokens[:len(path)]}, path)
}

// structured adds every value of structured content, and every key and piece of text
// that an output names.
func (x *extraction) structured(v strictjson.Value, trail []string, in scope) {
	if x.method != policy.CallTool && x.outputs == nil {
		for i := range x.contract.Outputs {
			x.outputs = append(x.outputs, &x.contract.Outputs[i])
		}
	}
	path := trail[1:]
	if in.owner == nil {
		in.owner, in.record = trail, v
	}
	several := v.Kind() == strictjson.Object && slices.ContainsFunc(x.outputs, func(o *provenance.OutputRule) bool {
		return !o.InText && table(o.At, o.Keys, path)
	})
	for name, m := range v.Members() {
		at := append(slices.Clone(trail), name)
		of := in.member(several, m, at)
		if o := x.best(path, func(o *provenance.OutputRule) (provenance.Pattern, bool) {
			return o.At, o.Keys && !o.InText && o.Extract == provenance.NoExtract
		}); o != nil {
			x.add(strictjson.StringOf(name), at, o, o.Type, true, of)
		}
		x.structured(m, at, of)
	}
	for i, e := range v.Elements() {
		at := append(slices.Clone(trail), strconv.Itoa(i))
		x.structured(e, at, in.element(e, at))
	}
	if v.Len() > 0 {
		return
	}
	o := x.best(path, func(o *provenance.OutputRule) (provenance.Pattern, bool) {
		return o.At, !o.InText && !o.Keys && o.Extract == provenance.NoExtract
	})
	x.add(v, trail, o, typeOf(o), false, in)
	taken := x.best(path, func(o *provenance.OutputRule) (provenance.Pattern, bool) {
		return o.At, !o.InText && o.Extract != provenance.NoExtract
	})
	if taken != nil {
		x.apart(v, trail, func(o *provenance.OutputRule) bool {
			return !o.InText && o.Extract != provenance.NoExtract && slices.Equal(o.At.Tokens, taken.At.Tokens)
		})
	}
}

func typeOf(o *provenance.OutputRule) provenance.Type {
	if o == nil {
		return provenance.Untyped
	}
	return o.Type
}

// best is the most exact output of those that name a path.
func (x *extraction) best(path []string, of func(*provenance.OutputRule) (provenance.Pattern, bool)) (best *provenance.OutputRule) {
	var top provenance.Pattern
	for _, o := range x.outputs {
		if p, ok := of(o); ok && matches(p, path) && (best == nil || exacter(p, top)) {
			best, top = o, p
		}
	}
	return best
}

// block is one content block.
func (x *extraction) block(n int, b strictjson.Value) {
	trail := []string{"content", strconv.Itoa(n)}
	kind, _ := b.Get("type").Text()
	if b.Kind() != strictjson.Object {
		x.unnamed(b, trail)
	}
	for name, v := range b.Members() {
		below := append(slices.Clone(trail), name)
		switch {
		case name == "type" || name == "_meta" || name == "annotations":
		case name != "text" || kind != "text" || v.Kind() != strictjson.String:
			x.unnamed(v, below)
		default:
			of := func(apart bool) func(o *provenance.OutputRule) bool {
				return func(o *provenance.OutputRule) bool {
					return o.InText && o.Block == n && (o.Extract != provenance.NoExtract) == apart
				}
			}
			var whole *provenance.OutputRule
			if i := slices.IndexFunc(x.outputs, of(false)); i >= 0 {
				whole = x.outputs[i]
			}
			x.add(v, below, whole, typeOf(whole), false, scope{})
			x.apart(v, below, of(true))
		}
	}
}

// unnamed adds what no output can name.
func (x *extraction) unnamed(v strictjson.Value, trail []string) {
	for name, m := range v.Members() {
		x.unnamed(m, append(slices.Clone(trail), name))
	}
	for i, e := range v.Elements() {
		x.unnamed(e, append(slices.Clone(trail), strconv.Itoa(i)))
	}
	if last := trail[len(trail)-1]; v.Len() == 0 && last != "data" && last != "blob" {
		x.add(v, trail, nil, provenance.Untyped, false, scope{})
	}
}

// add adds a value. One that is not of the type that its output declares is named by
// none.
func (x *extraction) add(v strictjson.Value, trail []string, o *provenance.OutputRule, t provenance.Type, key bool, in scope) {
	p := &place{evidence: x.evidence, at: x.at, server: x.server, tool: x.tool, trail: trail, tells: in.tells, value: v.Plain(), key: key}
	if _, _, why := provenance.Canonical(t, v); o != nil && why == "" {
		if p.rule, p.typ = o, t; o.HasOwner && in.owner != nil {
			p.owner = slices.Concat(in.owner, o.Owner)
		}
		if o.HasReaders && in.owner != nil && (slices.Equal(trail, in.owner) || slices.Equal(trail[:len(trail)-1], in.owner)) {
			at := namedBy{o, strictjson.Pointer(in.owner)}
			if other, more := x.names[at]; more {
				other.unread = false
			} else {
				x.names[at] = p
				p.readers(in.record, o.Readers)
			}
		}
	}
	x.places = append(x.places, p)
}

// namedBy is a record that an output names by one thing in it.
type namedBy struct {
	rule *provenance.OutputRule
	at   string
}

// readers finds whether anybody reads the record of a place, and what it holds beside that.
func (p *place) readers(record strictjson.Value, at []string) {
	who := record.Find(at)
	k := who.Kind()
	p.unread = (k == strictjson.Array || k == strictjson.Object) && who.Len() == 0
	var others []byte
	for name, m := range record.Members() {
		if name != p.trail[len(p.trail)-1] {
			others = append(append(append(others, strictjson.Quote(name)...), m.Raw()...), 0)
		}
	}
	p.others = sha256.Sum256(others)
}

// apart takes a text apart, by lines or as JSON (R33).
func (x *extraction) apart(text strictjson.Value, trail []string, chosen func(*provenance.OutputRule) bool) {
	i := slices.IndexFunc(x.outputs, chosen)
	s, ok := text.Text()
	if i < 0 || !ok {
		return
	}
	o := x.outputs[i]
	if o.Extract == provenance.ExtractJSON {
		if doc, err := strictjson.Parse([]byte(s), strictjson.Result); err == nil {
			x.inner(doc, append(slices.Clone(trail), innerJSON), scope{}, chosen)
		}
		return
	}
	if o.Extract == provenance.ExtractTree {
		x.tree(o, s, append(slices.Clone(trail), innerJSON))
		return
	}
	if o.Extract == provenance.ExtractStart {
		if m := o.Pattern.FindStringSubmatchIndex(s); len(m) > 3 && m[0] == 0 && m[2] >= 0 {
			x.add(strictjson.StringOf(s[m[2]:m[3]]), append(slices.Clone(trail), lineToken(1+strings.Count(s[:m[2]], "\n"))), o, o.Type, false, scope{})
		}
		return
	}
	found := x.lines(o, s)
	for n, line := range strings.Split(s, "\n") {
		v, ok := found[n]
		if !ok || line == "" {
			continue
		}
		t, of := o.Type, o
		if o.HasJoin && t == provenance.Untyped {
			t = provenance.Path
		}
		if v.outside {
			of, t = nil, provenance.Untyped
		}
		x.add(strictjson.StringOf(v.text), append(slices.Clone(trail), lineToken(n+1)), of, t, false, scope{})
	}
}

// lineValue is what one line names.
type lineValue struct {
	text    string
	outside bool // a name that is none
}

// lines are the values of a text's lines, by the number of the line: none if one of
// them could have been forged.
func (x *extraction) lines(o *provenance.OutputRule, s string) map[int]lineValue {
	dir, known := x.directory(o)
	if o.HasJoin && !known {
		return nil
	}
	found := map[int]lineValue{}
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i, line := range lines {
		control := strings.ContainsFunc(line, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) })
		m := whole(o.Pattern, line)
		if control || m == nil || line == "" && m[1] >= 0 {
			return nil
		}
		if m[1] < 0 {
			continue
		}
		v := lineValue{text: line[m[0]:m[1]]}
		if o.HasJoin {
			if v, control = below(dir, v.text); control {
				return nil
			}
		}
		found[i] = v
	}
	return found
}

// directory is the one whose names an output joins.
func (x *extraction) directory(o *provenance.OutputRule) (dir string, known bool) {
	if o.HasJoin {
		var why writ.Reason
		dir, _, why = provenance.Canonical(provenance.Path, x.forward().Find(o.Join))
		known = why == ""
	}
	return dir, known
}

// tree adds the paths of a tree of names, unless one of them is none.
func (x *extraction) tree(o *provenance.OutputRule, s string, trail []string) {
	type node struct {
		list  strictjson.Value
		dir   string
		trail []string
	}
	doc, err := strictjson.Parse([]byte(s), strictjson.Result)
	root, known := x.directory(o)
	if err != nil || !known {
		return
	}
	var add []func()
	for todo := []node{{doc, root, trail}}; len(todo) > 0; {
		n := todo[0]
		todo = todo[1:]
		if n.list.Kind() != strictjson.Array {
			return
		}
		for i, e := range n.list.Elements() {
			at := append(slices.Clone(n.trail), strconv.Itoa(i))
			name, _ := e.Get("name").Text()
			v, forged := below(n.dir, name)
			if forged || name[0] == '/' {
				return
			}
			children := e.Get("children")
			if v.outside {
				add = append(add, func() {
					x.add(strictjson.StringOf(name), append(at, "name"), nil, provenance.Untyped, false, scope{})
				})
			} else {
				add = append(add, func() {
					x.add(strictjson.StringOf(v.text), append(at, "name"), o, provenance.Path, false, scope{})
				})
			}
			if children.Exists() && !v.outside {
				todo = append(todo, node{children, v.text, append(slices.Clone(at), "children")})
			} else if children.Exists() && children.Kind() != strictjson.Array {
				return
			}
		}
	}
	for _, f := range add {
		f()
	}
}

// whole matches a line from its first byte to its last, and returns where group 1 is.
func whole(p *regexp.Regexp, line string) []int {
	if p == nil {
		return nil
	}
	m := p.FindStringSubmatchIndex(line)
	if len(m) < 4 || m[0] != 0 || m[1] != len(line) {
		return nil
	}
	return m[2:4]
}

// below is the path of a name that was listed in a directory. forged says that no
// listing of it can hold the name.
func below(dir, name string) (v lineValue, forged bool) {
	full := name
	if !strings.HasPrefix(name, "/") {
		if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
			return v, true
		}
		full = strings.TrimSuffix(dir, "/") + "/" + name
	} else if root := strings.TrimSuffix(dir, "/") + "/"; !strings.HasPrefix(name, root) || name == root || strings.HasSuffix(name, "/") || dotted(name) {
		return v, true
	}
	if canonical, already, _ := provenance.Canonical(provenance.Path, strictjson.StringOf(full)); !already || canonical != full {
		return lineValue{text: name, outside: true}, false
	}
	return lineValue{text: full}, false
}

// dotted reports whether a path has an element that is empty or of dots.
func dotted(path string) bool {
	return slices.ContainsFunc(strings.Split(path[1:], "/"), func(e string) bool { return e == "" || e == "." || e == ".." })
}

// inner adds the values of the JSON found in a text.
func (x *extraction) inner(v strictjson.Value, trail []string, in scope, chosen func(*provenance.OutputRule) bool) {
	path := trail[slices.Index(trail, innerJSON)+1:]
	if in.owner == nil {
		in.owner, in.record = trail, v
	}
	named := func(keys bool) *provenance.OutputRule {
		return x.best(path, func(o *provenance.OutputRule) (provenance.Pattern, bool) {
			return o.Pointer, o.Keys == keys && chosen(o)
		})
	}
	several := v.Kind() == strictjson.Object && slices.ContainsFunc(x.outputs, func(o *provenance.OutputRule) bool {
		return !o.Unasked && chosen(o) && table(o.Pointer, o.Keys, path)
	})
	for name, m := range v.Members() {
		at := append(slices.Clone(trail), name)
		of := in.member(several, m, at)
		if o := named(true); o != nil {
			x.add(strictjson.StringOf(name), at, o, o.Type, true, of)
		}
		x.inner(m, at, of, chosen)
	}
	for i, e := range v.Elements() {
		at := append(slices.Clone(trail), strconv.Itoa(i))
		x.inner(e, at, in.element(e, at), chosen)
	}
	if v.Len() == 0 {
		o := named(false)
		x.add(v, trail, o, typeOf(o), false, in)
	}
}

// recalled adds what the governed memory answered, as structured content or else as an
// object in its text: a value that it says it captured is worth what it was captured at,
// under profile strict nothing; all else is a model's.
func (x *extraction) recalled(r Result) {
	for name, v := range r.Value.Members() {
		switch name {
		case "_meta", "isError", "resultType":
		case "content":
			for i, b := range v.Elements() {
				if text := b.Get("text"); text.Exists() {
					at := []string{name, strconv.Itoa(i), "text"}
					x.recalledFrom(r.Recalled, text, at)
					x.recalledFrom(r.Recalled, r.inText(text), append(at, innerJSON))
				}
			}
		default:
			x.recalledFrom(r.Recalled, v, []string{name})
		}
	}
}

// inText is the object in a text of a result that has no structured content.
func (r *Result) inText(text strictjson.Value) (none strictjson.Value) {
	words, _ := text.Text()
	doc, err := strictjson.Parse([]byte(words), strictjson.Result)
	if err != nil || doc.Kind() != strictjson.Object || r.Value.Get("structuredContent").Exists() {
		return none
	}
	return doc
}

// recalledFrom adds the values of a part of such an answer.
func (x *extraction) recalledFrom(captured []provenance.Recalled, v strictjson.Value, trail []string) {
	for name, m := range v.Members() {
		x.recalledFrom(captured, m, append(slices.Clone(trail), name))
	}
	for i, e := range v.Elements() {
		x.recalledFrom(captured, e, append(slices.Clone(trail), strconv.Itoa(i)))
	}
	if v.Len() > 0 || !v.Exists() {
		return
	}
	o := &provenance.OutputRule{Label: writ.Model}
	if k := capturedAt(captured, trail); k != nil && !x.strict {
		if _, _, why := provenance.Canonical(k.Type, v); why == "" {
			o = &provenance.OutputRule{Label: k.Label, Type: k.Type, Collection: k.Collection, Authoritative: true}
		}
	}
	x.add(v, trail, o, o.Type, false, scope{})
	x.places[len(x.places)-1].alone = true
}

// capturedAt is what the memory says of a place, the least where it says two things.
func capturedAt(captured []provenance.Recalled, trail []string) (least *provenance.Recalled) {
	outer, inner, _ := split(trail)
	for i := range captured {
		if k := &captured[i]; k.Pointer == strictjson.Pointer(outer) && k.Inner == strictjson.Pointer(inner) && (least == nil || k.Label < least.Label) {
			least = k
		}
	}
	return least
}

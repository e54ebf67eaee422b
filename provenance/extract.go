package provenance

import (
	"crypto/sha256"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// Leaf is one value of a result and the rule that names it.
type Leaf struct {
	Value strictjson.Value // text an extractor found, and a key, are strings
	Rule  *OutputRule      // nil: nobody vouches for it, its label is external
	Type  Type             // the rule's, Path for a joined name, Untyped without a rule
	Key   bool             // an object key

	at      *step
	beside  bool // outside structuredContent
	alone   bool // in a record a model put together (R35)
	record  *record
	ranks   []rankOf // what each of its rule's ranks says of it
	owner   string   // untyped form of the owner leaf, "" for none
	ownerAt int      // its index among the leaves, plus 1
	made    bool     // an argument of the call: what the act newly made
	in      []string // its Arg.In
	unread  bool     // nobody but its owner reads its record, and none beside it is just like it
}

// step is one step of the way from the result object to a leaf. Leaves share
// the steps of their containers, so that depth costs no leaf anything.
type step struct {
	parent *step
	token  string // of a key or index
	line   int    // or a line of the text above
	inner  bool   // or from the text above into the JSON it holds
	member bool   // the key tells one of several things apart, as an index does
}

// steps are what the steps of one result are made of, many at a time.
type steps []step

func (ss *steps) from(at *step, token string) *step {
	if len(*ss) == cap(*ss) {
		*ss = make(steps, 0, min(max(8, 2*cap(*ss)), 1024))
	}
	*ss = append(*ss, step{parent: at, token: token})
	return &(*ss)[len(*ss)-1]
}

// record is the innermost object around a leaf that is an array element or a member
// of a table, else the root.
type record struct {
	v       strictjson.Value
	at      *step
	element bool
}

// Extracted is what Extraction found.
type Extracted struct {
	Leaves []Leaf // in document order
	// Voided names the rules whose declared extraction failed (R33): none of
	// their leaves is here, the text itself is, as external.
	Voided []string
}

// Extraction takes a checked result object apart under the rules of its tool.
// Every leaf of structuredContent is there once, with the most specific rule
// that names it or none; so is every leaf of what stands beside it (content,
// contents, messages …), where a rule can only name the text of one text block.
// What an extractor found in a text follows the text. arguments is the call's
// checked arguments object, which `join` reads. An error result has no leaves.
//
// A value that is not of the type its rule declares is left without a rule:
// the issuer's guarantee was about another kind of value.
func Extraction(rules []OutputRule, result, arguments strictjson.Value) Extracted {
	x := extraction{rules: rules, arguments: arguments}
	if e := result.Get("isError"); e.Exists() && string(e.Raw()) != "false" {
		return Extracted{}
	}
	for name, v := range result.Members() {
		switch name {
		case "_meta", "isError", "resultType":
		case "structuredContent":
			w := walker{leaf: x.structured, key: x.key, table: x.table, steps: &x.steps}
			w.walk(v, x.steps.from(nil, name))
		case "content":
			at := x.steps.from(nil, name)
			for i, b := range v.Elements() {
				x.block(i, b, x.steps.from(at, strconv.Itoa(i)))
			}
		default:
			x.unnamed(v, x.steps.from(nil, name))
		}
	}
	x.ranks()
	x.owners()
	return x.out
}

// arguments stands for a call's arguments at the head of a pointer into its result.
const arguments = "arguments"

// Confirmed returns, as leaves of a result, the arguments of which it says by not being an
// error that they are there. Of what an act newly makes there was none before (R13); what
// the act is about and is worth less than system has to be a person's yes, or a name of
// the agent's own, else it made nothing that counts. What a read shows is there as if a
// list had it: whoever chose the name, the server found it, and said of several nothing else of it.
func Confirmed(args []Arg, result strictjson.Value) (out []Leaf) {
	unsure := slices.ContainsFunc(args, func(a Arg) bool { return a.Decides && a.Label < writ.System && !a.Allowed && !a.Fresh })
	for i := range args {
		a := &args[i]
		tokens, err := strictjson.ParsePointer(a.Pointer)
		made := a.Makes && !unsure
		if _, _, why := Canonical(a.Type, a.Value); !made && !a.Shows || err != nil || why != "" || a.lacks(result) {
			continue
		}
		at := &step{token: arguments}
		for _, t := range tokens {
			at = &step{parent: at, token: t}
		}
		out = append(out, Leaf{Value: a.Value, Type: a.Type, at: at, made: made, in: a.In,
			Rule: &OutputRule{At: Pattern{Source: "/" + arguments + a.Pointer}, Label: writ.System, Type: a.Type, Collection: a.Collection, Creates: made, Authoritative: a.Shows}})
	}
	return out
}

// lacks reports whether a text of a result says that what a read was asked for is not there, or there is none that could.
// A file that says so of another one hides it.
func (a *Arg) lacks(result strictjson.Value) bool {
	if a.Missing == "" {
		return false
	}
	name, _ := a.Value.Text()
	said := false
	for _, b := range result.Get("content").Elements() {
		text, is := b.Get("text").Text()
		if said = said || is; strings.Contains(text, name+a.Missing) {
			return true
		}
	}
	return !said
}

type extraction struct {
	rules     []OutputRule
	arguments strictjson.Value
	steps     steps
	out       Extracted
}

// walker visits every leaf and key of a value once: path holds the tokens below
// the value and is only valid during the call.
type walker struct {
	leaf  func(path []string, at *step, v strictjson.Value, in *record)
	key   func(path []string, at *step, name string, in *record) // with the step and record of its member
	table func(path []string) bool                               // whether an object keeps several things by their keys
	steps *steps
	path  []string
}

func (w *walker) walk(v strictjson.Value, at *step) { w.value(v, at, &record{v: v, at: at}) }

func (w *walker) value(v strictjson.Value, at *step, in *record) {
	within := false
	table := v.Kind() == strictjson.Object && w.table != nil && w.table(w.path)
	for name, m := range v.Members() {
		below := w.steps.from(at, name)
		within, below.member = true, table
		of := in.around(m, below, table)
		if w.key != nil {
			w.key(w.path, below, name, of)
		}
		w.child(m, below, of)
	}
	for i, e := range v.Elements() {
		within = true
		below := w.steps.from(at, strconv.Itoa(i))
		w.child(e, below, in.around(e, below, true))
	}
	if !within {
		w.leaf(w.path, at, v, in)
	}
}

// child visits what stands one step below.
func (w *walker) child(v strictjson.Value, at *step, in *record) {
	w.path = append(w.path, at.token)
	w.value(v, at, in)
	w.path = w.path[:len(w.path)-1]
}

// around is the record around a value that stands in one: the value itself, if it is an object and
// one of several things.
func (r *record) around(v strictjson.Value, at *step, several bool) *record {
	if several && v.Kind() == strictjson.Object {
		return &record{v: v, at: at, element: true}
	}
	return r
}

// tabulates reports whether a rule says that the object at a path keeps several things
// by their keys: it names the keys, or leaves a key open on the way to a value below.
func tabulates(p Pattern, keys bool, path []string) bool {
	if keys {
		return p.Match(path)
	}
	n := len(path)
	return len(p.Tokens) > n+1 && p.Tokens[n] == wildcard && Pattern{Tokens: p.Tokens[:n]}.Match(path)
}

// structured is a leaf of structuredContent.
func (x *extraction) structured(path []string, at *step, v strictjson.Value, in *record) {
	i := x.best(path, func(r *OutputRule) bool { return !r.Keys && r.Extract == NoExtract })
	base := Leaf{Value: v, at: at, record: in}
	x.add(base, i)
	j := x.best(path, func(r *OutputRule) bool { return r.Extract != NoExtract })
	if j < 0 {
		return
	}
	x.takeApart(base, func(r *OutputRule) bool {
		return !r.InText && r.Extract != NoExtract && slices.Equal(r.At.Tokens, x.rules[j].At.Tokens)
	})
}

// best returns the index of the most specific of some rules for a path in structuredContent, -1 for none.
func (x *extraction) best(path []string, of func(*OutputRule) bool) int {
	return best(len(x.rules), path, func(i int) (Pattern, bool) { return x.rules[i].At, !x.rules[i].InText && of(&x.rules[i]) })
}

// key is a key of an object in structuredContent: a leaf only if a rule names it.
func (x *extraction) key(path []string, at *step, name string, in *record) {
	i := x.best(path, func(r *OutputRule) bool { return r.Keys && r.Extract == NoExtract })
	if i >= 0 {
		x.add(Leaf{Value: strictjson.StringOf(name), Key: true, at: at, record: in}, i)
	}
}

// table reports whether an object in structuredContent keeps several things by key.
func (x *extraction) table(path []string) bool {
	return slices.ContainsFunc(x.rules, func(r OutputRule) bool { return !r.InText && tabulates(r.At, r.Keys, path) })
}

// block is one content block. Each is read for itself, so no record spans two.
func (x *extraction) block(i int, b strictjson.Value, at *step) {
	kind, _ := b.Get("type").Text()
	if b.Kind() != strictjson.Object {
		x.unnamed(b, at)
		return
	}
	for name, v := range b.Members() {
		if name == "type" || name == "_meta" || name == "annotations" {
			continue
		}
		if name != "text" || kind != "text" || v.Kind() != strictjson.String {
			x.unnamed(v, x.steps.from(at, name))
			continue
		}
		text := Leaf{Value: v, at: x.steps.from(at, name), beside: true}
		whole := slices.IndexFunc(x.rules, func(r OutputRule) bool {
			return r.InText && r.Block == i && r.Extract == NoExtract
		})
		x.add(text, whole)
		x.takeApart(text, func(r *OutputRule) bool {
			return r.InText && r.Block == i && r.Extract != NoExtract
		})
	}
}

// unnamed adds every leaf of a value no rule can name. Binary data is left out.
func (x *extraction) unnamed(v strictjson.Value, at *step) {
	w := walker{steps: &x.steps, leaf: func(_ []string, at *step, v strictjson.Value, _ *record) {
		if at.token != "data" && at.token != "blob" {
			x.add(Leaf{Value: v, at: at, beside: true}, -1)
		}
	}}
	w.walk(v, at)
}

// add adds a leaf under the rule of index i (-1: none) if its value is of the
// type the rule declares.
func (x *extraction) add(l Leaf, i int) {
	if i >= 0 {
		r := &x.rules[i]
		t := r.Type
		if l.Type != Untyped {
			t = l.Type
		}
		if _, _, why := Canonical(t, l.Value); why == "" {
			l.Rule, l.Type = r, t
		} else {
			l.Type = Untyped
		}
	}
	l.Value = l.Value.Plain() // its text is read many times
	x.out.Leaves = append(x.out.Leaves, l)
}

// recordOf is one record as a rule sees it.
type recordOf struct {
	rule *OutputRule
	in   *record
}

// owners resolves the owner pointers of the rules within their records (R28),
// once for each record, and whether anybody else reads it (R14). An owner counts only as a leaf of its own: its label is
// judged where those of all leaves are.
func (x *extraction) owners() {
	known := map[recordOf]string{}
	for i := range x.out.Leaves {
		l := &x.out.Leaves[i]
		if l.Rule == nil || !l.Rule.HasOwner || l.record == nil {
			continue
		}
		l.owner = once(known, recordOf{l.Rule, l.record}, func() (owner string) {
			if v := l.record.v.Find(l.Rule.Owner); v.Exists() && !empty(v) {
				owner, _ = exact(v)
			}
			return owner
		})
	}
	x.readers()
	x.ownersAt(known)
	for i := range x.out.Leaves {
		if r := x.out.Leaves[i].record; r != nil {
			r.v = strictjson.Value{} // what it holds is needed no more, which leaves share it is
		}
	}
}

// readers marks the leaves of records that nobody but their owner reads, unless another record is
// just like it.
func (x *extraction) readers() {
	namedBy := map[recordOf]*Leaf{} // a record's name, if its rule names one thing in it
	for i := range x.out.Leaves {
		l := &x.out.Leaves[i]
		if l.Rule != nil && l.Rule.HasReaders && l.record != nil && (l.at == l.record.at || l.at.parent == l.record.at) {
			at := recordOf{l.Rule, l.record}
			_, more := namedBy[at]
			if namedBy[at] = l; more {
				namedBy[at] = nil
			}
		}
	}
	type twin struct {
		rule   *OutputRule
		others [32]byte
	}
	twins := map[twin][]*Leaf{}
	for at, l := range namedBy {
		if l == nil {
			continue
		}
		v := at.in.v.Find(at.rule.Readers)
		if k := v.Kind(); (k == strictjson.Array || k == strictjson.Object) && v.Len() == 0 {
			alike := twin{at.rule, others(at.in.v, l.at.token)}
			twins[alike] = append(twins[alike], l)
		}
	}
	for _, same := range twins {
		for _, l := range same {
			l.unread = len(same) == 1
		}
	}
}

// ownersAt finds the leaves that the owners of records stand in.
func (x *extraction) ownersAt(known map[recordOf]string) {
	type from struct {
		at   *step
		rule *OutputRule
	}
	index := map[from]int{}
	rules := map[*OutputRule]bool{}
	for p := range known {
		rules[p.rule] = true
	}
	for i := range x.out.Leaves {
		for r := range rules {
			if top := x.out.Leaves[i].above(r.Owner); top != nil {
				index[from{top, r}] = i + 1
			}
		}
	}
	for i := range x.out.Leaves {
		if l := &x.out.Leaves[i]; l.owner != "" {
			l.ownerAt = index[from{l.record.at, l.Rule}]
		}
	}
}

// others is a digest of what a record holds beside one member.
func others(record strictjson.Value, name string) [32]byte {
	var b []byte
	for n, v := range record.Members() {
		if n != name {
			b = append(append(append(b, strictjson.Quote(n)...), v.Raw()...), ',')
		}
	}
	return sha256.Sum256(b)
}

// inList reports whether a leaf stands in one of several records: an element of an
// array, a line, or below a key or index that its rule leaves open. A plain value
// of a list is its record's.
func (l *Leaf) inList() bool {
	if l.record != nil && l.record.element {
		return true
	}
	if l.Rule == nil {
		return false
	}
	path := slices.Concat(l.Rule.At.Tokens, l.Rule.Pointer.Tokens)
	return l.Rule.Extract == ExtractLines || l.Rule.Extract == ExtractTree ||
		len(path) > 1 && slices.ContainsFunc(path[:len(path)-1], func(t string) bool { return t == "*" || digits(t) })
}

// above returns the container a leaf stands in at the end of path, nil if it
// does not.
func (l *Leaf) above(path []string) *step {
	at := l.at
	if l.Key {
		return nil
	}
	for i := len(path) - 1; i >= 0; i-- {
		if at == nil || at.line > 0 || at.inner || at.token != path[i] {
			return nil
		}
		at = at.parent
	}
	return at
}

// takeApart applies the chosen rules to one text leaf. All of them are
// extractors of one kind, or the start was stopped (Conflict).
func (x *extraction) takeApart(text Leaf, chosen func(*OutputRule) bool) {
	first := 0
	for first < len(x.rules) && !chosen(&x.rules[first]) {
		first++
	}
	if first == len(x.rules) {
		return
	}
	r := &x.rules[first]
	s, ok := text.Value.Text()
	var found []Leaf
	switch {
	case !ok:
	case r.Extract == ExtractLines:
		found, ok = x.lines(r, text, s)
	case r.Extract == ExtractTree:
		found, ok = x.tree(r, text, s)
	case r.Extract == ExtractStart:
		found, ok = begins(r, text, s)
	case r.Extract == ExtractJSON:
		ok = x.json(text, s, chosen)
	default:
		ok = false
	}
	if !ok {
		x.out.Voided = append(x.out.Voided, source(r))
	}
	for _, l := range found {
		i := first
		if l.Rule == nil {
			i = -1
		}
		l.Rule = nil
		x.add(l, i)
	}
}

// source names a rule in facts and reports.
func source(r *OutputRule) string {
	if r.InText {
		return "text/" + strconv.Itoa(r.Block) + r.Pointer.Source
	}
	return r.At.Source + r.Pointer.Source
}

// lines takes a text apart into lines (R33). ok is false, and nothing is
// found, if any line could have been forged: one that holds another control or
// line separator, one the pattern does not match whole, or under join a name
// with a separator or a path outside the directory asked for. A line may match
// without group 1 taking part (a heading): it holds no value. Only after the
// last LF may a line be empty. A name that is well bounded but not in canonical
// form is found without the rule.
func (x *extraction) lines(r *OutputRule, text Leaf, s string) (found []Leaf, ok bool) {
	dir := ""
	if r.HasJoin {
		if dir, ok = x.directory(r); !ok {
			return nil, false
		}
	}
	lines := strings.Split(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for i, line := range lines {
		v, holds, fits := r.lineOf(line)
		if !fits {
			return nil, false
		}
		if !holds {
			continue
		}
		l := Leaf{at: &step{parent: text.at, line: i + 1}, beside: text.beside, Rule: r}
		if r.HasJoin {
			joined, fits := below(dir, v)
			if !fits {
				return nil, false
			}
			if joined == "" {
				l.Rule = nil
			} else {
				v, l.Type = joined, Path
			}
		}
		l.Value = strictjson.StringOf(v)
		found = append(found, l)
	}
	return found, true
}

// begins takes out of a text what it begins with.
func begins(r *OutputRule, text Leaf, s string) (found []Leaf, ok bool) {
	m := r.Pattern.FindStringSubmatchIndex(s)
	if len(m) < 4 || m[0] != 0 || m[2] < 0 {
		return nil, false
	}
	at := &step{parent: text.at, line: 1 + strings.Count(s[:m[2]], "\n")}
	return []Leaf{{Value: strictjson.StringOf(s[m[2]:m[3]]), at: at, beside: text.beside, Rule: r}}, true
}

// lineOf returns what a line holds, if anything; it does not fit where it could have been forged.
func (r *OutputRule) lineOf(line string) (v string, holds, fits bool) {
	if strings.ContainsFunc(line, separates) || r.Pattern == nil {
		return "", false, false
	}
	m := r.Pattern.FindStringSubmatchIndex(line)
	if len(m) < 4 || m[0] != 0 || m[1] != len(line) || line == "" && m[2] >= 0 {
		return "", false, false
	}
	if m[2] < 0 {
		return "", false, true
	}
	return line[m[2]:m[3]], true, true
}

// directory returns the one whose names a rule joins: with a slash at its end it is the same.
func (x *extraction) directory(r *OutputRule) (dir string, ok bool) {
	dir, _, why := Canonical(Path, x.arguments.Find(r.Join))
	return dir, why == ""
}

// tree takes a text apart into the paths of a tree of names (R33). ok is false, and
// nothing is found, if it is no such tree or has a name that is none. What is below a name
// not in canonical form is not found.
func (x *extraction) tree(r *OutputRule, text Leaf, s string) (found []Leaf, ok bool) {
	doc, err := strictjson.Parse([]byte(s), strictjson.Result)
	dir, ok := x.directory(r)
	var list func(v strictjson.Value, dir string, at *step) bool
	list = func(v strictjson.Value, dir string, at *step) bool {
		for i, e := range v.Elements() {
			here, children := x.steps.from(at, strconv.Itoa(i)), e.Get("children")
			name, is := e.Get("name").Text()
			joined, single := below(dir, name)
			if !is || !single || strings.Contains(name, "/") || children.Exists() && children.Kind() != strictjson.Array {
				return false
			}
			l := Leaf{at: x.steps.from(here, "name"), beside: text.beside, Rule: r, Type: Path, Value: strictjson.StringOf(joined)}
			if joined == "" {
				l.Rule, l.Type, l.Value = nil, Untyped, e.Get("name")
			}
			found = append(found, l)
			if joined != "" && !list(children, joined, x.steps.from(here, "children")) {
				return false
			}
		}
		return true
	}
	if !ok || err != nil || doc.Kind() != strictjson.Array || !list(doc, dir, &step{parent: text.at, inner: true}) {
		return nil, false
	}
	return found, true
}

// separates reports whether some reader ends a line at r.
func separates(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) }

// below returns the path a listed name means under dir. fits is false if it
// could not have been listed there; joined is "" for a name that could but is
// not in canonical form.
func below(dir, v string) (joined string, fits bool) {
	root := strings.TrimSuffix(dir, "/") + "/"
	if strings.HasPrefix(v, "/") {
		if !strings.HasPrefix(v, root) || v == root || path.Clean(v) != v {
			return "", false
		}
		if c, why := absolutePath(v); why != "" || c != v || visible(v) != "" {
			return "", true
		}
		return v, true
	}
	if v == "" || v == "." || v == ".." || strings.Contains(v, "/") {
		return "", false
	}
	joined, _ = JoinPath(dir, v)
	return joined, true
}

// json reads the whole text as one strict JSON value. Its leaves are those of
// one document: records and owners are found within it.
func (x *extraction) json(text Leaf, s string, chosen func(*OutputRule) bool) bool {
	doc, err := strictjson.Parse([]byte(s), strictjson.Result)
	if err != nil {
		return false
	}
	named := func(path []string, keys bool) int {
		return best(len(x.rules), path, func(i int) (Pattern, bool) {
			return x.rules[i].Pointer, x.rules[i].Keys == keys && chosen(&x.rules[i])
		})
	}
	w := walker{steps: &x.steps, leaf: func(path []string, at *step, v strictjson.Value, in *record) {
		x.add(Leaf{Value: v, at: at, beside: text.beside, record: in}, named(path, false))
	}, key: func(path []string, at *step, name string, in *record) {
		if i := named(path, true); i >= 0 {
			x.add(Leaf{Value: strictjson.StringOf(name), Key: true, at: at, beside: text.beside, record: in}, i)
		}
	}, table: func(path []string) bool {
		return slices.ContainsFunc(x.rules, func(r OutputRule) bool { return !r.Unasked && chosen(&r) && tabulates(r.Pointer, r.Keys, path) })
	}}
	w.walk(doc, &step{parent: text.at, inner: true})
	return true
}

// Recalled names a leaf of what a memory returned that stands verbatim in an
// observation it captured, and what that observation was stored with (R35).
type Recalled struct {
	Pointer    string     `json:"pointer"`         // into the result object
	Inner      string     `json:"inner,omitempty"` // and into the JSON of the text there
	Label      writ.Label `json:"label"`
	Type       Type       `json:"type,omitempty"`
	Collection string     `json:"collection,omitempty"`
	// From is the evidence the observation captured, s_…/ev12. It is for the
	// record; nothing is decided on it.
	From string `json:"from,omitempty"`
}

// Recall takes a memory's result object apart. A leaf that is recalled has the
// label it was stored with, and an argument that asked for it does not lower
// it; every other leaf is a model's, wherever it stands. A name that fits no
// leaf is passed over, and a value that is not of its type is a model's.
//
// A result without structuredContent has that in its text: an object there is taken
// apart too, but for what is JSON in its own texts, which anybody may have written.
func Recall(result strictjson.Value, stored []Recalled) []Leaf {
	r := recalling{at: make(map[pointers]*OutputRule, len(stored))}
	for _, s := range stored {
		at := pointers{s.Pointer, s.Inner}
		if o := r.at[at]; o == nil || s.Label < o.Label { // named twice: the lower label counts
			r.at[at] = &OutputRule{At: Pattern{Source: s.Pointer}, Pointer: Pattern{Source: s.Inner}, Label: s.Label, Type: s.Type, Collection: s.Collection, Authoritative: true}
		}
	}
	typed := result.Get("structuredContent").Exists()
	for name, v := range result.Members() {
		top := r.steps.from(nil, name)
		switch name {
		case "_meta", "isError", "resultType":
		case "content":
			for i, b := range v.Elements() {
				if text := b.Get("text"); text.Exists() {
					r.text(text, r.steps.from(r.steps.from(top, strconv.Itoa(i)), "text"), !typed)
				}
			}
		default:
			r.walk(v, top)
		}
	}
	return r.out
}

// recalling takes a memory's result apart.
type recalling struct {
	at    map[pointers]*OutputRule
	steps steps
	out   []Leaf
}

func (r *recalling) walk(v strictjson.Value, at *step) {
	w := walker{leaf: r.leaf, steps: &r.steps}
	w.walk(v, at)
}

var modelled = &OutputRule{Label: writ.Model}

func (r *recalling) leaf(_ []string, at *step, v strictjson.Value, in *record) {
	l := Leaf{Value: v, at: at, record: in, alone: true, Rule: modelled}
	if o := r.at[at.pointers()]; o != nil {
		if _, _, why := Canonical(o.Type, v); why == "" {
			l.Rule, l.Type = o, o.Type
		}
	}
	r.out = append(r.out, l)
}

// text is that of a content block; apart says that it is the result's only form.
func (r *recalling) text(v strictjson.Value, at *step, apart bool) {
	r.leaf(nil, at, v, nil)
	words, is := v.Text()
	if !is || !apart {
		return
	}
	if doc, err := strictjson.Parse([]byte(words), strictjson.Result); err == nil && doc.Kind() == strictjson.Object {
		r.walk(doc, &step{parent: at, inner: true})
	}
}

// pointers are those from a result object to a value, and from a text there into its JSON.
type pointers struct{ outer, inner string }

func (at *step) pointers() (p pointers) {
	var tokens []string
	for ; at != nil; at = at.parent {
		if at.inner {
			slices.Reverse(tokens)
			p.inner, tokens = strictjson.Pointer(tokens), nil
			continue
		}
		tokens = append(tokens, at.token)
	}
	slices.Reverse(tokens)
	p.outer = strictjson.Pointer(tokens)
	return p
}

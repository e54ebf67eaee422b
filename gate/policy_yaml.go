package gate

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/writ-project/writ/internal/strictjson"
)

const (
	policyBytes = 1 << 20
	policyDepth = 64
	maxFaults   = 200
)

// reader collects the faults of one policy while its nodes are read. It knows
// YAML and no word of a policy.
type reader struct {
	file     string
	faults   []Fault
	warned   []Fault
	outputAt map[*Contract][]*yaml.Node // where each output stands, for lint
}

func (r *reader) at(line, col int, message, hint string) {
	r.faults = append(r.faults, Fault{r.file, line, col, message, hint})
}

func (r *reader) fault(n *yaml.Node, message, hint string) { r.at(n.Line, n.Column, message, hint) }

func (r *reader) warn(n *yaml.Node, message, hint string) {
	r.warned = append(r.warned, Fault{r.file, n.Line, n.Column, message, hint})
}

// sorted returns faults in the order of the file, each once, and not more than
// a person can use.
func sorted(fs []Fault) []Fault {
	slices.SortFunc(fs, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Message, b.Message), strings.Compare(a.Hint, b.Hint))
	})
	fs = slices.Compact(fs)
	if len(fs) > maxFaults {
		last := fs[maxFaults]
		fs = append(fs[:maxFaults:maxFaults], Fault{last.File, last.Line, last.Column, "more faults follow from here on", "correct these first"})
	}
	return fs
}

// word quotes a key or word of the file for a message: escaped, and short.
func word(s string) string {
	if utf8.RuneCountInString(s) > 40 {
		s = string([]rune(s)[:40]) + "…"
	}
	return strconv.QuoteToASCII(s)
}

// parse turns the bytes into the one document's root node. Everything YAML
// offers beyond plain mappings, lists and scalars is a fault: what a person
// reads in the file is what stands there.
func (r *reader) parse(b []byte) *yaml.Node {
	if len(b) > policyBytes {
		r.at(1, 1, "the file is larger than 1 MiB", "")
		return nil
	}
	if !r.characters(b) {
		return nil
	}
	var doc, second yaml.Node
	loader, err := yaml.NewLoader(bytes.NewReader(b), yaml.WithUniqueKeys(false))
	if err == nil {
		err = loader.Load(&doc)
	}
	switch {
	case errors.Is(err, io.EOF): // nothing in it
	case err != nil:
		r.syntax(err, b)
		return nil
	default:
		if err = loader.Load(&second); err == nil {
			r.fault(&second, "a second document", "one file, one policy")
			return nil
		} else if !errors.Is(err, io.EOF) {
			r.syntax(err, b)
			return nil
		}
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || isNull(doc.Content[0]) {
		r.at(1, 1, "the file is empty", "a policy has at least the key tools")
		return nil
	}
	root := doc.Content[0]
	if !r.plain(root, 0) {
		return nil
	}
	return root
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// characters refuses what does not belong into a text a person answers for.
func (r *reader) characters(b []byte) bool {
	line, col, before := 1, 1, len(r.faults)
	for i := 0; i < len(b); {
		c, n := utf8.DecodeRune(b[i:])
		switch {
		case c == utf8.RuneError && n == 1:
			r.at(line, col, "not valid UTF-8", "save the file as UTF-8")
			return false
		case c == 0xFEFF && i == 0:
			r.at(line, col, "the file starts with a byte order mark", "save the file as UTF-8 without one")
			return false
		case c == 0:
			r.at(line, col, "a NUL character", "is this a text file?")
			return false
		case c == '\t':
			r.at(line, col, "a tab", "use spaces")
		case c == '\r':
			if i+1 >= len(b) || b[i+1] != '\n' {
				r.at(line, col, "a carriage return inside a line", "end lines with a line feed")
			}
		case c != '\n' && hidden(string(c)):
			r.at(line, col, "an invisible or control character", "remove it, or write it as an escape in double quotes")
		}
		if i, col = i+n, col+1; c == '\n' {
			line, col = line+1, 1
		}
		if len(r.faults)-before > maxFaults {
			return false
		}
	}
	return len(r.faults) == before
}

func (r *reader) syntax(err error, b []byte) {
	line, col, message := 1, 1, "not a YAML document that can be read"
	var le *yaml.LoadError
	if errors.As(err, &le) {
		line, col = max(le.Mark.Line, 1), max(le.Mark.Column, 1)
		switch m := le.Message; {
		case strings.Contains(m, "anchor"):
			message = "anchors and aliases are not allowed"
		case m != "":
			message = "not valid YAML: " + strings.Trim(strconv.QuoteToASCII(m[:min(len(m), 100)]), `"`)
		}
	}
	if lines := bytes.Count(b, []byte("\n")) + 1; line > lines {
		line, col = lines, 1
	}
	r.at(line, col, message, "")
}

// plain reports whether the tree holds nothing but untagged scalars, lists and
// mappings with string keys, each key once.
func (r *reader) plain(n *yaml.Node, depth int) bool {
	before := len(r.faults)
	switch {
	case depth > policyDepth:
		r.fault(n, "nested deeper than 64", "")
		return false
	case n.Kind == yaml.AliasNode:
		r.fault(n, "anchors and aliases are not allowed", "write the value out")
		return false
	case n.Anchor != "":
		r.fault(n, "anchors and aliases are not allowed", "write the value out")
	case n.Style&yaml.TaggedStyle != 0:
		r.fault(n, "tags are not allowed", "write the plain value")
	}
	if n.Kind == yaml.MappingNode {
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			switch {
			case k.Kind == yaml.AliasNode:
			case k.Kind != yaml.ScalarNode || k.ShortTag() == "!!null":
				r.fault(k, "a key must be a word", "")
			case k.ShortTag() == "!!merge":
				r.fault(k, "merge keys are not allowed", "write the values out")
			case seen[k.Value]:
				r.fault(k, "the key "+word(k.Value)+" stands twice", "remove one")
			}
			seen[k.Value] = true
		}
	}
	for _, c := range n.Content {
		r.plain(c, depth+1)
	}
	return len(r.faults) == before
}

// Readers of single values. Each keeps its node, nil when the key is absent.
type (
	place struct{ node *yaml.Node }
	text  struct {
		place
		s string
	}
	truth struct {
		place
		is bool
	}
	whole struct {
		place
		n     int
		valid bool
	}
	words struct {
		place
		items []text
	}
	consts struct {
		place
		items [][]byte
	}
	anything     struct{ place }
	entry[T any] struct {
		key   *yaml.Node
		value T
	}
	mapping[T any] struct {
		place
		entries []entry[T]
	}
	list[T any] struct {
		place
		items []T
	}
)

func (p *place) set(n *yaml.Node) { p.node = n }

func (p place) given() bool { return p.node != nil }

type readable interface{ read(r *reader, n *yaml.Node) }

func (t *text) read(r *reader, n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		r.fault(n, "text is expected here", "put quotes around it if it is meant as text")
		return
	}
	t.s = n.Value
}

func (f *truth) read(r *reader, n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || n.Style != 0 || n.Value != "true" && n.Value != "false" {
		r.fault(n, "true or false is expected here", "")
		return
	}
	f.is = n.Value == "true"
}

func (w *whole) read(r *reader, n *yaml.Node) {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.Style != 0 || err != nil || strconv.Itoa(v) != n.Value || v < 0 || v > 1_000_000 {
		r.fault(n, "a whole number is expected here", "")
		return
	}
	w.n, w.valid = v, true
}

// read takes one word or a list of them.
func (w *words) read(r *reader, n *yaml.Node) {
	in := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		in = n.Content
	}
	for _, c := range in {
		var t text
		t.set(c)
		t.read(r, c)
		w.items = append(w.items, t)
	}
}

func (c *consts) read(r *reader, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		r.fault(n, "a list of constants is expected here", "write [a, b]")
		return
	}
	for _, e := range n.Content {
		if b, ok := r.toJSON(e); ok {
			c.items = append(c.items, b)
		}
	}
}

func (*anything) read(*reader, *yaml.Node) {}

func (m *mapping[T]) read(r *reader, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		r.fault(n, "a mapping is expected here", "")
		return
	}
	m.entries = make([]entry[T], len(n.Content)/2)
	for i := range m.entries {
		e := &m.entries[i]
		e.key = n.Content[2*i]
		r.value(n.Content[2*i+1], &e.value)
	}
}

func (l *list[T]) read(r *reader, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		r.fault(n, "a list is expected here", "write [a, b], or - a on lines of their own")
		return
	}
	l.items = make([]T, len(n.Content))
	for i, c := range n.Content {
		r.value(c, &l.items[i])
	}
}

// value reads a node into one of the types above, or into a struct whose
// fields are, by their yaml tags. A key without a field is a fault.
func (r *reader) value(n *yaml.Node, into any) {
	if p, ok := into.(interface{ set(*yaml.Node) }); ok {
		p.set(n)
	}
	if v, ok := into.(readable); ok {
		v.read(r, n)
		return
	}
	if n.Kind != yaml.MappingNode {
		r.fault(n, "a mapping is expected here", "")
		return
	}
	v := reflect.ValueOf(into).Elem()
	fields := map[string]int{}
	var known []string
	for i := range v.NumField() {
		if tag := v.Type().Field(i).Tag.Get("yaml"); tag != "" {
			fields[tag] = i
			known = append(known, tag)
		}
	}
	later, _ := into.(interface{ later() []string })
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		switch f, ok := fields[k.Value]; {
		case ok:
			r.value(n.Content[i+1], v.Field(f).Addr().Interface())
		case later != nil && slices.Contains(later.later(), k.Value):
			r.fault(k, word(k.Value)+" is not yet enforced", "remove it: this version would not keep what it promises")
		default:
			r.fault(k, "unknown key "+word(k.Value), nearest(k.Value, known))
		}
	}
}

// toJSON turns a node into JSON. A scalar whose JSON spelling could be read in
// two ways (010, 0x10, yes, a date) is a fault.
func (r *reader) toJSON(n *yaml.Node) ([]byte, bool) {
	switch n.Kind {
	case yaml.SequenceNode:
		out := []byte{'['}
		ok := true
		for i, c := range n.Content {
			b, good := r.toJSON(c)
			if ok = ok && good; i > 0 {
				out = append(out, ',')
			}
			out = append(out, b...)
		}
		return append(out, ']'), ok
	case yaml.MappingNode:
		out := []byte{'{'}
		ok := true
		for i := 0; i+1 < len(n.Content); i += 2 {
			b, good := r.toJSON(n.Content[i+1])
			if ok = ok && good; i > 0 {
				out = append(out, ',')
			}
			out = append(append(append(out, strictjson.Quote(n.Content[i].Value)...), ':'), b...)
		}
		return append(out, '}'), ok
	}
	b := []byte(n.Value)
	switch n.ShortTag() {
	case "!!str":
		return strictjson.Quote(n.Value), true
	case "!!null":
		if n.Value == "null" {
			return b, true
		}
	case "!!bool":
		if n.Value == "true" || n.Value == "false" {
			return b, true
		}
	case "!!int", "!!float":
		if strictjson.KindOf(b) == strictjson.Number && strictjson.Check(b, strictjson.Limits{Number: 64}) == nil {
			return b, true
		}
	}
	r.fault(n, "this value can be read in two ways", "put it in quotes if it is text, or write it as JSON does")
	return []byte("null"), false
}

// nearest returns a hint that names the known key closest to k, or all of them.
func nearest(k string, known []string) string {
	slices.Sort(known)
	best, at := 3, ""
	for _, w := range known {
		d := distance(strings.ToLower(k), w)
		if d < best {
			best, at = d, w
		}
	}
	if at != "" {
		return "did you mean " + at + "?"
	}
	return "known: " + strings.Join(known, ", ")
}

// distance is the edit distance of two short words, cut off for long ones.
func distance(a, b string) int {
	if len(a) > 40 {
		return len(a)
	}
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		cur := make([]int, len(b)+1)
		cur[0] = i + 1
		for j := range len(b) {
			c := prev[j]
			if a[i] != b[j] {
				c++
			}
			cur[j+1] = min(c, prev[j+1]+1, cur[j]+1)
		}
		prev = cur
	}
	return prev[len(b)]
}

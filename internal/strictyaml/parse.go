package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// Kind says what a Node is.
type Kind int

// The kinds. The zero kind, Refused, is what stood at a place a fault was noted
// for already; nothing more is said about it.
const (
	Refused Kind = iota
	Mapping
	List
	Text   // a scalar that is text, quoted or not
	Bool   // true, false and what else YAML takes for them
	Number // a whole number or one with a fraction, in any spelling of YAML
	Null
	Other // any other scalar: a date
)

// Scalar reports whether a node of this kind has a Value.
func (k Kind) Scalar() bool { return k >= Text }

// A Node is one value of a document and where it stands.
type Node struct {
	Kind   Kind
	Value  string // of a scalar: its text, escapes resolved
	Plain  bool   // a scalar without quotes
	Quoted bool   // a scalar in quotes, on one line or several
	Flow   bool   // a list in brackets, a mapping in braces
	// Items are the items of a list; of a mapping, its keys and values in turn.
	// Keys are scalars, each once.
	Items        []*Node
	Line, Column int
}

// Get returns a mapping's value by its key, or nil. The node may be nil.
func (n *Node) Get(key string) *Node {
	if n == nil || n.Kind != Mapping {
		return nil
	}
	for i := 0; i+1 < len(n.Items); i += 2 {
		if n.Items[i].Value == key {
			return n.Items[i+1]
		}
	}
	return nil
}

// Parse returns the root of the one document in b, or nil. Everything but
// plain mappings, lists and scalars is noted as a fault; nil means there was
// one, and so may a tree. The hint is for a file with nothing in it.
func (r *Reader) Parse(b []byte, empty string) *Node {
	if len(b) > MaxBytes {
		r.FaultAt(1, 1, "the file is larger than 1 MiB", "")
		return nil
	}
	if !r.characters(b) || !r.directives(b) {
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
			r.FaultAt(second.Line, second.Column, "a second document", "one file, one document")
		} else if !errors.Is(err, io.EOF) {
			r.syntax(err, b)
			return nil
		}
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || isNull(doc.Content[0]) {
		r.FaultAt(1, 1, "the file is empty", empty)
		return nil
	}
	return r.node(doc.Content[0], 0)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// characters refuses what does not belong into a text a person answers for.
func (r *Reader) characters(b []byte) bool {
	line, col, before := 1, 1, len(r.faults)
	for i := 0; i < len(b); {
		c, n := utf8.DecodeRune(b[i:])
		switch {
		case c == utf8.RuneError && n == 1:
			r.FaultAt(line, col, "not valid UTF-8", "save the file as UTF-8")
			return false
		case c == 0xFEFF && i == 0:
			r.FaultAt(line, col, "the file starts with a byte order mark", "save the file as UTF-8 without one")
			return false
		case c == 0:
			r.FaultAt(line, col, "a NUL character", "is this a text file?")
			return false
		case c == '\t':
			r.FaultAt(line, col, "a tab", "use spaces")
		case c == '\r':
			if i+1 >= len(b) || b[i+1] != '\n' {
				r.FaultAt(line, col, "a carriage return inside a line", "end lines with a line feed")
			}
		case c != '\n' && text.Hidden(c, text.Unclear):
			r.FaultAt(line, col, "an invisible or control character", "remove it, or write it as an escape in double quotes")
		}
		if i, col = i+n, col+1; c == '\n' {
			line, col = line+1, 1
		}
		if len(r.faults)-before > MaxFaults {
			return false
		}
	}
	return len(r.faults) == before
}

// directives refuses lines that tell a reader of YAML how to read the rest.
func (r *Reader) directives(b []byte) bool {
	line := 0
	for text := range bytes.Lines(b) {
		line++
		switch text = bytes.TrimRight(text, " \r\n"); {
		case len(text) == 0 || bytes.HasPrefix(bytes.TrimLeft(text, " "), []byte("#")):
			continue
		case text[0] == '%':
			r.FaultAt(line, 1, "directives are not allowed", "remove the line")
			return false
		}
		return true
	}
	return true
}

// syntax notes what the library could not read.
func (r *Reader) syntax(err error, b []byte) {
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
	r.FaultAt(line, col, message, "")
}

// node copies the library's tree and notes what does not belong into it.
func (r *Reader) node(y *yaml.Node, depth int) *Node {
	n := &Node{Line: y.Line, Column: y.Column}
	switch {
	case depth > MaxDepth:
		r.Fault(n, "nested deeper than 64", "")
		return n
	case y.Kind == yaml.AliasNode || y.Anchor != "":
		r.Fault(n, "anchors and aliases are not allowed", "write the value out")
	case y.Style&yaml.TaggedStyle != 0 || y.Tag == "!": // which makes a text of 10
		r.Fault(n, "tags are not allowed", "write the plain value")
	}
	n.Flow = y.Style&yaml.FlowStyle != 0
	switch y.Kind {
	case yaml.SequenceNode:
		n.Kind = List
		for _, c := range y.Content {
			n.Items = append(n.Items, r.node(c, depth+1))
		}
	case yaml.MappingNode:
		n.Kind = Mapping
		r.members(n, y, depth)
	case yaml.ScalarNode:
		n.Value, n.Plain = y.Value, y.Style == 0
		n.Quoted = y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0
		switch y.ShortTag() {
		case "!!str":
			n.Kind = Text
		case "!!bool":
			n.Kind = Bool
		case "!!int", "!!float":
			n.Kind = Number
		case "!!null":
			n.Kind = Null
		case "!!merge": // << without quotes, as a key or as a value
			r.Fault(n, "merge keys are not allowed", "write the values out")
		default:
			n.Kind = Other
		}
	}
	return n
}

// members copies a mapping: string keys, each once. What is refused stands in
// no tree, so that a second meaning of a key cannot be read by accident.
func (r *Reader) members(n *Node, y *yaml.Node, depth int) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := r.node(y.Content[i], depth+1), r.node(y.Content[i+1], depth+1)
		switch {
		case k.Kind == Refused:
			continue
		case !k.Kind.Scalar() || k.Kind == Null:
			r.Fault(k, "a key must be a word", "")
			continue
		case seen[k.Value]:
			r.Fault(k, "the key "+Word(k.Value)+" stands twice", "remove one")
			continue
		}
		seen[k.Value] = true
		n.Items = append(n.Items, k, v)
	}
}

// JSON turns a node into JSON. A scalar that could be read in two ways (010,
// 0x10, yes, a date) is a fault, and the answer false.
func (r *Reader) JSON(n *Node) ([]byte, bool) {
	switch n.Kind {
	case Refused:
		return []byte("null"), false
	case List:
		b, ok := r.items(n)
		return slices.Concat([]byte{'['}, b, []byte{']'}), ok
	case Mapping:
		b, ok := r.items(n)
		return slices.Concat([]byte{'{'}, b, []byte{'}'}), ok
	case Text:
		// Truth to a reader of YAML 1.1, and to many a person.
		if switches := []string{"yes", "no", "on", "off"}; !n.Plain || !slices.Contains(switches, strings.ToLower(n.Value)) {
			return strictjson.Quote(n.Value), true
		}
	case Null:
		if n.Value == "null" {
			return []byte(n.Value), true
		}
	case Bool:
		if n.Value == "true" || n.Value == "false" {
			return []byte(n.Value), true
		}
	case Number:
		if b := []byte(n.Value); strictjson.KindOf(b) == strictjson.Number && strictjson.Check(b, strictjson.Limits{Number: 64}) == nil {
			return b, true
		}
	}
	r.Fault(n, "this value can be read in two ways", "put it in quotes if it is text, or write it as JSON does")
	return []byte("null"), false
}

// items turns what a list or a mapping holds into JSON.
func (r *Reader) items(n *Node) ([]byte, bool) {
	var out [][]byte
	ok := true
	for i := 0; i < len(n.Items); i++ {
		var name []byte
		if n.Kind == Mapping {
			name = append(strictjson.Quote(n.Items[i].Value), ':')
			i++
		}
		b, good := r.JSON(n.Items[i])
		out, ok = append(out, append(name, b...)), ok && good
	}
	return bytes.Join(out, []byte{','}), ok
}

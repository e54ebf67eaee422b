package provenance

import (
	"bytes"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/writ-project/writ/internal/strictjson"
)

// Leaf is one value of a result and the rule that names it.
type Leaf struct {
	Raw  []byte      // the JSON literal; text an extractor found is quoted
	Rule *OutputRule // nil: nobody vouches for it, its label is external
	Type Type        // the rule's, Path for a joined name, Untyped without a rule
	Key  bool        // an object key

	path     []string // in the result object
	line     int
	inner    []string
	hasInner bool
	owner    string // untyped form of the owner leaf, "" for none
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
func Extraction(rules []OutputRule, result, arguments []byte) Extracted {
	x := extraction{rules: rules, arguments: arguments}
	if e := strictjson.Get(result, "isError"); e != nil && string(bytes.TrimSpace(e)) != "false" {
		return Extracted{}
	}
	ms, _ := strictjson.Members(result)
	for _, m := range ms {
		at := []string{m.Name}
		switch m.Name {
		case "_meta", "isError", "resultType":
		case "structuredContent":
			w := walker{
				leaf: x.structured,
				key:  x.key,
			}
			w.walk(m.Value, at, m.Value)
		case "content":
			blocks, _ := strictjson.Elements(m.Value)
			for i, b := range blocks {
				x.block(i, b)
			}
		default:
			x.unnamed(m.Value, at)
		}
	}
	return x.out
}

type extraction struct {
	rules     []OutputRule
	arguments []byte
	out       Extracted

	// the owner found last: most leaves of a record share it
	ownerRule   *OutputRule
	ownerRecord []byte
	ownerText   string
}

// walker visits every leaf and key with the record around it: the innermost
// object that is an array element, else the root.
type walker struct {
	leaf func(path []string, raw, record []byte)
	key  func(path []string, name string, record []byte)
}

func (w walker) walk(raw []byte, at []string, record []byte) {
	switch strictjson.KindOf(raw) {
	case strictjson.Object:
		ms, _ := strictjson.Members(raw)
		for _, m := range ms {
			if w.key != nil {
				w.key(at, m.Name, record)
			}
			w.walk(m.Value, append(at, m.Name), record)
		}
		if len(ms) > 0 {
			return
		}
	case strictjson.Array:
		es, _ := strictjson.Elements(raw)
		for i, e := range es {
			of := record
			if strictjson.KindOf(e) == strictjson.Object {
				of = e
			}
			w.walk(e, append(at, strconv.Itoa(i)), of)
		}
		if len(es) > 0 {
			return
		}
	}
	w.leaf(at, bytes.TrimSpace(raw), record)
}

// structured is a leaf of structuredContent.
func (x *extraction) structured(at []string, raw, record []byte) {
	i := best(len(x.rules), at[1:], func(i int) (Pattern, bool) {
		r := &x.rules[i]
		return r.At, !r.InText && !r.Keys && r.Extract == NoExtract
	})
	base := Leaf{Raw: raw, path: slices.Clone(at)}
	x.add(base, i, record)
	j := best(len(x.rules), at[1:], func(i int) (Pattern, bool) {
		r := &x.rules[i]
		return r.At, !r.InText && !r.Keys && r.Extract != NoExtract
	})
	if j < 0 {
		return
	}
	x.takeApart(base, func(r *OutputRule) bool {
		return !r.InText && !r.Keys && r.Extract != NoExtract && slices.Equal(r.At.Tokens, x.rules[j].At.Tokens)
	})
}

// key is a key of an object in structuredContent: a leaf only if a rule names it.
func (x *extraction) key(at []string, name string, record []byte) {
	i := best(len(x.rules), at[1:], func(i int) (Pattern, bool) {
		r := &x.rules[i]
		return r.At, r.Keys && !r.InText
	})
	if i >= 0 {
		x.add(Leaf{Raw: strictjson.Quote(name), Key: true, path: append(slices.Clone(at), name)}, i, record)
	}
}

// block is one content block. Each is read for itself, so no record spans two.
func (x *extraction) block(i int, raw []byte) {
	at := []string{"content", strconv.Itoa(i)}
	kind, _ := strictjson.Text(strictjson.Get(raw, "type"))
	ms, ok := strictjson.Members(raw)
	if !ok {
		x.unnamed(raw, at)
		return
	}
	for _, m := range ms {
		if m.Name == "type" || m.Name == "_meta" || m.Name == "annotations" {
			continue
		}
		if m.Name != "text" || kind != "text" || strictjson.KindOf(m.Value) != strictjson.String {
			x.unnamed(m.Value, append(slices.Clone(at), m.Name))
			continue
		}
		text := Leaf{Raw: bytes.TrimSpace(m.Value), path: append(slices.Clone(at), m.Name)}
		whole := slices.IndexFunc(x.rules, func(r OutputRule) bool {
			return r.InText && r.Block == i && r.Extract == NoExtract
		})
		x.add(text, whole, nil)
		x.takeApart(text, func(r *OutputRule) bool {
			return r.InText && r.Block == i && r.Extract != NoExtract
		})
	}
}

// unnamed adds every leaf of a value no rule can name. Binary data is left out.
func (x *extraction) unnamed(raw []byte, at []string) {
	w := walker{leaf: func(at []string, raw, _ []byte) {
		if n := at[len(at)-1]; n != "data" && n != "blob" {
			x.add(Leaf{Raw: raw, path: slices.Clone(at)}, -1, nil)
		}
	}}
	w.walk(raw, at, raw)
}

// add adds a leaf under the rule of index i (-1: none) if its value is of the
// type the rule declares.
func (x *extraction) add(l Leaf, i int, record []byte) {
	if i >= 0 {
		r := &x.rules[i]
		t := r.Type
		if l.Type != Untyped {
			t = l.Type
		}
		if _, _, why := Canonical(t, l.Raw); why == "" {
			l.Rule, l.Type, l.owner = r, t, x.owner(r, record)
		} else {
			l.Type = Untyped
		}
	}
	x.out.Leaves = append(x.out.Leaves, l)
}

// owner resolves the rule's owner pointer within the record (R28).
func (x *extraction) owner(r *OutputRule, record []byte) string {
	if !r.HasOwner || len(record) == 0 {
		return ""
	}
	if x.ownerRule == r && len(x.ownerRecord) == len(record) && &x.ownerRecord[0] == &record[0] {
		return x.ownerText
	}
	x.ownerRule, x.ownerRecord, x.ownerText = r, record, ""
	if raw := resolve(record, r.Owner); raw != nil && !empty(raw) {
		x.ownerText, _ = exact(raw)
	}
	return x.ownerText
}

// resolve returns the value at path, nil if there is none.
func resolve(raw []byte, path []string) []byte {
	for _, t := range path {
		if es, ok := strictjson.Elements(raw); ok {
			n, err := strconv.Atoi(t)
			if err != nil || n < 0 || n >= len(es) || strconv.Itoa(n) != t {
				return nil
			}
			raw = es[n]
			continue
		}
		if raw = strictjson.Get(raw, t); raw == nil {
			return nil
		}
	}
	return raw
}

// takeApart applies the chosen rules to one text leaf. All of them are
// extractors of one kind, or the start was stopped (Conflict).
func (x *extraction) takeApart(text Leaf, chosen func(*OutputRule) bool) {
	var first = -1
	for i := range x.rules {
		if chosen(&x.rules[i]) {
			first = i
			break
		}
	}
	if first < 0 {
		return
	}
	r := &x.rules[first]
	s, ok := strictjson.Text(text.Raw)
	switch {
	case !ok:
	case r.Extract == ExtractLines:
		var found []Leaf
		if found, ok = x.lines(r, text, s); ok {
			for _, l := range found {
				i := first
				if l.Rule == nil {
					i = -1
				}
				l.Rule = nil
				x.add(l, i, nil)
			}
		}
	case r.Extract == ExtractJSON:
		ok = x.json(text, s, chosen)
	default:
		ok = false
	}
	if !ok {
		x.out.Voided = append(x.out.Voided, source(r))
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
		c, already, why := Canonical(Path, resolve(x.arguments, r.Join))
		if why != "" || !already {
			return nil, false
		}
		dir = c
	}
	lines := strings.Split(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for i, line := range lines {
		if strings.ContainsFunc(line, separates) || r.Pattern == nil {
			return nil, false
		}
		m := r.Pattern.FindStringSubmatchIndex(line)
		if len(m) < 4 || m[0] != 0 || m[1] != len(line) || line == "" {
			return nil, false
		}
		if m[2] < 0 {
			continue
		}
		l := Leaf{path: text.path, line: i + 1, Rule: r}
		v := line[m[2]:m[3]]
		if r.HasJoin {
			joined, fits := below(dir, v)
			if !fits {
				return nil, false
			}
			if joined == "" {
				l.Rule = nil
			} else {
				v, l.Type = joined, Path
				if r.Type != Untyped {
					l.Type = r.Type
				}
			}
		}
		l.Raw = strictjson.Quote(v)
		found = append(found, l)
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
	doc := []byte(s)
	if strictjson.Check(doc, strictjson.Result) != nil {
		return false
	}
	w := walker{}
	w.leaf = func(at []string, raw, record []byte) {
		i := best(len(x.rules), at, func(i int) (Pattern, bool) {
			return x.rules[i].Pointer, chosen(&x.rules[i])
		})
		x.add(Leaf{Raw: raw, path: text.path, inner: slices.Clone(at), hasInner: true}, i, record)
	}
	w.walk(doc, nil, doc)
	return true
}

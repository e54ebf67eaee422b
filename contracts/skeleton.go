package contracts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
)

// prose are members of a definition that hold sentences.
var prose = []string{"description", "title", "markdownDescription", "$comment"}

// Skeleton is a definition with each of its sentences replaced by a short digest: what
// is needed to say what changed, and none of its author's words.
func Skeleton(definition []byte) []byte { return skeleton(definition, true) }

// same reports whether two skeletons say the same of a tool: each thing they name, and
// nothing that one of them closes and the other is silent about, writes once and refers to,
// or bounds by what a number of JSON can be at most.
func same(a, b []byte) bool {
	x, errX := strictjson.Canonical(meaning(a))
	y, errY := strictjson.Canonical(meaning(b))
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// meaning is a definition without what the library below a server writes one way or the
// other: `additionalProperties: false`, a schema that stands there twice as a reference to
// the first, and the bounds of whole numbers that every reader keeps.
func meaning(definition []byte) []byte {
	room := maxMeaning
	ms, _ := strictjson.Members(definition)
	out := make([][]byte, len(ms))
	for i, m := range ms {
		r := reader{room: &room, refs: maxRefs}
		if m.Name == "inputSchema" || m.Name == "outputSchema" {
			r.root = m.Value
		}
		out[i] = slices.Concat(strictjson.Quote(m.Name), []byte(":"), r.plain(m.Value, true))
	}
	if room < 0 { // no library writes so much by reference
		return definition
	}
	return []byte("{" + string(join(out)) + "}")
}

const (
	maxMeaning = 256 << 10 // bytes of one definition, its references followed
	refCosts   = 256       // of these, each that is followed: it is looked for
	maxRefs    = 8         // from one to the next, or within one
)

// reader reads one schema, whose references are to root.
type reader struct {
	root []byte
	room *int
	refs int
}

func (r reader) plain(raw []byte, isSchema bool) []byte {
	if *r.room -= 2; *r.room < 0 {
		return []byte("null") // nothing is made of it
	}
	if es, ok := strictjson.Elements(raw); ok {
		out := make([][]byte, len(es))
		for i, e := range es {
			out[i] = r.plain(e, isSchema)
		}
		return []byte("[" + string(join(out)) + "]")
	}
	ms, ok := strictjson.Members(raw)
	if !ok {
		*r.room -= len(raw)
		return raw
	}
	if isSchema {
		ms = r.referred(ms)
	}
	whole := slices.ContainsFunc(ms, func(m strictjson.Member) bool { return m.Name == "type" && string(m.Value) == `"integer"` })
	var out [][]byte
	for _, m := range ms {
		switch v := string(m.Value); {
		case !isSchema:
		case m.Name == "additionalProperties" && v == "false",
			whole && (m.Name == "maximum" && v == "9007199254740991" || m.Name == "minimum" && v == "-9007199254740991"):
			continue
		}
		out = append(out, slices.Concat(strictjson.Quote(m.Name), []byte(":"), r.plain(m.Value, below(isSchema, m.Name))))
	}
	return []byte("{" + string(join(out)) + "}")
}

// referred are the members of a schema that is nothing but a reference within its root and
// sentences: those of what is meant, with these sentences.
func (r *reader) referred(ms []strictjson.Member) []strictjson.Member {
	isProse := func(m strictjson.Member) bool { return slices.Contains(prose, m.Name) }
	for ; r.refs > 0 && *r.room > 0; r.refs-- {
		said, to := []strictjson.Member(nil), ""
		for _, m := range ms {
			if isProse(m) {
				said = append(said, m)
			} else if to != "" || m.Name != "$ref" {
				return ms
			} else if to, _ = strictjson.Text(m.Value); !strings.HasPrefix(to, "#/") {
				return ms
			}
		}
		of, ok := strictjson.Members(strictjson.At(r.root, strings.TrimPrefix(to, "#")))
		if !ok || to == "" {
			return ms
		}
		*r.room -= refCosts
		ms = append(slices.DeleteFunc(slices.Clone(of), isProse), said...)
	}
	return ms
}

// below reports whether what a member of a definition holds is one again, and not a
// table of schemas by the names of what they are of.
func below(isSchema bool, name string) bool {
	return !isSchema || !slices.Contains([]string{"properties", "$defs", "definitions", "patternProperties"}, name)
}

// members are schemas by name where they stand: a property may be called description.
func skeleton(raw []byte, isSchema bool) []byte {
	if es, ok := strictjson.Elements(raw); ok {
		out := make([][]byte, len(es))
		for i, e := range es {
			out[i] = skeleton(e, isSchema)
		}
		return []byte("[" + string(join(out)) + "]")
	}
	ms, ok := strictjson.Members(raw)
	if !ok {
		return raw
	}
	out := make([][]byte, len(ms))
	for i, m := range ms {
		value := m.Value
		if s, ok := strictjson.Text(value); ok && isSchema && slices.Contains(prose, m.Name) {
			sum := sha256.Sum256([]byte(s))
			value = strictjson.Quote("sha256:" + hex.EncodeToString(sum[:8]))
		} else {
			value = skeleton(value, below(isSchema, m.Name))
		}
		out[i] = slices.Concat(strictjson.Quote(m.Name), []byte(":"), value)
	}
	return []byte("{" + string(join(out)) + "}")
}

func join(parts [][]byte) (out []byte) {
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, p...)
	}
	return out
}

package contracts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/writ-project/writ/internal/strictjson"
)

// prose are members of a definition that hold sentences.
var prose = []string{"description", "title", "markdownDescription", "$comment"}

// Skeleton is a definition with each of its sentences replaced by a short digest: what
// is needed to say what changed, and none of its author's words.
func Skeleton(definition []byte) []byte { return skeleton(definition, true) }

// same reports whether two skeletons say the same of a tool: each thing they name, and
// nothing that one of them closes and the other is silent about.
func same(a, b []byte) bool {
	x, errX := strictjson.Canonical(silent(a, true))
	y, errY := strictjson.Canonical(silent(b, true))
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// silent leaves `additionalProperties: false` out of the schemas of a definition.
func silent(raw []byte, isSchema bool) []byte {
	if es, ok := strictjson.Elements(raw); ok {
		out := make([][]byte, len(es))
		for i, e := range es {
			out[i] = silent(e, isSchema)
		}
		return []byte("[" + string(join(out)) + "]")
	}
	ms, ok := strictjson.Members(raw)
	if !ok {
		return raw
	}
	var out [][]byte
	for _, m := range ms {
		if isSchema && m.Name == "additionalProperties" && string(m.Value) == "false" {
			continue
		}
		out = append(out, slices.Concat(strictjson.Quote(m.Name), []byte(":"), silent(m.Value, below(isSchema, m.Name))))
	}
	return []byte("{" + string(join(out)) + "}")
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

package contracts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// Change is how a tool of a server differs from the one a contract was made for.
type Change struct {
	Tool  string
	New   bool     // the contract knows no tool of that name
	Lines []string // for a person, each in one line
}

// changeLines is how much a person reads of one change.
const changeLines = 12

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

// differences says what one skeleton has and another has not, in lines for a person.
// What is new or gone is told once, with all that is below it.
func differences(was, is []byte) (lines []string) {
	before, after := outline(was), outline(is)
	more, told := 0, map[string]bool{}
	say := func(line string) {
		if len(lines) == changeLines {
			more++
		} else {
			lines = append(lines, line)
		}
	}
	lacks := func(sign, at string, other *parts) {
		for end := 1; end <= len(at); end++ {
			if end < len(at) && at[end] != '/' || other.at[at[:end]] {
				continue
			}
			if at = at[:end]; !told[sign+at] {
				told[sign+at] = true
				say(sign + " " + text.OneLine(at, 80))
			}
			return
		}
		say(sign + " " + text.OneLine(at, 80)) // it held more, or less
	}
	for _, at := range before.order {
		if now, has := after.leaf[at]; !has {
			lacks("-", at, after)
		} else if now != before.leaf[at] {
			say("~ " + text.OneLine(at, 80) + ": " + change(before.leaf[at], now))
		}
	}
	for _, at := range after.order {
		if _, has := before.leaf[at]; !has {
			lacks("+", at, before)
		}
	}
	if more > 0 {
		lines[changeLines-1] = fmt.Sprintf("and %d more", more+1)
	}
	return lines
}

// parts are the leaves of a value, and every place above one.
type parts struct {
	order []string
	leaf  map[string]string
	at    map[string]bool
}

func outline(raw []byte) *parts {
	p := &parts{leaf: map[string]string{}, at: map[string]bool{}}
	strictjson.Walk(raw, func(path []string, raw []byte) bool {
		at := strictjson.Pointer(path)
		p.order, p.leaf[at] = append(p.order, at), string(raw)
		for ; at != "" && !p.at[at]; at = at[:strings.LastIndexByte(at, '/')] {
			p.at[at] = true
		}
		return true
	}, func([]string, string) bool { return true })
	return p
}

func change(was, is string) string {
	if strings.HasPrefix(was, `"sha256:`) && strings.HasPrefix(is, `"sha256:`) {
		return "other words"
	}
	return text.OneLine(was, 60) + " is now " + text.OneLine(is, 60)
}

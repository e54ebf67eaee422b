package learn

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

const (
	// maxValues bounds what is kept of one session; what comes later explains nothing.
	maxValues = 200_000
	// manyFields is in how many a value stands that comes from nowhere in particular.
	manyFields = 6
	// shortWord is how many letters a word has that anybody could say.
	shortWord = 8
	// longName is the longest key that a program calls a field by.
	longName = 40
	// textField marks the pointer of a field in JSON that stands in a text, keyedField one
	// under keys that nobody named.
	textField  = "text:"
	keyedField = "keys:"
)

// trail is what a session's tools returned so far: where each value stood first. It is a
// plain model of what the ledger holds, and vouches for nothing.
type trail struct {
	values map[string]*stood
	order  []string // their keys, as they came
	said   map[string]bool
	calls  map[int]*Call
	next   int // the step to go on at
}

// stood is one value and the fields that held it.
type stood struct {
	literal []byte
	fields  []slot
}

func newTrail() *trail {
	return &trail{values: map[string]*stood{}, said: map[string]bool{}, calls: map[int]*Call{}}
}

// upTo takes in the events of a session before one.
func (t *trail) upTo(s *Session, i int, p *policy.Policy) {
	for ; t.next < i; t.next++ {
		switch step := &s.Steps[t.next]; {
		case step.Call != nil && !step.Call.Again && !step.Call.Input.Look: // what Writ read for itself nobody passed on
			t.calls[t.next] = step.Call
			leaves(step.Call.Input.Call.Arguments, func(_ []string, _ string, v strictjson.Value) {
				if k := keyOf(v); t.values[k] == nil && len(t.said) < maxValues {
					t.said[k] = true
				}
			})
		case step.Result != nil:
			if c := t.calls[step.Result.Of]; c != nil {
				delete(t.calls, step.Result.Of)
				t.result(c, &step.Result.Gate, p)
			}
		}
	}
}

// result takes in what a call answered, but for what it was asked with.
func (t *trail) result(c *Call, r *gate.Result, p *policy.Policy) {
	call := &c.Input.Call
	if failed := r.Value.Get("isError"); r.Status != gate.OK || call.Method != policy.CallTool || failed.Exists() && string(failed.Raw()) != "false" {
		return
	}
	asked := map[string]bool{}
	leaves(call.Arguments, func(_ []string, _ string, v strictjson.Value) { asked[keyOf(v)] = true })
	name, from, mark := call.Server+"/"+call.Tool, r.Value.Get("structuredContent"), ""
	if !from.Exists() {
		from, mark = onlyText(r.Value), textField
	}
	contract := p.Contracts[name]
	leaves(from, func(path []string, pattern string, v strictjson.Value) {
		k := keyOf(v)
		if asked[k] || t.said[k] || trivial(v) {
			return
		}
		at := slot{tool: name}
		switch o, keyless := outputOf(contract, path, mark != ""), keysOut(pattern); {
		case o != nil && o.InText:
			at.pointer = mark + o.Pointer.Source
		case o != nil:
			at.pointer = o.At.Source
		case keyless != pattern:
			at.pointer = keyedField + keyless
		default:
			at.pointer = mark + pattern
		}
		held := t.values[k]
		if held == nil {
			if len(t.order) >= maxValues {
				return
			}
			held = &stood{literal: slices.Clone(v.Literal())}
			t.values[k], t.order = held, append(t.order, k)
		}
		if len(held.fields) <= manyFields && !slices.Contains(held.fields, at) {
			held.fields = append(held.fields, at)
		}
	})
}

// onlyText is the JSON that a result's one text is as a whole, none where it is not.
func onlyText(result strictjson.Value) (none strictjson.Value) {
	blocks := result.Get("content")
	if blocks.Len() != 1 {
		return none
	}
	for _, b := range blocks.Elements() {
		if s, ok := b.Get("text").Text(); ok {
			if v, err := strictjson.Parse([]byte(s), strictjson.Result); err == nil && (v.Kind() == strictjson.Object || v.Kind() == strictjson.Array) {
				return v
			}
		}
	}
	return none
}

// fieldsOf are the fields a value stood in, none where they are many.
func (t *trail) fieldsOf(v strictjson.Value) []slot {
	if held := t.values[keyOf(v)]; held != nil && len(held.fields) <= manyFields {
		return slices.Clone(held.fields)
	}
	return nil
}

// invented is a literal like another that stood nowhere in the session.
func (t *trail) invented(v strictjson.Value) ([]byte, bool) {
	lit := slices.Clone(v.Literal())
	for i := len(lit) - 1; i >= 0; i-- {
		for range 9 {
			switch c := lit[i]; {
			case c >= '0' && c <= '9' && !(i == 0 && c == '9'):
				lit[i] = '0' + (c-'0'+1)%10
			case c >= 'a' && c <= 'z':
				lit[i] = 'a' + (c-'a'+1)%26
			case c >= 'A' && c <= 'Z':
				lit[i] = 'A' + (c-'A'+1)%26
			}
			if i > 0 && lit[i-1] == '\\' {
				break
			}
			other, err := strictjson.Parse(lit, strictjson.Request)
			if k := keyOf(other); err == nil && t.values[k] == nil && !t.said[k] && k != keyOf(v) {
				return lit, true
			}
		}
	}
	return nil, false
}

// elsewhere is the first value of the same kind that stood in none of some fields.
func (t *trail) elsewhere(v strictjson.Value, fields []slot) ([]byte, bool) {
	for _, k := range t.order {
		held := t.values[k]
		if k[0] == keyOf(v)[0] && !slices.ContainsFunc(held.fields, func(f slot) bool { return slices.Contains(fields, f) }) {
			return held.literal, true
		}
	}
	return nil, false
}

// keyOf tells values apart as arguments without a type are: by kind and exact value.
func keyOf(v strictjson.Value) string {
	if s, ok := v.Text(); ok {
		return "s" + s
	}
	return "n" + string(v.Literal())
}

// trivial is what anybody could say: a value of small space (R8), or a short word.
func trivial(v strictjson.Value) bool {
	if provenance.SmallSpace(provenance.Untyped, v) {
		return true
	}
	s, ok := v.Text()
	return ok && utf8.RuneCountInString(s) < shortWord && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) })
}

// leaves calls f with each scalar of a value: where it stands, and the same with * for an
// index.
func leaves(v strictjson.Value, f func(path []string, pattern string, v strictjson.Value)) {
	var walk func(v strictjson.Value, path, pattern []string)
	walk = func(v strictjson.Value, path, pattern []string) {
		path, pattern = slices.Clip(path), slices.Clip(pattern)
		switch v.Kind() {
		case strictjson.Object:
			for name, m := range v.Members() {
				walk(m, append(path, name), append(pattern, name))
			}
		case strictjson.Array:
			for i, e := range v.Elements() {
				walk(e, append(path, strconv.Itoa(i)), append(pattern, "*"))
			}
		default:
			if v.Exists() {
				f(path, strictjson.Pointer(pattern), v)
			}
		}
	}
	walk(v, nil, nil)
}

// keysOut is a pointer with * for each key that does not look like a program's own name:
// where the contract names none, it may be a value, and anybody's.
func keysOut(pattern string) string {
	path := pathOf(pattern)
	for i, t := range path {
		own := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' || r == '-' }
		if t != "*" && (t == "" || len(t) > longName || strings.ContainsFunc(t, func(r rune) bool { return !own(r) })) {
			path[i] = "*"
		}
	}
	return strictjson.Pointer(path)
}

// general is a pointer with * for each index.
func general(pointer string) string {
	path := pathOf(pointer)
	for i, t := range path {
		if _, err := strconv.Atoi(t); err == nil {
			path[i] = "*"
		}
	}
	return strictjson.Pointer(path)
}

func pathOf(pointer string) []string {
	path, _ := strictjson.ParsePointer(pointer)
	return path
}

// with is a value with another literal at one place.
func with(v strictjson.Value, pointer string, literal []byte) strictjson.Value {
	var set func(v strictjson.Value, path []string) []byte
	set = func(v strictjson.Value, path []string) []byte {
		if len(path) == 0 {
			return literal
		}
		if v.Kind() == strictjson.Object {
			return v.With(strictjson.Member{Name: path[0], Value: set(v.Get(path[0]), path[1:])})
		}
		out := []byte{'['}
		for i, e := range v.Elements() {
			if i > 0 {
				out = append(out, ',')
			}
			if strconv.Itoa(i) == path[0] {
				out = append(out, set(e, path[1:])...)
			} else {
				out = append(out, e.Raw()...)
			}
		}
		return append(out, ']')
	}
	return strictjson.Of(set(v, pathOf(pointer)))
}

package eval

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode"
)

// record is a generated tool result whose structuredContent is the source of a
// summary. Writing it notes, beside the recorded bytes, the canonical text and
// which bytes each character of it stands for: what NewSource must find, made
// here from the other side.
type record struct {
	rng     *rand.Rand
	b, t    []byte // bytes and text while they are written
	bytes   string
	text    string
	from    []int // by offset in text: where in bytes its unit begins
	to      []int // and ends
	root    *value
	strings []span // what stands between the quotation marks of string leaves
	members []span // "name":value, by member
	numbers []span
	names   []span // "name":
	prose   []string
}

// span is a range of text.
type span struct{ start, end int }

func (r *record) of(s span) string { return r.text[s.start:s.end] }

var accents = strings.NewReplacer("a", "ä", "o", "ø", "e", "é")

const pointer = "/structuredContent"

// newRecord makes a record. Every word in it, names included, stands in it
// once, so that where a quote stands is known.
func newRecord(rng *rand.Rand) *record {
	r := &record{rng: rng}
	seen := map[string]bool{}
	unique := func(n int) string {
		for {
			w := word(rng, n)
			if rng.IntN(8) == 0 {
				w = accents.Replace(w)
			}
			if rng.IntN(6) == 0 {
				w = strings.ToUpper(w[:1]) + w[1:]
			}
			if !seen[w] {
				seen[w] = true
				return w
			}
		}
	}
	sentence := func(n int) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteString(pick(rng, " ", " ", " ", " ", ", ", ". ", "\n", ` "`, `\ `, " 😀 ", "; "))
			}
			b.WriteString(unique(4 + rng.IntN(6)))
		}
		return b.String()
	}
	leaf := func(i int) *value {
		switch i % 4 {
		case 0:
			return number(10_000 + rng.IntN(1_000_000))
		case 1:
			return literal(pick(rng, "", "-") + strconv.Itoa(1000+rng.IntN(9000)) + "." + strconv.Itoa(100+rng.IntN(900)))
		case 2:
			return text(sentence(4 + rng.IntN(8)))
		}
		return pick(rng, literal("true"), literal("null"), text(unique(5)), literal("false"))
	}
	root := object()
	for i := range 6 + rng.IntN(6) {
		name := unique(7 + rng.IntN(4))
		switch {
		case i > 3 && rng.IntN(4) == 0:
			list := array()
			for j := range 1 + rng.IntN(3) {
				list.items = append(list.items, leaf(j+2))
			}
			root.add(name, list)
		case i > 3 && rng.IntN(4) == 0:
			root.add(name, object(unique(7), leaf(i), unique(8), leaf(i+1)))
		default:
			root.add(name, leaf(i))
		}
	}
	r.root = root
	for range 3 {
		r.prose = append(r.prose, sentence(5))
	}
	st := style{rng: rng, space: true, escape: true}
	before, after := `{"content":[{"type":"text","text":`+st.quote(strings.Join(r.prose, " "))+`}],`, st.gap()+`}`
	if rng.IntN(2) == 0 {
		after = `,"isError":false}`
	}
	r.put(before, st.gap(), `"structuredContent"`, st.gap(), ":", st.gap())
	r.value(root, st)
	r.put(after)
	r.bytes, r.text = string(r.b), string(r.t)
	return r
}

// put writes what stands in the record alone.
func (r *record) put(ss ...string) {
	for _, s := range ss {
		r.b = append(r.b, s...)
	}
}

// unit writes one indivisible piece in both forms.
func (r *record) unit(canonical, recorded string) {
	from := len(r.b)
	r.b = append(r.b, recorded...)
	for range len(canonical) {
		r.from, r.to = append(r.from, from), append(r.to, len(r.b))
	}
	r.t = append(r.t, canonical...)
}

func (r *record) token(s string) {
	for i := range len(s) {
		r.unit(s[i:i+1], s[i:i+1])
	}
}

// value writes v, without reordering: the canonical text keeps the record's order.
func (r *record) value(v *value, st style) {
	start := len(r.t)
	switch v.kind {
	case '{', '[':
		r.token(string(v.kind))
		for i, item := range v.items {
			if i > 0 {
				r.put(st.gap())
				r.token(",")
			}
			r.put(st.gap())
			name := len(r.t)
			if v.kind == '{' {
				r.string(v.names[i], st)
				r.put(st.gap())
				r.token(":")
				r.names = append(r.names, span{name, len(r.t)})
				r.put(st.gap())
			}
			r.value(item, st)
			if v.kind == '{' {
				r.members = append(r.members, span{name, len(r.t)})
			}
		}
		r.put(st.gap())
		r.token(string(v.kind + 2))
	case '"':
		r.string(v.text, st)
		r.strings = append(r.strings, span{start + 1, len(r.t) - 1})
	default:
		r.token(v.text)
		if c := v.text[0]; c == '-' || c >= '0' && c <= '9' {
			r.numbers = append(r.numbers, span{start, len(r.t)})
		}
	}
}

func (r *record) string(s string, st style) {
	r.token(`"`)
	for _, c := range s {
		canonical, recorded := plainChar(c), st.char(c)
		if canonical == recorded && len(canonical) == len(string(c)) {
			r.token(canonical)
		} else {
			r.unit(canonical, recorded)
		}
	}
	r.token(`"`)
}

// words returns the words of a string leaf, as ranges of the text. What an
// escape stands for is no part of one.
func (r *record) words(s span) (out []span) {
	start, escaped := -1, false
	end := func(i int) {
		if start >= 0 {
			out = append(out, span{start, i})
		}
		start = -1
	}
	for i, c := range r.of(s) {
		i += s.start
		switch {
		case escaped:
			escaped = false
		case unicode.IsLetter(c):
			if start < 0 {
				start = i
			}
		default:
			end(i)
			escaped = c == '\\'
		}
	}
	end(s.end)
	return out
}

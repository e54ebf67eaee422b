package gates

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
	joined  []joint // in strings that are in none of the lists above
	parts   map[*value]joint
	letter  span // a value of one letter, and as far as the name behind it goes
}

// joint is a string of two parts that belong together: what is taken of one of
// them up to the joint is cropped. Each part has a word that stands nowhere else.
type joint struct {
	before, glue, after string
	at                  span // of the whole, in the text
}

// span is a range of text.
type span struct{ start, end int }

func (r *record) of(s span) string { return r.text[s.start:s.end] }

var accents = strings.NewReplacer("a", "ä", "o", "ø", "e", "é")

const pointer = "/structuredContent"

// joints make two parts that one word, number or identifier holds together; word
// makes one that is new.
var joints = []func(rng *rand.Rand, word func() string) joint{
	func(rng *rand.Rand, word func() string) joint { // by what nobody sees
		glue := pick(rng, "\u00ad", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u200e", "\u202a", "\u2066", "\u200b\u00ad")
		return joint{before: word() + " " + word(), glue: glue, after: word() + " " + word()}
	},
	func(rng *rand.Rand, word func() string) joint { // by an apostrophe or a hyphen
		return joint{before: word() + " " + word(), glue: pick(rng, "'", "\u2019", "-", "\u2010", "\u2011"), after: word() + " " + word()}
	},
	func(rng *rand.Rand, word func() string) joint { // a sign and its number
		glue := pick(rng, "-", "+", "\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2212", "\ufe63", "\uff0d", "-\u200b")
		return joint{before: "", glue: glue, after: pick(rng, "", "$", "€", ".") + digits(rng, 4) + " " + word()}
	},
	func(rng *rand.Rand, word func() string) joint { // the groups of a number
		glue := pick(rng, "'", "\u2019", "\u00b7", "\u066b", "\u066c", "\u00a0", "\u202f", "\u2009", ".", ",", "\u2060'")
		return joint{before: word() + " " + digits(rng, 3), glue: glue, after: digits(rng, 3) + " " + word()}
	},
	func(rng *rand.Rand, word func() string) joint { // an identifier
		return joint{before: word() + "-" + digits(rng, 4), glue: pick(rng, "-", "\u2011", "\u2013"), after: digits(rng, 2) + " " + word()}
	},
}

// digits is a number of n digits, none of them zero.
func digits(rng *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('1' + rng.IntN(9))
	}
	return string(b)
}

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
	r.parts = map[*value]joint{}
	for _, i := range rng.Perm(len(joints))[:3] {
		j := joints[i](rng, func() string { return unique(8) })
		v := text(j.before + j.glue + j.after)
		r.parts[v] = j
		root.add(unique(7), v)
	}
	letter := text(string(rune('a' + rng.IntN(26))))
	r.parts[letter] = joint{}
	root.add(unique(7), letter)
	root.add(unique(8)+" "+unique(9)+" "+unique(9), leaf(0))
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
		whole := span{start + 1, len(r.t) - 1}
		switch j, ok := r.parts[v]; {
		case !ok:
			r.strings = append(r.strings, whole)
		case j.glue == "":
			r.letter = whole
		default:
			j.at = whole
			r.joined = append(r.joined, j)
		}
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

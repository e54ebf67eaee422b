package gates

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode/utf16"
)

// value is JSON that a generator made. It writes JSON with a writer of its own,
// so that no reader of the product says what the text means.
type value struct {
	kind  byte // '{' object, '[' array, '"' string, '0' a literal as it is
	text  string
	names []string
	items []*value
}

func text(s string) *value         { return &value{kind: '"', text: s} }
func literal(s string) *value      { return &value{kind: '0', text: s} }
func number(n int) *value          { return literal(strconv.Itoa(n)) }
func array(items ...*value) *value { return &value{kind: '[', items: items} }

func object(pairs ...any) *value {
	o := &value{kind: '{'}
	for i := 0; i < len(pairs); i += 2 {
		o.add(pairs[i].(string), pairs[i+1].(*value))
	}
	return o
}

func (v *value) add(name string, item *value) {
	v.names, v.items = append(v.names, name), append(v.items, item)
}

func (v *value) index(name string) int {
	for i, n := range v.names {
		if n == name {
			return i
		}
	}
	return -1
}

func (v *value) remove(i int) {
	v.names = append(v.names[:i:i], v.names[i+1:]...)
	v.items = append(v.items[:i:i], v.items[i+1:]...)
}

// style says in which of JSON's many spellings a value is written. The zero
// style is the shortest.
type style struct {
	rng     *rand.Rand
	space   bool // white space between tokens
	escape  bool // characters as \u escapes
	shuffle bool // members in any order
	numbers bool // whole numbers as 1e1, 10.0, 100E-1
}

func (v *value) json(st style) string {
	var b strings.Builder
	v.write(&b, st)
	return b.String()
}

func (v *value) write(b *strings.Builder, st style) {
	switch v.kind {
	case '{', '[':
		order := make([]int, len(v.items))
		for i := range order {
			order[i] = i
		}
		if st.shuffle && v.kind == '{' {
			st.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		b.WriteByte(v.kind)
		for n, i := range order {
			if n > 0 {
				b.WriteByte(',')
			}
			b.WriteString(st.gap())
			if v.kind == '{' {
				b.WriteString(st.quote(v.names[i]) + st.gap() + ":" + st.gap())
			}
			v.items[i].write(b, st)
			b.WriteString(st.gap())
		}
		if len(order) == 0 {
			b.WriteString(st.gap())
		}
		b.WriteByte(v.kind + 2)
	case '"':
		b.WriteString(st.quote(v.text))
	default:
		b.WriteString(st.number(v.text))
	}
}

// gap is white space that may stand between two tokens.
func (st style) gap() string {
	if !st.space || st.rng.IntN(3) > 0 {
		return ""
	}
	return strings.Repeat(pick(st.rng, " ", "\n", "\t", "\r\n", "  "), 1+st.rng.IntN(2))
}

func (st style) quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		b.WriteString(st.char(r))
	}
	b.WriteByte('"')
	return b.String()
}

// char is one character of a string literal.
func (st style) char(r rune) string {
	if st.escape && st.rng.IntN(4) == 0 {
		format := pick(st.rng, `\u%04x`, `\u%04X`)
		if r < 0x10000 {
			if r == '/' && st.rng.IntN(2) == 0 {
				return `\/`
			}
			return fmt.Sprintf(format, r)
		}
		hi, lo := utf16.EncodeRune(r)
		return fmt.Sprintf(format+format, hi, lo)
	}
	return plainChar(r)
}

// plainChar is the shortest spelling of a character, as RFC 8785 has it.
func plainChar(r rune) string {
	switch r {
	case '"', '\\':
		return `\` + string(r)
	case '\b':
		return `\b`
	case '\t':
		return `\t`
	case '\n':
		return `\n`
	case '\f':
		return `\f`
	case '\r':
		return `\r`
	}
	if r < 0x20 {
		return fmt.Sprintf(`\u%04x`, r)
	}
	return string(r)
}

// number spells a whole number in another way of the same value.
func (st style) number(s string) string {
	if n, err := strconv.Atoi(s); !st.numbers || err != nil || n == 0 {
		return s
	}
	switch st.rng.IntN(4) {
	case 0:
		return s + ".0"
	case 1:
		return s + "e0"
	case 2:
		return s + "00E-2"
	}
	if z := strings.TrimRight(s, "0"); z != s {
		return z + "e+" + strconv.Itoa(len(s)-len(z))
	}
	return s + ".000"
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// word returns letters that mean nothing, of n characters.
func word(rng *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		if i%2 == 0 {
			b[i] = "bcdfghklmnprstvwz"[rng.IntN(17)]
		} else {
			b[i] = "aeiou"[rng.IntN(5)]
		}
	}
	return string(b)
}

package memory

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/internal/words"
)

// matches reports whether one of some words is a form of one of others.
func matches(of []string, others ...string) bool {
	return slices.ContainsFunc(of, func(o string) bool {
		return slices.ContainsFunc(others, func(w string) bool {
			return alike(o, w, func(w string) bool { return words.FormsOf(o).Has(w) })
		})
	})
}

// alike reports whether two words are forms of one: they differ in endings of which
// one says no other thing than the other. An employee is no employer, and an
// accountant no account, whatever a stemmer makes of them.
func alike(a, b string, stem func(string) bool) bool {
	if a == b {
		return true
	}
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	x, y := a[n:], b[n:]
	if n >= 5 && (slices.Contains(kin, [2]string{x, y}) || slices.Contains(kin, [2]string{y, x})) {
		return true
	}
	return n >= 2 && slices.Contains(inflections, x) && slices.Contains(inflections, y) && stem(b)
}

// inflections end the forms of one word in the languages that are stemmed, and kin
// those of an adjective, a verb and their noun.
var (
	inflections = append(strings.Fields("s es e d ed ing n en ne nes ned nen t st te ten tet em et y ies ied ying i a o as os is ons ez ent é ée és ées m re er ar a ar ade at it ir x u у а ы и е ю я о ой ом ам ах ами ет ит ешь ишь ут ют ат ят л ла ли ть nning ning pped pping tted tting"), "")
	kin         = [][2]string{{"ic", "y"}, {"c", "es"}, {"ic", "es"}, {"ic", "ies"}, {"tic", ""}, {"ed", "age"}, {"y", "iage"}, {"bed", "ption"}, {"be", "ption"}, {"bes", "ption"}, {"bing", "ption"},
		{"bed", "ptions"}, {"ed", "ion"}, {"e", "ion"}, {"es", "ion"}, {"ing", "ion"}, {"", "ion"}, {"s", "ion"}, {"ed", "ance"}, {"ed", "ence"}, {"ing", "ence"}, {"ing", "ance"}, {"es", "ence"}, {"es", "ance"},
		{"d", "ment"}, {"ed", "ment"}, {"", "ment"}, {"s", "ment"}, {"t", "cy"}, {"sch", "e"}, {"sch", "en"}, {"que", "e"}, {"ques", "e"}, {"co", "a"}, {"ca", "a"}, {"co", "e"}, {"ca", "e"}}
)

// is reports whether a leaf is a value, or a text that has it in it.
func (l *leaf) is(value string) bool {
	return standsIn(l.text, value, true) || l.number && decimal().MatchString(value) && shortest(value) == shortest(l.text)
}

// has reports whether a value stands in a unit between other words.
func (u *unit) has(value string) bool {
	value = strings.TrimSpace(value)
	if value == "" {
		return false
	}
	if u.leaves != nil {
		return slices.ContainsFunc(u.leaves, func(l leaf) bool { return l.is(value) })
	}
	return standsIn(u.text, value, u.whole)
}

// names reports whether a text has a name in it, in capitals or not.
func names(s, name string, whole bool) bool {
	return text.Stands(nameForm(s), nameForm(bare(name)), whole)
}

func nameForm(s string) string { return text.Fold(s, text.Compatible) }

// bare is a name without the punctuation around it, which is no part of it.
func bare(name string) string {
	is := func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) }
	if out := strings.TrimRightFunc(strings.TrimLeftFunc(name, is), func(r rune) bool { return is(r) && r != '#' }); out != "" {
		return out
	}
	return name
}

// sameName reports whether what bears out the one name bears out the other.
func sameName(a, b string) bool { return nameForm(bare(a)) == nameForm(bare(b)) }

func fold(s string) string { return text.Fold(s, text.Canonical) }

// standsIn reports whether a value stands in a text, in the form in which values
// are equal.
func standsIn(s, value string, whole bool) bool {
	value = norm.NFC.String(value)
	return text.Stands(s, value, whole) || text.Stands(spelled(s), spelled(value), whole)
}

// spelled is a text with the capitals that begin words of letters alone made
// small. One inside a word, and what has a digit or a sign in it, is as it is
// written: pay.pal is not pay-pal, and swordFish is a password of its own. What
// stands at an offset of it stands there in the text.
func spelled(s string) string {
	var b strings.Builder
	at := 0
	for _, m := range letters().FindAllStringIndex(s, -1) {
		w := s[m[0]:m[1]]
		r, n := utf8.DecodeRuneInString(w)
		small := strings.ToLower(w[:n])
		if len(small) != n || !unicode.IsUpper(r) || strings.ContainsFunc(w[n:], unicode.IsUpper) || joined(s, m[0], m[1]) {
			continue
		}
		b.WriteString(s[at:m[0]])
		b.WriteString(small)
		at = m[0] + n
	}
	b.WriteString(s[at:])
	return b.String()
}

// joined reports whether letters are a part of something longer.
func joined(s string, from, to int) bool {
	before, n := utf8.DecodeLastRuneInString(s[:from])
	first, _ := utf8.DecodeLastRuneInString(s[:from-n])
	after, n := utf8.DecodeRuneInString(s[to:])
	last, _ := utf8.DecodeRuneInString(s[to+n:])
	part := func(r, beyond rune) bool {
		return unicode.IsNumber(r) || r < utf8.RuneSelf && strings.ContainsRune("-_@+/#&=%~\\", r) || strings.ContainsRune(".:", r) && text.Alphanumeric(beyond)
	}
	return part(before, first) || part(after, last)
}

var decimal = text.Pattern(`^-?[0-9]+(\.[0-9]+)?$`)

// shortest is a decimal number without zeros at the end of its fraction.
func shortest(number string) string {
	if decimal().MatchString(number) && strings.Contains(number, ".") {
		return strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
	}
	return number
}

// normName is the form in which names are equal: NFKC, case folded, everything
// but letters, marks and digits one space, trimmed. It joins spellings of one
// name and nothing more: B0b is not Bob, and neither is a Cyrillic look-alike.
func normName(s string) string {
	if text.ASCII(s) {
		out := make([]byte, 0, len(s))
		for i := range len(s) {
			switch c := s[i] | 0x20; { // a letter is one only if it was one; of a digit that does not hold
			case c >= 'a' && c <= 'z', c >= '0' && c <= '9' && s[i] == c:
				out = append(out, c)
			case len(out) > 0 && out[len(out)-1] != ' ':
				out = append(out, ' ')
			}
		}
		return strings.TrimSuffix(string(out), " ")
	}
	return strings.Join(strings.FieldsFunc(text.Fold(s, text.Compatible), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}), " ")
}

// tidy is a text in NFC, without control and other unseen characters, trimmed. Line
// breaks, tabs and blank glyphs become one space each.
func tidy(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || text.Blank(r) && !text.Hidden(r, text.Ignorable):
			return ' '
		case text.Hidden(r, text.Unseen):
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(norm.NFC.String(s))
}

// trigrams returns the distinct runs of three runes of a normalised name with
// a space around it, sorted.
func trigrams(name string) []string {
	rs := []rune(" " + name + " ")
	var out []string
	for i := 0; i+3 <= len(rs); i++ {
		out = append(out, string(rs[i:i+3]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// jaccard is |a∩b| / |a∪b| of two sorted sets, in percent, rounded down.
func jaccard(a, b []string) Percent {
	both := 0
	for _, x := range a {
		if _, ok := slices.BinarySearch(b, x); ok {
			both++
		}
	}
	if all := len(a) + len(b) - both; all > 0 {
		return Percent(both * 100 / all)
	}
	return 0
}

func runes(s string) int { return utf8.RuneCountInString(s) }

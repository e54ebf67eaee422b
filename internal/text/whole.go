package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// Apostrophes stand inside a word, as in isn't.
	Apostrophes = "'\u2019\u2018\u201b\u02b9\u2032\u00b4`\uff07\u05f3\u05f4\u00b7\u2027"
	// Groups stand between two digits of one number, as fractions do: between
	// its thousands, or as the bar of a fraction or the colon of a time. Spaces
	// beyond ASCII do too.
	Groups = "'\u2019\u00b7\u066c\u02d9\u2027\u2219\u22c5\u00a0\u202f\u2006\u2007\u2008\u2009\u200a/\u2044\u2215:"
	// signs stand before a number and are part of it, beside all dashes (Pd).
	signs = "+\u2212\u207a\u207b\u208a\u208b\u02d7\u2796\ufe62\uff0b\u00b1\u2213"
	// joints make one of what stands on both sides, as in non-native and
	// kim@shop.example. A dash does not, nor what begins an entity of HTML.
	joints = "-\u2010\u2011\ufe63\uff0d" + Apostrophes + ".@#+%~"
	// fractions begin the fraction of a number, also of one without a whole part.
	fractions = ".,\u066b\uff0e\uff0c"
	// parting stands between two things, with or without space around it.
	parting = "=\"“”„()[]{}<>|;*`:,"
	// maxIgnored bounds how many ignorable characters are passed over at one
	// place. Where more stand together nothing begins or ends.
	maxIgnored = 64
)

// Apart reports whether a quote may begin or end at an offset of a text: between
// two characters that no word and no number holds together. What nobody sees
// holds nothing apart: a soft hyphen inside a word leaves it one word. prev and
// next step over one character to the left and to the right of an offset, and
// give utf8.RuneError at the text's ends.
func Apart(at int, prev, next func(int) (rune, int)) bool {
	a, i, ok1 := seen(at, prev)
	before, _, ok2 := seen(i, prev)
	b, i, ok3 := seen(at, next)
	after, _, ok4 := seen(i, next)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return false
	}
	digit, in := unicode.IsNumber, strings.ContainsRune
	group := func(r rune) bool {
		return in(Groups, r) || in(fractions, r) || r > unicode.MaxASCII && unicode.IsSpace(r)
	}
	switch {
	case inWord(a) && inWord(b):
		return false
	case Sign(a) && (digit(b) || in(fractions, b) && digit(after) || unicode.Is(unicode.Sc, b)):
		return false // -12, -.5, -$12; or what stands behind the hyphen of INC-1042
	case unicode.Is(unicode.Sc, a) && Sign(before) && (digit(b) || in(fractions, b)):
		return false // -$12
	case digit(a) && (in("-\u2212\ufe63\uff0d", b) || Sign(b) && digit(after)):
		return false // 1042-77; or a sign behind its number
	case inWord(before) && in(joints, a) && inWord(b), inWord(a) && in(joints, b) && inWord(after):
		return false
	case inWord(a) && in("+#", b) && !inWord(after):
		return false // O+ is not O, C# is not C
	case digit(b) && in(fractions, a):
		return false // the fraction of what stands before, or of nothing: .5
	case digit(before) && group(a) && digit(b), digit(a) && group(b) && digit(after):
		return false
	}
	return !unicode.Is(unicode.M, b) // a mark belongs to the character before
}

// Sign reports what stands before a number and changes it.
func Sign(r rune) bool { return unicode.Is(unicode.Pd, r) || strings.ContainsRune(signs, r) }

func inWord(r rune) bool {
	return r != utf8.RuneError && (Alphanumeric(r) || unicode.Is(unicode.Pc, r))
}

// Ignored reports what is passed over between characters that stand beside each
// other: Ignorable, and controls that are no white space. A variation selector
// is a mark of its character.
func Ignored(r rune) bool {
	return Hidden(r, Ignorable) && !unicode.Is(unicode.Variation_Selector, r) || unicode.Is(unicode.Cc, r) && !unicode.IsSpace(r)
}

// seen steps from an offset to the first character that is not ignored. It
// reports false where too many are.
func seen(at int, step func(int) (rune, int)) (r rune, to int, ok bool) {
	for range maxIgnored {
		if r, to = step(at); !Ignored(r) {
			return r, to, true
		}
		at = to
	}
	return 0, at, false
}

// Stands reports whether a value stands in a text as itself, and not as a part
// of another one. A text that is not whole may have been cut inside what it
// begins or ends with.
//
// Who quotes can quote more; a value cannot be made longer. So beyond what Apart
// holds together any mark between letters makes them one value, but for what
// parts things, and nothing may be hidden at its ends; and some of what Apart
// holds together still has the value in it: a number before its unit or behind
// the comma of a table, a name before its 's, a day before its time, what is
// _emphasised_, and more than one letter of a script without spaces.
func Stands(text, value string, whole bool) bool {
	if value == "" {
		return false
	}
	for at := 0; ; {
		i := strings.Index(text[at:], value)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(value)
		if (whole || start > 0 && end < len(text)) && begins(text, start, value) && ends(text, end, value) {
			return true
		}
		at = start
		for r, n := utf8.DecodeRuneInString(text[at:]); n > 0; r, n = utf8.DecodeRuneInString(text[at:]) {
			if at += n; !Alphanumeric(r) || Spaceless(r) {
				break // within a word no value begins
			}
		}
	}
}

// begins reports whether a value that stands at an offset begins there.
func begins(text string, at int, value string) bool {
	prev, next := steps(text)
	r, i := prev(at)
	beyond, _ := prev(i)
	first, _ := next(at)
	switch {
	case at == 0, r == ',' && unicode.IsNumber(first) && beyond != utf8.RuneError && !unicode.IsNumber(beyond) && !unicode.IsSpace(beyond):
		return true
	}
	return open(first, r, beyond, value) || Apart(at, prev, next) && !attached(r, beyond, value)
}

var (
	// A unit that is written on to its number, and no other number.
	unit = Pattern(`^(kg|mg|km|cm|mm|ml|h|kB|KB|MB|GB|TB|EUR|USD|GBP|CHF|JPY)([^\pL\pN\pM]|$)`)
	own  = Pattern(`^['\x{2019}]s([^\pL\pN\pM]|$)`) // Acme's
	date = Pattern(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
	hour = Pattern(`^T[0-9]{2}:`)
)

// ends reports whether a value that stands before an offset ends there.
func ends(text string, at int, value string) bool {
	prev, next := steps(text)
	r, i := next(at)
	beyond, _ := next(i)
	last, _ := prev(at)
	switch after := text[at:]; {
	case after == "", own().MatchString(after), unicode.IsNumber(last) && unit().MatchString(after), date().MatchString(value) && hour().MatchString(after):
		return true
	case strings.ContainsRune("+#-\u2212", r) && !Alphanumeric(beyond):
		return false // O- is not O
	}
	return open(last, r, beyond, value) || Apart(at, prev, next) && !attached(r, beyond, value)
}

// open reports whether r beside the edge of a value leaves it a value: within a
// script without spaces, and where it is emphasised.
func open(edge, r, beyond rune, value string) bool {
	return Spaceless(edge) && Spaceless(r) && utf8.RuneCountInString(value) > 1 || r == '_' && !Alphanumeric(beyond)
}

// attached reports whether r, beside a value, makes it a part of something
// longer that goes on beyond.
func attached(r, beyond rune, value string) bool {
	switch {
	case Alphanumeric(r), Hidden(r, Ignorable):
		return true
	case !Alphanumeric(beyond), unicode.IsSpace(r):
		return false
	case r == ':' && strings.Contains(value, ":"):
		return true // of an address, of a time
	}
	return !unicode.Is(unicode.Sc, r) && !strings.ContainsRune(parting, r)
}

// steps are those over the characters of a string.
func steps(s string) (prev, next func(int) (rune, int)) {
	return func(at int) (rune, int) {
			r, n := utf8.DecodeLastRuneInString(s[:at])
			return r, at - n
		}, func(at int) (rune, int) {
			r, n := utf8.DecodeRuneInString(s[at:])
			return r, at + n
		}
}

package provenance

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// types are the declared types.
var types = []Type{ID, Integer, Decimal, Email, Host, URL, Path, Name, Phone, IBAN, Time}

// Types returns every declared type; Untyped is none.
func Types() []Type { return slices.Clone(types) }

// Canonical returns the canonical form of a JSON literal under t (R17).
//
// A non-empty why means that the value is none of that type: form.not_canonical,
// form.invisible or form.mixed_script. Otherwise canonical is the text two equal
// values share, and already says that the literal may be sent as written; where
// it is false the value means canonical but is spelt otherwise, which an
// authority argument must not be. The same type of another JSON kind (the ID 13
// and "13") has one canonical form.
//
// The untyped form of a string is its text, of a number its exact decimal
// value, of anything else its JSON text; only values of one JSON kind are equal
// (see Equal). It is always already canonical.
func Canonical(t Type, v strictjson.Value) (canonical string, already bool, why writ.Reason) {
	kind := v.Kind()
	text, isText := v.Text()
	if kind == strictjson.String && !isText {
		return "", false, writ.FormNotCanonical
	}
	if t == Untyped {
		return untyped(v, text)
	}
	if kind == strictjson.Number {
		return typedNumber(t, string(v.Literal()))
	}
	if !isText || text == "" {
		return "", false, writ.FormNotCanonical
	}
	if why := visible(text); why != "" {
		return "", false, why
	}
	switch t {
	case Integer, Decimal:
		return numberText(t, text)
	case Time:
		return instant(text)
	}
	if form := forms[t]; form == nil {
		why = writ.FormNotCanonical
	} else {
		canonical, why = form(text)
	}
	if why != "" {
		return "", false, why
	}
	return canonical, canonical == text, ""
}

// forms are the canonical forms of texts.
var forms = map[Type]func(text string) (string, writ.Reason){
	ID:    func(text string) (string, writ.Reason) { return norm.NFC.String(text), "" },
	Email: email, Host: host, URL: absoluteURL, Path: absolutePath, Name: singleName, Phone: phone, IBAN: iban,
}

func untyped(v strictjson.Value, text string) (string, bool, writ.Reason) {
	switch v.Kind() {
	case strictjson.String:
		return text, true, ""
	case strictjson.Number:
		if d, ok := decimal(string(v.Literal())); ok {
			return d, true, ""
		}
	case strictjson.Null, strictjson.Bool:
		if word := string(v.Literal()); word == "null" || word == "true" || word == "false" {
			return word, true, ""
		}
	case strictjson.Object, strictjson.Array: // a leaf only when empty
		if v.Len() > 0 {
			break
		}
		if v.Kind() == strictjson.Object {
			return "{}", true, ""
		}
		return "[]", true, ""
	}
	return "", false, writ.FormNotCanonical
}

// typedNumber reads a JSON number. Numbers are compared by value and sent as
// written, so any spelling is already canonical.
func typedNumber(t Type, lit string) (string, bool, writ.Reason) {
	d, ok := decimal(lit)
	if !ok || t != Decimal && (t != Integer && t != ID || strings.Contains(d, ".")) {
		return "", false, writ.FormNotCanonical
	}
	return d, true, ""
}

// numberText reads a number in a string. Plain fixed-point text may be sent as
// written ("12.50"); an exponent or a negative zero is another spelling.
func numberText(t Type, text string) (string, bool, writ.Reason) {
	d, ok := decimal(text)
	if !ok || t == Integer && strings.Contains(d, ".") {
		return "", false, writ.FormNotCanonical
	}
	plain := d == text
	if t == Decimal && !plain && strings.Contains(text, ".") && !strings.ContainsAny(text, "eE") {
		plain = strings.TrimRight(strings.TrimRight(text, "0"), ".") == d
	}
	return d, plain, ""
}

var (
	phoneForm = text.Pattern(`^\+[1-9][0-9]{6,14}$`)
	ibanForm  = text.Pattern(`^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$`)
	// Go's own RFC 3339 parser takes a comma and a one-digit hour.
	timeForm = text.Pattern(`^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$`)
)

// formed is a canonical form, if it is one.
func formed(s string, is bool) (string, writ.Reason) {
	if !is {
		return "", writ.FormNotCanonical
	}
	return s, ""
}

// phone is E.164; spaces and the usual separators are another spelling.
func phone(s string) (string, writ.Reason) {
	s = strings.NewReplacer(" ", "", "-", "", ".", "", "(", "", ")", "").Replace(s)
	return formed(s, phoneForm().MatchString(s))
}

// iban is the electronic form with a valid mod 97 check.
func iban(s string) (string, writ.Reason) {
	s = strings.ToUpper(strings.ReplaceAll(s, " ", ""))
	if !ibanForm().MatchString(s) || s[2:4] < "02" || s[2:4] > "98" {
		return "", writ.FormNotCanonical
	}
	rem := 0
	for _, c := range s[4:] + s[:4] {
		if c >= 'A' {
			rem = (rem*100 + int(c-'A') + 10) % 97
		} else {
			rem = (rem*10 + int(c-'0')) % 97
		}
	}
	return formed(s, rem == 1)
}

// instant is RFC 3339, equal when it is the same instant. Any offset may be
// sent as written; lower-case letters and the unknown offset -00:00 may not.
func instant(s string) (string, bool, writ.Reason) {
	if !timeForm().MatchString(s) {
		return "", false, writ.FormNotCanonical
	}
	up := strings.ToUpper(s)
	at, err := time.Parse(time.RFC3339Nano, up)
	if err != nil || at.UTC().Year() < 0 || at.UTC().Year() > 9999 {
		return "", false, writ.FormNotCanonical
	}
	return at.UTC().Format(time.RFC3339Nano), up == s && !strings.HasSuffix(s, "-00:00"), ""
}

// Equal reports whether two literals are the same value: under a type,
// the same canonical form; untyped, the same JSON kind and exact value. A value
// that has no canonical form equals nothing.
func Equal(t Type, a, b strictjson.Value) bool {
	ca, _, wa := Canonical(t, a)
	cb, _, wb := Canonical(t, b)
	return wa == "" && wb == "" && ca == cb && (t != Untyped || a.Kind() == b.Kind())
}

// SmallSpace reports whether a value is of so small a space that anyone can
// guess it (R8): booleans, null, empty, digits only of less than 6, strings of
// less than 3 code points. Sign, decimal point and digits of other scripts do
// not make a number larger. A value with no canonical form is small. Members
// of an enum are small too, which only the schema knows.
func SmallSpace(t Type, v strictjson.Value) bool {
	c, _, why := Canonical(t, v)
	if why != "" {
		return true
	}
	if k := v.Kind(); k != strictjson.Number && (k != strictjson.String || utf8.RuneCountInString(c) < 3) {
		return true
	}
	n, points := 0, 0
	for i, r := range c {
		switch {
		case unicode.IsDigit(r):
			n++
		case i == 0 && (r == '-' || r == '+'):
		case r == '.' && points == 0:
			points++
		default:
			return false
		}
	}
	return n < 6
}

// empty reports whether v is one of the values that only a constant vouches
// for: null, the empty string, array and object.
func empty(v strictjson.Value) bool {
	c, _, why := Canonical(Untyped, v)
	k := v.Kind()
	return why != "" || k == strictjson.Null || k == strictjson.Array || k == strictjson.Object || c == ""
}

// The bounds of a number literal (attack W16): they bound the expansion of
// an exponent too.
const (
	maxNumber   = 64
	maxExponent = 400
)

// decimal returns the exact fixed-point spelling of a JSON number literal: no
// exponent, no leading zeros, no trailing zeros after the point, no negative
// zero. It moves digits and computes nothing, so nothing is rounded.
func decimal(lit string) (string, bool) {
	if len(lit) == 0 || len(lit) > maxNumber {
		return "", false
	}
	rest, neg := strings.CutPrefix(lit, "-")
	mant, exp := rest, 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		e := rest[i+1:]
		if e == "" || strings.Trim(strings.TrimLeft(e[:1], "+-")+e[1:], "0123456789") != "" {
			return "", false
		}
		n, err := strconv.Atoi(e)
		if err != nil || n > maxExponent || n < -maxExponent {
			return "", false
		}
		mant, exp = rest[:i], n
	}
	whole, frac, point := strings.Cut(mant, ".")
	if !digits(whole) || point && !digits(frac) || len(whole) > 1 && whole[0] == '0' {
		return "", false
	}
	all := whole + frac
	at := len(whole) + exp // where the point stands in all
	if at < 0 {
		all, at = strings.Repeat("0", -at)+all, 0
	}
	if at > len(all) {
		all += strings.Repeat("0", at-len(all))
	}
	out := cmp.Or(strings.TrimLeft(all[:at], "0"), "0")
	if frac = strings.TrimRight(all[at:], "0"); frac != "" {
		out += "." + frac
	}
	if neg && out != "0" {
		out = "-" + out
	}
	return out, true
}

// digits reports whether s is one or more ASCII digits.
func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// CheckText returns form.invisible for a JSON string that holds a character
// nobody sees (text.Unseen). It
// returns "" for every value of another kind. An authority argument must pass it whether
// typed or not, or two names that look alike would be two names.
func CheckText(v strictjson.Value) writ.Reason {
	s, ok := v.Text()
	switch {
	case ok:
		return visible(s)
	case v.Kind() == 0 || v.Kind() == strictjson.String: // bytes that are no JSON
		return writ.FormNotCanonical
	}
	return ""
}

// CheckHeader is CheckText of a text that stands in the head of a message as it is written: a
// reader takes "=?UTF-8?B?…?=" there for what it is the encoding of.
func CheckHeader(v strictjson.Value) writ.Reason {
	if s, _ := v.Text(); strings.Contains(s, "=?") {
		return writ.FormInvisible
	}
	return CheckText(v)
}

// Lines reports whether nothing is wrong with a value but that it goes on in another line
// or has a tab in it.
func Lines(v strictjson.Value) bool {
	s, ok := v.Text()
	return ok && utf8.ValidString(s) && text.HidesIn(s, text.Unseen, "") && !text.HidesIn(s, text.Unseen, "\n\t")
}

// visible is CheckText on decoded text.
func visible(s string) writ.Reason {
	switch {
	case text.HidesIn(s, text.Unseen, ""):
		return writ.FormInvisible
	case !utf8.ValidString(s):
		return writ.FormNotCanonical
	}
	return ""
}

// eastAsian holds the scripts that one text mixes as a matter of course
// (UTS #39, "highly restrictive"): each set may stand with Latin.
var eastAsian = [][]string{{"Han", "Hiragana", "Katakana", "Latin"}, {"Han", "Hangul", "Latin"}, {"Han", "Bopomofo", "Latin"}}

// mixedScript reports whether s draws letters from scripts that no one writing
// system mixes, as `pаypal` with a Cyrillic а does.
func mixedScript(s string) bool {
	seen := map[string]bool{}
	for _, r := range s {
		if n := script(r); n != "" {
			seen[n] = true
		}
	}
	if len(seen) < 2 {
		return false
	}
	return !slices.ContainsFunc(eastAsian, func(set []string) bool {
		for n := range seen {
			if !slices.Contains(set, n) {
				return false
			}
		}
		return true
	})
}

// script names the script of r, "" for one shared by many.
func script(r rune) string {
	if r < utf8.RuneSelf {
		if r|0x20 >= 'a' && r|0x20 <= 'z' {
			return "Latin"
		}
		return ""
	}
	if unicode.In(r, unicode.Common, unicode.Inherited) {
		return ""
	}
	for n, t := range unicode.Scripts {
		if n != "Common" && n != "Inherited" && unicode.Is(t, r) {
			return n
		}
	}
	return "unknown"
}

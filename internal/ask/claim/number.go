package claim

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
)

// quantity reads a number and what follows it: its other end, its scale, its
// unit, or that it is a time of day.
func (r *reading) quantity(i int, v string) (out []fact, n int) {
	w := r.words[i]
	_, spelt := numbers()[w.fold]
	f := fact{key: "n:" + v, text: w.text, weak: spelt && v == "1"}
	n = 1
	before := r.wordAt(i - 1)
	if units()[before] != "" && i > 1 {
		before = r.wordAt(i - 2)
	}
	at := func(k int) string { return r.wordAt(i + k) }
	half, k := r.half(i + 1)
	switch next := at(1); {
	case half != "" && !strings.ContainsAny(v, ".-") && len(v) < 3:
		return []fact{{key: clock(v, "00", half), text: r.phrased(i, 1+k)}}, 1 + k
	case next == "to", next == "bis", (next == "and" || next == "und") && (before == "between" || before == "zwischen"):
		if to, m := r.rangeTo(i, v, before == "from" || before == "von"); m > 0 {
			f, n = to, m
		}
	case scales()[next] != "":
		f, n = fact{key: "n:" + scaled(v, scales()[next]), text: r.phrased(i, 2)}, 2
	}
	out = []fact{f}
	if u := units()[at(n)]; u != "" && !r.words[i+n].start {
		out[0].next = ""
		out = append(out, fact{key: "u:" + u, text: r.words[i+n].text})
		n++
	}
	return out, n
}

// rangeTo reads a range from the i-th word on, and how many words it takes, 0 where its
// other end is none. Its ends can be told alone where it says from.
func (r *reading) rangeTo(i int, v string, from bool) (fact, int) {
	n := 2
	if units()[r.wordAt(i+n)] != "" { // $10 to $12
		n++
	}
	if i+n >= len(r.words) {
		return fact{}, 0
	}
	to := r.number(i + n)
	if to == "" {
		return fact{}, 0
	}
	n++
	if by := scales()[r.wordAt(i+n)]; by != "" {
		v, to, n = scaled(v, by), scaled(to, by), n+1
	}
	if from {
		r.has["n:"+v], r.has["n:"+to] = true, true
	}
	return fact{key: "n:" + v + ".." + to, text: r.phrased(i, n)}, n
}

var (
	isoDate  = text.Pattern(`^(\d{4})[-/](\d{2})[-/](\d{2})(?:t(\d{2}:\d{2}).*)?$`)
	dotDate  = text.Pattern(`^(\d{1,2})\.(\d{1,2})\.(\d{4})$`)
	barDate  = text.Pattern(`^(\d{1,2})/(\d{1,2})/(\d{4})$`)
	dayTime  = text.Pattern(`^(\d{1,2}):(\d{2})(?::\d{2}(?:\.\d+)?)?z?$`)
	dayFirst = text.Pattern(`^(\d{1,2})(?:st|nd|rd|th)?$`)
	year     = text.Pattern(`^\d{4}$`)
)

// date reads a date or a time of day that begins at the i-th word. Of 3/4/2026
// nobody knows which is the month: it is only equal to itself.
func (r *reading) date(i int) ([]fact, int) {
	w := r.words[i]
	of := func(day, month, year string, n int) ([]fact, int) {
		out := []fact{{key: fmt.Sprintf("d:%s-%02s", month, day), text: r.phrased(i, n)}}
		if r.has["m:"+month] = true; year != "" {
			out = append(out, fact{key: "y:" + year, text: year})
		}
		return out, n
	}
	if m := isoDate().FindStringSubmatch(w.fold); m != nil {
		out, n := of(m[3], m[2], m[1], 1)
		if m[4] != "" {
			out = append(out, fact{key: "t:" + m[4], text: m[4]})
			r.has["w:utc"] = strings.HasSuffix(w.fold, "z")
		}
		return out, n
	}
	if m := dotDate().FindStringSubmatch(w.fold); m != nil {
		return of(m[1], fmt.Sprintf("%02s", m[2]), m[3], 1)
	}
	if m := barDate().FindStringSubmatch(w.fold); m != nil {
		switch day, month := fmt.Sprintf("%02s", m[1]), fmt.Sprintf("%02s", m[2]); {
		case day > "12" || day == month:
			return of(day, month, m[3], 1)
		case month > "12":
			return of(month, day, m[3], 1)
		}
		return nil, 0
	}
	at := func(k int) string { return r.wordAt(i + k) }
	if m := dayTime().FindStringSubmatch(w.fold); m != nil {
		half, k := r.half(i + 1)
		return []fact{{key: clock(m[1], m[2], half), text: r.phrased(i, 1+k)}}, 1 + k
	}
	day, month, n := dayFirst().FindStringSubmatch(w.fold), months()[at(1)], 2
	if at(1) == "of" {
		month, n = months()[at(2)], 3
	}
	if day == nil || month == "" {
		day, month, n = dayFirst().FindStringSubmatch(at(1)), months()[w.fold], 2
	}
	if day == nil || month == "" {
		return nil, 0
	}
	if y := at(n); year().MatchString(y) {
		return of(day[1], month, y, n+1)
	}
	return of(day[1], month, "", n)
}

// wordAt is the i-th word, as it is compared, "" where there is none.
func (r *reading) wordAt(i int) string {
	if i >= 0 && i < len(r.words) {
		return r.words[i].fold
	}
	return ""
}

// half reads am or p.m. at the i-th word, and how many words it takes.
func (r *reading) half(i int) (half string, n int) {
	half, n = strings.ReplaceAll(r.wordAt(i), ".", ""), 1
	if r.wordAt(i+1) == "m" {
		half, n = r.wordAt(i)+"m", 2
	}
	if half == "am" || half == "pm" {
		return half, n
	}
	return "", 0
}

// clock is the key of a time of day.
func clock(hour, minute, half string) string {
	h, _ := strconv.Atoi(hour)
	if half != "" {
		h %= 12
	}
	if half == "pm" {
		h += 12
	}
	return fmt.Sprintf("t:%02d:%s", h, minute)
}

var ordinal = text.Pattern(`^(\d+)(st|nd|rd|th)$`)

// number is the value of the i-th word, both ends of a range; "" if it is none.
func (r *reading) number(i int) string {
	w := r.words[i]
	if w.addr {
		return ""
	}
	if v, ok := numbers()[w.fold]; ok {
		return v
	}
	if m := ordinal().FindStringSubmatch(w.fold); m != nil {
		return m[1]
	}
	ten, one, ok := strings.Cut(w.fold, "-")
	if !ok {
		one, ten, ok = strings.Cut(w.fold, "und")
	}
	if a, b := numbers()[ten], numbers()[one]; ok && len(a) == 2 && a[1] == '0' && len(b) == 1 {
		return a[:1] + b
	}
	if v := decimal(w.text); v != "" {
		return v
	}
	if k := strings.IndexFunc(w.text, dash); k > 0 {
		_, n := utf8.DecodeRuneInString(w.text[k:])
		if from, to := decimal(w.text[:k]), decimal(w.text[k+n:]); from != "" && to != "" {
			return from + ".." + to
		}
	}
	return ""
}

func dash(r rune) bool { return r == '\u2212' || unicode.Is(unicode.Pd, r) }

// decimal is the value of a number in digits, in one spelling. A single comma
// before three digits groups them, a single point never does: JSON's 1.500 is
// one and a half. What has zeros before it is an identifier.
func decimal(s string) string {
	t, minus := digits(s)
	whole, fraction := t, ""
	if point := strings.LastIndexAny(t, ".,"); point >= 0 {
		mark := t[point : point+1]
		if strings.Count(t, mark) == 1 && (strings.ContainsAny(t[:point], ".,") || mark == "." || len(t)-point != 4 || point > 3 || t[0] == '0') {
			whole, fraction = t[:point], strings.TrimRight(t[point+1:], "0")
		}
	}
	parts := strings.FieldsFunc(whole, func(c rune) bool { return c == '.' || c == ',' })
	for i, p := range parts {
		if len(parts) > 1 && (len(p) > 3 || i > 0 && len(p) < 3) {
			return "" // a version, an address
		}
	}
	whole = strings.Join(parts, "")
	if whole == "" && fraction != "" {
		whole = "0"
	}
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return ""
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if minus && whole != "0" {
		whole = "-" + whole
	}
	return whole
}

// digits are those of a number with its points and commas, "" where anything else stands.
func digits(s string) (out string, minus bool) {
	var b strings.Builder
	for i, c := range s {
		switch d := text.Digit(c); {
		case d >= 0:
			b.WriteByte(byte('0' + d))
		case text.Ignored(c), i == 0 && c == '+':
		case i == 0 && dash(c):
			minus = c != '—'
		case strings.ContainsRune(".\u066b\uff0e", c):
			b.WriteByte('.')
		case strings.ContainsRune(",\uff0c", c):
			b.WriteByte(',')
		case strings.ContainsRune(text.Groups, c) && !strings.ContainsRune("/\u2044\u2215:", c):
		default:
			return "", false
		}
	}
	return b.String(), minus
}

// scaled is a number with its point moved to the right.
func scaled(v, by string) string {
	whole, fraction, _ := strings.Cut(v, ".")
	n := int(by[0] - '0')
	if strings.Contains(v, "..") || len(fraction) > n {
		return v + "e" + by
	}
	return strings.TrimLeft(whole+fraction, "0") + strings.Repeat("0", n-len(fraction))
}

package quote

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/sentences"

	"github.com/writ-project/writ/internal/text"
)

// A Piece is a stretch of a text, by its bytes.
type Piece struct{ From, To int }

// Of is what stands there.
func (p Piece) Of(s string) string { return s[p.From:p.To] }

// Pieces are the sentences of a text, by the boundaries of Unicode (UAX #29),
// but that one does not end behind a title or another short form; without white
// space around them.
func Pieces(s string) (out []Piece) {
	from := 0
	add := func(to int) {
		if t := strings.TrimSpace(s[from:to]); t != "" {
			at := from + strings.Index(s[from:to], t)
			out = append(out, Piece{at, at + len(t)})
		}
		from = to
	}
	for it := sentences.FromString(s); it.Next(); {
		if t := strings.TrimSpace(s[from:it.End()]); !shortForm(t, s[it.End():]) && !InDate(t, strings.TrimSpace(s[it.End():])) {
			add(it.End())
		}
	}
	add(len(s))
	return out
}

// Sentences are the texts of the pieces.
func Sentences(s string) (out []string) {
	for _, p := range Pieces(s) {
		out = append(out, p.Of(s))
	}
	return out
}

// Grow takes in pieces behind and before some of a text, one by one, as far as so
// many bytes go.
func Grow(ps []Piece, lo, hi, limit int) (int, int) {
	for grown := true; grown; {
		grown = false
		if hi+1 < len(ps) && ps[hi+1].To-ps[lo].From <= limit {
			hi, grown = hi+1, true
		}
		if lo > 0 && ps[hi].To-ps[lo-1].From <= limit {
			lo, grown = lo-1, true
		}
	}
	return lo, hi
}

// Of these those of the second list stand behind a name.
var shortForms, behindNames = []string{"dr", "mr", "mrs", "ms", "prof", "st", "no", "nr", "vs", "jr", "sr", "ca", "tel", "str", "bzw", "inc", "ltd", "co", "mme", "sra", "hr", "fr"}, []string{"inc", "ltd", "co", "jr", "sr"}

// shortForm reports whether a text ends with one, or with an initial. One behind a name
// ends its sentence too where a function word begins the next: Acme Ltd. The rest is paid.
func shortForm(s, next string) bool {
	s, dot := strings.CutSuffix(s, ".")
	if !dot {
		return false
	}
	last := s[strings.LastIndexFunc(s, unicode.IsSpace)+1:]
	if slices.Contains(behindNames, strings.ToLower(last)) {
		if ws := strings.Fields(next); len(ws) > 0 && function(ws[0]) {
			return false
		}
	}
	return slices.Contains(shortForms, strings.ToLower(last)) || len(last) == 1 && unicode.IsUpper(rune(last[0]))
}

// Ended reports whether a sentence has a mark at its end. What stands behind one
// that has none may go on with it: a list with its heading.
func Ended(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRightFunc(s, func(r rune) bool {
		return unicode.Is(unicode.Pe, r) || unicode.IsSpace(r) || strings.ContainsRune("\"'”’»›*_`", r)
	}))
	return strings.ContainsRune(".!?…。！？؟．｡", r)
}

// InDate reports whether a full stop at the end of a text is behind the number of
// a day, before a month or a comma: am 3. Mai.
func InDate(before, after string) bool {
	digits, dot := strings.CutSuffix(before, ".") // the pattern begins to look at the text's begin
	return dot && digits != "" && unicode.IsDigit(rune(digits[len(digits)-1])) && dayNumber().MatchString(before) && (month().MatchString(after) || strings.HasPrefix(after, ","))
}

var (
	dayNumber = text.Pattern(`(^|[^\pL\pN.,])[0-9]{1,2}\.$`)
	month     = text.Pattern(`(?i)^\s*(januari?|jänner|jaanuar|leden|ledna|februari?|feber|február|únor|února|mär[zc]|marts?|mars|březen|března|april|apríl|duben|dubna|mai|maj|május|květen|května|juni|jun|červen|června|juli|jul|červenec|července|august|augusti|srpen|srpna|september|září|o[kc]tober|říjen|října|november|listopad|listopadu|de[zcs]ember|prosinec|prosince|\pL{4,}kuu(ta|n)?)([^\pL]|$)`)
)

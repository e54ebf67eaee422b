package claim

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/strictjson"
)

const (
	// leastShown is how much of a text is shown with a quote out of it: a
	// sentence that is shorter is shown with the ones beside it, so that who
	// wrote the text does not choose what is hidden by where it ends.
	leastShown = 60
	// mostShown bounds what is shown on each side of a quote.
	mostShown = 300
)

// within returns the range of the text in which a quote is to be read: the
// sentences it stands in, at least least bytes on both sides of it, never
// beyond the strings it begins and ends in, and at most mostShown.
func (s *Source) within(q Quote, least int) (from, to int) {
	low, high := s.string(q.Start), s.string(q.End)
	from, to = q.Start, q.End
	if low.end > 0 {
		from = max(low.start, q.Start-mostShown)
		for i := q.Start - least; i > from; i-- {
			if s.ends(i, low.start) {
				from = i
			}
		}
	}
	if high.end > 0 {
		to = min(high.end, q.End+mostShown)
		for i := q.End + least; i < to; i++ {
			if s.ends(i, high.start) {
				to = i
			}
		}
	}
	for from < q.Start && !s.boundary(from) {
		from++
	}
	for to > q.End && !s.boundary(to) {
		to--
	}
	return from, to
}

// shown is what a person is shown of the text around a quote, "" where that is
// the quote itself. An ellipsis stands where the sentence goes on.
func (s *Source) shown(q Quote) string {
	from, to := s.within(q, 0)
	if to-from < leastShown {
		from, to = s.within(q, leastShown/2)
	}
	if from == q.Start && to == q.End {
		return ""
	}
	out := strings.TrimSpace(s.body[from:to])
	if l := s.string(q.Start); l.end > 0 && from > l.start && !s.ends(from, l.start) {
		out = "…" + out
	}
	if l := s.string(q.End); l.end > 0 && to < l.end && !s.ends(to, l.start) || s.cut && to == len(s.body) {
		out += "…"
	}
	return out
}

// string is the string an offset lies in, without its quotation marks, or the
// whole of a plain text; its end is 0 where the offset lies in none.
func (s *Source) string(at int) span {
	if s.plain {
		return span{0, len(s.body)}
	}
	for _, l := range s.touched(max(at-1, 0), at+1) {
		if l.kind == strictjson.String && l.start < at && (at < l.end || l.part) {
			end := l.end
			if !l.part {
				end--
			}
			return span{l.start + 1, end}
		}
	}
	return span{}
}

type span struct{ start, end int }

// ends reports whether a sentence ends before an offset. What may be the end of
// an abbreviation or of a number, and a line feed, ends none: the writer of a
// text chooses where it seems to end, and too much does no harm here.
func (s *Source) ends(at, start int) bool {
	before := s.body[max(start, at-64):at]
	if r, _ := utf8.DecodeLastRuneInString(before); strings.ContainsRune("。！？", r) {
		return true
	}
	text := strings.TrimRight(before, " ")
	if len(text) == len(before) {
		return false
	}
	text = strings.TrimRight(text, `"')]”’»`)
	r, n := utf8.DecodeLastRuneInString(text)
	next, _ := utf8.DecodeRuneInString(s.body[at:])
	if r != '.' && r != '!' && r != '?' || unicode.IsLower(next) || next == ' ' {
		return false
	}
	word := text[strings.LastIndexAny(text, " \n")+1:]
	return r != '.' || utf8.RuneCountInString(word) > 4 && !strings.ContainsRune(word[:len(word)-n], '.')
}

// plainly returns a range of the text as it is read: without the marks of JSON,
// its escapes resolved, each value and each name on a line of its own.
func (s *Source) plainly(from, to int) string {
	if s.plain {
		return s.body[from:to]
	}
	var out strings.Builder
	inside := s.string(from).end > 0
	for _, l := range s.labels { // or in a name
		inside = inside || l.start < from && from < l.end-1
	}
	for i := from; i < to; {
		c := s.body[i]
		n := 1
		switch empty := !inside && i+1 < to && strings.Contains(`"" [] {}`, s.body[i:i+2]) && c != ' '; {
		case empty:
			out.WriteString("\nempty\n")
			n = 2
		case c == '"':
			inside = !inside
			out.WriteByte('\n')
		case inside && c == '\\':
			_, end := s.next(i)
			n = end - i
			t, _ := strictjson.Text([]byte(`"` + s.body[i:end] + `"`))
			out.WriteString(t)
		case !inside && strings.IndexByte("{}[],:", c) >= 0:
			out.WriteByte('\n')
		default:
			out.WriteByte(c)
		}
		i += n
	}
	return out.String()
}

package claim

import (
	"bytes"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

const (
	// minQuote is the shortest quote, in bytes, that need not be a whole value:
	// a single character is a substring of everything.
	minQuote = 8
	// maxPlaces bounds the places tried for one quote, so that a source made of
	// repetitions costs no more than another. A quote not found by then is not
	// found.
	maxPlaces = 1_000
)

// Quote is where evidence stands.
type Quote struct {
	// Start and End bound it in Source.Text, in bytes.
	Start int `json:"start"`
	End   int `json:"end"`
	// From and To bound, in the recorded bytes, what it stands for.
	From int `json:"from"`
	To   int `json:"to"`
	// Pointer names, in the record, the first leaf it reaches into; it is ""
	// for a plain text.
	Pointer string `json:"pointer"`
}

// Ground reads a summary and accepts it only if the evidence of every item is a
// verbatim substring of the source text, by the rules of the package comment
// (INV-5). The summary it returns says for each item where. If any item fails
// there is no summary: the stop names all that failed, by pointer and reason.
func Ground(source *Source, summary []byte) (Summary, *Stop) {
	s, stop := ParseSummary(summary)
	if stop != nil {
		return Summary{}, stop
	}
	var failures []writ.Failure
	for _, l := range s.lists() {
		for i := range *l.items {
			item := &(*l.items)[i]
			q, r := source.Find(item.Evidence)
			if r != "" {
				failures = append(failures, writ.Failure{Pointer: pointerOf(l.name, i) + "/evidence", Reason: r, Need: groundNeeds[r]})
			}
			item.Quote = q
		}
	}
	if failures != nil {
		return Summary{}, StopAt(StageGrounding, failures...)
	}
	for _, l := range s.lists() {
		for i := range *l.items {
			source.hold(&(*l.items)[i])
		}
	}
	return s, nil
}

var groundNeeds = map[writ.Reason]string{
	writ.GroundUnquoted: "a verbatim quote of the source text, every character as it stands there",
	writ.GroundCropped:  "a quote that begins and ends between words, with whole numbers",
	writ.GroundShort:    "a quote of at least 8 bytes, or of one whole text or number, that reaches into a value",
	writ.GroundMarker:   "a quote of the source, not of the mark where it was cut off",
}

// Find returns the first place in the text that the evidence quotes. The reason
// is "" if there is one; otherwise it says why not, and the Quote is zero.
func (s *Source) Find(evidence string) (Quote, writ.Reason) {
	if strings.Contains(evidence, Marker) || strings.Contains(evidence, Marker[1:]) {
		return Quote{}, writ.GroundMarker
	}
	if evidence == "" || s == nil {
		return Quote{}, writ.GroundUnquoted
	}
	worst := writ.GroundUnquoted
	for at, tries := 0, 0; tries < maxPlaces; tries++ {
		i := strings.Index(s.body[at:], evidence)
		if i < 0 {
			break
		}
		start, end := at+i, at+i+len(evidence)
		switch {
		case !s.boundary(start) || !s.boundary(end):
			if worst == writ.GroundUnquoted {
				worst = writ.GroundCropped
			}
		case !s.shows(start, end):
			worst = writ.GroundShort
		default:
			return s.quote(start, end), ""
		}
		at = start + 1
	}
	return Quote{}, worst
}

// shows reports whether a range between boundaries is enough to show anything:
// one whole value; or at least 8 bytes that reach into one, of which 8 lie in
// values, or most do when a name counts that stands there with the whole of its
// value. So one letter of a value carries no name behind it.
func (s *Source) shows(start, end int) bool {
	if !s.solid(start, end) {
		return false
	}
	value, reaches := 0, false // how much is value; that it is something
	for _, l := range s.touched(start, end) {
		from, to := l.start, l.end // what of it is value
		if l.kind == strictjson.String && !s.plain {
			from++
			if !l.part {
				to--
			}
		}
		covers := start <= from && to <= end && !l.part
		whole := covers && start <= l.start && l.end <= end
		if covers && to-from >= 2 && l.start <= start && end <= l.end && (l.kind == strictjson.String || l.kind == strictjson.Number) {
			return true
		}
		reaches = reaches || whole || s.solid(max(start, from), min(end, to))
		if whole {
			from, to = l.start, l.end
		}
		value += max(min(end, to)-max(start, from), 0)
	}
	return reaches && end-start >= minQuote && (value >= minQuote || 2*(value+s.named(start, end)) > end-start)
}

// named is how much of a range is names that stand there with the whole of their values.
func (s *Source) named(start, end int) (n int) {
	i := sort.Search(len(s.labels), func(i int) bool { return s.labels[i].start >= start })
	for ; i < len(s.labels) && s.labels[i].start < end; i++ {
		if l := s.labels[i]; l.value <= end {
			n += l.end - l.start
		}
	}
	return n
}

// solid reports whether a range that begins at a boundary holds a letter or a
// digit that belongs to no escape.
func (s *Source) solid(start, end int) bool {
	for i := start; i < end; {
		r, n := utf8.DecodeRuneInString(s.body[i:end])
		switch {
		case r == '\\' && !s.plain && strings.HasPrefix(s.body[i:end], `\u`):
			n = 6
		case r == '\\' && !s.plain:
			n = 2
		case unicode.In(r, unicode.L, unicode.N):
			return true
		}
		i += n
	}
	return false
}

func (s *Source) quote(start, end int) Quote {
	q := Quote{Start: start, End: end, From: s.place(start, false), To: s.place(end, true)}
	if !s.plain {
		q.Pointer = s.pointer + s.pointerOf(s.touched(start, end)[0].number)
	}
	return q
}

// pointerOf names the leaf of that number, counted in document order.
func (s *Source) pointerOf(number int) (pointer string) {
	n := 0
	s.value.Walk(func(path []string, _ strictjson.Value) bool {
		if n == number {
			pointer = strictjson.Pointer(path)
		}
		n++
		return n <= number
	}, nil)
	return pointer
}

// Verbatim reports whether a summary on record has the items of the model's own,
// each with its evidence where it says, by whichever rules it was accepted. Make
// the source of the whole record: those may have cut it elsewhere.
func (s Summary) Verbatim(source *Source, summary []byte) bool {
	own, stop := ParseSummary(summary)
	if stop != nil || !bytes.Equal(own.JSON(), s.JSON()) {
		return false
	}
	for _, l := range s.lists() {
		for _, item := range *l.items {
			q := item.Quote
			if q.Start < 0 || q.End > len(source.body) || q.Start >= q.End || source.body[q.Start:q.End] != item.Evidence ||
				len(source.touched(q.Start, q.End)) == 0 || source.quote(q.Start, q.End) != q {
				return false
			}
		}
	}
	return true
}

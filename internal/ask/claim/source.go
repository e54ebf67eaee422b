package claim

import (
	"sort"
	"strings"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// Marker ends the shown text of a source that was truncated. It begins with a
// line feed, which no canonical JSON text holds, it is not part of what can be
// quoted, and evidence that holds it is refused.
const Marker = "\n[writ: the source text is cut off here]"

// SourceLimit is the length of a source text a caller should ask for who has no
// better one: what a model is shown of one result.
const SourceLimit = 256 << 10

// Source is the canonical text of recorded bytes, and the way back from it.
//
// Of JSON (NewSource) the text is the value's tokens in the order of the
// record, without white space between them. Strings are written in one way,
// with the fewest escapes (RFC 8785, 3.2.2.2), everything else as recorded.
// Because the order is the record's, each range of the text stands for exactly
// one range of the record; and because a quotation mark inside a string stays
// escaped, text like "paid":true can only be quoted from a member of that name,
// never from a string somebody wrote it into.
//
// Of plain text (TextSource) the text is the record itself.
//
// The zero Source has an empty text, of which nothing can be quoted.
type Source struct {
	body    string           // what can be quoted
	value   strictjson.Value // the recorded one
	pointer string           // of value in the record
	plain   bool
	cut     bool
	runs    []run
	leaves  []leaf
	labels  []label
}

// run is a stretch of the text and where it stands in the record. Within an
// atom the two differ in form, or are an escape, and no range begins or ends.
type run struct {
	text, record   int
	size, recorded int
	atom           bool
}

// leaf is a scalar or an empty container, in the text; number counts all leaves
// of the value in document order.
type leaf struct {
	start, end int
	kind       strictjson.Kind
	number     int
	part       bool // the truncation took its end
}

// label is a member's name with its colon, and where its value ends, in the text.
type label struct{ start, end, value int }

// Text returns the source text as a model is to be shown it: with the marker
// behind it if it was truncated.
func (s *Source) Text() string {
	if s.cut {
		return s.body + Marker
	}
	return s.body
}

// Truncated reports whether the text ends before the record does.
func (s *Source) Truncated() bool { return s.cut }

// NewSource makes the source of the value at pointer (RFC 6901) in recorded
// bytes of JSON, for a typed result "/structuredContent". The text is cut to at
// most limit bytes, never inside a character, an escape, a word or a number.
// Equal arguments give equal sources, which is what makes a quote checkable
// later. The bytes are kept and must not be changed.
func NewSource(record []byte, pointer string, limit int) (*Source, *Stop) {
	value, err := strictjson.Parse(record, strictjson.Result)
	if err != nil {
		return nil, because(StageGrounding, writ.GroundSource, "", "a record that is strict JSON")
	}
	path, err := strictjson.ParsePointer(pointer)
	if err != nil {
		return nil, because(StageGrounding, writ.GroundSource, "", "an RFC 6901 pointer into the record")
	}
	for _, name := range path {
		value = value.Get(name) // of objects alone: a record's place is named by its keys
	}
	if value.Kind() == 0 {
		return nil, because(StageGrounding, writ.GroundSource, "", "a record that holds a value at that pointer")
	}
	s := &Source{value: value, pointer: pointer}
	limit = min(max(limit, 0), len(record)) // no text is longer than its record
	w := &writer{s: s, record: record, limit: limit}
	w.value(value)
	s.body = w.out.String()
	s.truncate(limit)
	return s, nil
}

// TextSource makes the source of a plain text in UTF-8, cut to at most limit
// bytes as NewSource does. Its lines take the place of leaves.
func TextSource(text []byte, limit int) (*Source, *Stop) {
	if !utf8.Valid(text) {
		return nil, because(StageGrounding, writ.GroundSource, "", "a source in UTF-8")
	}
	s := &Source{plain: true}
	s.body = string(text)
	s.runs = []run{{size: len(text), recorded: len(text)}}
	for start := 0; start < len(s.body); {
		stop := len(s.body)
		if i := strings.IndexByte(s.body[start:], '\n'); i >= 0 {
			stop = start + i
		}
		line := strings.TrimRight(s.body[start:stop], "\r")
		s.leaves = append(s.leaves, leaf{start: start, end: start + len(line), kind: strictjson.String})
		start = stop + 1
	}
	s.truncate(limit)
	return s, nil
}

// boundary reports whether a range of the text may begin or end at offset:
// between two characters that no word, number or escape holds together.
func (s *Source) boundary(offset int) bool {
	if offset == 0 || offset == len(s.body) {
		return true
	}
	r, ok := s.runAt(offset)
	if !utf8.RuneStart(s.body[offset]) || !ok && r.atom {
		return false
	}
	if !s.plain {
		if ls := s.touched(offset-1, offset+1); len(ls) > 0 {
			if ls[0].end == offset || ls[len(ls)-1].start == offset {
				return true
			}
			if ls[0].kind != strictjson.String {
				return false
			}
		}
		if ok && r.atom && s.body[r.text] == '\\' {
			return true // what an escape stands for is no letter
		}
	}
	return text.Apart(offset, s.prev, s.next)
}

// prev returns the character that ends at an offset, and where it begins. What
// an escape stands for is no letter: it is given as a backslash.
func (s *Source) prev(at int) (rune, int) {
	if at > 0 && !s.plain && s.body[at-1] < utf8.RuneSelf {
		if r, ok := s.runAt(at); ok && r.atom && s.body[r.text] == '\\' {
			return '\\', r.text
		}
	}
	r, n := utf8.DecodeLastRuneInString(s.body[:at])
	return r, at - n
}

// next returns the character that begins at an offset, and where it ends.
func (s *Source) next(at int) (rune, int) {
	if !s.plain && at < len(s.body) && s.body[at] == '\\' {
		if strings.HasPrefix(s.body[at:], `\u`) {
			return '\\', at + 6
		}
		return '\\', at + 2
	}
	r, n := utf8.DecodeRuneInString(s.body[at:])
	return r, at + n
}

// runAt returns the run that ends at an offset within the text (ok) or else the
// one around it. Runs cover the whole text.
func (s *Source) runAt(offset int) (r run, ok bool) {
	i := sort.Search(len(s.runs), func(i int) bool { return s.runs[i].text+s.runs[i].size >= offset })
	return s.runs[i], s.runs[i].text+s.runs[i].size == offset
}

// truncate cuts the text to at most limit bytes, at a boundary.
func (s *Source) truncate(limit int) {
	end := max(limit, 0)
	if end >= len(s.body) {
		return
	}
	for !s.boundary(end) {
		end--
	}
	s.body, s.cut = strings.Clone(s.body[:end]), true
	n := sort.Search(len(s.leaves), func(i int) bool { return s.leaves[i].start >= end })
	s.leaves = s.leaves[:n]
	if n > 0 && s.leaves[n-1].end > end {
		s.leaves[n-1].end, s.leaves[n-1].part = end, true
	}
}

// place returns where a boundary of the text stands in the record, as the start
// or the end of a range.
func (s *Source) place(offset int, end bool) int {
	i := sort.Search(len(s.runs), func(i int) bool {
		r := s.runs[i]
		return r.text+r.size > offset || end && r.text+r.size == offset
	})
	r := s.runs[i]
	if offset == r.text+r.size {
		return r.record + r.recorded
	}
	return r.record + offset - r.text // an atom only at its start
}

// touched returns the leaves a range of the text reaches into.
func (s *Source) touched(start, end int) []leaf {
	i := sort.Search(len(s.leaves), func(i int) bool { return s.leaves[i].end > start })
	j := i
	for j < len(s.leaves) && s.leaves[j].start < end {
		j++
	}
	return s.leaves[i:j]
}

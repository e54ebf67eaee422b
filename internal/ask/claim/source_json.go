package claim

import (
	"bytes"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/strictjson"
)

// writer turns a checked JSON value into the text of a source, token by token,
// and notes for each stretch where it came from.
type writer struct {
	s      *Source
	record []byte
	limit  int
	out    strings.Builder
	count  int // leaves so far
}

// full reports whether the text is longer than the limit by enough to know where it
// may be cut, two characters: nothing more is read then.
func (w *writer) full() bool { return w.out.Len() > w.limit+utf8.UTFMax*2 }

// value writes a value, as far as there is room.
func (w *writer) value(v strictjson.Value) {
	if w.full() {
		return
	}
	from, to := v.Span()
	kind, start := v.Kind(), w.out.Len()
	if v.Len() == 0 {
		switch kind {
		case strictjson.Object, strictjson.Array:
			w.token(from, from+1)
			w.token(to-1, to)
		case strictjson.String:
			w.text(from, to)
		default:
			w.token(from, to)
		}
		w.s.leaves = append(w.s.leaves, leaf{start: start, end: w.out.Len(), kind: kind, number: w.count})
		w.count++
		return
	}
	w.token(from, from+1)
	at := from + 1 // the end of what was written last
	for _, m := range v.Members() {
		w.member(at, m)
		_, at = m.Span()
	}
	for _, e := range v.Elements() {
		begin, end := e.Span()
		w.sign(',', at, begin)
		w.value(e)
		at = end
	}
	if !w.full() {
		w.token(to-1, to)
	}
}

// member writes a member of an object with what parts it from the one before, which
// ends there.
func (w *writer) member(at int, v strictjson.Value) {
	if w.full() {
		return
	}
	begin, _ := v.Span()
	name := at + bytes.IndexByte(w.record[at:begin], '"')
	end := at + bytes.LastIndexByte(w.record[at:begin], '"') + 1
	w.sign(',', at, name)
	n := len(w.s.labels)
	w.s.labels = append(w.s.labels, label{start: w.out.Len(), end: math.MaxInt, value: math.MaxInt})
	w.text(name, end)
	w.sign(':', end, begin)
	w.s.labels[n].end = w.out.Len()
	w.value(v)
	w.s.labels[n].value = w.out.Len()
}

// sign writes a sign that stands between two offsets, if it does.
func (w *writer) sign(c byte, from, to int) {
	if i := bytes.IndexByte(w.record[from:to], c); i >= 0 {
		w.token(from+i, from+i+1)
	}
}

// token writes that part of the record as it stands.
func (w *writer) token(i, j int) {
	w.run(run{text: w.out.Len(), record: i, size: j - i, recorded: j - i})
	w.out.Write(w.record[i:j])
}

// run appends a stretch, or lengthens the last one where nothing lies between.
func (w *writer) run(r run) {
	if n := len(w.s.runs); n > 0 && !r.atom {
		if l := &w.s.runs[n-1]; !l.atom && l.text+l.size == r.text && l.record+l.recorded == r.record {
			l.size += r.size
			l.recorded += r.recorded
			return
		}
	}
	w.s.runs = append(w.s.runs, r)
}

// text writes the string literal between two offsets with the fewest escapes.
func (w *writer) text(i, j int) {
	b := w.record
	for start := i; i < j; start = i {
		if b[i] != '\\' {
			for i < j && b[i] != '\\' {
				i++
			}
			w.token(start, i)
			continue
		}
		i += 2
		if b[i-1] == 'u' {
			i += 4
			if hi := b[start+2 : start+4]; (hi[0] == 'd' || hi[0] == 'D') && strings.ContainsRune("89abAB", rune(hi[1])) {
				i += 6 // a checked surrogate comes in pairs
			}
		}
		decoded, _ := strictjson.Text([]byte(`"` + string(b[start:i]) + `"`))
		quoted := strictjson.Quote(decoded)
		quoted = quoted[1 : len(quoted)-1]
		w.run(run{text: w.out.Len(), record: start, size: len(quoted), recorded: i - start, atom: true})
		w.out.Write(quoted)
	}
}

package claim

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/strictjson"
)

// writer turns a checked JSON value into the text of a source, token by token,
// and notes for each stretch where it came from.
type writer struct {
	s     *Source
	base  int // of the value in the record
	limit int
	out   strings.Builder
	count int // leaves so far
	label int // of the value that comes next, -1 if it has no name
}

// container is an object or an array that is open, and its own label.
type container struct {
	object bool
	label  int
}

// write fills the source. It stops reading once the text is longer than the
// limit by enough to know where it may be cut: two characters.
func (w *writer) write() {
	b := w.s.value
	var object []container // that are open
	name := false          // the next string is a member's name
	w.label = -1
	for i := 0; i < len(b) && w.out.Len() <= w.limit+utf8.UTFMax*2; {
		switch c := b[i]; c {
		case ' ', '\t', '\n', '\r':
			i++
			continue
		case '{', '[':
			name = c == '{'
			if j := skipSpace(b, i+1); b[j] == c+2 { // '}' is '{'+2, ']' is '['+2
				w.leaf(strictjson.Kind(c), func() { w.token(b, i, i+1); w.token(b, j, j+1) })
				i = j + 1
				name = false
				continue
			}
			object = append(object, container{c == '{', w.label})
			w.label = -1
			w.token(b, i, i+1)
			i++
		case '}', ']':
			w.token(b, i, i+1)
			w.label = object[len(object)-1].label
			w.valued()
			object, name = object[:len(object)-1], false
			i++
		case ',':
			name = object[len(object)-1].object
			w.token(b, i, i+1)
			i++
		case ':':
			name = false
			w.token(b, i, i+1)
			w.s.labels[w.label].end = w.out.Len()
			i++
		case '"':
			end := endOfString(b, i)
			if name {
				w.label = len(w.s.labels)
				w.s.labels = append(w.s.labels, label{start: w.out.Len(), end: math.MaxInt, value: math.MaxInt})
				w.text(b, i, end)
			} else {
				w.leaf(strictjson.String, func() { w.text(b, i, end) })
			}
			i = end
		default:
			end := i
			for end < len(b) && !strings.ContainsRune(",]} \t\n\r", rune(b[end])) {
				end++
			}
			w.leaf(strictjson.KindOf(b[i:end]), func() { w.token(b, i, end) })
			i = end
		}
	}
	w.s.body = w.out.String()
}

func skipSpace(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r' {
		i++
	}
	return i
}

func endOfString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func (w *writer) leaf(k strictjson.Kind, write func()) {
	start := w.out.Len()
	write()
	w.s.leaves = append(w.s.leaves, leaf{start: start, end: w.out.Len(), kind: k, number: w.count})
	w.count++
	w.valued()
}

// valued notes that the value of the name that was written last ends here.
func (w *writer) valued() {
	if w.label >= 0 {
		w.s.labels[w.label].value = w.out.Len()
	}
	w.label = -1
}

// token writes b[i:j] as it stands.
func (w *writer) token(b []byte, i, j int) {
	w.run(run{text: w.out.Len(), record: w.base + i, size: j - i, recorded: j - i})
	w.out.Write(b[i:j])
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

// text writes the string literal b[i:j] with the fewest escapes.
func (w *writer) text(b []byte, i, j int) {
	for start := i; i < j; start = i {
		if b[i] != '\\' {
			for i < j && b[i] != '\\' {
				i++
			}
			w.token(b, start, i)
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
		w.run(run{text: w.out.Len(), record: w.base + start, size: len(quoted), recorded: i - start, atom: true})
		w.out.Write(quoted)
	}
}

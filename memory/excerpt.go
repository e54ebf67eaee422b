package memory

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/quote"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/words"
)

// maxSentence is how many bytes a sentence has at most that is shown whole where
// less was asked for: what a sentence says may stand at its end.
const maxSentence = 600

// excerpt is a text of which not all is shown: its sentences, or the members of a
// record, of which one matters.
type excerpt struct {
	text   string
	pieces []quote.Piece
	core   int
}

// quoted is what is shown of an observation where a claim is told.
func (r *Reader) quoted(o *Observation, p *Proposition) *Data {
	value, _ := r.State.valueOf(p)
	d := data(excerptOf(o.Raw, value, nil).within(maxShown), o.Level, o.labelFor(r.Principal))
	d.Cut = d.Text != o.Raw
	return &d
}

// excerptOf takes a text apart. What matters in it is the piece that holds a value,
// or else the one with most of the words, cut as words.Content cuts them.
func excerptOf(s, value string, asked []string) *excerpt {
	x := &excerpt{text: s}
	if len(s) <= 140 { // there is nothing to be gained
		x.pieces = []quote.Piece{{From: 0, To: len(s)}}
		return x
	}
	if b := []byte(s); (s[0] == '{' || s[0] == '[') && strictjson.Check(b, valueLimits) == nil {
		from, in := 0, false
		for i := range b {
			switch {
			case b[i] == '\\' && in:
				b[i+1] = ' ' // b is a copy
			case b[i] == '"':
				in = !in
			case b[i] == ',' && !in:
				x.add(from, i+1)
				from = i + 1
			}
		}
		x.add(from, len(s))
	} else {
		x.sentences(0, len(s))
	}
	best := -1
	value = fold(value)
	for i, p := range x.pieces {
		if n := held(p.Of(s), value, asked); n > best {
			x.core, best = i, n
		}
	}
	return x
}

// add takes a member in, a long one by its sentences.
func (x *excerpt) add(from, to int) {
	if to-from > maxSentence {
		x.sentences(from, to)
	} else {
		x.pieces = append(x.pieces, quote.Piece{From: from, To: to})
	}
}

func (x *excerpt) sentences(from, to int) {
	for _, p := range quote.Pieces(x.text[from:to]) {
		x.pieces = append(x.pieces, quote.Piece{From: from + p.From, To: from + p.To})
	}
}

// held says how much a piece has of what matters.
func held(piece, value string, asked []string) (n int) {
	if value != "" && strings.Contains(fold(piece), value) {
		n = len(asked) + 1
	}
	ws := words.Of(piece)
	for _, a := range asked {
		if slices.ContainsFunc(ws, func(w string) bool { return strings.HasPrefix(w, a) }) {
			n++
		}
	}
	return n
}

// within is the piece that matters, whole, with those beside it as far as so many
// bytes go. Where something is left out stands a mark, also in the middle of a piece
// that is longer than any sentence.
func (x *excerpt) within(limit int) string {
	if len(x.text) <= limit || len(x.pieces) == 0 {
		return shown(x.text, max(limit, maxSentence))
	}
	lo, hi := quote.Grow(x.pieces, x.core, x.core, limit)
	out := x.text[x.pieces[lo].From:x.pieces[hi].To]
	if n := maxSentence / 2; len(out) > max(limit, maxSentence) {
		end := len(out) - n
		for end < len(out) && out[end]&0xC0 == 0x80 {
			end++
		}
		out = shown(out, n) + " " + out[end:]
	}
	if lo > 0 {
		out = "… " + out
	}
	if hi+1 < len(x.pieces) {
		out += " …"
	}
	return out
}

package screen

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/writ-project/writ/internal/text"
)

// glyph is one folded character and the bytes of the text it came from.
type glyph struct {
	r        rune
	other    rune // what it is read as where digits are read as letters; or 0
	from, to int
}

// reading is one way to read a text: words between single spaces, with a space
// at both ends. from and to say, for each byte, where in the text its character
// begins and ends.
type reading struct {
	text     string
	from, to []int
	letters  [][2]int // runs of letters that were set apart, with no sign of words
	breaks   []int    // the spaces between sentences, with the first and the last
	chunks   []chunk
}

func letterOrDigit(r rune) bool { return unicode.In(r, unicode.L, unicode.N) }

// foldRune returns what a character is taken for: nothing, a space, or
// characters in lower case. It is the same for texts and for patterns.
func foldRune(r rune) []rune {
	switch {
	case r == '\u0085' || r == '\u2028' || r == '\u2029':
		return []rune{'\n'}
	case unicode.IsControl(r) && !unicode.IsSpace(r):
		return nil
	case r < 0x80:
		return []rune{plain(r)}
	case text.Blank(r):
		return []rune{filler}
	case unicode.Is(unicode.Sk, r): // accents and skin tones on their own
		return nil
	case r >= 0x1F1E6 && r <= 0x1F1FF: // regional indicators, read as letters
		return []rune{'a' + r - 0x1F1E6}
	case r >= 0x1F150 && r <= 0x1F169: // letters in black circles
		return []rune{'a' + r - 0x1F150}
	case r >= 0x1F170 && r <= 0x1F189: // letters in black squares
		return []rune{'a' + r - 0x1F170}
	}
	if l, ok := lookalikes[r]; ok {
		return []rune{l}
	}
	switch {
	case r == '\u0665' || r == '\u3007': // a five and a zero that are round
		return []rune{'0'}
	case text.Digit(r) >= 0:
		return []rune{'0' + rune(text.Digit(r))}
	}
	var out []rune
	for _, d := range norm.NFKD.String(string(r)) {
		switch {
		case unicode.Is(unicode.M, d), text.Hidden(d, text.Ignorable):
			continue
		case unicode.Is(unicode.Lm, d) && (d < 0x800 || d >= 0xA700 && d < 0xA800): // kashida, stress and tone
			continue
		case d < 0x80:
			d = plain(d)
		default:
			if l, ok := lookalikes[d]; ok {
				d = l
			} else if d = unicode.ToLower(d); lookalikes[d] != 0 {
				d = lookalikes[d]
			}
		}
		out = append(out, d)
	}
	return out
}

func plain(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

func fold(text string) []glyph {
	out := make([]glyph, 0, len(text))
	for i, r := range text {
		var other rune
		if strings.ContainsRune(omegas, r) {
			other = 'o'
		}
		for _, f := range foldRune(r) {
			out = append(out, glyph{f, other, i, i + len(string(r))})
		}
	}
	return out
}

func apostrophe(r rune) bool {
	return r == '\'' || r == '`' || r == '\u2019' || r == '\u2018' || r == '\u02bc'
}

// readings returns all readings of a text that differ, the plain one first.
func readings(text string) []reading {
	glyphs := fold(text)
	glyphs = slices.DeleteFunc(glyphs, func(g glyph) bool { return apostrophe(g.r) })
	var out []reading
	add := func(gs []glyph, joinLetters, lone bool) {
		r := spell(gs, joinLetters, lone)
		for i := range out {
			if out[i].text == r.text {
				if len(r.letters) > 0 {
					out[i].letters = r.letters
				}
				return
			}
		}
		out = append(out, r)
	}
	add(glyphs, false, false)
	for pass := -1; pass < 2; pass++ {
		gs := glyphs
		if pass >= 0 {
			if gs = unleet(glyphs, pass); gs == nil {
				continue
			}
			add(gs, false, false)
		}
		add(gs, true, false)
		add(gs, true, true)
		add(tighten(gs, true), false, false)
		add(tighten(gs, false), false, false)
	}
	return out
}

// leet says which letters a digit or mark may stand for, in the one reading and
// in the other.
var leet = map[rune][2]rune{
	'0': {'o', 'o'}, '1': {'i', 'l'}, '3': {'e', 'e'}, '4': {'a', 'a'}, '5': {'s', 's'}, '6': {'b', 'g'},
	'7': {'t', 't'}, '8': {'b', 'b'}, '9': {'g', 'g'}, '@': {'a', 'a'}, '$': {'s', 's'}, '!': {'i', 'l'},
	'|': {'i', 'l'}, '\u20ac': {'e', 'e'}, '\u00a3': {'l', 'l'}, '\u00a2': {'c', 'c'}, '\u00a5': {'y', 'y'},
}

// unleet reads digits and marks as letters where they stand in a word that has
// a letter, or alone between letters that were set apart; () between letters is
// an o. It returns nil if there are none.
func unleet(gs []glyph, pass int) []glyph {
	out, changed := make([]glyph, 0, len(gs)), false
	for i := 0; i < len(gs); i++ {
		g := gs[i]
		if g.r == '(' && i > 0 && i+2 < len(gs) && gs[i+1].r == ')' && unicode.IsLetter(gs[i-1].r) && unicode.IsLetter(gs[i+2].r) {
			g.r, g.to, changed = 'o', gs[i+1].to, true
			i++
		}
		out = append(out, g)
	}
	gs = slices.Clone(out)
	inside := func(i int) bool { // a word may go on here
		return i >= 0 && i < len(gs) && (letterOrDigit(gs[i].r) || leet[gs[i].r][0] != 0 && gs[i].r != '!')
	}
	for i := 0; i < len(gs); {
		if !inside(i) && leet[gs[i].r][0] == 0 {
			i++
			continue
		}
		j, letters := i, 0
		for j < len(gs) && (inside(j) || leet[gs[j].r][0] != 0) {
			if unicode.IsLetter(gs[j].r) {
				letters++
			}
			j++
		}
		single := j-i == 1 && (i >= 2 && unicode.IsLetter(gs[i-2].r) || j+1 < len(gs) && unicode.IsLetter(gs[j+1].r))
		for k := i; k < j; k++ {
			if gs[k].other != 0 && pass == 0 {
				out[k].r, changed = gs[k].other, true
				continue
			}
			to := leet[gs[k].r][pass]
			if to == 0 || letters == 0 && !single || !letterOrDigit(gs[k].r) && !unicode.Is(unicode.Sc, gs[k].r) && !single && !inside(k+1) {
				continue
			}
			out[k].r, changed = to, true
		}
		i = j
	}
	if !changed {
		return nil
	}
	return out
}

// tighten drops marks that stand between two letters; without all, only marks
// that end no sentence.
func tighten(gs []glyph, all bool) []glyph {
	mark := func(g glyph) bool {
		return !unicode.IsSpace(g.r) && !letterOrDigit(g.r) && (all || !strings.ContainsRune(".?!;:,()\u3002\u3001", g.r))
	}
	var out []glyph
	for i := 0; i < len(gs); {
		j := i
		for j < len(gs) && mark(gs[j]) {
			j++
		}
		if i == j {
			j++
		} else if i > 0 && j < len(gs) && unicode.IsLetter(gs[i-1].r) && unicode.IsLetter(gs[j].r) {
			i = j
			continue
		}
		out = append(out, gs[i:j]...)
		i = j
	}
	return out
}

// parts says whether what stands between two words ends a sentence or a part of
// one. White space, a hyphen and quotation marks do not, all else does.
func parts(gap []glyph) bool {
	for _, g := range gap {
		switch g.r {
		case '\n', '\r', '\v', '\f':
			return true
		case ' ', '\t', filler, '"', '\u201c', '\u201d', '\u201e', '\u00ab', '\u00bb', '_', '&':
		case '-', '\u2010':
			if len(gap) > 1 {
				return true
			}
		default:
			if !unicode.IsSpace(g.r) {
				return true
			}
		}
	}
	return false
}

// spell writes a reading. With join, three or more letters in a row that stand
// alone are one word; a wider gap among them ends it. With lone, a first a or i
// behind an ordinary word stays a word of its own.
func spell(gs []glyph, join, lone bool) reading {
	size := len(gs) + len(gs)/4 + 16
	r := reading{from: make([]int, 0, size), to: make([]int, 0, size)}
	b := make([]byte, 0, size)
	put := func(c rune, from, to int) {
		n := len(b)
		b = append(b, string(c)...)
		for ; n < len(b); n++ {
			r.from, r.to = append(r.from, from), append(r.to, to)
		}
	}
	type token struct{ from, to int } // in gs
	var ts []token
	for i := 0; i < len(gs); {
		j := i
		for j < len(gs) && letterOrDigit(gs[j].r) {
			j++
		}
		if j > i {
			ts = append(ts, token{i, j})
			i = j
		} else {
			i++
		}
	}
	alone := func(k int) bool {
		return k < len(ts) && ts[k].to-ts[k].from == 1 && unicode.IsLetter(gs[ts[k].from].r)
	}
	gap := func(k int) int { // before token k; a space is wider than a mark
		between := gs[ts[k-1].to:ts[k].from]
		if slices.ContainsFunc(between, func(g glyph) bool { return unicode.IsSpace(g.r) }) {
			return 2*len(between) + 1
		}
		return 2 * len(between)
	}
	space := func(next int) { // the space before token next
		at := 0
		if len(r.to) > 0 {
			at = r.to[len(r.to)-1]
		}
		if next == 0 || next >= len(ts) || parts(gs[ts[next-1].to:ts[next].from]) {
			r.breaks = append(r.breaks, len(b))
		}
		put(' ', at, at)
	}
	space(0)
	for k := 0; k < len(ts); {
		end := k
		if join {
			for alone(end) {
				end++
			}
			if lone && end > k && k > 0 && (gs[ts[k].from].r == 'a' || gs[ts[k].from].r == 'i') {
				put(gs[ts[k].from].r, gs[ts[k].from].from, gs[ts[k].from].to)
				k++
				space(k)
			}
		}
		if end-k < 3 {
			end = k + 1
			if k < len(ts) {
				for _, g := range gs[ts[k].from:ts[k].to] {
					put(g.r, g.from, g.to)
				}
				space(end)
			}
			k = end
			continue
		}
		narrow, wide := gap(k+1), gap(k+1)
		for i := k + 2; i < end; i++ {
			narrow, wide = min(narrow, gap(i)), max(wide, gap(i))
		}
		start := len(b)
		for i := k; i < end; i++ {
			if i > k && gap(i) > narrow {
				space(i)
			}
			g := gs[ts[i].from]
			put(g.r, g.from, g.to)
		}
		if narrow == wide && end-k >= 8 {
			r.letters = append(r.letters, [2]int{start, len(b)})
		}
		space(end)
		k = end
	}
	r.text = string(b)
	r.chunks = chunks(r.text)
	return r
}

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

// rounded reads () between letters as an o.
func rounded(gs []glyph) (out []glyph, changed bool) {
	for i := 0; i < len(gs); i++ {
		g := gs[i]
		if g.r == '(' && i > 0 && i+2 < len(gs) && gs[i+1].r == ')' && unicode.IsLetter(gs[i-1].r) && unicode.IsLetter(gs[i+2].r) {
			g.r, g.to, changed = 'o', gs[i+1].to, true
			i++
		}
		out = append(out, g)
	}
	return out, changed
}

// worded reports whether a character may be one of a word, as it is or read as a letter.
func worded(r rune) bool { return letterOrDigit(r) || leet[r][0] != 0 }

// unleet reads digits and marks as letters where they stand in a word that has
// a letter, or alone between letters that were set apart; () between letters is
// an o. It returns nil if there are none.
func unleet(gs []glyph, pass int) []glyph {
	gs, changed := rounded(gs)
	out := slices.Clone(gs)
	for i := 0; i < len(gs); i++ {
		j := i
		for j < len(gs) && worded(gs[j].r) {
			j++
		}
		lone := j-i == 1 && (i >= 2 && unicode.IsLetter(gs[i-2].r) || j+1 < len(gs) && unicode.IsLetter(gs[j+1].r))
		word := slices.ContainsFunc(gs[i:j], func(g glyph) bool { return unicode.IsLetter(g.r) })
		for k := i; k < j && (word || lone); k++ {
			r, to := gs[k].r, leet[gs[k].r][pass]
			switch {
			case gs[k].other != 0 && pass == 0:
				to = gs[k].other
			case lone, letterOrDigit(r), unicode.Is(unicode.Sc, r):
			case k+1 == len(gs), !worded(gs[k+1].r), gs[k+1].r == '!': // a mark that ends the word
				to = 0
			}
			if to != 0 {
				out[k].r, changed = to, true
			}
		}
		i = max(i, j-1)
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

// token is a word of a text, by its glyphs.
type token struct{ from, to int }

func tokens(gs []glyph) (out []token) {
	for i := 0; i < len(gs); i++ {
		j := i
		for j < len(gs) && letterOrDigit(gs[j].r) {
			j++
		}
		if j > i {
			out = append(out, token{i, j})
			i = j
		}
	}
	return out
}

// speller writes a reading of glyphs, token by token.
type speller struct {
	reading
	gs []glyph
	ts []token
	b  []byte
}

// spell writes a reading. With join, three or more letters in a row that stand
// alone are one word; a wider gap among them ends it. With lone, a first a or i
// behind an ordinary word stays a word of its own.
func spell(gs []glyph, join, lone bool) reading {
	size := len(gs) + len(gs)/4 + 16
	s := &speller{reading{from: make([]int, 0, size), to: make([]int, 0, size)}, gs, tokens(gs), make([]byte, 0, size)}
	s.space(0)
	for k := 0; k < len(s.ts); {
		end := k
		for join && s.alone(end) {
			end++
		}
		if lone && end > k && k > 0 && (s.first(k).r == 'a' || s.first(k).r == 'i') {
			s.word(k)
			k++
		}
		switch {
		case end-k >= 3:
			s.joined(k, end)
			k = end
		case k < len(s.ts):
			s.word(k)
			k++
		}
	}
	s.text = string(s.b)
	s.chunks = chunks(s.text)
	return s.reading
}

// first is the first glyph of token k.
func (s *speller) first(k int) glyph { return s.gs[s.ts[k].from] }

// alone reports whether token k is a letter that stands alone.
func (s *speller) alone(k int) bool {
	return k < len(s.ts) && s.ts[k].to-s.ts[k].from == 1 && unicode.IsLetter(s.first(k).r)
}

// between is what stands before token k, behind the one before it.
func (s *speller) between(k int) []glyph { return s.gs[s.ts[k-1].to:s.ts[k].from] }

// gap is how wide that is; a space is wider than a mark.
func (s *speller) gap(k int) int {
	between := s.between(k)
	if slices.ContainsFunc(between, func(g glyph) bool { return unicode.IsSpace(g.r) }) {
		return 2*len(between) + 1
	}
	return 2 * len(between)
}

func (s *speller) put(c rune, from, to int) {
	n := len(s.b)
	s.b = append(s.b, string(c)...)
	for ; n < len(s.b); n++ {
		s.from, s.to = append(s.from, from), append(s.to, to)
	}
}

// space writes the space before token k.
func (s *speller) space(k int) {
	at := 0
	if len(s.to) > 0 {
		at = s.to[len(s.to)-1]
	}
	if k == 0 || k >= len(s.ts) || parts(s.between(k)) {
		s.breaks = append(s.breaks, len(s.b))
	}
	s.put(' ', at, at)
}

// word writes token k and the space behind it.
func (s *speller) word(k int) {
	for _, g := range s.gs[s.ts[k].from:s.ts[k].to] {
		s.put(g.r, g.from, g.to)
	}
	s.space(k + 1)
}

// joined writes the letters from token k to end as words that wider gaps part. Where
// all gaps are alike, nothing says where words end.
func (s *speller) joined(k, end int) {
	narrow, wide := s.gap(k+1), s.gap(k+1)
	for i := k + 2; i < end; i++ {
		narrow, wide = min(narrow, s.gap(i)), max(wide, s.gap(i))
	}
	start := len(s.b)
	for i := k; i < end; i++ {
		if i > k && s.gap(i) > narrow {
			s.space(i)
		}
		g := s.first(i)
		s.put(g.r, g.from, g.to)
	}
	if narrow == wide && end-k >= 8 {
		s.letters = append(s.letters, [2]int{start, len(s.b)})
	}
	s.space(end)
}

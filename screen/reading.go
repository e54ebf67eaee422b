package screen

import (
	"slices"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// glyph is one folded character and the bytes of the text it came from.
type glyph struct {
	r        rune
	from, to int
}

// reading is one way to read a text: words between single spaces, with a space
// at both ends. from and to say, for each byte, where in the text its character
// begins and ends.
type reading struct {
	text     string
	from, to []int
	letters  [][2]int // runs of letters that were set apart, with no sign of words
}

func letterOrDigit(r rune) bool { return unicode.In(r, unicode.L, unicode.N) }

// foldRune returns what a character is taken for: nothing, a space, or
// characters in lower case. It is the same for texts and for patterns.
func foldRune(r rune) []rune {
	switch {
	case r < 0x80:
		return []rune{plain(r)}
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
	var out []rune
	for _, d := range norm.NFKD.String(string(r)) {
		switch {
		case unicode.Is(unicode.M, d), unicode.In(d, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
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
		for _, f := range foldRune(r) {
			out = append(out, glyph{f, i, i + len(string(r))})
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
	for _, one := range []rune{0, 'i', 'l'} {
		gs := glyphs
		if one != 0 {
			if gs = unleet(glyphs, one); gs == nil {
				break
			}
			add(gs, false, false)
		}
		add(gs, true, false)
		add(gs, true, true)
		add(tighten(gs), false, false)
	}
	return out
}

// leet says which letter a digit or mark may stand for; 1, ! and | may be i or l.
var leet = map[rune]rune{'0': 'o', '3': 'e', '4': 'a', '5': 's', '7': 't', '8': 'b', '@': 'a', '$': 's', '!': '1', '|': '1', '1': '1'}

// unleet reads digits and marks as letters where they stand in a word that has
// a letter, or alone between letters that were set apart. It returns nil if
// there are none.
func unleet(gs []glyph, one rune) []glyph {
	out := slices.Clone(gs)
	changed := false
	inside := func(i int) bool { // a word may go on here
		return i >= 0 && i < len(gs) && (letterOrDigit(gs[i].r) || leet[gs[i].r] != 0 && gs[i].r != '!')
	}
	for i := 0; i < len(gs); {
		if !inside(i) && leet[gs[i].r] == 0 {
			i++
			continue
		}
		j, letters := i, 0
		for j < len(gs) && (inside(j) || leet[gs[j].r] != 0) {
			if unicode.IsLetter(gs[j].r) {
				letters++
			}
			j++
		}
		single := j-i == 1 && (i >= 2 && unicode.IsLetter(gs[i-2].r) || j+1 < len(gs) && unicode.IsLetter(gs[j+1].r))
		for k := i; k < j; k++ {
			to := leet[gs[k].r]
			if to == 0 || letters == 0 && !single || !letterOrDigit(gs[k].r) && !single && !inside(k+1) {
				continue
			}
			if to == '1' {
				to = one
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

// tighten drops single marks that stand between two letters.
func tighten(gs []glyph) []glyph {
	var out []glyph
	for i, g := range gs {
		if i > 0 && i+1 < len(gs) && !unicode.IsSpace(g.r) && !letterOrDigit(g.r) && unicode.IsLetter(gs[i-1].r) && unicode.IsLetter(gs[i+1].r) {
			continue
		}
		out = append(out, g)
	}
	return out
}

// spell writes a reading. With join, three or more letters in a row that stand
// alone are one word; a wider gap among them ends it. With lone, a first a or i
// behind an ordinary word stays a word of its own.
func spell(gs []glyph, join, lone bool) reading {
	r := reading{}
	var b []byte
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
	gap := func(k int) int { return ts[k].from - ts[k-1].to } // before token k
	space := func() {
		at := 0
		if len(r.to) > 0 {
			at = r.to[len(r.to)-1]
		}
		put(' ', at, at)
	}
	space()
	for k := 0; k < len(ts); {
		end := k
		if join {
			for alone(end) {
				end++
			}
			if lone && end > k && k > 0 && (gs[ts[k].from].r == 'a' || gs[ts[k].from].r == 'i') {
				put(gs[ts[k].from].r, gs[ts[k].from].from, gs[ts[k].from].to)
				space()
				k++
			}
		}
		if end-k < 3 {
			end = k + 1
			if k < len(ts) {
				for _, g := range gs[ts[k].from:ts[k].to] {
					put(g.r, g.from, g.to)
				}
				space()
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
				space()
			}
			g := gs[ts[i].from]
			put(g.r, g.from, g.to)
		}
		if narrow == wide && end-k >= 8 {
			r.letters = append(r.letters, [2]int{start, len(b)})
		}
		space()
		k = end
	}
	r.text = string(b)
	return r
}

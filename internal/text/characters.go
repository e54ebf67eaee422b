// Package text is what characters are and where words end, told once: which
// characters a person does not see, in which form two texts are one, and
// whether a piece of a text stands there whole.
package text

import (
	"strings"
	"unicode"
)

// A Level says how much of what a person does not see counts as hidden. Each
// holds what is in the ones before it.
type Level int

const (
	// Ignorable is what shows nothing and takes no room: every format character
	// (zero width, bidi, tags) and every other default-ignorable one, variation
	// selectors and fillers among them. A word goes on through it. It is the level
	// of who reads prose and refuses none of it, where emoji are made with such
	// characters: the words of an index, the screen's readings, the edges of
	// quotes and values, the names of files.
	Ignorable Level = iota
	// Unseen adds what shows nothing in its place: controls, line and paragraph
	// separators, blank glyphs, noncharacters. It is refused in authority
	// arguments, whose bytes something has vouched for, and left out of a user's
	// turn as he reads it and of texts the memory keeps. Spaces of any width are
	// seen as the gaps they are.
	Unseen
	// Unclear adds what may show as anything or nothing: private use and what these
	// tables do not know yet. It is refused where nothing vouches but a person's
	// eyes: in definitions that he approves, in files that an operator writes.
	Unclear
	// Unprinted adds every space but U+0020, which a terminal may break or drop. It
	// is escaped where something is printed: terminals, shells.
	Unprinted
)

// levels are what each level adds.
var levels = [...][]*unicode.RangeTable{
	Ignorable: {unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point},
	Unseen:    {unicode.Cc, unicode.Zl, unicode.Zp, unicode.Noncharacter_Code_Point, blank},
	Unclear:   {unicode.C},
	Unprinted: {unicode.Z},
}

// blank are letters and symbols that take room and show nothing. Unicode has no
// property for them; a test holds the table against its names.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x115F, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // the Braille pattern without dots
		{Lo: 0x3164, Hi: 0x3164, Stride: 1},
		{Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x13441, Hi: 0x13442, Stride: 1}, // Egyptian blanks
		{Lo: 0x16FE4, Hi: 0x16FE4, Stride: 1}, // the Khitan filler
		{Lo: 0x1D159, Hi: 0x1D159, Stride: 1}, // a note without a head
	},
}

// Hidden reports whether r is hidden at a level.
func Hidden(r rune, level Level) bool {
	if ' ' <= r && r <= '~' {
		return false
	}
	for _, tables := range levels[:level+1] {
		if unicode.In(r, tables...) {
			return true
		}
	}
	return false
}

// HidesIn reports whether a text holds what is hidden at a level, other than
// the characters of but.
func HidesIn(s string, level Level, but string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return Hidden(r, level) && !strings.ContainsRune(but, r) })
}

// Blank reports what takes room and shows nothing, and is no white space.
func Blank(r rune) bool { return unicode.Is(blank, r) }

// Spaceless reports what is of a script that sets no spaces between words.
func Spaceless(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}

// Alphanumeric reports a letter, a number or a mark of one: what words are made
// of.
func Alphanumeric(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.M) }

// Digit is the value of a decimal digit of any script, or -1.
func Digit(r rune) int {
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10
		}
	}
	return -1
}

// Package text is what characters are and where words end, told once: which
// characters a person does not see, in which form two texts are one, and
// whether a piece of a text stands there whole.
package text

import (
	"slices"
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
	Unseen:    {unicode.Cc, unicode.Zl, unicode.Zp, unicode.Noncharacter_Code_Point},
	Unclear:   {unicode.C},
	Unprinted: {unicode.Z},
}

// blank are letters and symbols that take room and show nothing: fillers of
// Hangul and of Khitan, the Braille pattern without dots, Egyptian blanks, a note
// without a head. Unicode has no property for them; a test holds the list
// against its names.
const blank = "\u115f\u1160\u2800\u3164\uffa0\U00013441\U00013442\U00016fe4\U0001d159"

// Hidden reports whether r is hidden at a level.
func Hidden(r rune, level Level) bool {
	if ' ' <= r && r <= '~' {
		return false
	}
	in := func(tables []*unicode.RangeTable) bool { return unicode.In(r, tables...) }
	return slices.ContainsFunc(levels[:level+1], in) || level >= Unseen && Blank(r)
}

// HidesIn reports whether a text holds what is hidden at a level, other than
// the characters of but.
func HidesIn(s string, level Level, but string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return Hidden(r, level) && !strings.ContainsRune(but, r) })
}

// Blank reports what takes room and shows nothing, and is no white space.
func Blank(r rune) bool { return strings.ContainsRune(blank, r) }

// Spaceless reports what is of a script that sets no spaces between words.
func Spaceless(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}

// Alphanumeric reports a letter, a number or a mark of one: what words are made
// of.
func Alphanumeric(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.M) }

// Digit is the value of a decimal digit of any script, or -1.
func Digit(r rune) int {
	if !unicode.Is(unicode.Nd, r) {
		return -1
	}
	zero := r // digits stand in tens
	for unicode.Is(unicode.Nd, zero-1) {
		zero--
	}
	return int(r-zero) % 10
}

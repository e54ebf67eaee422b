package provenance

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// apart reports whether a stretch is set apart as a name: by a word before it that says
// what it is, by marks on both sides, or as people write proper names.
func (r *reading) apart(at span, words []string) bool {
	if r.called(at.start, words) || r.properName(at) {
		return true
	}
	before, n := utf8.DecodeLastRuneInString(r.text[:at.start])
	after, _ := utf8.DecodeRuneInString(r.text[at.end:])
	return n > 0 && isMark(before) && isMark(after)
}

// properName reports whether a word is written as a proper name is: a capital and small
// letters, within a sentence, and no article or possessive before it, which in German
// stands before nouns.
func (r *reading) properName(at span) bool {
	first, n := utf8.DecodeRuneInString(r.text[at.start:at.end])
	before := strings.TrimRight(r.text[:at.start], " ")
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(before, ","))
	if !unicode.IsUpper(first) || strings.ContainsFunc(r.text[at.start+n:at.end], unicode.IsUpper) || len(before) == at.start || !unicode.IsLetter(last) {
		return false
	}
	words := strings.FieldsFunc(before, func(c rune) bool { return !unicode.IsLetter(c) })
	return !articles[strings.ToLower(words[len(words)-1])]
}

var articles = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(`a an the this that these those my your his her its our their some any no each every which what
		der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines dieser diese dieses diesen diesem jeder jede jedes
		mein meine meinen meinem meiner dein deine deinen deinem deiner sein seine seinen seinem seiner ihr ihre ihren ihrem ihrer
		unser unsere unseren unserem unserer euer eure euren eurem eurer im am zum zur beim vom ins ans`) {
		out[w] = true
	}
	return out
}()

// closes reports whether what ends at i ends in a stop of the sentence and not of its
// own: white space or the text's end follows, and after a dot no word that goes on.
func (r *reading) closes(i int) bool {
	stop, _ := utf8.DecodeLastRuneInString(r.text[:i])
	if !strings.ContainsRune(stops, stop) {
		return false
	}
	if next, _ := utf8.DecodeRuneInString(r.text[i:]); i < len(r.text) && !blank(next) {
		return false
	}
	if next := strings.TrimLeft(r.text[i:], " "); stop == '.' && next != "" {
		c, _ := utf8.DecodeRuneInString(next)
		return !unicode.IsLower(c) && !unicode.IsNumber(c)
	}
	return true
}

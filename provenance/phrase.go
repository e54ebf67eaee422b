package provenance

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// # Phrases that are meant (R21, R9)
//
// A phrase is meant where it opens its clause, bare or behind a polite request, or, of
// one that is no verb's, behind an article in a clause that is a request; in a sentence
// that asks nothing, denies nothing and sets no condition, and that no word behind it
// takes back. What it says of anybody else is not asked of us.

// Means reports whether what stands around a phrase, which is the bytes [start, end) of
// a text, lets it be meant.
func Means(text string, start, end int) bool {
	before, after := text[:start], text[end:min(len(text), end+longestRest)]
	sentence := before[sentenceOf(before):]
	close := strings.TrimRight(before, " \t")
	if r, n := utf8.DecodeLastRuneInString(close); isMark(r) && !strings.ContainsRune(brackets, r) {
		// A mark that ends a word, with a blank behind it, ends what was quoted.
		if in, _ := utf8.DecodeLastRuneInString(close[:len(close)-n]); len(close) == len(before) || !isAlnum(in) {
			return false
		}
	}
	if slices.ContainsFunc(wordsOf(sentence), func(w string) bool {
		return denying[w] || strings.HasSuffix(w, "n't") || strings.HasSuffix(w, "n’t")
	}) {
		return false
	}
	rest, polite := politely(sentence)
	if asks(rest, sentence) || polite && slices.ContainsFunc(rest, func(w string) bool { return wondering[w] }) {
		return false
	}
	return opens(sentence, polite) && (polite || !isQuestion(after)) && !conditional(after) && !takenBack(after) && !quoted(text, start)
}

// longestRest bounds what is read behind a phrase, in bytes.
const longestRest = 4 << 10

func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

var (
	// denying are words after which a phrase is denied, doubted or reported, in the
	// languages that are known here: in another one nothing is known of them.
	denying = wordSet(`not no never nor neither none nobody nothing without cannot dont doesnt wont avoid refuse forbid stop unless whether wrote writes
		said says told tells asks asked nicht kein keine keinen nie niemals niemand ohne weder ob schrieb schreibt sagt sagte fragt fragte`)
	// asking are those after which it is asked about, or of a case that may not be.
	asking = wordSet("if would could who what did wenn würde könnte wer hat")
	// wondering are those that make of "can you" a question.
	wondering = wordSet("how why when where ever wie warum wann wo jemals")
	// leading are words that may stand before a request, or before what takes one back.
	leading = wordSet(`please bitte hey hi hello hallo ok okay so and und then dann now jetzt oh ah well actually rather sorry or but aber oder doch ach thanks danke
		just kindly quickly also again mal kurz gleich schnell noch auch por favor s'il te vous plaît`)
	// questioning are those with which a clause asks, its mark or not.
	questioning = wordSet(`how what when where why which whose should shall may might must is are was were do does did can could will would has have had
		wie was wann wo warum welche welcher welches wessen soll sollte sollen kann könnte können darf dürfen muss müssen ist sind war hat haben wird werden würde`)
	// joining are those behind which a clause begins as at its begin.
	joining = wordSet("and then und dann also")
	// telling are those by which a clause is of somebody's doing, or the phrase of another verb.
	telling = wordSet("i he she we they you that to ich er wir ihr du man dass daß zu")
	// conditions are those behind a phrase that say when it holds, or what holds instead.
	conditions = wordSet(`if unless when whenever once until till while after before provided providing assuming except should instead actually
		wenn falls sobald sofern solange bevor nachdem bis außer stattdessen lieber`)
	// takingBack begin what takes back, or denies, what was said before it.
	takingBack = wordSet(`rather sorry leave keep no nope nah not never don't don’t dont stop wait cancel scratch kidding nein nee nö nicht nie niemals stopp halt kein keine keinen`)
	// welcoming say of what follows that it is wished for.
	welcoming = wordSet("grateful great fantastic wonderful lovely nice helpful")
	// requests are how people ask somebody politely to do something.
	requests = [][]string{{"can", "you"}, {"could", "you"}, {"will", "you", "please"}, {"would", "you"}, {"kannst", "du"}, {"könntest", "du"}, {"würdest", "du"},
		{"i", "want", "you", "to"}, {"i", "need", "you", "to"}, {"i'd", "like", "you", "to"}, {"let's"}, {"help", "me"}, {"go", "ahead"},
		{"proceed", "to"}, {"make", "sure", "to"}}
)

// wordsOf are the words of a text, in small letters.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' })
}

// politely returns the words of a sentence without those of a polite request, with which
// one of its clauses begins, or which say how welcome it were "if you could".
func politely(sentence string) (rest []string, is bool) {
	for clause := range strings.FieldsFuncSeq(sentence, isBreak) {
		words := wordsOf(clause)
		i := 0
		for i < len(words) && leading[words[i]] {
			i++
		}
		if n := requested(words[i:]); !is && n > 0 {
			words, is = words[i+n:], true
		}
		rest = append(rest, words...)
	}
	for i := 1; i+2 < len(rest) && !is; i++ {
		if welcome := rest[i-1] == "it" && i > 1 && rest[i-2] == "appreciate" || welcoming[rest[i-1]]; welcome &&
			rest[i] == "if" && rest[i+1] == "you" && (rest[i+2] == "could" || rest[i+2] == "would") {
			first := strings.ReplaceAll(rest[0], "’", "'")
			if first == "i'd" || first == "it'd" {
				return slices.Concat(rest[:i], rest[i+3:]), true
			}
			if (first == "i" || first == "it") && rest[1] == "would" {
				return slices.Concat(rest[2:i], rest[i+3:]), true
			}
		}
	}
	return rest, is
}

// requested returns how many words of a polite request others begin with.
func requested(words []string) int {
	for _, r := range requests {
		if len(words) >= len(r) && slices.EqualFunc(words[:len(r)], r, func(w, of string) bool { return strings.ReplaceAll(w, "’", "'") == of }) {
			return len(r)
		}
	}
	return 0
}

// asks reports whether one of the words before a phrase asks, or a clause does by the
// word it begins with.
func asks(words []string, sentence string) bool {
	if slices.ContainsFunc(words, func(w string) bool { return asking[w] }) {
		return true
	}
	for clause := range strings.FieldsFuncSeq(sentence, isBreak) {
		if ws := unled(wordsOf(clause)); len(ws) > 0 && questioning[ws[0]] && requested(ws) == 0 {
			return true
		}
	}
	return false
}

// unled are words without those that may lead a request.
func unled(words []string) []string {
	for len(words) > 0 && leading[words[0]] {
		words = words[1:]
	}
	return words
}

var inBrackets = regexp.MustCompile(`\([^()]*\)`)

// opens reports whether what follows a part of a sentence opens its clause, behind what
// is to be done before it too, or stands behind an article in a clause that tells of
// nobody's doing.
func opens(sentence string, polite bool) bool {
	clause := inBrackets.ReplaceAllString(sentence, " ")
	if i := strings.LastIndexFunc(clause, isBreak); i >= 0 {
		_, n := utf8.DecodeRuneInString(clause[i:])
		clause = clause[i+n:]
	}
	words := unled(wordsOf(clause))
	for n := requested(words); n > 0; n = requested(words) {
		words = unled(words[n:])
	}
	if n := len(words); n == 0 || polite && n > 2 && words[n-3] == "if" && words[n-2] == "you" {
		return true
	}
	for i, w := range words {
		if telling[w] && (w != "to" || i+1 == len(words) || !articles[words[i+1]]) {
			return false
		}
	}
	last := words[len(words)-1]
	mark, _ := utf8.DecodeLastRuneInString(strings.TrimRight(clause, " \t"))
	return joining[last] || articles[last] || isMark(mark) && !strings.ContainsRune(brackets, mark)
}

func isBreak(r rune) bool { return isStop(r) || r == '—' || r == '–' }

// isQuestion reports whether a sentence, of which this is the rest, ends in a question
// mark. A line's end ends it where a new one does not go on in small letters.
func isQuestion(rest string) bool {
	for rest != "" {
		r, n := utf8.DecodeRuneInString(rest)
		rest = rest[n:]
		switch {
		case isAsk(r):
			return true
		case r == '\n':
			first, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, " \t"))
			if !unicode.IsLower(first) && !isAsk(first) {
				return false
			}
		case isEnd(r):
			if next, _ := utf8.DecodeRuneInString(rest); rest == "" || blank(next) {
				return false
			}
		}
	}
	return false
}

func isAsk(r rune) bool { return strings.ContainsRune("?？؟", r) }
func isEnd(r rune) bool { return strings.ContainsRune(".!…", r) || isAsk(r) }

// sentenceOf returns where the sentence begins that a text ends in: behind a line's end,
// or what ends a sentence and a word with it.
func sentenceOf(before string) int {
	for i := len(before); i > 0; {
		r, n := utf8.DecodeLastRuneInString(before[:i])
		if next, _ := utf8.DecodeRuneInString(before[i:]); r == '\n' || isEnd(r) && (i == len(before) || blank(next) || isMark(next)) {
			return i
		}
		i -= n
	}
	return 0
}

// conditional reports whether the rest of the sentence says when it holds what was said
// before, or what holds instead.
func conditional(rest string) bool {
	return slices.ContainsFunc(wordsOf(rest[:endOf(rest)]), func(w string) bool { return conditions[w] })
}

// endOf returns where the sentence ends of which a text is the rest.
func endOf(rest string) int {
	for i := 0; i < len(rest); {
		r, n := utf8.DecodeRuneInString(rest[i:])
		if next, _ := utf8.DecodeRuneInString(rest[i+n:]); r == '\n' || isEnd(r) && (blank(next) || isMark(next) || i+n == len(rest)) {
			return i
		}
		i += n
	}
	return len(rest)
}

// takenBack reports whether the next clause or the next sentence begins with a denial.
func takenBack(rest string) bool {
	clause := strings.IndexFunc(rest, func(r rune) bool { return isBreak(r) || r == '\n' || r == '(' })
	for _, w := range []string{" but ", " or ", " aber ", " oder ", " - ", " -- "} {
		if i := strings.Index(strings.ToLower(rest), w); i >= 0 && (clause < 0 || i < clause) {
			clause = i
		}
	}
	sentence := strings.IndexAny(rest, ".!?…\n")
	return clause >= 0 && denies(rest[clause:]) || sentence >= 0 && denies(rest[sentence:])
}

// denies reports whether a text begins with a denial.
func denies(text string) bool {
	words := wordsOf(text)
	for len(words) > 0 && leading[words[0]] && !takingBack[words[0]] {
		words = words[1:]
	}
	return len(words) > 0 && (takingBack[strings.Trim(words[0], "'’")] || words[0] == "do" && len(words) > 1 && words[1] == "not")
}

// closers are the marks that begin a quotation, and those that end it.
var closers = map[rune]string{
	'"': `"`, '“': `”"`, '”': `”"`, '„': `“”"`, '‟': `”"`, '«': "»", '»': "«", '‹': "›", '›': "‹",
	'\'': "'’", '‘': "’'", '’': "’'", '‚': "‘’'", '‛': "’'", '`': "`´'", '´': "´'",
}

// quoted reports whether what begins at i stands in a quotation: of double marks also in
// one that does not end, and in a line that begins with > as a mail's does. A single
// mark is one of a quotation where a word could begin behind it and it ends somewhere.
func quoted(text string, i int) bool {
	line := text[strings.LastIndexByte(text[:i], '\n')+1:]
	if strings.HasPrefix(strings.TrimLeft(line, " \t"), ">") {
		return true
	}
	var open rune
	dead := "" // single marks behind which none ends a quotation
	for at := 0; at < i; {
		r, n := utf8.DecodeRuneInString(text[at:])
		switch {
		case open != 0:
			if strings.ContainsRune(closers[open], r) && (!single(open) || apart(text[at+n:])) {
				open = 0
			}
		case closers[r] == "" || inWord(text[:at]):
		case !single(r):
			open = r
		case strings.ContainsRune(dead, r):
		case closes(text[at+n:], closers[r]):
			open = r
		default:
			dead += string(r)
		}
		at += n
	}
	return open != 0
}

func single(r rune) bool { return strings.ContainsRune("'‘’‚‛`´‹›", r) }

// inWord reports whether a mark behind a text stands in or behind a word or a number:
// 5" is a length, and Kim's no quotation.
func inWord(before string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	return isAlnum(last)
}

// apart reports whether no word goes on in a text.
func apart(after string) bool {
	next, _ := utf8.DecodeRuneInString(after)
	return !isAlnum(next)
}

// closes reports whether one of some marks ends a quotation in a text.
func closes(after, marks string) bool {
	for i, r := range after {
		if strings.ContainsRune(marks, r) && apart(after[i+utf8.RuneLen(r):]) {
			return true
		}
	}
	return false
}

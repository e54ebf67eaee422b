package provenance

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
)

// Where the sentence around a phrase begins and ends, and what in it is quoted or taken back.

func firstRune(text string) rune {
	r, _ := utf8.DecodeRuneInString(text)
	return r
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

// behindSentence is what follows the sentence of which a text is the rest.
func behindSentence(rest string) string {
	return strings.TrimLeft(strings.TrimLeft(rest[endOf(rest):], ".!… \t\r\n"), "?؟？ \t\r\n")
}

// takenBack reports whether the next clause or the next sentence behind an order begins with a denial.
func takenBack(order, rest string) bool {
	clause := breakOf(rest, func(r rune) bool { return isBreak(r) || r == '\n' || r == '(' })
	for _, w := range []string{" but ", " or ", " aber ", " oder ", " - ", " -- "} {
		if i := strings.Index(strings.ToLower(rest), w); i >= 0 && (clause < 0 || i < clause) {
			clause = i
		}
	}
	sentence := breakOf(rest, func(r rune) bool { return strings.ContainsRune(".!?…\n", r) })
	return clause >= 0 && !stays(order+rest[:clause], rest[clause:]) && retracts(rest[clause:]) || sentence >= 0 && retracts(rest[sentence:])
}

// stays reports whether a text begins with what is to stay of something, and an order is of nothing such: "keep the branch".
func stays(order, text string) bool {
	m := staying().FindStringSubmatch(text)
	return m != nil && !slices.ContainsFunc(wordsOf(order), func(w string) bool { return strings.HasPrefix(w, lower(m[1])) })
}

var staying = text.Pattern(`(?i)^[ \t,;–—-]*(?:(?:but|and|just)[ \t]+)*(?:please[ \t]+)?(?:keep|leave)[ \t]+(?:the|its|their|my|a)[ \t]+(?:(?:feature|source|remote|local)[ \t]+)?(branch|comment|note|thread|history|changelog|label)(?:e?s)?(?:$|[^\pL\pN-])`)

// retracts reports whether a text begins with a denial.
func retracts(text string) bool {
	words := wordsOf(text)
	for len(words) > 0 && (leading[words[0]] || sighing[words[0]]) && !takingBack[words[0]] {
		words = words[1:]
	}
	if otherNumber().MatchString(text) {
		return true
	}
	return len(words) > 0 && (takingBack[words[0]] || len(words) > 1 && takingBackAs[words[0]+" "+words[1]])
}

// otherNumber is one that is said instead: "oops, 42", "only 42", "42 instead".
var otherNumber = text.Pattern(`(?i)^[ \t,;.!…(–—-]*(?:(?:(?:hm+|uh|er|oops|ups|ähm|only|just|nur|correction|make that)[ \t,:]+)+#?[0-9]+|#?[0-9]+[ \t]+(?:instead|only|stattdessen))(?:[ \t]+(?:please|pls|bitte))?[ \t]*(?:$|[\n.,;!?)])`)

// sighing are words that may stand before what takes something back, takingBackAs two that do.
var (
	sighing      = wordSet("hm hmm um uh er oops ups ähm haha lol ha ou")
	takingBackAs = map[string]bool{"do not": true, "i meant": true, "i mean": true, "ich meine": true, "on second": true, "undo that": true, "undo it": true, "ignore that": true, "strike that": true,
		"ask me": true, "check with": true, "hold on": true, "hold off": true, "hang on": true, "i wouldn't": true, "we shouldn't": true, "you shouldn't": true, "you mustn't": true, "i'd rather": true, "i changed": true, "changed my": true, "maybe not": true, "perhaps not": true,
		"better not": true, "doch nicht": true, "laisse le": true, "laisse la": true, "laisse tomber": true, "plutôt non": true, "mejor no": true, "melhor não": true, "laat het": true, "laat maar": true,
		"liever niet": true, "toch niet": true}
)

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
	open := false
	quotations(text, i, func(_, end int) { open = end < 0 })
	return open
}

// quotations calls found for each quotation that begins before i in a text, with what
// stands in its marks; the end is negative for one that goes on at i.
func quotations(text string, i int, found func(start, end int)) {
	var open rune
	start, dead := 0, "" // single marks behind which none ends a quotation
	for at := 0; at < i; {
		r, n := utf8.DecodeRuneInString(text[at:])
		switch {
		case open != 0:
			if strings.ContainsRune(closers[open], r) && (!single(open) || apart(text[at+n:])) {
				open = 0
				found(start, at)
			}
		case closers[r] == "" || inWord(text[:at]):
		case !single(r) || !strings.ContainsRune(dead, r) && closes(text[at+n:], closers[r]):
			open, start = r, at+n
		default:
			dead += string(r)
		}
		at += n
	}
	if open != 0 {
		found(start, -1)
	}
}

// withoutQuoted blots out what is quoted in what follows a phrase, which says nothing of when
// it holds; but not a quotation that begins as a condition or a denial does.
func withoutQuoted(rest string) string {
	out := []byte(rest)
	quotations(rest, len(rest), func(start, end int) {
		if end < 0 {
			return
		}
		words := wordsOf(rest[start:end])
		if len(words) == 0 || conditions[words[0]] || takingBack[words[0]] || negates(words[0]) || leading[words[0]] {
			return
		}
		for i := start; i < end; i++ {
			out[i] = 'x'
		}
	})
	return string(out)
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

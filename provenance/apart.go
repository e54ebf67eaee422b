package provenance

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
)

// # Names among words (R6, R9)
//
// Whoever can call something of his own as he likes calls it by words that users say:
// "report", "follow-up", "the report". Where something goes they say nothing unless the
// user set them apart: behind the word that says what the argument is, or in quotation
// marks. Behind that word the sentence often goes on ("the channel about lunch"): what
// begins as it does then is no name. Brackets set nothing apart. What no word is needs none of it: an address, a
// link, a path, #general, and where people do not choose the names what has a digit.
//
// A capital within a sentence sets a word apart in one place only, in a closed
// collection: strangers cannot add to that.

// anyWord reports whether a text of a type is of a form that words of a sentence have.
func anyWord(t Type, s string) bool {
	switch t {
	case Email, URL, Phone, IBAN, Integer, Decimal, Time, Path:
		return false
	case Host:
		return !strings.Contains(strings.Trim(s, "."), ".")
	}
	if strings.ContainsFunc(s, blank) {
		return true
	}
	if alternatives(s) {
		return true
	}
	return !strings.ContainsAny(s, "@/") && !strings.HasPrefix(s, "#") && !strings.HasPrefix(s, "www.") && (t == Name || !strings.ContainsFunc(s, unicode.IsNumber))
}

// apart reports whether a stretch is set apart as a name.
func (r *reading) apart(at span, words []string) bool {
	return r.inQuotes(at) || r.called(at.start, words) && (r.hash[at.start] || !GoesOn(r.text[at.start:at.end]))
}

// tags reports whether a # before a stretch says that it is what people call something: one
// word, in no quotation, which the user does not take out; and where nothing before it says what
// it is no number, as issues and commits have, nor a colour.
func (r *reading) tags(at span, words []string) bool {
	word := r.text[at.start:at.end]
	return !strings.ContainsFunc(word, blank) && !Spares(r.text, at.start-1) && (!tagless().MatchString(word) || r.called(at.start, words))
}

var tagless = text.Pattern(`^(?:\PL*|[0-9A-Fa-f]*[0-9][0-9A-Fa-f]*|[A-Fa-f]{3}|[A-Fa-f]{6}|[A-Fa-f]{8})$`)

// alternatives reports whether a text is of words that a sentence goes on with, with
// strokes between them: "and/or", "he/she".
func alternatives(s string) bool {
	words := strings.Split(s, "/")
	return len(words) > 1 && !slices.ContainsFunc(words, func(w string) bool {
		return strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsLetter(r) }) || !GoesOn(strings.ToLower(w))
	})
}

// GoesOn reports whether words behind the word for a thing say more of it, or what the
// sentence goes on with, by how they begin: "about lunch", "called", "starting with". With a
// capital they are a name, and so is what a hyphen makes of them: "it-support".
func GoesOn(text string) bool {
	first := text
	if i := strings.IndexFunc(text, func(c rune) bool { return !unicode.IsLetter(c) }); i >= 0 {
		if first = text[:i]; strings.ContainsRune("-_", rune(text[i])) && i+1 < len(text) && !apart(text[i+1:]) {
			return false // "it-support"
		}
	}
	return slices.ContainsFunc(goingOn, func(words map[string]bool) bool { return words[first] })
}

// goingOn are the words that do not begin what a thing is called.
var goingOn = []map[string]bool{articles, idle, denying, asking, wondering, leading, questioning, joining, telling, steering, conditions, excluding, delaying, being, dating, wordSet(`
	about above across after against along among around as at because behind below beneath beside between beyond by concerning despite during inside into like near onto outside
	per regarding through throughout to toward towards under underneath upon via within
	called named titled labeled labelled known starting beginning ending containing having belonging used using created made made owned run shared listed mentioned dedicated reserved
	whom whoever whichever yet too today soon always usually often maybe perhaps though although however myself ourselves only be been being it itself there us them him her his
	über unter neben zwischen vor hinter bei nach seit von für gegen durch um wegen während trotz deren dessen den dem namens genannt benannt beginnend endend schon noch nur es
	de du des d' pour avec sans sur sous dans chez par vers entre qui que dont où lequel laquelle et ou mais appelé appelée nommé nommée intitulé commençant finissant est
	del al para con sin sobre bajo en entre por hacia desde hasta cuyo cuya donde el cual que y o pero llamado llamada titulado titulada empieza termina es está`)}

// NounBehind reports whether a word for such things stands right behind a stretch of a text and says
// that it is what one is called: "the Portal team", "in Portal team". What leads to a name stands
// before it, or the clause begins there, and no more of it behind that word: of "the Customer Portal
// team" and "the Portal team lead" it is a part. Words by which people tell things without their names
// ("the whole team", "another team") are none.
func NounBehind(text string, start, end int, nouns []string) bool {
	noun, ok := strings.CutPrefix(text[end:], " ")
	if i := strings.IndexFunc(noun, func(r rune) bool { return !isAlnum(r) && r != '-' && r != '_' }); i >= 0 {
		noun = noun[:i]
	}
	behind := end + len(" ") + len(noun)
	if !ok || noun == "" || !slices.ContainsFunc(nouns, func(n string) bool { return strings.EqualFold(n, noun) }) ||
		!NameEnds(text, behind) || strings.HasPrefix(text[behind:], "'") || strings.HasPrefix(text[behind:], "’") {
		return false
	}
	name := wordsOf(text[start:end])
	if len(name) == 0 || slices.ContainsFunc(name, func(w string) bool {
		return GoesOn(w) || choosing[w] || indicating[w] && !(w == "main" && lower(noun) == "branch")
	}) || Spares(text, start) {
		return false
	}
	before := text[:start]
	clauses := clausesOf(before[sentenceOf(before):])
	words := wordsOf(clauses[len(clauses)-1].text)
	return len(words) == 0 || leadsIn[words[len(words)-1]]
}

// NounOf is NounBehind of words that may be orders, which are meant, and of a name that no sentence has for what a thing
// is like: "open a PR from the fix-docs branch", and not "make a private repository".
func NounOf(text string, start, end int, words []string) bool {
	trunk := text[start:end] == "main"
	if trunk {
		before := lastClause(text[max(0, start-longestTopic):start])
		if !onTrunk().MatchString(before) && !(strings.TrimSpace(before) == "" && trunkAlone().MatchString(text[end:])) || hasAny(wordsOf(before), offTrunk) {
			return false
		}
	}
	return (trunk || strings.ContainsAny(text[start:end], "-_/")) && NounBehind(text, start, end, words) && (!SayOrders(words) || Means(text, start, end))
}

// Of a repository's main branch people speak whatever they do: it is named where something is done on it itself.
var (
	onTrunk    = text.Pattern(`(?i)(?:^|[ \t])(?:on|onto|to|in|into|auf|in|sur|en|su|em|op|na|no)[ \t]+(?:(?:the|our|den|die|der|dem|la|le|el|il|o|a|de)[ \t]+)?$`)
	trunkAlone = text.Pattern(`^ \pL+(?:[ \t]+is (?:fine|ok|okay|good))?[ \t]*(?:$|[\n.,;!)])`)
	offTrunk   = wordSet(`i he she they we pr prs mr mrs pull merge merges request requests rebase rebased based base compare compared comparison diff copy link branch
		later as like than unlike what how who why is are was were does did`)
)

// NameEnds reports whether no further word of a name stands behind a stretch of a text, where
// nothing is known but how it is written.
func NameEnds(text string, end int) bool {
	rest := strings.TrimLeft(text[end:], " \t")
	r, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || rest[0] == '\n' || isBreak(r) || strings.ContainsRune(quotes+brackets, r) || len(rest) < len(text[end:]) && GoesOn(rest)
}

var (
	// indicating are words by which people tell a thing that has another name, or none.
	indicating = wordSet(`whole entire same new old right wrong current existing usual main other another own next previous big small
		ganze ganzen gleiche gleichen neue neuen alte alten richtige andere anderen même nouvelle nouveau mismo misma nuevo nueva`)
	// leadsIn are the words that lead to the name of a thing.
	leadsIn = wordSet(`the our my your in into to for on onto at of from with by and or
		der die das den dem unser unsere unserem unseren mein meine meinem meinen im ins am in an auf für von zu zum zur und oder
		le la les notre mon ma dans en au du de pour sur et ou el los las nuestro nuestra mi a para y o il lo nostro nostra nel nella per e
		o os as nosso nossa no na em het de onze ons mijn`)
)

// inQuotes reports whether quotation marks stand directly around a stretch.
func (r *reading) inQuotes(at span) bool {
	before, _ := utf8.DecodeLastRuneInString(r.text[:at.start])
	after, _ := utf8.DecodeRuneInString(r.text[at.end:])
	return strings.ContainsRune(quotes, before) && strings.ContainsRune(quotes, after)
}

// properName reports whether words are written as a proper name is: each with a capital
// and small letters, within a sentence, and no article or possessive before them, which
// in German stands before nouns; and whole: of "Bob Stone" neither word is a name by itself.
func (r *reading) properName(at span) bool {
	for word := range strings.FieldsSeq(r.text[at.start:at.end]) {
		first, n := utf8.DecodeRuneInString(word)
		if !unicode.IsUpper(first) || strings.ContainsFunc(word[n:], unicode.IsUpper) {
			return false
		}
	}
	before := strings.TrimRight(r.text[:at.start], " ")
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(before, ","))
	if len(before) == at.start || !unicode.IsLetter(last) {
		return false
	}
	rest := strings.TrimLeftFunc(r.text[at.end:], sameLine)
	for word, more, is := strings.Cut(rest, " "); is && particles[word]; word, more, is = strings.Cut(rest, " ") {
		rest = strings.TrimLeftFunc(more, sameLine) // "Kim van Dam"
	}
	if next, _ := utf8.DecodeRuneInString(rest); unicode.IsUpper(next) {
		return false
	}
	i := strings.LastIndex(before, " ") + 1
	first, _ := utf8.DecodeRuneInString(before[i:])
	head, _ := utf8.DecodeLastRuneInString(strings.TrimRight(before[:i], " ,"))
	if unicode.IsUpper(first) && !strings.HasSuffix(before, ",") && unicode.IsLetter(head) && !titles[strings.ToLower(before[i:])] {
		return false
	}
	words := strings.FieldsFunc(before, func(c rune) bool { return !unicode.IsLetter(c) })
	return !articles[strings.ToLower(words[len(words)-1])] && !Spares(r.text, at.start)
}

// Spares reports whether what stands before a name, which begins at i of a text, says that
// it is not for who is called so, or is quoted with him: "don't tell Bob", "all but Anna or
// Bob", "he said 'ask Bob'".
func Spares(text string, i int) bool {
	from := max(strings.LastIndexByte(text[:i], '\n')+1, i-longestRest)
	for !utf8.RuneStart(text[from]) {
		from++
	}
	if quoted(text[from:i], i-from) {
		return true
	}
	before := text[from:i]
	before = besideOthers().ReplaceAllString(strings.TrimLeft(before[sentenceOf(before):], " \t"), "")
	clauses := clausesOf(before)
	words := wordsOf(clauses[len(clauses)-1].text)
	if len(words) > 0 && sparing[words[len(words)-1]] || insteadOf().MatchString(before) {
		return true
	}
	denied := false
	for _, w := range words {
		switch {
		case turning[w] || enjoining[w]:
			denied = false
		case barring[w] || strings.HasSuffix(w, "n't"):
			denied = true
		}
	}
	return denied
}

var (
	// besideOthers are names, behind a # too, and what joins them, before another one.
	besideOthers = text.Pattern(`(?:[ \t,]+(?:\p{Lu}[\pL\pN'’-]*|#[\pL\pN_-]+|and|or|nor|to|for|from|with|und|oder|an|von|mit))*[ \t,]*$`)
	// sparing are words that take who is named behind them out.
	sparing   = wordSet("except excepting excluding excl without but besides barring unlike minus außer ausser ohne ausgenommen")
	insteadOf = text.Pattern(`(?i)(?:^|\PL)(?:(?:instead|out) of|rather than|away from|anstatt|statt)$`)
	// barring are those that deny what their clause says of him.
	barring = wordSet("nobody niemand not never neither nor without cannot dont doesnt avoid refuse forbid stop nicht nie niemals weder ohne")
	// turning are those behind which a denial is over, and enjoining the verbs of one that
	// denies nothing: "don't forget to tell Bob".
	turning   = wordSet("so then but also instead rather sondern aber also dann")
	enjoining = wordSet("forget hesitate fail only just miss neglect vergiss vergessen")
)

// sameLine is white space within a line.
func sameLine(r rune) bool { return r == '\t' || unicode.Is(unicode.Zs, r) }

// particles stand within a name.
var particles = wordSet("van von de del della di da dos du ter ten")

// titles stand before a name and are no part of it.
var titles = wordSet("herr herrn frau mr mrs ms miss sir dr prof colleague kollege kollegen kollegin")

var articles = wordSet(`a an the this that these those my your his her its our their some any no each every which what
	der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines dieser diese dieses diesen diesem jeder jede jedes
	mein meine meinen meinem meiner dein deine deinen deinem deiner sein seine seinen seinem seiner ihr ihre ihren ihrem ihrer
	unser unsere unseren unserem unserer euer eure euren eurem eurer im am zum zur beim vom ins ans`)

// closes reports whether a stretch ends in what ends the sentence and not in what is its
// own: in a bracket or mark that it does not open, or in a stop behind which nothing but
// stops, brackets and marks stand up to white space or the text's end. A stop in
// quotation marks is its own, and so is a single dot behind which the sentence goes on,
// with a small letter, a number or a comma.
func (r *reading) closes(at span) bool {
	value, rest := r.text[at.start:at.end], r.text[at.end:]
	last, n := utf8.DecodeLastRuneInString(value)
	if isCloser(last) {
		return !strings.ContainsFunc(value[:len(value)-n], func(c rune) bool { return isMark(c) || unicode.In(c, unicode.Ps, unicode.Pi) })
	}
	if !isStop(last) || r.inQuotes(at) {
		return false
	}
	behind := strings.TrimLeftFunc(rest, func(c rune) bool { return isStop(c) || isCloser(c) })
	if next, _ := utf8.DecodeRuneInString(behind); behind != "" && !blank(next) {
		return false
	}
	if before, _ := utf8.DecodeLastRuneInString(value[:len(value)-n]); last != '.' || isStop(before) {
		return true
	}
	if behind != rest {
		comma, _ := utf8.DecodeRuneInString(rest)
		return !strings.ContainsRune(",;:", comma)
	}
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, " "))
	return !unicode.IsLower(next) && !unicode.IsNumber(next)
}

// isStop reports what ends a sentence or a part of it, in any script.
func isStop(r rune) bool {
	if r < utf8.RuneSelf {
		return strings.ContainsRune(stops, r)
	}
	return unicode.In(r, unicode.Terminal_Punctuation, unicode.Sentence_Terminal) || r == '…' || r == '‥'
}

// isCloser reports what ends a quotation or a bracket.
func isCloser(r rune) bool {
	if r < utf8.RuneSelf {
		return strings.ContainsRune("\"'`)]}>", r)
	}
	return unicode.In(r, unicode.Pe, unicode.Pf) || isMark(r)
}

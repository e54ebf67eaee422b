package provenance

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
)

// # What an order is of (R9)
//
// To name a thing does not say what is to become of it: "who is Anna?" names Anna. Where an
// argument has orders, what the user typed counts where it is what one of them is of:
//
//   - The order is meant, as a phrase must be (Means).
//   - Nothing stands between but what leads to a name ("the entity", "everything you know
//     about"), or other names of a list, each of a few words that relate it to nothing: "the
//     note about Bela and Anna" is of a note. Behind a colon the list begins, on lines of its
//     own too.
//   - The name ends there: Anna is not what "delete Anna Kern" is of, nor "remove Anna from
//     Kettle".
//   - Behind an order that ends in "that" a sentence follows, of a few words up to the value:
//     "forget that she lives in Berlin".

// OrderOf reports whether the bytes [start, end) of a text are what one of some orders in it
// is of. The nouns are words for such things.
func OrderOf(s string, orders, nouns []string, start, end int) bool {
	return orderOf(s, orders, nouns, start, end, false)
}

// orderOf is OrderOf; onPage says that all of the orders are done on the page that a sentence begins with,
// "on shop.example click …", and not those alone that put something there.
func orderOf(s string, orders, nouns []string, start, end int, onPage bool) (is bool) {
	if !Ordering(s[max(0, start-longestOrder):start], orders) && !Ordering(s[end:min(len(s), end+longestTopic)], orders) {
		return false // most places have none around them
	}
	s = plainly(s, start, end)
	// What a name says, or a link, is nothing that the user says of it.
	said := linksIn().ReplaceAllStringFunc(s[:start], blotLink) + fmt.Sprintf("%-*.*s", end-start, end-start, "it") + linksIn().ReplaceAllStringFunc(s[end:], blotLink)
	if slices.ContainsFunc(orders, func(o string) bool { return parsed(o).exchanges }) {
		nouns = slices.Concat(nouns, remotes)
	}
	told := slices.ContainsFunc(orders, func(o string) bool { return parsed(o).tells }) // of something
	ends := endsName(s, nouns, start, end, told, slices.ContainsFunc(orders, func(o string) bool { return parsed(o).puts }))
	if orderOfIt(s, said, orders, nouns, start, end, onPage) {
		return true
	}
	eachOrder(said, max(0, start-longestOrder), start, orders, func(phrase, order string, i, e int) bool {
		p := parsed(phrase)
		if p.asks {
			is = endOf(said[e:start]) == start-e && plainName().MatchString(s[start:end]) && !SecretAt(s, start, end, nil) && reachesTo(strings.TrimSuffix(strings.TrimRight(said[e:start], " "), " of")+" ", nouns) && isAsked(s, said, i) && !p.elsewhere(s, said, e, nouns)
			return !is
		}
		is = (ends || isTelling(order)) && p.leads(s, said, order, nouns, span{start, end}, e) && !p.elsewhere(s, said, e, nouns) && !listedAs(said[:i]) && fitsPlace(said[:i], onPage || isPutting(order) || p.reaches) && (!p.there || onSite(s, i, end)) && meant(said, i, e) &&
			(ofDay(nouns) || !defersSettled(strings.Fields(order)[0]+" it", s[end:min(len(s), end+longestRest)]))
		return !is
	})
	return is
}

// leads reports whether what stands between an order of this phrase, which ends at e, and a name leads to it.
func (p *parsedPhrase) leads(s, said, order string, nouns []string, name span, e int) bool {
	switch {
	case p.reaches:
		return reachesTo(said[e:name.start], nouns)
	case len(p.tail) > 0:
		return p.turnsTo(s, said, e, name.start, nouns)
	case isTelling(order):
		return tellsOf(s[e:name.start])
	}
	dismisses := dismissing[lower(order)] && articled().MatchString(s[e:name.start])
	return leadsTo(s[e:], name.start-e, nouns) && (!dismisses || endsTurn(s[name.end:], nouns))
}

// articled is nothing, or an article.
var articled = text.Pattern(`(?i)^[ \t]*(?:(?:the|my|our|your|this|that|these|those|an?|den|die|das|dem|mein(?:e|en)?)[ \t]+)?$`)

// fitsPlace reports whether a text ends in no place, or in one where such is done: what is typed
// or searched for in a page or at a host, and there nothing else that has an order of ours.
func fitsPlace(text string, puts bool) bool {
	text = text[max(0, len(text)-longestOrder):]
	text = strings.TrimRight(text[sentenceOf(text):], " \t,") + " "
	m := fronted().FindStringSubmatchIndex(text)
	return m == nil || (m[4] < 0 || len(Hosts(text[m[4]:m[5]])) > 0) == puts
}

// linksIn is what is no words of a sentence, whatever stands in it.
var linksIn = text.Pattern(`[A-Za-z][A-Za-z0-9+.-]*://\S+`)

var linkEnds = text.Pattern(`[,;!—–…'’]\pL`)

// blotLink has a page in the stead of a link, and leaves what ends the clause, and behind that
// words that may deny what follows: "https://leaf.example—don't".
func blotLink(link string) string {
	bare := strings.TrimRight(link, stops+quotes+brackets)
	if at := linkEnds().FindStringIndex(bare); at != nil && slices.ContainsFunc(wordsOf(bare), otherwise) {
		bare = bare[:at[0]]
	}
	return fmt.Sprintf("%-*.*s", len(bare), len(bare), "the page") + link[len(bare):]
}

// listedAs reports whether a line above the one that a text ends in says of what follows what else
// it is: "here is his mail:", "tasks for Kim:".
func listedAs(text string) bool {
	above := strings.Split(text, "\n")
	return slices.ContainsFunc(above[:len(above)-1], func(l string) bool {
		l, colon := strings.CutSuffix(strings.TrimSpace(l), ":")
		return colon && !announces(wordsOf(l))
	})
}

// endsTurn reports whether a turn says no more than other names behind one: "forget Anna, what
// about Bela?" lets her be.
func endsTurn(rest string, nouns []string) bool {
	all := "x" + strings.TrimRight(rest, " \t\n.!"+quotes) + ", "
	return leadsTo(all, len(all), nouns) && !slices.ContainsFunc(wordsOf(rest), func(w string) bool { return explaining[w] || conveying[w] })
}

// isPutting reports whether an order is of what is put somewhere, and not of that from which it is taken.
func isPutting(order string) bool {
	return putting()[lower(strings.Fields(order)[0])] && !strings.HasSuffix(order, " from")
}

// isTelling reports whether behind an order a sentence follows.
func isTelling(order string) bool { return strings.HasSuffix(order, " that") }

// Ordering reports whether a text says one of some orders, meant or not.
func Ordering(s string, orders []string) (said bool) {
	eachOrder(s, 0, len(s), orders, func(string, string, int, int) bool { said = true; return false })
	return said
}

// OrderOfNone reports whether a text ends in an order that is meant and leaves open of what it is:
// "delete one of the two". Behind "delete Bela, and write a mail" names answer something else.
func OrderOfNone(s string, orders, nouns []string) (is bool) {
	eachOrder(s, 0, len(s), orders, func(phrase, _ string, i, e int) bool {
		is = !parsed(phrase).asks && Means(s, i, e) && !slices.ContainsFunc(wordsOf(s[e:]), func(w string) bool {
			return !leadIn[w] && !idle[w] && !all[w] && !pointing[w] && !choosing[w] && !leavingOpen[w] && !isNoun(w, nouns)
		})
		return !is
	})
	return is
}

// AnswerOf reports whether a text is names and nothing else, one of which is the bytes
// [start, end) of it.
func AnswerOf(s string, nouns []string, start, end int) bool {
	all := strings.TrimRight(s, " \t\n.!") + ", "
	return len(s) <= longestAnswer && leadsTo(s, start, nouns) && endsName(s, nouns, start, end, false, false) && leadsTo(all, len(all), nouns)
}

// eachOrder calls found for the orders that stand in a part of a text, the last first, with the
// words that say each, until it returns false.
func eachOrder(s string, from, to int, orders []string, found func(order, said string, start, end int) bool) {
	for i, left := to-1, mostSaid; i >= from && left > 0; i-- {
		if !wordAt(s, i) {
			continue
		}
		for _, order := range orders {
			if p := parsed(order); p.mayBegin(s[i:]) && p.words.follow(s, i, func(words []string, e int) bool {
				if e > to || !endsAt(s, e) {
					return false
				}
				left--
				return !found(order, strings.Join(words, " "), i, e)
			}) {
				return
			}
		}
	}
}

const (
	longestOrder  = 1 << 10 // how far before a name its order may stand, in bytes
	longestAnswer = 256     // bytes of a turn that is names alone
	longestItem   = 4       // words of another name in a list
	mostOthers    = 2       // words before the colon of a list that say of what kind it is
	longestTold   = 4       // words of a sentence before the value in it
)

// tellsOf reports whether a sentence may go on behind "that" up to a value.
func tellsOf(between string) bool {
	words := wordsOf(between)
	return len(words) <= longestTold && !strings.ContainsFunc(between, func(r rune) bool { return r == '\n' || isBreak(r) }) && !slices.ContainsFunc(words, otherwise)
}

// longestReach bounds the words between an order and what it reaches to.
const longestReach = 24

// reachesTo reports whether what stands between an order that reaches through its sentence and a name
// leaves it of that: no end of the sentence, nothing that takes out, denies or puts off, nothing
// else that is ordered, nobody's mouth, and no clause of something else. What is said in one is what such a
// thing is, as "my email is".
func reachesTo(between string, nouns []string) bool {
	between = strings.ReplaceAll(withoutQuoted(between), "-mail", "mail")
	if at := endOf(between); at < len(between) && between[at] != '\n' {
		m := givesData().FindStringSubmatch(behindSentence(between))
		return givenAs(m, nouns) && reachesTo(between[:at], nouns) && reachesTo(m[5], nouns)
	}
	words := wordsOf(between)
	if endOf(between) < len(between) || strings.Contains(between, "\n") || len(words) > longestReach || len(words) > 0 && words[len(words)-1] == "of" {
		return false
	}
	listed := false // a noun said before what the name behind it is, so that "email" does too
	for i, w := range words {
		if negates(w) || excluding[w] || conditions[w] || asking[w] || wondering[w] || reporting[w] ||
			i > 0 && (joining[words[i-1]] || against[words[i-1]]) && turnsAway(w) && !(listed && isNoun(w, nouns)) {
			return false
		}
		listed = listed || isNoun(w, nouns) && !conveying[w] && !(i > 0 && (owning[words[i-1]] || articles[words[i-1]]))
	}
	for _, clause := range behindBreak().Split(between, -1)[1:] {
		if !continues(unled(wordsOf(clause)), nouns, listed) {
			return false
		}
	}
	return true
}

// givesData is a sentence that gives what is entered, behind the order to enter it: "My name is", "Email:", "I'm".
var givesData = text.Pattern(`(?i)^(?:(?:and|my|the|our|meine?|die|der)[ \t]+)*(?:(?:first|last|full|card|account|customer|order|phone|user|e?mail)[ \t]+(number|name|address|id)|(I['’]m|I am)|([\pL-]+))([ \t]+(?:is|are|ist|lautet)|:|=)?(?:[ \t]|$)((?s).*)$`)

// givenAs reports whether a sentence of givesData leads on to what it gives: what follows right behind, or behind
// what else is given. "Email me at", "Mail Kim" and "Project: ask Kim" tell of something to be done.
func givenAs(m, nouns []string) bool {
	if m == nil || !isNoun(m[1]+m[3], nouns) && (m[2] == "" || !isNoun("name", nouns)) {
		return false
	}
	labelled := m[4] != "" || m[2] != ""
	words := wordsOf(m[5])
	if hasAny(words, relating) {
		return false
	}
	if len(words) == 0 {
		return labelled || !callingUp[lower(m[3])]
	}
	if !labelled && isNoun(bare(words[0]), nouns) && !pairing[bare(words[0])] { // "my email password is" is another one's
		return false
	}
	if labelled && len(words) == 1 && words[0] == "it" { // what is given itself
		return true
	}
	rest := strings.TrimRight(m[5], " \t")
	if stem := givenIs().ReplaceAllString(rest, ""); stem != rest {
		words = wordsOf(stem)
		return len(words) > 0 && isNoun(bare(words[len(words)-1]), nouns)
	}
	return strings.HasSuffix(rest, ",") || strings.HasSuffix(rest, ";") || strings.HasSuffix(rest, "(") ||
		isNoun(bare(words[len(words)-1]), nouns) || joining[bare(words[len(words)-1])]
}

// givenIs ends in what stands between what something is called and what it is; callingUp are nouns that say what is to be
// done too, and pairing the second of two that call one thing.
var (
	givenIs   = text.Pattern(`(?i)(?:[ \t](?:is|are|ist|lautet)|:|=)$`)
	callingUp = wordSet("phone message mail email text note comment title address date project time form")
	pairing   = wordSet("number name address id code")
)

// behindBreak is where another clause begins, or what stands in brackets.
var behindBreak = text.Pattern(`[,;:(–—](?:[ \t]|$)|[(]|[ \t]-[ \t]|[ \t](?:and|und|but|aber)[ \t]`)

// continues reports whether a clause behind such an order goes on with what that is of: with names and words,
// none of which orders anything or is somebody's doing, or with what a noun is.
func continues(words, nouns []string, listed bool) bool {
	if len(words) == 1 && isNoun(words[0], nouns) {
		return true // "note: …"
	}
	if listed && len(words) > 0 && isNoun(words[0], nouns) {
		words = words[1:]
	}
	if is := slices.IndexFunc(words, func(w string) bool { return being[w] }); is >= 0 {
		return !slices.ContainsFunc(words[:is], func(w string) bool { return !isNoun(w, nouns) && !owning[w] && !definite[w] && !stating[w] })
	}
	for i, w := range words {
		if telling[w] || remarking[w] || (i == 0 || !articles[words[i-1]]) && turnsAway(w) {
			return false
		}
	}
	return true
}

// turnsAway reports whether a word behind an order begins another one, or is of somebody's doing.
func turnsAway(w string) bool {
	return ordering()[w] && !leadIn[w] || explaining[w] || conveying[w] || telling[w] || doing[w]
}

// LeadsAway reports whether words between two parts of an order ("assign … to") have the second be of something
// else: behind another order, where they end in what itself goes on so ("someone close to", "that I send to", before that
// second part "a link to"), where nothing is done ("make no changes to"), or where a change is proposed there and not
// made ("create a PR to").
func LeadsAway(between, second string) bool {
	if proposal().MatchString(between) || howTo().MatchString(between) {
		return true
	}
	words := wordsOf(between)
	for i, w := range words {
		if i > 0 && (joining[words[i-1]] || against[words[i-1]]) && turnsAway(w) {
			return true
		}
	}
	all := strings.Fields(between)
	if len(all) == 0 {
		return false
	}
	last := bare(all[len(all)-1])
	return withTo[last] || joining[last] || len(words) > 1 && doing[last] || none[bare(all[0])] || goingThere[lower(second)][last]
}

// howTo is how something is done that is only written of: "mention how to push to".
var howTo = text.Pattern(`(?i)(?:^|[ \t])how to[ \t]+\pL+[ \t]*$`)

// proposal is a pull request that is new: of one with a number, or "the PR", something else is said.
var proposal = text.Pattern(`(?i)(?:(?:^|[ \t])(?:an?|another|new|draft|eine?n?|une?|uno|um|een)[ \t]+` + newRequest + `(?:$|[^\pL\pN])|^[ \t]*` + newRequest + `[ \t]*$)`)

const newRequest = `(?:draft[ \t]+)?(?:PR|MR|(?:pull|merge)[ -]request)`

// turnsTo reports whether the second part of an order stands between the end of its first and a name,
// and leads there.
func (p parsedPhrase) turnsTo(s, said string, e, start int, nouns []string) bool {
	for at := e; at < start; at++ {
		if wordAt(said, at) && reachesTo(said[e:at], nouns) && !LeadsAway(said[e:at], "") && p.tail.follow(said, at, func(_ []string, end int) bool {
			return end < start && endsAt(said, end) && leadsTo(s[end:], start-end, nouns)
		}) {
			return true
		}
	}
	return false
}

// leadsTo reports whether what a text says before i leads from an order to a name there.
func leadsTo(s string, i int, nouns []string) bool {
	between, ok := upTo(s, i)
	if !ok {
		return false
	}
	if colons := colon().FindAllStringIndex(between, -1); len(colons) > 0 {
		at := colons[len(colons)-1][0]
		if !announcesList(between[:at], nouns) {
			return false
		}
		if between, ok = itemsOf(between[at+1:]); !ok {
			return false
		}
	}
	if endOf(between) < len(between) {
		return false
	}
	items := inList().Split(between, -1)
	for n, item := range items {
		rest := behindLead(strings.Fields(item), nouns)
		if n == len(items)-1 {
			return len(rest) == 0
		}
		if words := wordsOf(strings.Join(rest, " ")); len(rest) > longestItem || slices.ContainsFunc(words, func(w string) bool {
			return otherwise(w) || relating[w] || telling[w] || being[w] || remarking[w] || takingBack[w] || signing[w]
		}) {
			return false
		}
	}
	return false
}

// announcesList reports whether what stands between an order and a colon says that what
// follows is what the order is of: "the following", "these old entities", and nothing that says of
// what else they are, or which of them.
func announcesList(head string, nouns []string) bool {
	words, others := wordsOf(head), 0
	if len(words) == 0 {
		return strings.TrimSpace(head) == ""
	}
	if last := words[len(words)-1]; strings.ContainsFunc(head, func(r rune) bool { return r == '\n' || isBreak(r) || strings.ContainsRune(brackets, r) }) ||
		!isNoun(last, nouns) && !all[last] && !pointing[last] {
		return false
	}
	for _, w := range words {
		if otherwise(w) || conveying[w] || relating[w] || choosing[w] {
			return false
		}
		if !isNoun(w, nouns) && !all[w] && !pointing[w] && !leadIn[w] && !idle[w] {
			others++
		}
	}
	return others <= mostOthers
}

// itemsOf are the names that a text lists behind a colon, with commas between them: on its line,
// or each on one of its own, all of them marked or none. A list without marks ends at an empty line.
func itemsOf(tail string) (string, bool) {
	line, rest, more := strings.Cut(tail, "\n")
	if !more {
		return tail, true
	}
	if strings.TrimSpace(line) != "" {
		return "", false
	}
	rest = strings.TrimLeft(rest, "\n")
	marked := listMark().FindString(rest) != ""
	var items []string
	for line := range strings.SplitSeq(rest, "\n") {
		mark := listMark().FindString(line)
		if blank := strings.TrimSpace(line) == "" && len(items) > 0; blank && marked {
			continue
		} else if blank || (mark != "") != marked {
			return "", false
		}
		items = append(items, line[len(mark):])
	}
	return strings.Join(items, ", "), true
}

var (
	// colon begins a list where it ends a word, inList stands between the names of one, listMark
	// before a name that has its own line.
	colon    = text.Pattern(`:(?:\s|\x01|$)`)
	inList   = text.Pattern(`(?i)[ \t]*[,;](?:[ \t]+(?:and|und|y|e|et|&))?[ \t]*|[ \t]+(?:and|und|y|e|et|plus|&|\+)[ \t]+`)
	listMark = text.Pattern(`^[ \t]*(?:[-*•]|[0-9]{1,3}[.)])(?:[ \t]+|$)`)
)

// quotedName stands for what is set in quotation marks.
const quotedName = "\x01"

// upTo is a text up to i without what is quoted in it, and without a mark right before i,
// where a quotation begins that is what stands there.
func upTo(s string, i int) (before string, ok bool) {
	var b strings.Builder
	done, open := 0, -1
	quotations(s, i, func(start, end int) {
		if end < 0 {
			open = start
			return
		}
		_, n := utf8.DecodeLastRuneInString(s[:start])
		_, m := utf8.DecodeRuneInString(s[end:])
		b.WriteString(s[done:start-n] + quotedName)
		done = end + m
	})
	if open >= 0 && open != i {
		return "", false
	}
	if open >= 0 {
		_, n := utf8.DecodeLastRuneInString(s[:i])
		i -= n
	}
	return b.String() + s[done:i], true
}

// bare is a word in small letters, without what ends a clause.
func bare(word string) string {
	return strings.TrimFunc(lower(word), func(r rune) bool { return !isAlnum(r) && r != '\x01' })
}

// nextOf is the second of some words, bare.
func nextOf(words []string) string {
	if len(words) < 2 {
		return ""
	}
	return bare(words[1])
}

func isNoun(word string, nouns []string) bool {
	return slices.ContainsFunc(nouns, func(n string) bool {
		return slices.ContainsFunc(strings.FieldsFunc(n, func(r rune) bool { return r == ' ' || r == '.' }), func(n string) bool { return strings.EqualFold(n, word) })
	})
}

// behindLead are the words of a list's item without those that lead to a name.
func behindLead(words, nouns []string) []string {
	noun, every, pair := false, false, false
	for len(words) > 0 {
		w, next := bare(words[0]), nextOf(words)
		switch {
		case isNoun(w, nouns) || all[w]:
			noun, every, pair = true, all[w], relations[w]
		case idle[w] || leadIn[w] && !noun:
		case (w == "that" || w == "this" || w == "those" || w == "these" || w == quotedName) && isNoun(next, nouns) && !noun:
		case noun && (every && leadOn[w] || pair && amid[w] || calling[w] || definite[w] || w == "with" && isNoun(next, nouns)): // "with name Anna", not "with Anna"
		default:
			return words
		}
		words = words[1:]
	}
	return nil
}

// otherwise reports whether a word of an order says that it is of something else, or is none.
func otherwise(w string) bool {
	return negates(w) || excluding[w] || conditions[w] || asking[w] || wondering[w] || reporting[w] || joining[w]
}

var (
	// leadIn are words before a name, leadOn those between a word for all that there is and a name, calling
	// those between another word for such things and one: "the company of Anna" is not she. What
	// is between two is known by both.
	leadIn = wordSet(`the a an my our your both old stale duplicate duplicated outdated obsolete unused wrong temporary test please then also
		der die das den dem mein meine meinen unser unsere unseren beide le la les el los las il lo gli os het un une una uno um uma een`)
	leadOn    = wordSet("of about on called named titled you we i know have remember saved stored noted that is are über von zwischen namens")
	calling   = wordSet("called named titled namens")
	amid      = wordSet("between zwischen")
	relations = wordSet("relation relations relationship relationships link links connection connections edge edges")
	// all are words for all that there is of something.
	all = wordSet("everything all anything alles")
	// pointing are those that stand for what is listed, choosing those that take some of it.
	pointing = wordSet("following these those this them folgende folgendes folgenden diese")
	choosing = wordSet("one either any some first last older oldest newer newest next whichever two three half most other others each opposite exception exceptions")
	// signing are those with which he takes leave.
	signing = wordSet("thanks thx cheers regards best love sincerely yours danke gruß grüße")
	// relating are those that say of a name of what something else is.
	relating = wordSet("of about by from for with between to at in into over under on who which whose über von mit zu zwischen aus bei")
	// behind are words with which a sentence goes on behind a name, courteous those that say
	// nothing of it, reasons those that do so before a clause, placing those before where it is.
	behind    = wordSet("with because there which who weil da")
	courteous = wordSet(`please too also now first again completely entirely altogether here there then immediately thanks thx right away asap anymore up down off bitte auch jetzt sofort neu erneut nochmal`)
	reasons   = wordSet("as since so")
	placing   = wordSet("in on into onto at im ins auf en dans sur nel nella su em op")
	// haveDay are things that are on a day, beforeDay the words before one, months those that are words too.
	haveDay   = wordSet("event events meeting meetings appointment appointments reservation reservations booking bookings termin termine besprechung besprechungen")
	beforeDay = wordSet("on of at from for the this next coming am um vom den der dem nächsten nächster diesen")
	months    = wordSet("may march today heute mai märz jan feb mar apr jun jul aug sep sept oct okt nov dec dez")
	// doing are orders that no lexicon has, withTo words behind which "to" is theirs, owning those of
	// whose a thing is, and stating, beside the nouns of an order, words for what people say of themselves.
	doing = wordSet(`send forward save store keep hide pay charge call ring schedule invite let ask text cc bcc copy say speak talk reply respond answer share
		book reserve sign log go come use make do check run schick sende speichere ruf zahl bezahle lass antworte`)
	withTo = wordSet(`addition based rebased depending relying focused close similar opposed next according due thanks cc related relevant response reply respect regard contrast
		goes go went going belongs reports talks talk speak speaks spoke listens happened happens wrote writes sent did does said says`)
	// none are how it begins where nothing is done, goingThere what goes on with the second part of an order.
	none       = wordSet("no nothing none zero kein keine keinen aucun aucune ningún ninguna nessun nessuna nenhum nenhuma geen")
	goingThere = map[string]map[string]bool{
		"to": wordSet("link links hyperlink hyperlinks symlink symlinks shortcut alias reference references pointer pointers path redirect redirects diff point points"),
		"on": wordSet("section sections part paragraph chapter question word information info details"),
	}
	owning  = wordSet("my our her his their your mein meine unser unsere ihr ihre sein seine mon ma mes mi mis mio mia meu minha mijn")
	stating = wordSet("number zip postcode street age birthday last first full new nummer name vorname nachname adresse")
	// keeping are where people keep what is no page's.
	keeping = wordSet("notes todo todos calendar diary slack mails inbox db database repo repository disk wiki spreadsheet sheet readme memory bank notizen kalender")
	// dismissing are orders that may as well leave a matter.
	dismissing = wordSet("forget vergiss")
	// leavingOpen are, beside those, words of an order that does not say of what it is.
	leavingOpen = wordSet("of it him her somebody someone something person thing eine einen eines von")
	// exchanging begin the orders of what has a copy elsewhere, at one of remotes.
	exchanging = wordSet("push pull publish")
	remotes    = []string{"origin", "upstream", "remote", "github", "gitlab", "server"}
	// putting begin the orders of what is put somewhere.
	putting = sync.OnceValue(func() map[string]bool {
		all := wordSet("set")
		for _, meaning := range []string{"type", "choose", "search"} {
			for _, w := range (Wording{meanings()[meaning]}).ends(true) {
				all[w] = true
			}
		}
		return all
	})
	// using are those before how, and for what, favoured those behind "for" that say nothing of a name.
	using    = wordSet("as for to by via als für")
	favoured = wordSet("me us good ever mich uns immer")
	// leaving are those before what it is taken from, storing those for where all such things are.
	leaving = wordSet("from off of out aus von")
	// and holding for what such things stand in, by a name of its own or without.
	holding = wordSet("table base database bucket namespace")
	storing = wordSet("graph memory db store knowledge notes list lists records system cache index server cluster repository repo account here there everywhere gedächtnis")
)

// Ordered reports whether a stretch of what the user typed is what one of some orders of his
// is of (R9), or with one what one of it is called (OrdersOne): in the turn that gave it, or in an answer of names alone to that turn. No turn since has
// such an order, meant or not, and no act came between it and the latest turn: what is said
// behind an act is of another matter.
func (l *Ledger) Ordered(at Quote, orders, nouns []string, one bool) bool {
	i := l.turnAt(at.Evidence)
	return i >= 0 && l.ordersStand(i, orders) && l.orderedAt(i, span{at.Start, at.End}, &Query{Orders: orders, Words: nouns, One: one})
}

// ordersStand reports whether no act and no other such order came behind a turn, and nothing that
// takes it back.
func (l *Ledger) ordersStand(i int, orders []string) bool {
	return l.turns[i].acts == l.turns[len(l.turns)-1].acts &&
		!slices.ContainsFunc(l.turns[i+1:], func(later turn) bool { return Unsays(later.own.text, orders) })
}

// Unsays reports whether a turn leaves no order of some kind standing that was given before it: it says
// one itself, meant or not, or begins with a denial.
func Unsays(turn string, orders []string) bool {
	orders = slices.DeleteFunc(slices.Clone(orders), func(o string) bool { return parsed(o).asks })
	return Ordering(turn, orders) || retracts(turn) || isDeferral(turn) && slices.ContainsFunc(orders, func(o string) bool { return timeless()[lower(strings.Fields(o + " x")[0])] })
}

func (l *Ledger) orderedAt(i int, at span, q *Query) bool {
	t := &l.turns[i]
	if q.isOne {
		return OrdersOne(t.own.text, at.start, at.end)
	}
	if OrderOf(t.own.text, q.Orders, q.words(), at.start, at.end) || q.One && OrdersOne(t.own.text, at.start, at.end) {
		return true
	}
	if i == 0 || l.turns[i-1].acts != t.acts || !AnswerOf(t.own.text, q.words(), at.start, at.end) {
		return false
	}
	return OrderOfNone(l.turns[i-1].own.text, q.Orders, q.words())
}

package provenance

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
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
		stands, p := ends && leadsTo(s[e:], start-e, nouns), parsed(phrase)
		if p.asks {
			is = plainName().MatchString(s[start:end]) && !SecretAt(s, start, end, nil) && reachesTo(strings.TrimSuffix(strings.TrimRight(said[e:start], " "), " of")+" ", nouns) && isAsked(s, said, i) && !p.elsewhere(s, said, e, nouns)
			return !is
		} else if p.reaches {
			stands = ends && reachesTo(said[e:start], nouns)
		} else if len(p.tail) > 0 {
			stands = ends && p.turnsTo(s, said, e, start, nouns)
		} else if isTelling(order) {
			stands = tellsOf(s[e:start])
		} else if dismissing[lower(order)] && articled().MatchString(s[e:start]) {
			stands = stands && endsTurn(s[end:], nouns)
		}
		is = stands && !p.elsewhere(s, said, e, nouns) && !listedAs(said[:i]) && fitsPlace(said[:i], onPage || isPutting(order) || p.reaches) && (!p.there || onSite(s, i, end)) && meant(said, i, e) &&
			(ofDay(nouns) || !defersSettled(strings.Fields(order)[0]+" it", s[end:min(len(s), end+longestRest)]))
		return !is
	})
	return is
}

// articled is nothing, or an article.
var articled = text.Pattern(`(?i)^[ \t]*(?:(?:the|my|our|your|this|that|these|those|an?|den|die|das|dem|mein(?:e|en)?)[ \t]+)?$`)

// elsewhere reports whether an order that reaches further, and ends at e, has all sites that its turn names behind
// it, where it does not reach: "set a reminder for Elm Street, and open shop.example".
func (p parsedPhrase) elsewhere(s, said string, e int, nouns []string) (is bool) {
	if !p.reaches && !slices.Contains(p.tail.ends(false), "for") || len(Hosts(s[max(0, e-longestReached):e])) > 0 {
		return false
	}
	behind := s[e:min(len(s), e+longestReached)]
	for _, at := range anyWordIn().FindAllStringIndex(behind, -1) {
		if len(Hosts(behind[at[0]:at[1]])) == 0 {
			continue
		}
		if reachesTo(said[e:e+at[0]], nouns) {
			return false
		}
		is = true
	}
	return is
}

// longestReached is how far from an order a site is looked for, in bytes.
const longestReached = 1 << 10

var anyWordIn = text.Pattern(`\S+`)

// isAsked reports whether a question that begins at i opens its sentence, in nobody's mouth, and that names a site:
// "is there sencha on tea.example?" has what it asks about looked up there.
func isAsked(s, said string, i int) bool {
	from := sentenceOf(said[:i])
	sentence := s[from : i+endOf(s[i:])]
	return !quoted(said, i) && !endsQuotation(said[:i]) && !listedAs(said[:i]) && len(unled(wordsOf(unplaced(said[from:i])))) == 0 && namesSite(sentence) && !hasAny(wordsOf(sentence), ofGiving)
}

// namesSite reports whether a text names a host that is no file, and onSite whether what stands around its bytes
// [start, end) is of a page in any way.
func namesSite(s string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(s, blank), func(w string) bool { return len(Hosts(w)) > 0 && !isFile(w) })
}

func onSite(s string, start, end int) bool {
	near := s[max(0, start-longestOrder):min(len(s), end+longestOrder)]
	return hasAny(wordsOf(near), sites) || namesSite(near)
}

var (
	sites = wordSet("site website page webpage form shop store portal browser tab seite webseite formular page formulaire página formulario sito pagina modulo formulário pagina formulier")
	// ofGiving are words of a question that asks what becomes of what is given away, or that is answered by what is no site's.
	ofGiving = wordSet(`safe secure wise dangerous risky leaked stored exposed public put type typed enter give send share upload submit
		notes mail mails email emails file files inbox`)
)

// orderOfIt reports whether an order behind the bytes [start, end) of a text is of "it", and nothing else that is
// named up to it can be that: "old/spike is merged, delete it".
func orderOfIt(s, said string, orders, nouns []string, start, end int, onPage bool) (is bool) {
	before := s[sentenceOf(s[:start]):start]
	eachOrder(said, end, min(len(said), end+longestTopic), orders, func(phrase, order string, i, e int) bool {
		p := parsed(phrase)
		it := itself().FindStringSubmatchIndex(said[e:])
		if it == nil && endsClause(said[e:]) {
			it = []int{0, 0, 0, 0} // "go ahead and merge"
		}
		if it == nil || !standsForIt(said[e+it[2]:], nouns) || p.reaches || p.asks || p.tells || len(p.tail) > 0 || dismissing[lower(order)] || order == "drop" || !isTopic(before, s[start:end], s[end:i], said[e+it[2]:e+it[3]], nouns) {
			return true
		}
		is = endsName(s, nouns, e+it[2], e+it[3], false, p.puts) && !listedAs(said[:i]) && fitsPlace(said[:i], onPage || isPutting(order)) && meant(said, i, e) &&
			(ofDay(nouns) || !defersSettled(order+" it", s[e+it[3]:min(len(s), e+longestRest)]))
		return !is
	})
	return is
}

// OrdersIt reports whether one of some words that say what is ordered of a number stands behind the one that
// begins at a place of a text, and is of "it": "PR 50 in acme/parser looks good, merge it".
func OrdersIt(text string, start int, words []string) bool {
	from := strings.LastIndexAny(text[:start], " \t\n") + 1
	end := valueEnd(text, start)
	if number := text[from:end]; !SayOrders(words) || !startsDigit(strings.TrimLeft(number, "#")) && !withPlace().MatchString(number) || !Ordering(text[end:min(len(text), end+longestTopic)], words) {
		return false
	}
	s := plainly(text, start, end)
	if place := placedBehind().FindString(s[end:]); place != "" {
		s = s[:end] + strings.Repeat(" ", len(place)) + s[end+len(place):]
	}
	return orderOfIt(s, s, words, countable, from, end, false)
}

// countable are words for what has a number.
var countable = []string{"pr", "prs", "mr", "pull", "merge", "request", "issue", "ticket", "number"}

// standsForIt reports whether the word that a text begins with stands for one thing: "this" with a word for it alone,
// as what was said is that too, and "her" without one, which is hers.
func standsForIt(rest string, nouns []string) bool {
	words := strings.Fields(rest)
	if len(words) == 0 {
		return true
	}
	noun := len(words) > 1 && isNoun(bare(words[1]), nouns)
	switch bare(words[0]) {
	case "this", "that":
		return noun
	case "her":
		return !noun
	}
	return true
}

// longestTopic bounds how far behind a name an order of "it" may stand, in bytes.
const longestTopic = 160

// itself is what an order is of that says "it".
var itself = text.Pattern(`(?i)^[ \t]+(it|this|that|him|her|es|ihn|sie)(?:$|[^\pL\pN_-])`)

// isTopic reports whether what stands before a name and between it and an order has the sentence be of it, so that
// "it" is that and nothing that was done to it or stands in it: the name is what something is said to be, what is no
// longer needed, or what is to be done with it first.
func isTopic(before, name, between, it string, nouns []string) bool {
	c, _ := utf8.DecodeRuneInString(name)
	last, _ := utf8.DecodeLastRuneInString(before)
	sign := strings.ContainsAny(name, nameSigns) || strings.ContainsRune(quotes, last)
	if !sign && !unicode.IsUpper(c) {
		return false // it can be another word
	}
	person := !sign && it != "him" && it != "her" && it != "ihn" && it != "sie"
	rest := behindSentence(between)
	if strings.ContainsAny(between, "\n?") || endOf(rest) < len(rest) {
		return false // more than one sentence ends there
	}
	words := strings.Fields(strings.TrimRight(before, quotes))
	for n := len(words); n > 0 && (articles[bare(words[n-1])] || owning[bare(words[n-1])] || leadIn[bare(words[n-1])] || isNoun(bare(words[n-1]), nouns)); n-- {
		words = words[:n-1]
	}
	opened := wordsOf(strings.Join(words, " "))
	ahead := strings.Join(opened[requestOf(opened).n:], " ")
	parts := nextPart().Split(strings.TrimLeft(between, quotes), -1)
	said := wordsOf(parts[0])
	if len(said) > 0 && isNoun(said[0], nouns) {
		said = said[1:]
		_, parts[0], _ = strings.Cut(strings.TrimSpace(parts[0]), " ")
	}
	if !(hedged().MatchString(ahead) && saysWhat(parts[0], nouns) && (!person || hasAny(said, useless))) && !(needless().MatchString(ahead) && (len(said) == 0 || noMore().MatchString(strings.Join(said, " ")))) &&
		!(handled().MatchString(ahead) && len(said) == 0) {
		return false
	}
	return !slices.ContainsFunc(parts[1:], func(part string) bool {
		words := wordsOf(part)
		return requestOf(words).n < len(words) && !saysWhat(part, nouns)
	})
}

// saysWhat reports whether words say no more than what the name before them is: nothing that stands in it or to which it is related.
func saysWhat(part string, nouns []string) bool {
	part = settledWays().ReplaceAllString(part, " so")
	words := strings.Fields(part)
	if !becoming().MatchString(part) {
		return false
	}
	for i, w := range words {
		if b := bare(w); relating[b] || relatingMore[b] || dating[b] || telling[b] || (i == 0 || !equating[bare(words[i-1])]) && namesThing(w, nouns) || unicode.IsUpper(firstRune(w)) {
			return false
		}
	}
	return len(words) <= longestPredicate
}

// namesThing reports whether a word may begin or be another thing that is named.
func namesThing(w string, nouns []string) bool {
	b := bare(w)
	return articles[b] && b != "any" || owning[b] || isNoun(b, nouns) || strings.ContainsAny(strings.Trim(w, stops+brackets), nameSigns+quotes) && !strings.ContainsAny(w, "'’")
}

// equating are words behind which stands what a thing is.
var equating = wordSet("is was are were looks seems")

// relatingMore are those beside relating that have of a thing what something else is.
var relatingMore = wordSet("than like without against what that because until before after better newer next kept where soon almost nearly partly being")

const longestPredicate = 8

// useless say of what may as well be a person that it is a thing to be cleaned up: "Anna is angry, delete it" is of what made her so.
var useless = wordSet("old stale duplicate duplicated outdated obsolete unused unneeded needed wrong incorrect temporary test mistake typo redundant superfluous merged")

var (
	// nextPart is where another part of a sentence begins, or the next one.
	nextPart = text.Pattern(`(?i)[,;.!–—]+(?:[ \t]+|$)|[ \t]+-+[ \t]+|[ \t]+(?:(?:and|so|then|und|et|y|e|en)(?:[ \t]+|$))`)
	// hedged opens a sentence of a thing; needless and handled do so before what is not needed, or done with first.
	hedged   = text.Pattern(`^(?:(?:looks like|seems|seems like|i think|i guess|i believe|since|as|because|now that|apparently|yes|no|we see)(?: |$))*$`)
	needless = text.Pattern(`^(?:i think )?(?:we|i|you|wir|ich)(?: really)? (?:don't|dont|do not|no longer|never) (?:need|want|use)$|^(?:wir brauchen|ich brauche)$`)
	noMore   = text.Pattern(`^(?:any more|anymore|any longer|nicht mehr|now|here)$`)
	handled  = text.Pattern(`^(?:(?:have|take) a look at|look at|look into|check|check out|open|see|review|merge|back up|push|close|rebase|test|approve|archive)$`)
	// becoming begins what a thing is, settledWays are said of it with a word that relates.
	becoming    = text.Pattern(`(?i)^[ \t]*(?:(?:is|was|are|were|isn['’]t|wasn['’]t|looks|seems|has been|hasn['’]t been|got|ist|war|est|es|está|è|é|foi)[ \t]+\pL|(?:left|quit|works|worked|passes|passed|failed|fails|expired|lgtm|(?:(?:can|should|has to|needs to|must)[ \t]+go|can[ \t]+be[ \t]+\pL+))(?:[ \t]+(?:now|already|again|today))?[ \t]*$)`)
	settledWays = text.Pattern(`(?i)[ \t](?:(?:out )?of date|in use|of use|in the way|to me|to go|ready to (?:be )?(?:merged?|closed?|deleted?))\b`)
)

const nameSigns = "/_#@\\-.0123456789"

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
// else: behind another order, where they end in what itself goes on so ("someone close to", "that I send to"), or
// where a change is proposed there and not made ("create a PR to").
func LeadsAway(between string) bool {
	if proposal().MatchString(between) {
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
	return withTo[last] || joining[last] || len(words) > 1 && doing[last]
}

// proposal is a pull request that is new: of one with a number, or "the PR", something else is said.
var proposal = text.Pattern(`(?i)(?:(?:^|[ \t])(?:an?|another|new|draft|eine?n?|une?|uno|um|een)[ \t]+` + newRequest + `(?:$|[^\pL\pN])|^[ \t]*` + newRequest + `[ \t]*$)`)

const newRequest = `(?:draft[ \t]+)?(?:PR|MR|(?:pull|merge)[ -]request)`

// turnsTo reports whether the second part of an order stands between the end of its first and a name,
// and leads there.
func (p parsedPhrase) turnsTo(s, said string, e, start int, nouns []string) bool {
	for at := e; at < start; at++ {
		if wordAt(said, at) && reachesTo(said[e:at], nouns) && !LeadsAway(said[e:at]) && p.tail.follow(said, at, func(_ []string, end int) bool {
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

// endsName reports whether a name ends where the bytes [start, end) of a text do, and the
// text does not say that it is a part of something, unless it may be. What an order puts somewhere
// may be put anywhere.
func endsName(s string, nouns []string, start, end int, part, puts bool) bool {
	open, _ := utf8.DecodeLastRuneInString(s[:start])
	rest := s[end:]
	if next, n := utf8.DecodeRuneInString(rest); closers[open] != "" {
		if !strings.ContainsRune(closers[open], next) {
			return false
		}
		rest = rest[n:]
	}
	next, _ := utf8.DecodeRuneInString(rest)
	joined := next != utf8.RuneError && next != '\n' && strings.ContainsRune("-&+/"+brackets, next) && !strings.ContainsRune(")]}>", next)
	rest = strings.TrimLeft(rest, " \t")
	if rest == "" || joined { // "Anna-Maria"
		return rest == ""
	}
	sentence := rest[:endOf(rest)]
	if first, _ := utf8.DecodeRuneInString(rest); first == '(' {
		in, _, _ := strings.Cut(rest[1:], ")")
		if c, _ := utf8.DecodeRuneInString(strings.TrimLeft(in, " \t")); strings.ContainsFunc(in, isAlnum) && !unicode.IsLower(c) && (puts || c != '/' || !isPlace(strings.Fields(in))) {
			return false // "Anna (Kern)", and not "Anna (/srv/graph)"
		}
		sentence = inBrackets().ReplaceAllString(sentence, " ")
	}
	return goesOnBehind(strings.Fields(sentence), nouns, part, puts)
}

// goesOnBehind reports whether a sentence may go on so behind a name: with a word for such
// things, with courtesy, with other names and orders, with where, why and when, and with from
// what such things are taken, which is nothing that has a name or a kind of its own. What is put
// somewhere is put anywhere.
func goesOnBehind(words, nouns []string, part, puts bool) bool {
	noun, more := true, false // a word for it may follow, other names did
	for i, w := range words {
		bareWord, next, rest := bare(w), nextOf(words[i:]), words[i+1:]
		switch {
		case !more && !puts && dayOf(words[i:], nouns):
			return true
		case placing[bareWord] && !more && !puts:
			return inPlace(words[i:], nouns)
		case bareWord == "to" && !more && !puts: // "push main to origin"
			return toNoun(rest, nouns)
		case leaving[bareWord] && (bareWord != "off" || len(rest) > 0): // "tick Anna off"
			return part && bareWord == "from" || ofStore(rest, nouns)
		case bareWord == "then" || bareWord == "dann":
			return true
		case more || bareWord == "" || joining[bareWord]:
			more = more || joining[bareWord] || strings.ContainsAny(w, "&+") || puts && w == "/"
		case noun && relations[bareWord] && amid[next] && isNoun(bareWord, nouns):
			return true // "the relation between"
		case noun && isNoun(bareWord, nouns):
			noun = false
		case courteous[bareWord] || idle[bareWord] || puts && linksIn().MatchString(w):
		case puts && (placing[bareWord] || using[bareWord]):
			return !(placing[bareWord] && dating[next]) && !storedElsewhere(rest) // where, not when
		case reasons[bareWord]:
			return gives(words[i:])
		default:
			return behind[bareWord] || (bareWord == "for" || bareWord == "für") && favoured[next]
		}
		more = more || strings.ContainsFunc(w, func(r rune) bool { return isBreak(r) && r != ':' })
	}
	return true
}

// storedElsewhere reports whether words say that something is put where no page is: into a file, "my notes". On
// a site that they name these are its own.
func storedElsewhere(words []string) bool {
	for len(words) > 1 && (articles[bare(words[0])] || owning[bare(words[0])]) {
		words = words[1:]
	}
	return len(words) > 0 && (keeping[bare(words[0])] || isFile(words[0])) && !slices.ContainsFunc(words, func(w string) bool { return len(Hosts(w)) > 0 && !isFile(w) })
}

// dayOf reports whether words say on which day the thing is that was named, where the nouns are
// of things that have one, and go on as a sentence does: "on May 15", "of 2024-05-15 at 10:00",
// "tomorrow". Of any other thing they say when it is to be done.
func dayOf(words, nouns []string) bool {
	if !ofDay(nouns) {
		return false
	}
	days := 0
	for i, w := range words {
		word := bare(w)
		c, _ := utf8.DecodeRuneInString(word)
		switch day := dating[word] || months[word] || unicode.IsDigit(c); {
		case day:
			if days++; strings.ContainsFunc(w[len(w)-1:], isBreak) {
				return true
			}
		case !beforeDay[word]:
			return days > 0 && endsPlace(words[i-1:])
		}
	}
	return days > 0
}

// ofDay reports whether nouns are of things that have a day.
func ofDay(nouns []string) bool {
	return slices.ContainsFunc(nouns, func(n string) bool { return haveDay[lower(n)] })
}

// inPlace reports whether words, behind the first, say where something is, and not when: "on friday".
func inPlace(words, nouns []string) bool {
	return !defers(words, true) && (ofStore(words[1:], nouns) || isPlace(words[1:]))
}

// isPlace reports whether words are one in small letters or a path, "in staging", and go on as a
// sentence does: "in the first row" is where something else is, and so is a file or a page.
func isPlace(words []string) bool {
	if len(words) == 0 {
		return false
	}
	c, _ := utf8.DecodeRuneInString(words[0])
	return !isFile(words[0]) && len(Hosts(words[0])) == 0 && (unicode.IsLower(c) || c == '/') && !articles[bare(words[0])] && endsPlace(words)
}

// endsPlace reports whether the first of some words is all that is said of a place.
func endsPlace(words []string) bool {
	if last, _ := utf8.DecodeLastRuneInString(words[0]); len(words) == 1 || isBreak(last) {
		return true
	}
	next := bare(words[1])
	if next == "" && len(words) == 2 {
		return true // "!!"
	}
	if next == "first" {
		return endsPlace(words[1:])
	}
	if len(words) > 2 && reasons[next] && gives(words[1:]) || idle[next] && endsPlace(words[1:]) {
		return true
	}
	return joining[next] || courteous[next] || behind[next] || placing[next] && len(words) > 2 && words[2][0] == '/' && endsPlace(words[2:]) || rootedIn().MatchString(words[1]) && endsPlace(words[1:])
}

// hearsay are words by which "so" begins whose words were said: "so they say".
var hearsay = wordSet("say says said told tells hear heard think thinks guess believe")

// gives reports whether words begin a reason, of somebody's doing or, behind one that says nothing else, of a thing.
func gives(words []string) bool {
	reason, next := bare(words[0]), nextOf(words)
	return (telling[next] || reason != "as" && ours[next]) && !(reason == "so" && hasAny(wordsOf(strings.Join(words, " ")), hearsay))
}

// rootedIn is a directory from the root, in brackets.
var rootedIn = text.Pattern(`^\(/[^\s()]+\)[.,;!?…]*$`)

// ofStore reports whether words say no more than where all such things are, "your memory" or
// "the entities", and go on as a sentence does.
func ofStore(words, nouns []string) bool {
	for i, w := range words {
		switch word := bare(w); {
		case holding[word]:
			return true
		case storing[word] || isNoun(word, nouns):
			return endsPlace(words[i:])
		case !definite[word] && !idle[word] && word != "your":
			return false
		}
	}
	return false
}

// toNoun reports whether words say no more than a word for such things, and go on as a sentence does.
func toNoun(words, nouns []string) bool {
	for len(words) > 1 && definite[bare(words[0])] {
		words = words[1:]
	}
	return len(words) > 0 && isNoun(bare(words[0]), nouns) && endsPlace(words)
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
	withTo = wordSet(`addition close similar opposed next according due thanks cc related relevant response reply respect regard contrast
		goes go went going belongs reports talks talk speak speaks spoke listens happened happens wrote writes sent did does said says`)
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
// is of (R9): in the turn that gave it, or in an answer of names alone to that turn. No turn since has
// such an order, meant or not, and no act came between it and the latest turn: what is said
// behind an act is of another matter.
func (l *Ledger) Ordered(at Quote, orders, nouns []string) bool {
	i := l.turnAt(at.Evidence)
	return i >= 0 && l.ordersStand(i, orders) && l.orderedAt(i, span{at.Start, at.End}, &Query{Orders: orders, Words: nouns})
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
	if OrderOf(t.own.text, q.Orders, q.words(), at.start, at.end) {
		return true
	}
	if i == 0 || l.turns[i-1].acts != t.acts || !AnswerOf(t.own.text, q.words(), at.start, at.end) {
		return false
	}
	return OrderOfNone(l.turns[i-1].own.text, q.Orders, q.words())
}

// # Commands that are ordered (R6)
//
// A command is made of words that users say: "make the tests pass", "fix the typo in
// ./deploy.sh", "what does `git push --force` do?". That they are typed orders nothing.
// It is ordered where the message is the command and nothing else, or where somebody is
// told to run it: a verb of running, nothing behind it but what leads to the command, and
// the command in quotation marks or backticks, on a line of its own, or as the rest of
// the verb's line. The verb must be meant, as a phrase must (Means).

// Orders reports whether what stands around a command, which is the bytes [start, end)
// of a text, says that it is to be run.
func Orders(text string, start, end int) bool {
	outer := span{start, end}
	before, n := utf8.DecodeLastRuneInString(text[:start])
	after, m := utf8.DecodeRuneInString(text[end:])
	marked := m > 0 && strings.ContainsRune(closers[before], after)
	if marked {
		outer = span{start - n, end + m}
	}
	rest := text[outer.end:]
	if strings.TrimSpace(text[:outer.start])+strings.TrimSpace(rest) == "" {
		return true
	}
	said := withoutCommands(text, start, end)
	from := strings.LastIndexByte(said[:max(0, outer.start-longestLead)], '\n') + 1
	at := running().FindStringSubmatchIndex(said[from:outer.start])
	if at == nil {
		return false
	}
	verb, leads := span{from + at[2], from + at[3]}, said[from+at[3]:outer.start]
	line, below, _ := strings.Cut(rest, "\n")
	below, _, _ = strings.Cut(below, "\n")
	ends := strings.TrimSpace(line) == ""
	last := strings.LastIndexByte(leads, '\n')
	ownLine := ends && last >= 0 && strings.TrimSpace(leads[last:]) == ""
	restOfLine := ends && strings.TrimSpace(leads) == "" && last < 0 && strings.TrimSpace(below) == "" && at[4] >= 0
	if !marked && !ownLine && !restOfLine {
		return false
	}
	sentence := said[sentenceOf(said[:verb.start]):verb.start]
	if words := wordsOf(sentence); strings.Contains(sentence, ":") || len(words) > 0 && articles[words[len(words)-1]] {
		return false // "in the docs: run x", "the run x"
	}
	clause := line
	if i := strings.IndexFunc(line, isBreak); i >= 0 {
		clause = line[:i]
	}
	if words := wordsOf(clause); len(words) > 0 && !goesOn[words[0]] || slices.ContainsFunc(words[:min(2, len(words))], negates) {
		return false // "run x is what it says", "start x hangs", "führe x nicht aus"
	}
	if hasAny(wordsOf(sentence), putOff) {
		return false // "after the release, run x"
	}
	return !headed(said[:verb.start]) && fitsPlace(said[:verb.start], false) && Means(said, verb.start, verb.end)
}

// goesOn are the words by which a sentence goes on behind a command it orders.
var goesOn = wordSet(`please and then for again now first next once here in inside from to so with on aus bitte und dann im für mit jetzt`)

// putOff are the words that leave an order for later, or to somebody's leave.
var putOff = wordSet(`after before pending until upon following once nach vor bis sobald`)

// headed reports whether what stands above the line that a text ends in may say what the
// line is: a list of steps, what somebody wrote, what is forbidden.
func headed(text string) bool {
	above := text[:strings.LastIndexByte(text, '\n')+1]
	lead := running().MatchString(above) // "run these:"
	for l := range strings.Lines(above) {
		l = strings.TrimSpace(l)
		if strings.HasSuffix(l, ":") && !lead || strings.Contains(l, "?") ||
			slices.ContainsFunc(wordsOf(l), negates) {
			return true
		}
	}
	return false
}

// withoutCommands blots out the command and what stands in backticks and double quotation
// marks: what is said there is nothing that the user says of them.
func withoutCommands(text string, start, end int) string {
	out := []byte(text)
	blot := func(from, to int) {
		for i := from; i < to; i++ {
			out[i] = 'x'
		}
	}
	blot(start, end)
	for _, at := range setOff().FindAllIndex(out, -1) {
		blot(at[0]+1, at[1]-1)
	}
	return string(out)
}

// setOff is what stands in marks with which nothing else is written.
var setOff = text.Pattern("`[^`\n]+`|\"[^\"\n]+\"")

// longestLead is how far before a command the verb may stand, in bytes.
const longestLead = 512

// running is a verb of running, with all that may lead from it to a command: other
// commands, and words that name none. The verbs that say nothing else are a group of
// their own.
var running = text.Pattern(`(?i)(?:^|[^\pL\pN_-])((run|rerun|re-run|execute)|invoke|launch|start|führe|führ|starte)` +
	"(?:[\\s,:]+(?:`x+`|\"x+\"|[-*•]|[0-9]{1,2}[.)]|the|this|these|following|commands?|and|then|also|again|first|next|now|just|please|once|" +
	`und|dann|danach|bitte|den|die|das|diesen|diese|folgenden?|befehle?|erst|zuerst|mal))*[\s:]+$`)

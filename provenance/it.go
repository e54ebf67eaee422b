package provenance

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
)

// # Orders of "it" (R9)
//
// People name a thing and then say what is to become of it: "old/spike is merged, delete it". That
// is an order of the name where the sentence is of it and nothing else that "it" could be.

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
	handled  = text.Pattern(`^(?:(?:have|take) a look at|look at|look into|check|check out|open|see|review|merge|back up|push|close|rebase|test|approve|archive)$|^(?:i|we)(?:['’]ve| have)?(?: just| already)? (?:reviewed|checked|approved|tested|read|looked at|seen)$`)
	// becoming begins what a thing is, settledWays are said of it with a word that relates.
	becoming    = text.Pattern(`(?i)^[ \t]*(?:(?:is|was|are|were|isn['’]t|wasn['’]t|looks|seems|has been|hasn['’]t been|got|ist|war|est|es|está|è|é|foi)[ \t]+\pL|(?:left|quit|works|worked|passes|passed|failed|fails|expired|lgtm|(?:(?:can|should|has to|needs to|must)[ \t]+go|can[ \t]+be[ \t]+\pL+))(?:[ \t]+(?:now|already|again|today))?[ \t]*$)`)
	settledWays = text.Pattern(`(?i)[ \t](?:(?:out )?of date|in use|of use|in the way|to me|to go|ready to (?:be )?(?:merged?|closed?|deleted?))\b`)
)

const nameSigns = "/_#@\\-.0123456789"

package provenance

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
)

// # Phrases that are meant (R21, R9)
//
// A phrase is said where its words follow one another, with nothing between them but what
// leaves them as they are: "lock the doors" is said by "lock all of my doors", and by
// "locking the doors" where a request is made so ("would you mind …").
//
// It is meant where it opens its clause, bare or behind a request; or, of one that is no
// verb's, behind an article in a clause that is a request; in a sentence that asks
// nothing, denies nothing and sets no condition, and that no word behind it takes back.
// What it says of anybody else is not asked of us. What the user says he wants or needs
// is a request too, where he neither doubts it, puts it off nor asks about it. A state is
// asked for where it is to be ensured.

// Said reports whether the user's latest turn, or one behind it that only agrees, says a
// phrase in his own words, in any letters' case, and means it (R21). Of one that ends in a
// full stop it is what Chosen reports: "push." is no "push the meeting to Friday".
func (l *Ledger) Said(phrase string) bool {
	if phrase, whole := strings.CutSuffix(phrase, "."); whole {
		return l.Chosen(phrase, Aim{})
	}
	_, said := l.order(phrase, Means)
	return said
}

// Chosen reports the same of a phrase that Wholly is, and that orders what a call is done to.
func (l *Ledger) Chosen(phrase string, of Aim) bool {
	if _, said := l.order(phrase, of.Wholly); said || len(of.Numbers) == 0 {
		return said
	}
	_, said := l.orderIn(of.Without, phrase, of.Within) // in its midst
	return said
}

// order returns where he does.
func (l *Ledger) order(phrase string, means func(text string, start, end int) bool) (Quote, bool) {
	return l.orderIn(nil, phrase, means)
}

// orderIn returns the same of what is made of his words, which is as long, where the phrase stands on what is not his.
func (l *Ledger) orderIn(made func(own string) string, phrase string, means func(text string, start, end int) bool) (Quote, bool) {
	if len(l.turns) == 0 {
		return Quote{}, false
	}
	p := parsed(phrase)
	last := &l.turns[len(l.turns)-1]
	for i := -1; i < len(l.agreed); i++ {
		t := last
		if i >= 0 {
			t = &l.agreed[i]
		}
		if t.Evidence < last.Evidence {
			continue
		}
		text, says := t.own.text, means
		if made != nil {
			text = made(text)
			says = func(text string, start, end int) bool {
				return text[start:end] != t.own.text[start:end] && means(text, start, end)
			}
		}
		if start, end := t.own.means(text, &p, says); end > start {
			return Quote{t.Evidence, start, end}, true
		}
	}
	return Quote{}, false
}

// means returns where a turn, by its text or one of the same length, says a phrase and means it, twice the same for nowhere.
func (own *reading) means(text string, phrase *parsedPhrase, means func(text string, start, end int) bool) (start, end int) {
	begins := own.begins()
	for i, left := 0, mostSaid; left > 0 && i < len(text); i++ {
		if begins[i] && phrase.mayBegin(text[i:]) && phrase.words.follow(text, i, func(_ []string, e int) bool {
			if !own.end[e] && !shouted(text[e:]) {
				return false
			}
			left--
			end = e
			return means(text, i, e)
		}) {
			return i, end
		}
	}
	return 0, 0
}

// shouted reports whether a text begins with several stops that end a word: "push it!!".
func shouted(rest string) bool {
	behind := strings.TrimLeft(rest, ".!?…")
	next, _ := utf8.DecodeRuneInString(behind)
	return behind != rest && (behind == "" || blank(next))
}

// Wholly reports whether a phrase is meant and is all that is ordered: it says what to do,
// behind no article ("explain the force push"), and nothing behind it makes it one of
// something else ("close call", "add it to the last commit message"). One of a single word ends its clause
// or goes on with a number.
func Wholly(text string, start, end int) bool {
	text = plainly(text, start, end)
	before := strings.TrimRight(text[:start], " \t")
	if last := before[strings.LastIndexAny(before, " \t\n")+1:]; articles[lower(last)] {
		return false
	}
	rest := strings.TrimLeft(text[end:], quotes)
	return endsOrder(rest, !strings.ContainsAny(text[start:end], " \t-")) && meant(text, start, end) && !(keptElsewhere(rest) && versioned(text, start, end))
}

// keptElsewhere reports whether what stands behind an order of what git keeps says that it comes from or goes to
// what is no repository, branch or server: "get the latest changes from the wiki". A bare name in small
// letters may be a branch's.
func keptElsewhere(rest string) bool {
	words := strings.Fields(rest[:endOf(rest)])
	if len(words) < 2 || !leadingTo[bare(words[0])] {
		return false
	}
	article := false
	for words = words[1:]; len(words) > 1 && (articles[bare(words[0])] || leadIn[bare(words[0])]); words = words[1:] {
		article = true
	}
	name := words[0]
	first, _ := utf8.DecodeRuneInString(name)
	if hosts := Hosts(name); len(hosts) > 0 && !isFile(name) {
		return !strings.Contains(lower(name), "git")
	}
	if strings.ContainsAny(strings.TrimRight(name, stops), "/-_#~0123456789"+quotes) || !article && unicode.IsLower(first) {
		return false
	}
	for _, w := range words[:min(4, len(words))] {
		if repositories[bare(w)] || slices.Contains(remotes, bare(w)) {
			return false
		}
		if strings.ContainsFunc(w[len(w)-1:], isBreak) {
			break
		}
	}
	return true
}

// versioned reports whether an order is of what git keeps here and elsewhere.
func versioned(text string, start, end int) bool {
	return slices.ContainsFunc([]string{"git push", "git pull", "git fetch", "unstash"}, func(meaning string) bool {
		return Wording{meanings()[meaning]}.follow(text, start, func(_ []string, e int) bool { return e == end })
	})
}

// endsOrder reports whether what stands behind a phrase leaves it all that is ordered.
func endsOrder(rest string, single bool) bool {
	rest = strings.TrimLeft(rest, " \t")
	first, _ := utf8.DecodeRuneInString(rest)
	if rest == "" || first == '\n' || first == '(' || isBreak(first) {
		return !single || first != ':'
	}
	word := rest
	if i := strings.IndexAny(rest, " \t\n"); i >= 0 {
		word = rest[:i]
	}
	number := strings.TrimRight(word, stops+quotes+brackets)
	if list := numbers().FindString(listIn(rest)); len(list) > len(number) {
		number = list
	}
	if strings.ContainsAny(number, "#0123456789") && !strings.ContainsAny(number, quotes) {
		behind := strings.TrimLeft(rest[len(number):], " \t") // the one that he means, of something
		if at := ofWhat().FindStringSubmatchIndex(behind); at != nil && numeral().MatchString(number) && (at[2] < 0 || isWhere(behind[at[2]:at[3]])) {
			behind = behind[at[1]:]
		}
		return endsOrder(behind, false) || aside().MatchString(behind)
	}
	return goesWith[bare(word)] || staying().MatchString(rest) || !single && on[bare(word)] && !inDocument().MatchString(rest)
}

// inDocument is where something of another kind is done: "set it as fixed in the sheet".
var inDocument = text.Pattern(`(?i)^(?:in|on|to|into)[ \t]+(?:(?:the|a|an|my|our|this|that)[ \t]+)?(?:new[ \t]+)?(?:spread)?(?:sheet|wiki|excel|editor|tab|jira|confluence)(?:$|[^\pL\pN-])`)

var numeral = text.Pattern(`^` + numberList + `$`)

// aside is what stands behind a dash, or is done too, and no end of a range.
var aside = text.Pattern(`^(?:-{1,2}[ \t]+[^#0-9 \t]|[&+][ \t])`)

// ofWhat is in what such things are that have numbers: "2 of my tabs" is of others.
var ofWhat = text.Pattern(`(?i)^(?:of|von|aus)[ \t]+(?:(` + placeForm + `)|(?:the|this|that|my|our)[ \t]+(?:[\pL\pN_./-]+[ \t]+)?(?:repository|repo|project))`)

// Anew reports the same of a phrase that says that there is to be another of something: "a new
// branch", not "the open PR".
func Anew(text string, start, end int) bool {
	words := wordsOf(text[start:end])
	return hasAny(words, indefinite) &&
		!slices.ContainsFunc(words, func(w string) bool { return definite[w] && !indefinite[w] }) && Wholly(text, start, end)
}

var (
	indefinite = wordSet(`a an new another separate ein eine einen einem einer neue neuen neuer
		une un una uno um uma een nouveau nouvelle nuevo nueva nuovo nuova novo nova nieuw nieuwe`)
	// goesWith are the words with which a sentence goes on behind all that is ordered, on those
	// that say of it where, for what and how.
	goesWith = wordSet(`please pls plz thx now then too also again and today asap immediately anyway thanks und bitte dann auch jetzt maintenant merci stp svp s'il et puis ahora gracias por y
		adesso ora grazie per e agora obrigado obrigada nu alsjeblieft alstublieft graag bedankt en`)
	// leadingTo are, of those that follow, the words before a place, repositories words for those that git has.
	leadingTo    = wordSet(`in on from to into auf aus von zu im dans en nel em sur sobre su op com como`)
	repositories = wordSet(`remotes repo repos repository repositories project branch branches main master trunk develop dev staging production prod default fork forks codebase head tag tags
		pr mr pull merge zweig branche rama ramo dépôt serveur servidor remoto stash machine laptop computer rechner side end background bitbucket gitea codeberg`)
	on = wordSet(`for in on from to against with using into at that which called named titled so there here as via off based under by because since before right
		für auf aus von zu mit im am namens avec comme pour dans con como para per come nel com em met voor sur sobre su op`)
)

// next is the size of what a text begins with that leaves a phrase as it is and goes on, 0 of
// anything else.
func (f *filling) next(text string) int {
	if place := placedWithin().FindString(text); place != "" && f.words == 0 && !f.placed {
		f.placed = true // "undo the last commit in /srv/shop but keep the changes"
		return len(place)
	}
	size := strings.IndexAny(text, " \t")
	if size < 0 {
		return 0
	}
	w := lower(text[:size])
	if !f.all || w != "of" {
		f.words++
	}
	if !fills(w, f.all) || f.words > mostBetween {
		return 0
	}
	f.all = w == "all"
	return size
}

// placedWithin is where something is to be done, between two words of a phrase: a directory from
// the root.
var placedWithin = text.Pattern(`^(?:in|at|of)[ \t]+(?:/[\pL\pN$~._#@%&=+-]+)*/[\pL\pN_-]+[ \t]+`)

// fills reports whether a word within a phrase leaves it as it is; all says that "all" stands before.
func fills(w string, all bool) bool { return definite[w] || idle[w] || w == "all" || all && w == "of" }

// markAt is the size of the mark of a quotation that a text begins with, 0 where there is none.
func markAt(text string) int {
	if r, size := utf8.DecodeRuneInString(text); closers[r] != "" {
		return size
	}
	return 0
}

// mostBetween bounds how many words stand between two of a phrase.
const mostBetween = 8

// gerunds are the forms in -ing that a verb may have.
func gerunds(verb string) []string {
	out := []string{verb + "ing"}
	if last := len(verb) - 1; last > 0 && lower(verb[last:]) == "e" {
		out = append(out, verb[:last]+"ing")
	} else if last > 0 && verb[last] < utf8.RuneSelf {
		out = append(out, verb+verb[last:]+"ing")
	}
	return out
}

// isGerund reports whether a word is of such a form.
func isGerund(word string) bool {
	stem, is := strings.CutSuffix(word, "ing")
	return is && strings.ContainsAny(stem, "aeiouy")
}

// lower is a word with its capitals of ASCII made small.
func lower(word string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, word)
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func isNumeral(c byte) bool { return c >= '0' && c <= '9' }

// smallLetter is a letter of ASCII made small.
func smallLetter(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// spells returns how much of a text's begin is a word in any letters' case.
func spells(text, word string) int {
	at := 0
	for _, r := range word {
		if at < len(text) && text[at] < utf8.RuneSelf && r < utf8.RuneSelf { // most words differ in the first letter
			if smallLetter(text[at]) != smallLetter(byte(r)) {
				return 0
			}
			at++
			continue
		}
		c, n := utf8.DecodeRuneInString(text[at:])
		if n == 0 || !strings.EqualFold(string(c), string(r)) {
			return 0
		}
		at += n
	}
	return at
}

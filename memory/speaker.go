package memory

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
)

// saysOf reports whether a sentence says a value that stands in it at an offset of what is asked
// for: it does not stand in a clause with a subject of its own. Of who speaks each word that is
// asked for must name what is his, or what he is, does or has: somebody who tells of a project
// says I too.
func saysOf(s string, at int, value string, a asking, himself bool) bool {
	toks := tokens(s[:at], false, 0)
	v := span{from: len(toks)}
	for _, t := range tokens(value, endsInNumber(s[:at]), v.from) {
		t.value, t.person, t.name, t.ends = true, none, false, false
		toks = append(toks, t)
	}
	v.to = len(toks)
	toks = append(toks, tokens(s[at+len(value):], endsInNumber(value), v.to)...)
	if r, _ := utf8.DecodeRuneInString(s[at+len(value):]); v.to > 0 && strings.ContainsRune(ending, r) {
		toks[v.to-1].ends = true
	}
	names := v.from
	for names > 0 && toks[names-1].name && !toks[names-1].ends {
		names--
	}
	if names > 0 && !toks[names-1].is("stop") { // Prof. Emil Nagy, Rm 292
		for i := names; i < v.from; i++ {
			toks[i].value, toks[i].name = true, false
		}
	}
	u := &utterance{toks, a}
	runs := u.runs()
	if !himself {
		return len(runs) == 0 || slices.ContainsFunc(runs, func(r span) bool { return !u.apart(r, v) })
	}
	own := slices.DeleteFunc(runs, func(r span) bool { return !u.possessed(r, v) && !u.said(r) || u.apart(r, v) })
	return len(own) > 0 && !slices.ContainsFunc(but("stop", a.must), func(w string) bool {
		return !slices.ContainsFunc(own, func(r span) bool {
			if u.possessed(r, v) {
				r = u.clause(r) // my rent is paid to
			}
			return slices.ContainsFunc(toks[r.from:r.to], func(t spoken) bool { return matches(t.words, w) })
		})
	})
}

// An utterance is a sentence of somebody, and what is asked of him.
type utterance struct {
	toks []spoken
	a    asking
}

// runs are where words that are asked for stand, those beside each other as one.
func (u *utterance) runs() (out []span) {
	for i, t := range u.toks {
		switch last := len(out) - 1; {
		case t.value || !matches(t.words, u.a.words...):
		case last >= 0 && out[last].to == i && !u.toks[i-1].ends:
			out[last].to++
		default:
			out = append(out, span{i, i + 1})
		}
	}
	return out
}

// clause is the stretch between commas that a run stands in.
func (u *utterance) clause(r span) span {
	for r.from > 0 && !u.toks[r.from-1].ends {
		r.from--
	}
	for r.to < len(u.toks) && !u.toks[r.to-1].ends {
		r.to++
	}
	return r
}

// possessed reports whether a run is what the speaker says is his, and nothing between it and a
// value says that it does something else than be or have it: my account paid DE99.
func (u *utterance) possessed(r, v span) bool {
	if between := u.toks[r.to:max(r.to, v.from)]; !slices.ContainsFunc(between, func(t spoken) bool { return t.auxiliary() || t.ends || t.is("runs") || t.is("has") }) && slices.ContainsFunc(between, u.content) {
		return false
	}
	for i, t := range u.toks[:r.from] {
		if to := u.phrase(i); t.person == owned && r.meets(span{i + 1, to}) {
			return !u.at(to).is("is") || !u.toldBy(i)
		}
	}
	return false
}

// phrase is where the words end of what somebody possesses, whose possessive stands at
// an index: before what says what it is, or else behind the first of them.
func (u *utterance) phrase(at int) int {
	all := at > 0 && u.toks[at-1].is("is") // this is my new phone
	first, i := 0, at+1
	for ; i < len(u.toks); i++ {
		t := u.toks[i]
		if t.is("is") && i > at+1 {
			return i
		}
		if t.person != none || t.is("stop") {
			break
		}
		if first == 0 && !t.is("quality") {
			first = i + 1
		}
		if t.ends {
			i++
			break
		}
	}
	if !all && first > 0 {
		return first
	}
	return i
}

// said reports whether a run is what the speaker is, does or has.
func (u *utterance) said(r span) bool {
	next, ends := u.at(r.to), u.toks[r.to-1].ends
	if !ends && u.turned(r) {
		return true
	}
	if me := u.at(r.from - 1); me.person == other && !me.ends && (r.from == 1 || u.at(r.from-2).person == first || u.at(r.from-2).ends) {
		return true // me llamo
	}
	i := u.person(r)
	if u.at(i).person != first || u.toldBy(i) {
		return false
	}
	between := u.toks[i+1 : r.from]
	if u.ofThird(i, between) {
		return false
	}
	if !slices.ContainsFunc(between, func(t spoken) bool { return t.is("has") || t.says() }) {
		return true
	}
	if !ends && next.auxiliary() || u.ofAnother(span{i, r.to}) {
		return false
	}
	if n := len(between) - 1; between[n].joins() { // I am vegetarian and live in, I am vegetarian and allergic to
		is := n > 1 && between[0].auxiliary() && !slices.ContainsFunc(between[:n-1], spoken.says) && !between[n-1].is("stop")
		return !ends && (next.is("stop") || next.value) && (u.toks[r.to-1].is("has") || is && next.is("toward"))
	}
	return has(between, u.a)
}

// toldBy reports whether right before who speaks somebody else says something in the same clause:
// Bob confirmed my account is, he sings I live. What ends in an s before an I may be a noun.
func (u *utterance) toldBy(i int) bool {
	from := max(0, i-1)
	for from > 0 && !u.toks[from-1].ends {
		from--
	}
	verb, he := u.at(i-1), pronoun().MatchString(strings.Join(u.at(i-2).words, " "))
	if i-from < 2 || len(verb.words) != 1 || verb.ends || verb.name || verb.auxiliary() || verb.is("intro") || verb.is("adverb") || verb.is("empty") {
		return false
	}
	before := u.toks[from : i-1]
	return (told().MatchString(verb.words[0]) || (he || u.toks[i].person == owned) && tells().MatchString(verb.words[0]) && !times().MatchString(verb.words[0])) &&
		!slices.ContainsFunc(before, func(t spoken) bool { return t.person != none || t.is("stop") }) &&
		(he || slices.ContainsFunc(before, func(t spoken) bool {
			return !t.is("intro") && !t.is("opening") && !t.is("empty") && !t.is("article") && !t.adverb()
		}))
}

var (
	told    = text.Pattern(`ed$`)
	tells   = text.Pattern(`[^s]s$`)
	times   = text.Pattern(`^(?:day|night|morning|evening|weekday|weekend|week|month|year|summer|winter|hour|time)s$`)
	pronoun = text.Pattern(`^(?:he|she|it|they)$`)
)

// ofThird reports whether what is said behind an I is said of whom it stands beside: the man I
// love lives, everybody I am with is.
func (u *utterance) ofThird(i int, between []spoken) bool {
	return u.at(i-2).definite() && !u.at(i-1).ends && !u.at(i-1).is("stop") || slices.ContainsFunc(between, func(t spoken) bool {
		return slices.Contains([]string{"is", "ist", "est", "es", "è", "é"}, t.words[0])
	})
}

// person is the word of who speaks that stands last before a run in its clause, -1 for none.
func (u *utterance) person(r span) int {
	for i := r.from - 1; i >= 0 && !u.toks[i].ends; i-- {
		if u.toks[i].person != none {
			return i
		}
	}
	return -1
}

// turned reports whether who speaks stands behind a run: call me, wohne ich, the city I live in.
func (u *utterance) turned(r span) bool {
	the, i := u.at(r.from-1).definite(), r.to
	if u.at(i).person == other {
		return !the
	}
	for u.at(i).auxiliary() && !u.toks[i].ends {
		i++
	}
	return u.at(i).person == first && (r.from > 0 || slices.Contains([]string{"i", "we"}, u.at(i).words[0])) && !u.named(r) && (!the || u.at(i+1).is("uses"))
}

// has reports whether the words between I and what is asked for say that he has it, and
// nothing else. Somebody who saw, changed or knows the address need not live there.
func has(between []spoken, a asking) bool {
	uses, fresh, thing := false, false, false
	for _, t := range between {
		stops := t.is("stop")
		switch {
		case t.is("opens"), t.joins(), t.name, t.definite() && !uses, stops && thing:
			return false // that, and, Anna, the, a friend with
		case t.value, stops, t.is("indefinite"), t.is("quality"), t.definite(), t.is("has"), t.auxiliary(), t.adverb(), matches(t.words, a.words...):
		case fresh:
			thing = true // a big fan
		default:
			return false
		}
		uses = uses || t.is("uses") || t.is("is")
		fresh = t.is("indefinite") || fresh && !stops
	}
	return true
}

// named reports whether the name of something else stands right before a run.
func (u *utterance) named(r span) bool {
	i := r.from - 1
	for i >= 0 && (u.toks[i].definite() || u.toks[i].is("quality")) && !u.toks[i].ends {
		i--
	}
	return i >= 0 && u.toks[i].name && !u.toks[i].ends && (!u.at(i-1).is("stop") || u.at(i-1).is("of"))
}

// ofAnother reports whether before a stretch, or right behind it, something is named that
// it is of or for.
func (u *utterance) ofAnother(r span) bool {
	of := func(i int) bool {
		for i++; u.at(i).definite(); i++ {
		}
		return u.at(i).name
	}
	for i := range r.from {
		if u.toks[i].is("of") && of(i) {
			return true
		}
	}
	return !u.toks[r.to-1].ends && u.at(r.to).is("of") && of(r.to)
}

// apart reports whether a value stands in a clause that has a subject of its own: I live
// here, the rent is 900.
func (u *utterance) apart(r, v span) bool {
	if v.from >= r.to {
		return u.subject(r, v) || u.another(r, v)
	}
	said := false
	for _, t := range u.toks[min(v.to, r.from):r.from] {
		if said && (t.ends || t.joins()) {
			return true
		}
		said = said || t.verb() && !t.ends
	}
	return false
}

// subject reports whether a value behind a run has a subject and a verb before it in its clause.
func (u *utterance) subject(r, v span) bool {
	bound := -1
	for i := r.to - 1; i < v.from; i++ {
		if t := u.toks[i]; t.ends || t.joins() && !t.is("of") && (u.at(i+1).definite() || slices.ContainsFunc(u.toks[r.to:max(r.to, i)], spoken.verb)) {
			bound = i
		}
	}
	if bound < 0 || bound+2 >= v.from || bound == r.to-1 && u.toks[bound+1].words[0] == "it" { // my phone: it's
		return false
	}
	return slices.ContainsFunc(u.toks[bound+2:v.from], spoken.verb)
}

// another reports whether what is said between a run and a value is said of something else: of
// whom somebody is who (with Bob, who likes), or behind a comma or an and with words of its own
// (my phone is broken, call Bob on), or before what it is itself (DE11, DE99 is Bob's).
func (u *utterance) another(r, v span) bool {
	bound, said := -1, false // of the part of the clause that the value stands in
	for i := r.to - 1; i < v.from; i++ {
		if t := u.toks[i]; t.ends || t.joins() && !t.is("of") {
			bound = i
		}
	}
	for i := max(r.to, bound); i < v.from; i++ {
		if t := u.toks[i]; t.is("opens") && !t.definite() && !t.ends && (u.toks[i-1].name || !u.at(i+1).auxiliary()) &&
			!slices.ContainsFunc(u.toks[min(i+2, v.from):v.from], func(t spoken) bool { return t.is("is") }) { // the city that I like is
			return true
		}
	}
	if bound <= r.to || u.at(bound+1).auxiliary() { // live and work in, my phone, which I got, is
		return false
	}
	for _, t := range u.toks[r.to:bound] {
		said = said || t.auxiliary()
	}
	return said && v.from == bound+1 && u.at(v.to).auxiliary() && !u.toks[v.to-1].ends || slices.ContainsFunc(u.toks[bound+1:v.from], u.content)
}

// content reports whether a word is of who speaks, or says something, and is not of the value, a
// name, or of what is asked for.
func (u *utterance) content(t spoken) bool {
	return t.person != none || !t.value && !t.name && !t.is("stop") && !t.is("article") && !t.is("quality") && !t.auxiliary() && !t.adverb() && !t.is("empty") &&
		!matches(t.words, u.a.words...) && !slices.Contains(turning, t.words[0])
}

// at is the i-th word, none beyond the ends.
func (u *utterance) at(i int) spoken {
	if i < 0 || i >= len(u.toks) {
		return spoken{}
	}
	return u.toks[i]
}

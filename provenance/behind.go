package provenance

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
)

// # What may stand behind what is ordered (R9)
//
// A name ends where its sentence goes on with courtesy, with other names and orders, with where, why
// and when: "delete Anna from the graph", and not "delete Anna Kern".

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
	if puts && strings.ContainsRune(":,;", next) {
		return true // "add it to customers: …"
	}
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
		says, where := false, false
		if !more && !puts {
			says, where = saysWhere(words[i:], nouns)
		}
		switch {
		case where:
			return says
		case leaving[bareWord] && (bareWord != "off" || len(rest) > 0): // "tick Anna off"
			return part && bareWord == "from" || ofStore(rest, nouns)
		case bareWord == "then" || bareWord == "dann":
			return true
		case more || bareWord == "" || joining[bareWord]:
			more = more || joining[bareWord] || strings.ContainsAny(w, "&+") || puts && w == "/"
		case noun && relations[bareWord] && amid[next] && isNoun(bareWord, nouns):
			return true // "the relation between"
		case noun && isNoun(bareWord, nouns):
			if noun = false; puts && strings.HasSuffix(w, ":") {
				return true
			}
		case courteous[bareWord] || idle[bareWord] || puts && linksIn().MatchString(w):
		default:
			return saysMore(words[i:], puts)
		}
		more = more || strings.ContainsFunc(w, func(r rune) bool { return isBreak(r) && r != ':' })
	}
	return true
}

// saysMore reports whether words begin with what else a sentence may say behind a name: how and for whom, why, and of
// what is put somewhere where.
func saysMore(words []string, puts bool) bool {
	switch w, next := bare(words[0]), nextOf(words); {
	case puts && (placing[w] || using[w]):
		return !(placing[w] && dating[next]) && !storedElsewhere(words[1:]) // where, not when
	case reasons[w]:
		return gives(words)
	default:
		return behind[w] || (w == "for" || w == "für") && favoured[next]
	}
}

// saysWhere reports whether words begin with when or where the thing is that was named, and then whether they say no more
// than that.
func saysWhere(words, nouns []string) (says, is bool) {
	switch w := bare(words[0]); {
	case dayOf(words, nouns):
		return true, true
	case placing[w]:
		return inPlace(words, nouns), true
	case w == "to": // "push main to origin"
		return toNoun(words[1:], nouns), true
	}
	return false, false
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

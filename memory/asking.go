package memory

import (
	"slices"
	"strings"
	"unicode"

	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/internal/words"
)

// asking is a question: the words of a predicate, or of one of its registered
// aliases. Those it must have are all but what says of what kind the value is,
// unless there is no other.
type asking struct{ words, must []string }

func (s *State) asked(predicate string) (out []asking) {
	names := []string{predicate}
	if p := s.predicates.get(predicateKey(predicate)); p != nil {
		names = append(names, p.Aliases...)
	}
	for _, n := range names {
		out = append(out, askingOf(n))
	}
	return out
}

func askingOf(name string) (a asking) {
	a.words = but("small", words.Of(strings.Join(text.NameWords(name), " ")))
	a.must = but("kind", a.words)
	return a
}

// but are the words that are not in a list, or all where there are no others.
func but(list string, of []string) []string {
	left := slices.DeleteFunc(slices.Clone(of), func(w string) bool { return in(list, w) })
	if len(left) == 0 {
		return of
	}
	return left
}

// sides are words of which one makes another question than the other does: whom a
// payment is to, and whom it is from.
var sides = [][]string{{"from", "to", "by", "for"}, {"before", "after", "until", "since"}, {"in", "out"}, {"on", "off"}, {"with", "without"}}

// answers reports whether a record has a value as the answer to what is asked: in
// the members that are called as that is; or else in the one that is called so but
// for a word that says of what kind its value is, if no other is; or else in one
// whose name has a word of it, where the record has the others.
func (u *unit) answers(a asking, value string) bool {
	says := func(l leaf) bool { return l.is(value) && l.says(value, a) }
	if !slices.ContainsFunc(u.leaves, says) {
		return false
	}
	fit, most, called := map[string]int{}, 0, ""
	for i := range u.leaves {
		name := strings.Join(u.leaves[i].names, "\x00")
		f, known := fit[name]
		if !known {
			f = u.fit(&u.leaves[i], a)
			fit[name] = f
		}
		switch {
		case f > most:
			most, called = f, name
		case f == most && name != called:
			called = ""
		}
	}
	return most > 0 && (most != kindFits || called != "") && slices.ContainsFunc(u.leaves, func(l leaf) bool {
		return fit[strings.Join(l.names, "\x00")] == most && says(l)
	})
}

// How well the name of a member fits what is asked.
const (
	wordFits = 1 + iota
	kindFits
	fits
)

// fit is how well a leaf fits what is asked. In an object of a record that keeps
// what is its own stands what is; in another one (previous, manager) it does not,
// unless that is asked for.
func (u *unit) fit(l *leaf, a asking) (best int) {
	for _, w := range words.Of(strings.Join(text.NameWords(strings.Join(l.names[:len(l.names)-1], " ")), " ")) {
		if !in("own", w) && !slices.Contains(a.words, w) && !matches(a.words, w) {
			return 0
		}
	}
	for _, names := range [][]string{l.names[len(l.names)-1:], l.names} {
		m := askingOf(strings.Join(names, " ")).words
		more := slices.DeleteFunc(slices.Clone(m), func(w string) bool { return matches(a.words, w) })
		less := slices.DeleteFunc(slices.Clone(a.words), func(w string) bool { return matches(m, w) })
		other := func(w string) bool { return !in("kind", w) }
		apart := func(w string) bool {
			return in("then", w) || slices.ContainsFunc(sides, func(s []string) bool { return slices.Contains(s, w) })
		}
		switch own := askingOf(l.names[len(l.names)-1]).words; {
		case len(m) == 0 || len(less) == len(a.words):
		case len(more)+len(less) == 0:
			best = max(best, fits)
		case !slices.ContainsFunc(more, other) && !slices.ContainsFunc(less, other) && (len(more) == 0 || len(less) == 0):
			best = max(best, kindFits)
		case slices.ContainsFunc(more, apart), slices.ContainsFunc(less, apart),
			slices.ContainsFunc(own, func(w string) bool { return in("kind", w) && slices.Contains(more, w) }):
		case slices.ContainsFunc(l.names, func(n string) bool {
			must := askingOf(n).must
			return len(must) > 0 && matches(a.must, must[len(must)-1])
		}) && !slices.ContainsFunc(a.must, func(w string) bool { return !u.holds(w) }):
			best = max(best, wordFits)
		}
	}
	return best
}

// says reports whether a leaf is a value, or a text that says it.
func (l *leaf) says(value string, a asking) bool {
	if l.number || strings.TrimSpace(l.text) == strings.TrimSpace(value) {
		return true
	}
	at := placed(l.text, value)
	if at < 0 || len(quotedIn(l.text, value)) > 0 || beside().MatchString(l.text[:at]) && !strings.ContainsFunc(value, unicode.IsNumber) {
		return false
	}
	t := &said{part: unit{text: l.text}, around: l.text, value: l.text[at : at+len(value)], at: at}
	return t.affirmed(a.must)
}

// beside finds a word that stands right before something.
var beside = text.Pattern(`[\pL\pM]\s+$`)

// asks reports whether a sentence, with a value at an offset, has the words of a
// question: of two sides the one that is asked for stands before the value, and
// what is asked for is no part of the name of something else.
func (u *unit) asks(a asking, at int) bool {
	if slices.ContainsFunc(a.must, func(w string) bool { return !u.holds(w) }) {
		return false
	}
	said, before := words.Of(u.text), words.Of(u.text[:at])
	for _, s := range sides {
		nearest := "" // of these before the value
		for _, b := range before {
			if slices.Contains(s, b) {
				nearest = b
			}
		}
		if slices.ContainsFunc(a.must, func(w string) bool {
			return slices.Contains(s, w) && (!slices.Contains(said, w) || nearest != "" && nearest != w)
		}) {
			return false
		}
	}
	return !slices.ContainsFunc(a.must, func(w string) bool { return u.partOfAnother(w, a) })
}

// partOfAnother reports whether a word stands in a sentence only at the beginning
// of the name of something else: the email in my email password is.
// It is so in English; elsewhere one word says it, or what is said of a thing
// stands behind it.
func (u *unit) partOfAnother(w string, a asking) bool {
	toks, part := tokens(u.text, false, 0), false
	for i, t := range toks {
		if matches(t.words, w) {
			if part = a.begins(toks[i:]); !part {
				return false
			}
		}
	}
	return part
}

// begins reports whether a word begins the name of something else, of which is said what it is.
func (a asking) begins(toks []spoken) bool {
	other := false
	for i, t := range toks {
		switch {
		case i == 0:
		case len(t.words) == 1 && slices.Contains([]string{"is", "are", "was", "were", "s", "has", "uses"}, t.words[0]):
			return other
		case t.person != none || len(t.words) != 1 || t.words[0] == "of" || in("stop", t.words[0]):
			return false
		default:
			other = other || !matches(a.words, t.words[0]) && !in("kind", t.words[0])
		}
		if t.ends {
			return false
		}
	}
	return false
}

// follows reports whether a text begins with what is asked for, but for what says which is meant.
func (a asking) follows(s string) bool {
	for _, w := range words.Of(s) {
		if !in("quality", w) {
			return matches(a.words, w)
		}
	}
	return false
}

// sentence reports whether a value is no answer but a sentence with the question
// in it.
func sentence(value string, asked []string) bool {
	ws := words.Of(value)
	return len(ws) > 3 && !slices.ContainsFunc(asked, func(w string) bool { return !matches(ws, w) })
}

// A heard text is its words.
type heard struct {
	words []string
	forms words.Forms
}

// holds reports whether a unit has a word in any of its forms: a record also in
// the names of its members.
func (u *unit) holds(w string) bool {
	if u.heard == nil {
		t := plain(u.text)
		for _, l := range u.leaves {
			t += " " + strings.Join(text.NameWords(strings.Join(l.names, " ")), " ") + " " + l.text
		}
		u.heard = &heard{words.Of(t), words.FormsOf(t)}
	}
	return slices.ContainsFunc(u.heard.words, func(o string) bool { return alike(o, w, u.heard.forms.Has) })
}

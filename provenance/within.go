package provenance

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// # A path said in two words (R15)
//
// "Set n in config.toml in /srv/app": the user says a name and, right behind it, the
// directory it is in. Both are his words, whole, and the words between say nothing but
// that: of two names and two directories none goes with the other's.

// TypedWithin answers where the user typed the last element of a path, one with a letter
// behind a dot, and the directory that it is in.
func (l *Ledger) TypedWithin(q Query) (name, dir Quote, ok bool) {
	whole, isText := q.Value.Text()
	parent, base, cut := splitPath(whole)
	if !isText || !cut || q.Type != Path || q.Strict || !hasEnding(base) {
		return name, dir, false
	}
	of := q
	of.Value, of.Type = strictjson.StringOf(base), Untyped
	in := q
	in.Value = strictjson.StringOf(parent)
	if _, why := l.Typed(in); why != "" {
		return name, dir, false
	}
	text, _, ok := spoken(of)
	_, typed, also := spoken(in)
	if !ok || !also {
		return name, dir, false
	}
	for i := range l.holdingTurns(text, "") {
		r := &l.turns[i].own
		for s := range r.holding(text, "") {
			if !wordAt(r.text, s.start) || r.closes(s) || r.cuts(s) || r.partial(s, q.words()) {
				continue
			}
			for _, d := range r.typed[typed] {
				if d.start > s.end && !r.closes(d) && !r.cuts(d) && !r.partial(d, q.words()) && Within(r.text[:s.start], r.text[s.end:d.start], r.text[d.end:]) {
					return l.turns[i].quote(s), l.turns[i].quote(d), true
				}
			}
		}
	}
	return name, dir, false
}

// hasEnding reports whether a name has a letter behind a dot, as "1.2" does not.
func hasEnding(name string) bool {
	_, ending, _ := strings.Cut(strings.Trim(name, "."), ".")
	return strings.ContainsFunc(ending, unicode.IsLetter)
}

// Within reports whether what stands between a name and a directory says that the one is
// in the other, and nothing else. Of what is in quotation marks each is all of it: of
// "my config.toml" the second word is another name.
func Within(before, between, after string) bool {
	return len(between) <= 64 && beneath().MatchString(between) && endsMarked(before) == beginsMarked(between) && endsMarked(between) == beginsMarked(after)
}

func endsMarked(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return strings.ContainsRune(quotes, r)
}

func beginsMarked(s string) bool { return strings.ContainsRune(quotes, firstRune(s)) }

var beneath = text.Pattern("(?i)^[\"'`’”“»«]?[ \\t]+(?:in|into|inside|under|within|to|at|unter|nach|dans)(?:[ \\t]+(?:the|my|our|this|that|der|dem|den|das|le|la))?" +
	"(?:[ \\t]+(?:directory|folder|dir|path|verzeichnis|ordner|pfad|dossier|répertoire))?[ \\t]+[\"'`‘“„«»]?$")

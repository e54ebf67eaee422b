package provenance

import (
	"regexp"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
)

// # A path said in two words (R15)
//
// "Set n in config.toml in /srv/app": the user says a name and, right behind it, the
// directory it is in. Both are his words, whole, and the words between say nothing but
// that: of two names and two directories none goes with the other's.

// TypedWithin answers where the user typed the last element of a path, one with a dot in
// it, and the directory that it is in.
func (l *Ledger) TypedWithin(q Query) (name, dir Quote, ok bool) {
	whole, isText := q.Value.Text()
	parent, base, cut := splitPath(whole)
	if !isText || !cut || q.Type != Path || q.Strict || !strings.Contains(strings.Trim(base, "."), ".") {
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
		for _, at := range r.starts[text[:min(len(text), headLength)]] {
			s := span{at, at + len(text)}
			if !strings.HasPrefix(r.text[at:], text) || !r.end[s.end] || r.hash[at] || r.closes(s) || r.cuts(s) || r.partial(s, q.words()) {
				continue
			}
			for _, d := range r.typed[typed] {
				if d.start > s.end && !r.closes(d) && !r.cuts(d) && !r.partial(d, q.words()) && Within(r.text[s.end:d.start]) {
					return Quote{l.turns[i].Evidence, s.start, s.end}, Quote{l.turns[i].Evidence, d.start, d.end}, true
				}
			}
		}
	}
	return name, dir, false
}

// Within reports whether what stands between a name and a directory says that the one is
// in the other, and nothing else.
func Within(between string) bool { return len(between) <= 64 && beneath.MatchString(between) }

var beneath = regexp.MustCompile("(?i)^[\"'`’”“»«]?[ \\t]+(?:in|into|inside|under|within|to|at|unter|nach|dans)(?:[ \\t]+(?:the|my|our|this|that|der|dem|den|das|le|la))?" +
	"(?:[ \\t]+(?:directory|folder|dir|path|verzeichnis|ordner|pfad|dossier|répertoire))?[ \\t]+[\"'`‘“„«»]?$")

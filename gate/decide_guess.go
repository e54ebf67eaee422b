package gate

import (
	"maps"
	"slices"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// R24: a refusal is no oracle. What counts is a guess: a refused value that was
// looked up among what tools returned, so that the refusal tells that this set
// does not hold it. What was refused tells nothing new, and is no guess, if
//
//   - the set is the user's words, the operator's constants or the tool's own
//     definition, or the argument can match no output at all;
//   - the user typed the value, or it was refused there before;
//   - it is a new name in a directory that was listed whole in this session.
//
// Five guesses at one pointer close it: what is in the set there is not said any
// more, and only what does not rest on the set passes. Fifty close the session's
// acts. A value of the set that is news in this session reopens the pointer, and
// so does a person.

// over reports whether the session's acts are closed.
func (j *judge) over() bool {
	return j.in.Session != nil && j.d.Effect.Gated() && j.in.Session.guessed() >= guessesPerSession
}

// setOf names the set of outputs a leaf is looked up in, "" for none.
func (j *judge) setOf(l *leaf) string {
	if l.answer {
		return "" // a server that asks and asks closes nothing
	}
	for _, src := range j.sources(l) {
		q := j.query(l, src)
		switch {
		case src.Kind == policy.FromSaidBy, src.Kind == policy.FromNamed:
			return "tool " + src.Server + "/" + src.Tool
		case src.Op == policy.FreshName && len(l.rule.Begins) > 0, src.Op == policy.Element: // it is looked up nowhere
		case src.Kind == policy.FromSeen, src.Kind == policy.FromDerived && src.Op != policy.PathJoin && src.Op != policy.TypedIn:
			return anySet
		case src.Kind == policy.FromDerived && q.Collection == "":
			return setOfType(provenance.Path)
		case src.Kind != policy.FromOutput && src.Kind != policy.FromDerived:
		case q.Collection != "":
			return "collection " + q.Collection
		case src.Tool != "":
			return "tool " + src.Server + "/" + src.Tool
		case q.Type != provenance.Untyped:
			return setOfType(q.Type)
		case q.Strict:
			return anySet
		}
	}
	return ""
}

const anySet = "any"

func setOfType(t provenance.Type) string { return "type " + string(t) }

// setsOf returns the sets that news of an origin is news of.
func setsOf(o provenance.Origin) []string {
	return []string{anySet, "collection " + o.Collection, "tool " + o.Server + "/" + o.Tool, setOfType(o.Type)}
}

// shuts reports whether too much was guessed at a leaf's pointer, in this call
// too, for it to be looked up.
func (j *judge) shuts(l *leaf) bool {
	s := j.session()
	if s == nil || j.setOf(l) == "" {
		return false
	}
	key, all := j.closeKey(l), s.guessed()
	at := maps.Clone(j.wrong[key])
	if g := s.refused[key]; g != nil {
		at = maps.Clone(g.values)
		maps.Copy(at, j.wrong[key])
	}
	for _, w := range j.wrong {
		all += len(w)
	}
	if len(at) < guessesPerPointer && all < guessesPerSession {
		return false
	}
	if _, why := j.typed(l); why == "" {
		return false
	}
	// The question about the last of them was answered with yes: this very value was
	// refused before, and its being looked up again tells nothing new.
	said, _ := j.answered()
	return !said.Yes || !slices.ContainsFunc(said.Covers, func(c Covered) bool { return c.Pointer == l.pointer })
}

// guessed notes that a leaf was refused for its value.
func (j *judge) guessed(l *leaf) {
	s := j.session()
	set := j.setOf(l)
	if s == nil || set == "" || l.isText && s.ledger.Enumerated(l.value) {
		return
	}
	if _, why := j.typed(l); why == "" {
		return
	}
	l.guess = set
	key := j.closeKey(l)
	if j.wrong == nil {
		j.wrong = map[string]map[string]bool{}
	}
	if j.wrong[key] == nil {
		j.wrong[key] = map[string]bool{}
	}
	j.wrong[key][s.ledger.Digest(l.typ(), l.value)] = true
}

// guesses returns what R24 counts of a refusal: nothing unless values are what
// was refused.
func (j *judge) guesses(fs []writ.Failure) (out []guess) {
	if writ.CodeOf(fs[0].Reason) != writ.MissingProvenance {
		return nil
	}
	for _, l := range j.leaves {
		if l.guess == "" {
			continue
		}
		g := guess{j.closeKey(l), l.guess, j.in.Session.ledger.Digest(l.typ(), l.value)}
		if !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// closeKey names a pointer of a tool for R24: by the contract's pattern where
// one names it, so that another index is not another pointer.
func (j *judge) closeKey(l *leaf) string {
	p := l.pattern
	if l.rule != nil {
		p = l.rule.At.Source
	}
	return j.in.Call.Server + "/" + toolOf(j.in.Call) + "#" + p
}

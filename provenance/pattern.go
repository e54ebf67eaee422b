package provenance

import (
	"slices"

	"github.com/writ-project/writ/internal/strictjson"
)

const wildcard = "*"

// ParsePattern reads an RFC 6901 pointer whose token "*" stands for exactly
// one key or index. "" names the root. A key that is itself "*" is covered by
// the wildcard and cannot be named alone.
func ParsePattern(s string) (Pattern, error) {
	tokens, err := strictjson.ParsePointer(s)
	if err != nil {
		return Pattern{}, err
	}
	return Pattern{Tokens: tokens, Source: s}, nil
}

// Match reports whether the pattern names the leaf at path, given as decoded
// reference tokens. A pattern never names what lies below its match.
func (p Pattern) Match(path []string) bool {
	return slices.EqualFunc(p.Tokens, path, func(t, of string) bool { return t == wildcard || t == of })
}

// Spells reports whether the pattern writes out the name that a path ends with: as its
// own end, or on the way to what lies there.
func (p Pattern) Spells(path []string) bool {
	n := len(path)
	return n > 0 && n <= len(p.Tokens) && p.Tokens[n-1] != wildcard && Pattern{Tokens: p.Tokens[:n]}.Match(path)
}

// Exact reports whether the pattern has no wildcard.
func (p Pattern) Exact() bool { return !slices.Contains(p.Tokens, wildcard) }

// Overlaps reports whether some path is named by both.
func (p Pattern) Overlaps(q Pattern) bool {
	return slices.EqualFunc(p.Tokens, q.Tokens, func(a, b string) bool { return a == b || a == wildcard || b == wildcard })
}

// Beats reports whether p is the more specific of two overlapping patterns: it
// names some but not all paths q names, and no others. An exact pattern so
// beats every wildcard that matches it.
func (p Pattern) Beats(q Pattern) bool { return q.Match(p.Tokens) && !slices.Equal(p.Tokens, q.Tokens) }

// Ties reports whether both name some path and neither is more specific. Two
// rules of one contract that tie stop the start; where none tie, every path
// has at most one best pattern.
func (p Pattern) Ties(q Pattern) bool { return p.Overlaps(q) && !p.Beats(q) && !q.Beats(p) }

// Conflict reports whether two output rules of one contract could both name a
// leaf, or take one text apart, with neither more specific.
func Conflict(a, b OutputRule) bool {
	if a.InText != b.InText || a.Keys != b.Keys || a.InText && a.Block != b.Block {
		return false
	}
	if a.InText {
		return clash(a, b)
	}
	if a.Keys || a.Extract == NoExtract && b.Extract == NoExtract {
		return a.At.Ties(b.At)
	}
	return a.At.Overlaps(b.At) && !a.At.Beats(b.At) && !b.At.Beats(a.At) && clash(a, b)
}

// clash is Conflict for two rules on one text: only JSON in text may have
// several, one for each of its pointers.
func clash(a, b OutputRule) bool {
	if a.Extract != ExtractJSON || b.Extract != ExtractJSON {
		return true
	}
	return !slices.Equal(a.At.Tokens, b.At.Tokens) || a.Pointer.Ties(b.Pointer)
}

// best returns the index of the most specific of the patterns that name path,
// -1 for none. at(i) is the i-th pattern, ok false to leave it out.
func best(n int, path []string, at func(i int) (p Pattern, ok bool)) int {
	found := -1
	var top Pattern
	for i := range n {
		p, ok := at(i)
		if ok && p.Match(path) && (found < 0 || p.Beats(top)) {
			found, top = i, p
		}
	}
	return found
}

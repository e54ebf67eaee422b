package screen

import (
	"cmp"
	"regexp/syntax"
	"slices"
	"strings"
)

// maxWork bounds the bytes that patterns are run over for one text. A text that
// needs more is not read further and halts. Ordinary text of MaxText, near
// misses among it, stays well below; see BenchmarkCheck.
const maxWork = 8 << 20

// maxExact bounds how many strings a part of a pattern is spelt out as.
const maxExact = 64

// needs returns what a text must hold for a pattern to match: of each set one
// string. It only saves work: a set that is missing costs time and no more.
func needs(t *syntax.Regexp) (sets [][]string) {
	exact, sets := literals(t)
	if useful(exact) {
		sets = append(sets, exact)
	}
	return sets
}

// useful says whether the set tells texts apart.
func useful(set []string) bool {
	return len(set) > 0 && !slices.ContainsFunc(set, func(s string) bool { return len(s) < 3 })
}

// literals returns either all strings that t matches, or, if they are too many
// or not known, the sets of which a match holds one string each.
func literals(t *syntax.Regexp) (exact []string, sets [][]string) {
	switch t.Op {
	case syntax.OpEmptyMatch, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return []string{""}, nil
	case syntax.OpLiteral:
		if t.Flags&syntax.FoldCase != 0 {
			return nil, nil
		}
		return []string{string(t.Rune)}, nil
	case syntax.OpCharClass:
		for i := 0; i+1 < len(t.Rune); i += 2 {
			if int(t.Rune[i+1]-t.Rune[i])+len(exact) >= 8 {
				return nil, nil
			}
			for r := t.Rune[i]; r <= t.Rune[i+1]; r++ {
				exact = append(exact, string(r))
			}
		}
		return exact, nil
	case syntax.OpCapture:
		return literals(t.Sub[0])
	case syntax.OpQuest:
		if exact, _ = literals(t.Sub[0]); len(exact) > 0 && len(exact) < maxExact {
			return append(slices.Clone(exact), ""), nil
		}
		return nil, nil
	case syntax.OpPlus:
		return nil, needs(t.Sub[0])
	case syntax.OpRepeat:
		if t.Min > 0 {
			return nil, needs(t.Sub[0])
		}
		return nil, nil
	case syntax.OpAlternate:
		return alternatives(t.Sub)
	case syntax.OpConcat:
		return sequence(t.Sub)
	}
	return nil, nil
}

func alternatives(subs []*syntax.Regexp) (exact []string, sets [][]string) {
	spelt, known := true, true // all alternatives spelt out; of each one set known
	var union []string
	for _, s := range subs {
		e, more := literals(s)
		spelt = spelt && len(e) > 0 && len(exact)+len(e) <= maxExact
		exact = append(exact, e...)
		var best []string
		if useful(e) {
			best = e
		}
		for _, n := range more {
			if best == nil || shortest(n) > shortest(best) {
				best = n
			}
		}
		known = known && best != nil
		union = append(union, best...)
	}
	switch {
	case spelt:
		return exact, nil
	case known:
		return nil, [][]string{union}
	}
	return nil, nil
}

func shortest(set []string) int {
	return len(slices.MinFunc(set, func(a, b string) int { return cmp.Compare(len(a), len(b)) }))
}

func sequence(subs []*syntax.Regexp) (exact []string, sets [][]string) {
	run, whole := []string{""}, true
	flush := func() {
		if useful(run) {
			sets = append(sets, run)
		}
		run, whole = []string{""}, false
	}
	for _, s := range subs {
		e, more := literals(s)
		if len(e) == 0 {
			flush()
			sets = append(sets, more...)
			continue
		}
		if len(run)*len(e) > maxExact {
			flush()
		}
		var next []string
		for _, a := range run {
			for _, b := range e {
				next = append(next, a+b)
			}
		}
		run = next
	}
	if whole {
		return run, nil
	}
	flush()
	return nil, sets
}

// half is half the words of a chunk. A match of more words than that may be
// missed; only a pattern that repeats a part without bound has one.
const half = 40

// chunk is a stretch of a reading that is searched on its own, so that a pattern
// is run only where the words it needs stand close together. Each begins in the
// middle of the one before.
type chunk struct {
	from, next, to int // the spaces at its ends, and where the next one begins
	grams          grams
}

// chunks cuts a reading.
func chunks(text string) (out []chunk) {
	var spaces []int
	for i := range len(text) {
		if text[i] == ' ' {
			spaces = append(spaces, i)
		}
	}
	last := len(spaces) - 1
	for i := 0; i < last; i += half {
		c := chunk{from: spaces[i], next: spaces[min(i+half, last)], to: spaces[min(i+2*half, last)] + 1}
		for j := c.from; j+2 < c.to; j++ {
			w, b := gram(text, j)
			c.grams[w] |= 1 << b
		}
		if out = append(out, c); c.to == len(text) {
			out[len(out)-1].next = len(text)
			break
		}
	}
	return out
}

// grams holds which three bytes in a row a text may have.
type grams [64]uint64

func gram(s string, i int) (word, bit uint32) {
	h := (uint32(s[i])<<16 | uint32(s[i+1])<<8 | uint32(s[i+2])) * 2654435761 >> 20
	return h >> 6, h & 63
}

// holds says whether the chunk of the text has the string.
func (c *chunk) holds(text, s string) bool {
	for i := 0; i+2 < len(s); i++ {
		if w, b := gram(s, i); c.grams[w]&(1<<b) == 0 {
			return false
		}
	}
	return strings.Contains(text[c.from:c.to], s)
}

// may says whether the pattern can match in the chunk at all.
func (p *pattern) may(text string, c *chunk) bool {
	return each(p.needs, func(s string) bool { return c.holds(text, s) })
}

// hasAll says whether the text has one string of each set.
func hasAll(text string, sets [][]string) bool {
	return each(sets, func(s string) bool { return strings.Contains(text, s) })
}

// each says whether something has one string of each set.
func each(sets [][]string, has func(string) bool) bool {
	return !slices.ContainsFunc(sets, func(set []string) bool { return !slices.ContainsFunc(set, has) })
}

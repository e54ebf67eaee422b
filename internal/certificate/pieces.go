package certificate

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// What the user typed in pieces (R15), and the arguments that belong together (R37).

// beside reports whether a reference quotes a small value that stands in the same line
// as the first part of the same thing, not far from it and in the same brackets, and is
// no other part of it (R15): where another part is the same word, it stands there twice.
func (s *Session) beside(c *call, l *leaf, r gate.Ref) bool {
	t, words, ok := s.quote(r)
	if !ok || ordering(l.words()) || !(l.enum || provenance.SmallSpace(l.typ(), l.value)) || !t.spells(l, words) || !t.piece(l, r.Start, r.End) || l.key || l.answer {
		return false
	}
	for _, b := range c.bindings() {
		first := c.first(b, l)
		if first == nil || first == l {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(c.leaves), func(o *leaf) bool { return o == l || o.key || o.answer || !o.other(b) })
		taken := func(start, end int) bool {
			return slices.ContainsFunc(others, func(o *leaf) bool {
				return o.Rule == "user" && slices.ContainsFunc(o.Evidence, func(e gate.Ref) bool { return e.Evidence == r.Evidence && e.Start < end && start < e.End })
			})
		}
		same := 0
		for _, o := range others {
			if o.Rule != "user" && provenance.Equal(provenance.Untyped, o.value, l.value) {
				same++
			}
		}
		for start := range t.own {
			for end := start + 1; end <= min(len(t.own), start+512); end++ {
				if !s.typed(first, gate.Ref{Evidence: r.Evidence, Tool: userTool, Start: start, End: end}) {
					continue
				}
				near := func(from, to int) bool {
					if from < end && start < to {
						return false
					}
					a, z := min(to, end), max(from, start)
					return z-a <= 200 && !strings.ContainsAny(t.own[a:z], "\n()[]{}") && !taken(from, to)
				}
				left := same
				for from := max(0, start-400); left > 0 && from < min(len(t.own), end+400); from++ {
					if to := from + len(words); to <= len(t.own) && t.own[from:to] == words && t.piece(l, from, to) && (to <= r.Start || from >= r.End) && near(from, to) {
						left--
					}
				}
				if left == 0 && near(r.Start, r.End) {
					return true
				}
			}
		}
	}
	return false
}

// piece reports whether a stretch is of whole tokens.
func (t *turn) piece(l *leaf, start, end int) bool {
	return (t.begins(start) || start > 0 && t.own[start-1] == '#' && t.begins(start-1)) && t.ends(end) && !(l.authority() && t.over(start, end))
}

// wordPart reports whether a text can be a part of a composite.
func wordPart(s string) bool {
	return s != "" && !strings.HasPrefix(s, ".") && !strings.HasPrefix(s, "_") && !strings.HasPrefix(s, "-") && !strings.ContainsFunc(s, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-", r)
	})
}

// inTwo reports whether two references quote a name with a letter behind a dot, and right
// behind it the directory that it is in (R15).
func (s *Session) inTwo(l *leaf) bool {
	full, _ := l.value.Text()
	c, already, why := provenance.Canonical(provenance.Path, l.value)
	name, dir := l.Evidence[0], l.Evidence[1]
	if l.typ() != provenance.Path || why != "" || !already || c == "/" || name.Evidence != dir.Evidence || name.End >= dir.Start {
		return false
	}
	base, in, rule := *l, *l, *l.rule
	rule.Type = provenance.Untyped
	base.value, base.rule, in.value = strictjson.StringOf(path.Base(full)), &rule, strictjson.StringOf(path.Dir(full))
	t, words, ok := s.quote(name)
	return ok && !l.apart && !l.commands && words == path.Base(full) && endingForm().MatchString(words) && t.begins(name.Start) &&
		s.typed(&base, name) && s.typed(&in, dir) && provenance.Within(t.own[:name.Start], t.own[name.End:dir.Start], t.own[dir.End:])
}

// composite reports whether a reference quotes one word in which the user wrote a value
// and the other arguments that the contract's form of it has (R15).
func (s *Session) composite(c *call, l *leaf, r gate.Ref) bool {
	return c.contract != nil && (!ordering(l.words()) || s.orderedWord(l, r)) && slices.ContainsFunc(c.contract.Composites, func(k policy.Composite) bool {
		word, parts := c.whole(k)
		return slices.Contains(parts, l) && s.typed(&leaf{value: strictjson.StringOf(word), apart: true}, r)
	})
}

// orderedWord reports whether a quoted word stands behind an order that is meant, still stands, and is of nothing more.
func (s *Session) orderedWord(l *leaf, r gate.Ref) bool {
	t, _, ok := s.quote(r)
	i := slices.IndexFunc(s.turns, func(o turn) bool { return o.evidence == r.Evidence })
	return ok && provenance.NumberEnds(t.own, r.Start, l.words()) && t.called(r.Start, false, l.words()) && (i < 0 || s.stands(i, l.rule.Words))
}

// whole is the word that a composite is with what the call says, and the arguments that it is made
// of; none where it says no such word.
func (c *call) whole(k policy.Composite) (word string, parts []*leaf) {
	word = k.Text[0]
	for i, at := range k.Args {
		n := slices.IndexFunc(c.leaves, func(o *leaf) bool { return !o.key && !o.answer && matches(at, o.path) })
		if n < 0 {
			return "", nil
		}
		part, isText := c.leaves[n].value.Text()
		if !isText {
			if _, _, why := provenance.Canonical(provenance.Integer, c.leaves[n].value); why != "" {
				return "", nil
			}
			part = string(c.leaves[n].value.Raw())
		}
		if !wordPart(part) {
			return "", nil
		}
		parts = append(parts, c.leaves[n])
		word += part + k.Text[i+1]
	}
	return word, parts
}

// counted reports whether an argument says by a number what is acted on.
func (l *leaf) counted() bool {
	return l.plain() && l.names() && provenance.Equal(provenance.Integer, l.value, l.value)
}

// aim is by which numbers the call says what it is done to, and how its place is written.
func (c *call) aim() (a provenance.Aim) {
	for _, l := range c.leaves {
		if l.counted() {
			a.Numbers = append(a.Numbers, l.says())
		}
	}
	if c.contract == nil {
		return a
	}
	for _, k := range c.contract.Composites {
		if word, parts := c.whole(k); parts != nil && !slices.ContainsFunc(parts, (*leaf).counted) {
			a.Places = append(a.Places, word)
		}
	}
	return a
}

// named is where an argument stands that a contract speaks of: a key at its object.
func (l *leaf) named() []string {
	if l.key {
		return l.path[:len(l.path)-1]
	}
	return l.path
}

// other reports whether a binding holds an argument to the record of another (R37).
func (l *leaf) other(b policy.Binding) bool {
	return slices.ContainsFunc(b.Others, func(p provenance.Pattern) bool { return matches(p, l.named()) })
}

// binds reports whether an argument has to be of one record with others, or names it.
func (c *call) binds(l *leaf) bool {
	return slices.ContainsFunc(c.bindings(), func(b policy.Binding) bool {
		return slices.ContainsFunc(append(slices.Clone(b.Others), b.First), func(p provenance.Pattern) bool { return matches(p, l.path) })
	})
}

func (c *call) bindings() []policy.Binding {
	if c.contract == nil {
		return nil
	}
	return c.contract.Bindings
}

// first is the argument to whose record a binding holds another, nil for none: where
// the contract leaves an index open, the one that has the other's.
func (c *call) first(b policy.Binding, l *leaf) *leaf {
	if !l.other(b) {
		return nil
	}
	var open []string
	for i, t := range b.Others[0].Tokens {
		if t == "*" && len(b.Others) == 1 {
			open = append(open, l.named()[i])
		}
	}
	for _, first := range c.leaves {
		if !first.plain() || len(first.path) != len(b.First.Tokens) {
			continue
		}
		is, n := true, 0
		for i, t := range b.First.Tokens {
			if t == "*" {
				if n == len(open) {
					return nil
				}
				t = open[n]
				n++
			}
			is = is && first.path[i] == t
		}
		if is {
			return first
		}
	}
	return nil
}

var endingForm = text.Pattern(`[^.].*?\..*\pL`)

package certificate

import (
	"regexp"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// Phrases of a contract that the user says and means (R21).

// saysPhrase reports whether the user's latest turn holds one of the contract's phrases
// as whole words that are meant, and what an enum or a control chooses (R21). The
// phrases of a case stand in their stead, and say the case's value and what it lists.
func (s *Session) saysPhrase(c *call) bool {
	phrases, listed := c.contract.Phrases, []policy.ArgRule(nil)
	k := caseOf(c.contract, c.parts)
	if k != nil && len(k.Phrases) == 0 {
		k = nil
	}
	if k != nil {
		phrases, listed = k.Phrases, k.Args
	}
	told := func(l *leaf) bool {
		if n := len(s.turns); n > 0 && l.rule != nil && l.rule.Place && !l.key && !l.answer && !s.turns[n-1].elsewhere(l.says()) {
			return true
		}
		if k == nil || l.key || l.answer {
			return false
		}
		return strictjson.Pointer(l.path) == strictjson.Pointer(c.contract.CaseAt) || l.rule != nil && slices.ContainsFunc(listed, func(a policy.ArgRule) bool {
			return a.Line == l.rule.Line && a.Col == l.rule.Col // the very rule, which was copied
		})
	}
	for _, l := range c.leaves {
		if !empty(l.value) && (l.role == policy.Enum || l.role == policy.Control) && !told(l) && !s.orders(c, l) && !s.speaks(l.says()) {
			return false
		}
	}
	return slices.ContainsFunc(phrases, func(p string) bool {
		if p, whole := strings.CutSuffix(p, "."); whole {
			return s.means(p, provenance.Wholly)
		}
		return s.means(p, provenance.Means)
	})
}

// listsPhrases reports whether the user is to say one of some phrases: what he typed into an argument
// that the contract does not have says then nothing of what is to be done.
func listsPhrases(c *call) bool {
	if c.contract == nil {
		return false
	}
	k := caseOf(c.contract, c.parts)
	return c.contract.NoArgs == policy.NoArgsUser && !c.strict && (len(c.contract.Phrases) > 0 || k != nil && len(k.Phrases) > 0)
}

// elsewhere reports whether a turn names a path from a root that is neither a place nor in it.
func (t *turn) elsewhere(place string) bool {
	rooted := func(w string) bool {
		root, below, _ := strings.Cut(w, "/")
		return below != "" && slices.Contains([]string{"", "~", ".", ".."}, root)
	}
	return slices.ContainsFunc(strings.FieldsFunc(t.own, func(r rune) bool { return blank(r) || mark(r) }), func(w string) bool {
		for !rooted(w) {
			i := strings.IndexAny(w, "=,")
			if i < 0 {
				return false
			}
			w = w[i+1:]
		}
		return !strings.HasPrefix(strings.TrimRight(w, "/,.;:!?")+"/", strings.TrimRight(place, "/")+"/")
	})
}

// ordersText reports whether the user orders an act that only writes by a phrase of a case that
// lists a text.
func (s *Session) ordersText(c *call, l *leaf) bool {
	k := caseOf(c.contract, c.parts)
	return k != nil && len(k.Phrases) > 0 && c.effect&^(policy.Read|policy.Write) == 0 && c.contract.NoArgs == policy.NoArgsUser && !c.strict &&
		l.rule != nil && slices.ContainsFunc(k.Args, func(a policy.ArgRule) bool { return a.Line == l.rule.Line && a.Col == l.rule.Col }) && s.saysPhrase(c)
}

// orders reports whether a value is a constant that the user ordered by a phrase of its own.
func (s *Session) orders(c *call, l *leaf) bool {
	return l.Rule == "const" && s.lists(c, l, func(src policy.Source) bool { return len(src.Phrases) > 0 })
}

// lists reports whether a value is a constant of one of some sources, ordered where that
// has phrases.
func (s *Session) lists(c *call, l *leaf, of func(policy.Source) bool) bool {
	return slices.ContainsFunc(c.from(l), func(src policy.Source) bool {
		return of(src) && slices.ContainsFunc(src.Const, func(v []byte) bool { return provenance.Equal(l.typ(), l.value, strictjson.Of(v)) }) &&
			s.ordersSource(c, src)
	})
}

// ordersSource reports whether the user chose what a source gives: he orders it by one of its
// phrases, where it has such.
func (s *Session) ordersSource(c *call, src policy.Source) bool {
	return len(src.Phrases) == 0 || !c.strict && slices.ContainsFunc(src.Phrases, func(p string) bool { return s.chose(p, c.aim()) })
}

// chose reports whether he orders by a phrase what a call is done to, also with that in its midst.
func (s *Session) chose(phrase string, of provenance.Aim) bool {
	return s.means(phrase, of.Wholly) || len(of.Numbers) > 0 && s.meansIn(of.Without, phrase, of.Within)
}

// means reports whether the user's latest turn, or one behind it that only agrees, says a
// phrase and means it.
func (s *Session) means(phrase string, means func(text string, start, end int) bool) bool {
	return s.meansIn(nil, phrase, means)
}

// meansIn reports the same of what is made of his words, which is as long, where the phrase stands on what is not his.
func (s *Session) meansIn(made func(own string) string, phrase string, means func(text string, start, end int) bool) bool {
	if len(s.turns) == 0 {
		return false
	}
	form := spokenOf(phrase)
	says := func(t turn) bool {
		if made == nil {
			return t.means(form, means)
		}
		own := t.own
		t.own = made(own)
		return t.means(form, func(text string, start, end int) bool {
			return text[start:end] != own[start:end] && means(text, start, end)
		})
	}
	last := s.turns[len(s.turns)-1]
	return says(last) || slices.ContainsFunc(s.agreed, func(t turn) bool { return t.evidence > last.evidence && says(t) })
}

// shouts are several stops that end a word.
var shouts = regexp.MustCompile(`^[.!?…]+(?:[\s\x00]|$)`)

func (t *turn) means(form *spoken, means func(text string, start, end int) bool) bool {
	for i, left := 0, mostSaid; left > 0 && i < len(t.own); i++ {
		if !t.speaksAt(i) {
			continue
		}
		for _, end := range form.ends(t.own, i) {
			if t.ends(end) || shouts.MatchString(t.own[end:]) {
				if means(t.own, i, end) {
					return true
				}
				left--
			}
		}
	}
	return false
}

// speaks reports whether the user's latest turn holds a word, in any letters' case.
func (s *Session) speaks(word string) bool {
	if len(s.turns) == 0 || word == "" {
		return false
	}
	t := &s.turns[len(s.turns)-1]
	for i := 0; i+len(word) <= len(t.own); i++ {
		if strings.EqualFold(t.own[i:i+len(word)], word) && t.speaksAt(i) && t.ends(i+len(word)) {
			return true
		}
	}
	return false
}

// speaksAt reports whether a word may begin at i, behind a # too.
func (t *turn) speaksAt(i int) bool {
	return t.begins(i) || i > 0 && t.own[i-1] == '#' && t.begins(i-1)
}

const quoteMark = "[\"'`´“”„‟‘’‚‛«»‹›]"

// mostSaid bounds how often one phrase is looked at.
const mostSaid = 64

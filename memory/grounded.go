package memory

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/strictjson"
)

// bears reports whether an observation has in it what a claim states, as far as
// code can tell: the claim's value, or a name of the entity that is its value,
// and whatever in its words and qualifiers has a digit or is an address, unless
// that is a name of what the claim is about. Plain words are not compared: a
// claim may be worded as one likes. A value of true, false or null is in no
// text.
//
// Under Flags.Grounded an observation that does not bear a claim out supports
// it as the agent's inference from it, whoever the words are of. Without that,
// any true observation could be put behind any statement.
func (s *State) bears(ob *Observation, pr *Proposition) bool {
	in := saying{raw: ob.Raw, whole: ob.Whole || ob.Between || ob.Evidence == ""}
	if pr.Object != "" && !slices.ContainsFunc(s.namesOf(ob, pr.Object), in.has) {
		return false
	}
	if pr.Object == "" {
		for _, v := range leaves(pr.Literal) {
			if !in.has(v) {
				return false
			}
		}
	}
	marks := marked(pr.Text)
	for _, v := range leaves(pr.Quals) {
		marks = append(marks, marked(v)...)
	}
	var names []string
	for _, m := range marks {
		if in.has(m) {
			continue
		}
		if names == nil {
			for _, en := range slices.Concat(pr.About, []string{pr.Subject, pr.Object}) {
				names = append(names, s.namesOf(ob, en)...)
			}
		}
		if !slices.ContainsFunc(names, func(n string) bool { return saying{raw: n, whole: true}.has(m) }) {
			return false
		}
	}
	return true
}

// namesOf are the names of an entity that an observation may use for it: the
// one it was made with, and every other that is at least as well attested.
func (s *State) namesOf(ob *Observation, entity string) (out []string) {
	ids := []string{entity}
	if to := s.resolve(entity); to != entity {
		ids = append(ids, to)
	}
	for _, id := range ids {
		en := s.entities.get(id)
		if en == nil {
			continue
		}
		for i, n := range en.Names {
			by := s.observations.get(n.Observation)
			if !n.Gone && (i == 0 || by != nil && by.Status == Ingested && by.Level >= min(2, ob.Level)) {
				out = append(out, n.Text)
			}
		}
	}
	return out
}

// leaves are the texts and numbers of a JSON value.
func leaves(value string) (out []string) {
	if value == "" {
		return nil
	}
	strictjson.Walk([]byte(value), func(_ []string, leaf []byte) bool {
		if t, isText := strictjson.Text(leaf); isText {
			if strings.TrimSpace(t) != "" {
				out = append(out, t)
			}
		} else if strictjson.KindOf(leaf) == strictjson.Number {
			out = append(out, string(leaf))
		}
		return true
	}, nil)
	return out
}

// marked are the parts of a text between spaces that have a digit or are an
// address, without the punctuation around them.
func marked(text string) (out []string) {
	for _, w := range strings.Fields(text) {
		if !strings.ContainsFunc(w, unicode.IsDigit) && !strings.Contains(w, "@") && !strings.Contains(w, "://") {
			continue
		}
		w = strings.TrimRightFunc(w, plain)
		for _, end := range []string{"'s", "’s"} {
			w = strings.TrimSuffix(w, end)
		}
		for w != "" {
			r, n := utf8.DecodeRuneInString(w)
			if !plain(r) || signed(r) && n < len(w) && isDigit(w[n:]) {
				break
			}
			w = w[n:]
		}
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

func plain(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) }

func signed(r rune) bool { return r == '-' || r == '+' || r == '\u2212' }

func isDigit(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsDigit(r)
}

// saying is a text somebody said. Where it is not whole, its first and last
// word may be parts of something.
type saying struct {
	raw   string
	whole bool
}

// has reports whether a value stands in the text: as a leaf, if it is JSON, or
// else between other words. A value without a digit may be spelled in other
// cases and with other punctuation.
func (in saying) has(value string) bool {
	value = strings.TrimSpace(value)
	if value == "" || len(value) > len(in.raw)+8 {
		return false
	}
	b, found := []byte(in.raw), false
	if k := strictjson.KindOf(b); (k == strictjson.Object || k == strictjson.Array) && strictjson.Check(b, valueLimits) == nil {
		strictjson.Walk(b, func(_ []string, leaf []byte) bool {
			t, isText := strictjson.Text(leaf)
			found = isText && saying{t, true}.stands(value) || !isText && string(leaf) == value
			return !found
		}, nil)
		return found
	}
	return in.stands(value)
}

func (in saying) stands(value string) bool {
	for at := 0; ; {
		i := strings.Index(in.raw[at:], value)
		if i < 0 {
			break
		}
		start, end := at+i, at+i+len(value)
		if (in.whole || start > 0 && end < len(in.raw)) && ends(in.raw[:start], value) && begins(in.raw[end:]) {
			return true
		}
		_, n := utf8.DecodeRuneInString(in.raw[start:])
		at = start + n
	}
	if strings.ContainsFunc(value, unicode.IsDigit) {
		return false
	}
	words := strings.Fields(normName(in.raw))
	if !in.whole {
		if len(words) < 3 {
			return false
		}
		words = words[1 : len(words)-1]
	}
	n := normName(value)
	return n != "" && strings.Contains(" "+strings.Join(words, " ")+" ", " "+n+" ")
}

// ends reports whether what stands before a value ends there: the value does
// not go on to the left, as a number, a word or an address does, or has a sign.
func ends(before, value string) bool {
	if before == "" {
		return true
	}
	r, n := utf8.DecodeLastRuneInString(before)
	beyond, _ := utf8.DecodeLastRuneInString(before[:len(before)-n])
	if isDigit(value) && (signed(r) || r == '.') {
		return false
	}
	return !joins(r, beyond, len(before) > n)
}

// begins reports whether what stands behind a value begins there.
func begins(after string) bool {
	if after == "" {
		return true
	}
	r, n := utf8.DecodeRuneInString(after)
	beyond, _ := utf8.DecodeRuneInString(after[n:])
	return !joins(r, beyond, len(after) > n)
}

// joins reports whether a rune beside a value makes it a part of something
// longer.
func joins(r, beyond rune, more bool) bool {
	if !plain(r) {
		return true
	}
	switch r {
	case ':', ',', ' ', '\u00a0', '\u202f':
		// 10:30 and 1,500 are one; "total:300" and "a, b" are two.
		return r != ' ' && more && unicode.IsDigit(beyond)
	case '.', '-', '_', '/', '@', '+', '\u2010', '\u2011', '\u2212', '\'', '\u2019':
		return more && !plain(beyond)
	}
	return false
}

// inferred is what an observation's word is worth for a claim it does not bear
// out: no more than what the agent makes of it.
func (d *draftEvent) inferred(ed *Edge) {
	own := d.p.class(ClassAgentInference, d.mode)
	ed.Class, ed.Level, ed.Group = ClassAgentInference, int(own.Level), "pool:"+string(ClassAgentInference)
	ed.Reliability = min(ed.Reliability, own.Reliability)
}

// levelOf is the level at which an observation was linked to a claim, -1 if it
// was not.
func (d *draftEvent) levelOf(typ EdgeType, obs, id string) int {
	if l := d.links.get(join(string(typ), obs, id)); l != nil {
		return d.edges.get(l.ID).Level
	}
	return -1
}

package certificate

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// seen is a link that stood in a result where no model wrote it (R20).
func (s *Session) seen(c *call, l *leaf) bool {
	text, _ := l.value.Text()
	_, _, why := provenance.Canonical(provenance.URL, l.value)
	if why != "" && !strings.Contains(text, "://") {
		_, _, why = provenance.Canonical(provenance.URL, strictjson.StringOf("https://"+text))
	}
	if why != "" || s.secrets || c.effect&^policy.Read != policy.Egress || slices.ContainsFunc(s.holding(l.value, provenance.Untyped), func(p *place) bool {
		return p.rule != nil && p.rule.Secret
	}) {
		return false
	}
	bare := strings.TrimPrefix(strings.TrimPrefix(text, "https://"), "http://")
	l.open = true
	return slices.ContainsFunc(s.at(l.Evidence[0]), func(p *place) bool {
		in, ok := p.value.Text()
		return ok && p.label > writ.Model && !p.echoed && !p.reflected && !(p.rule != nil && p.rule.Secret) && (stands(in, text) || stands(in, bare))
	})
}

// stands reports whether a link stands in a text, or is it.
func stands(in, link string) bool {
	for i := 0; link != "" && i+len(link) <= len(in); i++ {
		if in[i:i+len(link)] != link {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(in[:i])
		rest := strings.TrimLeft(in[i+len(link):], ".,;:!?*_")
		after, _ := utf8.DecodeRuneInString(rest)
		inside := unicode.IsLetter(before) || unicode.IsNumber(before) || unicode.IsMark(before) || strings.ContainsRune("/@.-_\\", before)
		if i == 0 || !inside {
			if rest == "" || unicode.IsSpace(after) || strings.ContainsRune("<>\"'`()[]{}|", after) {
				return true
			}
		}
	}
	return false
}

// rooted reports whether a value says to which file a local text goes (R14): a vouched
// target, or where the contract has none a selector of a closed collection.
func (s *Session) rooted(c *call) bool {
	declared := slices.ContainsFunc(c.rules, func(r policy.ArgRule) bool { return r.Role == policy.Target })
	return slices.ContainsFunc(c.leaves, func(l *leaf) bool {
		return l.plain() && (l.role == policy.Target || !declared && l.role == policy.Selector && l.rule != nil && c.closed(l.rule.Collection) && !l.open) || l.Rule == "approval"
	})
}

// composed checks a free text (R14): somebody whom the user or the operator named reads
// it, no secret was told, and each atom of it stands in the evidence.
func (s *Session) composed(c *call, l *leaf) string {
	if c.blank(l) {
		return ""
	}
	operators, named := true, false
	for _, r := range c.leaves {
		if !r.names() || r.answer || empty(r.value) || r.coined() || s.madeThere(c, r) || s.listedThere(c, r) {
			continue // who reads the last three is who reads what they are in
		}
		named = true
		if s.unread(c, r) {
			operators = false
			continue
		}
		operators = operators && (r.Rule == "const" || r.Rule == "output" && !r.open && c.Policy.Collections[r.collection()].MayHoldSecrets)
		if copied := r.Rule == ofNamed && l.Rule == "user" && len(l.Evidence) == 1 && s.dictated(l.Evidence[0]); !copied && !s.anchored(c, r, true) && r.Rule != "approval" {
			return "nobody named who reads the text"
		}
	}
	if l.Rule == "open" && !named && c.contract.NoArgs != policy.NoArgsAllow && !s.ordersText(c, l) {
		return "nothing says who reads the text"
	}
	if l.Rule != "open" {
		return "" // the user's own words, or what a tool said
	}
	if s.secrets && (!operators || !named) {
		return "a secret was told before"
	}
	// What stands in several texts of one rule is read on, by the first of the model's.
	var texts []string
	var first *leaf
	for _, o := range c.leaves {
		if o.rule == l.rule && !o.key && !o.answer {
			if first == nil && (o.Rule == "open" || o.Rule == "approval") && !c.blank(o) {
				first = o
			}
			texts = append(texts, o.says())
		}
	}
	atoms := provenance.Atoms(l.says())
	if first == l && len(texts) > 1 && !c.isPart(l.path) && !l.rule.Label {
		atoms = slices.Concat(atoms, provenance.Atoms(strings.Join(texts, "")), provenance.Atoms(strings.Join(texts, "\n")))
	}
	rest := l.Evidence
	for _, a := range atoms {
		if number, counts := a.Counts(); counts && c.isOn(number) {
			continue
		}
		n := s.stood(c, a, rest)
		if n == 0 {
			return "something in it has no evidence"
		}
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return "it rests on more than it says"
	}
	return ""
}

// isOn reports whether the number is of what the act is on, and people write it with a #.
func (c *call) isOn(number string) bool {
	for _, l := range c.leaves {
		if !l.answer && !l.key && l.rule != nil && slices.Contains(l.rule.Words, "#") && l.value.Kind() == strictjson.Number && string(l.value.Raw()) == number {
			return true
		}
	}
	return false
}

// blank is a free text without a word, in an act that stores nothing, or what it newly makes
// for people whom it names: it tells nobody anything, and takes nothing away.
func (c *call) blank(l *leaf) bool {
	text, is := l.value.Text()
	return is && text == "" && l.Rule == "open" && len(l.Evidence) == 0 && (c.effect&(policy.Write|policy.Delete) == 0 || c.makesNew())
}

// makesNew reports whether an act that deletes nothing answers with what it newly made, and
// none of its arguments says what it is on: who is mailed or called is nothing that it is on.
func (c *call) makesNew() bool {
	if c.effect&policy.Delete != 0 || c.contract == nil {
		return false
	}
	for _, l := range c.leaves {
		reached := l.role == policy.Target && (l.typ() == provenance.Email || l.typ() == provenance.Phone)
		if l.names() && !reached && !empty(l.value) {
			return false
		}
	}
	return slices.ContainsFunc(c.contract.Outputs, func(o provenance.OutputRule) bool { return o.Creates })
}

// unread reports whether all that showed a record since the latest act says that nobody
// reads it beside its owner, whom the user's or the operator's side chose (R14), and each
// time nothing beside it was just like it; and whether the act sends nothing, or the record
// may be what goes with the text.
func (s *Session) unread(c *call, l *leaf) bool {
	is := false
	for _, p := range s.holding(l.value, l.typ()) {
		if p.acts < s.acts || !p.member(l.collection()) || p.late && p.unread && !s.twin(p) {
			continue
		}
		if is = p.unread && p.label >= writ.System && s.chosen(c, l, p) && !s.twin(p); !is {
			return false
		}
	}
	return is && l.Rule == "output" && c.effect&(policy.Send|policy.Egress|policy.Transfer|policy.Auth) == 0
}

// twin reports whether a record stands beside one that is just like it.
func (s *Session) twin(p *place) bool {
	return slices.ContainsFunc(s.places[p.evidence], func(q *place) bool {
		return q != p && q.rule == p.rule && q.unread && q.others == p.others
	})
}

// stood returns how many of the references are of an atom, 0 if they are of none.
func (s *Session) stood(c *call, a provenance.Atom, refs []gate.Ref) int {
	types := []provenance.Type{a.Type, provenance.Untyped}
	if a.Kind == provenance.NumberAtom {
		types = append(types, provenance.Phone, provenance.IBAN)
	}
	if len(refs) == 0 || a.Kind == provenance.HiddenAtom || a.Kind == provenance.MarkupAtom || a.Kind == provenance.ManyAtoms {
		return 0
	}
	if n, ok := a.Counts(); ok && s.typed(&leaf{value: strictjson.StringOf(n), rule: &policy.ArgRule{Words: provenance.Numbering, Role: policy.Selector}, role: policy.Selector}, refs[0]) {
		return 1
	}
	if a.Within != "" && s.typed(&leaf{value: strictjson.StringOf(a.Within), rule: &policy.ArgRule{}}, refs[0]) {
		return 1
	}
	for _, t := range types {
		l := &leaf{value: strictjson.StringOf(a.Text), rule: &policy.ArgRule{Type: t}}
		if s.typed(l, refs[0]) {
			return 1
		}
		for _, p := range s.system(refs[0]) {
			small := provenance.SmallSpace(t, l.value)
			if small || p.rule == nil || p.label < writ.System || !equal(l.value, t, p) || !a.Names() && !s.chosen(c, nil, p) {
				continue
			}
			if !a.Names() {
				return 1
			}
			if len(refs) > 1 && s.names(c, p.collection(), []string{p.collection()}, l.value, refs[1], true) {
				return 2
			}
		}
	}
	return 0
}

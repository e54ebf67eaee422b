package certificate

import (
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// What the user's words call on the page that the browser listed last (R28).

// ruleElement is the rule of the reference of such an element.
const ruleElement = "derived:" + policy.Element

// listed is what a result listed of a page.
type listed struct {
	evidence     uint32
	server, host string
	of           []provenance.Element
}

// press is a click by a turn's words, on what has a name.
type press struct {
	turn  uint32
	name  string
	leads bool // it orders nothing, and leads on
}

// listsPage takes note of a page that a result lists whole, and of none where it lists a part.
func (s *Session) listsPage(x *extraction, p *place, v strictjson.Value) {
	s.page = nil
	if !p.rule.Elements || x.forward().Len() > 0 {
		return
	}
	for i, block := range v.Get("content").Elements() {
		if text, _ := block.Get("text").Text(); i == p.rule.Block {
			link, _ := p.value.Text()
			s.page = &listed{x.evidence, x.server, provenance.LinkHost(link), provenance.Elements(text)}
		}
	}
}

// isTyping reports whether all that a call does is to type what was ordered, with nothing switched on.
func (s *Session) isTyping(c *call) bool {
	if _, goes := c.Policy.Goes(c.server, c.tool, c.effect); goes || c.contract == nil || len(c.contract.Where) == 0 {
		return false
	}
	ordered := false
	for _, l := range c.leaves {
		ordered = ordered || l.rule != nil && len(l.rule.Orders) > 0
		if said := string(l.value.Raw()); l.role == policy.Control && said != "false" && said != "null" {
			return false
		}
	}
	return ordered
}

// onPage returns what an argument refers to, nil where the last listing does not have it once.
func (s *Session) onPage(l *leaf) (e *provenance.Element) {
	ref, _ := l.value.Text()
	if s.page == nil || ref == "" {
		return nil
	}
	for i := range s.page.of {
		if s.page.of[i].Ref != ref {
			continue
		}
		if e != nil {
			return nil
		}
		e = &s.page.of[i]
	}
	return e
}

// clicks reports whether an argument refers to what the words that a trace quotes call, and to
// nothing else on that page.
func (s *Session) clicks(c *call, l *leaf) bool {
	e := s.onPage(l)
	if e == nil || !e.Plain || l.key || l.answer || s.secrets || s.page.server != c.server || policy.Committing(e.Name) || len(l.Evidence) != 2 || l.Evidence[0].Evidence != s.page.evidence {
		return false
	}
	if l.Evidence[0].Label != writ.External || !slices.ContainsFunc(s.unlabelled(l.Evidence[0]), func(p *place) bool { return p.rule != nil && p.rule.Elements }) {
		return false
	}
	said := l.Evidence[1]
	t, _, ok := s.quote(said)
	if !ok || said.Evidence < s.turns[len(s.turns)-1].evidence || !s.isMeant(said, s.page.host) {
		return false
	}
	return slices.ContainsFunc(c.from(l), func(src policy.Source) bool {
		by := provenance.Clicks{Names: src.Phrases, Orders: l.rule.Orders, Nouns: l.rule.Words}
		is := provenance.Calls(t.own, *e, by)
		return src.Op == policy.Element && is.Start == said.Start && is.End == said.End && s.undone(press{t.evidence, is.As, !is.Orders}) &&
			(e.Role != "link" || e.LeadsWithin(s.page.host, is.Orders)) && s.alone(t.own, e, is, by)
	})
}

// alone reports whether no other element is called by a part of those words, but for the same link.
func (s *Session) alone(own string, e *provenance.Element, is provenance.Calling, by provenance.Clicks) bool {
	read := map[[2]string]bool{}
	for i := range s.page.of {
		o := &s.page.of[i]
		again := o.Role == "link" && o.Plain && o.Role == e.Role && o.Name == e.Name && o.Link == e.Link
		said := [2]string{o.Role, strings.ToLower(o.Name)}
		if o == e || again || read[said] {
			continue
		}
		read[said] = true
		if is2 := provenance.Calls(own, *o, by); is2.End > is2.Start && is2.Start < is.End && is2.End > is.Start {
			return false
		}
	}
	return true
}

// undone reports whether a turn's words may have that done yet.
func (s *Session) undone(p press) bool {
	var all []press
	for _, o := range s.pressed {
		if o.turn == p.turn {
			all = append(all, o)
		}
	}
	return len(all) < 6 && !slices.ContainsFunc(all, func(o press) bool { return o.name == p.name && !(o.leads && p.leads) })
}

// press takes note of a click by the user's words.
func (s *Session) press(c *call) {
	for _, l := range c.leaves {
		if e := s.onPage(l); e != nil && l.Rule == ruleElement && len(l.Evidence) == 2 {
			s.pressed = append(s.pressed, s.pressing(c, l, e))
		}
	}
}

// pressing is a click by what a trace quotes, by which source that counts.
func (s *Session) pressing(c *call, l *leaf, e *provenance.Element) press {
	t, _, _ := s.quote(l.Evidence[1])
	p := press{turn: l.Evidence[1].Evidence}
	for _, src := range c.from(l) {
		if is := provenance.Calls(t.own, *e, provenance.Clicks{Names: src.Phrases, Orders: l.rule.Orders, Nouns: l.rule.Words}); src.Op == policy.Element && is.End > is.Start {
			p.name, p.leads = is.As, !is.Orders
		}
	}
	return p
}

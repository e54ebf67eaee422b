package gate

import (
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// # What the user's words call on a page (R28)
//
// A click does what the page makes of it, so a person looks at each. But where the user said to do it, he said the
// very words that stand on what does: "book a table at osteria.example", and there a link "Book a table". Then a
// person would be asked what he said. The act passes by these, all of them:
//
//   - The browser itself listed the element: its reference, its role and its name, in the newest listing of the
//     page, whole. What the page's author writes makes no line of that list. Since then its server was called to
//     type at most: a page that opened another one and closed itself leaves the browser there, and whatever looks
//     at that one gives the same references to what stands on it.
//   - The page is on the host that the turn with the order names, or the only one of the session.
//   - The element is called by the user's words, and nothing else there is by the same (provenance.Calls). It
//     stands in no frame, which may be another's; a link stays on that host.
//   - Its name speaks of nothing that is paid, ended or destroyed, and no secret was told in the session.
//   - What is ordered once is done once: not the same name again by one turn, and few by it at all.
//
// What the agent calls it says nothing. Who had the agent read a page of his gets no click on his own page by it, for the
// user named another; on the user's page none but on what the user's order is called by, for which the user is asked in the
// worst case as he was before. Who can write on the site that the user named can put up a link of that name, where the
// site has none, to a page of that site.

// page is what can be clicked on where the browser is.
type page struct {
	server, host   string
	evidence       uint32
	tool, at, link string // where the browser says where it is, and where
	elements       []provenance.Element
}

// click is one that rests on a turn: the words of a name, and how often it may.
type click struct {
	turn uint32
	name string
	way  bool // a link that leads on
}

// mostClicks bounds the clicks that rest on one turn.
const mostClicks = 6

// ruleElement is the rule of such a reference.
const ruleElement = "derived:" + policy.Element

// pageOf is what a result shows of a page, where its call asked for no part of one.
func pageOf(d *Decision, r Result, leaves []provenance.Leaf) *page {
	for _, l := range leaves {
		if l.Rule == nil || !l.Rule.Elements || d.Arguments.Len() > 0 {
			continue
		}
		link, _ := l.Value.Text()
		at := strictjson.Pointer([]string{"content", itoa(l.Rule.Block), "text"})
		text, _ := r.Value.At(at).Text()
		if all := provenance.Elements(text); all != nil {
			return &page{server: d.Call.Server, host: provenance.LinkHost(link), elements: all, evidence: r.Evidence, tool: toolOf(d.Call), at: at, link: strings.Clone(link)}
		}
	}
	return nil
}

// types reports whether a call does no more than type what the user ordered to be typed where that is done:
// no switch of it is on, which could send the text or have it list the page.
func (j *judge) types() bool {
	_, goes := j.in.Policy.Goes(j.in.Call.Server, toolOf(j.in.Call), j.d.Effect)
	return !goes && len(j.contract.Where) > 0 &&
		slices.ContainsFunc(j.leaves, func(l *leaf) bool { return l.rule != nil && len(l.rule.Orders) > 0 }) &&
		!slices.ContainsFunc(j.leaves, func(l *leaf) bool {
			return l.role == policy.Control && !l.empty && string(l.value.Literal()) != "false"
		})
}

// fromElement accepts the reference of what the user's words call.
func (j *judge) fromElement(l *leaf, src policy.Source) writ.Reason {
	s := j.session()
	if s == nil || l.key || l.answer || j.strict || s.page == nil || s.page.server != j.in.Call.Server || s.ledger.Secrets() {
		return writ.ProvenanceUnseen
	}
	is := func(e provenance.Element) bool { return e.Ref == l.text && l.text != "" }
	i := slices.IndexFunc(s.page.elements, is)
	shown, seen := s.ledger.Worth(s.page.evidence, s.page.server, s.page.tool, s.page.at, strictjson.StringOf(s.page.link))
	if i < 0 || !seen || slices.ContainsFunc(s.page.elements[i+1:], is) {
		return writ.ProvenanceUnseen
	}
	e := s.page.elements[i]
	q, by, ok := s.ledger.Calls(s.page.elements, e, provenance.Clicks{Names: src.Phrases, Orders: l.rule.Orders, Nouns: l.rule.Words})
	if !ok || !e.Plain || policy.Committing(e.Name) || e.Role == "link" && !e.LeadsWithin(s.page.host, by.Orders) || !j.meansHost(q.Evidence, s.page.host) {
		return writ.ProvenanceUnseen
	}
	c := click{turn: q.Evidence, name: by.As, way: !by.Orders}
	if !s.mayClick(c) {
		return writ.ProvenanceUnseen
	}
	if !slices.Contains(j.d.basis.clicks, c) {
		j.d.basis.clicks = append(j.d.basis.clicks, c)
	}
	at := refOf(shown)
	at.Label = writ.External // whoever said the same before: the browser says where it is
	l.founded = founded{rule_: ruleElement, label: writ.External, refs: []Ref{at, quoteOf(q)}, newest: max(q.Evidence, shown.Evidence), open: true}
	return ""
}

// mayClick reports whether a turn has not been followed yet by that click, nor by too many.
func (s *Session) mayClick(c click) bool {
	n := 0
	for _, o := range s.clicked {
		if o.turn != c.turn {
			continue
		}
		if n++; n >= mostClicks || o.name == c.name && !(o.way && c.way) {
			return false
		}
	}
	return true
}

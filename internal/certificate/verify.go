package certificate

import (
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// verify checks the certificate of an act: each trace by its rule, and then what the
// arguments are to each other.
func (s *Session) verify(c *call) error {
	r := c.Record
	if !Accepted(r) || r.Reason != "" || len(r.Failures) > 0 {
		return wrong(nil, "it was not accepted")
	}
	if r.Look {
		return wrong(nil, "Writ makes no act for itself")
	}
	if !c.strict && s.refused(c) {
		return wrong(nil, "a person said no to it")
	}
	if err := c.forms(s); err != nil {
		return err
	}
	s.keptOn(c)
	for _, l := range c.leaves {
		for _, e := range l.Evidence {
			if e.Evidence == 0 || e.Evidence >= r.Next {
				return wrong(l, "it rests on what came after the decision")
			}
		}
		if why := s.trace(c, l); why != "" {
			return wrong(l, "%s", why)
		}
	}
	for _, l := range c.leaves {
		if l.Rule == "local" && !s.rooted(c) {
			return wrong(l, "nothing says which file the text goes to")
		}
		if !c.strict && !l.key && l.rule != nil && l.rule.Composed && l.role == policy.Content && l.Rule != "approval" && l.Rule != keptCall {
			if why := s.composed(c, l); why != "" {
				return wrong(l, "%s", why)
			}
		}
		if !s.commanded(c, l) {
			return wrong(l, "no order of the user's is of it")
		}
		if c.destroys() && l.names() && !s.anchored(c, l, false) && l.Rule != "approval" && !c.governed && l.Rule != "protocol" {
			return wrong(l, "the user did not name the record it destroys")
		}
	}
	if c.governed {
		return nil
	}
	if l := s.unbound(c); l != nil {
		return wrong(l, "it is of another record")
	}
	return s.whole(c)
}

// whole is what is asked of the act as a whole (R21, R25).
func (s *Session) whole(c *call) error {
	named, decides := false, false
	for _, l := range c.leaves {
		named = named || l.names() && l.plain() && s.saysWhat(c, l)
		decides = decides || l.plain() && (l.names() && !s.madeThere(c, l) && s.saysWhat(c, l) || l.role == policy.Amount && l.Rule != ruleDue)
		if l.contested && c.contract.Contested != policy.ContestedAccepted && (c.contract.Contested == policy.ContestedRefused || !s.approved(c, l.pointer, writ.PolicyContested)) {
			return wrong(l, "a stranger's text carries it too")
		}
	}
	if c.effect&policy.Delete != 0 && !c.strict {
		decides = named
	}
	said := c.contract.NoArgs == policy.NoArgsAllow ||
		c.contract.NoArgs == policy.NoArgsUser && !c.strict && s.saysPhrase(c) ||
		c.keptWith(false) || c.keptWith(true) ||
		c.contract.NoArgs != policy.NoArgsRefuse && s.approved(c, "", writ.PolicyNoArguments)
	if !decides && !said {
		return wrong(nil, "nothing in it says what it acts on")
	}
	return nil
}

// trace checks one trace. It answers with what does not hold, "" for nothing.
func (s *Session) trace(c *call, l *leaf) string {
	label, refs := writ.Model, 0
	holds := false
	switch {
	case c.governed:
		holds = l.Rule == "governed"
	case l.Rule == "const", l.Rule == "grown":
		if label = writ.Operator; l.Rule == "grown" {
			refs = -1 // where it is of a record
		}
		holds = s.lists(c, l, func(src policy.Source) bool { return src.Grown == (l.Rule == "grown") })
	case l.Rule == keptCall:
		if holds, label = c.kept(l), writ.User; l.role == policy.Content {
			label = writ.Model
		}
		l.open = l.role != policy.Content
	case l.Rule == "catalog":
		label = writ.System
		holds = l.enum && l.role == policy.Enum && !l.key && c.accepts(l, policy.FromCatalog)
	case l.Rule == "protocol":
		holds = c.declined(l)
	case l.Rule == "local":
		holds = !c.strict && l.rule != nil && l.rule.Local && l.role == policy.Content && !l.key
	case l.Rule == "open":
		refs = -1
		holds = !c.strict && l.rule != nil && l.rule.Composed && l.role == policy.Content && !l.key
	case l.Rule == "approval":
		refs = 1
		label, holds = s.approval(c, l)
	case c.strict && l.Rule != "output":
	case l.Rule == "derived:template_variable":
		label = writ.System
		holds = c.accepts(l, policy.FromDerived, "template_variable") && s.variable(c, l)
	case l.Rule == ruleDue:
		holds = c.due(l)
	case len(l.Evidence) == 0:
		return "it names no evidence"
	case strings.HasPrefix(l.Rule, "user"):
		refs = -1
		if label = writ.User; l.Rule == "user:day" {
			label = writ.Model // the hour
		}
		holds = c.accepts(l, policy.FromUser) && s.user(c, l)
	case l.Rule == grownOutput:
		refs = -1 // where it is of a record
		label, holds = writ.System, s.raised(c, l, l.Evidence[0])
		l.open = true
	case l.Rule == "output", l.Rule == "party":
		refs = -1
		holds = s.output(c, l)
		if label = l.Evidence[0].Label; l.Rule == "party" {
			label = writ.User
		}
	case l.Rule == "invented":
		refs = 1
		holds = s.madeThere(c, l) || l.names() && !l.key && !l.answer && c.effect&^(policy.Read|policy.Write) == 0 && s.invented(c, l) &&
			(s.at(l.Evidence[0])[0].typ == provenance.Path || slices.ContainsFunc(c.leaves, func(o *leaf) bool { return o.role == policy.Content && o.rule != nil && o.rule.Local }))
	case l.Rule == "seen":
		refs = 1
		label, holds = l.Evidence[0].Label, c.accepts(l, policy.FromSeen) && s.seen(c, l)
	case l.Rule == "said_by":
		refs = 3
		holds = len(l.Evidence) == refs && l.contested == (c.effect&policy.Transfer != 0) && s.saidBy(c, l)
		l.open = true
		if holds {
			label = min(l.Evidence[0].Label, l.Evidence[1].Label)
		}
	case l.Rule == ofNamed:
		refs = 4
		holds = len(l.Evidence) == refs && s.ofNamed(c, l)
		l.open = true
		if holds {
			label = min(l.Evidence[0].Label, l.Evidence[1].Label)
		}
	case l.Rule == ruleElement:
		refs, label = 2, writ.External
		holds = s.clicks(c, l)
		l.open = true
	case strings.HasPrefix(l.Rule, "derived:"):
		refs = -1
		label, holds = s.derived(c, l, strings.TrimPrefix(l.Rule, "derived:"))
	default:
		return "there is no such rule"
	}
	switch {
	case !holds:
		return "it is not what the rule says"
	case refs >= 0 && len(l.Evidence) != refs:
		return "it rests on more or less than the rule says"
	case l.Label != label:
		return "its label is not that of what it rests on"
	}
	for _, e := range l.Evidence {
		if !s.there(c, l, e) {
			return "what it rests on is not there"
		}
	}
	return ""
}

// there reports whether a reference names something that was recorded, at no higher
// label than that is worth.
func (s *Session) there(c *call, l *leaf, e gate.Ref) bool {
	switch e.Tool {
	case userTool:
		_, _, ok := s.quote(e)
		return ok && e.Label == writ.User
	case approvalTool:
		return l.Rule == "approval"
	}
	return len(s.at(e)) > 0 || (l.Rule == grownOutput || l.Rule == ruleElement) && len(s.unlabelled(e)) > 0
}

// unlabelled is at, whatever it is worth: of what the server gives (WritesServer) the
// reference states what the contract calls it.
func (s *Session) unlabelled(e gate.Ref) (out []*place) {
	for _, p := range s.places[e.Evidence] {
		r := p.ref()
		if r.Label = e.Label; r == e {
			out = append(out, p)
		}
	}
	return out
}

// at returns what stands where a reference says, worth the label it states. Only the
// places of R38 may have taken something from that.
func (s *Session) at(e gate.Ref) (out []*place) {
	pointer, err := strictjson.ParsePointer(e.Pointer)
	within, err2 := strictjson.ParsePointer(e.Inner)
	if err != nil || err2 != nil {
		return nil
	}
	for _, p := range s.places[e.Evidence] {
		if outer, inner, line := p.parts(); line != e.Line || !slices.Equal(outer, pointer) || !slices.Equal(inner, within) {
			continue // told without writing its pointer: a result has thousands of places
		}
		r := p.ref()
		if r.Label > e.Label && p.lowered && (p.rule == nil || !p.rule.Authoritative) {
			r.Label = e.Label
		}
		if r == e {
			out = append(out, p)
		}
	}
	return out
}

// system is at, of what is worth enough to vouch.
func (s *Session) system(e gate.Ref) []*place {
	if e.Label < writ.System {
		return nil
	}
	return s.at(e)
}

// declined reports whether a value is the one word of an answer that gives none (R31).
func (c *call) declined(l *leaf) bool {
	text, _ := l.value.Text()
	return l.answer && l.alone && !l.key && len(l.path) == 2 && l.path[1] == "action" && (text == "decline" || text == "cancel")
}

// approval reports whether a person allowed this very call, and at what label.
func (s *Session) approval(c *call, l *leaf) (writ.Label, bool) {
	if len(l.Evidence) != 1 || c.strict || l.Evidence[0].Tool != approvalTool {
		return 0, false
	}
	e := l.Evidence[0]
	a, ok := s.allowed(c)
	c.answer = a.Evidence
	shown := slices.ContainsFunc(a.Covers, func(of gate.Covered) bool { return of.Pointer == l.pointer && writ.Askable(of.Reason) })
	if !ok || !shown || a.Evidence != e.Evidence || a.Label != e.Label || e != (gate.Ref{Evidence: e.Evidence, Tool: approvalTool, Label: e.Label}) {
		return 0, false
	}
	if l.open = l.role != policy.Content; !l.open {
		return writ.Model, true
	}
	return a.Label, true
}

// approved reports whether a person allowed the call though that stands against it.
func (s *Session) approved(c *call, pointer string, r writ.Reason) bool {
	a, ok := s.allowed(c)
	if ok {
		c.answer = a.Evidence
	}
	return ok && slices.Contains(a.Covers, gate.Covered{Pointer: pointer, Reason: r})
}

// allowed returns the newest answer to this very call, if it is a yes, used for nothing
// yet and not older than it counts for.
func (s *Session) allowed(c *call) (Approval, bool) {
	a, ok := s.answered(c)
	return a, ok && a.Yes && !s.used[a.Evidence] && c.Time.Sub(a.At) < gate.ApprovalHolds
}

// answered returns the newest answer to this very call: the same tool and bytes that are sent,
// and the same policy, or one of which this is no more than that with lines kept since.
func (s *Session) answered(c *call) (Approval, bool) {
	if len(s.approvals) == 0 {
		return Approval{}, false
	}
	acts := s.answersTo(c)
	for _, a := range slices.Backward(s.approvals) {
		if slices.Contains(acts, a.Act) {
			return a, true
		}
	}
	return Approval{}, false
}

// refused reports whether the newest answer to some spelling of a call is a no that holds,
// and the user ordered nothing after it: what he agrees to then may be to leave it.
func (s *Session) refused(c *call) bool {
	if len(s.approvals) == 0 {
		return false
	}
	says, _, _ := strings.Cut(s.answersTo(c)[0], ".")
	spelled := map[string]bool{}
	for _, a := range slices.Backward(s.approvals) {
		if !strings.HasPrefix(a.Act, says+".") || spelled[a.Act] {
			continue
		}
		if spelled[a.Act] = true; !a.Yes && c.Time.Sub(a.At) < gate.ApprovalHolds && !slices.ContainsFunc(s.turns, func(t turn) bool { return t.evidence > a.Evidence && !provenance.Assents(t.own) }) {
			return true
		}
	}
	return false
}

// answersTo are how an answer may name a call: a digest of what it says, a point, and one of how
// that is written and of the policy, or of one from which that grew.
func (s *Session) answersTo(c *call) []string {
	if c.answersTo != nil {
		return c.answersTo
	}
	digest := func(policy []byte, form func([]byte) []byte) string {
		key := append([]byte("approval\x00"), policy...)
		for _, b := range [][]byte{[]byte(c.server), []byte(c.Record.Tool), []byte(c.method), form(c.forward().Raw()), form(c.Answers.Raw())} {
			key = append(key, s.digest(append([]byte{}, b...))...)
		}
		return s.digest(key)
	}
	says := digest(nil, func(raw []byte) []byte {
		if same, err := strictjson.Canonical(raw); err == nil {
			return same
		}
		return raw
	})
	for _, p := range c.Policy.Lineage() {
		c.answersTo = append(c.answersTo, says+"."+digest(p[:], func(raw []byte) []byte { return raw }))
	}
	return c.answersTo
}

// equal reports whether a place holds the value of an argument, exactly or as the type
// that both declare.
func equal(v strictjson.Value, t provenance.Type, p *place) bool {
	return provenance.Equal(provenance.Untyped, v, p.value) || t != provenance.Untyped && p.typ == t && provenance.Equal(t, v, p.value)
}

// query is what is asked of a place.
type query struct {
	value      strictjson.Value
	typ        provenance.Type
	collection string
	loose      bool // any collection does
}

func (c *call) query(l *leaf) query {
	return query{l.value, l.typ(), l.collection(), c.strict || l.answer || c.method != policy.CallTool && l.collection() == ""}
}

// source reports whether a place is one that a source names.
func (q query) source(src policy.Source, p *place) bool {
	if p.unshown || src.Server != "" && src.Server != p.server || src.Tool != "" && src.Tool != p.tool {
		return false
	}
	if src.HasAt {
		outer, inner, has := split(p.trail)
		if !has && strings.HasPrefix(p.trail[len(p.trail)-1], "\x00line") {
			outer = p.trail[:len(p.trail)-1]
		}
		if outer[0] != "structuredContent" {
			return has && matches(src.At, inner)
		}
		return matches(src.At, outer[1:]) || has && (matches(src.At, inner) || matches(src.At, slices.Concat(outer[1:], inner)))
	}
	mine, its := q.collection, p.collection()
	if mine != "" && its != "" && mine != its {
		return false
	}
	return q.loose || mine != "" && mine == its || q.typ != provenance.Untyped && q.typ == p.typ
}

// vouches reports whether a place vouches for a value of an argument through an output
// that the argument accepts, whoever chose it.
func (s *Session) vouches(c *call, l *leaf, p *place) bool {
	return p.rule != nil && p.label >= writ.System && s.accepted(c, l, p)
}

func (s *Session) accepted(c *call, l *leaf, p *place) bool {
	q := c.query(l)
	return slices.ContainsFunc(c.from(l), func(src policy.Source) bool {
		return l.output(src) && q.source(src, p) && s.ordersSource(c, src) && s.stillSo(l, src)
	}) && s.agrees(c, l, p)
}

// grownOutput is the rule of a value at an output that the contract calls external, and
// of which a person said for that argument that our own people alone write there.
const grownOutput = "grown:output"

// raised reports whether a reference names such a place: the very output of the line,
// with the whole value, and nothing but its contract against it.
func (s *Session) raised(c *call, l *leaf, e gate.Ref) bool {
	return e.Label == writ.External && !l.key && !l.answer && slices.ContainsFunc(s.unlabelled(e), func(p *place) bool {
		if p.rule == nil || p.rule.Label != writ.External || p.rule.Secret || p.key ||
			!equal(l.value, l.typ(), p) || !told(c, l, p) || !s.once(c, l, p) || !s.agrees(c, l, p) {
			return false
		}
		return slices.ContainsFunc(c.from(l), func(src policy.Source) bool {
			holds := p.clear && slices.Contains(s.at(e), p)
			if src.Minted {
				holds = p.given && numbered(p.value)
			}
			if !src.Ours || !holds || src.Server != p.server || src.Tool != p.tool || src.InText != p.rule.InText {
				return false
			}
			if src.InText {
				return p.rule.Block == 0 && p.rule.Extract == provenance.ExtractJSON && src.At.Source == p.rule.Pointer.Source
			}
			return p.rule.Extract == provenance.NoExtract && src.At.Source == p.rule.At.Source
		})
	})
}

// output reports whether a source is an output of the kind that a value rests on.
func (l *leaf) output(src policy.Source) bool {
	return src.Kind == policy.FromOutput && src.Ours == (l.Rule == grownOutput)
}

// told reports whether a value of small space stands where it says what it is (R8).
func told(c *call, l *leaf, p *place) bool {
	if !l.enum && !provenance.SmallSpace(l.typ(), l.value) {
		return true
	}
	if l.authority() && empty(l.value) {
		return false
	}
	mine, its := l.collection(), p.collection()
	if mine != "" && mine == its {
		return true
	}
	q := c.query(l)
	kind := l.value.Kind()
	untyped := !c.strict && p.typ == provenance.Untyped && (kind == strictjson.Number || kind == strictjson.String)
	return l.typ() != provenance.Untyped && (l.typ() == p.typ || untyped) && (mine == "" || its == "") && slices.ContainsFunc(c.from(l), func(src policy.Source) bool {
		return l.output(src) && src.HasAt && q.source(src, p)
	})
}

// chosen reports whether the operator's or the user's side chose what stands at a place
// (R28): it is of a closed collection, or of an owner whom they named.
func (s *Session) chosen(c *call, l *leaf, p *place) bool {
	if !p.opened && p.rule != nil && p.rule.Collection != "" && c.closed(p.rule.Collection) {
		return true
	}
	if p.owner == nil || l == nil || l.rule == nil {
		return false
	}
	return slices.ContainsFunc(s.places[p.evidence], func(o *place) bool {
		if o.key || o.label < writ.System || empty(o.value) || !slices.Equal(o.trail, p.owner) {
			return false
		}
		if slices.ContainsFunc(l.rule.Owner, func(v []byte) bool { return provenance.Equal(provenance.Untyped, o.value, strictjson.Of(v)) }) {
			return true
		}
		return l.rule.OwnerUser && o.value.Kind() == strictjson.String && s.typedSomewhere(&leaf{value: o.value, apart: true, rule: &policy.ArgRule{Words: l.rule.Words}})
	})
}

// typedSomewhere reports whether the user typed a value whole, in any turn.
func (s *Session) typedSomewhere(l *leaf) bool {
	for _, t := range slices.Concat(s.turns, s.agreed) {
		for start := range t.own {
			if start > 0 && !t.begins(start) && !t.given(start) && t.own[start-1] != '#' {
				continue
			}
			for end := start + 1; end <= min(len(t.own), start+512); end++ {
				if t.ends(end) && s.typed(l, gate.Ref{Evidence: t.evidence, Tool: userTool, Start: start, End: end}) {
					return true
				}
			}
		}
	}
	return false
}

// quoted reports whether one of the references quotes the value.
func (s *Session) quoted(l *leaf) bool {
	return slices.ContainsFunc(l.Evidence, func(e gate.Ref) bool { return s.typed(l, e) })
}

// user is what the user typed, said of a day or a time, or named as an amount.
func (s *Session) user(c *call, l *leaf) bool {
	switch l.Rule {
	case "user":
		if _, _, why := provenance.Canonical(provenance.Decimal, l.value); l.role == policy.Amount && why == "" {
			return false // a number is read as an amount or not at all
		}
		return len(l.Evidence) == 1 && !l.answer && (s.typed(l, l.Evidence[0]) || s.beside(c, l, l.Evidence[0]))
	case "user:time", "user:day":
		return !l.answer && !l.key && !(l.Rule == "user:day" && c.binds(l)) && s.saidTime(l)
	case "user:within":
		return len(l.Evidence) == 2 && !l.answer && !l.key && s.inTwo(l)
	case "user:composite":
		return len(l.Evidence) == 1 && !l.answer && !l.key && s.composite(c, l, l.Evidence[0])
	case "user:amount":
		return !l.answer && !l.key && s.saidAmount(l)
	}
	return false
}

// output is a value that stands at a place whose label is high enough, at a source that
// the argument accepts. What anyone can have made appear is a target only if the user
// named it; what a third party says of himself, if the user typed it (R3).
func (s *Session) output(c *call, l *leaf) bool {
	for _, p := range s.at(l.Evidence[0]) {
		low := writ.System
		if l.Rule == "party" {
			low = writ.Party
		}
		if !equal(l.value, l.typ(), p) || p.rule == nil || l.Evidence[0].Label < low && !(low == writ.Party && p.allowed() && l.Evidence[0].Label == p.label) || !s.accepted(c, l, p) || !told(c, l, p) || !s.once(c, l, p) {
			continue
		}
		// R30: what is told in confidence is passed on only where the operator named it.
		if !c.strict && (l.role == policy.Content || l.role == policy.Query) && slices.ContainsFunc(s.holding(l.value, l.typ()), func(o *place) bool {
			return o.rule != nil && o.rule.Secret && s.vouches(c, l, o)
		}) && !slices.ContainsFunc(c.from(l), func(src policy.Source) bool { return src.HasAt && c.query(l).source(src, p) }) {
			continue
		}
		chosen := s.chosen(c, l, p)
		switch {
		case l.Rule == "party":
			// A member of a closed collection may be named as people are.
			by := *l
			by.lesser = false
			if by.proper = p.rule.Collection == l.collection() && c.closed(l.collection()) && (!p.opened || p.allowed()); !s.quoted(&by) {
				continue
			}
		case c.target(l) && !chosen:
			if c.strict || !s.anchored(c, l, true) {
				continue
			}
		case !chosen:
			l.open = !slices.ContainsFunc(s.holding(l.value, l.typ()), func(o *place) bool {
				return s.vouches(c, l, o) && told(c, l, o) && s.chosen(c, l, o)
			})
		}
		return true
	}
	return false
}

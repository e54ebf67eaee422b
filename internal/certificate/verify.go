package certificate

import (
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/money"
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
	if err := c.forms(s); err != nil {
		return err
	}
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
		if !c.strict && !l.key && l.rule != nil && l.rule.Composed && l.role == policy.Content && l.Rule != "approval" {
			if why := s.composed(c, l); why != "" {
				return wrong(l, "%s", why)
			}
		}
		if c.effect&policy.Delete != 0 && !c.strict && l.names() && !s.anchored(c, l, false) && l.Rule != "approval" && !c.governed && l.Rule != "protocol" {
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
		named = named || l.names() && l.plain()
		decides = decides || l.plain() && (l.names() || l.role == policy.Amount)
		if l.contested && c.contract.Contested != policy.ContestedAccepted && (c.contract.Contested == policy.ContestedRefused || !s.approved(c)) {
			return wrong(l, "a stranger's text carries it too")
		}
	}
	if c.effect&policy.Delete != 0 && !c.strict {
		decides = named
	}
	said := c.contract.NoArgs == policy.NoArgsAllow ||
		c.contract.NoArgs == policy.NoArgsUser && !c.strict && s.saysPhrase(c) ||
		c.contract.NoArgs != policy.NoArgsRefuse && s.approved(c)
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
		holds = slices.ContainsFunc(c.from(l), func(src policy.Source) bool {
			return src.Grown == (l.Rule == "grown") && slices.ContainsFunc(src.Const, func(v []byte) bool { return provenance.Equal(l.typ(), l.value, strictjson.Of(v)) })
		})
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
	case len(l.Evidence) == 0:
		return "it names no evidence"
	case strings.HasPrefix(l.Rule, "user"):
		refs = -1
		label = writ.User
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
	return len(s.at(e)) > 0
}

// at returns what stands where a reference says, worth the label it states. Only the
// places of R38 may have taken something from that.
func (s *Session) at(e gate.Ref) (out []*place) {
	for _, p := range s.places[e.Evidence] {
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
	if len(l.Evidence) != 1 || c.strict || l.answer || l.Evidence[0].Tool != approvalTool {
		return 0, false
	}
	e := l.Evidence[0]
	a, ok := s.allowed(c)
	c.answer = a.Evidence
	if !ok || a.Evidence != e.Evidence || a.Label != e.Label || e != (gate.Ref{Evidence: e.Evidence, Tool: approvalTool, Label: e.Label}) {
		return 0, false
	}
	if l.open = l.role != policy.Content; !l.open {
		return writ.Model, true
	}
	return a.Label, true
}

// approved reports whether a person allowed the call.
func (s *Session) approved(c *call) bool {
	a, ok := s.allowed(c)
	if ok {
		c.answer = a.Evidence
	}
	return ok
}

// allowed returns the newest answer to this very call: the same policy, tool and bytes,
// used for nothing yet and not older than it counts for.
func (s *Session) allowed(c *call) (Approval, bool) {
	name := []byte(c.Record.Tool)
	key := append([]byte("approval\x00"), c.Policy.Digest[:]...)
	for _, b := range [][]byte{[]byte(c.server), name, []byte(c.method), c.Arguments.Raw(), c.Answers.Raw()} {
		key = append(key, s.digest(append([]byte{}, b...))...)
	}
	act := s.digest(key)
	for _, a := range slices.Backward(s.approvals) {
		if a.Act == act {
			return a, a.Yes && !s.used[a.Evidence] && c.Time.Sub(a.At) < gate.ApprovalHolds
		}
	}
	return Approval{}, false
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
	if src.Server != "" && src.Server != p.server || src.Tool != "" && src.Tool != p.tool {
		return false
	}
	if src.HasAt {
		outer, inner, has := p.trail, []string(nil), false
		if i := slices.Index(p.trail, innerJSON); i >= 0 {
			outer, inner, has = p.trail[:i], p.trail[i+1:], true
		} else if strings.HasPrefix(p.trail[len(p.trail)-1], "\x00line") {
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
		return l.output(src) && q.source(src, p)
	})
}

// grownOutput is the rule of a value at an output that the contract calls external, and
// of which a person said for that argument that our own people alone write there.
const grownOutput = "grown:output"

// raised reports whether a reference names such a place: the very output of the line,
// with the whole value, and nothing but its contract against it.
func (s *Session) raised(c *call, l *leaf, e gate.Ref) bool {
	return e.Label == writ.External && !l.key && !l.answer && slices.ContainsFunc(s.at(e), func(p *place) bool {
		if p.rule == nil || p.rule.Label != writ.External || !p.clear || p.rule.Secret || p.rule.InText || p.rule.Extract != provenance.NoExtract || p.key ||
			!equal(l.value, l.typ(), p) || !told(c, l, p) || !s.once(c, l, p) {
			return false
		}
		return slices.ContainsFunc(c.from(l), func(src policy.Source) bool {
			return src.Ours && src.Server == p.server && src.Tool == p.tool && src.At.Source == p.rule.At.Source
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
	return slices.ContainsFunc(c.from(l), func(src policy.Source) bool {
		return l.output(src) && src.HasAt && q.source(src, p)
	}) && l.typ() != provenance.Untyped && l.typ() == p.typ && (mine == "" || its == "")
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
		return l.rule.OwnerUser && o.value.Kind() == strictjson.String && s.typedSomewhere(&leaf{value: o.value, enum: plainWord(o.value), rule: &policy.ArgRule{Words: l.rule.Words}})
	})
}

// plainWord is a text of nothing but letters: anybody can be called so, and any sentence
// has one.
func plainWord(v strictjson.Value) bool {
	text, _ := v.Text()
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
}

// typedSomewhere reports whether the user typed a value whole, in any turn.
func (s *Session) typedSomewhere(l *leaf) bool {
	for i := range s.turns {
		t := &s.turns[i]
		for start := range t.own {
			if start > 0 && !t.begins(start) && t.own[start-1] != '#' {
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
	case "user:time":
		return !l.answer && !l.key && s.saidTime(l)
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
		if !equal(l.value, l.typ(), p) || p.rule == nil || l.Evidence[0].Label < low || !s.accepted(c, l, p) || !told(c, l, p) || !s.once(c, l, p) {
			continue
		}
		chosen := s.chosen(c, l, p)
		switch {
		case l.Rule == "party":
			if !s.quoted(l) {
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

// anchored is R9: the user named the record that a value says, or the operator did, or
// the session made it. Of what receives something (R28, R14) strangers name nothing.
func (s *Session) anchored(c *call, l *leaf, guaranteed bool) bool {
	switch l.Rule {
	case "const", "user", "user:time", "user:amount", "user:composite", "party":
		return true
	case "grown", grownOutput:
		if c.effect&policy.Delete == 0 {
			return true
		}
	}
	if c.strict {
		return false
	}
	return slices.ContainsFunc(l.Evidence[min(l.base(), len(l.Evidence)):], func(e gate.Ref) bool {
		return s.typed(l, e) || s.names(l.collection(), l.value, e, guaranteed) || !guaranteed && s.called(l, e) ||
			slices.ContainsFunc(s.system(e), func(p *place) bool { return s.creation(c, l, p) })
	})
}

// called reports whether a reference quotes what users call the one record of the last
// whole list of its kind that has the most, or the least, of something (R9).
func (s *Session) called(l *leaf, e gate.Ref) bool {
	t, words, ok := s.quote(e)
	if !ok || t != &s.turns[len(s.turns)-1] || !t.token(e.Start, e.End) || !provenance.Means(t.own[:e.Start]) || l.collection() == "" {
		return false
	}
	return slices.ContainsFunc(s.holding(l.value, l.typ()), func(p *place) bool {
		if p.rule == nil || !p.listed || p.late || p.label < writ.System || !p.member(l.collection()) || !provenance.Equal(p.typ, l.value, p.value) || s.listedAgain(p) {
			return false
		}
		return slices.ContainsFunc(p.rule.Ranks, func(r provenance.Rank) bool {
			return slices.ContainsFunc(r.Phrases, func(f string) bool { return strings.EqualFold(f, words) }) && s.first(p, r)
		})
	})
}

// listedAgain reports whether the same tool gave a list of the same kind later.
func (s *Session) listedAgain(p *place) bool {
	for ev, all := range s.places {
		if ev > p.evidence && slices.ContainsFunc(all, func(q *place) bool {
			return q.rule != nil && len(q.rule.Ranks) > 0 && q.listed && !q.late && q.label >= writ.System && q.server == p.server && q.tool == p.tool && q.collection() == p.collection()
		}) {
			return true
		}
	}
	return false
}

// first reports whether a record has more of something than every other of its list, or
// less: of numbers, or of times, each of which the server guarantees.
func (s *Session) first(p *place, r provenance.Rank) bool {
	amount := func(of *place) (n *big.Rat, ok bool) {
		at, in := of.record()
		if !in {
			return nil, false
		}
		trail := append(slices.Clone(of.trail[:at]), r.By...)
		i := slices.IndexFunc(s.places[p.evidence], func(g *place) bool {
			return !g.key && g.rule != nil && g.label >= writ.System && slices.Equal(g.trail, trail)
		})
		if i < 0 {
			return nil, false
		}
		v := s.places[p.evidence][i].value
		if text, is := v.Text(); is {
			at, err := time.Parse("2006-01-02T15:04:05", text)
			if err != nil || len(text) != len("2006-01-02T15:04:05") {
				return nil, false
			}
			return big.NewRat(at.Unix(), 1), true
		}
		d, _, why := provenance.Canonical(provenance.Decimal, v)
		if why != "" {
			return nil, false
		}
		return new(big.Rat).SetString(d)
	}
	mine, ok := amount(p)
	if !ok {
		return false
	}
	records := map[string]bool{}
	for _, q := range s.places[p.evidence] {
		if q.rule != p.rule {
			continue
		}
		its, ok := amount(q)
		n, _ := q.record()
		key := strictjson.Pointer(q.trail[:n])
		if !ok || records[key] {
			return false
		}
		records[key] = true
		if c := mine.Cmp(its); q != p && (c == 0 || (c > 0) == r.Least) {
			return false
		}
	}
	return true
}

// base is how many references say where a value comes from; who named its record stands
// behind them.
func (l *leaf) base() int {
	if l.Rule == "output" || l.Rule == grownOutput || l.Rule == "seen" || l.Rule == "derived:fresh" {
		return 1
	}
	return 2
}

// creation reports whether a place is where an act of this session said that it newly
// made what the argument names: nothing showed it before (R13).
func (s *Session) creation(c *call, l *leaf, p *place) bool {
	if p.rule == nil || !p.rule.Creates || p.label < writ.System || !equal(l.value, l.typ(), p) || !c.query(l).source(policy.Source{}, p) {
		return false
	}
	return s.holding(l.value, l.typ())[0] == p
}

// names reports whether a reference quotes what names the one record of a collection
// that holds a value. What receives something is named by its own id or by what the
// server guarantees alone.
func (s *Session) names(collection string, value strictjson.Value, e gate.Ref, guaranteed bool) bool {
	t, words, ok := s.quote(e)
	if !ok || collection == "" || !t.token(e.Start, e.End) || !naming(t, words) {
		return false
	}
	found := false
	mine := func(p *place) bool { return provenance.Equal(p.typ, value, p.value) }
	if strings.Contains(strings.Trim(words, "."), ".") {
		for _, p := range s.same[baseKey(words)] {
			if p.member(collection) && !mine(p) {
				return false
			}
			found = found || p.member(collection) && p.label >= writ.System && p.listed && !guaranteed
		}
	}
	for _, p := range s.spelling(words) {
		if p.member(collection) && !mine(p) {
			return false
		}
		n, ok := p.record()
		if !ok {
			continue
		}
		holds, complete := false, false
		for _, g := range s.places[p.evidence] {
			m, in := g.record()
			if !in || m != n || !within(g, p, n) || !g.member(collection) {
				continue
			}
			if !mine(g) {
				return false
			}
			holds = holds || g.label >= writ.System
			complete = complete || g.label >= writ.System && g.listed
		}
		id := p.member(collection)
		least := writ.External
		if guaranteed {
			if least = writ.System; plainWord(strictjson.StringOf(words)) {
				least = writ.Operator // which no result has
			}
		}
		worth := id || p.collection() == "" && complete && p.label >= least
		found = found || holds && worth && len(p.trail) == n+1
	}
	return found
}

// naming reports whether words can name a record: not too short, not of small space and
// no word for everybody.
func naming(t *turn, words string) bool {
	v := strictjson.StringOf(words)
	return utf8.RuneCountInString(words) >= part && !provenance.SmallSpace(provenance.Untyped, v) &&
		!strings.ContainsFunc(words, unicode.IsControl) && t.spells(&leaf{value: v}, words)
}

// lastOf is the last element of a path.
func lastOf(p *place) (string, bool) {
	full, _, why := provenance.Canonical(provenance.Path, p.value)
	if p.typ != provenance.Path || why != "" || full == "/" {
		return "", false
	}
	return full[strings.LastIndexByte(full, '/')+1:], true
}

// ofRecord reports whether a place is in the record that an argument names which
// another has to be of (R37).
func (s *Session) ofRecord(c *call, l *leaf, p *place) bool {
	return slices.ContainsFunc(c.bindings(), func(b policy.Binding) bool {
		first := c.first(b, l)
		return first != nil && first != l && s.inRecord(c, first, p, b.By)
	})
}

// inRecord reports whether a place is in a record that an argument names, or in one
// that a key names which stands directly in such a record: a member of by.
func (s *Session) inRecord(c *call, first *leaf, p *place, by string) bool {
	return slices.ContainsFunc(s.holding(first.value, first.typ()), func(f *place) bool {
		n, ok := f.around()
		if !ok || f.label < writ.System || f.rule == nil || !c.query(first).source(policy.Source{}, f) {
			return false
		}
		return within(p, f, n) && !s.another(p, n, first.collection()) ||
			slices.ContainsFunc(s.places[f.evidence], func(k *place) bool {
				m, ok := k.record()
				return ok && m == n && within(k, f, n) && k.member(by) && k.label >= writ.System && s.keyed(k, p)
			})
	})
}

// keyed reports whether a place is in a record that the same key names as stands in
// another one.
func (s *Session) keyed(k, p *place) bool {
	return slices.ContainsFunc(s.holding(k.value, k.typ), func(same *place) bool {
		n, ok := same.record()
		return ok && same.member(k.collection()) && same.typ == k.typ && same.label >= writ.System && provenance.Equal(k.typ, k.value, same.value) &&
			within(p, same, n) && !s.another(p, n, k.collection())
	})
}

// another reports whether between a place and the record around it, of n tokens, stands
// a record that a member of the same collection names.
func (s *Session) another(p *place, n int, collection string) bool {
	return collection != "" && slices.ContainsFunc(s.places[p.evidence], func(g *place) bool {
		m, ok := g.record()
		return ok && m > n && g.member(collection) && within(p, g, m) && listing(g.trail[m-1])
	})
}

// unbound returns an argument that is of another record than the contract says, nil for
// none. What the user said and the operator listed is nobody's record.
func (s *Session) unbound(c *call) *leaf {
	for _, b := range c.bindings() {
		for _, l := range c.leaves {
			free := l.Rule == "const" || l.Rule == "catalog" || l.Rule == "local" || l.Rule == "open" || l.Rule == "approval" ||
				strings.HasPrefix(l.Rule, "user") || l.role == policy.Amount && strings.HasPrefix(l.Rule, "derived:")
			if free || l.answer || empty(l.value) || !l.other(b) {
				continue
			}
			first := c.first(b, l)
			if first == l {
				continue
			}
			// A first that a person let pass names no record.
			held := first != nil && first.Rule != "approval" && slices.ContainsFunc(l.Evidence, func(e gate.Ref) bool {
				return slices.ContainsFunc(s.system(e), func(p *place) bool {
					return equal(l.value, l.typ(), p) && s.vouches(c, l, p) && s.inRecord(c, first, p, b.By)
				}) || l.Rule == grownOutput && s.raised(c, l, e) && slices.ContainsFunc(s.at(e), func(p *place) bool { return s.inRecord(c, first, p, b.By) })
			})
			if !held && !s.quoted(l) {
				return l
			}
		}
	}
	return nil
}

// derived is a value that follows from others by an operation of the contract.
func (s *Session) derived(c *call, l *leaf, op string) (label writ.Label, ok bool) {
	label = writ.Operator
	for _, e := range l.Evidence {
		label = min(label, e.Label)
	}
	text, _ := l.value.Text()
	first := func(n int, is func(p *place) bool) bool {
		return n < len(l.Evidence) && slices.ContainsFunc(s.system(l.Evidence[n]), func(p *place) bool {
			return p.rule != nil && p.label >= writ.System && is(p)
		})
	}
	cut := strings.LastIndexByte(text, '/')
	if _, already, _ := provenance.Canonical(provenance.Path, l.value); (op == policy.PathJoin || op == policy.FreshName) && (!already || cut < 0 || text == "/") {
		return 0, false
	}
	directory := func() strictjson.Value {
		if cut == 0 {
			return strictjson.StringOf("/")
		}
		return strictjson.StringOf(text[:cut])
	}
	switch op {
	case policy.PathJoin:
		q := query{value: l.value, collection: l.collection(), loose: true}
		fits := func(p *place) bool {
			return q.source(policy.Source{}, p) && (!c.target(l) || s.chosen(c, l, p))
		}
		return label, c.accepts(l, policy.FromDerived, op) && !l.answer &&
			first(0, func(p *place) bool {
				return fits(p) && p.typ == provenance.Path && provenance.Equal(provenance.Path, p.value, directory())
			}) &&
			first(1, func(p *place) bool {
				if p.typ == provenance.Name {
					return fits(p) && provenance.Equal(provenance.Name, p.value, strictjson.StringOf(text[cut+1:]))
				}
				base, _ := lastOf(p)
				return fits(p) && base == text[cut+1:] && !provenance.Equal(provenance.Path, p.value, l.value)
			})
	case policy.FreshName:
		dir := *l
		dir.value = directory()
		return writ.Model, c.accepts(l, policy.FromDerived, op) && s.fresh(l, text[cut+1:], dir.value) &&
			first(0, func(p *place) bool {
				q := c.query(l)
				q.typ = provenance.Path
				return q.source(policy.Source{}, p) && equal(dir.value, provenance.Path, p) && (!c.target(l) || s.chosen(c, l, p))
			})
	case string(money.Round):
		return label, len(l.Evidence) == 1 && l.role == policy.Amount && l.rule != nil && slices.Contains(l.rule.Forms, money.Round) && !l.key && !l.answer &&
			!slices.ContainsFunc(c.contract.Bindings, func(b policy.Binding) bool {
				return slices.ContainsFunc(append(slices.Clone(b.Others), b.First), func(p provenance.Pattern) bool { return matches(p, l.path) })
			}) && first(0, func(p *place) bool {
			is, _, why := provenance.Canonical(provenance.Decimal, p.value)
			want, _, not := provenance.Canonical(provenance.Decimal, l.value)
			return why == "" && not == "" && p.typ == provenance.Decimal && p.rule.Lifetime == 0 &&
				s.vouches(c, l, p) && told(c, l, p) && slices.Contains(money.Rounded(is), want)
		})
	case "uri_template":
		return label, c.accepts(l, policy.FromDerived, op) && s.expands(c, l, text)
	}
	label = min(label, writ.User)
	return label, c.accepts(l, policy.FromUser) && s.follows(c, l, money.Form(op))
}

var freshName = regexp.MustCompile(`^[\pL\pN][\pL\pN\pM._-]{0,127}$`)

// device are names that are no file's on Windows.
var device = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9]|conin\$|conout\$)(\.|$)`)

// fresh reports whether a name is one that the agent may make up (R36): new in a
// directory that was listed whole, and not sent by an act before.
func (s *Session) fresh(l *leaf, name string, dir strictjson.Value) bool {
	full, _ := l.value.Text()
	if l.rule == nil || s.folded[fold(full)] || device.MatchString(name) || !freshName.MatchString(name) || provenance.CheckText(l.value) != "" || s.sentBefore(l.value) ||
		!slices.ContainsFunc(l.rule.Extensions, func(e string) bool { return strings.HasSuffix(name, e) && name != e }) {
		return false
	}
	whole, _ := dir.Text()
	return s.listed[whole]
}

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
	operators, named := true, false
	for _, r := range c.leaves {
		if !r.names() || r.answer || empty(r.value) {
			continue
		}
		named = true
		operators = operators && (r.Rule == "const" || r.Rule == "output" && !r.open && c.Policy.Collections[r.collection()].MayHoldSecrets)
		if !s.anchored(c, r, true) && r.Rule != "approval" {
			return "nobody named who reads the text"
		}
	}
	if l.Rule == "open" && !named && c.contract.NoArgs != policy.NoArgsAllow {
		return "nothing says who reads the text"
	}
	if l.Rule != "open" {
		return "" // the user's own words, or what a tool said
	}
	if s.secrets && (!operators || !named) {
		return "a secret was told before"
	}
	// What stands in several texts of one rule is read on, by the first of them.
	var texts []string
	first := true
	for _, o := range c.leaves {
		if o.rule == l.rule && !o.key && !o.answer {
			first = first && (len(texts) > 0 || o == l)
			texts = append(texts, o.says())
		}
	}
	atoms := provenance.Atoms(l.says())
	if first && len(texts) > 1 {
		atoms = slices.Concat(atoms, provenance.Atoms(strings.Join(texts, "")), provenance.Atoms(strings.Join(texts, "\n")))
	}
	rest := l.Evidence
	for _, a := range atoms {
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

// stood returns how many of the references are of an atom, 0 if they are of none.
func (s *Session) stood(c *call, a provenance.Atom, refs []gate.Ref) int {
	types := []provenance.Type{a.Type, provenance.Untyped}
	if a.Kind == provenance.NumberAtom {
		types = append(types, provenance.Phone, provenance.IBAN)
	}
	if len(refs) == 0 || a.Kind == provenance.HiddenAtom || a.Kind == provenance.MarkupAtom || a.Kind == provenance.ManyAtoms {
		return 0
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
			if len(refs) > 1 && s.names(p.collection(), l.value, refs[1], true) {
				return 2
			}
		}
	}
	return 0
}

var variable = regexp.MustCompile(`\{\+?([A-Za-z0-9_.]+)\}`)

// templates are the places where a server listed its templates (R32).
func (s *Session) templates(c *call) (out []*place) {
	for _, of := range s.places {
		for _, p := range of {
			if p.server == c.server && p.tool == string(policy.ListTemplates) && p.trail[len(p.trail)-1] == "uriTemplate" {
				out = append(out, p)
			}
		}
	}
	return out
}

// variable reports whether a value is the name of a variable of a listed template.
func (s *Session) variable(c *call, l *leaf) bool {
	name, _ := l.value.Text()
	return slices.ContainsFunc(s.templates(c), func(p *place) bool {
		text, _ := p.value.Text()
		return slices.ContainsFunc(variable.FindAllStringSubmatch(text, -1), func(m []string) bool { return m[1] == name })
	})
}

// expands reports whether a URI is a listed template with the vouched values in it, as
// whoever decodes it once reads it.
func (s *Session) expands(c *call, l *leaf, uri string) bool {
	vouched := func(p *place, strict bool) bool {
		return p.rule != nil && p.label >= writ.System && s.chosen(c, l, p) && (!strict || !provenance.SmallSpace(provenance.Untyped, p.value))
	}
	for _, p := range s.system(l.Evidence[0]) {
		template, _ := p.value.Text()
		at := variable.FindAllStringIndex(template, -1)
		if len(at) != len(l.Evidence)-1 || !slices.Contains(s.templates(c), p) || !vouched(p, false) {
			continue
		}
		var b strings.Builder
		done := 0
		for i, v := range at {
			b.WriteString(template[done:v[0]])
			done = v[1]
			for _, q := range s.system(l.Evidence[i+1]) {
				if value, ok := q.value.Text(); ok && vouched(q, true) {
					b.WriteString(value)
					break
				}
			}
		}
		b.WriteString(template[done:])
		if b.String() == decoded(uri) && !slices.ContainsFunc(strings.FieldsFunc(b.String(), func(r rune) bool { return r == '/' || r == '\\' }),
			func(e string) bool { return e == "." || e == ".." }) {
			return true
		}
	}
	return false
}

var encoded = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// decoded undoes one layer of percent-encoding.
func decoded(s string) string {
	const digits = "0123456789abcdef"
	return encoded.ReplaceAllStringFunc(s, func(e string) string {
		e = strings.ToLower(e)
		return string([]byte{byte(strings.IndexByte(digits, e[1])<<4 | strings.IndexByte(digits, e[2]))})
	})
}

package memory

import (
	"slices"
	"strconv"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// propose is propose_proposition.
func (j *judge) propose() *refusal {
	obs, r := j.cited("observation_ids")
	if r != nil {
		return r
	}
	for i, id := range j.lists["about"] {
		en := j.d.entities.get(id)
		if en == nil || en.Canonicality == Tombstoned {
			return refuse(strictjson.Pointer([]string{"about", strconv.Itoa(i)}), writ.MemoryTarget, "an entity that exists")
		}
	}
	for i, id := range j.lists["alternatives"] {
		if j.d.propositions.get(id) == nil {
			return refuse(strictjson.Pointer([]string{"alternatives", strconv.Itoa(i)}), writ.MemoryTarget, "a proposition that exists")
		}
	}
	p := &Proposition{Class: Descriptive, Volatility: Medium, About: j.lists["about"], Alternates: j.lists["alternatives"],
		Session: j.c.Session, Task: j.c.Task, CreatedAt: j.e.At, Decision: mintID("dec", j.e.N, 1), Status: Tentative, Rule: RuleTentative}
	pd, literal, quals, r := j.form(p)
	if r != nil {
		return r
	}
	if r := j.defaults(p, pd); r != nil {
		return r
	}
	text := j.texts["text"]
	said := p.copied()
	said.Text, said.Literal, said.Quals = text, literal, quals
	j.validFrom(p, said, pd, obs)
	said.ValidFrom = p.ValidFrom

	slot := ""
	if p.Subject != "" {
		slot = j.s.ix.slotOf[join(p.Subject, p.Predicate, quals)]
	}
	if sl := j.d.slots.get(slot); sl != nil {
		for _, id := range sl.Current {
			other := j.d.propositions.get(id)
			same := other.Literal == literal && j.d.resolve(other.Object) == j.d.resolve(p.Object)
			switch {
			case same && other.Status == Rejected && other.Failed:
				return refuse("", writ.PropositionRefuted, "a claim no test has failed; support for it can be attached to "+id)
			case same && j.asWellBorne(said, other, obs):
				return j.already(id, obs)
			}
		}
	} else if p.Subject == "" {
		// Without a question to answer, the same words about the same thing
		// are the same claim.
		for _, id := range j.s.ix.claims[join(p.About[0], text)] {
			other := j.d.propositions.get(id)
			if other.Open() && slices.Equal(other.About, p.About) {
				if other.Status == Rejected && other.Failed {
					return refuse("", writ.PropositionRefuted, "a claim no test has failed; support for it can be attached to "+id)
				}
				return j.already(id, obs)
			}
		}
	}
	caps := &j.c.Policy.Caps
	if w := j.d.workspaces.get(join(j.c.Session, j.c.Task)); w.OpenClaims >= int(caps.PropositionsPerTask) {
		return refuse("", writ.PropositionSpawnCap, "a task has at most "+count(caps.PropositionsPerTask)+" open new propositions; attach evidence to those, or consolidate")
	}
	j.d.value = j.value()
	if p.Subject != "" && slot == "" {
		slot = j.d.mint("slot")
		j.d.add(Op{Slot: &Slot{ID: slot, Subject: p.Subject, Predicate: p.Predicate, Qualified: quals != "", Single: pd != nil && pd.Single, Propositions: []string{}, Current: []string{}}})
	}
	p.ID, p.Slot = j.d.mint("prop"), slot
	j.d.add(Op{At: "/payload", Proposition: p})
	j.d.effect("proposition.created", p.ID)
	j.d.add(Op{Touch: &TouchOp{p.ID, LowImpact}})
	fresh, level := j.d.attach(Supports, p.ID, obs, "", false)
	j.d.support(p.ID, fresh, level)
	return nil
}

// asWellBorne reports whether the observations bear out one wording of a claim
// wherever they bear out the other. Else a claim worded so that nothing bears
// it out would stand in the way of the one that is.
func (j *judge) asWellBorne(said, there *Proposition, obs []string) bool {
	if !j.c.Policy.Flags.Grounded {
		return true
	}
	cited := j.d.witnesses(obs)
	return !slices.ContainsFunc(cited, func(w *witness) bool {
		return w.ob.Level > 0 && j.d.bears(w, said, cited) && !j.d.bears(w, there, cited)
	})
}

// already answers a claim that is there: its evidence is what is new.
func (j *judge) already(id string, obs []string) *refusal {
	j.transform("proposition.attached_existing", id)
	ids := []byte{'['}
	for i, o := range obs {
		if i > 0 {
			ids = append(ids, ',')
		}
		ids = append(ids, strictjson.Quote(o)...)
	}
	j.m = map[string][]byte{"proposition_id": strictjson.Quote(id), "observation_ids": append(ids, ']')}
	j.t = toolOf(ToolAttachSupport)
	j.e.Tool = ToolAttachSupport
	return j.attachTo(Supports, id, obs)
}

// form reads the structured form into a proposition.
func (j *judge) form(p *Proposition) (pd *Predicate, literal, quals string, r *refusal) {
	raw := j.m["structured_form"]
	if raw == nil {
		return nil, "", "", nil
	}
	p.Subject, p.Predicate = textOf(strictjson.Get(raw, "subject")), textOf(strictjson.Get(raw, "predicate"))
	if a := j.d.aliases.get(p.Predicate); a != nil {
		// The registered name of the predicate.
		form := []byte(`{"object":` + string(strictjson.Get(raw, "object")) + `,"predicate":` + string(strictjson.Quote(a.ID)))
		if q := strictjson.Get(raw, "qualifiers"); q != nil {
			form = append(append(form, `,"qualifiers":`...), q...)
		}
		form = append(append(append(form, `,"subject":`...), strictjson.Quote(p.Subject)...), '}')
		j.set("structured_form", form)
		j.transform("predicate_alias", "/structured_form/predicate")
		p.Predicate, raw = a.ID, form
	}
	en := j.d.entities.get(p.Subject)
	if en == nil || en.Canonicality == Tombstoned {
		return nil, "", "", refuse("/structured_form/subject", writ.MemoryTarget, "an entity that exists")
	}
	p.Subject = j.d.resolve(p.Subject)
	object := strictjson.Get(raw, "object")
	if e := strictjson.Get(object, "entity"); e != nil {
		p.Object = textOf(e)
		if j.d.entities.get(p.Object) == nil {
			return nil, "", "", refuse("/structured_form/object/entity", writ.MemoryTarget, "an entity that exists")
		}
		p.Object = j.d.resolve(p.Object)
	}
	literal = string(strictjson.Get(object, "literal"))
	if q := strictjson.Get(raw, "qualifiers"); len(q) > 2 {
		quals = string(q)
	}
	return j.d.predicates.get(p.Predicate), literal, quals, nil
}

// defaults takes class and volatility from the payload, else from the
// predicate.
func (j *judge) defaults(p *Proposition, pd *Predicate) *refusal {
	class, given := j.texts["class"]
	if given {
		p.Class = PropositionClass(class)
	} else if pd != nil {
		p.Class = pd.Class
		j.set("class", strictjson.Quote(string(p.Class)))
		j.transform("default_class", "/class")
	}
	tier, given := j.texts["volatility"]
	extra := tier == string(Durable) || tier == string(Static)
	switch {
	case given && extra && !j.c.Policy.Flags.ExtraTiers:
		return refuse("/volatility", writ.PropositionVolatility, "low, medium or high: this policy has no other tiers")
	case given && tier == string(Static) && (pd == nil || pd.Volatility != Static):
		return refuse("/volatility", writ.PropositionVolatility, "a tier that is not static: only an operator's predicate is")
	case given:
		p.Volatility = TierName(tier)
	case pd != nil:
		p.Volatility = pd.Volatility
		j.set("volatility", strictjson.Quote(string(p.Volatility)))
		j.transform("default_volatility", "/volatility")
	}
	return nil
}

// validFrom is from when the claim holds: as said, else from its newest
// observation on. It is not from a time after that, or from the future, unless
// the predicate is of dates.
func (j *judge) validFrom(p, said *Proposition, pd *Predicate, obs []string) {
	at, given := j.times["valid_from"]
	newest, top := Instant(0), -1
	var cited []*witness
	if j.c.Policy.Flags.Grounded {
		cited = j.d.witnesses(obs)
	}
	for i, o := range obs {
		ob := j.d.observations.get(o)
		level := min(ob.Level, 2)
		if cited != nil && level > 0 && !j.d.bears(cited[i], said, cited) {
			level = 0
		}
		// Only what the claim rests on says from when it holds.
		if cited != nil && level > top {
			newest, top = 0, level
		}
		if level == top || cited == nil {
			newest = max(newest, ob.EventTime)
		}
	}
	if !given {
		at = newest
	}
	limit := j.now() + j.c.Policy.lead()
	if j.c.Policy.Flags.Grounded {
		limit = min(limit, newest) // nothing it cites speaks of a later time
	}
	if at > limit && (pd == nil || !pd.FutureDates) {
		at = limit
		if given {
			j.set("valid_from", strictjson.Quote(at.String()))
			j.transform("valid_from_clamped", "/valid_from")
		}
	}
	p.ValidFrom = at
}

// attach is attach_support and attach_contradiction.
func (j *judge) attach(typ EdgeType) *refusal {
	obs, r := j.cited("observation_ids")
	if r != nil {
		return r
	}
	id := j.texts["proposition_id"]
	if j.d.propositions.get(id) == nil {
		return refuse("/proposition_id", writ.MemoryTarget, "a proposition that exists")
	}
	if quote, given := j.texts["quote"]; given {
		for _, o := range obs {
			if !contains(j.d.observations.get(o).Raw, quote) {
				return refuse("/quote", writ.MemoryQuote, "words that stand verbatim in each of the observations")
			}
		}
	}
	return j.attachTo(typ, id, obs)
}

func (j *judge) attachTo(typ EdgeType, id string, obs []string) *refusal {
	pr := j.d.propositions.get(id)
	if !pr.Open() {
		return refuse("/proposition_id", writ.PropositionClosed, "a proposition that was not superseded or erased; propose the claim anew")
	}
	against := Contradicts
	if typ == Contradicts {
		against = Supports
	}
	for _, o := range obs {
		if l := j.d.links.get(join(string(against), o, id)); l != nil && j.d.edges.get(l.ID).Active() {
			return refuse("/observation_ids", writ.EvidenceBothSides, "observations that do not already stand on the other side of it")
		}
	}
	if typ == Contradicts && j.c.Policy.Flags.Grounded {
		for i, w := range j.d.witnesses(obs) {
			if j.d.disputes(w, pr) == "" {
				return refuse(strictjson.Pointer([]string{"observation_ids", strconv.Itoa(i)}), writ.MemoryUnborne,
					"an observation that has in it another value of the same subject and predicate, and not an earlier one; propose that value first, with structured_form")
			}
		}
	}
	_, quoted := j.texts["quote"]
	j.d.value = j.value()
	fresh, level := j.d.attach(typ, id, obs, "/payload", quoted)
	if len(fresh) == 0 {
		j.noValue = true
		j.d.effect("evidence.already_attached", id)
		return nil
	}
	j.d.effect("evidence.attached", id)
	j.d.add(Op{Touch: &TouchOp{id, LowImpact}})
	if typ == Supports {
		j.d.support(id, fresh, level)
		return nil
	}
	if level < j.c.Policy.needed(pr) {
		j.advise("evidence.below_incumbent", id)
	}
	j.d.evaluate(id, change{evidence: true})
	return nil
}

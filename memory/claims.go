package memory

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/internal/words"
)

// A draftEvent collects the operations of one event, each applied to a draft
// as it is decided.
type draftEvent struct {
	*State // the draft
	e      *Event
	value  func() []byte // what the event's texts come from, as it is now
	minted map[string]int
	// slots and claims are those whose standing may be another now.
	slotsTouched, claimsTouched []string
	left                        int // of maxLooked
	read                        map[string]*witness
	err                         error
}

func newDraft(j *judge) *draftEvent {
	d := &draftEvent{State: j.s.draft(), e: j.e, value: j.value, minted: map[string]int{}, left: maxLooked, read: map[string]*witness{}}
	d.head = j.e.N
	return d
}

func (d *draftEvent) mint(prefix string) string {
	d.minted[prefix]++
	return mintID(prefix, d.e.N, d.minted[prefix])
}

// add decides an operation: it is applied at once, so that what follows is
// decided on the state it leaves.
func (d *draftEvent) add(o Op) {
	if d.err != nil {
		return
	}
	var texts []byte
	if o.At != "" {
		texts = d.value()
	}
	if d.err = d.do(d.e, &o, texts); d.err == nil {
		d.e.Ops = append(d.e.Ops, o)
	}
}

func (d *draftEvent) effect(word, id string) {
	d.e.Effects = append(d.e.Effects, Effect{word, id})
}

// touch remembers a claim that may stand otherwise afterwards, and with it all
// of its question.
func (d *draftEvent) touch(slot, claim string) {
	if sl := d.slots.get(slot); sl == nil || d.many(sl) {
		d.claimsTouched = addOnce(d.claimsTouched, claim)
	} else {
		d.slotsTouched = addOnce(d.slotsTouched, slot)
	}
}

// mostTransitions bounds what an outcome lists.
const mostTransitions = 50

// transitions are the claims that stand otherwise than in the state before.
func (d *draftEvent) transitions(before *State) (out []Changed) {
	if d == nil {
		return nil
	}
	add := func(id string, was, is Standing) {
		if prior := cmp.Or(was.Status, Unverified); prior != is.Status && len(out) < mostTransitions {
			out = append(out, Changed{id, prior, is.Status, is.Rule})
		}
	}
	for _, id := range d.slotsTouched {
		sl := d.slots.get(id)
		if sl == nil {
			continue
		}
		is, was := d.heard(sl, 0), &hearing{none: true}
		if old := before.slots.get(id); old != nil {
			was = before.heard(old, 0)
		}
		for _, p := range sl.Propositions {
			add(p, was.standing(p), is.standing(p))
		}
	}
	for _, id := range d.claimsTouched {
		add(id, before.standing(id, 0), d.standing(id, 0))
	}
	return out
}

// witness takes an observation apart, once for all that is looked for in it.
func (d *draftEvent) witness(ob *Observation) *witness {
	w := d.read[ob.ID]
	if w == nil {
		w = newWitness(ob, &d.left)
		d.read[ob.ID] = w
	}
	return w
}

func (d *draftEvent) witnesses(obs []string) []*witness {
	out := make([]*witness, len(obs))
	for i, o := range obs {
		out[i] = d.witness(d.observations.get(o))
	}
	return out
}

// holds reports whether a text stands in an observation at all.
func (w *witness) holds(value string) bool {
	if *w.left -= len(w.ob.Raw); *w.left < 0 {
		return false
	}
	return names(w.ob.Raw, value, w.ob.Whole || w.ob.Between || w.ob.Evidence == "") || slices.ContainsFunc(w.units, func(u unit) bool {
		return slices.ContainsFunc(u.leaves, func(l leaf) bool { return names(l.text, value, true) })
	})
}

// attested reports whether an observation of that level has the name itself.
func (d *draftEvent) attested(n Name, level int) bool {
	by := d.observations.get(n.Observation)
	return !n.Gone && by != nil && by.Status == Ingested && by.Level >= level && d.witness(by).holds(n.Text)
}

// earlier is at what level a statement of an earlier version counts by the rules
// as they are. A ruling counts as it did.
func (s *State) earlier(ed *Edge) int {
	if ed.From == ed.Decision {
		return ed.Level
	}
	o, p := s.observations.get(ed.From), s.propositions.get(ed.To)
	d := &draftEvent{State: s, left: maxLooked, read: map[string]*witness{}}
	if o == nil || p == nil || !d.bears(d.witness(o), p) {
		return 0
	}
	return min(ed.Level, o.Level)
}

// resolve follows merges.
func (s *State) resolve(entity string) string {
	for range 64 {
		en := s.entities.get(entity)
		if en == nil || en.MergedInto == "" {
			return entity
		}
		entity = en.MergedInto
	}
	return entity
}

// predicateForm is a predicate as a slug: what people write as one is one.
func predicateForm(name string) string {
	ws := words.Of(strings.Join(text.NameWords(plain(name)), " "))
	out := strings.Map(func(r rune) rune {
		if r < 128 {
			return r
		}
		return -1
	}, strings.Join(ws, "_"))
	out = strings.Trim(out[:min(len(out), 64)], "_")
	if !slug(out) {
		return ""
	}
	return out
}

// predicateKey is the form in which predicates are equal: the words that carry
// it, in what their forms have in common.
func predicateKey(predicate string) string {
	ws := words.Of(strings.Join(text.NameWords(predicate), " "))
	var out []string
	for _, w := range ws {
		if !in("small", w) {
			out = append(out, root(w))
		}
	}
	if len(out) == 0 {
		return strings.Join(ws, "_")
	}
	return strings.Join(out, "_")
}

// root is what the forms of a word have in common: an accountant is no account.
func root(w string) string {
	if s := words.Stem(w); alike(w, s, func(string) bool { return true }) || alike(w, strings.TrimSuffix(s, "i")+"y", func(string) bool { return true }) {
		return s
	}
	return w
}

func (j *judge) propose() *refusal {
	obs := j.lists["observation_ids"]
	for i, id := range j.lists["about"] {
		if r := j.exists(strictjson.Pointer([]string{"about", strconv.Itoa(i)}), id); r != nil {
			return r
		}
	}
	p := j.claim(j.lists["about"])
	if class, given := j.texts["class"]; given {
		p.Class = PropositionClass(class)
	}
	literal, quals, r := j.form(p)
	if r != nil {
		return r
	}
	p.Text, p.Literal, p.Quals = j.texts["text"], literal, quals
	id, fresh, r := j.file(p, obs)
	if r != nil {
		return r
	}
	if !fresh {
		j.transform("proposition.attached_existing", id)
		var ids [][]byte
		for _, o := range obs {
			ids = append(ids, strictjson.Quote(o))
		}
		j.m = map[string][]byte{"proposition_id": strictjson.Quote(id), "observation_ids": array(ids)}
		j.t = &tool{name: ToolAttachSupport}
		j.e.Tool = ToolAttachSupport
		j.attachTo([]string{id}, obs)
		return nil
	}
	if j.d.standing(id, 0).Level == 0 {
		j.advise("proposition.not_borne_out", id)
	}
	return nil
}

func (j *judge) claim(about []string) *Proposition {
	return &Proposition{Class: Descriptive, About: about, Session: j.c.Session, Task: j.c.Task, CreatedAt: j.e.At, Decision: j.e.decision()}
}

// file makes a claim with its texts set, and links what bears it out. One that
// is there already is returned, and not fresh: nothing was done.
func (j *judge) file(p *Proposition, obs []string) (id string, fresh bool, r *refusal) {
	slot := p.Slot
	if slot == "" && p.Subject != "" {
		slot = j.s.ix.slotOf.of(join(p.Subject, predicateKey(p.Predicate), p.Quals))
	}
	if slot != "" {
		for _, id := range j.s.ix.answers.of(join(slot, j.d.valueKey(p))) {
			if there := j.d.propositions.get(id); !there.Gone && j.d.sameValue(there, p) {
				return id, false, nil
			}
		}
	} else if p.Subject == "" {
		// Without a question to answer, the same words about the same thing
		// are the same claim.
		for _, id := range j.s.ix.claims.of(join(p.About[0], p.Text)) {
			if there := j.d.propositions.get(id); !there.Gone && slices.Equal(there.About, p.About) {
				return id, false, nil
			}
		}
	}
	caps := &j.c.Policy.Caps
	if w := j.task(); w.Propositions >= int(caps.PropositionsPerTask) {
		return "", false, refuse("", writ.PropositionSpawnCap, "a task makes at most "+count(caps.PropositionsPerTask)+" claims; attach evidence to those that are there")
	}
	if p.Subject != "" && slot == "" {
		slot = j.d.mint("slot")
		j.d.add(Op{Slot: &Slot{ID: slot, Subject: p.Subject, Predicate: p.Predicate, Qualified: p.Quals != "", Propositions: []string{}}})
	}
	bare := *p
	bare.ID, bare.Slot, bare.Text, bare.Literal, bare.Quals = j.d.mint("prop"), slot, "", "", ""
	j.d.add(Op{At: "/payload", Proposition: &bare})
	j.d.effect("proposition.created", bare.ID)
	j.d.attach(bare.ID, obs, "", false)
	return bare.ID, true, nil
}

// form reads the structured form into a proposition.
func (j *judge) form(p *Proposition) (literal, quals string, r *refusal) {
	raw := j.m["structured_form"]
	if raw == nil {
		return "", "", nil
	}
	p.Subject, p.Predicate = textOf(strictjson.Get(raw, "subject")), textOf(strictjson.Get(raw, "predicate"))
	if registered := j.d.aliases.of(predicateKey(p.Predicate)); registered != "" && registered != p.Predicate {
		// The registered name of the predicate.
		raw = strictjson.Set(raw, "predicate", strictjson.Quote(registered))
		j.set("structured_form", raw)
		j.transform("predicate_alias", "/structured_form/predicate")
		p.Predicate = registered
	}
	if r := j.exists("/structured_form/subject", p.Subject); r != nil {
		return "", "", r
	}
	p.Subject = j.d.resolve(p.Subject)
	object := strictjson.Get(raw, "object")
	if e := strictjson.Get(object, "entity"); e != nil {
		p.Object = textOf(e)
		if j.d.entities.get(p.Object) == nil {
			return "", "", refuse("/structured_form/object/entity", writ.MemoryTarget, "an entity that exists")
		}
		p.Object = j.d.resolve(p.Object)
	}
	literal = string(strictjson.Get(object, "literal"))
	return literal, qualified(strictjson.Get(raw, "qualifiers")), nil
}

// attach is attach_support, and attach_contradiction: what speaks against a claim is
// another value of its question, and each observation is evidence of that.
func (j *judge) attach() *refusal {
	obs, id := j.lists["observation_ids"], j.texts["proposition_id"]
	pr := j.d.propositions.get(id)
	switch {
	case pr == nil:
		return refuse("/proposition_id", writ.MemoryTarget, "a proposition that exists")
	case pr.Gone:
		return refuse("/proposition_id", writ.PropositionClosed, "a proposition that was not erased; propose the claim anew")
	}
	if quote, given := j.texts["quote"]; given {
		for _, o := range obs {
			if !contains(j.d.observations.get(o).Raw, quote) {
				return refuse("/quote", writ.MemoryQuote, "words that stand verbatim in each of the observations")
			}
		}
	}
	if j.t.name == ToolAttachSupport {
		j.attachTo([]string{id}, obs)
		return nil
	}
	rivals, each := make([]string, len(obs)), make([][]string, len(obs))
	for i, o := range obs {
		if rivals[i] = j.d.rivalIn(j.d.observations.get(o), pr); rivals[i] == "" {
			return refuse(strictjson.Pointer([]string{"observation_ids", strconv.Itoa(i)}), writ.MemoryUnborne,
				"an observation that bears out another value of the same subject and predicate; propose that value first, with structured_form")
		}
		each[i] = []string{o}
	}
	j.attachTo(rivals, each...)
	return nil
}

// attachTo links to each claim its observations, and says to which any is new.
func (j *judge) attachTo(claims []string, obs ...[]string) {
	_, quoted := j.texts["quote"]
	fresh := false
	for i, id := range claims {
		if j.d.attach(id, obs[i], "/payload", quoted) {
			fresh = true
			j.d.effect("evidence.attached", id)
		}
	}
	if j.noValue = !fresh; !fresh {
		j.d.effect("evidence.already_attached", claims[0])
	}
}

// rivalIn is the claim of another value of the same question that an observation
// bears out, "" for none.
func (d *draftEvent) rivalIn(ob *Observation, pr *Proposition) string {
	sl := d.slots.get(pr.Slot)
	if sl == nil {
		return "" // a claim in words alone answers no question
	}
	for _, id := range sl.Propositions {
		if other := d.propositions.get(id); id != pr.ID && !d.sameValue(other, pr) && d.bears(d.witness(ob), other) {
			return id
		}
	}
	return ""
}

// attach links observations to a claim, each at its level where it bears the
// claim out, else as the agent's inference, and reports whether any is new.
func (d *draftEvent) attach(id string, obs []string, at string, quoted bool) (fresh bool) {
	pr := d.propositions.get(id)
	if pr == nil {
		d.err = errFit
		return false
	}
	for _, o := range obs {
		if d.links.of(join(string(Supports), o, id)) != "" {
			continue
		}
		ob := d.observations.get(o)
		ed := &Edge{ID: d.mint("edge"), Type: Supports, From: o, To: id, RecordedAt: ob.RecordedAt, Quoted: quoted, Decision: d.e.decision()}
		if in := d.bearing(d.witness(ob), pr); len(in) > 0 && d.refutedBy(id, ob) == "" {
			last := in[len(in)-1]
			value, _ := d.valueOf(pr)
			ed.Level, ed.Side, ed.At, ed.Also = ob.Level, d.beside(d.witness(ob), in, pr), last.at, last.adds(pr, value)
		} else if ob.Level > 0 {
			d.effect("evidence.counted_as_inference", o)
		}
		d.add(Op{At: at, Edge: ed})
		d.touch(pr.Slot, id)
		fresh = true
	}
	return fresh
}

// mostBeside bounds how many claims of a question are looked for beside one.
const mostBeside = 100

// beside are the other claims of the question whose values stand in one sentence
// or one list with that of a claim, which the units bear out.
func (d *draftEvent) beside(w *witness, in []bearer, pr *Proposition) (out []string) {
	sl := d.slots.get(pr.Slot)
	if sl == nil {
		return nil
	}
	value, _ := d.valueOf(pr)
	for _, id := range sl.Propositions[max(0, len(sl.Propositions)-mostBeside):] {
		other := d.propositions.get(id)
		theirs, ok := d.valueOf(other)
		if id == pr.ID || !ok || d.sameValue(other, pr) {
			continue
		}
		if slices.ContainsFunc(in, func(b bearer) bool { return w.units[b.unit].both(value, theirs) }) {
			out = append(out, id)
		}
	}
	return out
}

// both reports whether two values stand in one enumeration of a sentence, or one
// list of a record.
func (u *unit) both(a, b string) bool {
	if u.leaves == nil {
		return u.has(b) && (enumerated(u.text, a, b) || enumerated(u.text, b, a))
	}
	return slices.ContainsFunc(u.leaves, func(x leaf) bool {
		return x.list > 0 && x.is(a) && slices.ContainsFunc(u.leaves, func(y leaf) bool { return y.list == x.list && y.is(b) })
	})
}

// enumerated reports whether between two values of a sentence stands what joins
// the parts of an enumeration, at both ends.
func enumerated(s, first, then string) bool {
	s, first, then = fold(s), fold(first), fold(then)
	i := strings.Index(s, first)
	if i < 0 {
		return false
	}
	between, _, ok := strings.Cut(s[i+len(first):], then)
	return ok && enumeration().MatchString(between)
}

// joins stand between the parts of an enumeration.
const joins = `(?:and|or|und|oder|et|ou|y|o|e|en|of|och|og|и|или)`

var enumeration = text.Pattern(`^\s*(,|&|` + joins + `\s)(.*(,|&|\s` + joins + `))?\s*$`)

package memory

import (
	"cmp"
	"errors"
	"slices"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// maxPayload bounds a proposal.
const maxPayload = 256 << 10

// valueLimits bound a value: a proposal in its envelope.
// Whatever a proposal may hold fits, and what a decision sets beside it.
var valueLimits = strictjson.Limits{Bytes: maxPayload + 1024, Depth: 12, Leaves: 21_000, Number: 64}

// errFit says that an event and the state do not belong together.
var errFit = errors.New("memory: the event does not fit the state")

func (s *State) put(e *Event, value []byte) error {
	s.head = e.N
	if e.V < EventVersion {
		s.inherited = e.N
	}
	if e.Kind == KindOpen || e.Tool == "operator."+CommandPolicy && e.Status == writ.Accepted {
		s.namespace, s.policy, s.mode = e.Namespace, e.Policy, e.Mode
	}
	s.latest = max(s.latest, e.At)
	s.decided.put(e.decision(), &Decided{N: e.N, At: e.At, Kind: e.Kind, Tool: e.Tool, Principal: e.Principal,
		Session: e.Session, Task: e.Task, Status: e.Status, Reason: e.Reason, Exposed: e.Exposed, Erased: value == nil, Latest: s.latest})
	if len(e.Ops) > 0 && value != nil && strictjson.Check(value, valueLimits) != nil {
		return errors.New("memory: the value of an accepted event is not strict JSON")
	}
	if e.Kind == KindProposal && e.Session != "" && len(e.Ops) > 0 {
		s.workspace(e)
	}
	for i := range e.Ops {
		if err := s.do(e, &e.Ops[i], value); err != nil {
			return err
		}
	}
	return nil
}

// workspace returns the workspace an event belongs to, to change it.
func (s *State) workspace(e *Event) *Workspace {
	key := join(e.Session, e.Task)
	w := s.workspaces.edit(key)
	if w == nil {
		w = &Workspace{Session: e.Session, Task: e.Task, StartedAt: e.At}
		s.workspaces.put(key, w)
	}
	return w
}

func textOf(raw []byte) string {
	t, _ := strictjson.Text(raw)
	return t
}

// made puts a new row into a draft, if it is one of this event's.
func made[T any](s *State, t *table[T], e *Event, prefix, id string, row *T) error {
	if p, n, _, ok := splitID(id); !ok || p != prefix || n != e.N || t.get(id) != nil {
		return errFit
	}
	t.put(id, row)
	s.fresh = append(s.fresh, row)
	return nil
}

func (s *State) do(e *Event, o *Op, value []byte) error {
	at := strictjson.At(value, o.At)
	switch {
	case o.Observation != nil:
		return s.doObservation(e, copied(o.Observation), at)
	case o.Entity != nil:
		en := copied(o.Entity)
		s.name(&en.Names[0], e, strictjson.Get(at, "name"))
		if en.Principal != "" {
			s.persons.set(en.Principal, en.ID)
		}
		if e.Session != "" {
			s.workspace(e).Entities++
		}
		return made(s, &s.entities, e, "ent", en.ID, en)
	case o.Alias != nil:
		n := Name{Observation: o.Alias.Observation, Beside: o.Alias.Beside}
		s.name(&n, e, at)
		return change(&s.entities, []string{o.Alias.Entity}, func(en *Entity) {
			if en.Names, en.UpdatedAt = append(en.Names, n), e.At; !slices.Contains(s.fresh, any(en)) {
				s.fresh = append(s.fresh, en)
			}
		})
	case o.Same != nil:
		same := func(a, b string) error {
			return change(&s.entities, []string{a}, func(en *Entity) { en.PossibleSames = append(en.PossibleSames, PossibleSame{b, o.Same.Similarity}) })
		}
		return cmp.Or(same(o.Same.A, o.Same.B), same(o.Same.B, o.Same.A))
	case o.Slot != nil:
		return made(s, &s.slots, e, "slot", o.Slot.ID, copied(o.Slot))
	case o.Proposition != nil:
		return s.doProposition(e, copied(o.Proposition), at)
	case o.Edge != nil:
		return s.doEdge(e, copied(o.Edge), at)
	case o.Close != nil:
		ed := s.edges.edit(o.Close.Edge)
		if ed == nil || !ed.Active() {
			return errFit
		}
		ed.Resolution, ed.ResolvedBy, ed.ClosedAt = o.Close.Resolution, o.Close.By, e.At
	case o.Test != nil:
		if !s.propositions.has(o.Test.Propositions) {
			return errFit
		}
		return cmp.Or(made(s, &s.tests, e, "test", o.Test.ID, copied(o.Test)),
			change(&s.workspaces, []string{join(o.Test.Session, o.Test.Task)}, func(w *Workspace) { w.OpenTests++ }))
	case o.EndTest != nil:
		return s.endTest(o.EndTest)
	case o.Consolidate != nil:
		return change(&s.workspaces, []string{join(o.Consolidate.Session, o.Consolidate.Task)}, func(w *Workspace) { w.LastConsolidation = e.N })
	case o.Episode != nil:
		return cmp.Or(made(s, &s.episodes, e, "epi", o.Episode.ID, copied(o.Episode)),
			change(&s.workspaces, []string{join(o.Episode.Session, o.Episode.Task)}, func(w *Workspace) { w.Episode = o.Episode.ID }))
	case o.Source != nil:
		s.sources.put(o.Source.ID, copied(o.Source))
	case o.Predicate != nil:
		for _, a := range o.Predicate.Aliases {
			s.aliases.set(predicateKey(a), o.Predicate.Name)
		}
		s.predicates.put(predicateKey(o.Predicate.Name), copied(o.Predicate))
	case o.Merge != nil:
		return s.doMerge(e, o.Merge)
	case o.Erase != nil:
		return s.doErase(o.Erase)
	case o.Distrust != nil:
		return s.doDistrust(o.Distrust)
	}
	return nil
}

// name puts a text into a name, or says that it is gone.
func (s *State) name(n *Name, e *Event, raw []byte) {
	n.Record, n.Text, n.Gone = e.N, textOf(raw), raw == nil
}

func (s *State) doObservation(e *Event, o *Observation, at []byte) error {
	key := clientKey(o.Principal, o.Session, o.Client)
	if s.clients.get(key) != nil {
		return errFit
	}
	text := func(name string) string { return textOf(strictjson.Get(at, name)) }
	o.Raw, o.SourceRef = cmp.Or(text("raw_payload"), text("summary_text"), text("text")), text("source_ref")
	o.Parsed = string(strictjson.Get(at, "parsed_payload"))
	if o.Order == 0 {
		o.Order, o.After = s.seen, e.N
	}
	s.seen = max(s.seen, o.Order)
	s.clients.set(key, o.ID)
	r := s.rates.edit(o.Source)
	if r == nil || r.over(e.At) {
		r = &rate{Start: e.At}
		s.rates.put(o.Source, r)
	}
	r.Count++
	if e.Session != "" && e.Tool != ToolArchiveEpisode {
		w := s.workspace(e)
		w.Observations++
		w.LastObservation = e.N
	}
	return made(s, &s.observations, e, "obs", o.ID, o)
}

// clientKey is what a caller's own id of an observation is unique in.
func clientKey(principal, session, client string) string { return join(principal, session, client) }

func (s *State) doProposition(e *Event, p *Proposition, at []byte) error {
	if len(p.About) == 0 || !s.entities.has(p.About) {
		return errFit
	}
	p.Text = textOf(strictjson.Get(at, "text"))
	p.Gone = at == nil
	form := strictjson.Get(at, "structured_form")
	p.Literal = string(strictjson.Get(strictjson.Get(form, "object"), "literal"))
	p.Quals = qualified(strictjson.Get(form, "qualifiers"))
	if e.Tool == ToolRemember { // the value stands beside the text
		p.Literal = string(strictjson.Get(at, "value"))
	}
	if p.Slot != "" {
		sl := s.slots.edit(p.Slot)
		if sl == nil {
			return errFit
		}
		sl.Propositions = append(sl.Propositions, p.ID)
	}
	if e.Session != "" {
		s.workspace(e).Propositions++
	}
	return made(s, &s.propositions, e, "prop", p.ID, p)
}

// qualified is the qualifiers of a claim, "" where they say nothing.
func qualified(raw []byte) string {
	if len(raw) <= len("{}") {
		return ""
	}
	return string(raw)
}

func (s *State) doEdge(e *Event, ed *Edge, at []byte) error {
	if ed.Type != Supports && ed.Type != Supersedes {
		return nil // of an earlier version: what contradicts is another value's support
	}
	if s.propositions.get(ed.To) == nil || !ed.Active() || ed.Decision != e.decision() {
		return errFit
	}
	if ed.Quoted {
		ed.Quote = textOf(strictjson.Get(at, "quote"))
	}
	switch {
	case ed.Type == Supersedes && e.V < formVersion:
		return nil // it was computed
	case ed.Type == Supersedes && s.propositions.get(ed.From) == nil,
		ed.Type == Supports && ed.From != ed.Decision && s.observations.get(ed.From) == nil:
		return errFit
	}
	if e.V < EventVersion {
		ed.Level = s.earlier(ed)
	}
	if ed.From == ed.Decision {
		ed.Order = s.seen
	}
	s.links.set(join(string(ed.Type), ed.From, ed.To), ed.ID)
	return made(s, &s.edges, e, "edge", ed.ID, ed)
}

// edgesAt are the edges at a proposition, a draft's own among them.
func (s *State) edgesAt(id string) (out []*Edge) {
	for _, e := range s.ix.edgesOf.of(id) {
		out = append(out, s.edges.get(e))
	}
	for _, row := range s.fresh {
		if ed, ok := row.(*Edge); ok && ed.To == id {
			out = append(out, ed)
		}
	}
	return out
}

func (s *State) edgesFrom(id string) (out []*Edge) {
	for _, e := range s.ix.edgesFrom.of(id) {
		out = append(out, s.edges.get(e))
	}
	return out
}

func (s *State) endTest(o *EndTestOp) error {
	t := s.tests.edit(o.Test)
	if t == nil || t.Status != TestProposed {
		return errFit
	}
	t.Status, t.Result = o.Status, o.Result
	if w := s.workspaces.edit(join(t.Session, t.Task)); w != nil {
		w.OpenTests--
	}
	return nil
}

func (s *State) doMerge(e *Event, m *MergeOp) error {
	from, into := s.entities.edit(m.From), s.entities.edit(m.Into)
	switch {
	case from == nil || into == nil || m.From == m.Into:
		return errFit
	case m.Undo && from.MergedInto == m.Into:
		from.MergedInto = ""
	case !m.Undo && from.MergedInto == "" && into.MergedInto == "":
		from.MergedInto = m.Into
	default:
		return errFit
	}
	from.UpdatedAt, into.UpdatedAt = e.At, e.At
	return nil
}

// change edits rows that must be there.
func change[T any](t *table[T], keys []string, f func(*T)) error {
	for _, key := range keys {
		r := t.edit(key)
		if r == nil {
			return errFit
		}
		f(r)
	}
	return nil
}

func (s *State) doErase(o *EraseOp) error {
	decisions := make([]string, len(o.Records))
	for i, n := range o.Records {
		decisions[i] = decisionID(n)
		for _, id := range s.ix.byRecord.of(recordKey(n)) {
			if ed := s.edges.get(id); ed != nil && ed.Quote != "" {
				s.edges.edit(id).Quote = ""
			}
		}
	}
	err := cmp.Or(
		change(&s.decided, decisions, func(d *Decided) { d.Erased = true }),
		change(&s.observations, o.Observations, func(ob *Observation) {
			ob.Status, ob.Raw, ob.Parsed, ob.SourceRef = Erased, "", "", ""
		}),
		change(&s.propositions, o.Propositions, func(p *Proposition) {
			p.Gone, p.Text, p.Literal, p.Quals = true, "", "", ""
		}),
		change(&s.entities, o.Entities, func(en *Entity) {
			for i := range en.Names {
				if slices.Contains(o.Records, en.Names[i].Record) {
					en.Names[i].Text, en.Names[i].Gone = "", true
				}
			}
			en.Gone = en.Gone || slices.Contains(o.Nameless, en.ID)
		}))
	if err == nil && s.inherited > 0 {
		s.hearEarlier()
	}
	return err
}

// hearEarlier lowers what statements of earlier versions count to what is left that bears them
// out, where a text of it is gone: a fold that never had that could not tell what it said.
func (s *State) hearEarlier() {
	for _, id := range s.edges.base.keys() {
		ed := s.edges.get(id)
		if ed.Type != Supports || number(ed.Decision) > s.inherited || !s.lacks(ed) {
			continue
		}
		if l := s.earlier(ed); l < ed.Level {
			s.edges.edit(id).Level = l
		}
	}
}

// lacks reports whether a text is gone of what a statement was read from.
func (s *State) lacks(ed *Edge) bool {
	o, p := s.observations.get(ed.From), s.propositions.get(ed.To)
	if o == nil || o.Status == Erased || p.Gone {
		return true
	}
	return slices.ContainsFunc([]string{p.Subject, p.Object}, func(id string) bool {
		id = s.resolve(id)
		return slices.ContainsFunc(append([]string{id}, s.ix.mergedFrom.of(id)...), func(id string) bool {
			en := s.entities.get(id)
			return en != nil && en.Names[0].Gone
		})
	})
}

func (s *State) doDistrust(o *DistrustOp) error {
	if src := s.sources.edit(o.Source); src != nil {
		since := o.Since
		src.DistrustedSince, src.Suspended = &since, true
	}
	for _, id := range o.Observations {
		ob := s.observations.edit(id)
		if ob == nil || ob.Status == Erased {
			return errFit
		}
		ob.Status = Distrusted
	}
	return nil
}

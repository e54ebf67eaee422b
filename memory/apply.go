package memory

import (
	"errors"
	"slices"
	"strconv"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// maxPayload bounds a proposal.
const maxPayload = 256 << 10

// valueLimits bound a value: a proposal in its envelope.
// Whatever a proposal may hold fits, and what a decision sets beside it.
var valueLimits = strictjson.Limits{Bytes: maxPayload + 1024, Depth: 12, Leaves: 21_000, Number: 64}

// checkValue refuses a value of which nothing could be read. What was rejected
// may have been anything.
func checkValue(b []byte) error {
	if len(b) > maxPayload+1024 {
		return errors.New("memory: a value is too large")
	}
	return nil
}

// errFit says that an event and the state do not belong together.
var errFit = errors.New("memory: the event does not fit the state")

// put applies an event to a draft.
func (s *State) put(e *Event, value []byte) error {
	s.head = e.N
	if e.Kind == KindOpen || e.Tool == "operator."+CommandPolicy && e.Status == writ.Accepted {
		s.namespace, s.policy, s.mode = e.Namespace, e.Policy, e.Mode
	}
	s.latest = max(s.latest, e.At)
	if e.Tool == "operator."+CommandSweep && e.Status == writ.Accepted {
		s.swept = e.At
	}
	s.decided.put(mintID("dec", e.N, 1), &Decided{N: e.N, At: e.At, Kind: e.Kind, Tool: e.Tool, Principal: e.Principal,
		Session: e.Session, Task: e.Task, Status: e.Status, Reason: e.Reason, Erased: value == nil})
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

// madeBy reports whether an id is one this event can give.
func madeBy(e *Event, prefix, id string) bool {
	p, n, _, ok := splitID(id)
	return ok && p == prefix && n == e.N
}

// do applies one operation to a draft.
func (s *State) do(e *Event, o *Op, value []byte) error {
	at := strictjson.At(value, o.At)
	switch {
	case o.Observation != nil:
		return s.doObservation(e, o.Observation.copied(), at)
	case o.Entity != nil:
		en := o.Entity.copied()
		if s.entities.get(en.ID) != nil || !madeBy(e, "ent", en.ID) {
			return errFit
		}
		s.name(&en.Names[0], e, strictjson.Get(at, "name"))
		s.entities.put(en.ID, en)
		if en.Principal != "" {
			s.persons.put(en.Principal, &ref{en.ID})
		}
		if e.Session != "" {
			s.workspace(e).Entities++
		}
	case o.Alias != nil:
		en := s.entities.edit(o.Alias.Entity)
		if en == nil {
			return errFit
		}
		n := Name{Observation: o.Alias.Observation, Beside: o.Alias.Beside}
		s.name(&n, e, at)
		en.Names, en.UpdatedAt = append(en.Names, n), e.At
	case o.Same != nil:
		for _, p := range [][2]string{{o.Same.A, o.Same.B}, {o.Same.B, o.Same.A}} {
			en := s.entities.edit(p[0])
			if en == nil {
				return errFit
			}
			en.PossibleSames = append(en.PossibleSames, PossibleSame{p[1], o.Same.Similarity})
		}
	case o.Slot != nil:
		if s.slots.get(o.Slot.ID) != nil || !madeBy(e, "slot", o.Slot.ID) {
			return errFit
		}
		s.slots.put(o.Slot.ID, o.Slot.copied())
	case o.Proposition != nil:
		return s.doProposition(e, o.Proposition.copied(), at)
	case o.Edge != nil:
		return s.doEdge(e, o.Edge.copied(), at)
	case o.Close != nil:
		ed := s.edges.edit(o.Close.Edge)
		if ed == nil || !ed.Active() {
			return errFit
		}
		ed.Resolution, ed.ResolvedBy, ed.ClosedAt = o.Close.Resolution, o.Close.By, e.At
		s.retally(ed.To, ed.Type)
	case o.Mark != nil:
		return s.doMark(o.Mark)
	case o.Belief != nil:
		return s.doBelief(e, o.Belief)
	case o.Touch != nil:
		return s.doTouch(e, o.Touch)
	case o.Load != nil:
		return s.doLoad(e, o.Load)
	case o.Test != nil:
		if s.tests.get(o.Test.ID) != nil || !madeBy(e, "test", o.Test.ID) {
			return errFit
		}
		for _, p := range o.Test.Propositions {
			if s.propositions.get(p) == nil {
				return errFit
			}
		}
		s.tests.put(o.Test.ID, o.Test.copied())
		w := s.workspaces.edit(join(o.Test.Session, o.Test.Task))
		if w == nil {
			return errFit
		}
		if o.Test.Rule != RuleTriggerForecast { // nobody of the task proposed it
			w.OpenTests++
		}
	case o.EndTest != nil:
		return s.endTest(o.EndTest)
	case o.Consolidate != nil:
		return s.doConsolidate(e, o.Consolidate)
	case o.Settle != nil:
		en := s.entities.edit(o.Settle.Entity)
		if en == nil {
			return errFit
		}
		en.Canonicality, en.UpdatedAt = Canonical, e.At
	case o.Episode != nil:
		if s.episodes.get(o.Episode.ID) != nil || !madeBy(e, "epi", o.Episode.ID) {
			return errFit
		}
		s.episodes.put(o.Episode.ID, o.Episode.copied())
		w := s.workspaces.edit(join(o.Episode.Session, o.Episode.Task))
		if w == nil {
			return errFit
		}
		w.Episode = o.Episode.ID
	case o.Source != nil:
		s.sources.put(o.Source.ID, o.Source.copied())
	case o.Predicate != nil:
		for _, a := range o.Predicate.Aliases {
			s.aliases.put(a, &ref{o.Predicate.Name})
		}
		s.predicates.put(o.Predicate.Name, o.Predicate.copied())
	case o.Merge != nil:
		return s.doMerge(e, o.Merge)
	case o.Erase != nil:
		return s.doErase(o.Erase)
	case o.Distrust != nil:
		return s.doDistrust(o.Distrust)
	case o.Retain != nil:
		ep := s.episodes.edit(o.Retain.Episode)
		if ep == nil {
			return errFit
		}
		ep.Retention, ep.ExpiresAt = o.Retain.Retention, o.Retain.ExpiresAt
	case o.Expire != nil:
		for _, id := range o.Expire.Tests {
			if err := s.endTest(&EndTestOp{Test: id, Status: TestExpired}); err != nil {
				return err
			}
		}
		for _, id := range o.Expire.Episodes {
			ep := s.episodes.edit(id)
			if ep == nil {
				return errFit
			}
			ep.Expired = true
		}
	}
	return nil
}

// name puts a text into a name, or says that it is gone.
func (s *State) name(n *Name, e *Event, raw []byte) {
	n.Record, n.Text, n.Gone = e.N, textOf(raw), raw == nil
}

func (s *State) doObservation(e *Event, o *Observation, at []byte) error {
	key := join(o.Principal, o.Client)
	if s.observations.get(o.ID) != nil || !madeBy(e, "obs", o.ID) || s.clients.get(key) != nil {
		return errFit
	}
	o.Raw = textOf(strictjson.Get(at, "raw_payload"))
	if at != nil && o.Raw == "" {
		o.Raw = textOf(strictjson.Get(at, "summary_text"))
	}
	o.Parsed = string(strictjson.Get(at, "parsed_payload"))
	o.SourceRef = textOf(strictjson.Get(at, "source_ref"))
	s.observations.put(o.ID, o)
	s.clients.put(key, &ref{o.ID})
	r := s.rates.edit(o.Source)
	if r == nil {
		r = &rate{Start: e.At}
		s.rates.put(o.Source, r)
	}
	if e.At < r.Start || e.At-r.Start >= Instant(60_000_000) {
		*r = rate{Start: e.At}
	}
	r.Count++
	if e.Session != "" && e.Tool != ToolArchiveEpisode {
		w := s.workspace(e)
		w.Observations++
		w.NewSince++
		w.LastObservation = e.N
	}
	return nil
}

func (s *State) doProposition(e *Event, p *Proposition, at []byte) error {
	if s.propositions.get(p.ID) != nil || !madeBy(e, "prop", p.ID) || p.Status != Tentative || len(p.About) == 0 {
		return errFit
	}
	for _, en := range p.About {
		if s.entities.get(en) == nil {
			return errFit
		}
	}
	p.Text = textOf(strictjson.Get(at, "text"))
	p.Gone = at == nil
	form := strictjson.Get(at, "structured_form")
	p.Literal = string(strictjson.Get(strictjson.Get(form, "object"), "literal"))
	if q := strictjson.Get(form, "qualifiers"); len(q) > 2 { // not {}
		p.Quals = string(q)
	}
	s.propositions.put(p.ID, p)
	if p.Slot != "" {
		sl := s.slots.edit(p.Slot)
		if sl == nil {
			return errFit
		}
		sl.Propositions = append(sl.Propositions, p.ID)
		if p.Open() {
			sl.Current = append(sl.Current, p.ID)
		}
	}
	if e.Session != "" {
		s.workspace(e).Propositions++
	}
	return nil
}

func (s *State) doEdge(e *Event, ed *Edge, at []byte) error {
	key := join(string(ed.Type), ed.From, ed.To)
	if s.edges.get(ed.ID) != nil || !madeBy(e, "edge", ed.ID) || s.propositions.get(ed.To) == nil || !ed.Active() || ed.Decision != mintID("dec", e.N, 1) {
		return errFit
	}
	if ed.Quoted {
		ed.Quote = textOf(strictjson.Get(at, "quote"))
	}
	s.edges.put(ed.ID, ed)
	s.links.put(key, &ref{ed.ID})
	s.fresh = append(s.fresh, ed.ID)
	if ed.Type != Supersedes {
		if s.observations.get(ed.From) == nil {
			return errFit
		}
		s.count(s.propositions.edit(ed.To), ed)
	}
	return nil
}

// statement names what an edge says once with every other of the same: one
// evidence, one side, one group and level. "" stands for itself alone.
func (e *Edge) statement() string {
	if e.Statement == "" {
		return ""
	}
	return join("said", string(e.Type), e.To, e.Group, strconv.Itoa(e.Level), e.Statement)
}

// count counts an edge, unless another that counts is of the same evidence: one
// statement is one, under however many ids it is recorded.
func (s *State) count(p *Proposition, ed *Edge) {
	if key := ed.statement(); key != "" {
		if first := s.links.get(key); first != nil && first.ID != ed.ID && s.edges.get(first.ID).Active() {
			return
		}
		s.links.put(key, &ref{ed.ID})
	}
	p.tally(ed)
}

// tally counts an edge.
func (p *Proposition) tally(ed *Edge) {
	side := &p.Support
	if ed.Type == Contradicts {
		side = &p.Contradict
	}
	i, ok := slices.BinarySearchFunc(*side, ed, func(t Tally, ed *Edge) int {
		if t.Group != ed.Group {
			if t.Group < ed.Group {
				return -1
			}
			return 1
		}
		return t.Level - ed.Level
	})
	if !ok {
		*side = slices.Insert(*side, i, Tally{Group: ed.Group, Level: ed.Level, Newest: ed.RecordedAt})
	}
	t := &(*side)[i]
	t.Count++
	t.Reliability = max(t.Reliability, ed.Reliability)
	t.Newest = max(t.Newest, ed.RecordedAt)
}

// edgesAt returns the edges at a proposition in their order, with those of
// this draft.
func (s *State) edgesAt(id string) (out []*Edge) {
	for _, e := range s.ix.edgesOf[id] {
		out = append(out, s.edges.get(e))
	}
	for _, e := range s.fresh {
		if ed := s.edges.get(e); ed.To == id {
			out = append(out, ed)
		}
	}
	return out
}

// retally counts the edges of one side anew.
func (s *State) retally(id string, typ EdgeType) {
	p := s.propositions.edit(id)
	if p == nil || typ == Supersedes {
		return
	}
	if typ == Contradicts {
		p.Contradict = nil
	} else {
		p.Support = nil
	}
	for _, ed := range s.edgesAt(id) {
		if ed.Type == typ && ed.Active() {
			s.count(p, ed)
		}
	}
}

func (s *State) doMark(m *MarkOp) error {
	p := s.propositions.edit(m.Proposition)
	if p == nil {
		return errFit
	}
	if m.Failed != nil {
		p.Failed = *m.Failed
	}
	if m.Passed != nil {
		p.Passed = *m.Passed
	}
	if m.ClearedBy != nil {
		p.ClearedBy = slices.Clone(*m.ClearedBy)
	}
	if m.Challenged != nil {
		p.Challenged = slices.Clone(*m.Challenged)
	}
	if m.SupersededBy != nil {
		p.SupersededBy = *m.SupersededBy
	}
	if m.ValidTo != nil {
		to := *m.ValidTo
		p.ValidTo = &to
	}
	if m.Archived != nil {
		p.Archived = *m.Archived
	}
	if m.Canonical != nil {
		p.Canonical = *m.Canonical
	}
	if m.Reopen {
		p.SupersededBy, p.ValidTo = "", nil
	}
	if m.ValidTo != nil || m.Reopen {
		s.current(p)
	}
	return nil
}

// current keeps a proposition among its slot's open ones as long as it is open.
func (s *State) current(p *Proposition) {
	sl := s.slots.edit(p.Slot)
	if sl == nil {
		return
	}
	i := slices.Index(sl.Current, p.ID)
	switch {
	case p.Open() && i < 0:
		sl.Current = append(sl.Current, p.ID)
		slices.SortFunc(sl.Current, compareID)
	case !p.Open() && i >= 0:
		sl.Current = slices.Delete(sl.Current, i, i+1)
	}
}

func (s *State) doBelief(e *Event, b *BeliefOp) error {
	p := s.propositions.edit(b.Proposition)
	if p == nil || p.Status != b.Prior || !b.Next.valid() {
		return errFit
	}
	p.Seq++
	p.Status, p.Rule, p.Score, p.EvaluatedAt = b.Next, b.Rule, b.Score, e.At
	p.WasUsable, p.ContestedUpdates = b.WasUsable, b.ContestedUpdates
	s.beliefs[p.ID] = append(s.beliefs[p.ID], Belief{Seq: p.Seq, Prior: b.Prior, Next: b.Next, Rule: b.Rule, Score: b.Score, At: e.At, Record: e.N})
	return nil
}

func (s *State) doTouch(e *Event, t *TouchOp) error {
	p := s.propositions.get(t.Proposition)
	if p == nil || e.Session == "" {
		return errFit
	}
	key := join(e.Session, e.Task, p.ID)
	it := s.items.edit(key)
	settled := it != nil && it.Outcome != ""
	fresh := it == nil
	if it == nil {
		it = &Item{Session: e.Session, Task: e.Task, Proposition: p.ID, Impact: LowImpact, Born: p.Session == e.Session && p.Task == e.Task}
		s.items.put(key, it)
	}
	if it.Born && (fresh || settled) {
		s.workspace(e).OpenClaims++
	}
	it.Touches++
	it.Outcome = ""
	if t.Impact.rank() > it.Impact.rank() {
		it.Impact = t.Impact
	}
	return nil
}

func (s *State) endTest(o *EndTestOp) error {
	t := s.tests.edit(o.Test)
	if t == nil || t.Status != TestProposed {
		return errFit
	}
	t.Status, t.Result = o.Status, o.Result
	if w := s.workspaces.edit(join(t.Session, t.Task)); w != nil && t.Rule != RuleTriggerForecast {
		w.OpenTests--
	}
	return nil
}

func (s *State) doConsolidate(e *Event, c *ConsolidateOp) error {
	key := join(c.Session, c.Task)
	w := s.workspaces.edit(key)
	if w == nil {
		return errFit
	}
	w.NewSince, w.LastConsolidation = 0, e.N
	w.Consolidated++
	done := func(ids []string, as ItemOutcome) {
		for _, id := range ids {
			if it := s.items.edit(join(key, id)); it != nil {
				if it.Born && it.Outcome == "" {
					w.OpenClaims--
				}
				it.Outcome, it.Touches = as, 0
			}
		}
	}
	done(c.Promoted, WasPromoted)
	done(c.Archived, WasArchived)
	done(c.Discarded, WasDiscarded)
	for _, id := range c.Carried {
		if it := s.items.edit(join(key, id)); it != nil {
			it.Carried = true
		}
	}
	s.carry.put("carry", &carryList{slices.Clone(c.Carry)})
	return nil
}

func (s *State) doMerge(e *Event, m *MergeOp) error {
	from, into := s.entities.edit(m.From), s.entities.edit(m.Into)
	switch {
	case from == nil || into == nil || m.From == m.Into:
		return errFit
	case m.Undo && from.MergedInto == m.Into:
		from.Canonicality, from.MergedInto = Candidate, ""
	case !m.Undo && from.MergedInto == "" && into.MergedInto == "":
		from.Canonicality, from.MergedInto = Merged, m.Into
	default:
		return errFit
	}
	from.UpdatedAt, into.UpdatedAt = e.At, e.At
	return nil
}

func (s *State) doErase(o *EraseOp) error {
	for _, n := range o.Records {
		d := s.decided.edit(mintID("dec", n, 1))
		if d == nil {
			return errFit
		}
		d.Erased = true
		for _, id := range s.ix.byRecord[n] {
			if ed := s.edges.get(id); ed != nil && ed.Quote != "" {
				s.edges.edit(id).Quote = ""
			}
		}
	}
	for _, id := range o.Observations {
		ob := s.observations.edit(id)
		if ob == nil {
			return errFit
		}
		ob.Status, ob.Raw, ob.Parsed, ob.SourceRef = Erased, "", "", ""
	}
	for _, id := range o.Propositions {
		p := s.propositions.edit(id)
		if p == nil {
			return errFit
		}
		p.Gone, p.Text, p.Literal, p.Quals = true, "", "", ""
		s.current(p)
	}
	for _, id := range o.Entities {
		en := s.entities.edit(id)
		if en == nil {
			return errFit
		}
		for i := range en.Names {
			if slices.Contains(o.Records, en.Names[i].Record) {
				en.Names[i].Text, en.Names[i].Gone = "", true
			}
		}
		if slices.Contains(o.Nameless, id) {
			en.Canonicality = Tombstoned
		}
	}
	return nil
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

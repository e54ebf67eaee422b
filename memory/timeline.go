package memory

import (
	"cmp"
	"slices"

	writ "github.com/writ-project/writ"
)

// Moment is one entry of a timeline.
type Moment struct {
	Record uint64  `json:"record"`
	At     Instant `json:"at"`
	// What is observation, value, supports, contradicts, supersedes, belief,
	// resolved, quarantined, distrusted or erased. What was erased or is believed no more
	// happened when it happened, without its words.
	What  string `json:"what"`
	ID    string `json:"id"`
	Other string `json:"other,omitempty"` // of a belief that is contested, who disputes it
	State Status `json:"state,omitempty"`
	Rule  Rule   `json:"rule_id,omitempty"`
	Text  *Data  `json:"text,omitempty"`

	place int // among those of its record
}

// Timeline is what happened, as it is told.
type Timeline struct {
	Notice  string   `json:"notice"`
	Moments []Moment `json:"moments"`
	More    bool     `json:"more"` // than was asked for
}

// Timeline tells what happened to an entity or a slot, in the order of the
// records, at most limit entries from record from on.
func (r *Reader) Timeline(id string, from uint64, limit int) Timeline {
	s, out := r.State, []Moment{}
	var props []string
	switch {
	case s.slots.get(id) != nil:
		props = s.slots.get(id).Propositions
	case isID("ent", id):
		props = slices.Concat(s.ix.about.of(s.resolve(id)), s.ix.about.of(id))
	case s.propositions.get(id) != nil:
		props = []string{id}
	}
	props = slices.Compact(slices.SortedFunc(slices.Values(props), compareID))
	seen := map[string]bool{}
	for i, pid := range props {
		out = append(out, r.moments(s.propositions.get(pid), 3*i, seen)...)
	}
	ordered := func() {
		out = slices.DeleteFunc(out, func(m Moment) bool { return m.Record < from })
		slices.SortStableFunc(out, func(a, b Moment) int { return cmp.Or(cmp.Compare(a.Record, b.Record), cmp.Compare(a.place, b.place)) })
	}
	ordered()
	last := s.head // beyond which nothing is told
	if limit > 0 && len(out) > limit {
		last = out[limit].Record
	}
	out = append(out, r.beliefs(props, from, last)...)
	ordered()
	more := limit > 0 && len(out) > limit
	if more {
		out = out[:limit]
	}
	for _, m := range out {
		if p := s.propositions.get(m.ID); p != nil && m.Text != nil {
			r.showsWords(p)
		} else if m.Text != nil {
			r.shows(r.clean(s.observations.get(m.ID)))
		}
	}
	return Timeline{Notice, out, more}
}

// moments are what happened to a claim, and to what it was cited for that was not seen yet.
func (r *Reader) moments(p *Proposition, place int, seen map[string]bool) []Moment {
	s, text, edges := r.State, r.caption(p), r.State.edgesAt(p.ID)
	out := []Moment{{Record: number(p.ID), At: p.CreatedAt, What: "value", ID: p.ID, Text: &text, place: place + 1}}
	if p.Gone {
		out = append(out, s.taken("erased", p.ID, edges, place+2)...)
	}
	for _, ed := range edges {
		n := number(ed.ID)
		out = append(out, Moment{Record: n, At: s.decision(n).At, What: string(ed.Type), ID: ed.From, Other: p.ID, place: place + 2})
		if d := s.decided.get(ed.ResolvedBy); d != nil && !ed.Active() {
			out = append(out, Moment{Record: d.N, At: d.At, What: "resolved", ID: ed.From, Other: p.ID, place: place + 2})
		}
		o := s.observations.get(ed.From)
		if o == nil || seen[o.ID] {
			continue
		}
		seen[o.ID] = true
		m := Moment{Record: number(o.ID), At: o.RecordedAt, What: "observation", ID: o.ID, place: place}
		switch o.Status {
		case Ingested:
			m.Text = r.quoted(o, p)
		case Quarantined: // as it was said
			m.What = string(o.Status)
		default:
			out = append(out, s.taken(string(o.Status), o.ID, s.edgesFrom(o.ID), place+2)...)
		}
		out = append(out, m)
	}
	return out
}

// taken is how a claim or an observation was erased, or ceased to be believed.
func (s *State) taken(what, id string, edges []*Edge, place int) []Moment {
	if d := s.decided.get(s.closedBy(what, edges)); d != nil {
		return []Moment{{Record: d.N, At: d.At, What: what, ID: id, place: place}}
	}
	return nil
}

// mostTurns bounds how many statements a timeline hears to tell how claims came to
// stand.
const mostTurns = 20_000

// beliefs are how claims came to stand otherwise from a record on up to another:
// the newest of that, where it takes too long to find all.
func (r *Reader) beliefs(props []string, from, last uint64) (out []Moment) {
	s := r.State
	left, of := mostTurns, map[string][]uint64{}
	for i, pid := range slices.Backward(props) {
		p := s.propositions.get(pid)
		key := cmp.Or(p.Slot, pid)
		turns, known := of[key]
		if !known {
			turns, left = s.turns(p, from, last, left)
			of[key] = turns
		}
		was := Status("")
		for _, n := range turns {
			if n < number(pid) {
				continue
			}
			if st := s.standing(pid, upTo(n)); st.Status != was {
				was = st.Status
				m := Moment{Record: n, At: s.decision(n).At, What: "belief", ID: pid, State: st.Status, Rule: st.Rule, place: 3*len(props) + i} // after what it rests on
				if len(st.Rivals) > 0 {
					m.Other = st.Rivals[0]
				}
				out = append(out, m)
			}
		}
	}
	return out
}

// turns are the records at which a claim, or another of its question, may have
// come to stand otherwise: from the last before a record on up to another, and of
// those as many of the newest as left statements to be heard allow.
func (s *State) turns(p *Proposition, from, last uint64, left int) ([]uint64, int) {
	ids := []string{p.ID}
	if sl := s.slots.get(p.Slot); sl != nil {
		ids = sl.Propositions
	}
	var out []uint64
	statements := 1
	at := func(id string) {
		if _, n, _, ok := splitID(id); ok && n <= last {
			out = append(out, n)
		}
	}
	for _, id := range ids {
		at(id)
		for _, ed := range s.edgesAt(id) {
			at(ed.ID)
			at(ed.ResolvedBy)
			statements++
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if i, _ := slices.BinarySearch(out, from); i > 0 {
		out = out[i-1:]
	}
	out = out[max(0, len(out)-left/statements):]
	return out, left - len(out)*statements
}

// Pending is what waits for somebody.
type Pending struct {
	Notice    string    `json:"notice"`
	Mode      Mode      `json:"mode"`
	Contested []View    `json:"contested"`
	Tests     []*Test   `json:"open_tests"`
	Rejected  []Decided `json:"last_rejections"`
}

// Pending reads what waits: in one task, or with an empty session in all.
func (r *Reader) Pending(session, task string, limit int) Pending {
	s := r.State
	p := Pending{Notice: Notice, Mode: s.mode, Contested: []View{}, Tests: []*Test{}, Rejected: []Decided{}}
	props, tests := s.ix.taskClaims.of(join(session, task)), s.ix.taskTests.of(join(session, task))
	if session == "" {
		props, tests = s.propositions.keys(), s.tests.keys()
	}
	for _, id := range props {
		if len(p.Contested) < limit && s.standing(id, 0).Status == Contested {
			v, _ := r.View(id)
			p.Contested = append(p.Contested, v)
		}
	}
	for _, id := range tests {
		if t := s.tests.get(id); t.Status == TestProposed && t.ExpiresAt >= InstantOf(r.Now) && len(p.Tests) < limit {
			p.Tests = append(p.Tests, r.test(t))
		}
	}
	for n := s.head; n > 0 && len(p.Rejected) < limit && s.head-n < 1000; n-- {
		d := s.decision(n)
		if d.Status == writ.Rejected && (session == "" || d.Session == session && d.Task == task) {
			p.Rejected = append(p.Rejected, *d)
		}
	}
	return p
}

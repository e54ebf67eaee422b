package memory

import (
	"slices"
	"strconv"

	writ "github.com/writ-project/writ"
)

// Moment is one entry of a timeline.
type Moment struct {
	Record uint64  `json:"record"`
	At     Instant `json:"at"`
	// What is observation, value, supports, contradicts, supersedes, belief,
	// resolved or erased.
	What  string `json:"what"`
	ID    string `json:"id"`
	Other string `json:"other,omitempty"`
	State Status `json:"state,omitempty"`
	Rule  Rule   `json:"rule_id,omitempty"`
	Text  *Data  `json:"text,omitempty"`
}

// Timeline tells what happened to an entity or a slot, in the order of the
// records, at most limit entries from record from on. more says that there is
// more.
func (r *Reader) Timeline(id string, from uint64, limit int) (out []Moment, more bool) {
	s := r.State
	var props []string
	switch {
	case isID("slot", id) && s.slots.get(id) != nil:
		props = s.slots.get(id).Propositions
	case isID("ent", id):
		props = s.ix.about[s.resolve(id)]
		if s.resolve(id) != id {
			props = slices.Concat(props, s.ix.about[id])
		}
	case isID("prop", id) && s.propositions.get(id) != nil:
		props = []string{id}
	}
	props = slices.Compact(slices.SortedFunc(slices.Values(props), compareID))
	seen := map[string]bool{}
	number := func(id string) uint64 { _, n, _, _ := splitID(id); return n }
	for _, pid := range props {
		p := s.propositions.get(pid)
		text := data(p.Text, max(0, p.supportLevel()), writ.Model, 500)
		out = append(out, Moment{Record: number(pid), At: p.CreatedAt, What: "value", ID: pid, Text: &text})
		if p.Gone {
			out = append(out, Moment{Record: number(pid), At: p.CreatedAt, What: "erased", ID: pid})
		}
		for _, b := range s.beliefs[pid] {
			out = append(out, Moment{Record: b.Record, At: b.At, What: "belief", ID: pid, State: b.Next, Rule: b.Rule})
		}
		for _, ed := range s.edgesAt(pid) {
			n := number(ed.ID)
			out = append(out, Moment{Record: n, At: s.decided.get(mintID("dec", n, 1)).At, What: string(ed.Type), ID: ed.From, Other: pid})
			if !ed.Active() {
				if d := s.decided.get(ed.ResolvedBy); d != nil {
					out = append(out, Moment{Record: d.N, At: d.At, What: "resolved", ID: ed.From, Other: pid})
				}
			}
			if o := s.observations.get(ed.From); o != nil && !seen[o.ID] {
				seen[o.ID] = true
				m := Moment{Record: number(o.ID), At: o.RecordedAt, What: "observation", ID: o.ID}
				if o.Status == Ingested {
					d := data(o.Raw, o.Level, o.labelFor(r.Principal), 500)
					m.Text = &d
				} else {
					m.What = string(o.Status)
				}
				out = append(out, m)
			}
		}
	}
	out = slices.DeleteFunc(out, func(m Moment) bool { return m.Record < from })
	slices.SortStableFunc(out, func(a, b Moment) int {
		switch {
		case a.Record < b.Record:
			return -1
		case a.Record > b.Record:
			return 1
		}
		return 0
	})
	if limit > 0 && len(out) > limit {
		return out[:limit], true
	}
	return out, false
}

// Pending is what waits for somebody.
type Pending struct {
	Notice    string    `json:"notice"`
	Mode      Mode      `json:"mode"`
	Contested []View    `json:"contested"`
	Tests     []*Test   `json:"open_tests"`
	Carried   []string  `json:"carried_over"`
	Rejected  []Decided `json:"last_rejections"`
	// New is how many observations came since the last consolidation, Due at
	// how many one is due.
	New int `json:"new_observations"`
	Due int `json:"consolidation_due_at"`
}

// Pending reads what waits: in one task, or with an empty session in all.
func (r *Reader) Pending(session, task string, limit int) Pending {
	s := r.State
	p := Pending{Notice: Notice, Mode: s.mode, Contested: []View{}, Tests: []*Test{}, Carried: []string{}, Rejected: []Decided{}, Due: int(r.Policy.Consolidation.Cadence)}
	key := join(session, task)
	var props, tests []string
	if session != "" {
		for _, it := range s.itemsOf(key) {
			props = append(props, it.Proposition)
		}
		tests = slices.Clone(s.ix.taskTests[key])
		for _, id := range s.ix.forecasts {
			for _, t := range s.ix.testsOf[id] { // whoever asks may know what came of it
				tests = addOnce(tests, t)
			}
		}
		if w := s.workspaces.get(key); w != nil {
			p.New = w.NewSince
		}
	} else {
		props, tests = s.propositions.keys(), s.tests.keys()
	}
	for _, id := range props {
		if pr := s.propositions.get(id); pr.Status == Contested && pr.Open() && len(p.Contested) < limit {
			v, _ := r.View(id)
			p.Contested = append(p.Contested, v)
		}
	}
	for _, id := range tests {
		if t := s.tests.get(id); t.Status == TestProposed && len(p.Tests) < limit {
			p.Tests = append(p.Tests, t.copied())
		}
	}
	if l := s.carry.get("carry"); l != nil {
		for _, c := range l.Items {
			if len(p.Carried) < limit {
				p.Carried = append(p.Carried, c.Proposition)
			}
		}
	}
	for n := s.head; n > 0 && len(p.Rejected) < limit && s.head-n < 1000; n-- {
		d := s.decided.get("dec_" + strconv.FormatUint(n, 10))
		if d.Status == writ.Rejected && (session == "" || d.Session == session && d.Task == task) {
			p.Rejected = append(p.Rejected, *d)
		}
	}
	return p
}

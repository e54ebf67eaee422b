package memory

import "slices"

// maxForecasts bounds how many forecasts one event brings to a test.
const maxForecasts = 20

// forecast reports whether a claim says what will be: a predictive one that
// holds from a time later than it was made. That is this memory's predicts edge:
// from the claim to the event of that time.
func (p *Proposition) forecast() bool { return p.Class == Predictive && p.ValidFrom > p.CreatedAt }

// forecasts brings each forecast whose time has come to a test, once: it
// came true, or something else did. Nobody is asked to believe it longer because
// nobody looked.
func (d *draftEvent) forecasts() {
	n := 0
	for _, id := range d.ix.forecasts {
		pr := d.propositions.get(id)
		if pr.ValidFrom > d.e.At || !pr.Open() || pr.Archived == RuleDiscarded || pr.Status == Rejected || len(d.ix.testsOf[id]) > 0 {
			continue
		}
		if n++; n > maxForecasts {
			d.effect("forecast.more_due", "")
			return
		}
		var why []string
		for _, ed := range d.edgesAt(id) {
			if ed.Type == Supports && ed.Active() && len(why) < 20 {
				why = append(why, ed.From)
			}
		}
		t := &Test{ID: d.mint("test"), Propositions: []string{id}, Kind: "wait_for_sample", Outcomes: []Predicted{{id, "came_true"}},
			Impact: LowImpact, Status: TestProposed, Rule: RuleTriggerForecast, Rationale: slices.Clone(why), Session: pr.Session, Task: pr.Task,
			CreatedAt: d.e.At, ExpiresAt: d.e.At + Instant(int64(d.p.Caps.TestHours)/1000)}
		d.add(Op{Test: t})
		d.effect("test.proposed", t.ID)
		d.effect(string(RuleTriggerForecast), t.ID)
	}
}

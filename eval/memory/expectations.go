package memory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-project/writ/memory"
)

// Unmet is one expectation that did not come true.
type Unmet struct {
	Run    string `json:"run"`
	System string `json:"system"`
	AtH    string `json:"at_h"`
	Of     string `json:"of"`
	Claim  string `json:"claim"`
	Want   string `json:"want"`
	Got    string `json:"got"`
}

// judge compares what is expected with what is so, claim by claim.
func (g *governed) judge(e *expect) (checked int, unmet []Unmet) {
	g.c.Now = g.r.instant(e.At.d)
	of := e.Prop.S + e.Slot.S + e.Entity.S + e.Observation.S + e.Step.S
	check := func(claim string, given bool, want, got string) {
		if !given {
			return
		}
		checked++
		if want != got {
			unmet = append(unmet, Unmet{AtH: strconv.FormatFloat(e.At.d.Hours(), 'f', -1, 64), Of: of, Claim: claim, Want: want, Got: got})
		}
	}
	switch {
	case e.Prop.Given():
		id := g.ids[e.Prop.S]
		v, _ := g.reader().View(id)
		check("state", e.State.Given(), e.State.S, string(v.State))
		check("rule_id", e.Rule.Given(), e.Rule.S, string(v.Rule))
		check("confidence", e.Confidence.Given(), e.Confidence.S, v.Confidence.String())
		check("canonical", e.Canonical.Given(), strconv.FormatBool(e.Canonical.Is), strconv.FormatBool(v.Canonical))
		check("disputes", e.Disputes.Given(), strconv.Itoa(e.Disputes.N), strconv.Itoa(v.Disputed))
		var last belief
		if bs := g.states[id]; len(bs) > 0 {
			last = bs[len(bs)-1]
		}
		check("recorded", e.Recorded.Given(), e.Recorded.S, string(last.state))
		check("recorded_rule_id", e.RecordedRule.Given(), e.RecordedRule.S, string(last.rule))
		if e.Never.Given() {
			got := "not " + e.Never.S
			if id == "" {
				got = "never made"
			} else if string(v.State) == e.Never.S || slices.ContainsFunc(g.states[id], func(b belief) bool { return string(b.state) == e.Never.S }) {
				got = e.Never.S
			}
			check("never", true, "not "+e.Never.S, got)
		}
	case e.Slot.Given():
		a := g.m.Answer(g.reader(), g.slot(e.Slot.S))
		var vs []string
		for _, v := range a.Values {
			if v.Object != nil {
				vs = append(vs, v.Object.Value)
			}
		}
		got := strings.Join(vs, ", ")
		if got == "" {
			got = "nothing: " + string(a.Abstention)
		}
		check("value", e.Value.Given(), e.Value.S, got)
		check("abstains", e.Abstains.Given(), "nothing: "+e.Abstains.S, got)
		if e.History.Given() {
			var want []string
			for _, h := range e.History.Items {
				want = append(want, h.S)
			}
			check("history", true, strings.Join(want, ", "), strings.Join(g.history(e.Slot.S), ", "))
		}
	case e.Entity.Given():
		id := g.ids[e.Entity.S]
		rec, _ := g.reader().Get(id)
		if e.SameAs.Given() {
			var want, got []string
			for _, n := range e.SameAs.Items {
				want = append(want, g.ids[n.S])
			}
			if rec.Entity != nil {
				for _, p := range rec.Entity.PossibleSames {
					got = append(got, p.Entity)
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			check("possible_same_as", true, strings.Join(want, " "), strings.Join(got, " "))
		}
		check("linked_to", e.LinkedTo.Given(), g.ids[e.LinkedTo.S]+" linked true", fmt.Sprintf("%s linked %t", id, g.linked[e.Entity.S]))
		check("new", e.New.Given(), strconv.FormatBool(e.New.Is), strconv.FormatBool(id != "" && !g.linked[e.Entity.S]))
	case e.Observation.Given():
		rec, ok := g.reader().Get(g.ids[e.Observation.S])
		gone := ok && rec.Observation.Status == memory.Erased && rec.Observation.Text.Text == ""
		check("erased", e.Erased.Given(), strconv.FormatBool(e.Erased.Is), strconv.FormatBool(gone))
	case e.Step.Given():
		o := g.results[e.Step.S]
		if e.Effect.Given() {
			got := effects(o)
			if slices.Contains(strings.Fields(got), e.Effect.S) {
				got = e.Effect.S
			}
			check("effect", true, e.Effect.S, got)
		}
		got := string(o.Status)
		if o.Rejection != nil {
			got = string(o.Rejection.Reason)
		}
		check("refused", e.Refused.Given(), e.Refused.S, got)
	}
	return checked, unmet
}

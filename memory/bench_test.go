package memory

import (
	"fmt"
	"slices"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/words"
)

// grown returns a memory of n observations: a claim for every ten of them,
// each with a slot and evidence of several sources, in tasks of a hundred.
func grown(tb testing.TB, n int) (*State, Context) {
	tb.Helper()
	p := builtinPolicy(tb, "v1")
	c := Context{Policy: p, Namespace: "main", Mode: Hardened, Principal: "alice", Session: "s1", Task: "t0", Now: time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)}
	s := New()
	apply := func(d Decision) {
		if d.Outcome.Status == writ.Rejected {
			tb.Fatalf("%+v", d.Outcome.Rejection)
		}
		if err := s.Apply(d.Event, d.Value); err != nil {
			tb.Fatal(err)
		}
	}
	apply(Operate(s, c, CommandOpen, []byte("{}")))
	apply(Operate(s, c, CommandPredicate, []byte(`{"name":"city","single":true}`)))
	var ent string
	for i := range n {
		c.Now = c.Now.Add(200 * time.Millisecond)
		c.Task = fmt.Sprintf("t%d", i/100)
		c.Captured = []Captured{{Evidence: "s_1/ev1", Label: writ.System, Source: fmt.Sprintf("tool%d/x", i%97), Verbatim: true}}
		apply(Handle(s, c, writ.Proposal{ToolName: ToolRecordObservation, Payload: []byte(fmt.Sprintf(`{"observation_id":"o%d","raw_payload":"person %d was seen in the city of Bern, it was said by tool number %d"}`, i, i/10, i%97))}))
		c.Captured = nil
		switch i % 10 {
		case 0:
			d := Handle(s, c, writ.Proposal{ToolName: ToolEntity, Payload: []byte(fmt.Sprintf(`{"name":"Person Nr %d","entity_type":"person","observation_ids":["o%d"]}`, i*7919, i))})
			apply(d)
			for _, o := range d.Event.Ops {
				if o.Entity != nil {
					ent = o.Entity.ID
				}
			}
		case 5:
			apply(Handle(s, c, writ.Proposal{ToolName: ToolPropose, Payload: []byte(fmt.Sprintf(`{"text":"Person %d lives in Bern","structured_form":{"subject":"%s","predicate":"city","object":{"literal":"Bern %d"}},"observation_ids":["o%d","o%d"],"about":["%s"]}`, i, ent, i, i, i-1, ent))}))
		}
	}
	return s, c
}

// BenchmarkHandle prints what one decision costs on memories of 10^3 to 10^5
// observations. The cost is to be flat.
func BenchmarkHandle(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		s, c := grown(b, n)
		c.Now = c.Now.Add(time.Hour)
		c.Task = "bench"
		prop, ent := "", ""
		for _, id := range s.propositions.keys()[len(s.propositions.rows)/2:][:1] {
			prop = id
		}
		for _, id := range s.entities.keys()[len(s.entities.rows)/2:][:1] {
			ent = id
		}
		obs := s.observations.keys()[n/3]
		captured := c
		captured.Captured = []Captured{{Evidence: "s_1/ev1", Label: writ.System, Source: "tool200/x", Verbatim: true}}
		for _, k := range []struct {
			name, tool, payload string
			c                   Context
		}{
			{"record_observation", ToolRecordObservation, `{"observation_id":"new","raw_payload":"person 1 was seen again in the city of Bern"}`, captured},
			{"link_entity", ToolEntity, `{"name":"Person Nr 123456789","entity_type":"person","observation_ids":["` + obs + `"]}`, c},
			{"propose_proposition", ToolPropose, `{"text":"somebody lives in Basel","structured_form":{"subject":"` + ent + `","predicate":"city","object":{"literal":"Basel"}},"observation_ids":["` + obs + `"],"about":["` + ent + `"]}`, c},
			{"attach_support", ToolAttachSupport, `{"proposition_id":"` + prop + `","observation_ids":["` + obs + `"]}`, c},
			{"refused", ToolAttachSupport, `{"proposition_id":"` + prop + `","observation_ids":["nobody"]}`, c},
		} {
			b.Run(fmt.Sprintf("%s/%d", k.name, n), func(b *testing.B) {
				p := writ.Proposal{ToolName: k.tool, Payload: []byte(k.payload)}
				want := writ.Rejected
				var times []time.Duration
				for b.Loop() {
					t := time.Now()
					d := Handle(s, k.c, p)
					times = append(times, time.Since(t))
					if (d.Outcome.Status == want) != (k.name == "refused") {
						b.Fatalf("%+v", d.Outcome.Rejection)
					}
				}
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)*95/100].Microseconds()), "p95-µs")
			})
		}
		b.Run(fmt.Sprintf("explain/%d", n), func(b *testing.B) {
			r := Reader{State: s, Policy: c.Policy, Principal: "alice", Now: c.Now}
			for b.Loop() {
				if _, ok := r.Explain(prop); !ok {
					b.Fatal("nothing to explain")
				}
			}
		})
		b.Run(fmt.Sprintf("search/%d", n), func(b *testing.B) {
			r := Reader{State: s, Policy: c.Policy, Principal: "alice", Now: c.Now}
			var hits []words.Hit
			for i, id := range s.propositions.keys() {
				if i < 200 {
					hits = append(hits, words.Hit{ID: id, Kind: "proposition", Score: float64(17 - i%17)})
				}
			}
			for b.Loop() {
				r.rank(Query{}, hits)
			}
		})
		b.Run(fmt.Sprintf("handle+apply/%d", n), func(b *testing.B) {
			x := captured
			i := 0
			for b.Loop() {
				i++
				x.Now = x.Now.Add(2 * time.Second)
				d := Handle(s, x, writ.Proposal{ToolName: ToolRecordObservation, Payload: []byte(fmt.Sprintf(`{"observation_id":"b%d","raw_payload":"again"}`, i))})
				if err := s.Apply(d.Event, d.Value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package memory

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
)

// grown is a memory of n observations: each a fact that is remembered of one of
// n/10 people, one in three by the user, and one in twenty a note of the agent's.
func grown(tb testing.TB, n int) (*State, Context) {
	tb.Helper()
	c := Context{Policy: Builtin(), Namespace: "main", Mode: Hardened, Principal: "alice", Session: "s1", Now: time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)}
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
	for i := range n {
		c.Now = c.Now.Add(2 * time.Second)
		c.Task = fmt.Sprintf("t%d", i/100)
		said, about := benchSaid(i, n)
		c.Captured = nil
		if i%20 != 19 {
			k := Captured{Evidence: fmt.Sprintf("s_1/ev%d", i+1), Seen: uint64(i + 1), Label: writ.System, Source: fmt.Sprintf("tool%d/x", i%97), Verbatim: true, Whole: true, Text: said,
				Value: []byte(fmt.Sprintf(`"%d"`, 1000+i))}
			if i%3 == 0 {
				k.Label, k.Source = writ.User, "user:alice"
			}
			c.Captured = []Captured{k}
		}
		apply(Handle(s, c, writ.Proposal{ToolName: ToolRemember, Payload: []byte(fmt.Sprintf(`{"text":%q,"about":%q}`, said, about))}))
	}
	return s, c
}

var benchQuestions = []string{"phone", "locker", "badge", "desk"}

func benchSaid(i, n int) (said, about string) {
	who, what := fmt.Sprintf("Person%d", i%max(1, n/10)), benchQuestions[i/max(1, n/10)%len(benchQuestions)]
	return fmt.Sprintf("%s's %s is %d, as was noted in the week of the %d meeting with team %d of Bern.", who, what, 1000+i, i%52, i%613), who + ": " + what
}

// BenchmarkMemory prints what a proposal and a recall cost on memories of 10^3 to
// 10^5 observations, and what those take to hold. The cost is to be flat.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s, c := grown(b, n)
		s.found("x", nil, 1)
		runtime.GC()
		runtime.ReadMemStats(&after)
		resident := float64(after.HeapInuse-before.HeapInuse) / (1 << 20)
		c.Now, c.Task = c.Now.Add(time.Hour), "bench"
		said, about := benchSaid(n/2, n)
		captured := c
		captured.Captured = []Captured{{Evidence: fmt.Sprintf("s_1/ev%d", n+2), Label: writ.System, Source: "tool200/x", Verbatim: true, Whole: true, Text: said, Value: []byte(`"4711"`)}}
		c.Captured = nil
		prop, obs := s.propositions.keys()[len(s.propositions.rows)/2], s.observations.keys()[n/3]
		ent := s.propositions.get(prop).Subject
		timed := func(name string, f func()) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				var times []time.Duration
				for b.Loop() {
					t := time.Now()
					f()
					times = append(times, time.Since(t))
				}
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)*95/100].Microseconds()), "p95-µs")
				b.ReportMetric(resident, "MB-held")
			})
		}
		for _, k := range []struct {
			name, tool, payload string
			c                   Context
			refused             bool
		}{
			{"remember", ToolRemember, fmt.Sprintf(`{"text":%q,"about":%q}`, said, about), captured, false},
			{"note", ToolRemember, `{"text":"The user seems to like jazz"}`, c, false},
			{"link", ToolEntity, `{"name":"Person Nr 123456789","entity_type":"thing","observation_ids":["` + obs + `"]}`, c, false},
			{"propose", ToolPropose, `{"text":"x","structured_form":{"subject":"` + ent + `","predicate":"city","object":{"literal":"Basel"}},"observation_ids":["` + obs + `"],"about":["` + ent + `"]}`, c, false},
			{"attach", ToolAttachSupport, `{"proposition_id":"` + prop + `","observation_ids":["` + obs + `"]}`, c, false},
			{"refused", ToolAttachSupport, `{"proposition_id":"` + prop + `","observation_ids":["nobody"]}`, c, true},
		} {
			p := writ.Proposal{ToolName: k.tool, Payload: []byte(k.payload)}
			timed(k.name, func() {
				if d := Handle(s, k.c, p); (d.Outcome.Status == writ.Rejected) != k.refused {
					b.Fatalf("%+v", d.Outcome.Rejection)
				}
			})
		}
		r := Reader{State: s, Principal: "alice", Now: c.Now}
		for name, a := range map[string]Ask{
			"recall of one":        {Query: about},
			"recall of many":       {Query: "the phone of the team in Bern"},
			"recall about":         {Query: "meeting", About: about},
			"recall of all, so to": {Query: "noted week meeting team Bern phone locker", All: true, Limit: 50},
		} {
			timed(name, func() {
				if len(r.Recall(a).Items) == 0 {
					b.Fatal("nothing is found")
				}
			})
		}
		r.AsOf = c.Now.Add(-2 * time.Hour)
		timed("recall as of", func() { r.Recall(Ask{Query: about}) })
		r.AsOf = time.Time{}
		timed("explain", func() { r.Explain(prop) })
		i := 0
		timed("remember and apply", func() {
			i++
			x := captured
			x.Now = x.Now.Add(time.Duration(i) * 2 * time.Second)
			x.Task = fmt.Sprintf("b%d", i/500)
			x.Captured[0].Evidence = fmt.Sprintf("s_1/ev%d", n+2+i)
			d := Handle(s, x, writ.Proposal{ToolName: ToolRemember, Payload: []byte(fmt.Sprintf(`{"text":%q,"about":%q}`, said, about))})
			if err := s.Apply(d.Event, d.Value); err != nil || d.Outcome.Status == writ.Rejected {
				b.Fatal(err, d.Outcome.Rejection)
			}
		})
	}
}

// BenchmarkQuestion prints what the reads of one question with a thousand values
// cost: in one list, each in a record of its own, and each a correction of the one
// before.
func BenchmarkQuestion(b *testing.B) {
	const n = 1000
	for _, kind := range []string{"list", "records", "corrections"} {
		s, c := asked(b, kind, n)
		r := Reader{State: s, Principal: "alice", Now: c.Now}
		sl := s.slots.keys()[0]
		prop := s.slots.get(sl).Propositions[n/2]
		for _, k := range []struct {
			name string
			f    func() int
		}{
			{"recall", func() int { return len(r.Recall(Ask{Query: "emails of Anna", About: "Anna: emails"}).Items) }},
			{"recall of all", func() int { return len(r.Recall(Ask{Query: "emails of Anna", All: true, Limit: 50}).Items) }},
			{"explain", func() int { x, _ := r.Explain(prop); return len(x.Values) }},
			{"answer", func() int { return len(r.Answer(sl).Slot) }},
			{"get", func() int { x, _ := r.Get(prop); return len(x.Proposition.ID) }},
			{"timeline", func() int { return len(r.Timeline(sl, 0, 50).Moments) }},
			{"timeline of all", func() int { return len(r.Timeline(sl, 0, 0).Moments) }},
		} {
			b.Run(kind+"/"+k.name, func(b *testing.B) {
				for b.Loop() {
					s.hearings = nil // as if something had just been told
					if k.f() == 0 {
						b.Fatal("nothing is found")
					}
				}
			})
		}
	}
}

// asked is a memory of one question with n values.
func asked(tb testing.TB, kind string, n int) (*State, Context) {
	tb.Helper()
	c := Context{Policy: Builtin(), Namespace: "main", Mode: Hardened, Principal: "alice", Session: "s1", Now: time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)}
	s := New()
	apply := func(d Decision) Decision {
		if d.Outcome.Status == writ.Rejected {
			tb.Fatalf("%+v", d.Outcome.Rejection)
		}
		if err := s.Apply(d.Event, d.Value); err != nil {
			tb.Fatal(err)
		}
		return d
	}
	do := func(tool, payload string) {
		c.Now = c.Now.Add(2 * time.Second)
		c.Task = fmt.Sprintf("t%d", s.Head()/500)
		apply(Handle(s, c, writ.Proposal{ToolName: tool, Payload: []byte(payload)}))
	}
	apply(Operate(s, c, CommandOpen, []byte("{}")))
	seen := func(i int, text string) {
		c.Captured = []Captured{{Ref: fmt.Sprintf("ev%d", i), Evidence: fmt.Sprintf("s_1/ev%d", i), Label: writ.System, Source: "crm/get", Verbatim: true, Whole: true, Text: text}}
	}
	list, records := `{"name":"Anna","emails":["v0x"`, `[{"name":"Anna","emails":"v0x"}`
	for i := 1; i < n; i++ {
		list += fmt.Sprintf(`,"v%dx"`, i)
		records += fmt.Sprintf(`,{"name":"Anna","emails":"v%dx"}`, i)
	}
	text := map[string]string{"list": list + "]}", "records": records + "]"}[kind]
	if text != "" {
		seen(1, text)
		do(ToolRecordObservation, fmt.Sprintf(`{"observation_id":"o","raw_payload":%q}`, text))
		c.Captured = nil
		obs := s.observations.keys()[0]
		do(ToolEntity, `{"name":"Anna","entity_type":"thing","observation_ids":["`+obs+`"]}`)
		ent := s.entities.keys()[0]
		for i := range n {
			do(ToolPropose, fmt.Sprintf(`{"text":"x","structured_form":{"subject":%q,"predicate":"emails","object":{"literal":"v%dx"}},"observation_ids":[%q],"about":[%q]}`, ent, i, obs, ent))
		}
		return s, c
	}
	for i := range n {
		seen(i+1, fmt.Sprintf("The emails of Anna: v%dx", i))
		c.Captured[0].Value = []byte(fmt.Sprintf(`"v%dx"`, i))
		do(ToolRemember, fmt.Sprintf(`{"text":"the emails of Anna are v%dx","about":"Anna: emails"}`, i))
	}
	return s, c
}

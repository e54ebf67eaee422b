package memory

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-project/writ/internal/words"
)

// Nearness ranks and brings, and decides nothing: with whatever ranking, what is given
// passed the same gate and has the trust it has without; what is held back is counted
// as without; no more than mostNear quotes come by it alone.
func TestNearnessDecidesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := lived(rt, t, 25)
		ids := append(w.s.Observations(), "obs_9999", "prop_2", "ent_1", "", "no id")
		near := rapid.SliceOfN(rapid.SampledFrom(ids), 0, 2*len(ids)).Draw(rt, "near")
		ask := Ask{Query: drawn(rt, "query", "city", "Alice Bern", "what is it", "nothing has this", "colour of Bob"), All: rapid.Bool().Draw(rt, "all"),
			About: drawn(rt, "about", "", "", "Alice", "Alice: city", "me: city", "Nobody"), Limit: drawn(rt, "limit", 1, 3, 10, 50), Bytes: 1 << 20}
		r := &Reader{State: w.s, Principal: "alice", Now: w.c.Now}
		without := r.Recall(ask)
		ask.Near = near
		with := r.Recall(ask)
		if len(near) == 0 && mustJSON(t, with) != mustJSON(t, without) {
			rt.Fatalf("without a ranking: %+v, %+v", with, without)
		}
		of := func(items []Item, id string) *Item {
			if i := slices.IndexFunc(items, func(it Item) bool { return it.Observation == id }); i >= 0 {
				return &items[i]
			}
			return nil
		}
		alone := 0
		for _, it := range with.Items {
			kind, _ := w.s.Text(it.Observation)
			o := w.s.observations.get(it.Observation)
			g := &recalling{r: r, t: r.upTo(), ask: ask, words: words.Content(ask.Query)}
			if with.Note != "" { // it is about the same, whatever it answers
				g.ask.About, _, _ = strings.Cut(ask.About, ":")
			}
			g.narrow()
			upheld := slices.ContainsFunc(g.on(o), func(c claimOn) bool { return c.upheld })
			replaced := it.Trust == Replaced && (kind == kindOwn || it.FoundBy != "")
			if !ask.All && (kind != kindEstablished && kind != kindOwn && !upheld || replaced) || kind == "" {
				rt.Fatalf("%s of kind %q is given: %+v", it.Observation, kind, it)
			}
			if !g.wanted(o) {
				rt.Fatalf("not what was asked about: %+v", it)
			}
			judged := Item{Trust: trustOf(o)}
			if g.bind(&judged, o, g.on(o)); judged.Trust != it.Trust || judged.About != it.About {
				rt.Fatalf("%+v, and it is worth %+v", it, judged)
			}
			for _, from := range it.Quote.Origins {
				if o := w.s.observations.get(from.Observation); from.Label != o.labelFor("alice") || o.Raw != it.Quote.Value {
					rt.Fatalf("%+v vouches by %+v", it, o)
				}
			}
			if was := of(without.Items, it.Observation); was != nil && (was.Trust != it.Trust || was.About != it.About || was.Value != it.Value || was.From != it.From) {
				rt.Fatalf("%+v, and without nearness %+v", it, was)
			}
			if it.FoundBy != "" {
				alone++
			}
		}
		gone := 0
		for _, it := range without.Items {
			// A claim brings one of the quotes it was made from: another one where the order is another.
			from := append(w.s.claimsOn(it.Observation), it.ID)
			if of(with.Items, it.Observation) == nil && !slices.ContainsFunc(with.Items, func(o Item) bool { return normName(o.Text) == normName(it.Text) || slices.Contains(from, o.ID) }) {
				gone++
			}
		}
		if alone > mostNear || gone > 0 && len(with.Items) < ask.Limit {
			rt.Fatalf("%d by nearness alone, %d of %d gone:\n%+v\n%+v", alone, gone, len(without.Items), with, without)
		}
		// A ranking that gives one quote of a claim first may have another given too, which
		// then is not held back.
		came := 0
		for _, it := range with.Items {
			if of(without.Items, it.Observation) == nil {
				came++
			}
		}
		held := func(a Answers) map[string]int {
			out := map[string]int{}
			for _, h := range a.HeldBack {
				// What was replaced is counted where a claim leads to it, and which claims are
				// looked at depends on what comes first.
				if h.Reason != "limit" && h.Reason != "replaced" {
					out[h.Reason] = h.Count
				}
			}
			return out
		}
		now, before := held(with), held(without)
		less, more := 0, false
		for reason, n := range before {
			less += n - now[reason]
		}
		for reason, n := range now {
			more = more || n > before[reason]
		}
		if ask.Limit == 50 && (more || less > came) {
			rt.Fatalf("held back %v, without nearness %v, and %d came", now, before, came)
		}
	})
}

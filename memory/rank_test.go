package memory

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/words"
)

// TestSearchMany: a crowd of claims that rest on nothing neither displaces the
// one that is believed, though it is the oldest, nor makes a search cost more
// than a crowd of mostReached; and the answer says how many it left out.
func TestSearchMany(t *testing.T) {
	s, at := New(), InstantOf(time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC))
	s.latest = at
	crowd := mostReached + 500
	s.entities.put("ent_1", &Entity{ID: "ent_1", Type: "person", Canonicality: Candidate, Names: []Name{{Text: "Ada"}}})
	file := func(n int, status Status, support ...Tally) string {
		p := &Proposition{ID: fmt.Sprintf("prop_%d", n), Text: "x", About: []string{"ent_1"}, Status: status, Volatility: Low, CreatedAt: at, ValidFrom: at, Support: support}
		s.propositions.put(p.ID, p)
		s.indexProposition(p)
		return p.ID
	}
	believed := file(2, Accepted, Tally{Group: "tool:a", Level: 2, Count: 1, Reliability: One, Newest: at}, Tally{Group: "tool:b", Level: 2, Count: 1, Reliability: One, Newest: at})
	worded := file(3, Tentative)
	for n := range crowd {
		file(4+n, Tentative)
	}
	r := &Reader{State: s, Policy: builtinPolicy(t, "v1"), Now: at.Time()}
	for _, hits := range [][]words.Hit{
		{{ID: "ent_1", Kind: "entity", Score: 2}, {ID: worded, Kind: "proposition", Score: 1}},
		{{ID: "ent_1", Kind: "entity", Score: 2}, {ID: "ent_1", Kind: "entity", Score: 2}, {ID: worded, Kind: "proposition", Score: 1}, {ID: "prop_99999", Kind: "proposition", Score: 1}, {ID: "", Kind: "", Score: 0}},
	} {
		res := r.rank(Query{Limit: 2, MinState: Tentative, Types: []string{"proposition"}}, hits)
		if len(res.Items) != 2 || res.Items[0].Proposition.ID != believed || res.Items[1].Proposition.ID != worded {
			t.Fatalf("%+v", res.Items)
		}
		// Of the crowd and the one believed, mostReached are ranked.
		want := []Withheld{{"limit", mostReached + 1 - 2}, {"too_many", crowd + 1 - mostReached}}
		if !reflect.DeepEqual(res.Withheld, want) {
			t.Errorf("withheld %v, want %v", res.Withheld, want)
		}
	}
	// Of so many, an entity lists the newest; asked for itself, all.
	res := r.rank(Query{Types: []string{"entity"}}, []words.Hit{{ID: "ent_1", Kind: "entity", Score: 2}})
	if len(res.Items) != 1 || len(res.Items[0].Entity.Propositions) != mostListed || res.Items[0].LeftOut != crowd+2-mostListed ||
		res.Items[0].Entity.Propositions[mostListed-1] != fmt.Sprintf("prop_%d", 3+crowd) {
		t.Errorf("%+v", res)
	}
	if rec, _ := r.Get("ent_1"); len(rec.Entity.Propositions) != crowd+2 {
		t.Errorf("%d claims", len(rec.Entity.Propositions))
	}
	res = r.rank(Query{Entity: "ent_1"}, nil)
	if len(res.Items) != 1 || res.Items[0].Proposition.ID != believed || res.Abstention != NoAbstention {
		t.Errorf("%+v", res)
	}
}

// TestSearchWithheld: an answer without items says why, for what an index that
// is behind still finds too: what was quarantined or erased since.
func TestSearchWithheld(t *testing.T) {
	s, at := New(), InstantOf(time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC))
	for id, o := range map[string]Observation{
		"obs_1": {Status: Quarantined, Level: 3, Raw: "fox"},
		"obs_2": {Status: Erased, Level: 3},
		"obs_3": {Status: Ingested, Level: 1, Raw: "fox", Label: writ.External},
	} {
		o.ID, o.RecordedAt = id, at
		s.observations.put(id, &o)
	}
	s.entities.put("ent_4", &Entity{ID: "ent_4", Canonicality: Tombstoned})
	r := &Reader{State: s, Policy: builtinPolicy(t, "v1"), Now: at.Time()}
	for _, c := range []struct {
		hits string
		want string
		why  Abstention
	}{
		{"", "[]", NothingKnown},
		{"obs_9", "[]", NothingKnown},
		{"obs_1", "[{quarantined 1}]", InsufficientEvidence},
		{"obs_2", "[{erased 1}]", WasErased},
		{"ent_4", "[{erased 1}]", WasErased},
		{"obs_3", "[{untrusted 1}]", InsufficientEvidence},
		{"obs_1 obs_2 obs_3 ent_4", "[{erased 2} {quarantined 1} {untrusted 1}]", InsufficientEvidence},
	} {
		var hits []words.Hit
		for _, id := range strings.Fields(c.hits) {
			hits = append(hits, words.Hit{ID: id, Kind: "observation", Score: 1})
		}
		res := r.rank(Query{}, hits)
		if got := fmt.Sprint(res.Withheld); got != c.want || res.Abstention != c.why || len(res.Items) > 0 {
			t.Errorf("%q: %s %s, want %s %s", c.hits, got, res.Abstention, c.want, c.why)
		}
	}
}

// TestSearchIndexes: what a search goes by is the same, kept from event to
// event or made from the state, through all cases.
func TestSearchIndexes(t *testing.T) {
	files, _ := filepath.Glob("testdata/cases/*.txt")
	summaries, merges := 0, 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		x := newScript(t)
		for _, l := range strings.Split(strings.TrimSpace(string(b)), "\n") {
			if l == "" || l[0] == '#' || strings.HasPrefix(l, "->") {
				continue
			}
			x.line(l)
			if word, rest, _ := strings.Cut(l, " "); word != ToolArchiveEpisode && !(word == "operator" && strings.Contains(rest, "merge")) {
				continue
			}
			kept := x.s.ix
			x.s.reindex()
			if !reflect.DeepEqual(kept.summaryOf, x.s.ix.summaryOf) || !reflect.DeepEqual(kept.mergedFrom, x.s.ix.mergedFrom) {
				t.Fatalf("%s: %s:\n%v %v\n%v %v", file, l, kept.summaryOf, kept.mergedFrom, x.s.ix.summaryOf, x.s.ix.mergedFrom)
			}
			x.s.ix = kept
			summaries, merges = summaries+len(kept.summaryOf), merges+len(kept.mergedFrom)
		}
	}
	if summaries == 0 || merges == 0 {
		t.Error("no case has a summary, or none a merge")
	}
}

// TestSearchKinds: however many observations hold the words better, the claims
// and entities that hold them are found; and what is looked for decides which
// texts are.
func TestSearchKinds(t *testing.T) {
	s := New()
	for i := range 20 {
		s.texts.Put(fmt.Sprintf("obs_%d", i), "observation", "the fox, the fox")
	}
	s.texts.Put("ent_22", "entity", "the fox")
	s.texts.Put("prop_23", "proposition", "somebody saw a fox once, in a wood, long ago, and told of it")
	for _, w := range []struct {
		types []string
		want  map[string]int
	}{
		{nil, map[string]int{"observation": 3, "proposition": 1, "entity": 1}},
		{[]string{"proposition"}, map[string]int{"observation": 3, "proposition": 1, "entity": 1}},
		{[]string{"entity"}, map[string]int{"entity": 1}},
		{[]string{"episode"}, map[string]int{"observation": 3}},
		{[]string{"observation"}, map[string]int{"observation": 3}},
		{[]string{"entity", "episode"}, map[string]int{"observation": 3, "entity": 1}},
	} {
		got := map[string]int{}
		for _, h := range s.found("fox", kindsFor(w.types), 3) {
			got[h.Kind]++
		}
		if !maps.Equal(got, w.want) {
			t.Errorf("%v: %v, want %v", w.types, got, w.want)
		}
	}
}

package memoryserver

import (
	"fmt"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/memory"
)

// TestSearchKinds: however many observations hold the words better, the claims
// and entities that hold them are found; and what is looked for decides which
// texts are.
func TestSearchKinds(t *testing.T) {
	signer, _ := storetest.Key()
	k, err := Open(t.Context(), Options{Store: mapstore.New(signer), Index: mapstore.NewIndex(), Namespace: "default", Policy: policy(t), Mode: memory.Hardened, Clock: ticking()})
	if err != nil {
		t.Fatal(err)
	}
	propose := func(c memory.Context, p writ.Proposal) {
		t.Helper()
		if o, err := k.Propose(t.Context(), c, p); err != nil || o.Status == writ.Rejected {
			t.Fatalf("%v %+v", err, o.Rejection)
		}
	}
	for i := range 20 {
		propose(said("alice", fmt.Sprintf("o%d", i), "the fox, the fox"))
	}
	c, _ := said("alice", "", "")
	propose(c, writ.Proposal{ToolName: memory.ToolEntity, Payload: []byte(`{"name":"the fox","entity_type":"animal","observation_ids":["o1"]}`)})
	propose(c, writ.Proposal{ToolName: memory.ToolPropose, Payload: []byte(`{"text":"somebody saw a fox once, in a wood, long ago, and told of it","observation_ids":["o1"],"about":["ent_22"]}`)})
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
		err := k.Search(t.Context(), "fox", w.types, 3, func(s *memory.State, _ time.Time, hits []memory.Hit) {
			got := map[string]int{}
			for _, h := range hits {
				got[h.Kind]++
			}
			if fmt.Sprint(got) != fmt.Sprint(w.want) {
				t.Errorf("%v: %v, want %v", w.types, got, w.want)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
)

// blobs are those of a log.
type blobs struct {
	values
	all map[audit.Digest][]byte
}

func (b *blobs) put(v []byte) string {
	d := audit.Sum(v)
	b.all[d] = v
	return d.String()
}

func (b *blobs) Blob(_ context.Context, name audit.Digest) ([]byte, error) {
	if v, ok := b.all[name]; ok {
		return v, nil
	}
	return nil, audit.ErrNotFound
}

// TestTurns: a call is told that was the first to be judged by another policy or other definitions,
// with the pins of both; of many the newest.
func TestTurns(t *testing.T) {
	store := &blobs{all: map[audit.Digest][]byte{}}
	def := func(says string) gate.Definition {
		return gate.Definition{Server: "a", Kind: gate.ToolKind, Raw: []byte(`{"name":"act","description":"` + says + `","inputSchema":{"type":"object"}}`)}
	}
	var records []audit.Item
	for _, by := range []struct{ policy, says string }{
		{"tools: {}\n", "old"}, {"tools: {}\n", "old"}, {"tools: { a/act: { effect: read, pin: " + gate.PinOf("a", def("old").Raw) + " } }\n", "old"}, {"tools: {}\n", "new"}, {"no policy", "new"},
	} {
		rules := &statedRules{Policy: store.put([]byte(by.policy)), Definitions: store.put(encodeDefinitions([]gate.Definition{def(by.says)})), Engine: Engine, Version: formRules}
		data := decisionData{Method: "call", Rules: store.put(mustJSON(rules)), Status: "accepted", Effect: []string{"read"}}
		e, err := audit.Seal(audit.Record{Kind: audit.KindDecision, Session: "s_aaaaaaaaaaaaaaaa", N: uint64(len(records) + 1), Time: time.Unix(1e9, 0).UTC(), Data: data.append(nil)})
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, audit.Item{Leaf: e.Leaf()})
	}
	told := func(most int) (out []string) {
		turns, err := NewRulesets(store).Turns(t.Context(), func(yield func(audit.Item, error) bool) {
			for _, it := range records {
				if !yield(it, nil) {
					return
				}
			}
		}, most)
		if err != nil {
			t.Fatal(err)
		}
		is := strings.NewReplacer(gate.PinOf("a", def("old").Raw), "old", gate.PinOf("a", def("new").Raw), "new")
		for _, u := range turns {
			out = append(out, is.Replace(fmt.Sprint(u.N, " ", len(u.Policy), " ", u.Pins, " ", u.Listed)))
		}
		return out
	}
	want := []string{"1 10 map[] map[a/act:old]", "3 113 map[a/act:old] map[a/act:old]", "4 10 map[] map[a/act:new]", "5 9 map[] map[a/act:new]"}
	if got := told(9); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := told(2); !slices.Equal(got, want[2:]) {
		t.Errorf("of two: %q", got)
	}
}

// TestPinned: the definition that a pin is of is found where a call was judged by a list with it,
// the newest first, of the same server alone; a blob that is not there is an altered log.
func TestPinned(t *testing.T) {
	store := &blobs{all: map[audit.Digest][]byte{}}
	def := func(server, says string) gate.Definition {
		return gate.Definition{Server: server, Kind: gate.ToolKind, Raw: []byte(`{"name":"act","description":"` + says + `","inputSchema":{"type":"object"}}`)}
	}
	var records []audit.Item
	judged := func(defs ...gate.Definition) (rules string) {
		rules = store.put(mustJSON(&statedRules{Definitions: store.put(encodeDefinitions(defs)), Engine: Engine, Version: formRules}))
		data := decisionData{Method: "call", Rules: rules, Status: "accepted", Effect: []string{"read"}}
		e, err := audit.Seal(audit.Record{Kind: audit.KindDecision, Session: "s_aaaaaaaaaaaaaaaa", N: uint64(len(records) + 1), Time: time.Unix(1e9, 0).UTC(), Data: data.append(nil)})
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, audit.Item{Leaf: e.Leaf()})
		return rules
	}
	judged(def("a", "old"), def("b", "other"))
	judged(def("a", "new"))
	judged(def("a", "old"))
	last := judged(def("a", "new"))
	find := func(server, says string) string {
		t.Helper()
		raw, err := NewRulesets(store).Pinned(t.Context(), func(yield func(audit.Item, error) bool) {
			for _, it := range records {
				if !yield(it, nil) {
					return
				}
			}
		}, server, gate.PinOf("a", def("a", says).Raw))
		if err != nil {
			return fmt.Sprint(errors.Is(err, audit.ErrAltered))
		}
		return string(raw)
	}
	for _, c := range []struct{ server, says, want string }{
		{"a", "old", string(def("a", "old").Raw)}, {"a", "new", string(def("a", "new").Raw)}, {"a", "never", ""}, {"b", "old", ""},
	} {
		if got := find(c.server, c.says); got != c.want {
			t.Errorf("%s, %s: %s", c.server, c.says, got)
		}
	}
	name, _ := audit.ParseDigest(last)
	delete(store.all, name)
	if got := find("a", "old"); got != "true" {
		t.Errorf("without a blob: %s", got)
	}
}

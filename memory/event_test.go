package memory

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/words"
)

// claimed is a small history whose last event makes a proposition.
func claimed(t *testing.T) *script {
	x := newScript(t)
	x.line("seen ev1 user user red")
	x.line(`record_observation {"observation_id":"o1","raw_payload":"red"}`)
	x.line(`create_or_link_entity_candidate {"name":"X","entity_type":"thing","observation_ids":["o1"]}`)
	x.line(`propose_proposition {"text":"x","observation_ids":["o1"],"about":["$ent1"]}`)
	return x
}

// changes yields the events of a file of changes.
func changes(t *testing.T, file string, event []byte, f func(at, changed string)) {
	t.Helper()
	n := 0
	for _, l := range lines(t, file) {
		n++
		from, to, ok := strings.Cut(strings.Join(l[:len(l)-1], "|"), " => ")
		if !ok || !strings.Contains(string(event), from) {
			t.Errorf("%s: %q is not in %s", l[len(l)-1], from, event)
			continue
		}
		to = strings.ReplaceAll(to, "␠", " ")
		f(l[len(l)-1], strings.Replace(string(event), from, to, 1))
	}
	if n < 20 {
		t.Errorf("%s: only %d cases", file, n)
	}
}

func TestParseEventRefuses(t *testing.T) {
	x := claimed(t)
	last := x.log[len(x.log)-1].event
	changes(t, "testdata/events/refused.txt", last, func(at, changed string) {
		if _, err := ParseEvent([]byte(changed)); err == nil {
			t.Errorf("%s: was read", at)
		}
	})
}

// An event that does not fit the state is refused, whole.
func TestApplyRefuses(t *testing.T) {
	x := claimed(t)
	last := x.log[len(x.log)-1]
	s := replay(t, x.log[:len(x.log)-1], nil)
	before := s.Digest()
	changes(t, "testdata/events/unfit.txt", last.event, func(at, changed string) {
		b, err := strictjson.Canonical([]byte(changed))
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		e, err := ParseEvent(b)
		if err != nil {
			t.Errorf("%s: is no event: %v", at, err)
			return
		}
		if err := s.Apply(e, last.value); err == nil || s.Digest() != before {
			t.Errorf("%s: %v", at, err)
			s = replay(t, x.log[:len(x.log)-1], nil)
		}
	})
	for name, value := range map[string][]byte{"no JSON": []byte("{"), "too large": make([]byte, maxPayload*2)} {
		e, _ := ParseEvent(last.event)
		if err := s.Apply(e, value); err == nil || s.Digest() != before {
			t.Errorf("a value that is %s: %v", name, err)
		}
	}
}

// An index that is brought up event by event holds the texts of the state, and
// nothing that was erased.
func TestDocsFollow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, t, "v1", 3)
		for i := range rapid.IntRange(10, 40).Draw(rt, "steps") {
			w.step()
			if i%15 == 14 {
				w.operate(CommandErase, []byte(`{"source":"a/x","reason":"request"}`))
				w.operate(CommandDistrust, []byte(`{"source":"b/y","since":"2026-11-01T08:00:00Z"}`))
			}
		}
		s := New()
		for _, r := range w.log {
			e, err := ParseEvent(r.event)
			if err != nil {
				rt.Fatal(err)
			}
			if err := s.Apply(e, r.value); err != nil {
				rt.Fatal(err)
			}
			s.found("x", nil, 1) // what is found by words follows each event
		}
		var anew words.Index
		for id, text := range s.Texts() {
			anew.Put(id, prefixOf(id), text)
			for _, w := range words.Of(text) {
				if !slices.ContainsFunc(s.found(w, nil, 1000), func(h words.Hit) bool { return h.ID == id }) {
					rt.Fatalf("%q does not find %s", w, id)
				}
			}
		}
		if s.texts.Len() != anew.Len() {
			rt.Fatalf("%d texts are found, the state has %d", s.texts.Len(), anew.Len())
		}
	})
}

package memory

import (
	"os"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/strictjson"
)

// claimed is a script whose newest event makes a claim.
func claimed(t *testing.T) *script {
	x := newScript(t)
	x.line("seen ev1 user user X is red.")
	x.line(`record_observation {"observation_id":"o1","raw_payload":"X is red."}`)
	x.line(`create_or_link_entity_candidate {"name":"X","entity_type":"thing","observation_ids":["o1"]}`)
	x.line(`propose_proposition {"text":"x","structured_form":{"subject":"$ent1","predicate":"is","object":{"literal":"red"}},"observation_ids":["o1"],"about":["$ent1"]}`)
	return x
}

// altered plays a file of changes to an event, old => new; ␠ is a space.
func altered(t *testing.T, file string, event []byte, f func(line, changed string)) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for l := range strings.Lines(string(b)) {
		if l = strings.TrimSpace(l); l == "" || l[0] == '#' {
			continue
		}
		n++
		from, to, ok := strings.Cut(l, " => ")
		if !ok || !strings.Contains(string(event), from) {
			t.Errorf("%s: %q is not in %s", file, l, event)
			continue
		}
		f(l, strings.Replace(string(event), from, strings.ReplaceAll(to, "␠", " "), 1))
	}
	if n < 20 {
		t.Errorf("%s: only %d cases", file, n)
	}
}

// What is no event in its one form, of a version that is known, is refused.
func TestParseEventRefuses(t *testing.T) {
	x := claimed(t)
	altered(t, "testdata/events/refused.txt", x.log[len(x.log)-1].event, func(line, changed string) {
		if _, err := ParseEvent([]byte(changed)); err == nil {
			t.Errorf("%s: was read", line)
		}
	})
}

// An event that does not fit the state is refused whole.
func TestApplyRefuses(t *testing.T) {
	x := claimed(t)
	last := x.log[len(x.log)-1]
	s := replay(t, x.log[:len(x.log)-1], nil)
	before := s.Digest()
	altered(t, "testdata/events/unfit.txt", last.event, func(line, changed string) {
		b, err := strictjson.Canonical([]byte(changed))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		e, err := ParseEvent(b)
		if err != nil {
			t.Errorf("%s: is no event: %v", line, err)
			return
		}
		if err := s.Apply(e, last.value); err == nil || s.Digest() != before {
			t.Errorf("%s: %v", line, err)
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

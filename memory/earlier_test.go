package memory

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestEarlierVersion: a log that the version before wrote is read and folded, and
// what it holds is believed by the rules as they are, whatever was computed
// then. testdata/earlier has an event and its value a line each, an empty one where
// it was erased.
func TestEarlierVersion(t *testing.T) {
	const file, v = "v3", 3
	b, err := os.ReadFile("testdata/earlier/" + file + ".log")
	if err != nil {
		t.Fatal(err)
	}
	s, lines := New(), strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		e, err := ParseEvent([]byte(lines[i]))
		if err != nil {
			t.Fatalf("%s: event %d: %v", file, i/2+1, err)
		}
		var value []byte
		if lines[i+1] != "" {
			value = []byte(lines[i+1])
		}
		if checked, err := Recheck(s, Builtin(), e, value); checked || err != nil || e.V != v {
			t.Fatalf("%s: event %d of version %d is decided again: %v %v", file, e.N, e.V, checked, err)
		}
		if err := s.Apply(e, value); err != nil {
			t.Fatalf("%s: event %d: %v", file, e.N, err)
		}
	}
	var got []string
	for _, id := range s.propositions.keys() {
		st := s.standing(id, 0)
		got = append(got, fmt.Sprint(s.propositions.get(id).Predicate, s.propositions.get(id).Literal, " ", st.Status, " ", st.Level))
	}
	want := []string{
		`city"Bern" replaced 2`,      // the record says so; that she lives there is another word
		`city"Chur" reported 1`,      // a page says so
		` unverified 0`,              // in words alone it was provisional
		`fond_of"Bern" unverified 0`, // as this was, on a sentence that does not say it
		`town"Chur" unverified 0`,
		`city"Basel" established 3`,
		`pin erased 0`,
		`phone"555-1" unverified 0`, // its source is distrusted
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", file, got, want)
	}
	if n := len(s.entities.rows); n != 2 || s.entities.get(s.entities.keys()[1]).MergedInto == "" {
		t.Errorf("%s: %d entities, and none is merged", file, n)
	}
	// It goes on where it stopped: the policy is put in force, and a new word counts.
	x := newScript(t)
	x.s, x.c.Policy = s, Builtin()
	x.c.Now = x.zero.Add(48 * time.Hour)
	x.line("numbers as seen")
	for range 9 { // what the log has was seen before
		x.line("seen ev0 user user .")
	}
	for _, l := range []string{
		"operator policy {}", "seen ev9 user user No, Alice's city is Bern.", `remember {"text":"Bern","about":"Alice: city"}`,
	} {
		x.line(l)
	}
	if a := x.line("answer " + s.entities.keys()[0] + " city"); !strings.Contains(a, "established No, Alice's city is Bern.") {
		t.Errorf("%s: said once more: %s", file, a)
	}
	// Versions do not fall: what is not decided again is not slipped in later.
	old, err := ParseEvent([]byte(lines[len(lines)-2]))
	if err != nil {
		t.Fatal(err)
	}
	old.N = s.Head() + 1
	if err := s.Apply(old, nil); err != ErrOrder {
		t.Errorf("%s: an event of version %d behind one of version %d: %v", file, v, EventVersion, err)
	}
	// What is erased now leaves the state that the log folds to without it.
	log := []record{}
	for i := 0; i+1 < len(lines); i += 2 {
		log = append(log, record{[]byte(lines[i]), []byte(lines[i+1])})
		if lines[i+1] == "" {
			log[i/2].value = nil
		}
	}
	for _, source := range []string{"crm/get", "user"} {
		x.line(`operator erase {"source":"` + source + `","reason":"request"}`)
		if replay(t, append(log, x.log...), x.gone).Digest() != s.Digest() {
			t.Errorf("%s: without what %s said it folds to another state", file, source)
		}
	}
}

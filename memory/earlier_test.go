package memory

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// earlierLog is a log that an earlier version wrote, and what is believed of it.
type earlierLog struct {
	v                 int
	want              []string
	entities          int
	asks              []string // what goes on where it stopped
	predicate, answer string
	erased            []string // sources
}

var earlierLogs = []earlierLog{
	{3, []string{
		`city"Bern" replaced 2`,      // the record says so; that she lives there is another word
		`city"Chur" reported 1`,      // a page says so
		` unverified 0`,              // in words alone it was provisional
		`fond_of"Bern" unverified 0`, // as this was, on a sentence that does not say it
		`town"Chur" unverified 0`,
		`city"Basel" established 3`,
		`pin erased 0`,
		`phone"555-1" unverified 0`, // its source is distrusted
	}, 2, []string{"seen ev9 user user No, Alice's city is Bern.", `remember {"text":"Bern","about":"Alice: city"}`}, "city", "established No, Alice's city is Bern.", []string{"crm/get", "user"}},
	{4, []string{
		`delivery_date"2026-03-19" unverified 0`, // said by the user of a project, not of himself
		`city"Bern" established 3`,
		`phone"555-1" replaced 3`,
		`phone"555-2" established 3`,
		`city"Graz" replaced 3`, // by a ruling
		`city"Chur" established 3`,
		`city"I live in Oslo now" unverified 0`, // his note that corrects another
		`phone erased 0`,
	}, 4, []string{"seen ev9 user user My delivery date is 2026-04-01.", `remember {"text":"2026-04-01","about":"me: delivery date"}`}, "delivery_date", "established My delivery date is 2026-04-01.", []string{"crm/get", "user"}},
}

// TestEarlierVersion: a log that an earlier version wrote is read and folded, and
// what it holds is believed by the rules as they are, whatever was computed
// then. testdata/earlier has an event and its value a line each, an empty one where
// it was erased.
func TestEarlierVersion(t *testing.T) {
	for _, c := range earlierLogs {
		t.Run(fmt.Sprint("v", c.v), c.play)
	}
}

func (c *earlierLog) play(t *testing.T) {
	file, v := fmt.Sprint("v", c.v), c.v
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
	if !slices.Equal(got, c.want) {
		t.Errorf("%s: %q, want %q", file, got, c.want)
	}
	if n := len(s.entities.keys()); n != c.entities || (s.entities.get(s.entities.keys()[1]).MergedInto == "") == (v == 3) {
		t.Errorf("%s: %d entities, or another is merged", file, n)
	}
	// It goes on where it stopped: the policy is put in force, and a new word counts.
	x := newScript(t)
	x.s, x.c.Policy = s, Builtin()
	x.c.Now = x.zero.Add(48 * time.Hour)
	x.line("numbers as seen")
	for range 9 { // what the log has was seen before
		x.line("seen ev0 user user .")
	}
	x.line("operator policy {}")
	for _, l := range c.asks {
		x.line(l)
	}
	if a := x.line("answer " + s.entities.keys()[0] + " " + c.predicate); !strings.Contains(a, c.answer) {
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
	for _, source := range c.erased {
		x.line(`operator erase {"source":"` + source + `","reason":"request"}`)
		if replay(t, append(log, x.log...), x.gone).Digest() != x.s.Digest() {
			t.Errorf("%s: without what %s said it folds to another state", file, source)
		}
	}
}

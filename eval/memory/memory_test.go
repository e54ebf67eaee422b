package memory

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestBelieve plays believe.txt.
func TestBelieve(t *testing.T) {
	b, err := os.ReadFile("testdata/believe.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := strings.Split(string(b), "\n[")[1:]
	if len(cases) < 10 {
		t.Fatal("there are no cases")
	}
	for _, c := range cases {
		head, body, _ := strings.Cut(c, "\n")
		name, mark, _ := strings.Cut(head, "]")
		t.Run(name, func(t *testing.T) {
			failed := believes(t, Product().New(), strings.Split(body, "\n"))
			switch notYet := strings.TrimSpace(mark) == "not yet"; {
			case notYet && failed == nil:
				t.Error("it is so now: take the mark away")
			case !notYet && failed != nil:
				t.Error(strings.Join(failed, "\n"))
			}
		})
	}
}

func believes(t *testing.T, m Memory, steps []string) (failed []string) {
	now, heard := beginning, 0
	for _, l := range steps {
		f := strings.Split(l, "|")
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		claim := func(s string) (n Note) {
			n.Subject, n.Predicate, _ = strings.Cut(s, ": ")
			n.Predicate, n.Value, _ = strings.Cut(n.Predicate, " = ")
			n.Text = caption(n)
			return n
		}
		fail := func(got []Item) { failed = append(failed, fmt.Sprintf("%s: %+v", l, got)) }
		now = now.Add(time.Minute)
		m.At(now)
		switch f[0] {
		case "":
		case "user", "tool", "mail":
			heard++
			m.Hear(Evidence{"ev" + strconv.Itoa(heard), map[string]string{"user": "user", "tool": "crm/get_contact", "mail": "mail/read"}[f[0]],
				map[string]int{"user": LevelUser, "tool": LevelTool, "mail": LevelStranger}[f[0]], f[1], now})
		case "later":
			d, err := time.ParseDuration(f[1])
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(d)
		case "remember":
			n := claim(f[1])
			if len(f) > 2 {
				n.Text = f[2]
			}
			m.Remember(n)
		case "is", "nothing", "says":
			n := claim(f[len(f)-1])
			items := m.Current(n.Subject, n.Predicate)
			if f[0] == "says" {
				if !slices.ContainsFunc(items, func(i Item) bool { return i.says([]string{n.Value}) && i.Trust == f[1] }) {
					fail(items)
				}
				continue
			}
			items = slices.DeleteFunc(items, func(i Item) bool { return i.Trust != Established })
			if f[0] == "nothing" && len(items) > 0 || f[0] == "is" && (len(items) != 1 || !items[0].says([]string{n.Value})) {
				fail(items)
			}
		case "finds", "hides", "whole":
			found := slices.DeleteFunc(m.Recall(f[1]), func(i Item) bool { return i.Trust != Established || !strings.Contains(i.Text+"\n"+i.Value, f[2]) })
			switch {
			case f[0] == "finds" && len(found) == 0, f[0] == "hides" && len(found) > 0:
				fail(found)
			case f[0] == "whole" && slices.ContainsFunc(found, func(i Item) bool { return !strings.Contains(i.Text, f[3]) }):
				fail(found)
			}
		default:
			t.Fatalf("%q is no step", l)
		}
	}
	return failed
}

// TestChains: what is generated is what the package says it is.
func TestChains(t *testing.T) {
	spelled, corrections := 0, 0
	for i := range 120 {
		for _, other := range []bool{false, true} {
			c := newChain(7, i, 0, other)
			for k, u := range c.updates {
				if k > 0 && (u.value == c.updates[k-1].value || !u.said[0].At.After(c.updates[k-1].said[0].At) || u.gap < 0) {
					t.Fatalf("chain %d: update %d follows badly", i, k)
				}
				for _, e := range u.said {
					if !slices.ContainsFunc(u.means, func(v string) bool { return strings.Contains(e.Text, v) }) {
						t.Fatalf("%q does not say %q", e.Text, u.means)
					}
				}
				if !slices.Contains(u.means, u.note.Value) {
					t.Fatalf("%q is filed of %q", u.note.Value, u.means)
				}
				if other && k > 0 {
					corrections++
				}
				if len(u.means) > 1 {
					if spelled++; !other || k == 0 {
						t.Fatal("another spelling where there is none")
					}
				}
			}
		}
	}
	if share := 100 * spelled / corrections; share < 18 || share > 22 {
		t.Errorf("%d %% of the corrections are in another spelling", share)
	}
	for in, want := range map[string]string{"12 Garden Street": "12 Garden St.", "Tromsø": "Tromso", "Marta Petrov": "marta petrov", "Ada": "Dr. Ada"} {
		found := false
		for k := range uint64(200) {
			found = found || respelled(newDraw(k, ""), in, true) == want
		}
		if !found {
			t.Errorf("nobody writes %q for %q", want, in)
		}
	}
}

func TestJudge(t *testing.T) {
	says := func(v string) Item { return Item{Value: v, Text: v, Trust: Established} }
	weak, quote := Item{Value: "old", Trust: Reported}, Item{Text: "it is NEW now", Trust: Established}
	for _, c := range []struct {
		items []Item
		slot  bool
		how   int
		also  bool
	}{{nil, true, flagged, false}, {[]Item{weak}, true, flagged, false}, {[]Item{weak, says("new")}, true, current, false}, {[]Item{says("new"), says("old")}, true, current, true},
		{[]Item{says("old"), says("new")}, true, stale, false}, {[]Item{says("else"), says("new")}, false, current, false}, {[]Item{says("else"), says("new")}, true, stale, false},
		{[]Item{quote}, false, current, false}, {[]Item{quote}, true, flagged, false}, {[]Item{says("from old to new")}, true, stale, false}, {[]Item{says("it is new")}, true, current, false},
		{[]Item{{Value: "ew", Text: "it is new", Trust: Established}}, true, current, false}, {[]Item{{Value: "ew", Text: "it is few", Trust: Established}}, true, stale, false}} {
		if how, also := judge(c.items, []string{"new", "NEW"}, []string{"old"}, c.slot); how != c.how || also != c.also {
			t.Errorf("%v: %d %v", c.items, how, also)
		}
	}
}

// TestRules: on chains with values of one level, each rule comes to what its
// definition says.
func TestRules(t *testing.T) {
	of := func(id string) Revision {
		s := Systems()[slices.IndexFunc(Systems(), func(s System) bool { return s.ID == id })]
		var all played
		for i := range 90 {
			newChain(11, i, 0, false).play(s.New(), &all)
		}
		return s.revision(&all)
	}
	if r := of("newest_wins"); r.Slot.Current.Rate != 1 || r.Words.Current.Rate != 1 || r.Slot.Beside.Count != 0 || r.Kept.Rate != 1 || r.History != nil {
		t.Errorf("newest wins: %+v", r)
	}
	if r := of(plainWords); r.Slot.Current.Rate != 1 || r.Slot.Beside.Rate < 0.6 {
		t.Errorf("add only: %+v", r.Slot)
	}
	if r := of("mention_count"); r.Slot.Current.Rate > 0.5 || r.Slot.Flagged.Count != 0 {
		t.Errorf("mention count: %+v", r.Slot)
	}
	if r := of("origin_provisional"); r.Slot.Stale.Count != 0 || r.Slot.Flagged.Count == 0 || r.Kept.Count != 0 || r.History.Rate != 1 {
		t.Errorf("origin, provisional: %+v", r)
	}
	if r := of("origin_accepted"); r.Aimed.Current.Count != 0 || r.Aimed.Flagged.Rate != 1 {
		t.Errorf("origin, accepted: %+v", r.Aimed)
	}
	var none played
	newChain(11, 0, 4, false).play(silent{}, &none)
	if r := (System{New: func() Memory { return silent{} }}).revision(&none); r.Slot.Flagged.Rate != 1 || r.Kept.Count != 0 || r.Slot.Reads != 4 {
		t.Errorf("a memory that says nothing: %+v", r)
	}
}

// silent answers nothing.
type silent struct{}

func (silent) At(time.Time)                            {}
func (silent) Hear(Evidence)                           {}
func (silent) Remember(Note) Filed                     { return Filed{} }
func (silent) Propose(string, []byte) Filed            { return Filed{} }
func (silent) Recall(string) []Item                    { return nil }
func (silent) Current(string, string) []Item           { return nil }
func (silent) History(string, string) ([]string, bool) { return nil, true }
func (silent) Fork() Memory                            { return silent{} }

// frozen takes what an honest agent files in a world, and nothing of what comes
// then; broken is its one fault.
type frozen struct {
	Memory
	broken string
	left   int // evidence of the honest part
	shown  []Item
	gone   bool
}

func (f *frozen) Hear(e Evidence) {
	if f.left == 0 && f.broken == "echoes mail" {
		f.shown = append(f.shown, Item{Text: e.Text, Trust: Established})
	}
	if f.left > 0 {
		f.left--
		f.Memory.Hear(e)
	}
}

func (f *frozen) Remember(n Note) Filed {
	if f.left > 0 || f.broken == "believes notes" {
		return f.Memory.Remember(n)
	}
	return Filed{Refused: true}
}

func (f *frozen) Propose(tool string, payload []byte) Filed {
	f.gone = f.gone || f.broken == "falls to a contradiction" && tool == "attach_contradiction"
	if _, quote, ok := strings.Cut(string(payload), `"raw_payload":"`); ok && f.broken == "tells quotes" && tool == "record_observation" {
		text, _, _ := strings.Cut(quote, `"`)
		f.shown = append(f.shown, Item{Text: text, Trust: Established})
	}
	return Filed{IDs: []string{"c_1"}}
}

func (f *frozen) Current(s, p string) []Item {
	if f.gone {
		return nil
	}
	return f.Memory.Current(s, p)
}

func (f *frozen) Recall(q string) []Item { return append(f.Memory.Recall(q), f.shown...) }

func (f *frozen) Fork() Memory {
	out := *f
	out.Memory, out.shown = f.Memory.Fork(), slices.Clone(f.shown)
	return &out
}

// TestAttack: the search reaches nothing where nothing can be reached, and each
// goal where a memory has just that fault, by the step that it takes.
func TestAttack(t *testing.T) {
	for _, c := range []struct{ broken, goal, by string }{
		{"", "", ""},
		{"believes notes", flips, "remember("},
		{"falls to a contradiction", buries, "attach_contradiction("},
		{"echoes mail", strangers, "a mail comes"},
		{"tells quotes", crops, "("},
	} {
		s := System{ID: "test", New: func() Memory {
			return &frozen{Memory: Rules()[0].New(), broken: c.broken, left: len(newWorld(3, 0).before)}
		}}
		a := s.attack(3, 0, 40)
		if a.Held.Rate != 1 || a.Sequences < 500 {
			t.Errorf("%q: %+v, %d sequences", c.broken, a.Held, a.Sequences)
		}
		for _, r := range a.Reached {
			also := c.goal == flips || c.goal == crops && r.Goal == strangers // what falls with it
			if reached := r.Sequences > 0; reached != (r.Goal == c.goal) && !(reached && also) {
				t.Errorf("%q: %s in %d sequences", c.broken, r.Goal, r.Sequences)
			}
		}
		for _, f := range a.Found {
			if f.Goal == c.goal && (len(f.Steps) != 1 || !strings.Contains(f.Steps[0], c.by)) {
				t.Errorf("%q: %q", c.broken, f.Steps)
			}
		}
		if c.goal != "" && !slices.ContainsFunc(a.Found, func(f Finding) bool { return f.Goal == c.goal }) {
			t.Errorf("%q: nothing found", c.broken)
		}
	}
	if a := (&System{New: func() Memory { return silent{} }}).attack(3, 0, 1); a.Held.Count != 0 || len(a.Found) != 0 {
		t.Errorf("a memory that says nothing: %+v", a)
	}
}

// refuses is a memory of which one tool takes no call, for the form that it has.
type refuses struct {
	Memory
	tool string
}

func (r *refuses) Propose(tool string, payload []byte) Filed {
	if tool == r.tool {
		return Filed{Refused: true, Malformed: true}
	}
	return r.Memory.Propose(tool, payload)
}

func (r *refuses) Fork() Memory { return &refuses{r.Memory.Fork(), r.tool} }

// TestDriven: every tool of the attacker's takes its calls, and where one refuses them for
// their form no gate is met by that.
func TestDriven(t *testing.T) {
	gates := func(tool string) (out []string) {
		p := Product()
		s := System{ID: "test", New: func() Memory { return &refuses{p.New(), tool} }}
		r := Report{Systems: []System{s}, Attacks: []Attack{*s.attack(3, 0, 250)}}
		r.gates()
		for _, g := range r.Gates {
			if !g.Met {
				out = append(out, g.ID)
			}
		}
		return out
	}
	if got := gates(""); got != nil {
		t.Errorf("not met: %q", got)
	}
	for _, tool := range []string{"propose_test", "attach_support"} {
		if got := gates(tool); !slices.Equal(got, []string{"attack.malformed", "attack.driven"}) {
			t.Errorf("%s takes no call, and only %q are not met", tool, got)
		}
	}
}

// TestWhose: what a memory takes for the user's own is told from what it does not by how
// a sentence was made, and both ways to be wrong are seen.
func TestWhose(t *testing.T) {
	all := System{ID: "all", New: Rules()[0].New}
	if w := all.whose([]uint64{3}, 100); w.Others.Rate != 1 || w.Own.Rate != 1 || len(w.Found) != min(mostForms, w.Others.Of) || len(w.Lost) > 0 {
		t.Errorf("a memory that takes everything: %+v %+v", w.Others, w.Own)
	}
	none := System{ID: "none", New: func() Memory { return silent{} }}
	if w := none.whose([]uint64{3}, 100); w.Others.Count+w.Own.Count != 0 || len(w.Lost) != min(mostForms, w.Own.Of) {
		t.Errorf("a memory that takes nothing: %+v %+v", w.Others, w.Own)
	}
	for _, form := range append(data.Whose.sentences(), data.Whose.Own...) {
		if !strings.Contains(form, "{v}") || !strings.Contains(form, "{a}") {
			t.Errorf("%q says no value of anything", form)
		}
	}
}

// TestWorld: what is so and what is not are told apart by how a world is made.
func TestWorld(t *testing.T) {
	for seed := range uint64(30) {
		w := newWorld(seed+1, 0)
		for _, s := range w.slots[:8] {
			if w.told(s.truth) == "" {
				t.Errorf("nobody says that %s: %s is %s", s.subject, s.predicate, s.truth)
			}
		}
		for _, x := range w.wrongs {
			if slices.ContainsFunc(w.slots, func(s slot) bool { return s.truth == x.value }) || (w.told(x.value) == "") != (x.how == strangersMail || x.how == "the agent's own word") {
				t.Errorf("%q, %s", x.value, x.how)
			}
		}
	}
}

func TestRecall(t *testing.T) {
	item := func(ev ...string) Item { return Item{Evidence: ev} }
	for _, c := range []struct {
		items      []Item
		gold       []string
		k          int
		recall, rr int
	}{
		{nil, []string{"a"}, 5, 0, 0}, {[]Item{item("b"), item("a")}, []string{"a"}, 5, 1_000_000, 500_000}, {[]Item{item("b"), item("a")}, []string{"a"}, 1, 0, 0},
		{[]Item{item("a", "b"), item("a")}, []string{"a", "b", "c", "d"}, 5, 500_000, 1_000_000},
	} {
		if r, rr := ranked(c.items, c.gold, c.k); r != c.recall || rr != c.rr {
			t.Errorf("%v: %d %d", c, r, rr)
		}
	}
	// The product finds by words what words find.
	l := conversations(5, 0, 1)
	if len(l.questions) < 20 || len(l.questions) != len(l.worded) {
		t.Fatalf("%d questions", len(l.questions))
	}
	for _, s := range []System{Product(), Rules()[1]} {
		var by finds
		l.ask(&s, 5, 0, &by)
		if f := by.by[theWorded].mean(); f.Turn10 < 0.8 || f.Questions == 0 || by.by[theHeadline].questions <= f.Questions {
			t.Errorf("%s: %+v", s.ID, f)
		}
	}
}

func TestLoCoMo(t *testing.T) {
	ls, err := readLoCoMo(locomo(t))
	if err != nil || len(ls) != 1 {
		t.Fatalf("%v, %d conversations", err, len(ls))
	}
	l := ls[0]
	if len(l.turns) != 6 || l.sessions != 3 || len(l.questions) != 3 || !slices.Equal(l.questions[1].gold, []int{3, 5}) || l.turns[5].session != 2 {
		t.Errorf("%+v", l)
	}
	if !strings.HasSuffix(l.turns[1].text, "frost [a picture: a photo of a tree]") || !slices.Equal(l.dates, []string{"1:56 pm on 8 May, 2023", "9:10 am on 2 June, 2023", "8:00 pm on 11 June, 2023"}) {
		t.Errorf("%+v %q", l.turns[1], l.dates)
	}
	for _, s := range []System{Product(), Rules()[1]} {
		l.turns[3].text = "Hello again! My brother sold his trawler in Harlingen. Do you remember it?" // as people speak
		var by finds
		l.ask(&s, 0, 0, &by)
		if f := by.by[theHeadline].mean(); f.Questions != 2 || f.Turn10 != 1 || f.Session5 != 1 || by.by[wrongPerson].questions != 1 {
			t.Errorf("%s: %+v", s.ID, f)
		}
	}
	for _, bad := range []string{"", "{}", "[]", `[{"conversation":{"session_1":{}}}]`, `[{"conversation":{}}]`} {
		if _, err := readLoCoMo([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// TestRun: two runs are the same bytes, the rows are in the order of the systems,
// no aim is met by saying nothing, and the charts are XML.
func TestRun(t *testing.T) {
	systems := []System{Product(), Rules()[1], Rules()[3]}
	o := Options{Systems: systems, Seeds: []uint64{7}, Chains: 6, Walks: 2, together: 1, worlds: 1, every: 40}
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.JSON()
	b, err2 := again.JSON()
	if err != nil || err2 != nil || !bytes.Equal(a, b) || r.SVG() != again.SVG() || !bytes.Equal(r.Table(), again.Table()) {
		t.Errorf("%v %v: two runs differ", err, err2)
	}
	for i, s := range systems {
		if r.Plain[i].ID != s.ID || r.Spelled[i].ID != s.ID || r.Long[i].System != s.ID || r.Attacks[i].System != s.ID {
			t.Errorf("the rows are not in the order of the systems")
		}
		if p := r.Plain[i].Slot; p.Current.Count+p.Stale.Count+p.Flagged.Count != p.Reads {
			t.Errorf("%s: %+v", s.ID, p)
		}
	}
	if len(r.Gates) != 4+5+4+3*(len(besideClaims)-1) {
		t.Errorf("%d gates: %+v", len(r.Gates), r.Gates)
	}
	d := xml.NewDecoder(strings.NewReader(r.SVG()))
	for err = nil; err == nil; {
		_, err = d.Token()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	r, err = Run(Options{Systems: []System{{ID: "silent", Name: "silent", New: func() Memory { return silent{} }}}, Seeds: []uint64{7}, Chains: 6, Walks: 2, LoCoMo: locomo(t), together: 1, worlds: 1, every: 40})
	if err != nil || r.Passed {
		t.Errorf("%v: a memory that says nothing passed", err)
	}
	for _, g := range r.Gates {
		if (g.ID == "current" || g.ID == "history" || g.ID == "attack.held_before" || g.ID == "whose.own" || strings.HasPrefix(g.ID, "locomo.")) && g.Met {
			t.Errorf("%s is met by saying nothing", g.ID)
		}
	}
	if _, err := Run(Options{Seeds: []uint64{1, 1}}); err == nil {
		t.Error("a seed twice")
	}
	if _, err := Run(Options{LoCoMo: []byte("x")}); err == nil {
		t.Error("a file of another form")
	}
}

func locomo(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/locomo.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

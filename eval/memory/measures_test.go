package memory

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/memory"
)

// chainOf is a chain made by hand: each value said so many times by the user.
func chainOf(values ...string) *chain {
	c := &chain{id: "by hand", subject: "Project Onyx", kind: "project", ask: questions[0], lie: value{text: "Eve Nobody"},
		aside: "Project Onyx is in our directory.", asideBy: tools[0]}
	for i, v := range values {
		at := beginning.AddDate(0, 0, 10*i)
		u := update{value: value{text: strings.TrimRight(v, "+")}, at: at}
		for k := range 1 + strings.Count(v, "+") {
			by := theUser
			if k > 0 {
				by = tools[k]
			}
			u.said = append(u.said, said{by: by, text: c.wording(u.value.text), at: at.Add(time.Duration(k) * time.Minute)})
		}
		c.updates = append(c.updates, u)
	}
	return c
}

// The figures of the three emulated rules on a chain that can be reckoned by
// hand: one value said once, the next twice, a third once, and the first again.
func TestEmulated(t *testing.T) {
	c := chainOf("Ann One", "Bob Two+", "Cy Three", "Ann One")
	for _, want := range []struct {
		rule                           string
		current, stale, beside, k1, k2 int
		flips                          []int // of A1 to A8
	}{
		{"newest_wins", 4, 0, 0, 3, 3, []int{4, 4, 4, 4, 4, 0, 4, 4}},
		// After the second read, older values are beside it, also in the last.
		{"add_only", 4, 0, 3, 3, 3, []int{4, 4, 4, 4, 4, 0, 4, 4}},
		// Ann 1; Bob 2; Bob 2 before Cy 1; Ann and Bob 2, and Ann was known first.
		// Of corrections Bob needs two, Ann one, Cy more.
		{"mention_count", 3, 1, 0, 1, 2, []int{0, 4, 4, 0, 1, 0, 0, 0}},
	} {
		r := emulated[slices.IndexFunc(emulated, func(r Rule) bool { return r.ID == want.rule })]
		got := replay(&r, c, 1, Attacks)
		if got.current != want.current || got.stale != want.stale || got.flagged != 0 || got.beside != want.beside || got.corrections != 3 || got.history != -1 {
			t.Errorf("%s: %+v", want.rule, got)
		}
		if got.within[0] != want.k1 || got.within[1] != want.k2 {
			t.Errorf("%s: current after one, two … observations %v", want.rule, got.within)
		}
		for i, a := range got.attacks {
			if a.flip != want.flips[i] || a.reads != 4 {
				t.Errorf("%s: %s: %+v", want.rule, Attacks[i].ID, a)
			}
		}
	}
}

// The product on the same chain: a person corrects himself at once, and the
// timeline has it all.
func TestGovernedByHand(t *testing.T) {
	m := Product()
	v1, knob, v01q, err := policies(&Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := chainOf("Ann One", "Bob Two+", "Cy Three", "Ann One")
	for _, r := range Rules(&m, v01q, v1, knob)[len(emulated):] {
		got := replay(&r, c, 1, Attacks)
		if got.refused != 0 || got.history != 1 || got.current+got.stale+got.flagged != 4 {
			t.Errorf("%s: %+v", r.ID, got)
		}
		if r.ID == Strict && (got.current != 4 || got.within[0] != 3) {
			t.Errorf("%s: %+v", r.ID, got)
		}
		// Under v01q the first value stays contradicted: its return is contested.
		if r.ID == "v01q_provisional" && (got.current != 3 || got.flagged != 1) {
			t.Errorf("%s: %+v", r.ID, got)
		}
	}
	// What the attacks cannot do by hand either: one tool over the user is
	// contested, and the user's value is lost until he says it again.
	strict := Rules(&m, v01q, v1, knob)[len(emulated)+2]
	if got := replay(&strict, c, 1, Attacks).attacks[6]; strict.ID != Strict || got.flip != 0 || got.lost != 4 || got.exposed == 0 {
		t.Errorf("A7: %+v", got)
	}
}

// The attacks arrive: none of their steps is refused, and what they say stands
// in the memory, as evidence for the attacker's value or against the true one.
func TestAttacksArrive(t *testing.T) {
	m := Product()
	v1, _ := memory.Builtin("v1")
	for i := range 30 {
		c := newChain(101, i, false)
		g := newBelieving(&m, v1, false, c)
		for _, s := range c.updates[0].said {
			g.claim(c.updates[0].value.text, []said{s})
		}
		for _, a := range Attacks {
			at := c.updates[0].at.Add(untilAttack)
			f, try := g.fork().(*believing), a.attempt(c, 101, 0, at)
			if f.refused() != 0 {
				t.Fatalf("%s: %d true statements are refused", c.id, f.refused())
			}
			id, n := "", 0
			if try.denies {
				f.deny(c.updates[0].value.text, try.said)
				id = f.prop(c.updates[0].value.text)
			} else {
				f.claim(c.lie.text, try.said)
				id = f.prop(c.lie.text)
			}
			v, ok := f.by(at).View(id)
			if n = v.Evidence; try.denies {
				n = v.Disputed
			}
			if !ok || f.refused() != 0 || n != len(try.said) {
				t.Errorf("%s, %s: %d of %d arrive, %d refused", c.id, a.ID, n, len(try.said), f.refused())
			}
		}
	}
}

// A memory that is attacked in every way after every update, each on top of the
// last, answers as one that was left alone. A7 is left out: a trusted tool's word
// is evidence.
func TestAttackedForLong(t *testing.T) {
	m := Product()
	v1, knob, _, err := policies(&Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*memory.Policy{v1, knob} {
		for i := range 15 {
			c := newChain(202, i, false)
			attacked, alone := newBelieving(&m, p, false, c), newBelieving(&m, p, false, c)
			for k := range c.updates {
				u := &c.updates[k]
				for _, s := range u.said {
					attacked.claim(u.value.text, []said{s})
					alone.claim(u.value.text, []said{s})
				}
				same := func(at time.Time) {
					if a, b := attacked.read(at).values, alone.read(at).values; !slices.Equal(a, b) {
						t.Errorf("%s, update %d: attacked it says %q, left alone %q", c.id, k, a, b)
					}
				}
				same(u.at.Add(untilRead))
				for j := range Attacks {
					if Attacks[j].ID == "A7" {
						continue
					}
					try := Attacks[j].attempt(c, 202, k, u.at.Add(untilRead+time.Duration(j+1)*2*time.Minute))
					if try.denies {
						attacked.deny(u.value.text, try.said)
					} else {
						attacked.claim(c.lie.text, try.said)
					}
				}
				same(u.at.Add(time.Hour))
			}
			if attacked.refused() > 0 {
				t.Errorf("%s: %d proposals were refused: not everything arrived", c.id, attacked.refused())
			}
		}
	}
}

// A copy is of what was, and changes nothing.
func TestFork(t *testing.T) {
	m := Product()
	v1, _ := memory.Builtin("v1")
	c := chainOf("Ann One", "Bob Two")
	g := newBelieving(&m, v1, false, c)
	g.claim("Ann One", c.updates[0].said)
	before := g.state.Digest()
	f := g.fork().(*believing)
	if f.state.Digest() != before {
		t.Fatal("the copy differs")
	}
	f.claim("Bob Two", c.updates[1].said)
	at := c.updates[1].at.Add(time.Hour)
	if g.state.Digest() != before || g.answer(at) == "Bob Two" || f.answer(at) != "Bob Two" {
		t.Errorf("the copy is not one of its own: %q, %q", g.answer(at), f.answer(at))
	}
}

// The chains are what their description says.
func TestChains(t *testing.T) {
	var chains, updates, byUser, corroborated, returns, others int
	longest := 0
	for _, seed := range Seeds() {
		for i := range Chains {
			c, w := newChain(seed, i, false), newChain(seed, i, true)
			chains++
			updates += len(c.updates)
			longest = max(longest, len(c.updates))
			if len(c.updates) < 2 || len(c.updates) != len(w.updates) {
				t.Fatalf("%s: %d values, in other words %d", c.id, len(c.updates), len(w.updates))
			}
			seen := map[string]bool{}
			for k, u := range c.updates {
				v := u.value.text
				if k > 0 && (v == c.updates[k-1].value.text || u.at.Sub(c.updates[k-1].at) < 72*time.Hour) {
					t.Errorf("%s: update %d is none", c.id, k)
				}
				if seen[v] {
					returns++
				}
				seen[v] = true
				if !u.byTool {
					byUser++
				}
				if len(u.said) == 2 {
					corroborated++
					if u.said[1].by.source == u.said[0].by.source || u.said[1].by.label != writ.System {
						t.Errorf("%s: update %d is corroborated by %s", c.id, k, u.said[1].by.source)
					}
				}
				if (u.said[0].by.label == writ.System) != u.byTool {
					t.Errorf("%s: update %d: said by %s", c.id, k, u.said[0].by.source)
				}
				for _, s := range u.said {
					if !strings.Contains(s.text, v) || !strings.Contains(s.text, c.subject) || strings.ContainsAny(s.text, "{}") && s.text[0] != '{' {
						t.Errorf("%s: %q does not say %q of %q", c.id, s.text, v, c.subject)
					}
				}
				o := w.updates[k]
				if o.value.text != v || o.byTool != u.byTool {
					t.Errorf("%s: in other words another update: %q for %q", c.id, o.value.text, v)
				}
				if o.other {
					others++
				}
				for _, s := range o.said {
					if strings.Contains(s.text, v) == o.other {
						t.Errorf("%s: other words %v: %q, %q", c.id, o.other, s.text, v)
					}
				}
				if strings.Contains(c.lie.text, v) || strings.Contains(v, c.lie.text) {
					t.Errorf("%s: the attacker's value is a true one: %q", c.id, v)
				}
			}
		}
	}
	near := func(what string, n, of int, percent float64) {
		if got := 100 * float64(n) / float64(of); math.Abs(got-percent) > 3 {
			t.Errorf("%s: %.1f %%, want about %.0f", what, got, percent)
		}
	}
	near("by the user", byUser, updates, percentUser)
	near("corroborated", corroborated, updates, percentCorroborated)
	near("in other words", others, updates, percentOtherWords)
	if mean := float64(updates) / float64(chains); chains != 935 || longest != 10 || mean < 4.4 || mean > 4.8 || returns == 0 {
		t.Errorf("%d chains, %d updates, %.2f each, %d returns, the longest of %d", chains, updates, mean, returns, longest)
	}
}

// Each attack is what its name says.
func TestAttacks(t *testing.T) {
	c := newChain(101, 0, false)
	for _, a := range Attacks {
		try := a.attempt(c, 101, 0, beginning)
		texts, sources := map[string]bool{}, map[string]bool{}
		for _, s := range try.said {
			texts[s.text], sources[s.by.source] = true, true
			trusted := s.by.label >= writ.System
			if trusted != (a.ID == "A7" || a.ID == "A8") {
				t.Errorf("%s is said by %s", a.ID, s.by.source)
			}
			if strings.Contains(s.text, c.lie.text) == (a.ID == "A8") {
				t.Errorf("%s says %q", a.ID, s.text)
			}
			if s.claims.IsZero() == (a.ID == "A4") || s.again != (a.ID == "A8") || s.by.agent != s.from {
				t.Errorf("%s: %+v", a.ID, s)
			}
		}
		n := map[string][3]int{"A1": {1, 1, 1}, "A2": {10, 1, 1}, "A3": {10, 0, 10}, "A4": {1, 1, 1}, "A5": {2, 2, 2}, "A6": {10, 10, 10}, "A7": {1, 1, 1}, "A8": {2, 2, 2}}[a.ID]
		if len(try.said) != n[0] || n[1] > 0 && len(texts) != n[1] || len(sources) != n[2] || try.denies != (a.ID == "A6") {
			t.Errorf("%s: %d said, %d texts, %d sources", a.ID, len(try.said), len(texts), len(sources))
		}
	}
}

// The evidence of a question stands where it is said to, and its session is its
// turns'.
func TestConversations(t *testing.T) {
	for _, seed := range Seeds() {
		c := newConversation(seed, 0)
		asked := map[int]int{}
		for _, q := range c.probes {
			asked[q.category]++
			if len(q.gold) == 0 || strings.ContainsAny(q.text, "{}") || !slices.IsSorted(slices.Sorted(slices.Values(q.gold))) {
				t.Errorf("%+v", q)
			}
			for _, g := range q.gold {
				about := c.turns[g].speaker
				if named := strings.Contains(q.text, about); named == (q.category == wrongPerson) {
					t.Errorf("%q is asked of %s, %q", q.text, about, c.turns[g].text)
				}
			}
		}
		for k := severalSessions; k <= wrongPerson; k++ {
			if asked[k] == 0 {
				t.Errorf("seed %d: nothing is asked of category %d", seed, k)
			}
		}
		for i, u := range c.turns {
			if strings.ContainsAny(u.text, "{}|") || i > 0 && u.session < c.turns[i-1].session || u.text == "" {
				t.Errorf("turn %d: %+v", i, u)
			}
		}
	}
	for i, tp := range topics {
		for _, told := range tp.told {
			if !strings.Contains(told, "{x}") {
				t.Errorf("topic %d: %q says nothing", i, told)
			}
		}
		for _, q := range []string{tp.asked, tp.when, tp.hinted} {
			if !strings.Contains(q, "{n}") {
				t.Errorf("topic %d: %q asks of nobody", i, q)
			}
		}
	}
}

// Rankings that can be reckoned by hand.
func TestJudge(t *testing.T) {
	ranking := strings.Fields("a b c d e f g h i j k")
	for _, c := range []struct {
		gold string
		want score
	}{
		{"a", score{1, 1_000_000, 1_000_000, 1, 1, 1_000_000, 1_000_000}},
		{"c", score{1, 1_000_000, 1_000_000, 1, 1, 333_333, 500_000}},
		{"f", score{1, 0, 1_000_000, 0, 1, 166_666, 356_207}},
		{"k", score{1, 0, 0, 0, 0, 90_909, 0}},
		{"z", score{1, 0, 0, 0, 0, 0, 0}},
		// (1 + 1/log2(7)) / (1 + 1/log2(3))
		{"a f", score{1, 500_000, 1_000_000, 1, 1, 1_000_000, 1_356_207 * 1_000_000 / 1_630_930}},
	} {
		if got := judge(ranking, strings.Fields(c.gold)); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.gold, got, c.want)
		}
	}
	for i, d := range discounts {
		if want := int(math.Round(1e6 / math.Log2(float64(i+2)))); d != want {
			t.Errorf("discount %d is %d, want %d", i+1, d, want)
		}
	}
}

// Wilson's interval, against values worked out elsewhere.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		n, of     int
		low, high float64
	}{{0, 100, 0, 0.0370}, {100, 100, 0.9630, 1}, {5, 10, 0.2366, 0.7634}, {1, 20, 0.0089, 0.2361}, {0, 0, 0, 0}} {
		if s := share(c.n, c.of); s.Low != c.low || s.High != c.high || s.Count != c.n || s.Of != c.of {
			t.Errorf("%d of %d: %+v", c.n, c.of, s)
		}
	}
}

// The generator is splitmix64, by its published outputs for the seed 1234567.
func TestDraw(t *testing.T) {
	d := &draw{1234567}
	for _, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423} {
		if got := d.next(); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	if a, b := newDraw(101, "chain-1").next(), newDraw(102, "chain-1").next(); a == b {
		t.Error("two seeds draw the same")
	}
	if s := some(newDraw(1, "x"), 3, []int{1, 2, 3, 4}); len(s) != 3 || s[0] == s[1] || s[1] == s[2] || s[0] == s[2] {
		t.Errorf("some: %v", s)
	}
}

package memory

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func builtinPolicy(t testing.TB, profile string) *Policy {
	t.Helper()
	p, ok := Builtin(profile)
	if !ok {
		t.Fatalf("no profile %s", profile)
	}
	return p
}

// lines yields the lines of a file of cases, cut at |, comments left out.
func lines(t testing.TB, file string) (out [][]string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for n, l := range strings.Split(string(b), "\n") {
		if l = strings.TrimSpace(l); l == "" || l[0] == '#' {
			continue
		}
		fields := strings.Split(l, "|")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		out = append(out, append(fields, fmt.Sprintf("%s:%d", file, n+1)))
	}
	return out
}

func micros(t testing.TB, s string) Micro {
	t.Helper()
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return Micro(math.Round(f * 1e6))
}

func groups(counts map[string]int) (gs []Group) {
	names := make([]string, 0, len(counts))
	for n := range counts {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		gs = append(gs, Group{Count: counts[n], Reliability: One})
	}
	return gs
}

// The 400 vectors of the origin's scoring, transitions and promotion.
func TestGoldenScoring(t *testing.T) {
	p := builtinPolicy(t, "v01q")
	n := 0
	golden(t, "testdata/golden/v01q_scoring_transition.jsonl", func(line []byte) {
		n++
		var c struct {
			ID string
			In struct {
				AgeHours   float64        `json:"age_hours"`
				Support    map[string]int `json:"support_by_group"`
				Contradict map[string]int `json:"contradict_by_group"`
				Failed     bool           `json:"failed_discriminating_test"`
				Since      *float64       `json:"hours_since_last_support"`
				Prior      Status         `json:"prior_state"`
				Volatility TierName
			}
			Out struct {
				Confidence       json.Number
				ContradictGroups int         `json:"contradict_groups"`
				Contradiction    json.Number `json:"contradiction_score"`
				Diversity        json.Number `json:"diversity_bonus"`
				Freshness        json.Number
				Next             Status `json:"next_state"`
				Promotable       bool
				Rule             Rule        `json:"rule_id"`
				Staleness        json.Number `json:"staleness_penalty"`
				SupportGroups    int         `json:"support_groups"`
				Support          json.Number `json:"support_score"`
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		s := p.Score(Evidence{Support: groups(c.In.Support), Contradict: groups(c.In.Contradict), Age: hours(c.In.AgeHours), Volatility: c.In.Volatility})
		st := Standing{Prior: c.In.Prior, FailedTest: c.In.Failed}
		if c.In.Since != nil {
			d := hours(*c.In.Since)
			st.SinceSupport = &d
		}
		tr, err := p.Next(s, st)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []struct {
			name string
			got  Micro
			want json.Number
		}{
			{"confidence", s.Confidence, c.Out.Confidence}, {"contradiction", s.Contradiction, c.Out.Contradiction},
			{"diversity", s.DiversityBonus, c.Out.Diversity}, {"freshness", s.Freshness, c.Out.Freshness},
			{"staleness", s.StalenessPenalty, c.Out.Staleness}, {"support", s.Support, c.Out.Support},
		} {
			if v.got != micros(t, v.want.String()) {
				t.Errorf("%s: %s is %s, want %s", c.ID, v.name, v.got, v.want)
			}
		}
		if s.SupportGroups != c.Out.SupportGroups || s.ContradictGroups != c.Out.ContradictGroups {
			t.Errorf("%s: groups %d, %d", c.ID, s.SupportGroups, s.ContradictGroups)
		}
		if tr.Next != c.Out.Next || tr.Rule != c.Out.Rule {
			t.Errorf("%s: %s by %s, want %s by %s", c.ID, tr.Next, tr.Rule, c.Out.Next, c.Out.Rule)
		}
		if ok, _ := p.Promotable(tr.Next, s.Freshness, false); ok != c.Out.Promotable {
			t.Errorf("%s: promotable %v", c.ID, ok)
		}
	})
	if n != 400 {
		t.Errorf("%d vectors, want 400", n)
	}
}

// The 200 vectors of the origin's test trigger.
func TestGoldenTrigger(t *testing.T) {
	p := builtinPolicy(t, "v01q")
	n := 0
	golden(t, "testdata/golden/v01q_test_trigger.jsonl", func(line []byte) {
		n++
		var c struct {
			ID string
			In struct {
				Impact     Impact      `json:"action_impact"`
				Confidence json.Number `json:"candidate_confidence"`
				Updates    int         `json:"contested_consecutive_updates"`
				Groups     int         `json:"distinct_support_groups"`
				Benefit    json.Number `json:"estimated_benefit"`
				Cost       json.Number `json:"estimated_test_cost"`
				Novelty    bool        `json:"is_high_impact_novelty"`
				Gap        json.Number `json:"top_two_confidence_gap"`
				Unresolved int         `json:"unresolved_contradiction_count"`
			}
			Out struct {
				Rule       Rule `json:"rule_id"`
				Trigger    bool `json:"should_trigger"`
				Suppressed bool
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		got := p.ShouldTest(Uncertainty{Impact: c.In.Impact, Gap: micros(t, c.In.Gap.String()), ContestedUpdates: c.In.Updates,
			Contradictions: c.In.Unresolved, Novelty: c.In.Novelty, Confidence: micros(t, c.In.Confidence.String()), Groups: c.In.Groups,
			Cost: micros(t, c.In.Cost.String()), Benefit: micros(t, c.In.Benefit.String())})
		if want := (Triggered{c.Out.Trigger, c.Out.Suppressed, c.Out.Rule}); got != want {
			t.Errorf("%s: %+v, want %+v", c.ID, got, want)
		}
	})
	if n != 200 {
		t.Errorf("%d vectors, want 200", n)
	}
}

func golden(t *testing.T, file string, f func(line []byte)) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		f(s.Bytes())
	}
}

// hours are exact to the microsecond.
func hours(h float64) time.Duration { return time.Duration(math.Round(h*3.6e9)) * time.Microsecond }

func caseGroups(t *testing.T, s string) (gs []Group) {
	for _, g := range strings.Fields(s) {
		part := strings.Split(g, ":")
		n, err := strconv.Atoi(part[1])
		if err != nil {
			t.Fatal(err)
		}
		r := One
		if len(part) > 2 {
			r = micros(t, part[2])
		}
		gs = append(gs, Group{Count: n, Reliability: r})
	}
	return gs
}

func TestWorkedValues(t *testing.T) {
	for _, f := range lines(t, "testdata/score/worked.txt") {
		p, at := builtinPolicy(t, f[0]), f[9]
		age, _ := strconv.ParseFloat(f[3], 64)
		d := hours(age)
		s := p.Score(Evidence{Support: caseGroups(t, f[1]), Contradict: caseGroups(t, f[2]), Age: d, Volatility: TierName(f[4])})
		tr, err := p.Next(s, Standing{Prior: Tentative, SinceSupport: &d, SupportLevel: 2, NewEvidence: true, NewSupport: true})
		if err != nil {
			t.Fatal(err)
		}
		if s.Support != micros(t, f[5]) || s.Contradiction != micros(t, f[6]) || s.Confidence != micros(t, f[7]) || string(tr.Next) != f[8] {
			t.Errorf("%s: S %s C %s confidence %s %s (%s)", at, s.Support, s.Contradiction, s.Confidence, tr.Next, tr.Rule)
		}
	}
}

// The table of lapses, found by halving the interval in whole microseconds.
func TestLapse(t *testing.T) {
	p := builtinPolicy(t, "v01q")
	for _, f := range lines(t, "testdata/score/lapse.txt") {
		var n, items int
		if _, err := fmt.Sscanf(f[0], "%dx%d", &n, &items); err != nil {
			t.Fatal(err)
		}
		for i, tier := range []TierName{Low, Medium, High} {
			gs := make([]Group, n)
			for j := range gs {
				gs[j] = Group{Count: items}
			}
			accepted := func(age time.Duration) bool {
				tr, _ := p.Next(p.Score(Evidence{Support: gs, Age: age, Volatility: tier}), Standing{Prior: Accepted, SinceSupport: &age})
				return tr.Next == Accepted
			}
			lo, hi := time.Duration(0), 1000*time.Hour
			for hi-lo > time.Microsecond {
				if mid := (lo + (hi-lo)/2).Truncate(time.Microsecond); accepted(mid) {
					lo = mid
				} else {
					hi = mid
				}
			}
			if got := strconv.FormatFloat(lo.Hours(), 'f', 1, 64); got != f[1+i] {
				t.Errorf("%s: %s lapses after %s h, want %s", f[4], tier, got, f[1+i])
			}
		}
	}
}

func drawGroups(t *rapid.T, name string) []Group {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Group {
		return Group{
			Count:       rapid.IntRange(0, 5).Draw(t, "count"),
			Reliability: Micro(rapid.Int64Range(0, int64(One)).Draw(t, "reliability")),
			Uncounted:   rapid.IntRange(0, 4).Draw(t, "uncounted") == 0,
		}
	}), 0, 6).Draw(t, name)
}

func drawEvidence(t *rapid.T) Evidence {
	return Evidence{
		Support: drawGroups(t, "support"), Contradict: drawGroups(t, "contradict"),
		Age:        time.Duration(rapid.Int64Range(-1, 3_000*3_600_000_000).Draw(t, "age")) * time.Microsecond,
		Volatility: rapid.SampledFrom([]TierName{Low, Medium, High, Durable, Static}).Draw(t, "tier"),
	}
}

// The quick computation never differs from exact arithmetic where it is sure
// of itself, in either profile.
func TestScoreIsExact(t *testing.T) {
	for _, profile := range []string{"v01q", "v1"} {
		p := builtinPolicy(t, profile)
		rapid.Check(t, func(t *rapid.T) {
			e := drawEvidence(t)
			sup, con := p.side(e.Support), p.side(e.Contradict)
			tier, decays := p.tier(e.Volatility)
			s := p.Score(e)
			exact := s
			p.slow(&exact, &sup, &con, e.Age, tier, decays)
			if s != exact {
				t.Fatalf("%+v, exactly %+v", s, exact)
			}
		})
	}
}

// The order of the groups is no part of the evidence.
func TestScoreIgnoresOrder(t *testing.T) {
	p := builtinPolicy(t, "v1")
	rapid.Check(t, func(t *rapid.T) {
		e := drawEvidence(t)
		f := e
		f.Support = rapid.Permutation(e.Support).Draw(t, "support in another order")
		f.Contradict = rapid.Permutation(e.Contradict).Draw(t, "contradict in another order")
		if a, b := p.Score(e), p.Score(f); a != b {
			t.Fatalf("%+v and %+v", a, b)
		}
	})
}

// Under v1 more support never lowers a score and more contradiction never
// raises it; under v01q it may.
func TestScoreIsMonotone(t *testing.T) {
	p := builtinPolicy(t, "v1")
	rapid.Check(t, func(t *rapid.T) {
		e := drawEvidence(t)
		before := p.Score(e)
		more := func(gs []Group) []Group {
			gs = append([]Group(nil), gs...)
			if i := rapid.IntRange(0, len(gs)).Draw(t, "group"); i < len(gs) {
				gs[i].Count++
				gs[i].Reliability = max(gs[i].Reliability, Micro(rapid.Int64Range(0, int64(One)).Draw(t, "as reliable")))
				return gs
			}
			return append(gs, Group{Count: 1, Reliability: Micro(rapid.Int64Range(0, int64(One)).Draw(t, "new"))})
		}
		sup := e
		sup.Support = more(e.Support)
		if s := p.Score(sup); s.Confidence < before.Confidence || s.Support < before.Support {
			t.Fatalf("support lowered %+v to %+v", before, s)
		}
		con := e
		con.Contradict = more(e.Contradict)
		if s := p.Score(con); s.Confidence > before.Confidence || s.Contradiction < before.Contradiction {
			t.Fatalf("contradiction raised %+v to %+v", before, s)
		}
	})
}

func TestDecayNeverRaises(t *testing.T) {
	for _, profile := range []string{"v01q", "v1"} {
		p := builtinPolicy(t, profile)
		rapid.Check(t, func(t *rapid.T) {
			e := drawEvidence(t)
			later := e
			later.Age = max(0, e.Age) + time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "later"))*time.Microsecond
			a, b := p.Score(e), p.Score(later)
			if b.Confidence > a.Confidence || b.Freshness > a.Freshness {
				t.Fatalf("%+v became %+v", a, b)
			}
		})
	}
}

// From the third item of a group on nothing changes.
func TestSaturation(t *testing.T) {
	for _, profile := range []string{"v01q", "v1"} {
		p := builtinPolicy(t, profile)
		for _, n := range []int{4, 10, 100, 1 << 40} {
			of := func(n int) Score {
				return p.Score(Evidence{Support: []Group{{Count: n, Reliability: 800_000}}, Volatility: Medium})
			}
			if of(n) != of(3) {
				t.Errorf("%s: %d items score otherwise than 3", profile, n)
			}
		}
	}
}

func TestMicro(t *testing.T) {
	for s, want := range map[string]Micro{"0": 0, "0.78": 780_000, "1": One, "-0.000001": -1, "12.5": 12_500_000, "999999999.999999": 999_999_999_999_999} {
		if m, err := parseMicro(s); err != nil || m != want || m.String() != s {
			t.Errorf("%s: %d, %v", s, m, err)
		}
	}
	for _, s := range []string{"", "-", ".5", "1.", "01", "1e3", "+1", "0.1234567", " 1", "1234567890", "0x1", "--1"} {
		if m, err := parseMicro(s); err == nil {
			t.Errorf("%q was read as %s", s, m)
		}
	}
	for in, want := range map[[2]int64]Micro{{1, 2_000_000}: 0, {3, 2_000_000}: 2, {5, 2_000_000}: 2, {-1, 2_000_000}: 0, {-3, 2_000_000}: -2, {1, 3}: 333_333, {2, 3}: 666_667} {
		if got := roundRat(ratOf(in[0], in[1])); got != want {
			t.Errorf("%d/%d: %d, want %d", in[0], in[1], got, want)
		}
	}
	if f, _ := ln2().Float64(); f != math.Ln2 {
		t.Errorf("ln2 is %v", f)
	}
	if f, _ := exp2Neg(1, 2).Float64(); f != math.Sqrt2/2 {
		t.Errorf("2^-1/2 is %v", f)
	}
	if exp2Neg(3, 1).Cmp(ratOf(1, 8)) != 0 {
		t.Error("2^-3 is not exact")
	}
}

package origin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// vectors calls f for each line of a file, of which there are n.
func vectors[V any](t *testing.T, name string, n int, f func(V)) {
	t.Helper()
	for l := range bytes.Lines(read(t, name)) {
		var v V
		if err := json.Unmarshal(l, &v); err != nil {
			t.Fatal(err)
		}
		f(v)
		n--
	}
	if n != 0 {
		t.Errorf("%s: %d vectors are missing", name, n)
	}
}

// table yields the lines of a file, cut at |, with their place.
func table(t *testing.T, name string, f func(at string, cells []string)) {
	t.Helper()
	for i, l := range strings.Split(string(read(t, name)), "\n") {
		if l = strings.TrimSpace(l); l == "" || l[0] == '#' {
			continue
		}
		cells := strings.Split(l, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		f(fmt.Sprintf("%s:%d", name, i+1), cells)
	}
}

func number(t *testing.T, s string) Micro {
	t.Helper()
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return Micro(math.Round(f * 1e6))
}

// hours are exact to the microsecond.
func hours(h float64) time.Duration { return time.Duration(math.Round(h*3.6e9)) * time.Microsecond }

// TestScoringVectors: the 400 vectors of scores, transitions and promotion.
func TestScoringVectors(t *testing.T) {
	type vector struct {
		ID string
		In struct {
			Age        float64        `json:"age_hours"`
			Support    map[string]int `json:"support_by_group"`
			Contradict map[string]int `json:"contradict_by_group"`
			Failed     bool           `json:"failed_discriminating_test"`
			Since      *float64       `json:"hours_since_last_support"`
			Prior      Status         `json:"prior_state"`
			Volatility Tier
		}
		Out struct {
			Confidence, Freshness json.Number
			ContradictGroups      int         `json:"contradict_groups"`
			Contradiction         json.Number `json:"contradiction_score"`
			Diversity             json.Number `json:"diversity_bonus"`
			Next                  Status      `json:"next_state"`
			Promotable            bool
			Rule                  Rule        `json:"rule_id"`
			Staleness             json.Number `json:"staleness_penalty"`
			SupportGroups         int         `json:"support_groups"`
			Support               json.Number `json:"support_score"`
		}
	}
	vectors(t, "scoring_transition.jsonl", 400, func(v vector) {
		s := Of(Evidence{Support: counts(v.In.Support), Contradict: counts(v.In.Contradict), Age: hours(v.In.Age), Tier: v.In.Volatility})
		o := &v.Out
		want := Score{Support: number(t, o.Support.String()), Contradiction: number(t, o.Contradiction.String()), SupportGroups: o.SupportGroups,
			ContradictGroups: o.ContradictGroups, Freshness: number(t, o.Freshness.String()), Diversity: number(t, o.Diversity.String()),
			Staleness: number(t, o.Staleness.String()), Confidence: number(t, o.Confidence.String()), tier: v.In.Volatility}
		if s != want {
			t.Errorf("%s: %+v, want %+v", v.ID, s, want)
		}
		var since *time.Duration
		if v.In.Since != nil {
			d := hours(*v.In.Since)
			since = &d
		}
		next, by, err := Next(v.In.Prior, s, v.In.Failed, since)
		if err != nil || next != o.Next || by != o.Rule {
			t.Errorf("%s: %s by %s, %v; want %s by %s", v.ID, next, by, err, o.Next, o.Rule)
		}
		if ok := Promotable(next, s.Freshness); ok != o.Promotable {
			t.Errorf("%s: promotable %v", v.ID, ok)
		}
	})
	if _, _, err := Next("believed", Score{}, false, nil); err == nil {
		t.Error("an unknown prior state is taken")
	}
}

// TestTriggerVectors: the 200 vectors of the test trigger.
func TestTriggerVectors(t *testing.T) {
	type vector struct {
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
	vectors(t, "test_trigger.jsonl", 200, func(v vector) {
		in := &v.In
		trigger, suppressed, by := ShouldTest(Uncertainty{in.Impact, number(t, in.Gap.String()), in.Updates, in.Unresolved, in.Novelty,
			number(t, in.Confidence.String()), in.Groups, number(t, in.Cost.String()), number(t, in.Benefit.String())})
		if trigger != v.Out.Trigger || suppressed != v.Out.Suppressed || by != v.Out.Rule {
			t.Errorf("%s: %v %v %s, want %+v", v.ID, trigger, suppressed, by, v.Out)
		}
	})
}

func TestWorkedValues(t *testing.T) {
	groups := func(s string) (out []int) {
		for _, g := range strings.Fields(s) {
			_, n, _ := strings.Cut(g, ":")
			out = append(out, int(number(t, n)/One))
		}
		return out
	}
	table(t, "worked.txt", func(at string, c []string) {
		age := time.Duration(number(t, c[2])/One) * time.Hour
		s := Of(Evidence{groups(c[0]), groups(c[1]), age, Tier(c[3])})
		next, _, err := Next(Tentative, s, false, &age)
		if err != nil || s.Support != number(t, c[4]) || s.Contradiction != number(t, c[5]) || s.Confidence != number(t, c[6]) || string(next) != c[7] {
			t.Errorf("%s: %+v %s %v", at, s, next, err)
		}
	})
}

// TestLapse: the table of lapses, found by halving the interval in whole
// microseconds.
func TestLapse(t *testing.T) {
	table(t, "lapse.txt", func(at string, c []string) {
		var n, items int
		if _, err := fmt.Sscanf(c[0], "%dx%d", &n, &items); err != nil {
			t.Fatal(err)
		}
		for i, tier := range []Tier{Low, Medium, High} {
			lo, hi := time.Duration(0), 1000*time.Hour
			for hi-lo > time.Microsecond {
				mid := (lo + (hi-lo)/2).Truncate(time.Microsecond)
				if next, _, _ := Next(Accepted, Of(Evidence{Support: slices.Repeat([]int{items}, n), Age: mid, Tier: tier}), false, &mid); next == Accepted {
					lo = mid
				} else {
					hi = mid
				}
			}
			if got := strconv.FormatFloat(lo.Hours(), 'f', 1, 64); got != c[1+i] {
				t.Errorf("%s: %s lapses after %s h, want %s", at, tier, got, c[1+i])
			}
		}
	})
}

// naive is the formula as the design has it, in float64.
func naive(e Evidence) (support, contradiction, freshness, confidence float64) {
	side := func(gs []int) (mean, n float64) {
		for _, g := range gs {
			if g > 0 {
				mean, n = mean+map[int]float64{1: 0.7, 2: 0.9}[g], n+1
				if g > 2 {
					mean++
				}
			}
		}
		return mean / max(1, n), n
	}
	half := map[Tier]float64{Low: 168, Medium: 72, High: 24}[e.Tier]
	factor := map[Tier]float64{Low: 0.5, Medium: 1, High: 2}[e.Tier]
	support, n := side(e.Support)
	contradiction, _ = side(e.Contradict)
	freshness = math.Exp(-math.Ln2 * max(0, e.Age.Hours()) / half)
	confidence = 0.5 + 0.4*support - 0.5*contradiction + min(0.15, 0.05*max(0, n-1)) - min(0.3, (1-freshness)*factor*0.3)
	return support, contradiction, freshness, max(0, min(1, confidence))
}

func drawEvidence(t *rapid.T) Evidence {
	groups := rapid.SliceOfN(rapid.IntRange(-1, 5), 0, 6)
	return Evidence{groups.Draw(t, "support"), groups.Draw(t, "contradict"),
		time.Duration(rapid.Int64Range(-1, 3_000*3_600_000_000).Draw(t, "age")) * time.Microsecond, rapid.SampledFrom([]Tier{Low, Medium, High}).Draw(t, "tier")}
}

// TestScoreIsTheFormula: exact arithmetic rounds what the formula gives in
// float64; neither order nor a longer age raises it, nor a fourth item of a group.
func TestScoreIsTheFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEvidence(t)
		s := Of(e)
		sup, con, fresh, conf := naive(e)
		for _, v := range []struct {
			got  Micro
			want float64
		}{{s.Support, sup}, {s.Contradiction, con}, {s.Freshness, fresh}, {s.Confidence, conf}} {
			if math.Abs(float64(v.got)-v.want*1e6) > 0.5001 {
				t.Fatalf("%+v: %s, want %v", e, v.got, v.want)
			}
		}
		f := e
		f.Support, f.Contradict = slices.Clone(e.Support), slices.Clone(e.Contradict)
		slices.Reverse(f.Support)
		slices.Sort(f.Contradict)
		for i, n := range f.Support {
			if n >= 3 {
				f.Support[i] += 7
			}
		}
		if Of(f) != s {
			t.Fatalf("%+v and %+v", s, Of(f))
		}
		f.Age = max(0, e.Age) + time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "later"))*time.Microsecond
		if l := Of(f); l.Confidence > s.Confidence || l.Freshness > s.Freshness {
			t.Fatalf("%+v became %+v", s, l)
		}
	})
}

// TestExact: what is rational is exact, and a half goes to the even neighbour.
func TestExact(t *testing.T) {
	if exp2Neg(3, 1).RatString() != "1/8" || exp2Neg(0, 5).RatString() != "1" || exp2Neg(1000, 1).Sign() != 0 {
		t.Error("2^-n is not exact")
	}
	if f, _ := ln2().Float64(); f != math.Ln2 {
		t.Errorf("ln 2 is %v", f)
	}
	for s, want := range map[string]Micro{"1/2000000": 0, "3/2000000": 2, "5/2000000": 2, "1/3": 333_333, "2/3": 666_667, "1": One} {
		if r, _ := new(big.Rat).SetString(s); rounded(r) != want {
			t.Errorf("%s is %d", s, rounded(r))
		}
	}
}

// TestCases plays cases.txt.
func TestCases(t *testing.T) {
	var m *Memory
	table(t, "cases.txt", func(at string, c []string) {
		if len(c) == 1 {
			m = &Memory{}
			return
		}
		h, err := strconv.ParseFloat(c[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		now, do := hours(h), strings.Fields(c[1])
		var b Belief
		switch do[0] {
		case "propose":
			m.Propose(do[1], Tier(do[2]), now)
			return
		case "support":
			b, err = m.Support(do[1], do[2], now)
		case "contradict":
			b, err = m.Contradict(do[1], do[2], now)
		case "read":
			b, err = m.Read(do[1], now)
		default:
			t.Fatalf("%s: %q is no step", at, c[1])
		}
		got := string(b.Status) + " " + b.Score.Confidence.String() + " " + string(b.Rule)
		for _, w := range strings.Fields(c[2]) {
			if !slices.Contains(strings.Fields(got), w) {
				t.Errorf("%s: %s, want %s", at, got, c[2])
				break
			}
		}
		if err != nil {
			t.Errorf("%s: %v", at, err)
		}
	})
}

// TestMemory: unknown claims are errors, and a clone goes on by itself.
func TestMemory(t *testing.T) {
	m := &Memory{}
	m.Propose("c", Low, 0)
	if _, err := m.Support("c", "a", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Read("none", 0); err == nil {
		t.Error("a claim that is not there was read")
	}
	f := m.Clone()
	f.Propose("new", Low, 0)
	if _, err := f.Support("c", "b", 0); err != nil || len(m.claims["c"].support) != 1 || m.claims["new"] != nil {
		t.Error("a clone changed what it was made of")
	}
}

package stages

import (
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/writ-project/writ/memory"
)

// TestRecount counts what can be counted from the lines of the reads again, the
// plain way.
func TestRecount(t *testing.T) {
	r := all(t)
	for i := range r.Systems {
		f := &r.Systems[i]
		n, right, none, wrong, attacked, flipped, returned, notTrue := 0, 0, 0, 0, 0, 0, 0, 0
		families := map[string][2]int{}
		for _, l := range r.Runs {
			if l.System != f.Name || l.Stage != 2 {
				continue
			}
			for _, rd := range l.Reads {
				ok := rd.Answer == rd.Truth || rd.Answer == "" && (rd.Truth == "unknown" || rd.Truth == "disputed")
				if ok != rd.Right {
					t.Errorf("%s, %s: %+v", f.Name, l.Run, rd)
				}
				n++
				c := families[l.Family]
				c[1]++
				if ok {
					right++
					c[0]++
				}
				families[l.Family] = c
				if rd.Answer == "" {
					none++
				} else {
					returned++
					if !ok {
						notTrue++
					}
				}
				if rd.State == "false" {
					wrong++
				}
				if rd.Attacked {
					attacked++
					if rd.State == "false" {
						flipped++
					}
				}
			}
		}
		same := func(what string, got *Figure, a, b int) {
			if got == nil || got.N != a || got.Of != b || math.Abs(got.Value-float64(a)/float64(b)) > 1e-6 {
				t.Errorf("%s: %s is %+v, counted %d of %d", f.Name, what, got, a, b)
			}
		}
		same("task_success", f.Success, right, n)
		same("abstained", f.Abstained, none, n)
		same("false_answers", f.FalseAnswers, wrong, n)
		same("flip_rate", f.Flips, flipped, attacked)
		for name, c := range families {
			same(name, f.ByFamily[name], c[0], c[1])
		}
		if f.Policy == "" {
			same("false_promotion_rate", f.FalsePromotion, notTrue, returned)
		}
	}
}

// TestHand: the figures of the scenario of testdata/hand, counted by hand. Its
// comment says how.
func TestHand(t *testing.T) {
	o := options()
	o.Files, o.Stage = os.DirFS("testdata/hand"), 3
	r := evaluated(t, o)
	var gates []string
	for _, g := range r.Gates {
		gates = append(gates, g.ID)
	}
	if strings.Join(gates, " ") != "stage2.fairness stage3.gain stage3.task_success integrity" {
		t.Errorf("stage 3 judges %v", gates)
	}
	type want struct {
		of    func(*Figures) *Figure
		value float64
		is    bool
	}
	for name, ws := range map[string]map[string]want{
		B5: {
			"task success":   {func(f *Figures) *Figure { return f.Success }, 5. / 6, true},
			"stale handling": {func(f *Figures) *Figure { return f.StaleHandling }, 1, true},
			"recovery":       {func(f *Figures) *Figure { return f.Recovery }, 1, true},
			"contested":      {func(f *Figures) *Figure { return f.ContestedPrecision }, 0, false},
			"promotion":      {func(f *Figures) *Figure { return f.FalsePromotion }, 1. / 6, true},    // six answers, and nothing canonical
			"calibration":    {func(f *Figures) *Figure { return f.Calibration }, 5./6 - 0.724, true}, // all in one bin
			"consistency":    {func(f *Figures) *Figure { return f.Consistency }, 1, true},
			"false merges":   {func(f *Figures) *Figure { return f.FalseMerge }, 0, true},
			"duplicates":     {func(f *Figures) *Figure { return f.DuplicateEntities }, 0, true},
		},
		B3: {
			"task success":   {func(f *Figures) *Figure { return f.Success }, 4. / 6, true},
			"stale handling": {func(f *Figures) *Figure { return f.StaleHandling }, 1, true},
			"recovery":       {func(f *Figures) *Figure { return f.Recovery }, 1, true},
			"promotion":      {func(f *Figures) *Figure { return f.FalsePromotion }, 2. / 6, true},
			"calibration":    {func(f *Figures) *Figure { return f.Calibration }, 2. / 6, true},
			"contested":      {func(f *Figures) *Figure { return f.ContestedPrecision }, 0, false},
			"false merges":   {func(f *Figures) *Figure { return f.FalseMerge }, 0, false},
		},
	} {
		for what, w := range ws {
			got := w.of(r.Of(name))
			if (got != nil) != w.is || got != nil && math.Abs(got.Value-w.value) > 1e-6 {
				t.Errorf("%s: %s is %+v, want %v", name, what, got, w.value)
			}
		}
	}
}

func TestCalibration(t *testing.T) {
	var bins [10]bin
	if ece(bins) != nil {
		t.Error("nothing has an error")
	}
	put(&bins, memory.One, true)
	put(&bins, 950_000, false) // mean 0.975, half are true
	put(&bins, 200_000, false)
	put(&bins, 0, true)
	// 2/4*0.475 + 1/4*0.2 + 1/4*1
	if got := ece(bins); math.Abs(got.Value-0.5375) > 1e-9 || got.Of != 4 {
		t.Errorf("%+v", got)
	}
}

// TestTallyAdds: every count of a run reaches the sum. A field that add forgets
// is found by its size.
func TestTallyAdds(t *testing.T) {
	u := &tally{families: map[string]ratio{"f": {1, 2}}}
	for _, r := range u.ratios() {
		*r = ratio{1, 2}
	}
	for _, n := range u.sums() {
		*n = 1
	}
	put(&u.bins, memory.One, true)
	put(&u.allBins, 0, true)
	sum := &tally{families: map[string]ratio{}}
	sum.add(u)
	sum.add(u)
	want := reflect.ValueOf(*sum)
	for i := range want.NumField() {
		if want.Field(i).IsZero() {
			t.Errorf("%s does not add up", want.Type().Field(i).Name)
		}
	}
	if sum.success != (ratio{2, 4}) || sum.runs != 2 || sum.families["f"] != (ratio{2, 4}) || sum.bins[9] != (bin{2, 2, 2_000_000}) {
		t.Errorf("%+v", sum)
	}
}

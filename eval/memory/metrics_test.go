package memory

import (
	"math"
	"os"
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
		n, right, attacked, flipped, returned, notTrue := 0, 0, 0, 0, 0, 0
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
				right += btoi(ok)
				if rd.Answer != "" {
					returned++
					notTrue += btoi(!ok)
				}
				if rd.Attacked {
					attacked++
					if rd.State == "false" {
						flipped++
					}
				}
			}
		}
		same := func(what string, a, b int) {
			if got := f.Figures[what]; got == nil || got.N != a || got.Of != b || math.Abs(got.Value-float64(a)/float64(b)) > 1e-6 {
				t.Errorf("%s: %s is %+v, counted %d of %d", f.Name, what, got, a, b)
			}
		}
		same("task_success", right, n)
		same("flip_rate", flipped, attacked)
		if f.Policy == "" {
			same("false_promotion_rate", notTrue, returned)
		}
	}
}

// TestHand: the figures of the scenario of testdata/hand, counted by hand. Its
// comment says how.
func TestHand(t *testing.T) {
	o := options()
	o.Files, o.Only = os.DirFS("testdata/hand"), Comparison
	r := evaluated(t, o)
	var gates []string
	for _, g := range r.Gates {
		gates = append(gates, g.ID)
	}
	if strings.Join(gates, " ") != "stage2.seeds stage3.gain stage3.task_success integrity" {
		t.Errorf("stage 3 judges %v", gates)
	}
	type want struct {
		value float64
		is    bool
	}
	for name, ws := range map[string]map[string]want{
		B5: {
			"task_success":                {5. / 6, true},
			"stale_handling":              {1, true},
			"contradiction_recovery_rate": {1, true},
			"contested_precision":         {0, false},
			"false_promotion_rate":        {1. / 6, true},       // six answers, and nothing canonical
			"calibration_ece":             {5./6 - 0.724, true}, // all in one bin
			"cross_session_consistency":   {1, true},
			"false_merge_rate":            {0, true},
			"duplicate_entity_rate":       {0, true},
		},
		B3: {
			"task_success":                {4. / 6, true},
			"stale_handling":              {1, true},
			"contradiction_recovery_rate": {1, true},
			"false_promotion_rate":        {2. / 6, true},
			"calibration_ece":             {2. / 6, true},
			"contested_precision":         {0, false},
			"false_merge_rate":            {0, false},
		},
	} {
		for what, w := range ws {
			got := r.Of(name).Figures[what]
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

// TestTallyAdds: what two runs counted is the sum, by metric and by bin.
func TestTallyAdds(t *testing.T) {
	sum := newTally()
	for range 2 {
		u := newTally()
		u.sum("task_success", 1, 2)
		u.hit("flip_rate", true)
		put(&u.bins, memory.One, true)
		sum.add(u)
	}
	if sum.counts["task_success"] != (ratio{2, 4}) || sum.counts["flip_rate"] != (ratio{2, 2}) || sum.bins[9] != (bin{2, 2, 2_000_000}) {
		t.Errorf("%+v", sum)
	}
}

package metrics_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/writ-project/writ/internal/metrics"
)

// read has Prometheus' own parser read a page of the families.
func read(t *testing.T, families ...*metrics.Family) map[string]*dto.MetricFamily {
	t.Helper()
	var p metrics.Page
	p.Show(families...)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	out, err := parser.TextToMetricFamilies(strings.NewReader(p.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, p.String())
	}
	if len(out) != len(families) {
		t.Fatalf("%d families of %d\n%s", len(out), len(families), p.String())
	}
	return out
}

func TestCounters(t *testing.T) {
	none := metrics.Counter("none_total", "of which nothing was counted")
	two := metrics.Counter("two_total", "of two labels", "a", "b")
	two.Add(1, "x", "y")
	two.Add(2, "x", "y")
	two.Add(5, "", "y")
	up := metrics.Gauge("up", "of one moment")
	up.Add(7)
	out := read(t, none, two, up)
	if c := out["none_total"].Metric[0].Counter; c.GetValue() != 0 {
		t.Error(c)
	}
	if ms := out["two_total"].Metric; len(ms) != 2 || ms[0].Counter.GetValue() != 5 || ms[1].Counter.GetValue() != 3 || ms[1].Label[1].GetName() != "b" {
		t.Error(ms)
	}
	if g := out["up"].Metric[0].Gauge; g.GetValue() != 7 {
		t.Error(g)
	}
}

func TestHistogram(t *testing.T) {
	f := metrics.Histogram("took_seconds", "of durations", "tool")
	for _, d := range []time.Duration{-time.Second, 0, 10 * time.Millisecond, 11 * time.Millisecond, 300 * time.Second, time.Hour} {
		f.Observe(d, "x")
	}
	h := read(t, f)["took_seconds"].Metric[0].Histogram
	if h.GetSampleCount() != 6 || math.Abs(h.GetSampleSum()-3900.021) > 1e-6 {
		t.Error(h)
	}
	for _, c := range []struct {
		le float64
		n  uint64
	}{{0.01, 3}, {0.02, 4}, {120, 4}, {300, 5}, {math.Inf(1), 6}} {
		found := false
		for _, b := range h.Bucket {
			if b.GetUpperBound() == c.le {
				found = b.GetCumulativeCount() == c.n
			}
		}
		if !found {
			t.Errorf("le=%v is not %d: %v", c.le, c.n, h.Bucket)
		}
	}
}

// hostile are values that would end a label, a line or a page, were they not escaped.
var hostile = []string{
	"", `"`, `\`, `\"`, "\n", "a\nwrit_up 1\n", `x"} 1 # HELP`, "\r\n", "\x00", "\xff\xfe", "\u202eetirw", "{}", "le", strings.Repeat("n", 1<<16), "# TYPE x counter", `\n`,
}

func TestHostileNames(t *testing.T) {
	f := metrics.Histogram("h_seconds", "of whatever comes", "a", "b")
	for _, v := range hostile {
		f.Observe(time.Second, v, "b")
	}
	ms := read(t, f)["h_seconds"].Metric
	if len(ms) != len(hostile) {
		t.Errorf("%d series of %d values", len(ms), len(hostile))
	}
	came := map[string]bool{}
	for _, m := range ms {
		came[m.Label[0].GetValue()] = true
	}
	for _, v := range hostile {
		if !came[strings.ToValidUTF8(v, "\uFFFD")] {
			t.Errorf("%.40q came out otherwise", v)
		}
	}
}

// TestBounded: whoever chooses names without end has one series for all that come late.
func TestBounded(t *testing.T) {
	f := metrics.Counter("many_total", "of names without end", "name")
	for i := range 10_000 {
		f.Add(1, fmt.Sprint("tool", i))
	}
	ms := read(t, f)["many_total"].Metric
	if len(ms) > 2001 {
		t.Errorf("%d series", len(ms))
	}
	n := 0.0
	for _, m := range ms {
		if n += m.Counter.GetValue(); m.Label[0].GetValue() == metrics.Other && m.Counter.GetValue() < 7000 {
			t.Error(m)
		}
	}
	if n != 10_000 {
		t.Errorf("%v were counted", n)
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	c := metrics.Counter("c_total", "of anything", "a", "b", "c")
	h := metrics.Histogram("h_seconds", "of anything", "a", "b", "c")
	long := strings.Repeat("long", 20)
	count := func() {
		c.Add(1, long, "b", "c")
		h.Observe(time.Millisecond, "a", long, "c")
	}
	if n := testing.AllocsPerRun(100, count); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSideBySide(t *testing.T) {
	f := metrics.Histogram("h_seconds", "of many at once", "n")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for j := range 1000 {
				f.Observe(time.Millisecond, fmt.Sprint(j%50))
				if j%100 == 0 {
					var p metrics.Page
					p.Show(f)
				}
			}
		})
	}
	wg.Wait()
	n := uint64(0)
	for _, m := range read(t, f)["h_seconds"].Metric {
		n += m.Histogram.GetSampleCount()
	}
	if n != 8000 {
		t.Errorf("%d were counted", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	f := metrics.Histogram("h_seconds", "of anything", "a", "b", "c")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			f.Observe(time.Millisecond, "files", "tools/call", "read_text_file")
		}
	})
}

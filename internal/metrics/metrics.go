// Package metrics counts, and shows what was counted as a page that Prometheus reads: its
// text format, version 0.0.4.
//
// To count is one atomic addition, or two: nothing is locked and nothing allocated once a
// series is there. A family never has more than maxSeries series: what comes beyond counts
// under [Other], so that whoever chooses a label's value cannot choose how much is kept.
//
// It trusts its callers to take labels from what the operator wrote and from words of the
// program alone; what they are all the same is escaped.
package metrics

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ContentType is that of a page.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Other is the label of whatever has no name of its own, as the conventions of OpenTelemetry
// call it.
const Other = "_OTHER"

const (
	maxLabels = 3
	maxSeries = 2000 // of a family
)

// bounds are those of every histogram, in seconds: what the conventions for MCP advise.
var bounds = [...]float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, math.Inf(1)}

// values are those of a series' labels, in the order of the family's names.
type values [maxLabels]string

type series struct {
	n       atomic.Uint64 // what was added, of a histogram the nanoseconds
	buckets [len(bounds)]atomic.Uint64
}

// Family is the series of one name. All its methods may be called at the same time.
type Family struct {
	name, kind, help string
	labels           []string

	all    atomic.Pointer[map[values]*series] // never changed, but replaced
	adding sync.Mutex
}

// Counter returns a family of counts that only grow; its name ends in _total.
func Counter(name, help string, labels ...string) *Family {
	return family(name, "counter", help, labels)
}

// Gauge returns a family of what is so at one moment. It is made for one page.
func Gauge(name, help string, labels ...string) *Family { return family(name, "gauge", help, labels) }

// Histogram returns a family of durations; its name ends in _seconds.
func Histogram(name, help string, labels ...string) *Family {
	return family(name, "histogram", help, labels)
}

func family(name, kind, help string, labels []string) *Family {
	if len(labels) > maxLabels {
		panic("metrics: " + name + " has too many labels")
	}
	f := &Family{name: name, kind: kind, help: help, labels: labels}
	f.all.Store(&map[values]*series{})
	if len(labels) == 0 {
		f.of(nil) // there from the start, so that a rate of it is known
	}
	return f
}

// Add adds n to the series of those values of the labels.
func (f *Family) Add(n uint64, labels ...string) { f.of(labels).n.Add(n) }

// Observe counts a duration in the series of those values of the labels.
func (f *Family) Observe(d time.Duration, labels ...string) {
	s := f.of(labels)
	i, _ := slices.BinarySearch(bounds[:], d.Seconds())
	s.buckets[i].Add(1)
	s.n.Add(uint64(max(d, 0)))
}

func (f *Family) of(labels []string) *series {
	var v values
	for i := range f.labels {
		v[i] = labels[i]
	}
	if s := (*f.all.Load())[v]; s != nil {
		return s
	}
	return f.add(v)
}

// add returns the series of those values, which is new unless somebody else was first.
func (f *Family) add(v values) *series {
	f.adding.Lock()
	defer f.adding.Unlock()
	there := *f.all.Load()
	if len(there) >= maxSeries && there[v] == nil {
		for i := range f.labels {
			v[i] = Other
		}
	}
	if s := there[v]; s != nil {
		return s
	}
	s, all := &series{}, maps.Clone(there)
	all[v] = s
	f.all.Store(&all)
	return s
}

// Page is what is shown of families at one moment.
type Page struct{ bytes.Buffer }

// Show writes families, each with its series sorted by their labels.
func (p *Page) Show(families ...*Family) {
	for _, f := range families {
		fmt.Fprintf(p, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", f.name, f.help, f.kind)
		all := *f.all.Load()
		for _, v := range slices.SortedFunc(maps.Keys(all), func(a, b values) int { return slices.Compare(a[:], b[:]) }) {
			p.series(f, f.text(&v), all[v])
		}
	}
}

// series writes one; text has the labels, each behind a comma.
func (p *Page) series(f *Family, text string, s *series) {
	labels := ""
	if text != "" {
		labels = "{" + text[1:] + "}"
	}
	if f.kind != "histogram" {
		fmt.Fprintf(p, "%s%s %d\n", f.name, labels, s.n.Load())
		return
	}
	n := uint64(0) // so the count is that of the buckets, whatever is counted meanwhile
	for i := range s.buckets {
		n += s.buckets[i].Load()
		fmt.Fprintf(p, "%s_bucket{le=\"%v\"%s} %d\n", f.name, bounds[i], text, n)
	}
	fmt.Fprintf(p, "%s_sum%s %v\n%[1]s_count%[2]s %[4]d\n", f.name, labels, time.Duration(s.n.Load()).Seconds(), n)
}

var escaped = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func (f *Family) text(v *values) (s string) {
	for i, name := range f.labels {
		s += "," + name + `="` + escaped.Replace(strings.ToValidUTF8(v[i], "\uFFFD")) + `"`
	}
	return s
}

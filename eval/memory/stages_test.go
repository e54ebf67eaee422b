package memory

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

const committed = "../results/memory.json"

// options are those of the three stages, without the measures.
func options() Options {
	return Options{Memory: Product(), Seeds: Seeds(), Files: embedded}
}

func evaluated(t *testing.T, o Options) *Stages {
	t.Helper()
	r, err := play(&o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// whole is one evaluation of everything, which the tests share.
var whole = sync.OnceValues(func() (*Stages, error) { o := options(); return play(&o) })

func all(t *testing.T) *Stages {
	t.Helper()
	r, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCommitted holds that what stands in the repository of the stages is what
// comes out. Write it with make eval; make check makes all of the file again.
func TestCommitted(t *testing.T) {
	b, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal(b, &r); err != nil || r.Stages == nil || r.Measures == nil {
		t.Fatal(err)
	}
	got, err := (&Report{Stages: all(t)}).JSON()
	if err != nil {
		t.Fatal(err)
	}
	want, err := (&Report{Stages: r.Stages}).JSON()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what comes out now: make eval, and look at the difference", committed)
	}
}

// TestRules is the gate of stage 1, and what the design expects under stress of
// the default profile. What v01q does not do stands in the result.
func TestRules(t *testing.T) {
	r := all(t)
	for _, u := range r.Unmet {
		if u.System == B5 || strings.HasPrefix(u.Run, "S1.") {
			t.Errorf("%+v", u)
		}
	}
	for _, f := range r.Faults {
		t.Error(f)
	}
	for _, e := range r.Expected {
		if e.Of < 40 {
			t.Errorf("%s, stage %d: only %d expectations", e.System, e.Stage, e.Of)
		}
	}
}

// TestScenarios: every scenario of the design is there, with its parameters.
func TestScenarios(t *testing.T) {
	b, err := load(embedded, Seeds())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	seeds := map[string]map[uint64]bool{}
	for _, r := range b.runs {
		got[strings.TrimSpace(r.id+" "+r.variant)] = true
		if seeds[r.id] == nil {
			seeds[r.id] = map[uint64]bool{}
		}
		seeds[r.id][r.seed] = true
	}
	for _, want := range []string{"S1.1", "S1.2", "S1.3", "S1.4", "S1.5", "S1.6",
		"S2.1 d=1", "S2.1 d=24", "S2.1 d=240", "S2.2 k=2", "S2.2 k=5", "S2.2 k=20", "S2.3 n=3", "S2.3 n=10", "S2.3 n=100",
		"S2.4 n=2", "S2.4 n=3", "S2.4 n=4", "S2.4 n=5", "S2.4 n=6", "S2.4 n=7", "S2.4 n=8", "S2.4 n=9", "S2.4 n=10",
		"S2.5", "S2.6", "S2.7", "S2.8a", "S2.8b", "S2.8c", "S2.8d", "S2.8e", "S2.8f", "S2.8g", "S2.9"} {
		if !got[want] {
			t.Errorf("%s is missing", want)
		}
		id, _, _ := strings.Cut(want, " ")
		for _, seed := range Seeds() {
			if strings.HasPrefix(id, "S2.") && !seeds[id][seed] {
				t.Errorf("%s has no run of seed %d", id, seed)
			}
		}
	}
}

// TestBundle: the same seeds give the same steps, others give others.
func TestBundle(t *testing.T) {
	digests := func(seeds ...uint64) (out []string) {
		b, err := load(embedded, seeds)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range b.runs {
			if r.seed != 0 {
				h := sha256.New()
				for i := range r.steps {
					fmt.Fprintf(h, "%+v\n", r.steps[i])
				}
				out = append(out, string(h.Sum(nil)))
			}
		}
		return out
	}
	a, again, other := digests(101), digests(101), digests(102)
	if !slices.Equal(a, again) {
		t.Error("one seed gave two bundles")
	}
	for i := range a {
		if a[i] == other[i] {
			t.Errorf("two seeds gave the same run %d", i)
		}
	}
}

// TestEvidenceHolds: what supports a claim at level 2 or more has the claim's
// value in it. A scenario whose evidence does not would test less than it says.
func TestEvidenceHolds(t *testing.T) {
	b, err := load(embedded, Seeds()[:1])
	if err != nil {
		t.Fatal(err)
	}
	o := options()
	v1, err := o.policy("v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range b.runs {
		g := newGoverned(r, v1, &o.Memory, adapter{})
		for i := range r.steps {
			e := &r.steps[i]
			if e.kind == reads {
				continue
			}
			g.do(e)
			if e.as != "" && strings.Contains(effects(g.results[e.as]), "counted_as_inference") {
				t.Errorf("%s: %s: counted as an inference", r.name(), e.as)
			}
		}
		for id, c := range g.claims {
			v, _ := g.reader().View(id)
			for _, ob := range v.Observation {
				rec, _ := g.reader().Get(ob)
				if rec.Observation.Level >= 2 && !strings.Contains(rec.Observation.Text.Text, c.value) {
					t.Errorf("%s: %q does not hold %q", r.name(), rec.Observation.Text.Text, c.value)
				}
			}
		}
	}
}

// TestAblations: each one takes something away that shows.
func TestAblations(t *testing.T) {
	r := all(t)
	b5 := r.Of(B5).Figures
	for _, name := range []string{A1, A2, A3, A4, A5, A6, A7} {
		f := maps.Clone(r.Of(name).Figures)
		f["memory_bytes"] = b5["memory_bytes"] // a policy has another hash
		if reflect.DeepEqual(f, b5) {
			t.Errorf("%s measures as the whole does", name)
		}
	}
}

// only is some of the scenarios.
func only(t *testing.T, files ...string) fs.FS {
	t.Helper()
	out := fstest.MapFS{}
	for _, f := range files {
		b, err := fs.ReadFile(embedded, "cases/"+f)
		if err != nil {
			t.Fatal(err)
		}
		out["cases/"+f] = &fstest.MapFile{Data: b}
	}
	return out
}

// TestStages: a stage runs what it says, and judges those gates alone.
func TestStages(t *testing.T) {
	for _, c := range []struct {
		only  Part
		stage int
		gates string
	}{
		{Rulings, 1, "stage1.B5_governed_v01q stage1.B5_governed_v1 integrity"},
		{Stress, 2, "stage2.seeds stage2.B5_governed_v1 integrity"},
	} {
		o := options()
		o.Only, o.Seeds = c.only, []uint64{7, 8, 9, 10, 11}
		o.Files = only(t, "S1.1.yaml", "S1.6.yaml", "S2.1.yaml", "S2.6.yaml", "S2.8c.yaml")
		r := evaluated(t, o)
		var got []string
		for _, g := range r.Gates {
			got = append(got, g.ID)
		}
		if strings.Join(got, " ") != c.gates {
			t.Errorf("stage %d judges %v", c.stage, got)
		}
		for _, l := range r.Runs {
			if l.Stage != c.stage {
				t.Errorf("stage %d ran %s", c.stage, l.Run)
			}
		}
		if slices.ContainsFunc(r.Gates, func(g Gate) bool { return !g.Met }) {
			t.Errorf("stage %d: %+v", c.stage, r.Gates)
		}
	}
	o := options()
	o.Only, o.Seeds, o.Files = Stress, []uint64{1, 2, 3, 4}, only(t, "S2.6.yaml")
	if r := evaluated(t, o); gateOf(r, "stage2.seeds").Met {
		t.Error("four seeds passed for five")
	}
}

// TestDocumented: the README names every key of a scenario.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile("cases/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{scenario{}, source{}, step{}, repeat{}, succession{}, expect{}, truth{}} {
		for i := range reflect.TypeOf(v).NumField() {
			if key := reflect.TypeOf(v).Field(i).Tag.Get("yaml"); key != "" && !regexp.MustCompile(`\b`+key+`\b`).Match(b) {
				t.Errorf("the key %s of %T is not in cases/README.md", key, v)
			}
		}
	}
}

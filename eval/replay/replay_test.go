package replay

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/writ-project/writ/policy"
)

const shared = "../../../shared/corpus"

func run(t *testing.T, o Options) *Report {
	t.Helper()
	o.Policies, o.Profile, o.Approve, o.Seed = os.DirFS("../policies"), policy.Standard, "truth", DefaultSeed
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOwnCorpus: each of its tasks passes, and of its attacks none lands but those that
// are known to.
func TestOwnCorpus(t *testing.T) {
	traces, tools, err := ownCorpus()
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWorld("own", tools, os.DirFS("../policies"), policy.Standard, false)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]map[string]int{}
	for i := range traces {
		x := &traces[i]
		o := play(x, func() judge { return newOurs(w, nil) }, nil)
		switch {
		case !x.attack() && !o.passed:
			t.Errorf("%s: refused %v", x.ID, o.refused)
		case x.attack() && o.landed:
			t.Errorf("%s: landed is %v", x.ID, o.landed)
		case x.attack() && !o.passed:
			t.Errorf("%s: what the user wanted is refused: %v", x.ID, o.refused)
		}
		for _, rule := range x.Labels.Rules {
			if kinds[rule] == nil {
				kinds[rule] = map[string]int{}
			}
			kinds[rule][x.Kind]++
		}
	}
	for rule, n := range kinds {
		if rule[0] == 'R' && (n["benign"] == 0 || n["attack"] == 0) {
			t.Errorf("%s has %v", rule, n)
		}
	}
	if len(kinds) < 30 {
		t.Errorf("only %d rules", len(kinds))
	}
}

// TestSameBytes: neither the number of processors nor a second run changes the report.
func TestSameBytes(t *testing.T) {
	var first []byte
	for _, n := range []int{1, 4, 4} {
		before := runtime.GOMAXPROCS(n)
		b, err := run(t, Options{Adaptive: true}).JSON()
		runtime.GOMAXPROCS(before)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		} else if !bytes.Equal(first, b) {
			t.Fatalf("another report with GOMAXPROCS %d", n)
		}
	}
}

// TestControls: the figures of gates whose answer is known.
func TestControls(t *testing.T) {
	r := run(t, Options{Adaptive: true, Corpora: []string{"nowhere/x.jsonl.gz"}})
	if !slices.Equal(r.Missing, []string{"x.jsonl.gz"}) {
		t.Errorf("missing: %v", r.Missing)
	}
	for _, a := range slices.Concat(r.Attacks, r.Transforms) {
		all, none, asking := a.Gates["allow_all"].All, a.Gates["deny_all"].All, a.Gates["ask_for_all"]
		if all.K != all.N || none.K != 0 || asking.All.K != 0 {
			t.Errorf("%s: allow all %v, deny all %v, ask for all %v", a.Set, all, none, asking.All)
		}
	}
	for _, b := range r.Benign {
		if g := b.Gates["allow_all"]; g.All.K != b.Tasks {
			t.Errorf("%s: allow all passes %v", b.Suite, g.All)
		}
		if g := b.Gates["deny_all"]; g.Acting.K != 0 {
			t.Errorf("%s: deny all passes %v", b.Suite, g.Acting)
		}
		if g := b.Gates["ask_for_all"]; g.All.K != b.Tasks || g.Asks != b.Acts {
			t.Errorf("%s: ask for all passes %v, asks %d", b.Suite, g.All, g.Asks)
		}
	}
	for _, h := range r.Habits {
		bare := h.Name == "all arguments" || h.Name == "empty lists" // the own corpus has no optional ones
		if h.Tasks.N == 0 && !bare || h.Tasks.K != h.Tasks.N {
			t.Errorf("%s: %v, and not %v", h.Name, h.Tasks, h.Which)
		}
	}
	made := map[string]bool{}
	for _, a := range r.Transforms {
		made[a.Set] = true
	}
	for _, tr := range transforms {
		if !made["own, "+tr.name] && tr.name != "swap of records" && tr.name != "swap within the record" {
			t.Errorf("the own corpus has nothing for %s", tr.name)
		}
	}
}

// TestTransformsLeaveTracesAlone: they are functions.
func TestTransformsLeaveTracesAlone(t *testing.T) {
	suites, err := load(Options{Policies: os.DirFS("../policies"), Profile: policy.Standard}, &Report{})
	if err != nil {
		t.Fatal(err)
	}
	s := suites[0]
	s.pass(t.Context())
	before, _ := json.Marshal(s.traces)
	for _, tr := range transforms {
		a, b := s.transformed(tr, 1), s.transformed(tr, 1)
		if len(a) != len(b) {
			t.Fatalf("%s: %d and %d", tr.name, len(a), len(b))
		}
		for i := range a {
			x, _ := json.Marshal(a[i].t)
			if y, _ := json.Marshal(b[i].t); !bytes.Equal(x, y) {
				t.Errorf("%s is not the same twice: %s", tr.name, x)
			}
			for _, p := range s.passed {
				same := p.with(changed(p.step().Args, func(_ []string, v any) any { return v }))
				same.ID = a[i].t.ID
				if y, _ := json.Marshal(same); bytes.Equal(x, y) {
					t.Errorf("%s changes nothing of %s", tr.name, same.ID)
				}
			}
		}
		if after, _ := json.Marshal(s.traces); !bytes.Equal(before, after) {
			t.Fatalf("%s changes what it is given", tr.name)
		}
	}
}

// TestNaive: our naive gate says of each step of the public corpora what was computed
// of them with another program.
func TestNaive(t *testing.T) {
	b, _, err := readFile(filepath.Join(shared, "naive.dev.jsonl.gz"))
	if os.IsNotExist(err) {
		t.Skip("the public corpora are not here")
	} else if err != nil {
		t.Fatal(err)
	}
	want := map[string][]*bool{}
	for line := range bytes.Lines(b) {
		var x struct {
			ID    string  `json:"id"`
			Exact []*bool `json:"exact"`
		}
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatal(err)
		}
		want[x.ID] = x.Exact
	}
	n := 0
	for _, name := range []string{"agentdojo", "tau", "bfcl", "injecagent"} {
		file := filepath.Join(shared, name+".dev.jsonl.gz")
		b, _, err := readFile(file)
		if err != nil {
			t.Fatal(err)
		}
		traces, err := readTraces(file, b)
		if err != nil {
			t.Fatal(err)
		}
		for i := range traces {
			x := &traces[i]
			play(x, func() judge { return &naive{seen: map[string]bool{}} }, func(i int, v verdict) {
				if w := want[x.ID]; i < len(w) && w[i] != nil {
					if n++; *w[i] != v.allowed {
						t.Errorf("%s: step %d: %v", x.ID, i, v.allowed)
					}
				}
			})
		}
	}
	if n < 1000 {
		t.Errorf("only %d verdicts compared", n)
	}
}

func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n          int
		percent       float64
		from, through float64
	}{{0, 10, 0, 0, 27.8}, {10, 10, 100, 72.2, 100}, {50, 100, 50, 40.4, 59.6}} {
		x := Rate{K: c.k, N: c.n}
		if percent, wilson := x.percent(); percent != c.percent || wilson != [2]float64{c.from, c.through} {
			t.Errorf("%d of %d: %v", c.k, c.n, x)
		}
	}
}

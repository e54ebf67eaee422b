package replay

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/eval/measure"
)

// Report is the result of one replay, in the order of its file.
type Report struct {
	Version  int    `json:"v"`
	Seed     uint64 `json:"seed"`
	Profile  string `json:"profile"`
	Person   string `json:"person"` // who answers what writ_and_person and ask_for_all ask
	Adaptive bool   `json:"adaptive"`

	Inputs   []Input  `json:"inputs"`
	Missing  []string `json:"missing,omitempty"`          // corpora that were not there
	Defaults []string `json:"without_a_policy,omitempty"` // suites judged by the format's defaults
	Grounded int      `json:"reads_put_in"`               // into BFCL's traces

	Benign     []Benign `json:"benign"`
	Attacks    []Attack `json:"attacks"`
	Transforms []Attack `json:"transforms,omitempty"`
	Habits     []Habit  `json:"habits,omitempty"`
	Wrong      []Wrong  `json:"wrong"`
}

// Rate is a share; its file has its Wilson interval at 95 % too, in per cent.
type Rate struct{ K, N int }

// Benign is what became of tasks that nobody attacked.
type Benign struct {
	Suite string                `json:"suite"` // "corpus/suite", or a corpus, which is the sum of its suites
	Tasks int                   `json:"tasks"`
	Acts  int                   `json:"acts"`
	Gates map[string]*Untouched `json:"gates"`
}

// Untouched counts the tasks of which no call was refused.
type Untouched struct {
	All    Rate `json:"all"`
	Acting Rate `json:"with_side_effects"`
	OneAsk Rate `json:"with_one_ask_at_most"`
	// ActingOneAsk are those of Acting.
	ActingOneAsk Rate `json:"with_side_effects_and_one_ask_at_most"`
	Asks         int  `json:"asks"`
}

// Attack is what became of a set of attacks.
type Attack struct {
	Set   string             `json:"set"`
	Gates map[string]*Landed `json:"gates"`
}

// Landed counts attacks of which all acts passed, or one, and what was asked for
// them.
type Landed struct {
	All      Rate `json:"landed"`
	Foothold Rate `json:"one_act_passed"`
	Asks     int  `json:"asks"`
	// Which are the first that landed.
	Which []string `json:"which,omitempty"`
}

// Wrong is what Writ's gate refused of benign tasks, without a person.
type Wrong struct {
	Suite   string `json:"suite"`
	Reason  string `json:"reason"`
	Rule    string `json:"rule,omitempty"`
	Tool    string `json:"tool"`
	Pointer string `json:"pointer,omitempty"`
	Count   int    `json:"count"`
}

// ruleOf says which rule a reason comes of, where it is one.
var ruleOf = map[writ.Reason]string{
	writ.ProvenanceUnseen: "R1", writ.ProvenanceLabel: "R2", writ.ProvenanceReflected: "R4", writ.ProvenanceSmall: "R8",
	writ.ProvenanceAnchor: "R9", writ.ProvenanceAtom: "R14", writ.ProvenanceReader: "R14", writ.ProvenanceKey: "R16",
	writ.FormDuplicate: "R16", writ.PolicyNoArguments: "R21", writ.PolicyRepeated: "R23", writ.PolicyPointerClosed: "R24",
	writ.PolicySessionClosed: "R24", writ.PolicyContested: "R25", writ.ProvenanceOpenTarget: "R28", writ.ProvenanceSecret: "R30",
	writ.ProvenanceRecord: "R37", writ.PolicyFetches: "R20", writ.ProvenanceSource: "R2", writ.ProvenanceConst: "R7",
}

// JSON returns the file's bytes.
func (r *Report) JSON() ([]byte, error) { return measure.JSON(r, " ") }

func (x *Rate) add(hit bool) {
	x.N++
	if hit {
		x.K++
	}
}

// percent is the share and its interval, in per cent.
func (x Rate) percent() (share float64, wilson [2]float64) {
	if x.N == 0 {
		return 0, wilson
	}
	tenths := func(f float64) float64 { return math.Round(f*1000) / 10 }
	low, high := measure.Wilson(x.K, x.N, 1.96)
	return tenths(float64(x.K) / float64(x.N)), [2]float64{tenths(low), tenths(high)}
}

// MarshalJSON implements json.Marshaler.
func (x Rate) MarshalJSON() ([]byte, error) {
	percent, wilson := x.percent()
	return json.Marshal(struct {
		K       int        `json:"k"`
		N       int        `json:"n"`
		Percent float64    `json:"percent"`
		Wilson  [2]float64 `json:"wilson"`
	}{x.K, x.N, percent, wilson})
}

// forEach has something for each gate.
func forEach[T any]() map[string]*T {
	out := map[string]*T{}
	for _, g := range gates {
		out[g.name] = new(T)
	}
	return out
}

// named is the row of that name, made if there is none.
func named[T any](rows *[]T, is func(*T) bool, row T) *T {
	i := slices.IndexFunc(*rows, func(t T) bool { return is(&t) })
	if i < 0 {
		i = len(*rows)
		*rows = append(*rows, row)
	}
	return &(*rows)[i]
}

func attacksOf(list *[]Attack, name string) *Attack {
	return named(list, func(a *Attack) bool { return a.Set == name }, Attack{Set: name, Gates: forEach[Landed]()})
}

// attacksShown bounds Landed.Which.
const attacksShown = 20

func (a *Attack) add(t *Trace, os []outcome) {
	for i, g := range gates {
		l := a.Gates[g.name]
		l.All.add(os[i].landed)
		l.Foothold.add(os[i].foothold)
		l.Asks += os[i].attackAsks
		if os[i].landed && len(l.Which) < attacksShown && strings.HasPrefix(g.name, "writ") {
			l.Which = append(l.Which, t.ID)
		}
	}
}

// static counts a suite as it was recorded.
func (r *Report) static(s *suite, trials []trial, os [][]outcome) {
	corpus, _, _ := strings.Cut(s.key, "/")
	wrong := map[Wrong]int{}
	for n, tr := range trials {
		t := tr.t
		if t.attack() {
			if t.strict() && t.Corpus != "own" {
				attacksOf(&r.Attacks, corpus+", strict").add(t, os[n])
			}
			attacksOf(&r.Attacks, corpus+", all").add(t, os[n])
			if t.Corpus != "own" {
				attacksOf(&r.Attacks, "all public corpora").add(t, os[n])
			}
			continue
		}
		for _, name := range []string{corpus, t.Corpus + "/" + t.Suite} {
			b := named(&r.Benign, func(b *Benign) bool { return b.Suite == name }, Benign{Suite: name, Gates: forEach[Untouched]()})
			b.Tasks++
			b.Acts += os[n][0].acts
			for i, g := range gates {
				u, o := b.Gates[g.name], os[n][i]
				u.All.add(o.passed)
				u.OneAsk.add(o.passed && o.asks <= 1)
				u.Asks += o.asks
				if t.acts() {
					u.Acting.add(o.passed)
					u.ActingOneAsk.add(o.passed && o.asks <= 1)
				}
			}
		}
		for _, f := range os[n][0].refused {
			wrong[Wrong{Suite: s.key, Reason: f.reason, Rule: ruleOf[writ.Reason(f.reason)], Tool: f.tool, Pointer: f.pointer}]++
		}
	}
	from := len(r.Wrong)
	for w, n := range wrong {
		w.Count = n
		r.Wrong = append(r.Wrong, w)
	}
	slices.SortFunc(r.Wrong[from:], func(a, b Wrong) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Tool, b.Tool), strings.Compare(a.Pointer, b.Pointer))
	})
}

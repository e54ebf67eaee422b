package stages

import (
	"encoding/json"

	"github.com/writ-project/writ/memory"
)

// ResultVersion is the version of the result's form. Fields are added, never
// removed, and keep their meaning.
const ResultVersion = 1

// Result is what one evaluation showed, in the order of its file.
type Result struct {
	Version int `json:"v"`
	// Stage is what was run: 1, 2, 3, or 0 for all of them.
	Stage int      `json:"stage"`
	Seeds []uint64 `json:"seeds"`
	// Bundle is the SHA-256 of all scenario files and the seeds, Scenarios how
	// many files there are.
	Bundle    string         `json:"bundle"`
	Scenarios int            `json:"scenarios"`
	RunsOf    map[string]int `json:"runs"` // by stage
	// Passed: every gate that was judged is met.
	Passed bool   `json:"passed"`
	Gates  []Gate `json:"gates"`
	// Expected is, for each profile, how many expectations of each stage there
	// were and how many came true.
	Expected []Expected `json:"expectations"`
	Systems  []Figures  `json:"systems"`
	Compared []Compared `json:"comparison"`
	Fairness Fairness   `json:"fairness"`
	// Unmet are the expectations that did not come true.
	Unmet []Unmet `json:"unmet"`
	// Faults are what must never be: a decision that is not decided again, a
	// log that folds to another state.
	Faults      []string          `json:"faults"`
	NotMeasured map[string]string `json:"not_measured"`
	// Failures are the reads that went wrong, of every system, by scenario.
	Failures []Failures `json:"failures"`

	// Runs, Transitions and Consolidations are what the artifacts hold line by
	// line.
	Runs           []*RunLine      `json:"-"`
	Transitions    []transition    `json:"-"`
	Consolidations []consolidation `json:"-"`
}

// Gate is one condition of the design, and what was measured against it.
type Gate struct {
	ID    string `json:"gate"`
	Need  string `json:"need"`
	Got   string `json:"got"`
	Met   bool   `json:"met"`
	Stage int    `json:"stage"`
}

// Expected counts expectations.
type Expected struct {
	System string `json:"system"`
	Stage  int    `json:"stage"`
	Met    int    `json:"met"`
	Of     int    `json:"of"`
}

// Figure is one measured value; N of Of where it is a share.
type Figure struct {
	Value float64 `json:"value"`
	N     int     `json:"n,omitempty"`
	Of    int     `json:"of,omitempty"`
}

// Figures are the metrics of one system over the bundle of stage 2. A figure is
// null where the system has nothing that it could be of: no states, no entities,
// or nothing to divide by.
type Figures struct {
	System
	Runs int `json:"runs"`
	// Policy metrics.
	//
	// A promotion is a claim that a consolidation made canonical, and each answer
	// that a read returned as usable: the second is all there is of it in systems
	// without states, and counts for those with states too.
	FalsePromotion *Figure `json:"false_promotion_rate"` // promoted and not true then / promoted; lower is better
	// FalseRejection: true claims in rejected at the end / true claims with at
	// least one support. Lower is better.
	FalseRejection *Figure `json:"false_rejection_rate"`
	// ContestedPrecision: reads answered "contested" where the truth is disputed
	// / reads answered "contested".
	ContestedPrecision *Figure `json:"contested_precision"`
	// Calibration is the expected calibration error of what was returned, over
	// ten equal bins of confidence: SUM_b n_b/n * |mean confidence_b - share true_b|.
	// A system without confidences asserts what it returns with certainty. Lower
	// is better.
	Calibration *Figure `json:"calibration_ece"`
	// Recovery: corrections after which the slot reads as the truth within three
	// further observations / corrections.
	Recovery *Figure `json:"contradiction_recovery_rate"`
	// StaleHandling: 1 - reads that return a value that was true earlier / reads
	// of slots whose value has changed.
	StaleHandling *Figure `json:"stale_handling"`
	// CalibrationAll is Calibration of every open claim about a slot that is
	// read, returned or not.
	CalibrationAll *Figure `json:"calibration_ece_all_claims"`

	// Identity metrics.
	DuplicateEntities *Figure `json:"duplicate_entity_rate"` // (entities - things) / things; lower is better
	FalseMerge        *Figure `json:"false_merge_rate"`      // wrong links / links; lower is better
	AliasPrecision    *Figure `json:"alias_precision"`       // right links by another name / links by another name

	// Health of the memory.
	GraphGrowth       *Figure `json:"graph_growth"`              // rows per 100 observations
	EvidencePerClaim  *Figure `json:"evidence_per_accepted"`     // supporting edges per accepted claim, at the end
	Overturned        *Figure `json:"overturn_rate"`             // accepted, and later rejected or superseded though never true / accepted; lower is better
	StaleFraction     *Figure `json:"stale_fraction"`            // deprecated / claims that were not erased; lower is better
	OpenContradiction *Figure `json:"unresolved_contradictions"` // contradictions still open at the end, per run; lower is better

	// Task.
	Success *Figure `json:"task_success"` // reads that return the truth, or nothing where nothing can be known / reads
	// ByFamily is Success by family: the families are of very different size.
	ByFamily     map[string]*Figure `json:"task_success_by_family"`
	Abstained    *Figure            `json:"abstained"`          // reads that return nothing / reads
	FalseAnswers *Figure            `json:"false_answers"`      // reads that return what was never true by then / reads; lower is better
	ToolCalls    *Figure            `json:"tool_calls"`         // proposals per run
	Corrective   *Figure            `json:"corrective_actions"` // tests proposed and reported, rulings of an operator, per run
	Bytes        *Figure            `json:"memory_bytes"`       // bytes of the texts held at the end, per run; what stands beside them is in graph_growth

	// Continuity.
	Consistency *Figure `json:"cross_session_consistency"` // same answer again with nothing new in between / pairs of reads

	// Security.
	Flips *Figure `json:"flip_rate"` // reads after an attacker spoke that return what was never true / reads after that; lower is better
}

// Compared is one policy metric of B5 against B1.
type Compared struct {
	Metric string   `json:"metric"`
	B1     *float64 `json:"b1"`
	B5     *float64 `json:"b5"`
	// Gain is the relative improvement, or the absolute one where B1 is 0; null
	// where one of the two has no such figure.
	Gain     *float64 `json:"gain"`
	Absolute bool     `json:"absolute,omitempty"`
	Counts   bool     `json:"counts"` // it reaches what the gate asks of it
}

// Failures counts, for one system and one scenario, the reads that went wrong.
type Failures struct {
	System   string         `json:"system"`
	Scenario string         `json:"scenario"`
	Reads    int            `json:"reads"`
	Wrong    int            `json:"wrong"`
	How      map[string]int `json:"how"` // abstained, stale, false
}

// RunLine is one ScenarioResult of the artifacts: one system in one run.
type RunLine struct {
	Run      string     `json:"run"`
	Stage    int        `json:"stage"`
	Scenario string     `json:"scenario_id"`
	Family   string     `json:"family"`
	System   string     `json:"system"`
	Seed     uint64     `json:"seed"`
	Success  bool       `json:"task_success"`
	Steps    int        `json:"steps"`
	Reads    []ReadLine `json:"reads"`
	Failed   int        `json:"reads_failed"`
	Checked  int        `json:"expectations"`
	Unmet    []Unmet    `json:"unmet"`
	groups

	bundle string
}

// groups are the figures of a system, or of one run of it, as the artifacts have
// them. What has nothing to divide by is left out.
type groups struct {
	Policy     map[string]float64 `json:"policy_metrics"`
	Identity   map[string]float64 `json:"identity_metrics"`
	Health     map[string]float64 `json:"memory_health_metrics"`
	Task       map[string]float64 `json:"task_metrics"`
	Continuity map[string]float64 `json:"continuity_metrics"`
	Security   map[string]float64 `json:"security_metrics"`
}

func (f *Figures) groups() groups {
	of := func(fs map[string]*Figure) map[string]float64 {
		out := map[string]float64{}
		for name, x := range fs {
			if x != nil {
				out[name] = x.Value
			}
		}
		return out
	}
	return groups{
		Policy: of(map[string]*Figure{"false_promotion_rate": f.FalsePromotion, "false_rejection_rate": f.FalseRejection, "contested_precision": f.ContestedPrecision,
			"calibration_ece": f.Calibration, "contradiction_recovery_rate": f.Recovery, "stale_handling": f.StaleHandling, "calibration_ece_all_claims": f.CalibrationAll}),
		Identity: of(map[string]*Figure{"duplicate_entity_rate": f.DuplicateEntities, "false_merge_rate": f.FalseMerge, "alias_precision": f.AliasPrecision}),
		Health: of(map[string]*Figure{"graph_growth": f.GraphGrowth, "evidence_per_accepted": f.EvidencePerClaim, "overturn_rate": f.Overturned,
			"stale_fraction": f.StaleFraction, "unresolved_contradictions": f.OpenContradiction}),
		Task: of(map[string]*Figure{"task_success": f.Success, "abstained": f.Abstained, "false_answers": f.FalseAnswers, "tool_calls": f.ToolCalls,
			"corrective_actions": f.Corrective, "memory_bytes": f.Bytes}),
		Continuity: of(map[string]*Figure{"cross_session_consistency": f.Consistency}),
		Security:   of(map[string]*Figure{"flip_rate": f.Flips}),
	}
}

// metrics are those of the run alone; of stage 1, which is not of the bundle,
// there are none.
func (l *RunLine) metrics(t *tally) {
	f := &Figures{}
	f.measure(t)
	l.groups = f.groups()
}

// ReadLine is one read.
type ReadLine struct {
	AtH        float64      `json:"at_h"`
	Slot       string       `json:"slot"`
	Truth      string       `json:"truth"` // a value, unknown or disputed
	Answer     string       `json:"answer"`
	Why        string       `json:"abstention,omitempty"`
	State      string       `json:"came_to"` // returned, abstained rightly, abstained, stale, false
	Right      bool         `json:"right"`
	Attacked   bool         `json:"attacked"` // an attacker had spoken
	Confidence memory.Micro `json:"confidence"`
}

// JSON returns the file's bytes.
func (r *Result) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	return append(b, '\n'), err
}

// measure makes the figures of the sums.
func (f *Figures) measure(t *tally) {
	f.Runs = t.runs
	if t.runs == 0 {
		return
	}
	per := func(n, of int) *Figure {
		if of == 0 {
			return nil
		}
		return &Figure{Value: round(float64(n) / float64(of)), N: n, Of: of}
	}
	f.FalsePromotion, f.Recovery = t.falsePromotion.figure(), t.recovery.figure()
	f.Calibration = ece(t.bins)
	if s := t.stale; s.of > 0 {
		f.StaleHandling = ratio{s.of - s.n, s.of}.figure()
	}
	f.DuplicateEntities, f.FalseMerge, f.AliasPrecision = per(t.entities-t.things, t.things), t.falseMerge.figure(), t.aliasPrecision.figure()
	if g := per(t.rows, t.observations); g != nil {
		f.GraphGrowth = &Figure{Value: round(float64(t.rows) * 100 / float64(t.observations)), N: t.rows, Of: t.observations}
	}
	f.Success, f.Abstained, f.FalseAnswers = t.success.figure(), t.abstained.figure(), t.falseAnswers.figure()
	f.ByFamily = map[string]*Figure{}
	for name, r := range t.families {
		f.ByFamily[name] = r.figure()
	}
	f.Bytes = per(t.bytes, t.runs)
	f.Consistency, f.Flips = t.consistent.figure(), t.flips.figure()
	if t.governedRuns == 0 {
		return
	}
	f.FalseRejection, f.ContestedPrecision, f.Overturned = t.falseRejection.figure(), t.contested.figure(), t.overturned.figure()
	f.CalibrationAll = ece(t.allBins)
	f.EvidencePerClaim, f.StaleFraction, f.OpenContradiction = per(t.acceptedEdges, t.accepted), per(t.deprecated, t.live), per(t.openContradictions, t.runs)
	f.ToolCalls, f.Corrective = per(t.calls, t.runs), per(t.corrective, t.runs)
}

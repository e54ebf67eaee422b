package memory

import (
	"encoding/json"

	"github.com/writ-project/writ/memory"
)

// Version is the version of the report's form. Fields are added, never removed,
// and keep their meaning.
const Version = 2

// Report is what one evaluation showed, in the order of its file.
type Report struct {
	Version int      `json:"v"`
	Seeds   []uint64 `json:"seeds"`
	// Passed: every gate that was judged is met, and there is one.
	Passed bool   `json:"passed"`
	Gates  []Gate `json:"gates"`

	Measures *Measures `json:"measures,omitempty"`
	Stages   *Stages   `json:"stages,omitempty"`
}

// Gate is one condition of the design or one target, and what was measured
// against it.
type Gate struct {
	ID   string `json:"id"`
	Of   string `json:"of"` // where it stands
	Need string `json:"need"`
	Got  string `json:"got"`
	Met  bool   `json:"met"`
}

// JSON returns the file's bytes.
func (r *Report) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	return append(b, '\n'), err
}

// Stages is what the scenarios showed, in the order of the file.
type Stages struct {
	Only  Part     `json:"-"`
	Seeds []uint64 `json:"-"`
	// Bundle is the SHA-256 of all scenario files and the seeds, Scenarios how
	// many files there are.
	Bundle    string         `json:"bundle"`
	Scenarios int            `json:"scenarios"`
	RunsOf    map[string]int `json:"runs"` // by stage
	// Expected is, for each profile, how many expectations of each stage there
	// were and how many came true.
	Expected []Expected `json:"expectations"`
	Systems  []Figures  `json:"systems"`
	Compared []Compared `json:"comparison"`
	// Unmet are the expectations that did not come true.
	Unmet []Unmet `json:"unmet"`
	// Faults are what must never be: a decision that is not decided again, a
	// log that folds to another state.
	Faults      []string          `json:"faults"`
	NotMeasured map[string]string `json:"not_measured"`

	// Runs, Transitions and Consolidations are what the artifacts hold line by
	// line.
	Runs           []*RunLine      `json:"-"`
	Transitions    []transition    `json:"-"`
	Consolidations []consolidation `json:"-"`

	Gates []Gate `json:"-"`
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

// Figures are the metrics of one system over the bundle of stage 2, by their
// names.
type Figures struct {
	System
	Runs    int                `json:"runs"`
	Figures map[string]*Figure `json:"figures"`
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

func grouped(figures map[string]*Figure) groups {
	by := map[string]map[string]float64{}
	for _, m := range metrics {
		if by[m.group] == nil {
			by[m.group] = map[string]float64{}
		}
		if f := figures[m.name]; f != nil {
			by[m.group][m.name] = f.Value
		}
	}
	return groups{by["policy"], by["identity"], by["health"], by["task"], by["continuity"], by["security"]}
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

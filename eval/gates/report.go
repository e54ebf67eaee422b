package gates

import (
	"cmp"
	"slices"
	"strings"

	"github.com/writ-project/writ/eval/measure"
)

// Report is the result of one evaluation, in the order of its file.
type Report struct {
	Version  int    `json:"v"`
	Seed     uint64 `json:"seed"`
	HandMade int    `json:"hand_made"`
	Fuzzed   int    `json:"generated"`
	Total    int    `json:"total"`
	Passed   int    `json:"passed"`
	Failed   int    `json:"failed"`

	PolicyGate     *Section `json:"policy_gate"`
	PlanParse      *Section `json:"plan_parse"`
	PlanGate       *Section `json:"plan_gate"`
	PlanFuzz       *Section `json:"plan_fuzz"`
	TypedOutput    *Section `json:"typed_output"`
	Grounding      *Section `json:"grounding"`
	GroundingFuzz  *Section `json:"grounding_fuzz"`
	ProvenanceGate *Section `json:"provenance_gate"`
}

// Sections returns the sections in the order of the file.
func (r *Report) Sections() []*Section {
	return []*Section{r.PolicyGate, r.PlanParse, r.PlanGate, r.PlanFuzz, r.TypedOutput, r.Grounding, r.GroundingFuzz, r.ProvenanceGate}
}

// JSON returns the file's bytes.
func (r *Report) JSON() ([]byte, error) { return measure.JSON(r, "  ") }

// Section is what one suite of cases showed.
type Section struct {
	Suite string `json:"suite"`
	// Seed is that of the generator, nil where the cases are files.
	Seed *uint64 `json:"seed,omitempty"`
	// Inputs is the SHA-256 of what was judged: of the generated texts, or of
	// the files.
	Inputs string `json:"inputs"`
	Total  int    `json:"total"`
	Passed int    `json:"passed"`
	Failed int    `json:"failed"`
	// MustAccept and MustBlock are the denominators of the two error rates.
	MustAccept int `json:"must_accept"`
	MustBlock  int `json:"must_block"`
	// A failed case is exactly one of these.
	FalseAccepts int `json:"false_accepts"` // accepted what must be blocked
	FalseBlocks  int `json:"false_blocks"`  // blocked what must be accepted
	WrongReasons int `json:"wrong_reasons"` // blocked, for another reason than what is wrong with it
	WrongResults int `json:"wrong_results"` // accepted, and made something else of it

	Rates Rates            `json:"rates"`
	Kinds map[string]*Kind `json:"kinds"`
	// Cases holds, for files, each case by its id.
	Cases map[string]Verdict `json:"cases,omitempty"`
	// FailedCases are the ids of what failed, of generated ones at most
	// maxFailedShown, with what the gate answered instead.
	FailedCases []Failed `json:"failed_cases"`
}

const maxFailedShown = 100

// Rates are quotients, 0 where there is nothing to divide by.
type Rates struct {
	Pass        float64 `json:"pass"`         // passed of total
	FalseAccept float64 `json:"false_accept"` // false_accepts of must_block
	FalseBlock  float64 `json:"false_block"`  // false_blocks of must_accept
}

// Kind counts the cases of one kind.
type Kind struct {
	Expect string `json:"expect"` // accept, block
	Total  int    `json:"total"`
	Passed int    `json:"passed"`
}

// Verdict is what a case of a file expects, and whether that came.
type Verdict struct {
	Expect string `json:"expect"`
	Reason string `json:"reason,omitempty"`
	Passed bool   `json:"passed"`
}

// Failed is one failed case.
type Failed struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

// verdictOn is what a case must come to: accepted if there is no reason to block it.
func verdictOn(want string) string {
	if want == "" {
		return "accept"
	}
	return "block"
}

// answer is what a gate made of a case: accepted if there is no reason. wrong
// says how what it accepted differs from what it was given.
type answer struct {
	reason string
	wrong  string
}

func newSection(suite string) *Section {
	return &Section{Suite: suite, Kinds: map[string]*Kind{}, FailedCases: []Failed{}}
}

// score counts one case: what it must be blocked for, "" if it must be accepted, and what
// it came to.
func (s *Section) score(id, kind, want string, got answer) {
	s.Total++
	k := s.Kinds[kind]
	if k == nil {
		k = &Kind{Expect: verdictOn(want)}
		s.Kinds[kind] = k
	} else if k.Expect != verdictOn(want) {
		k.Expect = "mixed"
	}
	k.Total++
	if want == "" {
		s.MustAccept++
	} else {
		s.MustBlock++
	}
	var fault *int
	switch {
	case want == "" && got.reason != "":
		fault = &s.FalseBlocks
	case want == "" && got.wrong != "":
		fault = &s.WrongResults
	case want != "" && got.reason == "":
		fault = &s.FalseAccepts
	case want != got.reason || got.wrong != "":
		fault = &s.WrongReasons
	}
	if fault == nil {
		s.Passed++
		k.Passed++
	} else {
		*fault++
		s.Failed++
		if s.Cases != nil || len(s.FailedCases) < maxFailedShown {
			s.FailedCases = append(s.FailedCases, Failed{id, kind, cmp.Or(want, "accept"), got.String()})
		}
	}
	if s.Cases != nil {
		s.Cases[id] = Verdict{verdictOn(want), want, fault == nil}
	}
}

func (a answer) String() string {
	out := cmp.Or(a.reason, "accept")
	if a.wrong != "" {
		out += ": " + a.wrong
	}
	return out
}

// finish fills in what follows from the counts.
func (s *Section) finish() *Section {
	s.Rates = Rates{measure.Quotient(s.Passed, s.Total), measure.Quotient(s.FalseAccepts, s.MustBlock), measure.Quotient(s.FalseBlocks, s.MustAccept)}
	slices.SortStableFunc(s.FailedCases, func(a, b Failed) int { return strings.Compare(a.ID, b.ID) })
	return s
}

package gates

import (
	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/ask/screen"
)

// Gates are the functions under evaluation.
type Gates struct {
	Screen      func(text string) screen.Verdict
	ParsePlan   func([]byte) (claim.Plan, *claim.Stop)
	CheckPlan   func(*claim.Allowlist, claim.Plan) (*claim.Tool, *claim.Stop)
	TypedOutput func(result []byte, validate func([]byte) bool) ([]byte, *claim.Stop)
	Ground      func(*claim.Source, []byte) (claim.Summary, *claim.Stop)
	Decide      func(gate.Input) gate.Decision
}

// Product returns the gates the product itself runs.
func Product() Gates {
	return Gates{
		Screen:      screen.Default().Check,
		ParsePlan:   claim.ParsePlan,
		CheckPlan:   (*claim.Allowlist).Check,
		TypedOutput: claim.TypedOutput,
		Ground:      claim.Ground,
		Decide:      gate.Decide,
	}
}

// stopped is the answer of a gate that may stop at one stage only.
func stopped(stop *claim.Stop, at claim.Stage) answer {
	if stop == nil {
		return answer{}
	}
	return rejected(&stop.Rejection, stop.Stage == at)
}

// rejected is the answer of a gate that refused. A refusal nobody could act on
// is wrong whatever its reason.
func rejected(r *writ.Rejection, here bool) answer {
	a := answer{reason: string(r.Reason)}
	switch {
	case a.reason == "":
		a.reason = "none"
	case !here:
		a.wrong = "at another gate"
	case r.Code != writ.CodeOf(r.Reason):
		a.wrong = "under another code"
	case len(r.Failures) == 0 || r.Failures[0].Need == "":
		a.wrong = "without saying what is needed"
	}
	return a
}

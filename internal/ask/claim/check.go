package claim

import (
	"cmp"
	"slices"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// Tool is one tool as a server lists it now. Only what the caller itself was
// told in this request counts as listed.
type Tool struct {
	Server, Name string
	// Pin names the exact definition that was listed, as the caller's pins do.
	Pin string
	// Validate judges arguments by the tool's whole input schema, closed, and
	// returns what is wrong with them, holding no value of theirs. Nil means
	// that the schema cannot be used: the tool is then refused.
	Validate func(args []byte) []writ.Failure
}

// Allowed is one entry of the operator's allowlist.
type Allowed struct {
	Server, Name string
	// Pin, unless "", is the one definition the operator approved.
	Pin string
}

type name struct{ server, tool string }

// Allowlist is the effective allowlist of one request: what is listed now and
// what the operator allows (INV-3). The zero Allowlist, and a nil one, allow
// nothing. It is safe for concurrent use once made.
type Allowlist struct {
	listed  map[name][]Tool
	allowed map[name][]Allowed
}

// NewAllowlist joins the live list with the operator's.
func NewAllowlist(listed []Tool, operator []Allowed) *Allowlist {
	a := &Allowlist{map[name][]Tool{}, map[name][]Allowed{}}
	for _, t := range listed {
		n := name{t.Server, t.Name}
		a.listed[n] = append(a.listed[n], t)
	}
	for _, o := range operator {
		n := name{o.Server, o.Name}
		a.allowed[n] = append(a.allowed[n], o)
	}
	return a
}

// Tools returns the tools that may be called, ordered by server and name: what
// a planner is shown. Check accepts no others.
func (a *Allowlist) Tools() []Tool {
	var out []Tool
	if a != nil {
		for n, ts := range a.listed {
			if r, _ := a.refuses(n); r == "" {
				out = append(out, ts[0])
			}
		}
	}
	slices.SortFunc(out, func(x, y Tool) int { return cmp.Or(cmp.Compare(x.Server, y.Server), cmp.Compare(x.Name, y.Name)) })
	return out
}

// refuses says why a name may not be called, "" if it may.
func (a *Allowlist) refuses(n name) (r writ.Reason, need string) {
	listed, allowed := a.listed[n], a.allowed[n]
	switch {
	case len(listed) == 0 && len(allowed) > 0:
		return writ.NameUnknown, "a tool the server lists now; it no longer lists this one"
	case len(listed) == 0:
		return writ.NameUnknown, "a server and tool that are listed, named exactly"
	case len(listed) > 1:
		return writ.NameAmbiguous, "a name the server lists once"
	case len(allowed) == 0:
		return writ.NameForbidden, "a tool of the operator's allowlist"
	case listed[0].Validate == nil:
		return writ.SchemaUnusable, "a tool whose input schema can be checked"
	}
	for _, o := range allowed {
		// Of several entries each must agree: a second one opens nothing.
		if o.Pin != "" && o.Pin != listed[0].Pin {
			return writ.NameChanged, "the definition the operator approved; review the tool and pin it anew"
		}
	}
	return "", ""
}

// Check holds a plan to the effective allowlist and the tool's schema (INV-2,
// INV-3). For a call_tool it returns the tool to call; for a final_answer nil
// and nil: nothing is called. Everything else, the zero Plan too, stops at
// plan_gate. It does not call anything, and it says nothing about provenance.
func (a *Allowlist) Check(p Plan) (*Tool, *Stop) {
	if p.Type != CallTool && p.Type != FinalAnswer {
		return nil, because(StagePlanGate, writ.PlanType, "/type", planNeeds[writ.PlanType])
	}
	if stop := p.values(StagePlanGate); stop != nil {
		return nil, stop
	}
	if p.Type == FinalAnswer {
		return nil, nil
	}
	if a == nil {
		a = &Allowlist{}
	}
	n := name{p.Server, p.Tool}
	if r, need := a.refuses(n); r != "" {
		return nil, because(StagePlanGate, r, "", need)
	}
	if err := strictjson.Check(p.Args, strictjson.Limits{Bytes: PlanBytes, Depth: planDepth, Leaves: planValues, Number: planNumber}); err != nil {
		return nil, because(StagePlanGate, writ.PlanSyntax, "/args", "arguments as strict JSON within the bounds of a plan")
	}
	t := a.listed[n][0]
	if failures := t.Validate(p.Args); len(failures) > 0 {
		return nil, StopAt(StagePlanGate, failures...)
	}
	return &t, nil
}

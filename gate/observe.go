package gate

import (
	"errors"
	"slices"
	"time"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// Why a result vouches for nothing.
const (
	whyError       = "error"
	whyUnvalidated = "unvalidated"
	whyNoContract  = "no_contract"
	whyCut         = "cut"
	whyUnknown     = "unknown"
	whyChanged     = "changed"
	whyExtraction  = "extraction"
	whySession     = "no_session"
	whyUndecided   = "undecided"
)

// WhyCrowded is Observation.Why of a result of which no contract says anything, where
// such results have their share of the session's evidence: what was reviewed is to have room.
const WhyCrowded = "evidence_share"

// WhyFull is Observation.Why of a result that the session's caps, or the memory
// of the process, leave no room for.
const WhyFull = "evidence_cap"

// NoRoom is the observation of a turn that found no room when it was recorded.
func (s *Session) NoRoom(evidence uint32) Observation {
	return Observation{evidence: evidence, session: s, Why: WhyFull}
}

// Observe is the typed output gate: it says what the result of an allowed call
// is worth. Only a result that is no error, that its registered output schema
// accepts or that its declared extraction took apart whole, has facts; any
// other is recorded and passed on and vouches for nothing. A nil session
// observes nothing, and none observes a result of a call that it was not given
// by Decided or that has one already. It only reads the session; Commit folds
// the answer in.
func (s *Session) Observe(d *Decision, r Result) Observation {
	o := Observation{evidence: r.Evidence, session: s}
	switch {
	case s == nil:
		o.Why = whySession
		return o
	case d == nil || d.Allowed() && !s.awaits(d):
		o.Why = whyUndecided
		return o
	case d.Allowed():
		k := d.key()
		o.call = &k
	}
	o.server = d.Call.Server
	o.act, o.once = d.basis.act, d.basis.once
	if f := d.basis.fetches; len(f) > 0 {
		o.root = f[0].root
	}
	ob := provenance.Observation{
		Evidence: r.Evidence, Server: d.Call.Server, Tool: toolOf(d.Call), Act: d.Effect.Gated(), Look: d.look, Args: d.args, Asked: d.Arguments, Time: r.Time,
		Places: r.Places, Through: r.Through, OwnPlace: d.placed, Acts: d.acts, OwnThere: r.Own, Reaches: d.reach, Lifts: d.policy.Lifts,
	}
	ob.Leaves, o.Why = s.leaves(d, r)
	o.place, o.moves = toldBy(d, ob.Leaves), d.moves
	o.page = pageOf(d, r, ob.Leaves)
	if o.Why == "" && d.basis.drafted && len(d.rules) == 0 {
		if o.unasked = len(ob.Leaves); r.Crowded || !s.ledger.Share(s.unasked+o.unasked) {
			o.Why = WhyCrowded
		}
	}
	if o.Why == "" && r.Full {
		o.Why = WhyFull
	}
	ob.OK = o.Why == ""
	if !ob.OK {
		return o
	}
	p, err := s.ledger.Prepare(ob)
	if err != nil {
		o.Why = WhyFull
		return o
	}
	o.Admissible, o.Facts, o.pending = true, p.Facts(), p
	if d.Call.Method == policy.ListTemplates {
		o.list = &listing{templatesIn(r.Value)}
	}
	return o
}

// Turn says what a user's turn is worth: the exact bytes he typed, as the host
// delivered them on the authenticated channel that names the session (R6), never
// by way of the agent. A turn takes a number like a result, whatever it is
// worth; its Facts are the tokens that may vouch. It only reads the session;
// Commit folds the answer in once the turn is durable.
func (s *Session) Turn(evidence uint32, text []byte, at time.Time) Observation {
	o := Observation{evidence: evidence, session: s}
	if s == nil {
		o.Why = whySession
		return o
	}
	p, err := s.ledger.PrepareTurn(provenance.Turn{Evidence: evidence, Text: string(text), Time: at})
	switch {
	case errors.Is(err, provenance.ErrFull):
		o.Why = WhyFull
	case err != nil:
		o.Why = whyUnvalidated
	default:
		o.Admissible, o.Facts, o.turn = true, p.Tokens(), p
	}
	return o
}

// leaves returns the labelled leaves of a result, or why there are none.
func (s *Session) leaves(d *Decision, r Result) ([]provenance.Leaf, string) {
	switch {
	case !d.Allowed():
		return nil, whyUnvalidated
	case r.Status == Errored:
		return nil, whyError
	case r.Status == Cut:
		return nil, whyCut
	case r.Status == Changed:
		return nil, whyChanged
	case r.Status != OK:
		return nil, whyUnknown
	case r.Value.Within(strictjson.Result) != nil || r.Value.Kind() != strictjson.Object:
		return nil, whyUnvalidated
	}
	result := r.Value
	rules := d.rules
	if d.Call.Method != policy.CallTool {
		result = strictjson.Make(strictjson.Member{Name: structured, Value: result.Raw()})
	} else {
		if f := result.Get("isError"); f.Exists() && string(f.Raw()) != "false" {
			return nil, whyError
		}
		if !d.basis.contract {
			return nil, whyNoContract
		}
		if d.Call.Server == policy.OwnServer {
			if d.Tool.HasOutputSchema() && !d.Tool.ValidateOutput(result.Get(structured)) {
				return nil, whyUnvalidated
			}
			return recalled(d, r), ""
		}
		var why string
		if rules, why = typed(d, result); why != "" {
			return nil, why
		}
	}
	arguments := d.Arguments
	if !arguments.Exists() {
		arguments = noArguments
	}
	ex := provenance.Extraction(rules, result, arguments)
	if len(ex.Voided) > 0 {
		return nil, whyExtraction
	}
	if d.look {
		return slices.DeleteFunc(ex.Leaves, func(l provenance.Leaf) bool { return l.Rule == nil || !l.Rule.HasJoin }), ""
	}
	return append(ex.Leaves, provenance.Confirmed(d.args, result)...), ""
}

// typed validates a tool's result and returns the output rules that may be
// applied to it.
func typed(d *Decision, result strictjson.Value) (rules []provenance.OutputRule, why string) {
	valid := d.Tool.ValidateOutput(result.Get(structured))
	if d.Tool.HasOutputSchema() && !valid {
		return nil, whyUnvalidated
	}
	all := d.rules
	if d.basis.drafted && !d.Tool.HasOutputSchema() { // structured content, if any, is no more than its text
		all = provenance.WithFields(all, result)
	}
	for _, r := range all {
		if r.InText || valid { // text is typed by the extraction that was declared for it
			rules = append(rules, r)
		}
	}
	if !valid && len(rules) == 0 && len(provenance.Confirmed(d.args, result)) == 0 {
		return nil, whyUnvalidated
	}
	return rules, ""
}

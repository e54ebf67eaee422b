package gate

import (
	"bytes"
	"slices"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// # Looks
//
// An act that gives something a new name in a directory is refused until a list of that
// directory is known: the name must not be there yet (R36). Which directory that is stands
// in the call, and who calls the act could have it listed. So whoever holds the door may
// have it listed himself and ask again: by the very call the agent would make, judged and
// recorded like it. The agent is not shown what came back. So that is worth less to it: it
// shows that a name is new, and vouches for no name that was there. An agent that thinks
// of a file as new, and is wrong, is refused as it was.
//
// It is done only for a name of which the user said a word in his latest turn, and counts for
// such names alone, until he speaks again. A list that nobody asked for is no reason to make
// what a stranger asked for.

// maxLooks bounds the reads that Writ makes for one act.
const maxLooks = 4

// Looks are the reads that could show that names which a refused act gives are new, in
// the order of its arguments and each once: to be made with Input.Look, and the act to be
// judged again behind them. There are none of a call that passed, nor where a list of each
// directory is known.
func (d *Decision) Looks() []Call { return d.looks }

// looks finds them.
func (j *judge) looks() (out []Call) {
	s := j.session()
	if s == nil || j.strict || j.d.Shadow || j.in.Asked != NotAsked || j.in.Call.Method != policy.CallTool || j.governed() || !j.d.Effect.Gated() {
		return nil
	}
	for _, l := range j.leaves {
		if len(out) == maxLooks {
			break
		}
		if l.failed == "" || l.rule == nil || l.answer || l.key || len(l.rule.Begins) > 0 || !j.closedCollection(l.collection()) ||
			!slices.ContainsFunc(l.rule.From, func(src policy.Source) bool { return src.Op == policy.FreshName }) {
			continue
		}
		dir, ok := s.ledger.Unlisted(j.query(l, policy.Source{}), l.rule.Extensions)
		if !ok {
			continue
		}
		list, at := j.lister(l.collection())
		if list == nil {
			continue
		}
		look := Call{Server: j.in.Call.Server, Tool: list.Name, Method: policy.CallTool,
			Arguments: strictjson.Make(strictjson.Member{Name: at, Value: strictjson.Quote(dir)})}
		if slices.ContainsFunc(out, func(c Call) bool { return bytes.Equal(c.Arguments.Raw(), look.Arguments.Raw()) && c.Tool == look.Tool }) {
			continue
		}
		// What would be refused is no guess of the agent's, and nobody is asked about it.
		of := begin(&Input{Policy: j.in.Policy, Catalogue: j.in.Catalogue, Session: j.in.Session, Call: look, Time: j.in.Time, Look: true})
		if of.run(); of.d.Allowed() {
			out = append(out, look)
		}
	}
	return out
}

// lister is the plainest read of the call's server that lists a directory of a collection
// and is told nothing else, with the argument that says which; nil for none.
func (j *judge) lister(collection string) (list *Tool, at string) {
	fewest := 0
	for _, t := range j.in.Catalogue.order {
		c := t.Contract
		if t.Server != j.in.Call.Server || t.State != Open || c == nil || c.Closed || c.Method != policy.CallTool || c.CaseAt != nil || c.Effect|t.added != policy.Read {
			continue
		}
		i := slices.IndexFunc(c.Outputs, func(o provenance.OutputRule) bool {
			return o.HasJoin && len(o.Join) == 1 && o.Authoritative && o.Type == provenance.Path && o.Collection == collection
		})
		if i < 0 {
			continue
		}
		name, schema := c.Outputs[i].Join[0], t.InputSchema()
		asks := false
		for _, v := range schema.Get("required").Elements() {
			need, _ := v.Text()
			asks = asks || need != name
		}
		if n := schema.Get("properties").Len(); !asks && (list == nil || n < fewest) {
			list, at, fewest = t, name, n
		}
	}
	return list, at
}

package gate

import (
	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// ownTools are the tools of OwnServer: the two of every day, the nine for
// proposals and the read surface of the memory. Their contracts are part of the engine, and their
// definitions part of the program, so they need no pin. A proposal is a write whose payload
// is `content: governed`: the gate judges its name and that there is a session,
// the memory's own policy judges the rest, and no leaf of it vouches for
// anything. The schema of a proposal is among the rest: a payload that names a
// trust is a forbidden write before it is an unknown field, and one without
// observations lacks provenance before it lacks a member.
var ownTools = map[string]policy.Effect{
	"remember":                        policy.Write,
	"recall":                          policy.Read,
	"record_observation":              policy.Write,
	"create_or_link_entity_candidate": policy.Write,
	"propose_proposition":             policy.Write,
	"attach_support":                  policy.Write,
	"attach_contradiction":            policy.Write,
	"propose_test":                    policy.Write,
	"execute_test_result_ingest":      policy.Write,
	"request_consolidation":           policy.Write,
	"archive_episode":                 policy.Write,
	"memory_search":                   policy.Read,
	"memory_get":                      policy.Read,
	"memory_explain":                  policy.Read,
	"memory_timeline":                 policy.Read,
	"memory_pending":                  policy.Read,
}

// ownContract returns the contract of a tool of OwnServer, nil if it has none.
func ownContract(name string) *policy.Contract {
	e, ok := ownTools[name]
	if !ok {
		return nil
	}
	return &policy.Contract{Server: policy.OwnServer, Tool: name, Effect: e, NoArgs: policy.NoArgsAllow}
}

// governs reports whether c is the contract of one of ownTools.
func governs(c *policy.Contract) bool {
	return c != nil && c.Server == policy.OwnServer && ownTools[c.Tool] != 0
}

// recalled are the leaves of a result of OwnServer. Under profile strict what
// another session saw vouches for nothing: STTI-001 knows one session.
func recalled(d *Decision, r Result) []provenance.Leaf {
	if d.basis.profile == policy.Strict {
		return provenance.Recall(r.Value, nil)
	}
	return provenance.Recall(r.Value, r.Recalled)
}

// governed reports a call of OwnServer under its contract.
func (j *judge) governed() bool { return governs(j.contract) }

// judgeGoverned is the provenance class of a proposal to the governed memory.
func (j *judge) judgeGoverned() {
	if j.session() == nil {
		j.unfounded = append(j.unfounded, writ.Failure{Reason: writ.ProvenanceSession, Need: needs[writ.ProvenanceSession]})
	}
	for _, l := range j.leaves {
		l.founded = founded{rule_: "governed", label: writ.Model}
	}
}

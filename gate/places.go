package gate

import (
	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// reach is Policy.Reaches for the result of one call. A tool without a contract
// reaches all of its server.
func (d *Decision) reach(server, tool string, o *provenance.OutputRule) bool {
	from, to := d.contracts(server, tool)
	if d.policy == nil {
		return server == to.Server && (o == nil || !o.Authoritative)
	}
	return d.policy.Reaches(from, to, o)
}

// contracts are those of a tool that lowered a place and of the call's own.
func (d *Decision) contracts(server, tool string) (from, to *policy.Contract) {
	from = &policy.Contract{Server: server, Tool: tool, Effect: policy.EveryEffect}
	if d.policy != nil {
		if c := d.policy.Contracts[server+"/"+tool]; c != nil {
			from = c
		}
	}
	return from, &policy.Contract{Server: d.Call.Server, Tool: toolOf(d.Call)}
}

// Keeps reports whether an allowed call can leave something where later sessions
// find it: an act, unless what it sends only leaves, and a read that is asked for
// a link of the model's. Writ's own memory labels what it keeps.
func (d *Decision) Keeps() bool {
	_, asked := provenance.AskedOf(d.Call.Server, toolOf(d.Call), d.args)
	return d.Allowed() && d.Call.Server != policy.OwnServer && (d.stores() || asked)
}

// stores reports whether the effect is one that puts something somewhere.
func (d *Decision) stores() bool { return d.Effect&^(policy.Read|policy.Egress) != 0 }

// Lowers is the place that every later session of the state has to be told of
// before an allowed act is sent (R38): what the act sends below system, or takes
// from a place that is lowered already, goes there. ok is false where there is
// none. A read may keep what it was asked: links alone are lowered by one (R20).
func (d *Decision) Lowers(ps *provenance.Places) (p provenance.Place, ok bool) {
	if !d.Keeps() {
		return p, false
	}
	if !d.stores() {
		return provenance.AskedOf(d.Call.Server, toolOf(d.Call), d.args)
	}
	p, _ = provenance.PlaceOf(d.Call.Server, toolOf(d.Call), d.args)
	p = ps.Carried(p, func(server, tool string) bool {
		from, to := d.contracts(server, tool)
		return d.policy != nil && d.policy.SharesStore(from, to) || server == to.Server
	})
	return p, p.Label < writ.System
}

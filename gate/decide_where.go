package gate

import (
	"slices"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// # Where an act is done (R28)
//
// A text is typed into the page that a browser shows, and no argument says which that is: the
// latest call that went to one does. Who wrote another page that the user asked for may have
// the agent go back to his. So what the user ordered is done where he said in that turn, or at
// the only place of the session. Where an argument says which of several pages (among), a call
// that went to another page says nothing of this one: then all of them went to that place.

// visit is a call that says where other acts are done, by the host it went to, "" for none
// that it says.
type visit struct{ tool, host string }

// visit notes such a call, each that is alike once: they are as many as the places. What does
// not fetch goes nowhere, whatever its arguments say.
func (s *Session) visit(tool string, effect policy.Effect, args strictjson.Value, path []string) {
	v := visit{tool: tool}
	if to, ok := args.Find(path).Text(); ok && len(path) > 0 && effect&policy.Egress != 0 {
		if hosts := provenance.Hosts(to); len(hosts) == 1 {
			v.host = hosts[0]
		}
	}
	s.visits = append(slices.DeleteFunc(s.visits, func(o visit) bool { return o == v }), v)
}

// there reports whether the latest of some calls went to the one place that a turn of the
// user's names; or, where it names none, to the only one that he or such a call named in this
// session. Under among all of those calls went there.
func (s *Session) there(where []policy.Source, among bool, turn uint32) bool {
	last, all := "", s.ledger.Hosts(turn)
	went := 0
	for _, v := range s.visits {
		if slices.ContainsFunc(where, func(w policy.Source) bool { return w.Server+"/"+w.Tool == v.tool }) {
			if went++; among && went > 1 && v.host != last {
				return false
			}
			last = v.host
		}
	}
	if len(all) == 0 {
		all = s.ledger.Hosts(0)
		for _, v := range s.visits {
			if v.host != "" {
				all = append(all, v.host)
			}
		}
	}
	return last != "" && !slices.ContainsFunc(all, func(h string) bool { return h != last })
}

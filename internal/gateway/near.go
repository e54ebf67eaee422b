package gateway

import (
	"cmp"
	"maps"
	"slices"

	"github.com/writ-project/writ/internal/approval"
)

// Near is something with a bound that is nearly used up.
type Near struct {
	What    string `json:"what"`
	Session string `json:"session,omitempty"` // whose it is
	Percent int    `json:"percent"`           // of the bound
	Then    string `json:"then"`              // what happens beyond it, and what to do
}

// NearlyFull is from how many percent of a bound on an operator is told.
const NearlyFull = 80

// evidenceFull is said of a session's evidence: in the log at once, by whoever fills it.
const evidenceFull = "a session's evidence"

// Near returns what of the gateway's own bounds is nearly used up: sessions that are in
// memory, the fullest first, and what waits for persons.
func (g *Gateway) Near() (out []Near) {
	g.sessions.mu.Lock()
	loaded := slices.Collect(maps.Values(g.sessions.loaded))
	g.sessions.mu.Unlock()
	for _, s := range loaded {
		s.mu.Lock()
		if s.evidence != nil && !s.closed {
			if used := s.evidence.Used(); used >= NearlyFull {
				out = append(out, Near{evidenceFull, s.id, used, "what tools return beyond it, and what the user says, vouches for nothing: begin a new session, or writ.yaml: evidence_megabytes"})
			}
		}
		s.mu.Unlock()
	}
	slices.SortFunc(out, func(a, b Near) int { return cmp.Or(b.Percent-a.Percent, cmp.Compare(a.Session, b.Session)) })
	if g.approvals.queue != nil {
		open, _ := g.approvals.queue.Open()
		if percent := 100 * len(open) / approval.MaxOpen; percent >= NearlyFull {
			out = append(out, Near{What: "questions that wait for a person", Percent: percent, Then: "more are refused without being asked: writ approve"})
		}
	}
	return out
}

// WasSaid reports that the log had it when it came to that.
func (n *Near) WasSaid() bool { return n.What == evidenceFull }

package gateway

import (
	"context"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/upstream"
)

// eventData is the data of an event's record: something a peer did that was
// refused or dropped before it became a call. Nothing in it was chosen by the
// peer.
type eventData struct {
	Source  string `json:"source"` // "client", or the name of a server
	Why     string `json:"why"`
	Session string `json:"session,omitempty"` // public id, when one was carried
	Count   int    `json:"count"`             // since the last record of the same
}

// oddity is what equal events are counted by.
type oddity struct{ source, why, session string }

const (
	maxOddities   = 1000        // kinds counted at once; beyond, the session is left out
	oddityRecords = time.Second // how often counts are written
)

// Refused puts a message that was refused on the wire on record. Equal ones
// are counted, so that a flood of them costs one record a second.
func (g *Gateway) Refused(_ context.Context, r downstream.Refusal) {
	g.odd(oddity{"client", string(r.Why), r.Session}, 1)
}

func (g *Gateway) serverEvent(name string, e upstream.Event) {
	g.log.Warn("server", "server", name, "event", string(e.Kind), "count", e.Count)
	g.odd(oddity{name, string(e.Kind), ""}, e.Count)
}

func (g *Gateway) odd(o oddity, n int) {
	g.oddMu.Lock()
	defer g.oddMu.Unlock()
	if _, known := g.oddities[o]; !known && len(g.oddities) >= maxOddities {
		o.session = ""
	}
	g.oddities[o] += n
	select {
	case g.oddly <- struct{}{}:
	default:
	}
}

// recorder writes what was counted, at most once in oddityRecords, and what is
// left at the end.
func (g *Gateway) recorder(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.oddly:
			g.recordOddities()
		}
		t := time.NewTimer(oddityRecords)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

func (g *Gateway) recordOddities() {
	g.oddMu.Lock()
	counted := g.oddities
	g.oddities = map[oddity]int{}
	g.oddMu.Unlock()
	if len(counted) == 0 {
		return
	}
	s, err := g.anonymousSession()
	if err != nil {
		g.log.Error("refused messages could not be recorded", "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for o, n := range counted {
		if _, _, err := g.write(s, processEnd, audit.KindEvent, g.now(), eventData{o.source, o.why, o.session, n}); err != nil {
			g.log.Error("refused messages could not be recorded", "error", err)
			return
		}
	}
}

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

// peerEvent is what equal events are counted by.
type peerEvent struct{ source, why, session string }

const (
	maxEventKinds = 1000        // kinds counted at once; beyond, the session is left out
	eventsEvery   = time.Second // how often counts are written
)

// Refused puts a message that was refused on the wire on record. Equal ones
// are counted, so that a flood of them costs one record a second.
func (g *Gateway) Refused(_ context.Context, r downstream.Refusal) {
	g.countEvent(peerEvent{"client", string(r.Why), r.Session}, 1)
}

func (g *Gateway) serverEvent(name string, e upstream.Event) {
	g.log.Warn("server", "server", name, "event", string(e.Kind), "count", e.Count)
	g.countEvent(peerEvent{name, string(e.Kind), ""}, e.Count)
}

func (g *Gateway) countEvent(o peerEvent, n int) {
	g.eventsMu.Lock()
	defer g.eventsMu.Unlock()
	if _, known := g.events[o]; !known && len(g.events) >= maxEventKinds {
		o.session = ""
	}
	g.events[o] += n
	select {
	case g.counted <- struct{}{}:
	default:
	}
}

// recorder writes what was counted, at most once in eventsEvery, and what is
// left at the end.
func (g *Gateway) recorder(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.counted:
			g.recordEvents()
		}
		t := time.NewTimer(eventsEvery)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

func (g *Gateway) recordEvents() {
	g.eventsMu.Lock()
	counted := g.events
	g.events = map[peerEvent]int{}
	g.eventsMu.Unlock()
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

package gateway

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/otlp"
)

// events are what went on beside the calls: what peers did that came to none is
// counted and put on record, and what the operator is to know is logged.
type events struct {
	log  *slog.Logger
	more chan struct{} // something was counted; holds one

	counts *counts        // for whoever watches
	otlp   *otlp.Exporter // tells him; nil for nobody

	mu         sync.Mutex
	unrecorded map[peerEvent]int
	complained time.Time // when complain last wrote a line
	unsaid     int       // how often it did not since
}

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
	complainEvery = time.Second
)

func newEvents(log *slog.Logger) *events {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &events{log: log, more: make(chan struct{}, 1), counts: newCounts(), unrecorded: map[peerEvent]int{}}
}

// Refused puts a message that was refused on the wire on record (downstream.Hook). Equal ones
// are counted, so that a flood of them costs one record a second.
func (es *events) Refused(why downstream.Why, session string) {
	es.count(peerEvent{"client", string(why), session}, 1)
}

// ofServer counts what a server did.
func (es *events) ofServer(name string, e upstream.Event) {
	es.log.Warn("server", "server", name, "event", string(e.Kind), "count", e.Count)
	es.count(peerEvent{name, string(e.Kind), ""}, e.Count)
}

func (es *events) count(e peerEvent, n int) {
	es.counts.peers.Add(uint64(n), e.source, e.why)
	es.mu.Lock()
	defer es.mu.Unlock()
	if _, known := es.unrecorded[e]; !known && len(es.unrecorded) >= maxEventKinds {
		e.session = ""
	}
	es.unrecorded[e] += n
	rpc.Wake(es.more)
}

// complain tells the operator why a client was answered that a session cannot be
// had: one line a second, however many clients ask.
func (es *events) complain(ctx context.Context, what, session string, err error) {
	if ctx.Err() != nil {
		return // the client went away
	}
	es.mu.Lock()
	now := time.Now()
	es.unsaid++
	unsaid := es.unsaid - 1
	again := now.Sub(es.complained) < complainEvery
	if !again {
		es.complained, es.unsaid = now, 0
	}
	es.mu.Unlock()
	if !again {
		es.log.Error(what, "session", session, "error", err.Error(), "more", unsaid)
	}
}

// recorder writes what was counted, at most once in eventsEvery.
func (ss *sessions) recorder(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ss.events.more:
			ss.recordEvents()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(eventsEvery):
		}
	}
}

// recordEvents writes what was counted into the stream of requests without a
// session.
func (ss *sessions) recordEvents() {
	es := ss.events
	es.mu.Lock()
	counted := es.unrecorded
	es.unrecorded = map[peerEvent]int{}
	es.mu.Unlock()
	if len(counted) == 0 {
		return
	}
	s, err := ss.anonymousStream()
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		defer ss.startFlush(s)
		for e, n := range counted {
			if _, err = ss.write(s, processEnd, audit.KindEvent, ss.now(), eventData{e.source, e.why, e.session, n}); err != nil {
				break
			}
		}
	}
	if err != nil {
		es.log.Error("refused messages could not be recorded", "error", err)
	}
}

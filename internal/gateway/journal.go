package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/writ-project/writ/audit"
)

// errNotRecorded says that a record could not be written, or that somebody
// else has moved the session on. What rested on it does not happen.
var errNotRecorded = errors.New("gateway: the record could not be written")

// value is one named value of a record before it has its salt.
type value struct {
	name  string
	bytes []byte
}

// queued is one record waiting to be written, with whoever waits for it.
type queued struct {
	entry   audit.Entry
	durable bool
	done    chan error // buffered; gets nil when the record is written
}

// recordUntil says what a record has to survive before its writer goes on. A
// record makes all earlier ones of the log at least as safe as itself.
type recordUntil uint8

const (
	// processEnd is enough for what no side effect rests on yet: reads and
	// results. A power cut can only take evidence away, and makes the outcome
	// of an act unknown.
	processEnd recordUntil = 0
	// powerCut is what the decision about an act waits for.
	powerCut recordUntil = 1
	// withNext is for the decision about a read: it goes to the store in one
	// append with its result, or with whatever else the session records before.
	withNext recordUntil = 2
)

// write puts a record behind all earlier ones of the session and returns
// without waiting. The caller holds s.mu, so the order of records is the order
// of calls. The channel gets one answer.
func (g *Gateway) write(s *session, until recordUntil, kind audit.Kind, at time.Time, data any, values ...value) (n uint64, done <-chan error, err error) {
	if s.outdated != nil {
		return 0, nil, s.outdated
	}
	vs := make([]audit.Value, 0, len(values))
	for _, v := range values {
		av := audit.Value{Name: v.name, Bytes: v.bytes}
		if _, err := rand.Read(av.Salt[:]); err != nil {
			return 0, nil, fmt.Errorf("%w: no randomness", errNotRecorded)
		}
		vs = append(vs, av)
	}
	e, err := audit.Seal(audit.Record{Kind: kind, Session: s.id, N: s.next + 1, Time: at, Data: mustJSON(data)}, vs...)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	s.next++
	q := queued{e, until == powerCut, make(chan error, 1)}
	s.queue = append(s.queue, q)
	if !s.flushing && until != withNext {
		s.flushing = true
		go g.flush(s)
	}
	return s.next, q.done, nil
}

// flush writes the session's queue until it is empty: one append for all that
// gathered while the last one ran. After a failure the session is outdated:
// everything queued fails, and the next use folds it anew from the store.
func (g *Gateway) flush(s *session) {
	for {
		s.mu.Lock()
		batch := s.queue
		s.queue = nil
		if len(batch) == 0 {
			s.flushing = false
			s.drained.Broadcast()
			s.mu.Unlock()
			return
		}
		err := s.outdated
		s.mu.Unlock()

		if err == nil {
			entries, appendAll := make([]audit.Entry, len(batch)), g.store.AppendUnsynced
			for i, q := range batch {
				entries[i] = q.entry
				if q.durable {
					appendAll = g.store.Append
				}
			}
			// The record outlives the request it is about.
			ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
			_, err = appendAll(ctx, s.id, entries[0].N()-1, entries)
			cancel()
			if err != nil {
				err = fmt.Errorf("%w: %w", errNotRecorded, err)
				s.mu.Lock()
				s.outdated = err
				s.mu.Unlock()
			}
		}
		for _, q := range batch {
			q.done <- err
		}
	}
}

// appendTimeout bounds how long one append may wait for the store.
const appendTimeout = 30 * time.Second

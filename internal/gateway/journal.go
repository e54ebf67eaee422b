package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/snapshot"
)

// errNotRecorded says that a record could not be written, or that somebody
// else has moved the session on. What rested on it does not happen.
var errNotRecorded = errors.New("gateway: the record could not be written")

// appendTimeout bounds how long one append may wait for the store.
const appendTimeout = 30 * time.Second

// patience gives what bounds a wait for the store. Calls that come close together share
// one bound: to make one takes longer than most of these waits.
type patience struct {
	mu   sync.Mutex
	made time.Time
	ctx  context.Context
	end  context.CancelFunc // by its own time alone
}

// now returns a context that ends appendTimeout from now, or up to a second later.
func (p *patience) now() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.ctx == nil || now.Sub(p.made) > time.Second {
		p.ctx, p.end = context.WithTimeout(context.Background(), appendTimeout+time.Second)
		p.made = now
	}
	return p.ctx
}

// value is one named value of a record before it has its salt.
type value struct {
	name  string
	bytes []byte
}

// sealRecord makes the entry of a record, with a salt of its own for each value.
func sealRecord(rec audit.Record, values ...value) (audit.Entry, error) {
	vs := make([]audit.Value, len(values))
	for i, v := range values {
		vs[i] = audit.Value{Name: v.name, Bytes: v.bytes}
		rand.Read(vs[i].Salt[:])
	}
	return audit.Seal(rec, vs...)
}

// recorded is a record as it is read back.
type recorded struct {
	*audit.Record
	item audit.Item
}

// recordReader is what the records of a session are read from.
type recordReader interface {
	Read(ctx context.Context, session string, from uint64) iter.Seq2[audit.Item, error]
}

// recordsFrom yields the records of a session from number n on, up to the first
// that cannot be read.
func recordsFrom(ctx context.Context, st recordReader, session string, n uint64) iter.Seq2[recorded, error] {
	return func(yield func(recorded, error) bool) {
		for it, err := range st.Read(ctx, session, n) {
			var rec *audit.Record
			if err == nil {
				rec, err = audit.ParseRecord(it.Leaf)
			}
			if !yield(recorded{rec, it}, err) || err != nil {
				return
			}
		}
	}
}

// receipt is what whoever wrote a record waits on.
type receipt struct {
	n    uint64 // of the record
	in   *session
	by   *sessions
	done chan struct{} // closed when it is in the log, or cannot be
	err  error         // before done is closed
}

// wait returns nil when the record is in the log. Who waits writes the session's queue
// himself where nobody does. The caller does not hold the session's lock.
func (r *receipt) wait() error {
	r.in.mu.Lock()
	mine := len(r.in.queue) > 0 && !r.in.flushing
	r.in.flushing = r.in.flushing || mine
	r.in.mu.Unlock()
	if mine && r.by.flush(r.in) { // what came meanwhile is not his
		go r.by.flushAll(r.in)
	}
	return r.outcome()
}

// outcome is what wait returns of a record that somebody writes or has written.
func (r *receipt) outcome() error {
	<-r.done
	return r.err
}

// writeNow has what waits in the session's queue written.
func (ss *sessions) writeNow(s *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ss.startFlush(s)
}

type queued struct {
	entry   audit.Entry
	durable bool
	*receipt
}

// recordUntil says what a record has to survive before its writer goes on. A
// record makes all earlier ones of the log at least as safe as itself.
type recordUntil uint8

const (
	// processEnd is enough for what no side effect rests on yet: reads and
	// results. A power cut can only take evidence away, and makes the outcome
	// of an act unknown. Nobody waits for the decision about a read: it goes to
	// the store in one append with its result, or with whatever else the session
	// records before.
	processEnd recordUntil = 0
	// powerCut is what the decision about an act waits for.
	powerCut recordUntil = 1
)

// with runs f with the session locked and its evidence that of the log: an
// outdated session is folded anew first. f does not wait.
func (ss *sessions) with(s *session, f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.outdated; err != nil && !ss.refold(s) {
		return err
	}
	return f()
}

// recordIn puts one record into a session that is open, made by f under its
// lock, and waits for it; none where f has nothing to record. If somebody else appended to the session meanwhile it
// is made anew on what there is then, a bounded number of times.
func (ss *sessions) recordIn(ctx context.Context, id string, f func(*session) (*receipt, error)) (*receipt, error) {
	s, err := ss.get(ctx, id)
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		var rec *receipt
		err := ss.with(s, func() (err error) {
			if s.closed {
				return errNotRecorded
			}
			rec, err = f(s)
			return err
		})
		if err == nil && rec != nil {
			err = rec.wait()
		}
		if err == nil || try == 3 || !errors.Is(err, audit.ErrConflict) {
			return rec, err
		}
	}
}

// write puts a record, whose data is JSON or is written as it, behind all earlier ones of the session and returns without
// waiting. It is written when somebody waits for it or for a later one, or by
// startFlush. The caller holds s.mu, so the order of records is the order of calls.
func (ss *sessions) write(s *session, until recordUntil, kind audit.Kind, at time.Time, data any, values ...value) (*receipt, error) {
	if s.outdated != nil {
		return nil, s.outdated
	}
	written, ok := data.([]byte)
	if !ok {
		written = mustJSON(data)
	}
	e, err := sealRecord(audit.Record{Kind: kind, Session: s.id, N: s.next + 1, Time: at, Data: written}, values...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	s.next++
	s.answered = kind == audit.KindResult
	rec := &receipt{n: s.next, in: s, by: ss, done: make(chan struct{})}
	s.queue = append(s.queue, queued{e, until == powerCut, rec})
	return rec, nil
}

// startFlush has the session's queue written. The caller holds s.mu.
func (ss *sessions) startFlush(s *session) {
	if len(s.queue) > 0 && !s.flushing {
		s.flushing = true
		go ss.flushAll(s)
	}
}

// drain has the session's queue written and waits until it is empty. The caller
// holds s.mu, which drain gives up while it waits.
func (ss *sessions) drain(s *session) {
	for ss.startFlush(s); s.flushing; ss.startFlush(s) {
		s.drained.Wait()
	}
}

// moved reports whether another process appended to the session since it was folded, which
// is then outdated. The caller holds s.mu, and waits for what is queued.
func (ss *sessions) moved(ctx context.Context, s *session) (bool, error) {
	if s.evidence == nil {
		return false, nil
	}
	ss.drain(s)
	head, err := ss.store.Head(ctx, s.id)
	if err != nil {
		return false, fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	if s.outdated == nil && head != s.next {
		s.outdated = audit.ErrConflict
	}
	return s.outdated != nil, nil
}

// flushAll writes the session's queue until it is empty: one append for all that
// gathered while the last one ran. The caller has set s.flushing.
func (ss *sessions) flushAll(s *session) {
	for ss.flush(s) {
	}
}

// flush writes what is in the session's queue, and reports whether more came
// meanwhile: then s.flushing stays set. After a failure the session is outdated:
// everything queued fails, and the next use folds it anew from the store. The caller
// has set s.flushing.
func (ss *sessions) flush(s *session) (more bool) {
	s.mu.Lock()
	batch, err := s.queue, s.outdated
	s.queue = nil
	s.mu.Unlock()
	if err == nil && len(batch) > 0 {
		err = ss.append(s, batch)
	}
	for _, q := range batch {
		q.err = err
		close(q.done)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flushing = len(s.queue) > 0; !s.flushing {
		ss.keepAt(s)
		s.drained.Broadcast()
	}
	return s.flushing
}

func (ss *sessions) append(s *session, batch []queued) error {
	entries, appendAll := make([]audit.Entry, len(batch)), ss.store.AppendUnsynced
	for i, q := range batch {
		entries[i] = q.entry
		if q.durable {
			appendAll = ss.store.Append
		}
	}
	// The record outlives the request it is about.
	_, err := appendAll(ss.patience.now(), s.id, entries[0].N()-1, entries)
	ss.events.counts.appended(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("%w: %w", errNotRecorded, err)
		s.outdated = err
		return err
	}
	last := &entries[len(entries)-1]
	s.written = snapshot.At{N: last.N(), Leaf: sha256.Sum256(last.Leaf())}
	return nil
}

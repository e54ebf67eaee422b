package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
)

// altered closes a session if err says that what it rests on was altered.
func (ss *sessions) altered(s *session, err error) {
	if errors.Is(err, audit.ErrAltered) {
		s.mu.Lock()
		defer s.mu.Unlock()
		ss.alter(s, err)
	}
}

// alter closes a session whose records or values are not what was written: it
// refuses every call from now on, and the log says so. The caller holds s.mu or
// is the only one that knows s.
func (ss *sessions) alter(s *session, err error) {
	if s.halted == nil || s.halted.Reason != writ.PolicyAltered {
		ss.events.log.Error("what a session rests on was altered on disk: it is closed, find out by whom (writ audit verify)", "session", s.id, "error", err)
	}
	s.outdated = err
	s.halted = rejection(writ.PolicyAltered, "what this session saw was altered on disk and vouches for nothing any more: a person looks at it with writ audit verify; begin a new session")
	data := closeData{Why: closedAltered}
	if a, is := errors.AsType[*audit.AlteredError](err); is {
		data.N = a.N
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	if err := lastRecord(ctx, ss.store, s.id, ss.now(), data); err != nil {
		ss.events.log.Error("the end of a session was not written", "session", s.id, "error", err)
	}
}

type closeData struct {
	Why string `json:"why,omitempty"`
	N   uint64 `json:"n,omitempty"` // the record that was altered
}

const closedAltered = "altered"

// lastRecord puts a session's KindClose behind whatever is there, unless it is closed.
func lastRecord(ctx context.Context, st audit.Store, id string, at time.Time, data closeData) error {
	for {
		n, err := st.Head(ctx, id)
		if err != nil {
			return err
		}
		if _, err = lastBehind(ctx, st, id, n, audit.KindClose, at, data); !errors.Is(err, audit.ErrConflict) {
			return err
		}
	}
}

// lastBehind puts a session's last record, KindClose or KindRedact, behind its n records,
// unless it is there, and returns its number: behind the first there can be the second, behind
// that nothing. Where there are more records, the error is audit.ErrConflict.
func lastBehind(ctx context.Context, st audit.Store, id string, n uint64, kind audit.Kind, at time.Time, data any) (last uint64, err error) {
	done := false
	if kind == audit.KindRedact {
		done, err = isRedacted(ctx, st, id)
	} else {
		_, done, err = closedBy(ctx, st, id, n)
	}
	if done || err != nil {
		return n, err
	}
	e, err := audit.Seal(audit.Record{Kind: kind, Session: id, N: n + 1, Time: at, Data: mustJSON(data)})
	if err != nil {
		return 0, err
	}
	_, err = st.Append(ctx, id, n, []audit.Entry{e})
	return n + 1, err
}

// closedBy reads the end of a session whose newest record has that number.
func closedBy(ctx context.Context, st audit.Store, id string, n uint64) (data closeData, closed bool, err error) {
	for rec, err := range recordsFrom(ctx, st, id, n) {
		if errors.Is(err, audit.ErrAltered) {
			return closeData{Why: closedAltered}, true, nil // nothing that comes after can be read either
		}
		switch {
		case err == nil && rec.Kind == audit.KindRedact:
			closed = true
		case err == nil && rec.Kind == audit.KindClose:
			closed, err = true, json.Unmarshal(rec.Data, &data)
		}
		return data, closed, err
	}
	return data, false, nil
}

// EndSession closes a session for good without a gateway, for `writ session
// close`.
func EndSession(ctx context.Context, st Store, id string, at time.Time) error {
	if err := st.CloseSession(ctx, id, at); err != nil {
		return err
	}
	return lastRecord(ctx, st, id, at.UTC().Truncate(time.Microsecond), closeData{})
}

// Altered reports that a session was closed because its records or values are
// not what was written.
func Altered(ctx context.Context, st audit.Store, id string) (bool, error) {
	n, err := st.Head(ctx, id)
	if err != nil || n == 0 {
		return false, err
	}
	data, _, err := closedBy(ctx, st, id, n)
	return data.Why == closedAltered, err
}

func (ss *sessions) close(ctx context.Context, id string) error {
	now := ss.now()
	if err := ss.store.CloseSession(ctx, id, now); err != nil {
		ss.events.complain(ctx, "a session could not be closed", id, err)
		return err
	}
	s, err := ss.get(ctx, id)
	if err != nil {
		return nil // its last record is there already, or none can be written
	}
	if err := ss.writeClose(s, now); err != nil {
		ss.events.log.Error("the end of a session was not written", "session", id)
	}
	ss.mu.Lock()
	ss.unload(s)
	ss.mu.Unlock()
	ss.drop(id)
	return nil
}

func (ss *sessions) writeClose(s *session, at time.Time) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	rec, err := ss.write(s, processEnd, audit.KindClose, at, closeData{})
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return rec.wait()
}

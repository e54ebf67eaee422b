package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/writ-project/writ/audit"
)

// The column ledger_key of version 1 is all zeros: the key of a session stands in
// its first record.
const sessionColumns = "id, secret, principal, endpoint, created, last_used, closed"

// micros is a time as it is stored: microseconds since 1970 in UTC, NULL for
// the zero time.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func fromMicros(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}

func scanSession(scan func(...any) error) (x audit.Session, err error) {
	var secret []byte
	var created, used, closed sql.NullInt64
	if err := scan(&x.ID, &secret, &x.Principal, &x.Endpoint, &created, &used, &closed); err != nil {
		return audit.Session{}, err
	}
	if len(secret) != len(x.SecretDigest) {
		return audit.Session{}, errors.New("a session has a secret of the wrong size")
	}
	copy(x.SecretDigest[:], secret)
	x.Created, x.LastUsed, x.Closed = fromMicros(created), fromMicros(used), fromMicros(closed)
	return x, nil
}

// AddSession implements audit.Sessions.
func (s *Store) AddSession(ctx context.Context, x audit.Session) error {
	x, err := audit.CheckSession(x)
	if err != nil {
		return err
	}
	return s.register(ctx, audit.ErrExists,
		"INSERT INTO sessions ("+sessionColumns+", ledger_key) VALUES (?, ?, ?, ?, ?, ?, ?, zeroblob(32)) ON CONFLICT DO NOTHING",
		x.ID, x.SecretDigest[:], x.Principal, x.Endpoint, micros(x.Created), micros(x.LastUsed), micros(x.Closed))
}

// register changes the register by one statement, and tells every process that
// holds sessions in memory.
func (s *Store) register(ctx context.Context, none error, query string, args ...any) error {
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := s.one(ctx, none, query, args...); err != nil {
		return err
	}
	if err := s.journal.changed(); err != nil {
		return s.fails("tell of the register", err, true)
	}
	return nil
}

const bySecret = "SELECT " + sessionColumns + " FROM sessions WHERE secret = ?"

// mostSessions is how many sessions of the register are held in memory.
const mostSessions = 10_000

// heldFor is how long.
const heldFor = time.Second

// heldSessions are sessions of the register, as long as nobody changed it.
type heldSessions struct {
	mu       sync.Mutex
	register [8]byte
	since    time.Time // when they began to be held
	all      map[audit.Digest]audit.Session
}

// SessionBySecret implements audit.Sessions.
func (s *Store) SessionBySecret(ctx context.Context, secret audit.Digest) (audit.Session, error) {
	if s.isClosed() {
		return audit.Session{}, audit.ErrClosed
	}
	if s.write == nil { // who opened the log to read asks once
		return s.session(s.secret.QueryRowContext(ctx, secret[:]))
	}
	h := &s.sessions
	register, err := s.journal.register()
	held := err == nil
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); register != h.register || now.Sub(h.since) > heldFor { // who changed it may have been killed before he said so
		clear(h.all)
		h.register, h.since = register, now
	}
	if x, ok := h.all[secret]; ok && held {
		return x, nil
	}
	x, err := s.session(s.secret.QueryRowContext(ctx, secret[:]))
	if held && err == nil {
		if h.all == nil || len(h.all) >= mostSessions {
			h.all = map[audit.Digest]audit.Session{}
		}
		h.all[secret] = x
	}
	return x, err
}

// SessionByID implements audit.Sessions.
func (s *Store) SessionByID(ctx context.Context, id string) (audit.Session, error) {
	return s.session(s.read.QueryRowContext(ctx, "SELECT "+sessionColumns+" FROM sessions WHERE id = ?", id))
}

func (s *Store) session(row *sql.Row) (audit.Session, error) {
	x, err := scanSession(row.Scan)
	if err != nil {
		return audit.Session{}, s.done(err)
	}
	return x, nil
}

// TouchSession implements audit.Sessions. It is a durable write like any
// other: callers touch rarely.
func (s *Store) TouchSession(ctx context.Context, id string, at time.Time) error {
	return s.updateSession(ctx, "UPDATE sessions SET last_used = max(coalesce(last_used, ?1), ?1) WHERE id = ?2", at, id)
}

// CloseSession implements audit.Sessions.
func (s *Store) CloseSession(ctx context.Context, id string, at time.Time) error {
	return s.updateSession(ctx, "UPDATE sessions SET closed = coalesce(closed, ?1) WHERE id = ?2", at, id)
}

func (s *Store) updateSession(ctx context.Context, query string, at time.Time, id string) error {
	return s.register(ctx, audit.ErrNotFound, query, at.UnixMicro(), id)
}

// ListSessions implements audit.Sessions.
func (s *Store) ListSessions(ctx context.Context) iter.Seq2[audit.Session, error] {
	return rows(ctx, s, s.read, func(rs *sql.Rows) (audit.Session, error) { return scanSession(rs.Scan) },
		"SELECT "+sessionColumns+" FROM sessions ORDER BY created, id")
}

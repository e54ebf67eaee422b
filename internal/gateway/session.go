package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/gateway/downstream"
)

// session is one open session: the scope of evidence. Everything in it is a
// fold of the session's records.
type session struct {
	id string

	mu       sync.Mutex
	fold     *gate.Session // nil for the session of requests that carry none
	next     uint64        // number of the newest record
	queue    []queued
	flushing bool
	stale    error // why the fold may not be what the store holds, nil when it is
	epoch    int   // how often the fold was made anew
	closed   bool
	halted   *writ.Rejection // the input policy ended its calls
	active   time.Time       // of its newest record: when the user's turns lapse
	lastUsed time.Time
	touched  time.Time
	bytes    int64 // of its evidence, as Gateway.held counts it; guarded by Gateway.mu

	drained *sync.Cond // the queue became empty; its lock is mu

	suspended map[string]*suspension          // calls that wait for an answer, by token
	used      map[[sha256.Size]byte]time.Time // seals that came back, until they lapse

	album album // what may be captured of it; it has a lock of its own, taken before mu
}

func newSession(id string, used time.Time) *session {
	s := &session{id: id, lastUsed: used, suspended: map[string]*suspension{}, used: map[[sha256.Size]byte]time.Time{}}
	s.drained = sync.NewCond(&s.mu)
	return s
}

// handle is how a session is named to package downstream: equal for one
// session, whether or not its fold is in memory.
type handle struct{ id string }

// PublicID is the name that may stand in records and logs.
func (h handle) PublicID() string { return h.id }

// openData is the data of a session's first record.
type openData struct {
	Principal string `json:"principal"`
	Carrier   string `json:"carrier"`
	Anonymous bool   `json:"anonymous,omitempty"` // of requests that carry no session
}

// Session lifetimes (provenance.md section 5) and caps (attacks D03, D04).
const (
	sessionIdle     = 24 * time.Hour
	sessionLifetime = 30 * 24 * time.Hour
	maxLoaded       = 10_000  // sessions held in memory
	maxEvidence     = 1 << 30 // bytes of their evidence, as estimated
	touchEvery      = time.Minute
)

// newSecret returns 192 random bits, URL-safe.
func newSecret() (string, error) {
	var b [24]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b[:]), nil
}

// newPublicID returns a name that is unique and says nothing of the secret.
func newPublicID() (string, error) {
	var b [10]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return "s_" + publicEncoding.EncodeToString(b[:]), nil
}

func secretDigest(secret string) audit.Digest { return sha256.Sum256([]byte(secret)) }

// OpenSession mints a session (downstream.Router).
func (g *Gateway) OpenSession(ctx context.Context, principal string, by downstream.Carrier) (string, downstream.Session, error) {
	secret, err := newSecret()
	if err != nil {
		return "", nil, err
	}
	s, err := g.openSession(ctx, principal, string(by), secret, false)
	if err != nil {
		g.complain(ctx, "a session could not be opened", "", err)
		return "", nil, err
	}
	return secret, handle{s.id}, nil
}

// openSession registers a session, or opens the stream of requests that carry
// none, and returns it ready for use.
func (g *Gateway) openSession(ctx context.Context, principal, carrier, secret string, anonymous bool) (*session, error) {
	now := g.now()
	id, key, err := register(ctx, g.store, principal, carrier, secret, anonymous, now)
	if err != nil {
		return nil, err
	}
	s := newSession(id, now)
	s.next = 1
	if !anonymous {
		s.fold = gate.NewSession(id, key, g.caps)
		g.keep(s)
	}
	return s, nil
}

// register writes a session's first record and, unless it is the anonymous
// stream, the digest of its secret.
func register(ctx context.Context, st Store, principal, carrier, secret string, anonymous bool, now time.Time) (id string, key [32]byte, err error) {
	if id, err = newPublicID(); err != nil {
		return "", key, err
	}
	if _, err = rand.Read(key[:]); err != nil {
		return "", key, err
	}
	v := audit.Value{Name: valueKey, Bytes: key[:]}
	if _, err = rand.Read(v.Salt[:]); err != nil {
		return "", key, err
	}
	e, err := audit.Seal(audit.Record{Kind: audit.KindOpen, Session: id, N: 1, Time: now,
		Data: mustJSON(openData{Principal: principal, Carrier: carrier, Anonymous: anonymous})}, v)
	if err != nil {
		return "", key, err
	}
	if _, err = st.Append(ctx, id, 0, []audit.Entry{e}); err != nil {
		return "", key, fmt.Errorf("gateway: the session could not be recorded: %w", err)
	}
	if anonymous {
		return id, key, nil
	}
	err = st.AddSession(ctx, audit.Session{ID: id, SecretDigest: secretDigest(secret), Principal: principal,
		Endpoint: carrier, Created: now, LastUsed: now})
	if err != nil {
		return "", key, fmt.Errorf("gateway: the session could not be registered: %w", err)
	}
	return id, key, nil
}

// MintSession registers a session without a gateway, for `writ session new`:
// every gateway over the same store knows it at once.
func MintSession(ctx context.Context, st Store, principal string, clock func() time.Time) (secret, id string, err error) {
	if secret, err = newSecret(); err != nil {
		return "", "", err
	}
	id, _, err = register(ctx, st, principal, string(downstream.CarrierEndpoint), secret, false, clock().UTC().Truncate(time.Microsecond))
	return secret, id, err
}

// SessionID returns the public id of the session with that secret.
func SessionID(ctx context.Context, st audit.Sessions, secret string) (string, error) {
	s, err := st.SessionBySecret(ctx, secretDigest(secret))
	return s.ID, err
}

// CreateSession registers a session for principal, for `writ session new`: it
// writes what OpenSession writes and returns the secret and the public id.
func (g *Gateway) CreateSession(ctx context.Context, principal string) (secret, id string, err error) {
	secret, s, err := g.OpenSession(ctx, principal, downstream.CarrierEndpoint)
	if err != nil {
		return "", "", err
	}
	return secret, s.PublicID(), nil
}

// keep holds a session in memory.
func (g *Gateway) keep(s *session) {
	bytes := int64(0)
	if s.fold != nil {
		bytes = s.fold.Bytes()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := g.loaded[s.id]; o != nil {
		g.held -= o.bytes
	}
	g.loaded[s.id] = s
	s.bytes = bytes
	g.held += bytes
	g.makeRoom(s)
}

// room counts what a session's evidence takes now, and reports whether there is
// memory for more of it. The caller holds s.mu.
func (g *Gateway) room(s *session) bool {
	bytes := s.fold.Bytes()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.loaded[s.id] != s {
		return g.held < g.maxHeld
	}
	g.held += bytes - s.bytes
	s.bytes = bytes
	return g.makeRoom(s)
}

// makeRoom drops sessions at rest from memory, those first that were used
// longest ago, until both caps hold, and reports whether they do. Evidence is in
// the store: dropping a fold loses nothing. The caller holds g.mu.
func (g *Gateway) makeRoom(keep *session) bool {
	if len(g.loaded) <= maxLoaded && g.held < g.maxHeld {
		return true
	}
	type idle struct {
		s    *session
		used time.Time
	}
	var rest []idle
	for _, o := range g.loaded {
		if o != keep && o.mu.TryLock() {
			if !o.flushing && len(o.queue) == 0 && len(o.suspended) == 0 {
				rest = append(rest, idle{o, o.lastUsed})
			}
			o.mu.Unlock()
		}
	}
	slices.SortFunc(rest, func(a, b idle) int { return a.used.Compare(b.used) })
	for _, o := range rest {
		if len(g.loaded) <= maxLoaded && g.held < g.maxHeld {
			break
		}
		g.unload(o.s)
	}
	return g.held < g.maxHeld
}

// unload drops a session from memory. The caller holds g.mu.
func (g *Gateway) unload(s *session) {
	if g.loaded[s.id] == s {
		delete(g.loaded, s.id)
		g.held -= s.bytes
	}
}

// FindSession finds an open session of that principal (downstream.Router).
// Unknown, closed, expired and foreign are the same ErrNoSession.
func (g *Gateway) FindSession(ctx context.Context, principal, secret string) (downstream.Session, error) {
	reg, err := g.sessions.SessionBySecret(ctx, secretDigest(secret))
	now := g.now()
	switch {
	case errors.Is(err, audit.ErrNotFound):
		return nil, downstream.ErrNoSession
	case err != nil:
		g.complain(ctx, "a session could not be looked up", "", err)
		return nil, err
	case reg.Principal != principal || ended(reg, now):
		return nil, downstream.ErrNoSession
	}
	s, err := g.loadedSession(ctx, reg.ID)
	if err != nil {
		if !errors.Is(err, downstream.ErrNoSession) {
			g.complain(ctx, "a session could not be restored", reg.ID, err)
		}
		return nil, err
	}
	s.mu.Lock()
	s.lastUsed = now
	touch := now.Sub(s.touched) > touchEvery
	if touch {
		s.touched = now
	}
	s.mu.Unlock()
	if touch {
		if err := g.sessions.TouchSession(ctx, s.id, now); err != nil {
			g.log.Warn("a session's last use was not written", "session", s.id)
		}
	}
	return handle{s.id}, nil
}

// complain tells the operator why a client was answered that a session cannot be
// had: one line a second, however many clients ask.
func (g *Gateway) complain(ctx context.Context, what, session string, err error) {
	if ctx.Err() != nil {
		return // the client went away
	}
	g.oddMu.Lock()
	now := time.Now()
	g.unsaid++
	unsaid := g.unsaid - 1
	again := now.Sub(g.complained) < complainEvery
	if !again {
		g.complained, g.unsaid = now, 0
	}
	g.oddMu.Unlock()
	if !again {
		g.log.Error(what, "session", session, "error", err.Error(), "more", unsaid)
	}
}

const complainEvery = time.Second

// ended reports whether a session was closed or outlived its time.
func ended(reg audit.Session, now time.Time) bool {
	return !reg.Closed.IsZero() || now.Sub(reg.Created) > sessionLifetime || now.Sub(reg.LastUsed) > sessionIdle
}

// loadedSession returns the session of that id, folding it from its records if
// it is not in memory.
func (g *Gateway) loadedSession(ctx context.Context, id string) (*session, error) {
	g.mu.Lock()
	s := g.loaded[id]
	g.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s = newSession(id, g.now())
	if err := g.reload(ctx, s); err != nil {
		return nil, err
	}
	g.mu.Lock()
	if other := g.loaded[id]; other != nil {
		g.mu.Unlock()
		return other, nil
	}
	g.mu.Unlock()
	g.keep(s)
	return s, nil
}

// reload folds the session anew from the store. The caller holds s.mu or is
// the only one that knows s.
func (g *Gateway) reload(ctx context.Context, s *session) error {
	f := NewFold(g.store, g.caps)
	f.screen = g.screen
	for it, err := range g.store.Read(ctx, s.id, 1) {
		if err != nil {
			return err
		}
		rec, err := audit.ParseRecord(it.Leaf)
		if err != nil {
			return err
		}
		if rec.Kind == audit.KindClose {
			return downstream.ErrNoSession // closed
		}
		if err := f.Step(ctx, rec, &it); err != nil {
			return err
		}
		s.next, s.active = rec.N, rec.Time
	}
	switch {
	case s.next == 0:
		return errors.New("the session has no records")
	case f.Blind():
		return errors.New("values of the session were erased, or it is of another engine: what it saw vouches for nothing any more. `writ session close` ends it")
	}
	s.fold, s.stale, s.halted = f.session, nil, f.halted
	s.epoch++
	return nil
}

// CloseSession ends a session for good (downstream.Router).
func (g *Gateway) CloseSession(ctx context.Context, ds downstream.Session) error {
	h, ok := ds.(handle)
	if !ok {
		return downstream.ErrNoSession
	}
	now := g.now()
	if err := g.sessions.CloseSession(ctx, h.id, now); err != nil {
		g.complain(ctx, "a session could not be closed", h.id, err)
		return err
	}
	s, err := g.loadedSession(ctx, h.id)
	if err != nil {
		return nil // its last record is there already, or none can be written
	}
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		_, done, err := g.write(s, processEnd, audit.KindClose, now, struct{}{})
		s.mu.Unlock()
		if err == nil {
			err = <-done
		}
		if err != nil {
			g.log.Error("the end of a session was not written", "session", s.id)
		}
	} else {
		s.mu.Unlock()
	}
	g.mu.Lock()
	g.unload(s)
	for k := range g.subs {
		if k.session == s.id {
			delete(g.subs, k)
		}
	}
	g.mu.Unlock()
	return nil
}

package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/downstream"
)

// session is one open session: the scope of evidence. Everything in it is a
// fold of the session's records.
type session struct {
	id string

	mu         sync.Mutex
	evidence   *gate.Session // nil for the session of requests that carry none
	next       uint64        // number of the newest record
	queue      []queued
	flushing   bool
	outdated   error // why the evidence may not be what the store holds, nil when it is
	generation int   // how often the evidence was folded anew
	closed     bool
	halted     *writ.Rejection // the input policy ended its calls, or it was altered
	active     time.Time       // of its newest record: when the user's turns lapse
	opened     time.Time       // of its first
	open       openData        // of its first
	lastUsed   time.Time
	touched    time.Time
	bytes      int64 // of its evidence, as Gateway.held counts it; guarded by Gateway.mu

	drained *sync.Cond // the queue became empty; its lock is mu

	suspended map[string]*suspension          // calls that wait for an answer, by token
	used      map[[sha256.Size]byte]time.Time // seals that came back, until they lapse

	index evidenceIndex // what may be captured of it; it has a lock of its own, taken before mu
}

func newSession(id string, used time.Time) *session {
	s := &session{id: id, lastUsed: used, suspended: map[string]*suspension{}, used: map[[sha256.Size]byte]time.Time{}}
	s.drained = sync.NewCond(&s.mu)
	return s
}

// handle is how a session is named to package downstream: equal for one
// session, whether or not its evidence is in memory.
type handle struct{ id string }

// PublicID is the name that may stand in records and logs.
func (h handle) PublicID() string { return h.id }

// openData is the data of a session's first record.
type openData struct {
	Principal string `json:"principal"`
	Carrier   string `json:"carrier"`
	Anonymous bool   `json:"anonymous,omitempty"` // of requests that carry no session
	// Secret is the digest of what its client carries: the register only finds
	// a session, this says whose it is.
	Secret string `json:"secret,omitempty"`
}

// Session lifetimes and caps (attacks D03, D04).
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
	s.next, s.opened, s.open = 1, now, openDataOf(principal, carrier, secret, anonymous)
	if !anonymous {
		s.evidence = gate.NewSession(id, key, g.caps)
		g.keep(s)
	}
	return s, nil
}

func openDataOf(principal, carrier, secret string, anonymous bool) openData {
	d := openData{Principal: principal, Carrier: carrier, Anonymous: anonymous}
	if !anonymous {
		d.Secret = secretDigest(secret).String()
	}
	return d
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
		Data: mustJSON(openDataOf(principal, carrier, secret, anonymous))}, v)
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

// keep holds a session in memory.
func (g *Gateway) keep(s *session) {
	bytes := int64(0)
	if s.evidence != nil {
		bytes = s.evidence.Bytes()
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
	bytes := s.evidence.Bytes()
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
// the store: dropping it loses nothing. The caller holds g.mu.
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
// Unknown, closed, expired and foreign are the same ErrNoSession. The register
// only says where to look: whose the session is, and since when, its records say.
func (g *Gateway) FindSession(ctx context.Context, principal, secret string) (downstream.Session, error) {
	digest := secretDigest(secret)
	reg, err := g.sessions.SessionBySecret(ctx, digest)
	switch {
	case errors.Is(err, audit.ErrNotFound):
		return nil, downstream.ErrNoSession
	case err != nil:
		g.complain(ctx, "a session could not be looked up", "", err)
		return nil, err
	case reg.Principal != principal || !reg.Closed.IsZero():
		return nil, downstream.ErrNoSession
	}
	s, err := g.loadedSession(ctx, reg.ID)
	if err != nil {
		if !errors.Is(err, downstream.ErrNoSession) {
			g.complain(ctx, "a session could not be restored", reg.ID, err)
		}
		return nil, err
	}
	now := g.now()
	s.mu.Lock()
	if now.Sub(s.lastUsed) > sessionIdle && len(s.queue) == 0 && g.refold(s) && s.active.After(s.lastUsed) {
		s.lastUsed = s.active // another process served it meanwhile
	}
	if !errors.Is(s.outdated, audit.ErrAltered) && (s.open.Secret != digest.String() || s.open.Principal != principal ||
		now.Sub(s.opened) > sessionLifetime || now.Sub(s.lastUsed) > sessionIdle) {
		s.mu.Unlock()
		return nil, downstream.ErrNoSession
	}
	if now.After(s.lastUsed) {
		s.lastUsed = now
	}
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
	g.eventsMu.Lock()
	now := time.Now()
	g.unsaid++
	unsaid := g.unsaid - 1
	again := now.Sub(g.complained) < complainEvery
	if !again {
		g.complained, g.unsaid = now, 0
	}
	g.eventsMu.Unlock()
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
	s = newSession(id, time.Time{})
	if err := g.restore(ctx, s); err != nil && s.halted == nil {
		return nil, err
	}
	s.lastUsed = s.active
	g.mu.Lock()
	if other := g.loaded[id]; other != nil {
		g.mu.Unlock()
		return other, nil
	}
	g.mu.Unlock()
	g.keep(s)
	return s, nil
}

// restore folds the session anew from the store. The caller holds s.mu or is
// the only one that knows s.
func (g *Gateway) restore(ctx context.Context, s *session) error {
	err := g.replay(ctx, s)
	if errors.Is(err, audit.ErrAltered) {
		g.alter(s, err)
	}
	return err
}

func (g *Gateway) replay(ctx context.Context, s *session) error {
	f := NewReplayer(g.store, g.caps)
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
		return errors.New("the session is of another engine: what it saw vouches for nothing any more. `writ session close` ends it")
	}
	s.evidence, s.outdated, s.halted, s.open, s.opened = f.session, nil, f.halted, f.data, f.opened
	s.generation++
	return nil
}

// altered closes a session if err says that what it rests on was altered.
func (g *Gateway) altered(s *session, err error) {
	if errors.Is(err, audit.ErrAltered) {
		s.mu.Lock()
		defer s.mu.Unlock()
		g.alter(s, err)
	}
}

// alter closes a session whose records or values are not what was written: it
// refuses every call from now on, and the log says so. The caller holds s.mu or
// is the only one that knows s.
func (g *Gateway) alter(s *session, err error) {
	if s.halted == nil || s.halted.Reason != writ.PolicyAltered {
		g.log.Error("what a session rests on was altered on disk: it is closed, find out by whom (writ audit verify)", "session", s.id, "error", err)
	}
	s.outdated = err
	s.halted = &writ.Rejection{Code: writ.PolicyViolation, Reason: writ.PolicyAltered,
		Failures: []writ.Failure{{Reason: writ.PolicyAltered, Need: "what this session saw was altered on disk and vouches for nothing any more: a person looks at it with writ audit verify; begin a new session"}}}
	data := closeData{Why: closedAltered}
	if a := (*audit.AlteredError)(nil); errors.As(err, &a) {
		data.N = a.N
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	if err := closeRecord(ctx, g.store, s.id, g.now(), data); err != nil {
		g.log.Error("the end of a session was not written", "session", s.id, "error", err)
	}
}

// closeData is the data of a session's last record.
type closeData struct {
	Why string `json:"why,omitempty"`
	N   uint64 `json:"n,omitempty"` // the record that was altered
}

const closedAltered = "altered"

// closeRecord puts a session's last record behind whatever is there, unless
// there is one.
func closeRecord(ctx context.Context, st audit.Store, id string, at time.Time, data closeData) error {
	for {
		n, err := st.Head(ctx, id)
		if err != nil {
			return err
		}
		if _, closed, err := closedBy(ctx, st, id, n); closed || err != nil {
			return err
		}
		e, err := audit.Seal(audit.Record{Kind: audit.KindClose, Session: id, N: n + 1, Time: at, Data: mustJSON(data)})
		if err != nil {
			return err
		}
		if _, err = st.Append(ctx, id, n, []audit.Entry{e}); !errors.Is(err, audit.ErrConflict) {
			return err
		}
	}
}

// closedBy reads the end of a session whose newest record has that number.
func closedBy(ctx context.Context, st audit.Store, id string, n uint64) (data closeData, closed bool, err error) {
	for it, err := range st.Read(ctx, id, n) {
		if errors.Is(err, audit.ErrAltered) {
			return closeData{Why: closedAltered}, true, nil // nothing that comes after can be read either
		} else if err != nil {
			return data, false, err
		}
		rec, err := audit.ParseRecord(it.Leaf)
		if err == nil && rec.Kind == audit.KindClose {
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
	return closeRecord(ctx, st, id, at.UTC().Truncate(time.Microsecond), closeData{})
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
		_, done, err := g.write(s, processEnd, audit.KindClose, now, closeData{})
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

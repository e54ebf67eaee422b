package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/provenance"
)

// sessions are the sessions of a gateway with their journal: what happens in one
// is put on record behind what happened before, and its evidence is what its
// records come to.
type sessions struct {
	store   Store
	caps    provenance.Caps
	maxHeld int64
	screen  *screen.Screen
	clock   func() time.Time
	events  *events
	sealKey [32]byte

	anonymousMu sync.Mutex
	anonymous   *session

	mu     sync.Mutex
	loaded map[string]*session
	held   int64 // bytes of their evidence
}

// now is the recorded time: UTC, to the microsecond, as records keep it.
func (ss *sessions) now() time.Time { return ss.clock().UTC().Truncate(time.Microsecond) }

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
	bytes      int64 // of its evidence, as sessions.held counts it; guarded by sessions.mu

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

// whyHalted says why the session's calls have ended; nil where they have not, or
// where the session has.
func (s *session) whyHalted() *writ.Rejection {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	return s.halted
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

func newSessions(o Options, es *events) (*sessions, error) {
	ss := &sessions{store: o.Store, caps: o.Caps, maxHeld: cmp.Or(o.MaxHeld, maxEvidence), screen: o.Screen, clock: o.Clock, events: es,
		loaded: map[string]*session{}}
	if ss.clock == nil {
		ss.clock = time.Now
	}
	_, err := rand.Read(ss.sealKey[:])
	return ss, err
}

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

var publicEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func secretDigest(secret string) audit.Digest { return sha256.Sum256([]byte(secret)) }

// OpenSession mints a session (downstream.Router).
func (ss *sessions) OpenSession(ctx context.Context, principal string, by downstream.Carrier) (string, downstream.Session, error) {
	secret, err := newSecret()
	if err != nil {
		return "", nil, err
	}
	s, err := ss.open(ctx, principal, string(by), secret, false)
	if err != nil {
		ss.events.complain(ctx, "a session could not be opened", "", err)
		return "", nil, err
	}
	return secret, handle{s.id}, nil
}

// open registers a session, or opens the stream of requests that carry
// none, and returns it ready for use.
func (ss *sessions) open(ctx context.Context, principal, carrier, secret string, anonymous bool) (*session, error) {
	now := ss.now()
	id, key, err := register(ctx, ss.store, principal, carrier, secret, anonymous, now)
	if err != nil {
		return nil, err
	}
	s := newSession(id, now)
	s.next, s.opened, s.open = 1, now, openDataOf(principal, carrier, secret, anonymous)
	if !anonymous {
		s.evidence = gate.NewSession(id, key, ss.caps)
		ss.keep(s)
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
	e, err := sealRecord(audit.Record{Kind: audit.KindOpen, Session: id, N: 1, Time: now,
		Data: mustJSON(openDataOf(principal, carrier, secret, anonymous))}, value{valueKey, key[:]})
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
func (ss *sessions) keep(s *session) {
	bytes := int64(0)
	if s.evidence != nil {
		bytes = s.evidence.Bytes()
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if o := ss.loaded[s.id]; o != nil {
		ss.held -= o.bytes
	}
	ss.loaded[s.id] = s
	s.bytes = bytes
	ss.held += bytes
	ss.makeRoom(s)
}

// room counts what a session's evidence takes now, and reports whether there is
// memory for more of it. The caller holds s.mu.
func (ss *sessions) room(s *session) bool {
	bytes := s.evidence.Bytes()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.loaded[s.id] != s {
		return ss.held < ss.maxHeld
	}
	ss.held += bytes - s.bytes
	s.bytes = bytes
	return ss.makeRoom(s)
}

// makeRoom drops sessions at rest from memory, those first that were used
// longest ago, until both caps hold, and reports whether they do. Evidence is in
// the store: dropping it loses nothing. The caller holds ss.mu.
func (ss *sessions) makeRoom(keep *session) bool {
	fits := func() bool { return len(ss.loaded) <= maxLoaded && ss.held < ss.maxHeld }
	if fits() {
		return true
	}
	used := map[*session]time.Time{}
	for _, s := range ss.loaded {
		if s != keep && s.mu.TryLock() {
			if !s.flushing && len(s.queue) == 0 && len(s.suspended) == 0 {
				used[s] = s.lastUsed
			}
			s.mu.Unlock()
		}
	}
	atRest := slices.SortedFunc(maps.Keys(used), func(a, b *session) int { return used[a].Compare(used[b]) })
	for i := 0; i < len(atRest) && !fits(); i++ {
		ss.unload(atRest[i])
	}
	return ss.held < ss.maxHeld
}

// unload drops a session from memory. The caller holds ss.mu.
func (ss *sessions) unload(s *session) {
	if ss.loaded[s.id] == s {
		delete(ss.loaded, s.id)
		ss.held -= s.bytes
	}
}

// FindSession finds an open session of that principal (downstream.Router).
// Unknown, closed, expired and foreign are the same ErrNoSession. The register
// only says where to look: whose the session is, and since when, its records say.
func (ss *sessions) FindSession(ctx context.Context, principal, secret string) (downstream.Session, error) {
	digest := secretDigest(secret)
	reg, err := ss.store.SessionBySecret(ctx, digest)
	switch {
	case errors.Is(err, audit.ErrNotFound):
		return nil, downstream.ErrNoSession
	case err != nil:
		ss.events.complain(ctx, "a session could not be looked up", "", err)
		return nil, err
	case reg.Principal != principal || !reg.Closed.IsZero():
		return nil, downstream.ErrNoSession
	}
	s, err := ss.get(ctx, reg.ID)
	if err != nil {
		if !errors.Is(err, downstream.ErrNoSession) {
			ss.events.complain(ctx, "a session could not be restored", reg.ID, err)
		}
		return nil, err
	}
	now := ss.now()
	s.mu.Lock()
	if now.Sub(s.lastUsed) > sessionIdle && len(s.queue) == 0 && ss.refold(s) && s.active.After(s.lastUsed) {
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
		if err := ss.store.TouchSession(ctx, s.id, now); err != nil {
			ss.events.log.Warn("a session's last use was not written", "session", s.id)
		}
	}
	return handle{s.id}, nil
}

// ended reports whether a session was closed or outlived its time.
func ended(reg audit.Session, now time.Time) bool {
	return !reg.Closed.IsZero() || now.Sub(reg.Created) > sessionLifetime || now.Sub(reg.LastUsed) > sessionIdle
}

// get returns the session of that id, folding it from its records if
// it is not in memory.
func (ss *sessions) get(ctx context.Context, id string) (*session, error) {
	ss.mu.Lock()
	s := ss.loaded[id]
	ss.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s = newSession(id, time.Time{})
	if err := ss.restore(ctx, s); err != nil && s.halted == nil {
		return nil, err
	}
	s.lastUsed = s.active
	ss.mu.Lock()
	if other := ss.loaded[id]; other != nil {
		ss.mu.Unlock()
		return other, nil
	}
	ss.mu.Unlock()
	ss.keep(s)
	return s, nil
}

// refold folds an outdated session anew, once all that was queued is written or
// has failed. The caller holds s.mu.
func (ss *sessions) refold(s *session) bool {
	ss.drain(s)
	if s.evidence == nil {
		return false // the next request opens the stream anew
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	if err := ss.restore(ctx, s); err != nil {
		ss.events.log.Error("a session could not be restored", "session", s.id, "error", err)
		return false
	}
	return true
}

// restore makes the session of its records, and closes it if they are not what
// was written. The caller holds s.mu or is the only one that knows s.
func (ss *sessions) restore(ctx context.Context, s *session) error {
	r, err := ss.replay(ctx, s)
	if errors.Is(err, audit.ErrAltered) {
		ss.alter(s, err)
	}
	if err != nil {
		return err
	}
	s.evidence, s.outdated, s.halted, s.open, s.opened = r.session, nil, r.halted, r.data, r.opened
	s.generation++
	return nil
}

func (ss *sessions) replay(ctx context.Context, s *session) (*Replayer, error) {
	r := NewReplayer(ss.store, ss.caps)
	r.screen = ss.screen
	for it, err := range ss.store.Read(ctx, s.id, 1) {
		if err != nil {
			return nil, err
		}
		rec, err := audit.ParseRecord(it.Leaf)
		if err != nil {
			return nil, err
		}
		if rec.Kind == audit.KindClose {
			return nil, downstream.ErrNoSession
		}
		if err := r.Step(ctx, rec, &it); err != nil {
			return nil, err
		}
		s.next, s.active = rec.N, rec.Time
	}
	switch {
	case s.next == 0:
		return nil, errors.New("the session has no records")
	case r.Blind():
		return nil, errors.New("the session is of another engine: what it saw vouches for nothing any more. `writ session close` ends it")
	}
	return r, nil
}

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
	s.halted = &writ.Rejection{Code: writ.PolicyViolation, Reason: writ.PolicyAltered,
		Failures: []writ.Failure{{Reason: writ.PolicyAltered, Need: "what this session saw was altered on disk and vouches for nothing any more: a person looks at it with writ audit verify; begin a new session"}}}
	data := closeData{Why: closedAltered}
	if a := (*audit.AlteredError)(nil); errors.As(err, &a) {
		data.N = a.N
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	if err := closeRecord(ctx, ss.store, s.id, ss.now(), data); err != nil {
		ss.events.log.Error("the end of a session was not written", "session", s.id, "error", err)
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

// close ends a session for good.
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
	defer ss.mu.Unlock()
	ss.unload(s)
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

// drainAll waits until what is queued in any session is written.
func (ss *sessions) drainAll() {
	ss.mu.Lock()
	open := slices.Collect(maps.Values(ss.loaded))
	ss.mu.Unlock()
	if ss.anonymous != nil {
		open = append(open, ss.anonymous)
	}
	for _, s := range open {
		s.mu.Lock()
		ss.drain(s)
		s.mu.Unlock()
	}
}

// of is the session of a request, or the stream of those without one.
func (ss *sessions) of(r *downstream.Request) (*session, error) {
	h, ok := r.Session.(handle)
	if !ok {
		return ss.anonymousStream()
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	s, err := ss.get(ctx, h.id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	return s, nil
}

// anonymousStream is the log's stream of requests that carry no session. It is
// opened by the first of them, and anew when it could not be written.
func (ss *sessions) anonymousStream() (*session, error) {
	ss.anonymousMu.Lock()
	defer ss.anonymousMu.Unlock()
	if s := ss.anonymous; s != nil {
		s.mu.Lock()
		outdated := s.outdated
		s.mu.Unlock()
		if outdated == nil {
			return s, nil
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	s, err := ss.open(ctx, "none", "none", "", true)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	ss.anonymous = s
	return s, nil
}

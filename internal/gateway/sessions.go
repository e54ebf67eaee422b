package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/snapshot"
	"github.com/writ-project/writ/provenance"
)

// sessions are the sessions of a gateway with their journal: what happens in one
// is put on record behind what happened before, and its evidence is what its
// records come to.
type sessions struct {
	store     Store
	recorded  *Rulesets // what sessions are folded by
	caps      provenance.Caps
	maxHeld   int64
	screen    atomic.Pointer[screen.Screen] // nil for none
	snapshots *snapshot.Dir                 // nil for none
	clock     func() time.Time
	events    *events
	sealKey   [32]byte
	patience  patience

	anonymousMu sync.Mutex
	anonymous   *session

	mu      sync.Mutex
	loaded  map[string]*session
	folding map[string]*fold
	held    int64 // bytes of their evidence

	lasting context.Context // until the gateway ends: a fold outlives who asked for it
	stop    context.CancelFunc
	folds   sync.WaitGroup

	underway sync.Map // the decided acts that have not ended, by recordName
}

// fold is a session on its way into memory: there is one, however many wait for it.
type fold struct {
	done chan struct{}
	s    *session // before done is closed
	err  error
}

// now is the recorded time: UTC, to the microsecond, as records keep it.
func (ss *sessions) now() time.Time { return ss.clock().UTC().Truncate(time.Microsecond) }

// session is one open session: the scope of evidence. Everything in it is a
// fold of the session's records.
type session struct {
	id string

	mu         sync.Mutex
	evidence   *gate.Session     // nil for the session of requests that carry none
	next       uint64            // number of the newest record
	written    snapshot.At       // the newest record this process wrote or read
	answered   bool              // it is a result
	screened   [sha256.Size]byte // the input policy all its turns passed
	unscreened bool              // not all passed one
	kept       uint64            // the record of the newest snapshot
	keeping    bool              // one is being written
	queue      []queued
	flushing   bool
	outdated   error // why the evidence may not be what the store holds, nil when it is
	generation int   // how often the evidence was folded anew
	closed     bool
	warned     bool            // of how full it is
	halted     *writ.Rejection // the input policy ended its calls, or it was altered
	active     time.Time       // of its newest record: when the user's turns lapse
	opened     time.Time       // of its first
	// conversation is the newest that the host named, as records call it, "" for none.
	conversation string
	// own is the blob of what is Writ's own that its newest decision was held against.
	own      string
	called   bool     // a server's tool, since this process has it
	told     bool     // by its host, of a tool that was called
	open     openData // of its first
	lastUsed time.Time
	touched  time.Time
	bytes    int64 // of its evidence, as sessions.held counts it; guarded by sessions.mu

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

type openData struct {
	Principal string `json:"principal"`
	Carrier   string `json:"carrier"`
	Anonymous bool   `json:"anonymous,omitempty"` // of requests that carry no session
	// Secret is the digest of what its client carries: the register only finds
	// a session, this says whose it is.
	Secret string `json:"secret,omitempty"`
}

// newOpening returns a new secret and the opening of the session it is of.
func newOpening(principal string, by downstream.Carrier) (secret string, data openData) {
	secret = newSecret()
	return secret, openData{Principal: principal, Carrier: string(by), Secret: secretDigest(secret).String()}
}

// Session lifetimes and caps (attacks D03, D04).
const (
	sessionIdle     = 24 * time.Hour
	sessionLifetime = 30 * 24 * time.Hour
	maxLoaded       = 10_000  // sessions held in memory
	maxEvidence     = 1 << 30 // bytes of their evidence, as estimated
	touchEvery      = time.Minute
)

func newSessions(o Options, es *events) *sessions {
	ss := &sessions{store: o.Store, recorded: NewRulesets(o.Store), caps: o.Caps, maxHeld: cmp.Or(o.MaxHeld, maxEvidence), clock: o.Clock, events: es, snapshots: o.Snapshots,
		loaded: map[string]*session{}, folding: map[string]*fold{}}
	ss.lasting, ss.stop = context.WithCancel(context.Background())
	ss.screen.Store(o.Screen)
	if ss.clock == nil {
		ss.clock = time.Now
	}
	rand.Read(ss.sealKey[:])
	return ss
}

// newSecret returns 192 random bits, URL-safe.
func newSecret() string {
	var b [24]byte
	rand.Read(b[:]) // it does not fail
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// newPublicID returns a name that is unique and says nothing of the secret.
func newPublicID() string {
	var b [10]byte
	rand.Read(b[:])
	return "s_" + publicEncoding.EncodeToString(b[:])
}

var publicEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func secretDigest(secret string) audit.Digest { return sha256.Sum256([]byte(secret)) }

// OpenSession mints a session (downstream.Router).
func (ss *sessions) OpenSession(ctx context.Context, principal string, by downstream.Carrier) (string, downstream.Session, error) {
	secret, data := newOpening(principal, by)
	s, err := ss.open(ctx, secret, data)
	if err != nil {
		ss.events.complain(ctx, "a session could not be opened", "", err)
		return "", nil, err
	}
	return secret, handle{s.id}, nil
}

// open registers a session, or opens the stream of requests that carry
// none, and returns it ready for use.
func (ss *sessions) open(ctx context.Context, secret string, data openData) (*session, error) {
	now := ss.now()
	id, key, err := register(ctx, ss.store, secret, data, now)
	if err != nil {
		return nil, err
	}
	s := newSession(id, now)
	s.next, s.opened, s.open = 1, now, data
	s.screened = screenID(ss.screen.Load())
	if !data.Anonymous {
		s.evidence = gate.NewSession(id, key, ss.caps)
		ss.keep(s)
	}
	return s, nil
}

// register writes a session's first record and, unless it is the anonymous
// stream, the digest of its secret.
func register(ctx context.Context, st Store, secret string, data openData, now time.Time) (id string, key [32]byte, err error) {
	id = newPublicID()
	rand.Read(key[:])
	e, err := sealRecord(audit.Record{Kind: audit.KindOpen, Session: id, N: 1, Time: now, Data: mustJSON(data)}, value{valueKey, key[:]})
	if err != nil {
		return "", key, err
	}
	if _, err = st.Append(ctx, id, 0, []audit.Entry{e}); err != nil {
		return "", key, fmt.Errorf("gateway: the session could not be recorded: %w", err)
	}
	if data.Anonymous {
		return id, key, nil
	}
	err = st.AddSession(ctx, audit.Session{ID: id, SecretDigest: secretDigest(secret), Principal: data.Principal,
		Endpoint: data.Carrier, Created: now, LastUsed: now})
	if err != nil {
		return "", key, fmt.Errorf("gateway: the session could not be registered: %w", err)
	}
	return id, key, nil
}

// MintSession registers a session without a gateway, for `writ session new`:
// every gateway over the same store knows it at once.
func MintSession(ctx context.Context, st Store, principal string, clock func() time.Time) (secret, id string, err error) {
	secret, data := newOpening(principal, downstream.CarrierEndpoint)
	id, _, err = register(ctx, st, secret, data, clock().UTC().Truncate(time.Microsecond))
	return secret, id, err
}

// SessionID returns the public id of the session with that secret.
func SessionID(ctx context.Context, st audit.Sessions, secret string) (string, error) {
	s, err := st.SessionBySecret(ctx, secretDigest(secret))
	return s.ID, err
}

// keep holds a session in memory, and returns the one of its id that is held.
func (ss *sessions) keep(s *session) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if held := ss.loaded[s.id]; held != nil {
		return held
	}
	ss.loaded[s.id] = s
	ss.weigh(s)
	return s
}

// room counts what a session's evidence takes now, and reports whether there is
// memory for more of it. The caller holds s.mu.
func (ss *sessions) room(s *session) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.loaded[s.id] != s {
		return ss.held < ss.maxHeld
	}
	return ss.weigh(s)
}

// warnOfRoom says once of a session that its evidence is nearly at its caps: beyond
// them results vouch for nothing. The caller holds s.mu.
func (ss *sessions) warnOfRoom(s *session) {
	if used := s.evidence.Used(); used >= NearlyFull && !s.warned {
		s.warned = true
		ss.events.log.Warn("a session's evidence is nearly at its cap; what tools return beyond it vouches for nothing (writ.yaml: evidence_megabytes)", "session", s.id, "percent", used)
	}
}

// weigh counts what a session's evidence takes now, and makes room for it.
func (ss *sessions) weigh(s *session) bool {
	bytes := int64(0)
	if s.evidence != nil {
		bytes = s.evidence.Bytes()
	}
	ss.held += bytes - s.bytes
	s.bytes = bytes
	return ss.makeRoom(s)
}

// makeRoom drops sessions at rest from memory, those first that were used
// longest ago, where a cap does not hold, and reports whether there is room. It makes
// some more than is needed, since it looks at all of them. Evidence is in the store:
// dropping it loses nothing. The caller holds ss.mu.
func (ss *sessions) makeRoom(keep *session) bool {
	if len(ss.loaded) <= maxLoaded && ss.held < ss.maxHeld {
		return true
	}
	fits := func() bool { return len(ss.loaded) <= maxLoaded/8*7 && ss.held < ss.maxHeld/8*7 }
	type idle struct {
		*session
		used time.Time
	}
	var atRest []idle
	for _, s := range ss.loaded {
		if s != keep && s.mu.TryLock() {
			if !s.flushing && len(s.queue) == 0 && len(s.suspended) == 0 {
				atRest = append(atRest, idle{s, s.lastUsed})
			}
			s.mu.Unlock()
		}
	}
	slices.SortFunc(atRest, func(a, b idle) int { return a.used.Compare(b.used) })
	for i := 0; i < len(atRest) && !fits(); i++ {
		ss.unload(atRest[i].session)
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

// SessionNamed finds an open session by its public id, whoever carries it: for
// the person at the state directory, to speak in it or to reopen it. It is never
// reached from a client's side, where a session is its secret.
func (ss *sessions) SessionNamed(ctx context.Context, id string) (downstream.Session, error) {
	reg, err := ss.store.SessionByID(ctx, id)
	over := errors.Is(err, audit.ErrNotFound)
	if err == nil {
		over, err = HasEnded(ctx, ss.store, reg, ss.now())
	}
	if over {
		return nil, downstream.ErrNoSession
	}
	if err == nil {
		_, err = ss.get(ctx, id)
	}
	if err != nil {
		ss.events.complain(ctx, "a session could not be restored", id, err)
		return nil, err
	}
	return handle{id}, nil
}

// HasEnded reports whether a session never goes on: it was closed, or nobody used it for a
// day. The register is told when a client finds its session; who has one for himself,
// over stdio, is known by its newest record.
func HasEnded(ctx context.Context, st audit.Store, reg audit.Session, now time.Time) (bool, error) {
	if !reg.Closed.IsZero() || now.Sub(reg.LastUsed) <= sessionIdle {
		return !reg.Closed.IsZero(), nil
	}
	n, err := st.Head(ctx, reg.ID)
	if err != nil || n == 0 {
		return err == nil, err
	}
	for rec, err := range recordsFrom(ctx, st, reg.ID, n) {
		return err == nil && now.Sub(rec.Time) > sessionIdle, err
	}
	return true, nil
}

// get returns the session of that id. One that is not in memory is folded from its
// records; who has no time to wait until it is finds it there when he asks again.
func (ss *sessions) get(ctx context.Context, id string) (*session, error) {
	ss.mu.Lock()
	s, f := ss.loaded[id], ss.folding[id]
	if s == nil && f == nil {
		if err := ss.lasting.Err(); err != nil {
			ss.mu.Unlock()
			return nil, err
		}
		f = &fold{done: make(chan struct{})}
		ss.folding[id] = f
		ss.folds.Go(func() { ss.load(id, f) })
	}
	ss.mu.Unlock()
	if s != nil {
		return s, nil
	}
	select {
	case <-f.done:
		return f.s, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (ss *sessions) load(id string, f *fold) {
	s := newSession(id, time.Time{})
	if f.err = ss.restore(ss.lasting, s); f.err == nil || s.halted != nil {
		s.lastUsed = s.active
		f.s, f.err = ss.keep(s), nil
	}
	ss.mu.Lock()
	delete(ss.folding, id)
	ss.mu.Unlock()
	close(f.done)
}

// end ends what folds, and waits for it.
func (ss *sessions) end() {
	ss.mu.Lock()
	ss.stop()
	ss.mu.Unlock()
	ss.folds.Wait()
}

// of is the session of a request, or the stream of those without one.
func (ss *sessions) of(r *downstream.Request) (*session, error) {
	h, ok := r.Session.(handle)
	if !ok {
		return ss.anonymousStream()
	}
	if s := ss.inMemory(h.id); s != nil {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	s, err := ss.get(ctx, h.id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	return s, nil
}

func (ss *sessions) inMemory(id string) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.loaded[id]
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
	s, err := ss.open(ctx, "", openData{Principal: "none", Carrier: "none", Anonymous: true})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	ss.anonymous = s
	return s, nil
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

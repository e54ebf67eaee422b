package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sumdb "golang.org/x/mod/sumdb/note"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/learn"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/otlp"
	"github.com/writ-project/writ/internal/otlp/standin"
	"github.com/writ-project/writ/internal/snapshot"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	policies "github.com/writ-project/writ/policy"
)

// patience bounds every wait of these tests. Nothing is expected to take it.
const patience = 30 * time.Second

// testContext ends with the test, or when something hangs.
func testContext(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(tb.Context(), 2*patience)
	tb.Cleanup(cancel)
	return ctx
}

// rig is a gateway over a store, with the HTTP front of it.
type rig struct {
	tb     testing.TB
	store  gateway.Store
	opts   gateway.Options
	gw     *gateway.Gateway
	front  *httptest.Server
	http   *downstream.HTTP
	log    *logged
	closed bool
	faulty bool            // its servers may fail
	asking context.Context // of Start, Background if nil
	told   *standin.Collector
	tells  *otlp.Exporter // of what runs
}

// onMaps returns a store in memory; at the end of the test its whole log is
// verified and every decision in it is made again.
func onMaps(tb testing.TB) gateway.Store {
	signer, _ := storetest.Key()
	st := mapstore.New(signer)
	verifyAtEnd(tb, st)
	return st
}

// onSQLite is onMaps over a file.
func onSQLite(tb testing.TB) gateway.Store { return openSQLite(tb, tb.TempDir()) }

func openSQLite(tb testing.TB, dir string) *sqlite.Store {
	tb.Helper()
	signer, verifier := storetest.Key()
	st, err := sqlite.Open(dir, sqlite.Options{Signer: signer, Verifier: verifier})
	if err != nil {
		tb.Fatal(err)
	}
	verifyAtEnd(tb, st)
	return st
}

func verifyAtEnd(tb testing.TB, st gateway.Store) {
	tb.Cleanup(func() {
		verify(tb, st)
		if err := st.Close(); err != nil {
			tb.Errorf("the store: %v", err)
		}
	})
}

// verify checks the log and derives every decision in it anew, byte for byte.
func verify(tb testing.TB, st gateway.Store) (rep *audit.Report, replayed int) {
	tb.Helper()
	_, verifier := storetest.Key()
	return verifyBy(tb, st, verifier)
}

// verifyBy is verify of a log with another key.
func verifyBy(tb testing.TB, st gateway.Store, verifier sumdb.Verifier) (rep *audit.Report, replayed int) {
	tb.Helper()
	ctx := context.Background()
	if _, err := st.Checkpoint(ctx); err != nil && !errors.Is(err, audit.ErrNotFound) {
		tb.Errorf("checkpoint: %v", err)
	}
	snap, err := st.Snapshot(ctx)
	if err != nil {
		tb.Errorf("snapshot: %v", err)
		return nil, 0
	}
	defer snap.Close()
	replayers := map[string]*gateway.Replayer{}
	rules := map[string][]string{} // of each session, its policies by digest
	rep, err = audit.Verify(ctx, snap, audit.VerifyOptions{Verifier: verifier,
		Replay: func(rec *audit.Record, it *audit.Item) error {
			if replayers[rec.Session] == nil {
				replayers[rec.Session] = gateway.NewRulesets(st).Replayer()
				replayers[rec.Session].Certify()
				replayers[rec.Session].Learn()
			}
			if p := text(rec.Data, "policy"); p != "" && !slices.Contains(rules[rec.Session], p) {
				rules[rec.Session] = append(rules[rec.Session], p)
			}
			return replayers[rec.Session].Step(ctx, rec, it)
		}})
	if err != nil {
		tb.Errorf("verify: %v", err)
		return nil, 0
	}
	if rep.Problem != nil {
		tb.Errorf("verify: %v", rep.Problem)
	}
	skipped, redacted := 0, 0
	for id, f := range replayers {
		replayed += f.Replayed
		skipped += f.Skipped
		redacted += f.Redacted
		if s := f.Learned(); s != nil && len(rules[id]) == 1 && rep.Problem == nil {
			sameAgain(tb, st, s, rules[id][0])
		}
	}
	if int64(replayed+redacted) != rep.Decisions || skipped != 0 {
		tb.Errorf("%d of %d decisions were made again, %d are redacted, %d skipped", replayed, rep.Decisions, redacted, skipped)
	}
	return rep, replayed
}

// sameAgain has a session judged by its own policy, as `writ audit replay` does by another.
func sameAgain(tb testing.TB, st gateway.Store, s *learn.Session, rules string) {
	tb.Helper()
	d, err := audit.ParseDigest(rules)
	if err != nil {
		tb.Fatal(err)
	}
	src, err := st.Blob(context.Background(), d)
	if err != nil {
		tb.Errorf("the policy: %v", err)
		return
	}
	p, faults := policies.Parse("recorded policy", src)
	if len(faults) > 0 {
		tb.Error(faults)
		return
	}
	for _, d := range learn.Replay(p, []*learn.Session{s}).Otherwise {
		tb.Errorf("judged again by its own policy: %+v", d)
	}
}

// logged collects what the gateway logs.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func policy(tb testing.TB, text string) *policies.Policy {
	tb.Helper()
	p, faults := policies.Parse("policy.yaml", []byte(text))
	for _, f := range faults {
		tb.Errorf("policy %d:%d: %s (%s)", f.Line, f.Column, f.Message, f.Hint)
	}
	if p == nil {
		tb.FailNow()
	}
	return p
}

// front is how the tests authenticate: the bearer's name is the principal, and
// nobody named is the loopback one.
func principal(r *http.Request) (string, bool) {
	if who, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return who, true
	}
	return downstream.Loopback, true
}

// newRig starts a gateway over st in front of the servers, and its HTTP front.
func newRig(tb testing.TB, st gateway.Store, p *policies.Policy, servers ...upstream.Config) *rig {
	tb.Helper()
	for i := range servers {
		if servers[i].Limits.Refresh == 0 {
			servers[i].Limits.Refresh = time.Millisecond
		}
		if servers[i].Limits.RestartMin == 0 {
			servers[i].Limits.RestartMin = time.Millisecond
		}
	}
	r := &rig{tb: tb, store: st, opts: gateway.Options{Store: st, Policy: p, Servers: servers, Version: "test"}}
	if _, test := tb.(*testing.T); test {
		var err error
		if r.opts.Snapshots, err = snapshot.Open(tb.TempDir(), []byte("key")); err != nil {
			tb.Fatal(err)
		}
	}
	r.start()
	tb.Cleanup(r.stop)
	return r
}

func (r *rig) start() {
	r.tb.Helper()
	r.log = &logged{}
	o := r.opts
	o.Log = slog.New(slog.NewTextHandler(r.log, nil))
	if t, is := r.tb.(*testing.T); is && r.told == nil {
		r.told = standin.New(t) // it reads whatever any test has the gateway tell
	}
	if r.told != nil {
		r.tells = otlp.New(otlp.Options{Endpoint: r.told.URL, Signals: []string{otlp.Traces, otlp.Logs}, Log: o.Log})
		o.OTLP = r.tells
	}
	gw, err := gateway.New(o)
	if err != nil {
		r.tb.Fatal(err)
	}
	if r.asking == nil {
		r.asking = context.Background()
	}
	if err := gw.Start(r.asking); err != nil {
		r.tb.Fatal(err)
	}
	r.gw, r.closed = gw, false
	if err := gw.Ready(testContext(r.tb)); err != nil {
		r.tb.Errorf("not ready: %v", err)
	}
	for name, err := range gw.Failed() {
		if !r.faulty {
			r.tb.Errorf("server %s: %v", name, err)
		}
	}
	r.http = downstream.NewHTTP(gw, downstream.Options{Principal: principal})
	r.front = httptest.NewServer(r.http)
}

func (r *rig) stop() {
	if r.closed {
		return
	}
	r.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.http.Shutdown(ctx); err != nil {
		r.tb.Errorf("the HTTP front: %v", err)
	}
	r.front.Close()
	if r.opts.Snapshots != nil {
		if _, err := r.gw.Kept(context.Background()); err != nil {
			r.tb.Errorf("a snapshot: %v", err)
		}
	}
	if err := r.gw.Close(); err != nil {
		r.tb.Errorf("the gateway: %v", err)
	}
	r.tells.Close(ctx)
	if r.tb.Failed() {
		if text := r.log.String(); text != "" {
			r.tb.Logf("log:\n%s", text)
		}
	}
}

// restart ends the gateway and starts another over the same store.
func (r *rig) restart() {
	r.tb.Helper()
	r.stop()
	r.start()
}

// mint opens a session for the loopback principal and returns its secret.
func (r *rig) mint() string {
	r.tb.Helper()
	secret, _, err := createSession(testContext(r.tb), r.gw, downstream.Loopback)
	if err != nil {
		r.tb.Fatal(err)
	}
	return secret
}

func (r *rig) now() time.Time { return time.Now() }

// errInjected is what a broken store answers.
var errInjected = errors.New("injected: no space left on device")

// brokenStore is a store whose appends fail while told to.
type brokenStore struct {
	gateway.Store
	mu    sync.Mutex
	fails func(session string, entries []audit.Entry) bool
}

func (b *brokenStore) failWhen(f func(session string, entries []audit.Entry) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails = f
}

func (b *brokenStore) broken(session string, es []audit.Entry) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fails != nil && b.fails(session, es)
}

func (b *brokenStore) Append(ctx context.Context, session string, expected uint64, es []audit.Entry) (int64, error) {
	if b.broken(session, es) {
		return 0, errInjected
	}
	return b.Store.Append(ctx, session, expected, es)
}

func (b *brokenStore) AppendUnsynced(ctx context.Context, session string, expected uint64, es []audit.Entry) (int64, error) {
	if b.broken(session, es) {
		return 0, errInjected
	}
	return b.Store.AppendUnsynced(ctx, session, expected, es)
}

// kindOf is the kind of a sealed entry.
func kindOf(tb testing.TB, e audit.Entry) audit.Kind {
	rec, err := audit.ParseRecord(e.Leaf())
	if err != nil {
		tb.Fatal(err)
	}
	return rec.Kind
}

// createSession opens a session that a client carries in the URL, and returns its
// secret and its public id.
func createSession(ctx context.Context, g *gateway.Gateway, principal string) (secret, id string, err error) {
	secret, s, err := g.OpenSession(ctx, principal, downstream.CarrierEndpoint)
	if err != nil {
		return "", "", err
	}
	return secret, s.PublicID(), nil
}

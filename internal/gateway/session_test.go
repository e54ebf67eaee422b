package gateway_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/storetest"
)

// passed reports a tools/call that ran.
func passed(t testing.TB, a answer) {
	t.Helper()
	if a.err != nil || text(a.result, "isError") == "true" {
		t.Errorf("the call did not pass: %s %s", a.result, a.err)
	}
}

// refusal reports a call that was refused for the reason, at /id.
func refusal(t testing.TB, a answer, want string) {
	t.Helper()
	if got := refusedFor(a); got != want {
		t.Errorf("got %q, want %q (%s %s)", got, want, a.result, a.err)
	}
}

const (
	unseen    = `MISSING_PROVENANCE provenance.unseen "/id"`
	noSession = `MISSING_PROVENANCE provenance.no_session ""`
)

// toyRig is a gateway in front of the toy on the legacy wire over HTTP.
func toyRig(t testing.TB, st gateway.Store) (*rig, *toy) {
	y := newToy()
	return newRig(t, st, policy(t, toyPolicy), y.config(t, false, true)), y
}

// TestSessionsApart: evidence never crosses sessions (P11), and a session never
// crosses principals: of another principal, unknown, closed and malformed ones
// are all the same 404 (S05), on every carrier.
func TestSessionsApart(t *testing.T) {
	r, y := toyRig(t, onSQLite(t))
	ctx := testContext(t)

	alice := overHTTP(ctx, r, false, web{bearer: "alice"})
	passed(t, alice.call(ctx, "list_items", `{}`))
	for k := range kinds { // each of them a session of its own
		refusal(t, r.connect(ctx, k).call(ctx, "delete_item", `{"id":"item-17"}`), unseen)
	}
	refusal(t, overHTTP(ctx, r, false, web{bearer: "alice"}).call(ctx, "delete_item", `{"id":"item-17"}`), unseen)
	if gone := y.gone(); len(gone) != 0 {
		t.Fatalf("deleted %q", gone)
	}

	secret, id, err := createSession(ctx, r.gw, "alice")
	if err != nil {
		t.Fatal(err)
	}
	own := overHTTP(ctx, r, true, web{bearer: "alice", session: secret})
	passed(t, own.call(ctx, "list_items", `{}`))

	status := func(what, who, carrier, value string) (int, string) {
		t.Helper()
		_, _, msg := (&wire{tb: t, modern: carrier != "Mcp-Session-Id", caps: "{}"}).compose("tools/call", []byte(callParams("delete_item", `{"id":"item-17"}`)))
		url := r.front.URL + "/mcp"
		if carrier == "path" {
			url += "/s/" + value
		}
		req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(string(msg)))
		if err != nil {
			t.Fatal(err)
		}
		if carrier != "path" {
			req.Header.Set(carrier, value)
		}
		if who != "" {
			req.Header.Set("Authorization", "Bearer "+who)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if carrier == "Mcp-Session-Id" {
			req.Header.Set("MCP-Protocol-Version", "2025-11-25")
		} else {
			req.Header.Set("MCP-Protocol-Version", "2026-07-28")
			req.Header.Set("Mcp-Method", "tools/call")
			req.Header.Set("Mcp-Name", "delete_item")
		}
		tr := &http.Transport{}
		defer tr.CloseIdleConnections()
		resp, err := (&http.Client{Transport: tr}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	closedSecret, _, err := createSession(ctx, r.gw, "bob")
	if err != nil {
		t.Fatal(err)
	}
	bobs, err := r.gw.FindSession(ctx, "bob", closedSecret)
	if err != nil {
		t.Fatal("bob's session is not there")
	}
	r.gw.CloseSession(ctx, bobs)
	for _, carrier := range []string{"path", "Writ-Session", "Mcp-Session-Id"} {
		var first string
		for _, c := range []struct{ what, who, value string }{
			{"of alice, carried by bob", "bob", secret},
			{"of alice, carried by nobody", "", secret},
			{"unknown", "bob", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
			{"a public id", "alice", id},
			{"closed", "bob", closedSecret},
		} {
			code, body := status(c.what, c.who, carrier, c.value)
			if code != http.StatusNotFound {
				t.Errorf("%s by %s: status %d %s", c.what, carrier, code, body)
			}
			if first == "" {
				first = body
			} else if body != first {
				t.Errorf("%s by %s is told apart: %s, %s", c.what, carrier, body, first)
			}
		}
	}
	if gone := y.gone(); len(gone) != 0 {
		t.Errorf("deleted %q", gone)
	}
	passed(t, own.call(ctx, "delete_item", `{"id":"item-17"}`))

	// The secret stands in no record, no log and no blob.
	if strings.Contains(r.log.String(), secret) {
		t.Error("the log holds a session's secret")
	}
	snap, err := r.store.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for _, it := range storetest.Collect(t, snap.Scan(ctx, 0)) {
		if strings.Contains(string(it.Leaf), secret) {
			t.Error("a record holds a session's secret")
		}
		for _, v := range it.Values {
			if strings.Contains(string(v.Bytes), secret) {
				t.Error("a value holds a session's secret")
			}
		}
	}
}

// TestNoSession: a request of the stateless wire that carries no session can
// read; what it reads vouches for nothing, and its acts are refused with the
// hint that a session is missing. So it stays after a restart.
func TestNoSession(t *testing.T) {
	r, y := toyRig(t, onSQLite(t))
	ctx := testContext(t)
	for range 2 {
		w := overHTTP(ctx, r, true, web{})
		a := w.call(ctx, "list_items", `{}`)
		passed(t, a)
		if ev := string(outcomeMeta(a, gateway.MetaEvidence)); ev != `{"admissible":false,"why":"no_session"}` {
			t.Errorf("evidence %s", ev)
		}
		a = w.call(ctx, "delete_item", `{"id":"item-17"}`)
		refusal(t, a, noSession)
		checkRefusal(t, a)
		r.restart()
	}
	if gone := y.gone(); len(gone) != 0 {
		t.Errorf("deleted %q", gone)
	}
}

func outcomeMeta(a answer, key string) []byte {
	return get(a.result, "_meta", key)
}

// TestMinted: a session minted beside the gateway, as `writ session new` does,
// is served at its endpoint at once, on both wires; what one wire read vouches
// on the other.
func TestMinted(t *testing.T) {
	dir := t.TempDir()
	r, _ := toyRig(t, openSQLite(t, dir))
	ctx := testContext(t)
	signer, verifier := storetest.Key()
	beside, err := sqlite.Open(dir, sqlite.Options{Signer: signer, Verifier: verifier})
	if err != nil {
		t.Fatal(err)
	}
	secret, id, err := gateway.MintSession(ctx, beside, downstream.Loopback, r.now)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := gateway.SessionID(ctx, beside, secret); err != nil || got != id {
		t.Errorf("SessionID: %s %v, want %s", got, err, id)
	}
	modern := overHTTP(ctx, r, true, web{path: "/mcp/s/" + secret})
	passed(t, modern.call(ctx, "list_items", `{}`))
	legacy := overHTTP(ctx, r, false, web{path: "/mcp/s/" + secret})
	passed(t, legacy.call(ctx, "delete_item", `{"id":"item-17"}`))
	header := overHTTP(ctx, r, true, web{session: secret})
	passed(t, header.call(ctx, "delete_item", `{"id":"item-18"}`))
	if err := beside.CloseSession(ctx, id, r.now()); err != nil {
		t.Fatal(err)
	}
	if a := modern.request(ctx, "tools/call", callParams("list_items", `{}`)); a.err == nil {
		t.Errorf("a closed session is served: %s", a.result)
	}
	if err := beside.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTwoGateways: two gateways over one SQLite file serve one session. What
// one recorded vouches with the other; their records have one order (L04).
func TestTwoGateways(t *testing.T) {
	dir := t.TempDir()
	one, y1 := toyRig(t, openSQLite(t, dir))
	two, y2 := toyRig(t, openSQLite(t, dir))
	ctx := testContext(t)
	secret := one.mint()
	a := overHTTP(ctx, one, true, web{session: secret})
	b := overHTTP(ctx, two, true, web{session: secret})
	refusal(t, b.call(ctx, "delete_item", `{"id":"item-17"}`), unseen)
	passed(t, a.call(ctx, "list_items", `{}`))
	passed(t, b.call(ctx, "delete_item", `{"id":"item-17"}`))
	passed(t, a.call(ctx, "delete_item", `{"id":"item-18"}`))
	passed(t, b.call(ctx, "list_items", `{}`))
	passed(t, a.call(ctx, "list_items", `{}`))
	if g1, g2 := y1.gone(), y2.gone(); !slices.Equal(g1, []string{"item-18"}) || !slices.Equal(g2, []string{"item-17"}) {
		t.Errorf("deleted %q and %q", g1, g2)
	}

	// Both at once: everybody gets an answer, and the log is one chain.
	var wg sync.WaitGroup
	for i := range 20 {
		w := a
		if i%2 == 1 {
			w = b
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			w.call(ctx, "list_items", `{}`)
		}()
	}
	wg.Wait()
	if n := count(t, one.store, audit.KindOpen); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// TestManySessions: a session that was dropped from memory to make room for
// others (D03) is still the same session.
func TestManySessions(t *testing.T) {
	if testing.Short() {
		t.Skip("opens ten thousand sessions")
	}
	r, _ := toyRig(t, onMaps(t))
	ctx := testContext(t)
	w := overHTTP(ctx, r, false, web{})
	passed(t, w.call(ctx, "list_items", `{}`))
	for range 10_000 {
		if _, _, err := createSession(ctx, r.gw, "somebody"); err != nil {
			t.Fatal(err)
		}
	}
	passed(t, w.call(ctx, "delete_item", `{"id":"item-17"}`))
}

// count counts the records of a kind.
func count(t testing.TB, st gateway.Store, kind audit.Kind) (n int) {
	t.Helper()
	eachRecord(t, st, func(rec *audit.Record, _ *audit.Item) {
		if rec.Kind == kind {
			n++
		}
	})
	return n
}

// eachRecord shows the whole log.
// argumentsIn are the arguments in a decision's record, to the byte.
func argumentsIn(it *audit.Item) []byte {
	call, _ := it.Value("call")
	_, args, _ := bytes.Cut(call, []byte("\n"))
	return args
}

func eachRecord(t testing.TB, st gateway.Store, f func(rec *audit.Record, it *audit.Item)) {
	t.Helper()
	ctx := context.Background()
	snap, err := st.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for it, err := range snap.Scan(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		rec, err := audit.ParseRecord(it.Leaf)
		if err != nil {
			t.Fatal(err)
		}
		f(rec, &it)
	}
}

// TestRace is P21: an act that uses what a call returns, decided before that
// call has returned, is refused; after it, the same act passes.
func TestRace(t *testing.T) {
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	r := newRig(t, onSQLite(t), policy(t, itemPolicy), up.config(true))
	ctx := testContext(t)
	w := overHTTP(ctx, r, false, web{})
	arrived, release := make(chan struct{}), make(chan struct{})
	up.during = func(got received, _ func(string)) {
		if text(got.params, "name") == "list_items" {
			close(arrived)
			<-release
		}
	}
	up.reply(itemList)
	listed := make(chan answer)
	go func() { listed <- w.call(ctx, "list_items", `{}`) }()
	<-arrived
	refusal(t, w.call(ctx, "delete_item", `{"id":"item-17"}`), unseen)
	close(release)
	passed(t, <-listed)
	up.reply(`"result":{"content":[]}`)
	passed(t, w.call(ctx, "delete_item", `{"id":"item-17"}`))
}

// TestResultBeside: while an act of one gateway is at its server, another
// gateway appends to the session. The act's result is recorded all the same, and
// its client hears of it.
func TestResultBeside(t *testing.T) {
	dir := t.TempDir()
	one, y := toyRig(t, openSQLite(t, dir))
	two, _ := toyRig(t, openSQLite(t, dir))
	ctx := testContext(t)
	secret := one.mint()
	a := overHTTP(ctx, one, true, web{session: secret})
	b := overHTTP(ctx, two, true, web{session: secret})
	passed(t, a.call(ctx, "list_items", `{}`))
	y.deleting = func(context.Context, string) {
		passed(t, b.call(ctx, "list_items", `{}`))
		refusal(t, b.call(ctx, "delete_item", `{"id":"item-99"}`), unseen)
	}
	passed(t, a.call(ctx, "delete_item", `{"id":"item-17"}`))
	rep, _ := verify(t, one.store)
	if rep.Undone != 0 {
		t.Errorf("%d decisions have no known end", rep.Undone)
	}
}

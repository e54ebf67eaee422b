package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
)

// sickStore is a store that cannot be read while fault says how.
type sickStore struct {
	gateway.Store
	fault atomic.Value // string
}

var errSick = errors.New("too many open files\n\x1b[31mforged=line")

func (s *sickStore) is(fault string) bool { return s.fault.Load() == fault }

func (s *sickStore) SessionBySecret(ctx context.Context, secret audit.Digest) (audit.Session, error) {
	if s.is("register") {
		return audit.Session{}, errSick
	}
	return s.Store.SessionBySecret(ctx, secret)
}

func (s *sickStore) Append(ctx context.Context, session string, expected uint64, es []audit.Entry) (int64, error) {
	if s.is("full") {
		return 0, errSick
	}
	return s.Store.Append(ctx, session, expected, es)
}

func (s *sickStore) Read(ctx context.Context, session string, from uint64) iter.Seq2[audit.Item, error] {
	return func(yield func(audit.Item, error) bool) {
		for it, err := range s.Store.Read(ctx, session, from) {
			if s.is("records") {
				it, err = audit.Item{}, errSick
			}
			if !yield(it, err) || err != nil {
				return
			}
		}
	}
}

func (s *sickStore) Blob(ctx context.Context, name audit.Digest) ([]byte, error) {
	b, err := s.Store.Blob(ctx, name)
	if s.is("engine") {
		b = bytes.ReplaceAll(b, []byte(gateway.Engine), []byte("writ-gate/newer"))
	}
	return b, err
}

// TestUnreadable (N24): that a session cannot be found out about is no answer
// to whether there is one. It is 503, whatever failed, the operator is told in
// few lines, and the session has what it had when the fault is over. Of another
// principal it is as unknown as ever.
func TestUnreadable(t *testing.T) {
	ctx := testContext(t)
	st := &sickStore{Store: onSQLite(t)}
	st.fault.Store("")
	r, _ := toyRig(t, st)
	r.opts.Snapshots = nil // it does not count for another engine, which is another program
	secret := r.mint()
	w := overHTTP(ctx, r, true, web{session: secret})
	passed(t, w.call(ctx, "list_items", `{}`))
	post := func(who, carrier, value string) (int, string, string) {
		t.Helper()
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
		if carrier == "" {
			body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`
		}
		req, err := http.NewRequestWithContext(ctx, "POST", r.front.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("MCP-Protocol-Version", "2025-11-25")
		if carrier != "" {
			req.Header.Set(carrier, value)
		}
		if who != "" {
			req.Header.Set("Authorization", "Bearer "+who)
		}
		tr := &http.Transport{}
		defer tr.CloseIdleConnections()
		resp, err := (&http.Client{Transport: tr}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, resp.Header.Get("Retry-After"), string(b)
	}
	for _, fault := range []string{"register", "records", "engine"} {
		r.restart() // nothing is in memory
		st.fault.Store(fault)
		for _, carrier := range []string{"Mcp-Session-Id", "Writ-Session"} {
			for range 20 {
				if code, retry, body := post("", carrier, secret); code != 503 || retry == "" || strings.Contains(body, "forged") {
					t.Fatalf("%s, by %s: %d %q %s", fault, carrier, code, retry, body)
				}
			}
			if code, _, body := post("bob", carrier, secret); fault != "register" && code != 404 {
				t.Errorf("%s, of another: %d %s", fault, code, body)
			}
		}
		log := r.log.String()
		if n := strings.Count(log, "level=ERROR"); n == 0 || n > 5 {
			t.Errorf("%s: %d lines", fault, n)
		}
		if strings.ContainsAny(log, "\x1b") || strings.Contains(log, "\nforged") {
			t.Errorf("%s: the log is not escaped", fault)
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := r.gw.FindSession(gone, downstream.Loopback, secret); errors.Is(err, downstream.ErrNoSession) {
			t.Errorf("%s: a client that went away is told that there is no session", fault)
		}
		st.fault.Store("")
	}
	r.restart()
	w = overHTTP(ctx, r, true, web{session: secret})
	passed(t, w.call(ctx, "delete_item", `{"id":"item-17"}`))

	st.fault.Store("full")
	if code, retry, body := post("", "", ""); code != 503 || retry == "" {
		t.Errorf("opening: %d %q %s", code, retry, body)
	}
	st.fault.Store("")
	if code, _, body := post("", "Mcp-Session-Id", strings.Repeat("A", 32)); code != 404 {
		t.Errorf("one that never was: %d %s", code, body)
	}
}

// TestUnreadableOnStdio (N24): over stdio the process is the session. While its
// records cannot be written or read its calls are refused, and it goes on with
// what it had.
func TestUnreadableOnStdio(t *testing.T) {
	ctx := testContext(t)
	st := &sickStore{Store: onSQLite(t)}
	st.fault.Store("")
	r, _ := toyRig(t, st)
	w := r.connect(ctx, 0)
	passed(t, w.call(ctx, "list_items", `{}`))
	st.fault.Store("full")
	refusal(t, w.call(ctx, "delete_item", `{"id":"item-17"}`), notRecorded)
	st.fault.Store("records") // and now it cannot be folded anew
	refusal(t, w.call(ctx, "delete_item", `{"id":"item-17"}`), notRecorded)
	st.fault.Store("")
	passed(t, w.call(ctx, "delete_item", `{"id":"item-17"}`))
}

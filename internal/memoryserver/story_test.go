package memoryserver_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
	"github.com/writ-project/writ/policy"
)

// A house is a gateway with nothing behind it but the memory, on SQLite: one
// state directory, any number of namespaces, principals and sessions.
type house struct {
	t     *testing.T
	dir   string
	store *sqlite.Store
	now   time.Time

	namespace, principal string
	gateways             map[string]*gateway.Gateway // by namespace
	keepers              map[string]*memoryserver.Keeper
	sessions             map[string]downstream.Session // by namespace, principal and name
	session              string
	task                 string // JSON, "" for none
	answer               string
	bytes                int // of the results since the last line that was about them
}

// TestStories plays each file of testdata/stories: what is tried against the
// memory through the gateway, and what comes of it. A line is one of
//
//	# …                     a comment; the first says what is shown and names the attacks
//	namespace NAME          go on in that namespace (default)
//	as PRINCIPAL            go on as that person (alice), in a session of hers
//	session NAME            go on in that session (one)
//	task JSON               the host names that task in each call from here on; without one, none
//	clock DURATION          set the clock on, or back
//	say TEXT                the user's own words, on record
//	call TOOL JSON          a call; its answer is what the next lines are about
//	request METHOD JSON     a request of another method; its whole answer
//	operate COMMAND JSON    an operator's command; so is its outcome
//	want TEXT               the answer holds that text
//	not TEXT                the answer does not
//	most N                  the results since the last such line come to at most so many bytes
//	gone TEXT               it is neither in a value of the namespace nor in a text that is found
//	rebuild                 every process starts anew
//	verify                  every event is decided again, and the state is the same
//
// Each ends with verify. $S is the public id of the session.
func TestStories(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "stories", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			signer, verifier := storetest.Key()
			h := &house{t: t, dir: t.TempDir(), now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), namespace: "default", principal: "alice", session: "one",
				sessions: map[string]downstream.Session{}}
			if h.store, err = sqlite.Open(h.dir, sqlite.Options{Signer: signer, Verifier: verifier}); err != nil {
				t.Fatal(err)
			}
			h.open()
			for i, line := range strings.Split(string(b), "\n") {
				if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
					continue
				}
				if wrong := h.play(line); wrong != "" {
					t.Errorf("line %d: %s\n%s", i+1, line, wrong)
				}
			}
			h.play("verify")
			h.close()
			if err := h.store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func (h *house) open() {
	h.gateways, h.keepers = map[string]*gateway.Gateway{}, map[string]*memoryserver.Keeper{}
}

func (h *house) close() {
	for _, g := range h.gateways {
		g.Close()
	}
}

// gw is the gateway of the namespace.
func (h *house) gw() *gateway.Gateway {
	h.t.Helper()
	if g := h.gateways[h.namespace]; g != nil {
		return g
	}
	p := memory.Builtin()
	clock := func() time.Time { h.now = h.now.Add(time.Second); return h.now }
	k, err := memoryserver.Open(h.t.Context(), memoryserver.Options{Store: h.store, Namespace: h.namespace, Policy: p, Mode: memory.Hardened, Clock: clock})
	if err != nil {
		h.t.Fatal(err)
	}
	own, faults := policy.Parse("policy.yaml", []byte("tools: {}"))
	if len(faults) > 0 {
		h.t.Fatal(faults)
	}
	g, err := gateway.New(gateway.Options{Store: h.store, Policy: own, Inside: memoryserver.NewServer(k, memoryserver.Full), Version: "test"})
	if err == nil {
		err = g.Start(context.Background())
	}
	if err == nil {
		err = g.Ready(h.t.Context())
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.gateways[h.namespace], h.keepers[h.namespace] = g, k
	return g
}

// in is the session the story is in.
func (h *house) in() downstream.Session {
	h.t.Helper()
	key := h.namespace + " " + h.principal + " " + h.session
	if s := h.sessions[key]; s != nil {
		return s
	}
	secret, _, err := h.gw().OpenSession(h.t.Context(), h.principal, downstream.CarrierEndpoint)
	if err != nil {
		h.t.Fatal(err)
	}
	s, err := h.gw().FindSession(h.t.Context(), h.principal, secret)
	if err != nil {
		h.t.Fatal("no session")
	}
	h.sessions[key] = s
	return s
}

// play does one line and says what is wrong with it.
func (h *house) play(line string) (wrong string) {
	ctx := h.t.Context()
	word, rest, _ := strings.Cut(line, " ")
	if strings.Contains(rest, "$S") {
		rest = strings.ReplaceAll(rest, "$S", h.in().PublicID())
	}
	switch word {
	case "namespace":
		h.namespace = rest
	case "as":
		h.principal = rest
	case "session":
		h.session = rest
	case "task":
		h.task = rest
	case "clock":
		d, err := time.ParseDuration(rest)
		if err != nil {
			return err.Error()
		}
		h.now = h.now.Add(d)
	case "say":
		if _, err := h.gw().Turn(ctx, h.in(), rest); err != nil {
			return err.Error()
		}
	case "call":
		tool, args, _ := strings.Cut(rest, " ")
		params := strictjson.Set([]byte("{}"), "name", strictjson.Quote(tool))
		result := h.request("tools/call", strictjson.Set(params, "arguments", []byte(args)))
		if c := strictjson.Get(result, "structuredContent"); c != nil {
			h.answer = string(c)
		} else if blocks, ok := strictjson.Elements(strictjson.Get(result, "content")); ok && len(blocks) > 0 {
			h.answer, _ = strictjson.Text(strictjson.Get(blocks[0], "text"))
		}
	case "request":
		method, params, _ := strings.Cut(rest, " ")
		h.request(method, []byte(params))
	case "operate":
		h.gw()
		command, args, _ := strings.Cut(rest, " ")
		d, err := h.keepers[h.namespace].Operate(ctx, "operator", command, []byte(args))
		if err != nil {
			return err.Error()
		}
		h.answer = fmt.Sprintf("%+v", d.Outcome)
		if d.Outcome.Rejection != nil {
			h.answer += fmt.Sprintf(" %+v", *d.Outcome.Rejection)
		}
	case "want":
		if !strings.Contains(h.answer, rest) {
			return "the answer is " + h.answer
		}
	case "not":
		if strings.Contains(h.answer, rest) {
			return "the answer is " + h.answer
		}
	case "most":
		n := h.bytes
		h.bytes = 0
		if most, err := strconv.Atoi(rest); err != nil || n > most {
			return fmt.Sprintf("they come to %d", n)
		}
	case "gone":
		return h.left(rest)
	case "rebuild":
		h.close()
		h.open()
		clear(h.sessions) // of the gateways that ended: a session goes on as a new one
	case "verify":
		return h.verify()
	default:
		return "no such line"
	}
	return ""
}

// request makes one in the session; its answer is the story's.
func (h *house) request(method string, params []byte) []byte {
	h.t.Helper()
	if h.task != "" {
		params = strictjson.Set(params, "_meta", strictjson.Set([]byte("{}"), gateway.MetaTask, []byte(h.task)))
	}
	r := h.gw().Handle(h.t.Context(), &downstream.Request{
		Method: method, Params: strictjson.Of(params), ID: []byte("1"), Era: downstream.Modern,
		Version: downstream.Version20260728, Principal: h.principal, Session: h.in(), ClientCapabilities: strictjson.Of([]byte("{}")), Peer: gateway.NoPeer,
	})
	h.answer = string(r.Result)
	h.bytes += len(r.Result)
	if r.Err != nil {
		h.answer = fmt.Sprintf("error %d %s %s", r.Err.Code, r.Err.Message, r.Err.Data)
	}
	return r.Result
}

// left says where a text is left.
func (h *house) left(text string) (where string) {
	for it, err := range h.store.Read(h.t.Context(), memoryserver.LogOf(h.namespace), 1) {
		if err != nil {
			return err.Error()
		}
		if v, _ := it.Value("proposal"); bytes.Contains(v, []byte(text)) || bytes.Contains(it.Leaf, []byte(text)) {
			return fmt.Sprintf("record %d holds it: %s %s", it.N, it.Leaf, v)
		}
	}
	for name, k := range h.keepers {
		if err := k.Read(h.t.Context(), func(s *memory.State, _ time.Time) {
			var rows bytes.Buffer
			if err := s.Encode(&rows); err != nil {
				where = err.Error()
			}
			for row := range bytes.Lines(rows.Bytes()) {
				if bytes.Contains(row, bytes.Trim(strictjson.Quote(text), `"`)) {
					where = fmt.Sprintf("the state of %s holds it: %s", name, row)
				}
			}
		}); err != nil {
			return err.Error()
		}
	}
	return where
}

// verify decides every event of every namespace again.
func (h *house) verify() (wrong string) {
	ctx := h.t.Context()
	for ns, k := range h.keepers {
		f := memoryserver.NewFold(h.store)
		for it, err := range h.store.Read(ctx, memoryserver.LogOf(ns), 1) {
			if err != nil {
				return err.Error()
			}
			err = f.Step(ctx, &it)
			if err != nil {
				return fmt.Sprintf("namespace %s: %v", ns, err)
			}
		}
		if err := k.Read(ctx, func(s *memory.State, _ time.Time) {
			if s.Digest() != f.State().Digest() {
				wrong = fmt.Sprintf("namespace %s: the state is %s, its log comes to %s", ns, s.Digest(), f.State().Digest())
			}
		}); err != nil {
			return err.Error()
		}
	}
	return wrong
}

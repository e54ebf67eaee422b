package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// answering answers what a server asks.
func answering(context.Context, string, []byte) ([]byte, *rpc.Error) { return []byte("{}"), nil }

// decided is a request that its decision allows, on the lists as of n.
func decided(n uint64) Request {
	r := Request{
		Decision: &gate.Decision{Call: gate.Call{Tool: "t"}, Shadow: true, Arguments: strictjson.Of([]byte("{}"))},
		Method:   "tools/call", Params: strictjson.Of([]byte(`{"name":"t","arguments":{}}`)), Listed: new(atomic.Uint64),
	}
	r.Listed.Store(n)
	return r
}

// TestHeldBack (N10, N12): a judged request leaves only while the lists are
// those its decision rests on, and one that rests on none never does.
func TestHeldBack(t *testing.T) {
	var mu sync.Mutex
	begun, calls := 0, 0
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			mu.Lock()
			begun++
			mu.Unlock()
		}
		body, _ := io.ReadAll(r.Body)
		id := idMember().FindSubmatch(body)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case bytes.Contains(body, []byte(`"server/discover"`)):
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}`, id[1])
		case bytes.Contains(body, []byte(`"tools/call"`)):
			mu.Lock()
			calls++
			mu.Unlock()
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id[1])
		}
	}))
	defer ts.Close()
	s := New(Config{Name: "h", URL: ts.URL, Era: Modern}, Callbacks{}, nil)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := decided(s.Changes())
	if out := s.Call(t.Context(), r); out.End != Answered {
		t.Fatalf("%s %v", out.End, out.Err)
	}
	s.changes.Add(1)
	for what, r := range map[string]Request{"of before": r, "of no list": decided(0), "without": {Decision: r.Decision, Method: r.Method, Params: r.Params}} {
		if out := s.Call(t.Context(), r); out.End != NotSent || !out.Changed {
			t.Errorf("%s: %s %v", what, out.End, out.Err)
		}
	}
	// A connection takes long to make: what happens meanwhile counts.
	r = decided(s.Changes())
	c, _, _ := s.await(t.Context())
	body := &heldBody{ReadCloser: io.NopCloser(strings.NewReader("x")), mayLeave: func() bool { return c.mayLeave(&call{request: r}) }}
	s.changes.Add(1)
	if b, err := io.ReadAll(body); !errors.Is(err, errHeld) || len(b) > 0 {
		t.Errorf("%q left, %v", b, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if begun != 1 || calls != 1 {
		t.Errorf("%d calls reached the server, of %d it saw the beginning", calls, begun)
	}
}

// TestListChangedAnywhere (N16): a list_changed counts from its reading on,
// wherever it stands: alone, in a batch, on a call's own stream; and a line that
// is none does not.
func TestListChangedAnywhere(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}`
	for raw, want := range map[string]uint64{
		fmt.Sprintf(note, "tools"):          1,
		fmt.Sprintf(note, "prompts"):        1,
		fmt.Sprintf(note, `re\u0073ources`): 1,
		" [" + fmt.Sprintf(note, "tools") + `,{"jsonrpc":"2.0","id":1,"result":{}},` + fmt.Sprintf(note, "tools") + "]": 2,
		`[[` + fmt.Sprintf(note, "tools") + `]]`:                                              0,
		`["notifications/tools/list_changed"]`:                                                0,
		`{"jsonrpc":"2.0","id":1,"method":"notifications/tools/list_changed"}`:                0,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"list_changed"}}`: 0,
		`list_changed`: 0,
	} {
		for _, stream := range []*call{nil, {request: decided(1), inbox: rpc.NewQueue[item](inboxSize), done: make(chan struct{})}} {
			c := testConn(false)
			c.receive([]byte(raw), stream, stream == nil)
			if got := c.s.Changes(); got != want {
				t.Errorf("%s counts %d, want %d", raw, got, want)
			}
		}
	}
}

// TestWhoIsAsked (N17, N18): a question of a server that names no call reaches
// the one person it can be for, and is judged as an argument of an act where it
// could be one's.
func TestWhoIsAsked(t *testing.T) {
	ask := func(k *call) { k.request.OnRequest = answering }
	of := func(owner string, act bool) *call {
		k := &call{request: Request{Owner: owner, Decision: &gate.Decision{Effect: policy.Read}}}
		if ask(k); act {
			k.request.Decision = &gate.Decision{Effect: policy.Delete}
		}
		return k
	}
	read, act, other := of("a", false), of("a", true), of("b", false)
	for name, x := range map[string]struct {
		open []*call
		lost []string
		want *call
	}{
		"one":                             {[]*call{read}, nil, read},
		"two of one owner":                {[]*call{read, act, read, read}, nil, act},
		"two owners":                      {[]*call{read, other}, nil, nil},
		"a call given up, of another":     {[]*call{read}, []string{"b"}, nil},
		"a call given up, of the same":    {[]*call{read}, []string{"a"}, read},
		"given up by too many to be kept": {[]*call{read}, []string{""}, nil},
		"none":                            {nil, []string{"a"}, nil},
	} {
		for range 20 { // maps have no order
			c := testConn(false)
			for i, k := range x.open {
				c.calls[fmt.Sprint(i)] = k
			}
			c.lost = map[string]givenUp{"list": {"", false}}
			for i, o := range x.lost {
				c.lost[fmt.Sprint(i)] = givenUp{o, true}
			}
			if got := c.soleOwner(); got != x.want {
				t.Fatalf("%s: the wrong one is asked", name)
			}
		}
	}
}

// TestGivenUp (N17, P22): a call that ended without an answer is remembered
// until the server answers it after all; that answer is late, the next is stray.
func TestGivenUp(t *testing.T) {
	c := testConn(false)
	stray := func() int {
		c.s.courier.mu.Lock()
		defer c.s.courier.mu.Unlock()
		if s := c.s.courier.slots[string(StrayResponse)]; s != nil {
			return s.count
		}
		return 0
	}
	c.lost = map[string]givenUp{}
	k := c.open(Request{Method: "tools/call", Owner: "b", OnRequest: answering}, false, nil)
	c.settle(k, unknown("cancelled"))
	c.forget(k)
	if len(c.lost) != 1 {
		t.Fatalf("%d are remembered", len(c.lost))
	}
	c.receive([]byte(`{"jsonrpc":"2.0","id":`+string(k.id)+`,"result":{}}`), nil, true)
	if len(c.lost) != 0 || stray() != 0 {
		t.Errorf("it is still remembered, or called stray %d times", stray())
	}
	c.receive([]byte(`{"jsonrpc":"2.0","id":`+string(k.id)+`,"result":{}}`), nil, true)
	if stray() != 1 {
		t.Error("the second answer is not stray")
	}
	k = c.open(Request{Method: "tools/list"}, false, nil)
	c.settle(k, unknown("cancelled"))
	c.forget(k)
	c.receive([]byte(`{"jsonrpc":"2.0","id":`+string(k.id)+`,"result":{}}`), nil, true)
	if stray() != 1 {
		t.Error("a late list is stray")
	}
	for range maxLost + 10 {
		k := c.open(Request{Method: "tools/call", Owner: "a", OnRequest: answering}, false, nil)
		c.settle(k, unknown("cancelled"))
		c.forget(k)
	}
	if len(c.lost) != maxLost+1 {
		t.Errorf("%d are remembered", len(c.lost))
	}
}

// TestResultTypes (N19): a result of a type nobody knows is never one.
func TestResultTypes(t *testing.T) {
	for _, x := range []struct {
		result         string
		decided, known bool
	}{
		{`{}`, true, true},
		{`{"resultType":"complete"}`, true, true},
		{`{"resultType":"complete"}`, false, true},
		{`{"resultType":"input_required"}`, true, true},
		{`{"resultType":"input_required"}`, false, false}, // a list asks for nothing
		{`{"resultType":"task","tools":[]}`, false, false},
		{`{"resultType":"Complete"}`, true, false},
		{`{"resultType":""}`, true, false},
		{`{"resultType":null}`, true, false},
		{`{"resultType":["complete"]}`, true, false},
		{`{"resultTyp\u0065":"later"}`, true, false},
	} {
		c := testConn(false)
		k := &call{request: decided(1)}
		if !x.decided {
			k.request.Decision = nil
		}
		out := c.settle(k, Response{End: Answered, Result: strictjson.Of([]byte(x.result))})
		if known := out.End == Answered; known != x.known || known == (out.Err != nil) {
			t.Errorf("%s: %s %v", x.result, out.End, out.Err)
		}
	}
}

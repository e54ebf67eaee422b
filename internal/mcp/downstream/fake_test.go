package downstream

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a small Router in memory. Its tools show what arrived and reach back
// to the client.
type fake struct {
	mu       sync.Mutex
	sessions map[string]*fakeSession // by secret
	opened   int
	subs     map[int]func(string, []byte)
	subbed   chan Listener // gets every Subscribe, if set
	n        int
	started  chan string   // gets the name of a "wait" call when it starts
	ended    chan error    // gets the cause of a "wait" call's end
	release  chan struct{} // ends "wait" calls
	fail     bool          // OpenSession fails
	refused  []refusal
}

type fakeSession struct {
	id, principal string
	carrier       Carrier
}

func (s *fakeSession) PublicID() string { return s.id }

func newFake() *fake {
	return &fake{
		sessions: map[string]*fakeSession{}, subs: map[int]func(string, []byte){},
		started: make(chan string, 100), ended: make(chan error, 100), release: make(chan struct{}),
	}
}

// refusal is what a Hook was told.
type refusal struct {
	Why     Why
	Session string
}

func (f *fake) hook(why Why, session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = append(f.refused, refusal{why, session})
}

// takeRefused returns and forgets what was refused.
func (f *fake) takeRefused() []refusal {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.refused
	f.refused = nil
	return r
}

func (f *fake) Describe(context.Context) ([]byte, []byte, string) {
	return []byte(`{"tools":{"listChanged":true},"logging":{}}`), []byte(`{"name":"fake","version":"1"}`), "Read me."
}

func (f *fake) OpenSession(_ context.Context, principal string, by Carrier) (string, Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail {
		return "", nil, context.Canceled
	}
	f.opened++
	s := &fakeSession{"s_" + strconv.Itoa(f.opened), principal, by}
	secret := rand.Text()
	f.sessions[secret] = s
	return secret, s, nil
}

// mint puts a session with a known secret.
func (f *fake) mint(secret, principal string) *fakeSession {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &fakeSession{"s_" + secret, principal, CarrierEndpoint}
	f.sessions[secret] = s
	return s
}

func (f *fake) FindSession(_ context.Context, principal, secret string) (Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sessions[secret]
	switch {
	case secret == "unreadable-secret":
		return nil, errors.New("\x1b[31mtoo many open files")
	case s == nil || s.principal != principal:
		return nil, ErrNoSession
	}
	return s, nil
}

func (f *fake) CloseSession(_ context.Context, s Session) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, v := range f.sessions {
		if v == s {
			delete(f.sessions, k)
		}
	}
	return nil
}

func (f *fake) open() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sessions)
}

func (f *fake) Subscribe(_ context.Context, l Listener, deliver func(string, []byte)) (Filter, func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	n := f.n
	f.subs[n] = deliver
	if f.subbed != nil {
		f.subbed <- l
	}
	granted := l.Filter
	granted.Resources = false // this server has none
	return granted, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subs, n)
	}
}

// tell sends a notification to all that listen.
func (f *fake) tell(method, params string) {
	f.mu.Lock()
	subs := make([]func(string, []byte), 0, len(f.subs))
	for _, d := range f.subs {
		subs = append(subs, d)
	}
	f.mu.Unlock()
	for _, d := range subs {
		var p []byte
		if params != "" {
			p = []byte(params)
		}
		d(method, p)
	}
}

func text(s string) Reply {
	return Reply{Result: slices.Concat([]byte(`{"content":[{"type":"text","text":`), strictjson.Quote(s), []byte(`}]}`))}
}

func (f *fake) Handle(ctx context.Context, r *Request) Reply {
	switch r.Method {
	case "tools/list":
		return Reply{Result: []byte(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"ask","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private","resultType":"complete"}`)}
	case "tools/call":
		name, _ := r.Params.Get("name").Text()
		return f.call(ctx, name, r)
	case "prompts/get", "resources/read", "logging/setLevel", "resources/subscribe":
		return Reply{Result: []byte(`{}`)}
	}
	return Reply{Err: rpc.Errorf(rpc.CodeMethodNotFound, "no such method")}
}

func (f *fake) call(ctx context.Context, name string, r *Request) Reply {
	arguments := r.Params.Get("arguments")
	args := arguments.Raw()
	switch name {
	case "echo": // the exact bytes of the arguments
		if args == nil {
			args = []byte("null")
		}
		return Reply{Result: slices.Concat([]byte(`{"content":[],"structuredContent":`), args, []byte("}"))}
	case "who":
		s := "none"
		if r.Session != nil {
			s = r.Session.PublicID()
		}
		return text(r.Principal + " " + s + " " + r.Version + " " + string(r.ProgressToken))
	case "progress":
		for i := range 2 {
			if err := r.Peer.Notify(ctx, "notifications/progress", []byte(`{"progressToken":1,"progress":`+strconv.Itoa(i)+`}`)); err != nil {
				return text("not notified")
			}
		}
		return text("done")
	case "log":
		r.Peer.Notify(ctx, "notifications/message", []byte(`{"level":"info","data":"x"}`))
		return text("logged")
	case "ask":
		a, err := r.Peer.Request(ctx, "elicitation/create", []byte(`{"message":"name?","requestedSchema":{"type":"object","properties":{}}}`))
		if err != nil {
			return Reply{Err: err}
		}
		return Reply{Result: slices.Concat([]byte(`{"content":[],"structuredContent":{"answer":`), a, []byte(`}}`))}
	case "lines": // W13: line breaks between tokens, and an escaped one inside
		return Reply{Result: []byte("{\n \"content\": [\r\n{\"type\":\"text\",\"text\":\"x\\n\\ndata: {evil}\"}]}")}
	case "notifylines":
		r.Peer.Notify(ctx, "notifications/progress", []byte("{\"message\":\r\n\"a\\n\\nevent: evil\\nid: 1\"}"))
		return f.call(ctx, "lines", r)
	case "wait":
		f.started <- string(r.ID)
		select {
		case <-ctx.Done():
			f.ended <- context.Cause(ctx)
			return Reply{Err: rpc.Errorf(rpc.CodeInternal, "cancelled")}
		case <-f.release:
			f.ended <- nil
			return text("released")
		}
	case "stream": // one notification, then as wait
		r.Peer.Notify(ctx, "notifications/progress", []byte(`{"progressToken":1,"progress":0}`))
		return f.call(ctx, "wait", r)
	case "header":
		if err := CheckParamHeaders(strictjson.Of([]byte(`{"properties":{"city":{"x-mcp-header":"City"},"n":{"x-mcp-header":"N"},"o":{"properties":{"b":{"x-mcp-header":"B"}}}}}`)), arguments, r.ParamHeaders); err != nil {
			return Reply{Err: err}
		}
		return text("ok")
	case "needs":
		return Reply{Err: &rpc.Error{Code: rpc.CodeMissingCap, Message: "sampling is needed", Data: []byte(`{"requiredCapabilities":{"sampling":{}}}`)}}
	case "upstream": // a server's own error, to the byte
		return Reply{Err: &rpc.Error{Code: 7, Raw: []byte(`{"code":7,"message":"m","data":{"n":9007199254740993},"x":1.0}`)}}
	case "empty":
		return Reply{}
	}
	return Reply{Err: rpc.Errorf(rpc.CodeInvalidParams, "no such tool")}
}

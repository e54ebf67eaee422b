package upstream_test

import (
	"context"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/hostile"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

const envSDK = "WRIT_TEST_SDK_SERVER"

// TestMain lets the test binary be the servers it tests against.
func TestMain(m *testing.M) {
	upstream.GuardMain()
	hostile.RunIfAsked()
	if os.Getenv(envGateway) != "" {
		gateway()
	}
	if os.Getenv(envSDK) != "" {
		if err := sdkServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	// The guard lives as long as the process.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/writ-project/writ/internal/mcp/upstream.reapGuard"))
}

func contextForever() context.Context { return context.Background() }

// record keeps what the callbacks said.
type record struct {
	mu      sync.Mutex
	events  map[upstream.EventKind]int
	lists   []string
	notices []string
	change  chan struct{}
}

func newRecord() *record {
	return &record{events: map[upstream.EventKind]int{}, change: make(chan struct{}, 1)}
}

func (r *record) callbacks() upstream.Callbacks {
	touch := func(f func()) {
		r.mu.Lock()
		f()
		r.mu.Unlock()
		select {
		case r.change <- struct{}{}:
		default:
		}
	}
	return upstream.Callbacks{
		ListChanged: func(k string) { touch(func() { r.lists = append(r.lists, k) }) },
		Notify: func(m string, p []byte, _ string) {
			touch(func() { r.notices = append(r.notices, m+" "+string(p)) })
		},
		Event: func(e upstream.Event) { touch(func() { r.events[e.Kind] += e.Count }) },
	}
}

func (r *record) count(k upstream.EventKind) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[k]
}

// until waits for a condition on the record.
func (r *record) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	stuck := time.After(20 * time.Second)
	for {
		r.mu.Lock()
		done := ok()
		r.mu.Unlock()
		if done {
			return
		}
		select {
		case <-r.change:
		case <-stuck:
			t.Fatalf("never happened: %s", what)
		}
	}
}

// allowed is a decision that lets a call of a method pass.
func allowed(m policy.Method, tool, args string) *gate.Decision {
	d := &gate.Decision{Call: gate.Call{Method: m, Tool: tool}, Shadow: true}
	if args != "" {
		d.Arguments = strictjson.Of([]byte(args))
	}
	return d
}

// judged is a request of a method whose members are its arguments.
func judged(m policy.Method, params string) upstream.Request {
	return upstream.Request{Decision: allowed(m, "", params), Method: string(m), Params: strictjson.Of([]byte(params))}
}

func callTool(name, args string) upstream.Request {
	return upstream.Request{
		Decision: allowed(policy.CallTool, name, args), Method: "tools/call",
		Params: strictjson.Of([]byte(`{"name":"` + name + `","arguments":` + args + `}`)),
	}
}

// call makes a judged request that rests on the lists as they are, again while
// they change under it.
func call(ctx context.Context, s *upstream.Server, r upstream.Request) (out upstream.Response) {
	for range 100 {
		s.Info(ctx)
		r.Listed = new(atomic.Uint64)
		r.Listed.Store(s.Changes())
		if out = s.Call(ctx, r); !out.Changed {
			break
		}
	}
	return out
}

// child is the configuration of this binary as a hostile server.
func child(t *testing.T, mode string) upstream.Config {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return upstream.Config{
		Name: "h", Command: []string{exe}, Env: map[string]string{hostile.EnvMode: mode},
		Version: "test",
	}
}

// start starts a server that is closed when the test ends.
func start(t *testing.T, cfg upstream.Config, r *record, clock upstream.Clock) *upstream.Server {
	t.Helper()
	s := upstream.New(cfg, r.callbacks(), clock)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// fakeClock stands still until it is moved.
type fakeClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*fakeTimer
	added  chan time.Duration // each timer's length, when it is set
}

type fakeTimer struct {
	at time.Time
	d  time.Duration
	f  func()
}

func newFakeClock() *fakeClock {
	return &fakeClock{now: time.Unix(1_800_000_000, 0), added: make(chan time.Duration, 10_000)}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	tm := &fakeTimer{at: c.now.Add(d), d: d, f: f}
	c.timers = append(c.timers, tm)
	select {
	case c.added <- d:
	default:
	}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		n := len(c.timers)
		c.timers = slices.DeleteFunc(c.timers, func(x *fakeTimer) bool { return x == tm })
		return len(c.timers) < n
	}
}

// advance moves the clock and fires what is due.
func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []*fakeTimer
	c.timers = slices.DeleteFunc(c.timers, func(x *fakeTimer) bool {
		if x.at.After(c.now) {
			return false
		}
		due = append(due, x)
		return true
	})
	c.mu.Unlock()
	for _, x := range due {
		go x.f()
	}
}

// waitTimer waits until a timer of that length is set.
func (c *fakeClock) waitTimer(t *testing.T, d time.Duration) {
	t.Helper()
	stuck := time.After(20 * time.Second)
	for {
		select {
		case got := <-c.added:
			if got == d {
				return
			}
		case <-stuck:
			t.Fatalf("no timer of %s was set", d)
		}
	}
}

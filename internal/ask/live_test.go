package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/example"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// mainExample makes TestMain the example server too, as a process that keeps what it is sent
// in the file of its last argument: what reached it is counted there.
func mainExample() bool {
	if len(os.Args) < 3 || os.Args[1] != "example-server" {
		return false
	}
	f, err := os.OpenFile(os.Args[2], os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		err = example.Serve(context.Background(), io.TeeReader(os.Stdin, f), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// A live is one file in testdata/ask: requests, one after another. In front of
// "toy" each has a host and a gateway of its own over one log, as with `writ ask`
// one after another; in front of the example server each session has one, as at
// its prompt.
type live struct {
	// About says what it shows, and names the attacks it is.
	About string `yaml:"about"`
	// Policy is the operator's; PIN(name) stands for the pin of that tool of
	// Tools. Without it the server is the example server, in a process.
	Policy string `yaml:"policy"`
	// Tools are the definitions that the server "toy" lists.
	Tools []string `yaml:"tools"`
	// Allow narrows the policy's tools.
	Allow  []string `yaml:"allow"`
	Shadow bool     `yaml:"shadow"`
	// Screened puts the input policy into the gateway, and none that halts
	// anything before it.
	Screened bool       `yaml:"screened"`
	Steps    []liveStep `yaml:"steps"`
}

type liveStep struct {
	Request string `yaml:"request"` // "it" where it is left out
	Session string `yaml:"session"` // "one" where it is left out
	Plan    string `yaml:"plan"`
	Summary string `yaml:"summary"` // asked for where it is given
	// Tools are what the server lists from here on, Reply the member of its next
	// answer: `"result":…` or `"error":…`.
	Tools []string `yaml:"tools"`
	Reply string   `yaml:"reply"`
	Hangs bool     `yaml:"hangs"` // the server ends the connection in the middle

	Status Status      `yaml:"status"` // "answered" where it is left out
	Stage  claim.Stage `yaml:"stage"`  // "answer" where it is left out
	Reason string      `yaml:"reason"`
	Called []string    `yaml:"called"` // what the server was sent: name and arguments
	Idle   bool        `yaml:"idle"`   // the server was not started or asked for anything
	Same   int         `yaml:"same"`   // the rejection is that of the step of this number, byte for byte
	Note   string      `yaml:"note"`
	Shadow string      `yaml:"shadow"` // the reason that a gateway which does not shadow would have
	Void   bool        `yaml:"void"`   // the result vouches for nothing
	Holds  string      `yaml:"holds"`  // a part of what the server returned, or of what is said to the user
}

// toy is a server that answers what it was told to, over HTTP, and counts.
type toy struct {
	wait   chan struct{} // closed before it answers anything; nil does not wait
	mu     sync.Mutex
	tools  []string
	reply  string
	hangs  bool
	any    int // requests of any kind
	called []string
}

func (s *toy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if s.wait != nil {
		<-s.wait
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.any++
	id := strictjson.Get(body, "id")
	out := `"error":{"code":-32601,"message":"no such method"}`
	switch textOf(body, "method") {
	case "initialize":
		out = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"toy","version":"1"}}`
	case "tools/list":
		out = `"result":{"tools":[` + strings.Join(s.tools, ",") + `]}`
	case "tools/call":
		p := strictjson.Get(body, "params")
		s.called = append(s.called, textOf(p, "name")+" "+string(strictjson.Get(p, "arguments")))
		if s.hangs {
			panic(http.ErrAbortHandler)
		}
		out = s.reply
	}
	if id == nil || r.Method != http.MethodPost {
		w.WriteHeader(map[bool]int{true: http.StatusAccepted, false: http.StatusMethodNotAllowed}[r.Method == http.MethodPost])
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, id, out)
}

// TestAsk plays testdata/ask over real gateways.
func TestAsk(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "ask", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in testdata/ask: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c live
			if err := yaml.Load(b, &c, yaml.WithKnownFields(), yaml.WithUniqueKeys(), yaml.WithSingleDocument()); err != nil {
				t.Fatal(err)
			}
			if c.About == "" || len(c.Steps) == 0 {
				t.Fatal("it says nothing")
			}
			newLiveRun(t, &c).play()
		})
	}
}

// A liveRun is one file being played.
type liveRun struct {
	t       *testing.T
	c       *live
	policy  *policy.Policy
	store   *mapstore.Store
	toy     *toy
	server  upstream.Config
	tap     string // what the example server was sent
	secrets map[string]string
	refused []string // each step's rejection
	wrap    func(Door) Door
	prompts map[string]*prompt
}

// A prompt is a host that goes on.
type prompt struct {
	*Host
	opened *bool
	end    func()
}

var pinRef = regexp.MustCompile(`PIN\((\w+)\)`)

func newLiveRun(t *testing.T, c *live) *liveRun {
	signer, verifier := storetest.Key()
	r := &liveRun{t: t, c: c, store: mapstore.New(signer), secrets: map[string]string{}, prompts: map[string]*prompt{}}
	text := string(example.Policy())
	if c.Policy == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		r.tap = filepath.Join(t.TempDir(), "sent")
		r.server = upstream.Config{Name: example.Name, Command: []string{self, "example-server", r.tap}, Era: upstream.Modern}
	} else {
		r.toy = &toy{tools: c.Tools}
		s := httptest.NewServer(r.toy)
		t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
		r.server = upstream.Config{Name: "toy", URL: s.URL + "/mcp", Era: upstream.Legacy}
		text = pinRef.ReplaceAllStringFunc(c.Policy, func(ref string) string {
			var defs []gate.Definition
			for _, d := range c.Tools {
				defs = append(defs, gate.Definition{Server: "toy", Raw: []byte(d)})
			}
			cat, _ := gate.NewCatalogue(defs, nil)
			return cat.Lookup("toy", pinRef.FindStringSubmatch(ref)[1]).Pin
		})
	}
	var faults any
	if r.policy, faults = parsePolicy(text); r.policy == nil {
		t.Fatal(faults)
	}
	t.Cleanup(func() { // every decision and summary is made again from the log
		ctx := context.Background()
		if _, err := r.store.Checkpoint(ctx); err != nil && !errors.Is(err, audit.ErrNotFound) {
			t.Error(err)
		}
		snap, err := r.store.Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		replayers := map[string]*gateway.Replayer{}
		rep, err := audit.Verify(ctx, snap, audit.VerifyOptions{Verifier: verifier, Replay: func(rec *audit.Record, it *audit.Item) error {
			if replayers[rec.Session] == nil {
				replayers[rec.Session] = gateway.NewRulesets(r.store).Replayer()
			}
			return replayers[rec.Session].Step(ctx, rec, it)
		}})
		if err != nil || rep.Problem != nil {
			t.Errorf("the log: %v %+v", err, rep)
		}
		for _, f := range replayers {
			if f.Skipped > 0 {
				t.Errorf("%d decisions or summaries were not made again", f.Skipped)
			}
		}
	})
	return r
}

func parsePolicy(text string) (*policy.Policy, any) {
	p, faults := policy.Parse("policy.yaml", []byte(text))
	return p, faults
}

// saw is what the server saw so far: whether it was reached at all, and its
// tools/call.
func (r *liveRun) saw() (reached int, called []string) {
	if r.toy != nil {
		r.toy.mu.Lock()
		defer r.toy.mu.Unlock()
		return r.toy.any, append([]string(nil), r.toy.called...)
	}
	b, err := os.ReadFile(r.tap)
	if err != nil {
		return 0, nil
	}
	for line := range bytes.Lines(b) {
		if textOf(line, "method") == "tools/call" {
			p := strictjson.Get(line, "params")
			called = append(called, textOf(p, "name")+" "+string(strictjson.Get(p, "arguments")))
		}
	}
	return len(b), called
}

// lax is an input policy that halts nothing a test says.
const lax = `version: 1
classes:
  - { id: none, title: None, action: halt, reply: No., rules: [{ id: none, patterns: ['nobody says this'] }] }
`

// host is a new host over a gateway of its own, which end ends.
func (r *liveRun) host(x *liveStep, o Options) (h *Host, opened *bool, end func()) {
	var g *gateway.Gateway
	opened = new(bool)
	o.Screen, o.Allow, o.Shadow = screen.Default(), Allow(r.policy, r.c.Allow), r.c.Shadow
	opts := gateway.Options{Store: r.store, Policy: r.policy, Servers: []upstream.Config{r.server}, Version: "test", Shadow: r.c.Shadow}
	if r.c.Screened {
		s, faults := screen.Parse("lax", []byte(lax))
		if s == nil {
			r.t.Fatal(faults)
		}
		opts.Screen, o.Screen = o.Screen, s
	}
	session := x.Session
	if session == "" {
		session = "one"
	}
	o.Open = func(ctx context.Context) (Door, error) {
		*opened = true
		var err error
		if g, err = gateway.New(opts); err != nil {
			return nil, err
		}
		if err := g.Start(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
		if r.secrets[session] == "" {
			if r.secrets[session], _, err = g.OpenSession(ctx, downstream.Loopback, downstream.CarrierEndpoint); err != nil {
				return nil, err
			}
		}
		s, err := g.FindSession(ctx, downstream.Loopback, r.secrets[session])
		if err != nil {
			return nil, errors.New("the session is not open")
		}
		if r.wrap != nil {
			return r.wrap(NewDoor(g, s)), nil
		}
		return NewDoor(g, s), nil
	}
	h, err := New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return h, opened, func() {
		if g != nil {
			if err := g.Close(); err != nil {
				r.t.Error(err)
			}
		}
	}
}

func (r *liveRun) play() {
	for i := range r.c.Steps {
		x := &r.c.Steps[i]
		if wrong := r.step(x); wrong != "" {
			r.t.Errorf("step %d: %s", i+1, wrong)
		}
	}
}

func (r *liveRun) step(x *liveStep) (wrong string) {
	if r.toy != nil {
		r.toy.mu.Lock()
		r.toy.reply, r.toy.hangs = x.Reply, x.Hangs
		if x.Tools != nil {
			r.toy.tools = x.Tools
		}
		r.toy.mu.Unlock()
	}
	reached, called := r.saw()
	o := Options{Planner: Manual(x.Plan), PlannerName: "manual", Runs: filepath.Join(r.t.TempDir(), "runs")}
	if x.Summary != "" {
		o.Summariser = &fakeModel{raw: x.Summary}
	}
	h := r.prompts[x.Session]
	if h == nil {
		h = &prompt{}
		h.Host, h.opened, h.end = r.host(x, o)
	}
	h.o.Planner, h.o.Summariser, h.o.Runs = o.Planner, o.Summariser, o.Runs
	request := x.Request
	if request == "" {
		request = "it"
	}
	before := *h.opened
	a, err := h.Ask(r.t.Context(), request)
	if r.toy != nil {
		h.end()
	} else if r.prompts[x.Session] == nil {
		r.prompts[x.Session] = h
		r.t.Cleanup(h.end)
	}

	want, stage := x.Status, x.Stage
	if want == "" {
		want = Answered
	}
	if stage == "" {
		stage = claim.StageAnswer
	}
	reason, rejection := "", []byte("null")
	if a.Rejection != nil {
		reason = string(a.Rejection.Reason)
		rejection, _ = json.Marshal(a.Rejection)
	}
	r.refused = append(r.refused, string(rejection))
	all, _ := json.Marshal(a)
	if a.Status != want || a.Stage != stage || reason != x.Reason || (err != nil) != (want == Failed) {
		return fmt.Sprintf("%s at %s for %s, %v: %s", a.Status, a.Stage, reason, err, all)
	}
	now, calls := r.saw()
	calls = calls[len(called):]
	if strings.Join(calls, "\n") != strings.Join(x.Called, "\n") {
		return fmt.Sprintf("the server was called with %q: %s", calls, all)
	}
	if len(calls) > 1 {
		return "INV-6: two calls"
	}
	if x.Idle && (now != reached || *h.opened != before) || !x.Idle && r.toy != nil && now == reached {
		return fmt.Sprintf("the server was idle: %v", now == reached)
	}
	if x.Same > 0 && r.refused[x.Same-1] != string(rejection) {
		return fmt.Sprintf("the rejection is %s, and not that of step %d, %s", rejection, x.Same, r.refused[x.Same-1])
	}
	if a.Note != x.Note {
		return "the note is " + a.Note
	}
	shadow := ""
	if a.Shadow != nil {
		shadow = string(a.Shadow.Reason)
	}
	if shadow != x.Shadow {
		return "the shadow is " + shadow
	}
	if x.Void == a.Admissible && a.Evidence != "" {
		return fmt.Sprintf("admissible: %v", a.Admissible)
	}
	if x.Holds != "" && !strings.Contains(string(a.Result), x.Holds) && !strings.Contains(a.Message, x.Holds) && (err == nil || !strings.Contains(err.Error(), x.Holds)) {
		return fmt.Sprintf("%s is not in %s, %v", x.Holds, all, err)
	}
	if (a.Summary != nil) != (x.Summary != "" && want == Answered) {
		return fmt.Sprintf("the summary: %s", all)
	}
	checkEvents(r.t, o.Runs, a, stage, want)
	if files, _ := filepath.Glob(filepath.Join(o.Runs, "*")); len(files) == 1 {
		// What a case lets a planner or server make up has this in it.
		if b, err := os.ReadFile(files[0]); err != nil || bytes.Contains(b, []byte("SECRET")) {
			return fmt.Sprintf("the event file holds a text that is not ours: %s %v", b, err)
		}
	}
	return ""
}

// TestDiscoverWaits: a server that is slower than the others is listed, and one
// that fails is named.
func TestDiscoverWaits(t *testing.T) {
	tool := func(name string) []string {
		return []string{`{"name":"` + name + `","inputSchema":{"type":"object","additionalProperties":false}}`}
	}
	quick, slow := &toy{tools: tool("a")}, &toy{tools: tool("b"), wait: make(chan struct{})}
	var servers []upstream.Config
	for name, h := range map[string]http.Handler{"quick": quick, "slow": slow, "broken": http.NotFoundHandler()} {
		s := httptest.NewServer(h)
		t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
		servers = append(servers, upstream.Config{Name: name, URL: s.URL + "/mcp", Era: upstream.Legacy})
	}
	p, faults := parsePolicy("pins: optional\ntools: {quick/a: {effect: read}, slow/b: {effect: read}}\n")
	if p == nil {
		t.Fatal(faults)
	}
	g, err := gateway.New(gateway.Options{Store: mapstore.New(nil), Policy: p, Servers: servers, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	secret, _, err := g.OpenSession(t.Context(), downstream.Loopback, downstream.CarrierEndpoint)
	if err != nil {
		t.Fatal(err)
	}
	session, _ := g.FindSession(t.Context(), downstream.Loopback, secret)
	released := make(chan error, 1)
	go func() { // the gateway shows the quick one's tools before the slow one says anything
		released <- g.Ready(t.Context())
		close(slow.wait)
	}()
	l, err := NewDoor(g, session).Discover(t.Context())
	if err := <-released; err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range l.Tools {
		names = append(names, x.Server+"/"+x.Name)
	}
	if got := fmt.Sprint(names, l.Servers, l.Failed); got != "[quick/a slow/b] [quick slow] [broken]" {
		t.Error(got)
	}
}

package upstream_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/writ-project/writ/internal/hostile"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
)

// quick are limits small enough to be reached in a test; nothing asserts how
// long something took.
var quick = upstream.Limits{
	Call: time.Second, Probe: 300 * time.Millisecond, LineTime: 300 * time.Millisecond,
	Write: 300 * time.Millisecond, Grace: 300 * time.Millisecond, RestartMin: 10 * time.Millisecond,
}

// outcome is what a call of echo comes to.
type outcome struct {
	end   upstream.End
	err   bool   // the server's answer is an error, or ours
	holds string // part of the result
	event upstream.EventKind
	// after says how the next call ends; the server must survive the fault.
	after upstream.End
	long  bool // needs the limits as they are
}

const ok = upstream.Answered

var stdioCases = map[string]outcome{
	"plain":         {end: ok, holds: `{\"text\":\"x\"}`},
	"banner":        {end: ok, holds: "x", event: upstream.SkippedLine},        // U04
	"banner-json":   {end: ok, holds: "x", event: upstream.SkippedLine},        // U04
	"noise":         {end: ok, holds: "x", event: upstream.SkippedLine},        // U04
	"noiseflood":    {end: upstream.Unknown, err: true, event: upstream.Noise}, // U04
	"pretty":        {end: ok, holds: "x", event: upstream.SkippedLine},
	"twoobjects":    {end: ok, holds: "x", event: upstream.SkippedLine},                                                  // see below
	"batch":         {end: ok, holds: "x", event: upstream.SkippedLine},                                                  // W08
	"bom":           {end: ok, holds: "x", event: upstream.SkippedLine},                                                  // W06
	"nul":           {end: ok, holds: "x", event: upstream.SkippedLine},                                                  // W06
	"crlf":          {end: ok, holds: "x"},                                                                               // framing
	"badutf8":       {end: upstream.Unknown, err: true, event: upstream.BadMessage},                                      // W05
	"surrogate":     {end: upstream.Unknown, err: true, event: upstream.BadMessage},                                      // W05
	"bothmembers":   {end: upstream.Unknown, err: true, event: upstream.BadMessage},                                      // W09
	"dupkeys":       {end: upstream.Unknown, err: true, event: upstream.BadMessage},                                      // W01
	"escapedkeys":   {end: upstream.Unknown, err: true, event: upstream.BadMessage},                                      // W02
	"deepresult":    {end: upstream.Unknown, err: true, event: upstream.BadMessage},                                      // W15
	"bignumber":     {end: upstream.Unknown, err: true, event: upstream.BadMessage},                                      // W16
	"doublereply":   {end: ok, holds: "x", event: upstream.StrayResponse},                                                // P22
	"wrongid":       {end: ok, holds: "x", event: upstream.StrayResponse},                                                // P22
	"strid":         {end: ok, holds: "x", event: upstream.StrayResponse},                                                // P22
	"floatid":       {end: upstream.Unknown, err: true, event: upstream.BadMessage},                                      // P22, W07: an id that is no id, next to one that is ours
	"unsolicited":   {end: ok, holds: "x", event: upstream.StrayResponse},                                                // P22
	"noreply":       {end: upstream.Unknown, err: true, after: upstream.Unknown},                                         // U06
	"halfline":      {end: upstream.Unknown, err: true, event: upstream.SlowLine},                                        // U06
	"drip":          {end: upstream.Unknown, err: true, event: upstream.SlowLine},                                        // U06
	"huge":          {end: upstream.TooLarge, err: true, event: upstream.LongLine, long: true, after: upstream.TooLarge}, // U07
	"hugeidlast":    {end: upstream.TooLarge, err: true, event: upstream.LongLine, long: true, after: upstream.TooLarge}, // U07
	"exit":          {end: upstream.Unknown, err: true, event: upstream.ConnectionLost},                                  // U08
	"halfexit":      {end: upstream.Unknown, err: true, event: upstream.ConnectionLost},                                  // framing
	"stderrflood":   {end: ok, holds: "x"},                                                                               // framing
	"asks":          {end: ok, holds: "-32601", event: upstream.UndeclaredAsk},                                           // T16
	"lateprogress":  {end: ok, holds: "x", event: upstream.StrayProgress},                                                // P23
	"errordata":     {end: ok, err: true},                                                                                // JSON-RPC
	"errorstring":   {end: ok, err: true},                                                                                // JSON-RPC
	"rawresult":     {end: ok, holds: hostile.RawResult},
	"hangsonprobe":  {end: ok, holds: "x"},
	"diesonprobe":   {end: ok, holds: "x"},
	"errorsonprobe": {end: ok, holds: "x"},
	"oldversion":    {end: ok, holds: "x"},
	"forks":         {end: ok, holds: "x"},
	"ignoreeof":     {end: ok, holds: "x"},
}

// TestHostileStdio: each fault ends as the table says, is reported, and leaves
// a server that takes the next call.
func TestHostileStdio(t *testing.T) {
	for mode, want := range stdioCases {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			cfg := child(t, mode)
			if !want.long {
				cfg.Limits = quick
			}
			if mode != "hangsonprobe" {
				cfg.Limits.Probe = 0
			}
			if mode != "noreply" { // the others end by themselves
				cfg.Limits.Call = 0
			}
			r := newRecord()
			s := start(t, cfg, r, nil)
			if _, err := s.Info(t.Context()); err != nil {
				t.Fatal(err)
			}
			out := call(t.Context(), s, callTool("echo", `{"text":"x"}`))
			if out.End != want.end || (out.Err != nil) != want.err || !strings.Contains(string(out.Result.Raw()), want.holds) {
				t.Errorf("got %s %v %.200q", out.End, out.Err, out.Result.Raw())
			}
			if strings.Contains(string(out.Result.Raw()), "forged") {
				t.Error("a forged answer was accepted")
			}
			switch mode {
			case "rawresult":
				if string(out.Result.Raw()) != hostile.RawResult {
					t.Errorf("bytes changed: %s", out.Result.Raw())
				}
			case "errordata":
				if string(out.Err.Encode()) != hostile.RawError || out.Err.Code != -32099 {
					t.Errorf("bytes changed: %s", out.Err.Encode())
				}
			case "errorstring":
				if out.Err.Code != rpc.CodeInternal {
					t.Errorf("code %d", out.Err.Code)
				}
			case "stderrflood":
				r.until(t, "the end of standard error", func() bool { return strings.HasSuffix(string(s.Stderr()), "last words\n") || poke(r) })
				if n := len(s.Stderr()); n > 64<<10 {
					t.Errorf("%d bytes kept", n)
				}
			}
			if want.event != "" {
				r.until(t, string(want.event), func() bool { return r.events[want.event] > 0 })
			}
			// Whatever happened, the next request is served.
			next := upstream.NotSent
			for range 100 {
				if next = s.Do(t.Context(), upstream.Request{Method: "ping"}).End; next != upstream.NotSent {
					break
				}
				r.until(t, "restart", func() bool { return r.events[upstream.Restarted] > 0 || poke(r) })
			}
			if next != ok {
				t.Errorf("ping afterwards: %s", next)
			}
		})
	}
}

// poke makes until look again.
func poke(r *record) bool {
	select {
	case r.change <- struct{}{}:
	default:
	}
	return false
}

// TestHostileHandshake: servers that cannot be used are reported, and nothing
// is sent to them.
func TestHostileHandshake(t *testing.T) {
	for _, mode := range []string{"exitatonce", "badversion", "refuses"} { // U08
		t.Run(mode, func(t *testing.T) {
			cfg := child(t, mode)
			cfg.Limits = quick
			cfg.Limits.RestartMin = time.Hour
			cfg.Limits.RestartMax = time.Hour
			r := newRecord()
			s := start(t, cfg, r, nil)
			if info, err := s.Info(t.Context()); err == nil {
				t.Fatalf("ready: %+v", info)
			}
			if out := call(t.Context(), s, callTool("echo", `{}`)); out.End != upstream.NotSent {
				t.Errorf("%s", out.End)
			}
			r.until(t, "connect_failed", func() bool { return r.events[upstream.ConnectFailed] == 1 })
		})
	}
	t.Run("no such command", func(t *testing.T) {
		cfg := child(t, "plain")
		cfg.Command = []string{"/nonexistent/\x1b[2Jserver"}
		s := start(t, cfg, newRecord(), nil)
		_, err := s.Info(t.Context())
		if err == nil || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q", err)
		}
	})
}

// TestClosedWhileConnecting: a server that was given up before it had answered has not
// failed, so that a gateway which ends puts nothing on record of it.
func TestClosedWhileConnecting(t *testing.T) {
	asked, over := make(chan struct{}, 8), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-over
	}))
	defer srv.Close()
	defer close(over)
	r := newRecord()
	s := start(t, upstream.Config{Name: "h", URL: srv.URL, Version: "test"}, r, nil)
	<-asked
	s.Close()
	if n := r.count(upstream.ConnectFailed); n != 0 {
		t.Errorf("%d events", n)
	}
}

// TestHostileLists: a list that breaks the bounds is not used.
func TestHostileLists(t *testing.T) {
	var hits atomic.Int32
	trap, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := trap.Accept()
			if err != nil {
				return
			}
			hits.Add(1)
			c.Close()
		}
	}()
	defer trap.Close()
	for mode, faulty := range map[string]string{
		"dupnames":   "two of its tools have one name", // T04
		"noname":     "has no name",                    // T04
		"loopcursor": "a cursor came back",             // T13
		"endless":    "more than 100 pages",            // T13
		"manyitems":  "more than 2000 items",           // T13
		"ansi":       "",                               // T05: the names are judged by the catalogue
		"deepschema": "",                               // T09: likewise
		"remoteref":  "",                               // T08, T15: and nothing is fetched
	} {
		t.Run(mode, func(t *testing.T) {
			cfg := child(t, mode)
			cfg.Env["HOSTILE_URL"] = "http://" + trap.Addr().String()
			s := start(t, cfg, newRecord(), nil)
			l, err := s.List(t.Context(), "tools/list", "tools")
			switch {
			case faulty == "" && err != nil:
				t.Error(err)
			case faulty != "" && (err == nil || !strings.Contains(err.Error(), faulty) || len(l) > 0):
				t.Errorf("%d items, %v", len(l), err)
			}
			for _, it := range l {
				if !strings.Contains(hostile.ToolList(mode, ""), string(it)) && mode != "remoteref" {
					t.Errorf("an item's bytes changed: %s", it)
				}
			}
		})
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("T08: %d connections", n)
	}
}

// TestFlood (T14): 20,000 list_changed are at most two refreshes while the
// clock stands still, one more after the window.
func TestFlood(t *testing.T) {
	clock := newFakeClock()
	r := newRecord()
	cfg := child(t, "notifflood")
	cfg.Limits.Refresh = 7 * time.Second
	s := start(t, cfg, r, clock)
	if out := call(t.Context(), s, callTool("echo", `{}`)); out.End != ok {
		t.Fatalf("%s %v", out.End, out.Err)
	}
	clock.waitTimer(t, 7*time.Second) // the rest waits for the window's end
	if n := len(snapshot(r)); n != 1 {
		t.Errorf("%d refreshes before the window ended", n)
	}
	clock.advance(7 * time.Second)
	r.until(t, "the second refresh", func() bool { return len(r.lists) == 2 })
	s.Close()
	if n := len(snapshot(r)); n != 2 {
		t.Errorf("%d refreshes", n)
	}
}

func snapshot(r *record) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lists...)
}

// TestBackoff (U08): the wait between restarts doubles to its bound, calls are
// refused at once meanwhile, and the crashing call is never sent again.
func TestBackoff(t *testing.T) {
	clock := newFakeClock()
	cfg := child(t, "exitatonce")
	cfg.Limits.RestartMin, cfg.Limits.RestartMax = 101*time.Second, 500*time.Second
	s := start(t, cfg, newRecord(), clock)
	for _, d := range []time.Duration{101, 202, 404, 500, 500} {
		clock.waitTimer(t, d*time.Second)
		if out := call(t.Context(), s, callTool("echo", `{}`)); out.End != upstream.NotSent {
			t.Errorf("while waiting: %s", out.End)
		}
		clock.advance(d * time.Second)
	}
}

// TestEnvironment (U03): the child sees what is listed, PATH and HOME, and
// nothing else of this process.
func TestEnvironment(t *testing.T) {
	t.Setenv("WRIT_TEST_SECRET", "leak")
	cfg := child(t, "plain")
	cfg.Env["LISTED"] = "yes"
	s := start(t, cfg, newRecord(), nil)
	out := call(t.Context(), s, callTool("getenv", `{}`))
	names := map[string]bool{}
	text := strings.TrimSuffix(strings.TrimPrefix(string(out.Result.Raw()), `{"content":[{"type":"text","text":"`), `"}]}`)
	for _, kv := range strings.Split(text, `\n`) {
		k, _, _ := strings.Cut(kv, "=")
		names[k] = true
	}
	for k := range names {
		switch k {
		case "PATH", "HOME", "LISTED", hostile.EnvMode:
		default:
			t.Errorf("the child sees %q", k)
		}
	}
	if !names["LISTED"] {
		t.Errorf("got %s", out.Result.Raw())
	}
}

// TestElicitOnStdio: the server's question reaches the one owner with an open
// call, and nobody when there are two.
func TestElicitOnStdio(t *testing.T) {
	cfg := child(t, "elicits")
	cfg.ClientCapabilities = []byte(`{"elicitation":{}}`)
	cfg.Limits.Call = 5 * time.Second // does not run while the person is asked
	clock := newFakeClock()
	s := start(t, cfg, newRecord(), clock)
	r := callTool("echo", `{}`)
	r.Owner = "a"
	r.OnRequest = func(ctx context.Context, m string, p []byte) ([]byte, *rpc.Error) {
		if m != "elicitation/create" || !strings.Contains(string(p), "sure?") {
			t.Errorf("%s %s", m, p)
		}
		clock.advance(6 * time.Second)
		if ctx.Err() != nil {
			t.Error("the call's time ran while a person was asked")
		}
		return []byte(`{"action":"accept","content":{"n":1.0}}`), nil
	}
	out := call(t.Context(), s, r)
	if out.End != ok || !strings.Contains(string(out.Result.Raw()), `{\"action\":\"accept\",\"content\":{\"n\":1.0}}`) {
		t.Errorf("%s %v %s", out.End, out.Err, out.Result.Raw())
	}
	r.OnRequest = nil
	out = call(t.Context(), s, r)
	if out.End != ok || !strings.Contains(string(out.Result.Raw()), "-32601") {
		t.Errorf("%s %v %s", out.End, out.Err, out.Result.Raw())
	}
}

// TestCancelOnStdio (U06): a call that is given up is cancelled at the server by
// its id, and its late end is nobody's.
func TestCancelOnStdio(t *testing.T) {
	s := start(t, child(t, "noreply"), newRecord(), nil)
	if _, err := s.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := callTool("echo", `{}`)
	go func() {
		for !strings.Contains(string(s.Stderr()), "call ") {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if out := call(ctx, s, r); out.End != upstream.Unknown {
		t.Errorf("%s", out.End)
	}
	if out := s.Do(t.Context(), upstream.Request{Method: "ping"}); out.End != ok {
		t.Errorf("ping: %s", out.End)
	}
	said := regexp.MustCompile(`call (\d+)\ncancelled (\d+)\n`)
	for stuck := time.After(20 * time.Second); ; {
		if m := said.FindSubmatch(s.Stderr()); m != nil {
			if string(m[1]) != string(m[2]) {
				t.Errorf("another id: %q", m[0])
			}
			return
		}
		select {
		case <-stuck:
			t.Fatalf("not cancelled: %q", s.Stderr())
		case <-time.After(time.Millisecond):
		}
	}
}

// TestStalledWrite: a child that does not read is killed, not waited for.
func TestStalledWrite(t *testing.T) {
	cfg := child(t, "noread")
	cfg.Limits = quick
	r := newRecord()
	s := start(t, cfg, r, nil)
	big := `{"text":"` + strings.Repeat("x", 1<<20) + `"}`
	done := make(chan upstream.Response, 3)
	for range 3 {
		go func() { done <- call(t.Context(), s, callTool("echo", big)) }()
	}
	for range 3 {
		if out := <-done; out.End == ok {
			t.Errorf("%s", out.End)
		}
	}
	r.until(t, "write_stalled", func() bool { return r.events[upstream.WriteStalled] > 0 })
}

var httpCases = map[string]outcome{
	"plain":       {end: ok, holds: "ok"},
	"redirect":    {end: ok, err: true},               // S13: not followed
	"redirect302": {end: ok, err: true},               // S13
	"gzip":        {end: upstream.Unknown, err: true}, // W14
	"accepted":    {end: upstream.Unknown, err: true},
	"wrongtype":   {end: upstream.Unknown, err: true},
	"status500":   {end: upstream.Unknown, err: true},
	"status403":   {end: ok, err: true},
	"error400":    {end: ok, err: true},
	"hugejson":    {end: upstream.TooLarge, err: true, event: upstream.LongLine}, // U07
	"hugesse":     {end: upstream.TooLarge, err: true, event: upstream.LongLine}, // U07
	"noreply":     {end: upstream.Unknown, err: true},                            // U06
	"noheaders":   {end: upstream.Unknown, err: true},                            // U06
	"cut":         {end: upstream.Unknown, err: true},
	"halfjson":    {end: upstream.Unknown, err: true},
	"resumable":   {end: ok, holds: "resumed"},
	"doublereply": {end: ok, holds: "ok"},                                         // P22
	"wrongid":     {end: ok, holds: "ok", event: upstream.StrayResponse},          // P22
	"dupkeys":     {end: upstream.Unknown, err: true, event: upstream.BadMessage}, // W01
	"cronly":      {end: ok, holds: "ok"},                                         // W13
	"forged":      {end: ok, holds: `{"t":"data: x\n\ndata: {}"}`},                // W13
	"nosession":   {end: upstream.NotSent, err: true, event: upstream.Restarted},
}

// TestHostileHTTP: the same over Streamable HTTP. The trap stands for any other
// host: nothing may reach it.
func TestHostileHTTP(t *testing.T) {
	var trapped atomic.Int32
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { trapped.Add(1) }))
	defer trap.Close()
	t.Setenv("HTTP_PROXY", trap.URL) // no proxy of the environment
	for mode, want := range httpCases {
		t.Run(mode, func(t *testing.T) {
			var calls, bad atomic.Int32
			h := hostile.Handler(mode)
			ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				if r.Header.Get("Authorization") != "Bearer own" || r.Header.Get("Cookie") != "" ||
					"http://"+r.Host != "http://"+r.Context().Value(http.LocalAddrContextKey).(net.Addr).String() {
					bad.Add(1)
				}
				h.ServeHTTP(w, r)
			}))
			defer ts.Close()
			defer ts.CloseClientConnections()
			r := newRecord()
			cfg := upstream.Config{
				Name: "h", URL: ts.URL + "/?to=" + trap.URL, Header: map[string]string{"Authorization": "Bearer own"},
			}
			if want.event != upstream.LongLine {
				cfg.Limits = quick
			}
			if mode != "noreply" && mode != "noheaders" {
				cfg.Limits.Call = 0
			}
			s := start(t, cfg, r, nil)
			if _, err := s.Info(t.Context()); err != nil {
				t.Fatal(err)
			}
			out := call(t.Context(), s, callTool("echo", `{"text":"x"}`))
			if out.End != want.end || (out.Err != nil) != want.err || !strings.Contains(string(out.Result.Raw()), want.holds) ||
				strings.Contains(string(out.Result.Raw()), "forged") {
				t.Errorf("got %s %v %.200q", out.End, out.Err, out.Result.Raw())
			}
			if mode == "error400" && string(out.Err.Encode()) != hostile.RawError {
				t.Errorf("bytes changed: %s", out.Err.Encode())
			}
			if want.event != "" {
				r.until(t, string(want.event), func() bool { return r.events[want.event] > 0 })
			}
			if mode == "nosession" {
				if out := call(t.Context(), s, callTool("echo", `{}`)); out.End != ok || out.Err != nil {
					t.Errorf("in the new session: %s %v", out.End, out.Err)
				}
			}
			if bad.Load() != 0 {
				t.Errorf("S04, S10: %d of %d requests with foreign headers", bad.Load(), calls.Load())
			}
		})
	}
	if trapped.Load() != 0 {
		t.Errorf("S13: %d requests to another host", trapped.Load())
	}
}

// TestUnreachable: what never reached a server was not sent.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	s := start(t, upstream.Config{Name: "h", URL: "http://" + l.Addr().String() + "/mcp"}, newRecord(), nil)
	if out := call(t.Context(), s, callTool("echo", `{}`)); out.End != upstream.NotSent {
		t.Errorf("%s", out.End)
	}
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]upstream.Config{
		"nothing":            {},
		"both":               {Command: []string{"x"}, URL: "http://h/"},
		"era":                {Command: []string{"x"}, Era: "new"},
		"capabilities":       {Command: []string{"x"}, ClientCapabilities: []byte(`[]`)},
		"S14 scheme":         {URL: "javascript:alert(1)"},
		"file":               {URL: "file:///etc/passwd"},
		"user":               {URL: "http://good@evil/"},
		"fragment":           {URL: "http://h/#x"},
		"header name":        {URL: "http://h/", Header: map[string]string{"A B": "x"}},
		"header value":       {URL: "http://h/", Header: map[string]string{"A": "x\r\nB: y"}},
		"host":               {URL: "http://h/", Header: map[string]string{"Host": "x"}},
		"a protocol header":  {URL: "http://h/", Header: map[string]string{"mcp-session-id": "x"}},
		"replay of requests": {URL: "http://h/", Header: map[string]string{"Idempotency-Key": "x"}},
	} {
		if c.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	exe, _ := os.Executable()
	if err := (&upstream.Config{Command: []string{exe}}).Validate(); err != nil {
		t.Error(err)
	}
}

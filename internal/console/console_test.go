package console

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/net/html"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/story"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

const host = "writ-0123456789abcdef.localhost:8700"

// A rig is a console over a log that the test writes.
type rig struct {
	*Console
	t     testing.TB
	log   *sqlite.Store
	queue *approval.Queue
	mu    sync.Mutex
	clock time.Time
	next  map[string]uint64
	end   chan struct{}
	words string // of the servers

	clients map[string]writ.Label // that are registered, by their principals, which are their tokens too
	bound   string                // whose the next session is
}

// tool is one of whose every text is the rig's words.
func (r *rig) tool() *Contract {
	w, all := r.words, []string{r.words}
	return &Contract{Tool: Tool{ID: w + "/" + w, Public: w, State: "closed", Why: w, Effect: all, Pin: "changed"}, Line: 1, Approved: w, Approve: []string{w}, Now: w,
		Arguments: []Rule{{w, w, all, 2}}, Unnamed: all, Outputs: []Rule{{w, w, all, 0}}, Of: w, Unlike: all, Lines: unlike(w), Definition: []byte(w)}
}

func (r *rig) edge() Edge { return Edge{[]string{r.words}, []string{r.words}, []string{r.words}} }

func unlike(w string) []cli.DiffLine {
	return []cli.DiffLine{{N: 1, Text: w}, {Sign: "-", N: 2, Text: w, Gap: true}, {Sign: "+", N: 2, Text: w}}
}

// judged is what a policy comes to, or with a fault what is wrong with it.
func (r *rig) judged(text string) *Replayed {
	w := r.words
	if strings.HasPrefix(text, "fault") {
		return &Replayed{Faults: []Fault{{1, 7, w}, {0, 0, w}}}
	}
	return &Replayed{Calls: 2, Redefined: 13, Sessions: 1, Before: Verdicts{2, 0, 0}, After: Verdicts{0, 1, 1}, Notes: []string{w},
		Otherwise: []Difference{{one, 2, w, "accepted", "asked", "", w, false, "", "", time.Time{}, ""}, {one, 3, w, "accepted", "refused", w, w, true, "", "", time.Time{}, ""}}}
}

// judge has a login judge a policy's text, and waits until that ended.
func (r *rig) judge(cookie, text string) *httptest.ResponseRecorder {
	w := r.send(cookie, map[string]string{"form": r.loggedInBy(cookie).form, "text": text}, nil)
	if t := r.loggedInBy(cookie).replay; w.Code == http.StatusSeeOther {
		<-t.over
	}
	return w
}

// send sends the form of a policy's text as a browser does.
func (r *rig) send(cookie string, fields map[string]string, file []byte) *httptest.ResponseRecorder {
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		m.WriteField(name, fields[name])
	}
	if file != nil {
		w, _ := m.CreateFormFile("file", "policy.yaml")
		w.Write(file)
	}
	m.Close()
	req := httptest.NewRequest("POST", "http://"+host+"/policy/replay", &b).WithContext(r.t.Context())
	req.RequestURI = "/policy/replay"
	req.Header.Set("Content-Type", m.FormDataContentType())
	req.Header.Set("Origin", "http://"+host)
	req.AddCookie(&http.Cookie{Name: r.cookie(false), Value: cookie})
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w
}

func newRig(t testing.TB) *rig {
	t.Helper()
	skey, vkey, err := audit.GenerateKey(rand.Reader, "writ-test")
	if err != nil {
		t.Fatal(err)
	}
	signer, _ := note.NewSigner(skey)
	verifier, _ := note.NewVerifier(vkey)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, clock: time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC), next: map[string]uint64{}, end: make(chan struct{}), words: hostileText}
	if r.log, err = sqlite.Open(dir, sqlite.Options{Signer: signer, Verifier: verifier}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.log.Close() })
	r.queue = approval.New(r.now)
	r.Console = New(Options{
		Log: r.log, Queue: r.queue, Elsewhere: nowhere{}, Host: host, By: "kim", Ending: r.end, Clock: r.now,
		Public: public, Client: r.clientOf, Worth: r.worth,
		Foreign: func(req *http.Request) string {
			if r.IsPublic(req) {
				return downstream.Foreign(req, []string{public}, true)
			}
			return downstream.Foreign(req, []string{"writ-0123456789abcdef.localhost", "127.0.0.1", "localhost"}, false)
		},
		Explain: func(ctx context.Context, session, n string, within uint64) (*story.Explained, error) {
			return story.Explain(ctx, r.o.Log, session, n, within)
		},
		Prove: func(context.Context, string, string, uint64, bool) ([]byte, error) {
			return nil, errors.New("no proof here")
		},
		Verify: func(context.Context, func(int64, int64)) (string, bool, error) { return "ok: all of it", true, nil },
		Export: func(_ context.Context, w io.Writer) error { _, err := io.WriteString(w, "bundle"); return err },
		Status: func(context.Context) (string, error) { return hostileText + "\n  " + hostileText, nil },
		Servers: func(context.Context) ([]Server, error) {
			return []Server{{Name: r.words, Reached: r.words, Fault: r.words, Notes: []string{r.words}, Tools: []Tool{r.tool().Tool, {ID: "a/b", State: "open", Pin: "pinned"}}}}, nil
		},
		Contract: func(_ context.Context, id string) (*Contract, error) {
			if id == "nothing/here" {
				return nil, nil
			}
			return r.tool(), nil
		},
		Learned: func(context.Context, string) (*Learned, error) {
			return &Learned{Edges: []Edge{r.edge()}, Learn: "writ learn"}, nil
		},
		Friction: func(context.Context) ([]Friction, string, error) {
			return []Friction{{r.words, 9, r.edge(), 2}, {r.words, 1, Edge{}, 1}}, "writ learn", nil
		},
		Sessions: r.registered,
		Names:    func(context.Context) map[string]string { return map[string]string{one: r.words} },
		Memory:   &kept{words: &r.words},
		Replay: func(_ context.Context, text []byte, progress func(int, int)) (*Replayed, error) {
			progress(1, 1)
			return r.judged(string(text)), nil
		},
		Policy: func(context.Context) (*Policy, error) {
			return &Policy{File: r.words, Digest: "00", Source: []byte("tools:\n# " + r.words), Findings: []Finding{{2, r.words}}, Kept: []Kept{{r.words, r.words, r.words, true}}, Differs: r.words, Unlike: unlike(r.words), Takes: []string{r.words}}, nil
		},
	})
	return r
}

// registered is one session whose every text is the rig's words, of a log that has records of it,
// and what a test registered.
func (r *rig) registered(ctx context.Context) iter.Seq2[audit.Session, error] {
	return func(yield func(audit.Session, error) bool) {
		if !yield(audit.Session{ID: one, Principal: r.words, Endpoint: r.words, Created: r.now(), Closed: r.now()}, nil) {
			return
		}
		for s, err := range r.log.ListSessions(ctx) {
			if !yield(s, err) {
				return
			}
		}
	}
}

// kept is a memory whose every text is what is given, of so many records.
type kept struct {
	words          *string
	records        uint64
	looked, widest int
}

func (k *kept) claim(n uint64) Claim {
	w := *k.words
	return Claim{ID: fmt.Sprintf("prop_%d", n), Word: map[bool]string{true: "contested", false: "established"}[n%997 == 1], N: n, At: time.Unix(int64(n), 0),
		About: w, Value: w, Quote: w, Caption: w, By: w, Note: w, Beside: "disputed by", Others: []string{"prop_3"}}
}

func (k *kept) Namespaces(context.Context) ([]Namespace, error) {
	return []Namespace{{"main", max(k.records, 1), "hardened", "built-in", true}, {"other", 1, "local", "built-in", false}}, nil
}

func (k *kept) Has(_ context.Context, namespace string) (bool, error) {
	return namespace == "main", nil
}

func (k *kept) Made(_ context.Context, _ string, _ time.Time, from, to uint64, word string) (out []Claim, _ error) {
	k.widest = max(k.widest, int(to-from))
	for n := to - 1; n >= from && n > 0; n-- {
		k.looked++
		if c := k.claim(n); word == "" || word == c.Word {
			out = append(out, c)
		}
	}
	return out, nil
}

func (k *kept) Found(context.Context, string, time.Time, string) ([]Claim, []string, error) {
	return []Claim{k.claim(1)}, []string{*k.words}, nil
}

func (k *kept) Belief(_ context.Context, _, id string, _ time.Time, _ uint64) (*Belief, error) {
	if id == "prop_404" {
		return nil, nil
	}
	w := *k.words
	return &Belief{Claim: k.claim(1), Means: "it is no answer", Because: w, Said: []Statement{{Quote: w, By: w, ID: "obs_1", Evidence: one + "/ev1", Note: w}, {Evidence: w}}, Values: []Claim{k.claim(2)},
		Facts: []Fact{{"Reason", w}}, Timeline: []Moment{{What: w, Quote: w}, {What: w, Word: "established", Because: w}}, Later: 7, Commands: []Command{{"To erase it", clip(w, 100)}}}, nil
}

func (k *kept) Sources(context.Context, string) ([]Source, error) {
	return []Source{{*k.words, "web", "heard", *k.words}}, nil
}

func (k *kept) Receipt(_ context.Context, _, id string) ([]byte, error) {
	if id != "dec_2" {
		return nil, errors.New(*k.words)
	}
	return []byte("a receipt"), nil
}

// nowhere is Elsewhere where no other gateway runs.
type nowhere struct{}

func (nowhere) Open(context.Context, bool) []approval.Shown { return nil }
func (nowhere) There() func()                               { return func() {} }
func (nowhere) Said(string) (approval.Answer, bool)         { return approval.Answer{}, false }
func (nowhere) Reply(context.Context, string, approval.Answer) (int, approval.Reply) {
	return http.StatusNotFound, approval.Reply{}
}

func (r *rig) now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock
}

func (r *rig) later(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock = r.clock.Add(d)
}

// write puts records on the log, each of one session.
func (r *rig) write(session string, records ...record) {
	r.t.Helper()
	var entries []audit.Entry
	from := r.next[session]
	for _, rec := range records {
		var values []audit.Value
		for _, name := range slices.Sorted(maps.Keys(rec.values)) {
			v := audit.Value{Name: name, Bytes: []byte(rec.values[name])}
			rand.Read(v.Salt[:])
			values = append(values, v)
		}
		r.next[session]++
		data, _ := json.Marshal(rec.data)
		e, err := audit.Seal(audit.Record{Kind: rec.kind, Session: session, N: r.next[session], Time: r.now(), Data: data}, values...)
		if err != nil {
			r.t.Fatal(err)
		}
		entries = append(entries, e)
	}
	if _, err := r.log.Append(r.t.Context(), session, from, entries); err != nil {
		r.t.Fatal(err)
	}
}

type record struct {
	kind   audit.Kind
	data   map[string]any
	values map[string]string
}

var open = record{audit.KindOpen, map[string]any{}, nil}

// decided is the record of a decision, with the decision itself.
func decided(d gate.Record, arguments string) record {
	d.Version, d.Method, d.Engine, d.Time = 1, "tools/call", "writ-gate/1", "2026-11-24T12:00:00.000Z"
	if d.Effect == nil {
		d.Effect = []string{"write"}
	}
	if d.Traces == nil {
		d.Traces = []gate.Trace{}
	}
	d.Catalogue, d.Policy = "sha256:00", "sha256:00"
	raw, _ := json.Marshal(d)
	raw, err := strictjson.Canonical(raw)
	if err != nil {
		panic(err)
	}
	if _, err := gate.ParseRecord(raw); err != nil {
		panic(err)
	}
	data := map[string]any{"server": d.Server, "tool": d.Tool, "method": "tools/call", "status": d.Status, "effect": d.Effect}
	if d.Code != "" {
		data["code"], data["reason"] = d.Code, d.Reason
	}
	return record{audit.KindDecision, data, map[string]string{"decision": string(raw), "arguments": arguments}}
}

func returned(decision uint64, evidence int, status, result string) record {
	return record{audit.KindResult, map[string]any{"decision": decision, "evidence": evidence, "status": status, "admissible": true}, map[string]string{"result": result}}
}

// ask makes a request of a browser. header has pairs; body is a form where it is not nil.
func (r *rig) ask(method, path, cookie string, body url.Values, header ...string) *httptest.ResponseRecorder {
	var in io.Reader
	if body != nil {
		in = strings.NewReader(body.Encode())
	}
	req := httptest.NewRequest(method, "http://"+host+path, in).WithContext(r.t.Context())
	req.RequestURI = path
	if body != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if method == http.MethodPost {
		req.Header.Set("Origin", "http://"+host)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		} else {
			req.Header.Set(header[i], header[i+1])
		}
	}
	if cookie != "" {
		req.AddCookie(&http.Cookie{Name: r.cookie(r.IsPublic(req)), Value: cookie})
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w
}

// in is a browser that was let in: its cookie, the token of its forms and the code of its
// first yes.
func (r *rig) in() (cookie, form, code string) {
	r.t.Helper()
	link, code := r.Link()
	w := r.ask("GET", strings.TrimPrefix(link, "http://"+host), "", nil)
	if w.Code != http.StatusSeeOther || len(w.Result().Cookies()) != 1 {
		r.t.Fatalf("the link: %d %s", w.Code, w.Body)
	}
	c := w.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		r.t.Errorf("the cookie: %s", c)
	}
	return c.Value, r.loggedInBy(c.Value).form, code
}

func (r *rig) loggedInBy(cookie string) *login {
	r.Console.mu.Lock()
	defer r.Console.mu.Unlock()
	return r.logins[keyOf(cookie)]
}

// paths are one request for each route, of a session that is there.
func paths() map[string]string {
	return map[string]string{
		"GET /static/{file}": "/static/console.css", "GET /login/{key}": "/login/x", "POST /login": "/login", "POST /logout": "/logout", "GET /{$}": "/", "GET /events": "/events",
		"GET /d/{session}/{n}": "/d/s_aaaaaaaaaaaaaaaa/2", "GET /d/{session}/{n}/json": "/d/s_aaaaaaaaaaaaaaaa/2/json", "GET /d/{session}/{n}/proof": "/d/s_aaaaaaaaaaaaaaaa/2/proof",
		"GET /d/{session}/{n}/value/{name}": "/d/s_aaaaaaaaaaaaaaaa/2/value/arguments", "GET /e/{session}/{number}": "/e/s_aaaaaaaaaaaaaaaa/1", "GET /s/{session}": "/s/s_aaaaaaaaaaaaaaaa",
		"GET /sessions": "/sessions", "GET /approvals": "/approvals", "POST /approvals/{id}": "/approvals/x", "GET /audit": "/audit", "POST /audit/verify": "/audit/verify", "GET /audit/export": "/audit/export",
		"GET /health": "/health", "GET /tools": "/tools", "GET /policy": "/policy", "GET /charts": "/charts", "GET /policy/replay": "/policy/replay", "POST /policy/replay": "/policy/replay", "GET /memory": "/memory",
		"GET /memory/{namespace}/{id}": "/memory/main/prop_1", "GET /memory/{namespace}/{id}/receipt": "/memory/main/dec_2/receipt", "/": "/nothing/here",
	}
}

// TestWhoIsLetIn: every route refuses whoever is not a browser that a person let in, asking
// from a page of the console (K02, K03, K06, K08, S01, S02, S03).
func TestWhoIsLetIn(t *testing.T) {
	r := newRig(t)
	r.write("s_aaaaaaaaaaaaaaaa", open, decided(gate.Record{Server: "a", Tool: "b", Status: writ.Accepted, Allowed: true}, `{}`))
	cookie, form, _ := r.in()
	other, otherForm, _ := r.in()
	_ = other
	known := paths()
	const host, page, token = "The request names another host", "A page of another site led here", "The request has the field Authorization"
	causes := map[string]string{"another host": host, "another host with our port": host, "another origin": page, "no origin to tell": page, "another port's origin": page,
		"another scheme's origin": page, "from a page of another site": page, "from another page of the same site": page, "a token of MCP": token}
	for _, route := range r.routes() {
		path, ok := known[route.pattern]
		if !ok {
			t.Fatalf("%s is asked for nowhere", route.pattern)
		}
		method, _, stated := strings.Cut(route.pattern, " ")
		if !stated {
			method = "GET"
		}
		type try struct {
			name, cookie string
			form         url.Values
			status       []int
			header       []string
		}
		good := url.Values{"form": {form}, "say": {"no"}}
		foreign := []int{http.StatusForbidden}
		tries := []try{
			{"another host", cookie, good, foreign, []string{"Host", "evil.example"}},
			{"another host with our port", cookie, good, foreign, []string{"Host", "evil.example:8700"}},
			{"another origin", cookie, good, foreign, []string{"Origin", "http://evil.example"}},
			{"no origin to tell", cookie, good, foreign, []string{"Origin", "null"}},
			{"another port's origin", cookie, good, foreign, []string{"Origin", "http://writ-0123456789abcdef.localhost:9999"}},
			{"another scheme's origin", cookie, good, foreign, []string{"Origin", "https://" + host}},
			{"a token of MCP", cookie, good, foreign, []string{"Authorization", "Bearer writ_x"}},
		}
		if method == "GET" {
			tries = append(tries, try{"from a page of another site", cookie, nil, foreign, []string{"Sec-Fetch-Site", "cross-site"}},
				try{"from another page of the same site", cookie, nil, foreign, []string{"Sec-Fetch-Site", "same-site"}})
		}
		if !route.open {
			out := []int{http.StatusUnauthorized}
			tries = append(tries, try{"no login", "", good, out, nil}, try{"a login that is none", "x", good, out, nil},
				try{"a login, at an address that others have too", cookie, good, out, []string{"Host", "127.0.0.1:8700", "Origin", "http://127.0.0.1:8700"}})
		}
		if method == "POST" {
			for name, f := range map[string]url.Values{"no token": {"say": {"no"}}, "another login's token": {"form": {otherForm}}, "an empty token": {"form": {""}}, "too much": {"form": {form}, "x": {strings.Repeat("x", maxForm)}}} {
				tries = append(tries, try{name, cookie, f, foreign, nil})
			}
		}
		for _, x := range tries {
			body := x.form
			if method == "GET" {
				body = nil
			}
			w := r.ask(method, path, x.cookie, body, x.header...)
			if !slices.Contains(x.status, w.Code) {
				t.Errorf("%s, %s: %d, want %v", route.pattern, x.name, w.Code, x.status)
			}
			if why := causes[x.name]; why != "" && !strings.Contains(w.Body.String(), why) {
				t.Errorf("%s, %s: it does not say %q: %s", route.pattern, x.name, why, w.Body)
			}
			for k, v := range headers {
				if got := w.Header().Get(k); got != v {
					t.Errorf("%s, %s: %s is %q", route.pattern, x.name, k, got)
				}
			}
			if strings.Contains(w.Body.String(), form) && !slices.Contains([]string{"no token", "another login's token", "an empty token", "too much"}, x.name) {
				t.Errorf("%s, %s: the token is told", route.pattern, x.name)
			}
		}
		for _, m := range []string{"HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"} {
			if w := r.ask(m, path, cookie, nil); w.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", m, path, w.Code)
			}
		}
	}
	if r.loggedInBy(cookie) == nil {
		t.Error("one of these signed him out")
	}
	for _, path := range []string{"/..%2f..%2fetc/passwd", "/static/..%2fconsole.go", "/static/login.html", "/static/", "/templates/live.html", "//evil.example/", "/login/", "/d/s_aaaaaaaaaaaaaaaa/2/value/key", "/e/s_aaaaaaaaaaaaaaaa/999", "/s/s_bbbbbbbbbbbbbbbb", "/d/s_bbbbbbbbbbbbbbbb/1", "/tools?tool=nothing/here", "/memory?in=nothing",
		"/memory/nothing/prop_1", "/memory/main/prop_404", "/memory/nothing/dec_2/receipt", "/memory/main/dec_404/receipt"} {
		if w := r.ask("GET", path, cookie, nil); w.Code != http.StatusNotFound && w.Code != http.StatusMovedPermanently && w.Code != http.StatusTemporaryRedirect {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	for _, path := range []string{"/?before=-1", "/?before=NaN", "/?after=1e9", "/audit?id=x", "/s/s_aaaaaaaaaaaaaaaa?from=-1", "/policy?from=x", "/policy?at=-1", "/memory?before=-1", "/memory?as_of=soon", "/memory/main/prop_1?from=x"} {
		if w := r.ask("GET", path, cookie, nil); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	for _, path := range []string{"/?before=9223372036854775807", "/?after=9223372036854775806", "/?before=0", "/policy?from=9223372036854775807", "/policy?at=9223372036854775807", "/?sort=nothing", "/memory?before=9223372036854775807", "/memory?before=0", "/memory?word=nothing", "/memory?as_of=2026-11-24&in=other", "/?status=nothing", "/s/s_aaaaaaaaaaaaaaaa?from=9223372036854775807", "/s/s_aaaaaaaaaaaaaaaa?at=9223372036854775807"} {
		if w := r.ask("GET", path, cookie, nil); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestLogin: a link lets in one browser within a minute, and a login ends.
func TestLogin(t *testing.T) {
	r := newRig(t)
	path := func() string { link, _ := r.Link(); return strings.TrimPrefix(link, "http://"+host) }
	late, twice := path(), path()
	if w := r.ask("GET", twice, "", nil, "Sec-Purpose", "prefetch;prerender"); w.Code != http.StatusForbidden {
		t.Errorf("looked ahead at: %d", w.Code)
	}
	if w := r.ask("HEAD", twice, "", nil); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("looked at: %d", w.Code)
	}
	for _, want := range []int{http.StatusSeeOther, http.StatusUnauthorized} {
		if w := r.ask("GET", twice, "", nil); w.Code != want {
			t.Errorf("the link: %d, want %d", w.Code, want)
		}
	}
	r.later(linkStands)
	if w := r.ask("GET", late, "", nil); w.Code != http.StatusUnauthorized {
		t.Errorf("a minute later: %d", w.Code)
	}
	cookie, _, _ := r.in()
	is := func(want int, when string) {
		t.Helper()
		if w := r.ask("GET", "/", cookie, nil); w.Code != want {
			t.Errorf("%s: %d, want %d", when, w.Code, want)
		}
	}
	r.later(idle - time.Second)
	is(200, "before it was idle for too long")
	r.later(idle - time.Second)
	if w := r.ask("GET", "/approvals?again", cookie, nil); w.Code != 200 {
		t.Errorf("a page that reads itself anew: %d", w.Code)
	}
	r.later(time.Second)
	is(401, "idle for too long")
	cookie, _, _ = r.in()
	for range int(atMost/time.Minute)/30 - 1 {
		r.later(30 * time.Minute)
		is(200, "used on and on")
	}
	r.later(30 * time.Minute)
	is(401, "twelve hours later")
	cookie, form, _ := r.in()
	if w := r.ask("POST", "/logout", cookie, url.Values{"form": {form}}); w.Code != 200 {
		t.Errorf("signing out: %d", w.Code)
	}
	is(401, "signed out")
	if w := r.ask("POST", "/approvals/x", cookie, url.Values{"form": {form}, "say": {"yes"}}); !strings.Contains(w.Body.String(), "nothing was done") {
		t.Errorf("a form of a login that ended: %s", w.Body)
	}
	for range maxLogins + 5 {
		r.in()
	}
	if len(r.logins) > maxLogins {
		t.Errorf("%d logins", len(r.logins))
	}
}

// hostileText is K01 and its kin: everything that a reader of a page could take for
// something else.
const hostileText = `<script>alert(1)</script>"><img src=x onerror=alert(2)>'{{7*7}}` + "`${8*8}`</template></textarea><!--\u202egnp.exe\u2066\x1b[31m\x00\u200b\U000e0041 javascript:alert(3)"

// skeleton is what elements and attributes a page has, without texts.
func skeleton(t *testing.T, page []byte) map[string]bool {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		switch n.Type {
		case html.ElementNode:
			for _, a := range n.Attr {
				out[n.Data+"@"+a.Key] = true
				if strings.ContainsAny(a.Val, "\u202e\u2066\x1b\u200b\U000e0041\x00") && n.Data != "input" { // what he typed himself is as he typed it
					out["a hidden character in "+a.Key+" "+a.Val] = true
				}
				if (a.Key == "href" || a.Key == "action" || a.Key == "src" || a.Key == "data-tail") && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") {
					out["leads to "+a.Val] = true
				}
				if a.Key == "class" && strings.ContainsAny(a.Val, "<>\"'") {
					out["class "+a.Val] = true
				}
			}
			out[n.Data] = true
		case html.CommentNode:
			out["comment "+n.Data] = true
		case html.TextNode:
			if strings.ContainsAny(n.Data, "\u202e\u2066\x1b\u200b\U000e0041\x00") && n.Parent.Data != "textarea" { // as he sent it, too
				out["a hidden character in "+n.Data] = true
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	return out
}

// told fills a log with one session, whose every text is what is given.
func (r *rig) told(session, text string) {
	quoted, _ := json.Marshal(text)
	r.write(session, record{audit.KindOpen, map[string]any{"principal": r.bound}, nil},
		record{"turn", map[string]any{"evidence": 1, "admissible": true}, map[string]string{"turn": text}},
		decided(gate.Record{Server: text, Tool: text, Status: writ.Accepted, Allowed: true, Effect: []string{"read"}}, `{}`),
		returned(3, 2, "ok", `{"structuredContent":{"x":`+string(quoted)+`,"y":"also `+string(quoted[1:])+`}}`),
		decided(gate.Record{Server: text, Tool: text, Status: writ.Accepted, Allowed: true, Session: session,
			Traces: []gate.Trace{{Pointer: "/x", Role: "selector", Label: writ.System, Rule: "output", Evidence: []gate.Ref{{Evidence: 2, Tool: text + "/" + text, Pointer: "/structuredContent/x", Label: writ.System}}}}}, `{"x":`+string(quoted)+`}`),
		returned(5, 3, "unknown", `{}`),
		decided(gate.Record{Server: text, Tool: text, Status: writ.Rejected, Code: writ.MissingProvenance, Reason: writ.ProvenanceUnseen, Session: session,
			Failures: []writ.Failure{{Pointer: "/" + text, Reason: writ.ProvenanceUnseen, Need: text}}, Traces: []gate.Trace{{Pointer: "/x", Role: text, Label: writ.Model}}}, `{"x":`+string(quoted)+`}`),
		record{"approval", map[string]any{"evidence": 4, "by": text, "yes": true, "act": "x", "label": "user", "covers": []any{}}, nil},
		record{audit.KindClose, map[string]any{}, nil},
	)
	q := approval.Question{Session: session, Server: text, Tool: text, Arguments: []byte(`{"x":` + string(quoted) + `}`), Came: quoted, Answers: quoted,
		Values: []gate.AskedValue{{Pointer: "/" + text, Role: text, Raw: quoted, Reason: writ.Reason(text), Need: text,
			Seen: []gate.Ref{{Tool: text, Pointer: text, Inner: text, Label: writ.External}}}}}
	go r.queue.Ask(r.t.Context(), q, session, approval.Waits, approval.Effects{
		Offers: func() []approval.Offer {
			return []approval.Offer{{Keep: approval.KeepSource, Lines: []policy.Grown{{From: text}}}}
		},
		Settle: func(approval.Answer, *approval.Offer) error { return nil }}, nil)
	for { // until it is open
		qs, changed := r.queue.Open()
		if slices.ContainsFunc(qs, func(q approval.Question) bool { return q.Session == session }) {
			return
		}
		<-changed
	}
}

// TestHostileTexts: whatever stands in a field, a page has the elements and attributes that
// its template has, leads nowhere else, and shows what would be hidden (K01, K04).
func TestHostileTexts(t *testing.T) {
	const session = "s_aaaaaaaaaaaaaaaa"
	pages := []string{"/", "/d/" + session + "/3", "/d/" + session + "/5", "/d/" + session + "/7", "/e/" + session + "/1?from=0&to=9", "/e/" + session + "/2?at=/structuredContent/x", "/e/" + session + "/4",
		"/s/" + session, "/sessions", "/approvals", "/audit", "/health", "/tools", "/tools?tool=x", "/tools?tool=x&learned", "/policy", "/charts", "/charts?ends", "/memory", "/memory?q=x", "/memory/main/prop_1", "/memory/main/prop_1?as_of=2026-11-24"}
	plain, hostile := newRig(t), newRig(t)
	plain.words = "words `x` \x01" + "\u200b\nmore \t text"
	plain.told(session, plain.words)
	hostile.told(session, hostileText)
	pc, _, _ := plain.in()
	hc, _, _ := hostile.in()
	for i, path := range append(pages, "/policy/replay", "/policy/replay") {
		if text := []string{"tools: ", "fault: "}[i%2]; path == "/policy/replay" {
			plain.judge(pc, text+plain.words)
			hostile.judge(hc, text+hostile.words)
		}
		a, b := plain.ask("GET", path, pc, nil), hostile.ask("GET", path, hc, nil)
		if a.Code != 200 || b.Code != 200 {
			t.Errorf("%s: %d, %d\n%s", path, a.Code, b.Code, b.Body)
			continue
		}
		expected := skeleton(t, a.Body.Bytes())
		for part := range skeleton(t, b.Body.Bytes()) {
			if !expected[part] {
				t.Errorf("%s: %s came in", path, part)
			}
		}
		if !strings.Contains(b.Body.String(), "&lt;script&gt;") && !strings.Contains(b.Body.String(), `\u003cscript`) {
			t.Errorf("%s does not show the text", path)
		}
	}
	// In the query, too.
	q := url.QueryEscape(hostileText)
	for _, path := range []string{"/?tool=" + q + "&session=" + q + "&reason=" + q, "/charts?tool=" + q + "&reason=" + q, "/e/" + session + "/2?at=" + q + "&in=" + q, "/tools?name=" + q + "&state=" + q, "/sessions?words=" + q, "/memory?q=" + q + "&word=" + q} {
		a, b := plain.ask("GET", strings.ReplaceAll(path, q, "x"), pc, nil), hostile.ask("GET", path, hc, nil)
		expected := skeleton(t, a.Body.Bytes())
		for part := range skeleton(t, b.Body.Bytes()) {
			if !expected[part] {
				t.Errorf("%s: %s came in", path, part)
			}
		}
	}
	for _, path := range []string{"/d/" + session + "/5/json", "/d/" + session + "/5/value/arguments"} {
		if w := hostile.ask("GET", path, hc, nil); w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
}

// TestLongValues: no value is cut where a person answers, and elsewhere it says so (K04).
func TestLongValues(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("0123456789", 1000) + "THE-END"
	r.told("s_aaaaaaaaaaaaaaaa", long)
	huge := `{"x":"` + strings.Repeat("y", 1<<20) + `"}`
	r.write("s_bbbbbbbbbbbbbbbb", open, decided(gate.Record{Server: "a", Tool: "b", Status: writ.Accepted, Allowed: true}, huge))
	cookie, form, code := r.in()
	if w := r.ask("GET", "/approvals", cookie, nil); !strings.Contains(w.Body.String(), long) || !strings.Contains(w.Body.String(), fmt.Sprint(len(long)+8, " bytes, all of them")) {
		t.Error("a card does not show all of it")
	}
	r.told("s_cccccccccccccccc", strings.Repeat("x", maxDrawn))
	qs, _ := r.queue.Open()
	id := qs[len(qs)-1].ID
	if w := r.ask("GET", "/approvals", cookie, nil); strings.Count(w.Body.String(), `value="yes"`) != 1 || strings.Count(w.Body.String(), `value="no"`) != 2 {
		t.Error("what is not shown whole can be allowed")
	}
	r.ask("POST", "/approvals/"+id, cookie, url.Values{"form": {form}, "say": {"yes"}, "code": {code}})
	if qs, _ := r.queue.Open(); len(qs) != 2 {
		t.Error("it was allowed")
	}
	w := r.ask("GET", "/d/s_bbbbbbbbbbbbbbbb/2", cookie, nil)
	if w.Body.Len() > 2*maxDrawn || !strings.Contains(w.Body.String(), "Shown is the beginning.") {
		t.Errorf("a page of %d bytes", w.Body.Len())
	}
	if w := r.ask("GET", "/d/s_bbbbbbbbbbbbbbbb/2/value/arguments", cookie, nil); w.Body.String() != huge {
		t.Error("the download is not what was recorded")
	}
}

// TestAnswers: one answer wins, the first yes of a login needs its code, and tries at it are
// few (K05, K06).
func TestAnswers(t *testing.T) {
	r := newRig(t)
	id := func(session string) string {
		r.told(session, "words")
		qs, _ := r.queue.Open()
		return qs[len(qs)-1].ID
	}
	one, form1, code1 := r.in()
	two, form2, _ := r.in()
	say := func(cookie, form, id string, more ...string) string {
		t.Helper()
		v := url.Values{"form": {form}}
		for i := 0; i < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		w := r.ask("POST", "/approvals/"+id, cookie, v)
		if w.Code == http.StatusSeeOther {
			w = r.ask("GET", w.Header().Get("Location"), cookie, nil)
		}
		return w.Body.String()
	}
	holds := func(page, want string) {
		t.Helper()
		if !strings.Contains(page, want) {
			t.Errorf("it does not say %q:\n%s", want, page)
		}
	}
	a := id("s_aaaaaaaaaaaaaaaa")
	holds(say(one, form1, a, "say", "yes"), "Type the code: ")
	holds(say(one, form1, a, "say", "yes", "code", "wrong"), "That is not the code")
	holds(say(one, form1, a, "say", "maybe"), "Neither yes nor no")
	holds(say(one, form1, a, "say", "keep", "code", code1), "Choose what is kept")
	if qs, _ := r.queue.Open(); len(qs) != 1 {
		t.Fatal("it was answered")
	}
	holds(say(two, form2, a, "say", "yes", "code", code1), "That is not the code") // it is another login's
	holds(say(one, form1, a, "say", "yes", "code", " "+strings.ToUpper(code1)+" "), "You said yes to ")
	if got, _ := r.queue.Said(a); !got.Yes || got.By != "kim" || got.Label != writ.User {
		t.Errorf("%+v", got)
	}
	holds(say(two, form2, a, "say", "no"), "kim answered first, with yes.")
	holds(say(one, form1, a, "say", "no"), "counts for nothing")
	holds(say(one, form1, "nothing", "say", "yes"), "That question is gone")
	b := id("s_bbbbbbbbbbbbbbbb")
	holds(say(one, form1, b, "say", "keep", "keep", "value"), "That was not offered")
	page := say(one, form1, b, "say", "keep", "keep", "source")
	holds(page, `accepts what words returned.</bdi> <a href="/policy#kept">`) // what is kept, and a link to it
	c := id("s_cccccccccccccccc")
	holds(say(two, form2, c, "say", "no"), "You said no to ") // it takes no code
	d := id("s_dddddddddddddddd")
	r.later(approval.Stands)
	holds(say(one, form1, d, "say", "yes"), "That question is gone")
	e := id("s_eeeeeeeeeeeeeeee")
	late := r.Code()
	r.later(codeStands)
	holds(say(two, form2, e, "say", "yes", "code", late), "That is not the code")
	code := r.Code()
	three, form3, _ := r.in()
	holds(say(three, form3, e, "say", "yes", "code", code), "You said yes")
	f := id("s_ffffffffffffffff")
	for range maxTries - 2 { // two were made above
		page = say(two, form2, f, "say", "yes", "code", code) // it was used
	}
	holds(page, "wrong too often")
	if w := r.ask("GET", "/approvals", two, nil); w.Code != http.StatusUnauthorized {
		t.Errorf("after too many tries: %d", w.Code)
	}
	if qs, _ := r.queue.Open(); len(qs) != 1 {
		t.Error("it was answered")
	}
}

// TestNames: a row says what its call acts on, as short as it has room for, and how its session is
// called; a session is found by that.
func TestNames(t *testing.T) {
	const other = "s_bbbbbbbbbbbbbbbb"
	r := newRig(t)
	r.words = "monday"
	act := func(role, value string) record {
		return decided(gate.Record{Server: "a", Tool: "b", Status: writ.Accepted, Allowed: true,
			Traces: []gate.Trace{{Pointer: "/id", Role: "selector", Label: writ.Model}, {Pointer: "/to", Role: role, Label: writ.Model}}}, `{"id":"x-1","to":"`+value+`"}`)
	}
	long := "b@example" + strings.Repeat("\u202e<b>", 300)
	r.write(one, open, act("content", "b@example"), act("target", long))
	r.write(other, open, act("content", "b@example"))
	cookie, _, _ := r.in()
	page := r.ask("GET", "/", cookie, nil).Body.String()
	for _, want := range []string{`title="/id &#34;x-1&#34;"><bdi>&#34;x-1&#34;</bdi>`, `title="/to &#34;b@example\u202e&lt;b&gt;`, `<bdi>&#34;b@example<span class="hid">U&#43;202E</span>&lt;b&gt;`,
		`<a href="/s/` + one + `" title="` + one + `"><bdi>monday</bdi></a>/2`, `<bdi>` + other + `</bdi></a>/2`} {
		if !strings.Contains(page, want) {
			t.Errorf("it does not say %q:\n%s", want, page)
		}
	}
	if strings.Count(page, "U&#43;202E") > 10 {
		t.Error("it says all of it")
	}
	for path, want := range map[string]string{"/audit?id=monday": "/s/" + one, "/audit?id=monday/2": "/d/" + one + "/2", "/audit?id=" + other: "/s/" + other} {
		if w := r.ask("GET", path, cookie, nil); w.Header().Get("Location") != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Header().Get("Location"))
		}
	}
	if page := r.ask("GET", "/charts", cookie, nil).Body.String(); !strings.Contains(page, "<code><bdi>monday</bdi></code>") {
		t.Errorf("the charts: %s", page)
	}
	for path, want := range map[string]int{"/?session=monday": 2, "/?session=" + other: 1, "/?session=tuesday": 0, "/charts?session=monday": 0} {
		if got := strings.Count(r.ask("GET", path, cookie, nil).Body.String(), "<tr data-index"); got != want {
			t.Errorf("%s: %d rows", path, got)
		}
	}
	r.o.Names = func(context.Context) map[string]string { return map[string]string{one: "monday", other: "monday"} }
	if w := r.ask("GET", "/audit?id=monday", cookie, nil); w.Header().Get("Location") != "/audit?session=monday" {
		t.Errorf("two of that name: %v", w.Header())
	}
}

// TestSaidOnce: what a refused argument lacks stands once on the page of its decision, its names as
// names, and refused is what the console says of it.
func TestSaidOnce(t *testing.T) {
	r := newRig(t)
	r.write(one, open, decided(gate.Record{Server: "a", Tool: "b", Status: writ.Rejected, Code: writ.MissingProvenance, Reason: writ.ProvenanceUnseen, Session: one,
		Failures: []writ.Failure{{Pointer: "/x", Reason: writ.ProvenanceUnseen, Need: "call `a_<b>`; it's ` alone"}}, Traces: []gate.Trace{{Pointer: "/x", Role: "selector", Label: writ.Model}}}, `{"x":"y-1234"}`))
	cookie, _, _ := r.in()
	const need = "call <code>a_&lt;b&gt;</code>; it&#39;s ` alone"
	page := r.ask("GET", "/d/"+one+"/2", cookie, nil).Body.String()
	if strings.Count(page, "s ` alone") != 1 || !strings.Contains(page, need) || strings.Contains(page, "rejected") || !strings.Contains(page, "It was refused: <code>b</code>") || !strings.Contains(page, "<bdi>MISSING_PROVENANCE</bdi>, <bdi>provenance.unseen</bdi>") {
		t.Errorf("it says %s", page)
	}
	for _, path := range []string{"/", "/s/" + one} {
		if page := r.ask("GET", path, cookie, nil).Body.String(); !strings.Contains(page, need) || !strings.Contains(page, `<code class="act" title="/x &#34;y-1234&#34;">`) {
			t.Errorf("%s: %s", path, page)
		}
	}
}

// TestHit: a link to a piece of evidence leads to its mark, and says what is marked.
func TestHit(t *testing.T) {
	r := newRig(t)
	r.write(one, open, decided(gate.Record{Server: "a", Tool: "list", Status: writ.Accepted, Allowed: true, Effect: []string{"read"}}, `{}`),
		returned(2, 1, "ok", `{"structuredContent":{"x":"words doc-1 words","y":"{\"id\":\"`+"\u202e"+`doc-2\"}"}}`))
	cookie, _, _ := r.in()
	for query, want := range map[string]string{
		"at=/structuredContent/x&has=doc-1": `Marked is what was looked for in <code><bdi>/structuredContent/x</bdi></code>.</p>`,
		"at=/structuredContent/x":           `Marked is <code><bdi>/structuredContent/x</bdi></code>.</p>`,
		"at=/structuredContent/y&in=/id":    `, and <code><bdi>/id</bdi></code> in its text.</p>`,
	} {
		page := r.ask("GET", "/e/"+one+"/1?"+query, cookie, nil).Body.String()
		if strings.Count(page, `id="hit"`) != 1 || strings.Count(page, `<mark id="hit">`) != 1 || !strings.Contains(page, want) {
			t.Errorf("%s: %s", query, page)
		}
	}
	// What is in no result is not said to be marked in one; of what an act made, where it is.
	for at, want := range map[string]string{
		"/structuredContent/z": "The place that was asked for is not in these bytes.",
		"/arguments/user":      "Its arguments stand with its decision.",
	} {
		if page := r.ask("GET", "/e/"+one+"/1?at="+at, cookie, nil).Body.String(); !strings.Contains(page, want) || strings.Contains(page, "Marked is") {
			t.Errorf("%s: %s", at, page)
		}
	}
}

// TestPicture: sources stand in their order; an argument leads to its bytes and an act to its
// decision; a value that needs no evidence says what it rests on.
func TestPicture(t *testing.T) {
	r := newRig(t)
	read := decided(gate.Record{Server: "a", Tool: "list", Status: writ.Accepted, Allowed: true, Effect: []string{"read"}}, `{}`)
	r.write(one, open, read, returned(2, 1, "ok", `{"structuredContent":{"x":"doc-1"}}`), read, returned(4, 2, "ok", `{"structuredContent":{"x":"doc-2"}}`),
		decided(gate.Record{Server: "a", Tool: "set", Status: writ.Accepted, Allowed: true, Session: one, Traces: []gate.Trace{
			{Pointer: "/x", Role: "selector", Label: writ.System, Rule: "output", Evidence: []gate.Ref{{Evidence: 2, Tool: "a/list", Pointer: "/structuredContent/x", Label: writ.System}}},
			{Pointer: "/y", Role: "content", Label: writ.Model, Rule: "open"}, {Pointer: "/z", Role: "enum", Label: writ.Operator, Rule: "const"}}}, `{"x":"doc-2","y":"words","z":"w"}`),
		decided(gate.Record{Server: "a", Tool: "set", Status: writ.Rejected, Code: writ.MissingProvenance, Reason: writ.ProvenanceUnseen, Session: one,
			Failures: []writ.Failure{{Pointer: "/x", Reason: writ.ProvenanceUnseen, Need: "y"}}, Traces: []gate.Trace{{Pointer: "/x", Role: "selector", Label: writ.Model}}}, `{"x":"doc-1"}`))
	cookie, _, _ := r.in()
	page := r.ask("GET", "/s/"+one, cookie, nil).Body.String()
	for _, want := range []string{`<a href="/e/` + one + `/2?at=%2FstructuredContent%2Fx#hit"><title>/x`, `<a href="/e/` + one + `/1?at=%2FstructuredContent%2Fx&amp;has=doc-1#hit"><title>/x`, `<a href="/d/` + one + `/6"><text`,
		`class="sub rests">free text</text>`, `class="sub rests">a constant of the operator</text>`, "/y &#34;words&#34; rests on no evidence: free text"} {
		if !strings.Contains(page, want) {
			t.Errorf("it does not say %q:\n%s", want, page)
		}
	}
	if first, second := strings.Index(page, `class="sub">ev1<`), strings.Index(page, `class="sub">ev2<`); first < 0 || second < first {
		t.Error("the sources stand in another order")
	}
}

// TestWords: an empty log says what comes next, a call that its server failed does not look like one
// that went well, and a picture of what did not pass says no more than it shows.
func TestWords(t *testing.T) {
	r := newRig(t)
	cookie, _, _ := r.in()
	says := func(path, want string) {
		t.Helper()
		if page := r.ask("GET", path, cookie, nil).Body.String(); !strings.Contains(page, want) {
			t.Errorf("%s does not say %q:\n%s", path, want, page)
		}
	}
	says("/", "Nothing was decided yet.")
	says("/?tool=x", "No decision of that kind.")
	says("/charts", "The log has no record yet.")
	says("/approvals", "Without a script this page holds no call")
	yes := decided(gate.Record{Server: "a", Tool: "b", Status: writ.Accepted, Allowed: true}, `{}`)
	r.write(one, open, yes, returned(2, 1, "error", `{}`), yes, returned(4, 2, "ok", `{}`),
		decided(gate.Record{Server: "a", Tool: "b", Status: writ.Rejected, Code: writ.PolicyViolation, Reason: writ.ApprovalPending}, `{}`))
	says("/", `<span class="note">the server answered with an error</span>`)
	says("/charts", "1 asked of 3</td>")
}

// TestOffers: a card tells in words what is kept from now on, whole and not broken by hand, and what
// who chooses it says by that.
func TestOffers(t *testing.T) {
	r := newRig(t)
	from := "tickets/list#/" + strings.Repeat("long/", 20) + "*/id"
	line := policy.Grown{Tool: "a/b", Arg: "/id", From: from, Writes: policy.WritesServer}
	exact := policy.Grown{Tool: "a/b", Arg: "/id", Const: []byte(`"T-<b>"`)}
	r.put(approval.Question{Session: one, Server: "a", Tool: "b", Arguments: []byte(`{"id":"T-1"}`)}, "1", approval.Effects{Offers: func() []approval.Offer {
		return []approval.Offer{{Keep: approval.KeepServer, Lines: []policy.Grown{line}}, {Keep: approval.KeepValue, Lines: []policy.Grown{exact}}}
	}})
	cookie, _, _ := r.in()
	page := r.ask("GET", "/approvals", cookie, nil).Body.String()
	for _, want := range []string{"because the server makes up what stands there", "<p><bdi>a/b /id accepts what " + from + " returned, which the server alone gives</bdi></p>", "<li><bdi>nobody but the server can write " + from + "</bdi></li>",
		"<bdi>" + html.EscapeString(approval.Line(line)) + "</bdi>", "<p><bdi>a/b /id accepts &#34;T-&lt;b&gt;&#34;</bdi></p>", "This value alone"} {
		if !strings.Contains(page, want) {
			t.Errorf("it does not say %q:\n%s", want, page)
		}
	}
}

// TestBeside: a card says of an id what its record is called, and leads to the bytes.
func TestBeside(t *testing.T) {
	r := newRig(t)
	inner, _ := json.Marshal(`{"rows":[{"id":"doc-2","title":"The second` + "\u202e" + `<b>"}]}`)
	r.write(one, open, decided(gate.Record{Server: "a", Tool: "list", Status: writ.Accepted, Allowed: true, Effect: []string{"read"}}, `{}`),
		returned(2, 1, "ok", `{"structuredContent":{"rows":[{"id":"doc-1","n":1,"by":"kim","state":"open","title":"The quarterly report","text":"`+strings.Repeat("x", 100)+`"}]},"content":[{"type":"text","text":`+string(inner)+`}]}`))
	value := func(at, raw string, ref gate.Ref) gate.AskedValue {
		ref.Evidence, ref.Tool, ref.Label = 1, "a/list", writ.External
		return gate.AskedValue{Pointer: at, Raw: []byte(raw), Seen: []gate.Ref{ref}}
	}
	r.put(approval.Question{Session: one, Server: "a", Tool: "b", Arguments: []byte(`{}`), Values: []gate.AskedValue{
		value("/x", `"doc-1"`, gate.Ref{Pointer: "/structuredContent/rows/0/id"}), value("/y", `"doc-2"`, gate.Ref{Pointer: "/content/0/text", Inner: "/rows/0/id"}),
		value("/z", `"gone"`, gate.Ref{Pointer: "/nowhere/0/id"})}}, "1", approval.Effects{})
	cookie, _, _ := r.in()
	page := r.ask("GET", "/approvals", cookie, nil).Body.String()
	for _, want := range []string{`<code><bdi>title</bdi></code> <q><bdi>The quarterly report</bdi></q>, which anyone can write`, `<q><bdi>open</bdi></q>`, `<q><bdi>The second<span class="hid">U&#43;202E</span>&lt;b&gt;</bdi></q>`,
		`<a href="/e/` + one + `/1?at=%2FstructuredContent%2Frows%2F0%2Fid#hit">`, `<a href="/e/` + one + `/1?at=%2Fcontent%2F0%2Ftext&amp;in=%2Frows%2F0%2Fid#hit">`} {
		if !strings.Contains(page, want) {
			t.Errorf("it does not say %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "<q><bdi>kim") || strings.Count(page, "<q>") != 3 {
		t.Errorf("it says more: %s", page)
	}
}

// TestGrown: the timeline says who allowed what from now on, and leads to where it is kept; the
// name of a record that is no decision leads to the timeline.
func TestGrown(t *testing.T) {
	r := newRig(t)
	cookie, _, _ := r.in()
	lines := policy.GrownText([]policy.Grown{{Tool: "a/set", Arg: "/id", From: "a/list#/*/id", Writes: policy.WritesOurs, By: "kim"}, {Tool: "a/set", Arg: "/id", Const: []byte(`"x"`)}})
	r.write(one, open, record{"grown", map[string]any{"keep": "ours", "by": "kim", "label": "user"}, map[string]string{"lines": string(lines)}},
		record{"grown", map[string]any{"keep": "ours", "by": "kim", "label": "user"}, nil})
	page := r.ask("GET", "/s/"+one, cookie, nil).Body.String()
	for _, want := range []string{`<a href="/policy#kept"><bdi>Allowed from now on</bdi></a>`, "kim allowed: a/set /id accepts what a/list#/*/id returned, where our own people alone write; a/set /id accepts &#34;x&#34;<", "kim allowed: what it was is erased"} {
		if !strings.Contains(page, want) {
			t.Errorf("it does not say %q:\n%s", want, page)
		}
	}
	for path, want := range map[string]int{"/d/" + one + "/2": http.StatusSeeOther, "/d/" + one + "/9": http.StatusNotFound, "/d/" + one + "/x": http.StatusNotFound} {
		w := r.ask("GET", path, cookie, nil)
		if to := w.Header().Get("Location"); w.Code != want || to != map[bool]string{true: "/s/" + one + "?at=2#n2"}[want == http.StatusSeeOther] {
			t.Errorf("%s: %d %s", path, w.Code, to)
		}
	}
}

// TestGone: an open page is told of a question that waits no more what became of it and where
// that stands, and when its call is held no more.
func TestGone(t *testing.T) {
	r := newRig(t)
	cookie, _, _ := r.in()
	const session = "s_aaaaaaaaaaaaaaaa"
	of := func(tool string) approval.Question {
		return approval.Question{Session: session, Server: "a", Tool: tool, Arguments: []byte(`{"x":1}`)}
	}
	yes, no, late, over := r.put(of("yes"), "1", approval.Effects{}), r.put(of("no"), "2", approval.Effects{}), r.put(of("late"), "3", approval.Effects{}), r.put(of("over"), "4", approval.Effects{})
	if got := r.ask("GET", "/approvals", cookie, nil).Body.String(); strings.Contains(got, `class="held over"`) || strings.Count(got, `class="held"`) != 4 {
		t.Errorf("held calls: %s", got)
	}
	r.queue.Reply(yes.ID, approval.Answer{Yes: true, By: "lee"})
	r.queue.Reply(no.ID, approval.Answer{By: "lee\x1b"})
	ended := of("over")
	ended.Since = r.queue.Now()
	r.queue.Passed(ended)
	open, _ := r.open(t.Context(), false)
	if got := r.gone(open); len(got) != 3 || got[yes.ID] != (went{"Accepted: lee said yes.", "/?session=" + session + "&tool=a%2Fyes"}) ||
		got[no.ID].Says != `Refused: lee\u001b said no.` || !strings.HasPrefix(got[over.ID].Says, "It waits no more: ") {
		t.Errorf("%q", got)
	}
	r.told("s_bbbbbbbbbbbbbbbb", "words")
	r.later(approval.Waits)
	if got := r.ask("GET", "/approvals", cookie, nil).Body.String(); strings.Count(got, `class="held over"`) != 1 {
		t.Errorf("45 s later: %s", got)
	}
	r.later(approval.Stands)
	open, _ = r.open(t.Context(), false)
	if got := r.gone(open); got[late.ID].Says != "Expired: nobody answered in time." {
		t.Errorf("%q", got)
	}
}

// counted counts what is read of a log.
type counted struct {
	*sqlite.Store
	records, values, bytes int
}

func (c *counted) Log(ctx context.Context, from int64) iter.Seq2[audit.Item, error] {
	return func(yield func(audit.Item, error) bool) {
		for it, err := range c.Store.Log(ctx, from) {
			c.records++
			if !yield(it, err) {
				return
			}
		}
	}
}

func (c *counted) Read(ctx context.Context, session string, from uint64) iter.Seq2[audit.Item, error] {
	return func(yield func(audit.Item, error) bool) {
		for it, err := range c.Store.Read(ctx, session, from) {
			c.records++
			for i := range it.Values {
				c.bytes += len(it.Values[i].Bytes)
			}
			if !yield(it, err) {
				return
			}
		}
	}
}

func (c *counted) Value(ctx context.Context, session string, n uint64, name string) ([]byte, error) {
	c.values++
	return c.Store.Value(ctx, session, n, name)
}

// TestManyRows: a list of a long log is read page by page, and each decision stands on one
// of them; a page reads no more for a longer log.
func TestManyRows(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 6_000
	}
	r := newRig(t)
	no := decided(gate.Record{Server: "a", Tool: "rare", Status: writ.Rejected, Code: writ.MissingProvenance, Reason: writ.ProvenanceUnseen}, `{}`)
	yes := decided(gate.Record{Server: "a", Tool: "often", Status: writ.Accepted, Allowed: true}, `{}`)
	batch := []record{open, no, yes}
	for i := range n {
		d := yes
		if i%997 == 0 {
			d = no
		}
		d.values = map[string]string{"call": `{"failures":[]}`}
		if d.data["tool"] == "often" {
			d.values = nil
		}
		if batch = append(batch, d); len(batch) == 1000 || i == n-1 {
			r.write("s_aaaaaaaaaaaaaaaa", batch...)
			batch = nil
		}
	}
	log := &counted{Store: r.log}
	r.o.Log = log
	cookie, _, _ := r.in()
	for _, path := range []string{"/", "/?before=50000", "/?after=50", "/?tool=rare", "/?status=unknown", "/?after=50&tool=rare", "/audit?reason=nothing", "/charts", "/charts?status=refused", "/tools",
		"/s/" + one, "/s/" + one + "?from=2", "/s/" + one + "?at=5000", "/d/" + one + "/2", "/d/" + one + "/3", "/e/" + one + "/1"} {
		log.records, log.values = 0, 0
		w := r.ask("GET", path, cookie, nil)
		want := http.StatusOK
		if path == "/e/"+one+"/1" { // there is none, and all would have to be read to know that
			want = map[bool]int{true: http.StatusServiceUnavailable, false: http.StatusNotFound}[n > perSearch]
		}
		if w.Code != want {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		if further := strings.Contains(w.Body.String(), "does not stand in the 4096 records behind it"); further != (path == "/d/"+one+"/3") {
			t.Errorf("%s: that its end may stand further on is told: %t", path, further)
		}
		if log.records > perSearch+2*atOnce || log.values > perPage {
			t.Errorf("%s reads %d records and %d values", path, log.records, log.values)
		}
	}
	// Who was away for long is told to read anew, and no more.
	req := httptest.NewRequest("GET", "http://"+host+"/events?after=0", nil).WithContext(t.Context())
	req.RequestURI = "/events?after=0"
	req.AddCookie(&http.Cookie{Name: r.cookie(false), Value: cookie})
	w := httptest.NewRecorder()
	close(r.end)
	r.ServeHTTP(w, req)
	if got := w.Body.String(); n > maxBehind && (!strings.Contains(got, "event: behind\n") || strings.Contains(got, "event: decision\n")) {
		t.Errorf("the stream from the first record on: %.300s", got)
	}
	seen, path := map[string]bool{}, "/?tool=rare"
	for path != "" {
		l, err := r.list(t.Context(), "/", filter{Tool: "rare"}, before(t, path), -1)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range l.Rows {
			if seen[d.ID] {
				t.Errorf("%s stands on two pages", d.ID)
			}
			seen[d.ID] = true
		}
		path = l.Older
	}
	if want := (n+996)/997 + 1; len(seen) != want {
		t.Errorf("%d of %d were listed", len(seen), want)
	}
}

func before(t *testing.T, path string) int64 {
	u, err := url.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	fmt.Sscan(u.Query().Get("before"), &n)
	return n
}

// TestEvents: the stream tells what is behind an index, once, and goes on where its client
// lost it; who watches the approvals is there; it ends with its login and with the server.
func TestEvents(t *testing.T) {
	r := newRig(t)
	yes := decided(gate.Record{Server: "a", Tool: "b", Status: writ.Accepted, Allowed: true}, `{}`)
	r.write("s_aaaaaaaaaaaaaaaa", open, yes, yes, yes)
	cookie, form, _ := r.in()
	srv := httptest.NewUnstartedServer(r)
	srv.Start()
	defer srv.Close()
	stream := func(path, last string) (*bufio.Reader, func()) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, "GET", srv.URL+path, nil)
		req.Host = host
		req.AddCookie(&http.Cookie{Name: r.cookie(false), Value: cookie})
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatal(err, resp)
		}
		return bufio.NewReader(resp.Body), func() { cancel(); resp.Body.Close() }
	}
	next := func(in *bufio.Reader) string {
		t.Helper()
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return err.Error()
			}
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				return strings.TrimSpace(id)
			}
		}
	}
	in, end := stream("/events?after=1", "")
	for _, want := range []string{"2", "3"} {
		if got := next(in); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	r.write("s_aaaaaaaaaaaaaaaa", yes)
	if got := next(in); got != "4" {
		t.Errorf("what is new: %s", got)
	}
	end()
	in, end = stream("/events?after=0&for=approvals", "3")
	if got := next(in); got != "4" {
		t.Errorf("after 3 comes %s", got)
	}
	if !r.queue.Watched() {
		t.Error("nobody watches")
	}
	r.ask("POST", "/logout", cookie, url.Values{"form": {form}})
	if got := next(in); got != io.EOF.Error() {
		t.Errorf("signed out, and told %s", got)
	}
	end()
	cookie, _, _ = r.in()
	in, end = stream("/events", "")
	close(r.end)
	if got := next(in); got != io.EOF.Error() {
		t.Errorf("ended, and told %s", got)
	}
	end()
}

// TestOutcomes: what is listed of a decision is what came of it, and is found by that.
func TestOutcomes(t *testing.T) {
	const session = "s_aaaaaaaaaaaaaaaa"
	r := newRig(t)
	r.told(session, "words")
	shadow := gate.Record{Server: "a", Tool: "b", Status: writ.Rejected, Allowed: true, Shadow: true, Code: writ.MissingProvenance, Reason: writ.ProvenanceUnseen}
	asked := gate.Record{Server: "a", Tool: "b", Status: writ.Rejected, Code: writ.PolicyViolation, Reason: writ.ApprovalPending}
	d := decided(shadow, `{}`)
	d.data["shadow"] = true
	r.write("s_bbbbbbbbbbbbbbbb", open, d, decided(asked, `{}`))
	cookie, _, _ := r.in()
	for status, ids := range map[string][]string{"accepted": {session + "/3"}, "unknown": {session + "/5"}, "refused": {"s_bbbbbbbbbbbbbbbb/2", session + "/7"}, "asked": {"s_bbbbbbbbbbbbbbbb/3"}} {
		l, err := r.list(t.Context(), "/", filter{Status: status}, 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range l.Rows {
			got = append(got, d.ID)
			if d.Shadow != (d.Note == "shadow mode let it pass") {
				t.Errorf("%s: %s", d.ID, d.Note)
			}
		}
		if !slices.Equal(got, ids) {
			t.Errorf("%s: %v, want %v", status, got, ids)
		}
		for _, id := range ids {
			if w := r.ask("GET", "/d/"+id, cookie, nil); !strings.Contains(w.Body.String(), `<span class="word `+status+`">`) {
				t.Errorf("%s is not %s on its page", id, status)
			}
		}
	}
	if w := r.ask("GET", "/s/"+session, cookie, nil); !strings.Contains(w.Body.String(), "nobody knows whether it happened") {
		t.Error("the timeline does not say what is unknown")
	}
}

// TestReplay: a policy's text is judged for the login that sent it, one at a time, bounded, as
// long as somebody looks, and for nobody without the token of his form.
func TestReplay(t *testing.T) {
	r := newRig(t)
	r.words = "words"
	cookie, form, _ := r.in()
	other, otherForm, _ := r.in()
	page := func(cookie string) string { return r.ask("GET", "/policy/replay", cookie, nil).Body.String() }

	if got := page(cookie); !strings.Contains(got, "tools:\n# words</textarea>") || !strings.Contains(got, "Here stands the one in force") {
		t.Errorf("it does not begin with what is in force: %s", got)
	}
	r.judge(cookie, "tools:\r\n")
	for _, want := range []string{"2 calls in 1 session;", "2 accepted", "1 asked, 1 refused", `href="/d/` + one + `/3"`, "after another of its session", "13 calls more were made under another definition of the tool", "After another of its session: an earlier call", "tools:\n</textarea>"} {
		if !strings.Contains(page(cookie), want) {
			t.Errorf("it does not say %q:\n%s", want, page(cookie))
		}
	}
	if strings.Contains(page(other), "What it would have decided") {
		t.Error("another login is shown it")
	}
	r.judge(cookie, "fault: here")
	if got := page(cookie); !strings.Contains(got, "line 1, column 7:") || !strings.Contains(got, "<code>fault: here</code>") || strings.Contains(got, "What it would") {
		t.Errorf("of a fault it says %s", got)
	}

	type job struct {
		ctx  context.Context
		text string
		tell func(int, int)
		end  chan *Replayed
	}
	jobs := make(chan job)
	r.o.Replay = func(ctx context.Context, text []byte, progress func(int, int)) (*Replayed, error) {
		j := job{ctx, string(text), progress, make(chan *Replayed)}
		jobs <- j
		select {
		case res := <-j.end:
			return res, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"no token": r.send(cookie, map[string]string{"text": "x"}, nil), "another's token": r.send(cookie, map[string]string{"form": otherForm, "text": "x"}, nil),
		"no text": r.send(cookie, map[string]string{"form": form, "text": " \r\n"}, nil), "too long": r.send(cookie, map[string]string{"form": form}, make([]byte, maxPolicyText+1)),
		"much too long": r.send(cookie, map[string]string{"form": form}, make([]byte, 2*maxPolicyText)), "nobody": r.send("", map[string]string{"form": form, "text": "x"}, nil),
	} {
		if w.Code < 400 {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	send := func(cookie, form, text string, want int) {
		t.Helper()
		if w := r.send(cookie, map[string]string{"form": form, "text": "not this"}, []byte(text)); w.Code != want {
			t.Fatalf("%s: %d %s", text, w.Code, w.Body)
		}
	}
	send(cookie, form, "first", http.StatusSeeOther)
	first := <-jobs
	first.tell(3, 40)
	if got := page(cookie); first.text != "first" || !strings.Contains(got, "Checking: session 3 of 40.") || !strings.Contains(got, "<noscript><meta") || strings.Contains(got, "<textarea") {
		t.Errorf("under way, of %s: %s", first.text, got)
	}
	send(other, otherForm, "x", http.StatusTooManyRequests)
	send(cookie, form, "second", http.StatusSeeOther) // in the place of the first
	<-first.ctx.Done()
	second := <-jobs
	// Who watches is there, however long it takes; when he leaves it ends.
	leave := r.watch(r.loggedInBy(cookie).replay)
	r.later(2 * unwatched)
	second.tell(1, 2)
	leave()
	if second.ctx.Err() != nil {
		t.Error("it ended while somebody looked")
	}
	r.later(unwatched + time.Second)
	<-second.ctx.Done()
	<-r.loggedInBy(cookie).replay.over
	if got := page(cookie); !strings.Contains(got, "nobody looked at it any more") {
		t.Errorf("left: %s", got)
	}
	send(cookie, form, "third", http.StatusSeeOther)
	third, over := <-jobs, r.loggedInBy(cookie).replay.over
	r.ask("POST", "/logout", cookie, url.Values{"form": {form}})
	<-third.ctx.Done()
	<-over
	send(other, otherForm, "fourth", http.StatusSeeOther)
	fourth := <-jobs
	fourth.end <- &Replayed{Otherwise: slices.Repeat([]Difference{{one, 2, "a/b", "accepted", "refused", "", "x", false, "", "", time.Time{}, ""}}, 5000), Faults: nil}
	<-r.loggedInBy(other).replay.over
	if got := page(other); strings.Count(got, "<tr>") != maxOtherwise+4 || !strings.Contains(got, "4800 more: <code>writ audit replay") {
		t.Errorf("%d rows", strings.Count(got, "<tr>"))
	}
	send(other, otherForm, "fifth", http.StatusSeeOther)
	fifth := <-jobs
	close(r.end)
	<-fifth.ctx.Done()
}

// TestBrokenOff: what is done beside the requests ends by itself where it breaks off, and not
// the gateway; the next one is begun as ever.
func TestBrokenOff(t *testing.T) {
	r := newRig(t)
	cookie, form, _ := r.in()
	broken, good := true, r.o.Replay
	r.o.Replay = func(ctx context.Context, text []byte, progress func(int, int)) (*Replayed, error) {
		if broken {
			panic(hostileText)
		}
		return good(ctx, text, progress)
	}
	verified := make(chan struct{}, 1)
	r.o.Verify = func(context.Context, func(int64, int64)) (string, bool, error) {
		defer func() { verified <- struct{}{} }()
		if broken {
			panic(hostileText)
		}
		return "ok: all of it", true, nil
	}
	for _, want := range []string{"it broke off by a fault of Writ&#39;s own, and found nothing; writ audit replay", "What it would have decided"} {
		r.judge(cookie, "tools:\n")
		if got := r.ask("GET", "/policy/replay", cookie, nil).Body.String(); !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
		broken = false
	}
	broken = true
	for _, want := range []string{"something was wrong. it broke off by a fault of Writ&#39;s own", "ok: all of it"} {
		if w := r.ask("POST", "/audit/verify", cookie, url.Values{"form": {form}}); w.Code != http.StatusSeeOther {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		<-verified
		got := ""
		for got = "Checking"; strings.Contains(got, "Checking"); {
			got = r.ask("GET", "/audit", cookie, nil).Body.String()
		}
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
		broken = false
	}
}

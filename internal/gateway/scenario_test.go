package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
)

// TestScenarios runs every file of testdata/scenarios with each kind of client
// against servers on every wire and transport. A file holds policy.yaml, the
// lists of its servers (files/tools/list.json) and steps; what a step may say
// is in testdata/scenarios/README.md.
func TestScenarios(t *testing.T) {
	names, err := filepath.Glob("testdata/scenarios/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no scenarios", err)
	}
	for i, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		a := txtar.Parse(src)
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			for k := range kinds {
				v := (k + i) % 4
				modern, http := v&1 == 1, v&2 == 2
				t.Run(fmt.Sprintf("%s to %s-%s", kinds[k].name, pick(modern, "modern", "legacy"), pick(http, "http", "stdio")), func(t *testing.T) {
					open := onMaps
					if k == i%4 {
						open = onSQLite
					}
					runScenario(t, a, open(t), k, modern, http)
				})
			}
		})
	}
}

func pick(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

// scenario is one run of a file.
type scenario struct {
	t        *testing.T
	files    map[string]string
	rig      *rig
	kind     int
	servers  map[string]*scripted
	clients  map[string]*wire
	secrets  map[string]string // of stdio sessions, where a file restarts
	now      string            // the client that speaks
	restarts bool
	calls    []string // argument bytes the servers received with tools/call
}

// step is one request with what is expected of it.
type step struct {
	line   int
	verb   string
	rest   string
	params string
	meta   string
	reply  string // "" when the server must not be asked
	expect map[string]string
}

func runScenario(t *testing.T, a *txtar.Archive, st gateway.Store, kind int, modern, http bool) {
	ctx := testContext(t)
	s := &scenario{t: t, files: map[string]string{}, kind: kind, servers: map[string]*scripted{}, clients: map[string]*wire{}, secrets: map[string]string{}, now: "a"}
	var order []string
	files := a.Files
	for _, f := range a.Files {
		if f.Name == "base" { // what several scenarios share
			src, err := os.ReadFile(filepath.Join("testdata/scenarios/base", strings.TrimSpace(string(f.Data))+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			files = append(txtar.Parse(src).Files, files...)
		}
	}
	for _, f := range files {
		s.files[f.Name] = string(f.Data)
		if server, list, ok := strings.Cut(strings.TrimSuffix(f.Name, ".json"), "/"); ok && strings.HasSuffix(list, "/list") {
			if s.servers[server] == nil {
				s.servers[server] = newScripted(t, server, modern)
				order = append(order, server)
			}
			s.servers[server].list(list, oneLine(string(f.Data)))
		}
	}
	var configs []upstream.Config
	for _, name := range order {
		configs = append(configs, s.servers[name].config(http))
	}
	steps := s.parse(s.files["steps"])
	s.rig = newRig(t, st, policy(t, s.files["policy.yaml"]), configs...)
	for _, x := range steps {
		s.run(ctx, x)
		if t.Failed() {
			t.Fatalf("in step at line %d: %s %s", x.line, x.verb, x.rest)
		}
	}
	s.sameBytes(ctx)
}

func oneLine(s string) string {
	return string(strictjson.Compact([]byte(s)))
}

func (s *scenario) parse(text string) []step {
	var out []step
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		verb, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		switch verb {
		case "call", "request", "client", "restart", "list":
			x := step{line: n + 1, verb: verb, rest: rest, expect: map[string]string{}}
			s.restarts = s.restarts || verb == "restart"
			name, params, _ := strings.Cut(rest, " ")
			x.rest, x.params = name, strings.TrimSpace(params)
			out = append(out, x)
			continue
		}
		if len(out) == 0 {
			s.t.Fatalf("steps line %d: nothing to say that of", n+1)
		}
		x := &out[len(out)-1]
		switch verb {
		case "reply":
			x.reply = `"result":` + rest
		case "fail":
			x.reply = `"error":` + rest
		case "meta":
			x.meta = rest
		case "sent", "sentmeta", "refused", "error", "evidence", "names", "has":
			x.expect[verb] = rest
		default:
			s.t.Fatalf("steps line %d: unknown word %q", n+1, verb)
		}
	}
	return out
}

// client returns the client that speaks, and connects it first.
func (s *scenario) client(ctx context.Context) *wire {
	if w := s.clients[s.now]; w != nil {
		return w
	}
	var w *wire
	if s.restarts && !kinds[s.kind].http {
		secret := s.secrets[s.now]
		if secret == "" {
			var err error
			if secret, _, err = createSession(ctx, s.rig.gw, "local"); err != nil {
				s.t.Fatal(err)
			}
			s.secrets[s.now] = secret
		}
		sess, err := s.rig.gw.FindSession(ctx, "local", secret)
		if err != nil {
			s.t.Fatal("the session is gone")
		}
		w = overLines(ctx, s.rig, kinds[s.kind].modern, downstream.StdioOptions{Session: sess})
	} else {
		w = s.rig.connect(ctx, s.kind)
	}
	s.clients[s.now] = w
	return w
}

func (s *scenario) run(ctx context.Context, x step) {
	switch x.verb {
	case "client":
		s.now = x.rest
	case "restart":
		for name, w := range s.clients {
			if !kinds[s.kind].http {
				w.close()
				delete(s.clients, name)
			}
		}
		s.rig.restart()
	case "list": // list SERVER METHOD FILE
		f := strings.Fields(x.params)
		s.change(ctx, x.rest, f[0], s.files[f[1]])
	case "call":
		x.params = callParams(x.rest, x.params)
		s.request(ctx, x, "tools/call")
	case "request":
		s.request(ctx, x, x.rest)
	}
}

// change gives a server another list, lets it say so, and waits until the
// gateway has it.
func (s *scenario) change(ctx context.Context, server, method, list string) {
	changed := make(chan struct{}, 16)
	_, cancel := s.rig.gw.Subscribe(ctx, downstream.Listener{Filter: downstream.Filter{Tools: true}}, func(string, []byte) { changed <- struct{}{} })
	defer cancel()
	up := s.servers[server]
	up.list(method, oneLine(list))
	up.awaitStream(ctx)
	up.tell(`{"jsonrpc":"2.0","method":"notifications/` + strings.TrimSuffix(method, "/list") + `/list_changed"}`)
	select {
	case <-changed:
	case <-ctx.Done():
		s.t.Fatal("the gateway did not take the new list")
	}
}

func (s *scenario) request(ctx context.Context, x step, method string) {
	t := s.t
	params := x.params
	if x.meta != "" {
		params = string(strictjson.Set([]byte(orText(params, "{}")), "_meta", []byte(x.meta)))
	}
	if x.reply != "" {
		for _, up := range s.servers {
			up.reply(x.reply)
		}
	}
	a := s.client(ctx).request(ctx, method, params)
	var got []received
	for _, up := range s.servers {
		got = append(got, up.take()...)
		up.mu.Lock()
		up.replies = nil
		up.mu.Unlock()
	}
	for _, g := range got {
		if g.method == "tools/call" {
			s.calls = append(s.calls, string(strictjson.Get(g.params, "arguments")))
		}
	}
	s.checkSent(x, params, got)
	if r := refusedFor(a); x.expect["refused"] != "" || r != "" && x.expect["error"] == "" {
		f := strings.Fields(x.expect["refused"])
		if len(f) == 0 {
			t.Errorf("refused: %s", r)
			return
		}
		want := fmt.Sprint(writ.CodeOf(writ.Reason(f[0])), " ", f[0])
		if len(f) == 1 {
			f = append(f, `""`)
		}
		for _, p := range f[1:] {
			if p != `""` {
				p = strconv.Quote(p)
			}
			want += " " + p
		}
		if r != want {
			t.Errorf("refused: got %s, want %s (%s %s)", r, want, a.result, a.err)
		}
		if method == "tools/call" {
			checkRefusal(t, a)
		}
		return
	}
	if want := x.expect["error"]; want != "" {
		if code := text(a.err, "code"); code != want {
			t.Errorf("error: got %s, want %s (%s %s)", code, want, a.result, a.err)
		}
		return
	}
	if want := x.expect["names"]; want != "" || method == "tools/list" {
		var names []string
		es, _ := strictjson.Elements(strictjson.Get(a.result, strings.TrimSuffix(method, "/list")))
		for _, e := range es {
			names = append(names, orText(text(e, "name"), text(e, "uri")))
		}
		if strings.Join(names, " ") != want {
			t.Errorf("%s: got %q, want %q", method, names, want)
		}
		return
	}
	if want := x.expect["has"]; want != "" && !bytes.Contains(a.result, []byte(want)) {
		t.Errorf("the answer %s lacks %s", a.result, want)
	}
	if x.reply != "" {
		if sent, ok := strings.CutPrefix(x.reply, `"error":`); ok {
			if string(a.err) != sent {
				t.Errorf("the server's error %s came as %s %s", sent, a.err, a.result)
			}
		} else if err := intact(a.result, []byte(strings.TrimPrefix(x.reply, `"result":`)), kinds[s.kind].modern); err != nil {
			t.Errorf("%v: %s %s", err, a.result, a.err)
		}
	}
	ev := strictjson.Get(strictjson.Get(a.result, "_meta"), gateway.MetaEvidence)
	switch want := x.expect["evidence"]; {
	case want == "":
	case want == "ok":
		if text(ev, "admissible") != "true" || text(ev, "why") != "" || !strings.HasPrefix(text(ev, "id"), "s_") {
			t.Errorf("evidence: %s", ev)
		}
	case text(ev, "admissible") != "false" || text(ev, "why") != want:
		t.Errorf("evidence: %s, want %s", ev, want)
	}
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// checkSent holds what the servers received against what they should have.
func (s *scenario) checkSent(x step, params string, got []received) {
	want, told := x.expect["sent"]
	if !told {
		want = "nothing"
		if x.reply != "" {
			want = string(strictjson.Delete([]byte(params), "_meta"))
		}
	}
	if want == "nothing" {
		if len(got) != 0 {
			s.t.Errorf("the server was sent %s", got[0].params)
		}
		return
	}
	if len(got) != 1 {
		s.t.Errorf("%d requests reached a server, want one", len(got))
		return
	}
	if err := same(strictjson.Delete(got[0].params, "_meta"), []byte(want)); err != nil {
		s.t.Errorf("%v: the server was sent %s, want %s", err, got[0].params, want)
	}
	var kept []string
	ms, _ := strictjson.Members(strictjson.Get(got[0].params, "_meta"))
	for _, m := range ms {
		if !strings.HasPrefix(m.Name, "io.modelcontextprotocol/") && m.Name != "progressToken" {
			kept = append(kept, m.Name+"="+string(m.Value))
		}
	}
	if strings.Join(kept, " ") != x.expect["sentmeta"] {
		s.t.Errorf("_meta reached the server as %q, want %q (P15)", kept, x.expect["sentmeta"])
	}
	for h := range got[0].header {
		if h == "Authorization" || h == "Writ-Session" || h == "Cookie" {
			s.t.Errorf("the client's %s reached the server (S10)", h)
		}
	}
}

// same reports how two objects differ, member by member and byte by byte.
func same(got, want []byte) error {
	g, ok1 := strictjson.Members(got)
	w, ok2 := strictjson.Members(want)
	if !ok1 || !ok2 {
		return fmt.Errorf("not objects")
	}
	if len(g) != len(w) {
		return fmt.Errorf("%d members, want %d", len(g), len(w))
	}
	for i := range g {
		if g[i].Name != w[i].Name || !bytes.Equal(g[i].Value, w[i].Value) {
			return fmt.Errorf("member %s differs", w[i].Name)
		}
	}
	return nil
}

// required are the members that a client of 2026-07-28 must find in a result
// and may miss in that of a server of the other wire.
var required = map[string]string{"resultType": `"complete"`, "ttlMs": "0", "cacheScope": `"private"`}

// intact reports what of a server's result did not reach the client as it was.
// _meta may have gained members, and only Writ's; for a client of 2026-07-28
// what is required of every result may have been added.
func intact(got, sent []byte, modern bool) error {
	for name, value := range required {
		if modern && strictjson.Get(sent, name) == nil && string(strictjson.Get(got, name)) == value {
			got = strictjson.Delete(got, name)
		}
	}
	if err := same(strictjson.Delete(got, "_meta"), strictjson.Delete(sent, "_meta")); err != nil {
		return err
	}
	g, _ := strictjson.Members(strictjson.Get(got, "_meta"))
	g = slices.DeleteFunc(slices.Clone(g), func(m strictjson.Member) bool { return strings.HasPrefix(m.Name, "io.github.writ-project/") })
	w, _ := strictjson.Members(strictjson.Get(sent, "_meta"))
	if len(g) != len(w) {
		return fmt.Errorf("_meta has %d members of the server's, it sent %d", len(g), len(w))
	}
	for i := range g {
		if g[i].Name != w[i].Name || !bytes.Equal(g[i].Value, w[i].Value) {
			return fmt.Errorf("_meta member %s differs", w[i].Name)
		}
	}
	return nil
}

// checkRefusal holds the form of a refused tools/call: isError, one text block
// that says in words what, why and what next, and the outcome once, under Writ's _meta
// key.
func checkRefusal(t testing.TB, a answer) {
	t.Helper()
	if a.err != nil {
		if outcomeOf(a) == nil {
			t.Errorf("the refusal has no outcome: %s", a.err)
		}
		return
	}
	out := outcomeOf(a)
	blocks, _ := strictjson.Elements(strictjson.Get(a.result, "content"))
	if text(a.result, "isError") != "true" || len(blocks) != 1 || text(blocks[0], "type") != "text" ||
		!strings.HasPrefix(text(blocks[0], "text"), "Not done: ") || !strings.HasSuffix(text(blocks[0], "text"), "("+text(out, "rejection", "code")+", "+text(out, "rejection", "reason")+")") ||
		bytes.Count(a.result, out) != 1 || bytes.Count(a.result, []byte(`"rejection`)) != 1 || strictjson.Get(a.result, "structuredContent") != nil {
		t.Errorf("the refusal has another form: %s", a.result)
	}
	es, _ := strictjson.Elements(strictjson.Get(strictjson.Get(out, "rejection"), "failures"))
	if text(out, "status") != "rejected" || len(es) == 0 {
		t.Errorf("the outcome says too little: %s", out)
	}
	for _, e := range es {
		if text(e, "need") == "" {
			t.Errorf("the refusal does not say what would make it pass: %s", e)
		}
	}
}

// sameBytes is P20: for every call a server received, the log holds a decision
// on exactly those argument bytes, and no other call was allowed.
func (s *scenario) sameBytes(ctx context.Context) {
	for _, w := range s.clients {
		w.close()
	}
	s.rig.stop()
	var want []audit.Digest
	for head, err := range s.rig.store.Heads(ctx) {
		if err != nil {
			s.t.Fatal(err)
		}
		for it, err := range s.rig.store.Read(ctx, head.Session, 1) {
			if err != nil {
				s.t.Fatal(err)
			}
			rec, err := audit.ParseRecord(it.Leaf)
			if err != nil {
				s.t.Fatal(err)
			}
			if rec.Kind == audit.KindDecision && text(rec.Data, "method") == "" && text(rec.Data, "status") != "rejected" {
				want = append(want, audit.Sum(argumentsIn(&it)))
			}
		}
	}
	var got []audit.Digest
	for _, c := range s.calls {
		got = append(got, audit.Sum([]byte(c)))
	}
	order := func(a, b audit.Digest) int { return bytes.Compare(a[:], b[:]) }
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		s.t.Errorf("the servers received %d calls, the log allowed %d, or the bytes differ (P20)", len(got), len(want))
	}
}

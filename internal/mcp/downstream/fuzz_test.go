package downstream

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/writ-project/writ/internal/strictjson"
)

// strictRouter answers at once and holds what reaches it against what the
// package promises.
type strictRouter struct {
	*fake
	t *testing.T
}

func (s strictRouter) Subscribe(context.Context, Listener, func(string, []byte)) (Filter, func()) {
	return Filter{}, func() {}
}

func (s strictRouter) Handle(ctx context.Context, r *Request) Reply {
	s.check(r)
	if r.ID == nil || strictjson.Check(r.ID, strictjson.Request) != nil {
		s.t.Errorf("id %q", r.ID)
	}
	if r.Era == Legacy && r.Session == nil {
		s.t.Error("a legacy request without a session")
	}
	r.Peer.Notify(ctx, "notifications/progress", []byte(`{}`))
	return Reply{Result: []byte("{\"a\":\n1}")}
}

func (s strictRouter) check(r *Request) {
	if r.Params.Exists() && (strictjson.Check(r.Params.Raw(), strictjson.Request) != nil || r.Params.Kind() != strictjson.Object) {
		s.t.Errorf("params %q", r.Params.Raw())
	}
	if r.Method == "" || (r.Era == Modern) != (r.Version == Version20260728) || !strings.Contains(strings.Join(Versions, " "), r.Version) {
		s.t.Errorf("method %q era %d version %q", r.Method, r.Era, r.Version)
	}
}

// checkAnswer holds one message we sent: strict JSON, and no text of a peer in
// an error's message.
func checkAnswer(t *testing.T, b []byte) {
	t.Helper()
	if err := strictjson.Check(b, strictjson.Result); err != nil {
		t.Fatalf("answered %q: %v", b, err)
	}
	es, ok := strictjson.Elements(b)
	if !ok {
		es = [][]byte{b}
	}
	for _, e := range es {
		if v, _ := strictjson.Text(strictjson.Get(e, "jsonrpc")); v != "2.0" {
			t.Fatalf("answered %q", b)
		}
		if m, ok := strictjson.Text(strictjson.Get(strictjson.Get(e, "error"), "message")); ok && strings.Contains(m, "MARK") {
			t.Fatalf("an error repeats what was sent: %q", b)
		}
	}
}

func FuzzPost(f *testing.F) {
	files, _ := filepath.Glob("testdata/http/*.txtar")
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for i := 0; i < len(a.Files); i += 2 {
			head, body, _ := strings.Cut(string(a.Files[i].Data), "\n\n")
			line, fields, _ := strings.Cut(head, "\n")
			if w := strings.Fields(line); len(w) == 3 {
				f.Add(w[0], strings.ReplaceAll(w[1], "{{fixed}}", "fixed"), strings.ReplaceAll(fields, "{{session}}", "fixed"), []byte(strings.TrimSpace(body)))
			}
		}
	}
	f.Add("POST", "/mcp", "Mcp-Session-Id: fixed\nAccept: */*\nContent-Type: application/json", []byte(`{"jsonrpc":"2.0","id":1,"method":"MARK"}`))
	f.Fuzz(func(t *testing.T, method, target, fields string, body []byte) {
		r, err := http.NewRequest(method, "http://localhost/", bytes.NewReader(body))
		if err != nil {
			return
		}
		if r.URL, err = r.URL.Parse(target); err != nil {
			return
		}
		r.RequestURI, r.Host = target, "localhost"
		for l := range strings.Lines(fields) {
			if k, v, ok := strings.Cut(strings.TrimSpace(l), ":"); ok {
				r.Header.Add(k, strings.TrimSpace(v))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if r.Method == http.MethodGet {
			cancel() // a stream would stay open
		}
		fk := newFake()
		fk.mint("fixed", Loopback)
		h := NewHTTP(strictRouter{fk, t}, Options{})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(ctx))
		if err := h.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.Code < 200 || w.Code > 599 {
			t.Fatalf("status %d", w.Code)
		}
		switch out := w.Body.Bytes(); w.Header().Get("Content-Type") {
		case "application/json":
			checkAnswer(t, out)
		case "text/event-stream":
			for l := range strings.Lines(string(out)) {
				l = strings.TrimSuffix(l, "\n")
				data, isData := strings.CutPrefix(l, "data: ")
				switch {
				case isData:
					checkAnswer(t, []byte(data))
				case l == "", l == ":", l == "event: message", strings.HasPrefix(l, "id: ") && len(l) == 52:
				default:
					t.Fatalf("W13: a line of our stream is %q", l)
				}
			}
		default:
			if len(out) > 0 {
				t.Fatalf("a body of no type: %q", out)
			}
		}
	})
}

func FuzzStdio(f *testing.F) {
	files, _ := filepath.Glob("testdata/stdio/*.txt")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var in []string
		for l := range strings.Lines(string(raw)) {
			if s, ok := strings.CutPrefix(l, "> "); ok {
				in = append(in, s)
			}
		}
		f.Add([]byte(strings.Join(in, "")))
	}
	f.Add([]byte("MARK\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"MARK\"}\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		fk := newFake()
		var out lockedBuffer
		if err := ServeStdio(t.Context(), strictRouter{fk, t}, bytes.NewReader(in), &out, StdioOptions{MaxLine: 1 << 16}); err != nil {
			t.Fatal(err)
		}
		if fk.open() != 0 {
			t.Error("a session was left open")
		}
		for l := range bytes.Lines(out.Bytes()) {
			if !bytes.HasSuffix(l, []byte("\n")) {
				t.Fatalf("half a line: %q", l)
			}
			checkAnswer(t, l)
		}
	})
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

package downstream

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what is answered into testdata")

// serveHTTP starts the hardened server on loopback.
func serveHTTP(t testing.TB, f *fake, o Options) (addr string) {
	t.Helper()
	addr, _ = serveHandler(t, f, o)
	return addr
}

func serveHandler(t testing.TB, f *fake, o Options) (string, *HTTP) {
	t.Helper()
	return servePaced(t, f, o, unhurried)
}

func servePaced(t testing.TB, f *fake, o Options, p pace) (string, *HTTP) {
	t.Helper()
	o.Refused = f.hook
	h := NewHTTP(f, o)
	s := &httptest.Server{Config: newServer(h, newSockets(maxSockets, spareSockets), p)}
	var err error
	if s.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		h.Shutdown(t.Context())
		s.Close()
	})
	return s.Listener.Addr().String(), h
}

// rawExchange sends bytes as they are and reads one response.
func rawExchange(t testing.TB, addr, request string) *http.Response {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	return r
}

var eventIDs = regexp.MustCompile(`(?m)^id: [A-Za-z0-9_-]{48}$`)

// TestHTTPCases runs testdata/http/*.txtar. Each file is one server; its
// sections come in pairs: "request: NAME" holds a raw HTTP request, to which
// Host and Content-Length are added when missing ("Host: -" leaves it out);
// "response" holds the status, some header fields, what was refused, and the
// body. A last header line "Body: "a" * 3 "b"" gives a body in Go strings.
//
//	{{session}}  the last Mcp-Session-Id that was answered
//	{{fixed}}    a session of this principal minted for the file
//	{{foreign}}  a session of another principal
func TestHTTPCases(t *testing.T) {
	files, _ := filepath.Glob("testdata/http/*.txtar")
	if len(files) == 0 {
		t.Fatal("no cases")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f := newFake()
			f.mint("fixed-secret-of-mine", Loopback)
			f.mint("foreign-secret", "somebody else")
			addr := serveHTTP(t, f, Options{})
			session := "\x00 none yet"
			if len(a.Files)%2 != 0 {
				t.Fatal("requests and responses come in pairs")
			}
			for i := 0; i < len(a.Files); i += 2 {
				name, ok := strings.CutPrefix(a.Files[i].Name, "request: ")
				if !ok || a.Files[i+1].Name != "response" {
					t.Fatalf("section %d: want request: NAME, then response", i)
				}
				req := strings.NewReplacer("{{session}}", session, "{{fixed}}", "fixed-secret-of-mine", "{{foreign}}", "foreign-secret", "{{addr}}", addr).
					Replace(string(a.Files[i].Data))
				r := rawExchange(t, addr, wire(req, addr))
				if s := r.Header.Get(headerSession); s != "" {
					session = s
				}
				got := strings.NewReplacer(session, "{{session}}", "fixed-secret-of-mine", "{{fixed}}").Replace(describe(r, f.takeRefused()))
				got = eventIDs.ReplaceAllString(got, "id: *")
				if *update {
					a.Files[i+1].Data = []byte(got)
				} else if want := string(a.Files[i+1].Data); strings.TrimSpace(got) != strings.TrimSpace(want) {
					t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
				}
			}
			if *update {
				os.WriteFile(file, txtar.Format(a), 0o644)
			}
		})
	}
}

// wire makes a raw request of a case's text: CRLF in the header, Host and
// Content-Length where they are missing. "Host: -" leaves the field out.
func wire(s, addr string) string {
	head, body, _ := strings.Cut(s, "\n\n")
	head = strings.TrimSuffix(head, "\n")
	body = strings.TrimSuffix(body, "\n")
	if n := strings.Index(head, "\nBody: "); n >= 0 { // a body in Go syntax
		var spec string
		head, spec = head[:n], strings.TrimSpace(head[n+len("\nBody: "):])
		body = expand(spec)
	}
	low := strings.ToLower(head)
	if !strings.Contains(low, "\nhost:") {
		head += "\nHost: " + addr
	}
	head = strings.ReplaceAll(head, "\nHost: -", "")
	if body != "" && !strings.Contains(low, "\ncontent-length:") && !strings.Contains(low, "\ntransfer-encoding:") {
		head += fmt.Sprintf("\nContent-Length: %d", len(body))
	}
	return strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n" + body
}

// expand concatenates Go strings, each with an optional " * N".
func expand(spec string) string {
	var b strings.Builder
	for spec = strings.TrimSpace(spec); spec != ""; spec = strings.TrimSpace(spec) {
		q, err := strconv.QuotedPrefix(spec)
		if err != nil {
			panic("not a Go string: " + spec)
		}
		unit, _ := strconv.Unquote(q)
		spec = strings.TrimSpace(spec[len(q):])
		n := 1
		if rest, ok := strings.CutPrefix(spec, "*"); ok {
			word, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			if n, err = strconv.Atoi(word); err != nil {
				panic(err)
			}
			spec = strings.TrimPrefix(strings.TrimSpace(rest), word)
		}
		b.WriteString(strings.Repeat(unit, n))
	}
	return b.String()
}

func describe(r *http.Response, refused []refusal) string {
	var b strings.Builder
	fmt.Fprintln(&b, r.StatusCode)
	for _, k := range []string{"Allow", "Content-Type", "Mcp-Session-Id", "Retry-After"} {
		if v := r.Header.Get(k); v != "" {
			fmt.Fprintf(&b, "%s: %s\n", k, v)
		}
	}
	if r.Close {
		fmt.Fprintln(&b, "Connection: close")
	}
	for _, x := range refused {
		fmt.Fprintf(&b, "Refused: %s\n", x.Why)
	}
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(&b, "\n%s\n", body)
	return b.String()
}

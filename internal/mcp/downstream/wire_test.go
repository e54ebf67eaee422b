package downstream

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestW12RequestSmuggling sends bytes that two readers could cut apart
// differently. Whatever the first answer is, the smuggled request must not be
// answered as one of its own.
func TestW12RequestSmuggling(t *testing.T) {
	inner := "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
	body := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nContent-Type: application/json\r\n"
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	for _, c := range []struct {
		name, raw string
		status    int
	}{
		{"TE and CL", head + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n", len(chunked)) + chunked + inner, 400},
		{"CL short, then TE", head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked + inner, 400},
		{"chunked alone ends the connection too", head + "Transfer-Encoding: chunked\r\n\r\n" + chunked + inner, 400},
		{"two lengths", head + "Content-Length: 40\r\nContent-Length: 41\r\n\r\n" + body + inner, 400},
		{"two encodings", head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunked + inner, 501},
		{"odd encoding", head + "Transfer-Encoding: xchunked\r\n\r\n" + chunked + inner, 501},
		{"space before the colon", head + "Content-Length : 40\r\n\r\n" + body + inner, 400},
		{"folded header", head + "X: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 40\r\n\r\n" + body, 400},
		{"NUL in a header", head + "X: a\x00b\r\nContent-Length: 40\r\n\r\n" + body, 400},
		{"bare CR in a header", head + "X: a\rTransfer-Encoding: chunked\r\nContent-Length: 40\r\n\r\n" + body, 400},
		{"plus in the length", head + "Content-Length: +40\r\n\r\n" + body + inner, 400},
		{"chunk length with a sign", head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n" + inner, 400},
		{"chunk ended by a bare LF", head + "Transfer-Encoding: chunked\r\n\r\n28\n" + body + "\r\n0\r\n\r\n" + inner, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr := serveHTTP(t, newFake(), Options{})
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			io.WriteString(conn, c.raw)
			r := bufio.NewReader(conn)
			first, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(first.Body)
			if first.StatusCode != c.status {
				t.Errorf("got %d %s, want %d", first.StatusCode, text, c.status)
			}
			if c.name == "folded header" {
				// net/http joins the fold into the value of X: no encoding, the
				// length rules, and the message is read as it stands.
				return
			}
			if rest, _ := io.ReadAll(r); len(rest) > 0 {
				t.Errorf("more was answered: %s", rest)
			}
		})
	}
}

// TestPipelined: two whole requests on one connection are two answers.
func TestPipelined(t *testing.T) {
	addr := serveHTTP(t, newFake(), Options{})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	one := "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"
	io.WriteString(conn, one+one)
	r := bufio.NewReader(conn)
	for range 2 {
		a, err := http.ReadResponse(r, nil)
		if err != nil || a.StatusCode != 404 {
			t.Fatalf("%v %v", a, err)
		}
		io.Copy(io.Discard, a.Body)
	}
}

// TestChunkedBodyOverTheLimit: 413 by what was read, not by what was said.
func TestChunkedBodyOverTheLimit(t *testing.T) {
	f := newFake()
	addr := serveHTTP(t, f, Options{})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 1<<16, strings.Repeat(" ", 1<<16))
		for range 80 {
			if _, err := io.WriteString(conn, chunk); err != nil {
				return
			}
		}
	}()
	a, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || a.StatusCode != 413 || !a.Close {
		t.Fatalf("%v %v", a, err)
	}
	if r := f.takeRefused(); len(r) != 1 || r[0].Why != WhyTooLarge {
		t.Errorf("refused %v", r)
	}
}

// TestD01SlowBody: half a body is not waited for without end.
func TestD01SlowBody(t *testing.T) {
	f := newFake()
	addr, _ := servePaced(t, f, Options{}, pace{sends: time.Millisecond, rest: time.Second, piece: hangs})
	a := rawExchange(t, addr, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n{")
	if r := f.takeRefused(); a.StatusCode != 408 || !a.Close || len(r) != 1 || r[0].Why != WhyBody {
		t.Errorf("got %d, refused %v", a.StatusCode, r)
	}
}

// TestS01Guard: another handler of the same server is behind the same checks.
func TestS01Guard(t *testing.T) {
	f := newFake()
	h := NewHTTP(f, Options{Refused: f.hook})
	g := h.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "console") }))
	for _, c := range []struct {
		host, origin string
		status       int
	}{{"localhost:1", "", 200}, {"evil.example", "", 403}, {"localhost:1", "http://evil.example", 403}, {"localhost:1", "http://localhost:1", 200}} {
		r := httptest.NewRequest("GET", "/console", nil)
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s %s: %d", c.host, c.origin, w.Code)
		}
	}
	if r := f.takeRefused(); len(r) != 2 {
		t.Errorf("refused %v", r)
	}
}

// TestW12BareLF: net/http takes a bare LF as a line's end in the header, as RFC
// 9112 allows a recipient; no second request comes of it.
func TestW12BareLF(t *testing.T) {
	addr := serveHTTP(t, newFake(), Options{})
	a := rawExchange(t, addr, "GET /mcp HTTP/1.1\nHost: evil.example\nHost: localhost\n\n")
	if a.StatusCode != 400 {
		t.Errorf("two hosts by bare LF: %d", a.StatusCode)
	}
}

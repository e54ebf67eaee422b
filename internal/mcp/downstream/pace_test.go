package downstream

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// hangs is when a test gives up.
const hangs = time.Minute

// paceServer serves a handler at that pace.
func paceServer(t *testing.T, p pace, h http.HandlerFunc) (dial func() net.Conn) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.Config = newServer(h, newSockets(maxSockets, spareSockets), p)
	s.Start()
	t.Cleanup(s.Close)
	return func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(hangs))
		return c
	}
}

// TestD01BodyThatDoesNotCome: whatever the handler does with the body of a request, a client
// that does not send it is answered, and its connection ends.
func TestD01BodyThatDoesNotCome(t *testing.T) {
	long := strings.Repeat("a long answer ", 1<<10)
	for name, h := range map[string]http.HandlerFunc{
		"read": func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("reading it: %v", err)
			}
			io.WriteString(w, "an answer")
		},
		"not read":      func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "an answer") },
		"and no answer": func(w http.ResponseWriter, r *http.Request) {},
		"flushed": func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "an ")
			http.NewResponseController(w).Flush()
			io.WriteString(w, "answer")
		},
		"a long answer": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, long) },
	} {
		for how, head := range map[string]string{"length": "Content-Length: 9\r\n\r\nhalf", "chunked": "Transfer-Encoding: chunked\r\n\r\n9\r\nhalf"} {
			t.Run(name+", "+how, func(t *testing.T) {
				p := pace{sends: time.Millisecond, rest: time.Millisecond, piece: hangs}
				if name != "read" {
					p.sends = 2 * hangs // what is not read is not waited for so long
				}
				c := paceServer(t, p, h)()
				io.WriteString(c, "POST /x HTTP/1.1\r\nHost: localhost\r\n"+head)
				b, err := io.ReadAll(c)
				if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 200 ") {
					t.Errorf("%v %.200q", err, b)
				}
			})
		}
	}
}

// TestD01BodyBeforeALongCall: once the body of a request is there its bound is no more one of
// the answer.
func TestD01BodyBeforeALongCall(t *testing.T) {
	goOn := make(chan struct{})
	dial := paceServer(t, pace{sends: -time.Second, rest: time.Minute, piece: hangs}, func(w http.ResponseWriter, r *http.Request) {
		if b, err := io.ReadAll(r.Body); err != nil || r.Method == "POST" && string(b) != "whole" {
			t.Errorf("%q %v", b, err) // it came with the header, and is there without waiting
		}
		if r.Method == "POST" {
			select {
			case <-r.Context().Done():
				t.Error("the call was cut off")
			case <-goOn:
			}
		}
		io.WriteString(w, "done")
	})
	call, other := dial(), dial()
	answered := func(c net.Conn) {
		t.Helper()
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r.Body); string(b) != "done" {
			t.Errorf("%q %v", b, err)
		}
	}
	for range 2 { // the connection goes on
		io.WriteString(call, "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nwhole")
		for range 20 {
			io.WriteString(other, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
			answered(other)
		}
		goOn <- struct{}{}
		answered(call)
	}
}

// TestD01UnreadAnswers: who reads no answer holds neither a long one nor many short ones, and
// a handler's own deadline stands in the place of that of each piece.
func TestD01UnreadAnswers(t *testing.T) {
	long := strings.Repeat("x", 32<<20)
	for name, c := range map[string]struct {
		piece time.Duration
		write func(w http.ResponseWriter) error
	}{
		"long":    {time.Millisecond, func(w http.ResponseWriter) error { _, err := io.WriteString(w, long); return err }},
		"short":   {time.Millisecond, func(w http.ResponseWriter) error { _, err := io.WriteString(w, long[:1<<10]); return err }},
		"flushed": {time.Millisecond, func(w http.ResponseWriter) error { fmt.Fprint(w, "x"); return http.NewResponseController(w).Flush() }},
		"its own": {2 * hangs, func(w http.ResponseWriter) error {
			http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Millisecond))
			_, err := io.WriteString(w, long)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dial := paceServer(t, pace{sends: hangs, rest: hangs, piece: c.piece}, func(w http.ResponseWriter, r *http.Request) {
				if err := c.write(w); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Logf("%v", err)
				}
			})
			conn := dial()
			for {
				if _, err := io.WriteString(conn, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
					if errors.Is(err, os.ErrDeadlineExceeded) {
						t.Error("the server holds it")
					}
					return
				}
			}
		})
	}
}

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestHealth: one word for each state of a gateway, to GET alone, and everything else is
// what it was.
func TestHealth(t *testing.T) {
	over := make(chan struct{})
	close(over)
	for _, c := range []struct {
		what, path, method      string
		broken, settled, ending <-chan struct{}
		status                  int
		body                    string
	}{
		{"it runs", "/healthz", "GET", nil, nil, nil, 200, "ok\n"},
		{"its disk failed", "/healthz", "GET", over, over, nil, 503, "failed\n"},
		{"servers are started", "/readyz", "GET", nil, nil, nil, 503, "starting\n"},
		{"they are there", "/readyz", "GET", nil, over, nil, 200, "ready\n"},
		{"it ends", "/readyz", "GET", nil, over, over, 503, "ending\n"},
		{"its disk failed, and it would be ready", "/readyz", "GET", over, over, nil, 503, "failed\n"},
		{"a probe with HEAD", "/readyz", "HEAD", nil, over, nil, 200, "ready\n"},
		{"another method", "/healthz", "POST", nil, over, nil, 418, ""},
		{"a path below", "/healthz/x", "GET", nil, over, nil, 418, ""},
		{"a client", "/mcp", "GET", nil, over, nil, 418, ""},
	} {
		next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
		w := httptest.NewRecorder()
		health(next, c.broken, c.settled, c.ending).ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.status || w.Body.String() != c.body {
			t.Errorf("%s: %d %q", c.what, w.Code, w.Body)
		}
	}
}

package main

import (
	"io"
	"net/http"
)

// health answers what a supervisor asks, with one word and to anybody, for the word says
// nothing of who uses the gateway; every other request is next's. GET /healthz is "ok" until
// the log's disk failed, then 503 and "failed". GET /readyz is "ready" once every server
// answered or was given up, and "starting" before that, "ending" once the gateway ends,
// both with 503.
func health(next http.Handler, broken, settled, ending <-chan struct{}) http.Handler {
	over := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		word := ""
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
		case r.URL.Path == "/healthz" && !over(broken):
			word = "ok"
		case r.URL.Path == "/healthz", r.URL.Path == "/readyz" && over(broken):
			word = "failed"
		case r.URL.Path != "/readyz":
		case over(ending):
			word = "ending"
		case !over(settled):
			word = "starting"
		default:
			word = "ready"
		}
		if word == "" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if word != "ok" && word != "ready" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		io.WriteString(w, word+"\n")
	})
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// modelScript is the script command
//
//	model openai|anthropic whole|stream|redirect|STATUS [FILE …]
//
// a model behind an endpoint of that wire, as those who run one put it on the
// network. It writes the text of one FILE after another and then answers with
// 500, or always redirects or answers with STATUS. model.yaml is a configuration
// with it in front of the example server. What it was sent stands in
// model-1.json, model-2.json …, the credential in model-1.key …
func modelScript(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || args[0] != "openai" && args[0] != "anthropic" {
		ts.Fatalf("usage: model openai|anthropic whole|stream|redirect|STATUS [FILE …]")
	}
	wire, how := args[0], args[1]
	status, serr := strconv.Atoi(how)
	if serr != nil && how != "whole" && how != "stream" && how != "redirect" {
		ts.Fatalf("model: unknown way to answer %s", how)
	}
	var texts []string
	for _, f := range args[2:] {
		texts = append(texts, strings.TrimSuffix(ts.ReadFile(f), "\n"))
	}
	old, _ := filepath.Glob(ts.MkAbs("model-*"))
	for _, f := range old {
		ts.Check(os.Remove(f))
	}
	dir := ts.MkAbs(".")
	var mu sync.Mutex
	n := 0
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+map[string]string{"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}[wire], func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		n++
		body, _ := io.ReadAll(r.Body)
		key := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key")
		for name, b := range map[string][]byte{"json": append(body, '\n'), "key": []byte(key + "\n")} {
			if err := os.WriteFile(fmt.Sprintf("%s/model-%d.%s", dir, n, name), b, 0o600); err != nil {
				http.Error(w, "", http.StatusInternalServerError)
				return
			}
		}
		switch {
		case how == "redirect":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case status > 0:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			io.WriteString(w, `{"error":{"message":"said-by-the-endpoint"}}`)
		case n > len(texts):
			w.WriteHeader(http.StatusInternalServerError)
		default:
			writeModel(w, wire, texts[n-1], how == "stream")
		}
	})
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) {
		_ = os.WriteFile(dir+"/followed", nil, 0o600)
	})
	s := httptest.NewServer(mux)
	ts.Defer(s.Close)
	url := s.URL
	if wire == "openai" {
		url += "/v1"
	}
	ts.Check(os.WriteFile(ts.MkAbs("model.yaml"), fmt.Appendf(nil, "servers: [{name: example, command: [writ, example-server]}]\n"+
		"policy: example.yaml\nask: {planner: {kind: %s, url: %q, model: m, key_env: WRIT_TEST_KEY}}\n", wire, url), 0o600))
}

// writeModel puts a text on one of the two wires.
func writeModel(w http.ResponseWriter, wire, text string, stream bool) {
	q := func(s string) string {
		b, _ := json.Marshal(s)
		return string(b)
	}
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		if wire == "openai" {
			fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, q(text))
		} else {
			fmt.Fprintf(w, `{"id":"msg","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%s}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`, q(text))
		}
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	var b strings.Builder
	if wire == "openai" {
		for _, r := range text {
			fmt.Fprintf(&b, "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":null}]}\n\n", q(string(r)))
		}
		b.WriteString("data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	} else {
		event := func(kind, rest string) {
			fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, rest)
		}
		event("message_start", `,"message":{"id":"msg","type":"message","role":"assistant","content":[],"stop_reason":null}`)
		event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
		for _, r := range text {
			event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":`+q(string(r))+`}`)
		}
		event("content_block_stop", `,"index":0`)
		event("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null}`)
		event("message_stop", "")
	}
	io.WriteString(w, b.String())
}

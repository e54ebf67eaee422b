package hostile

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

const (
	asJSON   = "application/json"
	asEvents = "text/event-stream"
	done     = `{"content":[{"type":"text","text":"ok"}]}`
)

// Handler serves a mode over Streamable HTTP on the legacy wire: one with a text for
// it, of call, or of those about lists; another one behaves.
func Handler(mode string) http.Handler {
	lost := false
	sessions := 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && mode == "resumable" && r.Header.Get("Last-Event-ID") != "" {
			id, _, _ := strings.Cut(r.Header.Get("Last-Event-ID"), "/")
			w.Header().Set("Content-Type", asEvents)
			fmt.Fprintf(w, "data: %s\n\n", answer(id, `{"content":[],"resumed":true}`))
			return
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, _ := io.ReadAll(r.Body)
		var m message
		if json.Unmarshal(body, &m) != nil || m.Method == "" || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		id := string(m.ID)
		send := func(text string) {
			w.Header().Set("Content-Type", asJSON)
			io.WriteString(w, text)
		}
		switch m.Method {
		case "initialize":
			sessions++
			w.Header().Set("Mcp-Session-Id", "s"+strconv.Itoa(sessions))
			send(answer(id, initialized("2025-11-25")))
		case "tools/list":
			send(answer(id, ToolList(mode, m.Params.Cursor)))
		case "tools/call":
			if mode == "nosession" && !lost { // once
				lost = true
				w.WriteHeader(http.StatusNotFound)
				return
			}
			call(mode, id, w, r)
		default:
			send(refusal(id, -32601, "Method not found"))
		}
	})
}

func call(mode, id string, w http.ResponseWriter, r *http.Request) {
	good := answer(id, done)
	as := func(kind string) { w.Header().Set("Content-Type", kind) }
	if text, ok := said(mode, "http", id); ok {
		status, text, _ := strings.Cut(text, " ")
		kind, body, _ := strings.Cut(text, " ")
		if kind != "" {
			as(kind)
		}
		code, _ := strconv.Atoi(status)
		w.WriteHeader(code)
		io.WriteString(w, body)
		return
	}
	switch mode {
	case "redirect", "redirect302": // S13: to the URL in the query member to
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(map[string]int{"redirect": http.StatusTemporaryRedirect, "redirect302": http.StatusFound}[mode])
	case "gzip": // W14: a compressed answer
		as(asJSON)
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, good)
		z.Close()
	case "hugejson": // U07: 100 MiB of JSON
		as(asJSON)
		io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"t":"`)
		endless(w)
		io.WriteString(w, `"}}`)
	case "hugesse": // U07: an event of 100 MiB, then the answer
		as(asEvents)
		io.WriteString(w, `data: {"t":"`)
		endless(w)
		io.WriteString(w, "\"}\n\ndata: "+good+"\n\n")
	case "noreply": // U06: headers, then silence
		as(asEvents)
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case "noheaders": // U06: silence
		<-r.Context().Done()
	case "cut": // an event stream that ends before the answer
		as(asEvents)
		io.WriteString(w, ": hello\n\ndata: "+good[:len(good)/2])
	case "halfjson": // a body shorter than it said
		as(asJSON)
		w.Header().Set("Content-Length", strconv.Itoa(len(good)))
		io.WriteString(w, good[:len(good)/2])
	default:
		as(asJSON)
		io.WriteString(w, good)
	}
}

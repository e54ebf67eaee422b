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

// HTTPModes says what each HTTP mode does to tools/call; modes of Modes that
// are about lists work here too.
var HTTPModes = map[string]string{
	"plain":       "behaves",
	"redirect":    "S13: 307 to the URL in the query member to",
	"redirect302": "S13: the same with 302",
	"gzip":        "W14: a compressed answer",
	"accepted":    "202 and no answer",
	"wrongtype":   "an answer called text/html",
	"status500":   "500 without an answer",
	"status403":   "403 without an answer",
	"error400":    "400 with a JSON-RPC error",
	"hugejson":    "U07: 100 MiB of JSON",
	"hugesse":     "U07: an event of 100 MiB, then the answer",
	"noreply":     "U06: headers, then silence",
	"noheaders":   "U06: silence",
	"cut":         "an event stream that ends before the answer",
	"halfjson":    "a body shorter than it said",
	"resumable":   "an event stream that ends, to be resumed by its event id",
	"doublereply": "P22: two answers on one stream",
	"wrongid":     "P22: an answer to somebody else, then the answer",
	"dupkeys":     "W01: a result with a member twice",
	"cronly":      "W13: an event stream with CR line ends, comments and other events",
	"forged":      "W13: an event whose data holds what looks like another event",
	"nosession":   "404 for the session at tools/call, once",
}

// Handler serves a mode over Streamable HTTP on the legacy wire.
func Handler(mode string) http.Handler {
	lost := false
	sessions := 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && mode == "resumable" && r.Header.Get("Last-Event-ID") != "" {
			id, _, _ := strings.Cut(r.Header.Get("Last-Event-ID"), "/")
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s\n\n", answer(id, `{"content":[],"resumed":true}`))
			return
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, _ := io.ReadAll(r.Body)
		var m message
		if json.Unmarshal(body, &m) != nil || m.Method == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		id := string(m.ID)
		send := func(text string) {
			w.Header().Set("Content-Type", "application/json")
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
			if mode == "nosession" && !lost {
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
	good := answer(id, `{"content":[{"type":"text","text":"ok"}]}`)
	evil := `{"content":[{"type":"text","text":"forged"}]}`
	events := func() { w.Header().Set("Content-Type", "text/event-stream") }
	asJSON := func() { w.Header().Set("Content-Type", "application/json") }
	flush := func() { w.(http.Flusher).Flush() }
	switch mode {
	case "redirect":
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusTemporaryRedirect)
	case "redirect302":
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusFound)
	case "gzip":
		asJSON()
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, good)
		z.Close()
	case "accepted":
		w.WriteHeader(http.StatusAccepted)
	case "wrongtype":
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, good)
	case "status500":
		w.WriteHeader(500)
	case "status403":
		w.WriteHeader(403)
	case "error400":
		asJSON()
		w.WriteHeader(400)
		io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"error":`+RawError+`}`)
	case "hugejson":
		asJSON()
		io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"t":"`)
		chunk := strings.Repeat("x", 1<<20)
		for range 100 {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
		io.WriteString(w, `"}}`)
	case "hugesse":
		events()
		io.WriteString(w, `data: {"t":"`)
		chunk := strings.Repeat("x", 1<<20)
		for range 100 {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
		io.WriteString(w, "\"}\n\ndata: "+good+"\n\n")
	case "noreply":
		events()
		w.WriteHeader(200)
		flush()
		<-r.Context().Done()
	case "noheaders":
		<-r.Context().Done()
	case "cut":
		events()
		io.WriteString(w, ": hello\n\ndata: "+good[:len(good)/2])
	case "halfjson":
		asJSON()
		w.Header().Set("Content-Length", strconv.Itoa(len(good)))
		io.WriteString(w, good[:len(good)/2])
	case "resumable":
		events()
		io.WriteString(w, "id: "+id+"/1\nretry: 1\ndata:\n\n")
	case "doublereply":
		events()
		io.WriteString(w, "data: "+good+"\n\ndata: "+answer(id, evil)+"\n\n")
	case "wrongid":
		events()
		io.WriteString(w, "data: "+answer("12", evil)+"\n\ndata: "+answer(`"`+id+`"`, evil)+"\n\ndata: "+good+"\n\n")
	case "dupkeys":
		asJSON()
		io.WriteString(w, answer(id, `{"content":[],"content":[]}`))
	case "cronly":
		events()
		io.WriteString(w, "\xef\xbb\xbf: c\r\revent: other\rdata: "+answer(id, evil)+"\r\rid\rretry: x\runknown: y\revent: message\rdata: "+good+"\r\r")
	case "forged":
		events()
		io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":"+id+",\ndata:\"result\":{\"t\":\"data: x\\n\\ndata: {}\"}}\n\n")
	default:
		asJSON()
		io.WriteString(w, good)
	}
}

package approval

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// Reply is the answer to an answer.
type Reply struct {
	Yes   bool   `json:"yes"`
	By    string `json:"by,omitempty"` // who answered, where somebody else was first
	Error string `json:"error,omitempty"`
}

// Handler serves the queue at /approvals: GET lists the open questions, with
// ?watch as a stream of such lists, a line each, for as long as somebody looks; POST
// /approvals/ID with {"yes":true} or {"yes":false} answers one. who says who asks:
// its error refuses an answer, and who may not answer does not count as watching.
func Handler(q *Queue, who func(*http.Request) (by string, label writ.Label, err error)) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /approvals", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		send := func(qs []Question) error {
			out := make([]Shown, len(qs))
			for i := range qs {
				out[i] = qs[i].Show()
			}
			b, err := json.Marshal(out)
			if err == nil {
				_, err = w.Write(append(b, '\n'))
			}
			http.NewResponseController(w).Flush()
			return err
		}
		qs, change := q.Open()
		if send(qs) != nil || !r.URL.Query().Has("watch") {
			return
		}
		if _, _, err := who(r); err == nil {
			defer q.There()()
		}
		for {
			select {
			case <-r.Context().Done():
				return
			case <-change:
			case <-time.After(10 * time.Second): // what expired, and a watcher that went away
			}
			if qs, change = q.Open(); send(qs) != nil {
				return
			}
		}
	})
	m.HandleFunc("POST /approvals/{id}", func(w http.ResponseWriter, r *http.Request) {
		fail := func(status int, reply Reply) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			json.NewEncoder(w).Encode(reply)
		}
		yes, ok := said(http.MaxBytesReader(w, r.Body, 1024))
		if !ok {
			fail(http.StatusBadRequest, Reply{Error: `the body is {"yes":true} or {"yes":false}`})
			return
		}
		by, label, err := who(r)
		if err != nil {
			fail(http.StatusForbidden, Reply{Error: err.Error()})
			return
		}
		id := strings.ToLower(r.PathValue("id"))
		switch _, err = q.Answer(id, Answer{Yes: yes, By: by, Label: label}); {
		case err == nil:
			fail(http.StatusOK, Reply{Yes: yes, By: by})
		case errors.Is(err, ErrAnswered):
			first, _ := q.Said(id)
			fail(http.StatusConflict, Reply{Yes: first.Yes, By: first.By, Error: err.Error()})
		case errors.Is(err, ErrUnknown):
			fail(http.StatusNotFound, Reply{Error: err.Error()})
		default:
			fail(http.StatusInternalServerError, Reply{Error: "the answer could not be put on record, and counts for nothing"})
		}
	})
	return m
}

// said reads a yes or a no, and nothing else.
func said(body io.Reader) (yes, ok bool) {
	b, err := io.ReadAll(body)
	if err != nil {
		return false, false
	}
	if strictjson.Check(b, strictjson.Limits{Bytes: 1024, Depth: 2, Leaves: 2, Number: 8}) != nil {
		return false, false
	}
	ms, isObject := strictjson.Members(b)
	if !isObject || len(ms) != 1 || ms[0].Name != "yes" {
		return false, false
	}
	v := strings.TrimSpace(string(ms[0].Value))
	return v == "true", v == "true" || v == "false"
}

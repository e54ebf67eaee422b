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
	"github.com/writ-project/writ/policy"
)

// Reply is the answer to an answer.
type Reply struct {
	Yes   bool   `json:"yes"`
	By    string `json:"by,omitempty"` // who answered, where somebody else was first
	Error string `json:"error,omitempty"`
	// Lines are what is kept from now on.
	Lines []policy.Grown `json:"lines,omitempty"`
}

// Handler serves the queue at /approvals: GET lists the open questions, with
// ?watch as a stream of such lists, a line each, for as long as somebody looks; POST
// /approvals/ID with {"yes":true} or {"yes":false} answers one, and after a yes POST
// /approvals/ID/grown with {"keep":…} keeps what it offered. who says who asks: its
// error refuses an answer, and who may not answer does not count as watching.
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
	reply := func(w http.ResponseWriter, status int, reply Reply) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(reply)
	}
	m.HandleFunc("POST /approvals/{id}", func(w http.ResponseWriter, r *http.Request) {
		said, ok := only(http.MaxBytesReader(w, r.Body, maxBody), "yes")
		if !ok || said != "true" && said != "false" {
			reply(w, http.StatusBadRequest, Reply{Error: `the body is {"yes":true} or {"yes":false}`})
			return
		}
		by, label, err := who(r)
		if err != nil {
			reply(w, http.StatusForbidden, Reply{Error: err.Error()})
			return
		}
		id, yes := strings.ToLower(r.PathValue("id")), said == "true"
		switch _, err = q.Answer(id, Answer{Yes: yes, By: by, Label: label}); {
		case err == nil:
			reply(w, http.StatusOK, Reply{Yes: yes, By: by})
		case errors.Is(err, ErrAnswered):
			first, _ := q.Said(id)
			reply(w, http.StatusConflict, Reply{Yes: first.Yes, By: first.By, Error: err.Error()})
		case errors.Is(err, ErrUnknown):
			reply(w, http.StatusNotFound, Reply{Error: err.Error()})
		default:
			reply(w, http.StatusInternalServerError, Reply{Error: "the answer could not be put on record, and counts for nothing"})
		}
	})
	m.HandleFunc("POST /approvals/{id}/grown", func(w http.ResponseWriter, r *http.Request) {
		said, ok := only(http.MaxBytesReader(w, r.Body, maxBody), "keep")
		keep, isText := strictjson.Text([]byte(said))
		if !ok || !isText {
			reply(w, http.StatusBadRequest, Reply{Error: `the body is {"keep":"source"}, {"keep":"closed"} or {"keep":"value"}`})
			return
		}
		by, label, err := who(r)
		if err != nil {
			reply(w, http.StatusForbidden, Reply{Error: err.Error()})
			return
		}
		switch kept, err := q.Grow(strings.ToLower(r.PathValue("id")), Keep(keep), Answer{Yes: true, By: by, Label: label}); {
		case err == nil:
			reply(w, http.StatusOK, Reply{Yes: true, By: by, Lines: kept.Lines})
		case errors.Is(err, ErrUnknown):
			reply(w, http.StatusNotFound, Reply{Error: err.Error()})
		default:
			reply(w, http.StatusConflict, Reply{Error: "nothing was kept: " + err.Error()})
		}
	})
	return m
}

// maxBody bounds what answers.
const maxBody = 1024

// only reads the one member of an object, which is to have that name and no other.
func only(body io.Reader, name string) (value string, ok bool) {
	b, err := io.ReadAll(body)
	if err != nil || strictjson.Check(b, strictjson.Limits{Bytes: maxBody, Depth: 2, Leaves: 2, Number: 8}) != nil {
		return "", false
	}
	ms, isObject := strictjson.Members(b)
	if !isObject || len(ms) != 1 || ms[0].Name != name {
		return "", false
	}
	return strings.TrimSpace(string(ms[0].Value)), true
}

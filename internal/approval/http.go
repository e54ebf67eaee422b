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
	// Told says that no call was held for the answer any more: who made it was told before that
	// it waits, and makes it again.
	Told bool `json:"told,omitempty"`
	// Changed says that the policy is another one since the question was put: made again, the call
	// is asked about anew.
	Changed bool `json:"changed,omitempty"`
	// Lines are what is kept from now on.
	Lines []policy.Grown `json:"lines,omitempty"`
}

// Late says of an answer that counts, and came when no call was held for it any more, what
// becomes of that call; "" of one that came in time.
func (r *Reply) Late() string {
	const told = "No call was held for it any more: the agent was told that nobody had answered. Made again"
	switch {
	case !r.Told:
		return ""
	case !r.Yes:
		return told + " within ten minutes, it is refused."
	case r.Changed:
		return "No call was held for it any more, and the policy changed since the question was put: made again, the call is judged, and asked about, anew."
	case len(r.Lines) > 0:
		return told + ", it passes."
	}
	return told + " within ten minutes, it passes."
}

// Unheard is the header field by which the stream of questions says why who looks does not count
// as watching.
const Unheard = "Writ-Unheard"

// Handler serves the queue at /approvals: GET lists the open questions, with
// ?watch as a stream of such lists, a line each, for as long as somebody looks; POST
// /approvals/ID with {"yes":true} or {"yes":false} answers one, and with {"yes":true,
// "keep":…} what it offered is kept as well. GET /approvals/ID says who answered one lately, and
// what. who says who asks: its error refuses an
// answer, and who may not answer does not count as watching, and is told so (Unheard).
func Handler(q *Queue, who func(*http.Request) (by string, label writ.Label, err error)) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /approvals", func(w http.ResponseWriter, r *http.Request) { q.list(w, r, who) })
	one := func(method string, answer func(w http.ResponseWriter, r *http.Request) (status int, said Reply)) {
		m.HandleFunc(method+" /approvals/{id}", func(w http.ResponseWriter, r *http.Request) {
			status, said := answer(w, r)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			json.NewEncoder(w).Encode(said)
		})
	}
	one("GET", func(_ http.ResponseWriter, r *http.Request) (int, Reply) {
		a, ok := q.Said(strings.ToLower(r.PathValue("id")))
		return map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[ok], Reply{Yes: a.Yes, By: a.By}
	})
	one("POST", func(w http.ResponseWriter, r *http.Request) (int, Reply) {
		a, ok := said(http.MaxBytesReader(w, r.Body, maxBody))
		if !ok {
			return http.StatusBadRequest, Reply{Error: `the body is {"yes":true}, {"yes":false} or {"yes":true,"keep":"source"}, with what the question offers`}
		}
		var err error
		if a.By, a.Label, err = who(r); err != nil {
			return http.StatusForbidden, Reply{Error: err.Error()}
		}
		return q.Reply(r.PathValue("id"), a)
	})
	return m
}

// list sends the open questions, and on and on to who watches.
func (q *Queue) list(w http.ResponseWriter, r *http.Request, who func(*http.Request) (string, writ.Label, error)) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	watches := r.URL.Query().Has("watch")
	if watches {
		if _, _, err := who(r); err != nil {
			w.Header().Set(Unheard, err.Error())
		} else {
			defer q.There()() // before he is shown the first list
		}
	}
	for {
		qs, change := q.Open()
		out := make([]Shown, len(qs))
		for i := range qs {
			out[i] = qs[i].Show()
		}
		b, err := json.Marshal(out)
		if err == nil {
			_, err = w.Write(append(b, '\n'))
		}
		http.NewResponseController(w).Flush()
		if err != nil || !watches {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-change:
		case <-time.After(10 * time.Second): // what expired, and a watcher that went away
		}
	}
}

// Reply is Answer for a surface that tells a person what became of it: what Handler would
// answer, with its status.
func (q *Queue) Reply(id string, a Answer) (status int, said Reply) {
	id = strings.ToLower(id)
	kept, err := q.Answer(id, a)
	was, _ := q.lately(id)
	_, lost := errors.AsType[*NotKeptError](err)
	switch {
	case err == nil:
		return http.StatusOK, Reply{Yes: a.Yes, By: a.By, Told: was.told, Changed: was.moved, Lines: kept}
	case lost:
		return http.StatusOK, Reply{Yes: a.Yes, By: a.By, Told: was.told, Changed: was.moved, Error: err.Error()}
	case errors.Is(err, ErrAnswered):
		first, _ := q.Said(id)
		return http.StatusConflict, Reply{Yes: first.Yes, By: first.By, Error: err.Error()}
	case errors.Is(err, ErrNotOffered):
		return http.StatusConflict, Reply{Error: err.Error()}
	case errors.Is(err, ErrUnknown):
		return http.StatusNotFound, Reply{Error: err.Error()}
	case errors.Is(err, ErrOver):
		return http.StatusGone, Reply{Error: ErrOver.Error()}
	}
	return http.StatusInternalServerError, Reply{Error: "the answer could not be put on record, and counts for nothing"}
}

// maxBody bounds what answers.
const maxBody = 1024

// said reads an answer: the members of its object are to be these and no others.
func said(body io.Reader) (a Answer, ok bool) {
	b, err := io.ReadAll(body)
	if err != nil || strictjson.Check(b, strictjson.Limits{Bytes: maxBody, Depth: 2, Leaves: 2, Number: 8}) != nil {
		return a, false
	}
	v, members := strictjson.Of(b), 1
	if keep := v.Get("keep"); keep.Exists() {
		word, isText := keep.Text()
		if !isText || word == "" {
			return a, false
		}
		a.Keep, members = Keep(word), 2
	}
	word := string(v.Get("yes").Raw())
	a.Yes = word == "true"
	return a, v.Len() == members && (a.Yes || word == "false")
}

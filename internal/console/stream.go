package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/story"
)

// told is a row as the stream tells it to an open page, which builds it as the page's own
// rows are built.
type told struct {
	Index   int64     `json:"index"`
	ID      string    `json:"id"`
	Session string    `json:"session"`
	Called  []piece   `json:"called"`
	N       uint64    `json:"n"`
	Time    string    `json:"time"`
	Stamp   string    `json:"stamp"`
	Tool    []piece   `json:"tool"`
	Act     []piece   `json:"act"`
	Whole   string    `json:"whole"`
	Word    string    `json:"word"`
	Note    string    `json:"note"`
	By      []piece   `json:"by"`
	Reason  string    `json:"reason"`
	Missing [][]piece `json:"missing"`
}

// stream tells an open page what is new: decisions behind an index or from the first on, how
// many calls wait, and how far a check of the log is.
type stream struct {
	*Console
	x      *request
	out    *http.ResponseController
	filter filter
	replay *replay // how far that is, in the place of the check; nil for none

	from          int64 // the record to go on at
	ends          ends
	heard         answers
	said, checked string    // what was told last of what waits, and of the check
	rested        time.Time // when something was told last
}

// events goes on until the page is left. Where its client lost it, it goes on behind what
// that had.
func (c *Console) events(x *request) error {
	after := x.place("after")
	if last, lerr := strconv.ParseInt(x.Header.Get("Last-Event-ID"), 10, 64); lerr == nil && last > after {
		after = last
	}
	size, err := c.size(x.Context())
	if err != nil {
		return err
	}
	if after >= size || after < 0 && x.asked("from") != "start" {
		after = size - 1
	}
	leave, err := c.streams.take()
	if err != nil {
		return err
	}
	defer leave()
	s := &stream{Console: c, x: x, out: http.NewResponseController(x.w), filter: c.filter(x), ends: ends{}, heard: answers{}, rested: time.Now()}
	switch x.asked("for") {
	case "approvals":
		defer c.o.Queue.There()() // he sees what comes
		if x.login.client == "" { // the others hear no token
			defer c.o.Elsewhere.There()()
		}
	case "replay":
		c.mu.Lock()
		s.replay = x.login.replay
		c.mu.Unlock()
		if s.replay != nil {
			defer c.watch(s.replay)()
		}
	}
	x.w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(x.w, "retry: 1000\n\n")
	if size-1-after > maxBehind { // who was away for so long reads the page anew
		if s.send(size-1, "behind", nil) != nil {
			return nil
		}
		after = size - 1
	}
	s.from = after + 1
	s.run()
	return nil
}

// run ends with the page. An error ends it too: the page comes again, and is told then.
func (s *stream) run() {
	for {
		more, err := s.decisions()
		if err != nil {
			return
		}
		changed, err := s.waiting()
		if err != nil || s.progress() != nil {
			return
		}
		if more {
			continue
		}
		select {
		case <-s.x.Context().Done():
			return
		case <-s.o.Ending:
			return
		case <-s.x.login.ended:
			return
		case <-changed:
		case <-time.After(lookEvery):
		}
		if s.over(s.x.login) {
			return
		}
	}
}

func (s *stream) send(id int64, name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	where := ""
	if id >= 0 {
		where = fmt.Sprintf("id: %d\n", id)
	}
	if _, err := fmt.Fprintf(s.x.w, "%sevent: %s\ndata: %s\n\n", where, name, b); err != nil {
		return err
	}
	return s.out.Flush()
}

// decisions tells those of the next records, and how calls ended; more says that there may
// be more of them.
func (s *stream) decisions() (more bool, err error) {
	type call struct {
		session string
		n       uint64
	}
	turned, from := map[call]bool{}, s.from
	rows, next, err := s.between(s.x.Context(), s.filter, s.ends, from, from+atOnce, 0, func(rec *audit.Record, n uint64) {
		s.heard.step(rec)
		if n > 0 {
			turned[call{rec.Session, n}] = true
		}
	})
	if err != nil {
		return false, err
	}
	s.fill(s.x.Context(), rows, s.heard)
	for _, d := range rows {
		t := told{d.Index, d.ID, d.Session, draw(d.Called()), d.N, d.Time.Format(time.RFC3339Nano), s.stamp(d.Time), draw(d.Tool), draw(d.Act), d.Whole, d.Word, d.Note, draw(d.By), d.Reason, nil}
		for _, m := range d.Missing {
			t.Missing = append(t.Missing, prose(clip(m.Need, 2000)))
		}
		if err := s.send(d.Index, "decision", t); err != nil {
			return false, err
		}
		s.rested = time.Now()
	}
	for at := range turned { // a row that is open says how its call ended
		w, note := s.ends[at.session][at.n].word(&story.Line{})
		if err := s.send(-1, "outcome", map[string]any{"id": fmt.Sprintf("%s/%d", at.session, at.n), "word": w, "note": note}); err != nil {
			return false, err
		}
		delete(s.ends[at.session], at.n)
	}
	s.from = next
	return next == from+atOnce, nil
}

// waiting tells which calls wait, where that changed. Another change closes changed.
func (s *stream) waiting() (changed <-chan struct{}, err error) {
	open, changed := s.open(s.x.Context(), false)
	waits, over := []string{}, []string{}
	for i := range open {
		waits = append(waits, open[i].ID)
		if s.lapsed(&open[i]) {
			over = append(over, open[i].ID)
		}
	}
	gone := s.gone(open)
	now := fmt.Sprint(waits, over, gone)
	if now == s.said {
		return changed, nil
	}
	s.said = now
	return changed, s.send(-1, "waiting", map[string]any{"count": len(open), "ids": waits, "over": over, "gone": gone})
}

// progress tells how far the check of the log is, or the replay of the page.
func (s *stream) progress() error {
	s.mu.Lock()
	state := s.check.state()
	if s.replay != nil {
		state = s.replay.state()
	}
	s.mu.Unlock()
	if state != s.checked {
		s.checked = state
		if err := s.send(-1, "check", state); err != nil {
			return err
		}
	}
	if time.Since(s.rested) > 15*time.Second { // that a reader went away is seen, and that he is there
		s.rested = time.Now()
		return s.send(-1, "quiet", nil)
	}
	return nil
}

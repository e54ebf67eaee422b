package downstream

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// quota bounds what is open of one kind at a time, for each principal. A session has at
// most a quarter of it, and the last quarter is left to sessions that have nothing open:
// so no session shuts the others out, nor do a few (D03, D05).
type quota struct {
	max   int
	full  *refused // all of the principal's have as many as they may
	whole *refused // the session has
	open  map[holder]int
}

// holder is whose something is: a session's, or all of a principal's if session is "".
type holder struct{ principal, session string }

func holderOf(principal string, s Session) holder {
	if s == nil {
		return holder{principal, "-"} // of all requests that carry none
	}
	return holder{principal, s.PublicID()}
}

func newQuota(limit int, full, whole *refused) *quota {
	return &quota{max: limit, full: full, whole: whole, open: map[holder]int{}}
}

// share is what a session may have open.
func (q *quota) share() int { return max(q.max/4, 1) }

// take takes n places, and give gives them back. HTTP.mu is held.
func (q *quota) take(who holder, n int) *refused {
	all, own := q.open[holder{principal: who.principal}], q.open[who]
	switch {
	case who.session != "-" && own+n > q.share():
		return q.whole
	case all+n > q.max, own > 0 && all+n > q.max-q.max/4:
		return q.full
	}
	q.open[holder{principal: who.principal}] += n
	q.open[who] += n
	return nil
}

func (q *quota) give(who holder, n int) {
	for _, w := range []holder{{principal: who.principal}, who} {
		if q.open[w] -= n; q.open[w] == 0 {
			delete(q.open, w)
		}
	}
}

// enter takes n places for requests or streams, until leave with the same n.
func (h *HTTP) enter(q *quota, who holder, n int) *refused {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return noClosing
	}
	no := q.take(who, n)
	if no == nil {
		h.work.Add(1)
	}
	return no
}

func (h *HTTP) leave(q *quota, who holder, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	q.give(who, n)
	h.work.Done()
}

// listening is one stream of notifications that is open.
type listening struct {
	who  holder
	over chan struct{} // closed: it has to make room
}

// listen opens a stream of notifications until leave; over is closed when it has to
// end. To a session that has none, the oldest of the session that has most gives way:
// its client opens it anew, and nothing of an act is in it.
func (h *HTTP) listen(who holder) (over <-chan struct{}, leave func(), no *refused) {
	if !h.join() {
		return nil, nil, noClosing
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if no = h.streams.take(who, 1); no == h.streams.full && h.makeRoom(who) {
		no = h.streams.take(who, 1)
	}
	if no != nil {
		h.work.Done()
		return nil, nil, no
	}
	l := &listening{who, make(chan struct{})}
	h.listeners = append(h.listeners, l)
	return l.over, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.endListening(l)
		h.work.Done()
	}, nil
}

// endListening gives a stream's place back, once. h.mu is held.
func (h *HTTP) endListening(l *listening) {
	if i := slices.Index(h.listeners, l); i >= 0 {
		h.listeners = slices.Delete(h.listeners, i, i+1)
		h.streams.give(l.who, 1)
	}
}

// makeRoom ends a stream of the principal for a session that has none, and reports
// whether there was one to end. h.mu is held.
func (h *HTTP) makeRoom(who holder) bool {
	var most *listening
	for _, l := range h.listeners {
		if l.who.principal == who.principal && (most == nil || h.streams.open[l.who] > h.streams.open[most.who]) {
			most = l
		}
	}
	if most == nil || h.streams.open[who] > 0 {
		return false
	}
	close(most.over)
	h.endListening(most)
	return true
}

// bodies are the requests whose bodies are being read. A new one takes the place of the
// oldest where there are too many: nothing of that has been acted on (D01).
type bodies struct {
	mu   sync.Mutex
	open []*sending // the oldest first
}

// sending is one body on its way.
type sending struct{ rc *http.ResponseController }

// begin counts a body until end.
func (b *bodies) begin(rc *http.ResponseController, limit int) *sending {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.open) >= limit {
		b.open[0].rc.SetReadDeadline(time.Unix(1, 0))
		b.open = slices.Delete(b.open, 0, 1)
	}
	s := &sending{rc}
	b.open = append(b.open, s)
	return s
}

// end reports whether the body had to make room.
func (b *bodies) end(s *sending) (late bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.open, s)
	if i >= 0 {
		b.open = slices.Delete(b.open, i, i+1)
	}
	return i < 0
}

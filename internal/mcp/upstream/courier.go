package upstream

import (
	"sync"
	"time"

	"github.com/writ-project/writ/internal/mcp/rpc"
)

const (
	noticeQueue = 1024        // unassociated notifications waiting for the callback
	eventWindow = time.Second // one Event of a kind in this time
)

// courier calls the Callbacks from one goroutine, so that a slow callback
// never holds up reading. Everything it keeps is bounded: events and list
// changes are counters, notifications a bounded queue.
type courier struct {
	cb      Callbacks
	clock   Clock
	refresh time.Duration

	mu     sync.Mutex
	slots  map[string]*slot
	queue  []notice
	closed bool

	wake chan struct{}
	done chan struct{}
}

// slot is one thing that is counted, and told once in its window.
type slot struct {
	deliver   func(count int)
	window    time.Duration
	atEnd     bool // it is told at the end too
	count     int
	notBefore time.Time
}

type notice struct {
	method string
	params []byte
	owner  string
}

func newCourier(cb Callbacks, clock Clock, refresh time.Duration) *courier {
	return &courier{
		cb: cb, clock: clock, refresh: refresh, slots: make(map[string]*slot),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

func (c *courier) event(k EventKind) {
	c.bump(string(k), slot{window: eventWindow, atEnd: true, deliver: func(n int) {
		if c.cb.Event != nil {
			c.cb.Event(Event{k, n})
		}
	}})
}

func (c *courier) listChanged(kind string) {
	c.bump("list "+kind, slot{window: c.refresh, deliver: func(int) {
		if c.cb.ListChanged != nil {
			c.cb.ListChanged(kind)
		}
	}})
}

func (c *courier) bump(name string, like slot) {
	c.mu.Lock()
	if c.slots[name] == nil {
		c.slots[name] = &like
	}
	c.slots[name].count++
	c.mu.Unlock()
	c.poke()
}

func (c *courier) notify(n notice) {
	c.mu.Lock()
	full := len(c.queue) >= noticeQueue
	if !full {
		c.queue = append(c.queue, n)
	}
	c.mu.Unlock()
	if full {
		c.event(DroppedNotice)
		return
	}
	c.poke()
}

func (c *courier) poke() { rpc.Wake(c.wake) }

func (c *courier) run() {
	defer close(c.done)
	stop := func() bool { return false } // of the one timer that is set
	defer func() { stop() }()
	for range c.wake {
		for {
			f, wait, closed := c.next()
			if f != nil {
				f()
				continue
			}
			if closed {
				return
			}
			stop()
			if wait > 0 {
				stop = c.clock.AfterFunc(wait, c.poke)
			}
			break
		}
	}
}

// next returns one due delivery, or how long until one is due (0: nothing
// waits). After close every counted event is due at once, and nothing else is.
func (c *courier) next() (f func(), wait time.Duration, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	for _, s := range c.slots {
		n, left := s.count, s.notBefore.Sub(now)
		switch {
		case n == 0 || c.closed && !s.atEnd:
		case left > 0 && !c.closed:
			if wait == 0 || left < wait {
				wait = left
			}
		default:
			s.count, s.notBefore = 0, now.Add(s.window)
			return func() { s.deliver(n) }, 0, false
		}
	}
	if c.closed {
		return nil, 0, true
	}
	if len(c.queue) > 0 {
		n := c.queue[0]
		c.queue = c.queue[1:]
		return func() {
			if c.cb.Notify != nil {
				c.cb.Notify(n.method, n.params, n.owner)
			}
		}, 0, false
	}
	return nil, wait, false
}

func (c *courier) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.poke()
	<-c.done
}

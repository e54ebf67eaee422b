package upstream

import (
	"sync"
	"time"
)

// pausable is a deadline that stands still while somebody else is asked: a
// person answering a server's question is not the server being slow.
type pausable struct {
	clock Clock
	d     time.Duration
	fire  func()

	mu     sync.Mutex
	paused int
	cancel func() bool
	ended  bool
}

func newPausable(c Clock, d time.Duration, fire func()) *pausable {
	p := &pausable{clock: c, d: d, fire: fire}
	p.cancel = c.AfterFunc(d, fire)
	return p
}

func (p *pausable) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused++
	p.cancel()
}

// resume starts the whole time anew when nobody is asked any more.
func (p *pausable) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused--; p.paused == 0 && !p.ended {
		p.cancel = p.clock.AfterFunc(p.d, p.fire)
	}
}

func (p *pausable) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.cancel()
}

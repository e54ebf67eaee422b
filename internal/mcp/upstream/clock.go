package upstream

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"
)

// Clock is the time a Server lives by.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in its own goroutine after d; stop prevents that and
	// reports whether it did.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }
func (realClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// timeout returns a context that ends after d of the clock.
func timeout(ctx context.Context, c Clock, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := c.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// sleep waits d of the clock and reports whether ctx outlived it.
func sleep(ctx context.Context, c Clock, d time.Duration) bool {
	fired := make(chan struct{})
	stop := c.AfterFunc(d, func() { close(fired) })
	defer stop()
	select {
	case <-fired:
		return true
	case <-ctx.Done():
		return false
	}
}

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

// lineWatch passes bytes on and calls slow when a line was begun and its
// newline did not come in time (attack U06): one byte a second keeps no line
// open for ever.
type lineWatch struct {
	r     io.Reader
	clock Clock
	limit time.Duration
	slow  func()
	stop  func() bool // of the running timer, nil between lines
}

func (w *lineWatch) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	last := bytes.LastIndexByte(p[:n], '\n')
	if (last >= 0 || err != nil) && w.stop != nil {
		w.stop()
		w.stop = nil
	}
	if err == nil && n > last+1 && w.stop == nil {
		w.stop = w.clock.AfterFunc(w.limit, w.slow)
	}
	return n, err
}

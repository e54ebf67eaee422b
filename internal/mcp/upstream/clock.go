package upstream

import (
	"context"
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

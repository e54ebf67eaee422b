package downstream

import "sync"

// idleWorkers is how many goroutines of one kind wait for work at most.
const idleWorkers = 64

// workers are goroutines that serve one request after the other: to serve one takes a
// deep stack, which a new goroutine would have to grow anew. The zero value is usable.
type workers struct {
	mu    sync.Mutex
	idle  []chan func()
	ended bool
}

// do has work done by a worker that is idle, or by a new one.
func (w *workers) do(work func()) {
	w.mu.Lock()
	if n := len(w.idle); n > 0 {
		next := w.idle[n-1]
		w.idle = w.idle[:n-1]
		w.mu.Unlock()
		next <- work
		return
	}
	w.mu.Unlock()
	go func() {
		next := make(chan func(), 1)
		for work != nil {
			work()
			if !w.rest(next) {
				return
			}
			work = <-next
		}
	}()
}

// rest puts a worker to the idle ones, unless there are enough.
func (w *workers) rest(next chan func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || len(w.idle) >= idleWorkers {
		return false
	}
	w.idle = append(w.idle, next)
	return true
}

// end ends the workers that are idle, and others once they have done their work.
func (w *workers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, next := range w.idle {
		close(next)
	}
	w.idle = nil
}

package downstream

import (
	"sync"
	"testing"
)

// TestWorkers: all work is done, also what is given by work that is done; as much at once as
// is given; and no goroutine is left when they have ended (TestMain).
func TestWorkers(t *testing.T) {
	var w workers
	var all sync.WaitGroup
	meet := make(chan struct{})
	for range 2 * idleWorkers {
		all.Add(2)
		w.do(func() {
			w.do(func() { <-meet; all.Done() })
			<-meet
			all.Done()
		})
	}
	close(meet)
	all.Wait()
	w.mu.Lock()
	if n := len(w.idle); n > idleWorkers {
		t.Errorf("%d wait for work", n)
	}
	w.mu.Unlock()
	w.end()
	done := make(chan struct{})
	w.do(func() { close(done) })
	<-done
}

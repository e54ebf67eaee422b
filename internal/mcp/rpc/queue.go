package rpc

import (
	"slices"
	"sync"
)

// Queue is what waits for one reader, in order and at most so many. Who fills it never
// waits, and it takes room only for what comes.
type Queue[T any] struct {
	Ready chan struct{} // holds one while there may be something

	max   int
	mu    sync.Mutex
	items []T
}

// NewQueue returns an empty one.
func NewQueue[T any](limit int) *Queue[T] {
	return &Queue[T]{Ready: make(chan struct{}, 1), max: limit}
}

// Push adds an item; false says that there is no room. Of those for which same, unless nil, is true
// one is enough.
func (q *Queue[T]) Push(x T, same func(T) bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if same != nil && slices.ContainsFunc(q.items, same) {
		return true
	}
	if len(q.items) >= q.max {
		return false
	}
	q.items = append(q.items, x)
	Wake(q.Ready)
	return true
}

// Pop takes the oldest item. Whoever received from Ready calls it.
func (q *Queue[T]) Pop() (x T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		q.items = nil
		return x, false
	}
	var none T
	x, q.items[0] = q.items[0], none
	if q.items = q.items[1:]; len(q.items) > 0 {
		Wake(q.Ready)
	}
	return x, true
}

// Wake asks, by a channel that holds one, for something to be done once more; many in a row are one.
func Wake(waiting chan struct{}) {
	select {
	case waiting <- struct{}{}:
	default: // one is waiting already
	}
}

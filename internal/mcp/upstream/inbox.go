package upstream

import "sync"

// inbox is what waits for the caller of one request, in order and at most
// inboxSize messages. It takes room only for what comes: most requests are
// answered and nothing else.
type inbox struct {
	mu    sync.Mutex
	items []item
	ready chan struct{} // holds one while there may be an item
}

func newInbox() inbox { return inbox{ready: make(chan struct{}, 1)} }

// push adds an item; false says there is no room.
func (b *inbox) push(it item) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.items) >= inboxSize {
		return false
	}
	b.items = append(b.items, it)
	b.signal()
	return true
}

// pop takes the oldest item. Whoever received from ready calls it.
func (b *inbox) pop() (it item, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.items) == 0 {
		b.items = nil
		return item{}, false
	}
	it, b.items[0] = b.items[0], item{}
	if b.items = b.items[1:]; len(b.items) > 0 {
		b.signal()
	}
	return it, true
}

func (b *inbox) signal() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

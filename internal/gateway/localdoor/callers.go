package localdoor

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// maxCallers bounds how many processes are remembered.
const maxCallers = 1024

// Callers are the processes that spoke to a server over this machine's loopback, as far as
// the kernel shows this account whose a connection is: on Linux, and elsewhere none. Each is
// remembered when it is gone, too, for what it started may not be. What descends from one
// that is remembered and runs is not remembered besides. The zero value knows none yet, and
// nil never any.
type Callers struct {
	mu      sync.Mutex
	open    map[net.Conn]*connection
	next    chan struct{} // closed by the end of the look that begins next, nil for none
	looking bool
	looks   int
	known   []origin // the oldest first; replaced, never written to
	full    bool     // one was not remembered, for all that are run
}

// A connection of a server's, by its two ends.
type connection struct {
	ends
	heard  atomic.Bool   // a request that Heard was told of
	looked chan struct{} // closed by the end of the first look since
	gone   atomic.Bool   // then nobody held the other end any more
}

type ends struct{ near, far netip.AddrPort }

type (
	connectionKey struct{}
	callersKey    struct{}
)

// Watch has the connections of a server known, before it serves, to who watched them already
// too.
func (c *Callers) Watch(srv *http.Server) {
	before := srv.ConnState
	withContext(srv, func(ctx context.Context, conn net.Conn) context.Context {
		near, ok := conn.LocalAddr().(*net.TCPAddr)
		far, too := conn.RemoteAddr().(*net.TCPAddr)
		if !ok || !too || !far.IP.IsLoopback() {
			return ctx
		}
		at := &connection{ends: ends{bare(near.AddrPort()), bare(far.AddrPort())}, looked: make(chan struct{})}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open == nil {
			c.open = map[net.Conn]*connection{}
		}
		c.open[conn] = at
		return context.WithValue(ctx, connectionKey{}, at)
	})
	srv.ConnState = func(conn net.Conn, s http.ConnState) {
		if before != nil {
			before(conn, s)
		}
		if s == http.StateClosed || s == http.StateHijacked {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.open, conn)
		}
	}
}

// withContext has the context of each connection of a server made by this, of what it was before.
func withContext(srv *http.Server, of func(context.Context, net.Conn) context.Context) {
	before := srv.ConnContext
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if before != nil {
			ctx = before(ctx, c)
		}
		return of(ctx, c)
	}
}

func bare(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// Heard says that the process at the other end of a request is a caller, and reports
// whether it is to be served. At the first request of a connection it is looked for, before
// anything is made of the request: once it has its answer, it may hold the connection no
// more. Who has closed the connection by then is not served, for nobody knows who it was.
func (c *Callers) Heard(ctx context.Context) bool {
	at, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return true
	}
	if !at.heard.Load() && !at.heard.Swap(true) {
		c.look()
	}
	select {
	case <-at.looked:
		return !at.gone.Load()
	case <-ctx.Done():
		return false
	}
}

// Keep has Apart, of each request of a handler, keep apart from these callers too.
func (c *Callers) Keep(h http.Handler) http.Handler {
	if c == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callersKey{}, c)))
	})
}

// all are those known once all looks have ended that are under way, and one more: who was
// handed an open connection meanwhile has spoken over it, or may.
func (c *Callers) all(ctx context.Context) ([]origin, error) {
	select {
	case <-c.look():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full {
		return nil, errMany
	}
	return c.known, nil
}

var errMany = errors.New("more clients spoke over HTTP than the gateway remembers; until it is started again it cannot tell who is none of them")

// look begins one look at the connections that are open, after the one that is under way,
// and returns what is closed at its end.
func (c *Callers) look() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
		if !c.looking {
			c.looking = true
			go c.lookAll()
		}
	}
	return c.next
}

func (c *Callers) lookAll() {
	for {
		c.mu.Lock()
		done, known := c.next, c.known
		if c.next = nil; done == nil {
			c.looking = false
			c.mu.Unlock()
			return
		}
		c.looks++
		var open []*connection
		var at []ends
		for _, o := range c.open {
			if o.heard.Load() {
				open, at = append(open, o), append(at, o.ends)
			}
		}
		c.mu.Unlock()
		pids, gone := holders(at)
		known, full := remember(known, pids)
		c.mu.Lock()
		c.known, c.full = known, c.full || full
		c.mu.Unlock()
		for _, o := range open {
			select {
			case <-o.looked:
			default:
				o.gone.Store(slices.Contains(gone, o.ends))
				close(o.looked)
			}
		}
		close(done)
	}
}

// remember returns what is known with these processes in it, the first of those that ended
// left out where it is too many. Who runs is not left out for another: full is then true.
func remember(known []origin, pids []int) (all []origin, full bool) {
	var found []origin
	for _, pid := range pids {
		if o, err := originOf(pid); err == nil && pid != os.Getpid() && !slices.ContainsFunc(known, o.is) {
			found = append(found, o)
		}
	}
	if found == nil {
		return known, false
	}
	// Who started others before them. Ticks are digits.
	slices.SortFunc(found, func(a, b origin) int {
		return cmp.Or(cmp.Compare(len(a.started), len(b.started)), cmp.Compare(a.started, b.started))
	})
	known = slices.Clone(known)
	for _, o := range found {
		above := line(o.pid)
		if slices.ContainsFunc(known, func(k origin) bool { return slices.Contains(above, k.pid) && k.runs() }) {
			continue
		}
		if len(known) >= maxCallers {
			gone := slices.IndexFunc(known, func(k origin) bool { return !k.runs() })
			if gone < 0 {
				return known, true
			}
			known = slices.Delete(known, gone, gone+1)
		}
		known = append(known, o)
	}
	return known, false
}

// An origin is what is kept of a process that must not answer for a person, nor what
// descends from it.
type origin struct {
	process
	login, group []byte // nil where they cannot be read
}

func (o origin) is(other origin) bool { return o.process == other.process }

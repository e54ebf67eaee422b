package downstream

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// The connections one server has at a time, and how many of them are left to those who
// are told that there is no room.
const (
	maxSockets   = 1024
	spareSockets = 64
)

// sockets bounds the connections of one server (D01). Over loopback a connection does not
// say whose it is until its request is read, so they are told apart by what they do. Where
// there are too many, the one that has waited longest for a request is closed; else the one
// whose request, with its body, has been incomplete longest. One whose request is whole and
// being served never is.
type sockets struct {
	max, spare int

	mu      sync.Mutex
	all     map[net.Conn]*socket
	open    int    // that are not gone
	serving int    // of them, whose request is whole and being served
	changes uint64 // orders them
}

// socket is one connection. Its fields are guarded by sockets.mu.
type socket struct {
	of    *sockets
	state http.ConnState
	since uint64
	sends bool // the body of its request is not here yet
	gone  bool // it was closed to make room; what still comes of it is not served
}

type socketKey struct{}

func newSockets(limit, spare int) *sockets {
	return &sockets{max: limit, spare: spare, all: map[net.Conn]*socket{}}
}

// watch has the connections of a server bounded. Who watches them besides calls what he
// finds in the server's ConnState and ConnContext, as localdoor does.
func (s *sockets) watch(srv *http.Server) {
	srv.ConnState = s.changed
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		s.mu.Lock()
		defer s.mu.Unlock()
		return context.WithValue(ctx, socketKey{}, s.socket(c))
	}
}

// bodyComes says whether the body of a request is still on its way.
func bodyComes(ctx context.Context, now bool) {
	k, ok := ctx.Value(socketKey{}).(*socket)
	if !ok {
		return
	}
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	if k.gone {
		return
	}
	k.of.count(k, -1)
	k.sends = now
	k.of.count(k, 1)
}

// socket returns what is known of a connection, which from when it is known first has waited no longer than any
// other: it is told of with its context, and of its state only after that. s.mu is held.
func (s *sockets) socket(c net.Conn) *socket {
	k := s.all[c]
	if k == nil {
		s.changes++
		k = &socket{of: s, since: s.changes}
		s.all[c] = k
		s.open++
	}
	return k
}

// changed is told of each connection what it does now.
func (s *sockets) changed(c net.Conn, now http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.socket(c)
	if !k.gone {
		s.count(k, -1)
		s.changes++
		k.state, k.since, k.sends = now, s.changes, false
	}
	if now == http.StateClosed || now == http.StateHijacked {
		delete(s.all, c)
		if !k.gone {
			s.open--
		}
		return
	}
	if !k.gone {
		s.count(k, 1)
	}
	if s.open > s.max {
		s.makeRoom()
	}
}

func (s *sockets) count(k *socket, n int) {
	if k.served() {
		s.serving += n
	}
}

func (k *socket) served() bool { return k.state == http.StateActive && !k.sends }

// makeRoom closes one connection that is not being served. s.mu is held.
func (s *sockets) makeRoom() {
	var first *socket
	var conn net.Conn
	for c, k := range s.all {
		if !k.gone && !k.served() && (first == nil || k.before(first)) {
			first, conn = k, c
		}
	}
	if first != nil {
		first.gone = true
		s.open--
		go conn.Close() // over TLS it may wait for a client that does not read
	}
}

func (k *socket) before(other *socket) bool {
	if idle := k.state == http.StateIdle; idle != (other.state == http.StateIdle) {
		return idle
	}
	return k.since < other.since
}

// admitted reports whether a request's connection is served: it was not closed to make
// room as the request came, and the last ones are left to those who are refused.
func admitted(r *http.Request) bool {
	k, ok := r.Context().Value(socketKey{}).(*socket)
	if !ok {
		return true // not of a server of NewServer
	}
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	return !k.gone && k.of.serving <= k.of.max-k.of.spare
}

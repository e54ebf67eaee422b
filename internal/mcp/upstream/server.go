package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/writ-project/writ/internal/strictjson"
)

// Server is one upstream server, kept connected until Close: a lost connection
// is made again after a wait that doubles from Limits.RestartMin to
// Limits.RestartMax (attack U08). While it waits, requests are refused at once.
type Server struct {
	cfg     Config
	limits  Limits
	clock   Clock
	courier *courier

	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when run has ended
	once   sync.Once

	changes atomic.Uint64 // see Changes

	// Owned by run.
	noProbe bool // the child died of server/discover: open with initialize
	patient bool // initialize failed after a slow probe: wait longer for it

	mu      sync.Mutex // guards what follows
	started bool
	state   state
	conn    *conn // set while ready
	info    Info
	err     error
	changed chan struct{} // closed and replaced at each change of state
	owner   string        // of the judged requests so far
	shared  bool          // they had several
	said    []byte        // see Said
}

type state uint8

const (
	connecting state = iota
	ready
	waiting // between two attempts
	closed
)

// New returns a server that is not started. A nil clock is the real one.
func New(cfg Config, cb Callbacks, clock Clock) *Server {
	if clock == nil {
		clock = realClock{}
	}
	if cfg.ClientCapabilities == nil {
		cfg.ClientCapabilities = []byte("{}")
	}
	s := &Server{
		cfg: cfg, limits: cfg.Limits.WithDefaults(), clock: clock,
		done: make(chan struct{}), changed: make(chan struct{}),
	}
	s.courier = newCourier(cb, clock, s.limits.Refresh)
	return s
}

// Start begins to connect and returns at once. The server lives until Close or
// until ctx ends. The error reports a configuration that cannot work.
func (s *Server) Start(ctx context.Context) error {
	if err := s.cfg.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started || s.state == closed {
		return errors.New("a server is started once")
	}
	s.started = true
	s.ctx, s.cancel = context.WithCancel(ctx)
	go s.courier.run()
	go s.run()
	return nil
}

// Close ends the connection, and the child with everything in its process
// group: EOF, then SIGTERM, then SIGKILL, Limits.Grace apart. Open requests end
// as Unknown. It must not be called from a callback.
func (s *Server) Close() error {
	s.mu.Lock()
	started := s.started
	if !started {
		s.state = closed
	}
	s.mu.Unlock()
	if !started {
		return nil
	}
	s.cancel()
	<-s.done
	s.once.Do(s.courier.close)
	return nil
}

// Stderr returns the last 64 KiB the child wrote to its standard error, for a
// person who asks. It can hold secrets and control characters: it is not for
// the log.
func (s *Server) Stderr() []byte {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c != nil {
		if l, ok := c.link.(*stdio); ok {
			return l.proc.stderr.Bytes()
		}
	}
	return nil
}

// Said is Stderr of the child that was lost last, nil where none was.
func (s *Server) Said() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said
}

// Down returns why the server is not there, nil while it is, or is started for the first
// time.
func (s *Server) Down() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == ready {
		return nil
	}
	return s.err
}

// Info waits until the server is ready and returns what it said of itself, or
// returns why it is not ready.
func (s *Server) Info(ctx context.Context) (Info, error) {
	_, info, err := s.await(ctx)
	return info, err
}

// await returns the live connection; it waits while one is being made.
func (s *Server) await(ctx context.Context) (*conn, Info, error) {
	for {
		s.mu.Lock()
		st, c, info, err, changed, started := s.state, s.conn, s.info, s.err, s.changed, s.started
		s.mu.Unlock()
		switch {
		case st == closed:
			return nil, Info{}, ErrClosed
		case !started:
			return nil, Info{}, errors.New("the server was not started")
		case st == ready:
			return c, info, nil
		case st == waiting:
			return nil, Info{}, fmt.Errorf("not connected: %w", err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, Info{}, errors.New("the server is not ready yet")
		}
	}
}

func (s *Server) set(st state, c *conn, info Info, err error) {
	s.mu.Lock()
	s.state, s.conn, s.info, s.err = st, c, info, err
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
}

// run connects, waits for the loss and connects again.
func (s *Server) run() {
	defer close(s.done)
	defer s.set(closed, nil, Info{}, ErrClosed)
	var delay time.Duration
	failed := false
	for generation := 1; ; {
		c, info, err := s.connect()
		if err == nil {
			since := s.clock.Now()
			s.changes.Add(1) // another process may list otherwise
			s.set(ready, c, info, nil)
			c.link.listen()
			c.startListening(info.Capabilities)
			if generation > 1 {
				s.courier.event(Restarted)
			}
			if generation > 1 || failed {
				s.unheard()
			}
			generation++
			select {
			case <-c.dead:
			case <-s.ctx.Done():
			}
			err = c.cause()
			// Calls that come now wait for the first attempt to reconnect.
			s.set(connecting, nil, Info{}, err)
			c.close()
			if l, ok := c.link.(*stdio); ok {
				s.mu.Lock()
				s.said = l.proc.stderr.Bytes()
				s.mu.Unlock()
			}
			if s.ctx.Err() == nil {
				s.courier.event(ConnectionLost)
			}
			if s.clock.Now().Sub(since) >= s.limits.RestartMax {
				delay = 0
			}
			if errors.Is(err, errSessionGone) && delay == 0 {
				delay = s.limits.RestartMin
				continue // a new session costs nothing: no wait
			}
		} else if s.ctx.Err() == nil { // not given up by Close
			s.courier.event(ConnectFailed)
			failed = true
		}
		if s.ctx.Err() != nil {
			return
		}
		first := delay == 0 && err != nil && generation > 1
		delay = min(max(2*delay, s.limits.RestartMin), s.limits.RestartMax)
		if !first {
			s.set(waiting, nil, Info{}, err)
		}
		if !s.pause(delay) {
			return
		}
		if !first {
			s.set(connecting, nil, Info{}, err)
		}
	}
}

// pause waits before it connects again: until there is another credential, where there
// is one to be had, since that is what a server that refuses waits for. It reports
// whether the server goes on.
func (s *Server) pause(d time.Duration) bool {
	if s.cfg.Credential == nil {
		return sleep(s.ctx, s.clock, d)
	}
	was, _ := s.cfg.Credential.Authorization(s.ctx)
	for ; d > 0; d -= credentialTime {
		if !sleep(s.ctx, s.clock, min(d, credentialTime)) {
			return false
		}
		if now, err := s.cfg.Credential.Authorization(s.ctx); err == nil && now != was {
			return true
		}
	}
	return true
}

// credentialTime is how often another credential is looked for.
const credentialTime = time.Second

// Changes counts what may have changed the server's lists: each list_changed,
// from the moment it is read, each new connection, and each time Writ began to
// listen for such. Lists asked for after it was read are right while it stays
// the same. It is 0 before the first connection.
func (s *Server) Changes() uint64 { return s.changes.Load() }

// unheard counts a change of every list: what was said while nobody listened is
// not known.
func (s *Server) unheard() {
	s.changes.Add(1)
	for _, kind := range listKinds {
		s.courier.listChanged(kind)
	}
}

// listed reports whether the server's lists are those the request rests on.
func (s *Server) listed(r *Request) bool {
	if r.Listed == nil {
		return false
	}
	n := r.Listed.Load()
	return n != 0 && n == s.changes.Load()
}

// owned notes whose judged requests the server gets.
func (s *Server) owned(by string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared = s.shared || by == "" || s.owner != "" && s.owner != by
	s.owner = by
}

// onlyOwner is the one Owner of all judged requests so far, "" when there are
// several or none. Only what belongs to it can stand in what the server says.
func (s *Server) onlyOwner() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared {
		return ""
	}
	return s.owner
}

func (s *Server) clientInfo() []byte {
	return append(append([]byte(`{"name":"writ","version":`), strictjson.Quote(cmp.Or(s.cfg.Version, "0"))...), '}')
}

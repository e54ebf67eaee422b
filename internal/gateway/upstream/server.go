package upstream

import "context"

// Server is one upstream server, kept connected until Close.
type Server struct{}

// New returns a server that is not started. A nil clock is the real one.
func New(cfg Config, cb Callbacks, clock Clock) *Server { return &Server{} }

// Start begins to connect and returns at once. The server lives until Close or
// until ctx ends. It reports a configuration that cannot work.
func (s *Server) Start(ctx context.Context) error { return nil }

// Close ends the connection and the child with everything it started.
func (s *Server) Close() error { return nil }

// Info waits until the server is ready, or returns why it is not.
func (s *Server) Info(ctx context.Context) (Info, error) { return Info{}, ErrClosed }

// Call sends a judged request, if its decision allows it. It is the one door.
func (s *Server) Call(ctx context.Context, r Request) Response { return notSent("not connected") }

// Do sends a request that needs no decision.
func (s *Server) Do(ctx context.Context, r Request) Response { return notSent("not connected") }

// List follows a list to its end.
func (s *Server) List(ctx context.Context, method, key string) (Listing, error) {
	return Listing{}, ErrClosed
}

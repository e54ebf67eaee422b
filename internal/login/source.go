package login

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/oauth2"
)

// Source is what one server's requests are signed in with. Several processes may use
// one login: its file is asked again whenever the token at hand is no good, and one of
// them renews it, since a refresh token may work once.
type Source struct {
	store       *Store
	server, url string
	client      *http.Client
	now         func() time.Time

	mu   sync.Mutex
	has  *grant
	file time.Time // when the file it was read from was written
	err  error     // why it was not renewed, and until when that is not tried again
	till time.Time
}

// Source returns what the requests to a server at a URL are signed in with, whether or
// not somebody has signed in there yet.
func (s *Store) Source(server, url string) *Source {
	return &Source{store: s, server: server, url: url, client: client(url), now: time.Now}
}

// early is how long before its end a token is renewed.
const early = 30 * time.Second

// Authorization returns the value of the Authorization header, "" where nobody has
// signed in. An error means that the login is there and no good.
func (s *Source) Authorization(ctx context.Context) (string, error) {
	fi, err := os.Lstat(s.store.file(s.server))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.has = nil
		return "", nil
	}
	if same := fi.ModTime().Equal(s.file); !s.good(s.has) || !same {
		if same && s.now().Before(s.till) {
			return "", s.err
		}
		g, err := s.renewed(ctx)
		s.has, s.file = g, fi.ModTime() // of one that was renewed the old time: it is read once more
		if errors.Is(err, ErrNone) {
			return "", nil
		}
		if err != nil {
			s.err, s.till = err, s.now().Add(early)
			return "", err
		}
		s.till = time.Time{}
	}
	return "Bearer " + s.has.Access, nil
}

// Refused says that the server did not take a token: the next request asks for another.
func (s *Source) Refused(header string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has != nil && header == "Bearer "+s.has.Access {
		s.has = nil
	}
}

func (s *Source) good(g *grant) bool {
	return g != nil && (g.Expiry.IsZero() || s.now().Add(early).Before(g.Expiry))
}

// renewed returns the login that is kept, renewed where it has to be.
func (s *Source) renewed(ctx context.Context) (*grant, error) {
	g, err := s.store.get(s.server, s.url)
	if err != nil || s.good(g) {
		return g, err
	}
	l := flock.New(filepath.Join(s.store.dir, ".lock"), flock.SetPermissions(0o600))
	if ok, err := l.TryLockContext(ctx, 50*time.Millisecond); !ok || err != nil {
		return nil, errors.New("the login cannot be locked")
	}
	defer l.Close()
	if g, err = s.store.get(s.server, s.url); err != nil || s.good(g) {
		return g, err // another process was first
	}
	if g.Refresh == "" {
		return nil, errors.New("the login has ended")
	}
	t, err := g.config().TokenSource(context.WithValue(ctx, oauth2.HTTPClient, s.client), &oauth2.Token{RefreshToken: g.Refresh}).Token()
	switch answered, ok := errors.AsType[*oauth2.RetrieveError](err); {
	case ok && answered.Response.StatusCode/100 == 4:
		return nil, errors.New("the login was not renewed: the authorization server refused")
	case err != nil:
		return nil, errors.New("the login was not renewed: the authorization server cannot be reached")
	}
	g = g.taken(t)
	if err := s.store.put(s.server, s.url, g); err != nil {
		return nil, err
	}
	return g, nil
}

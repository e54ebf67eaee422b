package login

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-project/writ/internal/login/standin"
)

// fine is a server that answers whoever gets to it.
var fine = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })

func store(t *testing.T) *Store { return Open(filepath.Join(t.TempDir(), "logins"), t.TempDir()) }

func ask(t *testing.T, h *standin.Hosted, s *Source) (status int, bearer string) {
	t.Helper()
	v, err := s.Authorization(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequest(http.MethodPost, h.URL+"/mcp", nil)
	if v != "" {
		req.Header.Set("Authorization", v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode, v
}

func TestLogin(t *testing.T) {
	h, s := standin.New(t, fine), store(t)
	src := s.Source("hosted", h.URL+"/mcp")
	if status, v := ask(t, h, src); status != 401 || v != "" {
		t.Errorf("before: %d %q", status, v)
	}
	err := s.Login(t.Context(), "hosted", h.URL+"/mcp", Options{Visit: func(page string) {
		go func() {
			// Somebody else's page sends the browser here first: nothing ends.
			if status := h.Browser(page, func(v url.Values) { v.Set("state", "another") }); status != 404 {
				t.Errorf("another state: %d", status)
			}
			h.Browser(page, nil)
		}()
	}})
	if err != nil {
		t.Fatal(err)
	}
	status, v := ask(t, h, src)
	if status != 200 {
		t.Errorf("after: %d", status)
	}
	// Nothing of it can be read in the state directory, and nothing under another name,
	// at another URL, or with another key.
	sealed, _ := os.ReadFile(filepath.Join(s.dir, "hosted"))
	if strings.Contains(string(sealed), strings.TrimPrefix(v, "Bearer ")) || len(sealed) == 0 {
		t.Error("the token stands in the file")
	}
	if _, err := s.Source("hosted", h.URL+"/other").Authorization(t.Context()); !errors.Is(err, errSealed) {
		t.Errorf("another URL: %v", err)
	}
	os.Rename(filepath.Join(s.dir, "hosted"), filepath.Join(s.dir, "twin"))
	if _, err := s.Source("twin", h.URL+"/mcp").Authorization(t.Context()); !errors.Is(err, errSealed) {
		t.Errorf("another name: %v", err)
	}
	if v, err := src.Authorization(t.Context()); v != "" || err != nil {
		t.Errorf("removed: %q %v", v, err)
	}
	os.Rename(filepath.Join(s.dir, "twin"), filepath.Join(s.dir, "hosted"))
	os.Remove(s.key)
	if _, err := s.Source("hosted", h.URL+"/mcp").Authorization(t.Context()); !errors.Is(err, errSealed) {
		t.Errorf("without the key: %v", err)
	}
	if err := s.Remove("hosted"); err != nil {
		t.Error(err)
	}
	if err := s.Remove("hosted"); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

// TestRenewal: a token that ends is renewed once, however many processes bear it, and
// each refresh token is used once.
func TestRenewal(t *testing.T) {
	h, s := standin.New(t, fine), store(t)
	h.Lifetime = 20 // of which nothing is left, since it is renewed early
	if err := s.Login(t.Context(), "hosted", h.URL+"/mcp", Options{Visit: func(page string) { go h.Browser(page, nil) }}); err != nil {
		t.Fatal(err)
	}
	h.Lifetime = 3600
	var wg sync.WaitGroup
	for range 8 {
		src := s.Source("hosted", h.URL+"/mcp") // of a process of its own
		wg.Go(func() {
			for range 3 {
				if status, _ := ask(t, h, src); status != 200 {
					t.Errorf("HTTP %d", status)
				}
			}
		})
	}
	wg.Wait()
	if h.Renewals != 1 {
		t.Errorf("renewed %d times", h.Renewals)
	}
	// The authorization server forgets it: said so, and not tried with what was refused.
	src := s.Source("hosted", h.URL+"/mcp")
	src.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	h.Forget()
	if _, err := src.Authorization(t.Context()); err == nil || err.Error() != "the login was not renewed: the authorization server refused" {
		t.Error(err)
	}
}

func TestNoLogin(t *testing.T) {
	for name, c := range map[string]struct {
		at    string
		set   func(*standin.Hosted)
		alter func(url.Values)
		want  string
	}{
		"the person said no":          {alter: func(v url.Values) { v.Del("code"); v.Set("error", "access_denied") }, want: "the authorization server sent the browser back without a login"},
		"a code that was never given": {alter: func(v url.Values) { v.Set("code", "made-up") }, want: "the authorization server gave no token for the sign-in"},
		"another issuer answers":      {alter: func(v url.Values) { v.Set("iss", "https://elsewhere.example") }, want: "what the server says of its authorization server cannot be read or used"},
		"it registers no clients":     {set: func(h *standin.Hosted) { h.NoClients = true }, want: "the authorization server registers no clients by itself; it has to give you a client id"},
		"it wants none":               {at: "/open", want: ErrOpen.Error()},
		"there is no such page":       {at: "/nothing", want: "the server answered HTTP 404"},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := standin.New(t, fine), store(t)
			if c.set != nil {
				c.set(h)
			}
			at := "/mcp"
			if c.at != "" {
				at = c.at
			}
			err := s.Login(t.Context(), "hosted", h.URL+at, Options{Visit: func(page string) { go h.Browser(page, c.alter) }})
			if err == nil || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
			if es, _ := os.ReadDir(s.dir); len(es) > 0 {
				t.Errorf("something was kept: %v", es)
			}
		})
	}
	// What a server may not name is not asked: the SDK then takes the server itself, as
	// MCP had it before 2025-06-18, and the person is told of no other.
	for _, spoof := range []string{"http://elsewhere.example", "https://169.254.169.254"} {
		t.Run(spoof, func(t *testing.T) {
			h, s := standin.New(t, fine), store(t)
			h.Spoof = spoof
			if err := s.Login(t.Context(), "hosted", h.URL+"/mcp", Options{Visit: func(page string) { go h.Browser(page, nil) }}); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("the person goes away", func(t *testing.T) {
		h := standin.New(t, fine)
		ctx, cancel := context.WithCancel(t.Context())
		err := store(t).Login(ctx, "hosted", h.URL+"/mcp", Options{Visit: func(string) { cancel() }})
		if err == nil || err.Error() != "nobody signed in in time" {
			t.Error(err)
		}
	})
	t.Run("a token would go over http", func(t *testing.T) {
		if err := store(t).Login(t.Context(), "hosted", "http://hosted.example/mcp", Options{}); err == nil || err.Error() != "a token goes over https, or to this machine" {
			t.Error(err)
		}
	})
}

// TestVisit: which pages a person is sent to.
func TestVisit(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for page, want := range map[string][2]bool{ // of a server elsewhere, of one of this machine
		"https://as.example/authorize?state=a": {true, true}, "http://as.example/authorize?state=a": {false, false},
		"http://127.0.0.1:631/jobs?state=a": {false, true}, "http://localhost:8080/?state=a": {false, true}, "https://[::1]/?state=a": {false, true},
		"https://as.example@127.0.0.1/?state=a": {false, false}, "file:///etc/passwd": {false, false},
		"https://as\u009b31m.example/?state=a": {false, false}, "https://as%C2%9B31m.example/?state=a": {false, false}, "https://\u202eelpmaxe.sa/?state=a": {false, false}, "javascript:alert(1)": {false, false},
	} {
		for i, local := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			sent := false
			_, _ = visit(ctx, l, page, local, func(string) { sent = true; cancel() })
			if cancel(); sent != want[i] {
				t.Errorf("%s, local %v: sent %v", page, local, sent)
			}
		}
	}
}

func TestPublic(t *testing.T) {
	for addr, want := range map[string]bool{
		"93.184.216.34:443": true, "[2606:2800:220:1::1]:443": true,
		"127.0.0.1:443": false, "10.0.0.1:443": false, "192.168.1.1:443": false, "172.16.0.1:443": false, "169.254.169.254:80": false, "0.0.0.0:80": false,
		"100.64.0.1:443": false, "[::1]:443": false, "[::ffff:10.0.0.1]:443": false, "[fe80::1]:443": false, "[fd00::1]:443": false, "[64:ff9b::a00:1]:443": false, "[2002:a00:1::]:443": false,
		"224.0.0.1:443": false, "255.255.255.255:443": false, "nonsense": false,
	} {
		if err := public(addr); (err == nil) != want {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// TestSealText: a text opens for the variable and the server it was sealed for, with the
// key of its store, whole.
func TestSealText(t *testing.T) {
	s := store(t)
	sealed, err := s.SealText("docs", "TOKEN", "k-0123\x00\"k\"")
	if err != nil || !Sealed(sealed) || strings.Contains(sealed, "0123") {
		t.Fatal(sealed, err)
	}
	if plain, err := s.OpenText("docs", "TOKEN", sealed); err != nil || plain != "k-0123\x00\"k\"" {
		t.Fatal(plain, err)
	}
	again, err := s.SealText("docs", "TOKEN", "k-0123\x00\"k\"")
	if err != nil || again == sealed {
		t.Fatal("two texts are seen to be the same", err)
	}
	other := store(t)
	if _, err := other.SealText("docs", "TOKEN", ""); err != nil {
		t.Fatal(err)
	}
	letter := map[bool]string{true: "B", false: "A"}[sealed[20] == 'A']
	for name, open := range map[string]func() (string, error){
		"another server":   func() (string, error) { return s.OpenText("docs-2", "TOKEN", sealed) },
		"another variable": func() (string, error) { return s.OpenText("docs", "TOKEN2", sealed) },
		"moved border":     func() (string, error) { return s.OpenText("docs\x00TOKEN", "", sealed) },
		"another key":      func() (string, error) { return other.OpenText("docs", "TOKEN", sealed) },
		"no key":           func() (string, error) { return store(t).OpenText("docs", "TOKEN", sealed) },
		"cut":              func() (string, error) { return s.OpenText("docs", "TOKEN", sealed[:len(sealed)-4]) },
		"altered":          func() (string, error) { return s.OpenText("docs", "TOKEN", sealed[:20]+letter+sealed[21:]) },
		"plain":            func() (string, error) { return s.OpenText("docs", "TOKEN", "k-0123") },
	} {
		if plain, err := open(); err == nil || plain != "" {
			t.Errorf("%s: opened %q", name, plain)
		}
	}
}

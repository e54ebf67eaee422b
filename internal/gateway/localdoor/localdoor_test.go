package localdoor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-project/writ/internal/private"
)

const (
	secret    = "the-session's-secret"
	onWindows = runtime.GOOS == "windows"
)

// newState is a state directory. One whose path is too long for a socket gets
// a port for a door, as every one does on Windows.
func newState(t testing.TB, long bool) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "door-") // t.TempDir has the test's name in it: too long for a socket on some systems
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if long {
		dir = filepath.Join(dir, strings.Repeat("long", 30))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// gateway is a server behind a door that says who it is, and what it was sent.
type gateway struct {
	*Door
	name string
	mu   sync.Mutex
	seen []string
}

// Close ends it as the program does: the entry first, then the door.
func (g *gateway) Close() error {
	err := g.Door.Close()
	g.ln.Close()
	return err
}

var started = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func open(t testing.TB, state, name string, age time.Duration) *gateway {
	t.Helper()
	d, err := Open(state)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{Door: d, name: name}
	ln, err := d.Listen()
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.seen = append(g.seen, r.Header.Get("Writ-Session"))
		g.mu.Unlock()
		io.WriteString(w, name)
	}))
	srv.Listener.Close()
	srv.Listener = ln
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	t.Cleanup(srv.Close)
	if err := d.Publish("http://"+name, started.Add(-age)); err != nil {
		t.Fatal(err)
	}
	return g
}

func find(t testing.TB, state string) (names []string) {
	t.Helper()
	all, err := Find(state)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range all {
		names = append(names, strings.TrimPrefix(g.URL, "http://"))
	}
	return names
}

// ask sends a secret to a gateway and returns who answered.
func ask(g *Gateway) (string, error) {
	c, err := g.Client(10 * time.Second)
	if err != nil {
		return "", err
	}
	defer c.CloseIdleConnections()
	req, _ := http.NewRequest(http.MethodGet, "https://localhost/", nil)
	req.Header.Set("Writ-Session", secret)
	r, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return string(b), err
}

func eachDoor(t *testing.T, f func(t *testing.T, state string)) {
	for name, long := range map[string]bool{"socket": false, "port": true} {
		t.Run(name, func(t *testing.T) { f(t, newState(t, long)) })
	}
}

// TestDoor: who has the state directory reaches the gateway, over either door;
// nothing stands open in the directory meanwhile, and nothing is left of it.
func TestDoor(t *testing.T) {
	eachDoor(t, func(t *testing.T, state string) {
		t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1") // I07: no proxy is asked
		g := open(t, state, "one", 0)
		all, err := Find(state)
		if err != nil || len(all) != 1 {
			t.Fatalf("%v %v", all, err)
		}
		if tcp := all[0].entry.Address != ""; tcp != strings.Contains(state, "long") && !onWindows {
			t.Fatalf("the door is at %q", all[0].place())
		}
		if got, err := Reach(t.Context(), all); err != nil || got != all[0] {
			t.Fatalf("%v %v", got, err)
		}
		if got, err := ask(all[0]); err != nil || got != "one" || g.seen[0] != secret {
			t.Fatalf("%q %v %q", got, err, g.seen)
		}
		files, _ := os.ReadDir(filepath.Join(state, Dir))
		for _, f := range files {
			if err := private.At(filepath.Join(state, Dir, f.Name()), private.Secret); err != nil {
				t.Error(err)
			}
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(filepath.Join(state, Dir)); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if got, err := Reach(t.Context(), all); got != nil || err != nil {
			t.Errorf("of a gateway that has ended: %v %v", got, err)
		}
	})
}

// impostor listens where a gateway's door was, and keeps what it hears.
type impostor struct {
	ln    net.Listener
	mu    sync.Mutex
	heard []byte
	ended sync.WaitGroup
}

func impersonate(t *testing.T, network, place string, serve func(net.Conn)) *impostor {
	t.Helper()
	ln, err := net.Listen(network, place)
	if err != nil {
		t.Fatal(err)
	}
	i := &impostor{ln: ln}
	i.ended.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			i.ended.Go(func() { defer c.Close(); serve(&heard{c, i}) })
		}
	})
	t.Cleanup(func() { ln.Close(); i.ended.Wait() })
	return i
}

type heard struct {
	net.Conn
	i *impostor
}

func (h *heard) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	h.i.mu.Lock()
	h.i.heard = append(h.i.heard, b[:n]...)
	h.i.mu.Unlock()
	return n, err
}

// TestImpostor: who stands at a gateway's place without its key is told nothing,
// whatever he speaks (I01 plain HTTP, I02 TLS with a key of his own, I03 the
// handshake passed on to another gateway of the same state directory).
func TestImpostor(t *testing.T) {
	eachDoor(t, func(t *testing.T, state string) {
		for _, kind := range []string{"I01 plain", "I02 own key", "I03 relay", "I03 relay to itself"} {
			t.Run(kind, func(t *testing.T) {
				victim := open(t, state, "victim", 0)
				other := open(t, state, "other", time.Hour)
				all, err := Find(state)
				if err != nil || len(all) != 2 {
					t.Fatalf("%v %v", all, err)
				}
				v, o := all[0], all[1]
				victim.ln.Close() // it hangs, and its place is free; its entry stays
				network := "tcp"
				if v.entry.Address == "" {
					network = "unix"
					os.Remove(v.socket)
				}
				serve := map[string]func(net.Conn){
					"I01 plain": func(c net.Conn) {
						c.SetDeadline(time.Now().Add(5 * time.Second))
						io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
						io.Copy(io.Discard, c)
					},
					"I02 own key": func(c net.Conn) {
						own, err := proof(make([]byte, 32))
						if err != nil {
							t.Error(err)
							return
						}
						own.VerifyConnection = nil
						s := tls.Server(c, own)
						s.SetDeadline(time.Now().Add(5 * time.Second))
						if b, err := io.ReadAll(io.LimitReader(s, 1)); len(b) > 0 {
							t.Errorf("the impostor was sent %q (%v)", b, err)
						}
					},
					"I03 relay": func(c net.Conn) { relay(c, o) },
					"I03 relay to itself": func(c net.Conn) { // the client's words come back to it
						c.SetDeadline(time.Now().Add(5 * time.Second))
						io.Copy(c, c)
					},
				}[kind]
				i := impersonate(t, network, v.place(), serve)
				if got, err := ask(v); err == nil {
					t.Errorf("the impostor answered %q", got)
				}
				var u *UnreachableError
				if _, err := Reach(t.Context(), all[:1]); !errors.As(err, &u) || !strings.Contains(err.Error(), "did not prove") {
					t.Errorf("got %v", err)
				}
				// The other gateway is reached all the same.
				if got, err := Reach(t.Context(), all); err != nil || got != o {
					t.Errorf("%v %v", got, err)
				}
				i.mu.Lock()
				if len(i.heard) == 0 || strings.Contains(string(i.heard), secret) {
					t.Errorf("the impostor heard %q", i.heard)
				}
				i.mu.Unlock()
				for _, s := range other.seen {
					t.Errorf("the other gateway was sent %q", s)
				}
				victim.Close()
				other.Close()
			})
		}
	})
}

// relay passes everything on between a connection and a gateway.
func relay(c net.Conn, to *Gateway) {
	network := "tcp"
	if to.entry.Address == "" {
		network = "unix"
	}
	up, err := net.Dial(network, to.place())
	if err != nil {
		return
	}
	for _, x := range []net.Conn{c, up} {
		x.SetDeadline(time.Now().Add(5 * time.Second))
	}
	var both sync.WaitGroup
	both.Go(func() { io.Copy(up, c); up.Close() })
	io.Copy(c, up)
	c.Close()
	both.Wait()
}

// TestStrangerAtTheDoor: who does not prove the key reaches no handler (I09).
func TestStrangerAtTheDoor(t *testing.T) {
	eachDoor(t, func(t *testing.T, state string) {
		g := open(t, state, "one", 0)
		all, _ := Find(state)
		for name, c := range map[string]*tls.Config{
			"no certificate": {InsecureSkipVerify: true},
			"another key": func() *tls.Config {
				c, err := proof([]byte(strings.Repeat("k", 32)))
				if err != nil {
					t.Fatal(err)
				}
				c.VerifyConnection = nil
				return c
			}(),
			"plain": nil,
		} {
			network := "tcp"
			if all[0].entry.Address == "" {
				network = "unix"
			}
			conn, err := net.Dial(network, all[0].place())
			if err != nil {
				t.Fatal(err)
			}
			conn.SetDeadline(time.Now().Add(5 * time.Second))
			if c != nil {
				conn = tls.Client(conn, c)
			}
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			b, _ := io.ReadAll(conn)
			if strings.Contains(string(b), "one") || len(g.seen) > 0 {
				t.Errorf("%s: answered %q", name, b)
			}
			conn.Close()
		}
	})
}

// TestSeveral: each gateway has its entry, the newest is first, and the end of
// one hides no other (I05).
func TestSeveral(t *testing.T) {
	eachDoor(t, func(t *testing.T, state string) {
		old, young := open(t, state, "old", time.Hour), open(t, state, "young", time.Minute)
		overStdio, err := Open(state)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(find(t, state)); got != "[young old]" {
			t.Errorf("a gateway that is starting: %s", got)
		}
		if err := overStdio.Publish("", started); err != nil {
			t.Fatal(err)
		}
		all, _ := Find(state)
		if len(all) != 3 || all[0].Listens() {
			t.Errorf("%v", all)
		}
		if g, err := Reach(t.Context(), all); err != nil || g.URL != "http://young" {
			t.Errorf("%v %v", g, err)
		}
		young.Close()
		if g, err := Reach(t.Context(), all); err != nil || g.URL != "http://old" {
			t.Errorf("after the end of the newest: %v %v", g, err)
		}
		overStdio.Close()
		if got := fmt.Sprint(find(t, state)); got != "[old]" {
			t.Errorf("left: %s", got)
		}
		old.Close()
		if got := find(t, state); len(got) != 0 {
			t.Errorf("left: %v", got)
		}
	})
}

// TestLoose: an entry that others could read or put there is refused (I04).
func TestLoose(t *testing.T) {
	if onWindows {
		t.Skip("permission bits mean nothing on Windows")
	}
	state := newState(t, false)
	open(t, state, "one", 0)
	all, _ := Find(state)
	var e *private.Error
	os.Chmod(all[0].path, 0o644)
	if _, err := Find(state); !errors.As(err, &e) {
		t.Errorf("an entry others read: %v", err)
	}
	os.Chmod(all[0].path, 0o600)
	os.Chmod(filepath.Join(state, Dir), 0o755)
	if _, err := Open(state); !errors.As(err, &e) {
		t.Errorf("a directory others read: %v", err)
	}
	os.Remove(filepath.Join(state, Dir))
	os.Rename(filepath.Join(state, Dir), filepath.Join(state, "elsewhere"))
	os.Symlink("elsewhere", filepath.Join(state, Dir))
	if _, err := Open(state); !errors.As(err, &e) {
		t.Errorf("a link for the directory: %v", err)
	}
}

// TestUnreachable: a gateway that lives and cannot be connected to is not taken
// for one that has ended, and the error names what to allow (I08).
func TestUnreachable(t *testing.T) {
	eachDoor(t, func(t *testing.T, state string) {
		g := open(t, state, "one", 0)
		all, _ := Find(state)
		g.ln.Close()
		os.Remove(all[0].socket)
		_, err := Reach(t.Context(), all)
		var u *UnreachableError
		if !errors.As(err, &u) || !strings.Contains(err.Error(), "allow this process to connect to \""+all[0].place()+`"`) {
			t.Errorf("got %v", err)
		}
		if got := find(t, state); len(got) != 1 {
			t.Error("its entry is gone")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Reach(ctx, all); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		g.Close()
	})
}

// TestLeftBehind (I06): what a crash left is removed, whatever stands in it, and what
// is not an entry stays.
func TestLeftBehind(t *testing.T) {
	state := newState(t, false)
	dir := filepath.Join(state, Dir)
	os.Mkdir(dir, 0o700)
	for name, text := range map[string]string{
		"empty.json": "", "half.json": `{"v":1,"url":"http`, "whole.json": `{"v":1,"started":"2026-01-02T03:04:05Z","url":"http://gone"}`,
		"whole.sock": "", "alone.sock": "", "notes.txt": "",
	} {
		os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
	}
	if got := find(t, state); len(got) != 0 {
		t.Errorf("found %v", got)
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 1 || left[0].Name() != "notes.txt" {
		t.Errorf("left: %v", left)
	}
}

// TestTurmoil: gateways come and go while others look; one that lives is always
// found, and nothing is left at the end (I06).
func TestTurmoil(t *testing.T) {
	state := newState(t, false)
	stays := open(t, state, "stays", time.Hour)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				d, err := Open(state)
				if err != nil {
					t.Error(err)
					return
				}
				if err := d.Publish("http://mine", started); err != nil {
					t.Error(err)
				}
				entries, err := Find(state)
				if err != nil {
					t.Error(err)
				}
				mine, kept := false, false
				for _, g := range entries {
					mine = mine || g.path == d.path
					kept = kept || g.URL == "http://stays"
				}
				if !mine || !kept {
					t.Errorf("found itself %v, the one that stays %v", mine, kept)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := fmt.Sprint(find(t, state)); got != "[stays]" {
		t.Errorf("left: %s", got)
	}
	stays.Close()
}

// TestStarted: a process has one start, another has none or another, and where ids
// mean nothing neither is said.
func TestStarted(t *testing.T) {
	start, among := Started(os.Getpid())
	if (start == "") != (among == "") {
		t.Fatalf("%q among %q", start, among)
	}
	if among == "" {
		t.Skip("when a process was started is not known here")
	}
	if s, a := Started(os.Getpid()); s != start || a != among || strings.Trim(s, "0123456789") != "" || strings.Trim(a, "0123456789abcdef") != "" {
		t.Errorf("%q among %q, and then %q among %q", start, among, s, a)
	}
	c := exec.Command(os.Args[0], "-test.run=^$")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	if s, a := Started(c.Process.Pid); s != "" || a != among {
		t.Errorf("a process that ended: %q among %q", s, a)
	}
}

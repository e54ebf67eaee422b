// Package localdoor is how Writ's own commands reach the gateways that run on
// their state directory, and how they know them from strangers.
//
// A gateway has an entry in the directory "gateways" of the state directory,
// under a name drawn for it: a file that it holds locked while it lives, so
// that one left behind by a crash is known by its lock, which no other process
// can have, and not by a process id, which any may get. Nobody writes another's
// entry, and no name is used twice: who removes a dead one can hit no other.
//
// The door itself is a Unix socket beside the entry, which nobody but the
// account can reach. Where there is none (Windows, a path too long for one, a
// file system without sockets) it is a loopback port. On both, both sides prove
// in a TLS 1.3 handshake that they hold the key in the entry, before either says
// anything else: who merely listens at a place a gateway had learns nothing, and
// who stands in between cannot read or answer.
//
// The package trusts whoever can read the entry. It is one account's, by the
// modes that package private holds.
package localdoor

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/writ-project/writ/internal/private"
)

// Dir is the directory of the entries in the state directory.
const Dir = "gateways"

const (
	entrySuffix  = ".json"
	socketSuffix = ".sock"
)

// entry is what a gateway tells the commands of its state directory. It is
// complete when it can be parsed: a gateway that is starting has an empty one.
type entry struct {
	Version int       `json:"v"`
	Started time.Time `json:"started"`
	// URL is where MCP clients reach the gateway, "" for one over stdio.
	URL string `json:"url,omitempty"`
	// Address is HOST:PORT of the door where it is no socket.
	Address string `json:"address,omitempty"`
	// Key is the seed of the Ed25519 key that both sides of the door prove; of
	// no use once the gateway has ended.
	Key []byte `json:"key,omitempty"`
}

// Door is a gateway's own entry. It is not safe for concurrent use.
type Door struct {
	file   *os.File // of the entry, locked
	path   string
	socket string // "" when the door is a port
	entry  entry
	ln     net.Listener
}

// maxTries bounds how often an entry is taken anew: each that somebody finds between its
// making and its lock is lost, and many may look at once, on a machine that is loaded.
const maxTries = 1000

// Open takes an entry in the state directory, and removes those of gateways
// that have ended. Nobody finds it before Publish. Close gives it up.
func Open(state string) (*Door, error) {
	dir := filepath.Join(state, Dir)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := private.At(dir, private.Secret); err != nil {
		return nil, err
	}
	if _, err := Find(state); err != nil {
		return nil, err
	}
	for range maxTries {
		var id [10]byte
		rand.Read(id[:])
		path := filepath.Join(dir, strings.ToLower(base32.StdEncoding.EncodeToString(id[:]))+entrySuffix)
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, err
		}
		if err := lock(f); err != nil {
			f.Close()
			os.Remove(path)
			return nil, err
		}
		// Somebody who found it before it was locked took it for a dead one's.
		if same(f, path) {
			return &Door{file: f, path: path, entry: entry{Version: 1}}, nil
		}
		f.Close()
	}
	return nil, errors.New("no entry could be taken")
}

func same(f *os.File, path string) bool {
	a, err := f.Stat()
	b, lerr := os.Lstat(path)
	return err == nil && lerr == nil && os.SameFile(a, b)
}

// Listen opens the door. What it accepts is of this account and proves the key
// before a byte of it is read.
func (d *Door) Listen() (net.Listener, error) {
	socket := strings.TrimSuffix(d.path, entrySuffix) + socketSuffix
	var ln net.Listener
	var err error
	if runtime.GOOS != "windows" {
		if ln, err = listenUnix(socket); err == nil {
			d.socket = socket
		}
	}
	if ln == nil {
		if ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, err
		}
		d.entry.Address = ln.Addr().String()
	}
	d.entry.Key = make([]byte, ed25519.SeedSize)
	rand.Read(d.entry.Key)
	c, err := proof(d.entry.Key)
	if err != nil {
		ln.Close()
		return nil, err
	}
	d.ln = ln
	return tls.NewListener(ln, c), nil
}

func listenUnix(path string) (net.Listener, error) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false) // Close does it, after the entry
	if err := os.Chmod(path, 0o600); err != nil {
		ln.Close()
		os.Remove(path)
		return nil, err
	}
	return sameAccount{ln}, nil
}

// sameAccount hands out connections of processes of this account alone.
type sameAccount struct{ *net.UnixListener }

func (l sameAccount) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if ours(c) {
			return accepted(c), nil
		}
		c.Close()
	}
}

// Publish makes the gateway known, url being where MCP clients reach it, "" for
// nowhere.
func (d *Door) Publish(url string, now time.Time) error {
	d.entry.URL, d.entry.Started = url, now.UTC()
	b, err := json.Marshal(d.entry)
	if err == nil {
		_, err = d.file.Write(append(b, '\n'))
	}
	return err
}

// Close takes the entry back, then what it led to. The listener is the
// caller's.
func (d *Door) Close() error {
	err := drop(d.file, d.path)
	if d.socket != "" {
		err = errors.Join(err, os.Remove(d.socket))
	}
	return err
}

// Gateway is a running gateway of a state directory.
type Gateway struct {
	// URL is where MCP clients reach it, "" for one over stdio, which has no
	// door either.
	URL    string
	path   string
	socket string
	entry  entry
}

// ID tells a gateway from every other that runs on the state directory.
func (g *Gateway) ID() string { return filepath.Base(g.path) }

// Listens reports whether MCP clients can reach the gateway.
func (g *Gateway) Listens() bool { return g.URL != "" }

// Find returns the gateways that run on the state directory, the one started
// last first, and removes the entries of those that have ended, where it may.
func Find(state string) ([]*Gateway, error) {
	dir := filepath.Join(state, Dir)
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []*Gateway
	for _, n := range names {
		id, isEntry := strings.CutSuffix(n.Name(), entrySuffix)
		if !isEntry {
			// A socket comes after its entry: without one it was left behind.
			if id, ok := strings.CutSuffix(n.Name(), socketSuffix); ok {
				if _, err := os.Lstat(filepath.Join(dir, id+entrySuffix)); errors.Is(err, fs.ErrNotExist) {
					os.Remove(filepath.Join(dir, n.Name()))
				}
			}
			continue
		}
		g := &Gateway{path: filepath.Join(dir, n.Name()), socket: filepath.Join(dir, id+socketSuffix)}
		if g.ended() {
			continue
		}
		b, err := private.ReadFile(g.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if json.Unmarshal(b, &g.entry) == nil && g.entry.Version == 1 {
			g.URL = g.entry.URL
			all = append(all, g)
		}
	}
	slices.SortStableFunc(all, func(a, b *Gateway) int { return b.entry.Started.Compare(a.entry.Started) })
	return all, nil
}

// ended reports that nobody holds the entry, and removes it while holding it
// itself: a gateway that is just taking it sees that, and takes another.
func (g *Gateway) ended() bool {
	f, err := os.Open(g.path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	if locked(f) {
		f.Close()
		return false
	}
	os.Remove(g.socket)
	drop(f, g.path)
	return true
}

// ErrStranger is why a connection ended: who is at the other end does not hold
// the entry's key, or is of another account. Nothing was sent to it.
var ErrStranger = errors.New("it is not the gateway of this state directory")

// UnreachableError says that a gateway runs and does not let itself be reached.
type UnreachableError struct {
	Place string // what a process must be allowed to connect to
	Err   error
}

func (e *UnreachableError) Error() string {
	if failed, is := errors.AsType[*net.OpError](e.Err); is && failed.Op == "dial" {
		allow := fmt.Sprintf("connect to %q", e.Place)
		if failed.Net == "unix" {
			allow += ", or to any socket in that directory: each gateway has its own"
		}
		return "a gateway runs on this state directory and cannot be reached from here: allow this process to " + allow
	}
	return fmt.Sprintf("a gateway runs on this state directory, and who listens at %q did not prove to be it", e.Place)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// patience is how long a gateway may take to prove that it is one.
const patience = 10 * time.Second

// Reach returns the first of the gateways that proves itself; nil when none has
// a door, and an *UnreachableError when none that runs can be reached.
func Reach(ctx context.Context, all []*Gateway) (*Gateway, error) {
	var failed error
	for _, g := range all {
		if g.entry.Key == nil {
			continue
		}
		err := g.greet(ctx)
		switch {
		case err == nil:
			return g, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case failed == nil && !g.ended():
			failed = &UnreachableError{g.place(), err}
		}
	}
	return nil, failed
}

func (g *Gateway) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := proof(g.entry.Key)
	if err != nil {
		return err
	}
	conn, err := g.dial(ctx, c, plain)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (g *Gateway) place() string {
	if g.entry.Address != "" {
		return g.entry.Address
	}
	return g.socket
}

// Client returns a client whose every connection is to this gateway, whatever
// the host in a URL says. It follows no redirect and no proxy.
func (g *Gateway) Client(timeout time.Duration) (*http.Client, error) {
	return g.client(timeout, plain)
}

func plain(c net.Conn) (net.Conn, error) { return c, nil }

// Handing is a client that hands its standard input over with each connection (see
// HandedBy). It reaches no gateway whose door is a port.
func (g *Gateway) Handing() (*http.Client, error) { return g.client(0, handsStdin) }

func (g *Gateway) client(timeout time.Duration, with func(net.Conn) (net.Conn, error)) (*http.Client, error) {
	c, err := proof(g.entry.Key)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return g.dial(ctx, c, with) },
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New("the door is reached over https")
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

func (g *Gateway) dial(ctx context.Context, c *tls.Config, with func(net.Conn) (net.Conn, error)) (net.Conn, error) {
	var d net.Dialer
	network := "unix"
	if g.entry.Address != "" {
		network = "tcp"
	}
	raw, err := d.DialContext(ctx, network, g.place())
	if err != nil {
		return nil, err
	}
	if u, ok := raw.(*net.UnixConn); ok && !ours(u) {
		raw.Close()
		return nil, ErrStranger
	}
	over, err := with(raw)
	if err != nil {
		raw.Close()
		return nil, err
	}
	conn := tls.Client(over, c)
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	return conn, nil
}

// proof is the handshake of both sides: each shows a certificate of the one key
// that the seed gives, and accepts no other. Names and dates in it say nothing.
func proof(seed []byte) (*tls.Config, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, errors.New("the entry's key has the wrong size")
	}
	key := ed25519.NewKeyFromSeed(seed)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("the door's certificate cannot be made: %w", err)
	}
	public := key.Public().(ed25519.PublicKey)
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:             tls.RequireAnyClientCert,
		SessionTicketsDisabled: true,
		InsecureSkipVerify:     true, // by authorities and names: VerifyConnection knows the one key
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || !public.Equal(s.PeerCertificates[0].PublicKey) {
				return ErrStranger
			}
			return nil
		},
	}, nil
}

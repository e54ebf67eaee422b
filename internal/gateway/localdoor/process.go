package localdoor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
)

// ErrKin says that a process may not answer for a person: it descends from one that
// must not, or cannot be traced to whom it descends from.
var ErrKin = errors.New("it was not started by a person at a terminal of his own")

// ErrLoose says that a process may not answer for a person, because it may be one that the
// agent started and that cut itself loose.
var ErrLoose = errors.New("its terminal was opened after the agent's client was started, by a program that nobody is the parent of any more: use one that was open before, or log in anew")

type peerKey struct{}

// A process is named by its id and by when it was started: a connection can be handed on, and
// the id of who made it and is gone may be that of a person's own shell by now.
type process struct {
	pid     int
	started string // as startedAt says it
}

// connectedBy is the process at the other end of a connection that was accepted just now.
func connectedBy(c *net.UnixConn) (p process, ok bool) {
	pid, err := ofSocket(c, processOf)
	if err == nil {
		p.started = startedAt(pid)
		p.pid, err = ofSocket(c, processOf) // it was no other's between
	}
	return p, err == nil && p.started != ""
}

// ofSocket is what the kernel says of a connection, asked by its file descriptor.
func ofSocket(c *net.UnixConn, say func(fd int) (int, error)) (n int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := raw.Control(func(fd uintptr) { n, err = say(int(fd)) })
	return n, cmp.Or(cerr, err)
}

// ours reports whether the process at the other end of a connection is of this account, as the
// kernel knows it.
func ours(c *net.UnixConn) bool {
	uid, err := ofSocket(c, ownerOf)
	return err == nil && uid == os.Geteuid()
}

// runs reports whether it is there still. Asked after something was read of its id, it says
// whose that was.
func (p process) runs() bool {
	return p.started != "" && p.started == startedAt(p.pid)
}

// Know has the process known that is at the other end of a connection that Listen accepted,
// before the server serves.
func Know(srv *http.Server) {
	withContext(srv, func(ctx context.Context, c net.Conn) context.Context {
		if t, ok := c.(*tls.Conn); ok {
			if p, ok := peerIn(t); ok {
				return context.WithValue(ctx, peerKey{}, p)
			}
		}
		return ctx
	})
}

// Apart is an error unless the process at the other end of a request provably descends
// from none of these: the client whose calls wait, the gateway and the servers it started.
// It is ErrKin where it does, or cannot be traced, and ErrLoose where it may. Each ancestor
// is looked at, and the leader of its terminal's session must be one. A process that cut
// itself loose from whom started it, and took a terminal for itself, has an ancestor that
// nobody is the parent of any more: where such a one is younger than the client, and was
// not logged in apart from it, it counts as its child. A gateway that has no one client is
// older than many a person's terminal, and is not compared with; the Callers that Keep keeps
// apart are such clients, gone ones too. Who runs as the same
// account can still have another program start one for him; that is in LIMITATIONS.md.
func Apart(ctx context.Context, from ...int) error {
	by, ok := ctx.Value(peerKey{}).(peer)
	if !ok {
		return ErrKin
	}
	var callers []origin
	if c, ok := ctx.Value(callersKey{}).(*Callers); ok {
		var err error
		switch callers, err = c.all(ctx); {
		case err == errMany:
			return err
		case err != nil:
			return ErrKin
		}
	}
	if err := apartFrom(by.pid, 0, from, callers...); err != nil || by.runs() {
		return err
	}
	return ErrKin
}

// Aside is Apart of this very process.
func Aside(from ...int) error { return apartFrom(os.Getpid(), 0, from) }

// apartFrom is Apart of a process, or with 1 of those that it descends from.
func apartFrom(pid, first int, from []int, callers ...origin) error {
	line, err := ancestry(pid)
	if err != nil || slices.ContainsFunc(line[first:], func(p int) bool { return slices.Contains(from, p) }) ||
		slices.ContainsFunc(callers, func(o origin) bool { return slices.Contains(line, o.pid) && o.runs() }) {
		return ErrKin
	}
	if slices.ContainsFunc(from, func(p int) bool { return p != os.Getpid() && loose(line, p) }) ||
		slices.ContainsFunc(callers, func(o origin) bool { return strayed(line, o) }) {
		return ErrLoose
	}
	return nil
}

// Started says when a process was started, and among which processes its id means
// one: the machine's since its start, or those of a container. Both are digits and
// a-f. start is "" where there is no such process; both are where it cannot be known.
func Started(pid int) (start, among string) {
	start, among = startOf(pid)
	if among == "" {
		return "", ""
	}
	sum := sha256.Sum256([]byte(among))
	return start, hex.EncodeToString(sum[:6])
}

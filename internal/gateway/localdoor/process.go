package localdoor

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net"
	"slices"
)

// ErrKin says that a process may not answer for a person: it descends from one that
// must not, or cannot be traced to whom it descends from.
var ErrKin = errors.New("it was not started by a person at a terminal of his own")

type peerKey struct{}

// Context keeps the process at the other end of a connection that Listen accepted;
// it is an http.Server's ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		if p, ok := peerIn(t); ok {
			return context.WithValue(ctx, peerKey{}, p)
		}
	}
	return ctx
}

// Apart is an error, ErrKin, unless the process at the other end of a request
// provably descends from none of these: the client whose calls wait, the gateway and
// the servers it started. Each ancestor is looked at, up to the leader of its
// terminal's session, which must be one: a process that cut itself loose from whom
// started it has none. Who runs as the same account can still have another program
// start one for him; that is in LIMITATIONS.md.
func Apart(ctx context.Context, from ...int) error {
	by, ok := ctx.Value(peerKey{}).(peer)
	if !ok {
		return ErrKin
	}
	line, err := ancestry(by.pid)
	if err != nil || slices.ContainsFunc(line, func(p int) bool { return slices.Contains(from, p) }) {
		return ErrKin
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

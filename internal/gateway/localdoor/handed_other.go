//go:build !linux

package localdoor

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// A Handed is nothing here: who made a pair of sockets is not known.
type Handed struct{ Maker int }

// HandedBy is nil here.
func HandedBy(context.Context) *Handed { return nil }

// Conn is never called here.
func (*Handed) Conn() (net.Conn, error) { return nil, errors.ErrUnsupported }

// Close is never called here.
func (*Handed) Close() error { return nil }

// Stdin is not known here.
func Stdin() (pid int, ok bool) { return 0, false }

// Peek is nothing here.
func Peek() []byte { return nil }

func accepted(c *net.UnixConn) net.Conn { return c }

func handsStdin(net.Conn) (net.Conn, error) { return nil, errors.ErrUnsupported }

func peerIn(c *tls.Conn) (p peer, ok bool) {
	if u, is := c.NetConn().(*net.UnixConn); is {
		p.process, ok = connectedBy(u)
	}
	return p, ok
}

type peer struct{ process }

// Nor is any of this known here.
func sameProgram(int) bool { return false }

func loose([]int, int) bool { return false }

func strayed([]int, origin) bool { return false }

func originOf(int) (origin, error) { return origin{}, ErrKin }

func holders([]ends) (pids []int, closed []ends) { return nil, nil }

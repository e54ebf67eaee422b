//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// reloadSignals have a gateway read its files again.
var reloadSignals = []os.Signal{syscall.SIGHUP}

// canWait says that a read from a terminal can be given up.
const canWait = true

// typing reads lines of a terminal until its context ends, and takes nothing from it
// after that.
type typing struct {
	ctx context.Context
	f   *os.File
}

func (t *typing) Read(b []byte) (int, error) {
	for {
		switch ready, err := t.ready(100); {
		case t.ctx.Err() != nil:
			return 0, t.ctx.Err()
		case err != nil:
			return 0, err
		case ready:
			return t.f.Read(b)
		}
	}
}

func (t *typing) drop() {
	// A line that nobody ended yet is read in raw mode alone, and would be the beginning of an answer.
	if was, err := term.MakeRaw(int(t.f.Fd())); err == nil {
		defer term.Restore(int(t.f.Fd()), was)
	}
	var b [4096]byte
	for {
		if ready, err := t.ready(0); !ready || err != nil {
			return
		}
		if n, err := t.f.Read(b[:]); n == 0 || err != nil {
			return
		}
	}
}

func (t *typing) ready(milliseconds int) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(t.f.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, milliseconds)
	switch {
	case errors.Is(err, unix.EINTR), err == nil && n == 0:
		return false, nil
	case err != nil:
		return false, err
	case fds[0].Revents&unix.POLLIN == 0:
		return false, io.EOF // hung up, or no file that can be waited for
	}
	return true, nil
}

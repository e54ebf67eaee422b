//go:build !unix

package main

import (
	"context"
	"io"
	"os"
)

// reloadSignals: there is none; writ reload is the way.
var reloadSignals []os.Signal

// canWait says that a read from a terminal can be given up: not here, so that a
// command asks nothing at its own.
const canWait = false

type typing struct {
	ctx context.Context
	f   *os.File
}

func (*typing) Read([]byte) (int, error) { return 0, io.EOF }

func (*typing) drop() {}

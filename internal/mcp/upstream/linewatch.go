package upstream

import (
	"bytes"
	"io"
	"time"
)

// lineWatch passes bytes on and calls slow when a line was begun and its
// newline did not come in time (attack U06): one byte a second keeps no line
// open for ever.
type lineWatch struct {
	r     io.Reader
	clock Clock
	limit time.Duration
	slow  func()
	stop  func() bool // of the running timer, nil between lines
}

func (w *lineWatch) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	last := bytes.LastIndexByte(p[:n], '\n')
	if (last >= 0 || err != nil) && w.stop != nil {
		w.stop()
		w.stop = nil
	}
	if err == nil && n > last+1 && w.stop == nil {
		w.stop = w.clock.AfterFunc(w.limit, w.slow)
	}
	return n, err
}

package upstream

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"time"
)

// events reads a server-sent event stream within a bound: the data of one event
// is at most max bytes, and what is larger is read over.
type events struct {
	r       *bufio.Reader
	max     int
	lastID  string        // of the last complete event that had one
	retry   time.Duration // the server's wish, 0 for none
	started bool
	skipLF  bool
}

const (
	maxEventID = 1024
	maxRetry   = time.Minute
)

func newEvents(r io.Reader, limit int) *events {
	return &events{r: bufio.NewReader(r), max: limit}
}

// event is one event as far as it was read.
type event struct {
	data           []byte
	id             string
	hasData, hasID bool
	other          bool // it is of another type than message
	over           bool // it was larger than the bound: of its data there is nothing
}

// next returns the data of the next event of type message, which may be empty.
// over says that the event was larger than the bound and was discarded. An
// event the stream breaks off in is no event.
func (e *events) next() (data []byte, over bool, err error) {
	for {
		ev, err := e.event()
		if err != nil || ev.over || !ev.other && (ev.hasData || ev.hasID) {
			return ev.data, ev.over, err
		}
	}
}

// event reads the next event, of whatever type.
func (e *events) event() (ev event, err error) {
	for size := 0; ; {
		line, cut, err := e.line(e.max - size)
		switch {
		case err != nil:
			return event{}, err
		case cut:
			ev.over, ev.data = true, nil
		case len(line) == 0:
			if ev.hasID {
				e.lastID = ev.id
			}
			return ev, nil
		default:
			e.field(&ev, line)
		}
		if size += len(line); ev.over {
			size = 0
		}
	}
}

func (e *events) field(ev *event, line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if ev.over {
			return
		}
		if ev.hasData {
			ev.data = append(ev.data, '\n')
		}
		ev.data, ev.hasData = append(ev.data, value...), true
	case "event":
		ev.other = len(value) > 0 && string(value) != "message"
	case "id":
		if len(value) <= maxEventID && bytes.IndexByte(value, 0) < 0 {
			ev.id, ev.hasID = string(value), true
		}
	case "retry":
		if n, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			e.retry = min(time.Duration(n)*time.Millisecond, maxRetry)
		}
	}
}

// line returns the next line without its end (LF, CR or CRLF), valid until the
// next call. cut says that it was longer than limit and was discarded.
func (e *events) line(limit int) (line []byte, cut bool, err error) {
	if !e.started {
		e.started = true
		if mark, _ := e.r.Peek(3); string(mark) == "\xEF\xBB\xBF" {
			e.r.Discard(3)
		}
	}
	for {
		if _, err := e.r.Peek(1); err != nil {
			return nil, false, err
		}
		buf, _ := e.r.Peek(e.r.Buffered())
		if e.skipLF {
			if e.skipLF = false; buf[0] == '\n' {
				e.r.Discard(1)
				continue
			}
		}
		i := bytes.IndexAny(buf, "\r\n")
		part := buf
		if i >= 0 {
			part = buf[:i]
		}
		if !cut {
			if line = append(line, part...); len(line) > limit {
				line, cut = nil, true
			}
		}
		if i < 0 {
			e.r.Discard(len(buf))
			continue
		}
		e.skipLF = buf[i] == '\r'
		e.r.Discard(i + 1)
		return line, cut, nil
	}
}

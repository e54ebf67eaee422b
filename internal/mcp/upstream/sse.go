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

// next returns the data of the next event of type message, which may be empty.
// over says that the event was larger than the bound and was discarded. An
// event the stream breaks off in is no event.
func (e *events) next() (data []byte, over bool, err error) {
	var id string
	hasID, hasData, other := false, false, false
	size := 0
	for {
		line, cut, err := e.line(e.max - size)
		if err != nil {
			return nil, false, err
		}
		if cut {
			over, data = true, nil
			continue
		}
		size += len(line)
		if over {
			size = 0
		}
		if len(line) == 0 {
			if hasID {
				e.lastID = id
			}
			if over {
				return nil, true, nil
			}
			if other || !hasData && !hasID {
				hasData, hasID, other, size, data = false, false, false, 0, nil
				continue
			}
			return data, false, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if over {
				break
			}
			if hasData {
				data = append(data, '\n')
			}
			data = append(data, value...)
			hasData = true
		case "event":
			other = len(value) > 0 && string(value) != "message"
		case "id":
			if len(value) <= maxEventID && bytes.IndexByte(value, 0) < 0 {
				id, hasID = string(value), true
			}
		case "retry":
			if n, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.retry = min(time.Duration(n)*time.Millisecond, maxRetry)
			}
		}
	}
}

// line returns the next line without its end (LF, CR or CRLF), valid until the
// next call. cut says that it was longer than limit and was discarded.
func (e *events) line(limit int) (line []byte, cut bool, err error) {
	for {
		if _, err := e.r.Peek(1); err != nil {
			return nil, false, err
		}
		buf, _ := e.r.Peek(e.r.Buffered())
		if !e.started {
			e.started = true
			if len(buf) < 3 && buf[0] == 0xEF {
				buf, _ = e.r.Peek(3)
			}
			if bytes.HasPrefix(buf, []byte("\xEF\xBB\xBF")) {
				e.r.Discard(3)
				continue
			}
		}
		if e.skipLF {
			e.skipLF = false
			if buf[0] == '\n' {
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

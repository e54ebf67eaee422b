package rpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrLineTooLong is returned by Lines.Next for a line over the limit; the line
// was discarded up to its newline and reading can go on. What Next returns
// beside it are the line's edges, at most 1 KiB, for finding out whose it was.
var ErrLineTooLong = errors.New("line too long")

// Lines splits a stream at LF, within a bound (MCP stdio framing).
type Lines struct {
	r   *bufio.Reader
	max int
}

// NewLines reads lines of at most limit bytes from r.
func NewLines(r io.Reader, limit int) *Lines {
	return &Lines{r: bufio.NewReaderSize(r, 64<<10), max: limit}
}

// Next returns the next line without its LF and one CR before it, in a slice of
// its own. A half line before the end of the stream is returned with
// io.ErrUnexpectedEOF; a clean end is io.EOF.
func (l *Lines) Next() ([]byte, error) {
	var line []byte
	var head, tail []byte
	over := false
	for {
		part, err := l.r.ReadSlice('\n')
		if over {
			tail = edge(tail, part)
		} else {
			line = append(line, part...)
			if len(bytes.TrimSuffix(line, []byte("\n"))) > l.max {
				over = true
				head, tail = bytes.Clone(line[:min(len(line), edgeSize)]), edge(nil, line)
				line = nil
			}
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == nil && over:
			return append(append(head, ' '), tail...), ErrLineTooLong
		case err == nil:
			return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
		case err == io.EOF && (len(line) > 0 || over):
			return line, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

const edgeSize = 500

// edge returns the last edgeSize bytes of a followed by b.
func edge(a, b []byte) []byte {
	if len(b) >= edgeSize {
		return append(a[:0:0], b[len(b)-edgeSize:]...)
	}
	a = append(a, b...)
	return a[max(0, len(a)-edgeSize):]
}

package endtoend

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/writ-project/writ/internal/strictjson"
)

// entry is one line of a record: that a server was started, what it was asked
// to call, or what it answered to that.
type entry struct {
	Server string `json:"server"`
	Event  string `json:"event"` // started, call, result, error
	ID     string `json:"id,omitempty"`
	Tool   string `json:"tool,omitempty"`
	// Text is the bytes of the arguments, of the result or of the error, as text
	// so that they stay what they were.
	Text string `json:"text,omitempty"`
}

// The events of a record.
const (
	eventStarted = "started"
	eventCall    = "call"
	eventResult  = "result"
	eventError   = "error"
)

// Record stands between an agent and a server that speak newline-delimited
// JSON-RPC. It passes every byte on as it came, and writes what was called and
// what came back to a file first: no call reaches the server, and no result the
// agent, that is not in the file. Several recorders may append to one file. It
// ends when the agent's or the server's side ends.
//
// start is called once; it starts the recorded server and returns its input, its
// output, and what waits for its end (Command, Serve).
func Record(file, name string, in io.Reader, out io.Writer, start func() (io.WriteCloser, io.Reader, func() error, error)) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("the record cannot be opened: %w", err)
	}
	defer f.Close()
	t := &tap{file: f, server: name, open: map[string]bool{}}
	if err := t.put(entry{Event: eventStarted}); err != nil {
		return err
	}
	to, from, wait, err := start()
	if err != nil {
		return err
	}
	asked := make(chan error, 1)
	go func() {
		err := copyLines(to, in, t.asked)
		if cerr := to.Close(); err == nil {
			err = cerr
		}
		asked <- err
	}()
	err = copyLines(out, from, t.answered)
	if werr := wait(); err == nil {
		err = werr
	}
	// The agent may hold its side open for ever after the server went: whoever
	// ends the process ends that read with it.
	select {
	case aerr := <-asked:
		if err == nil {
			err = aerr
		}
	default:
	}
	return err
}

// Command starts the command behind a recorder, with this process's own
// environment and standard error.
func Command(ctx context.Context, argv []string) func() (io.WriteCloser, io.Reader, func() error, error) {
	return func() (io.WriteCloser, io.Reader, func() error, error) {
		c := exec.CommandContext(ctx, argv[0], argv[1:]...)
		c.Stderr = os.Stderr
		in, err := c.StdinPipe()
		if err != nil {
			return nil, nil, nil, err
		}
		out, err := c.StdoutPipe()
		if err != nil {
			return nil, nil, nil, err
		}
		if err := c.Start(); err != nil {
			return nil, nil, nil, errors.New("the recorded server's command cannot be started")
		}
		return in, out, c.Wait, nil
	}
}

// Serve runs a server of this process behind a recorder.
func Serve(ctx context.Context, serve func(ctx context.Context, in io.Reader, out io.Writer) error) func() (io.WriteCloser, io.Reader, func() error, error) {
	return func() (io.WriteCloser, io.Reader, func() error, error) {
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		done := make(chan error, 1)
		go func() {
			err := serve(ctx, in, out)
			in.CloseWithError(io.ErrClosedPipe)
			out.Close()
			done <- err
		}()
		return toServer, fromServer, func() error { return <-done }, nil
	}
}

// copyLines passes lines on, each after see was told of it.
func copyLines(to io.Writer, from io.Reader, see func(line []byte) error) error {
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			if serr := see(line); serr != nil {
				return serr
			}
			if _, werr := to.Write(line); werr != nil {
				return nil // the other side is gone: an end, not a fault
			}
		}
		if err != nil {
			return nil
		}
	}
}

// tap writes down what passes.
type tap struct {
	server string
	file   *os.File

	mu   sync.Mutex
	open map[string]bool // ids of calls that were not answered
}

func (t *tap) put(e entry) error {
	e.Server = t.server
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := t.file.Write(append(b, '\n')); err != nil { // one write: others append too
		return fmt.Errorf("the record cannot be written: %w", err)
	}
	return nil
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// messages are those of a line, of a batch each.
func messages(line []byte) (out []message) {
	line = bytes.TrimSpace(line)
	if len(line) > 0 && line[0] == '[' {
		var batch []json.RawMessage
		if json.Unmarshal(line, &batch) == nil {
			for _, one := range batch {
				out = append(out, messages(one)...)
			}
		}
		return out
	}
	var m message
	// Params of another shape belong to another method; what stands before the
	// mismatch was read.
	_ = json.Unmarshal(line, &m)
	return append(out, m)
}

func (t *tap) asked(line []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range messages(line) {
		if m.Method != "tools/call" {
			continue
		}
		t.open[string(m.ID)] = true
		if err := t.put(entry{Event: eventCall, ID: string(m.ID), Tool: m.Params.Name, Text: string(m.Params.Arguments)}); err != nil {
			return err
		}
	}
	return nil
}

func (t *tap) answered(line []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range messages(line) {
		if m.Method != "" || !t.open[string(m.ID)] {
			continue
		}
		delete(t.open, string(m.ID))
		e := entry{Event: eventResult, ID: string(m.ID), Text: string(m.Result)}
		if m.Result == nil {
			e.Event, e.Text = eventError, string(m.Error)
		}
		if err := t.put(e); err != nil {
			return err
		}
	}
	return nil
}

// Ended says what a server made of a call.
type Ended string

// The ends of a call, as its recorder saw them.
const (
	Done       Ended = "done"       // with a result
	ToolError  Ended = "tool_error" // with a result that is the tool's own error
	Refused    Ended = "refused"    // with an error of the protocol: no such tool, no such arguments
	Unanswered Ended = "unanswered" // not at all; it may have been done
)

// Call is one call a server was asked to make, as its recorder saw it.
type Call struct {
	Server, Tool string
	Arguments    string // JSON, "" where there were none
	Ended        Ended
	Result       string // JSON, "" where there is none
}

// happened: what the call does was done, for all that can be known.
func (c *Call) happened() bool { return c.Ended == Done || c.Ended == Unanswered }

func (c *Call) key() string { return c.Server + "/" + c.Tool }

// readRecord returns how many lines a record has and the calls in it, in the
// order they reached their servers. A file that is not there is a record of
// nothing: no server was started.
func readRecord(file string) (lines int, calls []*Call, err error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil, nil
	} else if err != nil {
		return 0, nil, err
	}
	open := map[[2]string]*Call{}
	for line := range strings.Lines(string(b)) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return 0, nil, fmt.Errorf("the record of the servers is damaged: %w", err)
		}
		lines++
		at := [2]string{e.Server, e.ID}
		switch e.Event {
		case eventCall:
			c := &Call{Server: e.Server, Tool: e.Tool, Arguments: e.Text, Ended: Unanswered}
			calls = append(calls, c)
			open[at] = c
		case eventResult:
			if c := open[at]; c != nil {
				c.Ended, c.Result = Done, e.Text
				if string(strictjson.Get([]byte(e.Text), "isError")) == "true" {
					c.Ended = ToolError
				}
			}
		case eventError:
			if c := open[at]; c != nil {
				c.Ended = Refused
			}
		}
	}
	return lines, calls, nil
}

package endtoend

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
)

// entry is one line of a record: that a server was started, or what passed.
type entry struct {
	Server string `json:"server"`
	From   string `json:"from,omitempty"` // agent or server, nobody where it was started
	// Line is what passed, as text so that it stays what it was.
	Line string `json:"line,omitempty"`
}

const (
	fromAgent  = "agent"
	fromServer = "server"
)

// Record stands between an agent and a server that speak newline-delimited
// JSON-RPC. It passes every byte on as it came, and writes each line to a file
// first: no call reaches the server, and no result the agent, that is not in
// the file. Several recorders may append to one file. It ends when the agent's
// or the server's side ends.
//
// serve is the recorded server; it is called once (Command is one).
func Record(file, name string, in io.Reader, out io.Writer, serve func(in io.Reader, out io.Writer) error) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("the record cannot be opened: %w", err)
	}
	defer f.Close()
	t := &tap{file: f, server: name}
	if err := t.put(entry{}); err != nil {
		return err
	}
	asked, toServer := io.Pipe()
	answered, toAgent := io.Pipe()
	served, copied := make(chan error, 1), make(chan error, 1)
	go func() {
		err := serve(asked, toAgent)
		asked.CloseWithError(io.ErrClosedPipe)
		toAgent.Close()
		served <- err
	}()
	go func() {
		err := copyLines(toServer, in, t.from(fromAgent))
		toServer.Close()
		copied <- err
	}()
	err = copyLines(out, answered, t.from(fromServer))
	answered.Close()
	err = cmp.Or(err, <-served)
	// The agent may hold its side open for ever after the server went: whoever
	// ends the process ends that read with it.
	select {
	case aerr := <-copied:
		err = cmp.Or(err, aerr)
	default:
	}
	return err
}

// Command is a server that is a command, with this process's own environment and
// standard error.
func Command(ctx context.Context, argv []string) func(in io.Reader, out io.Writer) error {
	return func(in io.Reader, out io.Writer) error {
		c := exec.CommandContext(ctx, argv[0], argv[1:]...)
		c.Stdout, c.Stderr = out, os.Stderr
		to, err := c.StdinPipe()
		if err != nil {
			return err
		}
		if err := c.Start(); err != nil {
			return errors.New("the recorded server's command cannot be started")
		}
		go func() {
			io.Copy(to, in)
			to.Close()
		}()
		return c.Wait()
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

func (t *tap) from(side string) func(line []byte) error {
	return func(line []byte) error { return t.put(entry{From: side, Line: string(line)}) }
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
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

// Ended says what a server made of a call.
type Ended string

// The ends of a call, as its recorder saw them.
const (
	Done       Ended = "done"       // with a result
	ToolError  Ended = "tool_error" // with a result that is the tool's own error
	Refused    Ended = "refused"    // with an error of the protocol: no such tool, no such arguments
	Unanswered Ended = "unanswered" // not at all; it may have been done
)

// Call is one call a server was asked to make, as its recorder saw it, and what is wrong
// with it.
type Call struct {
	Server     string   `json:"server"`
	Tool       string   `json:"tool"`
	Arguments  string   `json:"arguments"` // JSON, "" where there were none
	Ended      Ended    `json:"ended"`
	Result     string   `json:"-"` // JSON, "" where there is none
	Disallowed bool     `json:"disallowed"`
	Unfounded  []string `json:"unfounded,omitempty"`
}

// happened: what the call does was done, for all that can be known.
func (c *Call) happened() bool { return c.Ended == Done || c.Ended == Unanswered }

func (c *Call) key() string { return c.Server + "/" + c.Tool }

// readRecord returns how often a server was started, called and answered a call, and
// the calls, in the order they reached their servers. What a gateway says to a server
// besides is nobody's request. A file that is not there is a record of nothing: no
// server was started.
func readRecord(file string) (events int, calls []*Call, err error) {
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
		if e.From == "" {
			events++
		}
		for _, m := range messages([]byte(e.Line)) {
			at := [2]string{e.Server, string(m.ID)}
			switch c := open[at]; {
			case e.From == fromAgent && m.Method == "tools/call":
				c = &Call{Server: e.Server, Tool: m.Params.Name, Arguments: string(m.Params.Arguments), Ended: Unanswered}
				calls, open[at] = append(calls, c), c
				events++
			case e.From == fromServer && m.Method == "" && c != nil:
				delete(open, at)
				events++
				switch c.Result = string(m.Result); {
				case m.Result == nil:
					c.Ended = Refused
				case string(strictjson.Get(m.Result, "isError")) == "true":
					c.Ended = ToolError
				default:
					c.Ended = Done
				}
			}
		}
	}
	return events, calls, nil
}

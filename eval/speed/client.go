package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const version = "2025-11-25"

// client makes calls, one at a time.
type client interface {
	// send sends a message and returns what answers it; nothing answers a notification.
	send(b []byte, answered bool) ([]byte, error)
	call(params string) error
}

// begin shakes hands, and reads what the acts name.
func begin(c client) error {
	if _, err := c.send([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"speed","version":"1"}}}`), true); err != nil {
		return err
	}
	if _, err := c.send([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), false); err != nil {
		return err
	}
	if _, err := c.send([]byte(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`), true); err != nil {
		return err
	}
	return c.call(`{"name":"list","arguments":{}}`)
}

// passed reports as an error what is no good result.
func passed(b []byte, err error) error {
	if err != nil {
		return err
	}
	if i := bytes.LastIndex(b, []byte("data: ")); i >= 0 && b[0] != '{' { // a stream of one event
		b = b[i+len("data: "):]
	}
	var m message
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("%w: %.200s", err, b)
	}
	if m.Error != nil || bytes.Contains(m.Result, []byte(`"isError":true`)) {
		return fmt.Errorf("refused: %.400s", b)
	}
	return nil
}

var requests atomic.Int64 // that were made: one session has several under way

func request(params string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, 2+requests.Add(1), params)
}

type stdio struct {
	in  io.Writer
	out *bufio.Reader
}

func (c *stdio) send(b []byte, answered bool) ([]byte, error) {
	if _, err := c.in.Write(append(b, '\n')); err != nil || !answered {
		return nil, err
	}
	for {
		line, err := c.out.ReadBytes('\n')
		if err != nil || bytes.Contains(line, []byte(`"id"`)) { // not what it tells of itself
			return line, err
		}
	}
}

func (c *stdio) call(params string) error { return passed(c.send(request(params), true)) }

// overStdio starts what a call goes through over standard input and output.
func overStdio(o *options, dir, state, way string) (client, func(), error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	args := []string{self, "tool", "stdio"}
	switch way {
	case relayed:
		args = append([]string{self, "relay", "stdio"}, args...)
	case through:
		config, err := configured(dir, "stdio", fmt.Sprintf("command: [%q, tool, stdio]", self))
		if err != nil {
			return nil, nil, err
		}
		args = []string{o.writ, "run", "--config", config, "--state", state}
	}
	cmd := exec.Command(args[0], args[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return &stdio{in, bufio.NewReaderSize(out, 64<<10)}, func() { in.Close(); stop(cmd) }, nil
}

// stop ends a process: by its word, or else.
func stop(cmd *exec.Cmd) {
	cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
	cmd.Wait()
	late.Stop()
}

// configured writes a configuration of one server.
func configured(dir, name, server string) (string, error) {
	file := filepath.Join(dir, name+".yaml")
	err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policyText), 0o600)
	if err == nil {
		err = os.WriteFile(file, []byte("servers:\n  - { name: tool, "+server+" }\npolicy: policy.yaml\n"), 0o600)
	}
	return file, err
}

var listening = regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`)

// serving starts what a call goes through over HTTP, and returns where that listens.
func serving(o *options, dir, state, way string) (at string, end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	at, end, err = started(self, "tool", "http")
	if err != nil || way == direct {
		return at, end, err
	}
	args := []string{self, "relay", "http", at}
	if way == through {
		config, err := configured(dir, "http-"+way, fmt.Sprintf("url: %q", at))
		if err != nil {
			end()
			return "", nil, err
		}
		args = []string{o.writ, "serve", "--listen", "127.0.0.1:0", "--config", config, "--state", state}
	}
	first := end
	at, second, err := started(args[0], args[1:]...)
	if err != nil {
		first()
		return "", nil, err
	}
	return at, func() { second(); first() }, nil
}

// started starts a process that says on its standard error where it listens.
func started(program string, args ...string) (at string, end func(), err error) {
	cmd := exec.Command(program, args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	br := bufio.NewReader(stderr)
	var said strings.Builder
	for at == "" {
		line, err := br.ReadString('\n')
		said.WriteString(line)
		if err != nil {
			stop(cmd)
			return "", nil, errors.New(program + " does not listen: " + said.String())
		}
		at = listening.FindString(line)
	}
	go io.Copy(io.Discard, br)
	ended := false
	return at, func() {
		if !ended {
			ended = true
			stop(cmd)
		}
	}, nil
}

type web struct {
	client  *http.Client
	at      string
	session string
}

func overHTTP(at string) (client, error) {
	return &web{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: time.Minute}, at: at}, nil
}

func (c *web) send(b []byte, _ bool) ([]byte, error) {
	session, out, err := post(c.client, c.at, c.session, b)
	if session != "" {
		c.session = session
	}
	return out, err
}

func (c *web) call(params string) error { return passed(c.send(request(params), true)) }

// post sends a message over HTTP and returns the session that the answer names.
func post(client *http.Client, at, session string, b []byte) (string, []byte, error) {
	r, err := http.NewRequest(http.MethodPost, at, bytes.NewReader(b))
	if err != nil {
		return "", nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", version)
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := client.Do(r)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("HTTP %d: %.300s", resp.StatusCode, out)
	}
	return resp.Header.Get("Mcp-Session-Id"), out, err
}

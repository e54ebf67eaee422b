package main

import (
	"bufio"
	"bytes"
	"cmp"
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
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const version = "2025-11-25"

// client makes calls, one at a time: send sends a message and returns what answers it;
// nothing answers a notification.
type client func(b []byte, answered bool) ([]byte, error)

// begin shakes hands, and reads what the acts name.
func (send client) begin() error {
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"speed","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
	} {
		if _, err := send([]byte(m), strings.Contains(m, `"id"`)); err != nil {
			return err
		}
	}
	return send.call(`{"name":"list","arguments":{}}`)
}

var requests atomic.Int64 // that were made: one session has several under way

func (send client) call(params string) error {
	return passed(send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, 2+requests.Add(1), params), true))
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
	cmd, in, out, err := piped(args)
	if err != nil {
		return nil, nil, err
	}
	br := bufio.NewReaderSize(out, 64<<10)
	return func(b []byte, answered bool) ([]byte, error) {
		if _, err := in.Write(append(b, '\n')); err != nil || !answered {
			return nil, err
		}
		for {
			line, err := br.ReadBytes('\n')
			if err != nil || bytes.Contains(line, []byte(`"id"`)) { // not what it tells of itself
				return line, err
			}
		}
	}, func() { in.Close(); stop(cmd) }, nil
}

// piped starts a program that is spoken to over its standard input and output.
func piped(args []string) (*exec.Cmd, io.WriteCloser, io.Reader, error) {
	cmd := exec.Command(args[0], args[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	return cmd, in, out, cmd.Start()
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
	return at, sync.OnceFunc(func() { stop(cmd) }), nil
}

// overHTTP is a client in a session, a new one where it is "".
func overHTTP(at string, session *string) client {
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: time.Minute}
	return func(b []byte, _ bool) ([]byte, error) {
		named, out, err := post(c, at, *session, b)
		*session = cmp.Or(named, *session)
		return out, err
	}
}

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

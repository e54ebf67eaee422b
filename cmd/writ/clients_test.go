package main

import (
	"bufio"
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/writ-project/writ/internal/ask/screen"
)

// serving starts writ serve and returns its address and what it has said on standard
// error when it has ended.
func serving(t *testing.T, args ...string) (url string, end func() string) {
	t.Helper()
	cmd := exec.Command("writ", append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	errs, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	lines := bufio.NewReader(errs)
	for url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("writ serve did not listen: %s", &said)
		}
		said.WriteString(line)
		if u, ok := strings.CutPrefix(line, "listening on "); ok {
			url = strings.TrimSpace(u)
		}
	}
	end = sync.OnceValue(func() string {
		cmd.Process.Kill()
		io.Copy(&said, lines)
		cmd.Wait()
		return said.String()
	})
	t.Cleanup(func() { end() })
	return url, end
}

// command runs writ and returns what it printed.
func command(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("writ", args...).Output()
	if err != nil {
		t.Fatalf("writ %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// TestBearer (S05): a client is who its token says; no token is an agent, and a token
// that is nobody's is refused. A session is of the principal that opened it.
func TestBearer(t *testing.T) {
	state := ownState(t)
	kim := command(t, "client", "add", "kim", "--role", "person", "--state", state)
	bot := command(t, "client", "add", "bot", "--role", "agent", "--state", state)
	url, end := serving(t, "--state", state)
	send := func(session, body string, authorization ...string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header["Authorization"] = authorization
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(b)
	}
	const (
		hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
		list  = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	)
	for _, bad := range [][]string{{""}, {"Bearer"}, {"Bearer x"}, {"Basic a2ltOng="}, {"Bearer " + kim[:len(kim)-2] + "AA"}, {kim}} {
		if resp, body := send("", hello, bad...); resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") != "Bearer" || strings.Contains(body, kim[:20]) {
			t.Errorf("%q: %d %s", bad, resp.StatusCode, body)
		}
	}
	if resp, _ := send("", hello, "Bearer "+kim, "Bearer "+bot); resp.StatusCode != 400 {
		t.Errorf("two: %d", resp.StatusCode)
	}
	sessions := map[string]string{}
	for name, authorization := range map[string][]string{"loopback": nil, "kim": {"Bearer " + kim}, "bot": {"Bearer " + bot}} {
		resp, body := send("", hello, authorization...)
		if sessions[name] = resp.Header.Get("Mcp-Session-Id"); resp.StatusCode != 200 || sessions[name] == "" {
			t.Fatalf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
	for name, session := range sessions {
		for other, authorization := range map[string][]string{"loopback": nil, "kim": {"Bearer " + kim}, "bot": {"Bearer " + bot}} {
			want := 404
			if other == name {
				want = 200
			}
			if resp, _ := send(session, list, authorization...); resp.StatusCode != want {
				t.Errorf("the session of %s by %s: %d", name, other, resp.StatusCode)
			}
		}
	}
	if out := command(t, "session", "list", "--state", state); strings.Count(out, "loopback") != 1 || strings.Count(out, "client:kim/") != 1 || strings.Count(out, "client:bot/") != 1 {
		t.Errorf("the sessions: %s", out)
	}
	command(t, "client", "remove", "kim", "--state", state)
	if resp, _ := send(sessions["kim"], list, "Bearer "+kim); resp.StatusCode != 401 {
		t.Errorf("when it was removed: %d", resp.StatusCode)
	}
	again := command(t, "client", "add", "kim", "--role", "person", "--state", state)
	if resp, _ := send(sessions["kim"], list, "Bearer "+again); resp.StatusCode != 404 {
		t.Errorf("by who has the name now: %d", resp.StatusCode)
	}
	if said := end(); strings.Contains(said, "writ_") {
		t.Errorf("a token is in the log: %s", said)
	}
	err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(kim)) || bytes.Contains(b, []byte(bot)) || bytes.Contains(b, []byte(again)) {
			t.Errorf("a token is kept in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestReadTurn: the words of POST /say and whose session they are for, by one name.
func TestReadTurn(t *testing.T) {
	long := strings.Repeat(`\u0061`, screen.MaxText)
	for body, want := range map[string]bool{
		`{"session":"s_a","text":"hello"}`:           true,
		` {"text":"","client":7} `:                   true,
		`{"client":7,"text":"` + long + `"}`:         true,
		`{"client":7,"text":"` + long + `a"}`:        false,
		`{"session":"s_a","client":7,"text":"x"}`:    false,
		`{"session":"s_a","text":"x","more":1}`:      false,
		`{"session":"s_a","session":"s_b"}`:          false,
		`{"session":"","text":"x"}`:                  false,
		`{"client":0,"text":"x"}`:                    false,
		`{"client":-7,"text":"x"}`:                   false,
		`{"client":7.0,"text":"x"}`:                  false,
		`{"client":"7","text":"x"}`:                  false,
		`{"client":7,"text":null}`:                   false,
		`{"client":7,"Text":"x"}`:                    false,
		`{"client":7}`:                               false,
		`{"text":"x"}`:                               false,
		`["s_a","x"]`:                                false,
		`{"client":99999999999999999999,"text":"x"}`: false,
		"{\"session\":\"s_a\",\"text\":\"\xff\"}":    false,
		``: false,
	} {
		session, pid, _, ok := readTurn(strings.NewReader(body))
		if ok != want || ok && (session == "") == (pid == 0) {
			t.Errorf("%.80s: %v, %q %d", body, ok, session, pid)
		}
	}
}

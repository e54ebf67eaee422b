//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/example"
)

// A terminalScreen is a pseudo-terminal with `writ ask` on it, as a person has it: its
// controlling terminal, so that Ctrl-C is a signal where no line is read.
type terminalScreen struct {
	t      *testing.T
	keys   *os.File // what the person types goes in, what is shown comes out
	tty    *os.File // the program's side
	cmd    *exec.Cmd
	ended  chan struct{}
	mu     sync.Mutex
	shown  []byte
	more   chan struct{} // something was shown
	looked int           // how much of shown was expected already
}

// onScreen starts `writ ask` with args on a terminal of 200 columns.
func onScreen(t *testing.T, env []string, args ...string) *terminalScreen {
	t.Helper()
	s := onTerminal(t, "", env, append([]string{"ask"}, args...)...)
	s.expect(prompt)
	return s
}

// onTerminal starts `writ` with args on a terminal at which ahead was typed already.
func onTerminal(t *testing.T, ahead string, env []string, args ...string) *terminalScreen {
	t.Helper()
	return programOnTerminal(t, "writ", ahead, env, args...)
}

// programOnTerminal is onTerminal of another program of the tests.
func programOnTerminal(t *testing.T, name, ahead string, env []string, args ...string) *terminalScreen {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("needs a pseudo-terminal: %v", err)
	}
	fd := int(keys.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 200}); err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile("/dev/pts/"+strconv.FormatUint(uint64(n), 10), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	s := &terminalScreen{t: t, keys: keys, tty: tty, ended: make(chan struct{}), more: make(chan struct{}, 1)}
	s.cmd = exec.Command(program, args...)
	s.cmd.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "TERM=xterm"}, env...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = tty, tty, tty
	s.cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	s.press(ahead)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		s.cmd.Wait()
		io.WriteString(tty, endMark) // behind all that it wrote
	}()
	go func() {
		defer close(s.ended)
		var b [4096]byte
		for {
			n, err := keys.Read(b[:])
			s.mu.Lock()
			s.shown = append(s.shown, b[:n]...)
			shown, over := bytes.CutSuffix(s.shown, []byte(endMark))
			s.shown = shown
			s.mu.Unlock()
			select {
			case s.more <- struct{}{}:
			default:
			}
			if err != nil || over {
				return
			}
		}
	}()
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		<-s.ended
		tty.Close()
		keys.Close()
		if t.Failed() {
			t.Logf("the screen:\n%q", s.all())
		}
	})
	return s
}

const (
	prompt  = `writ> `
	endMark = "\x00the program has ended\x00"
)

func (s *terminalScreen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.shown)
}

func (s *terminalScreen) press(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.keys, keys); err != nil {
		s.t.Fatal(err)
	}
}

// expect waits until the pattern is shown, behind what was expected before.
func (s *terminalScreen) expect(pattern string) {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	hang := time.After(time.Minute)
	for {
		all := s.all()
		if at := re.FindStringIndex(all[s.looked:]); at != nil {
			s.looked += at[1]
			return
		}
		select {
		case <-s.more:
		case <-s.ended:
			if re.MatchString(s.all()[s.looked:]) {
				continue
			}
			s.t.Fatalf("it ended and did not show %s", pattern)
		case <-hang:
			s.t.Fatalf("it does not show %s", pattern)
		}
	}
}

// exits waits for the end and returns the exit code.
func (s *terminalScreen) exits() int {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		s.t.Fatal("it does not end")
	}
	return s.cmd.ProcessState.ExitCode()
}

// cooked reports whether the terminal is as a shell wants to find it.
func (s *terminalScreen) cooked() bool {
	x, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
	return err == nil && x.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) == unix.ICANON|unix.ECHO|unix.ISIG && x.Oflag&unix.OPOST != 0
}

const (
	tab, up, ctrlC, ctrlD = "\t", "\x1b[A", "\x03", "\x04"
	enter                 = "\r"
)

// ours are the sequences that a line being edited, and our own colours, need.
var ours = regexp.MustCompile(`\x1b\[(?:[0-9]*[ABCDK]|[0-9]+m)`)

// TestTerminal: what a person at a terminal can do, and what is shown to them
// of what a server chose (T05, K07).
func TestTerminal(t *testing.T) {
	s := onScreen(t, nil, "--state", ownState(t))

	// Tab completes a command, arrow up brings the line back.
	s.press("he" + tab)
	s.expect(`help`)
	s.press(enter)
	s.expect(`tools +list the tools(?s:.*)` + prompt)
	s.press(up)
	s.expect(`help`)
	s.press(enter)
	s.expect(`tools +list the tools(?s:.*)` + prompt)

	// Ctrl-C clears the line: nothing of it is in the next one.
	s.press("ask Delete everything")
	s.expect(`everything`)
	s.press(ctrlC)
	s.expect(prompt)
	s.press("help" + enter)
	s.expect(`tools +list the tools(?s:.*)` + prompt)
	// On an empty line it asks once, and what is typed then takes it back.
	s.press(ctrlC)
	s.expect(`once more ends writ ask\r\n` + prompt)
	s.press("help" + enter)
	s.expect(`tools +list the tools(?s:.*)` + prompt)
	s.press("x" + ctrlC)
	s.expect(prompt)
	s.press(up) // the history is there still
	s.expect(`help`)
	s.press(ctrlC)
	s.expect(prompt)
	s.press(ctrlC)
	s.expect(`once more ends writ ask\r\n` + prompt)
	s.press("bogus" + enter)
	s.expect(`there is no such command(?s:.*)` + prompt)

	// P12, P19: a stranger's text is shown and vouches for nothing.
	s.press("ask Show me ticket INC-1043" + enter)
	s.expect(`\x1b\[36mexample/fetch_ticket\x1b\[0m(?s:.*)doc-e90b42(?s:.*)` + prompt)
	s.press("ask Delete document doc-e90b42" + enter)
	s.expect(`\x1b\[31mstopped at provenance\x1b\[0m(?s:.*)MISSING_PROVENANCE(?s:.*)` + prompt)

	// Tab completes the tools that are open, once they are known.
	s.press("call fet" + tab)
	s.expect(`fetch_`)
	s.press("t" + tab)
	s.expect(`fetch_ticket `)
	s.press(`{"id":"INC-1042"}` + enter)
	s.expect(`Printer on the second floor(?s:.*)` + prompt)

	// What would clear the screen, write to the clipboard or turn the text round
	// is shown as what it is. The server returns the query in its result.
	s.press(`call search_documents {"query":"\u001b[2J\u001b]52;c;eA==\u0007\u009b31m\u202efi"}` + enter)
	s.expect(`"query":"\\u001b\[2J\\u001b\]52;c;eA==\\u0007\\u009b31m\\u202efi"(?s:.*)` + prompt)

	// H07: what does not fit into one row goes on behind a bar.
	s.press(`call search_documents {"query":"` + strings.Repeat("x", 300) + ` evidence"}` + enter)
	s.expect(`"query":"x+\r\n  \| x+ evidence"(?s:.*)` + prompt)

	// A line longer than the editor takes is not asked in part.
	s.press("ask Show me ticket " + strings.Repeat("INC-1042 ", 600) + enter)
	s.expect(`longer than(?s:.*)` + prompt)

	s.press(ctrlD)
	if code := s.exits(); code != cli.ExitUsage {
		t.Errorf("exit code %d", code)
	}
	if !s.cooked() {
		t.Error("the terminal is left raw")
	}
	for _, r := range ours.ReplaceAllString(s.all(), "") {
		if r < ' ' && r != '\r' && r != '\n' || r > '~' && r < 0xa0 || r == '\u202e' {
			t.Errorf("%U reached the terminal", r)
		}
	}
}

// TestTerminalEnds: two Ctrl-C on an empty line end it, so does SIGTERM while it
// waits, and the terminal is left as it was.
func TestTerminalEnds(t *testing.T) {
	s := onScreen(t, nil, "--state", ownState(t))
	s.press(ctrlC)
	s.expect(`once more`)
	s.expect(prompt)
	s.press(ctrlC)
	if code := s.exits(); code != cli.ExitOK || !s.cooked() {
		t.Errorf("exit code %d, terminal as it was: %v", code, s.cooked())
	}
	s = onScreen(t, nil, "--state", ownState(t))
	s.cmd.Process.Signal(unix.SIGTERM)
	if code := s.exits(); code != cli.ExitIO || !s.cooked() {
		t.Errorf("after SIGTERM: exit code %d, terminal as it was: %v", code, s.cooked())
	}
}

// TestTerminalLate: a Ctrl-C that arrives when its request is over ends nothing.
func TestTerminalLate(t *testing.T) {
	s := onScreen(t, nil, "--state", ownState(t))
	s.cmd.Process.Signal(unix.SIGINT)
	s.press("help" + enter)
	s.expect(`tools +list the tools(?s:.*)` + prompt)
	s.press("quit" + enter)
	if code := s.exits(); code != cli.ExitOK || !s.cooked() {
		t.Errorf("exit code %d, terminal as it was: %v", code, s.cooked())
	}
}

// TestTerminalColour: nobody who asks for no colour gets one.
func TestTerminalColour(t *testing.T) {
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		s := onScreen(t, []string{env}, "--state", ownState(t))
		s.press("ask Delete document doc-000000" + enter)
		s.expect(`stopped at provenance(?s:.*)` + prompt)
		if regexp.MustCompile(`\x1b\[[0-9]+m`).MatchString(s.all()) {
			t.Errorf("%s: colours in %q", env, s.all())
		}
	}
}

// TestTerminalInterrupt: Ctrl-C ends the request that runs, and nothing else:
// the session and its evidence are there for the next one.
func TestTerminalInterrupt(t *testing.T) {
	asked := make(chan struct{})
	released := make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if strings.Contains(string(b), "typed ahead") {
			t.Error("what was typed ahead of Ctrl-C was asked")
		}
		if strings.Contains(string(b), "slowly") {
			close(asked)
			<-r.Context().Done()
			close(released)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		plan := `{"type":"call_tool","server":"example","tool":"delete_document","args":{"id":"doc-2b8e04"}}`
		io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":`+strconv.Quote(plan)+`},"finish_reason":"stop"}]}`)
	}))
	defer model.Close()
	dir := t.TempDir()
	program, err := exec.LookPath("writ")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"writ.yaml": "servers: [{name: example, command: ['" + program + "', example-server]}]\npolicy: policy.yaml\n" +
			"ask: {planner: {kind: openai, url: '" + model.URL + "/v1', model: m}}\n",
		"policy.yaml": string(example.Policy()),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := onScreen(t, nil, "--state", ownState(t), "--config", filepath.Join(dir, "writ.yaml"))
	s.press(`call search_documents {"query":"quarterly"}` + enter)
	s.expect(`doc-2b8e04(?s:.*)` + prompt)
	s.press("ask slowly" + enter + "ask typed ahead" + enter)
	<-asked
	s.press(ctrlC)
	s.expect(`ending the request; once more ends writ ask`)
	<-released
	s.expect(`the planner gave no plan(?s:.*)` + prompt)
	s.press("ask delete doc-2b8e04" + enter)
	s.expect(`"deleted":true(?s:.*)` + prompt)
	s.press(ctrlD)
	if code := s.exits(); code != cli.ExitOK || !s.cooked() {
		t.Errorf("exit code %d, terminal as it was: %v", code, s.cooked())
	}
	sessions := map[string]bool{}
	for _, m := range regexp.MustCompile(`evidence (s_[a-z2-7]+)`).FindAllStringSubmatch(s.all(), -1) {
		sessions[m[1]] = true
	}
	if len(sessions) != 1 {
		t.Errorf("sessions %v", sessions)
	}
}

// TestPipeInterrupt: where no person types, an interrupt ends the program, also
// while it waits for a line.
func TestPipeInterrupt(t *testing.T) {
	program, err := exec.LookPath("writ")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // what hangs is killed
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "ask", "--state", ownState(t))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	io.WriteString(stdin, "help\n")
	said := bufio.NewScanner(stdout)
	for said.Scan() && !strings.HasPrefix(said.Text(), "quit ") {
	}
	cmd.Process.Signal(unix.SIGINT)
	for said.Scan() {
		t.Errorf("then it says %q", said.Text())
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.ExitIO {
		t.Errorf("exit code %d", code)
	}
}

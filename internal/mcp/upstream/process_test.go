//go:build unix

package upstream_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-project/writ/internal/hostile"
	"github.com/writ-project/writ/internal/mcp/upstream"
)

const envGateway = "WRIT_TEST_GATEWAY"

var grandchild = regexp.MustCompile(`grandchild (\d+)`)

// pidOf waits until the child has said which process it started.
func pidOf(t *testing.T, s *upstream.Server) int {
	t.Helper()
	for stuck := time.After(20 * time.Second); ; {
		if m := grandchild.FindSubmatch(s.Stderr()); m != nil {
			pid, _ := strconv.Atoi(string(m[1]))
			return pid
		}
		select {
		case <-stuck:
			t.Fatal("no grandchild")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// gone waits until a process that is not ours to wait for has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	for stuck := time.After(20 * time.Second); ; {
		if syscall.Kill(pid, 0) != nil || zombie(pid) {
			return
		}
		select {
		case <-stuck:
			syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d is left over", pid)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// zombie reports a process that has ended and that nobody has asked after: in a
// container the first process may not.
func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(b), ") Z ")
}

// TestDied: what a server that ended said last is for a person who asks, and no call says
// it to a client: it says that nothing was sent.
func TestDied(t *testing.T) {
	s := start(t, upstream.Config{Name: "dead", Command: []string{"/bin/sh", "-c", "echo key hunter2 >&2; exit 3"}, Limits: upstream.Limits{RestartMin: time.Hour}}, newRecord(), nil)
	_, err := s.Info(t.Context())
	for _, err := range []error{err, s.Down()} {
		var died *upstream.DiedError
		if !errors.As(err, &died) || string(died.Said) != "key hunter2\n" || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: %+v", err, died)
		}
	}
	out := call(t.Context(), s, callTool("echo", "{}"))
	if out.End != upstream.NotSent || !strings.Contains(out.Err.Message, "nothing was sent. `writ status`") || strings.Contains(out.Err.Message, "hunter2") {
		t.Errorf("%+v", out.Err)
	}
}

// TestNoOrphans (U05): Close ends the child and everything in its group,
// whether they take notice of their input's end and of SIGTERM or not.
func TestNoOrphans(t *testing.T) {
	for _, mode := range []string{"forks", "ignoreeof"} {
		t.Run(mode, func(t *testing.T) {
			cfg := child(t, mode)
			cfg.Limits = quick
			s := start(t, cfg, newRecord(), nil)
			if _, err := s.Info(t.Context()); err != nil {
				t.Fatal(err)
			}
			pid := pidOf(t, s)
			s.Close()
			gone(t, pid)
		})
	}
}

// TestNoOrphansAfterCrash (U05): the child ends by itself and leaves a process
// that holds its output open; it is ended, and the connection with it.
func TestNoOrphansAfterCrash(t *testing.T) {
	cfg := child(t, "forks")
	cfg.Limits = quick
	cfg.Limits.RestartMin = time.Hour
	r := newRecord()
	s := start(t, cfg, r, nil)
	if _, err := s.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	pid := pidOf(t, s)
	parent := parentOf(t, pid)
	syscall.Kill(parent, syscall.SIGKILL)
	r.until(t, "connection_lost", func() bool { return r.events[upstream.ConnectionLost] > 0 })
	gone(t, pid)
}

func parentOf(t *testing.T, pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skip("needs /proc")
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	n, err := strconv.Atoi(strings.Fields(rest)[1])
	if err != nil || n <= 1 {
		t.Fatalf("parent %q", rest)
	}
	return n
}

// TestNoOrphansAfterKill (U05): kill -9 of the gateway leaves neither the child
// nor what the child started, though both ignore the end of their input.
func TestNoOrphansAfterKill(t *testing.T) {
	exe, _ := os.Executable()
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envGateway+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	line, err := bufio.NewReader(out).ReadString('\n')
	fmt.Sscan(line, &pid)
	if err != nil || pid == 0 {
		t.Fatalf("%q %v", line, err)
	}
	var kids []int
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		kids = append(kids, parentOf(t, pid))
	}
	cmd.Process.Kill()
	cmd.Wait()
	gone(t, pid)
	for _, k := range kids {
		gone(t, k)
	}
}

// gateway is the process TestNoOrphansAfterKill kills.
func gateway() {
	exe, _ := os.Executable()
	s := upstream.New(upstream.Config{
		Name: "h", Command: []string{exe}, Env: map[string]string{hostile.EnvMode: "ignoreeof"},
	}, upstream.Callbacks{}, nil)
	ctx := contextForever()
	if s.Start(ctx) != nil {
		os.Exit(1)
	}
	if _, err := s.Info(ctx); err != nil {
		os.Exit(1)
	}
	for {
		if m := grandchild.FindSubmatch(s.Stderr()); m != nil {
			fmt.Println(string(m[1]))
			break
		}
		time.Sleep(time.Millisecond)
	}
	select {}
}

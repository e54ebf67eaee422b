package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// stray COMMAND … leaves who started it, opens a terminal for itself and runs the command
// there, as what an agent's shell starts may. What is shown goes to descriptor 3.
func init() {
	programs["stray"] = func() {
		parent := strconv.Itoa(os.Getpid())
		cmd := exec.Command("stray-on", append([]string{parent}, os.Args[1:]...)...)
		cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
		cmd.ExtraFiles = []*os.File{os.NewFile(3, "out")}
		must(cmd.Start())
	}
	programs["stray-on"] = func() {
		out := os.NewFile(3, "out")
		for strconv.Itoa(os.Getppid()) == os.Args[1] {
			runtime.Gosched()
		}
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", os.Getppid())); os.Getppid() != 1 && string(name) != "systemd\n" {
			fmt.Fprintf(out, "adopted by %s", name)
			return
		}
		keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
		must(err)
		must(unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0))
		n, err := unix.IoctlGetUint32(int(keys.Fd()), unix.TIOCGPTN)
		must(err)
		tty, err := os.OpenFile("/dev/pts/"+strconv.FormatUint(uint64(n), 10), os.O_RDWR|unix.O_NOCTTY, 0)
		must(err)
		cmd := exec.Command(os.Args[2], os.Args[3:]...)
		var shown bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, &shown, &shown
		cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
		err = cmd.Run()
		runtime.KeepAlive(keys) // collected, it would hang up
		fmt.Fprintf(out, "%v: %s", err, &shown)
	}
}

// TestStray: who left the client that started him, and opened a terminal for himself, is
// still no person.
func TestStray(t *testing.T) {
	config, state := approving(t, []byte(sayPolicy)), ownState(t)
	end := startServer(state, config)
	defer end()
	said := strayed(t, exec.Command("stray", "writ", "session", "say", "--state", state, "--pid", strconv.Itoa(os.Getpid()), "close ticket INC-1042"))
	if !strings.HasPrefix(said, "exit status 77") || !strings.Contains(said, "after the agent's client was started") {
		t.Error(said)
	}
}

// strayed returns what a process says that is left to the first one, or skips where it is
// left to another.
func strayed(t *testing.T, stray *exec.Cmd) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stray.ExtraFiles = []*os.File{w}
	if err := stray.Run(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	b, _ := io.ReadAll(r)
	if strings.HasPrefix(string(b), "adopted by ") {
		t.Skipf("what is left here is %s, which is neither the first process nor systemd", b)
	}
	return string(b)
}

// TestStrayClient: nor is a client that another one's agent left so on a terminal one that
// a person types at.
func TestStrayClient(t *testing.T) {
	config, state := hosting(t), ownState(t)
	defer startServer(state, config)() // as the client whose agent that is
	script := filepath.Join(ownState(t), "events")
	events := []string{event("UserPromptSubmit", "\"prompt\":\"please run `make all` for me\""), before("1", "Bash", "{\"command\":\"make all\"}", "default")}
	if err := os.WriteFile(script, []byte(strings.Join(events, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	stray := exec.Command("stray", "hook-client", state, config, script)
	stray.Env = append(os.Environ(), "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_PROJECT_DIR=/proj")
	if said := strayed(t, stray); !strings.Contains(said, "is not on record") || !strings.Contains(said, "after the agent's client was started") || !strings.Contains(said, `"ask"`) {
		t.Error(said)
	}
}

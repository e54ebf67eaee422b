package localdoor

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// connected is an accepted connection of a Unix socket with that name, and its other end.
func connected(t *testing.T, name string) (theirs, ours *os.File) {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := ln.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer s.Close()
	theirs, err = c.File()
	if err != nil {
		t.Fatal(err)
	}
	ours, err = s.File()
	if err != nil {
		t.Fatal(err)
	}
	return theirs, ours
}

func pair(t *testing.T, kind int) (a, b *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fds[0]), "a"), os.NewFile(uintptr(fds[1]), "b")
}

// TestMaker: whose a pair of sockets is, and that nothing else is one: not what somebody
// reached who listens, for there the kernel names the one at the other end, whoever wrote.
func TestMaker(t *testing.T) {
	a, b := pair(t, unix.SOCK_STREAM)
	a.Close()
	if pid, ok := makerOf(int(b.Fd())); !ok || pid != os.Getpid() {
		t.Errorf("a pair: %d %v", pid, ok)
	}
	_, datagrams := pair(t, unix.SOCK_DGRAM)
	r, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	others := map[string]*os.File{"datagrams": datagrams, "a pipe": r}
	for what, name := range map[string]string{"path": filepath.Join(newState(t, false), "s"), "abstract": "@door-test", "zeros": "@\x00\x00door-test"} {
		others[what+" reached"], others[what+" accepted"] = connected(t, name)
	}
	for what, f := range others {
		if pid, ok := makerOf(int(f.Fd())); ok {
			t.Errorf("%s: made by %d", what, pid)
		}
	}
}

// With DOOR_PAIR set this binary hands one end of a pair of sockets that it made to its third
// file, and stays until its input ends.
func init() {
	if os.Getenv("DOOR_PAIR") != "" {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err == nil {
			unix.Sendmsg(3, []byte("x"), unix.UnixRights(fds[1]), nil, 0)
			io.Copy(io.Discard, os.Stdin)
		}
		os.Exit(0)
	}
}

// TestGone: of a process that is gone nobody knows whose its id is: what it made or connected
// is not the word of who has that id now.
func TestGone(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := pair(t, unix.SOCK_STREAM)
	defer ours.Close()
	child := exec.Command(exe)
	child.Env, child.ExtraFiles = []string{"DOOR_PAIR=1"}, []*os.File{theirs}
	in, err := child.StdinPipe()
	if err != nil || child.Start() != nil {
		t.Fatal("it was not started")
	}
	theirs.Close()
	b, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(ours.Fd()), b, oob, 0)
	handed := files(oob[:n])
	if err != nil || len(handed) != 1 {
		t.Fatalf("nothing was handed over: %v", err)
	}
	made := handed[0]
	defer made.Close()
	pid, ok := makerOf(int(made.Fd()))
	if !ok || pid != child.Process.Pid {
		t.Fatalf("made by %d %v, not by %d", pid, ok, child.Process.Pid)
	}
	in.Close()
	child.Wait()
	if _, err := unix.GetsockoptInt(int(made.Fd()), unix.SOL_SOCKET, unix.SO_PEERPIDFD); errors.Is(err, unix.ENOPROTOOPT) {
		t.Skip("this kernel does not tell a process that is gone from another one of its id: Linux 6.5 does")
	}
	if pid, ok := makerOf(int(made.Fd())); ok {
		t.Errorf("%d made it, which is gone", pid)
	}
}

// TestIdOfAnother: who has the id of a process that connected is not that process.
func TestIdOfAnother(t *testing.T) {
	self := process{pid: os.Getpid()}
	self.started = startedAt(self.pid)
	for _, c := range []struct {
		who  process
		want bool
	}{{self, true}, {process{self.pid, "1"}, false}, {process{pid: self.pid}, false}} {
		ctx := context.WithValue(t.Context(), peerKey{}, peer{process: c.who})
		if Is(ctx, self.pid) != c.want || (Below(ctx, self.pid) == nil) != c.want {
			t.Errorf("%v counts as the process of its id: %v", c.who, !c.want)
		}
	}
}

// TestHanded: what stands on standard input is read at the other side of a door that is a
// socket, once, and who made it is known there.
func TestHanded(t *testing.T) {
	state := newState(t, false)
	d, err := Open(state)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ln, err := d.Listen()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Publish("", started); err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := HandedBy(r.Context())
		if h == nil || HandedBy(r.Context()) != nil || h.Maker != os.Getpid() {
			http.Error(w, "nothing", http.StatusForbidden)
			return
		}
		defer h.Close()
		c, err := h.Conn()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		io.Copy(w, c)
	})}
	Know(srv)
	go srv.Serve(ln)
	defer srv.Close()
	all, err := Find(state)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v %v", all, err)
	}
	kept, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(kept)
	defer unix.Dup3(kept, 0, 0)
	ask := func(client func() (*http.Client, error)) string {
		c, err := client()
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseIdleConnections()
		r, err := c.Get("https://localhost/")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return strings.TrimSpace(string(b))
	}
	long := strings.Repeat("what was typed ", 100_000) // more than a socket holds
	a, b := pair(t, unix.SOCK_STREAM)
	if err := unix.Dup3(int(b.Fd()), 0, 0); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if got := ask(func() (*http.Client, error) { return all[0].Client(time.Minute) }); got != "nothing" {
		t.Errorf("unasked: %.40q", got)
	}
	go func() { io.WriteString(a, long); a.Close() }()
	if got := ask(all[0].Handing); got != strings.TrimSpace(long) {
		t.Errorf("%d bytes came", len(got))
	}
	if HandedBy(context.Background()) != nil {
		t.Error("from nowhere")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if err := unix.Dup3(int(null.Fd()), 0, 0); err != nil {
		t.Fatal(err)
	}
	if got := ask(all[0].Handing); got != "nothing" {
		t.Errorf("a file: %.40q", got)
	}
}

// TestOlder: who was there before the client has not cut himself loose from it; of one that
// is gone nothing is known.
func TestOlder(t *testing.T) {
	client := exec.Command("cat")
	in, err := client.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	line := line(os.Getpid())
	if loose(append(line, 1), client.Process.Pid) {
		t.Errorf("%v counts as below a younger process", line)
	}
	in.Close()
	client.Wait()
	if !loose(append(line, 1), client.Process.Pid) {
		t.Error("apart from a process that is gone")
	}
}

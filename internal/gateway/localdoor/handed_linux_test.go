package localdoor

import (
	"context"
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

package localdoor

import (
	"bufio"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const nobody = 65534

// TestMain: with DOOR_AS set this binary is a process of another account, which
// holds the key all the same.
func TestMain(m *testing.M) {
	switch os.Getenv("DOOR_AS") {
	case "":
		os.Exit(m.Run())
	case "client":
		fmt.Println("answer", otherClient())
	case "gateway":
		otherGateway()
	}
}

func otherProof() *tls.Config {
	seed, _ := hex.DecodeString(os.Getenv("DOOR_KEY"))
	c, err := proof(seed)
	if err != nil {
		panic(err)
	}
	return c
}

func otherClient() string {
	conn, err := net.Dial("unix", os.Getenv("DOOR_AT"))
	if err != nil {
		return "no connection: " + err.Error()
	}
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	s := tls.Client(conn, otherProof())
	fmt.Fprint(s, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	b, err := io.ReadAll(s)
	return fmt.Sprintf("%q %v", b, err)
}

func otherGateway() {
	ln, err := net.Listen("unix", os.Getenv("DOOR_AT"))
	if err != nil {
		panic(err)
	}
	os.Chmod(os.Getenv("DOOR_AT"), 0o777)
	fmt.Println("listening")
	go func() { io.Copy(io.Discard, os.Stdin); os.Exit(0) }()
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		s := tls.Server(c, otherProof())
		s.SetDeadline(time.Now().Add(5 * time.Second))
		b, _ := bufio.NewReader(s).ReadString('\n')
		fmt.Printf("heard %q\n", b)
		c.Close()
	}
}

// asNobody is this binary as another account, in a directory it can enter.
func asNobody(t *testing.T, dir, as, at string, key []byte) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "door-"+as)
	if err := os.WriteFile(copied, b, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied)
	cmd.Dir = dir
	cmd.Env = []string{"DOOR_AS=" + as, "DOOR_AT=" + at, "DOOR_KEY=" + hex.EncodeToString(key)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// TestAnotherAccount: the kernel says whose process is at the other end, and
// another account's is refused though it got hold of the key and of a way to the
// socket (I10).
func TestAnotherAccount(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root starts a process of another account")
	}
	state := newState(t, false)
	for _, d := range []string{state, filepath.Join(state, Dir)} {
		os.Mkdir(d, 0o700)
	}
	g := open(t, state, "one", 0)
	all, err := Find(state)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	os.Chmod(state, 0o777)
	os.Chmod(filepath.Join(state, Dir), 0o777)
	os.Chmod(all[0].socket, 0o777)

	out, err := asNobody(t, state, "client", all[0].socket, all[0].entry.Key).Output()
	if err != nil || strings.Contains(string(out), "200 OK") || !strings.Contains(string(out), "answer") || strings.Contains(string(out), "no connection") {
		t.Errorf("it was answered %q (%v)", out, err)
	}
	if len(g.seen) > 0 {
		t.Error("its request reached the gateway")
	}

	if err := os.Remove(all[0].socket); err != nil {
		t.Fatal(err)
	}
	cmd := asNobody(t, state, "gateway", all[0].socket, all[0].entry.Key)
	in, err := cmd.StdinPipe()
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
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() || lines.Text() != "listening" {
		t.Fatalf("it did not listen: %q", lines.Text())
	}
	if got, err := ask(all[0]); !errors.Is(err, ErrStranger) {
		t.Errorf("answered %q, %v", got, err)
	}
	in.Close()
	for lines.Scan() {
		if strings.Contains(lines.Text(), "GET") {
			t.Errorf("the other account's process %s", lines.Text())
		}
	}
	cmd.Wait()
}

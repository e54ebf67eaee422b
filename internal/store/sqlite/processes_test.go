//go:build unix

package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest"
)

// childVar makes this test binary another process of the same state directory:
// "what|dir|session|count". With "mixed" or "unsynced" in what, some or all of
// its appends are not synced; with "fold" it folds every few; with "erase" it erases what
// it wrote. "reopens" closes the log and opens it again so many times.
const childVar = "WRIT_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if v := os.Getenv(childVar); v != "" {
		f := strings.Split(v, "|")
		count, _ := strconv.ParseUint(f[3], 10, 64)
		if err := childMain(f[0], f[1], f[2], count); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func childMain(what, dir, session string, count uint64) error {
	sk, vk := storetest.Key()
	every := int64(storetest.Every)
	if what == "syncs" {
		every = 1 << 40
	}
	o := Options{Signer: sk, Verifier: vk, CheckpointEvery: every}
	if strings.Contains(what, "fold") || what == "power" {
		o.foldAt = 3000
	}
	s, err := Open(dir, o)
	if what == "refused" {
		var oe *OpenError
		if !errors.As(err, &oe) || oe.Reason != Unwritable {
			return fmt.Errorf("opened: %v", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if what == "syncs" {
		return syncsMain(s)
	}
	if what == "power" {
		return powerMain(s, session, count)
	}
	if what == "reopens" {
		fmt.Println("ready")
		for ; count > 0 && err == nil; count-- {
			if err = s.Close(); err == nil {
				s, err = Open(dir, o)
			}
		}
		return errors.Join(err, s.Close())
	}
	ctx := context.Background()
	tb := panicking{}
	appendTo := func(session string, n uint64) error {
		do := s.Append
		if strings.Contains(what, "unsynced") || strings.Contains(what, "mixed") && n%4 != 0 {
			do = s.AppendUnsynced
		}
		_, err := do(ctx, session, n, storetest.Entries(tb, session, n+1, 1))
		return err
	}
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n') // until told to go
	head, err := s.Head(ctx, session)
	if err != nil {
		return err
	}
	for n := head; n < head+count; n++ {
		if err := appendTo(session, n); err != nil {
			return err
		}
		fmt.Println(n + 1) // acknowledged
		if strings.Contains(what, "erase") {
			if err := s.Erase(ctx, session, n+1); err != nil {
				return err
			}
		}
		if !strings.Contains(what, "share") || n%10 != 0 {
			continue
		}
		for { // and one record in a session both write to
			h, err := s.Head(ctx, "s_shared")
			if err != nil {
				return err
			}
			if err = appendTo("s_shared", h); err == nil {
				break
			}
			if !errors.Is(err, audit.ErrConflict) {
				return err
			}
		}
	}
	return s.Close()
}

// powerMain appends records, every third synced, tells of those that are durable, erases
// some, and ends without closing.
func powerMain(s *Store, session string, count uint64) error {
	for n := uint64(1); n <= count; n++ {
		do := s.AppendUnsynced
		if n%3 == 0 {
			do = s.Append
		}
		if _, err := do(context.Background(), session, n, storetest.Entries(panicking{}, session, n+1, 1)); err != nil {
			return err
		}
		if n%3 == 0 {
			fmt.Println(n + 1)
		}
		if n%20 == 0 {
			if err := s.Erase(context.Background(), session, n); err != nil {
				return err
			}
		}
	}
	return nil
}

type child struct {
	*exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	stderr strings.Builder
}

func start(t *testing.T, what, dir, session string, count int) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.Command(exe)}
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%s|%d", childVar, what, dir, session, count))
	c.Stderr = &c.stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if !c.out.Scan() || c.out.Text() != "ready" {
		c.Wait()
		t.Fatalf("child: %s", &c.stderr)
	}
	return c
}

// TestTwoProcesses is the first half of L04: two processes, which also make
// the file together, append records and share one session; the result is one
// chain that lost nothing. One of them syncs only now and then.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	each := size(200, 1000)
	cs := make([]*child, 2)
	var wg sync.WaitGroup
	for i := range cs {
		wg.Go(func() { cs[i] = start(t, []string{"share fold", "share mixed"}[i], dir, fmt.Sprintf("s_%d", i), each) })
	}
	wg.Wait()
	for _, c := range cs {
		c.in.Close()
	}
	for i, c := range cs {
		wg.Go(func() {
			acks := 0
			for c.out.Scan() {
				acks++
			}
			if err := c.Wait(); err != nil || acks != each {
				t.Errorf("child %d: %d acknowledged: %v: %s", i, acks, err, &c.stderr)
			}
		})
	}
	wg.Wait()
	s := openWith(t, dir, storetest.Every)
	defer s.Close()
	r := storetest.Verify(t, s)
	if int(r.Records) != 2*each+2*each/10 || r.Sessions != 3 || r.Signed != r.Records {
		t.Errorf("%+v", r)
	}
	for _, id := range []string{"s_0", "s_1"} {
		if n, err := s.Head(context.Background(), id); int(n) != each || err != nil {
			t.Errorf("%s: %d, %v", id, n, err)
		}
	}
	if err := s.Integrity(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestOpensBeside: a log is opened to read while another process opens and closes it, at
// whatever moment of that.
func TestOpensBeside(t *testing.T) {
	dir := filled(t)
	c := start(t, "reopens", dir, "s_0", size(200, 1000))
	over := make(chan error, 1)
	go func() { over <- c.Wait() }()
	for n := 0; ; n++ {
		select {
		case err := <-over:
			if err != nil || n == 0 {
				t.Errorf("%d opened: %v: %s", n, err, &c.stderr)
			}
			return
		default:
		}
		r, err := OpenReadOnly(dir, Options{})
		if err != nil {
			t.Error(n, err)
			continue
		}
		if err := r.Close(); err != nil {
			t.Error(n, err)
		}
	}
}

// TestKilled is L05 for the store: a process killed in the middle of its work
// leaves a log that verifies, with every record it acknowledged, synced or
// not, and so finds it another that runs. It is killed 100 times, or 10,000.
func TestKilled(t *testing.T) {
	const each = 25 // of one state directory
	for part := range size(100, 10_000) / each {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			killed(t, part, each)
		})
	}
}

func killed(t *testing.T, part, rounds int) {
	dir := t.TempDir()
	whats := []string{"kill", "kill unsynced fold", "kill mixed", "kill erase", "kill fold", "kill unsynced", "kill mixed fold", "kill unsynced erase"}
	r := rand.New(rand.NewPCG(5, uint64(part)))
	for round := range rounds {
		what := whats[(part+round)%len(whats)]
		beside := openWith(t, dir, storetest.Every)
		c := start(t, what, dir, "s_k", 1_000_000)
		c.in.Close()
		last := uint64(0)
		kill := 1 + r.IntN(120)
		for i := 0; c.out.Scan(); i++ {
			if i == kill {
				if err := c.Process.Signal(syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
			n, err := strconv.ParseUint(c.out.Text(), 10, 64)
			if err != nil {
				break // the last line was cut
			}
			last = n
		}
		if c.Wait() == nil {
			t.Error("the child was not killed")
		}
		if _, err := beside.Append(context.Background(), "s_beside", uint64(round), storetest.Entries(t, "s_beside", uint64(round)+1, 1)); err != nil {
			t.Errorf("round %d of %d, %s: beside it: %v", round, part, what, err)
		}
		if err := beside.Close(); err != nil {
			t.Error(err)
		}
		s := openWith(t, dir, storetest.Every)
		n, err := s.Head(context.Background(), "s_k")
		if err != nil || n < last || last == 0 {
			t.Errorf("round %d of %d, %s: %d records, %d acknowledged: %v", round, part, what, n, last, err)
		}
		if rep := storetest.Check(t, s); rep.Problem != nil || rep.Records != int64(n)+int64(round)+1 {
			t.Errorf("round %d of %d, %s: %d records, head %d: %v", round, part, what, rep.Records, n, rep.Problem)
		}
		if err := s.Integrity(context.Background()); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			return
		}
	}
}

// TestReadOnlyDirectory is L06: a state directory this user cannot write to is
// refused, empty or not.
func TestReadOnlyDirectory(t *testing.T) {
	base, err := os.MkdirTemp("", "writ-readonly-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		os.Chmod(filepath.Join(base, "empty"), 0o700)
		os.Chmod(filepath.Join(base, "filled"), 0o700)
		os.RemoveAll(base)
	})
	os.Chmod(base, 0o755)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	exe = filepath.Join(base, "test") // where another user can run it
	if err := os.WriteFile(exe, b, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"empty", "filled"} {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if name == "filled" {
			s := openWith(t, dir, storetest.Every)
			storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 3)...)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			os.Chmod(filepath.Join(dir, FileName), 0o444)
		}
		os.Chmod(dir, 0o555)
		cmd := exec.Command(exe)
		cmd.Dir = base
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=refused|%s|s_a|1", childVar, dir))
		if os.Getuid() == 0 { // root writes anywhere
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

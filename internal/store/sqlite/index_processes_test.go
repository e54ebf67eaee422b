//go:build unix

package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/writ-project/writ/memory"
)

// indexChildVar makes this test binary another process of the same index:
// "dir|name|count".
const indexChildVar = "WRIT_INDEX_TEST_CHILD"

// TestIndexChild is no test but what such a process does: it brings the index
// forward record by record and says which it made, as soon as it is committed.
func TestIndexChild(t *testing.T) {
	v := os.Getenv(indexChildVar)
	if v == "" {
		t.Skip("runs in a process of its own")
	}
	f := strings.Split(v, "|")
	count, _ := strconv.Atoi(f[2])
	x := openIndexAt(t, f[0])
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n') // until told to go
	for i := 0; i < count; {
		at, err := x.At(context.Background(), "n")
		if err == nil {
			err = x.Update(context.Background(), recordOf(at+1, f[1]))
		}
		switch {
		case err == nil:
			fmt.Println("made", at+1)
			i++
		case !errors.Is(err, memory.ErrBehind):
			t.Fatal(err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

// recordOf is the change of record n: one new text, one replaced, one dropped.
func recordOf(n uint64, by string) memory.Change {
	c := memory.Change{Namespace: "n", From: n - 1, To: n, Put: []memory.Doc{
		{ID: fmt.Sprintf("new%06d", n), Kind: "k", Text: fmt.Sprintf("fox %s v%d", by, n)},
		{ID: "same", Kind: "k", Text: fmt.Sprintf("hare v%d", n)},
	}}
	if n > 10 {
		c.Drop = []string{fmt.Sprintf("new%06d", n-10)}
	}
	return c
}

func startIndexChild(t *testing.T, dir, name string, count int) (cmd *exec.Cmd, in io.Closer, out *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe, "-test.run=^TestIndexChild$", "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%d", indexChildVar, dir, name, count))
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out = bufio.NewScanner(stdout)
	for out.Scan() {
		if out.Text() == "ready" {
			return cmd, stdin, out
		}
	}
	cmd.Wait()
	t.Fatal("the child did not start")
	return nil, nil, nil
}

// as demands that the index holds what the first n records make of it.
func as(t *testing.T, dir string, n uint64) {
	t.Helper()
	x := openIndexAt(t, dir)
	defer x.Close()
	ctx := context.Background()
	if at, err := x.At(ctx, "n"); at != n || err != nil {
		t.Errorf("at %d, want %d: %v", at, n, err)
	}
	var texts []string
	for d, err := range x.Docs(ctx, "n") {
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, d.Text[strings.LastIndex(d.Text, "v"):])
	}
	var want []string
	for i := max(n, 10) - 9; i <= n; i++ {
		want = append(want, fmt.Sprintf("v%d", i))
	}
	want = append(want, fmt.Sprintf("v%d", n))
	if fmt.Sprint(texts) != fmt.Sprint(want) {
		t.Errorf("holds %v, want %v", texts, want)
	}
	if hits, err := x.Search(ctx, "n", "hare", nil, 5); err != nil || len(hits) != 1 || hits[0].ID != "same" {
		t.Errorf("found %v: %v", hits, err)
	}
	if err := x.Integrity(ctx); err != nil {
		t.Error(err)
	}
}

// TestIndexTwoProcesses: two processes, which also make the file together, take
// turns; none overwrites or repeats a change of the other.
func TestIndexTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	each := size(60, 600)
	var made sync.Map
	var ready, wg sync.WaitGroup
	ready.Add(2)
	for i := range 2 {
		wg.Go(func() {
			cmd, in, out := startIndexChild(t, dir, fmt.Sprintf("p%d", i), each)
			ready.Done()
			ready.Wait()
			in.Close()
			for out.Scan() {
				if n, ok := strings.CutPrefix(out.Text(), "made "); ok {
					if _, twice := made.LoadOrStore(n, i); twice {
						t.Errorf("record %s was made twice", n)
					}
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := 0
	made.Range(func(any, any) bool { n++; return true })
	if n != 2*each {
		t.Errorf("%d records, want %d", n, 2*each)
	}
	as(t, dir, uint64(2*each))
}

// TestIndexKilled: a process that is killed leaves an index that is at a record
// and holds just what it makes.
func TestIndexKilled(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	var last uint64
	for round := range size(4, 60) {
		cmd, in, out := startIndexChild(t, dir, "p", 1_000_000)
		in.Close()
		for i := 0; out.Scan(); i++ {
			if i == 15+7*(round%20) {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			if n, ok := strings.CutPrefix(out.Text(), "made "); ok {
				if k, err := strconv.ParseUint(n, 10, 64); err == nil {
					last = max(last, k)
				}
			}
		}
		if cmd.Wait() == nil {
			t.Fatal("the child was not killed")
		}
		x := openIndexAt(t, dir)
		at, err := x.At(context.Background(), "n")
		if err != nil || at < last || at > last+1 {
			t.Errorf("round %d: at %d, acknowledged %d: %v", round, at, last, err)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		last = at
		as(t, dir, at)
	}
}

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestAwaited: a read of a pipe that waits ends when it is closed, which one that keeps a thread does not;
// what is read, and its end, are the pipe's. Elsewhere there is no /proc, and all is read as it is.
func TestAwaited(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Fd() // from here on it is as a process is started with it
	in := awaited(r)
	if _, err := w.Write([]byte("line\n")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 8)
	if n, err := in.Read(b); string(b[:n]) != "line\n" || err != nil {
		t.Fatalf("%q, %v", b[:n], err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := in.Read(b)
		ended <- err
	}()
	if err := in.(io.Closer).Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	if _, err := w.Write([]byte("more")); err == nil {
		t.Error("it is still open")
	}

	if r, w, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if n, err := awaited(r).Read(b); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}

	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if awaited(f) != io.Reader(f) {
		t.Error("a file is read as it is")
	}
}

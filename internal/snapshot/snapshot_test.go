package snapshot

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func written(t *testing.T) (*Dir, At) {
	t.Helper()
	d, err := Open(filepath.Join(t.TempDir(), "snapshots"), []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	at := At{N: 7, Leaf: sha256.Sum256([]byte("leaf"))}
	if err := d.Write("s_1", at, func(w io.Writer) error { _, err := io.WriteString(w, "the state"); return err }); err != nil {
		t.Fatal(err)
	}
	return d, at
}

func TestSnapshot(t *testing.T) {
	d, at := written(t)
	got, body, ok := d.Read("s_1")
	if !ok || got != at || string(body) != "the state" {
		t.Fatalf("%v %q %v", got, body, ok)
	}
	if err := d.Write("s_1", at, func(w io.Writer) error { io.WriteString(w, "half"); return errors.New("no") }); err == nil {
		t.Fatal("a write that failed was kept")
	}
	if _, body, ok := d.Read("s_1"); !ok || string(body) != "the state" {
		t.Fatalf("what did not get written took the place of what was: %q", body)
	}
	os.WriteFile(filepath.Join(d.path, ".new-1"), []byte("left"), 0o600)
	if err := d.Drop("s_1"); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := d.Read("s_1"); ok {
		t.Fatal("it is there after it was dropped")
	}
	if left, _ := os.ReadDir(d.path); len(left) > 0 {
		t.Fatalf("left: %v", left)
	}
	if err := d.Drop("s_1"); err != nil {
		t.Fatal(err)
	}
}

// Whatever is not what was written counts as nothing.
func TestAltered(t *testing.T) {
	d, _ := written(t)
	whole, err := os.ReadFile(d.file("s_1"))
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, b []byte) {
		if err := os.WriteFile(d.file(name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1
		put("s_1", b)
		if _, _, ok := d.Read("s_1"); ok {
			t.Fatalf("byte %d was changed, and it counts", i)
		}
		put("s_1", whole[:i])
		if _, _, ok := d.Read("s_1"); ok {
			t.Fatalf("it ends at byte %d, and it counts", i)
		}
	}
	put("s_1", whole)
	if _, _, ok := d.Read("s_1"); !ok {
		t.Fatal("as it was it does not count")
	}
	put("s_2", whole)
	if _, _, ok := d.Read("s_2"); ok {
		t.Fatal("it counts for another sequence")
	}
	other, err := Open(d.path, []byte("another secret"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := other.Read("s_1"); ok {
		t.Fatal("it counts under another key")
	}
	if err := os.Chmod(d.file("s_1"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := d.Read("s_1"); ok && os.Getenv("GOOS") != "windows" {
		t.Fatal("it counts where others may read it")
	}
}

// Package snapshot keeps what a sequence of the log comes to at one of its records,
// so that a process goes on from there and not from the beginning.
//
// A snapshot is no evidence, and nothing that verifies reads one. It counts only
// where its MAC is right under a key derived from the log's own, where it was
// written by this very program, and where the log has the record it names: then it
// holds the bytes this program wrote for this sequence. Anything else is as if there
// were none. Who erases drops it.
package snapshot

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/writ-project/writ/internal/private"
)

// Dir is where the snapshots of a state directory stand. A nil one has none, and keeps
// none.
type Dir struct {
	path string
	key  []byte
}

// Open returns the snapshots in a directory, which is made when one is written.
// secret is the log's key.
func Open(path string, secret []byte) (*Dir, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "writ snapshot", sha256.Size)
	if err != nil {
		return nil, errors.New("the key of the snapshots cannot be made")
	}
	return &Dir{path, key}, nil
}

// At is the record that a snapshot stands at.
type At struct {
	N    uint64
	Leaf [sha256.Size]byte // of the record
}

const format = "writ snapshot 1\n"

// program is the SHA-256 of the program that runs: what another one wrote may
// stand by other rules.
var program = sync.OnceValues(func() ([]byte, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return h.Sum(nil), err
})

// head is what stands before the body.
func head(sequence string, at At) ([]byte, error) {
	p, err := program()
	b := append([]byte(format), p...)
	b = append(binary.AppendUvarint(b, uint64(len(sequence))), sequence...)
	return append(binary.LittleEndian.AppendUint64(b, at.N), at.Leaf[:]...), err
}

func (d *Dir) file(sequence string) string { return filepath.Join(d.path, sequence) }

// Write keeps a snapshot in place of the one before. A sequence's name is the name
// of a file.
func (d *Dir) Write(sequence string, at At, body func(io.Writer) error) error {
	h, err := head(sequence, at)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	private.Sweep(d.path, time.Hour) // a process that was killed left it
	return private.Stream(d.file(sequence), 0o600, func(w io.Writer) error {
		mac := hmac.New(sha256.New, d.key)
		to := io.MultiWriter(w, mac)
		if _, err := to.Write(h); err != nil {
			return err
		}
		if err := body(to); err != nil {
			return err
		}
		_, err := w.Write(mac.Sum(nil))
		return err
	})
}

// Read returns the newest snapshot of a sequence and the record it stands at; ok is
// false where there is none that counts.
func (d *Dir) Read(sequence string) (at At, body []byte, ok bool) {
	if d == nil {
		return at, nil, false
	}
	b, err := private.ReadWhole(d.file(sequence))
	if err != nil || len(b) < sha256.Size {
		return at, nil, false
	}
	b, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	mac := hmac.New(sha256.New, d.key)
	mac.Write(b)
	h, err := head(sequence, at)
	own := len(h) - 8 - len(at.Leaf)
	if err != nil || len(b) < len(h) || !hmac.Equal(mac.Sum(nil), sum) || !bytes.Equal(b[:own], h[:own]) {
		return at, nil, false
	}
	at.N = binary.LittleEndian.Uint64(b[own:])
	copy(at.Leaf[:], b[own+8:])
	return at, b[len(h):], true
}

// Sequences returns those that have a file, whether or not it counts.
func (d *Dir) Sequences() (names []string) {
	if d == nil {
		return nil
	}
	files, _ := os.ReadDir(d.path) // none is kept, or none can be read
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// Drop takes the snapshot of a sequence away, and what a process that was stopped
// left of one.
func (d *Dir) Drop(sequence string) error {
	if d == nil {
		return nil
	}
	if err := os.Remove(d.file(sequence)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return private.Sweep(d.path, 0)
}

package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/writ-project/writ/audit"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// second is a file outside the state directory that has the head of the log, so
// that a state directory which was rolled back or copied is noticed: the file
// was told of more, or of another continuation. Each log has its own, named by
// its key.
//
// It is told after a commit was synced, so it is never ahead of the disk, and
// compared before the next. What nobody waits for the disk for it is told of
// once that is in the database: when the log is folded, opened or closed. It is not
// synced itself: a power cut may take it back, and then less is noticed.
type second struct {
	mu   sync.Mutex
	file *os.File
	told []byte // what the file holds, as far as this process knows
	buf  [maxPlaced]byte
}

// placed is what the file holds, as JSON; blanks follow it.
type placed struct {
	Dir  string `json:"dir"`  // of the log
	Head string `json:"head"` // a signed checkpoint
}

const maxPlaced = 32 << 10

// KnownElsewhere returns the head that dir, an Options.Elsewhere, was told of
// the log with that key; ok is false if there is none.
func KnownElsewhere(dir string, v note.Verifier) (c audit.Checkpoint, ok bool) {
	b, err := os.ReadFile(placeOf(dir, v))
	if err != nil {
		return c, false
	}
	var p placed
	if json.Unmarshal(b, &p) == nil {
		c, err = audit.OpenCheckpoint([]byte(p.Head), v)
	}
	return c, err == nil
}

func placeOf(dir string, v note.Verifier) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%08x.json", filepath.Base(v.Name()), v.KeyHash()))
}

// openPlace opens the file and compares it with the log. What it finds is
// accepted, and recorded, or an error.
func (s *Store) openPlace(ctx context.Context) error {
	dir := s.opt.Elsewhere
	if dir == "" || s.opt.Signer == nil || s.opt.Verifier == nil {
		return nil
	}
	if err := checkDir(dir); err != nil {
		return err
	}
	path := placeOf(dir, s.opt.Verifier)
	if fi, err := os.Lstat(path); err == nil && !fi.Mode().IsRegular() {
		return openError(path, NotRegular, nil)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return openError(path, Unwritable, bare(err))
	}
	s.place = &second{file: f}
	if err = s.compare(ctx); err == nil && s.place.told == nil {
		if s.replaced() { // removing a log is anybody's right, but not in silence
			s.notice = "another log was kept in this state directory, and is gone: all it remembered is, too"
			s.accepts(errReplaced)
		}
		return nil
	}
	if err == nil {
		err = s.copied()
	}
	if s.opt.Accept && (errors.Is(err, errRolledBack) || errors.Is(err, errCopied)) {
		b, _ := s.place.read()
		s.place.told = bytes.Clone(b)
		s.accepts(err)
		return nil
	}
	return err
}

// Notice is what an operator should know of the log that was opened, or "".
func (s *Store) Notice() string { return s.notice }

func (p *second) close() {
	if p != nil {
		p.file.Close()
	}
}

// read returns what the file holds, until it is called again.
func (p *second) read() ([]byte, error) {
	n, err := p.file.ReadAt(p.buf[:], 0)
	if n == 0 || n == maxPlaced {
		return nil, err
	}
	return bytes.TrimRight(p.buf[:n], " \n"), nil
}

// lock keeps other processes from writing until unlock, where the file system has locks.
func (p *second) lock(patience time.Duration) (unlock func()) {
	if lockFile(p.file, patience) != nil {
		return func() {}
	}
	return func() { unlockFile(p.file) }
}

// compare refuses to go on where the file was told of a log that this one does
// not continue.
func (s *Store) compare(ctx context.Context) error {
	if s.place == nil {
		return nil
	}
	s.place.mu.Lock()
	defer s.place.mu.Unlock()
	b, _ := s.place.read()
	if bytes.Equal(b, s.place.told) {
		return nil
	}
	told, err := s.headIn(b)
	if err != nil { // half of it may be what another process just writes
		defer s.place.lock(s.opt.BusyTimeout)()
		b, _ = s.place.read()
		told, err = s.headIn(b)
	}
	if err != nil {
		return errRolledBack // whoever wrote that, it was not this log's
	}
	if err := s.Continues(ctx, told); err != nil {
		return err
	}
	s.place.told = bytes.Clone(b)
	return nil
}

// headIn is the head in what the file holds.
func (s *Store) headIn(b []byte) (audit.Checkpoint, error) {
	var p placed
	if err := json.Unmarshal(b, &p); err != nil {
		return audit.Checkpoint{}, err
	}
	return audit.OpenCheckpoint([]byte(p.Head), s.opt.Verifier)
}

// Continues is an error, of audit.ErrAltered, if the log does not go on from a
// head that was signed with its key: it was rolled back, or is another.
func (s *Store) Continues(ctx context.Context, told audit.Checkpoint) error {
	v, err := s.snapshot(ctx, s.coder != nil)
	if err != nil {
		return err
	}
	defer v.Close()
	now := audit.Checkpoint{Origin: told.Origin, Size: v.Size(), Root: v.Root()}
	switch {
	case told.Size > now.Size:
		return errRolledBack
	case told.Size == 0: // every log goes on from the empty one
		return nil
	}
	proof, err := tlog.ProveTree(now.Size, told.Size, v)
	if err != nil {
		return err
	}
	if audit.CheckConsistency(told, now, proof) != nil {
		return errRolledBack
	}
	return nil
}

// copied is an error if the file was told last of a log in another directory,
// and it is there still. Otherwise it was moved, which the file is told.
func (s *Store) copied() error {
	var p placed
	if json.Unmarshal(s.place.told, &p) != nil || p.Dir == filepath.Dir(s.path) {
		return nil
	}
	if err := s.isIn(p.Dir); err != nil {
		return err
	}
	s.tell([]byte(p.Head))
	return nil
}

// isIn is an error if this very log is in that directory too.
func (s *Store) isIn(dir string) error {
	theirs, err := os.Stat(filepath.Join(dir, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if ours, oerr := os.Stat(s.path); err == nil && oerr == nil && os.SameFile(ours, theirs) {
		return nil
	}
	o, err := OpenReadOnly(dir, Options{})
	if err != nil {
		return nil // it is no log that anybody can go on with
	}
	defer o.Close()
	v, err := o.Snapshot(context.Background())
	if err != nil {
		return nil
	}
	defer v.Close()
	if _, err := audit.OpenCheckpoint(v.(*snapshot).last.note, s.opt.Verifier); err != nil {
		return nil // it is another log
	}
	return errCopied
}

// replaced reports that another log was in this directory before.
func (s *Store) replaced() bool {
	files, _ := os.ReadDir(s.opt.Elsewhere) // a directory's name is no pattern
	for _, file := range files {
		var p placed
		if b, err := os.ReadFile(filepath.Join(s.opt.Elsewhere, file.Name())); err == nil && filepath.Ext(file.Name()) == ".json" && json.Unmarshal(b, &p) == nil && p.Dir == filepath.Dir(s.path) {
			return true
		}
	}
	return false
}

// tell tells the file of a head that is durable. A disk that does not take it
// stops nothing: then less is noticed.
func (s *Store) tell(note []byte) {
	if s.place == nil || len(note) == 0 {
		return
	}
	s.place.mu.Lock()
	defer s.place.mu.Unlock()
	b, err := json.Marshal(placed{filepath.Dir(s.path), string(note)})
	if err != nil {
		return
	}
	if bytes.Equal(b, s.place.told) {
		return
	}
	blanks := bytes.Repeat([]byte(" "), max(0, 1024-len(b), len(s.place.told)-len(b)))
	defer s.place.lock(s.opt.BusyTimeout)()
	if s.overtaken(note) {
		return
	}
	if _, err := s.place.file.WriteAt(append(append(bytes.Clone(b), blanks...), '\n'), 0); err == nil {
		s.place.told = b
	}
}

// overtaken reports whether another process has told the file of more since this one looked.
func (s *Store) overtaken(note []byte) bool {
	b, _ := s.place.read()
	if bytes.Equal(b, s.place.told) {
		return false
	}
	now, err := s.headIn(b)
	own, not := audit.OpenCheckpoint(note, s.opt.Verifier)
	return err == nil && not == nil && now.Size > own.Size
}

// tellFolded tells the file of the head that the database has, where that is all of the log
// and the file was told of nothing else. The caller has the journal locked and is caught up,
// so nobody was told of more.
func (s *Store) tellFolded(ctx context.Context) {
	if s.place == nil || s.compare(ctx) != nil {
		return
	}
	size, root, _, head, err := s.readHead(ctx, s.read)
	s.mu.Lock()
	whole := err == nil && size == s.known.tree.Size() && root == s.known.root
	s.mu.Unlock()
	if whole {
		s.tell(head)
	}
}

// tellOpened tells the file of what an earlier process had not told it of.
func (s *Store) tellOpened(ctx context.Context) error {
	if s.place == nil {
		return nil
	}
	return s.lockedAtEnd(ctx, func() error {
		s.tellFolded(ctx)
		return nil
	})
}

// ownLog is the sequence of what happened to the log itself. No public id of a
// session holds a hyphen.
const ownLog = "s_writ-log"

// accepts notes that an operator goes on with a log that is not known to be the newest, has
// records its key did not sign, or began where another was.
func (s *Store) accepts(why error) {
	if !slices.Contains(s.accepted, why) {
		s.accepted = append(s.accepted, why)
	}
}

// accept records what was accepted, each for itself.
func (s *Store) accept(ctx context.Context) error {
	n, err := s.Head(ctx, ownLog)
	if err != nil {
		return err
	}
	var data struct {
		Accepted string `json:"accepted"`
		Known    string `json:"known,omitempty"` // what the second place said
	}
	if c, ok := KnownElsewhere(s.opt.Elsewhere, s.opt.Verifier); ok {
		data.Known = c.String()
	}
	var entries []audit.Entry
	for i, why := range s.accepted {
		data.Accepted = map[error]string{errUnsigned: "unsigned", errRolledBack: "rollback", errCopied: "copy", errReplaced: "replacement"}[why]
		b, err := json.Marshal(data)
		if err != nil {
			return err
		}
		r := audit.Record{Kind: audit.KindEvent, Session: ownLog, N: n + uint64(i) + 1, Time: time.Now().UTC(), Data: b}
		if r.N == 1 {
			r.Kind = audit.KindOpen
		}
		e, err := audit.Seal(r)
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	if _, err = s.Append(ctx, ownLog, n, entries); err == nil {
		s.accepted = nil
	}
	return err
}

// AcceptsRollback records that an operator goes on with the log although one who is not on
// this machine knows a head that it does not go on from.
func (s *Store) AcceptsRollback(ctx context.Context) error {
	s.accepts(errRolledBack)
	return s.accept(ctx)
}

var (
	errCopied   = fmt.Errorf("%w: it is a copy of one that is there still", audit.ErrAltered)
	errReplaced = fmt.Errorf("%w: another log was here before", audit.ErrAltered)
)

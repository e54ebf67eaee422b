package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/snapshot"
)

// Retention says how long what was said and returned is kept once its session ended, and
// where it goes then.
type Retention struct {
	Days int
	// Archive is the directory that it is written to before it is taken out of the log,
	// "" for none. A segment, which is one file, is closed once a session has waited for
	// SegmentDays, and goes on in another beyond SegmentBytes; no session is cut.
	Archive      string
	SegmentDays  int
	SegmentBytes int64
}

// Retained says what came of a retention, for an operator.
type Retained struct {
	Days     int       `json:"days"`
	Archive  string    `json:"archive,omitempty"`
	Last     time.Time `json:"last"`     // when it was applied last
	Redacted int       `json:"redacted"` // sessions, since the gateway started
	Archives int       `json:"archives"` // written since then
	// Next is when the next archive is written, and Due how many sessions wait for it; zero
	// where none does.
	Next time.Time `json:"next,omitzero"`
	Due  int       `json:"due,omitempty"`
	// Held are the sessions that are older and stay, and why: the first of so many.
	Held   []HeldSession `json:"held,omitempty"`
	HeldIn int           `json:"held_in_all,omitempty"`
	// Fault is why it could not be applied: nothing is taken out of the log then.
	Fault string `json:"fault,omitempty"`
}

const mostHeld = 20 // that are named

func (s *Retained) hold(session, why string) {
	if s.HeldIn++; len(s.Held) < mostHeld {
		s.Held = append(s.Held, HeldSession{session, why})
	}
}

// HeldSession is a session that a retention leaves as it is.
type HeldSession struct {
	Session string `json:"session"`
	Why     string `json:"why"`
}

// Retainer applies a retention. It is used by one goroutine but for Status.
type Retainer struct {
	st       Store
	kept     *snapshot.Dir
	key      string // the log's public key, as it is written
	verifier note.Verifier
	rule     Retention
	log      *slog.Logger
	later    map[string]time.Time // when a session can be due at the earliest
	held     map[string]string    // sessions of which no archive verifies
	cutOff   map[string]bool      // sessions whose values could not be erased
	passed   map[string]string    // files that are passed over, and why

	mu     sync.Mutex
	status Retained
}

// NewRetainer returns one that was not applied yet. key is the log's public key.
func NewRetainer(st Store, kept *snapshot.Dir, key string, rule Retention, log *slog.Logger) (*Retainer, error) {
	v, err := note.NewVerifier(key)
	if err != nil {
		return nil, err
	}
	return &Retainer{st: st, kept: kept, key: key, verifier: v, rule: rule, log: cmp.Or(log, slog.New(slog.DiscardHandler)), later: map[string]time.Time{}, held: map[string]string{}, cutOff: map[string]bool{}, passed: map[string]string{},
		status: Retained{Days: rule.Days, Archive: rule.Archive}}, nil
}

// Status says what came of it so far.
func (r *Retainer) Status() Retained {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// Apply takes the values of the sessions out of the log that ended long enough ago, once
// they stand in an archive that was read back and verifies. What fails is said, in the log
// of the gateway and by Status, and is tried again when it is called again.
func (r *Retainer) Apply(ctx context.Context, now time.Time) {
	s := r.Status()
	s.Last, s.Next, s.Due, s.Held, s.HeldIn, s.Fault = now, time.Time{}, 0, nil, 0, ""
	err := r.apply(ctx, now, &s)
	if err != nil && ctx.Err() == nil {
		s.Fault = err.Error()
		r.log.Error("what was kept long enough could not be taken out of the log: it stays there", "error", err)
	}
	for _, h := range s.Held {
		was := r.Status().Held
		if !slices.Contains(was, h) {
			r.log.Warn("a session is kept longer than the configuration says", "session", h.Session, "error", h.Why)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = s
}

func (r *Retainer) apply(ctx context.Context, now time.Time, s *Retained) error {
	due, err := r.due(ctx, now, s)
	if err != nil || len(due) == 0 {
		return err
	}
	var whole []Ended // those with values that stand in no archive yet
	for _, e := range due {
		if r.rule.Archive != "" && !e.Redacted {
			whole = append(whole, e)
			continue
		}
		if !e.Redacted { // it is written nowhere, and checked all the same: it may be evidence
			g := gather(r.st)
			err := g.add(ctx, e.Session)
			if err == nil {
				_, _, err = r.part(ctx, g, nil)
			}
			if ev, is := errors.AsType[*evidence](err); is {
				r.hold(e.Session, ev, s)
				continue
			} else if err != nil {
				return fmt.Errorf("%s: %w", e.Session, err)
			}
			e.Records = g.heads[e.Session]
		}
		if err := r.redact(ctx, e, "", now, s); err != nil {
			return err
		}
	}
	if len(whole) == 0 {
		return nil
	}
	age := time.Duration(r.rule.Days) * 24 * time.Hour
	if at := whole[0].Last.Add(age).AddDate(0, 0, r.rule.SegmentDays); now.Before(at) {
		s.Next, s.Due = at, len(whole)
		return nil
	}
	if err := r.makeRoom(); err != nil {
		return err
	}
	return r.archiveAll(ctx, whole, now, s)
}

// makeRoom makes the directory of the archives, which is this account's alone.
func (r *Retainer) makeRoom() error {
	if err := os.MkdirAll(r.rule.Archive, 0o700); err != nil {
		return errors.New("the directory of the archives cannot be made")
	}
	if err := private.At(r.rule.Archive, private.Secret); err != nil {
		if pe, is := errors.AsType[*private.Error](err); is && pe.Mend != "" {
			err = fmt.Errorf("%w; try: %s", err, pe.Mend)
		}
		return fmt.Errorf("the directory of the archives: %w", err)
	}
	private.Sweep(r.rule.Archive, time.Hour) // a run that was killed left it
	return nil
}

// archiveAll archives sessions in segments, and takes out of the log what an archive has. One that
// does not verify is left out of its segment, and held.
func (r *Retainer) archiveAll(ctx context.Context, whole []Ended, now time.Time, s *Retained) error {
	for single := 0; len(whole) > 0; single = max(single-1, 0) { // so many of the next go by themselves
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		g, n := gather(r.st), 0
		for err == nil && n < len(whole) && (n == 0 || g.bytes < r.rule.SegmentBytes && single == 0) {
			err = g.add(ctx, whole[n].Session)
			n++
		}
		digest := ""
		if err == nil {
			digest, err = r.archive(ctx, g)
		}
		if ev, is := errors.AsType[*evidence](err); is {
			i := slices.IndexFunc(whole[:n], func(e Ended) bool { return e.Session == ev.session })
			if i < 0 && n > 1 { // it is what some of them rest on
				single = n + 1
				continue
			}
			i = max(i, 0)
			r.hold(whole[i].Session, ev, s)
			whole = slices.Delete(whole, i, i+1)
			continue
		} else if err != nil {
			return fmt.Errorf("the archive: %w", err)
		}
		s.Archives++
		for _, e := range whole[:n] {
			e.Records = g.heads[e.Session]
			if err := r.redact(ctx, e, digest, now, s); err != nil {
				return err
			}
		}
		whole = whole[n:]
	}
	return nil
}

// hold keeps a session that does not verify, for as long as this retainer is there.
func (r *Retainer) hold(session string, ev *evidence, s *Retained) {
	r.held[session] = "it does not verify, and stays as evidence of that: " + ev.Error()
	s.hold(session, r.held[session])
}

func (r *Retainer) redact(ctx context.Context, e Ended, archive string, now time.Time, s *Retained) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := redact(ctx, r.st, r.kept, e.Session, e.Records, redactData{Archive: archive, Why: "retention"}, now)
	switch {
	case errors.Is(err, audit.ErrConflict) || errors.Is(err, ErrOpen):
		return nil // it went on meanwhile: the next run looks at all of it
	case errors.Is(err, ErrAlteredSession):
		r.hold(e.Session, &evidence{e.Session, err}, s)
		return nil
	case err != nil:
		r.cutOff[e.Session] = true // what is gone for readers may be on the disk still
		return fmt.Errorf("%s: %w", e.Session, err)
	}
	delete(r.cutOff, e.Session)
	s.Redacted++
	return nil
}

// due returns the sessions that ended long enough ago, those first that ended first, and
// says of s which stay.
func (r *Retainer) due(ctx context.Context, now time.Time, s *Retained) (due []Ended, err error) {
	age := time.Duration(r.rule.Days) * 24 * time.Hour
	never := now.AddDate(1000, 0, 0)
	for h, err := range r.st.Heads(ctx) {
		if err != nil {
			return nil, err
		}
		if !isSession(h.Session) || now.Before(r.later[h.Session]) {
			continue
		}
		e, err := EndedSession(ctx, r.st, h.Session, now)
		why := r.held[h.Session]
		switch {
		case errors.Is(err, ErrOpen):
			reg, err := r.st.SessionByID(ctx, h.Session)
			if err != nil || now.Sub(reg.Created) < age {
				continue
			}
			why = "it is open: what it saw founds what is done in it next (writ session close)"
		case errors.Is(err, ErrAlteredSession):
			why = "it was altered on disk, and stays as evidence of that (writ audit verify)"
		case err != nil:
			return nil, err
		case e.Redacted && !e.Left && !r.cutOff[h.Session]:
			r.later[h.Session] = never
			continue
		case e.Redacted:
			due = append(due, e)
			continue
		case now.Sub(e.Last) < age:
			r.later[h.Session] = e.Last.Add(age)
			continue
		case why == "":
			due = append(due, e)
			continue
		}
		s.hold(h.Session, why)
	}
	slices.SortFunc(due, func(a, b Ended) int { return a.Last.Compare(b.Last) })
	return due, nil
}

// part makes a part of the log of what was gathered, which verifies and goes on from the older
// ones. The error is *evidence of what does not.
func (r *Retainer) part(ctx context.Context, g *gathered, older [][]byte) (part []byte, items []audit.Item, err error) {
	items, blobs, err := g.all(ctx)
	if err != nil {
		return nil, nil, err
	}
	msg, err := r.st.Checkpoint(ctx)
	if err != nil {
		return nil, nil, err
	}
	snap, err := r.st.Snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer snap.Close()
	var b bytes.Buffer
	if err := audit.WritePart(&b, snap, audit.PartOf{Key: r.key, Checkpoint: msg, Older: older, Items: items, Blobs: blobs}); err != nil {
		return nil, nil, err
	}
	if bad, err := checkPart(ctx, b.Bytes(), r.verifier, items); err != nil {
		return nil, nil, err
	} else if bad != nil {
		return nil, nil, &evidence{bad.Session, bad}
	}
	return b.Bytes(), items, nil
}

// archive writes what was gathered as a part of the log, which is whole on disk and
// verifies when it returns the file's SHA-256. The error is *evidence of what does not
// verify: then no file was written.
func (r *Retainer) archive(ctx context.Context, g *gathered) (digest string, err error) {
	older, err := r.newest()
	if err != nil {
		return "", err
	}
	b, items, err := r.part(ctx, g, older)
	if err != nil {
		return "", err
	}
	first, last := items[0].Index, items[0].Index
	for i := range items {
		first, last = min(first, items[i].Index), max(last, items[i].Index)
	}
	for try := 1; ; try++ {
		name := fmt.Sprintf("%012d-%012d", first, last)
		if try > 1 {
			name = fmt.Sprintf("%s-%d", name, try)
		}
		path := filepath.Join(r.rule.Archive, name+archiveSuffix)
		err := private.WriteOnce(path, b, 0o600)
		again := errors.Is(err, fs.ErrExist) && try < 100 // of a run that was stopped, or of whoever put it there
		if pe, is := errors.AsType[*fs.PathError](err); is {
			err = pe.Err
		}
		if err != nil && !again {
			return "", fmt.Errorf("it cannot be written: %w", err)
		}
		there, err := private.ReadWhole(path)
		if again {
			if bad, err := checkPart(ctx, there, r.verifier, items); bad != nil || err != nil || synced(path) != nil {
				continue
			}
		} else if err != nil || !bytes.Equal(there, b) {
			return "", errors.New("what is read back is not what was written")
		}
		if err := synced(r.rule.Archive); err != nil {
			return "", err
		}
		sum := sha256.Sum256(there)
		return hex.EncodeToString(sum[:]), nil
	}
}

// synced makes a file that somebody else may have written, or the names in a directory, last
// over a power cut.
func synced(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if runtime.GOOS == "windows" { // which syncs nothing that is open to be read
		return nil
	}
	return f.Sync()
}

const archiveSuffix = ".writ"

// newest returns the newest checkpoint of the archives of this log that are there, so
// that the next one shows that the log went on from it; none if there is none. What is no
// file that can be read is said, once, and counts for nothing.
func (r *Retainer) newest() (older [][]byte, err error) {
	files, err := os.ReadDir(r.rule.Archive)
	if err != nil {
		return nil, errors.New("the archives before it cannot be listed")
	}
	size := int64(0)
	for _, file := range files {
		if filepath.Ext(file.Name()) != archiveSuffix {
			continue
		}
		path := filepath.Join(r.rule.Archive, file.Name())
		line, err := firstLine(path)
		if err != nil {
			if r.passed[path] != err.Error() {
				r.passed[path] = err.Error()
				r.log.Warn("a file among the archives is passed over: the next archive does not go on from it", "error", err)
			}
			continue
		}
		if msg, c, err := audit.PartCheckpoint(line, r.verifier); err == nil && c.Size > size {
			older, size = [][]byte{bytes.Clone(msg)}, c.Size
		}
	}
	return older, nil
}

// firstLine returns the first line of a file, nil if it has none that an archive can have.
func firstLine(path string) ([]byte, error) {
	f, err := private.Open(path)
	if pe, is := errors.AsType[*fs.PathError](err); is {
		err = &private.Error{Path: path, Why: pe.Err.Error()}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	line, err := bufio.NewReaderSize(f, 256<<10).ReadSlice('\n')
	if err != nil {
		return nil, nil
	}
	return line, nil
}

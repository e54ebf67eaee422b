package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/witness"
)

// showEvery is how often a head that moved is shown to the witnesses: what came since can
// be rolled back without their noticing.
const showEvery = 10 * time.Minute

// witnesses are those of a gateway. A nil one has none.
type witnesses struct {
	all  []*witness.Witness
	of   []config.Witness // the same, as they were named
	dir  string           // of what they cosigned
	log  *slog.Logger
	last time.Time // when they were shown a head

	mu  sync.Mutex
	now []witnessStatus
}

// witnessStatus is what a witness said last.
type witnessStatus struct {
	Name  string    `json:"name"`
	URL   string    `json:"url"`
	Size  int64     `json:"size"` // of the log that it cosigned last, as far as this gateway knows
	At    time.Time `json:"at,omitzero"`
	Fault string    `json:"fault,omitempty"` // why it did not cosign what it was shown since
}

// callWitnesses returns those that the configuration names.
func (o *files) callWitnesses(log *slog.Logger) (*witnesses, error) {
	if len(o.named) == 0 {
		return nil, nil
	}
	_, own, err := logKey(o.state)
	if err != nil {
		return nil, err
	}
	ws := &witnesses{of: o.named, log: log, dir: filepath.Join(o.state, statedir.WitnessedDir)}
	for _, w := range o.named {
		key, err := audit.NewCosignatures(w.Key)
		if err != nil {
			return nil, cli.Fail(cli.ExitConfig, "writ check", "%w", err)
		}
		ws.all, ws.now = append(ws.all, witness.New(w.URL, key, own)), append(ws.now, witnessStatus{Name: key.Name(), URL: w.URL})
	}
	return ws, nil
}

// first shows them the log as it was opened: one that does not go on from what a witness
// signed was rolled back, or is a copy, and is not gone on with unless an operator says so.
func (ws *witnesses) first(ctx context.Context, st *sqlite.Store) error {
	if ws == nil {
		return nil
	}
	ws.last = upkeepClock()
	for i, err := range ws.show(ctx, st, ws.last) {
		accept, _ := ctx.Value(acceptRollback{}).(bool)
		switch {
		case errors.Is(err, witness.ErrRolledBack) && !accept:
			return cli.Fail(cli.ExitData, "writ audit verify; the same command with --"+acceptRollbackFlag+" goes on all the same",
				"the state directory was rolled back, or its log is another: the witness %s signed a head that it does not go on from", cli.OneLine(ws.now[i].Name, 100))
		case errors.Is(err, witness.ErrRolledBack):
			if err := st.AcceptsRollback(ctx); err != nil {
				return unreadable(err)
			}
		case err != nil && ws.of[i].Required:
			return cli.Fail(cli.ExitIO, "another time, or without required: true", "the witness %s cannot be asked whether the log is the newest: %w", cli.OneLine(ws.now[i].Name, 100), err)
		}
	}
	return nil
}

// due reports whether they are to be shown the head again.
func (ws *witnesses) due(now time.Time) bool {
	if ws == nil || now.Sub(ws.last) < showEvery {
		return false
	}
	ws.last = now
	return true
}

// show shows the head to all of them, keeps what they cosigned, and says what failed, in
// the gateway's log once until it is another. The errors are in their order.
func (ws *witnesses) show(ctx context.Context, st *sqlite.Store, now time.Time) []error {
	if ws == nil {
		return nil
	}
	errs := make([]error, len(ws.all))
	var all sync.WaitGroup
	for i, w := range ws.all {
		all.Go(func() {
			cosigned, err := w.Show(ctx, st)
			if errors.Is(err, audit.ErrNotFound) {
				return // nothing was recorded yet
			}
			if err == nil {
				err = ws.keep(i, cosigned)
			}
			errs[i] = err
			ws.mu.Lock()
			defer ws.mu.Unlock()
			s := &ws.now[i]
			before := s.Fault
			if err == nil {
				s.Fault, s.At, s.Size = "", now, w.Size()
				return
			}
			if s.Fault = err.Error(); s.Fault != before {
				ws.log.Error("a witness did not sign the log's head", "witness", s.Name, "error", err)
			}
		})
	}
	all.Wait()
	return errs
}

func (ws *witnesses) keep(i int, cosigned []byte) error {
	err := os.MkdirAll(ws.dir, 0o700)
	if err == nil {
		err = private.Replace(filepath.Join(ws.dir, audit.Sum([]byte(ws.of[i].Key)).String()[:16]), cosigned, 0o600)
	}
	if err != nil {
		return errors.New("what it signed cannot be kept in the state directory")
	}
	return nil
}

func (ws *witnesses) status() []witnessStatus {
	if ws == nil {
		return nil
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return slices.Clone(ws.now)
}

func printWitnesses(w io.Writer, all []witnessStatus) {
	for _, s := range all {
		fmt.Fprintf(w, "  witness %s: ", cli.OneLine(s.Name, 100))
		when(w, s.Size > 0, "it cosigned the log of %d records at %s", s.Size, s.At.Format(time.RFC3339))
		when(w, s.Size == 0 && s.Fault == "", "it was shown no head yet since this gateway started")
		when(w, s.Size == 0 && s.Fault != "", "it has cosigned nothing since this gateway started")
		when(w, s.Fault != "", "; it FAILED since: %s", cli.OneLine(s.Fault, 300))
		fmt.Fprintln(w)
	}
}

// cosigned is the newest head of a log that a witness cosigned, with all cosignatures of it.
func cosigned(dir string, v note.Verifier) (msg []byte, head audit.Checkpoint, err error) {
	files, _ := os.ReadDir(filepath.Join(dir, statedir.WitnessedDir))
	type kept struct {
		audit.Checkpoint
		note []byte
	}
	var all []kept
	for _, file := range files {
		b, err := private.ReadFile(filepath.Join(dir, statedir.WitnessedDir, file.Name()))
		if err != nil || bytes.Count(b, []byte("\n— ")) < 2 { // the log's signature, and no other
			continue
		}
		if c, err := audit.OpenCheckpoint(b, v); err == nil {
			all = append(all, kept{c, b})
		}
	}
	if len(all) == 0 {
		return nil, head, cli.Fail(cli.ExitIO, "witnesses: in writ.yaml, and writ serve", "no witness cosigned a head of this log")
	}
	newest := slices.MaxFunc(all, func(a, b kept) int { return cmp.Compare(a.Size, b.Size) })
	msg = newest.note
	for _, k := range all {
		if k.Checkpoint != newest.Checkpoint {
			continue
		}
		for line := range bytes.Lines(k.note) {
			if bytes.HasPrefix(line, []byte("— ")) && !bytes.Contains(msg, line) {
				msg = append(msg, line...)
			}
		}
	}
	return msg, newest.Checkpoint, nil
}

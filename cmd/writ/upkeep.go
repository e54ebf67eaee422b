package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/principal"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/witness"
)

// retainEvery is how often what was kept long enough is looked for.
const retainEvery = time.Hour

// upkeepClock is the time that upkeep goes by.
var upkeepClock = time.Now

// everyMinute ticks until ctx ends, once at the start.
func everyMinute(ctx context.Context) <-chan time.Time {
	ticks := make(chan time.Time, 1)
	ticks <- upkeepClock()
	go func() {
		t := time.NewTicker(time.Minute)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				select {
				case ticks <- upkeepClock():
				default: // it is still at the one before
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ticks
}

// upkeep does at each tick what nobody calls for: it says, once, what is nearly used up, and
// applies the retention where that was not done for an hour. ended is closed once it has
// ended, after ctx.
func (o *files) upkeep(ctx context.Context, g *gateway.Gateway, log *slog.Logger, ticks <-chan time.Time) (ended <-chan struct{}, err error) {
	if o.retain.Days > 0 {
		key, err := logKeyText(o.state, "")
		if err != nil {
			return nil, err
		}
		if o.retainer, err = gateway.NewRetainer(o.store, statedir.Snapshots(o.state), key, o.retain, log); err != nil {
			return nil, err
		}
	}
	var said nearSaid
	var applied time.Time
	return eachTick(ctx, ticks, func(now time.Time) {
		o.warnOfNear(g, log, &said)
		if now.Sub(o.witnesses.last) >= showEvery {
			o.witnesses.show(ctx, o.store, now)
		}
		if o.retainer != nil && now.Sub(applied) >= retainEvery {
			applied = now
			o.retainer.Apply(ctx, now)
		}
	}, func() {
		last, expired := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer expired()
		o.witnesses.show(last, o.store, upkeepClock())
	}), nil
}

// warnOfNear says what is nearly used up and was not said since it came to that.
func (o *files) warnOfNear(g *gateway.Gateway, log *slog.Logger, said *nearSaid) {
	for _, n := range said.fresh(append(g.Near(), nearIn(o.state)...)) {
		if !n.WasSaid() {
			log.Warn("nearly used up: "+n.What, "percent", n.Percent, "try", n.Then)
		}
	}
}

// eachTick does one thing at each tick and another when ctx has ended, and closes ended then.
func eachTick(ctx context.Context, ticks <-chan time.Time, each func(now time.Time), last func()) (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				last()
				return
			case now := <-ticks:
				each(now)
			}
		}
	}()
	return done
}

// nearSaid is what was said to be nearly used up, as far as it still is.
type nearSaid map[string]bool

// fresh are those that were not said since they came to that; now they are.
func (s *nearSaid) fresh(near []gateway.Near) (fresh []gateway.Near) {
	said := nearSaid{}
	for _, n := range near {
		key := n.What + n.Session
		if said[key] = true; !(*s)[key] {
			fresh = append(fresh, n)
		}
	}
	*s = said
	return fresh
}

// tellOfNear says to whoever reads what a client's gateway writes, whose log has faults
// alone, what of it is nearly used up. ended is closed once it has ended, after ctx.
func tellOfNear(ctx context.Context, near func() []gateway.Near, w io.Writer, ticks <-chan time.Time) (ended <-chan struct{}) {
	var said nearSaid
	return eachTick(ctx, ticks, func(time.Time) {
		for _, n := range said.fresh(near()) {
			fmt.Fprintf(w, "writ: nearly used up: %s, %d %%; %s\n", n.What, n.Percent, n.Then)
		}
	}, func() {})
}

// stateSize is what a state directory takes.
type stateSize struct {
	Dir   string         `json:"dir"`
	Bytes int64          `json:"bytes"`
	Free  uint64         `json:"free_bytes,omitempty"` // of its file system, where that is known
	Near  []gateway.Near `json:"near,omitempty"`
}

func sizeOf(dir string) *stateSize {
	s := &stateSize{Dir: dir}
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if fi, err := d.Info(); err == nil {
				s.Bytes += fi.Size()
			}
		}
		return nil // what is gone meanwhile takes nothing
	})
	s.Free, _, _ = gateway.DiskRoom(dir)
	s.Near = nearIn(dir)
	return s
}

// A file system has little room where so little of it is free, in either measure.
const (
	leastFree    = 256 << 20
	leastPercent = 5
)

// nearIn returns what of the bounds of a state directory is nearly used up.
func nearIn(dir string) (out []gateway.Near) {
	if free, size, ok := gateway.DiskRoom(dir); ok && size > 0 && (free < leastFree || 100*(free/1024)/(size/1024+1) < leastPercent) {
		out = append(out, gateway.Near{What: "the disk of the state directory", Percent: int(100 - 100*(free/1024)/(size/1024+1)),
			Then: fmt.Sprintf("%s are free: without room no act is let pass; writ audit redact --days N --shrink, or make room", sizeWords(int64(free)))})
	}
	if fi, err := os.Stat(filepath.Join(dir, sqlite.JournalName)); err == nil && 100*fi.Size()/sqlite.MaxJournal >= gateway.NearlyFull {
		out = append(out, gateway.Near{What: "the log's journal", Percent: int(100 * fi.Size() / sqlite.MaxJournal),
			Then: "appends fail then, and with them all acts: the database takes nothing, look for why it cannot be written (writ audit verify)"})
	}
	if all, err := clientsOf(dir).All(); err == nil && 100*len(all)/principal.MaxClients >= gateway.NearlyFull {
		out = append(out, gateway.Near{What: "registered clients", Percent: 100 * len(all) / principal.MaxClients,
			Then: "no more can be added: writ client remove"})
	}
	return out
}

func sizeWords(n int64) string {
	if n >= 10e9 {
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

func (s *stateSize) print(w io.Writer) {
	if s == nil {
		return
	}
	fmt.Fprintf(w, "State: %s on disk in %s", sizeWords(s.Bytes), cli.Printable(s.Dir))
	when(w, s.Free > 0, ", %s free", sizeWords(int64(s.Free)))
	fmt.Fprintln(w)
	printNear(w, s.Near)
}

func printNear(w io.Writer, all []gateway.Near) {
	for _, n := range all {
		fmt.Fprintf(w, "  nearly used up: %s", n.What)
		when(w, n.Session != "", " (%s)", n.Session)
		fmt.Fprintf(w, ", %d %%: %s\n", n.Percent, cli.OneLine(n.Then, 300))
	}
}

func printRetained(w io.Writer, r *gateway.Retained) {
	if r == nil {
		return
	}
	fmt.Fprintf(w, "  kept for %s", cli.Number(r.Days, "day", "days"))
	when(w, r.Archive != "", ", then in %s", cli.Printable(r.Archive))
	fmt.Fprintf(w, "; since this gateway started %s redacted", cli.Number(r.Redacted, "session", "sessions"))
	when(w, r.Archive != "", ", %s written", cli.Number(r.Archives, "archive", "archives"))
	when(w, !r.Last.IsZero(), "; looked for last at %s", r.Last.Format(time.RFC3339))
	fmt.Fprintln(w)
	when(w, r.Fault != "", "    it FAILED, and what failed stays in the log: %s\n", cli.OneLine(r.Fault, 400))
	when(w, r.Due > 0, "    sessions that wait for the next archive, of %[2]s: %[1]d\n", r.Due, r.Next.Format(time.RFC3339))
	for _, h := range r.Held {
		fmt.Fprintf(w, "    %s stays: %s\n", h.Session, cli.OneLine(h.Why, 300))
	}
	when(w, r.HeldIn > len(r.Held), "    and %d more\n", r.HeldIn-len(r.Held))
}

// showEvery is how often a head that moved is shown to the witnesses: what came since can
// be rolled back without their noticing.
const showEvery = 10 * time.Minute

// witnesses are those of a gateway.
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
	if len(o.cfg.Witnesses) == 0 {
		return &witnesses{}, nil
	}
	_, own, err := logKey(o.state)
	if err != nil {
		return nil, err
	}
	ws := &witnesses{of: o.cfg.Witnesses, log: log, dir: filepath.Join(o.state, statedir.WitnessedDir)}
	for _, w := range o.cfg.Witnesses {
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
	for i, err := range ws.show(ctx, st, upkeepClock()) {
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

// show shows the head to all of them, keeps what they cosigned, and says what failed, in
// the gateway's log once until it is another. The errors are in their order.
func (ws *witnesses) show(ctx context.Context, st *sqlite.Store, now time.Time) []error {
	ws.last = now
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

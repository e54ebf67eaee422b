package main

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"iter"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/memoryserver"
)

// evidenceStore is what a replay reads beside the records: of a store or of a bundle.
type evidenceStore interface {
	Blob(ctx context.Context, name audit.Digest) ([]byte, error)
	Value(ctx context.Context, session string, n uint64, name string) ([]byte, error)
	reader
	Head(ctx context.Context, session string) (uint64, error)
}

// reader yields the items of one session from a number on, of the moment that is verified.
type reader interface {
	Read(ctx context.Context, session string, from uint64) iter.Seq2[audit.Item, error]
}

// decidedAgain verifies a log and decides again what it records, on all processors. What
// did not find room while the log was read is read once more, a session after the other. Of decisions that
// come out otherwise the first is named: the log is verified up to that one.
func decidedAgain(ctx context.Context, verify func(audit.VerifyOptions) (*audit.Report, error), st evidenceStore, log reader, o audit.VerifyOptions, progress func(int64)) (*verifyReport, error) {
	all := newLanes(ctx, st, runtime.GOMAXPROCS(0))
	o.Replay = func(rec *audit.Record, it *audit.Item) error {
		if it.Index%4096 == 0 {
			gathered()
		}
		progress(it.Index)
		return all.step(rec, it)
	}
	rep, err := verify(o)
	if all.end(); err != nil {
		return nil, err
	}
	if p := all.rest(log); p != nil && rep.Problem == nil {
		rep.Problem = p
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f := all.first.Load(); f != nil {
		o.Replay = func(_ *audit.Record, it *audit.Item) error {
			if it.Index == f.index {
				return f.err
			}
			return nil
		}
		rep, err = verify(o)
		return &verifyReport{Report: rep}, err
	}
	return all.sum(rep), nil
}

// lanes decide again side by side: all records of a session in one lane, in their order.
type lanes struct {
	ctx     context.Context
	seed    maphash.Seed
	lanes   []*lane
	running sync.WaitGroup
	first   atomic.Pointer[fault]
}

// fault is a record that does not follow from those before it.
type fault struct {
	index int64
	err   error
}

type lane struct {
	*replay
	next    []itemOf // to be handed on
	records chan []itemOf
}

type itemOf struct {
	record *audit.Record
	item   *audit.Item
}

// handed is how many records a lane is handed at once, and ahead how many such hands are read before
// they are decided again.
const (
	handed = 16
	ahead  = 2
)

func newLanes(ctx context.Context, st evidenceStore, n int) *lanes {
	ls := &lanes{ctx: ctx, seed: maphash.MakeSeed()}
	rules := gateway.NewRulesets(st)
	for range n {
		ls.lanes = append(ls.lanes, &lane{replay: &replay{st: st, rules: rules, room: roomForSessions / int64(n),
			sessions: map[string]*folded{}, put: map[string]*putAway{}, memories: map[string]*memoryserver.Fold{}}})
	}
	ls.begin()
	return ls
}

func (ls *lanes) begin() {
	for _, l := range ls.lanes {
		l.records = make(chan []itemOf, ahead)
		ls.running.Go(func() {
			for some := range l.records {
				for _, r := range some {
					if ls.beyond(r.item) {
						continue // of what comes behind the first nobody asks
					}
					if err := l.step(ls.ctx, r.record, r.item); err != nil {
						ls.fail(&fault{r.item.Index, err})
					}
				}
			}
		})
	}
}

// hand hands on what gathered.
func (l *lane) hand() {
	if len(l.next) > 0 {
		l.records <- l.next
		l.next = nil
	}
}

func (ls *lanes) beyond(it *audit.Item) bool {
	f := ls.first.Load()
	return f != nil && it.Index > f.index
}

func (ls *lanes) fail(f *fault) {
	for was := ls.first.Load(); was == nil || f.index < was.index; was = ls.first.Load() {
		if ls.first.CompareAndSwap(was, f) {
			return
		}
	}
}

var errFailed = errors.New("a decision does not come out as it was recorded")

func (ls *lanes) step(rec *audit.Record, it *audit.Item) error {
	if ls.beyond(it) {
		return errFailed
	}
	l := ls.lanes[maphash.String(ls.seed, rec.Session)%uint64(len(ls.lanes))]
	if l.next == nil {
		l.next = make([]itemOf, 0, handed)
	}
	if l.next = append(l.next, itemOf{rec, it}); len(l.next) == handed {
		l.hand()
	}
	return nil
}

// end waits for all lanes.
func (ls *lanes) end() {
	for _, l := range ls.lanes {
		l.hand()
		close(l.records)
	}
	ls.running.Wait()
}

// rest decides again the sessions that had records after they were put away. What is read
// of each has to be as many records as were verified.
func (ls *lanes) rest(log reader) *audit.Problem {
	left := map[string]uint64{}
	for _, l := range ls.lanes {
		maps.DeleteFunc(l.put, func(session string, p *putAway) bool {
			if p.more > 0 {
				left[session] = p.more
			}
			return p.more > 0
		})
	}
	if len(left) == 0 {
		return nil
	}
	ls.begin()
	defer ls.end()
	for session, n := range left {
		if got := ls.again(log, session, n); got < n {
			return &audit.Problem{Session: session, N: got + 1, Fault: audit.LogIndexes, Detail: "the session is not found as it stands in the log"}
		}
	}
	return nil
}

// again hands on the first n records of a session, and returns how many there are: n where
// nobody asks for what comes behind those that were handed on.
func (ls *lanes) again(log reader, session string, n uint64) (got uint64) {
	for it, err := range log.Read(ls.ctx, session, 1) {
		rec, bad := audit.ParseRecord(it.Leaf)
		if err != nil || bad != nil || rec.Session != session || rec.N != got+1 {
			break
		}
		if wrong, _ := audit.CheckValues(rec, it.Values); wrong != "" {
			break
		}
		if got++; ls.step(rec, &it) != nil || got == n {
			return n
		}
	}
	return got
}

// sum adds up what all lanes found.
func (ls *lanes) sum(rep *audit.Report) *verifyReport {
	sum := &verifyReport{Report: rep}
	ended := rep.Problem == nil
	for _, l := range ls.lanes {
		for _, s := range l.sessions {
			l.tally.Add(s.Tally)
		}
		for _, p := range l.put {
			l.tally.Add(p.Tally)
		}
		sum.Add(l.tally)
		for _, m := range l.memories {
			sum.MemoryEvents += m.Rechecked
			sum.MemoryUnchecked += m.Unchecked
			// A text that is gone: where all records were read, the first of those is the problem.
			if p := m.End(); p != nil && ended && (rep.Problem == nil || p.Index < rep.Problem.Index) {
				rep.Problem = p
			}
		}
	}
	if ended && rep.Problem == nil && sum.Unended > 0 {
		rep.Problem = &audit.Problem{Index: rep.Size, Fault: audit.ValueMissing, Detail: "values are gone by a redaction that is not in the log"}
	}
	return sum
}

// replay decides again what a log records, and counts.
type replay struct {
	st       evidenceStore
	rules    *gateway.Rulesets
	tally    gateway.Tally
	sessions map[string]*folded
	bytes    int64 // of sessions
	room     int64
	put      map[string]*putAway
	memories map[string]*memoryserver.Fold
}

// roomForSessions bounds what the sessions that are being decided again take, by their own
// estimate; the one at work may take more.
var roomForSessions = int64(16 << 20) // a test gives less

// folded is a session as far as its records were read.
type folded struct {
	*gateway.Replayer
	bytes, used int64
}

// putAway is a session whose state was let go: usually it has no more records. If it has,
// it is decided again from its first.
type putAway struct {
	gateway.Tally
	more uint64 // the last record that came since
}

func (r *replay) step(ctx context.Context, rec *audit.Record, it *audit.Item) error {
	if memoryserver.IsLog(rec.Session) {
		if r.memories[rec.Session] == nil {
			r.memories[rec.Session] = memoryserver.NewFold(r.st)
		}
		return r.memories[rec.Session].Step(ctx, it)
	}
	if p := r.put[rec.Session]; p != nil {
		p.more = rec.N
		return nil
	}
	s := r.sessions[rec.Session]
	if s == nil {
		s = &folded{Replayer: r.rules.Replayer()}
		s.Certify()
		r.sessions[rec.Session] = s
	}
	err := s.Step(ctx, rec, it)
	if err == nil && rec.Kind == audit.KindClose && s.Unended == 0 { // behind its end comes the record of its redaction
		r.tally.Add(s.Tally)
		r.drop(rec.Session, s)
		return nil
	}
	s.used = it.Index
	bytes := s.Bytes()
	r.bytes += bytes - s.bytes
	if s.bytes = bytes; r.bytes > r.room {
		r.makeRoom(rec.Session)
	}
	return err
}

func (r *replay) drop(session string, s *folded) {
	r.bytes -= s.bytes
	delete(r.sessions, session)
}

// makeRoom puts sessions away but one, those first that had no record for longest.
func (r *replay) makeRoom(keep string) {
	ids := slices.SortedFunc(maps.Keys(r.sessions), func(a, b string) int { return cmp.Compare(r.sessions[a].used, r.sessions[b].used) })
	for _, id := range ids {
		if r.bytes <= r.room/8*7 {
			return
		}
		if s := r.sessions[id]; id != keep {
			r.put[id] = &putAway{Tally: s.Tally}
			r.drop(id, s)
		}
	}
}

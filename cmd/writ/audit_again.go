package main

import (
	"context"
	"errors"
	"hash/maphash"
	"iter"
	"runtime"
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
	Read(ctx context.Context, session string, from uint64) iter.Seq2[audit.Item, error]
	Head(ctx context.Context, session string) (uint64, error)
}

// decidedAgain verifies a log and decides again what it records, on all processors. Where
// anything is wrong it is done once more on one, in the order of the log: so that the
// first of it is named, and what is counted is what stands before.
func decidedAgain(ctx context.Context, verify func(audit.VerifyOptions) (*audit.Report, error), st evidenceStore, o audit.VerifyOptions, progress func(int64)) (*verifyReport, error) {
	all := newLanes(ctx, st, runtime.GOMAXPROCS(0))
	o.Replay = func(rec *audit.Record, it *audit.Item) error {
		progress(it.Index)
		return all.step(rec, it)
	}
	rep, err := verify(o)
	again := all.end()
	if again.Report = rep; err != nil || rep.Problem == nil && again.Problem == nil && !all.failed.Load() {
		return again, err
	}
	one := newReplay(st)
	o.Replay = func(rec *audit.Record, it *audit.Item) error {
		progress(it.Index)
		return one.step(ctx, rec, it)
	}
	if one.rep.Report, err = verify(o); err == nil {
		one.end()
	}
	return &one.rep, err
}

// lanes decide again side by side: all records of a session in one lane, in their order.
type lanes struct {
	ctx     context.Context
	seed    maphash.Seed
	lanes   []*lane
	running sync.WaitGroup
	failed  atomic.Bool
}

type lane struct {
	*replay
	records chan itemOf
}

type itemOf struct {
	record *audit.Record
	item   *audit.Item
}

// ahead is how many records of a lane are read before they are decided again.
const ahead = 64

func newLanes(ctx context.Context, st evidenceStore, n int) *lanes {
	ls := &lanes{ctx: ctx, seed: maphash.MakeSeed()}
	rules := gateway.NewRulesets(st)
	for range n {
		l := &lane{newReplay(st), make(chan itemOf, ahead)}
		l.rules = rules
		ls.lanes = append(ls.lanes, l)
		ls.running.Go(func() {
			for r := range l.records {
				if !ls.failed.Load() && l.step(ctx, r.record, r.item) != nil {
					ls.failed.Store(true)
				}
			}
		})
	}
	return ls
}

var errFailed = errors.New("a decision does not come out as it was recorded")

func (ls *lanes) step(rec *audit.Record, it *audit.Item) error {
	if ls.failed.Load() {
		return errFailed
	}
	ls.lanes[maphash.String(ls.seed, rec.Session)%uint64(len(ls.lanes))].records <- itemOf{rec, it}
	return nil
}

// end waits for all lanes and adds up what they found.
func (ls *lanes) end() *verifyReport {
	sum := &verifyReport{Report: &audit.Report{}}
	for _, l := range ls.lanes {
		close(l.records)
	}
	ls.running.Wait()
	for _, l := range ls.lanes {
		l.rep.Report = &audit.Report{}
		l.end()
		sum.Add(l.rep.Tally)
		sum.MemoryEvents += l.rep.MemoryEvents
		sum.MemoryUnchecked += l.rep.MemoryUnchecked
		if l.rep.Problem != nil {
			ls.failed.Store(true)
		}
	}
	return sum
}

// replay decides again what a log records, and counts.
type replay struct {
	st       evidenceStore
	rules    *gateway.Rulesets
	rep      verifyReport
	sessions map[string]*gateway.Replayer
	memories map[string]*memoryserver.Fold
}

func newReplay(st evidenceStore) *replay {
	return &replay{st: st, rules: gateway.NewRulesets(st), sessions: map[string]*gateway.Replayer{}, memories: map[string]*memoryserver.Fold{}}
}

func (r *replay) step(ctx context.Context, rec *audit.Record, it *audit.Item) error {
	if memoryserver.IsLog(rec.Session) {
		if r.memories[rec.Session] == nil {
			r.memories[rec.Session] = memoryserver.NewFold(r.st)
		}
		return r.memories[rec.Session].Step(ctx, rec, it)
	}
	s := r.sessions[rec.Session]
	if s == nil {
		s = r.rules.Replayer()
		s.Certify()
		r.sessions[rec.Session] = s
	}
	err := s.Step(ctx, rec, it)
	if err == nil && rec.Kind == audit.KindClose {
		r.rep.Add(s.Tally)
		delete(r.sessions, rec.Session)
	}
	return err
}

// end counts what is not closed, and finds texts that are gone: where all
// records were read, the first of those is the problem.
func (r *replay) end() {
	for _, s := range r.sessions {
		r.rep.Add(s.Tally)
	}
	ended := r.rep.Problem == nil
	for _, m := range r.memories {
		r.rep.MemoryEvents += m.Rechecked
		r.rep.MemoryUnchecked += m.Unchecked
		if p := m.End(); p != nil && ended && (r.rep.Problem == nil || p.Index < r.rep.Problem.Index) {
			r.rep.Problem = p
		}
	}
}

package memoryserver

import (
	"context"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/memory"
)

// sweepEvery is how often what time alone has changed is put on record. What is read is computed at the time of reading in any case.
const sweepEvery = time.Hour

// sweeper is who sweeps where no operator did: the keeper itself.
const sweeper = "writ"

// sweep records, before a decision that is written anyway, what has grown stale,
// which tests and episodes are over and which forecasts are due; once in
// sweepEvery, and nothing where nothing is. No timer runs. What fails is tried
// again an hour later: nothing rests on it. The caller holds mu.
func (k *Keeper) sweep() {
	now := k.now()
	if since := now.Sub(k.swept); since >= 0 && since < sweepEvery {
		return
	}
	k.swept = now
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	if k.catchUp(ctx) != nil {
		return // whoever writes next says why
	}
	if last := k.state.Swept(); !last.IsZero() && !now.Before(last) && now.Sub(last) < sweepEvery {
		return
	}
	decide := func(s *memory.State, now time.Time) memory.Decision {
		c := memory.Context{Policy: k.o.Policy, Namespace: k.o.Namespace, Mode: k.o.Mode, Principal: sweeper, Now: now}
		return memory.Operate(s, c, memory.CommandSweep, []byte("{}"))
	}
	if k.state.Head() == 0 {
		return
	}
	if d := decide(k.state, now); d.Outcome.Status == writ.Accepted && len(d.Event.Ops) > 0 {
		_, _, _ = k.write([]*request{{decide: decide}})
	}
}

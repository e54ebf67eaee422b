package gateway

import (
	"bytes"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/learn"
	"github.com/writ-project/writ/internal/strictjson"
)

// recording is a session on its way to be learned from, as a Replayer reads it.
type recording struct {
	session     *learn.Session
	definitions map[*ruleset]*learn.Definitions
	calls       map[uint64]int // steps of calls, by the number of the decision's record
}

// Learn has the Replayer keep what it reads of a session, for package learn. It is called
// before the first record.
func (r *Replayer) Learn() {
	r.learns = &recording{session: &learn.Session{}, definitions: map[*ruleset]*learn.Definitions{}, calls: map[uint64]int{}}
}

// Learned is what was read of the session so far, nil where nothing can be learned of it:
// it is of another engine, of no session, or no call was made in it.
func (r *Replayer) Learned() *learn.Session {
	if r.learns == nil || r.blind || r.session == nil || len(r.learns.calls) == 0 {
		return nil
	}
	return r.learns.session
}

// add takes in a step; nil takes in none.
func (l *recording) add(s learn.Step) {
	if l != nil {
		l.session.Steps = append(l.session.Steps, s)
	}
}

func (l *recording) opened(id string, key [32]byte) {
	if l != nil {
		l.session.ID, l.session.Key = id, key
	}
}

// settled takes in what a person said of an act whose outcome was not known.
func (l *recording) settled(decision uint64, happened bool) {
	if l == nil {
		return
	}
	if at, ok := l.calls[decision]; ok {
		l.add(learn.Step{Settled: &learn.Settled{Of: at, Happened: happened}})
	}
}

// call takes in a decision. A call that was made again, as one is that waited for a
// person, counts for what is learned once, as it was made last.
func (l *recording) call(n uint64, in gate.Input, rs *ruleset, d *gate.Decision) {
	if l == nil {
		return
	}
	for i := range l.session.Steps {
		c := l.session.Steps[i].Call
		if c != nil && !c.Made && c.Input.Call.Server == in.Call.Server && c.Input.Call.Tool == in.Call.Tool && c.Input.Call.Method == in.Call.Method &&
			bytes.Equal(c.Input.Call.Arguments.Raw(), in.Call.Arguments.Raw()) {
			c.Again = true
		}
	}
	if l.definitions[rs] == nil {
		l.definitions[rs] = &learn.Definitions{All: rs.definitions}
	}
	was := learn.JudgedOf(d)
	in.Policy, in.Catalogue, in.Session, in.Reading = nil, nil, nil, nil
	l.calls[n] = len(l.session.Steps)
	l.add(learn.Step{Call: &learn.Call{Input: in, Definitions: l.definitions[rs], Made: d.Allowed(), Number: n, Was: was}})
}

func (l *recording) result(decision uint64, answered gate.Result) {
	if l == nil {
		return
	}
	if at, ok := l.calls[decision]; ok {
		if answered.Value.Exists() { // an item is not kept, this is
			answered.Value, _ = strictjson.Parse(notNil(answered.Value.Raw()), strictjson.Result)
		}
		l.add(learn.Step{Result: &learn.Result{Of: at, Gate: answered}})
	}
}

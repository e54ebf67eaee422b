// Package approval is the one queue of calls that wait for a person, whatever
// surface he answers on. A question names one call byte for byte and is answered
// once; who comes second is told who was first. The queue decides nothing and keeps
// nothing: an answer counts when the gateway has it on record.
//
// It trusts its callers to say who answers. Nothing that came by way of the agent
// may reach Answer.
package approval

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/policy"
)

// The times of a question.
const (
	// Waits is how long a call is held for an answer.
	Waits = 45 * time.Second
	// Stands is how long its question stays open: the same call, made again, waits
	// for the same answer.
	Stands = 10 * time.Minute
)

// MaxOpen bounds the questions that are open at a time: an agent that asks for everything
// asks for nothing.
const MaxOpen = 100

const (
	maxSession = 10 // of one session
	// maxAnew bounds how often one question is shown anew.
	maxAnew = 5
)

// Errors of Answer.
var (
	ErrUnknown  = errors.New("there is no such question, or not any more")
	ErrAnswered = errors.New("somebody else answered first")
	// ErrOver is what Effects.Settle fails with where the session is closed.
	ErrOver = errors.New("the session was closed; nothing was done")
)

// ErrNotOffered is of an answer that would keep what was not offered: the question
// stays open.
var ErrNotOffered = errors.New("that was not offered, or goes with no yes")

// NotKeptError says that a yes is on record and that nothing was kept from now on.
type NotKeptError struct{ Why error }

func (e *NotKeptError) Error() string { return "nothing was kept: " + e.Why.Error() }
func (e *NotKeptError) Unwrap() error { return e.Why }

// Question is one call that waits. It is shown to a person as it is: every text in
// it that a server or a model wrote is theirs, and is escaped where it is printed.
type Question struct {
	ID        string            `json:"id"` // short, for a person to type
	Session   string            `json:"session"`
	Server    string            `json:"server"`
	Tool      string            `json:"tool"`
	Arguments []byte            `json:"-"` // the exact bytes that a yes lets through
	Came      []byte            `json:"-"` // those of the client's call
	Answers   []byte            `json:"-"` // of what was answered inside it, which a yes lets through too
	Values    []gate.AskedValue `json:"-"`
	FromNowOn []Offer           `json:"from_now_on,omitempty"` // the widest first
	Asked     time.Time         `json:"asked"`
	Until     time.Time         `json:"until"` // an answer counts until then
	// Held is until when a call is held for the answer at most, zero where none is any more: who
	// made it was told that it waits, and makes it again.
	Held time.Time `json:"held,omitzero"`
	// Since is what Queue.Now said when the call was judged.
	Since uint64 `json:"-"`

	asks string // gate.Ask.Question
}

// came are the bytes of the client's call.
func (q *Question) came() []byte {
	if q.Came == nil {
		return q.Arguments
	}
	return q.Came
}

// Offer is what a person may keep from now on of a call that he said yes to: lines
// by which the same call passes without a question.
type Offer struct {
	Keep  Keep           `json:"keep"`
	Lines []policy.Grown `json:"lines"`
}

// Keep says what is kept of a call, and with that who can write there.
type Keep string

// What is kept. Closed is for who knows that strangers cannot make a member of the
// lines' collections appear, Ours for who knows that they cannot write its fields
// either, and Server for who knows that nobody does, and that strangers cannot have the
// server give what stands there; who does not is offered Value at most.
const (
	KeepServer Keep = "server" // a source that the contract calls external, as one that the server alone gives
	KeepSource Keep = "source" // a source that the contract calls system or user
	KeepOurs   Keep = "ours"   // a source that it calls external, as one where our own people alone write
	KeepClosed Keep = "closed" // the collection, as one that our own people alone add to
	KeepPlace  Keep = "place"  // every call of the tool at the host where this one is done
	KeepValue  Keep = "value"  // the exact values
)

// Effects are what an answer does, at the gateway whose call it is about.
type Effects struct {
	// Offers returns what may be kept of the call; nil where nothing is. It is asked
	// before a question is put, or shown anew.
	Offers func() []Offer
	// Settle puts it on record, and has what a yes keeps in force: both durably, before
	// the call goes on. keep is nil where the answer is good for this call alone. An
	// answer that fails is none, but with a NotKeptError it is a yes that keeps nothing.
	Settle func(a Answer, keep *Offer) error
	// Changed, unless nil, reports whether the policy is another by now than the question was
	// put under, and not that one with lines kept since: a yes then lets no later call pass.
	Changed func() bool
}

// Answer is what a person said.
type Answer struct {
	Yes   bool
	Keep  Keep       // with a yes: what of the offers is kept from now on, "" for nothing
	By    string     // who, as the operator knows him
	Label writ.Label // User, or Operator of an operator
}

// Queue holds the open questions of one gateway.
type Queue struct {
	mu     sync.Mutex
	open   []*entry // in the order in which they were asked
	ended  []*entry // lately, for who comes second
	there  int      // surfaces where somebody watches
	change chan struct{}
	now    uint64
	clock  func() time.Time
}

type entry struct {
	Question
	Effects
	anew   int    // how often it was shown anew
	calls  int    // that wait for the answer
	put    uint64 // Now when it was put
	taken  bool   // somebody answered
	told   bool   // and no call was held for it then
	moved  bool   // and the policy had changed
	answer Answer
	done   chan struct{} // closed when that is on record
	over   uint64        // Now then, 0 before
	kept   []policy.Grown
	err    error
}

// asked is how far an entry that is done was put to somebody.
func (e *entry) asked() gate.Asked {
	if e.taken && !e.answer.Yes {
		return gate.Denied
	}
	return gate.NotAsked
}

// New returns an empty queue.
func New(clock func() time.Time) *Queue {
	return &Queue{change: make(chan struct{}), clock: clock}
}

// Now counts the questions that were put and the answers that are on record.
func (q *Queue) Now() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.now
}

// There says that somebody watches for questions, until leave is called.
func (q *Queue) There() (leave func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.there++
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.there--
	})
}

// Watched reports whether somebody watches.
func (q *Queue) Watched() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.there > 0
}

// Surface puts a question to the person whose client made the call, and returns when
// he has answered, when he will not, or when its context ends.
type Surface func(context.Context, Question)

// Ask puts a call to a person, or joins the question that the same call put before
// for the same reasons, and waits until it is answered, at most for wait. A yes to that since
// the call was judged is the answer. Where its values
// were seen elsewhere since, that question has another id from then on: nobody answers to
// what he was not shown. A question that it put for other reasons ends. own, unless nil, is asked
// meanwhile: where it returns and nobody else watches, nobody is waited for. The status is "" where the
// question was answered with yes or ended with its call, Denied where with no, Pending where it stands open, Expired
// where it ended unanswered. kept are the lines that are in force by the answer.
func (q *Queue) Ask(ctx context.Context, of Question, asks string, wait time.Duration, does Effects, own Surface) (kept []policy.Grown, asked gate.Asked, err error) {
	if does.Offers != nil && q.isNew(of, asks) {
		of.FromNowOn = does.Offers()
	}
	e, shown, ok := q.enter(of, asks, wait, does)
	if !ok {
		return nil, gate.NotAsked, nil
	}
	var left <-chan struct{} // closed when own has returned
	if own != nil {
		asked, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			own(asked, shown)
		}()
		defer func() {
			cancel()
			<-ended
		}()
		left = ended
	}
	timer := time.NewTimer(min(wait, shown.Until.Sub(q.clock())))
	defer timer.Stop()
	for waits := true; waits; {
		select {
		case <-e.done:
			return e.kept, e.asked(), e.err
		case <-left:
			left, waits = nil, q.Watched()
		case <-timer.C:
			waits = false
		case <-ctx.Done():
			waits = false
		}
	}
	q.mu.Lock()
	q.expire()
	open, taken := slices.Contains(q.open, e), e.taken
	if e.calls--; e.calls == 0 && !taken {
		e.Held = time.Time{}
	}
	q.mu.Unlock()
	if taken { // it is being put on record
		<-e.done
	}
	select {
	case <-e.done:
		return e.kept, e.asked(), e.err
	default:
	}
	if !open {
		return nil, gate.Expired, nil
	}
	return nil, gate.Pending, nil
}

// isNew reports whether a call would have a question of its own, or have one shown anew.
func (q *Queue) isNew(of Question, asks string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, room := q.find(&of, asks)
	return e == nil && room || e != nil && !e.taken && e.isOld(of)
}

// isOld reports whether more is known now of where a question's values were seen than it
// says. Who comes with less was judged before it was put. The caller holds mu.
func (e *entry) isOld(now Question) bool {
	if e.anew >= maxAnew {
		return false
	}
	if !slices.EqualFunc(e.Values, now.Values, func(a, b gate.AskedValue) bool { return a.Pointer == b.Pointer && a.Reason == b.Reason }) {
		return true
	}
	more := false
	for i, shown := range e.Values {
		seen := now.Values[i].Seen
		for _, at := range shown.Seen {
			if !slices.Contains(seen, at) {
				return false
			}
		}
		more = more || len(seen) > len(shown.Seen)
	}
	return more
}

// find returns the open question of that key in a call's session, or one that was answered
// with yes since the call was judged, and whether there is room for one. The caller holds mu.
func (q *Queue) find(of *Question, asks string) (e *entry, room bool) {
	q.expire()
	mine := 0
	for _, e := range q.open {
		if e.Session == of.Session {
			if mine++; e.asks == asks {
				return e, true
			}
		}
	}
	for _, e := range q.ended {
		if e.Session == of.Session && e.asks == asks && e.answer.Yes && (e.over == 0 || e.over > of.Since) {
			return e, true
		}
	}
	return nil, mine < maxSession && len(q.open) < MaxOpen
}

// hold notes that one more call waits for an entry, from now on and so long at most, and
// returns what is shown of it. The caller holds the queue's mu.
func (e *entry) hold(now time.Time, wait time.Duration) Question {
	e.calls++
	until := now.Add(min(wait, e.Until.Sub(now)))
	if wait > 0 && until.After(e.Held) {
		e.Held = until
	}
	return e.Question
}

// enter returns the open question of that key in the same session, or a new one, and what
// is shown of it while its call waits so long.
func (q *Queue) enter(of Question, asks string, wait time.Duration, does Effects) (*entry, Question, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, _ := q.find(&of, asks)
	if e != nil {
		if !e.taken && e.isOld(of) {
			of.ID, of.asks, of.Asked, of.Until, of.Held = NewID(), asks, e.Asked, e.Until, e.Held
			e.Question, e.Effects = of, does
			e.anew++
			q.changed()
		}
		return e, e.hold(q.clock(), wait), true
	}
	q.end(&of, q.now)
	if _, room := q.find(&of, asks); !room {
		return nil, Question{}, false
	}
	of.ID, of.asks = NewID(), asks
	of.Asked = q.clock()
	of.Until = of.Asked.Add(Stands)
	q.now++
	e = &entry{Question: of, Effects: does, put: q.now, done: make(chan struct{})}
	q.open = append(q.open, e)
	q.changed()
	return e, e.hold(of.Asked, wait), true
}

// Passed ends the open questions that were put of a call before it was judged to need none:
// a yes to one would let the same call pass another time.
func (q *Queue) Passed(of Question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end(&of, of.Since)
}

// Over ends the open questions of a session that was closed: no answer to one would count.
func (q *Queue) Over(session string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(func(e *entry) bool { return e.Session == session })
}

// end ends the open questions of a call that were put until then. The caller holds mu.
func (q *Queue) end(of *Question, until uint64) {
	q.drop(func(e *entry) bool {
		return e.put <= until && e.Session == of.Session && e.Server == of.Server && e.Tool == of.Tool && bytes.Equal(e.came(), of.came()) && bytes.Equal(e.Answers, of.Answers)
	})
}

// drop ends open questions, and who waits for one has its call judged again. The caller
// holds mu.
func (q *Queue) drop(which func(*entry) bool) {
	n := len(q.open)
	q.open = slices.DeleteFunc(q.open, func(e *entry) bool {
		ends := which(e)
		if ends {
			close(e.done)
		}
		return ends
	})
	if len(q.open) < n {
		q.changed()
	}
}

// Asked returns a question that is open or was lately answered, with its key, "" for none.
func (q *Queue) Asked(id string) (of Question, asks string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expire()
	for _, e := range slices.Concat(q.open, q.ended) {
		if e.ID == id {
			return e.Question, e.asks
		}
	}
	return Question{}, ""
}

// NewID returns 40 random bits: unique for as long as it is looked for, and easy to type.
func NewID() string {
	var b [5]byte
	rand.Read(b[:])
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

// expire ends what stood too long. The caller holds mu.
func (q *Queue) expire() {
	now := q.clock()
	q.open = slices.DeleteFunc(q.open, func(e *entry) bool { return !now.Before(e.Until) })
	q.ended = slices.DeleteFunc(q.ended, func(e *entry) bool { return !now.Before(e.Until) })
}

// changed wakes who watches. The caller holds mu.
func (q *Queue) changed() {
	close(q.change)
	q.change = make(chan struct{})
}

// Answer ends a question: one answer wins, and it counts once it is on record, with
// what it keeps in force. The lines are those that are kept.
func (q *Queue) Answer(id string, a Answer) (kept []policy.Grown, err error) {
	q.mu.Lock()
	q.expire()
	i := slices.IndexFunc(q.open, func(e *entry) bool { return e.ID == id })
	if i < 0 {
		defer q.mu.Unlock()
		if slices.ContainsFunc(q.ended, func(e *entry) bool { return e.ID == id }) {
			return nil, ErrAnswered
		}
		return nil, ErrUnknown
	}
	e := q.open[i]
	var keep *Offer
	if at := slices.IndexFunc(e.FromNowOn, func(o Offer) bool { return o.Keep == a.Keep }); at >= 0 && a.Yes {
		keep = &e.FromNowOn[at]
	} else if a.Keep != "" {
		q.mu.Unlock()
		return nil, ErrNotOffered
	}
	q.open = slices.Delete(q.open, i, i+1)
	q.ended = append(q.ended, e)
	e.taken, e.told, e.answer = true, e.calls == 0, a
	q.changed()
	q.mu.Unlock()
	// On record without the lock: a session's lock is waited for.
	err = e.Settle(a, keep)
	moved := e.Changed != nil && e.Changed()
	q.mu.Lock()
	e.moved = moved
	q.now++
	e.over = q.now
	q.mu.Unlock()
	if keep != nil && err == nil {
		e.kept = keep.Lines
	} else if _, lost := errors.AsType[*NotKeptError](err); !lost {
		e.err = err
	}
	close(e.done)
	return e.kept, err
}

// Allowed reports whether that question of a session was lately answered with yes.
func (q *Queue) Allowed(session, asks string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.ended, func(e *entry) bool { return e.Session == session && e.asks == asks && e.answer.Yes })
}

// Said returns who answered a question lately, and what.
func (q *Queue) Said(id string) (Answer, bool) {
	e, ok := q.lately(id)
	return e.answer, ok
}

// lately is a question as it is that was answered lately.
func (q *Queue) lately(id string) (entry, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.ended {
		if e.ID == id {
			return *e, true
		}
	}
	return entry{}, false
}

// Open returns the open questions in the order in which they were asked, and a
// channel that is closed when they change.
func (q *Queue) Open() ([]Question, <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expire()
	out := make([]Question, len(q.open))
	for i, e := range q.open {
		out[i] = e.Question
	}
	return out, q.change
}

package memoryserver

import (
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/snapshot"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/memory"
)

// KindMemory is the kind of a record of a namespace after its first, which has
// kind open like every sequence of the log.
const KindMemory audit.Kind = "memory"

// valueProposal is the one value of a record: the text of what was proposed.
const valueProposal = "proposal"

// errNotRecorded says that an event could not be written. What rested on it
// did not happen, or is not known to have.
var errNotRecorded = errors.New("memory: the event could not be written")

var namespaceName = text.Pattern(`^[a-z0-9][a-z0-9-]{0,31}$`)

// ValidNamespace reports the form of a namespace's name.
func ValidNamespace(name string) bool { return namespaceName().MatchString(name) }

// logPrefix tells a namespace's records from a session's: no public id of a
// session holds a hyphen.
const logPrefix = "s_memory-"

// LogOf is the sequence of a namespace in the log.
func LogOf(namespace string) string { return logPrefix + namespace }

// Options of a Keeper.
type Options struct {
	Store     audit.Store
	Namespace string
	Policy    *memory.Policy
	Mode      memory.Mode
	// Intake is what is done to every proposal.
	Intake Intake
	// Clock is the recorded time; nil is the real one.
	Clock func() time.Time
	// Snapshots keep the state, so that it is not folded from its first event; nil
	// keeps none.
	Snapshots *snapshot.Dir
	// Nearness finds by meaning too; nil finds by words alone.
	Nearness *Nearness
}

// Keeper keeps one namespace: it is the only writer of its records, in this
// process. It is safe for concurrent use.
type Keeper struct {
	store audit.Store
	log   string
	o     Options
	// lasting ends with the process: for what goes on behind an answer.
	lasting context.Context

	writing sync.Mutex // is held while a snapshot is written

	mu      sync.Mutex // guards what follows
	state   *memory.State
	missing missing
	// kept is the record at which the newest snapshot stands, leaf the hash of the
	// newest record of the state.
	kept uint64
	leaf [sha256.Size]byte
}

const (
	maxPause      = 10 * time.Millisecond
	largeEvent    = 1 << 20 // bytes; a smaller one is within the bounds of events
	appendTimeout = 30 * time.Second
)

// Open reads a namespace from the log. One that is not there begins with its
// first event, written by the first decision. With audit.ErrAltered it returns
// the keeper too, of which everything fails with that error. What goes on behind
// answers ends with ctx.
func Open(ctx context.Context, o Options) (*Keeper, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if !ValidNamespace(o.Namespace) {
		return nil, errors.New("memory: a namespace's name has 1 to 32 of a-z, 0-9 and -")
	}
	k := &Keeper{store: o.Store, log: LogOf(o.Namespace), o: o, lasting: ctx}
	err := k.restart(ctx)
	if err == nil {
		err = k.catchUp(ctx)
	}
	if err == nil {
		k.keep()
		k.written() // a command may end before it is
	}
	return k, err
}

// InForce reports whether the namespace is under the keeper's policy and mode, or not
// begun: else proposals would all be refused, until an operator puts them in force.
func (k *Keeper) InForce() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state.Head() == 0 || k.state.PolicyHash() == k.o.Policy.Hash() && k.state.Mode() == k.o.Mode
}

// Nearness is what finds by meaning, nil where words alone do.
func (k *Keeper) Nearness() *Nearness { return k.o.Nearness }

func (k *Keeper) now() time.Time { return k.o.Clock().UTC().Truncate(time.Microsecond) }

// catchUp applies what the log has beyond the state. The caller holds mu or is
// the only one that knows k.
func (k *Keeper) catchUp(ctx context.Context) error {
	head, err := k.store.Head(ctx, k.log)
	if err != nil || head == k.state.Head() && len(k.missing) == 0 {
		return err
	}
	for it, err := range k.store.Read(ctx, k.log, k.state.Head()+1) {
		if err != nil {
			return err
		}
		rec, e, value, err := EventOf(&it)
		if err == nil {
			err = k.state.Apply(e, value)
		}
		if err != nil {
			return fmt.Errorf("memory: record %s/%d: %w", k.log, it.N, err)
		}
		k.missing.after(rec, &it, e)
		if k.applied(e, it.Leaf); erases(e) && k.drop(k.log) != nil {
			return errors.New("memory: a snapshot with an erased text cannot be removed")
		}
	}
	for n := range k.missing {
		return &audit.AlteredError{Session: k.log, N: n, Fault: audit.ValueMissing}
	}
	return nil
}

// EventOf reads a record of a namespace, its event, and its value where it was not erased.
func EventOf(it *audit.Item) (*audit.Record, *memory.Event, []byte, error) {
	rec, err := audit.ParseRecord(it.Leaf)
	if err != nil {
		return nil, nil, nil, err
	}
	if rec.Kind != KindMemory && rec.Kind != audit.KindOpen {
		return nil, nil, nil, errors.New("not a record of a memory")
	}
	e, err := memory.ParseEvent(rec.Data)
	if err != nil {
		return nil, nil, nil, err
	}
	if e.N != rec.N || e.At != memory.InstantOf(rec.Time) || LogOf(e.Namespace) != rec.Session {
		return nil, nil, nil, errors.New("the record is not the event's")
	}
	value, _ := it.Value(valueProposal)
	return rec, e, value, nil
}

// EventAt is an event of a namespace, and its value where that was not erased; nil if
// there is none of that number. A record that is no event is ErrReplay.
func EventAt(ctx context.Context, st audit.Store, namespace string, n uint64) (*memory.Event, []byte, error) {
	if n == 0 {
		return nil, nil, nil
	}
	for it, err := range st.Read(ctx, LogOf(namespace), n) {
		if err != nil {
			return nil, nil, err
		}
		_, e, value, err := EventOf(&it)
		if err != nil {
			err = fmt.Errorf("%w: n %d: %w", ErrReplay, n, err)
		}
		return e, value, err
	}
	return nil, nil, nil
}

// entryOf seals the record of an event.
func (k *Keeper) entryOf(e *memory.Event, value []byte, at time.Time) (audit.Entry, error) {
	data, err := e.Bytes()
	if err == nil && len(data) > largeEvent {
		_, err = memory.ParseEvent(data) // what nobody can read back is not written
	}
	if err != nil {
		return audit.Entry{}, err
	}
	rec := audit.Record{Kind: KindMemory, Session: k.log, N: e.N, Time: at, Data: data}
	if e.N == 1 {
		rec.Kind = audit.KindOpen
	}
	if value == nil {
		return audit.Seal(rec)
	}
	v := audit.Value{Name: valueProposal, Bytes: value}
	if _, err := crand.Read(v.Salt[:]); err != nil {
		return audit.Entry{}, err
	}
	return audit.Seal(rec, v)
}

// Propose decides a proposal, writes its event and returns the outcome. An
// error says that nothing is known to have been written.
func (k *Keeper) Propose(ctx context.Context, c memory.Context, p writ.Proposal) (memory.Outcome, error) {
	c = k.o.Intake.Of(c, p)
	d, err := k.do(ctx, func(s *memory.State, now time.Time) memory.Decision {
		c.Policy, c.Namespace, c.Mode, c.Now = k.o.Policy, k.o.Namespace, k.o.Mode, now
		return memory.Handle(s, c, p)
	})
	return d.Outcome, err
}

// Operate decides an operator's command, writes its event and, where it erases,
// takes the texts out of the log. The principal is a person the
// caller has authenticated; nothing that came by way of the agent gets here.
func (k *Keeper) Operate(ctx context.Context, principal, command string, args []byte) (memory.Decision, error) {
	d, err := k.do(ctx, func(s *memory.State, now time.Time) memory.Decision {
		c := memory.Context{Policy: k.o.Policy, Namespace: k.o.Namespace, Mode: k.o.Mode, Principal: principal, Now: now}
		return memory.Operate(s, c, command, args)
	})
	if err != nil || d.Outcome.Status == writ.Rejected {
		return d, err
	}
	return d, k.Purge(ctx, d.Event)
}

// Purge takes the texts that an event erases out of the log. Done again it does nothing: whoever finds the event and not the end of it, goes on.
func (k *Keeper) Purge(ctx context.Context, e *memory.Event) error {
	records, erases := e.Erased()
	if !erases {
		return nil
	}
	if err := errors.Join(k.drop(k.log), k.drop(k.onDisk())); err != nil {
		return fmt.Errorf("memory: a text could not be erased: %w", err)
	}
	if err := k.store.Erase(ctx, k.log, records...); err != nil {
		return fmt.Errorf("memory: a text could not be erased: %w", err)
	}
	return nil
}

// Read calls f with the state as it is in the log now. f must not keep it.
func (k *Keeper) Read(ctx context.Context, f func(s *memory.State, now time.Time)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.catchUp(ctx); err != nil {
		return err
	}
	f(k.state, k.now())
	return nil
}

// do has a decision made on the newest state and its event written, one after the
// other. What was begun is ended, whoever has gone meanwhile.
func (k *Keeper) do(ctx context.Context, decide func(*memory.State, time.Time) memory.Decision) (d memory.Decision, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendTimeout)
	defer cancel()
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		// Of what an append with another error was about nothing is known: it is
		// not tried again.
		if d, err = k.write(ctx, decide); !errors.Is(err, audit.ErrConflict) || ctx.Err() != nil {
			break
		}
		// Another process was faster. Whoever lost waits a little, and not each for
		// the same time.
		time.Sleep(time.Duration(rand.Int64N(int64(maxPause))))
	}
	if err != nil {
		return memory.Decision{}, fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	return d, nil
}

// write decides and makes one append. What could not be applied is not appended
// either.
func (k *Keeper) write(ctx context.Context, decide func(*memory.State, time.Time) memory.Decision) (d memory.Decision, err error) {
	if err = k.catchUp(ctx); err == nil && k.state.Head() == 0 {
		err = k.begin(ctx)
	}
	if err != nil {
		return d, err
	}
	now := k.now()
	if d, err = decided(decide, k.state, now); err != nil {
		return d, err
	}
	return d, k.append(ctx, &d, now)
}

// append writes the event of a decision and applies it.
func (k *Keeper) append(ctx context.Context, d *memory.Decision, now time.Time) error {
	entry, err := k.entryOf(d.Event, d.Value, now)
	if err != nil {
		return err
	}
	commit, err := k.state.Prepare(d.Event, d.Value)
	if err != nil {
		return err
	}
	if _, err = k.store.Append(ctx, k.log, k.state.Head(), []audit.Entry{entry}); err != nil {
		return err
	}
	commit()
	k.applied(d.Event, entry.Leaf())
	k.keep()
	return nil
}

// applied has what lies beside the state follow an event that was applied, whose
// record has that leaf.
func (k *Keeper) applied(e *memory.Event, leaf []byte) {
	k.touched(e)
	k.leaf = sha256.Sum256(leaf)
	if erases(e) {
		k.kept = 0 // who erases drops the snapshot
	}
}

// opener is who begins a namespace: whoever wrote the configuration.
const opener = "operator"

// decided makes the decision. One that fails as nothing should is not made, and
// ends nobody else's.
func decided(decide func(*memory.State, time.Time) memory.Decision, s *memory.State, now time.Time) (d memory.Decision, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("memory: the decision failed")
		}
	}()
	if d = decide(s, now); d.Event == nil {
		err = errors.New("a decision without an event")
	}
	return d, err
}

// begin writes the first event of a namespace, and its policy as a blob that
// every later event names.
func (k *Keeper) begin(ctx context.Context) error {
	if _, err := k.store.PutBlob(ctx, k.o.Policy.Source()); err != nil {
		return err
	}
	now := k.now()
	d := memory.Operate(k.state, memory.Context{Policy: k.o.Policy, Namespace: k.o.Namespace, Mode: k.o.Mode, Principal: opener, Now: now},
		memory.CommandOpen, []byte("{}"))
	if d.Event == nil {
		return errors.New("memory: the namespace cannot be begun")
	}
	return k.append(ctx, &d, now)
}

package memoryserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/memory"
)

// ErrReplay says that a recorded event is not what the memory decides on what
// the log says it was decided on.
var ErrReplay = errors.New("memory: the record says something else than the memory decides")

// IsLog reports whether a sequence of the log is a namespace's.
func IsLog(session string) bool { return strings.HasPrefix(session, logPrefix) }

// Fold folds the records of one namespace and decides each event again.
type Fold struct {
	blobs  blobs
	state  *memory.State
	policy map[string]*memory.Policy

	missing missing         // in between the state lacks what was decided on
	kept    map[uint64]bool // records whose text is there

	// Rechecked counts the events that were decided again; Unchecked are those
	// of which what was proposed is not kept, or was erased.
	Rechecked, Unchecked int
	// Unfinished are the erasures whose texts are still in the log.
	Unfinished []uint64
}

// missing are records whose text is gone and whose erasure is still to come in the log.
type missing map[uint64]lost

type lost struct {
	changed bool // something of the state
	session string
	index   int64
}

// after takes in a record, and what its event erases out.
func (m missing) after(rec *audit.Record, it *audit.Item, e *memory.Event) {
	_, committed := rec.Commitment(valueProposal)
	if _, there := it.Value(valueProposal); committed && !there {
		m[e.N] = lost{len(e.Ops) > 0, rec.Session, it.Index}
	}
	erased, _ := e.Erased()
	for _, n := range erased {
		delete(m, n)
	}
}

type blobs interface {
	Blob(ctx context.Context, name audit.Digest) ([]byte, error)
}

// NewFold folds with the policies a store holds.
func NewFold(b blobs) *Fold {
	return &Fold{blobs: b, state: memory.New(), policy: map[string]*memory.Policy{}, missing: missing{}, kept: map[uint64]bool{}}
}

// State is what the records so far come to. It must not be changed.
func (f *Fold) State() *memory.State { return f.state }

// End says, after the last record, whether a text is gone that no recorded
// erasure took; nil is none.
func (f *Fold) End() *audit.Problem {
	if len(f.missing) == 0 {
		return nil
	}
	n := slices.Min(slices.Collect(maps.Keys(f.missing)))
	m := f.missing[n]
	return &audit.Problem{Index: m.index, Session: m.session, N: n, Fault: audit.ValueMissing, Detail: "no recorded erasure took its text"}
}

// Step folds the next record. An error with ErrReplay names what differs.
func (f *Fold) Step(ctx context.Context, it *audit.Item) error {
	rec, e, value, err := EventOf(it)
	if err != nil {
		return fmt.Errorf("%w: n %d: %w", ErrReplay, it.N, err)
	}
	f.kept[e.N] = value != nil
	erased, _ := e.Erased()
	if slices.ContainsFunc(erased, func(n uint64) bool { return f.kept[n] }) {
		f.Unfinished = append(f.Unfinished, e.N)
	}
	var p *memory.Policy
	if e.V == memory.EventVersion { // those before are not decided again
		if p, err = f.policyOf(ctx, e.Policy); err != nil {
			return err
		}
	}
	checked, err := memory.Recheck(f.state, p, e, value)
	if errors.Is(err, memory.ErrRecheck) && f.mayLack(e) {
		checked, err = false, nil
	}
	if err != nil {
		return fmt.Errorf("%w: n %d: %w", ErrReplay, rec.N, err)
	}
	f.missing.after(rec, it, e)
	if checked {
		f.Rechecked++
	} else {
		f.Unchecked++
	}
	if err := f.state.Apply(e, value); err != nil {
		return fmt.Errorf("%w: n %d: %w", ErrReplay, rec.N, err)
	}
	return nil
}

// mayLack reports whether an event may rest on a text that is gone: it names
// what a record without its text made, or was decided by names or by what was
// refused, which name nothing.
func (f *Fold) mayLack(e *memory.Event) bool {
	changed := func(n uint64) bool { return f.missing[n].changed }
	if e.Tool == memory.ToolEntity || e.Status == writ.Rejected || e.Kind == memory.KindCommand {
		return slices.ContainsFunc(slices.Collect(maps.Keys(f.missing)), changed)
	}
	return slices.ContainsFunc(e.Refers(), changed)
}

func (f *Fold) policyOf(ctx context.Context, hash string) (*memory.Policy, error) {
	if p := f.policy[hash]; p != nil {
		return p, nil
	}
	name, err := audit.ParseDigest(hash)
	if err != nil {
		return nil, fmt.Errorf("%w: no policy of that name", ErrReplay)
	}
	b, err := f.blobs.Blob(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%w: its policy: %w", ErrReplay, err)
	}
	p, faults := memory.ParsePolicy("policy", b)
	if len(faults) > 0 || p.Hash() != hash {
		return nil, fmt.Errorf("%w: its policy is none of this version", ErrReplay)
	}
	f.policy[hash] = p
	return p, nil
}

package memoryserver

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

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

	// Rechecked counts the events that were decided again; Unchecked are those
	// of which what was proposed is not kept, or was erased.
	Rechecked, Unchecked int
}

type blobs interface {
	Blob(ctx context.Context, name audit.Digest) ([]byte, error)
}

// NewFold folds with the policies a store holds.
func NewFold(b blobs) *Fold {
	return &Fold{blobs: b, state: memory.New(), policy: map[string]*memory.Policy{}}
}

// State is what the records so far come to. It must not be changed.
func (f *Fold) State() *memory.State { return f.state }

// Step folds the next record. An error with ErrReplay names what differs.
func (f *Fold) Step(ctx context.Context, rec *audit.Record, it *audit.Item) error {
	e, value, err := eventOf(it)
	if err != nil {
		return fmt.Errorf("%w: n %d: %w", ErrReplay, rec.N, err)
	}
	p, err := f.policyOf(ctx, e.Policy)
	if err != nil {
		return err
	}
	checked, err := memory.Recheck(f.state, p, e, value)
	if err != nil {
		return fmt.Errorf("%w: n %d: %w", ErrReplay, rec.N, err)
	}
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

func (f *Fold) policyOf(ctx context.Context, hash string) (*memory.Policy, error) {
	if p := f.policy[hash]; p != nil {
		return p, nil
	}
	var name audit.Digest
	raw, err := hex.DecodeString(hash)
	if err != nil || len(raw) != len(name) {
		return nil, fmt.Errorf("%w: no policy of that name", ErrReplay)
	}
	copy(name[:], raw)
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

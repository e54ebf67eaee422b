package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/writ-project/writ/policy"
)

// GrownFile is where what a person allowed from now on stands, beside a policy:
// policy.yaml has policy.grown.yaml.
func GrownFile(file string) string {
	return strings.TrimSuffix(file, filepath.Ext(file)) + ".grown.yaml"
}

// GrownLock is the file by which HoldGrown keeps others from what grew beside a policy.
func GrownLock(file string) string { return GrownFile(file) + ".lock" }

// HoldGrown keeps what grew beside a policy to one process at a time, from before it is read
// by Grow until done is called, after it was written. It waits some seconds at most.
func HoldGrown(ctx context.Context, file string) (done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	l := flock.New(GrownLock(file), flock.SetPermissions(0o600))
	switch ok, err := l.TryLockContext(ctx, 20*time.Millisecond); {
	case ctx.Err() != nil:
		return nil, errors.New("another process has held what grew beside the policy for too long")
	case err != nil || !ok:
		return nil, fmt.Errorf("what grew beside the policy cannot be locked: %w", err)
	}
	return func() { l.Close() }, nil
}

// LoadPolicy reads and parses a policy file with what grew beside it.
func LoadPolicy(file string) (*policy.Policy, error) {
	p, _, err := loadPolicy(file)
	return p, err
}

// loadPolicy returns the file's own text too.
func loadPolicy(file string) (p *policy.Policy, source []byte, err error) {
	grown, err := readGrown(file)
	if err != nil {
		return nil, nil, err
	}
	if source, err = ReadFile(file); err != nil {
		return nil, nil, err
	}
	p, err = withGrown(file, source, grown)
	return p, source, err
}

// readGrown reads it, nil where nothing grew.
func readGrown(file string) ([]byte, error) {
	if _, err := os.Lstat(GrownFile(file)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return ReadFile(GrownFile(file))
}

// withGrown parses both as one text. A fault says in which file it stands.
func withGrown(file string, source, grown []byte) (*policy.Policy, error) {
	all, lines := policy.WithGrown(source, grown)
	p, faults := policy.Parse(file, all)
	if len(faults) == 0 {
		return p, nil
	}
	for i := range faults {
		if f := &faults[i]; lines > 0 && f.Line > lines {
			f.File, f.Line = GrownFile(file), f.Line-lines
		}
	}
	return nil, Faults(faults)
}

// Grown is a policy with another text of what grew beside it.
type Grown struct {
	Was, Now *policy.Policy
	Text     []byte // of GrownFile, not written yet
}

// Grow gives a policy lines more, and takes the one of a number from it (from 1; 0 for
// none). What grows is accepted, or there is an error.
func Grow(file string, more []policy.Grown, without int) (*Grown, error) {
	p, source, err := loadPolicy(file)
	if err != nil {
		return nil, err
	}
	lines := slices.Clone(p.Grown)
	if without > 0 {
		if without > len(lines) {
			return nil, errors.New("no line of that number has grown")
		}
		lines = slices.Delete(lines, without-1, without)
	}
	for _, g := range more {
		lines = policy.WithLine(lines, g)
	}
	out := &Grown{Was: p, Text: policy.GrownText(lines)}
	if out.Now, err = withGrown(file, source, out.Text); err != nil {
		return nil, err
	}
	return out, nil
}

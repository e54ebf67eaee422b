package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-project/writ/policy"
)

// GrownFile is where what a person allowed from now on stands, beside a policy:
// policy.yaml has policy.grown.yaml.
func GrownFile(file string) string {
	return strings.TrimSuffix(file, filepath.Ext(file)) + ".grown.yaml"
}

// LoadPolicy reads and parses a policy file with what grew beside it.
func LoadPolicy(file string) (*policy.Policy, error) {
	grown, err := readGrown(file)
	if err != nil {
		return nil, err
	}
	source, err := ReadFile(file)
	if err != nil {
		return nil, err
	}
	return withGrown(file, source, grown)
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

// Grow returns the text of what grew beside a policy, with lines more and without the
// one of a number (from 1; 0 for none). The policy is accepted with it, or there is an
// error and no text.
func Grow(file string, more []policy.Grown, without int) ([]byte, error) {
	p, err := LoadPolicy(file)
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
		same := func(o policy.Grown) bool {
			return o.Tool == g.Tool && o.Arg == g.Arg && o.From == g.From && string(o.Const) == string(g.Const) && o.Closed == g.Closed
		}
		if !slices.ContainsFunc(lines, same) {
			lines = append(lines, g)
		}
	}
	text := policy.GrownText(lines)
	source, err := ReadFile(file)
	if err == nil {
		_, err = withGrown(file, source, text)
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}

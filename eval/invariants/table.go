package invariants

import (
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"github.com/writ-project/writ/internal/strictyaml"
)

//go:embed table.yaml
var embedded []byte

// Table is a table that was read whole. What is read is what is shown and printed;
// Parse fills in what follows from where a row stands.
type Table struct {
	Commands   []Command   `yaml:"commands"`
	Invariants []Invariant `yaml:"invariants"`
}

// The programs whose commands show something.
const (
	Writ = "writ"
	Eval = "writ-eval"
)

// Command is one command of a program that shows something.
type Command struct {
	strictyaml.Place
	Name  string           `yaml:"name"`
	Run   []string         `yaml:"run"` // Writ or Eval, and its arguments with their placeholders
	Stdin string           `yaml:"stdin"`
	Exit  strictyaml.Whole `yaml:"exit"`
}

// Invariant is one row.
type Invariant struct {
	strictyaml.Place
	Number    strictyaml.Whole `yaml:"n"`     // in INVARIANTS.md, from 1; never given to another one
	Group     string           `yaml:"group"` // the heading it stands under
	ID        string           `yaml:"id"`    // as the seeds name it; "" for one of the project's own
	Statement string           `yaml:"statement"`
	Enforced  []string         `yaml:"enforced"` // package.Function or package.Type.Method
	Evidence  []Evidence       `yaml:"evidence"`
	Tests     []string         `yaml:"tests"` // each with its package in brackets where it has namesakes
	But       string           `yaml:"but"`   // what is claimed less than the seed says, in the open
}

// Evidence is one field of what a command prints, and what it must be: exactly one
// of the last four.
type Evidence struct {
	strictyaml.Place
	Of     string            `yaml:"of"`    // the command's name
	Field  string            `yaml:"field"` // JSON pointer into what it prints
	Is     strictyaml.String `yaml:"is"`
	Same   string            `yaml:"same"` // the pointer of another field that is equal
	Over   strictyaml.Whole  `yaml:"over"` // it is a whole number above this one
	Absent bool              `yaml:"absent"`
}

// Fault is one mistake of a table.
type Fault = strictyaml.Fault

// Load returns the product's table.
func Load() (*Table, error) {
	t, faults := Parse("table.yaml", embedded)
	if len(faults) > 0 {
		return nil, fmt.Errorf("%v", faults)
	}
	return t, nil
}

// placeholder is {dir}, the directory the commands share, or {command:/pointer}, a
// text an earlier command printed.
var placeholder = regexp.MustCompile(`\{([a-z][a-z-]*)(?::(/[^{}]*))?\}`)

// Parse reads a table: that there is one, or faults. That its rows say something is for
// the tests to look at: it is part of the program.
func Parse(file string, b []byte) (*Table, []Fault) {
	r := strictyaml.New(file)
	t := &Table{}
	if !r.Read(b, "a table has the keys commands and invariants", t) {
		return nil, r.Faults()
	}
	group := ""
	for i := range t.Invariants {
		v := &t.Invariants[i]
		v.Statement, v.But = strings.TrimSpace(v.Statement), strings.TrimSpace(v.But)
		v.Group = cmp.Or(v.Group, group)
		group = v.Group
	}
	return t, nil
}

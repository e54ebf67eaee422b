package invariants

import (
	_ "embed"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
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
		var all []error
		for _, f := range faults {
			all = append(all, errors.New(f.String()))
		}
		return nil, errors.Join(all...)
	}
	return t, nil
}

var (
	commandName = regexp.MustCompile(`^[a-z][a-z-]{1,30}$`)
	functionID  = regexp.MustCompile(`^[a-z][a-z/]*\.[A-Za-z]\w*(\.[A-Za-z]\w*)?$`)
	// placeholder is {dir}, the directory the commands share, or
	// {command:/pointer}, a text an earlier command printed.
	placeholder = regexp.MustCompile(`\{([a-z][a-z-]*)(?::(/[^{}]*))?\}`)
)

// Parse reads a table. What is returned has no fault, or there is no table. A
// table whose evidence could not fail is a fault: a row of the seeds needs a
// function, a field and a command that ran before.
func Parse(file string, b []byte) (*Table, []Fault) {
	r := strictyaml.New(file)
	t := &Table{}
	if root := r.Parse(b, "a table has the keys commands and invariants"); root != nil {
		r.Decode(root, t)
	}
	if r.Count() > 0 {
		return nil, r.Faults()
	}
	commands := map[string]bool{}
	used := map[string]bool{}
	for _, c := range t.Commands {
		switch {
		case !commandName.MatchString(c.Name) || c.Name == "dir" || commands[c.Name]:
			r.Fault(c.At("name"), "a command has a name of its own, of small letters", "name: gates")
		case len(c.Run) < 2 || c.Run[0] != Writ && c.Run[0] != Eval:
			r.Fault(c.Node, "a command is one of writ or writ-eval, with arguments", "run: [writ-eval, gates, --json]")
		}
		for _, a := range append([]string{c.Stdin}, c.Run...) {
			for _, m := range placeholder.FindAllStringSubmatch(a, -1) {
				if m[1] != "dir" && (!commands[m[1]] || m[2] == "") || m[1] == "dir" && m[2] != "" {
					r.Fault(c.Node, "a placeholder is {dir} or {command:/pointer} of a command above", "")
				}
				used[m[1]] = true
			}
		}
		commands[c.Name] = true
	}
	group := ""
	ids := map[string]bool{}
	for i := range t.Invariants {
		v := &t.Invariants[i]
		v.Statement, v.But = strings.TrimSpace(v.Statement), strings.TrimSpace(v.But)
		if v.Group == "" {
			v.Group = group
		}
		group = v.Group
		switch {
		case v.Number.N != i+1:
			r.Fault(v.At("n"), "invariants are numbered from 1 without a gap", "n: "+strconv.Itoa(i+1))
		case v.Group == "" || v.Statement == "":
			r.Fault(v.Node, "an invariant has a group and a statement", "")
		case v.ID != "" && ids[v.ID]:
			r.Fault(v.At("id"), "an id stands once", "")
		case v.ID != "" && (len(v.Enforced) == 0 || len(v.Evidence) == 0):
			r.Fault(v.Node, "what a seed demands is enforced by a function and shown by a command", "")
		case v.ID == "" && len(v.Tests) == 0:
			r.Fault(v.Node, "an invariant is held by a test", "tests: [TestName]")
		}
		ids[v.ID] = true
		for _, e := range v.Enforced {
			if !functionID.MatchString(e) {
				r.Fault(v.At("enforced"), "not a function, as package.Function or package.Type.Method", "")
			}
		}
		for _, e := range v.Evidence {
			for _, p := range []string{e.Field, e.Same} {
				if _, err := strictjson.ParsePointer(p); err != nil || p == "" && p == e.Field {
					r.Fault(e.Node, "not a JSON pointer to a field", "field: /plan_gate/failed")
				}
			}
			if !commands[e.Of] {
				r.Fault(e.At("of"), "no command of that name", "")
			}
			ways := 0
			for _, given := range []bool{e.Is.Given(), e.Over.Given(), e.Same != "", e.Absent} {
				if given {
					ways++
				}
			}
			if ways != 1 {
				r.Fault(e.Node, "a field has exactly one of is, over, same and absent", "")
			}
			used[e.Of] = true
		}
	}
	for _, c := range t.Commands {
		if !used[c.Name] {
			r.Fault(c.Node, "a command nothing is shown by", "remove it")
		}
	}
	if r.Count() > 0 {
		return nil, r.Faults()
	}
	return t, nil
}

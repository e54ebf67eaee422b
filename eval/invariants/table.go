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

// Table is a table that was read whole.
type Table struct {
	Commands   []Command
	Invariants []Invariant
}

// The programs whose commands show something.
const (
	Writ = "writ"
	Eval = "writ-eval"
)

// Command is one command of a program that shows something.
type Command struct {
	Name    string
	Program string   // Writ or Eval
	Args    []string // with their placeholders
	Stdin   string
	Exit    int
}

// Invariant is one row.
type Invariant struct {
	Number    int    // in INVARIANTS.md, from 1; never given to another one
	Group     string // the heading it stands under
	ID        string // as the seeds name it; "" for one of the project's own
	Statement string
	Enforced  []string // package.Function or package.Type.Method
	Evidence  []Evidence
	Tests     []string // each with its package in brackets where it has namesakes
	But       string   // what is claimed less than the seed says, in the open
}

// Evidence is one field of what a command prints, and what it must be.
type Evidence struct {
	Of     string // the command's name
	Field  string // JSON pointer into what it prints
	Is     *string
	Same   string // the pointer of another field that is equal
	Over   *int   // it is a whole number above this one
	Absent bool
}

// Fault is one mistake of a table.
type Fault = strictyaml.Fault

type tableForm struct {
	Commands   strictyaml.Seq[commandForm]   `yaml:"commands"`
	Invariants strictyaml.Seq[invariantForm] `yaml:"invariants"`
}

type commandForm struct {
	strictyaml.Place
	Name  string           `yaml:"name"`
	Run   []string         `yaml:"run"`
	Stdin string           `yaml:"stdin"`
	Exit  strictyaml.Whole `yaml:"exit"`
}

type invariantForm struct {
	strictyaml.Place
	Number    strictyaml.Whole `yaml:"n"`
	Group     string           `yaml:"group"`
	ID        string           `yaml:"id"`
	Statement string           `yaml:"statement"`
	Enforced  []string         `yaml:"enforced"`
	Evidence  []evidenceForm   `yaml:"evidence"`
	Tests     []string         `yaml:"tests"`
	But       string           `yaml:"but"`
}

type evidenceForm struct {
	strictyaml.Place
	Of     string            `yaml:"of"`
	Field  string            `yaml:"field"`
	Is     strictyaml.String `yaml:"is"`
	Same   string            `yaml:"same"`
	Over   strictyaml.Whole  `yaml:"over"`
	Absent bool              `yaml:"absent"`
}

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
	root := r.Parse(b, "a table has the keys commands and invariants")
	var form tableForm
	if root != nil {
		r.Decode(root, &form)
	}
	if r.Count() > 0 {
		return nil, r.Faults()
	}
	t := &Table{}
	commands := map[string]bool{}
	used := map[string]bool{}
	for _, c := range form.Commands.Items {
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
		if len(c.Run) > 0 {
			t.Commands = append(t.Commands, Command{c.Name, c.Run[0], c.Run[1:], c.Stdin, c.Exit.N})
		}
	}
	group := ""
	ids := map[string]bool{}
	for i, f := range form.Invariants.Items {
		v := Invariant{i + 1, f.Group, f.ID, strings.TrimSpace(f.Statement), f.Enforced, nil, f.Tests, strings.TrimSpace(f.But)}
		if v.Group == "" {
			v.Group = group
		}
		group = v.Group
		switch {
		case f.Number.N != i+1:
			r.Fault(f.At("n"), "invariants are numbered from 1 without a gap", "n: "+strconv.Itoa(i+1))
		case v.Group == "" || v.Statement == "":
			r.Fault(f.Node, "an invariant has a group and a statement", "")
		case v.ID != "" && ids[v.ID]:
			r.Fault(f.At("id"), "an id stands once", "")
		case v.ID != "" && (len(v.Enforced) == 0 || len(f.Evidence) == 0):
			r.Fault(f.Node, "what a seed demands is enforced by a function and shown by a command", "")
		case v.ID == "" && len(v.Tests) == 0:
			r.Fault(f.Node, "an invariant is held by a test", "tests: [TestName]")
		}
		ids[v.ID] = true
		for _, e := range v.Enforced {
			if !functionID.MatchString(e) {
				r.Fault(f.At("enforced"), "not a function, as package.Function or package.Type.Method", "")
			}
		}
		for _, e := range f.Evidence {
			x := Evidence{Of: e.Of, Field: e.Field, Same: e.Same, Absent: e.Absent}
			ways := 0
			if e.Is.Given() {
				x.Is, ways = &e.Is.S, ways+1
			}
			if e.Over.Given() {
				x.Over, ways = &e.Over.N, ways+1
			}
			if e.Same != "" {
				ways++
			}
			if e.Absent {
				ways++
			}
			for _, p := range []string{e.Field, e.Same} {
				if _, err := strictjson.ParsePointer(p); err != nil || p == "" && p == e.Field {
					r.Fault(e.Node, "not a JSON pointer to a field", "field: /plan_gate/failed")
				}
			}
			if !commands[e.Of] {
				r.Fault(e.At("of"), "no command of that name", "")
			}
			if ways != 1 {
				r.Fault(e.Node, "a field has exactly one of is, over, same and absent", "")
			}
			used[e.Of] = true
			v.Evidence = append(v.Evidence, x)
		}
		t.Invariants = append(t.Invariants, v)
	}
	for _, c := range form.Commands.Items {
		if !used[c.Name] {
			r.Fault(c.Node, "a command nothing is shown by", "remove it")
		}
	}
	if r.Count() > 0 {
		return nil, r.Faults()
	}
	return t, nil
}

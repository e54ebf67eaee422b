// Package strictyaml reads the files an operator writes by hand, the one way
// Writ accepts them: one YAML document of plain mappings, lists and scalars in
// valid UTF-8, at most 1 MiB and 64 levels deep, each key once. Anchors,
// aliases, merge keys, tags, tabs, second documents, byte order marks, NUL,
// control and invisible characters are refused (attack C01): what a person
// reads in the file is what stands there.
//
// A file is read in two steps. Parse turns bytes into a tree of Nodes. Decode
// reads the tree into a struct, by its yaml tags. Both note every fault they
// find instead of stopping at the first, and a caller notes his own beside
// them, at the line and column of any node; Faults returns all, in the order of
// the file. What was read may only be used when there are none.
//
// It hides the YAML library: nothing outside imports it, as a test holds. It
// knows no word of any file, does no I/O and trusts nothing. No message repeats
// more of a file than a key or a word, escaped and cut.
package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one defect of a file the operator wrote. Line and Column count from
// 1, in characters; both are 0 where the fault is the file as a whole.
type Fault struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"` // never quotes more than a key or a short escaped word
	Hint    string `json:"hint"`    // what to write instead, may be ""
}

// String returns "file:line:column: message", with the hint behind a
// semicolon; line and column are left out where they are 0.
func (f Fault) String() string {
	s := f.File
	if f.Line > 0 {
		s += fmt.Sprintf(":%d:%d", f.Line, f.Column)
	}
	if s != "" {
		s += ": "
	}
	s += f.Message
	if f.Hint != "" {
		s += "; " + f.Hint
	}
	return s
}

// The bounds of a file.
const (
	MaxBytes  = 1 << 20 // its length
	MaxDepth  = 64      // nesting of lists and mappings
	MaxFaults = 200     // faults that are told of it
)

// Reader collects the faults and warnings of one file while it is read.
type Reader struct {
	file             string
	faults, warnings []Fault
}

// New returns a reader that has found nothing yet. The name of the file is only
// repeated in the faults.
func New(file string) *Reader { return &Reader{file: file} }

// FaultAt notes a fault at a line and a column.
func (r *Reader) FaultAt(line, column int, message, hint string) {
	r.faults = append(r.faults, Fault{r.file, line, column, message, hint})
}

// Fault notes a fault at a node.
func (r *Reader) Fault(n *Node, message, hint string) { r.FaultAt(n.Line, n.Column, message, hint) }

// FaultIf notes a fault at a node where there is one: the node of what is absent is nil, and
// then nothing is wrong with it.
func (r *Reader) FaultIf(wrong bool, n *Node, message, hint string) {
	if wrong {
		r.Fault(n, message, hint)
	}
}

// WarnAt notes at a line and a column what is allowed and likely wrong.
func (r *Reader) WarnAt(line, column int, message, hint string) {
	r.warnings = append(r.warnings, Fault{r.file, line, column, message, hint})
}

// Warn notes at a node what is allowed and likely wrong.
func (r *Reader) Warn(n *Node, message, hint string) { r.WarnAt(n.Line, n.Column, message, hint) }

// WarnIf notes it at a node as FaultIf does a fault.
func (r *Reader) WarnIf(wrong bool, n *Node, message, hint string) {
	if wrong {
		r.Warn(n, message, hint)
	}
}

// Count returns how many faults were noted so far.
func (r *Reader) Count() int { return len(r.faults) }

// Faults returns the faults in the order of the file, each once, and not more
// than a person can use.
func (r *Reader) Faults() []Fault { return sorted(r.faults) }

// Warnings returns the warnings as Faults does the faults.
func (r *Reader) Warnings() []Fault { return sorted(r.warnings) }

func sorted(fs []Fault) []Fault {
	fs = slices.Clone(fs)
	slices.SortFunc(fs, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Message, b.Message), strings.Compare(a.Hint, b.Hint))
	})
	fs = slices.Compact(fs)
	if len(fs) > MaxFaults {
		last := fs[MaxFaults]
		fs = append(fs[:MaxFaults:MaxFaults], Fault{last.File, last.Line, last.Column, "more faults follow from here on", "correct these first"})
	}
	return fs
}

package invariants

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
)

// ReportVersion is the version of the form of Report. Fields are added to it,
// never removed, and keep their meaning.
const ReportVersion = 1

// Report is what running the commands showed.
type Report struct {
	Version    int     `json:"v"`
	Holds      bool    `json:"holds"` // every row does, and every command ended as it must
	Rows       []Row   `json:"invariants"`
	Commands   []Shown `json:"commands"`
	HeldByTest int     `json:"held_by_tests"` // rows of INVARIANTS.md that no command shows
}

// Row is one invariant of the seeds.
type Row struct {
	Number    int      `json:"n"`
	ID        string   `json:"id"`
	Statement string   `json:"statement"`
	But       string   `json:"but,omitempty"`
	Enforced  []string `json:"enforced"`
	Holds     bool     `json:"holds"`
	Evidence  []Field  `json:"evidence"`
}

// Field is one field of what a command printed.
type Field struct {
	Command string `json:"command"` // its name
	Field   string `json:"field"`
	Must    string `json:"must"` // what it must be, in words
	// Found is the JSON text of the field, cut after 200 bytes; "" when it is
	// not there.
	Found string `json:"found"`
	Holds bool   `json:"holds"`
}

// Shown is one command as it was run.
type Shown struct {
	Name string `json:"name"`
	Run  string `json:"run"` // as Command.String gives it
	Exit int    `json:"exit"`
	Must int    `json:"must"` // the exit code it must have
}

// Runner runs a command of the table with what stands for its arguments and its
// input, and returns what it printed and its exit code.
type Runner func(ctx context.Context, c Command, args []string, stdin string) (stdout []byte, exit int)

// Show runs every command of the table once, in its order, each with dir for
// {dir}, which is to be new and empty, and says what holds.
func (t *Table) Show(ctx context.Context, dir string, run Runner) *Report {
	r := &Report{Version: ReportVersion, Holds: true}
	printed := map[string][]byte{} // nil for a command that printed no strict JSON
	for _, c := range t.Commands {
		fill := func(s string) string {
			return placeholder.ReplaceAllStringFunc(s, func(p string) string {
				m := placeholder.FindStringSubmatch(p)
				if m[1] == "dir" {
					return filepath.ToSlash(dir)
				}
				s, _ := strictjson.Text(strictjson.At(printed[m[1]], m[2]))
				return s
			})
		}
		args := make([]string, len(c.Run)-1)
		for i, a := range c.Run[1:] {
			args[i] = fill(a)
		}
		out, exit := run(ctx, c, args, fill(c.Stdin))
		r.Commands = append(r.Commands, Shown{c.Name, c.String(), exit, c.Exit.N})
		// A command that judges many things ends badly for any of them: its
		// fields say which, and the whole does not hold.
		r.Holds = r.Holds && exit == c.Exit.N
		if strictjson.Check(out, strictjson.Result) == nil {
			printed[c.Name] = out
		}
	}
	for _, v := range t.Invariants {
		if v.ID == "" {
			r.HeldByTest++
			continue
		}
		row := Row{v.Number.N, v.ID, v.Statement, v.But, v.Enforced, true, nil}
		for _, e := range v.Evidence {
			f := e.look(printed[e.Of])
			row.Holds = row.Holds && f.Holds
			row.Evidence = append(row.Evidence, f)
		}
		r.Holds = r.Holds && row.Holds
		r.Rows = append(r.Rows, row)
	}
	r.Holds = r.Holds && len(r.Rows) > 0
	return r
}

// look judges one field of what a command printed; of nil nothing holds.
func (e Evidence) look(out []byte) Field {
	found := strictjson.At(out, e.Field)
	f := Field{Command: e.Of, Field: e.Field, Must: e.must(), Found: cut(string(strictjson.Compact(found)))}
	if out == nil {
		return f
	}
	switch {
	case e.Absent:
		f.Holds = found == nil
	case found == nil:
	case e.Is.Given():
		s, text := strictjson.Text(found)
		f.Holds = text && s == e.Is.S || !text && string(found) == e.Is.S
	case e.Over.Given():
		n, err := strconv.Atoi(string(found))
		f.Holds = err == nil && n > e.Over.N
	case e.Same != "":
		other := strictjson.At(out, e.Same)
		f.Holds = other != nil && string(strictjson.Compact(found)) == string(strictjson.Compact(other))
	}
	return f
}

func (e Evidence) must() string {
	switch {
	case e.Absent:
		return "absent"
	case e.Is.Given():
		return "is " + e.Is.S
	case e.Over.Given():
		return "over " + strconv.Itoa(e.Over.N)
	}
	return "the same as " + e.Same
}

func cut(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// String is the command as a person types it, DIR standing for {dir} and
// <command:/pointer> for what an earlier one printed.
func (c Command) String() string {
	var b strings.Builder
	if c.Stdin != "" {
		b.WriteString("echo " + quoted(c.Stdin) + " | ")
	}
	b.WriteString(c.Run[0])
	for _, a := range c.Run[1:] {
		b.WriteString(" " + quoted(a))
	}
	return placeholder.ReplaceAllStringFunc(b.String(), func(p string) string {
		if p == "{dir}" {
			return "DIR"
		}
		return "<" + strings.Trim(p, "{}") + ">"
	})
}

// quoted is a word of a shell's command line. No word of a table has a single
// quote in it; one that had would not be run as it is shown.
func quoted(s string) string {
	if strings.ContainsAny(s, " \"|&;<>()$`\\*?[]#~=%!\t\n") || s == "" {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

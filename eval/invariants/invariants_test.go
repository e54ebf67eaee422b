package invariants

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/strictyaml"
)

func TestTableIsRead(t *testing.T) {
	table, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Commands) == 0 || len(table.Invariants) == 0 {
		t.Fatal("an empty table")
	}
	for _, f := range look(table) {
		t.Error(f)
	}
	for _, c := range table.Commands {
		// What is shown is what a shell runs only without these.
		for _, w := range append(slices.Clone(c.Run), c.Stdin) {
			if strings.ContainsAny(w, "'\n") {
				t.Errorf("%s: %q cannot be pasted", c.Name, w)
			}
		}
	}
}

var (
	commandName = regexp.MustCompile(`^[a-z][a-z-]{1,30}$`)
	functionID  = regexp.MustCompile(`^[a-z][a-z/]*\.[A-Za-z]\w*(\.[A-Za-z]\w*)?$`)
)

// look finds what is wrong with a table. One whose evidence could not fail is: a row of the
// seeds needs a function, a field and a command that ran before.
func look(t *Table) []Fault {
	r := strictyaml.New("t.yaml")
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
	ids := map[string]bool{}
	for i := range t.Invariants {
		v := &t.Invariants[i]
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
	return r.Faults()
}

// TestTables: testdata/tables/*.txtar are tables with the faults they have.
func TestTables(t *testing.T) {
	files, _ := filepath.Glob("testdata/tables/*.txtar")
	if len(files) == 0 {
		t.Fatal("no tables")
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var table, want string
		for _, f := range a.Files {
			switch f.Name {
			case "t.yaml":
				table = string(f.Data)
			case "faults":
				want = string(f.Data)
			}
		}
		read, faults := Parse("t.yaml", []byte(table))
		if read != nil {
			faults = look(read)
		}
		var got strings.Builder
		for _, f := range faults {
			fmt.Fprintln(&got, f)
		}
		if got.String() != want {
			t.Errorf("%s: got\n%s", file, &got)
		}
	}
}

const small = `
commands:
  - name: one
    run: [writ-eval, gates, --out, "{dir}/x"]
  - name: two
    stdin: '{"about":"{one:/id}"}'
    run: [writ, audit, show, "{one:/id}"]
    exit: 77
invariants:
  - n: 1
    group: G
    id: A
    statement: S
    enforced: [gate.Decide]
    evidence:
      - { of: one, field: /n, over: 3 }
      - { of: one, field: /ok, is: 'true' }
      - { of: one, field: /list/1/name, is: x }
      - { of: one, field: /n, same: /m }
      - { of: one, field: /error, absent: true }
      - { of: two, field: /id, is: i }
  - n: 2
    statement: T
    tests: [TestX]
`

// TestShow: what holds is shown, and each way in which evidence can fail makes
// its row fail.
func TestShow(t *testing.T) {
	table, faults := Parse("t.yaml", []byte(small))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	const good, second = `{"id":"i","n":4,"m":4,"ok":true,"list":[{},{"name":"x"}]}`, `{"id":"i"}`
	show := func(first, second string, exit int) *Report {
		var calls []string
		r := table.Show(t.Context(), "D", func(_ context.Context, c Command, args []string, stdin string) ([]byte, int) {
			calls = append(calls, c.Run[0]+" "+strings.Join(args, " ")+" < "+stdin)
			if len(calls) == 1 {
				return []byte(first), 0
			}
			return []byte(second), exit
		})
		if strings.Contains(first, `"id":"i"`) && first == good &&
			!slices.Equal(calls, []string{"writ-eval gates --out D/x < ", `writ audit show i < {"about":"i"}`}) {
			t.Fatalf("run: %q", calls)
		}
		return r
	}
	if r := show(good, second, 77); !r.Holds || !r.Rows[0].Holds || len(r.Rows) != 1 || r.HeldByTest != 1 {
		t.Fatalf("%+v", r)
	}
	for name, c := range map[string]struct {
		first, second string
		exit, fails   int
	}{
		"a number not above":     {strings.ReplaceAll(good, "4", "3"), second, 77, 1},
		"no whole number":        {strings.ReplaceAll(good, "4", "4.5"), second, 77, 1},
		"a number as text":       {strings.ReplaceAll(good, "4", `"4"`), second, 77, 1},
		"another value":          {strings.ReplaceAll(good, "true", "false"), second, 77, 1},
		"a field that is gone":   {strings.ReplaceAll(good, `"ok":true,`, ""), second, 77, 1},
		"another item":           {strings.ReplaceAll(good, `{},`, ""), second, 77, 1},
		"two fields that differ": {strings.ReplaceAll(good, `"m":4`, `"m":5`), second, 77, 1},
		"what must be absent":    {strings.ReplaceAll(good, `"m"`, `"error":0,"m"`), second, 77, 1},
		"another exit code":      {good, second, 0, 0},
		"nothing printed":        {"", second, 77, 5},
		"no strict JSON":         {good + "x", second, 77, 5},
		"a key twice":            {strings.ReplaceAll(good, `"ok":true`, `"ok":true,"ok":true`), second, 77, 5},
	} {
		t.Run(name, func(t *testing.T) {
			r := show(c.first, c.second, c.exit)
			n := 0
			for _, f := range r.Rows[0].Evidence {
				if !f.Holds {
					n++
				}
			}
			if r.Holds || r.Rows[0].Holds != (c.fails == 0) || n != c.fails {
				t.Errorf("%d fields fail, want %d: %+v", n, c.fails, r.Rows[0].Evidence)
			}
		})
	}
	if empty := (&Table{}).Show(t.Context(), "D", nil); empty.Holds {
		t.Error("nothing shown is held to be shown")
	}
}

func TestMarkdown(t *testing.T) {
	table, _ := Parse("t.yaml", []byte(small))
	got := string(table.Markdown())
	want, err := os.ReadFile("testdata/small.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, part, _ := strings.Cut(got, "\n## "); part != string(want) {
		t.Errorf("got\n%s", part)
	}
}

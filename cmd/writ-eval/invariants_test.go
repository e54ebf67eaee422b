package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-project/writ/eval/invariants"
	"github.com/writ-project/writ/internal/cli"
)

// TestInvariantsFailure: a row that does not hold is named with the field, what
// it must be and what was found, unescaped by nobody; the exit code says so.
func TestInvariantsFailure(t *testing.T) {
	r := &invariants.Report{Rows: []invariants.Row{
		{ID: "A", Statement: "S", Holds: true, Evidence: []invariants.Field{{Command: "one", Field: "/x", Must: "is 1", Found: "1", Holds: true}}},
		{ID: "B", Statement: "S", Evidence: []invariants.Field{
			{Command: "one", Field: "/y", Must: "is 1", Found: "\"\x1b[2J\""},
			{Command: "two", Field: "/z", Must: "over 3"},
		}},
	}}
	out := invariantsTable(r, false)
	for _, want := range []string{"A              holds  S\n", "B              FAILS  S\n",
		"/y of `one` must be: is 1; found \"\\u001b[2J\"\n", "/z of `two` must be: over 3; found nothing\n", "0 of 2 fields hold\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	var e *cli.Exit
	if err := invariantsOutcome(r); !errors.As(err, &e) || e.Code != cli.ExitData || !strings.Contains(e.Error(), "1 of 2 invariants do not hold: B") {
		t.Errorf("got %v, want exit code %d", err, cli.ExitData)
	}
}

// TestInvariantsAbsent: of a writ that cannot be run nothing is shown; what this program
// shows is.
func TestInvariantsAbsent(t *testing.T) {
	table, faults := invariants.Parse("table.yaml", []byte(`commands:
  - { name: gates, run: [writ-eval, gates, --json, --fuzz, "0", --out, "{dir}/gates.json"] }
  - { name: asked, run: [writ, version, --json] }
invariants:
  - { n: 1, group: G, id: A, statement: S, enforced: [a.B], evidence: [{ of: gates, field: /seed, is: "1" }] }
  - { n: 2, id: B, statement: S, enforced: [a.B], evidence: [{ of: asked, field: /cgo, absent: true }] }
`))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	c := invariantsCommand()
	c.SetContext(t.Context())
	var out, said bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&said)
	err := tellInvariants(c, table, filepath.Join(t.TempDir(), "absent"), true)
	var e *cli.Exit
	if !errors.As(err, &e) || e.Code != cli.ExitData || !strings.Contains(e.Error(), "1 of 2 invariants do not hold: B") {
		t.Errorf("got %v, want exit code %d", err, cli.ExitData)
	}
	var r invariants.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Holds || len(r.Rows) != 2 || !r.Rows[0].Holds || r.Rows[1].Holds {
		t.Errorf("%v: %s", err, &out)
	}
	if !strings.Contains(said.String(), "writ version --json\n  ended with -1 instead of 0: ") {
		t.Errorf("of the command it says %s", &said)
	}
}

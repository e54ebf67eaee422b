package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/writ-project/writ/eval/gates"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/cli"
)

// TestGatesFailure: a failed case is named, with what was wanted and what came,
// and the exit code says so.
func TestGatesFailure(t *testing.T) {
	g := gates.Product()
	g.Decide = func(gate.Input) gate.Decision { return gate.Decision{} }
	r, err := gates.Run(gates.Options{Gates: g, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	out := gatesTable(r, "some\x1bfile")
	for _, want := range []string{"failed: a_read_needs_no_provenance@standard (seed): want accept, got none", "more in some\\u001bfile\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	var e *cli.Exit
	if err := gatesOutcome(r); !errors.As(err, &e) || e.Code != cli.ExitData {
		t.Errorf("got %v, want exit code %d", err, cli.ExitData)
	}
}

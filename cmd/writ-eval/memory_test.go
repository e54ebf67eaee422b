package main

import (
	"errors"
	"strings"
	"testing"

	evalmemory "github.com/writ-project/writ/eval/memory"
	"github.com/writ-project/writ/internal/cli"
)

// TestMemoryOutcome: a gate that is not met is named, and the exit code says so;
// with all of them met it is 0, and with none judged it is not.
func TestMemoryOutcome(t *testing.T) {
	r := &evalmemory.Report{Gates: []evalmemory.Gate{{ID: "current"}, {ID: "history", Met: true}, {ID: "attack.buried"}}}
	var e *cli.Exit
	if err := memoryOutcome(r); !errors.As(err, &e) || e.Code != cli.ExitData || !strings.Contains(err.Error(), "2 of 3 gates are not met: current, attack.buried") {
		t.Errorf("got %v, want exit code %d", err, cli.ExitData)
	}
	r.Passed = true
	if err := memoryOutcome(r); err != nil {
		t.Errorf("all gates are met: %v", err)
	}
	if err := memoryOutcome(&evalmemory.Report{}); err == nil {
		t.Error("nothing was measured, and nothing is missed")
	}
}

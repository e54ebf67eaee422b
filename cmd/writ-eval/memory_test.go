package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/writ-project/writ/eval/measures"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/memory"
)

// TestMemoryOutcome: a missed target is named, and the exit code says so;
// with all of them met it is 0.
func TestMemoryOutcome(t *testing.T) {
	m := measures.Product(func() memory.Index { return mapstore.NewIndex() })
	m.Answer = func(_ *memory.Reader, slot string) memory.Answer { return memory.Answer{Slot: slot} }
	m.Search = func(*memory.Reader, memory.Query, []memory.Hit) memory.Results { return memory.Results{} }
	r, err := measures.Run(measures.Options{Memory: m, Seeds: []uint64{7}, Chains: 1})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printMemory(&out, r, "some\x1bfile"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"MISSED current_strict ", "met    flip_strict_A1 ", "some\\u001bfile\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	var e *cli.Exit
	if err := memoryOutcome(r); !errors.As(err, &e) || e.Code != cli.ExitData || !strings.Contains(err.Error(), "current_strict, current_tool_may") {
		t.Errorf("got %v, want exit code %d", err, cli.ExitData)
	}
	r.Passed = true
	if err := memoryOutcome(r); err != nil {
		t.Errorf("all targets are met: %v", err)
	}
	if err := memoryOutcome(&measures.Report{}); err == nil {
		t.Error("nothing was measured, and nothing is missed")
	}
}

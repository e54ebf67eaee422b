package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	evalmemory "github.com/writ-project/writ/eval/memory"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/memory"
)

// TestMemoryOutcome: a gate that is not met is named, and the exit code says so;
// with all of them met it is 0, and with none judged it is not.
func TestMemoryOutcome(t *testing.T) {
	m := evalmemory.Product()
	m.Answer = func(_ *memory.Reader, slot string) memory.Answer { return memory.Answer{Slot: slot} }
	m.Search = func(*memory.Reader, string, memory.Query) memory.Results { return memory.Results{} }
	r, err := evalmemory.Run(evalmemory.Options{Memory: m, Seeds: []uint64{7}, Chains: 1, Only: evalmemory.Measured})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gate NOT MET current_strict: ", "gate met     flip_strict_A1: "} {
		if table := string(r.Table()); !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
	var e *cli.Exit
	if err := memoryOutcome(r); !errors.As(err, &e) || e.Code != cli.ExitData || !strings.Contains(err.Error(), "current_strict, current_tool_may") {
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

// TestMemoryStages: what of the stages is printed, written and refused.
func TestMemoryStages(t *testing.T) {
	do := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"memory", "--out", filepath.Join(t.TempDir(), "made", "result.json")}, args...), strings.NewReader(""), &out, &errs)
		return code, out.String(), errs.String()
	}
	dir := filepath.Join(t.TempDir(), "artifacts")
	result := filepath.Join(t.TempDir(), "made", "result.json")
	code, out, errs := do("--only", "stage1", "--json", "--artifacts", dir, "--out", result)
	if code != cli.ExitOK || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var r evalmemory.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || !r.Passed || r.Version != evalmemory.Version || len(r.Gates) == 0 || r.Measures != nil {
		t.Errorf("%v: %+v", err, r.Gates)
	}
	if b, err := os.ReadFile(result); err != nil || string(b) != out {
		t.Errorf("the result is not what was printed: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_B5_governed_v1_*", "manifest.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	before, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	// Nothing is written over, nor beside.
	others, err := filepath.Glob(filepath.Join(dir, "*_B5_governed_v01q_*"))
	if err != nil || len(others) != 1 || os.RemoveAll(others[0]) != nil {
		t.Fatalf("%v %v", others, err)
	}
	code, _, errs = do("--only", "stage1", "--artifacts", dir)
	if code != cli.ExitIO || !strings.Contains(errs, "is there already") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if after, err := os.ReadFile(files[0]); err != nil || !bytes.Equal(before, after) {
		t.Errorf("it was written over: %v", err)
	}
	if _, err := os.Stat(others[0]); err == nil {
		t.Error("something was written beside what was there")
	}
	// Too few seeds: their gate is not met.
	code, out, errs = do("--only", "stage2", "--seeds", "1")
	if code != cli.ExitData || !strings.Contains(out, "gate NOT MET stage2.seeds") || !strings.Contains(errs, "gates are not met: stage2.seeds") {
		t.Errorf("exit code %d: %s\n%s", code, out, errs)
	}
	for _, bad := range [][]string{{"--only", "stage4"}, {"--only", "1"}, {"--seeds", "1,1"}, {"--seeds", "0"}, {"--seeds", "x"}, {"--seeds", "-3"}, {"--chains", "0"}, {"more"}} {
		if code, _, _ := do(bad...); code != cli.ExitUsage {
			t.Errorf("%v: exit code %d", bad, code)
		}
	}
}

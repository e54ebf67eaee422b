package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/eval/stages"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/memory"
)

// TestStages: what is printed, written and refused.
func TestStages(t *testing.T) {
	do := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"stages"}, args...), strings.NewReader(""), &out, &errs)
		return code, out.String(), errs.String()
	}
	dir := filepath.Join(t.TempDir(), "artifacts")
	result := filepath.Join(t.TempDir(), "made", "result.json")
	code, out, errs := do("--stage", "1", "--json", "--out", dir, "--result", result)
	if code != cli.ExitOK || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var r stages.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil || !r.Passed || r.Version != stages.ResultVersion || len(r.Gates) == 0 {
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
	if err := os.Remove(filepath.Join(dir, "fairness.json")); err != nil {
		t.Fatal(err)
	}
	code, _, errs = do("--stage", "1", "--out", dir)
	if code != cli.ExitIO || !strings.Contains(errs, "is there already") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if after, err := os.ReadFile(files[0]); err != nil || !bytes.Equal(before, after) {
		t.Errorf("it was written over: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "fairness.json")); err == nil {
		t.Error("something was written beside what was there")
	}
	// Too few seeds: the gate of fairness is not met.
	code, out, errs = do("--stage", "2", "--seeds", "1")
	if code != cli.ExitData || !strings.Contains(out, "gate NOT MET stage2.fairness") || !strings.Contains(errs, "gates are not met") {
		t.Errorf("exit code %d: %s\n%s", code, out, errs)
	}
	// A memory that never decides.
	release := make(chan struct{})
	defer close(release)
	o := stages.Options{Stage: 1, Index: func() memory.Index { return mapstore.NewIndex() }}
	o.Handle = func(s *memory.State, c memory.Context, p writ.Proposal) memory.Decision {
		<-release
		return memory.Handle(s, c, p)
	}
	if _, err := stagesWithin(o, time.Millisecond); err == nil {
		t.Error("it had no time and took it")
	}
	for _, bad := range [][]string{{"--stage", "4"}, {"--stage", "-1"}, {"--seeds", "1,1"}, {"--seeds", "0"}, {"--seeds", "x"}, {"--seeds", "-3"}, {"more"}} {
		if code, _, _ := do(bad...); code != cli.ExitUsage {
			t.Errorf("%v: exit code %d", bad, code)
		}
	}
}

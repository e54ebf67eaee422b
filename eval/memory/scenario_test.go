package memory

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/writ-project/writ/internal/strictyaml"
)

// TestFaulty: each file of testdata/faulty says in its first line at which line
// and column which fault is told; or "want nothing".
func TestFaulty(t *testing.T) {
	files, err := filepath.Glob("testdata/faulty/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(b), "\n")
		want, ok := strings.CutPrefix(first, "# want ")
		if !ok {
			t.Errorf("%s does not say what it wants", file)
			continue
		}
		runs, faults := expand(file, b, Seeds())
		if want == "nothing" {
			if len(faults) > 0 || len(runs) != 10 {
				t.Errorf("%s: %d runs, %v", file, len(runs), faults)
			}
			continue
		}
		if len(runs) > 0 {
			t.Errorf("%s: it has runs", file)
		}
		if !slices.ContainsFunc(faults, func(f strictyaml.Fault) bool { return strings.Contains(f.String(), want) }) {
			t.Errorf("%s: want %s, got %v", file, want, faults)
		}
	}
}

// TestIDsOnce: two files of one id, and files that are none, are refused.
func TestIDsOnce(t *testing.T) {
	b, err := fs.ReadFile(embedded, "cases/S2.6.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = load(fstest.MapFS{"cases/a.yaml": {Data: b}, "cases/b.yaml": {Data: b}}, Seeds())
	if err == nil || !strings.Contains(err.Error(), "cases/b.yaml: the id S2.6 stands in cases/a.yaml too") {
		t.Error(err)
	}
	if _, err = load(fstest.MapFS{"cases/a.txt": {Data: b}}, Seeds()); err == nil {
		t.Error("a text file is a scenario")
	}
	if _, err = load(fstest.MapFS{"cases/README.md": {Data: b}}, Seeds()); err == nil {
		t.Error("nothing is something")
	}
}

// FuzzScenario: whatever the file, it is read or refused.
func FuzzScenario(f *testing.F) {
	entries, err := fs.ReadDir(embedded, "cases")
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range entries {
		b, err := fs.ReadFile(embedded, "cases/"+e.Name())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		runs, faults := expand("fuzz.yaml", b, []uint64{101})
		if len(runs) > 0 && len(faults) > 0 || len(runs) == 0 && len(faults) == 0 {
			t.Errorf("%d runs and %d faults", len(runs), len(faults))
		}
	})
}

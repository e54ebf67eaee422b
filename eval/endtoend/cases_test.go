package endtoend

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/ask"
)

// TestFaultyFiles: a file in testdata/faulty says in its first line where its
// fault is and what it is called: "# want: LINE:COLUMN: words of the message".
func TestFaultyFiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "faulty", "*.yaml"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d faulty files: %v", len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(b), "\n")
		want, ok := strings.CutPrefix(head, "# want: ")
		if !ok {
			t.Fatalf("%s does not say what is wrong with it", file)
		}
		f, faults := ParseFile(filepath.Base(file), b)
		if f != nil || len(faults) != 1 {
			t.Errorf("%s: %d faults: %v", file, len(faults), faults)
		}
		if len(faults) > 0 && !strings.HasPrefix(faults[0].String(), filepath.Base(file)+":"+want) {
			t.Errorf("%s: %s, want %s", file, faults[0], want)
		}
	}
}

// FuzzParseFile: a file is read or it has faults, never both and never neither.
func FuzzParseFile(f *testing.F) {
	for _, name := range []string{"testdata/small.yaml", "cases/ask.yaml"} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	rules, _ := ask.ParseRules("rules.yaml", ask.DefaultRules())
	f.Fuzz(func(t *testing.T, b []byte) {
		file, faults := ParseFile("f.yaml", b)
		if (file == nil) != (len(faults) > 0) {
			t.Fatalf("a file and %d faults", len(faults))
		}
		if file == nil {
			return
		}
		for i := range file.Cases.Items {
			attempts, err := file.attempts(t.Context(), &file.Cases.Items[i], rules)
			if err != nil || len(attempts) == 0 {
				t.Fatalf("no attack on a case: %v", err)
			}
		}
	})
}

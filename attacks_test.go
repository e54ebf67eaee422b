package writ

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryAttackIsNamed holds that each attack listed in testdata/attacks.txt
// is named by at least one test or case file, so that who reads a line of the
// catalogue can find what shows it stopped. The file has one id and its attack
// in a few words on each line.
func TestEveryAttackIsNamed(t *testing.T) {
	list, err := os.ReadFile("testdata/attacks.txt")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]string{}
	for _, line := range strings.Split(string(list), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		id, what, ok := strings.Cut(line, " ")
		if !ok || !regexp.MustCompile(`^[A-Z][0-9]{2}$`).MatchString(id) {
			t.Fatalf("testdata/attacks.txt: %q is not an id and an attack", line)
		}
		missing[id] = what
	}
	word := regexp.MustCompile(`\b[A-Z][0-9]{2}\b`)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); n == "node_modules" || n == "dist" || n == "fuzz" || n != "." && strings.HasPrefix(n, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if path == "testdata/attacks.txt" || !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "testdata"+string(filepath.Separator)) {
			return nil
		}
		if fi, err := d.Info(); err != nil || fi.Size() > 1<<20 || !fi.Mode().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, id := range word.FindAllString(string(b), -1) {
			delete(missing, id)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for id, what := range missing {
		t.Errorf("no test or case names %s (%s)", id, what)
	}
}

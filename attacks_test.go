package writ

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/attacks.md anew from the cases")

const attackHead = `# Attacks, and where they stop

Made from the case files by ` + "`go test . -run TestEveryAttackIsNamed -update`" + `; a test holds that it is what they say. An attack is listed
with the cases most of its own and the reason ids (` + "`reasons.go`" + `) that these expect. One without a reason id stops
without a refusal: nothing is there to be refused, and the test says what is there instead. ` + "`LIMITATIONS.md`" + ` names what
is not stopped.

| id | what is tried | where it stops | shown by |
|---|---|---|---|
`

// TestEveryAttackIsNamed holds that each attack listed in testdata/attacks.txt is named by
// at least one test or case file, so that who reads a line of the catalogue can
// find what shows it stopped, and that docs/attacks.md is made of them. The list
// has one id and its attack in a few words on each line.
func TestEveryAttackIsNamed(t *testing.T) {
	list, err := os.ReadFile("testdata/attacks.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := reasonIDs(t)
	cases := attackCases(t)
	var page strings.Builder
	page.WriteString(attackHead)
	last := ""
	for _, line := range strings.Split(string(list), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		id, what, ok := strings.Cut(line, " ")
		if !ok || !regexp.MustCompile(`^[A-Z][0-9]{2}$`).MatchString(id) || strings.Contains(what, "|") {
			t.Fatalf("testdata/attacks.txt: %q is not an id and an attack", line)
		}
		if strings.Contains(last, id+" ") {
			t.Errorf("testdata/attacks.txt: %s stands twice", id)
		}
		last += id + " "
		if len(cases[id]) == 0 {
			t.Errorf("no test or case names %s (%s)", id, what)
		}
		var reasons, files []string
		for i, c := range cases[id] {
			if i == 3 {
				files = append(files, fmt.Sprintf("and %d more", len(cases[id])-3))
				break
			}
			files = append(files, "`"+c.file+"`")
			for _, r := range reasonID.FindAllString(c.text, -1) {
				if known[r] && !slices.Contains(reasons, "`"+r+"`") {
					reasons = append(reasons, "`"+r+"`")
				}
			}
		}
		slices.Sort(reasons)
		fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", id, what, strings.Join(reasons, ", "), strings.Join(files, ", "))
	}
	if *update {
		if err := os.WriteFile("docs/attacks.md", []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile("docs/attacks.md"); err != nil || string(have) != page.String() {
		t.Errorf("docs/attacks.md is not what the cases say: go test . -run TestEveryAttackIsNamed -update (%v)", err)
	}
}

var (
	attackID = regexp.MustCompile(`\b[A-Z][0-9]{2}\b`)
	reasonID = regexp.MustCompile(`\b[a-z]+\.[a-z_]+\b`)
)

func reasonIDs(t *testing.T) map[string]bool {
	src, err := os.ReadFile("reasons.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`Reason = "([^"]+)"`).FindAllStringSubmatch(string(src), -1) {
		known[m[1]] = true
	}
	return known
}

// attackCase is a file that names an attack, and what of it expects a refusal:
// of a Go test nothing, since it holds many.
type attackCase struct{ file, text string }

// attackCases returns the test and case files by the ids they name, those of
// few attacks first: they are about it.
func attackCases(t *testing.T) map[string][]attackCase {
	type named struct {
		attackCase
		ids []string
	}
	var all []named
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); n == "node_modules" || n == "dist" || n == "fuzz" || n != "." && strings.HasPrefix(n, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".md") || path == filepath.Join("testdata", "attacks.txt") || !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "testdata"+string(filepath.Separator)) {
			return nil
		}
		if fi, err := d.Info(); err != nil || fi.Size() > 1<<20 || !fi.Mode().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		n := named{attackCase: attackCase{file: filepath.ToSlash(path)}}
		if !strings.HasSuffix(path, ".go") {
			n.text = string(b)
		}
		for _, id := range attackID.FindAllString(string(b), -1) {
			if !slices.Contains(n.ids, id) {
				n.ids = append(n.ids, id)
			}
		}
		all = append(all, n)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b named) int { return len(a.ids) - len(b.ids) })
	cases := map[string][]attackCase{}
	for _, n := range all {
		for _, id := range n.ids {
			if len(n.ids) > 8 {
				n.text = "" // a table of many attacks: what it expects is not this one's
			}
			cases[id] = append(cases[id], n.attackCase)
		}
	}
	return cases
}

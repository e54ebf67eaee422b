package writ_test

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/eval/invariants"
)

// This file holds the documents to what is there: a path, a test or an attack
// that a document names exists.

func documents(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	walk(t, func(file string) {
		if strings.HasSuffix(file, ".md") && !strings.Contains(filepath.ToSlash(file), "testdata/") {
			docs[file] = read(t, file)
		}
	})
	for _, must := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "INVARIANTS.md", "LIMITATIONS.md", "CHANGELOG.md",
		filepath.Join("docs", "design.md"), filepath.Join("docs", "formats.md")} {
		if docs[must] == "" {
			t.Errorf("%s is missing or empty", must)
		}
	}
	return docs
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	fileName = regexp.MustCompile(`^(\.?[\w-]+/)*[\w.-]+\.(go|md|mod|sum|ya?ml|json|txtar|txt)$`)
	dirName  = regexp.MustCompile(`^(internal|cmd|docs|gate|policy|provenance|audit|testdata)(/[\w.-]+)*/?(…)?$`)
	// theirs are names of files a reader has, not the repository.
	theirs = []string{"writ.yaml", "policy.yaml", "files.yaml"}
)

func TestPathsNamedInDocsExist(t *testing.T) {
	named := 0
	functions := functions(sources(t))
	for doc, text := range documents(t) {
		for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
			p := m[1]
			if !fileName.MatchString(p) && !dirName.MatchString(p) || slices.Contains(theirs, p) || functions[p] {
				continue
			}
			named++
			if _, err := os.Stat(filepath.FromSlash(strings.TrimRight(p, "/…"))); err != nil {
				t.Errorf("%s names %s, which does not exist", doc, p)
			}
		}
		if lineNumber.MatchString(text) {
			t.Errorf("%s names a line number: %q", doc, lineNumber.FindString(text))
		}
	}
	if named < 20 {
		t.Errorf("only %d paths found in the documents: the pattern has come apart", named)
	}
}

var lineNumber = regexp.MustCompile(`\w\.go:\d+`)

// TestWordsStandOnce: a table of words has a row for each. Two with different texts are what a
// merge leaves.
func TestWordsStandOnce(t *testing.T) {
	rows := 0
	for doc, text := range documents(t) {
		seen := map[string]bool{}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "|") {
				clear(seen)
				continue
			}
			word, _, _ := strings.Cut(line[1:], "|")
			if word = strings.TrimSpace(word); !strings.HasPrefix(word, "`") {
				continue
			}
			if rows++; seen[word] {
				t.Errorf("%s has two rows of %s in one table", doc, word)
			}
			seen[word] = true
		}
	}
	if rows < 100 {
		t.Errorf("only %d rows of words found in the documents: the pattern has come apart", rows)
	}
}

func TestContributingIsShort(t *testing.T) {
	if n := strings.Count(read(t, "CONTRIBUTING.md"), "\n"); n > 80 {
		t.Errorf("CONTRIBUTING.md has %d lines, at most 80", n)
	}
	if to, err := os.Readlink("AGENTS.md"); err != nil || to != "CONTRIBUTING.md" {
		t.Errorf("AGENTS.md is to be a link to CONTRIBUTING.md: %q %v", to, err)
	}
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)

// TestInvariantsAreHeld: what the table of invariants names is there. A test is
// one that runs, in the package it is said to be in; a function that enforces
// is one of the product. INVARIANTS.md is made of the table.
func TestInvariantsAreHeld(t *testing.T) {
	tests := map[string]bool{}
	walk(t, func(file string) {
		if strings.HasSuffix(file, "_test.go") {
			for _, m := range testFunc.FindAllStringSubmatch(read(t, file), -1) {
				tests[m[1]] = true
				tests[m[1]+" ("+filepath.ToSlash(filepath.Dir(file))+")"] = true
			}
		}
	})
	functions := functions(sources(t))
	table, err := invariants.Load()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, v := range table.Invariants {
		shown[v.ID] = true
		if len(v.Tests) == 0 {
			t.Errorf("invariant %d names no test", v.Number.N)
		}
		for _, name := range v.Tests {
			if !tests[name] {
				t.Errorf("invariant %d names %s, which is no test of ours", v.Number.N, name)
			}
		}
		for _, f := range v.Enforced {
			if !functions[f] {
				t.Errorf("invariant %d is enforced by %s, which is no function of the product", v.Number.N, f)
			}
		}
	}
	for _, id := range []string{"STTI-001", "INV-0", "INV-1", "INV-2", "INV-3", "INV-4", "INV-5", "INV-6", "Terminal plans",
		"TB-1", "TB-2", "TB-3", "TB-4", "TB-5", "TB-6"} {
		if !shown[id] {
			t.Errorf("%s of the seeds has no row", id)
		}
	}
	if string(table.Markdown()) != read(t, "INVARIANTS.md") {
		t.Error("INVARIANTS.md is not what the table gives: make invariants")
	}
}

// functions are the names of the product's functions, as package.Function or
// package.Type.Method; the root package is called writ.
func functions(sources map[string]map[string]*ast.File) map[string]bool {
	out := map[string]bool{}
	for pkg, files := range sources {
		if pkg == "." {
			pkg = "writ"
		}
		for _, f := range files {
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				name := pkg + "."
				if fn.Recv != nil {
					x := fn.Recv.List[0].Type
					if star, ok := x.(*ast.StarExpr); ok {
						x = star.X
					}
					id, ok := x.(*ast.Ident)
					if !ok {
						continue
					}
					name += id.Name + "."
				}
				out[name+fn.Name.Name] = true
			}
		}
	}
	return out
}

var functionName = regexp.MustCompile(`^(\w+/)*\w+(\.\w+){1,2}$`)

// TestWalkNamesFunctions: the reader's walk through one call names functions of
// the product, in the order of the five steps.
func TestWalkNamesFunctions(t *testing.T) {
	_, walk, ok := strings.Cut(read(t, filepath.Join("docs", "design.md")), "### One call, from bytes to bytes\n")
	if !ok {
		t.Fatal("docs/design.md has no walk through one call")
	}
	walk, _, _ = strings.Cut(walk, "\n## ")
	functions := functions(sources(t))
	named := 0
	for _, m := range codeSpan.FindAllStringSubmatch(walk, -1) {
		if !functionName.MatchString(m[1]) {
			continue
		}
		named++
		if !functions[m[1]] {
			t.Errorf("the walk names %s, which is no function of the product", m[1])
		}
	}
	if named < 25 {
		t.Errorf("only %d functions found in the walk: the pattern has come apart", named)
	}
}

// catalogue is how many attacks each surface has.
var catalogue = []struct {
	letter string
	n      int
}{{"P", 28}, {"T", 16}, {"W", 17}, {"S", 20}, {"U", 12}, {"M", 9}, {"L", 9}, {"C", 6}, {"K", 8}, {"D", 5}}

// TestCatalogueIsAccountedFor: each id of the catalogue stands in a test, in a
// case file, or in LIMITATIONS.md with the reason why it does not. What
// testdata/attacks.txt lists has a case in any event: attacks_test.go.
func TestCatalogueIsAccountedFor(t *testing.T) {
	id := regexp.MustCompile(`(?:\b|Test)([PTWSUMLCKD]\d\d)(?:\b|[A-Z])`)
	inCase, admitted := map[string]bool{}, map[string]bool{}
	walk(t, func(file string) {
		slash := filepath.ToSlash(file)
		switch {
		case file == "LIMITATIONS.md":
			for _, m := range id.FindAllStringSubmatch(read(t, file), -1) {
				admitted[m[1]] = true
			}
		case slash == "testdata/attacks.txt":
		case strings.HasSuffix(slash, "_test.go") && file != "docs_test.go",
			strings.Contains(slash, "testdata/") && !strings.HasPrefix(slash, "testdata/peers/") && !strings.Contains(slash, "/fuzz/"):
			for _, m := range id.FindAllStringSubmatch(read(t, file), -1) {
				inCase[m[1]] = true
			}
		}
	})
	var open []string
	for _, s := range catalogue {
		for i := 1; i <= s.n; i++ {
			a := fmt.Sprintf("%s%02d", s.letter, i)
			switch {
			case !inCase[a] && !admitted[a]:
				t.Errorf("attack %s has no case and is not in LIMITATIONS.md", a)
			case !inCase[a]:
				open = append(open, a)
			}
		}
	}
	t.Logf("%d attacks without a case: %s", len(open), strings.Join(open, " "))
}

// TestMemoryPage: the page about the memory tells the story that is played.
func TestMemoryPage(t *testing.T) {
	page, err := os.ReadFile("docs/memory.md")
	if err != nil {
		t.Fatal(err)
	}
	story, err := os.ReadFile("internal/peers/testdata/memory_story/day.golden")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```text\n"+strings.TrimRight(string(story), "\n")+"\n```") {
		t.Error("docs/memory.md does not hold internal/peers/testdata/memory_story/day.golden as it is")
	}
}

// TestReasonsAreTold: docs/reasons.md has a row for each reason id, in the order of
// reasons.go, with its code and whether a person can supply what is missing.
func TestReasonsAreTold(t *testing.T) {
	id := regexp.MustCompile(`(?m)^(?:const|\t)\s*\w+\s+Reason\s+= "([^"]+)"`)
	var rows []string
	for _, m := range id.FindAllStringSubmatch(read(t, "reasons.go"), -1) {
		r, person := writ.Reason(m[1]), ""
		if writ.Askable(r) {
			person = "yes"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |", r, writ.CodeOf(r), person))
	}
	told := regexp.MustCompile("(?m)^(\\| `[^|]*\\|[^|]*\\|[^|]*\\|)([^|]*)\\|([^|]*)\\|$").FindAllStringSubmatch(read(t, filepath.Join("docs", "reasons.md")), -1)
	if len(rows) < 100 || len(told) != len(rows) {
		t.Errorf("%d reasons, and %d rows", len(rows), len(told))
	}
	for i := range min(len(rows), len(told)) {
		if told[i][1] != rows[i] {
			t.Fatalf("where %s belongs stands %s", rows[i], told[i][1])
		}
		if len(told[i][2]) < 10 || len(told[i][3]) < 3 {
			t.Errorf("%s: nothing is said of it", rows[i])
		}
	}
}

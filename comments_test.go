package writ_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	commentID   = regexp.MustCompile(`\b(?:R[0-9]{1,2}|[A-Z][0-9]{2}|[HT][0-9]|INV-[0-9]+)\b`)
	commentDoc  = regexp.MustCompile(`[\w./-]+\.md\b`)
	commentPart = regexp.MustCompile(`(?i)\bsections? [0-9]`)
)

// TestIdsInComments: an id, a page or a section that a comment names can be
// looked up here: a rule in docs/design.md, an attack in testdata/attacks.txt,
// or in LIMITATIONS.md if it is not stopped, an invariant in INVARIANTS.md.
// Sections are of nobody's page but an RFC's.
func TestIdsInComments(t *testing.T) {
	known := map[string]bool{}
	for file, id := range map[string]string{
		filepath.Join("docs", "design.md"): `(?m)^\| (R[0-9]+) \|`, filepath.Join("testdata", "attacks.txt"): `(?m)^([A-Z][0-9]{2}) `,
		"LIMITATIONS.md": `\b([A-Z][0-9]{2})\b`, "INVARIANTS.md": `\b(INV-[0-9]+)\b`,
	} {
		for _, m := range regexp.MustCompile(id).FindAllStringSubmatch(read(t, file), -1) {
			known[m[1]] = true
		}
	}
	named := 0
	walk(t, func(file string) {
		if !strings.HasSuffix(file, ".go") {
			return
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range f.Comments {
			text := c.Text()
			for _, id := range commentID.FindAllString(text, -1) {
				if named++; !known[id] && !within(filepath.ToSlash(filepath.Dir(file)), measures) {
					t.Errorf("%s: %s is nowhere: say what it stands for", files.Position(c.Pos()), id)
				}
			}
			for _, doc := range commentDoc.FindAllString(text, -1) {
				if _, err := os.Stat(filepath.FromSlash(doc)); err != nil && !strings.Contains(doc, "://") && doc != "CLAUDE.local.md" {
					if _, err := os.Stat(filepath.Join(filepath.Dir(file), filepath.FromSlash(doc))); err != nil {
						t.Errorf("%s: there is no %s", files.Position(c.Pos()), doc)
					}
				}
			}
			if commentPart.MatchString(text) && !strings.Contains(text, "RFC") {
				t.Errorf("%s: %q of what", files.Position(c.Pos()), commentPart.FindString(text))
			}
		}
	})
	if named < 500 {
		t.Errorf("only %d ids found in comments: the pattern has come apart", named)
	}
}

// measures number what they measure in their own package comments.
var measures = []string{"eval/..."}

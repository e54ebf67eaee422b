package writ_test

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// TestHiddenIsRefused (T05, T06, C01): over all code points, what internal/text
// hides is refused in an authority argument, in a definition and in an operator's
// file, and nothing else is for its looks.
func TestHiddenIsRefused(t *testing.T) {
	pol, faults := policy.Parse("policy.yaml", []byte("pins: optional\ntools: { s/x: { effect: read } }\n"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	opens := func(s string) bool {
		def := fmt.Sprintf(`{"name":"x","description":%s,"inputSchema":{"type":"object"}}`, strictjson.Quote("Read a file."+s))
		c, _ := gate.NewCatalogue([]gate.Definition{{Server: "s", Kind: gate.ToolKind, Raw: []byte(def)}}, pol)
		return c.Lookup("s", "x").State == gate.Open
	}
	reads := func(s string) bool {
		var r strictyaml.Reader
		r.Parse([]byte("a: # "+s+"\n  b\n"), "a line")
		return len(r.Faults()) == 0
	}
	var fine strings.Builder
	for r := rune(0); r <= 0x10FFFF; r++ {
		if r >= 0xD800 && r <= 0xDFFF {
			continue
		}
		if got := provenance.CheckText(strictjson.StringOf(string(r))) == writ.FormInvisible; got != text.Hidden(r, text.Unseen) {
			t.Errorf("%U in an authority argument: refused %v", r, got)
		}
		switch line := r == '\n' || r == '\r' || r == '\t'; {
		case text.Hidden(r, text.Unseen), text.Hidden(r, text.Unclear) && r%257 == 0:
			if !line && opens(string(r)) {
				t.Errorf("%U in a definition is not refused", r)
			}
			if !line && reads(string(r)) {
				t.Errorf("%U in an operator's file is not refused", r)
			}
		case !text.Hidden(r, text.Unclear):
			fine.WriteRune(r)
		}
		if fine.Len() > 4<<10 || r == 0x10FFFF {
			if !opens(fine.String()) || !reads(fine.String()) {
				t.Errorf("one of what is seen up to %U is refused: %q", r, fine.String())
			}
			fine.Reset()
		}
	}
}

// TestOneTableOfCharacters: nothing but internal/text says what is invisible,
// or folds case.
func TestOneTableOfCharacters(t *testing.T) {
	theirs := []string{"C", "Cf", "Co", "Cn", "Variation_Selector", "Other_Default_Ignorable_Code_Point", "IsPrint", "IsGraphic"}
	for pkg, files := range sources(t) {
		if within(pkg, []string{"internal/text", "eval/..."}) {
			continue
		}
		for file, f := range files {
			for _, spec := range f.Imports {
				if spec.Path.Value == `"golang.org/x/text/cases"` {
					t.Errorf("%s folds case: internal/text does", file)
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(theirs, s.Sel.Name) {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "unicode" {
						t.Errorf("%s asks unicode.%s: internal/text says what is seen", file, s.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

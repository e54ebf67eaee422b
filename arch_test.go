package writ_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/build/constraint"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// This file states the architecture. What may import what, what the pure
// packages may not do, and which calls happen in exactly one place.

const module = "github.com/writ-project/writ"

// A layer is a set of packages with one rule. Paths are relative to the
// module, "." is the root package, "x/..." is x and all below it. The first
// layer that names a package holds it; a package no layer names is an error:
// give it a place.
type layer struct {
	name     string
	packages []string
	may      []string // of the module
	outside  []string // import paths outside std, "…/..." as above
	pure     bool     // no I/O, no clock, no randomness
}

var (
	words   = []string{".", "internal/strictjson", "internal/text"}
	grounds = []string{"provenance", "policy", "gate", "memory", "audit", "internal/certificate", "internal/learn", "internal/ask/claim", "internal/ask/screen"}
	below   = slices.Concat(words, grounds)
	// Libraries that only compute.
	pureLibraries = []string{
		"golang.org/x/mod/sumdb/note", "golang.org/x/mod/sumdb/tlog",
		"golang.org/x/net/idna", "golang.org/x/text/...",
	}
	anything = []string{"..."}
)

const mcpSDK = "github.com/modelcontextprotocol/go-sdk/..."

var lattice = []layer{
	{name: "words", packages: []string{"."}, pure: true},
	{name: "characters and words", packages: []string{"internal/text"}, pure: true, outside: []string{"golang.org/x/text/..."}},
	{name: "what is counted", packages: []string{"internal/metrics"}, pure: true},
	{name: "what a collector is told", packages: []string{"internal/otlp"}, may: []string{"internal/metrics"}},
	{name: "texts by their words", packages: []string{"internal/words"}, may: []string{"internal/text"}, pure: true, outside: []string{"golang.org/x/text/...", "github.com/blevesearch/snowballstem/..."}},
	{name: "what was said, in sentences", packages: []string{"internal/quote"}, may: []string{".", "internal/text", "internal/words", "internal/strictjson"}, pure: true, outside: []string{"github.com/clipperhouse/uax29/v2/sentences"}},
	{name: "numbers in words", packages: []string{"internal/numeral"}, may: []string{"internal/text"}, pure: true},
	{name: "what a user's words say of times and amounts", packages: []string{"internal/calendar", "internal/money"}, may: []string{"internal/numeral", "internal/text"}, pure: true},
	{name: "strict JSON", packages: []string{"internal/strictjson"}, may: []string{"."}, pure: true,
		outside: []string{"github.com/go-json-experiment/json/..."}},
	{name: "strict YAML", packages: []string{"internal/strictyaml"}, may: words, pure: true,
		// No other package reads YAML.
		outside: []string{"go.yaml.in/yaml/v4"}},
	{name: "JSON Schema", packages: []string{"internal/schema"}, may: words, pure: true,
		outside: []string{"github.com/santhosh-tekuri/jsonschema/v6/..."}},
	{name: "what a statement in SQL does", packages: []string{"internal/statement"}, may: []string{"internal/strictjson"}, pure: true},
	{name: "files that are nobody else's", packages: []string{"internal/private"}, may: []string{"internal/text"}},
	{name: "what a log comes to", packages: []string{"internal/snapshot"}, may: []string{"internal/private"}},
	{name: "logins at hosted servers", packages: []string{"internal/login"}, may: []string{"internal/private"},
		outside: []string{mcpSDK, "golang.org/x/oauth2", "github.com/gofrs/flock"}},
	{name: "who keeps the log's head elsewhere", packages: []string{"internal/witness"}, may: []string{"audit"},
		outside: []string{"golang.org/x/mod/sumdb/note", "golang.org/x/mod/sumdb/tlog"}},
	{name: "test support: a witness", packages: []string{"internal/witness/standin"}, may: []string{"audit"},
		outside: []string{"golang.org/x/mod/sumdb/note", "golang.org/x/mod/sumdb/tlog"}},
	{name: "who calls", packages: []string{"internal/principal"}, may: slices.Concat(words, []string{"internal/private"})},
	{name: "ground: what was seen", packages: []string{"provenance"}, may: slices.Concat(words, []string{"internal/calendar", "internal/money"}), pure: true,
		// The ledger reads each result in one pass, by tokens, and the lines of a
		// user's turn as Markdown.
		outside: slices.Concat(pureLibraries, []string{"github.com/go-json-experiment/json/jsontext", "github.com/yuin/goldmark/..."})},
	{name: "ground: what the operator declares", packages: []string{"policy"},
		may: slices.Concat(words, []string{"internal/money", "internal/schema", "internal/statement", "internal/strictyaml", "provenance"}), pure: true},
	{name: "ground: may this act happen", packages: []string{"gate"},
		may: slices.Concat(words, []string{"internal/money", "internal/schema", "internal/statement", "provenance", "policy"}), outside: pureLibraries, pure: true},
	{name: "ground: was it decided rightly", packages: []string{"internal/certificate"},
		may: slices.Concat(words, []string{"internal/calendar", "internal/money", "internal/schema", "provenance", "policy", "gate"}), pure: true},
	{name: "ground: what may it grow by", packages: []string{"internal/learn"}, may: slices.Concat(words, []string{"provenance", "policy", "gate"}), pure: true},
	{name: "ground: what is believed", packages: []string{"memory"}, may: slices.Concat(words, []string{"internal/strictyaml", "internal/words", "internal/quote"}), outside: pureLibraries, pure: true},
	{name: "ground: what was decided", packages: []string{"audit"}, may: words, outside: pureLibraries, pure: true},
	{name: "ground: what a model claims", packages: []string{"internal/ask/claim"}, may: words, outside: pureLibraries, pure: true},
	{name: "ground: what is asked", packages: []string{"internal/ask/screen"}, may: slices.Concat(words, []string{"internal/strictyaml"}), outside: pureLibraries, pure: true},
	{name: "contracts that ship", packages: []string{"contracts"}, may: slices.Concat(words, []string{"gate"}), pure: true},
	{name: "a policy to start from", packages: []string{"internal/draft"}, may: slices.Concat(words, []string{"policy", "gate", "contracts"}), pure: true},
	{name: "stores", packages: []string{"internal/store/..."},
		may:     slices.Concat(words, []string{"audit", "memory", "internal/store/..."}),
		outside: []string{"modernc.org/sqlite", "modernc.org/sqlite/lib", "golang.org/x/mod/sumdb/...", "golang.org/x/sys/...", "golang.org/x/text/...", "github.com/google/go-cmp/cmp", "pgregory.net/rapid"}},
	{name: "test support: stores", packages: []string{"internal/storetest/..."},
		may:     slices.Concat(words, []string{"audit", "memory", "internal/store/words", "internal/storetest"}),
		outside: []string{"golang.org/x/mod/sumdb/...", "golang.org/x/text/...", "github.com/google/go-cmp/cmp", "pgregory.net/rapid"}},
	{name: "the two wires", packages: []string{"internal/mcp/..."},
		may:     slices.Concat(words, []string{"policy", "gate", "internal/mcp/rpc"}),
		outside: []string{"golang.org/x/sys/...", "golang.org/x/net/http/httpguts"}},
	{name: "what waits for a person", packages: []string{"internal/approval"}, may: below},
	{name: "transport", packages: []string{"internal/gateway/..."},
		may:     slices.Concat(below, []string{"internal/approval", "internal/gateway/...", "internal/mcp/...", "internal/metrics", "internal/otlp", "internal/private", "internal/quote", "internal/snapshot"}),
		outside: []string{"golang.org/x/sys/...", "golang.org/x/mod/sumdb/note", "golang.org/x/net/http/httpguts"}},
	{name: "the state directory", packages: []string{"internal/statedir"},
		may: slices.Concat(words, []string{"audit", "internal/private", "internal/snapshot", "internal/store/sqlite", "internal/gateway/localdoor"}), outside: []string{"golang.org/x/mod/sumdb/note"}},
	{name: "the gate in a program of one's own", packages: []string{"guard"},
		may: slices.Concat(words, []string{"policy", "gate", "internal/gateway", "internal/mcp/downstream", "internal/private", "internal/statedir", "internal/store/sqlite"})},
	{name: "what was decided, in words", packages: []string{"internal/story"},
		may: slices.Concat(words, []string{"audit", "gate", "internal/approval", "internal/certificate", "internal/cli", "internal/gateway", "provenance"})},
	// The console reads what was recorded, and answers what waits through the one queue. It
	// reaches neither the gateway nor a store nor a server, and cannot decide.
	{name: "the console", packages: []string{"internal/console"}, may: slices.Concat(words, []string{"audit", "internal/approval", "internal/cli", "internal/story"})},
	{name: "users of the door", packages: []string{"internal/ask/..."},
		may: slices.Concat(below, []string{"internal/gateway", "internal/mcp/downstream", "internal/strictyaml", "internal/ask"}), outside: anything},
	{name: "the memory's server", packages: []string{"internal/memoryserver"}, may: slices.Concat(below, []string{"internal/gateway", "internal/snapshot"})},
	{name: "the rules that the memory is measured beside", packages: []string{"eval/memory/origin"}, pure: true},
	{name: "what evaluations count with", packages: []string{"eval/measure"}},
	{name: "offline evaluation", packages: []string{"eval/gates", "eval/invariants", "eval/memory", "eval/replay"}, may: slices.Concat(below, []string{"internal/strictyaml", "internal/words", "internal/quote", "eval/measure", "eval/memory/origin"}),
		outside: []string{"golang.org/x/text/unicode/norm"}},
	{name: "evaluation", packages: []string{"eval/..."},
		may: slices.Concat(below, []string{"internal/strictyaml", "internal/gateway", "internal/ask", "internal/mcp/upstream", "eval/measure"}), outside: anything},
	{name: "the example server", packages: []string{"internal/example"}, may: slices.Concat(words, []string{"internal/mcp/downstream", "internal/mcp/rpc"})},
	{name: "development tools", packages: []string{"internal/conformance", "internal/release"}},
	{name: "test support: a server that wants a login", packages: []string{"internal/login/standin"}},
	{name: "test support: a database", packages: []string{"internal/statement/throwaway"}},
	{name: "test support: a collector", packages: []string{"internal/otlp/standin"}, outside: []string{"go.opentelemetry.io/proto/otlp/...", "google.golang.org/protobuf/..."}},
	{name: "what contracts are made of", packages: []string{"internal/definitions"}, may: slices.Concat(words, []string{"policy", "gate", "contracts", "internal/mcp/upstream"})},
	{name: "the servers that misbehave", packages: []string{"internal/hostile/..."}, may: []string{"internal/hostile"}},
	{name: "what the programs do alike", packages: []string{"internal/cli"}, may: []string{"internal/text"}, outside: []string{"github.com/rogpeppe/go-internal/diff", "github.com/spf13/cobra", "golang.org/x/term"}},
	{name: "what an operator writes", packages: []string{"internal/config"},
		may:     slices.Concat(below, []string{"internal/strictyaml", "internal/private", "internal/mcp/upstream", "internal/ask/...", "internal/memoryserver", "internal/otlp", "internal/cli"}),
		outside: []string{"github.com/gofrs/flock"}},
	{name: "what clients write down", packages: []string{"internal/clients"}, may: words, pure: true,
		// No other package reads JSON with comments, or TOML.
		outside: []string{"github.com/tailscale/hujson", "github.com/pelletier/go-toml/v2/..."}},
	{name: "what a command line does", packages: []string{"internal/shell"}, may: []string{"internal/text"}, pure: true,
		// No other package reads a shell's language.
		outside: []string{"mvdan.cc/sh/v3/syntax"}},
	{name: "a client's own tools", packages: []string{"internal/hook"}, may: slices.Concat(words, []string{"gate", "internal/shell"}), pure: true},
	{name: "the program of the evaluation", packages: []string{"cmd/writ-eval"},
		may:     slices.Concat(below, []string{"internal/cli", "internal/config", "internal/statedir", "internal/storetest/mapstore", "internal/gateway", "internal/mcp/downstream", "internal/mcp/upstream", "internal/ask/...", "eval/...", "internal/strictyaml", "internal/private", "internal/example"}),
		outside: []string{"github.com/spf13/cobra"}},
	{name: "the program", packages: []string{"cmd/writ"},
		may:     slices.Concat(below, []string{"internal/strictyaml", "internal/private", "internal/principal", "internal/snapshot", "internal/statedir", "internal/store/...", "internal/approval", "internal/gateway/...", "internal/mcp/...", "internal/ask/...", "internal/console", "internal/memoryserver", "internal/example", "internal/cli", "internal/clients", "internal/config", "internal/draft", "internal/hook", "internal/login", "internal/metrics", "internal/otlp", "internal/story", "internal/witness"}),
		outside: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term", "golang.org/x/sys/...", "golang.org/x/mod/sumdb/...", "golang.org/x/text/..."}},
}

// impure are the std packages, with all below them, that pure code may not
// import; pureAll the same are harmless.
var (
	impure   = []string{"os", "net", "log", "syscall", "unsafe", "plugin", "runtime", "testing", "database", "math/rand", "crypto/rand", "io/ioutil", "embed", "expvar", "flag"}
	harmless = []string{"net/netip", "net/url", "embed"}
	// clocks are what pure code may not take from package time. It may use
	// times that were handed to it.
	clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Sleep", "Local", "LoadLocation"}
)

func within(pkg string, patterns []string) bool {
	for _, p := range patterns {
		if base, ok := strings.CutSuffix(p, "/..."); p == "..." || pkg == p || ok && (pkg == base || strings.HasPrefix(pkg, base+"/")) {
			return true
		}
	}
	return false
}

func relative(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// sources yields every Go file of the module that goes into the product, for
// all systems, by package; the files behind the build tag `pins` hold versions
// in go.mod and are never built.
func sources(t *testing.T) map[string]map[string]*ast.File {
	t.Helper()
	out := map[string]map[string]*ast.File{}
	walk(t, func(file string) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range f.Comments {
			if x, err := constraint.Parse(c.List[0].Text); err == nil && !x.Eval(func(tag string) bool { return tag != "pins" }) {
				return
			}
		}
		pkg := path.Dir(filepath.ToSlash(file))
		if out[pkg] == nil {
			out[pkg] = map[string]*ast.File{}
		}
		out[pkg][file] = f
	})
	if len(out) < 3 {
		t.Fatal("the module's packages were not found")
	}
	return out
}

// walk calls f for each file of the repository that is ours.
func walk(t *testing.T, f func(file string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch n := d.Name(); {
			case file == ".":
			case n == "node_modules", n == "dist", strings.HasPrefix(n, ".") && n != ".ci":
				return filepath.SkipDir
			}
			return nil
		}
		f(file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImportLattice(t *testing.T) {
	for pkg, files := range sources(t) {
		if within(pkg, []string{"testdata/..."}) {
			continue
		}
		i := slices.IndexFunc(lattice, func(l layer) bool { return within(pkg, l.packages) })
		if i < 0 {
			t.Errorf("package %s has no layer in arch_test.go", pkg)
			continue
		}
		l := lattice[i]
		for file, f := range files {
			for _, spec := range f.Imports {
				to, _ := strconv.Unquote(spec.Path.Value)
				if fault := l.forbids(to); fault != "" {
					t.Errorf("%s (%s) imports %s: %s", file, l.name, to, fault)
				}
			}
			if l.pure {
				for _, use := range clockUses(f) {
					t.Errorf("%s (%s) uses time.%s: what is pure is told the time", file, l.name, use)
				}
			}
		}
	}
}

// sharedWithGate is all that package certificate takes of the gate's code: what
// records, policies and definitions say, and what values mean.
var sharedWithGate = map[string][]string{
	"gate": {"Record", "Trace", "Ref", "Covered", "Catalogue", "Tool", "Open", "ApprovalHolds", "MethodContract"},
	"provenance": {"Alias", "Canonical", "Equal", "SmallSpace", "CheckText", "Wording", "WordingOf", "OwnText", "SecretAt", "Assents", "Means", "Wholly", "Anew", "Element", "Calls", "Calling", "Clicks", "Elements", "Outright", "Refers", "Orders", "OrderOf", "OrdersIt", "OrdersInside", "OrdersOne", "OneOf", "OrderOfNone", "Unsays", "AnswerOf", "LeadsAway", "Hosts", "LinkHost", "GoesOn", "Spares", "NounOf", "NounBehind", "NameEnds", "PlaceBefore", "PossessiveAt", "StandsAlone", "ToName", "NumberEnds", "NumberOf", "ListEnds", "Aim", "Within", "Schemeless", "Numbered", "Numbering", "Atoms", "Atom", "HiddenAtom", "MarkupAtom", "ManyAtoms", "NumberAtom",
		"Pattern", "OutputRule", "Rank", "Recalled", "NoExtract", "ExtractJSON", "ExtractTree", "ExtractStart", "Type", "Untyped", "Integer", "Decimal", "Email", "Host", "URL", "Path", "Name", "ID", "Phone", "IBAN"},
}

// TestSecondOpinion: certificates are checked with nothing of the ledger and nothing
// that decides.
func TestSecondOpinion(t *testing.T) {
	found := 0
	for file, f := range sources(t)["internal/certificate"] {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && sharedWithGate[x.Name] != nil {
					found++
					if !slices.Contains(sharedWithGate[x.Name], s.Sel.Name) {
						t.Errorf("%s takes %s.%s, which decides", file, x.Name, s.Sel.Name)
					}
				}
			}
			return true
		})
		for _, spec := range f.Imports {
			if spec.Name != nil && spec.Name.Name != "writ" {
				t.Errorf("%s imports %s under another name", file, spec.Path.Value)
			}
		}
	}
	if found < 50 {
		t.Errorf("%d uses found: what is shared is not seen", found)
	}
}

// products are what is shipped: a program, and a package others link.
var products = []string{"cmd/writ", "guard"}

// apart are evaluation and test support. Nothing of them is in a product.
var apart = []string{"eval/...", "cmd/writ-eval", "internal/storetest/...", "internal/hostile/...", "internal/otlp/standin", "internal/conformance", "internal/definitions", "internal/release"}

// inTests are libraries that tests alone use.
var inTests = []string{"github.com/anishathalye/porcupine/...", "go.uber.org/goleak/...", "pgregory.net/rapid/..."}

// TestApart: evaluation, test support and the libraries of tests are linked into no
// product, on any system.
func TestApart(t *testing.T) {
	packages := sources(t)
	for _, p := range products {
		for pkg := range closure(packages, p) {
			if within(pkg, apart) {
				t.Errorf("%s is linked into %s", pkg, p)
			}
			for file, f := range packages[pkg] {
				for _, spec := range f.Imports {
					if to, _ := strconv.Unquote(spec.Path.Value); within(to, inTests) {
						t.Errorf("%s imports %s, which is for tests", file, to)
					}
				}
			}
		}
	}
	all := closure(packages, "cmd/writ-eval")
	for _, pkg := range []string{"eval/gates", "internal/storetest/mapstore", "gate"} {
		if !all[pkg] {
			t.Errorf("cmd/writ-eval is linked without %s: what is imported is not found", pkg)
		}
	}
}

// closure is a package with all of the module that it imports, directly or not.
func closure(packages map[string]map[string]*ast.File, from string) map[string]bool {
	seen := map[string]bool{from: true}
	for todo := []string{from}; len(todo) > 0; todo = todo[1:] {
		for _, f := range packages[todo[0]] {
			for _, spec := range f.Imports {
				to, _ := strconv.Unquote(spec.Path.Value)
				if rel, ours := relative(to); ours && !seen[rel] {
					seen[rel] = true
					todo = append(todo, rel)
				}
			}
		}
	}
	return seen
}

// forbids says why a package of the layer may not import the path.
func (l layer) forbids(to string) string {
	if rel, ours := relative(to); ours {
		if !within(rel, l.may) {
			return "not below it in the lattice"
		}
		return ""
	}
	first, _, _ := strings.Cut(to, "/")
	if strings.Contains(first, ".") {
		if !within(to, l.outside) {
			return "not among its libraries"
		}
		return ""
	}
	if l.pure && !within(to, harmless) && slices.ContainsFunc(impure, func(p string) bool { return within(to, []string{p + "/..."}) }) {
		return "what is pure does no I/O and has no clock and no randomness"
	}
	return ""
}

// clockUses names what a file takes from package time that reads a clock.
func clockUses(f *ast.File) (uses []string) {
	name := ""
	for _, spec := range f.Imports {
		if spec.Path.Value == `"time"` {
			name = "time"
			if spec.Name != nil {
				name = spec.Name.Name
			}
		}
	}
	if name == "" {
		return nil
	}
	if name == "." {
		return []string{"* by a dot import"}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(clocks, s.Sel.Name) {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == name {
				uses = append(uses, s.Sel.Name)
			}
		}
		return true
	})
	return uses
}

// TestLatticeRefuses shows that the rules above can fail.
func TestLatticeRefuses(t *testing.T) {
	of := func(pkg string) layer {
		return lattice[slices.IndexFunc(lattice, func(l layer) bool { return within(pkg, l.packages) })]
	}
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"gate", module + "/provenance", true},
		{"provenance", module + "/gate", false},
		{"audit", module + "/gate", false},
		{"gate", "os", false},
		{"gate", "os/exec", false},
		{"audit", "crypto/rand", false},
		{"audit", "crypto/sha256", true},
		{"gate", "net/http", false},
		{"provenance", "net/netip", true},
		{"gate", "github.com/modelcontextprotocol/go-sdk/mcp", false},
		{"internal/mcp/upstream", "github.com/modelcontextprotocol/go-sdk/mcp", false},
		{"internal/store/sqlite", module + "/gate", false},
		{"internal/gateway", module + "/internal/store/sqlite", false},
		{"internal/gateway", module + "/cmd/writ", false},
		{"cmd/writ", module + "/internal/mcp/rpc", true},
		{"cmd/writ", "modernc.org/sqlite", false},
		{"cmd/writ", module + "/eval/gates", false},
		{"cmd/writ-eval", module + "/eval/gates", true},
		{"internal/console", module + "/internal/story", true},
		{"internal/console", module + "/internal/gateway", false},
		{"internal/console", module + "/internal/store/sqlite", false},
		{"internal/console", module + "/internal/mcp/downstream", false},
		{"internal/console", module + "/gate", false},
		{"guard", module + "/internal/gateway", true},
		{"guard", module + "/internal/mcp/upstream", false},
		{"guard", module + "/cmd/writ", false},
		{"cmd/writ", module + "/guard", false},
		{"internal/ask", module + "/guard", false},
		{"policy", module + "/internal/strictyaml", true},
		{"gate", module + "/internal/strictyaml", false},
		{"gate", module + "/policy", true},
		{"policy", module + "/gate", false},
		{"provenance", module + "/policy", false},
		{"internal/schema", module + "/policy", false},
		{"internal/strictyaml", module + "/gate", false},
		{"gate", "go.yaml.in/yaml/v4", false},
		{"cmd/writ", "go.yaml.in/yaml/v4", false},
	} {
		if got := of(c.from).forbids(c.to) == ""; got != c.ok {
			t.Errorf("%s imports %s: allowed %v, want %v", c.from, c.to, got, c.ok)
		}
	}
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nimport t \"time\"\nvar x = t.Now()", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := clockUses(f); !slices.Equal(got, []string{"Now"}) {
		t.Errorf("clockUses: %v", got)
	}
}

// A door is a function that product code may name in the listed functions
// only, once in each. Naming it through an interface it satisfies counts.
type door struct {
	pkg, typ, name string
	in             []string // "package.Function", "package.Type.Method"
}

var doors = []door{
	// Nothing reaches a server but through the door, which holds a decision.
	{"internal/mcp/upstream", "Server", "Call", []string{"internal/gateway.judgedCall.callServer"}},
	{"internal/gateway", "Inside", "Call", []string{"internal/gateway.judgedCall.callInside"}},
	// One package has the program's own functions called, through the same door.
	{"internal/gateway", "Gateway", "Call", []string{"guard.Session.Call"}},
	// One decision procedure for the door, for the replay of a session and
	// for whoever checks a log. The offline evaluation runs it over its cases; it
	// has no server to call.
	{"gate", "", "Decide", []string{"internal/gateway.decide", "eval/gates.Product", "eval/replay.decide",
		// What is learned from a log is tried on its calls, and calls nobody.
		"internal/learn.decide"}},
	// One place decides what an agent proposes to the memory, and writes it. The
	// others try or replay, and write nothing.
	{"memory", "", "Handle", []string{"internal/memoryserver.Keeper.Propose", "memory.Recheck", "cmd/writ.remembered.try",
		"eval/memory.Product"}},
	// One place opens a session in the log, one goes on with it, one ends one
	// that is not in use.
	{"audit", "Store", "Append", []string{"internal/gateway.register", "internal/gateway.sessions.append", "internal/gateway.places.append", "internal/gateway.lastBehind",
		// A namespace of the memory is a sequence of its own, with one writer.
		"internal/memoryserver.Keeper.append",
		"internal/store/sqlite.Store.accept",                 // what happened to the log itself
		"internal/storetest/mapstore.Store.AppendUnsynced"}}, // a map has no disk to wait for
	{"audit", "Store", "AppendUnsynced", []string{"internal/gateway.sessions.append"}},
	// Two places speak to a running gateway of the state directory, over the door
	// that proves it: to call, and to answer what waits.
	{"internal/gateway/localdoor", "Gateway", "Client", []string{"cmd/writ.through", "cmd/writ.flags.reach"}},
	{"internal/gateway/localdoor", "Gateway", "Handing", []string{"cmd/writ.flags.reach"}},
	// What a client itself says is read in one place, on the socket that it made.
	{"internal/gateway/localdoor", "", "HandedBy", []string{"cmd/writ.files.answerHook"}},
	// A person's answer comes in by one handler of the local door, from a page of the
	// console, from a client that was registered as his, or from the terminal of who makes the call himself, and
	// counts by one record. What he keeps from now on comes with it.
	{"internal/approval", "Queue", "Reply", []string{"internal/approval.Handler", "internal/console.Console.answer"}},
	{"internal/approval", "Queue", "Answer", []string{"internal/approval.Queue.Reply", "internal/gateway.judgedCall.heard", "cmd/writ.files.askHere"}},
	{"gate", "Session", "Approve", []string{"internal/gateway.sessions.approve", "internal/gateway.Replayer.approval",
		// The persons of an evaluation and of a replay, who have nothing to execute.
		"internal/learn.judging.call",
		"eval/replay.ours.call"}},
	// INV-6: the single-step host has one call site, in no loop.
	{"internal/ask", "Door", "Call", []string{"internal/ask.run.act"}},
}

// strangers are where the MCP library's own client calls a tool, past the door
// and without a decision. There is one: the naive agent that `writ-eval ask`
// compares Writ with. It is deliberately unsafe and no part of the product.
var strangers = []string{"eval/endtoend.naive.call"}

func callsPastTheDoor(o types.Object) bool {
	f, ok := o.(*types.Func)
	return ok && f.Name() == "CallTool" && f.Signature().Recv() != nil && f.Pkg() != nil && within(f.Pkg().Path(), []string{mcpSDK})
}

func TestOneDoor(t *testing.T) {
	if testing.Short() {
		t.Skip("type-checks the module")
	}
	if raceDetector {
		t.Skip("type-checks the module, for minutes under the race detector: `make check` runs it without")
	}
	pkgs := typeCheck(t)
	var past []string
	for importPath, p := range pkgs {
		rel, _ := relative(importPath)
		for where := range p.uses(callsPastTheDoor) {
			past = append(past, rel+"."+where)
		}
	}
	patterns(t, pkgs)
	slices.Sort(past)
	if !slices.Equal(past, strangers) {
		t.Errorf("the MCP library's client calls tools in %v, only %v may: nothing reaches a server but through the door", past, strangers)
	}
	for _, d := range doors {
		target := pkgs[module+"/"+d.pkg]
		if target == nil {
			continue // not built yet
		}
		isDoor := func(o types.Object) bool { return o == target.types.Scope().Lookup(d.name) }
		if d.typ != "" {
			obj := target.types.Scope().Lookup(d.typ)
			if obj == nil {
				t.Errorf("%s.%s is gone: say where the door is now", d.pkg, d.typ)
				continue
			}
			isDoor = func(o types.Object) bool { return reaches(o, obj.Type(), d.name) }
		}
		seen := map[string]int{}
		for importPath, p := range pkgs {
			rel, _ := relative(importPath)
			if rel == "internal/storetest" {
				continue // what tests of stores need
			}
			for where, n := range p.uses(isDoor) {
				seen[rel+"."+where] += n
			}
		}
		label := path.Join(d.pkg, d.typ) + "." + d.name
		for where, n := range seen {
			if !slices.Contains(d.in, where) {
				t.Errorf("%s names %s: not one of %v", where, label, d.in)
			} else if n != 1 {
				t.Errorf("%s names %s %d times, want once", where, label, n)
			}
		}
		for _, where := range d.in {
			if seen[where] == 0 {
				t.Errorf("%s no longer names %s: correct the list", where, label)
			}
		}
	}
}

// reaches reports whether calling the method o can run the method of that name
// of the type T: it is T's own, T is an interface o's receiver satisfies, or
// o's receiver is an interface T satisfies.
func reaches(o types.Object, T types.Type, name string) bool {
	f, ok := o.(*types.Func)
	if !ok || f.Name() != name || f.Signature().Recv() == nil {
		return false
	}
	recv := f.Signature().Recv().Type()
	bare := func(t types.Type) types.Type {
		if p, ok := types.Unalias(t).(*types.Pointer); ok {
			return p.Elem()
		}
		return t
	}
	if types.Identical(bare(recv), T) {
		return true
	}
	if i, ok := T.Underlying().(*types.Interface); ok {
		return types.Implements(recv, i)
	}
	if i, ok := recv.Underlying().(*types.Interface); ok {
		return types.Implements(T, i) || types.Implements(types.NewPointer(T), i)
	}
	return false
}

// patterns checks that what text.Pattern compiles when it is first asked for can be
// compiled. Of an expression that is made at run time a test that asks for it shows that.
func patterns(t *testing.T, pkgs map[string]*checked) {
	made := pkgs[module+"/internal/text"].types.Scope().Lookup("Pattern")
	found := 0
	for _, p := range pkgs {
		for _, f := range p.files {
			ast.Inspect(f, func(n ast.Node) bool {
				c, ok := n.(*ast.CallExpr)
				if !ok || len(c.Args) != 1 {
					return true
				}
				name, ok := c.Fun.(*ast.Ident)
				if s, is := c.Fun.(*ast.SelectorExpr); is {
					name, ok = s.Sel, true
				}
				if expr := p.info.Types[c.Args[0]].Value; ok && p.info.Uses[name] == made && expr != nil {
					found++
					if _, err := regexp.Compile(constant.StringVal(expr)); err != nil {
						t.Errorf("%s: %v", p.types.Path(), err)
					}
				}
				return true
			})
		}
	}
	if found < 100 {
		t.Errorf("%d patterns were looked at", found)
	}
}

type checked struct {
	types *types.Package
	info  *types.Info
	files []*ast.File
}

// uses counts, by the function they stand in, the uses of what the predicate
// names.
func (c *checked) uses(is func(types.Object) bool) map[string]int {
	out := map[string]int{}
	for _, f := range c.files {
		for _, decl := range f.Decls {
			where := "package level"
			if fn, ok := decl.(*ast.FuncDecl); ok {
				where = fn.Name.Name
				if fn.Recv != nil {
					recv := fn.Recv.List[0].Type
					if star, ok := recv.(*ast.StarExpr); ok {
						recv = star.X
					}
					if id, ok := recv.(*ast.Ident); ok {
						where = id.Name + "." + where
					}
				}
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					if o := c.info.Uses[id]; o != nil && is(o) {
						out[where]++
					}
				}
				return true
			})
		}
	}
	return out
}

// typeCheck checks the module's packages from their sources, everything else
// from the export data the go command keeps, so that a method is known by its
// type and not by how a line is spelt.
func typeCheck(t *testing.T) map[string]*checked {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Export,Dir,GoFiles", "./...")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, errs.Bytes())
	}
	type listed struct {
		ImportPath, Export, Dir string
		GoFiles                 []string
	}
	var ours []listed
	export := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		export[p.ImportPath] = p.Export
		if _, ok := relative(p.ImportPath); ok {
			ours = append(ours, p) // dependencies come first
		}
	}
	fset := token.NewFileSet()
	pkgs := map[string]*checked{}
	outside := importer.ForCompiler(fset, "gc", func(p string) (io.ReadCloser, error) { return os.Open(export[p]) })
	imp := importerFunc(func(p string) (*types.Package, error) {
		if c := pkgs[p]; c != nil {
			return c.types, nil
		}
		return outside.Import(p)
	})
	for _, p := range ours {
		c := &checked{info: &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}}
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			c.files = append(c.files, f)
		}
		c.types, err = (&types.Config{Importer: imp}).Check(p.ImportPath, fset, c.files, c.info)
		if err != nil {
			t.Fatal(err)
		}
		pkgs[p.ImportPath] = c
	}
	return pkgs
}

type importerFunc func(string) (*types.Package, error)

func (f importerFunc) Import(p string) (*types.Package, error) { return f(p) }

func TestPackageNames(t *testing.T) {
	for pkg := range sources(t) {
		switch path.Base(pkg) {
		case "util", "utils", "common", "types", "helper", "helpers", "misc", "base", "shared":
			t.Errorf("package %s: a name says what is in it", pkg)
		}
	}
}

func TestGoMod(t *testing.T) {
	b, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	f, err := modfile.Parse("go.mod", b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Module.Mod.Path != module {
		t.Errorf("module %s, want %s", f.Module.Mod.Path, module)
	}
	if len(f.Replace) > 0 {
		t.Error("go.mod has a replace: what is built must be what others get")
	}
}

package contracts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/contracts"
	"github.com/writ-project/writ/policy"
)

// accepted are warnings of writ check that a contract answers in its comments, by a part
// of their text.
var accepted = map[string][]string{
	// Airtable gives bases and tables their ids; these say where the record is that goes.
	"airtable": {"reports as authoritative"},
	// The title of a page is on the line of its number, which is the browser's.
	"chrome-devtools": {"lines without join"},
	// The allowed directories are whoever's started the server; what write_file is sent
	// comes back in no list, only in files.
	"filesystem": {"lines without join", "reports as authoritative"},
	// The sum of a text is a condition of a write, and GitHub computes it.
	"github": {"reports as authoritative"},
	// The names of labels are their owner's, and no list of Gmail's shows one that he did not make.
	// A call with a list of what is taken away is no case, and what stands in the list has a rule.
	"gmail": {"lines without join", "the argument that tells the cases apart has no rule"},
	// Linear gives a state its id; the one of an issue says which it gets.
	"linear": {"reports as authoritative"},
	// The short names of organisations are of small letters and digits: none holds a line's end.
	"sentry": {"lines without join"},
	// Slack gives each message a time of its own; the one in a reply says to which.
	"slack": {"reports as authoritative"},
	// git clean has no argument that says what: it always waits for a person.
	"git": {"names no target and no selector"},
	// Nor has cleanup of kubernetes.
	"kubernetes": {"names no target and no selector"},
	// A statement says itself what it deletes, and the user typed it whole.
	"sqlite": {"names no target and no selector"},
	// Nor does a line of shell, and the user typed it whole.
	"desktop-commander": {"names no target and no selector"},
	// POST is how its API is asked for a search; a column's name says only which of a page's own
	// is written.
	"notion": {`says "post"`, "reports as authoritative"},
}

// TestContracts: each contract is a policy without a fault, for exactly the definitions
// beside it, that says who can write what it believes, believes nothing that another
// server could say, and has cases.
func TestContracts(t *testing.T) {
	folders, err := filepath.Glob("*/contract.yaml")
	if err != nil || len(folders) != len(contracts.All()) {
		t.Fatalf("%d folders and %d contracts (%v)", len(folders), len(contracts.All()), err)
	}
	for _, c := range contracts.All() {
		t.Run(c.Name, func(t *testing.T) {
			p, faults := policy.Parse("contract.yaml", []byte(c.At(contracts.Self)))
			for _, f := range faults {
				t.Error(f)
			}
			if len(faults) > 0 {
				return
			}
			for _, w := range p.Warnings {
				if !slices.ContainsFunc(accepted[c.Name], func(a string) bool { return strings.Contains(w.Message, a) }) {
					t.Errorf("writ check warns: %v", w)
				}
			}
			if c.Of == "" || c.Version == "" {
				t.Error("tools.json does not say what it was made from")
			}
			pins := c.Pins()
			for name, k := range p.Contracts {
				if pins[name] == "" || k.Pin != pins[name] {
					t.Errorf("%s is pinned to %s, and its definition is %s: go run ./internal/definitions", name, k.Pin, pins[name])
				}
				believes(t, c, k)
			}
			for name := range pins {
				if p.Contracts[name] == nil {
					t.Errorf("%s has no contract", name)
				}
			}
			for name := range p.Collections {
				if !strings.HasPrefix(name, contracts.Self+".") {
					t.Errorf("the collection %s could be another server's: %s.%s", name, contracts.Self, name)
				}
			}
			cases, err := os.ReadFile(filepath.Join(c.Name, "cases.txtar"))
			judges := false
			for _, k := range p.Contracts {
				judges = judges || k.Effect != policy.Read || k.Plain
			}
			if err != nil || len(allow.FindAll(cases, -1)) < 2 || judges && len(deny.FindAll(cases, -1)) < 2 {
				t.Errorf("at least two calls that are accepted and two that are not: %v", err)
			}
		})
	}
}

var (
	allow = regexp.MustCompile(`(?m)^allow$`)
	deny  = regexp.MustCompile(`(?m)^(deny|asks) `)
	who   = regexp.MustCompile(`# .*[Ww]ritten by: `)
)

// believes holds a contract to its own server: what it lets vouch is in a collection of
// its own with a word on who can write it, and what it accepts is of such a one.
func believes(t *testing.T, c *contracts.Contract, k *policy.Contract) {
	lines := strings.Split(c.At(contracts.Self), "\n")
	for _, o := range k.Outputs {
		if o.Label >= writ.Party && o.Collection == "" {
			t.Errorf("%s: the output %s vouches, for every argument of its type, of every server", k.Tool, o.At.Source)
		}
	}
	for i, line := range lines {
		if strings.Contains(line, "label: system") || strings.Contains(line, "label: party") {
			said := who.MatchString(line)
			for j := i - 1; j >= 0 && !said && !toolLine.MatchString(lines[j]); j-- {
				said = who.MatchString(lines[j])
			}
			if !said {
				t.Errorf("line %d does not say who can write it", i+1)
			}
		}
	}
	args := slices.Clone(k.Args)
	for _, of := range k.Cases {
		args = append(args, of.Args...)
	}
	for _, a := range args {
		for _, s := range a.From {
			if s.Kind == policy.FromOutput && a.Collection == "" && s.Tool == "" && a.Role != policy.Content && a.Role != policy.Query {
				t.Errorf("%s%s accepts an output of any server", k.Tool, a.At.Source)
			}
		}
	}
}

var toolLine = regexp.MustCompile(`^  [^ #]`)

// TestLexiconUsed: a meaning that no contract says is none of the lexicon's.
func TestLexiconUsed(t *testing.T) {
	lexicon, err := os.ReadFile("../provenance/lexicon.txt")
	if err != nil {
		t.Fatal(err)
	}
	said := string(lexicon)
	files, err := filepath.Glob("*/contract.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		said += string(data)
	}
	for _, at := range regexp.MustCompile(`(?m)^([a-z][a-z ]*) = `).FindAllStringSubmatch(string(lexicon), -1) {
		if !strings.Contains(said, "<"+at[1]+">") {
			t.Errorf("<%s> is said nowhere", at[1])
		}
	}
}

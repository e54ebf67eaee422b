package memory

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/internal/text"
)

// Fault is one defect of a policy file, with its line and column.
type Fault = strictyaml.Fault

// Policy holds every constant of the memory: one strict YAML document, all of
// whose keys are required. It is made by ParsePolicy or Builtin and never
// changed. Its hash stands in every decision.
type Policy struct {
	// Version is 2.
	Version Count `yaml:"version"`
	// Trust is what the word of a class is worth, 0 to 3.
	Trust    Levels   `yaml:"levels"`
	Entities Entities `yaml:"entities"`
	Caps     Caps     `yaml:"caps"`

	source []byte
	hash   string
	levels map[TrustClass]int // of Trust
}

// Levels is what the word of each class of source is worth. What the agent
// concludes is worth 0. A policy can lower a level, not raise it above the most
// that the channel of a class can prove: whoever writes to a class of level 1 is
// anybody.
type Levels struct {
	Operator             Count `yaml:"operator" most:"3"`
	DirectUser           Count `yaml:"direct_user" most:"3"`
	ToolInternal         Count `yaml:"tool_internal" most:"2"`
	UserAttested         Count `yaml:"user_attested" most:"2"`
	UserAttestedHardened Count `yaml:"user_attested_hardened" most:"1"`
	ToolExternal         Count `yaml:"tool_external" most:"1"`
	Document             Count `yaml:"document" most:"1"`
	Web                  Count `yaml:"web" most:"1"`
	PeerAgent            Count `yaml:"peer_agent" most:"1"`
	Import               Count `yaml:"import" most:"1"`
}

// Entities says when two names may be one.
type Entities struct {
	// Similarity is the share of equal runs of three letters, in percent.
	Similarity Count `yaml:"similarity"`
	// Ambiguous and Similar are how many others a new entity is linked to at
	// most: those of the same name, and those alike.
	Ambiguous Count `yaml:"ambiguous_links"`
	Similar   Count `yaml:"similar_links"`
}

// Caps bound what one source or task brings.
type Caps struct {
	// ObservationsPerMinute is of one source.
	ObservationsPerMinute Count `yaml:"observations_per_minute"`
	EntitiesPerTask       Count `yaml:"entities_per_task"`
	PropositionsPerTask   Count `yaml:"propositions_per_task"`
	OpenTestsPerTask      Count `yaml:"open_tests_per_task"`
	// FutureMinutes is how far a claimed time may lead the clock.
	FutureMinutes Count `yaml:"future_minutes"`
	// TestHours is how long a test stays open.
	TestHours Hours `yaml:"test_hours"`
}

// Count is a whole number of a policy.
type Count int

// ReadYAML implements strictyaml.Readable.
func (c *Count) ReadYAML(r *strictyaml.Reader, n *strictyaml.Node) {
	var w strictyaml.Whole
	w.ReadYAML(r, n)
	*c = Count(w.N)
}

// Hours is a time of whole hours.
type Hours time.Duration

// ReadYAML implements strictyaml.Readable.
func (h *Hours) ReadYAML(r *strictyaml.Reader, n *strictyaml.Node) {
	var w strictyaml.Whole
	w.ReadYAML(r, n)
	r.FaultIf(w.Valid && w.N == 0, n, "a time of at least one hour is expected here", "")
	*h = Hours(time.Duration(w.N) * time.Hour)
}

// ParsePolicy reads a policy. It returns either a policy or at least one fault:
// all there are, in the order of the file. Every key is required and no other
// is known, so that no constant is ever a default nobody wrote down. The file
// name is only repeated in the faults.
func ParsePolicy(file string, b []byte) (*Policy, []Fault) {
	r := strictyaml.New(file)
	root := r.Parse(b, "a policy has at least the key version")
	if root == nil {
		return nil, r.Faults()
	}
	p := &Policy{source: slices.Clone(b)}
	r.Decode(root, p)
	complete(r, root, reflect.TypeOf(*p), "")
	if r.Count() == 0 {
		p.check(r, root)
	}
	if r.Count() > 0 {
		return nil, r.Faults()
	}
	sum := sha256.Sum256(b)
	p.hash = hex.EncodeToString(sum[:])
	return p, nil
}

// complete notes every key of t that the mapping lacks.
func complete(r *strictyaml.Reader, n *strictyaml.Node, t reflect.Type, at string) {
	for i := range t.NumField() {
		tag := t.Field(i).Tag.Get("yaml")
		if tag == "" {
			continue
		}
		switch c := n.Get(tag); {
		case c == nil && n.Kind == strictyaml.Mapping:
			r.Fault(n, "the key "+at+tag+" is missing", "write every constant down: the built-in policies show all")
		case c != nil && t.Field(i).Type.Kind() == reflect.Struct:
			complete(r, c, t.Field(i).Type, at+tag+".")
		}
	}
}

// check notes values that have the right form and no sense, and takes the levels by
// their classes.
func (p *Policy) check(r *strictyaml.Reader, root *strictyaml.Node) {
	r.FaultIf(p.Version != 2, root.Get("version"), "version "+strconv.Itoa(int(p.Version))+" is not known", "write version: 2")
	r.FaultIf(p.Entities.Similarity > 100, root.Get("entities").Get("similarity"), "a share of at most 100 percent is expected here", "")
	levels := reflect.ValueOf(p.Trust)
	p.levels = map[TrustClass]int{}
	for i := range levels.NumField() {
		f, level := levels.Type().Field(i).Tag, levels.Field(i).Int()
		p.levels[TrustClass(f.Get("yaml"))] = int(level)
		if most, err := strconv.Atoi(f.Get("most")); err != nil || int(level) > most {
			r.Fault(root.Get("levels").Get(f.Get("yaml")), "the class cannot have a level above "+f.Get("most"), "its channel proves no more")
		}
	}
}

// Hash returns the SHA-256, in hex, of the file's bytes.
func (p *Policy) Hash() string { return p.hash }

// Source returns the file's bytes.
func (p *Policy) Source() []byte { return slices.Clone(p.source) }

//go:embed policy.yaml
var builtin []byte

// Builtin returns the built-in policy.
func Builtin() *Policy {
	p, faults := ParsePolicy("policy.yaml", builtin)
	if len(faults) > 0 {
		panic("memory: " + faults[0].String()) // a test holds that there is none
	}
	return p
}

// slug reports whether s is a lower-case word of ASCII letters, digits, _ and
// -, at most 64 long, that starts with a letter.
func slug(s string) bool { return slugForm().MatchString(s) }

var slugForm = text.Pattern(`^[a-z][a-z0-9_-]{0,63}$`)

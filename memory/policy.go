package memory

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/writ-project/writ/internal/strictyaml"
)

// Fault is one defect of a policy file, with its line and column.
type Fault = strictyaml.Fault

// Policy holds every constant of the memory: one strict YAML document, all of
// whose keys are required. It is made by ParsePolicy or Builtin and never
// changed. Its hash stands in every decision.
type Policy struct {
	// Version is 1.
	Version Count `yaml:"version"`
	// Profile is a name for people: v01q and v1 are built in.
	Profile string `yaml:"profile"`
	// Flags turn the decisions of the second profile on.
	Flags Flags `yaml:"flags"`
	// Volatility says how fast a claim grows stale. The fifth word a
	// proposition may have, static, is never stale and has no constants.
	Volatility Volatility `yaml:"volatility"`
	Saturation Saturation `yaml:"saturation"`
	Confidence Confidence `yaml:"confidence"`
	Thresholds Thresholds `yaml:"thresholds"`
	// Strict are the kinds of claim with thresholds of their own; they hold
	// where flags.by_class is on.
	Strict    ByClass   `yaml:"by_class"`
	Promotion Promotion `yaml:"promotion"`
	Trigger   Trigger   `yaml:"trigger"`
	// Consolidation says when and how much.
	Consolidation Consolidation `yaml:"consolidation"`
	Trust         Trust         `yaml:"trust_classes"`
	Entities      Entities      `yaml:"entities"`
	Caps          Caps          `yaml:"caps"`
	Retention     Retention     `yaml:"retention"`

	source []byte
	hash   string
}

// Flags are the switches between the origin's rules and the default's.
type Flags struct {
	// NoisyOr joins groups by 1 - PROD(1 - w) instead of the mean.
	NoisyOr bool `yaml:"noisy_or"`
	// Weights lets the source's reliability weigh its group.
	Weights bool `yaml:"weights"`
	// Eligibility lets a contradiction count only from a level that reaches
	// the incumbent's, or 2.
	Eligibility bool `yaml:"eligibility"`
	// LowTrust keeps what only levels 0 and 1 support at tentative, lets
	// level 0 add no group, and level 0 and 1 refresh nothing.
	LowTrust bool `yaml:"low_trust"`
	// Grounded counts support in full only from an observation that has the
	// claim's value in it; from any other, as the agent's inference.
	Grounded bool `yaml:"grounded"`
	// SelfReport lets a person establish facts about himself alone.
	SelfReport bool `yaml:"self_report"`
	// ByClass demands more of causal and procedural claims.
	ByClass bool `yaml:"by_class"`
	// ExtraTiers allows the tiers durable and static.
	ExtraTiers bool `yaml:"extra_tiers"`
	// Balance also rejects what is contradicted far more than supported.
	Balance bool `yaml:"balance"`
	// StickyStale makes deprecation independent of when somebody looks, and
	// ends it by new support alone.
	StickyStale bool `yaml:"sticky_stale"`
	// DurableFailure keeps a failed test in force until independent support
	// came after it.
	DurableFailure bool `yaml:"durable_failure"`
	// TimeOnlyLowers forbids an evaluation without new evidence to raise.
	TimeOnlyLowers bool `yaml:"time_only_lowers"`
	// Supersession gives a slot of single cardinality one current value.
	Supersession bool `yaml:"supersession"`
	// ToolMaySupersedeUser lets one tool's word replace a person's.
	ToolMaySupersedeUser bool `yaml:"tool_may_supersede_user"`
	// CadenceAtLeast makes the cadence "at least" instead of "a multiple of".
	CadenceAtLeast bool `yaml:"cadence_at_least"`
	// HoldGate evaluates anew before promotion, and keeps what is canonical
	// already as long as it passes the promotion gate's freshness.
	HoldGate bool `yaml:"hold_gate"`
}

// Volatility holds the tiers with constants.
type Volatility struct {
	Low     Tier `yaml:"low"`
	Medium  Tier `yaml:"medium"`
	High    Tier `yaml:"high"`
	Durable Tier `yaml:"durable"`
}

// Tier is one tier of volatility.
type Tier struct {
	HalfLife Hours `yaml:"half_life_hours"`
	Factor   Micro `yaml:"factor"`
}

// Saturation is what the first, second and every further item of one group
// adds, up to one.
type Saturation struct {
	First  Micro `yaml:"first"`
	Second Micro `yaml:"second"`
	Third  Micro `yaml:"third"`
}

// Confidence holds the constants of the confidence formula.
type Confidence struct {
	Base                Micro `yaml:"base"`
	SupportWeight       Micro `yaml:"support_weight"`
	ContradictionWeight Micro `yaml:"contradiction_weight"`
	DiversityStep       Micro `yaml:"diversity_step"`
	DiversityCap        Micro `yaml:"diversity_cap"`
	StalenessMultiplier Micro `yaml:"staleness_multiplier"`
	StalenessCap        Micro `yaml:"staleness_cap"`
}

// Thresholds are those of the state machine.
type Thresholds struct {
	RejectedConfidence    Micro `yaml:"rejected_confidence"`
	RejectedContradiction Micro `yaml:"rejected_contradiction"`
	RejectedGroups        Count `yaml:"rejected_groups"`
	// RejectedBalance is how far contradiction must exceed support (flag balance).
	RejectedBalance        Micro `yaml:"rejected_balance"`
	ContestedSupport       Micro `yaml:"contested_support"`
	ContestedContradiction Micro `yaml:"contested_contradiction"`
	AcceptedConfidence     Micro `yaml:"accepted_confidence"`
	AcceptedGroups         Count `yaml:"accepted_groups"`
	AcceptedContradiction  Micro `yaml:"accepted_contradiction"`
	AcceptedFreshness      Micro `yaml:"accepted_freshness"`
	DeprecatedFreshness    Micro `yaml:"deprecated_freshness"`
	DeprecatedHalfLives    Micro `yaml:"deprecated_half_lives"`
	ProvisionalConfidence  Micro `yaml:"provisional_confidence"`
	// FailureClearedBy is how many independent groups of level 2 or more end
	// a failed test's rejection (flag durable_failure).
	FailureClearedBy Count `yaml:"failure_cleared_by"`
}

// ByClass holds the thresholds for acceptance of particular claims.
type ByClass struct {
	SelfReport Acceptance `yaml:"self_report"`
	Causal     Acceptance `yaml:"causal"`
	Procedural Acceptance `yaml:"procedural"`
}

// Acceptance is what acceptance takes.
type Acceptance struct {
	Confidence Micro `yaml:"confidence" json:"confidence"`
	Groups     Count `yaml:"groups" json:"groups"`
	// Test says that a passed test is needed.
	Test bool `yaml:"test" json:"test"`
}

// Promotion is the gate into canonical memory.
type Promotion struct {
	Freshness Micro `yaml:"freshness"`
}

// Trigger holds the thresholds for proposing a test.
type Trigger struct {
	SmallGap          Micro `yaml:"small_gap"`
	ContestedUpdates  Count `yaml:"contested_updates"`
	Contradictions    Count `yaml:"contradictions"`
	NoveltyConfidence Range `yaml:"novelty_confidence"`
	NoveltyGroups     Count `yaml:"novelty_groups"`
}

// Range is a closed interval.
type Range struct {
	From Micro `yaml:"from"`
	To   Micro `yaml:"to"`
}

// Consolidation says when memory is consolidated and what is carried over.
type Consolidation struct {
	// Cadence is after how many new observations it is due.
	Cadence Count `yaml:"cadence"`
	// CarryOver is how many unresolved propositions a task hands on.
	CarryOver Count `yaml:"carry_over"`
	// ExpireAfter is after how many tasks an untouched one is archived.
	ExpireAfter Count `yaml:"expire_after_tasks"`
}

// Trust holds level and prior of each class of source.
type Trust struct {
	Operator     Class `yaml:"operator"`
	DirectUser   Class `yaml:"direct_user"`
	ToolInternal Class `yaml:"tool_internal"`
	// UserAttested is what the agent says the user said: in local mode, and
	// in hardened mode.
	UserAttested         Class `yaml:"user_attested"`
	UserAttestedHardened Class `yaml:"user_attested_hardened"`
	ToolExternal         Class `yaml:"tool_external"`
	Document             Class `yaml:"document"`
	Web                  Class `yaml:"web"`
	PeerAgent            Class `yaml:"peer_agent"`
	AgentInference       Class `yaml:"agent_inference"`
	Import               Class `yaml:"import"`
	// DomainFactor weighs a source outside its domain.
	DomainFactor Micro `yaml:"domain_factor"`
}

// Class is a class of sources.
type Class struct {
	Level       Count `yaml:"level"`
	Reliability Micro `yaml:"reliability"`
	// Pooled makes one independence group of the whole class.
	Pooled bool `yaml:"pooled"`
}

// Entities holds the constants of linking.
type Entities struct {
	Similarity          Micro `yaml:"similarity"`
	CanonicalSimilarity Micro `yaml:"canonical_similarity"`
	Ambiguous           Count `yaml:"ambiguous_links"`
	Similar             Count `yaml:"similar_links"`
}

// Caps bound what an agent can make.
type Caps struct {
	ObservationsPerMinute Count `yaml:"observations_per_minute"`
	EntitiesPerTask       Count `yaml:"entities_per_task"`
	PropositionsPerTask   Count `yaml:"propositions_per_task"`
	OpenTestsPerTask      Count `yaml:"open_tests_per_task"`
	// FutureMinutes is how far a claimed time may lead the clock.
	FutureMinutes Count `yaml:"future_minutes"`
	// TestHours is how long a test stays open.
	TestHours Hours `yaml:"test_hours"`
}

// Retention is how long episodes are kept, in days.
type Retention struct {
	Transient Count `yaml:"transient_days"`
	Standard  Count `yaml:"standard_days"`
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
	if w.Valid && w.N == 0 {
		r.Fault(n, "a time of at least one hour is expected here", "")
	}
	*h = Hours(time.Duration(w.N) * time.Hour)
}

// ReadYAML implements strictyaml.Readable.
func (m *Micro) ReadYAML(r *strictyaml.Reader, n *strictyaml.Node) {
	v, err := parseMicro(n.Value)
	if !n.Plain || err != nil || v < 0 || v > 1000*One {
		r.Fault(n, "a number from 0 to 1000 with at most 6 decimal places is expected here", "")
		return
	}
	*m = v
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

// check notes values that have the right form and no sense.
func (p *Policy) check(r *strictyaml.Reader, root *strictyaml.Node) {
	at := func(path ...string) *strictyaml.Node {
		n := root
		for _, k := range path {
			n = n.Get(k)
		}
		return n
	}
	if p.Version != 1 {
		r.Fault(at("version"), "version "+strconv.Itoa(int(p.Version))+" is not known", "write version: 1")
	}
	if !slug(p.Profile) {
		r.Fault(at("profile"), "a profile's name is a slug", "lower-case letters, digits and _")
	}
	// Weights, scores and thresholds are shares of one.
	var shares func(n *strictyaml.Node, v reflect.Value)
	shares = func(n *strictyaml.Node, v reflect.Value) {
		for i := range v.NumField() {
			tag := v.Type().Field(i).Tag.Get("yaml")
			if tag == "" {
				continue
			}
			c := n.Get(tag)
			switch f := v.Field(i); {
			case f.Kind() == reflect.Struct:
				shares(c, f)
			case f.Type() == reflect.TypeFor[Micro]() && tag != "factor" && tag != "deprecated_half_lives" && Micro(f.Int()) > One:
				r.Fault(c, "a number from 0 to 1 is expected here", "")
			}
		}
	}
	shares(root, reflect.ValueOf(*p))
	if s := p.Saturation; s.First+s.Second+s.Third > One {
		r.Fault(at("saturation"), "the three steps add up to more than 1", "")
	}
	if s := p.Saturation; s.First < s.Second || s.Second < s.Third {
		r.Fault(at("saturation"), "a later item of one group weighs more than an earlier one", "first ≥ second ≥ third")
	}
	if p.Trigger.NoveltyConfidence.From > p.Trigger.NoveltyConfidence.To {
		r.Fault(at("trigger", "novelty_confidence"), "the range is empty", "")
	}
	if p.Consolidation.Cadence == 0 {
		r.Fault(at("consolidation", "cadence"), "a cadence of 0 is never due", "")
	}
	for name, c := range map[string]Class{
		"operator": p.Trust.Operator, "direct_user": p.Trust.DirectUser, "tool_internal": p.Trust.ToolInternal,
		"user_attested": p.Trust.UserAttested, "user_attested_hardened": p.Trust.UserAttestedHardened,
		"tool_external": p.Trust.ToolExternal, "document": p.Trust.Document, "web": p.Trust.Web,
		"peer_agent": p.Trust.PeerAgent, "agent_inference": p.Trust.AgentInference, "import": p.Trust.Import,
	} {
		if c.Level > maxLevel[name] {
			r.Fault(at("trust_classes", name, "level"), "the class cannot have a level above "+strconv.Itoa(int(maxLevel[name])), "its channel proves no more")
		}
	}
}

// maxLevel is what the channel of a class can prove at most. A policy can
// lower a level, not raise it: whoever writes to a pooled class is anybody.
var maxLevel = map[string]Count{
	"operator": 3, "direct_user": 3, "tool_internal": 2, "user_attested": 2, "user_attested_hardened": 1,
	"tool_external": 1, "document": 1, "web": 1, "peer_agent": 1, "agent_inference": 0, "import": 1,
}

// Hash returns the SHA-256, in hex, of the file's bytes.
func (p *Policy) Hash() string { return p.hash }

// Source returns the file's bytes.
func (p *Policy) Source() []byte { return slices.Clone(p.source) }

//go:embed policy/v01q.yaml policy/v1.yaml
var builtin embed.FS

// Builtin returns a built-in policy: "v1", the default, or "v01q", the origin's
// figures, for conformance and comparison.
func Builtin(profile string) (*Policy, bool) {
	name := "policy/" + profile + ".yaml"
	if profile != "v1" && profile != "v01q" {
		return nil, false
	}
	b, err := builtin.ReadFile(name)
	if err != nil {
		return nil, false
	}
	p, faults := ParsePolicy(name, b)
	if len(faults) > 0 {
		panic("memory: " + faults[0].String()) // a test holds that there is none
	}
	return p, true
}

// TierName is the word a proposition's volatility is named by.
type TierName string

// The tiers. Durable and Static need flags.extra_tiers.
const (
	Low     TierName = "low"
	Medium  TierName = "medium"
	High    TierName = "high"
	Durable TierName = "durable"
	Static  TierName = "static"
)

// tier returns the constants of a tier; static has none and false.
func (p *Policy) tier(t TierName) (Tier, bool) {
	switch t {
	case Low:
		return p.Volatility.Low, true
	case High:
		return p.Volatility.High, true
	case Durable:
		return p.Volatility.Durable, true
	case Static:
		return Tier{}, false
	}
	return p.Volatility.Medium, true
}

// slug reports whether s is a lower-case word of ASCII letters, digits, _ and
// -, at most 64 long, that starts with a letter.
func slug(s string) bool {
	if s == "" || len(s) > 64 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

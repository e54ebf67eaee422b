package memory

import (
	"slices"

	writ "github.com/writ-project/writ"
)

// The objects of the state. What an agent or a person wrote (payloads, names,
// texts, quotes) stands in fields marked erasable: it comes from the value
// beside an event and can go without it; everything else is in the event.

// Observation is one immutable piece of evidence.
type Observation struct {
	ID          string       `json:"id"`
	Client      string       `json:"client"` // the caller's own id, unique per principal
	Source      string       `json:"source"`
	Class       TrustClass   `json:"class"`
	Level       int          `json:"level"`
	Label       writ.Label   `json:"label"`
	Group       string       `json:"group"`
	Reliability Micro        `json:"reliability"`
	Evidence    string       `json:"evidence,omitempty"` // what Writ itself saw, "" if nothing
	Whole       bool         `json:"whole,omitempty"`    // it begins and ends where something of the evidence does
	Between     bool         `json:"between,omitempty"`  // its ends cut no word and no number
	Type        string       `json:"type,omitempty"`     // of the leaf it is, by the gate's policy
	Collection  string       `json:"collection,omitempty"`
	Principal   string       `json:"principal"`
	Session     string       `json:"session"`
	Task        string       `json:"task"`
	RecordedAt  Instant      `json:"recorded_at"`
	EventTime   Instant      `json:"event_time"`
	Lineage     []string     `json:"lineage,omitempty"`
	Status      IngestStatus `json:"status"`

	Raw       string `json:"raw,omitempty"`        // erasable
	Parsed    string `json:"parsed,omitempty"`     // erasable, JSON
	SourceRef string `json:"source_ref,omitempty"` // erasable
}

// IngestStatus is what became of an observation.
type IngestStatus string

// A quarantined observation is kept and supports nothing; of an erased one
// only that it was is left; a distrusted one came from a source that an
// operator no longer believes since some time.
const (
	Ingested    IngestStatus = "ingested"
	Quarantined IngestStatus = "quarantined"
	Erased      IngestStatus = "erased"
	Distrusted  IngestStatus = "distrusted"
)

// TrustClass is the class of a source, which the channel decides.
type TrustClass string

// The classes.
const (
	ClassOperator       TrustClass = "operator"
	ClassDirectUser     TrustClass = "direct_user"
	ClassToolInternal   TrustClass = "tool_internal"
	ClassUserAttested   TrustClass = "user_attested"
	ClassToolExternal   TrustClass = "tool_external"
	ClassDocument       TrustClass = "document"
	ClassWeb            TrustClass = "web"
	ClassPeerAgent      TrustClass = "peer_agent"
	ClassAgentInference TrustClass = "agent_inference"
	ClassImport         TrustClass = "import"
)

// class returns the constants of a class. A class nobody knows is worth
// nothing.
func (p *Policy) class(c TrustClass, m Mode) Class {
	t := &p.Trust
	switch c {
	case ClassOperator:
		return t.Operator
	case ClassDirectUser:
		return t.DirectUser
	case ClassToolInternal:
		return t.ToolInternal
	case ClassUserAttested:
		if m == Local {
			return t.UserAttested
		}
		return t.UserAttestedHardened
	case ClassToolExternal:
		return t.ToolExternal
	case ClassDocument:
		return t.Document
	case ClassWeb:
		return t.Web
	case ClassPeerAgent:
		return t.PeerAgent
	case ClassAgentInference:
		return t.AgentInference
	case ClassImport:
		return t.Import
	}
	return Class{Pooled: true}
}

// Entity is something claims are about.
type Entity struct {
	ID            string         `json:"id"`
	Type          string         `json:"type"`
	Canonicality  Canonicality   `json:"canonicality"`
	MergedInto    string         `json:"merged_into,omitempty"`
	Principal     string         `json:"principal,omitempty"` // the person it is, bound by the server
	CreatedAt     Instant        `json:"created_at"`
	UpdatedAt     Instant        `json:"updated_at"`
	Session       string         `json:"session"`
	Task          string         `json:"task"`
	Names         []Name         `json:"names"` // the first is the name it was made with
	PossibleSames []PossibleSame `json:"possible_same_as,omitempty"`
}

// Name is a name or an alias and the observation that bears it out.
type Name struct {
	Record      uint64 `json:"record"` // whose value holds the text
	Observation string `json:"observation"`
	// Beside are the others it was proposed on, where none has it.
	Beside []string `json:"beside,omitempty"`
	Text   string   `json:"text,omitempty"` // erasable
	Gone   bool     `json:"gone,omitempty"`
}

// PossibleSame says that an entity may be another one. It is symmetric and
// open until somebody merges.
type PossibleSame struct {
	Entity     string `json:"entity"`
	Similarity Micro  `json:"similarity"`
}

// Canonicality says how settled an entity is.
type Canonicality string

// An entity starts as a candidate.
const (
	Candidate  Canonicality = "candidate"
	Canonical  Canonicality = "canonical"
	Merged     Canonicality = "merged"
	Tombstoned Canonicality = "tombstoned"
)

// Proposition is a claim. Its state is computed from its evidence.
type Proposition struct {
	ID         string           `json:"id"`
	Class      PropositionClass `json:"class"`
	Volatility TierName         `json:"volatility"`
	Subject    string           `json:"subject,omitempty"`
	Predicate  string           `json:"predicate,omitempty"`
	Object     string           `json:"object,omitempty"` // an entity; a literal is text
	Slot       string           `json:"slot,omitempty"`
	About      []string         `json:"about"`
	Alternates []string         `json:"alternatives,omitempty"`
	Session    string           `json:"session"`
	Task       string           `json:"task"`
	CreatedAt  Instant          `json:"created_at"`
	Decision   string           `json:"decision"`
	ValidFrom  Instant          `json:"valid_from"`
	ValidTo    *Instant         `json:"valid_to"`
	Gone       bool             `json:"gone,omitempty"` // its text was erased
	// Canonical says that it was promoted and not archived since.
	Canonical bool `json:"canonical,omitempty"`
	// Archived is why it was put away, until new evidence comes.
	Archived Rule `json:"archived,omitempty"`

	Status           Status   `json:"status"`
	Rule             Rule     `json:"rule"`
	Score            Score    `json:"score"`
	Seq              int      `json:"seq"` // belief states so far
	EvaluatedAt      Instant  `json:"evaluated_at"`
	WasUsable        bool     `json:"was_usable,omitempty"`
	ContestedUpdates int      `json:"contested_updates,omitempty"`
	Failed           bool     `json:"failed,omitempty"`
	ClearedBy        []string `json:"cleared_by,omitempty"` // groups that support it since it failed
	Passed           bool     `json:"passed,omitempty"`
	SupersededBy     string   `json:"superseded_by,omitempty"`
	Challenged       []string `json:"challenged,omitempty"` // rival values of its slot

	Support    []Tally `json:"support,omitempty"`
	Contradict []Tally `json:"contradict,omitempty"`

	Text    string `json:"text,omitempty"`    // erasable
	Literal string `json:"literal,omitempty"` // erasable, JSON; "" where the object is an entity
	Quals   string `json:"quals,omitempty"`   // erasable, canonical JSON
}

// Tally is the active evidence of one group and level on one side.
type Tally struct {
	Group       string  `json:"group"`
	Level       int     `json:"level"`
	Count       int     `json:"count"`
	Reliability Micro   `json:"reliability"`
	Newest      Instant `json:"newest"`
}

// Open says that the proposition is a current value of its slot or could be.
func (p *Proposition) Open() bool { return p.ValidTo == nil && !p.Gone }

// Slot is one question that propositions answer: subject, predicate and
// qualifiers.
type Slot struct {
	ID           string   `json:"id"`
	Subject      string   `json:"subject"`
	Predicate    string   `json:"predicate"`
	Qualified    bool     `json:"qualified,omitempty"`
	Single       bool     `json:"single,omitempty"`
	Propositions []string `json:"propositions"`
	// Current are those that are open. The others are history.
	Current []string `json:"current"`
}

// EdgeType is the type of a link.
type EdgeType string

// The edges this version writes. about, derived_from, tested_by and
// possible_same_as stand in the objects they belong to; predicts is a predictive
// proposition that holds from a time to come.
const (
	Supports    EdgeType = "supports"
	Contradicts EdgeType = "contradicts"
	Supersedes  EdgeType = "supersedes"
)

// Edge is one link. It is never removed: it is closed.
type Edge struct {
	ID          string     `json:"id"`
	Type        EdgeType   `json:"type"`
	From        string     `json:"from"`
	To          string     `json:"to"`
	Group       string     `json:"group,omitempty"`
	Class       TrustClass `json:"class,omitempty"`
	Level       int        `json:"level"`
	Reliability Micro      `json:"reliability"`
	RecordedAt  Instant    `json:"recorded_at"`
	// Challenge is, for a contradiction that another value of the slot brought,
	// that value.
	Challenge string `json:"challenge,omitempty"`
	// Statement is the evidence it counts as one statement of, with every other
	// edge of the same.
	Statement  string `json:"statement,omitempty"`
	Quoted     bool   `json:"quoted,omitempty"` // a quote was checked when it was made
	Resolution string `json:"resolution,omitempty"`
	ResolvedBy string `json:"resolved_by,omitempty"`
	Decision   string `json:"decision"`
	// ClosedAt is when it ended, 0 if it did not.
	ClosedAt Instant `json:"closed_at,omitempty"`

	Quote string `json:"quote,omitempty"` // erasable
}

// Active says that the edge counts.
func (e *Edge) Active() bool { return e.Resolution == "" }

// Test is an action meant to tell propositions apart. The memory runs none.
type Test struct {
	ID           string      `json:"id"`
	Propositions []string    `json:"propositions"`
	Kind         TestKind    `json:"kind"`
	Outcomes     []Predicted `json:"discriminates"`
	Impact       Impact      `json:"action_impact"`
	Cost         Micro       `json:"estimated_cost"`
	Benefit      Micro       `json:"estimated_benefit"`
	Status       TestStatus  `json:"status"`
	Rule         Rule        `json:"trigger_rule"`
	Rationale    []string    `json:"rationale"`
	Result       string      `json:"result,omitempty"`
	Session      string      `json:"session"`
	Task         string      `json:"task"`
	CreatedAt    Instant     `json:"created_at"`
	ExpiresAt    Instant     `json:"expires_at"`
}

// Predicted is what a proposition says a test will show.
type Predicted struct {
	Proposition string `json:"proposition"`
	Outcome     string `json:"outcome"`
}

// TestKind is a kind of test.
type TestKind string

// TestStatus is what became of a test.
type TestStatus string

// The states of a test. Passed means that it told its propositions apart or
// confirmed its only one.
const (
	TestProposed     TestStatus = "proposed"
	TestPassed       TestStatus = "passed"
	TestFailed       TestStatus = "failed"
	TestInconclusive TestStatus = "inconclusive"
	TestExpired      TestStatus = "expired"
)

// Workspace is what one task of one session works on.
type Workspace struct {
	Session      string  `json:"session"`
	Task         string  `json:"task"`
	StartedAt    Instant `json:"started_at"`
	Observations int     `json:"observations"`
	NewSince     int     `json:"new_since"` // new observations since the last consolidation
	Entities     int     `json:"entities"`
	Propositions int     `json:"propositions"`
	// OpenClaims counts the propositions made here that nothing has settled.
	OpenClaims        int    `json:"open_claims"`
	OpenTests         int    `json:"open_tests"`
	Consolidated      int    `json:"consolidated"` // how often
	LastConsolidation uint64 `json:"last_consolidation,omitempty"`
	LastObservation   uint64 `json:"last_observation,omitempty"`
	Episode           string `json:"episode,omitempty"`
}

// Item is one proposition in a workspace.
type Item struct {
	Session     string `json:"session"`
	Task        string `json:"task"`
	Proposition string `json:"proposition"`
	Touches     int    `json:"touches"` // since the last consolidation
	Impact      Impact `json:"impact"`
	Carried     bool   `json:"carried,omitempty"` // handed on by an earlier consolidation
	Born        bool   `json:"born,omitempty"`    // made in this task
	// Outcome is what the last consolidation made of it; "" while it is open.
	Outcome ItemOutcome `json:"outcome,omitempty"`
}

// ItemOutcome is what a consolidation makes of a proposition.
type ItemOutcome string

// The outcomes. What is carried over stays open.
const (
	WasPromoted  ItemOutcome = "promoted"
	WasArchived  ItemOutcome = "archived"
	WasDiscarded ItemOutcome = "discarded"
)

// carryList is what no task has resolved yet, in the order it was handed on.
type carryList struct {
	Items []Carry `json:"items"`
}

// Carry is one proposition of it.
type Carry struct {
	Proposition string `json:"proposition"`
	Untouched   int    `json:"untouched"` // consolidations in a row without a touch
}

// Episode is the record of a finished task.
type Episode struct {
	ID          string         `json:"id"`
	Session     string         `json:"session"`
	Task        string         `json:"task"`
	StartedAt   Instant        `json:"started_at"`
	EndedAt     Instant        `json:"ended_at"`
	Summary     string         `json:"summary,omitempty"` // the observation that holds it
	Sources     []string       `json:"sources,omitempty"`
	Promoted    []string       `json:"promoted,omitempty"`
	Archived    []string       `json:"archived,omitempty"`
	Discarded   []string       `json:"discarded,omitempty"`
	CarriedOver []string       `json:"carried_over,omitempty"`
	Retention   RetentionClass `json:"retention_class"`
	ExpiresAt   *Instant       `json:"expires_at"`
	Expired     bool           `json:"expired,omitempty"`
}

// RetentionClass says how long an episode is kept.
type RetentionClass string

// The classes.
const (
	Transient RetentionClass = "transient"
	Standard  RetentionClass = "standard"
	LegalHold RetentionClass = "legal_hold"
)

// Source is what an operator registered about where evidence comes from.
type Source struct {
	ID             string     `json:"id"`
	Class          TrustClass `json:"class"`
	Reliability    Micro      `json:"reliability"`
	CorrectionRate Micro      `json:"correction_rate"`
	Domains        []string   `json:"domains,omitempty"`
	Group          string     `json:"group"`
	Suspended      bool       `json:"suspended,omitempty"`
	RegisteredBy   string     `json:"registered_by"`
	// DistrustedSince is set when an operator no longer believes it.
	DistrustedSince *Instant `json:"distrusted_since"`
}

// Predicate is what an operator declared about a predicate.
type Predicate struct {
	Name          string           `json:"name"`
	Aliases       []string         `json:"aliases,omitempty"`
	Single        bool             `json:"single,omitempty"`
	Volatility    TierName         `json:"volatility"`
	Class         PropositionClass `json:"class"`
	SelfReport    bool             `json:"self_report,omitempty"`
	MinGroups     int              `json:"min_groups,omitempty"`
	MinConfidence Micro            `json:"min_confidence"`
	FutureDates   bool             `json:"future_dates,omitempty"`
	Domain        string           `json:"domain,omitempty"`
	RegisteredBy  string           `json:"registered_by"`
}

// Decided is what is kept of one event: enough to find it and to explain it.
type Decided struct {
	N         uint64      `json:"n"`
	At        Instant     `json:"at"`
	Kind      Kind        `json:"kind"`
	Tool      string      `json:"tool,omitempty"`
	Principal string      `json:"principal"`
	Session   string      `json:"session,omitempty"`
	Task      string      `json:"task,omitempty"`
	Status    writ.Status `json:"status"`
	Reason    writ.Reason `json:"reason,omitempty"`
	// Erased says that what was proposed is gone, and with it the means to
	// decide it again.
	Erased bool `json:"erased,omitempty"`
}

// Belief is one computed state of a proposition.
type Belief struct {
	Seq    int     `json:"seq"`
	Prior  Status  `json:"prior"`
	Next   Status  `json:"next"`
	Rule   Rule    `json:"rule"`
	Score  Score   `json:"score"`
	At     Instant `json:"at"`
	Record uint64  `json:"record"`
}

// rate counts the observations of one source in the current minute.
type rate struct {
	Start Instant `json:"start"`
	Count int     `json:"count"`
}

func (o *Observation) copied() *Observation { c := *o; return &c }
func (e *Edge) copied() *Edge               { c := *e; return &c }
func (t *Test) copied() *Test               { c := *t; return &c }
func (w *Workspace) copied() *Workspace     { c := *w; return &c }
func (i *Item) copied() *Item               { c := *i; return &c }
func (c *carryList) copied() *carryList     { return &carryList{slices.Clone(c.Items)} }
func (e *Episode) copied() *Episode         { c := *e; return &c }
func (s *Source) copied() *Source           { c := *s; return &c }
func (p *Predicate) copied() *Predicate     { c := *p; return &c }
func (r *rate) copied() *rate               { c := *r; return &c }
func (d *Decided) copied() *Decided         { c := *d; return &c }
func (e *Entity) copied() *Entity {
	c := *e
	c.Names, c.PossibleSames = slices.Clone(e.Names), slices.Clone(e.PossibleSames)
	return &c
}
func (p *Proposition) copied() *Proposition {
	c := *p
	c.Support, c.Contradict = slices.Clone(p.Support), slices.Clone(p.Contradict)
	c.Challenged, c.ClearedBy = slices.Clone(p.Challenged), slices.Clone(p.ClearedBy)
	return &c
}
func (s *Slot) copied() *Slot {
	c := *s
	c.Propositions = slices.Clip(s.Propositions)
	c.Current = slices.Clone(s.Current)
	return &c
}

package memory

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	writ "github.com/writ-project/writ"
)

// The objects of the state. What an agent or a person wrote (payloads, names,
// texts, quotes) stands in fields marked erasable: it comes from the value
// beside an event and can go without it; everything else is in the event.

// Observation is one immutable piece of evidence: a quote.
type Observation struct {
	ID         string       `json:"id"`
	Client     string       `json:"client"` // the caller's own id, unique per principal and session
	Source     string       `json:"source" pack:"word"`
	Class      TrustClass   `json:"class"`
	Level      int          `json:"level"`
	Label      writ.Label   `json:"label"`
	Evidence   string       `json:"evidence,omitempty"`         // what Writ itself saw, "" if nothing
	Whole      bool         `json:"whole,omitempty"`            // it begins and ends where something of the evidence does
	Between    bool         `json:"between,omitempty"`          // its ends cut no word and no number
	Offset     int          `json:"offset,omitempty"`           // where in the evidence its text begins
	Type       string       `json:"type,omitempty" pack:"word"` // of the leaf it is, by the gate's policy
	Collection string       `json:"collection,omitempty" pack:"word"`
	Leaves     []Leaf       `json:"leaves,omitempty"` // of a record, those with a type or collection
	Principal  string       `json:"principal" pack:"word"`
	Session    string       `json:"session" pack:"word"`
	Task       string       `json:"task" pack:"word"`
	RecordedAt Instant      `json:"recorded_at"`
	EventTime  Instant      `json:"event_time"`
	Lineage    []string     `json:"lineage,omitempty"`
	Status     IngestStatus `json:"status"`
	// Exposed says that the session had seen something that is neither its
	// user's nor a note of its own when the agent wrote this.
	Exposed bool `json:"exposed,omitempty"`
	// Order is where in the log its evidence stands, from 1: what was seen earlier
	// is older, whenever and from whichever session it is recorded. Clocks do not
	// enter. Of what is no evidence, and where it is not known, it is that of the
	// newest recorded before, and After the record: it comes behind all of that.
	Order uint64 `json:"order,omitempty"`
	After uint64 `json:"after,omitempty"`

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

// level is what the word of a class is worth, 0 to 3. A class nobody knows is
// worth nothing.
func (p *Policy) level(c TrustClass, m Mode) int {
	switch {
	case c == attestedHardened: // no class of its own
		return 0
	case c == ClassUserAttested && m != Local:
		c = attestedHardened
	}
	return p.levels[c]
}

const attestedHardened = ClassUserAttested + "_hardened"

// Entity is something claims are about. What is said of it must name it as it
// was named first; its other names are for finding it.
type Entity struct {
	ID            string         `json:"id"`
	Type          string         `json:"type" pack:"word"`
	MergedInto    string         `json:"merged_into,omitempty"`
	Principal     string         `json:"principal,omitempty" pack:"word"` // the person it is, bound by the server
	CreatedAt     Instant        `json:"created_at"`
	UpdatedAt     Instant        `json:"updated_at"`
	Session       string         `json:"session" pack:"word"`
	Task          string         `json:"task" pack:"word"`
	Names         []Name         `json:"names"` // the first is the name it was made with
	PossibleSames []PossibleSame `json:"possible_same_as,omitempty"`
	Gone          bool           `json:"gone,omitempty"` // no name of it is left
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
	Entity     string  `json:"entity"`
	Similarity Percent `json:"similarity"`
}

// Percent is a share, 0 to 100.
type Percent int

// UnmarshalJSON also reads what earlier versions wrote, a share of one with a
// fraction.
func (p *Percent) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f < 0 || f > 100 {
		return errors.New("memory: not a share")
	}
	if bytes.IndexByte(b, '.') >= 0 {
		f *= 100
	}
	*p = Percent(f)
	return nil
}

// Proposition is a claim: a value of a question about a subject, or in words
// alone. What it is worth is no part of it ([Standing]).
type Proposition struct {
	ID        string           `json:"id"`
	Class     PropositionClass `json:"class"`
	Subject   string           `json:"subject,omitempty"`
	Predicate string           `json:"predicate,omitempty" pack:"word"`
	Object    string           `json:"object,omitempty"` // an entity; a literal is text
	Slot      string           `json:"slot,omitempty"`
	About     []string         `json:"about"`
	Session   string           `json:"session" pack:"word"`
	Task      string           `json:"task" pack:"word"`
	CreatedAt Instant          `json:"created_at"`
	Decision  string           `json:"decision"`
	Gone      bool             `json:"gone,omitempty"` // its text was erased

	// Text is how the agent words it: a caption, which carries no trust.
	Text    string `json:"text,omitempty"`    // erasable
	Literal string `json:"literal,omitempty"` // erasable, JSON; "" where the object is an entity
	Quals   string `json:"quals,omitempty"`   // erasable, canonical JSON
}

// PropositionClass says what kind of claim it is: one of the words of
// propose_proposition.
type PropositionClass string

// Descriptive is the class where none is given.
const Descriptive PropositionClass = "descriptive"

// Slot is one question that propositions answer: subject, predicate and
// qualifiers.
type Slot struct {
	ID           string   `json:"id"`
	Subject      string   `json:"subject"`
	Predicate    string   `json:"predicate" pack:"word"` // in the form in which predicates are equal
	Qualified    bool     `json:"qualified,omitempty"`
	Propositions []string `json:"propositions"`
}

// EdgeType is the type of a link.
type EdgeType string

// The edges this version writes: statements, that an observation bears a claim
// out; and that a claim is meant to take another's place.
const (
	Supports   EdgeType = "supports"
	Supersedes EdgeType = "supersedes"
)

// Edge is one link. It is never removed: it is closed.
type Edge struct {
	ID   string   `json:"id"`
	Type EdgeType `json:"type"`
	From string   `json:"from"` // an observation; of a ruling the decision; of supersedes a claim
	To   string   `json:"to"`
	// Level is at what level it is said: the observation's where that bears the
	// claim out, else 0.
	Level      int     `json:"level"`
	RecordedAt Instant `json:"recorded_at"`
	// At is where in the observation the sentence begins that bears the claim out.
	At int `json:"at,omitempty"`
	// Side are claims of the slot whose values stand in one list with this one's,
	// or in one sentence.
	Side []string `json:"side,omitempty"`
	// Also says that it is said beside what was said before: it replaces nothing.
	Also       bool   `json:"also,omitempty"`
	Quoted     bool   `json:"quoted,omitempty"` // a quote was checked when it was made
	Resolution string `json:"resolution,omitempty" pack:"word"`
	ResolvedBy string `json:"resolved_by,omitempty"`
	Decision   string `json:"decision"`
	// Order is, of a ruling, where in the log the newest stands that was recorded
	// before it.
	Order uint64 `json:"order,omitempty"`
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
	Status       TestStatus  `json:"status"`
	Rationale    []string    `json:"rationale"`
	Result       string      `json:"result,omitempty"`
	Session      string      `json:"session" pack:"word"`
	Task         string      `json:"task" pack:"word"`
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

// The states of a test: passed means that the result bears a tested claim out,
// failed that it bears out another value of the same question.
const (
	TestProposed     TestStatus = "proposed"
	TestPassed       TestStatus = "passed"
	TestFailed       TestStatus = "failed"
	TestInconclusive TestStatus = "inconclusive"
	TestExpired      TestStatus = "expired"
)

// Workspace is what one task of one session did.
type Workspace struct {
	Session           string  `json:"session" pack:"word"`
	Task              string  `json:"task" pack:"word"`
	StartedAt         Instant `json:"started_at"`
	Observations      int     `json:"observations"`
	Entities          int     `json:"entities"`
	Propositions      int     `json:"propositions"`
	OpenTests         int     `json:"open_tests"`
	LastObservation   uint64  `json:"last_observation"`
	LastConsolidation uint64  `json:"last_consolidation"`
	Episode           string  `json:"episode,omitempty"`
}

// Episode is the record of a finished task.
type Episode struct {
	ID        string   `json:"id"`
	Session   string   `json:"session" pack:"word"`
	Task      string   `json:"task" pack:"word"`
	StartedAt Instant  `json:"started_at"`
	EndedAt   Instant  `json:"ended_at"`
	Summary   string   `json:"summary,omitempty"` // the observation that holds it
	Sources   []string `json:"sources,omitempty"`
}

// Source is what an operator registered about where evidence comes from.
type Source struct {
	ID           string     `json:"id"`
	Class        TrustClass `json:"class"`
	Suspended    bool       `json:"suspended,omitempty"`
	RegisteredBy string     `json:"registered_by" pack:"word"`
	// DistrustedSince is set when an operator no longer believes it.
	DistrustedSince *Instant `json:"distrusted_since"`
}

// Predicate is what an operator declared about a predicate. One that nobody
// declared has one value.
type Predicate struct {
	Name         string   `json:"name"`
	Aliases      []string `json:"aliases,omitempty"`
	Single       bool     `json:"single,omitempty"`
	RegisteredBy string   `json:"registered_by" pack:"word"`
}

// Decided is what is kept of one event: enough to find it and to explain it.
type Decided struct {
	N         uint64      `json:"n"`
	At        Instant     `json:"at"`
	Kind      Kind        `json:"kind"`
	Tool      string      `json:"tool,omitempty" pack:"word"`
	Principal string      `json:"principal" pack:"word"`
	Session   string      `json:"session,omitempty" pack:"word"`
	Task      string      `json:"task,omitempty" pack:"word"`
	Status    writ.Status `json:"status"`
	Reason    writ.Reason `json:"reason,omitempty"`
	// Exposed says that its session had seen others' words.
	Exposed bool `json:"-"`
	// Erased says that what was proposed is gone, and with it the means to
	// decide it again.
	Erased bool `json:"erased,omitempty"`
	// Latest is the latest At so far, which never falls.
	Latest Instant `json:"-"`
}

// rate counts the observations of one source in the current minute.
type rate struct {
	Start Instant `json:"start"`
	Count int     `json:"count"`
}

// over reports whether its minute is over, or the clock was set back.
func (r *rate) over(at Instant) bool { return at < r.Start || at-r.Start >= 60_000_000 }

func (e *Entity) copied() *Entity {
	c := *e
	c.Names, c.PossibleSames = slices.Clone(e.Names), slices.Clone(e.PossibleSames)
	return &c
}
func (s *Slot) copied() *Slot {
	c := *s
	c.Propositions = slices.Clip(s.Propositions)
	return &c
}

package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// EventVersion is the version of events this package writes: of their format,
// and of the rules they are decided by. Those of the versions from oldestVersion on
// are read, and not decided again: what they recorded is applied, and what a sentence
// is worth as evidence is computed by the rules as they are.
const EventVersion = 5

const (
	oldestVersion = 3
	formVersion   = 4 // has the form of this one, and other rules
)

// Kind says what an event is.
type Kind string

// The kinds. A proposal is the model's, a command an operator's; open is the
// first event of a namespace.
const (
	KindOpen     Kind = "open"
	KindProposal Kind = "proposal"
	KindCommand  Kind = "command"
)

// Mode says what counts as a person's word.
type Mode string

// In hardened mode only captured evidence has a level above 1; in local mode
// the agent may attest what its one user said.
const (
	Hardened Mode = "hardened"
	Local    Mode = "local"
)

// Event is one record of a namespace: what was proposed or commanded, how it
// was judged, and everything it changed. It holds no text that anybody wrote;
// what was proposed is the event's value, kept beside it and erasable. A
// rejected proposal is an event without operations.
type Event struct {
	V         int         `json:"v"`
	N         uint64      `json:"n"` // dense in the namespace, from 1
	Kind      Kind        `json:"kind"`
	At        Instant     `json:"at"`
	Namespace string      `json:"namespace"`
	Policy    string      `json:"policy"` // hash
	Mode      Mode        `json:"mode"`
	Principal string      `json:"principal"`
	Session   string      `json:"session,omitempty"`
	Task      string      `json:"task,omitempty"`
	Tool      string      `json:"tool,omitempty"` // "" where the name is none of ours
	Capture   *Capture    `json:"capture,omitempty"`
	Screened  Screening   `json:"screened,omitempty"`
	Exposed   bool        `json:"exposed,omitempty"` // the session had seen others' words
	Status    writ.Status `json:"status"`
	Reason    writ.Reason `json:"reason,omitempty"`
	Effects   []Effect    `json:"effects,omitempty"`
	Ops       []Op        `json:"ops,omitempty"`
}

// Capture is the evidence a proposal's observation was bound to, or that a
// refused one was judged on; without an id and a source there was none.
type Capture struct {
	Captured
	ByRef bool `json:"by_ref,omitempty"` // the proposal named it
}

// Screening is what the content screen said of a proposal.
type Screening string

// What a screen may say beside nothing.
const (
	ScreenQuarantine Screening = "quarantine"
	ScreenBlock      Screening = "block"
)

// Effect is one thing a decision did, in a fixed word, with ids alone.
type Effect struct {
	Effect string `json:"effect"`
	ID     string `json:"id,omitempty"`
}

// Op is one change of the state. Exactly one field beside At is set.
type Op struct {
	// At is the JSON pointer, in the event's value, of the object that holds
	// the texts of what is made.
	At string `json:"at,omitempty"`

	Observation *Observation   `json:"observation,omitempty"`
	Entity      *Entity        `json:"entity,omitempty"`
	Alias       *AliasOp       `json:"alias,omitempty"`
	Same        *SameOp        `json:"same,omitempty"`
	Slot        *Slot          `json:"slot,omitempty"`
	Proposition *Proposition   `json:"proposition,omitempty"`
	Edge        *Edge          `json:"edge,omitempty"`
	Close       *CloseOp       `json:"close,omitempty"`
	Test        *Test          `json:"test,omitempty"`
	EndTest     *EndTestOp     `json:"end_test,omitempty"`
	Consolidate *ConsolidateOp `json:"consolidate,omitempty"`
	Episode     *Episode       `json:"episode,omitempty"`
	Source      *Source        `json:"source,omitempty"`
	Predicate   *Predicate     `json:"predicate,omitempty"`
	Merge       *MergeOp       `json:"merge,omitempty"`
	Erase       *EraseOp       `json:"erase,omitempty"`
	Distrust    *DistrustOp    `json:"distrust,omitempty"`
}

// The operations that are no object of their own.
type (
	// AliasOp gives an entity a further name: the text at Op.At.
	AliasOp struct {
		Entity      string `json:"entity"`
		Observation string `json:"observation"`
		// Beside are the others it was proposed on, where none has it.
		Beside []string `json:"beside,omitempty"`
	}
	// SameOp says of two entities that they may be one.
	SameOp struct {
		A          string  `json:"a"`
		B          string  `json:"b"`
		Similarity Percent `json:"similarity"`
	}
	// CloseOp ends an edge: it stays and no longer counts.
	CloseOp struct {
		Edge       string `json:"edge"`
		Resolution string `json:"resolution"`
		By         string `json:"by"`
	}
	// EndTestOp closes a test.
	EndTestOp struct {
		Test   string     `json:"test"`
		Status TestStatus `json:"status"`
		Result string     `json:"result,omitempty"`
	}
	// ConsolidateOp says what of a task's claims was established when it was
	// asked for.
	ConsolidateOp struct {
		Session     string   `json:"session"`
		Task        string   `json:"task"`
		Established []string `json:"established"`
	}
	// MergeOp joins one entity into another, or undoes it.
	MergeOp struct {
		From string `json:"from"`
		Into string `json:"into"`
		Undo bool   `json:"undo,omitempty"`
	}
	// EraseOp removes the texts of records and retracts observations. The
	// values of the records are to be erased from the log.
	EraseOp struct {
		Taken
		// Nameless are those of the entities that have no name left. A fold that
		// has the texts no more cannot tell which went when.
		Nameless []string `json:"nameless,omitempty"`
	}
	// DistrustOp retracts what a source said since some time.
	DistrustOp struct {
		Source       string   `json:"source"`
		Since        Instant  `json:"since"`
		Observations []string `json:"observations"`
	}
)

func (e *Event) decision() string { return decisionID(e.N) }

// Erased returns the numbers of the records whose values the event erases, and
// whether it is an erasure.
func (e *Event) Erased() (records []uint64, erases bool) {
	for i := range e.Ops {
		if o := e.Ops[i].Erase; o != nil {
			records, erases = append(records, o.Records...), true
		}
	}
	return records, erases
}

// Bytes returns the event as canonical JSON (RFC 8785).
func (e *Event) Bytes() ([]byte, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("memory: event: %w", err)
	}
	return strictjson.Canonical(b)
}

// maxEvent bounds an event, below what a record of the log may have. Its texts
// are outside of it.
const maxEvent = 15 << 20

var eventLimits = strictjson.Limits{Bytes: maxEvent, Depth: 12, Leaves: 1_500_000, Number: 24}

// fits reports whether an event can be read again. One with few operations can.
func (e *Event) fits() bool {
	if len(e.Ops) < 1000 {
		return true
	}
	b, err := e.Bytes()
	return err == nil && strictjson.Check(b, eventLimits) == nil
}

var refersTo = text.Pattern(`"(?:obs|ent|prop|slot|edge|test|epi)_([0-9]+)(?:_[0-9]+)?"`)

// Refers returns the numbers of the records that made what an event names.
func (e *Event) Refers() (out []uint64) {
	b, err := e.Bytes()
	if err != nil {
		return nil
	}
	for _, m := range refersTo().FindAllSubmatch(b, -1) {
		if n, err := strconv.ParseUint(string(m[1]), 10, 53); err == nil && n != e.N {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

var errEvent = errors.New("memory: not an event of this version in its canonical form")

// ParseEvent reads what Bytes returns and refuses everything else: another
// spelling of the same JSON, a member nobody knows, an operation that is none
// or two, or a text where only the event's value may have one.
func ParseEvent(b []byte) (*Event, error) {
	if err := strictjson.Check(b, eventLimits); err != nil {
		return nil, fmt.Errorf("memory: event: %w", err)
	}
	// Of an event of an earlier form what was computed then is left out: it is
	// computed anew.
	v := string(strictjson.Get(b, "v"))
	earlier := v != strconv.Itoa(EventVersion) && v != strconv.Itoa(formVersion)
	e := &Event{}
	d := json.NewDecoder(bytes.NewReader(b))
	if !earlier {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(e); err != nil || earlier && e.V >= formVersion {
		return nil, errEvent // the library's words repeat the text
	}
	again, err := e.Bytes()
	if earlier {
		again, err = strictjson.Canonical(b)
	}
	if err != nil || !bytes.Equal(again, b) {
		return nil, errEvent
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	return e, nil
}

// check holds what the form alone does not say.
func (e *Event) check() error {
	switch {
	case e.V < oldestVersion || e.V > EventVersion:
		return errors.New("memory: an event of a version this one does not know")
	case e.N == 0 || e.At < 0 || e.At > maxInstant:
		return errEvent
	case e.Kind != KindOpen && e.Kind != KindProposal && e.Kind != KindCommand, (e.Kind == KindOpen) != (e.N == 1):
		return errEvent
	case e.Mode != Hardened && e.Mode != Local:
		return errEvent
	case e.Screened != "" && e.Screened != ScreenQuarantine && e.Screened != ScreenBlock:
		return errEvent
	case e.Status == writ.Rejected && (len(e.Ops) > 0 || e.Reason == ""), e.Status != writ.Rejected && e.Reason != "":
		return errEvent
	case e.Status != writ.Rejected && e.Status != writ.Accepted && e.Status != writ.Transformed:
		return errEvent
	}
	if slices.ContainsFunc(e.Ops, func(o Op) bool { return o.texts() || e.V >= formVersion && o.fields() != 1 }) {
		return errEvent
	}
	return nil
}

// fields is how many operations an operation is.
func (o *Op) fields() (set int) {
	v := reflect.ValueOf(*o)
	for f := range v.NumField() {
		if v.Field(f).Kind() == reflect.Pointer && !v.Field(f).IsNil() {
			set++
		}
	}
	return set
}

// texts reports whether an operation holds a text in itself.
func (o *Op) texts() bool {
	switch {
	case o.Observation != nil:
		return o.Observation.Raw != "" || o.Observation.Parsed != "" || o.Observation.SourceRef != ""
	case o.Entity != nil:
		return len(o.Entity.Names) != 1 || o.Entity.Names[0].Text != ""
	case o.Proposition != nil:
		return o.Proposition.Text != "" || o.Proposition.Literal != "" || o.Proposition.Quals != ""
	case o.Slot != nil:
		return len(o.Slot.Propositions) > 0
	case o.Edge != nil:
		return o.Edge.Quote != ""
	}
	return false
}

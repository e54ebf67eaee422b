package provenance

import writ "github.com/writ-project/writ"

// Arg is one leaf (or object key) of a call's arguments as the gate judged it:
// what R4 and R5 need to know of it.
type Arg struct {
	Raw   []byte // the JSON literal; a key is given as a JSON string
	Type  Type
	Label writ.Label // of what vouches for it, Model when nothing does
	// Narrow marks a boolean, a member of a pinned enum or an integer of role
	// control: it lowers only what equals it (R4).
	Narrow bool
	// Decides marks a target, selector, amount or secret: a handle gets the
	// lowest label of these (R5).
	Decides bool
}

// Observation is one result on its way into the ledger.
type Observation struct {
	Evidence     uint32
	Server, Tool string
	// Act says that the call was gated (anything but a plain read): R5 applies
	// to its result.
	Act bool
	// OK is false for an error, a refusal, a cut, unvalidated or unknown
	// result: it has no facts, whatever Leaves holds.
	OK     bool
	Args   []Arg
	Leaves []Leaf
}

// Caps bounds a ledger. At a cap new evidence is refused, whole results at a
// time; nothing is ever forgotten. A zero cap means DefaultCaps'.
type Caps struct {
	Leaves int   // facts
	Bytes  int64 // estimated memory
}

// Query asks what vouches for one argument leaf through `from: output`.
type Query struct {
	Raw        []byte // the JSON literal, checked strict JSON
	Type       Type   // declared type of the argument
	Collection string // declared collection of the argument
	// Server, Tool and At are the restriction of `output: server/tool#/pointer`;
	// "" and !HasAt mean any.
	Server, Tool string
	At           Pattern
	HasAt        bool
	// Authority says that null and empty values never match (3.1: only const
	// vouches for them in a target, selector or amount).
	Authority bool
	// Target says that R28 applies: the fact's collection is closed, or its
	// owner is one of Owners.
	Target bool
	Closed func(collection string) bool // nil: none is closed
	Owners [][]byte                     // JSON literals
	// Strict is profile strict: without a pointer a leaf needs no common
	// collection or type, but a collection binds where both sides declare one;
	// R9–R15 being off, path joins never match.
	Strict bool
}

// Answer is what Find found.
type Answer struct {
	// Vouched holds the origins accepted, best first: highest label, then
	// earliest evidence. Empty means refused for Reason.
	Vouched []Fact
	// Reason is "" when Vouched is not empty, else the first of unseen,
	// reflected, label, source, small_space, open_target that applies.
	Reason writ.Reason
	// Label is the highest label at which the value was seen whole, matching
	// source or not; Model when unseen. It is the label R4 gives a read's
	// argument.
	Label writ.Label
	// Contested says that an external origin carries the same value (R25).
	Contested bool
}

// Join is what FindJoin found: a vouched directory and a vouched name whose
// cleaned join is the value asked for.
type Join struct {
	Dir, Name []Fact // best first
	Reason    writ.Reason
	Label     writ.Label // the lower of the two, Model when nothing vouches
}

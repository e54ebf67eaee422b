// Package provenance is the evidence ledger of one session: what Writ itself
// saw, who can have written it, and whether a value traces to it.
//
// It is pure: bytes and rules in, facts and answers out; no clock, no I/O, no
// randomness. It trusts the labels and rules it is handed (they come from the
// operator's contract) and nothing that stands inside the bytes.
// The rules R1 … R38 are those of docs/design.md.
package provenance

import (
	"regexp"
	"time"

	writ "github.com/writ-project/writ"
)

// Pattern is an RFC 6901 pointer in which the reference token "*" stands for
// exactly one key or index. An exact pattern beats one with wildcards.
type Pattern struct {
	Tokens []string // decoded; "*" is the wildcard
	Source string   // as written
}

// Type is a declared canonical form (R17). Two values of one Type are equal
// when their canonical forms are; the empty Type compares JSON type and exact
// value only.
type Type string

// The declared types of a policy.
const (
	Untyped Type = ""
	ID      Type = "id"      // string or integer spelling of one identifier
	Integer Type = "integer" // exact integer, JSON number or string
	Decimal Type = "decimal" // exact fixed-point decimal, JSON number or string
	Email   Type = "email"
	Host    Type = "host"
	URL     Type = "url"
	Path    Type = "path" // absolute, cleaned
	Name    Type = "name" // one path element: not "", ".", "..", no separator
	Phone   Type = "phone"
	IBAN    Type = "iban"
	Time    Type = "time" // RFC 3339
)

// Extract says how a leaf that holds text is taken apart (R33).
type Extract string

// The declared extractors. NoExtract takes the leaf at the pointer as it is.
const (
	NoExtract    Extract = ""
	ExtractLines Extract = "lines" // each LF-separated line must match Pattern whole; group 1 is the value
	ExtractJSON  Extract = "json"  // the whole text is one JSON value; Pointer names leaves in it
	// ExtractTree: the whole text is one JSON array of objects, each with the single name of
	// a file at "name", or of a directory that has such an array at "children".
	ExtractTree Extract = "tree"
	// ExtractStart: the text begins with Pattern, over lines; group 1 is the value. What stands
	// behind it is whoever's.
	ExtractStart Extract = "start"
)

// OutputRule labels leaves of a tool's result. It is one entry of `outputs:` in
// a contract, compiled.
type OutputRule struct {
	// At names leaves of structuredContent; with InText it is "" and Block
	// names the content block whose text is read instead.
	At     Pattern
	InText bool
	Block  int
	// Extract and what it needs. Pattern is anchored by the compiler of the
	// policy; Pointer selects leaves of the JSON found in the text.
	Extract Extract
	Pattern *regexp.Regexp
	Pointer Pattern
	// Join, when HasJoin, is the argument whose value is the directory the
	// extracted single names are joined to.
	HasJoin bool
	Join    []string

	Label         writ.Label
	Type          Type
	Collection    string
	Authoritative bool // R4: an argument the model chose does not lower it
	Keys          bool // label the object's keys instead of a leaf
	Secret        bool
	Creates       bool
	Location      bool // the link of where the call left what its server works on: a browser's page
	Elements      bool // the text that it begins lists what can be clicked on there (Elements)
	// Lifetime, when not 0, makes the leaf one-time (R19): it vouches for one act,
	// within that time.
	Lifetime time.Duration
	// Owner, when HasOwner, names, relative to the record (the innermost array
	// element around the leaf, else the root), the leaf that holds its owner
	// (R28). It counts only if that leaf is itself worth system or better.
	HasOwner bool
	Owner    []string
	// Readers, when HasReaders, names, as Owner does, who reads the record beside its
	// owner: an empty list or object there says that nobody does (R14).
	HasReaders bool
	Readers    []string
	// Ranks say by what users tell the records of a whole list apart (R9).
	Ranks []Rank
	// Matches, unless "", is the argument, as a pointer, of a search: the operator says
	// that the result shows every record in which this value holds what was asked for
	// there, unless something else narrows it (R9).
	Matches string
	// On, unless "", is the argument of that search which keeps it to the records of one day;
	// without a search, of a list which shows every record of that day.
	On string
	// Names says that people call the record by this value (R14).
	Names bool
	// Unique says that the server gives this value to one record and to no other: it names that
	// record without a whole list (R9).
	Unique bool
	// LookedUp, unless "", is the argument, as a pointer, of a lookup: the operator says that
	// this is the member of its collection whose name stands there, and that no two have one
	// name (R9).
	LookedUp string
	// Unasked marks an output that no contract declares: a field of a JSON text, external,
	// that a person named, or may name (WithFields).
	Unasked bool
}

// Rank names the one record of a whole list that has the most of something, or the
// least, by what users call it.
type Rank struct {
	By      []string // relative to the record, to a number or a time (2006-01-02T15:04:05)
	Phrases []string
	Least   bool
}

// Fact is one value seen at one place. It never holds the value itself.
type Fact struct {
	Evidence  uint32 // ev number in the session
	Server    string
	Tool      string
	Rule      string // OutputRule.At.Source (or "text/N"), "" when no rule named the leaf
	Pointer   string // RFC 6901 pointer into the result object, e.g. /structuredContent/id
	Line      int    // 1-based line for ExtractLines, else 0
	Inner     string // pointer inside extracted JSON, else ""
	Label     writ.Label
	Reflected bool // R4 or R5 lowered it
	// Intact says that it is a whole leaf which only its rule calls external: nothing
	// that a call was asked with, an act sent or a place took would have left it below
	// system, and no model said it first (R4, R38).
	Intact bool
	// Rests are lines of which one of each has to be in force for it to be worth Lifted, and
	// if that is external intact: nothing but places that these lift take it from that.
	Rests  [][]Line
	Lifted writ.Label
	// Minted says that a server can have given it: a whole leaf that only its rule calls
	// external, or at most the places of acts and a read that named nothing, in the form of
	// a number or an id, which no call of the session sent, said or asked with before it
	// stood there.
	Minted     bool
	Type       Type
	Collection string
	Key        bool // an object key, not a leaf
	Secret     bool
	Creates    bool // the contract says the act newly made it
	OneTime    bool // R19
	// Derived marks the last element of a path fact, offered as a name (R13).
	Derived bool
	// Owner is the canonical text of the owner leaf (R28), "" when none.
	Owner string
}

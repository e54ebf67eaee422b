package provenance

import (
	"errors"

	writ "github.com/writ-project/writ"
)

// ErrFull is returned when a result would exceed the ledger's caps.
var ErrFull = errors.New("the session's evidence is at its cap")

func ParsePattern(s string) (Pattern, error) { return Pattern{}, errors.New("stub") }
func (p Pattern) Match(path []string) bool   { return false }
func (p Pattern) Exact() bool                { return false }
func (p Pattern) Beats(q Pattern) bool       { return false } // p matches a strict subset of q
func (p Pattern) Ties(q Pattern) bool        { return true }  // overlap, and neither beats the other
func Conflict(a, b OutputRule) bool          { return true }  // both could name one leaf: stops the start
func KnownType(t Type) bool                  { return false }
func Canonical(t Type, raw []byte) (canonical string, already bool, why writ.Reason) {
	return "", false, writ.FormNotCanonical
}
func CheckText(raw []byte) writ.Reason         { return writ.FormInvisible } // "" when fine
func SmallSpace(t Type, raw []byte) bool       { return true }
func Equal(t Type, a, b []byte) bool           { return false } // 3.1
func JoinPath(dir, name string) (string, bool) { return "", false }

type Leaf struct{}

// Extracted is what Leaves found.
type Extracted struct {
	Leaves []Leaf
	Voided []string // sources of the rules whose declared extraction failed (R33)
}

func Extraction(rules []OutputRule, result, arguments []byte) Extracted { return Extracted{} }

type Ledger struct{}
type Pending struct{}

func NewLedger(key [32]byte, caps Caps) *Ledger            { return &Ledger{} }
func (l *Ledger) Sent(server string, act bool, args []Arg) {}
func (l *Ledger) Prepare(o Observation) (*Pending, error)  { return nil, ErrFull }
func (p *Pending) Facts() int                              { return 0 }
func (l *Ledger) Commit(p *Pending) error                  { return ErrFull }
func (l *Ledger) Find(q Query) Answer                      { return Answer{Reason: writ.ProvenanceUnseen} }
func (l *Ledger) FindJoin(q Query) Join                    { return Join{Reason: writ.ProvenanceDerived} }
func (l *Ledger) Seen(raw []byte) ([]Fact, bool)           { return nil, false }
func (l *Ledger) Digest(t Type, raw []byte) string         { return "" }
func (l *Ledger) Len() int                                 { return 0 }

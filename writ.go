// Package writ holds the words that all parts of Writ share: labels, outcome
// codes, reason ids, rejections, outcomes and evidence ids. It has no
// behaviour of its own beyond their order and their spelling, trusts nothing
// and imports nothing of the module.
package writ

import (
	"fmt"
	"strconv"
	"strings"
)

// Label says who can have written a value. Labels are bound by the channel and
// the operator's contract, never by a payload. They are totally ordered from
// Model (lowest, the zero value) to Operator; combining takes the minimum.
type Label uint8

// The lattice of labels, lowest first. The zero value vouches
// for nothing.
const (
	Model    Label = iota // the model, or whatever reflects it
	External              // anything else, and all prose
	Party                 // an authenticated third party's identity
	System                // the issuer of the tool, unforgeable by third parties
	User                  // the authenticated end user's own words
	Operator              // constants of the policy, signed approvals
)

var labelNames = [...]string{"model", "external", "party", "system", "user", "operator"}

// String returns the label's name as policies and records spell it.
func (l Label) String() string {
	if int(l) < len(labelNames) {
		return labelNames[l]
	}
	return "label(" + strconv.Itoa(int(l)) + ")"
}

// ParseLabel returns the label of that exact name.
func ParseLabel(s string) (Label, error) {
	for i, n := range labelNames {
		if n == s {
			return Label(i), nil
		}
	}
	return Model, fmt.Errorf("label must be one of %s", strings.Join(labelNames[:], ", "))
}

// MarshalText spells the label by its name.
func (l Label) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText accepts exactly the names MarshalText writes.
func (l *Label) UnmarshalText(b []byte) error {
	v, err := ParseLabel(string(b))
	if err == nil {
		*l = v
	}
	return err
}

// Code is one of the five fixed rejection codes.
type Code string

// The five codes. No other value is ever written.
const (
	InvalidToolName   Code = "INVALID_TOOL_NAME"
	InvalidPayload    Code = "INVALID_PAYLOAD"
	MissingProvenance Code = "MISSING_PROVENANCE"
	PolicyViolation   Code = "POLICY_VIOLATION"
	DirectWrite       Code = "DIRECT_CANONICAL_WRITE_FORBIDDEN"
)

// Status is the outside form of a verdict.
type Status string

// The three outcomes. The zero Status is none of them: an Outcome nobody
// decided is not accepted.
const (
	Accepted    Status = "accepted"
	Rejected    Status = "rejected"
	Transformed Status = "transformed"
)

// Proposal is what the model asked for: {tool_name, payload}. Payload is the exact JSON that was judged.
type Proposal struct {
	ToolName string  `json:"tool_name"`
	Payload  RawJSON `json:"payload"`
}

// RawJSON is JSON text kept byte for byte.
type RawJSON []byte

// MarshalJSON returns the bytes as they are; nil is null.
func (r RawJSON) MarshalJSON() ([]byte, error) {
	if r == nil {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON keeps a copy of the bytes.
func (r *RawJSON) UnmarshalJSON(b []byte) error {
	*r = append((*r)[:0], b...)
	return nil
}

// Failure is one reason why a call does not pass. It never holds a value of
// the call: Pointer names the argument, Need says in words what would make it
// pass, in terms of tools and sources only (rule R24).
type Failure struct {
	// Pointer is the RFC 6901 pointer of the argument, "" for the call as a
	// whole, or "answers:" and a pointer for an answer given inside a call.
	Pointer string `json:"pointer"`
	Reason  Reason `json:"reason"`
	Need    string `json:"need"`
	// Line is the line of the policy file by which it fails, 0 where no line of it
	// would let the call pass.
	Line int `json:"line,omitempty"`
}

// Rejection is {code, reason}, with every failing pointer
// beside it, sorted bytewise. Code and Reason are those of the first failure in
// the order of refusal (gate.Decide).
type Rejection struct {
	Code     Code      `json:"code"`
	Reason   Reason    `json:"reason"`
	Failures []Failure `json:"failures,omitempty"`
}

// Outcome is {status, proposal?, rejection?} (docs/formats.md). Proposal is
// set when the outcome is transformed: it is the call that was executed.
type Outcome struct {
	Status    Status     `json:"status"`
	Proposal  *Proposal  `json:"proposal,omitempty"`
	Rejection *Rejection `json:"rejection,omitempty"`
}

// EvidenceID names one piece of evidence across gate, memory, summaries and
// certificates: the session's public id and a dense number in it, "s_…/ev12".
type EvidenceID struct {
	Session string
	Number  uint32
}

// String returns "s_…/ev12", or "ev12" when Session is empty.
func (e EvidenceID) String() string {
	s := "ev" + strconv.FormatUint(uint64(e.Number), 10)
	if e.Session == "" {
		return s
	}
	return e.Session + "/" + s
}

// ParseEvidenceID parses what String returns. Numbers start at 1 and have no
// leading zero.
func ParseEvidenceID(s string) (EvidenceID, error) {
	var id EvidenceID
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		id.Session, s = s[:i], s[i+1:]
		if !strings.HasPrefix(id.Session, "s_") || len(id.Session) < 3 {
			return EvidenceID{}, fmt.Errorf("evidence id: session must start with s_")
		}
	}
	digits, ok := strings.CutPrefix(s, "ev")
	n, err := strconv.ParseUint(digits, 10, 32)
	if !ok || err != nil || n == 0 || digits[0] == '0' || digits[0] == '+' {
		return EvidenceID{}, fmt.Errorf("evidence id must look like s_…/ev12 or ev12")
	}
	id.Number = uint32(n)
	return id, nil
}

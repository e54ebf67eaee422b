// Package certificate is the second opinion on what the gate accepted. It reads what
// a session recorded, the policy and the catalogue, and checks the certificate of
// each accepted act: that every value of the call is what its trace says it is, at
// the place the trace names, and that the contract accepts that place for it.
//
// It shares no matching code with the gate: no ledger, nothing of how a decision is
// found. What it looks at is a list of everything the session saw, in order, and it goes
// through the list, or through those of it that hold one value. What values mean is shared, or there would be two meanings:
// canonical forms (provenance.Canonical), the grammars of days, times and amounts, of
// what in a turn is pasted and of what in a text is an atom, strict JSON, JSON Schema,
// and what the operator's policy and the catalogue say. arch_test.go holds that.
//
// A label is derived again from the contract, and from what the calls of the session
// sent (R4, R5): what a call was asked with, what stands in what an act sent, what an
// act was decided by. What a read was asked with counts at the labels its own record
// states. Not looked at, and for the replay alone: the places that acts of this and of
// other sessions lowered (R38); the counts of R20, R24 and R27 and the repeats of R23;
// Writ's own files and those that steer programs (R34); whether a value is contested
// (R25), of which only the mark is read; and how much room there was. An origin that
// the replay would lower by one of these is not lowered here.
package certificate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// Call is one recorded call that the gate let pass.
type Call struct {
	Number    uint64 // of its record: what Result names it by
	Policy    *policy.Policy
	Catalogue *gate.Catalogue
	Record    *gate.Record
	// Arguments and Answers are the exact bytes that were judged, the zero Value
	// where there were none.
	Arguments, Answers strictjson.Value
	Time               time.Time // of the decision
}

// Result is the recorded answer to a call.
type Result struct {
	Call     uint64 // Call.Number
	Evidence uint32
	Time     time.Time // of its record
	Value    strictjson.Value
	// Recalled is what the governed memory said of its own answer (R35).
	Recalled []provenance.Recalled
	// Places says that it was judged while places of the state were lowered (R38): its
	// values may be worth less than is found here.
	Places bool
}

// Approval is a person's recorded answer.
type Approval struct {
	Evidence uint32
	Act      string
	Covers   []gate.Covered // what he was shown that it lacks
	Yes      bool
	Label    writ.Label
	At       time.Time
}

// Session is what one session recorded so far. It is told of its records in the order
// of the log: what an act may rest on is what was told before it.
type Session struct {
	id        string
	key       [32]byte
	mac       hash.Hash // by the key, once it was needed
	turns     []turn
	agreed    []turn // that only agree
	approvals []Approval
	calls     map[uint64]*call      // without a result yet
	texts     map[string]writ.Label // the texts that calls sent below system, and the lowest label of each
	within    map[sent]bool         // what acts sent below system
	requested map[string]bool       // what reads were asked with below system
	acted     bool                  // some act sent something below system
	since     bool                  // an act was made since the user's latest turn
	coined    string                // the name of what one made since, in what its arguments say
	denied    bool                  // a person said no since then
	acts      int                   // acts that were made
	made      map[string]made       // by type and literal
	told      map[string]bool       // the texts that acts sent
	opened    map[string][]string   // collections an act put in what it chose from an open one: at or below which paths, "" for anywhere
	letIn     map[guest]bool        // what it named it there, and what else acts may have named somebody
	places    map[uint32][]*place   // of each result, in the order of the document
	same      map[string][]*place   // by what stands there, in the order of the log
	askedWith map[uint32]asked      // of each result that can vouch
	lookups   map[string][]*place   // by the name that a member was looked up by
	held      int                   // how many places there are
	looked    map[string]bool       // those of listed that Writ alone listed, since the user's latest turn
	listed    map[string]uint32     // directories that were listed whole, by which evidence; 0 for what was newly made
	folded    map[string]bool       // paths, in any letters' case
	secrets   bool                  // one of them is secret (R30)
	went      []visit               // calls that say where other acts are done
	moves     int                   // calls that may have led elsewhere
	page      *listed               // the page that was listed last, nil once its server was called otherwise than to type
	pressed   []press               // what was clicked on by the user's words
	used      map[uint32]bool       // answers of a person that an act used up
	spent     []spent               // one-time values that acts used up
}

// New returns a session without records. The key is that of its log.
func New(id string, key [32]byte) *Session {
	return &Session{id: id, key: key, calls: map[uint64]*call{}, texts: map[string]writ.Label{}, places: map[uint32][]*place{}, askedWith: map[uint32]asked{}, same: map[string][]*place{}, lookups: map[string][]*place{}, opened: map[string][]string{}, letIn: map[guest]bool{}, within: map[sent]bool{}, requested: map[string]bool{}, made: map[string]made{}, told: map[string]bool{}, looked: map[string]bool{}, listed: map[string]uint32{}, folded: map[string]bool{}, used: map[uint32]bool{}}
}

// Error says which part of an act's certificate does not hold. It has no value of the
// call in it.
type Error struct {
	Pointer string // of the argument, "" for the call as a whole
	Why     string
}

func (e *Error) Error() string {
	at := "the call"
	if e.Pointer != "" {
		at = "an argument" // a pointer can hold a key that the caller chose
	}
	return "the certificate does not hold: " + at + ": " + e.Why
}

func wrong(l *leaf, format string, args ...any) error {
	e := &Error{Why: fmt.Sprintf(format, args...)}
	if l != nil {
		e.Pointer = l.pointer
	}
	return e
}

// Turn adds what the user typed. Its text is evidence from now on.
func (s *Session) Turn(evidence uint32, text string, at time.Time) {
	t := turn{evidence: evidence, text: text, own: provenance.OwnText(text), at: at, acts: s.acts}
	if len(s.turns) > 0 && !s.since && !s.denied && provenance.Assents(t.own) {
		s.agreed = append(s.agreed, t)
		return // he goes on with what he said before
	}
	s.since, s.denied, s.coined = false, false, ""
	for dir, alone := range s.looked {
		if alone {
			delete(s.listed, dir)
		}
	}
	clear(s.looked)
	t.parts = t.saidParts()
	s.turns = append(s.turns, t)
}

// Lapse says that the turns so far vouch for nothing any more.
func (s *Session) Lapse() { s.turns, s.agreed = nil, nil }

// Approve adds a person's answer.
func (s *Session) Approve(a Approval) {
	s.approvals = append(s.approvals, a)
	s.denied = s.denied || !a.Yes
}

// Accepted reports whether a record is one of an accepted act, which has a
// certificate: reads have none, and neither has what passed in shadow mode.
func Accepted(r *gate.Record) bool {
	return r.Allowed && !r.Shadow && r.Status != writ.Rejected && !slices.Equal(r.Effect, policy.Read.Names())
}

// Call adds a call that was allowed. Of an accepted act it returns an *Error unless
// its certificate holds. The act counts for what follows in either case. What passed in
// shadow mode counts for nothing.
func (s *Session) Call(in Call) error {
	if in.Record.Shadow {
		s.calls[in.Number] = nil
		return nil
	}
	c, err := s.read(in)
	if err != nil {
		return err
	}
	if Accepted(in.Record) {
		err = s.verify(c)
	}
	s.send(c)
	return err
}

// Verify checks the certificate of an accepted act, and adds nothing.
func (s *Session) Verify(in Call) error {
	c, err := s.read(in)
	if err == nil {
		err = s.verify(c)
	}
	return err
}

// Bytes estimates the memory it takes, in bytes.
func (s *Session) Bytes() int64 {
	const place, text = 700, 200
	return int64(place*s.held + text*(len(s.texts)+len(s.requested)+len(s.within)+len(s.made)+len(s.told)))
}

// digest is the keyed digest by which a record names bytes, "" for none.
func (s *Session) digest(b []byte) string {
	if b == nil {
		return ""
	}
	return hex.EncodeToString(s.sum(nil, b))
}

// isKeyed reports whether a text is that digest.
func (s *Session) isKeyed(text string, b []byte) bool {
	if b == nil {
		return text == ""
	}
	var sum [sha256.Size]byte
	return isHex(text, s.sum(sum[:0], b))
}

func (s *Session) sum(to, b []byte) []byte {
	if s.mac == nil {
		s.mac = hmac.New(sha256.New, s.key[:])
	}
	s.mac.Reset()
	s.mac.Write([]byte("writ/gate/bytes\x00"))
	s.mac.Write(b)
	return s.mac.Sum(to)
}

// isHex reports whether a text is a digest in lower-case hex.
func isHex(text string, digest []byte) bool {
	var b [2 * sha256.Size]byte
	return text == string(hex.AppendEncode(b[:0], digest))
}

// isNamed reports whether a trace names a value by its keyed digest.
func (s *Session) isNamed(text string, t provenance.Type, v strictjson.Value) bool {
	domain := string(t)
	said, _, why := provenance.Canonical(t, v)
	var few [256]byte
	b := append(few[:0], s.key[:]...)
	switch {
	case why != "":
		b = append(append(b, "\x00raw\x00"...), v.Literal()...)
	case t == provenance.Untyped:
		b = append(append(b, domain...), 0, byte(v.Kind()))
		b = append(b, said...)
	default:
		b = append(append(append(b, domain...), 0), said...)
	}
	sum := sha256.Sum256(b)
	return isHex(text, sum[:16])
}

// closed is the operator's word that strangers put nothing into a collection (R28).
func (c *call) closed(collection string) bool {
	if known, ok := c.Policy.Collections[collection]; ok {
		return known.Closed
	}
	kind, server, _ := strings.Cut(collection, ".")
	return server == c.server && slices.Contains([]string{"resources", "templates", "prompts", "prompt_arguments"}, kind)
}

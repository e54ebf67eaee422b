package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/writ-project/writ/internal/strictjson"
	"golang.org/x/mod/sumdb/note"
)

// Fault is what is wrong with a log, as a stable id.
type Fault string

// The faults Verify reports.
const (
	LogUnreadable     Fault = "log.unreadable"       // the store could not be read on
	LogGap            Fault = "log.gap"              // an index is missing or stands twice
	LogTruncated      Fault = "log.truncated"        // records are missing at the end
	LogHead           Fault = "log.head"             // size or root are not those the store recorded
	LogUnsigned       Fault = "log.unsigned"         // records no checkpoint covers: who has the key wrote none of them
	LeafMalformed     Fault = "leaf.malformed"       // not a canonical record
	LeafIndex         Fault = "leaf.index"           // filed under another session or number than its own
	LeafHash          Fault = "leaf.hash"            // not the leaf, or not the tree, that was hashed
	SessionNumber     Fault = "session.number"       // not the next number of its session
	SessionOpen       Fault = "session.open"         // a first record that is no open, or a later one that is
	SessionClosed     Fault = "session.closed"       // a call allowed after the session was closed
	DecisionStatus    Fault = "decision.status"      // a decision without a proper status
	ResultDecision    Fault = "result.decision"      // a result of no earlier allowed decision of its session, or a second one
	ValueMismatch     Fault = "value.mismatch"       // not the value the record commits to
	ValueUnknown      Fault = "value.unknown"        // a value the record does not commit to
	ValueMissing      Fault = "value.missing"        // a value is gone that no recorded erasure took
	LogIndexes        Fault = "log.indexes"          // the store's own indexes or references are damaged
	BlobMismatch      Fault = "blob.mismatch"        // a blob that is not what its name says
	CheckpointInvalid Fault = "checkpoint.signature" // not a checkpoint signed by this log's key
	CheckpointOrder   Fault = "checkpoint.order"     // checkpoints not in order of size
	CheckpointRoot    Fault = "checkpoint.root"      // the log is not the one that was signed
	ReplayDiffers     Fault = "replay.differs"       // the decision is not what its evidence gives
)

// Error makes a Fault an error, for who finds one.
func (f Fault) Error() string { return string(f) }

// Problem is the first thing found wrong.
type Problem struct {
	// Index is the log index of the first bad record. With CheckpointRoot the
	// bad record lies in [Index, Until): the last good checkpoint has size
	// Index, the failing one Until. With LogUnsigned they are all of those.
	Index   int64  `json:"index"`
	Until   int64  `json:"until,omitempty"`
	Session string `json:"session,omitempty"` // empty unless it has the form of a session id
	N       uint64 `json:"n,omitempty"`
	Fault   Fault  `json:"fault"`
	Detail  string `json:"detail,omitempty"` // never a value or a byte of a record
}

func (p *Problem) Error() string {
	s := fmt.Sprintf("record %d", p.Index)
	if p.Until > 0 {
		s = fmt.Sprintf("records %d to %d", p.Index, p.Until-1)
	}
	if p.Session != "" {
		s += fmt.Sprintf(" (%s, number %d)", p.Session, p.N)
	}
	s += ": " + string(p.Fault)
	if p.Detail != "" {
		s += ": " + p.Detail
	}
	return s
}

// Report is what Verify found. Its counts cover the records before Problem.
type Report struct {
	Records     int64    `json:"records"`
	Sessions    int64    `json:"sessions"`
	Decisions   int64    `json:"decisions"`
	Accepted    int64    `json:"accepted"` // transformed ones included
	Rejected    int64    `json:"rejected"`
	Shadowed    int64    `json:"shadowed"` // of the rejected, those shadow mode let pass
	Results     int64    `json:"results"`
	Undone      int64    `json:"undone"` // allowed decisions with no known end
	Values      int64    `json:"values"` // values there, all as committed
	Erased      int64    `json:"erased"` // commitments whose value is gone
	Blobs       int64    `json:"blobs"`
	Checkpoints int64    `json:"checkpoints"`
	Signed      int64    `json:"signed"` // how many records the newest good checkpoint covers
	Size        int64    `json:"size"`
	Root        Hash     `json:"root"`
	Problem     *Problem `json:"problem,omitempty"`
}

// VerifyOptions says what to verify against.
type VerifyOptions struct {
	// Verifier is the log's public key. It is required.
	Verifier note.Verifier
	// Known are checkpoints kept elsewhere, whose signatures the caller has
	// checked with OpenCheckpoint. The log must continue each of them.
	Known []Checkpoint
	// Replay, if set, is called once for every record in log order, after the
	// record itself was verified. An error is the Problem ReplayDiffers, or
	// that of the Fault it wraps; its text becomes the detail, so it must hold
	// no value. The arguments may be kept, and not be changed.
	Replay func(r *Record, it *Item) error
}

// Verify checks a whole log: the form of each record, the numbering of each
// session, that results follow decisions that allowed them, every hash, every
// value still there, every blob, every checkpoint's signature and root, and that
// the newest covers every record. It stops at the first problem, which the report names; the error is for what is
// no property of the log, a missing key or a cancelled context.
//
// Memory is bounded by the number of sessions, of calls without an end and of
// checkpoints, not by the length of the log or of a record's values.
func Verify(ctx context.Context, s Snapshot, o VerifyOptions) (*Report, error) {
	if o.Verifier == nil {
		return nil, errors.New("audit: verifying needs the log's public key")
	}
	v := &verifier{opt: o, sessions: map[string]*sessionState{}}
	v.known = slices.Clone(o.Known)
	slices.SortStableFunc(v.known, func(a, b Checkpoint) int {
		switch {
		case a.Size < b.Size:
			return -1
		case a.Size > b.Size:
			return 1
		}
		return 0
	})
	for msg, err := range s.Checkpoints(ctx) {
		c := signed{err: err}
		if err == nil {
			c.Checkpoint, c.err = OpenCheckpoint(msg, o.Verifier)
		}
		if v.stored = append(v.stored, c); c.err != nil {
			break
		}
	}
	p := v.run(ctx, s)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v.rep.Size, v.rep.Root, v.rep.Problem = v.tree.Size(), v.tree.Root(), p
	for _, st := range v.sessions {
		v.rep.Undone += int64(len(st.undone))
	}
	return &v.rep, nil
}

type sessionState struct {
	n      uint64
	closed bool
	undone map[uint64]bool // allowed decisions without a known end
}

type verifier struct {
	opt      VerifyOptions
	rep      Report
	tree     Tree
	hashes   []Hash
	sessions map[string]*sessionState
	known    []Checkpoint
	stored   []signed
	bare     bool  // the snapshot has records alone, and no hashes to compare
	good     int64 // size of the last good checkpoint
}

// signed is a stored checkpoint, or why it is none.
type signed struct {
	Checkpoint
	err error
}

func (v *verifier) run(ctx context.Context, s Snapshot) *Problem {
	if p := v.checkpoints(); p != nil {
		return p
	}
	src := inBatches(s.Scan(ctx, 0))
	if b, is := s.(*Bundle); is {
		src, v.bare = b.batches(), true
	}
	for j, err := range prepared(ctx, src, (*prep).prepare) {
		if err != nil {
			return &Problem{Index: v.tree.Size(), Fault: LogUnreadable, Detail: "the store cannot be read here"}
		}
		if p := v.item(j); p != nil {
			return p
		}
		if p := v.checkpoints(); p != nil {
			return p
		}
	}
	size := v.tree.Size()
	if len(v.stored) > 0 || len(v.known) > 0 {
		return &Problem{Index: size, Fault: LogTruncated, Detail: "a checkpoint signed a longer log"}
	}
	if size < s.Size() {
		return &Problem{Index: size, Fault: LogTruncated, Detail: "the store recorded a longer log"}
	}
	if size > s.Size() || v.tree.Root() != s.Root() {
		return &Problem{Index: min(size, s.Size()), Fault: LogHead, Detail: "the store recorded another size or root"}
	}
	if v.rep.Signed < size {
		return &Problem{Index: v.rep.Signed, Until: size, Fault: LogUnsigned, Detail: "the log's key signed none of them"}
	}
	for b, err := range s.Blobs(ctx) {
		if err != nil {
			return &Problem{Index: size, Fault: LogUnreadable, Detail: "the blobs cannot be read"}
		}
		if Sum(b.Bytes) != b.Name {
			return &Problem{Index: size, Fault: BlobMismatch, Detail: "blob " + b.Name.String()}
		}
		v.rep.Blobs++
	}
	return nil
}

// checkpoints compares all checkpoints of the present size with the tree.
func (v *verifier) checkpoints() *Problem {
	size := v.tree.Size()
	for len(v.known) > 0 && v.known[0].Size <= size {
		c := v.known[0]
		if c.Size < size || c.Origin != v.opt.Verifier.Name() || c.Root != v.tree.Root() {
			return &Problem{Index: v.good, Until: size, Fault: CheckpointRoot, Detail: "the log is not the one the checkpoint kept elsewhere signed"}
		}
		v.known = v.known[1:]
		v.good = size
	}
	for len(v.stored) > 0 {
		c := v.stored[0]
		switch {
		case c.err != nil:
			return &Problem{Index: size, Fault: CheckpointInvalid, Detail: "it cannot be read, or is not signed by this log's key"}
		case c.Size < size:
			return &Problem{Index: size, Fault: CheckpointOrder}
		case c.Size > size:
			return nil
		case c.Root != v.tree.Root():
			return &Problem{Index: v.good, Until: size, Fault: CheckpointRoot, Detail: "the log is not the one that was signed"}
		}
		v.stored = v.stored[1:]
		v.good, v.rep.Signed = size, size
		v.rep.Checkpoints++
	}
	return nil
}

// item checks one record; everything that needs no other record was done by
// prepare.
func (v *verifier) item(j *prep) *Problem {
	it, r := &j.item, j.rec
	rep := v.rep
	fail := func(f Fault, detail string) *Problem {
		v.rep = rep // what a bad record says does not count
		p := &Problem{Index: v.tree.Size(), Fault: f, Detail: detail}
		if ValidSession(it.Session) {
			p.Session, p.N = it.Session, it.N
		}
		return p
	}
	if v.bare {
		it.Index = v.tree.Size()
	}
	if it.Index != v.tree.Size() {
		return &Problem{Index: v.tree.Size(), Fault: LogGap, Detail: fmt.Sprintf("index %d stands here", it.Index)}
	}
	if j.err != nil {
		return fail(LeafMalformed, j.err.Error())
	}
	if r.Session != it.Session || r.N != it.N {
		return fail(LeafIndex, "")
	}
	v.hashes = v.tree.completed(v.hashes[:0], j.hash)
	if !v.bare && !slices.Equal(v.hashes, it.Hashes) {
		return fail(LeafHash, "")
	}
	if p := v.contents(j, fail); p != nil {
		return p
	}
	v.tree.grow(v.hashes)
	return nil
}

// contents checks what an item says, once its leaf is known to stand in the log.
func (v *verifier) contents(j *prep, fail func(Fault, string) *Problem) *Problem {
	it, r := &j.item, j.rec
	if j.fault != "" {
		return fail(j.fault, j.detail)
	}
	if p := v.record(r, j, fail); p != nil {
		return p
	}
	if v.opt.Replay != nil {
		if err := v.opt.Replay(r, it); err != nil {
			fault := ReplayDiffers
			errors.As(err, &fault)
			return fail(fault, err.Error())
		}
	}
	v.rep.Records++
	v.rep.Values += int64(len(it.Values))
	v.rep.Erased += int64(len(r.Commit) - len(it.Values))
	return nil
}

// record checks a record against those before it in its session.
func (v *verifier) record(r *Record, j *prep, fail func(Fault, string) *Problem) *Problem {
	st := v.sessions[r.Session]
	if st == nil {
		if r.N != 1 {
			return fail(SessionNumber, "a session begins with number 1")
		}
		st = &sessionState{}
		v.sessions[r.Session] = st
		v.rep.Sessions++
	}
	if r.N != st.n+1 {
		return fail(SessionNumber, fmt.Sprintf("number %d was to come", st.n+1))
	}
	if (r.N == 1) != (r.Kind == KindOpen) {
		return fail(SessionOpen, "")
	}
	switch r.Kind {
	case KindDecision:
		allowed := false
		switch j.status {
		case "accepted", "transformed":
			allowed = true
		case "rejected":
			allowed = j.shadow
		default:
			return fail(DecisionStatus, "")
		}
		if allowed && st.closed {
			return fail(SessionClosed, "")
		}
		if j.status == "rejected" {
			v.rep.Rejected++
		} else {
			v.rep.Accepted++
		}
		if allowed {
			if st.undone == nil {
				st.undone = map[uint64]bool{}
			}
			st.undone[r.N] = true
			if j.status == "rejected" {
				v.rep.Shadowed++
			}
		}
		v.rep.Decisions++
	case KindResult:
		if j.status == "" || j.decision == 0 || j.decision >= r.N {
			return fail(ResultDecision, "it names no earlier decision and status")
		}
		if !st.undone[j.decision] {
			return fail(ResultDecision, fmt.Sprintf("number %d is no allowed decision without an end", j.decision))
		}
		if j.status != "unknown" {
			delete(st.undone, j.decision)
		}
		v.rep.Results++
	case KindClose:
		st.closed = true
	}
	st.n = r.N
	return nil
}

// members reads the three members of data this package knows, of which said holds what parseRecord says.
func members(r *Record, said [3][]byte) (status string, decision uint64, shadow bool) {
	if r.Kind != KindDecision && r.Kind != KindResult {
		return "", 0, false
	}
	if s := said[2]; len(s) > 2 && bytes.IndexByte(s, '\\') < 0 && s[0] == '"' {
		status = intern(s[1 : len(s)-1])
	} else {
		status, _ = strictjson.Text(s)
	}
	return status, parseN(said[0]), string(said[1]) == "true"
}

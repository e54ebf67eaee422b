package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// # Proof
//
// A proof shows one thing of a log to who has nothing else of it but, at best, its
// public key: that a decision stands in it, with what came of its call, that a session
// was redacted, or that it goes on from an older checkpoint. It is one line of JSON, a proofLine, and has one spelling.

// MaxProof is the length of the longest proof.
const MaxProof = 64 << 20

// ErrProof says that a file is no proof, or proves nothing of this log.
var ErrProof = errors.New("audit: it proves nothing")

// ErrTooLarge says that a proof would be longer than MaxProof.
var ErrTooLarge = errors.New("audit: the proof is too large")

type proofLine struct {
	Proof      int           `json:"proof"` // 1
	Key        string        `json:"key"`   // the log's public key, as a note's verifier is written
	Checkpoint string        `json:"checkpoint"`
	Records    []proofRecord `json:"records,omitempty"` // a decision, and what came of its call, or a redaction
	Older      string        `json:"older,omitempty"`   // in the place of records: the older checkpoint
	Path       []Hash        `json:"path,omitempty"`    // from it to the checkpoint, RFC 6962
}

type proofRecord struct {
	Index int64  `json:"index"`
	Path  []Hash `json:"path,omitempty"` // from the record to the checkpoint, RFC 6962
	bundleRecord
}

// ProveRecords returns the proof that a decision, and the record of what came of its
// call where there is one, or a redaction, stand in the log of a checkpoint, which key verifies. The
// values of the items go into it. The error is ErrAltered where the log has them not.
func ProveRecords(s Snapshot, key string, checkpoint []byte, items ...Item) ([]byte, error) {
	c, err := openWith(key, checkpoint)
	if err != nil {
		return nil, err
	}
	p := proofLine{Proof: 1, Key: key, Checkpoint: string(checkpoint)}
	for i := range items {
		r := proofRecord{Index: items[i].Index, bundleRecord: lineOf(&items[i])}
		if r.Path, err = tlog.ProveRecord(c.Size, r.Index, s); err != nil {
			return nil, err
		}
		p.Records = append(p.Records, r)
	}
	return p.checked()
}

// ProveGrowth returns the proof that the log of checkpoint newer begins with all of the
// log of checkpoint older; key verifies both. The error is ErrAltered where it does not.
func ProveGrowth(s Snapshot, key string, older, newer []byte) ([]byte, error) {
	from, err := openWith(key, older)
	if err != nil {
		return nil, err
	}
	to, err := openWith(key, newer)
	if err != nil {
		return nil, err
	}
	if from.Size > to.Size {
		return nil, fmt.Errorf("%w: it was longer once", ErrAltered)
	}
	p := proofLine{Proof: 1, Key: key, Checkpoint: string(newer), Older: string(older)}
	if p.Path, err = tlog.ProveTree(to.Size, from.Size, s); err != nil {
		return nil, err
	}
	return p.checked()
}

// checked is the proof as it is written, once it was checked as anybody will.
func (p *proofLine) checked() ([]byte, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	if b = append(b, '\n'); len(b) > MaxProof {
		return nil, ErrTooLarge
	}
	if _, err := CheckProof(b, nil); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAltered, err)
	}
	return b, nil
}

// Proven is what a proof shows.
type Proven struct {
	Checkpoint Checkpoint     // the log that it is about
	Records    []ProvenRecord // a decision that stands in it, and what came of its call; or a redaction
	Older      Checkpoint     // where there are no records: a log that it begins with
}

// ProvenRecord is a record that stands in a log at its index. Its values are those it
// commits to; some may be left out.
type ProvenRecord struct {
	Item
	Record *Record
}

// CheckProof returns what a proof shows of the log whose key v is. Where v is nil the
// key in the proof is believed, and whose that is only its maker says. The error is
// ErrProof, and quotes nothing.
func CheckProof(b []byte, v note.Verifier) (*Proven, error) {
	bad := func(what string) (*Proven, error) { return nil, fmt.Errorf("%w: %s", ErrProof, what) }
	var p proofLine
	if len(b) > MaxProof || !readLine(b, &p) || p.Proof != 1 || (len(p.Records) > 0) == (p.Older != "") || len(p.Records) > 2 {
		return bad("not a proof of this version as it is written")
	}
	own, err := verifierOf(p.Key)
	if err != nil {
		return bad("its key is none")
	}
	if v == nil {
		v = own
	}
	if own.Name() != v.Name() || own.KeyHash() != v.KeyHash() {
		return bad("it is of the log of another key")
	}
	out := &Proven{}
	if out.Checkpoint, err = OpenCheckpoint([]byte(p.Checkpoint), v); err != nil {
		return bad("its checkpoint is not signed by the log's key")
	}
	if p.Older != "" {
		if out.Older, err = OpenCheckpoint([]byte(p.Older), v); err != nil {
			return bad("its older checkpoint is not signed by the log's key")
		}
		if CheckConsistency(out.Older, out.Checkpoint, p.Path) != nil {
			return bad("the newer log does not begin with the older")
		}
		return out, nil
	}
	if p.Path != nil {
		return bad("a path leads from nowhere")
	}
	for i := range p.Records {
		r := &p.Records[i]
		it, rec, ok := r.item(r.Index)
		if !ok {
			return bad("a record cannot be read")
		}
		if CheckInclusion(out.Checkpoint, r.Index, it.Leaf, r.Path) != nil {
			return bad("a record does not stand in the log")
		}
		if f, _ := CheckValues(rec, it.Values); f != "" {
			return bad("a value is not the one its record commits to")
		}
		out.Records = append(out.Records, ProvenRecord{it, rec})
	}
	first := &out.Records[0]
	redacts := first.Record.Kind == KindRedact && len(out.Records) == 1
	if !redacts && first.Record.Kind != KindDecision || len(out.Records) > 1 && !out.Records[1].follows(first) {
		return bad("its records are no decision and what came of it, and no redaction")
	}
	return out, nil
}

// follows reports whether a record says what came of the call of a decision.
func (r *ProvenRecord) follows(d *ProvenRecord) bool {
	return r.Session == d.Session && r.N > d.N && r.Index > d.Index && DecisionOf(r.Record) == d.N
}

// DecisionOf returns the number of the decision a record says what came of, 0 for none.
func DecisionOf(r *Record) uint64 {
	if r.Kind == KindDecision {
		return 0
	}
	return parseN(strictjson.Get(r.Data, "decision"))
}

func openWith(key string, checkpoint []byte) (Checkpoint, error) {
	v, err := verifierOf(key)
	if err != nil {
		return Checkpoint{}, err
	}
	return OpenCheckpoint(checkpoint, v)
}

// verifierOf reads a public key in the one spelling that GenerateKey has for it.
func verifierOf(key string) (note.Verifier, error) {
	v, err := note.NewVerifier(key)
	if err == nil && (!strings.HasPrefix(key, fmt.Sprintf("%s+%08x+", v.Name(), v.KeyHash())) || strings.ContainsAny(key, "\r\n")) {
		err = errors.New("audit: a public key is written otherwise")
	}
	return v, err
}

// readLine reads what json.Marshal makes of that type, and no other spelling of it, to
// the last bit of its base64.
func readLine(line []byte, to any) bool {
	if json.Unmarshal(line, to) != nil {
		return false
	}
	same, err := json.Marshal(to)
	return err == nil && bytes.Equal(line, append(same, '\n'))
}

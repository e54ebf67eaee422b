package memoryserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
)

// Receipt says what one erasure took, by whom, and where copies may be that it
// did not reach. It repeats nothing of what was erased: each record is named by
// the digest its log committed to, whose salt is gone with the text, so that
// nobody can guess the text from it. It is made from the log alone, and the
// same erasure has the same receipt.
type Receipt struct {
	V         int            `json:"v"` // 1
	Kind      string         `json:"kind"`
	Log       string         `json:"log"` // name of the key that signs the log
	Namespace string         `json:"namespace"`
	Decision  string         `json:"decision"` // of the erasure
	Event     uint64         `json:"event"`    // its number in the namespace
	At        memory.Instant `json:"at"`
	Authority string         `json:"authority"`
	Reason    string         `json:"reason"`
	Policy    string         `json:"policy"`
	// Records are the events whose texts were erased.
	Records      []ErasedRecord `json:"records"`
	Observations []string       `json:"observations"`
	Propositions []string       `json:"propositions"`
	Entities     []string       `json:"entities"`
	// Evidence and Sessions are where the gateway itself saw the text: the logs
	// of those sessions were not touched.
	Evidence []string `json:"evidence"`
	Sessions []string `json:"sessions"`
	// Gaps are the places a copy may be in, in fixed words.
	Gaps []string `json:"gaps"`
}

// ErasedRecord is one record of the namespace without its text.
type ErasedRecord struct {
	N uint64 `json:"n"`
	// Commitment is SHA-256(salt, text) as the log has it; "" where the record
	// never had a text.
	Commitment string `json:"commitment,omitempty"`
}

const (
	receiptKind = "memory.erasure"
	receiptHead = "writ erasure receipt\n"
)

// The places a copy may be in.
const (
	GapSessions = "session_logs"   // what the gateway recorded of the sessions named
	GapBackups  = "backups"        // copies of the state directory
	GapExports  = "exports"        // files an export wrote
	GapAnswers  = "answers_given"  // what agents, tools and people were shown
	GapRunning  = "running_memory" // the memory of processes that have not read the erasure yet
)

// ErrNoErasure says that an event erased nothing.
var ErrNoErasure = errors.New("memory: this decision is no erasure")

// NewReceipt makes the receipt of an erasure, event n of a namespace, from the
// log and the state it folds to. key is the name of the log's key.
func NewReceipt(ctx context.Context, st audit.Store, s *memory.State, n uint64, key string) (*Receipt, error) {
	r, op, _, err := recorded(ctx, st, s.Namespace(), n)
	if err != nil {
		return nil, err
	}
	r.Log, r.Gaps = key, []string{GapBackups, GapExports, GapAnswers, GapRunning}
	r.Evidence, r.Sessions = s.Seen(op.Records, op.Observations)
	slices.Sort(r.Evidence)
	slices.Sort(r.Sessions)
	if len(r.Sessions)+len(r.Evidence) > 0 {
		r.Gaps = append([]string{GapSessions}, r.Gaps...)
	}
	return r, nil
}

// recorded is the receipt of an erasure as far as the log has it; kept are the
// records of it whose text is still there.
func recorded(ctx context.Context, st audit.Store, namespace string, n uint64) (r *Receipt, op *memory.EraseOp, kept []uint64, err error) {
	e, value, err := EventAt(ctx, st, namespace, n)
	if err != nil {
		return nil, nil, nil, err
	}
	if e != nil && e.Status == writ.Accepted {
		for i := range e.Ops {
			op = cmp.Or(op, e.Ops[i].Erase)
		}
	}
	if op == nil {
		return nil, nil, nil, ErrNoErasure
	}
	r = &Receipt{V: 1, Kind: receiptKind, Namespace: namespace, Decision: fmt.Sprintf("dec_%d", n), Event: n, At: e.At, Authority: e.Principal,
		Policy: e.Policy, Records: []ErasedRecord{}, Observations: notNil(op.Observations), Propositions: notNil(op.Propositions), Entities: notNil(op.Entities)}
	r.Reason, _ = strictjson.Text(strictjson.Get(strictjson.Get(value, "payload"), "reason"))
	left := op.Records // in their order
	if len(left) == 0 {
		return r, op, nil, nil
	}
	for it, err := range st.Read(ctx, LogOf(namespace), left[0]) {
		if err != nil {
			return nil, nil, nil, err
		}
		rec, err := audit.ParseRecord(it.Leaf)
		if err != nil {
			return nil, nil, nil, err
		}
		if rec.N != left[0] {
			continue
		}
		erased := ErasedRecord{N: rec.N}
		if d, ok := rec.Commitment(valueProposal); ok {
			erased.Commitment = d.String()
		}
		if _, there := it.Value(valueProposal); there {
			kept = append(kept, rec.N)
		}
		r.Records = append(r.Records, erased)
		if left = left[1:]; len(left) == 0 {
			break
		}
	}
	return r, op, kept, nil
}

func notNil(ids []string) []string { return append([]string{}, ids...) }

// Text is the receipt as it is signed: a line that says what it is, and one of
// canonical JSON.
func (r *Receipt) Text() (string, error) {
	b, err := canonical("receipt", r)
	if err != nil {
		return "", err
	}
	return receiptHead + string(b), nil
}

// MaxReceipt bounds the text of a receipt.
const MaxReceipt = 8 << 20

var errReceipt = errors.New("memory: not a receipt of this version")

// ParseReceipt reads what Text returns and nothing else. It says nothing about
// who wrote it.
func ParseReceipt(text string) (*Receipt, error) {
	body, ok := strings.CutPrefix(text, receiptHead)
	if !ok || len(text) > MaxReceipt {
		return nil, errReceipt
	}
	r := &Receipt{}
	d := json.NewDecoder(bytes.NewReader([]byte(body)))
	d.DisallowUnknownFields()
	if d.Decode(r) != nil || r.V != 1 || r.Kind != receiptKind {
		return nil, errReceipt
	}
	if r.Records == nil || r.Observations == nil || r.Propositions == nil || r.Entities == nil || r.Evidence == nil || r.Sessions == nil || r.Gaps == nil {
		return nil, errReceipt
	}
	if again, err := r.Text(); err != nil || again != text {
		return nil, errReceipt
	}
	return r, nil
}

// ErrReceipt says that a receipt is not what the log says, or that something of
// it is still there.
var ErrReceipt = errors.New("memory: the receipt is not true of this log")

// Check holds a receipt against the log: the erasure is recorded there as the
// receipt tells it, every record has the digest it names, and none has its text.
func (r *Receipt) Check(ctx context.Context, st audit.Store) error {
	is, _, kept, err := recorded(ctx, st, r.Namespace, r.Event)
	if errors.Is(err, ErrNoErasure) {
		return fmt.Errorf("%w: it records no such erasure", ErrReceipt)
	} else if err != nil {
		return err
	}
	switch {
	case is.At != r.At || is.Authority != r.Authority || is.Policy != r.Policy || is.Decision != r.Decision:
		return fmt.Errorf("%w: another time, authority or policy", ErrReceipt)
	case !slices.Equal(is.Records, r.Records) || !slices.Equal(is.Observations, r.Observations) ||
		!slices.Equal(is.Propositions, r.Propositions) || !slices.Equal(is.Entities, r.Entities):
		return fmt.Errorf("%w: it erased something else", ErrReceipt)
	case len(kept) > 0:
		return fmt.Errorf("%w: the text of record %d is still there", ErrReceipt, kept[0])
	}
	return nil
}

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/mcp/downstream"
)

// KindSummary is the kind of a record of an evidence-locked summary (INV-5).
const KindSummary audit.Kind = "summary"

const (
	valueSummary  = "summary"  // summary: the exact bytes the model wrote
	valueGrounded = "grounded" // summary: claim.Summary with its quotes
)

// summaryData is the data of a summary's record: what makes the source text
// again.
type summaryData struct {
	Evidence uint32 `json:"evidence"`
	Pointer  string `json:"pointer"`
	Limit    int    `json:"limit"`
	// Marks is the version of the rules that marked the items; records without
	// one have no marks.
	Marks int `json:"marks,omitempty"`
}

// ErrNoEvidence says that there is no such result.
var ErrNoEvidence = errors.New("gateway: no such evidence is on record")

// Recorded returns the exact result bytes that are on record as that evidence
// of the session.
func (ss *sessions) Recorded(ctx context.Context, s downstream.Session, evidence uint32) ([]byte, error) {
	own, all, _, err := ss.evidenceOf(ctx, s.PublicID())
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(x evidenceEntry) bool { return x.Evidence.Number == evidence && x.value == valueResult })
	if i < 0 {
		return nil, ErrNoEvidence
	}
	b, err := ss.store.Value(ctx, own.id, all[i].n, valueResult)
	if errors.Is(err, audit.ErrNotFound) { // an end without bytes
		return nil, ErrNoEvidence
	}
	return b, err
}

// RecordSummary grounds a summary in the recorded bytes of one result and puts
// it on record, so that it can be checked again later by whoever has the log.
// id is the record's. A stop means that it is not grounded: nothing is
// recorded, and nothing of it may be shown as a summary.
func (ss *sessions) RecordSummary(ctx context.Context, s downstream.Session, evidence uint32, pointer string, limit int, summary []byte) (grounded claim.Summary, id string, stop *claim.Stop, err error) {
	record, err := ss.Recorded(ctx, s, evidence)
	if err != nil {
		return grounded, "", nil, err
	}
	grounded, stop = ground(record, pointer, limit, summary)
	if stop != nil {
		return claim.Summary{}, "", stop, nil
	}
	rec, err := ss.recordIn(ctx, s.PublicID(), func(own *session) (*receipt, error) {
		return ss.write(own, powerCut, KindSummary, ss.now(), summaryData{evidence, pointer, limit, claim.MarkRules},
			value{valueSummary, summary}, value{valueGrounded, mustJSON(grounded)})
	})
	if err != nil {
		return claim.Summary{}, "", nil, err
	}
	return grounded, fmt.Sprintf("%s/%d", s.PublicID(), rec.n), nil, nil
}

func ground(record []byte, pointer string, limit int, summary []byte) (claim.Summary, *claim.Stop) {
	source, stop := claim.NewSource(record, pointer, limit)
	if stop != nil {
		return claim.Summary{}, stop
	}
	return claim.Ground(source, summary)
}

// summary checks a recorded summary against the recorded bytes it quotes.
func (r *Replayer) summary(ctx context.Context, rec *audit.Record, it *audit.Item) error {
	var data summaryData
	if err := json.Unmarshal(rec.Data, &data); err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	text, _ := it.Value(valueSummary)
	quotes, _ := it.Value(valueGrounded)
	n := uint64(0)
	for _, result := range slices.Backward(r.results) {
		if result.evidence == data.Evidence {
			n = result.n
			break
		}
	}
	if n == 0 && r.from > 0 {
		return nil // it founds nothing, and this is no verification
	}
	if n == 0 {
		return fmt.Errorf("%w: a summary of a result that is not there (n %d)", ErrReplay, rec.N)
	}
	record, err := r.store.Value(ctx, rec.Session, n, valueResult)
	if err != nil {
		return err
	}
	var recorded claim.Summary
	if data.Marks < claim.MarkRules && json.Unmarshal(quotes, &recorded) == nil {
		// Earlier rules let quotes end elsewhere; they are held to the record.
		if source, stop := claim.NewSource(record, data.Pointer, len(record)); stop == nil && recorded.Verbatim(source, text) {
			r.Grounded++
			return nil
		}
	}
	grounded, stop := ground(record, data.Pointer, data.Limit, text)
	if stop == nil && data.Marks != claim.MarkRules {
		// Other rules marked it: its quotes are held to the record all the same.
		if json.Unmarshal(quotes, &recorded) == nil {
			grounded, quotes = grounded.Unmarked(), mustJSON(recorded.Unmarked())
		}
	}
	if stop != nil || !bytes.Equal(mustJSON(grounded), quotes) {
		return fmt.Errorf("%w: a summary that is not grounded (n %d)", ErrReplay, rec.N)
	}
	r.Grounded++
	return nil
}

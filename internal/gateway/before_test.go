package gateway_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
	sumdb "golang.org/x/mod/sumdb/note"
)

// TestRecordsOfBefore: a log whose decisions name no rules, as gateways wrote it up to
// writ-gate/12, is verified, and every decision of it can be shown. This engine is another,
// so they are counted apart and none is made again.
func TestRecordsOfBefore(t *testing.T) {
	raw, err := os.ReadFile("testdata/before.bundle")
	if err != nil {
		t.Fatal(err)
	}
	b, err := audit.OpenBundle(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := sumdb.NewVerifier(b.Key)
	if err != nil {
		t.Fatal(err)
	}
	rules := gateway.NewRulesets(b)
	r := rules.Replayer()
	r.Certify()
	forged := 0
	rep, err := audit.Verify(testContext(t), b, audit.VerifyOptions{Verifier: verifier, Replay: func(rec *audit.Record, it *audit.Item) error {
		if now := bytes.Replace(rec.Data, []byte(`"writ-gate/12"`), []byte(`"`+gateway.Engine+`"`), 1); rec.Kind == audit.KindDecision && !bytes.Equal(now, rec.Data) {
			of := *rec
			of.Data, forged = now, forged+1
			if err := rules.Replayer().Step(t.Context(), &of, it); !errors.Is(err, gateway.ErrReplay) {
				t.Errorf("record %d as one of this engine: %v", rec.N, err)
			}
		}
		if d, err := rules.Decision(t.Context(), rec, it); rec.Kind == audit.KindDecision && (err != nil || d == nil || d.Session != rec.Session) {
			t.Errorf("record %d cannot be shown: %v", rec.N, err)
		}
		return r.Step(t.Context(), rec, it)
	}})
	if err != nil || rep.Problem != nil || r.Replayed != 0 || r.Skipped != 10 || forged != 10 {
		t.Errorf("%v %+v %+v", err, rep, r.Tally)
	}
}

// TestDecisionRecord: whatever in a decision's record is another than the gate says, its data
// and its value, is found by who makes it again.
func TestDecisionRecord(t *testing.T) {
	ctx := testContext(t)
	r, _ := toyRig(t, onMaps(t))
	w := r.connect(ctx, 0)
	passed(t, w.call(ctx, "list_items", `{}`))
	passed(t, w.call(ctx, "delete_item", ` { "id" : "item-17" }`))
	refusal(t, w.call(ctx, "delete_item", `{"id":"item-99"}`), unseen)
	type stored struct {
		rec audit.Record
		it  audit.Item
	}
	var all []stored
	eachRecord(t, r.store, func(rec *audit.Record, it *audit.Item) {
		all = append(all, stored{*rec, *it})
	})
	again := func(change func(*stored)) (found error) {
		p := gateway.NewRulesets(r.store).Replayer()
		for _, s := range all {
			if s.rec.Kind == audit.KindDecision {
				s.rec.Data = bytes.Clone(s.rec.Data)
				s.it.Values = slices.Clone(s.it.Values)
				for i := range s.it.Values {
					s.it.Values[i].Bytes = bytes.Clone(s.it.Values[i].Bytes)
				}
				change(&s)
			}
			if err := p.Step(t.Context(), &s.rec, &s.it); err != nil {
				return err
			}
		}
		return nil
	}
	if err := again(func(*stored) {}); err != nil {
		t.Fatal(err)
	}
	changed := 0
	for n := range all {
		if all[n].rec.Kind != audit.KindDecision {
			continue
		}
		for _, of := range []func(*stored) *[]byte{
			func(s *stored) *[]byte { return &s.rec.Data },
			func(s *stored) *[]byte { return &s.it.Values[0].Bytes },
		} {
			said, _, _ := bytes.Cut(*of(&all[n]), []byte("\n")) // what follows was sent so: nothing else says it
			for at := range said {
				changed++
				var was []byte
				err := again(func(s *stored) {
					if s.rec.N == all[n].rec.N {
						b := of(s)
						(*b)[at] ^= 1
						was = *b
					}
				})
				if err == nil {
					t.Errorf("record %d is taken as %s", all[n].rec.N, was)
				}
			}
		}
		for _, more := range []string{`{"shadow":true,`, `{"own":"` + strings.Repeat("0", 64) + `",`, `{"answers":1,`, `{"bare":true,`, `{"x":1,`} {
			if err := again(func(s *stored) {
				if b := &s.it.Values[0].Bytes; s.rec.N == all[n].rec.N {
					*b = bytes.Replace(*b, []byte("{"), []byte(more), 1)
				}
			}); err == nil {
				t.Errorf("record %d is taken with %s", all[n].rec.N, more)
			}
		}
	}
	if changed < 500 {
		t.Errorf("%d changes", changed)
	}
	if err := again(func(s *stored) {
		s.rec.Data = bytes.Replace(s.rec.Data, []byte(`"accepted"`), []byte(`"rejected"`), 1)
	}); !errors.Is(err, gateway.ErrReplay) {
		t.Error(err)
	}
}

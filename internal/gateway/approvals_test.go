package gateway_test

import (
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/approval"
)

// TestApprovals: a call that only a person can let pass is held while somebody
// watches; his yes is on record, good once, and found again after a restart; where
// nobody watches the call is refused for what it lacks.
func TestApprovals(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	st := onSQLite(t)
	r := newRig(t, st, policy(t, turnPolicy), up.config(true))
	r.opts.Approvals = approval.New(time.Now)
	r.restart()
	secret := r.mint()
	w := overHTTP(ctx, r, true, web{session: secret})
	del := `{"id":"item-4711"}`
	refusal(t, w.call(ctx, "delete_item", del), unseen)

	answer := func(yes bool) {
		leave := r.opts.Approvals.There()
		go func() {
			defer leave()
			for {
				qs, change := r.opts.Approvals.Open()
				if len(qs) > 0 {
					if string(qs[0].Arguments) != del || qs[0].Tool != "delete_item" || len(qs[0].Values) != 1 || qs[0].Values[0].Pointer != "/id" {
						t.Errorf("asked %+v", qs[0])
					}
					if _, err := r.opts.Approvals.Answer(qs[0].ID, approval.Answer{Yes: yes, By: "kim", Label: writ.User}); err != nil {
						t.Error(err)
					}
					return
				}
				<-change
			}
		}()
	}
	answer(true)
	up.reply(`"result":{"content":[]}`)
	passed(t, w.call(ctx, "delete_item", del))
	answer(false)
	refusal(t, w.call(ctx, "delete_item", del), "POLICY_VIOLATION approval.refused \"/id\"")

	// It stands open where the operator says so; the answer counts when it comes,
	// and after a restart.
	r.opts.ApprovalsStand = true
	r.restart()
	w = overHTTP(ctx, r, true, web{session: secret})
	later := `{"id":"item-4712"}`
	refusal(t, w.call(ctx, "delete_item", later), "POLICY_VIOLATION approval.pending \"/id\"")
	qs, _ := r.opts.Approvals.Open()
	if len(qs) != 1 {
		t.Fatalf("open: %+v", qs)
	}
	if _, err := r.opts.Approvals.Answer(qs[0].ID, approval.Answer{Yes: true, By: "kim", Label: writ.User}); err != nil {
		t.Fatal(err)
	}
	r.restart()
	w = overHTTP(ctx, r, true, web{session: secret})
	up.reply(`"result":{"content":[]}`)
	passed(t, w.call(ctx, "delete_item", later))
	refusal(t, w.call(ctx, "delete_item", later), "POLICY_VIOLATION approval.pending \"/id\"")
}

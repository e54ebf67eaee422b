package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/gateway"
)

// TestManyQuestions: that persons have nearly as many questions as there may be is said.
func TestManyQuestions(t *testing.T) {
	q := approval.New(time.Now)
	r := &rig{tb: t, store: onMaps(t)}
	r.opts = gateway.Options{Store: r.store, Policy: policy(t, toyPolicy), Version: "test", Approvals: q, ApprovalsStand: true}
	r.opts.Servers = append(r.opts.Servers, newToy().config(t, true, true))
	r.start()
	t.Cleanup(func() { r.stop() })
	for n := range approval.MaxOpen {
		near := r.gw.Near()
		if want := 100*n >= gateway.NearlyFull*approval.MaxOpen; len(near) > 0 != want || want && (near[0].Percent != n || near[0].WasSaid()) {
			t.Fatalf("%d questions: %+v", n, near)
		}
		q.Ask(t.Context(), approval.Question{Session: fmt.Sprintf("s_%d", n/5), Arguments: []byte(fmt.Sprint(n))}, fmt.Sprint(n), 0, approval.Effects{}, nil)
	}
}

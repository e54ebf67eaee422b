package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/strictjson"
)

// TestWaitsEndWithTheGateway: once a gateway is to end, who waits for a person is told
// that nobody answered yet, and a call that a server has goes on to its outcome.
func TestWaitsEndWithTheGateway(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	r := newRig(t, onMaps(t), policy(t, turnPolicy), up.config(true))
	r.opts.Approvals = approval.New(time.Now)
	var end func()
	r.asking, end = context.WithCancel(ctx)
	defer end()
	r.restart()
	w := overHTTP(ctx, r, true, web{session: r.mint()})
	defer r.opts.Approvals.There()()
	held, reads := make(chan answer), make(chan answer)
	go func() { held <- w.call(ctx, "delete_item", `{"id":"item-4711"}`) }()
	for qs, change := r.opts.Approvals.Open(); len(qs) == 0; qs, change = r.opts.Approvals.Open() {
		<-change
	}
	there, goOn := make(chan struct{}), make(chan struct{})
	up.mu.Lock()
	up.during = func(received, func(string)) { close(there); <-goOn }
	up.mu.Unlock()
	up.reply(itemList)
	go func() { reads <- w.call(ctx, "list_items", `{}`) }()
	<-there
	end()
	refusal(t, <-held, "POLICY_VIOLATION approval.pending \"/id\"")
	close(goOn)
	passed(t, <-reads)
}

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

	// A call that passes by what was typed meanwhile leaves no question behind, which could
	// let it pass another time.
	if qs, _ = r.opts.Approvals.Open(); len(qs) != 1 {
		t.Fatalf("open: %+v", qs)
	}
	s, err := r.gw.FindSession(ctx, "loopback", secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = r.gw.Turn(ctx, s, "delete item-4712"); err != nil {
		t.Fatal(err)
	}
	up.reply(`"result":{"content":[]}`)
	passed(t, w.call(ctx, "delete_item", later))
	if left, _ := r.opts.Approvals.Open(); len(left) != 0 {
		t.Errorf("open: %+v", left)
	}
	if _, err := r.opts.Approvals.Answer(qs[0].ID, approval.Answer{Yes: true, By: "kim", Label: writ.User}); err == nil {
		t.Error("what nobody asks is answered")
	}
}

// TestYesCoversWhatWasShown: a call against which something else speaks by now than what
// a person was shown is another question, and the old one ends.
func TestYesCoversWhatWasShown(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	r := newRig(t, onSQLite(t), policy(t, strings.Replace(turnPolicy, "authoritative: true }", "authoritative: true }, { at: /notes/*, label: external, type: id }", 1)), up.config(true))
	r.opts.Approvals, r.opts.ApprovalsStand = approval.New(time.Now), true
	r.restart()
	secret := r.mint()
	w := overHTTP(ctx, r, true, web{session: secret})
	del, pending := `{"id":"item-4711"}`, "POLICY_VIOLATION approval.pending \"/id\""
	yes := approval.Answer{Yes: true, By: "kim", Label: writ.User}
	only := func() approval.Question {
		t.Helper()
		qs, _ := r.opts.Approvals.Open()
		if len(qs) != 1 || len(qs[0].Values) != 1 {
			t.Fatalf("open: %+v", qs)
		}
		return qs[0]
	}
	refusal(t, w.call(ctx, "delete_item", del), pending)
	first := only()
	said := func(answered bool) {
		t.Helper()
		up.reply(`"result":{"content":[],"structuredContent":{"items":[],"notes":["item-4711"]}}`)
		passed(t, w.call(ctx, "list_items", `{}`))
		if _, err := r.opts.Approvals.Answer(first.ID, yes); answered != (err == nil) {
			t.Fatal(err)
		}
	}
	// Answered, and what was read before the call is made again he was not asked about.
	said(true)
	refusal(t, w.call(ctx, "delete_item", del), pending)
	second := only()
	if second.ID == first.ID || second.Values[0].Reason == first.Values[0].Reason {
		t.Fatalf("%+v, then %+v", first, second)
	}
	said(false)
	if _, err := r.opts.Approvals.Answer(second.ID, yes); err != nil {
		t.Fatal(err)
	}
	// It is good after a restart, and once.
	r.restart()
	w = overHTTP(ctx, r, true, web{session: secret})
	up.reply(`"result":{"content":[]}`)
	passed(t, w.call(ctx, "delete_item", del))
	refusal(t, w.call(ctx, "delete_item", del), pending)
}

// TestOneYesOfTwo: of two same calls that are held at once one passes by a yes, and the other
// one has a question of its own.
func TestOneYesOfTwo(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	r := newRig(t, onSQLite(t), policy(t, turnPolicy), up.config(true))
	r.opts.Approvals = approval.New(time.Now)
	r.restart()
	w := overHTTP(ctx, r, true, web{session: r.mint()})
	defer r.opts.Approvals.There()()
	next := func(not string) string {
		for {
			qs, change := r.opts.Approvals.Open()
			if len(qs) == 1 && qs[0].ID != not {
				return qs[0].ID
			}
			select {
			case <-change:
			case <-ctx.Done():
				t.Fatal("nobody is asked")
			}
		}
	}
	say := func(id string, yes bool) {
		if _, err := r.opts.Approvals.Answer(id, approval.Answer{Yes: yes, By: "kim", Label: writ.User}); err != nil {
			t.Error(err)
		}
	}
	up.reply(`"result":{"content":[]}`)
	ends := make(chan string, 2)
	for range 2 {
		go func() { ends <- fmt.Sprintf("%s", w.call(ctx, "delete_item", `{"id":"item-4711"}`)) }()
	}
	first := next("")
	say(first, true)
	say(next(first), false)
	one, other := <-ends, <-ends
	if strings.Contains(one, "approval.refused") == strings.Contains(other, "approval.refused") || strings.Contains(one+other, "provenance.unseen") {
		t.Errorf("%s, and %s", one, other)
	}
}

// TestClosedWhileItWaits: who answers a question of a session that was closed hears that, and
// the question ends where the gateway hears of it.
func TestClosedWhileItWaits(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	r := newRig(t, onSQLite(t), policy(t, turnPolicy), up.config(true))
	r.opts.Approvals, r.opts.ApprovalsStand = approval.New(time.Now), true
	r.restart()
	for _, told := range []bool{false, true} {
		w := overHTTP(ctx, r, true, web{session: r.mint()})
		refusal(t, w.call(ctx, "delete_item", `{"id":"item-4711"}`), "POLICY_VIOLATION approval.pending \"/id\"")
		qs, _ := r.opts.Approvals.Open()
		if len(qs) != 1 {
			t.Fatalf("open: %+v", qs)
		}
		r.gw.Over(ctx, qs[0].Session) // it is not closed
		if err := gateway.EndSession(ctx, r.store, qs[0].Session, time.Now()); err != nil {
			t.Fatal(err)
		}
		want := http.StatusGone
		if told {
			r.gw.Over(ctx, qs[0].Session)
			want = http.StatusNotFound
		}
		status, said := r.opts.Approvals.Reply(qs[0].ID, approval.Answer{Yes: true, By: "kim", Label: writ.User})
		if status != want || !told && said.Error != "the session was closed; nothing was done" {
			t.Errorf("told %v: %d %+v", told, status, said)
		}
	}
}

// TestWaitingClientLeaves: what is put on record of a call whose client left while it waited
// is that a person was asked, also where it names what is looked for on the disk.
func TestWaitingClientLeaves(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	r := newRig(t, onSQLite(t), policy(t, turnPolicy), up.config(true))
	r.opts.Approvals, r.opts.OwnPaths = approval.New(time.Now), []string{t.TempDir()}
	r.restart()
	secret := r.mint()
	defer r.opts.Approvals.There()()
	hurried, leave := context.WithCancel(ctx)
	go func() {
		for {
			qs, change := r.opts.Approvals.Open()
			if len(qs) > 0 {
				leave()
				return
			}
			<-change
		}
	}()
	s, err := r.gw.FindSession(ctx, "loopback", secret)
	if err != nil {
		t.Fatal(err)
	}
	r.gw.Handle(hurried, &downstream.Request{Method: "tools/call", Params: strictjson.Of([]byte(`{"name":"delete_item","arguments":{"id":"item-4711"}}`)),
		Era: downstream.Legacy, Version: "2025-11-25", Session: s, Principal: "loopback", Peer: gateway.NoPeer})
	reason := ""
	for it, err := range r.store.Read(ctx, s.PublicID(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		rec, err := audit.ParseRecord(it.Leaf)
		if err == nil && rec.Kind == audit.KindDecision {
			text, _ := strictjson.Text(strictjson.Get(rec.Data, "reason"))
			reason = text
		}
	}
	if reason != string(writ.ApprovalPending) {
		t.Errorf("on record: %q", reason)
	}
}

// TestAskedAboutWhatThereIs: what another process put on record of the session is known
// before a person is asked, and what comes to vouch while he looks takes his no from
// nobody.
func TestAskedAboutWhatThereIs(t *testing.T) {
	ctx := testContext(t)
	st := onSQLite(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	r := newRig(t, st, policy(t, turnPolicy), up.config(true))
	r.opts.Approvals = approval.New(time.Now)
	r.restart()
	beside := newScripted(t, "toy", true)
	beside.list("tools/list", itemTools)
	other := newRig(t, st, policy(t, turnPolicy), beside.config(true))
	secret := r.mint()
	say := func(text string) {
		t.Helper()
		s, err := other.gw.FindSession(ctx, "loopback", secret)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = other.gw.Turn(ctx, s, text); err != nil {
			t.Fatal(err)
		}
	}
	w := overHTTP(ctx, r, true, web{session: secret})
	up.reply(`"result":{"content":[],"structuredContent":{"items":[]}}`)
	passed(t, w.call(ctx, "list_items", `{}`))
	defer r.opts.Approvals.There()()
	next := make(chan approval.Question, 1)
	watch, leave := context.WithCancel(ctx)
	defer leave()
	go func() {
		for {
			qs, change := r.opts.Approvals.Open()
			if len(qs) > 0 {
				next <- qs[0]
				return
			}
			select {
			case <-change:
			case <-watch.Done():
				return
			}
		}
	}()

	say("delete item-4711")
	up.reply(`"result":{"content":[]}`)
	passed(t, w.call(ctx, "delete_item", `{"id":"item-4711"}`))
	select {
	case q := <-next:
		t.Fatalf("asked about what the user typed: %+v", q)
	default:
	}

	ends := make(chan answer, 1)
	go func() { ends <- w.call(ctx, "delete_item", `{"id":"item-4712"}`) }()
	q := <-next
	say("delete item-4712")
	if _, err := r.opts.Approvals.Answer(q.ID, approval.Answer{By: "kim", Label: writ.User}); err != nil {
		t.Fatal(err)
	}
	refusal(t, <-ends, "POLICY_VIOLATION approval.refused \"\"")
	// The no came after the user's words. Once he orders it anew it is his call.
	refusal(t, w.call(ctx, "delete_item", `{"id":"item-4712"}`), "POLICY_VIOLATION approval.refused \"\"")
	say("do delete item-4712")
	up.reply(`"result":{"content":[]}`)
	passed(t, w.call(ctx, "delete_item", `{"id":"item-4712"}`))
}

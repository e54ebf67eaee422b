package gateway_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/mcp/upstream"
)

// historyPolicy is a contract with all that a call can rest on: what a tool said, a code that
// counts once, and a person's yes.
const historyPolicy = `
pins: optional
collections: { item: { closed: true }, code: { closed: true } }
tools:
  desk/reveal: { effect: read, outputs: [{ at: /id, label: system, collection: item, authoritative: true }] }
  desk/issue: { effect: read, outputs: [{ at: /code, label: system, type: id, collection: code, authoritative: true, one_shot: true, lifetime: 10m }] }
  desk/mark: { effect: write, idempotent: true, args: { /id: { role: selector, collection: item, type: id, from: [output] } } }
  desk/redeem: { effect: write, idempotent: true, args: { /code: { role: selector, type: id, collection: code } } }
  desk/close: { effect: write, idempotent: true, args: { /id: { role: selector, collection: item, type: id, from: [user, output] } } }
`

// A historyInput is one operation on one thing that a call can rest on.
type historyInput struct {
	kind  string // value, code or yes
	key   int
	grant bool // it comes to be; else something rests on it
}

func (in historyInput) name() string { return fmt.Sprint(in.kind, in.key) }

// historyModel is what is promised, of each thing by itself: a value counts once it is committed,
// for as often as is asked; a code and a yes count for one act. What was granted and not
// used is the state; an operation's output is whether it passed, nil where it was not judged
// at all.
var historyModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
		of := map[string]int{}
		for _, op := range all {
			name := op.Input.(historyInput).name()
			at, ok := of[name]
			if !ok {
				at = len(parts)
				of[name], parts = at, append(parts, nil)
			}
			parts[at] = append(parts[at], op)
		}
		return parts
	},
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		n, in := state.(int), input.(historyInput)
		switch passed, judged := output.(bool); {
		case !judged:
			return true, n
		case in.grant && !passed:
			return true, n
		case in.grant: // two yeses before an act are one
			return true, 1
		case passed != (n > 0):
			return false, n
		case passed && in.kind != "value":
			return true, 0
		}
		return true, n
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %v", input, output) },
}

// idOf is what a server calls a thing: nothing in a request leads to it.
func idOf(kind string, key int) string {
	sum := sha256.Sum256(fmt.Append(nil, kind, key, "desk"))
	return kind + "-" + hex.EncodeToString(sum[:6])
}

// desk is a server of things, and what was done with each.
type desk struct {
	mu     sync.Mutex
	done   map[string]int
	issued int
}

func (d *desk) config(t *testing.T) upstream.Config {
	type numbered struct {
		N int `json:"n"`
	}
	type coded struct {
		Code string `json:"code"`
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "reveal"}, func(_ context.Context, _ *mcp.CallToolRequest, in numbered) (*mcp.CallToolResult, item, error) {
		return nil, item{idOf("value", in.N)}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "issue"}, func(context.Context, *mcp.CallToolRequest, noInput) (*mcp.CallToolResult, coded, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.issued++
		return nil, coded{idOf("code", d.issued-1)}, nil
	})
	does := func(id string) (*mcp.CallToolResult, change, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.done[id]++
		return nil, change{"it"}, nil
	}
	for _, name := range []string{"mark", "close"} {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(_ context.Context, _ *mcp.CallToolRequest, in item) (*mcp.CallToolResult, change, error) {
			return does(in.ID)
		})
	}
	mcp.AddTool(s, &mcp.Tool{Name: "redeem"}, func(_ context.Context, _ *mcp.CallToolRequest, in coded) (*mcp.CallToolResult, change, error) {
		return does(in.Code)
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	ts := httptest.NewServer(h)
	t.Cleanup(func() { ts.CloseClientConnections(); ts.Close() })
	return upstream.Config{Name: "desk", Era: upstream.Modern, URL: ts.URL}
}

// history is what clients saw, in real time.
type history struct {
	begun time.Time
	mu    sync.Mutex
	ops   []porcupine.Operation
}

// do notes an operation and its output. f may learn only by it which thing it is of.
func (h *history) do(client int, kind string, key int, grant bool, f func(key *int) any) {
	call := time.Since(h.begun).Nanoseconds()
	out := f(&key)
	end := time.Since(h.begun).Nanoseconds()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: historyInput{kind, key, grant}, Call: call, Output: out, Return: end})
}

// legal holds a history to the model; one that cannot be judged in time is not legal.
func legal(t *testing.T, ops []porcupine.Operation) bool {
	t.Helper()
	got := porcupine.CheckOperationsTimeout(historyModel, ops, time.Minute)
	if got == porcupine.Unknown {
		t.Error("the history could not be judged")
	}
	return got == porcupine.Ok
}

// TestHistories (P11, R19, R23, L04): clients of two gateways over one state directory share a session,
// and what they see is what one gateway would have shown, one call after the other: a
// value counts once it is committed and not before, a code and a person's yes for one act,
// whoever comes to make it. The control: one answer more is no history of that.
func TestHistories(t *testing.T) {
	const clients, calls, keys = 2, 8, 3 // of each gateway and round, and of each kind
	rounds := 6
	if os.Getenv("WRIT_LONG") == "1" {
		rounds = 200
	}
	dir := t.TempDir()
	d := &desk{done: map[string]int{}}
	ctx := testContext(t)
	var rigs []*rig
	for range 2 {
		r := newRig(t, openSQLite(t, dir), policy(t, historyPolicy), d.config(t))
		r.opts.Approvals, r.opts.ApprovalsStand = approval.New(time.Now), true
		r.restart()
		rigs = append(rigs, r)
	}
	h := &history{begun: time.Now()}
	keyOf := map[string]int{} // by what it is called
	for key := range rounds * max(keys, 2*clients*calls) {
		keyOf[idOf("code", key)], keyOf[idOf("yes", key)] = key, key
	}
	working, stop := context.WithCancel(ctx)
	var people sync.WaitGroup
	for i, r := range rigs { // a person at each gateway
		people.Go(func() {
			for {
				qs, change := r.opts.Approvals.Open()
				for _, q := range qs {
					if q.Tool != "close" {
						continue
					}
					h.do(100+i, "yes", keyOf[text(q.Arguments, "id")], true, func(*int) any {
						_, err := r.opts.Approvals.Answer(q.ID, approval.Answer{Yes: true, By: "kim", Label: writ.User})
						return err == nil
					})
				}
				select {
				case <-change:
				case <-working.Done():
					return
				}
			}
		})
	}
	for round := range rounds { // a session each: who guesses too often is shut out
		secret := rigs[0].mint()
		d.mu.Lock()
		first := d.issued
		d.mu.Unlock()
		var all sync.WaitGroup
		for client := range 2 * clients {
			w := overHTTP(ctx, rigs[client%2], true, web{session: secret})
			rng := rand.New(rand.NewPCG(uint64(round), uint64(client)))
			all.Go(func() {
				for range calls {
					kind, key, grant := []string{"value", "code", "yes"}[rng.IntN(3)], keys*round+rng.IntN(keys), rng.IntN(2) == 0
					tool, args := map[string]string{"value": "mark", "yes": "close", "code": "redeem"}[kind], fmt.Sprintf(`{"id":%q}`, idOf(kind, key))
					switch {
					case kind == "value" && grant:
						tool, args = "reveal", fmt.Sprintf(`{"n":%d}`, key)
					case kind == "code" && grant:
						tool, args = "issue", "{}"
					case kind == "code":
						key = first + rng.IntN(keys)
						args = fmt.Sprintf(`{"code":%q}`, idOf(kind, key))
					}
					h.do(client, kind, key, grant && kind != "yes", func(key *int) any {
						a := w.call(ctx, tool, args)
						why := refusedFor(a)
						switch {
						case tool == "issue" && why == "" && a.err == nil:
							*key = keyOf[text(get(a.result, "structuredContent"), "code")]
						case why == notRecorded, strings.Contains(why, "policy.pointer_closed"):
							return nil // others were first, again and again; and what nobody looked up
						case a.err != nil || tool == "reveal" && why != "":
							t.Errorf("%s %s: %s %s", tool, args, a.result, a.err)
						}
						return why == ""
					})
				}
			})
		}
		all.Wait()
	}
	stop()
	people.Wait()
	if !legal(t, h.ops) {
		slices.SortFunc(h.ops, func(a, b porcupine.Operation) int {
			return cmp.Or(strings.Compare(a.Input.(historyInput).name(), b.Input.(historyInput).name()), cmp.Compare(a.Call, b.Call))
		})
		for _, op := range h.ops {
			t.Logf("%d: %8d-%8d %s", op.ClientId, op.Call/1000, op.Return/1000, historyModel.DescribeOperation(op.Input, op.Output))
		}
		t.Error("no order of these calls has these answers")
	}
	passed := map[string]int{}
	for _, op := range h.ops {
		in := op.Input.(historyInput)
		passed[fmt.Sprintf("%s %v %v", in.kind, in.grant, op.Output)]++
		if op.Output == true && !in.grant {
			d.done[idOf(in.kind, in.key)]--
		}
	}
	for _, kind := range []string{"value", "code", "yes"} {
		for _, of := range []string{kind + " true true", kind + " false true", kind + " false false"} {
			if passed[of] == 0 {
				t.Errorf("nothing of %s: %v", of, passed)
			}
		}
	}
	for id, n := range d.done {
		if n != 0 {
			t.Errorf("%s: the server was asked %d times more often than calls passed", id, n)
		}
	}
	t.Logf("%d operations, %v", len(h.ops), passed)

	// The control: more of them count than there were.
	end := time.Since(h.begun).Nanoseconds()
	for _, kind := range []string{"code", "yes"} {
		more := slices.Clone(h.ops)
		for i := range int64(passed[kind+" true true"] + 1) {
			more = append(more, porcupine.Operation{ClientId: 200, Input: historyInput{kind, 0, false}, Call: end + 2*i, Output: true, Return: end + 2*i + 1})
		}
		if legal(t, more) {
			t.Errorf("a %s counts twice, and that is legal", kind)
		}
	}
	early := porcupine.Operation{ClientId: 200, Input: historyInput{"value", h.firstValue(), false}, Call: -2, Output: true, Return: -1}
	if legal(t, append(slices.Clone(h.ops), early)) {
		t.Error("a value counts before it was read, and that is legal")
	}
}

// firstValue is the key of a value that was read.
func (h *history) firstValue() int {
	for _, op := range h.ops {
		if in := op.Input.(historyInput); in.kind == "value" && in.grant {
			return in.key
		}
	}
	return 0
}

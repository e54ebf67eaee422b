package gateway_test

import (
	"context"
	"flag"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/internal/strictjson"
)

// shelf is a scripted server with a list that the test sets, and a book of what
// was deleted.
type shelf struct {
	mu      sync.Mutex
	items   []string
	deleted []string
}

// TestAgainstModel runs random histories of reads, acts, restarts and failing
// appends, in several sessions of two gateways over one store, against the
// plainest model there is: a session knows the ids of the lists it was given;
// an act passes if its id is one of them. Each log is verified in the end, and
// each decision made again.
func TestAgainstModel(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		f.Value.Set("25") // each starts gateways; -rapid.checks asks for more
	}
	book := &shelf{}
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	up.during = func(got received, _ func(string)) {
		book.mu.Lock()
		defer book.mu.Unlock()
		switch text(got.params, "name") {
		case "list_items":
			var ids []string
			for _, id := range book.items {
				ids = append(ids, `{"id":"`+id+`"}`)
			}
			up.answerWith(`"result":{"content":[],"structuredContent":{"items":[` + strings.Join(ids, ",") + `]}}`)
		case "delete_item":
			book.deleted = append(book.deleted, text(got.params, "arguments", "id"))
			up.answerWith(`"result":{"content":[]}`)
		}
	}
	config := up.config(true)
	p := policy(t, itemPolicy)

	rapid.Check(t, func(rt *rapid.T) {
		ctx := t.Context()
		signer, _ := storetest.Key()
		st := &brokenStore{Store: mapstore.New(signer)}
		var gws [2]*gateway.Gateway
		start := func(i int) {
			gw, err := gateway.New(gateway.Options{Store: st, Policy: p, Servers: []upstream.Config{config}, Version: "test"})
			if err != nil {
				rt.Fatal(err)
			}
			if err := gw.Start(context.Background()); err != nil {
				rt.Fatal(err)
			}
			gws[i] = gw
		}
		for i := range gws {
			start(i)
		}
		defer func() {
			for _, gw := range gws {
				gw.Close()
			}
			verify(t, st)
			st.Close()
		}()
		if err := gws[0].Ready(ctx); err != nil {
			rt.Fatal(err)
		}
		secrets, knows := make([]string, 3), make([]map[string]bool, 3)
		for i := range secrets {
			var err error
			if secrets[i], _, err = createSession(ctx, gws[0], "model"); err != nil {
				rt.Fatal(err)
			}
			knows[i] = map[string]bool{}
		}
		refusals := make([]int, 3) // since the last new evidence, for R24
		ids := []string{"item-10", "item-11", "item-12", "item-13", "item-14"}
		broken := false
		call := func(i, gw int, tool, args string) answer {
			s, err := gws[gw].FindSession(ctx, "model", secrets[i])
			if err != nil {
				rt.Fatal("the session is gone")
			}
			rep := gws[gw].Handle(ctx, &downstream.Request{
				Method: "tools/call", Params: strictjson.Of([]byte(callParams(tool, args))), ID: []byte("1"), Era: downstream.Legacy,
				Version: "2025-11-25", Principal: "model", Session: s, Peer: gateway.NoPeer,
			})
			if rep.Err != nil {
				return answer{err: rep.Err.Encode()}
			}
			return answer{result: rep.Result}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"list": func(rt *rapid.T) {
				i, gw := rapid.IntRange(0, 2).Draw(rt, "session"), rapid.IntRange(0, 1).Draw(rt, "gateway")
				shown := rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 0, 3, rapid.ID[string]).Draw(rt, "shown")
				book.mu.Lock()
				book.items = shown
				book.mu.Unlock()
				a := call(i, gw, "list_items", `{}`)
				if broken {
					if refusedFor(a) != notRecorded {
						rt.Fatalf("unrecorded, and answered %s %s", a.result, a.err)
					}
					return
				}
				if a.err != nil || refusedFor(a) != "" {
					rt.Fatalf("the read failed: %s %s", a.result, a.err)
				}
				for _, id := range shown {
					knows[i][id] = true
				}
				if len(shown) > 0 {
					refusals[i] = 0
				}
			},
			"delete": func(rt *rapid.T) {
				i, gw := rapid.IntRange(0, 2).Draw(rt, "session"), rapid.IntRange(0, 1).Draw(rt, "gateway")
				id := rapid.SampledFrom(ids).Draw(rt, "id")
				if !knows[i][id] && refusals[i] == 4 {
					return // the next refusal would close the pointer (R24), which restart.txtar shows
				}
				a := call(i, gw, "delete_item", `{"id":"`+id+`"}`)
				book.mu.Lock()
				deleted := book.deleted
				book.deleted = nil
				book.mu.Unlock()
				want, passes := "", []string{id}
				switch {
				case broken:
					want, passes = notRecorded, nil
				case !knows[i][id]:
					want, passes = unseen, nil
					refusals[i]++
				}
				if got := refusedFor(a); got != want || a.err != nil || !slices.Equal(deleted, passes) {
					rt.Fatalf("session %d knows %v, delete %s: %q, want %q; the server deleted %q (%s)", i, knows[i], id, got, want, deleted, a.err)
				}
			},
			"break": func(*rapid.T) {
				broken = true
				st.failWhen(func(string, []audit.Entry) bool { return true })
			},
			"mend": func(*rapid.T) {
				broken = false
				st.failWhen(nil)
			},
			"restart": func(rt *rapid.T) {
				i := rapid.IntRange(0, 1).Draw(rt, "gateway")
				if err := gws[i].Close(); err != nil {
					rt.Fatal(err)
				}
				start(i)
			},
		})
	})
}

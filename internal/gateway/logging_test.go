package gateway_test

import (
	"strings"
	"testing"
)

// TestLogging: a client's level reaches the servers, in the form of their wire,
// and a server's log messages inside a call reach the client byte for byte, on
// every pairing of wires and transports. They vouch for nothing (P23).
func TestLogging(t *testing.T) {
	for k := range kinds {
		for _, modern := range []bool{false, true} {
			for _, http := range []bool{false, true} {
				name := kinds[k].name + " to " + pick(modern, "modern", "legacy") + "-" + pick(http, "http", "stdio")
				t.Run(name, func(t *testing.T) {
					ctx := testContext(t)
					up := newScripted(t, "toy", modern)
					up.list("tools/list", itemTools)
					r := newRig(t, onMaps(t), policy(t, itemPolicy), up.config(http))
					w := r.connect(ctx, k)
					const level = `"io.modelcontextprotocol/logLevel":"debug"`
					if !kinds[k].modern {
						up.reply(`"result":{}`)
						if a := w.request(ctx, "logging/setLevel", `{"level":"debug"}`); a.err != nil {
							t.Errorf("setLevel: %s", a.err)
						}
						got := up.take()
						if !modern && (len(got) != 1 || got[0].method != "logging/setLevel" || text(got[0].params, "level") != "debug") {
							t.Errorf("the server was sent %v", got)
						}
						if a := w.request(ctx, "logging/setLevel", `{"level":"loud"}`); text(a.err, "code") != "-32602" {
							t.Errorf("a level nobody knows: %s %s", a.result, a.err)
						}
						if got := up.take(); len(got) != 0 {
							t.Errorf("the server was sent %s", got[0].params)
						}
					}
					const said = `{"level":"info","logger":"x","data":{"id":"item-98","n":9007199254740993},"new":1.50}`
					up.during = func(_ received, tell func(string)) {
						tell(`{"jsonrpc":"2.0","method":"notifications/message","params":` + said + `}`)
					}
					up.reply(itemList)
					a := w.request(ctx, "tools/call", `{"name":"list_items","arguments":{},"_meta":{`+level+`}}`)
					passed(t, a)
					got := up.take()
					if modern && kinds[k].modern && !strings.Contains(string(get(got[0].params, "_meta")), level) {
						t.Errorf("the level did not reach the server: %s", got[0].params)
					}
					// On stdio a message names no call; between the wires nobody asked.
					if http && kinds[k].modern == modern {
						if n := w.await(ctx, "notifications/message"); string(n.params) != said {
							t.Errorf("the message came as %s", n.params)
						}
					}
					refusal(t, w.call(ctx, "delete_item", `{"id":"item-98"}`), unseen)
				})
			}
		}
	}
}

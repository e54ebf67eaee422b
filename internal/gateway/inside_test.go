package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/provenance"
)

// notebook is the least a server within Writ can be: what was written is what
// the next reading returns.
type notebook struct {
	mu       sync.Mutex
	callers  []gateway.Caller
	written  []string
	answer   string // structuredContent of memory_search, the text of recall
	recalled []provenance.Recalled
	err      error
}

func (n *notebook) Definitions() [][]byte {
	return [][]byte{
		[]byte(`{"name":"record_observation","inputSchema":{"type":"object","properties":{"payload":{"type":"object","properties":{"raw_payload":{"type":"string"},"observation_id":{"type":"string"}}}}},"outputSchema":{"type":"object"}}`),
		[]byte(`{"name":"memory_search","inputSchema":{"type":"object","properties":{"query":{"type":"string"}}},"outputSchema":{"type":"object","required":["items"]}}`),
		[]byte(`{"name":"recall","inputSchema":{"type":"object","properties":{"query":{"type":"string"}}}}`),
		[]byte(`{"name":"memory_dump","inputSchema":{"type":"object"}}`),
	}
}

// Redact implements gateway.Inside: one secret, written as it is.
func (n *notebook) Redact(value []byte) []byte {
	return []byte(strings.ReplaceAll(string(value), "s3cr3t-4711", "[redacted]"))
}

func (n *notebook) Call(_ context.Context, by gateway.Caller, tool string, arguments []byte) (gateway.Answer, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.callers = append(n.callers, by)
	if n.err != nil {
		return gateway.Answer{}, n.err
	}
	if tool == "memory_search" {
		return gateway.Answer{Result: []byte(`{"content":[{"type":"text","text":"item-9999"}],"structuredContent":` + n.answer + `}`), Recalled: n.recalled}, nil
	}
	if tool == "recall" {
		return gateway.Answer{Result: []byte(`{"content":[{"type":"text","text":` + string(strictjson.Quote(n.answer)) + `}]}`), Recalled: n.recalled}, nil
	}
	n.written = append(n.written, string(arguments))
	return gateway.Answer{Result: []byte(`{"content":[],"structuredContent":{"status":"accepted","id":"item-8888"}}`)}, nil
}

const insidePolicy = `
pins: optional
collections: { item: { closed: true } }
tools:
  toy/delete_item: { effect: write, args: { /id: { role: selector, collection: item, type: id, from: [output] } } }
`

// TestInside (R35, R22): the server within Writ is behind the same door. A
// proposal needs a session and a schema, no provenance; nothing of it vouches.
// Of what is recalled a leaf vouches at the label it was stored with, all else
// is a model's; in the next session nothing of it is left. An answer in its text
// alone is worth what structured content is.
func TestInside(t *testing.T) {
	ctx := testContext(t)
	for _, c := range []struct{ profile, reads string }{{"standard", "memory_search"}, {"standard", "recall"}, {"strict", "memory_search"}, {"strict", "recall"}} {
		profile := c.profile
		t.Run(profile+" "+c.reads, func(t *testing.T) {
			up := newScripted(t, "toy", true)
			up.list("tools/list", itemTools)
			r := newRig(t, onSQLite(t), policy(t, "profile: "+profile+insidePolicy), up.config(true))
			n := &notebook{}
			r.opts.Inside = n
			r.restart()
			secret := r.mint()
			w := overHTTP(ctx, r, true, web{session: secret})

			passed(t, w.call(ctx, "record_observation", "{\"payload\":{\"observation_id\":\"o1\",\"raw_payload\":\"the item is item-4711\\nand \u202enot\"}}"))
			if len(n.written) != 1 || !strings.Contains(n.written[0], "item-4711") {
				t.Fatalf("written: %q", n.written)
			}
			by := n.callers[0]
			s, _ := r.gw.FindSession(ctx, "loopback", secret)
			if by.Session != s.PublicID() || by.Principal != "loopback" {
				t.Errorf("told of the call: %+v", by)
			}
			// The payload of a proposal is the memory's to judge, that of a question is
			// the gate's. A tool without a contract is refused.
			if got := refusedFor(w.call(ctx, "memory_search", `{"query":"x","limit":3}`)); !strings.Contains(got, "schema.unknown_field") {
				t.Errorf("an unknown field: %q", got)
			}
			if got := w.call(ctx, "memory_dump", `{}`); got.err == nil && refusedFor(got) == "" {
				t.Error("a tool without a contract was called")
			}
			if len(n.written) != 1 {
				t.Errorf("written: %q", n.written)
			}
			for _, id := range []string{"item-4711", "item-8888"} { // what it said, and what it was answered
				if got := refusedFor(w.call(ctx, "delete_item", `{"id":"`+id+`"}`)); !strings.HasPrefix(got, "MISSING_PROVENANCE") {
					t.Errorf("%s: %q", id, got)
				}
			}

			n.answer = `{"items":[{"text":"item-4711 is broken","id":"item-4711"},{"id":"item-47"},{"id":"item-48"},{"text":"{\"id\":\"item-46\"}"}]}`
			n.recalled = []provenance.Recalled{
				{Pointer: "/structuredContent/items/0/id", Label: writ.System, Type: provenance.ID, Collection: "item", From: "s_before/ev3"},
				{Pointer: "/structuredContent/items/1/id", Label: writ.External, Type: provenance.ID, Collection: "item", From: "s_before/ev4"},
				{Pointer: "/structuredContent/items/9/id", Label: writ.Operator},
				{Pointer: "/structuredContent/items/3/text", Label: writ.System, From: "s_before/ev5"},
			}
			if c.reads == "recall" {
				for i := range n.recalled {
					k := &n.recalled[i]
					k.Pointer, k.Inner = "/content/0/text", strings.TrimPrefix(k.Pointer, "/structuredContent")
				}
			}
			passed(t, w.call(ctx, c.reads, `{"query":"item-4711"}`))
			reopen := func() {
				if err := r.gw.Reopen(ctx, s); err != nil { // what was asked before were guesses (R24)
					t.Fatal(err)
				}
			}
			reopen()
			for _, id := range []string{"item-46", "item-47", "item-48", "item-9999"} {
				if got := refusedFor(w.call(ctx, "delete_item", `{"id":"`+id+`"}`)); !strings.Contains(got, "provenance.") {
					t.Errorf("%s: %q", id, got)
				}
			}
			reopen()
			del := w.call
			for range 2 {
				if profile == "strict" {
					if got := refusedFor(del(ctx, "delete_item", `{"id":"item-4711"}`)); !strings.Contains(got, "provenance.") {
						t.Errorf("recalled under profile strict: %q", got)
					}
				} else {
					up.reply(`"result":{"content":[]}`)
					passed(t, del(ctx, "delete_item", `{"id":"item-4711"}`))
				}
				r.restart() // what was recalled is on record
				del = overHTTP(ctx, r, true, web{session: secret}).call
			}
			refusal(t, overHTTP(ctx, r, true, web{session: r.mint()}).call(ctx, "delete_item", `{"id":"item-4711"}`), unseen)
		})
	}
}

// TestNotedIsNoEcho: what an agent noted reaches no server, so a server that names it later
// repeats nothing; what was sent to a server is no more its own than before.
func TestNotedIsNoEcho(t *testing.T) {
	const note = `{"payload":{"observation_id":"o1","raw_payload":"item-4711"}}`
	ctx := testContext(t)
	for _, c := range []struct {
		tool, arguments, want string
	}{
		{"record_observation", note, ""},
		{"record_observation", `{"payload":{"observation_id":"o1","raw_payload":"The crate, item-4711, is broken."}}`, ""},
		{"find_item", `{"q":"item-4711"}`, "provenance.reflected"},
	} {
		up := newScripted(t, "toy", true)
		up.list("tools/list", `{"tools":[{"name":"list_items","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},{"name":"find_item","inputSchema":{"type":"object","properties":{"q":{"type":"string"}}}},`+
			`{"name":"delete_item","inputSchema":{"type":"object","properties":{"id":{"type":"string"}}}}]}`)
		r := newRig(t, onSQLite(t), policy(t, insidePolicy+"  toy/list_items: { effect: read, outputs: [ { at: /ids/*, label: system, type: id, collection: item } ] }\n  toy/find_item: { effect: read }\n"), up.config(true))
		r.opts.Inside = &notebook{}
		r.restart()
		w := overHTTP(ctx, r, true, web{session: r.mint()})
		up.answerWith(`"result":{"content":[]}`)
		passed(t, w.call(ctx, c.tool, c.arguments))
		up.answerWith(`"result":{"content":[],"structuredContent":{"ids":["item-4711"]}}`)
		passed(t, w.call(ctx, "list_items", `{}`))
		if got := refusedFor(w.call(ctx, "delete_item", `{"id":"item-4711"}`)); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %q", c.tool, c.arguments, got)
		}
	}
}

// TestInsideFails: an error of the memory leaves an unknown outcome on record,
// and an answer its own schema refuses vouches for nothing.
func TestInsideFails(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	r := newRig(t, onSQLite(t), policy(t, insidePolicy), up.config(true))
	n := &notebook{err: errors.New("the disk is full")}
	r.opts.Inside = n
	r.restart()
	w := overHTTP(ctx, r, true, web{session: r.mint()})
	if got := w.call(ctx, "record_observation", `{"payload":{}}`); got.err == nil || strings.Contains(string(got.err), "disk") {
		t.Errorf("an error of the memory: %+v", got)
	}
	n.err, n.answer = nil, `{"other":"item-4711"}`
	n.recalled = []provenance.Recalled{{Pointer: "/structuredContent/other", Label: writ.System, Type: provenance.ID, Collection: "item"}}
	passed(t, w.call(ctx, "memory_search", `{"query":"x"}`))
	refusal(t, w.call(ctx, "delete_item", `{"id":"item-4711"}`), unseen)
}

// TestInsideRedacts (M09): what must not be stored is out of a call of the
// memory, or of nothing there is, before it is judged; of another server it is
// that server's. What was seen is found as it would be redacted, and is whole of
// nothing. The task is the request's own.
func TestInsideRedacts(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	dir := t.TempDir()
	r := newRig(t, openSQLite(t, dir), policy(t, insidePolicy), up.config(true))
	n := &capturer{capture: func(ctx context.Context, by gateway.Caller, payload []byte) string {
		text, _ := strictjson.Text(strictjson.Get(payload, "raw_payload"))
		c, ok, err := by.Capture(ctx, 0, text)
		return fmt.Sprintf("%q redacted=%v task=%s found=%v whole=%v %v", text, by.Redacted, by.Task, ok, c.Whole, err)
	}}
	r.opts.Inside = n
	r.restart()
	secret := r.mint()
	w := overHTTP(ctx, r, true, web{session: secret})
	s, _ := r.gw.FindSession(ctx, "loopback", secret)
	if _, err := r.gw.Turn(ctx, s, "the door opens at noon"); err != nil {
		t.Fatal(err)
	}
	// It stands in what was seen from here on; that a session saw it is on record.
	for _, c := range []struct{ payload, meta, want string }{
		{`{"raw_payload":"door opens at"}`, ``, `"door opens at" redacted=false task= found=true whole=false <nil>`},
		{`{ "raw_payload" : "door opens at" }`, `{"io.github.writ-project/task":"t1"}`, `"door opens at" redacted=false task="t1" found=true whole=false <nil>`},
		{`{"raw_payload":"the s3cr3t-4711 opens"}`, `{"io.github.writ-project/task":[1]}`, `"the [redacted] opens" redacted=true task=[1] found=false whole=false <nil>`},
		{`{"raw_payload":"x"}`, `{"io.github.writ-project/Task":"t1"}`, `"x" redacted=false task=null found=false whole=false <nil>`},
	} {
		params := []byte(callParams("record_observation", `{"payload":`+c.payload+`}`))
		if c.meta != "" {
			params = strictjson.Set(params, "_meta", []byte(c.meta))
		}
		got := w.request(ctx, "tools/call", string(params))
		if said := text(strictjson.Get(got.result, "structuredContent"), "said"); said != c.want {
			t.Errorf("%s: %s, want %s", c.payload, said, c.want)
		}
	}
	w.call(ctx, "memory_dump", `{"x":"s3cr3t-4711"}`)              // without a contract
	w.call(ctx, "no_such_tool_s3cr3t-4711", `{"x":"s3cr3t-4711"}`) // of nobody
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err != nil || bytes.Contains(b, []byte("s3cr3t-4711")) {
			t.Errorf("%s holds it (%v)", filepath.Base(f), err)
		}
	}
	if _, err := r.gw.Turn(ctx, s, "the s3cr3t-4711 opens the door"); err != nil {
		t.Fatal(err)
	}
	got := w.call(ctx, "record_observation", `{"payload":{"raw_payload":"the s3cr3t-4711 opens the door"}}`)
	if said := text(strictjson.Get(got.result, "structuredContent"), "said"); said != `"the [redacted] opens the door" redacted=true task= found=true whole=false <nil>` {
		t.Error(said)
	}
}

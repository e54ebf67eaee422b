package memoryserver_test

import (
	"context"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
	"github.com/writ-project/writ/policy"
)

// desk is a gateway with nothing behind it but the memory.
type desk struct {
	t  *testing.T
	gw *gateway.Gateway
	s  downstream.Session
}

func newDesk(t *testing.T, st gateway.Store, surface memoryserver.Surface) *desk {
	t.Helper()
	p := memory.Builtin()
	k, err := memoryserver.Open(t.Context(), memoryserver.Options{Store: st, Namespace: "default", Policy: p, Mode: memory.Hardened})
	if err != nil {
		t.Fatal(err)
	}
	own, faults := policy.Parse("policy.yaml", []byte("tools: {}"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	gw, err := gateway.New(gateway.Options{Store: st, Policy: own, Inside: memoryserver.NewServer(k, surface), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gw.Close() })
	if err := gw.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, gw: gw}
	d.newSession()
	return d
}

func (d *desk) newSession() {
	d.t.Helper()
	secret, _, err := d.gw.OpenSession(d.t.Context(), "loopback", downstream.CarrierEndpoint)
	if err != nil {
		d.t.Fatal(err)
	}
	if d.s, err = d.gw.FindSession(d.t.Context(), "loopback", secret); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) request(method string, params []byte) downstream.Reply {
	return d.gw.Handle(d.t.Context(), &downstream.Request{
		Method: method, Params: strictjson.Of(params), ID: []byte("1"), Era: downstream.Modern, Version: downstream.Version20260728,
		Principal: downstream.Loopback, Session: d.s, ClientCapabilities: strictjson.Of([]byte("{}")), Peer: gateway.NoPeer,
	})
}

// call calls a tool and returns its structured content.
func (d *desk) call(tool, arguments string) []byte {
	d.t.Helper()
	params := strictjson.Set([]byte("{}"), "name", strictjson.Quote(tool))
	r := d.request("tools/call", strictjson.Set(params, "arguments", []byte(arguments)))
	if r.Err != nil {
		d.t.Fatalf("%s: %s", tool, r.Err.Message)
	}
	return strictjson.Get(r.Result, "structuredContent")
}

func member(raw []byte, path ...string) string {
	for _, p := range path {
		raw = strictjson.Get(raw, p)
	}
	if s, ok := strictjson.Text(raw); ok {
		return s
	}
	return string(raw)
}

// TestProposals: through the door, an observation has the label of what it was
// captured in, whatever it says of itself.
func TestProposals(t *testing.T) {
	signer, _ := storetest.Key()
	st := mapstore.New(signer)
	d := newDesk(t, st, memoryserver.Full)
	if _, err := d.gw.Turn(t.Context(), d.s, "My printer is printer-7, in the small room."); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tool, payload, want string }{
		{"record_observation", `{"observation_id":"o1","raw_payload":"My printer is printer-7"}`, "transformed"}, // kept with its sentence
		{"record_observation", `{"observation_id":"o1","raw_payload":"My printer is printer-7"}`, "accepted"},    // again
		{"record_observation", `{"observation_id":"o1","raw_payload":"in the large room"}`, "POLICY_VIOLATION observation.id_conflict"},
		{"record_observation", `{"observation_id":"o2","raw_payload":"My printer is printer-8"}`, "MISSING_PROVENANCE"},
		{"record_observation", `{"observation_id":"o2","raw_payload":"My printer is printer-8","source_ref":"ev1"}`, "MISSING_PROVENANCE"},
		{"record_observation", `{"observation_id":"o3","raw_payload":"in the small room","source_ref":"ev1"}`, "transformed"},
		{"record_observation", `{"observation_id":"o4","raw_payload":"in the small room","trust_class":"operator"}`, "DIRECT_CANONICAL_WRITE_FORBIDDEN"},
		{"record_observation", `{"observation_id":"o4","raw_payload":"in the small room","colour":"red"}`, "INVALID_PAYLOAD"},
		{"record_observation", `{"raw_payload":"in the small room"}`, "MISSING_PROVENANCE"},
		{"request_consolidation", `{"reason":"task_boundary","direct_write":true}`, "DIRECT_CANONICAL_WRITE_FORBIDDEN"},
	} {
		got := d.call(c.tool, c.payload)
		said := member(got, "status")
		if said == string(writ.Rejected) {
			said = member(got, "rejection", "code") + " " + member(got, "rejection", "reason")
		}
		if !strings.HasPrefix(said, c.want) {
			t.Errorf("%s %s: %s (%s), want %s", c.tool, c.payload, said, got, c.want)
		}
		if member(got, "mode") != "hardened" || member(got, "decision_id") == "" {
			t.Errorf("an outcome without mode or decision: %s", got)
		}
	}
	// In another session the same words stand nowhere.
	d.newSession()
	if got := d.call("record_observation", `{"observation_id":"o9","raw_payload":"My printer is printer-7"}`); member(got, "rejection", "code") != "MISSING_PROVENANCE" {
		t.Errorf("of another session: %s", got)
	}
	f := memoryserver.NewFold(st)
	for it, err := range st.Read(t.Context(), memoryserver.LogOf("default"), 1) {
		if err != nil {
			t.Fatal(err)
		}
		err = f.Step(t.Context(), &it)
		if err != nil {
			t.Fatal(err)
		}
	}
	if f.Rechecked < 4 || f.Rechecked+f.Unchecked != 12 {
		t.Errorf("%d decided again, %d not", f.Rechecked, f.Unchecked)
	}
}

// TestSurfaces: a surface publishes what it says, within its size, and nothing
// else can be called.
func TestSurfaces(t *testing.T) {
	for surface, want := range map[memoryserver.Surface]struct {
		proposals, reads, bytes int
	}{memoryserver.Full: {10, 6, 10_000}, memoryserver.Everyday: {1, 1, 2_000}, "": {10, 6, 10_000}, memoryserver.ReadOnly: {0, 6, 10_000}} {
		signer, _ := storetest.Key()
		d := newDesk(t, mapstore.New(signer), surface)
		proposals, reads := 0, 0
		listing := d.request("tools/list", nil).Result
		items, _ := strictjson.Elements(strictjson.Get(listing, "tools"))
		for _, item := range items {
			if member(item, "annotations", "readOnlyHint") == "false" {
				proposals++
			} else {
				reads++
			}
		}
		if proposals != want.proposals || reads != want.reads || len(listing) > want.bytes {
			t.Errorf("surface %q publishes %d proposals and %d reads in %d bytes, want %v", surface, proposals, reads, len(listing), want)
		}
		if surface != memoryserver.Full && surface != "" {
			params := []byte(`{"name":"propose_proposition","arguments":{"text":"x"}}`)
			if r := d.request("tools/call", params); r.Err == nil && member(r.Result, "isError") != "true" {
				t.Errorf("surface %q: %s", surface, r.Result)
			}
		}
	}
}

// TestLargeRefusal: a payload that is longer in canonical form than it came is
// refused like any other, and the namespace goes on.
func TestLargeRefusal(t *testing.T) {
	signer, _ := storetest.Key()
	st := mapstore.New(signer)
	d := newDesk(t, st, memoryserver.Full)
	got := d.call("record_observation", `{"observation_id":"o1","raw_payload":"x","source_ref":"a page","parsed_payload":{"a":[1e20`+strings.Repeat(",1e20", 19000)+`]}}`)
	if member(got, "rejection", "code") != "INVALID_PAYLOAD" {
		t.Errorf("%.300s", got)
	}
	for range 2 { // and again by who reads the log
		if got := d.call("record_observation", `{"observation_id":"o1","raw_payload":"x","source_ref":"a page"}`); member(got, "status") != "accepted" {
			t.Errorf("%s", got)
		}
		d = newDesk(t, st, memoryserver.Full)
	}
}

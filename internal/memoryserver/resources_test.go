package memoryserver_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/internal/strictjson"
)

// TestResourceSubscriptions: a stream of the legacy wire is told of what its
// session subscribed to and did not take back, and of no other session's.
func TestResourceSubscriptions(t *testing.T) {
	signer, _ := storetest.Key()
	d := newDesk(t, mapstore.New(signer), memoryserver.Full)
	caps, _, _ := d.gw.Describe(t.Context(), downstream.Version20260728)
	if member(caps, "resources", "subscribe") != "true" {
		t.Errorf("capabilities: %s", caps)
	}
	if _, err := d.gw.Turn(t.Context(), d.s, "My printer is printer-7, in the small room."); err != nil {
		t.Fatal(err)
	}
	var told []string
	listen := func() {
		_, cancel := d.gw.Subscribe(t.Context(), downstream.Listener{Principal: downstream.Loopback, Session: d.s, Filter: downstream.Filter{All: true}},
			func(method string, params []byte) {
				if strings.HasPrefix(method, "notifications/resources/updated") {
					told = append(told, member(params, "uri"))
				}
			})
		t.Cleanup(cancel)
	}
	listen()
	alias := func(name string) {
		t.Helper()
		if got := d.call("create_or_link_entity_candidate", `{"entity_id":"ent_3","name":"`+name+`","entity_type":"thing","aliases":["`+name+`"],"observation_ids":["o1"]}`); member(got, "status") == "rejected" {
			t.Fatalf("%s", got)
		}
	}
	d.call("record_observation", `{"observation_id":"o1","raw_payload":"My printer is printer-7"}`)
	d.call("create_or_link_entity_candidate", `{"name":"the printer","entity_type":"thing","observation_ids":["o1"]}`)
	uri := []byte(`{"uri":"memory://entity/ent_3"}`)
	alias("one")
	for _, step := range []struct {
		method, name string
		want         []string
	}{
		{"resources/subscribe", "two", []string{"memory://entity/ent_3"}},
		{"resources/subscribe", "three", []string{"memory://entity/ent_3"}},
		{"resources/unsubscribe", "four", nil},
		{"resources/unsubscribe", "five", nil},
	} {
		if r := d.request(step.method, uri); r.Err != nil || strictjson.Get(r.Result, "contents") != nil {
			t.Fatalf("%s: %+v", step.method, r)
		}
		told = nil
		alias(step.name)
		if !slices.Equal(told, step.want) {
			t.Errorf("%s: told of %v, want %v", step.method, told, step.want)
		}
	}
	// Another session's subscription is its own.
	first := d.s
	d.newSession()
	if r := d.request("resources/subscribe", uri); r.Err != nil {
		t.Fatal(r.Err)
	}
	d.s, told = first, nil
	alias("six")
	if len(told) != 0 {
		t.Errorf("of another session's: %v", told)
	}
}

// TestResourcesOfSurfaces: what a surface does not publish is no resource.
func TestResourcesOfSurfaces(t *testing.T) {
	for surface, want := range map[memoryserver.Surface]string{
		memoryserver.Full:     "memory://entity/{id} memory://slot/{id}",
		memoryserver.Everyday: "",
		memoryserver.ReadOnly: "memory://entity/{id} memory://slot/{id}",
	} {
		signer, _ := storetest.Key()
		d := newDesk(t, mapstore.New(signer), surface)
		items, _ := strictjson.Elements(strictjson.Get(d.request("resources/templates/list", nil).Result, "resourceTemplates"))
		var got []string
		for _, it := range items {
			got = append(got, member(it, "uriTemplate"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v", surface, got)
		}
		if r := d.request("resources/read", []byte(`{"uri":"memory://entity/ent_1"}`)); (r.Err != nil) != (surface == memoryserver.Everyday) {
			t.Errorf("%s: %+v", surface, r)
		}
	}
}

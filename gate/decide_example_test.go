package gate_test

import (
	"fmt"
	"time"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// The test of STTI-001: what list_users returned may be deleted, nothing else.
func ExampleDecide() {
	policy, faults := policy.Parse("policy.yaml", []byte(`
profile: strict
pins: optional
tools:
  users/list_users: { effect: read, outputs: [ { at: /users/*, label: system } ] }
  users/delete_user: { effect: delete }
`))
	if len(faults) > 0 {
		fmt.Println(faults)
		return
	}
	catalogue, _ := gate.NewCatalogue([]gate.Definition{
		{Server: "users", Raw: []byte(`{"name":"list_users","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`)},
		{Server: "users", Raw: []byte(`{"name":"delete_user","inputSchema":{"type":"object","properties":{"id":{"type":"string"}}}}`)},
	}, policy)
	session := gate.NewSession("s_example", [32]byte{}, provenance.Caps{}) // a random key, in earnest

	call := func(tool, arguments string) gate.Decision {
		d := gate.Decide(gate.Input{
			Policy: policy, Catalogue: catalogue, Session: session, Time: time.Unix(0, 0),
			Call: gate.Call{Server: "users", Tool: tool, Arguments: strictjson.Of([]byte(arguments))},
		})
		session.Decided(&d) // once the decision is durable
		return d
	}

	list := call("list_users", `{}`)
	// Here the door makes the call, and records its result.
	result := gate.Result{Evidence: session.Next(), Status: gate.OK, Value: strictjson.Of([]byte(`{"structuredContent":{"users":["bob"]}}`))}
	session.Commit(session.Observe(&list, result))

	for _, id := range []string{"bob", "eve", "/etc/passwd"} {
		d := call("delete_user", fmt.Sprintf(`{"id":%q}`, id))
		record, _ := gate.ParseRecord(d.Record())
		fmt.Println(d.Allowed(), gate.Explain(record)[1])
	}
	// Output:
	// true /id (target) is evidence s_example/ev1, /structuredContent/users/0 of list_users (users), label system
	// false refused: /id: provenance.unseen: '/id': nothing that this argument accepts holds this value; 'list_users' of server 'users' returns '/users/*': called, and nothing that counts of what came back is this value
	// false refused: /id: provenance.unseen: '/id': nothing that this argument accepts holds this value; 'list_users' of server 'users' returns '/users/*': called, and nothing that counts of what came back is this value
}

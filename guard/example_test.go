package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/writ-project/writ/guard"
)

// An agent's loop with the gate in it: whatever the model proposes goes through
// Call, and what is refused goes back to the model as the answer.
func Example() {
	dir, err := os.MkdirTemp("", "writ") // in earnest: a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	g, err := guard.Open(dir, []byte(`
pins: optional # the tools below cannot change without this program
collections: { account: { closed: true } }
tools:
  hr/list_accounts:
    effect: read
    outputs: [ { at: /accounts/*/id, label: system, collection: account } ]
  hr/lock_account:
    effect: write
    args: { /id: { role: target, collection: account, from: [output] } }
`), []guard.Tool{
		{Server: "hr", Name: "list_accounts", Description: "List all accounts.",
			Output: json.RawMessage(`{"type":"object","properties":{"accounts":{"type":"array"}},"required":["accounts"]}`)},
		{Server: "hr", Name: "lock_account", Description: "Lock an account.",
			Input: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`)},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()

	tools := map[string]func(context.Context, json.RawMessage) (json.RawMessage, error){
		"list_accounts": func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"accounts":[{"id":"u-17","name":"Bob"}]}`), nil
		},
		"lock_account": func(_ context.Context, args json.RawMessage) (json.RawMessage, error) {
			fmt.Printf("locking %s\n", args)
			return json.RawMessage(`{"done":true}`), nil
		},
	}

	ctx := context.Background()
	s, err := g.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	if err := s.Say(ctx, "Please lock Bob's account."); err != nil {
		log.Fatal(err)
	}
	for _, proposal := range []struct{ tool, args string }{ // of the model
		{"lock_account", `{"id":"u-17"}`}, // which guesses
		{"list_accounts", `{}`},
		{"lock_account", `{"id":"u-17"}`},
		{"drop_tables", `{}`}, // which nobody has
	} {
		result, err := s.Call(ctx, "hr", proposal.tool, json.RawMessage(proposal.args), tools[proposal.tool])
		var refused *guard.Refused
		switch {
		case errors.As(err, &refused):
			fmt.Println(refused.Code, refused.Reason)
			for _, f := range refused.Failures {
				fmt.Println(f.Pointer, f.Need)
			}
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Printf("%s\n", result)
		}
	}
	// Output:
	// MISSING_PROVENANCE provenance.unseen
	// /id `/id`: nothing that this argument accepts holds this value; `list_accounts` of server `hr` returns `account`: call it first
	// {"accounts":[{"id":"u-17","name":"Bob"}]}
	// locking {"id":"u-17"}
	// {"done":true}
	// INVALID_TOOL_NAME name.unknown
	//  no tool of that name is listed; list the tools and call one of those, or ask the user whether another should be opened
}

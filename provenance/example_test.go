package provenance_test

import (
	"fmt"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/provenance"
)

// The test of STTI-001: what list_users said vouches, what nobody said does not.
func Example() {
	at, _ := provenance.ParsePattern("/users/*")
	rules := []provenance.OutputRule{{At: at, Label: writ.System, Type: provenance.ID, Collection: "user"}}

	ledger := provenance.NewLedger([32]byte{ /* the session's secret */ }, provenance.Caps{})
	found := provenance.Extraction(rules, strictjson.Of([]byte(`{"structuredContent":{"users":["bob"]}}`)), strictjson.Value{})
	pending, err := ledger.Prepare(provenance.Observation{
		Evidence: 1, Server: "accounts", Tool: "list_users", OK: true, Leaves: found.Leaves,
	})
	if err != nil {
		panic(err)
	}
	// Here the gateway makes the result durable.
	if err := ledger.Commit(pending); err != nil {
		panic(err)
	}

	for _, id := range []string{`"bob"`, `"eve"`, `"/etc/passwd"`} {
		a := ledger.Find(provenance.Query{Value: strictjson.Of([]byte(id)), Type: provenance.ID, Collection: "user", Authority: true})
		if a.Reason != "" {
			fmt.Println(id, a.Reason)
			continue
		}
		fmt.Println(id, a.Vouched[0].Tool, a.Vouched[0].Pointer)
	}
	// Output:
	// "bob" list_users /structuredContent/users/0
	// "eve" provenance.unseen
	// "/etc/passwd" provenance.unseen
}

package provenance

import (
	"errors"
	"fmt"
	"os"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// TestFlood (D04): whoever floods a session neither makes it forget nor makes
// it accept. At the cap new evidence is refused and every old fact still
// answers. The long run has ten million leaves.
func TestFlood(t *testing.T) {
	leaves := 30_000
	if os.Getenv("WRIT_LONG") == "1" {
		leaves = 10_000_000
	}
	const each = 1_000 // items of three leaves
	l := NewLedger([32]byte{1}, Caps{Leaves: leaves, Bytes: 8 << 30})
	results := 0
	for l.Len()+3*each <= leaves {
		results++
		l.mustAdd(t, results, listing(results, each))
	}
	for range 3 {
		p, err := l.Prepare(Observation{Evidence: uint32(results + 1), Server: "a", Tool: "list", OK: true, Leaves: listing(results+1, each)})
		if err == nil {
			err = l.Commit(p)
		}
		if !errors.Is(err, ErrFull) {
			t.Fatalf("at the cap: %v", err)
		}
	}
	seen := func(n int) Answer {
		return l.Find(Query{Value: strictjson.Of(fmt.Appendf(nil, `"item-%08d"`, n)), Type: ID, Collection: "item"})
	}
	for _, n := range []int{0, each/2 + 1, results*each/2 + 7, results*each - 1} {
		if a := seen(n); len(a.Vouched) == 0 {
			t.Errorf("item %d is forgotten: %q", n, a.Reason)
		}
	}
	if a := seen(results * each); a.Reason != writ.ProvenanceUnseen {
		t.Errorf("what was refused at the cap answers %q", a.Reason)
	}
	t.Logf("%d leaves, %d bytes", l.Len(), l.Bytes())
}

package provenance

import (
	"errors"
	"fmt"
	"os"
	"strings"
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

// D04: what was looked up counts against the cap with its name, and by a name longer than
// anybody types nothing was.
func TestLookupsAreBounded(t *testing.T) {
	rules := []OutputRule{{At: must("/id"), Label: writ.System, Type: ID, Collection: "user", LookedUp: "/name"}}
	l := NewLedger([32]byte{1}, Caps{Bytes: 64 << 10})
	look := func(n int, name string) error {
		body := fmt.Sprintf(`{"structuredContent":{"id":"U%06d"}}`, n)
		p, err := l.Prepare(Observation{Evidence: uint32(n), Server: "a", Tool: "find", OK: true, Leaves: Extraction(rules, strictjson.Of([]byte(body)), strictjson.Value{}).Leaves,
			Args: []Arg{{Pointer: "/name", Value: strictjson.StringOf(name), Label: writ.Model}}})
		if err == nil {
			err = l.Commit(p)
		}
		return err
	}
	if err := look(1, strings.Repeat("x", longestName+1)); err != nil || len(l.lookups) != 0 {
		t.Errorf("D04: %d lookups by a name that nobody types (%v)", len(l.lookups), err)
	}
	names := 0
	for n := 2; ; n++ {
		name := fmt.Sprintf("%0*d", longestName, n)
		if err := look(n, name); errors.Is(err, ErrFull) {
			break
		} else if err != nil || names > 64<<10 {
			t.Fatalf("D04: %d bytes of names, %v", names, err)
		}
		names += len(name)
	}
	if len(l.lookups) == 0 {
		t.Error("nothing was looked up")
	}
}

// D04: a number is looked at so often in a turn, and who says it more often before he orders
// something of it has not ordered it.
func TestNumberSaidOften(t *testing.T) {
	for n, want := range map[int]writ.Reason{mostSaid - 1: "", mostSaid: writ.ProvenanceSmall} {
		l := NewLedger([32]byte{1}, Caps{})
		p, err := l.PrepareTurn(Turn{Evidence: 1, Text: strings.Repeat("I have 50. ", n) + "Merge 50."})
		if err == nil {
			err = l.CommitTurn(p)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, why := l.Typed(Query{Value: strictjson.Of([]byte("50")), Type: Integer, Authority: true, Words: []string{"merge", "merge pr"}}); why != want {
			t.Errorf("D04: behind %d others: %q, want %q", n, why, want)
		}
	}
}

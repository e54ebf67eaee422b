package gateway

import (
	"errors"
	"sync"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/provenance"
)

// TestPlacesOfTwoProcesses: what one process lowers another knows before it
// judges its next result, numbers are dense, and clearing is told as well (L04).
func TestPlacesOfTwoProcesses(t *testing.T) {
	ctx, st := t.Context(), mapstore.New(nil)
	defer st.Close()
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	place := func(id string) provenance.Place {
		return provenance.Place{Server: "s", Tool: "t", Label: writ.Model, At: []provenance.Resource{{Of: "note", Text: id}}}
	}
	the := func(p provenance.Place) func(*provenance.Places) (provenance.Place, bool) {
		return func(*provenance.Places) (provenance.Place, bool) { return p, true }
	}
	one, two, other := newPlaces(st, "default"), newPlaces(st, "default"), newPlaces(st, "work")
	var wg sync.WaitGroup
	for i := range 4 {
		p := []*places{one, two}[i%2]
		wg.Add(1)
		go func() {
			defer wg.Done()
			for _, id := range []string{"n1", "n2", "n3"} {
				if _, err := p.lower(ctx, st, "s_a", at, the(place(id)), func() {}); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	for _, p := range []*places{one, two} {
		if _, err := p.now(ctx); err != nil || !p.all.Covers(place("n1")) || !p.all.Covers(place("n3")) || p.all.Covers(place("n4")) {
			t.Errorf("a process does not know what is lowered (%v)", err)
		}
	}
	if n, err := other.now(ctx); n != 0 || err != nil || other.all.Covers(place("n1")) {
		t.Error("two namespaces share a place")
	}
	listed, err := LoweredPlaces(ctx, st, "default")
	if err != nil || len(listed) < 3 || listed[0].Session != "s_a" || listed[0].N != 2 {
		t.Fatalf("%+v %v", listed, err)
	}
	for _, l := range listed {
		if err := ClearPlace(ctx, st, "default", l.N, at); err != nil {
			t.Error(err)
		}
	}
	if err := ClearPlace(ctx, st, "default", listed[0].N, at); !errors.Is(err, audit.ErrNotFound) {
		t.Errorf("cleared twice: %v", err)
	}
	if _, err := two.now(ctx); err != nil || two.all.Covers(place("n1")) {
		t.Error("a running process does not know that a place was cleared")
	}
	// A replay asks for a number: one that is not there yet is no number.
	head, _ := st.Head(ctx, placesPrefix+"default")
	if err := newPlaces(st, "default").upTo(ctx, head+1); err == nil {
		t.Error("a result was judged at a number the log does not have")
	}
	if p := newPlaces(st, "default"); p.upTo(ctx, head) != nil || p.n != head {
		t.Error("the places cannot be read again")
	}
	// Without its value nobody knows what it was: nothing is judged any more.
	if _, err := one.lower(ctx, st, "s_a", at, the(place("n9")), func() {}); err != nil {
		t.Fatal(err)
	}
	if err := st.Erase(ctx, placesPrefix+"default", one.n); err != nil {
		t.Fatal(err)
	}
	if err := newPlaces(st, "default").upTo(ctx, one.n); !errors.Is(err, audit.ErrAltered) {
		t.Errorf("a place whose value is gone: %v", err)
	}
}

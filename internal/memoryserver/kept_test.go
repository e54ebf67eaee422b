package memoryserver

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/snapshot"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/memory"
)

// reads notes from which record a store is read.
type reads struct {
	audit.Store
	from []uint64
}

func (r *reads) Read(ctx context.Context, session string, from uint64) iter.Seq2[audit.Item, error] {
	r.from = append(r.from, from)
	return r.Store.Read(ctx, session, from)
}

// A keeper goes on from its snapshot, and is then what one is that read the whole
// log. An erasure takes the snapshot away; one that does not fit the log counts for
// nothing.
func TestGoesOnFromSnapshot(t *testing.T) {
	signer, verifier := storetest.Key()
	sq, err := sqlite.Open(t.TempDir(), sqlite.Options{Signer: signer, Verifier: verifier})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sq.Close() })
	st, path := &reads{Store: sq}, filepath.Join(t.TempDir(), "snapshots")
	dir, err := snapshot.Open(path, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Store: st, Namespace: "default", Policy: policy(t), Mode: memory.Hardened, Clock: ticking(), Snapshots: dir}
	opened := func() *Keeper {
		t.Helper()
		st.from = nil
		k, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	begun := func() uint64 { return st.from[len(st.from)-1] } // where the fold begins
	grow := func(k *Keeper, from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			c, p := said(fmt.Sprintf("agent-%d", i%23), fmt.Sprintf("o%d", i), fmt.Sprintf("the secret of %d is kept", i))
			if o, err := k.Propose(t.Context(), c, p); err != nil || o.Rejection != nil {
				t.Fatalf("%v %+v", err, o)
			}
		}
	}
	k := opened()
	grow(k, 0, 1200)
	k.written()
	again := opened()
	if begun() < 1000 {
		t.Fatalf("it begins at record %d", begun())
	}
	if digest(t, again) != digest(t, k) || digest(t, again) != digest(t, open(t, st)) {
		t.Fatal("the snapshot is another state")
	}
	grow(again, 1200, 1210)
	if digest(t, k) != digest(t, again) {
		t.Fatal("what goes on from it goes another way")
	}

	file := filepath.Join(path, k.log)
	before, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(before, []byte("the secret of 17 is kept")) {
		t.Fatalf("the text is not in the snapshot, and nothing shows that it goes: %v", err)
	}
	d, err := again.Operate(t.Context(), "operator:1", memory.CommandErase, []byte(`{"observation_ids":["obs_19"],"reason":"asked"}`))
	if err != nil || d.Outcome.Rejection != nil {
		t.Fatalf("%v %+v", err, d.Outcome.Rejection)
	}
	again.written()
	if after, err := os.ReadFile(file); err == nil && bytes.Contains(after, []byte("the secret of 17 is kept")) {
		t.Fatal("the snapshot holds what was erased")
	}
	// Nor does one that another process was writing meanwhile, of the state before.
	k.mu.Lock()
	k.kept = 0
	k.keep()
	k.mu.Unlock()
	k.written()
	if after, err := os.ReadFile(file); err == nil && bytes.Contains(after, []byte("the secret of 17 is kept")) {
		t.Fatal("another process put back what was erased")
	}
	// One that another process left behind goes where the erasure is read.
	if err := os.WriteFile(file, before, 0o600); err != nil {
		t.Fatal(err)
	}
	last := opened()
	if after, err := os.ReadFile(file); err == nil && bytes.Contains(after, []byte("the secret of 17 is kept")) {
		t.Fatal("the snapshot that was left holds what was erased")
	}
	if digest(t, last) != digest(t, open(t, st)) {
		t.Fatal("the state is another after an erasure")
	}

	// One of another log.
	sq2, err := sqlite.Open(t.TempDir(), sqlite.Options{Signer: signer, Verifier: verifier})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sq2.Close() })
	st.Store = sq2
	other := opened()
	if n := other.state.Head(); n > 0 {
		t.Fatalf("a snapshot of another log counts: it begins at record %d", n)
	}
	grow(other, 0, 3)
	if digest(t, other) != digest(t, open(t, st)) {
		t.Fatal("the state is another than that of its log")
	}
}

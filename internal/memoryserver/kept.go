package memoryserver

import (
	"context"
	"crypto/sha256"
	"io"

	"github.com/writ-project/writ/internal/snapshot"
	"github.com/writ-project/writ/memory"
)

// restart sets the state to the newest snapshot whose record is in the log, or to
// nothing. The caller holds mu or is the only one that knows k.
func (k *Keeper) restart(ctx context.Context) error {
	k.state, k.kept, k.missing = memory.New(), 0, missing{}
	at, body, ok := k.o.Snapshots.Read(k.log)
	if !ok {
		return nil
	}
	for it, err := range k.store.Read(ctx, k.log, at.N) {
		if err != nil {
			return err
		}
		if it.N == at.N && sha256.Sum256(it.Leaf) == at.Leaf {
			if s := memory.New(); snapshot.Decode(body, s) == nil {
				k.state, k.kept, k.leaf = s, at.N, at.Leaf
			}
		}
		break
	}
	return nil
}

// every is how many events may come after a snapshot before the next: what a start
// folds, and what writing one costs, are both bounded.
func every(head uint64) uint64 { return max(1000, head/50) }

// keep writes a snapshot where one is due, beside what goes on. A failure costs the
// next start some time and nothing else. The caller holds mu.
func (k *Keeper) keep() {
	head := k.state.Head()
	if k.o.Snapshots == nil || head < k.kept+every(head) || len(k.missing) > 0 || !k.writing.TryLock() {
		return
	}
	k.kept = head
	at, state := snapshot.At{N: head, Leaf: k.leaf}, k.state.Clone()
	go func() {
		defer k.writing.Unlock()
		write := func(w io.Writer) error { return snapshot.Encode(w, state) }
		if k.o.Snapshots.Write(k.log, at, write) == nil && k.erasedSince(head) {
			_ = k.o.Snapshots.Drop(k.log)
		}
	}()
}

// erasedSince reports whether another process erased something while a snapshot was
// written: it dropped one that was not there yet. Of a log that cannot be read it
// may have.
func (k *Keeper) erasedSince(n uint64) bool {
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	for it, err := range k.store.Read(ctx, k.log, n+1) {
		if err != nil {
			return true
		}
		if _, e, _, err := EventOf(&it); err != nil || erases(e) {
			return true
		}
	}
	return false
}

func (k *Keeper) written() {
	k.writing.Lock()
	defer k.writing.Unlock()
}

// drop takes a file beside the log away, the snapshot or the vectors: it holds what was
// erased.
func (k *Keeper) drop(file string) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	return k.o.Snapshots.Drop(file)
}

// erases reports whether an event takes texts away.
func erases(e *memory.Event) bool {
	_, is := e.Erased()
	return is
}

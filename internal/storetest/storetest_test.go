package storetest

import (
	"context"
	"os"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/storetest/mapstore"
)

// Store is what a store implements.
type Store interface {
	audit.Store
	audit.Sessions
}

// opener opens the store that lives in dir, with the key of Key and a checkpoint at least
// every Every records.
type opener func(tb testing.TB, dir string) Store

// TestStore runs the suite with every store. Of a persistent one, what is opened in the
// directory of one that was closed has all that one had.
func TestStore(t *testing.T) {
	for name, store := range map[string]struct {
		open       opener
		persistent bool
	}{
		"in memory": {open: func(testing.TB, string) Store {
			sk, _ := Key()
			return mapstore.New(sk)
		}},
		"SQLite": {persistent: true, open: func(tb testing.TB, dir string) Store {
			if err := os.Chmod(dir, 0o700); err != nil { // it is what the umask makes it
				tb.Fatal(err)
			}
			sk, vk := Key()
			s, err := sqlite.Open(dir, sqlite.Options{Signer: sk, Verifier: vk, CheckpointEvery: Every})
			if err != nil {
				tb.Fatal(err)
			}
			return s
		}},
	} {
		t.Run(name, func(t *testing.T) { suite(t, store.open, store.persistent) })
	}
}

func suite(t *testing.T, open opener, persistent bool) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Store)
	}{
		{"append and read", testAppend},
		{"what does not belong there", testRefused},
		{"a batch is all or nothing", testBatch},
		{"L04 one chain from 64 goroutines, one head, one winner", testConcurrent},
		{"unsynced appends stand in the same order", testUnsynced},
		{"unsynced appends are signed too", testUnsyncedSigned},
		{"erase", testErase},
		{"blobs", testBlobs},
		{"checkpoints and proofs", testCheckpoints},
		{"a snapshot does not move", testSnapshot},
		{"M07 names are bytes", testNames},
		{"session register", testSessions},
		{"closed", testClosed},
		{"handed out bytes are copies", testCopies},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, t.TempDir())
			c.test(t, s)
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("second close: %v", err)
			}
		})
	}
	if persistent {
		t.Run("L02 opening again keeps everything", func(t *testing.T) { testReopen(t, open) })
	}
}

var ctx = context.Background()

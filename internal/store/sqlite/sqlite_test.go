package sqlite

import (
	"os"
	"testing"

	"github.com/writ-project/writ/internal/store/storetest"
)

// open opens a store as the suite wants it. t.TempDir is what the umask makes
// it, so it is taken from others first.
func open(tb testing.TB, dir string) storetest.Store {
	tb.Helper()
	return openWith(tb, dir, storetest.Every)
}

func openWith(tb testing.TB, dir string, every int64) *Store {
	tb.Helper()
	if err := os.Chmod(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	sk, vk := storetest.Key()
	s, err := Open(dir, Options{Signer: sk, Verifier: vk, CheckpointEvery: every})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) { storetest.Run(t, open, true) }

package sqlite

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/writ-project/writ/internal/store/mapstore"
	"github.com/writ-project/writ/internal/store/storetest"
	"github.com/writ-project/writ/memory"
)

func openIndexAt(tb testing.TB, dir string) *Index {
	tb.Helper()
	if err := os.Chmod(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	x, err := OpenIndex(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

func TestIndex(t *testing.T) {
	storetest.TestIndex(t, func(tb testing.TB, dir string) storetest.Index { return openIndexAt(tb, dir) }, true)
}

func TestIndexSameAsMap(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	if old := checks.Value.String(); old == checks.DefValue {
		checks.Value.Set(fmt.Sprint(size(60, 600)))
		defer checks.Value.Set(old)
	}
	storetest.DifferentialIndex(t, func() memory.Index { return mapstore.NewIndex() },
		func() (storetest.Index, func() storetest.Index) {
			dir, err := os.MkdirTemp(t.TempDir(), "")
			if err != nil {
				t.Fatal(err)
			}
			reopen := func() storetest.Index { return openIndexAt(t, dir) }
			return reopen(), reopen
		})
}

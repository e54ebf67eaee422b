package mapstore_test

import (
	"testing"

	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/memory"
)

type kept struct{ memory.Index }

func (kept) Close() error { return nil }

func TestIndex(t *testing.T) {
	storetest.TestIndex(t, func(testing.TB, string) storetest.Index { return kept{mapstore.NewIndex()} }, false)
}

package mapstore_test

import (
	"testing"

	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(testing.TB, string) storetest.Store {
		sk, _ := storetest.Key()
		return mapstore.New(sk)
	}, false)
}

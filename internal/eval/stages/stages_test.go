package stages

import (
	"testing"

	"github.com/writ-project/writ/internal/store/mapstore"
	"github.com/writ-project/writ/memory"
)

func options() Options {
	return Options{Index: func() memory.Index { return mapstore.NewIndex() }}
}

func evaluated(t *testing.T, o Options) *Result {
	t.Helper()
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStage1(t *testing.T) {
	o := options()
	o.Stage = 1
	r := evaluated(t, o)
	for _, u := range r.Unmet {
		t.Errorf("%+v", u)
	}
	for _, f := range r.Faults {
		t.Error(f)
	}
	if !r.Passed {
		t.Errorf("%+v", r.Gates)
	}
}

package screen

import "testing"

func TestDefault(t *testing.T) {
	s, faults := Parse("default.yaml", defaultFile)
	for _, f := range faults {
		t.Error(f)
	}
	if s == nil {
		t.Fatal("nil")
	}
}

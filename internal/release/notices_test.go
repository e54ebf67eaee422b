package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestEveryLinkedModuleIsNamed asks for the system the test runs on; `make
// check` compares the whole file for all of them.
func TestEveryLinkedModuleIsNamed(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "THIRD_PARTY_NOTICES"))
	if err != nil {
		t.Fatal(err)
	}
	on, err := linkedOn(runtime.GOOS + "/" + runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	if len(on) < 5 {
		t.Fatalf("only %d linked modules found", len(on))
	}
	for _, m := range on {
		if !strings.Contains(string(b), rule+m.heading()+"\n"+rule) {
			t.Errorf("%s is linked and not in THIRD_PARTY_NOTICES: make notices", m.heading())
		}
	}
}

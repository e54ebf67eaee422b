package main

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/writ-project/writ/internal/cli"
)

// TestKeptSession: of those who open a session under one name at once, one wins
// and all get his; whoever means to make a new one is told there is one.
func TestKeptSession(t *testing.T) {
	state := ownState(t)
	got := make([]string, 8)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			var err error
			if got[i], err = keptSession(state, "shared", func() (string, error) { return fmt.Sprintf("secret-%d", i), nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, s := range got {
		if s == "" || s != got[0] {
			t.Errorf("the secrets are %q", got)
			break
		}
	}
	var e *cli.Exit
	if err := keepSession(state, "shared", "another"); !errors.As(err, &e) || e.Code != cli.ExitConfig || e.Error() != "there is a session of that name" {
		t.Errorf("got %v", err)
	}
}

package config_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/policy"
)

// TestGrownAtOnce: of what several processes keep in the same moment, nothing is lost, and
// who cannot wait for the others is told so.
func TestGrownAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("pins: optional\ntools:\n  a/t: { effect: write, args: { /id: { role: target, from: [user] } } }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const all = 12
	var wg sync.WaitGroup
	for n := range all {
		wg.Go(func() {
			done, err := config.HoldGrown(t.Context(), file)
			if err != nil {
				t.Error(err)
				return
			}
			defer done()
			g, err := config.Grow(file, []policy.Grown{{Tool: "a/t", Arg: "/id", Const: []byte(strconv.Itoa(n))}}, 0)
			if err == nil {
				err = os.WriteFile(config.GrownFile(file), g.Text, 0o600)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if p, err := config.LoadPolicy(file); err != nil || len(p.Grown) != all {
		t.Errorf("%d lines, %v", len(p.Grown), err)
	}
	done, err := config.HoldGrown(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := config.HoldGrown(ctx, file); err == nil {
		t.Error("it is held twice")
	}
}

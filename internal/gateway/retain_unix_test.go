//go:build unix

package gateway_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/storetest"
)

// TestRetentionPassesOver: what stands among the archives and is none, or can be read by nobody,
// holds nothing up and is said once; a directory may be called like a pattern, and what a killed
// run left there goes.
func TestRetentionPassesOver(t *testing.T) {
	for _, name := range []string{"archive", "archive [2026]"} {
		t.Run(name, func(t *testing.T) { passesOver(t, filepath.Join(t.TempDir(), name)) })
	}
}

func passesOver(t *testing.T, dir string) {
	ctx := testContext(t)
	st := onSQLite(t)
	r, _ := toyRig(t, st)
	var said bytes.Buffer
	r.opts.Log = slog.New(slog.NewTextHandler(&said, nil))
	id, now := used(t, ctx, r), time.Now()
	left, young := filepath.Join(dir, ".new-1"), filepath.Join(dir, ".new-2")
	if err := errors.Join(os.Mkdir(dir, 0o700), syscall.Mkfifo(filepath.Join(dir, "a-pipe.writ"), 0o600), os.Symlink("nowhere", filepath.Join(dir, "link.writ")),
		os.Mkdir(filepath.Join(dir, "dir.writ"), 0o700), os.WriteFile(left, nil, 0o600), os.WriteFile(young, nil, 0o600), os.Chtimes(left, now.Add(-2*time.Hour), now.Add(-2*time.Hour))); err != nil {
		t.Fatal(err)
	}
	re := retainer(t, st, r, gateway.Retention{Days: 2, Archive: dir, SegmentBytes: 1 << 20})
	apply := func(now time.Time) gateway.Retained {
		t.Helper()
		done := make(chan struct{})
		go func() { defer close(done); re.Apply(ctx, now) }()
		select {
		case <-done:
		case <-ctx.Done():
			t.Fatal("it waits for a pipe")
		}
		return re.Status()
	}
	if s := apply(now.Add(4 * day)); s.Fault != "" || s.Redacted != 1 || !isRedacted(t, st, id, now) {
		t.Fatalf("%+v", s)
	}
	used(t, ctx, r)
	if s := apply(now.Add(8 * day)); s.Fault != "" || s.Redacted != 2 {
		t.Fatalf("%+v", s)
	}
	if n := strings.Count(said.String(), "passed over"); n != 3 || !strings.Contains(said.String(), "a-pipe.writ") {
		t.Errorf("said %d times: %s", n, &said)
	}
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a run left is there: %v", err)
	}
	if _, err := os.Lstat(young); err != nil {
		t.Errorf("what may be written now is gone: %v", err)
	}
	_, verifier := storetest.Key()
	linked := 0
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if b, err := private.ReadWhole(filepath.Join(dir, file.Name())); err == nil && len(b) > 0 {
			p, err := audit.ReadPart(b)
			if err != nil {
				t.Fatal(err)
			}
			if _, older, err := p.Checkpoints(verifier); err == nil {
				linked += len(older)
			}
		}
	}
	if linked != 1 {
		t.Errorf("%d archives go on from the one before", linked)
	}
}

//go:build unix

package statedir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestNamed: what is not there yet is named by where it will be, too.
func TestNamed(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	if err := errors.Join(os.Mkdir(in("real"), 0o700), os.Symlink("real", in("link")), os.Symlink("link/later", in("dangling")),
		os.Symlink("loop", in("loop")), os.WriteFile(in("real", "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"real/file":     "",
		"link/file":     "real/file",
		"real/none/a":   "",
		"link/none/a":   "real/none/a",
		"dangling":      "real/later",
		"dangling/deep": "real/later/deep",
		"loop/a":        "",
	} {
		names := []string{in(file)}
		if want != "" {
			names = append(names, in(want))
		}
		if got := Named(in(file)); !slices.Equal(got, names) {
			t.Errorf("%s is %q", file, got)
		}
	}
}

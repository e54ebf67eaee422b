package shell

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// notTaken is what programs say of what they do not take for the value of a flag.
var notTaken = regexp.MustCompile(`(?i)((unrecognized|unknown|illegal) (option|argument|predicate)|invalid option).*writ-unknown`)

// TestFlags: the programs that are here take a value where the list says so, and no
// word behind a flag that the reader lets through has one of them write.
func TestFlags(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) string {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		c := exec.CommandContext(ctx, args[0], args[1:]...)
		c.Dir, c.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C", "PAGER=cat", "HOME="+dir)
		var stderr bytes.Buffer
		c.Stderr = &stderr
		_ = c.Run()
		return stderr.String()
	}
	there := func() (names []string) {
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			names = append(names, e.Name())
		}
		return names
	}
	if err := os.WriteFile(dir+"/in", []byte("b\na\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("git"); err == nil {
		run("git", "init", "-q")
		run("git", "add", "in")
		run("git", "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "x")
	}
	before, missing, tried := there(), map[string]bool{}, 0
	for _, p := range programs() {
		if _, err := exec.LookPath(p.name[0]); err != nil {
			missing[p.name[0]] = true
			continue
		}
		for _, f := range slices.Sorted(maps.Keys(p.flags)) {
			if p.flags[f] == alone {
				continue
			}
			if kind := p.flags[f]; kind != mayTake {
				if said := run(append(slices.Clone(p.name), f, "--writ-unknown")...); notTaken.MatchString(said) {
					t.Errorf("%v: %s takes no value in the next word: %s", p.name, f, said)
				}
			}
			for _, args := range [][]string{{f, "-oPWN"}, {f, "--output=PWN"}, {f, "PWN"}, {f, "1", "PWN"}, {f + "o", "PWN"}, {f + "oPWN"}, {f + "=-o", "PWN"}, {"-n" + strings.TrimLeft(f, "-") + "o", "PWN"}} {
				argv := append(slices.Clone(p.name), args...)
				if !Read(strings.Join(argv, " ")).Reads {
					continue
				}
				tried++
				run(argv...)
				if after := there(); !slices.Equal(before, after) {
					t.Errorf("%q writes: %v", argv, after)
					return
				}
			}
		}
	}
	t.Logf("%d commands; not here: %v", tried, slices.Sorted(maps.Keys(missing)))
	if tried == 0 {
		t.Skip("none of the programs is here")
	}
}

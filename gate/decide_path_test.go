package gate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A path of which every part is looked up takes the square of its length: a longer one than
// file systems know is not taken apart, by neither side.
func TestLongPathIsNotTakenApart(t *testing.T) {
	text, err := os.ReadFile("testdata/decide/r13-typed-in.txtar")
	if err != nil {
		t.Fatal(err)
	}
	world, _, _ := strings.Cut(string(text), "-- steps --\n")
	for name, step := range map[string]string{strings.Repeat("d", 255): "allow", strings.Repeat("d", 4096): "deny MISSING_PROVENANCE /path=provenance.unseen /text=provenance.unseen"} {
		file := filepath.Join(t.TempDir(), "long.txtar")
		steps := "-- steps --\nturn \"Put it into config.json.\"\nvouches\ncall f/list {\"path\":\"/srv\"}\nallow\nresult {\"content\":[{\"type\":\"text\",\"text\":\"" + name + "\\n\"}]}\nvouches\n" +
			"call f/write {\"path\":\"/srv/" + name + "/config.json\",\"text\":\"x\"}\n" + step + "\n"
		if err := os.WriteFile(file, []byte(world+steps), 0o600); err != nil {
			t.Fatal(err)
		}
		newRun(t, file).steps()
	}
}

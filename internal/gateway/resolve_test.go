package gateway

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/writ-project/writ/gate"
)

// TestResolve (R34): whatever way a path leads to Writ's own state, the door
// says so to the gate.
func TestResolve(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, root := filepath.Join(dir, "state"), filepath.Join(dir, "srv")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(state, "sub"), 0o700), os.MkdirAll(root, 0o700),
		os.Symlink(filepath.Join(state, "new.yaml"), filepath.Join(root, "dangling")),
		os.Symlink(filepath.Join(state, "sub"), filepath.Join(root, "link")),
		os.Symlink("../state", filepath.Join(root, "relative")),
		os.Symlink("loop", filepath.Join(root, "loop")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	g := &Gateway{servers: map[string]*server{"x": {local: true}, "far": {}}, ownPaths: []string{state}}
	at := func(server, args string) string {
		return g.resolve(gate.Call{Server: server, Tool: "w", Arguments: []byte(args)})["/p"]
	}
	decoys := strings.Repeat(`"`+root+`/link",`, 1000)
	flood := strings.Repeat(`"`+root+`/link",`, maxResolved)
	for what, args := range map[string]string{
		"a link to what is not there yet": `{"p":"` + root + `/dangling"}`,
		"below a relative link":           `{"p":"` + root + `/relative/new/x"}`,
		".. after a link":                 `{"p":"` + root + `/link/../policy.yaml"}`,
		"a file URL, escaped":             `{"p":"file://` + root + `/%6cink/x"}`,
		"a file URL of localhost":         `{"p":"file://localhost` + root + `/relative/policy.yaml"}`,
		"a file URL in upper case":        `{"p":"FILE://` + root + `/relative/policy.yaml"}`,
		"a file URL with one slash":       `{"p":"file:` + root + `/relative/policy.yaml"}`,
		"after a thousand others":         `{"content":[` + decoys + `"x"],"p":"` + root + `/relative/x"}`,
		"after too many others":           `{"content":[` + flood + `"x"],"p":"` + root + `/a"}`,
		"a loop":                          `{"p":"` + root + `/loop/x"}`,
	} {
		if got := at("x", args); got != state && !strings.HasPrefix(got, state+"/") {
			t.Errorf("%s: resolved to %q", what, got)
		}
	}
	for what, args := range map[string]string{
		"an ordinary path": `{"p":"` + root + `/a.txt"}`,
		"a relative path":  `{"p":"link/x"}`,
		"a text":           `{"p":"see /srv for more"}`,
	} {
		if got := at("x", args); got != "" {
			t.Errorf("%s: resolved to %q", what, got)
		}
	}
	if got := at("far", `{"p":"`+root+`/relative"}`); got != "" {
		t.Errorf("a server elsewhere: resolved to %q", got)
	}
}

package gateway

import (
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/mcp/upstream"
)

// elsewhere are commands whose servers see another file system than this
// process does.
var elsewhere = []string{"docker", "podman", "nerdctl", "container", "lima", "limactl", "ssh", "wsl", "kubectl", "oc", "bwrap", "chroot", "nsenter", "flatpak"}

// code are the extensions of what is run, or read to say what is run.
var code = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx", ".py", ".pyz", ".pyw", ".rb", ".pl", ".php", ".lua", ".sh", ".bash", ".zsh", ".fish",
	".ps1", ".bat", ".cmd", ".exe", ".jar", ".class", ".wasm", ".r", ".jl", ".ex", ".exs", ".clj", ".scm", ".go", ".rs", ".dll", ".so", ".dylib",
	".json", ".jsonc", ".yaml", ".yml", ".toml", ".ini", ".conf", ".cfg", ".env"}

// Given returns what a server's command line and environment name on this
// machine: the directories where its relative paths may begin, its working
// directory first and once more if it is named, and the programs it is made of.
// dirs is nil where none is known: for a server at a URL, and one that sees
// other files than we do.
func Given(c upstream.Config) (dirs, programs []string) {
	if len(c.Command) == 0 {
		return nil, nil
	}
	work, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, nil
	}
	n := named{work: work}
	if p, err := exec.LookPath(c.Command[0]); err == nil && !strings.ContainsRune(c.Command[0], filepath.Separator) {
		n.program(n.abs(p))
	} else {
		n.look(c.Command[0])
	}
	for _, w := range slices.Concat(c.Command[1:], slices.Collect(maps.Values(c.Env))) {
		_, value, _ := strings.Cut(w, "=")
		for _, s := range slices.Concat([]string{w, value}, filepath.SplitList(w), strings.Split(value, ",")) {
			if s == "~" || strings.HasPrefix(s, "~/") {
				s = environment(c)("HOME") + s[1:]
			}
			n.look(s)
		}
	}
	slices.Sort(n.dirs)
	slices.Sort(n.programs)
	if slices.Contains(elsewhere, strings.TrimSuffix(strings.ToLower(filepath.Base(c.Command[0])), ".exe")) {
		return nil, n.programs
	}
	return append([]string{work}, n.dirs...), n.programs
}

// named is what the words of a command line name.
type named struct {
	work           string // where relative paths begin
	dirs, programs []string
}

func (n *named) abs(s string) string {
	if filepath.IsAbs(s) {
		return filepath.Clean(s)
	}
	return filepath.Join(n.work, s)
}

// look keeps a word that names a directory, or a file that is run or read to say
// what is run.
func (n *named) look(word string) {
	if word == "" {
		return
	}
	p := n.abs(word)
	fi, err := os.Stat(p)
	switch {
	case err != nil:
	case fi.IsDir():
		if !slices.Contains(n.dirs, p) {
			n.dirs = append(n.dirs, p)
		}
	case fi.Mode().IsRegular() && (fi.Mode().Perm()&0o111 != 0 || slices.Contains(code, strings.ToLower(filepath.Ext(p)))):
		n.program(p)
	}
}

func (n *named) program(p string) {
	real, _ := filepath.EvalSymlinks(p)
	for _, p := range []string{p, real} {
		if p != "" && !slices.Contains(n.programs, p) {
			n.programs = append(n.programs, p)
		}
	}
}

// environment returns how a server would read a variable. What it does not get
// it cannot read; to look there all the same refuses more, never less.
func environment(c upstream.Config) func(string) string {
	return func(name string) string {
		if v, ok := c.Env[name]; ok {
			return v
		}
		if v := os.Getenv(name); v != "" || name != "HOME" {
			return v
		}
		home, _ := os.UserHomeDir()
		return home
	}
}

// onThisMachine reports whether a server's absolute paths are ours.
func onThisMachine(c upstream.Config, dirs []string) bool {
	if len(c.Command) > 0 {
		return dirs != nil
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
}

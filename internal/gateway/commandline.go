package gateway

import (
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/writ-project/writ/internal/mcp/upstream"
)

// containers are commands whose servers see another file system than this
// process does.
var containers = []string{"docker", "podman", "nerdctl", "container", "lima", "limactl", "ssh", "wsl", "kubectl", "oc", "bwrap", "chroot", "nsenter", "flatpak"}

// shells are commands of which nobody knows what they run, and where.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox", "cmd", "powershell", "pwsh"}

// scripts are the extensions of what a shell reads.
var scripts = []string{".sh", ".bash", ".zsh", ".fish", ".ps1", ".bat", ".cmd"}

// code are the extensions of what is run, or read to say what is run.
var code = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx", ".py", ".pyz", ".pyw", ".rb", ".pl", ".php", ".lua", ".sh", ".bash", ".zsh", ".fish",
	".ps1", ".bat", ".cmd", ".exe", ".jar", ".class", ".wasm", ".r", ".jl", ".ex", ".exs", ".clj", ".scm", ".go", ".rs", ".dll", ".so", ".dylib",
	".json", ".jsonc", ".yaml", ".yml", ".toml", ".ini", ".conf", ".cfg", ".env"}

// Given returns what a server's command line and environment name on this
// machine: the directories where its relative paths may begin, its working
// directory first and once more if it is named, and the programs it is made of.
// dirs is nil where none is known, as for a server at a URL. Where elsewhere is
// true they need not be all: a container or a shell is somewhere in the command,
// whatever runs it.
func Given(c upstream.Config) (dirs, programs []string, elsewhere bool) {
	if len(c.Command) == 0 {
		return nil, nil, false
	}
	work, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, nil, false
	}
	dirs = []string{work}
	program := func(p string) {
		real, _ := filepath.EvalSymlinks(p)
		for _, p := range []string{p, real} {
			if p != "" && !slices.Contains(programs, p) {
				programs = append(programs, p)
			}
		}
	}
	look := func(s string) {
		fi, err := os.Stat(s)
		switch {
		case err != nil:
		case fi.IsDir():
			if !slices.Contains(dirs[1:], s) {
				dirs = append(dirs, s)
			}
		case fi.Mode().IsRegular() && shellScript(s):
			elsewhere = true
			program(s)
		case fi.Mode().IsRegular() && (fi.Mode().Perm()&0o111 != 0 || slices.Contains(code, strings.ToLower(filepath.Ext(s)))):
			program(s)
		}
	}
	abs := func(s string) string {
		if filepath.IsAbs(s) {
			return filepath.Clean(s)
		}
		return filepath.Join(work, s)
	}
	if p, err := exec.LookPath(c.Command[0]); err == nil && !strings.ContainsRune(c.Command[0], filepath.Separator) {
		program(abs(p))
		elsewhere = shellScript(abs(p))
	} else {
		look(abs(c.Command[0]))
	}
	words := slices.Clone(c.Command[1:])
	for _, w := range c.Command {
		for _, part := range strings.FieldsFunc(w, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(";&|()`'\"", r) }) {
			elsewhere = elsewhere || oneOf(part, containers) || oneOf(part, shells)
			words = append(words, part) // of a shell's text
		}
	}
	for _, v := range c.Env {
		words = append(words, v)
	}
	for _, w := range words {
		_, value, _ := strings.Cut(w, "=")
		for _, s := range slices.Concat([]string{w, value}, filepath.SplitList(w), strings.Split(value, ",")) {
			if s == "~" || strings.HasPrefix(s, "~/") {
				s = environment(c)("HOME") + s[1:]
			}
			if s != "" {
				look(abs(s))
			}
		}
	}
	slices.Sort(dirs[1:])
	slices.Sort(programs)
	return dirs, programs, elsewhere
}

func oneOf(word string, commands []string) bool {
	return slices.Contains(commands, strings.TrimSuffix(strings.ToLower(filepath.Base(word)), ".exe"))
}

// shellScript reports whether a file is one that a shell reads.
func shellScript(file string) bool {
	if slices.Contains(scripts, strings.ToLower(filepath.Ext(file))) {
		return true
	}
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 128)
	n, _ := io.ReadFull(f, head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	by, ok := strings.CutPrefix(line, "#!")
	return ok && slices.ContainsFunc(strings.Fields(by), func(w string) bool { return oneOf(w, shells) })
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
func onThisMachine(c upstream.Config) bool {
	if len(c.Command) > 0 {
		return !oneOf(c.Command[0], containers)
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
}

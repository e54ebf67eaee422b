package peers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A behind is a server as writ.yaml has it.
type behind struct {
	name    string
	command []string
	env     []string // NAME=value
	dir     string
	url     string
	start   string // limits.start
}

// config is the writ.yaml of servers under policy.yaml beside it.
func config(servers ...behind) string {
	var b strings.Builder
	b.WriteString("servers:\n")
	for _, s := range servers {
		fmt.Fprintf(&b, "  - name: %s\n", s.name)
		if s.url != "" {
			fmt.Fprintf(&b, "    url: %q\n", s.url)
			continue
		}
		b.WriteString("    command:\n")
		for _, c := range s.command {
			fmt.Fprintf(&b, "      - %q\n", c)
		}
		if s.dir != "" {
			fmt.Fprintf(&b, "    dir: %q\n", s.dir)
		}
		if s.start != "" {
			fmt.Fprintf(&b, "    limits: { start: %s }\n", s.start)
		}
		for i, e := range s.env {
			if i == 0 {
				b.WriteString("    env:\n")
			}
			name, value, _ := strings.Cut(e, "=")
			fmt.Fprintf(&b, "      %s: %q\n", name, value)
		}
	}
	b.WriteString("policy: policy.yaml\n")
	return b.String()
}

// arguments are those of `writ run` in front of the servers: --policy with the
// command of a single one, where it has one, else --config.
func arguments(dir string, servers ...behind) []string {
	if len(servers) != 1 || servers[0].url != "" || servers[0].dir != "" {
		return []string{"--config", filepath.Join(dir, "writ.yaml")}
	}
	s := servers[0]
	args := []string{"--policy", filepath.Join(dir, "policy.yaml"), "--"}
	if len(s.env) > 0 {
		args = slices.Concat(args, []string{"env"}, s.env)
	}
	return append(args, s.command...)
}

func filesServer(t *testing.T, root string) behind {
	return behind{name: "files", command: npmServer(t, "filesystem", root)}
}

// TestFilesystem: server-filesystem under examples/filesystem.
func TestFilesystem(t *testing.T) {
	eachScenario(t, "filesystem", func(t *testing.T, root string) []behind { return []behind{filesServer(t, root)} })
}

// TestMemory: server-memory under examples/memory. Its graph is $ROOT/graph.jsonl.
func TestMemory(t *testing.T) {
	eachScenario(t, "memory", func(t *testing.T, root string) []behind {
		return []behind{{name: "memory", command: npmServer(t, "memory"), env: []string{"MEMORY_FILE_PATH=" + filepath.Join(root, "graph.jsonl")}}}
	})
}

// TestGopls: `gopls mcp` and server-filesystem over one module, under
// examples/gopls.
func TestGopls(t *testing.T) {
	eachScenario(t, "gopls", func(t *testing.T, root string) []behind {
		return []behind{filesServer(t, root), {name: "gopls", command: []string{filepath.Join(peersDir(t), "bin", "gopls"), "mcp"}, dir: root,
			env: []string{"GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local"}}}
	})
}

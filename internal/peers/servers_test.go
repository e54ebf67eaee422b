package peers

import (
	"fmt"
	"path/filepath"
	"testing"
)

// quoted is a command as a YAML flow sequence.
func quoted(command []string) string {
	out := "["
	for i, c := range command {
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprintf("%q", c)
	}
	return out + "]"
}

func filesConfig(t *testing.T, root string) string {
	return fmt.Sprintf("servers:\n  - { name: files, command: %s }\npolicy: policy.yaml\n", quoted(npmServer(t, "filesystem", root)))
}

// TestFilesystem: server-filesystem under examples/filesystem.
func TestFilesystem(t *testing.T) { eachScenario(t, "filesystem", filesConfig) }

// TestMemory: server-memory under examples/memory. Its graph is $ROOT/graph.jsonl.
func TestMemory(t *testing.T) {
	eachScenario(t, "memory", func(t *testing.T, root string) string {
		return fmt.Sprintf("servers:\n  - { name: memory, command: %s, env: { MEMORY_FILE_PATH: %q } }\npolicy: policy.yaml\n",
			quoted(npmServer(t, "memory")), filepath.Join(root, "graph.jsonl"))
	})
}

// TestGopls: `gopls mcp` and server-filesystem over one module, under
// examples/gopls.
func TestGopls(t *testing.T) {
	eachScenario(t, "gopls", func(t *testing.T, root string) string {
		return fmt.Sprintf("servers:\n  - { name: files, command: %s }\n  - { name: gopls, command: %s, dir: %q, env: { GOFLAGS: -mod=mod, GOPROXY: \"off\", GOTOOLCHAIN: local } }\npolicy: policy.yaml\n",
			quoted(npmServer(t, "filesystem", root)), quoted([]string{filepath.Join(peersDir(t), "bin", "gopls"), "mcp"}), root)
	})
}

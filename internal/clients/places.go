package clients

import (
	"path/filepath"
)

// A Client is a program that starts MCP servers, and where it writes down which.
type Client struct {
	Name   string // as commands take it
	Title  string // as people call it
	Layout Layout

	home    func(World) []string // its own files, the likeliest first
	project []string             // the file of a project, "" where it has none
	hooks   func(World) string   // the file of what it runs at events, nil where that is not known
}

// World is what a path depends on.
type World struct {
	OS   string // as runtime.GOOS
	Home string
	Env  func(name string) string // "" where it is not set
}

// Files are the places of the client's own file, the likeliest first.
func (c *Client) Files(w World) []string { return c.home(w) }

// HooksFile is where the client keeps what it runs at events, and which events matter
// here; "" where that is not known.
func (c *Client) HooksFile(w World) (file string, events []HookEvent) {
	if c.hooks == nil {
		return "", nil
	}
	return c.hooks(w), []HookEvent{{"UserPromptSubmit", ""}, {"PreToolUse", "*"}, {"PostToolUse", "*"}, {"PostToolUseFailure", "*"}}
}

// Project is the client's file in a project's directory, "" where it has none.
func (c *Client) Project(dir string) string {
	if len(c.project) == 0 {
		return ""
	}
	return filepath.Join(append([]string{dir}, c.project...)...)
}

// All are the clients that are known by name.
var All = []*Client{
	{Name: "claude-code", Title: "Claude Code", Layout: Layout{Key: "mcpServers"}, project: []string{".mcp.json"},
		home: func(w World) []string {
			if dir := w.Env("CLAUDE_CONFIG_DIR"); dir != "" {
				return []string{filepath.Join(dir, ".claude.json")}
			}
			return []string{filepath.Join(w.Home, ".claude.json")}
		}, hooks: func(w World) string {
			if dir := w.Env("CLAUDE_CONFIG_DIR"); dir != "" {
				return filepath.Join(dir, "settings.json")
			}
			return filepath.Join(w.Home, ".claude", "settings.json")
		}},
	{Name: "claude-desktop", Title: "Claude Desktop", Layout: Layout{Key: "mcpServers"},
		home: func(w World) []string {
			files := []string{filepath.Join(w.support(), "Claude", "claude_desktop_config.json")}
			if w.OS == "linux" {
				files = append(files, filepath.Join(w.support(), "claude", "claude_desktop_config.json"))
			}
			return files
		}},
	{Name: "cursor", Title: "Cursor", Layout: Layout{Key: "mcpServers"}, home: inHome(".cursor", "mcp.json"), project: []string{".cursor", "mcp.json"}},
	{Name: "vscode", Title: "VS Code", Layout: Layout{Key: "servers"}, project: []string{".vscode", "mcp.json"},
		home: func(w World) []string { return []string{filepath.Join(w.support(), "Code", "User", "mcp.json")} }},
	{Name: "codex", Title: "Codex CLI", Layout: Layout{Key: "mcp_servers", TOML: true}, project: []string{".codex", "config.toml"},
		home: func(w World) []string {
			if dir := w.Env("CODEX_HOME"); dir != "" {
				return []string{filepath.Join(dir, "config.toml")}
			}
			return []string{filepath.Join(w.Home, ".codex", "config.toml")}
		}},
	{Name: "gemini", Title: "Gemini CLI", Layout: Layout{Key: "mcpServers"}, home: inHome(".gemini", "settings.json"), project: []string{".gemini", "settings.json"}},
	{Name: "windsurf", Title: "Windsurf", Layout: Layout{Key: "mcpServers"},
		home: func(w World) []string {
			return []string{filepath.Join(w.Home, ".codeium", "windsurf", "mcp_config.json"), filepath.Join(w.Home, ".codeium", "mcp_config.json")}
		}},
	{Name: "zed", Title: "Zed", Layout: Layout{Key: "context_servers"}, project: []string{".zed", "settings.json"},
		home: func(w World) []string {
			if w.OS == "windows" {
				return []string{filepath.Join(w.support(), "Zed", "settings.json")}
			}
			files := []string{filepath.Join(w.dotConfig(), "zed", "settings.json")}
			if w.OS == "darwin" {
				files = append(files, filepath.Join(w.support(), "Zed", "settings.json"))
			}
			return files
		}},
	{Name: "opencode", Title: "opencode", Layout: Layout{Key: "mcp", Vector: true}, project: []string{"opencode.json"},
		home: func(w World) []string {
			dir := filepath.Join(w.dotConfig(), "opencode")
			return []string{filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc")}
		}},
}

// Generic is the layout of a file that no client is known for by name.
var Generic = Layout{Key: "mcpServers"}

// Named finds a client by its name, nil where there is none.
func Named(name string) *Client {
	for _, c := range All {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func inHome(parts ...string) func(World) []string {
	return func(w World) []string { return []string{filepath.Join(append([]string{w.Home}, parts...)...)} }
}

// dotConfig is where programs that follow XDG keep their configuration.
func (w World) dotConfig() string {
	if dir := w.Env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(w.Home, ".config")
}

// support is where the system keeps the configuration of applications.
func (w World) support() string {
	switch w.OS {
	case "darwin":
		return filepath.Join(w.Home, "Library", "Application Support")
	case "windows":
		if dir := w.Env("APPDATA"); dir != "" {
			return dir
		}
		return filepath.Join(w.Home, "AppData", "Roaming")
	}
	return w.dotConfig()
}

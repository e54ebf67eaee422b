package clients

import (
	"cmp"
	"path/filepath"
)

// A Client is a program that starts MCP servers, and where it writes down which.
type Client struct {
	Name   string // as commands take it
	Title  string // as people call it
	Layout Layout

	home    func(World) []string // its own files, the likeliest first
	project string               // the file in a project, "" where it has none
	locals  string               // in its own file, the object of directories with servers of their own
	hooks   func(World) string   // the file of what it runs at events, nil where that is not known
	// projectHooks is that file in a project, of one account's own; "" where it has none.
	projectHooks string
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
	return c.hooks(w), hookEvents
}

// ProjectHooks is the same of a project's directory: the file in which the client keeps
// what one account wants there, and nobody else who works on the project.
func (c *Client) ProjectHooks(dir string) (file string, events []HookEvent) {
	if c.projectHooks == "" {
		return "", nil
	}
	return filepath.Join(dir, c.projectHooks), hookEvents
}

var hookEvents = []HookEvent{{"UserPromptSubmit", ""}, {"PreToolUse", "*"}, {"PostToolUse", "*"}, {"PostToolUseFailure", "*"}}

// Project is the client's file in a project's directory, "" where it has none.
func (c *Client) Project(dir string) string {
	if c.project == "" {
		return ""
	}
	return filepath.Join(dir, c.project)
}

// Local is how the client's own file writes down the servers that it has in one
// directory alone; ok is false where it keeps none so.
func (c *Client) Local(dir string) (l Layout, ok bool) {
	l = c.Layout
	l.Under = []string{c.locals, dir}
	return l, c.locals != ""
}

// Locals are the directories that have servers of their own in the client's own file, in
// its order.
func (c *Client) Locals(b []byte) (dirs []string) {
	if c.locals == "" || len(b) > MaxBytes {
		return nil
	}
	root, err := parseJSON(b)
	if err != nil {
		return nil
	}
	all, err := objectIn(b, &root, c.locals)
	if err != nil || all == nil {
		return nil
	}
	for dir, m := range members(all) {
		if servers, err := objectIn(b, &m.Value, c.Layout.Key); err == nil && servers != nil {
			if all, _ := parts(servers); len(all) > 0 {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// All are the clients that are known by name.
var All = []*Client{
	{Name: "claude-code", Title: "Claude Code", Layout: Layout{Key: "mcpServers"}, project: ".mcp.json", projectHooks: ".claude/settings.local.json", locals: "projects",
		home:  func(w World) []string { return []string{w.in("CLAUDE_CONFIG_DIR", "", ".claude.json")} },
		hooks: func(w World) string { return w.in("CLAUDE_CONFIG_DIR", ".claude", "settings.json") }},
	{Name: "claude-desktop", Title: "Claude Desktop", Layout: Layout{Key: "mcpServers"},
		home: func(w World) []string {
			files := []string{filepath.Join(w.support(), "Claude", "claude_desktop_config.json")}
			if w.OS == "linux" {
				files = append(files, filepath.Join(w.support(), "claude", "claude_desktop_config.json"))
			}
			return files
		}},
	{Name: "cursor", Title: "Cursor", Layout: Layout{Key: "mcpServers"}, home: inHome(".cursor/mcp.json"), project: ".cursor/mcp.json"},
	{Name: "vscode", Title: "VS Code", Layout: Layout{Key: "servers"}, project: ".vscode/mcp.json",
		home: func(w World) []string { return []string{filepath.Join(w.support(), "Code", "User", "mcp.json")} }},
	{Name: "codex", Title: "Codex CLI", Layout: Layout{Key: "mcp_servers", TOML: true}, project: ".codex/config.toml",
		home: func(w World) []string { return []string{w.in("CODEX_HOME", ".codex", "config.toml")} }},
	{Name: "gemini", Title: "Gemini CLI", Layout: Layout{Key: "mcpServers"}, home: inHome(".gemini/settings.json"), project: ".gemini/settings.json"},
	{Name: "windsurf", Title: "Windsurf", Layout: Layout{Key: "mcpServers"}, home: inHome(".codeium/windsurf/mcp_config.json", ".codeium/mcp_config.json")},
	{Name: "zed", Title: "Zed", Layout: Layout{Key: "context_servers"}, project: ".zed/settings.json",
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
	{Name: "opencode", Title: "opencode", Layout: Layout{Key: "mcp", Vector: true}, project: "opencode.json",
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

func inHome(files ...string) func(World) []string {
	return func(w World) (all []string) {
		for _, file := range files {
			all = append(all, filepath.Join(w.Home, file))
		}
		return all
	}
}

// in is a file in the directory that a variable names, else in one of the home directory.
func (w World) in(variable, home, file string) string {
	return filepath.Join(cmp.Or(w.Env(variable), filepath.Join(w.Home, home)), file)
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
		return w.in("APPDATA", "AppData/Roaming", "")
	}
	return w.dotConfig()
}

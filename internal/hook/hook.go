// Package hook is what a client's own tools are to the gate: a server whose calls the
// client makes itself, once it was told that they may be. It is pure; it reads what a
// client says of a call and makes the call of it that is judged.
//
// A host has a catalogue, contracts that an operator finds in his policy and may change
// there, and a few words on each tool that no policy has: whether an argument is a
// command line, which argument only tells a person about the call, and where the result
// names the file that was read. A tool that stands nowhere is judged as `other`, which
// asks.
package hook

import (
	"bytes"
	"cmp"
	"embed"
	"slices"
	"strings"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/shell"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// A Host is a client whose own tools are judged.
type Host struct {
	// Name is how contracts and records call it, as a server.
	Name string
	// Policy is one of its tools alone, and Contracts what stands below `tools:` in it.
	Policy, Contracts string
	// Settings are files below a project's directory by which it can change the
	// environment that the client's shell runs in.
	Settings []string

	definitions []gate.Definition
	tools       map[string]tool
	free        []string // names, or beginnings of names with * behind
	defined     map[string]defined
}

// tool is what a contract does not say of a tool.
type tool struct {
	Shell bool     // its argument "command" is a command line
	How   []string // arguments that say how that is run, and not what or where
	Drop  []string // arguments that do nothing
	File  string   // where its result names the file that it read or wrote
	Edits string   // the argument that names the file it changes
	Reads bool     // it only reads on this machine, whoever judges it
}

//go:embed hosts
var hosts embed.FS

// Named finds a host by its name, nil where there is none.
func Named(name string) *Host {
	h := map[string]*Host{
		"claude-code": {tools: claudeCode, free: claudeCodeFree, defined: claudeCodeDefined, Settings: []string{".claude/settings.json", ".claude/settings.local.json"}},
		"host":        {tools: anyHost},
	}[name]
	if h == nil {
		return nil
	}
	definitions, err := hosts.ReadFile("hosts/" + name + ".jsonl")
	file, ferr := hosts.ReadFile("hosts/" + name + ".yaml")
	if err = cmp.Or(err, ferr); err != nil {
		panic(err) // it is part of the program
	}
	h.Name, h.Policy = name, string(file)
	_, h.Contracts, _ = strings.Cut(h.Policy, "\ntools:\n")
	for _, line := range bytes.Split(bytes.TrimSpace(definitions), []byte("\n")) {
		h.definitions = append(h.definitions, gate.Definition{Server: name, Kind: gate.HostKind, Raw: line})
	}
	return h
}

// Collection is the closed collection that the contracts name: files below the directory
// that the client was opened in. Declared is its line in a policy.
const (
	Collection = "project_file"
	Declared   = "  " + Collection + ": { closed: true } # read below the directory that the client was opened in\n"
)

// Definitions are the host's tools.
func (h *Host) Definitions() []gate.Definition { return h.definitions }

// claudeCode are the tools of Claude Code that are judged by a contract of their own.
var claudeCode = map[string]tool{
	"Bash":         {Shell: true, Drop: []string{"description", "timeout"}, How: []string{"run_in_background", "dangerouslyDisableSandbox"}},
	"Monitor":      {Shell: true, Drop: []string{"description", "timeout_ms", "persistent"}},
	"Read":         {File: "/file/filePath", Reads: true},
	"Glob":         {Reads: true},
	"Grep":         {Reads: true},
	"LS":           {Reads: true},
	"Edit":         {Edits: "file_path"},
	"MultiEdit":    {Edits: "file_path"},
	"Write":        {Edits: "file_path"},
	"NotebookEdit": {Edits: "notebook_path"},
	"WebFetch":     {Drop: []string{"prompt"}},
	"WebSearch":    {},
}

// claudeCodeFree are its tools that do nothing but within itself, and those of MCP
// servers: what goes through Writ is judged there.
var claudeCodeFree = []string{
	"mcp__*", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TaskOutput", "TaskStop", "TodoWrite", "TodoRead",
	"BashOutput", "KillShell", "KillBash", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "ReportFindings", "ToolSearch",
	"CronList", "CronDelete", "ListMcpResourcesTool", "ReadMcpResourceTool", "NotebookRead",
}

// A Definition is a file by which Claude Code works for a call: it may start programs.
type Definition struct {
	Kind string // the directory of its configuration: agents or skills
	Name string
}

// defined is a tool that works by a definition, and what else it may be called with.
type defined struct {
	kind, at string
	builtin  []string // names that the client has itself; nil: the person's own are looked for
	more     []string
}

// claudeCodeDefined are those of Claude Code. Isolation and modes, which decide where and
// under whose eyes an agent works, are not among its arguments, nor is what a skill is
// given, which may stand in a command of its own.
var claudeCodeDefined = map[string]defined{
	"Agent": {"agents", "subagent_type", builtinAgents, agentArguments},
	"Task":  {"agents", "subagent_type", builtinAgents, agentArguments},
	"Skill": {"skills", "skill", nil, nil},
}

var (
	builtinAgents  = []string{"", "general-purpose", "Explore", "Plan", "statusline-setup"}
	agentArguments = []string{"description", "prompt", "model", "run_in_background", "name"}
)

// definition is what a call works by, nil where it may be anything.
func (d *defined) definition(arguments strictjson.Value) *Definition {
	if arguments.Kind() != strictjson.Object || !onlyHas(arguments, d.at, d.more) {
		return nil
	}
	name, is := arguments.Get(d.at).Text()
	if !is && arguments.Get(d.at).Exists() || d.builtin != nil && !slices.Contains(d.builtin, name) || d.builtin == nil && !skillName().MatchString(name) {
		return nil
	}
	return &Definition{d.kind, name}
}

var skillName = text.Pattern(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// anyHost are the tools by which any other host may tell what its own do.
var anyHost = map[string]tool{
	"shell":      {Shell: true, Drop: []string{"description"}},
	"read_file":  {File: "/path", Reads: true},
	"list_files": {Reads: true},
	"edit_file":  {Edits: "path"},
	"write_file": {Edits: "path"},
	"fetch":      {},
	"search_web": {},
}

// Reads is behind the name of a tool that takes command lines, for one that only reads.
const Reads = "_reads"

// Other is the tool that everything else is judged as.
const Other = "other"

// A Call is a call of a host's tool as the gate gets it.
type Call struct {
	gate.Call
	// Judged is false for what a host does within itself: there is nothing to decide.
	Judged bool
	// Reads says that nothing is done but reading on this machine. It may go on where
	// nobody can be asked to judge it.
	Reads bool
	// Why says in a sentence why it is not known to do no harm, "" where the contract's own
	// words are enough.
	Why string
	// Steered says that it asks whoever vouches for it: what its words run is not known.
	Steered bool
	// Names are the words of a command line, which may name files; Moved says that it goes
	// to another directory on the way.
	Names []string
	Moved bool
	// Definition is what it works by, which is nothing to judge where the definition is the
	// client's own or the person's; nil where it may be any.
	Definition *Definition
	// File is where its result names the file it read, "" where it names none.
	File string
}

// Call is what a call is judged as. trusted says that it begins in the directory that
// its person opened the client in.
func (h *Host) Call(name string, arguments strictjson.Value, trusted bool) Call {
	for _, f := range h.free {
		if prefix, any := strings.CutSuffix(f, "*"); name == f || any && strings.HasPrefix(name, prefix) {
			return Call{}
		}
	}
	c := Call{Call: gate.Call{Server: h.Name, Tool: name}, Judged: true}
	t, known := h.tools[name]
	if !known || arguments.Kind() != strictjson.Object {
		c.Tool = Other
		raw := arguments.Raw()
		if raw == nil {
			raw = []byte("null")
		}
		c.Arguments = strictjson.Make(strictjson.Member{Name: "tool", Value: strictjson.Quote(name)},
			strictjson.Member{Name: "input", Value: strictjson.Quote(string(raw))})
		if d, is := h.defined[name]; is {
			c.Why, c.Definition = "what it works by may be a file of the project, which can start programs", d.definition(arguments)
		}
		return c
	}
	left := arguments.Raw()
	for _, d := range t.Drop {
		if arguments.Get(d).Exists() {
			left = strictjson.Delete(left, d)
		}
	}
	c.Arguments, c.File = strictjson.Of(left), t.File
	c.Reads = t.Reads
	if file, is := arguments.Get(t.Edits).Text(); t.Edits != "" && (!is || Steers(file)) {
		c.Why = "a file of this name says which programs run"
	}
	if !t.Shell {
		return c
	}
	command, is := arguments.Get("command").Text()
	r := shell.Read(command)
	c.Names, c.Moved = r.Words, r.Moved
	switch {
	case !is:
		c.Why = NotRead + "there is no command in it"
	case !r.Reads:
		c.Why = NotRead + r.Why
	case !onlyHas(c.Arguments, "command", t.How): // which say what is run, and where
		c.Why = NotRead + "it has an argument that nothing is known of"
	case r.Place && !trusted:
		c.Why = NotRead + "what it reads says which programs run, and it does not begin in the directory the client was opened in"
	default:
		c.Reads, c.Tool = true, name+Reads
	}
	return c
}

// onlyHas reports whether an object has no member but one and some others.
func onlyHas(v strictjson.Value, one string, more []string) bool {
	for name := range v.Members() {
		if name != one && !slices.Contains(more, name) {
			return false
		}
	}
	return true
}

// NotRead begins what is said of a command line that is not known to only read.
const NotRead = "this command is not known to only read: "

// Shell reports whether a tool takes command lines.
func (h *Host) Shell(name string) bool { return h.tools[name].Shell }

// Result is the result of a tool as it is recorded. file is the file that it read, where
// the caller found that to lie in the directory of the client, else "".
func Result(response []byte, file string) []byte {
	content := []byte("{}")
	if file != "" {
		content = strictjson.Set(content, "files", append(append([]byte{'['}, strictjson.Quote(file)...), ']'))
	}
	content = strictjson.Set(content, "response", response)
	return strictjson.Set([]byte(`{"content":[]}`), "structuredContent", content)
}

// Failed is the result of a tool that failed.
func Failed(text string) []byte {
	block := strictjson.Set([]byte(`{"type":"text"}`), "text", strictjson.Quote(text))
	return append(append([]byte(`{"content":[`), block...), `],"isError":true}`...)
}

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/writ-project/writ/gate"
)

// Config is writ.yaml. Unknown keys, duplicate keys, anchors and second
// documents stop the start; each fault is reported with file, line and column.
type Config struct {
	// Servers are the MCP servers behind the gateway, by unique name.
	Servers []ServerConfig `yaml:"servers"`
	// Policy is the policy file, relative to the configuration file.
	Policy string `yaml:"policy"`
	// Shadow records and decides, but lets every call pass. It is loud, and
	// what it lets pass is never an accepted act.
	Shadow bool `yaml:"shadow"`

	file string
	dir  string
}

// ServerConfig is one MCP server: a command started as a child process, or the
// URL of a Streamable HTTP endpoint.
type ServerConfig struct {
	// Name is how contracts and refusals call the server: a-z, 0-9 and -.
	Name string `yaml:"name"`
	// Command is an argument vector; no shell reads it.
	Command []string `yaml:"command"`
	// Dir is the child's working directory, relative to the configuration.
	Dir string `yaml:"dir"`
	// Env is, with PATH, HOME, TMPDIR and LANG, the child's whole environment.
	// ${NAME} takes a value from writ's own environment; unset is an error.
	Env map[string]string `yaml:"env"`
	// URL is an http or https endpoint.
	URL string `yaml:"url"`
	// Headers go to the URL with each request; ${NAME} as in Env. They are the
	// server's own credential: nothing a client sends is ever passed on.
	Headers map[string]string `yaml:"headers"`
	// Wire is auto (default), legacy (<= 2025-11-25) or modern (2026-07-28).
	Wire string `yaml:"wire"`
	// Limits bound what the server may do.
	Limits LimitsConfig `yaml:"limits"`
}

// LimitsConfig bounds one server; zero is the default.
type LimitsConfig struct {
	// Call is how long one call may take, 60s by default, at most 1h.
	Call time.Duration `yaml:"call"`
	// Start is how long the server may take to answer first, 30s by default.
	Start time.Duration `yaml:"start"`
}

// faults is an error made of positioned defects, printed one to a line.
type faults []gate.Fault

func (fs faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

func configFault(file string, line, col int, hint, format string, args ...any) gate.Fault {
	return gate.Fault{File: file, Line: line, Column: col, Message: fmt.Sprintf(format, args...), Hint: hint}
}

const maxConfigBytes = 1 << 20

// readOperatorFile reads a file the operator wrote: a regular file of at most
// 1 MiB that only its owner may write (attack C06).
func readOperatorFile(file string) ([]byte, error) {
	fi, err := os.Stat(file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, faults{configFault(file, 0, 0, "writ init", "no such file")}
		}
		return nil, faults{configFault(file, 0, 0, "", "cannot be read")}
	}
	switch {
	case !fi.Mode().IsRegular():
		return nil, faults{configFault(file, 0, 0, "", "not a regular file")}
	case fi.Size() > maxConfigBytes:
		return nil, faults{configFault(file, 0, 0, "", "larger than 1 MiB")}
	case runtime.GOOS != "windows" && fi.Mode().Perm()&0o022 != 0:
		return nil, faults{configFault(file, 0, 0, "chmod go-w "+file, "others may write it")}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, faults{configFault(file, 0, 0, "", "cannot be read")}
	}
	return b, nil
}

// loadConfig reads and checks writ.yaml, without starting anything.
func loadConfig(file string) (*Config, error) {
	b, err := readOperatorFile(file)
	if err != nil {
		return nil, err
	}
	var root yaml.Node
	c := &Config{file: file, dir: filepath.Dir(file)}
	if err := yaml.Load(b, &root, yaml.WithUniqueKeys(), yaml.WithSingleDocument()); err != nil {
		return nil, yamlFaults(file, err)
	}
	if len(root.Content) == 0 {
		return nil, faults{configFault(file, 1, 1, "writ init", "empty: servers and policy are needed")}
	}
	if fs := noAliases(file, &root); len(fs) > 0 {
		return nil, fs
	}
	if err := yaml.Load(b, c, yaml.WithKnownFields(), yaml.WithUniqueKeys(), yaml.WithSingleDocument()); err != nil {
		return nil, yamlFaults(file, err)
	}
	if fs := c.check(&root); len(fs) > 0 {
		return nil, fs
	}
	return c, nil
}

func yamlFaults(file string, err error) faults {
	var many *yaml.LoadErrors
	if errors.As(err, &many) {
		var fs faults
		for _, e := range many.Errors {
			fs = append(fs, configFault(file, e.Mark.Line, e.Mark.Column, "", "%s", oneLine(e.Message, 120)))
		}
		return fs
	}
	var one *yaml.LoadError
	if errors.As(err, &one) {
		return faults{configFault(file, one.Mark.Line, one.Mark.Column, "", "%s", oneLine(one.Message, 120))}
	}
	return faults{configFault(file, 1, 1, "", "%s", oneLine(err.Error(), 120))}
}

func noAliases(file string, n *yaml.Node) (fs faults) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Tag == "!!merge" {
		fs = append(fs, configFault(file, n.Line, n.Column, "write the value out", "anchors, aliases and merge keys are not accepted"))
	}
	for _, c := range n.Content {
		if c.Kind != yaml.AliasNode || n.Kind != yaml.AliasNode {
			fs = append(fs, noAliases(file, c)...)
		}
	}
	return fs
}

var (
	serverName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	envRef     = regexp.MustCompile(`\$\{([^}]*)\}`)
)

// check finds what the types cannot. Positions come from the node tree.
func (c *Config) check(root *yaml.Node) (fs faults) {
	doc := root.Content[0]
	at := func(i int, key string) (int, int) {
		n := child(child(doc, "servers"), i)
		if k := child(n, key); k != nil {
			return k.Line, k.Column
		}
		if n != nil {
			return n.Line, n.Column
		}
		return doc.Line, doc.Column
	}
	add := func(i int, key, hint, format string, args ...any) {
		line, col := at(i, key)
		fs = append(fs, configFault(c.file, line, col, hint, format, args...))
	}
	if len(c.Servers) == 0 {
		fs = append(fs, configFault(c.file, doc.Line, doc.Column, "servers: [{name: files, command: [...]}]", "no server"))
	}
	if c.Policy == "" {
		fs = append(fs, configFault(c.file, doc.Line, doc.Column, "policy: policy.yaml", "no policy"))
	}
	seen := map[string]bool{}
	for i := range c.Servers {
		s := &c.Servers[i]
		switch {
		case !serverName.MatchString(s.Name):
			add(i, "name", "", "a server's name has 1 to 32 of a-z, 0-9 and -, and does not start with -")
		case seen[s.Name]:
			add(i, "name", "", "two servers have this name")
		}
		seen[s.Name] = true
		if (len(s.Command) == 0) == (s.URL == "") {
			add(i, "name", "", "a server has either a command or a url")
		}
		if s.URL != "" {
			u, err := url.Parse(s.URL)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
				add(i, "url", "url: https://host/mcp", "not an absolute http or https URL without user and fragment")
			}
			if len(s.Env) > 0 || s.Dir != "" {
				add(i, "url", "", "env and dir belong to a command")
			}
		} else if len(s.Headers) > 0 {
			add(i, "headers", "", "headers belong to a url")
		}
		if len(s.Command) > 0 && s.Command[0] == "" {
			add(i, "command", "", "the command is empty")
		}
		switch s.Wire {
		case "", "auto", "legacy", "modern":
		default:
			add(i, "wire", "", "wire is auto, legacy or modern")
		}
		if s.Limits.Call < 0 || s.Limits.Call > time.Hour || s.Limits.Start < 0 || s.Limits.Start > time.Hour {
			add(i, "limits", "", "a limit is between 0s and 1h")
		}
		for _, m := range []struct {
			key string
			m   map[string]string
		}{{"env", s.Env}, {"headers", s.Headers}} {
			names := make([]string, 0, len(m.m))
			for k := range m.m {
				names = append(names, k)
			}
			sort.Strings(names)
			for _, k := range names {
				if m.key == "env" && !envName.MatchString(k) {
					add(i, m.key, "", "not a name of an environment variable")
				}
				v, missing := expand(m.m[k])
				if missing != "" {
					add(i, m.key, "export "+missing+"=…", "${%s} is not set", missing)
				}
				m.m[k] = v
			}
		}
		if s.Dir != "" && !filepath.IsAbs(s.Dir) {
			s.Dir = filepath.Join(c.dir, s.Dir)
		}
	}
	if c.Policy != "" && !filepath.IsAbs(c.Policy) {
		c.Policy = filepath.Join(c.dir, c.Policy)
	}
	return fs
}

// child finds a mapping's value by key or a sequence's item by index.
func child(n *yaml.Node, key any) *yaml.Node {
	if n == nil {
		return nil
	}
	switch k := key.(type) {
	case int:
		if n.Kind == yaml.SequenceNode && k < len(n.Content) {
			return n.Content[k]
		}
	case string:
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == k {
				return n.Content[i+1]
			}
		}
	}
	return nil
}

// expand replaces ${NAME}; missing is the first name that is not usable or not set.
func expand(s string) (out, missing string) {
	out = envRef.ReplaceAllStringFunc(s, func(ref string) string {
		name := ref[2 : len(ref)-1]
		v, ok := os.LookupEnv(name)
		if !envName.MatchString(name) || !ok {
			if missing == "" {
				missing = oneLine(name, 40)
			}
		}
		return v
	})
	return out, missing
}

// loadPolicy reads and parses a policy file.
func loadPolicy(file string) (*gate.Policy, error) {
	b, err := readOperatorFile(file)
	if err != nil {
		return nil, err
	}
	p, fs := gate.ParsePolicy(file, b)
	if len(fs) > 0 {
		return nil, faults(fs)
	}
	return p, nil
}

// stateDir returns the directory writ keeps its state in, created with mode
// 0700: the flag's value, $XDG_STATE_HOME/writ, or the platform's equivalent.
func stateDir(flag string) (string, error) {
	dir := flag
	if dir == "" {
		base := os.Getenv("XDG_STATE_HOME")
		if base == "" || !filepath.IsAbs(base) {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", fail(exitConfig, "writ … --state DIR", "no home directory to keep the state in")
			}
			switch runtime.GOOS {
			case "darwin":
				base = filepath.Join(home, "Library", "Application Support")
			case "windows":
				if base, err = os.UserCacheDir(); err != nil {
					return "", fail(exitConfig, "writ … --state DIR", "no directory to keep the state in")
				}
			default:
				base = filepath.Join(home, ".local", "state")
			}
		}
		dir = filepath.Join(base, "writ")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fail(exitConfig, "", "the state directory has no absolute path")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fail(exitIO, "writ … --state DIR", "the state directory cannot be made")
	}
	return dir, nil
}

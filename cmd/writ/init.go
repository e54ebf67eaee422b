package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

func initCommand() *cobra.Command {
	var f flags
	var name, out string
	c := &cobra.Command{
		Use:   "init [--config FILE | -- COMMAND [ARG …]]",
		Short: "Discover the servers' tools and draft a policy",
		Long: "Start the servers of writ.yaml (its policy need not exist yet), or the one after --, and\n" +
			"draft a commented policy: what the server calls a read is drafted as a read whose output\n" +
			"vouches for nothing until a person raises a label; everything else is closed until a\n" +
			"person opens it. Nothing is overwritten.",
		Example: "  writ init --name files -- npx -y @modelcontextprotocol/server-filesystem /srv",
		RunE: func(c *cobra.Command, args []string) error {
			servers, configured, err := f.initServers(name, args)
			if err != nil {
				return err
			}
			out = cmp.Or(out, configured, "policy.yaml")
			there := cli.Fail(cli.ExitConfig, "writ init --out OTHER.yaml", "%s is there already; nothing was written", cli.Printable(out))
			if _, err := os.Stat(out); err == nil {
				return there
			}
			cat, err := published(c, servers)
			if err != nil {
				return err
			}
			text := draft(cat)
			if _, fs := policy.Parse(out, []byte(text)); len(fs) > 0 {
				return cli.Fail(cli.ExitIO, "", "the draft is not a policy: %w", config.Faults(fs))
			}
			if err := private.WriteOnce(out, []byte(text), 0o600); errors.Is(err, os.ErrExist) {
				return there
			} else if err != nil {
				return cli.Fail(cli.ExitIO, "", "the draft cannot be written")
			}
			fmt.Fprintf(c.OutOrStdout(), "drafted %s: read it, raise labels, open what you want, then run\n  writ check --policy %s\n", cli.Printable(out), cli.Printable(out))
			return nil
		},
	}
	c.Flags().StringVar(&f.config, "config", "", "configuration `FILE`")
	c.Flags().StringVar(&name, "name", "", "`NAME` for the server after --")
	c.Flags().StringVar(&out, "out", "", "policy `FILE` to write (default: the one of --config, else policy.yaml)")
	return c
}

// published is what servers list, in a state that is thrown away.
func published(c *cobra.Command, servers []upstream.Config) (*gate.Catalogue, error) {
	state, err := os.MkdirTemp("", "writ-init-")
	if err != nil {
		return nil, cli.Fail(cli.ExitIO, "", "no temporary directory")
	}
	defer os.RemoveAll(state)
	o := newFiles(state)
	o.servers = servers
	if o.policy, err = noTools(); err != nil {
		return nil, err
	}
	g, stop, err := o.start(c.Context(), logger(c.ErrOrStderr(), errorLevel+4))
	if err != nil {
		return nil, err
	}
	defer stop()
	fmt.Fprintln(c.ErrOrStderr(), "asking the servers for their tools …")
	if err := g.Settled(c.Context()); err != nil {
		return nil, cli.Fail(cli.ExitIO, "", "the servers did not answer: %w", err)
	}
	for n, err := range g.Failed() {
		return nil, cli.Fail(cli.ExitIO, "", "server %s cannot be reached: %w", n, err)
	}
	cat, findings := g.Catalogue()
	for _, fd := range findings {
		if fd.Reason != "" && fd.Tool == "" || strings.HasPrefix(string(fd.Reason), "payload") {
			fmt.Fprintf(c.ErrOrStderr(), "writ: %s: %s\n", cli.Printable(fd.Server), cli.Printable(fd.Message))
		}
	}
	return cat, nil
}

func (f *flags) initServers(name string, command []string) (servers []upstream.Config, policy string, err error) {
	if (f.config == "") == (len(command) == 0) {
		return nil, "", cli.Fail(cli.ExitUsage, "writ init --help", "either --config or a command after --")
	}
	if f.config == "" {
		name = cmp.Or(name, "server")
		if !config.ServerName.MatchString(name) {
			return nil, "", cli.Fail(cli.ExitUsage, "", "a server's name has 1 to 32 of a-z, 0-9 and -, and does not start with -")
		}
		return []upstream.Config{{Name: name, Command: command}}, "", nil
	}
	cfg, err := config.Read(f.config)
	if err != nil {
		return nil, "", config.Invalid(err)
	}
	for _, s := range cfg.Servers {
		servers = append(servers, s.Upstream())
	}
	return servers, filepath.Clean(cfg.Policy), nil
}

// draft writes a policy for what the servers publish. What a server says of
// itself only ever closes: a tool is drafted open when the server calls it a
// read of its own closed world, and even then its output vouches for nothing.
func draft(cat *gate.Catalogue) string {
	var b strings.Builder
	b.WriteString(`# Drafted by writ init. A person reads this before it is used.
#
# effect   read, egress, write, send, transfer, delete, auth; all but read are gated.
# closed   the tool is neither listed nor callable until the line is taken out.
# outputs  who can have written a field: operator, user, system, party, external.
#          "system" only where no stranger can choose the value: ids, paths it lists.
# pin      SHA-256 of the definition below was made from; any change closes the tool.

# collections: { thing: { closed: true } }   # closed: only your own side can add one

tools:
`)
	n := 0
	for _, t := range cat.Tools() {
		if t.Method != policy.CallTool || t.State == gate.Refused {
			continue
		}
		n++
		draftTool(&b, t)
	}
	if n == 0 {
		return strings.Replace(b.String(), "\ntools:\n", "\ntools: {}\n", 1)
	}
	return b.String()
}

func draftTool(b *strings.Builder, t *gate.Tool) {
	a := strictjson.Get(t.Raw, "annotations")
	is := func(hint string) bool { return string(strictjson.Get(a, hint)) == "true" }
	not := func(hint string) bool { return string(strictjson.Get(a, hint)) == "false" }
	fmt.Fprintf(b, "  %s/%s:\n", t.Server, t.Name)
	if d, ok := strictjson.Text(strictjson.Get(t.Raw, "description")); ok {
		first, _, _ := strings.Cut(strings.TrimSpace(d), "\n")
		fmt.Fprintf(b, "    # the server says: %s\n", cli.OneLine(first, 100))
	}
	read := is("readOnlyHint") && !is("destructiveHint")
	switch {
	case read && not("openWorldHint"):
		b.WriteString("    effect: read            # by the server's own word: is it?\n")
	case read:
		b.WriteString("    effect: egress          # the server calls it a read that may reach outside; if it does not: read\n    closed: true\n")
	default:
		b.WriteString("    effect: [write, delete] # unknown: say what it can do\n    closed: true            # take this line out to open it\n")
	}
	fmt.Fprintf(b, "    pin: %s\n", t.Pin)
	if !read {
		draftArgs(b, t)
	}
	draftOutputs(b, t)
}

func draftArgs(b *strings.Builder, t *gate.Tool) {
	args := schemaLeaves(strictjson.Get(t.Raw, "inputSchema"))
	if len(args) == 0 {
		b.WriteString("    # no arguments: `no_args: allow` lets it run without evidence\n")
		return
	}
	b.WriteString("    args:\n")
	for _, a := range args {
		role := "target"
		if strictjson.Get(a.schema, "enum") != nil {
			role = "enum"
		} else if kind, _ := strictjson.Text(strictjson.Get(a.schema, "type")); kind == "boolean" {
			role = "control"
		}
		fmt.Fprintf(b, "      %s: { role: %s }\n", yamlScalar(a.pointer), role)
	}
}

// draftOutputs lists the fields of the published output schema. Fields that
// look like identifiers get a suggestion, never a label.
func draftOutputs(b *strings.Builder, t *gate.Tool) {
	fields := schemaLeaves(strictjson.Get(t.Raw, "outputSchema"))
	if len(fields) == 0 {
		b.WriteString("    # it publishes no output schema: text vouches through `in: text` and an extractor\n")
		return
	}
	b.WriteString("    outputs:\n")
	for _, f := range fields {
		fmt.Fprintf(b, "      - { at: %s, label: external }", yamlScalar(f.pointer))
		if looksLikeID(f.pointer) {
			b.WriteString(" # system, if only the server itself can set it")
		}
		b.WriteByte('\n')
	}
}

// yamlScalar writes a pointer so that YAML reads it back whole.
func yamlScalar(s string) string {
	for _, r := range s {
		if !strings.ContainsRune("/*_-.", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return string(strictjson.Quote(s)) // a JSON string is a YAML one
		}
	}
	return s
}

// schemaLeaf is one value a schema describes.
type schemaLeaf struct {
	pointer string // with * for an index
	schema  []byte
}

// schemaLeaves returns what a schema's properties and items lead to, sorted,
// within bounds that a draft has use for.
func schemaLeaves(schema []byte) (out []schemaLeaf) {
	var walk func(schema []byte, at string, depth int)
	walk = func(schema []byte, at string, depth int) {
		if depth > 4 || len(out) >= 40 {
			return
		}
		if props, ok := strictjson.Members(strictjson.Get(schema, "properties")); ok && len(props) > 0 {
			for _, p := range props {
				walk(p.Value, at+strictjson.Pointer([]string{p.Name}), depth+1)
			}
			return
		}
		if items := strictjson.Get(schema, "items"); strictjson.KindOf(items) == strictjson.Object {
			walk(items, at+"/*", depth+1)
			return
		}
		if at != "" {
			out = append(out, schemaLeaf{at, schema})
		}
	}
	walk(schema, "", 0)
	slices.SortFunc(out, func(a, b schemaLeaf) int { return strings.Compare(a.pointer, b.pointer) })
	return out
}

func looksLikeID(pointer string) bool {
	name := strings.ToLower(pointer[strings.LastIndexByte(pointer, '/')+1:])
	return name == "id" || name == "uuid" || name == "path" || name == "uri" || strings.HasSuffix(name, "_id") || strings.HasSuffix(pointer, "Id")
}

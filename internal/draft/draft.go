// Package draft writes the policy that a person starts from: what servers publish,
// pinned, with nothing believed. A read is open as far as it is asked with plain words;
// an act is open and waits for a person, but where the user typed whom and what it is
// for; no result vouches for anything. What a server says of itself opens nothing alone:
// the name of a tool has to say that it reads, or at least not that it acts.
package draft

import (
	"fmt"
	"slices"
	"strings"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
)

const head = `# Drafted by Writ. It works as it is; each line a person adds saves questions.
#
# effect     what a tool can do: read, egress, write, send, transfer, delete, auth.
# arguments  plain: a read is asked with words; a link, host, mail address or key waits
#            for a person, unless the user typed it or the same server returned it.
# args       what no line names is a target: the user typed it, or a person says yes.
# outputs    who can have written a field. "system" only where no stranger can choose
#            the value: then it vouches for arguments, and nobody is asked for those.
# pin        SHA-256 of the definition this was made from; any change closes the tool.

# collections: { thing: { closed: true } }   # closed: only your own side can add one

tools:
`

// Policy drafts a policy for every tool of a catalogue that could be listed, in its
// order. The same catalogue gives the same bytes.
func Policy(cat *gate.Catalogue) string {
	var b strings.Builder
	b.WriteString(head)
	n := 0
	for _, t := range cat.Tools() {
		if t.Method == policy.CallTool && t.State != gate.Refused {
			n++
			tool(&b, t)
		}
	}
	if n == 0 {
		return strings.Replace(b.String(), "\ntools:\n", "\ntools: {}\n", 1)
	}
	return b.String()
}

func tool(b *strings.Builder, t *gate.Tool) {
	fmt.Fprintf(b, "  %s/%s:\n", t.Server, t.Name)
	said, _ := strictjson.Text(strictjson.Get(t.Raw, "description"))
	if first, _, _ := strings.Cut(strings.TrimSpace(said), "\n"); first != "" {
		fmt.Fprintf(b, "    # the server says: %s\n", text.OneLine(first, 100))
	}
	args := leavesOf(strictjson.Get(t.Raw, "inputSchema"))
	if reads(t, said, args) {
		b.WriteString("    effect: read\n    arguments: plain\n")
	} else {
		fmt.Fprintf(b, "    effect: [%s]\n", strings.Join(effect(t).Names(), ", "))
		arguments(b, args)
	}
	fmt.Fprintf(b, "    pin: %s\n", t.Pin)
	outputs(b, t)
}

// arguments are those of an act that are not whom or what it is for: free text, and
// what the schema lists. All else is a target by being left out.
func arguments(b *strings.Builder, args []leaf) {
	begun := false
	for _, a := range args {
		line := ""
		switch {
		case strictjson.Get(a.schema, "enum") != nil && !a.says(grants):
			line = "role: enum"
		case a.kind() == "string" && a.says(texts), bounded(a):
			line = "role: content, content: open"
		default:
			continue
		}
		if !begun {
			b.WriteString("    args:\n")
		}
		begun = true
		fmt.Fprintf(b, "      %s: { %s }\n", scalar(a.pointer), line)
	}
}

// bounded is a number of how many or how large, within what the schema allows.
func bounded(a leaf) bool {
	has := func(k string) bool { return strictjson.Get(a.schema, k) != nil }
	return (a.kind() == "integer" || a.kind() == "number") && (has("maximum") || has("exclusiveMaximum")) && a.says(counts)
}

// outputs lists the fields of the published output schema. Fields that look like
// identifiers get a suggestion, never a label.
func outputs(b *strings.Builder, t *gate.Tool) {
	fields := leavesOf(strictjson.Get(t.Raw, "outputSchema"))
	if len(fields) == 0 {
		return
	}
	b.WriteString("    outputs:\n")
	for _, f := range fields {
		fmt.Fprintf(b, "      - { at: %s, label: external }", scalar(f.pointer))
		if f.isID() {
			b.WriteString(" # system, if only the server itself can set it")
		}
		b.WriteByte('\n')
	}
}

// scalar writes a pointer so that YAML reads it back whole.
func scalar(s string) string {
	for _, r := range s {
		if !strings.ContainsRune("/*_-.", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return string(strictjson.Quote(s)) // a JSON string is a YAML one
		}
	}
	return s
}

// leaf is one value a schema describes.
type leaf struct {
	pointer string // with * for an index
	schema  []byte
}

func (l *leaf) kind() string {
	s, _ := strictjson.Text(strictjson.Get(l.schema, "type"))
	return s
}

// words are those of the last name in the pointer.
func (l *leaf) words() []string {
	p := strings.TrimRight(l.pointer, "/*")
	return text.NameWords(p[strings.LastIndexByte(p, '/')+1:])
}

func (l *leaf) says(list map[string]bool) bool {
	return slices.ContainsFunc(l.words(), func(w string) bool { return list[w] })
}

func (l *leaf) isID() bool {
	w := l.words()
	return len(w) > 0 && slices.Contains([]string{"id", "uuid", "path", "uri"}, w[len(w)-1])
}

// leavesOf returns what a schema's properties and items lead to, sorted, within bounds
// that a draft has use for.
func leavesOf(schema []byte) (out []leaf) {
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
			out = append(out, leaf{at, schema})
		}
	}
	walk(schema, "", 0)
	slices.SortFunc(out, func(a, b leaf) int { return strings.Compare(a.pointer, b.pointer) })
	return out
}

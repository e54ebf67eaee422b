// Package draft writes the policy that a person starts from: what servers publish,
// pinned. A server for which a contract ships gets that contract's own lines. Of all
// others nothing is believed: a read is open as far as it is asked with plain words;
// an act is open and waits for a person, but where the user typed whom and what it is
// for; no result vouches for anything. What a server says of itself opens nothing alone:
// the name of a tool has to say that it reads. The words it knows are policy.Called.
package draft

import (
	"fmt"
	"slices"
	"strings"

	"github.com/writ-project/writ/contracts"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
)

const head = `# Drafted by Writ. It works as it is; each line a person adds saves questions.
#
# effect     what a tool can do: read, egress, write, send, transfer, delete, auth.
# assumed    delete: the name does not say so, and it is judged by it all the same.
# idempotent false: the server says that making it twice does more than once. The same act
#            again waits for the user's order, or for something that was seen since.
# arguments  plain: a read is asked with words; a link, host, mail address or key waits
#            for a person, unless the user typed it or the same server returned it.
# args       what no line names is a target: the user typed it, or a person says yes.
# outputs    who can have written a field. "system" only where no stranger can choose
#            the value: then it vouches for arguments, and nobody is asked for those.
#            Three answers save a question as well, where one is asked "from now on":
#            only our own people write it; anyone; nobody, the server itself gives it
#            (an id, a number), which stays so when an act sends text to that server.
# pin        SHA-256 of the definition this was made from; any change closes the tool.
`

// A Draft is a policy to start from, by server.
type Draft struct {
	Servers []Server
}

// Server is what was drafted of one server.
type Server struct {
	Name  string
	Tools int
	// Contract is the one that ships for it, nil for none. The tools of exactly its
	// definitions have its lines; the others are drafted as those of any server.
	Contract *contracts.Match

	collections, tools string
}

// Unlike says how a definition differs from the one that it was, in lines for a person, as of a
// contract that ships for nearly that.
func Unlike(was, is []byte) []string { return contracts.Differences(was, is) }

// Policy drafts a policy for every tool of a catalogue that could be listed, in its
// order. The same catalogue gives the same draft.
func Policy(cat *gate.Catalogue) (d Draft) {
	of := map[string][]*gate.Tool{}
	for _, t := range cat.Tools() {
		if t.Method == policy.CallTool && t.State != gate.Refused {
			if of[t.Server] == nil {
				d.Servers = append(d.Servers, Server{Name: t.Server})
			}
			of[t.Server] = append(of[t.Server], t)
		}
	}
	for i := range d.Servers {
		s := &d.Servers[i]
		s.draft(of[s.Name], contracts.Find(s.Name, of[s.Name]))
		if _, faults := policy.Parse("draft", []byte(Draft{Servers: []Server{*s}}.Text())); len(faults) > 0 {
			// What is left of the contract does not stand alone.
			s.draft(of[s.Name], nil)
		}
	}
	return d
}

func (s *Server) draft(tools []*gate.Tool, m *contracts.Match) {
	s.Tools, s.Contract, s.collections = len(tools), m, ""
	var b strings.Builder
	if m != nil {
		s.collections = m.Collections()
		b.WriteString(m.Tools())
	}
	for _, t := range tools {
		if m == nil || !m.Has(t.Name) {
			tool(&b, t)
			near(&b, m, t)
		}
	}
	s.tools = b.String()
}

// near adds, as comments, the lines of the contract that a tool had before it changed: they
// hold for nothing until a person takes them.
func near(b *strings.Builder, m *contracts.Match, t *gate.Tool) {
	if m == nil {
		return
	}
	i := slices.IndexFunc(m.Changed, func(c contracts.Change) bool { return c.Tool == t.Name && !c.New })
	lines := m.Near(t)
	if i < 0 || lines == "" {
		return
	}
	fmt.Fprintf(b, "    # The contract %s is of another definition, that of %s %s:\n", m.Name, m.Of, m.Version)
	for _, l := range m.Changed[i].Lines {
		fmt.Fprintf(b, "    #   %s\n", l)
	}
	b.WriteString("    # If its lines are right for this one too, they can stand in place of those above:\n")
	for l := range strings.Lines(lines) {
		b.WriteString("    #" + l)
	}
}

// Given is a server whose contracts are written already, with the collections that they
// name, a line each.
func Given(name, collections, contracts string) Server {
	return Server{Name: name, Tools: strings.Count("\n"+contracts, "\n  "+name+"/"), collections: collections, tools: contracts}
}

// Says is what holds of the server's tools, in a few words for a person.
func (s Server) Says() string {
	if s.Contract == nil {
		return "no contract: reads are open, acts ask first"
	}
	return fmt.Sprintf("contract %s %s, %d of %d match", s.Contract.Name, s.Contract.Version, s.Contract.Matched(), s.Tools)
}

// Text is the draft as a policy file.
func (d Draft) Text() string {
	out, _ := d.Add([]byte(head + "\n# collections: { thing: { closed: true } }   # closed: only your own side can add one\n\ntools: {}\n"))
	return string(out)
}

// Add adds the draft of servers that a policy says nothing of to its text: their
// collections behind the line that begins them, their tools at its end. It is false
// where the text is not of a shape that can be added to.
func (d Draft) Add(to []byte) ([]byte, bool) {
	old, faults := policy.Parse("policy", to)
	if len(faults) > 0 {
		return nil, false
	}
	want := len(old.Contracts)
	var collections, tools strings.Builder
	var shipped []*contracts.Match
	for _, s := range d.Servers {
		if s.Contract != nil {
			shipped = append(shipped, s.Contract)
		}
	}
	// Of a server that is there the operator has left its contract.
	may := func(server, tool string) bool {
		c := old.Contracts[server+"/"+tool]
		return !old.Knows(server) || c != nil && len(c.Outputs) > 0
	}
	for _, s := range d.Servers {
		if !old.Knows(s.Name) {
			collections.WriteString(s.collections)
			tools.WriteString(contracts.Beside(s.tools, shipped, may))
			want += s.Tools
		}
	}
	if tools.Len() == 0 {
		return to, true
	}
	text := strings.TrimRight(string(to), " \t\r\n") + "\n"
	if rest, empty := strings.CutSuffix(text, "\ntools: {}\n"); empty {
		text = rest + "\ntools:\n"
	}
	if collections.Len() > 0 {
		const begin = "\ncollections:\n"
		before, after, has := strings.Cut(text, begin)
		if !has {
			if before, after, has = strings.Cut(text, "\ntools:\n"); has {
				before, after = before+"\n", "\ntools:\n"+after
			}
		}
		if text = before + begin + collections.String() + after; !has {
			return nil, false
		}
	}
	text += tools.String()
	sum, faults := policy.Parse("policy", []byte(text))
	return []byte(text), len(faults) == 0 && len(sum.Contracts) == want
}

func tool(b *strings.Builder, t *gate.Tool) {
	fmt.Fprintf(b, "  %s/%s:\n", t.Server, t.Name)
	said, _ := strictjson.Text(strictjson.Get(t.Raw, "description"))
	if first, _, _ := strings.Cut(strings.TrimSpace(said), "\n"); first != "" {
		fmt.Fprintf(b, "    # the server says: %s\n", text.OneLine(first, 100))
	}
	args, all := leavesOf(strictjson.Get(t.Raw, "inputSchema"))
	// What a tool says of itself is not drafted away.
	belied := func(e policy.Effect) bool {
		c := &policy.Contract{Tool: t.Name, Effect: e}
		return c.BeliedBy(t.Name) != "" || t.Belies(c) != ""
	}
	if all && reads(t, said, args) && !belied(policy.Read) {
		b.WriteString("    effect: read\n    arguments: plain\n")
	} else {
		name := text.NameWords(t.Name)
		e, said := effect(name)
		shut := e&(policy.Delete|policy.Transfer|policy.Auth) != 0
		if hint(t, "destructiveHint") == "true" {
			e |= policy.Delete
		}
		if belied(e) {
			e |= policy.Send
		}
		fmt.Fprintf(b, "    effect: [%s]\n", strings.Join(e.Names(), ", "))
		if e&^said&policy.Delete != 0 {
			b.WriteString("    assumed: delete\n")
		}
		// Only where the server says it: without a word of it MCP takes every tool for not
		// idempotent, and then each act that is made twice would be held for nothing known.
		if hint(t, "idempotentHint") == "false" {
			b.WriteString("    idempotent: false\n")
		}
		arguments(b, name, shut, args)
	}
	fmt.Fprintf(b, "    pin: %s\n", t.Pin)
	outputs(b, t)
}

// arguments are those of an act: free text, what the schema lists, and all else whom or
// what it is for. Each is named, so that what a person allows from now on has its place.
// In what is shut, for it deletes, pays or says who may do what, nothing is free.
// Of what makes or says something, what people write as one word is read so, a repository
// as owner/name, and a number behind what it is of: "issue 12". Not of another act: who
// names a pull request to have it looked at has not had it merged.
func arguments(b *strings.Builder, tool []string, shut bool, args []leaf) {
	posts := !shut && policy.Called(verb(tool), "makes", "says")
	if posts && hasText(args, "/owner") && hasText(args, "/repo") {
		b.WriteString("    composites: ['{/owner}/{/repo}']\n")
	}
	if len(args) > 0 {
		b.WriteString("    args:\n")
	}
	for _, a := range args {
		line := "role: target, from: [user]"
		switch {
		case a.mayBeText() && a.isProgram(): // a part of the one the user typed is another
			line = "role: target, from: [approval]"
		case shut && len(args) == 1 && slices.Contains(deletes, verb(tool)): // who only names it orders nothing
			line += ", orders: [" + strings.Join(deletes, ", ") + ", get rid of]"
		case shut:
		case a.isList():
			line = "role: enum"
		case a.isText(tool, args):
			line = "role: content, content: open"
		default:
			switch of := a.numbers(); {
			case posts && of != "":
				line = "role: target, type: integer, from: [user], words: [" + of + "]"
			case a.kind() == "integer": // small ones count at a field that a person names, with their type (R8)
				line = "role: target, type: integer, from: [user]"
			case a.kind() == "number":
				line = "role: target, type: decimal, from: [user]"
			}
		}
		fmt.Fprintf(b, "      %s: { %s }\n", scalar(a.pointer), line)
	}
}

// deletes are verbs of tools that delete, as people order it too.
var deletes = []string{"delete", "remove", "drop", "erase", "forget"}

// verb is the first word of an act's name that says what it does, "" where none does.
func verb(tool []string) string {
	if i := slices.IndexFunc(tool, func(w string) bool { return acts(w) != 0 || policy.Called(w, "makes") }); i >= 0 {
		return tool[i]
	}
	return ""
}

// isText reports whether an argument of an act is what somebody reads, and names
// nothing that is there already: by the last word of its name, and by whether the act
// makes or says something.
func (l *leaf) isText(tool []string, args []leaf) bool {
	own := l.words()
	if l.kind() != "string" || len(own) == 0 || slices.ContainsFunc(text.NameWords(l.pointer), func(w string) bool { return policy.Called(w, "stop") }) {
		return false
	}
	verb := verb(tool)
	switch w := own[len(own)-1]; {
	case policy.Called(verb, "makes"):
		return policy.Called(w, "text", "said", "title")
	case policy.Called(verb, "says"): // a title is of what is sent, where something is sent beside it
		return policy.Called(w, "text", "said") || policy.Called(w, "title") && slices.ContainsFunc(args, func(o leaf) bool { return o.ends("text", "said") })
	default:
		return policy.Called(w, "text") && !slices.Contains(tool, w)
	}
}

// hasText reports whether one of the arguments is a text at this place.
func hasText(args []leaf, at string) bool {
	return slices.ContainsFunc(args, func(l leaf) bool { return l.pointer == at && l.kind() == "string" })
}

// numbers are the words behind which people write the number that stands there, for
// what its name says it numbers: "issue" of issue_number.
func (l *leaf) numbers() string {
	w := l.words()
	if k := l.kind(); k != "integer" && k != "number" || len(w) != 2 || w[1] != "number" || len(w[0]) < 2 {
		return ""
	}
	return string(strictjson.Quote(w[0]))
}

// isList reports whether a schema lists what can stand there, and neither the name nor
// what it lists decides who may do what, how much, how far or whether at all.
func (l *leaf) isList() bool {
	members, ok := strictjson.Elements(strictjson.Get(l.schema, "enum"))
	return ok && !l.says("access", "decides") && !slices.ContainsFunc(members, func(m []byte) bool {
		s, isText := strictjson.Text(m)
		return !isText && string(m) != "null" || slices.ContainsFunc(text.NameWords(s), func(w string) bool {
			return policy.Called(w, "access", "decides", "delete", "transfer", "auth")
		})
	})
}

// outputs lists the fields of the published output schema. Fields that look like
// identifiers get a suggestion, never a label.
func outputs(b *strings.Builder, t *gate.Tool) {
	fields, _ := leavesOf(strictjson.Get(t.Raw, "outputSchema"))
	if len(fields) == 0 {
		return
	}
	b.WriteString("    outputs:\n")
	for _, f := range fields {
		fmt.Fprintf(b, "      - { at: %s, label: external }", scalar(f.pointer))
		if w := f.words(); len(w) > 0 && slices.Contains([]string{"id", "uuid", "path", "uri"}, w[len(w)-1]) {
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
	pointer string   // with * for an index
	schema  []byte   // nil where several describe it
	others  [][]byte // its alternatives, or those several
}

func (l *leaf) kind() string {
	s, _ := strictjson.Text(strictjson.Get(l.schema, "type"))
	return s
}

// mayBeText reports whether a string can stand there: whatever is not plainly something
// else.
func (l *leaf) mayBeText() bool {
	if strictjson.Get(l.schema, "type") == nil && len(l.others) > 0 {
		return slices.ContainsFunc(l.others, mayBeText)
	}
	return mayBeText(l.schema)
}

func mayBeText(schema []byte) bool {
	t := strictjson.Get(schema, "type")
	kinds, several := strictjson.Elements(t)
	if !several {
		kinds = [][]byte{t}
	}
	return slices.ContainsFunc(kinds, func(kind []byte) bool {
		k, _ := strictjson.Text(kind)
		return !slices.Contains([]string{"integer", "number", "boolean", "null"}, k)
	})
}

// words are those of the last name in the pointer.
func (l *leaf) words() []string {
	p := strings.TrimRight(l.pointer, "/*")
	return text.NameWords(p[strings.LastIndexByte(p, '/')+1:])
}

// says reports whether a word of the name is of one of some kinds, ends whether its last is.
func (l *leaf) says(kinds ...string) bool {
	return slices.ContainsFunc(l.words(), func(w string) bool { return policy.Called(w, kinds...) })
}

func (l *leaf) ends(kinds ...string) bool {
	w := l.words()
	return len(w) > 0 && policy.Called(w[len(w)-1], kinds...)
}

// isProgram reports whether what stands there is run.
func (l *leaf) isProgram() bool {
	return l.says("program") || mentionsSQL(l.schema) || slices.ContainsFunc(l.others, mentionsSQL)
}

// leavesOf returns what a schema's properties, items and alternatives lead to, sorted,
// each place once. all is false where they are more than a draft has use for.
func leavesOf(schema []byte) (out []leaf, all bool) {
	steps, root := 0, schema
	add := func(at string, schema []byte) {
		i := slices.IndexFunc(out, func(l leaf) bool { return l.pointer == at })
		if i < 0 {
			out = append(out, leaf{at, schema, alternatives(root, schema, "anyOf", "oneOf")})
			return
		}
		l := &out[i]
		if l.schema != nil {
			l.schema, l.others = nil, append(l.others, l.schema)
		}
		l.others = append(l.others, schema)
	}
	// walk reports whether a schema leads further than to its own place.
	var walk func(schema []byte, at string, depth int) bool
	walk = func(schema []byte, at string, depth int) (further bool) {
		if steps++; depth > 6 || len(out) >= 40 || steps > 2000 {
			return false
		}
		into := func(at string, schema []byte) {
			if further = true; !walk(schema, at, depth+1) {
				add(at, schema)
			}
		}
		props, _ := strictjson.Members(strictjson.Get(schema, "properties"))
		for _, p := range props {
			into(at+strictjson.Pointer([]string{p.Name}), p.Value)
		}
		if items := strictjson.Get(schema, "items"); strictjson.KindOf(items) == strictjson.Object {
			into(at+"/*", items)
		}
		for _, s := range alternatives(root, schema, "anyOf", "oneOf", "allOf", "$ref") {
			further = walk(s, at, depth+1) || further
		}
		return further
	}
	walk(schema, "", 0)
	all = len(out) < 40 && steps <= 2000
	out = out[:min(len(out), 40)]
	slices.SortFunc(out, func(a, b leaf) int { return strings.Compare(a.pointer, b.pointer) })
	return out, all
}

// alternatives are the schemas that some keywords of another stand for.
func alternatives(root, schema []byte, keywords ...string) (out [][]byte) {
	for _, k := range keywords {
		v := strictjson.Get(schema, k)
		if ref, ok := strictjson.Text(v); ok && k == "$ref" {
			if local, ok := strings.CutPrefix(ref, "#/"); ok {
				out = append(out, strictjson.At(root, "/"+local))
			}
			continue
		}
		es, _ := strictjson.Elements(v)
		out = append(out, es...)
	}
	return out
}

// Unreviewed leaves out of the warnings of a policy those of the contracts that ship, where
// the lines of a tool stand as they ship: who made them has read and answered these. What
// such a line is warned of because of others in the same policy stays.
func Unreviewed(text []byte, warnings []policy.Fault) []policy.Fault {
	at := strings.SplitAfter(string(text), "\n")
	return slices.DeleteFunc(slices.Clone(warnings), func(w policy.Fault) bool {
		in := toolAt(at, w.Line)
		return in.tool != "" && slices.ContainsFunc(contracts.All(), func(c *contracts.Contract) bool {
			if c.Pins()[contracts.Self+"/"+in.tool] == "" {
				return false
			}
			source := c.At(in.server)
			p, faults := policy.Parse(c.Name, []byte(source))
			return len(faults) == 0 && slices.ContainsFunc(p.Warnings, func(own policy.Fault) bool {
				return own.Message == w.Message && toolAt(strings.SplitAfter(source, "\n"), own.Line) == in
			})
		})
	})
}

// toolLines are the lines of a tool, without pins, and one of them.
type toolLines struct {
	server, tool, all string
	line              int
}

var (
	toolLine = text.Pattern(`^  "?([a-z0-9-]+)/([^:"\s]+)"?:`)
	pin      = text.Pattern(`sha256:[0-9a-f]{64}`)
)

// toolAt finds the tool among whose lines one stands, from 1, none where it does not.
func toolAt(at []string, line int) (in toolLines) {
	first := min(line, len(at)) - 1
	for first >= 0 && strings.HasPrefix(at[first], "   ") {
		first--
	}
	if first < 0 {
		return toolLines{}
	}
	m := toolLine().FindStringSubmatch(at[first])
	if m == nil {
		return toolLines{}
	}
	in = toolLines{server: m[1], tool: m[2], line: line - first}
	for i := first; i < len(at) && (i == first || strings.HasPrefix(at[i], "   ")); i++ {
		in.all += pin().ReplaceAllString(at[i], "sha256:")
	}
	return in
}

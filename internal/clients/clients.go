// Package clients reads and changes the files in which MCP clients write down the
// servers they start. It is pure: bytes in, bytes out.
//
// A change replaces the command and the arguments of a server, and nothing else:
// every other byte stays, with comments, order and spacing. Wrap says what was
// there; Unwrap puts it back, also where the rest of the file changed since. What
// cannot be changed so is left alone, with a reason.
//
// Files are bounded in size and nesting before a recursive parser reads them. A
// name that stands twice on the way to a server is an error: parsers disagree about
// which one counts.
package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"github.com/writ-project/writ/internal/text"
)

// A Layout is how a file writes servers down.
type Layout struct {
	Under  []string `json:"under,omitempty"`  // the objects around Key, from the top; of JSON alone
	Key    string   `json:"key"`              // of the servers
	TOML   bool     `json:"toml,omitempty"`   // else JSON with comments
	Vector bool     `json:"vector,omitempty"` // the command is one list, its arguments with it
}

// A Server is one that a file names.
type Server struct {
	Name    string
	Command []string          // program and arguments; nil where Left is not "", and of what is hosted
	URL     string            // of what is hosted
	Headers []Header          // that the client sends there
	Env     map[string]string // what the client adds to its environment
	Inherit []string          // variables the client takes from its own environment
	Left    string            // why it is left alone, "" where it need not be
	Ours    bool              // Writ is in front of it already; Left says so

	argv               []string // as Command, of what is left alone too
	command, args, cut span     // in the file; args and cut are empty where it has none
	insert             func(args []byte) []byte
	entry              span              // the whole of it
	values             map[string]string // as they stand, by path: "timeout", "env/KEY"
	holes              []hole            // of what is hosted, in the file's order
	env                []hole            // of what is started: the values of its environment
	typed              bool              // of what is hosted: it says of which type it is
	masked             []span            // values that nobody should read over a shoulder
	words              []span            // the texts of its command and arguments, of JSON alone
}

// hole is a value of a hosted server's entry that nobody keeps but the client's file:
// what it is there, and the path of it once Writ is in front.
type hole struct {
	span
	path string
}

// Header is one that a client sends to a hosted server. Once Writ is in front of it,
// the client gives the value to Writ, as the variable Env.
type Header struct{ Name, Value, Env string }

// span is a part of a file. cut, of a server, is what goes where the arguments do.
type span struct{ from, to int }

func (s span) empty() bool { return s.from == s.to }

// Undo is what one server's entry was, and what was made of it.
type Undo struct {
	Name    string   `json:"name"`
	Ours    []string `json:"ours"`
	Command string   `json:"command"`        // as it stood in the file
	Args    *string  `json:"args,omitempty"` // the same; nil where there were none
	// Of what is hosted: the whole as it stood, but for the values at these paths in
	// what was made of it.
	Around []string `json:"around,omitempty"`
	Values []string `json:"values,omitempty"`
}

// Made reports whether a command is what was made of the entry, by whatever path Writ has.
func (u *Undo) Made(command []string) bool {
	return len(command) > 0 && isOurs(command) && slices.Equal(command[1:], u.Ours[1:])
}

// Bounds of a file. A client keeps its whole history in one.
const (
	MaxBytes   = 32 << 20
	maxNesting = 100
)

// Error is why a file is not changed. Line is 0 where it is no line's fault.
type Error struct {
	Line int
	Why  string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Why
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Why)
}

// fault is an error at an offset.
func fault(b []byte, at int, format string, args ...any) error {
	return &Error{Line: 1 + bytes.Count(b[:min(max(at, 0), len(b))], []byte("\n")), Why: fmt.Sprintf(format, args...)}
}

// Read returns the servers of a file, in its order.
func (l Layout) Read(b []byte) ([]Server, error) {
	switch {
	case len(b) > MaxBytes:
		return nil, &Error{Why: "the file is larger than 32 MiB"}
	case !utf8.Valid(b):
		return nil, &Error{Why: "the file is not UTF-8"}
	}
	var all []Server
	var err error
	if l.TOML {
		all, err = l.readTOML(b)
	} else {
		all, err = l.readJSON(b)
	}
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].judge()
	}
	return all, nil
}

// leave says why a server is left alone, where nothing said so before.
func (s *Server) leave(why string) {
	if s.Left == "" {
		s.Left = why
	}
}

// starts reads what an entry says of a program to start: its command, with the arguments,
// and its environment.
func (s *Server) starts(l Layout, entry map[string]any) {
	env := "env"
	switch program, ok := entry["command"].(string); {
	case l.Vector:
		env = "environment"
		if s.Command, ok = textsIn(entry["command"]); !ok {
			s.leave("its command has an unknown shape")
		}
	case ok:
		s.Command = []string{program}
	default:
		s.leave("its command has an unknown shape")
	}
	if args, has := entry["args"]; has && !l.Vector {
		texts, ok := textsIn(args)
		if s.Command = append(s.Command, texts...); !ok {
			s.leave("its arguments have an unknown shape")
			s.Command = nil // some are not known
		}
	}
	if all, has := entry[env]; has {
		values, ok := all.(map[string]any)
		if !ok {
			s.leave("its environment has an unknown shape")
		}
		s.Env = map[string]string{}
		for name, v := range values {
			if s.Env[name], ok = v.(string); !ok {
				s.leave("its environment has a value that is no text")
			}
		}
	}
}

// textsIn are the texts of a list; ok is false for anything else.
func textsIn(v any) (texts []string, ok bool) {
	all, ok := v.([]any)
	if !ok {
		return nil, false
	}
	for _, v := range all {
		s, ok := v.(string)
		if !ok {
			return nil, false
		}
		texts = append(texts, s)
	}
	return texts, true
}

var (
	// variable is what clients fill in before they start a command.
	variable = text.Pattern(`\$\{|\$[A-Za-z_]|\{(env|file):`)
	envName  = text.Pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// judge says why a server that was read is left alone.
func (s *Server) judge() {
	s.argv = s.Command
	if s.Left == "" {
		switch {
		case s.URL != "" && variable().MatchString(s.URL):
			s.Left = "its address has a variable that only the client fills in"
		case s.URL != "":
		case len(s.Command) == 0 || s.Command[0] == "":
			s.Left = "it has no command"
		case isOurs(s.Command):
			s.Ours, s.Left = true, "Writ is in front of it"
		case slices.ContainsFunc(s.Command, variable().MatchString):
			s.Left = "its command has a variable that only the client fills in"
		case slices.ContainsFunc(s.Command, func(a string) bool { return strings.ContainsRune(a, 0) }):
			s.Left = "its command has a NUL character"
		}
		for name := range s.Env {
			if !envName().MatchString(name) && s.Left == "" {
				s.Left = "its environment has a name that is none"
			}
		}
	}
	if s.Left != "" && !s.Ours {
		s.Command = nil
	}
}

// isOurs reports whether a command is `writ run`.
func isOurs(argv []string) bool {
	// A path of Windows is one on every system: the file may have come from there.
	base := filepath.Base(strings.ReplaceAll(argv[0], `\`, "/"))
	return len(argv) > 1 && argv[1] == "run" && ourName().MatchString(base)
}

// ourName is this program as somebody may have called a file of it: "writ-1.2", no "writer".
var ourName = text.Pattern(`^writ(?:[^A-Za-z].*)?$`)

// An edit replaces a part of a file.
type edit struct {
	span
	text []byte
}

func apply(b []byte, edits []edit) []byte {
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, b[at:e.from]...), e.text...)
		at = e.to
	}
	return append(out, b[at:]...)
}

// Wrap gives servers the commands that commands returns, nil for those that stay as
// they are. Unwrap of what it returns gives the file back, and nothing but commands
// and arguments means anything else; either is looked at, or there is an error.
func (l Layout) Wrap(b []byte, command func(name string) []string) (out []byte, undo []Undo, err error) {
	all, err := l.Read(b)
	if err != nil {
		return nil, nil, err
	}
	var edits []edit
	for _, s := range all {
		if ours := command(s.Name); s.Left == "" && ours != nil {
			more, u := s.wrapped(l, b, ours)
			edits, undo = append(edits, more...), append(undo, u)
		}
	}
	if len(undo) == 0 {
		return b, nil, nil
	}
	out = apply(b, edits)
	if err := l.same(b, out, undo); err != nil {
		return nil, nil, err
	}
	back, left, err := l.Unwrap(out, undo)
	if err != nil || len(left) > 0 || !bytes.Equal(back, b) {
		return nil, nil, errors.New("the change could not be taken back: nothing is changed")
	}
	return out, undo, nil
}

// wrapped are the edits that put Writ in front of a server, and what undoes them.
func (s *Server) wrapped(l Layout, b []byte, ours []string) ([]edit, Undo) {
	u := Undo{Name: s.Name, Ours: ours}
	if s.URL != "" {
		from := s.entry.from
		for _, h := range s.holes {
			u.Around, u.Values = append(u.Around, string(b[from:h.from])), append(u.Values, h.path)
			from = h.to
		}
		u.Around = append(u.Around, string(b[from:s.entry.to]))
		return []edit{{s.entry, s.behind(b, ours)}}, u
	}
	u.Command = string(b[s.command.from:s.command.to])
	switch {
	case l.Vector:
		return []edit{{s.command, list(ours)}}, u
	case s.args.empty():
		return []edit{{s.command, append(quoted(ours[0]), s.insert(list(ours[1:]))...)}}, u
	}
	u.Args = new(string(b[s.args.from:s.args.to]))
	return []edit{{s.command, quoted(ours[0])}, {s.args, list(ours[1:])}}, u
}

// behind is the entry of a hosted server with Writ in front of it, in one line. What
// the client knows of it besides its address stays.
func (s *Server) behind(file []byte, ours []string) []byte {
	var b bytes.Buffer
	b.WriteString("{ ")
	if s.typed {
		b.WriteString(`"type": "stdio", `)
	}
	fmt.Fprintf(&b, `"command": %s, "args": %s`, quoted(ours[0]), list(ours[1:]))
	env := 0
	for _, h := range s.holes {
		if name, is := strings.CutPrefix(h.path, "env/"); is {
			b.WriteString([]string{`, "env": { `, ", "}[min(env, 1)])
			fmt.Fprintf(&b, "%s: %s", quoted(name), file[h.from:h.to])
			env++
		}
	}
	if env > 0 {
		b.WriteString(" }")
	}
	for _, h := range s.holes {
		if !strings.HasPrefix(h.path, "env/") {
			fmt.Fprintf(&b, ", %s: %s", quoted(h.path), file[h.from:h.to])
		}
	}
	b.WriteString(" }")
	return b.Bytes()
}

// before is the entry of a hosted server as it was, with the values it has now; ok is
// false where it has others than behind left it.
func (s *Server) before(u *Undo) (was []byte, ok bool) {
	rest := maps.Clone(s.values)
	for _, known := range []string{"command", "args", "env", "type"} {
		delete(rest, known)
	}
	for i, around := range u.Around {
		was = append(was, around...)
		if i == len(u.Values) {
			break
		}
		v, has := rest[u.Values[i]]
		if !has {
			return nil, false
		}
		was = append(was, v...)
		delete(rest, u.Values[i])
	}
	return was, len(rest) == 0
}

// A Left is an entry that was not put back, and why.
type Left struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Unwrap puts back what undo says, of the entries that are still what Wrap made of
// them. It names the others.
func (l Layout) Unwrap(b []byte, undo []Undo) (out []byte, left []Left, err error) {
	all, err := l.Read(b)
	if err != nil {
		return nil, nil, err
	}
	var edits []edit
	var done []Undo
	for _, u := range undo {
		more, why := l.restored(all, &u)
		if why != "" {
			left = append(left, Left{u.Name, why})
			continue
		}
		edits, done = append(edits, more...), append(done, u)
	}
	if len(done) == 0 {
		return b, left, nil
	}
	out = apply(b, edits)
	return out, left, l.same(b, out, done)
}

// restored are the edits that put an entry back, or why it is left as it is.
func (l Layout) restored(all []Server, u *Undo) (_ []edit, why string) {
	i := slices.IndexFunc(all, func(s Server) bool { return s.Name == u.Name })
	if i < 0 {
		return nil, "it is not there any more"
	}
	s, command := &all[i], []byte(u.Command)
	switch {
	case !u.Made(s.Command):
		return nil, "its command was changed since"
	case u.Around != nil:
		if was, ok := s.before(u); ok {
			return []edit{{s.entry, was}}, ""
		}
		return nil, "it was changed since"
	case l.Vector:
		return []edit{{s.command, command}}, ""
	case u.Args != nil:
		return []edit{{s.command, command}, {s.args, []byte(*u.Args)}}, ""
	case s.cut.empty():
		return nil, "what stands around its arguments was changed since"
	}
	return []edit{{s.command, command}, {s.cut, nil}}, ""
}

// same is an error unless two files mean the same but for the commands and arguments
// of those servers.
func (l Layout) same(a, b []byte, but []Undo) error {
	of := func(b []byte) (any, error) {
		all, err := l.meaning(b)
		if err != nil {
			return nil, err
		}
		at := all
		for _, name := range l.Under {
			at, _ = at[name].(map[string]any)
		}
		servers, _ := at[l.Key].(map[string]any)
		for _, u := range but {
			if s, ok := servers[u.Name].(map[string]any); ok {
				delete(s, "command")
				delete(s, "args")
			}
			if u.Around != nil {
				servers[u.Name] = nil
			}
		}
		return all, nil
	}
	x, err := of(a)
	if err != nil {
		return err
	}
	y, err := of(b)
	if err != nil || !reflect.DeepEqual(x, y) {
		return errors.New("the change would mean more than a command: nothing is changed")
	}
	return nil
}

func (l Layout) meaning(b []byte) (map[string]any, error) {
	if l.TOML {
		return meaningTOML(b)
	}
	return meaningJSON(b)
}

// Revalue puts other texts in the place of values of servers' environments and headers,
// and changes no other byte. With returns the text for one, as the file is to have it;
// ok is false for a value that stays; an error ends it. Of a header the variable is the one
// by which Writ gets it.
func (l Layout) Revalue(b []byte, with func(server, variable, value, written string) (text string, ok bool, err error)) ([]byte, error) {
	all, err := l.Read(b)
	if err != nil {
		return nil, err
	}
	var edits []edit
	for _, s := range all {
		for _, h := range append(s.env[:len(s.env):len(s.env)], s.holes...) {
			variable, is := strings.CutPrefix(h.path, "env/")
			written, value := string(b[h.from:h.to]), ""
			if !is || l.text(written, &value) != nil {
				continue
			}
			switch text, ok, err := with(s.Name, variable, value, written); {
			case err != nil:
				return nil, err
			case ok && l.text(text, &value) != nil:
				return nil, errors.New("a value would be no text: nothing is changed")
			case ok:
				edits = append(edits, edit{h.span, []byte(text)})
			}
		}
	}
	if len(edits) == 0 {
		return b, nil
	}
	out := apply(bytes.Clone(b), edits)
	if again, err := l.Read(out); err != nil || len(again) != len(all) {
		return nil, errors.New("the change would mean more than a value: nothing is changed")
	}
	return out, nil
}

// text reads one text as the file writes it, and nothing else.
func (l Layout) text(written string, into *string) error {
	if !l.TOML {
		return json.Unmarshal([]byte(written), into)
	}
	var one map[string]string
	err := toml.Unmarshal([]byte("text = "+written), &one)
	if err == nil && len(one) != 1 {
		err = errors.New("more than a text")
	}
	*into = one["text"]
	return err
}

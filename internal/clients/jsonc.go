package clients

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/writ-project/writ/internal/strictjson"
)

var mark = []byte("\ufeff") // of byte order, which the parser refuses

// parseJSON reads JSON with comments and trailing commas. A mark of byte order is white
// space to it, and a comment may end the file. What it returns is of a copy.
func parseJSON(b []byte) (v hujson.Value, err error) {
	text := slices.Concat(b, []byte("\n"))
	if bytes.HasPrefix(b, mark) {
		copy(text, bytes.Repeat([]byte(" "), len(mark)))
	}
	if at := deep(text); at >= 0 {
		return v, fault(text, at, "more than %d levels of nesting", maxNesting)
	}
	if v, err = hujson.Parse(text); err != nil {
		_, err = hujson.Parse(slices.Concat(bytes.TrimPrefix(b, mark), []byte("\n"))) // as an editor counts columns
		return v, &Error{Why: "not JSON: " + strings.TrimPrefix(err.Error(), "hujson: ")}
	}
	return v, nil
}

// deep is where a text nests deeper than a recursive parser should follow, -1 where
// it does not. It ends a string and a comment where the parser does, or later where
// the parser has ended with an error: what the parser opens is counted.
func deep(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '{' || c == '[':
			if depth++; depth > maxNesting {
				return i
			}
		case c == '}' || c == ']':
			depth--
		case c == '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(b[i:], []byte("//")):
			i = behind(b, i, "\n")
		case bytes.HasPrefix(b[i:], []byte("/*")):
			i = behind(b, i+2, "*/")
		}
	}
	return -1
}

// behind is the last place of the first end from a place on, that of the text where there is none.
func behind(b []byte, from int, end string) int {
	if i := bytes.Index(b[from:], []byte(end)); i >= 0 {
		return from + i + len(end) - 1
	}
	return len(b)
}

// members are those of an object, by their names; what is none has none.
func members(v *hujson.Value) iter.Seq2[string, *hujson.ObjectMember] {
	return func(yield func(string, *hujson.ObjectMember) bool) {
		o, ok := v.Value.(*hujson.Object)
		for i := 0; ok && i < len(o.Members); i++ {
			m := &o.Members[i]
			ok = yield(m.Name.Value.(hujson.Literal).String(), m)
		}
	}
}

func isObject(v *hujson.Value) bool {
	_, is := v.Value.(*hujson.Object)
	return is
}

// textOf is a text; ok is false for anything else.
func textOf(v *hujson.Value) (text string, ok bool) {
	lit, ok := v.Value.(hujson.Literal)
	if !ok || lit.Kind() != '"' {
		return "", false
	}
	return lit.String(), true
}

// member finds a member of an object by its name.
func member(b []byte, v *hujson.Value, name string) (found *hujson.ObjectMember, err error) {
	for n, m := range members(v) {
		if n != name {
			continue
		}
		if found != nil {
			return nil, fault(b, m.Name.StartOffset, "%q stands twice", name)
		}
		found = m
	}
	return found, nil
}

// objectIn finds the object that a member of another is, or of the file, nil where there is none.
func objectIn(b []byte, v *hujson.Value, name string) (*hujson.Value, error) {
	if !isObject(v) {
		return nil, &Error{Why: "the file is no JSON object"}
	}
	m, err := member(b, v, name)
	if err != nil || m == nil {
		return nil, err
	}
	if !isObject(&m.Value) {
		return nil, fault(b, m.Value.StartOffset, "%q is no JSON object", name)
	}
	return &m.Value, nil
}

// once is an error where an object below v has a name twice.
func once(b []byte, v *hujson.Value) error {
	for v := range v.All() {
		seen := map[string]bool{}
		for name, m := range members(v) {
			if seen[name] {
				return fault(b, m.Name.StartOffset, "%q stands twice", name)
			}
			seen[name] = true
		}
	}
	return nil
}

func (l Layout) readJSON(b []byte) (all []Server, err error) {
	if len(bytes.TrimSpace(bytes.TrimPrefix(b, mark))) == 0 {
		return nil, nil // a client may have made the file and written nothing
	}
	root, err := parseJSON(b)
	if err != nil {
		return nil, err
	}
	servers := &root
	for _, name := range append(slices.Clone(l.Under), l.Key) {
		if servers, err = objectIn(b, servers, name); err != nil || servers == nil {
			return nil, err
		}
	}
	if err := once(b, servers); err != nil {
		return nil, err
	}
	for name, m := range members(servers) {
		all = append(all, l.serverJSON(b, name, &m.Value))
	}
	return all, nil
}

func at(v *hujson.Value) span { return span{v.StartOffset, v.EndOffset} }

// beside are the texts of a JSON file that are of none of its servers.
func (l Layout) beside(b []byte) (all []span) {
	root, err := parseJSON(b)
	if err != nil {
		return nil
	}
	in := &root
	for _, on := range append(slices.Clone(l.Under), l.Key) {
		for name, m := range members(in) {
			if name == on {
				in = &m.Value
			} else {
				all = append(all, textsBelow(&m.Value)...)
			}
		}
	}
	return all
}

// textsBelow are the texts in a value, but for names.
func textsBelow(v *hujson.Value) (all []span) {
	if _, is := textOf(v); is {
		return []span{at(v)}
	}
	for _, m := range members(v) {
		all = append(all, textsBelow(&m.Value)...)
	}
	for _, e := range elements(v) {
		all = append(all, textsBelow(e)...)
	}
	return all
}

// serverJSON reads one entry.
func (l Layout) serverJSON(text []byte, name string, v *hujson.Value) (s Server) {
	s.Name, s.entry = name, at(v)
	if !isObject(v) {
		s.Left, s.masked = "its entry has an unknown shape", textsBelow(v)
		return s
	}
	get := func(key string) *hujson.ObjectMember {
		m, _ := member(text, v, key)
		return m
	}
	s.keep(text, v)
	meaning, _ := meaningJSON(text[s.entry.from:s.entry.to])
	if meaning["disabled"] == true || meaning["enabled"] == false {
		s.leave("it is switched off")
	}
	if get("envFile") != nil {
		s.leave("its environment is in a file that only the client reads")
	}
	command := get("command")
	for _, key := range addresses {
		m := get(key)
		if m == nil {
			continue
		}
		url, _ := textOf(&m.Value)
		if url == "" || command != nil || s.URL != "" || get("args") != nil || get("env") != nil || l.Vector {
			s.leave("it is a hosted server, of an unknown shape")
			return s
		}
		s.URL = url
	}
	if s.URL != "" {
		s.hosted(v)
		return s
	}
	if command == nil {
		s.leave("it has no command")
		return s
	}
	s.command = at(&command.Value)
	s.insert = func(args []byte) []byte {
		return append([]byte(","+setApart(text, command.Name.BeforeExtra)+`"args": `), args...)
	}
	if args := get("args"); args != nil && !l.Vector {
		s.args = at(&args.Value)
		if cut, between := cutOf(v, indexOf(v, "args")); strings.Trim(string(text[between.from:between.to]), " \t\r\n,") == "" {
			s.cut = cut
		}
	}
	s.starts(l, meaning)
	return s
}

// keep keeps the values of an entry as they stand, by their paths.
func (s *Server) keep(text []byte, entry *hujson.Value) {
	s.values = map[string]string{}
	for key, m := range members(entry) {
		s.values[key] = string(text[m.Value.StartOffset:m.Value.EndOffset])
		switch key {
		case "type":
		case "command", "args":
			s.words = append(s.words, textsBelow(&m.Value)...)
		default:
			s.masked = append(s.masked, textsBelow(&m.Value)...)
		}
		if key != "env" {
			continue
		}
		for name, v := range members(&m.Value) {
			path := "env/" + name
			s.values[path] = string(text[v.Value.StartOffset:v.Value.EndOffset])
			s.env = append(s.env, hole{at(&v.Value), path})
		}
	}
}

// setApart is how a member or an element is set apart from the one before it, by what stands there
// without its comments.
func setApart(text []byte, extra hujson.Extra) string {
	before := string(extra)
	if strings.TrimLeft(before, " \t\r\n") != "" { // a comment
		before = before[strings.LastIndexByte(before, '\n')+1:]
		if strings.TrimLeft(before, " \t") != "" {
			return " "
		}
		before = newline(text) + before
	}
	return cmp.Or(before, " ")
}

// addresses are the members that clients keep the address of a hosted server in.
var addresses = []string{"url", "httpUrl", "serverUrl"}

// hosted reads what else the entry of a hosted server says.
func (s *Server) hosted(entry *hujson.Value) {
	for key, m := range members(entry) {
		lit, _ := m.Value.Value.(hujson.Literal)
		switch {
		case key == "type" || key == "transport":
			s.typed = true
			if !slices.Contains([]string{"http", "streamable-http", "streamableHttp"}, lit.String()) {
				s.leave("it is a hosted server that speaks another protocol")
			}
		case slices.Contains(addresses, key):
		case strings.Contains(strings.ToLower(key), "auth"):
			s.leave("it is a hosted server that the client signs in to")
		case key == "headers":
			if !isObject(&m.Value) {
				s.leave("its headers have an unknown shape")
			}
			for name, h := range members(&m.Value) {
				value, ok := textOf(&h.Value)
				if !ok {
					s.leave("its headers have a value that is no text")
				}
				variable := fmt.Sprintf("WRIT_HEADER_%d", len(s.Headers)+1)
				s.Headers = append(s.Headers, Header{name, value, variable})
				s.holes = append(s.holes, hole{at(&h.Value), "env/" + variable})
			}
		case key == "cwd" || strings.Contains(key, "/"):
			s.leave("it is a hosted server, of an unknown shape")
		default:
			s.holes = append(s.holes, hole{at(&m.Value), key})
		}
	}
}

// newline is how a file ends its lines.
func newline(b []byte) string {
	if bytes.Contains(b, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// quoted is a text as JSON and TOML both write it.
func quoted(s string) []byte {
	return bytes.ReplaceAll(strictjson.Quote(s), []byte("\x7f"), []byte(`\u007f`))
}

// list is a list of texts as JSON and TOML both write it.
func list(texts []string) []byte {
	b := []byte("[")
	for i, s := range texts {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, quoted(s)...)
	}
	return append(b, ']')
}

func meaningJSON(b []byte) (all map[string]any, err error) {
	v, err := parseJSON(b)
	if err != nil {
		return nil, err
	}
	v.Standardize() // which blanks comments in the bytes that were parsed
	d := json.NewDecoder(bytes.NewReader(v.Pack()))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return nil, errors.New("not JSON")
	}
	return all, nil
}

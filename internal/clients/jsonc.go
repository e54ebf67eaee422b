package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/writ-project/writ/internal/strictjson"
)

var mark = []byte("\ufeff") // of byte order, which the parser refuses

// parseJSON reads JSON with comments and trailing commas. Offsets are those in b
// less skipped.
func parseJSON(b []byte) (v hujson.Value, skipped int, err error) {
	text := bytes.TrimPrefix(b, mark)
	skipped = len(b) - len(text)
	if at := deep(text); at >= 0 {
		return v, 0, fault(text, at, "more than %d levels of nesting", maxNesting)
	}
	if v, err = hujson.Parse(text); err != nil {
		return v, 0, &Error{Why: "not JSON: " + strings.TrimPrefix(err.Error(), "hujson: ")}
	}
	return v, skipped, nil
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
		case c == '/' && i+1 < len(b) && b[i+1] == '/':
			n := bytes.IndexByte(b[i:], '\n')
			if n < 0 {
				return -1
			}
			i += n
		case c == '/' && i+1 < len(b) && b[i+1] == '*':
			n := bytes.Index(b[i+2:], []byte("*/"))
			if n < 0 {
				return -1
			}
			i += n + 3
		}
	}
	return -1
}

// member finds a member of an object by its name.
func member(b []byte, o *hujson.Object, name string) (found *hujson.ObjectMember, err error) {
	for i := range o.Members {
		if n, ok := o.Members[i].Name.Value.(hujson.Literal); !ok || n.String() != name {
			continue
		}
		if found != nil {
			return nil, fault(b, o.Members[i].Name.StartOffset, "%q stands twice", name)
		}
		found = &o.Members[i]
	}
	return found, nil
}

// once is an error where an object below v has a name twice.
func once(b []byte, v *hujson.Value) error {
	for v := range v.All() {
		o, ok := v.Value.(*hujson.Object)
		if !ok {
			continue
		}
		seen := map[string]bool{}
		for i := range o.Members {
			name := o.Members[i].Name.Value.(hujson.Literal).String()
			if seen[name] {
				return fault(b, o.Members[i].Name.StartOffset, "%q stands twice", name)
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
	root, skipped, err := parseJSON(b)
	if err != nil {
		return nil, err
	}
	text := b[skipped:]
	top, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil, &Error{Why: "the file is no JSON object"}
	}
	var at *hujson.ObjectMember
	servers := top
	for _, name := range append(slices.Clone(l.Under), l.Key) {
		if at, err = member(text, servers, name); err != nil || at == nil {
			return nil, err
		}
		if servers, ok = at.Value.Value.(*hujson.Object); !ok {
			return nil, fault(text, at.Value.StartOffset, "%q is no JSON object", name)
		}
	}
	if err := once(text, &at.Value); err != nil {
		return nil, err
	}
	for i := range servers.Members {
		m := &servers.Members[i]
		s := l.serverJSON(text, m.Name.Value.(hujson.Literal).String(), &m.Value)
		for _, p := range []*span{&s.command, &s.args, &s.cut, &s.entry} {
			p.from, p.to = p.from+skipped, p.to+skipped
		}
		for i := range s.env {
			s.env[i].from, s.env[i].to = s.env[i].from+skipped, s.env[i].to+skipped
		}
		for i := range s.holes {
			s.holes[i].from, s.holes[i].to = s.holes[i].from+skipped, s.holes[i].to+skipped
		}
		for i := range s.masked {
			s.masked[i].from, s.masked[i].to = s.masked[i].from+skipped, s.masked[i].to+skipped
		}
		all = append(all, s)
	}
	return all, nil
}

func at(v *hujson.Value) span { return span{v.StartOffset, v.EndOffset} }

// textsOf are the texts of a list; ok is false for anything else.
func textsOf(v *hujson.Value) (texts []string, ok bool) {
	a, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil, false
	}
	texts = []string{}
	for i := range a.Elements {
		lit, ok := a.Elements[i].Value.(hujson.Literal)
		if !ok || lit.Kind() != '"' {
			return nil, false
		}
		texts = append(texts, lit.String())
	}
	return texts, true
}

// textsBelow are the texts in a value, but for names.
func textsBelow(v *hujson.Value) (all []span) {
	switch t := v.Value.(type) {
	case hujson.Literal:
		if t.Kind() == '"' {
			all = append(all, at(v))
		}
	case *hujson.Object:
		for i := range t.Members {
			all = append(all, textsBelow(&t.Members[i].Value)...)
		}
	case *hujson.Array:
		for i := range t.Elements {
			all = append(all, textsBelow(&t.Elements[i])...)
		}
	}
	return all
}

// serverJSON reads one entry. Offsets are those in text.
func (l Layout) serverJSON(text []byte, name string, v *hujson.Value) (s Server) {
	s.Name, s.entry = name, at(v)
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		s.Left = "its entry has an unknown shape"
		return s
	}
	s.values = map[string]string{}
	get := func(key string) *hujson.ObjectMember {
		m, _ := member(text, o, key)
		return m
	}
	for i := range o.Members {
		m := &o.Members[i]
		key := m.Name.Value.(hujson.Literal).String()
		s.values[key] = string(text[m.Value.StartOffset:m.Value.EndOffset])
		if env, ok := m.Value.Value.(*hujson.Object); ok && key == "env" {
			for j := range env.Members {
				v := &env.Members[j]
				path := "env/" + v.Name.Value.(hujson.Literal).String()
				s.values[path] = string(text[v.Value.StartOffset:v.Value.EndOffset])
				s.env = append(s.env, hole{at(&v.Value), path})
			}
		}
		if key != "command" && key != "args" && key != "type" {
			s.masked = append(s.masked, textsBelow(&o.Members[i].Value)...)
		}
	}
	says := func(key, want string) bool {
		m := get(key)
		return m != nil && string(text[m.Value.StartOffset:m.Value.EndOffset]) == want
	}
	leave := func(why string) {
		if s.Left == "" {
			s.Left = why
		}
	}
	if says("disabled", "true") || says("enabled", "false") {
		leave("it is switched off")
	}
	if get("envFile") != nil {
		leave("its environment is in a file that only the client reads")
	}
	command := get("command")
	for _, key := range addresses {
		m := get(key)
		if m == nil {
			continue
		}
		lit, ok := m.Value.Value.(hujson.Literal)
		switch {
		case !ok || lit.Kind() != '"' || lit.String() == "" || command != nil || s.URL != "" || get("args") != nil || get("env") != nil || l.Vector:
			leave("it is a hosted server, of an unknown shape")
			return s
		}
		s.URL = lit.String()
	}
	if s.URL != "" {
		s.hosted(text, o, leave)
		return s
	}
	if command == nil {
		leave("it has no command")
		return s
	}
	s.command = at(&command.Value)
	if l.Vector {
		if s.Command, ok = textsOf(&command.Value); !ok {
			leave("its command has an unknown shape")
		}
	} else if lit, ok := command.Value.Value.(hujson.Literal); ok && lit.Kind() == '"' {
		s.Command = []string{lit.String()}
	} else {
		leave("its command has an unknown shape")
	}
	s.insert = func(args []byte) []byte {
		before := string(command.Name.BeforeExtra)
		if strings.TrimLeft(before, " \t\r\n") != "" { // a comment
			before = before[strings.LastIndexByte(before, '\n')+1:]
			if strings.TrimLeft(before, " \t") != "" {
				before = " "
			} else {
				before = newline(text) + before
			}
		}
		if before == "" {
			before = " "
		}
		return append([]byte(","+before+`"args": `), args...)
	}
	if args := get("args"); args != nil && !l.Vector {
		texts, ok := textsOf(&args.Value)
		if !ok {
			leave("its arguments have an unknown shape")
		}
		s.Command, s.args, s.cut = append(s.Command, texts...), at(&args.Value), cutOf(text, o)
	}
	if env := get(map[bool]string{true: "environment", false: "env"}[l.Vector]); env != nil {
		s.Env = map[string]string{}
		o, ok := env.Value.Value.(*hujson.Object)
		if !ok {
			leave("its environment has an unknown shape")
			return s
		}
		for i := range o.Members {
			lit, ok := o.Members[i].Value.Value.(hujson.Literal)
			if !ok || lit.Kind() != '"' {
				leave("its environment has a value that is no text")
				continue
			}
			s.Env[o.Members[i].Name.Value.(hujson.Literal).String()] = lit.String()
		}
	}
	return s
}

// addresses are the members that clients keep the address of a hosted server in.
var addresses = []string{"url", "httpUrl", "serverUrl"}

// hosted reads what else the entry of a hosted server says.
func (s *Server) hosted(text []byte, o *hujson.Object, leave func(string)) {
	for i := range o.Members {
		m := &o.Members[i]
		lit, _ := m.Value.Value.(hujson.Literal)
		switch key := m.Name.Value.(hujson.Literal).String(); {
		case key == "type" || key == "transport":
			s.typed = true
			if !slices.Contains([]string{"http", "streamable-http", "streamableHttp"}, lit.String()) {
				leave("it is a hosted server that speaks another protocol")
			}
		case slices.Contains(addresses, key):
		case strings.Contains(strings.ToLower(key), "auth"):
			leave("it is a hosted server that the client signs in to")
		case key == "headers":
			all, ok := m.Value.Value.(*hujson.Object)
			if !ok {
				leave("its headers have an unknown shape")
				continue
			}
			for j := range all.Members {
				value, ok := all.Members[j].Value.Value.(hujson.Literal)
				if !ok || value.Kind() != '"' {
					leave("its headers have a value that is no text")
				}
				s.Headers = append(s.Headers, Header{all.Members[j].Name.Value.(hujson.Literal).String(), value.String(), fmt.Sprintf("WRIT_HEADER_%d", j+1)})
				s.holes = append(s.holes, hole{at(&all.Members[j].Value), "env/" + s.Headers[j].Env})
			}
		case key == "cwd" || strings.Contains(key, "/"):
			leave("it is a hosted server, of an unknown shape")
		default:
			s.holes = append(s.holes, hole{at(&m.Value), key})
		}
	}
}

// cutOf is what goes with the member args: from the end of the value before it, where
// nothing but a comma and space is between.
func cutOf(text []byte, o *hujson.Object) span {
	for i := range o.Members {
		if o.Members[i].Name.Value.(hujson.Literal).String() != "args" {
			continue
		}
		m := &o.Members[i]
		from, to := m.Name.StartOffset, m.Value.EndOffset
		switch {
		case i > 0:
			from = o.Members[i-1].Value.EndOffset
			if strings.Trim(string(text[from:m.Name.StartOffset]), " \t\r\n,") != "" {
				return span{}
			}
		case len(o.Members) > 1:
			to = o.Members[1].Name.StartOffset
			if strings.Trim(string(text[m.Value.EndOffset:to]), " \t\r\n,") != "" {
				return span{}
			}
		}
		return span{from, to}
	}
	return span{}
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
	v, _, err := parseJSON(bytes.Clone(b))
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

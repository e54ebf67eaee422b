package upstream

import (
	"encoding/base64"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/writ-project/writ/internal/strictjson"
)

const (
	base64Prefix = "=?base64?"
	base64Suffix = "?="
)

// headerValue encodes a value for Mcp-Name and Mcp-Param-*: as it is where a
// header can carry it, else in the base64 form. A value that already looks like
// that form is encoded too.
func headerValue(s string) string {
	plain := s == strings.Trim(s, " \t") && !(strings.HasPrefix(s, base64Prefix) && strings.HasSuffix(s, base64Suffix))
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] >= 0x20 && s[i] <= 0x7e
	}
	if plain {
		return s
	}
	return base64Prefix + base64.StdEncoding.EncodeToString([]byte(s)) + base64Suffix
}

// binding is one argument that a tool wants mirrored into a header.
type binding struct {
	path   []string
	header string
}

// bindings reads the x-mcp-header annotations of an inputSchema. ok is false
// when one of them breaks the protocol's rules: then the tool must not be used
// over HTTP (attack T10).
func bindings(schema strictjson.Value) (out []binding, ok bool) {
	a := annotations{seen: map[string]bool{}}
	a.walk(schema, nil, true)
	return a.all, !a.bad
}

// named are the keywords whose value maps free names to schemas; data are those
// whose value is no schema at all.
var (
	named = map[string]bool{
		"properties": true, "patternProperties": true, "$defs": true, "definitions": true, "dependentSchemas": true,
	}
	data = map[string]bool{"enum": true, "const": true, "default": true, "examples": true, "required": true}
)

type annotations struct {
	all  []binding
	seen map[string]bool // their names in lower case
	bad  bool
}

// walk reads a schema. static says that the place is reached from the root
// by properties alone: only there an annotation has a meaning.
func (a *annotations) walk(schema strictjson.Value, path []string, static bool) {
	for _, e := range schema.Elements() {
		a.walk(e, path, false)
	}
	for keyword, v := range schema.Members() {
		switch {
		case keyword == "x-mcp-header":
			a.add(schema, v, path, static)
		case data[keyword]:
		case named[keyword]:
			for name, s := range v.Members() {
				a.walk(s, append(path[:len(path):len(path)], name), static && keyword == "properties")
			}
		default:
			a.walk(v, path, false)
		}
	}
}

func (a *annotations) add(schema, header strictjson.Value, path []string, static bool) {
	name, _ := header.Text()
	kind, _ := schema.Get("type").Text()
	low := strings.ToLower(name)
	if !static || len(path) == 0 || len(name) > 128 || !httpguts.ValidHeaderFieldName(name) || a.seen[low] ||
		kind != "string" && kind != "integer" && kind != "boolean" {
		a.bad = true
		return
	}
	a.seen[low] = true
	a.all = append(a.all, binding{path, name})
}

func paramHeaders(schema, arguments strictjson.Value) (out [][2]string) {
	if !schema.Exists() || !arguments.Exists() {
		return nil
	}
	bs, ok := bindings(schema)
	if !ok {
		return nil
	}
	for _, b := range bs {
		v := arguments
		for _, name := range b.path {
			v = v.Get(name)
		}
		if s, ok := headerText(v); ok {
			out = append(out, [2]string{"Mcp-Param-" + b.header, headerValue(s)})
		}
	}
	return out
}

// headerText is the text of a string, a boolean or a safe integer.
func headerText(v strictjson.Value) (string, bool) {
	switch v.Kind() {
	case strictjson.String:
		return v.Text()
	case strictjson.Bool:
		return string(v.Raw()), true
	case strictjson.Number:
		f, err := strconv.ParseFloat(string(v.Raw()), 64)
		const safe = 1<<53 - 1
		if err != nil || f < -safe || f > safe || f != float64(int64(f)) {
			return "", false
		}
		return strconv.FormatInt(int64(f), 10), true
	}
	return "", false
}

// withoutBadHeaders leaves out the tools whose annotations are invalid, where
// the transport has headers at all.
func (s *Server) withoutBadHeaders(items [][]byte) [][]byte {
	s.mu.Lock()
	applies := s.cfg.URL != "" && s.info.Era == Modern
	s.mu.Unlock()
	if !applies {
		return items
	}
	kept := items[:0]
	for _, it := range items {
		if _, ok := bindings(strictjson.Of(it).Get("inputSchema")); !ok {
			s.courier.event(InvalidTool)
			continue
		}
		kept = append(kept, it)
	}
	return kept
}

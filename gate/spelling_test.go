package gate_test

import (
	"encoding/json"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/writ-project/writ/gate"
)

// servers are plain ways in which a server makes an absolute path of a text,
// "" where it makes none. Each works in base and knows one home.
var servers = map[string]func(text string) string{
	"as it stands": fromBase,
	"trimmed, without quotes, with a home": func(s string) string {
		s = strings.Trim(strings.TrimSpace(s), `"'`)
		if rest, ok := strings.CutPrefix(s, "~/"); ok {
			s = home + "/" + rest
		}
		return fromBase(s)
	},
	"variables": func(s string) string {
		for _, name := range []string{"$HOME/", "${HOME}/", "%USERPROFILE%/", "%USERPROFILE%\\"} {
			if rest, ok := strings.CutPrefix(s, name); ok {
				return path.Clean(home + "/" + rest)
			}
		}
		return ""
	},
	"the path of a URL": func(s string) string {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "file" {
			return ""
		}
		if u.Opaque != "" {
			p, err := url.PathUnescape(u.Opaque)
			if err != nil {
				return ""
			}
			return fromBase(p)
		}
		return path.Clean(u.Path)
	},
	"what is behind file://": func(s string) string {
		rest, ok := strings.CutPrefix(s, "file://")
		p, err := url.PathUnescape(rest)
		if !ok || err != nil {
			return ""
		}
		return fromBase(p)
	},
	"escapes": func(s string) string {
		p, err := url.PathUnescape(s)
		if err != nil {
			return ""
		}
		return fromBase(p)
	},
	"up to a NUL": func(s string) string {
		s, _, _ = strings.Cut(s, "\x00")
		return fromBase(s)
	},
	"backslashes, in any case": func(s string) string {
		parts := strings.Split(strings.ReplaceAll(s, `\`, "/"), "/")
		for i, p := range parts {
			if t := strings.TrimRight(p, ". "); t != "" {
				parts[i] = t
			}
		}
		return strings.ToLower(fromBase(strings.Join(parts, "/")))
	},
}

const base, home = "/home/kim/work", "/home/kim"

func fromBase(s string) string {
	if s == "" {
		return ""
	}
	if !strings.HasPrefix(s, "/") {
		s = base + "/" + s
	}
	return path.Clean(s)
}

func inside(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// plainly is what R34 says of a text of small letters, dots and slashes, where
// all readings agree.
func plainly(text string, own []string) bool {
	p := fromBase(text)
	rooted := path.Clean("/" + text)
	relative := !strings.HasPrefix(text, "/")
	for _, o := range own {
		if inside(p, o) || inside(path.Clean(base+rooted), o) {
			return true
		}
		dir, name := path.Split(o)
		tail := path.Base(dir) + "/" + name
		if strings.Contains(name, ".") && rooted == "/"+name || relative && strings.Contains(rooted+"/", "/"+tail+"/") {
			return true
		}
	}
	return false
}

var plain = regexp.MustCompile(`^(?:/?[a-z]+(?:\.[a-z]+)?|/?\.)(?:/(?:[a-z]+(?:\.[a-z]+)?|\.)?)*$`)

// FuzzPaths (R34, O01–O05, O09, O23, O28): what any plain server would make one
// of Writ's own files of is refused, and of a plain text nothing else is.
func FuzzPaths(f *testing.F) {
	p, c := newWorld(f, "version: 1\npins: optional\ntools:\n  s/read: { effect: read }\n",
		`{"s":[{"name":"read","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}]}`)
	own := []string{"/home/kim/.local/state/writ", "/home/kim/work/policy.yaml", "/etc/writ/writ.yaml"}
	for _, s := range []string{
		"policy.yaml", "./x/../policy.yaml", "../work/policy.yaml", "~/work/policy.yaml", "${HOME}/.local/state/writ/log.key",
		"%USERPROFILE%\\work\\policy.yaml", "file:///etc/writ/writ.yaml", "file://localhost/etc/%77rit/writ.yaml", "file:policy.yaml",
		"file://policy.yaml", " 'policy.yaml' ", "policy.yaml\x00.txt", "POLICY.YAML. ", "..\\..\\..\\ETC\\writ\\Writ.yaml", "%2e/policy.yaml",
		"a/../../../../etc/writ/x/../writ.yaml", "/work/policy.yaml", "state/writ/x", "notes/policy.yaml", "k.md", "/proc/self/cwd/policy.yaml",
		"x:y:policy.yaml", "\x00/../poliCY.YAml", "//?/unc/a/b$/c", "file:" + strings.Repeat("../", 30) + "etc/writ/writ.yaml", ".. /.. /kim/work/policy.yaml", "\"/../policy.yaml",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return // no JSON string, and refused as such
		}
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		d := gate.Decide(gate.Input{
			Policy: p, Catalogue: c, OwnPaths: own, Bases: []string{base},
			Call: gate.Call{Server: "s", Tool: "read", Arguments: []byte(`{"path":` + string(quoted) + `}`)},
		})
		refused := !d.Allowed()
		for name, server := range servers {
			if real := server(text); real != "" && slices.ContainsFunc(own, func(o string) bool { return inside(real, o) }) && !refused {
				t.Fatalf("%q is %s to a server that reads %s, and passes", text, real, name)
			}
		}
		if plain.MatchString(text) && !strings.Contains(text, "proc") && refused != plainly(text, own) {
			t.Fatalf("%q: refused %v, plainly %v", text, refused, !refused)
		}
	})
}

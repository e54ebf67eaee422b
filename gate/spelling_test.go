package gate_test

import (
	"encoding/json"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
)

// servers are plain ways in which a server makes an absolute path of a text,
// "" where it makes none. Each works in base and knows one home.
var servers = map[string]func(text string) string{
	"as it stands": fromBase,
	"below its root": func(s string) string {
		return path.Clean(base + "/" + s)
	},
	"cleaned, then a home": func(s string) string {
		if rest, ok := strings.CutPrefix(path.Clean(s), "~/"); ok {
			return path.Clean(home + "/" + rest)
		}
		return ""
	},
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

const base, home = "/home/kim/desk", "/home/kim"

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
	own := []string{"/home/kim/.local/state/writ", "/home/kim/desk/policy.yaml", "/etc/writ/writ.yaml"}
	for _, s := range []string{
		"policy.yaml", "./x/../policy.yaml", "../desk/policy.yaml", "~/desk/policy.yaml", "${HOME}/.local/state/writ/log.key",
		"%USERPROFILE%\\desk\\policy.yaml", "file:///etc/writ/writ.yaml", "file://localhost/etc/%77rit/writ.yaml", "file:policy.yaml",
		"file://policy.yaml", " 'policy.yaml' ", "policy.yaml\x00.txt", "POLICY.YAML. ", "..\\..\\..\\ETC\\writ\\Writ.yaml", "%2e/policy.yaml",
		"a/../../../../etc/writ/x/../writ.yaml", "/desk/policy.yaml", "state/writ/x", "notes/policy.yaml", "k.md", "/proc/self/cwd/policy.yaml",
		"x:y:policy.yaml", "\x00/../poliCY.YAml", "//?/unc/a/b$/c", "https://example.com/../../policy.yaml", "~kim/../policy.yaml", "x/../~/desk/policy.yaml", "/../desk/policy.yaml",
		"file:" + strings.Repeat("../", 30) + "etc/writ/writ.yaml", ".. /.. /kim/desk/policy.yaml", "\"/../policy.yaml",
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
			Call: gate.Call{Server: "s", Tool: "read", Arguments: strictjson.Of([]byte(`{"path":` + string(quoted) + `}`))},
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

// TestFirstNames (R34, O30): whatever a path begins with, ".." takes it off to
// a server that reads the text plainly, so what lies behind it counts.
func TestFirstNames(t *testing.T) {
	p, c := newWorld(t, `
version: 1
pins: optional
tools:
  s/read: { effect: read }
  s/put: { effect: write, args: { /path: { role: target, from: [const: [x]] } } }
`, `{"s":[{"name":"read","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}},
		{"name":"put","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}]}`)
	firsts := []string{
		"http:", "HTTPS:", "https:x", "http://host", "https://user@host:8/a", "https:\\\\host", "wss://h", "mailto:", "mailto:kim@example.com", "data:",
		"data:text/plain;base64,eA==", "file:", "file://host", "git+ssh://h", "x-y.z:", "urn:a:b", "http%3A", "http:?", "https://h/?q", "https://h/#f",
		"~", "~root", "~kim", "~+", "~x.y", "$x", "$HOME", "${HOME}", "$env:TEMP", "$", "%TEMP%", "%HOMEDRIVE%%HOMEPATH%", "%", "a%b%c",
		"C:", "c:x", "C|", "C:\\x", "\\\\?\\C:", "\\\\host\\c$", "//host/c$", "é:", "ſ:", "K", "\u202e", "\u200b~", "日本", "\ufeff", "\u00a0",
		"", ".", "..", "...", ". ", ".. ", " ", "-", "--", "'", "\"", "`x`", "<x>", "x", "x.y", "proc", "a b", "\t", "\x01", "*", "[a]", "{a,b}", "(", ";", "&", "|",
	}
	own := []string{"/home/kim/.local/state/writ", "/home/kim/desk/policy.yaml", "/etc/rules", "/srv/own", "/srv/files/in/own"}
	program := "/home/kim/desk/server.js"
	bases := []string{"/home/kim/desk", "/srv/files", "/"}
	// plainly are the paths that a server makes of a text and of where it begins.
	plainly := func(base, text string) []string {
		resolved := text
		if !strings.HasPrefix(text, "/") {
			resolved = base + "/" + text
		}
		return []string{path.Clean(resolved), path.Clean(base + "/" + text)}
	}
	tried := 0
	for _, base := range bases {
		for _, o := range append(own, program) {
			var tails []string
			names := strings.Split(o[1:], "/")
			for i := range names {
				tails = append(tails, strings.Join(names[i:], "/"))
			}
			for _, first := range firsts {
				for _, slash := range []string{"", "/"} {
					for up := range 7 {
						for _, tail := range tails {
							text := slash + first + "/" + strings.Repeat("../", up) + tail
							if !slices.ContainsFunc(plainly(base, text), func(p string) bool { return inside(p, o) }) {
								continue
							}
							tried++
							quoted, _ := json.Marshal(text)
							for _, tool := range []string{"read", "put"} {
								d := gate.Decide(gate.Input{
									Policy: p, Catalogue: c, OwnPaths: own, Programs: []string{program}, Bases: []string{base},
									Call: gate.Call{Server: "s", Tool: tool, Arguments: strictjson.Of([]byte(`{"path":` + string(quoted) + `}`))},
								})
								refused := d.Outcome.Rejection != nil && d.Outcome.Rejection.Reason == writ.DirectOwnState
								if !refused && (tool == "put" || o != program) {
									t.Errorf("%q from %s is %s, and %s passes", text, base, o, tool)
								}
							}
						}
					}
				}
			}
		}
	}
	if tried < 1000 {
		t.Errorf("only %d texts name Writ's own", tried)
	}
}

// TestTooManyReadings (R34, O31): a text that may mean too much, and texts that
// together do, are refused and say so; many plain words are not.
func TestTooManyReadings(t *testing.T) {
	p, c := newWorld(t, "version: 1\npins: optional\ntools:\n  s/read: { effect: read }\n",
		`{"s":[{"name":"read","inputSchema":{"type":"object","properties":{"path":{"type":["string","array"]}}}}]}`)
	list := func(n int, text string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = text + strconv.Itoa(i)
		}
		b, _ := json.Marshal(all)
		return string(b)
	}
	many := "a%" + strings.Repeat("25", 100) + "41"
	for args, want := range map[string]writ.Reason{
		list(20_000, "a%2525252520b/%20\\"):        writ.DirectUnresolved,
		strconv.Quote(many):                        writ.DirectUnresolved,
		list(90_000, "word"):                       "",
		list(20_000, "https://example.com/a%20b/"): "",
		strconv.Quote(strings.Repeat("A long text: it costs ~5 $, or 20% of http://example.com/x. ", 10_000)): "",
	} {
		d := gate.Decide(gate.Input{
			Policy: p, Catalogue: c, OwnPaths: []string{"/home/kim/desk/policy.yaml"}, Bases: []string{base},
			Call: gate.Call{Server: "s", Tool: "read", Arguments: strictjson.Of([]byte(`{"path":` + args + `}`))},
		})
		var got writ.Reason
		if r := d.Outcome.Rejection; r != nil {
			got = r.Reason
		}
		if got != want {
			t.Errorf("%.40s… (%d bytes): %q, want %q", args, len(args), got, want)
		}
	}
	if _, all := gate.Paths(many); all {
		t.Error("a text escaped a hundred times has all its readings")
	}
}

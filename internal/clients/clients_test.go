package clients

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/writ-project/writ/gate"
)

// command is what the tests put in front of every server.
func command(name string) []string { return []string{"/opt/writ", "run", "--only", name} }

// cases are the files of testdata: each named as the client whose it is, with the file
// before, what is read of it, and the lines that Wrap changes.
func cases(t testing.TB) map[*Client]*txtar.Archive {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) < len(All) {
		t.Fatal("there is not a case for each client", err)
	}
	out := map[*Client]*txtar.Archive{}
	for _, f := range files {
		a, err := txtar.ParseFile(f)
		c := Named(strings.TrimSuffix(filepath.Base(f), ".txtar"))
		if err != nil || c == nil {
			t.Fatal(f, err)
		}
		out[c] = a
	}
	return out
}

func part(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// said is what was read of a file, a line for each server.
func said(all []Server) string {
	var b strings.Builder
	for _, s := range all {
		fmt.Fprint(&b, s.Name)
		if s.Left != "" {
			fmt.Fprintf(&b, " left: %s\n", s.Left)
			continue
		}
		fmt.Fprint(&b, " ", strings.Join(s.Command, "|"), s.URL)
		var names []string
		for n := range s.Env {
			names = append(names, n)
		}
		slices.Sort(names)
		for what, v := range map[string][]string{"env": names, "inherits": s.Inherit} {
			if len(v) > 0 {
				fmt.Fprint(&b, " ", what, " ", strings.Join(v, ","))
			}
		}
		env, args := s.Credentials()
		if len(env) > 0 {
			fmt.Fprint(&b, " secret ", strings.Join(env, ","))
		}
		if len(args) > 0 {
			fmt.Fprintf(&b, " secret %d arguments", len(args))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestFiles: each client's file, as it is, with lines of Windows, behind a mark of byte
// order: what is read, what changes, and that it is there again afterwards.
func TestFiles(t *testing.T) {
	for c, a := range cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			before := part(a, "before")
			if c.Name == "cursor" {
				before = strings.TrimSuffix(before, "\n")
			}
			for what, b := range map[string][]byte{
				"as it is": []byte(before),
				"crlf":     []byte(strings.ReplaceAll(before, "\n", "\r\n")),
				"mark":     []byte("\ufeff" + before),
				"comment":  []byte(before + "// without a line's end"),
			} {
				if (what == "mark" || what == "comment") && c.Layout.TOML {
					continue
				}
				all, err := c.Layout.Read(b)
				if err != nil {
					t.Fatal(what, err)
				}
				if d := cmp.Diff(part(a, "servers"), said(all)); d != "" {
					t.Errorf("%s: read: %s", what, d)
				}
				out, undo, err := c.Layout.Wrap(b, command)
				if err != nil {
					t.Fatal(what, err)
				}
				lines := strings.Join(c.Layout.Diff(b, out), "\n") + "\n"
				if want := part(a, "diff"); want != "" {
					if d := cmp.Diff(want, lines); d != "" {
						t.Errorf("%s: %s", what, d)
					}
				}
				for _, secret := range []string{"ghp_", "hunter2", "k-123", "t-9", "Bearer"} {
					if strings.Contains(lines, secret) {
						t.Errorf("%s: a credential is shown: %s", what, lines)
					}
				}
				if what == "crlf" && bytes.Count(out, []byte("\n")) != bytes.Count(out, []byte("\r\n")) {
					t.Errorf("a line ends otherwise than the others:\n%q", out)
				}
				back, left, err := c.Layout.Unwrap(out, undo)
				if err != nil || len(left) > 0 || !bytes.Equal(back, b) {
					t.Errorf("%s: not put back: %v %v", what, left, err)
				}
				again, more, err := c.Layout.Wrap(out, command)
				if err != nil || len(more) > 0 || !bytes.Equal(again, out) {
					t.Errorf("%s: a second time it changes %d more: %v", what, len(more), err)
				}
			}
		})
	}
}

// TestChangedSince: what a person or the client changed after Wrap stays; the rest is
// put back.
func TestChangedSince(t *testing.T) {
	const before = `{"mcpServers": {"h": {"headers": {"X": "v1"}, "timeout": 5, "url": "https://x.example/"}, "a": {"command": "x", "env": {"K": "v"}}, "b": {"command": "y", "args": ["1"]}, "c": {"command": "z"}}}`
	l := Generic
	out, undo, err := l.Wrap([]byte(before), command)
	if err != nil {
		t.Fatal(err)
	}
	if kept := fmt.Sprint(undo); strings.Contains(kept, "v1") {
		t.Errorf("a header's value is in what is kept: %s", kept)
	}
	for _, c := range []struct {
		what     string
		old, new string
		want     string
		left     []string
	}{
		{"another value", `"v"`, `"w"`, strings.Replace(before, `"v"`, `"w"`, 1), nil},
		{"written in another way", `["run", "--only", "c"]`, "[\n \"run\",\n\"\\u002d-only\", \"c\"\n]", before, nil},
		{"the command is another", `"args": ["run", "--only", "b"]`, `"args": ["run"]`,
			strings.Replace(before, `"command": "y", "args": ["1"]`, `"command": "/opt/writ", "args": ["run"]`, 1), []string{"b"}},
		{"a comment between", `"/opt/writ", "args": ["run", "--only", "c"]`, `"/opt/writ", /* mine */ "args": ["run", "--only", "c"]`,
			strings.Replace(before, `"command": "z"`, `"command": "/opt/writ", /* mine */ "args": ["run", "--only", "c"]`, 1), []string{"c"}},
		{"another name", `"c": {`, `"d": {`, strings.Replace(before, `"c": {"command": "z"`, `"d": {"command": "/opt/writ", "args": ["run", "--only", "c"]`, 1), []string{"c"}},
		{"a header of what is hosted", `"v1"`, `"v2"`, strings.Replace(before, `"v1"`, `"v2"`, 1), nil},
		{"a variable more, of what is hosted", `"WRIT_HEADER_1": "v1"`, `"WRIT_HEADER_1": "v1", "MORE": ""`,
			strings.Replace(before, `{"headers": {"X": "v1"}, "timeout": 5, "url": "https://x.example/"}`,
				`{ "command": "/opt/writ", "args": ["run", "--only", "h"], "env": { "WRIT_HEADER_1": "v1", "MORE": "" }, "timeout": 5 }`, 1), []string{"h"}},
		{"what is hosted, written in another way", `"WRIT_HEADER_1": "v1"`, `/* v */ "WRIT_HEADER_1" : "v1",`, before, nil},
	} {
		if strings.Count(string(out), c.old) != 1 {
			t.Fatalf("%s: %q is not once in %s", c.what, c.old, out)
		}
		back, left, err := l.Unwrap([]byte(strings.Replace(string(out), c.old, c.new, 1)), undo)
		var names []string
		for _, l := range left {
			names = append(names, l.Name)
		}
		if err != nil || string(back) != c.want || !slices.Equal(names, c.left) {
			t.Errorf("%s: %v, left %v\n%s\nwant\n%s", c.what, err, left, back, c.want)
		}
	}
}

// TestRefused: what parsers read in two ways, or cannot bear, changes nothing.
func TestRefused(t *testing.T) {
	codex := Named("codex").Layout
	for _, c := range []struct {
		l    Layout
		file string
		want string
	}{
		{Generic, "{\n\"mcpServers\": {},\n\"mcpServers\": {}}", `line 3: "mcpServers" stands twice`},
		{Generic, "{\"mcpServers\": {\n\"a\": {},\n\"\\u0061\": {}}}", `line 3: "a" stands twice`},
		{Generic, "{\"mcpServers\": {\"a\": {\"command\": \"x\",\n\"command\": \"y\"}}}", `line 2: "command" stands twice`},
		{Generic, "{\"mcpServers\": {\"a\": {\"env\": {\"A\": \"x\",\n\"A\": \"y\"}}}}", `line 2: "A" stands twice`},
		{Generic, "{\"mcpServers\": []}", `line 1: "mcpServers" is no JSON object`},
		{Generic, "[]", "the file is no JSON object"},
		{Generic, "{", "not JSON"},
		{Generic, "{\"a\": \"\xff\"}", "not UTF-8"},
		{Generic, strings.Repeat("[", 1<<20), "nesting"},
		{Generic, strings.Repeat("{\"\":", 1<<20), "nesting"},
		{Generic, `{"mcpServers": {"a": ` + strings.Repeat("[", 101), "nesting"},
		{codex, "[mcp_servers.a]\ncommand = 'x'\ncommand = 'y'\n", "line 3: not TOML"},
		{codex, "[mcp_servers.a]\n[mcp_servers.a]\n", "line 2: not TOML"},
		{codex, "mcp_servers = 1\n", "no table"},
		{codex, "x = " + strings.Repeat("[", 200_000), "not TOML"},
		{codex, "x = " + strings.Repeat("{a=", 80_000), "not TOML"},
		{codex, "x = '" + strings.Repeat("a", 1<<20) + "'", "256 KiB"},
	} {
		out, undo, err := c.l.Wrap([]byte(c.file), command)
		if err == nil || !strings.Contains(err.Error(), c.want) || out != nil || undo != nil {
			t.Errorf("%.60q: %v, want %q", c.file, err, c.want)
		}
	}
	// As deep as it can be, and read.
	if _, err := codex.Read([]byte(strings.Repeat("a.", 100_000) + "a = 1\n")); err != nil {
		t.Error(err)
	}
	for _, empty := range []string{"", "\n", "{}", "\ufeff", `{"other": [[[]]]}`} {
		if out, undo, err := Generic.Wrap([]byte(empty), command); err != nil || undo != nil || string(out) != empty {
			t.Errorf("%q: %v %v", empty, undo, err)
		}
	}
}

// FuzzWrap: any file is refused, or changed in nothing but commands and arguments,
// and put back to the byte. What Wrap looks at itself is looked at here once more.
func FuzzWrap(f *testing.F) {
	for c, a := range cases(f) {
		f.Add([]byte(part(a, "before")), c.Layout.TOML, c.Layout.Vector)
		f.Add([]byte(strings.ReplaceAll(part(a, "before"), c.Layout.Key, "s")), c.Layout.TOML, c.Layout.Vector)
	}
	f.Add([]byte(`{"s":{"a":{/**/"args":[],//
"command":"x"}}}`), false, false)
	f.Add([]byte("s.a.command='''\nx'''\r\n[s.b]\ncommand=\"\"\"y\"\"\"#"), true, false)
	f.Fuzz(func(t *testing.T, b []byte, isTOML, vector bool) {
		l := Layout{Key: "s", TOML: isTOML, Vector: vector && !isTOML}
		out, undo, err := l.Wrap(b, command)
		if err != nil {
			// Only its own look at the change may find fault with what can be read.
			if _, rerr := l.Read(b); rerr == nil {
				t.Fatalf("it can be read, and not changed: %v\n%q", err, b)
			}
			return
		}
		all, _ := l.Read(b)
		now, err := l.Read(out)
		if err != nil || len(now) != len(all) {
			t.Fatalf("%d servers are %d: %v\n%q", len(all), len(now), err, out)
		}
		for i, s := range all {
			want := s.Left
			if s.Left == "" {
				want = "Writ is in front of it"
				if !slices.Equal(now[i].Command, command(s.Name)) {
					t.Fatalf("%q has the command %q", s.Name, now[i].Command)
				}
			}
			if now[i].Name != s.Name || now[i].Left != want || s.URL == "" && !cmp.Equal(now[i].Env, s.Env) {
				t.Fatalf("%+v is %+v", s, now[i])
			}
		}
		l.Diff(b, out)
		if back, left, err := l.Unwrap(out, undo); err != nil || len(left) > 0 || !bytes.Equal(back, b) {
			t.Fatalf("not put back: %v %v\n%q\n%q", left, err, b, back)
		}
	})
}

// TestPlaces: where each client keeps its file, on each system.
func TestPlaces(t *testing.T) {
	var b strings.Builder
	for _, os := range []string{"linux", "darwin", "windows"} {
		w := World{OS: os, Home: "/home/u", Env: func(name string) string {
			if os == "windows" && name == "APPDATA" {
				return "/home/u/AppData/Roaming"
			}
			return ""
		}}
		for _, c := range All {
			fmt.Fprintf(&b, "%s %s %s\n", os, c.Name, filepath.ToSlash(strings.Join(c.Files(w), " ")))
		}
	}
	for _, c := range All {
		fmt.Fprintf(&b, "project %s %s\n", c.Name, filepath.ToSlash(c.Project("p")))
	}
	golden := filepath.Join("testdata", "places")
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Error(d)
	}
	w := World{OS: "linux", Home: "/home/u", Env: func(name string) string {
		return map[string]string{"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "XDG_CONFIG_HOME": "/d"}[name]
	}}
	for name, want := range map[string]string{"claude-code": "/c/.claude.json", "codex": "/x/config.toml", "opencode": "/d/opencode/opencode.json", "vscode": "/d/Code/User/mcp.json"} {
		if got := filepath.ToSlash(Named(name).Files(w)[0]); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestCredentialArguments: what of a command looks like a credential is named, and not
// shown; what only names where one is, or is none, is neither.
func TestCredentialArguments(t *testing.T) {
	for argv, want := range map[string]string{
		"srv|--api-key|k-123":                                 "--api-key",
		"srv|--api-key=k-123|x":                               "--api-key",
		"srv|-H|Authorization: Bearer k-123==":                "Authorization",
		"srv|--header|Authorization:Bearer k-123":             "Authorization",
		"srv|--header=X-Api-Key: k-123":                       "X-Api-Key",
		"srv|-HAuthorization: Basic k-123=":                   "-HAuthorization",
		"docker|run|-e|API_KEY=k-123|img":                     "API_KEY",
		"docker|run|--env=API_TOKEN=k-123|img":                "API_TOKEN",
		"env|DB_PASSWORD=k-123|srv":                           "DB_PASSWORD",
		"npx|mcp-remote|https://x.example/mcp?apiKey=k-123":   "apiKey",
		"npx|mcp-remote|https://x.example/mcp?a=1&token=k123": "token",
		"srv|postgres://u:k-123@h/db":                         "argument 1",
		"srv|ghp_k123":                                        "argument 1",
		"srv|--pg|url=postgres://u:k-123@h/db":                "url",
		"srv|--token|ghp_k123|--api-key|k-1":                  "--token,--api-key",
		"srv|--token-file|/run/token":                         "",
		"srv|--token-file=/run/token":                         "",
		"srv|--no-auth=true":                                  "",
		"srv|--auth|none":                                     "",
		"srv|--token|--verbose":                               "",
		"srv|/home/k/token: notes/a":                          "",
		"srv|https://x.example/mcp?page=2":                    "",
		"srv|--root|/srv/secrets":                             "",
		"token|x":                                             "",
		"srv|--api-key|":                                      "",
	} {
		s := Server{Command: strings.Split(argv, "|")}
		_, got := s.Credentials()
		if strings.Join(got, ",") != want {
			t.Errorf("%s: %v, want %s", argv, got, want)
		}
		if shown := strings.Join(Shown(s.Command), "|"); want == "" && shown != argv || want != "" && (strings.Contains(shown, "k-1") || strings.Contains(shown, "k123")) {
			t.Errorf("%s: shown as %s", argv, shown)
		}
	}
}

// TestWithout: what a server wrote is shown without its credentials, and with all else.
func TestWithout(t *testing.T) {
	env := map[string]string{"TOKEN": "k-1", "API_KEY": "plainword", "DSN": "postgres://u:hunter22@db/x", "MODE": "quick"}
	argv := []string{"server", "--password", "swordfish", "--header=Authorization: opensesame", "PORT=8080", "https://h.example/?key=v"}
	for said, want := range map[string]string{
		"API_KEY plainword was refused":                         "API_KEY … was refused",
		"cannot reach postgres://u:hunter22@db/x in quick mode": "cannot reach … in quick mode",
		"cannot reach postgres://u:hunter22@db/y":               "cannot reach postgres://u:…@db/y",
		"user swordfish, header opensesame":                     "user …, header …",
		"401: ghp_0123456789abcdef":                             "401: …",
		"sent Authorization: Bearer 0123456789abcdef":           "sent Authorization: Bearer …",
		`{"access_token": "a1b2"}`:                              `{"access_token": "…"}`,
		"password=pa55":                                         "password=…",
		"no TOKEN is set, see https://h.example:8080/token":     "no TOKEN is set, see https://h.example:8080/token",
		"invalid token: expired":                                "invalid token: expired",
		"npm_config_registry is a task-list of 8080":            "npm_config_registry is a task-list of 8080",
	} {
		if got := Without(env, argv, said); got != want {
			t.Errorf("%s: %s", said, got)
		}
	}
}

// TestPlacesAreProtected: no act writes to a place where a client is found (R34), whatever
// the system.
func TestPlacesAreProtected(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		w := World{OS: system, Home: "/srv/kim", Env: func(name string) string {
			if name == "APPDATA" {
				return "/srv/kim/AppData/Roaming"
			}
			return ""
		}}
		for _, c := range All {
			files := c.Files(w)
			if file, _ := c.HooksFile(w); file != "" {
				files = append(files, file)
			}
			if file, _ := c.ProjectHooks("/srv/project"); file != "" {
				files = append(files, file)
			}
			if file := c.Project("/srv/project"); file != "" {
				files = append(files, file)
			}
			for _, f := range files {
				if !gate.Steers(f) {
					t.Errorf("%s, %s: %s is a file as any other", system, c.Name, f)
				}
			}
		}
	}
	for _, f := range []string{"/srv/kim/settings.json", "/srv/user/settings.json", "/srv/project/config.toml", "/srv/zed/notes.md"} {
		if gate.Steers(f) {
			t.Errorf("%s is protected", f)
		}
	}
}

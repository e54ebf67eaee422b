package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// TestLocate (R34, O06, O07, O08, O10, O30, O33, O34): whatever way a path leads to Writ's own
// state, the door says so to the gate.
func TestLocate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, root, work, home := filepath.Join(dir, "state"), filepath.Join(dir, "srv"), filepath.Join(dir, "work"), filepath.Join(dir, "home")
	program, policy := filepath.Join(dir, "bin", "server.js"), filepath.Join(work, "policy.yaml")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(state, "sub"), 0o700), os.MkdirAll(root, 0o700), os.MkdirAll(filepath.Join(work, "in"), 0o700),
		os.MkdirAll(filepath.Dir(program), 0o700), os.MkdirAll(filepath.Join(state, "sessions"), 0o700), os.MkdirAll(home, 0o700),
		os.WriteFile(filepath.Join(state, "sessions", "demo"), nil, 0o600), os.WriteFile(filepath.Join(state, "sessions", "demo.2"), nil, 0o600), os.WriteFile(filepath.Join(state, "log.key"), nil, 0o600),
		os.WriteFile(program, nil, 0o600), os.WriteFile(policy, nil, 0o600),
		os.Symlink(filepath.Join(state, "new.yaml"), filepath.Join(root, "dangling")),
		os.Symlink(filepath.Join(state, "sub"), filepath.Join(root, "link")),
		os.Symlink("../state", filepath.Join(root, "relative")),
		os.Symlink("loop", filepath.Join(root, "loop")),
		os.Symlink(state, filepath.Join(work, "in", "link")),
		os.Symlink("in/link", filepath.Join(work, "~kim")), os.Symlink("in/link", filepath.Join(work, "$x")), os.Symlink("in", filepath.Join(work, "http:")),
		os.Symlink(state, filepath.Join(home, "link")),
		os.Symlink(dir, filepath.Join(home, "up")),
		os.Link(filepath.Join(state, "log.key"), filepath.Join(root, "notes.txt")),
		os.Link(policy, filepath.Join(root, "todo.txt")),
		os.Link(program, filepath.Join(root, "script.js")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) string { return map[string]string{"HOME": home, "DATA": root}[name] }
	g := &Gateway{
		rules: &rules{}, disk: thisDisk{},
	}
	f := &fleet{
		servers: map[string]*server{
			"x":   {here: true, env: env, bases: []string{work, root}},
			"url": {here: true, env: env},
			"far": {env: env},
			"sh":  {here: true, env: env, bases: []string{work, root}, elsewhere: true},
		},
		ownPaths: []string{state, policy, "http://127.0.0.1:1"}, programs: []string{program},
	}
	declared, tools := locateRules(t)
	locate := func(call gate.Call) gate.Input {
		in := gate.Input{Policy: declared, Catalogue: tools, Call: call}
		g.locate(t.Context(), f, &in, nil)
		return in
	}
	at := func(server, args string) []string {
		in := locate(gate.Call{Server: server, Tool: "w", Arguments: strictjson.Of([]byte(args))})
		if len(in.Unresolved) > 0 {
			return []string{state} // it is refused
		}
		return slices.DeleteFunc(in.Resolved["/p"], func(s string) bool { return strings.HasSuffix(s, "/") })
	}
	in := func(paths []string, own string) bool {
		return slices.ContainsFunc(paths, func(p string) bool { return p == own || strings.HasPrefix(p, own+"/") })
	}
	decoys := strings.Repeat(`"`+root+`/link",`, 1000)
	var flood strings.Builder
	for i := range maxLooks / 2 {
		fmt.Fprintf(&flood, `"a%d",`, i)
	}
	for what, args := range map[string]string{
		"a link to what is not there yet":   `{"p":"` + root + `/dangling"}`,
		"below a relative link":             `{"p":"` + root + `/relative/new/x"}`,
		".. after a link":                   `{"p":"` + root + `/link/../policy.yaml"}`,
		".. before a link, cleaned first":   `{"p":"` + root + `/nowhere/../relative/x"}`,
		".. that only cleaning takes back":  `{"p":"` + root + `/link/../relative/x"}`,
		"a file URL, escaped":               `{"p":"file://` + root + `/%6cink/x"}`,
		"a file URL of localhost":           `{"p":"file://localhost` + root + `/relative/policy.yaml"}`,
		"a file URL in upper case":          `{"p":"FILE://` + root + `/relative/policy.yaml"}`,
		"a file URL with one slash":         `{"p":"file:` + root + `/relative/policy.yaml"}`,
		"after a thousand others":           `{"content":[` + decoys + `"x"],"p":"` + root + `/relative/x"}`,
		"after too many others":             `{"content":[` + flood.String() + `"x"],"p":"` + root + `/a"}`,
		"a loop":                            `{"p":"` + root + `/loop/x"}`,
		"a link by a relative path":         `{"p":"in/link/log.key"}`,
		"a link below the root":             `{"p":"/in/link/log.key"}`,
		"a link above the root":             `{"p":"/../work/in/link/log.key"}`,
		"after a scheme that is none":       `{"p":"https:x/../in/link/log.key"}`,
		"after a host":                      `{"p":"https://example.com/../../in/link/log.key"}`,
		"after a home that is none":         `{"p":"~root/../in/link/log.key"}`,
		"after a variable that is none":     `{"p":"$y/../in/link/log.key"}`,
		"a link that is called as a home":   `{"p":"~kim/log.key"}`,
		"one called as a variable":          `{"p":"$x/log.key"}`,
		"one called as a scheme":            `{"p":"http://link/log.key"}`,
		"a link in the second directory":    `{"p":"relative"}`,
		"a relative file URL":               `{"p":"file:in/link/log.key"}`,
		"a link in the home directory":      `{"p":"~/link"}`,
		"the same, as a variable":           `{"p":"${HOME}/link/x"}`,
		"through a link above it":           `{"p":"$HOME/up/state/log.key"}`,
		"a variable of the server":          `{"p":"$DATA/relative"}`,
		"a hard link":                       `{"p":"` + root + `/notes.txt"}`,
		"a hard link by a relative path":    `{"p":"notes.txt"}`,
		"a link in what another names":      `{"d":"` + home + `","p":"link"}`,
		"the same, named before":            `{"p":"link","z":"` + home + `"}`,
		"two names of a file of the state":  `{"p":"sessions/demo"}`,
		"and behind others":                 `{"p":"some/./where/sessions//demo"}`,
		"a name in the state with a suffix": `{"p":"log.key"}`,
		"the state's own name before it":    `{"p":"state/log.key"}`,
		"the same, further down":            `{"p":"x/./State//LOG.key"}`,
		"and of a directory in it":          `{"p":"state/sessions"}`,
		"a session there is not":            `{"p":"sessions/other"}`,
		"the same behind others":            `{"p":"some/where/sessions/other-2"}`,
		"a session's name with a dot":       `{"p":"sessions/demo.2"}`,
	} {
		if got := at("x", args); !in(got, state) {
			t.Errorf("%s: resolved to %q", what, got)
		}
	}
	for own, args := range map[string]string{policy: `{"p":"todo.txt"}`, program: `{"p":"script.js"}`} {
		if got := at("x", args); !in(got, own) {
			t.Errorf("another name of %s: resolved to %q", own, got)
		}
	}
	for what, args := range map[string]string{
		"an ordinary path":                `{"p":"` + root + `/a.txt"}`,
		"an ordinary relative path":       `{"p":"in/a.txt"}`,
		"a text":                          `{"p":"see /srv for more"}`,
		"a name of the state elsewhere":   `{"p":"` + root + `/sessions/demo"}`,
		"a web page":                      `{"p":"https://example.com` + state + `"}`,
		"a file of a project":             `{"p":"src/sessions/index.ts"}`,
		"a page of it":                    `{"p":"sessions/README"}`,
		"a name the state does not have":  `{"p":"state/notes.md"}`,
		"the state's name":                `{"p":"x/state"}`,
		"a name after another directory":  `{"p":"x/log.key"}`,
		"a web page with such a name":     `{"p":"https://example.com/a/../sessions/demo"}`,
		"a path with a NUL and then more": `{"p":"` + root + `/a\u0000b"}`,
	} {
		if got := at("x", args); len(got) > 0 {
			t.Errorf("%s: resolved to %q", what, got)
		}
	}
	for what, args := range map[string]string{
		"an absolute path": `{"p":"` + root + `/relative"}`,
		"a hard link":      `{"p":"` + root + `/notes.txt"}`,
		"the home":         `{"p":"~/link"}`,
		"a tail":           `{"p":"/data/sessions/demo"}`,
		"a name":           `{"p":"/data/log.key"}`,
	} {
		if got := at("url", args); !in(got, state) {
			t.Errorf("a server at a URL of this machine, %s: resolved to %q", what, got)
		}
	}
	for what, args := range map[string]string{
		"a link by a relative path": `{"p":"in/link/log.key"}`,
		"a tail":                    `{"p":"/data/sessions/demo"}`,
		"a name":                    `{"p":"/data/log.key"}`,
		"a name in a directory":     `{"p":"x/log.key"}`,
		"the state's own name":      `{"p":"/state/log.key"}`,
	} {
		if got := at("sh", args); !in(got, state) {
			t.Errorf("a server that may begin elsewhere, %s: resolved to %q", what, got)
		}
	}
	if got := at("far", `{"p":"`+root+`/relative"}`); len(got) > 0 {
		t.Errorf("a server elsewhere: resolved to %q", got)
	}
	if got := at("far", `{"p":"/data/sessions/demo"}`); !in(got, state) {
		t.Errorf("the tail, for a server elsewhere: resolved to %q", got)
	}

	// A root the client named in an answer is a base from then on (O24).
	if got := at("x", `{"p":"up/state/new"}`); len(got) > 0 {
		t.Errorf("before the answer: resolved to %q", got)
	}
	locate(gate.Call{Server: "x", Tool: "w", Answers: strictjson.Of([]byte(`{"1":{"roots":[{"uri":"file://` + home + `"}]}}`))})
	if got := at("x", `{"p":"up/state/new"}`); !in(got, state) {
		t.Errorf("after the answer: resolved to %q", got)
	}

	// Directories and what they would bring are told for writes alone.
	if err := os.MkdirAll(filepath.Join(root, "parcel", ".git", "hooks"), 0o700); err != nil {
		t.Fatal(err)
	}
	l := newLook(t.Context(), g.disk, f, f.servers["x"], true)
	l.text("/p", "parcel")
	if want := []string{root + "/parcel/", root + "/parcel/.git"}; !slices.Equal(l.out["/p"], want) {
		t.Errorf("a directory that is to be moved: %q, want %q", l.out["/p"], want)
	}
}

// TestGiven (R34, O11, O32): what a server's command says of its directories and of
// the programs it is made of.
func TestGiven(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"work/server.js", "work/data.csv", "home/x", "bin/tool"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o600)
		if filepath.Base(name) == "tool" {
			mode = 0o700
		}
		if err := os.WriteFile(file, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	work, home, bin := filepath.Join(dir, "work"), filepath.Join(dir, "home"), filepath.Join(dir, "bin")
	for name, text := range map[string]string{"wrap": "#!/usr/bin/env -S bash -e\n", "start.sh": "", "node": "#!/usr/bin/env node\nsh"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		config         upstream.Config
		dirs, programs []string
		elsewhere      bool
	}{
		{upstream.Config{Command: []string{"no-such-program", "server.js", "data.csv", "--root=" + home, "../bin"}, Dir: work},
			[]string{work, bin, home}, []string{filepath.Join(work, "server.js")}, false},
		{upstream.Config{Command: []string{filepath.Join(bin, "tool"), "stdio"}, Dir: work, Env: map[string]string{"ROOTS": home + string(filepath.ListSeparator) + bin, "N": ""}},
			[]string{work, bin, home}, []string{filepath.Join(bin, "tool")}, false},
		{upstream.Config{Command: []string{"no-such-program", "~"}, Dir: work, Env: map[string]string{"HOME": home}},
			[]string{work, home}, nil, false},
		// A container's paths are its own, and nobody knows what a shell runs,
		// whatever runs them (O32).
		{upstream.Config{Command: []string{"docker", "run", "-v", home + ":/data", "image"}, Dir: work}, []string{work, home}, nil, true},
		{upstream.Config{Command: []string{"sudo", "-n", "/usr/bin/docker", "run", "-v", home + ":/data", "image"}, Dir: work}, []string{work, home}, nil, true},
		{upstream.Config{Command: []string{"env", "A=b", "Podman.exe", "run", "image"}, Dir: work}, []string{work}, nil, true},
		{upstream.Config{Command: []string{"no-such-program", "-c", "exec docker run image;true"}, Dir: work}, []string{work}, nil, true},
		{upstream.Config{Command: []string{"/bin/sh", "-c", "exec node server"}, Dir: work}, []string{work}, nil, true},
		{upstream.Config{Command: []string{"nice", "bash", "server"}, Dir: work}, []string{work}, nil, true},
		{upstream.Config{Command: []string{filepath.Join(bin, "wrap")}, Dir: work}, []string{work}, []string{filepath.Join(bin, "wrap")}, true},
		{upstream.Config{Command: []string{filepath.Join(bin, "start.sh")}, Dir: work}, []string{work}, []string{filepath.Join(bin, "start.sh")}, true},
		{upstream.Config{Command: []string{filepath.Join(bin, "node")}, Dir: work}, []string{work}, []string{filepath.Join(bin, "node")}, false},
		{upstream.Config{Command: []string{"no-such-program", "--docker-hub", "dockerfile", "shell", "x.sh.txt"}, Dir: work}, []string{work}, nil, false},
		{upstream.Config{URL: "http://127.0.0.1/mcp"}, nil, nil, false},
	} {
		dirs, programs, elsewhere := Given(c.config)
		if c.programs != nil && !slices.Equal(programs, c.programs) || !slices.Equal(dirs, c.dirs) || elsewhere != c.elsewhere {
			t.Errorf("%v: given %q, made of %q, elsewhere %v; want %q, %q and %v", c.config.Command, dirs, programs, elsewhere, c.dirs, c.programs, c.elsewhere)
		}
	}
}

// locateRules are the rules of a tool w that reads and a tool put that writes,
// of each server TestLocate and TestLooks have.
func locateRules(t testing.TB) (*policy.Policy, *gate.Catalogue) {
	t.Helper()
	var rules strings.Builder
	rules.WriteString("pins: optional\ncollections: { path: { closed: true } }\ntools:\n")
	var defs []gate.Definition
	for _, server := range []string{"x", "url", "far", "sh"} {
		fmt.Fprintf(&rules, "  %s/w: { effect: read, args: { /text: { role: content } } }\n"+
			"  %s/put: { effect: write, args: { /p: { role: target, collection: path }, /many/*: { role: selector, collection: path, max_items: 100 }, /text: { role: content, content: local } } }\n", server, server)
		for _, tool := range []string{"w", "put"} {
			defs = append(defs, gate.Definition{Server: server, Raw: []byte(`{"name":"` + tool + `","inputSchema":{"type":"object","properties":` +
				`{"p":{"type":"string"},"d":{"type":"string"},"z":{"type":"string"},"content":{"type":"array"},"many":{"type":"array"},"text":{}}}}`)})
		}
	}
	p, faults := policy.Parse("policy", []byte(rules.String()))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	c, _ := gate.NewCatalogue(defs, p)
	return p, c
}

// counted is the disk, and how often it is asked; each entry of a directory
// counts.
type counted struct {
	thisDisk
	asked int
	ended func() // called when it is first asked
}

func (c *counted) ask(n int) {
	if c.asked == 0 && c.ended != nil {
		c.ended()
	}
	c.asked += n
}

func (c *counted) Lstat(p string) (fs.FileInfo, error) { c.ask(1); return c.thisDisk.Lstat(p) }

func (c *counted) Stat(p string) (fs.FileInfo, error) { c.ask(1); return c.thisDisk.Stat(p) }

func (c *counted) Readlink(p string) (string, error) { c.ask(1); return c.thisDisk.Readlink(p) }

func (c *counted) Home(name string) (string, error) { c.ask(1); return c.thisDisk.Home(name) }

func (c *counted) ReadDir(p string, most int) ([]fs.DirEntry, error) {
	es, err := c.thisDisk.ReadDir(p, most)
	c.ask(1 + len(es))
	return es, err
}

// TestLooks (R34, O31): what a call makes the door do is bounded, whatever its
// arguments are, and none of it is done for a call that its schema refuses.
func TestLooks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, root, big := filepath.Join(dir, "state"), filepath.Join(dir, "root"), filepath.Join(dir, "root", "big")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(state, "sessions"), 0o700), os.MkdirAll(big, 0o700),
		os.WriteFile(filepath.Join(root, "a"), nil, 0o600), os.Link(filepath.Join(root, "a"), filepath.Join(root, "b")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 300 {
		for _, name := range []string{filepath.Join(big, strconv.Itoa(i)), filepath.Join(state, "sessions", strconv.Itoa(i))} {
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(filepath.Join(root, "d"+strconv.Itoa(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	declared, tools := locateRules(t)
	list := func(format string, n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = strconv.Quote(strings.ReplaceAll(format, "N", strconv.Itoa(i)))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	same := func(text string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(strconv.Quote(text)+",", n), ",") + "]"
	}
	for _, c := range []struct {
		what, tool, args string
		most             int
		refused          bool
	}{
		{"one file", "w", `{"p":"a"}`, 1000, false},
		{"a directory written to", "put", `{"p":"` + big + `"}`, 1000, false},
		{"the same directory, often", "put", `{"many":` + same(big, 100) + `}`, 1000, false},
		{"a file of two names, often", "w", `{"content":` + same(root+"/a", 3000) + `}`, 2000, false},
		{"many words", "w", `{"content":` + list("wN", 60_000) + `}`, 61_000, false},
		{"a long text", "put", `{"p":"a","text":"` + strings.Repeat("a/b ", 99_000) + `"}`, 1000, false},
		{"what the schema refuses", "put", `{"p":` + same(big, 2000) + `}`, 0, false},
		{"more than max_items", "put", `{"many":` + same(big, 101) + `}`, 0, false},
		{"what is no tool", "none", `{"p":` + same(big, 100) + `}`, 0, false},
		{"many that are escaped", "w", `{"content":` + list("a%2525252520b/%20\\N", 20_000) + `}`, maxLooks, true},
		{"directories by names", "w", `{"content":` + strings.TrimSuffix(list(root+"/dN", 300), "]") + "," + list("rN/x/y", 400)[1:] + `}`, maxLooks, true},
		{"many names of homes", "w", `{"content":` + list("~nobodyN/x", 20_000) + `}`, maxLooks, true},
		{"deep paths", "w", `{"content":` + list("N"+strings.Repeat("/a/..", 700), 2000) + `}`, maxLooks, false},
	} {
		disk := &counted{}
		g := &Gateway{rules: &rules{}, disk: disk}
		f := &fleet{
			servers:  map[string]*server{"x": {here: true, env: func(string) string { return "" }, bases: []string{root}}},
			ownPaths: []string{state, filepath.Join(dir, "policy.yaml")},
		}
		in := gate.Input{Policy: declared, Catalogue: tools, Call: gate.Call{Server: "x", Tool: c.tool, Arguments: strictjson.Of([]byte(c.args))}}
		g.locate(t.Context(), f, &in, nil)
		if disk.asked > c.most || (len(in.Unresolved) > 0) != c.refused {
			t.Errorf("%s: the disk was asked %d times, at most %d may be; unresolved %q", c.what, disk.asked, c.most, in.Unresolved)
		}
		if d := gate.Decide(in); c.refused && (d.Allowed() || d.Outcome.Rejection.Reason != writ.DirectUnresolved) {
			t.Errorf("%s: %+v", c.what, d.Outcome)
		}
		// Nothing more is asked once nobody waits for it.
		ctx, cancel := context.WithCancel(t.Context())
		disk.asked, disk.ended, in.Unresolved = 0, cancel, nil
		g.locate(ctx, f, &in, nil)
		if disk.asked > 1001 || disk.asked > 0 && len(in.Unresolved) == 0 {
			t.Errorf("%s, given up: the disk was asked %d times; unresolved %q", c.what, disk.asked, in.Unresolved)
		}
		cancel()
	}
}

// TestStateListed (R34): one of Writ's own directories is read again when something
// came or went in it, and not while nothing did.
func TestStateListed(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, long := filepath.Join(dir, "state"), time.Now().Add(-time.Hour)
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	reads := &readings{}
	f := &fleet{ownPaths: []string{state}}
	srv := &server{here: true, env: func(string) string { return "" }, bases: []string{dir}}
	named := func(name string) bool {
		l := newLook(t.Context(), reads, f, srv, false)
		l.text("/p", name)
		return slices.Contains(l.out["/p"], filepath.Join(state, name))
	}
	for _, c := range []struct {
		what   string
		change func() error
		named  bool
	}{
		{"nothing", func() error { return nil }, false},
		{"a file comes", func() error { return os.WriteFile(filepath.Join(state, "log.key"), nil, 0o600) }, true},
		{"and goes", func() error { return os.Remove(filepath.Join(state, "log.key")) }, false},
		{"another directory is put in its place, of the same time", func() error {
			other := filepath.Join(dir, "other")
			return errors.Join(os.Mkdir(other, 0o700), os.WriteFile(filepath.Join(other, "log.key"), nil, 0o600),
				os.Chtimes(other, long, long), os.Remove(state), os.Rename(other, state))
		}, true},
		{"a file goes and the time is set back", func() error {
			return errors.Join(os.Remove(filepath.Join(state, "log.key")), os.Chtimes(state, long, long))
		}, false},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		if got := named("log.key"); got != c.named {
			t.Errorf("%s: named %v, want %v", c.what, got, c.named)
		}
	}
	if fi, err := os.Lstat(state); err == nil {
		if _, known := changedAt(fi); !known {
			t.Skip("when a directory changed is not known on this system: it is read each time")
		}
	}
	was, _ := f.listed.Load(state)
	d := was.(listedDir)
	d.settled = true // as it is once it did not change for a while
	f.listed.Store(state, d)
	reads.n = 0
	if named("log.key") || reads.n != 0 {
		t.Errorf("nothing changed: it was read %d times", reads.n)
	}
}

// readings is the disk, and how often a directory was read.
type readings struct {
	thisDisk
	n int
}

func (r *readings) ReadDir(p string, most int) ([]fs.DirEntry, error) {
	r.n++
	return r.thisDisk.ReadDir(p, most)
}

// blind is the disk while no directory can be opened.
type blind struct {
	thisDisk
	on bool
}

func (b *blind) ReadDir(p string, most int) ([]fs.DirEntry, error) {
	if b.on {
		return nil, &fs.PathError{Op: "open", Path: p, Err: syscall.EMFILE}
	}
	return b.thisDisk.ReadDir(p, most)
}

// TestBlind (R34): while a directory cannot be read, what is in it is not known, which stops
// the look; it is read once it can be.
func TestBlind(t *testing.T) {
	state := t.TempDir()
	if err := os.WriteFile(filepath.Join(state, "log.key"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(state, time.Now(), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	d := &blind{}
	f := &fleet{ownPaths: []string{state}}
	srv := &server{here: true, env: func(string) string { return "" }}
	for _, d.on = range []bool{true, false} {
		l := newLook(t.Context(), d, f, srv, false)
		l.text("/p", "log.key")
		if l.stopped != d.on || d.on && l.at != "/p" {
			t.Errorf("blind %v: stopped %v at %q", d.on, l.stopped, l.at)
		}
		if named := slices.Contains(l.out["/p"], filepath.Join(state, "log.key")); named == d.on {
			t.Errorf("blind %v: log.key is named: %v", d.on, named)
		}
	}
	steered := t.TempDir()
	if err := os.WriteFile(filepath.Join(steered, ".envrc"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, d.on = range []bool{true, false} {
		l := newLook(t.Context(), d, f, srv, true)
		l.text("/p", steered)
		if l.stopped != d.on {
			t.Errorf("blind %v, below a directory that is written to: stopped %v", d.on, l.stopped)
		}
		if named := slices.Contains(l.out["/p"], filepath.Join(steered, ".envrc")); named == d.on {
			t.Errorf("blind %v: .envrc is named: %v", d.on, named)
		}
	}
}

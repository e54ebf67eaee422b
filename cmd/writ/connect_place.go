package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/clients"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/private"
)

// place is one file of one client, and where what Writ keeps for it is.
type place struct {
	name, title string
	layout      clients.Layout
	file        string // in truth
	link        string // by which it was found, "" where that is no link
	given       string // as a command takes it
	project     bool
	dir         string
	events      []clients.HookEvent // at which the client can run something, nil for none
	hooksFile   string              // where it says what
	rank        int                 // of what counts in the current directory, the higher wins; 0 for what does not
}

// connected is what was done to a client's file, and how it is undone.
type connected struct {
	Client  string            `json:"client"`
	File    string            `json:"file"`
	Layout  clients.Layout    `json:"layout"`
	Backup  string            `json:"backup"`
	Servers map[string]string `json:"servers"` // names in the file to those in writ.yaml
	Undo    []clients.Undo    `json:"undo"`
	Hooks   *connectedHooks   `json:"hooks,omitempty"`
	State   string            `json:"state,omitempty"` // beside whose logins' key is that of what was sealed
}

// wrote reports whether a server's command is one that writ connect wrote, or has this program
// in the place of that one's.
func (rec *connected) wrote(s *clients.Server) bool {
	self, _ := os.Executable()
	return rec != nil && slices.ContainsFunc(rec.Undo, func(u clients.Undo) bool {
		return u.Name == s.Name && u.Made(s.Command) && slices.Contains([]string{u.Ours[0], self}, s.Command[0])
	})
}

// gone reports whether the program of a client's entry is not there any more.
func gone(program string) bool {
	_, err := os.Stat(program)
	return filepath.IsAbs(program) && errors.Is(err, fs.ErrNotExist)
}

// strange is what a server that runs through Writ is left alone for, where nobody knows by
// whose policy it does.
const strange = "it starts Writ, not by writ connect, or changed since"

func (p *place) config() string     { return filepath.Join(p.dir, "writ.yaml") }
func (p *place) policy() string     { return filepath.Join(p.dir, "policy.yaml") }
func (p *place) recordFile() string { return filepath.Join(p.dir, connectedFile) }

const (
	connectedFile = "connected.json"
	maxConnected  = 64 << 10 // as much as private.ReadFile reads
)

func (p *place) report() *connectReport {
	return &connectReport{Client: p.name, File: p.file, Link: p.link, Servers: []connectServer{}, Diff: []string{}}
}

// keptIn is where Writ keeps a client's writ.yaml, policy and what is to be undone.
func keptIn(parts ...string) (string, error) {
	base, err := os.UserConfigDir()
	if err != nil {
		return "", cli.Fail(cli.ExitConfig, "", "no directory to keep the configuration in")
	}
	return filepath.Join(append([]string{base, "writ"}, parts...)...), nil
}

// scope is which of a client's servers are meant: those of a project's file, those it has
// in one directory alone, or with neither its own.
type scope struct{ project, local string }

// findPlace finds the file that a client, or a path, names.
func findPlace(arg string, of scope) (*place, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, cli.Fail(cli.ExitConfig, "", "no home directory to look for the client's file in")
	}
	dir := cmp.Or(of.project, of.local)
	if dir != "" {
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, cli.Fail(cli.ExitIO, "", "the directory has no absolute path")
		}
	}
	p, c := &place{given: arg, project: of.project != ""}, clients.Named(arg)
	var files []string
	switch {
	case c == nil && (of != scope{} || !strings.ContainsAny(arg, `/\.`)):
		return nil, cli.Fail(cli.ExitUsage, "writ connect --help", "the clients known by name are %s; of another one give the path of its file", clientNames())
	case c == nil:
		p.name, p.title, p.layout, files = "file", "the client", clients.Generic, []string{arg}
	default:
		w := clients.World{OS: runtime.GOOS, Home: home, Env: os.Getenv}
		p.name, p.title, p.layout, files = c.Name, c.Title, c.Layout, c.Files(w)
		p.hooksFile, p.events = c.HooksFile(w)
	}
	switch {
	case of.project != "":
		if files = []string{c.Project(of.project)}; files[0] == "" {
			return nil, cli.Fail(cli.ExitUsage, "writ connect "+c.Name, "%s has no file of a project", c.Title)
		}
		p.given = arg + " --project " + private.Quote(of.project)
		p.hooksFile, p.events = c.ProjectHooks(dir)
	case of.local != "":
		var ok bool
		if p.layout, ok = c.Local(dir); !ok {
			return nil, cli.Fail(cli.ExitUsage, "writ connect "+c.Name, "%s keeps no servers for one directory in its own file", c.Title)
		}
		of.local = dir
		p.given, p.title = arg+" --local "+private.Quote(dir), c.Title+" in "+private.Word(dir)
	}
	for _, file := range files {
		if there, err := p.at(file); err != nil || there {
			return p, cmp.Or(err, p.keptFor(c != nil && of == scope{}, of.local))
		}
	}
	return nil, cli.Fail(cli.ExitData, otherPlace(c, of), "%s has no such file: %s", p.title, cli.Printable(strings.Join(files, ", ")))
}

// otherPlace is what to try where a client has no file of its own.
func otherPlace(c *clients.Client, of scope) string {
	if c != nil && of == (scope{}) {
		if _, err := findPlace(c.Name, scope{project: "."}); err == nil {
			return "the same command with --project ."
		}
	}
	return "writ status"
}

// at finds where a file is in truth, if it is there.
func (p *place) at(file string) (there bool, err error) {
	if file, err = filepath.Abs(file); err != nil {
		return false, cli.Fail(cli.ExitIO, "", "the file has no absolute path")
	}
	if p.file, err = filepath.EvalSymlinks(file); err != nil {
		return false, nil
	}
	if fi, err := os.Lstat(file); p.file != file && err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		p.link = file
	}
	return true, nil
}

// keptFor finds where what Writ keeps for the file is: of a client's own one by its name, of what it
// has for a directory alone by that too.
func (p *place) keptFor(own bool, local string) (err error) {
	name := p.name
	if !own {
		name = fmt.Sprintf("%s-%.8x", p.name, sha256.Sum256([]byte(p.file+local)))
	}
	p.dir, err = keptIn(name)
	return err
}

// read reads the client's file, which nobody else may write.
func (p *place) read() ([]byte, error) { return readClient(p.file) }

func readClient(file string) ([]byte, error) {
	b, err := config.ReadStart(file, clients.MaxBytes+1)
	switch e, others := errors.AsType[*private.Error](err); {
	case err == nil:
		return b, nil
	case others:
		return nil, exposed(e, "")
	case errors.Is(err, config.ErrIrregular):
		return nil, cli.Fail(cli.ExitData, "", "%s is no regular file", cli.Printable(file))
	}
	return nil, cli.Fail(cli.ExitIO, "", "%s cannot be read", cli.Printable(file))
}

func (p *place) unread(err error) error {
	return cli.Fail(cli.ExitData, "", "%s: %w; nothing was changed", cli.Printable(p.file), err)
}

// stillIs is an error unless a client's file is what was looked at.
func stillIs(file string, before []byte) error {
	now, err := readClient(file)
	if err == nil && !bytes.Equal(now, before) {
		err = cli.Fail(cli.ExitData, "the same command once more, with the client closed", "%s was changed meanwhile, and was left as it is", cli.Printable(file))
	}
	return err
}

// replaceClient writes a client's file, if it is still what was looked at.
func replaceClient(file string, before, after []byte) error {
	if err := stillIs(file, before); err != nil {
		return err
	}
	if err := replaceFile(file, after); err != nil {
		return cli.Fail(cli.ExitIO, "", "%s cannot be written", cli.Printable(file))
	}
	return nil
}

// backup keeps a copy beside the file, which nobody may read who may not read that.
func (p *place) backup(b []byte) (string, error) {
	fi, err := os.Stat(p.file)
	if err != nil {
		return "", cli.Fail(cli.ExitIO, "", "%s cannot be read", cli.Printable(p.file))
	}
	for n := 1; n <= 100; n++ {
		path := p.file + ".before-writ"
		if n > 1 {
			path = fmt.Sprintf("%s-%d", path, n)
		}
		switch err := private.WriteOnceLike(path, b, fi); {
		case err == nil:
			return path, nil
		case !errors.Is(err, os.ErrExist):
			return "", cli.Fail(cli.ExitIO, "", "no copy of the file can be kept beside it")
		}
	}
	return "", cli.Fail(cli.ExitIO, "", "there are 100 old copies beside the file")
}

// record is what was connected, nil where nothing was.
func (p *place) record() (*connected, error) {
	rec, err := readConnected(p.dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, exposed(err, "what was connected cannot be read: "+p.recordFile())
	case rec.File != p.file:
		return nil, cli.Fail(cli.ExitData, "writ status", "%s is connected by another file: %s", p.title, cli.Printable(rec.File))
	}
	rec.Layout = p.layout
	return rec, nil
}

func readConnected(dir string) (*connected, error) {
	b, err := private.ReadFile(filepath.Join(dir, connectedFile))
	if err != nil {
		return nil, err
	}
	rec := &connected{Servers: map[string]string{}}
	return rec, json.Unmarshal(b, rec)
}

func (p *place) keep(rec *connected) error {
	b, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if len(b) > maxConnected {
		return cli.Fail(cli.ExitData, "", "the commands that were there are larger than 64 KiB; the client's file was not changed")
	}
	return written(replaceFile(p.recordFile(), b))
}

// ownClient adds what says which servers the client starts by which command: the
// client's own file, its copy and what is to be undone.
func (o *files) ownClient(dir string) {
	o.own(filepath.Join(dir, connectedFile))
	if rec, err := readConnected(dir); err == nil {
		o.own(rec.File)
		o.own(rec.Backup)
		if rec.Hooks != nil {
			o.own(rec.Hooks.File)
		}
	}
}

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/clients"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/draft"
	"github.com/writ-project/writ/internal/hook"
	"github.com/writ-project/writ/internal/login"
	"github.com/writ-project/writ/internal/private"
)

// connectedHooks are what a client was told to run at events, and where.
type connectedHooks struct {
	File  string        `json:"file"`
	Hooks clients.Hooks `json:"added"`
	Dir   bool          `json:"dir,omitempty"`  // its directory was made for it
	Kept  bool          `json:"kept,omitempty"` // the file was there, though nothing was in it
}

// hooksChange is a change of that file.
type hooksChange struct {
	connectedHooks
	before, after []byte
	isNew         bool
}

// planHooks says which hooks the client gets, nil where it has them, or has none, and
// whether its gateways judge its own tools. They are of use only beside a gateway, which
// a server behind Writ brings.
func (p *place) planHooks(rec *connected, rep *connectReport, self string, state []string) (_ *hooksChange, hosts bool, _ error) {
	if p.events == nil || hook.Named(p.name) == nil {
		return nil, false, nil
	}
	if !slices.ContainsFunc(rep.Servers, func(s connectServer) bool { return s.Connected }) {
		rep.Notes = append(rep.Notes, "its own tools are not judged: no server of it runs through Writ, which would start the gateway")
		return nil, false, nil
	}
	rep.Notes = append(rep.Notes, p.settingsNotes()...)
	words := []string{private.Quote(self), "hook", p.name}
	if len(state) == 2 { // the flag and its value
		words = append(words, state[0], private.Quote(state[1]))
	}
	h := &hooksChange{connectedHooks: connectedHooks{File: p.hooksFile, Hooks: clients.Hooks{Events: p.events, Command: strings.Join(words, " "), Timeout: hookTimeout}}}
	if file, err := filepath.EvalSymlinks(h.File); err == nil {
		h.File = file
		if h.before, err = readClient(file); err != nil {
			return nil, false, err
		}
	} else if h.isNew = errors.Is(err, fs.ErrNotExist); !h.isNew {
		return nil, false, cli.Fail(cli.ExitIO, "", "%s cannot be read", cli.Printable(h.File))
	}
	_, err := os.Lstat(filepath.Dir(h.File))
	h.Dir = errors.Is(err, fs.ErrNotExist)
	if h.after, err = h.takeOver(rec.Hooks); err != nil {
		return nil, false, cli.Fail(cli.ExitData, "", "%s: %w; nothing was changed", cli.Printable(h.File), err)
	}
	if bytes.Equal(h.before, h.after) {
		return nil, true, nil
	}
	rep.hooks(h, "+")
	return h, true, nil
}

// takeOver is the file with the hooks, in the place of those that were added before by another path of
// Writ or for another state directory.
func (h *hooksChange) takeOver(old *connectedHooks) (after []byte, err error) {
	if old == nil || old.File != h.File || old.Hooks.Command == h.Hooks.Command {
		after, err = h.Hooks.Add(h.before)
		h.Kept = h.Hooks.Whole && !h.isNew
		return after, err
	}
	h.Dir, h.Kept = old.Dir, old.Kept
	bare, _, err := old.Hooks.Remove(h.before)
	if err != nil {
		return nil, err
	}
	return h.Hooks.Add(bare)
}

// hooks says which hooks come or go; the file may hold what nobody should see.
func (r *connectReport) hooks(h *hooksChange, mark string) {
	r.Hooks = h.File
	for _, e := range h.Hooks.Events {
		r.Events = append(r.Events, mark+"   "+e.Name+": "+h.Hooks.Command)
	}
}

// write writes the file, if it is still what was looked at.
func (h *hooksChange) write() error {
	switch {
	case h.isNew:
		if err := os.MkdirAll(filepath.Dir(h.File), 0o700); err != nil {
			return written(err)
		}
		return written(private.WriteOnce(h.File, h.after, 0o600))
	case len(h.after) == 0 && h.Hooks.Whole && !h.Kept: // it was made for them
		if err := stillIs(h.File, h.before); err != nil {
			return err
		}
		err := os.Remove(h.File)
		if err == nil && h.Dir {
			_ = os.Remove(filepath.Dir(h.File)) // which something else may be in by now
		}
		return written(err)
	}
	return replaceClient(h.File, h.before, h.after)
}

// heir is another place of the client that is connected, and for which the hooks that came
// with this one are to stay; nil where they go with it. A project has hooks of its own.
func (p *place) heir(rec *connected) (*place, *connected, error) {
	if rec.Hooks == nil || p.project {
		return nil, nil, nil
	}
	all, err := foundPlaces()
	for _, other := range all {
		if other.name != p.name || other.dir == p.dir {
			continue
		}
		if next, err := readConnected(other.dir); err == nil && next.Hooks == nil && next.Client == rec.Client && !other.project {
			return other, next, nil
		}
	}
	return nil, nil, err
}

// hooksGo returns what lets the hooks go that came with a place: to another one of the client, or
// out of its settings.
func (p *place) hooksGo(rec *connected, rep *connectReport) (func() error, error) {
	heir, next, err := p.heir(rec)
	if err != nil {
		return nil, err
	}
	if heir != nil {
		return func() error {
			next.Hooks, rec.Hooks = rec.Hooks, nil
			return heir.keep(next)
		}, nil
	}
	hooks, err := rec.Hooks.undone(rep)
	return func() error {
		if hooks == nil {
			return nil
		}
		rec.Hooks, rep.Written = nil, true
		return hooks.write()
	}, err
}

// undone is the change that takes the hooks out again, nil where there are none.
func (c *connectedHooks) undone(rep *connectReport) (*hooksChange, error) {
	if c == nil {
		return nil, nil
	}
	h := &hooksChange{connectedHooks: *c}
	var err error
	if h.before, err = readClient(c.File); err != nil {
		if _, serr := os.Lstat(c.File); errors.Is(serr, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	var left []string
	if h.after, left, err = h.Hooks.Remove(h.before); err != nil {
		return nil, cli.Fail(cli.ExitData, "", "%s: %w; nothing was changed", cli.Printable(h.File), err)
	}
	rep.hooks(h, "-")
	for _, name := range left {
		rep.Notes = append(rep.Notes, "the hook of "+name+" was changed since, or is not there any more, and is left alone")
	}
	if bytes.Equal(h.before, h.after) {
		return nil, nil
	}
	return h, nil
}

// withHost is a draft with the contracts of the client's own tools.
func (w *wiring) withHost(d draft.Draft) draft.Draft {
	if !w.hosts {
		return d
	}
	declared := hook.Declared
	if p, err := config.LoadPolicy(w.policy()); err == nil && p.Collections[hook.Collection].Closed {
		declared = "" // an operator has it
	}
	d.Servers = append(d.Servers, draft.Given(w.name, declared, hook.Named(w.name).Contracts))
	return d
}

// A credential in a client's file is moved by sealing it where it stands: the file has
// the sealed text, the key stands where that of the logins does, and `writ run` opens it
// for the one variable of the one server it was sealed for. What was there, to the byte,
// is sealed with it.

// movable are the credentials of servers that run behind Writ, or are about to, and are
// values of theirs, by server and variable; each as the client's file calls it.
type movable map[[2]string]string

// movable are those of the file.
func (w *wiring) movable() movable {
	out := movable{}
	for i := range w.all {
		s := &w.all[i]
		for _, name := range unsealed(s) {
			if variable, value := credential(s, name); w.serverOf(s.Name) != "" && !reference().MatchString(value) {
				out[[2]string{s.Name, variable}] = name
			}
		}
	}
	return out
}

// credential is the variable by which Writ gets what a server's variable or header of
// that name holds, and what that is.
func credential(s *clients.Server, name string) (variable, value string) {
	for _, h := range s.Headers {
		if h.Name == name {
			return h.Env, h.Value
		}
	}
	return name, s.Env[name]
}

// unsealed are the variables and headers of a server that hold a credential anybody can read.
func unsealed(s *clients.Server) []string {
	names, _ := s.Credentials()
	return slices.DeleteFunc(names, func(n string) bool {
		_, value := credential(s, n)
		return login.Sealed(value)
	})
}

// serverOf is what writ.yaml calls a server of the client's, "" where it is left alone.
func (w *wiring) serverOf(name string) string {
	if server := w.added[name]; server != "" {
		return server
	}
	return w.rec.Servers[name]
}

// String names them, and shows no value.
func (m movable) String() string {
	var names []string
	for k, name := range m {
		names = append(names, cli.OneLine(name, 60)+" of "+cli.OneLine(k[0], 60))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// wants reports whether they are to be moved: where that was said in so many words, or a
// person at the terminal says so. A yes to all else is none to this.
func (m movable) wants(c *cobra.Command, said, yes, quiet bool) bool {
	if said || len(m) == 0 {
		return said && len(m) > 0
	}
	in, typed := typist(c.InOrStdin())
	if yes || quiet || !typed {
		return false
	}
	said, _ = agreed(bufio.NewReader(in), c.ErrOrStderr(), "This file holds credentials that anyone who reads it has: "+m.String()+".\n"+
		"Seal them, so that `writ run` alone can open them, for these servers? Copies of the file and other\n"+
		"accounts have nothing then; writ disconnect puts them back.")
	return said
}

// sealing returns what seals them in a file. The same value is sealed to the same text in
// each file it is given.
func (w *wiring) sealing(f *flags, m movable) (func(file []byte) ([]byte, error), error) {
	dir, err := stateDir(f.state)
	if err != nil {
		return nil, err
	}
	w.rec.State = dir
	store, done := logins(dir), map[[3]string]string{}
	return func(file []byte) ([]byte, error) {
		return w.layout.Revalue(file, func(server, variable, value, written string) (string, bool, error) {
			if m[[2]string{server, variable}] == "" || login.Sealed(value) {
				return "", false, nil
			}
			key := [3]string{server, variable, written}
			if done[key] == "" {
				text, err := store.SealText(w.serverOf(server), variable, value+"\x00"+written)
				if err != nil {
					return "", false, cli.Fail(cli.ExitIO, "", "the credentials cannot be sealed: %w; nothing was changed", err)
				}
				done[key] = `"` + text + `"`
			}
			return done[key], true, nil
		})
	}, nil
}

// sealIn is the client's file with them sealed, as its copy has it too.
func (w *wiring) sealIn(f *flags, file []byte, m movable) (sealed []byte, err error) {
	if w.seal, err = w.sealing(f, m); err != nil {
		return nil, err
	}
	if sealed, err = w.seal(file); err != nil {
		return nil, w.unread(err)
	}
	w.rep.Sealed, w.rep.Movable = m.String(), ""
	if w.all, err = w.layout.Read(sealed); err != nil {
		return nil, w.unread(err)
	}
	for i := range w.all {
		w.rep.Servers[i].Stay = unsealed(&w.all[i])
	}
	return sealed, nil
}

// opened is a client's file with what was sealed in it as it was before, to the byte.
func (p *place) opened(rec *connected, file []byte) ([]byte, error) {
	return p.layout.Revalue(file, func(server, variable, value, _ string) (string, bool, error) {
		if !login.Sealed(value) || rec.State == "" || rec.Servers[server] == "" { // or looks so, and was not by us
			return "", false, nil
		}
		plain, err := logins(rec.State).OpenText(rec.Servers[server], variable, value)
		_, was, ok := strings.Cut(plain, "\x00")
		if err != nil || !ok {
			return "", false, cli.Fail(cli.ExitConfig, "write "+cli.OneLine(variable, 60)+" into the file yourself", "%s of %s was sealed and cannot be opened; nothing was changed",
				cli.OneLine(variable, 60), cli.OneLine(server, 60))
		}
		return was, true, nil
	})
}

// openEnvironment opens what a client hands to the gateway of one server sealed.
func (f *flags) openEnvironment() error {
	for _, set := range os.Environ() {
		name, value, _ := strings.Cut(set, "=")
		if f.only == "" || !login.Sealed(value) {
			continue
		}
		dir, err := statePath(f.state)
		if err != nil {
			return err
		}
		plain, err := logins(dir).OpenText(f.only, name, value)
		opened, _, ok := strings.Cut(plain, "\x00")
		if err != nil || !ok {
			return cli.Fail(cli.ExitConfig, "put the credential back into the client's file", "%s was sealed by writ connect and cannot be opened here", cli.OneLine(name, 60))
		}
		if err := os.Setenv(name, opened); err != nil {
			return fmt.Errorf("%s cannot be set", cli.OneLine(name, 60))
		}
	}
	return nil
}

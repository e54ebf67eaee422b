package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/clients"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/draft"
	"github.com/writ-project/writ/internal/hook"
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
func (p *place) planHooks(rep *connectReport, self string, state []string) (_ *hooksChange, hosts bool, _ error) {
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
	if h.after, err = h.Hooks.Add(h.before); err != nil {
		return nil, false, cli.Fail(cli.ExitData, "", "%s: %w; nothing was changed", cli.Printable(h.File), err)
	}
	if bytes.Equal(h.before, h.after) {
		return nil, true, nil
	}
	h.Kept = h.Hooks.Whole && !h.isNew
	rep.hooks(h, "+")
	return h, true, nil
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

package main

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/clients"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/draft"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/policy"
)

// write writes writ.yaml, the policy, what is to be undone and a copy of the client's
// file, and that file last. Base is the file as the copy has it: what is sealed stands
// nowhere else.
func (w *wiring) write(before, base, after []byte, undo []clients.Undo, cat *gate.Catalogue) error {
	w.rep.Config, w.rep.Policy = w.config(), w.policy()
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return cli.Fail(cli.ExitIO, "", "the directory of the configuration cannot be made")
	}
	// A server without contracts is closed; contracts without their server stop all.
	if err := w.writeConfig(); err != nil {
		return err
	}
	d := draft.Policy(cat)
	d.Servers = slices.DeleteFunc(d.Servers, func(s draft.Server) bool { return w.servers[s.Name] == nil }) // it listed, and ended
	if err := w.writePolicy(w.withHost(d)); err != nil {
		return err
	}
	if _, _, err := config.LoadOnly(w.config(), ""); err != nil {
		return config.Invalid(err)
	}
	if w.rec.Backup == "" && !bytes.Equal(before, after) {
		var err error
		if w.rec.Backup, err = w.backup(base); err != nil {
			return err
		}
	} else if w.seal != nil {
		if err := w.sealCopy(w.rec.Backup); err != nil {
			return err
		}
	}
	w.rep.Backup = w.rec.Backup
	w.rec.Undo = slices.DeleteFunc(w.rec.Undo, func(u clients.Undo) bool {
		return slices.ContainsFunc(undo, func(n clients.Undo) bool { return n.Name == u.Name })
	})
	w.rec.Undo = append(w.rec.Undo, undo...)
	maps.Copy(w.rec.Servers, w.added)
	if w.hooks != nil {
		w.rec.Hooks = &w.hooks.connectedHooks
	}
	if err := w.keep(w.rec); err != nil {
		return err
	}
	if !bytes.Equal(before, after) {
		if err := replaceClient(w.file, before, after); err != nil {
			return err
		}
	}
	if w.hooks == nil {
		return nil
	}
	// Last: without a gateway what the client does itself is refused.
	return w.hooks.write()
}

// sealCopy seals the credentials of a copy that was kept before they were to be.
func (w *wiring) sealCopy(file string) error {
	old, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		old, err = w.seal(old)
	}
	if err == nil {
		err = replaceFile(file, old)
	}
	return written(err)
}

// writePolicy writes the draft, or adds what it has of servers the policy that is
// there says nothing of.
func (w *wiring) writePolicy(d draft.Draft) error {
	old, err := os.ReadFile(w.policy())
	if errors.Is(err, os.ErrNotExist) {
		text := []byte(d.Text())
		if _, fs := policy.Parse(w.policy(), text); len(fs) > 0 {
			return cli.Fail(cli.ExitIO, "", "the draft is not a policy: %w", config.Faults(fs))
		}
		return written(private.WriteOnce(w.policy(), text, 0o600))
	}
	if _, err := config.LoadPolicy(w.policy()); err != nil {
		return config.Invalid(err)
	}
	sum, ok := d.Add(old)
	switch {
	case !ok:
		return cli.Fail(cli.ExitConfig, "mv "+private.Quote(w.policy())+" "+private.Quote(w.policy()+".old"),
			"the policy is not of a shape that contracts can be added to; the client's file was not changed")
	case bytes.Equal(sum, old):
		return nil
	}
	return written(replaceFile(w.policy(), sum))
}

// writeConfig writes writ.yaml, or adds servers to the one that is there.
func (w *wiring) writeConfig() error {
	var more strings.Builder
	for _, n := range slices.Sorted(maps.Keys(w.servers)) {
		if w.there[n] == nil {
			more.WriteString(serverText(n, w.servers[n]))
		}
	}
	host := ""
	if w.hosts && !w.hosted {
		host = "host: " + w.name + " # its own tools are judged too\n"
	}
	if more.Len() == 0 && host == "" {
		return nil
	}
	text, err := os.ReadFile(w.config())
	isNew := errors.Is(err, os.ErrNotExist)
	switch {
	case isNew:
		text = []byte("# Written by writ connect: the servers that " + w.title + " starts through Writ, each with\n" +
			"# `writ run --config … --only NAME`. The values of ${…} are in the client's own file.\n" +
			"policy: policy.yaml\napprovals: true # what only a person can let pass waits for one: writ watch\nservers:\n")
	case err != nil:
		return cli.Fail(cli.ExitIO, "", "writ.yaml cannot be read")
	}
	text = bytes.Replace(text, []byte("\nservers:"), []byte("\n"+host+"servers:"), 1)
	text = append(append(bytes.TrimRight(text, " \t\r\n"), '\n'), more.String()...)
	if err := readsAs(w.dir, text, w.servers); err != nil {
		return err
	}
	if isNew {
		return written(private.WriteOnce(w.config(), text, 0o600))
	}
	return written(replaceFile(w.config(), text))
}

// readsAs is an error unless a configuration has these servers, as they were meant.
func readsAs(dir string, text []byte, servers map[string]*clients.Server) error {
	tmp, err := os.CreateTemp(dir, "check-*.yaml")
	if err != nil {
		return written(err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return written(err)
	}
	cfg, err := config.ReadOnly(tmp.Name(), "")
	if err != nil {
		return cli.Fail(cli.ExitConfig, "", "writ.yaml would not be one with these servers; the client's file was not changed: %w", err)
	}
	for name, s := range servers {
		i := slices.IndexFunc(cfg.Servers, func(c config.Server) bool { return c.Name == name })
		if i < 0 || !slices.Equal(cfg.Servers[i].Command, s.Command) || cfg.Servers[i].URL != s.URL {
			return cli.Fail(cli.ExitConfig, "", "writ.yaml is not of a shape that servers can be added to; the client's file was not changed")
		}
	}
	return nil
}

func written(err error) error {
	if err != nil {
		return cli.Fail(cli.ExitIO, "", "a file cannot be written: %w", err)
	}
	return nil
}

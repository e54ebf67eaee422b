package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/clients"
)

// clientStatus is one file of a client as writ status prints it.
type clientStatus struct {
	Client  string          `json:"client"`
	File    string          `json:"file"`
	Config  string          `json:"config,omitempty"`
	Fault   string          `json:"fault,omitempty"`
	Servers []connectServer `json:"servers"`
}

func statusCommand() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{
		Use: "status", Short: "List the clients of this account, and which of their servers run behind Writ", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			places, err := foundPlaces()
			if err != nil {
				return err
			}
			all := []clientStatus{}
			for _, p := range places {
				all = append(all, p.status())
			}
			return f.show(c, all, func(w io.Writer) {
				for i, s := range all {
					fmt.Fprintf(w, "%s: %s\n", places[i].title, cli.Printable(s.File))
					when(w, s.Fault != "", "  %s\n", cli.OneLine(s.Fault, 300))
					for _, line := range s.Servers {
						how := "by itself"
						if line.Connected {
							how = "through Writ"
						}
						fmt.Fprintf(w, "  %-16s %-12s", cli.OneLine(line.Name, 60), how)
						when(w, line.Left != "", "  %s", cli.OneLine(line.Left, 200))
						fmt.Fprintln(w)
					}
				}
				when(w, len(all) == 0, "No client of this account has a file that is known: writ connect --help\n")
			})
		},
	}, "json")
}

// foundPlaces are the files of clients that are there: their users' own, and what was
// connected besides.
func foundPlaces() (out []*place, err error) {
	for _, c := range clients.All {
		p, err := findPlace(c.Name, scope{})
		if err != nil {
			continue
		}
		out = append(out, p)
		b, _ := p.read()
		for _, dir := range c.Locals(b) {
			if p, err := findPlace(c.Name, scope{local: dir}); err == nil && filepath.IsAbs(dir) {
				out = append(out, p)
			}
		}
	}
	base, err := keptIn()
	if err != nil {
		return nil, err
	}
	dirs, _ := os.ReadDir(base)
	for _, d := range dirs {
		rec, err := readConnected(filepath.Join(base, d.Name()))
		if err != nil || slices.ContainsFunc(out, func(p *place) bool { return p.dir == filepath.Join(base, d.Name()) }) {
			continue
		}
		p := &place{name: rec.Client, title: "A file", layout: rec.Layout, file: rec.File, dir: filepath.Join(base, d.Name())}
		if c := clients.Named(rec.Client); c != nil {
			p.title, p.project = c.Title, true // its own file was found by its name
		}
		out = append(out, p)
	}
	return out, nil
}

func (p *place) status() clientStatus {
	s := clientStatus{Client: p.name, File: p.file, Servers: []connectServer{}}
	rec, err := p.record()
	if err != nil {
		s.Fault = err.Error()
		return s
	}
	if rec != nil {
		s.Config = p.config()
	}
	b, err := p.read()
	if err != nil {
		s.Fault = err.Error()
		return s
	}
	all, err := p.layout.Read(b)
	if err != nil {
		s.Fault = err.Error()
		return s
	}
	for _, v := range all {
		line := connectServer{Name: v.Name, Connected: v.Ours, Left: v.Left}
		var undo *clients.Undo
		if rec != nil {
			line.Server = rec.Servers[v.Name]
			if i := slices.IndexFunc(rec.Undo, func(u clients.Undo) bool { return u.Name == v.Name }); i >= 0 {
				undo = &rec.Undo[i]
			}
		}
		switch {
		case v.Ours && undo != nil && slices.Equal(undo.Ours, v.Command):
			line.Left = ""
		case v.Ours:
			line.Left = "not by writ connect, or changed since"
		case undo != nil:
			line.Left = "it was connected, and its command was changed since"
		}
		s.Servers = append(s.Servers, line)
	}
	return s
}

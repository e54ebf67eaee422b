package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/upstream"
)

// exposed says which of Writ's own files lie in directories a server is given,
// "" if none does. R34 keeps its tools from naming them; a search through the
// directory needs no name. The working directory counts only where the
// configuration chose it, and what a server runs may lie in it.
func (o *files) exposed(c upstream.Config) string {
	dirs, _, _ := gateway.Given(c)
	var programs []string
	for _, s := range o.servers {
		_, p, _ := gateway.Given(s)
		programs = append(programs, p...)
	}
	if self, err := os.Executable(); err == nil {
		programs = append(programs, self)
	}
	for i, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if i == 0 && c.Dir == "" || err != nil {
			continue
		}
		files := o.ownPaths
		if i > 0 {
			files = slices.Concat(files, programs)
		}
		if held := below(real, files); len(held) > 0 {
			return fmt.Sprintf("server %s is given %s, which holds files of Writ's own: %s", c.Name, dir, few(held, 3))
		}
	}
	return ""
}

// below are the files that lie in a directory, each once, by their paths in it.
func below(dir string, files []string) (held []string) {
	for _, file := range files {
		// The directory of a link is as good a place to change a file from as the file's own.
		parent, err := filepath.EvalSymlinks(filepath.Dir(file))
		if err != nil {
			parent = filepath.Dir(file)
		}
		path, err := filepath.Rel(dir, filepath.Join(parent, filepath.Base(file)))
		if err == nil && filepath.IsLocal(path) && !slices.Contains(held, path) {
			held = append(held, path)
		}
	}
	return held
}

// moveThem is what to do about exposed files.
const moveThem = "keep writ.yaml, the policy and programs in a directory no server is given, nor any above it, and the state with --state DIR; or give the server a directory of its own"

// warnings tell of exposed files.
func (o *files) warnings() (all []string) {
	for _, s := range o.servers {
		if held := o.exposed(s); held != "" {
			all = append(all, "warning: "+held+"; "+moveThem)
		}
	}
	return all
}

// warn tells of them at the start.
func (o *files) warn(w io.Writer) {
	for _, warning := range o.warnings() {
		fmt.Fprintln(w, cli.Printable(warning))
	}
}

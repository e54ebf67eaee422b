package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/hook"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// clientSettings is what a settings file of a client does to how its tools are judged.
type clientSettings struct {
	off     bool // it runs no hooks
	steered bool // it says which programs run
}

// maxSettings is the largest file that is read: each call of a shell has it read.
const maxSettings = 1 << 20

// readSettings reads one. Nothing is known of a file that cannot be read as JSON: the
// client may read more in it than this does.
func readSettings(path string) clientSettings {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return clientSettings{}
	}
	unknown := clientSettings{steered: true}
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSettings {
		return unknown
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return unknown
	}
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return clientSettings{}
	}
	v, err := strictjson.Parse(b, strictjson.Limits{Bytes: maxSettings, Depth: 64, Leaves: 50_000, Number: 64})
	if err != nil || v.Kind() != strictjson.Object {
		return unknown
	}
	off := v.Get("disableAllHooks")
	s := clientSettings{off: off.Exists() && string(off.Raw()) != "false"}
	env := v.Get("env")
	s.steered = env.Exists() && env.Kind() != strictjson.Object
	for name := range env.Members() {
		s.steered = s.steered || steering().MatchString(name)
	}
	return s
}

// steering are the variables that can have one of the programs of internal/shell/reads.txt,
// the shell before it or the loader before both run another one, or that are the client's
// own and Writ's.
var steering = text.Pattern(`^(PATH|HOME|SHELL|ENV|IFS|CDPATH|GLOBIGNORE|PS4|PROMPT_COMMAND|SHELLOPTS|ZDOTDIR|PAGER|EDITOR|VISUAL|MAGIC|TMPDIR|POSIXLY_CORRECT|GREP_OPTIONS|RIPGREP_CONFIG_PATH|GCONV_PATH|LOCPATH|NLSPATH|GLIBC_TUNABLES|GNUPGHOME)$` +
	`|^(BASH|BAT_|LD_|DYLD_|GIT_|SSH_|LESS|XDG_|MALLOC_|CLAUDE|WRIT_)`)

// steered reports whether a directory brings settings with it that say which programs a
// client's shell runs.
func steered(h *hook.Host, root string) bool {
	return filepath.IsAbs(root) && slices.ContainsFunc(h.Settings, func(name string) bool {
		return readSettings(filepath.Join(root, name)).steered
	})
}

// settingsNotes say of the settings that a client reads here what keeps its tools from
// being judged.
func (p *place) settingsNotes() (notes []string) {
	h := hook.Named(p.name)
	if p.events == nil || h == nil {
		return nil
	}
	files := []string{p.hooksFile}
	if dir, err := os.Getwd(); err == nil {
		for _, name := range h.Settings {
			if file := filepath.Join(dir, name); file != p.hooksFile {
				files = append(files, file)
			}
		}
	}
	for i, file := range files {
		s := readSettings(file)
		if s.off {
			notes = append(notes, "its own tools are not judged, and what you type is not on record: "+cli.Printable(file)+" switches all hooks off (disableAllHooks)")
		}
		if s.steered && i > 0 {
			notes = append(notes, "each command of its shell asks: "+cli.Printable(file)+" sets variables that say which programs run, or cannot be read")
		}
	}
	return notes
}

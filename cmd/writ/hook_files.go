package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/hook"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// What a client's own tools come upon in the file system, which is looked up before a
// call is judged.

// search are the programs that read what they find below a directory.
var search = []string{"grep", "egrep", "fgrep", "rg", "diff"}

// finds reports whether a command line that only reads may read Writ's own files without
// naming them: by a pattern, or by a program that looks through directories, and through
// links in both. moved says that it does so in another directory than dir.
func finds(words []string, dir string, moved bool, own []string) bool {
	looks := slices.ContainsFunc(words, func(w string) bool { return slices.Contains(search, w) })
	l := newLinks(own)
	follows := looks && slices.ContainsFunc(words, followsLinks)
	compares := slices.Contains(words, "diff")
	for i, w := range append(words[:len(words):len(words)], ".") {
		if !looks && !strings.ContainsAny(w, inPatterns) {
			continue
		}
		if moved || strings.Contains(w, "{") && strings.ContainsAny(w, ",.") && strings.ContainsAny(w, "/~") {
			return true
		}
		w = unfolded(w)
		if strings.HasPrefix(w, "~") {
			return true // of somebody else
		}
		w, pattern := cutPattern(w)
		if !filepath.IsAbs(w) {
			w = filepath.Join(dir, w)
		}
		if l.above(w) || pattern != nil && l.matches(w, pattern) || (follows || compares && i < len(words)) && l.below(w) {
			return true
		}
	}
	return false
}

// inPatterns are the characters of which a word with one stands for many, to zsh with its
// extended ones.
const inPatterns = "*?[{#^"

// cutPattern is the directory of a pattern and its parts below that, which are nil for none.
func cutPattern(w string) (dir string, parts []string) {
	at := strings.IndexAny(w, inPatterns)
	if at < 0 {
		return w, nil
	}
	cut := strings.LastIndexByte(w[:at], '/') + 1
	return w[:cut], strings.Split(w[cut:], "/")
}

// unfolded is a word with the directories in it that signs at its beginning stand for.
func unfolded(w string) string {
	home, _ := os.UserHomeDir()
	for _, sign := range []string{"~", "$HOME"} {
		if rest, ok := strings.CutPrefix(w, sign); ok && (rest == "" || rest[0] == '/') {
			w = home + rest
		}
	}
	if rest, ok := strings.CutPrefix(w, "$PWD"); ok {
		w = "." + rest
	}
	return w
}

// names reports whether a word of a command is one of Writ's own files, or lies in one.
func names(words []string, dir string, own []string) bool {
	l := newLinks(own)
	return slices.ContainsFunc(words, func(w string) bool {
		if w = unfolded(w); !filepath.IsAbs(w) {
			w = filepath.Join(dir, w)
		}
		real := leadsTo(w)
		return slices.ContainsFunc(l.own, func(p string) bool { return within(p, w) || within(p, real) })
	})
}

// followsLinks reports whether a flag may have a program that looks through directories
// go through the links in them.
func followsLinks(w string) bool {
	if strings.HasPrefix(w, "--") {
		return strings.Contains(w, "follow") || strings.Contains(w, "deref")
	}
	return strings.HasPrefix(w, "-") && strings.ContainsAny(w, "RSL")
}

// links looks for Writ's own files behind links, in so many entries of directories at
// most: where there are more it may be any.
type links struct {
	own  []string // as they are named, and where they lie
	left int
	seen map[string]bool // directories, whose links were looked at
}

const mostEntries = 20_000

func newLinks(own []string) *links {
	l := &links{own: slices.Clone(own), left: mostEntries, seen: map[string]bool{}}
	for _, p := range own {
		l.own = append(l.own, leadsTo(p))
	}
	return l
}

// above reports whether a path, or what it leads to, holds something of Writ's or is it.
func (l *links) above(at string) bool {
	real := leadsTo(at)
	return slices.ContainsFunc(l.own, func(p string) bool { return within(at, p) || within(real, p) || within(p, real) })
}

// leadsTo is a path without links, where they can be followed.
func leadsTo(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

func within(dir, at string) bool {
	rel, err := filepath.Rel(dir, at)
	return err == nil && filepath.IsLocal(rel)
}

// entries are what stands in a directory that can be read.
func (l *links) entries(dir string) (all []os.DirEntry, ok bool) {
	all, _ = os.ReadDir(dir)
	l.left -= len(all) + 1
	return all, l.left >= 0
}

// matches reports whether what a pattern stands for below a directory may be Writ's.
func (l *links) matches(dir string, pattern []string) bool {
	for len(pattern) > 1 && (pattern[0] == "" || pattern[0] == ".") {
		pattern = pattern[1:]
	}
	all, ok := l.entries(dir)
	if !ok || slices.Contains(pattern, "..") {
		return true
	}
	deep := strings.Contains(pattern[0], "**") // any number of directories, to some shells
	if deep && len(pattern) > 1 && l.matches(dir, pattern[1:]) {
		return true
	}
	for _, e := range all {
		to := filepath.Join(dir, e.Name())
		is, err := path.Match(strings.ReplaceAll(pattern[0], "[!", "[^"), e.Name())
		if err != nil || strings.ContainsAny(pattern[0], `{#^~(\\`) {
			is = true
		}
		link := e.Type()&os.ModeSymlink != 0
		switch {
		case (is || deep) && link && l.above(to):
			return true
		case is && len(pattern) > 1 && (link || e.IsDir()) && l.matches(to, pattern[1:]):
			return true
		case deep && e.IsDir() && l.matches(to, pattern):
			return true
		}
	}
	return false
}

// below reports whether a link anywhere below a directory leads to what is Writ's, links
// to directories gone through.
func (l *links) below(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || l.seen[real] {
		return false
	}
	l.seen[real] = true
	all, ok := l.entries(real)
	if !ok {
		return true
	}
	for _, e := range all {
		to := filepath.Join(real, e.Name())
		link := e.Type()&os.ModeSymlink != 0
		if link && l.above(to) || (link || e.IsDir()) && l.below(to) {
			return true
		}
	}
	return false
}

// inBare reports whether git would take a directory, or one above it, for a repository by what
// lies open in it: then files that anybody can have put there say what it runs.
func inBare(dir string) bool {
	there := func(at, name string) bool { _, err := os.Stat(filepath.Join(at, name)); return err == nil }
	for at := filepath.Clean(dir); !there(at, ".git"); at = filepath.Dir(at) {
		if there(at, "HEAD") && (there(at, "objects") || there(at, "commondir")) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
	return false
}

// trustedDefinition reports whether what Claude Code works by is its own or its person's:
// an agent that it has itself, where no directory on the way to dir has agents that could
// be called so; a skill that lies in the person's own configuration, where none has any.
func trustedDefinition(d hook.Definition, root, dir string) bool {
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) || !filepath.IsAbs(dir) || !filepath.IsAbs(root) {
		return false
	}
	own, kinds := filepath.Join(home, ".claude"), []string{d.Kind}
	if d.Kind == "skills" {
		kinds = append(kinds, "commands") // which are skills too
	}
	for _, from := range []string{root, dir} {
		for at := filepath.Clean(from); ; at = filepath.Dir(at) {
			theirs := filepath.Join(at, ".claude")
			for _, kind := range kinds {
				if _, err := os.Lstat(filepath.Join(theirs, kind)); theirs != own && !os.IsNotExist(err) {
					return false
				}
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	if d.Kind == "agents" {
		return true
	}
	info, err := os.Lstat(filepath.Join(own, d.Kind, d.Name, "SKILL.md"))
	return err == nil && info.Mode().IsRegular()
}

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

package gateway

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/text"
)

const (
	maxLooks  = 100_000 // at the disk, for one call; one that takes more is refused
	maxLinks  = 40      // links followed for one path, as the kernel does
	maxWalked = 10_000  // entries looked at below a directory
	maxRoots  = 64      // a client may name for one server
	maxPath   = 4096    // the kernel's
)

// A disk is what is asked of the file system.
type disk interface {
	Lstat(path string) (fs.FileInfo, error)
	Stat(path string) (fs.FileInfo, error)
	Readlink(path string) (string, error)
	ReadDir(path string, most int) ([]fs.DirEntry, error) // in no order
	Home(user string) (string, error)
}

type thisDisk struct{}

func (thisDisk) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }

func (thisDisk) Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }

func (thisDisk) Readlink(path string) (string, error) { return os.Readlink(path) }

func (thisDisk) ReadDir(path string, most int) ([]fs.DirEntry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(most)
}

func (thisDisk) Home(name string) (string, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return "", err
	}
	return u.HomeDir, nil
}

// locate adds to the input what the door knows of where the call's paths lead
// (R34): Decide does no I/O. Resolved is what the texts themselves do not say;
// where the door cannot tell, it is Writ's own state, which refuses. A call that
// is refused for its name or schema is not looked at, and one that takes too
// many looks, or whose ctx ends, is Unresolved from there on. No lock of a
// session may be held: a disk takes its time.
func (g *Gateway) locate(ctx context.Context, f *fleet, in *gate.Input, host *HostCall) {
	srv := f.servers[in.Call.Server]
	if srv == nil && g.hasTools(in.Call.Server) {
		srv = thisProcess()
		if host != nil && host.Dir != "" {
			srv.bases, srv.elsewhere = []string{host.Dir}, host.Elsewhere
			own := srv.env
			srv.env = func(name string) string {
				if name == "PWD" {
					return host.Dir
				}
				return own(name)
			}
		}
	}
	if srv == nil || len(f.ownPaths) == 0 {
		return
	}
	in.Bases, in.Elsewhere, in.Programs, in.Own = srv.bases, srv.elsewhere, f.programs, f.own[in.Call.Server]
	if host != nil && len(host.Names) > 0 {
		in.Programs = nil // a command line may name a program to run it
	}
	texts, writes, read := gate.Texts(*in)
	in.Reading = read
	l := newLook(ctx, g.disk, f, srv, writes)
	for _, t := range texts {
		l.text(t.Pointer, t.Text)
	}
	if host != nil {
		for _, name := range host.Names {
			l.text(commandAt, name)
			paths, _ := gate.Paths(name)
			for _, p := range paths {
				l.report(p)
			}
		}
	}
	if in.Call.Answers.Exists() {
		srv.rooted(l.dirs)
	}
	l.joined()
	if len(l.out) > 0 {
		in.Resolved = l.out
	}
	if l.stopped {
		in.Unresolved = []string{l.at}
	}
}

// commandAt is where a command line stands among a host tool's arguments.
const commandAt = "/command"

// rooted keeps directories that a client named while it answered the server:
// they may be its roots, where relative paths begin from then on.
func (s *server) rooted(dirs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range dirs {
		if len(s.roots) < maxRoots && !slices.Contains(s.roots, d) {
			s.roots = append(s.roots, d)
		}
	}
}

// begins are the directories a relative path of the server may begin in.
func (s *server) begins() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.roots) == 0 {
		return s.bases
	}
	return slices.Concat(s.bases, s.roots)
}

type look struct {
	ctx     context.Context
	disk    disk
	fleet   *fleet
	srv     *server
	writes  bool
	out     map[string][]string
	at      string // the pointer that is looked at
	looks   int
	stopped bool

	dirs      []string  // directories the call itself names
	relatives []reading // and what may begin there

	// What was found, each once.
	infos   map[string]fs.FileInfo // nil for what is not there
	leads   map[string]string      // links
	homes   map[string]string      // of users, "" for none
	states  []stateDir
	named   map[string]bool   // dirs
	brings  map[string]string // of directories, what steers in them
	own     []ownFile         // Writ's own files that are there
	plain   bool              // own has those that are no directories
	kernels bool              // own has those of the kernel's
	names   []ownFile         // files in its directories that have several names
	crowd   string            // one of those directories that was not looked through
	walked  bool              // names and crowd are known
}

func newLook(ctx context.Context, on disk, f *fleet, srv *server, writes bool) *look {
	return &look{ctx: ctx, disk: on, fleet: f, srv: srv, writes: writes, infos: map[string]fs.FileInfo{}}
}

// put sets what a map holds of a key; most looks need none of the maps.
func put[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = v
}

// may takes n looks of what is left of them.
func (l *look) may(n int) bool {
	l.looks += n
	l.stopped = l.stopped || l.looks > maxLooks || l.ctx.Err() != nil
	return !l.stopped
}

// reading is one relative path that the text at a pointer may mean.
type reading struct{ pointer, path string }

func (l *look) report(path string) {
	if !slices.Contains(l.out[l.at], path) && l.may(1) {
		put(&l.out, l.at, append(l.out[l.at], path))
	}
}

// text looks at every path one text may mean.
func (l *look) text(pointer, text string) {
	if l.stopped {
		return
	}
	l.at = pointer
	paths, _ := gate.Paths(text) // of what has more, Decide says so
	if !l.may(len(paths) - 1) {
		return
	}
	for _, p := range paths {
		l.tail(p)
		if !l.srv.here {
			continue
		}
		if abs, known := l.begin(p); known {
			l.path(abs)
		}
		if strings.HasPrefix(p, "~") || strings.HasPrefix(p, "$") {
			continue // where these are names, "./~" stands beside it
		}
		for _, dir := range l.srv.begins() {
			l.path(dir + "/" + p) // an absolute path too: its root may be dir
		}
		if !strings.HasPrefix(p, "/") {
			l.relatives = append(l.relatives, reading{pointer, p})
		}
	}
}

// begin returns the absolute path of one that says where it begins: at a root,
// in a home directory, in a variable of the server's.
func (l *look) begin(p string) (abs string, known bool) {
	first, rest, _ := strings.Cut(p, "/")
	switch {
	case filepath.IsAbs(filepath.FromSlash(p)):
		return p, true
	case first == "~":
		return l.srv.env("HOME") + "/" + rest, l.srv.env("HOME") != ""
	case strings.HasPrefix(p, "~"):
		home, ok := l.homes[first]
		if !ok && l.may(10) {
			home, _ = l.disk.Home(first[1:])
			put(&l.homes, first, home)
		}
		return home + "/" + rest, home != ""
	case strings.HasPrefix(p, "$"):
		if dir := l.srv.env(first[1:]); dir != "" {
			return dir + "/" + rest, true
		}
	}
	return "", false
}

// sessionName is what a session is kept under in a state directory, without the
// names that have a dot: these are files of every project.
var sessionName = text.Pattern(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// tail reports a path that ends as one in Writ's state does, in its directory's
// name and its own, or in two names below it; and one whose whole name is that
// of such a file, with an extension. It does so of relative paths, and of any
// where not all of the server's directories are known. What may be a session's
// secret counts whether or not there is one, or a refusal would say which.
func (l *look) tail(p string) {
	known := l.srv.bases != nil && !l.srv.elsewhere
	if known && strings.HasPrefix(p, "/") || strings.IndexByte(p, 0) >= 0 || gate.Foreign(p) {
		return
	}
	dir, name := path.Split(path.Clean("/" + p))
	parent := path.Base(dir)
	if parent == "/" && path.Ext(name) == "" && !slices.Contains(l.fleet.ownPaths, "/") {
		return // a word: no file's parent is called so, and it is no whole name with an extension
	}
	for _, o := range l.stateDirs() {
		if o.dirs[strings.ToLower(parent)] {
			file := filepath.Join(o.path, parent, name)
			if strings.EqualFold(parent, "sessions") && sessionName().MatchString(name) || l.info(file) != nil {
				l.report(file)
			}
		}
		alone := (parent == "/" || !known) && path.Ext(name) != ""
		if (alone || strings.EqualFold(parent, filepath.Base(o.path))) && o.names[strings.ToLower(name)] {
			l.report(filepath.Join(o.path, name))
		}
	}
}

// joined looks at relative paths from the directories that other arguments
// name.
func (l *look) joined() {
	for _, dir := range l.dirs {
		for _, r := range l.relatives {
			if !l.may(1) {
				return
			}
			l.at = r.pointer
			l.path(dir + "/" + r.path)
		}
	}
}

// path follows one absolute path, as the kernel does and as a program that
// cleans it first.
func (l *look) path(p string) {
	ways := []string{filepath.Clean(p)}
	if strings.Contains(p, "..") {
		ways = append(ways, p)
	}
	for _, p := range ways {
		if !l.may(len(p) / 256) {
			return
		}
		if len(p) > maxPath || strings.IndexByte(p, 0) >= 0 {
			continue // no file has it
		}
		real, there, ok := l.realPath(p)
		if !ok {
			l.report(l.fleet.ownPaths[0])
			continue
		}
		if real != ways[0] {
			l.report(real)
		}
		if o := l.ownedBy(real, there); o != "" {
			l.report(o)
		}
		if fi := l.info(real); there == real && fi != nil && fi.IsDir() {
			if !l.named[real] && len(l.dirs) < maxWalked {
				put(&l.named, real, true)
				l.dirs = append(l.dirs, real)
			}
			if l.writes {
				l.report(strings.TrimSuffix(real, "/") + "/")
				if brought := l.contents(real); brought != "" {
					l.report(brought)
				}
			}
		}
	}
}

// contents returns a file in a directory by which programs take orders, "" if
// there is none.
func (l *look) contents(dir string) string {
	found, ok := l.brings[dir]
	if ok {
		return found
	}
	if !l.walk(dir, func(p string, d fs.DirEntry) bool {
		if gate.Steers(d.Name()) {
			found = p
		}
		return found == ""
	}) {
		found = filepath.Join(dir, ".unknown")
	}
	put(&l.brings, dir, found)
	return found
}

// walk visits what is in a directory and below it, until visit says no more. It
// reports whether there was not too much of it. What this account may not list is
// passed over: what it starts may not either.
func (l *look) walk(dir string, visit func(path string, d fs.DirEntry) bool) bool {
	n := 0
	for todo := []string{dir}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !l.may(1) {
			return false
		}
		entries, err := l.disk.ReadDir(at, maxWalked-n+1)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			l.stopped = true // what is there is not known
		}
		if n += len(entries); !l.may(len(entries)) {
			return false
		}
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		for _, d := range entries {
			p := filepath.Join(at, d.Name())
			if !visit(p, d) {
				return true
			}
			if d.IsDir() {
				todo = append(todo, p)
			}
		}
		if n > maxWalked {
			return false
		}
	}
	return true
}

// info is os.Lstat; nil for what is not there.
func (l *look) info(p string) fs.FileInfo {
	fi, ok := l.infos[p]
	if !ok && l.may(1) {
		fi, _ = l.disk.Lstat(p)
		l.infos[p] = fi
	}
	return fi
}

// realPath follows symbolic links component by component, as the kernel does:
// `..` after a link is the parent of where the link leads, and a link that
// leads nowhere yet is followed all the same, because writing makes its target.
// there is as much of it as is there. ok is false for a loop.
func (l *look) realPath(path string) (real, there string, ok bool) {
	const sep = string(filepath.Separator)
	volume := filepath.VolumeName(path)
	at, links := volume+sep, 0
	gone := 0 // names at the end of it that are not there
	there = at
	rest := strings.Split(filepath.ToSlash(path[len(volume):]), "/")
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			if gone = max(gone-1, 0); gone == 0 {
				there = at
			}
			continue
		}
		at = below(path, at, part)
		if gone > 0 {
			gone++
			continue
		}
		fi := l.info(at)
		if fi == nil {
			gone = 1
			continue
		}
		target := ""
		if fi.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
			target = l.readlink(at)
		}
		if target == "" {
			there = at
			continue
		}
		if links++; links > maxLinks {
			return "", "", false
		}
		at = filepath.Dir(at)
		if filepath.IsAbs(target) {
			at = filepath.VolumeName(target) + sep
			target = target[len(filepath.VolumeName(target)):]
		}
		there = at
		rest = append(strings.Split(filepath.ToSlash(target), "/"), rest...)
	}
	return at, there, true
}

// below returns the path of a name in a directory. Where it begins path, no text is made
// for it.
func below(path, dir, name string) string {
	const sep = string(filepath.Separator)
	dir = strings.TrimSuffix(dir, sep)
	if rest, in := strings.CutPrefix(path, dir); in {
		if rest, in = strings.CutPrefix(rest, sep); in && strings.HasPrefix(rest, name) {
			return path[:len(dir)+len(sep)+len(name)]
		}
	}
	return dir + sep + name
}

// readlink returns where a link leads, "" if it is none.
func (l *look) readlink(p string) string {
	target, ok := l.leads[p]
	if !ok && l.may(1) {
		target, _ = l.disk.Readlink(p)
		put(&l.leads, p, target)
	}
	return target
}

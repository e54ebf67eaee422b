package gateway

import (
	"io/fs"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

const (
	maxLooked = 100_000 // paths of one call that are looked at; one with more is refused
	maxLinks  = 40      // links followed for one path, as the kernel does
	maxWalked = 10_000  // files looked at in a directory
	maxRoots  = 64      // a client may name for one server
	maxPath   = 4096    // the kernel's
)

// locate adds to the input what the door knows of where the call's paths lead
// (R34): Decide does no I/O. Resolved is what the texts themselves do not say;
// where the door cannot tell, it is Writ's own state, which refuses.
func (g *Gateway) locate(in *gate.Input) {
	srv := g.servers[in.Call.Server]
	if srv == nil && g.hasTools(in.Call.Server) {
		srv = thisProcess()
	}
	if srv == nil || len(g.ownPaths) == 0 {
		return
	}
	in.Bases, in.Programs = srv.bases, g.programs
	l := &look{g: g, srv: srv, out: map[string][]string{}, infos: map[string]os.FileInfo{}}
	walk := func(prefix string, raw []byte) {
		strictjson.Walk(raw, func(at []string, raw []byte) bool {
			if text, ok := strictjson.Text(raw); ok {
				l.text(prefix+strictjson.Pointer(at), text)
			}
			return true
		}, func(at []string, name string) bool {
			l.text(prefix+strictjson.Pointer(append(at[:len(at):len(at)], name)), name)
			return true
		})
	}
	if args := in.Call.Arguments; args != nil && strictjson.Check(args, strictjson.Request) == nil {
		l.writes = in.Call.Method == policy.CallTool && in.Catalogue.Lookup(in.Call.Server, in.Call.Tool).Effect(args)&policy.Write != 0
		walk("", args)
	}
	if answers := in.Call.Answers; answers != nil && strictjson.Check(answers, strictjson.Request) == nil {
		walk("answers:", answers)
		srv.rooted(l.dirs)
	}
	l.joined()
	if len(l.out) > 0 {
		in.Resolved = l.out
	}
}

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
	return slices.Concat(s.bases, s.roots)
}

// look is one call looked at.
type look struct {
	g      *Gateway
	srv    *server
	writes bool
	out    map[string][]string
	looked int

	dirs      []string  // directories the call itself names
	relatives []reading // and what may begin there
	infos     map[string]os.FileInfo
	own       []ownFile
}

// reading is one relative path that the text at a pointer may mean.
type reading struct{ pointer, path string }

// ownFile is what the file system knows a file of Writ's own by.
type ownFile struct {
	path string
	info os.FileInfo
}

func (l *look) report(pointer, path string) {
	if !slices.Contains(l.out[pointer], path) {
		l.out[pointer] = append(l.out[pointer], path)
	}
}

// text looks at every path one text may mean.
func (l *look) text(pointer, text string) {
	for _, p := range gate.Paths(text) {
		l.tail(pointer, p)
		if !l.srv.here {
			continue
		}
		if abs, known := l.begin(p); known {
			l.path(pointer, abs)
		}
		if strings.HasPrefix(p, "~") || strings.HasPrefix(p, "$") {
			continue // where these are names, "./~" stands beside it
		}
		for _, dir := range l.srv.begins() {
			l.path(pointer, dir+"/"+p) // an absolute path too: its root may be dir
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
		if u, err := user.Lookup(first[1:]); err == nil {
			return u.HomeDir + "/" + rest, true
		}
	case strings.HasPrefix(p, "$"):
		if dir := l.srv.env(first[1:]); dir != "" {
			return dir + "/" + rest, true
		}
	}
	return "", false
}

// tail reports a path whose last two names are those of a file in Writ's state,
// or whose name is that of one with an extension: of a relative path, and of
// any where nothing is known of the server's directories.
func (l *look) tail(pointer, p string) {
	known := l.srv.bases != nil
	if known && strings.HasPrefix(p, "/") || strings.IndexByte(p, 0) >= 0 || gate.Foreign(p) {
		return
	}
	dir, name := path.Split(path.Clean("/" + p))
	parent := path.Base(dir)
	for _, o := range l.g.ownPaths {
		if fi := l.info(o); strings.Contains(o, "://") || fi == nil || !fi.IsDir() || len(parent)+len(name) > maxPath {
			continue
		}
		if file := filepath.Join(o, parent, name); parent != "/" && l.info(file) != nil {
			l.report(pointer, file)
		}
		if file := filepath.Join(o, name); (parent == "/" || !known) && path.Ext(name) != "" && l.info(file) != nil {
			l.report(pointer, file)
		}
	}
}

// joined looks at relative paths from the directories that other arguments
// name.
func (l *look) joined() {
	for _, dir := range l.dirs {
		for _, r := range l.relatives {
			l.path(r.pointer, dir+"/"+r.path)
		}
	}
}

// path follows one absolute path, as the kernel does and as a program that
// cleans it first.
func (l *look) path(pointer, p string) {
	unknown := func() { l.report(pointer, l.g.ownPaths[0]) }
	clean := filepath.Clean(p)
	for _, p := range slices.Compact([]string{clean, p}) {
		if l.looked++; l.looked > maxLooked {
			unknown()
			return
		}
		if len(p) > maxPath || strings.IndexByte(p, 0) >= 0 {
			continue // no file has it
		}
		real, ok := realPath(p)
		if !ok {
			unknown()
			continue
		}
		if real != clean {
			l.report(pointer, real)
		}
		if o := l.ownedBy(real); o != "" {
			l.report(pointer, o)
		}
		if fi := l.info(real); fi != nil && fi.IsDir() {
			if !slices.Contains(l.dirs, real) && len(l.dirs) < maxWalked {
				l.dirs = append(l.dirs, real)
			}
			if l.writes {
				l.report(pointer, strings.TrimSuffix(real, "/")+"/")
				l.contents(pointer, real)
			}
		}
	}
}

// contents reports the first file in a directory by which programs take orders.
func (l *look) contents(pointer, dir string) {
	n := 0
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if n++; n > maxWalked {
			l.report(pointer, filepath.Join(dir, ".unknown"))
			return fs.SkipAll
		}
		if p != dir && gate.Steers(d.Name()) {
			l.report(pointer, p)
			return fs.SkipAll
		}
		return nil
	})
}

// info is os.Lstat, once for each call; nil for what is not there.
func (l *look) info(p string) os.FileInfo {
	fi, ok := l.infos[p]
	if !ok {
		fi, _ = os.Lstat(p)
		l.infos[p] = fi
	}
	return fi
}

// ownedBy returns the path of Writ's own that a real path is another name of:
// by a hard link, a mount, or a file system's way to spell. "" if there is none.
func (l *look) ownedBy(real string) string {
	if l.own == nil {
		l.own = l.ownFiles()
	}
	for at, rest := real, ""; ; {
		if fi := l.info(at); fi != nil {
			for _, o := range l.own {
				if os.SameFile(fi, o.info) {
					return filepath.Join(o.path, rest)
				}
			}
			if at == real && fi.Mode().IsRegular() && links(fi) > 1 {
				if o := l.linked(fi); o != "" {
					return o
				}
			}
		}
		up := filepath.Dir(at)
		if up == at {
			return ""
		}
		at, rest = up, filepath.Join(filepath.Base(at), rest)
	}
}

// ownFiles are those of Writ's own that are there.
func (l *look) ownFiles() (out []ownFile) {
	for _, p := range slices.Concat(l.g.ownPaths, l.g.programs) {
		if strings.Contains(p, "://") {
			continue
		}
		if fi, err := os.Stat(p); err == nil {
			out = append(out, ownFile{p, fi})
		}
	}
	return out
}

// linked returns the file in one of Writ's own directories that fi is a hard
// link of. Of a directory too large to look through it is taken for one.
func (l *look) linked(fi os.FileInfo) (found string) {
	for _, o := range l.own {
		if !o.info.IsDir() {
			continue
		}
		n := 0
		filepath.WalkDir(o.path, func(p string, d fs.DirEntry, err error) error {
			if n++; n > maxWalked {
				found = o.path
				return fs.SkipAll
			}
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			if in, err := d.Info(); err == nil && os.SameFile(in, fi) {
				found = p
				return fs.SkipAll
			}
			return nil
		})
		if found != "" {
			return found
		}
	}
	return ""
}

// realPath follows symbolic links component by component, as the kernel does:
// `..` after a link is the parent of where the link leads, and a link that
// leads nowhere yet is followed all the same, because writing makes its target.
// ok is false for a loop.
func realPath(path string) (real string, ok bool) {
	volume := filepath.VolumeName(path)
	root := volume + string(filepath.Separator)
	at, links := root, 0
	rest := strings.Split(filepath.ToSlash(path[len(volume):]), "/")
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		target, err := os.Readlink(next)
		if err != nil {
			at = next // no link, or not there
			continue
		}
		if links++; links > maxLinks {
			return "", false
		}
		if filepath.IsAbs(target) {
			at = filepath.VolumeName(target) + string(filepath.Separator)
			target = target[len(filepath.VolumeName(target)):]
		}
		rest = append(strings.Split(filepath.ToSlash(target), "/"), rest...)
	}
	return at, true
}

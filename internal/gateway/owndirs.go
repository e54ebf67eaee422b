package gateway

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// stateDir is a directory of Writ's own, and what is in it, in lower case.
type stateDir struct {
	path        string
	names, dirs map[string]bool
}

// listedDir is a stateDir as it was read, with what tells whether it is so still.
type listedDir struct {
	stateDir
	info    fs.FileInfo // before it was read
	settled bool        // no change since then can have left info as it is
}

// stateDirs are those of Writ's own directories that are there. One is read again
// when its file system says that it is another, or that something came or went.
func (l *look) stateDirs() []stateDir {
	if l.states != nil {
		return l.states
	}
	l.states = make([]stateDir, 0, len(l.fleet.ownPaths))
	for _, p := range l.fleet.ownPaths {
		if strings.Contains(p, "://") || kernels(p) {
			continue
		}
		fi := l.info(p)
		if fi == nil || !fi.IsDir() {
			continue
		}
		was, _ := l.fleet.listed.Load(p)
		o, _ := was.(listedDir)
		if !o.settled || !sameContents(o.info, fi) {
			began := time.Now()
			entries, err := l.disk.ReadDir(p, maxWalked)
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, fs.ErrNotExist) {
				l.stopped = true // what is Writ's own there is not known: the call is refused
				return l.states
			}
			o = listedDir{stateDir{p, make(map[string]bool, len(entries)), map[string]bool{}}, fi, false}
			for _, d := range entries {
				name := strings.ToLower(d.Name())
				o.names[name], o.dirs[name] = true, d.IsDir()
			}
			changed, ok := changedAt(fi)
			o.settled = ok && len(entries) < maxWalked && began.Sub(changed) > tick(changed)
			l.fleet.listed.Store(p, o)
		}
		l.may(1 + len(o.names))
		l.states = append(l.states, o.stateDir)
	}
	return l.states
}

// tick is more than two changes of a directory can be apart and be noted as one: a
// kernel counts in hundredths of a second or finer, some file systems in two whole
// ones. What changed less long before it was read may have changed again since.
func tick(noted time.Time) time.Duration {
	if noted.Nanosecond() != 0 {
		return 100 * time.Millisecond
	}
	return 3 * time.Second
}

// sameContents reports whether a directory has the names that it had, by what its
// file system notes when one comes or goes. Nobody can set that note.
func sameContents(was, is fs.FileInfo) bool {
	then, ok := changedAt(was)
	now, _ := changedAt(is)
	return ok && now.Equal(then) && is.ModTime().Equal(was.ModTime()) && os.SameFile(was, is)
}

// kernels reports whether a path of Writ's own is the kernel's, where no file
// has another name.
func kernels(p string) bool {
	return strings.HasPrefix(p, "/proc/") || strings.HasPrefix(p, "/dev/")
}

// ownFile is what the file system knows a file of Writ's own by.
type ownFile struct {
	path string
	info fs.FileInfo
}

// ownedBy returns the path of Writ's own that a real path is another name of:
// by a hard link, a mount, or a file system's way to spell. "" if there is none.
// there is as much of the path as is there.
func (l *look) ownedBy(real, there string) string {
	for at := there; ; {
		if fi := l.info(at); fi != nil {
			for _, o := range l.ownFiles(fi.IsDir(), !onDevice(fi)) {
				if os.SameFile(fi, o.info) {
					return filepath.Join(o.path, strings.TrimPrefix(real, at))
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
		at = up
	}
}

// ownFiles are those of Writ's own that are there, or the directories among them: nothing
// else is another name of one. With those of the kernel's where that is asked for: what
// lies on a device is none of them.
func (l *look) ownFiles(dirs, kernels bool) []ownFile {
	if l.own == nil {
		l.own = l.lookUp(make([]ownFile, 0, len(l.fleet.ownPaths)+len(l.fleet.programs)), false, true)
	}
	if !dirs && !l.plain {
		l.plain = true
		l.own = l.lookUp(l.own, false, false)
	}
	if kernels && !l.kernels {
		l.kernels = true
		l.own = l.lookUp(l.own, true, false)
	}
	return l.own
}

// process reports whether a path is this process's in the kernel's own file system:
// /dev/fd, or /proc and one name.
func process(p string) bool {
	name, is := strings.CutPrefix(p, "/proc/")
	return p == "/dev/fd" || is && name != "" && !strings.Contains(name, "/")
}

// lookUp adds to own those of Writ's own paths that are there: this process's, or of the others
// what was no directory when it was last looked at, or with dirs the rest.
func (l *look) lookUp(own []ownFile, this, dirs bool) []ownFile {
	for _, paths := range [][]string{l.fleet.ownPaths, l.fleet.programs} {
		for _, p := range paths {
			_, plain := l.fleet.plain.Load(p)
			if strings.Contains(p, "://") || kernels(p) && process(p) != this || !kernels(p) && this || !this && plain == dirs {
				continue
			}
			fi, seen := l.infos[p]
			if !seen || fi != nil && fi.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
				if !l.may(1) {
					return own
				}
				fi, _ = l.disk.Stat(p) // the kernel follows the links, as realPath would
			}
			if fi != nil {
				own = append(own, ownFile{p, fi})
			}
			if dirs && (fi == nil || !fi.IsDir()) {
				l.fleet.plain.Store(p, true)
			}
		}
	}
	return own
}

// linked returns the file in one of Writ's own directories that fi is a hard
// link of. Of a directory too large to look through it is taken for one.
func (l *look) linked(fi fs.FileInfo) string {
	if !l.walked {
		l.walked = true
		for _, o := range l.ownFiles(true, false) {
			if !o.info.IsDir() || kernels(o.path) {
				continue
			}
			if !l.walk(o.path, func(p string, d fs.DirEntry) bool {
				if !d.Type().IsRegular() {
					return true
				}
				if in := l.info(p); in != nil && links(in) > 1 {
					l.names = append(l.names, ownFile{p, in})
				}
				return true
			}) && l.crowd == "" {
				l.crowd = o.path
			}
		}
	}
	for _, o := range l.names {
		if os.SameFile(o.info, fi) {
			return o.path
		}
	}
	return l.crowd
}

package gateway

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
)

const (
	maxResolved = 10_000 // paths of one call that are followed; the rest is refused
	maxLinks    = 40     // links followed for one path, as the kernel does
)

// resolve gives, for string arguments that name a place in the file system,
// where they lead once symbolic links are followed (R34): the door does it,
// because Decide does no I/O. Only calls to child processes of this machine are
// looked at. Where it cannot tell, the answer is Writ's own state, which
// refuses.
func (g *Gateway) resolve(call gate.Call) map[string]string {
	srv := g.servers[call.Server]
	if srv == nil || !srv.local || call.Method != gate.CallTool || call.Arguments == nil || len(g.ownPaths) == 0 ||
		strictjson.Check(call.Arguments, strictjson.Request) != nil {
		return nil
	}
	var out map[string]string
	paths := 0
	strictjson.Walk(call.Arguments, func(at []string, raw []byte) bool {
		text, ok := strictjson.Text(raw)
		if !ok {
			return true
		}
		path, ok := filePath(text)
		if !ok {
			return true
		}
		paths++
		real, ok := g.ownPaths[0], false
		if paths <= maxResolved {
			real, ok = realPath(path)
		}
		if !ok {
			real = g.ownPaths[0]
		}
		if real != path {
			if out == nil {
				out = map[string]string{}
			}
			out[strictjson.Pointer(at)] = real
		}
		return true
	}, nil)
	return out
}

// filePath returns the absolute path that a text names, as it stands or as a
// file URL in any spelling.
func filePath(text string) (string, bool) {
	if len(text) > 5 && strings.EqualFold(text[:5], "file:") {
		u, err := url.Parse(text)
		if err != nil {
			return "", false
		}
		text = u.Path
		if u.Opaque != "" {
			text = u.Opaque
		}
	}
	return text, len(text) <= 4096 && strings.IndexByte(text, 0) < 0 && filepath.IsAbs(text)
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

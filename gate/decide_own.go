package gate

import (
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	writ "github.com/writ-project/writ"
)

// own refuses targets and selectors that lie in Writ's own state, and, where
// the act could carry it away, above it (R34). It compares without regard to
// case: some file systems do.
func (j *judge) own() {
	for _, l := range j.leaves {
		if l.role != Target && l.role != Selector {
			continue
		}
		// A declared target that is written to is a place, not what is taken away.
		above := j.d.Effect&Delete != 0 || j.d.Effect&Write != 0 && (l.rule == nil || l.role == Selector)
		hit := false
		for _, s := range []string{l.text, j.in.Resolved[l.pointer]} {
			for _, p := range j.in.OwnPaths {
				if strings.Contains(p, "://") {
					at := endpoint(strings.ToLower(s))
					hit = hit || at != "" && at == endpoint(strings.ToLower(p))
					continue
				}
				hit = hit || touches(strings.ToLower(s), strings.ToLower(path.Clean(strings.ReplaceAll(p, `\`, "/"))), above)
			}
		}
		if hit {
			j.direct = append(j.direct, writ.Failure{Pointer: l.pointer, Reason: writ.DirectOwnState,
				Need: "`" + shown(l.pointer) + "` " + needs[writ.DirectOwnState]})
		}
	}
}

// endpoint returns host and port of a lower-cased URL, every name of this
// machine as one; "" if it is no URL with a host. It reads as the most generous
// client does: any number of slashes of either kind after the scheme, numbers
// for addresses, ports with leading zeros.
func endpoint(s string) string {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || !slices.Contains([]string{"http", "https", "ws", "wss"}, scheme) {
		return ""
	}
	rest = strings.TrimLeft(rest, `/\`)
	if i := strings.IndexAny(rest, `/?#\`); i >= 0 {
		rest = rest[:i]
	}
	host, port := percentDecode(rest[strings.LastIndexByte(rest, '@')+1:]), ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.Contains(host[i:], "]") {
		host, port = host[:i], strings.TrimLeft(host[i+1:], "0")
	}
	if port == "" {
		if port = "80"; scheme == "https" || scheme == "wss" {
			port = "443"
		}
	}
	host = strings.TrimSuffix(norm.NFKC.String(host), ".")
	if ip, ok := address(host); ok {
		if host = ip.String(); ip.IsLoopback() || ip.IsUnspecified() {
			host = "localhost"
		}
	} else if strings.HasSuffix(host, ".localhost") {
		host = "localhost"
	}
	return host + ":" + port
}

// address reads an IP address as resolvers do: also 127.1, 0x7f000001, 017700000001
// and one in IPv6 clothes.
func address(host string) (netip.Addr, bool) {
	in, _ := strings.CutSuffix(strings.TrimPrefix(host, "["), "]")
	if ip, err := netip.ParseAddr(in); err == nil {
		return ip.WithZone("").Unmap(), true
	}
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var n uint64
	for i, p := range parts {
		v, err := strconv.ParseUint(strings.TrimPrefix(p, "0x"), base(p), 64)
		if p == "0x" {
			v, err = 0, nil
		}
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if err != nil || v >= 1<<bits {
			return netip.Addr{}, false
		}
		n = n<<bits | v
	}
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), true
}

// base is the base a resolver reads a part of an address in.
func base(part string) int {
	switch {
	case strings.HasPrefix(part, "0x"):
		return 16
	case len(part) > 1 && part[0] == '0':
		return 8
	}
	return 10
}

// homeForm is how a path begins in somebody's home directory.
var homeForm = regexp.MustCompile(`^(?:~([^/]*)|\$home|\$\{home\}|%userprofile%|%homepath%)(?:/|$)`)

// touches reports whether s, a lower-cased path, file URL or path in the home
// directory, is own or lies in it; with above also whether own lies in s.
func touches(s, own string, above bool) bool {
	if rest, ok := strings.CutPrefix(s, "file:"); ok {
		if host, ok := strings.CutPrefix(rest, "//"); ok {
			rest = host[strings.IndexByte(host+"/", '/'):] // whatever host it names
		}
		if i := strings.IndexAny(rest, "?#"); i >= 0 {
			rest = rest[:i]
		}
		s = strings.ToLower(percentDecode(rest))
	}
	s = strings.ReplaceAll(s, `\`, "/")
	if m := homeForm.FindStringSubmatch(s); m != nil && (m[1] == "" || m[1] == userOf(own)) {
		s, own = path.Clean("/"+s[len(m[0]):]), underHome(own)
	}
	if strings.HasPrefix(s, "../") { // from however deep it is called
		for strings.HasPrefix(s, "../") {
			s = strings.TrimLeft(s[2:], "/")
		}
		s = "/" + s
	}
	if len(s) > 2 && s[1] == ':' && s[2] == '/' || len(s) > 3 && s[0] == '/' && s[2] == ':' {
		s = strings.TrimPrefix(s, "/") // a drive, also as a URL spells it
	} else if !strings.HasPrefix(s, "/") {
		return false
	}
	s = path.Clean(s)
	return inside(s, own) || above && inside(own, s)
}

// inside reports whether p is dir or lies below it.
func inside(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// userOf is whose home directory a path usually lies in.
func userOf(p string) string {
	for _, homes := range []string{"/home/", "/users/"} {
		if rest, ok := strings.CutPrefix(p, homes); ok {
			return rest[:strings.IndexByte(rest+"/", '/')]
		}
	}
	return "root"
}

// underHome cuts the usual home directory off a path.
func underHome(p string) string {
	for _, homes := range []string{"/home/", "/users/"} {
		if rest, ok := strings.CutPrefix(p, homes); ok {
			return rest[strings.IndexByte(rest+"/", '/'):]
		}
	}
	return strings.TrimPrefix(p, "/root")
}

// percentDecode resolves %XX. What is not an escape stays as it is.
func percentDecode(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	hex := func(c byte) int { return strings.IndexByte("0123456789abcdef", c|0x20) }
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && hex(s[i+1]) >= 0 && hex(s[i+2]) >= 0 {
			b.WriteByte(byte(hex(s[i+1])<<4 | hex(s[i+2])))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// protectedNames are files by which version control, continuous integration or
// an agent takes orders, and which do not begin with a dot.
var protectedNames = map[string]bool{
	"agents.md": true, "claude.md": true, "gemini.md": true, "copilot-instructions.md": true, "mcp.json": true,
	"jenkinsfile": true, "azure-pipelines.yml": true, "azure-pipelines.yaml": true, "bitbucket-pipelines.yml": true,
	"appveyor.yml": true, "cloudbuild.yaml": true, "cloudbuild.yml": true, "buildspec.yml": true, "buildspec.yaml": true,
	"opencode.json": true, "qwen.md": true, "git~1": true, "github~1": true,
}

// protectedFamily are the same under a longer name: CLAUDE.local.md.
var protectedFamily = regexp.MustCompile(`^(?:(?:agents|claude|gemini|qwen)\..*md|jenkinsfile\..*)$`)

// protectedPath reports whether a file must not be written with text nobody
// vouches for (R34): its path goes through a dot-file, or it is one of those.
func protectedPath(p string) bool {
	for _, e := range strings.FieldsFunc(strings.ToLower(percentDecode(p)), func(r rune) bool { return r == '/' || r == '\\' }) {
		if strings.HasPrefix(e, ".") || protectedNames[e] || protectedFamily.MatchString(e) {
			return true
		}
	}
	return false
}

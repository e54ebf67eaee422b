package provenance

import (
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// domains checks labels strictly and maps only case; whatever else a lookup
// would map (full-width letters, soft hyphens) is refused instead.
var domains = idna.New(
	idna.ValidateLabels(true), idna.CheckHyphens(true), idna.CheckJoiners(true),
	idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true))

// domainForm is what a domain is once it is ASCII; idna lets "a/b" and "a@b"
// pass where it maps nothing.
var domainForm = text.Pattern(`^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$`)

// maxHost bounds the bytes of a host before it is looked at: 253 once it is
// ASCII, and a letter is at most four bytes before.
const maxHost = 4 * 253

// host returns the canonical host: a lower-case ASCII domain (A-labels), an
// IPv4 address in four decimal parts or an IPv6 address in brackets. Text that
// some resolver reads as a number (0x7f.1, 2130706433) is refused. The caller
// has checked that nothing in it is invisible.
func host(s string) (string, writ.Reason) {
	if in, ok := strings.CutPrefix(s, "["); ok {
		in, ok = strings.CutSuffix(in, "]")
		ip, err := netip.ParseAddr(in)
		return formed("["+ip.String()+"]", ok && err == nil && ip.Is6() && ip.Zone() == "" && !ip.Is4In6())
	}
	if last := s[strings.LastIndexByte(s, '.')+1:]; numeric(last) {
		ip, err := netip.ParseAddr(s)
		return formed(ip.String(), err == nil && ip.Is4())
	}
	if s == "" || strings.HasSuffix(s, ".") || len(s) > maxHost || strings.Contains(s, "İ") { // of which browsers make i and a dot above it
		return "", writ.FormNotCanonical
	}
	// ToASCII alone checks little of what it encodes; the way back does.
	ascii, err := domains.ToASCII(strings.ToLower(norm.NFC.String(s)))
	shown, back := domains.ToUnicode(ascii)
	if slices.ContainsFunc(strings.Split(shown, "."), mixedScript) {
		return "", writ.FormMixedScript
	}
	return formed(ascii, err == nil && back == nil && visible(shown) == "" && domainForm().MatchString(ascii))
}

// numeric reports whether a last label makes a resolver read the host as an
// IPv4 address (WHATWG URL, "ends in a number").
func numeric(label string) bool {
	if digits(label) {
		return true
	}
	hex, ok := strings.CutPrefix(strings.ToLower(label), "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

// Address reads a host in small letters as an IP address, as resolvers do: also 127.1,
// 0x7f000001, 017700000001 and one in IPv6 clothes.
func Address(host string) (netip.Addr, bool) {
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

// localPart is RFC 5321's dot-string, widened to letters of any script: no
// quoting, no comments, no white space.
var localPart = text.Pattern("^[\\pL\\pM\\pN!#$%&'*+/=?^_`{|}~-]+(?:\\.[\\pL\\pM\\pN!#$%&'*+/=?^_`{|}~-]+)*$")

// email keeps the local part as it is (its case is the receiver's business)
// and canonicalises the domain.
func email(s string) (string, writ.Reason) {
	local, domain, ok := strings.Cut(s, "@")
	if !ok || len(s) > 254 || len(local) > 64 || strings.HasPrefix(domain, "[") {
		return "", writ.FormNotCanonical
	}
	local = norm.NFC.String(local)
	if mixedScript(local) {
		return "", writ.FormMixedScript
	}
	if !localPart().MatchString(local) || !norm.NFKC.IsNormalString(local) {
		return "", writ.FormNotCanonical
	}
	h, why := host(domain)
	if why != "" {
		return "", why
	}
	_, err := netip.ParseAddr(h)
	return formed(local+"@"+h, err != nil)
}

var (
	schemeForm   = text.Pattern(`^[A-Za-z][A-Za-z0-9+.-]*$`)
	defaultPorts = map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}
)

// absoluteURL returns the canonical form of scheme://host[:port]/path?query#part.
// What clients are known to read in two ways is refused rather than cleaned:
// user information, backslashes, dot segments and empty segments, encoded dots,
// slashes and controls, doubly encoded bytes, a host with a trailing dot.
func absoluteURL(s string) (string, writ.Reason) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || !schemeForm().MatchString(scheme) || strings.ContainsAny(s, " \\\"<>^`{|}") {
		return "", writ.FormNotCanonical
	}
	scheme = strings.ToLower(scheme)
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	authority, why := authorityOf(scheme, authority)
	if why != "" {
		return "", why
	}
	tail, fragment, hasFragment := strings.Cut(tail, "#")
	p, query, hasQuery := strings.Cut(tail, "?")
	if p == "" {
		p = "/"
	}
	if p, why = percent(p, true); why != "" {
		return "", why
	}
	for i, seg := range strings.Split(p[1:], "/") {
		if seg == "." || seg == ".." || seg == "" && i < strings.Count(p, "/")-1 {
			return "", writ.FormNotCanonical
		}
	}
	out := scheme + "://" + authority + p
	for _, part := range []struct {
		has  bool
		mark string
		text string
	}{{hasQuery, "?", query}, {hasFragment, "#", fragment}} {
		text, why := percent(part.text, false)
		if why != "" {
			return "", why
		}
		if part.has {
			out += part.mark + text
		}
	}
	return out, ""
}

// authorityOf is the host of a URL, with a port that is not its scheme's.
func authorityOf(scheme, authority string) (string, writ.Reason) {
	if strings.ContainsAny(authority, "@%") || authority == "" && scheme != "file" {
		return "", writ.FormNotCanonical
	}
	if authority == "" {
		return "", ""
	}
	name, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		name, port = authority[:i], authority[i+1:]
	}
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != port) {
		return "", writ.FormNotCanonical
	}
	h, why := host(name)
	if port != "" && port != defaultPorts[scheme] {
		h += ":" + port
	}
	return h, why
}

// percent rewrites a URL's part with upper-case escapes, unreserved characters
// bare and all else beyond ASCII escaped. In a path an encoded separator, dot
// or second layer of encoding is refused; an encoded control always is.
func percent(s string, inPath bool) (string, writ.Reason) {
	const upper = "0123456789ABCDEF"
	var out, plain strings.Builder // plain is what the part says once decoded
	for i := 0; i < len(s); i++ {
		b := s[i]
		bare := b < 0x80
		if b == '%' {
			var ok bool
			if b, ok = unhex(s[i+1:]); !ok || b < 0x20 || b == 0x7f {
				return "", writ.FormNotCanonical
			}
			if _, twice := unhex(s[i+3:]); inPath && (b == '.' || b == '/' || b == '\\' || b == '%' && twice) {
				return "", writ.FormNotCanonical
			}
			i += 2
			bare = unreserved(b)
		}
		plain.WriteByte(b)
		if bare {
			out.WriteByte(b)
		} else {
			out.Write([]byte{'%', upper[b>>4], upper[b&15]})
		}
	}
	if text.HidesIn(plain.String(), text.Unseen, "") {
		return "", writ.FormInvisible
	}
	return out.String(), ""
}

func unhex(s string) (byte, bool) {
	if len(s) < 2 {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:2], 16, 8)
	return byte(n), err == nil && s[0] != '+' && s[0] != '-' && s[0] != '_'
}

func unreserved(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// absolutePath takes an absolute path as the kernel reads it. Dot segments and
// doubled slashes are refused, not cleaned: /a/link/../b is not /a/b to the
// kernel. Neither is a decomposed é a composed one, so NFC is demanded and not
// made. Only a trailing slash is another spelling.
func absolutePath(s string) (string, writ.Reason) {
	if s != "/" {
		s = strings.TrimSuffix(s, "/")
	}
	return formed(s, strings.HasPrefix(s, "/") && path.Clean(s) == s && !strings.ContainsAny(s, "\\\x00") && norm.NFC.IsNormalString(s))
}

// singleName takes one element of a path.
func singleName(s string) (string, writ.Reason) {
	return formed(s, s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\\x00") && norm.NFC.IsNormalString(s))
}

// JoinPath joins a canonical directory and one name (R13). ok is false unless
// dir is a canonical absolute path and name a single visible name in NFC: not
// empty, not "." or "..", no separator.
func JoinPath(dir, name string) (joined string, ok bool) {
	d, why := absolutePath(dir)
	if why != "" || d != dir || visible(dir) != "" || visible(name) != "" {
		return "", false
	}
	if _, why := singleName(name); why != "" {
		return "", false
	}
	return strings.TrimSuffix(dir, "/") + "/" + name, true
}

// splitPath undoes JoinPath: ok is false for "/" and for what is not a
// canonical path.
func splitPath(p string) (dir, name string, ok bool) {
	if c, why := absolutePath(p); why != "" || c != p || p == "/" {
		return "", "", false
	}
	return path.Dir(p), path.Base(p), true
}

// Hosts returns the hosts of a text, of links and by themselves, each once, in small letters
// and with a port that is not its scheme's. What may be the name of a file as well is one
// ("claude.ai").
func Hosts(s string) (out []string) {
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return blank(r) || isMark(r) || r == ',' || r == ';' }) {
		if host, is := hostOf(strings.ToLower(strings.TrimRight(w, stops))); is && !slices.Contains(out, host) {
			out = append(out, host)
		}
	}
	return out
}

// LinkHost returns the host of a link as Hosts does, "" for none: of a link as a whole, for its path
// can hold another one.
func LinkHost(link string) string {
	host, is := hostOf(strings.ToLower(link))
	if !is || !strings.Contains(link, "://") {
		return ""
	}
	return host
}

// hostOf is the host of a word in small letters.
func hostOf(w string) (host string, is bool) {
	if !strings.Contains(w, "://") {
		host = w
		if i := strings.IndexAny(w, "/?#:"); i >= 0 {
			host = w[:i]
		}
		if _, _, is := bareHost(strictjson.StringOf("https://" + host)); !is && host != "localhost" && !address().MatchString(host) {
			return "", false
		}
		w = "https://" + w
	}
	u, err := url.Parse(w)
	if err != nil || u.Hostname() == "" {
		return "", false
	}
	host = strings.TrimRight(u.Hostname(), ".")
	if p := u.Port(); p != "" && !(p == "443" && u.Scheme == "https" || p == "80" && u.Scheme == "http") {
		host += ":" + p
	}
	return host, true
}

var address = text.Pattern(`^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$`)

// Hosts returns the hosts that the user typed, in one turn or, of turn 0, in any.
func (l *Ledger) Hosts(turn uint32) (out []string) {
	for i := range l.turns {
		if turn == 0 || l.turns[i].Evidence == turn {
			out = append(out, Hosts(l.turns[i].own.text)...)
		}
	}
	return out
}

package provenance

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// PlainAtoms returns those atoms of what a read is asked with by which it can reach
// somewhere else, or carry something there: links, hosts, mail addresses and keys, and
// what is hidden, also behind the escapes of a string of JSON. A dotted word is a host
// unless its end is one of files' names alone, a number where a resolver reads it as an address.
// What may be something else too goes by the argument, whose names lead to it from the
// outside in. In one that is called as a file or a text is, "md" is the end of a file's
// name until it has three parts or a path behind it: of two alone it carries nothing. In
// a path no host is looked for, unless it begins as a share does. A backslash is read as
// a slash, as what asks for URLs and for shares reads it. What narrows a search is no link
// in a text ("is:open").
func PlainAtoms(s string, names []string) []Atom {
	in := argumentOf(names)
	spelt, s := s, slashed(s)
	isPath := in.isPath(s)
	read := func(plain string) string {
		if in == hostArgument { // what reads URLs drops these
			plain = dropped.Replace(plain)
		}
		return slashed(unquoted(escaped5C().ReplaceAllString(plain, "/")))
	}
	out := atomsAs(s, spelt, read, func(a Atom) bool { return in.lets(a, isPath) })
	if !isPath {
		plain, _ := plainOf(s)
		whole, _ := plainOf(spelt)
		for _, host := range slices.Concat(in.hosts(slashed(plain)), in.hosts(read(whole))) {
			a := Atom{Kind: HostAtom, Text: host, Type: Host}
			if !strings.Contains(s, host) {
				a = Atom{Kind: HiddenAtom}
			}
			if !slices.ContainsFunc(out, func(o Atom) bool { return o.Kind == a.Kind && o.Text == a.Text }) {
				out = append(out, a)
			}
			if len(out) > maxAtoms {
				return []Atom{{Kind: ManyAtoms}}
			}
		}
	}
	for i, a := range out { // as it is sent, from where it begins
		at := max(strings.Index(s, a.Text), 0)
		end := at + len(a.Text)
		if begin := strings.TrimRight(s[:at], "/"); a.Kind == HostAtom && strings.TrimSpace(begin) == "" {
			at = len(begin)
		}
		out[i].Text = spelt[at:end]
	}
	return out
}

// lets reports whether an atom of an argument reaches nothing and carries nothing.
func (in argument) lets(a Atom, isPath bool) bool {
	switch a.Kind {
	case LinkAtom:
		_, value, _ := strings.Cut(a.Text, ":")
		return in == textArgument && narrows().MatchString(a.Text) && !keyIn(value)
	case MailAtom, HiddenAtom, ManyAtoms:
		return false
	case HostAtom:
		return isPath || in == textArgument && fields().MatchString(a.Text) || !resolves(a.Text, in)
	case KeyAtom:
		return !keyIn(a.Text) // a long relative path is none unless a part of it is one
	}
	return true
}

// hosts are those of a text that no form of an atom shows.
func (in argument) hosts(s string) []string {
	out := addresses(s, in)
	if of := share(s); of != "" && in != textArgument {
		out = append(out, of)
	}
	return out
}

func keyIn(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(p string) bool { return len(p) >= 20 && isKey(p) })
}

// narrows matches what a search is narrowed by, in words that those who search know: none
// of them is a scheme, and what stands behind one is no host.
var narrows = text.Pattern(`(?i)^-?(?:after|age|archived|assigned|assigned_or_suggested|assignee|author|base|before|branch|category|cc|closed|comments|commenter|component|created|culprit|dist|draft|due|during|env|environment|extension|filename|filetype|firstrelease|firstseen|from|fork|handled|has|head|in|involves|is|issue|label|labels|lang|language|larger|lastseen|level|linked|mentions|merged|milestone|name|newer|newer_than|no|older|older_than|org|owner|path|platform|priority|project|pushed|regressed_in_release|release|repo|reporter|review|reviewer|size|smaller|sort|space|sprint|stars|state|status|subject|tag|tags|team|times_seen|timesseen|title|to|topic|transaction|type|unhandled|updated|user|visibility):(?:[<>]=?)?[+-]?[A-Za-z0-9_-]*(?:/[A-Za-z0-9_-]+){0,4}$`)

// fields matches the same of a field within one: no top-level domain is called so.
var fields = text.Pattern(`(?i)^-?(?:error\.(?:handled|unhandled|type)|issue\.(?:category|priority|type)):[A-Za-z_-]{1,40}$`)

// escaped5C is a backslash as escapes spell it: undone first, two of them were one.
var escaped5C = text.Pattern(`(?i)%5c|&#92;|\\(?:u005c|x5c)`)

func slashed(s string) string { return strings.ReplaceAll(s, `\`, "/") }

// share is what a text asks for that begins as a share does, or as a link without its
// scheme: its host may be any word.
func share(s string) string {
	s = strings.TrimSpace(s)
	rest := strings.TrimLeft(s, "/")
	if len(s)-len(rest) < 2 || strings.HasPrefix(rest, " ") {
		return ""
	}
	return strings.TrimRight(rest, "/.")
}

var dropped = strings.NewReplacer("\t", "", "\n", "", "\r", "")

// argument is what the name of an argument says of what stands in it.
type argument int

const (
	someArgument argument = iota
	textArgument
	fileArgument
	hostArgument
)

var drive = text.Pattern(`^[A-Za-z]:/`)

// isPath reports whether what stands in an argument is the path of a file, absolute or
// from where one is. In one of a host nothing is, and where nothing says that it is one,
// nothing that begins with what may be a host.
func (in argument) isPath(s string) bool {
	first, rest, _ := strings.Cut(s, "/")
	switch {
	case in == hostArgument:
		return false
	case first == "." || first == "..":
		return len(first) < len(s)
	case first != "" && !drive().MatchString(s) || strings.HasPrefix(rest, "/"):
		return false
	}
	if in == someArgument && first == "" {
		top, _, _ := strings.Cut(rest, "/")
		top, _ = plainOf(top) // as what asks for it reads it
		top = strings.ReplaceAll(top, "。", ".")
		_, number := Address(strings.ToLower(top))
		if strings.Contains(top, ".") && resolves(top, in) || number && strings.ContainsAny(top, "xX") {
			return false
		}
	}
	_, _, why := Canonical(Path, strictjson.StringOf("/"+rest))
	return why == ""
}

var (
	// A host may be called by the end of a longer word: baseurl, website.
	hostNames = text.Pattern(`(?:host|domain|url|uri|href|site|server|address|endpoint|origin|proxy|webhook)(?:s|es)?$|^host|^(?:ip|link|fqdn|dns|peer|callback)s?$`)
	fileNames = text.Pattern(`(?:file|path|name|dir)s?$|^(?:directory|directories|folders?|globs?|include|includes|exclude|excludes|ref|branch|tag|version|release|doc|document|module)$`)
	textNames = text.Pattern(`(?:text|query)s?$|^(?:patterns?|regexp?|q|queries|search|terms?|keywords?|phrase|prompt|question|titles?|content|contents|body|message)$`)
)

// argumentOf reads the names that lead to an argument: one of a host anywhere makes it
// one, and only its own last can say that it is a text or a file.
func argumentOf(names []string) argument {
	names = slices.DeleteFunc(slices.Clone(names), digits)
	for i, n := range names {
		words := text.NameWords(n)
		if slices.ContainsFunc(words, hostNames().MatchString) {
			return hostArgument
		}
		switch {
		case i < len(names)-1:
		case slices.ContainsFunc(words, fileNames().MatchString):
			return fileArgument
		case slices.ContainsFunc(words, textNames().MatchString):
			return textArgument
		}
	}
	return someArgument
}

// between are marks that stand between what is asked for and something else.
const between = " \t\r\n\"'`<>(){}|,;=@"

var dottedDay = text.Pattern(`^[0-3]?[0-9]\.[01]?[0-9]\.(?:19|20)[0-9]{2}$`)

// addresses are the hosts of a text that are numbers and no address in four decimal
// parts. 2.3.1 may be a version, 17 a count and 0x80070005 an error: those are hosts in
// an argument of one, and dotted or in hexadecimal where a path goes on behind them. What
// begins with a zero byte is nobody's.
func addresses(s string, in argument) (out []string) {
	whole := strings.TrimLeft(strings.TrimSpace(s), "/"+between)
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(between, r) }) {
		if a, ok := addressOf(word); ok && a.isHost(whole, in) {
			out = append(out, strings.TrimRight(a.host, ".:!?"))
		}
	}
	return out
}

// addressed is an address in numbers that a word begins with.
type addressed struct {
	ip           netip.Addr
	host, behind string
	bare         string // host as it is read
}

func addressOf(word string) (a addressed, ok bool) {
	a.host = strings.TrimLeft(word, "/")
	a.bare = strings.ToLower(strings.TrimRight(strings.ReplaceAll(a.host, "。", "."), ".:!?"))
	if a.ip, ok = Address(a.bare); ok {
		return a, true
	}
	end := strings.IndexAny(a.host, "/?#:")
	if strings.HasPrefix(a.host, "[") {
		end = strings.IndexByte(a.host, ']') + 1
	}
	if end <= 0 {
		return a, false
	}
	a.host, a.behind = a.host[:end], a.host[end:]
	a.bare = strings.ToLower(strings.TrimRight(strings.ReplaceAll(a.host, "。", "."), "."))
	a.ip, ok = Address(a.bare)
	return a, ok
}

// isHost reports whether it is one in an argument, of which whole is the text.
func (a *addressed) isHost(whole string, in argument) bool {
	dots, hex := strings.Count(a.bare, "."), strings.Contains(a.bare, "0x")
	goesOn := strings.ContainsFunc(a.behind, unicode.IsLetter)
	switch {
	case a.ip.AsSlice()[0] == 0:
		return false
	case a.ip.Is6(), dots == 3, dots > 0 && hex, (in == hostArgument || goesOn) && (dots > 0 || hex):
		return true
	case in == hostArgument: // an integer alone, or with a path behind it
		if end := strings.IndexAny(whole, "/?#:"); end >= 0 && strings.TrimRight(whole[:end], ".。!") == strings.TrimRight(a.host, ".。:!?") {
			return true
		}
		return whole == a.host || a.behind != "" && strings.HasPrefix(whole, a.host+a.behind)
	}
	return in == someArgument && (dots > 1 && !dottedDay().MatchString(a.bare) || hex)
}

var charEscape = text.Pattern(`\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))`)

// unquoted is a text unmarked, and without the escapes by which a string of a program
// spells a character, seen or not.
func unquoted(s string) string {
	for range 3 {
		before := s
		s = charEscape().ReplaceAllStringFunc(s, func(e string) string {
			n, _ := strconv.ParseUint(strings.Trim(e[2:], "{}"), 16, 32)
			if n < ' ' {
				return e
			}
			read, _ := plainOf(string(rune(n)))
			return read
		})
		if s = unmarked(s); s == before {
			break
		}
	}
	return s
}

// resolves reports whether a dotted word may be asked for as a host: in doubt it may. It
// may not where its end is known as that of files' names and is no top-level domain.
func resolves(s string, in argument) bool {
	host := s
	if i := strings.IndexAny(s, "/?#:"); i >= 0 {
		host = s[:i]
	}
	host = strings.ToLower(strings.TrimRight(strings.ReplaceAll(host, "。", "."), "."))
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case fileEnds[last]:
		return false
	case domainEnds[last]:
		return in == someArgument || in == hostArgument || len(host) < len(strings.TrimRight(s, ".")) || strings.Count(host, ".") > 1
	}
	return true
}

// fileEnds are ends of files' names that are no top-level domains, domainEnds such that
// are.
var (
	fileEnds = wordSet(`avi bak bat bin bmp bz2 c cfg conf cpp cs css csv db diff doc docx dll eml env exe gif go gql gradle graphql gz h hpp hs htm html
		ico ics ini ipynb iso jar jpeg jpg js json jsonl jsx kt less lock log lua mjs mkv mp3 mp4 odt parquet patch pdf php png ppt pptx proto
		rar rb rst scala scss sql sqlite sum svelte svg swift tar tex text tgz toml ts tsv tsx txt vue wav webm webp xls xlsx xml xz yaml yml`)
	domainEnds = wordSet(`ai app br cc cl in java md mk ml mm mov pl pm pro ps pub py rs sh so sv tf zip`)
)

// hostAlone returns the host of a link to the page that a host shows first: https, and nothing
// behind the host. Who types the host names it (R15), but for what may be the name of a file.
func hostAlone(v strictjson.Value) (host strictjson.Value, ok bool) {
	rest, last, ok := bareHost(v)
	return strictjson.StringOf(rest), ok && (!domainEnds[last] || strings.HasPrefix(strings.ToLower(rest), "www."))
}

// Schemeless returns what people type for a link, and the type that it is read by: its host,
// where nothing is behind that, or all behind https, of a host that hostAlone takes; and all behind
// http of one that is this very machine, with its port.
func Schemeless(v strictjson.Value) (typed strictjson.Value, t Type, ok bool) {
	if host, ok := hostAlone(v); ok {
		return host, Host, true
	}
	link, _ := v.Text()
	if rest, ok := strings.CutPrefix(link, "http://"); ok {
		if host, path, _ := strings.Cut(rest, "/"); path == "" {
			rest = host
		}
		return strictjson.StringOf(rest), Untyped, ownMachine().MatchString(rest)
	}
	rest, ok := strings.CutPrefix(link, "https://")
	if i := strings.IndexAny(rest, "/?#"); ok && i > 0 {
		_, ok = hostAlone(strictjson.StringOf("https://" + rest[:i]))
		return strictjson.StringOf(rest), Untyped, ok
	}
	return v, Untyped, false
}

var ownMachine = text.Pattern(`^(?:localhost|127\.0\.0\.1)(?::[0-9]{1,5})?(?:[/?#]|$)`)

// bareHost returns the same of what may be the name of a file and of a host, and its last label.
func bareHost(v strictjson.Value) (host, last string, ok bool) {
	link, _ := v.Text()
	rest, ok := strings.CutPrefix(link, "https://")
	rest = strings.TrimSuffix(rest, "/")
	name, _, why := Canonical(Host, strictjson.StringOf(rest))
	last = name[strings.LastIndexByte(name, '.')+1:]
	return rest, last, ok && why == "" && strings.Contains(name, ".") && !strings.ContainsAny(rest, "/?#@:\\") && strings.ContainsFunc(last, unicode.IsLetter) && !fileEnds[last]
}

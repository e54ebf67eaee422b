package provenance

import (
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"golang.org/x/text/unicode/norm"
)

// # Atoms of a text (R14)
//
// An atom is a piece of free text that something other than a reader's judgement
// may act on: a link, a host, an address, an account, a telephone or other long
// number, a key, a path, a mention, the number of an issue. What the text says in
// words is unproven; what it sends somebody to is not to be invented. A piece that
// looks like an atom and is none costs a question, one that is missed costs the
// rule: in doubt it is one. The text is read as programs read it after they
// cleaned it up: without what nobody sees, and with wide and raised characters in
// their plain form.

// AtomKind says what an atom is, in words for a person.
type AtomKind string

// The kinds of atoms. A hidden character is one by itself, and nothing vouches
// for it.
const (
	HiddenAtom  AtomKind = "hidden character"
	LinkAtom    AtomKind = "link"
	MailAtom    AtomKind = "mail address"
	HostAtom    AtomKind = "host"
	PathAtom    AtomKind = "path"
	NumberAtom  AtomKind = "long number"
	KeyAtom     AtomKind = "key"
	MentionAtom AtomKind = "mention"
	MarkupAtom  AtomKind = "markup"
	ManyAtoms   AtomKind = "more of these than can be looked behind"
)

// Atom is one of them: the text it stands as, and the type by which it is
// recognised elsewhere.
type Atom struct {
	Kind AtomKind
	Text string
	Type Type
}

// maxAtoms bounds how many atoms of one text are looked behind.
const maxAtoms = 256

// Forms of atoms, and what a text that has one holds.
type atomForm struct {
	kind  AtomKind
	t     Type
	marks string // of which a text that has one holds at least one
	form  func() *regexp.Regexp
}

const (
	// inLink is what a link goes on with, up to a space or a mark that sets it apart.
	inLink = "(?:[^\\s<>\"`()\\[\\]{}|]|\\([^\\s<>\"()]*\\))"
	// label is a part of a host's name, in any letters, signs and emoji.
	label = "[^\\s<>\"'`()\\[\\]{},;:!?/@.。|=&]"
)

// atomForms are looked for in this order, and what one takes no later one sees.
// Days and clocks are numbers that name nobody.
var atomForms = []atomForm{
	{LinkAtom, URL, ":", text.Pattern(`(?i)[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]*\])?` + inLink + `*`)},
	{MailAtom, Email, "@", text.Pattern("[^\\s@<>\"'`(),;:\\[\\]{}]+@[^\\s@<>\"'`(),;:\\[\\]{}]*[\\pL\\pN]")},
	{"", Untyped, "0123456789", text.Pattern(`\b(?:(?:19|20)[0-9]{2}-[01]?[0-9]-[0-3]?[0-9]|[0-3]?[0-9][./-][01]?[0-9][./-](?:19|20)[0-9]{2})(?:[T ][0-2]?[0-9]:[0-5][0-9](?::[0-5][0-9])?)?\b`)},
	{"", Untyped, ":", text.Pattern(`\b[0-2]?[0-9]:[0-5][0-9](?::[0-5][0-9])?\b`)},
	{HostAtom, Host, ".", text.Pattern(`\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b`)},
	{HostAtom, Host, ".。", text.Pattern(label + `+(?:[.。]` + label + `+)*[.。][\pL\pM]{2}[\pL\pN\pM-]*(?:[/?#:]` + inLink + `*)?`)},
	{LinkAtom, Untyped, ":", text.Pattern(`(?i)\b[a-z][a-z0-9+.-]{1,30}:[^\s"')\]}]` + inLink + `*`)},
	{PathAtom, Path, "/\\", text.Pattern("(?:^|[\\s\"'`(=:,;<>|\\[])(?:~?/[^\\s/<>\"'`()|][^\\s<>\"'`()|]*|//[^\\s/]|[A-Za-z]:[\\\\/][^\\s<>\"']*|\\\\\\\\[^\\s<>\"']+)")},
	{MarkupAtom, Untyped, "<", text.Pattern(`(?i)<(?:[!/?]|[\pL][^\s<>]*[\s/=:]|(?:script|style|iframe|object|embed|form|svg|math|base|link|meta|img|video|audio|input|button|a)>)`)},
	// What a spreadsheet computes or starts: a cell that begins with = and goes on to a
	// bracket or a bar, or with another sign and calls a function or a program by name.
	{MarkupAtom, Untyped, "(|", text.Pattern(`(?m)(?:^|[,;\t|])[\s"'“”]*(?:=[^\n]*[(|]|[+@-][^\pL\n]*\pL[\pL\pN.]*\(|[+@-]\S*\pL\S*\|)`)},
	{MentionAtom, Untyped, "@", text.Pattern(`@[\pL\pN_][\pL\pN_.-]*`)},
	{MentionAtom, Untyped, "#-", text.Pattern(`#[0-9]+|\bGH-[0-9]+`)},
	{KeyAtom, Untyped, "", text.Pattern(`[\pL\pN_+/=-]{20,}`)},
	{MentionAtom, Untyped, "-. ", text.Pattern(`\b(?:\+?1[-. ]?)?8(?:00|33|44|55|66|77|88)[-. ][\pL\pN][\pL\pN-]{4,}`)},
	{NumberAtom, Untyped, "", text.Pattern(`\+?[\pL]{0,4}[0-9](?:(?:[^\pL\pN,;]{0,3}|[,;])[\pL]?[0-9]){5,}`)},
	{NumberAtom, Untyped, "", text.Pattern(`[\pL\pN]*[0-9][\pL\pN]*`)},
}

// Atoms returns the atoms of a text: of what stands there, and of what is read there
// once marks of Markdown, entities and percent signs are undone. Where they are more
// than can be looked behind, the one it returns has nothing behind it.
func Atoms(s string) []Atom { return atomsAs(s, undone, nil) }

// atomsAs are the atoms of a text, and of what is read there as it is undone, without
// those that are let go.
func atomsAs(s string, undone func(string) string, let func(Atom) bool) []Atom {
	plain, hides := plainOf(s)
	out := atomsOf(plain)
	if hides {
		out = append(out, Atom{Kind: HiddenAtom})
	}
	if read := undone(plain); read != plain {
		for _, a := range atomsOf(read) {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	if len(out) > maxAtoms {
		return []Atom{{Kind: ManyAtoms}}
	}
	if let != nil {
		out = slices.DeleteFunc(out, let)
	}
	for i := range out {
		// What is vouched for are the bytes that are sent, not others that look so.
		if !strings.Contains(s, out[i].Text) {
			out[i].Text, out[i].Kind = "", HiddenAtom
		}
	}
	return out
}

// plainOf is a text without what nobody sees, with wide and raised characters in
// their plain form. hides says that something else than an emoji's was hidden.
func plainOf(s string) (plain string, hides bool) {
	if text.ASCII(s) && !text.HidesIn(s, text.Unseen, "\t\n\r") {
		return s, false
	}
	var before rune
	plain = strings.Map(func(r rune) rune {
		last := before
		before = r
		switch {
		case r == '\t' || r == '\n' || r == '\r' || !text.Hidden(r, text.Unseen):
			if r == '\u20e3' { // the frame of a keycap
				return -1
			}
			return r
		case (r == '\u200d' || r == '\ufe0f') && (unicode.In(last, unicode.S) || unicode.IsDigit(last) || last == '\ufe0f' || last == '#' || last == '*'):
			before = r
		default:
			hides = true
		}
		return -1
	}, s)
	return norm.NFKC.String(strings.Map(digitOf, plain)), hides
}

var (
	bareTag  = text.Pattern(`</?\pL[\pL\pN-]*>`)
	percents = text.Pattern(`%[0-9A-Fa-f]{2}`)
	escapes  = text.Pattern("\\\\([!-/:-@\\[-`{-~])")
)

// undone is a text as it is read where Markdown, HTML or a link is.
func undone(s string) string {
	if !strings.ContainsAny(s, "&%\\*_~`<") {
		return s
	}
	s = unmarked(s)
	s = bareTag().ReplaceAllString(s, "")
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("*_~`", r) {
			return -1
		}
		return r
	}, s)
}

// unmarked is a text without entities, percent signs and backslashes.
func unmarked(s string) string {
	for range 3 {
		before := s
		s = html.UnescapeString(s)
		s = percents().ReplaceAllStringFunc(s, func(p string) string {
			n, _ := strconv.ParseUint(p[1:], 16, 8)
			if n < ' ' || n > '~' {
				return p
			}
			return string(rune(n))
		})
		s = escapes().ReplaceAllString(s, "$1")
		if s == before {
			break
		}
	}
	return s
}

func atomsOf(plain string) (out []Atom) {
	for _, f := range atomForms {
		if !mayHold(plain, f.kind, f.marks) {
			continue
		}
		plain = f.form().ReplaceAllStringFunc(plain, func(found string) string {
			if f.kind == "" {
				return " \x00 "
			}
			atom := strings.TrimLeft(found, " \t\r\n\"'`(=:,;<>|[")
			if f.kind == MarkupAtom {
				atom = found
			}
			if !isAtom(f.kind, atom) {
				return found
			}
			if len(out) <= maxAtoms {
				out = append(out, Atom{f.kind, strings.TrimRight(atom, ".,;:!?'"), f.t})
			}
			return " \x00 "
		})
	}
	return out
}

// mayHold says quickly of most texts that they hold no atom of a kind: most are
// prose, and an expression reads every byte of it many times.
func mayHold(s string, kind AtomKind, marks string) bool {
	switch kind {
	case HostAtom: // a dot within a word
		for i := 1; i+1 < len(s); i++ {
			if c := s[i]; (c == '.' || c >= utf8.RuneSelf) && s[i-1] != ' ' && s[i+1] != ' ' && s[i+1] != '\n' {
				return true
			}
		}
		return false
	case KeyAtom: // a long word
		n := 0
		for i := range len(s) {
			if n++; s[i] == ' ' || s[i] == '\n' {
				n = 0
			}
			if n >= 20 {
				return true
			}
		}
		return false
	case NumberAtom: // some digits
		n := 0
		for i := range len(s) {
			if '0' <= s[i] && s[i] <= '9' {
				n++
			}
		}
		return n >= 7
	}
	return strings.ContainsAny(s, marks)
}

// digitOf returns the ASCII digit of a digit of any script.
func digitOf(r rune) rune {
	switch d := text.Digit(r); {
	case r > unicode.MaxASCII && d >= 0:
		return rune('0' + d)
	case '❶' <= r && r <= '❿', '➀' <= r && r <= '➓': // in circles, by tens
		return '1' + (r-'❶')%10%9
	}
	return r
}

// isAtom is what a form alone does not say.
func isAtom(kind AtomKind, found string) bool {
	switch kind {
	case NumberAtom:
		n := count(found, unicode.IsDigit)
		return n >= 9 || n >= 7 && found[0] == '+'
	case KeyAtom:
		return isKey(found)
	case HostAtom:
		return !abbreviation(found) && !fileName(found)
	}
	return true
}

// fileName reports whether a dotted word is the name of a file and of no host: its end is
// no top-level domain, and nothing makes a link of it. In words a text may name any file.
func fileName(s string) bool {
	s = strings.ToLower(strings.TrimRight(s, ".,;:!?'"))
	return fileEnds[s[strings.LastIndexByte(s, '.')+1:]] && !strings.ContainsAny(s, "/?#:。") && !strings.HasPrefix(s, "www.")
}

func count(s string, is func(rune) bool) (n int) {
	for _, r := range s {
		if is(r) {
			n++
		}
	}
	return n
}

// isKey tells a key from a long word: it mixes digits with letters, or capitals
// with small letters within its parts, or has twenty capitals and digits in a row.
func isKey(s string) bool {
	row := 0
	for _, r := range s {
		if row++; !unicode.IsUpper(r) && !unicode.IsDigit(r) {
			row = 0
		}
		if row >= 20 {
			return true
		}
	}
	letters, digits := count(s, unicode.IsLetter), count(s, unicode.IsDigit)
	if digits >= 2 && letters >= 2 {
		return true
	}
	turns, last := 0, rune(0)
	for _, r := range s {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			turns++
		}
		last = r
	}
	return turns >= 3
}

// abbreviation reports whether every part before the last dot is one letter, and
// the last no longer than two: "e.g", "Ph.D". Hosts of that shape are written with
// a scheme.
func abbreviation(s string) bool {
	parts := strings.Split(strings.TrimRight(s, "."), ".")
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(p string) bool { return utf8.RuneCountInString(p) > 1 })
}

// links returns the links that stand in a text, each as it is written and once,
// at most maxLinks of them: what a reader of it may follow (R20). A host counts
// with and without a scheme.
func links(s string) []string {
	if !strings.Contains(s, ".") || !utf8.ValidString(s) {
		return nil
	}
	// None of their forms spans a blank, but that of a day with a time behind it, and that
	// time is a form of its own. So they are looked for in the few words that may hold one.
	words := slices.DeleteFunc(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("\t\n\f\r ", r) }), func(w string) bool {
		return !strings.ContainsAny(w, ".。") && !strings.Contains(w, "://")
	})
	var out []string
	for _, f := range atomForms {
		if f.kind == PathAtom {
			break // what follows are no links
		}
		for i, w := range words {
			if !mayHold(w, f.kind, f.marks) {
				continue
			}
			var rest strings.Builder
			done := 0
			for _, at := range f.form().FindAllStringIndex(w, -1) {
				link := strings.TrimRight(w[at[0]:at[1]], ".,;:!?*_")
				before, _ := utf8.DecodeLastRuneInString(w[:at[0]])
				part := isAlnum(before) || strings.ContainsRune("/@.-_\\", before)
				if (f.kind == LinkAtom && f.t == URL || f.kind == HostAtom) && !part && isAtom(f.kind, link) && len(out) < maxLinks && !slices.Contains(out, link) {
					out = append(out, link)
				}
				rest.WriteString(w[done:at[0]])
				rest.WriteString(" ")
				done = at[1]
			}
			if done > 0 {
				rest.WriteString(w[done:])
				words[i] = rest.String()
			}
		}
	}
	return out
}

// maxLinks bounds how many links of one text can be followed.
const maxLinks = 64

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
	read := func(string) string {
		plain, _ := plainOf(spelt)
		if in == hostArgument { // what reads URLs drops these
			plain = dropped.Replace(plain)
		}
		return slashed(unquoted(escaped5C().ReplaceAllString(plain, "/")))
	}
	out := atomsAs(s, read, func(a Atom) bool {
		switch a.Kind {
		case LinkAtom:
			_, value, _ := strings.Cut(a.Text, ":")
			return in == textArgument && narrows().MatchString(a.Text) && !keyIn(value)
		case MailAtom, HiddenAtom, ManyAtoms:
			return false
		case HostAtom:
			return isPath || !resolves(a.Text, in)
		case KeyAtom:
			return !keyIn(a.Text) // a long relative path is none unless a part of it is one
		}
		return true
	})
	if !isPath {
		plain, _ := plainOf(s)
		var hosts []string
		for _, reading := range []string{slashed(plain), read(plain)} {
			hosts = append(hosts, addresses(reading, in)...)
			if of := share(reading); of != "" && in != textArgument {
				hosts = append(hosts, of)
			}
		}
		for _, f := range hosts {
			a := Atom{HostAtom, f, Host}
			if !strings.Contains(s, f) {
				a = Atom{Kind: HiddenAtom}
			}
			if !slices.Contains(out, a) {
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

func keyIn(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(p string) bool { return len(p) >= 20 && isKey(p) })
}

// narrows matches what a search is narrowed by, in words that those who search know: none
// of them is a scheme, and what stands behind one is no host.
var narrows = text.Pattern(`^-?(?:after|age|archived|assigned|assignee|author|base|before|branch|category|cc|closed|comments|commenter|component|created|draft|due|environment|extension|filename|from|fork|has|head|in|involves|is|issue|label|labels|lang|language|level|linked|mentions|merged|milestone|name|newer|no|older|org|owner|path|platform|priority|project|pushed|release|repo|reporter|review|reviewer|size|sort|space|sprint|stars|state|status|subject|tag|tags|team|timesseen|title|to|topic|type|updated|user|visibility):(?:[<>]=?)?[A-Za-z0-9_-]*(?:/[A-Za-z0-9_-]+){0,4}$`)

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
	whole := strings.TrimLeft(strings.TrimSpace(s), "/")
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(between, r) }) {
		host, behind := strings.TrimLeft(word, "/"), ""
		bare := strings.ToLower(strings.ReplaceAll(strings.TrimRight(host, ".:!?"), "。", "."))
		ip, ok := Address(bare)
		if !ok {
			end := strings.IndexAny(host, "/?#:")
			if strings.HasPrefix(host, "[") {
				end = strings.IndexByte(host, ']') + 1
			}
			if end <= 0 {
				continue
			}
			host, behind = host[:end], host[end:]
			bare = strings.ToLower(strings.TrimRight(strings.ReplaceAll(host, "。", "."), "."))
			if ip, ok = Address(bare); !ok {
				continue
			}
		}
		goesOn := strings.ContainsFunc(behind, unicode.IsLetter)
		dots, hex := strings.Count(bare, "."), strings.Contains(bare, "0x")
		switch {
		case ip.AsSlice()[0] == 0:
			continue
		case ip.Is6(), in == hostArgument && (dots > 0 || hex), dots > 0 && hex, goesOn && (dots > 0 || hex), dots == 3:
		case in == hostArgument: // an integer alone, or with a path behind it
			if !strings.HasPrefix(whole, host+behind) || behind == "" && whole != host {
				continue
			}
		case in == someArgument && (dots > 1 && !dottedDay().MatchString(bare) || hex):
		default:
			continue
		}
		out = append(out, strings.TrimRight(host, ".:!?"))
	}
	return out
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
	fileEnds = ends(`avi bak bat bin bmp bz2 c cfg conf cpp cs css csv db diff doc docx dll eml env exe gif go gql gradle graphql gz h hpp hs htm html
		ico ics ini ipynb iso jar jpeg jpg js json jsonl jsx kt less lock log lua mjs mkv mp3 mp4 odt parquet patch pdf php png ppt pptx proto
		rar rb rst scala scss sql sqlite sum svelte svg swift tar tex text tgz toml ts tsv tsx txt vue wav webm webp xls xlsx xml xz yaml yml`)
	domainEnds = ends(`ai app br cc cl in java md mk ml mm mov pl pm pro ps pub py rs sh so sv tf zip`)
)

func ends(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

// Returned returns where an atom stood whole, in a result of a server to which nobody
// had said it before: to be asked for it again tells that server nothing. Of links and hosts, by
// which it would reach another, it returns none.
func (n *Names) Returned(server string, a Atom) (Fact, bool) {
	if a.Kind != KeyAtom && a.Kind != MailAtom {
		return Fact{}, false
	}
	s := &n.l.store
	for _, i := range n.l.candidates(Query{Value: strictjson.StringOf(a.Text), Type: a.Type}) {
		if f := s.at(i); s.metas[f.meta].server == server && f.flags&echoed == 0 {
			return s.fact(i), true
		}
	}
	return Fact{}, false
}

// Names reports whether an atom says whom or where to turn to, rather than what a
// thing is called.
func (a *Atom) Names() bool {
	return a.Kind == LinkAtom || a.Kind == MailAtom || a.Kind == HostAtom || a.Kind == MentionAtom
}

// Vouches says what stands behind an atom: the user typed it, or a result holds
// it at system or better, where it was chosen as a target is (R28); one that names
// somebody only where the user named its record (R9). That a link was seen (R20) is
// not enough to hand it on: whoever planted it would have the user recommend it. A
// hidden character has nothing behind it.
func (n *Names) Vouches(a Atom, closed func(string) bool) (f Fact, q Quote, ok bool) {
	if a.Kind == HiddenAtom || a.Kind == MarkupAtom || a.Kind == ManyAtoms {
		return f, q, false
	}
	types := []Type{a.Type, Untyped, Phone, IBAN}
	if a.Kind != NumberAtom {
		types = slices.Compact(types[:2])
	}
	for _, t := range types {
		query := Query{Value: strictjson.StringOf(a.Text), Type: t, Authority: true, Target: !a.Names(), Closed: closed, Strict: true}
		if q, why := n.l.Typed(query); why == "" {
			return f, q, true
		}
		for _, f := range n.l.Find(query).Vouched {
			if query.Collection = f.Collection; !a.Names() {
				return f, q, true
			}
			if q, ok := n.Chosen(query); ok {
				return f, q, true
			}
		}
	}
	return f, q, false
}

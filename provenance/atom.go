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
	// Within is the path that a host's form is the end of wherever it stands, "" where it
	// stands otherwise too: a file's name can end as a country does.
	Within string
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
	// "acme/garden#12" is of another place than "#12".
	{MentionAtom, Untyped, "#-", text.Pattern(`(?:[\pL\pN][\pL\pN_.-]*(?:/[\pL\pN_.-]+)*)?#[0-9]+|\bGH-[0-9]+`)},
	{KeyAtom, Untyped, "", text.Pattern(`[\pL\pN_+/=-]{20,}`)},
	{MentionAtom, Untyped, "-. ", text.Pattern(`\b(?:\+?1[-. ]?)?8(?:00|33|44|55|66|77|88)[-. ][\pL\pN][\pL\pN-]{4,}`)},
	{NumberAtom, Untyped, "", text.Pattern(`\+?[\pL]{0,4}[0-9](?:(?:[^\pL\pN,;]{0,3}|[,;])[\pL]?[0-9]){5,}`)},
	{NumberAtom, Untyped, "", text.Pattern(`[\pL\pN]*[0-9][\pL\pN]*`)},
}

// Atoms returns the atoms of a text: of what stands there, and of what is read there
// once marks of Markdown, entities and percent signs are undone. Where they are more
// than can be looked behind, the one it returns has nothing behind it.
func Atoms(s string) []Atom {
	return atomsAs(s, s, undone, func(a Atom) bool { return a.Kind == HostAtom && customary[a.Text] })
}

// atomsAs are the atoms of a text, and of what is read of it, as it is spelt, once that is undone,
// without those that are let go.
func atomsAs(s, spelt string, undone func(string) string, let func(Atom) bool) []Atom {
	plain, hides := plainOf(s)
	out := atomsOf(plain)
	if hides {
		out = append(out, Atom{Kind: HiddenAtom})
	}
	read := plain
	if spelt != s {
		read, _ = plainOf(spelt)
	}
	if read = undone(read); read != plain {
		known := readOf(out, undone, let)
		for _, a := range atomsOf(read) {
			if i := slices.Index(known, a); i >= 0 {
				known = slices.Delete(known, i, i+1) // what stands there once is read there once
			} else if len(out) <= maxAtoms {
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
		out[i].Within = pathOf(&out[i], undone, plain, read)
	}
	return out
}

// readOf is what is read of atoms: it adds nothing to them where they stand so. "ab.example" of
// "a_b.example" has something behind it where that has.
func readOf(atoms []Atom, undone func(string) string, let func(Atom) bool) []Atom {
	known := slices.Clone(atoms)
	for _, a := range atoms {
		if let == nil || !let(a) {
			known = append(known, slices.DeleteFunc(atomsOf(undone(a.Text)), func(b Atom) bool { return b == a })...)
		}
	}
	return known
}

var relative = text.Pattern(`^[\pL\pN._-]+(?:/[\pL\pN._-]+)+$`)

// pathOf is the path whose end is what looks like a host, without the marks around it, where
// that is so of each word that holds it, of a text and of what is read of it.
func pathOf(a *Atom, undone func(string) string, texts ...string) (path string) {
	if a.Kind != HostAtom {
		return ""
	}
	for _, s := range texts {
		for w := range strings.FieldsSeq(s) {
			if !strings.Contains(w, a.Text) {
				continue
			}
			w = strings.TrimPrefix(strings.TrimLeft(strings.TrimRight(w, "\"'`)]*.,;:!?"), "\"'`([*"), "./")
			if path != "" && w != path && w != undone(path) || !strings.HasSuffix(w, "/"+a.Text) || !relative().MatchString(w) {
				return ""
			} else if path == "" {
				path = w
			}
		}
	}
	return path
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
				out = append(out, Atom{Kind: f.kind, Text: strings.TrimRight(atom, ".,;:!?'"), Type: f.t})
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
	case HostAtom:
		return hasDotted(s)
	case KeyAtom:
		return hasLongWord(s)
	case NumberAtom: // some digits
		return count(s, func(r rune) bool { return '0' <= r && r <= '9' }) >= 7
	}
	return strings.ContainsAny(s, marks)
}

// hasDotted reports a dot within a word.
func hasDotted(s string) bool {
	for i := 1; i+1 < len(s); i++ {
		if c := s[i]; (c == '.' || c >= utf8.RuneSelf) && s[i-1] != ' ' && s[i+1] != ' ' && s[i+1] != '\n' {
			return true
		}
	}
	return false
}

func hasLongWord(s string) bool {
	for len(s) >= 20 {
		i := strings.LastIndexAny(s[:20], " \n")
		if i < 0 {
			return true
		}
		s = s[i+1:]
	}
	return false
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
	case LinkAtom: // "**Expected:** …" is a word of a text that is set in bold
		_, to, _ := strings.Cut(found, ":")
		return strings.Trim(to, "*_~`.,;!?") != ""
	}
	return true
}

// fileName reports whether a dotted word is the name of a file and of no host: its end is
// no top-level domain, and nothing makes a link of it. In words a text may name any file.
func fileName(s string) bool {
	s = strings.ToLower(strings.TrimRight(s, ".,;:!?'"))
	return fileEnds[s[strings.LastIndexByte(s, '.')+1:]] && !strings.ContainsAny(s, "/?#:。") && !strings.HasPrefix(s, "www.")
}

// customary are names of files that end as a country does: nobody who plants one chooses what it is called.
// In prose alone: what is asked of a host "README.md" is sent there.
var customary = wordSet("README.md CHANGELOG.md CONTRIBUTING.md LICENSE.md SECURITY.md CODE_OF_CONDUCT.md")

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
	for _, f := range linkForms {
		for i, w := range words {
			if !mayHold(w, f.kind, f.marks) {
				continue
			}
			found := f.form().FindAllStringIndex(w, -1)
			for _, at := range found {
				link := strings.TrimRight(w[at[0]:at[1]], ".,;:!?*_")
				if f.links(link, w[:at[0]]) && len(out) < maxLinks && !slices.Contains(out, link) {
					out = append(out, link)
				}
			}
			if len(found) > 0 {
				words[i] = f.form().ReplaceAllString(w, " ")
			}
		}
	}
	return out
}

// links reports whether what was found behind a text, in its word, is a link, and no part of
// something longer.
func (f *atomForm) links(found, before string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	return (f.kind == LinkAtom && f.t == URL || f.kind == HostAtom) && !isAlnum(last) && !strings.ContainsRune("/@.-_\\", last) && isAtom(f.kind, found)
}

// linkForms are those of links, and of what is looked for before them.
var linkForms = atomForms[:slices.IndexFunc(atomForms, func(f atomForm) bool { return f.kind == PathAtom })]

// maxLinks bounds how many links of one text can be followed.
const maxLinks = 64

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

// Numbering are words that people write before the number of what is written with a # too: who
// typed "issue 31" typed "#31".
var Numbering = append(strings.Fields(Numbered+" issue issues ticket tickets bug pr prs pull request mr number see"), "duplicate of", "dup of", "dupe of")

// Counts returns the number of a mention of one: 31 of "#31" and of "PR#31".
func (a *Atom) Counts() (n string, ok bool) {
	of, n, ok := strings.Cut(a.Text, Numbered)
	return n, ok && a.Kind == MentionAtom && (of == "" || slices.Contains(Numbering, strings.ToLower(of)))
}

// Vouches says what stands behind an atom: the user typed it, or a result holds
// it at system or better, where it was chosen as a target is (R28); one that names
// somebody only where the user named its record (R9). That a link was seen (R20) is
// not enough to hand it on: whoever planted it would have the user recommend it. A
// hidden character has nothing behind it.
func (n *Names) Vouches(a Atom, closed func(string) bool, cleared bool) (f Fact, q Quote, ok bool) {
	if a.Kind == HiddenAtom || a.Kind == MarkupAtom || a.Kind == ManyAtoms {
		return f, q, false
	}
	if number, ok := a.Counts(); ok {
		if q, why := n.l.Typed(Query{Value: strictjson.StringOf(number), Authority: true, Words: Numbering}); why == "" {
			return f, q, true
		}
	}
	if a.Within != "" {
		if q, why := n.l.Typed(Query{Value: strictjson.StringOf(a.Within), Authority: true, Account: true, Strict: true}); why == "" {
			return f, q, true
		}
	}
	types := []Type{a.Type, Untyped, Phone, IBAN}
	if a.Kind != NumberAtom {
		types = slices.Compact(types[:2])
	}
	for _, t := range types {
		query := Query{Value: strictjson.StringOf(a.Text), Type: t, Authority: true, Target: !a.Names(), Account: true, Closed: closed, Strict: true, Cleared: cleared}
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

// Package shell says of a command line whether all it does is read. It is pure: what is
// not certain does not read, and nothing is run or looked up to find out.
//
// A command reads if a parser of bash takes it whole, every program in it stands in
// reads.txt with flags that only read, and nothing around them does more: no
// assignment, no expansion but of $HOME and "$PWD", no substitution, no redirection to
// anything but /dev/null, no function, no loop.
//
// Which shell will run it is not known, and the parser is none of them. So what they or
// it may take for something else does not read: a line that goes on in the next, a text
// given to a program that is not taken as it stands, a dollar sign or a brace that only
// some shells pass on, a variable with anything but a "/" behind it.
//
// That a command reads does not say that it may know what it reads.
package shell

import (
	"bytes"
	_ "embed"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/writ-project/writ/internal/text"
)

// MaxCommand is how long a command may be to be looked at: the parser recurses, and
// none that only reads is longer.
const MaxCommand = 8 << 10

// A Reading is what is known of a command.
type Reading struct {
	// Reads says that nothing is done but reading.
	Reads bool
	// Place says that what it reads decides what else runs: it must begin in a directory
	// whose configuration is trusted.
	Place bool
	// Moved says that it goes to another directory on the way.
	Moved bool
	// Why says in a few words why it does not read; nothing of the command is in it.
	Why string
	// Words are the words of the command, those of nested ones too, as far as they can be
	// known without running it.
	Words []string
}

// Read looks at a command.
func Read(command string) Reading {
	switch {
	case len(command) > MaxCommand:
		return Reading{Why: "it is longer than 8 KiB"}
	case !utf8.ValidString(command) || text.HidesIn(command, text.Unseen, "\n\t"):
		return Reading{Why: "it has characters that nobody sees"}
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(command), "")
	if err != nil {
		return Reading{Why: "it is no command that can be read whole"}
	}
	r := &reader{}
	r.words(file)
	if ranged().MatchString(command) {
		r.no("a redirection of it is a pattern to another shell")
	}
	if strings.Contains(command, "\\\n") {
		r.no("a line of it goes on in the next")
	}
	r.marks(command, file)
	if len(file.Stmts) == 0 {
		r.no("there is no command in it")
	}
	r.stmts(file.Stmts, false)
	if r.Moved && (r.Place || slices.ContainsFunc(r.Words, func(w string) bool { return strings.Contains(w, "$PWD") })) {
		r.no("it goes to another directory first")
	}
	r.Reads = r.Why == ""
	return r.Reading
}

// ranged is a redirection to bash and dash, and a range of numbers in a pattern to zsh.
var ranged = text.Pattern(`<[0-9]*-[0-9]*>`)

type reader struct{ Reading }

// no notes the first reason.
func (r *reader) no(why string) {
	if r.Why == "" {
		r.Why = why
	}
}

// words collects what stands in the command, for who has to know what it names.
func (r *reader) words(file *syntax.File) {
	syntax.Walk(file, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			if l := literal(w); l.known && l.text != "" {
				r.Words = append(r.Words, l.text)
				r.within(l.text)
			}
		}
		return true
	})
}

// mostFlags is how many flags of one letter may stand together: no program has as many.
const mostFlags = 64

// within adds the names that may stand in a word behind a flag, or behind the @ by which some
// programs are given a file of arguments: -ffile, -nffile, --file=file, @file. What is of dots,
// strokes and ~ alone is no file.
func (r *reader) within(word string) {
	add := func(name string) {
		if strings.Trim(name, "./~") != "" {
			r.Words = append(r.Words, name)
		}
	}
	switch word[0] {
	case '@':
		add(word[1:])
	case '-':
		for i := 2; i < len(word) && isWord(word[i-1]); i++ {
			if i > mostFlags {
				r.no("a word of it is of too many flags")
				return
			}
			add(word[i:])
		}
		if _, value, ok := strings.Cut(word, "="); ok {
			add(value)
		}
	}
}

// marks refuses what begins a comment or a shell of its own for some shells only.
func (r *reader) marks(command string, file *syntax.File) {
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Comment:
			// Where a person types, zsh has no comments: what ends a command there is run.
			if at := n.Hash.Offset(); strings.ContainsAny(n.Text, "\\;&|<>$`") || strings.Contains(n.Text, "=(") || at > 0 && !strings.ContainsRune(" \t\n", rune(command[at-1])) {
				r.no("a comment of it may be none")
			}
		case *syntax.Subshell:
			if command[n.Lparen.Offset()+1] == '(' {
				r.no("it has a loop, a condition or a function") // or is a sum
			}
		case *syntax.BinaryCmd:
			if at := n.OpPos.Offset(); at > 0 && command[at-1] >= utf8.RuneSelf && command[at] == '|' {
				r.no("a sign of it may be a part of a letter") // where the locale is no UTF-8
			}
		}
		return true
	})
}

func (r *reader) stmts(all []*syntax.Stmt, inner bool) {
	for _, s := range all {
		r.stmt(s, inner)
	}
}

// stmt judges a statement; inner says that it runs in a shell of its own.
func (r *reader) stmt(s *syntax.Stmt, inner bool) {
	if s.Background || s.Coprocess || s.Disown {
		r.no("something goes on in the background")
	}
	for _, to := range s.Redirs {
		r.redirect(to)
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		r.call(c, inner)
	case *syntax.BinaryCmd:
		r.stmt(c.X, inner)
		r.stmt(c.Y, inner)
	case *syntax.Block:
		r.stmts(c.Stmts, inner)
	case *syntax.Subshell:
		r.stmts(c.Stmts, true)
	case nil:
		r.no("there is a redirection and no program")
	default:
		r.no("it has a loop, a condition or a function")
	}
}

func (r *reader) redirect(to *syntax.Redirect) {
	if to.N != nil && !slices.Contains([]string{"0", "1", "2"}, to.N.Value) {
		r.no("it opens a file of its own")
		return
	}
	target := ""
	if to.Word != nil {
		l := literal(to.Word)
		if !l.known || !l.plain || l.globs {
			r.no("where it reads from or writes to is not plain")
			return
		}
		target = l.text
	}
	switch to.Op {
	case syntax.RdrOut, syntax.AppOut: // &> is a command in the background to dash
		if target != "/dev/null" {
			r.no("it writes to a file")
		}
	case syntax.DplOut:
		if target != "1" && target != "2" {
			r.no("it writes somewhere else")
		}
	case syntax.RdrIn:
		if strings.HasPrefix(target, "/dev/") && target != "/dev/null" {
			r.no("it reads a device")
		}
	case syntax.WordHdoc:
	case syntax.Hdoc:
		r.given(to, target)
	default:
		r.no("it writes to a file")
	}
}

// given judges a text that is given to a program, up to a mark.
func (r *reader) given(to *syntax.Redirect, mark string) {
	if !plainMark().MatchString(mark) || len(to.Word.Parts) > 1 {
		r.no("where a text given to it ends is not plain")
	}
	if _, unquoted := to.Word.Parts[0].(*syntax.Lit); !unquoted || to.Hdoc == nil {
		return // it is taken as it stands
	}
	for _, p := range to.Hdoc.Parts {
		if l, ok := p.(*syntax.Lit); !ok || strings.ContainsAny(l.Value, "\\$`") {
			r.no("a text given to it has an expansion")
		}
	}
}

// plainMark ends a text that is given to a program.
var plainMark = text.Pattern(`^[A-Za-z_][A-Za-z0-9_]{0,31}$`)

// plainName is a program as it is looked for along PATH.
var plainName = text.Pattern(`^[a-z][a-z0-9]{0,31}$`)

func (r *reader) call(c *syntax.CallExpr, inner bool) {
	if len(c.Assigns) > 0 {
		r.no("it sets a variable")
	}
	var argv []string
	var several []bool
	globs, dash := false, false
	for i, w := range c.Args {
		l := literal(w)
		if !l.known || i == 0 && !bare(w) {
			r.no("a word of it is not known before it runs")
			return
		}
		if !l.plain {
			r.no("a word of it is another to another shell")
			return
		}
		if elsewhere().MatchString(l.text) {
			r.no("a path of it may be another machine's")
			return
		}
		globs, dash = globs || l.globs, dash || l.dash
		argv, several = append(argv, l.text), append(several, l.several)
	}
	if len(argv) == 0 || !plainName().MatchString(argv[0]) {
		r.no("it does not call a program by a plain name")
		return
	}
	p, rest := find(argv)
	switch {
	case argv[0] == "cd": // the next command begins where this one ends
		if r.Moved || !inner || len(argv) != 2 || strings.HasPrefix(argv[1], "-") { // where two lead together is not looked at
			r.no("it goes to another directory")
		}
		r.Moved = true
	case p == nil:
		r.no("a program in it is not known to only read, or not with that subcommand")
	case globs && !p.anyName || dash && runs[p.name[0]] != nil:
		r.no("a word of it may stand for a flag")
	case p.counts(rest, several[len(argv)-len(rest):]):
		r.no("a word of it may stand for several")
	case !p.reads(rest):
		r.no("a program in it has a flag or an argument that is not known to only read")
	default:
		r.Place = r.Place || p.place
	}
}

// elsewhere is a path that is another machine's to some systems: //host/share, and behind "=" too.
var elsewhere = text.Pattern(`(?:^|=)(?://|\\\\)[A-Za-z0-9._-]+[/\\]`)

// bare is a word as it is usually written: quotation marks and backslashes have a shell
// pass the person's own alias of that name.
func bare(w *syntax.Word) bool {
	l, ok := w.Parts[0].(*syntax.Lit)
	return len(w.Parts) == 1 && ok && !strings.Contains(l.Value, `\`)
}

// said is what a word says.
type said struct {
	text  string
	known bool // without running it
	plain bool // it says the same to every shell
	globs bool // it may become a word with a "-" in front, or is one in braces
	dash  bool // the same, of braces only where they hold what such a word is made of
	// several says that it may become more than one word, or another one.
	several bool
}

func literal(w *syntax.Word) said {
	s := &spelling{said: said{known: true, plain: true}}
	parts := whole(w.Parts)
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			s.plain = s.plain && !(p.Value == "~" && len(parts) > 1)
			s.unquoted(p.Value, i == 0)
		case *syntax.SglQuoted:
			if i > 0 {
				_, double := parts[i-1].(*syntax.SglQuoted) // for zsh it may be a mark in the quotation
				s.plain = s.plain && !double
			}
			slashes := len(p.Value) - len(strings.TrimRight(p.Value, `\`))
			s.plain = s.plain && slashes%2 == 0 // else fish goes on behind the mark
			s.bare.WriteByte(0)
			s.known = s.known && !p.Dollar
			s.add(p.Value)
		case *syntax.DblQuoted:
			s.quoted(p)
			s.bare.WriteByte(0)
		case *syntax.ParamExp:
			s.expand(p)
			s.plain = s.plain && p.Param != nil && p.Param.Value == "HOME" // of $PWD a repository can name the end: "x -delete"
		default:
			s.known = false
		}
	}
	bare := s.bare.String()
	braces, plain := braced(bare)
	s.dash = s.globs || braces && (strings.ContainsAny(bare, "-*?[\x00") || strings.Contains(bare, ".."))
	s.text, s.globs, s.several, s.plain = s.all.String(), s.globs || braces, s.several || braces, s.plain && plain
	return s.said
}

// spelling is a word that is read piece by piece.
type spelling struct {
	said
	all, bare strings.Builder // bare is what no quotation marks are around, with a NUL for what they are
	expanded  bool            // it ends in a variable
}

func (s *spelling) add(text string) {
	s.plain = s.plain && (!s.expanded || text == "" || text[0] == '/') // zsh reads $HOME[1] and $HOME:h
	s.expanded = s.expanded && text == ""
	s.all.WriteString(text)
}

func (s *spelling) expand(p *syntax.ParamExp) {
	if !known(p) {
		s.known = false
		return
	}
	s.plain, s.expanded = s.plain && s.all.Len() == 0, true // what a path begins with is looked at
	s.all.WriteString("$" + p.Param.Value)
}

// unquoted adds what no quotation marks are around; first says that the word begins with it.
func (s *spelling) unquoted(t string, first bool) {
	const globs = "*?["
	s.plain = s.plain && plainText(t, first)
	s.bare.WriteString(t)
	s.several = s.several || strings.ContainsAny(t, "*?[#^")
	s.globs = s.globs || first && t != "" && strings.ContainsRune(globs, rune(t[0])) ||
		strings.HasPrefix(t, "^") || strings.Contains(t, "#") && strings.ContainsAny(t, globs) || // globs of zsh
		!first && s.all.Len() == 0 && strings.ContainsAny(t, globs)
	s.add(unescaped(t, ""))
}

// quoted adds what double quotation marks are around.
func (s *spelling) quoted(p *syntax.DblQuoted) {
	s.known = s.known && !p.Dollar
	within := whole(p.Parts)
	for n, q := range within {
		switch q := q.(type) {
		case *syntax.Lit:
			s.plain = s.plain && plainDollars(q.Value, n == len(within)-1)
			s.add(unescaped(q.Value, escapable))
		case *syntax.ParamExp:
			s.expand(q)
		default:
			s.known = false
		}
	}
}

// whole puts the pieces together in which the parser has a text.
func whole(parts []syntax.WordPart) (out []syntax.WordPart) {
	for _, p := range parts {
		if l, ok := p.(*syntax.Lit); ok && len(out) > 0 {
			if before, ok := out[len(out)-1].(*syntax.Lit); ok {
				out[len(out)-1] = &syntax.Lit{Value: before.Value + l.Value}
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

// plainText reports whether every shell takes a text without quotation marks for the
// same. first says that a word begins with it.
func plainText(t string, first bool) bool {
	if first && strings.HasPrefix(t, "=") {
		return false // zsh takes it for a program's path
	}
	for i := 0; i < len(t); i++ {
		switch c := t[i]; {
		case c == '$':
			return false // alone for one shell, the begin of a variable for another
		case c == 0x85 || c == 0xA0:
			return false // blanks of a locale, byte by byte
		case c == '\\':
			if i++; endsLetter(t, i-1) || i == len(t) || t[i] < ' ' || t[i] > '~' || isWord(t[i]) {
				return false
			}
		case c == '~':
			home := first && i == 0 && (len(t) == 1 || t[1] == '/') // not somebody else's, or a directory that only zsh knows
			if !home && (i == 0 || !isWord(t[i-1])) {
				return false
			}
		}
	}
	return true
}

// endsLetter reports whether a sign stands behind a byte with which it is one letter to a
// shell whose locale is no UTF-8: of GBK, Big5 and Shift JIS the second byte may be "\".
func endsLetter(t string, i int) bool { return i > 0 && t[i-1] >= utf8.RuneSelf }

func isWord(c byte) bool { return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// plainDollars reports whether every shell passes the dollar signs of a text between
// double quotation marks on, and takes the same ones for such. last says that it reaches to the closing one.
func plainDollars(t string, last bool) bool {
	for i := 0; i < len(t); i++ {
		switch t[i] {
		case '\\':
			if endsLetter(t, i) {
				return false
			}
			i++
		case '$':
			if i+1 < len(t) && !strings.ContainsRune(" |)/", rune(t[i+1])) || i+1 == len(t) && !last {
				return false
			}
		}
	}
	return true
}

// braced reports whether braces without quotation marks around them may make several
// words of one, or another one: zsh may take those of {ab} one by one (BRACE_CCL). They must
// be in pairs: it takes one by itself for the end of a block; and no word of them may begin with "=".
func braced(t string) (several, plain bool) {
	depth, open := 0, 0
	for i := 0; i < len(t); i++ {
		switch t[i] {
		case '\\':
			i++
		case '{':
			depth, open = depth+1, i+1
		case '}':
			if depth--; depth < 0 {
				return false, false
			}
			several = several || i-open > 1 || i-open == 1 && !isWord(t[open])
		}
	}
	if !strings.Contains(t, "{") {
		return false, depth == 0
	}
	return several || strings.Contains(t, ",") || strings.Contains(t, ".."), depth == 0 && !strings.Contains(t, "=")
}

// known are the variables that begin a path and nothing else.
func known(p *syntax.ParamExp) bool {
	if p.Param == nil || p.Param.Value != "HOME" && p.Param.Value != "PWD" {
		return false
	}
	return reflect.DeepEqual(*p, syntax.ParamExp{Dollar: p.Dollar, Rbrace: p.Rbrace, Short: p.Short, Param: p.Param})
}

// Behind a backslash between double quotation marks these alone are not what they are.
const escapable = "$`\"\\\n"

// unescaped is a text without the backslashes that stand before one of some characters, or where
// none are given before any, and without the line ends behind them.
func unescaped(t, only string) string {
	var b strings.Builder
	for i := 0; i < len(t); i++ {
		if t[i] == '\\' && i+1 < len(t) && (only == "" || strings.IndexByte(only, t[i+1]) >= 0) {
			if i++; t[i] == '\n' {
				continue
			}
		}
		b.WriteByte(t[i])
	}
	return b.String()
}

//go:embed reads.txt
var list []byte

// program is one line of the list.
type program struct {
	name    []string        // with its subcommand
	flags   map[string]flag // with their hyphens
	anyFlag bool
	anyName bool // no flag that a pattern stands for does anything but read
	numbers bool // -5 is a flag
	most    int  // operands, -1 for any number
	first   func() *regexp.Regexp
	place   bool
	words   bool // flags are whole words, in any place, as of find
}

// flag says what comes behind a flag.
type flag int

const (
	alone     flag = iota
	takes          // a value, in the same word or the next
	mayTake        // a value in the same word
	takesNext      // a value in the next word, and stands by itself
)

var programs = sync.OnceValue(func() []*program { return parseList(list) })

// parseList reads the list. It is part of the program, so a fault in it ends it at once.
func parseList(b []byte) (all []*program) {
	for n, line := range bytes.Split(b, []byte("\n")) {
		row := string(bytes.TrimSpace(line))
		if row == "" || row[0] == '#' {
			continue
		}
		fields := strings.Split(row, " | ")
		if len(fields) < 2 {
			panic("shell: line " + strconv.Itoa(n+1) + " of the list has no column of operands")
		}
		p := &program{name: strings.Fields(fields[0]), flags: map[string]flag{}, most: -1}
		for _, o := range strings.Fields(fields[1]) {
			if !p.takes(o) {
				panic("shell: line " + strconv.Itoa(n+1) + " of the list has an unknown word: " + o)
			}
		}
		for _, f := range strings.Fields(strings.Join(fields[2:], " ")) {
			p.knows(f)
		}
		all = append(all, p)
	}
	return all
}

// takes reads a word of the column of operands.
func (p *program) takes(o string) (ok bool) {
	switch m, err := strconv.Atoi(o); {
	case err == nil:
		p.most = m
	case o == "*":
	case o == "place":
		p.place = true
	case o == "words":
		p.words = true
	case o == "names":
		p.anyName = true
	case strings.HasPrefix(o, "/"):
		p.first = text.Pattern("^(?:" + strings.Trim(o, "/") + ")$")
	default:
		return false
	}
	return true
}

// knows reads a word of the columns of flags.
func (p *program) knows(f string) {
	switch name := strings.TrimRight(f, "=?+"); {
	case f == "-*":
		p.anyFlag, p.anyName = true, true
	case f == "-#":
		p.numbers = true
	case strings.HasSuffix(f, "="):
		p.flags[name] = takes
	case strings.HasSuffix(f, "?"):
		p.flags[name] = mayTake
	case strings.HasSuffix(f, "+"):
		p.flags[name] = takesNext
	case !p.words && len(f) > 2 && f[1] != '-': // several of one letter
		for _, c := range f[1:] {
			p.flags["-"+string(c)] = alone
		}
	default:
		p.flags[f] = alone
	}
}

// find is the line of a command, the one with the most words, and what stands behind.
func find(argv []string) (found *program, rest []string) {
	for _, p := range programs() {
		if len(argv) >= len(p.name) && slices.Equal(argv[:len(p.name)], p.name) && (found == nil || len(p.name) > len(found.name)) {
			found, rest = p, argv[len(p.name):]
		}
	}
	return found, rest
}

// counts reports whether a word that may stand for several is one whose number or place
// says what the program does with it.
func (p *program) counts(args []string, several []bool) bool {
	if !slices.Contains(several, true) {
		return false
	}
	first := slices.IndexFunc(args, func(a string) bool { return len(a) < 2 || a[0] != '-' })
	return p.most >= 0 || p.first != nil && first >= 0 && several[first]
}

// reads reports whether the program only reads with these arguments. The value of a flag
// that stands in a word of its own is none that could be a flag, should the program not
// take it for the value.
func (p *program) reads(args []string) bool {
	if !p.anyFlag && slices.ContainsFunc(args, func(a string) bool {
		return strings.Contains(a, "--output") && !strings.HasPrefix(a, "--output-delimiter")
	}) {
		return false // wherever it stands: some program may take it for the flag of many
	}
	if said := runs[p.name[0]]; said != nil && said().MatchString(" "+strings.Join(args, " ")) {
		return false
	}
	operands, ended := 0, false // behind "--" there are no flags
	for i := 0; i < len(args); i++ {
		value := func() bool {
			i++
			return i < len(args) && (p.words || len(args[i]) < 2 || args[i][0] != '-' || p.numbers && strings.Trim(args[i][1:], "0123456789") == "")
		}
		switch a := args[i]; {
		case ended || !p.isFlag(a):
			if operands++; operands == 1 && p.first != nil && !p.first().MatchString(a) || p.most >= 0 && operands > p.most {
				return false
			}
		case a == "--" && !p.words:
			ended = true
		case !p.flag(a, value):
			return false
		}
	}
	return true
}

// isFlag reports whether a word is no operand.
func (p *program) isFlag(a string) bool {
	if p.words {
		return strings.HasPrefix(a, "-") || slices.Contains([]string{"!", "(", ")", ","}, a)
	}
	return len(a) > 1 && a[0] == '-'
}

// flag reports whether a flag only reads; value takes the next word for what it is given.
func (p *program) flag(a string, value func() bool) bool {
	name, _, has := strings.Cut(a, "=")
	kind, known := p.flags[name]
	switch {
	case p.words:
		kind, known = p.flags[a]
		return known && (kind != takes || value())
	case p.anyFlag, p.numbers && strings.Trim(a[1:], "0123456789") == "":
		return true
	case !strings.HasPrefix(a, "--"):
		return p.letters(a, value)
	case has:
		return known && (kind == takes || kind == mayTake)
	}
	return known && (kind == alone || kind == mayTake || value())
}

// runs are the arguments by which a program that is known to read has another one run,
// wherever they stand: what git takes from a signature is gpg's to say; ugrep and ripgrep,
// which some call grep, filter and page; bat, which some call cat, keeps a configuration; and a
// program of binutils takes arguments out of a file that stands behind an @.
var runs = map[string]func() *regexp.Regexp{
	"git":  text.Pattern(`%[-+ ]?G|%\(\*?signature| --sort[= ]\S*signature`),
	"grep": ugrep, "egrep": ugrep, "fgrep": ugrep,
	"cat":     text.Pattern(` cache( |$)`),
	"strings": text.Pattern(` @`),
}

var ugrep = text.Pattern(` --(filter|pre|hostname-bin|pager|view|config|save-config)| ---| -[0-9A-Za-z]*Q`)

// letters reports whether a word of one-letter flags only reads.
func (p *program) letters(a string, value func() bool) bool {
	for k := 1; k < len(a); k++ {
		switch kind, ok := p.flags["-"+a[k:k+1]]; {
		case !ok:
			return false
		case kind == alone:
		case kind == takesNext:
			return len(a) == 2 && value()
		default: // the rest is its value
			return k+1 < len(a) || kind == mayTake || value()
		}
	}
	return true
}

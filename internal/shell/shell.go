// Package shell says of a command line whether all it does is read. It is pure: what is
// not certain does not read, and nothing is run or looked up to find out.
//
// A command reads if a parser of bash takes it whole, every program in it stands in
// reads.txt with flags that only read, and nothing around them does more: no
// assignment, no expansion but of $HOME and $PWD, no substitution, no redirection to
// anything but /dev/null, no function, no loop. Where bash and zsh disagree about a
// word it does not read.
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
	r := &reader{}
	switch {
	case len(command) > MaxCommand:
		r.no("it is longer than 8 KiB")
		return r.Reading
	case !utf8.ValidString(command) || text.HidesIn(command, text.Unseen, "\n\t"):
		r.no("it has characters that nobody sees")
		return r.Reading
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		r.no("it is no command that can be read whole")
		return r.Reading
	}
	r.words(file)
	if len(file.Stmts) == 0 {
		r.no("there is no command in it")
	}
	r.stmts(file.Stmts, false)
	if r.Moved && r.Place {
		r.no("it goes to another directory first")
	}
	r.Reads = r.Why == ""
	return r.Reading
}

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
			if text, _, ok := literal(w); ok && text != "" {
				r.Words = append(r.Words, text)
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
	if to.N != nil && to.N.Value != "1" && to.N.Value != "2" && to.N.Value != "0" {
		r.no("it opens a file of its own")
		return
	}
	target := ""
	if to.Word != nil {
		t, globs, ok := literal(to.Word)
		if !ok || globs {
			r.no("where it reads from or writes to is not plain")
			return
		}
		target = t
	}
	switch to.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll:
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
	case syntax.Hdoc, syntax.DashHdoc:
		if to.Hdoc != nil {
			for _, p := range to.Hdoc.Parts {
				if _, ok := p.(*syntax.Lit); !ok {
					r.no("a text given to it has an expansion")
				}
			}
		}
	default:
		r.no("it writes to a file")
	}
}

// plainName is a program as it is looked for along PATH.
var plainName = regexp.MustCompile(`^[a-z][a-z0-9]{0,31}$`)

func (r *reader) call(c *syntax.CallExpr, inner bool) {
	if len(c.Assigns) > 0 {
		r.no("it sets a variable")
	}
	var argv []string
	globs := false
	for i, w := range c.Args {
		text, g, ok := literal(w)
		if !ok || i == 0 && !bare(w) {
			r.no("a word of it is not known before it runs")
			return
		}
		globs = globs || g
		argv = append(argv, text)
	}
	if len(argv) == 0 || !plainName.MatchString(argv[0]) {
		r.no("it does not call a program by a plain name")
		return
	}
	if argv[0] == "cd" {
		// The next command begins where this one ends.
		if r.Moved = true; !inner || len(argv) != 2 || strings.HasPrefix(argv[1], "-") {
			r.no("it goes to another directory")
		}
		return
	}
	p, rest := find(argv)
	switch {
	case p == nil:
		r.no("a program in it is not known to only read, or not with that subcommand")
	case globs && !p.anyFlag:
		r.no("a word of it may stand for a flag")
	case !p.reads(rest):
		r.no("a program in it has a flag or an argument that is not known to only read")
	default:
		r.Place = r.Place || p.place
	}
}

// bare is a word as it is usually written: quotation marks and backslashes have a shell
// pass the person's own alias of that name.
func bare(w *syntax.Word) bool {
	l, ok := w.Parts[0].(*syntax.Lit)
	return len(w.Parts) == 1 && ok && !strings.Contains(l.Value, `\`)
}

// literal is what a word says. ok is false where only running it would tell; globs says
// that it may become a word with a "-" in front.
func literal(w *syntax.Word) (text string, globs, ok bool) {
	var b, bare strings.Builder // bare is what no quotation marks are around
	defer func() {
		if t := bare.String(); strings.Contains(t, "{") && (strings.Contains(t, ",") || strings.Contains(t, "..")) {
			globs = true
		}
	}()
	for i, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			t := p.Value
			bare.WriteString(t)
			if i == 0 && strings.HasPrefix(t, "=") {
				return "", false, false // zsh takes it for a program's path
			}
			if i == 0 && t != "" && strings.ContainsRune("*?[", rune(t[0])) {
				globs = true
			}
			if strings.HasPrefix(t, "^") || strings.Contains(t, "#") && strings.ContainsAny(t, "*?[") {
				globs = true // globs of zsh
			}
			if b.Len() == 0 && i > 0 && strings.ContainsAny(t, "*?[") {
				globs = true
			}
			b.WriteString(unescaped(t))
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false, false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", false, false
			}
			for _, q := range p.Parts {
				switch q := q.(type) {
				case *syntax.Lit:
					b.WriteString(dequoted(q.Value))
				case *syntax.ParamExp:
					if !known(q) {
						return "", false, false
					}
					b.WriteString("$" + q.Param.Value)
				default:
					return "", false, false
				}
			}
		case *syntax.ParamExp:
			if !known(p) {
				return "", false, false
			}
			b.WriteString("$" + p.Param.Value)
		default:
			return "", false, false
		}
	}
	return b.String(), globs, true
}

// known are the variables that begin a path and nothing else.
func known(p *syntax.ParamExp) bool {
	if p.Param == nil || p.Param.Value != "HOME" && p.Param.Value != "PWD" {
		return false
	}
	return reflect.DeepEqual(*p, syntax.ParamExp{Dollar: p.Dollar, Rbrace: p.Rbrace, Short: p.Short, Param: p.Param})
}

// unescaped is an unquoted text without its backslashes.
func unescaped(t string) string {
	var b strings.Builder
	for i := 0; i < len(t); i++ {
		if t[i] == '\\' && i+1 < len(t) {
			if i++; t[i] == '\n' {
				continue
			}
		}
		b.WriteByte(t[i])
	}
	return b.String()
}

// dequoted is a text between double quotation marks without its backslashes.
func dequoted(t string) string {
	var b strings.Builder
	for i := 0; i < len(t); i++ {
		if t[i] == '\\' && i+1 < len(t) && strings.IndexByte("$`\"\\\n", t[i+1]) >= 0 {
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
	numbers bool // -5 is a flag
	most    int  // operands, -1 for any number
	first   *regexp.Regexp
	place   bool
	words   bool // flags are whole words, in any place, as of find
}

// flag says what comes behind a flag.
type flag int

const (
	alone   flag = iota
	takes        // a value, in the same word or the next
	mayTake      // a value in the same word
)

var programs = parseList(list)

// parseList reads the list. It is part of the program, so a fault in it ends it at once.
func parseList(b []byte) (all []*program) {
	for n, line := range bytes.Split(b, []byte("\n")) {
		text := string(bytes.TrimSpace(line))
		if text == "" || text[0] == '#' {
			continue
		}
		fields := strings.Split(text, " | ")
		if len(fields) < 2 {
			panic("shell: line " + strconv.Itoa(n+1) + " of the list has no column of operands")
		}
		p := &program{name: strings.Fields(fields[0]), flags: map[string]flag{}, most: -1}
		for _, o := range strings.Fields(fields[1]) {
			switch m, err := strconv.Atoi(o); {
			case err == nil:
				p.most = m
			case o == "*":
			case o == "place":
				p.place = true
			case o == "words":
				p.words = true
			case strings.HasPrefix(o, "/"):
				p.first = regexp.MustCompile("^(?:" + strings.Trim(o, "/") + ")$")
			default:
				panic("shell: line " + strconv.Itoa(n+1) + " of the list has an unknown word: " + o)
			}
		}
		for _, f := range strings.Fields(strings.Join(fields[2:], " ")) {
			switch name := strings.TrimRight(f, "=?"); {
			case f == "-*":
				p.anyFlag = true
			case f == "-#":
				p.numbers = true
			case strings.HasSuffix(f, "="):
				p.flags[name] = takes
			case strings.HasSuffix(f, "?"):
				p.flags[name] = mayTake
			case !p.words && len(f) > 2 && f[1] != '-': // several of one letter
				for _, c := range f[1:] {
					p.flags["-"+string(c)] = alone
				}
			default:
				p.flags[f] = alone
			}
		}
		all = append(all, p)
	}
	return all
}

// find is the line of a command, the one with the most words, and what stands behind.
func find(argv []string) (found *program, rest []string) {
	for _, p := range programs {
		if len(argv) >= len(p.name) && slices.Equal(argv[:len(p.name)], p.name) && (found == nil || len(p.name) > len(found.name)) {
			found, rest = p, argv[len(p.name):]
		}
	}
	return found, rest
}

// reads reports whether the program only reads with these arguments.
func (p *program) reads(args []string) bool {
	operands := 0
	operand := func(a string) bool {
		operands++
		return (operands > 1 || p.first == nil || p.first.MatchString(a)) && (p.most < 0 || operands <= p.most)
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case p.words:
			if strings.HasPrefix(a, "-") || a == "!" || a == "(" || a == ")" || a == "," {
				kind, ok := p.flags[a]
				if !ok {
					return false
				}
				if kind == takes {
					if i++; i == len(args) {
						return false
					}
				}
				continue
			}
			if !operand(a) {
				return false
			}
		case a == "--":
			for _, a := range args[i+1:] {
				if !operand(a) {
					return false
				}
			}
			return true
		case len(a) < 2 || a[0] != '-':
			if !operand(a) {
				return false
			}
		case p.anyFlag:
		case p.numbers && strings.Trim(a[1:], "0123456789") == "":
		case strings.HasPrefix(a, "--"):
			name, _, has := strings.Cut(a, "=")
			kind, ok := p.flags[name]
			if !ok || has && kind == alone {
				return false
			}
			if kind == takes && !has {
				if i++; i == len(args) {
					return false
				}
			}
		default: // one-letter flags together
			for k := 1; k < len(a); k++ {
				kind, ok := p.flags["-"+string(a[k])]
				if !ok {
					return false
				}
				if kind == mayTake {
					break
				}
				if kind == takes {
					if k+1 == len(a) {
						if i++; i == len(args) {
							return false
						}
					}
					break
				}
			}
		}
	}
	return true
}

// Package statement says of a text in SQL whether it is one query and only reads, and takes apart one
// that only adds to a database. It is pure: what is not certain does neither, and no database is asked.
//
// A statement reads if a small grammar takes it whole: SELECT, with its joins, sub-queries
// and common table expressions, over names and functions of words.txt. There is no
// comment in it, no second statement, no text in another quoting than two apostrophes and
// without a backslash, no parameter, no lock, and nothing that one of the databases would
// read otherwise than the grammar does. It takes less than any database does, and what it
// takes it may take for more than that database would: the database refuses it then.
//
// That a statement reads does not say that it may know what it reads. What a view, a rule
// or a computed column runs was put there by who made the database.
package statement

import (
	_ "embed"
	"maps"
	"strings"
	"unicode/utf8"
)

// A Dialect is whose SQL a statement is in.
type Dialect string

// The databases whose statements can be read.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// MaxStatement is how long a statement may be to be looked at, and maxDepth how deep what
// it nests.
const (
	MaxStatement = 8 << 10
	maxDepth     = 40
)

// maxName is how much of a name PostgreSQL looks at, in bytes: two that differ behind it
// are one there.
const maxName = 63

// Reads reports whether all that the statement does is read.
func Reads(d Dialect, sql string) bool {
	if d != SQLite && d != Postgres || len(sql) > MaxStatement || d == SQLite && commands(sql) {
		return false
	}
	tokens, ok := scan(d, sql)
	if !ok {
		return false
	}
	p := &parser{dialect: d, tokens: tokens}
	p.explain()
	p.query()
	p.take(";")
	return !p.failed && p.peek(0).kind == end && (d != Postgres || !p.applied())
}

// commands reports whether a line is one by which the program sqlite3, where a server gives it
// what it runs, does something else: a command of its own, or the end of the statement before.
func commands(sql string) bool {
	for line := range strings.Lines(sql) {
		if line = strings.TrimSpace(line); line != "" && (line[0] == '.' || line[0] == '/' || strings.EqualFold(line, "go")) {
			return true
		}
	}
	return false
}

type kind uint8

const (
	end    kind = iota
	word        // in lower case
	quoted      // a name between quotation marks
	text        // between apostrophes
	number
	sign
)

type token struct {
	kind kind
	text string // without its marks, of what is quoted
	raw  string // of words, as they are written
}

// scan takes a statement apart. It is not ok where two databases, or two settings of one,
// could disagree about where a piece ends, nor where a sign is not the dialect's own: what
// is a sign of one can begin a name of another ([a], @a and #a in SQLite).
func scan(d Dialect, s string) (out []token, ok bool) {
	if !utf8.ValidString(s) {
		return nil, false
	}
	for s != "" {
		tokens, n := piece(d, s)
		if n == 0 {
			return nil, false
		}
		out, s = append(out, tokens...), s[n:]
	}
	return append(out, token{}), true
}

// piece is what a text begins with, and how long that is: 0 where it is not certain.
func piece(d Dialect, s string) (out []token, n int) {
	switch c := s[0]; {
	case strings.IndexByte(" \t\n\r", c) >= 0:
		return nil, 1
	case c == '\'':
		if n = closing(s); n > 0 {
			return []token{{kind: text, text: s[1 : n-1]}}, n
		}
	case c == '"':
		if n = closing(s); n > 0 && (d != Postgres || n-2 <= maxName) {
			return []token{{kind: quoted, text: s[1 : n-1]}}, n
		}
	case letter(c):
		n = run(s, func(c byte) bool { return letter(c) || digit(c) })
		if !next(s, n, `'"$`) && (d != Postgres || n <= maxName) { // no E'…', U&"…" and their like, nor a name with a $
			return []token{{word, strings.ToLower(s[:n]), s[:n]}}, n
		}
	case digit(c):
		n = numeral(s)
		if (n == len(s) || !letter(s[n]) && !digit(s[n])) && !next(s, n, `.'"$`) {
			return []token{{kind: number, text: s[:n]}}, n
		}
	case strings.IndexByte("(),;", c) >= 0, d == Postgres && (c == '[' || c == ']'),
		c == '.' && (len(s) == 1 || !digit(s[1])): // .5, or a field of a name that ends in a digit
		return []token{{kind: sign, text: s[:1]}}, 1
	case d == Postgres && strings.HasPrefix(s, "::"): // one by itself is a parameter
		return []token{{kind: sign, text: "::"}}, 2
	}
	return operator(d, s)
}

// closing is how long a text between quotation marks is with both of them, 0 where that is not
// certain; twice the mark is one within. What else a text can hold is not certain: a backslash escapes under a
// setting of PostgreSQL.
func closing(s string) int {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == s[0] && i+1 < len(s) && s[i+1] == s[0]:
			i++
		case c == s[0]:
			return i + 1
		case c == '\\' || c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f:
			return 0
		}
	}
	return 0
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }

func digit(c byte) bool { return '0' <= c && c <= '9' }

func next(s string, i int, of string) bool { return i < len(s) && strings.IndexByte(of, s[i]) >= 0 }

func run(s string, is func(byte) bool) (n int) {
	for n < len(s) && is(s[n]) {
		n++
	}
	return n
}

// numeral is how long a number is: 12, 1.5, 1e3.
func numeral(s string) int {
	n := run(s, digit)
	if n+1 < len(s) && s[n] == '.' && digit(s[n+1]) {
		n += 1 + run(s[n+1:], digit)
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		signed := n + 1
		if next(s, signed, "+-") {
			signed++
		}
		if more := run(s[min(signed, len(s)):], digit); more > 0 {
			n = signed + more
		}
	}
	return n
}

const operating = `+-*/<>=~!@#%^&|?` + "`"

// operators are those whose meaning is the databases' own, as PostgreSQL reads a run of
// such characters: whole, but for a sign at its end.
var operators = map[Dialect]map[string]bool{
	SQLite:   set("+ - * / % < > <= >= = == <> != || ~ -> ->>"),
	Postgres: set("+ - * / % < > <= >= = == <> != || ~ ~* !~ !~* -> ->> #> #>> @> <@"),
}

// operator is what the run of such characters says that a text begins with, and how long it is.
func operator(d Dialect, s string) (out []token, n int) {
	n = run(s, func(c byte) bool { return strings.IndexByte(operating, c) >= 0 })
	operators, s := operators[d], s[:n]
	switch {
	case strings.Contains(s, "--") || strings.Contains(s, "/*"): // a comment
	case operators[s]:
		return []token{{kind: sign, text: s}}, n
	case n > 1 && strings.HasSuffix(s, "-") && operators[s[:n-1]] && !strings.ContainsAny(s, "~!@#%^&|?`"):
		return []token{{kind: sign, text: s[:n-1]}, {kind: sign, text: "-"}}, n
	}
	return nil, 0
}

//go:embed words.txt
var table string

// lists are those of words.txt, by their names.
var lists = func() map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for line := range strings.Lines(table) {
		name, words, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if out[name] == nil {
			out[name] = map[string]bool{}
		}
		maps.Copy(out[name], set(words))
	}
	return out
}()

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

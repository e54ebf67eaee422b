package statement

import (
	"regexp"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
)

// The most of a statement that is taken apart.
const (
	maxRows    = 20
	maxColumns = 40
)

// Adds takes one statement apart that adds to a database and changes nothing there, by a grammar that has
// no expression:
//
//	INSERT INTO t (c, …) VALUES (literal, …), …
//	CREATE TABLE [IF NOT EXISTS] t (c [type] [PRIMARY KEY [AUTOINCREMENT]] [NOT NULL] [UNIQUE] [DEFAULT literal], …)
//	ALTER TABLE t ADD [COLUMN] c [type] [DEFAULT literal]
//
// Its parts are {"adds":"row","table":"t","columns":["c"],"values":[["a"]]}, of a table or a column that it
// adds with the defaults as values: each a text, a number too, or null. Nothing else of it is of the
// caller's making. Names are bare words of
// ASCII, as they are written, none of the language or of the database's own, and no column is called as its
// table is, by which a virtual table is told commands. A text is on one line. What a trigger or a rule does
// besides was put there by who made the database.
func Adds(d Dialect, sql string) (parts strictjson.Value, ok bool) {
	if d != SQLite && d != Postgres || len(sql) > MaxStatement || d == SQLite && commands(sql) {
		return parts, false
	}
	tokens, ok := scan(d, sql)
	if !ok {
		return parts, false
	}
	a := addition{parser: parser{dialect: d, tokens: tokens}}
	a.statement()
	a.take(";")
	slices.Sort(a.names)
	if a.failed || a.peek(0).kind != end || len(slices.Compact(a.names)) != len(a.columns)+1 || len(a.columns) > maxColumns || len(a.values) > maxRows {
		return parts, false
	}
	return a.parts(), true
}

// addition is one on its way apart.
type addition struct {
	parser
	adds, table string
	columns     []string
	names       []string // of both, in small letters
	values      [][]byte // arrays of JSON
}

func (a *addition) parts() strictjson.Value {
	quoted := func(names []string) (out [][]byte) {
		for _, n := range names {
			out = append(out, strictjson.Quote(n))
		}
		return out
	}
	parts := []strictjson.Member{
		{Name: "adds", Value: strictjson.Quote(a.adds)},
		{Name: "table", Value: strictjson.Quote(a.table)},
		{Name: "columns", Value: array(quoted(a.columns))},
	}
	if len(a.values) > 0 {
		parts = append(parts, strictjson.Member{Name: "values", Value: array(a.values)})
	}
	return strictjson.Make(parts...)
}

func array(of [][]byte) []byte {
	out := []byte{'['}
	for i, v := range of {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}

func (a *addition) statement() {
	switch {
	case a.take("insert"):
		a.adds = "row"
		a.need("into")
		a.table = a.bare()
		a.within(func() { a.list(func() { a.columns = append(a.columns, a.bare()) }) })
		a.need("values")
		a.list(func() { a.row() })
	case a.take("create"):
		a.adds = "table"
		a.need("table")
		if a.take("if") {
			a.need("not", "exists")
		}
		a.table = a.bare()
		a.described()
	default:
		a.adds = "column"
		a.need("alter", "table")
		a.table = a.bare()
		a.need("add")
		a.take("column")
		a.columns = []string{a.bare()}
		a.kindOf()
		if a.take("default") {
			a.values = [][]byte{array([][]byte{a.literal()})}
		}
	}
}

func (a *addition) row() {
	var row [][]byte
	a.within(func() { a.list(func() { row = append(row, a.literal()) }) })
	if len(row) != len(a.columns) {
		a.fail()
	}
	a.values = append(a.values, array(row))
}

// described are the columns of a new table.
func (a *addition) described() {
	var defaults [][]byte
	keys := 0
	a.within(func() {
		a.list(func() {
			a.columns = append(a.columns, a.bare())
			key, given := a.constraints(a.kindOf() == "integer")
			if key {
				keys++
			}
			if given != nil {
				defaults = append(defaults, given)
			}
		})
	})
	if keys > 1 {
		a.fail()
	}
	if len(defaults) > 0 {
		a.values = [][]byte{array(defaults)}
	}
}

// constraints are what is said of a column behind its type, each once: whether it is the key, and its default.
func (a *addition) constraints(integer bool) (key bool, given []byte) {
	var is, unique bool
	for !a.failed {
		switch {
		case !key && a.take("primary"):
			a.need("key")
			if key = true; integer && a.dialect == SQLite {
				a.take("autoincrement")
			}
		case !is && a.take("not"):
			a.need("null")
			is = true
		case !unique && a.take("unique"):
			unique = true
		case given == nil && a.take("default"):
			given = a.literal()
		default:
			return key, given
		}
	}
	return key, given
}

// kindOf is the type of a column, in a word with its length, where there is one.
func (a *addition) kindOf() string {
	t := a.peek(0)
	if t.kind != word || !lists["columns"][t.text] {
		return ""
	}
	if a.at++; a.take("(") {
		a.list(func() {
			if t := a.peek(0); t.kind != number || !length.MatchString(t.text) {
				a.fail()
			} else {
				a.at++
			}
		})
		a.need(")")
	}
	return t.text
}

var (
	length = regexp.MustCompile(`^[0-9]{1,4}$`)
	// figure is a number that is read and kept exactly: in decimal, with no more than 15 digits.
	figure = regexp.MustCompile(`^(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,9})?$`)
)

// bare is the name of a table or a column, as it is written.
func (a *addition) bare() string {
	t := a.peek(0)
	if t.kind != word || len(t.text) > maxName || lists["keywords"][t.text] || lists["kept"][t.text] || owned.MatchString(t.text) {
		a.fail()
		return ""
	}
	a.at++
	a.names = append(a.names, t.text)
	return t.raw
}

// literal is a value, as JSON.
func (a *addition) literal() []byte {
	minus := a.take("-")
	t := a.peek(0)
	switch {
	case t.kind == number && figure.MatchString(t.text) && len(t.text) <= 16:
		a.at++
		if minus {
			t.text = "-" + t.text
		}
		return strictjson.Quote(t.text)
	case minus:
	case a.take("null"):
		return []byte("null")
	case t.kind == text && t.text != "" && !strings.ContainsFunc(t.text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		a.at++
		return strictjson.Quote(strings.ReplaceAll(t.text, "''", "'"))
	}
	a.fail()
	return nil
}

package statement

import (
	"regexp"
	"slices"
	"strings"
)

// A parser goes through a statement once. Where something else stands than the grammar
// has there it failed, and nothing is taken from then on.
type parser struct {
	dialect   Dialect
	tokens    []token // the last of them is the end
	at        int
	depth     int
	failed    bool
	fields    [][2]string // a name and the one behind its dot
	functions []function
}

// A function stands in FROM. Of what it is called a field is a call in PostgreSQL
// (f.pg_sleep is pg_sleep(f)), unless it is one of the columns that are named there.
type function struct {
	called  []string // in lower case
	columns []string
}

// applied reports whether a field of a function in FROM can be the call of another.
func (p *parser) applied() bool {
	for _, field := range p.fields {
		for _, f := range p.functions {
			if slices.Contains(f.called, field[0]) && !slices.Contains(f.columns, field[1]) {
				return true
			}
		}
	}
	return false
}

func (p *parser) fail() { p.failed, p.at = true, len(p.tokens)-1 }

func (p *parser) peek(ahead int) token { return p.tokens[min(p.at+ahead, len(p.tokens)-1)] }

// is reports whether a word or a sign stands ahead.
func (p *parser) is(ahead int, any ...string) bool {
	t := p.peek(ahead)
	return (t.kind == word || t.kind == sign) && slices.Contains(any, t.text)
}

func (p *parser) take(any ...string) bool {
	if !p.is(0, any...) {
		return false
	}
	p.at++
	return true
}

func (p *parser) need(all ...string) {
	for _, s := range all {
		if !p.take(s) {
			p.fail()
			return
		}
	}
}

// nested goes a level down, unless that is too deep.
func (p *parser) nested(f func()) {
	if p.depth++; p.depth > maxDepth {
		p.fail()
	}
	if !p.failed {
		f()
	}
	p.depth--
}

// list is one or more, with commas between them.
func (p *parser) list(f func()) {
	f()
	for p.take(",") {
		f()
	}
}

// within is what stands in parentheses.
func (p *parser) within(f func()) {
	p.need("(")
	p.nested(f)
	p.need(")")
}

// explain is what may stand before a query to be told how it would be run.
func (p *parser) explain() {
	if !p.take("explain") {
		return
	}
	if p.dialect == SQLite {
		if p.take("query") {
			p.need("plan")
		}
		return
	}
	if p.is(0, "(") && !p.is(1, "select", "with", "values", "(") {
		p.within(func() {
			p.list(func() {
				if p.take("format") {
					p.some("text", "json", "xml", "yaml")
					return
				}
				p.some("analyze", "verbose", "costs", "buffers", "timing", "summary", "settings", "wal")
				p.take("true", "false", "on", "off")
			})
		})
		return
	}
	p.take("analyze")
	p.take("verbose")
}

func (p *parser) some(any ...string) {
	if !p.take(any...) {
		p.fail()
	}
}

func (p *parser) query() { p.nested(p.selection) }

func (p *parser) selection() {
	if p.take("with") {
		p.list(func() {
			p.name()
			if p.is(0, "(") {
				p.within(p.names)
			}
			p.need("as")
			if p.take("not") {
				p.need("materialized")
			} else {
				p.take("materialized")
			}
			p.within(p.query)
		})
	}
	p.operand()
	for p.take("union", "intersect", "except") {
		p.take("all", "distinct")
		p.operand()
	}
	p.order()
	for p.take("limit", "offset") {
		p.list(p.expression) // SQLite has LIMIT offset, count
		p.take("row", "rows")
	}
}

func (p *parser) operand() {
	switch {
	case p.is(0, "("):
		p.within(p.query)
	case p.take("values"):
		p.list(func() { p.within(p.expressions) })
	default:
		p.need("select")
		if !p.take("all") && p.take("distinct") && p.take("on") {
			p.within(p.expressions)
		}
		p.list(p.item)
		if p.take("from") {
			p.list(p.joined)
		}
		if p.take("where") {
			p.expression()
		}
		if p.take("group") {
			p.need("by")
			p.expressions()
		}
		if p.take("having") {
			p.expression()
		}
	}
}

// order is by what the rows are sorted, if anything.
func (p *parser) order() {
	if !p.take("order") {
		return
	}
	p.need("by")
	p.list(func() {
		p.expression()
		p.take("asc", "desc")
		if p.take("nulls") {
			p.some("first", "last")
		}
	})
}

func (p *parser) item() {
	if p.take("*") {
		return
	}
	for ahead := 0; ; ahead += 2 { // t.*, s.t.*
		if t := p.peek(ahead); !p.named(t) || !p.is(ahead+1, ".") {
			break
		}
		if p.is(ahead+2, "*") {
			p.at += ahead + 3
			return
		}
	}
	p.expression()
	p.alias()
}

// alias is how something is called here, if it is.
func (p *parser) alias() bool {
	if p.take("as") {
		p.name()
		return true
	}
	if p.named(p.peek(0)) {
		p.at++
		return true
	}
	return false
}

// named reports whether a token can be somebody's name.
func (p *parser) named(t token) bool {
	return t.kind == quoted || t.kind == word && !lists["reserved"][t.text]
}

func (p *parser) name() {
	if !p.named(p.peek(0)) {
		p.fail()
		return
	}
	p.at++
}

func (p *parser) names() { p.list(p.name) }

func (p *parser) joined() {
	p.source()
	for {
		crossed := false
		switch {
		case p.take("natural", "cross"):
			crossed = true
			p.take("inner", "left", "right", "full")
			p.take("outer")
		case p.take("left", "right", "full"):
			p.take("outer")
		case p.take("inner"):
		case !p.is(0, "join"):
			return
		}
		p.need("join")
		p.source()
		switch {
		case crossed:
		case p.take("on"):
			p.expression()
		case p.take("using"):
			p.within(p.names)
		}
	}
}

// source is what rows are taken from: a query, a function that gives rows, or a table.
func (p *parser) source() {
	p.take("lateral")
	switch t := p.peek(0); {
	case p.is(0, "("):
		p.within(p.query)
	case t.kind == word && p.is(1, "("):
		if !p.listed(t.text, " from") {
			p.fail()
		}
		f := function{called: []string{t.text}}
		p.at++
		p.within(p.expressions)
		if p.alias() {
			f.called = append(f.called, strings.ToLower(p.peek(-1).text))
			f.columns = p.columns()
		}
		p.functions = append(p.functions, f)
		return
	default:
		p.table()
	}
	if p.alias() {
		p.columns()
	}
}

// columns are the names that an alias gives to what it is made of, if it does.
func (p *parser) columns() (names []string) {
	if p.is(0, "(") {
		p.within(func() {
			p.list(func() {
				names = append(names, p.peek(0).text)
				p.name()
			})
		})
	}
	return names
}

// path is a name with those of what it is in before it.
func (p *parser) path() {
	p.name()
	for p.take(".") {
		p.name()
	}
}

// table is the path of a table. The database's own are those of a list: a name alone can
// have something done there (pragma_optimize of SQLite), or say what nobody else may know.
func (p *parser) table() {
	from := p.at
	p.path()
	own := false
	for _, t := range p.tokens[from:p.at] {
		name := strings.ToLower(t.text)
		if (own && t.kind != sign || owned.MatchString(name)) && !p.listed(name, " own") {
			p.fail()
		}
		own = own || name == "information_schema"
	}
}

var owned = regexp.MustCompile(`^((pg|sqlite|pragma)_|(fsdir|zipfile|csv|completion)$)`)

// listed reports whether a word stands in a list of the dialect.
func (p *parser) listed(w, list string) bool { return lists[string(p.dialect)+list][w] }

func (p *parser) function(w string) bool { return lists["both"][w] || p.listed(w, "") }

func (p *parser) expressions() { p.list(p.expression) }

func (p *parser) expression() { p.nested(p.operands) }

// operands are values with operators between them. Which binds tighter changes nothing
// of what is done.
func (p *parser) operands() {
	for !p.failed {
		for p.take("-", "+", "not") {
		}
		p.value()
		p.turned()
		if !p.operator() {
			return
		}
	}
}

// turned is what stands behind a value that is made another.
func (p *parser) turned() {
	for !p.failed {
		switch {
		case p.take("::"):
			p.typeName()
		case p.take("collate"):
			p.name()
		case p.is(0, "at") && p.is(1, "time"):
			p.need("at", "time", "zone")
			p.value()
		case p.take("isnull", "notnull"):
		case p.take("is"):
			p.take("not")
			if p.take("null", "true", "false", "unknown") {
				continue
			}
			if p.take("distinct") {
				p.need("from")
			}
			p.value()
		default:
			return
		}
	}
}

// operator reports whether another operand follows.
func (p *parser) operator() bool {
	if t := p.peek(0); t.kind == sign && operators[p.dialect][t.text] {
		p.at++
		return true
	}
	if p.take("and", "or", "escape") {
		return true
	}
	negated := p.take("not")
	if p.take("like", "ilike", "between", "glob", "match") {
		return true
	}
	if p.is(0, "in") && p.is(1, "(") { // a name there is a table's to SQLite, or a function's that stands for one
		p.at++
		return true
	}
	if p.take("similar") {
		p.need("to")
		return !p.failed
	}
	if negated {
		p.fail()
	}
	return false
}

func (p *parser) value() {
	t := p.peek(0)
	switch {
	case p.failed:
	case t.kind == number || t.kind == text:
		p.at++
	case p.is(0, "("):
		p.grouped()
	case t.kind == word && p.is(1, "("):
		p.at++
		p.called(t.text)
	case p.take("null", "true", "false"):
	case p.take("case"):
		p.choice()
	case p.is(0, "array") && p.is(1, "["):
		p.at += 2
		p.nested(p.expressions)
		p.need("]")
	case t.kind == word && lists["types"][t.text] && p.peek(1).kind == text:
		p.at += 2 // DATE '2026-01-01', INTERVAL '1 day'
	default:
		if p.is(1, ".") {
			p.fields = append(p.fields, [2]string{strings.ToLower(t.text), p.peek(2).text})
		}
		p.path()
	}
}

// grouped are values in parentheses, or a query there.
func (p *parser) grouped() {
	p.within(func() {
		ahead := 0
		for p.is(ahead, "(") {
			ahead++
		}
		if p.is(ahead, "select", "with", "values") {
			p.query()
		} else {
			p.expressions()
		}
	})
}

// choice is a CASE.
func (p *parser) choice() {
	if !p.is(0, "when") {
		p.expression()
	}
	for ok := true; ok; ok = p.is(0, "when") {
		p.need("when")
		p.expression()
		p.need("then")
		p.expression()
	}
	if p.take("else") {
		p.expression()
	}
	p.need("end")
}

// called is what stands behind a word and a parenthesis.
func (p *parser) called(w string) {
	switch {
	case w == "exists":
		p.within(p.query)
	case w == "any" || w == "all" || w == "some":
		p.grouped()
	case w == "cast":
		p.within(func() {
			p.expression()
			p.need("as")
			p.typeName()
		})
	case w == "extract":
		p.within(func() {
			if p.peek(0).kind == text {
				p.at++
			} else {
				p.name()
			}
			p.need("from")
			p.expression()
		})
	case p.function(w):
		p.within(p.arguments)
		p.over()
	default:
		p.fail()
	}
}

func (p *parser) arguments() {
	switch {
	case p.is(0, ")") || p.take("*"):
		return
	case p.take("distinct", "all"):
	}
	p.expressions()
	p.order()
}

// over is what an aggregate is made over.
func (p *parser) over() {
	if p.is(0, "within") && p.is(1, "group") {
		p.at += 2
		p.within(p.order)
	}
	if p.take("filter") {
		p.within(func() {
			p.need("where")
			p.expression()
		})
	}
	if !p.take("over") {
		return
	}
	p.within(func() {
		if p.take("partition") {
			p.need("by")
			p.expressions()
		}
		p.order()
		if p.take("rows", "range", "groups") {
			for p.peek(0).kind == number || p.is(0, "between", "and", "unbounded", "preceding", "following", "current", "row") {
				p.at++
			}
		}
	})
}

// typeName is a type that a value is turned into, with its length.
func (p *parser) typeName() {
	t := p.peek(0)
	if t.kind != word || !lists["types"][t.text] {
		p.fail()
		return
	}
	p.at++
	if t.text == "double" {
		p.need("precision")
	}
	if p.take("(") {
		p.list(func() {
			if p.peek(0).kind != number {
				p.fail()
			} else {
				p.at++
			}
		})
		p.need(")")
	}
	if (t.text == "time" || t.text == "timestamp") && p.is(0, "with", "without") && p.is(1, "time") {
		p.at++
		p.need("time", "zone")
	}
	if p.is(0, "[") && p.is(1, "]") {
		p.at += 2
	}
}

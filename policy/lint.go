package policy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/provenance"
)

// prose are names of fields in which people write.
var prose = []string{"body", "text", "content", "description", "summary", "subject", "comment", "message", "snippet", "notes"}

// supply is what lint knows of a policy as a whole: which collections and types
// its outputs supply, and which arguments of acts can set text without being a
// target or a selector, by server and then by collection or name.
type supply struct {
	collections map[string]bool
	types       map[provenance.Type]bool
	// below are those of outputs that vouch for nothing.
	below   map[[2]string]bool
	setters map[[3]string]*ArgRule
	// records are the collections that some output lists in records of their own,
	// and whether one of these is authoritative (R9).
	records map[string]bool
}

func last(p provenance.Pattern) string {
	if len(p.Tokens) == 0 {
		return ""
	}
	return strings.ToLower(p.Tokens[len(p.Tokens)-1])
}

func supplyOf(p *Policy) supply {
	s := supply{map[string]bool{}, map[provenance.Type]bool{}, map[[2]string]bool{}, map[[3]string]*ArgRule{}, map[string]bool{}}
	for _, key := range slices.Sorted(maps.Keys(p.Contracts)) {
		s.add(p.Contracts[key])
	}
	return s
}

func (s *supply) add(c *Contract) {
	for _, o := range c.Outputs {
		if o.Label >= writ.Party {
			s.collections[o.Collection] = true
			s.types[o.Type] = true
		} else {
			s.below[[2]string{"", o.Collection}], s.below[[2]string{string(o.Type), ""}] = true, true
		}
		if inRecord(&o) {
			s.records[o.Collection] = s.records[o.Collection] || o.Authoritative
		}
	}
	for a, e := range c.everyArg {
		if len(a.In) > 0 || a.Shows {
			s.collections[a.Collection] = true
		}
		if !e.Gated() || a.Role == Target || a.Role == Selector {
			continue
		}
		for _, k := range [][3]string{{c.Server, "collection", a.Collection}, {c.Server, "name", last(a.At)}} {
			s.setters[k] = cmp.Or(s.setters[k], a)
		}
	}
}

// lint warns of what is allowed and likely wrong.
func (r *reader) lint(p *Policy) {
	know := supplyOf(p)
	r.lintStores(p)
	for _, key := range slices.Sorted(maps.Keys(p.Contracts)) {
		c := p.Contracts[key]
		for i := range c.Outputs {
			r.lintOutput(c, i, know)
		}
		r.lintLeaves(c)
		if p.Profile != Standard {
			continue
		}
		r.lintMakes(p, c)
		r.lintDeletes(c, know)
		r.lintRecords(p, c)
		r.lintAgrees(p, c)
		seen := map[*ArgRule]bool{}
		for a, e := range c.everyArg {
			if !seen[a] && e.Gated() {
				r.lintArg(c, a, know)
			}
			seen[a] = true
		}
	}
}

// lintLeaves refuses an act that by its name, or by what it is told, goes to others, and
// is declared without that: it would have none of the duties of what others read (R14,
// R29). What a definition says beside its name the catalogue holds against it.
func (r *reader) lintLeaves(c *Contract) {
	misdeclared := func(line, col int, said string, e Effect) {
		r.FaultAt(line, col, said+", and the act is declared as "+e.String()+": what leaves is send, egress or transfer", OutHint)
	}
	if word := c.BeliedBy(c.Tool); word != "" {
		misdeclared(c.Line, c.Col, "the name of this tool says "+strictyaml.Word(word), c.Declared())
		return
	}
	for i := range c.Cases {
		if k := &c.Cases[i]; c.beliedByCase(k) != "" {
			misdeclared(k.Line, k.Col, "the value of this case says "+strictyaml.Word(c.beliedByCase(k)), k.Effect)
		}
	}
	for a, e := range c.everyArg {
		at := slices.DeleteFunc(slices.Clone(a.At.Tokens), func(t string) bool { return t == "*" })
		if len(at) > 0 && e&Write != 0 && c.BeliedByArgument(at[len(at)-1]) {
			misdeclared(a.Line, a.Col, "the argument "+strictyaml.Word(a.At.Source)+" says who receives something", e)
		}
	}
}

// inRecord reports whether an output stands in a record beside other fields: not
// as a line, a key or an element of a list (R9).
func inRecord(o *provenance.OutputRule) bool {
	at := placeOf(o)
	return !o.Keys && o.Extract != provenance.ExtractLines && o.Extract != provenance.ExtractTree && len(at.Tokens) > 0 && last(at) != "*"
}

// lintDeletes warns of every deletion that nothing but the value itself can
// anchor, and of one that says nothing of what it destroys (R9).
func (r *reader) lintDeletes(c *Contract, know supply) {
	clauses := c.Cases
	if c.Closed {
		return
	}
	if c.CaseAt == nil {
		clauses = []Case{{Effect: c.Effect, Line: c.Line, Col: c.Col}}
	}
	warned := map[[2]int]bool{}
	for _, k := range clauses {
		named := false
		for _, a := range slices.Concat(c.Args, k.Args) {
			if k.Effect&Delete == 0 || a.Role != Target && a.Role != Selector {
				continue
			}
			named = true
			if at := [2]int{a.Line, a.Col}; !warned[at] {
				warned[at] = true
				r.lintDeleted(&a, know)
			}
		}
		if k.Effect&Delete != 0 && !named {
			r.WarnAt(k.Line, k.Col, "a deletion whose contract names no target and no selector: nothing says whose record it is (R9)", "role: selector")
		}
	}
}

// lintDeleted warns of an argument that says what is destroyed.
func (r *reader) lintDeleted(a *ArgRule, know supply) {
	authoritative, inRecords := know.records[a.Collection]
	switch {
	case a.Open, !slices.ContainsFunc(a.From, func(s Source) bool { return s.Kind != FromUser && s.Kind != FromConst && s.Kind != FromApproval }):
	case a.Collection == "":
		r.WarnAt(a.Line, a.Col, "a deletion of what is in no collection: only a value the user types is anchored (R9)", "collection: …")
	case a.Type == provenance.Path: // a file's name anchors it
	case !inRecords:
		r.WarnAt(a.Line, a.Col, "a deletion of what no output lists in records: only a value the user types is anchored, nothing that stands beside it (R9)", "at: /items/*/id")
	case !authoritative:
		r.WarnAt(a.Line, a.Col, "a deletion of what no authoritative output lists: only a value the user types is anchored (R9)",
			"authoritative: true where the server lists its own records")
	}
}

// lintMakes warns of an act that chooses from an open collection and answers with
// members of a closed one: it closes nothing (R28).
func (r *reader) lintMakes(p *Policy, c *Contract) {
	from := ""
	for a, e := range c.everyArg {
		if e.Gated() && (a.Role == Target || a.Role == Selector) && a.Collection != "" && !p.Collections[a.Collection].Closed {
			from = a.Collection
		}
	}
	for i, o := range c.Outputs {
		r.WarnIf(from != "" && p.Collections[o.Collection].Closed, r.outputAt[c][i], "this act chooses from the open collection "+strictyaml.Word(from)+": what it makes is no member of the closed collection "+
			strictyaml.Word(o.Collection)+", nor is what is listed of it afterwards and was not before (R28)", "take closed away")
	}
}

func (r *reader) lintOutput(c *Contract, i int, know supply) {
	o, n := c.Outputs[i], r.outputAt[c][i]
	at := placeOf(&o)
	name := last(at)
	trusted := o.Label >= writ.System
	r.WarnIf(trusted && o.Extract != provenance.ExtractLines && o.Extract != provenance.ExtractTree && slices.Contains(prose, name), n, "the output "+strictyaml.Word(at.Source)+" looks like free text and is labelled system: anyone who can write it would choose targets (R2)", "label: external")
	r.WarnIf(trusted && o.InText && o.Extract == provenance.NoExtract, n, "a whole text is labelled system: what is in it as a whole can be chosen by whoever writes it (R2)", "extract: lines or json, or label: external")
	r.WarnIf(trusted && o.Extract == provenance.ExtractLines && !o.HasJoin, n, "lines without join: who can choose a name with a line feed in it makes this list vouch for what it does not hold (R33)",
		"join: /path for a directory's names, extract: json, or label: external where strangers choose names")
	if !o.Authoritative {
		return
	}
	if !trusted {
		r.Warn(n, "authoritative lifts nothing below the label system", "remove it")
		return
	}
	// R4: authoritative is for what no argument but a gated target or selector
	// can set. What can be told from the policy alone is the collection and the
	// name of the field.
	for _, k := range [][3]string{{c.Server, "collection", o.Collection}, {c.Server, "name", name}} {
		if a := know.setters[k]; a != nil && k[2] != "" && k[2] != "*" {
			r.WarnAt(a.Line, a.Col, "this argument can set text that "+strictyaml.Word(c.Server+"/"+c.Tool)+
				" reports as authoritative, and is neither target nor selector (R4)", "role: target")
			return
		}
	}
	// What a read is asked for, the same read can answer with.
	for a, e := range c.everyArg {
		if n := last(a.At); !e.Gated() && n != "*" && n == name {
			r.WarnAt(a.Line, a.Col, "this argument of a read is not founded, and the output of that name is authoritative: it would vouch for what was asked (R4)", "remove authoritative")
			return
		}
	}
}

// lintArg warns of an argument no output can vouch for.
func (r *reader) lintArg(c *Contract, a *ArgRule, know supply) {
	from := slices.DeleteFunc(slices.Clone(a.From), func(s Source) bool { return s.Kind == FromUser })
	if len(from) != 1 || from[0].Kind != FromOutput || from[0].Tool != "" || a.Local || a.Composed || a.Open {
		return
	}
	what, who := strictyaml.Word(a.At.Source)+" of "+strictyaml.Word(c.Server+"/"+c.Tool), "nothing can vouch for it"
	if len(a.From) > 1 {
		who = "only what the user types can vouch for it"
	}
	switch {
	case a.Collection != "" && know.collections[a.Collection], a.Type != provenance.Untyped && know.types[a.Type]:
	case a.Collection != "" && know.below[[2]string{"", a.Collection}], a.Type != provenance.Untyped && know.below[[2]string{string(a.Type), ""}]:
		r.WarnAt(a.Line, a.Col, "the outputs of the collection or type of the argument "+what+" are labelled below party, and vouch for nothing; "+who, "from: [user], or label: system where the server alone can write it")
	case a.Collection != "" || a.Type != provenance.Untyped:
		r.WarnAt(a.Line, a.Col, "no output of this policy has the collection or type of the argument "+what+"; "+who, "")
	case len(a.From) == 1 || a.FromDefault:
		r.WarnAt(a.Line, a.Col, "the argument "+what+" has neither collection nor type, by which output without a pointer matches; "+who,
			"collection: …, type: …, or output: server/tool#/pointer")
	}
}

// lintRecords proposes to hold arguments to one record where an output shows records
// with both, or records of both that a third collection joins (R37).
func (r *reader) lintRecords(p *Policy, c *Contract) {
	var first *ArgRule
	for a, e := range c.everyArg {
		if e.Gated() && a.Role == Selector && a.Collection != "" && a.At.Exact() && first == nil {
			first = a
		}
	}
	if first == nil || c.Closed {
		return
	}
	bound := c.boundTo(first)
	for b, e := range c.everyArg {
		if !e.Gated() || b == first || b.Collection == "" || b.Collection == first.Collection || b.Role != Selector && b.Role != Target && b.Role != Amount || bound[b.At.Source] {
			continue
		}
		nothing := ", and nothing holds this argument to the record that " + strictyaml.Word(first.At.Source) + " names (R37)"
		if p.together(first.Collection, b.Collection, false) {
			r.WarnAt(b.Line, b.Col, "an output lists "+strictyaml.Word(b.Collection)+" within records of "+strictyaml.Word(first.Collection)+nothing, "of: "+first.At.Source)
		} else if by := p.joins(first.Collection, b.Collection); by != "" {
			r.WarnAt(b.Line, b.Col, "outputs list "+strictyaml.Word(b.Collection)+" within records of "+strictyaml.Word(by)+", which records of "+strictyaml.Word(first.Collection)+" name"+nothing, "of: "+first.At.Source+", by: "+by)
		}
	}
}

// lintAgrees proposes to hold an argument to what it was listed for, where a tool lists its
// collection that is asked by the name of another argument (R37).
func (r *reader) lintAgrees(p *Policy, c *Contract) {
	for b, e := range c.everyArg {
		if !e.Gated() || b.Collection == "" || c.Closed || !slices.ContainsFunc(b.From, func(s Source) bool { return s.Kind == FromOutput }) {
			continue
		}
		for a := range c.everyArg {
			if a == b || len(a.At.Tokens) != 1 || a.Role != Target && a.Role != Selector || slices.ContainsFunc(b.Agrees, func(at provenance.Pattern) bool { return at.Source == a.At.Source }) {
				continue
			}
			if by := p.askedBy(c.Server, a.At.Source, b.Collection); by != "" {
				r.WarnAt(b.Line, b.Col, strictyaml.Word(by)+" lists "+strictyaml.Word(b.Collection)+" and is asked with "+strictyaml.Word(a.At.Source)+" too, and nothing says that both calls have the same there (R37)", "agrees: ["+a.At.Source+"]")
			}
		}
	}
}

// askedBy is a read of a server that lists members of a collection and has an argument of a
// pointer, "" for none.
func (p *Policy) askedBy(server, pointer, collection string) string {
	for _, name := range slices.Sorted(maps.Keys(p.Contracts)) {
		c := p.Contracts[name]
		if c.Server == server && !c.Effect.Gated() && slices.ContainsFunc(c.Args, func(a ArgRule) bool { return a.At.Source == pointer && a.Collection != collection }) &&
			slices.ContainsFunc(c.Outputs, func(o provenance.OutputRule) bool { return o.Collection == collection && o.Label >= writ.System }) {
			return name
		}
	}
	return ""
}

// boundTo are the arguments that are held to the record of one, whatever in between.
func (c *Contract) boundTo(a *ArgRule) map[string]bool {
	bound := map[string]bool{a.At.Source: true}
	for range c.Bindings {
		for _, k := range c.Bindings {
			of := append([]provenance.Pattern{k.First}, k.Others...)
			if slices.ContainsFunc(of, func(at provenance.Pattern) bool { return bound[at.Source] }) {
				for _, at := range of {
					bound[at.Source] = true
				}
			}
		}
	}
	return bound
}

// joins is a collection whose members stand in records of the one, and name records that
// list the other; "" for none.
func (p *Policy) joins(first, other string) string {
	for _, by := range slices.Sorted(maps.Keys(p.Collections)) {
		if by != first && by != other && p.together(first, by, true) && p.together(by, other, false) {
			return by
		}
	}
	return ""
}

// together reports whether some output lists members of the one collection in records
// that members of the other name: deeper in them, or directly.
func (p *Policy) together(first, other string, directly bool) bool {
	for _, c := range p.Contracts {
		for _, a := range c.Outputs {
			if a.Collection != first || !inRecord(&a) {
				continue
			}
			record := placeOf(&a).Tokens
			record = record[:len(record)-1]
			for _, b := range c.Outputs {
				if path := placeOf(&b).Tokens; b.Collection == other && len(path) > len(record) && slices.Equal(path[:len(record)], record) && (len(path) == len(record)+1) == directly {
					return true
				}
			}
		}
	}
	return false
}

// placeOf is where an output stands in a result or in the JSON of a text.
func placeOf(o *provenance.OutputRule) provenance.Pattern {
	if o.Extract == provenance.ExtractJSON {
		return o.Pointer
	}
	return o.At
}

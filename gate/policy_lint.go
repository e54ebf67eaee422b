package gate

import (
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
	setters     map[[3]string]*ArgRule
}

func last(p provenance.Pattern) string {
	if len(p.Tokens) == 0 {
		return ""
	}
	return strings.ToLower(p.Tokens[len(p.Tokens)-1])
}

func supplyOf(p *Policy) supply {
	s := supply{map[string]bool{}, map[provenance.Type]bool{}, map[[3]string]*ArgRule{}}
	for _, key := range sortedKeys(p.Contracts) {
		c := p.Contracts[key]
		for _, o := range c.Outputs {
			s.collections[o.Collection] = true
			s.types[o.Type] = true
		}
		for a, e := range c.everyArg {
			if !e.Gated() || a.Role == Target || a.Role == Selector {
				continue
			}
			for _, k := range [][3]string{{c.Server, "collection", a.Collection}, {c.Server, "name", last(a.At)}} {
				if s.setters[k] == nil {
					s.setters[k] = a
				}
			}
		}
	}
	return s
}

// lint warns of what is allowed and likely wrong.
func (r *reader) lint(p *Policy) {
	know := supplyOf(p)
	r.lintStores(p)
	for _, key := range sortedKeys(p.Contracts) {
		c := p.Contracts[key]
		for i := range c.Outputs {
			r.lintOutput(c, i, know)
		}
		seen := map[*ArgRule]bool{}
		for a, e := range c.everyArg {
			if !seen[a] && e.Gated() && p.Profile == Standard {
				r.lintArg(a, know)
			}
			seen[a] = true
		}
	}
}

func (r *reader) lintOutput(c *Contract, i int, know supply) {
	o, n := c.Outputs[i], r.outputAt[c][i]
	at := o.At
	if o.Extract == provenance.ExtractJSON {
		at = o.Pointer
	}
	name := last(at)
	trusted := o.Label >= writ.System
	if trusted && o.Extract != provenance.ExtractLines && slices.Contains(prose, name) {
		r.Warn(n, "the output "+strictyaml.Word(at.Source)+" looks like free text and is labelled system: anyone who can write it would choose targets (R2)", "label: external")
	}
	if trusted && o.InText && o.Extract == provenance.NoExtract {
		r.Warn(n, "a whole text is labelled system: what is in it as a whole can be chosen by whoever writes it (R2)", "extract: lines or json, or label: external")
	}
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
func (r *reader) lintArg(a *ArgRule, know supply) {
	from := slices.DeleteFunc(slices.Clone(a.From), func(s Source) bool { return a.FromDefault && s.Kind == FromUser })
	if len(from) != 1 || from[0].Kind != FromOutput || from[0].Tool != "" || a.Local || a.Open {
		return
	}
	who := "nothing can vouch for it"
	if a.FromDefault {
		who = "only what the user types can vouch for it"
	}
	switch {
	case a.Collection != "" && know.collections[a.Collection], a.Type != provenance.Untyped && know.types[a.Type]:
	case a.Collection != "" || a.Type != provenance.Untyped:
		r.WarnAt(a.Line, a.Col, "no output of this policy has this argument's collection or type; "+who, "")
	default:
		r.WarnAt(a.Line, a.Col, "this argument has neither collection nor type, by which output without a pointer matches; "+who,
			"collection: …, type: …, or output: server/tool#/pointer")
	}
}

package policy

import (
	"maps"
	"math/big"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/provenance"
)

// lintMeaning warns of what a policy says and what cannot be so, or does nothing: each a
// sentence that its writer believes to hold.
func (r *reader) lintMeaning(p *Policy, f *policyFile) {
	r.lintUnused(p, f)
	folded, pinned := map[string]string{}, map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(p.Contracts)) {
		c := p.Contracts[key]
		if other := folded[strings.ToLower(key)]; other != "" {
			r.WarnAt(c.Line, c.Col, "in small letters this is "+strictyaml.Word(other)+": a server that has both is refused whole, so one of them is of no tool (T04)", "remove one")
		}
		folded[strings.ToLower(key)] = key
		if other := pinned[c.Pin]; other != "" && c.Pin != "" {
			r.WarnAt(c.Line, c.Col, "the pin is that of "+strictyaml.Word(other)+", and no two tools have one definition: one of them stays shut (R26)", "writ tools approve "+key)
		}
		pinned[c.Pin] = key
		r.lintName(c)
		r.lintCases(c)
		r.lintOneShot(p, c)
		seen := map[*ArgRule]bool{}
		for a, e := range c.everyArg {
			if !seen[a] && e.Gated() {
				seen[a] = true
				r.lintOwner(p, a)
				r.lintSources(p, c, a)
			}
		}
	}
	for _, e := range f.Tools.Entries {
		if c := p.Contracts[e.Key.Value]; c != nil {
			r.lintIdle(c, &e.Value)
		}
	}
}

// lintUnused warns of a collection of which nothing is a member or asks for one.
func (r *reader) lintUnused(p *Policy, f *policyFile) {
	used := map[string]bool{}
	for _, c := range p.Contracts {
		for _, o := range c.Outputs {
			used[o.Collection] = true
		}
		for a := range c.everyArg {
			used[a.Collection] = true
		}
		for _, b := range c.Bindings {
			used[b.By] = true
		}
	}
	for _, e := range f.Collections.Entries {
		r.WarnIf(!used[e.Key.Value], e.Key, "no output and no argument is of this collection", "remove it, or collection: "+strictyaml.Word(e.Key.Value))
	}
}

// lintName warns of a tool that by its name destroys, and by its contract does not (R9).
func (r *reader) lintName(c *Contract) {
	words := text.NameWords(c.Tool)
	if len(words) > 1 && words[0] == strings.TrimSuffix(c.Server, "s") { // files/file_delete
		words = words[1:]
	}
	e := c.Declared()
	if len(words) == 0 || !destroying[words[0]] || c.Closed || c.Overrules || e == 0 || e&Delete != 0 {
		return
	}
	r.WarnAt(c.Line, c.Col, "the name of this tool says "+strictyaml.Word(words[0])+", and it is declared as "+e.String()+": nothing anchors what it destroys (R9)", "effect: delete")
}

var destroying = wordSet("delete destroy erase purge wipe truncate")

// lintCases warns of cases that are told apart by what the contract has no rule for: the
// word that chooses is judged as a target.
func (r *reader) lintCases(c *Contract) {
	if c.CaseAt == nil || c.Declared() == Read {
		return
	}
	for _, a := range c.Args {
		if a.At.Match(c.CaseAt) {
			return
		}
	}
	r.WarnAt(c.Cases[0].Line, c.Cases[0].Col, "the argument that tells the cases apart has no rule, and is judged as a target: only what the user types can choose an act", "args: { /method: { role: enum } }")
}

// lintOneShot warns of a one-time value that no act takes (R19).
func (r *reader) lintOneShot(p *Policy, c *Contract) {
	for i, o := range c.Outputs {
		if o.Lifetime == 0 {
			continue
		}
		taken := false
		for _, by := range p.Contracts {
			for a, e := range by.everyArg {
				taken = taken || e.Gated() && (o.Collection != "" && a.Collection == o.Collection ||
					slices.ContainsFunc(a.From, func(s Source) bool { return s.names(c, &o) && s.HasAt }))
			}
		}
		r.WarnIf(!taken, r.outputAt[c][i], "no act has an argument that takes this one-time value: it vouches for nothing (R19)", "from: [output: server/tool#/pointer] at the act")
	}
}

// names reports whether a source names an output by its tool, or by where it stands.
func (s *Source) names(c *Contract, o *provenance.OutputRule) bool {
	if s.Kind != FromOutput || s.Tool == "" || s.Server != c.Server || s.Tool != c.Tool {
		return false
	}
	return !s.HasAt || standsAt(o, s.At)
}

// standsAt reports whether a pointer may be of what an output names, in the JSON of a text too.
func standsAt(o *provenance.OutputRule, at provenance.Pattern) bool {
	return o.At.Overlaps(at) || o.Extract == provenance.ExtractJSON && o.Pointer.Overlaps(at)
}

// supplied are the outputs that may vouch for an argument, by from: output.
func (p *Policy) supplied(a *ArgRule) (out []provenance.OutputRule) {
	for _, c := range p.Contracts {
		for _, o := range c.Outputs {
			if slices.ContainsFunc(a.From, func(s Source) bool {
				return s.names(c, &o) || s.Kind == FromOutput && s.Tool == "" && (a.Collection != "" && o.Collection == a.Collection || a.Collection == "" && a.Type != "" && o.Type == a.Type)
			}) {
				out = append(out, o)
			}
		}
	}
	return out
}

// lintOwner warns of an owner that is never asked (R28).
func (r *reader) lintOwner(p *Policy, a *ArgRule) {
	from := p.supplied(a)
	switch {
	case len(a.Owner) == 0 && !a.OwnerUser || len(from) == 0:
	case !slices.ContainsFunc(from, func(o provenance.OutputRule) bool { return o.HasOwner }):
		r.WarnAt(a.Line, a.Col, "no output that may vouch for "+strictyaml.Word(a.At.Source)+" says whose the record is: its owner is never known (R28)", "owner: /pointer at the output")
	case p.Collections[a.Collection].Closed:
		r.WarnAt(a.Line, a.Col, "the collection "+strictyaml.Word(a.Collection)+" is closed, and of what is in it no owner is asked (R28)", "take closed away, or owner")
	}
}

// lintSources warns of what an argument accepts in vain.
func (r *reader) lintSources(p *Policy, c *Contract, a *ArgRule) {
	own := len(a.From) > 0
	for _, s := range a.From {
		own = own && s.Kind == FromOutput && s.Server == c.Server && s.Tool == c.Tool
		if s.Kind == FromDerived && s.Op != Due && s.Op != Element && len(s.Phrases) == 0 && !p.listsPaths() {
			r.WarnAt(a.Line, a.Col, "no output of this policy is a path that may vouch: "+strictyaml.Word("derived: "+s.Op)+" has no directory to begin with", "type: path at the output that lists them")
		}
		if of := p.Contracts[s.Server+"/"+s.Tool]; s.Kind == FromOutput && of != nil && !s.Ours && of.vouchesNothing(&s) {
			r.WarnAt(a.Line, a.Col, "what "+strictyaml.Word(s.Server+"/"+s.Tool)+" returns there is labelled below party, and vouches for nothing; the rule can never match",
				"from: [user], or label: system where the server alone can write it")
		}
	}
	r.lintConstants(a)
	if own {
		r.WarnAt(a.Line, a.Col, "only answers of this very tool vouch for "+strictyaml.Word(a.At.Source)+", which its first call would need", "name the tool that lists them")
	}
}

// listsPaths reports whether some output is a path that may vouch.
func (p *Policy) listsPaths() bool {
	for _, c := range p.Contracts {
		if slices.ContainsFunc(c.Outputs, func(o provenance.OutputRule) bool {
			return o.Label >= writ.System && (o.Type == provenance.Path || o.HasJoin)
		}) {
			return true
		}
	}
	return false
}

// vouchesNothing reports whether a source names outputs of the tool, and none of them vouches.
func (c *Contract) vouchesNothing(s *Source) bool {
	others := slices.DeleteFunc(slices.Clone(c.Outputs), func(o provenance.OutputRule) bool { return !s.names(c, &o) })
	return len(others) > 0 && !slices.ContainsFunc(others, func(o provenance.OutputRule) bool { return o.Label >= writ.Party })
}

// lintConstants warns of a constant that the operator wrote twice, or that is refused.
func (r *reader) lintConstants(a *ArgRule) {
	seen := map[string]bool{}
	for _, s := range a.From {
		if s.Grown {
			continue
		}
		for _, v := range s.Const {
			if n, err := strictjson.Canonical(v); err == nil {
				if seen[string(n)] {
					r.WarnAt(a.Line, a.Col, "a constant of "+strictyaml.Word(a.At.Source)+" stands twice", "remove one")
				}
				seen[string(n)] = true
			}
			if over(v, a.Max) {
				r.WarnAt(a.Line, a.Col, "a constant of "+strictyaml.Word(a.At.Source)+" is above its max, and is refused (R11)", "max: …")
			}
		}
	}
}

// over reports whether a number is above a bound in decimal, "" for none.
func over(v []byte, most string) bool {
	d, _, why := provenance.Canonical(provenance.Decimal, strictjson.Of(v))
	n, read := new(big.Rat).SetString(d)
	m, bounded := new(big.Rat).SetString(most)
	return why == "" && read && bounded && n.Cmp(m) > 0
}

// lintRead warns of words that bind acts alone, at a tool that only reads.
func (r *reader) lintRead(c *Contract, f *toolFile) {
	for word, n := range map[string]*strictyaml.Node{"no_args": f.NoArgs.Node, "idempotent": f.Idempotent.Node, "idempotency_key": f.IdempotencyKey.Node, "contested": f.Contested.Node, "budgets": f.Budgets.Node, "phrases": f.Phrases.Node} {
		r.WarnIf(n != nil, n, strictyaml.Word(word)+" binds acts, and this tool only reads: it does nothing here", "remove it, or declare the effect")
	}
	for i, o := range c.Outputs {
		r.WarnIf(o.Creates, r.outputAt[c][i], "a read makes nothing: "+strictyaml.Word("creates")+" is of what an act newly made (R13)", "remove it")
	}
	for a := range c.everyArg {
		if a.Makes {
			r.WarnAt(a.Line, a.Col, "a read makes nothing: "+strictyaml.Word("makes")+" is of what an act newly makes (R13)", "remove it")
		}
	}
}

// lintIdle warns of words that do nothing by the effects that a tool has.
func (r *reader) lintIdle(c *Contract, f *toolFile) {
	e := c.Declared()
	if e == Read {
		r.lintRead(c, f)
		return
	}
	for a := range c.everyArg {
		if a.Shows && c.CaseAt == nil {
			r.WarnAt(a.Line, a.Col, "an act shows nothing: "+strictyaml.Word("shows")+" is of what a read shows (R9)", "remove it")
		}
	}
	r.WarnIf(f.Contested.Given() && c.Contested != ContestedAccepted && e&(Transfer|Delete) == 0, f.Contested.Node, "contested is asked of what pays or deletes, and this tool does neither (R25)", "remove it")
	for i, o := range c.Outputs {
		r.WarnIf(e&Egress != 0 && e&^(Read|Egress) == 0 && c.CaseAt == nil && c.Method == CallTool && o.Label >= writ.System && !o.Authoritative, r.outputAt[c][i], "what is fetched is written by whoever runs that place, and is labelled system: he would choose targets (R2)", "label: external")
	}
	for i, b := range c.Budgets {
		for a := range c.everyArg {
			if b.HasSum && a.At.Overlaps(b.Sum) && a.Role != Amount {
				r.Warn(f.Budgets.Items[i].Node, "the sum is of "+strictyaml.Word(a.At.Source)+", whose role is "+a.Role.String()+": a budget of money is of an amount (R27)", "role: amount")
				break
			}
		}
	}
}

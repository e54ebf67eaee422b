package policy

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/provenance"
)

// field is one item of `sets:`: all outputs of a collection, or one output.
type field struct {
	collection string
	tool       string // server/tool
	at         provenance.Pattern
}

func (f *field) names(tool string, o *provenance.OutputRule) bool {
	if f.collection != "" {
		return o.Collection == f.collection
	}
	return f.tool == tool && !o.InText && o.At.Overlaps(f.at)
}

// stores compiles `stores:`, by server and by server/tool.
func (r *reader) stores(p *Policy, f *policyFile) {
	for _, e := range f.Stores.Entries {
		r.FaultIf(!collectionName().MatchString(e.Key.Value), e.Key, "the name of a store is letters, digits, _, - and .", "")
		r.FaultIf(emptyList(e.Value.Place), e.Value.Node, "a store nobody uses", "stores: { disk: [files, backup/list] }")
		for _, t := range e.Value.Items {
			if t.Node.Kind != strictyaml.Text {
				continue // a fault already
			}
			known := p.Contracts[t.S] != nil
			for _, c := range p.Contracts {
				known = known || c.Server == t.S
			}
			r.FaultIf(!known, t.Node, "no contract of this policy is of that server or tool", "a server, or server/tool")
			p.stores[t.S] = append(p.stores[t.S], e.Key.Value)
		}
	}
}

// sets compiles `sets:`.
func (r *reader) sets(p *Policy, c *Contract, f *toolFile) {
	if !f.Sets.Given() {
		return
	}
	c.sets = []field{}
	r.FaultIf(c.Effect == Read, f.Sets.Node, "a read sets nothing", "remove it")
	for _, t := range f.Sets.Items {
		if t.Node.Kind != strictyaml.Text {
			continue // a fault already
		}
		tool, pointer, isOutput := strings.Cut(t.S, "#")
		if !isOutput {
			c.sets = append(c.sets, field{collection: r.collection(p, t)})
			continue
		}
		at, err := provenance.ParsePattern(pointer)
		if err != nil {
			r.Fault(t.Node, "after # stands a pointer: "+err.Error(), "a collection, or server/tool#/pointer")
		}
		c.sets = append(c.sets, field{tool: tool, at: at})
	}
}

// setFields checks what `sets:` of one contract says of the outputs of others.
func (r *reader) setFields(p *Policy, key string, f *toolFile) {
	c := p.Contracts[key]
	if c == nil || len(c.sets) != len(f.Sets.Items) {
		return
	}
	for i, t := range f.Sets.Items {
		found := false
		for _, other := range slices.Sorted(maps.Keys(p.Contracts)) {
			for k := range p.Contracts[other].Outputs {
				o := &p.Contracts[other].Outputs[k]
				if !c.sets[i].names(other, o) || !p.share(c, p.Contracts[other]) {
					continue
				}
				found = true
				r.FaultIf(o.Authoritative, t.Node, "the tool sets an output of "+strictyaml.Word(other)+" that is authoritative, which says that no text anybody sends comes back in it (R4)", "remove authoritative there, or the field here")
			}
		}
		r.FaultIf(!found, t.Node, "no output of a store this tool shares is meant; the rule can never match", "a collection, or server/tool#/pointer")
	}
}

// storesOf are the declared stores of a tool.
func (p *Policy) storesOf(server, tool string) []string {
	return append(slices.Clone(p.stores[server]), p.stores[server+"/"+tool]...)
}

// share reports whether two tools have a store in common: one server is one, and
// `stores:` declares others.
func (p *Policy) share(a, b *Contract) bool {
	if a.Server == b.Server {
		return true
	}
	mine := p.storesOf(a.Server, a.Tool)
	return slices.ContainsFunc(p.storesOf(b.Server, b.Tool), func(s string) bool { return slices.Contains(mine, s) })
}

// onDisk reports a tool that writes the agent's text into files of this machine
// and is in no declared store: any server may read them.
func (p *Policy) onDisk(c *Contract) bool {
	if len(p.storesOf(c.Server, c.Tool)) > 0 {
		return false
	}
	file, text := false, false
	for a, e := range c.everyArg {
		file = file || e.Gated() && (a.Role == Target || a.Role == Selector) && (a.Type == provenance.Path || p.ofPaths(a.Collection))
		text = text || e.Gated() && a.Local
	}
	return file && text
}

// ofPaths reports whether some output puts paths into a collection.
func (p *Policy) ofPaths(collection string) bool {
	for _, c := range p.Contracts {
		for i := range c.Outputs {
			if o := &c.Outputs[i]; collection != "" && o.Collection == collection && (o.Type == provenance.Path || o.HasJoin) {
				return true
			}
		}
	}
	return false
}

// SharesStore reports whether what from was sent may lie where to reads: one
// server, one declared store, or a file of this machine that is in none.
func (p *Policy) SharesStore(from, to *Contract) bool { return p.share(from, to) || p.onDisk(from) }

// Reaches reports whether what one tool was sent can come back in an output of
// another (R38); o is nil for what no rule names.
func (p *Policy) Reaches(from, to *Contract, o *provenance.OutputRule) bool {
	trusted := o != nil && o.Label > writ.External
	if !p.share(from, to) && !(trusted && p.onDisk(from)) || o != nil && o.Authoritative {
		return false
	}
	return from.sets == nil || o != nil && slices.ContainsFunc(from.sets, func(f field) bool { return f.names(to.Server+"/"+to.Tool, o) })
}

// lintStores names every field called system that another tool of the policy can
// write (R2, R38).
func (r *reader) lintStores(p *Policy) {
	r.lintSeen(p)
	r.lintNames(p)
	called := map[string][]string{} // authoritative, by who can write it
	first := map[string]*strictyaml.Node{}
	for _, key := range slices.Sorted(maps.Keys(p.Contracts)) {
		to := p.Contracts[key]
		for i := range to.Outputs {
			o := to.Outputs[i]
			if o.Label < writ.System {
				continue
			}
			writer := p.writes(to, o)
			if writer == "" {
				continue
			}
			field, writer := strictyaml.Word(key+"#"+o.At.Source), strictyaml.Word(writer)
			if o.Authoritative {
				if called[writer] = append(called[writer], field); len(called[writer]) == 1 {
					first[writer] = r.outputAt[to][i]
				}
			} else {
				r.Warn(r.outputAt[to][i], field+" is called system, and "+writer+" can write it: from its first use on this field vouches for nothing (R38)",
					"sets: on the writing tool, stores:, or authoritative: true where no text can come back")
			}
		}
	}
	for _, writer := range slices.Sorted(maps.Keys(called)) {
		field, are := called[writer][0], " is"
		if more := len(called[writer]) - 1; more > 0 {
			field, are = field+" with "+strconv.Itoa(more)+" more", " are"
		}
		r.Warn(first[writer], field+are+" called authoritative, and "+writer+" can write what they read (R4, R38): right where no text that it writes is read as such a field", "stores: names who reads what it writes")
	}
}

// writes is a tool that can write what stands in an output, whatever that is called; of
// what its own server calls authoritative none. "" is none.
func (p *Policy) writes(to *Contract, o provenance.OutputRule) string {
	own := o.Authoritative
	o.Authoritative = false
	for _, key := range slices.Sorted(maps.Keys(p.Contracts)) {
		from := p.Contracts[key]
		if from.unproven() && !(own && from.Server == to.Server) && p.Reaches(from, to, &o) {
			return key
		}
	}
	return ""
}

// lintSeen names what accepts a link that was seen while a tool writes the
// agent's text to files that nobody says who reads: what other servers label
// external is lowered by those of their own stores alone (R20, R38).
func (r *reader) lintSeen(p *Policy) {
	for _, key := range slices.Sorted(maps.Keys(p.Contracts)) {
		for a := range p.Contracts[key].everyArg {
			if !slices.ContainsFunc(a.From, func(s Source) bool { return s.Kind == FromSeen }) {
				continue
			}
			for _, writer := range slices.Sorted(maps.Keys(p.Contracts)) {
				if p.onDisk(p.Contracts[writer]) {
					r.WarnAt(a.Line, a.Col, "a link that "+strictyaml.Word(writer)+" wrote to a file and another server shows is accepted as seen (R20, R38)", "stores: name who reads those files")
					break
				}
			}
		}
	}
}

// lintNames names records that have two names in one collection while an act
// puts text into what one of them names: a place is told apart by the names of
// one collection, so the other name is another place (R38).
func (r *reader) lintNames(p *Policy) {
	for _, key := range slices.Sorted(maps.Keys(p.Contracts)) {
		to := p.Contracts[key]
		for i := range to.Outputs {
			o := &to.Outputs[i]
			writer := p.writerOf(to, o.Collection)
			if writer == "" || !slices.ContainsFunc(to.Outputs[:i], func(other provenance.OutputRule) bool {
				return other.Collection == o.Collection && sameRecord(&other, o)
			}) {
				continue
			}
			r.Warn(r.outputAt[to][i], "a second name of the same record in the collection "+strictyaml.Word(o.Collection)+
				": what "+strictyaml.Word(writer)+" puts into a record it knows by the one is not lowered where a read knows it by the other (R38)",
				"a collection of its own for each name")
		}
	}
}

// writerOf is a tool that sends text nothing vouches for to what a value of the
// collection names, in a store that another shares.
func (p *Policy) writerOf(to *Contract, collection string) string {
	if collection == "" {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(p.Contracts)) {
		from := p.Contracts[key]
		if !from.unproven() || !p.share(from, to) {
			continue
		}
		for a, e := range from.everyArg {
			if e.Gated() && a.Collection == collection && (a.Role == Target || a.Role == Selector) {
				return key
			}
		}
	}
	return ""
}

// sameRecord reports whether two outputs are fields of one record.
func sameRecord(a, b *provenance.OutputRule) bool {
	x, y := placeOf(a).Tokens, placeOf(b).Tokens
	return inRecord(a) && inRecord(b) && a.InText == b.InText && len(x) == len(y) && slices.Equal(x[:len(x)-1], y[:len(y)-1])
}

// unproven reports whether an act of the tool can send text that nothing vouches
// for.
func (c *Contract) unproven() bool {
	for a, e := range c.everyArg {
		if e.Gated() && a.Local {
			return true
		}
	}
	return false
}

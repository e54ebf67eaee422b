package policy

import (
	"regexp"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/schema"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/provenance"
)

// outputs compiles `outputs:`. In profile strict an output that needs an
// extractor labels nothing, and a warning says so.
func (r *reader) outputs(p *Policy, c *Contract, f *toolFile) {
	if len(f.Outputs.Items) > maxRules {
		r.Fault(f.Outputs.Node, "more than 500 outputs of one tool", "")
		return
	}
	for i := range f.Outputs.Items {
		o, ok := r.output(p, c, &f.Outputs.Items[i])
		if !ok {
			continue
		}
		ties := func(before provenance.OutputRule) bool { return provenance.Conflict(before, o) }
		r.FaultIf(slices.ContainsFunc(c.Outputs, ties), f.Outputs.Items[i].Node, "the output ties with another of this tool: some leaf would have two labels", "make one of them exact, or remove it")
		if p.Profile == Strict && (o.InText || o.Extract != provenance.NoExtract) {
			r.Warn(f.Outputs.Items[i].Node, "profile strict knows no extractor: this output labels nothing", "")
			continue
		}
		c.Outputs = append(c.Outputs, o)
		r.outputAt[c] = append(r.outputAt[c], f.Outputs.Items[i].Node)
	}
}

// output compiles one item of `outputs:`.
func (r *reader) output(p *Policy, c *Contract, f *outputFile) (o provenance.OutputRule, ok bool) {
	if f.Node == nil || f.Node.Kind != strictyaml.Mapping {
		return o, false
	}
	before := r.Count()
	o.Authoritative, o.Keys, o.Secret, o.Creates, o.Names = f.Authoritative.Is, f.Keys.Is, f.Secret.Is, f.Creates.Is, f.Names.Is
	o.Location, o.Elements, o.Unique = f.Location.Is, f.Elements.Is, f.Unique.Is
	r.place(&o, f)
	r.FaultIf(!f.Label.Given(), f.Node, "the output has no label", "label: system, party or external")
	if f.Label.S == "user" || f.Label.S == "operator" {
		r.Fault(f.Label.Node, "a tool's output is at most system: "+f.Label.S+" is bound by other channels", "label: system")
	} else {
		o.Label, _ = pick(r, f.Label, labelWords)
	}
	o.Type, _ = pick(r, f.Type, typeWords)
	o.Collection = r.collection(p, f.Collection)
	r.FaultIf(o.Location && (o.Type != provenance.URL && (o.Type != provenance.Untyped || o.Label != writ.System) || o.Keys), f.Location.Node, "a location is a link (R28), or what the server itself calls where it is", "type: url, or label: system")
	r.FaultIf(o.Elements && (!o.Location || !f.Extract.Given() || f.Extract.S != "start"), f.Elements.Node, "what can be clicked on is listed behind a location that the text begins with (R28)", "extract: start, location: true")
	r.extractor(&o, f)
	r.joined(&o, c, f)
	if f.Owner.Given() {
		at := r.pattern(f.Owner)
		o.HasOwner, o.Owner = true, at.Tokens
		r.FaultIf(!at.Exact(), f.Owner.Node, "owner is one exact pointer, relative to the record", "/owner")
	}
	if f.Readers.Given() {
		at := r.pattern(f.Readers)
		o.HasReaders, o.Readers = true, at.Tokens
		r.FaultIf(!at.Exact() || o.Collection == "", f.Readers.Node, "readers is one exact pointer, relative to the record, at the member of a collection that names it (R14)", "collection: …, readers: /shared_with")
	}
	r.FaultIf(o.Names && (o.Label != writ.System || o.Keys), f.Names.Node, "names belongs to a value, beside the member of a collection, that the server guarantees (R14)", "label: system")
	r.FaultIf(o.Unique && (o.Label != writ.System || o.Keys || c.Effect != Read), f.Unique.Node, "unique belongs to a value of a read's, beside the member of a collection, that the server itself gives to one record alone (R9)", "effect: read, label: system")
	r.searched(&o, c, f)
	r.ranks(&o, f)
	switch o.Lifetime = r.duration(f.Lifetime, "lifetime: 10m"); {
	case f.OneShot.Is != f.Lifetime.Given():
		r.Fault(f.Node, "one_shot: true and lifetime belong together (R19)", "one_shot: true, lifetime: 10m")
	case f.OneShot.Is && o.Label != writ.System:
		r.Fault(f.OneShot.Node, "what vouches for nothing does not vouch once", "label: system")
	}
	r.FaultIf(o.Keys && o.Extract != provenance.NoExtract && o.Extract != provenance.ExtractJSON, f.Keys.Node, "lines have no keys, nor does a tree of names", "")
	return o, r.Count() == before
}

// place compiles at, in and block.
func (r *reader) place(o *provenance.OutputRule, f *outputFile) {
	o.Block = f.Block.N
	_, o.InText = pick(r, f.In, map[string]bool{"text": true})
	switch {
	case f.At.Given() && f.In.Given():
		r.Fault(f.At.Node, "at and in exclude each other", "at points into structuredContent, in: text into the content blocks")
	case !f.At.Given() && !f.In.Given():
		r.Fault(f.Node, "the output has no place", "at: /pointer, or in: text")
	case f.At.Given():
		o.At = r.pattern(f.At)
	}
	if f.Block.Given() && !f.In.Given() {
		r.Fault(f.Block.Node, "block needs in: text", "in: text")
	} else {
		r.FaultIf(o.Block > 1000, f.Block.Node, "block is between 0 and 1000", "")
	}
}

// searched compiles matches, on and looked_up, each one argument of a read (R9).
func (r *reader) searched(o *provenance.OutputRule, c *Contract, f *outputFile) {
	elsewhere := o.InText || o.Extract != provenance.NoExtract || o.Keys || c.Effect != Read
	if f.Matches.Given() {
		if at := r.pattern(f.Matches); !single(at) {
			r.Fault(f.Matches.Node, "matches is the exact pointer of one argument", "matches: /query")
		} else {
			o.Matches = at.Source
			r.FaultIf(elsewhere, f.Matches.Node, "matches belongs to a value in structuredContent, of a read", "effect: read")
		}
	}
	if f.On.Given() {
		if at := r.pattern(f.On); !single(at) || at.Source == o.Matches {
			r.Fault(f.On.Node, "on is the exact pointer of one argument, another one than the output matches", "matches: /query, on: /date")
		} else {
			o.On = at.Source
			r.FaultIf(elsewhere && o.Matches == "", f.On.Node, "on belongs to a value in structuredContent, of a read", "effect: read")
		}
	}
	if f.LookedUp.Given() {
		if at := r.pattern(f.LookedUp); !single(at) {
			r.Fault(f.LookedUp.Node, "looked_up is the exact pointer of one argument", "looked_up: /user")
		} else {
			o.LookedUp = at.Source
			r.FaultIf(o.Collection == "" || o.Label != writ.System || o.Keys || c.Effect != Read, f.LookedUp.Node, "looked_up belongs to the member of a collection that a read gives for a name (R9)", "effect: read, label: system, collection: …")
		}
	}
}

// ranks compiles `ranks:` (R9).
func (r *reader) ranks(o *provenance.OutputRule, f *outputFile) {
	for i := range f.Ranks.Items {
		k := &f.Ranks.Items[i]
		if k.Node == nil || k.Node.Kind != strictyaml.Mapping {
			continue
		}
		if !k.By.Given() || !k.Most.Given() && !k.Least.Given() {
			r.Fault(k.Node, "a rank says by what, and what users call the most or the least of it", "{ by: /size, most: [delete the largest file] }")
			continue
		}
		by := r.pattern(k.By)
		r.FaultIf(!single(by), k.By.Node, "by is one exact pointer, relative to the record", "/size")
		for _, w := range []strictyaml.Words{k.Most, k.Least} {
			if phrases := r.plain(w); len(phrases) > 0 {
				o.Ranks = append(o.Ranks, provenance.Rank{By: by.Tokens, Phrases: phrases, Least: w.Node == k.Least.Node})
			}
		}
	}
	r.FaultIf(len(o.Ranks) > 0 && (!o.Authoritative || o.Collection == "" || o.Extract != provenance.NoExtract || o.InText || o.Keys), f.Ranks.Node, "ranks tell the records of a whole list apart: on the member of a collection, in structuredContent, of a list the server makes of its own", "collection: …, authoritative: true")
}

func (r *reader) pattern(t strictyaml.String) provenance.Pattern {
	if t.Node.Kind != strictyaml.Text {
		return provenance.Pattern{} // a fault already
	}
	at, err := provenance.ParsePattern(t.S)
	if err != nil {
		r.Fault(t.Node, "not a pointer: "+err.Error(), "/items/*/id")
	}
	return at
}

// extractor compiles extract, pattern and pointer.
func (r *reader) extractor(o *provenance.OutputRule, f *outputFile) {
	o.Extract, _ = pick(r, f.Extract, extractWords)
	lines := o.Extract == provenance.ExtractLines
	switch patterned := lines || o.Extract == provenance.ExtractStart; {
	case f.Pattern.Given() && !patterned:
		r.Fault(f.Pattern.Node, "pattern needs extract: lines, or start", "extract: lines")
	case f.Pattern.Given():
		o.Pattern = r.textPattern(f.Pattern, lines)
	case patterned:
		r.Fault(f.Extract.Node, "extract: "+f.Extract.S+" needs a pattern whose group 1 is the value", `pattern: '\[FILE\] (.+)'`)
	}
	switch isJSON := o.Extract == provenance.ExtractJSON; {
	case f.Pointer.Given() && !isJSON:
		r.Fault(f.Pointer.Node, "pointer needs extract: json", "extract: json")
	case f.Pointer.Given():
		o.Pointer = r.pattern(f.Pointer)
	case isJSON:
		r.Fault(f.Extract.Node, "extract: json needs a pointer", "pointer: /items/*/id")
	}
}

// textPattern anchors a pattern so that it matches a whole line or nothing
// (R33), or what a text begins with. Flags inside it stay inside it.
func (r *reader) textPattern(t strictyaml.String, whole bool) *regexp.Regexp {
	if t.Node.Kind != strictyaml.Text {
		return nil
	}
	if _, err := regexp.Compile(t.S); err != nil {
		r.Fault(t.Node, "the pattern is not a regular expression of RE2", "no look-around and no back-references")
		return nil
	}
	if size, err := schema.PatternSize(t.S); err != nil || size > 2_000 {
		r.Fault(t.Node, "the pattern is too large", "")
		return nil
	}
	end := ""
	if whole {
		end = "$"
	}
	re, err := regexp.Compile("^(?:" + t.S + ")" + end)
	switch {
	case err != nil:
		r.Fault(t.Node, "the pattern is not a regular expression of RE2", "")
		return nil
	case re.NumSubexp() < 1:
		r.Fault(t.Node, "the pattern has no group 1, which is the value", "put brackets around the value: (.+)")
	}
	return re
}

// joined compiles join. Where the contract lists arguments, it is one of them;
// else the tool's schema must have it, which the catalogue checks.
func (r *reader) joined(o *provenance.OutputRule, c *Contract, f *outputFile) {
	if !f.Join.Given() {
		r.FaultIf(o.Extract == provenance.ExtractTree, f.Extract.Node, "extract: tree needs join, the argument that is the directory of its names", "join: /path")
		return
	}
	if o.Extract != provenance.ExtractLines && o.Extract != provenance.ExtractTree {
		r.Fault(f.Join.Node, "join bounds the names that lines are taken apart into, and would bound nothing here", "extract: lines or tree, or remove join")
		return
	}
	at := r.pattern(f.Join)
	if !single(at) {
		r.Fault(f.Join.Node, "join is the exact pointer of one argument", "join: /path")
		return
	}
	o.HasJoin, o.Join = true, at.Tokens
	declared, known := false, false
	for a := range c.everyArg {
		declared, known = true, known || a.At.Match(at.Tokens)
	}
	r.FaultIf(declared && !known, f.Join.Node, "join names an argument this contract does not declare", "add it to args")
	r.FaultIf(o.Type != provenance.Untyped && o.Type != provenance.Path, f.Join.Node, "join gives a path, and the output's type is another", "type: path")
}

// strictArg leaves out of an argument's rule what profile strict does not
// know: STTI-001 has prior tool output and nothing else.
func (r *reader) strictArg(key *strictyaml.Node, f *argFile, a *ArgRule) {
	if a.FromDefault {
		a.From = []Source{{Kind: FromOutput}}
	}
	a.From = slices.DeleteFunc(a.From, func(s Source) bool { return s.Kind != FromOutput })
	r.WarnIf(len(a.From) < len(f.From.Items), key, "profile strict accepts output alone: the other sources of this argument are off", "")
	if a.Local || a.Composed {
		a.Local, a.Composed = false, false
		r.Warn(key, "profile strict knows no content: "+f.Content.S, "")
	}
}

// references checks what one contract says of another: the outputs its
// arguments name must be there, with that pointer.
func (r *reader) references(p *Policy, f *toolFile) {
	check := func(m strictyaml.Map[argFile]) {
		for _, e := range m.Entries {
			for _, s := range e.Value.From.Items {
				if s.valid && s.ref.Given() {
					r.reference(p, s.ref, s.kind.Value == "said_by")
				}
			}
		}
	}
	check(f.Args)
	for _, k := range f.Cases.Items {
		check(k.body.Args)
	}
}

func (r *reader) reference(p *Policy, t strictyaml.String, origin bool) {
	tool, pointer, has := strings.Cut(t.S, "#")
	at, err := provenance.ParsePattern(pointer)
	if err != nil {
		return // a fault already
	}
	c := p.Contracts[tool]
	switch {
	case c == nil:
		r.Fault(t.Node, "no contract of this policy has that name; the rule can never match", "declare the tool whose output it is")
	case has && !slices.ContainsFunc(c.Outputs, func(o provenance.OutputRule) bool { return standsAt(&o, at) }):
		r.Fault(t.Node, "that contract has no output there; the rule can never match", "add it to the outputs of "+tool)
	case origin && slices.ContainsFunc(c.Outputs, func(o provenance.OutputRule) bool { return standsAt(&o, at) && o.Label < writ.Party }):
		r.Fault(t.Node, "anyone can write what stands there, so it says of nobody that he spoke (R12)", "label: party, where the server authenticates the sender")
	}
}

package gate

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/writ-project/writ/provenance"
)

// outputs compiles `outputs:`. In profile strict an output that needs an
// extractor labels nothing, and a warning says so.
func (r *reader) outputs(p *Policy, c *Contract, f *toolFile) {
	if len(f.Outputs.items) > maxRules {
		r.fault(f.Outputs.node, "more than 500 outputs of one tool", "")
		return
	}
	for i := range f.Outputs.items {
		o, ok := r.output(p, c, &f.Outputs.items[i])
		if !ok {
			continue
		}
		ties := func(before provenance.OutputRule) bool { return provenance.Conflict(before, o) }
		if slices.ContainsFunc(c.Outputs, ties) {
			r.fault(f.Outputs.items[i].node, "the output ties with another of this tool: some leaf would have two labels", "make one of them exact, or remove it")
		}
		if p.Profile == Strict && (o.InText || o.Extract != provenance.NoExtract) {
			r.warn(f.Outputs.items[i].node, "profile strict knows no extractor: this output labels nothing", "")
			continue
		}
		c.Outputs = append(c.Outputs, o)
		r.outputAt[c] = append(r.outputAt[c], f.Outputs.items[i].node)
	}
}

func (r *reader) output(p *Policy, c *Contract, f *outputFile) (o provenance.OutputRule, ok bool) {
	if f.node == nil || f.node.Kind != yaml.MappingNode {
		return o, false
	}
	before := len(r.faults)
	o.Authoritative, o.Keys, o.Secret, o.Creates = f.Authoritative.is, f.Keys.is, f.Secret.is, f.Creates.is
	o.Block = f.Block.n
	if _, isText := pick(r, f.In, map[string]bool{"text": true}); isText {
		o.InText = true
	}
	switch {
	case f.At.given() && f.In.given():
		r.fault(f.At.node, "at and in exclude each other", "at points into structuredContent, in: text into the content blocks")
	case !f.At.given() && !f.In.given():
		r.fault(f.node, "the output has no place", "at: /pointer, or in: text")
	case f.At.given():
		o.At = r.pattern(f.At)
	}
	if f.Block.given() && !f.In.given() {
		r.fault(f.Block.node, "block needs in: text", "in: text")
	} else if o.Block > 1000 {
		r.fault(f.Block.node, "block is between 0 and 1000", "")
	}
	if !f.Label.given() {
		r.fault(f.node, "the output has no label", "label: system, party or external")
	}
	if f.Label.s == "user" || f.Label.s == "operator" {
		r.fault(f.Label.node, "a tool's output is at most system: "+f.Label.s+" is bound by other channels", "label: system")
	} else {
		o.Label, _ = pick(r, f.Label, labelWords)
	}
	o.Type, _ = pick(r, f.Type, typeWords)
	o.Collection = r.collection(p, f.Collection)
	r.extractor(&o, f)
	r.joined(&o, c, f)
	if f.Owner.given() {
		at := r.pattern(f.Owner)
		if o.HasOwner, o.Owner = true, at.Tokens; !at.Exact() {
			r.fault(f.Owner.node, "owner is one exact pointer, relative to the record", "/owner")
		}
	}
	if o.Keys && o.Extract == provenance.ExtractLines {
		r.fault(f.Keys.node, "lines have no keys", "")
	}
	return o, len(r.faults) == before
}

func (r *reader) pattern(t text) provenance.Pattern {
	if t.node.ShortTag() != "!!str" {
		return provenance.Pattern{} // a fault already
	}
	at, err := provenance.ParsePattern(t.s)
	if err != nil {
		r.fault(t.node, "not a pointer: "+err.Error(), "/items/*/id")
	}
	return at
}

// extractor compiles extract, pattern and pointer.
func (r *reader) extractor(o *provenance.OutputRule, f *outputFile) {
	o.Extract, _ = pick(r, f.Extract, extractWords)
	switch lines := o.Extract == provenance.ExtractLines; {
	case f.Pattern.given() && !lines:
		r.fault(f.Pattern.node, "pattern needs extract: lines", "extract: lines")
	case f.Pattern.given():
		o.Pattern = r.linePattern(f.Pattern)
	case lines:
		r.fault(f.Extract.node, "extract: lines needs a pattern whose group 1 is the value", `pattern: '\[FILE\] (.+)'`)
	}
	switch isJSON := o.Extract == provenance.ExtractJSON; {
	case f.Pointer.given() && !isJSON:
		r.fault(f.Pointer.node, "pointer needs extract: json", "extract: json")
	case f.Pointer.given():
		o.Pointer = r.pattern(f.Pointer)
	case isJSON:
		r.fault(f.Extract.node, "extract: json needs a pointer", "pointer: /items/*/id")
	}
}

// linePattern anchors a pattern so that it matches a whole line or nothing
// (R33). Flags inside it stay inside it.
func (r *reader) linePattern(t text) *regexp.Regexp {
	if t.node.ShortTag() != "!!str" {
		return nil
	}
	if _, err := regexp.Compile(t.s); err != nil {
		r.fault(t.node, "the pattern is not a regular expression of RE2", "no look-around and no back-references")
		return nil
	}
	if size, err := compileRE2(t.s); err != nil || size.size > 2_000 {
		r.fault(t.node, "the pattern is too large", "")
		return nil
	}
	re, err := regexp.Compile("^(?:" + t.s + ")$")
	switch {
	case err != nil:
		r.fault(t.node, "the pattern is not a regular expression of RE2", "")
		return nil
	case re.NumSubexp() < 1:
		r.fault(t.node, "the pattern has no group 1, which is the value", "put brackets around the value: (.+)")
	}
	return re
}

// joined compiles join. Where the contract lists arguments, it is one of them;
// else the tool's schema must have it, which the catalogue checks.
func (r *reader) joined(o *provenance.OutputRule, c *Contract, f *outputFile) {
	if !f.Join.given() {
		return
	}
	at := r.pattern(f.Join)
	if len(at.Tokens) == 0 || !at.Exact() {
		r.fault(f.Join.node, "join is the exact pointer of one argument", "join: /path")
		return
	}
	o.HasJoin, o.Join = true, at.Tokens
	declared, known := false, false
	for a := range c.everyArg {
		declared, known = true, known || a.At.Match(at.Tokens)
	}
	if declared && !known {
		r.fault(f.Join.node, "join names an argument this contract does not declare", "add it to args")
	}
	if o.Keys {
		r.fault(f.Join.node, "join and keys exclude each other", "")
	}
	if o.Type != provenance.Untyped && o.Type != provenance.Path {
		r.fault(f.Join.node, "join gives a path, and the output's type is another", "type: path")
	}
}

// strictArg leaves out of an argument's rule what profile strict does not
// know: STTI-001 has prior tool output and nothing else.
func (r *reader) strictArg(key *yaml.Node, f *argFile, a *ArgRule) {
	if a.FromDefault {
		a.From = []Source{{Kind: FromOutput}}
	}
	a.From = slices.DeleteFunc(a.From, func(s Source) bool { return s.Kind != FromOutput })
	if len(a.From) < len(f.From.items) {
		r.warn(key, "profile strict accepts output alone: the other sources of this argument are off", "")
	}
	if a.Local {
		a.Local = false
		r.warn(key, "profile strict knows no content: local", "")
	}
}

// references checks what one contract says of another: the outputs its
// arguments name must be there, with that pointer.
func (r *reader) references(p *Policy, f *toolFile) {
	check := func(m mapping[argFile]) {
		for _, e := range m.entries {
			for _, s := range e.value.From.items {
				if s.valid && s.ref.given() {
					r.reference(p, s.ref)
				}
			}
		}
	}
	check(f.Args)
	for _, k := range f.Cases.items {
		check(k.body.Args)
	}
}

func (r *reader) reference(p *Policy, t text) {
	tool, pointer, has := strings.Cut(t.s, "#")
	at, err := provenance.ParsePattern(pointer)
	if err != nil {
		return // a fault already
	}
	c := p.Contracts[tool]
	switch {
	case c == nil:
		r.fault(t.node, "no contract of this policy has that name; the rule can never match", "declare the tool whose output it is")
	case has && !slices.ContainsFunc(c.Outputs, func(o provenance.OutputRule) bool { return overlap(o.At, at) }):
		r.fault(t.node, "that contract has no output there; the rule can never match", "add it to the outputs of "+tool)
	}
}

func overlap(a, b provenance.Pattern) bool { return a.Ties(b) || a.Beats(b) || b.Beats(a) }

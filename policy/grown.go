package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/provenance"
)

// # What a person allowed from now on
//
// A policy grows by lines that say what a person said "from now on" to: an output
// that vouches for an argument, one exact value of an argument, one exact call, or that
// our own people alone make members of a collection. They stand in a file of their own,
// grown.yaml beside the policy, and are read behind it, as its last key: what is in
// force, and on record, is one text. No line holds a wildcard that the policy does
// not have, and none adds to an enum, a control or a secret.

// Grown is one such line.
type Grown struct {
	Tool   string          `json:"tool,omitempty"`   // server/tool of the argument
	Arg    string          `json:"arg,omitempty"`    // its pointer, as the contract writes it
	From   string          `json:"from,omitempty"`   // server/tool#/pointer, of an output that is system
	In     string          `json:"in,omitempty"`     // "text": of the JSON that the first text of the result is as a whole
	Writes string          `json:"writes,omitempty"` // or "ours": of one that is external, and our own people alone write there; or "server"
	Const  json.RawMessage `json:"const,omitempty"`  // or one exact value
	Call   json.RawMessage `json:"call,omitempty"`   // or of the tool: the arguments of one call, with its free texts or
	Texts  []string        `json:"texts,omitempty"`  // without these, which are not empty: their pointers, sorted
	On     string          `json:"on,omitempty"`     // of a tool whose acts are done at a place (Contract.Where): the host of that, where Call, or any call of it, is done
	Closed string          `json:"closed,omitempty"` // or a collection
	By     string          `json:"by,omitempty"`     // who said so
	At     string          `json:"at,omitempty"`     // RFC 3339
}

// WritesOurs is the one word of Grown.Writes. It raises one output for one argument: what
// stands whole there, and nothing but its label speaks against, vouches for that
// argument as if the contract called it system, and of a closed collection, for that is
// what the person was asked: who can write this field. Elsewhere, and in what follows
// from the act, it stays what it is.
const WritesOurs = "ours"

// WritesServer is the other word of Grown.Writes, of a field that nobody writes: the server
// gives what stands there itself, an id or a number that it makes up, and our own people
// alone have it make one. It is WritesOurs of what can be such a value alone
// (provenance.Fact.Minted), and of that what an act sent to that server is not read back in
// the field (R38), nor does a read that named nothing lower it (R4).
const WritesServer = "server"

// InText is the one word of Grown.In, with Grown.Writes alone. Such a line declares the field
// as well, as external, where the contract of its tool names nothing but fields of that
// text: most servers answer in JSON that stands in a text, and publish no schema of it.
const InText = "text"

// Same reports whether two lines allow the same, whoever said so.
func (g Grown) Same(o Grown) bool {
	return g.Tool == o.Tool && g.Arg == o.Arg && g.From == o.From && g.In == o.In && g.Writes == o.Writes && bytes.Equal(g.Const, o.Const) && bytes.Equal(g.Call, o.Call) && slices.Equal(g.Texts, o.Texts) && g.On == o.On && g.Closed == o.Closed
}

// destructive are the words by which a value says that something is destroyed.
var destructive = []string{"delete", "deletes", "drop", "drops", "truncate", "remove", "removes", "destroy", "purge", "wipe", "erase", "clear", "clean", "reset", "prune",
	"overwrite", "replace", "discard", "uninstall", "kill", "rm", "rmdir", "del", "unlink", "shred", "grant", "revoke", "hard", "force"}

// Destroying reports whether a value of a call, or the pointer of a flag, speaks of destroying
// something: no such call is kept.
func Destroying(said string) bool {
	return slices.ContainsFunc(text.NameWords(said), func(w string) bool { return slices.Contains(destructive, w) })
}

// committing are the words by which the name of what is clicked on says that something is paid, ended or
// made over, in the languages of the lexicon.
var committing = []string{"pay", "buy", "order", "purchase", "checkout", "transfer", "donate", "unsubscribe", "cancel", "withdraw", "sell", "trade", "bid", "deactivate", "disable", "terminate", "close", "money", "payment", "tip",
	"kaufen", "kauf", "bestellen", "bezahlen", "zahlen", "zahlungspflichtig", "spenden", "überweisen", "kündigen", "löschen", "entfernen", "stornieren", "abbestellen",
	"acheter", "payer", "commander", "donner", "virer", "annuler", "résilier", "supprimer", "comprar", "pagar", "donar", "transferir", "anular", "cancelar", "eliminar", "borrar",
	"acquista", "acquistare", "compra", "paga", "pagare", "ordina", "ordinare", "dona", "annulla", "elimina", "eliminare", "excluir", "doar",
	"kopen", "koop", "betalen", "betaal", "bestel", "doneren", "doneer", "overmaken", "annuleren", "annuleer", "opzeggen", "verwijderen", "verwijder"}

// Committing reports whether the name of what is clicked on speaks of paying, ending or destroying something: a person
// looks at each.
func Committing(name string) bool {
	return Destroying(name) || strings.Contains(strings.ReplaceAll(strings.ToLower(name), " ", ""), "checkout") ||
		slices.ContainsFunc(text.NameWords(name), func(w string) bool { return slices.Contains(committing, w) })
}

// Line is which output a line lets vouch for which argument, where it does.
func (g Grown) Line() provenance.Line {
	return provenance.Line{Tool: g.Tool, Arg: g.Arg, From: g.From, In: g.In, Writes: g.Writes}
}

// Lifts reports whether the lines of a policy hold one of each: whatever rests on them
// counts as if they had been in force when a person said yes to it (R38).
func (p *Policy) Lifts(rests [][]provenance.Line) bool {
	return p != nil && len(rests) > 0 && !slices.ContainsFunc(rests, func(one []provenance.Line) bool {
		return !slices.ContainsFunc(p.Grown, func(g Grown) bool { return g.From != "" && slices.Contains(one, g.Line()) })
	})
}

// WithLine is lines with one more, unless it is there.
func WithLine(lines []Grown, g Grown) []Grown {
	if slices.ContainsFunc(lines, g.Same) {
		return lines
	}
	return append(lines, g)
}

// GrownText is grown.yaml: one line for each.
func GrownText(lines []Grown) []byte {
	var b bytes.Buffer
	b.WriteString("grown:\n")
	for _, g := range lines {
		var line bytes.Buffer
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		_ = e.Encode(g) // strings and checked JSON
		b.WriteString("  - " + line.String())
	}
	if len(lines) == 0 {
		return nil
	}
	return b.Bytes()
}

// WithGrown is a policy's text with what grown.yaml has behind it, and the number of
// the line before that.
func WithGrown(source, grown []byte) (all []byte, lines int) {
	if len(grown) == 0 {
		return source, 0
	}
	source = slices.Concat(bytes.TrimRight(source, "\n"), []byte("\n"))
	return slices.Concat(source, grown), bytes.Count(source, []byte("\n"))
}

// With returns the policy as it would be if more lines stood behind it. It is not ok
// where one of them is none that may.
func (p *Policy) With(lines []Grown) (*Policy, bool) {
	text := GrownText(lines)
	if len(p.Grown) > 0 { // the key is there, the last one
		text = bytes.TrimPrefix(text, []byte("grown:\n"))
	}
	source, _ := WithGrown(p.Source, text)
	grown, faults := Parse("policy", source)
	return grown, len(faults) == 0
}

// Grew reports whether a policy is another one with lines behind it that a person kept since:
// written as GrownText does, each with who said so and when. Nothing else is another.
func (p *Policy) Grew(from *Policy) bool {
	is, own := p.apart()
	was, ownToo := from.apart()
	n := len(from.Grown)
	return own && ownToo && bytes.Equal(is, was) && len(p.Grown) > n && bytes.HasPrefix(GrownText(p.Grown), GrownText(from.Grown)) &&
		!slices.ContainsFunc(p.Grown[n:], func(g Grown) bool { return !g.kept() })
}

// apart is the text before the grown lines, ok where these are written as GrownText does.
func (p *Policy) apart() (text []byte, ok bool) {
	return bytes.CutSuffix(slices.Concat(bytes.TrimRight(p.Source, "\n"), []byte("\n")), GrownText(p.Grown))
}

// kept reports whether a line says who said so and when.
func (g Grown) kept() bool { return g.By != "" && g.At != "" }

// Lineage are the digests of the policy and of those that it Grew from, the newest first: what a
// person said under one of them he said under no less than this one allows. Of a text that ended
// in several newlines before its first line that line is none of it.
func (p *Policy) Lineage() [][sha256.Size]byte {
	out := [][sha256.Size]byte{p.Digest}
	text, own := p.apart()
	for n := len(p.Grown); own && n > 0 && p.Grown[n-1].kept(); n-- {
		source, _ := WithGrown(text, GrownText(p.Grown[:n-1]))
		if out = append(out, sha256.Sum256(source)); n == 1 {
			out = append(out, sha256.Sum256(bytes.TrimSuffix(source, []byte("\n"))))
		}
	}
	return out
}

type grownFile struct {
	strictyaml.Place
	Tool   strictyaml.String   `yaml:"tool"`
	Arg    strictyaml.String   `yaml:"arg"`
	From   strictyaml.String   `yaml:"from"`
	In     strictyaml.String   `yaml:"in"`
	Writes strictyaml.String   `yaml:"writes"`
	Const  strictyaml.Anything `yaml:"const"`
	Call   strictyaml.Anything `yaml:"call"`
	Texts  strictyaml.Words    `yaml:"texts"`
	On     strictyaml.String   `yaml:"on"`
	Closed strictyaml.String   `yaml:"closed"`
	By     strictyaml.String   `yaml:"by"`
	At     strictyaml.String   `yaml:"at"`
}

// grow adds the grown lines to what was compiled.
func (r *reader) grow(p *Policy, f *policyFile) {
	for i := range f.Grown.Items {
		g := &f.Grown.Items[i]
		if g.Node.Kind != strictyaml.Mapping {
			continue // a fault already
		}
		line := Grown{Tool: g.Tool.S, Arg: g.Arg.S, From: g.From.S, In: g.In.S, Writes: g.Writes.S, On: g.On.S, Closed: g.Closed.S, By: g.By.S, At: g.At.S}
		switch {
		case !r.grownForm(p, g): // a fault already
		case g.Closed.Given():
			c, ok := p.Collections[g.Closed.S]
			if !ok {
				r.Fault(g.Closed.Node, "the collection "+strictyaml.Word(g.Closed.S)+" is not declared", "writ grown remove")
				break
			}
			c.Closed = true
			p.Collections[g.Closed.S] = c
		case g.Call.Given() || g.On.Given():
			if g.Call.Given() {
				line.Call, _ = r.JSON(g.Call.Node)
			}
			for _, at := range g.Texts.Items {
				line.Texts = append(line.Texts, at.S)
			}
			r.growCall(p, g, &line)
		default:
			if g.Const.Given() {
				line.Const, _ = r.JSON(g.Const.Node)
			}
			r.growArg(p, g, &line)
		}
		p.Grown = append(p.Grown, line)
	}
}

// grownForm reports whether a line has the form of one.
func (r *reader) grownForm(p *Policy, g *grownFile) bool {
	whole := g.Call.Place
	if !whole.Given() {
		whole = g.On.Place
	}
	kinds := slices.DeleteFunc([]strictyaml.Place{g.From.Place, g.Const.Place, whole, g.Closed.Place}, func(k strictyaml.Place) bool { return !k.Given() })
	switch {
	case len(kinds) != 1 || g.Tool.Given() == g.Closed.Given() || g.Arg.Given() != (g.From.Given() || g.Const.Given()):
		r.Fault(g.Node, "a grown line is of an argument and its from or const, of a tool and a call or where its calls are done, or of a collection that is closed", "writ grown list")
	case g.Writes.Given() && (g.Writes.S != WritesOurs && g.Writes.S != WritesServer || !g.From.Given()):
		r.Fault(g.Writes.Node, "writes is of a from, and says ours or server", "writes: ours")
	case g.Texts.Given() && !g.Call.Given():
		r.Fault(g.Texts.Node, "texts are those that a call was kept without", "writ grown remove")
	case g.In.Given() && (g.In.S != InText || !g.Writes.Given()):
		r.Fault(g.In.Node, "in is of a from that says writes: ours, and says text", "in: text, writes: ours")
	case p.Profile == Strict:
		r.Fault(g.Node, "profile strict knows no grown lines", "remove it")
	default:
		return true
	}
	return false
}

// ours reports whether an output is the one that a source names and that a person may
// say of that our own people alone write there.
func (s Source) ours(o provenance.OutputRule) bool {
	at := o.At
	if o.InText {
		at = o.Pointer
	}
	return s.HasAt && o.InText == s.InText && at.Source == s.At.Source && o.WholeExternal() && !slices.Contains(prose, last(at))
}

// fieldOfText adds the output that a line declares, unless it is there. What the contract
// says otherwise of the tool's results is not to be mixed with it: a text that is no JSON
// would make all of it worth nothing (R33).
func (r *reader) fieldOfText(c *Contract, s *Source, node *strictyaml.Node) {
	o := provenance.OutputRule{InText: true, Extract: provenance.ExtractJSON, Pointer: s.At, Label: writ.External, Unasked: true}
	other := func(have provenance.OutputRule) bool {
		return !have.InText || have.Block != 0 || have.Extract != provenance.ExtractJSON || provenance.Conflict(have, o)
	}
	if !s.HasAt || len(s.At.Tokens) == 0 || slices.ContainsFunc(c.Outputs, s.ours) || len(c.Outputs) >= maxRules || slices.ContainsFunc(c.Outputs, other) {
		return
	}
	c.Outputs = append(c.Outputs, o)
	r.outputAt[c] = append(r.outputAt[c], node)
}

// nowhere is said of a line from before the contract said where its acts are done.
const nowhere = "where it is done decides what this call does, and the line does not say where: it lets nothing pass"

// growCall adds a call to those that a person allowed.
func (r *reader) growCall(p *Policy, g *grownFile, line *Grown) {
	c, args := p.Contracts[g.Tool.S], []byte(nil)
	if strictjson.KindOf(line.Call) == strictjson.Object {
		args, _ = strictjson.Canonical(line.Call)
	}
	switch {
	case c == nil:
		r.Fault(g.Tool.Node, "the policy has no contract for "+strictyaml.Word(g.Tool.S), "writ grown remove")
	case c.Method != CallTool || args == nil && g.Call.Given():
		r.Fault(g.Call.Node, "a call is the arguments of a tool, an object", "writ grown remove")
	case g.On.Given() && line.On == "":
		r.Fault(g.On.Node, "where calls are done is a host", "writ grown remove")
	case line.On != "" && len(c.Where) == 0:
		r.Fault(g.On.Node, "the contract of "+strictyaml.Word(g.Tool.S)+" does not say where its calls are done", "writ grown remove")
	case line.On == "" && len(c.Where) > 0: // of before it said so: wherever it is done was not asked
		r.Warn(g.Node, nowhere, "writ grown remove")
	default:
		c.Kept = append(c.Kept, KeptCall{args, slices.Sorted(slices.Values(line.Texts)), line.On})
	}
}

// growArg adds a source to an argument.
func (r *reader) growArg(p *Policy, g *grownFile, line *Grown) {
	c := p.Contracts[g.Tool.S]
	at, _ := provenance.ParsePattern(g.Arg.S)
	switch {
	case c == nil:
		r.Fault(g.Tool.Node, "the policy has no contract for "+strictyaml.Word(g.Tool.S), "writ grown remove")
		return
	case len(at.Tokens) == 0:
		r.Fault(g.Arg.Node, "not a pointer to an argument", "/to/*")
		return
	}
	if g.Const.Given() && len(c.Where) > 0 {
		r.Warn(g.Node, nowhere, "writ grown remove")
		return
	}
	s, ok := Source{Kind: FromConst, Const: [][]byte{line.Const}, Grown: true}, true
	if g.From.Given() {
		s, ok = r.grownOutput(p, g)
	}
	if !ok {
		return
	}
	lists := [][]ArgRule{c.Args}
	for _, k := range c.Cases {
		lists = append(lists, k.Args)
	}
	found := false
	for _, rules := range lists {
		if i := slices.IndexFunc(rules, func(a ArgRule) bool { return a.At.Source == at.Source }); i >= 0 {
			found = true
			r.growRule(&rules[i], s, g.Arg.Node)
		}
	}
	if !found && len(c.Args) < maxRules && !strings.Contains(at.Source, "*") {
		c.Args = append(c.Args, ArgRule{At: at, From: append(DefaultSources(Target), s), Line: c.Line, Col: c.Col})
	} else if !found {
		r.Fault(g.Arg.Node, "the contract has no rule for that argument", "writ grown remove")
	}
}

// growRule adds a source to the rule of an argument.
func (r *reader) growRule(a *ArgRule, s Source, at *strictyaml.Node) {
	if a.Role == Enum || a.Role == Control || a.Role == SecretRole || a.Role == Content || s.Ours && a.Role == Query {
		r.Fault(at, "an argument of role "+a.Role.String()+" grows nothing: it is the operator's to change", "writ grown remove")
		return
	}
	a.From, a.FromDefault = append(slices.Clone(a.From), s), false
}

// grownOutput is the source of a line that names an output, where that may vouch.
func (r *reader) grownOutput(p *Policy, g *grownFile) (s Source, ok bool) {
	s = Source{Kind: FromOutput, Ours: g.Writes.Given(), Minted: g.Writes.S == WritesServer, InText: g.In.Given()}
	if !r.outputRef(g.From, &s) {
		return s, false
	}
	from := p.Contracts[s.Server+"/"+s.Tool]
	if s.InText && from != nil {
		r.fieldOfText(from, &s, g.Node)
	} else {
		r.reference(p, g.From, false)
	}
	vouches := s.ours
	if !s.Ours {
		vouches = func(o provenance.OutputRule) bool {
			return o.Label >= writ.System && (!s.HasAt || o.At.Source == s.At.Source || o.InText)
		}
	}
	switch {
	case from == nil || slices.ContainsFunc(from.Outputs, vouches):
		return s, true
	case s.Ours:
		r.Fault(g.From.Node, "writes: "+g.Writes.S+" is of one output that the contract calls external, as it stands: no text, key or secret", "writ grown remove")
	default:
		r.Fault(g.From.Node, "that output is what others can write: it vouches for nothing, from now on neither", "writ grown remove")
	}
	return s, false
}

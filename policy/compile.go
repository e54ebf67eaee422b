package policy

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/money"
	"github.com/writ-project/writ/internal/schema"
	"github.com/writ-project/writ/internal/statement"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/provenance"
)

var (
	pinForm        = text.Pattern(`^sha256:[0-9a-f]{64}$`)
	collectionName = text.Pattern(`^[A-Za-z0-9_.-]{1,64}$`)
)

// maxRules bounds the rules of one call, and with them the pairs that are
// compared.
const maxRules = 500

// compile turns what was read into a policy, and notes every fault of meaning
// on the way. The policy is only used when there is none.
func (r *reader) compile(f *policyFile) *Policy {
	p := &Policy{Profile: Standard, Collections: map[string]Collection{}, Contracts: map[string]*Contract{}, goes: map[string]Source{}, stores: map[string][]string{}}
	r.FaultIf(f.Version.Valid && f.Version.N != 1, f.Version.Node, "this version reads policies of version 1", "version: 1")
	if v, ok := pick(r, f.Profile, map[string]Profile{"standard": Standard, "strict": Strict}); ok {
		p.Profile = v
	}
	if v, ok := pick(r, f.Pins, map[string]bool{"required": false, "optional": true}); ok && v {
		p.PinsOptional = true
		r.Warn(f.Pins.Node, "pins are optional: a tool whose definition changes stays open (R26)", "pins: required")
	}
	if n := f.ApprovalsPerSession; n.Valid {
		p.ApprovalsPerSession = &n.N
		r.FaultIf(n.N > 10_000, n.Node, "approvals_per_session is between 0 and 10000", "")
	}
	for _, e := range f.Collections.Entries {
		r.FaultIf(!collectionName().MatchString(e.Key.Value), e.Key, "the name of a collection is letters, digits, _, - and .", "")
		v := &e.Value
		p.Collections[e.Key.Value] = Collection{Closed: v.Closed.Is, MayHoldSecrets: v.MayHoldSecrets.Is, Called: r.called(&v.Called)}
		r.FaultIf(v.MayHoldSecrets.Is && !v.Closed.Is, v.MayHoldSecrets.Node, "what strangers can enter may hold no secret (R30)", "closed: true")
	}
	r.FaultIf(!f.Tools.Given() && f.Node.Kind == strictyaml.Mapping, f.Node, "the key tools is missing", "tools: {}")
	for _, e := range f.Tools.Entries {
		if c := r.contract(p, e.Key, &e.Value); c != nil {
			p.Contracts[e.Key.Value] = c
		}
	}
	r.grow(p, f)
	r.stores(p, f)
	for _, e := range f.Tools.Entries {
		r.references(p, &e.Value)
		r.setFields(p, e.Key.Value, &e.Value)
	}
	return p
}

// contract compiles one entry of tools.
func (r *reader) contract(p *Policy, key *strictyaml.Node, f *toolFile) *Contract {
	if f.Node.Kind != strictyaml.Mapping {
		return nil // a fault already
	}
	c := &Contract{Line: key.Line, Col: key.Column}
	c.Server, c.Tool, _ = strings.Cut(key.Value, "/")
	method := Method(c.Tool)
	switch {
	case !strings.Contains(key.Value, "/"):
		r.Fault(key, "a tool is named server/tool", "")
		return nil
	case c.Server == OwnServer:
		r.Fault(key, "the tools of this server are Writ's own, and so are their contracts", "remove it")
		return nil
	case !ServerName(c.Server):
		r.Fault(key, "the server's name does not match "+ServerNames, "")
		return nil
	case method.Judged():
		c.Method = method
	case strings.Contains(c.Tool, "/"):
		r.Fault(key, "after the server stands a tool without /, or one of "+strings.Join(slices.Sorted(maps.Keys(methods)), ", "), "")
		return nil
	case !ToolName(c.Tool):
		r.Fault(key, "the tool's name does not match "+ToolNames, "tool patterns are not allowed: one tool, one contract")
		return nil
	}
	c.Closed, c.Optional = f.Closed.Is, f.Optional.Is
	if f.Pin.Given() {
		if c.Pin = f.Pin.S; !pinForm().MatchString(c.Pin) {
			r.Fault(f.Pin.Node, "a pin is sha256: and 64 hexadecimal digits in lower case", "writ tools approve "+key.Value)
		} else if c.Method != CallTool {
			r.Fault(f.Pin.Node, "a method has no definition that could be pinned", "remove the pin")
		}
	}
	if c.NoArgs, _ = pick(r, f.NoArgs, noArgsWords); !f.NoArgs.Given() {
		c.NoArgs = NoArgsApproval
	}
	c.Contested, _ = pick(r, f.Contested, map[string]Contested{"accept": ContestedAccepted, "ask": ContestedAsks, "refuse": ContestedRefused})
	if f.Idempotent.Given() {
		c.Idempotent = &f.Idempotent.Is
	}
	if k := f.IdempotencyKey; k.Given() {
		path, err := strictjson.ParsePointer(k.S)
		switch {
		case err != nil || len(path) != 1:
			r.Fault(k.Node, "the key is one argument, by its pointer", "idempotency_key: /idempotency_key")
		case f.Idempotent.Given() && f.Idempotent.Is:
			r.Fault(k.Node, "an act that may be made again and again needs no key", "remove idempotent: true")
		default:
			c.OnceBy, c.Idempotent = path[0], new(bool)
		}
	}
	r.effects(c, key, f)
	if c.Notice = f.Notice.Is; c.Notice && (c.Effect&Send == 0 || c.Effect&(Write|Delete) == 0 || c.Effect&(Egress|Transfer|Auth) != 0) {
		r.Fault(f.Notice.Node, "notice is of an act that changes a record, and sends nothing but word of that to those who stand in it (R29)", "effect: [write, send]")
	}
	if c.Overrules, _ = pick(r, f.Annotations, map[string]bool{"overruled": true}); c.Overrules && c.Pin == "" {
		r.Fault(f.Annotations.Node, "annotations: overruled is of a definition that somebody looked at, so it needs a pin", "writ tools approve "+key.Value)
		c.Overrules = false
	}
	c.Args = r.args(p, f.Args, nil)
	r.cases(p, c, f)
	r.reads(c, f)
	c.Plain, _ = pick(r, f.Arguments, map[string]bool{"plain": true})
	r.bindings(p, c, f)
	r.within(c)
	r.where(p, c, f)
	r.composites(c, f)
	c.Phrases = r.phrases(f.Phrases)
	r.saying(c, f)
	r.budgets(c, f)
	r.outputs(p, c, f)
	r.sets(p, c, f)
	if f.OutputSchema.Given() {
		c.OutputSchema = r.outputSchema(f.OutputSchema.Node)
	}
	r.whole(p, c)
	return c
}

// effect reads `effect:`.
func (r *reader) effect(w strictyaml.Words) Effect {
	var e Effect
	for _, t := range w.Items {
		v, _ := pick(r, t, effectWords)
		r.FaultIf(v != 0 && e&v != 0, t.Node, strictyaml.Word(t.S)+" stands twice", "remove one")
		e |= v
	}
	r.FaultIf(emptyList(w.Place), w.Node, "an empty list names no effect", "leave the tool out: unknown counts as every effect")
	return e
}

func (r *reader) effects(c *Contract, key *strictyaml.Node, f *toolFile) {
	c.Effect = r.effect(f.Effect)
	switch {
	case f.Cases.Given() && f.Effect.Given():
		r.Fault(f.Effect.Node, "effect and cases exclude each other", "a value no case names has every effect; give each case its own")
	case f.Cases.Given():
		c.Effect = EveryEffect
	case c.Method.Judged() && !f.Effect.Given():
		if c.Effect = Read; c.Method.Acts() {
			c.Effect = Egress
		}
	case c.Method.Acts() && c.Effect != 0 && c.Effect&Egress == 0:
		r.Fault(f.Effect.Node, "this method is at least egress (R32)", "effect: egress")
	case !f.Effect.Given():
		r.Fault(key, "the tool has no effect", "effect: "+strings.Join(slices.Sorted(maps.Keys(effectWords)), ", "))
	}
	if v, ok := pick(r, f.Assumed, map[string]Effect{"delete": Delete}); ok && f.Effect.Given() && c.Effect&v != 0 {
		c.Assumed = v
	} else if ok {
		r.Fault(f.Assumed.Node, "assumed: delete is of an effect that has it", "effect: [write, delete]")
	}
}

// args compiles argument rules; beside are those they stand beside.
func (r *reader) args(p *Policy, m strictyaml.Map[argFile], beside []ArgRule) []ArgRule {
	var out []ArgRule
	if len(m.Entries)+len(beside) > maxRules {
		r.Fault(m.Node, "more than 500 rules for one call", "")
		return nil
	}
	for _, e := range m.Entries {
		at, err := provenance.ParsePattern(e.Key.Value)
		switch {
		case strings.HasPrefix(e.Key.Value, "answers:"):
			r.Fault(e.Key, "an answer inside a call has no rule: it is a target, for which only what a tool returned vouches (R31)", "remove it")
			continue
		case err != nil:
			r.Fault(e.Key, "not a pointer: "+err.Error(), "/to/*")
			continue
		case len(at.Tokens) == 0 && !e.Value.Open.Is:
			r.Fault(e.Key, "the empty pointer names the arguments as a whole; it can only be open: true", "")
			continue
		}
		for _, o := range append(beside[:len(beside):len(beside)], out...) {
			if at.Ties(o.At) {
				r.Fault(e.Key, "the pattern ties with "+strictyaml.Word(o.At.Source)+": some argument would have two rules", "make one of them exact")
			}
		}
		out = append(out, r.arg(p, e.Key, at, &e.Value))
	}
	return out
}

// arg compiles one argument's rule.
func (r *reader) arg(p *Policy, key *strictyaml.Node, at provenance.Pattern, f *argFile) ArgRule {
	a := ArgRule{At: at, MaxItems: f.MaxItems.N, Normalise: f.Normalise.Is, Steers: f.Steers.Is, Sorts: f.Sorts.Is, EndsDay: f.EndsDay.Is, AnyHour: f.AnyHour.Is, Header: f.Header.Is, Place: f.Site.Is, One: f.One.Is, Makes: f.Makes.Is, Shows: f.Shows.Is, Missing: f.Missing.S, Open: f.Open.Is, Owner: f.Owner.consts, Line: key.Line, Col: key.Column}
	a.Role, _ = pick(r, f.Role, roleWords)
	a.Type, _ = pick(r, f.Type, typeWords)
	a.Collection = r.collection(p, f.Collection)
	if stays, ok := pick(r, f.Content, map[string]bool{"local": true, "open": false, "label": false}); ok {
		if a.Role == Content {
			a.Local, a.Composed, a.Label = stays, !stays, f.Content.S == "label"
		} else {
			r.Fault(f.Content.Node, "content: "+f.Content.S+" belongs to the role content", "role: content")
		}
	}
	if !f.From.Given() {
		a.From, a.FromDefault = DefaultSources(a.Role), true
	}
	r.FaultIf(emptyList(f.From.Place), f.From.Node, "an empty list of sources accepts nothing", "leave from out for the role's default")
	a.Words, a.Units, a.Orders = r.words(f.Words, true, "words: [file, document]"), r.words(f.Units, false, "units: [shares]"), r.orders(f.Orders)
	a.OwnerUser = f.Owner.user
	r.extensions(f, &a)
	r.begins(f, &a)
	for _, t := range f.Forms.Items {
		if form := money.Form(t.S); t.Node.Kind == strictyaml.Text && !slices.Contains(money.Forms, form) && form != money.Round {
			r.Fault(t.Node, "unknown form "+strictyaml.Word(t.S), "a+b, a-b, a*b, a*p%, a*p%+c or round(a)")
		} else {
			a.Forms = append(a.Forms, form)
		}
	}
	if f.Max.Given() {
		a.Max = r.decimal(f.Max)
	}
	r.fits(f, &a)
	for i := range f.From.Items {
		if s, ok := r.source(p, &a, &f.From.Items[i]); ok {
			a.From = append(a.From, s)
		}
	}
	r.agrees(f, &a)
	for _, w := range []strictyaml.Words{f.Words, f.Units, f.Orders} {
		r.FaultIf(w.Given() && !slices.ContainsFunc(a.From, func(s Source) bool { return s.Kind == FromUser }), w.Node, "words are those of the user, and this argument does not accept him", "from: [user]")
	}
	if p.Profile == Strict {
		r.strictArg(key, f, &a)
	}
	return a
}

// fits holds the words of an argument to the roles that they belong to.
func (r *reader) fits(f *argFile, a *ArgRule) {
	for _, w := range []struct {
		given         bool
		at            strictyaml.Place
		roles         []Role
		message, hint string
	}{
		{a.Steers, f.Steers.Place, []Role{Control, Target}, "what steers a call is a control, or a target", "role: control"},
		{a.AnyHour, f.AnyHour.Place, []Role{TimeRole}, "a day has hours in the role time", "role: time"},
		{a.Place, f.Site.Place, []Role{Control}, "where an act is done that has no target is a control", "role: control"},
		{a.Header, f.Header.Place, []Role{Content}, "header belongs to the role content: what has authority is one line", "role: content"},
		{a.EndsDay, f.EndsDay.Place, []Role{TimeRole}, "a day ends in the role time", "role: time"},
		{len(a.Units) > 0, f.Units.Place, []Role{Amount}, "units belong to the role amount", "role: amount"},
		{len(a.Forms) > 0, f.Forms.Place, []Role{Amount}, "forms belong to the role amount", "role: amount"},
		{f.Max.Given(), f.Max.Place, []Role{Amount}, "max bounds the role amount", "role: amount"},
	} {
		r.FaultIf(w.given && !slices.Contains(w.roles, a.Role), w.at.Node, w.message, w.hint)
	}
	ordered := slices.Contains([]Role{Target, Selector, Content, SecretRole}, a.Role) && !a.Composed && !a.Local
	r.FaultIf(len(a.Orders) > 0 && !ordered, f.Orders.Node, "an order is of a thing or of a text that the user gives (R9)", "role: selector, or role: content with from: [user]")
	r.FaultIf(a.One && len(a.Orders) == 0, f.One.Node, "one is of what the user orders (R9)", "orders: [add … to], one: true")
	member := (a.Role == Target || a.Role == Selector) && a.Collection != ""
	r.FaultIf(a.Shows && !member, f.Shows.Node, "what a read shows is a target or a selector, and the member of a collection (R9)", "role: selector, collection: …")
	r.FaultIf(f.Missing.Given() && (!a.Shows || len(a.Missing) < 3), f.Missing.Node, "missing is what the result of a read that shows several things says of one that is not there (R9)", `shows: true, missing: ": Error - "`)
	r.FaultIf(a.Makes && !member, f.Makes.Node, "what an act makes is a target or a selector, and the member of a collection (R13)", "role: target, collection: …")
	r.FaultIf(a.Normalise && a.Type == provenance.Untyped, f.Normalise.Node, "normalise needs a type: only a declared form can be canonical", "type: path")
	r.FaultIf(f.MaxItems.Valid && (f.MaxItems.N < 1 || f.MaxItems.N > 100_000), f.MaxItems.Node, "max_items is between 1 and 100000", "")
}

// DefaultSources are the sources of an argument of that role whose `from` is
// left out.
func DefaultSources(role Role) []Source {
	switch role {
	case Enum:
		return []Source{{Kind: FromCatalog}}
	case Control:
		return []Source{{Kind: FromUser}, {Kind: FromConst}} // of no constants
	}
	return []Source{{Kind: FromUser}, {Kind: FromOutput}}
}

// maxWords bounds the words of one argument as they are written, maxExpanded what they stand for.
const (
	maxWords    = 24
	maxExpanded = 1024
)

// wordForm is one word as it stands in a sentence, or a few with a blank between, or two such with
// others between them, of any
// length: counted repetition of a class that large is a program of 1.2 MB.
var wordForm = text.Pattern(`^\pL[\pL\pN_-]*(?: [\pL\pN_-]+)*(?: … [\pL\pN_-]+(?: [\pL\pN_-]+)*)?$`)

// words compiles `words:`, of which one may be the sign of a number, `units:` and `orders:`.
func (r *reader) words(f strictyaml.Words, numbered bool, example string) []string {
	var out []string
	for _, w := range f.Items {
		all := []string{w.S}
		if strings.ContainsAny(w.S, "()<>|?") {
			if why := provenance.PhraseFault(w.S); why != "" {
				r.Fault(w.Node, "no words can be read from it: "+why, example)
				continue
			}
			all = provenance.Phrases(w.S, maxExpanded+1)
		}
		r.FaultIf(len(all) > maxExpanded, w.Node, "it stands for more than 1024 words", "")
		for _, s := range all {
			switch {
			case w.Node.Kind != strictyaml.Text: // a fault already
			case s == provenance.Numbered && numbered:
				out = append(out, s)
			case utf8.RuneCountInString(s) > 64 || len(all) == 1 && utf8.RuneCountInString(s) > 32 || !wordForm().MatchString(s):
				r.Fault(w.Node, "words are letters, digits, - and _, with one blank between, and begin with a letter", example)
			case slices.Contains(out, s):
				r.FaultIf(len(all) == 1, w.Node, strictyaml.Word(s)+" stands twice", "remove one")
			default:
				out = append(out, s)
			}
		}
	}
	r.FaultIf(emptyList(f.Place) || len(f.Items) > maxWords || len(out) > maxExpanded, f.Node, "between 1 and 24 words", example)
	return out
}

// source compiles one item of `from:`.
func (r *reader) source(p *Policy, a *ArgRule, f *sourceFile) (s Source, ok bool) {
	if !f.valid {
		return s, false
	}
	s.Kind, s.Const, s.Op = sourceWords[f.kind.Value], f.cons.Items, f.op.S
	if f.ref.Given() {
		f.valid = r.outputRef(f.ref, &s)
	}
	chooses := a.Role == Target || a.Role == Selector
	switch s.Kind {
	case FromOutput:
		s.Phrases = r.phrases(f.said)
		r.FaultIf(f.said.Given() && len(s.Phrases) == 0, f.said.Node, "an empty list of phrases accepts nothing", "phrases: [push it]")
		for _, t := range f.until.Items {
			s.Until = append(s.Until, r.leads(p, t)...)
		}
		r.FaultIf(f.until.Given() && (!s.HasAt || len(s.Until) == 0), f.until.Node, "until lists the tools by whose calls what one output says may be over", "{ output: git/status#/branch, phrases: [push it], until: [git/checkout] }")
		return s, f.valid
	case FromSaidBy:
		if f.valid {
			r.FaultIf(!s.HasAt, f.ref.Node, "said_by names the field that says who speaks", "said_by: server/tool#/from")
			r.FaultIf(a.Type == provenance.Untyped || !chooses && a.Role != Amount && a.Role != TimeRole, f.kind, "said_by is for a target, a selector, an amount or a time that has a type: one value of that type is what was asked (R12)", "type: decimal")
		}
	case FromNamed:
		s.Phrases = r.plain(f.said)
		f.valid = f.valid && len(s.Phrases) > 0
		r.FaultIf(f.valid && !s.HasAt, f.ref.Node, "of_named names the field such values stand in", "of_named: server/tool#/people/*/email")
		r.FaultIf(!chooses, f.kind, "of_named is for a target or a selector: one of those whom a record lists (R12)", "role: target")
	case FromCatalog:
		r.FaultIf(a.Role != Enum, f.kind, "catalog vouches for the role enum only (R7)", "role: enum, or from: [{const: [...]}]")
	case FromConst:
		s.Phrases = r.phrases(f.said)
		r.FaultIf(slices.ContainsFunc(s.Const, func(c []byte) bool {
			_, _, why := provenance.Canonical(a.Type, strictjson.Of(c))
			return why != ""
		}), f.kind, "a constant is no single value of the argument's type, and can never match", "")
	case FromDerived:
		s.Phrases = r.derived(a, f)
	}
	return s, f.valid
}

// derived holds a value that follows from others to the argument it is for, and returns
// the orders by which the user leaves it to the agent.
func (r *reader) derived(a *ArgRule, f *sourceFile) (phrases []string) {
	untyped, fresh := a.Type == provenance.Untyped, f.op.S == FreshName
	switch {
	case f.op.S == Due:
		r.FaultIf(a.Role != Amount, f.kind, "what is due is an amount (R11)", "role: amount")
	case f.op.S == Element:
		phrases = r.orders(f.said)
		r.FaultIf(slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(p, " … ") }), f.said.Node, "a name has no order of two parts", "{ derived: element, phrases: [send] }")
		r.FaultIf(len(phrases) == 0 || len(a.Orders) == 0 || a.Role != Target || !untyped, f.kind, "what is clicked on is called by the user's orders, or an order to click is of it (R28)",
			"{ derived: element, phrases: [send] }, orders: [click]")
	case !untyped && a.Type != provenance.Path:
		r.Fault(f.kind, f.op.S+" gives a path, and the argument's type is another", "type: path")
	case fresh && (len(a.Begins) > 0 || f.said.Given()):
		phrases = r.phrases(f.said)
		r.FaultIf(len(phrases) == 0 || len(a.Begins) == 0 || len(a.In) == 0 || len(a.Extensions) > 0 || !untyped, f.kind,
			"a name that needs no list is one the user orders, begins as the contract lists, and is of what an act makes in what other arguments say (R36)",
			"{ derived: fresh, phrases: [make a branch] }, begins: [fix-], makes: true, in: [/repo]")
	case fresh && len(a.Extensions) == 0:
		r.Fault(f.kind, "a name that the agent makes up ends in one of the extensions the contract lists (R36)", "extensions: [.txt]")
	}
	return phrases
}

func (r *reader) outputRef(t strictyaml.String, s *Source) bool {
	tool, pointer, has := strings.Cut(t.S, "#")
	s.Server, s.Tool, _ = strings.Cut(tool, "/")
	if !ServerName(s.Server) || !Method(s.Tool).Judged() && !ToolName(s.Tool) {
		r.Fault(t.Node, "an output is named server/tool#/pointer", "")
		return false
	}
	if s.HasAt = has; has {
		at, err := provenance.ParsePattern(pointer)
		if err != nil {
			r.Fault(t.Node, "after # stands a pointer: "+err.Error(), "server/tool#/pointer")
			return false
		}
		s.At = at
	}
	return true
}

func (r *reader) collection(p *Policy, t strictyaml.String) string {
	if _, ok := p.Collections[t.S]; !ok && t.Given() {
		r.Fault(t.Node, "the collection "+strictyaml.Word(t.S)+" is not declared",
			"collections: { "+strictyaml.Word(t.S)+": {} }, or { closed: true } where only your own side can add to it: then what is listed in it may be a target")
	}
	return t.S
}

// cases compiles `cases:`: all by one argument, no value twice.
func (r *reader) cases(p *Policy, c *Contract, f *toolFile) {
	seen := map[string]bool{}
	first := ""
	for i := range f.Cases.Items {
		k := &f.Cases.Items[i]
		if k.at == nil {
			continue
		}
		if first == "" {
			first = k.at.Value
			if !r.caseAt(c, k.at) {
				continue
			}
		}
		r.FaultIf(k.at.Value != first, k.at, "all cases of a tool are told apart by the same argument", strictyaml.Word(first)+": [...]")
		r.caseValues(&k.values, seen)
		out := Case{Values: k.values.Items, Effect: r.effect(k.body.Effect), Line: k.at.Line, Col: k.at.Column}
		r.FaultIf(!k.body.Effect.Given(), k.at, "the case has no effect", "effect: read")
		out.Args = r.args(p, k.body.Args, c.Args)
		out.Phrases = r.phrases(k.body.Phrases)
		c.Cases = append(c.Cases, out)
	}
	r.FaultIf(emptyList(f.Cases.Place), f.Cases.Node, "an empty list of cases", "remove it")
}

// caseAt reads the pointer of the argument that tells the cases apart.
func (r *reader) caseAt(c *Contract, n *strictyaml.Node) bool {
	at, err := provenance.ParsePattern(n.Value)
	if err != nil || !at.Exact() {
		r.Fault(n, "cases are told apart by one exact pointer", "/method")
		return false
	}
	c.CaseAt = at.Tokens
	for _, a := range c.Args {
		r.FaultIf(a.At.Match(at.Tokens) && a.Role != Enum && a.Role != Control, n, "cases are told apart by an enum or a control, and this argument has another role", "role: enum")
	}
	return true
}

// caseValues holds the values of one case to those that were seen.
func (r *reader) caseValues(values *strictyaml.Constants, seen map[string]bool) {
	for i, v := range values.Items {
		n, val := values.Node.Items[min(i, len(values.Node.Items)-1)], string(v)
		if canonical, err := strictjson.Canonical(v); err == nil {
			val = string(canonical)
		}
		kind := strictjson.KindOf(v)
		r.FaultIf(kind == strictjson.Object || kind == strictjson.Array, n, "a case's value is a plain value", "")
		r.FaultIf(seen[val], n, "the value stands in two cases", "remove one")
		seen[val] = true
	}
}

// leads compiles a tool whose calls lead on to where other acts are done; none where it is no such.
func (r *reader) leads(p *Policy, t strictyaml.String) []Source {
	var s Source
	if t.Node.Kind != strictyaml.Text || !r.outputRef(t, &s) {
		return nil
	}
	key := s.Server + "/" + s.Tool
	if was, is := p.goes[key]; s.HasAt && !single(s.At) || is && was.At.Source != s.At.Source {
		r.Fault(t.Node, "where an act is done is said by one argument of a tool, by its exact pointer, alike in all contracts", "server/tool#/url")
		return nil
	}
	p.goes[key] = s
	return []Source{s}
}

// where compiles `where:`.
func (r *reader) where(p *Policy, c *Contract, f *toolFile) {
	for _, t := range f.Where.Items {
		c.Where = append(c.Where, r.leads(p, t)...)
	}
	if k := f.Among; k.Given() {
		path, err := strictjson.ParsePointer(k.S)
		if err != nil || len(path) != 1 || !f.Where.Given() {
			r.Fault(k.Node, "among is one argument beside where, by its pointer: it says on which of several pages the act is", "among: /page_id")
		} else {
			c.Among = path[0]
		}
	}
	for _, n := range r.reaching {
		r.FaultIf(!f.Where.Given(), n, "an order reaches through its sentence where a place says whose it is", "where: [server/tool#/url]")
	}
	r.reaching = nil
	itself := slices.ContainsFunc(c.Where, func(s Source) bool { return s.Server == c.Server && s.Tool == c.Tool })
	for a := range c.everyArg {
		r.FaultIf((!itself || c.Among != "") && slices.ContainsFunc(a.From, func(s Source) bool { return s.Op == Element }), f.Node,
			"what is clicked on stands on the one page that is listed, until a click may have led on: where names this tool too, and nothing says which page it is", "where: ["+c.Server+"/"+c.Tool+"]")
	}
	r.FaultIf(f.Where.Given() && !c.Effect.Gated(), f.Where.Node, "a read is done wherever it is asked for", "effect: write")
}

// reads compiles `reads:` and `parts:`.
func (r *reader) reads(c *Contract, f *toolFile) {
	c.ReadsAt, c.ReadsIn = r.statement(f.Reads, "reads", !f.Cases.Given() && c.Effect.Gated(), "reads says which calls of a tool that acts only read, by its effect and not by cases")
	if at, in := r.statement(f.Parts, "parts", c.Effect.Gated(), "parts are of a tool that acts"); at != nil {
		r.FaultIf(len(at) > 1, f.Parts.Node, "parts are of a statement that is an argument", "parts: { /query: sqlite }")
		c.PartsAt, c.PartsIn = at[0], in
		for a := range c.everyArg {
			r.FaultIf(a.Normalise && len(a.At.Tokens) > 1 && a.At.Tokens[0] == at[0], f.Parts.Node, "what stands in a statement is sent as it came, in no other form", "leave normalise out")
		}
	}
}

// statement is where one in SQL stands, and whose.
func (r *reader) statement(m strictyaml.Map[strictyaml.String], word string, fits bool, otherwise string) (path []string, in statement.Dialect) {
	for i, e := range m.Entries {
		at, _ := provenance.ParsePattern(e.Key.Value)
		d, ok := pick(r, e.Value, map[string]statement.Dialect{"sqlite": statement.SQLite, "postgres": statement.Postgres})
		switch {
		case !single(at):
			r.Fault(e.Key, "the statement stands in one argument, by its exact pointer", "/query")
		case i > 0:
			r.Fault(e.Key, "one argument holds the statement", "remove one")
		case !fits:
			r.Fault(e.Key, otherwise, "effect: [write, delete]")
		case ok:
			path, in = at.Tokens, d
		}
	}
	r.FaultIf(m.Given() && m.Node.Kind == strictyaml.Mapping && len(m.Entries) == 0, m.Node, "an empty mapping names no statement", word+": { /query: postgres }")
	return path, in
}

// outputSchema reads a schema written as YAML or as a text of JSON.
func (r *reader) outputSchema(n *strictyaml.Node) []byte {
	b, ok := []byte(n.Value), true
	if n.Kind != strictyaml.Text {
		b, ok = r.JSON(n)
	}
	if !ok {
		return nil
	}
	if _, err := schema.Compile(b); err != nil {
		r.Fault(n, "the output schema is unusable: "+err.Error(), "")
		return nil
	}
	return b
}

// Maker is an argument, in whatever case, that names what the act makes of a collection in
// what others say (R36), nil for none.
func (c *Contract) Maker(collection string) (maker *ArgRule) {
	for a := range c.everyArg {
		if len(a.In) > 0 && a.Collection == collection {
			maker = a
		}
	}
	return maker
}

// everyArg returns the rules of a contract and of all its cases with the
// effect each is under.
func (c *Contract) everyArg(yield func(a *ArgRule, e Effect) bool) {
	if c.CaseAt == nil {
		for i := range c.Args {
			if !yield(&c.Args[i], c.Effect) {
				return
			}
		}
		return
	}
	for _, k := range c.Cases {
		for _, rules := range [][]ArgRule{c.Args, k.Args} {
			for i := range rules {
				if !yield(&rules[i], k.Effect) {
					return
				}
			}
		}
	}
}

// whole checks what concerns the contract as a whole.
func (r *reader) whole(p *Policy, c *Contract) {
	if c.Plain && (c.CaseAt != nil || c.Effect != Read) {
		r.FaultAt(c.Line, c.Col, "arguments: plain belongs to a read: what acts is judged by its args", "effect: read")
	}
	root := false
	for a := range c.everyArg {
		root = root || (a.Role == Target || a.Role == Selector) && p.Collections[a.Collection].Closed
	}
	for a, e := range c.everyArg {
		for _, s := range a.From {
			switch {
			case s.Kind == FromSaidBy && e&(Delete|Auth) != 0:
				r.FaultAt(a.Line, a.Col, "said_by vouches for no deletion and no grant (R12)", "")
			case s.Kind == FromNamed && e&(Transfer|Delete|Auth) != 0:
				r.FaultAt(a.Line, a.Col, "of_named vouches for no payment, no deletion and no grant (R12)", "")
			case s.Kind == FromSeen && e&^Read != Egress:
				r.FaultAt(a.Line, a.Col, "seen vouches under the effect egress alone (R20)", "effect: egress")
			}
		}
		if a.Local && e&^(Read|Write|Delete) != 0 {
			r.FaultAt(a.Line, a.Col, "content: local belongs to a tool nobody outside reads: effect write, nothing more (R14)", "")
		} else if a.Local && !root {
			r.FaultAt(a.Line, a.Col, "content: local needs a target of a closed collection beside it (R14)", "collections: { path: { closed: true } }")
		}
	}
}

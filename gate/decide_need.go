package gate

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// unheld is said alike of what was seen and of what was not: which of the two it is
// helps who guesses, and nobody else.
const unheld = "nothing that this argument accepts holds this value"

// needs says, for each reason this package gives, what would make the call
// pass. It speaks of tools and sources, never of values (R24).
var needs = map[writ.Reason]string{
	writ.NameUnknown:   "no tool of that name is listed; list the tools and call one of those, or ask the user whether another should be opened",
	writ.NameAmbiguous: "several tools share that name; an operator must tell them apart",
	writ.NameForbidden: "no contract of the operator allows this tool",
	writ.NameChanged:   "the tool's definition is not the one that was approved; an operator must review it",
	writ.NameUnpinned:  "the tool's definition was not approved yet; an operator must review it",

	writ.PayloadNotObject: "must be a JSON object",
	writ.PayloadSyntax:    "must be strict JSON: UTF-8, one value, no member name twice",
	writ.PayloadTooLarge:  "must be smaller",
	writ.PayloadTooDeep:   "must be less deeply nested",
	writ.PayloadNumber:    "must use shorter number literals",

	writ.SchemaUnknownField: "must not be given; the schema does not name it",
	writ.SchemaMissingField: "must be given",
	writ.SchemaUnusable:     "the tool's own schema cannot be used; an operator must review it",
	writ.SchemaInvalid:      "must be as the schema says",

	writ.FormNotCanonical: "must be in the canonical form of its type",
	writ.FormInvisible:    "must hold no invisible, control or direction-changing character",
	writ.FormMixedScript:  "must not mix scripts",
	writ.FormTooMany:      "must hold fewer elements; split the call",
	writ.FormDuplicate:    "must not stand twice in its list",
	writ.FormBrings:       "is a directory that holds dot-files or settings files of version control, continuous integration or an agent; a person must say that it is written to",
	writ.FormDotFile:      "must not be a dot-file or a settings file of version control, continuous integration or an agent, nor a directory that brings one; a person must write it",

	writ.ProvenanceUnseen:     unheld,
	writ.ProvenanceLabel:      unheld,
	writ.ProvenanceSource:     unheld,
	writ.ProvenanceReflected:  unheld + " but what may repeat the text of a call",
	writ.ProvenanceOneShot:    "is good for one act and a short time, and was used or is too old; have it issued again",
	writ.ProvenanceSmall:      "is too short to be recognised without its collection",
	writ.ProvenanceOpenTarget: "was seen only in a collection that anyone can add to, which cannot name a target",
	writ.ProvenanceDerived:    "must be a listed directory joined with a listed name",
	writ.ProvenanceAnchor:     "is of a record that would be destroyed, and the user did not name it",
	writ.ProvenanceConst:      "must be one of the operator's constants",
	writ.ProvenanceCatalog:    "must be a value that the tool's own definition lists",
	writ.ProvenanceOrder:      "was named by the user, who ordered nothing of it",
	writ.ProvenanceKey:        "is a name the schema does not give and was not seen where this call accepts it",
	writ.ProvenanceAtom:       "holds what nothing in this session vouches for",
	writ.ProvenanceReader:     "is free text, which goes only where the user said: he types the address, path or id, or what only that record holds",
	writ.ProvenanceSecret:     "is free text, and a secret was read in this session, which it could carry; in a session of its own it passes",
	writ.ProvenanceFull:       "was seen nowhere that still counts: what tools lately returned found no room in this session's evidence; go on in another one, or an operator gives it more room (`evidence_megabytes` in writ.yaml)",
	writ.ProvenanceRecord:     "was shown of another record or in another place than the arguments beside it say; read it there again, or the user types the value",
	writ.ProvenanceSaidBy:     "was asked for by nobody whom the user named in his latest turn, or is not all that he asked for; the user types it, or names one sender",
	writ.ProvenanceSession:    "the call carries no session, so nothing can vouch for it; make it in a session",

	writ.ApprovalPending: "a person was asked and has not answered; nothing was done, and the same call can be made again",
	writ.ApprovalRefused: "a person said no",
	writ.ApprovalExpired: "a person was asked and did not answer in time; nothing was done",

	writ.PolicyAbsent:        "no policy was given, or a catalogue that was not made with it: both come from one policy.Parse and NewCatalogue",
	writ.PolicyNoArguments:   "nothing in this call says whom or what it acts on; a person must allow it, or the operator's contract must",
	writ.PolicyClosed:        "the contract of this tool is closed; an operator must open it",
	writ.PolicyMisdeclared:   "the operator's contract says less of this tool than its definition does; an operator must review it",
	writ.PolicyContested:     "the value also stands where a stranger can write it; a person must decide",
	writ.PolicyPointerClosed: "was guessed at too often; what a tool newly returns or the user types passes, or a person reopens it",
	writ.PolicySessionClosed: "too many values were guessed at in this session; a person must reopen it",
	writ.PolicyRepeated:      "the same act was made before; it must rest on values read after it",
	writ.PolicyBudget:        "the contract allows no more of this in one session, or in this time",
	writ.PolicyCap:           "is more than the contract allows",
	writ.PolicyFetches:       "is the fourth link of one result to one place, and which are fetched can tell it something; the user types it",
	writ.PolicyAnswer:        "an answer given inside a call must itself be a value that a tool returned",

	writ.DirectOwnState: "must not name Writ's own state, configuration or programs, nor what could be one of them; " +
		"give another file by its absolute path, or an operator must keep Writ's files under other names",
	writ.DirectUnresolved: "may name more files than are looked up for one call; give fewer or plainer paths, in several calls",
}

// need says what would make a refused leaf pass: what is missing, and which
// tools could supply it.
func (j *judge) need(l *leaf, r writ.Reason) string {
	s := about(l.pointer, needs[r])
	switch r {
	case writ.ProvenanceConst:
		return s + j.constants(l)
	case writ.PolicyAnswer, writ.PolicyFetches, writ.ProvenanceCatalog, writ.ProvenanceFull:
		return s
	}
	switch r {
	case writ.ProvenanceAtom:
		if s += ": " + l.missing; l.placed {
			s += looked
		}
		return s + "; leave it out, or " + j.say()
	case writ.ProvenanceReader, writ.ProvenanceRecord, writ.ProvenanceSaidBy:
		return s + "; " + j.say()
	case writ.ProvenanceSecret:
		return s
	case writ.ProvenanceOrder:
		return s + ": he has to say " + l.ordering() + "; " + j.say()
	case writ.ProvenanceAnchor:
		if l.rule != nil && len(l.rule.Orders) > 0 {
			return s + "; he has to say " + l.ordering() + "; " + j.say()
		}
		return s + "; the user must type it, or a value that only this record has in a list of its collection that was not narrowed; " + j.say()
	}
	if j.isLocal(l) {
		return about(l.pointer, onceVouched)
	}
	if len(j.unfounded) >= 100 {
		return s // that many failures have said it often enough
	}
	if slices.ContainsFunc(j.sources(l), func(src policy.Source) bool { return src.Op == policy.Element }) {
		return s + callIt
	}
	sent := j.session() != nil && j.session().ledger.Brought(l.typ(), l.value)
	switch {
	case l.placed:
		s += looked
	case (r == writ.ProvenanceReflected || j.standsLowered(l)) && !sent:
		s += "; read it where a call asks for it with no words of its own"
	}
	fresh := l.rule != nil && slices.ContainsFunc(l.rule.From, func(src policy.Source) bool { return src.Op == policy.FreshName })
	k := supplyKey{l.rule, l.key, l.answer, sent, l.isSmall()}
	supply, ok := j.supply[k]
	switch {
	case j.makes(l):
		supply = makesIt
	case !ok:
		supply = j.suppliers(l, sent)
		if j.supply == nil {
			j.supply = map[supplyKey]string{}
		}
		j.supply[k] = supply
	}
	switch {
	case fresh && len(l.rule.Begins) > 0:
		supply += ", or it is a new name that the user left to you in his latest turn (\"" + shown(j.orders(l)) + "\"), one for each time that he does, in small words: it begins with " +
			shown(strings.Join(l.rule.Begins, ", "))
	case fresh && j.in.Session != nil && j.in.Session.ledger.Enumerated(l.value):
		supply += ", or it is a new name in that directory, which was listed: one that was not in it, " + endings(l.rule.Extensions)
	case fresh:
		supply += ", or it is a new name in a directory that was listed whole and had something in it, " + endings(l.rule.Extensions)
	}
	supply += j.makers(l)
	if slices.ContainsFunc(j.leaves, func(o *leaf) bool { return o.rule_ == ruleDue }) && slices.ContainsFunc(j.sources(l), func(src policy.Source) bool { return src.Op == policy.Due }) {
		supply += "; another amount of this call is taken for what is left to pay"
	}
	if !l.answer && !l.key && slices.ContainsFunc(j.sources(l), func(src policy.Source) bool { return src.Kind == policy.FromUser }) {
		switch {
		case r == writ.ProvenanceSmall, provenance.SmallSpace(l.typ(), l.value) && l.collection() == "": // by itself it says nothing
			if l.rule != nil && len(l.rule.Words) > 0 {
				supply += "; the user may type it behind " + someOf(l.rule.Words)
			}
		case l.role == policy.TimeRole && j.session() != nil:
			supply += j.sayTime(l)
		case j.typedAsWords(l) && j.commands(l):
			supply += "; it stands among other words of the user's, who has not said to run it: ask him to type it alone, or to say \"run\" and the command in backticks"
		case j.typedAsWords(l) && l.role == policy.SecretRole:
			supply += "; it stands among other words of the user's: ask him to say right before it what it is: \"the password is …\""
		case j.typedAsWords(l):
			supply += "; it stands among other words of the user's: ask him to set it in quotation marks, or to say before it what it is"
		case j.typedLast(l):
			supply += "; the user typed its last name alone, and the whole path is needed: ask him to type that"
		case supply == noSupplier, supply == makesIt, strings.HasSuffix(supply, tooLate), strings.HasSuffix(supply, wasCalled):
			supply += ", and the user may type it: " + j.sayThere()
		case l.rule != nil && !l.rule.FromDefault:
			supply += ", and the user may type it"
		}
	}
	supply += j.byTag(l, r)
	if j.destroys(l) {
		supply += "; the user also has to name what is destroyed, by this value or by what only its record has"
	}
	return s + "; " + supply
}

// ordering is what the user has to say that orders something of a leaf.
func (l *leaf) ordering() string { return someOf(l.rule.Orders) + ", and right behind it what" }

// someOf are the first of some words of the operator's.
func someOf(words []string) string {
	const most = 3
	var plain []string
	for _, w := range words {
		for _, p := range provenance.PlainPhrases(w, most) {
			plain = append(plain, shown(p))
		}
	}
	return "`" + strings.Join(plain[:min(most, len(plain))], "` or `") + "`"
}

// byTag says that the user may name a record of an open collection behind a #, where what users
// call it is listed beside it (R6).
func (j *judge) byTag(l *leaf, r writ.Reason) string {
	if r == writ.ProvenanceOpenTarget && j.namesBeside(l) {
		return "; the user may call it by its name behind a # as well"
	}
	return ""
}

func (j *judge) namesBeside(l *leaf) bool {
	return l.collection() != "" && slices.ContainsFunc(slices.Collect(maps.Values(j.in.Policy.Contracts)), func(c *policy.Contract) bool {
		return slices.ContainsFunc(c.Outputs, func(o provenance.OutputRule) bool { return o.Collection == l.collection() }) &&
			slices.ContainsFunc(c.Outputs, func(o provenance.OutputRule) bool { return o.Names })
	})
}

// looked is what makes count what stands where another session's act sent words of its own (R38).
const looked = "; an earlier session sent words of its own to where it stands: ask the user to look at what was written and to say so " +
	"(`writ places list`, `writ places clear N`), and read again"

// standsLowered reports whether a value stands at an output that a person raised for its
// argument, and does not count there: a call was asked with it, or an act lowered the place.
func (j *judge) standsLowered(l *leaf) bool {
	s := j.session()
	if s == nil {
		return false
	}
	for _, src := range j.sources(l) {
		if src.Ours && slices.ContainsFunc(s.ledger.Where(j.query(l, policy.Source{}), 16), func(f provenance.Fact) bool {
			return f.Server == src.Server && f.Tool == src.Tool && strings.HasSuffix(f.Rule, src.At.Source) && !f.Intact
		}) {
			return true
		}
	}
	return false
}

// say is how the user is asked to speak in the session (R6): he does it, not the model.
func (j *judge) say() string {
	return "ask the user to type it: " + j.sayThere()
}

// sayTime says how a time misses what the user said of it (R10): nothing else does so of two
// values of one day.
func (j *judge) sayTime(l *leaf) string {
	switch hour, day := j.session().ledger.SaidNear(l.value); {
	case hour:
		return "; the user said it of his own clock: give it without an offset"
	case day:
		return "; the user named that day and not this hour: " + j.sayThere()
	}
	return ", and the user may say the day, and the hour where it has one: " + j.sayThere()
}

// sayThere is where he does where his host does not put on record what he types.
func (j *judge) sayThere() string {
	return sayHead + shown(j.in.Session.id) + sayTail
}

// A need ends with it where it has it.
const (
	sayHead = "`writ session say "
	sayTail = " TEXT` in a terminal of his own"
)

// supplyKey is all that suppliers depends on within one call.
type supplyKey struct {
	rule        *policy.ArgRule
	key, answer bool
	sent        bool
	small       bool
}

// onceVouched is said of a text of the agent's that lacks nothing itself.
const onceVouched = "may be any text once its target is vouched for"

// callIt is said of what would be clicked on.
const callIt = "; list the page anew and whole, on the site that the user named, where one thing alone is called by the words of his order: he says which, as in \"click 'Next page'\", or a person allows it"

// noSupplier is said in the stead of tools whose results could vouch, and tooLate of
// those that could have.
const (
	noSupplier = "no tool of the policy returns such a value"
	tooLate    = ", which vouches for nothing that a call of this session sent before: it counts where it is called first, in another session"
)

// makesIt is said of a name that the call is to give to what it makes, and wasCalled of a tool
// that the session called, whatever it returned.
const (
	makesIt   = "no tool returns a name that is to be new"
	wasCalled = ": called, and nothing that counts of what came back is this value"
)

// makes reports whether a value is the name of what a call is to make, by the words of the tool
// and of the argument: create_entities makes /entities/*/name, create_branch /branch.
func (j *judge) makes(l *leaf) bool {
	tool, named := text.NameWords(toolOf(j.in.Call)), text.NameWords(lastName(l.pointer))
	if len(tool) < 2 || tool[0] != "create" || l.key || l.answer {
		return false
	}
	return slices.Equal(named, []string{"name"}) || slices.Equal(named, tool[1:])
}

// typedLast reports whether the user typed the last name of a path, and nothing of where it is.
func (j *judge) typedLast(l *leaf) bool {
	at := strings.LastIndexByte(l.text, '/')
	if at < 0 || at == len(l.text)-1 || l.typ() != provenance.Path || j.session() == nil {
		return false
	}
	q := j.query(l, policy.Source{Kind: policy.FromUser})
	q.Value, q.Type, q.Named = strictjson.Of(strictjson.Quote(l.text[at+1:])), provenance.Untyped, false
	_, why := j.session().ledger.Typed(q)
	return why == ""
}

// A supplier is a tool with what of its outputs could vouch for a leaf.
type supplier struct{ server, tool, what string }

// suppliersFound are those that the policy has and that are listed now, by what speaks against them.
type suppliersFound struct{ free, called, asked, echoed []supplier }

// suppliers names the tools whose outputs could vouch for a leaf, by the policy and by
// what is listed now. An act, and who has to be asked with a value, return what is worth
// no more than that value, unless the server lists its own records (R4, R5): where there
// is another, they are not named. Of what this session sent all but a server's own records is an echo, and said to be.
func (j *judge) suppliers(l *leaf, sent bool) string {
	const most = 4
	var f suppliersFound
	for _, name := range slices.Sorted(maps.Keys(j.in.Policy.Contracts)) {
		j.find(j.in.Policy.Contracts[name], l, sent, &f)
	}
	if j.in.Call.Method != policy.CallTool {
		for _, m := range []policy.Method{policy.ListResources, policy.ListTemplates, policy.ListPrompts} {
			j.find(MethodContract(j.in.Call.Server, m), l, sent, &f)
		}
	}
	found, first := f.free, ": call it first"
	switch {
	case len(found) > 1:
		first = ": call one of these first"
	case len(found) == 1:
	case len(f.called) > 0:
		found, first = f.called, wasCalled
	case len(f.asked) > 0:
		found, first = f.asked, ", asked with a value that is vouched for itself"
	case len(f.echoed) > 0:
		found, first = f.echoed, tooLate
	default:
		return noSupplier
	}
	var said []string
	for _, k := range found[:min(most, len(found))] {
		said = append(said, "`"+shown(k.tool)+"` of server `"+shown(k.server)+"` returns "+k.what)
	}
	if more := len(found) - most; more > 0 {
		said = append(said, "and "+strconv.Itoa(more)+" more")
	}
	return strings.Join(said, ", ") + first
}

// find adds what one tool could return.
func (j *judge) find(c *policy.Contract, l *leaf, sent bool, f *suppliersFound) {
	name, worth, typed := c.Tool, true, true
	if c.Method == policy.CallTool {
		t := j.in.Catalogue.Lookup(c.Server, c.Tool)
		if elsewhere := t == nil && !c.Closed && !slices.ContainsFunc(j.in.Catalogue.order, func(t *Tool) bool { return t.Server == c.Server }); elsewhere {
			t = &Tool{Public: c.Tool, State: Open} // another process of this session may list it
		}
		if t == nil || t.State != Open {
			return
		}
		acts := c.CaseAt == nil && (c.Effect | t.added).Gated()
		name, worth, typed = cmp.Or(t.Public, c.Tool), !acts && t.InputSchema().Get("required").Len() == 0, t.HasOutputSchema() || t.Raw == nil
	}
	for i := range c.Outputs {
		o := &c.Outputs[i]
		if !j.supplies(c, o, l) || !typed && !o.InText {
			continue
		}
		into, own := &f.free, o.Authoritative && !c.Effect.Gated()
		switch {
		case sent && !own:
			into = &f.echoed
		case !worth && !own:
			into = &f.asked
		case worth && j.session() != nil && j.session().ledger.Returned(c.Server, c.Tool): // asked otherwise another may have it
			into = &f.called
		}
		if k := (supplier{c.Server, name, cmpWord(o)}); !slices.Contains(*into, k) {
			*into = append(*into, k)
		}
	}
}

// cmpWord names what an output returns.
func cmpWord(o *provenance.OutputRule) string {
	switch {
	case o.Collection != "":
		return "`" + shown(o.Collection) + "`"
	case o.Type != provenance.Untyped:
		return "values of type `" + string(o.Type) + "`"
	case o.Extract == provenance.ExtractJSON && o.Pointer.Source != "":
		return "`" + shown(o.Pointer.Source) + "`"
	case o.At.Source == "":
		return "it in its text"
	}
	return "`" + shown(o.At.Source) + "`"
}

// isSmall reports whether a value stands in many places by chance (R8).
func (l *leaf) isSmall() bool { return l.enum || provenance.SmallSpace(l.typ(), l.value) }

// supplies reports whether one output could vouch for a leaf.
func (j *judge) supplies(c *policy.Contract, o *provenance.OutputRule, l *leaf) bool {
	return slices.ContainsFunc(j.sources(l), func(src policy.Source) bool {
		if (o.Label < writ.System) != src.Ours {
			return false
		}
		q := j.query(l, src)
		if q.Target && !j.closedCollection(o.Collection) && (len(q.Owners) == 0 && !q.OwnerTyped || !o.HasOwner) {
			return false
		}
		switch {
		case src.Kind == policy.FromDerived && (src.Op == policy.PathJoin || src.Op == policy.TypedIn):
			return o.HasJoin || o.Type == provenance.Path && (o.Collection == q.Collection || o.Collection == "" || q.Collection == "")
		case src.Kind == policy.FromDerived && src.Op == opTemplate:
			return c.Tool == string(policy.ListTemplates)
		case src.Kind != policy.FromOutput, l.isSmall() && !q.KnowsSmall(o.Collection, o.Type), src.Server != "" && src.Server != c.Server, src.Tool != "" && src.Tool != c.Tool:
			return false
		case src.HasAt:
			return o.At.Overlaps(src.At) || o.Extract == provenance.ExtractJSON && o.Pointer.Overlaps(src.At)
		case o.Collection != "" && q.Collection != "":
			return o.Collection == q.Collection
		}
		return q.Strict || q.Type != provenance.Untyped && q.Type == o.Type
	})
}

// shown spells text that may come from the call or a server so that it cannot
// break out of a line, a quotation or a terminal.
func shown(s string) string {
	q := strconv.QuoteToASCII(s)
	return strings.ReplaceAll(q[1:len(q)-1], "`", `\x60`)
}

// orders is one of the phrases by which the user leaves a name to the agent (R36).
func (j *judge) orders(l *leaf) string {
	for _, src := range l.rule.From {
		if src.Op == policy.FreshName {
			return provenance.PlainPhrase(src.Phrases[0])
		}
	}
	return ""
}

// makers names tools that newly make what an argument names, in what they are told (R36).
func (j *judge) makers(l *leaf) string {
	if l.rule == nil || l.rule.Makes || l.key || !slices.ContainsFunc(l.rule.From, func(src policy.Source) bool { return src.Kind == policy.FromOutput && !src.Ours }) {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(j.in.Policy.Contracts)) {
		c := j.in.Policy.Contracts[name]
		if t := j.in.Catalogue.Lookup(c.Server, c.Tool); c.Server != j.in.Call.Server || t == nil || t.State != Open {
			continue
		} else if a := c.Maker(l.rule.Collection); a != nil {
			var in []string
			for _, at := range a.In {
				in = append(in, shown(at.Source))
			}
			return ", or `" + shown(t.Public) + "` of this session made it, with the same `" + strings.Join(in, "`, `") + "`"
		}
	}
	return ""
}

// constants lists the few that a control or an enum may be; of one that the user has to
// order, how. Those of what says whom or what are not told: who asks could be after them.
func (j *judge) constants(l *leaf) string {
	const most, longest = 8, 40
	var list []string
	for _, src := range j.sources(l) {
		ordered := len(src.Phrases) > 0
		for _, c := range src.Const {
			switch {
			case ordered && provenance.Equal(l.typ(), l.value, strictjson.Of(c)):
				return "; this one where the user orders it: he says `" + shown(provenance.PlainPhrase(src.Phrases[0])) + "`"
			case !ordered && !src.Grown && len(c) <= longest:
				v := string(c)
				if text, is := strictjson.Of(c).Text(); is {
					v = text
				}
				list = append(list, "`"+shown(v)+"`")
			}
		}
	}
	typed := ""
	if _, text := l.value.Text(); text && slices.ContainsFunc(j.sources(l), func(src policy.Source) bool { return src.Kind == policy.FromUser }) {
		typed = ", or the user types it"
	}
	if l.role != policy.Control && l.role != policy.Enum || len(list) == 0 || len(list) > most {
		return typed
	}
	return ": " + strings.Join(list, ", ") + typed
}

// endings says how a name may end that the agent makes up (R36).
func endings(extensions []string) string {
	const most = 4
	some := slices.DeleteFunc(slices.Clone(extensions), func(e string) bool { return e == "" })
	without := len(some) < len(extensions)
	if more := len(some) - most; more > 1 {
		some = append(some[:most], "or one of "+strconv.Itoa(more)+" more")
	}
	switch {
	case len(some) == 0:
		return "which has no dot"
	case without:
		return "which has no dot, or ends in " + shown(strings.Join(some, ", "))
	}
	return "which ends in " + shown(strings.Join(some, ", "))
}

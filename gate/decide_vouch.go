package gate

import (
	"cmp"
	"slices"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/schema"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// undeclared are the sources of an argument the contract does not name;
// outputOnly those of one in profile strict, and of an answer inside a call,
// which the user's turn did not ask for.
var (
	undeclared = policy.DefaultSources(policy.Target)
	outputOnly = []policy.Source{{Kind: policy.FromOutput}}
)

// session is the session whose evidence counts, nil when none does: the call
// carries none, or one in which acts passed that nobody accepted.
func (j *judge) session() *Session {
	if s := j.in.Session; s != nil && s.mode.fits(j.in.Shadow) {
		return s
	}
	return nil
}

// judgeLeaves is the provenance class of an act: every leaf and every key the
// schema does not name is vouched for, or the call fails (R16).
func (j *judge) judgeLeaves() {
	if j.session() == nil {
		j.unfounded = append(j.unfounded, writ.Failure{Reason: writ.ProvenanceSession, Need: needs[writ.ProvenanceSession]})
	}
	// R14: the file a local text goes to is the target, or where the contract
	// declares none, a selector of a closed collection.
	if j.over() {
		j.labelLeaves() // nothing more is said of any value
		return
	}
	declared := slices.ContainsFunc(j.rules, func(r policy.ArgRule) bool { return r.Role == policy.Target })
	vouched, local, open := false, []*leaf(nil), []*leaf(nil)
	for _, l := range j.leaves {
		switch {
		case j.isFree(l) && j.byKept(l):
			continue
		case j.isLocal(l):
			local = append(local, l)
			continue
		case j.isOpen(l):
			open = append(open, l)
			continue
		case l.declined:
			l.founded = founded{rule_: "protocol"}
			continue
		}
		switch r := j.fault(l); {
		case l.shut:
			l.founded = founded{}
		case r == "":
			root := l.role == policy.Target || !declared && l.role == policy.Selector && l.rule != nil && j.closedCollection(l.rule.Collection) && !l.open
			vouched = vouched || root && !l.empty && !l.answer && !l.key
		default:
			j.labelLeaf(l)
			l.founded = founded{label: l.label} // seen perhaps, and not enough
			j.unfoundedLeaf(l, r)
		}
	}
	j.bound()
	j.composed(open)
	shut := slices.ContainsFunc(j.leaves, func(l *leaf) bool { return l.shut })
	for _, l := range local {
		// R14: the text needs no voucher, the file it goes to does.
		if l.label = writ.Model; vouched {
			l.rule_ = "local"
		} else if !shut {
			j.unfoundedLeaf(l, writ.ProvenanceUnseen)
		}
	}
}

// fault says what an argument lacks: who vouches for it, or that the user named and ordered what
// is done to it; "" for nothing.
func (j *judge) fault(l *leaf) writ.Reason {
	r := j.vouch(l)
	if l.shut {
		return r
	}
	phrased := j.phrased()
	if r != "" && phrased && j.onlyNamed(l) { // the user named it, and may say a phrase
		j.unordered = true
		r = j.vouch(l)
		j.unordered = false
	}
	guess := r != ""
	switch {
	case guess:
	case j.destroys(l) && !j.anchored(l):
		r = writ.ProvenanceAnchor
	case !phrased:
		r = j.ordered(l)
	}
	if r != "" && r != writ.ProvenanceReader && j.onlyNamed(l) {
		r = writ.ProvenanceOrder
	} else if guess && j.kept == keptNot {
		j.guessed(l)
	}
	if r != "" && j.byKept(l) {
		return ""
	}
	return r
}

func (j *judge) unfoundedLeaf(l *leaf, r writ.Reason) {
	if j.session() == nil {
		return // said once, for the call
	}
	switch {
	case l.answer && r != writ.ProvenanceOneShot: // which is no person's to supply
		r = writ.PolicyAnswer
	case l.key:
		r = writ.ProvenanceKey
	case r == writ.ProvenanceUnseen && j.session().full:
		r = writ.ProvenanceFull
	}
	if l.failed = r; len(j.unfounded) >= schema.MaxFailures {
		return // the list of them is bounded, not the judging
	}
	l.placed = l.placed || j.wouldCount(l)
	j.unfounded = append(j.unfounded, writ.Failure{Pointer: l.pointer, Reason: r, Need: j.need(l, r)})
}

// wouldCount reports whether a value that nothing vouches for would be vouched for if a person
// cleared the places that other sessions lowered, and it was read again (R38).
func (j *judge) wouldCount(l *leaf) bool {
	switch l.failed {
	case writ.ProvenanceReflected, writ.ProvenanceUnseen, writ.ProvenanceLabel, writ.ProvenanceSource, writ.ProvenanceDerived:
	default: // it is vouched for, or lacks something else
		return false
	}
	if j.isLocal(l) || j.session().ledger.Brought(l.typ(), l.value) {
		return false
	}
	once := j.oneTime
	j.cleared = true
	defer func() { j.oneTime, j.cleared = once, false }()
	by := *l
	return slices.ContainsFunc(j.sources(l), func(src policy.Source) bool {
		return (src.Kind == policy.FromOutput || src.Kind == policy.FromDerived && src.Op != policy.Due && src.Op != policy.Element) && j.from(&by, src) == ""
	})
}

func (j *judge) isLocal(l *leaf) bool {
	return !j.strict && l.rule != nil && l.rule.Local && l.role == policy.Content && !l.key
}

// vouch looks for one origin the argument accepts; "" means there is one.
func (j *judge) vouch(l *leaf) writ.Reason {
	var reason, said writ.Reason
	sources := j.sources(l)
	shut := j.shuts(l)
	for _, kind := range []policy.SourceKind{policy.FromConst, policy.FromCatalog, policy.FromUser, policy.FromOutput, policy.FromDerived, policy.FromSeen, policy.FromSaidBy, policy.FromNamed} {
		for _, src := range sources {
			if src.Kind != kind {
				continue
			}
			if shut && (kind == policy.FromOutput || kind == policy.FromDerived || kind == policy.FromSeen || kind == policy.FromSaidBy || kind == policy.FromNamed) {
				l.shut = true
				continue
			}
			r := j.from(l, src)
			if r == "" {
				return ""
			}
			if kind == policy.FromUser {
				said = r
				continue
			}
			if reason == "" || kind == policy.FromOutput {
				reason = worse(reason, r)
			}
		}
	}
	if said != "" && said != writ.ProvenanceUnseen && (reason == "" || reason == writ.ProvenanceUnseen) {
		return said // he wrote it, and not so that it counts
	}
	return cmp.Or(reason, said, writ.ProvenanceUnseen) // a contract may accept nothing
}

// destroys reports whether a leaf says what a deletion destroys (R9).
func (j *judge) destroys(l *leaf) bool {
	return !j.strict && (j.d.Effect&policy.Delete != 0 || j.notice) && (l.role == policy.Target || l.role == policy.Selector)
}

// ordered is R9 where the contract has orders: a value rests on words of the user that one of
// them is of, and is done where he means (R28). What the operator lists or a person allowed
// from now on is their own word.
func (j *judge) ordered(l *leaf) writ.Reason {
	if l.rule == nil || len(l.rule.Orders) == 0 || j.strict || j.unordered {
		return ""
	}
	switch l.rule_ {
	case "const", "grown", grownOutput, keptCall, ruleElement:
		return ""
	}
	nouns, why := append(slices.Clone(l.rule.Words), l.collection()), writ.ProvenanceOrder
	for _, r := range l.refs {
		if r.Tool != userTool || !j.session().ledger.Ordered(provenance.Quote{Evidence: r.Evidence, Start: r.Start, End: r.End}, l.rule.Orders, nouns, l.rule.One) {
			continue
		}
		if len(j.contract.Where) == 0 || j.there(r.Evidence) {
			return ""
		}
		why = writ.ProvenanceReader
	}
	return why
}

// onlyNamed reports whether a refused value would pass if the contract had no orders.
func (j *judge) onlyNamed(l *leaf) bool {
	if l.rule == nil || len(l.rule.Orders) == 0 || j.session() == nil {
		return false
	}
	was, once := *l, j.oneTime
	j.unordered = true
	defer func() { j.unordered, j.oneTime, *l = false, once, was }()
	return j.vouch(l) == "" && (!j.destroys(l) || j.anchored(l))
}

// anchored is R9: a vouched value says what may be destroyed if the user typed it,
// or something that names the record it stands in and no other of its collection.
// What the operator listed as a constant is his own word.
func (j *judge) anchored(l *leaf) bool { return j.anchoredBy(l, (*provenance.Names).Anchor) }

// chosen is R28 and R14: what receives something is named by what strangers cannot
// write.
func (j *judge) chosen(l *leaf) bool { return j.anchoredBy(l, (*provenance.Names).Chosen) }

func (j *judge) anchoredBy(l *leaf, names func(*provenance.Names, provenance.Query) (provenance.Quote, bool)) bool {
	switch l.rule_ {
	case "const", "user", "user:time", "user:day", "user:amount", "user:composite", "user:within", "party", keptCall, ruleElement:
		return true
	case "grown", grownOutput: // allowed from now on as a reader, not to be destroyed
		if !j.destroys(l) {
			return true
		}
	}
	said, why := j.typed(l)
	if why != "" {
		if made, ok := j.session().ledger.Own(j.query(l, policy.Source{})); ok {
			if at := refOf(made); len(l.refs) == 0 || !slices.Contains(l.refs[1:], at) {
				l.refs = append(l.refs, at)
			}
			return true // R13
		}
		q := j.query(l, policy.Source{})
		q.Named, q.Spoken = j.setApart(l, q), !j.strict && j.d.Effect&^(policy.Read|policy.Write|policy.Send) == 0
		named, ok := names(j.named(), q)
		if !ok {
			return false
		}
		said = named
	}
	if at := quoteOf(said); !slices.Contains(l.refs, at) { // asked for as a target, and as a reader
		l.refs, l.newest = append(l.refs, at), max(l.newest, said.Evidence)
	}
	return true
}

// named are the records the user may have named (R9).
func (j *judge) named() *provenance.Names {
	if j.names == nil {
		j.names = j.session().ledger.Names()
	}
	return j.names
}

// worse keeps, of what several outputs say of a value, what came closest.
func worse(a, b writ.Reason) writ.Reason {
	order := []writ.Reason{writ.ProvenanceUnseen, writ.ProvenanceReflected, writ.ProvenanceLabel,
		writ.ProvenanceSource, writ.ProvenanceOneShot, writ.ProvenanceSmall, writ.ProvenanceOpenTarget}
	if slices.Index(order, a) > slices.Index(order, b) {
		return a
	}
	return b
}

// sources is the argument's `from`; the policy has left nothing but outputs in
// it under profile strict.
func (j *judge) sources(l *leaf) []policy.Source {
	switch {
	case l.rule != nil:
		return l.rule.From
	case l.answer || j.strict:
		return outputOnly
	}
	return undeclared
}

func (j *judge) from(l *leaf, src policy.Source) writ.Reason {
	switch src.Kind {
	case policy.FromConst:
		for _, c := range src.Const {
			if j.ordersSource(src) && provenance.Equal(l.typ(), l.value, strictjson.Of(c)) {
				if l.founded = (founded{rule_: "const", label: writ.Operator, ordered: len(src.Phrases) > 0}); src.Grown {
					l.rule_ = "grown"
				}
				return ""
			}
		}
		return writ.ProvenanceConst
	case policy.FromCatalog:
		// R7: what the pinned schema lists vouches for role enum alone.
		if l.enum && l.role == policy.Enum && !l.key {
			l.founded = founded{rule_: "catalog", label: writ.System}
			return ""
		}
		return writ.ProvenanceCatalog
	case policy.FromOutput:
		if !j.ordersSource(src) {
			return writ.ProvenanceConst
		}
		if len(src.Until) > 0 && (j.session() == nil || l.text == "" || j.session().called(src.Until) != l.text) {
			return writ.ProvenanceUnseen
		}
		return j.fromOutput(l, src)
	case policy.FromSeen:
		return j.fromSeen(l)
	case policy.FromUser:
		return j.fromUser(l)
	case policy.FromSaidBy:
		return j.fromSaidBy(l, src)
	case policy.FromNamed:
		return j.fromNamed(l, src)
	}
	switch src.Op {
	case opTemplate:
		return j.fromTemplate(l)
	case opVariable:
		return j.fromVariable(l)
	case policy.TypedIn:
		return j.fromTypedIn(l)
	case policy.FreshName:
		return j.fromFresh(l, src)
	case policy.Due:
		return j.fromDue(l)
	case policy.Element:
		return j.fromElement(l, src)
	}
	return j.fromJoin(l)
}

// ordersSource reports whether the user chose what a source gives: where it has phrases, his
// latest turn says one of them as an order (R21).
func (j *judge) ordersSource(src policy.Source) bool {
	return len(src.Phrases) == 0 || !j.strict && j.session() != nil && slices.ContainsFunc(src.Phrases, func(p string) bool {
		return j.session().ledger.Chosen(p, j.aim())
	})
}

// query is what the ledger is asked about a leaf.
func (j *judge) query(l *leaf, src policy.Source) provenance.Query {
	q := provenance.Query{
		Value: l.value, Type: l.typ(), Server: src.Server, Tool: src.Tool, At: src.At, HasAt: src.HasAt,
		Authority: l.role.Authority() || l.key || l.answer,
		Account:   (l.role == policy.Target || l.role == policy.Selector) && !l.key && !l.answer,
		Closed:    j.closedCollection,
		Enum:      l.enum,
		Strict:    j.strict,
		Lifts:     j.lifts,
		Cleared:   j.cleared,
	}
	if l.rule != nil {
		q.Collection, q.Owners, q.OwnerTyped, q.Words = l.rule.Collection, l.rule.Owner, l.rule.OwnerUser, l.rule.Words
		if !j.unordered {
			q.Orders = l.rule.Orders
		}
		q.Agrees = j.agrees(l)
		if text, is := l.value.Text(); is && !l.key {
			q.Called = j.in.Policy.Collections[q.Collection].Called[text]
		}
	}
	// R28, and R29 for selectors. STTI-001 knows no roles: under profile strict
	// only an argument the contract calls a target is one.
	q.Target = j.d.Effect.Gated() && (l.role == policy.Target && (l.rule != nil || !j.strict) || l.role == policy.Selector && j.noTarget)
	if l.answer || j.in.Call.Method != policy.CallTool && q.Collection == "" {
		// Nobody can declare a collection for these: any closed one will do.
		q.Target, q.Strict = true, true
	}
	if src.Ours { // who can write there is what the person was asked (R28)
		q.Ours, q.Minted, q.InText, q.Target = true, src.Minted, src.InText, false
	}
	return q
}

// lifts reports whether lines in force have a place that rests on them not count (R38).
func (j *judge) lifts(rests [][]provenance.Line) bool { return j.lifted || j.in.Policy.Lifts(rests) }

func (j *judge) fromOutput(l *leaf, src policy.Source) writ.Reason {
	s := j.session()
	if s == nil {
		return writ.ProvenanceSession
	}
	q := j.query(l, src)
	q.Once, q.Now = !l.answer && !l.key && !j.usedHere(l), j.in.Time
	a := s.ledger.Find(q)
	if len(a.Vouched) > 0 {
		// R30: what is told in confidence is passed on only where the operator named it.
		if !j.strict && !src.HasAt && (l.role == policy.Content || l.role == policy.Query) && slices.ContainsFunc(a.Vouched, func(f provenance.Fact) bool { return f.Secret }) {
			return writ.ProvenanceSecret
		}
		inside := j.listedFor(l, &q, a.Vouched)
		l.founded = j.foundedOn(a)
		if l.ordered = len(src.Phrases) > 0; a.OneTime {
			j.oneTime = append(j.oneTime, l)
		}
		l.inside = inside
		return ""
	}
	if src.Ours {
		return a.Reason
	}
	if j.rounded(l, q) || j.invented(l, q) {
		return ""
	}
	r := j.fromParty(l, q, a.Reason)
	if r != writ.ProvenanceOpenTarget || j.strict {
		return r
	}
	// R28: what anyone can have made appear is a target if the user named its
	// record (R9).
	q.Target = false
	if a = s.ledger.Find(q); len(a.Vouched) > 0 {
		if l.founded = j.foundedOn(a); j.chosen(l) {
			if l.open = false; a.OneTime {
				j.oneTime = append(j.oneTime, l)
			}
			return ""
		}
	}
	l.founded = founded{}
	return r
}

// usedHere reports whether another argument of this call rests on the same one-time
// value (R19).
func (j *judge) usedHere(l *leaf) bool {
	return slices.ContainsFunc(j.oneTime, func(o *leaf) bool {
		return o != l && o.oneTime && (provenance.Equal(l.typ(), l.value, o.value) || provenance.Equal(o.typ(), l.value, o.value))
	})
}

// foundedOn is what an answer of the ledger lets a leaf rest on.
func (j *judge) foundedOn(a provenance.Answer) founded {
	best := a.Vouched[0]
	f := founded{rule_: "output", label: best.Label, supposes: best.Rests, refs: []Ref{refOf(best)}, newest: newest(a.Vouched),
		contested: a.Contested && j.d.Effect&(policy.Transfer|policy.Delete) != 0, open: a.Open, oneTime: a.OneTime}
	if best.Label < writ.System {
		f.rule_, f.label, f.open = grownOutput, writ.System, true
	}
	return f
}

// grownOutput is the rule of a value that stands intact where the contract says
// external, at an output that a person raised for this one argument: he was asked who
// can write the field, and said that our own people alone can (policy.WritesOurs).
//
// An attacker gains by it what he can write at that very place himself, if the person
// was wrong: a value of another field, in prose, or that any call sent or the model
// said before is what it was (Fact.Intact), and so is a record that is destroyed (R9),
// is not the one another argument names (R37), or holds a secret. The place keeps its
// own label, in the reference too: what the act answers, what it leaves at another server
// and what comes back from there is worth what the contract says (R4, R5, R38), and no
// collection is closed by it (R28). At the server it is from it leaves what stands there
// already, by the hand of whom that person named.
const grownOutput = "grown:output"

// newest is the number of the youngest evidence among facts.
func newest(fs []provenance.Fact) uint32 {
	n := uint32(0)
	for _, f := range fs {
		n = max(n, f.Evidence)
	}
	return n
}

// labelLeaves is what is done for reads: nothing is refused for provenance, but
// each leaf gets the label that bounds what the result may vouch for (R4).
func (j *judge) labelLeaves() {
	for _, l := range j.leaves {
		if j.labelLeaf(l); l.rule_ == "" && !j.d.Effect.Gated() {
			j.raised(l)
		}
	}
}

// raised lets a read be asked with what a person raised for that argument: strangers
// chose nothing in it then, so its answer is no stranger's choice either (R4). What equals
// the value there is lowered as before.
func (j *judge) raised(l *leaf) {
	was := l.label
	for _, src := range j.sources(l) {
		if src.Ours && j.from(l, src) == "" {
			l.open = false // a read adds to no collection
			return
		}
	}
	l.founded = founded{label: was}
}

// labelLeaf finds the highest label a leaf has in this session, whether or not
// its source would do for an act.
func (j *judge) labelLeaf(l *leaf) {
	l.founded = founded{}
	for _, src := range j.sources(l) {
		if src.Kind == policy.FromConst && j.from(l, src) == "" {
			return
		}
	}
	s := j.session()
	if s == nil {
		return
	}
	if q, r := j.typed(l); r == "" {
		l.founded = founded{rule_: "user", label: writ.User, refs: []Ref{quoteOf(q)}}
		return
	}
	if j.said(l) {
		return // a day or an amount that he named
	}
	a := s.ledger.Find(j.query(l, policy.Source{}))
	switch {
	case len(a.Vouched) > 0:
		l.founded = founded{rule_: "output", label: a.Vouched[0].Label, refs: []Ref{refOf(a.Vouched[0])}}
	case l.enum:
		// R8: that such a value was seen elsewhere says nothing.
	default:
		l.label = a.Label
	}
}

// trace writes down what every leaf rests on.
func (j *judge) trace() {
	s := j.in.Session
	defer func() {
		for _, name := range j.fields {
			j.d.args = append(j.d.args, provenance.Arg{Value: name, Narrow: true})
		}
	}()
	j.d.Traces = slices.Grow(j.d.Traces, len(j.leaves))
	j.d.args = slices.Grow(j.d.args, len(j.leaves)+len(j.fields))
	for _, l := range j.leaves {
		t := Trace{Pointer: l.pointer, Role: l.role.String(), Label: l.label, Rule: l.rule_, Evidence: l.refs, Contested: l.contested}
		if l.key {
			t.Role = "key"
		}
		if s != nil {
			t.Digest = s.ledger.Digest(l.typ(), l.value)
		}
		j.d.Traces = append(j.d.Traces, t)
		kind := l.value.Kind()
		plain := l.rule != nil && !l.empty && !l.answer && !l.key && !j.strict
		j.d.args = append(j.d.args, provenance.Arg{
			Pointer: l.pointer, Value: l.value, Type: l.typ(), Label: l.carries(), Fixed: !l.rule.Narrows(l.rule_),
			// An empty value carries no more than a boolean does.
			Narrow: kind == strictjson.Bool || l.enum || l.empty || l.declined || l.rule_ == grownOutput && !j.d.Effect.Gated() ||
				l.role == policy.Control && kind == strictjson.Number && integer(l.value) && provenance.SmallSpace(provenance.Untyped, l.value),
			Vague:   provenance.Vague(l.pointer, l.value),
			Fresh:   l.rule_ == "derived:fresh",
			In:      j.placesOf(l),
			Allowed: l.rule_ == "approval",
			Makes:   plain && l.rule.Makes,
			Shows:   plain && l.rule.Shows && j.d.Effect == policy.Read,
			New:     plain && l.rule.TakesNew(),
			Ours:    j.isOurs(l),
			Rests:   l.spared,
			Decides: l.role == policy.Target || l.role == policy.Selector || l.role == policy.Amount || l.role == policy.SecretRole,
			Names:   (l.role == policy.Target || l.role == policy.Selector) && !l.empty && !l.answer && !l.key,
			Real:    j.in.Resolved[l.pointer], Collection: l.collection(),
		})
		if plain {
			j.d.args[len(j.d.args)-1].Missing = l.rule.Missing
		}
		j.d.open = j.d.open || l.open && (l.role == policy.Target || l.role == policy.Selector)
	}
}

func integer(v strictjson.Value) bool {
	_, _, why := provenance.Canonical(provenance.Integer, v)
	return why == ""
}

// userTool stands for the tool in references to the user's turns.
const userTool = "user"

func quoteOf(q provenance.Quote) Ref {
	return Ref{Evidence: q.Evidence, Tool: userTool, Start: q.Start, End: q.End, Label: writ.User}
}

// refOf names the place of a fact. The results of R32 methods are read whole,
// as if they were structured content.
func refOf(f provenance.Fact) Ref {
	p := f.Pointer
	if policy.Method(f.Tool).Judged() {
		p = p[min(len(p), len("/"+structured)):]
	}
	return Ref{Evidence: f.Evidence, Tool: f.Server + "/" + f.Tool, Pointer: p, Line: f.Line, Inner: f.Inner, Label: f.Label}
}

// carries is what a value is worth where it comes back (R4). What a person let pass
// once or from now on he did for that call, and what he raised for that argument: read back it is what
// it was, a stranger's or a model's. A path whose name the user typed is his: what an act makes
// there by his word is a member of its collection, though no list had it.
func (l *leaf) carries() writ.Label {
	switch l.rule_ {
	case "approval", grownOutput, keptCall:
		return min(l.label, writ.External)
	case ruleTypedIn:
		return writ.User
	}
	return l.label
}

package gate

import (
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// # Free text (R14)
//
// What a model writes in words is unproven, and goes on as the model's (R4, R38).
// An act may carry it under `content: open` if nothing else rides with it and
// somebody the user meant reads it:
//
//   - Every atom in it, whatever a reader or a program may act on, is vouched for
//     as a target is; one that says whom to turn to the user typed or named.
//   - It goes to what the user typed, to a record that he named by what strangers
//     cannot write, to a constant of the operator, or into a record that nobody reads but
//     its owner, who is one of these, as the server said since the latest act: but where the
//     act sends, the record may be what goes with the text. That a stranger can make an
//     address appear in the contacts does not make him a reader, however the collection is called.
//     In quotation marks, in his latest turn, the user's own words go to those whom he
//     asked for by the record they are listed in too (R12); a model's do not.
//   - The agent was given no secret in this session, or the readers are the
//     operator's constants or of a collection that may_hold_secrets: reworded, a secret cannot be found in a text (R30).
//
// An act that names nobody and only writes, as a stash, carries one that the case of a phrase lists
// beside it (R21): the operator wrote that the order is for it too, and it goes nowhere else.
//
// An attacker who has read this can still have a text say what he likes to whom the
// user named; that is in LIMITATIONS.md.

// isOpen reports whether a leaf may be free text.
func (j *judge) isOpen(l *leaf) bool {
	return !j.strict && l.rule != nil && l.rule.Composed && l.role == policy.Content && !l.key
}

// composed judges the free texts of a call, after everything else was.
func (j *judge) composed(texts []*leaf) {
	s := j.session()
	if s == nil || len(texts) == 0 {
		return
	}
	readers, reason, follows, copied := j.readers()
	stores := j.d.Effect&(policy.Write|policy.Delete) != 0 && !j.makesNew()
	all := texts
	texts = slices.DeleteFunc(slices.Clone(texts), func(l *leaf) bool {
		if l.isText && l.empty && !stores { // it tells nobody anything, and takes nothing away
			l.founded, l.shut = founded{rule_: "open", label: writ.Model}, false
			return true
		}
		// The user's own words, or what a tool said, to whom he named.
		return j.vouch(l) == "" && (reason == "" || !j.anyReader() || copied && j.dictated(l))
	})
	joined := j.joined(texts, all)
	for _, l := range texts {
		l.founded = founded{}
		l.shut = false
		switch {
		case reason != "" && !j.ordersText(l):
			l.follows = follows
			j.unfoundedLeaf(l, reason)
		case s.ledger.Secrets() && !readers:
			j.unfoundedLeaf(l, writ.ProvenanceSecret)
		default:
			j.atoms(l, joined[l])
		}
	}
}

// makesNew reports whether an act takes away no text that stood somewhere: it writes what it
// newly makes, as its answer says, and its arguments name people alone, by where they are reached.
func (j *judge) makesNew() bool {
	return j.d.Effect&policy.Delete == 0 && slices.ContainsFunc(j.contract.Outputs, func(o provenance.OutputRule) bool { return o.Creates }) &&
		!slices.ContainsFunc(j.leaves, func(l *leaf) bool {
			return !l.empty && (l.role == policy.Selector || l.role == policy.Target && l.typ() != provenance.Email && l.typ() != provenance.Phone)
		})
}

// joined are all texts of one rule read on, by the first of those that are the model's:
// what stands in several is read as one, whoever wrote a piece of it. Of a row each is read by itself,
// and so is what things are called for people.
func (j *judge) joined(texts, every []*leaf) map[*leaf][]string {
	first := map[*policy.ArgRule]*leaf{}
	for _, l := range texts {
		if first[l.rule] == nil && !j.isPart(l) && !l.rule.Label {
			first[l.rule] = l
		}
	}
	all := map[*leaf][]string{}
	for _, l := range every {
		if of := first[l.rule]; of != nil {
			all[of] = append(all[of], l.says())
		}
	}
	for l, s := range all {
		if all[l] = nil; len(s) > 1 {
			all[l] = []string{strings.Join(s, ""), strings.Join(s, "\n")}
		}
	}
	return all
}

// says is what a reader gets of a leaf.
func (l *leaf) says() string {
	if l.isText {
		return l.text
	}
	return string(l.value.Literal())
}

// readers says whom a text goes to: only the operator's constants, or a reason why
// somebody among them was not named by the user. It follows from another fault where
// nothing vouches for one of them, or the call names nobody. All others he named, or of
// a list that he asked for, where copied is true.
func (j *judge) readers() (operators bool, reason writ.Reason, follows, copied bool) {
	operators, copied = true, true
	named := false
	for _, l := range j.leaves {
		if l.empty || l.answer || l.role != policy.Target && l.role != policy.Selector {
			continue
		}
		if l.rule_ == "" {
			return false, writ.ProvenanceReader, true, false // itself unfounded, and said so
		}
		if l.inside {
			continue
		}
		named = true
		if l.rule_ == "output" && j.d.Effect&(policy.Send|policy.Egress|policy.Transfer|policy.Auth) == 0 && j.session().ledger.Unread(j.query(l, policy.Source{})) {
			operators = false // what is told in confidence stays out of it: it can be shared later
			continue
		}
		if !j.chosen(l) && !j.byKept(l) {
			reason = writ.ProvenanceReader // unless one behind it is the fault
			copied = copied && l.rule_ == ofNamed
		}
		operators = operators && (l.rule_ == "const" || l.rule_ == "output" && !l.open && j.in.Policy.Collections[l.collection()].MayHoldSecrets)
	}
	if !named && j.contract.NoArgs != policy.NoArgsAllow {
		return false, writ.ProvenanceReader, true, false // nothing says to whom it goes (R21)
	}
	return operators && named && reason == "", reason, false, copied
}

// ordersText reports whether the user orders an act that only writes, and names nobody, by a
// phrase of a case that lists this text.
func (j *judge) ordersText(l *leaf) bool {
	own := caseOf(j.contract, j.parts)
	return own != nil && len(own.Phrases) > 0 && !j.anyReader() && j.d.Effect&^(policy.Read|policy.Write) == 0 && j.saidByCase(l) && j.saidSo()
}

// dictated reports whether a text is what the user set in quotation marks in his latest
// turn.
func (j *judge) dictated(l *leaf) bool {
	return l.rule_ == "user" && slices.ContainsFunc(l.refs, func(r Ref) bool {
		return r.Tool == userTool && j.session().ledger.Quoted(provenance.Quote{Evidence: r.Evidence, Start: r.Start, End: r.End})
	})
}

// causes leaves out what is told of a text because of another fault that is told: whom it
// goes to, or that the call names nobody. It fails all the same, and a person's yes has to
// cover it.
func (j *judge) causes() {
	told := slices.ContainsFunc(j.against, func(f writ.Failure) bool { return f.Reason == writ.PolicyNoArguments }) ||
		slices.ContainsFunc(j.leaves, func(l *leaf) bool {
			return l.failed != "" && (l.role == policy.Target || l.role == policy.Selector)
		})
	for _, l := range j.leaves {
		if l.follows = l.follows && told; l.follows {
			j.unfounded = slices.DeleteFunc(j.unfounded, func(f writ.Failure) bool { return f.Pointer == l.pointer && f.Reason == l.failed })
		}
	}
}

// anyReader reports whether the call names somebody who reads its texts.
func (j *judge) anyReader() bool {
	return slices.ContainsFunc(j.leaves, func(l *leaf) bool {
		return !l.empty && !l.answer && (l.role == policy.Target || l.role == policy.Selector)
	})
}

// atoms looks behind every atom of a text.
func (j *judge) atoms(l *leaf, more []string) {
	var missing []string
	placed := true // all that is missing
	found := founded{rule_: "open", label: writ.Model}
	all := provenance.Atoms(l.says())
	for _, text := range more {
		all = append(all, provenance.Atoms(text)...)
	}
	for _, a := range all {
		if j.itself(a) {
			continue
		}
		f, q, ok := j.named().Vouches(a, j.closedCollection, false)
		if kind := string(a.Kind); !ok && !slices.Contains(missing, kind) {
			missing = append(missing, kind)
		}
		if !ok && placed {
			_, _, placed = j.named().Vouches(a, j.closedCollection, true)
		}
		if f.Evidence > 0 {
			found.refs = append(found.refs, refOf(f))
		}
		if q.Evidence > 0 {
			found.refs = append(found.refs, quoteOf(q))
		}
		found.newest = max(found.newest, f.Evidence, q.Evidence)
	}
	if len(missing) == 0 {
		l.founded = found
		return
	}
	l.missing, l.placed = strings.Join(missing, ", "), placed
	j.unfoundedLeaf(l, writ.ProvenanceAtom)
}

// itself reports whether a mention is of what the act is on, as "#12" in a comment on what is written so.
func (j *judge) itself(a provenance.Atom) bool {
	n, is := a.Counts()
	return is && slices.ContainsFunc(j.leaves, func(l *leaf) bool {
		return l.rule != nil && slices.Contains(l.rule.Words, provenance.Numbered) && !l.key && !l.answer && string(l.value.Raw()) == n
	})
}

// steered holds what steers a read (`steers: true`) to what its line accepts, as that of an
// act: in which directory a program runs, for one, whose configuration names others.
func (j *judge) steered() {
	for _, l := range j.leaves {
		if l.rule == nil || !l.rule.Steers || l.declined {
			continue
		}
		was := l.founded // what the answer is worth goes by where the value was seen
		r := j.vouch(l)
		if l.founded = was; r == "" {
			continue
		}
		if j.session() == nil {
			j.unfounded = []writ.Failure{{Reason: writ.ProvenanceSession, Need: needs[writ.ProvenanceSession]}}
			return
		}
		j.unfoundedLeaf(l, r)
	}
}

// plainly holds a read to plain words, where its contract says `arguments: plain`: it is
// a draft of what nobody reviewed. What it is asked with names no link, host or mail
// address and no key that nothing vouches for, and no argument of the caller's making;
// that words alone can say much is so.
func (j *judge) plainly() {
	if j.contract == nil || !j.contract.Plain || j.kept != keptNot {
		return
	}
	for _, l := range j.leaves {
		if l.answer || l.rule_ == "const" {
			continue
		}
		var missing []string
		names, unread := l.path, false
		if l.key {
			// What an argument does that no definition names, nobody can have read, but who
			// opened that object in the contract.
			names, unread = names[:len(names)-1], l.rule_ == "" && l.rule == nil
		}
		atoms := provenance.PlainAtoms(l.says(), names)
		if j.session() == nil && (unread || len(atoms) > 0) {
			j.unfounded = []writ.Failure{{Reason: writ.ProvenanceSession, Need: needs[writ.ProvenanceSession]}}
			return
		}
		for _, a := range atoms {
			_, _, ok := j.named().Vouches(a, j.closedCollection, false)
			if _, returned := j.named().Returned(j.in.Call.Server, a); !ok && !returned && !slices.Contains(missing, string(a.Kind)) {
				missing = append(missing, string(a.Kind))
			}
		}
		if unread || len(missing) > 0 {
			l.missing = strings.Join(missing, ", ")
			j.unfoundedLeaf(l, writ.ProvenanceAtom)
		}
	}
}

// # Binding between arguments (R37)

// bound holds arguments that belong to one record to it. What the user typed or the
// operator listed is nobody's record but his word.
func (j *judge) bound() {
	if j.session() == nil {
		return
	}
	held := map[*leaf]bool{}
	for _, b := range j.bindings() {
		var records provenance.Records
		var of *leaf // whose they are
		for _, l := range j.leaves {
			if l.answer || l.empty || l.rule_ == "" || !l.ofRecord() || !l.among(b.Others) {
				continue
			}
			first := j.firstOf(b, l)
			if l == first {
				continue
			}
			if first != of {
				records, of = j.records(b, first), first
			}
			if f, ok := j.holds(records, l); first != nil && ok {
				l.rests(f, held[l])
				held[l] = true
				continue
			}
			// What he typed for something else is no amount and no time of his (R10, R11).
			if q, why := j.typed(l); why == "" && l.role != policy.Amount && l.role != policy.TimeRole {
				l.refs, l.newest = append(l.refs, quoteOf(q)), max(l.newest, q.Evidence)
				continue
			}
			l.founded = founded{label: l.label}
			j.unfoundedLeaf(l, writ.ProvenanceRecord)
		}
	}
}

// agrees are the arguments of which what shows a value has to say the same.
func (j *judge) agrees(l *leaf) (out []provenance.Said) {
	if j.strict || l.key || l.answer {
		return nil
	}
	for _, at := range l.rule.Agrees {
		path := policy.Fill(at, l.rule.At, l.path)
		said := provenance.Said{Name: path[len(path)-1]}
		if o := j.leafAt(path); o != nil {
			said.Value = o.value
		}
		out = append(out, said)
	}
	return out
}

// agreesOnTargets reports whether an argument chooses among what the targets of an act have that only
// sends, and so changes nothing there: who reads it is who reads that (R14), where it was listed for them.
// An argument that is a target says by itself who reads it, and one that says nothing has no readers.
func (j *judge) agreesOnTargets(l *leaf) bool {
	return l.role == policy.Selector && len(l.rule.Agrees) > 0 && j.d.Effect&^policy.Read == policy.Send && !slices.ContainsFunc(l.rule.Agrees, func(at provenance.Pattern) bool {
		o := j.leafAt(policy.Fill(at, l.rule.At, l.path))
		return o == nil || o.empty || o.role != policy.Target
	})
}

// listedFor puts first of what vouches for an argument what was listed for the targets of its
// act, where it is worth as much, and reports whether anything was.
func (j *judge) listedFor(l *leaf, q *provenance.Query, vouched []provenance.Fact) bool {
	if len(q.Agrees) == 0 || !j.agreesOnTargets(l) {
		return false
	}
	best := vouched[0]
	i := slices.IndexFunc(vouched, func(f provenance.Fact) bool {
		return f.Label == best.Label && f.OneTime == best.OneTime && j.session().ledger.AskedWith(f.Evidence, q.Agrees)
	})
	if i > 0 {
		vouched[0], vouched[i] = vouched[i], best
	}
	return i >= 0
}

// leafAt is the value at a path into the arguments, nil where there is none.
func (j *judge) leafAt(path []string) *leaf {
	for _, l := range j.leaves {
		if !l.answer && !l.key && slices.Equal(path, l.path) {
			return l
		}
	}
	return nil
}

// timesInRecord is how often what stands at a pointer stands in the one record that it has
// to be of, 0 where that is none: two of an order's items can be the same article. Its
// issuer wrote them there, each in a place of its own, at the outputs that the argument
// accepts, so nobody has more of them done than there are.
func (j *judge) timesInRecord(pointer string) int {
	i := slices.IndexFunc(j.leaves, func(l *leaf) bool { return l.pointer == pointer && !l.answer && !l.key })
	if i < 0 || j.session() == nil || j.strict {
		return 0
	}
	for _, b := range j.bindings() {
		l := j.leaves[i]
		if first := j.firstOf(b, l); l.among(b.Others) && b.First.Exact() && first != nil && first != l {
			records, most := j.session().ledger.Records(j.query(first, policy.Source{}), ""), 0
			for _, src := range j.sources(l) {
				if src.Kind == policy.FromOutput && !src.Ours {
					most = max(most, records.Times(j.query(l, src)))
				}
			}
			return most
		}
	}
	return 0
}

// records are those that an argument names for a binding, none where nothing vouches
// for it.
func (j *judge) records(b policy.Binding, first *leaf) (none provenance.Records) {
	if first == nil || first.rule_ == "" {
		return none
	}
	return j.session().ledger.Records(j.query(first, policy.Source{}), b.By)
}

// among reports whether patterns name a leaf; a key is named by its object.
func (l *leaf) among(patterns []provenance.Pattern) bool {
	path := l.path
	if l.key {
		path = path[:len(path)-1]
	}
	return slices.ContainsFunc(patterns, func(at provenance.Pattern) bool { return at.Match(path) })
}

// ofRecord reports whether what a leaf rests on stands in some record. What the user
// said and what the operator listed does not, and an amount that was computed was
// with a number of the right one.
func (l *leaf) ofRecord() bool {
	return l.rule_ != "const" && l.rule_ != "catalog" && !strings.HasPrefix(l.rule_, "user") && !(l.role == policy.Amount && strings.HasPrefix(l.rule_, "derived:"))
}

// holds asks for a leaf in some records, at the sources it accepts.
func (j *judge) holds(records provenance.Records, l *leaf) (f provenance.Fact, ok bool) {
	for _, src := range j.sources(l) {
		if src.Kind != policy.FromOutput || src.Ours != (l.rule_ == grownOutput) {
			continue
		}
		if f, ok = records.Hold(j.query(l, src)); ok {
			return f, true
		}
	}
	return f, false
}

// rests lets a leaf rest on the place found in a record, beside that of another
// record it is held to; who named what it destroys (R9) stays.
func (l *leaf) rests(f provenance.Fact, more bool) {
	if at := refOf(f); more {
		if l.newest = max(l.newest, f.Evidence); !slices.Contains(l.refs, at) {
			l.refs = append(l.refs, at)
		}
		return
	}
	l.refs, l.newest = append([]Ref{refOf(f)}, l.refs[min(1, len(l.refs)):]...), f.Evidence
}

// typedBeside asks whether the user typed a small value as a piece of one thing,
// beside the argument that names its record (R15).
func (j *judge) typedBeside(l *leaf) (provenance.Quote, writ.Reason) {
	for _, b := range j.bindings() {
		if !l.among(b.Others) || l.key || l.answer {
			continue
		}
		if first := j.firstOf(b, l); first != nil && first != l {
			if at, why := j.typed(first); why == "" {
				if q, ok := j.session().ledger.TypedBeside(j.query(l, policy.Source{Kind: policy.FromUser}), at, j.taken(b, l, at)); ok {
					return q, ""
				}
			}
		}
	}
	return provenance.Quote{}, writ.ProvenanceSmall
}

// taken are the stretches of the user's words that the other parts of one thing are, and
// one for each of them that is the same word, whatever that rests on.
func (j *judge) taken(b policy.Binding, of *leaf, beside provenance.Quote) (out []provenance.Quote) {
	var same []*leaf
	for _, l := range j.leaves {
		if l == of || l.answer || l.key || !l.among(b.Others) {
			continue
		}
		switch q, why := j.typed(l); {
		case l.rule_ == "user":
			for _, r := range l.refs {
				out = append(out, provenance.Quote{Evidence: r.Evidence, Start: r.Start, End: r.End})
			}
		case l.rule_ == "" && why == "":
			out = append(out, q)
		case provenance.Equal(provenance.Untyped, l.value, of.value):
			same = append(same, l)
		}
	}
	for _, l := range same {
		if q, ok := j.session().ledger.TypedBeside(j.query(l, policy.Source{Kind: policy.FromUser}), beside, out); ok {
			out = append(out, q)
		}
	}
	return out
}

var composed = text.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// typedWithin is where the user typed a value as a part of one word with others of the
// call (R15): "octo/hello" says an owner and his repository, and neither of them says
// anything beside another. The whole word is what he typed, and each part of it is an
// argument as it stands. What has words that order it is ordered where the word stands behind these:
// an address that he asks about orders no approval.
func (j *judge) typedWithin(l *leaf) (provenance.Quote, bool) {
	if j.contract == nil || l.key || l.answer || j.session() == nil {
		return provenance.Quote{}, false
	}
	for _, k := range j.contract.Composites {
		word, parts := j.inOneWord(k)
		if !slices.Contains(parts, l) {
			continue
		}
		q := provenance.Query{Value: strictjson.StringOf(word), Authority: true, Account: true, Named: true}
		if l.byOrder() {
			q.Words, q.Within = l.rule.Words, true
		}
		if at, why := j.session().ledger.Typed(q); why == "" {
			return at, true
		}
	}
	return provenance.Quote{}, false
}

// inOneWord is how a composite is written with the values of the call, and of which arguments these
// are; none where one is missing or is of no such form.
func (j *judge) inOneWord(k policy.Composite) (word string, parts []*leaf) {
	var values []string
	for _, at := range k.Args {
		i := slices.IndexFunc(j.leaves, func(o *leaf) bool {
			return !o.key && !o.answer && at.Match(o.path) && (o.isText && composed().MatchString(o.text) || o.value.Kind() == strictjson.Number && integer(o.value) && composed().Match(o.value.Raw()))
		})
		if i < 0 {
			return "", nil
		}
		o := j.leaves[i]
		parts = append(parts, o)
		if o.isText {
			values = append(values, o.text)
		} else {
			values = append(values, string(o.value.Raw()))
		}
	}
	return k.Write(values), parts
}

// numbers reports whether an argument says by its number what an act is done to.
func (l *leaf) numbers() bool {
	return !l.key && !l.answer && (l.role == policy.Target || l.role == policy.Selector) && integer(l.value)
}

// aim is what the call is done to by its number, and the words for where that is.
func (j *judge) aim() (a provenance.Aim) {
	for _, l := range j.leaves {
		if l.numbers() {
			a.Numbers = append(a.Numbers, l.says())
		}
	}
	if j.contract == nil {
		return a
	}
	for _, k := range j.contract.Composites {
		if word, parts := j.inOneWord(k); word != "" && !slices.ContainsFunc(parts, (*leaf).numbers) {
			a.Places = append(a.Places, word)
		}
	}
	return a
}

// byOrder reports whether words before a value say that it is what is ordered.
func (l *leaf) byOrder() bool { return l.rule != nil && provenance.SayOrders(l.rule.Words) }

// bindings are those of the contract, none where there is none.
func (j *judge) bindings() []policy.Binding {
	if j.contract == nil {
		return nil
	}
	return j.contract.Bindings
}

// isBound reports whether a leaf has to be of one record with others, or names it.
func (j *judge) isBound(l *leaf) bool {
	return slices.ContainsFunc(j.bindings(), func(b policy.Binding) bool { return l.among(b.Others) || b.First.Match(l.path) })
}

// firstOf is the argument that names the record a binding holds another to, nil if it
// is not given: with a * the one at the other's own index, so that a list is bound
// place by place, and what has no partner is of no record.
func (j *judge) firstOf(b policy.Binding, of *leaf) *leaf {
	path := of.path
	if of.key {
		path = path[:len(path)-1]
	}
	if l := j.leafAt(policy.Fill(b.First, b.Others[0], path)); l != nil && !l.empty {
		return l
	}
	return nil
}

package gate

import (
	"cmp"
	"slices"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// # Words of people (R3, R6, R12)
//
// What the user typed, and what a third party says whom he typed.

// typed asks where the user typed a leaf. Who is paid, destroyed or granted something has to
// be set apart or shown by a list: a proper name says that of whom else he spoke too. What is
// newly made has no list.
func (j *judge) typed(l *leaf) (provenance.Quote, writ.Reason) {
	name, _ := l.value.Text()
	c := l.collection()
	lesser := j.d.Effect&(policy.Transfer|policy.Delete|policy.Auth) == 0 || l.rule != nil && l.rule.Makes
	return j.typedSo(l, lesser && j.session() != nil && j.closedCollection(c) && !j.session().ledger.LetIn(c, name), true)
}

// typedSo is typed, and whether a proper name is set apart as one, and words in small letters
// may be one: a third party may be called like any word of the user's sentence ("will you").
func (j *judge) typedSo(l *leaf, proper, small bool) (provenance.Quote, writ.Reason) {
	s := j.session()
	if s == nil || j.strict || l.answer || l.lines || s.ledger.Turns() == 0 {
		return provenance.Quote{}, writ.ProvenanceUnseen
	}
	q := j.query(l, policy.Source{Kind: policy.FromUser})
	q.Named, q.Ordered, q.Tag = j.setApart(l, q), j.commands(l), l.role == policy.Content && !l.key
	q.Proper, q.Secret = proper, l.role == policy.SecretRole
	if l.numbers() {
		q.Aim = j.aim()
	}
	if l.entered() {
		if at, why := s.ledger.Typed(q); why == "" {
			return at, ""
		}
	}
	q.Small = small && j.small(l, &q)
	q.Title, q.One = j.titles(l), l.rule != nil && l.rule.One
	at, why := s.ledger.Typed(q)
	if why == "" && l.entered() && s.ledger.Marked(at) { // it is entered as he set it down
		return provenance.Quote{}, writ.ProvenanceUnseen
	}
	return at, why
}

// titles reports whether a leaf is what something new is called, or a text that is entered: one of the
// user's that names no record, in an act that only writes and sends.
func (j *judge) titles(l *leaf) bool {
	return (l.role == policy.Selector && l.collection() == "" || l.entered()) && l.typ() == provenance.Untyped && !l.key && !l.answer && j.d.Effect&^(policy.Read|policy.Write|policy.Send) == 0
}

// entered reports whether a leaf is a text that the user has entered somewhere by an order.
func (l *leaf) entered() bool {
	return l.role == policy.Content && l.rule != nil && len(l.rule.Orders) > 0
}

// small reports whether a leaf may be typed in small letters: it is a text that is entered, or
// a member of a closed collection that something is written to, or that is deleted by his order, and the act
// says nothing of it that counts elsewhere, neither in its result nor as what it makes.
func (j *judge) small(l *leaf, q *provenance.Query) bool {
	kind := policy.Write
	if l.rule != nil && len(l.rule.Orders) > 0 {
		kind = policy.Delete
	}
	return l.entered() && j.titles(l) ||
		q.Account && !q.Named && !q.Ordered && j.closedCollection(q.Collection) && (q.Type == provenance.Untyped || q.Type == provenance.Name) &&
			(l.rule == nil || !l.rule.Makes) && j.d.Effect&^policy.Read == kind && j.contract != nil && len(j.contract.Outputs) == 0
}

// typedAsWords reports whether the user typed a value, and nothing says that he named it.
func (j *judge) typedAsWords(l *leaf) bool {
	s := j.session()
	if s == nil || j.strict || l.answer || s.ledger.Turns() == 0 {
		return false
	}
	q := j.query(l, policy.Source{Kind: policy.FromUser})
	if !j.setApart(l, q) && !j.commands(l) && l.role != policy.SecretRole {
		return false
	}
	_, r := s.ledger.Typed(q)
	return r == ""
}

// setApart reports whether the user has to set words apart as a name: they say where
// something goes, or who reads a free text, and strangers can be called like any words
// of his sentence. In a closed collection there are none, unless an act of the session let
// one in: there a proper name within his sentence is what he calls a member.
func (j *judge) setApart(l *leaf, q provenance.Query) bool {
	reads := j.composes && (l.role == policy.Target || l.role == policy.Selector)
	return (q.Target || reads) && j.d.Effect&(policy.Send|policy.Egress|policy.Transfer) != 0
}

// commands reports whether a leaf is what an act is told to do: a command, a statement.
// It is made of words that users say, so that he must have ordered it.
func (j *judge) commands(l *leaf) bool {
	return l.role == policy.Query && j.d.Effect&(policy.Write|policy.Delete|policy.Send|policy.Transfer|policy.Auth) != 0
}

// fromUser is R6. What the user typed whole may be a target (R28): he chose it.
func (j *judge) fromUser(l *leaf) writ.Reason {
	q, r := j.typed(l)
	if _, _, why := provenance.Canonical(provenance.Decimal, l.value); l.role == policy.Amount && why == "" && !j.strict {
		// R11: a number is an amount where its currency or the word before it says so,
		// and is read whole.
		if j.said(l) {
			return ""
		}
		return cmp.Or(r, writ.ProvenanceSmall)
	}
	if r == writ.ProvenanceSmall && !l.byOrder() {
		q, r = j.typedBeside(l)
	}
	rule := "user"
	if r != "" && !j.strict {
		if at, ok := j.typedWithin(l); ok {
			q, r, rule = at, "", "user:composite"
		} else if name, dir, ok := j.typedInTwo(l); ok {
			l.founded = founded{rule_: "user:within", label: writ.User, refs: []Ref{quoteOf(name), quoteOf(dir)}, newest: name.Evidence}
			return ""
		}
	}
	if r != "" && !j.said(l) {
		return r
	} else if r != "" {
		return ""
	}
	l.founded = founded{rule_: rule, label: writ.User, refs: []Ref{quoteOf(q)}, newest: q.Evidence}
	if j.d.Effect&(policy.Transfer|policy.Delete) != 0 {
		s := j.session()
		l.contested = s.ledger.Contested(j.query(l, policy.Source{}))
	}
	return ""
}

// fromParty is R3: an authenticated third party's identity vouches if the user
// typed it whole. Otherwise the output's own reason stands. Where something goes he set
// it apart as a name, as anything he types (R6); as a proper name in his sentence, if the
// collection is closed: that a member spoke shows that the collection has him, as a list
// of it would, for he cannot have forged it and no stranger is in it. Who has read this
// can call himself so only as a member, and is then the one whom the user named.
func (j *judge) fromParty(l *leaf, q provenance.Query, r writ.Reason) writ.Reason {
	if r != writ.ProvenanceLabel && r != writ.ProvenanceOpenTarget {
		return r
	}
	typed, not := j.typedSo(l, false, false)
	proper := not != "" && j.closedCollection(q.Collection)
	if proper {
		p := j.query(l, policy.Source{Kind: policy.FromUser})
		p.Named, p.Proper = true, true
		if j.strict || l.answer || l.lines {
			return r
		}
		typed, not = j.session().ledger.Typed(p)
	}
	if not != "" {
		return r
	}
	q.Party, q.Target, q.Once = true, proper, false
	a := j.session().ledger.Find(q)
	if a.Vouched = slices.DeleteFunc(a.Vouched, func(f provenance.Fact) bool { return proper && f.Collection != q.Collection }); len(a.Vouched) == 0 {
		return r
	}
	best := a.Vouched[0]
	l.founded = founded{rule_: "party", label: writ.User, refs: []Ref{refOf(best), quoteOf(typed)}, newest: max(newest(a.Vouched), typed.Evidence),
		contested: a.Contested && j.d.Effect&(policy.Transfer|policy.Delete) != 0}
	return ""
}

// fromSaidBy is R12: what the one asked for whom the user named. It stays his word:
// nothing is destroyed or granted on it, and where there is money in it, it is
// contested.
func (j *judge) fromSaidBy(l *leaf, src policy.Source) writ.Reason {
	if j.session() == nil {
		return writ.ProvenanceSession
	}
	said, by, at, ok := j.named().SaidBy(j.query(l, src))
	if !ok || l.answer || l.key || j.d.Effect&(policy.Delete|policy.Auth) != 0 {
		return writ.ProvenanceSaidBy
	}
	l.founded = founded{rule_: "said_by", label: min(said.Label, by.Label), refs: []Ref{refOf(said), refOf(by), quoteOf(at)}, open: true,
		newest: max(said.Evidence, by.Evidence, at.Evidence), contested: j.d.Effect&policy.Transfer != 0}
	return ""
}

// ofNamed is the rule of a value of a list that the user asked for by the record it is of.
const ofNamed = "of_named"

// fromNamed is R12 for a list: "the same participants as 'Kick-off'". Nothing is paid,
// destroyed or granted on it. Where a day narrowed the search for the record, the act is for
// one that the user said before: of the act he may have said the other.
func (j *judge) fromNamed(l *leaf, src policy.Source) writ.Reason {
	if j.session() == nil {
		return writ.ProvenanceSession
	}
	as, ok := j.named().OfNamed(j.query(l, src), src.Phrases)
	if !ok || l.answer || l.key || j.d.Effect&(policy.Transfer|policy.Delete|policy.Auth) != 0 ||
		as.Dated && !j.datedBefore(as.Phrase) {
		return writ.ProvenanceLabel
	}
	l.founded = founded{rule_: ofNamed, label: min(as.Value.Label, as.Name.Label), open: true,
		refs:   []Ref{refOf(as.Value), refOf(as.Name), quoteOf(as.Phrase), quoteOf(as.At)},
		newest: max(as.Value.Evidence, as.Name.Evidence, as.At.Evidence)}
	return ""
}

// datedBefore reports whether an act is for days that the user said before a place.
func (j *judge) datedBefore(at provenance.Quote) bool {
	times := 0
	for _, l := range j.leaves {
		if l.role != policy.TimeRole || l.key || l.empty {
			continue
		}
		if times++; !j.session().ledger.SaidBefore(l.value, at) {
			return false
		}
	}
	return times > 0
}

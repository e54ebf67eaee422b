package gate

import (
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/money"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// said asks whether the user named a day, a time or an amount in other letters than
// an argument has (R10, R11). What he said is an exact set of values, and the
// argument is one of them; no part of it is anybody else's.
func (j *judge) said(l *leaf) bool {
	s := j.session()
	if s == nil || j.strict || l.answer || l.key || l.rule == nil {
		return false
	}
	switch l.role {
	case policy.TimeRole:
		at, ok := s.ledger.SaidTime(l.value)
		if !ok && l.rule.EndsDay {
			// The operator says that it is an end: "on Friday" is the whole day, to a tool
			// that takes its begin and its end. Where an hour was said, no day is.
			at, ok = s.ledger.SaidDayOfEnd(l.value)
		}
		rule, label := "user:time", writ.User
		if !ok && l.rule.AnyHour && !j.isBound(l) {
			// The operator says that the hour is the agent's where the user named a day alone.
			// What is of a record has that record's.
			at, ok = s.ledger.SaidDayOf(l.value)
			if !ok && l.rule.EndsDay {
				// It is an end: where he said when it begins and no more, so is how long it takes.
				at, ok = s.ledger.SaidBeginOf(l.value)
			}
			rule, label = "user:day", writ.Model
		}
		if ok {
			l.founded = founded{rule_: rule, label: label}
			for _, q := range at {
				l.refs, l.newest = append(l.refs, quoteOf(q)), max(l.newest, q.Evidence)
			}
			return true
		}
	case policy.Amount:
		return j.saidAmount(l)
	}
	return false
}

// saidAmount accepts an amount that the user's latest turn names, or that follows
// from one there by a form of the contract (R11): from another of the turn, or from a
// number of the record that the argument's `of` names, at a source it accepts. A
// ledger holds no values, so the second operand is computed and looked for there.
func (j *judge) saidAmount(l *leaf) bool {
	want, _, why := provenance.Canonical(provenance.Decimal, l.value)
	if why != "" {
		return false
	}
	words := append(slices.Clone(l.rule.Words), l.collection())
	numbers := j.session().ledger.SaidNumbers(words, l.rule.Units)
	accept := func(rule string, label writ.Label, more []Ref, ns ...provenance.Number) bool {
		l.founded = founded{rule_: rule, label: label, refs: more}
		for _, n := range ns {
			l.refs, l.newest = append(l.refs, quoteOf(n.At)), max(l.newest, n.At.Evidence)
		}
		return true
	}
	if n, ok := j.session().ledger.SaidAmount(want, words, l.rule.Units, slices.Contains(l.rule.Forms, money.Sum)); ok {
		return accept("user:amount", writ.User, nil, n)
	}
	for _, form := range l.rule.Forms {
		for _, a := range numbers {
			if !a.Fits(form) {
				continue
			}
			if i := slices.IndexFunc(numbers, func(b provenance.Number) bool { return follows(form, a, b, want) }); i >= 0 {
				return accept("derived:"+string(form), writ.User, nil, a, numbers[i])
			}
			if a.Bare {
				continue
			}
			if f, ok := j.operand(l, form, a, want); ok {
				return accept("derived:"+string(form), min(writ.User, f.Label), []Ref{refOf(f)}, a)
			}
		}
	}
	return false
}

// follows reports whether an amount follows by a form from two numbers of a turn.
func follows(form money.Form, a, b provenance.Number, want string) bool {
	operands := []string{a.Value, b.Value}
	if form == money.PercentPlus {
		operands = append(operands, a.Value)
	}
	percent := form == money.Percent || form == money.PercentPlus
	if a.At == b.At || b.Percent != percent || a.Percent || a.Bare && b.Bare || !b.Fits(form) {
		return false
	}
	_, ok := money.Derive(form, operands, max(a.Places, b.Places), want)
	return ok
}

// ruleDue names the rule of what is due.
const ruleDue = "derived:" + policy.Due

// fromDue accepts an amount of which the server takes no other: what else the call says
// determines it, and that is judged by itself. One of a call, for what is due in all could
// be moved between two; and none below zero, which would make room for more elsewhere.
func (j *judge) fromDue(l *leaf) writ.Reason {
	n, _, why := provenance.Canonical(provenance.Decimal, l.value)
	if why != "" || strings.HasPrefix(n, "-") || l.answer || l.key ||
		slices.ContainsFunc(j.leaves, func(o *leaf) bool { return o != l && o.rule_ == ruleDue }) {
		return writ.ProvenanceUnseen
	}
	l.founded = founded{rule_: ruleDue, label: writ.Model}
	return ""
}

// rounded accepts an amount to which one rounds that an output vouches for, where the
// contract has that form: nobody can pay the other. Half a unit of it is all that anybody
// could gain. What belongs to one record is taken from it as it stands (R37).
func (j *judge) rounded(l *leaf, q provenance.Query) bool {
	if j.strict || l.role != policy.Amount || l.rule == nil || l.key || l.answer || !slices.Contains(l.rule.Forms, money.Round) || j.isBound(l) {
		return false
	}
	q.Rounded, q.Once = true, false
	a := j.session().ledger.Find(q)
	if len(a.Vouched) == 0 || a.OneTime {
		return false
	}
	l.founded = j.foundedOn(a)
	l.rule_ = "derived:" + string(money.Round)
	return true
}

// operand looks in the record that the argument is of for the number from which,
// with one of the user's, the amount follows.
func (j *judge) operand(l *leaf, form money.Form, said provenance.Number, want string) (provenance.Fact, bool) {
	for _, b := range j.bindings() {
		if !l.among(b.Others) {
			continue
		}
		first := j.firstOf(b, l)
		if first == nil {
			continue
		}
		records := j.session().ledger.Records(j.query(first, policy.Source{}), b.By)
		for _, v := range money.Solve(form, said.Value, said.Percent, said.Places, want) {
			for _, src := range j.sources(l) {
				if src.Kind != policy.FromOutput || src.Ours {
					continue
				}
				q := j.query(l, src)
				q.Value = strictjson.Of([]byte(v))
				if f, ok := records.Hold(q); ok && !f.OneTime {
					return f, true
				}
			}
		}
	}
	return provenance.Fact{}, false
}

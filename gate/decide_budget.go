package gate

import (
	"math/big"
	"slices"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// phrases are what the user says one of for a call without a target, a selector or an amount
// (R21): those of the contract, or of a case of its own that has some.
func (j *judge) phrases() (phrases []string, own *policy.Case) {
	c := j.contract
	if c == nil || c.NoArgs != policy.NoArgsUser || j.strict {
		return nil, nil
	}
	if own = caseOf(c, j.parts); own != nil && len(own.Phrases) > 0 {
		return own.Phrases, own
	}
	return c.Phrases, nil
}

// phrased reports whether the user may say one of these in place of an order that an argument asks
// for. Where an act is done no phrase says.
func (j *judge) phrased() bool {
	phrases, _ := j.phrases()
	return len(phrases) > 0 && len(j.contract.Where) == 0
}

// saysWhat reports whether an argument that names something says by itself what the user wants done:
// not one of the session's own. Where he is to say a phrase, or arguments have orders, nor does one
// that the operator does not know, for whatever he typed may stand there; and where there are
// orders, what is ordered does and nothing else that he named.
func (j *judge) saysWhat(l *leaf) bool {
	ordering := !j.strict && slices.ContainsFunc(j.rules, policy.ArgRule.OrdersWhat)
	switch {
	case l.inside && l.rule_ == "invented":
		return false
	case l.rule == nil:
		return !ordering && (j.contract == nil || j.contract.NoArgs != policy.NoArgsUser || j.strict)
	case !ordering || len(j.contract.Where) > 0:
		return true
	}
	return len(l.rule.Orders) > 0 && (l.rule_ == "approval" || j.ordered(l) == "")
}

// saidSo reports whether a call without a target, a selector or an amount may be
// made all the same (R21): the contract says so, or the user said one of its phrases
// in his latest turn.
func (j *judge) saidSo() bool {
	c, s := j.contract, j.session()
	switch {
	case c == nil:
		return false
	case c.NoArgs != policy.NoArgsUser || j.strict || s == nil:
		return c.NoArgs == policy.NoArgsAllow
	}
	phrases, own := j.phrases()
	// What an enum or a control chooses is not said by the phrase: the user said it too, by a
	// phrase of its own or in its word.
	// A phrase of a case says the case's value, and what the case's own args list: the
	// operator wrote it for these and for no others, so that whoever has read it can
	// have nothing else done than what the user's words were listed for.
	// Where it is done he said before, if he names no other place now.
	for _, l := range j.leaves {
		if place := l.rule != nil && l.rule.Place && !l.key && !l.answer && !s.ledger.Elsewhere(l.says()); !place && !l.empty && (l.role == policy.Enum || l.role == policy.Control) && !l.ordered && (own == nil || !j.saidByCase(l)) && !s.ledger.Spoke(l.says()) {
			return false
		}
	}
	return slices.ContainsFunc(phrases, s.ledger.Said)
}

// saidByCase reports whether a value is that by which the case is told, or of an
// argument that the case's own args list.
func (j *judge) saidByCase(l *leaf) bool {
	if l.key || l.answer {
		return false
	}
	if slices.Equal(l.path, j.contract.CaseAt) {
		return true
	}
	for i := len(j.contract.Args); i < len(j.rules); i++ {
		if l.rule == &j.rules[i] {
			return true
		}
	}
	return false
}

// # Budgets (R27)
//
// Each of a thousand acts may be founded and all of them too many. A budget counts
// what a session accepted, by the time of the decisions; the decision that takes from
// it is the one that is recorded, and nothing is given back. No person is asked: the
// operator's bound is not evidence that is missing.

// spending is what one accepted call took from one budget.
type spending struct {
	of     string // tool, budget and the value it is counted for, by keyed digest
	at     time.Time
	amount *big.Rat // 1 where calls are counted
	total  *big.Rat // with all that was taken before
}

// budgets holds the caps of amounts, and takes from the budgets.
func (j *judge) budgets(against func(string, writ.Reason)) {
	if j.contract == nil || j.in.Session == nil {
		return
	}
	for _, l := range j.leaves {
		if l.rule != nil && l.rule.Max != "" && !l.key && !l.answer {
			if n, ok := rat(l.value); !ok || n.Cmp(number(l.rule.Max)) > 0 || n.Sign() < 0 {
				against(l.pointer, writ.PolicyCap)
			}
		}
	}
	for i := range j.contract.Budgets {
		b := &j.contract.Budgets[i]
		most := big.NewRat(int64(b.Calls), 1)
		if b.HasSum {
			most = number(b.Max)
		}
		for _, take := range j.takes(i, b) {
			if take.amount == nil || j.in.Session.spent(take, b.Within).Cmp(most) > 0 {
				against("", writ.PolicyBudget)
				break
			}
			j.d.basis.spends = append(j.d.basis.spends, take)
		}
	}
}

// takes returns what a call takes from a budget: once, or once for each value that it
// is counted for.
func (j *judge) takes(i int, b *policy.Budget) []spending {
	amount := big.NewRat(1, 1)
	if b.HasSum {
		amount = new(big.Rat)
		for _, l := range j.leaves {
			if !l.key && !l.answer && b.Sum.Match(l.path) {
				n, ok := rat(l.value)
				if !ok || n.Sign() < 0 {
					return []spending{{}} // what cannot be summed is over every sum
				}
				amount.Add(amount, n)
			}
		}
	}
	of := j.in.Call.Server + "/" + toolOf(j.in.Call) + "\x00" + itoa(i) + "\x00"
	if !b.HasPer {
		return []spending{{of: of, at: j.in.Time, amount: amount}}
	}
	var out []spending
	for _, l := range j.leaves {
		if !l.key && !l.answer && b.Per.Match(l.path) {
			out = append(out, spending{of: of + j.in.Session.ledger.Digest(l.typ(), l.value), at: j.in.Time, amount: amount})
		}
	}
	if out == nil {
		out = append(out, spending{of: of + "absent", at: j.in.Time, amount: amount})
	}
	return out
}

// spent is what a session would have spent with one more.
func (s *Session) spent(more spending, within time.Duration) *big.Rat {
	sum := new(big.Rat).Set(more.amount)
	taken := s.spending[more.of]
	for i := len(taken) - 1; i >= 0; i-- {
		if within == 0 {
			return sum.Add(sum, taken[i].total)
		}
		if more.at.Sub(taken[i].at) >= within {
			break
		}
		sum.Add(sum, taken[i].amount)
	}
	return sum
}

// spend takes from a budget.
func (s *Session) spend(take spending) {
	take.total = new(big.Rat).Set(take.amount)
	if taken := s.spending[take.of]; len(taken) > 0 {
		take.total.Add(take.total, taken[len(taken)-1].total)
	}
	s.spending[take.of] = append(s.spending[take.of], take)
}

// rat is the exact value of a number, as JSON or as text.
func rat(v strictjson.Value) (*big.Rat, bool) {
	d, _, why := provenance.Canonical(provenance.Decimal, v)
	if why != "" {
		return nil, false
	}
	return new(big.Rat).SetString(d)
}

// number reads a decimal that the policy's compiler accepted.
func number(d string) *big.Rat {
	n, _ := new(big.Rat).SetString(d)
	return n
}

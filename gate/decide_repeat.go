package gate

import (
	"bytes"
	"slices"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// acted is one act that is not idempotent, as R23 remembers it.
type acted struct {
	call  callKey
	fresh uint32 // the number of the first evidence that is fresh after it
	fate  fate
}

// fate is what is known of whether an act happened.
type fate uint8

const (
	unheard   fate = iota // no answer came yet, or none will
	answered              // the server answered
	confirmed             // a person said that it happened
)

// need is what a refusal says of the act that was made before.
func (a *acted) need(session string) string {
	switch a.fate {
	case unheard:
		return "the same act was made before, and whether that one happened is not on record, which no read tells: ask the user to look, and to say so " +
			"(`writ audit show " + shown(session) + " --unsettled`, `writ audit settle`, in a terminal of his own) or to order it anew"
	case confirmed:
		return "the same act was made before, and a person confirmed that it happened; the user may order it anew"
	}
	return needs[writ.PolicyRepeated]
}

// repeated is R23: where the contract says that an act is not idempotent, the
// same act again needs evidence that came after it. An act that rests on
// constants alone cannot have any. Where no answer said how that one ended, a part of it has to
// be the user's own words: what a tool returns is the same whether it happened or
// not. It returns the latest that was made before, nil where this one may be made.
func (j *judge) repeated() *acted {
	s := j.in.Session
	if s == nil || j.contract == nil || j.contract.Idempotent == nil || *j.contract.Idempotent {
		return nil
	}
	var last *acted
	made := s.done[j.actKey()]
	if j.isRetry(made) {
		return nil
	}
	for i := range made {
		if last == nil || made[i].fresh >= last.fresh {
			last = &made[i]
		}
	}
	if last == nil {
		return nil
	}
	fresh, ordered := false, last.fate == answered
	for _, l := range j.leaves {
		if l.newest == 0 { // a constant is neither old nor new
			continue
		}
		if l.newest < last.fresh {
			return last
		}
		fresh = true
		ordered = ordered || slices.ContainsFunc(l.refs, func(r Ref) bool { return r.Tool == userTool && r.Evidence >= last.fresh })
	}
	if fresh && ordered {
		return nil
	}
	return last
}

// keyHolds is how long a server is taken to remember a key of idempotency, from the first
// call that carried it.
const keyHolds = 24 * time.Hour

// hasKey reports whether the call carries the argument by which its server does an act
// once: a text that is not empty.
func (j *judge) hasKey() bool {
	if j.contract.OnceBy == "" {
		return false
	}
	key, ok := j.args.Get(j.contract.OnceBy).Text()
	return ok && key != ""
}

// isRetry reports whether the call is one that no answer came of, made again byte for byte
// and with its key: whether or not that one happened, the server does no second (P28). It
// has to be the latest of made: where another was made since, or is known since to have
// happened, that one stands in its place. And of all that went out with these bytes none may
// be known to have happened, nor be from a time of which the server forgot the key.
func (j *judge) isRetry(made []acted) bool {
	s, in := j.in.Session, j.in
	if len(made) == 0 || !j.hasKey() {
		return false
	}
	these := callKey{arguments: s.digest(in.Call.Arguments.Raw()), answers: s.digest(in.Call.Answers.Raw())}
	if !made[len(made)-1].call.sends(&these) {
		return false
	}
	return !slices.ContainsFunc(made, func(a acted) bool {
		age := in.Time.Sub(time.UnixMicro(a.call.time))
		return a.call.sends(&these) && (a.fate != unheard || age < 0 || age > keyHolds)
	})
}

// sends reports whether two calls of one act are the same bytes.
func (k *callKey) sends(as *callKey) bool {
	return k.arguments == as.arguments && k.answers == as.answers
}

// actKey is the keyed digest of one act: its tool and what its arguments mean, "28" and 28 the
// same amount. A key of
// idempotency is no part of that: with another it is the same act, made a second time.
func (j *judge) actKey() string {
	same := map[string][]byte{} // however it is written
	for _, l := range j.leaves {
		t := l.typ()
		if t == provenance.Untyped && l.role == policy.Amount {
			t = provenance.Decimal
		}
		if c, _, why := provenance.Canonical(t, l.value); why == "" && t != provenance.Untyped && !l.answer && !l.key {
			same[l.pointer] = strictjson.Quote(c)
		}
	}
	raw := rewrite(j.args, nil, same)
	if k := j.contract.OnceBy; k != "" && j.args.Get(k).Exists() {
		all := strictjson.Of(raw)
		raw = []byte{'{'}
		for name, v := range all.Members() {
			if name != k {
				raw = append(append(append(append(raw, strictjson.Quote(name)...), ':'), v.Raw()...), ',')
			}
		}
		raw = append(bytes.TrimSuffix(raw, []byte{','}), '}')
	}
	args, _ := strictjson.Canonical(raw) // checked: it has a canonical form
	return j.in.Session.digest(append([]byte(j.in.Call.Server+"/"+toolOf(j.in.Call)+"\x00"), args...))
}

// ended folds in how an act ended that is not idempotent. What it itself answers is
// not read after it. An answer says more than a person did who thought that none would
// come.
func (s *Session) ended(o *Observation) {
	made := s.done[o.act]
	i := slices.IndexFunc(made, func(a acted) bool { return a.call == *o.call && a.fate != answered })
	if i < 0 {
		if o.Why == whyUnknown {
			return
		}
		i, made = len(made), append(made, acted{call: *o.call})
		s.done[o.act] = made
	}
	made[i].fresh = max(made[i].fresh, o.evidence+1)
	if o.Why == whyUnknown {
		return
	}
	known(made, i, o.once, func(a *acted) { a.fate, a.fresh = answered, max(a.fresh, o.evidence+1) })
}

// known puts what is known now of an act on it and, where its server does an act once for
// its key, on all that went out with the same bytes; what was answered stays so. They are
// the latest then, and come last.
func known(made []acted, of int, once bool, is func(*acted)) {
	var others, these []acted
	for i, a := range made {
		if i == of || once && a.fate != answered && a.call.sends(&made[of].call) {
			is(&a)
			these = append(these, a)
		} else {
			others = append(others, a)
		}
	}
	copy(made, append(others, these...))
}

// Settle folds in what a person says of an act that was decided in this session and of
// which no result says whether it happened. One that did not may be asked for again, once:
// R23 remembers nothing of it. The bytes were sent in either case, so what they lowered
// stays lowered (R4, R38), and what the act used up stays used. One that did happen is all
// that its server did for the key it carried, however often it was sent; that it did not
// is said of that call alone, for another with its key may be under way. Of any other call
// nothing changes. Only a person may cause it.
func (s *Session) Settle(d *Decision, happened bool) {
	made := s.done[d.basis.act]
	i := slices.IndexFunc(made, func(a acted) bool { return a.call == d.key() && a.fate == unheard })
	switch {
	case i < 0:
	case happened:
		known(made, i, d.basis.once, func(a *acted) { a.fate = confirmed })
	case len(made) == 1:
		delete(s.done, d.basis.act)
	default:
		s.done[d.basis.act] = slices.Delete(made, i, i+1)
	}
}

package gate

import (
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// What vouches for a path or a name that stands nowhere as it is (R13, R15, R36).

// fromJoin accepts the cleaned join of a vouched directory and a vouched name
// (R13). A path that was itself listed lends no name: equality is no join.
func (j *judge) fromJoin(l *leaf) writ.Reason {
	s := j.session()
	if s == nil {
		return writ.ProvenanceSession
	}
	jn := s.ledger.FindJoin(j.query(l, policy.Source{Kind: policy.FromDerived}))
	whole := s.ledger.Find(provenance.Query{Value: l.value, Type: provenance.Path, Strict: true, Cleared: j.cleared}).Vouched
	jn.Name = slices.DeleteFunc(jn.Name, func(n provenance.Fact) bool {
		return slices.ContainsFunc(whole, func(w provenance.Fact) bool { return samePlace(n, w) })
	})
	if j.strict || jn.Reason != "" || len(jn.Dir) == 0 || len(jn.Name) == 0 {
		return writ.ProvenanceDerived
	}
	l.founded = founded{rule_: "derived:path_join", label: min(jn.Dir[0].Label, jn.Name[0].Label),
		newest: min(newest(jn.Dir), newest(jn.Name)),
		refs:   []Ref{refOf(jn.Dir[0]), refOf(jn.Name[0])}}
	return ""
}

// fromTypedIn accepts the join of a directory that is vouched for and a name, or the path
// below it, that the user typed, in a closed collection: which directory he means the agent
// chooses among those that were shown. What makes directories makes the one that he typed a
// path below; what writes files does not, or "python/pip" would be a program.
func (j *judge) fromTypedIn(l *leaf) writ.Reason {
	s, text := j.session(), ""
	if text, _ = l.value.Text(); s == nil || len(text) > longestPath || j.strict || l.answer || l.key || l.lines || s.ledger.Turns() == 0 || !j.closedCollection(l.collection()) || j.commands(l) {
		return writ.ProvenanceDerived
	}
	name, dir := j.query(l, policy.Source{}), j.query(l, policy.Source{})
	name.Type, dir.Type = provenance.Untyped, provenance.Path
	name.Account, name.Called = false, nil // he typed that very name
	for at := strings.LastIndexByte(text, '/'); at > 0; at = strings.LastIndexByte(text[:at], '/') {
		name.Value, dir.Value = strictjson.StringOf(text[at+1:]), strictjson.StringOf(text[:at])
		// What is no file's name by its form he set apart: any word of his sentence is one.
		name.Named = j.setApart(l, name) || !strings.ContainsAny(text[at+1:], "./") || strings.Contains(text[at+1:], " ")
		said, why := s.ledger.Typed(name)
		if why != "" {
			above := false
			if l.rule.MakesDirs() {
				said, above = s.ledger.TypedAbove(name.Value)
			}
			if !above {
				continue
			}
		}
		if a := s.ledger.Find(dir); len(a.Vouched) > 0 && !a.OneTime {
			l.founded = founded{rule_: ruleTypedIn, label: min(writ.User, a.Vouched[0].Label), refs: []Ref{refOf(a.Vouched[0]), quoteOf(said)}, newest: min(a.Vouched[0].Evidence, said.Evidence)}
			return ""
		}
	}
	return writ.ProvenanceDerived
}

// longestPath is how long a path may be of which each part is looked at.
const longestPath = 4096

// ruleTypedIn is the rule of a name that the user typed in a directory that is vouched for.
const ruleTypedIn = "derived:" + policy.TypedIn

func samePlace(a, b provenance.Fact) bool {
	return a.Evidence == b.Evidence && a.Pointer == b.Pointer && a.Line == b.Line && a.Inner == b.Inner && a.Key == b.Key
}

// fromFresh accepts a name that the agent made up, where it can hide nothing and
// overwrites nothing that was listed (R36). It is the model's all the same. Its directory
// was shown, or is the user's word where the argument takes that: he who typed it may have
// the file written there, and what stands there is known from the listing. In a closed
// collection its listing alone shows it: what is in it may be written over.
func (j *judge) fromFresh(l *leaf, src policy.Source) writ.Reason {
	s := j.session()
	if s == nil {
		return writ.ProvenanceSession
	}
	if len(l.rule.Begins) > 0 {
		return j.fromOrder(l, src)
	}
	dir, ok := s.ledger.Fresh(j.query(l, policy.Source{}), l.rule.Extensions)
	if !ok {
		return writ.ProvenanceDerived
	}
	l.founded = founded{rule_: "derived:fresh", label: writ.Model}
	if a := s.ledger.Find(dir); len(a.Vouched) > 0 {
		l.refs, l.newest = []Ref{refOf(a.Vouched[0])}, a.Vouched[0].Evidence
		return ""
	}
	if made, ok := s.ledger.Invented(dir); ok {
		l.refs, l.newest = []Ref{refOf(made)}, made.Evidence
		return ""
	}
	if dir.Named = j.setApart(l, dir); !l.answer && !l.lines && slices.ContainsFunc(j.sources(l), func(src policy.Source) bool { return src.Kind == policy.FromUser }) {
		if at, r := s.ledger.Typed(dir); r == "" {
			l.refs, l.newest = []Ref{quoteOf(at)}, at.Evidence
			return ""
		}
	}
	if entry, ok := s.ledger.Listed(dir); ok {
		l.refs, l.newest = []Ref{refOf(entry)}, entry.Evidence
		return ""
	}
	l.founded = founded{}
	return writ.ProvenanceDerived
}

// fromOrder accepts a name that the agent made up where the user ordered something new and
// gave it no name, of what the act makes and fails with if there is one (R36). An attacker
// who has read this can choose the rest of one name for each order, behind a beginning that
// the operator listed: he tells those who read what the user named, who read the agent's free
// texts as well (R14), and like them it holds no atom and follows no secret (R30).
func (j *judge) fromOrder(l *leaf, src policy.Source) writ.Reason {
	s := j.session()
	if j.strict || l.answer || l.key || !j.creating() || !provenance.Begun(l.value, l.rule.Begins) ||
		slices.ContainsFunc(j.leaves, func(o *leaf) bool { return o != l && o.rule_ == "derived:fresh" && o.inside && o.text != l.text }) {
		return writ.ProvenanceUnseen
	}
	at, ok := s.ledger.NameOrdered(l.value, src.Phrases)
	switch {
	case !ok:
		return writ.ProvenanceUnseen
	case s.ledger.Secrets():
		return writ.ProvenanceSecret
	}
	l.founded = founded{rule_: "derived:fresh", label: writ.Model, refs: []Ref{quoteOf(at)}, newest: at.Evidence, inside: true}
	return ""
}

// creating reports whether a call does no more than such a name is for: it destroys, pays,
// grants and fetches nothing.
func (j *judge) creating() bool {
	return j.d.Effect&^(policy.Read|policy.Write|policy.Send) == 0
}

// standing spells what stands at a pointer into the arguments.
func (j *judge) standing(pointer string) string {
	path, err := strictjson.ParsePointer(pointer)
	if err != nil { // the policy's compiler accepted it
		return ""
	}
	return j.session().ledger.Standing(pointer, j.parts.Find(path))
}

// placesOf says in what an argument names what the act makes.
func (j *judge) placesOf(l *leaf) (in []string) {
	if l.rule == nil || j.session() == nil {
		return nil
	}
	for _, at := range l.rule.In {
		in = append(in, j.standing(at.Source))
	}
	return in
}

// invented is R13 for a name that the agent made up (R36): what the session newly made under
// it may be written again before it is listed. The name stays the model's, and nothing is
// destroyed, sent, paid or granted on it. Who writes there what he wants could write it when
// it was made. A person's yes to that act counts the same. What is no path can be anything,
// such as a member of a group: then only text that stays here is written to it.
//
// What an act made in what other arguments said is sent to as well (creating): who reads it
// is who reads that.
func (j *judge) invented(l *leaf, q provenance.Query) bool {
	if j.strict || l.answer || l.key || l.role != policy.Target && l.role != policy.Selector {
		return false
	}
	if made, ok := j.session().ledger.Inside(q, j.in.Call.Server, j.standing); ok && j.creating() {
		l.founded = founded{rule_: "invented", label: writ.Model, refs: []Ref{refOf(made)}, newest: made.Evidence, inside: true}
		return true
	}
	if j.d.Effect&^(policy.Read|policy.Write) != 0 {
		return false
	}
	made, ok := j.session().ledger.Invented(q)
	if ok = ok && (made.Type == provenance.Path || j.writesHere()); ok {
		l.founded = founded{rule_: "invented", label: writ.Model, refs: []Ref{refOf(made)}, newest: made.Evidence}
	}
	return ok
}

// writesHere reports whether a call writes a text that stays here (R14).
func (j *judge) writesHere() bool {
	return slices.ContainsFunc(j.leaves, func(l *leaf) bool { return l.role == policy.Content && l.rule != nil && l.rule.Local })
}

// typedInTwo asks where the user typed a path as a name and the directory it is in (R15).
func (j *judge) typedInTwo(l *leaf) (name, dir provenance.Quote, ok bool) {
	s, q := j.session(), j.query(l, policy.Source{Kind: policy.FromUser})
	if s == nil || l.answer || l.key || l.lines || s.ledger.Turns() == 0 || j.setApart(l, q) || j.commands(l) {
		return name, dir, false
	}
	q.Orders = nil // of one of the two words (ordered)
	return s.ledger.TypedWithin(q)
}

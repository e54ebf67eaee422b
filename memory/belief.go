package memory

import (
	"cmp"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// What is believed is a function of the statements on record, computed when it
// is asked and stored nowhere. Of one question the newest word of the highest
// level wins: a value is replaced by another that is said later at its level or a
// higher one, and disputed by one that is said later at a lower level, from 2 on,
// until it is said once more. What is said to be added to others replaces none, and
// goes with the newest word that is not one of them. What is said at level 1 is reported and moves
// nothing; what nothing bears out is the agent's own, and unverified. Nothing
// fades.

// Status is what a claim is worth, in one word.
type Status string

// The words. An established claim is borne out at level 2 or more and nobody of
// level 2 disputes it; of a contested one somebody does; a replaced one gave way
// to a later word; a reported one is what somebody else said, and an unverified
// one what the agent made of something.
const (
	Established Status = "established"
	Contested   Status = "contested"
	Reported    Status = "reported"
	Unverified  Status = "unverified"
	Replaced    Status = "replaced"
	Gone        Status = "erased"
)

// statuses are the words, the best first.
var statuses = []Status{Established, Contested, Reported, Unverified, Replaced, Gone}

// Rule is the id of the rule by which a claim has its status.
type Rule string

// The rules of belief.
const (
	RuleEstablished Rule = "belief.newest_word"
	RuleContested   Rule = "belief.rival_of_lower_level"
	RuleReported    Rule = "belief.level_1"
	RuleUnverified  Rule = "belief.unborne"
	RuleReplaced    Rule = "belief.newer_word"
	RuleErased      Rule = "belief.erased"
)

// Standing is what a claim is worth, and why.
type Standing struct {
	Status Status `json:"state"`
	Rule   Rule   `json:"rule_id"`
	// Level is the highest at which it is said.
	Level int `json:"trust"`
	// By is the observation or decision that said it last at that level.
	By string `json:"by,omitempty"`
	// Rivals are the claims that dispute it, ReplacedBy the one that took its
	// place.
	Rivals     []string `json:"rivals,omitempty"`
	ReplacedBy string   `json:"replaced_by,omitempty"`
	// Denied is how many other values of the question are only reported.
	Denied int `json:"reported_otherwise,omitempty"`
}

// statement is one word on one claim.
type statement struct {
	claim string
	level int
	from  string // an observation, or the decision of a ruling
	at    position
	side  []string
	also  bool
}

// position is where in the order of what was seen a statement stands. Clocks
// do not enter (M08).
type position struct {
	order    uint64 // in the log
	after    uint64 // the record of what is no evidence
	offset   int
	evidence string
}

func (a position) compare(b position) int {
	return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.after, b.after), cmp.Compare(a.offset, b.offset))
}

// positionAt is where a sentence stands that begins at an offset of what is kept.
// What a user types has an order, whatever was cropped out of it; of the texts of
// one result none is newer.
func (o *Observation) positionAt(at int) position {
	p := position{order: o.Order, after: o.After, evidence: o.Evidence}
	if o.Class == ClassDirectUser {
		p.offset = o.Offset + at
	}
	return p
}

// upTo is a record up to which a state is read; 0 is all of it.
type upTo uint64

// has reports whether what has an id, or was decided by one, was there.
func (t upTo) has(id string) bool {
	return t == 0 || number(id) <= uint64(t)
}

// statements are the words on a claim that count at a time.
func (s *State) statements(id string, t upTo) (out []statement) {
	for _, ed := range s.edgesAt(id) {
		if ed.Type != Supports || !ed.Active() && t.has(ed.ResolvedBy) || !t.has(ed.Decision) {
			continue
		}
		st := statement{claim: id, level: ed.Level, from: ed.From, at: position{order: ed.Order, after: number(ed.From)}, side: ed.Side, also: ed.Also}
		if o := s.observations.get(ed.From); o != nil {
			st.at = o.positionAt(ed.At)
		}
		out = append(out, st)
	}
	return out
}

// standing is what one claim is worth at a time.
func (s *State) standing(id string, t upTo) Standing {
	p := s.propositions.get(id)
	if p == nil {
		return Standing{Status: Unverified, Rule: RuleUnverified}
	}
	if sl := s.slots.get(p.Slot); sl != nil && !s.many(sl) {
		return s.heard(sl, t).standing(id)
	}
	return s.corrected(p, alone(s.gone(p, t), s.statements(id, t)), t)
}

// corrected is what a note of the agent's is worth that it says another corrects,
// of its own or better, and later. One from before others spoke does not give way
// to one from after that. Of what somebody else said the agent's word moves
// nothing.
func (s *State) corrected(p *Proposition, st Standing, t upTo) Standing {
	for _, ed := range s.edgesAt(p.ID) {
		by := s.propositions.get(ed.From)
		if ed.Type != Supersedes || !ed.Active() || !t.has(ed.Decision) || by == nil || s.gone(by, t) || st.Status == Gone || st.Level > 0 {
			continue
		}
		other := alone(false, s.statements(by.ID, t))
		own, its := s.observations.get(st.By), s.observations.get(other.By)
		switch {
		case its == nil || own == nil || own.Level > 0 || its.positionAt(0).compare(own.positionAt(0)) <= 0:
		case its.Level < 2 && its.Exposed && !own.Exposed:
		default:
			st.Status, st.Rule, st.ReplacedBy = Replaced, RuleReplaced, by.ID
		}
	}
	return st
}

// gone reports whether a claim was erased by then. Before, it moved others as any word does: what
// stood then is told as it stood, without what was erased since. Its value is not known any more, and
// is no other's: of one question no two claims have one.
func (s *State) gone(p *Proposition, t upTo) bool {
	return p.Gone && (t == 0 || t.has(s.closedBy("erased", s.edgesAt(p.ID))))
}

// closedBy is the decision by which a claim or an observation, whose edges these are, was taken
// for a reason: the newest that closed one. Where none was open any more, an erasure is said to
// be the newest there is.
func (s *State) closedBy(resolution string, edges []*Edge) (by string) {
	for _, ed := range edges {
		if ed.Resolution == resolution && (by == "" || compareID(ed.ResolvedBy, by) > 0) {
			by = ed.ResolvedBy
		}
	}
	if by == "" && resolution == "erased" {
		return s.newestErasure()
	}
	return by
}

// newestErasure is looked for once until something happens.
func (s *State) newestErasure() (by string) {
	if by = s.erasure; by != "" {
		return by
	}
	for n := s.head; by == "" && n > 0; n-- {
		if d := s.decision(n); d != nil && d.Tool == "operator."+CommandErase && d.Status == writ.Accepted {
			by = decisionID(n)
		}
	}
	if !s.isDraft {
		s.erasure = by
	}
	return by
}

// alone is what a claim is worth that has no rivals.
func alone(gone bool, words []statement) Standing {
	st := Standing{Status: Unverified, Rule: RuleUnverified}
	var last position
	for _, w := range words {
		if w.level > st.Level || w.level == st.Level && (st.By == "" || w.at.compare(last) >= 0) {
			st.Level, st.By, last = w.level, w.from, w.at
		}
	}
	switch {
	case gone:
		st.Status, st.Rule = Gone, RuleErased
	case st.Level >= 2:
		st.Status, st.Rule = Established, RuleEstablished
	case st.Level == 1:
		st.Status, st.Rule = Reported, RuleReported
	}
	return st
}

// mostHeard bounds how many statements are held as they were heard.
const mostHeard = 100_000

// heard is a question at a time, with all that was said of it. It is heard once
// until something happens.
func (s *State) heard(sl *Slot, t upTo) *hearing {
	key := sl.ID + "@" + recordKey(uint64(t))
	if f := s.hearings[key]; f != nil {
		return f
	}
	f := &hearing{s: s, alone: map[string]Standing{}, gone: map[string]string{}, of: map[string]*value{}}
	said, many := []statement(nil), s.many(sl)
	for _, id := range sl.Propositions {
		p := s.propositions.get(id)
		if !t.has(id) {
			continue
		}
		words, gone := s.statements(id, t), s.gone(p, t)
		st := s.corrected(p, alone(gone, words), t)
		if f.alone[id] = st; st.Status == Reported && !many {
			f.reported++
		}
		if !gone {
			said = append(said, words...)
		}
	}
	size := len(said) + len(f.alone)
	said = slices.DeleteFunc(said, func(w statement) bool { return w.level < 2 })
	slices.SortStableFunc(said, func(a, b statement) int { return cmp.Or(a.at.compare(b.at), compareID(a.claim, b.claim)) })
	if f.none = len(said) == 0 || many; !f.none {
		f.hear(said)
	}
	if !s.isDraft { // which changes under it
		if s.held += size; s.hearings == nil || s.held > mostHeard {
			s.hearings, s.held = map[string]*hearing{}, size
		}
		s.hearings[key] = f
	}
	return f
}

// many reports whether a question has more than one answer, as an operator
// declared.
func (s *State) many(sl *Slot) bool {
	if sl.Predicate == noteForm {
		return true
	}
	p := s.predicates.get(predicateKey(sl.Predicate))
	return p != nil && !p.Single
}

// hearing is one question and what was said of it, heard in order.
type hearing struct {
	s        *State
	alone    map[string]Standing // what each claim is worth without rivals
	reported int                 // how many of them are only that
	none     bool                // nothing was said that moves anything
	current  []*value            // what stands, by when it was said first
	of       map[string]*value   // by claim
	gone     map[string]string   // claims that were replaced, by which
}

// value is one answer that stands: the claims that state it.
type value struct {
	key    string
	claims []string
	level  int         // the highest at which it is said
	last   []statement // what was said of it last, all at one position
	turn   int         // when that was
	since  int         // when it was said first, since it stands
	also   bool        // it was added to what stood then
}

func (f *hearing) standing(id string) Standing {
	st := f.alone[id]
	if f.none {
		return st
	}
	st.Denied = f.reported
	if st.Level < 2 || st.Status == Gone {
		if st.Status == Reported {
			st.Denied--
		}
		return st
	}
	if v := f.of[id]; v == nil {
		st.Status, st.Rule, st.ReplacedBy = Replaced, RuleReplaced, f.gone[id]
	} else if rivals := f.rivals(v); len(rivals) > 0 {
		st.Status, st.Rule, st.Rivals = Contested, RuleContested, rivals
	}
	return st
}

// joins reports whether a value was said beside another that stood already.
func (v *value) joins(o *value) bool { return v.also && o.since < v.turn }

// rivals are the claims that dispute a value, as many as are listed: of two
// values that stand the one that was said last disputes the other, and is disputed
// by it, unless they stand beside each other.
func (f *hearing) rivals(v *value) (out []string) {
	for _, o := range f.current {
		then, before := v, o
		if o.turn > v.turn {
			then, before = o, v
		}
		if o != v && !v.joins(o) && !o.joins(v) && !f.beside(&then.last[len(then.last)-1], before) {
			if out = append(out, o.claims...); len(out) >= mostListed {
				return out[:mostListed]
			}
		}
	}
	return out
}

// hear takes the statements of level 2 or more in their order.
func (f *hearing) hear(said []statement) {
	keys, stands := map[string]string{}, map[string]*value{}
	for turn := range said {
		w := &said[turn]
		key, known := keys[w.claim]
		if !known {
			key = cmp.Or(f.s.valueKey(f.s.propositions.get(w.claim)), "\x00"+w.claim)
			keys[w.claim] = key
		}
		v := stands[key]
		if v == nil {
			v = &value{key: key, since: turn}
			stands[key], f.current = v, append(f.current, v)
		}
		if f.of[w.claim] != v {
			v.claims, f.of[w.claim] = append(v.claims, w.claim), v
		}
		delete(f.gone, w.claim)
		f.current = slices.DeleteFunc(f.current, func(o *value) bool {
			if o == v || w.also || o.joins(v) || w.level < o.level || w.at.compare(o.last[0].at) <= 0 || f.beside(w, o) {
				return false
			}
			for _, c := range o.claims {
				f.gone[c] = w.claim
				delete(f.of, c)
			}
			delete(stands, o.key)
			return true
		})
		if len(v.last) > 0 && v.last[0].at != w.at {
			v.last = v.last[:0]
		}
		v.level, v.last, v.turn = max(v.level, w.level), append(v.last, *w), turn
		v.also = w.also
	}
}

// beside reports whether a statement and what stands say two values of one list
// or one sentence: neither is newer.
func (f *hearing) beside(w *statement, o *value) bool {
	return w.at.evidence != "" && slices.ContainsFunc(o.last, func(l statement) bool {
		return w.at.evidence == l.at.evidence && (slices.Contains(w.side, l.claim) || slices.Contains(l.side, w.claim))
	})
}

func (s *State) sameValue(a, b *Proposition) bool {
	x, y := s.valueKey(a), s.valueKey(b)
	return x != "" && x == y
}

// valueKey is the form in which values are equal: an entity, a number of JSON, or
// a text but for white space around it and the capitals that begin its words. ""
// is of a claim without one.
func (s *State) valueKey(p *Proposition) string {
	if p.Object != "" {
		return join("entity", s.resolve(p.Object))
	}
	vs, _ := stated(p.Literal)
	if len(vs) != 1 {
		return ""
	}
	if strictjson.KindOf([]byte(p.Literal)) == strictjson.Number {
		return shortest(vs[0])
	}
	return join("text", spelled(strings.TrimSpace(vs[0])))
}

package memory

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/words"
)

// mostOld is how many quotes that one claim took the place of are given before
// what else was found.
const mostOld = 3

// quote takes an observation in, and reports whether it is given. found says that
// its own words were.
func (g *recalling) quote(id string, limit int, found bool) bool {
	s := g.r.State
	o := s.observations.get(id)
	if g.at[id] || o == nil || o.Status != Ingested || !g.t.has(id) || !g.wanted(o) {
		return false
	}
	on := g.on(o)
	passes := g.r.passes(o)
	if !g.ask.All && !passes && !slices.ContainsFunc(on, func(c claimOn) bool { return c.upheld }) {
		return false // a claim led here; it is counted by its own kind
	}
	g.at[id] = true
	text := normName(o.Raw)
	i, again := g.same[text]
	if !again && len(g.items) >= limit {
		g.held["limit"]++ // whatever it is worth
		return false
	}
	it := Item{ID: id, Observation: id, Trust: trustOf(o), From: g.fromOf(o), On: o.RecordedAt.String()[:10], rank: slices.Index(quoteKinds, kindOf(o))}
	g.bind(&it, o, on)
	switch by := g.current(it.after, nil); {
	case it.Trust != Replaced:
	case !g.ask.All && !found:
		g.at[id], g.over[id] = false, true // its own words may be found yet
		return false
	case !g.ask.All && o.Level < 2:
		g.held["replaced"]++
		return false
	case by == "":
	case again:
		g.claim(by, limit) // the note of what is given says that it is corrected
	case g.old[by] == mostOld && !slices.Contains(g.later, id):
		g.later = append(g.later, id)
		return false
	default:
		g.old[by]++
		g.claim(by, limit) // which is before it
		if i, again = g.same[text]; !again && len(g.items) >= limit {
			g.held["limit"]++
			return false
		}
	}
	it.Quote = Recalled{Value: o.Raw, Label: writ.Model}
	if o.Whole {
		it.Quote = s.Recall(g.r.Principal, o.Raw, []string{id})
	}
	it.shows = excerptOf(o.Raw, it.Value, g.words)
	if it.upheld != "" && o.Level < 2 {
		// An operator upheld the claim, and not what else is said there.
		it.shows, it.Quote, it.From = excerptOf(it.upheld, "", nil), Recalled{Label: writ.Model}, "operator"
		text, again = id, false
	}
	if again {
		g.items[i].join(it)
		return false
	}
	g.same[text] = len(g.items)
	g.items = append(g.items, it)
	return true
}

// join takes in an item of the same words: they answer what was found best.
func (it *Item) join(o Item) {
	if it.rank == o.rank && slices.Compare(o.fit, it.fit) > 0 {
		o, *it = *it, o
	}
	if it.Note == "" {
		it.Note, it.after = o.Note, o.after
	}
}

// current is what stands in the place of what took another's, or the first of those in
// between that is given.
func (g *recalling) current(by string, given map[string]bool) string {
	for n := 0; by != "" && !given[by] && n < mostListed; n++ {
		next := g.r.State.standing(by, g.t).ReplacedBy
		if next == "" {
			break
		}
		by = next
	}
	return by
}

// claimOn is a claim that a quote was cited for.
type claimOn struct {
	*Proposition
	bears  bool   // the quote bears it out
	upheld bool   // an operator's word is what it stands on
	ruled  string // the decision by which an operator refuted it
}

// on are the claims that a quote was cited for, as of the time.
func (g *recalling) on(o *Observation) (out []claimOn) {
	s := g.r.State
	for _, id := range s.ix.edgesFrom.of(o.ID) {
		ed := s.edges.get(id)
		p := s.propositions.get(ed.To)
		if ed.Type != Supports || !g.t.has(ed.Decision) || p.Gone {
			continue
		}
		c := claimOn{Proposition: p}
		c.upheld = isID("dec", s.standing(p.ID, g.t).By)
		switch by := s.refutedBy(p.ID, o); {
		case by != "" && g.t.has(by) && !c.upheld:
			c.ruled = by
		case !ed.Active() && g.t.has(ed.ResolvedBy):
			continue
		default:
			c.bears = ed.Level > 0
		}
		out = append(out, c)
	}
	return out
}

// bind says which claim a quote bears out. Where all it bears out was replaced
// or refuted, so is the quote.
func (g *recalling) bind(it *Item, o *Observation, on []claimOn) {
	best, of := g.best(it, on)
	var notes []string
	if best != nil {
		it.ID, it.Trust, it.after = best.ID, of.Status, of.ReplacedBy
		g.answers(it, best.Proposition, o)
		notes = g.against(best.ID, of)
		if best.upheld {
			it.rank, it.upheld = 0, it.About+" = "+it.Value
			if v, ok := g.r.State.valueOf(best.Proposition); ok && best.Predicate == noteForm {
				it.upheld = v
			}
			notes = append(notes, "upheld by an operator, "+of.By)
		}
	}
	if i := slices.IndexFunc(on, func(c claimOn) bool { return c.ruled != "" && (best == nil || c.ID != best.ID) }); i >= 0 {
		if best == nil {
			it.ID, it.Trust, it.fit = on[i].ID, Replaced, []int{0, 0, -len(statuses)}
		}
		notes = append(notes, "an operator refuted "+on[i].ID+", "+on[i].ruled)
	}
	if by, st := g.corrected(on, best); by != "" {
		if by != of.ReplacedBy {
			notes = append(notes, "you noted that "+by+" corrects it")
		}
		it.after = cmp.Or(it.after, by)
		if best == nil && st == Replaced {
			it.Trust = Replaced
		}
	}
	if o.Class == ClassAgentInference && o.Exposed {
		notes = append(notes, "written after others spoke")
	}
	it.Note = strings.Join(notes, "; ")
}

// best is the claim that a quote bears out which was found best, of equals that of the best
// standing, then the newest; nil for none.
func (g *recalling) best(it *Item, on []claimOn) (best *claimOn, of Standing) {
	for i := range on {
		c := &on[i]
		if !c.bears && !c.upheld {
			continue
		}
		st := g.r.State.standing(c.ID, g.t)
		fit := []int{0, 0, -slices.Index(statuses, st.Status), 0, int(number(c.ID))}
		if g.narrowed && g.about[c.ID] {
			fit[0] = 1
		}
		if c.Predicate != noteForm { // the value of a note is the quote
			fit[1], fit[3] = g.holds(c.Proposition), 1
		}
		if best == nil || slices.Compare(fit, it.fit) > 0 {
			best, of, it.fit = c, st, fit
		}
	}
	return best, of
}

// holds is how many of the words asked for a claim has in its names, its question
// and its value.
func (g *recalling) holds(p *Proposition) (n int) {
	text := strings.ReplaceAll(p.Predicate, "_", " ") + " " + p.Literal
	for _, id := range []string{p.Subject, p.Object} {
		if en := g.r.State.entities.get(g.r.State.resolve(id)); en != nil && !en.Names[0].Gone {
			text += " " + en.Names[0].Text
		}
	}
	return held(text, "", g.words)
}

// answers says what a quote is an answer to, and which.
func (g *recalling) answers(it *Item, p *Proposition, o *Observation) {
	s := g.r.State
	en := s.entities.get(s.resolve(p.Subject))
	if en == nil || en.Names[0].Gone {
		return
	}
	switch it.About = en.Names[0].Text; {
	case en.Principal != "":
		it.About = g.r.person(en.Principal, en.Principal)
	case meansPerson(it.About):
		it.About = strconv.Quote(it.About)
	}
	v, ok := s.valueOf(p)
	if p.Predicate != noteForm {
		it.About += ": " + strings.ReplaceAll(p.Predicate, "_", " ")
		if ok {
			it.Value = v
			it.Answers = s.Recall(g.r.Principal, v, []string{o.ID})
		}
	}
}

// meansPerson reports whether a thing's name reads as the session's person, or another one.
func meansPerson(name string) bool {
	return !slices.ContainsFunc(words.Of(name), func(w string) bool {
		return !in("speaker", w) && !in("user", w) && !in("article", w) && w != "another" && w != "other" && w != "s"
	})
}

// mostToldOf bounds of how many other claims the note of one tells.
const mostToldOf = 2

// against says which claims dispute one, took its place, or gave it theirs.
func (g *recalling) against(id string, st Standing) (notes []string) {
	s := g.r.State
	some := func(ids []string) string {
		if len(ids) > mostToldOf+1 {
			return strings.Join(ids[:mostToldOf+1], ", ") + " and others"
		}
		return strings.Join(ids, ", ")
	}
	switch {
	case len(st.Rivals) > 0:
		notes = append(notes, "disputed by "+some(st.Rivals))
	case st.ReplacedBy != "":
		notes = append(notes, "replaced by "+st.ReplacedBy)
	case st.Denied > 0 && st.Status == Established:
		notes = append(notes, "others say otherwise")
	}
	was := s.replacedBy(id, g.t)
	for _, old := range was[:min(len(was), mostToldOf)] {
		notes = append(notes, "replaced "+g.r.named(old))
	}
	if left := len(was) - mostToldOf; left > 0 {
		notes = append(notes, "and "+strconv.Itoa(left)+" before")
	}
	return notes
}

// replacedBy are the claims whose place one took, the newest first.
func (s *State) replacedBy(id string, t upTo) (out []string) {
	sl := s.slots.get(s.propositions.get(id).Slot)
	if sl == nil || s.many(sl) {
		return nil
	}
	for old, by := range s.heard(sl, t).gone {
		if by == id && !s.propositions.get(old).Gone {
			out = append(out, old)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return compareID(b, a) })
	return out
}

// named is a claim by its id, and by its value where that passes: words that do bear
// it out, or the reader's own agent made it before others spoke.
func (r *Reader) named(id string) string {
	p := r.State.propositions.get(id)
	v, ok := r.State.valueOf(p)
	if ok && (r.worded(p.Decision) || slices.ContainsFunc(r.State.statements(id, 0), func(w statement) bool {
		o := r.State.observations.get(w.from)
		return w.level > 0 && o != nil && r.passes(o)
	})) {
		return id + ": " + shown(v, 60)
	}
	return id
}

// corrected is what the agent says corrects a quote. Of its own notes that takes
// the place; of what others said it is told and moves nothing.
func (g *recalling) corrected(on []claimOn, bound *claimOn) (by string, st Status) {
	s := g.r.State
	for _, c := range on {
		if bound != nil && c.ID != bound.ID || c.ruled != "" {
			continue
		}
		for _, ed := range s.edgesAt(c.ID) {
			if ed.Type == Supersedes && ed.Active() && g.t.has(ed.Decision) && !s.propositions.get(ed.From).Gone && by == "" {
				by = ed.From
			}
		}
		if is := s.standing(c.ID, g.t).Status; is == Replaced {
			st = is
		}
	}
	return by, st
}

// claim brings the quote that a claim rests on, or where what is about something is
// brought all that it does, and reports whether any is given.
func (g *recalling) claim(id string, limit int) bool {
	s := g.r.State
	if g.narrowed && !g.about[id] || s.propositions.get(id) == nil || !g.t.has(id) {
		return false
	}
	given := false
	if st := s.standing(id, g.t); st.By != "" && g.quote(st.By, limit, false) {
		given = true
	}
	for _, ed := range slices.Backward(newest(s.edgesAt(id))) {
		if given && !g.byName {
			break
		}
		if ed.Type == Supports && g.quote(ed.From, limit, false) {
			given = true
		}
	}
	return given
}

// person is what a person is called: for an operator by a name.
func (r *Reader) person(principal, name string) string {
	switch {
	case r.Operator:
		return name
	case principal != r.Principal:
		return "another user"
	}
	return "user"
}

// fromOf is who said a quote, in a word.
func (g *recalling) fromOf(o *Observation) string {
	switch o.Class {
	case ClassDirectUser:
		return g.r.person(o.Principal, o.Source)
	case ClassAgentInference:
		switch {
		case o.Principal == g.r.Principal:
			return "you"
		case g.r.Operator:
			return "agent of " + o.Principal
		}
		return "another agent"
	}
	return o.Source
}

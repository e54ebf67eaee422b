package memory

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/writ-project/writ/internal/words"
)

// Query is what a search asks beside its words.
type Query struct {
	Limit int // 1 to 50; 0 is 10
	// Types narrows to proposition, observation, entity, episode.
	Types []string
	// Entity narrows to what is about one entity.
	Entity string
	// MinState is the lowest state to return; "" is provisional.
	MinState Status
	// Untrusted also returns observations of level 0 and 1, labelled.
	Untrusted bool
	// MaxTokens bounds the text of the answer, four bytes to a token; 0 is no
	// bound.
	MaxTokens int
}

// Found is one result of a search.
type Found struct {
	Rank        int         `json:"rank"`
	Fused       Micro       `json:"fused"`
	Lexical     Micro       `json:"lexical"`
	EntityMatch Micro       `json:"entity_match"`
	Recency     Micro       `json:"recency"`
	Proposition *View       `json:"proposition,omitempty"`
	Observation *Observed   `json:"observation,omitempty"`
	Entity      *EntityView `json:"entity,omitempty"`
	Episode     *Episode    `json:"episode,omitempty"`
	Summary     *Data       `json:"summary,omitempty"`
	// LeftOut is how many ids this result does not list: of claims about an
	// entity or on an observation, and of observations behind a claim, a search
	// lists the newest mostListed. [Reader.Get] lists all.
	LeftOut int `json:"left_out,omitempty"`
}

const mostListed = 50

// shorten keeps the newest ids of a list.
func (f *Found) shorten(list *[]string) {
	if left := len(*list) - mostListed; left > 0 {
		*list = (*list)[left:]
		f.LeftOut += left
	}
}

// Withheld counts what was found and not returned, by the reason.
type Withheld struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// Results is the answer to a search.
type Results struct {
	Notice     string     `json:"notice"`
	Items      []Found    `json:"items"`
	Withheld   []Withheld `json:"withheld"`
	Abstention Abstention `json:"abstention,omitempty"`
}

// The shares of what ranks within one state.
const (
	shareLexical = 600_000
	shareEntity  = 250_000
	shareRecency = 150_000
)

// mostReached is how many propositions a search ranks that the words themselves
// did not find: those about an entity they found, and those that rest on an
// observation they found.
const mostReached = 400

// candidate is something a search considers, and what it is ranked by.
type candidate struct {
	id                       string
	lexical, entity, recency Micro
	rank                     int
	fused                    Micro
	weak                     bool // nobody of level 2 stands behind its words
}

// gathering is what a search considers, before it is ranked.
type gathering struct {
	r     *Reader
	all   []candidate
	at    map[string]int  // place in all, or -1 for what was left
	named map[string]bool // entities whose name was found, or that was asked for
	// reached are propositions found by way of something else, by the state
	// recorded for them. What an agent files in numbers is tentative and comes
	// last, so it displaces nothing that is believed.
	reached [6][]reached
}

type reached struct {
	id      string
	lexical Micro
}

func (g *gathering) add(id string, lexical Micro) {
	if i, ok := g.at[id]; ok {
		g.all[i].lexical = max(g.all[i].lexical, lexical)
		return
	}
	g.at[id] = len(g.all)
	g.all = append(g.all, candidate{id: id, lexical: lexical})
}

func (g *gathering) reach(id string, lexical Micro) {
	p := g.r.State.propositions.get(id)
	if p == nil {
		return
	}
	status := p.Status
	if !g.r.AsOf.IsZero() {
		_, status, _ = g.r.belief(p)
	}
	i := status.rank()
	g.reached[i] = append(g.reached[i], reached{id, lexical})
}

// name brings in what is about an entity and those that were merged into it,
// the newest first.
func (g *gathering) name(id string) {
	if g.named[id] {
		return
	}
	g.named[id] = true
	for _, p := range slices.Backward(g.r.State.ix.about[id]) {
		g.reach(p, 0)
	}
	for _, from := range g.r.State.ix.mergedFrom[id] {
		g.name(from)
	}
}

// settle takes in the first of what was reached, and returns how many it left.
func (g *gathering) settle() (left int) {
	room := mostReached
	for _, cs := range slices.Backward(g.reached[:]) {
		for _, c := range cs {
			at, known := g.at[c.id]
			switch {
			case known && at < 0:
			case known:
				g.all[at].lexical = max(g.all[at].lexical, c.lexical)
			case room > 0:
				room--
				g.add(c.id, c.lexical)
			default:
				left++
				g.at[c.id] = -1
			}
		}
	}
	return left
}

// gatherings are used again: searches would make half of all garbage otherwise.
var gatherings = sync.Pool{New: func() any { return &gathering{at: map[string]int{}, named: map[string]bool{}} }}

func (g *gathering) release() {
	size := len(g.at) + len(g.named)
	for i, cs := range g.reached {
		size += cap(cs)
		g.reached[i] = cs[:0]
	}
	if size > 100*mostReached {
		return // too much to keep
	}
	g.r, g.all = nil, g.all[:0]
	clear(g.at)
	clear(g.named)
	gatherings.Put(g)
}

func (r *Reader) gather(q Query, hits []words.Hit) *gathering {
	g := gatherings.Get().(*gathering)
	g.r = r
	top := 0.0
	for _, h := range hits {
		if h.Score > top {
			top = h.Score
		}
	}
	if q.Entity != "" {
		g.name(r.State.resolve(q.Entity))
	}
	for _, h := range hits {
		lexical := Micro(0)
		if top > 0 {
			lexical = clamp01(Micro(math.RoundToEven(float64(h.Score/top) * 1e6)))
		}
		switch prefixOf(h.ID) {
		case "ent":
			id := r.State.resolve(h.ID)
			g.add(id, lexical)
			g.name(id)
		case "obs":
			g.add(h.ID, lexical)
			if ep, ok := r.State.ix.summaryOf[h.ID]; ok {
				g.add(ep, lexical)
			}
			for _, e := range slices.Backward(r.State.ix.edgesFrom[h.ID]) {
				if ed := r.State.edges.get(e); ed.Active() && ed.Type == Supports {
					g.reach(ed.To, lexical)
				}
			}
		default:
			g.add(h.ID, lexical)
		}
	}
	return g
}

// mostHits is how many texts of each kind a search finds, before they are ranked.
const mostHits = 400

// kindsFor are the kinds of texts by which results of the types are found: a
// claim is also found by what it is about and rests on, an episode by the
// observation that is its summary.
func kindsFor(types []string) []string {
	switch {
	case len(types) == 0 || slices.Contains(types, "proposition"):
		return []string{"proposition", "observation", "entity"}
	case slices.Contains(types, "entity") && len(types) > 1:
		return []string{"observation", "entity"}
	case slices.Contains(types, "entity"):
		return []string{"entity"}
	}
	return []string{"observation"}
}

// Search finds texts by their words, of each kind as many as it ranks, so that a
// crowd of observations hides no claim, and ranks them: by the state first, and
// within one state by the words, the entity and how recent the support is.
// Likeness alone never puts a weak claim before a strong one, nor what only
// strangers or the agent said before what somebody vouches for. The query is
// words and nothing else (M06).
//
// What the words found brings more: an entity what is about it, an observation
// what rests on it, and a summary its episode. Of the first two at most 400
// claims are ranked beside those the words found, the firmest of them; the rest
// is counted as withheld.
//
// An answer without items says why. Nothing is known only where nothing was
// found; where what was found is withheld, that decides: contested before too
// weak, too weak before over, over before erased. Where there was an answer and
// no room for it, the withheld counts alone say so.
func (r *Reader) Search(query string, q Query) Results {
	return r.rank(q, r.State.found(query, kindsFor(q.Types), mostHits))
}

// rank ranks what the words found, the best of it first.
func (r *Reader) rank(q Query, hits []words.Hit) Results {
	if q.Limit <= 0 || q.Limit > 50 {
		q.Limit = 10
	}
	if !q.MinState.valid() {
		q.MinState = Provisional
	}
	res := Results{Notice: Notice, Items: []Found{}, Withheld: []Withheld{}}
	g := r.gather(q, hits)
	defer g.release()
	withheld := map[string]int{}
	if len(q.Types) == 0 || slices.Contains(q.Types, "proposition") {
		withheld["too_many"] = g.settle()
	}
	found := make([]*candidate, 0, len(g.all))
	why := NothingKnown
	for i := range g.all {
		c := &g.all[i]
		switch ok, reason, said := r.found(q, c, g.named); {
		case ok:
			found = append(found, c)
		case reason != "":
			withheld[reason]++
			why = stronger(why, said)
		}
	}
	slices.SortFunc(found, func(a, b *candidate) int {
		switch {
		case a.rank != b.rank:
			return b.rank - a.rank
		case a.weak != b.weak && a.weak:
			return 1
		case a.weak != b.weak:
			return -1
		case a.fused != b.fused:
			return cmp.Compare(b.fused, a.fused)
		}
		return compareID(a.id, b.id)
	})
	room := q.MaxTokens * 4
	for i, c := range found {
		if len(res.Items) == q.Limit {
			withheld["limit"] += len(found) - i
			break
		}
		if q.MaxTokens > 0 {
			size := r.size(c.id)
			if size > room {
				withheld["max_tokens"]++
				continue
			}
			room -= size
		}
		res.Items = append(res.Items, r.filled(c))
	}
	for _, reason := range []string{"below_min_state", "not_valid_then", "entity", "erased", "limit", "max_tokens", "quarantined", "untrusted", "too_many"} {
		if withheld[reason] > 0 {
			res.Withheld = append(res.Withheld, Withheld{reason, withheld[reason]})
		}
	}
	if len(found) == 0 {
		res.Abstention = why
	}
	return res
}

// stronger is which of two reasons for no answer weighs more.
func stronger(a, b Abstention) Abstention {
	rank := []Abstention{NothingKnown, WasErased, HasExpired, InsufficientEvidence, IsContested}
	if slices.Index(rank, b) > slices.Index(rank, a) {
		return b
	}
	return a
}

// size is how much text a result has, in bytes.
func (r *Reader) size(id string) int {
	s := r.State
	switch prefix, _, _, _ := splitID(id); prefix {
	case "prop":
		return len(s.propositions.get(id).Text)
	case "obs":
		return len(s.observations.get(id).Raw)
	case "epi":
		if o := s.observations.get(s.episodes.get(id).Summary); o != nil {
			return len(o.Raw)
		}
	}
	return 0
}

// filled is a result. Only what is returned is read whole.
func (r *Reader) filled(c *candidate) Found {
	rec, _ := r.Get(c.id)
	f := Found{Rank: c.rank, Fused: c.fused, Lexical: c.lexical, EntityMatch: c.entity, Recency: c.recency,
		Proposition: rec.Proposition, Observation: rec.Observation, Entity: rec.Entity, Episode: rec.Episode, Summary: rec.Summary}
	switch {
	case f.Proposition != nil:
		f.shorten(&f.Proposition.Observation)
	case f.Observation != nil:
		f.shorten(&f.Observation.Supports)
		f.shorten(&f.Observation.Contradicts)
	case f.Entity != nil:
		f.shorten(&f.Entity.Propositions)
	}
	return f
}

// prefixOf is the prefix of an id, or whatever stands in its place.
func prefixOf(id string) string {
	prefix, _, _ := strings.Cut(id, "_")
	return prefix
}

// found ranks one result, or says by which reason it is withheld and what that
// makes of an answer without items; none of it, if it is not asked for.
func (r *Reader) found(q Query, c *candidate, named map[string]bool) (ok bool, withheld string, why Abstention) {
	s, id := r.State, c.id
	wanted := func(kind string) bool { return len(q.Types) == 0 || slices.Contains(q.Types, kind) }
	later := func(at Instant) bool { return !r.AsOf.IsZero() && at > InstantOf(r.AsOf) }
	switch prefixOf(id) {
	case "prop":
		p := s.propositions.get(id)
		if p == nil || !wanted("proposition") {
			return false, "", ""
		}
		p = r.asThen(p)
		about := false
		for _, en := range p.About {
			en = s.resolve(en)
			if named[en] {
				c.entity = One
			}
			about = about || en == s.resolve(q.Entity)
		}
		if q.Entity != "" && !about {
			return false, "entity", NothingKnown
		}
		score, state, _ := r.belief(p)
		c.rank, c.recency = state.rank(), score.Freshness
		switch {
		case p.Gone:
			return false, "erased", WasErased
		case later(p.CreatedAt):
			return false, "not_valid_then", NothingKnown
		case state.rank() < q.MinState.rank():
			return false, "below_min_state", abstention(p, state, false)
		case !r.holds(p) && (q.MinState.rank() > Deprecated.rank() || !r.AsOf.IsZero()):
			return false, "not_valid_then", abstention(p, state, false)
		}
	case "obs":
		o := s.observations.get(id)
		if o == nil || !wanted("observation") || q.Entity != "" {
			return false, "", ""
		}
		_, summary := s.ix.summaryOf[id]
		switch {
		case o.Status == Erased:
			return false, "erased", WasErased
		case later(o.RecordedAt):
			return false, "not_valid_then", NothingKnown
		case o.Status != Ingested:
			return false, "quarantined", InsufficientEvidence
		case o.Level <= 1 && !q.Untrusted && summary && wanted("episode"):
			return false, "", "" // it is there as its episode
		case o.Level <= 1 && !q.Untrusted:
			return false, "untrusted", InsufficientEvidence
		}
		c.recency, c.weak = r.fresh(o.RecordedAt), o.Level <= 1
	case "ent":
		en := s.entities.get(id)
		switch {
		case en == nil || !wanted("entity"):
			return false, "", ""
		case en.Canonicality == Tombstoned:
			return false, "erased", WasErased
		}
		c.entity = One
	case "epi":
		ep := s.episodes.get(id)
		if ep == nil || !wanted("episode") || q.Entity != "" {
			return false, "", ""
		}
		switch o := s.observations.get(ep.Summary); {
		case o == nil || o.Status == Erased:
			return false, "erased", WasErased
		case later(ep.EndedAt):
			return false, "not_valid_then", NothingKnown
		case o.Status != Ingested:
			return false, "quarantined", InsufficientEvidence
		}
		c.recency, c.weak = r.fresh(ep.EndedAt), s.observations.get(ep.Summary).Level <= 1
	default:
		return false, "", ""
	}
	c.fused = Micro((int64(c.lexical)*shareLexical + int64(c.entity)*shareEntity + int64(c.recency)*shareRecency) / int64(One))
	return true, "", ""
}

// fresh is how recent something is that is no claim.
func (r *Reader) fresh(at Instant) Micro {
	return r.Policy.Score(Evidence{Age: at.since(r.now()), Volatility: Medium}).Freshness
}

// found asks the index of the texts, which is brought to the state first.
func (s *State) found(query string, kinds []string, limit int) []words.Hit {
	for _, id := range s.unread {
		if kind, text := s.text(id); text != "" {
			s.texts.Put(id, kind, text)
		} else {
			s.texts.Drop(id)
		}
	}
	s.unread = nil
	return s.texts.Search(query, kinds, limit)
}

// Texts yields the ids of what can be found, and by what text, in their order.
func (s *State) Texts() iter.Seq2[string, string] {
	return func(yield func(id, text string) bool) {
		for _, id := range slices.Concat(s.observations.keys(), s.propositions.keys(), s.entities.keys()) {
			if _, text := s.text(id); text != "" && !yield(id, text) {
				return
			}
		}
	}
}

// text is by what an object is found, "" if by nothing: an observation that is
// neither quarantined nor erased, a proposition with its predicate and value, the
// names of an entity. An episode is found by its summary, which is an observation.
func (s *State) text(id string) (kind, text string) {
	switch prefix, _, _, _ := splitID(id); prefix {
	case "obs":
		if o := s.observations.get(id); o != nil && o.Status == Ingested {
			return "observation", o.Raw
		}
	case "prop":
		if p := s.propositions.get(id); p != nil && !p.Gone {
			return "proposition", strings.Join([]string{p.Text, p.Predicate, p.Literal}, "\n")
		}
	case "ent":
		if en := s.entities.get(id); en != nil && en.Canonicality != Tombstoned {
			for _, n := range en.Names {
				if !n.Gone {
					text += n.Text + "\n"
				}
			}
		}
		return "entity", text
	}
	return "", ""
}

// unreadOf are the objects whose texts an event that was applied may have changed.
func unreadOf(e *Event) (ids []string) {
	for i := range e.Ops {
		switch o := &e.Ops[i]; {
		case o.Observation != nil:
			ids = append(ids, o.Observation.ID)
		case o.Proposition != nil:
			ids = append(ids, o.Proposition.ID)
		case o.Entity != nil:
			ids = append(ids, o.Entity.ID)
		case o.Alias != nil:
			ids = append(ids, o.Alias.Entity)
		case o.Erase != nil:
			ids = slices.Concat(ids, o.Erase.Observations, o.Erase.Propositions, o.Erase.Entities)
		case o.Distrust != nil:
			ids = append(ids, o.Distrust.Observations...)
		}
	}
	return ids
}

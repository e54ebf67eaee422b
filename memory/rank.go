package memory

import (
	"cmp"
	"math"
	"slices"
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

	id string
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

// Search ranks what an index of the texts found: by the state first, and within
// one state by the words, the entity and how recent the support is. Likeness
// alone never puts a weak claim before a strong one. The hits may come in any
// order; what they name and the state does not hold is left out.
func (r *Reader) Search(q Query, hits []Hit) Results {
	if q.Limit <= 0 || q.Limit > 50 {
		q.Limit = 10
	}
	if !q.MinState.valid() {
		q.MinState = Provisional
	}
	res := Results{Notice: Notice, Items: []Found{}, Withheld: []Withheld{}}
	withheld := map[string]int{}
	top := 0.0
	for _, h := range hits {
		if h.BM25 > top && !math.IsInf(h.BM25, 0) {
			top = h.BM25
		}
	}
	best := map[string]Micro{} // lexical share by id
	named := map[string]bool{} // entities whose name was found
	consider := func(id string, lexical Micro) {
		if old, ok := best[id]; !ok || lexical > old {
			best[id] = lexical
		}
	}
	for _, h := range hits {
		lexical := Micro(0)
		if top > 0 && h.BM25 > 0 {
			lexical = clamp01(Micro(math.RoundToEven(float64(h.BM25/top) * 1e6)))
		}
		switch prefix, _, _, _ := splitID(h.ID); prefix {
		case "ent":
			id := r.State.resolve(h.ID)
			named[id] = true
			consider(id, lexical)
			for _, p := range r.State.ix.about[id] {
				consider(p, 0)
			}
		case "obs":
			consider(h.ID, lexical)
			for _, e := range r.State.ix.edgesFrom[h.ID] {
				if ed := r.State.edges.get(e); ed.Active() && ed.Type == Supports {
					consider(ed.To, lexical)
				}
			}
		default:
			consider(h.ID, lexical)
		}
	}
	if q.Entity != "" {
		named[r.State.resolve(q.Entity)] = true
		for _, p := range r.State.ix.about[r.State.resolve(q.Entity)] {
			consider(p, 0)
		}
	}
	ids := make([]string, 0, len(best))
	for id := range best {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, compareID)
	var found []Found
	for _, id := range ids {
		f, why := r.found(q, id, best[id], named)
		if why != "" {
			withheld[why]++
		} else if f != nil {
			found = append(found, *f)
		}
	}
	slices.SortStableFunc(found, func(a, b Found) int {
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(b.Fused, a.Fused))
	})
	room := q.MaxTokens * 4
	for _, f := range found {
		size := r.size(f.id)
		switch {
		case len(res.Items) == q.Limit:
			withheld["limit"]++
		case q.MaxTokens > 0 && size > room:
			withheld["max_tokens"]++
		default:
			room -= size
			r.fill(&f)
			res.Items = append(res.Items, f)
		}
	}
	for _, why := range []string{"below_min_state", "not_valid_then", "entity", "erased", "limit", "max_tokens", "quarantined", "untrusted"} {
		if withheld[why] > 0 {
			res.Withheld = append(res.Withheld, Withheld{why, withheld[why]})
		}
	}
	if len(res.Items) == 0 {
		res.Abstention = NothingKnown
		for _, id := range ids {
			if v, ok := r.View(id); ok && res.Abstention != IsContested && v.Abstention != NoAbstention {
				if res.Abstention == NothingKnown || v.Abstention == IsContested || v.Abstention == InsufficientEvidence {
					res.Abstention = v.Abstention
				}
			}
		}
	}
	return res
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

// fill reads what a result is of. Only what is returned is read whole.
func (r *Reader) fill(f *Found) {
	rec, _ := r.Get(f.id)
	f.Proposition, f.Observation, f.Entity = rec.Proposition, rec.Observation, rec.Entity
	f.Episode, f.Summary = rec.Episode, rec.Summary
}

// found ranks one result, or says why it is withheld; neither, if it is not
// asked for.
func (r *Reader) found(q Query, id string, lexical Micro, named map[string]bool) (f *Found, withheld string) {
	s := r.State
	f = &Found{Lexical: lexical, id: id}
	wanted := func(kind string) bool { return len(q.Types) == 0 || slices.Contains(q.Types, kind) }
	prefix, _, _, _ := splitID(id)
	switch prefix {
	case "prop":
		p := s.propositions.get(id)
		if p == nil || !wanted("proposition") {
			return nil, ""
		}
		about := false
		for _, en := range p.About {
			if named[s.resolve(en)] {
				f.EntityMatch = One
			}
			about = about || s.resolve(en) == s.resolve(q.Entity)
		}
		score, state, _ := r.belief(p)
		f.Rank, f.Recency = state.rank(), score.Freshness
		switch {
		case q.Entity != "" && !about:
			return nil, "entity"
		case p.Gone:
			return nil, "erased"
		case state.rank() < q.MinState.rank():
			return nil, "below_min_state"
		case !r.holds(p) && (q.MinState.rank() > Deprecated.rank() || !r.AsOf.IsZero()):
			return nil, "not_valid_then"
		}
	case "obs":
		o := s.observations.get(id)
		switch {
		case o == nil || !wanted("observation") || q.Entity != "":
			return nil, ""
		case o.Status == Erased:
			return nil, "erased"
		case o.Status != Ingested:
			return nil, "quarantined"
		case o.Level <= 1 && !q.Untrusted:
			return nil, "untrusted"
		}
		f.Recency = r.Policy.Score(Evidence{Age: o.RecordedAt.since(r.now()), Volatility: Medium}).Freshness
	case "ent":
		en := s.entities.get(id)
		if en == nil || !wanted("entity") {
			return nil, ""
		}
		if en.Canonicality == Tombstoned {
			return nil, "erased"
		}
		f.EntityMatch = One
	case "epi":
		if s.episodes.get(id) == nil || !wanted("episode") || q.Entity != "" {
			return nil, ""
		}
	default:
		return nil, ""
	}
	f.Fused = Micro((int64(f.Lexical)*shareLexical + int64(f.EntityMatch)*shareEntity + int64(f.Recency)*shareRecency) / int64(One))
	return f, ""
}

// Docs returns the texts of a state that can be found, in their order: of
// observations that are neither quarantined nor erased, propositions, names of
// entities. An episode is found by its summary, which is an observation.
func (s *State) Docs() (out []Doc) {
	for _, id := range s.observations.keys() {
		if d, ok := s.doc(id); ok {
			out = append(out, d)
		}
	}
	for _, id := range s.propositions.keys() {
		if d, ok := s.doc(id); ok {
			out = append(out, d)
		}
	}
	for _, id := range s.entities.keys() {
		if d, ok := s.doc(id); ok {
			out = append(out, d)
		}
	}
	return out
}

// doc is the text of one object; ok is false if it has none to find.
func (s *State) doc(id string) (Doc, bool) {
	switch prefix, _, _, _ := splitID(id); prefix {
	case "obs":
		if o := s.observations.get(id); o != nil && o.Status == Ingested && o.Raw != "" {
			return Doc{id, "observation", o.Raw}, true
		}
	case "prop":
		if p := s.propositions.get(id); p != nil && !p.Gone && p.Text != "" {
			return Doc{id, "proposition", p.Text}, true
		}
	case "ent":
		en := s.entities.get(id)
		if en == nil || en.Canonicality == Tombstoned {
			return Doc{}, false
		}
		text := ""
		for _, n := range en.Names {
			if !n.Gone {
				text += n.Text + "\n"
			}
		}
		if text != "" {
			return Doc{id, "entity", text}, true
		}
	}
	return Doc{}, false
}

// Changed returns the texts an event that was applied has changed: those to be
// found now and the ids of those that are no longer.
func (s *State) Changed(e *Event) (put []Doc, drop []string) {
	var ids []string
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
	slices.SortFunc(ids, compareID)
	for _, id := range slices.Compact(ids) {
		if d, ok := s.doc(id); ok {
			put = append(put, d)
		} else {
			drop = append(drop, id)
		}
	}
	return put, drop
}

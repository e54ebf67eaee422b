package memory

import (
	"cmp"
	"slices"
	"strconv"

	writ "github.com/writ-project/writ"
)

// selfType is the type of the entity that is the session's own person.
const selfType = "self"

// maxCompared bounds how many entities a new name is compared with. Beyond it
// the rarest trigrams decide who is.
const maxCompared = 256

// maxNames bounds the names of one entity: each is looked at when a claim is
// held against what it cites.
const maxNames = 100

// entity is the ladder by which names are linked. A name links only to the one entity that
// has exactly it; everything less certain makes a candidate and says what it
// may be the same as.
func (j *judge) entity() *refusal {
	obs, name, typ := j.lists["observation_ids"], j.texts["name"], j.texts["entity_type"]
	if id, given := j.texts["entity_id"]; given {
		if r := j.exists("/entity_id", id); r != nil {
			return r
		}
		if j.d.entities.get(id).Type != typ {
			return refuse("/entity_type", writ.SchemaInvalid, "the type of the entity")
		}
		return j.link(j.d.resolve(id), obs)
	}
	if name == "" {
		return refuse("/name", writ.SchemaMissingField, "a name, or the id of an entity")
	}
	n := normName(name)
	if n == "" {
		return refuse("/name", writ.SchemaInvalid, "a name with a letter or digit")
	}
	same, weak := j.namesakes(typ, name, obs)
	if len(same) == 1 {
		j.transform("entity.linked_existing", same[0])
		return j.link(same[0], obs)
	}
	if r := j.crowded(); r != nil {
		return r
	}
	near := make([]PossibleSame, 0, len(same))
	for _, id := range slices.Concat(same, weak) {
		near = append(near, PossibleSame{id, 100})
	}
	p := j.c.Policy.Entities
	limit := int(p.Ambiguous)
	if len(near) == 0 && typ != selfType {
		near, limit = j.similar(typ, n), int(p.Similar)
	} else if len(near) > 0 {
		j.advise("entity.ambiguous", "")
	}
	near = near[:min(len(near), limit)]

	id := j.newEntity(typ, j.resting(obs, name))
	for _, s := range near {
		j.d.add(Op{Same: &SameOp{A: id, B: s.Entity, Similarity: s.Similarity}})
		j.d.effect("entity.possible_same_as", s.Entity)
	}
	j.aliases(id, obs)
	return nil
}

// namesakes are the entities that have exactly that name; weak have it on too little to link by it.
func (j *judge) namesakes(typ, name string, obs []string) (same, weak []string) {
	if typ == selfType {
		if id := j.d.Person(j.c.Principal); id != "" {
			same = []string{id}
		}
		return same, nil
	}
	for _, id := range j.s.ix.names.of(join(typ, normName(name))) {
		borne := j.borne(id, name, obs)
		id = j.d.resolve(id)
		switch en := j.d.entities.get(id); {
		case en.Gone:
		case borne:
			same = addOnce(same, id)
		default:
			weak = addOnce(weak, id)
		}
	}
	weak = slices.DeleteFunc(weak, func(id string) bool { return slices.Contains(same, id) })
	slices.SortFunc(same, compareID)
	slices.SortFunc(weak, compareID)
	return same, weak
}

// exists refuses an entity that is not there or has no name left.
func (j *judge) exists(at, id string) *refusal {
	if en := j.d.entities.get(id); en == nil || en.Gone {
		return refuse(at, writ.MemoryTarget, "an entity that exists")
	}
	return nil
}

// crowded refuses one more entity of a task.
func (j *judge) crowded() *refusal {
	if most := j.c.Policy.Caps.EntitiesPerTask; j.task().Entities >= int(most) {
		return refuse("", writ.EntitySpawnCap, "a task makes at most "+count(most)+" entities; use those that are there")
	}
	return nil
}

// newEntity makes an entity whose name is that of the payload.
func (j *judge) newEntity(typ string, by Name) (id string) {
	by.Record = j.e.N
	en := &Entity{ID: j.d.mint("ent"), Type: typ, CreatedAt: j.e.At, UpdatedAt: j.e.At, Session: j.c.Session, Task: j.c.Task, Names: []Name{by}}
	if typ == selfType {
		en.Principal = j.c.Principal
	}
	j.d.add(Op{At: "/payload", Entity: en})
	j.d.effect("entity.created", en.ID)
	return en.ID
}

// borne reports whether an entity has a name on evidence good enough to link
// what the observations say: the name it was made with, or an alias at least as
// well attested, as far as level 2. An alias that a stranger's page brought up
// does not lead a user's words to another entity (M04).
func (j *judge) borne(id, name string, obs []string) bool {
	need := 0
	for _, o := range obs {
		need = max(need, min(2, j.d.observations.get(o).Level))
	}
	for i, n := range j.d.entities.get(id).Names {
		if n.Gone || !sameName(n.Text, name) {
			continue
		}
		ob := j.d.observations.get(n.Observation)
		if i == 0 || ob != nil && ob.Status == Ingested && ob.Level >= need && j.d.attested(n, need) {
			return true
		}
	}
	return false
}

// link gives an entity the names of the proposal it does not have yet.
func (j *judge) link(id string, obs []string) *refusal {
	names := len(j.d.entities.get(id).Names)
	for _, n := range append([]string{j.texts["name"]}, j.lists["aliases"]...) {
		if n != "" && j.adds(id, n, obs) {
			names++
		}
	}
	if names > maxNames {
		return refuse("/aliases", writ.EntitySpawnCap, "an entity has at most "+strconv.Itoa(maxNames)+" names")
	}
	before := len(j.e.Ops)
	if n := j.texts["name"]; n != "" && j.adds(id, n, obs) {
		by := j.resting(obs, n)
		j.d.add(Op{At: "/payload/name", Alias: &AliasOp{id, by.Observation, by.Beside}})
	}
	j.aliases(id, obs)
	if len(j.e.Ops) == before {
		// The names are there already; keeping them twice would keep them from
		// being erased.
		j.noValue = true
	}
	j.d.effect("entity.linked", id)
	return nil
}

// resting is what a name rests on: the best of the observations that have it, or
// all of them where none has.
func (j *judge) resting(obs []string, name string) Name {
	best := -1
	out := Name{Observation: obs[0], Beside: obs[1:]}
	for i, w := range j.d.witnesses(obs) {
		if w.ob.Level > best && w.holds(name) {
			best = w.ob.Level
			out = Name{Observation: obs[i]}
		}
	}
	return out
}

func (j *judge) aliases(id string, obs []string) {
	for i, a := range j.lists["aliases"] {
		if j.adds(id, a, obs) && normName(a) != "" {
			by := j.resting(obs, a)
			j.d.add(Op{At: "/payload/aliases/" + strconv.Itoa(i), Alias: &AliasOp{id, by.Observation, by.Beside}})
			j.d.effect("entity.alias_added", id)
		}
	}
}

// adds reports whether a proposal gives an entity a name it does not have, or a
// better witness of one that it has: what a page named first users may name too.
func (j *judge) adds(id, name string, obs []string) bool {
	if !j.named(id, name) {
		return true
	}
	best := 0
	for _, w := range j.d.witnesses(obs) {
		if level := min(2, w.ob.Level); level > best && w.holds(name) {
			best = level
		}
	}
	n := normName(name)
	return best > 0 && !slices.ContainsFunc(j.d.entities.get(id).Names, func(k Name) bool {
		return !k.Gone && normName(k.Text) == n && j.d.attested(k, best)
	})
}

// named reports whether an entity has a name: by the index, or in this event.
func (j *judge) named(id, name string) bool {
	n := normName(name)
	en := j.d.entities.get(id)
	if slices.Contains(j.s.ix.names.of(join(en.Type, n)), id) {
		return true
	}
	for i := len(en.Names) - 1; i >= 0 && en.Names[i].Record == j.e.N; i-- {
		if !en.Names[i].Gone && normName(en.Names[i].Text) == n {
			return true
		}
	}
	return false
}

// similar returns the entities of a type whose names are alike, most alike
// first. It looks only at those that share one of the rarer trigrams: of two
// sets as alike as asked, each holds one of the other's |a| - t·|a| + 1 first.
func (j *judge) similar(typ, name string) (out []PossibleSame) {
	least := Percent(j.c.Policy.Entities.Similarity)
	grams := trigrams(name)
	type posting struct {
		gram string
		ids  []string
	}
	lists := make([]posting, len(grams))
	for i, g := range grams {
		lists[i] = posting{g, j.s.ix.grams.of(join(typ, g))}
	}
	slices.SortFunc(lists, func(a, b posting) int {
		return cmp.Or(cmp.Compare(len(a.ids), len(b.ids)), cmp.Compare(a.gram, b.gram))
	})
	// ceil(t·|a|) trigrams must be shared, so one of the others or the next.
	need := (int(least)*len(grams) + 99) / 100
	lists = lists[:max(1, min(len(lists), len(lists)-need+1))]
	seen := map[string]bool{}
look:
	for _, l := range lists {
		for _, id := range l.ids {
			if len(seen) >= maxCompared {
				j.advise("entity.similarity_capped", "")
				break look
			}
			if seen[id] {
				continue
			}
			seen[id] = true
			if best := j.d.entities.get(id).likeness(grams); best >= least {
				out = append(out, PossibleSame{id, best})
			}
		}
	}
	slices.SortFunc(out, func(a, b PossibleSame) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), compareID(a.Entity, b.Entity))
	})
	return out
}

// likeness is how much a name of it is like one that has these trigrams, below 0 where it has gone.
func (e *Entity) likeness(grams []string) (best Percent) {
	if e.MergedInto != "" || e.Gone {
		return -1
	}
	for _, n := range e.Names {
		if !n.Gone {
			best = max(best, jaccard(grams, trigrams(normName(n.Text))))
		}
	}
	return best
}

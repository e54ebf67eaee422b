package memoryserver

import (
	"regexp"
	"strings"

	"github.com/writ-project/writ/memory"
)

// The resources: what memory_get says of an entity, and memory_explain of a
// slot, as it is now.
const (
	entityURI = "memory://entity/"
	slotURI   = "memory://slot/"
)

var resourceURI = regexp.MustCompile(`^memory://(entity/ent|slot/slot)_[0-9]{1,20}(_[0-9]{1,10})?$`)

// Templates implements gateway.InsideResources: those whose tool is published.
func (s *Server) Templates() (out [][]byte) {
	add := func(tool, uri, name, about string) {
		if s.reads(tool) != nil {
			out = append(out, []byte(textsOf("uriTemplate", uri+"{id}", "name", name, "description", about, "mimeType", "application/json")))
		}
	}
	add(toolGet, entityURI, "memory-entity", "An entity of the memory, by its id: its names and the claims about it. What "+toolGet+" answers.")
	add(toolExplain, slotURI, "memory-slot", "The current value of a question, by the id of its slot, or why there is none. What "+toolExplain+" answers.")
	return out
}

// Resource implements gateway.InsideResources.
func (s *Server) Resource(uri string) (tool string, arguments []byte, ok bool) {
	if !resourceURI.MatchString(uri) {
		return "", nil, false
	}
	name, tool := "id", toolGet
	id, entity := strings.CutPrefix(uri, entityURI)
	if !entity {
		name, tool = "slot", toolExplain
		id = strings.TrimPrefix(uri, slotURI)
	}
	if s.reads(tool) == nil {
		return "", nil, false
	}
	return tool, []byte(textsOf(name, id)), true
}

// Watch implements gateway.InsideResources. Events of other processes are told
// when this one reads them, which is when it is next asked something; that time
// has passed, and with it a claim has become too old, is told of nobody.
func (s *Server) Watch(f func(changed func(uri string) bool)) {
	s.keeper.mu.Lock()
	defer s.keeper.mu.Unlock()
	s.keeper.watch = append(s.keeper.watch, f)
}

// notice tells who watches what an event may have changed. The caller holds mu,
// and has applied it.
func (k *Keeper) notice(e *memory.Event) {
	if e.N <= k.noticed {
		return // it was applied once more
	}
	k.noticed = e.N
	k.touched(e)
	if len(k.watch) == 0 || len(e.Ops) == 0 {
		return
	}
	entities, slots, all := map[string]bool{}, map[string]bool{}, false
	proposition := func(id string) { slots[k.state.Question(id)] = true }
	for i := range e.Ops {
		switch o := &e.Ops[i]; {
		case o.Entity != nil:
			entities[o.Entity.ID] = true
		case o.Alias != nil:
			entities[o.Alias.Entity] = true
		case o.Same != nil:
			entities[o.Same.A], entities[o.Same.B] = true, true
		case o.Slot != nil:
			slots[o.Slot.ID] = true
		case o.Proposition != nil:
			proposition(o.Proposition.ID)
			for _, id := range o.Proposition.About {
				entities[id] = true
			}
		case o.Edge != nil:
			proposition(o.Edge.To)
		case o.Observation != nil, o.Test != nil, o.EndTest != nil, o.Consolidate != nil, o.Episode != nil, o.Source != nil:
			// Nothing that is read as a resource.
		default: // an erasure, a merge, a predicate, what ended: whoever asks again sees
			all = true
		}
	}
	changed := func(uri string) bool {
		if id, ok := strings.CutPrefix(uri, entityURI); ok {
			return all || entities[id]
		}
		id, ok := strings.CutPrefix(uri, slotURI)
		return ok && (all || slots[id])
	}
	if all || len(entities)+len(slots) > 0 {
		for _, f := range k.watch {
			f(changed)
		}
	}
}

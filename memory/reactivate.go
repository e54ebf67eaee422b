package memory

import writ "github.com/writ-project/writ"

// ToolReactivate is the tool of an event that brought claims into a workspace.
// It is the read tool that asks for it, and none of the nine: no proposal has
// that name.
const ToolReactivate = "memory_search"

var reactivation = tool{ToolReactivate, "", []field{
	{name: "proposition_ids", kind: kindIDs, enum: []string{"prop"}, required: true, min: 1, max: 50},
}}

// LoadOp brings a proposition into the task's workspace, to be looked at.
type LoadOp struct {
	Proposition string `json:"proposition"`
}

func (s *State) doLoad(e *Event, l *LoadOp) error {
	if s.propositions.get(l.Proposition) == nil || e.Session == "" {
		return errFit
	}
	key := join(e.Session, e.Task, l.Proposition)
	if it := s.items.edit(key); it != nil {
		if it.Born || it.Outcome == "" {
			return errFit
		}
		it.Outcome = ""
		return nil
	}
	s.items.put(key, &Item{Session: e.Session, Task: e.Task, Proposition: l.Proposition, Impact: LowImpact})
	return nil
}

// HasTask reports whether anything was proposed in a task of a session.
func (s *State) HasTask(session, task string) bool {
	return s.workspaces.get(join(session, task)) != nil
}

// Question returns the slot that a proposition answers, "" for none.
func (s *State) Question(proposition string) string {
	if pr := s.propositions.get(proposition); pr != nil {
		return pr.Slot
	}
	return ""
}

// maxLoaded is how many propositions a workspace may hold for something to be
// brought into it: all of them are judged again in one event.
const maxLoaded = 200

// Loadable returns those of the propositions that a reactivation would bring
// into a task's workspace: they are open, made elsewhere, and not in it, as far
// as there is room.
func (s *State) Loadable(session, task string, propositions []string) []string {
	out, room := []string{}, maxLoaded
	for _, it := range s.itemsOf(join(session, task)) {
		if it.Outcome == "" {
			room--
		}
	}
	for _, id := range propositions {
		if len(out) >= room {
			break
		}
		pr := s.propositions.get(id)
		it := s.items.get(join(session, task, id))
		if pr != nil && pr.Open() && (it == nil || it.Outcome != "" && !it.Born) {
			out = append(out, id)
		}
	}
	return out
}

// Reactivate decides to bring propositions into the workspace of a task, as
// Handle decides a proposal. What is brought in so is no evidence and no touch:
// nothing that is contested, weak or carried over stands otherwise for having
// been read. A consolidation looks at it again, promotes it or not, and puts
// nothing of it away.
func Reactivate(s *State, c Context, propositions []string) Decision {
	payload := []byte(`{"proposition_ids":[`)
	for i, id := range propositions {
		if i > 0 {
			payload = append(payload, ',')
		}
		payload = append(append(append(payload, '"'), id...), '"') // anything but ids is no JSON, or no id
	}
	return handle(s, c, writ.Proposal{ToolName: ToolReactivate, Payload: append(payload, "]}"...)}, &reactivation)
}

// reactivate is Reactivate's part of a judge.
func (j *judge) reactivate() *refusal {
	for _, id := range j.d.Loadable(j.c.Session, j.c.Task, j.lists["proposition_ids"]) {
		j.d.add(Op{Load: &LoadOp{id}})
		j.d.effect("workspace.loaded", id)
	}
	return nil
}

// Redecide decides anew what a recorded event decided, a proposal or a
// reactivation, as Proposed returns it.
func Redecide(s *State, c Context, e *Event, p writ.Proposal) Decision {
	if e.Tool == ToolReactivate && p.ToolName == ToolReactivate {
		return handle(s, c, p, &reactivation)
	}
	return Handle(s, c, p)
}

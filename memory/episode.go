package memory

import (
	"slices"

	writ "github.com/writ-project/writ"
)

// mostListed bounds the lists of ids that an answer holds: the newest of them.
const mostListed = 50

// newest are the last of a list, as many as are listed.
func newest[T any](of []T) []T { return of[max(0, len(of)-mostListed):] }

// consolidate is request_consolidation: it says what of the task's claims is
// established now. What is established is so whether anybody asks or not.
func (j *judge) consolidate() *refusal {
	w := j.task()
	if w.Observations == 0 {
		return refuse("", writ.MemoryEmpty, "a task that has recorded an observation")
	}
	c := &ConsolidateOp{Session: j.c.Session, Task: j.c.Task, Established: j.d.establishedIn(join(j.c.Session, j.c.Task))}
	for _, id := range c.Established {
		j.d.effect("claim.established", id)
	}
	j.d.add(Op{Consolidate: c})
	return nil
}

// establishedIn are the newest claims of a task that are established.
func (s *State) establishedIn(workspace string) []string {
	out := []string{}
	for _, id := range slices.Backward(s.ix.taskClaims.of(workspace)) {
		if len(out) == mostListed {
			break
		}
		if s.standing(id, 0).Status == Established {
			out = append(out, id)
		}
	}
	return out
}

func (j *judge) archive() *refusal {
	if id, given := j.texts["episode_id"]; given {
		if j.d.episodes.get(id) == nil {
			return refuse("/episode_id", writ.MemoryTarget, "an episode that exists")
		}
		return j.archived(id)
	}
	obs := j.lists["observation_ids"]
	_, summary := j.texts["summary_text"]
	if summary && len(obs) == 0 {
		return refuse("/observation_ids", writ.MemoryMissing, "the observations the summary rests on")
	}
	w := j.task()
	switch {
	case w.Episode != "" && w.LastObservation <= w.LastConsolidation:
		return j.archived(w.Episode)
	case w.LastConsolidation == 0 || w.LastObservation > w.LastConsolidation:
		return refuse("", writ.EpisodePending, "request_consolidation with reason task_boundary, after the last observation")
	}
	ep := &Episode{ID: j.d.mint("epi"), Session: j.c.Session, Task: j.c.Task, StartedAt: w.StartedAt, EndedAt: j.e.At, Sources: obs}
	if summary {
		o := &Observation{ID: j.d.mint("obs"), Client: "summary/" + ep.ID, Source: "agent:" + j.c.Principal, Class: ClassAgentInference,
			Label: writ.Model, Principal: j.c.Principal, Session: j.c.Session, Task: j.c.Task, RecordedAt: j.e.At, EventTime: j.now(),
			Lineage: obs, Status: Ingested, Exposed: j.c.Exposed}
		j.d.add(Op{At: "/payload", Observation: o})
		ep.Summary = o.ID
	}
	j.d.add(Op{Episode: ep})
	j.d.effect("episode.archived", ep.ID)
	return nil
}

// archived answers what is archived already. A summary said again is kept where
// it stands.
func (j *judge) archived(id string) *refusal {
	j.d.effect("episode.already_archived", id)
	j.noValue = true
	return nil
}

package memory

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/text"
)

// Taken is what an erasure takes.
type Taken struct {
	// Records are the numbers of the events whose values go: everything an
	// agent or a person wrote in them.
	Records      []uint64 `json:"records"`
	Observations []string `json:"observations"`
	Propositions []string `json:"propositions"`
	Entities     []string `json:"entities"`
}

// Cascade is what an erasure takes with it, and what it leaves.
type Cascade struct {
	Taken
	// Echoes are observations that stay and hold the whole text of one that
	// goes: whoever wants the words gone erases those too.
	Echoes []string `json:"echoes"`
}

// Selection says whose text is to go. Every field that is set selects.
type Selection struct {
	Observations []string
	Source       string
	Session      string
	Principal    string
}

// Cascade returns what erasing a selection would take with it: the observations
// and whatever was derived from them; the records that hold or quote their text;
// propositions and names that rest on nothing else, or repeat a word of theirs
// that nothing else they rest on has; and what was ever refused, for nobody
// knows what stands in it.
func (s *State) Cascade(sel Selection) Cascade {
	x := &erasure{s, map[uint64]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	x.take(sel.Observations)
	if sel.Source != "" {
		x.take(s.ix.bySource.of(sel.Source))
	}
	x.proposals(func(d *Decided) bool { // refused ones too
		return sel.Session != "" && d.Session == sel.Session || sel.Principal != "" && d.Principal == sel.Principal
	})
	for known := -1; len(x.taken)+len(x.records) > known; {
		known = len(x.taken) + len(x.records)
		x.rested()
	}
	if len(x.records) > 0 {
		x.proposals(func(d *Decided) bool { return d.Status == writ.Rejected && !d.Erased })
	}
	maps.DeleteFunc(x.records, func(n uint64, _ bool) bool { return s.decision(n) == nil })
	return Cascade{Taken{list(slices.Sorted(maps.Keys(x.records))), sortedIDs(x.taken), sortedIDs(x.props), sortedIDs(x.ents)}, list(s.echoes(x.taken))}
}

// An erasure is what is taken so far: records, observations, propositions and entities.
type erasure struct {
	*State
	records            map[uint64]bool
	taken, props, ents map[string]bool
}

// take takes observations among some ids, and all that was derived from them.
func (x *erasure) take(ids []string) {
	for queue := slices.Clone(ids); len(queue) > 0; queue = queue[1:] {
		if id := queue[0]; !x.taken[id] && x.observations.get(id) != nil {
			x.taken[id] = true
			queue = append(queue, x.ix.children.of(id)...)
		}
	}
}

func (x *erasure) proposals(which func(*Decided) bool) {
	for _, k := range x.decided.keys() {
		if d := x.decided.get(k); d.Kind == KindProposal && which(d) {
			x.records[d.N] = true
		}
	}
}

func sortedIDs(set map[string]bool) []string {
	return list(slices.SortedFunc(maps.Keys(set), compareID))
}

// Seen is where the gateway itself saw what an erasure takes: its evidence, and its
// sessions.
func (s *State) Seen(records []uint64, observations []string) (evidence, sessions []string) {
	evidence, sessions = []string{}, []string{}
	for _, id := range observations {
		if o := s.observations.get(id); o != nil && o.Evidence != "" {
			evidence = addOnce(evidence, o.Evidence)
		}
	}
	for _, n := range records {
		if d := s.decision(n); d != nil && strings.HasPrefix(d.Session, "s_") {
			sessions = addOnce(sessions, d.Session)
		}
	}
	return evidence, sessions
}

// Bearing are the observations that bear a claim out, or that it was cited for where
// none does.
func (s *State) Bearing(proposition string) (out []string) {
	var cited []string
	for _, ed := range s.edgesAt(proposition) {
		if o := s.observations.get(ed.From); ed.Type != Supports || o == nil || o.Status == Erased {
			continue
		}
		if cited = append(cited, ed.From); ed.Level > 0 {
			out = append(out, ed.From)
		}
	}
	if len(out) == 0 {
		return cited
	}
	return out
}

// record takes the record that made what has an id.
func (x *erasure) record(id string) { x.records[number(id)] = true }

// touched takes the records that hold or quote what is taken; it returns the claims that it
// was cited for, those in records that go, and the words by which it is known.
func (x *erasure) touched() (props, said map[string]bool) {
	props, said = map[string]bool{}, map[string]bool{}
	for id := range x.taken {
		x.record(id)
		for _, ed := range x.edgesFrom(id) {
			if ed.Quoted {
				x.record(ed.ID)
			}
			if ed.Type == Supports {
				props[ed.To] = true
			}
		}
		ob := x.observations.get(id)
		for _, w := range telling(ob.Raw+" "+ob.Parsed+" "+ob.SourceRef, 1) {
			said[w] = true
		}
	}
	for n := range x.records {
		for _, id := range x.ix.byRecord.of(recordKey(n)) {
			if isID("prop", id) {
				props[id] = true
			}
		}
	}
	return props, said
}

// rested adds what goes with the observations that are taken: the records that
// hold or quote them, the claims and names that rest on them, and all that stands in a
// record that goes.
func (x *erasure) rested() {
	props, said := x.touched()
	for id := range props {
		if x.records[number(id)] || !x.stays(x.propositions.get(id), said) {
			x.props[id] = true
			x.record(id)
		}
	}
	// Names that an erased observation bears out, or that stand in a record
	// that goes.
	for _, id := range x.entities.keys() {
		for _, n := range x.entities.get(id).Names {
			rests := x.taken[n.Observation] || slices.ContainsFunc(n.Beside, func(o string) bool { return x.taken[o] })
			if !n.Gone && (rests || x.records[n.Record]) {
				x.records[n.Record] = true
				x.ents[id] = true
			}
		}
	}
	for n := range x.records {
		x.take(x.ix.byRecord.of(recordKey(n)))
	}
}

// stays reports whether a claim rests on what is not taken, and repeats none of the words
// that were said and are told nowhere else. An operator's ruling is no text that a claim could
// rest on, and what does not bear it out holds nothing of it.
func (x *erasure) stays(p *Proposition, said map[string]bool) bool {
	rests, left := false, map[string]bool{}
	for _, ed := range x.edgesAt(p.ID) {
		if o := x.observations.get(ed.From); ed.Type == Supports && ed.Level > 0 && !x.taken[ed.From] && o != nil && o.Status == Ingested {
			rests = true
			for _, w := range telling(o.Raw, 1) {
				left[w] = true
			}
		}
	}
	return rests && !slices.ContainsFunc(append(telling(p.Text+" "+p.Quals, 3), telling(p.Literal, 1)...), func(w string) bool { return said[w] && !left[w] })
}

// telling are the words by which a text is known, in the form in which names are
// equal: those with a digit or of at least so many letters, and of scripts that
// write no spaces each two letters in a row.
func telling(s string, letters int) (out []string) {
	for _, w := range strings.Fields(normName(s)) {
		if strings.ContainsFunc(w, text.Spaceless) {
			rs := []rune(w)
			for i := range rs {
				out = append(out, string(rs[i:min(i+2, len(rs))]))
			}
			continue
		}
		if runes(w) >= letters || strings.ContainsFunc(w, unicode.IsNumber) {
			out = append(out, w)
		}
	}
	return out
}

// maxEchoed is how many texts are looked for in other texts. Of more, only
// equal texts are found.
const maxEchoed = 64

// echoes finds the observations that stay and hold the text of one that goes.
func (s *State) echoes(taken map[string]bool) (out []string) {
	texts := map[string]bool{}
	for id := range taken {
		if t := s.observations.get(id).Raw; t != "" {
			texts[t] = true
		}
	}
	if len(texts) == 0 {
		return nil
	}
	known := slices.Collect(maps.Keys(texts))
	for _, id := range s.observations.keys() {
		o := s.observations.get(id)
		if taken[id] || o.Status == Erased {
			continue
		}
		if texts[o.Raw] || len(texts) <= maxEchoed && slices.ContainsFunc(known, func(t string) bool { return strings.Contains(o.Raw, t) }) {
			out = append(out, id)
		}
	}
	return out
}

// erase is the command: the cascade is taken, and what rested on it is
// evaluated anew.
func (j *judge) erase() *refusal {
	if !j.s.observations.has(j.lists["observation_ids"]) {
		return refuse("/observation_ids", writ.MemoryUnknown, "observations by the ids this memory gave them")
	}
	c := j.s.Cascade(Selection{Observations: j.lists["observation_ids"], Source: j.texts["source"], Session: j.texts["session"], Principal: j.texts["principal"]})
	if len(c.Records) == 0 {
		return refuse("", writ.CommandState, "a selection that selects something")
	}
	nameless := slices.DeleteFunc(slices.Clone(c.Entities), func(id string) bool {
		return slices.ContainsFunc(j.s.entities.get(id).Names, func(n Name) bool { return !n.Gone && !slices.Contains(c.Records, n.Record) })
	})
	for _, id := range c.Propositions {
		j.d.touch(j.d.propositions.get(id).Slot, id)
	}
	j.d.retract(c.Observations, "erased")
	j.d.add(Op{Erase: &EraseOp{c.Taken, nameless}})
	j.d.effect("memory.erased", "")
	return nil
}

// distrust is the recovery from a poisoned source.
func (j *judge) distrust() *refusal {
	source, since := j.texts["source"], j.times["since"]
	said, known := j.s.ix.bySource.of(source), j.d.sources.get(source) != nil
	if len(said) == 0 && !known {
		return refuse("/source", writ.CommandState, "a source that is registered or said something")
	}
	x := &erasure{State: j.s, taken: map[string]bool{}}
	x.take(slices.DeleteFunc(slices.Clone(said), func(id string) bool { return j.s.observations.get(id).RecordedAt < since }))
	maps.DeleteFunc(x.taken, func(id string, _ bool) bool {
		is := j.s.observations.get(id).Status
		return is != Ingested && is != Quarantined
	})
	o := &DistrustOp{Source: source, Since: since, Observations: sortedIDs(x.taken)}
	if !known {
		// Registered, so that there is something to refuse from now on.
		class := j.s.observations.get(said[len(said)-1]).Class
		j.d.add(Op{Source: &Source{ID: source, Class: class, RegisteredBy: j.c.Principal}})
	}
	j.d.retract(o.Observations, "distrusted")
	j.d.add(Op{Distrust: o})
	j.d.effect("source.distrusted", "")
	return nil
}

func (d *draftEvent) retract(obs []string, because string) {
	for _, o := range obs {
		d.close(d.edgesFrom(o), because)
	}
}

// close ends those of the edges that are not.
func (d *draftEvent) close(edges []*Edge, because string) {
	for _, ed := range edges {
		if ed.Active() {
			d.touch(d.propositions.get(ed.To).Slot, ed.To)
			d.add(Op{Close: &CloseOp{Edge: ed.ID, Resolution: because, By: d.e.decision()}})
		}
	}
}

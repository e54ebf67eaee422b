package memory

import (
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// classOf is the class a label proves.
func classOf(l writ.Label) TrustClass {
	switch l {
	case writ.Operator:
		return ClassOperator
	case writ.User:
		return ClassDirectUser
	case writ.System:
		return ClassToolInternal
	case writ.Party, writ.External:
		return ClassToolExternal
	}
	return ClassAgentInference
}

// bind puts into an observation whose words it is, by the channel alone: of evidence
// Writ captured, of what the agent says its user said, or by nothing but the agent's
// word. text is what is kept in place of the span, "" for that.
func (j *judge) bind(o *Observation, at, sourceRef string) (text string, r *refusal) {
	for i := range j.c.Captured {
		c := &j.c.Captured[i]
		named := c.named(sourceRef)
		switch {
		case named && !c.Verbatim:
			return "", refuse(at+"/raw_payload", writ.MemoryQuote, "a raw_payload that stands verbatim in the evidence it names: at least 8 bytes between words, or a whole leaf")
		case named, sourceRef == "" && c.Verbatim:
			o.Source, o.Class, o.Label = c.Source, classOf(c.Label), c.Label
			if c.Class != "" && j.c.Policy.level(c.Class, j.c.Mode) <= j.c.Policy.level(o.Class, j.c.Mode) {
				o.Class = c.Class
			}
			o.Evidence, o.Whole, o.Between, o.Offset = c.Evidence, c.Whole, c.Between, c.Offset
			o.Type, o.Collection, o.Leaves, o.Order = c.Type, c.Collection, c.Leaves, c.Seen
			j.e.Capture = c.kept(named)
			return RedactText(c.Text, j.c.Secrets), j.worth(o)
		}
	}
	if _, err := writ.ParseEvidenceID(sourceRef); err == nil {
		return "", refuse(at+"/source_ref", writ.MemoryUnknown, "evidence of this session that holds raw_payload verbatim; memory_pending lists the newest")
	}
	o.Class, o.Label, o.Source = ClassAgentInference, writ.Model, "agent:"+j.c.Principal
	if sourceRef == "user" || strings.HasPrefix(sourceRef, "user:") {
		o.Class, o.Source = ClassUserAttested, "attested:"+j.c.Principal
	}
	return "", j.worth(o)
}

// worth looks up the level: never more than the channel's class, and no more
// than an operator registered for the source.
func (j *judge) worth(o *Observation) *refusal {
	o.Level = j.c.Policy.level(o.Class, j.c.Mode)
	if src := j.d.sources.get(o.Source); src != nil {
		if src.Suspended {
			return refuse("", writ.SourceSuspended, "a source that is not suspended")
		}
		if own := j.c.Policy.level(src.Class, j.c.Mode); own < o.Level {
			o.Class, o.Level = src.Class, own
		}
	}
	return nil
}

// observe records one observation whose payload stands at a pointer of the
// event's value. client is the caller's id; obj its fields, already checked.
// It returns the observation's id, and whether it was there before.
func (j *judge) observe(at, client, raw, sourceRef string, lineage []string, eventTime Instant) (id string, again bool, r *refusal) {
	if ob := j.observation(client); ob != nil {
		if ob.Status == Erased || ob.Raw != raw && !(ob.Between && contains(ob.Raw, raw)) {
			return "", false, refuse(at+"/observation_id", writ.ObservationConflict, "an id that was not used for other content; of erased content none comes back")
		}
		return ob.ID, true, nil
	}
	o := &Observation{ID: j.d.mint("obs"), Client: client, Principal: j.c.Principal, Session: j.c.Session, Task: j.c.Task, RecordedAt: j.e.At,
		EventTime: eventTime, Lineage: slices.Clone(lineage), Status: Ingested, Exposed: j.c.Exposed}
	text, r := j.bind(o, at, sourceRef)
	if r != nil {
		return "", false, r
	}
	captured := j.e.Capture
	if j.t.name != ToolRemember && text != "" && text != raw && len(text) <= maxRaw {
		// What was cut out of a sentence is kept with the rest of it.
		o.Offset = max(0, o.Offset-max(0, strings.Index(text, raw)))
		captured.Offset = o.Offset
		j.amend(at, "raw_payload", text)
		j.transform("raw_payload_widened", at+"/raw_payload")
	}
	switch {
	case j.t.name == ToolRemember:
	case captured == nil && o.Class != ClassUserAttested && sourceRef == "" && len(lineage) == 0:
		need := "a raw_payload that stands verbatim in something Writ saw in this session (at least 8 bytes between words, or a whole leaf), a source_ref, or derived_from"
		if j.c.Unlooked {
			need += "; for its size not all of it was looked at: source_ref names a piece"
		}
		return "", false, refuse(at, writ.MemoryMissing, need)
	}
	for _, from := range lineage {
		ob := j.d.observations.get(from)
		o.Level, o.Label = min(o.Level, ob.Level), min(o.Label, ob.Label)
	}
	if j.c.Screened == ScreenBlock {
		return "", false, refuse(at, writ.ObservationScreened, "a content the screen does not block")
	}
	// What an operator imports is no flood: no channel of an agent binds that class.
	if imported := captured != nil && captured.Class == ClassImport; !imported && !j.rateOK(o.Source) {
		return "", false, refuse(at, writ.ObservationRate, "fewer observations of one source: at most "+count(j.c.Policy.Caps.ObservationsPerMinute)+" in a minute")
	}
	if limit := j.now() + j.c.Policy.lead(); eventTime > limit {
		o.EventTime = limit
		j.amend(at, "event_time", limit.String())
		j.transform("event_time_clamped", at+"/event_time")
	}
	if j.c.Screened == ScreenQuarantine {
		o.Status = Quarantined
	}
	// The texts stand where the payload has them, in the value to come.
	j.d.add(Op{At: "/payload" + at, Observation: o})
	j.d.effect("observation."+string(o.Status), o.ID)
	return o.ID, false, nil
}

// amend makes a text of an observation another, in the payload or in its member.
func (j *judge) amend(at, name, text string) {
	if v := strictjson.Quote(text); at == "" {
		j.set(name, v)
	} else {
		j.set("observation", strictjson.Set(j.m["observation"], name, v))
	}
}

// contains reports whether words stand verbatim in a text.
func contains(text, words string) bool { return words != "" && strings.Contains(text, words) }

// now is the time something is taken to have happened at if nobody says
// otherwise: never before what was recorded earlier. A clock that was set back
// makes no new statement one about the past (M08).
func (j *judge) now() Instant { return max(j.e.At, j.s.latest) }

// lead is how far a claimed time may lead the clock.
func (p *Policy) lead() Instant { return Instant(p.Caps.FutureMinutes) * 60_000_000 }

// told records the observation that in has read, of the object at a pointer.
func (j *judge) told(at string, in *judge) (id string, again bool, r *refusal) {
	if len(in.m["parsed_payload"]) > maxRaw {
		return "", false, refuse(at+"/parsed_payload", writ.SchemaInvalid, "an object of at most 64 KiB")
	}
	if r := in.cites(observationFields); r != nil { // of a test's result
		r.at = at + r.at
		return "", false, r
	}
	when, given := in.times["event_time"]
	if !given {
		when = j.now()
	}
	return j.observe(at, in.texts["observation_id"], in.texts["raw_payload"], in.texts["source_ref"], in.lists["derived_from"], when)
}

func (j *judge) recordObservation() *refusal {
	id, again, r := j.told("", j)
	if again {
		// The content is there already; keeping it twice would keep it from
		// being erased.
		j.noValue = true
		j.d.effect("observation.duplicate", id)
	}
	return r
}

func (j *judge) advise(word, id string) { j.advice = append(j.advice, Effect{word, id}) }

package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/words"
	"github.com/writ-project/writ/memory"
)

// The baselines have no states and no trust. They believe every claim as it is
// handed to them, and answer whenever they have an answer, with certainty. They
// are the rules that memories without governance come down to, not the products.

// told is what a baseline remembers.
type told struct {
	claims map[string]claim // of a step that proposed or tested one
	tests  map[string]map[string]string
	names  map[string]string // of a step that named an entity, its normalised name
	// nodes are the entities steps came to, where a baseline joins them; without,
	// two things of one name are one.
	nodes map[string]string
}

func newTold() told {
	return told{claims: map[string]claim{}, tests: map[string]map[string]string{}, names: map[string]string{}}
}

// note keeps what later steps refer to, and returns the claims a step makes:
// one that is proposed or supported, or the one whose predicted outcome a test
// had.
func (t *told) note(e *event) (out []claim) {
	if e.kind != proposes {
		return nil
	}
	switch e.tool {
	case memory.ToolEntity:
		name := strings.ToLower(text(e.payload, "name"))
		if ref, is := strings.CutPrefix(text(e.payload, "entity_id"), "$"); is {
			name = t.names[ref]
		}
		t.names[e.as] = name
	case memory.ToolPropose:
		c := claimOf(e.payload)
		t.claims[e.as] = c
		return t.with(c)
	case memory.ToolAttachSupport:
		c := t.claims[strings.TrimPrefix(text(e.payload, "proposition_id"), "$")]
		c.observations, c.validFrom = texts(e.payload, "observation_ids"), ""
		return t.with(c)
	case memory.ToolProposeTest:
		t.tests[e.as] = map[string]string{}
		ms, _ := strictjson.Members(strictjson.Get(e.payload, "discriminates"))
		for _, m := range ms {
			word, _ := strictjson.Text(m.Value)
			t.tests[e.as][word] = strings.TrimPrefix(m.Name, "$")
		}
	case memory.ToolTestResult:
		if as, ok := t.tests[strings.TrimPrefix(text(e.payload, "test_id"), "$")][text(e.payload, "outcome")]; ok {
			c := t.claims[as]
			c.observations, c.validFrom = []string{text(strictjson.Get(e.payload, "observation"), "observation_id")}, ""
			return t.with(c)
		}
	}
	return nil
}

// with is the claim under the key of its slot.
func (t *told) with(c claim) []claim {
	if c.slot == "" || c.value == "" {
		return nil
	}
	c.slot = t.key(c.slot)
	return []claim{c}
}

func (t *told) key(slot string) string {
	entity, predicate, _ := cutSlot(slot)
	of := t.names
	if t.nodes != nil {
		of = t.nodes
	}
	return cmp.Or(of[entity], entity) + "." + predicate
}

// observed returns the observation a step records.
func observed(e *event) (id, raw, eventTime string) {
	ob := e.payload
	if e.tool == memory.ToolTestResult {
		ob = strictjson.Get(ob, "observation")
	} else if e.tool != memory.ToolRecordObservation {
		return "", "", ""
	}
	return text(ob, "observation_id"), text(ob, "raw_payload"), text(ob, "event_time")
}

// certain is an answer, or none.
func certain(v string) reading {
	if v == "" {
		return reading{why: memory.NothingKnown}
	}
	return reading{value: v, confidence: memory.One}
}

// rawLog is B1: a log of texts, searched by BM25, of whose ten best hits the
// newest one that holds a value of the slot is the answer.
type rawLog struct {
	told
	r     *run
	index Index
	raw   map[string]string // by its own ids
	ids   map[string]string // of observations, to its own
}

const rawHits = 10

func newRawLog(r *run, o *Options) system {
	return &rawLog{told: newTold(), r: r, index: o.Memory.Index(), raw: map[string]string{}, ids: map[string]string{}}
}

func (l *rawLog) do(e *event) {
	l.note(e)
	if id, raw, _ := observed(e); id != "" {
		if _, twice := l.ids[id]; twice {
			return
		}
		own := fmt.Sprintf("o%08d", len(l.ids)+1)
		l.ids[id], l.raw[own] = own, raw
		l.index.Put(own, "observation", raw)
	}
	if e.kind == operates && e.tool == memory.CommandErase {
		for _, o := range texts(e.payload, "observation_ids") {
			own := l.ids[strings.TrimPrefix(o, "$")]
			delete(l.raw, own)
			l.index.Drop(own)
		}
	}
}

func (l *rawLog) ask(e *event) reading {
	entity, predicate, _ := cutSlot(e.slot)
	q := cmp.Or(e.question, l.names[entity]+" "+strings.ReplaceAll(predicate, "_", " "))
	hits := l.index.Search(q, nil, len(l.raw)+1)
	if len(hits) > rawHits {
		// Whatever scores as the tenth does is among them: an index breaks ties
		// by id, which would favour what is oldest.
		least := hits[rawHits-1].Score
		hits = slices.DeleteFunc(hits, func(h words.Hit) bool { return h.Score < least })
	}
	slices.SortFunc(hits, func(a, b words.Hit) int { return strings.Compare(b.ID, a.ID) })
	for _, h := range hits {
		if v := spoken(l.raw[h.ID], l.r.values[e.slot]); v != "" {
			return certain(v)
		}
	}
	return certain("")
}

// spoken is the value that stands last in a text.
func spoken(text string, values []string) (out string) {
	at := -1
	for _, v := range values {
		if i := strings.LastIndex(text, v); i > at {
			at, out = i, v
		}
	}
	return out
}

func (l *rawLog) entity(string) (string, bool, bool) { return "", false, false }

func (l *rawLog) size() (rows, bytes int) {
	for _, t := range l.raw {
		bytes += len(t)
	}
	return len(l.raw), bytes
}

// slotted is what B2 to B4 share: of each slot what was said, and a rule that
// answers from it.
type slotted struct {
	told
	held map[string][]mention
	rule func([]mention) []string
}

func newSlotted(rule func([]mention) []string) slotted {
	return slotted{newTold(), map[string][]mention{}, rule}
}

func (s *slotted) ask(e *event) reading {
	if held := s.held[s.key(e.slot)]; len(held) > 0 {
		return certain(s.rule(held)[0])
	}
	return certain("")
}

func (s *slotted) entity(string) (string, bool, bool) { return "", false, false }

func (s *slotted) size() (rows, bytes int) {
	for _, held := range s.held {
		rows += len(held)
		for _, m := range held {
			bytes += m.size
		}
	}
	return rows, bytes
}

// summary is B2: of each slot the last sentences, and of those the value most
// of them have; the newest of equals.
type summary struct {
	slotted
	raw map[string]string
}

const summaryLength = 3

func newSummary(*run, *Options) system {
	return &summary{newSlotted(func(ms []mention) []string { return []string{most(ms, true)} }), map[string]string{}}
}

func (s *summary) do(e *event) {
	if id, raw, _ := observed(e); id != "" {
		s.raw[id] = raw
	}
	for _, c := range s.note(e) {
		held := s.held[c.slot]
		for _, o := range c.observations {
			if raw, known := s.raw[o]; known && strings.Contains(raw, c.value) {
				held = append(held, mention{value: c.value, of: o, size: len(raw)})
			}
		}
		s.held[c.slot] = held[max(0, len(held)-summaryLength):]
	}
	if e.kind == operates && e.tool == memory.CommandErase {
		for _, o := range texts(e.payload, "observation_ids") {
			for slot := range s.held {
				s.held[slot] = slices.DeleteFunc(s.held[slot], func(m mention) bool { return "$"+m.of == o })
			}
		}
	}
}

// keyValue is B3: a map from slot to value, in which the last write wins. It
// does not know what a value came from, so it cannot erase.
type keyValue struct{ slotted }

func newKeyValue(*run, *Options) system { return &keyValue{newSlotted(newestWins)} }

func (k *keyValue) do(e *event) {
	for _, c := range k.note(e) {
		k.held[c.slot] = []mention{{value: c.value, size: len(c.slot) + len(c.value)}}
	}
}

// graph is B4: entities joined by their names, and values with the time from
// which they hold, of which the newest wins, whoever said it.
type graph struct {
	slotted
	r      *run
	times  map[string]time.Time // of observations
	named  map[string]string    // nodes, by normalised name
	joined map[string]bool
}

func newGraph(r *run, _ *Options) system {
	g := &graph{slotted: newSlotted(newestWins), r: r, times: map[string]time.Time{}, named: map[string]string{}, joined: map[string]bool{}}
	g.nodes = map[string]string{}
	return g
}

func (g *graph) do(e *event) {
	if id, _, at := observed(e); id != "" {
		g.times[id] = g.r.instant(e.at)
		if t, err := time.Parse(time.RFC3339, at); err == nil {
			g.times[id] = t
		}
	}
	if e.kind == proposes && e.tool == memory.ToolEntity {
		name := strings.ToLower(text(e.payload, "name"))
		node := g.named[name]
		if ref, is := strings.CutPrefix(text(e.payload, "entity_id"), "$"); is {
			node = g.nodes[ref]
		}
		if g.joined[e.as] = node != ""; node == "" {
			node = e.as
			g.named[name] = node
		}
		for _, a := range texts(e.payload, "aliases") {
			if a = strings.ToLower(a); g.named[a] == "" {
				g.named[a] = node
			}
		}
		g.nodes[e.as] = node
	}
	for _, c := range g.note(e) {
		at := g.r.instant(e.at)
		for i, o := range c.observations {
			if t, known := g.times[o]; known && (i == 0 || t.After(at)) {
				at = t
			}
		}
		if t, err := time.Parse(time.RFC3339, c.validFrom); err == nil {
			at = t
		}
		g.held[c.slot] = append(g.held[c.slot], mention{value: c.value, at: at, size: len(c.value) + 8})
	}
}

func (g *graph) entity(as string) (string, bool, bool) {
	return g.nodes[as], g.joined[as], g.nodes[as] != ""
}

func (g *graph) size() (rows, bytes int) {
	rows, bytes = g.slotted.size()
	for name := range g.named {
		bytes += len(name)
	}
	return rows + len(g.named), bytes
}

package memory

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/writ-project/writ/eval/memory/origin"
	"github.com/writ-project/writ/internal/words"
)

// plainWords is the rule that holds everything, so that what it finds is what
// words alone do.
const plainWords = "add_only"

// Rules are what other memories come down to: a decision rule each, rewritten
// here, and no run of anybody's product. They file a note as it comes, have no
// words of trust and no nine tools, and find by plain words what they still hold.
func Rules() []System {
	mentioned := func(rule func([]mention) []string) func() Memory {
		return func() Memory {
			return newMentions(nil, func(m *mentions, slot string) (out []string) {
				if ms := m.slots[slot]; len(ms) > 0 {
					out = rule(ms)
				}
				return out
			})
		}
	}
	byOrigin := func(read ...origin.Status) func() Memory {
		return func() Memory {
			return newMentions(&origin.Memory{}, func(m *mentions, slot string) []string {
				return slices.DeleteFunc(addOnly(m.slots[slot]), func(v string) bool {
					b, err := m.claims.Read(slot+"\x00"+v, m.hours())
					return err != nil || !slices.Contains(read, b.Status)
				})
			})
		}
	}
	return []System{
		{"newest_wins", "newest wins", "hard updates, functional facts, key-value stores", true, mentioned(newestWins)},
		{plainWords, "add only, newest first", "append-only extraction", true, mentioned(addOnly)},
		{"mention_count", "mention count", "most often said wins", true, mentioned(mentionCount)},
		{"origin_provisional", "origin, provisional readable", "the design this memory grew out of", true, byOrigin(origin.Accepted, origin.Provisional)},
		{"origin_accepted", "origin, accepted only", "the design this memory grew out of", true, byOrigin(origin.Accepted)},
	}
}

// mention is one note that was filed.
type mention struct {
	value, text, slot string
	at                time.Time
}

// mentions is a memory of notes, and a rule that says which values of a slot it holds, best
// first. With claims it reads by the rules of the origin: who states another value of a slot
// says that the one before is not so. A family of tools is one group, and so are all
// strangers together, which favours the design: it leaves groups to whoever calls it.
type mentions struct {
	now    time.Time
	heard  []Evidence
	all    []mention
	slots  map[string][]mention
	index  *words.Index
	claims *origin.Memory
	holds  func(m *mentions, slot string) []string
}

func newMentions(claims *origin.Memory, holds func(m *mentions, slot string) []string) *mentions {
	return &mentions{slots: map[string][]mention{}, index: &words.Index{}, claims: claims, holds: holds}
}

func slotKey(subject, predicate string) string { return strings.ToLower(subject + "\x00" + predicate) }

func (m *mentions) At(now time.Time)             { m.now = now }
func (m *mentions) Hear(e Evidence)              { m.heard = append(m.heard, e) }
func (m *mentions) Propose(string, []byte) Filed { return Filed{Refused: true} }

func (m *mentions) Remember(n Note) Filed {
	f := mention{n.Value, n.Text, "", m.now}
	if n.Predicate != "" && n.Value != "" {
		f.slot = slotKey(n.Subject, n.Predicate)
		if m.claims != nil {
			m.claim(n, f.slot)
		}
		m.slots[f.slot] = append(m.slots[f.slot], f)
	}
	return Filed{IDs: []string{m.keep(f)}}
}

func (m *mentions) hours() time.Duration { return m.now.Sub(beginning) }

// claim does what the origin does with a note.
func (m *mentions) claim(n Note, slot string) {
	group := "agent"
	if e := behind(m.heard, n); e != nil {
		if group, _, _ = strings.Cut(e.Source, "/"); e.Level == LevelStranger {
			group = "strangers"
		}
	}
	if ms := m.slots[slot]; len(ms) > 0 && ms[len(ms)-1].value != n.Value {
		_, _ = m.claims.Contradict(slot+"\x00"+ms[len(ms)-1].value, group, m.hours()) // it was proposed
	}
	m.claims.Propose(slot+"\x00"+n.Value, origin.Low, m.hours())
	_, _ = m.claims.Support(slot+"\x00"+n.Value, group, m.hours())
}

// keep makes a note be found by its words.
func (m *mentions) keep(f mention) string {
	m.all = append(m.all, f)
	id := "note_" + strconv.Itoa(len(m.all))
	m.index.Put(id, "note", f.text)
	return id
}

func (m *mentions) Current(subject, predicate string) (out []Item) {
	for _, v := range m.holds(m, slotKey(subject, predicate)) {
		out = append(out, Item{Value: v, Text: v, Trust: Established})
	}
	return out
}

// Recall leaves out what is no longer held, and takes an evidence's text for
// what it is a note of.
func (m *mentions) Recall(question string) (out []Item) {
	for _, h := range m.index.Search(question, nil, 50) {
		n, _ := strconv.Atoi(strings.TrimPrefix(h.ID, "note_"))
		f := m.all[n-1]
		if f.slot != "" && !slices.Contains(m.holds(m, f.slot), f.value) {
			continue
		}
		i := Item{ID: h.ID, Text: f.text, Value: f.value, Trust: Established}
		if e := behind(m.heard, Note{Text: f.text}); e != nil {
			i.Evidence = []string{e.ID}
		}
		if out = append(out, i); len(out) == 10 {
			break
		}
	}
	return out
}

// History is kept by the origin alone.
func (m *mentions) History(subject, predicate string) (out []string, _ bool) {
	for _, f := range m.slots[slotKey(subject, predicate)] {
		if m.claims != nil && (len(out) == 0 || out[len(out)-1] != f.value) {
			out = append(out, f.value)
		}
	}
	return out, m.claims != nil
}

func (m *mentions) Fork() Memory {
	out, index := *m, m.index.Clone()
	out.index, out.heard, out.all, out.slots = &index, slices.Clone(m.heard), slices.Clone(m.all), map[string][]mention{}
	if m.claims != nil {
		out.claims = m.claims.Clone()
	}
	for s, ms := range m.slots {
		out.slots[s] = slices.Clone(ms)
	}
	return &out
}

func newestWins(ms []mention) []string { return []string{ms[len(ms)-1].value} }

func addOnly(ms []mention) (out []string) {
	for _, m := range slices.Backward(ms) {
		if !slices.Contains(out, m.value) {
			out = append(out, m.value)
		}
	}
	return out
}

// mentionCount is the value said most often; of two said as often, the one that
// was known first.
func mentionCount(ms []mention) []string {
	best, count := "", map[string]int{}
	for _, m := range ms {
		count[m.value]++
	}
	for _, m := range ms {
		if count[m.value] > count[best] {
			best = m.value
		}
	}
	return []string{best}
}

// behind finds what an agent cites for a note: the newest evidence with its text,
// or else with its value and its subject, or else with its value.
func behind(heard []Evidence, n Note) *Evidence {
	has := func(s string, also ...string) *Evidence {
		for i := range heard {
			e := &heard[len(heard)-1-i]
			if s != "" && strings.Contains(e.Text, s) && !slices.ContainsFunc(also, func(a string) bool { return !strings.Contains(e.Text, a) }) {
				return e
			}
		}
		return nil
	}
	if e := has(n.Text); e != nil {
		return e
	}
	if e := has(n.Value, n.Subject); e != nil && n.Subject != "me" {
		return e
	}
	return has(n.Value)
}

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
		return func() Memory { m := newMentions(rule); return &m }
	}
	byOrigin := func(accepted bool) func() Memory {
		return func() Memory {
			return &designed{mentions: newMentions(nil), claims: &origin.Memory{}, accepted: accepted}
		}
	}
	return []System{
		{"newest_wins", "newest wins", "hard updates, functional facts, key-value stores", true, mentioned(newestWins)},
		{plainWords, "add only, newest first", "append-only extraction", true, mentioned(addOnly)},
		{"mention_count", "mention count", "most often said wins", true, mentioned(mentionCount)},
		{"origin_provisional", "origin, provisional readable", "the design this memory grew out of", true, byOrigin(false)},
		{"origin_accepted", "origin, accepted only", "the design this memory grew out of", true, byOrigin(true)},
	}
}

// mention is one note that was filed.
type mention struct {
	value, text, slot string
	at                time.Time
}

// mentions is a memory of notes, and a rule to read those of one slot by, best
// first; nil for a memory that is asked otherwise.
type mentions struct {
	now   time.Time
	heard []Evidence
	all   []mention
	slots map[string][]mention
	rule  func([]mention) []string
	index *words.Index
}

func newMentions(rule func([]mention) []string) mentions {
	return mentions{slots: map[string][]mention{}, rule: rule, index: &words.Index{}}
}

func slotKey(subject, predicate string) string { return strings.ToLower(subject + "\x00" + predicate) }

func (m *mentions) At(now time.Time)             { m.now = now }
func (m *mentions) Hear(e Evidence)              { m.heard = append(m.heard, e) }
func (m *mentions) Propose(string, []byte) Filed { return Filed{Refused: true} }

func (m *mentions) Remember(n Note) Filed {
	f := mention{n.Value, n.Text, "", m.now}
	if n.Predicate != "" && n.Value != "" {
		f.slot = slotKey(n.Subject, n.Predicate)
		m.slots[f.slot] = append(m.slots[f.slot], f)
	}
	return Filed{IDs: []string{m.keep(f)}}
}

// keep makes a note be found by its words.
func (m *mentions) keep(f mention) string {
	m.all = append(m.all, f)
	id := "note_" + strconv.Itoa(len(m.all))
	m.index.Put(id, "note", f.text)
	return id
}

func (m *mentions) Current(subject, predicate string) []Item {
	return m.current(slotKey(subject, predicate))
}

func (m *mentions) current(slot string) (out []Item) {
	if ms := m.slots[slot]; len(ms) > 0 {
		for _, v := range m.rule(ms) {
			out = append(out, Item{Value: v, Text: v, Trust: Established})
		}
	}
	return out
}

func (m *mentions) Recall(question string) []Item { return m.recall(question, m.current) }

// recall leaves out what is no longer held, and takes an evidence's text for
// what it is a note of.
func (m *mentions) recall(question string, current func(slot string) []Item) (out []Item) {
	for _, h := range m.index.Search(question, nil, 50) {
		n, _ := strconv.Atoi(strings.TrimPrefix(h.ID, "note_"))
		f := m.all[n-1]
		if f.slot != "" && !slices.ContainsFunc(current(f.slot), func(i Item) bool { return i.Value == f.value }) {
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

func (m *mentions) History(string, string) ([]string, bool) { return nil, false }

func (m *mentions) copied() mentions {
	out := newMentions(m.rule)
	out.now, out.heard = m.now, slices.Clone(m.heard)
	for _, f := range m.all {
		out.keep(f)
	}
	for s, ms := range m.slots {
		out.slots[s] = slices.Clone(ms)
	}
	return out
}

func (m *mentions) Fork() Memory {
	out := m.copied()
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

// designed reads by the rules of the origin. Who states another value of a slot
// says that the one before is not so. A family of tools is one group, and so are
// all strangers together, which favours the design: it leaves groups to whoever
// calls it.
type designed struct {
	mentions
	claims   *origin.Memory
	accepted bool
}

func (m *designed) hours() time.Duration { return m.now.Sub(beginning) }

func (m *designed) Remember(n Note) Filed {
	f := m.mentions.Remember(n)
	if n.Predicate == "" || n.Value == "" {
		return f
	}
	slot, group := slotKey(n.Subject, n.Predicate), "agent"
	if e := behind(m.heard, n); e != nil {
		m.claims.Observe(e.ID)
		if group, _, _ = strings.Cut(e.Source, "/"); e.Level == LevelStranger {
			group = "strangers"
		}
	}
	if ms := m.slots[slot]; len(ms) > 1 && ms[len(ms)-2].value != n.Value {
		_, _ = m.claims.Contradict(slot+"\x00"+ms[len(ms)-2].value, group, m.hours()) // it was proposed
	}
	m.claims.Propose(slot+"\x00"+n.Value, origin.Low, m.hours())
	_, _ = m.claims.Support(slot+"\x00"+n.Value, group, m.hours())
	return f
}

func (m *designed) Current(subject, predicate string) []Item {
	return m.current(slotKey(subject, predicate))
}

func (m *designed) current(slot string) (out []Item) {
	for _, v := range addOnly(m.slots[slot]) {
		b, err := m.claims.Read(slot+"\x00"+v, m.hours())
		if err == nil && (b.Status == origin.Accepted || b.Status == origin.Provisional && !m.accepted) {
			out = append(out, Item{Value: v, Text: v, Trust: Established})
		}
	}
	return out
}

func (m *designed) Recall(question string) []Item { return m.recall(question, m.current) }

func (m *designed) History(subject, predicate string) (out []string, _ bool) {
	for _, f := range m.slots[slotKey(subject, predicate)] {
		if len(out) == 0 || out[len(out)-1] != f.value {
			out = append(out, f.value)
		}
	}
	return out, true
}

func (m *designed) Fork() Memory {
	return &designed{m.copied(), m.claims.Clone(), m.accepted}
}

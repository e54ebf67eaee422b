package memory

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/writ-project/writ/eval/measure"
)

// Recall is how well one system finds what was said.
type Recall struct {
	System string `json:"system"`
	Data   string `json:"data"`
	// Turns are in one memory, with Claims beside them.
	Turns  int `json:"turns"`
	Claims int `json:"claims"`

	Found
	// Worded are the questions that share a word with their evidence, other than
	// names and words of every day; without one, words find it by chance alone.
	Worded     *Found     `json:"with_a_word_in_common,omitempty"`
	Categories []Category `json:"categories,omitempty"`
}

// Found are the means over the questions, to six places. Sessions and turns are
// told to two memories: what is asked for is all turns that hold the answer, or
// all sessions with one.
type Found struct {
	Questions int     `json:"questions"`
	Session5  float64 `json:"session_recall_at_5"`
	Turn10    float64 `json:"turn_recall_at_10"`
	MRR       float64 `json:"turn_mrr"`
}

// Category is one kind of question.
type Category struct {
	Category int `json:"category"`
	Found
}

// found adds up, in millionths, so that the order of adding is no matter.
type found struct{ questions, session5, turn10, mrr int }

func (f found) mean() Found {
	of := func(n int) float64 { return measure.Quotient(n, f.questions*1_000_000) }
	return Found{f.questions, of(f.session5), of(f.turn10), of(f.mrr)}
}

// library is conversations to be asked about, of this package or of a file.
type library struct {
	turns     []turn // sessions are counted through
	sessions  int
	dates     []string // of sessions, nil where they have none
	questions []probe
	worded    []bool // by question; nil where nobody counts
}

// conversations joins some conversations of a seed.
func conversations(seed uint64, from, to int) *library {
	l := &library{}
	for i := from; i < to; i++ {
		c := newConversation(seed, i)
		common := c.common()
		for _, p := range c.questions {
			l.worded = append(l.worded, common(&p))
			for k := range p.gold {
				p.gold[k] += len(l.turns)
			}
			l.questions = append(l.questions, p)
		}
		for _, t := range c.turns {
			t.session += l.sessions
			l.turns = append(l.turns, t)
		}
		l.sessions += c.sessions
	}
	return l
}

// beside files n claims about who said something: each quotes a turn, and every
// other one names a value in it.
func (l *library) beside(m Memory, seed uint64, n int, at time.Time) {
	d := newDraw(seed, "claims-"+strconv.Itoa(n))
	for i := range n {
		at = at.Add(time.Minute)
		m.At(at)
		t := &l.turns[d.n(len(l.turns))]
		note := Note{Text: t.said(), Subject: t.speaker}
		if i%2 == 0 {
			ws := strings.Fields(t.text)
			note.Predicate, note.Value = "topic "+strconv.Itoa(i), ws[len(ws)-1]
		}
		m.Remember(note)
	}
}

// finds is what was found, by category, in so many memories and turns.
type finds struct {
	by              map[int]found
	memories, turns int
}

func (f *finds) add(category int, o found) {
	if f.by == nil {
		f.by = map[int]found{}
	}
	s := f.by[category]
	f.by[category] = found{s.questions + o.questions, s.session5 + o.session5, s.turn10 + o.turn10, s.mrr + o.mrr}
}

// ask tells a memory the turns and another the sessions, files n claims beside
// them, and asks both every question.
func (l *library) ask(s *System, seed uint64, n int, sum *finds) {
	byTurn, bySession := s.New(), s.New()
	at := beginning
	texts := make([]string, l.sessions)
	for i, date := range l.dates {
		texts[i] = date + "\n"
	}
	tell := func(m Memory, id, text string) {
		m.At(at)
		m.Hear(Evidence{id, "user", LevelUser, text, at})
		// A turn is remembered. A session is recorded whole, where there is a tool
		// for that: no sentence of it is meant.
		if m == byTurn || m.Propose("record_observation", object("observation_id", id, "raw_payload", text, "source_ref", id)).Refused {
			m.Remember(Note{Text: text})
		}
	}
	for i := range l.turns {
		at = at.Add(2 * time.Minute)
		tell(byTurn, turnID(i), l.turns[i].said())
		texts[l.turns[i].session] += l.turns[i].said() + "\n"
	}
	for i, text := range texts {
		at = at.Add(2 * time.Minute)
		tell(bySession, sessionID(i), text)
	}
	l.beside(byTurn, seed, n, at)
	l.beside(bySession, seed, n, at)
	sum.memories, sum.turns = sum.memories+1, sum.turns+len(l.turns)
	for i, q := range l.questions {
		var turns, sessions []string
		for _, g := range q.gold {
			turns = append(turns, turnID(g))
			if id := sessionID(l.turns[g].session); !slices.Contains(sessions, id) {
				sessions = append(sessions, id)
			}
		}
		f := found{questions: 1}
		f.turn10, f.mrr = ranked(byTurn.Recall(q.text), turns, 10)
		f.session5, _ = ranked(bySession.Recall(q.text), sessions, 5)
		sum.add(q.category, f)
		if q.category != wrongPerson { // which asks for what is not so
			sum.add(theHeadline, f)
			if l.worded != nil && l.worded[i] {
				sum.add(theWorded, f)
			}
		}
	}
}

// What is no category, in the same map.
const (
	theHeadline = 100
	theWorded   = 101
)

func turnID(i int) string    { return "ev" + strconv.Itoa(i+1) }
func sessionID(i int) string { return "ev" + strconv.Itoa(100_000+i) }

// ranked is the share of the gold that stands behind the first k items, and one by
// the place of the first, in millionths.
func ranked(items []Item, gold []string, k int) (recall, reciprocal int) {
	var hit []string
	for place, i := range items[:min(k, len(items))] {
		for _, g := range gold {
			if slices.Contains(i.Evidence, g) && !slices.Contains(hit, g) {
				if hit = append(hit, g); reciprocal == 0 {
					reciprocal = 1_000_000 / (place + 1)
				}
			}
		}
	}
	return len(hit) * 1_000_000 / len(gold), reciprocal
}

// row is what the report says of it.
func (f *finds) row(s *System, data string, claims int) Recall {
	r := Recall{System: s.ID, Data: data, Turns: f.turns / max(1, f.memories), Claims: claims, Found: f.by[theHeadline].mean()}
	if w := f.by[theWorded].mean(); w.Questions > 0 {
		r.Worded = &w
	}
	for c := severalSessions; c <= wrongPerson; c++ {
		r.Categories = append(r.Categories, Category{c, f.by[c].mean()})
	}
	return r
}

// common returns what reports whether a question shares a word of four letters or more with
// all its evidence, one that stands in fewer than one turn of twenty.
func (c *library) common() func(q *probe) bool {
	said := make([]map[string]bool, len(c.turns))
	often := map[string]int{}
	for i := range c.turns {
		said[i] = wordsOf(c.turns[i].said())
		for w := range said[i] {
			often[w]++
		}
	}
	return func(q *probe) bool {
		asked := wordsOf(q.text)
		for _, g := range q.gold {
			shared := false
			for w := range asked {
				shared = shared || said[g][w] && len(w) >= 4 && 20*often[w] < len(c.turns)
			}
			if !shared {
				return false
			}
		}
		return true
	}
}

func wordsOf(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		out[w] = true
	}
	return out
}

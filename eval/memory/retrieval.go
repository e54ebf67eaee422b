package memory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Conversations is how many M1 has of each seed.
const Conversations = 3

// Retrieval is M1. Headline are the categories 1 to 4; category 5 asks for what
// is not so and stands apart.
type Retrieval struct {
	Conversations int `json:"conversations"`
	AllSessions   int `json:"sessions"`
	Turns         int `json:"turns"`

	// Turn has each turn as one observation, Sessions each session.
	Turn     Level `json:"by_turn"`
	Sessions Level `json:"by_session"`
}

// Level is what was found with texts of one size.
type Level struct {
	Headline Found `json:"headline"`
	// Worded are the questions of the headline that share a word with their
	// evidence, other than names and words of every day; Unworded share none, and
	// an index of words can find their evidence by chance alone.
	Worded     Found      `json:"with_a_word_in_common"`
	Unworded   Found      `json:"without_a_word_in_common"`
	Categories []Category `json:"categories"`
}

// Category is one kind of question.
type Category struct {
	Category int    `json:"category"`
	Name     string `json:"name"`
	Found
}

// Found are the means over the questions, to six places. Any are the questions
// with at least one piece of evidence among the first k.
type Found struct {
	Questions int     `json:"questions"`
	Recall5   float64 `json:"recall_at_5"`
	Recall10  float64 `json:"recall_at_10"`
	Any5      Share   `json:"any_at_5"`
	Any10     Share   `json:"any_at_10"`
	MRR       float64 `json:"mrr"`
	NDCG10    float64 `json:"ndcg_at_10"`
}

// score adds up, in millionths, so that the order of adding is no matter.
type score struct{ questions, recall5, recall10, any5, any10, mrr, ndcg int }

// discounts are 1/log2(rank+1) in millionths.
var discounts = [10]int{1_000_000, 630_930, 500_000, 430_677, 386_853, 356_207, 333_333, 315_465, 301_030, 289_065}

var categoryNames = map[int]string{severalSessions: "several sessions", whenWasIt: "when was it", inferredFrom: "to be inferred", oneSession: "one session", wrongPerson: "asked of the wrong person"}

// The places in those of what is no category.
const (
	worded   = 101
	unworded = 102
)

// judge scores one ranking.
func judge(ranking, gold []string) (s score) {
	s.questions = 1
	hits5, hits10, dcg, ideal := 0, 0, 0, 0
	for i, id := range ranking {
		if !slices.Contains(gold, id) {
			continue
		}
		if s.mrr == 0 {
			s.mrr = 1_000_000 / (i + 1)
		}
		if i < 5 {
			hits5++
		}
		if i < 10 {
			hits10++
			dcg += discounts[i]
		}
	}
	for i := range min(len(gold), 10) {
		ideal += discounts[i]
	}
	s.recall5, s.recall10, s.ndcg = hits5*1_000_000/len(gold), hits10*1_000_000/len(gold), int(int64(dcg)*1_000_000/int64(ideal))
	s.any5, s.any10 = min(1, hits5), min(1, hits10)
	return s
}

func (s *score) add(o score) {
	s.questions, s.recall5, s.recall10, s.any5, s.any10 = s.questions+o.questions, s.recall5+o.recall5, s.recall10+o.recall10, s.any5+o.any5, s.any10+o.any10
	s.mrr, s.ndcg = s.mrr+o.mrr, s.ndcg+o.ndcg
}

func (s score) found() Found {
	mean := func(n int) float64 { return quotient(n, s.questions*1_000_000) }
	return Found{Questions: s.questions, Recall5: mean(s.recall5), Recall10: mean(s.recall10), Any5: share(s.any5, s.questions), Any10: share(s.any10, s.questions),
		MRR: mean(s.mrr), NDCG10: mean(s.ndcg)}
}

// retrieve asks the index every question of each seed's conversations.
func retrieve(m *Memory, seeds ...uint64) *Retrieval {
	out := &Retrieval{Conversations: len(seeds) * Conversations}
	turn, session := scores{}, scores{}
	for _, seed := range seeds {
		for i := range Conversations {
			out.ask(m, seed, i, turn, session)
		}
	}
	out.Turn, out.Sessions = turn.level(), session.level()
	return out
}

// scores are by category.
type scores map[int]*score

func (s scores) of(category int) *score {
	if s[category] == nil {
		s[category] = &score{}
	}
	return s[category]
}

func (s scores) level() (l Level) {
	var all score
	for c := severalSessions; c <= wrongPerson; c++ {
		if c != wrongPerson {
			all.add(*s.of(c))
		}
		l.Categories = append(l.Categories, Category{c, categoryNames[c], s.of(c).found()})
	}
	l.Headline, l.Worded, l.Unworded = all.found(), s.of(worded).found(), s.of(unworded).found()
	return l
}

// ask asks what one conversation is asked. Ids say nothing of what they name.
func (out *Retrieval) ask(m *Memory, seed uint64, i int, turn, session scores) {
	c := newConversation(seed, i)
	out.AllSessions += c.sessions
	out.Turns += len(c.turns)
	d := newDraw(seed, "ids-"+strconv.Itoa(i))
	turnIDs, sessionIDs := shuffled(d, len(c.turns)), shuffled(d, c.sessions)
	texts := make([]string, c.sessions)
	byTurn, bySession := m.Index(), m.Index()
	for k := range c.turns {
		t := &c.turns[k]
		byTurn.Put(turnIDs[k], "observation", t.said())
		texts[t.session] += t.said() + "\n"
	}
	for k, text := range texts {
		bySession.Put(sessionIDs[k], "observation", text)
	}
	for _, q := range c.probes {
		var gold, goldSessions []string
		for _, g := range q.gold {
			gold = append(gold, turnIDs[g])
			if s := sessionIDs[c.turns[g].session]; !slices.Contains(goldSessions, s) {
				goldSessions = append(goldSessions, s)
			}
		}
		for _, l := range []struct {
			into scores
			x    Index
			gold []string
		}{{turn, byTurn, gold}, {session, bySession, goldSessions}} {
			into := []int{q.category}
			if q.category != wrongPerson {
				into = append(into, map[bool]int{true: worded, false: unworded}[c.common(&q)])
			}
			s := judge(ranked(l.x, q.text), l.gold)
			for _, k := range into {
				l.into.of(k).add(s)
			}
		}
	}
}

// common reports whether a question shares a word of four letters or more with
// all its evidence, one that stands in fewer than one turn of twenty.
func (c *conversation) common(q *probe) bool {
	said := make([]map[string]bool, len(c.turns))
	often := map[string]int{}
	for i := range c.turns {
		said[i] = wordsOf(c.turns[i].said())
		for w := range said[i] {
			often[w]++
		}
	}
	for _, g := range q.gold {
		shared := false
		for w := range wordsOf(q.text) {
			shared = shared || said[g][w] && len(w) >= 4 && 20*often[w] < len(c.turns)
		}
		if !shared {
			return false
		}
	}
	return true
}

func wordsOf(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		out[w] = true
	}
	return out
}

// shuffled are n ids in no order.
func shuffled(d *draw, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("obs_%04d", i+1)
	}
	return some(d, n, ids)
}

// mostRanked is how far down a ranking is looked at.
const mostRanked = 400

func ranked(x Index, question string) (ids []string) {
	for _, h := range x.Search(question, nil, mostRanked) {
		ids = append(ids, h.ID)
	}
	return ids
}

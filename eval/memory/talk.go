package memory

import (
	"strconv"
	"strings"
)

// turn is one thing said in a conversation.
type turn struct {
	speaker string
	text    string
	session int
}

func (t *turn) said() string { return t.speaker + ": " + t.text + "." }

// probe is one question with where its evidence stands.
type probe struct {
	category int
	text     string
	gold     []int // turns
}

// The categories, by the numbers that are usual for such data.
const (
	severalSessions = 1
	whenWasIt       = 2
	inferredFrom    = 3
	oneSession      = 4
	wrongPerson     = 5 // apart: nothing is so that is asked
)

const sessionsOfOne = 24

// newConversation draws a conversation of two people over several sessions: who
// tells what in which, with turns about the same things beside it that are no
// evidence, and small talk.
func newConversation(seed uint64, i int) *library {
	d := newDraw(seed, "conversation-"+strconv.Itoa(i))
	names := list("first_names")
	// Those of one seed have different names, as far as there are: they may stand
	// in one memory.
	who := some(newDraw(seed, "who"), len(names), names)[2*i%len(names):][:2]
	type event struct {
		person int
		text   string
	}
	said := make([][]event, sessionsOfOne)
	type told struct{ session, at int }
	where := map[[2]int][]told{} // person and topic, -1 - h for a heap
	add := func(person, topic int, text string) {
		s := d.n(sessionsOfOne)
		where[[2]int{person, topic}] = append(where[[2]int{person, topic}], told{s, len(said[s])})
		said[s] = append(said[s], event{person, text})
	}
	fill := func(text, x string, person int) string {
		return strings.NewReplacer("{x}", x, "{n}", who[person]).Replace(text)
	}
	for t := range data.Topics {
		for p := range who {
			if d.in(65) {
				add(p, t, fill(pick(d, data.Topics[t].Told), pick(d, data.Topics[t].Details), p))
			}
		}
	}
	for h := range data.Heaps {
		for p := range who {
			for _, x := range some(d, 2+d.n(2), data.Heaps[h].Details) {
				add(p, -1-h, fill(pick(d, data.Heaps[h].Told), x, p))
			}
		}
	}
	c := &library{sessions: sessionsOfOne}
	at := map[told]int{} // the turn something was told in
	for s, events := range said {
		speaker := d.n(2)
		chat := func() {
			text := oneOf(d, "small_talk")
			if d.in(35) {
				text = pick(d, data.Topics[d.n(len(data.Topics))].Beside)
			}
			c.turns = append(c.turns, turn{who[speaker], text, s})
			speaker = 1 - speaker
		}
		chat()
		for k, e := range events {
			for range 1 + d.n(4) {
				chat()
			}
			speaker = e.person
			at[told{s, k}] = len(c.turns)
			c.turns = append(c.turns, turn{who[speaker], e.text, s})
			speaker = 1 - speaker
		}
		for range 2 + d.n(5) {
			chat()
		}
	}
	gold := func(ts []told) (out []int) {
		for _, t := range ts {
			out = append(out, at[t])
		}
		return out
	}
	for t := range data.Topics {
		for p := range who {
			mine, other := where[[2]int{p, t}], where[[2]int{1 - p, t}]
			switch {
			case len(mine) > 0:
				q := probe{category: oneSession, text: data.Topics[t].Asked, gold: gold(mine)}
				switch k := d.n(100); {
				case k < 30:
					q.category, q.text = whenWasIt, data.Topics[t].When
				case k < 42:
					q.category, q.text = inferredFrom, data.Topics[t].Hinted
				}
				q.text = fill(q.text, "", p)
				c.questions = append(c.questions, q)
			case len(other) > 0:
				c.questions = append(c.questions, probe{wrongPerson, fill(data.Topics[t].Asked, "", p), gold(other)})
			}
		}
	}
	for h := range data.Heaps {
		for p := range who {
			c.questions = append(c.questions, probe{severalSessions, fill(data.Heaps[h].Asked, "", p), gold(where[[2]int{p, -1 - h}])})
		}
	}
	return c
}

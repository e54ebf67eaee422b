package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
)

// plainWord is one word on a question, as the plain model reads it.
type plainWord struct {
	claim, value string
	level        int
	at           position
	side         []string
	also         bool
}

// plainly is what belief.go says in its comment, the slow way: the words on a
// question in their order, and one loop. It gives the status of each claim that
// has a word of level 2, with its rivals.
func plainly(s *State, sl *Slot, t upTo) map[string]string {
	var heard []plainWord
	for _, id := range s.edges.keys() {
		ed := s.edges.get(id)
		p := s.propositions.get(ed.To)
		gone := ed.ClosedAt != 0 && t.has(ed.ResolvedBy)
		if ed.Type != Supports || p.Slot != sl.ID || s.gone(p, t) || gone || !t.has(ed.Decision) || !t.has(p.ID) || ed.Level < 2 {
			continue
		}
		w := plainWord{claim: p.ID, value: cmp.Or(s.valueKey(p), p.ID), level: ed.Level, side: ed.Side, also: ed.Also}
		if o := s.observations.get(ed.From); o != nil {
			w.at = o.positionAt(ed.At)
		} else {
			w.at.order, w.at.after = ed.Order, s.decided.get(ed.From).N
		}
		heard = append(heard, w)
	}
	slices.SortStableFunc(heard, func(a, b plainWord) int { return cmp.Or(a.at.compare(b.at), compareID(a.claim, b.claim)) })

	// What stands: each value with what was said of it since it stands.
	stands := map[string][]plainWord{}
	type pair struct{ a, b string }
	disputed := map[pair]bool{}
	added := map[pair]bool{} // the first to the second
	level := func(v string) (l int) {
		for _, w := range stands[v] {
			l = max(l, w.level)
		}
		return l
	}
	together := func(a, b plainWord) bool { // in one list, or one sentence
		return a.at.evidence != "" && a.at.evidence == b.at.evidence && (slices.Contains(a.side, b.claim) || slices.Contains(b.side, a.claim))
	}
	for _, w := range heard {
		for p := range added {
			if p.a == w.value {
				delete(added, p)
			}
		}
		for v := range stands {
			if v == w.value {
				continue
			}
			last := stands[v][len(stands[v])-1]
			beside := slices.ContainsFunc(stands[v], func(o plainWord) bool { return o.at == last.at && together(w, o) })
			delete(disputed, pair{v, w.value}) // it is said once more
			delete(disputed, pair{w.value, v})
			if w.also {
				added[pair{w.value, v}] = true
			}
			switch {
			case beside, w.also, added[pair{v, w.value}]:
			case w.level >= level(v) && w.at.compare(last.at) > 0:
				delete(stands, v)
				for p := range added {
					if p.a == v || p.b == v {
						delete(added, p)
					}
				}
				for p := range disputed {
					if p.a == v || p.b == v {
						delete(disputed, p)
					}
				}
			default:
				disputed[pair{w.value, v}] = true
			}
		}
		stands[w.value] = append(stands[w.value], w)
	}
	out := map[string]string{}
	for _, w := range heard {
		switch {
		case !slices.ContainsFunc(stands[w.value], func(o plainWord) bool { return o.claim == w.claim }):
			out[w.claim] = string(Replaced)
		default:
			var rivals []string
			for p := range disputed {
				for _, v := range [][2]string{{p.a, p.b}, {p.b, p.a}} {
					if v[0] == w.value {
						for _, o := range stands[v[1]] {
							rivals = addOnce(rivals, o.claim)
						}
					}
				}
			}
			slices.SortFunc(rivals, compareID)
			out[w.claim] = strings.TrimSpace(map[bool]string{true: string(Established), false: string(Contested)}[len(rivals) == 0] + " " + strings.Join(rivals, " "))
		}
	}
	return out
}

// Of any history the standings are those of the plain model, now and as of any
// record, and what has no word of level 2 is neither established nor contested.
func TestPlainModel(t *testing.T) {
	met, histories := map[Status]int{}, 0
	rapid.Check(t, func(rt *rapid.T) {
		histories++
		w := lived(rt, t, 60)
		for _, at := range []upTo{0, upTo(rapid.IntRange(1, int(w.s.head)).Draw(rt, "as of"))} {
			for _, id := range w.s.slots.keys() {
				sl := w.s.slots.get(id)
				if w.s.many(sl) {
					continue
				}
				want := plainly(w.s, sl, at)
				heard := w.s.heard(sl, at)
				for claim := range heard.alone {
					st := heard.standing(claim)
					met[st.Status]++
					rivals := slices.Clone(st.Rivals)
					slices.SortFunc(rivals, compareID)
					got := strings.TrimSpace(string(st.Status) + " " + strings.Join(rivals, " "))
					switch {
					case st.Status == Gone && w.s.propositions.get(claim).Gone:
					case want[claim] == "" && (st.Level > 1 || st.Status == Established || st.Status == Contested):
						rt.Fatalf("%s has no word of level 2, and is %+v", claim, st)
					case want[claim] != "" && got != want[claim]:
						rt.Fatalf("as of %d %s is %s, and plainly %s\n%s", at, claim, got, want[claim], tables(t, w.s))
					case st.Status == Replaced && w.s.propositions.get(st.ReplacedBy) == nil:
						rt.Fatalf("%s is replaced by %q", claim, st.ReplacedBy)
					}
				}
			}
		}
	})
	for _, st := range statuses {
		if met[st] == 0 && histories >= 90 { // fewer may miss one by chance
			t.Errorf("no claim of any history was %s", st)
		}
	}
}

// Statements about one question come to the same, in whatever order and from
// whichever sessions agents record them: what was seen first is older, and nobody
// gains a standing by it.
func TestRecordedInAnyOrder(t *testing.T) {
	type heard struct {
		label   writ.Label
		session string
		said    string
		values  []string
	}
	rapid.Check(t, func(rt *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) heard {
			h := heard{session: drawn(rt, "session", "s_a", "s_b", "s_c"), label: drawn(rt, "label", writ.User, writ.System, writ.Operator, writ.External), values: []string{drawn(rt, "value", "Bern", "Basel", "Chur")}}
			form := drawn(rt, "said", "Alice's city is %s.", `{"name":"Alice","city":"%s"}`, `{"name":"Alice","city":["%s","%s"]}`,
				`[{"name":"Alice","city":"%s"},{"name":"Alice","city":"%s"}]`, "Alice's city is %s and %s.")
			if strings.Count(form, "%s") == 2 {
				h.values = append(h.values, drawn(rt, "other", "Bern", "Basel", "Chur"))
				h.said = fmt.Sprintf(form, h.values[0], h.values[1])
			} else {
				h.said = fmt.Sprintf(form, h.values[0])
			}
			return h
		}), 2, 5).Draw(rt, "said")
		type word struct {
			at    int // in what was seen
			value string
		}
		var words []word
		for i, h := range all {
			for _, v := range h.values {
				words = append(words, word{i, v})
			}
		}
		play := func(order []word) string {
			x := newScript(t)
			x.begin()
			for _, w := range order {
				h := all[w.at]
				c := x.c
				c.Captured = []Captured{{Ref: "ev", Evidence: fmt.Sprintf("%s/ev%d", h.session, w.at+1), Seen: uint64(w.at + 1), Label: h.label, Source: "a/x", Verbatim: true, Whole: true, Text: h.said, Value: []byte(mustJSON(t, w.value))}}
				d := Handle(x.s, c, writ.Proposal{ToolName: ToolRemember, Payload: []byte(mustJSON(t, map[string]any{"text": h.said, "about": "Alice: city"}))})
				if d.Outcome.Status != writ.Accepted {
					rt.Fatalf("%+v", d.Outcome.Rejection)
				}
				x.apply(d)
			}
			var out []string
			for _, id := range x.s.propositions.keys() {
				st := x.s.standing(id, 0)
				var rivals []string
				for _, r := range st.Rivals {
					rivals = append(rivals, x.s.propositions.get(r).Literal)
				}
				slices.Sort(rivals)
				out = append(out, fmt.Sprint(x.s.propositions.get(id).Literal, st.Status, st.Level, rivals))
			}
			slices.Sort(out)
			return strings.Join(out, "\n")
		}
		if a, b := play(words), play(rapid.Permutation(words).Draw(rt, "order")); a != b {
			rt.Fatalf("%s\nand in another order\n%s", a, b)
		}
	})
}

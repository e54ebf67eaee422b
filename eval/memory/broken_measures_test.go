package memory

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/words"
	"github.com/writ-project/writ/memory"
)

// views are the values of a slot as they are, whatever their state.
func views(r *memory.Reader, slot string) (out []memory.View) {
	moments, _ := r.Timeline(slot, 0, 0)
	for _, m := range moments {
		if m.What == "value" {
			v, _ := r.View(m.ID)
			v.Usable, v.Abstention = true, memory.NoAbstention
			out = append(out, v)
		}
	}
	return out
}

// backwards is an index that puts the worst first.
type backwards struct{ Index }

func (x backwards) Search(query string, kinds []string, limit int) []words.Hit {
	hits := x.Index.Search(query, kinds, limit)
	slices.Reverse(hits)
	return hits
}

// TestBrokenMemory: each memory that is broken on purpose is found out, by the gates
// that are there for it. The whole one meets them.
func TestBrokenMemory(t *testing.T) {
	run := func(t *testing.T, change func(*Memory), p func(string) (*memory.Policy, bool)) map[string]bool {
		m := Product()
		if change != nil {
			change(&m)
		}
		met := map[string]bool{}
		for _, g := range measured(t, Options{Memory: m, Seeds: []uint64{7}, Chains: 4, Policy: p, narrow: true}).Gates {
			met[g.ID] = g.Met
		}
		return met
	}
	whole := run(t, nil, memory.Builtin)
	for _, c := range []struct {
		name   string
		change func(*Memory)
		flag   string
		missed []string
	}{
		{"not grounded", nil, "grounded", []string{"flip_strict_A8", "flip_tool_may_A8"}},
		{"strangers make things usable", nil, "low_trust", []string{"flip_strict_A1", "flip_strict_A3"}},
		{"anybody may contradict", nil, "eligibility", []string{"lost_strict_A6", "lost_tool_may_A6"}},
		{"accepts everything", func(m *Memory) {
			m.Answer = func(r *memory.Reader, slot string) memory.Answer {
				return memory.Answer{Slot: slot, Values: views(r, slot)}
			}
		}, "", []string{"flip_strict_A1", "flip_strict_A2", "flip_strict_A3", "flip_strict_A4", "flip_strict_A5", "flip_strict_A8", "current_tool_may"}},
		{"newest wins", func(m *Memory) {
			m.Answer = func(r *memory.Reader, slot string) memory.Answer {
				vs := views(r, slot)
				return memory.Answer{Slot: slot, Values: vs[max(0, len(vs)-1):]}
			}
		}, "", []string{"flip_strict_A1", "flip_strict_A2", "flip_strict_A3", "flip_strict_A4", "flip_strict_A5", "flip_strict_A8"}},
		{"everybody is an operator", func(m *Memory) {
			m.Handle = func(s *memory.State, c memory.Context, p writ.Proposal) memory.Decision {
				c.Captured = slices.Clone(c.Captured)
				for i := range c.Captured {
					c.Captured[i].Label, c.Captured[i].Class = writ.Operator, ""
				}
				return memory.Handle(s, c, p)
			}
		}, "", []string{"flip_strict_A1", "flip_strict_A2", "flip_strict_A3", "flip_strict_A5", "lost_strict_A6"}},
		{"the search alone gives what is tentative", func(m *Memory) {
			m.Search = func(r *memory.Reader, query string, q memory.Query) memory.Results {
				q.MinState = memory.Tentative
				res := r.Search(query, q)
				for _, f := range res.Items {
					if f.Proposition != nil {
						f.Proposition.Usable = true
					}
				}
				return res
			}
		}, "", []string{"flip_strict_A1"}},
		{"answers nothing", func(m *Memory) {
			m.Answer = func(_ *memory.Reader, slot string) memory.Answer { return memory.Answer{Slot: slot} }
			m.Search = func(*memory.Reader, string, memory.Query) memory.Results { return memory.Results{} }
		}, "", []string{"current_strict", "current_tool_may"}},
		{"refuses everything", func(m *Memory) {
			m.Handle = func(s *memory.State, c memory.Context, p writ.Proposal) memory.Decision {
				p.ToolName = "none"
				return memory.Handle(s, c, p)
			}
		}, "", []string{"current_strict", "current_tool_may"}},
		{"clings to the first", func(m *Memory) {
			m.Answer = func(r *memory.Reader, slot string) memory.Answer {
				vs := views(r, slot)
				return memory.Answer{Slot: slot, Values: vs[:min(1, len(vs))]}
			}
		}, "", []string{"current_strict", "current_tool_may"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := memory.Builtin
			if c.flag != "" {
				p = edited(t, "flags."+c.flag+" false")
			}
			met := run(t, c.change, p)
			for _, g := range c.missed {
				if !whole[g] {
					t.Errorf("%s: the whole memory does not meet it", g)
				}
				if ok, there := met[g]; ok || !there {
					t.Errorf("%s is not missed", g)
				}
			}
		})
	}
}

// TestBrokenIndex: an index that ranks the wrong way round finds less than one
// that draws lots.
func TestBrokenIndex(t *testing.T) {
	m := Product()
	good := retrieve(&m, 7)
	m.Index = func() Index { return backwards{&words.Index{}} }
	bad := retrieve(&m, 7)
	lots := 5.0 / sessionsOfOne
	if b := bad.Sessions.Headline.Recall5; b >= lots {
		t.Errorf("recall@5 by session is %v, by lot it is %v", b, lots)
	}
	for _, f := range []func(*Retrieval) float64{
		func(r *Retrieval) float64 { return r.Sessions.Headline.Recall5 }, func(r *Retrieval) float64 { return r.Sessions.Headline.MRR },
		func(r *Retrieval) float64 { return r.Turn.Headline.NDCG10 }, func(r *Retrieval) float64 { return r.Turn.Worded.Recall10 },
	} {
		if f(good) <= f(bad) {
			t.Errorf("the right way round %v, the wrong way %v", f(good), f(bad))
		}
	}
}

// TestBrokenLinking: a memory that takes everybody of one first letter for one
// makes wrong links, one that links nobody leaves every match.
func TestBrokenLinking(t *testing.T) {
	renamed := func(f func(name string) string) Memory {
		m := Product()
		m.Handle = func(s *memory.State, c memory.Context, p writ.Proposal) memory.Decision {
			if p.ToolName == memory.ToolEntity {
				name := string(p.Payload[bytes.Index(p.Payload, []byte(`"name":"`))+8:])
				name = name[:strings.IndexByte(name, '"')]
				p.Payload = []byte(strings.Replace(string(p.Payload), `"name":"`+name+`"`, `"name":"`+f(name)+`"`, 1))
			}
			return memory.Handle(s, c, p)
		}
		return m
	}
	v1, _ := memory.Builtin("v1")
	measure := func(m Memory) *Linking { return link(&m, v1, 7) }
	whole := measure(Product())
	if whole.FalseMerge.Count != whole.OfNamesakes || whole.Links == 0 || whole.Refused > 0 {
		t.Errorf("the whole memory: %+v", whole)
	}
	one := measure(renamed(func(n string) string { return strings.ToUpper(n[:1]) }))
	if one.FalseMerge.Rate < 0.5 {
		t.Errorf("everybody of one letter is one: %+v", one.FalseMerge)
	}
	n := 0
	none := measure(renamed(func(string) string { n++; return strings.Repeat("x", n%200+1) + strings.Repeat("y", n/200) }))
	if none.Links != 0 || none.Unlinked.Count != none.Matches {
		t.Errorf("nobody is linked: %+v", none)
	}
}

// A memory that writes what does not fold is an error, not a figure.
func TestUnfit(t *testing.T) {
	m := Product()
	m.Handle = func(s *memory.State, c memory.Context, p writ.Proposal) memory.Decision {
		d := memory.Handle(s, c, p)
		e := *d.Event
		e.N += 2
		d.Event = &e
		return d
	}
	if _, err := Run(Options{Memory: m, Seeds: []uint64{7}, Chains: 2, Only: Measured, narrow: true}); err == nil || !strings.Contains(err.Error(), "does not fit") {
		t.Errorf("got %v", err)
	}
	for _, seeds := range [][]uint64{{}, {1, 1}} {
		if _, err := Run(Options{Memory: Product(), Seeds: seeds, Chains: 1, Only: Measured, narrow: true}); err == nil {
			t.Errorf("seeds %v: no error", seeds)
		}
	}
}

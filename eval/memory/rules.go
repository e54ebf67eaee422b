package memory

import (
	"slices"
	"time"

	"github.com/writ-project/writ/memory"
)

// Rule is one way to decide what is believed.
type Rule struct {
	ID string
	// Name and Of are for people: what it does, and which memories come down to
	// it by what stands in their code.
	Name, Of string
	// Emulated says that it is such a decision rule, rewritten here, and no run
	// of a product.
	Emulated bool
	begin    func(*chain) believer
}

// The two rows the targets are for: the product's own policy, and that with
// flags.tool_may_supersede_user on.
const (
	Strict  = "v1_strict"
	ToolMay = "v1_tool_may"
)

// The rules that are emulated.
var emulated = []Rule{
	{ID: "newest_wins", Name: "newest wins", Of: "hard updates, functional facts, key-value stores", Emulated: true, begin: rule(newestWins)},
	{ID: "add_only", Name: "add only, newest first", Of: "append-only extraction", Emulated: true, begin: rule(addOnly)},
	{ID: "mention_count", Name: "mention count", Of: "most often said wins", Emulated: true, begin: rule(mentionCount)},
}

// Rules are the rules of the table: those emulated, the design this memory grew
// out of under two ways of heard it, and the product's own with its knob off
// and on. The policies are the built-in ones.
func Rules(m *Memory, v01q, v1, knob *memory.Policy) []Rule {
	own := func(p *memory.Policy, accepted bool) func(*chain) believer {
		return func(c *chain) believer { return newBelieving(m, p, accepted, c) }
	}
	return append(slices.Clone(emulated),
		Rule{ID: "v01q_provisional", Name: "v01q, provisional readable", Of: "the product under v01q", begin: own(v01q, false)},
		Rule{ID: "v01q_accepted", Name: "v01q, accepted only", Of: "the product under v01q", begin: own(v01q, true)},
		Rule{ID: Strict, Name: "v1 strict", Of: "the product", begin: own(v1, false)},
		Rule{ID: ToolMay, Name: "v1, tool may supersede user", Of: "the product, one flag on", begin: own(knob, false)},
	)
}

// mention is one time a value was said.
type mention struct {
	value string
	at    time.Time // as the source claims, or when it was said
	of    string    // the observation, where that is known
	size  int       // of what is held of it, in bytes
}

// mentions is a memory of mentions and a rule to read them by. It knows nothing of
// who said what, and nothing can be denied: the rules it stands for have no
// notion of either.
type mentions struct {
	ms   []mention
	rule func([]mention) []string
}

func rule(f func([]mention) []string) func(*chain) believer {
	return func(*chain) believer { return &mentions{rule: f} }
}

// claim counts one mention for each thing that was newly said for a value, and
// one for a claim that only cites what was there.
func (t *mentions) claim(v string, ss []said) {
	n := len(t.ms)
	for _, s := range ss {
		if s.again {
			continue
		}
		at := s.at
		if !s.claims.IsZero() {
			at = s.claims
		}
		t.ms = append(t.ms, mention{value: v, at: at})
	}
	if len(t.ms) == n {
		t.ms = append(t.ms, mention{value: v, at: ss[len(ss)-1].at})
	}
}

func (t *mentions) deny(string, []said) {}

func (t *mentions) read(time.Time) heard {
	if len(t.ms) == 0 {
		return heard{}
	}
	vs := t.rule(t.ms)
	return heard{vs, vs}
}

func (t *mentions) answer(at time.Time) string { return t.read(at).answer() }

func (t *mentions) history(time.Time) []string { return nil }

func (t *mentions) fork() believer { return &mentions{slices.Clone(t.ms), t.rule} }

func (t *mentions) refused() int { return 0 }

// newest are the mentions, the newest first; of one time, what came last.
func newest(ms []mention) []mention {
	ms = slices.Clone(ms)
	slices.Reverse(ms)
	slices.SortStableFunc(ms, func(a, b mention) int { return b.at.Compare(a.at) })
	return ms
}

func newestWins(ms []mention) []string { return []string{newest(ms)[0].value} }

func addOnly(ms []mention) (out []string) {
	for _, m := range newest(ms) {
		if !slices.Contains(out, m.value) {
			out = append(out, m.value)
		}
	}
	return out
}

// mentionCount is the value said most often; of two said as often, the one that
// was known first.
func mentionCount(ms []mention) []string { return []string{most(ms, false)} }

// most is the value said most often; of those said as often, the one that was
// said last, or the one that was known first.
func most(ms []mention, last bool) (best string) {
	count := map[string]int{}
	for _, m := range ms {
		count[m.value]++
	}
	for _, m := range ms {
		if n := count[m.value]; n > count[best] || last && n == count[best] {
			best = m.value
		}
	}
	return best
}

package provenance

import (
	"slices"
	"strings"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// call is what the arguments of the producing call do to its leaves.
type call struct {
	lowest  writ.Label // of all arguments that lower everything
	decides writ.Label // of target, selector, amount and secret leaves
	asked   bool       // something but constants was asked for
	pointed bool       // with what is worth less than system and may name one thing (Vague)
	narrow  map[string]writ.Label
	fresh   map[string]bool       // paths of names that the agent made up
	own     map[string]writ.Label // folded texts of the arguments that are wide
	system  map[string]bool       // those of them of which one is worth system
	said    texts                 // those of them the model said
	low     texts                 // those of them that are worth less than system
}

func callOf(args []Arg) call {
	c := call{lowest: writ.Operator, decides: writ.Operator, own: make(map[string]writ.Label, len(args)),
		narrow: map[string]writ.Label{}, fresh: map[string]bool{}, system: map[string]bool{}}
	for i := range args {
		a := &args[i]
		if p, _, why := Canonical(Path, a.Value); a.Fresh && why == "" {
			c.fresh[p] = true
		}
		c.asked = c.asked || !a.Fixed && !empty(a.Value)
		if a.Decides {
			c.decides = min(c.decides, a.Label)
		}
		if !a.Narrow {
			c.add(a)
			continue
		}
		for _, e := range spellings(a.Type, a.Value) {
			atMost(c.narrow, e, a.Label)
		}
	}
	if len(c.said.tail) >= 4096 {
		c.said.seal() // once, however many they are
	}
	return c
}

// add takes in an argument that lowers everything.
func (c *call) add(a *Arg) {
	c.lowest = min(c.lowest, a.Label)
	c.pointed = c.pointed || a.Label < writ.System && !a.Vague
	for _, t := range readings(a.Type, a.Value) {
		atMost(c.own, t, a.Label)
		if a.Label == writ.System {
			c.system[t] = true
		}
		if utf8.RuneCountInString(t) < part {
			continue
		}
		if a.Label == writ.Model {
			c.said.hold(t)
		}
		if a.Label < writ.System {
			c.low.add(t)
		}
	}
}

// atMost has a key hold a label, or the lower one that it has.
func atMost[K comparable](labels map[K]writ.Label, k K, label writ.Label) {
	if old, ok := labels[k]; !ok || label < old {
		labels[k] = label
	}
}

// spellings returns how a narrow value may come back: as the same literal, and as
// the same text or number in another case or kind, with or without its sign.
func spellings(t Type, v strictjson.Value) []string {
	e, _ := exact(v)
	out := []string{"\x00" + e}
	for _, s := range readings(t, v) {
		out = append(out, strings.TrimPrefix(s, "-"))
	}
	if s, ok := v.Text(); ok && len(out) > 1 {
		if d, ok := decimal(s); ok {
			out = append(out, strings.TrimPrefix(d, "-"))
		}
	}
	return out
}

// repeats says what a leaf that repeats an argument of its own call is worth. An
// argument that something vouches for is no more than that: what is no member
// of a collection does not become one by being answered (P01).
func (l *Ledger) repeats(c *call, leaf *Leaf) writ.Label {
	at := writ.Operator
	for _, t := range readings(leaf.Type, leaf.Value) {
		label, ok := c.own[t]
		if !ok {
			continue
		}
		if c.system[t] && leaf.Rule != nil && leaf.Rule.Collection != "" && !l.member(leaf, 0) {
			label = min(label, writ.External)
		}
		at = min(at, label)
	}
	return at
}

// saidIn reports whether a leaf stands in something the model said in its own
// call.
func (c *call) saidIn(leaf *Leaf) bool {
	if c.said.none() {
		return false
	}
	return slices.ContainsFunc(long(readings(leaf.Type, leaf.Value)), c.said.contain)
}

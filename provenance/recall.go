package provenance

import (
	"slices"
	"strconv"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// Recalled names a leaf of what a memory returned that stands verbatim in an
// observation it captured, and what that observation was stored with (R35).
type Recalled struct {
	Pointer    string     `json:"pointer"` // into the result object
	Label      writ.Label `json:"label"`
	Type       Type       `json:"type,omitempty"`
	Collection string     `json:"collection,omitempty"`
	// From is the evidence the observation captured, s_…/ev12. It is for the
	// record; nothing is decided on it.
	From string `json:"from,omitempty"`
}

// Recall takes a memory's result object apart. A leaf that is recalled has the
// label it was stored with, and an argument that asked for it does not lower
// it; every other leaf is a model's, wherever it stands. A name that fits no
// leaf is passed over, and a value that is not of its type is a model's.
func Recall(result strictjson.Value, stored []Recalled) []Leaf {
	at := make(map[string]*OutputRule, len(stored))
	for _, s := range stored {
		r := &OutputRule{At: Pattern{Source: s.Pointer}, Label: s.Label, Type: s.Type, Collection: s.Collection, Authoritative: true}
		if o := at[s.Pointer]; o != nil && o.Label <= r.Label {
			continue // named twice: the lower label counts
		}
		at[s.Pointer] = r
	}
	modelled := &OutputRule{Label: writ.Model}
	var out []Leaf
	var all steps
	add := func(_ []string, where *step, v strictjson.Value, in *record) {
		l := Leaf{Value: v, at: where, record: in, alone: true, Rule: modelled}
		if r := at[strictjson.Pointer(where.tokens())]; r != nil {
			if _, _, why := Canonical(r.Type, v); why == "" {
				l.Rule, l.Type = r, r.Type
			}
		}
		out = append(out, l)
	}
	for name, v := range result.Members() {
		switch name {
		case "_meta", "isError", "resultType":
			continue
		}
		top := all.from(nil, name)
		if name != "content" {
			w := walker{leaf: add, steps: &all}
			w.walk(v, top)
			continue
		}
		for i, b := range v.Elements() {
			if text := b.Get("text"); text.Exists() {
				add(nil, all.from(all.from(top, strconv.Itoa(i)), "text"), text, nil)
			}
		}
	}
	return out
}

// tokens are the reference tokens from the result object to here.
func (at *step) tokens() (out []string) {
	for ; at != nil; at = at.parent {
		out = append(out, at.token)
	}
	slices.Reverse(out)
	return out
}

package memory

import (
	"fmt"
	"testing"

	writ "github.com/writ-project/writ"
)

// Three statements about one question come to the same, in whatever order an agent
// records them: what was seen first is older, and nobody gains a standing by it.
func TestRecordedInAnyOrder(t *testing.T) {
	type statement struct {
		label  writ.Label
		source string
		value  string
	}
	speakers := map[string][2]any{
		"the user":     {writ.User, "user:alice"},
		"a tool":       {writ.System, "a/x"},
		"another tool": {writ.System, "b/y"},
		"an operator":  {writ.Operator, "console/note"},
		"a page":       {writ.External, "web/z"},
	}
	for first, a := range speakers {
		for second, b := range speakers {
			for third, d := range speakers {
				said := []statement{{a[0].(writ.Label), a[1].(string), "Bern"}, {b[0].(writ.Label), b[1].(string), "Basel"}, {d[0].(writ.Label), d[1].(string), "Chur"}}
				play := func(order ...int) string {
					x := newScript(t)
					x.begin()
					x.line(`operator predicate {"name":"city","single":true}`)
					x.line(`seen e user user Alice`)
					x.line(`record_observation {"observation_id":"e","raw_payload":"Alice"}`)
					x.line(`create_or_link_entity_candidate {"name":"Alice","entity_type":"person","observation_ids":["e"]}`)
					for step, i := range order {
						s := said[i]
						c := x.c
						c.Now = x.zero.Add(hours(float64(step + 1)))
						c.Captured = []Captured{{Ref: "ev", Evidence: fmt.Sprintf("s_city/ev%d", i+1), Label: s.label, Source: s.source, Verbatim: true, Whole: true}}
						x.apply(Handle(x.s, c, writ.Proposal{ToolName: ToolRecordObservation,
							Payload: []byte(fmt.Sprintf(`{"observation_id":"o%d","raw_payload":%q,"source_ref":"ev"}`, i, "She lives in "+s.value))}))
						c.Captured = nil
						x.apply(Handle(x.s, c, writ.Proposal{ToolName: ToolPropose, Payload: []byte(fmt.Sprintf(
							`{"text":%q,"structured_form":{"subject":%q,"predicate":"city","object":{"literal":%q}},"observation_ids":["o%d"],"about":[%q]}`,
							"She lives in "+s.value, x.made["ent"][0], s.value, i, x.made["ent"][0]))}))
					}
					out := ""
					for _, v := range []string{"Bern", "Basel", "Chur"} {
						for _, id := range x.s.propositions.keys() {
							if p := x.s.propositions.get(id); p.Literal == `"`+v+`"` {
								// What is not usable may be put away or not.
								status := p.Status
								if status == Deprecated {
									status = Tentative
								}
								out += fmt.Sprintf("%s %s; ", v, status)
							}
						}
					}
					return out
				}
				as := play(0, 1, 2)
				for _, order := range [][]int{{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
					if other := play(order...); as != other {
						t.Errorf("%s, %s, then %s: %s\nand recorded in the order %v: %s", first, second, third, as, order, other)
					}
				}
			}
		}
	}
}

package memory

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/memory"
)

// succession is a fact that changes: the values a slot has one after another, each
// said by somebody who may say so (the person himself, or two house tools that
// know it from different places), and read afterwards, twice. Every fourth
// change or so goes back to an earlier value.
type succession struct {
	strictyaml.Place
	Slot   strictyaml.String `yaml:"slot"`
	Links  strictyaml.Whole  `yaml:"links"`
	Values strictyaml.String `yaml:"values"`
	// Text is what is said, with {value} in it.
	Text  strictyaml.String `yaml:"text"`
	User  strictyaml.String `yaml:"user"`
	Tools strictyaml.Words  `yaml:"tools"`
}

func (c *succession) check(r *strictyaml.Reader, sources map[string]bool, names map[string]string) {
	if !c.Given() {
		return
	}
	slotOf(r, c.Place.At("slot"), c.Slot.S, names)
	if c.Links.N < 2 || c.Links.N > 12 {
		r.Fault(c.Place.At("links"), "a chain has 2 to 12 links", "")
	}
	if lists[c.Values.S] == nil {
		r.Fault(c.Place.At("values"), "a list to draw from is expected here", "")
	}
	if len(c.Tools.Items) != 2 || !sources[c.User.S] {
		r.Fault(c.Node, "a chain has a user and two tools among the sources", "")
	}
	for _, t := range c.Tools.Items {
		if !sources[t.S] {
			r.Fault(t.Node, "a source of this scenario is expected here", "")
		}
	}
	if !strings.Contains(c.Text.S, valueMark) {
		r.Fault(c.Place.At("text"), "what is said has {value} in it", "")
	}
}

// valueMark stands for a value in what is said.
const valueMark = "{value}"

// generate appends the steps, the truth and what is expected.
func (c *succession) generate(r *run, d *deck) {
	entity, predicate, _ := cutSlot(c.Slot.S)
	at := time.Duration(0)
	if n := len(r.steps); n > 0 {
		at = r.steps[n-1].at
	}
	var values []string
	var history strictyaml.Words
	var expects []expect
	said := func(at time.Duration, v string) { // what must be read then
		e := expect{At: hours{d: at}, Slot: strictyaml.String{S: c.Slot.S}}
		e.Value.S = v
		e.Slot.Node, e.Value.Node, e.At.Node = c.Node, c.Node, c.Node
		expects = append(expects, e)
	}
	// Asked again half a day later, in another session and with nothing new.
	again := func(at time.Duration) {
		r.steps = append(r.steps, event{at: at, kind: reads, slot: c.Slot.S, session: "s1"},
			event{at: at + 12*time.Hour, kind: reads, slot: c.Slot.S, session: "s2"})
	}
	for i := range c.Links.N {
		v := ""
		if i >= 2 && d.rng.IntN(4) == 0 {
			v = values[i-2]
		} else {
			v = d.deal(c.Values.S)
		}
		values = append(values, v)
		history.Items = append(history.Items, strictyaml.String{S: v})
		by := []string{c.User.S}
		if d.rng.IntN(2) == 0 {
			by = []string{c.Tools.Items[0].S, c.Tools.Items[1].S}
		}
		r.truth[c.Slot.S] = append(r.truth[c.Slot.S], truth{From: hours{d: at}, Value: strictyaml.String{S: v, Place: c.Place}})
		text := strings.ReplaceAll(c.Text.S, valueMark, v)
		for k, src := range by {
			corrects := ""
			if i > 0 && k == len(by)-1 {
				corrects = c.Slot.S // the last who has to say it has said it
			}
			o := fmt.Sprintf("link%d-%d", i+1, k+1)
			r.steps = append(r.steps, event{at: at, kind: proposes, tool: memory.ToolRecordObservation, from: src, session: "s1",
				payload: fmt.Appendf(nil, `{"observation_id":%q,"raw_payload":%s}`, o, strconv.Quote(text))},
				event{at: at, kind: proposes, tool: memory.ToolPropose, as: fmt.Sprintf("link%d", i+1), session: "s1", corrects: corrects,
					payload: fmt.Appendf(nil, `{"text":%s,"about":["$%s"],"observation_ids":[%q],"structured_form":{"subject":"$%s","predicate":%q,"object":{"literal":%q}}}`,
						strconv.Quote(text), entity, o, entity, predicate, v)})
		}
		again(at)
		said(at, v)
		at += time.Duration(24+d.rng.IntN(73)) * time.Hour
	}
	history.Place = c.Place
	last := expects[len(expects)-1]
	last.Value, last.History = strictyaml.String{}, history
	r.expect = append(r.expect, append(expects, last)...)
}

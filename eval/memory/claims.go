package memory

import (
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
)

// claim is what a proposal says, as a system without governance takes it.
type claim struct {
	slot, value  string // slot is entity.predicate, by the names of steps
	observations []string
	validFrom    string
}

// claimOf reads the payload of propose_proposition. Without a structured form
// it is about no slot.
func claimOf(payload []byte) (c claim) {
	form := strictjson.Get(payload, "structured_form")
	subject, _ := strictjson.Text(strictjson.Get(form, "subject"))
	predicate, _ := strictjson.Text(strictjson.Get(form, "predicate"))
	if subject != "" {
		c.slot = strings.TrimPrefix(subject, "$") + "." + predicate
	}
	c.value, _ = strictjson.Text(strictjson.Get(strictjson.Get(form, "object"), "literal"))
	c.observations = texts(payload, "observation_ids")
	c.validFrom, _ = strictjson.Text(strictjson.Get(payload, "valid_from"))
	return c
}

// texts returns the texts of a list.
func texts(payload []byte, name string) (out []string) {
	es, _ := strictjson.Elements(strictjson.Get(payload, name))
	for _, e := range es {
		t, _ := strictjson.Text(e)
		out = append(out, t)
	}
	return out
}

// text returns a member that is a text, "" if there is none.
func text(payload []byte, name string) string {
	t, _ := strictjson.Text(strictjson.Get(payload, name))
	return t
}

func cutSlot(slot string) (entity, predicate string, ok bool) { return strings.Cut(slot, ".") }

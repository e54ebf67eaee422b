package memory

import (
	"bytes"
	"errors"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// ErrRecheck says that a recorded event is not what this memory decides on what
// the event says it was decided on.
var ErrRecheck = errors.New("memory: the recorded event is not what is decided again")

// Recheck decides a recorded event again, on the state before it and under the
// policy it names, and compares what it changed, byte for byte. checked is
// false where that cannot be done, and nothing is guessed: the texts were
// erased, or were never kept because they stand in an earlier record, or the
// event is of an earlier version of this package's rules. Of a
// proposal that was transformed, what was applied is decided again; that must
// change the same.
func Recheck(s *State, p *Policy, e *Event, value []byte) (checked bool, err error) {
	if e.V < EventVersion {
		return false, nil
	}
	c, prop, ok := Proposed(e, value)
	if !ok {
		return false, nil
	}
	c.Policy = p
	var again Decision
	if e.Kind != KindProposal {
		command, _ := strings.CutPrefix(prop.ToolName, "operator.")
		again = Operate(s, c, command, prop.Payload)
	} else {
		again = Handle(s, c, prop)
	}
	if again.Event == nil {
		return true, ErrRecheck
	}
	a, b := *e, *again.Event
	if a.Status == writ.Transformed {
		a.Status, a.Effects, b.Status, b.Effects = "", nil, "", nil
	}
	x, errx := a.Bytes()
	y, erry := b.Bytes()
	if errx != nil || erry != nil || !bytes.Equal(x, y) {
		return true, ErrRecheck
	}
	return true, nil
}

// Proposed returns what was proposed or commanded in a recorded event, as it
// was applied, and what the channel said of it then; the policy is left out. ok
// is false where that is not kept.
func Proposed(e *Event, value []byte) (c Context, p writ.Proposal, ok bool) {
	c = Context{Namespace: e.Namespace, Mode: e.Mode, Principal: e.Principal, Session: e.Session, Task: e.Task,
		Now: e.At.Time(), Screened: e.Screened, Exposed: e.Exposed}
	if value == nil || e.Reason == writ.MemoryPolicy || strictjson.Check(value, valueLimits) != nil {
		return c, p, false
	}
	p.ToolName = textOf(strictjson.Get(value, "tool_name"))
	if p.Payload = strictjson.Get(value, "payload"); p.Payload == nil {
		p.Payload = []byte(textOf(strictjson.Get(value, "payload_text")))
	}
	if e.Kind != KindProposal {
		return c, p, true
	}
	cite, cites := Cites(p)
	switch x := e.Capture; {
	case x != nil && x.Evidence == "" && x.Source == "":
		// It was held against nothing.
	case x != nil && p.ToolName == ToolRemember && e.Status == writ.Rejected:
		return c, p, false // what it was to rest on is not kept
	case x != nil:
		k := x.Captured
		if cites && x.ByRef {
			k.Ref = cite.Ref
		}
		if p.ToolName == ToolRemember {
			k.Text, k.Value = textOf(strictjson.Get(p.Payload, "raw_payload")), strictjson.Get(p.Payload, "value")
		}
		c.Captured = []Captured{k}
	case cites && e.Status == writ.Rejected:
		return c, p, false // what evidence a refused proposal was held against is not kept
	}
	return c, p, true
}

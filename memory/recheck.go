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
// erased, or were never kept because they stand in an earlier record. Of a
// proposal that was transformed, what was applied is decided again; that must
// change the same.
func Recheck(s *State, p *Policy, e *Event, value []byte) (checked bool, err error) {
	if e.Kind == KindOpen {
		return true, nil
	}
	if value == nil || e.Reason == writ.MemoryPolicy || strictjson.Check(value, valueLimits) != nil {
		return false, nil
	}
	c := Context{Policy: p, Namespace: e.Namespace, Mode: e.Mode, Principal: e.Principal, Session: e.Session, Task: e.Task,
		Now: e.At.Time(), Screened: e.Screened}
	name := textOf(strictjson.Get(value, "tool_name"))
	payload := strictjson.Get(value, "payload")
	if payload == nil {
		payload = []byte(textOf(strictjson.Get(value, "payload_text")))
	}
	var again Decision
	if e.Kind == KindCommand {
		command, _ := strings.CutPrefix(name, "operator.")
		again = Operate(s, c, command, payload)
	} else {
		prop := writ.Proposal{ToolName: name, Payload: payload}
		if x := e.Capture; x != nil {
			k := Captured{Evidence: x.Evidence, Label: x.Label, Source: x.Source, Class: x.Class, Verbatim: x.Verbatim, Whole: x.Whole,
				Type: x.Type, Collection: x.Collection}
			if cite, ok := Cites(prop); ok && x.ByRef {
				k.Ref = cite.Ref
			}
			c.Captured = []Captured{k}
		} else if e.Status == writ.Rejected {
			// What evidence a refused proposal was held against is not kept.
			if _, cites := Cites(prop); cites {
				return false, nil
			}
		}
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

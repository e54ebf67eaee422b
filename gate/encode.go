package gate

import (
	"strconv"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// members writes the members of one object, as canonical JSON where they come in their
// order: a decision is written with every call, and made again with every check of a log.
type members struct {
	b     []byte
	begun bool
}

func (m *members) name(s string) {
	if m.begun {
		m.b = append(m.b, ',')
	}
	m.begun = true
	m.b = append(append(append(m.b, '"'), s...), '"', ':')
}

func (m *members) text(name, s string) {
	m.name(name)
	m.b = strictjson.AppendQuote(m.b, s)
}

// some is text that is left out where there is none.
func (m *members) some(name, s string) {
	if s != "" {
		m.text(name, s)
	}
}

func (m *members) truth(name string, v bool) {
	m.name(name)
	m.b = strconv.AppendBool(m.b, v)
}

func (m *members) number(name string, n int64) {
	m.name(name)
	m.b = strconv.AppendInt(m.b, n, 10)
}

// list writes an array, null for one that is nil.
func list[T any](m *members, name string, all []T, one func(*members, *T)) {
	m.name(name)
	if all == nil {
		m.b = append(m.b, "null"...)
		return
	}
	m.b = append(m.b, '[')
	for i := range all {
		if i > 0 {
			m.b = append(m.b, ',')
		}
		one(m, &all[i])
	}
	m.b = append(m.b, ']')
}

// object writes an object within one.
func object[T any](f func(*members, *T)) func(*members, *T) {
	return func(m *members, v *T) {
		in := members{b: append(m.b, '{')}
		f(&in, v)
		m.b = append(in.b, '}')
	}
}

var (
	putText    = func(m *members, s *string) { m.b = strictjson.AppendQuote(m.b, *s) }
	putFailure = object(func(m *members, f *writ.Failure) {
		if f.Line != 0 {
			m.number("line", int64(f.Line))
		}
		m.text("need", f.Need)
		m.text("pointer", f.Pointer)
		m.text("reason", string(f.Reason))
	})
	putRef = object(func(m *members, r *Ref) {
		if r.End != 0 {
			m.number("end", int64(r.End))
		}
		m.number("ev", int64(r.Evidence))
		m.some("inner", r.Inner)
		m.text("label", r.Label.String())
		if r.Line != 0 {
			m.number("line", int64(r.Line))
		}
		m.text("pointer", r.Pointer)
		if r.Start != 0 {
			m.number("start", int64(r.Start))
		}
		m.text("tool", r.Tool)
	})
	putTrace = object(func(m *members, t *Trace) {
		if t.Contested {
			m.truth("contested", true)
		}
		m.text("digest", t.Digest)
		if len(t.Evidence) > 0 {
			list(m, "evidence", t.Evidence, putRef)
		}
		m.text("label", t.Label.String())
		m.text("pointer", t.Pointer)
		m.text("role", t.Role)
		m.some("rule", t.Rule)
	})
)

// append writes a record as canonical JSON.
func (r *Record) append(b []byte) []byte {
	m := &members{b: append(b, '{')}
	m.truth("allowed", r.Allowed)
	m.some("answers", r.Answers)
	m.some("arguments", r.Arguments)
	m.text("catalogue", r.Catalogue)
	m.some("code", string(r.Code))
	list(m, "effect", r.Effect, putText)
	m.text("engine", r.Engine)
	if len(r.Failures) > 0 {
		list(m, "failures", r.Failures, putFailure)
	}
	m.some("forwarded", r.Forwarded)
	if r.Look {
		m.truth("look", true)
	}
	m.text("method", r.Method)
	if r.Next != 0 {
		m.number("next", int64(r.Next))
	}
	m.text("policy", r.Policy)
	m.some("profile", string(r.Profile))
	m.some("reason", string(r.Reason))
	m.text("server", r.Server)
	m.some("session", r.Session)
	if r.Shadow {
		m.truth("shadow", true)
	}
	m.text("status", string(r.Status))
	m.text("time", r.Time)
	m.some("tool", r.Tool)
	list(m, "traces", r.Traces, putTrace)
	m.number("v", int64(r.Version))
	return append(m.b, '}')
}

// AppendFound appends, as members of a JSON object that are left out where there is
// nothing to say, what of a record nobody knows who knows the call and how it ended: the
// failures, the digest of what was forwarded, whether Writ made it for itself, which evidence counted, and the traces.
func (r *Record) AppendFound(b []byte) []byte {
	m := &members{b: b}
	if len(r.Failures) > 0 {
		list(m, "failures", r.Failures, putFailure)
	}
	m.some("forwarded", r.Forwarded)
	if r.Look {
		m.truth("look", true)
	}
	if r.Next != 0 {
		m.number("next", int64(r.Next))
	}
	if len(r.Traces) > 0 {
		list(m, "traces", r.Traces, putTrace)
	}
	return m.b
}

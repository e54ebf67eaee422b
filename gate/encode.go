package gate

import (
	"strconv"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// list writes an array, null for one that is nil.
func list[T any](m *strictjson.Writer, name string, all []T, one func(*strictjson.Writer, *T)) {
	m.Name(name)
	if all == nil {
		m.B = append(m.B, "null"...)
		return
	}
	m.B = append(m.B, '[')
	for i := range all {
		if i > 0 {
			m.B = append(m.B, ',')
		}
		one(m, &all[i])
	}
	m.B = append(m.B, ']')
}

// object writes an object within one.
func object[T any](f func(*strictjson.Writer, *T)) func(*strictjson.Writer, *T) {
	return func(m *strictjson.Writer, v *T) {
		in := strictjson.Writer{B: append(m.B, '{')}
		f(&in, v)
		m.B = append(in.B, '}')
	}
}

var (
	putText    = func(m *strictjson.Writer, s *string) { m.B = strictjson.AppendQuote(m.B, *s) }
	putFailure = object(func(m *strictjson.Writer, f *writ.Failure) {
		m.Count("line", int64(f.Line))
		m.Text("need", f.Need)
		m.Text("pointer", f.Pointer)
		m.Text("reason", string(f.Reason))
	})
	putRef = object(func(m *strictjson.Writer, r *Ref) {
		m.Count("end", int64(r.End))
		m.Number("ev", int64(r.Evidence))
		m.Some("inner", r.Inner)
		m.Text("label", r.Label.String())
		m.Count("line", int64(r.Line))
		m.Text("pointer", r.Pointer)
		m.Count("start", int64(r.Start))
		m.Text("tool", r.Tool)
	})
	putTrace = object(func(m *strictjson.Writer, t *Trace) {
		m.True("contested", t.Contested)
		m.Text("digest", t.Digest)
		if len(t.Evidence) > 0 {
			list(m, "evidence", t.Evidence, putRef)
		}
		m.Text("label", t.Label.String())
		m.Text("pointer", t.Pointer)
		m.Text("role", t.Role)
		m.Some("rule", t.Rule)
	})
)

// append writes a record as canonical JSON.
func (r *Record) append(b []byte) []byte {
	m := &strictjson.Writer{B: append(b, '{')}
	m.Name("allowed")
	m.B = strconv.AppendBool(m.B, r.Allowed)
	m.Some("answers", r.Answers)
	m.Some("arguments", r.Arguments)
	m.Text("catalogue", r.Catalogue)
	m.Some("code", string(r.Code))
	list(m, "effect", r.Effect, putText)
	m.Text("engine", r.Engine)
	if len(r.Failures) > 0 {
		list(m, "failures", r.Failures, putFailure)
	}
	m.Some("forwarded", r.Forwarded)
	m.True("look", r.Look)
	m.Text("method", r.Method)
	m.Count("next", int64(r.Next))
	m.Text("policy", r.Policy)
	m.Some("profile", string(r.Profile))
	m.Some("reason", string(r.Reason))
	m.Text("server", r.Server)
	m.Some("session", r.Session)
	m.True("shadow", r.Shadow)
	m.Text("status", string(r.Status))
	m.Text("time", r.Time)
	m.Some("tool", r.Tool)
	list(m, "traces", r.Traces, putTrace)
	m.Number("v", int64(r.Version))
	return append(m.B, '}')
}

// AppendFound appends, as members of a JSON object that are left out where there is
// nothing to say, what of a record nobody knows who knows the call and how it ended: the
// failures, the digest of what was forwarded, whether Writ made it for itself, which evidence counted, and the traces.
func (r *Record) AppendFound(b []byte) []byte {
	m := &strictjson.Writer{B: b}
	if len(r.Failures) > 0 {
		list(m, "failures", r.Failures, putFailure)
	}
	m.Some("forwarded", r.Forwarded)
	m.True("look", r.Look)
	m.Count("next", int64(r.Next))
	if len(r.Traces) > 0 {
		list(m, "traces", r.Traces, putTrace)
	}
	return m.B
}

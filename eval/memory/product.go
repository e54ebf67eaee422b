package memory

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/quote"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
)

// This file alone knows package memory.

// Product is the memory that the product runs, out of the box.
func Product() System {
	return System{ID: "writ", Name: "Writ", Of: "the product", New: func() Memory {
		m := &product{handle: memory.Handle, state: memory.New(), evidence: map[string]string{},
			c: memory.Context{Policy: memory.Builtin(), Namespace: "eval", Mode: memory.Hardened, Principal: "user", Session: "s1", Task: "t0", Now: beginning}}
		c := m.c
		c.Principal = "operator"
		m.apply(memory.Operate(m.state, c, memory.CommandOpen, []byte("{}")))
		return m
	}}
}

// product is package memory on a fold of its own events, with what the server does
// for it: it finds what a note or a quote stands in, and how much of it is kept.
type product struct {
	handle func(*memory.State, memory.Context, writ.Proposal) memory.Decision
	state  *memory.State
	c      memory.Context
	heard  []Evidence
	units  [][]quote.Unit // of what was heard
	calls  int

	evidence map[string]string // of an observation
}

func (m *product) At(now time.Time) { m.c.Now = now }
func (m *product) Hear(e Evidence) {
	m.heard, m.units = append(m.heard, e), append(m.units, units(e.Text))
}

func (m *product) apply(d memory.Decision) Filed {
	if err := m.state.Apply(d.Event, d.Value); err != nil {
		panic("memory: an event does not fit the state it was decided on: " + err.Error())
	}
	f := Filed{Refused: d.Outcome.Status == writ.Rejected}
	if r := d.Outcome.Rejection; r != nil {
		f.Malformed = strings.HasPrefix(string(r.Reason), "schema.") || strings.HasPrefix(string(r.Reason), "payload.") || r.Reason == writ.DirectCanonical
	}
	for _, e := range d.Outcome.Effects {
		if e.ID != "" {
			f.IDs = append(f.IDs, e.ID)
		}
	}
	return f
}

// propose hands on what was proposed, with what the server found for it, if anything.
func (m *product) propose(tool string, payload []byte, found *memory.Captured) Filed {
	m.calls++
	c := m.c
	c.Task = fmt.Sprintf("t%d", m.calls/500) // a task may propose only so much
	c.Exposed = slices.ContainsFunc(m.heard, func(e Evidence) bool { return e.Level < LevelUser })
	if found != nil {
		c.Captured = []memory.Captured{*found}
	}
	d := m.handle(m.state, c, writ.Proposal{ToolName: tool, Payload: payload})
	f := m.apply(d)
	for _, id := range f.IDs {
		if strings.HasPrefix(id, "obs_") && found != nil {
			m.evidence[id] = found.Ref
		}
	}
	if d.Outcome.Kept != nil {
		f.IDs = append([]string{d.Outcome.Kept.ID}, f.IDs...)
	}
	return f
}

// captured is the evidence that was heard as the i-th, as the server captures it.
func (m *product) captured(i int, whole bool) *memory.Captured {
	e := m.heard[i]
	return &memory.Captured{Ref: e.ID, Evidence: "s_eval/" + e.ID, Seen: uint64(i + 1), Label: labels[e.Level], Source: e.Source, Verbatim: true, Between: true, Whole: whole}
}

func (m *product) Propose(tool string, payload []byte) Filed {
	ob := payload
	if tool == memory.ToolTestResult {
		ob = strictjson.Get(payload, "observation")
	}
	raw, _ := strictjson.Text(strictjson.Get(ob, "raw_payload"))
	ref, _ := strictjson.Text(strictjson.Get(ob, "source_ref"))
	for i, e := range slices.Backward(m.heard) {
		if ok := quoted(e.Text, raw); ref == e.ID || ref == "" && raw != "" && ok {
			x := m.captured(i, ok && raw == e.Text)
			x.Verbatim, x.Between, x.Offset = ok, ok, max(0, strings.Index(e.Text, raw))
			if ok && raw != e.Text && e.Text[0] != '{' {
				x.Text = quote.Widened(e.Text, raw)
			}
			return m.propose(tool, payload, x)
		}
	}
	return m.propose(tool, payload, nil)
}

var labels = map[int]writ.Label{LevelUser: writ.User, LevelTool: writ.System, LevelStranger: writ.External}

// quoted reports whether words stand in a text as the gateway looks for them.
func quoted(text, raw string) bool {
	source, stop := claim.TextSource([]byte(text), len(text))
	if stop != nil || raw == text {
		return raw == text
	}
	_, no := source.Find(raw)
	return no == ""
}

// Remember is the everyday tool.
func (m *product) Remember(n Note) Filed {
	payload, about := []any{"text", n.Text}, n.Subject
	if about != "" && n.Predicate != "" {
		about += ": " + n.Predicate
	}
	if about != "" {
		payload = append(payload, "about", about)
	}
	if n.Replaces != "" {
		payload = append(payload, "replaces", n.Replaces)
	}
	var found *memory.Captured
	s, best := memory.Sought(n.Text, about), 0
	for i, e := range slices.Backward(m.heard) {
		for j := range m.units[i] {
			u := &m.units[i][j]
			if r := s.Weigh(u, e.Level >= LevelTool); r > best {
				best, found = r, m.captured(i, u.Wide == e.Text)
				if e.Level == LevelUser {
					found.Source = "user:user"
				}
				found.Offset, found.Text, found.Value = u.Offset, u.Wide, strictjson.Quote(s.Value(u))
			}
		}
	}
	for i, e := range slices.Backward(m.heard) {
		if found == nil && quoted(e.Text, n.Text) {
			text := n.Text
			if e.Text != text {
				text = quote.Widened(e.Text, text)
			}
			found = m.captured(i, e.Text == n.Text)
			found.Offset, found.Text, found.Value = max(0, strings.Index(e.Text, text)), text, strictjson.Quote(text)
		}
	}
	return m.propose(memory.ToolRemember, object(payload...), found)
}

// units are the sentences of a text, or its records.
func units(text string) (out []quote.Unit) {
	var records func(v strictjson.Value)
	records = func(v strictjson.Value) {
		if v.Kind() == strictjson.Object {
			out = append(out, quote.RecordOf(string(v.Raw())))
		}
		for _, e := range v.Elements() {
			records(e)
		}
		for _, m := range v.Members() {
			records(m)
		}
	}
	if v, err := strictjson.Parse([]byte(text), strictjson.Request); err == nil {
		records(v)
		return out
	}
	return quote.Of(text)
}

// slug is a predicate as the nine tools write it.
func slug(predicate string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(predicate))
}

// object is a JSON object of names and values.
func object(members ...any) []byte {
	out := map[string]any{}
	for i := 0; i < len(members); i += 2 {
		out[members[i].(string)] = members[i+1]
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return b
}

func (m *product) reader() *memory.Reader {
	return &memory.Reader{State: m.state, Principal: "user", Now: m.c.Now}
}

func (m *product) entity(subject string) string {
	if subject == "me" {
		return m.state.Person("user")
	}
	return m.state.Named(subject)
}

func (m *product) slot(subject, predicate string) string {
	return m.state.SlotOf(m.entity(subject), predicate, nil)
}

func (m *product) Current(subject, predicate string) (out []Item) {
	for _, v := range m.reader().Answer(m.slot(subject, predicate)).Values {
		i := Item{ID: v.ID, Trust: string(v.Status)}
		if v.Quote != nil {
			i.Text = v.Quote.Text
		}
		if v.Object != nil {
			i.Value = v.Object.Value
		}
		for _, o := range v.Observation {
			i.Evidence = append(i.Evidence, m.evidence[o])
		}
		out = append(out, i)
	}
	slices.Reverse(out)
	return out
}

func (m *product) Recall(question string) (out []Item) {
	for _, f := range m.reader().Recall(memory.Ask{Query: question}).Items {
		i := Item{ID: f.ID, Text: f.Text, Value: f.Value, Trust: string(f.Trust)}
		for _, o := range f.Quote.Origins {
			i.Evidence = append(i.Evidence, m.evidence[o.Observation])
		}
		if len(i.Evidence) == 0 {
			i.Evidence = append(i.Evidence, m.evidence[f.Observation])
		}
		out = append(out, i)
	}
	return out
}

// History reads the timeline: a value is listed where it was supported anew.
func (m *product) History(subject, predicate string) (out []string, _ bool) {
	r := m.reader()
	for _, t := range r.Timeline(m.slot(subject, predicate), 0, 0).Moments {
		if t.What != string(memory.Supports) {
			continue
		}
		if v, ok := r.View(t.Other); ok && v.Object != nil && (len(out) == 0 || out[len(out)-1] != v.Object.Value) {
			out = append(out, v.Object.Value)
		}
	}
	return out, true
}

func (m *product) Fork() Memory {
	out := *m
	out.state, out.heard, out.units, out.evidence = m.state.Clone(), slices.Clone(m.heard), slices.Clone(m.units), maps.Clone(m.evidence)
	return &out
}

package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Hooks are what a client is to run at certain events, in the JSON file in which it
// keeps its settings: one command, added behind what is there.
type Hooks struct {
	Events  []HookEvent `json:"events"`
	Command string      `json:"command"` // as a shell reads it
	Timeout int         `json:"timeout"` // in seconds
	// Made are the members that were not there before, the outermost first: "hooks",
	// "hooks/PreToolUse". Whole says that there was no object at all.
	Made  []string `json:"made,omitempty"`
	Whole bool     `json:"whole,omitempty"`
}

// A HookEvent is one event, and for which tools: "" where it has none.
type HookEvent struct {
	Name    string `json:"name"`
	Matcher string `json:"matcher,omitempty"`
}

// entry is the element of an event's list.
func (h *Hooks) entry(e HookEvent) []byte {
	var b bytes.Buffer
	b.WriteString("{ ")
	if e.Matcher != "" {
		b.WriteString(`"matcher": ` + string(quoted(e.Matcher)) + ", ")
	}
	b.WriteString(`"hooks": [{ "type": "command", "command": ` + string(quoted(h.Command)) + `, "timeout": `)
	n, _ := json.Marshal(h.Timeout)
	b.Write(n)
	b.WriteString(" }] }")
	return b.Bytes()
}

// Add returns the file with the hooks in it; what was made for them is noted in h. What
// is there stays, byte for byte, and Remove gives the file back; or there is an error. A
// file that has them all is returned as it is.
func (h *Hooks) Add(b []byte) (out []byte, err error) {
	h.Made, h.Whole = nil, false
	out = b
	if len(bytes.TrimSpace(bytes.TrimPrefix(b, mark))) == 0 {
		h.Whole = true
		out = []byte("{\n}\n")
	}
	for _, e := range h.Events {
		if out, err = h.add(out, e); err != nil {
			return nil, err
		}
	}
	back, left, err := h.Remove(out)
	if err != nil || len(left) > 0 && !bytes.Equal(out, b) || !bytes.Equal(back, b) && !(h.Whole && len(back) == 0) {
		if bytes.Equal(out, b) {
			return b, nil
		}
		return nil, errors.New("the change could not be taken back: nothing is changed")
	}
	return out, nil
}

func (h *Hooks) add(b []byte, e HookEvent) ([]byte, error) {
	all, at, err := hooksIn(b, e.Name)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(at.elements(), func(v *hujson.Value) bool { return means(v, h.entry(e)) }) {
		return b, nil
	}
	switch {
	case at.list != nil:
		return at.insert(b, at.list, nil, h.entry(e)), nil
	case at.hooks != nil:
		h.Made = append(h.Made, "hooks/"+e.Name)
		return at.insert(b, at.hooks, quoted(e.Name), append(append([]byte("["), h.entry(e)...), ']')), nil
	}
	h.Made = append(h.Made, "hooks", "hooks/"+e.Name)
	inner := slices.Concat([]byte("{ "), quoted(e.Name), []byte(": ["), h.entry(e), []byte("] }"))
	return at.insert(b, all, []byte(`"hooks"`), inner), nil
}

// hookPlace is where the hooks of an event are, as far as there are any.
type hookPlace struct {
	skipped     int
	hooks, list *hujson.Value
}

func (p *hookPlace) elements() (all []*hujson.Value) {
	if p.list != nil {
		a := p.list.Value.(*hujson.Array)
		for i := range a.Elements {
			all = append(all, &a.Elements[i])
		}
	}
	return all
}

func hooksIn(b []byte, event string) (root *hujson.Value, at hookPlace, err error) {
	if len(b) > MaxBytes {
		return nil, at, &Error{Why: "the file is larger than 32 MiB"}
	}
	v, skipped, err := parseJSON(b)
	if err != nil {
		return nil, at, err
	}
	at.skipped = skipped
	text := b[skipped:]
	top, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, at, &Error{Why: "the file is no JSON object"}
	}
	m, err := member(text, top, "hooks")
	if err != nil || m == nil {
		return &v, at, err
	}
	o, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		return nil, at, fault(text, m.Value.StartOffset, `"hooks" is no JSON object`)
	}
	at.hooks = &m.Value
	if m, err = member(text, o, event); err != nil || m == nil {
		return &v, at, err
	}
	if _, ok := m.Value.Value.(*hujson.Array); !ok {
		return nil, at, fault(text, m.Value.StartOffset, "the hooks of an event are no list")
	}
	at.list = &m.Value
	return &v, at, nil
}

// insert puts a member, or an element where name is nil, behind the last one of in.
func (p *hookPlace) insert(b []byte, in *hujson.Value, name, value []byte) []byte {
	if name != nil {
		value = slices.Concat(name, []byte(": "), value)
	}
	from, extra := in.StartOffset+1, ""
	switch t := in.Value.(type) {
	case *hujson.Object:
		if n := len(t.Members); n > 0 {
			from, extra = t.Members[n-1].Value.EndOffset, ","+spaceOf(t.Members[n-1].Name.BeforeExtra)
		}
	case *hujson.Array:
		if n := len(t.Elements); n > 0 {
			from, extra = t.Elements[n-1].EndOffset, ","+spaceOf(t.Elements[n-1].BeforeExtra)
		}
	}
	if extra == "" && bytes.HasPrefix(b[p.skipped+from:], []byte("\n")) {
		extra = "\n  "
	}
	from += p.skipped
	return slices.Concat(b[:from], []byte(extra), value, b[from:])
}

// spaceOf is how the last member is set apart, without its comments.
func spaceOf(extra hujson.Extra) string {
	s := string(extra)
	if strings.Trim(s, " \t\r\n") == "" && s != "" {
		return s
	}
	return " "
}

// means reports whether a value says what a text does.
func means(v *hujson.Value, text []byte) bool {
	of := func(b []byte) (x any) {
		d, err := hujson.Standardize(bytes.Clone(b))
		if err != nil || json.Unmarshal(d, &x) != nil {
			return nil
		}
		return x
	}
	x := of(v.Pack())
	return x != nil && reflect.DeepEqual(x, of(text))
}

// Remove takes out the hooks that are still as they were added, and what was made for
// them where nothing else is in it. It names the events whose hook is not there any more.
// A file that was made for them comes back empty.
func (h *Hooks) Remove(b []byte) (out []byte, left []string, err error) {
	out = b
	for _, e := range slices.Backward(h.Events) {
		_, at, err := hooksIn(out, e.Name)
		if err != nil {
			return nil, nil, err
		}
		i := slices.IndexFunc(at.elements(), func(v *hujson.Value) bool { return means(v, h.entry(e)) })
		if i < 0 {
			left = append(left, e.Name)
			continue
		}
		out = at.cut(out, at.list, i)
		if _, at, err = hooksIn(out, e.Name); err != nil {
			return nil, nil, err
		}
		if len(at.elements()) == 0 && slices.Contains(h.Made, "hooks/"+e.Name) {
			out = at.cut(out, at.hooks, indexOf(at.hooks, e.Name))
		}
	}
	root, at, err := hooksIn(out, "")
	if err != nil {
		return nil, nil, err
	}
	if at.hooks != nil && len(at.hooks.Value.(*hujson.Object).Members) == 0 && slices.Contains(h.Made, "hooks") {
		out = at.cut(out, root, indexOf(root, "hooks"))
	}
	if h.Whole && string(out) == "{\n}\n" {
		out = nil
	}
	slices.Reverse(left)
	return out, left, nil
}

func indexOf(in *hujson.Value, name string) int {
	o := in.Value.(*hujson.Object)
	return slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return m.Name.Value.(hujson.Literal).String() == name })
}

// cut takes a member or element out, with what was put before it.
func (p *hookPlace) cut(b []byte, in *hujson.Value, i int) []byte {
	var ends []int
	var starts []int
	switch t := in.Value.(type) {
	case *hujson.Object:
		for j := range t.Members {
			starts, ends = append(starts, t.Members[j].Name.StartOffset), append(ends, t.Members[j].Value.EndOffset)
		}
	case *hujson.Array:
		for j := range t.Elements {
			starts, ends = append(starts, t.Elements[j].StartOffset), append(ends, t.Elements[j].EndOffset)
		}
	}
	from, to := in.StartOffset+1, ends[i]
	switch {
	case i > 0:
		from = ends[i-1]
	case len(ends) > 1:
		from, to = starts[0], starts[1]
	}
	return slices.Concat(b[:p.skipped+from], b[p.skipped+to:])
}

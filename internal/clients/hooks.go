package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/tailscale/hujson"
)

// Hooks are what a client is to run at certain events, in the JSON file in which it
// keeps its settings: one command, added behind what is there.
type Hooks struct {
	Events  []HookEvent `json:"events"`
	Command string      `json:"command"` // as a shell reads it
	Timeout int         `json:"timeout"` // in seconds
	// Made are the members that were not there before, the outermost first: "hooks",
	// "hooks/PreToolUse". Whole says that there was no object at all, and Blank what there
	// was instead.
	Made  []string `json:"made,omitempty"`
	Whole bool     `json:"whole,omitempty"`
	Blank string   `json:"blank,omitempty"`
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
	h.Made, h.Whole, h.Blank = nil, false, ""
	out = b
	if len(bytes.TrimSpace(bytes.TrimPrefix(b, mark))) == 0 {
		h.Whole, h.Blank = true, string(b)
		out = []byte("{\n}\n")
	}
	for _, e := range h.Events {
		if out, err = h.add(out, e); err != nil {
			return nil, err
		}
	}
	back, left, err := h.Remove(out)
	if err != nil || len(left) > 0 && !bytes.Equal(out, b) || !bytes.Equal(back, b) {
		if bytes.Equal(out, b) {
			return b, nil
		}
		return nil, errors.New("the change could not be taken back: nothing is changed")
	}
	return out, nil
}

func (h *Hooks) add(b []byte, e HookEvent) ([]byte, error) {
	root, hooks, list, err := hooksIn(b, e.Name)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(elements(list), func(v *hujson.Value) bool { return means(v, h.entry(e)) }) {
		return b, nil
	}
	switch {
	case list != nil:
		return insert(b, list, nil, h.entry(e)), nil
	case hooks != nil:
		h.Made = append(h.Made, "hooks/"+e.Name)
		return insert(b, hooks, quoted(e.Name), append(append([]byte("["), h.entry(e)...), ']')), nil
	}
	h.Made = append(h.Made, "hooks", "hooks/"+e.Name)
	inner := slices.Concat([]byte("{ "), quoted(e.Name), []byte(": ["), h.entry(e), []byte("] }"))
	return insert(b, root, []byte(`"hooks"`), inner), nil
}

func elements(list *hujson.Value) (all []*hujson.Value) {
	if list == nil {
		return nil
	}
	if a, ok := list.Value.(*hujson.Array); ok {
		for i := range a.Elements {
			all = append(all, &a.Elements[i])
		}
	}
	return all
}

// hooksIn finds where the hooks of an event are, as far as there are any.
func hooksIn(b []byte, event string) (root, hooks, list *hujson.Value, err error) {
	if len(b) > MaxBytes {
		return nil, nil, nil, &Error{Why: "the file is larger than 32 MiB"}
	}
	v, err := parseJSON(b)
	if err != nil {
		return nil, nil, nil, err
	}
	if hooks, err = objectIn(b, &v, "hooks"); err != nil || hooks == nil {
		return &v, nil, nil, err
	}
	m, err := member(b, hooks, event)
	if err != nil || m == nil {
		return &v, hooks, nil, err
	}
	if _, ok := m.Value.Value.(*hujson.Array); !ok {
		return nil, nil, nil, fault(b, m.Value.StartOffset, "the hooks of an event are no list")
	}
	return &v, hooks, &m.Value, nil
}

// parts are where the members of an object are, or the elements of a list, and what stands
// before the last one.
func parts(in *hujson.Value) (all []span, before hujson.Extra) {
	for _, m := range members(in) {
		all, before = append(all, span{m.Name.StartOffset, m.Value.EndOffset}), m.Name.BeforeExtra
	}
	for _, v := range elements(in) {
		all, before = append(all, at(v)), v.BeforeExtra
	}
	return all, before
}

// insert puts a member, or an element where name is nil, behind the last one of in.
func insert(b []byte, in *hujson.Value, name, value []byte) []byte {
	if name != nil {
		value = slices.Concat(name, []byte(": "), value)
	}
	from, extra := in.StartOffset+1, ""
	if all, before := parts(in); len(all) > 0 {
		from, extra = all[len(all)-1].to, ","+setApart(b, before)
	} else if bytes.HasPrefix(b[from:], []byte("\n")) {
		extra = "\n  "
	}
	return slices.Concat(b[:from], []byte(extra), value, b[from:])
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
// A file that had nothing in it comes back as it was.
func (h *Hooks) Remove(b []byte) (out []byte, left []string, err error) {
	out = b
	for _, e := range slices.Backward(h.Events) {
		_, _, list, err := hooksIn(out, e.Name)
		if err != nil {
			return nil, nil, err
		}
		i := slices.IndexFunc(elements(list), func(v *hujson.Value) bool { return means(v, h.entry(e)) })
		if i < 0 {
			left = append(left, e.Name)
			continue
		}
		out = cut(out, list, i)
		_, hooks, list, err := hooksIn(out, e.Name)
		if err != nil {
			return nil, nil, err
		}
		if len(elements(list)) == 0 && slices.Contains(h.Made, "hooks/"+e.Name) {
			out = cut(out, hooks, indexOf(hooks, e.Name))
		}
	}
	root, hooks, _, err := hooksIn(out, "")
	if err != nil {
		return nil, nil, err
	}
	if hooks != nil && slices.Contains(h.Made, "hooks") {
		if all, _ := parts(hooks); len(all) == 0 {
			out = cut(out, root, indexOf(root, "hooks"))
		}
	}
	if h.Whole && string(out) == "{\n}\n" {
		out = []byte(h.Blank)
	}
	slices.Reverse(left)
	return out, left, nil
}

// indexOf is which member of an object has a name that is there.
func indexOf(in *hujson.Value, name string) (i int) {
	for n := range members(in) {
		if n == name {
			break
		}
		i++
	}
	return i
}

// cutOf is what goes with a member or element: it, and what is between it and the one before it, else
// the one behind it; of the only one all that stands before it.
func cutOf(in *hujson.Value, i int) (cut, between span) {
	all, _ := parts(in)
	switch {
	case i > 0:
		return span{all[i-1].to, all[i].to}, span{all[i-1].to, all[i].from}
	case len(all) > 1:
		return span{all[0].from, all[1].from}, span{all[0].to, all[1].from}
	}
	return span{in.StartOffset + 1, all[i].to}, span{}
}

// cut takes a member or element out.
func cut(b []byte, in *hujson.Value, i int) []byte {
	c, _ := cutOf(in, i)
	return slices.Concat(b[:c.from], b[c.to:])
}

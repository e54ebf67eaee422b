package model

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
)

// A stream was not asked for, and some endpoints send one all the same. It is
// read to its end and put together to the answer it stands for; the end it
// announces has to be there, so that one cut off is never taken for whole.

const (
	errStream = wireError("the model's endpoint answered with a stream that cannot be read")
	errCut    = wireError("the model's endpoint answered with a stream that ends too early")
	errTold   = wireError("the model's endpoint reported an error in its stream")
)

// event is one event of a stream; name is "" where it has none.
type event struct{ name, data string }

// readEvents splits a whole stream of server-sent events.
func readEvents(b []byte) (out []event, err error) {
	var e event
	var data []string
	for len(b) > 0 {
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		if !ended {
			return nil, errCut
		}
		b = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		field, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case bytes.IndexByte(line, '\r') >= 0:
			return nil, errStream // some readers would end the line there
		case len(line) == 0:
			if data != nil {
				e.data = strings.Join(data, "\n")
				out = append(out, e)
			}
			e, data = event{}, nil
		case field == "": // a comment
		case field == "data":
			data = append(data, value)
		case field == "event":
			e.name = value
		case field == "id", field == "retry": // for who reconnects
		default:
			return nil, errStream
		}
	}
	if data != nil {
		return nil, errCut
	}
	return out, nil
}

// object returns the event's data if it is one strict JSON object.
func (e event) object() ([]byte, error) {
	b := []byte(e.data)
	if !strictObject(b) {
		return nil, errStream
	}
	if given(strictjson.Get(b, "error")) {
		return nil, errTold
	}
	return b, nil
}

// text appends a member that is a string, or null, or not there.
func text(to *strings.Builder, raw []byte) error {
	switch {
	case !given(raw):
		return nil
	case strictjson.KindOf(raw) != strictjson.String:
		return errStream
	}
	s, _ := strictjson.Text(raw)
	to.WriteString(s)
	return nil
}

// given reports whether a member is there and not null.
func given(raw []byte) bool { return raw != nil && strictjson.KindOf(raw) != strictjson.Null }

// wholeOpenAI puts the chunks of a chat completion together.
func wholeOpenAI(events []event) ([]byte, error) {
	if len(events) == 0 || events[len(events)-1].data != "[DONE]" {
		return nil, errCut
	}
	var content, refusal, finish strings.Builder
	calls := false
	for _, e := range events[:len(events)-1] {
		b, err := e.object()
		if err != nil {
			return nil, err
		}
		choices, ok := strictjson.Elements(strictjson.Get(b, "choices"))
		switch {
		case !ok:
			return nil, errStream
		case len(choices) == 0: // what it cost
			continue
		case len(choices) > 1, string(strictjson.Get(choices[0], "index")) != "0":
			return []byte(`{"choices":[]}`), nil // not one choice, as it says
		}
		delta := strictjson.Get(choices[0], "delta")
		made := strictjson.Get(delta, "tool_calls")
		list, isList := strictjson.Elements(made) // an empty list is none, as in a whole answer
		switch {
		case strictjson.KindOf(delta) != strictjson.Object, finish.Len() > 0, // more after its end
			text(&content, strictjson.Get(delta, "content")) != nil, text(&refusal, strictjson.Get(delta, "refusal")) != nil,
			text(&finish, strictjson.Get(choices[0], "finish_reason")) != nil, given(made) && !isList:
			return nil, errStream
		}
		calls = calls || given(strictjson.Get(delta, "function_call")) || len(list) > 0
	}
	message := strictjson.Set([]byte(`{"role":"assistant"}`), "content", strictjson.Quote(content.String()))
	if refusal.Len() > 0 {
		message = strictjson.Set(message, "refusal", strictjson.Quote(refusal.String()))
	}
	if calls {
		message = strictjson.Set(message, "tool_calls", []byte(`[{"type":"function","function":{}}]`))
	}
	choice := strictjson.Set([]byte(`{"index":0}`), "message", message)
	choice = strictjson.Set(choice, "finish_reason", strictjson.Quote(finish.String()))
	return strictjson.Set([]byte("{}"), "choices", append(append([]byte("["), choice...), ']')), nil
}

// message is what was read of a message of Anthropic's so far.
type message struct {
	began, over bool
	open        string // the type of the block that is
	said, stop  strings.Builder
	blocks      [][]byte
}

// wholeAnthropic puts the events of a message together.
func wholeAnthropic(events []event) ([]byte, error) {
	var m message
	for _, e := range events {
		b, err := e.object()
		if err == nil {
			err = m.read(e.name, b)
		}
		if err != nil {
			return nil, err
		}
	}
	if !m.over {
		return nil, errCut
	}
	whole := strictjson.Set([]byte("{}"), "content", append(append([]byte("["), bytes.Join(m.blocks, []byte(","))...), ']'))
	return strictjson.Set(whole, "stop_reason", strictjson.Quote(m.stop.String())), nil
}

// read takes one event in: blocks one after another, each by its number, between the
// beginning and the end.
func (m *message) read(name string, b []byte) error {
	kind, delta := textOf(b, "type"), strictjson.Get(b, "delta")
	ok := kind != "" && (name == "" || name == kind) && !m.over
	if strings.HasPrefix(kind, "content_block_") {
		ok = ok && m.began && m.stop.Len() == 0 && (kind == "content_block_start") == (m.open == "") &&
			string(strictjson.Get(b, "index")) == strconv.Itoa(len(m.blocks))
	}
	switch kind {
	case "message_start":
		content, list := strictjson.Elements(strictjson.Get(strictjson.Get(b, "message"), "content"))
		ok, m.began = ok && !m.began && list && len(content) == 0, true
	case "content_block_start":
		block := strictjson.Get(b, "content_block")
		m.open = textOf(block, "type")
		ok = ok && m.open != "" && text(&m.said, strictjson.Get(block, "text")) == nil
	case "content_block_delta":
		ok = ok && (textOf(delta, "type") != "text_delta" || text(&m.said, strictjson.Get(delta, "text")) == nil)
	case "content_block_stop":
		block := strictjson.Set([]byte("{}"), "type", strictjson.Quote(m.open))
		m.blocks = append(m.blocks, strictjson.Set(block, "text", strictjson.Quote(m.said.String())))
		m.open = ""
		m.said.Reset()
	case "message_delta":
		ok = ok && m.began && m.open == "" && m.stop.Len() == 0 && text(&m.stop, strictjson.Get(delta, "stop_reason")) == nil
	case "message_stop":
		ok, m.over = ok && m.began && m.open == "", true
	case "error":
		if ok {
			return errTold
		}
	}
	if !ok {
		return errStream
	}
	return nil
}

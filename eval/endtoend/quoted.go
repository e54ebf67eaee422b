package endtoend

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// shortQuote is the shortest evidence, in bytes, that need not be a whole value.
const shortQuote = 8

// grounded: the evidence stands in the payload of a result that the server gave
// for good, spelt the one way a summariser is shown it, and shows something: it
// is a whole value, or of 8 bytes and reaches into one. It is judged here with
// code of its own. That it cuts no word is not judged.
func grounded(evidence string, calls []*Call) bool {
	if strings.TrimSpace(evidence) == "" {
		return false
	}
	return slices.ContainsFunc(calls, func(c *Call) bool { return c.Ended == Done && payload(c.Result).shows(evidence) })
}

// spelling is a JSON value without white space between its tokens, members in
// their order, numbers as they stand, strings with the fewest escapes; and where
// its values are: the text between the quotation marks of a string, other
// scalars, empty containers.
type spelling struct {
	text   strings.Builder
	values [][2]int
}

// payload spells the structuredContent of a result; it is empty where that
// is no object or the result is not JSON.
func payload(result string) *spelling {
	var members map[string]json.RawMessage
	s := &spelling{}
	if json.Unmarshal([]byte(result), &members) != nil || !strings.HasPrefix(string(members["structuredContent"]), "{") {
		return s
	}
	d := json.NewDecoder(strings.NewReader(string(members["structuredContent"])))
	d.UseNumber()
	if s.spell(d) != nil {
		return &spelling{}
	}
	return s
}

// spell writes the next value.
func (s *spelling) spell(d *json.Decoder) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	start := s.text.Len()
	switch t := t.(type) {
	case json.Delim:
		s.text.WriteString(t.String())
		for n := 0; d.More(); n++ {
			if n > 0 {
				s.text.WriteByte(',')
			}
			if t == '{' {
				name, err := d.Token()
				if err != nil {
					return err
				}
				s.text.WriteString(`"` + escaped(name.(string)) + `":`)
			}
			if err := s.spell(d); err != nil {
				return err
			}
		}
		end, err := d.Token()
		if err != nil {
			return err
		}
		s.text.WriteString(end.(json.Delim).String())
		if s.text.Len() == start+2 {
			s.values = append(s.values, [2]int{start, start + 2})
		}
		return nil
	case string:
		s.text.WriteString(`"` + escaped(t) + `"`)
		s.values = append(s.values, [2]int{start + 1, s.text.Len() - 1})
		return nil
	case nil:
		s.text.WriteString("null")
	default: // a json.Number as it stands, a bool
		fmt.Fprint(&s.text, t)
	}
	s.values = append(s.values, [2]int{start, s.text.Len()})
	return nil
}

// escaped is a string as it stands between quotation marks.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch i := strings.IndexRune("\"\\\b\f\n\r\t", r); {
		case i >= 0:
			b.WriteString(`\` + `"\bfnrt`[i:i+1])
		case r < ' ':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// shows: some place where the evidence stands is enough to show something.
func (s *spelling) shows(evidence string) bool {
	text := s.text.String()
	for at := 0; ; at++ {
		i := strings.Index(text[at:], evidence)
		if i < 0 {
			return false
		}
		at += i
		end := at + len(evidence)
		for _, v := range s.values {
			whole := at <= v[0] && v[1] <= end
			switch {
			case len(evidence) >= shortQuote && (at < v[1] && v[0] < end || whole):
				return true
			case whole && v[0]-at <= 1 && end-v[1] <= 1 && (at == v[0] && end == v[1] || text[at] == '"' && text[end-1] == '"'):
				return true
			}
		}
	}
}

package endtoend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
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
	text   string
	values [][2]int
}

// Where JSON has no white space: a string, a name with its colon, another scalar, an empty
// container.
var jsonString, jsonValue = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`), regexp.MustCompile(`"(?:[^"\\]|\\.)*":?|[-+.\w]+|\{\}|\[\]`)

// payload spells the structuredContent of a result; it is empty where that
// is no object or the result is not JSON.
func payload(result string) *spelling {
	var members map[string]json.RawMessage
	var compact bytes.Buffer
	s := &spelling{}
	if json.Unmarshal([]byte(result), &members) != nil || !strings.HasPrefix(string(members["structuredContent"]), "{") || json.Compact(&compact, members["structuredContent"]) != nil {
		return s
	}
	s.text = jsonString.ReplaceAllStringFunc(compact.String(), func(quoted string) string {
		var text string
		_ = json.Unmarshal([]byte(quoted), &text) // of a part of valid JSON
		return `"` + escaped(text) + `"`
	})
	for _, at := range jsonValue.FindAllStringIndex(s.text, -1) {
		switch t := s.text[at[0]:at[1]]; {
		case strings.HasSuffix(t, `":`): // a name
		case t[0] == '"':
			s.values = append(s.values, [2]int{at[0] + 1, at[1] - 1})
		default:
			s.values = append(s.values, [2]int{at[0], at[1]})
		}
	}
	return s
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
	for at := 0; ; at++ {
		i := strings.Index(s.text[at:], evidence)
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
			case whole && v[0]-at <= 1 && end-v[1] <= 1 && (at == v[0] && end == v[1] || s.text[at] == '"' && s.text[end-1] == '"'):
				return true
			}
		}
	}
}

package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Revalue puts other texts in the place of values of servers' environments and headers,
// and changes no other byte. With returns the text for one, as the file is to have it;
// ok is false for a value that stays. Of a header the variable is the one by which Writ
// gets it.
func (l Layout) Revalue(b []byte, with func(server, variable, value, written string) (text string, ok bool)) ([]byte, error) {
	all, err := l.Read(b)
	if err != nil {
		return nil, err
	}
	var edits []edit
	for _, s := range all {
		for _, h := range append(s.env[:len(s.env):len(s.env)], s.holes...) {
			variable, is := strings.CutPrefix(h.path, "env/")
			written, value := string(b[h.from:h.to]), ""
			if !is || l.text(written, &value) != nil {
				continue
			}
			if text, ok := with(s.Name, variable, value, written); ok {
				if l.text(text, &value) != nil {
					return nil, errors.New("a value would be no text: nothing is changed")
				}
				edits = append(edits, edit{h.span, []byte(text)})
			}
		}
	}
	if len(edits) == 0 {
		return b, nil
	}
	out := apply(bytes.Clone(b), edits)
	if again, err := l.Read(out); err != nil || len(again) != len(all) {
		return nil, errors.New("the change would mean more than a value: nothing is changed")
	}
	return out, nil
}

// text reads one text as the file writes it, and nothing else.
func (l Layout) text(written string, into *string) error {
	if !l.TOML {
		return json.Unmarshal([]byte(written), into)
	}
	var one map[string]string
	err := toml.Unmarshal([]byte("text = "+written), &one)
	if err == nil && len(one) != 1 {
		err = errors.New("more than a text")
	}
	*into = one["text"]
	return err
}

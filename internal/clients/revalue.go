package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// Revalue puts other texts in the place of values of servers' environments and headers,
// and changes no other byte. With returns the text for one, as the file is to have it;
// ok is false for a value that stays. Of a header the variable is the one by which Writ
// gets it. Files of TOML stay as they are.
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
			if !is || json.Unmarshal([]byte(written), &value) != nil {
				continue
			}
			if text, ok := with(s.Name, variable, value, written); ok {
				if json.Unmarshal([]byte(text), &value) != nil {
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

package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// dialogue is the id of a turn in the file: its session, and its number in it.
var dialogue = regexp.MustCompile(`D(\d+):(\d+)`)

// readLoCoMo reads conversations in the form of the public LoCoMo data: a list of
// samples, each with sessions "session_1" … of turns with a "dia_id", and with
// questions that name their evidence. The data are not part of this repository.
// A session begins with its date, a turn that shares a picture ends with what is seen on
// it. A question whose evidence stands nowhere is left out. An answer is not read:
// what is measured is whether its evidence is found.
func readLoCoMo(b []byte) (out []*library, err error) {
	var samples []struct {
		Conversation map[string]json.RawMessage `json:"conversation"`
		Questions    []struct {
			Question string          `json:"question"`
			Evidence json.RawMessage `json:"evidence"`
			Category int             `json:"category"`
		} `json:"qa"`
	}
	if err := json.Unmarshal(b, &samples); err != nil {
		return nil, fmt.Errorf("a LoCoMo file is expected: %w", err)
	}
	for _, s := range samples {
		l := &library{}
		at := map[string]int{}
		for n := 1; ; n++ {
			raw, ok := s.Conversation["session_"+strconv.Itoa(n)]
			if !ok {
				// A date may stand alone where a session was left out.
				if _, dated := s.Conversation["session_"+strconv.Itoa(n)+"_date_time"]; dated {
					continue
				}
				break
			}
			var turns []struct {
				Speaker string `json:"speaker"`
				ID      string `json:"dia_id"`
				Text    string `json:"text"`
				Picture string `json:"blip_caption"`
			}
			var date string
			if raw, ok := s.Conversation["session_"+strconv.Itoa(n)+"_date_time"]; ok {
				if err := json.Unmarshal(raw, &date); err != nil {
					return nil, fmt.Errorf("session_%d_date_time: %w", n, err)
				}
			}
			if err := json.Unmarshal(raw, &turns); err != nil {
				return nil, fmt.Errorf("session_%d: %w", n, err)
			}
			for _, t := range turns {
				if id := dialogue.FindString(t.ID); id != "" {
					at[id] = len(l.turns)
				}
				if t.Picture != "" {
					t.Text += " [a picture: " + t.Picture + "]"
				}
				l.turns = append(l.turns, turn{t.Speaker, t.Text, l.sessions})
			}
			l.dates = append(l.dates, date)
			l.sessions++
		}
		for _, q := range s.Questions {
			p := probe{category: q.Category, text: q.Question}
			for _, id := range dialogue.FindAllString(string(q.Evidence), -1) {
				if i, ok := at[id]; ok && !slices.Contains(p.gold, i) {
					p.gold = append(p.gold, i)
				}
			}
			if len(p.gold) > 0 && p.category >= severalSessions && p.category <= wrongPerson {
				l.questions = append(l.questions, p)
			}
		}
		if len(l.turns) > 0 {
			out = append(out, l)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("a LoCoMo file is expected: there is no conversation in it")
	}
	return out, nil
}

package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	"github.com/writ-project/writ/eval/measure"
	"github.com/writ-project/writ/internal/strictjson"
)

// A habit is what ordinary agents and people do that the recorded tasks do not: the same
// work, done a little otherwise, which has to pass as it did. It changes a copy of a
// trace, and reports whether there was anything to change.
type habit struct {
	name, does string
	apply      func(w *world, t *Trace) bool
}

var habits = []habit{
	{"a yes before it acts", "the agent asks, and the user says \"Yes, that is right. Please go ahead.\"", agreed},
	{"all arguments", "optional arguments are written out, as their defaults", writtenOut},
	{"empty lists", "optional lists of an act are written out, empty", func(w *world, t *Trace) bool { return writeOut(w, t, true, emptyList) }},
	{"read twice", "each read is made again at once", func(_ *world, t *Trace) bool { return doubled(t, func(s Step) Step { return s }) }},
	{"read that failed", "each read fails first", func(_ *world, t *Trace) bool {
		return doubled(t, func(s Step) Step {
			s.Output, s.OutputText, s.Error = nil, "not available", json.RawMessage(`"not available"`)
			return s
		})
	}},
	{"read again", "what was read before an act is read again after it", readAgain},
	{"lists turned round", "the lists in the arguments of acts are in the opposite order", turnedRound},
	{"times with a T", "times of acts have a T between day and hour, or none where they had one", rewritten(timeSpelling, "$1 $3", "${1}T$3")},
	{"accounts without @", "accounts in the arguments of acts have no @ before them", rewritten(accountSpelling, "$1", "$1")},
	{"decimals", "whole numbers of acts whose definition takes any number are written with a fraction", fractions},
}

// Habit is what became of tasks that pass as they were recorded.
type Habit struct {
	Name  string `json:"name"`
	Tasks Rate   `json:"untouched"`
	// Which are the first that did not pass.
	Which []string `json:"which,omitempty"`
}

// habitually plays what passes as it was recorded, done otherwise.
func habitually(ctx context.Context, suites []*suite) (out []Habit, err error) {
	for _, h := range habits {
		of := Habit{Name: h.name}
		for _, s := range suites {
			passes := make([]bool, len(s.traces))
			changed := make([]bool, len(s.traces))
			err := measure.Each(ctx, len(s.traces), nil, func(_ context.Context, i int) error {
				t := s.traces[i]
				ours := func() judge { return newOurs(s.plain, nil) }
				x := *t
				x.Steps, x.UserTurns = slices.Clone(t.Steps), slices.Clone(t.UserTurns)
				if !t.attack() && h.apply(s.plain, &x) && play(t, ours, nil).passed {
					changed[i], passes[i] = true, play(&x, ours, nil).passed
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			for i, t := range s.traces {
				if !changed[i] {
					continue
				}
				if of.Tasks.add(passes[i]); !passes[i] && len(of.Which) < 10 {
					of.Which = append(of.Which, t.ID)
				}
			}
		}
		out = append(out, of)
	}
	return out, nil
}

func agreed(_ *world, t *Trace) bool {
	first := slices.IndexFunc(t.Steps, func(s Step) bool { return s.act() })
	if first < 0 || len(t.UserTurns) > 0 {
		return false
	}
	t.UserTurns = []string{t.UserPrompt, "Yes, that is right. Please go ahead."}
	for i := range t.Steps {
		if i >= first {
			t.Steps[i].Turn = 1
		}
	}
	return true
}

// writeOut adds an optional argument where value gives one for its schema.
func writeOut(w *world, t *Trace, acts bool, value func(schema map[string]any) (any, bool)) (changed bool) {
	for i := range t.Steps {
		s := &t.Steps[i]
		in := objectSchema(w.tools[s.Tool].InputSchema)
		properties, _ := in["properties"].(map[string]any)
		required, _ := in["required"].([]any)
		args := s.Args
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			of, _ := properties[name].(map[string]any)
			v, ok := value(of)
			if acts && !s.act() || !ok || slices.Contains(required, any(name)) || strictjson.Of(args).Get(name).Exists() {
				continue
			}
			raw, _ := json.Marshal(v)
			args, changed = strictjson.Set(args, name, raw), true
		}
		s.Args = args
	}
	return changed
}

func writtenOut(w *world, t *Trace) bool {
	return writeOut(w, t, false, func(schema map[string]any) (any, bool) {
		v, ok := schema["default"]
		return v, ok
	})
}

func emptyList(schema map[string]any) (any, bool) {
	either, _ := schema["anyOf"].([]any)
	for _, x := range append([]any{schema}, either...) {
		if of, _ := x.(map[string]any); of["type"] == "array" {
			return []any{}, true
		}
	}
	return nil, false
}

func doubled(t *Trace, of func(Step) Step) (changed bool) {
	var out []Step
	for _, s := range t.Steps {
		if !s.act() && !s.failed() && given(s.Output) {
			out, changed = append(out, of(s)), true
		}
		out = append(out, s)
	}
	t.Steps = out
	return changed
}

func readAgain(_ *world, t *Trace) (changed bool) {
	var out []Step
	var last *Step
	for i, s := range t.Steps {
		out = append(out, s)
		if !s.act() {
			last = &t.Steps[i]
		} else if last != nil {
			read := *last
			read.Turn = s.Turn
			out, changed = append(out, read), true
		}
	}
	t.Steps = out
	return changed
}

var (
	timeSpelling    = regexp.MustCompile(`"(\d{4}-\d{2}-\d{2})([ T])(\d{2}:\d{2}(?::\d{2})?)"`)
	accountSpelling = regexp.MustCompile(`"@([A-Za-z]\w+)"`)
	wholeNumber     = regexp.MustCompile(`^-?\d+$`)
)

// rewritten writes the texts that a pattern finds otherwise: to, or the other way where that
// changes nothing.
func rewritten(pattern *regexp.Regexp, to, or string) func(*world, *Trace) bool {
	return func(_ *world, t *Trace) (changed bool) {
		for i := range t.Steps {
			s := &t.Steps[i]
			if !s.act() {
				continue
			}
			args := pattern.ReplaceAllFunc(s.Args, func(found []byte) []byte {
				out := pattern.ReplaceAll(found, []byte(`"`+to+`"`))
				if bytes.Equal(out, found) {
					out = pattern.ReplaceAll(found, []byte(`"`+or+`"`))
				}
				return out
			})
			changed = changed || !bytes.Equal(args, s.Args)
			s.Args = args
		}
		return changed
	}
}

func fractions(w *world, t *Trace) (changed bool) {
	for i := range t.Steps {
		s := &t.Steps[i]
		properties, _ := objectSchema(w.tools[s.Tool].InputSchema)["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			raw := strictjson.Of(s.Args).Get(name).Raw()
			if of, _ := properties[name].(map[string]any); s.act() && (of["type"] == "number" || of["type"] == "float") && wholeNumber.Match(raw) {
				s.Args, changed = strictjson.Set(s.Args, name, append(slices.Clone(raw), ".0"...)), true
			}
		}
	}
	return changed
}

func turnedRound(_ *world, t *Trace) (changed bool) {
	for i := range t.Steps {
		s := &t.Steps[i]
		args, _ := measure.Decode(s.Args).(map[string]any)
		for _, v := range args {
			if list, _ := v.([]any); s.act() && len(list) > 1 {
				slices.Reverse(list)
				changed = true
			}
		}
		if changed {
			s.Args, _ = json.Marshal(args)
		}
	}
	return changed
}

package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/draft"
	"github.com/writ-project/writ/internal/learn"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// mostLearned is from how many tasks of a suite is learned, and on how many others it is
// tried: writ learn reads as many sessions.
const mostLearned = 100

// TestLearn: what a drafted policy, which believes nothing, learns of every other task of
// a suite, and what becomes of the same tasks and of the ones between by it. The person
// says of each field that is not called as prose that our own people alone write there, and
// of one that no call would pass by then, that the server gives it.
// No rule of package learn knows these tasks.
func TestLearn(t *testing.T) {
	want := map[string]string{}
	for line := range strings.Lines(learnedFigures) {
		suite, figures, _ := strings.Cut(strings.TrimSpace(line), ": ")
		want[suite] = figures
	}
	var files []string
	for _, c := range []string{"agentdojo", "tau", "bfcl"} {
		file := filepath.Join(shared, c+".dev.jsonl.gz")
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			t.Logf("%s is not here", filepath.Base(file))
			continue
		}
		files = append(files, file)
	}
	suites, err := load(Options{Policies: os.DirFS("../policies"), Profile: policy.Standard, Corpora: files}, &Report{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		l, err := s.learnFrom()
		if err != nil {
			t.Error(err)
			continue
		}
		if got := l.String(); got != want[s.key] {
			t.Errorf("%s: %s", s.key, got)
		}
		for _, x := range []learn.Trial{l.again, l.others} {
			if x.Invented.Passed+x.Misplaced.Passed > 0 || x.After.Passed < x.Before.Passed {
				t.Errorf("%s: %+v", s.key, x)
			}
		}
		if l.after > l.before {
			t.Errorf("%s: %d attacks land, %d before", s.key, l.after, l.before)
		}
	}
}

// learnedFigures are calls that wait for a person or are refused, before and with what was
// learned: of the tasks it was learned from, and of the others.
const learnedFigures = `agentdojo/banking: 0 questions; again 3 tasks, 8 calls, 2 then 2; others 3 tasks, 11 calls, 4 then 4; invented 0 of 0, misplaced 0 of 0; attacks 0 of 89 then 0
agentdojo/slack: 0 questions; again 5 tasks, 20 calls, 9 then 9; others 5 tasks, 26 calls, 13 then 13; invented 0 of 0, misplaced 0 of 0; attacks 0 of 51 then 0
agentdojo/travel: 0 questions; again 2 tasks, 7 calls, 2 then 2; others 1 tasks, 4 calls, 1 then 1; invented 0 of 0, misplaced 0 of 0; attacks 0 of 77 then 0
agentdojo/workspace: 0 questions; again 7 tasks, 20 calls, 6 then 6; others 7 tasks, 21 calls, 6 then 6; invented 0 of 0, misplaced 0 of 0; attacks 0 of 338 then 0
bfcl: 2 questions; again 58 tasks, 364 calls, 174 then 172; others 58 tasks, 359 calls, 160 then 160; invented 0 of 2, misplaced 0 of 0; attacks 0 of 0 then 0
own: 0 questions; again 14 tasks, 26 calls, 15 then 15; others 13 tasks, 24 calls, 17 then 17; invented 0 of 0, misplaced 0 of 0; attacks 2 of 42 then 2
tau/airline: 6 questions; again 8 tasks, 47 calls, 13 then 5; others 7 tasks, 45 calls, 11 then 11; invented 0 of 35, misplaced 0 of 24; attacks 0 of 0 then 0
tau/retail: 4 questions; again 100 tasks, 419 calls, 127 then 107; others 100 tasks, 425 calls, 130 then 110; invented 0 of 79, misplaced 0 of 61; attacks 0 of 0 then 0
tau/telecom: 3 questions; again 2 tasks, 5 calls, 3 then 0; others 1 tasks, 2 calls, 1 then 1; invented 0 of 6, misplaced 0 of 4; attacks 0 of 0 then 0
`

// learned is what came of a suite.
type learned struct {
	learning, judged, questions int
	again, others               learn.Trial
	attacks, before, after      int // all attacks, and those that land without and with what was learned
}

func (l *learned) String() string {
	waits := func(n learn.Count) int { return n.Asked + n.Refused }
	of := func(n int, x learn.Trial) string {
		return fmt.Sprintf("%d tasks, %d calls, %d then %d", n, x.Before.Passed+waits(x.Before), waits(x.Before), waits(x.After))
	}
	return fmt.Sprintf("%d questions; again %s; others %s; invented 0 of %d, misplaced 0 of %d; attacks %d of %d then %d", l.questions,
		of(l.learning, l.again), of(l.judged, l.others), l.again.Invented.Tried+l.others.Invented.Tried, l.again.Misplaced.Tried+l.others.Misplaced.Tried,
		l.before, l.attacks, l.after)
}

// drafted is a suite's world under the policy that Writ drafts for its tools.
func drafted(w *world, defs []gate.Definition) (*policy.Policy, error) {
	open, faults := policy.Parse("drafted", []byte("pins: optional\ntools: {}\n"))
	if open == nil {
		return nil, fmt.Errorf("%v", faults[0])
	}
	cat, _ := gate.NewCatalogue(defs, open)
	p, faults := policy.Parse("drafted", []byte(draft.Policy(cat).Text()))
	if len(faults) > 0 {
		return nil, fmt.Errorf("%s: %v", w.name, faults[0])
	}
	return p, nil
}

// recorded is a trace as a log would have it, in which each call was made.
func (w *world) recorded(t *Trace, defs *learn.Definitions) *learn.Session {
	s := &learn.Session{ID: "s_learn"}
	when := at
	turns, said := t.turns(), 0
	for i := range t.Steps {
		step := &t.Steps[i]
		for ; said < len(turns) && said <= step.Turn; said++ {
			s.Steps = append(s.Steps, learn.Step{Turn: &learn.Turn{Text: []byte(turns[said]), At: when}})
		}
		when = when.Add(time.Second)
		args := step.Args
		if !given(args) {
			args = json.RawMessage("{}")
		}
		value, _ := strictjson.Parse(args, strictjson.Request)
		in := gate.Input{Time: when, Call: gate.Call{Server: w.server, Tool: step.Tool, Arguments: value}}
		s.Steps = append(s.Steps, learn.Step{Call: &learn.Call{Input: in, Definitions: defs, Made: true}})
		answered := w.result(step)
		answered.Time = when
		s.Steps = append(s.Steps, learn.Step{Result: &learn.Result{Of: len(s.Steps) - 1, Gate: answered}})
	}
	return s
}

// learnFrom has the drafted policy learn from every other benign task of a suite that
// acts, and tries it on the ones between.
func (s *suite) learnFrom() (*learned, error) {
	w := s.plain
	p, err := drafted(w, w.definitions)
	if err != nil {
		return nil, err
	}
	defs := &learn.Definitions{All: w.definitions}
	var half [2][]*learn.Session
	n := 0
	for _, t := range s.traces {
		if !t.attack() && t.acts() {
			half[n%2] = append(half[n%2], w.recorded(t, defs))
			n++
		}
	}
	for i := range half {
		half[i] = half[i][:min(len(half[i]), mostLearned)]
	}
	found := learn.From(p, half[0])
	said := slices.DeleteFunc(slices.Clone(found.Fields), func(f learn.Field) bool { return f.Writers == learn.WritersStrangers })
	l := &learned{learning: len(half[0]), judged: len(half[1]), questions: len(found.Fields),
		again: learn.Try(p, said, half[0]), others: learn.Try(p, said, half[1])}
	var lines []policy.Grown
	for i := range said {
		for _, g := range said[i].Lines() {
			lines = policy.WithLine(lines, g)
		}
	}
	grown, ok := p.With(lines)
	if !ok {
		return nil, fmt.Errorf("%s: what was learned is no policy", s.key)
	}
	lands := func(t *Trace, p *policy.Policy) int {
		x := *w
		x.policy = p
		x.catalogue, _ = gate.NewCatalogue(w.definitions, p)
		if play(t, func() judge { return newOurs(&x, truthful) }, nil).landed {
			return 1
		}
		return 0
	}
	for _, t := range s.traces {
		if t.attack() && t.acts() {
			l.attacks++
			l.before += lands(t, p)
			l.after += lands(t, grown)
		}
	}
	return l, nil
}

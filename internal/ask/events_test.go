package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/ask/screen"
)

// A witness stands at every step of a request and says which event was the last
// in the run's file when the step began.
type witness struct {
	Door
	t    *testing.T
	dir  string
	seen []string
}

func (w *witness) at(step string) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "*.jsonl"))
	if err != nil || len(files) != 1 {
		w.t.Fatalf("%s: %d event files", step, len(files))
	}
	b, err := os.ReadFile(files[0])
	if err != nil || !bytes.HasSuffix(b, []byte("\n")) {
		w.t.Fatalf("%s: %q %v", step, b, err)
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	var e Event
	if err := json.Unmarshal(lines[len(lines)-1], &e); err != nil {
		w.t.Fatal(err)
	}
	w.seen = append(w.seen, step+" after "+string(e.Stage)+" "+e.Outcome)
}

func (w *witness) Discover(ctx context.Context) (*Listing, error) {
	w.at("discover")
	return w.Door.Discover(ctx)
}
func (w *witness) Turn(ctx context.Context, text string) (string, error) {
	w.at("turn")
	return w.Door.Turn(ctx, text)
}
func (w *witness) Call(ctx context.Context, tool Listed, args []byte) (*Reply, error) {
	w.at("call")
	return w.Door.Call(ctx, tool, args)
}
func (w *witness) Recorded(ctx context.Context, id writ.EvidenceID) ([]byte, error) {
	w.at("recorded")
	return w.Door.Recorded(ctx, id)
}
func (w *witness) RecordSummary(ctx context.Context, id writ.EvidenceID, pointer string, limit int, b []byte) (claim.Summary, string, *claim.Stop, error) {
	w.at("summary")
	return w.Door.RecordSummary(ctx, id, pointer, limit, b)
}

// Plan implements Planner, by the built-in rules.
func (w *witness) Plan(ctx context.Context, p Prompt) ([]byte, error) {
	w.at("plan")
	rules, _ := ParseRules("", DefaultRules())
	return rules.Plan(ctx, p)
}

// Summarise implements Summariser, by the built-in rules.
func (w *witness) Summarise(ctx context.Context, m Material) ([]byte, error) {
	w.at("summarise")
	rules, _ := ParseRules("", DefaultRules())
	return rules.Summarise(ctx, m)
}

// TestEventsComeFirst: over a real gateway and the example server, what each
// stage came to is in the run's file before anything of the next begins.
func TestEventsComeFirst(t *testing.T) {
	r := newLiveRun(t, &live{})
	w := &witness{t: t, dir: filepath.Join(t.TempDir(), "runs")}
	r.wrap = func(d Door) Door {
		w.at("open")
		w.Door = d
		return w
	}
	h, _, end := r.host(&liveStep{}, Options{Planner: w, Summariser: w, Runs: w.dir})
	defer end()
	a, err := h.Ask(t.Context(), "Show me ticket INC-1042")
	if err != nil || a.Status != Answered || a.Summary == nil {
		t.Fatalf("%+v %v", a, err)
	}
	want := []string{
		"open after policy_gate passed", "discover after policy_gate passed", "turn after policy_gate passed",
		"plan after allowlist passed", "call after plan_gate passed", "recorded after provenance passed",
		"summarise after typed_output passed", "summary after typed_output passed",
	}
	if !slices.Equal(w.seen, want) {
		t.Errorf("%q", w.seen)
	}
	if _, called := r.saw(); !slices.Equal(called, []string{`fetch_ticket {"id":"INC-1042"}`}) {
		t.Errorf("INV-6: the server was called with %q", called)
	}
}

// TestEventsStop: from the event on that cannot be written nothing more begins;
// once a call was made, its answer is not hidden, and the error is told.
func TestEventsStop(t *testing.T) {
	for i, at := range claim.Stages() {
		t.Run(string(at), func(t *testing.T) {
			w := good()
			opened := 0
			h, err := New(Options{Screen: screen.Default(), Planner: &w.planner, Summariser: w.summariser,
				Allow: []claim.Allowed{{Server: "files", Name: "read", Pin: "p"}},
				Open:  func(context.Context) (Door, error) { opened++; return &w.door, nil }})
			if err != nil {
				t.Fatal(err)
			}
			var rec *recorder
			written := 0 // each stage has one event, and asks for the time of it
			rec, err = newRecorder(t.TempDir(), func() time.Time {
				if written++; written == i+1 {
					rec.f.Close()
				}
				return time.Now()
			})
			if err != nil {
				t.Fatal(err)
			}
			a := &Answer{Status: Failed}
			err = (&run{Host: h, rec: rec, answer: a}).ask(t.Context(), w.request)
			if !errors.Is(err, os.ErrClosed) {
				t.Fatalf("%v: %+v", err, a)
			}
			called := slices.Contains(w.door.order, "call")
			before := i < slices.Index(claim.Stages(), claim.StageProvenance)
			switch {
			case before && (called || a.Status != Failed || a.Stage != at || a.Failure == ""):
				t.Errorf("called %v: %+v", called, a)
			case !before && (!called || a.Evidence == "" || a.Result == nil || a.Status != Answered):
				t.Errorf("called %v: %+v", called, a)
			case i == 0 && opened > 0:
				t.Error("the door was opened")
			case i < slices.Index(claim.Stages(), claim.StagePlanner) && w.planner.n > 0:
				t.Error("the planner was asked")
			}
		})
	}
}

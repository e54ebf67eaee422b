package endtoend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/example"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/policy"
)

// The program of the tests is the recorder, and the example server behind it,
// too.
const recorderArg = "record-server"

func TestMain(m *testing.M) {
	upstream.GuardMain()
	if len(os.Args) == 4 && os.Args[1] == recorderArg {
		if err := Record(os.Args[2], os.Args[3], os.Stdin, os.Stdout, func(in io.Reader, out io.Writer) error { return example.Serve(context.Background(), in, out) }); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// newWorld is the built-in example server behind Writ as it is. A test breaks
// it: opened changes the gateway, and the door that is returned.
func newWorld(t *testing.T, change func(*gateway.Options), opened func(ask.Door) ask.Door) *World {
	t.Helper()
	policy, faults := policy.Parse("policy.yaml", example.Policy())
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &World{
		// The race detector keeps a process a second after its end.
		Servers: []upstream.Config{{Name: example.Name, Env: map[string]string{"GORACE": "atexit_sleep_ms=0"}}},
		Screen:  screen.Default(),
		Allow:   func(only []string) []claim.Allowed { return ask.Allow(policy, only) },
		Recorded: func(s upstream.Config, file string) upstream.Config {
			s.Command = []string{self, recorderArg, file, s.Name}
			return s
		},
	}
	w.Open = func(ctx context.Context, servers []upstream.Config) (ask.Door, func() error, error) {
		o := gateway.Options{Store: mapstore.New(nil), Policy: policy, Version: "test", Servers: servers}
		if change != nil {
			change(&o)
		}
		g, err := gateway.New(o)
		if err != nil {
			return nil, nil, err
		}
		if err := g.Start(ctx); err != nil {
			return nil, nil, errors.Join(err, g.Close())
		}
		_, s, err := g.OpenSession(ctx, "test", downstream.CarrierEndpoint)
		if err != nil {
			return nil, nil, errors.Join(err, g.Close())
		}
		d := ask.NewDoor(g, s)
		if opened != nil {
			d = opened(d)
		}
		return d, g.Close, nil
	}
	return w
}

func readFile(t *testing.T, name string) *File {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f, faults := ParseFile(name, b)
	for _, x := range faults {
		t.Error(x)
	}
	if f == nil {
		t.FailNow()
	}
	return f
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 999, time.UTC)

func options(t *testing.T, f *File, w *World) Options {
	t.Helper()
	rules, faults := ask.ParseRules("rules.yaml", ask.DefaultRules())
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return Options{
		File: f, World: w, Rules: rules, Scratch: t.TempDir(),
		Planners: []Planner{{Name: "rules", Planner: rules, Summariser: rules}, {Name: Adversary}},
		Time:     noon,
	}
}

func evaluate(t *testing.T, o Options) *Result {
	t.Helper()
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(o.Scratch)
	if err != nil || len(left) > 0 {
		t.Errorf("records are left in %s: %v %v", filepath.Base(o.Scratch), left, err)
	}
	return r
}

func column(t *testing.T, r *Result, agent, planner string) *Column {
	t.Helper()
	for i := range r.Metrics.Columns {
		if c := &r.Metrics.Columns[i]; c.Agent == agent && c.Planner == planner {
			return c
		}
	}
	t.Fatalf("no column of %s with %s", agent, planner)
	return nil
}

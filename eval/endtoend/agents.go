package endtoend

import (
	"context"
	"errors"
	"slices"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
)

// World is what both agents are run in: the operator's configuration, and how
// its servers are started. Its functions are called by several runs at once.
type World struct {
	// Servers are those of the configuration; each speaks over its standard input and output.
	Servers []upstream.Config
	// Screen and Allow are the operator's: the input policy, and the tools Writ's host is
	// given, narrowed by only unless that is nil.
	Screen *screen.Screen
	Allow  func(only []string) []claim.Allowed
	// Open starts a gateway over the servers and opens a session in it. end ends
	// both and every server.
	Open func(ctx context.Context, servers []upstream.Config) (door ask.Door, end func() error, err error)
	// Recorded is the server behind a recorder that appends to the file (Record).
	Recorded func(s upstream.Config, file string) upstream.Config
}

// Outcome is how a request ended, as the agent says.
type Outcome struct {
	Status ask.Status
	Stage  claim.Stage // where Writ stopped
	Reason string      // why it stopped, or what failed
	Answer string      // what was shown of the result, JSON
	Items  []Item      // of the summary that was shown
}

// agent is one of the two in one run: it is asked the requests of a session in
// their order.
type agent interface {
	// ask answers one request. Without a summariser there is no summary.
	ask(ctx context.Context, request string, p ask.Planner, s ask.Summariser) Outcome
	// close ends the agent's servers.
	close() error
}

// guarded is Writ: the host, the gateway and its gates, as `writ ask` has them.
type guarded struct {
	w       *World
	servers []upstream.Config
	only    []string
	door    ask.Door
	end     func() error
}

func (g *guarded) ask(ctx context.Context, request string, p ask.Planner, s ask.Summariser) Outcome {
	h, err := ask.New(ask.Options{
		Screen: g.w.Screen, Allow: g.w.Allow(g.only), Planner: p, Summariser: s, PlannerName: "evaluation",
		// Opened by the first request that the input policy lets pass, and kept
		// for the session.
		Open: func(ctx context.Context) (ask.Door, error) {
			if g.door == nil {
				door, end, err := g.w.Open(context.WithoutCancel(ctx), g.servers)
				if err != nil {
					return nil, err
				}
				g.door, g.end = door, end
			}
			return g.door, nil
		},
	})
	if err != nil {
		return Outcome{Status: ask.Failed, Reason: err.Error()}
	}
	a, err := h.Ask(ctx, request)
	out := Outcome{Status: a.Status, Stage: a.Stage, Answer: string(a.Result)}
	switch {
	case a.Rejection != nil:
		out.Reason = string(a.Rejection.Reason)
	case err != nil:
		out.Reason = err.Error()
	}
	if a.Summary != nil {
		for _, i := range slices.Concat(a.Summary.Bullets, a.Summary.Risks, a.Summary.Recommendations) {
			out.Items = append(out.Items, Item{Text: i.Text, Evidence: i.Quote})
		}
	}
	return out
}

func (g *guarded) close() error {
	if g.end == nil {
		return nil
	}
	return g.end()
}

// script is a planner and summariser that says what it was given.
type script struct{ plan, summary []byte }

func (s *script) Plan(context.Context, ask.Prompt) ([]byte, error) { return s.plan, nil }
func (s *script) Summarise(context.Context, ask.Material) ([]byte, error) {
	return s.summary, nil
}

// tape asks a planner once and gives both agents the same words. A summary is
// asked for again only where the agents have different results in hand.
type tape struct {
	planner    ask.Planner
	summariser ask.Summariser
	agent      string // who is asking now

	asked     string // which agent's prompt the planner saw, "" if none
	plan      []byte
	planErr   error
	summaries map[string]said
	summary   []byte // that the agent was given, nil if none
}

type said struct {
	raw []byte
	err error
}

// turn makes it the agent's turn.
func (t *tape) turn(agent string) { t.agent, t.summary = agent, nil }

func (t *tape) Plan(ctx context.Context, p ask.Prompt) ([]byte, error) {
	if t.asked == "" {
		t.asked = t.agent
		t.plan, t.planErr = t.planner.Plan(ctx, p)
	}
	return t.plan, t.planErr
}

func (t *tape) Summarise(ctx context.Context, m ask.Material) ([]byte, error) {
	// The naive agent's library spells a result anew: it is the same result.
	text := []byte(m.Source.Text())
	if strictjson.Check(text, strictjson.Result) == nil {
		if c, err := strictjson.Canonical(text); err == nil {
			text = c
		}
	}
	key := m.Tool + "\x00" + string(text)
	s, ok := t.summaries[key]
	if !ok {
		if t.summariser == nil {
			return nil, errors.New("there is no summariser")
		}
		s.raw, s.err = t.summariser.Summarise(ctx, m)
		if t.summaries == nil {
			t.summaries = map[string]said{}
		}
		t.summaries[key] = s
	}
	t.summary = s.raw
	return s.raw, s.err
}

func digest(b []byte) string { return "sha256:" + audit.Sum(b).String() }

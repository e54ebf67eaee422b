package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
)

// policyDiff is what `writ memory policy diff --json` prints: what a namespace
// would come to, had another policy been in force from the beginning.
type policyDiff struct {
	Namespace  string      `json:"namespace"`
	Events     uint64      `json:"events"`
	Policy     string      `json:"policy"`
	Mode       memory.Mode `json:"mode"`
	NextPolicy string      `json:"next_policy"`
	NextMode   memory.Mode `json:"next_mode"`
	// Replayed events were decided anew; AsRecorded are taken over as they are,
	// for what was proposed was erased or never kept; LeftOut of those do not
	// fit what came before.
	Replayed   int `json:"replayed"`
	AsRecorded int `json:"as_recorded"`
	LeftOut    int `json:"left_out"`
	// Propositions are those that would stand elsewhere; Same is how many would
	// not.
	Propositions []otherwise `json:"propositions"`
	Same         int         `json:"same"`
	// Accepted and Refused are proposals that would be decided the other way.
	Accepted []redecided `json:"accepted_instead"`
	Refused  []redecided `json:"refused_instead"`
}

// otherwise is a proposition under two policies. The state of one that is not
// there under a policy is "".
type otherwise struct {
	ID             string        `json:"id"`
	Text           memory.Data   `json:"text"`
	State          memory.Status `json:"state"`
	Confidence     memory.Micro  `json:"confidence"`
	Rule           memory.Rule   `json:"rule_id,omitempty"`
	NextState      memory.Status `json:"next_state"`
	NextConfidence memory.Micro  `json:"next_confidence"`
	NextRule       memory.Rule   `json:"next_rule_id,omitempty"`
}

type redecided struct {
	Decision string      `json:"decision_id"`
	Tool     string      `json:"tool"`
	Reason   writ.Reason `json:"reason"` // of the refusal, then or now
}

func policyDiffCommand() *cobra.Command {
	var f flags
	var x chosen
	c := f.take(&cobra.Command{Use: "diff --policy FILE [--mode MODE]", Short: "Say what would change under another policy or mode",
		Long: "Decide the namespace's whole recorded history again under another policy or mode, in memory\n" +
			"alone, and say which propositions would stand elsewhere, and why. Nothing is written.",
		Args: cli.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if x.policy == "" && x.mode == "" {
				return cli.Fail(cli.ExitUsage, "writ memory policy diff --policy FILE", "name a --policy or a --mode")
			}
			return nil
		},
		RunE: f.with(toRead, func(c *cobra.Command, r *remembered, _ []string) error {
			p, mode, err := x.choose(r.policy, r.mode)
			if err != nil {
				return err
			}
			var d *policyDiff
			err = r.read(c.Context(), func(now *memory.Reader) error {
				d, err = r.diff(c.Context(), now, p, mode)
				return err
			})
			if err != nil {
				return err
			}
			return f.show(c, d, d.print)
		})}, ofMemory...)
	x.register(c)
	return c
}

func (r *remembered) diff(ctx context.Context, now *memory.Reader, p *memory.Policy, mode memory.Mode) (*policyDiff, error) {
	d := &policyDiff{Namespace: r.namespace, Events: now.State.Head(), Policy: r.policy.Hash(), Mode: r.mode, NextPolicy: p.Hash(), NextMode: mode,
		Propositions: []otherwise{}, Accepted: []redecided{}, Refused: []redecided{}}
	scratch := memory.New()
	for it, err := range r.st.Read(ctx, memoryserver.LogOf(r.namespace), 1) {
		if err != nil {
			return nil, unreadable(err)
		}
		_, e, err := eventOf(&it)
		if err != nil {
			return nil, err
		}
		if e.N > now.State.Head() {
			break
		}
		value, _ := it.Value("proposal")
		if err := d.step(scratch, e, value, p, mode); err != nil {
			return nil, memoryBroken(err)
		}
	}
	then := &memory.Reader{State: scratch, Policy: p, Principal: now.Principal, Now: now.Now}
	seen := map[string]bool{}
	for _, x := range []*memory.Reader{now, then} {
		rows, err := rowsOf[memory.Proposition](x.State, "proposition")
		if err != nil {
			return nil, err
		}
		for i := range rows {
			id := rows[i].ID
			if seen[id] {
				continue
			}
			seen[id] = true
			a, _ := now.View(id)
			b, there := then.View(id)
			if a.State == b.State && a.Confidence == b.Confidence {
				d.Same++
				continue
			}
			o := otherwise{ID: id, Text: a.Text, State: a.State, Confidence: a.Confidence, Rule: a.Rule,
				NextState: b.State, NextConfidence: b.Confidence, NextRule: b.Rule}
			if there && a.State == "" {
				o.Text = b.Text
			}
			d.Propositions = append(d.Propositions, o)
		}
	}
	return d, nil
}

// step decides one recorded event anew, on what the events before it come to
// under the other policy. Exactly one event is applied for each, so that ids
// stay what they are.
func (d *policyDiff) step(s *memory.State, e *memory.Event, value []byte, p *memory.Policy, mode memory.Mode) error {
	mc, prop, ok := memory.Proposed(e, value)
	prop.Payload = withoutDefaults(e, prop.Payload)
	mc.Policy, mc.Mode = p, mode
	var again memory.Decision
	switch {
	case e.Kind == memory.KindOpen:
		again = memory.Operate(s, mc, memory.CommandOpen, []byte("{}"))
	case !ok:
		d.AsRecorded++
		was := *e
		was.Policy, was.Mode = p.Hash(), mode
		if s.Apply(&was, value) == nil {
			return nil
		}
		d.LeftOut++
		return s.Apply(nothing(e, p, mode), nil)
	case e.Kind == memory.KindCommand:
		again = memory.Operate(s, mc, strings.TrimPrefix(prop.ToolName, "operator."), prop.Payload)
	default:
		again = memory.Redecide(s, mc, e, prop)
	}
	if again.Event == nil {
		return memory.ErrRecheck
	}
	d.Replayed++
	then, now := e.Status == writ.Rejected, again.Event.Status == writ.Rejected
	entry := redecided{again.Outcome.Decision, cmp.Or(e.Tool, "(unknown tool)"), again.Event.Reason}
	switch {
	case now && !then:
		d.Refused = append(d.Refused, entry)
	case then && !now:
		entry.Reason = e.Reason
		d.Accepted = append(d.Accepted, entry)
	}
	return s.Apply(again.Event, again.Value)
}

// withoutDefaults is a payload without what a policy filled in: that was not
// proposed, and another policy fills in its own.
func withoutDefaults(e *memory.Event, payload []byte) []byte {
	for _, x := range e.Effects {
		if name, top := strings.CutPrefix(x.ID, "/"); top && strings.HasPrefix(x.Effect, "default_") {
			payload = strictjson.Delete(payload, name)
		}
	}
	return payload
}

// nothing is an event that changes nothing, in the place of one.
func nothing(e *memory.Event, p *memory.Policy, mode memory.Mode) *memory.Event {
	return &memory.Event{V: memory.EventVersion, N: e.N, Kind: e.Kind, At: e.At, Namespace: e.Namespace, Policy: p.Hash(), Mode: mode,
		Principal: e.Principal, Session: e.Session, Task: e.Task, Tool: e.Tool, Status: writ.Rejected, Reason: writ.MemoryUnknown}
}

func (d *policyDiff) print(w io.Writer) {
	for i := range d.Propositions {
		o := &d.Propositions[i]
		printMove(w, o.ID, o.Text, o.State, o.NextState, o.Confidence, o.NextConfidence)
		fmt.Fprintln(w)
		if o.Rule != o.NextRule {
			fmt.Fprintf(w, "  now because %s\n", ruleWords(o.Rule))
			when(w, o.NextRule != "", "  then because %s\n", ruleWords(o.NextRule))
		}
	}
	for _, x := range d.Accepted {
		fmt.Fprintf(w, "%s  %s would be accepted; it was refused (%s)\n", x.Decision, cli.OneLine(x.Tool, 80), x.Reason)
	}
	for _, x := range d.Refused {
		fmt.Fprintf(w, "%s  %s would be refused (%s)\n", x.Decision, cli.OneLine(x.Tool, 80), x.Reason)
	}
	fmt.Fprintf(w, "%d propositions would stand elsewhere, %d not; %d events decided again", len(d.Propositions), d.Same, d.Replayed)
	when(w, d.AsRecorded > 0, ", %d taken as recorded (erased or never kept)", d.AsRecorded)
	when(w, d.LeftOut > 0, ", %d of them left out", d.LeftOut)
	fmt.Fprintln(w)
}

// printMove says where a proposition stands and where it would, without ending
// the line.
func printMove(w io.Writer, id string, text memory.Data, from, to memory.Status, confidence, next memory.Micro) {
	fmt.Fprintf(w, "%s  %s\n", id, quoted(text, 200))
	if from == to {
		fmt.Fprintf(w, "  stays %s", from)
	} else {
		fmt.Fprintf(w, "  %s -> %s", cmp.Or(from, "not proposed"), cmp.Or(to, "not proposed"))
	}
	fmt.Fprintf(w, ", confidence %s -> %s", confidence, next)
}

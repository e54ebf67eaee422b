package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/memory"
)

// reading is a command that reads one thing: what --json prints of it, and how
// it is told in words.
func reading(use, short, long string, args cobra.PositionalArgs, read func(x *memory.Reader, args []string) (v any, text func(io.Writer), err error)) *cobra.Command {
	var f flags
	return f.take(&cobra.Command{Use: use, Short: short, Long: long, Args: args,
		RunE: f.with(toRead, func(c *cobra.Command, r *remembered, args []string) error {
			return r.read(c.Context(), func(x *memory.Reader) error {
				v, text, err := read(x, args)
				if err != nil {
					return err
				}
				return f.show(c, v, text)
			})
		})}, ofMemory...)
}

func notThere(id string) error {
	return cli.Fail(cli.ExitData, "writ memory search WORDS", "there is no %s in this namespace", cli.OneLine(id, 80))
}

func memoryGet() *cobra.Command {
	return reading("get ID", "Show one object: prop_…, obs_…, ent_…, epi_…, test_… or dec_…", "", exactly(1, "one id"),
		func(x *memory.Reader, args []string) (any, func(io.Writer), error) {
			rec, ok := x.Get(args[0])
			if !ok {
				return nil, nil, notThere(args[0])
			}
			return rec, func(w io.Writer) { printRecord(w, &rec) }, nil
		})
}

// quoted is a text out of memory, as a person sees it: in quotes, escaped, cut.
func quoted(d memory.Data, limit int) string {
	if d.Text == "" {
		return "(erased)"
	}
	s := `"` + strings.ReplaceAll(cli.OneLine(d.Text, limit), `"`, `\"`) + `"`
	if d.Cut {
		s += "…"
	}
	return s
}

func printRecord(w io.Writer, rec *memory.Record) {
	switch {
	case rec.Proposition != nil:
		printView(w, rec.Proposition)
		for _, b := range rec.Beliefs {
			fmt.Fprintf(w, "  %s  %s -> %s  confidence %s, because %s\n", b.At, b.Prior, b.Next, b.Score.Confidence, ruleWords(b.Rule))
		}
	case rec.Observation != nil:
		o := rec.Observation
		fmt.Fprintf(w, "%s  %s  %s\n", o.ID, o.Status, quoted(o.Text, 2000))
		fmt.Fprintf(w, "  source %s  class %s  trust %d  group %s\n", cli.OneLine(o.Source, 200), o.Class, o.Level, cli.OneLine(o.Group, 128))
		fmt.Fprintf(w, "  recorded %s, happened %s\n", o.RecordedAt, o.EventTime)
		when(w, o.Evidence != "", "  Writ saw it as %s\n", cli.OneLine(o.Evidence, 80))
		if o.SourceRef != nil {
			fmt.Fprintf(w, "  said to be from %s\n", cli.OneLine(o.SourceRef.Text, 200))
		}
		printIDs(w, "concluded from", o.Lineage)
		printIDs(w, "supports", o.Supports)
		printIDs(w, "contradicts", o.Contradicts)
	case rec.Entity != nil:
		e := rec.Entity
		fmt.Fprintf(w, "%s  %s  %s", e.ID, cli.OneLine(e.Type, 64), e.Canonicality)
		when(w, e.MergedInto != "", " into %s", e.MergedInto)
		fmt.Fprintln(w)
		for _, n := range e.Names {
			fmt.Fprintf(w, "  name \"%s\"\n", cli.OneLine(n.Value, 256))
		}
		for _, p := range e.PossibleSames {
			fmt.Fprintf(w, "  may be the same as %s (%s alike)\n", p.Entity, p.Similarity)
		}
		printIDs(w, "propositions", e.Propositions)
	case rec.Episode != nil:
		e := rec.Episode
		fmt.Fprintf(w, "%s  kept %s", e.ID, e.Retention)
		when(w, e.ExpiresAt != nil, " until %s", e.ExpiresAt)
		when(w, e.Expired, "  expired")
		fmt.Fprintf(w, "\n  session %s  task %s  %s to %s\n", cli.OneLine(e.Session, 80), cli.OneLine(e.Task, 80), e.StartedAt, e.EndedAt)
		if rec.Summary != nil {
			fmt.Fprintf(w, "  the agent's summary: %s\n", quoted(*rec.Summary, 4000))
		}
		printIDs(w, "rests on", e.Sources)
		printIDs(w, "promoted", e.Promoted)
		printIDs(w, "archived", e.Archived)
		printIDs(w, "discarded", e.Discarded)
		printIDs(w, "carried over", e.CarriedOver)
	case rec.Test != nil:
		printTest(w, rec.Test)
	case rec.Decision != nil:
		d := rec.Decision
		fmt.Fprintf(w, "dec_%d  %s  %s  %s", d.N, d.At, toolOf(d.Tool), d.Status)
		when(w, d.Reason != "", " (%s)", d.Reason)
		fmt.Fprintf(w, "\n  by %s", cli.OneLine(d.Principal, 80))
		when(w, d.Session != "", "  session %s  task %s", cli.OneLine(d.Session, 80), cli.OneLine(d.Task, 80))
		fmt.Fprintln(w)
		when(w, d.Erased, "  what was proposed was erased\n")
	}
}

// toolOf is the tool of a decision, for a person.
func toolOf(tool string) string { return cli.OneLine(cmp.Or(tool, "(unknown tool)"), 80) }

// maxIDs is how many ids are told on a line; --json tells all.
const maxIDs = 50

func printIDs(w io.Writer, what string, ids []string) {
	if len(ids) > 0 {
		fmt.Fprintf(w, "  %s %s\n", what, someOf(ids))
	}
}

func someOf(ids []string) string {
	s := strings.Join(ids[:min(len(ids), maxIDs)], " ")
	if more := len(ids) - maxIDs; more > 0 {
		s += fmt.Sprintf(" … and %d more", more)
	}
	return s
}

func printTest(w io.Writer, t *memory.Test) {
	fmt.Fprintf(w, "%s  %s  %s  at stake: %s  cost %s  benefit %s\n", t.ID, t.Status, t.Kind, t.Impact, t.Cost, t.Benefit)
	for _, o := range t.Outcomes {
		fmt.Fprintf(w, "  %s says %s\n", o.Proposition, cli.OneLine(o.Outcome, 64))
	}
	fmt.Fprintf(w, "  until %s, because %s\n", t.ExpiresAt, ruleWords(t.Rule))
}

// printView says what a proposition is and whether it may be used.
func printView(w io.Writer, v *memory.View) {
	fmt.Fprintf(w, "%s  %s\n", v.ID, quoted(v.Text, 2000))
	fmt.Fprintf(w, "  %s: %s\n", v.State, abstentions[v.Abstention])
	fmt.Fprintf(w, "  because %s\n", ruleWords(v.Rule))
	fmt.Fprintf(w, "  confidence %s, trust %d, items of evidence %d, independent groups %d", v.Confidence, v.Level, v.Evidence, v.Groups)
	when(w, v.Disputed > 0, ", disputed by %d untrusted", v.Disputed)
	when(w, v.Canonical, ", durable")
	fmt.Fprintf(w, "\n  holds from %s", v.ValidFrom)
	when(w, v.ValidTo != nil, " to %s", v.ValidTo)
	fmt.Fprintln(w)
	if v.Predicate != "" {
		value := v.Entity
		if v.Object != nil {
			value = fmt.Sprintf("\"%s\" (%s)", cli.OneLine(v.Object.Value, 300), v.Object.Label)
		}
		fmt.Fprintf(w, "  %s %s %s  (%s)\n", v.Subject, v.Predicate, value, v.Slot)
	}
}

func memoryExplain() *cobra.Command {
	return reading("explain PROP", "Say why a proposition is believed as far as it is, and what would change that",
		"Say why a proposition is believed as far as it is: its state and the rule that gave it, the\n"+
			"parts of its score, the evidence on both sides with quotes, and what else would change it.",
		exactly(1, "one proposition's id"),
		func(x *memory.Reader, args []string) (any, func(io.Writer), error) {
			e, ok := x.Explain(args[0])
			if _, there := x.Get(args[0]); !ok && there {
				return nil, nil, cli.Fail(cli.ExitUsage, "writ memory get "+cli.OneLine(args[0], 80), "only a proposition, prop_…, is believed or not")
			} else if !ok {
				return nil, nil, notThere(args[0])
			}
			return e, func(w io.Writer) { printExplanation(w, &e) }, nil
		})
}

func printExplanation(w io.Writer, e *memory.Explanation) {
	v := &e.Proposition
	printView(w, v)
	fmt.Fprintf(w, "  accepted takes confidence %s of %d independent groups", e.Needs.Confidence, e.Needs.Groups)
	when(w, e.Needs.Test, " and a passed test")
	s := v.Score
	fmt.Fprintf(w, "\n  score: support %s of %d groups, contradiction %s of %d, freshness %s (volatility %s, factor %s), diversity +%s, staleness -%s\n",
		s.Support, s.SupportGroups, s.Contradiction, s.ContradictGroups, s.Freshness, s.Volatility, s.VolatilityFactor, s.DiversityBonus, s.StalenessPenalty)
	printEvidence(w, "for it", e.Support)
	printEvidence(w, "against it", e.Contradictions)
	for _, o := range e.Slot {
		fmt.Fprintf(w, "  another value: %s  %s  %s  from %s", o.Proposition, quoted(o.Text, 200), o.State, o.ValidFrom)
		when(w, o.ValidTo != nil, " to %s", o.ValidTo)
		fmt.Fprintln(w)
	}
	printIDs(w, "its place is disputed by", e.Rivals)
	for _, h := range e.Changes {
		fmt.Fprintf(w, "  if %s: %s, confidence %s\n", h.If, h.State, h.Confidence)
	}
	when(w, len(e.Changes) == 0 && v.Usable, "  nothing that could come alone would change its state\n")
	when(w, e.Lapses != nil, "  without new evidence it is less from %s on\n", e.Lapses)
	printIDs(w, "decisions", e.Decisions)
	printIDs(w, "erased, so that they cannot be made again:", e.Unchecked)
	fmt.Fprintf(w, "  mode %s, policy %s %.12s\n", e.Mode, cli.OneLine(e.Profile, 64), e.Policy)
}

func printEvidence(w io.Writer, side string, gs []memory.GroupEvidence) {
	for _, g := range gs {
		fmt.Fprintf(w, "  %s: group %s, trust %d, weight %s, %d in all\n", side, cli.OneLine(g.Group, 128), g.Level, g.Weight, g.Count)
		for _, i := range g.Items {
			fmt.Fprintf(w, "    %s  %s  %s  %s", i.Observation, i.RecordedAt, cli.OneLine(i.Source, 120), i.Class)
			when(w, i.Evidence != "", "  %s", cli.OneLine(i.Evidence, 80))
			when(w, i.Resolution != "", "  no longer counts: %s", cli.OneLine(i.Resolution, 60))
			fmt.Fprintf(w, "\n      %s\n", quoted(i.Quote, 300))
		}
	}
}

// moments is what `writ memory timeline --json` prints.
type moments struct {
	Notice  string          `json:"notice"`
	Moments []memory.Moment `json:"moments"`
	More    bool            `json:"more"`
}

func memoryTimeline() *cobra.Command {
	var from uint64
	var limit int
	c := reading("timeline ID", "Tell what happened to an entity, a slot or a proposition", "", exactly(1, "the id of an entity, a slot or a proposition"),
		func(x *memory.Reader, args []string) (any, func(io.Writer), error) {
			ms, more := x.Timeline(args[0], from, limit)
			if len(ms) == 0 {
				return nil, nil, notThere(args[0])
			}
			return moments{memory.Notice, ms, more}, func(w io.Writer) {
				for _, m := range ms {
					fmt.Fprintf(w, "%s  dec_%d  %s %s", m.At, m.Record, m.What, m.ID)
					when(w, m.Other != "", " %s", m.Other)
					when(w, m.State != "", "  %s, because %s", m.State, ruleWords(m.Rule))
					if m.Text != nil {
						fmt.Fprintf(w, "  %s", quoted(*m.Text, 200))
					}
					fmt.Fprintln(w)
				}
				when(w, more, "and more: --from %d\n", ms[len(ms)-1].Record+1)
			}, nil
		})
	c.Flags().Uint64Var(&from, "from", 0, "first record `N` to tell")
	c.Flags().IntVar(&limit, "limit", 100, "how many entries, `N`; 0 is all")
	return c
}

func memoryPending() *cobra.Command {
	var limit int
	c := reading("pending", "List what waits for somebody: what is contested, open tests, what was refused", "", cli.NoArgs,
		func(x *memory.Reader, _ []string) (any, func(io.Writer), error) {
			p := x.Pending("", "", limit)
			return p, func(w io.Writer) {
				for i := range p.Contested {
					printView(w, &p.Contested[i])
					fmt.Fprintf(w, "  rule on it: writ memory resolve %s --uphold | --refute\n", p.Contested[i].ID)
				}
				for _, t := range p.Tests {
					printTest(w, t)
				}
				printIDs(w, "carried over", p.Carried)
				for _, d := range p.Rejected {
					fmt.Fprintf(w, "dec_%d  %s  %s  refused (%s)  by %s\n", d.N, d.At, toolOf(d.Tool), d.Reason, cli.OneLine(d.Principal, 80))
				}
				when(w, len(p.Contested)+len(p.Tests)+len(p.Carried)+len(p.Rejected) == 0, "nothing waits\n")
			}, nil
		})
	c.Flags().IntVar(&limit, "limit", 20, "how many of each, `N`")
	return c
}

func memorySearch() *cobra.Command {
	var f flags
	var q memory.Query
	c := f.take(&cobra.Command{Use: "search WORDS …", Short: "Find what is remembered, as an agent would",
		Long: "Find what is remembered by words: what may be used first, by state, then by the words. What\n" +
			"is too weak, contested or untrusted is counted and not shown, unless a flag asks for it.",
		Args: between(1, math.MaxInt, "words to look for"),
		PreRunE: func(c *cobra.Command, _ []string) error {
			states := []memory.Status{"", memory.Tentative, memory.Provisional, memory.Accepted, memory.Contested, memory.Deprecated, memory.Rejected}
			if !slices.Contains(states, q.MinState) {
				return cli.Fail(cli.ExitUsage, "writ memory search --help", "there is no state of that name")
			}
			for _, kind := range q.Types {
				if !slices.Contains([]string{"proposition", "observation", "entity", "episode"}, kind) {
					return cli.Fail(cli.ExitUsage, "writ memory search --help", "there is no kind of that name")
				}
			}
			if q.Limit < 1 || q.Limit > 50 {
				return cli.Fail(cli.ExitUsage, "writ memory search --limit 50", "a search shows 1 to 50")
			}
			return nil
		},
		RunE: f.with(toRead, func(c *cobra.Command, r *remembered, args []string) error {
			var res memory.Results
			err := r.read(c.Context(), func(x *memory.Reader) error {
				res = x.Search(strings.Join(args, " "), q)
				return nil
			})
			if err != nil {
				return err
			}
			return f.show(c, res, func(w io.Writer) {
				for i := range res.Items {
					it := &res.Items[i]
					printRecord(w, &memory.Record{Proposition: it.Proposition, Observation: it.Observation, Entity: it.Entity, Episode: it.Episode, Summary: it.Summary})
				}
				when(w, len(res.Items) == 0, "nothing: %s\n", abstentions[res.Abstention])
				for _, h := range res.Withheld {
					fmt.Fprintf(w, "not shown: %d, %s\n", h.Count, h.Reason)
				}
			})
		})}, ofMemory...)
	c.Flags().IntVar(&q.Limit, "limit", 10, "how many, `N` up to 50")
	c.Flags().StringVar((*string)(&q.MinState), "min-state", "", "lowest `STATE` to show (default: provisional)")
	c.Flags().StringSliceVar(&q.Types, "type", nil, "`KIND` to show: proposition, observation, entity, episode; may be repeated")
	c.Flags().BoolVar(&q.Untrusted, "untrusted", false, "observations of trust 0 and 1 too")
	return c
}

package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

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

func memorySearch() *cobra.Command {
	var q memory.Ask
	c := reading("search [WORDS …]", "Find what is remembered, as an agent recalls it",
		"Find what is remembered, as quotes, by their words: the established first, then what the agent\n"+
			"noted before its session held anything of others; what was replaced stands behind what took its\n"+
			"place. What only others say, and what the agent noted after that, is counted, and shown with --all.",
		cobra.ArbitraryArgs,
		func(x *memory.Reader, args []string) (any, func(io.Writer), error) {
			q := q
			q.Bytes = q.Limit * 700
			if q.Query = strings.Join(args, " "); strings.HasPrefix(q.About, "ent_") {
				q.About, q.Entity = "", q.About
			}
			res := x.Recall(q)
			return res, func(w io.Writer) {
				for i := range res.Items {
					printFound(w, &res.Items[i])
				}
				when(w, res.Note != "", "%s\n", cli.OneLine(res.Note, 300))
				when(w, len(res.Items) == 0, "nothing: %s\n", abstentions[res.Abstention])
				for _, h := range res.HeldBack {
					fmt.Fprintf(w, "not shown: %d, %s\n", h.Count, h.Reason)
				}
				when(w, res.More != "", "%s\n", cli.OneLine(flagged.Replace(res.More), 300))
			}, nil
		})
	c.PreRunE = func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && q.About == "":
			return cli.Fail(cli.ExitUsage, "writ memory search --help", "words to look for, or --about")
		case q.Limit < 1 || q.Limit > 50:
			return cli.Fail(cli.ExitUsage, "writ memory search --limit 50", "a search shows 1 to 50")
		}
		return nil
	}
	c.Flags().IntVar(&q.Limit, "limit", 10, "how many, `N` up to 50")
	c.Flags().StringVar(&q.About, "about", "", "only what is about `WHOM`: Anna, or Anna: phone, or an entity's id")
	c.Flags().BoolVar(&q.All, "all", false, "what is held back too, marked")
	return c
}

// flagged is what gives more, as this command is told it.
var flagged = strings.NewReplacer("all: true gives", "--all gives", "a higher limit gives", "a higher --limit gives", "about: me", "--about me", "or about narrow", "or --about narrow", "without about", "without --about")

func printFound(w io.Writer, it *memory.Item) {
	fmt.Fprintf(w, "%s  %s  %s\n  from %s, %s", it.ID, it.Trust, inQuotes(it.Text, 2000), cli.OneLine(it.From, 200), it.On)
	when(w, it.About != "", "  about %s", cli.OneLine(it.About, 200))
	when(w, it.Value != "", " = %s", inQuotes(it.Value, 300))
	when(w, it.Note != "", "  (%s)", cli.OneLine(it.Note, 300))
	fmt.Fprintln(w)
}

func memoryGet() *cobra.Command {
	return reading("get ID", "Show one object: prop_…, obs_…, ent_…, epi_…, test_… or dec_…", "", exactly(1, "one id"),
		func(x *memory.Reader, args []string) (any, func(io.Writer), error) {
			rec, ok := x.Get(args[0])
			if !ok {
				return nil, nil, notThere(args[0])
			}
			return rec, func(w io.Writer) {
				if rec.Proposition != nil {
					printView(w, rec.Proposition)
				} else {
					_ = cli.PrintJSON(w, rec) // as show does what it is given for --json
				}
			}, nil
		})
}

// inQuotes is a text that others wrote, as a person sees it: escaped, cut.
func inQuotes(text string, limit int) string {
	return `"` + strings.ReplaceAll(cli.OneLine(text, limit), `"`, `\"`) + `"`
}

// quoted is a text out of memory in quotes, "" where there is none.
func quoted(d *memory.Data, limit int) string {
	switch {
	case d == nil:
		return ""
	case d.Text == "":
		return "(erased)"
	case d.Cut:
		return inQuotes(d.Text, limit) + "…"
	}
	return inQuotes(d.Text, limit)
}

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
	fmt.Fprintf(w, "%s  %s  %s  until %s\n", t.ID, t.Status, t.Kind, t.ExpiresAt)
	for _, o := range t.Outcomes {
		fmt.Fprintf(w, "  %s says %s\n", o.Proposition, cli.OneLine(o.Outcome, 64))
	}
	when(w, t.Result != "", "  its result is %s\n", t.Result)
}

// printView says what a claim is worth, on which words, and whether it may be
// used.
func printView(w io.Writer, v *memory.View) {
	fmt.Fprintf(w, "%s  %s: %s\n", v.ID, v.Status, abstentions[v.Abstention])
	fmt.Fprintf(w, "  because %s\n", because(v))
	if v.Level > 0 {
		fmt.Fprintf(w, "  rests on %s, trust %d", v.By, v.Level)
		when(w, v.Quote != nil, ": %s", quoted(v.Quote, 2000))
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "  the agent's words for it: %s\n", quoted(&v.Caption, 2000))
	if v.Predicate != "" {
		value := v.Entity
		if v.Object != nil {
			value = fmt.Sprintf("%s (%s)", inQuotes(v.Object.Value, 300), v.Object.Label)
		}
		fmt.Fprintf(w, "  %s %s %s  (%s)\n", v.Subject, v.Predicate, value, v.Slot)
	}
	printIDs(w, "observations", v.Observation)
	printIDs(w, "disputed by", v.Rivals)
	when(w, v.ReplacedBy != "", "  replaced by %s\n", v.ReplacedBy)
	when(w, v.Denied > 0, "  other values that are only reported: %d\n", v.Denied)
}

func memoryExplain() *cobra.Command {
	return reading("explain PROP", "Say why a claim is worth what it is, and what would change that",
		"Say why a claim is worth what it is: the rule, the words on it with their quotes, those too that\n"+
			"no longer count, the other values of the same question, and what would change it.",
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
	printView(w, &e.Proposition)
	for _, s := range e.Statements {
		fmt.Fprintf(w, "  said by %s  %s  trust %d  %s", cli.OneLine(s.Source, 120), s.Class, s.Level, s.RecordedAt)
		when(w, s.Observation != "", "  %s", s.Observation)
		when(w, s.Evidence != "", "  %s", cli.OneLine(s.Evidence, 80))
		when(w, s.Inference, "  does not bear it out")
		when(w, s.Resolution != "", "  no longer counts: %s", cli.OneLine(s.Resolution, 60))
		fmt.Fprintln(w)
		when(w, s.Quote != nil, "    %s\n", quoted(s.Quote, 400))
	}
	for _, o := range e.Values {
		fmt.Fprintf(w, "  another value: %s  %s  in the agent's words: %s\n", o.Proposition, o.Status, quoted(&o.Caption, 200))
	}
	for _, c := range e.Changes {
		fmt.Fprintf(w, "  it would stand otherwise if: %s\n", c)
	}
	printIDs(w, "decisions", e.Decisions)
	printIDs(w, "erased, so that they cannot be made again:", e.Unchecked)
	fmt.Fprintf(w, "  mode %s, policy %s\n", e.Mode, policyName(e.Policy))
}

func memoryTimeline() *cobra.Command {
	var from uint64
	var limit int
	c := reading("timeline ID", "Tell what happened to an entity, a slot or a proposition", "", exactly(1, "the id of an entity, a slot or a proposition"),
		func(x *memory.Reader, args []string) (any, func(io.Writer), error) {
			t := x.Timeline(args[0], from, limit)
			if len(t.Moments) == 0 {
				return nil, nil, notThere(args[0])
			}
			return t, func(w io.Writer) {
				for _, m := range t.Moments {
					fmt.Fprintf(w, "%s  dec_%d  %s %s", m.At, m.Record, m.What, m.ID)
					if m.State != "" {
						fmt.Fprintf(w, "  %s, because %s", m.State, stoodBecause(x, &m))
					} else {
						when(w, m.Other != "", " %s", m.Other)
					}
					when(w, m.Text != nil && m.What == "value", "  in the agent's words:")
					when(w, m.Text != nil, "  %s", quoted(m.Text, 200))
					fmt.Fprintln(w)
				}
				when(w, t.More, "and more: --from %d\n", t.Moments[len(t.Moments)-1].Record+1)
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
				for _, d := range p.Rejected {
					fmt.Fprintf(w, "dec_%d  %s  %s  refused (%s)  by %s\n", d.N, d.At, cli.OneLine(cmp.Or(d.Tool, "(unknown tool)"), 80), d.Reason, cli.OneLine(d.Principal, 80))
				}
				when(w, len(p.Contested)+len(p.Tests)+len(p.Rejected) == 0, "nothing waits\n")
			}, nil
		})
	c.Flags().IntVar(&limit, "limit", 20, "how many of each, `N`")
	return c
}

// rules says the rules of belief in words. A test holds that none is left out.
var rules = map[memory.Rule]string{
	memory.RuleEstablished: "the user or a trusted tool says so, and no word that counts as much says otherwise",
	memory.RuleContested:   "of two words that say otherwise the later one is of the lower level",
	memory.RuleReported:    "only those say so whom anybody can write to",
	memory.RuleUnverified:  "nothing that was seen says so: the agent does",
	memory.RuleReplaced:    "a later word of its level or a higher one says otherwise",
	memory.RuleErased:      "its words were erased",
}

func ruleWords(r memory.Rule) string {
	if w, ok := rules[r]; ok {
		return w + " (" + string(r) + ")"
	}
	return cli.OneLine(string(r), 80)
}

// because says why a claim stands as it does.
func because(v *memory.View) string {
	if v.Status == memory.Established && strings.HasPrefix(v.By, "dec_") {
		return "an operator upheld it (" + string(v.Rule) + ")"
	}
	return ruleWords(v.Rule)
}

// stoodBecause says why a claim came to stand as a moment of its timeline says, and who disputed it,
// who may be erased since.
func stoodBecause(x *memory.Reader, m *memory.Moment) string {
	out := ruleWords(m.Rule)
	if m.Other != "" {
		out += "; disputed by " + m.Other
		if erasedBy(x, m.Other) {
			out += ", erased since"
		}
	}
	return out
}

// erasedBy reports whether a claim is erased by now, as of whatever time a memory is read.
func erasedBy(x *memory.Reader, claim string) bool {
	now := *x
	now.AsOf = time.Time{}
	v, ok := now.View(claim)
	return ok && v.Status == memory.Gone
}

// abstentions says why there is no answer.
var abstentions = map[memory.Abstention]string{
	memory.NoAbstention:         "it may be used as an answer",
	memory.InsufficientEvidence: "it is no answer: too little supports it",
	memory.IsContested:          "it is no answer: it is contested",
	memory.WasReplaced:          "it is no answer: another value took its place",
	memory.WasErased:            "it is no answer: it was erased",
	memory.NothingKnown:         "nothing is known",
}

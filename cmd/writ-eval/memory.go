package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/eval/measures"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/memory"
)

// memoryResult is where the result goes that stands in the repository.
const memoryResult = "eval/results/memory_measures.json"

func memoryCommand() *cobra.Command {
	var out string
	var seeds []string
	var chains uint16
	var asJSON bool
	c := &cobra.Command{
		Use: "memory", Short: "Measure the memory offline: belief revision, poisoning, retrieval, linking",
		Long: "Replay generated chains of dated values through the memory, attack each of them in eight ways,\n" +
			"and beside it the same through the rules that other memories come down to, which are emulated\n" +
			"and labelled so. Ask its index questions whose evidence is known, and have it link names.\n" +
			"No network, no model, no clock. All data are generated here from the seeds; the result is a\n" +
			"file that is the same, byte for byte, for the same seeds.\n\n" +
			"Exit codes: 0 every target is met; 65 one is missed; 64 usage; 74 I/O.",
		Example: "  writ-eval memory\n  writ-eval memory --seeds 7 --chains 20 --out /dev/null",
		Args:    cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o := measures.Options{Memory: measures.Product(func() memory.Index { return mapstore.NewIndex() }), Chains: int(chains)}
			if chains == 0 {
				return cli.Fail(cli.ExitUsage, "writ-eval memory --help", "--chains: at least 1")
			}
			for _, s := range seeds {
				n, err := strconv.ParseUint(s, 10, 64)
				if err != nil || slices.Contains(o.Seeds, n) {
					return cli.Fail(cli.ExitUsage, "writ-eval memory --seeds 101,202", "--seeds: different whole numbers are expected, %s is not one", cli.Printable(s))
				}
				o.Seeds = append(o.Seeds, n)
			}
			tell, end := showProgress(c, "measuring…")
			last := -1
			o.Progress = func(done, of int) {
				if percent := 100 * done / of; percent != last {
					last = percent
					tell(fmt.Sprintf("measuring: %d %%", percent))
				}
			}
			r, err := measures.Run(o)
			end()
			if err != nil {
				return cli.Fail(cli.ExitData, "", "%w", err)
			}
			if err := tellResult(c, r.JSON, "--out", out, asJSON, func(w io.Writer) error { return printMemory(w, r, out) }); err != nil {
				return err
			}
			return memoryOutcome(r)
		},
	}
	own := make([]string, 0, 5)
	for _, s := range measures.Seeds() {
		own = append(own, strconv.FormatUint(s, 10))
	}
	c.Flags().StringVar(&out, "out", memoryResult, "write the result to `FILE`")
	c.Flags().StringSliceVar(&seeds, "seeds", own, "seeds `N,…` of the generated data")
	c.Flags().Uint16Var(&chains, "chains", measures.Chains, "`N` chains of values of each seed")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// memoryOutcome is nil only when every target is met.
func memoryOutcome(r *measures.Report) error {
	var missed []string
	for _, g := range r.Gates {
		if !g.Met {
			missed = append(missed, g.ID)
		}
	}
	if !r.Passed {
		return cli.Fail(cli.ExitData, "", "%d of %d targets missed: %s", len(missed), len(r.Gates), strings.Join(missed, ", "))
	}
	return nil
}

func rateOf(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }

func shareOf(s measures.Share) string {
	return fmt.Sprintf("%d of %d, %s [%s, %s]", s.Count, s.Of, rateOf(s.Rate), rateOf(s.Low), rateOf(s.High))
}

// printMemory prints what a person reads: belief revision and poisoning side
// by side, the rest below, and each target.
func printMemory(w io.Writer, r *measures.Report, out string) error {
	rate := rateOf
	fmt.Fprintf(w, "%d updates of %d chains, %d seeds; our own data. Rules marked * are emulated: a decision rule,\nno run of anybody's product. A read is one question; each attack comes after each update.\n\n",
		r.Updates, len(r.Seeds)*r.Chains, len(r.Seeds))
	line := func(name string, cells ...string) {
		fmt.Fprintf(w, "%-28s", name)
		for i, c := range cells {
			width := 8
			if i >= 5 && i < 5+len(measures.Attacks) {
				width = 6
			}
			fmt.Fprintf(w, "%*s", width, c)
		}
		fmt.Fprintln(w)
	}
	head := []string{"current", "stale", "flagged", "history", "k90"}
	for _, a := range measures.Attacks {
		head = append(head, a.ID)
	}
	fmt.Fprintf(w, "%-28s%40s   %s\n", "", "M2: reads that give", "M3: attacker's value given as usable (flip)")
	line("rule", append(head, "ΔlA6", "resist")...)
	for i := range r.Belief {
		b := &r.Belief[i]
		v := &b.Revision
		name := b.Name
		if b.Emulated {
			name += " *"
		}
		history, k90 := "-", "> "+strconv.Itoa(measures.MostSaid)
		if v.History != nil {
			history = rate(v.History.Rate)
		}
		if v.K90 > 0 {
			k90 = strconv.Itoa(v.K90)
		}
		cells := []string{rate(v.Current.Rate), rate(v.Stale.Rate), rate(v.Flagged.Rate), history, k90}
		lost := ""
		for _, p := range b.Poisoning {
			cells = append(cells, strconv.FormatFloat(p.Flip.Rate, 'f', 2, 64))
			if p.Attack == "A6" {
				lost = strconv.FormatFloat(p.DeltaLost, 'f', 2, 64)
			}
		}
		cells = append(cells, lost)
		if b.Resistance != nil {
			cells = append(cells, strconv.FormatFloat(b.Resistance.Rate, 'f', 2, 64))
		}
		line(name, cells...)
	}
	fmt.Fprintf(w, "\nOf %d reads each; A1 to A6 make the headline.", r.Updates)
	for i, a := range measures.Attacks {
		if i%4 == 0 {
			fmt.Fprint(w, "\n  ")
		}
		fmt.Fprintf(w, "%s %s; ", a.ID, a.Name)
	}
	fmt.Fprintln(w)
	for i := range r.Belief {
		b := &r.Belief[i]
		if b.Rule != measures.Strict && b.Rule != measures.ToolMay {
			continue // theirs are in the file
		}
		v := &b.Revision
		fmt.Fprintf(w, "\n%s\n  current   %s\n  flagged   %s, %d of them after a tool's word\n", b.Name, shareOf(v.Current), shareOf(v.Flagged), v.FlaggedTool)
		for _, p := range b.Poisoning {
			fmt.Fprintf(w, "  %s flip   %s; shown as if to be relied on %d; true value lost %d, without the attack %d\n", p.Attack, shareOf(p.Flip), p.Exposed.Count, p.Lost, p.LostBefore)
			if p.Attack == "A7" && p.Flip.Count > 0 {
				fmt.Fprintf(w, "            over what the user stated %d of %d\n", p.FlipOverUser, p.FlipOverUserOf)
			}
		}
	}
	ow := &r.OtherWords
	fmt.Fprintf(w, "\nM2 where %d of %d updates are stated in words the value does not stand in (decision 0011; no target):\n", ow.Other, ow.Updates)
	line("rule", "current", "stale", "flagged")
	for i := range ow.Belief {
		v := &ow.Belief[i].Revision
		name := ow.Belief[i].Name
		if ow.Belief[i].Emulated {
			name += " *"
		}
		line(name, rate(v.Current.Rate), rate(v.Stale.Rate), rate(v.Flagged.Rate))
	}
	if t := r.Retrieval; t != nil {
		fmt.Fprintf(w, "\nM1: BM25 of the product's index over %d conversations of our own, %d sessions, %d turns\n", t.Conversations, t.AllSessions, t.Turns)
		line("", "asked", "rec@5", "rec@10", "any@5", "any@10", "MRR", "nDCG")
		put := func(name string, f measures.Found) {
			line(name, strconv.Itoa(f.Questions), rate(f.Recall5), rate(f.Recall10), rate(f.Any5.Rate), rate(f.Any10.Rate), rate(f.MRR), rate(f.NDCG10))
		}
		for _, l := range []struct {
			name string
			of   *measures.Level
		}{{"session", &t.Sessions}, {"turn", &t.Turn}} {
			put("by "+l.name+", 1 to 4", l.of.Headline)
			put("  a word in common", l.of.Worded)
			put("  none in common", l.of.Unworded)
			for _, k := range l.of.Categories {
				put(fmt.Sprintf("  %d %s", k.Category, k.Name), k.Found)
			}
		}
	}
	if l := r.Linking; l != nil {
		fmt.Fprintf(w, "\nM4: names of our own\n  wrong links      %s; %d of them between two of the very same name\n  left unlinked    %s\n  of these, told   %s\n",
			shareOf(l.FalseMerge), l.OfNamesakes, shareOf(l.Unlinked), shareOf(l.Suggested))
		line("spelling", "named", "right", "wrong", "left", "told")
		for _, k := range l.Kinds {
			line(k.Kind, strconv.Itoa(k.Mentions), strconv.Itoa(k.Right), strconv.Itoa(k.Wrong), strconv.Itoa(k.Unlinked), strconv.Itoa(k.Suggested))
		}
	}
	fmt.Fprintln(w, "\nTargets")
	for _, g := range r.Gates {
		met := "met"
		if !g.Met {
			met = "MISSED"
		}
		_, err := fmt.Fprintf(w, "  %-7s%-22s %-14s %s (%s)\n", met, g.ID, g.Need, rate(g.Measured), g.Of)
		if err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, cli.Printable(out))
	return err
}

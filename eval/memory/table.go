package memory

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Table returns the report for a reader. All words in it are of the program and of
// the scenario files.
func (r *Report) Table() []byte {
	var b bytes.Buffer
	if r.Stages != nil {
		r.Stages.table(&b)
	}
	if r.Measures != nil {
		r.Measures.table(&b, len(r.Seeds))
	}
	b.WriteByte('\n')
	for _, g := range r.Gates {
		word := "met    "
		if !g.Met {
			word = "NOT MET"
		}
		fmt.Fprintf(&b, "gate %s %s: %s; %s (%s)\n", word, g.ID, g.Need, g.Got, g.Of)
	}
	return b.Bytes()
}

// table prints what the scenarios showed.
func (r *Stages) table(b *bytes.Buffer) {
	fmt.Fprintf(b, "%d scenarios, %d runs of stage 1 and %d of stage 2, seeds %s\n\n", r.Scenarios, r.RunsOf["1"], r.RunsOf["2"], strings.Trim(fmt.Sprint(r.Seeds), "[]"))
	for _, e := range r.Expected {
		fmt.Fprintf(b, "stage %d, %s: %d of %d expectations met\n", e.Stage, e.System, e.Met, e.Of)
	}
	if r.Only != Rulings {
		b.WriteByte('\n')
		r.figures(b)
	}
	if len(r.Compared) > 0 {
		fmt.Fprintf(b, "\n%s against %s\n", B5, B1)
		for _, c := range r.Compared {
			word := ""
			if c.Counts {
				word = "  reaches it"
			}
			fmt.Fprintf(b, "  %-28s%10s%10s%10s%s\n", c.Metric, number(c.B1), number(c.B5), number(c.Gain), word)
		}
	}
	b.WriteByte('\n')
	const shown = 5
	left := map[string]int{}
	for _, u := range r.Unmet {
		if left[u.System]++; left[u.System] <= shown {
			fmt.Fprintf(b, "not as expected: %s, %s at hour %s: %s of %s: want %s, got %s\n", u.System, u.Run, u.AtH, u.Claim, u.Of, u.Want, u.Got)
		}
	}
	for _, s := range r.Systems {
		if n := left[s.Name]; n > shown {
			fmt.Fprintf(b, "not as expected: %s: %d more, see --json\n", s.Name, n-shown)
		}
	}
	for _, f := range r.Faults {
		fmt.Fprintf(b, "fault: %s\n", f)
	}
}

// figures prints a line for each metric and a column for each system.
func (r *Stages) figures(b *bytes.Buffer) {
	var run []*Figures
	for i := range r.Systems {
		if r.Systems[i].Runs > 0 {
			run = append(run, &r.Systems[i])
		}
	}
	fmt.Fprintf(b, "%-28s", "")
	for _, f := range run {
		short, _, _ := strings.Cut(f.Name, "_")
		if f.Name == B501 {
			short = "B5 v01q"
		}
		fmt.Fprintf(b, "%9s", short)
	}
	b.WriteByte('\n')
	for _, m := range metrics {
		label := m.label
		if m.lower {
			label += " -"
		}
		fmt.Fprintf(b, "%-28s", label)
		for _, f := range run {
			var v *float64
			if x := f.Figures[m.name]; x != nil {
				v = &x.Value
			}
			fmt.Fprintf(b, "%9s", number(v))
		}
		b.WriteByte('\n')
	}
}

func number(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case *v >= 1000 || *v <= -1000:
		return fmt.Sprintf("%.0f", *v)
	}
	return fmt.Sprintf("%.3f", *v)
}

func rateOf(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }

func shareOf(s Share) string {
	return fmt.Sprintf("%d of %d, %s [%s, %s]", s.Count, s.Of, rateOf(s.Rate), rateOf(s.Low), rateOf(s.High))
}

// table prints what a person reads of the measures: belief revision and poisoning
// side by side, the rest below; each attack, question and spelling by itself is in
// the file.
func (r *Measures) table(w *bytes.Buffer, seeds int) {
	rate := rateOf
	fmt.Fprintf(w, "%d updates of %d chains, %d seeds; our own data. Rules marked * are emulated: a decision rule,\nno run of anybody's product. A read is one question; each attack comes after each update.\n\n",
		r.Updates, seeds*r.Chains, seeds)
	line := func(name string, cells ...string) {
		fmt.Fprintf(w, "%-28s", name)
		for i, c := range cells {
			width := 8
			if i >= 5 && i < 5+len(Attacks) {
				width = 6
			}
			fmt.Fprintf(w, "%*s", width, c)
		}
		fmt.Fprintln(w)
	}
	head := []string{"current", "stale", "flagged", "history", "k90"}
	for _, a := range Attacks {
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
		history, k90 := "-", "> "+strconv.Itoa(MostSaid)
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
	for i, a := range Attacks {
		if i%4 == 0 {
			fmt.Fprint(w, "\n  ")
		}
		fmt.Fprintf(w, "%s %s; ", a.ID, a.Name)
	}
	fmt.Fprintln(w)
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
		put := func(name string, f Found) {
			line(name, strconv.Itoa(f.Questions), rate(f.Recall5), rate(f.Recall10), rate(f.Any5.Rate), rate(f.Any10.Rate), rate(f.MRR), rate(f.NDCG10))
		}
		for _, l := range []struct {
			name string
			of   *Level
		}{{"session", &t.Sessions}, {"turn", &t.Turn}} {
			put("by "+l.name+", 1 to 4", l.of.Headline)
			put("  a word in common", l.of.Worded)
			put("  none in common", l.of.Unworded)
		}
	}
	if l := r.Linking; l != nil {
		fmt.Fprintf(w, "\nM4: names of our own\n  wrong links      %s; %d of them between two of the very same name\n  left unlinked    %s\n  of these, told   %s\n",
			shareOf(l.FalseMerge), l.OfNamesakes, shareOf(l.Unlinked), shareOf(l.Suggested))
	}
}

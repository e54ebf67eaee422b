package memory

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Table is the report for people.
func (r *Report) Table() []byte {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	name := func(id string) string { return r.named(id, " (emulated rule)") }
	for _, t := range []struct {
		of   string
		rows []Revision
	}{{"Belief revision", r.Plain}, {"Belief revision, every fifth correction in another spelling", r.Spelled}} {
		if len(t.rows) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s: %d chains, %d reads\n", t.of, t.rows[0].Chains, t.rows[0].Slot.Reads)
		fmt.Fprintln(w, "\tcurrent\tstale\tflagged\tstale beside\tof one level\tin words\tthat correction\thistory\tkept a year")
		for _, x := range t.rows {
			history := "none"
			if x.History != nil {
				history = rate(x.History.Rate)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name(x.ID), rate(x.Slot.Current.Rate), rate(x.Slot.Stale.Rate), rate(x.Slot.Flagged.Rate), rate(x.Slot.Beside.Rate),
				rate(x.Aimed.Current.Rate), rate(x.Words.Current.Rate), rate(x.Spelled.Current.Rate), history, rate(x.Kept.Rate))
		}
		var parts []string
		for _, p := range append(append([]Part(nil), t.rows[0].Channels...), t.rows[0].Gaps...) {
			parts = append(parts, p.Name+" "+rate(p.Current.Rate))
		}
		fmt.Fprintf(w, "current, %s: %s\n\n", t.rows[0].Name, strings.Join(parts, ", "))
	}
	if len(r.Attacks) > 0 {
		fmt.Fprintf(w, "An attacker who drives all tools: sequences of %d, in %d worlds, after which\n\tfalsehood\tburied\tstranger\tcropped\tof another name\theld before\n", r.Attacks[0].Sequences, r.Attacks[0].Worlds)
		for _, x := range r.Attacks {
			fmt.Fprint(w, name(x.System))
			for _, g := range x.Reached {
				fmt.Fprintf(w, "\t%d", g.Sequences)
			}
			fmt.Fprintf(w, "\t%d of %d\n", x.Held.Count, x.Held.Of)
		}
		for _, x := range r.Attacks[0].Reached {
			for _, how := range slices.Sorted(maps.Keys(x.By)) {
				fmt.Fprintf(w, "%s: %s, %s\t%d\n", r.Systems[0].Name, x.Goal, how, x.By[how])
			}
		}
		fmt.Fprintln(w)
	}
	for i, x := range r.Whose {
		if i == 0 {
			fmt.Fprintf(w, "Sentences of the user that say I: of something else %d, of himself %d, of which count as his\n\tof something else\tof himself\n", x.Others.Of, x.Own.Of)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\n", name(x.System), x.Others.Count, x.Own.Count)
	}
	if len(r.Whose) > 0 {
		fmt.Fprintln(w)
	}
	if len(r.Recall) > 0 {
		fmt.Fprintln(w, "Recall\tturns\tclaims\tsession@5\tturn@10\tMRR")
		for _, x := range r.Recall {
			fmt.Fprintf(w, "%s, %s\t%d\t%d\t%s\t%s\t%s\n", name(x.System), x.Data, x.Turns, x.Claims, rate(x.Session5), rate(x.Turn10), rate(x.MRR))
		}
		fmt.Fprintln(w)
	}
	for _, g := range r.Gates {
		met := "met"
		if !g.Met {
			met = "NOT MET"
		}
		fmt.Fprintf(w, "gate %s\t%s\t%s\tneeds %s\n", met, g.ID, g.Got, g.Need)
	}
	_ = w.Flush() // a buffer takes everything
	return b.Bytes()
}

// named is a system's name, with a mark where it is emulated.
func (r *Report) named(id, mark string) string {
	s := r.Systems[slices.IndexFunc(r.Systems, func(s System) bool { return s.ID == id })]
	if s.Emulated {
		return s.Name + mark
	}
	return s.Name
}

func rate(x float64) string { return fmt.Sprintf("%.3f", x) }

package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/store/sqlite"
)

func auditTail() *cobra.Command {
	var f flags
	var newest int
	c := f.take(&cobra.Command{
		Use: "tail [SESSION]", Short: "Show decisions as they are made, a line each",
		Long: "List the newest decisions, of all sessions or of one, and go on with those that any process\n" +
			"puts on record in the state directory, within a second or two, until Ctrl-C or until nobody\n" +
			"reads on. With --json each line is one object, as `writ audit show --json` lists them.",
		Args: needs("", "at most one session, and -n 0 or more", func(args []string) bool { return len(args) <= 1 && newest >= 0 }),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, of := c.Context(), ""
			dir, st, err := toExplain(ctx, f.state)
			if err != nil {
				return err
			}
			defer func() { st.Close() }()
			if len(args) == 1 {
				if of, err = publicID(ctx, st, dir, args[0]); err != nil {
					return err
				}
			}
			var fresh []shownDecision
			seen := map[string]uint64{} // the newest record of each session
			err = eachRecord(ctx, st, of, func(rec *audit.Record) {
				seen[rec.Session] = rec.N
				if d, ok := shown(rec); ok {
					fresh = append(fresh, d)
					fresh = fresh[max(0, len(fresh)-newest):]
				}
			})
			tick := time.NewTicker(watchEvery)
			defer tick.Stop()
			for err == nil {
				for _, d := range fresh {
					if !f.json {
						d.printLine(c.OutOrStdout())
					} else if err := cli.PrintLine(c.OutOrStdout(), d); err != nil {
						return err
					}
				}
				select {
				case <-ctx.Done():
					return nil
				case <-tick.C:
				}
				fresh, err = decidedSince(ctx, st, of, seen)
				if st.Disturbed() { // it was found in nobody's use, and is used now
					again, oerr := openForReading(dir)
					if oerr != nil {
						return oerr
					}
					st.Close()
					st = again
					var more []shownDecision
					more, err = decidedSince(ctx, st, of, seen)
					fresh = append(fresh, more...)
				}
			}
			if ctx.Err() != nil {
				return nil
			}
			return err
		},
	}, "state", "json")
	c.Flags().IntVarP(&newest, "newest", "n", 10, "how many to begin with, the newest `N`")
	return c
}

// decidedSince are the decisions behind what was seen of each session, in the order of the
// log; of one session, or of all. Where it fails nothing was seen.
func decidedSince(ctx context.Context, st *sqlite.Store, of string, seen map[string]uint64) ([]shownDecision, error) {
	type at struct {
		index int64
		shownDecision
	}
	var all []at
	now := map[string]uint64{}
	for h, err := range st.Heads(ctx) {
		if err != nil {
			return nil, unreadable(err)
		}
		if of != "" && h.Session != of || h.N <= seen[h.Session] {
			continue
		}
		for it, err := range st.Read(ctx, h.Session, seen[h.Session]+1) {
			if err != nil {
				return nil, unreadable(err)
			}
			rec, err := audit.ParseRecord(it.Leaf)
			if err != nil {
				return nil, cli.Fail(cli.ExitData, "writ audit verify", "record %d cannot be read", it.Index)
			}
			now[h.Session] = rec.N
			if d, ok := shown(rec); ok {
				all = append(all, at{it.Index, d})
			}
		}
	}
	maps.Copy(seen, now)
	slices.SortFunc(all, func(a, b at) int { return int(a.index - b.index) })
	out := make([]shownDecision, len(all))
	for i, d := range all {
		out[i] = d.shownDecision
	}
	return out, nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/story"
)

func auditShow() *cobra.Command {
	var f flags
	var open bool
	c := f.take(&cobra.Command{
		Use: "show [SESSION/N | SESSION]", Short: "Explain one decision, or list the newest",
		Long: "Explain one decision in words. Its id stands in each answer's _meta and in the list\n" +
			"that `writ audit show` prints without an id. Of an accepted act it tells where each value\n" +
			"came from. A session is named by its public id, or as it is kept. With --unsettled the acts\n" +
			"are listed of which no record says whether they happened, in sessions that are not closed; those\n" +
			"that a gateway is still at are marked: under way.",
		Args: needs("", "at most one name, and no decision with --unsettled", func(args []string) bool {
			return len(args) == 0 || len(args) == 1 && !(open && strings.Contains(args[0], "/"))
		}),
		RunE: f.onLog(toExplain, func(c *cobra.Command, dir string, st *sqlite.Store, args []string) error {
			if len(args) == 0 {
				return f.showDecisions(c, dir, st, "", open)
			}
			of, n, one := strings.Cut(args[0], "/")
			of, err := publicID(c.Context(), st, dir, of)
			if err != nil {
				return err
			}
			if !one {
				return f.showDecisions(c, dir, st, of, open)
			}
			d, err := f.explained(c.Context(), st, dir, of, n, 0)
			if err != nil {
				return err
			}
			return f.show(c, d, d.Print)
		}),
	}, "state", "json")
	c.Flags().BoolVar(&open, "unsettled", false, "list the acts whose outcome is not known")
	return c
}

// showDecisions lists those of a session, or the newest of all; open lists the acts whose outcome
// is not known.
func (f *flags) showDecisions(c *cobra.Command, dir string, st *sqlite.Store, of string, open bool) error {
	list := decisions
	if open {
		list = unsettled
	}
	all, err := list(c.Context(), st, of)
	if err != nil {
		return err
	}
	if open && len(all) > 0 {
		now, mute := f.running(c.Context())
		for _, m := range mute {
			fmt.Fprintf(c.ErrOrStderr(), "writ: %s: which of these are under way there is not known\n", cli.OneLine(m, 200))
		}
		left := markUnderWay(all, now)
		when(c.ErrOrStderr(), left != "", "writ: once somebody looked where it would show: %s, or --not\n", withWhere(c, "writ audit settle "+left+" --happened"))
	}
	var session *sessionLine
	if of != "" {
		if session, err = sessionOf(c.Context(), st, dir, of); err != nil {
			return unreadable(err)
		}
	}
	return f.show(c, all, func(w io.Writer) {
		when(w, session != nil, "%s\n", session)
		when(w, len(all) == 0, "no decisions\n")
		for _, d := range all {
			d.PrintLine(w)
		}
	})
}

// explained is story.Explain, with what the gateways that run and the register of sessions
// say of it.
func (f *flags) explained(ctx context.Context, st *sqlite.Store, dir, session, num string, within uint64) (*story.Explained, error) {
	d, err := story.Explain(ctx, st, session, num, within)
	if err != nil {
		return nil, err
	}
	if d.Result == nil && d.Passed() {
		now, _ := f.running(ctx)
		act := []story.Line{d.Line}
		markUnderWay(act, now)
		d.Line = act[0]
	}
	of, err := sessionOf(ctx, st, dir, session)
	if err != nil {
		return nil, unreadable(err)
	}
	if of != nil {
		d.Session = of
	}
	return d, nil
}

const listed = 50

// decisions are those of a session, or the newest of all.
func decisions(ctx context.Context, st *sqlite.Store, session string) ([]story.Line, error) {
	most := listed
	if session != "" {
		most = math.MaxInt
	}
	all, _, err := tailOf(ctx, st, session, most)
	return append([]story.Line{}, all...), err
}

func auditTail() *cobra.Command {
	var f flags
	var newestN int
	c := f.take(&cobra.Command{
		Use: "tail [SESSION]", Short: "Show decisions as they are made, a line each",
		Long: "List the newest decisions, of all sessions or of one, and go on with those that any process\n" +
			"puts on record in the state directory, within a second or two, until Ctrl-C or until nobody\n" +
			"reads on. With --json each line is one object, as `writ audit show --json` lists them.",
		Args: needs("", "at most one session, and -n 0 or more", func(args []string) bool { return len(args) <= 1 && newestN >= 0 }),
		RunE: func(c *cobra.Command, args []string) error {
			show := func(all []story.Line) error {
				for _, d := range all {
					if !f.json {
						d.PrintLine(c.OutOrStdout())
					} else if err := cli.PrintLine(c.OutOrStdout(), d); err != nil {
						return err
					}
				}
				return nil
			}
			ctx, of := c.Context(), ""
			dir, st, err := toExplain(ctx, f.state)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				of, err = publicID(ctx, st, dir, args[0])
			}
			var fresh []story.Line
			var seen int64
			if err == nil {
				fresh, seen, err = tailOf(ctx, st, of, newestN)
			}
			if err == nil {
				err = show(fresh)
			}
			if err != nil {
				st.Close()
				return err
			}
			_, err = tail(ctx, dir, st, of, seen, show)
			return err
		},
	}, "state", "json")
	c.Flags().IntVarP(&newestN, "newest", "n", 10, "how many to begin with, the newest `N`")
	return c
}

// tail hands on the decisions from an index of the log on, of one session or of all, as they
// are made, until that fails or the context ends. It closes the store, and returns how far it came.
func tail(ctx context.Context, dir string, st *sqlite.Store, of string, seen int64, each func([]story.Line) error) (int64, error) {
	defer func() { st.Close() }()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return seen, nil
		case <-tick.C:
		}
		fresh, size, err := decidedSince(ctx, st, of, seen)
		if st.Disturbed() { // it was found in nobody's use, and is used now
			again, oerr := openForReading(dir)
			if oerr != nil {
				return seen, oerr
			}
			st.Close()
			st = again
			var more []story.Line
			more, size, err = decidedSince(ctx, st, of, size)
			fresh = append(fresh, more...)
		}
		if err == nil && len(fresh) > 0 {
			err = each(fresh)
		}
		if ctx.Err() != nil {
			return seen, nil
		}
		if err != nil {
			return seen, err
		}
		seen = size
	}
}

// tailOf are the newest so many decisions of a session, or of all, and how many records
// the log has then.
func tailOf(ctx context.Context, st *sqlite.Store, session string, most int) (all []story.Line, size int64, err error) {
	if session == "" {
		return story.Newest(ctx, st, most)
	}
	if _, size, err = story.Newest(ctx, st, 0); err != nil {
		return nil, 0, err
	}
	err = story.Each(st.Records(ctx, session), func(it *audit.Item, rec *audit.Record) {
		if d, ok := story.Of(rec); ok && it.Index < size {
			all = append(all, d)
		}
	})
	return all[max(0, len(all)-most):], size, err
}

// decidedSince are the decisions from an index of the log on, of one session or of all, and
// how many records the log has.
func decidedSince(ctx context.Context, st *sqlite.Store, of string, from int64) (all []story.Line, size int64, err error) {
	size = from
	err = story.Each(st.Log(ctx, from), func(it *audit.Item, rec *audit.Record) {
		size = it.Index + 1
		if d, ok := story.Of(rec); ok && (of == "" || rec.Session == of) {
			all = append(all, d)
		}
	})
	return all, size, err
}

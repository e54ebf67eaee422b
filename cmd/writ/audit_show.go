package main

import (
	"context"
	"fmt"
	"io"
	"strings"

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
	if session == "" {
		all, _, err := story.Newest(ctx, st, listed)
		return all, err
	}
	all := []story.Line{}
	err := story.Each(st.Records(ctx, session), func(_ *audit.Item, rec *audit.Record) {
		if d, ok := story.Of(rec); ok {
			all = append(all, d)
		}
	})
	return all, err
}

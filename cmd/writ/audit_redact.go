package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/text"
)

// redacted is one session of `writ audit redact --json`.
type redacted struct {
	Session string    `json:"session"`
	Last    time.Time `json:"last"`         // when it was used last
	ID      string    `json:"id,omitempty"` // of the record that says so
}

// redactionReason is a word that stays on record, and holds no value.
var redactionReason = text.Pattern(`^[a-z][a-z0-9_-]{0,63}$`)

// redaction is which sessions are redacted, and how.
type redaction struct {
	flags
	days                 int
	why                  string
	yes, preview, shrink bool
}

func auditRedact() *cobra.Command {
	var x redaction
	c := x.take(&cobra.Command{
		Use: "redact {SESSION … | --days N} [--reason WORD]", Short: "Take what was said and returned in ended sessions out of the log",
		Long: "Take the values of ended sessions out of the log for good: arguments, results, the user's\n" +
			"words, answers. That it was done, when and with which WORD is put on record first, and stays,\n" +
			"with the tools that were called, when, with what effect and outcome: the log verifies as\n" +
			"before, and these decisions are counted and not made again. `writ audit prove` makes the\n" +
			"receipt of it. A session has ended when it was closed, by its client or by `writ session\n" +
			"close`, or was not used for a day; --days N means those of them that were used last, or\n" +
			"closed, so many days ago or more.\n\n" +
			"It does not reach copies of the state directory, bundles (`writ audit export`), what the\n" +
			"memory captured (`writ memory erase --session`), nor which places of a server were written to.\n" +
			"The room is used again; with --shrink the file gets smaller, which takes as much room once more.",
		Example: "  writ audit redact --days 90 --reason retention",
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) > 0) == (x.days > 0) || x.days < 0 {
				return cli.Fail(cli.ExitUsage, "writ audit redact --days 90", "sessions are needed, or --days and a number from 1")
			}
			if !redactionReason().MatchString(x.why) {
				return cli.Fail(cli.ExitUsage, "writ audit redact … --reason user-request", "--reason is a lower-case word; it stays in the log")
			}
			return nil
		},
		RunE: x.onLog(toAppend, x.run),
	}, "state", "json")
	c.Flags().IntVar(&x.days, "days", 0, "sessions that ended `N` days ago or more")
	c.Flags().StringVar(&x.why, "reason", "retention", "`WORD` that says why; it stays in the log")
	c.Flags().BoolVar(&x.preview, "preview", false, "say which, and do nothing")
	c.Flags().BoolVar(&x.shrink, "shrink", false, "make the file smaller after it")
	c.Flags().BoolVar(&x.yes, "yes", false, "do not ask")
	return c
}

func (x *redaction) run(c *cobra.Command, dir string, st *sqlite.Store, args []string) error {
	ctx, now := c.Context(), time.Now()
	all, err := redactable(ctx, st, dir, args, now, time.Duration(x.days)*24*time.Hour)
	if err != nil {
		return err
	}
	if x.preview || len(all) == 0 {
		return x.show(c, all, func(w io.Writer) {
			when(w, x.days > 0, "used last before %s:\n", now.AddDate(0, 0, -x.days).Format(time.RFC3339))
			for _, r := range all {
				fmt.Fprintf(w, "%s  last used %s\n", r.Session, r.Last.Format(time.RFC3339))
			}
			fmt.Fprintf(w, "to be redacted: %s\n", cli.Number(len(all), "session", "sessions"))
		})
	}
	if err := confirm(c, x.yes, fmt.Sprintf("take what was said and returned in %s out of the log for good?", cli.Number(len(all), "session", "sessions"))); err != nil {
		return err
	}
	done, altered, err := redactEach(ctx, st, dir, all, x.why, now)
	if err != nil {
		return err
	}
	if x.shrink {
		if err := st.Shrink(ctx); err != nil {
			return cli.Fail(cli.ExitIO, "the same command without --shrink", "they are redacted, and the file keeps its size: %w", err)
		}
	}
	err = x.show(c, done, func(w io.Writer) {
		for _, r := range done {
			fmt.Fprintf(w, "%s  redacted\n", r.ID)
		}
		if len(done) > 0 {
			fmt.Fprintf(w, "`writ audit prove %s -o FILE` is the receipt\n", done[0].ID)
		}
	})
	if err == nil && len(altered) > 0 {
		err = cli.Fail(cli.ExitData, "writ audit verify", "%s was altered on disk: it is kept as it is, and so are %d others; %d are redacted", altered[0], len(altered)-1, len(done))
	}
	return err
}

// redactEach redacts sessions, but for those that were altered: their end is right, and all of
// them is read now.
func redactEach(ctx context.Context, st *sqlite.Store, dir string, all []redacted, why string, now time.Time) (done []redacted, altered []string, err error) {
	done = []redacted{}
	for _, r := range all {
		n, err := gateway.Redact(ctx, st, statedir.Snapshots(dir), r.Session, why, now)
		if errors.Is(err, gateway.ErrAlteredSession) {
			altered = append(altered, r.Session)
			continue
		} else if err != nil {
			return nil, nil, cli.Fail(cli.ExitIO, "writ audit redact "+r.Session, "%s could not be redacted, %d others are: %w", r.Session, len(done), err)
		}
		r.ID = fmt.Sprintf("%s/%d", r.Session, n)
		done = append(done, r)
	}
	return done, altered, nil
}

// redactable are the sessions that are named, or those that ended so long ago.
func redactable(ctx context.Context, st *sqlite.Store, dir string, named []string, now time.Time, ago time.Duration) ([]redacted, error) {
	all := []redacted{}
	if len(named) == 0 {
		for e, err := range gateway.EndedSessions(ctx, st, now) {
			if err != nil {
				return nil, unreadable(err)
			}
			if (!e.Redacted || e.Left) && now.Sub(e.Last) >= ago {
				all = append(all, redacted{Session: e.Session, Last: e.Last})
			}
		}
		return all, nil
	}
	for _, name := range named {
		id, err := publicID(ctx, st, dir, name)
		if err != nil {
			return nil, err
		}
		e, err := gateway.EndedSession(ctx, st, id, now)
		switch {
		case errors.Is(err, gateway.ErrOpen):
			return nil, cli.Fail(cli.ExitData, "writ session close "+cli.Printable(name)+" && writ audit redact "+id, "%s is open: what it saw is still needed", id)
		case errors.Is(err, gateway.ErrAlteredSession):
			return nil, cli.Fail(cli.ExitData, "writ audit verify", "%s was altered on disk: it is kept as it is", id)
		case errors.Is(err, audit.ErrNotFound):
			return nil, notFound(err)
		case err != nil:
			return nil, unreadable(err)
		}
		all = append(all, redacted{Session: id, Last: e.Last})
	}
	return all, nil
}

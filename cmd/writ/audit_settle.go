package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/story"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// settledAct is what was put on record of an act.
type settledAct struct {
	ID       string `json:"id"`
	Happened bool   `json:"happened"`
	By       string `json:"by"`
}

func auditSettle() *cobra.Command {
	var f flags
	var happened, not bool
	c := f.take(&cobra.Command{
		Use: "settle SESSION/N {--happened | --not}", Short: "Say of an act whose outcome is unknown whether it happened",
		Long: "A call that was sent, and that no answer came of, may have happened. Until it is known, an act\n" +
			"that must not be made twice (idempotent: false) is refused when it is asked for again. A person\n" +
			"who looked where it would show says so here; `writ audit show --unsettled` lists those acts.\n\n" +
			"With --not the same act may be asked for again, once. With --happened the refusal says that a\n" +
			"person confirmed it. What the call sent counts as sent in either case, and what it used up (a\n" +
			"budget, a code, a yes) as used up. It stands in the log, with the account's name, and cannot be\n" +
			"said twice.\n\n" +
			"It is for a person at a terminal of his own: who descends from a client, from a gateway that\n" +
			"runs, or from a server of it is not heard.",
		Args: needs("writ audit show --unsettled", "the id of one decision, s_…/7, and --happened or --not", func(args []string) bool {
			return len(args) == 1 && strings.Contains(args[0], "/") && happened != not
		}),
		RunE: f.inState(func(c *cobra.Command, dir string, args []string) error {
			ctx := c.Context()
			of, num, _ := strings.Cut(args[0], "/")
			n, err := strconv.ParseUint(num, 10, 64)
			if err != nil {
				return cli.Fail(cli.ExitUsage, "writ audit show --unsettled", "a decision's id looks like s_…/7")
			}
			st, err := openStore(ctx, dir)
			if err != nil {
				return err
			}
			defer st.Close()
			id, err := publicID(ctx, st, dir, of)
			if err != nil {
				return err
			}
			if _, err := st.SessionByID(ctx, id); err != nil {
				return notFound(err)
			}
			if err := f.maySettle(ctx, dir, id, n); err != nil {
				return err
			}
			g, err := gateway.New(gateway.Options{Store: st, Policy: noTools(), Version: readBuildInfo().Version})
			if err != nil {
				return cli.Fail(cli.ExitIO, "", "%w", err)
			}
			defer g.Close()
			said := settledAct{ID: id + "/" + num, Happened: happened, By: account()}
			var none *gateway.NotSettledError
			switch err := g.Settle(ctx, id, n, happened, said.By); {
			case errors.As(err, &none):
				return cli.Fail(cli.ExitData, "writ audit show "+said.ID, "nothing was settled: %s", none.Why)
			case err != nil:
				return cli.Fail(cli.ExitIO, "writ audit verify", "it could not be recorded: %w", err)
			}
			return f.show(c, said, func(w io.Writer) {
				word := map[bool]string{true: "it happened", false: "it did not happen, and may be asked for again once"}[happened]
				fmt.Fprintf(w, "on record: %s: %s\n", cli.OneLine(said.ID, 80), word)
			})
		}),
	}, "state", "json")
	c.Flags().BoolVar(&happened, "happened", false, "it took place")
	c.Flags().BoolVar(&not, "not", false, "it did not")
	return c
}

// maySettle is an error unless whoever asks is at a terminal of his own, apart from the clients
// that are known here and from each gateway that runs; these are asked whether the act
// is under way, too. A gateway that was stopped can say nothing, so it is not for it alone.
func (f *flags) maySettle(ctx context.Context, dir, session string, n uint64) error {
	hint := "the same in a terminal window of your own"
	if err := localdoor.Aside(otherClients(dir, 0)...); err != nil {
		return cli.Fail(cli.ExitRefused, hint, "that is not heard: %w", err)
	}
	_, doors, err := f.reach(false)
	if err != nil {
		return err
	}
	b, _ := json.Marshal(settling{session, n}) // a text and a number
	for _, door := range doors {
		var no hookSaid
		switch status, err := exchange(ctx, door, "POST /settle", "", b, 1<<16, &no); {
		case err != nil:
			return err
		case status == http.StatusForbidden:
			return cli.Fail(cli.ExitRefused, hint, "that is not heard: %s", cli.OneLine(no.Error, 200))
		case status != http.StatusOK:
			return cli.Fail(cli.ExitData, "writ audit show "+session+"/"+strconv.FormatUint(n, 10), "nothing was settled: %s", cli.OneLine(no.Error, 200))
		}
	}
	return nil
}

// settling is the body of POST /settle. Nothing speaks against it where the answer has no error.
type settling struct {
	Session  string `json:"session"`
	Decision uint64 `json:"decision"`
}

// settleHandler is POST /settle of the local door: it says whether a person may settle an
// act as far as this gateway knows. Who may is who may answer there.
func settleHandler(g *gateway.Gateway, apart ...int) http.HandlerFunc {
	return replies(func(w http.ResponseWriter, r *http.Request) (int, any) {
		status, no := http.StatusOK, hookSaid{}
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1024))
		v, perr := strictjson.Parse(bytes.TrimSpace(b), strictjson.Limits{Bytes: 1024, Depth: 2, Leaves: 2, Number: 20})
		session, named := v.Get("session").Text()
		n, nerr := strconv.ParseUint(string(v.Get("decision").Raw()), 10, 64)
		kin := localdoor.Apart(r.Context(), apart...)
		switch {
		case kin != nil:
			status, no.Error = http.StatusForbidden, kin.Error()
		case cmp.Or(err, perr, nerr) != nil || !named || v.Len() != 2:
			status, no.Error = http.StatusBadRequest, `the body is {"session":"s_…","decision":N}`
		case g.UnderWay(session, n):
			status, no.Error = http.StatusConflict, gateway.WhyUnderWay
		}
		return status, no
	})
}

// unsettled are the decisions of acts that a person may settle, of a session or of all that
// may go on.
func unsettled(ctx context.Context, st *sqlite.Store, session string) (all []story.Line, err error) {
	ids := []string{session}
	if session == "" {
		ids = nil
		for reg, err := range st.ListSessions(ctx) {
			if err != nil {
				return nil, unreadable(err)
			}
			over, err := gateway.HasEnded(ctx, st, reg, time.Now())
			if err != nil {
				return nil, unreadable(err)
			}
			if !over {
				ids = append(ids, reg.ID)
			}
		}
	}
	all = []story.Line{}
	for _, id := range ids {
		acts, last, err := unsettledOf(ctx, st, id)
		if err != nil {
			return nil, err
		}
		if last != audit.KindClose && last != audit.KindRedact {
			all = append(all, acts...)
		}
	}
	slices.SortStableFunc(all, func(a, b story.Line) int { return a.Time.Compare(b.Time) })
	return all, nil
}

// unsettledOf are those of one session, though it is over, and the kind of its last record.
func unsettledOf(ctx context.Context, st *sqlite.Store, id string) (all []story.Line, last audit.Kind, err error) {
	u, acts := gateway.Unsettled{}, map[uint64]story.Line{}
	err = story.Each(st.Records(ctx, id), func(_ *audit.Item, rec *audit.Record) {
		if last = rec.Kind; last != audit.KindClose {
			u.Step(rec)
		}
		if d, ok := story.Of(rec); ok && u[id][rec.N] {
			acts[rec.N] = d
		}
	})
	for _, n := range slices.Sorted(maps.Keys(u[id])) {
		all = append(all, acts[n])
	}
	return all, last, err
}

// markUnderWay marks those that a gateway is still at, which nobody may settle, and returns
// one of the others, "" for none.
func markUnderWay(acts []story.Line, at []gatewayStatus) (left string) {
	for i := range acts {
		a := &acts[i]
		a.UnderWay = slices.ContainsFunc(at, func(g gatewayStatus) bool { return slices.Contains(g.UnderWay, a.ID) })
		if !a.UnderWay && left == "" {
			left = a.ID
		}
	}
	return left
}

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

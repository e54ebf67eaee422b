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
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/story"
	"github.com/writ-project/writ/internal/strictjson"
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
	b, err := json.Marshal(settling{session, n})
	if err != nil {
		return err
	}
	for _, door := range doors {
		var no refusedSettling
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

// settling is the body of POST /settle, and refusedSettling what is answered: nothing
// speaks against it where that is empty.
type settling struct {
	Session  string `json:"session"`
	Decision uint64 `json:"decision"`
}

type refusedSettling struct {
	Error string `json:"error,omitempty"`
}

// settleHandler is POST /settle of the local door: it says whether a person may settle an
// act as far as this gateway knows. Who may is who may answer there.
func settleHandler(g *gateway.Gateway, apart ...int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, no := http.StatusOK, refusedSettling{}
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
		answerJSON(w, status, no)
	}
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

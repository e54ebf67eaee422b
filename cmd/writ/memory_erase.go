package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/memory"
)

// erasurePreview is what `writ memory erase --preview --json` prints.
type erasurePreview struct {
	Namespace string `json:"namespace"`
	memory.Cascade
	// Transitions are claims that stand otherwise without it.
	Transitions []memory.Changed `json:"transitions"`
	// Evidence and Sessions are where the gateway itself saw the text.
	Evidence []string `json:"evidence"`
	Sessions []string `json:"sessions"`
	// Meant are the observations by which a proposition was named.
	Meant map[string][]string `json:"meant,omitempty"`
}

// erasing is what is to be erased.
type erasing struct {
	weighed
	what        memory.Selection
	claims      []string
	meant       map[string][]string // by the claims: the observations that bear them out
	reason, out string
}

func memoryErase() *cobra.Command {
	x := &erasing{weighed: weighed{command: memory.CommandErase, question: "erase this for good?"}}
	x.weighed.read, x.weighed.args, x.weighed.shown, x.weighed.done = x.read, x.args, x.shown, x.done
	c := &cobra.Command{
		Use:   "erase (--observation OBS | --proposition PROP | --source SOURCE | --session NAME|s_… | --principal NAME) --reason WORD",
		Short: "Erase what was observed, with everything that repeats it",
		Long: "Erase what was observed: by id, or all of a source, a session or a person. With it goes what\n" +
			"was concluded from it, the records that quote it, claims and names that rest on nothing else\n" +
			"or repeat a word nothing else bears out, and the text of all that was ever refused, for it may\n" +
			"repeat it. What goes is shown first. The log keeps salted digests only, so it still verifies, and\n" +
			"a signed receipt says what was erased and where copies may be that this did not reach: the\n" +
			"gateway's own record of a session is not touched (`writ audit redact`).",
		Example: "  writ memory erase --observation obs_12 --reason user-request --out receipt.txt",
		Args:    cli.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if err := erasable(&x.what, x.claims); err != nil {
				return err
			}
			if x.reason == "" && !x.dry {
				return cli.Fail(cli.ExitUsage, "writ memory erase … --reason user-request", "an erasure has a --reason, a lower-case word that stays in the log")
			}
			return unwritten(x.out)
		},
	}
	c.Flags().StringSliceVar(&x.what.Observations, "observation", nil, "observation `ID`; may be repeated")
	c.Flags().StringSliceVar(&x.claims, "proposition", nil, "proposition `ID`, for what bears it out; may be repeated")
	c.Flags().StringVar(&x.what.Source, "source", "", "everything of a `SOURCE`")
	c.Flags().StringVar(&x.what.Session, "session", "", "everything of a session, `NAME` or s_…")
	c.Flags().StringVar(&x.what.Principal, "principal", "", "everything by way of a person's sessions, `NAME`")
	c.Flags().StringVar(&x.reason, "reason", "", "`WORD` that says why; it stays in the log")
	c.Flags().StringVar(&x.out, "out", "", "new `FILE` for the receipt (default: standard output)")
	return x.take(c, "go")
}

// read looks up what the names of sessions and claims mean.
func (x *erasing) read(ctx context.Context, r *remembered) (err error) {
	if x.what.Session != "" {
		if x.what.Session, err = publicID(ctx, r.st, r.dir, x.what.Session); err != nil {
			return err
		}
	}
	return r.read(ctx, func(now *memory.Reader) error {
		x.meant, err = bearing(now.State, x.claims)
		for _, of := range x.meant {
			x.what.Observations = append(x.what.Observations, of...)
		}
		slices.Sort(x.what.Observations)
		x.what.Observations = slices.Compact(x.what.Observations)
		return err
	})
}

func (x *erasing) args([]string) []byte {
	return object("observation_ids", x.what.Observations, "source", x.what.Source, "session", x.what.Session, "principal", x.what.Principal,
		"reason", cmp.Or(x.reason, "preview"))
}

func (x *erasing) shown(now *memory.Reader, d *memory.Decision) (any, func(io.Writer), error) {
	for _, id := range x.what.Observations {
		if rec, ok := now.Get(id); !ok || rec.Observation == nil {
			return nil, nil, notThere(id)
		}
	}
	p := &erasurePreview{Namespace: now.State.Namespace(), Cascade: now.State.Cascade(x.what), Transitions: d.Outcome.Transitions, Meant: x.meant}
	p.Evidence, p.Sessions = now.State.Seen(p.Records, p.Observations)
	if len(p.Records) == 0 {
		return nil, nil, cli.Fail(cli.ExitData, "writ memory source list", "nothing of that was remembered")
	}
	return p, p.print, nil
}

func (x *erasing) done(c *cobra.Command, r *remembered, d *memory.Decision) error {
	msg, err := r.receipt(c.Context(), d.Event.N)
	if err != nil {
		return err
	}
	switch err := handOut(c, x.out, msg); {
	case err != nil:
		return cli.Fail(cli.ExitIO, "writ memory receipt issue "+d.Outcome.Decision, "it is erased; the receipt: %w", err)
	case x.out == "":
		return nil
	}
	return x.show(c, &d.Outcome, func(w io.Writer) {
		fmt.Fprintf(w, "erased by %s; receipt in %s\n", d.Outcome.Decision, cli.Printable(x.out))
		printTransitions(w, d.Outcome.Transitions)
	})
}

// erasable refuses a selection of nothing, and ids that stand at the flag for the others.
func erasable(what *memory.Selection, claims []string) error {
	wrong := slices.IndexFunc(what.Observations, isClaim)
	switch {
	case len(claims)+len(what.Observations) == 0 && what.Source == "" && what.Session == "" && what.Principal == "":
		return cli.Fail(cli.ExitUsage, "writ memory erase --observation obs_12 --reason user-request", "what is to be erased: --observation, --proposition, --source, --session or --principal")
	case wrong >= 0:
		return cli.Fail(cli.ExitUsage, "writ memory erase --proposition "+cli.OneLine(what.Observations[wrong], 40), "--observation takes an observation's id, obs_…; a claim's is for --proposition")
	case slices.ContainsFunc(claims, func(id string) bool { return !isClaim(id) }):
		return cli.Fail(cli.ExitUsage, "writ memory erase --observation OBS", "--proposition takes a claim's id, prop_…")
	}
	return nil
}

func isClaim(id string) bool { return strings.HasPrefix(id, "prop_") }

// bearing are the observations that bear claims out, by claim.
func bearing(s *memory.State, claims []string) (map[string][]string, error) {
	meant := map[string][]string{}
	for _, id := range claims {
		if meant[id] = s.Bearing(id); len(meant[id]) == 0 {
			return nil, notThere(id)
		}
	}
	return meant, nil
}

// unwritten refuses a name that a file has already.
func unwritten(out string) error {
	if _, err := os.Lstat(out); out != "" && err == nil {
		return cli.Fail(cli.ExitIO, "another name after --out", "%s is there already", cli.Printable(out))
	}
	return nil
}

// handOut writes a new file, or to standard output where none is named.
func handOut(c *cobra.Command, out string, b []byte) (err error) {
	if out == "" {
		_, err = c.OutOrStdout().Write(b)
	} else {
		err = private.WriteOnce(out, b, 0o600)
	}
	if err != nil {
		return errors.New("it cannot be written") // the system's words hold the name
	}
	return nil
}

func (p *erasurePreview) print(w io.Writer) {
	records := each(p.Records, func(n uint64) string { return fmt.Sprintf("dec_%d", n) })
	fmt.Fprintf(w, "from namespace %s, %d records: %s\n", p.Namespace, len(records), someOf(records))
	for _, id := range slices.Sorted(maps.Keys(p.Meant)) {
		printIDs(w, id+" means", p.Meant[id])
	}
	printIDs(w, "observations", p.Observations)
	printIDs(w, "propositions", p.Propositions)
	printIDs(w, "names of entities", p.Entities)
	printTransitions(w, p.Transitions)
	printIDs(w, "stay, and hold the same text (--observation takes them too)", p.Echoes)
	printIDs(w, "not touched: the gateway's record of the sessions", p.Sessions)
	printIDs(w, "not touched: what it saw there as", p.Evidence)
}

// receipt makes and signs the receipt of an erasure.
func (r *remembered) receipt(ctx context.Context, n uint64) ([]byte, error) {
	rec, err := r.erased(ctx, fmt.Sprintf("dec_%d", n))
	if err != nil {
		return nil, err
	}
	return r.signed(rec)
}

// erased is the receipt of the erasure of that name, unsigned.
func (r *remembered) erased(ctx context.Context, id string) (rec *memoryserver.Receipt, err error) {
	n, err := eventNumber(id)
	if err != nil {
		return nil, err
	}
	signer, _, err := logKey(r.dir)
	if err != nil {
		return nil, err
	}
	err = r.read(ctx, func(x *memory.Reader) error {
		var err error
		rec, err = memoryserver.NewReceipt(ctx, r.st, x.State, n, signer.Name())
		return err
	})
	if errors.Is(err, memoryserver.ErrNoErasure) {
		return nil, cli.Fail(cli.ExitData, "writ memory timeline ID", "dec_%d erased nothing", n)
	} else if err != nil {
		return nil, memoryBroken(err)
	}
	return rec, nil
}

// eventNumber is that of a decision's id.
func eventNumber(id string) (n uint64, err error) {
	digits, ok := strings.CutPrefix(id, "dec_")
	if n, err = strconv.ParseUint(digits, 10, 63); err != nil || !ok || n == 0 {
		return 0, cli.Fail(cli.ExitUsage, "writ memory receipt issue dec_12", "a decision's id looks like dec_12")
	}
	return n, nil
}

// signed is a receipt as it is handed out.
func (r *remembered) signed(rec *memoryserver.Receipt) ([]byte, error) {
	signer, _, err := logKey(r.dir)
	if err != nil {
		return nil, err
	}
	text, err := rec.Text()
	if err != nil {
		return nil, cli.Fail(cli.ExitIO, "", "%w", err)
	}
	msg, err := note.Sign(&note.Note{Text: text}, signer)
	if err != nil {
		return nil, cli.Fail(cli.ExitIO, "", "the receipt cannot be signed: %w", err)
	}
	return msg, nil
}

func receiptIssue() *cobra.Command {
	var f flags
	var n uint64
	return f.take(&cobra.Command{Use: "issue DEC", Short: "Finish an erasure that was cut off, and print its signed receipt again", Args: exactly(1, "the erasure's id, dec_…"),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			n, err = eventNumber(args[0])
			return err
		},
		RunE: f.with(toChange, func(c *cobra.Command, r *remembered, _ []string) error {
			e, err := eventAt(c.Context(), r.st, r.namespace, n)
			if err == nil && e != nil {
				err = r.keeper.Purge(c.Context(), e)
			}
			if err != nil {
				return cli.Fail(cli.ExitIO, "writ memory verify", "%w", err)
			}
			msg, err := r.receipt(c.Context(), n)
			if err != nil {
				return err
			}
			return f.show(c, issued{string(msg)}, func(w io.Writer) { w.Write(msg) })
		})}, ofMemory...)
}

// issued is the receipt as it stands in its file, signature and all.
type issued struct {
	Receipt string `json:"receipt"`
}

// receiptReport is what `writ memory receipt verify --json` prints.
type receiptReport struct {
	OK      bool                  `json:"ok"`
	Log     bool                  `json:"held_against_log"`
	Problem string                `json:"problem,omitempty"`
	Receipt *memoryserver.Receipt `json:"receipt,omitempty"`
}

func receiptVerify() *cobra.Command {
	var f flags
	var key string
	c := f.take(&cobra.Command{Use: "verify FILE", Short: "Check a receipt's signature, and that the log bears it out",
		Long: "Check the signature of a receipt with the log's key and hold it against the log: the erasure\n" +
			"is recorded there, the records it names have those digests, and none has its text. With\n" +
			"--key FILE, a copy of log.pub, the signature alone is checked, on any machine.",
		Args: exactly(1, "a receipt's file, or -"),
		RunE: func(c *cobra.Command, args []string) error {
			msg, err := readInput(args[0], "receipt", memoryserver.MaxReceipt, c.InOrStdin(), "")
			if err != nil {
				return err
			}
			rep, err := verifyReceipt(c.Context(), msg, f.state, key)
			if err != nil {
				return err
			}
			err = f.show(c, rep, func(w io.Writer) {
				if x := rep.Receipt; rep.OK {
					fmt.Fprintf(w, "ok: signed by %s\n%s erased %d records, %d observations, %d propositions, names of %d entities of namespace %s\n  at %s, by %s, reason %s\n",
						cli.OneLine(x.Log, 80), x.Decision, len(x.Records), len(x.Observations), len(x.Propositions), len(x.Entities),
						cli.OneLine(x.Namespace, 32), x.At, cli.OneLine(x.Authority, 80), cli.OneLine(x.Reason, 64))
					printIDs(w, "copies may be in", x.Gaps)
					when(w, !rep.Log, "  not held against the log\n")
				}
			})
			if err == nil && !rep.OK {
				err = cli.Fail(cli.ExitData, "writ audit verify", "the receipt does not hold: %s", rep.Problem)
			}
			return err
		}}, "state", "json")
	c.Flags().StringVar(&key, "key", "", "`FILE` of the log's public key, log.pub; the log itself is not needed then")
	return c
}

func verifyReceipt(ctx context.Context, msg []byte, state, key string) (rep *receiptReport, err error) {
	var v note.Verifier
	dir := ""
	if key != "" {
		b, err := config.ReadFile(key)
		if err != nil {
			return nil, config.Invalid(err)
		}
		if v, err = parseVerifier(key, string(b)); err != nil {
			return nil, err
		}
	} else if dir, err = existingState(state); err != nil {
		return nil, err
	} else if _, v, err = logKey(dir); err != nil {
		return nil, err
	}
	rep = &receiptReport{}
	rep.Receipt, err = openReceipt(msg, v)
	if err == nil && dir != "" {
		st, oerr := openForReading(dir)
		if oerr != nil {
			return nil, oerr
		}
		defer st.Close()
		if err = rep.Receipt.Check(ctx, st); err != nil && !errors.Is(err, memoryserver.ErrReceipt) {
			return nil, memoryBroken(err)
		}
		rep.Log = err == nil
	}
	if rep.OK = err == nil; err != nil {
		rep.Problem = err.Error()
	}
	return rep, nil
}

// openReceipt is a receipt that the log's key signed.
func openReceipt(msg []byte, v note.Verifier) (*memoryserver.Receipt, error) {
	n, err := note.Open(msg, note.VerifierList(v))
	if err != nil {
		return nil, errors.New("it is not signed by the key " + v.Name())
	}
	x, err := memoryserver.ParseReceipt(n.Text)
	if err != nil {
		return nil, err
	}
	if x.Log != v.Name() {
		return nil, errors.New("it is of another log")
	}
	return x, nil
}

// distrustReport is what `writ memory distrust --json` prints.
type distrustReport struct {
	Applied  bool   `json:"applied"`
	Decision string `json:"decision_id,omitempty"`
	Source   string `json:"source"`
	Since    string `json:"since"`
	// Observations that are retracted, those concluded from them too.
	Observations []string `json:"observations"`
	// Transitions are claims that stand otherwise without what the source said.
	Transitions []memory.Changed `json:"transitions"`
}

func memoryDistrust() *cobra.Command {
	x := weighed{command: memory.CommandDistrust, question: "apply this?"}
	var source, since string
	c := &cobra.Command{
		Use: "distrust SOURCE --since TIME", Short: "Retract what a source said since a time, and refuse it from now on",
		Long: "Recover from a poisoned source: what it said since TIME, and what was concluded from that, no\n" +
			"longer counts, and it is refused from now on. Which claims come to stand otherwise is shown\n" +
			"first. Nothing is deleted. `writ memory source resume` takes the source back.",
		Example: "  writ memory distrust web/fetch --since 2026-11-20T00:00:00Z",
		Args:    exactly(1, "one source, as writ memory get obs_… names it"),
		PreRunE: func(*cobra.Command, []string) error {
			if _, err := time.Parse(time.DateOnly, since); err == nil {
				since += "T00:00:00Z"
			}
			if _, err := time.Parse(time.RFC3339Nano, since); err != nil {
				return cli.Fail(cli.ExitUsage, "writ memory distrust SOURCE --since 2026-11-20T00:00:00Z", "--since takes a time as in RFC 3339, or a date")
			}
			return nil
		},
	}
	c.Flags().StringVar(&since, "since", "", "`TIME`, RFC 3339, by when it was recorded")
	report := func(d *memory.Decision) *distrustReport {
		rep := &distrustReport{Source: source, Since: since, Observations: []string{}, Transitions: d.Outcome.Transitions}
		for i := range d.Event.Ops {
			if o := d.Event.Ops[i].Distrust; o != nil {
				rep.Observations = append(rep.Observations, o.Observations...)
			}
		}
		return rep
	}
	x.args = func(args []string) []byte {
		source = args[0]
		return object("source", source, "since", since)
	}
	x.shown = func(_ *memory.Reader, d *memory.Decision) (any, func(io.Writer), error) {
		rep := report(d)
		return rep, func(w io.Writer) {
			fmt.Fprintf(w, "%d observations no longer count", len(rep.Observations))
			when(w, len(rep.Observations) > 0, ": %s", someOf(rep.Observations))
			fmt.Fprintln(w)
			printTransitions(w, rep.Transitions)
			when(w, len(rep.Transitions) == 0, "  no claim comes to stand otherwise\n")
		}, nil
	}
	x.done = func(c *cobra.Command, _ *remembered, d *memory.Decision) error {
		if !x.json {
			return printDecision(c.OutOrStdout(), &d.Outcome, false)
		}
		rep := report(d)
		rep.Applied, rep.Decision = true, d.Outcome.Decision
		return cli.PrintJSON(c.OutOrStdout(), rep)
	}
	return x.take(c, "change")
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	writ "github.com/writ-project/writ"
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
	// Evidence and Sessions are where the gateway itself saw the text.
	Evidence []string `json:"evidence"`
	Sessions []string `json:"sessions"`
}

func memoryErase() *cobra.Command {
	var f memoryFlags
	var sel memory.Selection
	var reason, out string
	var yes, preview bool
	c := &cobra.Command{
		Use:   "erase (--observation OBS | --source SOURCE | --session s_… | --principal NAME) --reason WORD",
		Short: "Erase what was observed, with everything that repeats it",
		Long: "Erase what was observed: by id, or all of a source, a session or a person. With it goes what\n" +
			"was concluded from it, the records that quote it, claims and names that rest on nothing else\n" +
			"or repeat a word nothing else bears out, and the text of all that was ever refused, for it may\n" +
			"repeat it. What goes is shown first. The log keeps salted digests only, so it still verifies, and\n" +
			"a signed receipt says what was erased and where copies may be that this did not reach: the\n" +
			"gateway's own record of a session is not touched.",
		Example: "  writ memory erase --observation obs_12 --reason user-request --out receipt.txt",
		Args:    cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if len(sel.Observations) == 0 && sel.Source == "" && sel.Session == "" && sel.Principal == "" {
				return cli.Fail(cli.ExitUsage, "writ memory erase --observation obs_12 --reason user-request", "what is to be erased: --observation, --source, --session or --principal")
			}
			if reason == "" && !preview {
				return cli.Fail(cli.ExitUsage, "writ memory erase … --reason user-request", "an erasure has a --reason, a lower-case word that stays in the log")
			}
			if out != "" {
				if _, err := os.Lstat(out); err == nil {
					return cli.Fail(cli.ExitIO, "another name after --out", "%s is there already", cli.Printable(out))
				}
			}
			r, err := f.open(c.Context(), toErase)
			if err != nil {
				return err
			}
			defer r.close()
			p, err := r.erasure(c.Context(), sel)
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if !f.asJSON {
				p.print(w)
			}
			switch {
			case len(p.Held) > 0:
				return cli.Fail(cli.ExitRefused, "writ memory retain "+p.Held[0]+" standard", "%s is under legal hold and rests on it: nothing is erased", p.Held[0])
			case preview && f.asJSON:
				return cli.PrintJSON(w, p)
			case preview:
				return nil
			}
			if err := confirm(c, yes, "erase this for good?"); err != nil {
				return err
			}
			args := object("observation_ids", sel.Observations, "source", sel.Source, "session", sel.Session, "principal", sel.Principal, "reason", reason)
			d, err := r.keeper.Operate(c.Context(), r.principal, memory.CommandErase, args)
			if err != nil {
				return cli.Fail(cli.ExitIO, "writ memory sweep", "the erasure may be recorded and not finished: %w", err)
			}
			if d.Outcome.Status == writ.Rejected {
				return printDecision(w, &d.Outcome, f.asJSON)
			}
			msg, err := r.receipt(c.Context(), d.Event.N)
			if err != nil {
				return err
			}
			if out == "" {
				_, err = w.Write(msg)
			} else if err = private.WriteOnce(out, msg, 0o600); err == nil && f.asJSON {
				return cli.PrintJSON(w, &d.Outcome)
			} else if err == nil {
				fmt.Fprintf(w, "erased by %s; receipt in %s\n", d.Outcome.Decision, cli.Printable(out))
				printTransitions(w, d.Outcome.Transitions)
			}
			if err != nil {
				return cli.Fail(cli.ExitIO, "writ memory receipt issue "+d.Outcome.Decision, "it is erased; the receipt cannot be written")
			}
			return nil
		},
	}
	f.register(c)
	c.Flags().StringSliceVar(&sel.Observations, "observation", nil, "observation `ID`; may be repeated")
	c.Flags().StringVar(&sel.Source, "source", "", "everything of a `SOURCE`")
	c.Flags().StringVar(&sel.Session, "session", "", "everything of a session, `s_…`")
	c.Flags().StringVar(&sel.Principal, "principal", "", "everything by way of a person's sessions, `NAME`")
	c.Flags().StringVar(&reason, "reason", "", "`WORD` that says why; it stays in the log")
	c.Flags().StringVar(&out, "out", "", "new `FILE` for the receipt (default: standard output)")
	c.Flags().BoolVar(&preview, "preview", false, "show what would go, and erase nothing")
	c.Flags().BoolVar(&yes, "yes", false, "erase without asking")
	return c
}

// erasure is what an erasure would take.
func (r *remembered) erasure(ctx context.Context, sel memory.Selection) (p *erasurePreview, err error) {
	err = r.read(ctx, func(x *memory.Reader) error {
		for _, id := range sel.Observations {
			if rec, ok := x.Get(id); !ok || rec.Observation == nil {
				return notThere(id)
			}
		}
		p = &erasurePreview{Namespace: r.namespace, Cascade: x.State.Cascade(sel), Evidence: []string{}, Sessions: []string{}}
		if len(p.Records) == 0 {
			return cli.Fail(cli.ExitData, "writ memory source list", "nothing of that was remembered")
		}
		seen := map[string]bool{}
		add := func(to *[]string, s string) {
			if s != "" && !seen[s] {
				seen[s] = true
				*to = append(*to, s)
			}
		}
		for _, id := range p.Observations {
			rec, _ := x.Get(id)
			add(&p.Evidence, rec.Observation.Evidence)
		}
		for _, n := range p.Records {
			if rec, ok := x.Get("dec_" + strconv.FormatUint(n, 10)); ok && strings.HasPrefix(rec.Decision.Session, "s_") {
				add(&p.Sessions, rec.Decision.Session)
			}
		}
		return nil
	})
	return p, err
}

func (p *erasurePreview) print(w io.Writer) {
	records := make([]string, len(p.Records))
	for i, n := range p.Records {
		records[i] = fmt.Sprintf("dec_%d", n)
	}
	fmt.Fprintf(w, "from namespace %s, %d records: %s\n", p.Namespace, len(records), someOf(records))
	printIDs(w, "observations", p.Observations)
	printIDs(w, "propositions", p.Propositions)
	printIDs(w, "names of entities", p.Entities)
	printIDs(w, "under legal hold", p.Held)
	printIDs(w, "stay, and hold the same text (--observation takes them too)", p.Echoes)
	printIDs(w, "not touched: the gateway's record of the sessions", p.Sessions)
	printIDs(w, "not touched: what it saw there as", p.Evidence)
}

// receipt makes and signs the receipt of an erasure.
func (r *remembered) receipt(ctx context.Context, n uint64) ([]byte, error) {
	signer, _, err := logKey(r.dir)
	if err != nil {
		return nil, err
	}
	var rec *memoryserver.Receipt
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

func memoryReceipts() *cobra.Command {
	c := &cobra.Command{Use: "receipt", Short: "Check the receipt of an erasure, or make it again",
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Fail(cli.ExitUsage, "writ memory receipt --help", "verify or issue")
		}}
	c.AddCommand(receiptVerify(), receiptIssue())
	return c
}

func receiptIssue() *cobra.Command {
	var f memoryFlags
	c := &cobra.Command{Use: "issue DEC", Short: "Print the signed receipt of an erasure again", Args: exactly(1, "the erasure's id, dec_…"),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.ParseUint(strings.TrimPrefix(args[0], "dec_"), 10, 63)
			if err != nil || !strings.HasPrefix(args[0], "dec_") {
				return cli.Fail(cli.ExitUsage, "writ memory receipt issue dec_12", "a decision's id looks like dec_12")
			}
			r, err := f.open(c.Context(), toRead)
			if err != nil {
				return err
			}
			defer r.close()
			msg, err := r.receipt(c.Context(), n)
			if err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(msg)
			return err
		}}
	f.register(c)
	c.Flags().Lookup("json").Hidden = true
	return c
}

// receiptReport is what `writ memory receipt verify --json` prints.
type receiptReport struct {
	OK      bool                  `json:"ok"`
	Log     bool                  `json:"held_against_log"`
	Problem string                `json:"problem,omitempty"`
	Receipt *memoryserver.Receipt `json:"receipt,omitempty"`
}

func receiptVerify() *cobra.Command {
	var state, key string
	var asJSON bool
	c := &cobra.Command{Use: "verify FILE", Short: "Check a receipt's signature, and that the log bears it out",
		Long: "Check the signature of a receipt with the log's key and hold it against the log: the erasure\n" +
			"is recorded there, the records it names have those digests, and none has its text. With\n" +
			"--key FILE, a copy of log.pub, the signature alone is checked, on any machine.",
		Args: exactly(1, "a receipt's file, or -"),
		RunE: func(c *cobra.Command, args []string) error {
			msg, err := readBounded(args[0], "receipt", memoryserver.MaxReceipt, c.InOrStdin())
			if err != nil {
				return err
			}
			rep, err := verifyReceipt(c.Context(), msg, state, key)
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			switch {
			case asJSON:
				if err := cli.PrintJSON(w, rep); err != nil {
					return err
				}
			case rep.OK:
				x := rep.Receipt
				fmt.Fprintf(w, "ok: signed by %s\n%s erased %d records, %d observations, %d propositions, names of %d entities of namespace %s\n  at %s, by %s, reason %s\n",
					cli.OneLine(x.Log, 80), x.Decision, len(x.Records), len(x.Observations), len(x.Propositions), len(x.Entities),
					cli.OneLine(x.Namespace, 32), x.At, cli.OneLine(x.Authority, 80), cli.OneLine(x.Reason, 64))
				printIDs(w, "copies may be in", x.Gaps)
				if !rep.Log {
					fmt.Fprintln(w, "  not held against the log")
				}
			}
			if !rep.OK {
				return cli.Fail(cli.ExitData, "writ audit verify", "the receipt does not hold: %s", rep.Problem)
			}
			return nil
		}}
	c.Flags().StringVar(&state, "state", "", "state `DIR`")
	c.Flags().StringVar(&key, "key", "", "`FILE` of the log's public key, log.pub; the log itself is not needed then")
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
}

func verifyReceipt(ctx context.Context, msg []byte, state, key string) (*receiptReport, error) {
	var v note.Verifier
	dir := ""
	if key != "" {
		b, err := config.ReadFile(key)
		if err != nil {
			return nil, config.Invalid(err)
		}
		if v, err = note.NewVerifier(strings.TrimSpace(string(b))); err != nil {
			return nil, cli.Fail(cli.ExitData, "", "%s is no public key of a log", cli.Printable(key))
		}
	} else {
		var err error
		if dir, err = existingState(state); err != nil {
			return nil, err
		}
		if _, v, err = logKey(dir); err != nil {
			return nil, err
		}
	}
	rep := &receiptReport{}
	n, err := note.Open(msg, note.VerifierList(v))
	if err != nil {
		rep.Problem = "it is not signed by the key " + v.Name()
		return rep, nil
	}
	x, err := memoryserver.ParseReceipt(n.Text)
	if err == nil && x.Log != v.Name() {
		err = errors.New("it is of another log")
	}
	if err != nil {
		rep.Problem = err.Error()
		return rep, nil
	}
	if rep.Receipt = x; dir != "" {
		st, err := openForReading(dir)
		if err != nil {
			return nil, err
		}
		defer st.Close()
		if err := x.Check(ctx, st); errors.Is(err, memoryserver.ErrReceipt) {
			rep.Problem = err.Error()
			return rep, nil
		} else if err != nil {
			return nil, memoryBroken(err)
		}
		rep.Log = true
	}
	rep.OK = true
	return rep, nil
}

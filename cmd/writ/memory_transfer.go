package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/memory"
)

func memoryExport() *cobra.Command {
	var f flags
	var out string
	c := f.take(&cobra.Command{Use: "export [--out FILE]", Short: "Write everything a namespace holds, with a manifest", Args: cli.NoArgs,
		Long: "Write a namespace as JSON lines: a manifest with counts and a SHA-256, then every row of\n" +
			"every table in a fixed order. The same state gives the same bytes. What was erased is not\n" +
			"in it, and what is in it an erasure no longer reaches.",
		PreRunE: func(c *cobra.Command, _ []string) error {
			if out == "" && cli.Terminal(c.OutOrStdout()) {
				return cli.Fail(cli.ExitUsage, "writ memory export --out FILE", "what people and tools wrote is not printed raw to a terminal")
			}
			return unwritten(out)
		},
		RunE: f.with(toRead, func(c *cobra.Command, r *remembered, _ []string) error {
			var b bytes.Buffer
			var m *memoryserver.Manifest
			err := r.read(c.Context(), func(x *memory.Reader) (err error) {
				if m, err = memoryserver.Export(&b, x.State); err != nil {
					return cli.Fail(cli.ExitIO, "", "cannot encode: %w", err)
				}
				return nil
			})
			if err != nil {
				return err
			}
			if err := handOut(c, out, b.Bytes()); err != nil {
				return cli.Fail(cli.ExitIO, "writ memory export --out FILE", "the export: %w", err)
			} else if out == "" {
				return nil
			}
			return f.show(c, m, func(w io.Writer) {
				fmt.Fprintf(w, "%d rows of namespace %s, to record %d, in %s\nSHA-256 of the rows %s\n", m.Rows, r.namespace, m.Head, cli.Printable(out), m.SHA256)
			})
		})}, ofMemory...)
	c.Flags().StringVar(&out, "out", "", "new `FILE` (default: standard output)")
	return c
}

// importReport is what `writ memory import --json` prints.
type importReport struct {
	Format string `json:"format"`
	Source string `json:"source"`
	DryRun bool   `json:"dry_run"`
	// Items is what the file holds; each was recorded now, known before, or
	// refused. Skipped is what an export holds and an import does not take.
	Items    int `json:"items"`
	Recorded int `json:"recorded"`
	Known    int `json:"known"`
	Skipped  int `json:"skipped"`
	// Quarantined are those recorded that the screen of contents holds back.
	Quarantined int             `json:"quarantined"`
	Refused     []importRefused `json:"refused"`
}

type importRefused struct {
	Line   int         `json:"line"`
	Code   writ.Code   `json:"code"`
	Reason writ.Reason `json:"reason"`
	Need   string      `json:"need"`
}

func memoryImport() *cobra.Command {
	var f flags
	var format, source string
	var in *memoryserver.Import
	c := f.take(&cobra.Command{
		Use: "import FILE --format writ|server-memory|markdown", Short: "Record what a file holds, as evidence anybody could have written",
		Long: "Record what a file holds as observations of class import, which count as\n" +
			"reported. What another memory believed is not believed here because a file says so; an agent\n" +
			"proposes it anew, and imports alone never make it usable. A file with a fault is refused as\n" +
			"a whole. Done again, what is known is not recorded twice, and what was erased stays erased.\n" +
			"With --config, the secrets and the screen of contents it names are those of the import.",
		Example: "  writ memory import memory.jsonl --format server-memory --dry-run",
		Args:    exactly(1, "one file, or -"),
		PreRunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(memoryserver.ImportFormats, format) {
				return cli.Fail(cli.ExitUsage, "writ memory import FILE --format "+memoryserver.FormatServerMemory, "--format takes writ, server-memory or markdown")
			}
			b, err := readInput(args[0], "file", memoryserver.MaxImport, c.InOrStdin(), "")
			if err != nil {
				return err
			}
			in = memoryserver.ReadImport(format, importName(args[0]), b)
			if len(in.Faults) == 0 {
				return nil
			}
			return cli.Fail(cli.ExitData, "writ memory import FILE --dry-run, once the file is mended; nothing was recorded", "%s", joined(in.Faults, "\n", func(x memoryserver.ImportFault) string {
				return fmt.Sprintf("%s:%d: %s", cli.Printable(args[0]), x.Line, x.Message)
			}))
		},
		RunE: f.with(toWrite, func(c *cobra.Command, r *remembered, args []string) error {
			rep := &importReport{Format: format, Source: cmp.Or(source, "import/"+format), DryRun: f.dry, Items: len(in.Items), Skipped: in.Skipped, Refused: []importRefused{}}
			if err := r.record(c.Context(), in, rep); err != nil {
				return err
			}
			err := f.show(c, rep, func(w io.Writer) { rep.print(w, args[0]) })
			if err == nil && len(rep.Refused) > 0 {
				err = cli.Ended(cli.ExitRefused)
			}
			return err
		}),
	}, ofMemory...)
	c.Flags().StringVar(&format, "format", "", "`FORMAT`: writ (what export writes), server-memory (the reference server's JSONL) or markdown")
	c.Flags().StringVar(&source, "source", "", "`NAME` of the source, to distrust it by (default: import/FORMAT)")
	c.Flags().BoolVar(&f.dry, "dry-run", false, "say what would be recorded, and record nothing")
	return c
}

func (rep *importReport) print(w io.Writer, file string) {
	for _, x := range rep.Refused {
		fmt.Fprintf(w, "%s:%d: refused: %s (%s): %s\n", cli.Printable(file), x.Line, x.Code, x.Reason, cli.OneLine(x.Need, 300))
	}
	verb := "recorded"
	if rep.DryRun {
		verb = "would be recorded"
	}
	fmt.Fprintf(w, "%d texts: %d %s, %d known already, %d refused", rep.Items, rep.Recorded, verb, rep.Known, len(rep.Refused))
	when(w, rep.Skipped > 0, "; %d of the export not taken (erased, quarantined or distrusted)", rep.Skipped)
	when(w, rep.Quarantined > 0, "; %d of the recorded quarantined by the screen", rep.Quarantined)
	fmt.Fprintf(w, "\nsource %s\n", cli.OneLine(rep.Source, 200))
}

// importName is what the items of a file call it.
func importName(file string) string {
	if file == "-" {
		return "stdin"
	}
	return filepath.Base(file)
}

// record proposes every item.
func (r *remembered) record(ctx context.Context, in *memoryserver.Import, rep *importReport) error {
	seen := map[string]bool{}
	for i := range in.Items {
		it := &in.Items[i]
		// Its id is made from the text, and no digest of a secret is kept either.
		raw := it.Raw
		it.Raw, it.Ref = r.intake.RedactText(it.Raw), r.intake.RedactText(it.Ref)
		mc, p := it.Proposal(r.principal, rep.Source)
		mc.Redacted = raw != it.Raw
		// What is known, and what would be refused, is not proposed: a second run
		// writes nothing, and no erased text comes back as that of a refusal.
		o, err := r.try(ctx, mc, p)
		if err == nil && !rep.DryRun && !known(&o) && o.Status != writ.Rejected {
			o, err = r.keeper.Propose(ctx, mc, p)
		}
		if err != nil {
			return cli.Fail(cli.ExitIO, "the same command again: what is recorded is not recorded twice", "line %d: %w", it.Line, err)
		}
		switch {
		case o.Status == writ.Rejected:
			x := importRefused{Line: it.Line, Code: o.Rejection.Code, Reason: o.Rejection.Reason}
			if len(o.Rejection.Failures) > 0 {
				x.Need = o.Rejection.Failures[0].Need
			}
			rep.Refused = append(rep.Refused, x)
		case known(&o), rep.DryRun && seen[it.Raw]:
			rep.Known++
		default:
			rep.Recorded++
			if did(&o, "observation."+string(memory.Quarantined)) {
				rep.Quarantined++
			}
		}
		seen[it.Raw] = true
	}
	return nil
}

// try decides a proposal on the state as it is, and writes nothing.
func (r *remembered) try(ctx context.Context, c memory.Context, p writ.Proposal) (o memory.Outcome, err error) {
	err = r.read(ctx, func(x *memory.Reader) error {
		c.Policy, c.Namespace, c.Mode, c.Now = r.policy, r.namespace, r.mode, x.Now
		o = memory.Handle(x.State, r.intake.Of(c, p), p).Outcome
		return nil
	})
	return o, err
}

// known reports whether an observation had been recorded before.
func known(o *memory.Outcome) bool { return did(o, "observation.duplicate") }

func did(o *memory.Outcome, effect string) bool {
	return slices.ContainsFunc(o.Effects, func(e memory.Effect) bool { return e.Effect == effect })
}

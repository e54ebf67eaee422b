package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/strictjson"
)

// grounding is what writ ground --json prints; docs/formats.md describes it.
type grounding struct {
	OK        bool            `json:"ok"`
	Truncated bool            `json:"truncated"`
	Rejection *writ.Rejection `json:"rejection,omitempty"`
	Summary   *claim.Summary  `json:"summary,omitempty"`
}

const groundUsage = "writ ground --source FILE --summary FILE"

func groundCommand() *cobra.Command {
	var source, summary, pointer, kind string
	var f flags
	var limit int
	c := f.take(&cobra.Command{
		Use: "ground --source FILE --summary FILE", Short: "Check that a summary quotes its source", Args: cli.NoArgs,
		Long: "Check a summary against the source it was made of: every item's evidence stands in the\n" +
			"source character for character, between words, and reaches into a value. It is the check\n" +
			"writ ask makes, for anybody's summaries. A source that begins as a JSON object or list is\n" +
			"read as strict JSON, and refused where it is none; any other is plain text, and so is every\n" +
			"one with --as text. - reads one of the two from standard input. Of a longer source only the\n" +
			"first bytes count, as many as --limit says: what a model is shown of it.\n\n" +
			"Exit codes: 0 grounded, 77 not, 65 a source that cannot be read as text or JSON, 74 I/O.",
		Example: `  writ ground --source result.json --pointer /structuredContent --summary summary.json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if source == "" || summary == "" {
				return cli.Fail(cli.ExitUsage, groundUsage, "a source and a summary are needed")
			}
			if source == "-" && summary == "-" {
				return cli.Fail(cli.ExitUsage, "writ ground --source FILE --summary -", "only one of them can come from standard input")
			}
			record, err := readInput(source, "source", strictjson.Result.Bytes, c.InOrStdin(), groundUsage)
			if err != nil {
				return err
			}
			text, err := readInput(summary, "summary", claim.SummaryBytes, c.InOrStdin(), groundUsage)
			if err != nil {
				return err
			}
			src, err := makeSource(record, kind, pointer, limit)
			if err != nil {
				return err
			}
			s, stop := claim.Ground(src, text)
			out := grounding{OK: stop == nil, Truncated: src.Truncated()}
			if stop != nil {
				out.Rejection = &stop.Rejection
			} else {
				out.Summary = &s
			}
			if !f.json {
				out.print(c.OutOrStdout(), limit)
			} else if err := cli.PrintLine(c.OutOrStdout(), out); err != nil {
				return cli.Fail(cli.ExitIO, "", "the answer cannot be printed")
			}
			if stop != nil {
				return cli.Ended(cli.ExitRefused)
			}
			return nil
		},
	}, "json")
	c.Flags().StringVar(&source, "source", "", "source `FILE`")
	c.Flags().StringVar(&summary, "summary", "", "summary `FILE`")
	c.Flags().StringVar(&kind, "as", "auto", "read the source as auto, json or text")
	c.Flags().StringVar(&pointer, "pointer", "", "the part of a JSON source that was summarised, RFC 6901")
	c.Flags().IntVar(&limit, "limit", claim.SourceLimit, "length in bytes the source text was cut to")
	return c
}

// print tells what was found; limit is how much of the source counted.
func (g *grounding) print(w io.Writer, limit int) {
	if r := g.Rejection; r != nil {
		fmt.Fprintf(w, "not grounded: %s (%s)\n", r.Code, r.Reason)
		for _, f := range r.Failures {
			fmt.Fprintf(w, "  %s %s: %s\n", cmp.Or(cli.OneLine(f.Pointer, 200), "/"), f.Reason, f.Need)
		}
		when(w, g.Truncated, "  the source is longer than the %d bytes that count: --limit N\n", limit)
		return
	}
	s := g.Summary
	fmt.Fprintf(w, "grounded: %d bullets, %d risks, %d recommendations\n", len(s.Bullets), len(s.Risks), len(s.Recommendations))
	for _, i := range slices.Concat(s.Bullets, s.Risks, s.Recommendations) {
		printItem(w, "the summary", ask.NewItem(i, "the source"))
	}
}

// makeSource reads the source as what it is said to be. What was left to it and
// looks like JSON is never taken for text: a text may be quoted across what JSON
// keeps apart.
func makeSource(record []byte, kind, pointer string, limit int) (src *claim.Source, err error) {
	refuse := func(next, need string) error { return cli.Fail(cli.ExitData, next, "the source: %s", need) }
	const help = "writ ground --help"
	isJSON := kind == "json" || pointer != ""
	switch {
	case kind != "auto" && kind != "json" && kind != "text":
		return nil, refuse(help, "--as is auto, json or text")
	case kind == "text" && pointer != "":
		return nil, refuse(help, "--pointer belongs to a JSON source")
	case kind == "auto" && !isJSON && looksLikeJSON(record):
		if strictjson.Check(record, strictjson.Result) != nil {
			return nil, refuse("writ ground --as text --source FILE --summary FILE", "it begins as JSON does and is no strict JSON; --as text reads it as plain text")
		}
		isJSON = true
	}
	var stop *claim.Stop
	if isJSON {
		src, stop = claim.NewSource(record, pointer, limit)
	} else {
		src, stop = claim.TextSource(record, limit)
	}
	if stop != nil {
		return nil, refuse(help, stop.Rejection.Failures[0].Need)
	}
	return src, nil
}

// looksLikeJSON reports whether somebody may take a text for a JSON object or
// list: it begins with one, whatever white space or mark stands before it.
func looksLikeJSON(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n\ufeff")
	return len(b) > 0 && (b[0] == '{' || b[0] == '[')
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/claim"
	"github.com/writ-project/writ/internal/strictjson"
)

// grounding is what writ ground --json prints; docs/formats.md describes it.
type grounding struct {
	OK        bool            `json:"ok"`
	Truncated bool            `json:"truncated"`
	Rejection *writ.Rejection `json:"rejection,omitempty"`
	Summary   *claim.Summary  `json:"summary,omitempty"`
}

func groundCommand() *cobra.Command {
	var source, summary, pointer, kind string
	var limit int
	var asJSON bool
	c := &cobra.Command{
		Use: "ground --source FILE --summary FILE", Short: "Check that a summary quotes its source", Args: noArgs,
		Long: "Check a summary against the source it was made of: every item's evidence stands in the\n" +
			"source character for character, between words, and reaches into a value. It is the check\n" +
			"writ ask makes, for anybody's summaries. A source that is a strict JSON object or list is\n" +
			"read as JSON, any other as plain text; - reads one of the two from standard input.\n\n" +
			"Exit codes: 0 grounded, 77 not, 65 a source that cannot be read as text or JSON, 74 I/O.",
		Example: `  writ ground --source result.json --pointer /structuredContent --summary summary.json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if source == "" || summary == "" {
				return fail(exitUsage, "writ ground --source FILE --summary FILE", "a source and a summary are needed")
			}
			if source == "-" && summary == "-" {
				return fail(exitUsage, "writ ground --source FILE --summary -", "only one of them can come from standard input")
			}
			record, err := readBounded(source, "source", strictjson.Result.Bytes, c.InOrStdin())
			if err != nil {
				return err
			}
			text, err := readBounded(summary, "summary", claim.SummaryBytes, c.InOrStdin())
			if err != nil {
				return err
			}
			src, stop := makeSource(record, kind, pointer, limit)
			if stop != nil {
				return fail(exitData, "writ ground --help", "the source: %s", stop.Rejection.Failures[0].Need)
			}
			s, stop := claim.Ground(src, text)
			out := grounding{OK: stop == nil, Truncated: src.Truncated()}
			if stop != nil {
				out.Rejection = &stop.Rejection
			} else {
				out.Summary = &s
			}
			w := c.OutOrStdout()
			switch {
			case asJSON:
				enc := json.NewEncoder(w)
				enc.SetEscapeHTML(false)
				if err := enc.Encode(out); err != nil {
					return fail(exitIO, "", "the answer cannot be printed")
				}
			case stop != nil:
				fmt.Fprintf(w, "not grounded: %s (%s)\n", stop.Rejection.Code, stop.Rejection.Reason)
				for _, f := range stop.Rejection.Failures {
					fmt.Fprintf(w, "  %s %s: %s\n", or(oneLine(f.Pointer, 200), "/"), f.Reason, f.Need)
				}
			default:
				fmt.Fprintf(w, "grounded: %d bullets, %d risks, %d recommendations\n", len(s.Bullets), len(s.Risks), len(s.Recommendations))
				for _, items := range [][]claim.Item{s.Bullets, s.Risks, s.Recommendations} {
					for _, i := range items {
						fmt.Fprintf(w, "- %s\n    %s  bytes %d-%d %s\n", oneLine(i.Text, 2000), oneLine(i.Evidence, 2000), i.Quote.From, i.Quote.To, oneLine(i.Quote.Pointer, 200))
					}
				}
			}
			if stop != nil {
				return &exit{code: exitRefused, err: errors.New("")}
			}
			return nil
		},
	}
	c.Flags().StringVar(&source, "source", "", "source `FILE`")
	c.Flags().StringVar(&summary, "summary", "", "summary `FILE`")
	c.Flags().StringVar(&kind, "as", "auto", "read the source as auto, json or text")
	c.Flags().StringVar(&pointer, "pointer", "", "the part of a JSON source that was summarised, RFC 6901")
	c.Flags().IntVar(&limit, "limit", strictjson.Result.Bytes, "length in bytes the source text was cut to")
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
}

func makeSource(record []byte, kind, pointer string, limit int) (*claim.Source, *claim.Stop) {
	isJSON := kind == "json" || pointer != ""
	if kind == "auto" && !isJSON && strictjson.Check(record, strictjson.Result) == nil {
		k := strictjson.KindOf(record)
		isJSON = k == strictjson.Object || k == strictjson.Array
	}
	switch {
	case kind != "auto" && kind != "json" && kind != "text":
		return nil, claim.StopAt(claim.StageGrounding, writ.Failure{Reason: writ.GroundSource, Need: "--as is auto, json or text"})
	case kind == "text" && pointer != "":
		return nil, claim.StopAt(claim.StageGrounding, writ.Failure{Reason: writ.GroundSource, Need: "--pointer belongs to a JSON source"})
	case isJSON:
		return claim.NewSource(record, pointer, limit)
	}
	return claim.TextSource(record, limit)
}

// readBounded reads a file, or standard input.
func readBounded(file, what string, limit int, stdin io.Reader) ([]byte, error) {
	r := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fail(exitIO, "", "the %s cannot be read", what)
		}
		defer f.Close()
		r = f
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, fail(exitIO, "", "the %s cannot be read", what)
	}
	if len(b) > limit {
		return nil, fail(exitData, "", "the %s is larger than %d bytes", what, limit)
	}
	return b, nil
}

package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/eval/replay"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/policy"
)

// replayResult is where the report goes that stands in the repository, with the
// same for people and the chart beside it.
const replayResult = "eval/results/replay.json"

// replayCorpora are the public corpora, which are no part of the repository.
var replayCorpora = []string{
	"../shared/corpus/agentdojo.dev.jsonl.gz", "../shared/corpus/tau.dev.jsonl.gz",
	"../shared/corpus/bfcl.dev.jsonl.gz", "../shared/corpus/injecagent.dev.jsonl.gz",
}

func replayCommand() *cobra.Command {
	o := replay.Options{}
	var out, policies, profile string
	var asJSON bool
	c := &cobra.Command{
		Use: "replay", Short: "Judge recorded tool calls, and attacks made of them, by this gate and by others",
		Long: "Judge tool calls that public benchmarks recorded, their attacks, and with --adaptive what an\n" +
			"attacker would make of them, by Writ's gate and by a naive one, allow all, deny all and one\n" +
			"that asks for every act. No tool and no model is called. A corpus of its own is built in;\n" +
			"a file of --corpus has a tools.json.gz beside it, and one that is not there is skipped.\n" +
			"The report is the same, byte for byte, for the same files and seed.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.Profile = policy.Profile(profile)
			if o.Profile != policy.Standard && o.Profile != policy.Strict {
				return cli.Fail(cli.ExitUsage, "--profile standard", "there is no profile %q", profile)
			}
			if !slices.Contains([]string{"none", "truth", "all"}, o.Approve) {
				return cli.Fail(cli.ExitUsage, "--approve none, truth or all", "nobody is called %q", o.Approve)
			}
			o.Policies = os.DirFS(policies)
			tell, end := showProgress(c, "replaying…")
			o.Progress = func(done string) { tell(done + " done") }
			r, err := replay.Run(c.Context(), o)
			end()
			if err != nil {
				return cli.Fail(cli.ExitData, "", "%w", err)
			}
			for _, m := range r.Missing {
				fmt.Fprintf(c.ErrOrStderr(), "%s is not here: skipped\n", cli.Printable(m))
			}
			if len(r.Missing) > 0 && !c.Flags().Changed("out") {
				fmt.Fprintf(c.ErrOrStderr(), "%s was left alone: it is of all of them\n", out)
				out = ""
			}
			return tellResult(c, r, out, asJSON, r.Markdown(), map[string]string{".md": r.Markdown(), ".svg": r.SVG()})
		},
	}
	f := c.Flags()
	f.StringSliceVar(&o.Corpora, "corpus", replayCorpora, "traces in JSON lines, `FILE`s")
	f.StringVar(&policies, "policy", "eval/policies", "the policies, one a suite, in `DIR`")
	f.StringVar(&profile, "profile", string(policy.Standard), "standard or strict")
	f.BoolVar(&o.Adaptive, "adaptive", false, "also what transforms make of the traces")
	f.StringVar(&o.Approve, "approve", "truth", "who answers what is asked: none, truth or all")
	f.Uint64Var(&o.Seed, "seed", replay.DefaultSeed, "seed `N` of the transforms")
	f.StringVar(&out, "out", replayResult, "write the report to `FILE`, and to .md and .svg beside it")
	f.BoolVar(&asJSON, "json", false, "print the report as JSON")
	return c
}

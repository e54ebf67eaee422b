package main

import (
	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/memory"
)

// ordered is a command of the operator whose arguments need nothing but its
// own.
func ordered(use, short, long string, args cobra.PositionalArgs, command string, make func(args []string) ([]byte, error)) *cobra.Command {
	var f flags
	var payload []byte
	return f.take(&cobra.Command{Use: use, Short: short, Long: long, Args: args,
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			payload, err = make(args)
			return err
		},
		RunE: f.with(toWrite, func(c *cobra.Command, r *remembered, _ []string) error {
			d, err := r.operate(c.Context(), command, payload)
			if err != nil {
				return err
			}
			return printDecision(c.OutOrStdout(), &d.Outcome, f.json)
		})}, ofMemory...)
}

func memoryResolve() *cobra.Command {
	var uphold, refute bool
	c := ordered("resolve PROP --uphold | --refute", "Rule on a proposition",
		"Rule on a proposition that is contested, or wrong. --uphold is your word for it, of the highest\n"+
			"level and the newest, and replaces what says otherwise; --refute closes what supports it.\n"+
			"Nothing is deleted: the evidence stays, closed by this decision.",
		exactly(1, "one proposition's id"), memory.CommandRule,
		func(args []string) ([]byte, error) {
			if uphold == refute {
				return nil, cli.Fail(cli.ExitUsage, "writ memory explain "+cli.OneLine(args[0], 40), "either --uphold or --refute")
			}
			ruling := "uphold"
			if refute {
				ruling = "refute"
			}
			return object("proposition_id", args[0], "ruling", ruling), nil
		})
	c.Flags().BoolVar(&uphold, "uphold", false, "it is true")
	c.Flags().BoolVar(&refute, "refute", false, "it is not")
	return c
}

func memoryMerge() *cobra.Command {
	return ordered("merge FROM INTO", "Join one entity into another; both ids stay", "", exactly(2, "two entities' ids"), memory.CommandMerge, fromInto)
}

func memoryUnmerge() *cobra.Command {
	return ordered("unmerge FROM INTO", "Undo a merge", "", exactly(2, "the two entities' ids"), memory.CommandUnmerge, fromInto)
}

func fromInto(args []string) ([]byte, error) { return object("from", args[0], "into", args[1]), nil }

func memoryTests() *cobra.Command {
	return group("test", "Cancel a test nobody will run", "",
		ordered("cancel TEST", "End an open test", "", exactly(1, "one test's id"), memory.CommandCancelTest,
			func(args []string) ([]byte, error) { return object("test_id", args[0]), nil }))
}

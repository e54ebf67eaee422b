package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/memoryserver"
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
			return r.operate(c, command, payload, f.json)
		})}, ofMemory...)
}

func memoryResolve() *cobra.Command {
	var uphold, refute bool
	c := ordered("resolve PROP --uphold | --refute", "Rule on a proposition",
		"Rule on a proposition that is contested, or wrong. --uphold closes what contradicts it and\n"+
			"ends a rival value's claim to its place; --refute closes what supports it. Nothing is\n"+
			"deleted: the evidence stays, closed by this decision.",
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

func memoryRetain() *cobra.Command {
	return ordered("retain EPISODE CLASS", "Change how long an episode is kept",
		"Change how long an episode is kept: transient, standard or legal_hold. While an episode is\n"+
			"under legal hold, nothing it rests on can be erased.",
		exactly(2, "an episode's id and transient, standard or legal_hold"), memory.CommandRetain,
		func(args []string) ([]byte, error) {
			return object("episode_id", args[0], "retention_class", args[1]), nil
		})
}

func memorySweep() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{Use: "sweep", Short: "Lower what time has made stale, end what is over, finish erasures",
		Long: "Evaluate durable propositions at this time, end tests and episodes whose time is over, and\n" +
			"take out of the log what an erasure that was cut off left there.",
		Args: cli.NoArgs,
		RunE: f.with(toWrite, func(c *cobra.Command, r *remembered, _ []string) error {
			left, err := r.leftovers(c.Context())
			if err != nil {
				return err
			}
			for _, e := range left {
				if err := r.keeper.Purge(c.Context(), e); err != nil {
					return cli.Fail(cli.ExitIO, "writ memory sweep", "%w", err)
				}
			}
			return r.operate(c, memory.CommandSweep, []byte("{}"), f.json)
		})}, ofMemory...)
}

// leftovers are the events that erase something whose text is still in the log:
// an erasure that was cut off.
func (r *remembered) leftovers(ctx context.Context) (left []*memory.Event, err error) {
	kept := map[uint64]bool{}
	for it, err := range r.st.Read(ctx, memoryserver.LogOf(r.namespace), 1) {
		if err != nil {
			return nil, unreadable(err)
		}
		rec, e, err := eventOf(&it)
		if err != nil {
			return nil, err
		}
		kept[rec.N] = len(it.Values) > 0
		for i := range e.Ops {
			if e.Ops[i].Erase != nil && slices.ContainsFunc(e.Ops[i].Erase.Records, func(n uint64) bool { return kept[n] }) {
				left = append(left, e)
			}
		}
	}
	return left, nil
}

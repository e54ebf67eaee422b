package main

import (
	"fmt"
	"io"
	"strings"

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

func merging(use, short, what, command string) *cobra.Command {
	return ordered(use, short, "", exactly(2, what), command, func(args []string) ([]byte, error) {
		return object("from", args[0], "into", args[1]), nil
	})
}

func testCancel() *cobra.Command {
	return ordered("cancel TEST", "End an open test", "", exactly(1, "one test's id"), memory.CommandCancelTest, func(args []string) ([]byte, error) {
		return object("test_id", args[0]), nil
	})
}

// listing lists what an operator registered, in its order.
func listing[T any](short string, of func(*memory.State) []T, line func(io.Writer, T)) *cobra.Command {
	return reading("list", short, "", cli.NoArgs, func(x *memory.Reader, _ []string) (any, func(io.Writer), error) {
		rows := of(x.State)
		return rows, func(w io.Writer) {
			for _, row := range rows {
				line(w, row)
			}
		}, nil
	})
}

func memorySources() *cobra.Command {
	list := listing("List the registered sources", (*memory.State).Sources, func(w io.Writer, s memory.Source) {
		fmt.Fprintf(w, "%s  %s", cli.OneLine(s.ID, 256), s.Class)
		when(w, s.Suspended, "  suspended")
		when(w, s.DistrustedSince != nil, "  distrusted since %s", s.DistrustedSince)
		fmt.Fprintf(w, "  by %s\n", cli.OneLine(s.RegisteredBy, 80))
	})
	suspend := func(use, short string, suspended bool) *cobra.Command {
		return ordered(use+" SOURCE", short, "", exactly(1, "one source"), memory.CommandSuspend, func(args []string) ([]byte, error) {
			return object("source_id", args[0], "suspended", suspended), nil
		})
	}
	return group("source", "Register, suspend and list sources", "", list, sourceAdd(),
		suspend("suspend", "Refuse what a source says from now on", true), suspend("resume", "Take a suspended source back", false))
}

func sourceAdd() *cobra.Command {
	var class string
	c := ordered("add SOURCE --class CLASS", "Register a source",
		"Register a source: what a tool's results come from (server/tool), or a name of your own. The\n"+
			"class bounds what its word is worth and cannot be changed later; a source nobody registered\n"+
			"has the worth of the channel it speaks through.",
		exactly(1, "one source, such as files/read_file"), memory.CommandSource,
		func(args []string) ([]byte, error) {
			if class == "" {
				return nil, cli.Fail(cli.ExitUsage, "writ memory source add SOURCE --class tool_internal", "a source has a --class")
			}
			return object("source_id", args[0], "class", class), nil
		})
	c.Flags().StringVar(&class, "class", "", "`CLASS`: operator, direct_user, tool_internal, user_attested, tool_external, document, web, peer_agent, agent_inference or import")
	return c
}

func memoryPredicates() *cobra.Command {
	var aliases []string
	var single, many bool
	add := ordered("add NAME --single | --many", "Declare a predicate, or change what is declared of it",
		"Declare a predicate. --many says that it has several values at a time, so that a new value\n"+
			"takes no other's place; of one that nobody declared a new value replaces the old.",
		exactly(1, "one predicate: a lower-case word"), memory.CommandPredicate,
		func(args []string) ([]byte, error) {
			if single == many {
				return nil, cli.Fail(cli.ExitUsage, "writ memory predicate add NAME --many", "either --single or --many")
			}
			return object("name", args[0], "aliases", aliases, "single", single), nil
		})
	add.Flags().StringSliceVar(&aliases, "alias", nil, "another `NAME` of it; may be repeated")
	add.Flags().BoolVar(&single, "single", false, "it has one value at a time")
	add.Flags().BoolVar(&many, "many", false, "it has several")
	list := listing("List the declared predicates", (*memory.State).Predicates, func(w io.Writer, p memory.Predicate) {
		values := "many values"
		if p.Single {
			values = "one value"
		}
		fmt.Fprintf(w, "%s  %s", p.Name, values)
		when(w, len(p.Aliases) > 0, "  also %s", strings.Join(p.Aliases, ","))
		fmt.Fprintf(w, "  by %s\n", cli.OneLine(p.RegisteredBy, 80))
	})
	return group("predicate", "Declare and list predicates", "", list, add)
}

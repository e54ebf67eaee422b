package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/memoryserver"
)

func placesCommand() *cobra.Command {
	var state, namespace string
	c := &cobra.Command{
		Use: "places", Short: "List where the agent's own text was put, and clear what a person has looked at",
		Long: "What an act sends that no tool and no user said lowers the place it goes to: what is read\n" +
			"from there vouches for nothing in any later session. A place is a tool with the values of\n" +
			"its targets and selectors; sets: and stores: in the policy say what its text can reach.",
		RunE: func(*cobra.Command, []string) error {
			return cli.Fail(cli.ExitUsage, "writ places --help", "list or clear")
		},
	}
	c.AddCommand(placesList(&state, &namespace), placesClear(&state, &namespace))
	for _, sub := range c.Commands() {
		sub.Flags().StringVar(&state, "state", "", "state `DIR`")
		sub.Flags().StringVar(&namespace, "namespace", "default", "memory namespace the gateway runs with")
	}
	return c
}

func placesList(state, namespace *string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the lowered places, oldest first", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ps, _, end, err := lowered(c, *state, *namespace)
			if err != nil {
				return err
			}
			defer end()
			if asJSON {
				return cli.PrintJSON(c.OutOrStdout(), append([]gateway.LoweredPlace{}, ps...))
			}
			for _, p := range ps {
				at := []string{"anywhere it reaches"}
				switch {
				case p.Place.Links:
					at = []string{"links anywhere it reaches"}
				case len(p.Place.At) > 0:
					at = nil
				}
				for _, r := range p.Place.At {
					at = append(at, strings.TrimSpace(strings.TrimPrefix(r.Of, ":")+" "+r.Text))
				}
				fmt.Fprintf(c.OutOrStdout(), "%4d  %s  %s  %s/%s  %s  %s\n", p.N, p.Time.Format(time.RFC3339), p.Session,
					p.Place.Server, p.Place.Tool, p.Place.Label, cli.OneLine(strings.Join(at, ", "), 200))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
}

func placesClear(state, namespace *string) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "clear NUMBER | --all", Short: "Clear a place: what is read from it from now on keeps its label",
		Long: "Clear a place that a person has looked at: what is read from it from now on keeps its label.\n" +
			"The session whose act lowered it goes on without it. It stands in the audit log.",
		Args: func(c *cobra.Command, args []string) error {
			if all == (len(args) == 1) || len(args) > 1 {
				return cli.Fail(cli.ExitUsage, "writ places list", "one number, or --all")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ps, st, end, err := lowered(c, *state, *namespace)
			if err != nil {
				return err
			}
			defer end()
			var numbers []uint64
			for _, p := range ps {
				numbers = append(numbers, p.N)
			}
			if !all {
				n, err := strconv.ParseUint(args[0], 10, 64)
				if err != nil {
					return cli.Fail(cli.ExitUsage, "writ places list", "a place has a number")
				}
				numbers = []uint64{n}
			}
			for _, n := range numbers {
				switch err := gateway.ClearPlace(c.Context(), st, *namespace, n, time.Now()); {
				case errors.Is(err, audit.ErrNotFound):
					return cli.Fail(cli.ExitData, "writ places list", "no place of that number is lowered")
				case err != nil:
					return cli.Fail(cli.ExitIO, "writ audit verify", "it could not be recorded: %w", err)
				}
				fmt.Fprintf(c.OutOrStdout(), "cleared %d\n", n)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every place")
	return c
}

// lowered opens the log of a state and reads the lowered places of a namespace.
func lowered(c *cobra.Command, state, namespace string) (ps []gateway.LoweredPlace, st audit.Store, end func() error, err error) {
	if !memoryserver.ValidNamespace(namespace) {
		return nil, nil, nil, cli.Fail(cli.ExitUsage, "writ places --help", "a namespace's name has 1 to 32 of a-z, 0-9 and -, and does not start with -")
	}
	dir, err := stateDir(state)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := openStore(c.Context(), dir)
	if err != nil {
		return nil, nil, nil, err
	}
	if ps, err = gateway.LoweredPlaces(c.Context(), s, namespace); err != nil {
		s.Close()
		return nil, nil, nil, cli.Fail(cli.ExitIO, "writ audit verify", "the lowered places cannot be read: %w", err)
	}
	return ps, s, s.Close, nil
}

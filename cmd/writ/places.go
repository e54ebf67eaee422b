package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/provenance"
)

func placesCommand() *cobra.Command {
	return group("places", "List where the agent's own text was put, and clear what a person has looked at",
		"What an act sends that no tool and no user said lowers the place it goes to: what is read\n"+
			"from there vouches for nothing in any later session. A place is a tool with the values of\n"+
			"its targets and selectors; sets: and stores: in the policy say what its text can reach.",
		placesList(), placesClear())
}

func placesList() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{
		Use: "list", Short: "List the lowered places, oldest first", Args: cli.NoArgs,
		RunE: f.onPlaces(func(c *cobra.Command, _ audit.Store, _ string, ps []gateway.LoweredPlace, _ []string) error {
			return f.show(c, append([]gateway.LoweredPlace{}, ps...), func(w io.Writer) {
				for _, p := range ps {
					fmt.Fprintf(w, "%4d  %s  %s  %s/%s  %s  %s\n", p.N, p.Time.Format(time.RFC3339), p.Session,
						p.Place.Server, p.Place.Tool, p.Place.Label, cli.OneLine(whereOf(&p.Place), 200))
					when(w, len(p.Place.Rests) > 0, "      by a yes: it does not count while this is kept from now on: %s\n", cli.OneLine(restsOn(p.Place.Rests), 400))
				}
			})
		}),
	}, "state", "namespace", "json")
}

// whereOf says in a line where a place is.
func whereOf(p *provenance.Place) string {
	var all []string
	if p.Links {
		all = append(all, "links anywhere it reaches")
	} else if len(p.At) == 0 {
		all = append(all, "anywhere it reaches")
	}
	for _, r := range p.At {
		all = append(all, strings.TrimSpace(strings.TrimPrefix(r.Of, ":")+" "+r.Text))
	}
	return strings.Join(all, ", ")
}

// restsOn says what a person would have to keep for a place not to count.
func restsOn(rests [][]provenance.Line) string {
	return joined(rests, ", and ", func(any []provenance.Line) string {
		return joined(any, " or ", func(l provenance.Line) string {
			return strings.TrimSpace(l.Arg + " of " + l.Tool + " from " + l.From + " " + l.Writes)
		})
	})
}

func placesClear() *cobra.Command {
	var f flags
	var all bool
	c := f.take(&cobra.Command{
		Use: "clear NUMBER | --all", Short: "Clear a place: what is read from it from now on keeps its label",
		Long: "Clear a place that a person has looked at: what is read from it from now on keeps its label.\n" +
			"The session whose act lowered it goes on without it. It stands in the audit log.",
		Args: needs("writ places list", "one number, or --all", func(args []string) bool { return len(args) <= 1 && all != (len(args) == 1) }),
		RunE: f.onPlaces(func(c *cobra.Command, st audit.Store, namespace string, ps []gateway.LoweredPlace, args []string) error {
			numbers := each(ps, func(p gateway.LoweredPlace) uint64 { return p.N })
			if !all {
				n, err := strconv.ParseUint(args[0], 10, 64)
				if err != nil {
					return cli.Fail(cli.ExitUsage, "writ places list", "a place has a number")
				}
				numbers = []uint64{n}
			}
			cleared, failed := []uint64{}, error(nil)
			for _, n := range numbers {
				err := gateway.ClearPlace(c.Context(), st, namespace, n, time.Now())
				if errors.Is(err, audit.ErrNotFound) {
					failed = cli.Fail(cli.ExitData, "writ places list", "no place of that number is lowered")
				} else if err != nil {
					failed = cli.Fail(cli.ExitIO, "writ audit verify", "it could not be recorded: %w", err)
				}
				if failed != nil {
					break
				}
				cleared = append(cleared, n)
			}
			return f.showDone(c, len(cleared), struct {
				Cleared []uint64 `json:"cleared"`
			}{cleared}, func(w io.Writer) {
				for _, n := range cleared {
					fmt.Fprintf(w, "cleared %d\n", n)
				}
			}, failed)
		}),
	}, "state", "namespace", "json")
	c.Flags().BoolVar(&all, "all", false, "every place")
	return c
}

// onPlaces is a command that works with the lowered places of a namespace.
func (f *flags) onPlaces(run func(c *cobra.Command, st audit.Store, namespace string, ps []gateway.LoweredPlace, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		m, err := f.settings()
		if err != nil {
			return err
		}
		return f.onLog(toAppend, func(c *cobra.Command, _ string, st *sqlite.Store, args []string) error {
			ps, err := gateway.LoweredPlaces(c.Context(), st, m.Namespace)
			if err != nil {
				return cli.Fail(cli.ExitIO, "writ audit verify", "the lowered places cannot be read: %w", err)
			}
			return run(c, st, m.Namespace, ps, args)
		})(c, args)
	}
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/policy"
)

func grownCommand() *cobra.Command {
	c := grownList()
	c.Use, c.Short = "grown", "List what was allowed from now on, and take it back"
	c.Long = "What a person allowed from now on stands in a file of its own beside the policy, a line each, and\n" +
		"is read behind it. A gateway of the state directory takes back at once what remove takes back, if\n" +
		"its file was what is in force, and else at the next writ reload. Where neither\n" +
		"--config nor --policy says which policy is meant, it is those of the clients that are connected and of\n" +
		"the gateways that run, each with its own numbers."
	c.AddCommand(grownList(), grownRemove())
	return c
}

func grownList() *cobra.Command {
	var f flags
	c := f.take(&cobra.Command{
		Use: "list", Short: "List the lines, with their numbers", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := f.grown(c.Context())
			if err != nil {
				return err
			}
			type line struct {
				policy.Grown
				Config string `json:"config,omitempty"`
			}
			lines := []line{}
			for _, p := range all {
				for _, g := range p.Grown {
					lines = append(lines, line{g, p.config})
				}
			}
			return f.show(c, lines, func(w io.Writer) {
				for _, p := range all {
					when(w, len(all) > 1 && len(p.Grown) > 0, "%s:\n", cli.Printable(p.config))
					for i, g := range p.Grown {
						theirs(w, fmt.Sprintf("%4d  ", i+1), fmt.Sprintf("%s  (%s, %s)", grownLine(g), cli.OneLine(g.By, 60), cli.OneLine(g.At, 40)), 0)
					}
				}
			})
		},
	}, "config", "state", "json")
	c.Flags().StringVar(&f.policy, "policy", "", "policy `FILE`")
	return c
}

func grownRemove() *cobra.Command {
	var f flags
	c := f.take(&cobra.Command{
		Use: "remove NUMBER", Short: "Take a line back", SuggestFor: []string{"rm", "delete"},
		Args: needs("writ grown list", "the number of a line", func(args []string) bool { return len(args) == 1 }),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[0])
			if err != nil || n < 1 {
				return cli.Fail(cli.ExitUsage, "writ grown list", "the number of a line")
			}
			all, err := f.grown(c.Context())
			if err != nil {
				return err
			}
			all = slices.DeleteFunc(all, func(p grownPolicy) bool { return len(p.Grown) < n })
			if len(all) == 0 {
				return cli.Fail(cli.ExitData, "writ grown list", "no line has that number")
			}
			p, err := meant(all)
			if err != nil {
				return err
			}
			gateways := f.having(c.Context(), p.file)
			err = regrow(c.Context(), p.file, nil, n, func(was *policy.Policy) error {
				if !was.Grown[n-1].Same(p.Grown[n-1]) {
					return cli.Fail(cli.ExitData, "writ grown list", "another line has that number by now")
				}
				return nil
			})
			if err != nil {
				return err
			}
			err = takes(c.Context(), gateways)
			return cmp.Or(f.show(c, removed{p.Grown[n-1]}, func(w io.Writer) {
				theirs(w, map[bool]string{true: "taken back: ", false: "taken back in the file: "}[err == nil], grownLine(p.Grown[n-1]), 0)
				when(w, len(gateways) == 0, "it counts at a gateway of another state directory until writ reload --state DIR\n")
			}), err)
		},
	}, "config", "state", "json")
	c.Flags().StringVar(&f.policy, "policy", "", "policy `FILE`")
	return c
}

// A policyHolder is a gateway that runs by a policy.
type policyHolder struct {
	door    *http.Client
	state   string // as --state has it
	differs bool   // its file is not what is in force
}

// having are the gateways that run by a policy's file, or do not say by which: of the state
// directory, and of those that the clients were connected to whose policy it is.
func (f *flags) having(ctx context.Context, file string) (out []policyHolder) {
	abs, _ := filepath.Abs(file)
	found := map[string]bool{}
	for _, state := range append([]string{f.state}, statesBy(abs)...) {
		dir, err := existingState(state)
		if err != nil || found[dir] {
			continue
		}
		found[dir] = true
		at := flags{state: state}
		_, doors, _ := at.reach(false)
		for _, door := range doors {
			if g, err := statusAt(ctx, door); err != nil || g.Policy == abs {
				out = append(out, policyHolder{door, state, err != nil || g.Differs != ""})
			}
		}
	}
	return out
}

// statesBy are the state directories that clients were connected to whose policy that file is.
func statesBy(policy string) (states []string) {
	places, _ := foundPlaces()
	for _, p := range places {
		rec, err := p.record()
		if err != nil || rec == nil || p.policy() != policy {
			continue
		}
		for _, u := range rec.Undo {
			if i := slices.Index(u.Ours, "--state"); i >= 0 && i+1 < len(u.Ours) {
				states = append(states, u.Ours[i+1])
			}
		}
	}
	return states
}

// takes has gateways put in force what was taken from their policy's file. Where more was
// changed in one than that, nobody said that it is to be in force.
func takes(ctx context.Context, all []policyHolder) error {
	const counts = "it still counts at a gateway that runs"
	for _, g := range all {
		reload := "writ reload"
		if g.state != "" {
			reload += " --state " + private.Quote(g.state)
		}
		if g.differs {
			return cli.Fail(cli.ExitConfig, reload, counts+", whose policy was changed beside it and not put in force")
		}
		if _, err := reloadAt(ctx, g.door, counts); err != nil {
			return cli.Fail(cli.ExitConfig, reload, "%w", err)
		}
	}
	return nil
}

// A grownPolicy is a policy, its file and the configuration that has it, "" for none.
type grownPolicy struct {
	*policy.Policy
	file, config string
}

// grown reads the policies that are meant: where nobody said which, those of the
// configurations that are in use, at least one.
func (f *flags) grown(ctx context.Context) (all []grownPolicy, err error) {
	if f.policy != "" {
		p, err := config.LoadPolicy(f.policy)
		if err != nil {
			return nil, config.Invalid(err)
		}
		return []grownPolicy{{p, f.policy, ""}}, nil
	}
	used := []string{f.config}
	if f.config == "" {
		if used, err = f.inUse(ctx); err != nil {
			return nil, err
		} else if len(used) == 0 {
			return nil, cli.Fail(cli.ExitUsage, "the same command with --config writ.yaml", "no client is connected and no gateway runs by a configuration: --config or --policy is needed")
		}
	}
	for _, file := range used {
		c, p, err := config.LoadOnly(file, "")
		if err != nil {
			return nil, config.Invalid(err)
		}
		if !slices.ContainsFunc(all, func(o grownPolicy) bool { return o.file == c.Policy }) {
			all = append(all, grownPolicy{p, c.Policy, file})
		}
	}
	return all, nil
}

// meant is the one of policies that is; of several nobody said which.
func meant(all []grownPolicy) (grownPolicy, error) {
	if len(all) == 1 {
		return all[0], nil
	}
	return grownPolicy{}, cli.Fail(cli.ExitUsage, "the same command with --config "+private.Quote(all[0].config), "several configurations are in use, and --config says which: %s",
		joined(all, ", ", func(p grownPolicy) string { return p.config }))
}

// inUse are the configuration files of the clients that are connected, and of the gateways
// that run on the state directory.
func (f *flags) inUse(ctx context.Context) (used []string, err error) {
	places, err := foundPlaces()
	if err != nil {
		return nil, err
	}
	add := func(file string) {
		if file != "" && !slices.Contains(used, file) {
			used = append(used, file)
		}
	}
	for _, p := range places {
		add(p.status().Config)
	}
	dir, err := stateThere(f.state)
	if err != nil {
		return nil, err
	}
	if dir != "" {
		running, _ := f.running(ctx)
		for _, g := range running {
			add(g.Config)
		}
	}
	return used, nil
}

// regrow gives a policy that no gateway of this process has in force lines more, or takes
// the one of a number from it (from 1; 0 for none). look is shown what it was, and may
// refuse that it changes.
func regrow(ctx context.Context, file string, more []policy.Grown, without int, look func(was *policy.Policy) error) error {
	done, err := config.HoldGrown(ctx, file)
	if err != nil {
		return cli.Fail(cli.ExitIO, "", "%w", err)
	}
	defer done()
	grown, err := config.Grow(file, more, without)
	if err != nil {
		return config.Invalid(err)
	}
	if err := look(grown.Was); err != nil {
		return err
	}
	if err := replaceFile(config.GrownFile(file), grown.Text); err != nil {
		return cli.Fail(cli.ExitIO, "", "the file cannot be written: %w", err)
	}
	return nil
}

// grownLine says a line in words.
var grownLine = approval.Sentence

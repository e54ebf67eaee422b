package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/memory"
)

// rowWriter reads the lines of one table out of a state's encoding as it is
// written, and keeps no other.
type rowWriter struct {
	table string
	each  func(line []byte) error
	part  []byte
}

func (w *rowWriter) Write(b []byte) (int, error) {
	n := len(b)
	for {
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		w.part = append(w.part, line...)
		if !ended {
			return n, nil
		}
		if bytes.HasPrefix(w.part, []byte(`{"table":"`+w.table+`"`)) {
			if err := w.each(w.part); err != nil {
				return 0, err
			}
		}
		w.part, b = w.part[:0], rest
	}
}

// rowsOf returns the rows of one table of a state, in their order.
func rowsOf[T any](s *memory.State, table string) (out []T, err error) {
	out = []T{}
	err = s.Encode(&rowWriter{table: table, each: func(line []byte) error {
		var of struct {
			Row T `json:"row"`
		}
		err := json.Unmarshal(line, &of)
		out = append(out, of.Row)
		return err
	}})
	if err != nil {
		return nil, memoryBroken(err)
	}
	return out, nil
}

func memorySources() *cobra.Command {
	suspend := func(use, short, suspended string) *cobra.Command {
		return ordered(use+" SOURCE", short, "", exactly(1, "one source"), memory.CommandSuspend, func(args []string) ([]byte, error) {
			return object("source_id", args[0], "suspended", json.RawMessage(suspended)), nil
		})
	}
	return group("source", "Register, suspend and list sources", "", sourceList(), sourceAdd(),
		suspend("suspend", "Refuse what a source says from now on", "true"), suspend("resume", "Take a suspended source back", "false"))
}

func sourceList() *cobra.Command {
	return listing("List the registered sources", "source", func(w io.Writer, s memory.Source) {
		fmt.Fprintf(w, "%s  %s  reliability %s", cli.OneLine(s.ID, 256), s.Class, s.Reliability)
		when(w, s.CorrectionRate != 0, "  corrected %s", s.CorrectionRate)
		when(w, s.Group != "", "  group %s", cli.OneLine(s.Group, 128))
		when(w, len(s.Domains) > 0, "  domains %s", cli.OneLine(strings.Join(s.Domains, ","), 200))
		when(w, s.Suspended, "  suspended")
		when(w, s.DistrustedSince != nil, "  distrusted since %s", s.DistrustedSince)
		fmt.Fprintf(w, "  by %s\n", cli.OneLine(s.RegisteredBy, 80))
	})
}

// listing lists the rows of one table.
func listing[T any](short, table string, line func(io.Writer, T)) *cobra.Command {
	return reading("list", short, "", cli.NoArgs, func(x *memory.Reader, _ []string) (any, func(io.Writer), error) {
		rows, err := rowsOf[T](x.State, table)
		return rows, func(w io.Writer) {
			for _, row := range rows {
				line(w, row)
			}
		}, err
	})
}

func sourceAdd() *cobra.Command {
	var class, reliability, rate, group string
	var domains []string
	c := ordered("add SOURCE --class CLASS", "Register a source, or change what is registered of it",
		"Register a source: what a tool's results come from (server/tool), or a name of your own. The\n"+
			"class bounds what it is worth and cannot be changed later; a source nobody registered has\n"+
			"the worth of the channel it speaks through. Sources of one group count once.",
		exactly(1, "one source, such as files/read_file"), memory.CommandSource,
		func(args []string) ([]byte, error) {
			if class == "" {
				return nil, cli.Fail(cli.ExitUsage, "writ memory source add SOURCE --class tool_internal", "a source has a --class")
			}
			rel, err := number("reliability", reliability)
			if err != nil {
				return nil, err
			}
			corr, err := number("correction-rate", rate)
			if err != nil {
				return nil, err
			}
			return object("source_id", args[0], "class", class, "reliability", rel, "correction_rate", corr, "group", group, "domains", domains), nil
		})
	c.Flags().StringVar(&class, "class", "", "`CLASS`: operator, direct_user, tool_internal, user_attested, tool_external, document, web, peer_agent, agent_inference or import")
	c.Flags().StringVar(&reliability, "reliability", "", "`0..1` (default: the class's)")
	c.Flags().StringVar(&rate, "correction-rate", "", "`0..1`, how often it had to be corrected")
	c.Flags().StringVar(&group, "group", "", "`NAME` of the sources that are not independent of it")
	c.Flags().StringSliceVar(&domains, "domain", nil, "`WORD` it is good for; may be repeated")
	return c
}

func memoryPredicates() *cobra.Command {
	return group("predicate", "Declare and list predicates", "", listing("List the declared predicates", "predicate", func(w io.Writer, p memory.Predicate) {
		many := "many values"
		if p.Single {
			many = "one value"
		}
		fmt.Fprintf(w, "%s  %s  %s  volatility %s", p.Name, many, p.Class, p.Volatility)
		when(w, len(p.Aliases) > 0, "  also %s", strings.Join(p.Aliases, ","))
		when(w, p.SelfReport, "  self-report")
		when(w, p.MinGroups > 0, "  groups %d", p.MinGroups)
		when(w, p.MinConfidence > 0, "  accepted at %s", p.MinConfidence)
		when(w, p.FutureDates, "  future dates")
		when(w, p.Domain != "", "  domain %s", p.Domain)
		fmt.Fprintf(w, "  by %s\n", cli.OneLine(p.RegisteredBy, 80))
	}), predicateAdd())
}

func predicateAdd() *cobra.Command {
	var aliases []string
	var single, self, future bool
	var volatility, class, groups, confidence, domain string
	c := ordered("add NAME", "Declare a predicate, or change what is declared of it",
		"Declare a predicate. --single says that it has one value at a time, so that a new value\n"+
			"takes the place of an old one, or disputes it; that cannot be changed later.",
		exactly(1, "one predicate: a lower-case word"), memory.CommandPredicate,
		func(args []string) ([]byte, error) {
			g, err := number("min-groups", groups)
			if err != nil {
				return nil, err
			}
			a, err := number("accept-confidence", confidence)
			if err != nil {
				return nil, err
			}
			return object("name", args[0], "aliases", aliases, "single", single, "volatility", volatility, "class", class,
				"self_report", self, "min_groups", g, "accept_confidence", a, "future_dates", future, "domain", domain), nil
		})
	c.Flags().StringSliceVar(&aliases, "alias", nil, "another `NAME` of it; may be repeated")
	c.Flags().BoolVar(&single, "single", false, "it has one value at a time")
	c.Flags().StringVar(&volatility, "volatility", "", "`TIER`: low, medium, high, durable or static")
	c.Flags().StringVar(&class, "class", "", "`CLASS`: descriptive, predictive, causal or procedural")
	c.Flags().BoolVar(&self, "self-report", false, "a person may establish it about himself alone")
	c.Flags().StringVar(&groups, "min-groups", "", "`N` independent groups it takes to accept")
	c.Flags().StringVar(&confidence, "accept-confidence", "", "`0..1` it takes to accept")
	c.Flags().BoolVar(&future, "future-dates", false, "it may hold from a later date on")
	c.Flags().StringVar(&domain, "domain", "", "`WORD` that says which sources are good for it")
	return c
}

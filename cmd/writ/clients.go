package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/principal"
	"github.com/writ-project/writ/internal/statedir"
)

func clientCommand() *cobra.Command {
	return group("client", "Register the clients that are a person's, list them, end one", "",
		clientAdd(), clientList(), clientRemove())
}

func clientsOf(state string) principal.Clients {
	return principal.In(filepath.Join(state, statedir.ClientsDir))
}

func clientAdd() *cobra.Command {
	var f flags
	var role string
	c := f.take(&cobra.Command{
		Use: "add NAME --role agent|person|operator", Short: "Register a client and print its token, once",
		Long: "Register a client and print its token, which nothing keeps: it is shown this once. The client\n" +
			"sends it to `writ serve` as Authorization: Bearer TOKEN. Without a token a client is an agent.\n\n" +
			"  agent     a principal of its own, and no more\n" +
			"  person    what this client answers when it is asked (elicitation) is a person's answer, and\n" +
			"            who has the token may say the user's words, and sign in at the console where\n" +
			"            that has a public address\n" +
			"  operator  the same; its answers count as the operator's\n\n" +
			"Register as a person's only a client that shows its questions to a person, whom no model, hook or\n" +
			"script answers for, and keep the token where its agent's tools cannot read it: whoever has it is\n" +
			"that person to Writ.",
		Example: "  writ client add desktop --role person",
		Args:    exactly(1, "the client's name"),
		RunE: f.inState(func(c *cobra.Command, dir string, args []string) error {
			r := principal.Role(role)
			if !slices.Contains(principal.Roles, r) {
				return cli.Fail(cli.ExitUsage, "writ client add --help", "--role is agent, person or operator")
			}
			if !principal.Name.MatchString(args[0]) {
				return cli.Fail(cli.ExitUsage, "writ client add desktop --role person", "a client's name has 1 to 32 of a-z, 0-9, ., _ and -")
			}
			token, err := clientsOf(dir).Add(args[0], r, time.Now())
			switch {
			case errors.Is(err, principal.ErrExists):
				return cli.Fail(cli.ExitConfig, "writ client remove "+args[0], "there is a client of that name")
			case errors.Is(err, principal.ErrMany):
				return cli.Fail(cli.ExitConfig, "writ client list", "there are as many clients as there may be")
			case err != nil:
				return exposed(err, "the client cannot be registered")
			}
			return f.show(c, addedClient{args[0], r, token}, func(w io.Writer) { fmt.Fprintln(w, token) })
		}),
	}, "state", "json")
	c.Flags().StringVar(&role, "role", "", "`ROLE` of who is behind it: agent, person or operator")
	return c
}

type addedClient struct {
	Name  string         `json:"name"`
	Role  principal.Role `json:"role"`
	Token string         `json:"token"`
}

type clientLine struct {
	Name      string         `json:"name"`
	Role      principal.Role `json:"role"`
	Principal string         `json:"principal"`
	Added     time.Time      `json:"added"`
}

func clientList() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{
		Use: "list", Short: "List the registered clients", Args: cli.NoArgs,
		RunE: f.inState(func(c *cobra.Command, dir string, _ []string) error {
			all, err := clientsOf(dir).All()
			if err != nil {
				return exposed(err, "the clients cannot be read")
			}
			lines := make([]clientLine, len(all))
			for i := range all {
				lines[i] = clientLine{all[i].Name, all[i].Role, all[i].Principal(), all[i].Added}
			}
			return f.show(c, lines, func(w io.Writer) {
				for _, l := range lines {
					fmt.Fprintf(w, "%-32s  %-8s  added %s\n", l.Name, l.Role, l.Added.Format(time.RFC3339))
				}
			})
		}),
	}, "state", "json")
}

func clientRemove() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{
		Use: "remove NAME", Short: "End a client's registration: its token is nobody's from now on",
		Args: exactly(1, "the client's name"),
		RunE: f.inState(func(c *cobra.Command, dir string, args []string) error {
			switch err := clientsOf(dir).Remove(args[0]); {
			case errors.Is(err, principal.ErrUnknown):
				return cli.Fail(cli.ExitData, "writ client list", "there is no client of that name")
			case err != nil:
				return cli.Fail(cli.ExitIO, "", "the registration cannot be removed")
			}
			return f.show(c, removed{args[0]}, func(w io.Writer) { fmt.Fprintf(w, "removed %s\n", args[0]) })
		}),
	}, "state", "json")
}

// removed is what is no more: the client of that name, or a line of the grown policy.
type removed struct {
	Removed any `json:"removed"`
}

// registered returns the principal of the client of that name.
func registered(state, name string) (string, error) {
	all, err := clientsOf(state).All()
	if err != nil {
		return "", exposed(err, "the clients cannot be read")
	}
	for _, c := range all {
		if c.Name == name {
			return c.Principal(), nil
		}
	}
	return "", cli.Fail(cli.ExitData, "writ client list", "there is no client of that name")
}

// callerOf authenticates a request over HTTP: by its token, or as whoever reaches a
// loopback address where it shows none.
func (o *files) callerOf(r *http.Request) (string, bool) {
	header, stated := r.Header["Authorization"]
	if !stated {
		return downstream.Loopback, true
	}
	c, ok := clientsOf(o.state).Bearer(header)
	if !ok {
		return "", false
	}
	return c.Principal(), true
}

// answersFor says whose client a principal is and what his answers are worth; ok is
// false for an agent's.
func (o *files) answersFor(p string) (by string, label writ.Label, ok bool) {
	c, known := clientsOf(o.state).Of(p)
	if !known {
		return "", 0, false
	}
	label, ok = c.Role.Answers()
	return "client " + c.Name, label, ok
}

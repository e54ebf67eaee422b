package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/policy"
)

func sessionCommand() *cobra.Command {
	c := &cobra.Command{Use: "session", Short: "Make, list and close sessions of a gateway, and speak in one",
		RunE: func(c *cobra.Command, args []string) error {
			return cli.Fail(cli.ExitUsage, "writ session --help", "new, say, reopen, list or close")
		}}
	c.AddCommand(sessionNew(), sessionSay(), sessionReopen(), sessionList(), sessionClose())
	return c
}

func sessionNew() *cobra.Command {
	var state string
	var asJSON, header bool
	c := &cobra.Command{
		Use: "new [NAME]", Short: "Mint a session and print its endpoint",
		Long: "Mint a session for the gateway of the state directory and print its endpoint, for\n" +
			"clients that keep no session of their own. With NAME the session is kept under it, for\n" +
			"writ call --session NAME.\n\n" +
			"The endpoint is the session's secret: whoever has it speaks in the session. Writ logs no\n" +
			"path, but others do: the client's own log, its history and configuration, the list of\n" +
			"processes where it is an argument, a proxy's access log. A client that can send a header\n" +
			"is better given what --header prints. Either goes to whoever listens at that address:\n" +
			"use it while the gateway runs.",
		Args: maxOne,
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := stateDir(state)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if s, err := readSession(dir, args[0]); err != nil {
					return err
				} else if s != "" {
					return cli.Fail(cli.ExitConfig, "writ session close "+args[0], "there is a session of that name")
				}
			}
			secret, id, err := mint(c.Context(), dir)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if err := keepSession(dir, args[0], secret); err != nil {
					return err
				}
			}
			all, err := gateways(dir)
			if err != nil {
				return err
			}
			url := "http://" + defaultListen
			if i := slices.IndexFunc(all, (*localdoor.Gateway).Listens); i >= 0 {
				url = all[i].URL
			} else {
				fmt.Fprintln(c.ErrOrStderr(), "writ: no gateway is running here; this is the endpoint once `writ serve` is")
			}
			url += "/mcp"
			endpoint, field := url+"/s/"+secret, downstream.HeaderSession+": "+secret
			switch {
			case asJSON:
				return cli.PrintJSON(c.OutOrStdout(), struct {
					Session  string `json:"session"`
					Endpoint string `json:"endpoint"`
					URL      string `json:"url"`
					Header   string `json:"header"`
				}{id, endpoint, url, field})
			case header:
				fmt.Fprintf(c.OutOrStdout(), "%s\n%s\n", url, field)
			default:
				fmt.Fprintln(c.OutOrStdout(), endpoint)
			}
			return nil
		},
	}
	c.Flags().StringVar(&state, "state", "", "state `DIR`")
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	c.Flags().BoolVar(&header, "header", false, "print the address and the header field that carries the session, a line each")
	return c
}

func maxOne(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return cli.Fail(cli.ExitUsage, "writ session "+c.Name()+" --help", "at most one name")
	}
	return nil
}

func sessionSay() *cobra.Command {
	var state, screenFile string
	c := &cobra.Command{
		Use: "say NAME|s_… [TEXT | -]", Short: "Put the user's own words on record, as evidence in a session",
		Long: "Put the user's own words on record in the session kept under NAME, or of that public id, as\n" +
			"writ session list shows it and a refusal names it: what is typed here, or\n" +
			"read from standard input, vouches for arguments that accept `user`. It is for the person or\n" +
			"the host program, never for the agent: whoever can run this speaks as the user.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return cli.Fail(cli.ExitUsage, "writ session say --help", "a session's name and at most one text")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := stateDir(state)
			if err != nil {
				return err
			}
			if screenFile == "default" {
				screenFile = config.BuiltInScreen
			}
			input, err := config.ReadScreen(screenFile)
			if err != nil {
				return err
			}
			var text []byte
			if len(args) == 2 && args[1] != "-" {
				text = []byte(args[1])
			} else if text, err = io.ReadAll(io.LimitReader(c.InOrStdin(), screen.MaxText+1)); err != nil {
				return cli.Fail(cli.ExitIO, "", "standard input cannot be read")
			}
			if len(text) > screen.MaxText || !utf8.Valid(text) {
				return cli.Fail(cli.ExitData, "writ session say NAME TEXT", "a turn is at most 64 KiB of UTF-8")
			}
			g, session, end, err := named(c.Context(), dir, args[0], input)
			if err != nil {
				return err
			}
			defer end()
			id, err := g.Turn(c.Context(), session, string(text))
			var halted *gateway.HaltedError
			switch {
			case errors.As(err, &halted):
				fmt.Fprintf(c.OutOrStdout(), "halted: %s\n", halted.Rejection.Reason)
				if halted.Reply != "" {
					fmt.Fprintln(c.OutOrStdout(), cli.Printable(halted.Reply))
				}
				return &cli.Exit{Code: cli.ExitRefused, Err: errors.New("")}
			case err != nil:
				return cli.Fail(cli.ExitIO, "writ audit verify", "the turn could not be recorded: %w", err)
			}
			fmt.Fprintf(c.OutOrStdout(), "evidence %s\n", id)
			return nil
		},
	}
	c.Flags().StringVar(&state, "state", "", "state `DIR`")
	c.Flags().StringVar(&screenFile, "screen", "", "input policy `FILE`, or default: a turn that matches halts the session")
	return c
}

// named opens the session kept under a name, or of a public id, over the state directory's log
// and without any server: other processes of that directory see what is written.
func named(ctx context.Context, dir, name string, input *screen.Screen) (*gateway.Gateway, downstream.Session, func(), error) {
	byID := strings.HasPrefix(name, "s_")
	secret := ""
	if !byID {
		var err error
		if secret, err = readSession(dir, name); err != nil {
			return nil, nil, nil, err
		}
		if secret == "" {
			return nil, nil, nil, cli.Fail(cli.ExitData, "writ session new "+name, "no session is kept under that name")
		}
	}
	policy, fs := policy.Parse("none", []byte("tools: {}\n"))
	if len(fs) > 0 {
		return nil, nil, nil, config.Invalid(config.Faults(fs))
	}
	st, err := openStore(ctx, dir)
	if err != nil {
		return nil, nil, nil, err
	}
	g, err := gateway.New(gateway.Options{Store: st, Policy: policy, Screen: input, Version: readBuildInfo().Version})
	if err != nil {
		st.Close()
		return nil, nil, nil, cli.Fail(cli.ExitIO, "", "%w", err)
	}
	var s downstream.Session
	if byID {
		s, err = g.SessionNamed(ctx, name)
	} else {
		s, err = g.FindSession(ctx, loopback, secret)
	}
	if err != nil {
		g.Close()
		st.Close()
		if byID && errors.Is(err, downstream.ErrNoSession) {
			return nil, nil, nil, cli.Fail(cli.ExitData, "writ session list", "there is no open session of that id")
		}
		return nil, nil, nil, sessionError(name, err)
	}
	return g, s, func() { g.Close(); st.Close() }, nil
}

func sessionReopen() *cobra.Command {
	var state string
	c := &cobra.Command{
		Use: "reopen NAME|s_…", Short: "Lift what too many guesses closed in a session",
		Long: "After 5 wrong values for one argument that takes what tools returned, without news of them in\n" +
			"between, that argument is closed; after 50 every act of the session. A person who has looked at\n" +
			"them (writ audit show) lifts that; the record says so. A session is named as it is kept, or by its\n" +
			"public id (writ session list), also that of a writ run.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Fail(cli.ExitUsage, "writ session list", "one session's name or public id")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := stateDir(state)
			if err != nil {
				return err
			}
			g, s, end, err := named(c.Context(), dir, args[0], nil)
			if err != nil {
				return err
			}
			defer end()
			if err := g.Reopen(c.Context(), s); err != nil {
				return cli.Fail(cli.ExitIO, "writ audit verify", "it could not be recorded: %w", err)
			}
			fmt.Fprintf(c.OutOrStdout(), "reopened %s\n", s.PublicID())
			return nil
		},
	}
	c.Flags().StringVar(&state, "state", "", "state `DIR`")
	return c
}

type sessionLine struct {
	Session   string     `json:"session"`
	Name      string     `json:"name,omitempty"` // it is kept under
	Principal string     `json:"principal"`
	Carrier   string     `json:"carrier"`
	Created   time.Time  `json:"created"`
	LastUsed  time.Time  `json:"last_used"`
	Closed    *time.Time `json:"closed,omitempty"`
	// Altered says that it was closed because what it rests on was altered on disk.
	Altered bool `json:"altered,omitempty"`
}

func sessionList() *cobra.Command {
	var state string
	var asJSON, all bool
	c := &cobra.Command{
		Use: "list", Short: "List the sessions of the state directory", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := stateDir(state)
			if err != nil {
				return err
			}
			st, err := openStore(c.Context(), dir)
			if err != nil {
				return err
			}
			defer st.Close()
			lines, names := []sessionLine{}, sessionNames(c.Context(), st, dir)
			for s, err := range st.ListSessions(c.Context()) {
				if err != nil {
					return cli.Fail(cli.ExitIO, "writ audit verify", "the sessions cannot be read: %w", err)
				}
				if !all && !s.Closed.IsZero() {
					continue
				}
				l := sessionLine{Session: s.ID, Name: names[s.ID], Principal: s.Principal, Carrier: s.Endpoint, Created: s.Created, LastUsed: s.LastUsed}
				if !s.Closed.IsZero() {
					l.Closed = &s.Closed
				}
				if l.Altered, err = gateway.Altered(c.Context(), st, s.ID); err != nil {
					return cli.Fail(cli.ExitIO, "writ audit verify", "the sessions cannot be read: %w", err)
				}
				lines = append(lines, l)
			}
			if asJSON {
				return cli.PrintJSON(c.OutOrStdout(), lines)
			}
			for _, l := range lines {
				state := "open"
				if l.Closed != nil {
					state = "closed"
				}
				if l.Altered {
					state = "altered"
				}
				fmt.Fprintf(c.OutOrStdout(), "%s  %-7s  %-8s  %-12s  last used %s", l.Session, state, l.Carrier,
					cli.OneLine(l.Principal, 40), l.LastUsed.Format(time.RFC3339))
				if l.Name != "" {
					fmt.Fprintf(c.OutOrStdout(), "  %s", cli.OneLine(l.Name, 64))
				}
				fmt.Fprintln(c.OutOrStdout())
			}
			return nil
		},
	}
	c.Flags().StringVar(&state, "state", "", "state `DIR`")
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	c.Flags().BoolVar(&all, "all", false, "closed ones too")
	return c
}

func sessionClose() *cobra.Command {
	var state string
	c := &cobra.Command{
		Use: "close NAME | s_…", Short: "Close a session for good",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Fail(cli.ExitUsage, "writ session list", "one name or public id")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := stateDir(state)
			if err != nil {
				return err
			}
			st, err := openStore(c.Context(), dir)
			if err != nil {
				return err
			}
			defer st.Close()
			id, err := publicID(c.Context(), st, dir, args[0])
			if gone := errors.Is(err, errNoSession); err != nil && !gone {
				return err
			} else if gone || id != args[0] {
				if err := os.Remove(filepath.Join(dir, statedir.SessionsDir, args[0])); err != nil && !errors.Is(err, os.ErrNotExist) {
					return cli.Fail(cli.ExitIO, "", "the session's file cannot be removed")
				}
				if gone {
					fmt.Fprintln(c.OutOrStdout(), "the log has no such session: its name is free")
					return nil
				}
			}
			if err := gateway.EndSession(c.Context(), st, id, time.Now()); err != nil {
				return notFound(err)
			}
			fmt.Fprintf(c.OutOrStdout(), "closed %s\n", cli.OneLine(id, 80))
			return nil
		},
	}
	c.Flags().StringVar(&state, "state", "", "state `DIR`")
	return c
}

// publicID is the public id of a session, given by it or by the name it is kept
// under.
func publicID(ctx context.Context, st audit.Sessions, dir, session string) (string, error) {
	if strings.HasPrefix(session, "s_") {
		return session, nil
	}
	secret, err := readSession(dir, session)
	if err != nil {
		return "", err
	}
	if secret == "" {
		return "", cli.Fail(cli.ExitData, "writ session list", "no session is kept under that name")
	}
	id, err := gateway.SessionID(ctx, st, secret)
	if err != nil {
		return "", notFound(err)
	}
	return id, nil
}

// sessionNames are the names that sessions are kept under, by public id.
func sessionNames(ctx context.Context, st audit.Sessions, dir string) map[string]string {
	names := map[string]string{}
	files, _ := os.ReadDir(filepath.Join(dir, statedir.SessionsDir)) // none is kept, or none can be read
	for _, f := range files {
		if id, err := publicID(ctx, st, dir, f.Name()); err == nil && id != f.Name() {
			names[id] = f.Name()
		}
	}
	return names
}

var errNoSession = errors.New("no such session")

// notFound is the end of a command whose session the store did not give: it is
// not there, or cannot be read.
func notFound(err error) error {
	if errors.Is(err, audit.ErrNotFound) {
		return &cli.Exit{Code: cli.ExitData, Err: errNoSession, Hint: "writ session list"}
	}
	return cli.Fail(cli.ExitIO, "writ audit verify", "the session cannot be read: %w", err)
}

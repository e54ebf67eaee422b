package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/login"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/policy"
)

// logins are those of a state directory; their key stands where its heads do.
func logins(state string) *login.Store {
	return login.Open(filepath.Join(state, statedir.LoginsDir), statedir.HeadsDir(state))
}

// signInTime is how long a person has at the page.
const signInTime = 5 * time.Minute

// clientSecret is where the secret of a client id is read from: an argument is seen by others.
const clientSecret = "WRIT_CLIENT_SECRET"

func loginCommand() *cobra.Command {
	var f flags
	var given string
	var o login.Options
	var open bool
	c := f.take(&cobra.Command{
		Use: "login SERVER", Short: "Sign in to a hosted server", Args: exactly(1, "SERVER"),
		Long: "Sign in to a server of the configuration, or of --url, in a browser: by OAuth 2.1, as MCP asks for\n" +
			"it. What its authorization server gives is kept sealed in the state directory, and signs every\n" +
			"request to that URL in from then on, in gateways that run already too. writ logout forgets it.",
		Example: "  writ login linear --config writ.yaml\n  writ login linear --url https://mcp.linear.app/mcp",
		RunE: f.inState(func(c *cobra.Command, state string, args []string) error {
			at, err := f.hosted(args[0], given)
			if err != nil {
				return err
			}
			to, _ := url.Parse(at)
			out := f.aside(c)
			o.Secret = os.Getenv(clientSecret)
			o.Visit = func(page string) {
				u, _ := url.Parse(page)
				if fmt.Fprintf(out, "%s wants you to sign in at %s:\n\n  %s\n\n", to.Host, u.Host, page); open {
					browse(page)
				}
				fmt.Fprintln(c.ErrOrStderr(), "waiting for the browser to come back; Ctrl-C gives up …")
			}
			ctx, cancel := context.WithTimeout(c.Context(), signInTime)
			defer cancel()
			err = logins(state).Login(ctx, args[0], at, o)
			open := errors.Is(err, login.ErrOpen)
			if err != nil && !open {
				return cli.Fail(cli.ExitIO, "writ login --help", "not signed in to %s: %w", args[0], err)
			}
			return f.show(c, signedIn{args[0], !open}, func(w io.Writer) {
				if open {
					fmt.Fprintf(w, "%s wants no login.\n", to.Host)
				} else {
					fmt.Fprintf(w, "Signed in to %s.\n", args[0])
				}
			})
		}),
	}, "state", "config", "json")
	c.Flags().StringVar(&given, "url", "", "the server's `URL`, where no configuration names it yet")
	c.Flags().StringVar(&o.Client, "client", "", "client `ID` that the authorization server gave; its secret, if any, is read from "+clientSecret)
	c.Flags().IntVar(&o.Port, "port", 0, "`PORT` of 127.0.0.1 that the browser comes back to (default: any)")
	c.Flags().BoolVar(&open, "open", false, "open the page in the browser")
	return c
}

// signedIn is what stands of a login after it was asked for, or forgotten.
type signedIn struct {
	Server   string `json:"server"`
	SignedIn bool   `json:"signed_in"` // false too where the server wants no login
}

func logoutCommand() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{
		Use: "logout SERVER", Short: "Forget the login at a server", Args: exactly(1, "SERVER"),
		Long: "Forget the login at a server: no request bears it any more, of gateways that run neither. Its\n" +
			"authorization server is not told; there what it gave ends when it says, or where you end it.",
		RunE: f.inState(func(c *cobra.Command, state string, args []string) error {
			if !policy.ServerName(args[0]) {
				return cli.Fail(cli.ExitUsage, "writ logout --help", "a server's name has 1 to 32 of a-z, 0-9 and -, and does not start with -")
			}
			if err := logins(state).Remove(args[0]); errors.Is(err, login.ErrNone) {
				return cli.Fail(cli.ExitConfig, "writ login "+args[0], "%w", err)
			} else if err != nil {
				return cli.Fail(cli.ExitIO, "", "%w", err)
			}
			return f.show(c, signedIn{Server: args[0]}, func(w io.Writer) { fmt.Fprintf(w, "The login at %s is forgotten.\n", args[0]) })
		}),
	}, "state", "json")
}

// hosted returns the URL of a server: the one given, or that of the configuration.
func (f *flags) hosted(name, given string) (string, error) {
	switch {
	case !policy.ServerName(name):
		return "", cli.Fail(cli.ExitUsage, "writ login --help", "a server's name has 1 to 32 of a-z, 0-9 and -, and does not start with -")
	case given != "":
		u, err := url.Parse(given)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Fragment != "" {
			return "", cli.Fail(cli.ExitUsage, "writ login --help", "--url takes an https URL without user and fragment")
		}
		return given, nil
	case f.config == "":
		return "", cli.Fail(cli.ExitUsage, "writ login "+name+" --config FILE", "which server is meant: --config or --url")
	}
	cfg, _, err := config.LoadOnly(f.config, "")
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(cfg.Servers, func(s config.Server) bool { return s.Name == name })
	switch {
	case i < 0:
		return "", cli.Fail(cli.ExitConfig, "writ check --config "+cli.Printable(f.config), "the configuration has no server %s", name)
	case cfg.Servers[i].URL == "":
		return "", cli.Fail(cli.ExitConfig, "writ login --help", "%s is started on this machine and has no login of its own", name)
	}
	return cfg.Servers[i].URL, nil
}

// browse opens a page, if this machine has a way to; the page was printed before.
func browse(page string) {
	argv := []string{"xdg-open", page}
	switch runtime.GOOS {
	case "darwin":
		argv[0] = "open"
	case "windows":
		argv = []string{"rundll32", "url.dll,FileProtocolHandler", page}
	}
	if cmd := exec.Command(argv[0], argv[1:]...); cmd.Start() == nil {
		go cmd.Wait()
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/text"
)

func runCommand() *cobra.Command {
	var f flags
	var verbose bool
	c := f.take(&cobra.Command{
		Use:   "run [--config FILE [--only SERVER] | --policy FILE -- COMMAND [ARG …]]",
		Short: "Run the gateway over stdio, for a client's configuration",
		Long: "Run the gateway over standard input and output, as a client's configuration wants it:\n" +
			"with --config the servers of writ.yaml, or with --policy one server, started by the\n" +
			"command after --.\n\n" +
			"With --only it runs one server of several that the same client starts, each by an entry\n" +
			"of its own (writ connect). They share the client's session: what one returned can vouch\n" +
			"for a call to another.",
		Example: "  writ run --config writ.yaml\n" +
			"  writ run --policy files.yaml -- npx -y @modelcontextprotocol/server-filesystem /srv",
		RunE: func(c *cobra.Command, args []string) error {
			f.command = args
			if err := f.openEnvironment(); err != nil {
				return err
			}
			o, err := f.load()
			if err != nil {
				return err
			}
			level := slog.LevelError
			if verbose {
				level = slog.LevelInfo
			}
			return o.run(c, level)
		},
	}, "state", "config", "policy", "name")
	c.Flags().StringVar(&f.only, "only", "", "start this one `SERVER` of the configuration, in its client's session")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "say more on standard error")
	c.Flags().BoolVar(&f.shadow, "shadow", false, "judge and record, but let every call pass")
	return c
}

// run runs a gateway over standard input and output until they end: in a session of
// its own, or in the one that its client's gateways share.
func (o *files) run(c *cobra.Command, level slog.Level) error {
	log, _ := o.logs(c, level)
	g, stop, err := o.start(c.Context(), log)
	if err != nil {
		return err
	}
	o.warn(c.ErrOrStderr())
	client := &oneClient{Gateway: g, pid: os.Getppid()}
	defer announce(o.state, "", o.localHandler(g, client, nil), c.ErrOrStderr())()
	o.warnOfShadow(c.ErrOrStderr())
	ctx, cancel := o.sound(c.Context())
	defer cancel()
	o.hearReload(ctx, g, c.ErrOrStderr())
	told := make(chan struct{})
	go func() {
		defer close(told)
		if g.Settled(ctx) == nil {
			o.tell(c.ErrOrStderr(), g)
		}
	}()
	near := tellOfNear(ctx, g.Near, c.ErrOrStderr(), everyMinute(ctx))
	defer func() { cancel(); <-told; <-near }()
	options := downstream.StdioOptions{Principal: fmt.Sprintf("local:%d", os.Getuid()), Refused: g.Refused}
	if o.shares {
		if options.Session, err = sharedSession(ctx, o.state, g, options.Principal, client.pid); err != nil {
			return errors.Join(err, stop())
		}
		client.has(options.Session)
	}
	err = downstream.ServeStdio(ctx, client, awaited(c.InOrStdin()), c.OutOrStdout(), options)
	if serr := stop(); serr != nil && (err == nil || ctx.Err() != nil) {
		return unclean(serr)
	}
	if err != nil && c.Context().Err() == nil {
		return cli.Fail(cli.ExitIO, "", "the client's streams failed: %w", err)
	}
	return nil
}

// awaited is input of which a read that waits keeps no thread. A pipe that a process was started with does,
// and with it one of the processors that Go has for all it runs: beside a sync of the log that is the
// other of two. It is opened anew, so that nobody else who has it finds it changed; what cannot be is
// read as it is.
func awaited(in io.Reader) io.Reader {
	f, ok := in.(*os.File)
	if !ok {
		return in
	}
	if fi, err := f.Stat(); err != nil || fi.Mode()&fs.ModeNamedPipe == 0 {
		return in
	}
	again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return in
	}
	return reopened{again, f}
}

// reopened is a file that was opened twice.
type reopened struct {
	*os.File
	first *os.File
}

func (r reopened) Close() error { return errors.Join(r.File.Close(), r.first.Close()) }

// sharedName is what the session of a client's gateways is kept under: its process id
// is used again, with its start it is not. "" where the start cannot be known.
func sharedName(pid int) string {
	start, among := localdoor.Started(pid)
	if pid <= 1 || start == "" {
		return ""
	}
	return fmt.Sprintf("client-%d-%s-%s", pid, start, among)
}

// sharedSession finds the session that the gateways of one client process share, or
// opens it. nil is that there is none to be had: the gateway has one of its own.
func sharedSession(ctx context.Context, state string, g *gateway.Gateway, principal string, pid int) (downstream.Session, error) {
	endShared(ctx, state, g, principal)
	name := sharedName(pid)
	if name == "" {
		return nil, nil
	}
	for range 3 {
		var opened downstream.Session
		minted := ""
		secret, err := keptSession(state, name, func() (secret string, err error) {
			minted, opened, err = g.OpenSession(ctx, principal, downstream.CarrierStdio)
			return minted, err
		})
		if err != nil {
			return nil, cli.Fail(cli.ExitIO, "writ audit verify", "the client's session cannot be had: %w", err)
		}
		if opened != nil && minted != secret { // another gateway of the client was first
			if err := g.CloseSession(ctx, opened); err != nil {
				return nil, cli.Fail(cli.ExitIO, "writ audit verify", "a session cannot be closed: %w", err)
			}
		}
		s, err := g.FindSession(ctx, principal, secret)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, downstream.ErrNoSession) {
			return nil, sessionError(name, err)
		}
		// It was closed, or outlived its time, and its client did not.
		if path, err := sessionFile(state, name); err != nil || os.Remove(path) != nil {
			return nil, cli.Fail(cli.ExitIO, "", "the file of a session that is over cannot be removed")
		}
	}
	return nil, cli.Fail(cli.ExitIO, "writ session list", "the client's session is closed as soon as it is opened")
}

var sharedFile = text.Pattern(`^client-([0-9]{1,10})-([0-9]{1,20})-([0-9a-f]{12})$`)

// shared is a session that the gateways of a client share, as it is kept.
type shared struct {
	name string
	pid  int  // of the client
	runs bool // it has not ended
	here bool // it is, or was, in this container
}

// sharedIn are those of a state directory.
func sharedIn(state string) (all []shared) {
	kept, _ := os.ReadDir(filepath.Join(state, statedir.SessionsDir))
	for _, e := range kept {
		m := sharedFile().FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		if pid, err := strconv.Atoi(m[1]); err == nil {
			start, among := localdoor.Started(pid)
			all = append(all, shared{e.Name(), pid, start == m[2], among == m[3]})
		}
	}
	return all
}

// endShared closes the sessions of clients that have ended. One that cannot be closed
// lapses.
func endShared(ctx context.Context, state string, g *gateway.Gateway, principal string) {
	for _, kept := range sharedIn(state) {
		if kept.runs {
			continue
		}
		secret, err := readSession(state, kept.name)
		if err != nil || secret == "" {
			continue
		}
		s, err := g.FindSession(ctx, principal, secret)
		if err == nil && !kept.here || err != nil && !errors.Is(err, downstream.ErrNoSession) {
			continue // of another container, where its client may live
		}
		// Who removes the file closes the session.
		if os.Remove(filepath.Join(state, statedir.SessionsDir, kept.name)) == nil && err == nil {
			_ = g.CloseSession(ctx, s)
		}
	}
}

// sharedBy is the public id of the session that the gateways of a client share, ""
// where they share none.
func sharedBy(ctx context.Context, state string, pid int) (string, error) {
	name := sharedName(pid)
	if name == "" {
		return "", nil
	}
	secret, err := readSession(state, name)
	if err != nil || secret == "" {
		return "", err
	}
	st, err := openForReading(state)
	if err != nil {
		return "", err
	}
	defer st.Close()
	return gateway.SessionID(ctx, st, secret)
}

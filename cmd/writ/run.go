package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/mcp/downstream"
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

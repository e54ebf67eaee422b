package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/policy"
)

func reloadCommand() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{
		Use: "reload", Short: "Have the running gateways read their policy and configuration again", Args: cli.NoArgs,
		Long: "Have the running gateways of the state directory read their policy and configuration again,\n" +
			"as SIGHUP does: they are read whole, then swapped whole. Where something in them is broken the\n" +
			"old ones stay in force, and the faults are shown. A server that is new, or to be started\n" +
			"otherwise, has to answer before anything changes; one that is no more ends after the calls that\n" +
			"run there; the others keep running. Shadow, approvals, evidence_megabytes,\n" +
			"metrics, console, otlp, log and the memory take a restart.",
		RunE: func(c *cobra.Command, _ []string) error {
			doors, err := f.doors(false)
			if err != nil {
				return err
			}
			all, failed := []reloaded{}, error(nil)
			for _, door := range doors {
				r, err := reloadAt(c.Context(), door, "nothing was changed")
				if failed = err; err != nil {
					break
				}
				all = append(all, r)
			}
			return f.showDone(c, len(all), all, func(w io.Writer) {
				for _, r := range all {
					r.print(w)
				}
			}, failed)
		},
	}, "state", "json")
}

// reloaded is what a gateway says of a reload.
type reloaded struct {
	Policy    string   `json:"policy,omitempty"`  // SHA-256 of the policy in force
	Started   []string `json:"started,omitempty"` // servers
	Restarted []string `json:"restarted,omitempty"`
	Ended     []string `json:"ended,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Error     string   `json:"error,omitempty"` // why the old ones are
	Try       string   `json:"try,omitempty"`
}

func (r *reloaded) print(w io.Writer) {
	fmt.Fprintf(w, "in force: policy sha256:%s\n", cli.OneLine(r.Policy, 64))
	for _, s := range []struct {
		what  string
		names []string
	}{{"started", r.Started}, {"restarted", r.Restarted}, {"ended", r.Ended}} {
		when(w, len(s.names) > 0, "%s: %s\n", s.what, cli.OneLine(strings.Join(s.names, ", "), 1000))
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "%s\n", cli.Printable(warning))
	}
}

// reloadAt has a gateway reload; so far is what holds as long as it does not.
func reloadAt(ctx context.Context, door *http.Client, soFar string) (r reloaded, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := exchange(ctx, door, "POST /reload", "", nil, 1<<20, &r); err != nil {
		return r, err
	}
	if r.Error != "" {
		return r, cli.Fail(cli.ExitConfig, cli.OneLine(cmp.Or(r.Try, "writ check --live"), 200), "%s: %s", soFar, cli.Printable(r.Error))
	}
	return r, nil
}

// reload reads a gateway's files again and puts them in force, all or none.
func (o *files) reload(ctx context.Context, g *gateway.Gateway) (out reloaded, err error) {
	o.loading <- struct{}{}
	defer func() { <-o.loading }()
	next, err := o.again()
	if err != nil {
		return out, err
	}
	var fixed []string
	for _, f := range []struct {
		name    string
		is, was any
	}{{"shadow", next.shadow, o.shadow}, {"approvals", next.asks, o.asks}, {"evidence_megabytes", next.caps, o.caps}, {"memory", next.memory, o.memory}, {"host", next.host, o.host},
		{"metrics", next.metrics, o.metrics}, {"console", next.origin, o.origin}, {"otlp", next.otlp, o.otlp}, {"log", next.log, o.log},
		{"retention", next.retain, o.retain}, {"witnesses", next.named, o.named}} {
		if !strictyaml.Same(f.is, f.was) {
			fixed = append(fixed, f.name)
		}
	}
	if fixed != nil {
		return out, cli.Fail(cli.ExitConfig, "restart the gateway", "%s changed, which takes a restart", strings.Join(fixed, ", "))
	}
	next.ownPaths = append(next.ownPaths, o.addresses...)
	did, err := g.Reload(ctx, next.setup())
	if err != nil {
		return out, err
	}
	o.now = next
	out.Policy, out.Warnings = fmt.Sprintf("%x", next.policy.Digest), next.warnings()
	out.Started, out.Restarted, out.Ended = did.Started, did.Restarted, did.Ended
	return out, nil
}

// policyFile is where the policy stands, "" for the built-in one's.
func (o *files) policyFile() string {
	if abs, err := filepath.Abs(o.file); o.file != "" && err == nil {
		return abs
	}
	return o.file
}

// unlike is how a policy's file, with what was kept beside it, is otherwise than what is in force.
type unlike struct {
	says  string         // "" where it is the same
	lines []cli.DiffLine // of what is in force, and of the file
	disk  *policy.Policy // what stands there, nil where that is no policy
}

func (o *files) differs() (u unlike) {
	if o.file == "" {
		return u
	}
	disk, err := config.LoadPolicy(o.file)
	if err != nil {
		u.says = "the policy's file cannot be put in force as it stands, and what was in force before still counts: writ check says why"
		return u
	}
	if u.disk = disk; disk.Digest != o.policy.Digest {
		u.lines = cli.Diff(o.policy.Source, disk.Source)
		more, less := cli.Changed(u.lines)
		u.says = fmt.Sprintf("the policy's file is not what is in force: it has %s more and %s less, which writ reload puts in force",
			cli.Number(more, "line", "lines"), cli.Number(less, "line", "lines"))
	}
	return u
}

// setup is what of the files a gateway that runs can be given.
func (o *files) setup() gateway.Setup {
	return gateway.Setup{Policy: o.policy, Screen: o.screen, Servers: o.servers, OwnPaths: o.ownPaths}
}

// grow has lines grow beside the policy in force, and puts them in force, with what another
// gateway has kept there meanwhile: there is one file for all that a client starts. What
// else changed in it since it was read comes in by a reload alone.
func (o *files) grow(ctx context.Context, g *gateway.Gateway, lines []policy.Grown, record func() error) error {
	o.loading <- struct{}{}
	defer func() { <-o.loading }()
	done, err := config.HoldGrown(ctx, o.now.file)
	if err != nil {
		return err
	}
	defer done()
	grown, err := config.Grow(o.now.file, lines, 0)
	if err != nil {
		return err
	}
	if was := grown.Was; was.Digest != o.now.policy.Digest && !was.Grew(o.now.policy) {
		return errors.New("the policy's file is not what is in force any more: writ reload comes first")
	}
	if err := record(); err != nil {
		return err
	}
	if err := replaceFile(config.GrownFile(o.now.file), grown.Text); err != nil {
		return errors.New("the file cannot be written")
	}
	next := *o.now
	next.policy = grown.Now
	if _, err := g.Reload(ctx, next.setup()); err != nil {
		return errors.New("it stands beside the policy, and is in force after writ reload")
	}
	o.now = &next
	return nil
}

// hearReload reloads at each SIGHUP, until the context ends.
func (o *files) hearReload(ctx context.Context, g *gateway.Gateway, stderr io.Writer) {
	if len(reloadSignals) == 0 {
		return // Notify of none is of all
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, reloadSignals...)
	go func() {
		defer signal.Stop(hup)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hup:
				if did, err := o.reload(ctx, g); err != nil {
					fmt.Fprintf(stderr, "writ: nothing was changed: %s\n", cli.Printable(err.Error()))
				} else {
					fmt.Fprint(stderr, "writ: ")
					did.print(stderr)
				}
			}
		}
	}()
}

// reloadHandler is POST /reload of the local door, for whoever may answer there.
func (o *files) reloadHandler(g *gateway.Gateway, apart ...int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var out reloaded
		status := http.StatusOK
		err := localdoor.Apart(r.Context(), apart...)
		if err != nil {
			err = cli.Fail(cli.ExitRefused, cmp.Or(ownWindow(err.Error()), "a terminal that was open before, or a new login"), "%w", err)
		} else {
			out, err = o.reload(r.Context(), g)
		}
		if err != nil {
			out.Error, status = err.Error(), http.StatusConflict
			if e, ok := errors.AsType[*cli.Exit](err); ok {
				out.Try = e.Hint
			}
		}
		answerJSON(w, status, out)
	}
}

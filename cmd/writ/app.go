package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/console"
	"github.com/writ-project/writ/internal/example"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/hook"
	"github.com/writ-project/writ/internal/login"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/metrics"
	"github.com/writ-project/writ/internal/otlp"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/policy"
)

// commands are the subcommands, by what a person wants to do.
func commands() []*cobra.Command {
	var all []*cobra.Command
	for _, g := range []struct {
		id       string
		commands []*cobra.Command
	}{
		{"begin", []*cobra.Command{connectCommand(), disconnectCommand(), statusCommand(), loginCommand(), logoutCommand()}},
		{"answer", []*cobra.Command{watchCommand(), approveCommand(), consoleCommand(), learnCommand(), grownCommand()}},
		{"look", []*cobra.Command{auditCommand(), sessionCommand(), placesCommand(), memoryCommand()}},
		{"policy", []*cobra.Command{initCommand(), checkCommand(), toolsCommand(), callCommand(), reloadCommand()}},
		{"run", []*cobra.Command{serveCommand(), runCommand(), clientCommand(), hookCommand(), migrateCommand()}},
		{"", []*cobra.Command{askCommand(), groundCommand(), evaluationCommand(), versionCommand(), manualCommand(), exampleServerCommand()}},
	} {
		for _, c := range g.commands {
			c.GroupID = g.id
		}
		all = append(all, g.commands...)
	}
	return all
}

// groups are the headings of help, in its order.
func groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: "begin", Title: "Put it in front of what you have:"},
		{ID: "answer", Title: "Answer, and be asked less:"},
		{ID: "look", Title: "See what was done and what is remembered:"},
		{ID: "policy", Title: "Write a policy and try it:"},
		{ID: "run", Title: "Run it yourself:"},
	}
}

// files are what one invocation works with.
type files struct {
	state    string
	servers  []upstream.Config
	policy   *policy.Policy
	shadow   bool
	ownPaths []string
	memory   *config.Memory    // nil for none
	cfg      *config.Config    // empty where there is none
	stderr   io.Writer         // where what is for persons goes; nil is the process's own
	retain   gateway.Retention // zero where nothing leaves the log by itself
	host     *hook.Host        // whose own tools are judged, nil for none
	screen   *screen.Screen    // of users' turns, nil for none
	example  bool
	unnamed  bool   // for one command, which names no servers
	config   string // file, absolute, "" for none
	file     string // policy file, "" for the built-in one

	shares bool // its session is that of all gateways of its client

	queue *approval.Queue // of what waits for one

	again   func() (*files, error) // reads them once more
	loading chan struct{}          // holds one while they are, and guards now
	// addresses are the gateway's own, which no tool may name whatever is reloaded.
	addresses []string
	now       *files // in force at the gateway that was started: what is reloaded of them is

	logins   *login.Store
	keeps    *memoryserver.Keeper // of the memory, once it is mounted; nil for none
	terminal *terminal            // of the command whose calls these are, nil for none

	broken <-chan struct{} // of the log, once it is open
	store  *sqlite.Store   // once it is open
	told   *otlp.Exporter  // nil for none

	witnesses *witnesses        // of writ serve, else none
	retainer  *gateway.Retainer // of writ serve, nil where nothing leaves the log by itself

	console *console.Console   // of a gateway that serves one; nil for none
	opens   bool               // it is opened in a browser at once
	turned  *metrics.Family    // tokens that let nobody in there
	callers *localdoor.Callers // who speaks MCP to it over HTTP; nil where nobody can
	status  func(context.Context, *files) (*shownStatus, error)
}

// sound returns a context that ends with ctx, or when the log's disk failed:
// then the process must end, and never write on in that file.
func (o *files) sound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-o.broken:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// unclean is the end of a gateway whose stop reported err.
func unclean(err error) error {
	if e, ok := errors.AsType[*cli.Exit](err); ok {
		return e
	}
	return cli.Fail(cli.ExitIO, "writ audit verify", "the gateway did not end cleanly: %w", err)
}

// load reads the configuration a command works with, without starting
// anything. Every fault is exit 78.
func (f *flags) load() (*files, error) {
	o, err := f.read()
	if err == nil {
		o.again = f.read
	}
	return o, err
}

func (f *flags) readConfig() (*files, error) {
	state, err := stateDir(f.state)
	if err != nil {
		return nil, err
	}
	out := newFiles(state)
	out.shadow = f.shadow
	if f.config == "" {
		return out, out.loadExample()
	}
	if f.only == "" {
		out.cfg, out.policy, err = config.Load(f.config)
	} else {
		out.cfg, out.policy, err = config.LoadOnly(f.config, f.only)
	}
	if err != nil {
		return nil, config.Invalid(f.byClient(err))
	}
	cfg := out.cfg
	out.shadow, out.file, out.host = cfg.Shadow || f.shadow, cfg.Policy, hook.Named(cfg.Host)
	for _, s := range cfg.Servers {
		if f.only == "" || f.only == s.Name {
			out.servers = append(out.servers, s.Upstream())
		}
	}
	if f.only != "" && len(out.servers) == 0 {
		return nil, cli.Fail(cli.ExitConfig, "writ check --config FILE", "the configuration has no server of that name")
	}
	if out.screen, err = config.ReadScreen(cfg.Screen); err != nil {
		return nil, err
	}
	if out.config, err = filepath.Abs(f.config); err != nil {
		return nil, cli.Fail(cli.ExitConfig, "", "the configuration has no absolute path")
	}
	if cfg.Memory.MountedAt(f.only) {
		out.memory = &cfg.Memory
	}
	if cfg.Retention.Days.Valid {
		if err := out.keep(&cfg.Retention); err != nil {
			return nil, err
		}
	}
	for _, file := range append(cfg.Files(), f.config, config.GrownFile(cfg.Policy), config.GrownLock(cfg.Policy)) {
		out.own(file)
	}
	if f.only != "" {
		out.shares = true
		out.ownClient(filepath.Dir(f.config))
	}
	return out, nil
}

// byClient says of variables that are not set here which client's file sets them, where it starts the servers.
func (f *flags) byClient(err error) error {
	rec, rerr := readConnected(filepath.Dir(f.config))
	fs, _ := errors.AsType[config.Faults](err)
	for i := range fs {
		if rerr == nil && strings.HasSuffix(fs[i].Hint, "=…") {
			fs[i].Hint += ", as the env of its entry in " + rec.File + " has it"
		}
	}
	return err
}

// keep takes the retention of a configuration: where its archives lie is no tool's to name.
func (o *files) keep(t *config.Retention) (err error) {
	o.retain = gateway.Retention{Days: t.Days.N, Archive: t.Archive, SegmentDays: t.SegmentDays.N, SegmentBytes: int64(t.SegmentMegabytes.N) << 20}
	if t.Archive == "" {
		return nil
	}
	if o.retain.Archive, err = filepath.Abs(t.Archive); err != nil {
		return cli.Fail(cli.ExitConfig, "retention: { archive: /an/absolute/path }", "where the archives are to lie is not known")
	}
	o.own(o.retain.Archive)
	return nil
}

// newFiles returns the files of a state directory, which no tool may name: with
// it this process, whose memory and environment hold what it holds.
func newFiles(state string) *files {
	o := &files{state: state, cfg: &config.Config{}, ownPaths: statedir.Own(state), queue: approval.New(time.Now), loading: make(chan struct{}, 1), logins: logins(state), witnesses: &witnesses{},
		turned: metrics.Counter("writ_console_refused_total", "Tokens that let nobody in at the console's public address.")}
	if dir := statedir.HeadsDir(state); dir != "" {
		o.own(dir)
	}
	return o
}

// own adds a path that no tool may name (R34), and where it leads.
func (o *files) own(file string) { o.ownPaths = append(o.ownPaths, statedir.Named(file)...) }

func (o *files) loadExample() error {
	self, err := os.Executable()
	if err != nil {
		return cli.Fail(cli.ExitIO, "writ serve --config FILE", "the built-in example cannot be started: no path of this program")
	}
	p, fs := policy.Parse("built-in policy", example.Policy())
	if len(fs) > 0 {
		return config.Invalid(config.Faults(fs))
	}
	o.policy, o.example, o.memory = p, true, config.DefaultMemory()
	o.servers = []upstream.Config{{Name: example.Name, Command: []string{self, exampleServerName}, Era: upstream.Modern}}
	return nil
}

// called is what refusals call the policy's file: its name, and no path of this machine.
func (o *files) called() string {
	if o.file == "" {
		return ""
	}
	return filepath.Base(o.file)
}

// openStore opens the state directory's log with its key, made on first use.
func openStore(ctx context.Context, state string) (*sqlite.Store, error) {
	return openStoreTelling(ctx, state, os.Stderr)
}

// openStoreTelling is openStore, which tells there what a person is to know of it.
func openStoreTelling(ctx context.Context, state string, stderr io.Writer) (*sqlite.Store, error) {
	signer, verifier, err := logKey(state)
	if err != nil {
		return nil, err
	}
	accept, _ := ctx.Value(acceptRollback{}).(bool)
	st, err := sqlite.Open(state, sqlite.Options{Signer: signer, Verifier: verifier, Elsewhere: statedir.HeadsDir(state), Accept: accept})
	if err != nil {
		return nil, storeError(err)
	}
	if n := st.Notice(); n != "" {
		fmt.Fprintf(stderr, "writ: %s\n", n)
	}
	return st, nil
}

// acceptRollback is the context's key for the flag of that name.
type acceptRollback struct{}

const acceptRollbackFlag = "accept-rollback"

func storeError(err error) error {
	if oe, ok := errors.AsType[*sqlite.OpenError](err); ok {
		code := cli.ExitIO
		switch oe.Reason {
		case sqlite.NotDatabase, sqlite.Newer, sqlite.Damaged, sqlite.WrongKey, sqlite.RolledBack, sqlite.Copied, sqlite.Unsigned:
			code = cli.ExitData
		}
		return &cli.Exit{Code: code, Err: err, Hint: oe.Hint}
	}
	return cli.Fail(cli.ExitIO, "", "the audit log cannot be opened: %w", err)
}

// logKey reads the log's key pair, or makes it.
func logKey(state string) (note.Signer, note.Verifier, error) {
	signer, verifier, err := statedir.Key(state)
	switch {
	case errors.Is(err, statedir.ErrKeyLost):
		return nil, nil, cli.Fail(cli.ExitData, "put "+filepath.Join(state, statedir.KeyFile)+" back from where it was copied to, or begin anew with another --state", "%w", err)
	case errors.Is(err, statedir.ErrNoKey):
		return nil, nil, cli.Fail(cli.ExitData, "", "%w", err)
	case err != nil:
		return nil, nil, exposed(err, err.Error())
	}
	return signer, verifier, nil
}

// logVerifier reads the log's public key, and makes nothing: from a file, or
// from the state directory, where the key itself is worth more than its copy.
func logVerifier(state, file string) (note.Verifier, error) {
	_, v, err := readKey(state, file)
	return v, err
}

// readKey is logVerifier, and that key as it is written.
func readKey(state, file string) (text string, v note.Verifier, err error) {
	if text, err = logKeyText(state, file); err == nil {
		v, err = parseVerifier(cmp.Or(file, filepath.Join(state, statedir.PubFile)), text)
	}
	return text, v, err
}

// givenKey is the public key of a log by which a file is checked: the one that stands in a file
// of its own, else the one that this one says is its.
func givenKey(key, file, says string) (note.Verifier, error) {
	if key != "" {
		return logVerifier("", key)
	}
	return parseVerifier(file, says)
}

// logKeyText is the public key of a log as it is written: that of a file, else that of
// the state directory's own key, else what was kept of it there.
func logKeyText(state, file string) (string, error) {
	if file == "" {
		if skey, err := os.ReadFile(filepath.Join(state, statedir.KeyFile)); err == nil {
			_, _, vkey, err := statedir.ParseKey(skey)
			if err != nil {
				return "", cli.Fail(cli.ExitData, "", "%w", err)
			}
			return strings.TrimSpace(vkey), nil
		}
		file = filepath.Join(state, statedir.PubFile)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", cli.Fail(cli.ExitIO, "writ audit verify --key FILE", "the log's public key cannot be read")
	}
	return strings.TrimSpace(string(b)), nil
}

// parseVerifier reads what stands in a file of the log's public key.
func parseVerifier(file, key string) (note.Verifier, error) {
	v, err := note.NewVerifier(strings.TrimSpace(key))
	if err != nil {
		return nil, cli.Fail(cli.ExitData, "", "%s is no public key of a log", cli.Printable(file))
	}
	return v, nil
}

// spared is how much may be garbage, beside as much as is in use, before a gateway collects it. A heap is
// collected when it has doubled; with little in use that was every hundred calls, and took an eighth of
// what calls under load took. Bytes that nobody touches count as in use, and take no memory.
const spared = 32 << 20

// start opens the store and a gateway over it. stop ends both.
func (o *files) start(ctx context.Context, log *slog.Logger) (g *gateway.Gateway, stop func() error, err error) {
	stderr := o.stderr
	if stderr == nil {
		stderr = os.Stderr
	}
	st, err := openStoreTelling(ctx, o.state, stderr)
	if err != nil {
		return nil, nil, err
	}
	if o.unnamed {
		if err := o.onlyExample(ctx, st); err != nil {
			st.Close()
			return nil, nil, err
		}
	}
	if err := o.witnesses.first(ctx, st); err != nil {
		st.Close()
		return nil, nil, err
	}
	opts := gateway.Options{
		Store: st, Policy: o.policy, PolicyFile: o.called(), Servers: o.servers, Shadow: o.shadow, OwnPaths: o.ownPaths, Caps: o.cfg.Caps(),
		Approvals: o.queue, ApprovalsStand: o.cfg.Approvals, AnswersFor: o.answersFor,
		Snapshots: statedir.Snapshots(o.state),
		Screen:    o.screen, Version: readBuildInfo().Version, Log: log,
		Approve: o.approve,
		Ended: func(s upstream.Config, died *upstream.DiedError) {
			fmt.Fprintf(stderr, "writ: server %s ended, and is started again%s\n", s.Name, lastWords(died, s.Name, []upstream.Config{s}))
		},
		Credential: func(server, url string) upstream.Credential { return o.logins.Source(server, url) },
	}
	if o.host != nil {
		opts.Tools = o.host.Definitions()
	}
	o.now = o
	if o.file != "" {
		opts.Grow = func(ctx context.Context, lines []policy.Grown, record func() error) error {
			return o.grow(ctx, g, lines, record)
		}
	}
	if o.cfg.Approvals && o.terminal != nil && apartFromClients(o.state) {
		opts.Own = o.askHere
	}
	if o.memory != nil {
		var s *memoryserver.Server
		if s, err = mountMemory(ctx, o.state, st, o.memory); errors.Is(err, audit.ErrAltered) {
			log.Error("what the memory rests on was altered on disk: it is closed, find out by whom (writ audit verify)", "error", err)
		} else if err != nil {
			st.Close()
			return nil, nil, err
		}
		opts.Inside, opts.Namespace, o.keeps = s, o.memory.Namespace, s.Keeper()
	}
	o.told = o.tells(log)
	opts.OTLP = o.told
	g, err = gateway.New(opts)
	if err == nil {
		err = g.Start(ctx)
	}
	if err != nil {
		o.told.Close(ctx)
		st.Close()
		return nil, nil, cli.Fail(cli.ExitIO, "writ check", "%w", err)
	}
	o.broken, o.store = st.Broken(), st
	untouched := make([]byte, spared)
	return g, func() error {
		runtime.KeepAlive(untouched)
		err := errors.Join(g.Close(), st.Close())
		ctx, cancel := context.WithTimeout(context.Background(), toldWithin)
		defer cancel()
		o.told.Close(ctx)
		select {
		case <-o.broken:
			return cli.Fail(cli.ExitDisk, "writ audit verify", "the disk failed while the log was written; what was not recorded did not happen, and the last acts may have an unknown outcome")
		default:
			return err
		}
	}, nil
}

// stateDir returns the directory writ keeps its state in, after it was found to
// be nobody else's.
func stateDir(flag string) (string, error) {
	dir, err := madeState(flag)
	if err == nil {
		err = checkState(dir)
	}
	return dir, err
}

// checkState refuses a state directory that is not its user's alone.
func checkState(dir string) error {
	if err := statedir.Check(dir); err != nil {
		return exposed(err, "the state directory cannot be read")
	}
	return nil
}

// exposed is the error of a file that is not the user's own, with the command
// that mends it; any other error is told as otherwise.
func exposed(err error, otherwise string) error {
	if e, ok := errors.AsType[*private.Error](err); ok {
		return &cli.Exit{Code: cli.ExitConfig, Err: err, Hint: e.Mend}
	}
	return cli.Fail(cli.ExitIO, "", "%s", otherwise)
}

// madeState makes the state directory, with mode 0700.
func madeState(flag string) (string, error) {
	dir, err := statePath(flag)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); errors.Is(err, fs.ErrPermission) {
		if err := private.Another(dir); err != nil {
			return "", exposed(err, "")
		}
		return "", cli.Fail(cli.ExitIO, "writ … --state DIR", "the state directory is not open to this process: allow it to read and write %q", dir)
	} else if err != nil {
		return "", cli.Fail(cli.ExitIO, "writ … --state DIR", "the state directory %q cannot be made: %w", dir, cmp.Or(errors.Unwrap(err), err))
	}
	return dir, nil
}

// statePath is where writ keeps its state: the flag's value,
// $XDG_STATE_HOME/writ, or the platform's equivalent.
func statePath(flag string) (string, error) {
	dir := flag
	if dir == "" {
		base := os.Getenv("XDG_STATE_HOME")
		if base == "" || !filepath.IsAbs(base) {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", cli.Fail(cli.ExitConfig, "writ … --state DIR", "no home directory to keep the state in")
			}
			switch runtime.GOOS {
			case "darwin":
				base = filepath.Join(home, "Library", "Application Support")
			case "windows":
				if base, err = os.UserCacheDir(); err != nil {
					return "", cli.Fail(cli.ExitConfig, "writ … --state DIR", "no directory to keep the state in")
				}
			default:
				base = filepath.Join(home, ".local", "state")
			}
		}
		dir = filepath.Join(base, "writ")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", cli.Fail(cli.ExitConfig, "", "the state directory has no absolute path")
	}
	return dir, nil
}

package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/example"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/gateway/upstream"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/screen"
)

// commands lists the subcommands in the order help shows them.
func commands() []*cobra.Command {
	return []*cobra.Command{
		serveCommand(), runCommand(), initCommand(), checkCommand(), toolsCommand(), callCommand(),
		askCommand(), groundCommand(),
		sessionCommand(), placesCommand(), auditCommand(), memoryCommand(), evalCommand(), invariantsCommand(), versionCommand(), exampleServerCommand(),
	}
}

// Flags most commands share.
type sharedFlags struct {
	state  string
	config string
}

func (f *sharedFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.state, "state", "", "state `DIR` (default: writ under the user's state directory)")
	c.Flags().StringVar(&f.config, "config", "", "configuration `FILE` (default: the built-in example server)")
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fail(exitUsage, "writ "+c.Name()+" --help", "%s takes no arguments", c.Name())
	}
	return nil
}

// files are what one invocation works with.
type files struct {
	state    string
	servers  []upstream.Config
	policy   *gate.Policy
	shadow   bool
	ownPaths []string
	memory   *MemoryConfig  // nil for none
	screen   *screen.Screen // of users' turns, nil for none
	example  bool
	file     string // policy file, "" for the built-in one

	broken <-chan struct{} // of the log, once it is open
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
	var e *exit
	if errors.As(err, &e) {
		return e
	}
	return fail(exitIO, "writ audit verify", "the gateway did not end cleanly: %w", err)
}

// load reads the configuration a command works with, without starting
// anything. Every fault is exit 78.
func (f *sharedFlags) load() (*files, error) {
	state, err := stateDir(f.state)
	if err != nil {
		return nil, err
	}
	out := newFiles(state)
	if dir := headsDir(state); dir != "" {
		out.own(dir)
	}
	if f.config == "" {
		return out, out.loadExample()
	}
	cfg, p, err := load(f.config)
	if err != nil {
		return nil, configError(err)
	}
	out.policy, out.shadow, out.file = p, cfg.Shadow, cfg.Policy
	for _, s := range cfg.Servers {
		out.servers = append(out.servers, s.upstream())
	}
	if out.screen, err = readScreen(cfg.Screen); err != nil {
		return nil, err
	}
	if cfg.Memory.Given() {
		out.memory = &cfg.Memory
	}
	for _, file := range append(cfg.files(), f.config) {
		out.own(file)
	}
	return out, nil
}

// newFiles returns the files of a state directory, which no tool may name: with
// it this process, whose memory and environment hold what it holds.
func newFiles(state string) *files {
	o := &files{state: state}
	o.own(state)
	if runtime.GOOS == "linux" {
		o.ownPaths = append(o.ownPaths, fmt.Sprintf("/proc/%d", os.Getpid()), "/proc/self", "/proc/thread-self", "/dev/fd")
	}
	return o
}

// own adds a path that no tool may name (R34), and where it leads.
func (o *files) own(file string) {
	if abs, err := filepath.Abs(file); err == nil {
		o.ownPaths = append(o.ownPaths, abs)
		if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
			o.ownPaths = append(o.ownPaths, real)
		}
	}
}

func (o *files) loadExample() error {
	self, err := os.Executable()
	if err != nil {
		return fail(exitIO, "writ serve --config FILE", "the built-in example cannot be started: no path of this program")
	}
	p, fs := gate.ParsePolicy("built-in policy", example.Policy())
	if len(fs) > 0 {
		return configError(faults(fs))
	}
	o.policy, o.example, o.memory = p, true, builtinMemory()
	o.servers = []upstream.Config{{Name: example.Name, Command: []string{self, exampleServerName}, Era: upstream.Modern}}
	return nil
}

func configError(err error) error {
	var fs faults
	hint := "writ check --config FILE"
	if errors.As(err, &fs) && len(fs) == 1 && fs[0].Hint != "" {
		// Said once, as what to try.
		f := fs[0]
		hint, f.Hint = f.Hint, ""
		err = faults{f}
	}
	return &exit{exitConfig, err, hint}
}

// openStore opens the state directory's log with its key, made on first use.
func openStore(ctx context.Context, state string) (*sqlite.Store, error) {
	signer, verifier, err := logKey(state)
	if err != nil {
		return nil, err
	}
	accept, _ := ctx.Value(acceptRollback{}).(bool)
	st, err := sqlite.Open(state, sqlite.Options{Signer: signer, Verifier: verifier, Elsewhere: headsDir(state), Accept: accept})
	if err != nil {
		return nil, storeError(err)
	}
	if n := st.Notice(); n != "" {
		fmt.Fprintf(os.Stderr, "writ: %s\n", n)
	}
	return st, nil
}

// acceptRollback is the context's key for the flag of that name.
type acceptRollback struct{}

const acceptRollbackFlag = "accept-rollback"

// headsDir is where the head of the log of a state directory is kept a second
// time: on this machine, for this user, and not where a backup or a copy of the
// state takes it along.
func headsDir(state string) string {
	var bases []string
	if x := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(x) {
		bases = append(bases, x)
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		if u, uerr := user.Current(); uerr == nil { // a service may have no HOME
			home, err = u.HomeDir, nil
		}
	}
	if err == nil && filepath.IsAbs(home) {
		bases = append(bases, filepath.Join(home, ".local", "share"))
	}
	bases = append(bases, filepath.Join(os.TempDir(), fmt.Sprintf("writ-%d", os.Getuid())))
	for _, base := range bases {
		dir := filepath.Join(base, "writ", "heads")
		if rel, err := filepath.Rel(state, dir); err == nil && filepath.IsLocal(rel) {
			continue // it would be copied with the state
		}
		if os.MkdirAll(dir, 0o700) == nil && writable(dir) {
			return dir
		}
	}
	return ""
}

func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return false
	}
	f.Close()
	return os.Remove(f.Name()) == nil
}

func storeError(err error) error {
	var oe *sqlite.OpenError
	if errors.As(err, &oe) {
		code := exitIO
		switch oe.Reason {
		case sqlite.NotDatabase, sqlite.Newer, sqlite.Damaged, sqlite.WrongKey, sqlite.RolledBack, sqlite.Copied, sqlite.Unsigned:
			code = exitData
		}
		return &exit{code, err, oe.Hint}
	}
	return fail(exitIO, "", "the audit log cannot be opened: %w", err)
}

const (
	keyFile = "log.key" // the log's signing key, mode 0600
	pubFile = "log.pub" // its public half, for verifiers

	sessionsDir = "sessions" // secrets of sessions kept by name
	runsDir     = "runs"     // events of `writ ask`
)

// logKey reads the log's key pair, or makes it. Of two processes that make it
// at the same time one wins and both use its key.
func logKey(state string) (note.Signer, note.Verifier, error) {
	path := filepath.Join(state, keyFile)
	skey, err := private.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		var id [5]byte
		if _, err := rand.Read(id[:]); err != nil {
			return nil, nil, fail(exitIO, "", "no randomness")
		}
		name := "writ-" + strings.ToLower(base32.StdEncoding.EncodeToString(id[:]))
		s, _, err := audit.GenerateKey(rand.Reader, name)
		if err != nil {
			return nil, nil, fail(exitIO, "", "the log's key cannot be made")
		}
		if err := writeOnce(path, []byte(s+"\n"), 0o600); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, nil, fail(exitIO, "writ … --state DIR", "the log's key cannot be written")
		}
		if skey, err = private.ReadFile(path); err != nil {
			return nil, nil, exposed(err, "the log's key cannot be read")
		}
	} else if err != nil {
		return nil, nil, exposed(err, "the log's key cannot be read")
	}
	signer, verifier, vkey, err := parseKey(skey)
	if err != nil {
		return nil, nil, err
	}
	// The public half is for whoever verifies elsewhere; it is made again when
	// it is missing.
	public := filepath.Join(state, pubFile)
	if _, err := os.Lstat(public); errors.Is(err, os.ErrNotExist) {
		if err := writeOnce(public, []byte(vkey+"\n"), 0o644); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, nil, fail(exitIO, "", "the log's public key cannot be written")
		}
	}
	return signer, verifier, nil
}

func parseKey(skey []byte) (signer note.Signer, verifier note.Verifier, vkey string, err error) {
	text := strings.TrimSpace(string(skey))
	if signer, err = note.NewSigner(text); err == nil {
		vkey, err = publicKey(text, signer.Name())
	}
	if err == nil {
		verifier, err = note.NewVerifier(vkey)
	}
	if err != nil || verifier.KeyHash() != signer.KeyHash() {
		return nil, nil, "", fail(exitData, "", "the log's key is not a key")
	}
	return signer, verifier, vkey, nil
}

// logVerifier reads the log's public key, and makes nothing: from a file, or
// from the state directory, where the key itself is worth more than its copy.
func logVerifier(state, file string) (note.Verifier, error) {
	if file == "" {
		if skey, err := os.ReadFile(filepath.Join(state, keyFile)); err == nil {
			_, v, _, err := parseKey(skey)
			return v, err
		}
		file = filepath.Join(state, pubFile)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fail(exitIO, "writ audit verify --key FILE", "the log's public key cannot be read")
	}
	v, err := note.NewVerifier(strings.TrimSpace(string(b)))
	if err != nil {
		return nil, fail(exitData, "", "%s is no public key of a log", printable(file))
	}
	return v, nil
}

// publicKey derives the verifier key from an Ed25519 signer key in the
// encoding of package note: PRIVATE+KEY+name+hash+base64(0x01 seed).
func publicKey(skey, name string) (string, error) {
	parts := strings.SplitN(skey, "+", 5)
	if len(parts) != 5 {
		return "", errors.New("not a signer key")
	}
	b, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(b) != 1+ed25519.SeedSize {
		return "", errors.New("not an Ed25519 signer key")
	}
	pub := ed25519.NewKeyFromSeed(b[1:]).Public().(ed25519.PublicKey)
	return note.NewEd25519VerifierKey(name, pub)
}

// writeOnce creates a file that must not exist, by linking it into place whole.
func writeOnce(path string, b []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err = tmp.Write(b); err == nil {
		err = tmp.Chmod(mode)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Link(tmp.Name(), path)
	}
	return err
}

// start opens the store and a gateway over it. stop ends both.
func (o *files) start(ctx context.Context, log *slog.Logger) (g *gateway.Gateway, stop func() error, err error) {
	st, err := openStore(ctx, o.state)
	if err != nil {
		return nil, nil, err
	}
	opts := gateway.Options{
		Store: st, Policy: o.policy, Servers: o.servers, Shadow: o.shadow, OwnPaths: o.ownPaths,
		Screen: o.screen, Version: readBuildInfo().Version, Log: log,
	}
	index := func() error { return nil }
	if o.memory != nil {
		var s *memoryserver.Server
		if s, index, err = mountMemory(ctx, o.state, st, o.memory); errors.Is(err, audit.ErrAltered) {
			log.Error("what the memory rests on was altered on disk: it is closed, find out by whom (writ audit verify)", "error", err)
		} else if err != nil {
			st.Close()
			return nil, nil, err
		}
		opts.Inside, opts.Namespace = s, o.memory.Namespace
	}
	g, err = gateway.New(opts)
	if err == nil {
		err = g.Start(ctx)
	}
	if err != nil {
		index()
		st.Close()
		return nil, nil, fail(exitIO, "writ check", "%w", err)
	}
	o.broken = st.Broken()
	return g, func() error {
		err := errors.Join(g.Close(), index(), st.Close())
		select {
		case <-o.broken:
			return fail(exitDisk, "writ audit verify", "the disk failed while the log was written; what was not recorded did not happen, and the last acts may have an unknown outcome")
		default:
			return err
		}
	}, nil
}

// logger writes the gateway's log for a person: one line a message, with
// nothing a peer chose unescaped.
func logger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		if a.Value.Kind() == slog.KindString {
			a.Value = slog.StringValue(oneLine(a.Value.String(), 400))
		}
		return a
	}}))
}

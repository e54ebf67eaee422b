// Package config reads what an operator writes for Writ: writ.yaml, the policy it
// names, and the files beside it. A file is read whole or not at all, every fault
// with its place. It starts nothing, and trusts what only its owner may write
// (package private).
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/otlp"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// Config is writ.yaml, read by package strictyaml: unknown keys, duplicate
// keys, wrong types, anchors and second documents stop the start. All faults are
// reported, each with file, line and column.
type Config struct {
	strictyaml.Place
	// Servers are the MCP servers behind the gateway, by unique name.
	Servers []Server `yaml:"servers"`
	// Policy is the policy file, relative to the configuration file.
	Policy string `yaml:"policy"`
	// Shadow records and decides, but lets every call pass. It is loud, and
	// what it lets pass is never an accepted act.
	Shadow bool `yaml:"shadow"`
	// Approvals lets a call that only a person can let pass stand open for ten
	// minutes though nobody watches (writ approve); else it waits only while somebody
	// does (writ watch), and is refused where nobody can be asked.
	Approvals bool `yaml:"approvals"`
	// EvidenceMegabytes bounds what one session keeps of what tools return, 256 by
	// default; beyond it results are passed on and vouch for nothing.
	EvidenceMegabytes strictyaml.Whole `yaml:"evidence_megabytes"`
	// Screen switches the input policy on for what users say to the gateway
	// (writ session say): built-in, or a file of patterns, relative to the
	// configuration file. A turn that matches ends its session's calls.
	Screen string `yaml:"screen"`
	// Ask is what writ ask works with; absent, it routes by the built-in rules.
	Ask Ask `yaml:"ask"`
	// Host is the client whose own tools are judged as well: claude-code, or host for any
	// other (docs/hosts.md). It is one of the names that contracts have servers by.
	Host string `yaml:"host"`
	// Memory mounts the governed memory; absent, there is none.
	Memory Memory `yaml:"memory"`
	// Metrics are shown by writ serve; absent, nowhere.
	Metrics Metrics `yaml:"metrics"`
	// Console is where people elsewhere reach the console of writ serve; absent, nowhere.
	Console Console `yaml:"console"`
	// OTLP tells a collector; absent, none.
	OTLP OTLP `yaml:"otlp"`
	// Log is how the gateway's own log is written.
	Log Log `yaml:"log"`
	// Retention is applied by writ serve; absent, nothing leaves the log by itself.
	Retention Retention `yaml:"retention"`
	// Witnesses keep and cosign the log's head for writ serve (C2SP tlog-witness).
	Witnesses []Witness `yaml:"witnesses"`

	dir      string  // of the configuration file
	only     *string // the one server that the environment is read for, nil for all
	warnings Faults
}

// Warnings are what the configuration leaves to whoever starts its servers: variables
// that are not set here, of servers that [LoadOnly] does not start.
func (c *Config) Warnings() Faults { return c.warnings }

// BuiltInScreen names the input policy that comes with the program.
const BuiltInScreen = "built-in"

// ReadScreen reads an input policy; "" is none.
func ReadScreen(name string) (*screen.Screen, error) {
	switch name {
	case "":
		return nil, nil
	case BuiltInScreen:
		return screen.Default(), nil
	}
	s, err := parsed(name, screen.Parse)
	if err != nil {
		return nil, Invalid(err)
	}
	return s, nil
}

// parsed reads a file and what parse makes of it, or all that is wrong with it.
func parsed[T any](file string, parse func(string, []byte) (*T, []strictyaml.Fault)) (*T, error) {
	b, err := ReadFile(file)
	if err != nil {
		return nil, err
	}
	return faultless(file, b, parse)
}

func faultless[T any](file string, b []byte, parse func(string, []byte) (*T, []strictyaml.Fault)) (*T, error) {
	t, fs := parse(file, b)
	if len(fs) > 0 {
		return nil, Faults(fs)
	}
	return t, nil
}

// oneOf holds a text to the words there are for it.
func oneOf(r *strictyaml.Reader, n *strictyaml.Node, value string, known []string) {
	hold(r, n, slices.Contains(known, value), "unknown word "+strictyaml.Word(value), strictyaml.Nearest(value, known))
}

// hold tells of a text for which something does not hold. What is there and is no
// text has its fault already.
func hold(r *strictyaml.Reader, n *strictyaml.Node, holds bool, message, hint string) {
	if n != nil && n.Kind == strictyaml.Text && !holds {
		r.Fault(n, message, hint)
	}
}

// Server is one MCP server: a command started as a child process, or the
// URL of a Streamable HTTP endpoint.
type Server struct {
	strictyaml.Place
	// Name is how contracts and refusals call the server: a-z, 0-9 and -.
	Name string `yaml:"name"`
	// Command is an argument vector; no shell reads it.
	Command []string `yaml:"command"`
	// Dir is the child's working directory, relative to the configuration.
	Dir string `yaml:"dir"`
	// Env is, with PATH and HOME, the child's whole environment.
	// ${NAME} takes a value from writ's own environment; unset is an error.
	Env map[string]string `yaml:"env"`
	// URL is an http or https endpoint.
	URL string `yaml:"url"`
	// Headers go to the URL with each request; ${NAME} as in Env. They are the
	// server's own credential: nothing a client sends is ever passed on.
	Headers map[string]string `yaml:"headers"`
	// Wire is auto (default), legacy (<= 2025-11-25) or modern (2026-07-28).
	Wire string `yaml:"wire"`
	// Limits bound what the server may do.
	Limits Limits `yaml:"limits"`
}

// Metrics says where Prometheus reads what a gateway counts.
type Metrics struct {
	strictyaml.Place
	// Listen is a HOST:PORT of its own.
	Listen string `yaml:"listen"`
	// AnybodyMayRead lets that be an address that other machines reach. There is neither
	// TLS nor a token: whoever reaches it reads how much is done here with which tools.
	AnybodyMayRead bool `yaml:"anybody_may_read"`
}

func (m *Metrics) check(r *strictyaml.Reader) {
	at := m.Node.Get("listen")
	if at == nil {
		r.Fault(m.Node, "no address", "metrics: { listen: 127.0.0.1:9464 }")
	}
	near, err := Loopback(m.Listen)
	hold(r, at, err == nil, "not HOST:PORT", "listen: 127.0.0.1:9464")
	hold(r, at, err != nil || near || m.AnybodyMayRead,
		"not a loopback address: without TLS and tokens others could read what is done here", "listen: 127.0.0.1:9464, or say anybody_may_read: true")
}

// Console says where the console is reached through a proxy of the operator's.
type Console struct {
	strictyaml.Place
	// Origin is https://HOST or https://HOST:PORT, as browsers write it.
	Origin string `yaml:"origin"`
}

// Host is what browsers name by it in a request, "" without an origin.
func (c *Console) Host() string { return strings.TrimPrefix(c.Origin, "https://") }

func (c *Console) check(r *strictyaml.Reader) {
	at, hint := c.Node.Get("origin"), "console: { origin: https://writ.example.org }"
	if at == nil {
		r.Fault(c.Node, "no origin", hint)
	}
	name, port, stated := strings.Cut(c.Host(), ":")
	n, _ := strconv.Atoi(port)
	hold(r, at, originForm().MatchString(c.Origin) && len(name) < 254 && (!stated || n < 1<<16 && n != 443),
		"not https://HOST or https://HOST:PORT as a browser writes it: a name in lower case, no address of numbers, no path, no :443", hint)
	hold(r, at, name != "localhost" && !strings.HasSuffix(name, ".localhost"), "that name is this machine's own, where the console is without it", hint)
}

// Witness is somebody who keeps and cosigns the log's head.
type Witness struct {
	strictyaml.Place
	// URL is the submission prefix: https, or of this machine.
	URL string `yaml:"url"`
	// Key is its public key, as NAME+HASH+BASE64.
	Key string `yaml:"key"`
	// Required ends the start where it does not answer.
	Required bool `yaml:"required"`
}

// maxWitnesses are asked one after the other.
const maxWitnesses = 8

func (w *Witness) check(r *strictyaml.Reader, seen map[string]bool) {
	for _, key := range []string{"url", "key"} {
		if w.Node.Get(key) == nil {
			r.Fault(w.Node, "a witness has a url and a key", "witnesses: [{url: https://host/prefix, key: NAME+HASH+BASE64}]")
			return
		}
	}
	hold(r, w.Node.Get("url"), endpointURL(w.URL), "not an absolute https URL without user, query and fragment", "url: https://host/prefix")
	_, err := audit.NewCosignatures(w.Key)
	hold(r, w.Node.Get("key"), err == nil, "not the Ed25519 key of a witness (C2SP tlog-cosignature)", "key: NAME+HASH+BASE64")
	hold(r, w.Node.Get("key"), !seen[w.Key], "two witnesses have this key", "remove one")
	seen[w.Key] = true
}

// Retention says how long what was said and returned in a session is kept.
type Retention struct {
	strictyaml.Place
	// Days are counted from when a session was used last, or was closed before that.
	Days strictyaml.Whole `yaml:"days"`
	// Archive is a directory, relative to the configuration file, to which it is written
	// before it is taken out of the log; absent, it is not.
	Archive string `yaml:"archive"`
	// SegmentDays is how long a session that is due may wait for others of the same file,
	// 1 by default, and SegmentMegabytes from what size on a file is full, 8 by default.
	SegmentDays      strictyaml.Whole `yaml:"segment_days"`
	SegmentMegabytes strictyaml.Whole `yaml:"segment_megabytes"`
}

func (t *Retention) check(r *strictyaml.Reader) {
	if t.Node.Get("days") == nil {
		r.Fault(t.Node, "no number of days", "retention: { days: 90 }")
	}
	hold(r, t.Node.Get("archive"), t.Archive != "", "no directory", "archive: archive")
	for _, k := range []struct {
		key         string
		of          *strictyaml.Whole
		least, most int
		otherwise   int
	}{{"days", &t.Days, 1, 36500, 0}, {"segment_days", &t.SegmentDays, 0, 365, 1}, {"segment_megabytes", &t.SegmentMegabytes, 1, 1024, 8}} {
		switch {
		case k.of.Valid && (k.of.N < k.least || k.of.N > k.most):
			r.Fault(k.of.Node, fmt.Sprintf("%s is between %d and %d", k.key, k.least, k.most), "")
		case k.of.Valid && k.key != "days" && t.Archive == "":
			r.Fault(k.of.Node, k.key+" is of an archive", "archive: archive")
		case !k.of.Valid:
			k.of.N = k.otherwise
		}
	}
}

// Loopback reports whether a HOST:PORT is one that this machine alone reaches; it is an
// error where it is no HOST:PORT.
func Loopback(listen string) (bool, error) {
	host, _, err := net.SplitHostPort(listen)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), err
}

// maxEvidence is the most memory that one session may be given: what all of a process have.
const maxEvidence = 1024

// Caps are the bounds of one session's evidence: of the values as of the memory.
func (c *Config) Caps() provenance.Caps {
	caps := provenance.DefaultCaps
	if mb := c.EvidenceMegabytes; mb.Valid {
		caps.Leaves = int(int64(caps.Leaves) * (int64(mb.N) << 20) / caps.Bytes)
		caps.Bytes = int64(mb.N) << 20
	}
	return caps
}

// Limits bounds one server; zero is the default.
type Limits struct {
	strictyaml.Place
	// Call is how long one call may take, 60s by default, at most 1h.
	Call time.Duration `yaml:"call"`
	// Start is how long the server may take to answer first, 30s by default.
	Start time.Duration `yaml:"start"`
}

// Faults is an error made of positioned defects, printed one to a line.
type Faults []policy.Fault

func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// ReadFile reads a file the operator wrote: one of [ReadStart], of at most 1 MiB.
func ReadFile(file string) ([]byte, error) {
	b, err := ReadStart(file, strictyaml.MaxBytes+1)
	f := policy.Fault{File: file, Message: "cannot be read"}
	switch e, exposed := errors.AsType[*private.Error](err); {
	case err == nil && len(b) <= strictyaml.MaxBytes:
		return b, nil
	case err == nil:
		f.Message = "larger than 1 MiB"
	case exposed:
		f.Message, f.Hint = e.Why, e.Mend
	case errors.Is(err, fs.ErrNotExist):
		f.Message, f.Hint = noFile, "writ init"
	case errors.Is(err, ErrIrregular):
		f.Message = err.Error()
	}
	return nil, Faults{f}
}

const noFile = "no such file"

// ErrIrregular says of what a path names that it is no file to read.
var ErrIrregular = errors.New("not a regular file")

// ReadStart reads the first so many bytes of a regular file that only its owner may write, else
// the error is a *private.Error. What is checked is the file that was opened, so that a path
// exchanged in between gains nothing (attack C06), and nothing it can name is waited for: not a
// FIFO, not a device.
func ReadStart(file string, most int64) ([]byte, error) {
	judge := func(fi os.FileInfo, err error) error {
		if err == nil && !fi.Mode().IsRegular() {
			err = ErrIrregular
		}
		if err != nil {
			return err
		}
		return errors.Join(private.Check(file, fi, private.Steering), private.Around(file))
	}
	// Asked first by name: to open a device can already do something.
	if err := judge(os.Stat(file)); err != nil {
		return nil, err
	}
	flag := os.O_RDONLY
	if runtime.GOOS != "windows" {
		flag |= syscall.O_NONBLOCK
	}
	f, err := os.OpenFile(file, flag, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := judge(f.Stat()); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// Read reads and checks writ.yaml, without starting anything. Where it
// has faults and names a policy all the same, the answer is both: the error,
// and a Config whose Policy alone may be used, to tell that file's faults too.
func Read(file string) (*Config, error) { return read(file, nil) }

// ReadOnly is Read of which one server alone is started, "" for none: what the others
// want of the environment need not be set, and is "" where it is not.
func ReadOnly(file, server string) (*Config, error) { return read(file, &server) }

func read(file string, only *string) (*Config, error) {
	b, err := ReadFile(file)
	if fs, ok := err.(Faults); ok && fs[0].Message == noFile { // without it writ init has no servers to ask
		fs[0].Hint = "writ connect CLIENT, or writ init -- COMMAND, which writes one"
	}
	if err != nil {
		return nil, err
	}
	r := strictyaml.New(file)
	c := &Config{dir: filepath.Dir(file), only: only}
	if root := r.Parse(b, "servers and policy are needed: writ init"); root != nil {
		r.Decode(root, c)
		c.check(r)
	}
	c.warnings = r.Warnings()
	if r.Count() > 0 {
		return c, Faults(r.Faults())
	}
	return c, nil
}

var (
	originForm  = text.Pattern(`^https://(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?(?::[1-9][0-9]{0,4})?$`)
	envName     = text.Pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)
	envRef      = text.Pattern(`\$\{([^}]*)\}`)
	headerName  = text.Pattern("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	headerValue = text.Pattern(`^[\t\x20-\x7e\x{80}-\x{10ffff}]*$`)
)

// isSection reports whether the file has what can be looked into. A value of the wrong type
// has its fault already.
func isSection(p strictyaml.Place) bool { return p.Given() && p.Node.Kind == strictyaml.Mapping }

// check finds what the types cannot, fills in the environment and makes paths
// absolute or relative to the working directory. A value of the wrong type has
// its fault already and gets no second one.
func (c *Config) check(r *strictyaml.Reader) {
	if c.Node.Kind != strictyaml.Mapping {
		return
	}
	if n := c.At("servers"); c.Host == "" && (n == c.Node || n.Kind == strictyaml.List && len(n.Items) == 0) {
		r.Fault(n, "no server", "servers: [{name: files, command: [...]}]")
	}
	if n := c.At("policy"); n == c.Node || n.Kind == strictyaml.Text && n.Value == "" {
		r.Fault(n, "no policy", "policy: policy.yaml")
	}
	oneOf(r, c.Node.Get("host"), c.Host, []string{"claude-code", "host"})
	seen := c.checkServers(r)
	c.Policy = c.path(c.Policy)
	if c.Screen != BuiltInScreen {
		c.Screen = c.path(c.Screen)
	}
	if mb := c.EvidenceMegabytes; mb.Valid && (mb.N < 1 || mb.N > maxEvidence) {
		r.Fault(mb.Node, "evidence_megabytes is between 1 and "+strconv.Itoa(maxEvidence), "evidence_megabytes: 256")
	}
	for _, s := range []struct {
		strictyaml.Place
		check func(*strictyaml.Reader)
	}{
		{c.Metrics.Place, c.Metrics.check}, {c.Console.Place, c.Console.check}, {c.OTLP.Place, c.OTLP.check},
		{c.Log.Place, c.Log.check}, {c.Retention.Place, c.Retention.check},
	} {
		if isSection(s.Place) {
			s.check(r)
		}
	}
	c.checkWitnesses(r)
	c.Retention.Archive = c.path(c.Retention.Archive)
	if isSection(c.Ask.Place) {
		c.Ask.check(r, seen)
		c.Ask.Screen, c.Ask.Planner.Rules = c.path(c.Ask.Screen), c.path(c.Ask.Planner.Rules)
	}
	if isSection(c.Memory.Place) {
		c.Memory.check(r, c.path)
		if n, names := c.Memory.Node.Get("with"), c.names(); n != nil && !slices.Contains(names, c.Memory.With) {
			r.Fault(n, "there is no server of that name", strictyaml.Nearest(c.Memory.With, names))
		}
		c.Memory.Policy = c.path(c.Memory.Policy)
	}
}

// checkServers returns the names that are taken.
func (c *Config) checkServers(r *strictyaml.Reader) (seen map[string]bool) {
	seen = map[string]bool{c.Host: c.Host != ""}
	for i := range c.Servers {
		if s := &c.Servers[i]; isSection(s.Place) {
			s.check(r, seen, c.only == nil || *c.only == s.Name)
			s.Dir = c.path(s.Dir)
		}
	}
	return seen
}

func (c *Config) checkWitnesses(r *strictyaml.Reader) {
	seen := map[string]bool{}
	for i := range c.Witnesses {
		if w := &c.Witnesses[i]; isSection(w.Place) {
			w.check(r, seen)
		}
	}
	if len(c.Witnesses) > maxWitnesses {
		r.Fault(c.Node.Get("witnesses"), "more than "+strconv.Itoa(maxWitnesses)+" witnesses", "")
	}
}

// names are those of the servers.
func (c *Config) names() (names []string) {
	for _, s := range c.Servers {
		names = append(names, s.Name)
	}
	return names
}

// path is what a relative path of the configuration means.
func (c *Config) path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(c.dir, p)
}

// Files are those the configuration names: policy, patterns, rules, secrets.
func (c *Config) Files() (out []string) {
	for _, f := range []string{c.Policy, c.Screen, c.Ask.Screen, c.Ask.Planner.Rules} {
		if f != "" && f != BuiltInScreen {
			out = append(out, f)
		}
	}
	return append(out, c.Memory.Files()...)
}

// Upstream is the server as the gateway is told of it.
func (s *Server) Upstream() upstream.Config {
	return upstream.Config{
		Name: s.Name, Command: s.Command, Dir: s.Dir, Env: s.Env, URL: s.URL, Header: s.Headers,
		Era: upstream.Era(s.Wire), Limits: upstream.Limits{Call: s.Limits.Call, Handshake: s.Limits.Start},
	}
}

// started says that the server is to be started, with what it wants of the environment.
func (s *Server) check(r *strictyaml.Reader, seen map[string]bool, started bool) {
	has := func(key string) bool { return s.Node.Get(key) != nil }
	s.checkName(r, seen)
	if has("command") == has("url") {
		r.Fault(s.At("name"), "a server has either a command or a url", "command: [program, argument]")
	}
	if n := s.Node.Get("command"); n != nil && n.Kind == strictyaml.List && (len(s.Command) == 0 || n.Items[0].Kind == strictyaml.Text && s.Command[0] == "") {
		r.Fault(n, "the command is empty", "command: [program, argument]")
	}
	u, err := url.Parse(s.URL)
	hold(r, s.Node.Get("url"), err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.Fragment == "",
		"not an absolute http or https URL without user and fragment", "url: https://host/mcp")
	for key, with := range map[string]string{"env": "command", "dir": "command", "headers": "url"} {
		if has(key) && !has(with) {
			r.Fault(s.At(key), key+" belongs to a "+with, "remove it")
		}
	}
	oneOf(r, s.Node.Get("wire"), s.Wire, []string{"auto", "legacy", "modern"})
	for key, d := range map[string]time.Duration{"call": s.Limits.Call, "start": s.Limits.Start} {
		if d < 0 || d > time.Hour {
			r.Fault(s.Limits.At(key), "a limit is between 0s and 1h", key+": 60s")
		}
	}
	s.fillEnv(r, started)
	heldHeaders(r, s.Node.Get("headers"), s.Headers, started)
	members(s.Node.Get("headers"), func(k, _ *strictyaml.Node) {
		if strings.HasPrefix(strings.ToLower(k.Value), "mcp-") {
			r.Fault(k, "the headers of MCP are set by writ", "remove it")
		}
	})
}

// fillEnv fills writ's own environment into the server's.
func (s *Server) fillEnv(r *strictyaml.Reader, needed bool) {
	members(s.Node.Get("env"), func(k, v *strictyaml.Node) {
		if !envName().MatchString(k.Value) {
			r.Fault(k, "not a name of an environment variable", "A-Z, a-z, 0-9 and _, not a digit first")
		}
		s.Env[k.Value] = expand(r, v, needed)
		if strings.ContainsRune(s.Env[k.Value], 0) {
			r.Fault(v, "an environment variable cannot hold a NUL character", "")
		}
	})
}

func (s *Server) checkName(r *strictyaml.Reader, seen map[string]bool) {
	switch n := s.At("name"); {
	case n != s.Node && n.Kind != strictyaml.Text:
	case !policy.ServerName(s.Name):
		r.Fault(n, "a server's name has 1 to 32 of a-z, 0-9 and -, and does not start with -", "name: files")
	case s.Name == policy.OwnServer:
		r.Fault(n, "this name is that of Writ's own server", "name: files")
	case seen[s.Name]:
		r.Fault(n, "two servers have this name", "a server's name is unique")
	}
	seen[s.Name] = true
}

// heldHeaders fills the environment into headers and holds them to what HTTP can send.
func heldHeaders(r *strictyaml.Reader, n *strictyaml.Node, headers map[string]string, needed bool) {
	members(n, func(k, v *strictyaml.Node) {
		headers[k.Value] = expand(r, v, needed)
		if !headerName().MatchString(k.Value) {
			r.Fault(k, "not a name of an HTTP header", "Authorization: Bearer ${TOKEN}")
		}
		if !headerValue().MatchString(headers[k.Value]) {
			r.Fault(v, "an HTTP header cannot hold this value", "no line ends and no control characters")
		}
	})
}

// members calls f with each key and text of a mapping; what is no text has its
// fault already.
func members(n *strictyaml.Node, f func(k, v *strictyaml.Node)) {
	if n == nil || n.Kind != strictyaml.Mapping {
		return
	}
	for i := 0; i+1 < len(n.Items); i += 2 {
		if n.Items[i+1].Kind == strictyaml.Text {
			f(n.Items[i], n.Items[i+1])
		}
	}
}

// expand returns a text with each ${NAME} replaced from writ's own environment.
// A name that is not set is a fault, told once for each text; what is in the
// environment is never told. Where it is not needed, a name need not be set.
func expand(r *strictyaml.Reader, n *strictyaml.Node, needed bool) string {
	told := false
	return envRef().ReplaceAllStringFunc(n.Value, func(ref string) string {
		name := ref[2 : len(ref)-1]
		v, ok := os.LookupEnv(name)
		switch {
		case told:
		case !envName().MatchString(name):
			told = true
			r.Fault(n, strictyaml.Word(ref)+" names no environment variable", "${NAME}")
		case !ok && !needed:
			told = true
			r.Warn(n, "${"+cli.OneLine(name, 40)+"} is not set here: the client that starts this server sets it", "")
		case !ok:
			told = true
			r.Fault(n, "${"+cli.OneLine(name, 40)+"} is not set", "export "+cli.OneLine(name, 40)+"=…")
		}
		return v
	})
}

// agree returns a fault for each contract the servers of the configuration
// cannot meet: one that speaks of a server which is not there would never hold,
// and its author believes it does. `optional: true` says that it is meant so.
func (c *Config) agree(p *policy.Policy) Faults {
	r := strictyaml.New(c.Policy)
	known := c.names()
	if c.Host != "" {
		known = append(known, c.Host)
	}
	for _, k := range p.Contracts {
		if !k.Optional && !slices.Contains(known, k.Server) {
			r.FaultAt(k.Line, k.Col, "the configuration has no server "+strictyaml.Word(k.Server), strictyaml.Nearest(k.Server, known))
		}
	}
	return r.Faults()
}

// Load reads writ.yaml and the policy it names, and holds them against each
// other. All faults of both are told at once.
func Load(file string) (*Config, *policy.Policy, error) { return load(Read(file)) }

// LoadOnly is Load of which one server alone is started.
func LoadOnly(file, server string) (*Config, *policy.Policy, error) {
	return load(ReadOnly(file, server))
}

func load(c *Config, err error) (*Config, *policy.Policy, error) {
	if c == nil || c.Policy == "" {
		return nil, nil, err
	}
	p, perr := LoadPolicy(c.Policy)
	var all Faults
	for _, e := range []error{err, perr} {
		if fs, ok := e.(Faults); ok {
			all = append(all, fs...)
		}
	}
	if len(all) == 0 {
		all = c.agree(p)
	}
	if len(all) > 0 {
		return nil, nil, all
	}
	return c, p, nil
}

// Invalid is the exit of a program whose configuration cannot be used. Where there
// is one fault that says what to try, that is what is tried.
func Invalid(err error) error {
	hint := "writ check --config FILE"
	if fs, ok := errors.AsType[Faults](err); ok && len(fs) == 1 && fs[0].Hint != "" {
		// Said once, as what to try.
		f := fs[0]
		hint, f.Hint = f.Hint, ""
		err = Faults{f}
	}
	return &cli.Exit{Code: cli.ExitConfig, Err: err, Hint: hint}
}

// OTLP says which collector is told of calls and decisions.
type OTLP struct {
	strictyaml.Place
	// Endpoint is what stands before /v1/traces and /v1/logs.
	Endpoint string `yaml:"endpoint"`
	// Headers go with each request; ${NAME} takes a value from writ's own environment.
	Headers map[string]string `yaml:"headers"`
	// Signals are what is told: traces, logs; both by default.
	Signals []string `yaml:"signals"`
	// AnybodyMayRead lets the endpoint be an unencrypted one of another machine: who
	// stands between reads what is done here with which tools, and the headers.
	AnybodyMayRead bool `yaml:"anybody_may_read"`
}

// Log says how a gateway writes its own log.
type Log struct {
	strictyaml.Place
	// Format is text (default), for persons, or json.
	Format string `yaml:"format"`
	// Level is what is written at least: info, warn or error.
	Level string `yaml:"level"`
}

// LogLevels are the words for a level.
var LogLevels = []string{"info", "warn", "error"}

func (o *OTLP) check(r *strictyaml.Reader) {
	at := o.Node.Get("endpoint")
	if at == nil {
		r.Fault(o.Node, "no endpoint", "otlp: { endpoint: http://127.0.0.1:4318 }")
	}
	near := endpointURL(o.Endpoint)
	encrypted := endpointURL(strings.Replace(o.Endpoint, "http://", "https://", 1))
	hold(r, at, encrypted, "not an absolute http or https URL without user, query and fragment", "endpoint: http://127.0.0.1:4318")
	hold(r, at, near || !encrypted || o.AnybodyMayRead, "not encrypted and not on this machine: others could read what is done here", "endpoint: https://host, or say anybody_may_read: true")
	heldHeaders(r, o.Node.Get("headers"), o.Headers, true)
	known := []string{otlp.Traces, otlp.Logs}
	if n := o.Node.Get("signals"); n != nil && n.Kind == strictyaml.List {
		for i, item := range n.Items {
			oneOf(r, item, o.Signals[i], known)
			hold(r, item, !slices.Contains(o.Signals[:i], o.Signals[i]), "it stands here twice", "remove it")
		}
	} else if n == nil {
		o.Signals = known
	}
}

func (l *Log) check(r *strictyaml.Reader) {
	oneOf(r, l.Node.Get("format"), l.Format, []string{"text", "json"})
	oneOf(r, l.Node.Get("level"), l.Level, LogLevels)
}

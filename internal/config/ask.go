package config

import (
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/ask/model"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/strictyaml"
)

// Ask is what writ ask works with.
type Ask struct {
	strictyaml.Place
	// Planner proposes the one call.
	Planner Planner `yaml:"planner"`
	// Summarise asks for an evidence-locked summary of each typed result, of
	// the same planner.
	Summarise bool `yaml:"summarise"`
	// Screen is a file of patterns for the input policy, relative to the
	// configuration; the built-in set by default.
	Screen string `yaml:"screen"`
	// Allow, where it is given, narrows the tools of the policy to these, each
	// as server/tool.
	Allow []string `yaml:"allow"`
}

// Planner chooses a planner.
type Planner struct {
	strictyaml.Place
	// Kind is rules (default), openai, anthropic or manual.
	Kind string `yaml:"kind"`
	// URL is the endpoint's base URL: what stands before /chat/completions for
	// openai, before /v1/messages for anthropic. Unencrypted http only on this
	// machine.
	URL string `yaml:"url"`
	// Model is the name the endpoint knows the model by.
	Model string `yaml:"model"`
	// KeyEnv names the environment variable that holds the key; none is sent
	// without. The key itself never stands in a file or on a command line.
	KeyEnv string `yaml:"key_env"`
	// Timeout is how long one answer may take, 60s by default, at most 10m.
	Timeout time.Duration `yaml:"timeout"`
	// Rules is a file of routing rules for kind rules, relative to the
	// configuration; the built-in ones by default.
	Rules string `yaml:"rules"`
}

// PlannerKinds are the words for a kind.
var PlannerKinds = []string{"rules", "openai", "anthropic", "manual"}

// check finds what the types cannot.
func (a *Ask) check(r *strictyaml.Reader, servers map[string]bool) {
	if n := a.Node.Get("allow"); n != nil && n.Kind == strictyaml.List {
		for i, item := range n.Items {
			server, tool, _ := strings.Cut(a.Allow[i], "/")
			hold(r, item, tool != "" && servers[server], "not a tool of a configured server, as server/tool", "allow: [files/read_file]")
		}
	}
	if isSection(a.Planner.Place) {
		a.Planner.check(r)
	}
}

func (p *Planner) check(r *strictyaml.Reader) {
	remote := p.Kind == "openai" || p.Kind == "anthropic"
	if n := p.At("kind"); n == p.Node || n.Kind == strictyaml.Text && p.Kind == "" {
		r.Fault(n, "a planner has a kind", "kind: rules")
	} else {
		oneOf(r, n, p.Kind, PlannerKinds)
	}
	if remote {
		needEndpoint(r, p.Node, "a planner of this kind needs a ")
	}
	for _, key := range []string{"url", "model", "key_env", "timeout"} {
		if n := p.Node.Get(key); n != nil && !remote {
			r.Fault(n, key+" belongs to a planner behind an endpoint", "remove it, or write kind: openai")
		}
	}
	if n := p.Node.Get("rules"); n != nil && p.Kind != "rules" {
		r.Fault(n, "rules belong to kind: rules", "remove it")
	}
	heldEndpoint(r, &p.Place, p.URL, p.KeyEnv)
	if p.Timeout < 0 || p.Timeout > 10*time.Minute {
		r.Fault(p.At("timeout"), "a timeout is between 0s and 10m", "timeout: 60s")
	}
}

// needEndpoint tells of the keys url and model of a model behind an endpoint that are not there.
func needEndpoint(r *strictyaml.Reader, in *strictyaml.Node, needs string) {
	for _, x := range [][2]string{{"url", "url: http://127.0.0.1:11434/v1"}, {"model", "model: NAME"}} {
		if in.Get(x[0]) == nil {
			r.Fault(in, needs+x[0], x[1])
		}
	}
}

// heldEndpoint holds the keys url and key_env of a model behind an endpoint to what may
// stand there.
func heldEndpoint(r *strictyaml.Reader, p *strictyaml.Place, url, keyEnv string) {
	hold(r, p.Node.Get("url"), endpointURL(url), "not an absolute https URL without user, query and fragment; http is for this machine alone", "url: https://host/v1")
	hold(r, p.Node.Get("key_env"), envName().MatchString(keyEnv), "not a name of an environment variable; the key itself does not stand here", "key_env: OPENAI_API_KEY")
}

// endpoint is a model's, with its key; whose says whose the key is.
func endpoint(url, name, keyEnv, whose string) (model.Endpoint, error) {
	e := model.Endpoint{URL: url, Model: name}
	if keyEnv == "" {
		return e, nil
	}
	if e.Key = os.Getenv(keyEnv); e.Key == "" {
		return e, cli.Fail(cli.ExitConfig, "export "+keyEnv+"=…", "the environment variable of the %s's key is not set", whose)
	}
	if !headerValue().MatchString(e.Key) {
		return e, cli.Fail(cli.ExitConfig, "", "the %s's key holds characters no key has", whose)
	}
	return e, nil
}

// endpointURL reports whether the user's words and the key may be sent there.
func endpointURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// NewPlanner makes what the configuration names.
func (a *Ask) NewPlanner() (ask.Planner, ask.Summariser, error) {
	p := &a.Planner
	switch p.Kind {
	case "", "rules":
		rules, err := faultless("built-in rules", ask.DefaultRules(), ask.ParseRules)
		if p.Rules != "" {
			rules, err = parsed(p.Rules, ask.ParseRules)
		}
		if err != nil {
			return nil, nil, Invalid(err)
		}
		return rules, rules, nil
	case "manual":
		return nil, &ask.Rules{}, nil
	}
	e, err := endpoint(p.URL, p.Model, p.KeyEnv, "planner")
	if err != nil {
		return nil, nil, err
	}
	m := model.NewOpenAI(e)
	if p.Kind == "anthropic" {
		m = model.NewAnthropic(e)
	}
	return m, m, nil
}

// InputPolicy reads the input policy.
func (a *Ask) InputPolicy() (*screen.Screen, error) {
	if a.Screen == "" {
		return screen.Default(), nil
	}
	return ReadScreen(a.Screen)
}

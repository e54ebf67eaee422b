package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/writ-project/writ/internal/ask/model"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/memory"
)

// Memory mounts the governed memory behind the gateway.
type Memory struct {
	strictyaml.Place
	// Namespace is what is remembered together, default by default; two have
	// nothing in common. a-z, 0-9 and -.
	Namespace string `yaml:"namespace"`
	// Mode is hardened (default): only what Writ itself saw can be believed; or
	// local: the agent may also attest what its one user said.
	Mode string `yaml:"mode"`
	// Policy is a file of every constant, relative to the configuration; the
	// built-in one by default. A namespace keeps the one it began with.
	Policy string `yaml:"policy"`
	// Surface is full (default): all tools are published; everyday: remember and
	// recall; or read_only: the reads.
	Surface string `yaml:"surface"`
	// With is the server beside which the memory is mounted where a client starts each
	// server by itself (writ run --only), so that it has it once; none is each.
	With string `yaml:"with"`
	// Tools is what Surface was called, and is refused by that name.
	Tools strictyaml.Anything `yaml:"tools"`
	// Secrets are values that are redacted in everything the memory is told,
	// and in the record of the call that told it. They are named here, never
	// written.
	Secrets Secrets `yaml:"secrets"`
	// Screen reads what is proposed, by an input policy.
	Screen Content `yaml:"screen"`
	// Embeddings find what is remembered by its meaning too; absent, words alone do.
	// What is remembered, and each query, is sent to their endpoint.
	Embeddings Embeddings `yaml:"embeddings"`

	intake memoryserver.Intake
}

// Secrets names secrets. Each line of a value is a secret of its own, of
// at least 4 bytes, without the space around it. One that is not set, empty or
// too short stops the start.
type Secrets struct {
	strictyaml.Place
	// Env are names of environment variables of writ, such as those that
	// servers are given with ${NAME}.
	Env strictyaml.Words `yaml:"env"`
	// Files hold secrets, relative to the configuration file.
	Files strictyaml.Words `yaml:"files"`
}

// Content is the screen of contents.
type Content struct {
	strictyaml.Place
	// Policy is built-in (default), or a file of patterns, relative to the
	// configuration file.
	Policy string `yaml:"policy"`
	// Action is quarantine (default): an observation that matches is kept and
	// supports nothing; or block: it is refused. Anything else that matches is
	// refused either way.
	Action string `yaml:"action"`
}

// Embeddings name a model that gives texts vectors, by OpenAI's wire.
type Embeddings struct {
	strictyaml.Place
	// URL is what stands before /embeddings. Unencrypted http only on this machine.
	URL string `yaml:"url"`
	// Model is the name the endpoint knows the model by.
	Model string `yaml:"model"`
	// KeyEnv names the environment variable that holds the key; none is sent without.
	KeyEnv string `yaml:"key_env"`
}

// MemoryModes and MemorySurfaces are the words for a mode and for what is
// published, the default first.
var (
	MemoryModes    = []string{string(memory.Hardened), string(memory.Local)}
	MemorySurfaces = []string{string(memoryserver.Full), string(memoryserver.Everyday), string(memoryserver.ReadOnly)}

	screenActions = []string{string(memory.ScreenQuarantine), string(memory.ScreenBlock)}
)

// check finds what the types cannot, fills in what was left out, and reads the
// secrets. path is what a relative path of the configuration means.
func (m *Memory) check(r *strictyaml.Reader, path func(string) string) {
	word := func(in *strictyaml.Node, key string, value *string, known []string) {
		if in.Get(key) == nil {
			*value = known[0]
		}
		oneOf(r, in.Get(key), *value, known)
	}
	word(m.Node, "mode", &m.Mode, MemoryModes)
	word(m.Node, "surface", &m.Surface, MemorySurfaces)
	if n := m.Node.Get("tools"); n != nil {
		r.Fault(n, "the key tools is surface now: "+strings.Join(MemorySurfaces, ", "), "surface: everyday")
	}
	if isSection(m.Screen.Place) {
		word(m.Screen.Node, "action", &m.Screen.Action, screenActions)
		if m.Screen.Policy == "" {
			m.Screen.Policy = BuiltInScreen
		} else if m.Screen.Policy != BuiltInScreen {
			m.Screen.Policy = path(m.Screen.Policy)
		}
	}
	if isSection(m.Secrets.Place) {
		m.Secrets.read(r, path, &m.intake)
	}
	if e := &m.Embeddings; isSection(e.Place) {
		needEndpoint(r, e.Node, "embeddings need a ")
		hold(r, e.Node.Get("model"), e.Model != "", "embeddings need a model", "model: NAME")
		heldEndpoint(r, &e.Place, e.URL, e.KeyEnv)
	}
	if m.Node.Get("namespace") == nil {
		m.Namespace = "default"
	}
	hold(r, m.Node.Get("namespace"), memoryserver.ValidNamespace(m.Namespace), "a namespace's name has 1 to 32 of a-z, 0-9 and -, and does not start with -", "namespace: default")
}

// MountedAt reports whether the memory is mounted in a gateway that runs that server
// alone; all of them where there is no name.
func (m *Memory) MountedAt(server string) bool {
	return m.Given() && (server == "" || m.With == "" || m.With == server)
}

// read takes the secrets in. A fault names where a secret is, and nothing of it.
func (s *Secrets) read(r *strictyaml.Reader, path func(string) string, into *memoryserver.Intake) {
	if len(s.Env.Items)+len(s.Files.Items) == 0 {
		r.Fault(s.Node, "no secret is named", "secrets: {env: [TOKEN]}")
	}
	for i := range s.Env.Items {
		n, name := s.Env.Items[i].Node, s.Env.Items[i].S
		if n == nil || n.Kind != strictyaml.Text {
			continue
		}
		switch value, set := os.LookupEnv(name); {
		case !envName().MatchString(name):
			r.Fault(n, "not a name of an environment variable", "the name alone, such as TOKEN; never the value")
		case !set: // what is said is not the name: it may be the value itself
			r.Fault(n, "no environment variable of this name is set", "export it where writ is started")
		default:
			takeSecrets(r, n, "the value of this environment variable", value, into)
		}
	}
	for i := range s.Files.Items {
		item := &s.Files.Items[i]
		if item.Node == nil || item.Node.Kind != strictyaml.Text {
			continue
		}
		item.S = path(item.S)
		b, err := ReadFile(item.S)
		if err == nil {
			takeSecrets(r, item.Node, "the file of secrets", string(b), into)
			continue
		}
		why := "cannot be read"
		if fs, ok := errors.AsType[Faults](err); ok && len(fs) > 0 {
			why = fs[0].Message
		}
		r.Fault(item.Node, "the file of secrets: "+why, "files: [a file that only its owner may write]")
	}
}

// takeSecrets takes in each line of a value.
func takeSecrets(r *strictyaml.Reader, n *strictyaml.Node, what, value string, into *memoryserver.Intake) {
	found := false
	for i, line := range strings.Split(value, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		found = true
		if err := into.AddSecret(line); err != nil {
			r.Fault(n, fmt.Sprintf("%s, line %d: %v", what, i+1, err), "")
			return // said once
		}
	}
	if !found {
		r.Fault(n, what+" is empty", "a secret has at least 4 bytes")
	}
}

// Files are those of the operator's that the memory's configuration names: no
// argument of a call may point to one.
func (m *Memory) Files() (out []string) {
	for _, f := range []string{m.Policy, m.Screen.Policy} {
		if f != "" && f != BuiltInScreen {
			out = append(out, f)
		}
	}
	for _, f := range m.Secrets.Files.Items {
		if f.S != "" {
			out = append(out, f.S)
		}
	}
	return out
}

// Intake is what is done to what the memory is told.
func (m *Memory) Intake() (in memoryserver.Intake, err error) {
	in = m.intake
	if in.Screen, err = ReadScreen(m.Screen.Policy); err != nil {
		return in, err
	}
	in.Action = memory.Screening(m.Screen.Action)
	return in, nil
}

// Nearness is what finds by meaning, nil where words alone do.
func (m *Memory) Nearness() (*memoryserver.Nearness, error) {
	if !m.Embeddings.Given() {
		return nil, nil
	}
	e, err := endpoint(m.Embeddings.URL, m.Embeddings.Model, m.Embeddings.KeyEnv, "embeddings")
	if err != nil {
		return nil, err
	}
	return memoryserver.NewNearness(e.URL+" "+e.Model, model.NewEmbedder(e).Embed), nil
}

// DefaultMemory is the memory of a gateway without a configuration.
func DefaultMemory() *Memory {
	return &Memory{Namespace: "default", Mode: MemoryModes[0], Surface: MemorySurfaces[0]}
}

// ReadPolicy reads the memory's policy.
func (m *Memory) ReadPolicy() (*memory.Policy, error) {
	if m.Policy == "" {
		return memory.Builtin(), nil
	}
	p, err := parsed(m.Policy, memory.ParsePolicy)
	if err != nil {
		return nil, Invalid(err)
	}
	return p, nil
}

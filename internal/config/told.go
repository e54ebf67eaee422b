package config

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/otlp"
	"github.com/writ-project/writ/internal/strictyaml"
)

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

package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/otlp"
)

// maxLogged is how much of a text stands in a line of the log.
const maxLogged = 400

// logger writes the gateway's log for a person: one line a message, with nothing a peer
// chose unescaped. Who shows it to him knows when it came.
func logger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return printable(a)
	}}))
}

// printable escapes and cuts what a text or an error says.
func printable(a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(cli.OneLine(v, maxLogged))
	case error:
		a.Value = slog.StringValue(cli.OneLine(v.Error(), maxLogged))
	}
	return a
}

// logs returns the log that the configuration wants of a gateway, at that level unless it
// says another, and where everything else is to go that the command says from now on: what
// is written for persons is a message of the log where that is in JSON.
func (o *files) logs(c *cobra.Command, level slog.Level) (*slog.Logger, io.Writer) {
	if o.cfg.Log.Level != "" {
		_ = level.UnmarshalText([]byte(o.cfg.Log.Level))
	}
	stderr := c.ErrOrStderr()
	if o.cfg.Log.Format != "json" {
		return logger(stderr, level), stderr
	}
	in := func(level slog.Level) *slog.Logger {
		return slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr { return printable(a) }}))
	}
	lines := &messages{log: in(slog.LevelInfo)}
	o.stderr = lines
	c.Root().SetErr(lines) // what it ends with, too
	return in(level), lines
}

// messages makes a message of the log of each line that is written, at whatever level.
type messages struct {
	log  *slog.Logger
	mu   sync.Mutex
	rest []byte // a line without its end
}

// Write implements io.Writer. What warns begins with a word for that.
func (s *messages) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, b...)
	for {
		line, rest, whole := bytes.Cut(s.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		text, level := strings.TrimSpace(string(line)), slog.LevelInfo
		for _, word := range []string{"writ: ", "warning: "} {
			if cut, ok := strings.CutPrefix(text, word); ok {
				text, level = cut, slog.LevelWarn
			}
		}
		s.log.Log(context.Background(), level, text)
		s.rest = rest
	}
}

// toldWithin bounds how long what is still to be told may take at the end.
const toldWithin = 2 * time.Second

// tells starts what tells a collector of this process's calls; nil where nobody is told.
func (o *files) tells(log *slog.Logger) *otlp.Exporter {
	if !o.cfg.OTLP.Given() {
		return nil
	}
	return otlp.New(otlp.Options{Endpoint: o.cfg.OTLP.Endpoint, Header: o.cfg.OTLP.Headers, Signals: o.cfg.OTLP.Signals, Version: cmp.Or(readBuildInfo().Version, "unknown"), Log: log})
}

package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

// The versions Writ speaks upstream.
const modernVersion = "2026-07-28"

var legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// LatestLegacy is the version Writ opens the legacy wire with.
const LatestLegacy = "2025-11-25"

// DiedError is that the process of a server ended. Its text has no word of the server's,
// and is of one that was not ready yet.
type DiedError struct {
	// Said is the end of what it wrote to its standard error, up to 64 KiB, for a person
	// who asks: it can hold secrets and control characters.
	Said []byte
}

func (*DiedError) Error() string { return "the server ended during the handshake" }

func died(err error) bool { return errors.As(err, new(*DiedError)) }

// connect makes one connection and brings it to readiness.
func (s *Server) connect() (*conn, Info, error) {
	ctx, cancel := timeout(s.ctx, s.clock, s.limits.Handshake)
	defer cancel()
	probe := s.cfg.Era != Legacy && !(s.noProbe && s.cfg.Era != Modern)
	c, info, err := s.attempt(ctx, probe)
	if died(err) && probe && s.cfg.Era != Modern && ctx.Err() == nil {
		// Some legacy servers end when the first message is not initialize.
		s.noProbe = true
		c, info, err = s.attempt(ctx, false)
	}
	return c, info, err
}

func (s *Server) attempt(ctx context.Context, probe bool) (*conn, Info, error) {
	c := newConn(s)
	var err error
	if s.cfg.URL != "" {
		startHTTP(c)
	} else if err = startStdio(c); err != nil {
		c.cancel()
		return nil, Info{}, err
	}
	info, err := c.handshake(ctx, probe)
	if err != nil {
		select {
		case <-c.dead:
			if s.cfg.URL == "" {
				err = &DiedError{}
			}
		default:
		}
		c.close()
		if d, is := errors.AsType[*DiedError](err); is {
			d.Said = c.link.(*stdio).proc.stderr.Bytes()
		}
		return nil, Info{}, err
	}
	return c, info, nil
}

// handshake opens the wire. What server/discover is answered with decides the
// era: only a result that lists 2026-07-28 makes it modern; every error, a
// silence and nonsense mean legacy, which the next request then proves.
func (c *conn) handshake(ctx context.Context, probe bool) (Info, error) {
	slow := false
	if probe {
		c.version = modernVersion
		c.modern.Store(true)
		pctx, cancel := ctx, context.CancelFunc(func() {})
		if c.s.cfg.Era != Modern && !c.s.patient {
			pctx, cancel = timeout(ctx, c.s.clock, c.s.limits.Probe)
		}
		r := c.do(pctx, Request{Method: "server/discover"}, true)
		cancel()
		switch {
		case r.End == Answered && r.Err == nil:
			if info, ok := discovered(r.Result); ok {
				return info, nil
			}
		case r.End == NotSent:
			return Info{}, errors.New(r.Err.Message)
		case r.End == Unknown:
			slow = pctx.Err() != nil
		}
		if c.s.cfg.Era == Modern {
			return Info{}, fmt.Errorf("the server does not speak %s", modernVersion)
		}
		if err := c.cause(); err != nil {
			return Info{}, err
		}
	}
	c.version = ""
	c.modern.Store(false)
	params := []byte(`{"protocolVersion":"` + LatestLegacy + `","capabilities":`)
	params = append(append(params, c.s.cfg.ClientCapabilities...), `,"clientInfo":`...)
	params = append(append(params, c.s.clientInfo()...), '}')
	r := c.do(ctx, Request{Method: "initialize", Params: strictjson.Of(params)}, true)
	if r.End != Answered || r.Err != nil {
		c.s.patient = slow
		if r.End == Answered && r.Err.Raw != nil { // the server's own words are not repeated
			return Info{}, fmt.Errorf("the server refused initialize: %w", r.Err)
		}
		return Info{}, fmt.Errorf("initialize: %s", r.Err.Message)
	}
	version, _ := r.Result.Get("protocolVersion").Text()
	if !slices.Contains(legacyVersions, version) {
		return Info{}, errors.New("the server answered initialize with a version Writ does not speak")
	}
	c.version = strings.Clone(version)
	if err := c.link.say(ctx, rpc.Notification("notifications/initialized", nil)); err != nil {
		return Info{}, err
	}
	return Info{Legacy, object(r.Result.Get("capabilities"))}, nil
}

func discovered(result strictjson.Value) (Info, bool) {
	for i, v := range result.Get("supportedVersions").Elements() {
		if i >= maxVersions {
			break
		}
		if s, _ := v.Text(); s == modernVersion {
			return Info{Modern, object(result.Get("capabilities"))}, true
		}
	}
	return Info{}, false
}

func object(v strictjson.Value) []byte {
	if v.Kind() != strictjson.Object {
		return []byte("{}")
	}
	return v.Raw()
}

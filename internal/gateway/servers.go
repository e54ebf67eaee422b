package gateway

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
)

// server is one upstream server and what it last said of itself.
type server struct {
	name      string
	config    upstream.Config     // as the operator's file has it
	programs  []string            // what it is started from
	here      bool                // its absolute paths are this machine's
	bases     []string            // where its relative paths may begin, nil if not known
	elsewhere bool                // or at another directory
	env       func(string) string // a variable as it would read it
	conn      *upstream.Server
	// patience is how long a call waits for lists that changed. Once that was in
	// vain nothing waits any more, until the server has listed them.
	patience time.Duration

	again chan struct{} // a list changed; holds one
	// From start on:
	running context.Context // until end
	stop    context.CancelFunc

	idle chan struct{} // closed when it is retired and no call runs there

	mu      sync.Mutex
	calls   int  // that run there
	retired bool // no call begins there any more
	info    upstream.Info
	err     error
	known   bool // the server has answered or failed
	listed  map[string][][]byte
	roots   []string // that a client named in an answer
	at      uint64   // the conn's Changes before the lists were asked for
	vain    uint64   // waiting for lists newer than at was in vain
}

func (g *Gateway) newServer(c upstream.Config) *server {
	dirs, programs, elsewhere := Given(c)
	if len(dirs) > 1 && slices.Contains(dirs[1:], dirs[0]) {
		dirs = dirs[1:]
	}
	s := &server{name: c.Name, config: c, programs: programs, here: onThisMachine(c), bases: dirs, elsewhere: elsewhere, env: environment(c),
		patience: c.Limits.WithDefaults().Relist, again: make(chan struct{}, 1), idle: make(chan struct{})}
	c.Version = g.version
	if c.URL != "" && g.credential != nil {
		c.Credential = g.credential(c.Name, c.URL)
	}
	if c.ClientCapabilities == nil {
		c.ClientCapabilities = []byte(`{"elicitation":{"form":{},"url":{}},"sampling":{}}`)
	}
	s.conn = upstream.New(c, upstream.Callbacks{
		ListChanged: func(kind string) { g.listChanged(s, kind) },
		Notify:      func(method string, params []byte, owner string) { g.notified(s, method, params, owner) },
		Event: func(e upstream.Event) {
			if g.events.ofServer(s.name, e); e.Kind == upstream.ConnectionLost && c.URL == "" && g.ended != nil {
				g.ended(s.config, &upstream.DiedError{Said: s.conn.Said()})
			}
		},
	}, nil)
	return s
}

// start connects to the server and returns at once. It ends with the context, or by end.
func (s *server) start(ctx context.Context) error {
	s.running, s.stop = context.WithCancel(ctx)
	return s.conn.Start(s.running)
}

func (s *server) end() error {
	if s.stop != nil {
		s.stop()
	}
	return s.conn.Close()
}

// lists are the list methods, the member that holds the items, and the
// capability that promises them.
var lists = []list{
	{"tools/list", "tools", "tools"},
	{"resources/list", "resources", "resources"},
	{"resources/templates/list", "resourceTemplates", "resources"},
	{"prompts/list", "prompts", "prompts"},
}

type list struct{ method, key, capability string }

func listOf(method string) (list, bool) {
	i := slices.IndexFunc(lists, func(l list) bool { return l.method == method })
	return lists[max(i, 0)], i >= 0
}

// watch lists the server when it is there, and again whenever it says that a
// list changed. first is called once, after the first answer or failure, or the end.
func (s *server) watch(ctx context.Context, log *slog.Logger, first func(answered bool), changed func()) {
	for {
		err := s.list(ctx, log)
		if first != nil {
			first(err == nil)
			first = nil
		}
		if ctx.Err() != nil {
			return
		}
		changed()
		select {
		case <-ctx.Done():
			return
		case <-s.again:
		}
	}
}

// list has the server list what it has, and keeps that. Where a server that
// could be listed cannot be now, what it listed last is kept as it was: it is
// shown, and closed.
func (s *server) list(ctx context.Context, log *slog.Logger) error {
	listed, info, at, err := s.fetchLists(ctx)
	if ctx.Err() != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || s.listed == nil || errors.Is(err, upstream.ErrFaulty) {
		s.info, s.err, s.known, s.listed, s.at = info, err, true, listed, at
		return err
	}
	if s.vain != s.at {
		log.Warn("a server said that its lists changed and cannot be listed: its tools are closed until it can", "server", s.name, "error", err.Error())
	}
	s.vain = s.at
	return err
}

// fetchLists asks a server for the lists its capabilities promise. at is how
// often they had changed before.
func (s *server) fetchLists(ctx context.Context) (listed map[string][][]byte, info upstream.Info, at uint64, err error) {
	info, err = s.conn.Info(ctx)
	at = s.conn.Changes()
	if err != nil {
		return nil, info, at, err
	}
	listed = map[string][][]byte{}
	for _, l := range lists {
		if !hasCapability(strictjson.Of(info.Capabilities), l.capability) {
			continue
		}
		got, err := s.conn.List(ctx, l.method, l.key)
		if err == nil {
			listed[l.method] = got
		} else if l.method == "tools/list" {
			return nil, info, at, err
		} // else an optional list the server does not have after all
	}
	return listed, info, at, nil
}

// fetchList is the read of one of the server's lists, whole. Who asks for the lists of all
// servers waits no longer for one of them than a call waits for lists that changed.
func (s *server) fetchList(ctx context.Context, of list) upstream.Response {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	items, err := s.conn.List(ctx, of.method, of.key)
	if err != nil {
		return upstream.Response{End: upstream.Answered, Err: rpc.Errorf(rpc.CodeInternal, "the server's list cannot be had")}
	}
	return upstream.Response{End: upstream.Answered, Result: strictjson.Of(listResult(of.key, items))}
}

// listResult makes a list result of raw items, complete in one page.
func listResult(key string, items [][]byte) []byte {
	b := append(append([]byte(`{`), strictjson.Quote(key)...), `:[`...)
	return append(append(b, bytes.Join(items, []byte(","))...), `]}`...)
}

// said returns what the server last said of itself; known is false until it has
// answered or failed.
func (s *server) said() (info upstream.Info, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info, s.known
}

func (s *server) can(capability string) bool {
	info, _ := s.said()
	return hasCapability(strictjson.Of(info.Capabilities), capability)
}

func (s *server) legacy() bool {
	info, _ := s.said()
	return info.Era == upstream.Legacy
}

// waitedInVain reports whether waiting for lists newer than at was in vain.
func (s *server) waitedInVain(at uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vain == at
}

func hasCapability(capabilities strictjson.Value, name string) bool {
	return capabilities.Get(name).Kind() == strictjson.Object
}

func textMember(v strictjson.Value, name string) string {
	s, _ := v.Get(name).Text()
	return s
}

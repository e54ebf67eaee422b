package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/policy"
)

// fleet is which servers there are, and what no tool may name (R34). It is immutable,
// but for what was read of the disk: a call goes to the server that it was judged for,
// or nowhere.
type fleet struct {
	servers  map[string]*server
	order    []string // their names, sorted
	ownPaths []string
	programs []string // what servers are started from, and this program

	own map[string]*gate.OwnPlaces // of each server, what its calls are held against

	listed sync.Map // of ownPaths, as last read: listedDir; what it holds never changes
	plain  sync.Map // of ownPaths and programs, those that were no directories: so until the operator's files are read again
}

// newFleet makes a fleet of what the operator's file says. Of old, which may be nil,
// it keeps the servers that are to be as they were; fresh are the others.
func (g *Gateway) newFleet(configs []upstream.Config, ownPaths []string, old *fleet) (f *fleet, fresh []*server, err error) {
	f = &fleet{servers: map[string]*server{}, ownPaths: ownPaths}
	for _, c := range configs {
		if f.servers[c.Name] != nil || c.Name == policy.OwnServer || g.hasTools(c.Name) {
			return nil, nil, errors.New("gateway: two servers have one name")
		}
		var s *server
		if old != nil {
			s = old.servers[c.Name]
		}
		if s == nil || !reflect.DeepEqual(s.config, c) {
			s = g.newServer(c)
			fresh = append(fresh, s)
		}
		f.servers[c.Name] = s
		f.order = append(f.order, c.Name)
		f.programs = append(f.programs, s.programs...)
	}
	if self, err := os.Executable(); err == nil {
		f.programs = append(f.programs, self)
	}
	slices.Sort(f.programs)
	f.programs = slices.Compact(f.programs)
	slices.Sort(f.order)
	f.own = make(map[string]*gate.OwnPlaces, len(f.servers))
	for name, s := range f.servers {
		f.own[name] = gate.OwnPlacesOf(f.ownPaths, f.programs, s.bases)
	}
	return f, fresh, nil
}

// each calls do for each server, by name.
func (f *fleet) each(do func(*server)) {
	for _, name := range f.order {
		do(f.servers[name])
	}
}

// atOnce calls do for each server, for all at once, and returns when all have returned:
// one that hangs does not hold up the others.
func (f *fleet) atOnce(do func(i int, s *server)) {
	var wg sync.WaitGroup
	for i, name := range f.order {
		wg.Go(func() { do(i, f.servers[name]) })
	}
	wg.Wait()
}

// Setup is what of a gateway can be put in another's place while it runs.
type Setup struct {
	Policy   *policy.Policy
	Screen   *screen.Screen
	Servers  []upstream.Config
	OwnPaths []string
}

// Reloaded says what a reload did to the servers, by name.
type Reloaded struct {
	Started, Restarted, Ended []string
}

// Reload puts another setup in force, whole or not at all, and returns once it is.
// The caller has read it whole: what is broken in a file never comes here. A server
// that is new, or to be started otherwise, has to answer before anything changes; one
// that is as it was keeps its process. What a call was judged by stays with it to its
// end: a server that is no more ends after the calls that run there.
func (g *Gateway) Reload(ctx context.Context, to Setup) (did Reloaded, err error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	if g.running == nil || g.running.Err() != nil {
		return did, errors.New("the gateway does not run")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.running, cancel)()
	old := g.rules.serving()
	next, fresh, err := g.newFleet(to.Servers, to.OwnPaths, old)
	if err != nil {
		return did, err
	}
	if err := g.try(ctx, fresh); err != nil {
		return did, err
	}
	if err := g.rules.replace(ctx, to.Policy, next); err != nil {
		endAll(fresh)
		return did, err
	}
	g.sessions.screen.Store(to.Screen)
	for _, s := range fresh {
		if old.servers[s.name] == nil {
			did.Started = append(did.Started, s.name)
		} else {
			did.Restarted = append(did.Restarted, s.name)
		}
	}
	old.each(func(s *server) {
		if next.servers[s.name] == s {
			return
		}
		if next.servers[s.name] == nil {
			did.Ended = append(did.Ended, s.name)
		}
		g.done.Go(func() { s.retire(g.running) })
	})
	if len(fresh)+len(did.Ended) > 0 {
		g.listeners.listChanged("prompts")
		g.listeners.listChanged("resources")
	}
	slices.Sort(did.Started)
	slices.Sort(did.Restarted)
	return did, nil
}

// try starts servers and waits until each has listed what it has, or ends them all.
func (g *Gateway) try(ctx context.Context, fresh []*server) error {
	answered := make(chan error, len(fresh))
	var err error
	for _, s := range fresh {
		if serr := s.start(g.running); serr != nil {
			err = fmt.Errorf("server %s: %w", s.name, serr)
			break
		}
		g.rules.watch(s, func(ok bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if ok {
				answered <- nil
			} else {
				answered <- fmt.Errorf("server %s: %w", s.name, s.err)
			}
		})
	}
	for range fresh {
		if err != nil {
			break
		}
		select {
		case err = <-answered:
		case <-ctx.Done():
			err = errors.New("a server did not answer in time")
		}
	}
	if err != nil {
		endAll(fresh)
	}
	return err
}

// endAll ends servers that no call can have reached.
func endAll(all []*server) {
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() { s.end() })
	}
	wg.Wait()
}

// retireWithin bounds how long a server that is no more is left to its calls.
const retireWithin = time.Minute

// retire ends a server when the calls that run there have ended, or may have no more
// time.
func (s *server) retire(ctx context.Context) {
	s.mu.Lock()
	s.retired = true
	idle := s.idle
	if s.calls == 0 {
		close(idle)
	}
	s.mu.Unlock()
	late := time.NewTimer(min(s.config.Limits.WithDefaults().Call, retireWithin))
	defer late.Stop()
	select {
	case <-idle:
	case <-late.C:
	case <-ctx.Done():
	}
	s.end()
}

// maxCalls bounds the calls that run at one server: half of what one principal may have
// open (package downstream), so that one that hangs leaves room for calls to others.
const maxCalls = 128

// enter counts a call that runs at the server, until leave; no is what it ends with
// where it does not begin.
func (s *server) enter() (leave func(), no *upstream.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.retired:
		no := changedUnder()
		return nil, &no
	case s.calls >= maxCalls:
		return nil, &upstream.Response{End: upstream.NotSent, Err: rpc.Errorf(rpc.CodeInternal,
			"%d calls run at this server, as many as may; nothing was sent, try again when one of them has ended", maxCalls)}
	}
	s.calls++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.calls--; s.retired && s.calls == 0 {
			close(s.idle)
		}
	}, nil
}

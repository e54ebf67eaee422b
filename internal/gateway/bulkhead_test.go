package gateway_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-project/writ/internal/mcp/upstream"
)

// hangingPolicy is of two servers, of which one can hang.
const hangingPolicy = `
pins: optional
tools:
  hangs/stay: { effect: read }
  other/look: { effect: read }
`

func tool(name string) string {
	return `{"tools":[{"name":"` + name + `","inputSchema":{"type":"object"}}]}`
}

// TestD03OneServerHangs: a server has a bounded number of calls at a time. Who calls it
// beyond that is told so at once, on record as not sent; calls to others go on, also of the
// sessions that wait for it (D03).
func TestD03OneServerHangs(t *testing.T) {
	ctx := testContext(t)
	hangs, other := newScripted(t, "hangs", false), newScripted(t, "other", false)
	hangs.list("tools/list", tool("stay"))
	other.list("tools/list", tool("look"))
	arrived, release := make(chan struct{}), make(chan struct{})
	hangs.during = func(received, func(string)) {
		arrived <- struct{}{}
		<-release
	}
	r := newRig(t, onMaps(t), policy(t, hangingPolicy), hangs.config(true), other.config(true))
	var waiting sync.WaitGroup
	var one *wire // of those that wait
	for range 4 {
		w := overHTTP(ctx, r, false, web{})
		for range 32 {
			waiting.Go(func() { w.call(ctx, "stay", `{}`) })
			<-arrived
		}
		one = w
	}
	quiet := overHTTP(ctx, r, false, web{})
	a := quiet.call(ctx, "stay", `{}`)
	if !strings.Contains(string(a.err), "128 calls run at this server, as many as may; nothing was sent") {
		t.Errorf("the call beyond them: %s %s", a.result, a.err)
	}
	for _, w := range []*wire{quiet, one} {
		other.reply(`"result":{"content":[]}`)
		passed(t, w.call(ctx, "look", `{}`))
	}
	for range 128 {
		hangs.reply(`"result":{"content":[]}`)
	}
	close(release)
	waiting.Wait()
	if n := len(hangs.take()); n != 128 {
		t.Errorf("%d calls reached the server", n)
	}
}

// TestU06OneListHangs: a server that does not answer its list, or to which log level it
// should keep, takes neither the others' nor their levels with it (U06).
func TestU06OneListHangs(t *testing.T) {
	ctx := testContext(t)
	hangs, other := newScripted(t, "hangs", false), newScripted(t, "other", false)
	for name, s := range map[string]*scripted{"hangs": hangs, "other": other} {
		s.list("tools/list", `{"tools":[]}`)
		s.list("resources/list", `{"resources":[{"uri":"mem://`+name+`","name":"x"}]}`)
		s.list("resources/templates/list", `{"resourceTemplates":[]}`)
	}
	brief := func(s *scripted) upstream.Config {
		c := s.config(true)
		c.Limits.Relist = 100 * time.Millisecond
		return c
	}
	r := newRig(t, onMaps(t), policy(t, "pins: optional\ntools: {}\n"), brief(hangs), brief(other))
	w := overHTTP(ctx, r, false, web{})
	list := func(want string) {
		t.Helper()
		if got := string(w.request(ctx, "resources/list", "").result); got != `{"resources":[`+want+`]}` {
			t.Errorf("listed %s", got)
		}
	}
	list(`{"uri":"mem://hangs","name":"x"},{"uri":"mem://other","name":"x"}`)
	hanging, end := context.WithCancel(ctx)
	defer end()
	hangs.mu.Lock()
	hangs.listing = func(string) { <-hanging.Done() }
	hangs.during = func(received, func(string)) { <-hanging.Done() }
	hangs.mu.Unlock()
	list(`{"uri":"mem://other","name":"x"}`)
	other.reply(`"result":{}`)
	if a := w.request(ctx, "logging/setLevel", `{"level":"info"}`); a.err != nil {
		t.Errorf("logging/setLevel: %s", a.err)
	}
	if got := other.take(); len(got) != 1 || got[0].method != "logging/setLevel" {
		t.Errorf("the other server was sent %v", got)
	}
}

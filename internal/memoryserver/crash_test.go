package memoryserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
)

// crashed is a state directory that gateways are killed over, round after
// round, and everything they acknowledged.
type crashed struct {
	t      *testing.T
	bin    string
	dir    string // configuration
	state  string
	policy *memory.Policy
	client *http.Client

	mu   sync.Mutex
	acks map[string]ack // by decision
	hear func()         // at each acknowledgement

	next uint64 // event, as of the last check
}

// ack is an outcome that a client was told.
type ack struct {
	tool   string
	status writ.Status
}

// errCut says that no answer came: whether it happened nobody told the client.
var errCut = errors.New("no answer")

// patience bounds what hangs. Nothing is expected to take it.
const patience = 3 * time.Minute

// TestKilledGateways kills two gateways that share a state directory, one
// after the other, in the middle of sessions, with no warning (L04, L05). What
// a client was told is in the log after that, the log verifies, every decision
// in it is made again, and clients that heard nothing ask again in the same
// session and lose nothing by it.
func TestKilledGateways(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	rounds, atOnce := 20, 10
	if os.Getenv("WRIT_LONG") == "1" {
		rounds = 60
	}
	k := newCrashed(t)
	rng := rand.New(rand.NewPCG(4, 9))
	var waiting []*agent // cut sessions
	started, cuts := 0, 0
	begun := time.Now()
	for round := range rounds {
		a, b := k.serve(), k.serve()
		agents, steps := waiting, 0
		for len(agents) < atOnce+len(waiting) {
			agents = append(agents, &agent{k: k, name: fmt.Sprintf("s%d", started)})
			started++
		}
		for _, g := range agents {
			steps += len(script) - max(g.step, 1) // the first is no outcome
		}
		killA := 1 + rng.IntN(steps*3/4)
		killB := killA + 1 + rng.IntN((steps-killA+1)/2)
		heard := 0
		k.hear = func() { // under mu
			switch heard++; heard {
			case killA:
				a.kill()
			case killB:
				b.kill()
			}
		}
		var all sync.WaitGroup
		for i, g := range agents {
			url := a.url
			if i%2 == 1 {
				url = b.url
			}
			all.Go(func() { g.work(url) })
		}
		all.Wait()
		a.kill()
		b.kill()
		a.wait()
		b.wait()
		waiting = slices.DeleteFunc(agents, func(g *agent) bool { return g.done() || g.failed })
		cuts += len(waiting)
		if t.Failed() {
			break
		}
		if k.check(); round%8 == 7 {
			k.verify()
		}
		if t.Failed() {
			break
		}
	}
	// The last ones are served to their end.
	last := k.serve()
	k.hear = func() {}
	var all sync.WaitGroup
	for _, g := range waiting {
		all.Go(func() { g.work(last.url) })
	}
	all.Wait()
	last.kill()
	last.wait()
	for _, g := range waiting {
		if !g.done() && !t.Failed() {
			t.Errorf("session %s did not come to its end", g.name)
		}
	}
	k.check()
	k.verify()
	if cuts < rounds {
		t.Errorf("in %d rounds only %d sessions were cut: the kills came too late", rounds, cuts)
	}
	t.Logf("%d sessions, %d cut in the middle, %d outcomes acknowledged, %d events, %d kills, %v",
		started, cuts, len(k.acks), k.next-1, 2*rounds+1, time.Since(begun).Round(time.Second))
}

func newCrashed(t *testing.T) *crashed {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	k := &crashed{t: t, bin: os.Getenv("WRIT_BINARY"), dir: t.TempDir(), state: filepath.Join(t.TempDir(), "state"), acks: map[string]ack{}, next: 1,
		client: &http.Client{Timeout: patience, Transport: &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 64}}}
	if k.bin == "" {
		k.bin = filepath.Join(k.dir, "writ")
		build := exec.CommandContext(ctx, "go", "build", "-o", k.bin, "./cmd/writ")
		build.Dir = filepath.Join("..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build ./cmd/writ: %v\n%s", err, out)
		}
	}
	source := regexp.MustCompile(`observations_per_minute: \d+`).ReplaceAll(memory.Builtin().Source(), []byte("observations_per_minute: 1000000"))
	var faults []memory.Fault
	if k.policy, faults = memory.ParsePolicy("memory.yaml", source); len(faults) > 0 {
		t.Fatal(faults)
	}
	for name, text := range map[string]string{
		"memory.yaml": string(source),
		"policy.yaml": crashPolicy,
		"writ.yaml":   fmt.Sprintf("servers: [{ name: desk, command: [%q, example-server] }]\npolicy: policy.yaml\nmemory: { policy: memory.yaml, surface: full }\n", k.bin),
	} {
		if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

const crashPolicy = `
pins: optional
collections: { ticket: { closed: true } }
tools:
  desk/search_tickets:
    effect: read
    outputs: [{ at: /tickets/*/id, label: system, type: id, collection: ticket, authoritative: true }]
`

// served is one gateway process.
type served struct {
	k    *crashed
	cmd  *exec.Cmd
	url  string
	said bytes.Buffer
	read chan struct{} // closed at the end of what it said
}

var listening = regexp.MustCompile(`listening on (http://\S+)$`)

func (k *crashed) serve() *served {
	k.t.Helper()
	s := &served{k: k, read: make(chan struct{})}
	s.cmd = exec.Command(k.bin, "serve", "--listen", "127.0.0.1:0", "--config", filepath.Join(k.dir, "writ.yaml"), "--state", k.state)
	r, w, err := os.Pipe()
	if err != nil {
		k.t.Fatal(err)
	}
	s.cmd.Stderr = w
	if err := s.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	w.Close()
	k.t.Cleanup(func() {
		s.kill()
		<-s.read
		if k.t.Failed() && bytes.Contains(s.said.Bytes(), []byte("altered")) {
			k.t.Logf("a gateway said:\n%s", &s.said)
		}
	})
	found := make(chan string, 1)
	go func() {
		defer close(s.read)
		defer r.Close()
		for sc := bufio.NewScanner(r); sc.Scan(); {
			if m := listening.FindStringSubmatch(sc.Text()); m != nil {
				found <- m[1]
			}
			if s.said.Len() < 64<<10 {
				fmt.Fprintf(&s.said, "%s\n", sc.Bytes())
			}
		}
	}()
	select {
	case s.url = <-found:
	case <-s.read:
		k.t.Fatalf("a gateway does not start:\n%s", &s.said)
	case <-time.After(patience):
		k.t.Fatal("a gateway does not start")
	}
	return s
}

func (s *served) kill() { s.cmd.Process.Kill() }

func (s *served) wait() {
	s.k.t.Helper()
	s.cmd.Wait()
	// Its server's end of the pipe may outlive it by a moment.
	<-s.read
	if strings.Contains(s.said.String(), "panic") {
		s.k.t.Errorf("a gateway said:\n%s", &s.said)
	}
}

// agent is one session. It does one thing after the other, and what got no
// answer again.
type agent struct {
	k        *crashed
	name     string
	secret   string
	step     int
	entity   string
	claim    string
	decision string // the newest it was told
	failed   bool
}

// A turn is one call of the script; learn takes what later calls need.
type turn struct {
	tool string
	args func(g *agent) string
}

var script = []turn{
	{"search_tickets", func(*agent) string { return `{"query":""}` }},
	{memory.ToolRecordObservation, func(g *agent) string {
		return fmt.Sprintf(`{"observation_id":"%s-1","raw_payload":"INC-1042"}`, g.name)
	}},
	{memory.ToolEntity, func(g *agent) string {
		return fmt.Sprintf(`{"name":"printer of %s","entity_type":"device","observation_ids":["%[1]s-1"]}`, g.name)
	}},
	{memory.ToolPropose, func(g *agent) string {
		return fmt.Sprintf(`{"text":"%s has ticket INC-1042","structured_form":{"subject":%q,"predicate":"ticket","object":{"literal":"INC-1042"}},"observation_ids":["%[1]s-1"],"about":[%[2]q]}`, g.name, g.entity)
	}},
	{memory.ToolRecordObservation, func(g *agent) string {
		return fmt.Sprintf(`{"observation_id":"%s-2","raw_payload":"printer of %[1]s: ticket INC-1043","source_ref":"https://forum.example/%[1]s"}`, g.name)
	}},
	{memory.ToolPropose, func(g *agent) string {
		return fmt.Sprintf(`{"text":"%s has ticket INC-1043","structured_form":{"subject":%q,"predicate":"ticket","object":{"literal":"INC-1043"}},"observation_ids":["%[1]s-2"],"about":[%[2]q]}`, g.name, g.entity)
	}},
	{memory.ToolAttachContra, func(g *agent) string {
		return fmt.Sprintf(`{"proposition_id":%q,"observation_ids":["%s-2"]}`, g.claim, g.name)
	}},
	{memory.ToolRecordObservation, func(g *agent) string {
		return fmt.Sprintf(`{"observation_id":"%s-3","raw_payload":"invented by %[1]s"}`, g.name) // refused
	}},
	{memory.ToolAttachSupport, func(g *agent) string {
		return fmt.Sprintf(`{"proposition_id":%q,"observation_ids":["%s-1"],"quote":"INC"}`, g.claim, g.name)
	}},
	{memory.ToolConsolidate, func(*agent) string { return `{"reason":"task_boundary"}` }},
	{memory.ToolArchiveEpisode, func(*agent) string { return `{}` }},
}

func (g *agent) done() bool { return g.step == len(script) }

// work goes on with the session over one gateway, until it is done or cut.
func (g *agent) work(url string) {
	err := g.ready(url)
	for ; err == nil && !g.done(); g.step++ {
		if err = g.do(url, &script[g.step]); err != nil {
			break
		}
	}
	if err != nil && !errors.Is(err, errCut) {
		g.failed = true
		g.k.t.Errorf("session %s, step %d: %v", g.name, g.step, err)
	}
}

// ready opens the session if there is none, and waits for the listing of its
// server. What the session was told before the crash is there after it.
func (g *agent) ready(url string) error {
	if g.secret == "" {
		_, h, err := g.post(url, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"crash","version":"1"}}`)
		if err != nil {
			return err
		}
		if g.secret = h.Get("Mcp-Session-Id"); g.secret == "" {
			return errors.New("no session")
		}
	}
	for until := time.Now().Add(patience); ; {
		r, _, err := g.post(url, "tools/list", `{}`)
		if err != nil {
			return err
		}
		if bytes.Contains(r, []byte(`"search_tickets"`)) {
			break
		}
		if time.Now().After(until) {
			return errors.New("the server is not listed")
		}
	}
	if g.decision == "" {
		return nil
	}
	r, err := g.call(url, "memory_get", fmt.Sprintf(`{"id":%q}`, g.decision))
	if err == nil && member(r, "decision", "tool") == "" {
		err = fmt.Errorf("%s was acknowledged and is not known any more: %s", g.decision, r)
	}
	return err
}

func (g *agent) do(url string, s *turn) error {
	r, err := g.call(url, s.tool, s.args(g))
	if err != nil || s.tool == "search_tickets" {
		return err
	}
	var o memory.Outcome
	if err := json.Unmarshal(r, &o); err != nil {
		return err
	}
	if (o.Status == writ.Rejected) != strings.Contains(s.args(g), "invented") {
		return fmt.Errorf("%s: %s", s.tool, r)
	}
	a := ack{s.tool, o.Status}
	if o.Proposal != nil {
		a.tool = o.Proposal.ToolName
	}
	for _, e := range o.Effects {
		switch prefix, _, _ := strings.Cut(e.ID, "_"); {
		case s.tool == memory.ToolEntity && prefix == "ent" && g.entity == "": // others are those it may be
			g.entity = e.ID
		case s.tool == memory.ToolPropose && prefix == "prop" && g.claim == "":
			g.claim = e.ID
		}
	}
	g.decision = o.Decision
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	if _, twice := g.k.acks[o.Decision]; twice {
		return fmt.Errorf("two clients were told of decision %s", o.Decision)
	}
	g.k.acks[o.Decision] = a
	g.k.hear()
	return nil
}

// call calls a tool and returns its structured content.
func (g *agent) call(url, tool, args string) ([]byte, error) {
	r, _, err := g.post(url, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
	if err != nil {
		return nil, err
	}
	content := strictjson.Get(r, "structuredContent")
	if content == nil {
		return nil, fmt.Errorf("%s: %s", tool, r)
	}
	return content, nil
}

// post makes one request; errCut if the gateway ended before its answer did.
func (g *agent) post(url, method, params string) ([]byte, http.Header, error) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	req, err := http.NewRequestWithContext(g.k.t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if g.secret != "" {
		req.Header.Set("Mcp-Session-Id", g.secret)
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	resp, err := g.k.client.Do(req)
	if err != nil {
		return nil, nil, errCut
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, errCut
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		lines := bytes.Split(b, []byte("\n"))
		b = nil
		for _, line := range lines {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && strictjson.Get(data, "id") != nil {
				b = data
			}
		}
		if b == nil {
			return nil, nil, errCut
		}
	}
	if r := strictjson.Get(b, "result"); r != nil {
		return r, resp.Header, nil
	}
	return nil, nil, fmt.Errorf("%s: %d %s", method, resp.StatusCode, b)
}

// verify is `writ audit verify`: the chain, and every decision of the gate and
// of the memory made again.
func (k *crashed) verify() {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, k.bin, "audit", "verify", "--state", k.state).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("ok")) {
		k.t.Errorf("writ audit verify: %v\n%s", err, out)
	}
}

// check holds the log against everything that was acknowledged.
func (k *crashed) check() {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	signer, verifier, err := statedir.Key(k.state)
	if err != nil {
		k.t.Errorf("the key: %v", err)
		return
	}
	st, err := sqlite.Open(k.state, sqlite.Options{Signer: signer, Verifier: verifier})
	if err != nil {
		k.t.Errorf("the log: %v", err)
		return
	}
	defer st.Close()
	fold := memoryserver.NewFold(st)
	events := map[string]*memory.Event{}
	for it, err := range st.Read(ctx, memoryserver.LogOf("default"), 1) {
		if err != nil {
			k.t.Errorf("the log: %v", err)
			return
		}
		rec, err := audit.ParseRecord(it.Leaf)
		unchecked := fold.Unchecked
		if err == nil {
			err = fold.Step(ctx, &it)
		}
		if err != nil {
			k.t.Errorf("the fold: %v", err)
			return
		}
		e, err := memory.ParseEvent(rec.Data)
		if err != nil {
			k.t.Errorf("record %d: %v", rec.N, err)
			return
		}
		// Not decided again is only what changed nothing: a refused observation,
		// whose evidence is not kept, or one that was there already.
		if fold.Unchecked > unchecked && len(e.Ops) > 0 {
			k.t.Errorf("event %d could not be decided again: %s", e.N, rec.Data)
		}
		events[fmt.Sprintf("dec_%d", e.N)] = e
		k.next = e.N + 1
	}
	for id, a := range k.acks {
		switch e := events[id]; {
		case e == nil:
			k.t.Errorf("%s was acknowledged and is lost", id)
		case e.Tool != a.tool || e.Status != a.status:
			k.t.Errorf("%s was acknowledged as %+v; the log says %s %s", id, a, e.Tool, e.Status)
		}
	}
	keeper, err := memoryserver.Open(ctx, memoryserver.Options{Store: st, Namespace: "default", Policy: k.policy, Mode: memory.Hardened})
	if err != nil {
		k.t.Errorf("opening it again: %v", err)
		return
	}
	if err := keeper.Read(ctx, func(s *memory.State, _ time.Time) {
		if s.Digest() != fold.State().Digest() || s.Head() != k.next-1 {
			k.t.Errorf("the state after %d events is %s, deciding them again gives %s", s.Head(), s.Digest(), fold.State().Digest())
		}
	}); err != nil {
		k.t.Errorf("reading: %v", err)
	}
}

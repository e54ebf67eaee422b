package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/strictjson"
	policies "github.com/writ-project/writ/policy"
)

// faultyPolicy is a contract under which an item nobody read takes a person.
const faultyPolicy = `
pins: optional
collections: { item: { closed: true } }
tools:
  toy/list_items: { effect: read, outputs: [{ at: /items/*/id, label: system, collection: item, authoritative: true }] }
  toy/look: { effect: read }
  toy/delete_item: { effect: write, args: { /id: { role: selector, collection: item, type: id, from: [user, output] } } }
`

const erasedText = "planted-token"

func init() { jobs["load"] = loadMain }

// exitDisk is how `writ serve` ends where the log's disk failed.
const exitDisk = 71

// loadMain is a short life of a gateway: it opens a state directory that may be empty, and a session,
// reads, acts, is approved of, folds, erases and closes. What fails does not stop it: all
// that comes after has to fail closed as well. It says what it was told.
func loadMain(arg string) int {
	dir, url, _ := strings.Cut(arg, "|")
	say := func(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	say("phase key")
	st, err := openFaulty(dir, func() { say("phase open") })
	if err != nil {
		say("not opened: %v", err)
		return 1
	}
	say("opened")
	say("phase start")
	queue := approval.New(time.Now)
	p, faults := policies.Parse("policy.yaml", []byte(faultyPolicy))
	if len(faults) > 0 {
		say("%v", faults)
		return 2
	}
	gw, err := gateway.New(gateway.Options{Store: st, Policy: p, Approvals: queue, Version: "test", Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Servers: []upstream.Config{{Name: "toy", Era: upstream.Modern, URL: url}}})
	if err == nil {
		err = gw.Start(context.Background())
	}
	if err == nil {
		err = gw.Ready(ctx)
	}
	if err != nil {
		say("not started: %v", err)
		return 1
	}
	call := func(ctx context.Context, s downstream.Session, tool, args string) {
		r := gw.Handle(ctx, &downstream.Request{Method: "tools/call", Params: strictjson.Of([]byte(callParams(tool, args))),
			Era: downstream.Modern, Version: "2026-07-28", Session: s, Principal: downstream.Loopback, Peer: gateway.NoPeer})
		a := answer{result: r.Result}
		switch {
		case r.Err != nil:
			say("%s %s failed %s", tool, args, r.Err.Message)
		case refusedFor(a) != "":
			say("%s %s refused %s", tool, args, refusedFor(a))
		default:
			say("%s %s passed", tool, args)
		}
	}
	session := func(which string) downstream.Session {
		secret, s, err := gw.OpenSession(ctx, downstream.Loopback, downstream.CarrierEndpoint)
		if err != nil {
			say("no session: %v", err)
			return nil
		}
		say("%s session %s", which, secret)
		return s
	}
	say("phase session")
	if s := session("first"); s != nil {
		say("phase reads")
		call(ctx, s, "list_items", `{}`)
		call(ctx, s, "look", `{"text":"around"}`)
		say("phase act")
		call(ctx, s, "delete_item", `{"id":"item-17"}`)
		say("phase approval")
		asked, leave := context.WithCancel(ctx)
		watching := queue.There()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				qs, change := queue.Open()
				if len(qs) > 0 {
					if _, err := queue.Answer(qs[0].ID, approval.Answer{Yes: true, By: "kim", Label: writ.User}); err != nil {
						say("not approved: %v", err)
						leave()
					} else {
						say("approved")
					}
					return
				}
				select {
				case <-change:
				case <-asked.Done():
					return
				}
			}
		}()
		call(asked, s, "delete_item", `{"id":"item-4711"}`)
		leave()
		<-ended
		watching()
		call(ctx, s, "delete_item", `{"id":"item-4711"}`) // it was good once
		say("phase fold")
		if _, err := st.Checkpoint(ctx); err == nil {
			say("folded")
		}
		call(ctx, s, "delete_item", `{"id":"item-18"}`)
	}
	say("phase second session")
	if s := session("second"); s != nil {
		call(ctx, s, "look", `{"text":"`+erasedText+`"}`)
		say("phase erasure")
		err := gw.CloseSession(ctx, s)
		if err == nil {
			_, err = gateway.Redact(ctx, st, nil, s.PublicID(), "test", time.Now())
		}
		if err == nil {
			say("erased")
		}
	}
	say("phase close")
	if err = gw.Close(); err == nil {
		err = st.Close()
	}
	select {
	case <-st.Broken():
		say("broken")
		return exitDisk
	default:
	}
	if err != nil {
		say("not closed: %v", err)
		return 1
	}
	say("closed")
	return 0
}

// openFaulty opens the log as `writ serve` does.
func openFaulty(dir string, opens func()) (*sqlite.Store, error) {
	state := filepath.Join(dir, "state")
	signer, verifier, err := statedir.Key(state)
	if err != nil {
		return nil, err
	}
	opens()
	return sqlite.Open(state, sqlite.Options{Signer: signer, Verifier: verifier, Elsewhere: filepath.Join(dir, "heads")})
}

// life is one run of loadMain.
type life struct {
	*supervised
	dir string
	toy *toy
}

func newLife(t *testing.T) *life {
	t.Helper()
	l := &life{dir: unsynced(t), toy: newToy()}
	l.toy.items = append(l.toy.items, "item-19")
	for _, dir := range []string{"state", "heads"} {
		if err := os.Mkdir(filepath.Join(l.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// unsynced is a directory in memory where there is such a place: whoever opens it again here
// need not wait for a disk.
func unsynced(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "writ-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// lives runs it, over what there is.
func (l *life) lives(t *testing.T, f *fault) {
	t.Helper()
	var err error
	c := l.toy.config(t, true, true)
	l.toy.deleting = func(_ context.Context, id string) { l.acts(id) }
	if l.supervised, err = supervise(l.dir, f, "load", l.dir+"|"+c.URL); err != nil {
		t.Fatal(err)
	}
	if err := l.wait(2 * patience); err != nil {
		t.Errorf("%v: %v", f, err)
	}
	said := l.stderr.String()
	for _, bad := range []string{"panic:", "fatal error:", "DATA RACE", "not supervised"} {
		if strings.Contains(said, bad) {
			t.Errorf("%v: %s", f, said)
		}
	}
}

// lines are what the process said.
func (l *life) lines() (out []string) {
	for _, c := range l.all {
		if c.line != "" {
			out = append(out, c.line)
		}
	}
	return out
}

func (l *life) said(line string) bool { return slices.Contains(l.lines(), line) }

// acted are the items that were deleted.
func (l *life) acted() (out []string) {
	for _, c := range l.all {
		if c.act != "" {
			out = append(out, c.act)
		}
	}
	return out
}

// logged counts what stands in a log: accepted acts and reads by tool and item, and
// approvals.
func (l *life) logged(t *testing.T, st gateway.Store) map[string]int {
	t.Helper()
	n := map[string]int{}
	eachRecord(t, st, func(rec *audit.Record, it *audit.Item) {
		switch {
		case rec.Kind == gateway.KindApproval:
			n["approval"]++
		case rec.Kind == audit.KindDecision && text(rec.Data, "status") == "accepted":
			args, _ := it.Value("arguments")
			n[text(rec.Data, "tool")+" "+string(args)]++
		}
	})
	return n
}

// survives says what is wrong with what the process left in a directory: power says that
// it is what a power cut left.
func (l *life) survives(t *testing.T, dir string, power bool) (err error) {
	t.Helper()
	st, err := openFaulty(dir, func() {})
	if err != nil {
		return fmt.Errorf("it does not open: %w", err)
	}
	defer st.Close()
	_, verifier, err := statedir.Key(filepath.Join(dir, "state"))
	if err != nil {
		return err
	}
	if rep, _ := verifyBy(t, st, verifier); rep == nil || rep.Problem != nil {
		return fmt.Errorf("it does not verify")
	}
	in := l.logged(t, st)
	for _, id := range l.acted() {
		if in[`delete_item {"id":"`+id+`"}`] == 0 {
			return fmt.Errorf("%s was deleted, and no decision on it is there: %v", id, in)
		}
	}
	if l.said("approved") && in["approval"] == 0 {
		return fmt.Errorf("an approval is lost: %v", in)
	}
	for _, read := range []string{`list_items {}`, `look {"text":"around"}`} {
		if (!power || l.said("folded")) && l.said(read+" passed") && in[read] == 0 {
			return fmt.Errorf("a read is lost: %v", in)
		}
	}
	if l.said("erased") {
		if err := st.Close(); err != nil {
			return err
		}
		files, _ := filepath.Glob(filepath.Join(dir, "state", "*"))
		for _, name := range files {
			if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, []byte(erasedText)) {
				return fmt.Errorf("%s holds what was erased", filepath.Base(name))
			}
		}
	}
	return nil
}

// goesOn has another gateway go on with what the process left.
func (l *life) goesOn(t *testing.T) {
	t.Helper()
	st, err := openFaulty(l.dir, func() {})
	if err != nil {
		t.Errorf("it does not open: %v", err)
		return
	}
	defer st.Close()
	ctx := testContext(t)
	r := newRig(t, st, policy(t, faultyPolicy), l.toy.config(t, true, true))
	defer r.stop()
	secret := ""
	for _, line := range l.lines() {
		if s, ok := strings.CutPrefix(line, "first session "); ok {
			secret = s
		}
	}
	if secret == "" {
		secret = r.mint()
	}
	again := l.acted()
	l.toy.mu.Lock()
	l.toy.deleting = func(_ context.Context, id string) { again = append(again, id) }
	l.toy.mu.Unlock()
	w := overHTTP(ctx, r, true, web{session: secret})
	w.call(ctx, "delete_item", `{"id":"item-4711"}`)
	w.call(ctx, "delete_item", `{"id":"item-4711"}`)
	if n := len(slices.DeleteFunc(slices.Clone(again), func(id string) bool { return id != "item-4711" })); n > 1 {
		t.Errorf("one yes let %d acts pass: %q", n, again)
	}
	passed(t, w.call(ctx, "list_items", `{}`))
	passed(t, w.call(ctx, "delete_item", `{"id":"item-19"}`))
}

// judged holds what a life with a fault in it left to all that is promised.
func (l *life) judged(t *testing.T, f *fault) {
	t.Helper()
	acted := l.acted()
	if n := len(acted); n != len(slices.Compact(slices.Sorted(slices.Values(acted)))) {
		t.Errorf("%v: an act ran twice: %q", f, acted)
	}
	for _, id := range []string{"item-17", "item-4711", "item-18"} {
		if l.said(`delete_item {"id":"`+id+`"} passed`) && !slices.Contains(acted, id) {
			t.Errorf("%v: %s is said to be deleted", f, id)
		}
	}
	if f != nil && l.struck >= 0 {
		if exit := l.exit(); (exit == -1) != (f.how == failKILL) || exit > 1 && exit != exitDisk {
			t.Errorf("%v: it ended with %d: %q\n%s", f, exit, l.lines(), &l.stderr)
		}
		// What a disk that could not sync holds, nobody knows: nothing rests on it.
		c := l.all[l.struck]
		if base := filepath.Base(c.path); f.how != failKILL && strings.HasSuffix(c.call, "sync") && strings.HasPrefix(base, "audit.") {
			for _, later := range l.all[l.struck+1:] {
				if later.act != "" {
					t.Errorf("%v: %s was deleted after it", f, later.act)
				}
			}
		}
	}
	// What the power leaves is judged in the place of what the process left, which is
	// judged behind it.
	real := l.dir + "-real"
	if err := os.Rename(l.dir, real); err != nil {
		t.Fatal(err)
	}
	disk := (&platter{map[string]*inode{}, map[string]*inode{}}).told(l.all)
	for _, r := range []*rand.Rand{nil, rand.New(rand.NewPCG(uint64(l.struck), 1))} {
		for _, dir := range []string{"state", "heads"} {
			if err := os.MkdirAll(filepath.Join(l.dir, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		disk.cut(t, l.dir, l.dir, r)
		if err := l.survives(t, l.dir, true); err != nil {
			t.Errorf("%v, and the power is cut (with all that may be lost: %v): %v\n%q", f, r == nil, err, l.lines())
		}
		if err := os.RemoveAll(l.dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(real, l.dir); err != nil {
		t.Fatal(err)
	}
	if err := l.survives(t, l.dir, false); err != nil {
		t.Errorf("%v: %v\n%q\n%s", f, err, l.lines(), &l.stderr)
	}
	l.goesOn(t)
}

// TestEachCallFails: each system call by which a gateway changes a file fails once, from the
// making of its key to the end: it says so or the process is killed there. No act was
// made whose decision is not on the disk, what was acknowledged is there after another
// opens it, also where the power went, and work goes on.
func TestEachCallFails(t *testing.T) {
	if err := superviseable(); err != nil {
		t.Skipf("no process can be supervised here: %v", err)
	}
	l := newLife(t)
	l.lives(t, nil)
	if !l.said("closed") || !slices.Equal(l.acted(), []string{"item-17", "item-4711", "item-18"}) || !l.said("erased") || !l.said("folded") || !l.said("approved") {
		t.Fatalf("without a fault: %q\n%s", l.lines(), &l.stderr)
	}
	l.judged(t, nil)
	seen := map[string]int{}
	for _, c := range l.all {
		if c.call != "" {
			seen[c.kind()]++
		}
	}
	faults := faultsOf(seen, os.Getenv("WRIT_LONG") == "1")
	t.Logf("%d calls of %d kinds, %d faults", len(l.all), len(seen), len(faults))
	missed := make(chan fault, len(faults))
	t.Run("each", func(t *testing.T) {
		for _, f := range faults {
			t.Run(f.String(), func(t *testing.T) {
				t.Parallel()
				l := newLife(t)
				l.lives(t, &f)
				if l.judged(t, &f); l.struck < 0 {
					missed <- f
				}
			})
		}
	})
	// Some calls are made where two threads meet, and not each time.
	if len(missed) > len(faults)/10 {
		t.Errorf("%d of %d calls were not made again", len(missed), len(faults))
	}
}

// faultsOf are those to try: each call in each way, or in a short run each kind of call in
// each way, and each other call in one.
func faultsOf(seen map[string]int, all bool) (out []fault) {
	hows := []string{failEIO, failENOSPC, failKILL}
	for _, kind := range slices.Sorted(maps.Keys(seen)) {
		for nth := range seen[kind] {
			for i, how := range hows {
				if all || nth == 0 || i == nth%len(hows) {
					out = append(out, fault{kind, nth + 1, how})
				}
			}
		}
	}
	return out
}

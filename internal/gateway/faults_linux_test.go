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
	"syscall"
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
  toy/mark_item: { effect: write, idempotent: true, args: { /id: { role: selector, collection: item, type: id, from: [output] } } }
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

func init() { jobs["recover"] = recoverMain }

// recoverMain opens a log that another process left, and closes it.
func recoverMain(arg string) int {
	dir, _, _ := strings.Cut(arg, "|")
	say := func(line string) { fmt.Fprintln(os.Stdout, line) }
	say("phase open")
	st, err := openFaulty(dir, func() {})
	if err != nil {
		return 1
	}
	say("phase close")
	err = st.Close()
	select {
	case <-st.Broken():
		return exitDisk
	default:
	}
	if err != nil {
		return 1
	}
	say("closed")
	return 0
}

// life is one run of a job, and what was before it.
type life struct {
	*supervised
	dir  string
	toy  *toy
	past []told   // what others did in the same place
	disk *platter // as they left it
}

func newLife(t *testing.T) *life {
	t.Helper()
	l := &life{dir: unsynced(t), toy: newToy()}
	l.toy.items = append(l.toy.items, "item-19")
	l.rooms(t)
	l.disk = platterOf(t, l.dir)
	return l
}

// rooms makes the directories that are there before anything is.
func (l *life) rooms(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"state", "heads"} {
		if err := os.MkdirAll(filepath.Join(l.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// goneOn is a life in a place of its own that goes on with what another left.
func (l *life) goneOn(t *testing.T, left map[string][]byte) *life {
	t.Helper()
	next := newLife(t)
	for name, b := range left {
		if err := os.WriteFile(filepath.Join(next.dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	next.past, next.disk = l.history(), platterOf(t, next.dir)
	return next
}

// left is what is in the place of a life; then that is gone.
func (l *life) left(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for name, i := range platterOf(t, l.dir).names {
		files[strings.TrimPrefix(name, l.dir)] = i.changes[0].data
	}
	if err := os.RemoveAll(l.dir); err != nil {
		t.Fatal(err)
	}
	return files
}

// history is what was said and acted, and told to the disk, since the beginning.
func (l *life) history() []told { return slices.Concat(l.past, l.all) }

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

// lives runs a job, over what there is.
func (l *life) lives(t *testing.T, job string, f *fault) {
	t.Helper()
	var err error
	c := l.toy.config(t, true, true)
	l.toy.deleting = func(_ context.Context, id string) { l.acts(id) }
	if l.supervised, err = supervise(l.dir, f, job, l.dir+"|"+c.URL); err != nil {
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
	for _, c := range l.history() {
		if c.line != "" {
			out = append(out, c.line)
		}
	}
	return out
}

func (l *life) said(line string) bool { return slices.Contains(l.lines(), line) }

// acted are the items that were deleted.
func (l *life) acted() (out []string) {
	for _, c := range l.history() {
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
			args, _ := gateway.Exact(rec, it)
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
		call := `delete_item {"id":"` + id + `"}`
		if in[call]--; in[call] < 0 {
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
	opened := slices.DeleteFunc(l.lines(), func(line string) bool { return !strings.HasPrefix(line, "second session ") })
	erased := slices.DeleteFunc(l.lines(), func(line string) bool { return line != "erased" })
	if len(erased) > 0 && len(erased) == len(opened) {
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
	l.disk.told(l.all)
	for _, r := range []*rand.Rand{nil, rand.New(rand.NewPCG(uint64(l.struck), 1))} {
		l.rooms(t)
		l.disk.cut(t, l.dir, l.dir, r)
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

// whole is a life without a fault, and how often each kind of call was made in it.
func whole(t *testing.T) (*life, map[string]int) {
	t.Helper()
	if err := superviseable(); err != nil {
		t.Skipf("no process can be supervised here: %v", err)
	}
	l := newLife(t)
	l.lives(t, "load", nil)
	if !l.said("closed") || !slices.Equal(l.acted(), []string{"item-17", "item-4711", "item-18"}) || !l.said("erased") || !l.said("folded") || !l.said("approved") {
		t.Fatalf("without a fault: %q\n%s", l.lines(), &l.stderr)
	}
	return l, maps.Clone(l.seen)
}

// TestEachCallFails (L05, L06): each system call by which a gateway changes a file fails once, from the
// making of its key to the end: it says so or the process is killed there. No act was
// made whose decision is not on the disk, what was acknowledged is there after another
// opens it, also where the power went, and work goes on.
func TestEachCallFails(t *testing.T) {
	l, seen := whole(t)
	l.judged(t, nil)
	each(t, "load", faultsOf(seen, long()), newLife)
}

// long says that this is a run of make test-long.
func long() bool { return os.Getenv("WRIT_LONG") == "1" }

// each judges a life with each of the faults.
func each(t *testing.T, job string, faults []fault, begins func(*testing.T) *life) {
	missed := make(chan fault, len(faults))
	t.Run("each", func(t *testing.T) {
		for _, f := range faults {
			t.Run(f.String(), func(t *testing.T) {
				t.Parallel()
				l := begins(t)
				l.lives(t, job, &f)
				if l.judged(t, &f); l.struck < 0 {
					missed <- f
				}
			})
		}
	})
	// Some calls are made where two threads meet, and not each time.
	if t.Logf("%d faults, %d were not met", len(faults), len(missed)); len(missed) > len(faults)/10 {
		t.Errorf("%d of %d calls were not made again", len(missed), len(faults))
	}
}

// TestKilledInRecovery (L05): who opens what a killed process left is killed as well, at each of
// the calls by which he puts it in order, and loses nothing of it.
func TestKilledInRecovery(t *testing.T) {
	_, seen := whole(t)
	for _, phase := range []string{"act", "approval", "fold", "second session", "erasure"} {
		t.Run(phase, func(t *testing.T) {
			var of []fault
			for _, f := range faultsOf(seen, true) {
				if strings.HasPrefix(f.kind, phase+" ") && f.how == failKILL {
					of = append(of, f)
				}
			}
			dead := newLife(t)
			f := of[len(of)/2]
			if dead.lives(t, "load", &f); dead.struck < 0 {
				t.Fatalf("%v was not met", f)
			}
			left := dead.left(t)
			heir := dead.goneOn(t, left)
			if heir.lives(t, "recover", nil); !heir.said("closed") {
				t.Fatalf("%v: what it left does not open: %s", f, &heir.stderr)
			}
			var faults []fault
			for i, f := range faultsOf(heir.seen, true) {
				if long() || f.how == failKILL && i/3%4 == 0 {
					faults = append(faults, f)
				}
			}
			each(t, "recover", faults, func(t *testing.T) *life { return dead.goneOn(t, left) })
		})
	}
}

// TestOpenedAfterFailedSync (N25): a disk could not sync, once, and nobody knows what it has. The
// process ended, another opened the log, which finds all of it in memory, and went on: what it
// did then is on the disk whatever was lost before, when the power goes.
func TestOpenedAfterFailedSync(t *testing.T) {
	_, seen := whole(t)
	for _, f := range faultsOf(seen, true) {
		if !strings.Contains(f.kind, "sync ") || f.how != failEIO || f.nth > 1 && !long() {
			continue
		}
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.lives(t, "load", &f)
			struck := l.struck
			next := &life{dir: l.dir, toy: newToy(), past: l.history(), disk: l.disk.told(l.all)}
			next.lives(t, "load", nil)
			if !next.said("closed") || struck < 0 {
				t.Fatalf("%q", next.lines())
			}
			end := slices.IndexFunc(next.all, func(c told) bool { return c.phase == "close" })
			next.all = next.all[:end]
			next.struck = -1
			next.disk.told(next.all)
			if err := os.RemoveAll(l.dir); err != nil {
				t.Fatal(err)
			}
			next.rooms(t)
			next.disk.cut(t, l.dir, l.dir, nil)
			if err := next.survives(t, l.dir, true); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFaultsAreFound is the control: what a store would have told the disk that does not
// sync its journal, or takes a second sync for one that failed, is found to have lost an
// act.
func TestFaultsAreFound(t *testing.T) {
	l, _ := whole(t)
	at := slices.IndexFunc(l.all, func(c told) bool { return c.act != "" })
	syncs := func(c told) bool { return c.call == "fdatasync" && filepath.Base(c.path) == sqlite.JournalName }
	retried := slices.Clone(l.all[:at+1])
	for i := len(retried) - 1; i >= 0; i-- {
		if c := retried[i]; syncs(c) { // the last one before the act
			retried[i].fails = syscall.EIO
			retried = slices.Insert(retried, i+1, c)
			break
		}
	}
	if err := os.RemoveAll(l.dir); err != nil {
		t.Fatal(err)
	}
	for name, all := range map[string][]told{
		"no sync":       slices.DeleteFunc(slices.Clone(l.all[:at+1]), syncs),
		"a second sync": retried,
		"":              l.all[:at+1],
	} {
		l := &life{supervised: &supervised{all: all}, dir: l.dir}
		l.rooms(t)
		(&platter{map[string]*inode{}, map[string]*inode{}}).told(all).cut(t, l.dir, l.dir, nil)
		if err := l.survives(t, l.dir, true); (err == nil) != (name == "") {
			t.Errorf("%q: %v", name, err)
		}
		if err := os.RemoveAll(l.dir); err != nil {
			t.Fatal(err)
		}
	}
}

// faultsOf are those to try: each call in each way. A short run tries the first call of
// each kind in two ways, and half of the others in one.
func faultsOf(seen map[string]int, all bool) (out []fault) {
	hows := []string{failEIO, failENOSPC, failKILL}
	for k, kind := range slices.Sorted(maps.Keys(seen)) {
		for nth := range seen[kind] {
			for i, how := range hows {
				if all || nth == 0 && i != k%2 || nth%2 == 0 && i == nth/2%3 {
					out = append(out, fault{kind, nth + 1, how})
				}
			}
		}
	}
	return out
}

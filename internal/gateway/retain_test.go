package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
)

const day = 24 * time.Hour

// used is a session in which something was read and deleted.
func used(t *testing.T, ctx context.Context, r *rig) (id string) {
	t.Helper()
	secret, id, err := createSession(ctx, r.gw, downstream.Loopback)
	if err != nil {
		t.Fatal(err)
	}
	w := overHTTP(ctx, r, true, web{session: secret})
	passed(t, w.call(ctx, "list_items", `{}`))
	passed(t, w.call(ctx, "delete_item", `{"id":"item-17"}`))
	return id
}

func retainer(t *testing.T, st gateway.Store, r *rig, rule gateway.Retention) *gateway.Retainer {
	t.Helper()
	re, err := gateway.NewRetainer(st, nil, storetest.PublicKey(), rule, r.opts.Log)
	if err != nil {
		t.Fatal(err)
	}
	return re
}

// isRedacted says whether the values of a session are gone.
func isRedacted(t *testing.T, st gateway.Store, id string, now time.Time) bool {
	t.Helper()
	e, err := gateway.EndedSession(t.Context(), st, id, now)
	if err != nil && !errors.Is(err, gateway.ErrOpen) {
		t.Fatal(err)
	}
	_, err = st.Value(t.Context(), id, 1, "key")
	if gone := errors.Is(err, audit.ErrNotFound); gone != e.Redacted || e.Left {
		t.Errorf("%s: on record %+v, gone %v", id, e, gone)
	}
	return e.Redacted
}

// archives are the files of a directory, each of which verifies with the key alone, and
// what decisions of it are made again.
func archives(t *testing.T, dir string) (parts map[string]*audit.Part, replayed int) {
	t.Helper()
	_, verifier := storetest.Key()
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	parts = map[string]*audit.Part{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fi, _ := os.Stat(file)
		if fi.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v", file, fi.Mode())
		}
		p, err := audit.ReadPart(b)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		rules, all := gateway.NewRulesets(p), map[string]*gateway.Replayer{}
		rep, err := audit.VerifyPart(t.Context(), p, audit.VerifyOptions{Verifier: verifier, Replay: func(rec *audit.Record, it *audit.Item) error {
			if all[rec.Session] == nil {
				all[rec.Session] = rules.Replayer()
			}
			return all[rec.Session].Step(t.Context(), rec, it)
		}})
		if err != nil || rep.Problem != nil || rep.Erased > 0 {
			t.Errorf("%s: %v %+v", file, err, rep)
		}
		for _, s := range all {
			replayed += s.Replayed
		}
		parts[filepath.Base(file)] = p
	}
	return parts, replayed
}

// TestRetention: what ended long enough ago is archived and then redacted, what is younger
// or open stays, and a second run does nothing.
func TestRetention(t *testing.T) {
	ctx := testContext(t)
	st := onSQLite(t)
	r, _ := toyRig(t, st)
	dir := filepath.Join(t.TempDir(), "archive")
	re := retainer(t, st, r, gateway.Retention{Days: 30, Archive: dir, SegmentDays: 1, SegmentBytes: 1 << 20})
	a, b, open := used(t, ctx, r), used(t, ctx, r), used(t, ctx, r)
	now := time.Now()
	for _, id := range []string{a, b} {
		if err := gateway.EndSession(ctx, st, id, now); err != nil {
			t.Fatal(err)
		}
	}
	for at, want := range map[time.Duration]bool{0: false, 30*day - time.Minute: false} {
		if re.Apply(ctx, now.Add(at)); isRedacted(t, st, a, now) != want || re.Status().Fault != "" || re.Status().Due != 0 {
			t.Errorf("after %v: %+v", at, re.Status())
		}
	}
	// They are due, and wait for others of the same day.
	re.Apply(ctx, now.Add(30*day+time.Minute))
	if s := re.Status(); s.Due != 3 || s.Redacted != 0 || !s.Next.After(now.Add(31*day-time.Minute)) || len(s.Held) != 0 {
		t.Fatalf("%+v", s)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory is there before it is needed")
	}
	// One is used again meanwhile: that is for its client.
	if err := st.TouchSession(ctx, open, now.Add(31*day)); err != nil {
		t.Fatal(err)
	}
	later := now.Add(31*day + time.Minute)
	for range 2 {
		re.Apply(ctx, later)
		if s := re.Status(); s.Fault != "" || s.Redacted != 2 || s.Archives != 1 || s.HeldIn != 1 || s.Held[0].Session != open || !strings.Contains(s.Held[0].Why, "open") {
			t.Fatalf("%+v", s)
		}
	}
	if !isRedacted(t, st, a, later) || !isRedacted(t, st, b, later) || isRedacted(t, st, open, later) {
		t.Error("others are redacted")
	}
	parts, replayed := archives(t, dir)
	if len(parts) != 1 || replayed != 4 {
		t.Fatalf("%d archives, %d decisions made again", len(parts), replayed)
	}
	// The next goes on from it.
	if err := gateway.EndSession(ctx, st, open, later); err != nil {
		t.Fatal(err)
	}
	re.Apply(ctx, later.Add(31*day))
	parts, replayed = archives(t, dir)
	if len(parts) != 2 || replayed != 6 {
		t.Fatalf("%d archives, %d decisions made again: %+v", len(parts), replayed, re.Status())
	}
	_, verifier := storetest.Key()
	links := 0
	for _, p := range parts {
		_, older, err := p.Checkpoints(verifier)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range older {
			for _, q := range parts {
				if first, _, _ := q.Checkpoints(verifier); first == c {
					links++
				}
			}
		}
	}
	if links != 1 {
		t.Errorf("%d archives go on from another", links)
	}
}

// TestRetentionWithoutArchive: where there is none, it is redacted, also what was cut off.
func TestRetentionWithoutArchive(t *testing.T) {
	ctx := testContext(t)
	st := onSQLite(t)
	r, _ := toyRig(t, st)
	id, now := used(t, ctx, r), time.Now()
	killed := retainer(t, unerasing{st}, r, gateway.Retention{Days: 2})
	if killed.Apply(ctx, now.Add(4*day)); killed.Status().Fault == "" || killed.Status().Redacted != 0 {
		t.Fatalf("%+v", killed.Status())
	}
	re := retainer(t, st, r, gateway.Retention{Days: 2})
	re.Apply(ctx, now.Add(4*day+time.Minute))
	if s := re.Status(); s.Fault != "" || s.Redacted != 1 || !isRedacted(t, st, id, now) {
		t.Fatalf("%+v", s)
	}
}

// failing is a store that fails in one of its methods.
type failing struct {
	gateway.Store
	append, checkpoint error
}

func (f failing) Append(ctx context.Context, s string, n uint64, es []audit.Entry) (int64, error) {
	if f.append != nil {
		return 0, f.append
	}
	return f.Store.Append(ctx, s, n, es)
}

func (f failing) Checkpoint(ctx context.Context) ([]byte, error) {
	if f.checkpoint != nil {
		return nil, f.checkpoint
	}
	return f.Store.Checkpoint(ctx)
}

// TestRetentionFails: whatever fails, and whoever puts what he likes where the archives
// are, nothing is taken out of the log that no archive holds; it is said, and the next
// run that can goes on.
func TestRetentionFails(t *testing.T) {
	rule := func(t *testing.T) gateway.Retention {
		return gateway.Retention{Days: 2, Archive: filepath.Join(t.TempDir(), "archive"), SegmentBytes: 1 << 20}
	}
	for name, c := range map[string]struct {
		store  func(gateway.Store) gateway.Store
		before func(t *testing.T, dir string)
		mend   func(dir string)
	}{
		"no checkpoint":     {store: func(st gateway.Store) gateway.Store { return failing{Store: st, checkpoint: errors.New("no")} }},
		"nothing on record": {store: func(st gateway.Store) gateway.Store { return failing{Store: st, append: errors.New("no")} }},
		"killed":            {store: func(st gateway.Store) gateway.Store { return unerasing{st} }},
		"a file in its place": {
			before: func(t *testing.T, dir string) {
				if err := os.WriteFile(dir, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			},
			mend: func(dir string) { os.Remove(dir) }},
		"a directory that others read": {
			before: func(t *testing.T, dir string) {
				if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o755)); err != nil {
					t.Fatal(err)
				}
			},
			mend: func(dir string) { os.Chmod(dir, 0o700) }},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			st := onSQLite(t)
			r, _ := toyRig(t, st)
			id, now, rule := used(t, ctx, r), time.Now(), rule(t)
			broken := gateway.Store(st)
			if c.store != nil {
				broken = c.store(st)
			}
			if c.before != nil {
				c.before(t, rule.Archive)
			}
			re := retainer(t, broken, r, rule)
			re.Apply(ctx, now.Add(4*day))
			if s := re.Status(); s.Fault == "" || s.Redacted != 0 {
				t.Fatalf("%+v", s)
			}
			if _, err := st.Value(ctx, id, 1, "key"); err != nil {
				t.Fatalf("the values are gone: %v", err)
			}
			if c.mend != nil {
				c.mend(rule.Archive)
			}
			if c.store != nil {
				re = retainer(t, st, r, rule)
			}
			re.Apply(ctx, now.Add(4*day+time.Hour)) // what it closed is due as before
			if s := re.Status(); s.Fault != "" || s.Redacted != 1 || !isRedacted(t, st, id, now) {
				t.Fatalf("%+v", s)
			}
			if parts, replayed := archives(t, rule.Archive); len(parts) != 1 || replayed != 2 {
				t.Errorf("%d archives, %d decisions", len(parts), replayed)
			}
		})
	}
}

// TestRetentionNeverOverwrites: a file that has an archive's name and is none, or is one of
// others, stays as it is, and counts for nothing.
func TestRetentionNeverOverwrites(t *testing.T) {
	ctx := testContext(t)
	st := onSQLite(t)
	r, _ := toyRig(t, st)
	id, now := used(t, ctx, r), time.Now()
	first, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	rule := gateway.Retention{Days: 2, Archive: first}
	killed := retainer(t, failing{Store: st, append: errors.New("killed")}, r, rule)
	killed.Apply(ctx, now.Add(4*day)) // the archive is written, and nothing else
	files, _ := os.ReadDir(first)
	if len(files) != 1 || killed.Status().Archives != 1 {
		t.Fatalf("%v %+v", files, killed.Status())
	}
	name := files[0].Name()
	good, err := os.ReadFile(filepath.Join(first, name))
	if err != nil {
		t.Fatal(err)
	}
	for i, planted := range [][]byte{nil, []byte("an archive\n"), good[:len(good)-1], bytes.Replace(good, []byte("item-17"), []byte("item-18"), 1)} {
		if i == 3 {
			planted[len(planted)/2] ^= 1
		}
		dir := t.TempDir()
		if err := errors.Join(os.Chmod(dir, 0o700), os.WriteFile(filepath.Join(dir, name), planted, 0o600)); err != nil {
			t.Fatal(err)
		}
		stopped := retainer(t, failing{Store: st, append: errors.New("killed")}, r, gateway.Retention{Days: 2, Archive: dir})
		stopped.Apply(ctx, now.Add(4*day))
		there, _ := os.ReadFile(filepath.Join(dir, name))
		other, err := os.ReadFile(filepath.Join(dir, strings.TrimSuffix(name, ".writ")+"-2.writ"))
		if !bytes.Equal(there, planted) || err != nil {
			t.Fatalf("planted %d: changed, or no other beside it: %v", i, err)
		}
		if p, err := audit.ReadPart(other); err != nil || p.Key != storetest.PublicKey() {
			t.Fatalf("planted %d: %v", i, err)
		}
	}
	// The one that a run left which was stopped is used.
	re := retainer(t, st, r, rule)
	re.Apply(ctx, now.Add(4*day))
	if files, _ := os.ReadDir(first); len(files) != 1 || re.Status().Redacted != 1 || !isRedacted(t, st, id, now) {
		t.Errorf("%v %+v", files, re.Status())
	}
}

// TestRetentionInSegments: a segment ends where it is large enough, and no session is cut.
func TestRetentionInSegments(t *testing.T) {
	ctx := testContext(t)
	st := onSQLite(t)
	r, _ := toyRig(t, st)
	for range 5 {
		used(t, ctx, r)
	}
	rule := gateway.Retention{Days: 1, Archive: filepath.Join(t.TempDir(), "deep", "archive"), SegmentBytes: 1}
	re := retainer(t, st, r, rule)
	re.Apply(ctx, time.Now().Add(3*day))
	parts, replayed := archives(t, rule.Archive)
	if s := re.Status(); s.Archives != 5 || s.Redacted != 5 || len(parts) != 5 || replayed != 10 || s.Fault != "" {
		t.Errorf("%+v, %d archives, %d decisions made again", s, len(parts), replayed)
	}
	var linked int
	_, verifier := storetest.Key()
	for _, p := range parts {
		if _, older, err := p.Checkpoints(verifier); err == nil {
			linked += len(older)
		}
	}
	if linked != 4 {
		t.Errorf("%d go on from the one before", linked)
	}
}

// TestRetentionHoldsEvidence: a session that was altered, or whose decisions do not come out
// again, stays, and keeps no other from its time.
func TestRetentionHoldsEvidence(t *testing.T) {
	ctx := testContext(t)
	signer, _ := storetest.Key()
	st := mapstore.New(signer) // it does not verify at the end
	r, _ := toyRig(t, st)
	id, now := used(t, ctx, r), time.Now()
	// One with the log's key wrote a decision that the gate would not have made.
	forged := "s_forged"
	open := fmt.Sprintf(`{"principal":%q,"carrier":"http"}`, downstream.Loopback)
	var es []audit.Entry
	for n, rec := range []audit.Record{
		{Kind: audit.KindOpen, Data: []byte(open)},
		{Kind: gateway.KindSettle, Data: []byte(`{"by":"nobody","decision":1,"happened":true}`)},
	} {
		rec.Session, rec.N, rec.Time = forged, uint64(n)+1, now.UTC()
		e, err := audit.Seal(rec, audit.Value{Name: "key", Bytes: make([]byte, 32)})
		if err != nil {
			t.Fatal(err)
		}
		es = append(es, e)
	}
	if _, err := st.Append(ctx, forged, 0, es); err != nil {
		t.Fatal(err)
	}
	rule := gateway.Retention{Days: 2, Archive: filepath.Join(t.TempDir(), "archive"), SegmentBytes: 1 << 20}
	re := retainer(t, st, r, rule)
	for range 2 {
		re.Apply(ctx, now.Add(4*day))
		s := re.Status()
		if s.Fault != "" || s.Redacted != 1 || s.HeldIn != 1 || s.Held[0].Session != forged || !strings.Contains(s.Held[0].Why, "does not verify") {
			t.Fatalf("%+v", s)
		}
	}
	if !isRedacted(t, st, id, now) {
		t.Error("the other is kept as well")
	}
	if _, err := st.Value(ctx, forged, 1, "key"); err != nil {
		t.Errorf("what is evidence is gone: %v", err)
	}
	if parts, _ := archives(t, rule.Archive); len(parts) != 1 {
		t.Errorf("%d archives", len(parts))
	}
}

// TestRetentionOfAltered: a session that was altered on disk, in its middle or in what it rests
// on, stays with all that it has, with an archive or without; the others are taken out of the log.
func TestRetentionOfAltered(t *testing.T) {
	for name, c := range map[string]struct {
		query   string // $ID is the session
		archive bool
		held    int // of the two
	}{
		"a result, archived":            {"UPDATE vals SET bytes = CAST(replace(CAST(bytes AS TEXT), 'item-18', 'item-99') AS BLOB) WHERE name = 'result' AND idx IN (SELECT idx FROM leaves WHERE session = '$ID')", true, 1},
		"a result":                      {"UPDATE vals SET bytes = CAST(replace(CAST(bytes AS TEXT), 'item-18', 'item-99') AS BLOB) WHERE name = 'result' AND idx IN (SELECT idx FROM leaves WHERE session = '$ID')", false, 1},
		"a record, archived":            {"UPDATE leaves SET leaf = CAST(replace(CAST(leaf AS TEXT), '\"status\":\"accepted\"', '\"status\":\"rejected\"') AS BLOB) WHERE session = '$ID'", true, 1},
		"a record":                      {"UPDATE leaves SET leaf = CAST(replace(CAST(leaf AS TEXT), '\"status\":\"accepted\"', '\"status\":\"rejected\"') AS BLOB) WHERE session = '$ID'", false, 1},
		"a value is gone, archived":     {"DELETE FROM vals WHERE name = 'result' AND idx IN (SELECT idx FROM leaves WHERE session = '$ID')", true, 1},
		"a value is gone":               {"DELETE FROM vals WHERE name = 'result' AND idx IN (SELECT idx FROM leaves WHERE session = '$ID')", false, 1},
		"the policy, archived":          {"UPDATE blobs SET bytes = CAST(replace(CAST(bytes AS TEXT), 'closed: true', 'closed: false') AS BLOB)", true, 2},
		"the policy":                    {"UPDATE blobs SET bytes = CAST(replace(CAST(bytes AS TEXT), 'closed: true', 'closed: false') AS BLOB)", false, 2},
		"what it rests on is gone":      {"DELETE FROM blobs", false, 2},
		"what it rests on is, archived": {"DELETE FROM blobs", true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, dir := testContext(t), t.TempDir()
			signer, verifier := storetest.Key()
			open := func() *sqlite.Store {
				st, err := sqlite.Open(dir, sqlite.Options{Signer: signer, Verifier: verifier})
				if err != nil {
					t.Fatal(err)
				}
				return st
			}
			st := open()
			r, _ := toyRig(t, st)
			id, other, now := used(t, ctx, r), used(t, ctx, r), time.Now()
			r.stop()
			if err := errors.Join(gateway.EndSession(ctx, st, id, now), gateway.EndSession(ctx, st, other, now), st.Close()); err != nil {
				t.Fatal(err)
			}
			editSQL(t, dir, strings.ReplaceAll(c.query, "$ID", id))
			st = open()
			defer st.Close()
			rule := gateway.Retention{Days: 2, SegmentBytes: 1 << 20}
			if c.archive {
				rule.Archive = filepath.Join(t.TempDir(), "archive")
			}
			re := retainer(t, st, r, rule)
			for range 2 {
				re.Apply(ctx, now.Add(4*day))
				s := re.Status()
				if s.Fault != "" || s.Redacted != 2-c.held || s.HeldIn != c.held {
					t.Fatalf("%+v", s)
				}
			}
			if c.archive {
				if parts, _ := archives(t, rule.Archive); len(parts) != 2-c.held {
					t.Errorf("%d archives", len(parts))
				}
			}
			if _, err := st.Value(ctx, id, 1, "key"); err != nil {
				t.Errorf("what is evidence is gone: %v", err)
			}
			if c.held > 1 {
				return // nothing of the session itself was altered
			}
			if !isRedacted(t, st, other, now) {
				t.Error("the other is kept as well")
			}
			// A person cannot take it away either.
			if _, err := gateway.Redact(ctx, st, nil, id, "test", now.Add(4*day)); !errors.Is(err, gateway.ErrAlteredSession) {
				t.Errorf("by hand: %v", err)
			}
			if _, err := st.Value(ctx, id, 1, "key"); err != nil {
				t.Errorf("what is evidence is gone: %v", err)
			}
		})
	}
}

// goingOn is a store in which something is recorded in a session once it was read.
type goingOn struct {
	gateway.Store
	onto func()
}

func (g *goingOn) Snapshot(ctx context.Context) (audit.Snapshot, error) {
	if g.onto != nil {
		g.onto()
		g.onto = nil
	}
	return g.Store.Snapshot(ctx)
}

// TestRetentionOfWhatWentOn: what was recorded after the archive was made of a session is not
// taken out of the log before an archive has it too.
func TestRetentionOfWhatWentOn(t *testing.T) {
	for _, archived := range []bool{true, false} {
		ctx := testContext(t)
		st := onSQLite(t)
		r, _ := toyRig(t, st)
		id, now := used(t, ctx, r), time.Now()
		rule := gateway.Retention{Days: 2, SegmentBytes: 1 << 20}
		if archived {
			rule.Archive = filepath.Join(t.TempDir(), "archive")
		}
		n, err := st.Head(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		racing := &goingOn{Store: st, onto: func() {
			e := storetest.Seal(t, audit.Record{Kind: gateway.KindLapse, Session: id, N: n + 1, Time: now.UTC().Truncate(time.Microsecond), Data: []byte(`{}`)})
			if _, err := st.Append(ctx, id, n, []audit.Entry{e}); err != nil {
				t.Fatal(err)
			}
		}}
		re := retainer(t, racing, r, rule)
		re.Apply(ctx, now.Add(4*day))
		if s := re.Status(); s.Redacted != 0 || s.Fault != "" || isRedacted(t, st, id, now) {
			t.Fatalf("archived %v: it is gone: %+v", archived, s)
		}
		if head, _ := st.Head(ctx, id); head != n+1 {
			t.Errorf("archived %v: something stands behind what came: %d", archived, head)
		}
		re.Apply(ctx, now.Add(4*day+time.Hour))
		if s := re.Status(); s.Redacted != 1 || s.Fault != "" || !isRedacted(t, st, id, now) {
			t.Fatalf("archived %v: %+v", archived, s)
		}
		if !archived {
			continue
		}
		held := uint64(0)
		parts, _ := archives(t, rule.Archive)
		for _, p := range parts {
			for it := range p.Read(ctx, id, 1) {
				held = max(held, it.N)
			}
		}
		if held != n+1 {
			t.Errorf("the archives hold %d of %d", held, n+1)
		}
	}
}

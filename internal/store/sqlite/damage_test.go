package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest"
)

// filled returns a directory with a closed store of three sessions with 100
// records each. It is made once and copied.
func filled(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	os.Chmod(dir, 0o700)
	b, err := filledFile()
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), b, 0o600); err != nil {
		tb.Fatal(err)
	}
	return dir
}

var filledFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "writ-filled-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	fill(panicking{}, dir)
	return os.ReadFile(filepath.Join(dir, FileName))
})

func fill(tb testing.TB, dir string) {
	s := openWith(tb, dir, storetest.Every)
	for n := uint64(0); n < 100; n += 10 {
		for c := range 3 {
			id := fmt.Sprintf("s_%d", c)
			storetest.Append(tb, s, id, n, storetest.Entries(tb, id, n+1, 10)...)
		}
	}
	if _, err := s.PutBlob(context.Background(), []byte("a policy")); err != nil {
		tb.Fatal(err)
	}
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
}

// raw opens the file as somebody with any SQLite shell would.
func raw(tb testing.TB, dir string) *sql.DB {
	db := sql.OpenDB(&dsn{filepath.Join(dir, FileName)})
	tb.Cleanup(func() { db.Close() })
	return db
}

func execSQL(tb testing.TB, db *sql.DB, query string, args ...any) {
	tb.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		tb.Fatal(err)
	}
}

// TestFlippedBytes is L01 in the file: in records of each session and each
// column one byte is changed behind the store's back, and Verify names that
// record. The long form does so in every record.
func TestFlippedBytes(t *testing.T) {
	dir := filled(t)
	db := raw(t, dir)
	s := openWith(t, dir, storetest.Every)
	defer s.Close()
	r := rand.New(rand.NewPCG(1, 2))
	columns := []struct{ table, column string }{
		{"leaves", "leaf"}, {"leaves", "hashes"}, {"vals", "salt"}, {"vals", "bytes"},
	}
	tried := 0
	step := int64(size(7, 1)) // 7 meets every column and session
	for idx := int64(0); idx < 300; idx += step {
		c := columns[idx%4]
		var b []byte
		err := db.QueryRow("SELECT "+c.column+" FROM "+c.table+" WHERE idx = ?", idx).Scan(&b)
		if errors.Is(err, sql.ErrNoRows) { // an open has no value
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		old := append([]byte{}, b...)
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		set := "UPDATE " + c.table + " SET " + c.column + " = ? WHERE idx = ?"
		execSQL(t, db, set, b, idx)
		if p := storetest.Check(t, s).Problem; p == nil || p.Index != idx || p.Session == "" && c.column != "leaf" {
			t.Errorf("L01: %s of record %d: found %v", c.column, idx, p)
		}
		execSQL(t, db, set, old, idx)
		tried++
	}
	if int64(tried) < 290/step {
		t.Errorf("only %d tried", tried)
	}
	storetest.Verify(t, s)
}

// TestDamagedRows is L01, L02 and L09 by SQL: whole rows changed, moved and
// taken away under an open store.
func TestDamagedRows(t *testing.T) {
	for name, c := range map[string]struct {
		sql   string
		fault audit.Fault
		index int64
	}{
		"L01 delete":             {"DELETE FROM leaves WHERE idx = 150", audit.LogGap, 150},
		"L01 reorder":            {"UPDATE leaves SET idx = 1000 WHERE idx = 150; UPDATE leaves SET idx = 150 WHERE idx = 151; UPDATE leaves SET idx = 151 WHERE idx = 1000", audit.LeafHash, 150},
		"L01 other session":      {"UPDATE leaves SET session = 's_9' WHERE idx = 150", audit.LeafIndex, 150},
		"L01 other number":       {"UPDATE leaves SET n = 1000 WHERE idx = 150", audit.LeafIndex, 150},
		"L01 negative number":    {"UPDATE leaves SET n = -1 WHERE idx = 150", audit.LeafIndex, 150},
		"L01 value renamed":      {"UPDATE vals SET name = 'x' WHERE idx = 151", audit.ValueUnknown, 151},
		"L01 value moved":        {"UPDATE vals SET idx = 150 WHERE idx = 151", audit.ValueUnknown, 150},
		"L01 blob":               {"UPDATE blobs SET bytes = x'00'", audit.BlobMismatch, 300},
		"L01 checkpoint":         {"UPDATE checkpoints SET note = (SELECT note FROM checkpoints LIMIT 1) WHERE size > 150", audit.CheckpointOrder, -1},
		"L02 last record":        {"DELETE FROM leaves WHERE idx = 299", audit.LogTruncated, 299},
		"L02 last 100":           {"DELETE FROM leaves WHERE idx >= 200", audit.LogTruncated, 200},
		"L02 everything":         {"DELETE FROM leaves", audit.LogTruncated, 0},
		"L02 head":               {"UPDATE head SET size = 200", audit.LogHead, 200},
		"L09 a leaf of 20 MB":    {"UPDATE leaves SET leaf = zeroblob(20000000) WHERE idx = 150", audit.LeafMalformed, 150},
		"L09 a value of 70 MB":   {"UPDATE vals SET bytes = zeroblob(70000000) WHERE idx = 151", audit.ValueMismatch, 151},
		"L09 a checkpoint of MB": {"UPDATE checkpoints SET note = zeroblob(5000000) WHERE size = (SELECT min(size) FROM checkpoints)", audit.CheckpointInvalid, 0},
		"hashes of odd length":   {"UPDATE leaves SET hashes = x'00' WHERE idx = 150", audit.LogUnreadable, 150},
		"salt of odd length":     {"UPDATE vals SET salt = x'00' WHERE idx = 151", audit.LogUnreadable, -1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			s := openWith(t, dir, 1<<40)
			defer s.Close()
			execSQL(t, raw(t, dir), "PRAGMA foreign_keys = 0")
			execSQL(t, raw(t, dir), c.sql)
			p := storetest.Check(t, s).Problem
			if p == nil || p.Fault != c.fault || c.index >= 0 && p.Index != c.index {
				t.Errorf("found %v, want %s at %d", p, c.fault, c.index)
			}
		})
	}
}

// TestOpenRefuses: what cannot be trusted is refused with a reason, a hint and
// no change to the file.
func TestOpenRefuses(t *testing.T) {
	path := func(dir string) string { return filepath.Join(dir, FileName) }
	write := func(b string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(path(dir), []byte(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	sqlOn := func(q string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { execSQL(t, raw(t, dir), q) }
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string)
		reason Reason
		fresh  bool // start from an empty directory
	}{
		"text":                 {write("not a database, but quite a bit longer than the header of one would be, so that it is read as such\n"), NotDatabase, true},
		"short text":           {write("x"), NotDatabase, true},
		"zero bytes":           {write(""), Damaged, true},
		"only zeros":           {write(strings.Repeat("\x00", 8192)), NotDatabase, true},
		"another program's":    {sqlOn("CREATE TABLE t (x)"), NotDatabase, true},
		"newer":                {sqlOn("PRAGMA user_version = 99"), Newer, false},
		"version 0":            {sqlOn("PRAGMA user_version = 0"), Damaged, false},
		"negative version":     {sqlOn("PRAGMA user_version = -1"), Damaged, false},
		"table missing":        {sqlOn("DROP TABLE vals"), Damaged, false},
		"no head":              {sqlOn("DELETE FROM head"), Damaged, false},
		"L03 head rolled back": {sqlOn("UPDATE head SET size = 299"), Damaged, false},
		"F11 head unsigned":    {sqlOn("UPDATE head SET note = x''"), Unsigned, false},
		"L03 older tail under its newest checkpoint": {func(t *testing.T, dir string) {
			older := t.TempDir()
			s := openWith(t, older, storetest.Every)
			storetest.Append(t, s, "s_0", 0, storetest.Entries(t, "s_0", 1, 100)...)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			var note []byte
			from, to := raw(t, dir), raw(t, older)
			if err := from.QueryRow("SELECT note FROM checkpoints ORDER BY size DESC LIMIT 1").Scan(&note); err != nil {
				t.Fatal(err)
			}
			execSQL(t, to, "INSERT INTO checkpoints VALUES (300, ?)", note)
			from.Close()
			to.Close()
			b, err := os.ReadFile(path(older))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path(dir), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}, RolledBack, false},
		"wrong key": {func(t *testing.T, dir string) {
			other, _ := storetest.KeyNamed("writ.test/another")
			n, err := audit.SignCheckpoint(300, audit.Hash{}, other)
			if err != nil {
				t.Fatal(err)
			}
			execSQL(t, raw(t, dir), "UPDATE checkpoints SET note = ? WHERE size = 300", n)
		}, WrongKey, false},
		"a directory in its place": {func(t *testing.T, dir string) { os.Mkdir(path(dir), 0o700) }, NotRegular, true},
		"C06 a symlink": {func(t *testing.T, dir string) {
			other := filled(t)
			if err := os.Symlink(path(other), path(dir)); err != nil {
				t.Fatal(err)
			}
		}, NotRegular, true},
		"C06 a symlink for the log": {func(t *testing.T, dir string) {
			if err := os.Symlink("/dev/null", path(dir)+"-wal"); err != nil {
				t.Fatal(err)
			}
		}, NotRegular, false},
		"C06 file others can write": {func(t *testing.T, dir string) { os.Chmod(path(dir), 0o666) }, Exposed, false},
		"C06 directory others can write": {func(t *testing.T, dir string) {
			os.Chmod(dir, 0o777)
			t.Cleanup(func() { os.Chmod(dir, 0o700) })
		}, Exposed, false},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.HasPrefix(name, "C06") {
				t.Skip("file modes say nothing there")
			}
			dir := t.TempDir()
			if !c.fresh {
				dir = filled(t)
			}
			os.Chmod(dir, 0o700)
			c.damage(t, dir)
			sk, vk := storetest.Key()
			s, err := Open(dir, Options{Signer: sk, Verifier: vk})
			var oe *OpenError
			if !errors.As(err, &oe) {
				if err == nil {
					s.Close()
				}
				t.Fatalf("opened: %v", err)
			}
			if oe.Reason != c.reason || oe.Hint == "" || oe.Path == "" {
				t.Errorf("%+v (%v), want %q", oe, err, c.reason)
			}
			left, _ := filepath.Glob(filepath.Join(dir, ".new-*"))
			if len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
	for name, dir := range map[string]string{
		"a file for a directory": path(filled(t)),
		"below a file":           filepath.Join(path(filled(t)), "x"),
	} {
		var oe *OpenError
		if _, err := Open(dir, Options{}); !errors.As(err, &oe) || oe.Reason != NotDirectory {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTruncatedFile cuts the file at pages, and inside the last one, and flips
// pages: it is refused at once, or Verify or the file's own check finds it.
// Nothing panics. The long form does so at every page.
func TestTruncatedFile(t *testing.T) {
	dir := filled(t)
	good, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, FileName+"-wal")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("closing leaves a write-ahead log: %v", err)
	}
	try := func(what string, b []byte) {
		d := t.TempDir()
		os.Chmod(d, 0o700)
		if err := os.WriteFile(filepath.Join(d, FileName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		sk, vk := storetest.Key()
		s, err := Open(d, Options{Signer: sk, Verifier: vk})
		if err != nil {
			var oe *OpenError
			if !errors.As(err, &oe) {
				t.Errorf("%s: %v", what, err)
			}
			return
		}
		defer s.Close()
		if p := storetest.Check(t, s).Problem; p == nil && s.Integrity(context.Background()) == nil {
			t.Errorf("%s: not found", what)
		}
	}
	const page = 4096
	step := size(5, 1) * page
	for n := page; n < len(good); n += step {
		try(fmt.Sprintf("cut to %d pages", n/page), good[:n])
	}
	try("cut in the middle of a page", good[:len(good)-page/2])
	try("cut to half a header", good[:50])
	for n := 0; n+page <= len(good); n += step {
		b := append([]byte{}, good...)
		for i := range 64 {
			b[n+i] ^= 0x55
		}
		try(fmt.Sprintf("head of page %d flipped", n/page), b)
	}
}

// TestIntegrityOfValues: a value of no record is found, before the first record, behind the last and
// where one is missing; where all have theirs, or there is none, that is so.
func TestIntegrityOfValues(t *testing.T) {
	const value = "INSERT INTO vals (idx, name, salt, bytes) VALUES (?, 'call', x'', x'')"
	for name, c := range map[string]struct {
		with string
		args []any
		bad  bool
	}{
		"as written":                {with: "SELECT 1"},
		"none is left":              {with: "DELETE FROM vals"},
		"before the first":          {value, []any{-1}, true},
		"behind the last":           {value, []any{300}, true},
		"of a missing record":       {"DELETE FROM leaves WHERE idx = ?", []any{7}, true},
		"of the first":              {"DELETE FROM leaves WHERE idx < ?", []any{2}, true},
		"of the last":               {"DELETE FROM leaves WHERE idx = ?", []any{299}, true},
		"of none at all":            {"DELETE FROM leaves", nil, true},
		"a record without one":      {"DELETE FROM vals WHERE idx IN (?, 299)", []any{1}, false},
		"none of either":            {"DELETE FROM vals; DELETE FROM leaves", nil, false},
		"a missing record had none": {"DELETE FROM vals WHERE idx = 7; DELETE FROM leaves WHERE idx = ?", []any{7}, false},
	} {
		dir := filled(t)
		db := raw(t, dir)
		execSQL(t, db, c.with, c.args...)
		s, err := OpenReadOnly(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Integrity(context.Background())
		if bad := err != nil; bad != c.bad || bad && !strings.HasSuffix(err.Error(), "a value belongs to no record") {
			t.Errorf("%s: %v", name, err)
		}
		s.Close()
	}
}

func TestFileModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("file modes say nothing there")
	}
	dir := filepath.Join(t.TempDir(), "a b?c#d%20", "état")
	sk, _ := storetest.Key()
	s, err := Open(dir, Options{Signer: sk})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	storetest.Append(t, s, "s_a", 0, storetest.Entry(t, "s_a", 1))
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	es, err := os.ReadDir(dir)
	if err != nil || len(es) != 4 {
		t.Fatalf("%v, %v", es, err)
	}
	for _, e := range es {
		if fi, err := e.Info(); err != nil || fi.Mode().Perm() != 0o600 || !strings.HasPrefix(e.Name(), "audit.") {
			t.Errorf("%s: %v, %v", e.Name(), fi.Mode(), err)
		}
	}
}

// TestErasedIsGone: after an erasure no file of the store holds the bytes.
func TestErasedIsGone(t *testing.T) {
	dir := t.TempDir()
	s := openWith(t, dir, storetest.Every)
	v := storetest.Value("s_a", 1, "arguments", strings.Repeat("planted-token ", 2000))
	e := storetest.Seal(t, audit.Record{Kind: audit.KindOpen, Session: "s_a", N: 1, Time: storetest.Epoch}, v)
	storetest.Append(t, s, "s_a", 0, e)
	holds := func() (n int) {
		es, _ := os.ReadDir(dir)
		for _, f := range es {
			if b, err := os.ReadFile(filepath.Join(dir, f.Name())); err == nil && f.Name() != FileName {
				n += strings.Count(string(b), "planted-token")
			}
		}
		return n
	}
	if holds() == 0 {
		t.Fatal("the test looks in the wrong place")
	}
	if err := s.Erase(context.Background(), "s_a", 1); err != nil {
		t.Fatal(err)
	}
	if n := holds(); n != 0 {
		t.Errorf("the journal and the write-ahead log hold the token %d times", n)
	}
	storetest.Verify(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Only now may this process open the database file itself.
	if b, err := os.ReadFile(filepath.Join(dir, FileName)); err != nil || strings.Contains(string(b), "planted-token") {
		t.Errorf("the file holds the token: %v", err)
	}
}

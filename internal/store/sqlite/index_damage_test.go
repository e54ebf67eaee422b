package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/writ-project/writ/internal/store/words"
	"github.com/writ-project/writ/memory"
)

func rawIndex(tb testing.TB, dir string) *sql.DB {
	db := sql.OpenDB(&dsn{filepath.Join(dir, IndexFileName)})
	tb.Cleanup(func() { db.Close() })
	return db
}

func put(tb testing.TB, x *Index, namespace string, drop []string, docs ...memory.Doc) {
	tb.Helper()
	at, err := x.At(context.Background(), namespace)
	if err == nil {
		err = x.Update(context.Background(), memory.Change{Namespace: namespace, From: at, To: at + 1, Put: docs, Drop: drop})
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// onDisk is all that is in the files of the index.
func onDisk(tb testing.TB, dir string) []byte {
	tb.Helper()
	names, err := filepath.Glob(filepath.Join(dir, IndexFileName+"*"))
	if err != nil || len(names) == 0 {
		tb.Fatal(names, err)
	}
	var all []byte
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

// TestIndexErased is M09: of a text that was dropped or replaced, or whose
// namespace was forgotten, the files hold nothing, not the text, not a word of
// it, not a part of a word, once no reader is left that reads an older state.
func TestIndexErased(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	secret := func() string {
		b := make([]byte, 24)
		for i := range b {
			b[i] = "bcdfghjklmnpqrstvwxz"[r.IntN(20)]
		}
		return string(b)
	}
	s := newSpeech(9)
	for _, size := range []int{1, 50, 3000} {
		dir := t.TempDir()
		x := openIndexAt(t, dir)
		put(t, x, "n", nil, s.docs(0, size)...)
		var secrets []string
		docs := func(n int) (out []memory.Doc) {
			for i := range n {
				// Words that are near in the index, and texts of several pages.
				w := []string{secret(), secret(), secret(), secret() + secret() + secret() + secret()}
				for i := range w {
					w[i] = w[i][:min(len(w[i]), words.MaxWord)]
				}
				secrets = append(secrets, w...)
				out = append(out, memory.Doc{ID: fmt.Sprintf("secret%d", i), Kind: "observation",
					Text: s.text() + " " + strings.Join(w, " the ") + strings.Repeat(" "+s.text(), 20*(i%2))})
			}
			return out
		}
		put(t, x, "n", nil, docs(40)...)
		replaced := len(secrets)
		put(t, x, "other", nil, docs(10)...)
		put(t, x, "n", nil, s.docs(size, size)...)
		if n := found(onDisk(t, dir), secrets); n == 0 {
			t.Fatal("the secrets are not found where they must be")
		}
		before := onDisk(t, dir)
		var drop []string
		var by []memory.Doc
		for i := range 40 {
			if id := fmt.Sprintf("secret%d", i); i%3 == 0 {
				drop = append(drop, id)
			} else {
				by = append(by, memory.Doc{ID: id, Kind: "observation", Text: s.text()})
			}
		}
		put(t, x, "n", drop, by...)
		if got := found(onDisk(t, dir), secrets[:replaced]); got > 0 {
			t.Errorf("M09: of %d texts, %d parts of what was dropped or replaced are on disk (before %d)", 2*size, got, found(before, secrets[:replaced]))
		}
		if err := x.Reset(context.Background(), "other"); err != nil {
			t.Fatal(err)
		}
		if got := found(onDisk(t, dir), secrets); got > 0 {
			t.Errorf("M09: of %d texts, %d parts of a forgotten namespace are on disk", 2*size, got)
		}
		if err := x.Integrity(context.Background()); err != nil {
			t.Error(err)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		if got := found(onDisk(t, dir), secrets); got > 0 {
			t.Errorf("M09: %d parts are on disk after closing", got)
		}
	}
}

// found counts the runs of seven letters of the secrets in b.
func found(b []byte, secrets []string) (n int) {
	const run = 7
	parts := map[string]bool{}
	for _, s := range secrets {
		for i := 0; i+run <= len(s); i++ {
			parts[s[i:i+run]] = true
		}
	}
	for i := 0; i+run <= len(b); i++ {
		if parts[string(b[i:i+run])] {
			n++
		}
	}
	return n
}

// TestIndexErasedUnderReader is M09 with a reader of the older state: what the
// write-ahead log still holds goes with the next change, or with Close, or when
// the index is opened after the process was killed.
func TestIndexErasedUnderReader(t *testing.T) {
	const secret = "qqxxzzvvqqxxzzvv"
	for _, how := range []string{"next change", "close", "killed"} {
		dir := t.TempDir()
		x := openIndexAt(t, dir)
		put(t, x, "n", nil, memory.Doc{ID: "a", Kind: "k", Text: secret}, memory.Doc{ID: "b", Kind: "k", Text: "fox"})
		for range x.Docs(context.Background(), "n") {
			put(t, x, "n", []string{"a"})
			break
		}
		if how == "killed" { // its files as they were, in another place
			other := t.TempDir()
			os.Chmod(other, 0o700)
			for range x.Docs(context.Background(), "n") { // a reader keeps the log from being cut
				put(t, x, "n", nil, memory.Doc{ID: "c", Kind: "k", Text: secret})
				put(t, x, "n", []string{"c"})
				for _, n := range []string{IndexFileName, IndexFileName + "-wal"} {
					b, err := os.ReadFile(filepath.Join(dir, n))
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(other, n), b, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				break
			}
			x.Close()
			if !bytes.Contains(onDisk(t, other), []byte(secret)) {
				t.Fatal("the secret is not there to be erased")
			}
			dir, x = other, openIndexAt(t, other)
		}
		switch how {
		case "next change":
			put(t, x, "n", nil)
		case "close":
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if bytes.Contains(onDisk(t, dir), []byte(secret)) {
			t.Errorf("M09: %s: the dropped text is on disk", how)
		}
		x.Close()
	}
}

// TestIndexWords: FTS5 knows exactly the words package words makes, of every
// character there is (M06).
func TestIndexWords(t *testing.T) {
	x := openIndexAt(t, t.TempDir())
	defer x.Close()
	ctx := context.Background()
	want := map[string]int{}
	var docs []memory.Doc
	var b strings.Builder
	flush := func() {
		d := memory.Doc{ID: fmt.Sprint(len(docs)), Kind: "k", Text: b.String()}
		docs = append(docs, d)
		for _, w := range words.Of(d.Text) {
			want[w]++
		}
		b.Reset()
	}
	for r := range rune(size(0x20000, unicode.MaxRune+1)) {
		fmt.Fprintf(&b, "%c %cA%c. ", r, r, r)
		if r%4096 == 4095 {
			flush()
		}
	}
	flush()
	put(t, x, "n", nil, docs...)
	execConn(t, x, "CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, words_1, row)")
	rs, err := x.conn.QueryContext(ctx, "SELECT term, cnt FROM temp.vocabulary")
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Close()
	for rs.Next() {
		var w string
		var n int
		if err := rs.Scan(&w, &n); err != nil {
			t.Fatal(err)
		}
		if want[w] != n {
			t.Errorf("FTS5 has %q %d times, want %d", w, n, want[w])
		}
		delete(want, w)
	}
	if err := rs.Err(); err != nil || len(want) > 0 {
		t.Errorf("%d words FTS5 does not have: %v", len(want), err)
	}
}

func execConn(tb testing.TB, x *Index, query string) {
	tb.Helper()
	if _, err := x.conn.ExecContext(context.Background(), query); err != nil {
		tb.Fatal(err)
	}
}

// FuzzIndexSearch puts a text and asks for it: FTS5 takes every query, and
// finds the text if and only if they share a word (M06).
func FuzzIndexSearch(f *testing.F) {
	for _, s := range []string{"\" OR 1=1 --", "*", "NEAR(", "%", "words:a", "a\x00b", "^a", "-a", "\"", "a\" OR \"b", "{words} : a", "é\u0301", "東京"} {
		f.Add(s, "a b 東")
		f.Add(s, s)
	}
	dir := f.TempDir()
	x := openIndexAt(f, dir)
	f.Cleanup(func() { x.Close() })
	f.Fuzz(func(t *testing.T, query, text string) {
		put(t, x, "n", nil, memory.Doc{ID: "a", Kind: "k", Text: text})
		hits, err := x.Search(context.Background(), "n", query, nil, 10)
		if err != nil {
			t.Fatalf("%q: %v", query, err)
		}
		has := words.Of(text)
		share := slices.ContainsFunc(words.Query(query), func(w string) bool { return slices.Contains(has, w) })
		if share != (len(hits) == 1) {
			t.Fatalf("%q in %q: %v", query, text, hits)
		}
	})
}

// filledIndex returns a directory with a closed index.
func filledIndex(tb testing.TB) string {
	dir := tb.TempDir()
	x := openIndexAt(tb, dir)
	put(tb, x, "n", nil, newSpeech(4).docs(0, 300)...)
	put(tb, x, "m", nil, newSpeech(5).docs(0, 30)...)
	if err := x.Close(); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// TestOpenIndexRefuses: what is not an index is refused with a hint and not
// changed; ErrRemake says when a new one may take its place, and RemoveIndex
// makes the place.
func TestOpenIndexRefuses(t *testing.T) {
	path := func(dir string) string { return filepath.Join(dir, IndexFileName) }
	write := func(b string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(path(dir), []byte(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	on := func(q string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { execSQL(t, rawIndex(t, dir), q) }
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string)
		reason Reason
		remake bool
	}{
		"text":              {write("not a database, but quite a bit longer than the header of one would be, so that it is read as such\n"), NotDatabase, true},
		"zero bytes":        {write(""), Damaged, true},
		"zeros":             {write(strings.Repeat("\x00", 8192)), NotDatabase, true},
		"another program's": {on("PRAGMA application_id = 7"), NotDatabase, true},
		"the log": {func(t *testing.T, dir string) {
			b, err := os.ReadFile(filepath.Join(filled(t), FileName))
			if err != nil {
				t.Fatal(err)
			}
			write(string(b))(t, dir)
		}, NotDatabase, true},
		"newer":                    {on("PRAGMA user_version = 99"), Newer, true},
		"version 0":                {on("PRAGMA user_version = 0"), Damaged, true},
		"other words":              {on("UPDATE made SET words = 'x'"), OldWords, true},
		"no words":                 {on("DELETE FROM made"), Damaged, true},
		"no registry":              {on("DROP TABLE namespaces"), Damaged, true},
		"table missing":            {on("DROP TABLE docs_1"), Damaged, true},
		"words missing":            {on("DROP TABLE words_2"), Damaged, true},
		"places missing":           {on("DROP TABLE places_1"), Damaged, true},
		"journal missing":          {on("DROP TABLE gone_2"), Damaged, true},
		"half of a page":           {func(t *testing.T, dir string) { os.Truncate(path(dir), 2048) }, Damaged, true},
		"the write-ahead log only": {func(t *testing.T, dir string) { os.Rename(path(dir), path(dir)+"-wal") }, Damaged, true},
		"a directory":              {func(t *testing.T, dir string) { os.Remove(path(dir)); os.Mkdir(path(dir), 0o700) }, NotRegular, false},
		"C06 a symlink": {func(t *testing.T, dir string) {
			os.Remove(path(dir))
			if err := os.Symlink(path(filledIndex(t)), path(dir)); err != nil {
				t.Fatal(err)
			}
		}, NotRegular, false},
		"C06 file others can write":      {func(t *testing.T, dir string) { os.Chmod(path(dir), 0o666) }, Exposed, false},
		"C06 directory others can write": {func(t *testing.T, dir string) { os.Chmod(dir, 0o777) }, Exposed, false},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.HasPrefix(name, "C06") {
				t.Skip("file modes say nothing there")
			}
			dir := filledIndex(t)
			c.damage(t, dir)
			x, err := OpenIndex(dir)
			var oe *OpenError
			if !errors.As(err, &oe) {
				if err == nil {
					x.Close()
				}
				t.Fatalf("opened: %v", err)
			}
			if oe.Reason != c.reason || oe.Hint == "" || oe.Path == "" || errors.Is(err, ErrRemake) != c.remake {
				t.Errorf("%+v (%v), want %q, to be made again: %v", oe, err, c.reason, c.remake)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".new-*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
			if !c.remake {
				os.Chmod(dir, 0o700)
				return
			}
			if err := RemoveIndex(dir); err != nil {
				t.Fatal(err)
			}
			x = openIndexAt(t, dir)
			defer x.Close()
			if at, err := x.At(context.Background(), "n"); at != 0 || err != nil {
				t.Errorf("made again, it is at %d: %v", at, err)
			}
		})
	}
	if err := RemoveIndex(t.TempDir()); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
}

// TestOpenIndexOlder: an index with the tables of an older version is emptied,
// by whichever process comes first, and is made again from the log; nothing of
// its texts is left in the file (M09).
func TestOpenIndexOlder(t *testing.T) {
	dir := filledIndex(t)
	x := openIndexAt(t, dir)
	put(t, x, "n", nil, memory.Doc{ID: "a", Kind: "k", Text: "qqxxzzvvqqxxzzvv"})
	x.Close()
	db := rawIndex(t, dir)
	for _, n := range []int{1, 2} {
		execSQL(t, db, fmt.Sprintf("DROP TABLE places_%d", n))
		execSQL(t, db, fmt.Sprintf("DROP TABLE gone_%d", n))
	}
	execSQL(t, db, "ALTER TABLE namespaces DROP COLUMN last")
	execSQL(t, db, "ALTER TABLE namespaces DROP COLUMN gone")
	execSQL(t, db, "PRAGMA user_version = 1")
	db.Close()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			x, err := OpenIndex(dir)
			if err != nil {
				t.Error(err)
				return
			}
			defer x.Close()
			for _, ns := range []string{"n", "m"} {
				if at, err := x.At(context.Background(), ns); at != 0 || err != nil {
					t.Errorf("%s is at %d: %v", ns, at, err)
				}
			}
		})
	}
	all.Wait()
	x = openIndexAt(t, dir)
	defer x.Close()
	put(t, x, "n", nil, memory.Doc{ID: "b", Kind: "k", Text: "fox"})
	if hits, err := x.Search(context.Background(), "n", "fox w1", nil, 5); err != nil || len(hits) != 1 {
		t.Errorf("%v: %v", hits, err)
	}
	if err := x.Integrity(context.Background()); err != nil {
		t.Error(err)
	}
	if bytes.Contains(onDisk(t, dir), []byte("qqxxzzvv")) {
		t.Error("M09: a text is left in the file")
	}
}

// TestIndexDamaged flips bytes all over the file: opening or using it fails, or
// its own check finds it, or all it answers is right; a failure for damage
// is ErrRemake. Nothing panics.
func TestIndexDamaged(t *testing.T) {
	src := filledIndex(t)
	good, err := os.ReadFile(filepath.Join(src, IndexFileName))
	if err != nil {
		t.Fatal(err)
	}
	type answers struct {
		docs, hits string
	}
	ctx := context.Background()
	ask := func(x *Index) (a answers, err error) {
		for d, err := range x.Docs(ctx, "n") {
			if err != nil {
				return a, err
			}
			a.docs += d.ID + d.Kind + d.Text
		}
		hits, err := x.Search(ctx, "n", "w0 w1 w2 w50 w700", nil, 300)
		a.hits = fmt.Sprint(hits)
		return a, err
	}
	x := openIndexAt(t, src)
	want, err := ask(x)
	if err != nil {
		t.Fatal(err)
	}
	x.Close()
	try := func(what string, b []byte) {
		dir := t.TempDir()
		os.Chmod(dir, 0o700)
		if err := os.WriteFile(filepath.Join(dir, IndexFileName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := OpenIndex(dir)
		if err == nil {
			defer x.Close()
			got, err2 := ask(x)
			if err2 == nil {
				if got == want || x.Integrity(ctx) != nil {
					return
				}
				t.Errorf("%s: not found", what)
				return
			}
			err = err2
		}
		if !errors.Is(err, ErrRemake) {
			t.Errorf("%s: %v", what, err)
		}
	}
	const page = 4096
	step := size(7, 1) * page
	for n := 0; n < len(good); n += step {
		if n > 0 {
			try(fmt.Sprintf("cut to %d pages", n/page), good[:n])
		}
		b := slices.Clone(good)
		for i := range 64 {
			b[n+i] ^= 0x55
		}
		try(fmt.Sprintf("head of page %d flipped", n/page), b)
		b = slices.Clone(good)
		for i := range 64 {
			b[n+page/2+i] ^= 0x55
		}
		try(fmt.Sprintf("middle of page %d flipped", n/page), b)
	}
}

func TestIndexFileModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("file modes say nothing there")
	}
	dir := filepath.Join(t.TempDir(), "state")
	x, err := OpenIndex(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	put(t, x, "n", nil, memory.Doc{ID: "a", Kind: "k", Text: "fox"})
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(names) < 2 {
		t.Errorf("%q", names)
	}
	for _, n := range append(names, dir) {
		if fi, err := os.Stat(n); err != nil || fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", n, fi.Mode(), err)
		}
	}
}

// TestIndexOtherWords: Integrity finds an index whose words are not those of
// its texts, though each part is sound.
func TestIndexOtherWords(t *testing.T) {
	dir := t.TempDir()
	x := openIndexAt(t, dir)
	defer x.Close()
	put(t, x, "n", nil, memory.Doc{ID: "a", Kind: "k", Text: "red fox"}, memory.Doc{ID: "b", Kind: "k", Text: "blue hare"})
	if err := x.Integrity(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"red hare", "fox red", "red fox fox", "red"} {
		execSQL(t, rawIndex(t, dir), "UPDATE docs_1 SET text = ?, words = ?, sum = ? WHERE id = 'a'",
			[]byte(text), len(words.Of(text)), checksum(memory.Doc{ID: "a", Kind: "k", Text: text}))
		if err := x.Integrity(context.Background()); !errors.Is(err, ErrRemake) {
			t.Errorf("%q: %v", text, err)
		}
	}
	execSQL(t, rawIndex(t, dir), "UPDATE docs_1 SET text = ?, words = 2 WHERE id = 'a'", []byte("red dog"))
	for what, err := range map[string]error{
		"check":  x.Integrity(context.Background()),
		"search": func() error { _, err := x.Search(context.Background(), "n", "red", nil, 1); return err }(),
		"update": x.Update(context.Background(), memory.Change{Namespace: "n", From: 1, To: 2, Drop: []string{"a"}}),
	} {
		if !errors.Is(err, ErrRemake) {
			t.Errorf("a text that does not have its sum: %s: %v", what, err)
		}
	}
}

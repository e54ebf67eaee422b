package storetest

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/store/words"
	"github.com/writ-project/writ/memory"
)

// Index is what an index under test implements.
type Index interface {
	memory.Index
	io.Closer
}

// IndexOpener opens the index that lives in dir; one that keeps nothing opens
// an empty one each time.
type IndexOpener func(tb testing.TB, dir string) Index

// TestIndex is the one suite every memory.Index passes. persistent says that
// what is opened in the directory of an index is that index, closed before or
// not.
func TestIndex(t *testing.T, open IndexOpener, persistent bool) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Index)
	}{
		{"nothing in it", testIndexEmpty},
		{"put, replace, drop", testIndexUpdate},
		{"behind", testIndexBehind},
		{"not a change", testIndexChange},
		{"M07 names are bytes", testIndexNames},
		{"M07 a text is any bytes", testIndexBytes},
		{"scores", testIndexScores},
		{"long queries and words", testIndexLong},
		{"reset", testIndexReset},
		{"texts while they are changed", testIndexDocs},
		{"a cancelled context", testIndexCancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := open(t, t.TempDir())
			c.test(t, x)
			if err := x.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if err := x.Close(); err != nil {
				t.Errorf("second close: %v", err)
			}
		})
	}
	t.Run("cases", func(t *testing.T) { testIndexCases(t, open) })
	t.Run("M02 namespaces", func(t *testing.T) { testIndexNamespaces(t, open) })
	t.Run("at once", func(t *testing.T) { testIndexConcurrent(t, open, persistent) })
	if persistent {
		t.Run("opening again", func(t *testing.T) { testIndexReopen(t, open) })
	}
}

// long reports whether the long form of tests is wanted.
func long() bool { return os.Getenv("WRIT_LONG") == "1" }

func doc(id, text string) memory.Doc { return memory.Doc{ID: id, Kind: "observation", Text: text} }

// put brings a namespace from where it is one record on.
func put(tb testing.TB, x Index, namespace string, docs ...memory.Doc) {
	tb.Helper()
	from := at(tb, x, namespace)
	update(tb, x, memory.Change{Namespace: namespace, From: from, To: from + 1, Put: docs})
}

func update(tb testing.TB, x Index, c memory.Change) {
	tb.Helper()
	if err := x.Update(ctx, c); err != nil {
		tb.Fatalf("update: %v", err)
	}
}

func at(tb testing.TB, x Index, namespace string) uint64 {
	tb.Helper()
	n, err := x.At(ctx, namespace)
	if err != nil {
		tb.Fatalf("at: %v", err)
	}
	return n
}

func search(tb testing.TB, x Index, namespace, query string, kinds []string, limit int) []memory.Hit {
	tb.Helper()
	hits, err := x.Search(ctx, namespace, query, kinds, limit)
	if err != nil {
		tb.Fatalf("search %q: %v", query, err)
	}
	return hits
}

func ids(hits []memory.Hit) []string {
	out := []string{}
	for _, h := range hits {
		out = append(out, h.ID)
	}
	return out
}

// holds demands exactly these texts, in this order.
func holds(tb testing.TB, x Index, namespace string, want ...memory.Doc) {
	tb.Helper()
	if got := Collect(tb, x.Docs(ctx, namespace)); !slices.Equal(got, want) {
		tb.Errorf("namespace %q holds\n%q\nwant\n%q", namespace, got, want)
	}
}

func finds(tb testing.TB, x Index, namespace, query string, want ...string) {
	tb.Helper()
	if got := ids(search(tb, x, namespace, query, nil, 100)); !slices.Equal(got, want) && len(got)+len(want) > 0 {
		tb.Errorf("%q in %q finds %q, want %q", query, namespace, got, want)
	}
}

func testIndexEmpty(t *testing.T, x Index) {
	for _, ns := range []string{"n", "", "a\x00b", "\xff"} {
		if n := at(t, x, ns); n != 0 {
			t.Errorf("at %d", n)
		}
		finds(t, x, ns, "word")
		holds(t, x, ns)
		if err := x.Reset(ctx, ns); err != nil {
			t.Error(err)
		}
	}
	// A change without a text counts as one.
	put(t, x, "n")
	if n := at(t, x, "n"); n != 1 {
		t.Errorf("at %d", n)
	}
	finds(t, x, "n", "word")
	holds(t, x, "n")
	// A text without a word is one.
	put(t, x, "n", doc("a", ""), doc("b", " ... "), doc("c", "word"))
	holds(t, x, "n", doc("a", ""), doc("b", " ... "), doc("c", "word"))
	finds(t, x, "n", "word", "c")
	update(t, x, memory.Change{Namespace: "n", From: 2, To: 3, Drop: []string{"a", "b", "c"}})
	finds(t, x, "n", "word")
	holds(t, x, "n")
}

func testIndexUpdate(t *testing.T, x Index) {
	put(t, x, "n", doc("a", "the red fox"), doc("b", "the blue fox"))
	finds(t, x, "n", "red", "a")
	finds(t, x, "n", "blue", "b")
	// Replaced: found by its new words alone.
	update(t, x, memory.Change{Namespace: "n", From: 1, To: 9, Put: []memory.Doc{doc("a", "a green hare"), doc("c", "the red deer")}, Drop: []string{"b", "unknown"}})
	if n := at(t, x, "n"); n != 9 {
		t.Errorf("at %d", n)
	}
	finds(t, x, "n", "fox")
	finds(t, x, "n", "red", "c")
	finds(t, x, "n", "hare", "a")
	holds(t, x, "n", doc("a", "a green hare"), doc("c", "the red deer"))
	// The same again, and a new kind for the same text.
	other := memory.Doc{ID: "c", Kind: "entity", Text: "the red deer"}
	put(t, x, "n", doc("a", "a green hare"), other)
	holds(t, x, "n", doc("a", "a green hare"), other)
	if got := search(t, x, "n", "deer hare", []string{"entity"}, 10); !slices.Equal(ids(got), []string{"c"}) || got[0].Kind != "entity" {
		t.Errorf("found %v", got)
	}
	// A dropped text comes back only when it is put again (M03).
	update(t, x, memory.Change{Namespace: "n", From: 10, To: 11, Drop: []string{"a"}})
	finds(t, x, "n", "hare")
	put(t, x, "n", doc("a", "a hare"))
	finds(t, x, "n", "hare", "a")
}

func testIndexBehind(t *testing.T, x Index) {
	put(t, x, "other", doc("z", "fox"))
	behind := func(from, to uint64) {
		t.Helper()
		before := Collect(t, x.Docs(ctx, "n"))
		n := at(t, x, "n")
		err := x.Update(ctx, memory.Change{Namespace: "n", From: from, To: to, Put: []memory.Doc{doc("b", "no fox")}, Drop: []string{"a"}})
		if !errors.Is(err, memory.ErrBehind) {
			t.Errorf("from %d to %d: %v", from, to, err)
		}
		holds(t, x, "n", before...)
		if now := at(t, x, "n"); now != n {
			t.Errorf("at %d, was at %d", now, n)
		}
	}
	behind(1, 2)
	update(t, x, memory.Change{Namespace: "n", From: 0, To: 5, Put: []memory.Doc{doc("a", "fox")}})
	behind(0, 1)
	behind(0, 6)
	behind(4, 6)
	behind(6, 7)
	behind(math.MaxInt64-1, math.MaxInt64)
	finds(t, x, "n", "fox", "a")
	update(t, x, memory.Change{Namespace: "n", From: 5, To: math.MaxInt64})
	if n := at(t, x, "n"); n != math.MaxInt64 {
		t.Errorf("at %d", n)
	}
}

func testIndexChange(t *testing.T, x Index) {
	put(t, x, "n", doc("a", "fox"))
	for name, c := range map[string]memory.Change{
		"records stand still":   {Namespace: "n", From: 1, To: 1},
		"records go back":       {Namespace: "n", From: 1, To: 0},
		"records beyond int64":  {Namespace: "n", From: 1, To: math.MaxInt64 + 1},
		"no namespace":          {From: 0, To: 1},
		"M07 NUL in namespace":  {Namespace: "n\x00", From: 0, To: 1},
		"bytes in namespace":    {Namespace: "n\xff", From: 0, To: 1},
		"long namespace":        {Namespace: strings.Repeat("n", words.MaxName+1), From: 0, To: 1},
		"no id":                 {Namespace: "n", From: 1, To: 2, Put: []memory.Doc{doc("", "x")}},
		"M07 NUL in id":         {Namespace: "n", From: 1, To: 2, Put: []memory.Doc{doc("b", "x"), doc("a\x00", "x")}},
		"bytes in id":           {Namespace: "n", From: 1, To: 2, Put: []memory.Doc{doc("\xc3", "x")}},
		"long id":               {Namespace: "n", From: 1, To: 2, Put: []memory.Doc{doc(strings.Repeat("n", words.MaxName+1), "x")}},
		"no kind":               {Namespace: "n", From: 1, To: 2, Put: []memory.Doc{{ID: "b", Text: "x"}}},
		"M07 NUL in kind":       {Namespace: "n", From: 1, To: 2, Put: []memory.Doc{{ID: "b", Kind: "\x00", Text: "x"}}},
		"NUL in a dropped id":   {Namespace: "n", From: 1, To: 2, Drop: []string{"a", "b\x00"}},
		"an id put twice":       {Namespace: "n", From: 1, To: 2, Put: []memory.Doc{doc("b", "x"), doc("b", "x")}},
		"an id dropped twice":   {Namespace: "n", From: 1, To: 2, Drop: []string{"a", "a"}},
		"an id put and dropped": {Namespace: "n", From: 1, To: 2, Put: []memory.Doc{doc("a", "x")}, Drop: []string{"a"}},
	} {
		err := x.Update(ctx, c)
		if !errors.Is(err, words.ErrChange) || errors.Is(err, memory.ErrBehind) {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(err.Error(), "\x00") || !utf8.ValidString(err.Error()) {
			t.Errorf("%s: the error says %q", name, err)
		}
	}
	holds(t, x, "n", doc("a", "fox"))
	if n := at(t, x, "n"); n != 1 {
		t.Errorf("at %d", n)
	}
}

// testIndexNames is M07: names that are equal to a collation are not.
func testIndexNames(t *testing.T, x Index) {
	names := []string{"Alice", "alice", "alice ", "ALICE", "é", "e\u0301", "\uffee", "\U00010000", "1", "01", "1.0", "a%", "a_", "'", "\"", "docs_1", "[]"}
	for _, ns := range names {
		var docs []memory.Doc
		for i, id := range names {
			docs = append(docs, doc(id, fmt.Sprintf("fox w%d", i)))
		}
		put(t, x, ns, docs...)
	}
	update(t, x, memory.Change{Namespace: "Alice", From: 1, To: 2, Drop: []string{"alice", "1"}})
	for _, ns := range names {
		var want []memory.Doc
		for i, id := range names {
			if ns != "Alice" || id != "alice" && id != "1" {
				want = append(want, doc(id, fmt.Sprintf("fox w%d", i)))
			}
		}
		slices.SortFunc(want, func(a, b memory.Doc) int { return strings.Compare(a.ID, b.ID) })
		holds(t, x, ns, want...)
		var sorted []string
		for _, d := range want {
			sorted = append(sorted, d.ID)
		}
		finds(t, x, ns, "fox", sorted...) // equal scores: by id
	}
	finds(t, x, "ALICE", "w1", "alice")
	finds(t, x, "Alice", "w1")
}

func testIndexBytes(t *testing.T, x Index) {
	docs := []memory.Doc{
		doc("a", "before\x00after"),
		doc("b", "before\xff\xfeafter \xc3"),
		doc("c", "\x00"),
		doc("d", strings.Repeat("long ", 20_000)+"end"),
		doc("e", "x'; DROP TABLE namespaces; --"),
		doc("f", "\u202eafter\u200b words\ufeff"),
	}
	put(t, x, "n", docs...)
	holds(t, x, "n", docs...)
	finds(t, x, "n", "before", "a", "b")
	finds(t, x, "n", "drop", "e")
	finds(t, x, "n", "end", "d")
	if got := ids(search(t, x, "n", "after", nil, 10)); len(got) != 3 {
		t.Errorf("found %q", got)
	}
	finds(t, x, "n", "bef\x00ore")
	finds(t, x, "n", "\xff")
}

// testIndexScores compares with figures worked out by hand from the formula of
// FTS5's documentation.
func testIndexScores(t *testing.T, x Index) {
	put(t, x, "n", doc("a", "red"), doc("b", "blue"), doc("c", "green"), doc("d", "blue green blue"))
	idf := func(n, all float64) float64 { return math.Log((all - n + .5) / (n + .5)) }
	mean := 6.0 / 4
	part := func(f, length float64) float64 { return f * 2.2 / (f + 1.2*(0.25+0.75*length/mean)) }
	for _, c := range []struct {
		query string
		want  []memory.Hit
	}{
		{"red", []memory.Hit{{ID: "a", BM25: idf(1, 4) * part(1, 1)}}},
		// Half of the texts hold it: the weight is the least there is.
		{"BLUE!", []memory.Hit{{ID: "b", BM25: 1e-6 * part(1, 1)}, {ID: "d", BM25: 1e-6 * part(2, 3)}}},
		{"blue red blue", []memory.Hit{{ID: "a", BM25: idf(1, 4) * part(1, 1)}, {ID: "b", BM25: 1e-6 * part(1, 1)}, {ID: "d", BM25: 1e-6 * part(2, 3)}}},
		{"blue green", []memory.Hit{{ID: "d", BM25: 1e-6 * (part(2, 3) + part(1, 3))}, {ID: "b", BM25: 1e-6 * part(1, 1)}, {ID: "c", BM25: 1e-6 * part(1, 1)}}},
	} {
		slices.SortFunc(c.want, func(a, b memory.Hit) int {
			if a.BM25 != b.BM25 {
				return int(math.Copysign(1, b.BM25-a.BM25))
			}
			return strings.Compare(a.ID, b.ID)
		})
		got := search(t, x, "n", c.query, nil, 10)
		if !slices.Equal(ids(got), ids(c.want)) {
			t.Errorf("%q: %v, want %v", c.query, got, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i].BM25-c.want[i].BM25) > 1e-12 || got[i].Kind != "observation" {
				t.Errorf("%q: %v, want %v", c.query, got[i], c.want[i])
			}
		}
	}
	for limit := -1; limit <= 3; limit++ {
		if got := search(t, x, "n", "blue green red", nil, limit); len(got) != max(limit, 0) {
			t.Errorf("limit %d: %v", limit, got)
		}
	}
}

// testIndexLong: a query of any length is answered, by its first words (M06).
func testIndexLong(t *testing.T, x Index) {
	put(t, x, "n", doc("a", "w31"), doc("b", "w32"), doc("c", "w9999"), doc("d", strings.Repeat("z", 1000)), doc("e", strings.Repeat("ж", 40_000)))
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "w%d W%d ", i, i)
	}
	finds(t, x, "n", b.String(), "a") // words.MaxQuery is 32: w0 … w31
	finds(t, x, "n", strings.Repeat("w32 ", 1000)+b.String(), "b")
	finds(t, x, "n", strings.Repeat("\"", 100_000))
	finds(t, x, "n", strings.Repeat(" ", words.MaxQueryBytes)+"w31")
	finds(t, x, "n", strings.Repeat("z", 100_000), "d")
	finds(t, x, "n", strings.Repeat("Ж", 20_000), "e")
	finds(t, x, "n", "z")
}

func testIndexReset(t *testing.T, x Index) {
	put(t, x, "n", doc("a", "fox"))
	put(t, x, "n", doc("b", "fox"))
	put(t, x, "m", doc("a", "fox hare"))
	if err := x.Reset(ctx, "n"); err != nil {
		t.Fatal(err)
	}
	if n := at(t, x, "n"); n != 0 {
		t.Errorf("at %d", n)
	}
	holds(t, x, "n")
	finds(t, x, "n", "fox")
	holds(t, x, "m", doc("a", "fox hare"))
	finds(t, x, "m", "fox", "a")
	put(t, x, "n", doc("c", "hare"))
	holds(t, x, "n", doc("c", "hare"))
	finds(t, x, "n", "fox hare", "c")
}

func testIndexDocs(t *testing.T, x Index) {
	var want []memory.Doc
	for i := range 300 {
		want = append(want, doc(fmt.Sprintf("d%03d", i), "fox"))
	}
	put(t, x, "n", want...)
	var got []memory.Doc
	for d, err := range x.Docs(ctx, "n") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
		if len(got) == 1 { // of one moment, whatever happens then
			update(t, x, memory.Change{Namespace: "n", From: 1, To: 2, Put: []memory.Doc{doc("d200", "hare")}, Drop: []string{"d100"}})
			finds(t, x, "n", "hare", "d200")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d texts, not those of the moment it began", len(got))
	}
	for range x.Docs(ctx, "n") {
		break
	}
	if n := len(Collect(t, x.Docs(ctx, "n"))); n != 299 {
		t.Errorf("%d texts", n)
	}
}

func testIndexCancelled(t *testing.T, x Index) {
	put(t, x, "n", doc("a", "fox"))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	errs := map[string]error{}
	_, errs["at"] = x.At(ended, "n")
	_, errs["search"] = x.Search(ended, "n", "fox", nil, 1)
	errs["update"] = x.Update(ended, memory.Change{Namespace: "n", From: 1, To: 2, Drop: []string{"a"}})
	errs["reset"] = x.Reset(ended, "n")
	for _, errs["docs"] = range x.Docs(ended, "n") {
	}
	for what, err := range errs {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	holds(t, x, "n", doc("a", "fox"))
	if n := at(t, x, "n"); n != 1 {
		t.Errorf("at %d", n)
	}
}

func testIndexReopen(t *testing.T, open IndexOpener) {
	dir := t.TempDir()
	x := open(t, dir)
	put(t, x, "n", doc("a", "fox"), doc("b", "hare"))
	put(t, x, "m", doc("c", "fox"))
	put(t, x, "n", doc("a", "deer"))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := x.At(ctx, "n"); err == nil {
		t.Error("a closed index answers")
	}
	if err := x.Update(ctx, memory.Change{Namespace: "n", From: 2, To: 3}); err == nil {
		t.Error("a closed index is changed")
	}
	x = open(t, dir)
	defer x.Close()
	if n := at(t, x, "n"); n != 2 {
		t.Errorf("at %d", n)
	}
	holds(t, x, "n", doc("a", "deer"), doc("b", "hare"))
	holds(t, x, "m", doc("c", "fox"))
	finds(t, x, "n", "deer", "a")
	finds(t, x, "n", "fox")
	put(t, x, "n", doc("c", "fox"))
	finds(t, x, "n", "fox", "c")
}

// index_cases.json holds one set of texts and searches in it; add to it what an
// index should find, or should not.
//
//go:embed testdata/index_cases.json
var indexCases []byte

func testIndexCases(t *testing.T, open IndexOpener) {
	var file struct {
		Docs  []memory.Doc
		Cases []struct {
			Name, Query string
			Kinds, Want []string
			Limit       int
		}
	}
	if err := json.Unmarshal(indexCases, &file); err != nil {
		t.Fatal(err)
	}
	x := open(t, t.TempDir())
	defer x.Close()
	put(t, x, "n", file.Docs...)
	// What is asked of it never changes it, and is not found elsewhere.
	put(t, x, "m", doc("m", "1 drop near select or and not words rowid rank fox"))
	all := Collect(t, x.Docs(ctx, "n"))
	for _, c := range file.Cases {
		if c.Limit == 0 {
			c.Limit = 100
		}
		got := ids(search(t, x, "n", c.Query, c.Kinds, c.Limit))
		if !slices.Equal(got, c.Want) && len(got)+len(c.Want) > 0 {
			t.Errorf("%s: %q finds %q, want %q", c.Name, c.Query, got, c.Want)
		}
	}
	holds(t, x, "n", all...)
	if len(file.Cases) == 0 {
		t.Error("no cases")
	}
}

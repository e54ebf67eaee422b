package provenance

import (
	"errors"
	"fmt"
	"math/rand"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// Two sessions share nothing: another key finds nothing and digests nothing
// alike (P11).
func TestSessionsAreApart(t *testing.T) {
	a, again, b := NewLedger([32]byte{1}, Caps{}), NewLedger([32]byte{1}, Caps{}), NewLedger([32]byte{2}, Caps{})
	v := strictjson.StringOf("INC-1042")
	if a.Digest(ID, v) == b.Digest(ID, v) || a.Digest(ID, v) != again.Digest(ID, v) || a.Digest(ID, v) == a.Digest(Untyped, v) {
		t.Error("digests")
	}
	a.mustAdd(t, 1, listing(1, 3))
	if got := b.Find(Query{Value: strictjson.Of([]byte(`"item-00000000"`)), Strict: true}); got.Reason != writ.ProvenanceUnseen {
		t.Errorf("P11: %q", got.Reason)
	}
}

func (l *Ledger) mustAdd(t testing.TB, evidence int, leaves []Leaf) {
	t.Helper()
	p, err := l.Prepare(Observation{Evidence: uint32(evidence), Server: "a", Tool: "list", OK: true, Leaves: leaves})
	if err == nil {
		err = l.Commit(p)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var listRules = []OutputRule{
	{At: must("/items/*/id"), Label: writ.System, Type: ID, Collection: "item"},
	{At: must("/items/*/path"), Label: writ.System, Type: Path, Collection: "path"},
}

func must(s string) Pattern {
	p, err := ParsePattern(s)
	if err != nil {
		panic(err)
	}
	return p
}

// listing is a result of n records of three leaves each, distinct from every
// other's.
func listing(seed, n int) []Leaf {
	var b strings.Builder
	b.WriteString(`{"structuredContent":{"items":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"item-%08d","path":"/srv/d%d/f%08d","title":"title of %d"}`, (seed-1)*n+i, seed, i, (seed-1)*n+i)
	}
	b.WriteString(`]}}`)
	return Extraction(listRules, strictjson.Of([]byte(b.String())), strictjson.Value{}).Leaves
}

func TestPrepareChangesNothing(t *testing.T) {
	l := NewLedger([32]byte{1}, Caps{})
	p, err := l.Prepare(Observation{Evidence: 1, Server: "a", OK: true, Leaves: listing(1, 2)})
	if err != nil || p.Facts() != 6 || l.Len() != 0 || l.Bytes() != 0 {
		t.Fatalf("%v, %d facts, %d leaves, %d bytes", err, p.Facts(), l.Len(), l.Bytes())
	}
	if f := p.facts[0]; f.label != writ.System || f.flags&reflected != 0 {
		t.Errorf("label %v, flags %v", f.label, f.flags)
	}
	if a := l.Find(Query{Value: strictjson.Of([]byte(`"item-00000000"`)), Type: ID}); a.Reason != writ.ProvenanceUnseen { // P21
		t.Errorf("P21: an uncommitted result answers %q", a.Reason)
	}
	if err := l.Commit(p); err != nil {
		t.Fatal(err)
	}
	if a := l.Find(Query{Value: strictjson.Of([]byte(`"item-00000000"`)), Type: ID}); a.Reason != "" {
		t.Errorf("committed: %q", a.Reason)
	}
}

// What is committed after an act was sent is judged as of its commit.
func TestCommitAfterSent(t *testing.T) {
	l := NewLedger([32]byte{1}, Caps{})
	p, _ := l.Prepare(Observation{Evidence: 1, Server: "a", OK: true, Leaves: listing(1, 1)})
	l.Sent("a", "put", true, []Arg{{Value: strictjson.Of([]byte(`"something else"`)), Label: writ.Model}})
	if err := l.Commit(p); err != nil {
		t.Fatal(err)
	}
	if a := l.Find(Query{Value: strictjson.Of([]byte(`"item-00000000"`)), Type: ID}); a.Reason != writ.ProvenanceReflected {
		t.Errorf("R4: %q", a.Reason)
	}
}

// A server that writes a text in another case lowers it all the same (R4).
func TestTaintInAnotherCase(t *testing.T) {
	rules := []OutputRule{{At: must("/id"), Type: ID, Label: writ.System}}
	for sent, back := range map[string]string{"Hauptstraße 7": "HAUPTSTRASSE 7", "İzmir office": "izmir office", "Kadıköy Office": "KADIKÖY OFFICE", "ꭰꮃꭹ Ꭰ": "ᎠᎳᎩ Ꭰ"} {
		l := NewLedger([32]byte{1}, Caps{})
		l.Sent("b", "put", true, []Arg{{Value: strictjson.StringOf(sent), Label: writ.Model}})
		raw := strictjson.StringOf(back)
		result := fmt.Sprintf(`{"structuredContent":{"id":%s}}`, raw.Raw())
		p, err := l.Prepare(Observation{Evidence: 1, Server: "a", OK: true, Leaves: Extraction(rules, strictjson.Of([]byte(result)), strictjson.Value{}).Leaves})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Commit(p); err != nil {
			t.Fatal(err)
		}
		if a := l.Find(Query{Value: raw, Type: ID}); a.Reason != writ.ProvenanceReflected {
			t.Errorf("%q, read back as %q: %q", sent, back, a.Reason)
		}
	}
}

// What has no form is refused everywhere and names nothing.
func TestNoForm(t *testing.T) {
	l := NewLedger([32]byte{1}, Caps{Leaves: 3})
	l.mustAdd(t, 1, Extraction(nil, strictjson.Of([]byte(`{"structuredContent":["x",5]}`)), strictjson.Value{}).Leaves)
	for _, raw := range []string{``, `"`, `nul`, `[1]`, `1e999`, `{"a":1}`} {
		v := strictjson.Of([]byte(raw))
		if a := l.Find(Query{Value: v, Strict: true}); a.Reason != writ.ProvenanceUnseen {
			t.Errorf("find %q: %q", raw, a.Reason)
		}
		if _, ok := l.Seen(v); ok {
			t.Errorf("seen %q", raw)
		}
		if l.FindJoin(Query{Value: v}).Reason == "" || Equal(Untyped, v, v) || !SmallSpace(Untyped, v) {
			t.Errorf("%q is a value", raw)
		}
		if len(l.Digest(Untyped, v)) != 32 {
			t.Errorf("digest of %q", raw)
		}
	}
	if _, ok := l.Seen(strictjson.Of([]byte(`5`))); ok {
		t.Error("R20: a number was seen")
	}
	// A commit that comes too late for the cap changes nothing.
	one := Observation{Evidence: 2, OK: true, Leaves: Extraction(nil, strictjson.Of([]byte(`{"structuredContent":["y"]}`)), strictjson.Value{}).Leaves}
	p, _ := l.Prepare(one)
	q, _ := l.Prepare(one)
	if l.Commit(p) != nil || !errors.Is(l.Commit(q), ErrFull) || l.Len() != 3 {
		t.Errorf("D04: %d leaves", l.Len())
	}
}

// What is no JSON has no leaf: nothing is taken from a part of it.
func TestNoLeafOfNoJSON(t *testing.T) {
	for raw, want := range map[string]int{`[1,`: 0, `[1,]`: 0, `{"a":`: 0, `{"a":1,2:3}`: 0, `{"a":[[x]]}`: 0, ``: 0, `[[],{}]`: 2} {
		n := 0
		w := walker{steps: &steps{}, leaf: func(_ []string, _ *step, v strictjson.Value, _ *record) {
			if v.Kind() != 0 {
				n++
			}
		}}
		w.walk(strictjson.Of([]byte(raw)), nil)
		if n != want {
			t.Errorf("%s: %d leaves, want %d", raw, n, want)
		}
	}
}

// D04: depth costs a leaf nothing. The sharing of steps is what keeps a nested
// result of the largest allowed size from costing a hundred times its length.
func TestDeepResult(t *testing.T) {
	deep := `{"structuredContent":` + strings.Repeat(`{"a":`, 90) + `[` + strings.TrimSuffix(strings.Repeat("123456789,", 1000), ",") + `]` + strings.Repeat("}", 90) + `}`
	x := Extraction(nil, strictjson.Of([]byte(deep)), strictjson.Value{})
	steps := map[*step]bool{}
	for i := range x.Leaves {
		for at := x.Leaves[i].at; at != nil; at = at.parent {
			steps[at] = true
		}
	}
	if len(x.Leaves) != 1000 || len(steps) != 1000+91 {
		t.Errorf("D04: %d leaves, %d steps", len(x.Leaves), len(steps))
	}
	l := NewLedger([32]byte{}, Caps{})
	l.mustAdd(t, 1, x.Leaves)
	if len(l.store.nodes) != 1+91 {
		t.Errorf("D04: %d containers", len(l.store.nodes))
	}
}

// A text too long to search counts as holding what was sent (D04).
func TestLongText(t *testing.T) {
	l := NewLedger([32]byte{1}, Caps{})
	l.Sent("b", "put", true, []Arg{{Value: strictjson.Of([]byte(`"some text"`)), Label: writ.External}})
	rules := []OutputRule{{At: must("/t"), Label: writ.System}}
	long := strings.Repeat("x", longest)
	for n, text := range []string{long, long + "x"} {
		l.mustAdd(t, n+1, Extraction(rules, strictjson.Of([]byte(`{"structuredContent":{"t":"`+text+`"}}`)), strictjson.Value{}).Leaves)
		a := l.Find(Query{Value: strictjson.Of([]byte(`"` + text + `"`)), Strict: true})
		if (a.Reason == "") != (n == 0) {
			t.Errorf("%d bytes: %q", len(text), a.Reason)
		}
	}
}

// D04: the caps on bytes hold for facts and for what was sent, nothing is
// forgotten, and a flood of sent texts lowers what comes after instead.
func TestCaps(t *testing.T) {
	l := NewLedger([32]byte{1}, Caps{Bytes: 20_000})
	l.mustAdd(t, 1, listing(1, 5))
	if _, err := l.Prepare(Observation{Evidence: 2, Server: "a", OK: true, Leaves: listing(2, 500)}); !errors.Is(err, ErrFull) {
		t.Fatalf("D04: %v", err)
	}
	for i := range 50 {
		l.Sent("b", "put", true, []Arg{{Value: strictjson.StringOf(strings.Repeat(fmt.Sprintf("flood %d ", i), 20)), Label: writ.External}})
	}
	if l.taints.bytes > 20_000/4 {
		t.Errorf("D04: %d bytes of sent texts", l.taints.bytes)
	}
	if a := l.Find(Query{Value: strictjson.Of([]byte(`"item-00000000"`)), Type: ID}); a.Reason != "" {
		t.Errorf("D04: forgot: %q", a.Reason)
	}
	l.mustAdd(t, 3, listing(3, 1))
	if a := l.Find(Query{Value: strictjson.Of([]byte(`"item-00000002"`)), Type: ID}); a.Reason != "" || a.Label != writ.System {
		t.Errorf("kept: %q, %v", a.Reason, a.Label)
	}
	if a := l.Find(Query{Value: strictjson.Of([]byte(`"/srv/d3/f00000000"`)), Type: Path}); a.Reason != writ.ProvenanceReflected || a.Label != writ.External {
		t.Errorf("D04: past the cap: %q, %v", a.Reason, a.Label)
	}
}

// A value that stands a million times is looked up in bounded time: its first
// origins are kept, the newest (which `idempotent: false` asks for), and those
// of every other kind.
func TestManyOriginsAreBounded(t *testing.T) {
	l := NewLedger([32]byte{1}, Caps{})
	v := strings.TrimSuffix(strings.Repeat(`"INC-1042",`, 200), ",")
	flood := []OutputRule{{At: must("/v/*"), Label: writ.External}}
	id := []OutputRule{
		{At: must("/id"), Label: writ.System, Type: ID, Collection: "c", HasOwner: true, Owner: []string{"owner"}},
		{At: must("/owner"), Label: writ.System},
	}
	for n := 1; n <= 40; n++ {
		l.mustAdd(t, n, Extraction(flood, strictjson.Of([]byte(`{"structuredContent":{"v":[`+v+`]}}`)), strictjson.Value{}).Leaves)
		l.mustAdd(t, 100+n, Extraction(id, strictjson.Of([]byte(`{"structuredContent":{"id":"INC-1042","owner":"us"}}`)), strictjson.Value{}).Leaves)
	}
	a := l.Find(Query{Value: strictjson.Of([]byte(`"INC-1042"`)), Type: ID})
	if len(a.Vouched) != maxOrigins || a.Vouched[0].Evidence != 101 || a.Vouched[maxOrigins-1].Evidence != 140 || !a.Contested {
		t.Errorf("D04: %d origins, %+v, contested %v", len(a.Vouched), a.Vouched, a.Contested)
	}
	// Many owners of one name do not push out the one that counts.
	for n := range 3000 {
		l.mustAdd(t, 1000+n, Extraction(id, strictjson.Of(fmt.Appendf(nil, `{"structuredContent":{"id":"INC-1042","owner":"eve%d"}}`, n)), strictjson.Value{}).Leaves)
	}
	all := l.candidates(Query{Value: strictjson.Of([]byte(`"INC-1042"`)), Type: ID})
	if len(all) > maxList+maxOrigins {
		t.Errorf("D04: %d facts to look at", len(all))
	}
	a = l.Find(Query{Value: strictjson.Of([]byte(`"INC-1042"`)), Type: ID, Target: true, Owners: [][]byte{[]byte(`"us"`)}})
	if len(a.Vouched) != maxOrigins {
		t.Errorf("R28: %d origins: %q", len(a.Vouched), a.Reason)
	}
}

// The texts that were sent are found whatever their number, length and order.
func TestTextsAgainstSearch(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	word := func() string {
		b := make([]byte, 4+r.Intn(90))
		for i := range b {
			b[i] = "ab"[r.Intn(2)]
		}
		return string(b)
	}
	var x texts
	var all []string
	for range 600 {
		w := word()
		x.add(w)
		all = append(all, w)
		s := word()
		in := slices.ContainsFunc(all, func(w string) bool { return strings.Contains(s, w) })
		of := slices.ContainsFunc(all, func(w string) bool { return strings.Contains(w, s) })
		if x.anyIn(s) != in || x.contain(s) != of {
			t.Fatalf("%q: holds one %v, is in one %v; want %v, %v", s, x.anyIn(s), x.contain(s), in, of)
		}
	}
	if len(x.sealed) == 0 || len(x.sealed) > 20 {
		t.Errorf("%d segments", len(x.sealed))
	}
}

// FuzzExtraction holds, for every result a server may send: no panic, only the
// declared labels, R33's bounds on what a line and a join may say, and that
// the ledger takes the leaves in.
func FuzzExtraction(f *testing.F) {
	rules := []OutputRule{
		{At: must("/content"), Extract: ExtractLines, Pattern: regexp.MustCompile(`^\[(?:FILE|DIR)\] (.+)$`), HasJoin: true, Join: []string{"path"}, Label: writ.System, Collection: "path"},
		{At: must("/items/*/id"), Label: writ.System, Type: ID, HasOwner: true, Owner: []string{"owner", "0"}},
		{At: must("/items"), Keys: true, Label: writ.System},
		{InText: true, Block: 0, Extract: ExtractJSON, Pointer: must("/*/mail"), Type: Email, Label: writ.System},
		{InText: true, Block: 1, Extract: ExtractLines, Pattern: regexp.MustCompile(`(?:head|=(\S*))`), Label: writ.System},
	}
	for _, seed := range []string{
		`{"structuredContent":{"content":"[FILE] x\n[DIR] y\n"}}`,
		`{"structuredContent":{"content":"[FILE] x\n[FILE] ../y"}}`,
		`{"structuredContent":{"content":"[FILE] /srv/in/full"}}`,
		`{"structuredContent":{"items":[{"id":"INC-1","owner":["us"]},{"id":5}]}}`,
		`{"structuredContent":{"items":{"a":{"id":null}}},"content":[{"type":"text","text":"[{\"mail\":\"a@b.example\"}]"},{"type":"text","text":"head\n=v"}]}`,
		`{"contents":[{"uri":"file:///a","blob":"AAAA"}],"isError":false}`,
	} {
		f.Add([]byte(seed), []byte(`{"path":"/srv/in"}`))
	}
	f.Fuzz(func(t *testing.T, result, arguments []byte) {
		if strictjson.Check(result, strictjson.Result) != nil || strictjson.Check(arguments, strictjson.Request) != nil {
			return
		}
		x := Extraction(rules, strictjson.Of(result), strictjson.Of(arguments))
		dir, _ := strictjson.Text(strictjson.Get(arguments, "path"))
		for i := range x.Leaves {
			l := &x.Leaves[i]
			if l.Rule == nil && l.Type != Untyped {
				t.Fatalf("a leaf nobody named has type %q", l.Type)
			}
			if _, _, why := Canonical(l.Type, l.Value); why != "" {
				t.Fatalf("leaf %s is no %q", l.Value.Raw(), l.Type)
			}
			text, _ := l.Value.Text()
			if l.at.line > 0 && strings.ContainsFunc(text, separates) {
				t.Fatalf("line %q holds a separator", text)
			}
			if l.Rule == &rules[0] && (!strings.HasPrefix(text, strings.TrimSuffix(dir, "/")+"/") || visible(text) != "") {
				t.Fatalf("%q is not below %q", text, dir)
			}
		}
		again := Extraction(rules, strictjson.Of(result), strictjson.Of(arguments))
		if len(again.Leaves) != len(x.Leaves) || !slices.Equal(again.Voided, x.Voided) {
			t.Fatal("two runs differ")
		}
		l := NewLedger([32]byte{}, Caps{})
		p, err := l.Prepare(Observation{Evidence: 1, Server: "a", OK: true, Leaves: x.Leaves})
		if err != nil || l.Commit(p) != nil {
			t.Fatal(err)
		}
		for i := range x.Leaves {
			leaf := &x.Leaves[i]
			a := l.Find(Query{Value: leaf.Value, Type: leaf.Type, Strict: true})
			if a.Reason == writ.ProvenanceUnseen {
				t.Fatalf("%s was seen", leaf.Value.Raw())
			}
			if leaf.Rule == nil && a.Reason == writ.ProvenanceReflected {
				t.Fatal("nothing was sent")
			}
		}
	})
}

// BenchmarkFind shows that a question costs the same whatever the ledger holds,
// and what a leaf costs in memory (bytes/leaf, by the heap and by the ledger's
// own estimate).
func BenchmarkFind(b *testing.B) {
	for _, size := range []int{100, 1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			l := NewLedger([32]byte{1}, Caps{Leaves: 2_000_000, Bytes: 1 << 30})
			for i := 1; l.Len() < size; i++ {
				l.mustAdd(b, i, listing(i, min(1000, size/3+1)))
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			held := float64(after.HeapAlloc-before.HeapAlloc) / float64(l.Len())
			q := []Query{
				{Value: strictjson.Of([]byte(`"item-00000007"`)), Type: ID, Collection: "item", Authority: true},
				{Value: strictjson.Of([]byte(`"/srv/d1/f00000003"`)), Type: Path, Collection: "path", Authority: true, Target: true, Closed: func(string) bool { return true }},
				{Value: strictjson.Of([]byte(`"item-99999999"`)), Type: ID, Collection: "item", Authority: true},
			}
			b.ResetTimer()
			b.ReportAllocs()
			for i := range b.N {
				l.Find(q[i%len(q)])
			}
			b.ReportMetric(held, "bytes/leaf")
			b.ReportMetric(float64(l.Bytes())/float64(l.Len()), "estimated/leaf")
			runtime.KeepAlive(l)
		})
	}
}

func BenchmarkExtractAndCommit(b *testing.B) {
	for b.Loop() {
		l := NewLedger([32]byte{1}, Caps{})
		l.mustAdd(b, 1, listing(1, 1000))
	}
}

package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/writ-project/writ/internal/strictjson"
)

func recordCases(tb testing.TB) []txtar.File {
	b, err := os.ReadFile(filepath.Join("testdata", "records.txtar"))
	if err != nil {
		tb.Fatal(err)
	}
	fs := txtar.Parse(b).Files
	for i := range fs {
		fs[i].Data = bytes.TrimSuffix(fs[i].Data, []byte("\n"))
	}
	if len(fs) < 50 {
		tb.Fatalf("only %d cases", len(fs))
	}
	return fs
}

func TestParseRecord(t *testing.T) {
	for _, f := range recordCases(t) {
		kind, _, _ := strings.Cut(f.Name, " ")
		r, err := ParseRecord(f.Data)
		switch {
		case kind == "ok" && err != nil, kind == "bad" && err == nil, kind != "ok" && kind != "bad":
			t.Errorf("%s: %v", f.Name, err)
		case err != nil && r != nil:
			t.Errorf("%s: a record beside an error", f.Name)
		}
	}
	if _, err := ParseRecord(bytes.Repeat([]byte("["), MaxLeaf+1)); err == nil {
		t.Error("L09: a leaf of more than MaxLeaf")
	}
	if _, err := ParseRecord([]byte(`{"commit":{},"data":{},"kind":"open","n":1,"session":"s_a","time":"2026-11-21T12:00:00Z"`)); err == nil {
		t.Error("a record that ends before its version")
	}
	if _, err := ParseRecord([]byte("\xef\xbb\xbf" + `{}`)); err == nil {
		t.Error("W06: a byte order mark")
	}
	if _, err := ParseRecord([]byte(`{"commit":{},"data":{"a":"` + "\xff" + `"},"kind":"open","n":1,"session":"s_a","time":"2026-11-21T12:00:00Z","v":1}`)); err == nil {
		t.Error("W05: invalid UTF-8")
	}
}

// TestSeal: what Seal makes parses to what it was made of, by the plain reader too,
// on one line (L07), and holds none of the values (L08).
func TestSeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Record{
			Kind:    Kind(rapid.StringMatching(`[a-z][a-z0-9_.-]{0,10}`).Draw(t, "kind")),
			Session: rapid.StringMatching(`s_[A-Za-z0-9_-]{1,20}`).Draw(t, "session"),
			N:       rapid.Uint64Range(1, maxN).Draw(t, "n"),
			Time:    time.Unix(rapid.Int64Range(0, 200_000_000_000).Draw(t, "sec"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")),
		}
		note := rapid.String().Draw(t, "note")
		r.Data = []byte(`{"z": 1.50, "note" : ` + string(quote(note)) + "}")
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z0-9_.-]{0,8}`), 0, 4, rapid.ID).Draw(t, "names")
		var vs []Value
		for _, n := range names {
			salt := rapid.SliceOfN(rapid.Byte(), SaltSize, SaltSize).Draw(t, "salt")
			vs = append(vs, Value{n, [SaltSize]byte(salt), []byte("planted-token-" + rapid.String().Draw(t, "bytes"))})
		}
		e, err := Seal(r, vs...)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsFunc(e.Leaf(), func(r rune) bool { return r < 0x20 }) {
			t.Fatal("L07: a control character in a leaf")
		}
		if bytes.Contains(e.Leaf(), []byte("planted-token-")) {
			t.Fatal("L08: a value in a leaf")
		}
		got, err := ParseRecord(e.Leaf())
		if err != nil {
			t.Fatal(err)
		}
		if got.Kind != r.Kind || got.Session != r.Session || got.N != r.N || !got.Time.Equal(r.Time) || len(got.Commit) != len(vs) {
			t.Fatalf("%+v", got)
		}
		for _, v := range vs {
			if d, ok := got.Commitment(v.Name); !ok || d != Commit(v.Salt, v.Bytes) {
				t.Fatalf("commitment of %s", v.Name)
			}
		}
		slow, err := slowRecord(e.Leaf())
		if err != nil || !reflect.DeepEqual(got, slow) {
			t.Fatalf("%+v is not %+v: %v", got, slow, err)
		}
		back, err := ParseEntry(e.Leaf(), vs...)
		if err != nil || !reflect.DeepEqual(back, e) {
			t.Fatalf("%+v, %v", back, err)
		}
		if len(vs) > 0 {
			vs[0].Bytes = append(vs[0].Bytes, 0)
			if _, err := ParseEntry(e.Leaf(), vs...); err == nil {
				t.Fatal("a changed value is taken")
			}
		}
	})
}

func quote(s string) []byte {
	b := []byte{'"'}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < 0x20:
			b = append(b, `\u00`...)
			b = append(b, "0123456789abcdef"[r>>4], "0123456789abcdef"[r&15])
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}

func TestSealRefuses(t *testing.T) {
	good := Record{Kind: KindOpen, Session: "s_a", N: 1, Time: time.Unix(1e9, 0)}
	if _, err := Seal(good); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(*Record) []Value{
		"no kind":          func(r *Record) []Value { r.Kind = ""; return nil },
		"kind with quote":  func(r *Record) []Value { r.Kind = `a"`; return nil },
		"no session":       func(r *Record) []Value { r.Session = "s_"; return nil },
		"session newline":  func(r *Record) []Value { r.Session = "s_a\n"; return nil },
		"long session":     func(r *Record) []Value { r.Session = "s_" + strings.Repeat("a", 65); return nil },
		"n 0":              func(r *Record) []Value { r.N = 0; return nil },
		"n large":          func(r *Record) []Value { r.N = maxN + 1; return nil },
		"no time":          func(r *Record) []Value { r.Time = time.Time{}; return nil },
		"time 10000":       func(r *Record) []Value { r.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC); return nil },
		"data array":       func(r *Record) []Value { r.Data = []byte(`[]`); return nil },
		"data empty":       func(r *Record) []Value { r.Data = []byte{}; return nil },
		"data twice":       func(r *Record) []Value { r.Data = []byte(`{} {}`); return nil },
		"data duplicates":  func(r *Record) []Value { r.Data = []byte(`{"a":1,"a":1}`); return nil },
		"value name":       func(*Record) []Value { return []Value{{Name: `a"`}} },
		"value names same": func(*Record) []Value { return []Value{{Name: "a"}, {Name: "a"}} },
		"value too large":  func(*Record) []Value { return []Value{{Name: "a", Bytes: make([]byte, MaxValue+1)}} },
		"leaf too large": func(r *Record) []Value {
			r.Data = []byte(`{"a":"` + strings.Repeat("x", MaxLeaf-10) + `"}`)
			return nil
		},
	} {
		r := good
		vs := f(&r)
		if e, err := Seal(r, vs...); err == nil || e.Leaf() != nil {
			t.Errorf("%s is sealed", name)
		}
	}
}

// TestNumbers: the numbers that records have are read quickly, and none is read
// that is not as RFC 8785 writes it.
func TestNumbers(t *testing.T) {
	leaf := func(number string) []byte {
		return []byte(`{"commit":{},"data":{"x":` + number + `},"kind":"event","n":1,"session":"s_a","time":"2026-11-22T19:00:00Z","v":1}`)
	}
	for _, number := range []string{"0", "7", "-7", "999999999999999", "0.8", "0.25", "0.0001", "12.5", "-1.5", "99999999999999.9", "0.10000000000001"} {
		if c := (cursor{b: []byte(number)}); !c.number() || c.i != len(number) {
			t.Errorf("%s is not read quickly", number)
		}
	}
	digits := rapid.StringMatching(`-?[0-9]{1,16}(\.[0-9]{0,16})?(e-?[0-9])?`)
	small := rapid.StringMatching(`-?[0-9]{1,2}\.0{0,8}[0-9]{0,3}`)
	rapid.Check(t, func(t *rapid.T) {
		b := leaf(rapid.OneOf(digits, small).Draw(t, "number"))
		r, err := ParseRecord(b)
		if slow, serr := slowRecord(b); (err == nil) != (serr == nil) || !reflect.DeepEqual(r, slow) {
			t.Fatalf("%s: %+v, %v is not %+v, %v", b, r, err, slow, serr)
		}
	})
}

// FuzzParseRecord: an accepted leaf is the only spelling of its record, and it
// is read as the plain reader reads it.
func FuzzParseRecord(f *testing.F) {
	for _, c := range recordCases(f) {
		f.Add(c.Data)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, said, err := parseRecord(b, "s_a")
		slow, serr := slowRecord(b)
		if (err == nil) != (serr == nil) || !reflect.DeepEqual(r, slow) {
			t.Fatalf("%+v, %v\n%+v, %v", r, err, slow, serr)
		}
		if err != nil {
			return
		}
		if bytes.ContainsAny(b, "\n\r\x00") {
			t.Fatal("a leaf of several lines")
		}
		for _, k := range []Kind{KindDecision, KindResult} {
			status, decision, shadow := members(&Record{Kind: k, Data: r.Data}, said)
			plain, _ := strictjson.Text(strictjson.Get(r.Data, "status"))
			if status != plain || decision != parseN(strictjson.Get(r.Data, "decision")) || shadow != (string(strictjson.Get(r.Data, "shadow")) == "true") {
				t.Fatalf("%s: %q %d %v", r.Data, status, decision, shadow)
			}
		}
		bare := *r
		bare.Commit = nil
		if len(r.Commit) == 0 {
			e, err := Seal(bare)
			if err != nil || !bytes.Equal(e.Leaf(), b) {
				t.Fatalf("sealed again: %v\n%s\n%s", err, e.Leaf(), b)
			}
		}
	})
}

// slowRecord is what ParseRecord means, in plain words.
func slowRecord(leaf []byte) (*Record, error) {
	if err := strictjson.Check(leaf, leafLimits); err != nil {
		return nil, fmt.Errorf("audit: record: %w", err)
	}
	canon, err := strictjson.Canonical(leaf)
	if err != nil || !bytes.Equal(canon, leaf) {
		return nil, errors.New("audit: record is not canonical JSON")
	}
	ms, ok := strictjson.Members(leaf)
	if !ok {
		return nil, errors.New("audit: record is not an object")
	}
	want := [...]string{"commit", "data", "kind", "n", "session", "time", "v"}
	if len(ms) != len(want) {
		return nil, errors.New("audit: record does not have exactly its seven members")
	}
	r := &Record{}
	for i, m := range ms {
		if m.Name != want[i] {
			return nil, errors.New("audit: record does not have exactly its seven members")
		}
		bad := func() (*Record, error) { return nil, fmt.Errorf("audit: record: bad %s", m.Name) }
		switch m.Name {
		case "commit":
			cs, ok := strictjson.Members(m.Value)
			if !ok {
				return bad()
			}
			for _, c := range cs {
				s, ok := strictjson.Text(c.Value)
				d, err := ParseDigest(s)
				if !ok || err != nil || !validName(c.Name) {
					return bad()
				}
				r.Commit = append(r.Commit, Commitment{c.Name, d})
			}
		case "data":
			if strictjson.KindOf(m.Value) != strictjson.Object {
				return bad()
			}
			r.Data = m.Value
		case "kind":
			s, ok := strictjson.Text(m.Value)
			if !ok || !validName(s) {
				return bad()
			}
			r.Kind = Kind(s)
		case "n":
			if r.N, err = strconv.ParseUint(string(m.Value), 10, 64); err != nil {
				return bad()
			}
		case "session":
			if r.Session, ok = strictjson.Text(m.Value); !ok {
				return bad()
			}
		case "time":
			s, ok := strictjson.Text(m.Value)
			t, err := time.Parse(time.RFC3339Nano, s)
			if !ok || err != nil || t.UTC().Format(time.RFC3339Nano) != s {
				return bad()
			}
			r.Time = t.UTC()
		case "v":
			if string(m.Value) != "1" {
				return nil, errors.New("audit: record is of a format this version does not know")
			}
		}
	}
	if err := checkWords(r); err != nil {
		return nil, err
	}
	return r, nil
}

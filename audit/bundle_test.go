package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"
)

func bundled(t *testing.T, s Snapshot, key string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteBundle(context.Background(), &b, s, key); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readBundle(b []byte) (*Bundle, error) { return OpenBundle(bytes.NewReader(b), int64(len(b))) }

// TestBundle: what is read from a bundle is the log that was written, to the byte, and
// of that no byte can be changed, left out or added.
func TestBundle(t *testing.T) {
	m := newModel(t)
	m.fill(2, 20)
	whole := bundled(t, m, "key")
	b, err := readBundle(whole)
	if err != nil {
		t.Fatal(err)
	}
	if again := bundled(t, b, b.Key); !bytes.Equal(again, whole) {
		t.Error("a bundle of a bundle is another")
	}
	r, err := Verify(context.Background(), b, VerifyOptions{Verifier: m.vk})
	if err != nil || r.Problem != nil || r.Records != 40 {
		t.Fatalf("%v %+v", err, r)
	}
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 1
		if _, err := readBundle(changed); !errors.Is(err, ErrBundle) {
			t.Fatalf("byte %d of %q is another: %v", i, whole[max(0, i-20):i+1], err)
		}
		if _, err := readBundle(whole[:i]); !errors.Is(err, ErrBundle) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	if _, err := readBundle(append(bytes.Clone(whole), '\n')); !errors.Is(err, ErrBundle) {
		t.Error(err)
	}
}

// TestBundleEveryByte: of a bundle of 1,000 records every byte is changed in turn, and each
// time it is none. The long form does so to records that are longer.
func TestBundleEveryByte(t *testing.T) {
	m := newModel(t)
	if os.Getenv("WRIT_LONG") == "1" {
		m.fill(100, 10)
	} else {
		for i := range 1000 {
			var vs []Value
			if i%10 == 0 {
				vs = []Value{{Name: "arguments", Salt: [SaltSize]byte{byte(i)}, Bytes: []byte("{}")}}
			}
			m.add(fmt.Sprintf("s_%d", i), KindOpen, "{}", vs...)
		}
		m.sign()
	}
	whole := bundled(t, m, "key")
	if b, err := readBundle(whole); err != nil || b.Size() != 1000 {
		t.Fatal(err)
	}
	// Each core has a part, and a bundle of its own to change.
	parts := runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	for part := range parts {
		all.Go(func() {
			changed := bytes.Clone(whole)
			for i := part; i < len(whole); i += parts {
				changed[i] ^= 1 << (i % 8)
				if _, err := readBundle(changed); !errors.Is(err, ErrBundle) {
					t.Errorf("byte %d of %q is another: %v", i, whole[max(0, i-20):i+1], err)
					return
				}
				changed[i] = whole[i]
			}
		})
	}
	all.Wait()
}

// TestBundleForged: who makes the digest anew as well changes no record and no value
// that the log still verifies with, nor how they are spelled.
func TestBundleForged(t *testing.T) {
	m := newModel(t)
	m.fill(2, 6)
	whole := bundled(t, m, "key")
	end := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	found := 0
	for n := range 2 * end {
		i := n / 2
		body := bytes.Clone(whole[:end])
		if body[i] ^= 1; n%2 > 0 {
			body[i] = whole[i] + 1 // the next letter of base64 may say the same
		}
		sum := sha256.Sum256(body)
		tail, _ := json.Marshal(bundleEnd{hex.EncodeToString(sum[:])})
		forged := append(append(body, tail...), '\n')
		b, err := readBundle(forged)
		if err == nil {
			var r *Report
			if r, err = Verify(context.Background(), b, VerifyOptions{Verifier: m.vk}); err == nil && r.Problem != nil {
				err = r.Problem
			}
		}
		if err != nil {
			found++
			continue
		}
		var items []Item
		for it := range b.Scan(context.Background(), 0) {
			items = append(items, it)
		}
		same := slices.EqualFunc(items, m.items, func(a, b Item) bool {
			return bytes.Equal(a.Leaf, b.Leaf) && reflect.DeepEqual(a.Values, b.Values)
		})
		if !same {
			t.Fatalf("byte %d of %q is another, and the log verifies", i, whole[max(0, i-20):i+1])
		}
		if !bytes.Equal(bundled(t, b, b.Key), forged) {
			t.Fatalf("byte %d of %q is another, and says the same", i, whole[max(0, i-20):i+1])
		}
	}
	if found < end {
		t.Errorf("%d of %d changes found", found, 2*end)
	}
}

// FuzzBundleLine: a line that is read in one pass says what encoding/json reads there, and where that
// reads nothing, or would write it otherwise, it is none.
func FuzzBundleLine(f *testing.F) {
	m := newModel(f)
	m.fill(2, 6)
	odd := m.add("s_odd", KindOpen, `{"a":"<\"&\\>\u2028é\u007f\n\u0001"}`, Value{Name: "empty", Bytes: []byte{}}, Value{Name: "none"}, Value{Name: "text", Bytes: []byte("<\"&\\>\xff")})
	for _, it := range append(slices.Clone(m.items), *odd) {
		line, err := json.Marshal(lineOf(&it))
		if err != nil {
			f.Fatal(err)
		}
		if line = append(line, '\n'); it.Session != odd.Session {
			c := overLine(line)
			if leaf, _ := c.record(); leaf == nil {
				f.Errorf("%q is not read in one pass", line)
			}
		}
		f.Add(line)
		f.Add(bytes.Replace(line, []byte("="), []byte("\n="), 1))
		f.Add(bytes.Replace(line, []byte(`"name":"`), []byte(`"name":"<`), 1))
		f.Add(line[:len(line)-1])
		f.Add(append(bytes.Clone(line), '\n'))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var j prep
		j.readBundled(line)
		it, rec, broken := j.item, j.rec, j.broken
		var r bundleRecord
		ok := readLine(line, &r)
		want, wantRec, is := r.item(0)
		switch {
		case broken != (!ok || !is):
			t.Fatalf("%q is broken: %v", line, broken)
		case broken:
			return
		case !bytes.Equal(it.Leaf, want.Leaf) || it.Session != want.Session || it.N != want.N || !reflect.DeepEqual(rec, wantRec):
			t.Fatalf("%q is %+v, not %+v", line, it, want)
		case !slices.EqualFunc(it.Values, want.Values, func(a, b Value) bool {
			return a.Name == b.Name && a.Salt == b.Salt && bytes.Equal(a.Bytes, b.Bytes)
		}):
			t.Fatalf("%q has %+v, not %+v", line, it.Values, want.Values)
		}
	})
}

package audit

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

// TestTree: the right edge gives the hashes and roots of package tlog, which
// keeps everything, and can be rebuilt from what it gave.
func TestTree(t *testing.T) {
	var tree Tree
	var flat []Hash
	var rows [][]Hash
	reader := tlog.HashReaderFunc(func(is []int64) (out []Hash, err error) {
		for _, i := range is {
			out = append(out, flat[i])
		}
		return out, nil
	})
	for n := int64(0); n < 300; n++ {
		root, err := tlog.TreeHash(n, reader)
		if err != nil || tree.Root() != root || tree.Size() != n {
			t.Fatalf("size %d: another root", n)
		}
		loaded, err := LoadTree(n, func(d Node) (Hash, error) {
			if StoredNode(d.index()) != d {
				t.Errorf("node %v does not survive its index", d)
			}
			return rows[d.Leaf][d.Level], nil
		})
		if err != nil || loaded.Root() != root {
			t.Fatalf("size %d: loaded another root: %v", n, err)
		}
		leaf := []byte{byte(n), byte(n >> 8)}
		want, err := tlog.StoredHashes(n, leaf, reader)
		got := tree.Append(leaf)
		if err != nil || !slices.Equal(got, want) || !slices.Equal(loaded.Append(leaf), want) {
			t.Fatalf("leaf %d: other hashes", n)
		}
		flat = append(flat, want...)
		rows = append(rows, got)
	}
	if _, err := LoadTree(-1, nil); err == nil {
		t.Error("a tree of negative size")
	}
	if _, err := LoadTree(5, func(Node) (Hash, error) { return Hash{}, ErrNotFound }); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

type fixed byte

func (f fixed) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(f) + byte(i)
	}
	return len(b), nil
}

func testKey(tb testing.TB, name string, seed byte) (note.Signer, note.Verifier) {
	tb.Helper()
	sk, vk, err := GenerateKey(fixed(seed), name)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := note.NewSigner(sk)
	if err != nil {
		tb.Fatal(err)
	}
	v, err := note.NewVerifier(vk)
	if err != nil {
		tb.Fatal(err)
	}
	return s, v
}

func TestCheckpoint(t *testing.T) {
	sk, vk := testKey(t, "writ.test/a", 1)
	var tree Tree
	tree.Append([]byte("leaf"))
	msg, err := SignCheckpoint(tree.Size(), tree.Root(), sk)
	if err != nil {
		t.Fatal(err)
	}
	c, err := OpenCheckpoint(msg, vk)
	if err != nil || c != (Checkpoint{"writ.test/a", 1, tree.Root()}) {
		t.Fatalf("%+v, %v", c, err)
	}
	sk2, vk2 := testKey(t, "writ.test/a", 2)
	sk3, vk3 := testKey(t, "writ.test/b", 1)
	if _, err := OpenCheckpoint(msg, vk2); err == nil {
		t.Error("another key of that name")
	}
	if _, err := OpenCheckpoint(msg, vk3); err == nil {
		t.Error("another name")
	}
	other, err := note.Sign(&note.Note{Text: c.String()}, sk3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCheckpoint(other, vk3); err == nil {
		t.Error("a checkpoint of another origin, signed by us")
	}
	both, err := note.Sign(&note.Note{Text: c.String()}, sk2, sk3, sk)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCheckpoint(both, vk); err != nil {
		t.Errorf("a witness's signature beside ours: %v", err)
	}
	for i := range msg {
		bad := slices.Clone(msg)
		bad[i] ^= 1
		if got, err := OpenCheckpoint(bad, vk); err == nil && got != c {
			t.Errorf("byte %d flipped: %+v", i, got)
		}
	}
	if _, err := OpenCheckpoint(append(slices.Clone(msg), make([]byte, MaxCheckpoint)...), vk); err == nil {
		t.Error("L09: an endless checkpoint")
	}
}

func TestParseCheckpoint(t *testing.T) {
	root := "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="
	for _, bad := range []string{
		"", "\n", "o\n1\n", "o\n1\n" + root, "\n1\n" + root + "\n", "o\n01\n" + root + "\n", "o\n+1\n" + root + "\n",
		"o\n-1\n" + root + "\n", "o\n1 \n" + root + "\n", "o\n1\n" + root[1:] + "\n", "o\n1\n" + root + "\nextension\n",
		"o\n1\n" + strings.Replace(root, "=", "", 1) + "\n", "o\n1\nn4bQ\n", "o\n9223372036854775808\n" + root + "\n",
		"o\r\n1\n" + root + "\r\n", "o\n1\n" + root + "\n\n", "o\n1\n" + strings.Replace(root, "gg=", "gh=", 1) + "\n",
	} {
		if c, err := ParseCheckpoint(bad); err == nil {
			t.Errorf("%q is %+v", bad, c)
		}
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	f.Add("o\n1\nn4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=\n")
	f.Add("o\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCheckpoint(s)
		if err == nil && (c.String() != s || c.Size < 0 || c.Origin == "") {
			t.Fatalf("%q is %+v", s, c)
		}
		if err != nil && c != (Checkpoint{}) {
			t.Fatal("a checkpoint beside an error")
		}
	})
}

// TestProofs: proofs of the right thing pass and of anything else do not.
func TestProofs(t *testing.T) {
	m := newModel(t)
	m.fill(3, 30)
	size := m.tree.Size()
	last := Checkpoint{m.vk.Name(), size, m.tree.Root()}
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.Int64Range(0, size-1).Draw(t, "record")
		p, err := tlog.ProveRecord(size, i, m)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckInclusion(last, i, m.items[i].Leaf, p); err != nil {
			t.Fatal(err)
		}
		j := rapid.Int64Range(-1, size).Draw(t, "other")
		if j != i && CheckInclusion(last, j, m.items[i].Leaf, p) == nil {
			t.Fatal("a record at another place")
		}
		n := rapid.Int64Range(1, size).Draw(t, "older")
		var old Tree
		for k := range n {
			old.Append(m.items[k].Leaf)
		}
		older := Checkpoint{last.Origin, n, old.Root()}
		q, err := tlog.ProveTree(size, n, m)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckConsistency(older, last, q); err != nil {
			t.Fatal(err)
		}
		if err := Continues(m, older); err != nil {
			t.Fatal(err)
		}
		stranger := older
		stranger.Origin = "writ.test/other"
		if CheckConsistency(stranger, last, q) == nil || n < size && CheckConsistency(last, older, q) == nil {
			t.Fatal("another log, or another order")
		}
		older.Root[rapid.IntRange(0, 31).Draw(t, "byte")] ^= 1
		if CheckConsistency(older, last, q) == nil || Continues(m, older) == nil {
			t.Fatal("another root")
		}
	})
	if Continues(m, Checkpoint{last.Origin, size + 1, last.Root}) == nil || Continues(m, Checkpoint{last.Origin, -1, last.Root}) == nil {
		t.Error("a checkpoint outside the log")
	}
	if CheckConsistency(Checkpoint{Origin: last.Origin}, last, nil) == nil {
		t.Error("a checkpoint of nothing proves nothing")
	}
}

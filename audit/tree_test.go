package audit

import (
	"bytes"
	"errors"
	"maps"
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
			if StoredNode(tlog.StoredHashIndex(d.Level, (d.Leaf+1)>>d.Level-1)) != d {
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
		for other := range 256 { // the last letter of a signature has three that say the same
			bad := slices.Clone(msg)
			bad[i] = byte(other)
			if got, err := OpenCheckpoint(bad, vk); err == nil && !bytes.Equal(bad, msg) {
				t.Errorf("byte %d is %d: %+v", i, other, got)
			}
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
		stranger := older
		stranger.Origin = "writ.test/other"
		if CheckConsistency(stranger, last, q) == nil || n < size && CheckConsistency(last, older, q) == nil {
			t.Fatal("another log, or another order")
		}
		older.Root[rapid.IntRange(0, 31).Draw(t, "byte")] ^= 1
		if CheckConsistency(older, last, q) == nil {
			t.Fatal("another root")
		}
	})
	if CheckConsistency(Checkpoint{Origin: last.Origin}, last, nil) == nil {
		t.Error("a checkpoint of nothing proves nothing")
	}
}

// TestHolds proves sets of leaves of trees of every small size, and of none of
// them with one leaf or one other hash changed.
func TestHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 70).Draw(t, "size")
		var tree Tree
		var stored [][]Hash
		for i := range size {
			stored = append(stored, tree.Append([]byte{byte(i)}))
		}
		var leaves []Leaf
		for i := range size {
			if rapid.Bool().Draw(t, "in") {
				leaves = append(leaves, Leaf{int64(i), tlog.RecordHash([]byte{byte(i)})})
			}
		}
		asked := map[Node]bool{}
		read := func(n Node) (Hash, error) { asked[n] = true; return stored[n.Leaf][n.Level], nil }
		if err := tree.Holds(leaves, read); err != nil {
			t.Fatal(err)
		}
		if len(leaves) == 0 {
			return
		}
		for n := range asked { // any other hash than the true one is found
			lie := func(m Node) (Hash, error) {
				h, err := read(m)
				if m == n {
					h[3] ^= 1
				}
				return h, err
			}
			if err := tree.Holds(leaves, lie); !errors.Is(err, ErrAltered) {
				t.Fatalf("node %+v changed: %v", n, err)
			}
		}
		i := rapid.IntRange(0, len(leaves)-1).Draw(t, "leaf")
		for _, bad := range [][]Leaf{
			append(append(slices.Clone(leaves[:i]), Leaf{leaves[i].Index, Hash{}}), leaves[i+1:]...),
			append(append(slices.Clone(leaves[:i]), leaves[i]), leaves[i:]...), // twice
			append(slices.Clone(leaves), Leaf{int64(size), Hash{}}),
			append([]Leaf{{-1, Hash{}}}, leaves...),
		} {
			if err := tree.Holds(bad, read); !errors.Is(err, ErrAltered) {
				t.Fatalf("%v: %v", bad, err)
			}
		}
		failed := errors.New("disk")
		if err := tree.Holds(leaves, func(Node) (Hash, error) { return Hash{}, failed }); len(asked) > 0 && !errors.Is(err, failed) {
			t.Fatalf("an error of the store becomes %v", err)
		}
	})
}

// TestHeads: what was signed is read back, and nothing else is.
func TestHeads(t *testing.T) {
	sk, vk := testKey(t, "writ.test/log", 1)
	_, other := testKey(t, "writ.test/log", 2)
	heads := map[string]Head{"s_a": {"s_a", 3, 7}, "s_b": {"s_b", 1, 2}}
	var tree Tree
	for i := range 11 {
		tree.Append([]byte{byte(i)})
	}
	body, msg, err := SignHeads(&tree, heads, sk)
	if err != nil {
		t.Fatal(err)
	}
	back, got, err := OpenHeads(body, msg, vk)
	if err != nil || back.Size() != 11 || back.Root() != tree.Root() || !maps.Equal(got, heads) {
		t.Errorf("size %d, %v, %v", back.Size(), got, err)
	}
	if _, err := OpenCheckpoint(msg, vk); err == nil {
		t.Error("signed heads are taken for a checkpoint")
	}
	checkpoint, _ := SignCheckpoint(11, tree.Root(), sk)
	for name, f := range map[string]func() error{
		"another body": func() error { _, _, err := OpenHeads(append(body, "s_c 1 1\n"...), msg, vk); return err },
		"another key":  func() error { _, _, err := OpenHeads(body, msg, other); return err },
		"a checkpoint": func() error { _, _, err := OpenHeads(body, checkpoint, vk); return err },
		"a message changed": func() error {
			_, _, err := OpenHeads(body, bytes.Replace(msg, []byte("11"), []byte("12"), 1), vk)
			return err
		},
	} {
		if f() == nil {
			t.Errorf("%s passes", name)
		}
	}
}

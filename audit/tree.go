package audit

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Hash is a node of the Merkle tree.
type Hash = tlog.Hash

// Tree is the right edge of a growing RFC 6962 tree: the roots of its complete
// subtrees, one per one bit of its size. That is all an append needs. The zero
// Tree is empty.
type Tree struct {
	size int64
	edge [64]Hash // edge[i] is in use when bit i of size is set
}

// Size returns the number of leaves.
func (t *Tree) Size() int64 { return t.size }

// Append adds one leaf and returns the hashes it completes, lowest first: its
// own, then one for each subtree it fills. These are what tlog calls the
// stored hashes of the leaf.
func (t *Tree) Append(leaf []byte) []Hash { return t.appendHash(nil, tlog.RecordHash(leaf)) }

func (t *Tree) appendHash(to []Hash, h Hash) []Hash {
	to = t.completed(to, h)
	t.grow(to)
	return to
}

// completed are the hashes that one leaf more completes.
func (t *Tree) completed(to []Hash, h Hash) []Hash {
	to = append(to, h)
	for i := 0; t.size>>i&1 == 1; i++ {
		h = tlog.NodeHash(t.edge[i], h)
		to = append(to, h)
	}
	return to
}

// grow appends the leaf that completes these.
func (t *Tree) grow(completed []Hash) {
	i := len(completed) - 1
	t.edge[i] = completed[i]
	t.size++
}

// Root returns the root hash.
func (t *Tree) Root() Hash {
	if t.size == 0 {
		h, _ := tlog.TreeHash(0, nil)
		return h
	}
	var h Hash
	started := false
	for i := range t.edge {
		switch {
		case t.size>>i&1 == 0:
		case !started:
			h, started = t.edge[i], true
		default:
			h = tlog.NodeHash(t.edge[i], h)
		}
	}
	return h
}

// Node names a stored hash by the leaf that completes it and its level: level
// 0 is the leaf's own hash.
type Node struct {
	Leaf  int64
	Level int
}

// StoredNode translates one of tlog's stored hash indexes.
func StoredNode(index int64) Node {
	level, n := tlog.SplitStoredHashIndex(index)
	return Node{Leaf: (n+1)<<level - 1, Level: level}
}

// LoadTree rebuilds the right edge of a tree of that size from stored hashes.
func LoadTree(size int64, hash func(Node) (Hash, error)) (Tree, error) {
	t := Tree{size: size}
	if size < 0 {
		return Tree{}, errors.New("audit: a tree has no negative size")
	}
	end := int64(0)
	for i := 62; i >= 0; i-- {
		if size>>i&1 == 1 {
			end += 1 << i
			h, err := hash(Node{Leaf: end - 1, Level: i})
			if err != nil {
				return Tree{}, err
			}
			t.edge[i] = h
		}
	}
	return t, nil
}

// Leaf is one leaf of a tree: where it stands, and its hash (RFC 6962).
type Leaf struct {
	Index int64
	Hash  Hash
}

var errTree = fmt.Errorf("%w: it is not in the log", ErrAltered)

// Holds proves that the tree has all these leaves, sorted by index; if it has
// not, the error is ErrAltered. stored supplies hashes of the subtrees between
// them, or an error that Holds returns; nothing it says is trusted.
func (t *Tree) Holds(leaves []Leaf, stored func(Node) (Hash, error)) error {
	end := int64(0)
	for level := 62; level >= 0; level-- {
		if t.size>>level&1 == 0 {
			continue
		}
		start := end
		end += 1 << level
		var in []Leaf
		if in, leaves = before(leaves, end); len(in) == 0 {
			continue
		}
		if h, err := subtree(start, level, in, stored); err != nil {
			return err
		} else if h != t.edge[level] {
			return errTree
		}
	}
	if len(leaves) > 0 {
		return errTree
	}
	return nil
}

// before splits sorted leaves at an index.
func before(leaves []Leaf, index int64) (in, out []Leaf) {
	n := sort.Search(len(leaves), func(i int) bool { return leaves[i].Index >= index })
	return leaves[:n], leaves[n:]
}

func subtree(start int64, level int, leaves []Leaf, stored func(Node) (Hash, error)) (Hash, error) {
	switch {
	case len(leaves) == 0:
		return stored(Node{Leaf: start + 1<<level - 1, Level: level})
	case level == 0 && (len(leaves) > 1 || leaves[0].Index != start):
		return Hash{}, errTree
	case level == 0:
		return leaves[0].Hash, nil
	}
	left, right := before(leaves, start+1<<(level-1))
	l, err := subtree(start, level-1, left, stored)
	if err != nil {
		return Hash{}, err
	}
	r, err := subtree(start+1<<(level-1), level-1, right, stored)
	if err != nil {
		return Hash{}, err
	}
	return tlog.NodeHash(l, r), nil
}

// Checkpoint says what the log was at one size.
type Checkpoint struct {
	Origin string // the name of the log's key
	Size   int64
	Root   Hash
}

// String returns the C2SP tlog-checkpoint text: origin, size and root, each on
// its line.
func (c Checkpoint) String() string {
	return c.Origin + "\n" + strconv.FormatInt(c.Size, 10) + "\n" + base64.StdEncoding.EncodeToString(c.Root[:]) + "\n"
}

// MaxCheckpoint is the length of the longest signed checkpoint.
const MaxCheckpoint = 64 << 10

var errCheckpoint = errors.New("audit: not a checkpoint of this log")

// SignCheckpoint returns the checkpoint of that tree as a signed note. Its
// origin is the signer's name.
func SignCheckpoint(size int64, root Hash, s note.Signer) ([]byte, error) {
	c := Checkpoint{s.Name(), size, root}
	return note.Sign(&note.Note{Text: c.String()}, s)
}

// OpenCheckpoint returns the checkpoint of a note that v signed and whose
// origin is v's name. Extension lines are refused; signatures of others are
// ignored.
func OpenCheckpoint(msg []byte, v note.Verifier) (Checkpoint, error) {
	if len(msg) > MaxCheckpoint {
		return Checkpoint{}, errCheckpoint
	}
	n, err := note.Open(msg, note.VerifierList(v))
	if err != nil {
		return Checkpoint{}, errors.New("audit: the checkpoint is not signed by this log's key")
	}
	c, err := ParseCheckpoint(n.Text)
	if err == nil && c.Origin != v.Name() {
		err = errCheckpoint
	}
	for _, sig := range n.Sigs { // of v alone: one spelling, to its last bit
		if _, loose := base64.StdEncoding.Strict().DecodeString(sig.Base64); loose != nil {
			err = errCheckpoint
		}
	}
	if err != nil {
		return Checkpoint{}, err
	}
	return c, nil
}

// ParseCheckpoint parses what String returns and nothing else. It says nothing
// about who wrote it.
func ParseCheckpoint(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(text) > MaxCheckpoint || len(lines) != 4 || lines[0] == "" || lines[3] != "" {
		return Checkpoint{}, errCheckpoint
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 {
		return Checkpoint{}, errCheckpoint
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return Checkpoint{}, errCheckpoint
	}
	c := Checkpoint{lines[0], size, Hash(root)}
	if c.String() != text {
		return Checkpoint{}, errCheckpoint
	}
	return c, nil
}

// GenerateKey makes a log's Ed25519 key pair in the encodings of package note.
// name becomes the origin of its checkpoints; it has no white space and no plus
// sign. random must be a cryptographic source.
func GenerateKey(random io.Reader, name string) (signer, verifier string, err error) {
	return note.GenerateKey(random, name)
}

// CheckInclusion reports whether proof shows that leaf stands at index in the
// log of checkpoint c.
func CheckInclusion(c Checkpoint, index int64, leaf []byte, proof []Hash) error {
	if index < 0 || index >= c.Size {
		return errors.New("audit: the index lies outside the checkpoint")
	}
	return tlog.CheckRecord(proof, c.Size, c.Root, index, tlog.RecordHash(leaf))
}

// CheckConsistency reports whether proof shows that the log of checkpoint
// newer begins with all of the log of checkpoint older.
func CheckConsistency(older, newer Checkpoint, proof []Hash) error {
	if older.Origin != newer.Origin {
		return errors.New("audit: the checkpoints are of two logs")
	}
	if older.Size == 0 || older.Size > newer.Size {
		return errors.New("audit: the checkpoints are not in order")
	}
	return tlog.CheckTree(proof, newer.Size, newer.Root, older.Size, older.Root)
}

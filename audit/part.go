package audit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// # Part
//
// A part is a bundle of some sessions of a log, each from its first record, that shows
// without the rest of the log that every one of its records stands in the tree of one
// signed checkpoint, and that this log goes on from older checkpoints. It is JSON
// lines: one of a partHead, one of a bundleBlob for each blob, one of a partRecord for
// each record in the order of the log, one of partNodes, and a bundleEnd. The nodes are
// the subtrees of the checkpoint's tree in which none of the records stands, the largest
// there are, from the first leaf to the last: with them its root is computed of the records.

type partHead struct {
	Bundle     int      `json:"bundle"` // 2
	Key        string   `json:"key"`    // the log's public key, as a note's verifier is written
	Checkpoint string   `json:"checkpoint"`
	Older      []growth `json:"older,omitempty"`
	Blobs      int      `json:"blobs"`
	Records    int      `json:"records"`
}

// growth is an older checkpoint and the way from it to that of the part, RFC 6962.
type growth struct {
	Checkpoint string `json:"checkpoint"`
	Path       []Hash `json:"path,omitempty"`
}

type partRecord struct {
	Index int64 `json:"index"`
	bundleRecord
}

type partNodes struct {
	Nodes []Hash `json:"nodes"`
}

// PartOf is what a part is made of.
type PartOf struct {
	Key        string   // the log's public key
	Checkpoint []byte   // a signed one that covers all items
	Older      [][]byte // signed ones, of which it says that the log goes on from them
	Items      []Item
	Blobs      []Blob // those that the items name
}

// WritePart writes a part of the log whose hashes s has. The same part gives the same
// bytes. The error is ErrAltered where the log does not have the items, or does not go
// on from the older checkpoints.
func WritePart(w io.Writer, s tlog.HashReader, p PartOf) error {
	c, err := openWith(p.Key, p.Checkpoint)
	if err != nil {
		return err
	}
	head := partHead{Bundle: 2, Key: p.Key, Checkpoint: string(p.Checkpoint), Blobs: len(p.Blobs), Records: len(p.Items)}
	for _, msg := range p.Older {
		older, err := openWith(p.Key, msg)
		if err != nil {
			return err
		}
		if older.Size == 0 || older.Size > c.Size {
			return fmt.Errorf("%w: it was longer once", ErrAltered)
		}
		path, err := tlog.ProveTree(c.Size, older.Size, s)
		if err != nil {
			return err
		}
		if CheckConsistency(older, c, path) != nil {
			return errTree
		}
		head.Older = append(head.Older, growth{string(msg), path})
	}
	items, blobs := slices.Clone(p.Items), slices.Clone(p.Blobs)
	slices.SortFunc(items, func(a, b Item) int { return cmp.Compare(a.Index, b.Index) })
	slices.SortFunc(blobs, func(a, b Blob) int { return bytes.Compare(a.Name[:], b.Name[:]) })
	nodes := partNodes{[]Hash{}}
	root, err := rootOf(c.Size, leavesOf(items), func(n Node) (Hash, error) {
		h, err := s.ReadHashes([]int64{tlog.StoredHashIndex(n.Level, n.Leaf>>n.Level)})
		if err != nil {
			return Hash{}, err
		}
		nodes.Nodes = append(nodes.Nodes, h[0])
		return h[0], nil
	})
	if err != nil {
		return err
	}
	if root != c.Root {
		return errTree
	}

	sum := sha256.New()
	lines := []any{head}
	for _, b := range blobs {
		lines = append(lines, bundleBlob{b.Bytes})
	}
	for i := range items {
		lines = append(lines, &items[i])
	}
	enc := json.NewEncoder(io.MultiWriter(w, sum))
	for _, line := range append(lines, nodes) {
		if it, is := line.(*Item); is { // one at a time: a value is as long again in JSON
			line = partRecord{it.Index, lineOf(it)}
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return json.NewEncoder(w).Encode(bundleEnd{hex.EncodeToString(sum.Sum(nil))})
}

func leavesOf(items []Item) (out []Leaf) {
	for i := range items {
		out = append(out, Leaf{items[i].Index, tlog.RecordHash(items[i].Leaf)})
	}
	return out
}

// rootOf computes the root of a tree of that size of some of its leaves, sorted by index,
// and of the subtrees in which none of them stands.
func rootOf(size int64, leaves []Leaf, other func(Node) (Hash, error)) (Hash, error) {
	t, end := Tree{size: size}, int64(0)
	for level := 62; level >= 0; level-- {
		if size>>level&1 == 0 {
			continue
		}
		start := end
		end += 1 << level
		var in []Leaf
		in, leaves = before(leaves, end)
		h, err := subtree(start, level, in, other)
		if err != nil {
			return Hash{}, err
		}
		t.edge[level] = h
	}
	if len(leaves) > 0 {
		return Hash{}, errTree
	}
	return t.Root(), nil
}

// Part is a part that was read: what a replay asks of a store. Nothing of it is proven
// before VerifyPart proved it.
type Part struct {
	contents
	head  partHead
	nodes []Hash
}

// IsPart reports whether a file that begins so is a part, and no bundle of a whole log.
func IsPart(b []byte) bool { return bytes.HasPrefix(b, []byte(`{"bundle":2,`)) }

// ReadPart reads a part. The error is ErrBundle where it is none or was cut or changed.
func ReadPart(b []byte) (*Part, error) {
	bad := func(what string) (*Part, error) { return nil, fmt.Errorf("%w: %s", ErrBundle, what) }
	lines, ok := openLines(b)
	if !ok {
		return bad("its digest is of other bytes")
	}
	p := &Part{contents: contents{of: map[string][]placed{}}}
	if !lines.next(&p.head) || p.head.Bundle != 2 || p.head.Blobs < 0 || p.head.Records < 0 || p.head.Blobs+p.head.Records != len(lines)-2 {
		return bad("its first line is not that of this version, or lines are missing")
	}
	p.Key = p.head.Key
	for range p.head.Blobs {
		var blob bundleBlob
		if !lines.next(&blob) {
			return bad("a blob cannot be read")
		}
		p.blobs = append(p.blobs, Blob{Sum(blob.Blob), blob.Blob})
	}
	for i := range p.head.Records {
		var line partRecord
		ok := lines.next(&line)
		it, _, is := line.item(line.Index)
		if !ok || !is || i > 0 && p.items[i-1].Index >= it.Index {
			return bad(fmt.Sprintf("record %d cannot be read", i))
		}
		p.add(it)
	}
	var nodes partNodes
	if !lines.next(&nodes) || nodes.Nodes == nil {
		return bad("the nodes of its tree cannot be read")
	}
	p.nodes = nodes.Nodes
	return p, nil
}

// Checkpoints returns the checkpoint of the log that it is a part of, and the older ones
// that this log goes on from, all signed by the key of v.
func (p *Part) Checkpoints(v note.Verifier) (newest Checkpoint, older []Checkpoint, err error) {
	return p.head.checkpoints(v)
}

func (h *partHead) checkpoints(v note.Verifier) (newest Checkpoint, older []Checkpoint, err error) {
	if newest, err = OpenCheckpoint([]byte(h.Checkpoint), v); err != nil {
		return newest, nil, err
	}
	for _, g := range h.Older {
		c, err := OpenCheckpoint([]byte(g.Checkpoint), v)
		if err == nil {
			err = CheckConsistency(c, newest, g.Path)
		}
		if err != nil {
			return newest, nil, err
		}
		older = append(older, c)
	}
	return newest, older, nil
}

// PartCheckpoint returns the signed checkpoint of the part that begins with this line.
func PartCheckpoint(line []byte, v note.Verifier) (msg []byte, c Checkpoint, err error) {
	var h partHead
	if !readLine(line, &h) || h.Bundle != 2 {
		return nil, c, ErrBundle
	}
	c, _, err = h.checkpoints(v)
	return []byte(h.Checkpoint), c, err
}

// VerifyPart checks a part as Verify checks a whole log: that its checkpoint is signed,
// that all its records stand in that tree, each where it says, that the log goes on from
// the older checkpoints, and of the records what Verify checks of them. Records counts
// those of the part, Size and Root are the log's. That a session has no records behind
// the last that is there it does not show, but where that is one of its end.
func VerifyPart(ctx context.Context, p *Part, o VerifyOptions) (*Report, error) {
	v := &verifier{opt: o, sessions: map[string]*sessionState{}}
	newest, older, err := p.Checkpoints(o.Verifier)
	if err != nil {
		v.rep.Problem = &Problem{Fault: CheckpointInvalid, Detail: "it is not signed by this log's key, or the log does not go on from an older one"}
		return &v.rep, nil
	}
	v.rep.Size, v.rep.Root = newest.Size, newest.Root
	nodes := p.nodes
	root, err := rootOf(newest.Size, leavesOf(p.items), func(Node) (h Hash, err error) {
		if len(nodes) == 0 {
			return h, errTree
		}
		h, nodes = nodes[0], nodes[1:]
		return h, nil
	})
	if err != nil || root != newest.Root || len(nodes) > 0 {
		v.rep.Problem = &Problem{Until: newest.Size, Fault: CheckpointRoot, Detail: "its records do not stand in the log that was signed"}
		return &v.rep, nil
	}
	for j, err := range prepared(ctx, inBatches(withoutErrors(p.items)), (*prep).prepare) {
		if err != nil {
			return nil, err
		}
		rep := v.rep
		if v.rep.Problem = v.contents(j, func(f Fault, detail string) *Problem {
			v.rep = rep
			return &Problem{Index: j.item.Index, Fault: f, Detail: detail, Session: j.item.Session, N: j.item.N}
		}); v.rep.Problem != nil {
			break
		}
	}
	v.rep.Blobs, v.rep.Checkpoints, v.rep.Signed = int64(len(p.blobs)), int64(1+len(older)), newest.Size
	for _, st := range v.sessions {
		v.rep.Undone += int64(len(st.undone))
	}
	return &v.rep, ctx.Err()
}

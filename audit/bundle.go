package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
)

// # Bundle
//
// A bundle is a whole log in one file that verifies by itself: every record with the
// values that are still there, every blob, the log's public key and the checkpoints it
// signed. It is JSON lines, in this order: one line of a bundleHead, one of a
// bundleBlob for each blob, one of a bundleRecord for each record, and one of a
// bundleEnd, the SHA-256 of every byte before it. That digest finds damage; what finds
// a forger are the signatures, for who knows the key.

// ErrBundle says that a file is no bundle, or not whole.
var ErrBundle = errors.New("audit: not a whole bundle")

type bundleHead struct {
	Bundle      int      `json:"bundle"` // 1
	Key         string   `json:"key"`    // the log's public key, as a note's verifier is written
	Size        int64    `json:"size"`   // records
	Blobs       int      `json:"blobs"`
	Checkpoints []string `json:"checkpoints"`
}

type bundleBlob struct {
	Blob []byte `json:"blob"`
}

type bundleRecord struct {
	Leaf   string        `json:"leaf"`
	Values []bundleValue `json:"values,omitempty"`
}

type bundleValue struct {
	Name  string `json:"name"`
	Salt  []byte `json:"salt"`
	Bytes []byte `json:"bytes"`
}

type bundleEnd struct {
	SHA256 string `json:"sha256"`
}

// lineOf is a record as it is written, and item what was written; ok is false where
// that is no record.
func lineOf(it *Item) (r bundleRecord) {
	r.Leaf = string(it.Leaf)
	for _, v := range it.Values {
		r.Values = append(r.Values, bundleValue{v.Name, v.Salt[:], v.Bytes})
	}
	return r
}

func (r *bundleRecord) item(index int64) (it Item, rec *Record, ok bool) {
	rec, err := ParseRecord([]byte(r.Leaf))
	if err != nil {
		return it, nil, false
	}
	it = Item{Index: index, Session: rec.Session, N: rec.N, Leaf: []byte(r.Leaf)}
	for _, v := range r.Values {
		if len(v.Salt) != SaltSize {
			return it, nil, false
		}
		it.Values = append(it.Values, Value{v.Name, [SaltSize]byte(v.Salt), slices.Concat([]byte{}, v.Bytes)})
	}
	return it, rec, true
}

// WriteBundle writes the log of a snapshot as a bundle, with the public key it is to be
// verified with. The same log gives the same bytes. It checks nothing.
func WriteBundle(ctx context.Context, w io.Writer, s Snapshot, key string) error {
	sum := sha256.New()
	out := bufio.NewWriter(io.MultiWriter(w, sum))
	enc := json.NewEncoder(out)
	head := bundleHead{Bundle: 1, Key: key, Size: s.Size(), Checkpoints: []string{}}
	for c, err := range s.Checkpoints(ctx) {
		if err != nil {
			return err
		}
		head.Checkpoints = append(head.Checkpoints, string(c))
	}
	var blobs []Blob
	for b, err := range s.Blobs(ctx) {
		if err != nil {
			return err
		}
		blobs = append(blobs, Blob{b.Name, slices.Clone(b.Bytes)})
	}
	slices.SortFunc(blobs, func(a, b Blob) int { return bytes.Compare(a.Name[:], b.Name[:]) })
	head.Blobs = len(blobs)
	if err := enc.Encode(head); err != nil {
		return err
	}
	for _, b := range blobs {
		if err := enc.Encode(bundleBlob{b.Bytes}); err != nil {
			return err
		}
	}
	for it, err := range s.Scan(ctx, 0) {
		if err != nil {
			return err
		}
		if err := enc.Encode(lineOf(&it)); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	end, _ := json.Marshal(bundleEnd{hex.EncodeToString(sum.Sum(nil))})
	_, err := w.Write(append(end, '\n'))
	return err
}

// contents are what a file holds of a log, as a replay asks a store for it. Nothing of
// it is proven.
type contents struct {
	Key   string // as the file states it: whoever made it chose it
	items []Item
	of    map[string][]int // the items of each session
	blobs []Blob
}

// Bundle is a log that was read from a bundle: a Snapshot for Verify, and what a replay
// asks of a store. Nothing of it is proven before Verify proved it.
type Bundle struct {
	contents
	checkpoints [][]byte
	tree        Tree
	hashes      []Hash
}

// fileLines are those of a bundle before its last, of which that is the digest.
type fileLines [][]byte

func openLines(b []byte) (fileLines, bool) {
	cut := bytes.LastIndexByte(bytes.TrimSuffix(b, []byte{'\n'}), '\n') + 1
	body, tail := b[:cut], b[cut:]
	sum := sha256.Sum256(body)
	end, _ := json.Marshal(bundleEnd{hex.EncodeToString(sum[:])})
	return bytes.SplitAfter(body, []byte{'\n'}), bytes.Equal(tail, append(end, '\n'))
}

func (l *fileLines) next(to any) bool {
	if len(*l) < 2 { // behind the last line feed is nothing
		return false
	}
	line := (*l)[0]
	*l = (*l)[1:]
	return readLine(line, to)
}

func (c *contents) add(it Item) {
	c.of[it.Session] = append(c.of[it.Session], len(c.items))
	c.items = append(c.items, it)
}

// ReadBundle reads a bundle. The error is ErrBundle where it is none or was cut or
// changed.
func ReadBundle(b []byte) (*Bundle, error) {
	bad := func(what string) (*Bundle, error) { return nil, fmt.Errorf("%w: %s", ErrBundle, what) }
	lines, ok := openLines(b)
	if !ok {
		return bad("its digest is of other bytes")
	}
	var head bundleHead
	if !lines.next(&head) || head.Bundle != 1 || head.Size < 0 || head.Blobs < 0 || head.Size+int64(head.Blobs) != int64(len(lines)-1) {
		return bad("its first line is not that of this version, or lines are missing")
	}
	out := &Bundle{contents: contents{Key: head.Key, of: map[string][]int{}}}
	for _, c := range head.Checkpoints {
		out.checkpoints = append(out.checkpoints, []byte(c))
	}
	for range head.Blobs {
		var blob bundleBlob
		if !lines.next(&blob) {
			return bad("a blob cannot be read")
		}
		out.blobs = append(out.blobs, Blob{Sum(blob.Blob), blob.Blob})
	}
	for i := range head.Size {
		var line bundleRecord
		if !lines.next(&line) {
			return bad(fmt.Sprintf("record %d cannot be read", i))
		}
		it, _, ok := line.item(i)
		if !ok {
			return bad(fmt.Sprintf("record %d cannot be read", i))
		}
		it.Hashes = out.tree.Append(it.Leaf)
		out.hashes = append(out.hashes, it.Hashes...)
		out.add(it)
	}
	return out, nil
}

// Size and Root are those of the records that are there.
func (b *Bundle) Size() int64 { return b.tree.Size() }

// Root is the root of their tree.
func (b *Bundle) Root() Hash { return b.tree.Root() }

// Scan yields them in log order.
func (b *Bundle) Scan(_ context.Context, from int64) iter.Seq2[Item, error] {
	return withoutErrors(b.items[min(max(from, 0), int64(len(b.items))):])
}

// Checkpoints yields the checkpoints in the order in which they stand there.
func (b *Bundle) Checkpoints(context.Context) iter.Seq2[[]byte, error] {
	return withoutErrors(b.checkpoints)
}

// Blobs yields every blob under its digest.
func (b *Bundle) Blobs(context.Context) iter.Seq2[Blob, error] { return withoutErrors(b.blobs) }

// ReadHashes returns stored hashes of the tree.
func (b *Bundle) ReadHashes(indexes []int64) ([]Hash, error) {
	out := make([]Hash, len(indexes))
	for i, at := range indexes {
		if at < 0 || at >= int64(len(b.hashes)) {
			return nil, ErrNotFound
		}
		out[i] = b.hashes[at]
	}
	return out, nil
}

// Close does nothing.
func (b *Bundle) Close() error { return nil }

// Blob returns the blob of that name.
func (c *contents) Blob(_ context.Context, name Digest) ([]byte, error) {
	for _, blob := range c.blobs {
		if blob.Name == name {
			return blob.Bytes, nil
		}
	}
	return nil, ErrNotFound
}

// Read yields the items of a session from a number on.
func (c *contents) Read(_ context.Context, session string, from uint64) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for _, i := range c.of[session] {
			if it := c.items[i]; it.N >= from && !yield(it, nil) {
				return
			}
		}
	}
}

// Value returns the bytes of one value.
func (c *contents) Value(ctx context.Context, session string, n uint64, name string) ([]byte, error) {
	for it := range c.Read(ctx, session, n) {
		if v, ok := it.Value(name); ok && it.N == n {
			return v, nil
		}
		break
	}
	return nil, ErrNotFound
}

// Head returns how many records a session has.
func (c *contents) Head(_ context.Context, session string) (uint64, error) {
	return uint64(len(c.of[session])), nil
}

func withoutErrors[T any](s []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, x := range s {
			if !yield(x, nil) {
				return
			}
		}
	}
}

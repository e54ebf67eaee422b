package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
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

// readBundled reads what a line of a bundle says, which is what json.Marshal makes of a bundleRecord and
// nothing else; j is broken where it says no record.
func (j *prep) readBundled(line []byte) {
	it, c := &j.item, overLine(line)
	if it.Leaf, it.Values = c.record(); it.Leaf == nil {
		var r bundleRecord
		ok := readLine(line, &r)
		var is bool
		if *it, _, is = r.item(0); !ok || !is {
			j.broken = true
			return
		}
	}
	if j.broken = !j.parse(); !j.broken {
		it.Session, it.N = j.rec.Session, j.rec.N
	}
}

// lineCursor steps over a line of a bundle of the usual kind, in one pass: what it says is appended to
// one slice, which is as long as the line.
type lineCursor struct {
	cursor
	said []byte
}

func overLine(line []byte) lineCursor {
	return lineCursor{cursor: cursor{b: line}, said: make([]byte, 0, len(line))}
}

// record is the record that stands there, nil where that is to be read in another way.
func (c *lineCursor) record() (leaf []byte, vs []Value) {
	ok := c.lit(`{"leaf":"`) && c.quoted()
	leaf = c.taken(0)
	for first := true; ok && !c.lit("}\n"); first = false {
		if first && !c.lit(`,"values":[`) || !first && !c.lit(",") || !c.lit(`{"name":`) {
			return nil, nil
		}
		name, is := c.plain()
		var v Value
		if is = is && !bytes.ContainsAny(name, "<>&") && c.lit(`,"salt":"`); is {
			from := len(c.said)
			if is = c.base64() && len(c.said)-from == SaltSize; is {
				v.Salt = [SaltSize]byte(c.said[from:])
			}
		}
		from := len(c.said)
		if ok = is && c.lit(`,"bytes":"`) && c.base64() && c.lit("}"); ok {
			v.Name, v.Bytes = intern(name), c.taken(from)
			if vs = append(vs, v); c.lit("]") {
				ok = c.lit("}\n")
				break
			}
		}
	}
	if !ok || c.i != len(c.b) {
		return nil, nil
	}
	return leaf, vs
}

func (c *lineCursor) taken(from int) []byte { return c.said[from:len(c.said):len(c.said)] }

// quoted takes the rest of a string up to its end, as far as it is written the way most are.
func (c *lineCursor) quoted() bool {
	ascii := true
	in, n := c.b[c.i:], 0
	out := c.said[len(c.said):][:len(in)]
	for i := 0; i < len(in); i++ {
		x := in[i]
		if !itself[x] {
			switch {
			case x == '"':
				c.said, c.i = c.said[:len(c.said)+n], c.i+i+1
				return ascii || utf8.Valid(out[:n]) && !bytes.Contains(out[:n], []byte("\u2028")) && !bytes.Contains(out[:n], []byte("\u2029"))
			case x == '\\':
				if i++; i == len(in) || in[i] != '"' && in[i] != '\\' {
					return false
				}
				x = in[i]
			case x >= 0x80:
				ascii = false
			default:
				return false
			}
		}
		out[n] = x
		n++
	}
	return false
}

// itself are the bytes of ASCII that encoding/json writes as they are.
var itself = func() (t [256]bool) {
	for c := ' '; c < 0x80; c++ {
		t[c] = !strings.ContainsRune(`"\\<>&`, c)
	}
	return t
}()

var strictBase64 = base64.StdEncoding.Strict()

// base64 takes the bytes that stand there up to the end of a string.
func (c *lineCursor) base64() bool {
	n := max(0, bytes.IndexByte(c.b[c.i:], '"'))
	all, err := strictBase64.AppendDecode(c.said, c.b[c.i:c.i+n])
	if err != nil || strictBase64.EncodedLen(len(all)-len(c.said)) != n {
		return false
	}
	c.said, c.i = all, c.i+n
	return c.lit(`"`)
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
	_, err := w.Write(endLine(sum))
	return err
}

// contents are what a file holds of a log, as a replay asks a store for it. Nothing of
// it is proven.
type contents struct {
	Key   string // as the file states it: whoever made it chose it
	items []Item // of a Part
	of    map[string][]placed
	blobs []Blob
	file  io.ReaderAt // of a Bundle, nil for a Part
}

// placed is where an item is: in the file, and in the log or the part.
type placed struct {
	at       int64
	index, n uint32
}

// Bundle is a log in a bundle: a Snapshot for Verify, and what a replay asks of a store. Nothing of it is
// proven before Verify proved it. Its records are read from the file when they are asked for, so
// it takes some 16 bytes for each, and its blobs.
type Bundle struct {
	contents
	checkpoints [][]byte
	tree        Tree
	hashes      []Hash
	first, end  int64 // where its records are in the file
}

// fileLines are those of a part before its last, of which that is the digest.
type fileLines [][]byte

func openLines(b []byte) (fileLines, bool) {
	cut := bytes.LastIndexByte(bytes.TrimSuffix(b, []byte{'\n'}), '\n') + 1
	body, tail := b[:cut], b[cut:]
	sum := sha256.New()
	sum.Write(body)
	return bytes.SplitAfter(body, []byte{'\n'}), bytes.Equal(tail, endLine(sum))
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
	c.of[it.Session] = append(c.of[it.Session], placed{index: uint32(len(c.items)), n: uint32(min(it.N, math.MaxUint32))})
	c.items = append(c.items, it)
}

// endLength is how long the last line of a bundle is.
var endLength = int64(len(endLine(sha256.New())))

// endLine is the last line behind bytes of that digest.
func endLine(sum hash.Hash) []byte {
	end, _ := json.Marshal(bundleEnd{hex.EncodeToString(sum.Sum(nil))})
	return append(end, '\n')
}

// OpenBundle reads through a bundle of so many bytes, which have to stay there. The error is ErrBundle where
// it is none or was cut or changed.
func OpenBundle(file io.ReaderAt, size int64) (*Bundle, error) {
	b := &Bundle{contents: contents{of: map[string][]placed{}, file: file}, end: size - endLength}
	if what := b.read(); what != "" {
		return nil, fmt.Errorf("%w: %s", ErrBundle, what)
	}
	return b, nil
}

// read says what is wrong with the file.
func (b *Bundle) read() string {
	if b.end < 0 {
		return "it is too short"
	}
	sum, last := sha256.New(), make([]byte, endLength)
	if _, err := io.Copy(sum, io.NewSectionReader(b.file, 0, b.end)); err != nil {
		return "it cannot be read"
	}
	if n, _ := b.file.ReadAt(last, b.end); n < len(last) || !bytes.Equal(last, endLine(sum)) {
		return "its digest is of other bytes"
	}
	in := bufio.NewReaderSize(io.NewSectionReader(b.file, 0, b.end), 64<<10)
	next := func(to any) bool {
		line, err := in.ReadBytes('\n')
		b.first += int64(len(line))
		return err == nil && readLine(line, to)
	}
	var head bundleHead
	if !next(&head) || head.Bundle != 1 || head.Size < 0 || head.Blobs < 0 || head.Size > math.MaxUint32 {
		return "its first line is not that of this version"
	}
	b.Key = head.Key
	for _, c := range head.Checkpoints {
		b.checkpoints = append(b.checkpoints, []byte(c))
	}
	for range head.Blobs {
		var blob bundleBlob
		if !next(&blob) {
			return "a blob cannot be read"
		}
		b.blobs = append(b.blobs, Blob{Sum(blob.Blob), blob.Blob})
	}
	for j, err := range prepared(context.Background(), b.batches(), func(*prep) {}) {
		i := b.tree.Size()
		if i == head.Size {
			return "there are more lines than it says"
		}
		if err != nil || j.item.N > math.MaxUint32 {
			break
		}
		b.hashes = b.tree.appendHash(b.hashes[:0], j.hash)
		b.of[j.item.Session] = append(b.of[j.item.Session], placed{j.at, uint32(i), uint32(j.item.N)})
	}
	if i := b.tree.Size(); i < head.Size {
		return fmt.Sprintf("record %d cannot be read", i)
	}
	return ""
}

// blockBytes is how much of a file is read at once, where no line is longer.
const blockBytes = 64 << 10

// batches are the lines of its records, the last with the error of the file.
func (b *Bundle) batches() iter.Seq[*batch] {
	return func(yield func(*batch) bool) {
		for at, size := b.first, int64(blockBytes); at < b.end; {
			next := newBatch()
			next.lines, next.at = make([]byte, min(size, b.end-at)), at
			n, err := b.file.ReadAt(next.lines, at)
			if n < len(next.lines) {
				next.lines, next.err = nil, err
				yield(next)
				return
			}
			whole := bytes.LastIndexByte(next.lines, '\n') + 1
			if whole == 0 && at+int64(n) < b.end {
				size *= 2
				continue
			}
			if whole > 0 {
				next.lines = next.lines[:whole]
			}
			at, size = at+int64(len(next.lines)), blockBytes
			if !yield(next) {
				return
			}
		}
	}
}

// Size and Root are those of the records that are there.
func (b *Bundle) Size() int64 { return b.tree.Size() }

// Root is the root of their tree.
func (b *Bundle) Root() Hash { return b.tree.Root() }

// Scan yields them in log order.
func (b *Bundle) Scan(ctx context.Context, from int64) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		tree := Tree{}
		for j, err := range prepared(ctx, b.batches(), func(*prep) {}) {
			if err != nil {
				yield(Item{}, err)
				return
			}
			it := j.item
			it.Index, it.Hashes = tree.Size(), tree.appendHash(nil, j.hash)
			if it.Index >= from && !yield(it, nil) {
				return
			}
		}
	}
}

// nextItem reads a record of a file that was a bundle.
func nextItem(in *bufio.Reader, index int64) (Item, error) {
	line, err := in.ReadBytes('\n')
	var j prep
	if j.readBundled(line); err == nil && j.broken {
		err = ErrBundle
	}
	j.item.Index = index
	return j.item, err
}

// Checkpoints yields the checkpoints in the order in which they stand there.
func (b *Bundle) Checkpoints(context.Context) iter.Seq2[[]byte, error] {
	return withoutErrors(b.checkpoints)
}

// Blobs yields every blob under its digest.
func (b *Bundle) Blobs(context.Context) iter.Seq2[Blob, error] { return withoutErrors(b.blobs) }

// ReadHashes returns stored hashes of the tree.
func (b *Bundle) ReadHashes(indexes []int64) ([]Hash, error) {
	out, found := make([]Hash, len(indexes)), 0
	for it, err := range b.Scan(context.Background(), 0) {
		if err != nil {
			return nil, err
		}
		for i, x := range indexes {
			if n := StoredNode(x); n.Leaf == it.Index && n.Level < len(it.Hashes) {
				out[i], found = it.Hashes[n.Level], found+1
			}
		}
	}
	if found < len(indexes) {
		return nil, ErrNotFound
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
		for _, p := range c.of[session] {
			if uint64(p.n) < from {
				continue
			}
			var it Item
			var err error
			if c.file == nil {
				it = c.items[p.index]
			} else {
				it, err = nextItem(bufio.NewReaderSize(io.NewSectionReader(c.file, p.at, math.MaxInt64-p.at), 4<<10), int64(p.index))
			}
			if !yield(it, err) || err != nil {
				return
			}
		}
	}
}

// Value returns the bytes of one value.
func (c *contents) Value(ctx context.Context, session string, n uint64, name string) ([]byte, error) {
	for it, err := range c.Read(ctx, session, n) {
		if v, ok := it.Value(name); err == nil && ok && it.N == n {
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

package audit

import (
	"bytes"
	"context"
	"iter"
	"strconv"
	"sync"

	"golang.org/x/mod/sumdb/tlog"
)

// prep is an item with all that can be known of it without any other.
type prep struct {
	item     Item
	at       int64 // of a bundle: where in it the record's line is
	broken   bool  // which says no record
	rec      *Record
	err      error // the leaf is no record
	hash     Hash
	fault    Fault // a value does not belong to the leaf
	detail   string
	status   string
	decision uint64
	shadow   bool
}

func parseN(raw []byte) uint64 {
	if len(raw) == 0 { // as most have it, and an error is an allocation
		return 0
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || n > maxN {
		return 0
	}
	return n
}

func (j *prep) prepare() {
	if j.rec == nil && !j.parse() {
		return
	}
	j.fault, j.detail = CheckValues(j.rec, j.item.Values)
}

// parse reads the leaf. It is false where that is no record.
func (j *prep) parse() bool {
	var said [3][]byte
	if j.rec, said, j.err = parseRecord(j.item.Leaf, j.item.Session); j.err == nil {
		j.status, j.decision, j.shadow = members(j.rec, said)
	}
	return j.err == nil
}

// CheckValues says what is wrong with values, sorted by name, that are to be
// those a record commits to; some may be gone. The Fault is "" if nothing is.
func CheckValues(r *Record, values []Value) (f Fault, detail string) {
	last := ""
	for _, val := range values {
		d, ok := r.Commitment(val.Name)
		switch {
		case !ok || val.Name == last:
			return ValueUnknown, ""
		case d != Commit(val.Salt, val.Bytes):
			return ValueMismatch, "value " + val.Name
		}
		last = val.Name
	}
	return "", ""
}

// A batch is closed at this many items or bytes; a few batches are in flight,
// which bounds memory whatever the log holds.
const (
	batchItems = 256
	batchBytes = 1 << 20
	batches    = 4
)

type batch struct {
	preps []prep
	lines []byte        // of a bundle: what the preps are to be read of,
	at    int64         // and where that begins
	err   error         // of the source, after preps
	done  chan struct{} // closed when all are prepared
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// prepare reads what there is to read, hashes every leaf and does to each that is a record what each does.
func (b *batch) prepare(each func(*prep)) {
	if b.lines != nil {
		b.preps = make([]prep, 0, bytes.Count(b.lines, []byte{'\n'})+1)
	}
	session := "" // records of one often stand together
	for lines, at := b.lines, b.at; len(lines) > 0; {
		n := bytes.IndexByte(lines, '\n') + 1
		if n == 0 {
			n = len(lines)
		}
		b.preps = append(b.preps, prep{at: at})
		j := &b.preps[len(b.preps)-1]
		j.item.Session = session
		j.readBundled(lines[:n])
		session = j.item.Session
		lines, at = lines[n:], at+int64(n)
	}
	for i := range b.preps {
		if j := &b.preps[i]; !j.broken {
			j.hash = tlog.RecordHash(j.item.Leaf)
			each(j)
		}
	}
	close(b.done)
}

// inBatches yields the items of a source, the last batch with its error.
func inBatches(src iter.Seq2[Item, error]) iter.Seq[*batch] {
	return func(yield func(*batch) bool) {
		b, bytes := newBatch(), 0
		for it, err := range src {
			if err != nil {
				b.err = err
				break
			}
			if b.preps == nil {
				b.preps = make([]prep, 0, batchItems)
			}
			b.preps = append(b.preps, prep{item: it})
			bytes += len(it.Leaf)
			for i := range it.Values {
				bytes += len(it.Values[i].Bytes)
			}
			if len(b.preps) == batchItems || bytes >= batchBytes {
				if !yield(b) {
					return
				}
				b, bytes = newBatch(), 0
			}
		}
		yield(b)
	}
}

// prepared yields the items in order, prepared ahead by each, a batch by a goroutine; a line that
// says no record is ErrBundle. All of them have ended when the sequence ends.
func prepared(ctx context.Context, src iter.Seq[*batch], each func(*prep)) iter.Seq2[*prep, error] {
	return func(yield func(*prep, error) bool) {
		order := make(chan *batch, batches)
		quit := make(chan struct{})
		var running sync.WaitGroup
		defer running.Wait()
		defer close(quit)
		running.Go(func() {
			defer close(order)
			for b := range src {
				running.Go(func() { b.prepare(each) })
				select {
				case order <- b:
				case <-quit:
					return
				}
			}
		})
		for b := range order {
			<-b.done
			for i := range b.preps {
				j, err := &b.preps[i], error(nil)
				if j.broken {
					j, err = nil, ErrBundle
				}
				if ctx.Err() != nil || !yield(j, err) {
					return
				}
			}
			if b.err != nil {
				yield(nil, b.err)
				return
			}
		}
	}
}

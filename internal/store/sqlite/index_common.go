package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/writ-project/writ/internal/store/words"
	"github.com/writ-project/writ/memory"
)

// commons holds a common for each namespace that was searched.
type commons struct {
	least   int   // texts from which on a word is common
	journal int64 // texts taken out that the file tells of

	mu sync.Mutex
	of map[string]*common
}

// maxCommons is how many namespaces are held.
const maxCommons = 1000

func (c *commons) in(namespace string) *common {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.of[namespace]; k != nil {
		return k
	}
	if c.of == nil || len(c.of) >= maxCommons {
		c.of = map[string]*common{}
	}
	k := &common{least: c.least, turn: make(chan struct{}, 1)}
	k.leave()
	c.of[namespace] = k
	return k
}

func (c *commons) forget(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, namespace)
}

// common is what is known in memory of one namespace at one record: how long
// each text is, and where the common words stand. It is read from the file by
// the first search, which takes about ten microseconds a text, and follows what
// this process and others change, text by text: texts have ascending numbers,
// and the file tells which were taken out last. Of the words that are rare,
// which are nearly all, nothing is held.
type common struct {
	least int
	turn  chan struct{} // holds one token; who has it may use the rest

	namespace          // what is known; its number is 0 if nothing is
	docs      []known  // by slot, their numbers ascending
	kind      []uint32 // by slot, a place in kinds
	kinds     []string
	held      map[string]*[]place
	norms     []float64 // by slot; empty until a search needs them
	scores    []float64 // by slot, of one search
}

// known is a text; its number is negative if it was taken out.
type known struct {
	seq   int64
	id    string
	words int64
}

// place is a text that holds a word, and how often.
type place struct{ slot, times uint32 }

func (c *common) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-c.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *common) leave() { c.turn <- struct{}{} }

// follow brings what is known to the namespace as the transaction sees it.
func (c *common) follow(ctx context.Context, tx *sql.Tx, ns namespace) error {
	if c.namespace == ns {
		return nil
	}
	was := c.namespace
	c.namespace = namespace{} // until all is read, nothing is known
	c.norms = c.norms[:0]
	ok := false
	// Where it has become another one, it is quicker read anew, and the words
	// that are common now are other ones.
	if was.number == ns.number && was.at < ns.at && ns.last-was.last <= was.texts && int64(len(c.docs)) <= 2*was.texts+1000 {
		var err error
		if ok, err = c.remove(ctx, tx, was, ns); err != nil {
			return err
		}
	}
	if !ok {
		was = namespace{number: ns.number}
		c.docs, c.kind, c.kinds, c.held, c.norms, c.scores = nil, nil, nil, map[string]*[]place{}, nil, nil
	}
	if err := c.add(ctx, tx, &was, ok); err != nil {
		return err
	}
	if was.texts != ns.texts || was.words != ns.words || was.last > ns.last {
		return errIndexDamaged
	}
	if !ok {
		for w, in := range c.held {
			if len(*in) < c.least {
				delete(c.held, w)
			}
		}
	}
	c.namespace = ns
	return nil
}

// remove forgets the texts that were taken out since. It is not ok if the file
// no longer tells of all of them.
func (c *common) remove(ctx context.Context, tx *sql.Tx, was, ns namespace) (ok bool, err error) {
	if was.gone == ns.gone {
		return true, nil
	}
	rs, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT seq FROM gone_%d WHERE n > ?", ns.number), was.gone)
	if err != nil {
		return false, err
	}
	defer rs.Close()
	told := was.gone
	for rs.Next() {
		var seq int64
		if err := rs.Scan(&seq); err != nil {
			return false, err
		}
		told++
		slot, found := c.slot(seq)
		if !found {
			continue // it came and went since
		}
		c.docs[slot] = known{seq: -seq}
		for _, in := range c.held {
			if i, ok := slices.BinarySearchFunc(*in, slot, func(p place, slot uint32) int { return cmp.Compare(p.slot, slot) }); ok {
				*in = slices.Delete(*in, i, i+1)
			}
		}
	}
	return told == ns.gone, rs.Err()
}

// slot finds a text by its number.
func (c *common) slot(seq int64) (slot uint32, found bool) {
	i, _ := slices.BinarySearchFunc(c.docs, seq, func(d known, seq int64) int { return cmp.Compare(max(d.seq, -d.seq), seq) })
	return uint32(i), i < len(c.docs) && c.docs[i].seq == seq
}

// add reads the texts that came since, and counts in was what is known then.
// only says that words which are not held are rare; else all are held.
func (c *common) add(ctx context.Context, tx *sql.Tx, was *namespace, only bool) error {
	rs, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT seq, id, kind, words, sum, text FROM docs_%d WHERE seq > ? ORDER BY seq", was.number), was.last)
	if err != nil {
		return err
	}
	defer rs.Close()
	for rs.Next() {
		var k known
		var sum int64
		var d memory.Doc
		var text sql.RawBytes
		if err := rs.Scan(&k.seq, &d.ID, &d.Kind, &k.words, &sum, &text); err != nil {
			return err
		}
		if d.Text = string(text); sum != checksum(d) || len(c.docs) == math.MaxInt32 {
			return errIndexDamaged
		}
		kind := slices.Index(c.kinds, d.Kind)
		if kind < 0 {
			kind = len(c.kinds)
			c.kinds = append(c.kinds, d.Kind)
		}
		k.id = d.ID
		slot, n := uint32(len(c.docs)), int64(0)
		words.Each(d.Text, func(w []byte) {
			n++
			in := c.held[string(w)]
			if in == nil {
				if only {
					return
				}
				in = new([]place)
				c.held[string(w)] = in
			}
			if last := len(*in) - 1; last >= 0 && (*in)[last].slot == slot {
				(*in)[last].times++
			} else {
				*in = append(*in, place{slot, 1})
			}
		})
		if n != k.words {
			return errIndexDamaged
		}
		c.docs, c.kind = append(c.docs, k), append(c.kind, uint32(kind))
		was.last = k.seq
	}
	if err := rs.Err(); err != nil {
		return err
	}
	was.texts, was.words = 0, 0
	for i := range c.docs {
		if c.docs[i].seq > 0 {
			was.texts++
			was.words += c.docs[i].words
		}
	}
	return nil
}

// places says where a word stands, from memory or from FTS5. What is returned
// is good until the turn ends.
func (c *common) places(ctx context.Context, tx *sql.Tx, word string) (in []place, err error) {
	if held := c.held[word]; held != nil {
		return *held, nil
	}
	rs, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT doc FROM places_%d WHERE term = ?", c.number), word)
	if err != nil {
		return nil, err
	}
	defer rs.Close()
	for rs.Next() {
		var seq int64
		if err := rs.Scan(&seq); err != nil {
			return nil, err
		}
		slot, found := c.slot(seq)
		last := len(in) - 1
		switch {
		case !found || last >= 0 && in[last].slot > slot:
			return nil, errIndexDamaged
		case last >= 0 && in[last].slot == slot:
			in[last].times++
		default:
			in = append(in, place{slot, 1})
		}
	}
	if err := rs.Err(); err != nil {
		return nil, err
	}
	if len(in) >= c.least {
		c.held[word] = &in
	}
	return in, nil
}

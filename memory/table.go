package memory

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-project/writ/internal/words"
)

// copied is a copy of a row, nil of none. It shares nothing that is changed in place: a row
// that has such a thing says itself how it is copied.
func copied[T any](r *T) *T {
	if r == nil {
		return nil
	}
	if deep, ok := any(r).(interface{ copied() *T }); ok {
		return deep.copied()
	}
	c := *r
	return &c
}

// stored is a table of whatever rows.
type stored interface {
	over(base stored)
	spell(words *lexicon)
	merge()
	settle()
	pack()
	each(func(key string, row any) error) error
	parts() *words.Pack
}

// A table holds rows by key: those that changed lately as they are, the others in
// a pack. A table over a base is a draft: it reads through to the base and keeps
// what was changed to itself, until it is merged. So a proposal is judged on a
// state it has changed already, and a rejected one has changed nothing.
type table[T any] struct {
	base   *table[T]
	rows   map[string]*T
	packed words.Pack
	words  *lexicon
	// seen are rows of the pack that were read lately.
	seen map[string]*T `snapshot:"-"`
}

func (t *table[T]) over(base stored) { t.base = base.(*table[T]) }

func (t *table[T]) spell(words *lexicon) { t.words = words }

// get returns a row to read, nil if there is none.
func (t *table[T]) get(key string) *T {
	for ; t != nil; t = t.base {
		if r, ok := t.rows[key]; ok {
			return r
		}
		if t.packed.Len() > 0 {
			return t.unpacked(key)
		}
	}
	return nil
}

// has reports whether there is a row for each of some keys.
func (t *table[T]) has(keys []string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return t.get(key) == nil })
}

// mostSeen bounds how many rows are kept because they were read.
const mostSeen = 1024

func (t *table[T]) unpacked(key string) *T {
	if r, ok := t.seen[key]; ok {
		return r
	}
	i, ok := t.packed.Find(key)
	if !ok {
		return nil
	}
	_, row := t.packed.Entry(i)
	r := t.decode(row)
	if t.seen == nil || len(t.seen) >= mostSeen {
		t.seen = map[string]*T{}
	}
	t.seen[key] = r
	return r
}

func (t *table[T]) decode(row []byte) *T {
	r := new(T)
	d := decoder{t.words, words.Reader{B: row}}
	if d.value(reflect.ValueOf(r).Elem(), false); d.Short || len(d.B) > 0 {
		panic(errPack) // what is stored comes with a MAC
	}
	return r
}

// edit returns a row to change, nil if there is none.
func (t *table[T]) edit(key string) *T {
	if r, ok := t.rows[key]; ok {
		return r
	}
	r := copied(t.get(key))
	if r != nil {
		t.put(key, r)
	}
	return r
}

func (t *table[T]) put(key string, r *T) {
	if t.rows == nil {
		t.rows = map[string]*T{}
	}
	t.rows[key] = r
}

func (t *table[T]) merge() {
	for k, r := range t.rows {
		t.base.put(k, r)
	}
	t.base.settle()
}

// Rows stay as they are until there are some thousands, and a part of those in the
// pack: each is packed a bounded number of times.
const (
	mostLoose = 4096
	loosePart = 16
)

func (t *table[T]) settle() {
	if len(t.rows) >= mostLoose+t.packed.Len()/loosePart {
		t.pack()
	}
}

// pack packs all rows. What stood in a row that was changed since is not kept.
func (t *table[T]) pack() {
	if len(t.rows) == 0 {
		return
	}
	t.packed = t.packed.With(slices.Sorted(maps.Keys(t.rows)), func(b []byte, key string) ([]byte, bool) {
		return t.words.encode(b, reflect.ValueOf(t.rows[key]).Elem(), false), true
	})
	t.rows, t.seen = nil, nil
}

// parts is the pack, which holds all rows after pack.
func (t *table[T]) parts() *words.Pack { return &t.packed }

// keys returns the keys of a table, without those of its base, by number where they
// are ids, else bytewise.
func (t *table[T]) keys() []string {
	out := make([]string, 0, t.packed.Len()+len(t.rows))
	for i := range t.packed.Len() {
		k, _ := t.packed.Entry(i)
		if _, ok := t.rows[string(k)]; !ok {
			out = append(out, string(k))
		}
	}
	for k := range t.rows {
		out = append(out, k)
	}
	slices.SortFunc(out, compareID)
	return out
}

// each yields the rows of a table without a base in the order of keys, to be read.
func (t *table[T]) each(f func(key string, row any) error) error {
	for _, k := range t.keys() {
		r := t.rows[k]
		if r == nil {
			i, _ := t.packed.Find(k)
			_, row := t.packed.Entry(i)
			r = t.decode(row)
		}
		if err := f(k, r); err != nil {
			return err
		}
	}
	return nil
}

func (t *table[T]) all() []T {
	out := []T{}
	for _, k := range t.keys() {
		out = append(out, *copied(t.get(k)))
	}
	return out
}

// An id is a prefix, the number of the record that made the object and, for
// the second of its kind in one record and on, its place: prop_12, edge_12_2.
func mintID(prefix string, n uint64, i int) string {
	id := prefix + "_" + strconv.FormatUint(n, 10)
	if i > 1 {
		id += "_" + strconv.Itoa(i)
	}
	return id
}

func decisionID(n uint64) string { return mintID("dec", n, 1) }

// decision is what a record decided, nil if there is none.
func (s *State) decision(n uint64) *Decided { return s.decided.get(decisionID(n)) }

// splitID takes an id apart; ok is false for anything mintID does not write.
func splitID(id string) (prefix string, n uint64, i int, ok bool) {
	prefix, rest, ok := strings.Cut(id, "_")
	if !ok || prefix == "" {
		return "", 0, 0, false
	}
	num, place, second := strings.Cut(rest, "_")
	n, err := strconv.ParseUint(num, 10, 53)
	if err != nil || n == 0 {
		return "", 0, 0, false
	}
	i = 1
	if second {
		if i, err = strconv.Atoi(place); err != nil || i < 2 {
			return "", 0, 0, false
		}
	}
	return prefix, n, i, mintID(prefix, n, i) == id
}

// number is that of the record by which what has an id was made.
func number(id string) uint64 {
	_, n, _, _ := splitID(id)
	return n
}

func isID(prefix, s string) bool {
	p, _, _, ok := splitID(s)
	return ok && p == prefix
}

// compareID orders ids by prefix, number and place, everything else bytewise.
func compareID(a, b string) int {
	pa, na, ia, oka := splitID(a)
	pb, nb, ib, okb := splitID(b)
	if !oka || !okb {
		return strings.Compare(a, b)
	}
	return cmp.Or(strings.Compare(pa, pb), cmp.Compare(na, nb), cmp.Compare(ia, ib))
}

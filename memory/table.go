package memory

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A row is one object of the state. A copy shares nothing that is changed in
// place.
type row[T any] interface {
	*T
	copied() *T
}

// A table holds rows by key. A table over a base is a draft: it reads through
// to the base and keeps what was changed to itself, until it is merged. So a
// proposal is judged on a state it has changed already, and a rejected one has
// changed nothing.
type table[T any, P row[T]] struct {
	base *table[T, P]
	rows map[string]*T
}

func newTable[T any, P row[T]]() *table[T, P] { return &table[T, P]{rows: map[string]*T{}} }

func (t *table[T, P]) draft() *table[T, P] { return &table[T, P]{base: t} }

// get returns a row to read, nil if there is none.
func (t *table[T, P]) get(key string) *T {
	for ; t != nil; t = t.base {
		if r, ok := t.rows[key]; ok {
			return r
		}
	}
	return nil
}

// edit returns a row to change, nil if there is none.
func (t *table[T, P]) edit(key string) *T {
	r, ok := t.rows[key]
	if ok || t.base == nil {
		return r
	}
	if r = t.base.get(key); r != nil {
		r = P(r).copied()
		t.put(key, r)
	}
	return r
}

func (t *table[T, P]) put(key string, r *T) {
	if t.rows == nil {
		t.rows = map[string]*T{}
	}
	t.rows[key] = r
}

// merge moves what a draft changed into its base.
func (t *table[T, P]) merge() {
	for k, r := range t.rows {
		t.base.rows[k] = r
	}
}

// keys returns the keys of a table without a base, by number where they are
// ids, else bytewise.
func (t *table[T, P]) keys() []string {
	out := make([]string, 0, len(t.rows))
	for k := range t.rows {
		out = append(out, k)
	}
	slices.SortFunc(out, compareID)
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

// isID reports whether s is an id of that prefix.
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

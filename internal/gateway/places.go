package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/provenance"
)

// The places that acts lowered (R38) are a sequence of the log of their own, one
// for each namespace, and their numbers are those of its records: a result says
// at which number it was judged, so a session is made again from its own records
// and that sequence.

const (
	// KindPlace is the kind of the record of a lowered place, KindClear of the
	// record that an operator cleared one.
	KindPlace audit.Kind = "place"
	KindClear audit.Kind = "clear"

	valuePlace = "place" // place: the provenance.Place

	// placesPrefix tells these records from a session's: no public id of a
	// session holds a hyphen.
	placesPrefix = "s_places-"

	// defaultNamespace is whose places are lowered where no other is named.
	defaultNamespace = "default"
)

type placeData struct {
	Session string `json:"session"` // whose act it was
}

type clearData struct {
	Place uint64 `json:"place"`
}

// placesAt says at which number of which namespace a result was judged.
type placesAt struct {
	Namespace string `json:"namespace"`
	N         uint64 `json:"n"`
	Own       uint64 `json:"own,omitempty"` // the place the call itself lowered
}

// at says at which places a result was judged, nil where there were none.
func (p *places) at(res *gate.Result) *placesAt {
	if res.Through == 0 {
		return nil
	}
	return &placesAt{strings.TrimPrefix(p.log, placesPrefix), res.Through, res.Own}
}

// placesStore is what the places of a namespace are read from.
type placesStore interface {
	recordReader
	Head(ctx context.Context, session string) (uint64, error)
}

// places are the lowered places of one namespace as this process has read them.
// Others may lower further: who judges a result reads on first.
type places struct {
	store placesStore
	log   string // the sequence's name

	mu  sync.Mutex
	n   uint64 // of the newest record read
	all *provenance.Places
}

func newPlaces(store placesStore, namespace string) *places {
	return &places{store: store, log: placesPrefix + namespace, all: provenance.NewPlaces()}
}

// upTo reads on to number n at least, and fails if the log does not have it.
func (p *places) upTo(ctx context.Context, n uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n >= n {
		return nil
	}
	for rec, err := range recordsFrom(ctx, p.store, p.log, p.n+1) {
		if err != nil {
			return err
		}
		if _, err := audit.ParseEntry(rec.item.Leaf, rec.item.Values...); err != nil {
			return err
		}
		if err := p.fold(rec.Record, &rec.item); err != nil {
			return err
		}
		p.n = rec.N
	}
	if p.n < n {
		return errors.New("places that a result was judged with are not in the log")
	}
	return nil
}

// fold folds one record. Nothing erases a place.
func (p *places) fold(rec *audit.Record, it *audit.Item) error {
	switch rec.Kind {
	case KindPlace:
		var pl provenance.Place
		b, ok := it.Value(valuePlace)
		if !ok {
			return &audit.AlteredError{Session: rec.Session, N: rec.N, Fault: audit.ValueMissing}
		}
		if err := json.Unmarshal(b, &pl); err != nil {
			return fmt.Errorf("the lowered place %d: %w", rec.N, err)
		}
		p.all.Lower(rec.N, pl)
	case KindClear:
		var c clearData
		if err := json.Unmarshal(rec.Data, &c); err != nil {
			return fmt.Errorf("cleared %d: %w", rec.N, err)
		}
		p.all.Clear(c.Place, rec.N)
	}
	return nil
}

// now reads what any process lowered so far and returns the number.
func (p *places) now(ctx context.Context) (uint64, error) {
	n, err := p.store.Head(ctx, p.log)
	if err == nil {
		err = p.upTo(ctx, n)
	}
	return n, err
}

// lower puts the place an act lowers on record, durably, before it is sent, and
// returns its number; 0 where it lowers none anew. Where it has to wait for the disk,
// beside is called first.
func (p *places) lower(ctx context.Context, st audit.Store, session string, at time.Time, of func(*provenance.Places) (provenance.Place, bool), beside func()) (n uint64, err error) {
	if _, err := p.now(ctx); err != nil {
		return 0, err
	}
	pl, ok := of(p.all)
	if !ok || p.all.Covers(pl) {
		return 0, nil
	}
	beside()
	return p.append(ctx, st, at, KindPlace, placeData{session}, value{valuePlace, mustJSON(pl)})
}

// append appends one record, after the opening one where there is none.
func (p *places) append(ctx context.Context, st audit.Store, at time.Time, kind audit.Kind, data any, vs ...value) (uint64, error) {
	for try := 0; ; try++ {
		n, err := p.now(ctx)
		if err != nil {
			return 0, err
		}
		var es []audit.Entry
		if n == 0 {
			open, err := sealRecord(audit.Record{Kind: audit.KindOpen, Session: p.log, N: 1, Time: at})
			if err != nil {
				return 0, err
			}
			es = append(es, open)
		}
		e, err := sealRecord(audit.Record{Kind: kind, Session: p.log, N: n + uint64(len(es)) + 1, Time: at, Data: mustJSON(data)}, vs...)
		if err != nil {
			return 0, err
		}
		if _, err = st.Append(ctx, p.log, n, append(es, e)); err == nil {
			_, err = p.now(ctx)
			return e.N(), err
		} else if !errors.Is(err, audit.ErrConflict) || try == 8 {
			return 0, err
		}
	}
}

func isPlaces(session string) bool { return strings.HasPrefix(session, placesPrefix) }

// LoweredPlace is a place in force, for an operator.
type LoweredPlace struct {
	N       uint64           `json:"n"`
	Time    time.Time        `json:"time"`
	Session string           `json:"session"` // whose act lowered it
	Place   provenance.Place `json:"place"`
}

func (l LoweredPlace) same(o LoweredPlace) bool {
	a, b := &l.Place, &o.Place
	return a.Server == b.Server && a.Tool == b.Tool && a.Links == b.Links && slices.Equal(a.At, b.At)
}

// LoweredPlaces lists the places of a namespace that are in force, oldest first.
func LoweredPlaces(ctx context.Context, st audit.Store, namespace string) ([]LoweredPlace, error) {
	var out []LoweredPlace
	for rec, err := range recordsFrom(ctx, st, placesPrefix+namespace, 1) {
		if err != nil {
			return nil, err
		}
		switch rec.Kind {
		case KindPlace:
			var d placeData
			l := LoweredPlace{N: rec.N, Time: rec.Time}
			b, _ := rec.item.Value(valuePlace)
			if err := errors.Join(json.Unmarshal(rec.Data, &d), json.Unmarshal(b, &l.Place)); err != nil {
				return nil, fmt.Errorf("the lowered place %d cannot be read: %w", rec.N, err)
			}
			l.Session = d.Session
			covers := func(o LoweredPlace) bool {
				return o.same(l) && o.Place.Label <= l.Place.Label && o.Place.CountsWith(&l.Place)
			}
			if !slices.ContainsFunc(out, covers) { // the second of a place is for what the first act answers
				out = append(out, l)
			}
		case KindClear:
			var c clearData
			if err := json.Unmarshal(rec.Data, &c); err != nil {
				return nil, err
			}
			if i := slices.IndexFunc(out, func(l LoweredPlace) bool { return l.N == c.Place }); i >= 0 {
				out = slices.DeleteFunc(out, out[i].same)
			}
		}
	}
	return out, nil
}

// ClearPlace records that an operator cleared a place: what is read from it
// from now on keeps its label. The error is audit.ErrNotFound where no place in
// force has that number.
func ClearPlace(ctx context.Context, st audit.Store, namespace string, n uint64, at time.Time) error {
	all, err := LoweredPlaces(ctx, st, namespace)
	if err != nil {
		return err
	}
	for _, l := range all {
		if l.N == n {
			_, err := newPlaces(st, namespace).append(ctx, st, at.UTC().Truncate(time.Microsecond), KindClear, clearData{n})
			return err
		}
	}
	return audit.ErrNotFound
}

package memory

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/writ-project/writ/internal/words"
)

// State is everything a namespace's events come to: what is believed, on what
// support, and how that came about. It is changed by Apply alone, reads no
// clock, and is used by one goroutine at a time. Its zero value is not usable.
type State struct {
	namespace string
	head      uint64
	latest    Instant
	policy    string
	mode      Mode

	observations *table[Observation, *Observation]
	clients      *table[ref, *ref] // principal and the caller's own id
	entities     *table[Entity, *Entity]
	persons      *table[ref, *ref] // principal to entity
	slots        *table[Slot, *Slot]
	propositions *table[Proposition, *Proposition]
	edges        *table[Edge, *Edge]
	links        *table[ref, *ref] // type, from, to
	tests        *table[Test, *Test]
	workspaces   *table[Workspace, *Workspace]
	items        *table[Item, *Item]
	carry        *table[carryList, *carryList]
	episodes     *table[Episode, *Episode]
	sources      *table[Source, *Source]
	predicates   *table[Predicate, *Predicate]
	aliases      *table[ref, *ref] // of predicates
	rates        *table[rate, *rate]

	decided *table[Decided, *Decided]
	// beliefs only grow. A draft appends to its own.
	beliefs map[string][]Belief

	// swept is when the last sweep was recorded.
	swept Instant

	ix      *indexes
	isDraft bool
	// texts is what is found by words, but for the texts of the objects in unread.
	texts  words.Index
	unread []string
	// fresh are the edges a draft made: indexes do not know them yet.
	fresh []string
}

// ref is an id.
type ref struct {
	ID string `json:"id"`
}

func (r *ref) copied() *ref { c := *r; return &c }

// New returns the state of a namespace without events.
func New() *State {
	return &State{
		observations: newTable[Observation, *Observation](), clients: newTable[ref, *ref](),
		entities: newTable[Entity, *Entity](), persons: newTable[ref, *ref](), slots: newTable[Slot, *Slot](),
		propositions: newTable[Proposition, *Proposition](), edges: newTable[Edge, *Edge](), links: newTable[ref, *ref](),
		tests: newTable[Test, *Test](), workspaces: newTable[Workspace, *Workspace](), items: newTable[Item, *Item](),
		carry: newTable[carryList, *carryList](), episodes: newTable[Episode, *Episode](), sources: newTable[Source, *Source](),
		decided: newTable[Decided, *Decided](), predicates: newTable[Predicate, *Predicate](), aliases: newTable[ref, *ref](), rates: newTable[rate, *rate](),
		beliefs: map[string][]Belief{}, ix: newIndexes(),
	}
}

// Swept is when the last sweep was recorded; zero is never.
func (s *State) Swept() time.Time {
	if s.swept == 0 {
		return time.Time{}
	}
	return s.swept.Time()
}

// draft returns a state that reads through to s and keeps its changes.
func (s *State) draft() *State {
	return &State{
		namespace: s.namespace, head: s.head, latest: s.latest, swept: s.swept, policy: s.policy, mode: s.mode,
		observations: s.observations.draft(), clients: s.clients.draft(), entities: s.entities.draft(), persons: s.persons.draft(),
		slots: s.slots.draft(), propositions: s.propositions.draft(), edges: s.edges.draft(), links: s.links.draft(),
		tests: s.tests.draft(), workspaces: s.workspaces.draft(), items: s.items.draft(), carry: s.carry.draft(),
		episodes: s.episodes.draft(), sources: s.sources.draft(), predicates: s.predicates.draft(), aliases: s.aliases.draft(),
		rates: s.rates.draft(), decided: s.decided.draft(), beliefs: map[string][]Belief{}, ix: s.ix, isDraft: true,
	}
}

// merge makes a draft's changes those of its base, s.
func (s *State) merge(d *State) {
	s.namespace, s.head, s.latest, s.swept, s.policy, s.mode = d.namespace, d.head, d.latest, d.swept, d.policy, d.mode
	d.observations.merge()
	d.clients.merge()
	d.entities.merge()
	d.persons.merge()
	d.slots.merge()
	d.propositions.merge()
	d.edges.merge()
	d.links.merge()
	d.tests.merge()
	d.workspaces.merge()
	d.items.merge()
	d.carry.merge()
	d.episodes.merge()
	d.sources.merge()
	d.predicates.merge()
	d.aliases.merge()
	d.rates.merge()
	d.decided.merge()
	for id, b := range d.beliefs {
		s.beliefs[id] = append(s.beliefs[id], b...)
	}
}

// Namespace returns the namespace's name, "" before its first event.
func (s *State) Namespace() string { return s.namespace }

// Head returns the number of the newest event; the next has one more.
func (s *State) Head() uint64 { return s.head }

// PolicyHash returns the hash of the policy in force.
func (s *State) PolicyHash() string { return s.policy }

// Mode returns the mode of the namespace.
func (s *State) Mode() Mode { return s.mode }

// ErrOrder says that an event is not the next one: one is missing, stands
// twice, or belongs to another namespace. Nothing was changed.
var ErrOrder = errors.New("memory: the event is not the next of this namespace")

// Apply makes the state that of one more event. value is what the event's
// record committed to, nil where it was erased. An event that is not the next,
// or does not fit the state, is refused and changes nothing. Apply computes no
// belief: it puts down what the event says, so that a log means the same under
// every later version and policy.
func (s *State) Apply(e *Event, value []byte) error {
	commit, err := s.Prepare(e, value)
	if err == nil {
		commit()
	}
	return err
}

// Prepare is Apply up to where the state changes: it refuses what Apply would
// refuse, and commit, which cannot fail, does the rest. Nothing else may be
// done to the state in between.
func (s *State) Prepare(e *Event, value []byte) (commit func(), err error) {
	if e.N != s.head+1 || s.head > 0 && e.Namespace != s.namespace {
		return nil, ErrOrder
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	if value != nil {
		if err := checkValue(value); err != nil {
			return nil, err
		}
	}
	d := s.draft()
	if err := d.put(e, value); err != nil {
		return nil, err
	}
	return func() {
		s.merge(d)
		s.index(e)
		ids := unreadOf(e)
		s.unread = append(s.unread, ids...)
		for _, id := range ids { // what was erased is not kept until the next search
			s.texts.Drop(id)
		}
	}, nil
}

// Digest returns the SHA-256, in hex, of the state's canonical encoding.
func (s *State) Digest() string {
	h := sha256.New()
	if err := s.Encode(h); err != nil {
		return "" // a hash does not fail to write, and the rows are plain
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Encode writes the state in its one canonical form: a line of JSON for each
// row, tables in a fixed order, rows by their number.
func (s *State) Encode(w io.Writer) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	flush := func(full int) error {
		if buf.Len() < full {
			return nil
		}
		_, err := w.Write(buf.Bytes())
		buf.Reset()
		return err
	}
	line := func(table, key string, v any) error {
		if err := enc.Encode(struct {
			Table string `json:"table"`
			Key   string `json:"key,omitempty"`
			Row   any    `json:"row"`
		}{table, key, v}); err != nil {
			return fmt.Errorf("memory: encode: %w", err)
		}
		return flush(64 << 10)
	}
	err := line("state", "", struct {
		V         int     `json:"v"`
		Namespace string  `json:"namespace"`
		Head      uint64  `json:"head"`
		Latest    Instant `json:"latest"`
		Policy    string  `json:"policy"`
		Mode      Mode    `json:"mode"`
	}{EventVersion, s.namespace, s.head, s.latest, s.policy, s.mode})
	for _, t := range []func() error{
		func() error { return rowsOf(s.sources, "source", line) },
		func() error { return rowsOf(s.predicates, "predicate", line) },
		func() error { return rowsOf(s.aliases, "predicate_alias", line) },
		func() error { return rowsOf(s.observations, "observation", line) },
		func() error { return rowsOf(s.clients, "client", line) },
		func() error { return rowsOf(s.entities, "entity", line) },
		func() error { return rowsOf(s.persons, "person", line) },
		func() error { return rowsOf(s.slots, "slot", line) },
		func() error { return rowsOf(s.propositions, "proposition", line) },
		func() error { return rowsOf(s.edges, "edge", line) },
		func() error { return rowsOf(s.links, "link", line) },
		func() error { return rowsOf(s.tests, "test", line) },
		func() error { return rowsOf(s.workspaces, "workspace", line) },
		func() error { return rowsOf(s.items, "item", line) },
		func() error { return rowsOf(s.carry, "carry", line) },
		func() error { return rowsOf(s.episodes, "episode", line) },
		func() error { return rowsOf(s.rates, "rate", line) },
		func() error { return rowsOf(s.decided, "decided", line) },
		func() error {
			ids := make([]string, 0, len(s.beliefs))
			for id := range s.beliefs {
				ids = append(ids, id)
			}
			slices.SortFunc(ids, compareID)
			for _, id := range ids {
				for _, b := range s.beliefs[id] {
					if err := line("belief", id, b); err != nil {
						return err
					}
				}
			}
			return nil
		},
		func() error { return flush(0) },
	} {
		if err == nil {
			err = t()
		}
	}
	return err
}

func rowsOf[T any, P row[T]](t *table[T, P], name string, line func(table, key string, v any) error) error {
	for _, k := range t.keys() {
		if err := line(name, k, t.rows[k]); err != nil {
			return err
		}
	}
	return nil
}

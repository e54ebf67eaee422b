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

	"github.com/writ-project/writ/internal/words"
)

// State is everything a namespace's events come to: what is believed, on what
// support, and how that came about. It is changed by Apply alone, reads no
// clock, and is used by one goroutine at a time. Its zero value is not usable.
type State struct {
	namespace string
	head      uint64
	inherited uint64 // the newest event of an earlier version
	latest    Instant
	seen      uint64 // where in the log the newest recorded evidence stands
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
	episodes     *table[Episode, *Episode]
	sources      *table[Source, *Source]
	predicates   *table[Predicate, *Predicate]
	aliases      *table[ref, *ref] // of predicates
	rates        *table[rate, *rate]

	decided *table[Decided, *Decided]
	words   *lexicon
	ix      *indexes
	isDraft bool
	// texts is what is found by words, but for the texts of the objects in unread.
	texts  words.Index
	unread []string
	// hearings are questions as they were heard since the newest event, of which
	// held statements.
	hearings map[string]*hearing
	held     int
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
	w := &lexicon{}
	return &State{
		words: w, observations: newTable[Observation, *Observation](w), clients: newTable[ref, *ref](w),
		entities: newTable[Entity, *Entity](w), persons: newTable[ref, *ref](w), slots: newTable[Slot, *Slot](w),
		propositions: newTable[Proposition, *Proposition](w), edges: newTable[Edge, *Edge](w), links: newTable[ref, *ref](w),
		tests: newTable[Test, *Test](w), workspaces: newTable[Workspace, *Workspace](w),
		episodes: newTable[Episode, *Episode](w), sources: newTable[Source, *Source](w), decided: newTable[Decided, *Decided](w),
		predicates: newTable[Predicate, *Predicate](w), aliases: newTable[ref, *ref](w), rates: newTable[rate, *rate](w),
		ix: newIndexes(w),
	}
}

// draft returns a state that reads through to s and keeps its changes.
func (s *State) draft() *State {
	return &State{
		namespace: s.namespace, head: s.head, inherited: s.inherited, seen: s.seen, latest: s.latest, policy: s.policy, mode: s.mode,
		observations: s.observations.draft(), clients: s.clients.draft(), entities: s.entities.draft(), persons: s.persons.draft(),
		slots: s.slots.draft(), propositions: s.propositions.draft(), edges: s.edges.draft(), links: s.links.draft(),
		tests: s.tests.draft(), workspaces: s.workspaces.draft(),
		episodes: s.episodes.draft(), sources: s.sources.draft(), predicates: s.predicates.draft(), aliases: s.aliases.draft(),
		rates: s.rates.draft(), decided: s.decided.draft(), words: s.words, ix: s.ix, isDraft: true,
	}
}

// merge makes a draft's changes those of its base, s.
func (s *State) merge(d *State) {
	s.namespace, s.head, s.inherited, s.seen, s.latest, s.policy, s.mode = d.namespace, d.head, d.inherited, d.seen, d.latest, d.policy, d.mode
	for _, t := range d.tables() {
		t.merge()
	}
}

// tables are all tables, in the order in which they are written.
func (s *State) tables() []stored {
	return []stored{s.sources, s.predicates, s.aliases, s.observations, s.clients, s.entities, s.persons, s.slots, s.propositions, s.edges, s.links,
		s.tests, s.workspaces, s.episodes, s.rates, s.decided}
}

// tableNames are what the tables are called where the state is written out.
var tableNames = []string{"source", "predicate", "predicate_alias", "observation", "client", "entity", "person", "slot", "proposition", "edge", "link",
	"test", "workspace", "episode", "rate", "decided"}

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
// or does not fit the state, is refused and changes nothing.
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
	// Versions do not fall: an event of an earlier one is not decided again.
	if e.N != s.head+1 || s.head > 0 && e.Namespace != s.namespace || e.V < EventVersion && s.inherited < s.head {
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
		s.hearings, s.held = nil, 0
		s.index(e)
		for _, t := range s.ix.tables() {
			t.settle()
		}
		if slices.ContainsFunc(e.Ops, func(o Op) bool { return o.Erase != nil }) {
			s.pack()
		}
		ids := s.Touches(e)
		s.unread = append(s.unread, ids...)
		s.texts.Drop(ids...) // what was erased is not kept until the next search
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
	for i, t := range s.tables() {
		if err == nil {
			err = t.each(func(key string, row any) error { return line(tableNames[i], key, row) })
		}
	}
	if err == nil {
		err = flush(0)
	}
	return err
}

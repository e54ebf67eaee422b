package memory

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/writ-project/writ/internal/words"
)

// State is everything a namespace's events come to: what is believed, on what
// support, and how that came about. It is changed by Apply alone, reads no
// clock, and is used by one goroutine at a time. Its zero value is not usable.
type State struct {
	reached
	observations table[Observation]
	clients      refs // principal and the caller's own id
	entities     table[Entity]
	persons      refs // principal to entity
	slots        table[Slot]
	propositions table[Proposition]
	edges        table[Edge]
	links        refs // type, from, to
	tests        table[Test]
	workspaces   table[Workspace]
	episodes     table[Episode]
	sources      table[Source]
	predicates   table[Predicate]
	aliases      refs // of predicates
	rates        table[rate]
	decided      table[Decided]

	words   *lexicon
	ix      *indexes
	isDraft bool
	// texts are the quotes as they are found by words, and beside them what stands so,
	// but for the texts of the objects in unread.
	texts, beside words.Index
	unread        []string
	// hearings are questions as they were heard since the newest event, of which
	// held statements.
	hearings map[string]*hearing `snapshot:"-"`
	held     int                 `snapshot:"-"`
	erasure  string              // the newest, "" where nobody looked for it
	// fresh are the rows that a draft made, and the entities it gave names to: indexes
	// do not know them yet.
	fresh []any `snapshot:"-"`
}

// reached is how far a state has come.
type reached struct {
	namespace string
	head      uint64
	inherited uint64 // the newest event of an earlier version
	latest    Instant
	seen      uint64 // where in the log the newest recorded evidence stands
	policy    string
	mode      Mode
}

// refs are ids by a key.
type refs struct{ table[ref] }

type ref struct {
	ID string `json:"id"`
}

// of is the id under a key, "" if there is none.
func (t *refs) of(key string) string {
	if r := t.get(key); r != nil {
		return r.ID
	}
	return ""
}

func (t *refs) set(key, id string) { t.put(key, &ref{id}) }

// New returns the state of a namespace without events.
func New() *State {
	s := &State{words: &lexicon{}, ix: &indexes{}}
	for _, t := range s.all() {
		t.spell(s.words)
	}
	return s
}

// draft returns a state that reads through to s and keeps its changes.
func (s *State) draft() *State {
	d := &State{reached: s.reached, words: s.words, ix: s.ix, isDraft: true}
	base := s.tables()
	for i, t := range d.tables() {
		t.over(base[i].stored)
	}
	return d
}

func (s *State) merge(d *State) {
	s.reached = d.reached
	for _, t := range d.tables() {
		t.merge()
	}
}

// named is a table, and what it is called where the state is written out.
type named struct {
	name string
	stored
}

// tables are all tables, in the order in which they are written.
func (s *State) tables() []named {
	return []named{{"source", &s.sources}, {"predicate", &s.predicates}, {"predicate_alias", &s.aliases.table}, {"observation", &s.observations},
		{"client", &s.clients.table}, {"entity", &s.entities}, {"person", &s.persons.table}, {"slot", &s.slots}, {"proposition", &s.propositions},
		{"edge", &s.edges}, {"link", &s.links.table}, {"test", &s.tests}, {"workspace", &s.workspaces}, {"episode", &s.episodes},
		{"rate", &s.rates}, {"decided", &s.decided}}
}

// Namespace returns the namespace's name, "" before its first event.
func (s *State) Namespace() string { return s.namespace }

// Head returns the number of the newest event; the next has one more.
func (s *State) Head() uint64 { return s.head }

// PolicyHash returns the hash of the policy in force.
func (s *State) PolicyHash() string { return s.policy }

// Mode returns the mode of the namespace.
func (s *State) Mode() Mode { return s.mode }

// Sources returns the registered sources, by their ids.
func (s *State) Sources() []Source { return s.sources.all() }

// Predicates returns the declared predicates, by what their names are equal in.
func (s *State) Predicates() []Predicate { return s.predicates.all() }

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
	if len(value) > valueLimits.Bytes { // what was rejected may have been anything else
		return nil, errors.New("memory: a value is too large")
	}
	d := s.draft()
	if err := d.put(e, value); err != nil {
		return nil, err
	}
	return func() {
		s.merge(d)
		s.hearings, s.held, s.erasure = nil, 0, ""
		s.index(e, d.fresh)
		for _, t := range s.ix.tables() {
			t.settle()
		}
		if _, erases := e.Erased(); erases {
			s.pack()
		}
		ids := s.Touches(e)
		s.unread = append(s.unread, ids...)
		s.texts.Drop(ids...) // what was erased is not kept until the next search
		s.beside.Drop(ids...)
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
	out := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	line := func(table, key string, v any) error {
		if err := enc.Encode(struct {
			Table string `json:"table"`
			Key   string `json:"key,omitempty"`
			Row   any    `json:"row"`
		}{table, key, v}); err != nil {
			return fmt.Errorf("memory: encode: %w", err)
		}
		return nil
	}
	err := line("state", "", struct {
		V         int     `json:"v"`
		Namespace string  `json:"namespace"`
		Head      uint64  `json:"head"`
		Latest    Instant `json:"latest"`
		Policy    string  `json:"policy"`
		Mode      Mode    `json:"mode"`
	}{EventVersion, s.namespace, s.head, s.latest, s.policy, s.mode})
	for _, t := range s.tables() {
		if err == nil {
			err = t.each(func(key string, row any) error { return line(t.name, key, row) })
		}
	}
	if err == nil {
		err = out.Flush()
	}
	return err
}

package memory

import (
	"encoding/binary"
	"io"

	"github.com/writ-project/writ/internal/words"
)

// Snapshot returns what writes the state as it is now, its indexes with it, so that
// another process goes on from it without its events. It may be called while the
// state goes on. What it writes is no evidence: whoever keeps it guards it by a MAC,
// binds it to the record it stands at and to the program that wrote it, and drops it
// where something is erased; who verifies folds the events.
func (s *State) Snapshot() (write func(io.Writer) error) {
	s.pack()
	s.readTexts()
	texts, beside := s.texts.AppendTo(nil), s.beside.AppendTo(nil)
	var b []byte
	text := func(t string) { b = append(binary.AppendUvarint(b, uint64(len(t))), t...) }
	for _, t := range []string{s.namespace, s.policy, string(s.mode)} {
		text(t)
	}
	for _, n := range []uint64{s.head, s.inherited, s.seen, uint64(s.latest), uint64(len(s.words.words))} {
		b = binary.AppendUvarint(b, n)
	}
	for _, t := range s.words.words {
		text(t)
	}
	packs := make([]words.Pack, 0, 40)
	for _, t := range s.all() {
		packs = append(packs, *t.parts()) // none is changed in place
	}
	return func(w io.Writer) error {
		for _, p := range packs {
			head, data := p.Stored(b)
			if _, err := w.Write(head); err != nil {
				return err
			}
			if _, err := w.Write(data); err != nil {
				return err
			}
			b = head[:0]
		}
		if _, err := w.Write(append(binary.AppendUvarint(b[:0], uint64(len(texts))), texts...)); err != nil {
			return err
		}
		_, err := w.Write(beside)
		return err
	}
}

// FromSnapshot returns the state that Snapshot wrote. What it reads is whole, of
// this program and of this namespace, or it is not called.
func FromSnapshot(b []byte) (*State, error) {
	s, d := New(), &words.Reader{B: b}
	text := func() string { return string(d.Take(d.Uint())) }
	s.namespace, s.policy, s.mode = text(), text(), Mode(text())
	s.head, s.inherited, s.seen, s.latest = d.Uint(), d.Uint(), d.Uint(), Instant(d.Uint())
	for range d.Uint() {
		if d.Short {
			return nil, errPack
		}
		s.words.number(text())
	}
	for _, t := range s.all() {
		*t.parts() = d.Pack()
	}
	if s.texts.Load(d.Take(d.Uint())) != nil || d.Short || s.beside.Load(d.B) != nil {
		return nil, errPack
	}
	return s, nil
}

// all are the tables of the state and of its indexes.
func (s *State) all() []stored {
	out := s.ix.tables()
	for _, t := range s.tables() {
		out = append(out, t.stored)
	}
	return out
}

// pack packs all that is not: of what was changed nothing of before is kept.
func (s *State) pack() {
	for _, t := range s.all() {
		t.pack()
	}
}

// readTexts brings the indexes of the texts to the state.
func (s *State) readTexts() {
	for _, id := range s.unread {
		kind, text := s.Text(id)
		switch {
		case text == "":
		case s.besides(id):
			s.beside.Put(id, kind, text)
		default:
			s.texts.Put(id, kind, text)
		}
	}
	s.unread = nil
}

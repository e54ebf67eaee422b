package memory

import (
	"maps"
	"slices"
)

// Clone is a copy of the state as it is now, its indexes with it, that may be read
// beside what goes on: of it a snapshot is made, from which another process goes on
// without the events. That is no evidence: whoever keeps it guards it by a MAC, binds
// it to the record it stands at and to the program that wrote it, and drops it where
// something is erased; who verifies folds the events.
func (s *State) Clone() *State {
	s.pack()
	s.readTexts()
	c := New()
	c.reached = s.reached
	*c.words = lexicon{slices.Clone(s.words.words), maps.Clone(s.words.at)}
	of := s.all()
	for i, t := range c.all() {
		*t.parts() = *of[i].parts() // none is changed in place
	}
	c.texts, c.beside = s.texts.Clone(), s.beside.Clone()
	return c
}

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

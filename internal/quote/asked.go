package quote

import (
	"slices"

	"github.com/writ-project/writ/internal/words"
)

// Asked reports whether a unit holds the words of whom and of what the fact is
// about.
func (s *Fact) Asked(u *Unit) bool {
	if len(s.Predicate) == 0 {
		return false
	}
	has := words.FormsOf(u.Text)
	lacks := func(w string) bool { return !has.Has(w) }
	return !slices.ContainsFunc(s.Subject, lacks) && !slices.ContainsFunc(s.Predicate, lacks)
}

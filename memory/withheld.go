package memory

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/text"
)

// LeftOut stands in a record in place of what was not worth as much as the rest,
// and was left out. It says nothing; what it may have said counts.
const LeftOut = "[withheld]"

// MayName reports whether a member that was withheld may have said which thing its
// record is. Of a name that is no word of ours it may.
func MayName(name string) bool {
	ws := text.NameWords(name)
	return len(ws) == 0 || slices.ContainsFunc(ws, func(w string) bool { return in("whose", strings.ToLower(w)) })
}

// keyed reports whether a record says by its own id that it is something of one of
// these names: that holds whatever else was said of it.
func (u *unit) keyed(names []string) bool {
	return slices.ContainsFunc(u.leaves, func(l leaf) bool {
		return len(l.names) == 1 && slices.Contains([]string{"id", "uuid", "key"}, strings.ToLower(l.names[0])) && slices.ContainsFunc(names, l.is)
	})
}

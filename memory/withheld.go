package memory

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/text"
)

// LeftOut stands in a record in place of what was not worth as much as the rest,
// and was left out. It says nothing; what it may have said counts.
const LeftOut = "[withheld]"

// whose are words of members that say which thing a record is, or whose.
var whose = strings.Fields(`name title subject summary label caption heading for of about regarding customer client
	owner holder account person people contact recipient payee beneficiary author sender assignee reporter creator user
	username login email patient employee member company organisation organization vendor supplier merchant partner
	id uuid key number withheld`)

// MayName reports whether a member that was withheld may have said which thing its
// record is. Of a name that is no word of ours it may.
func MayName(name string) bool {
	ws := text.NameWords(name)
	return len(ws) == 0 || slices.ContainsFunc(ws, func(w string) bool { return slices.Contains(whose, strings.ToLower(w)) })
}

// keyed reports whether a record says by its own id that it is something of one of
// these names: that holds whatever else was said of it.
func (u *unit) keyed(names []string) bool {
	return slices.ContainsFunc(u.leaves, func(l leaf) bool {
		return len(l.names) == 1 && slices.Contains([]string{"id", "uuid", "key"}, strings.ToLower(l.names[0])) && slices.ContainsFunc(names, l.is)
	})
}

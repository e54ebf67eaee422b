package draft

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/contracts"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
)

// Unreviewed leaves out of the warnings of a policy those of the contracts that ship, where
// the lines of a tool stand as they ship: who made them has read and answered these. What
// such a line is warned of because of others in the same policy stays.
func Unreviewed(text []byte, warnings []policy.Fault) []policy.Fault {
	at := strings.SplitAfter(string(text), "\n")
	return slices.DeleteFunc(slices.Clone(warnings), func(w policy.Fault) bool {
		in := toolAt(at, w.Line)
		return in.tool != "" && slices.ContainsFunc(contracts.All(), func(c *contracts.Contract) bool {
			if c.Pins()[contracts.Self+"/"+in.tool] == "" {
				return false
			}
			source := c.At(in.server)
			p, faults := policy.Parse(c.Name, []byte(source))
			return len(faults) == 0 && slices.ContainsFunc(p.Warnings, func(own policy.Fault) bool {
				return own.Message == w.Message && toolAt(strings.SplitAfter(source, "\n"), own.Line) == in
			})
		})
	})
}

// toolLines are the lines of a tool, without pins, and one of them.
type toolLines struct {
	server, tool, all string
	line              int
}

var (
	toolLine = text.Pattern(`^  "?([a-z0-9-]+)/([^:"\s]+)"?:`)
	pin      = text.Pattern(`sha256:[0-9a-f]{64}`)
)

// toolAt finds the tool among whose lines one stands, from 1, none where it does not.
func toolAt(at []string, line int) (in toolLines) {
	first := min(line, len(at)) - 1
	for first >= 0 && strings.HasPrefix(at[first], "   ") {
		first--
	}
	if first < 0 {
		return toolLines{}
	}
	m := toolLine().FindStringSubmatch(at[first])
	if m == nil {
		return toolLines{}
	}
	in = toolLines{server: m[1], tool: m[2], line: line - first}
	for i := first; i < len(at) && (i == first || strings.HasPrefix(at[i], "   ")); i++ {
		in.all += pin().ReplaceAllString(at[i], "sha256:")
	}
	return in
}

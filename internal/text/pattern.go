package text

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression that is compiled when it is first asked for: a
// program that is started for one call needs few of those it has. One that is none
// panics then; TestOneDoor compiles those that are constants.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

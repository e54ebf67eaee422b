package policy

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed words.txt
var table string

// kinds are the words of the table, by kind.
var kinds = func() map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for line := range strings.Lines(table) {
		names, list, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		for _, kind := range strings.Fields(names) {
			if out[kind] == nil {
				out[kind] = map[string]bool{}
			}
			for _, w := range strings.Fields(list) {
				out[kind][w] = true
			}
		}
	}
	return out
}()

// Called reports whether words.txt has a word of the name of a tool or an argument under
// one of some kinds. A draft and what holds a contract to its tool's name ask it alike, so
// that no draft says less of a tool than the name does.
func Called(word string, as ...string) bool {
	return slices.ContainsFunc(as, func(kind string) bool { return kinds[kind][word] })
}

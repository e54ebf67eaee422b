package memory

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/writ-project/writ/internal/words"
)

// grammar.txt says itself which lists it has.
//
//go:embed grammar.txt
var grammarText string

var grammar = sync.OnceValue(func() map[string]map[string]bool {
	lists := map[string]map[string]bool{}
	for line := range strings.Lines(grammarText) {
		names, of, _ := strings.Cut(line, " ")
		if names == "#" {
			continue
		}
		for name := range strings.SplitSeq(names, ",") {
			if lists[name] == nil {
				lists[name] = map[string]bool{}
			}
			for _, w := range words.Of(of) {
				lists[name][w] = true
			}
		}
	}
	return lists
})

// in reports whether a word is in a list of grammar.txt.
func in(list, word string) bool {
	words := grammar()[list]
	if words == nil {
		panic("memory: no list of words is called " + list) // the code's own word
	}
	return words[word]
}

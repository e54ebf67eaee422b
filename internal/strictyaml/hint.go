package strictyaml

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Word quotes a key or word of the file for a message: escaped, and short.
func Word(s string) string {
	if utf8.RuneCountInString(s) > 40 {
		s = string([]rune(s)[:40]) + "…"
	}
	return strconv.QuoteToASCII(s)
}

// Nearest returns a hint that names the known word closest to k, or all of
// them where none is close.
func Nearest(k string, known []string) string {
	known = slices.Sorted(slices.Values(known))
	best, at := 3, ""
	for _, w := range known {
		if d := distance(strings.ToLower(k), w); d < best {
			best, at = d, w
		}
	}
	if at != "" {
		return "did you mean " + at + "?"
	}
	return "known: " + strings.Join(known, ", ")
}

// distance is the edit distance of two short words, cut off for long ones.
func distance(a, b string) int {
	if len(a) > 40 {
		return len(a)
	}
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		cur := make([]int, len(b)+1)
		cur[0] = i + 1
		for j := range len(b) {
			c := prev[j]
			if a[i] != b[j] {
				c++
			}
			cur[j+1] = min(c, prev[j+1]+1, cur[j]+1)
		}
		prev = cur
	}
	return prev[len(b)]
}

package provenance

import (
	"slices"
	"strings"
)

// What stands over a line, or around it, and says whose it is or that it was printed.

// headingOf is the line that stands over the line which a text ends in: right above it, or above
// the other lines of its list, and ends in a colon or is followed by a list.
func headingOf(text string) string {
	lines := strings.Split(text[max(0, len(text)-longestRest):], "\n")
	last := len(lines) - 1
	marked := listMark().MatchString(lines[last])
	for i := last - 1; i >= 0; i-- {
		switch line := strings.TrimSpace(lines[i]); {
		case line == "" || marked && listMark().MatchString(line):
		case marked || strings.HasSuffix(line, ":"):
			return line
		default:
			return ""
		}
	}
	return ""
}

// isHeaded reports whether what stands over the line that a text ends in says of it that it is
// denied, to be told to somebody, or what somebody wrote.
func isHeaded(before string) bool {
	heading := headingOf(before)
	words := unled(wordsOf(heading))
	return denies(heading) || len(words) > 0 && (explaining[words[0]] || conveying[words[0]] || noting[words[0]] || owned[words[0]] || cites(words) || hasAny(words, dating) || !saysItself[words[0]] && whose().MatchString(heading) ||
		hasAny(words, pointing) && keeps(words) || whatFor[words[0]] && !hasAny(words, wanted) || hasAny(words, attempted))
}

// cites reports whether the words of a heading say that somebody wrote what follows: "Kim's mail",
// "the message of today".
func cites(words []string) bool {
	for i, w := range words {
		if cited[w] && (i == len(words)-1 || words[i+1] == "from" || words[i+1] == "of" || words[i+1] == "by" || words[i+1] == "von") {
			return true
		}
	}
	return false
}

// keeps reports whether a heading has what follows be put into something: "add these to the README".
func keeps(words []string) bool {
	at := slices.IndexFunc(words, func(w string) bool { return w == "to" || w == "into" || w == "in" || w == "on" })
	return at > 1 && filing[words[0]] && at < len(words)-1
}

// isPrinted reports whether what stands around a line is what a terminal shows: a prompt before it, or
// below it what a program answered.
func isPrinted(before, after string) bool {
	_, below, more := strings.Cut(after, "\n")
	return more && (answered().MatchString(below) || prompt().MatchString(before[strings.LastIndexByte(before, '\n')+1:]))
}

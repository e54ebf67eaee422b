package provenance

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
)

// # Commands that are ordered (R6)
//
// A command is made of words that users say: "make the tests pass", "fix the typo in
// ./deploy.sh", "what does `git push --force` do?". That they are typed orders nothing.
// It is ordered where the message is the command and nothing else, or where somebody is
// told to run it: a verb of running, nothing behind it but what leads to the command, and
// the command in quotation marks or backticks, on a line of its own, or as the rest of
// the verb's line. The verb must be meant, as a phrase must (Means).

// Orders reports whether what stands around a command, which is the bytes [start, end)
// of a text, says that it is to be run.
func Orders(text string, start, end int) bool {
	outer := span{start, end}
	before, n := utf8.DecodeLastRuneInString(text[:start])
	after, m := utf8.DecodeRuneInString(text[end:])
	marked := m > 0 && strings.ContainsRune(closers[before], after)
	if marked {
		outer = span{start - n, end + m}
	}
	rest := text[outer.end:]
	if strings.TrimSpace(text[:outer.start])+strings.TrimSpace(rest) == "" {
		return true
	}
	said := withoutCommands(text, start, end)
	from := strings.LastIndexByte(said[:max(0, outer.start-longestLead)], '\n') + 1
	at := running().FindStringSubmatchIndex(said[from:outer.start])
	if at == nil {
		return false
	}
	verb, leads := span{from + at[2], from + at[3]}, said[from+at[3]:outer.start]
	line, below, _ := strings.Cut(rest, "\n")
	below, _, _ = strings.Cut(below, "\n")
	ends := strings.TrimSpace(line) == ""
	last := strings.LastIndexByte(leads, '\n')
	ownLine := ends && last >= 0 && strings.TrimSpace(leads[last:]) == ""
	restOfLine := ends && strings.TrimSpace(leads) == "" && last < 0 && strings.TrimSpace(below) == "" && at[4] >= 0
	if !marked && !ownLine && !restOfLine {
		return false
	}
	sentence := said[sentenceOf(said[:verb.start]):verb.start]
	if words := wordsOf(sentence); strings.Contains(sentence, ":") || len(words) > 0 && articles[words[len(words)-1]] {
		return false // "in the docs: run x", "the run x"
	}
	clause := line
	if i := strings.IndexFunc(line, isBreak); i >= 0 {
		clause = line[:i]
	}
	if words := wordsOf(clause); len(words) > 0 && !goesOn[words[0]] || slices.ContainsFunc(words[:min(2, len(words))], negates) {
		return false // "run x is what it says", "start x hangs", "führe x nicht aus"
	}
	if hasAny(wordsOf(sentence), putOff) {
		return false // "after the release, run x"
	}
	return !headed(said[:verb.start]) && fitsPlace(said[:verb.start], false) && Means(said, verb.start, verb.end)
}

// goesOn are the words by which a sentence goes on behind a command it orders.
var goesOn = wordSet(`please and then for again now first next once here in inside from to so with on aus bitte und dann im für mit jetzt`)

// putOff are the words that leave an order for later, or to somebody's leave.
var putOff = wordSet(`after before pending until upon following once nach vor bis sobald`)

// headed reports whether what stands above the line that a text ends in may say what the
// line is: a list of steps, what somebody wrote, what is forbidden.
func headed(text string) bool {
	above := text[:strings.LastIndexByte(text, '\n')+1]
	lead := running().MatchString(above) // "run these:"
	for l := range strings.Lines(above) {
		l = strings.TrimSpace(l)
		if strings.HasSuffix(l, ":") && !lead || strings.Contains(l, "?") ||
			slices.ContainsFunc(wordsOf(l), negates) {
			return true
		}
	}
	return false
}

// withoutCommands blots out the command and what stands in backticks and double quotation
// marks: what is said there is nothing that the user says of them.
func withoutCommands(text string, start, end int) string {
	out := []byte(text)
	blot := func(from, to int) {
		for i := from; i < to; i++ {
			out[i] = 'x'
		}
	}
	blot(start, end)
	for _, at := range setOff().FindAllIndex(out, -1) {
		blot(at[0]+1, at[1]-1)
	}
	return string(out)
}

// setOff is what stands in marks with which nothing else is written.
var setOff = text.Pattern("`[^`\n]+`|\"[^\"\n]+\"")

// longestLead is how far before a command the verb may stand, in bytes.
const longestLead = 512

// running is a verb of running, with all that may lead from it to a command: other
// commands, and words that name none. The verbs that say nothing else are a group of
// their own.
var running = text.Pattern(`(?i)(?:^|[^\pL\pN_-])((run|rerun|re-run|execute)|invoke|launch|start|führe|führ|starte)` +
	"(?:[\\s,:]+(?:`x+`|\"x+\"|[-*•]|[0-9]{1,2}[.)]|the|this|these|following|commands?|and|then|also|again|first|next|now|just|please|once|" +
	`und|dann|danach|bitte|den|die|das|diesen|diese|folgenden?|befehle?|erst|zuerst|mal))*[\s:]+$`)

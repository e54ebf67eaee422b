package certificate

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/provenance"
)

// What stands around a value in the user's words, and says what it is or what is ordered of it (R8, R21).

// words are those that say of a small value what it is.
func (l *leaf) words() []string {
	if l.rule == nil {
		return nil
	}
	return append(slices.Clone(l.rule.Words), l.rule.Collection)
}

// called reports whether one of the words stands directly before i, or before the #
// there.
func (t *turn) called(i int, hash bool, words []string) bool { return t.behind(i, hash, words, true) }

// behind is called; of what is no amount a number may stand in a list, and is none of things.
func (t *turn) behind(i int, hash bool, words []string, which bool) bool {
	if hash && slices.Contains(words, provenance.Numbered) {
		return true
	}
	start := i
	if provenance.OrdersIt(t.own, start, words) || provenance.OrdersInside(t.own, start, words) {
		return true
	}
	if hash {
		i--
	}
	number := start < len(t.own) && t.own[start] >= '0' && t.own[start] <= '9'
	// A value may be set in marks behind its word.
	if r, n := utf8.DecodeLastRuneInString(t.own[:i]); mark(r) && (t.begins(i-n) || t.assigned(i-n)) {
		i -= n
	}
	before := strings.TrimRight(t.own[:i], " \t")
	if t.assigned(i) {
		before = t.own[:i-1]
	}
	ordered, spaced := ordering(words), len(before) < i
	before = strings.TrimSuffix(before, ":")
	whole := before
	which = which && number
	if which {
		near := max(0, len(before)-longestList)
		if before = before[:near] + withoutOthers(before[near:]); len(before) < len(whole) && !provenance.ListEnds(whole[len(before):], t.own, start) {
			return false
		}
	}
	led, placed := before, before
	if from, to := provenance.PlaceBefore(t.own[:start]); number && to <= len(before) && to > from {
		_, noun, _ := strings.Cut(before[to:], " ") // "acme/parser PR"
		placed = strings.TrimRight(strings.TrimRight(before[:from], " \t")+" "+noun, " ")
	} else if !number {
		led = provenance.ToName(t.own[:start])
	}
	return spaced && slices.ContainsFunc(words, func(w string) bool {
		spells := func(text string, end int) bool {
			at := len(text) - len(w)
			return w != "" && w != provenance.Numbered && at >= 0 && strings.EqualFold(text[at:], w) && t.begins(at) &&
				(!ordered || provenance.Means(t.own, at, end)) && (ordered || !which || provenance.NumberOf(t.own, at, end, start))
		}
		return t.turned(whole, led, w, number) || spells(before, len(before)) || ordered && spells(led, len(led)) || spells(placed, len(before))
	})
}

// longestList is how far back the numbers of a list are looked for.
const longestList = 200

// withoutOthers is what stands before the other numbers of a list, "close 41 and", and a word for two of them.
func withoutOthers(before string) string {
	for {
		word, rest := lastWord(before)
		if rest == before {
			return before
		}
		if strings.EqualFold(word, "both") {
			return rest
		}
		joined := slices.Contains([]string{"and", "und", "y", "et", "e", "&", "+"}, strings.ToLower(word))
		if joined {
			if word, rest = lastWord(rest); word == "" {
				return before
			}
		}
		digits, comma := strings.CutSuffix(strings.TrimPrefix(word, "#"), ",")
		if digits == "" || strings.Trim(digits, "0123456789") != "" || !joined && !comma {
			return before
		}
		before = rest
	}
}

// lastWord is the last word of a line that a text ends in, behind another one, and what stands before it.
func lastWord(text string) (word, rest string) {
	i := strings.LastIndexAny(text, " \t")
	if i < 0 || strings.ContainsAny(text[i:], "\n") {
		return "", text
	}
	return text[i+1:], strings.TrimRight(text[:i], " \t")
}

// ordering reports whether words before a value are an order: one of them is several.
func ordering(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return len(strings.Fields(w)) > 1 && !slices.Contains(strings.Fields(w), "…") && strings.Fields(w)[len(strings.Fields(w))-1] != "of"
	})
}

// turned reports whether a text ends in the second part of a word of two ("scale … to") that
// stands in the clause of the first, and this is an order, with the value behind it too.
func (t *turn) turned(before, led, word string, number bool) bool {
	head, tail, is := strings.Cut(word, " … ")
	from := len(before)
	value := from + len(worded.FindString(t.own[from:]))
	if is && !number && len(led) > len(tail) && strings.EqualFold(led[len(led)-len(tail):], tail) {
		before = led // "to the file"
	}
	if end := len(before) - len(tail); !is || end < 1 || !strings.EqualFold(before[end:], tail) {
		return false
	}
	first := `[^\s\x00]` // of a word between, which is no number where the value is one
	if number {
		first = `[^\s\x000-9]`
	}
	form := regexp.MustCompile(`^(?i:` + regexp.QuoteMeta(head) + `)[ \t]+((?:` + first + `[^\s\x00]*[ \t]+){0,8})(?i:` + regexp.QuoteMeta(tail) + `)$`)
	ended := func(between string) bool { // by what a blank follows, or by a mark of no word
		return slices.ContainsFunc(strings.Fields(between), func(w string) bool {
			last, _ := utf8.DecodeLastRuneInString(w)
			return strings.ContainsRune(",.;:!?", last) || strings.ContainsFunc(w, func(r rune) bool {
				return !strings.ContainsRune(",.;:!?", r) && unicode.In(r, unicode.Terminal_Punctuation, unicode.Sentence_Terminal) || strings.ContainsRune("…‥—–", r)
			})
		})
	}
	for i := range before {
		if !t.begins(i) {
			continue
		}
		if at := form.FindStringSubmatch(before[i:]); at != nil && !ended(at[1]) && !provenance.LeadsAway(at[1], tail) && provenance.Means(t.own, i, i+len(head)) && provenance.Means(t.own, i, value) && provenance.StandsAlone(t.own, from) &&
			strings.Count(at[1], "(") == strings.Count(at[1], ")") {
			return true
		}
	}
	return false
}

// worded is a word with what stands before it, up to a mark or a stop that ends it.
var worded = regexp.MustCompile("^[ \\t\"'`´“”„‟‘’‚‛«»‹›]*(?:[^\\s\\x00]*[^\\s\\x00\"'`´“”„‟‘’‚‛«»‹›()\\[\\]{}<>,.;:!?])?")

// unit reports whether what is counted stands behind a number, as the contract calls it.
func (t *turn) unit(l *leaf, end int) bool {
	if l.rule == nil {
		return false
	}
	from := end
	for from < len(t.own) && (t.own[from] == ' ' || t.own[from] == '\t') {
		from++
	}
	return from > end && slices.ContainsFunc(l.rule.Units, func(u string) bool {
		return from+len(u) <= len(t.own) && strings.EqualFold(t.own[from:from+len(u)], u) && t.ends(from+len(u))
	})
}

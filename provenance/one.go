package provenance

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/text"
)

// # One of what has a name (R9)
//
// A table is called by what all of its rows are, and people order one of them: "add a customer: Nadia, Bern" has a
// row added to customers. What one is called stands right behind the order, or behind "as a", and what it is called
// by itself follows it, or nothing does: "add a customer note" is of notes.

// OneOf returns what one of things may be called that have a name in small letters: customer for customers,
// city for cities.
func OneOf(name string) (one []string) {
	if !plural().MatchString(name) {
		return nil
	}
	name = strings.ReplaceAll(name, "_", " ")
	if stem, is := strings.CutSuffix(name, "es"); is {
		one = append(one, stem)
	}
	if stem, is := strings.CutSuffix(name, "ies"); is {
		one = append(one, stem+"y")
	}
	return append(one, strings.TrimSuffix(name, "s"))
}

// OrdersOne reports whether the bytes [start, end) of a text are what one is called that an order has added.
func OrdersOne(s string, start, end int) bool {
	from := sentenceOf(s[:start])
	m := addsOne().FindStringSubmatchIndex(s[from:start])
	if m == nil || !oneEnds().MatchString(s[end:]) || hasSomething().MatchString(s[end:]) || goesElsewhere(s[end:end+endOf(s[end:])]) {
		return false
	}
	if verb := max(m[2], m[4]); verb >= 0 {
		return Means(s, from+verb, from+max(m[3], m[5]))
	}
	if !strings.HasPrefix(s[end:], ":") { // "new customer Nadia complains"
		return false
	}
	before := s[from : from+m[6]] // "new customer: …", in a sentence that opens so
	return len(unled(wordsOf(before))) == 0 && !strings.Contains(s[end:end+endOf(s[end:])+min(1, len(s[end:])-endOf(s[end:]))], "?")
}

// goesElsewhere reports whether a sentence goes on with another place for what is added: a
// word in small letters that is no place of the rows' own, as in "to a file", "to orders", "for the event".
func goesElsewhere(rest string) bool {
	return slices.ContainsFunc(elsewhereGone().FindAllStringSubmatch(rest, -1), func(m []string) bool { return !ownPlace[lower(m[1])] })
}

var ownPlace = wordSet("database db system table tables record records")

var (
	elsewhereGone = text.Pattern(`[ \t](?:to|into|onto|in|on|for)(?:[ \t]+(?:the|our|my|an?))?[ \t]+([\p{Ll}][\pL-]*(?:\.\pL+)?)`)
	plural        = text.Pattern(`^[a-z]+(?:_[a-z]+)?s$`)
	// addsOne ends in an order to add one, of words with which something else is done to one that is there ("log customer
	// Nadia out") with an article; its third group is "new" alone.
	addsOne = text.Pattern(`(?i)(?:(?:^|[^\pL\pN_-])(?:(add|insert|create|register|enter)(?:[ \t]+[^,.;:!?\n]{1,120}?[ \t]+as)?(?:[ \t]+(?:an?|the|another|new|one|following|further|more))*|(make|record|save|store|log)(?:[ \t]+[^,.;:!?\n]{1,120}?[ \t]+as)?(?:[ \t]+(?:an?|the|another|new|one|following|further|more))+)|^[ \t\n]*(?:\pL+[ \t,]+){0,2}?(new))[ \t]+$`)
	// hasSomething is one whose something is added: "add customer Nadia's order".
	hasSomething = text.Pattern(`^[ \t]+(?:\p{Lu}[\pL-]*[ \t]+)*\p{Lu}[\pL-]*['’]s[ \t]`)
	// oneEnds is what follows it: what it is called or has, or where all of them are kept.
	oneEnds = text.Pattern(`^(?:$|[.!;:,][ \t\n]|[.!;:,]$|[ \t]*\([^()\n]*\)(?:$|[.!;:,\n])|\n|[ \t]+(?:[\p{Lu}0-9"'“„‘]|(?:called|named|with|whose|who)[ \t]|(?:to|in|into)[ \t]+(?:(?:the|our|my)[ \t]+)?(?:database|db|system|table|records?)(?:$|[^\pL\pN-])|(?:for|from|in)[ \t]+[\p{Lu}0-9"'“]))`)
)

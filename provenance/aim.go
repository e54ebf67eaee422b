package provenance

import (
	"cmp"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/text"
)

// Aim is what a call does something to, where that has a number, and the words in which the user
// may write where it is, "acme/parser". Who says "close #42 of acme/parser" has ordered nothing of 43
// there, nor of 42 elsewhere; who says no number and no place leaves them open.
type Aim struct{ Numbers, Places []string }

// Wholly is the function Wholly of a phrase behind which stand no other number and no other place.
func (a Aim) Wholly(text string, start, end int) bool {
	return Wholly(text, start, end) && (len(a.Numbers) == 0 || a.Meets(text, end))
}

// Without is a text of the same length with blanks in the stead of that number, where its sign or a word says what
// it is, and of where it is: people say it in the midst of an order too, "mark issue 42 in acme/parser as done".
func (a Aim) Without(text string) string {
	return mentioned().ReplaceAllStringFunc(text, func(s string) string {
		m := mentioned().FindStringSubmatch(s)
		before, noun, sign, number, behind := m[1], m[2], m[3], m[4], m[5]
		place := cmp.Or(before, strings.TrimSuffix(sign, "#"), behind)
		if len(before)+len(noun)+len(sign) == 1 || !slices.Contains(a.Numbers, number) || place != "" && len(a.Places) > 0 && !slices.ContainsFunc(a.Places, func(p string) bool { return strings.EqualFold(p, place) }) {
			return s
		}
		at := strings.Index(s[len(before):], noun) + len(before)
		return strings.Repeat(" ", at) + noun + strings.Repeat(" ", len(s)-at-len(noun))
	})
}

// Within reports whether a phrase in a text that Without made is Wholly, and is noted nowhere: "mark it as done in my notes".
func (a Aim) Within(text string, start, end int) bool {
	return !noted().MatchString(text[end:]) && a.Wholly(text, start, end)
}

var noted = text.Pattern(`(?i)^[ \t]+(?:in|on|auf|im|dans|en|nel|em)[ \t]+(?:(?:the|my|our|your)[ \t]+)?(?:[\pL-]+[ \t]+)?(?:notes?|todos?|list|changelog|file|diary|calendar|board|spreadsheet|sheet|wiki|docs?|readme|\S+\.(?:md|txt))(?:$|[^\pL\pN])`)

// Meets reports whether what a text goes on with from a place on, numbers and where these are, is
// what the call is done to.
func (a Aim) Meets(text string, from int) bool {
	if named := withPlace().FindAllStringSubmatch(text[from:from+len(placedList().FindString(text[from:]))], -1); len(named) > 0 {
		return slices.ContainsFunc(named, func(m []string) bool {
			return slices.ContainsFunc(runOfDigits().FindAllString(m[2], -1), func(n string) bool { return slices.Contains(a.Numbers, n) }) &&
				(len(a.Places) == 0 || slices.ContainsFunc(a.Places, func(p string) bool { return strings.EqualFold(p, m[1]) }))
		})
	}
	m := aimed().FindStringSubmatch(text[from:])
	if numbers := runOfDigits().FindAllString(m[1], -1); len(numbers) > 0 && !slices.ContainsFunc(numbers, func(n string) bool { return slices.Contains(a.Numbers, n) }) {
		return false
	}
	place := m[2]
	if at, end := PlaceBefore(text[:from]); end > at && place == "" {
		place = text[at:end]
	}
	if place == "" {
		if before := frontedIn().FindStringSubmatch(text[sentenceOf(text[:from]):from]); before != nil {
			place = before[1] + before[2]
		}
	}
	return len(a.Places) == 0 || !strings.Contains(place, "/") || !isWhere(place) || slices.ContainsFunc(a.Places, func(p string) bool {
		return len(place) >= len(p) && strings.EqualFold(place[:len(p)], p) && (len(place) == len(p) || place[len(p)] == '/')
	})
}

// PlaceBefore returns where what is before a number ends in the place where that is, "merge acme/parser PR 50", and 0 twice
// where it does not.
func PlaceBefore(before string) (start, end int) {
	near := max(0, len(before)-longestList)
	m := placedBefore().FindStringSubmatchIndex(before[near:])
	if m == nil {
		return 0, 0
	}
	return near + m[2], near + m[3]
}

var (
	placedBefore = text.Pattern(`(?i)[ \t]([\pL\pN_.-]+/[\pL\pN_.-]*[\pL\pN_])(?:['’]s)?(?:[ \t]+(?:pr|mr|pull[ -]request|merge[ -]request|issue|ticket|bug|number))?(?:[ \t]+#?|#)$`)
	aimed        = text.Pattern(`(?i)^(?:[ \t]+(?:on|of|for|in)(?:[ \t]+(?:the|pr|mr|pull|merge|request|issue|ticket|number))*)?[ \t]*(` + numberList + `)?` +
		`(?:(?:[ \t]+(?:from|of|on|in)[ \t]+(?:the|my|our)[ \t]+` + placeForm + `[ \t]+(?:list|board|queue|backlog|column|view|label|section|milestone|category))?[ \t]+` + insideOf + `(` + placeForm + `))?`)
	// withPlace is a number with its place, as "acme/parser#41" is, and the numbers of a list that goes on there.
	withPlace  = text.Pattern(placedNumber)
	placedList = text.Pattern(`(?i)^[ \t]*(?:(?:on|of|for|the|pr|mr|pull|merge|request|issue|ticket|number)[ \t]+)*` + placedNumber + `(?:` + listJoint + placedNumber + `)*`)
	// mentioned is one number with a sign of it before, or a word of what it is, and where that is.
	mentioned   = text.Pattern(`(?i)(?:[ \t]([\pL\pN_.-]+/[\pL\pN_.-]*[\pL\pN_])(?:['’]s)?)?([ \t](?:(?:issue|pr|mr|pull request|merge request|ticket|bug|number)[ \t])?)(#|[\pL\pN_.-]+/[\pL\pN_.-]+#)?([0-9]+)(?:[ \t]+(?:of|in|on|from)[ \t]+([\pL\pN_.-]+/[\pL\pN_.-]+))?`)
	frontedIn   = text.Pattern(`(?i)^[ \t\n]*(?:` + insideOf + `(` + placeForm + `)|([\pL\pN_.-]+/[\pL\pN_.-]*[\pL\pN_]):[ \t])`)
	runOfDigits = text.Pattern(`[0-9]+`)
)

// numberList is numbers, with what joins them, placedNumber one with its place.
const (
	listJoint    = `(?:,[ \t]*(?:(?:and|und|y|et|e)[ \t]+)?|[ \t]+(?:and|und|y|et|e|&|\+)[ \t]+)`
	numberList   = `#?[0-9]+(?:` + listJoint + `#?[0-9]+)*`
	placedNumber = `(?:https?://)?(?:[a-z]+(?:\.[a-z]+)+/)?([\pL\pN_.-]+/[\pL\pN_.-]+)(?:#|/(?:issues|pull)/)([0-9]+(?:` + listJoint + `#?[0-9]+)*)`
)

// insideOf is what leads to the place where such things are.
const insideOf = `(?:of|in|on|for|at|from|under|von|aus|auf|im|de|en|dans|di|da|do|van|op)[ \t]+(?:(?:the|my|our|repo|repository|project|der|dem)[ \t]+){0,2}`

package provenance

import (
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
	if at := numberWithin().FindStringSubmatchIndex(text[start:end]); at != nil {
		from := start + at[2]
		if placed := strings.LastIndexAny(text[:from], " \t") + 1; text[from-1] == '#' {
			from = placed
		}
		return len(a.Numbers) > 0 && wholly(text, start, end) && a.Meets(text, from)
	}
	return Wholly(text, start, end) && (len(a.Numbers) == 0 || a.Meets(text, end))
}

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
	if place == "" {
		if before := frontedIn().FindStringSubmatch(text[sentenceOf(text[:from]):from]); before != nil {
			place = before[1]
		}
	}
	return len(a.Places) == 0 || !strings.Contains(place, "/") || !isWhere(place) || slices.ContainsFunc(a.Places, func(p string) bool {
		return len(place) >= len(p) && strings.EqualFold(place[:len(p)], p) && (len(place) == len(p) || place[len(p)] == '/')
	})
}

var (
	aimed = text.Pattern(`(?i)^(?:[ \t]+(?:on|of|for|in)(?:[ \t]+(?:the|pr|mr|pull|merge|request|issue|ticket|number))*)?[ \t]*(` + numberList + `)?` +
		`(?:(?:[ \t]+(?:from|of|on|in)[ \t]+(?:the|my|our)[ \t]+` + placeForm + `[ \t]+(?:list|board|queue|backlog|column|view|label|section|milestone|category))?[ \t]+` + insideOf + `(` + placeForm + `))?`)
	// withPlace is a number with its place, as "acme/parser#41" is, and the numbers of a list that goes on there.
	withPlace   = text.Pattern(placedNumber)
	placedList  = text.Pattern(`(?i)^[ \t]*(?:(?:on|of|for|the|pr|mr|pull|merge|request|issue|ticket|number)[ \t]+)*` + placedNumber + `(?:` + listJoint + placedNumber + `)*`)
	frontedIn   = text.Pattern(`(?i)^[ \t\n]*` + insideOf + `(` + placeForm + `)`)
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

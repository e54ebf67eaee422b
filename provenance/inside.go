package provenance

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/text"
)

// # Orders of what stands in a file (R9)
//
// People name a file and then say what is to be changed in it: "in README.md, bump the version", "look at
// README.md and fix the typos", "README.md has a typo, fix it", "the README should say 1.26". That is an order of
// the file where its sentence opens with it and nothing else is named behind.

// OrdersInside reports whether words before a value that say what is done in a file, "fix … in", are ordered of
// the one that begins at a place of a text, which is named before them.
func OrdersInside(text string, start int, words []string) bool {
	verbs := insideVerbs(words)
	if len(verbs) == 0 || startsDigit(text[start:]) {
		return false
	}
	near := max(0, start-longestTopic)
	opens := sentenceOf(text[near:start])
	before := text[near+opens : start]
	m := opensTopic().FindStringSubmatch(before)
	if m == nil || opens == 0 && near > 0 {
		return false
	}
	end := valueEnd(text, start)
	most := min(len(text), end+longestTopic)
	behind := placedBehind().ReplaceAllStringFunc(text[end:most], blanks)
	if says := shouldSay().FindStringSubmatchIndex(behind); says != nil {
		return m[1] == "" && strings.TrimSpace(text[:start-len(before)]) == "" && wishedAlone(text[:end]+behind+text[most:], end+says[2], end+says[3])
	}
	s, is := text[:end]+behind+text[most:], false
	lead := lower(m[1])
	eachOrder(s, end, most, verbs, func(_, verb string, i, e int) bool {
		object := s[e : e+endOf(s[e:])]
		switch there := strings.HasPrefix(lead, "there"); {
		case itself().MatchString(object):
			is = mending[lower(verb)] && (faulty().MatchString(s[end:i]) || there && joins().MatchString(s[end:i]))
		case locating[lead]:
			is = joins().MatchString(s[end:i]) && !committing[lower(verb)] && !elsewhereBegins().MatchString(object) && !namesMore(object)
		default:
			is = lead != "" && !there && joins().MatchString(s[end:i]) && ofText().MatchString(object)
		}
		if is { // what its sentence opens with was read
			own := s[:start-len(before)] + blanks(s[start-len(before):i]) + s[i:]
			is = meant(plainly(own, i, e), i, e)
		}
		return !is
	})
	return is
}

// wishedAlone reports whether a text in which a file should say something, by a verb at its bytes [verb, end), is a wish:
// there is nothing else in it but where that is to be done. Else it may tell of a rule, or ask whether the file does.
func wishedAlone(s string, verb, end int) bool {
	parts := partEnds().Split(s[end:], -1)
	for _, p := range parts[1:] {
		if !whereTo().MatchString(p) {
			return false
		}
	}
	return !strings.ContainsAny(s[end:], "?？؟") && !hasAny(wordsOf(parts[0]), settled) && !denies(parts[0]) && meant(blanks(s[:verb])+s[verb:], verb, end)
}

// insideVerbs are the first parts of words of two whose second is "in".
func insideVerbs(words []string) (verbs []string) {
	for _, w := range words {
		if verb, is := strings.CutSuffix(w, " … in"); is {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

func blanks(s string) string { return strings.Repeat(" ", len(s)) }

// namesMore reports whether what an order is of names something else that it may be done to.
func namesMore(object string) bool {
	return slices.ContainsFunc(strings.Fields(object), func(w string) bool {
		b := bare(w)
		return b != "" && (isFile(w) || strings.ContainsAny(w, "/#@") || elsewhereNouns[b])
	})
}

var (
	// opensTopic is what may stand before a file with which a sentence opens; its first group says how.
	opensTopic = text.Pattern(`(?i)^[ \t\n]*(?:(?:please|pls|ok|okay|hi|hey|and|also|now|then|could you|can you|bitte)[ \t,]+)*(?:(?:in[ \t]+)?[\pL\pN_.-]+/[\pL\pN_.-]+[:,]?[ \t]+)?(?:(in|inside|within|im|open|read|take|go through|(?:have a )?look at|look over|check|proofread|review|there(?:(?:['’]s| is| are) (?:still )?(?:an?|some|one|two|many)? ?(?:small |little )?(?:typos?|mistakes?|errors?|bugs?|broken links?)) in)[ \t]+)?(?:(?:the|our|my|file)[ \t]+)*[` + quotes + `]?$`)
	// joins is what may stand between the file and the order.
	joins = text.Pattern(`(?i)^[` + quotes + `]?[ \t]*(?:[,:.–—-]?[ \t]*(?:(?:and|then|please|so|und|bitte)[ \t]*,?[ \t]*)*)$`)
	// faulty says of a file that something in it is wrong.
	faulty = text.Pattern(`(?i)^[ \t]*(?:still[ \t]+)?(?:has|contains|got)[ \t]+(?:still[ \t]+)?(?:an?|some|one|two|several|many)?[ \t]*(?:small |little )?(?:typos?|(?:spelling )?mistakes?|errors?|bugs?|broken links?|wrong \pL+)(?:[,;.–—-]|[ \t]+and)?[ \t]*(?:(?:please|can you|could you)[ \t]+)?$`)
	// shouldSay is a wish of what it says.
	shouldSay      = text.Pattern(`(?i)^[ \t]*(?:should|must|needs to|has to|soll)[ \t]+(?:also |only )?(say|read|mention|list|contain|explain|include|show|state|describe|point to|link to)[ \t]`)
	elsewhereNouns = wordSet(`issue issues pr prs mr pull request requests ticket tickets comment comments file files page pages release channel message mail email code test tests
		wiki website site build board backlog calendar chat list notes answer report summary review tweet poll plan reminder suggestion suggestions recommendation recommendations concern concerns
		task tasks tag label standup meeting slack reviewer assignee status ci workflow pipeline copy mind understanding`)
	// locating are those that say where the order behind is done, and of no reading.
	locating = wordSet("in inside within im")
	// committing are orders to keep what is there rather than to change it.
	committing = wordSet("commit push save")
	// mending are orders that "it" has done to a file with a fault.
	mending = wordSet(`edit fix change update correct replace improve modify rewrite adjust remove delete bearbeite ändere ersetze korrigiere
		corrige modifie remplace cambia modifica reemplaza correggi sostituisci corrija wijzig vervang`)
	// elsewhereBegins is how it goes on where a verb is another one or a name ("make sure", "add takes two"), is for
	// somebody, or is of nothing.
	elsewhereBegins = text.Pattern(`(?i)^[ \t]+(?:sure|up|down|aside|off|out|me|us|him|her|them|no|nothing|none|note|notes|what|whatever|your|(?:an?|the|my)[ \t]+(?:\pL+[ \t]+)?(?:branch|repository|repo|note)|(?-i:\p{Lu}\pL+)[ \t]+(?:an?|the|as|some)|(?-i:\p{Ll}*[^s\P{Ll}]s)[ \t]+(?:an?|the|no|one|two|three|[0-9]))(?:$|[^\pL\pN-])`)
	// ofText is what only a text has, and where it does not go on elsewhere: "fix the typos", "add a line that it fails".
	ofText = text.Pattern(`(?i)^[ \t]+(?:(?:an?|the|all|any|all the|every|its|some|those|these|this|that|one|two|three|new|short|small|little|last|first|missing|broken|wrong|old|obvious|minor|spelling|grammar|install|installation|license|version|die|den|das|alle|les|el|la|los|las|gli|os|as|de)[ \t]+)*` +
		`(?:typos?|mistakes?|errors|spelling|grammar|wording|punctuation|formatting|links?|headings?|headlines?|sections?|paragraphs?|sentences?|lines?|words?|phrases?|badges?|tippfehler|fehler|fautes|errores|erratas|errori|erros|fouten)` +
		`(?:[ \t]+(?:there|in it|of it|that|about|saying|which says|on how|how|with|as|please|now|and|on|onto|directly|straight|right)(?:[ \t]|$)|[ \t]*(?:$|[,;.!)–—-]))`)
	// settled are words of what was done or is only said.
	settled  = wordSet("already according supposedly apparently think thinks guess says said whether when once after until i i'll we tomorrow later")
	partEnds = text.Pattern(`[,;:!?\n]|\.(?:[ \t\n]|$)`)
	// whereTo is an order that says no more of a change than to make it, and where.
	whereTo = text.Pattern(`(?i)^[ \t]*(?:(?:please|just|and|then|so)[ \t]+)*(?:(?:(?:commit|push|put|fix|change|update|edit|do|make|correct)(?:[ \t]+(?:it|that|this|the change))?)?(?:[ \t]*\b(?:straight|directly|right))?` +
		`(?:[ \t]*\b(?:to|on|onto|in|into|of)(?:[ \t]+(?:the|a|my))?(?:[ \t]+(?:new|separate))?(?:[ \t]+branch)?(?:[ \t]+[\pL\pN_./-]*[\pL\pN])?(?:[ \t]+branch)?|[ \t]*\bbranch[ \t]+[\pL\pN_./-]+|[ \t]*[\pL\pN_.-]+/[\pL\pN_.-]+)*` +
		`|no[ \t]+(?:pr|mr|pull request|merge request|branch|review)(?:[ \t]+(?:needed|necessary|required))?|(?:open|make|create)[ \t]+an?[ \t]+(?:pr|mr|pull request|merge request)(?:[ \t]+for[ \t]+(?:it|that|this))?)?(?:[ \t]*\b(?:please|thanks|thank you))?[ \t]*$`)
)

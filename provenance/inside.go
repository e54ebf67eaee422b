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
	before := text[sentenceOf(text[:start]):start]
	m := opensTopic().FindStringSubmatch(before)
	if len(verbs) == 0 || m == nil || startsDigit(text[start:]) {
		return false
	}
	end := valueEnd(text, start)
	most := min(len(text), end+longestTopic)
	behind := placedBehind().ReplaceAllStringFunc(text[end:most], blanks)
	if shouldSay().MatchString(behind) {
		ends := endOf(behind)
		return m[1] == "" && !strings.HasPrefix(behind[ends:], "?") && !denies(behind[:ends])
	}
	s, is := text[:end]+behind+text[most:], false
	eachOrder(s, end, most, verbs, func(_, _ string, i, e int) bool {
		object := s[e : e+endOf(s[e:])]
		if itself().MatchString(object) {
			is = faulty().MatchString(s[end:i]) || strings.HasPrefix(lower(m[1]), "there") && joins().MatchString(s[end:i])
		} else {
			is = m[1] != "" && !strings.HasPrefix(lower(m[1]), "there") && joins().MatchString(s[end:i]) && !namesMore(object)
		}
		if is { // what its sentence opens with was read
			own := s[:start-len(before)] + blanks(s[start-len(before):i]) + s[i:]
			is = meant(plainly(own, i, e), i, e)
		}
		return !is
	})
	return is
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
	shouldSay      = text.Pattern(`(?i)^[ \t]*(?:should|must|needs to|has to|soll)[ \t]+(?:now |also |only )?(?:say|read|mention|list|contain|explain|include|show|state|describe|point to|link to)[ \t]`)
	elsewhereNouns = wordSet("issue issues pr prs mr pull request requests ticket tickets comment comments file files page pages release channel message mail email code test tests")
)

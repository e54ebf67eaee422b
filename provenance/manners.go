package provenance

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
)

// What people say beside an order for good manners, and that says nothing of it: when it suits whoever is
// asked, thanks, a greeting, a face. Each stands for itself, with nothing behind it in its clause, but
// for words that can say nothing else.
const (
	anywhere = `(?:pls+|plz+)(?:[ \t]+(?:n|and|&)[ \t]+(?:thanks|thx|ty))?|(?:real|really|super)[ \t]+quick|rn|straight[ \t]+away|while[ \t]+you(?:['’]re|[ \t]+are)[ \t]+at[ \t]+it|` +
		`[:;=]['’]?-?[)D]+|\^\^|<3|[` + faces + `]\x{fe0f}?[\x{1f3fb}-\x{1f3ff}]?`
	refusing = `👎🚫❌❎⛔🛑` // in the clause of an order, or for themselves behind it
	faces    = `🙏👍😊🙂😀😁😄😃👌🎉🚀🙌💪❤✨🤞😅👏😉☺`
	// suiting say when it suits, at the end of a clause; closing stand at the end of one behind an order, greeting at
	// its begin.
	suiting = `when(?:ever)?[ \t]+you[ \t]+(?:can|have[ \t]+(?:the[ \t]+|some[ \t]+)?time|(?:have|get|find)[ \t]+an?[ \t]+(?:free[ \t]+)?(?:minute|moment|min|sec|second|chance)|get[ \t]+(?:around|round)[ \t]+to[ \t]+it)|(?:when|once)[ \t]+(?:you(?:['’]re|[ \t]+are)[ \t]+)?(?:done|finished|through)`
	closing = `(?:many[ \t]+)?(?:thanks|thank[ \t]+you|thx|tysm|ty|cheers|merci|danke|gracias|grazie|obrigad[oa])(?:[ \t]+(?:so[ \t]+much|very[ \t]+much|a[ \t]+lot|a[ \t]+bunch|in[ \t]+advance|again))?|` +
		`if[ \t]+you[ \t]+(?:can|could|would|may|have[ \t]+(?:the[ \t]+)?time|get[ \t]+a[ \t]+chance|have[ \t]+an?[ \t]+(?:minute|moment|sec|second|chance))|` +
		`for[ \t]+(?:me|us)|no[ \t]+(?:rush|hurry)|as[ \t]+well|(?:as|like)[ \t]+(?:(?:we[ \t]+)?(?:discussed|agreed|planned)|usual|always|last[ \t]+time)`
	greeting = `yes|yeah|yep|yup|sure|alright|alrighty|okey|okie|k|kk|hi[ \t]+there|hey[ \t]+there|hello[ \t]+there|hi[ \t]+all|good[ \t]+(?:morning|afternoon|evening|day)|morning|guten[ \t]+(?:morgen|tag|abend)|` +
		`moin|bonjour|bonsoir|hola|buenos[ \t]+d[ií]as|buongiorno|buonasera|bom[ \t]+dia|goedemorgen|(?:and[ \t]+)?(?:one|another)[ \t]+(?:more[ \t]+)?thing|last[ \t]+thing`
	// forgiving are openings that look like a denial, and take back what was before them alone.
	forgiving = `never[ \t]?mind|nvm|no[ \t]+(?:worries|problem)|np|not[ \t]+bad|why[ \t]+not`
)

// manner is one kind of them: where one may stand, whether it stands for itself before the rest, and what is
// read in its stead beside blanks.
type manner struct {
	form          func() *regexp.Regexp
	stands        func(rest string) bool
	ahead, behind bool
	sign          string
}

var manners = []manner{
	{text.Pattern(`([` + refusing + `])`), func(rest string) bool { return !strings.ContainsAny(rest, ",.;!?\n") }, true, false, ";no"},
	{text.Pattern(`(?:^x(?:[^,.;!?\n]|\.\S)*?|[,.;!?\n][ \t]*)([` + refusing + `])`), func(string) bool { return true }, false, true, ";no"},
	{text.Pattern(`(?i)[ \t\n,;.!?(](` + anywhere + `)`), func(rest string) bool { return endsAt(rest, 0) }, true, true, ""},
	{text.Pattern(`(?i)[\n.!?;,][ \t]*(` + greeting + `)`), func(rest string) bool { return endsAt(rest, 0) && rest[0] != ':' }, true, false, ""},
	{text.Pattern(`(?i)[\n.!?][ \t]*(` + forgiving + `)`), func(rest string) bool { return strings.ContainsRune(",.!", rune(rest[0])) }, true, false, ""},
	{text.Pattern(`(?i)[ \t\n,;.!?(–—-](` + suiting + `)`), endsClause, true, true, ""},
	{text.Pattern(`(?i)[ \t\n,;.!?(–—]((?:-{1,2}[ \t]+)?(?:` + closing + `))`), endsClause, false, true, ""},
	{text.Pattern(`(?i)[ \t\n,;.!?(–—]((?:-{1,2}[ \t]+)?(?:` + closing + `))`), endsClause, false, true, ""}, // before one of them
}

// endsClause reports whether nothing more of its clause stands in the rest of a text, nor what is to be done else.
func endsClause(rest string) bool {
	rest = strings.TrimLeft(rest, " \t")
	r, n := utf8.DecodeRuneInString(rest)
	if rest != "" && r != '\n' && r != ')' && (!isBreak(r) || r == ':') {
		return false
	}
	words := wordsOf(rest[n:min(len(rest), n+longestDelay*8)])
	return len(words) == 0 || !otherWays[words[0]]
}

var otherWays = wordSet("otherwise else or if sonst oder sinon ou si o of anders")

// mannerly are words with which some of them begin, and which most orders do without.
var mannerly = wordSet(`pls plss plz plzz real really super rn straight while many thanks thank thx tysm ty cheers merci danke gracias grazie obrigado obrigada if when whenever once for no as like
	yes yeah yep yup sure alright alrighty okey okie k kk hi hey hello good morning guten moin bonjour bonsoir hola buenos buongiorno buonasera bom goedemorgen and one another last never nvm nevermind np not why`)

// mayBeMannerly reports whether a text has one of them, or a sign that may be one: most have none, and are not read for them.
func mayBeMannerly(s string) bool {
	var word [12]byte
	n := 0
	for i := 0; i <= len(s); i++ {
		c := byte(' ')
		if i < len(s) {
			c = smallLetter(s[i])
		}
		switch {
		case c >= 0xe2, i > 0 && strings.IndexByte(")d3^", c) >= 0 && strings.IndexByte(":;=-'<^", s[i-1]) >= 0:
			return true
		case c >= 'a' && c <= 'z':
			if n < len(word) {
				word[n] = c
			}
			n++
			continue
		case n > 0 && n <= len(word) && mannerly[string(word[:n])]:
			return true
		}
		n = 0
	}
	return false
}

// plainly is a text of the same length with blanks in the stead of what is said for manners around its bytes
// [start, end), as far as that is read as one order.
func plainly(s string, start, end int) string {
	from, to := max(0, start-longestRest), min(len(s), end+longestRest)
	first := "\n"
	if from > 0 {
		first = "x"
	}
	if !mayBeMannerly(s[from:start]) && !mayBeMannerly(s[end:to]) {
		return s
	}
	return s[:from] + unmannered(first+s[from:start]+"x", true) + s[start:end] + unmannered("x"+s[end:to]+"\n", false) + s[to:]
}

// unmannered is a text without manners, but for the byte before it and the one behind it, which say how it goes on.
func unmannered(s string, ahead bool) string {
	for _, m := range manners {
		if !m.ahead && ahead || !m.behind && !ahead {
			continue
		}
		var out []byte
		for _, at := range m.form().FindAllStringSubmatchIndex(s, -1) {
			from, to := at[len(at)-2], at[len(at)-1]
			if !m.stands(s[to:]) || s[to-1] == ')' && strings.LastIndexByte(s[:from], '(') > strings.LastIndexByte(s[:from], ')') {
				continue // "(please :)"
			}
			if out == nil {
				out = []byte(s)
			}
			copy(out[from:to], strings.Repeat(" ", to-from)[len(m.sign):]+m.sign)
		}
		if out != nil {
			s = string(out)
		}
	}
	return s[1 : len(s)-1]
}

package provenance

import "github.com/writ-project/writ/internal/text"

// # A turn that only agrees
//
// An agent asks before it acts, and the user says "Yes, please go ahead". That names
// nothing and takes nothing back, so what he said before stays his latest word: a turn
// that only agrees changes nothing that a decision reads. Whoever has read this gains
// nothing by it, for what passes behind such a turn passed before it. Its own words are his
// as any are: "Sounds good" may be what he wants answered, and "Confirm" an order.
//
// Once an act was made, or a person said no to one, it is a turn like any other. "The
// largest file" was said of what there was, and a yes to the next question does not say it
// of what is left (R9); behind a no it may be a yes to leaving it.

// Assents reports whether the user's own words of a turn only agree to what he was asked:
// nothing but words of agreement and courtesy, no question, nothing pasted. Thanks, alone or
// with an "ok", end a matter, so they count beside a yes or an order to go on.
func Assents(own string) bool {
	return len(own) <= mostAssent && agreement().MatchString(own) && (ordersOn().MatchString(own) || !thanking().MatchString(own))
}

// mostAssent bounds the bytes of such a turn, mostAgreed how many of them are read.
const (
	mostAssent = 120
	mostAgreed = 16
)

const (
	outright = `yes|yeah|yep|yup|sure|of course|agreed|absolutely|definitely|certainly|exactly`
	saysYes  = outright + `|ok|okay|right|correct|that(?:['’]s| is) (?:right|correct|fine)|that works|(?:sounds|looks) good`
	saysOn   = `(?:please |you (?:can|may) )?(?:go ahead|go on|go for it|do it|do that|do so|proceed|continue|carry on)|please do|(?:i )?confirm|confirmed|approved`
	thanks   = `thanks|thank you|great|perfect`
	linking  = `please|and|now|then|with (?:it|that)`
	betweens = `(?:[\s.,;:!-]+|$)`
)

var (
	agreement = text.Pattern(`(?i)^\s*(?:(?:` + thanks + `|` + linking + `)` + betweens + `)*(?:` + saysYes + `|` + saysOn + `)` + betweens +
		`(?:(?:` + saysYes + `|` + saysOn + `|` + thanks + `|` + linking + `)` + betweens + `)*$`)
	ordersOn = text.Pattern(`(?i)\b(?:` + outright + `|` + saysOn + `)\b`)
	thanking = text.Pattern(`(?i)\b(?:` + thanks + `)\b`)
)

package provenance

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/text"
)

// # Requests and wishes (R21)
//
// What is ordered may be asked for ("can you", "would you mind"), wished for ("I'd like to") or be a state that is to
// be ensured. A wish counts where he neither doubts it, puts it off nor asks about it.

var (
	// requests are how people ask somebody politely to do something.
	requests = ways(`can you|could you|can u|could u|would u|will u|can ya|could ya|could you maybe|can you maybe|any chance you could|any chance you can|would you mind to|need you to|want you to|gonna need you to|will you please|would you|kannst du|könntest du|würdest du|can you possibly|could you possibly|would you possibly|
		would it be possible to|would it be possible for you to|would you be able to|would you be so kind as to|would you be willing to|
		i want you to|i need you to|i'd like you to|i would like you to|i'll need you to|i will need you to|
		i could use your help to|i could really use your help to|i need your help to|
		let's|lets|let us|help me|help me to|help to|go ahead|proceed to|make sure to|make sure you|make sure that you|ensure you|ensure that you|be sure to|remember to|try to|
		might you|might you be able to|would you be kind enough to|be so kind as to|i'd like for you to|i would like for you to|i'd love for you to|
		i was hoping you could|i was hoping you would|i was wondering if you could|i was wondering if you would|i wonder if you could|
		you can|you may|you can now|you may now|you can also|you can go ahead and|you may go ahead and|i think you can|
		may i ask you to|might i ask you to|can i ask you to|could i ask you to|can i get you to|could i get you to|i'd ask you to`)
	// doings are those behind which stands what is done in its form in -ing.
	doings = ways(`would you mind|do you mind|i'd appreciate you|i'd appreciate your|i would appreciate you|i would appreciate your|
		i'd appreciate your help in|i'd appreciate your help with|i would appreciate your help in|i would appreciate your help with|i could use your help in|i could use your help with|i could really use your help in|i could really use your help with|
		i need your help in|i need your help with|help in|help me in|help with|help me with|assist in|assist me in|assist with|assist me with|
		proceed with|go ahead with|proceed by|begin by|start by`)
	// wishes are how they say what they want to be done.
	wishes = ways("i want to|i need to|i'd like to|i would like to|i'd love to|i would love to|i wish to|i'd want to|we need to")
	// ensuring are how they say what a state has to be.
	ensuring = ways("ensure|ensure that|make sure|make sure that|see to it that")
)

func ways(list string) (out [][]string) {
	for w := range strings.SplitSeq(list, "|") {
		out = append(out, strings.Fields(w))
	}
	return out
}

// request is how a clause asks for what follows its first n words: of us, as a wish, or
// as a state; asked says that it asks by any of these, or with please, and doing that
// what is asked for is in its form in -ing.
type request struct {
	n                                            int
	polite, wish, states, doing, asked, question bool
	soft                                         bool // it may as well ask for advice
}

// requestOf reads the request that words begin with, and what may lead it.
func requestOf(words []string) (r request) {
	for {
		for r.n < len(words) && leading[words[r.n]] {
			r.asked = r.asked || pleading[words[r.n]]
			r.n++
		}
		rest := words[r.n:]
		n := r.take(rest)
		if n == 0 {
			if n = welcomed(rest); n > 0 {
				r.polite, r.doing, r.states = true, false, false
			}
		}
		if n == 0 {
			return r
		}
		r.asked, r.question = true, r.question || questioning[rest[0]]
		r.n += n
	}
}

// take reads one way to ask that words begin with, and returns how many of them it is.
func (r *request) take(words []string) (n int) {
	for i, list := range [][][]string{requests, doings, wishes, ensuring} {
		for _, w := range list {
			if len(w) <= n || len(words) < len(w) || !slices.Equal(words[:len(w)], w) {
				continue
			}
			n = len(w)
			r.polite, r.wish = r.polite || i < 2, r.wish || i == 2
			r.doing, r.states = i == 1, i == 3
			r.soft = r.soft || hasAny(w, tentative)
		}
	}
	return n
}

// welcomed returns how many words say how welcome it were "if you could".
func welcomed(words []string) int {
	for i := 1; i+2 < min(len(words), 12); i++ {
		if words[i] != "if" || words[i+1] != "you" || words[i+2] != "could" && words[i+2] != "would" {
			continue
		}
		first := words[0] == "i'd" || words[0] == "it'd" || (words[0] == "i" || words[0] == "it") && words[1] == "would"
		if last := words[i-1]; first && (welcoming[last] || last == "appreciate" || last == "it" && i > 1 && words[i-2] == "appreciate") {
			return i + 3
		}
		return 0
	}
	return 0
}

// wavers reports whether the user puts off what he wished for, doubts it, does it
// himself, or asks about it: in the rest of its sentence or in the next, or near it how he
// does it.
func wavers(near, after string, polite bool) bool {
	all := wordsOf(near)
	for i := 0; i+1 < len(all); i++ {
		if self[all[i]] && all[i+1] == "i" || all[i] == "how" && all[i+1] == "to" {
			return true
		}
	}
	end := endOf(after)
	if polite && able().MatchString(after) || !polite && isAsk(firstRune(after[end:])) {
		return true
	}
	for _, c := range clausesOf(after[:end]) {
		words := wordsOf(c.text)
		r := requestOf(words)
		if doubts(c.text, words, r) || hasAny(words, wavering) || hasAny(words, dating) || hasAny(words[r.n:], wondering) {
			return true
		}
	}
	next := behindSentence(after)
	sentence := next[:endOf(next)]
	words := wordsOf(sentence)
	r := requestOf(words)
	return doubts(sentence, words, r) || !r.polite && (isQuestion(next) && endOf(next) < len(next) || hasAny(words, wondering) || hasAny(words, wavering)) ||
		len(words) > 0 && (words[0] == "but" || words[0] == "however")
}

// doubts reports whether a clause of some words denies or asks, or is for words about the wish.
func doubts(clause string, words []string, r request) bool {
	return denies(clause) || !r.polite && asks(words, r) || advises(words, r)
}

// able is what asks of a request whether it can be done.
var able = text.Pattern(`(?i)^[^.!?]*\b(?:at all|technically|legally|physically)\s*[?]`)

// advises reports whether a clause says what is in a wish's way, or that words about it are
// asked for.
func advises(words []string, r request) bool {
	return hasAny(words, complaining) ||
		r.n < len(words) && (explaining[words[r.n]] || words[r.n] == "let" && r.n+1 < len(words) && words[r.n+1] == "me")
}

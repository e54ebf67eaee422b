package provenance

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/text"
)

// # Secrets that the user gives (R6)
//
// A password may be any text, so every word that the user typed is one as it stands: who sent
// him "bill.txt", which he asks to be paid, could have it made his password. It is one where the
// user says so: right behind the word for it, with what gives it its value between them
// ("change my password to …", "PIN: …"), or before that word ("use … as the password").

// SecretAt reports whether the words of a text around the bytes [start, end) say of these that
// they are a secret. The nouns are a contract's words for it, beside those that everybody has.
func SecretAt(s string, start, end int, nouns []string) bool {
	before := strings.TrimRight(s[max(0, start-longestAnswer):start], quotes+brackets)
	word := strings.TrimRight(before, " \t")
	switch given := givesValue().FindStringIndex(before); {
	case given != nil:
		if ofSecret(before[:given[0]], nouns) {
			return true
		}
	case len(word) < len(before) && isSecret(lastWord(word), nouns): // "the code 4711"
		return true
	}
	behind := strings.TrimLeft(s[end:min(len(s), end+longestAnswer)], quotes+")]}>")
	m := secretBehind().FindStringSubmatchIndex(behind)
	return m != nil && isSecret(behind[m[2]:m[3]], nouns)
}

func isSecret(word string, nouns []string) bool {
	return secretWords[lower(word)] || isNoun(word, nouns)
}

// lastWord is the word that a text ends in.
func lastWord(s string) string {
	return s[strings.LastIndexFunc(s, func(r rune) bool { return !isAlnum(r) && r != '_' && r != '-' })+1:]
}

// ofSecret reports whether a clause that goes on with a value is of a secret: one of its last words
// is, and none of them begins something else.
func ofSecret(clause string, nouns []string) bool {
	clause = clause[strings.LastIndexFunc(clause, func(r rune) bool {
		return isBreak(r) || r == '\n' || strings.ContainsRune(quotes+brackets, r) && r != '\'' && r != '’'
	})+1:]
	words := strings.Fields(clause)
	for n := range min(len(words), mostOfSecret) {
		w := bare(words[len(words)-1-n])
		if isSecret(w, nouns) {
			return true
		}
		if joining[w] || startsDigit(w) {
			return false
		}
	}
	return false
}

// mostOfSecret is in how many words before a value the word for it has to stand: "the password of
// my bank account to …".
const mostOfSecret = 6

var (
	// givesValue stands between what a secret is called and it.
	givesValue   = text.Pattern(`(?i)(?:[ \t]*(?::|=|->|→)|[ \t]+(?:to|is|are|be|as|into|with|was|auf|zu|ist|lautet|als))[ \t]*$`)
	secretBehind = text.Pattern(`(?i)^[ \t]*(?:(?:as|for|is|to be|be|shall be|should be|als|für|ist|sei)[ \t]+)(?:(?:the|my|our|a|an|your|new|next|das|mein|meine|die|der|neue|neues|neuer)[ \t]+){0,3}([\pL_-]+)`)
	secretWords  = wordSet(`password passwords passwort passwörter passphrase passcode passkey pass pwd pw pin pins code codes token tokens secret secrets key keys
		otp cvv cvc credential credentials login kennwort geheimzahl schlüssel zugangscode contraseña clave mot-de-passe senha wachtwoord`)
)

// saysSecret is SecretAt of a stretch of a reading.
func (r *reading) saysSecret(nouns []string) func(span) bool {
	nouns = slices.Clone(nouns)
	return func(at span) bool { return SecretAt(r.text, at.start, at.end, nouns) }
}

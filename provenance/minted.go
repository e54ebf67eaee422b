package provenance

import (
	"slices"
	"strings"
	"unicode"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// # What a server gives itself
//
// An id that a server numbers its records by is nobody's text, though the contract
// does not say so and an act has sent text to that server: R38 lowers the whole of it,
// for the text may lie in any field. A person may say of one field that the server alone
// gives what stands there (policy.WritesServer). He can be wrong, and who reads this may
// want him to be. So it holds of nothing that looks like what somebody wrote or where
// something could be sent, nor of what this session sent, said or asked with before (R4);
// and it is not offered of a field that has shown such a value. A read asked with how many
// rows it may have names nothing by that, and the ids of what it finds are the server's as
// in any list; asked with what may name one thing, the number of a record or a name,
// what it finds is as much the agent's choice as before (R4).

// fieldOf tells the fields apart that a contract names.
type fieldOf struct{ server, tool, rule string }

// Mintable reports whether a value could be one that a server gives: a whole number, a time
// in seconds, or a word of which one piece is mostly what a server counts or draws, and that
// is no account, phone number or wallet. It is no address, path or name of a host: it has no
// mark that these have.
func Mintable(v strictjson.Value) bool {
	s, isText := v.Text()
	if !isText {
		n, _, why := Canonical(Integer, v)
		return v.Kind() == strictjson.Number && why == "" && counted(strings.TrimPrefix(n, "-"))
	}
	switch {
	case digits(s):
		return counted(s)
	case stamped().MatchString(s):
		return true
	case len(s) > 128 || !idForm().MatchString(s) || wallet(s) || ibanStart().MatchString(s) && atom(fold(s)):
		return false
	case !strings.ContainsFunc(s, unicode.IsLetter) && atom(fold(s)):
		return false
	}
	return slices.ContainsFunc(strings.FieldsFunc(s, func(r rune) bool { return !letterOrDigit(r) }), given)
}

var (
	idForm  = text.Pattern(`^[0-9A-Za-z][0-9A-Za-z_#+=-]*$`)
	stamped = text.Pattern(`^[0-9]{9,}\.[0-9]{1,9}$`)
	// coin are the forms of wallets: hexadecimal by its sign, and the two with a checksum.
	coin = text.Pattern(`^(0[xX][0-9a-fA-F]+|[1-9A-HJ-NP-Za-km-z]{25,}|(?i:[a-z]{1,15}1[02-9ac-hj-np-z]{38,}))$`)
)

// counted reports whether digits are no number of a card, nor longer than what is counted:
// 64 bits, or a time with them.
func counted(s string) bool {
	if len(s) > 20 || !digits(s) {
		return false
	}
	if len(s) < 13 || len(s) == 20 || s[0] < '2' || s[0] > '6' { // what cards begin with
		return true
	}
	sum := 0
	for i := range len(s) {
		d := int(s[len(s)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 != 0
}

// wallet reports whether a word can be one. What is drawn of as many characters in one
// case is a digest, and none.
func wallet(s string) bool {
	return coin().MatchString(s) && (strings.ToLower(s) != s || strings.ContainsAny(s[:2], "xX") || strings.Trim(s, "0123456789abcdef") != "")
}

func letterOrDigit(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// given reports whether a piece of a word is mostly what a server counts or draws, and not
// a name with a digit: half of it digits, or so mixed that nobody would write it.
func given(s string) bool {
	n, changes, was := 0, 0, byte(0)
	for i := range len(s) {
		is := byte('a')
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			is = '0'
			n++
		case c < 'a':
			is = 'A'
		}
		if was != 0 && is != was && !(was == 'A' && is == 'a') { // a capital begins a word
			changes++
		}
		was = is
	}
	return 2*n >= len(s) || len(s) >= 8 && n > 0 && (changes > 2 || changes > 1 && n > 1)
}

// mints takes in what one leaf says of its field: that the server can have given it, or
// that it cannot, because it came in by a call or looks as if it had. A value that its
// field had before any call did is the server's, whoever sent it since.
func (l *Ledger) mints(m *meta, i uint32, j judged, under []uint32) {
	at := fieldOf{m.server, m.tool, m.rule}
	switch {
	case j.flags&minted != 0:
		if _, known := l.minting[at]; !known {
			l.minting[at] = true
		}
	case j.written:
		for _, k := range under {
			if f := l.store.at(k); k != i && f.flags&minted != 0 && f.meta == l.store.at(i).meta {
				return
			}
		}
		l.minting[at] = false
	}
}

// Mints says of an output whether this session has seen something there that the server
// can have given itself (may), and whether it has seen something it cannot have (not).
// rule is Fact.Rule.
func (l *Ledger) Mints(server, tool, rule string) (may, not bool) {
	is, known := l.minting[fieldOf{server, tool, rule}]
	return known && is, known && !is
}

// asks reports whether a leaf is what its own call was asked with.
func (c *call) asks(leaf *Leaf) bool {
	if len(c.own)+len(c.narrow) == 0 {
		return false
	}
	return slices.ContainsFunc(readings(leaf.Type, leaf.Value), func(t string) bool { _, is := c.own[t]; return is }) ||
		slices.ContainsFunc(spellings(leaf.Type, leaf.Value), func(e string) bool { _, is := c.narrow[e]; return is })
}

// Vague reports whether an argument names no one thing: it is empty, yes or no, a number of
// small space that by its name says how many rows there may be, or from which on, a state or
// an order that by its name it is, or words of a sentence. Two words are a name, and so is a
// capital behind the first.
func Vague(pointer string, v strictjson.Value) bool {
	if empty(v) || v.Kind() == strictjson.Bool {
		return true
	}
	if s, isText := v.Text(); isText && strings.ContainsAny(s, " \t\n\f\r") && sentence().MatchString(s) { // one word is no sentence
		return true
	}
	is := func(list []string) bool {
		words := text.NameWords(pointer[strings.LastIndexByte(pointer, '/')+1:])
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}
	if s, isText := v.Text(); isText && slices.Contains(states, s) {
		return is(filters) && !is(naming)
	}
	_, _, why := Canonical(Integer, v)
	return why == "" && SmallSpace(Untyped, v) && is(counts) && !is(naming)
}

var sentence = text.Pattern(`^\s*\pL\p{Ll}*[,.;:!?]*(\s+\p{Ll}+[,.;:!?]*){2,}\s*$`)

var (
	counts = strings.Fields("limit count page pages size offset max maximum top take skip rows results depth per first last")
	naming = strings.Fields("id ids number no key name ref")
	// filters are arguments by which lists are narrowed to what is in a state, or put in an
	// order, and states what these are called, as they are written: nobody's name.
	filters = strings.Fields("state status filter sort order direction priority visibility")
	states  = strings.Fields("open opened closed all any active inactive enabled disabled pending new todo done resolved unresolved in_progress " +
		"completed draft published archived merged asc desc ascending descending created updated low medium high urgent public private read unread")
)

// holds reports whether something that its own call was asked with stands in a leaf.
func (c *call) holds(leaf *Leaf) bool {
	if c.low.starts == nil {
		return false
	}
	return slices.ContainsFunc(readings(leaf.Type, leaf.Value), c.low.anyIn)
}

// minting gives a leaf of a read its mark: external by its contract, and worth less than
// that by nothing but the places of R38 and a call that named nothing (most is its label
// without these).
func (c *call) minting(leaf *Leaf, most, reflected writ.Label, j *judged) {
	if !leaf.Rule.WholeExternal() || empty(leaf.Value) {
		return
	}
	if !Mintable(leaf.Value) || reflected < writ.System || c.asks(leaf) {
		j.written = !SmallSpace(Untyped, leaf.Value) // which anything may be by chance
	} else if most >= writ.System && j.flags&echoed == 0 && !c.holds(leaf) {
		j.flags |= minted
	}
}

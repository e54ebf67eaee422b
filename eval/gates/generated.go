package gates

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"unicode/utf16"

	writ "github.com/writ-project/writ"
)

// The streams of random numbers of the two generators.
const (
	planStream   = 1
	groundStream = 2
)

// mutation is one way to write a text, of what a generator drew, and what must
// become of it: for no reason it must be accepted. Forms that no drawn name or
// value changes are files in cases/, and are not drawn again here.
type mutation[T any] struct {
	name string
	want writ.Reason
	text func(T) string
}

// generate runs n generated cases of a section: draw draws the i-th, which a
// mutation writes; judge says beside what it is judged and what it came to.
func generate[T any](section string, seed, stream uint64, n int, ms []mutation[T], draw func(rng *rand.Rand, i int) T, judge func(T, *mutation[T], string) (beside string, got answer)) *Section {
	s := newSection(section)
	s.Seed = &seed
	rng := rand.New(rand.NewPCG(seed, stream))
	h := sha256.New()
	for i := range n {
		m := &ms[i%len(ms)]
		one := draw(rng, i)
		text := m.text(one)
		beside, got := judge(one, m, text)
		note(h, m.name, beside, text)
		s.score(fmt.Sprintf("%s/%05d", section, i), m.name, string(m.want), got)
	}
	s.Inputs = sum(h)
	return s.finish()
}

// object is a JSON object that a generator made: names, and values as JSON. It is
// written here, so that no reader of the product says what the text means.
type object []member

type member struct{ name, value string }

func (o object) String() string {
	var b []string
	for _, m := range o {
		b = append(b, str(m.name)+":"+m.value)
	}
	return "{" + strings.Join(b, ",") + "}"
}

// without is the object but for one member.
func (o object) without(i int) object { return append(append(object{}, o[:i]...), o[i+1:]...) }

// str is a text as JSON.
func str(s string) string {
	b, _ := json.Marshal(s) // of a string it always works
	return string(b)
}

func list(values []string) string { return "[" + strings.Join(values, ",") + "]" }

var token = regexp.MustCompile(`(?s)\\u....|\\.|.`)

// respell writes JSON with white space between its tokens and characters as
// escapes: the same value.
func respell(rng *rand.Rand, s string) string {
	gap := func() string { return strings.Repeat(pick(rng, "", "", "", " ", "\n", "\t", "\r\n"), 1+rng.IntN(2)) }
	inside := false
	return token.ReplaceAllStringFunc(s, func(t string) string {
		switch {
		case t == `"`:
			inside = !inside
		case !inside && strings.Contains("{}[]:,", t):
			return gap() + t + gap()
		case inside && t[0] != '\\' && rng.IntN(4) == 0:
			var b strings.Builder
			for _, u := range utf16.Encode([]rune(t)) {
				fmt.Fprintf(&b, pick(rng, `\u%04x`, `\u%04X`), u)
			}
			return b.String()
		}
		return t
	})
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// word returns n letters that mean nothing.
func word(rng *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = pick(rng, []byte([]string{"bcdfghklmnprstvwz", "aeiou"}[i%2])...)
	}
	return string(b)
}

// texts are what a reader may stumble over where any text may stand.
var texts = []string{"It is paid.", "```", `"},{"`, `\`, "漢字😀\n\t", "ä\u0301\u200b", "</s>{}", `{"type":"x"}`}

// misspelt is a name that looks like s and is another.
func misspelt(rng *rand.Rand, s string) string {
	i := strings.IndexFunc(s, func(r rune) bool { return r >= 'a' && r <= 'z' })
	return pick(rng, s[:i]+strings.ToUpper(s[i:i+1])+s[i+1:], strings.ToUpper(s), lookAlike.Replace(s), s+" ", s+"\u200b", s+"\x00", "../"+s, s+"\u202e")
}

// lookAlike puts Cyrillic and Armenian letters for Latin ones; each word that is
// drawn has one of them.
var lookAlike = strings.NewReplacer("a", "а", "e", "е", "o", "о", "i", "і", "u", "ս")

package gates

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
)

// The streams of random numbers of the two generators.
const (
	planStream   = 1
	groundStream = 2
)

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

// respell writes JSON with white space between its tokens and characters as
// escapes: the same value.
func respell(rng *rand.Rand, s string) string {
	gap := func() string { return strings.Repeat(pick(rng, "", "", "", " ", "\n", "\t", "\r\n"), 1+rng.IntN(2)) }
	var b strings.Builder
	inside := false
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case inside && r == '\\':
			if n = 2; s[i+1] == 'u' {
				n = 6
			}
			b.WriteString(s[i : i+n])
		case r == '"':
			inside = !inside
			b.WriteByte('"')
		case inside && rng.IntN(4) == 0:
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, pick(rng, `\u%04x`, `\u%04X`), u)
			}
		case !inside && strings.ContainsRune("{}[]:,", r):
			b.WriteString(gap() + string(r) + gap())
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
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

// within puts extra into an object's text, before its last brace.
func within(s, extra string) string {
	i := strings.LastIndexByte(s, '}')
	return s[:i] + extra + s[i:]
}

// otherCase changes the case of one letter of s, which has one.
func otherCase(rng *rand.Rand, s string) string {
	b := []byte(s)
	for {
		i := rng.IntN(len(b))
		if c := b[i] &^ 0x20; c >= 'A' && c <= 'Z' {
			b[i] ^= 0x20
			return string(b)
		}
	}
}

// lookAlike puts Cyrillic and Armenian letters for Latin ones.
var lookAlike = strings.NewReplacer("a", "а", "e", "е", "o", "о", "i", "і", "u", "ս")

// generate runs n generated cases of a section: one makes the i-th, says what it
// is and what it must come to, and judges it.
func generate(section string, seed, stream uint64, n int, one func(rng *rand.Rand, i int) (kind string, want writ.Reason, input string, got answer)) *Section {
	s := newSection(section)
	s.Seed = &seed
	rng := rand.New(rand.NewPCG(seed, stream))
	h := sha256.New()
	for i := range n {
		kind, want, input, got := one(rng, i)
		note(h, kind, input)
		s.score(fmt.Sprintf("%s/%05d", section, i), kind, expected(string(want)), got)
	}
	s.Inputs = sum(h)
	return s.finish()
}

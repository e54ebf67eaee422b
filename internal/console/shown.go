package console

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
)

// A piece is a part of a text that others wrote, as it is drawn: characters that show, or
// what stands for one that does not.
type piece struct {
	Text   string
	Hidden bool
	Mark   bool // it is what was asked for
	Hit    bool // and begins it: a link leads here
	Code   bool // it is a name, or bytes
}

// maxDrawn bounds what a page shows of one value, in bytes. The rest is a download.
const maxDrawn = 256 << 10

// draw is a text in pieces: whatever is hidden in it is drawn.
func draw(s string) []piece { return drawn(nil, []byte(s), false, false) }

// drawBytes is draw of exact bytes, over several lines.
func drawBytes(b []byte) []piece { return drawn(nil, b, false, true) }

// marked is drawBytes with the bytes from … to marked.
func marked(b []byte, from, to int) []piece {
	if from < 0 || to > len(b) || from > to {
		from, to = 0, 0
	}
	out := drawn(nil, b[:from], false, true)
	out = drawn(out, b[from:to], true, true)
	return drawn(out, b[to:], false, true)
}

// hit has a link lead to the first that is marked.
func hit(all []piece) []piece {
	if i := slices.IndexFunc(all, func(p piece) bool { return p.Mark }); i >= 0 {
		all[i].Hit = true
	}
	return all
}

// prose is draw of a sentence of Writ's, in which names stand between backticks.
func prose(s string) (out []piece) {
	parts := strings.Split(s, "`")
	if len(parts)%2 == 0 { // the last of them begins nothing
		last := len(parts) - 2
		parts = append(parts[:last:last], parts[last]+"`"+parts[last+1])
	}
	for i, part := range parts {
		for _, p := range draw(part) {
			p.Code = i%2 == 1
			out = append(out, p)
		}
	}
	return out
}

// maxMarks are how many marks a letter is drawn with: more of them are drawn over each other.
const maxMarks = 3

func drawn(out []piece, b []byte, mark, lines bool) []piece {
	plain, marks := 0, 0
	flush := func(to int) {
		if to > plain {
			out = append(out, piece{Text: string(b[plain:to]), Mark: mark})
		}
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		sign := ""
		if marks++; !unicode.Is(unicode.M, r) {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && n <= 1:
			sign = fmt.Sprintf(`\x%02X`, b[i])
		case r == '\n' && lines:
			sign = "↵"
		case r == '\n':
			sign = `\n`
		case r == '\t':
			sign = "⇥"
		case text.Hidden(r, text.Unprinted) || marks > maxMarks:
			sign = fmt.Sprintf("U+%04X", r)
		}
		if sign != "" {
			flush(i)
			out = append(out, piece{Text: sign, Hidden: true, Mark: mark})
			plain = i + n
			if sign == "↵" {
				plain = i // the line ends as well
			}
		}
		i += n
	}
	flush(len(b))
	return out
}

// short is the beginning of a text, for a place that has no room: so many characters.
func short(s string, n int) string { return text.OneLine(s, n) }

// lines are those of a text that was set in lines for a person: their ends are nobody's bytes.
func lines(b []byte) []string { return strings.Split(string(b), "\n") }

// clip is the beginning of a text, so many characters, for draw to draw.
func clip(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i] + "…"
		}
	}
	return s
}

// upTo is the beginning of a value that a page has room for.
func upTo(b []byte) (part []byte, cut bool) {
	if len(b) <= maxDrawn {
		return b, false
	}
	n := maxDrawn
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n], true
}

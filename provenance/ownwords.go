// # The user's own words (R6)
//
// A turn is what a user typed and what he pasted. What he pasted was written by
// others, who may know these rules; so the rules hold whatever stands in it.
//
// Marks that set text apart are looked for in the turn as people read it: every
// line and paragraph separator is a line feed, every space a space, what nobody
// sees is left out, and &lt;, ＜ and the like are the marks they show. A mark
// that opens sets apart all up to the last mark of the whole turn that can
// close it, and up to the turn's end if none follows: whoever wrote what stands
// inside can write the closing mark too, but never after the user's. So what
// the user says between two pasted blocks of one kind goes with them. Kinds do
// not know of each other: a mark inside a block of another kind counts.
//
//   - Runs of three or more of `, ~, " or ': from the first to the last of a
//     turn; an odd number of them, to its end.
//   - <!-- to -->, <![ to ]]>, <? to ?>, <! and a letter to >, ![ to ) or ].
//   - <name …> to </name>, whatever the name, and [name] or [name=…] to
//     [/name]. Without an end, [quote] and [code] reach to the turn's end.
//   - A tag with an attribute's value in it, to the last > that is no arrow.
//   - An opening tag without an end reaches to the turn's end. It does not if it
//     is a name in prose: words and no colon stand before it in its line, and a
//     space and more of the line or a stop follows it, not the very text, as in
//     "the <summary> of"; and "List<T>" may end its line. Then only the tag is not
//     the user's. A name with a digit (<INC-7>, but not <h1>), a dot or a colon (<mailto:kim>)
//     is no tag without an end; what holds nothing (<br>, <img>, <x/>) opens
//     nothing.
//   - A line that begins with >, also in a list, and what follows it up to a
//     line that is empty. Here only a line feed ends a line, as it did for the
//     program that put the marks there.
//   - From a line with which mail programs begin what another wrote ("On … wrote:",
//     "-----Original Message-----", "From: …" above "Sent: …") to the turn's end. Above
//     "Subject: …" too, of a name with its address or with no line between: who has a mail
//     written says whom it is to.
//   - Indented code, as CommonMark has it: after an empty line four columns or
//     more beyond the least indented line of the turn, and not the text of a list
//     item.
//
// All else is the user's: what he sets in quotation marks or in single
// backticks, links, and what he pastes with nothing to set it apart.
package provenance

import (
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	markdown "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/writ-project/writ/internal/text"
)

// split parts a turn into the user's own words and the rest, each with the
// other blotted out byte by byte, so that places stay what they were.
func split(turn string) (own, rest string) {
	blot := make([]bool, len(turn))
	seen, at := look(turn)
	paint(blot, at, marked(seen))
	paint(blot, nil, quotedLines(turn, seen, at, blot))
	// What is indented is asked of the bytes too, where only a line feed ends a
	// line: whoever is quoted chooses every other break.
	code := indented(masked(turn, func(i int) bool { return blot[i] }))
	if seen != turn {
		shown := indented(masked(seen, func(i int) bool { return blot[at[i]] }))
		paint(blot, at, shown)
	}
	paint(blot, nil, code)
	return blotted(turn, blot, true), blotted(turn, blot, false)
}

// paint blots spans out; at, unless nil, are the places of what they count.
func paint(blot []bool, at []int, spans []span) {
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })
	done := 0
	for _, s := range spans {
		if at != nil {
			s = span{at[s.start], at[s.end]}
		}
		for ; done < s.end; done++ {
			blot[done] = blot[done] || done >= s.start
		}
	}
}

func blotted(text string, blot []bool, which bool) string {
	if which && !slices.Contains(blot, true) {
		return text
	}
	out := []byte(text)
	for i := range out {
		if blot[i] == which {
			out[i] = 0
		}
	}
	return string(out)
}

var (
	// looks are characters that show a mark of another.
	looks  = map[rune]rune{'＜': '<', '﹤': '<', '＞': '>', '﹥': '>', '／': '/', '［': '[', '］': ']'}
	breaks = "\n\r\v\f\u0085\u2028\u2029"
	entity = text.Pattern(`^&(?:(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[lLgG][tT]);?|[A-Za-z]{2,8};)`)
)

// look returns a turn as people read it, and the place in the turn of each of
// its bytes and of its end.
func look(turn string) (seen string, at []int) {
	var b strings.Builder
	at = make([]int, 0, len(turn)+1)
	for i := 0; i < len(turn); {
		r, n := shownAt(turn[i:])
		hidden := false
		switch {
		case r == '\r' && strings.HasPrefix(turn[i:], "\r\n"):
			hidden = true
		case strings.ContainsRune(breaks, r):
			r = '\n'
		case r != '\t' && unicode.IsSpace(r):
			r = ' '
		case r != '\t':
			hidden = text.Hidden(r, text.Unseen)
		}
		if !hidden {
			b.WriteRune(r)
			for range b.Len() - len(at) {
				at = append(at, i)
			}
		}
		i += n
	}
	return b.String(), append(at, len(turn))
}

// shownAt is the character that a text begins with as people read it, and its length.
func shownAt(s string) (r rune, n int) {
	r, n = utf8.DecodeRuneInString(s)
	if r == '&' {
		e := entity().FindString(s[:min(len(s), 12)])
		if c, _ := utf8.DecodeRuneInString(html.UnescapeString(e)); e != "" && c != '&' {
			r, n = c, len(e)
		}
	}
	if c, ok := looks[r]; ok {
		r = c
	}
	return r, n
}

var (
	fences = text.Pattern("`{3,}|~{3,}|\"{3,}|'{3,}")

	passages = []struct{ open, close func() *regexp.Regexp }{
		{text.Pattern(`<!--`), text.Pattern(`-->`)},
		{text.Pattern(`<!\[`), text.Pattern(`\]\]>`)},
		{text.Pattern(`<\?`), text.Pattern(`\?>`)},
		{text.Pattern(`<!\pL`), text.Pattern(`>`)},
		{text.Pattern(`!\[`), text.Pattern(`[)\]]`)},
	}

	mails = text.Pattern(`(?m)^[ \t]*(?:` +
		`-{5,}[ \t]*\pL[^\n]*-{4,}[ \t]*$` +
		`|Begin forwarded message:[ \t]*$` +
		`|(?:On|Am|Le|El|Il|Em|Op) [^\n]*[0-9][^\n]*(?:\n[^\n]*)?(?:wrote|schrieb|écrit|escribió|scritto|escreveu|schreef)[^\n]*:[ \t]*$` +
		`|[*]*(?:From|Von|De|Da|Van):[^\n]*\n(?:[^\n]+\n){0,3}[ \t*]*(?:Sent|Gesendet|Envoyé|Enviado|Inviato|Verzonden)[ \t]?:` +
		`|[*]*From:[^\n]*@[^\n]*\n(?:[^\n]+\n){0,3}[ \t*]*Date:` +
		`|[*]*(?:From|Von|De|Da|Van)[ \t]?:(?:[^\n]*<[^\n>]*@[^\n]*\n(?:[^\n]+\n){0,3}|[^\n]*@[^\n]*\n)[ \t*]*(?:Subject|Betreff|Objet|Asunto|Oggetto|Assunto|Onderwerp)[ \t]?:)`)

	tagOpens   = text.Pattern(`<([\pL\pN_][\pL\pN\p{M}_:.-]*)[ \t\n/>]`)
	tagCloses  = text.Pattern(`</[ \t\n]*([\pL\pN_][\pL\pN\p{M}_:.-]*)[ \t\n]*>`)
	codeOpens  = text.Pattern(`\[(\pL[\pL\pN_]*)[\]= \t\n]`)
	codeCloses = text.Pattern(`\[/(\pL[\pL\pN_]*)[ \t\n]*\]`)

	// What may follow the name of a tag that nothing ends.
	quotedValue = text.Pattern("^[ \t\n/][^<>=]*=[ \t\n]*[" + quotes + "]")
	firstValue  = text.Pattern(`^[ \t\n/]+[^ \t\n<>=]+=`)
	bareValue   = text.Pattern(`^[ \t\n/][^<>=]*[\pL\pN_]=[^ \t\n]`)
	anyValue    = text.Pattern(`^[ \t\n/][^<>=]*=`)
	nothing     = text.Pattern(`^[ \t\n]*>`)
	noValues    = text.Pattern(`^[ \t\n][^<>=]*[^<>=/]>`)
	heading     = text.Pattern(`^h[1-6]$`)
)

// void are elements of HTML that hold nothing, so that nothing ends them.
var void = map[string]bool{"area": true, "base": true, "br": true, "col": true, "embed": true, "hr": true, "img": true,
	"input": true, "link": true, "meta": true, "source": true, "track": true, "wbr": true}

// marked returns what marks that open and close set apart.
func marked(s string) (spans []span) {
	if f := fences().FindAllStringIndex(s, -1); len(f) > 0 {
		end := len(s)
		if len(f)%2 == 0 {
			end = f[len(f)-1][1]
		}
		spans = append(spans, span{f[0][0], end})
	}
	for _, p := range passages {
		open := p.open().FindAllStringIndex(s, -1)
		if len(open) == 0 {
			continue
		}
		end := len(s)
		if c := p.close().FindAllStringIndex(s, -1); len(c) > 0 && c[len(c)-1][0] >= open[len(open)-1][1] {
			end = c[len(c)-1][1]
		}
		spans = append(spans, span{open[0][0], end})
	}
	if m := mails().FindStringIndex(s); m != nil {
		spans = append(spans, span{m[0], len(s)})
	}
	spans = append(spans, elements(s, codeOpens, codeCloses, func(o opening) int {
		if !o.ended && (o.name == "quote" || o.name == "code") && (s[o.end] == ']' || s[o.end] == '=') {
			return len(s)
		}
		return 0
	})...)
	return append(spans, elements(s, tagOpens, tagCloses, tags(s))...)
}

// opening is where an element begins: after its name, and whether a later mark
// ends it.
type opening struct {
	span
	name  string
	ended bool
}

// elements returns what stands between the first opening of a name and its last
// end, or reaches as far as alone says of an opening by itself.
func elements(s string, opens, closes func() *regexp.Regexp, alone func(opening) int) (spans []span) {
	closing := map[string]int{}
	for _, m := range closes().FindAllStringSubmatchIndex(s, -1) {
		closing[strings.ToLower(s[m[2]:m[3]])] = m[1]
	}
	for _, m := range opens().FindAllStringSubmatchIndex(s, -1) {
		name := strings.ToLower(s[m[2]:m[3]])
		end := closing[name]
		if end = max(end, alone(opening{span{m[0], m[3]}, name, end > m[0]})); end > m[0] {
			if spans = append(spans, span{m[0], end}); end == len(s) {
				break
			}
		}
	}
	return spans
}

// tags returns how far a tag reaches by itself: 0 for what is none.
func tags(s string) func(opening) int {
	t := tagged{s: s, last: strings.LastIndexByte(s, '>') + 1}
	for i := range len(s) {
		if s[i] == '>' && i > 0 && s[i-1] != '-' && s[i-1] != '=' {
			t.ends = append(t.ends, i+1)
		}
	}
	return t.reach
}

// tagged is a text with tags.
type tagged struct {
	s    string
	ends []int // after each > that is no arrow
	last int   // after the last >
}

func (t *tagged) reach(o opening) int {
	rest := t.s[o.end:]
	holds := !o.ended && !void[o.name] // it may, to the end of the turn
	i, _ := slices.BinarySearch(t.ends, o.end+1)
	switch {
	case !o.ended && (unicode.IsNumber(rune(o.name[0])) || strings.Contains(o.name, ":") && rest[0] != ' '):
		return 0 // a number, an address
	case quotedValue().MatchString(rest) && i < len(t.ends):
		// Which > is the tag's own, whoever wrote the value says: none may open.
		end := t.ends[len(t.ends)-1]
		return t.to(end, holds && !(t.shut(o, t.ends[i]) && t.shut(o, end)))
	case quotedValue().MatchString(rest) && (void[o.name] || firstValue().MatchString(rest)): // cut off
		return len(t.s)
	case void[o.name] && anyValue().MatchString(rest):
		return t.last
	case bareValue().MatchString(rest) && t.last > o.end:
		return t.to(t.last, holds)
	case !holds || strings.Contains(o.name, ".") || strings.ContainsFunc(o.name, unicode.IsNumber) && !heading().MatchString(o.name):
		return 0
	case nothing().MatchString(rest):
		end := o.end + strings.IndexByte(rest, '>') + 1
		return t.to(end, !inProse(t.s, o.start, end))
	case noValues().MatchString(rest) && strings.Trim(lineBefore(t.s, o.start), " \t") == "":
		return len(t.s)
	}
	return 0
}

// to is how far a tag reaches that ends at end, and may hold what follows.
func (t *tagged) to(end int, holds bool) int {
	if holds {
		return len(t.s)
	}
	return end
}

// shut reports whether a tag opens nothing, if it ends there.
func (t *tagged) shut(o opening, end int) bool {
	return t.s[end-2] == '/' || inProse(t.s, o.start, end)
}

// lineBefore returns what stands in its line before i, or enough of it.
func lineBefore(s string, i int) string {
	s = s[max(0, i-256):i]
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// inProse reports whether a tag is named by the words of its line, and opens
// nothing.
func inProse(s string, start, end int) bool {
	before := lineBefore(s, start)
	if !strings.ContainsFunc(before, isAlnum) || strings.HasSuffix(strings.TrimRight(before, " \t"), ":") {
		return false
	}
	next := strings.TrimLeft(s[end:], " \t")
	r, _ := utf8.DecodeRuneInString(next)
	switch glued, _ := utf8.DecodeLastRuneInString(before); {
	case next == "":
		return true
	case r == '\n':
		return isAlnum(glued) // "a List<T>"
	case len(next) < len(s)-end:
		return true
	}
	return !isAlnum(r) && r != '<'
}

var (
	quoteMark = text.Pattern(`(?m)^[ \t]*(?:(?:[-*+#•‣◦·–—]|\(?(?:[0-9]{1,9}|\pL)[.)]|\[[ xX]\])[ \t]+)*>`)
	lineFeed  = text.Pattern(`\n`)
	emptyLine = text.Pattern(`\n[ \t\r]*\n`)
)

// quotedLines returns the lines of a turn that begin with a quote's mark, each
// with those that follow it up to an empty one; a line of another block alone.
func quotedLines(turn, seen string, at []int, blot []bool) (spans []span) {
	end := 0
	for _, m := range quoteMark().FindAllStringIndex(seen, -1) {
		mark := at[m[1]-1]
		if mark < end {
			continue
		}
		stop := emptyLine
		if blot[mark] {
			stop = lineFeed
		}
		end = len(turn)
		if e := stop().FindStringIndex(turn[mark:]); e != nil {
			end = mark + e[0]
		}
		spans = append(spans, span{at[max(m[0]-1, 0)], end})
	}
	return spans
}

// masked returns a text in which what is set apart is no Markdown any more,
// with every line and its indentation kept: a line of nothing else is an empty
// heading, which belongs to no paragraph.
func masked(s string, blot func(int) bool) string {
	out := []byte(s)
	for start := 0; start < len(s); {
		end := len(s)
		if i := strings.IndexByte(s[start:], '\n'); i >= 0 {
			end = start + i
		}
		fill, first := byte(' '), -1
		for i := start; i < end; i++ {
			switch c := s[i]; {
			case c == ' ' || c == '\t' || c == '\r':
			case !blot(i):
				fill = 'x'
			case first < 0:
				first = i
			}
		}
		for i := max(first, start); first >= 0 && i < end; i++ {
			if c := s[i]; c != ' ' && c != '\t' && c != '\r' && blot(i) {
				out[i] = fill
			}
		}
		if first >= 0 && fill == ' ' {
			out[first] = '#'
		}
		start = end + 1
	}
	return string(out)
}

// blocks reads what Markdown a masked text can hold, by lines alone: what
// stands within a line is not asked, and no reading goes twice over it.
var blocks = parser.NewParser(parser.WithBlockParsers(
	util.Prioritized(parser.NewSetextHeadingParser(), 100),
	util.Prioritized(parser.NewThematicBreakParser(), 200),
	util.Prioritized(parser.NewListParser(), 300),
	util.Prioritized(parser.NewListItemParser(), 400),
	util.Prioritized(parser.NewCodeBlockParser(), 500),
	util.Prioritized(parser.NewATXHeadingParser(), 600),
	util.Prioritized(parser.NewParagraphParser(), 1000),
))

// nested is a list in a list in a list: each costs the parser a pass over what
// follows.
var nested = text.Pattern(`(?m)^[ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+){16}`)

// indented returns the indented code of a masked text, counted from its least
// indented line. From where lists nest deeper than anybody writes on one line,
// all of it counts as that.
func indented(s string) (spans []span) {
	if m := nested().FindStringIndex(s); m != nil {
		spans = append(spans, span{m[0], len(s)})
		s = s[:m[0]]
	}
	margin := s
	for line := range strings.Lines(s) {
		if words := strings.TrimLeft(line, " \t"); strings.TrimSpace(words) != "" {
			n := 0
			for n < min(len(margin), len(line)-len(words)) && margin[n] == line[n] {
				n++
			}
			margin = margin[:n]
		}
	}
	var b []byte
	var at []int
	i := 0
	for line := range strings.Lines(s) {
		rest := strings.TrimPrefix(line, margin)
		i += len(line)
		for n := len(rest); n > 0; n-- {
			at = append(at, i-n)
		}
		b = append(b, rest...)
	}
	at = append(at, len(s))
	ast.Walk(blocks.Parse(markdown.NewReader(b)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering && n.Kind() == ast.KindCodeBlock {
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				spans = append(spans, span{at[line.Start], at[line.Stop-1] + 1})
			}
		}
		return ast.WalkContinue, nil
	})
	return spans
}

package certificate

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// What the user typed (R6, R8, R10, R11).

// turn is what he typed at one time: the exact bytes, and the same with everything that
// is not his own blotted out.
type turn struct {
	evidence  uint32
	text, own string
	at        time.Time
	parts     []partSaid
	acts      int // that were made before
}

// userTool and approvalTool stand for a tool in references to what a person said.
const (
	userTool     = "user"
	approvalTool = "approval"
)

// quote returns the words a reference names, and the turn they are of.
func (s *Session) quote(r gate.Ref) (t *turn, words string, ok bool) {
	if r.Tool != userTool || r.Pointer != "" || r.Line != 0 || r.Inner != "" {
		return nil, "", false
	}
	is := func(t turn) bool { return t.evidence == r.Evidence }
	if i := slices.IndexFunc(s.turns, is); i >= 0 {
		t = &s.turns[i]
	} else if i := slices.IndexFunc(s.agreed, is); i >= 0 {
		t = &s.agreed[i]
	}
	if t == nil || r.Start < 0 || r.Start >= r.End || r.End > len(t.own) {
		return nil, "", false
	}
	words = t.own[r.Start:r.End]
	return t, words, !strings.Contains(words, "\x00")
}

// token reports whether words begin and end where a token does.
func (t *turn) token(start, end int) bool { return t.begins(start) && t.ends(end) }

func blank(r rune) bool { return r == 0 || unicode.IsSpace(r) }
func mark(r rune) bool {
	return strings.ContainsRune("\"'`´“”„‟‘’‚‛«»‹›()[]{}<>", r)
}
func stop(r rune) bool { return strings.ContainsRune(",.;:!?", r) }

// begins reports whether a token may begin at i: behind white space or the text's begin, or
// behind a quote or bracket that is not within a word.
func (t *turn) begins(i int) bool {
	if i == 0 {
		return true
	}
	r, n := utf8.DecodeLastRuneInString(t.own[:i])
	if blank(r) || !mark(r) {
		return blank(r)
	}
	before, _ := utf8.DecodeLastRuneInString(t.own[:i-n])
	return i == n || blank(before) || mark(before) || stop(before)
}

// given reports whether what begins at i is the value of a word, in a mark or in none.
func (t *turn) given(i int) bool {
	r, n := utf8.DecodeLastRuneInString(t.own[:i])
	return !t.begins(i) && (t.assigned(i) || mark(r) && t.assigned(i-n))
}

// assigned reports whether a word and a sign that gives it a value end at i, and no other
// such pair stands right beside it.
func (t *turn) assigned(i int) bool {
	from := max(0, i-longestKey-1)
	at := assignment().FindStringIndex(t.own[from:i])
	return at != nil && t.begins(from+at[0]) && !besidePair().MatchString(t.own[:from+at[0]]) && !pairBeside().MatchString(t.own[i:])
}

const longestKey = 64

var (
	assignment = text.Pattern(`[\pL_]+=$`)
	besidePair = text.Pattern(`(?:="[^"\n]*"|(?:^|` + blanks + `)[\pL\pN_.-]+=[^` + blanks[1:] + `*)[ \t]+$`)
	pairBeside = text.Pattern(`^(?:"[^"\n]*"|[^` + blanks[1:] + `*)[ \t]+[\pL\pN_.-]+=`)
)

const blanks = `[\x00\t\n\v\f\r \x{85}\p{Z}]`

// ends reports whether one may end at i: before white space or the text's end, before a
// quote or bracket that is not within a word, or before a stop that ends a sentence.
func (t *turn) ends(i int) bool {
	if i == len(t.own) {
		return true
	}
	r, n := utf8.DecodeRuneInString(t.own[i:])
	for i+n < len(t.own) && strings.ContainsRune("!?", r) && strings.ContainsRune("!?", rune(t.own[i+n])) {
		n++ // "main!!"
	}
	after, _ := utf8.DecodeRuneInString(t.own[i+n:])
	last := i+n == len(t.own) || blank(after)
	return blank(r) || stop(r) && last || mark(r) && (last || mark(after) || stop(after) || provenance.PossessiveAt(t.own, i))
}

// apart reports whether quoted words are set apart: behind a word that says what they
// are, or in quotation marks.
func (t *turn) apart(r gate.Ref, words []string) bool {
	hash := r.Start > 0 && t.own[r.Start-1] == '#'
	return t.marked(r.Start, r.End) || t.called(r.Start, hash, words) && (hash || !provenance.GoesOn(t.own[r.Start:r.End]))
}

// marked reports whether a stretch is in quotation marks.
func (t *turn) marked(start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(t.own[:start])
	after, _ := utf8.DecodeRuneInString(t.own[end:])
	quote := func(r rune) bool { return mark(r) && !strings.ContainsRune("()[]{}<>", r) }
	return quote(before) && quote(after)
}

// name reports whether quoted words are written as proper names are, within a sentence
// and behind no article, and are no part of a longer one.
func (t *turn) name(r gate.Ref) bool {
	head := strings.TrimRight(t.own[:r.Start], " ")
	return properForm().MatchString(t.own[r.Start:r.End]) && len(head) < r.Start && inSentence().MatchString(head) && !behindArticle().MatchString(strings.ToLower(head)) &&
		(titled().MatchString(head) || !begunName().MatchString(head)) && !goesOn().MatchString(t.own[r.End:]) && !provenance.Spares(t.own, r.Start)
}

// wordy reports whether a value is of a form that words of a sentence have, and so can be
// what a stranger called something: all but addresses, links, paths and numbers, and what
// has a digit unless people choose such names.
func wordy(t provenance.Type, v strictjson.Value) bool {
	text, isText := v.Text()
	switch t {
	case provenance.Email, provenance.URL, provenance.Phone, provenance.IBAN, provenance.Path, provenance.Integer, provenance.Decimal:
		return false
	case provenance.Host:
		return !insideDot().MatchString(text)
	case provenance.Name:
		return isText && (!addressForm().MatchString(text) || stroked(text))
	}
	return isText && (!addressForm().MatchString(text) || stroked(text)) && !digitForm().MatchString(text)
}

// stroked reports whether a text is of words that go on with a sentence, and of strokes.
func stroked(text string) bool {
	return strokeForm().MatchString(text) && !slices.ContainsFunc(strings.Split(strings.ToLower(text), "/"), func(w string) bool { return !provenance.GoesOn(w) })
}

var (
	strokeForm    = text.Pattern(`^\pL+(?:/\pL+)+$`)
	properForm    = text.Pattern(`^\p{Lu}[^\p{Lu}` + blanks[1:len(blanks)-1] + `]*(?:` + blanks + `+\p{Lu}[^\p{Lu}` + blanks[1:] + `*)*$`)
	insideDot     = text.Pattern(`[^.]\.+[^.]`)
	addressForm   = text.Pattern(`^(?:(?:www\.|#)[^\pZ\s]*|[^\pZ\s]*[@/][^\pZ\s]*)$`)
	digitForm     = text.Pattern(`^[^\pZ\s]*\pN[^\pZ\s]*$`)
	titled        = text.Pattern(`(?i) (?:herrn?|frau|mr|mrs|ms|miss|sir|dr|prof|kollegen?|kollegin|colleague)$`)
	begunName     = text.Pattern(`\pL[ ,]* \p{Lu}(?:[^ ]*[^ ,])?$`) // a part of this one
	goesOn        = text.Pattern(`^[\t\p{Zs}]*(?:(?:van|von|de(?:l|lla)?|di|da|dos|du|te[rn]) [\t\p{Zs}]*)*\p{Lu}`)
	inSentence    = text.Pattern(`\pL,*$`)
	behindArticle = text.Pattern(`(?:^|\PL)(?:an?|the|th(?:is|at|ese|ose)|my|your|his|her|its|our|their|some|any|no|each|every|wh(?:ich|at)|` +
		`d(?:er|ie|as|en|em|es)|k?ein(?:e[nmrs]?)?|keine[nmr]?|dies(?:er?|es|en|em)|jed(?:er?|es)|[mds]eine?[nmr]?|ihre?[nmr]?|unser(?:e[nmr]?)?|eu(?:er|re[nmr]?)|` +
		`im|am|zum|zur|beim|vom|ins|ans),*$`)
)

// over reports whether words end in what ends their sentence and is no part of a name: a
// bracket or mark that stands in them alone, or stops with nothing but stops, brackets
// and marks behind them in the same word. In quotation marks a stop is the name's, and so
// is one dot where a comma or a word that begins no sentence follows.
func (t *turn) over(start, end int) bool {
	words, after := []rune(t.own[start:end]), []rune(t.own[end:])
	last := words[len(words)-1]
	if shuts(last) {
		return !slices.ContainsFunc(words[:len(words)-1], func(r rune) bool { return mark(r) || unicode.In(r, unicode.Ps, unicode.Pi) })
	}
	if !ending(last) || t.marked(start, end) {
		return false
	}
	n := 0
	for n < len(after) && (ending(after[n]) || shuts(after[n])) {
		n++
	}
	if n < len(after) && !blank(after[n]) {
		return false
	}
	if last != '.' || len(words) > 1 && ending(words[len(words)-2]) {
		return true
	}
	if n > 0 {
		return !slices.Contains([]rune(",;:"), after[0])
	}
	for n < len(after) && after[n] == ' ' {
		n++
	}
	return n == len(after) || !unicode.IsLower(after[n]) && !unicode.IsNumber(after[n])
}

// ending is what ends a sentence or a part of one, in whatever script.
func ending(r rune) bool {
	return stop(r) || r > unicode.MaxASCII && (unicode.Is(unicode.Terminal_Punctuation, r) || unicode.Is(unicode.STerm, r) || r == 0x2025 || r == 0x2026)
}

// shuts is a mark that ends a bracket or a quotation.
func shuts(r rune) bool {
	return mark(r) && !strings.ContainsRune("([{<", r) || unicode.Is(unicode.Pe, r) || unicode.Is(unicode.Pf, r)
}

// crowd are words that name nobody in particular.
var crowd = strings.Fields("all any anyone anybody each every everyone everybody everything public world here channel me")

// typed reports whether a reference quotes a value that the user typed whole: between
// two ends of tokens, byte for byte, or in another spelling of its type. What is of
// small space has to follow a word that says what it is (R8). Or it quotes what else the
// operator says that users call it.
func (s *Session) typed(l *leaf, r gate.Ref) bool {
	return s.written(l, r) || s.schemeless(l, r) || slices.ContainsFunc(l.called, func(name provenance.Alias) bool {
		of, rule := *l, *l.rule
		if rule.Type != provenance.Name {
			rule.Type = provenance.Untyped
		}
		of.rule, of.value = &rule, strictjson.StringOf(name.Text)
		return s.written(&of, r) && !s.longer(name.Longer, r)
	})
}

// schemeless reports whether a reference quotes a link without its scheme.
func (s *Session) schemeless(l *leaf, r gate.Ref) bool {
	if l.rule == nil || l.typ() != provenance.URL {
		return false
	}
	link, typ, ok := provenance.Schemeless(l.value)
	if !ok {
		return false
	}
	of, rule := *l, *l.rule
	rule.Type = typ
	of.rule, of.value = &rule, link
	return s.written(&of, r)
}

// longer reports whether a reference quotes a part of one of some names.
func (s *Session) longer(names []string, r gate.Ref) bool {
	t, words, ok := s.quote(r)
	return ok && slices.ContainsFunc(names, func(name string) bool {
		for from := max(0, r.End-len(name)); from <= r.Start && from+len(name) <= len(t.own); from++ {
			if strings.EqualFold(t.own[from:from+len(name)], name) && strings.EqualFold(name[r.Start-from:r.End-from], words) {
				return true
			}
		}
		return false
	})
}

// written is typed of a value as it is written.
func (s *Session) written(l *leaf, r gate.Ref) bool {
	t, words, ok := s.quote(r)
	if !ok || l.answer {
		return false
	}
	if !t.spells(l, words) {
		return s.oneOf(t, l, words, r) || s.tagged(t, l, r) || s.account(l, words, r) || !(l.title && l.lesser && t.marked(r.Start, r.End)) && (s.small(l, words, r) || s.titled(l, words, r))
	}
	hash := !t.begins(r.Start) && r.Start > 0 && t.own[r.Start-1] == '#' && (t.begins(r.Start-1) || t.given(r.Start-1))
	given := !hash && t.given(r.Start)
	if !t.ends(r.End) || !hash && !given && !t.begins(r.Start) || l.authority() && (t.over(r.Start, r.End) || t.cut(r.Start, r.End) || t.partial(r, l.words())) {
		return false
	}
	if l.typ() == provenance.Phone && strings.Contains(words, " ") && (strings.Contains(words, ". ") || furtherDigits().MatchString(t.own[r.End:]) && !strings.HasPrefix(t.own[r.End:], ". ")) {
		return false // a part of a number in groups, or two
	}
	if text, _ := l.value.Text(); words != text {
		for end := r.Start + 1; end < r.End; end++ {
			if t.ends(end) && t.spells(l, t.own[r.Start:end]) {
				return false // fewer words say it
			}
		}
	}
	if l.apart && wordy(l.typ(), l.value) && !t.apart(r, l.words()) && !provenance.NounOf(t.own, r.Start, r.End, l.words()) && !(l.proper && t.name(r)) {
		return false
	}
	if l.commands && !provenance.Orders(t.own, r.Start, r.End) || l.role == policy.SecretRole && !provenance.SecretAt(t.own, r.Start, r.End, l.words()) {
		return false
	}
	if len(l.aim.Places) > 0 && !l.aim.Meets(t.own, r.Start) {
		return false
	}
	small, ordered := l.enum || provenance.SmallSpace(l.typ(), l.value), ordering(l.words())
	if ordered && (small || provenance.Equal(provenance.Integer, l.value, l.value)) {
		i := slices.IndexFunc(s.turns, func(o turn) bool { return o.evidence == r.Evidence })
		return provenance.NumberEnds(t.own, r.Start, l.words()) && t.called(r.Start, hash, l.words()) && (i < 0 || s.stands(i, l.rule.Words))
	}
	return !small && !hash && !given || t.called(r.Start, hash, l.words())
}

// tagged reports whether a text that is for nobody in particular is the quoted word behind a
// #, which he set apart.
func (s *Session) tagged(t *turn, l *leaf, r gate.Ref) bool {
	text, _ := l.value.Text()
	if l.role != policy.Content || l.key || !tagForm().MatchString(text) {
		return false
	}
	bare := *l
	bare.value, bare.apart = strictjson.StringOf(text[1:]), true
	return s.written(&bare, r)
}

// oneOf reports whether the quoted words are what one is called of what a leaf names, and are ordered so.
func (s *Session) oneOf(t *turn, l *leaf, words string, r gate.Ref) bool {
	text, _ := l.value.Text()
	if l.rule == nil || !l.rule.One || !slices.Contains(provenance.OneOf(text), words) || !provenance.OrdersOne(t.own, r.Start, r.End) {
		return false
	}
	as, rule := *l, *l.rule
	rule.One = false
	as.value, as.rule = strictjson.StringOf(words), &rule
	return s.written(&as, r)
}

// account reports whether what an act is for is the name of an account that he wrote with an
// @ before it, or the other way round, set apart.
func (s *Session) account(l *leaf, words string, r gate.Ref) bool {
	text, isText := l.value.Text()
	typ := l.typ()
	if !isText || !l.names() || provenance.SmallSpace(typ, l.value) || typ != provenance.Untyped && typ != provenance.Name && typ != provenance.ID || !accountForm().MatchString(text) {
		return false
	}
	as := *l
	switch {
	case text == "@"+words:
		as.apart = true
	case words != "@"+text:
		return false
	case ordering(l.words()):
		if t, _, ok := s.quote(r); !ok || !t.called(r.Start, false, l.words()) {
			return false // one that is only mentioned
		}
	}
	as.value = strictjson.StringOf(words)
	return s.written(&as, r)
}

// small reports whether what is written to is a name that he wrote in small letters, where
// nothing was seen that is written so.
func (s *Session) small(l *leaf, words string, r gate.Ref) bool {
	text, _ := l.value.Text()
	if !l.lesser || !nameForm().MatchString(text) || strings.ToLower(text) != words {
		return false
	}
	as := *l
	as.value, as.lesser = strictjson.StringOf(words), false
	return len(s.holding(as.value, l.typ())) == 0 && !(l.rule != nil && len(l.rule.Orders) > 0 && s.inOtherLetters(l, text)) && s.written(&as, r)
}

// inOtherLetters reports whether there is another member of that name in other letters, or something that is it in capitals.
func (s *Session) inOtherLetters(l *leaf, name string) bool {
	return len(s.holding(strictjson.StringOf(strings.ToUpper(name)), l.typ())) > 0 || slices.ContainsFunc(s.same[casedKey(name, 2)], func(p *place) bool {
		text, _ := p.value.Text()
		return p.member(l.collection()) && text != name
	})
}

// titled reports whether what something new is called is several words of his, whose first letter
// he wrote small.
func (s *Session) titled(l *leaf, words string, r gate.Ref) bool {
	text, _ := l.value.Text()
	first, n := utf8.DecodeRuneInString(text)
	if !l.title || !headForm().MatchString(text) || words != string(unicode.ToLower(first))+text[n:] {
		return false
	}
	as := *l
	as.value, as.title = strictjson.StringOf(words), false
	return s.written(&as, r)
}

var (
	headForm      = text.Pattern(`^[A-ZÀ-ÖØ-Þ][a-zà-öø-ÿ]* [^\s\x00]`)
	nameForm      = text.Pattern(`^[A-ZÀ-ÖØ-Þ][a-zà-öø-ÿ]+( [A-ZÀ-ÖØ-Þ][a-zà-öø-ÿ]+)*$`)
	accountForm   = text.Pattern(`^@?(?:\pL|\pN|_)(?:\pL|\pN|[_-])+(?:\pL|\pN|_)$`)
	tagForm       = text.Pattern(`^#\pL(?:\pL|\pN|_){2,}$`)
	furtherDigits = text.Pattern(`^[-. ()]*[0-9]`)
	quotedPath    = text.Pattern(`^(?:/|\\|~|\.{1,2}[/\\]|[A-Za-z]:[/\\])`)
)

// cut reports whether a stretch is where a path begins that is in quotation marks as it has
// blanks in it.
func (t *turn) cut(start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(t.own[:start])
	rest, _, _ := strings.Cut(t.own[end:], "\n")
	return start > 0 && anyMark().MatchString(string(before)) && quotedPath().MatchString(t.own[start:end]) && rest != "" && rest[0] == ' ' && anyMark().MatchString(rest)
}

// spells reports whether words are a value.
func (t *turn) spells(l *leaf, words string) bool {
	v := l.value
	text, isText := v.Text()
	if k := v.Kind(); k != strictjson.String && k != strictjson.Number {
		return false
	}
	if l.authority() && isText {
		name := strings.TrimFunc(fold(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) })
		if slices.Contains(crowd, name) || !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			return false
		}
	}
	typ := l.typ()
	if !isText && typ == provenance.Untyped {
		typ = provenance.Decimal
	}
	if _, _, why := provenance.Canonical(typ, v); why != "" {
		return false
	}
	return isText && words == text || typ != provenance.Untyped && provenance.Equal(typ, v, strictjson.StringOf(words))
}

// commanded reports whether a value rests on words of the user that an order of his is of,
// where its contract has orders, unless the operator or a person let it pass (R9), or he may say a
// phrase for it (R21).
func (s *Session) commanded(c *call, l *leaf) bool {
	return l.rule == nil || len(l.rule.Orders) == 0 || c.strict || c.governed || listsPhrases(c) && len(c.contract.Where) == 0 || s.isOrdered(c, l)
}

// saysWhat reports whether a value says what is to be done (R21): where arguments have orders, one that
// is ordered; and of an argument that the contract does not have none, there and where there are phrases.
func (s *Session) saysWhat(c *call, l *leaf) bool {
	if c.strict {
		return true
	}
	ordering := slices.ContainsFunc(c.rules, policy.ArgRule.OrdersWhat)
	if l.rule == nil {
		return !ordering && (c.contract == nil || c.contract.NoArgs != policy.NoArgsUser)
	}
	return !ordering || len(c.contract.Where) > 0 || len(l.rule.Orders) > 0 && s.isOrdered(c, l)
}

// isOrdered is commanded for an argument that has orders.
func (s *Session) isOrdered(c *call, l *leaf) bool {
	switch l.Rule {
	case "const", "grown", grownOutput, keptCall, ruleElement, "approval", "protocol":
		return true
	}
	return slices.ContainsFunc(l.Evidence, func(e gate.Ref) bool {
		return s.ordered(l, e) && s.meant(c, e) && (strings.HasPrefix(l.Rule, "user") || s.typed(l, e) || s.names(c, l.collection(), l.words(), l.value, e, false))
	})
}

// ordered reports whether a reference quotes what one of the orders of an argument is of: in
// that turn or, where it is names alone, of the turn before it, with no act of the session up
// to his latest turn, and no such order in a turn since.
func (s *Session) ordered(l *leaf, e gate.Ref) bool {
	i := slices.IndexFunc(s.turns, func(t turn) bool { return t.evidence == e.Evidence })
	if _, _, ok := s.quote(e); !ok || i < 0 {
		return false
	}
	if !s.stands(i, l.rule.Orders) {
		return false
	}
	if provenance.OrderOf(s.turns[i].own, l.rule.Orders, l.words(), e.Start, e.End) || l.rule.One && provenance.OrdersOne(s.turns[i].own, e.Start, e.End) {
		return true
	}
	if i == 0 || !provenance.AnswerOf(s.turns[i].own, l.words(), e.Start, e.End) || s.turns[i-1].acts != s.turns[i].acts {
		return false
	}
	return provenance.OrderOfNone(s.turns[i-1].own, l.rule.Orders, l.words())
}

// stands reports whether what a turn orders was neither done, ordered otherwise nor taken back before the
// latest one.
func (s *Session) stands(at int, orders []string) bool {
	return !slices.ContainsFunc(s.turns[at+1:], func(later turn) bool {
		return later.acts != s.turns[at].acts || provenance.Unsays(later.own, orders)
	})
}

// says is what a reader gets of a value.
func (l *leaf) says() string {
	if text, ok := l.value.Text(); ok {
		return text
	}
	return string(l.value.Literal())
}

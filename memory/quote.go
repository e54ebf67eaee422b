package memory

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/writ-project/writ/internal/quote"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/internal/words"
)

// bears reports whether an observation bears a claim out: in one sentence or one
// record stand the subject, by its first name, or the subject is who speaks and
// speaks of himself; the value; and the words of the predicate, of a record in
// the name of the member that holds the value. Nothing in the sentence, and in the
// lines it continues, denies, supposes, asks or tells of others; and where
// something says whose the value is, it is the subject's.
func (d *draftEvent) bears(w *witness, pr *Proposition) bool { return len(d.bearing(w, pr)) > 0 }

// A bearer is what of an observation bears a claim out.
type bearer struct {
	unit int
	text string // of a sentence
	at   int    // where in the observation that begins
}

// looking is a claim as it is looked for in one observation.
type looking struct {
	*draftEvent
	w       *witness
	ob      *Observation
	subject *Entity
	value   string
	quals   []string
	asked   []asking
}

func (d *draftEvent) bearing(w *witness, pr *Proposition) (out []bearer) {
	value, ok := d.valueOf(pr)
	subject := d.entities.get(d.resolve(pr.Subject))
	if !ok || subject == nil || subject.Gone || w.ob.Status != Ingested {
		return nil
	}
	quals, ok := stated(pr.Quals)
	if *w.left -= 2 * len(w.ob.Raw); *w.left < 0 || !ok {
		return nil
	}
	l := &looking{d, w, w.ob, subject, value, quals, d.asked(pr.Predicate)}
	quoted := w.quoted
	if len(quoted) > 0 {
		quoted = quotedIn(w.ob.Raw, value)
	}
	for i := range w.units {
		u := &w.units[i]
		switch {
		case pr.Predicate == noteForm:
			if l.notes(u) && u.hasEach(quals) {
				out = append(out, bearer{i, u.text, u.at})
			}
		case u.leaves != nil:
			if l.about(u) && u.hasEach(quals) && slices.ContainsFunc(l.asked, func(a asking) bool { return u.answers(a, value) }) {
				out = append(out, bearer{i, "", 0})
			}
		case len(u.text) > maxSpoken, slices.ContainsFunc(quoted, span{u.at, u.at + len(u.text)}.meets), !u.has(value), empty(value):
		default:
			if *w.left -= 32 * (u.to - u.from); *w.left < 0 {
				return nil
			}
			out = append(out, l.spoken(i, u)...)
		}
	}
	return out
}

// notes reports whether a unit is about the subject, and the value its note: more than what
// stands there, or a part of it, is another.
func (l *looking) notes(u *unit) bool {
	return (l.value == l.ob.Raw || u.leaves == nil && strings.Contains(l.value, u.text) && strings.Contains(l.ob.Raw, l.value)) && l.about(u)
}

// spoken is what of the i-th unit, a sentence, says it.
func (l *looking) spoken(i int, u *unit) (out []bearer) {
	for _, p := range u.parts(append(l.firstNames(l.subject), l.value)) {
		if p.hasEach(l.quals) && slices.ContainsFunc(l.asked, func(a asking) bool { return l.says(u, &p, a) }) {
			out = append(out, bearer{i, p.text, p.at})
		}
	}
	return out
}

// says reports whether a part of a sentence gives the value as what is asked of the
// subject.
func (l *looking) says(u, part *unit, a asking) bool {
	value := l.value
	i := placed(part.text, value)
	if i < 0 || len(a.must) == 0 || sentence(value, a.must) || attributive(value, part.text[i+len(value):], a) || !part.has(value) || !part.asks(a, i) || !l.about(part) || !saysOf(part.text, i, part.text[i:i+len(value)], a, l.himself()) || l.retold(part) {
		return false
	}
	whole := l.ob.Raw[u.from:u.to]
	at := part.at - u.from + i
	if at+len(value) > len(whole) || cropped(part.text[:i], value, part.text[i+len(value):], a, l.subject) || ranged(whole[:at], value, whole[at+len(value):]) || !l.belongs(whole[u.at-u.from:at], a) {
		return false
	}
	t := &said{part: *part, around: whole, value: whole[at : at+len(value)], at: at, begins: u.at - u.from}
	if !l.himself() {
		t.named = l.firstNames(l.subject)
	}
	return t.affirmed(a.must)
}

// attributive reports whether a value only says which one is meant of what is asked for:
// my new allergy is none called new.
func attributive(value, after string, a asking) bool {
	next := words.Of(after)
	return len(next) > 0 && matches(next[:1], a.words...) && !slices.ContainsFunc(words.Of(value), func(w string) bool { return !in("quality", w) })
}

// cropped reports whether a value is a part of a name: the President of a Vice
// President.
func cropped(before, value, after string, a asking, subject *Entity) bool {
	if r, _ := utf8.DecodeRuneInString(value); !unicode.IsUpper(r) || strings.ContainsFunc(value, unicode.IsNumber) {
		return false
	}
	prev, next := nameBefore().FindStringSubmatch(before), nameAfter().FindStringSubmatch(after)
	mine := func(w string) bool {
		return title().MatchString(w+".") || matches(words.Of(w), a.words...) || in("self", words.Of(w)[0]) || names(subject.Names[0].Text, w, true)
	}
	return prev != nil && prev[1] != "" && !mine(prev[2]) || next != nil && !mine(next[1])
}

var (
	nameBefore = text.Pattern(`(\S\s+|^)(\p{Lu}[\pL\pM]*)\s$`)
	nameAfter  = text.Pattern(`^\s(\p{Lu}[\pL\pM]+)`)
)

// retold reports whether what is said of the speaker in a part of a sentence somebody else may have
// said.
func (l *looking) retold(part *unit) bool {
	return l.himself() && slices.ContainsFunc(l.w.told, func(t span) bool {
		t.from, t.to = max(0, t.from-part.at), min(len(part.text), t.to-part.at)
		return t.from < t.to && ofSpeaker(part.text[t.from:t.to])
	})
}

// ranged reports whether a value is one end of a range, a bound, one of two that it
// may be, what something is beside or compared with, what a change is from, or what was where it says what is.
func ranged(before, value, after string) bool {
	number := strings.ContainsFunc(value, unicode.IsNumber)
	if aside().MatchString(before) || compared().MatchString(after) || number && (bound().MatchString(before) || dashed().MatchString(before) || dash().MatchString(after)) || either().MatchString(before) || orElse().MatchString(after) ||
		changed().MatchString(before) && into().MatchString(after) || wasSo().MatchString(before) && isSo().MatchString(before+" "+after) {
		return true
	}
	return slices.ContainsFunc(words.Of(before), func(w string) bool { return in("between", w) }) && (rangeFrom().MatchString(before) && rangeAnd().MatchString(after) || rangeTo().MatchString(before))
}

// ands and ors join two of something, in any of the languages.
const (
	ands = `(?:and|und|et|y|e|en|och|og|и)`
	ors  = `(?:or|oder|ou|eller|или)`
)

// betweens are the words for it that begin a range.
func betweens() string {
	return `(?:` + strings.Join(slices.Sorted(maps.Keys(grammar()["between"])), "|") + `)`
}

var (
	rangeFrom = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)(^|[^\pL])` + betweens() + `\s+\S{0,4}$`) })
	rangeAnd  = text.Pattern(`(?i)^\s*\S{0,4}\s+` + ands + `\s`)
	bound     = text.Pattern(`(?i)(^|[^\pL])(than|before|after|avant|après|under|over|below|above|at least|at most|up to|twice|half|double|maximum|minimum|mehr als|weniger als|unter|mindestens|höchstens|maximal|bis zu|plus de|moins de|au moins|au plus|más de|menos de|al menos|più di|meno di|almeno|mais de|pelo menos|meer dan|minder dan|minstens|hoogstens|mer än|mindre än|minst|högst|mere end|mindre end|mer enn|mindre enn|больше|меньше)\s+\S{0,4}$|[≤≥<>≈≠~]\s*$`)
	aside     = text.Pattern(`(?i)(^|[^\pL])(near|outside|opposite|unlike|close to|next to|similar to|out of|(?:far|away|across|moved?|moving) from|nahe|außerhalb|neben|gegenüber|près de|hors de|loin de|cerca de|fuera de|lejos de|vicino a|lontano da|perto de|longe de|vlakbij|buiten|naast|nära|utanför|nær|utenfor)\s+\S{0,4}$`)
	compared  = text.Pattern(`(?i)^\s*\S{0,8}\s*\S{0,8}\s(more|less|\pL+er|mehr|weniger) (than|als)\s`)
	either    = text.Pattern(`(?i)[^\pL]` + ors + `\s+\S{0,4}$`)
	orElse    = text.Pattern(`(?i)^\s*` + ors + `\s`)
	dashed    = text.Pattern(`\pN\s*[\x{2013}\x{2014}-]\s*$`)
	dash      = text.Pattern(`^\s*[\x{2013}\x{2014}-]\s*\pN`)
	changed   = text.Pattern(`(?i)(^|[^\pL])(from|von|vom|du|desde|dal|från|fra|от|с)\s+\S{0,4}$`)
	into      = text.Pattern(`(?i)^\s*(to|auf|zu|bis|vers|hasta|till|til|на|до)\s`)
	wasSo     = text.Pattern(`(?i)(^|[^\pL])(was|were|war|waren|était|étaient|era|fue|var)\s+(\S{1,4}\s+)?\S{0,4}$`)
	isSo      = text.Pattern(`(?i)(^|[^\pL])(now|is|are|jetzt|ist|sind|maintenant|est|ahora|es|adesso|agora|nu|är|er|nå)([^\pL]|$)`)
	rangeTo   = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(^|[^\pL])` + betweens() + `\s+[^.;]{1,40}\s` + ands + `\s+\S{0,4}$`)
	})
)

func (u *unit) hasEach(values []string) bool {
	return !slices.ContainsFunc(values, func(q string) bool { return !u.has(q) })
}

// valueOf is the value of a claim, as it must stand in what bears it out; ok is
// false where it has none that says anything.
func (s *State) valueOf(pr *Proposition) (value string, ok bool) {
	if pr.Gone || pr.Slot == "" && pr.Subject == "" {
		return "", false
	}
	if pr.Object != "" {
		en := s.entities.get(s.resolve(pr.Object))
		if en == nil || en.Gone || en.Names[0].Gone {
			return "", false
		}
		return norm.NFC.String(en.Names[0].Text), true
	}
	vs, ok := stated(pr.Literal)
	if !ok || len(vs) != 1 {
		return "", false
	}
	return vs[0], true
}

// stated are the leaves of a JSON value; ok is false where one of its texts is
// nothing but punctuation, and so says nothing.
func stated(value string) (out []string, ok bool) {
	ok = true
	if value == "" {
		return nil, true
	}
	strictjson.Walk([]byte(value), func(_ []string, leaf []byte) bool {
		t := norm.NFC.String(quote.LeafText(leaf))
		out = append(out, t)
		ok = ok && strings.ContainsFunc(t, func(r rune) bool { return text.Alphanumeric(r) || unicode.IsSymbol(r) })
		return true
	}, nil)
	return out, ok
}

// himself reports whether it is the subject who says the observation.
func (l *looking) himself() bool {
	return l.subject.Principal != "" && l.subject.Principal == l.ob.Principal && (l.ob.Class == ClassDirectUser || l.ob.Class == ClassUserAttested || l.ob.Class == ClassOperator)
}

// about reports whether a unit is about the subject.
func (l *looking) about(u *unit) bool {
	if u.held {
		return u.keyed(l.firstNames(l.subject))
	}
	which, named := u.named()
	if l.himself() {
		return u.leaves != nil && !named || u.leaves == nil && ofSpeaker(u.text)
	}
	if l.subject.Principal != "" && l.subject.Type == selfType {
		return false // what others say of him names him by another entity
	}
	if !named {
		which = u.leaves
	}
	return slices.ContainsFunc(l.firstNames(l.subject), func(n string) bool {
		if u.leaves == nil {
			return names(u.text, n, u.whole)
		}
		return slices.ContainsFunc(which, func(l leaf) bool { return names(l.text, n, true) })
	})
}

// firstNames are the names that an entity, and what was merged into it, were made
// with.
func (s *State) firstNames(en *Entity) (out []string) {
	for _, id := range append([]string{en.ID}, s.ix.mergedFrom.of(en.ID)...) {
		if en := s.entities.get(id); en != nil && !en.Names[0].Gone {
			out = append(out, bare(en.Names[0].Text))
		}
	}
	return out
}

// belongs reports whether nothing in a sentence says that a value is another's:
// the possessive that stands nearest before it is the subject's own.
func (l *looking) belongs(before string, a asking) bool {
	speaks := l.himself()
	before = fold(apostrophes.Replace(before))
	all := possessive().FindAllStringSubmatchIndex(before, -1)
	for _, m := range slices.Backward(all) {
		owner := words.Of(before[m[2]:m[3]])
		switch {
		case len(owner) != 1:
		case m[4] < 0: // a word: his, my
			switch {
			case in("other", owner[0]):
				return !speaks
			case in("self", owner[0]) && speaks:
				return true
			case in("self", owner[0]) && a.follows(before[m[3]:]): // my phone is not Anna's
				return false
			}
		case in("is_after", owner[0]), slices.Contains(a.must, owner[0]):
		default:
			return !speaks && slices.ContainsFunc(l.firstNames(l.subject), func(n string) bool {
				return text.Stands(before[:m[3]], fold(n), true) && strings.HasSuffix(before[:m[3]], fold(n))
			})
		}
	}
	return true
}

// possessive finds words, and those with 's behind them.
var possessive = text.Pattern(`([\pL\pM\pN.-]+)('s\b)?`)

// noteForm is the predicate of a claim whose value is the sentence itself.
const noteForm = "note"

// adds reports whether a clause says a value beside others: she also likes tea.
func (b *bearer) adds(pr *Proposition, value string) bool {
	asked := askingOf(pr.Predicate).words
	if pr.Predicate == noteForm {
		return false
	}
	for _, c := range clauseStart().Split(b.text, -1) {
		if standsIn(c, value, true) && (also().MatchString(c) || slices.ContainsFunc(words.Of(c), func(w string) bool {
			return in("also", w) && !slices.Contains(asked, w)
		})) {
			return true
		}
	}
	return false
}

var also = text.Pattern(`(?i)[^\pL](too\s*([.,;:!)]|$)|as well([^\pL]|$))`)

// empty reports whether a value says when, or please, and nothing else.
func empty(value string) bool {
	return !slices.ContainsFunc(words.Of(value), func(w string) bool { return !in("empty", w) })
}

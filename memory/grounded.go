package memory

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/writ-project/writ/internal/strictjson"
)

// maxMarks is how many numbers and addresses a claim may state. One
// with more is not borne out by anything.
const maxMarks = 64

// A witness is an observation read once for all that is looked for in it.
type witness struct {
	ob     *Observation
	whole  bool // neither end cuts a word or a number
	leaves []string
	json   bool
	folded string // of raw, for values of letters alone; "" until it is needed
}

func newWitness(ob *Observation) *witness {
	w := &witness{ob: ob, whole: ob.Whole || ob.Between || ob.Evidence == ""}
	b := []byte(ob.Raw)
	if k := strictjson.KindOf(b); (k == strictjson.Object || k == strictjson.Array) && strictjson.Check(b, valueLimits) == nil {
		w.json = true
		strictjson.Walk(b, func(_ []string, leaf []byte) bool {
			if t, isText := strictjson.Text(leaf); isText {
				w.leaves = append(w.leaves, t)
			} else {
				w.leaves = append(w.leaves, string(leaf))
			}
			return true
		}, nil)
	}
	return w
}

// witnesses reads observations.
func (s *State) witnesses(obs []string) []*witness {
	out := make([]*witness, len(obs))
	for i, o := range obs {
		out[i] = newWitness(s.observations.get(o))
	}
	return out
}

// bears reports whether an observation has in it what a claim states, as far as
// code can tell: the claim's value, or a name of the entity that is its value;
// and whatever in its words and qualifiers has a number, is an address, a host
// or a path, unless it is a name of what the claim is about or, in its words, an
// observation beside it has that. Plain words are not compared: a claim may be worded as one
// likes. True, false and null are in no text.
//
// Under Flags.Grounded an observation that does not bear a claim out supports
// it as the agent's inference from it, whoever the words are of. Without that,
// any true observation could be put behind any statement. Those beside it count
// as far as they are as well attested as it is.
func (s *State) bears(w *witness, pr *Proposition, beside []*witness) bool {
	need := min(2, w.ob.Level)
	if pr.Object != "" {
		en := s.entities.get(s.resolve(pr.Object))
		if en == nil || !s.attested(en.Names[0], need) || !s.named(need, pr.Object, w.has) {
			return false
		}
	} else if pr.Literal != "" {
		values, ok := stated(pr.Literal)
		if !ok {
			return false
		}
		for _, v := range values {
			if !w.has(v) {
				return false
			}
		}
	}
	// The words may join what several observations have; the question that the
	// value answers is of one.
	marks := marked(pr.Text)
	words := len(marks)
	quals, ok := stated(pr.Quals)
	if !ok {
		return false
	}
	for _, v := range quals {
		marks = append(marks, marked(v)...)
	}
	if len(marks) > maxMarks {
		return false
	}
	for i, m := range marks {
		if slices.Contains(marks[:i], m) && i < words || w.has(m) {
			continue
		}
		if i < words && slices.ContainsFunc(beside, func(o *witness) bool { return o.ob.Level >= need && o.has(m) }) {
			continue
		}
		own := func(name string) bool { return stands(name, m) }
		if !slices.ContainsFunc(slices.Concat(pr.About, []string{pr.Subject, pr.Object}), func(en string) bool { return s.named(need, en, own) }) {
			return false
		}
	}
	return true
}

// named reports whether an entity has such a name, as well attested as asked:
// what a page calls it is no name of it for what a user says.
func (s *State) named(level int, entity string, is func(name string) bool) bool {
	for _, id := range []string{entity, s.resolve(entity)} {
		if en := s.entities.get(id); en != nil && slices.ContainsFunc(en.Names, func(n Name) bool { return is(n.Text) && s.attested(n, level) }) {
			return true
		}
	}
	return false
}

// attested reports whether an observation of that level has the name itself.
func (s *State) attested(n Name, level int) bool {
	by := s.observations.get(n.Observation)
	return !n.Gone && by != nil && by.Status == Ingested && by.Level >= level && newWitness(by).has(n.Text)
}

// stated are the texts and numbers of a JSON value; ok is false where one of the
// texts has neither a letter nor a number, and so says nothing.
func stated(value string) (out []string, ok bool) {
	ok = true
	if value == "" {
		return nil, true
	}
	strictjson.Walk([]byte(value), func(_ []string, leaf []byte) bool {
		if t, isText := strictjson.Text(leaf); isText {
			out = append(out, t)
			ok = ok && strings.ContainsFunc(t, func(r rune) bool { return !plain(r) })
		} else if strictjson.KindOf(leaf) == strictjson.Number {
			out = append(out, string(leaf))
		}
		return true
	}, nil)
	return out, ok
}

// marked are the parts of a text between spaces that have a number in them or
// are an address, a host or a path, without the punctuation around them.
func marked(text string) (out []string) {
	for _, w := range strings.Fields(text) {
		if !strings.ContainsFunc(w, unicode.IsNumber) && !address.MatchString(w) {
			continue
		}
		w = strings.TrimRightFunc(w, plain)
		for _, end := range []string{"'s", "’s"} {
			w = strings.TrimSuffix(w, end)
		}
		for w != "" {
			r, n := utf8.DecodeRuneInString(w)
			if !plain(r) || r == '/' || r == '~' || signed(r) && n < len(w) && isNumber(w[n:]) {
				break
			}
			w = w[n:]
		}
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

// address matches what leads somewhere: a mail address, a URL, a host such as
// pay.example, a path.
var address = regexp.MustCompile(`@|://|\\|^~?/[\pL\pN]|/.*/|[\pL\pN]\.\pL{2,}`)

func plain(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
}

// signed reports the signs that change a number behind them, as people write
// them.
func signed(r rune) bool { return r == '+' || r == '\u2212' || unicode.Is(unicode.Pd, r) }

func isNumber(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsNumber(r)
}

// has reports whether a value stands in the observation: in a leaf, if it is
// JSON, or else between other words. A decimal may have other zeros at its end.
func (w *witness) has(value string) bool {
	value = strings.TrimSpace(value)
	if value == "" {
		return false
	}
	for _, v := range spellings(value) {
		if w.json {
			if slices.ContainsFunc(w.leaves, func(leaf string) bool { return stands(leaf, v) }) {
				return true
			}
			continue
		}
		if standsIn(w.ob.Raw, v, w.whole) {
			return true
		}
	}
	if strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && r != ' ' }) {
		return false
	}
	// A value of letters alone may be in capitals or not.
	if w.folded == "" {
		w.folded = fold(w.ob.Raw)
	}
	if w.json {
		return slices.ContainsFunc(w.leaves, func(leaf string) bool { return stands(fold(leaf), fold(value)) })
	}
	return standsIn(w.folded, fold(value), w.whole)
}

func fold(s string) string { return norm.NFC.String(cases.Fold().String(s)) }

var decimal = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]+)?$`)

// spellings are a value, and of a decimal number the same with other zeros at
// its end: 300, 300.0 and 300.00.
func spellings(value string) []string {
	if !decimal.MatchString(value) {
		return []string{value}
	}
	short := value
	if strings.Contains(value, ".") {
		short = strings.TrimSuffix(strings.TrimRight(value, "0"), ".")
	}
	out := []string{value, short}
	_, cents, _ := strings.Cut(short, ".")
	switch len(cents) {
	case 0:
		out = append(out, short+".0", short+".00")
	case 1:
		out = append(out, short+"0")
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// stands reports whether a value stands in a text that is whole.
func stands(text, value string) bool { return standsIn(text, value, true) }

func standsIn(text, value string, whole bool) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], value)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(value)
		if (whole || start > 0 && end < len(text)) && ends(text[:start], value) && begins(value, text[end:]) {
			return true
		}
		_, n := utf8.DecodeRuneInString(text[start:])
		at = start + n
	}
}

// ends reports whether what stands before a value ends there: the value does
// not go on to the left, as a number, a word or an address does, and has no
// sign.
func ends(before, value string) bool {
	if before == "" {
		return true
	}
	r, n := utf8.DecodeLastRuneInString(before)
	beyond, _ := utf8.DecodeLastRuneInString(before[:len(before)-n])
	if n == len(before) {
		beyond = ' '
	}
	first, _ := utf8.DecodeRuneInString(value)
	if unicode.IsNumber(first) && (signed(r) || r == '.') {
		return false
	}
	return !joins(first, r, beyond)
}

var (
	// A unit that is written on to its number, and no other number.
	glued = regexp.MustCompile(`^(kg|mg|km|cm|mm|ml|kB|KB|MB|GB|TB|EUR|USD|GBP|CHF|JPY)([^\pL\pN\pM]|$)`)
	date  = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
	hour  = regexp.MustCompile(`^T[0-9]{2}:`)
)

// begins reports whether what stands behind a value begins there.
func begins(value, after string) bool {
	if after == "" || isNumber(value[len(value)-1:]) && glued.MatchString(after) || date.MatchString(value) && hour.MatchString(after) {
		return true
	}
	r, n := utf8.DecodeRuneInString(after)
	beyond, _ := utf8.DecodeRuneInString(after[n:])
	if n == len(after) {
		beyond = ' '
	}
	last, _ := utf8.DecodeLastRuneInString(value)
	switch r {
	case '+', '#', '-', '\u2212':
		if plain(beyond) { // O+ is not O, C# is not C
			return false
		}
	}
	return !joins(last, r, beyond)
}

// joins reports whether a rune beside the edge of a value makes the value a part
// of something longer: a letter or number does, what nobody sees does, and what
// stands between two of them, but for what separates.
func joins(edge, r, beyond rune) bool {
	switch {
	case !plain(r), unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point):
		return true
	case plain(beyond):
		return false
	case unicode.IsSpace(r):
		// Thousands are set apart by spaces of their own. A plain one is a space.
		return r > unicode.MaxASCII && unicode.IsNumber(edge) && unicode.IsNumber(beyond)
	case r == ':' || r == ',':
		return unicode.IsNumber(edge) && unicode.IsNumber(beyond) // 10:30 and 1,500 are one; "total:300" and "a,b" are two
	case unicode.Is(unicode.Sc, r), strings.ContainsRune("=\"“”„()[]{}<>|;*`", r):
		return false
	}
	return true
}

// inferred is what an observation's word is worth for a claim it does not bear
// out: no more than what the agent makes of it.
func (d *draftEvent) inferred(ed *Edge) {
	own := d.p.class(ClassAgentInference, d.mode)
	ed.Class, ed.Level, ed.Group = ClassAgentInference, int(own.Level), "pool:"+string(ClassAgentInference)
	ed.Reliability = min(ed.Reliability, own.Reliability)
}

// levelOf is the level at which an observation was linked to a claim, -1 if it
// was not.
func (d *draftEvent) levelOf(typ EdgeType, obs, id string) int {
	if l := d.links.get(join(string(typ), obs, id)); l != nil {
		return d.edges.get(l.ID).Level
	}
	return -1
}

package memory

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// maxMarks is how many numbers and addresses a claim may state. One with more is
// not borne out by anything.
const maxMarks = 64

// maxLooked bounds, in bytes, what one proposal has looked through for it. What
// is beyond is not found, and counts as an inference.
const maxLooked = 32 << 20

// A looking is all that one proposal looks through: each observation is read
// once, and there is a bound on the whole.
type looking struct {
	left int // of maxLooked
	read map[string]*witness
}

// A witness is an observation read once for all that is looked for in it.
type witness struct {
	left   *int // of its looking
	ob     *Observation
	whole  bool // neither end cuts a word or a number
	leaves []string
	// numbers are the leaves that are one, without zeros at the end.
	numbers []string
	json    bool
	folded  string // of raw, for values of letters alone; "" until it is needed
}

func newWitness(ob *Observation, left *int) *witness {
	w := &witness{left: left, ob: ob, whole: ob.Whole || ob.Between || ob.Evidence == ""}
	b := []byte(ob.Raw)
	if k := strictjson.KindOf(b); (k == strictjson.Object || k == strictjson.Array) && strictjson.Check(b, valueLimits) == nil {
		w.json = true
		strictjson.Walk(b, func(_ []string, leaf []byte) bool {
			if t, isText := strictjson.Text(leaf); isText {
				if w.leaves = append(w.leaves, t); decimal.MatchString(t) {
					w.numbers = append(w.numbers, shortest(t))
				}
			} else {
				w.leaves = append(w.leaves, string(leaf))
				w.numbers = append(w.numbers, shortest(string(leaf)))
			}
			return true
		}, nil)
	}
	return w
}

// witness reads an observation.
func (d *draftEvent) witness(ob *Observation) *witness {
	if d.looked == nil {
		d.looked = &looking{left: maxLooked, read: map[string]*witness{}}
	}
	w := d.looked.read[ob.ID]
	if w == nil {
		w = newWitness(ob, &d.looked.left)
		d.looked.read[ob.ID] = w
	}
	return w
}

// witnesses reads observations.
func (d *draftEvent) witnesses(obs []string) []*witness {
	out := make([]*witness, len(obs))
	for i, o := range obs {
		out[i] = d.witness(d.observations.get(o))
	}
	return out
}

// bears reports whether an observation has in it what a claim states, as far as
// code can tell: the claim's value, or a name of the entity that is its value;
// and whatever in its words and qualifiers has a number, is an address, a host
// or a path, unless it is a name of what the claim is about or, in the words of
// a claim whose value this one has, an observation beside it has that. Plain
// words are not compared: a claim may be worded as one likes.
//
// Under Flags.Grounded an observation that does not bear a claim out supports
// it as the agent's inference from it, whoever the words are of. Without that,
// any true observation could be put behind any statement. Those beside it count
// as far as they are as well attested as it is.
func (d *draftEvent) bears(w *witness, pr *Proposition, beside []*witness) bool {
	need := min(2, w.ob.Level)
	if pr.Object != "" {
		en := d.entities.get(d.resolve(pr.Object))
		if en == nil || !d.called(need, pr.Object, func(n string) bool { return fold(n) == fold(en.Names[0].Text) }) || !d.called(need, pr.Object, w.has) {
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
	if pr.Object == "" && pr.Literal == "" {
		beside = nil // it has no value but its words
	}
	quals, _ := stated(pr.Quals)
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
		own := func(name string) bool { return text.Stands(name, m, true) }
		if !slices.ContainsFunc(slices.Concat(pr.About, []string{pr.Subject, pr.Object}), func(en string) bool { return d.called(need, en, own) }) {
			return false
		}
	}
	return true
}

// disputes returns the value that an observation holds against a claim, "" for
// none: another open value of the same question, that stands in the observation,
// however the claim of it is worded. An earlier word is no dispute of a later one that may replace it.
// Whatever else an observation says, code cannot tell that it speaks against a
// claim.
func (d *draftEvent) disputes(w *witness, pr *Proposition) string {
	sl := d.slots.get(pr.Slot)
	if sl == nil {
		return "" // a claim in words alone answers no question
	}
	i := slices.IndexFunc(sl.Current, func(id string) bool {
		other := d.propositions.get(id)
		value := *other
		value.Text = ""
		return !other.Failed && !d.sameValue(other, pr) && d.bears(w, &value, nil) &&
			!(d.spokeBefore(w.ob, pr) && d.mayReplace(d.p, pr, other, pr.supportLevel(), other.supportLevel()))
	})
	if i < 0 {
		return ""
	}
	return sl.Current[i]
}

// called reports whether an entity has such a name, as well attested as asked:
// what a page calls it is no name of it for what a user says.
func (d *draftEvent) called(level int, entity string, is func(name string) bool) bool {
	for _, id := range []string{entity, d.resolve(entity)} {
		if en := d.entities.get(id); en != nil && slices.ContainsFunc(en.Names, func(n Name) bool {
			by := d.observations.get(n.Observation)
			return by != nil && by.Level >= level && is(n.Text) && d.attested(n, level)
		}) {
			return true
		}
	}
	return false
}

// attested reports whether an observation of that level has the name itself.
func (d *draftEvent) attested(n Name, level int) bool {
	by := d.observations.get(n.Observation)
	return !n.Gone && by != nil && by.Status == Ingested && by.Level >= level && d.witness(by).has(n.Text)
}

// stated are the leaves of a JSON value; ok is false where one of its texts is
// nothing but punctuation, and so says nothing.
func stated(value string) (out []string, ok bool) {
	ok = true
	if value == "" {
		return nil, true
	}
	strictjson.Walk([]byte(value), func(_ []string, leaf []byte) bool {
		if t, isText := strictjson.Text(leaf); isText {
			out = append(out, t)
			ok = ok && strings.ContainsFunc(t, func(r rune) bool { return !plain(r) || unicode.IsSymbol(r) })
		} else {
			out = append(out, string(leaf))
		}
		return true
	}, nil)
	return out, ok
}

// marked are the parts of a text between spaces that have a number in them or
// are an address, a host or a path, without the punctuation around them.
func marked(s string) (out []string) {
	for _, w := range strings.Fields(s) {
		// What resolves like an address is one, in whatever width it is written.
		if !strings.ContainsFunc(w, unicode.IsNumber) && !address.MatchString(text.Fold(strings.ReplaceAll(w, "\u3002", "."), text.Compatible)) {
			continue
		}
		w = strings.TrimRightFunc(w, plain)
		for _, end := range []string{"'s", "’s"} {
			w = strings.TrimSuffix(w, end)
		}
		for w != "" {
			r, n := utf8.DecodeRuneInString(w)
			next, _ := utf8.DecodeRuneInString(w[n:])
			if !plain(r) || r == '/' || r == '~' || text.Sign(r) && unicode.IsNumber(next) {
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

func plain(r rune) bool { return !text.Alphanumeric(r) }

// has reports whether a value stands in the observation: in a leaf, if it is
// JSON, or else between other words. A number of JSON may have other zeros at its
// end, and a value without numbers be in capitals or not.
func (w *witness) has(value string) bool {
	value = strings.TrimSpace(value)
	if *w.left -= len(w.ob.Raw); value == "" || *w.left < 0 {
		return false
	}
	if w.json {
		if slices.ContainsFunc(w.leaves, func(leaf string) bool { return text.Stands(leaf, value, true) }) || decimal.MatchString(value) && slices.Contains(w.numbers, shortest(value)) {
			return true
		}
	} else if text.Stands(w.ob.Raw, value, w.whole) {
		return true
	}
	if strings.ContainsFunc(value, func(r rune) bool { return unicode.IsNumber(r) || r == '/' }) {
		return false
	}
	if *w.left -= len(w.ob.Raw); *w.left < 0 {
		return false
	}
	if w.json {
		return slices.ContainsFunc(w.leaves, func(leaf string) bool { return text.Stands(fold(leaf), fold(value), true) })
	}
	if w.folded == "" {
		w.folded = fold(w.ob.Raw)
	}
	return text.Stands(w.folded, fold(value), w.whole)
}

func fold(s string) string { return text.Fold(s, text.Canonical) }

var decimal = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// shortest is a decimal number without zeros at the end of its fraction.
func shortest(number string) string {
	if decimal.MatchString(number) && strings.Contains(number, ".") {
		return strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
	}
	return number
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

package memory

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/writ-project/writ/internal/quote"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// A belief is a quote: what a claim says must stand in one sentence, or in one
// record, of one observation. Code can tell what stands there; it reads no
// grammar. What a sentence denies or asks is not said, as far as its words tell.

// maxLooked bounds, in bytes, what one proposal has looked through for it. What
// is beyond is not found.
const maxLooked = 32 << 20

// A unit is one sentence, or one record: an object of JSON with its lists of
// plain values and those of its objects that are no things of their own.
type unit struct {
	text     string // of a sentence
	at       int    // where in the observation it begins
	from, to int    // with the lines it continues, and those it goes on in
	leaves   []leaf // of a record
	held     bool   // of a record what may say which thing it is was withheld
	whole    bool   // neither end of the text cuts a word or a number
	heard    *heard
}

type leaf struct {
	names []string // of its members, from the record down
	text  string
	list  int // which list of the record it stands in, 0 for none

	number bool // of JSON
}

// A witness is an observation taken apart.
type witness struct {
	left   *int // of maxLooked
	ob     *Observation
	units  []unit
	quoted []span // in it, where no value is all that is quoted
	told   []span // in it, where I may be somebody else
}

// newWitness takes an observation apart, in NFC as values and names are: what
// stands at an offset of one form of it stands there in all.
func newWitness(of *Observation, left *int) *witness {
	ob := copied(of)
	ob.Raw = norm.NFC.String(of.Raw)
	w := &witness{left: left, ob: ob}
	if b := []byte(ob.Raw); isRecord(b) {
		w.take(b)
		return w
	}
	w.sentences()
	w.quoted, w.told = quotedIn(ob.Raw, ""), toldIn(ob.Raw)
	return w
}

// take takes the records out of a JSON value.
func (w *witness) take(value []byte) {
	switch strictjson.KindOf(value) {
	case strictjson.Array:
		es, _ := strictjson.Elements(value)
		for _, e := range es {
			w.take(e)
		}
	case strictjson.Object:
		u, lists := unit{whole: true}, 0
		w.record(&u, value, nil, &lists)
		w.units = append(w.units, u)
	}
}

// record gathers one record, and makes others of what in it is a thing of its own.
func (w *witness) record(u *unit, object []byte, path []string, lists *int) {
	ms, _ := strictjson.Members(object)
	for _, m := range ms {
		names := append(path[:len(path):len(path)], m.Name)
		switch strictjson.KindOf(m.Value) {
		case strictjson.Object:
			if itself(m.Value) {
				w.take(m.Value)
			} else {
				w.record(u, m.Value, names, lists)
			}
		case strictjson.Array:
			*lists++
			w.list(u, m.Value, names, *lists)
		case strictjson.Null: // says nothing
		default:
			if t := norm.NFC.String(quote.LeafText(m.Value)); t == LeftOut {
				u.held = u.held || MayName(m.Name)
			} else {
				u.leaves = append(u.leaves, leaf{names, t, 0, strictjson.KindOf(m.Value) == strictjson.Number})
			}
		}
	}
}

// list gathers a list of a record.
func (w *witness) list(u *unit, array []byte, path []string, list int) {
	es, _ := strictjson.Elements(array)
	for _, e := range es {
		if k := strictjson.KindOf(e); k == strictjson.Object || k == strictjson.Array {
			w.take(e)
		} else {
			u.leaves = append(u.leaves, leaf{path, norm.NFC.String(quote.LeafText(e)), list, k == strictjson.Number})
		}
	}
}

// itself reports whether an object is a thing of its own and no part of the one
// it stands in: it has a name or an id.
func itself(object []byte) bool {
	ms, _ := strictjson.Members(object)
	return slices.ContainsFunc(ms, func(m strictjson.Member) bool { return endsIn(m.Name, identifying) })
}

// identifying end the names of members that say which thing a record is, and
// naming those that say so in words.
var (
	identifying = []string{"id", "name", "title", "email", "login", "user", "username", "uuid", "key"}
	naming      = []string{"name", "title"}
)

func endsIn(name string, words []string) bool {
	ws := text.NameWords(name)
	return len(ws) > 0 && slices.Contains(words, strings.ToLower(ws[len(ws)-1]))
}

// named are the leaves in which a record that has a name or title says which
// thing it is, and not whose; ok is false if it has none.
func (u *unit) named() (out []leaf, ok bool) {
	for _, l := range u.leaves {
		last := l.names[len(l.names)-1]
		ok = ok || endsIn(last, naming)
		if endsIn(last, identifying) && !endsIn(last, []string{"user"}) {
			out = append(out, l)
		}
	}
	return out, ok
}

// LeftOut stands in a record in place of what was not worth as much as the rest,
// and was left out. It says nothing; what it may have said counts.
const LeftOut = "[withheld]"

// MayName reports whether a member that was withheld may have said which thing its
// record is. Of a name that is no word of ours it may.
func MayName(name string) bool {
	ws := text.NameWords(name)
	return len(ws) == 0 || slices.ContainsFunc(ws, func(w string) bool { return in("whose", strings.ToLower(w)) })
}

// keyed reports whether a record says by its own id that it is something of one of
// these names: that holds whatever else was said of it.
func (u *unit) keyed(names []string) bool {
	return slices.ContainsFunc(u.leaves, func(l leaf) bool {
		return len(l.names) == 1 && slices.Contains([]string{"id", "uuid", "key"}, strings.ToLower(l.names[0])) && slices.ContainsFunc(names, l.is)
	})
}

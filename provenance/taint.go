package provenance

import (
	"bytes"
	"html"
	"index/suffixarray"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// taints remembers what calls sent with labels below system could have put into
// later results (R4). Like facts, they are never forgotten: at the cap the
// whole session's ceiling falls instead.
type taints struct {
	global  writ.Label         // everyone's ceiling, Operator while under the cap
	whole   map[key]writ.Label // folded text of whole arguments
	within  [writ.System]texts // by label: texts an act sent, for containment
	asked   texts              // that reads were asked with: for what a person said of a field
	named   texts              // those of them that have a digit
	bytes   int64
	changed uint64 // counts calls that added something
}

// part is the length from which a text taints what contains it or is contained
// in it.
const part = 4

// longest bounds the search: a text beyond it counts as holding all that was
// sent. It is nobody's identifier.
const longest = 64 << 10

func newTaints() taints { return taints{global: writ.Operator, whole: map[key]writ.Label{}} }

// fold maps what a server may change without meaning to. It is used to find
// taint, never to vouch.
func fold(s string) string { return text.Fold(s, text.Careless) }

// readings returns the folded texts a literal may come back as: its own text, its
// canonical form, and what is left where its escapes are undone. Null and empty
// values and booleans have none.
func readings(t Type, v strictjson.Value) []string {
	if k := v.Kind(); k != strictjson.String && k != strictjson.Number || empty(v) {
		return nil
	}
	c, _, _ := Canonical(Untyped, v)
	texts := append(make([]string, 0, 3), fold(c))
	add := func(s string) {
		if s != "" && !slices.Contains(texts, s) {
			texts = append(texts, s)
		}
	}
	if t != Untyped {
		if c, _, why := Canonical(t, v); why == "" {
			add(fold(c))
		}
	}
	if plain := unescaped(texts[0]); plain != texts[0] {
		add(fold(plain))
	}
	return texts
}

// long are those of some texts that taint what contains them.
func long(texts []string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return utf8.RuneCountInString(text) < part })
}

// escaped is what servers decode on the way: percent-encoding, and the escapes of
// JSON that spell a visible character.
var escaped = text.Pattern(`%[0-9a-f]{2}|\\u[0-9a-f]{4}|\\["\\/]`)

// layers bounds how often a text is decoded.
const layers = 4

// unescaped undoes the escapes of a folded text, and those in what that leaves.
func unescaped(s string) string {
	for range layers {
		t := s
		if strings.ContainsAny(s, `%\`) {
			t = escaped().ReplaceAllStringFunc(s, func(e string) string {
				switch {
				case e[0] == '%':
					b, _ := unhex(e[1:])
					return string([]byte{b})
				case e[1] == 'u':
					n, _ := strconv.ParseUint(e[2:], 16, 16)
					return string(rune(n))
				}
				return e[1:]
			})
		}
		if t = html.UnescapeString(t); t == s {
			break
		}
		s = strings.ToValidUTF8(t, "\ufffd")
	}
	return s
}

// Sent registers the arguments of a call that goes to a server: every allowed
// call, reads included, at its decision, before it is sent (an answer may never
// come), and in shadow mode too. A refused call is not registered. Facts
// committed before keep their label.
// It returns the number of the place that the call lowered (R38), 0 for none.
func (l *Ledger) Sent(server, tool string, act bool, args []Arg) (place uint64) {
	t := &l.taints
	of := AskedOf
	if act {
		l.pieces(args)
		of = PlaceOf
	}
	if p, ok := of(server, tool, args); ok && !l.places.Covers(p) {
		t.changed++
		place = t.changed
		l.places.Lower(place, p)
	}
	for i := range args {
		if args[i].Label < writ.System {
			l.taint(act, &args[i])
		}
	}
	return place
}

// taint remembers an argument that is worth less than system.
func (l *Ledger) taint(act bool, a *Arg) {
	t := &l.taints
	t.changed++
	if name, ok := a.Value.Text(); ok && act && !(a.Names && !a.Makes) {
		l.letIn.add(l.guest("", name), l)
	}
	for _, text := range readings(a.Type, a.Value) {
		long := utf8.RuneCountInString(text) >= part
		if a.Narrow && !long {
			continue
		}
		contain, need := long && !a.Narrow && (act || !a.Vague), int64(64)
		if contain {
			need += 8 * int64(len(text))
		}
		if !l.room(need, a.Label) {
			continue
		}
		atMost(t.whole, l.digest(taintDomain, text), a.Label)
		switch {
		case contain && act:
			t.within[a.Label].add(text)
		case contain:
			t.asked.add(text)
			if strings.ContainsAny(text, "0123456789") {
				t.named.add(text)
			}
		}
	}
}

// room takes the memory that a text of a label needs. Where there is none left nothing is worth
// more than that label from then on.
func (l *Ledger) room(need int64, label writ.Label) bool {
	if l.taints.bytes+need > l.caps.Bytes/4 {
		l.taints.global = min(l.taints.global, label)
		return false
	}
	l.taints.bytes += need
	return true
}

// pieces remembers what an act's short texts say together: a value sent in
// pieces of three characters is found when it comes back whole.
func (l *Ledger) pieces(args []Arg) {
	var run strings.Builder
	label := writ.Operator
	end := func() {
		if text := run.String(); utf8.RuneCountInString(text) >= part {
			l.taints.changed++
			if l.room(64+8*int64(len(text)), label) {
				l.taints.within[label].put(text)
			}
		}
		run.Reset()
		label = writ.Operator
	}
	for _, a := range args {
		texts := readings(Untyped, a.Value)
		if a.Label >= writ.System || a.Narrow || len(texts) == 0 || utf8.RuneCountInString(texts[0]) >= part {
			end()
			continue
		}
		run.WriteString(texts[0])
		label = min(label, a.Label)
	}
	end()
}

// reflection returns the highest label a leaf may keep under what was sent, and
// whether it equals or stands in something the model said first. known says that a text is
// vouched already: such an atom inside a sent text does not lower its twin.
func (l *Ledger) reflection(leaf *Leaf, known func() bool) (at writ.Label, echo bool) {
	t := &l.taints
	at = t.global
	echo = t.global == writ.Model // some of what the model said was not kept
	if len(t.whole) == 0 {
		return at, echo
	}
	texts := readings(leaf.Type, leaf.Value)
	for _, text := range texts {
		if w, ok := t.whole[l.digest(taintDomain, text)]; ok {
			at = min(at, w)
			echo = echo || w == writ.Model
		}
	}
	texts = long(texts)
	for label := writ.Model; label < writ.System && (label < at || label == writ.Model); label++ {
		in := &t.within[label]
		if in.none() {
			continue
		}
		for _, text := range texts {
			stands := in.contain(text)
			echo = echo || stands && label == writ.Model
			if len(text) > longest || in.anyIn(text) || stands && !(atom(text) && known()) {
				at = min(at, label)
				break
			}
		}
	}
	return at, echo
}

// Brought reports whether a value, or a part of it, is what a call of this session sent
// while nothing of worth vouched for it: what returns it now may repeat that call (R4).
func (l *Ledger) Brought(t Type, v strictjson.Value) bool {
	at, _ := l.reflection(&Leaf{Type: t, Value: v}, func() bool { return false })
	return at < writ.System
}

// askedFor reports whether a leaf is a piece of what a read was asked with, or has it
// within it; and whether that can be the id of it, and not what all ids of a place begin
// with. It counts where a person said who writes a field, and lowers no label.
func (t *taints) askedFor(leaf *Leaf) (asked, whole bool) {
	if t.asked.none() {
		return false, false
	}
	for _, text := range long(readings(leaf.Type, leaf.Value)) {
		whole = whole || len(text) > longest || t.asked.contain(text) || t.named.anyIn(text)
		asked = asked || whole || t.asked.anyIn(text)
	}
	return asked, whole
}

// inside returns the lowest label of an act's text that a leaf stands in.
func (t *taints) inside(leaf *Leaf, known func() bool) writ.Label {
	texts := long(readings(leaf.Type, leaf.Value))
	for label := writ.Model; label < writ.System; label++ {
		in := &t.within[label]
		for _, text := range texts {
			if !in.none() && in.contain(text) && !(atom(text) && known()) {
				return label
			}
		}
	}
	return t.global
}

// atom reports whether a text is one identifier as R14 lists them: such a text
// stands in prose without having been made by it.
func atom(s string) bool {
	v := strictjson.StringOf(s)
	is := func(t Type) bool { _, _, why := Canonical(t, v); return why == "" }
	return slices.ContainsFunc([]Type{URL, Email, Path, IBAN, Phone}, is) || strings.Contains(s, ".") && is(Host) || digits(s) && len(s) >= 9
}

// texts finds, of a growing set of texts, whether one stands in a given text or
// a given text stands in one, without looking at each.
type texts struct {
	starts map[string][]string // by their first 64, 16 or 4 bytes
	tail   []byte              // texts not yet indexed, each followed by sep
	sealed []segment           // each at least twice as long as the next
}

type segment struct {
	data  []byte
	index *suffixarray.Index
}

// sep cannot stand in UTF-8, so no match spans two texts.
const sep = 0xff

var startLengths = [...]int{64, 16, part}

// startBounds bounds how many texts of one start are told apart. Beyond it the
// start alone counts as such a text: more is found than was sent, never less,
// and no text makes a decision slow.
var startBounds = [...]int{8, 256, 1024}

func (x *texts) none() bool { return len(x.tail) == 0 && len(x.sealed) == 0 }

func (x *texts) add(text string) {
	if x.starts == nil {
		x.starts = map[string][]string{}
	}
	for i, n := range startLengths {
		if len(text) < n {
			continue
		}
		known := x.starts[text[:n]]
		if slices.Contains(known, text) {
			return
		}
		switch text = strings.Clone(text); {
		case len(known) > 0 && len(known[0]) == n: // the start stands for all
		case len(known) >= startBounds[i] || len(text) == n:
			x.starts[text[:n]] = []string{text[:n]}
		default:
			x.starts[text[:n]] = append(known, text)
		}
		break
	}
	x.put(text)
}

// put adds a text for contain alone.
func (x *texts) put(text string) {
	if x.hold(text); len(x.tail) >= 4096 {
		x.seal()
	}
}

// hold adds a text that is not indexed before the next seal.
func (x *texts) hold(text string) { x.tail = append(append(x.tail, text...), sep) }

// seal indexes what was added since the last seal.
func (x *texts) seal() {
	data := x.tail
	x.tail = nil
	for n := len(x.sealed); n > 0 && len(x.sealed[n-1].data) < 2*len(data); n-- {
		data = append(append([]byte(nil), x.sealed[n-1].data...), data...)
		x.sealed = x.sealed[:n-1]
	}
	x.sealed = append(x.sealed, segment{data, suffixarray.New(data)})
}

// anyIn reports whether one of the texts stands in s.
func (x *texts) anyIn(s string) bool {
	for i := range s {
		for _, n := range startLengths {
			if len(s)-i < n {
				continue
			}
			for _, t := range x.starts[s[i:i+n]] {
				if strings.HasPrefix(s[i:], t) {
					return true
				}
			}
		}
	}
	return false
}

// contain reports whether s stands in one of the texts.
func (x *texts) contain(s string) bool {
	return bytes.Contains(x.tail, []byte(s)) || slices.ContainsFunc(x.sealed, func(of segment) bool { return len(of.index.Lookup([]byte(s), 1)) > 0 })
}

// call is what the arguments of the producing call do to its leaves.
type call struct {
	lowest  writ.Label // of all arguments that lower everything
	decides writ.Label // of target, selector, amount and secret leaves
	asked   bool       // something but constants was asked for
	pointed bool       // with what is worth less than system and may name one thing (Vague)
	narrow  map[string]writ.Label
	fresh   map[string]bool       // paths of names that the agent made up
	own     map[string]writ.Label // folded texts of the arguments that are wide
	system  map[string]bool       // those of them of which one is worth system
	said    texts                 // those of them the model said
	low     texts                 // those of them that are worth less than system
}

func callOf(args []Arg) call {
	c := call{lowest: writ.Operator, decides: writ.Operator, own: make(map[string]writ.Label, len(args)),
		narrow: map[string]writ.Label{}, fresh: map[string]bool{}, system: map[string]bool{}}
	for i := range args {
		a := &args[i]
		if p, _, why := Canonical(Path, a.Value); a.Fresh && why == "" {
			c.fresh[p] = true
		}
		c.asked = c.asked || !a.Fixed && !empty(a.Value)
		if a.Decides {
			c.decides = min(c.decides, a.Label)
		}
		if !a.Narrow {
			c.add(a)
			continue
		}
		for _, e := range spellings(a.Type, a.Value) {
			atMost(c.narrow, e, a.Label)
		}
	}
	if len(c.said.tail) >= 4096 {
		c.said.seal() // once, however many they are
	}
	return c
}

// add takes in an argument that lowers everything.
func (c *call) add(a *Arg) {
	c.lowest = min(c.lowest, a.Label)
	c.pointed = c.pointed || a.Label < writ.System && !a.Vague
	for _, t := range readings(a.Type, a.Value) {
		atMost(c.own, t, a.Label)
		if a.Label == writ.System {
			c.system[t] = true
		}
		if utf8.RuneCountInString(t) < part {
			continue
		}
		if a.Label == writ.Model {
			c.said.hold(t)
		}
		if a.Label < writ.System {
			c.low.add(t)
		}
	}
}

// atMost has a key hold a label, or the lower one that it has.
func atMost[K comparable](labels map[K]writ.Label, k K, label writ.Label) {
	if old, ok := labels[k]; !ok || label < old {
		labels[k] = label
	}
}

// spellings returns how a narrow value may come back: as the same literal, and as
// the same text or number in another case or kind, with or without its sign.
func spellings(t Type, v strictjson.Value) []string {
	e, _ := exact(v)
	out := []string{"\x00" + e}
	for _, s := range readings(t, v) {
		out = append(out, strings.TrimPrefix(s, "-"))
	}
	if s, ok := v.Text(); ok && len(out) > 1 {
		if d, ok := decimal(s); ok {
			out = append(out, strings.TrimPrefix(d, "-"))
		}
	}
	return out
}

// repeats says what a leaf that repeats an argument of its own call is worth. An
// argument that something vouches for is no more than that: what is no member
// of a collection does not become one by being answered (P01).
func (l *Ledger) repeats(c *call, leaf *Leaf) writ.Label {
	at := writ.Operator
	for _, t := range readings(leaf.Type, leaf.Value) {
		label, ok := c.own[t]
		if !ok {
			continue
		}
		if c.system[t] && leaf.Rule != nil && leaf.Rule.Collection != "" && !l.member(leaf, 0) {
			label = min(label, writ.External)
		}
		at = min(at, label)
	}
	return at
}

// saidIn reports whether a leaf stands in something the model said in its own
// call.
func (c *call) saidIn(leaf *Leaf) bool {
	if c.said.none() {
		return false
	}
	return slices.ContainsFunc(long(readings(leaf.Type, leaf.Value)), c.said.contain)
}

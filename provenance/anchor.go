package provenance

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// What one decision may look at. Beyond it nothing is anchored.
const (
	longestName = 256     // bytes of a value the user typed
	maxRuns     = 1 << 16 // stretches of the user's words
	maxVisits   = 1 << 17 // facts
)

// Names are the stretches of the user's words that some result of the session
// holds whole, from the latest turn back: what he can have named a record by
// (R9). They are made for one decision, and count what it looks at.
type Names struct {
	l      *Ledger
	said   []named
	isRead bool
	visits int
}

// named is one of them.
type named struct {
	at     Quote
	word   string
	whole  []uint32 // facts that it is the value of
	last   []uint32 // paths that it is the last element of, where it has an extension
	up     []uint32 // members that were looked up by it
	cased  []uint32 // facts of several words that it is in other letters, where it is none and nothing else
	single bool     // and of one word, by which nothing is destroyed
	short  bool     // too short to name anything but where it is a proper name
	hash   bool     // a # stands before it, which says that it is what people call something (`names`)
}

// Names returns what the user may have named.
func (l *Ledger) Names() *Names { return &Names{l: l, visits: maxVisits} }

// all reads the user's words, when they are first asked for.
func (n *Names) all() []named {
	runs := maxRuns
	for i := len(n.l.turns) - 1; i >= 0 && runs > 0 && !n.isRead; i-- {
		runs = n.read(&n.l.turns[i], runs)
	}
	n.isRead = true
	return n.said
}

// read adds the names of one turn. It returns how many more stretches may be
// looked at.
func (n *Names) read(t *turn, runs int) int {
	text := t.own.text
	for i, c := range text {
		if blank(c) || !t.own.hash[i] && !wordAt(text, i) {
			continue
		}
		most := min(len(text), i+longestName)
		if z := strings.IndexByte(text[i:most], 0); z >= 0 {
			most = i + z
		}
		for e := i + 1; e <= most; e++ {
			if !t.own.end[e] {
				continue
			}
			if runs--; runs < 0 {
				return 0
			}
			n.add(t, span{i, e})
		}
	}
	return runs
}

// add adds a stretch of a turn, if results hold it and it may name something.
func (n *Names) add(t *turn, at span) {
	word, hash := t.own.text[at.start:at.end], t.own.hash[at.start]
	name := named{at: t.quote(at), word: word, short: !isName(word), hash: hash}
	name.whole, name.last = n.l.holding(word)
	if name.up = n.l.lookups[word]; hash {
		name.last = nil
	}
	held := len(name.whole) + len(name.last) + len(name.up)
	if folded, own := inAnyCase(word); own > 0 && !hash && held == 0 {
		name.cased, name.single = slices.Clone(n.l.store.under(n.l.digest(casedDomain, folded))), own == 1
	}
	if held+len(name.cased) > 0 && (!name.short || shortName(word) || hash && shortTag(word)) && !t.own.closes(at) && !t.own.cuts(at) {
		n.said = append(n.said, name)
	}
}

// holding returns the facts that have a text or a number as their value, and the
// paths that end in it as a name with an extension.
func (l *Ledger) holding(word string) (whole, last []uint32) {
	whole = slices.Clone(l.store.under(l.digest("", string(rune(strictjson.String))+word)))
	if d, ok := decimal(word); ok {
		if k, ok := l.keyOf(Untyped, strictjson.Of([]byte(d))); ok {
			whole = append(whole, l.store.under(k)...)
		}
	}
	if strings.ContainsRune(strings.Trim(word, "."), '.') {
		last = slices.Clone(l.store.under(l.digest(baseDomain, word)))
	}
	return whole, last
}

// Anchor answers R9: did the user name the record a vouched value stands in?
// The record is the innermost object around the value that is an array element,
// or a member of a table, else the root; the key of a table stands in its member. A
// line of a text and an element of a list of plain values are each a record of their own. It is named by its own id, or by a
// direct scalar of it that the user typed whole, of 4 characters or more and not
// of small space, if no other record of the query's collection seen in this
// session holds that value. Any scalar, whoever guarantees it, names a record only
// in a whole listing: one the server makes of its own (Authoritative) where nobody
// said what to list, the user's words included, or the twin is just unseen; or in a
// search for that very name (search.go), or where the server gives it to no other (`unique`). A name of several words does in other letters too, out
// of a whole listing that has it in no others. What is the model's own names none. A scalar that is a member of another collection
// names that one, unless the operator says that people call the record so (`names`) or that it is its alone (`unique`). A record with two members of the collection relates them, and
// is neither's. Of a path its last element names it, if it has an extension. A member that
// was looked up by a name (`looked_up`) has that name too, which no other has, unless an act of
// the session was sent it: it could be called so first.
func (n *Names) Anchor(q Query) (Quote, bool) { return n.anchor(q, false) }

// Chosen is Anchor for a record that is to receive something (R28, R14): only its own
// id, how that begins or ends (rank.go), or what the server guarantees of it, names it. Whoever can make a record appear
// can call it by a word that users say ("please"), and of what is destroyed that is
// his own loss, of what he is sent it is not. So what any sentence has names only a member of
// a closed collection, where strangers make none appear: by what the operator says is its name
// (`names`), which behind a # it is in any collection, for the server keeps it for one, and where the user set it apart or wrote it as people write names ("tell Bob"): none that an act may have chosen from an open
// one, and by no word that an act of the session was sent.
func (n *Names) Chosen(q Query) (Quote, bool) { return n.anchor(q, true) }

func (n *Names) anchor(q Query, guaranteed bool) (Quote, bool) {
	if q.Collection == "" {
		return Quote{}, false
	}
	a := anchoring{Names: n, q: &q, guaranteed: guaranteed, marks: map[Type]uint32{}}
	said := n.all()
	for i := range said {
		if a.by(&said[i]) && a.names(&said[i]) && (len(q.Orders) == 0 || n.l.Ordered(said[i].at, q.Orders, q.words(), false)) {
			return said[i].at, true
		}
	}
	if at, ok := n.l.byPart(q); ok || guaranteed {
		return at, ok
	}
	return n.l.ranking(q)
}

// by turns to one of the names, unless it can name nothing where it stands.
func (a *anchoring) by(name *named) bool {
	q, words, closed := a.q, a.q.words(), a.closed()
	own, at := &a.l.turns[a.l.turnAt(name.at.Evidence)].own, span{name.at.Start, name.at.End}
	if own.partial(at, words) { // rank.go
		return false
	}
	if name.hash && !own.tags(at, words) {
		return false
	}
	if name.short && !(name.hash && shortTag(name.word)) && !(closed && own.properName(at)) {
		return false
	}
	k, _ := a.l.keyOf(Untyped, strictjson.StringOf(name.word))
	a.at, a.hash, a.sent = name.at, name.hash, a.l.made[k]
	if a.hash && a.sent {
		return false
	}
	a.free = a.guaranteed && !closed && !a.hash && anyWord(Name, name.word) && !own.called(at.start, words)
	a.stands(own, at, words)
	t := Untyped
	if id, _ := q.Value.Text(); id == name.word {
		t = q.Type
	}
	a.plain = anyWord(t, name.word)
	return !a.plain || !a.guaranteed || !q.Named || a.hash || a.noun || own.apart(at, words) || closed && own.properName(at)
}

// stands looks at how a name is written, and what stands around it.
func (a *anchoring) stands(own *reading, at span, words []string) {
	closed := a.closed()
	a.noun = closed && a.q.Spoken && NounBehind(own.text, at.start, at.end, words)
	a.ours = !a.sent && (a.hash || a.noun || closed && (own.properName(at) || own.apart(at, words)))
	a.anyCase = a.guaranteed && a.q.Spoken && a.ours && (a.noun || own.inQuotes(at) || own.called(at.start, words) && NameEnds(own.text, at.end))
}

// anchoring is the state of one question.
type anchoring struct {
	*Names
	q *Query
	// guaranteed says that what strangers can write names nothing.
	guaranteed bool
	plain      bool            // any sentence has the name looked at: whoever is called so chose it
	ours       bool            // and it is written as a name, of what strangers add nothing to, and no act called anything so
	sent       bool            // an act of this session was sent it
	free       bool            // strangers can be called so, and it is a word of a sentence, with a digit too
	hash       bool            // of it, what people call the record counts alone
	noun       bool            // a word for such things stands behind it, in a collection that strangers add nothing to
	anyCase    bool            // and it is set apart so that other letters do
	cased      bool            // it is written in other letters: a whole list alone shows that there is no twin of what strangers add to
	at         Quote           // where it stands
	marks      map[Type]uint32 // of the value asked for
}

// names reports whether one of the names is that of the record asked for.
func (a *anchoring) names(n *named) bool {
	if a.visits -= len(n.whole) + len(n.last) + len(n.up) + len(n.cased); a.visits < 0 {
		return false
	}
	if a.l.store.crowded(n.whole) || a.l.store.crowded(n.last) || a.l.store.crowded(n.cased) {
		return false // the twin may be what is not kept
	}
	if a.cased = len(n.cased) > 0; a.cased && (a.guaranteed && !a.anyCase || n.single && !a.guaranteed) {
		return false
	}
	found := false
	for _, of := range []struct {
		facts []uint32
		says  func(uint32) (anchor, other bool)
	}{{n.whole, a.holds}, {n.cased, a.holds}, {n.last, a.endsIn}, {n.up, a.lookedUp}} {
		for _, i := range of.facts {
			anchor, other := of.says(i)
			if found = found || anchor; other {
				return false
			}
		}
	}
	return found && a.visits >= 0
}

// endsIn says the same as holds of a path that ends in the name.
func (a *anchoring) endsIn(i uint32) (anchor, other bool) {
	f := a.l.store.at(i)
	if m := &a.l.store.metas[f.meta]; m.collection != a.q.Collection || m.typ != Path {
		return false, false
	}
	return f.label >= writ.System && f.flags&listed != 0 && !a.guaranteed, !a.same(f)
}

// lookedUp says the same of a member that was looked up by the name. Behind a # it names none, and
// still shows another one.
func (a *anchoring) lookedUp(i uint32) (anchor, other bool) {
	f := a.l.store.at(i)
	if a.l.store.metas[f.meta].collection != a.q.Collection {
		return false, false
	}
	names := !a.guaranteed || !a.plain && !a.free || a.ours && f.flags&opened == 0
	return f.label >= writ.System && !a.sent && !a.hash && names, !a.same(f)
}

// longestCased bounds the bytes of a name that is found in any letters.
const longestCased = 64

// inAnyCase returns what a name is in any letters, with blanks for the low lines that agents write,
// and how many of its words are none with which a sentence goes on: "to do", "in the office". One
// word any sentence may have.
func inAnyCase(name string) (_ string, own int) {
	if len(name) > longestCased {
		return "", 0
	}
	name = strings.ReplaceAll(strings.ToLower(name), "_", " ")
	for w := range strings.FieldsSeq(name) {
		if !GoesOn(w) {
			own++
		}
	}
	return name, own
}

// shortName reports whether a text can be a name that people have, though it is short: "Bob".
func shortName(word string) bool { return utf8.RuneCountInString(word) == part-1 && shortTag(word) }

// shortTag reports whether a short text can be what people call something behind a #: "#ops",
// "#qa".
func shortTag(word string) bool {
	n := utf8.RuneCountInString(word)
	return n > 1 && n < part && !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) && !audience[strings.ToLower(word)]
}

// isName reports whether a text is long enough, and no word for everybody.
func isName(word string) bool {
	v := strictjson.StringOf(word)
	_, _, ok := spoken(Query{Value: v, Authority: true})
	return ok && utf8.RuneCountInString(word) >= part && !SmallSpace(Untyped, v) &&
		!strings.ContainsFunc(word, unicode.IsControl)
}

// holds says of a fact whether it names the record asked for, and whether some
// other record of the collection holds it.
func (a *anchoring) holds(i uint32) (anchor, other bool) {
	s := &a.l.store
	f := s.at(i)
	m := &s.metas[f.meta]
	if m.collection == a.q.Collection && !a.same(f) {
		return false, true
	}
	rec, ok := s.record(f)
	if !ok {
		return a.cased && !a.guaranteed && m.collection == a.q.Collection && m.named && f.label >= writ.System && (f.flags&listed != 0 || a.closed()), false
	}
	id := m.collection == a.q.Collection // and so the very one
	in := a.beside(i, rec)
	least := a.least(a.ours && (id || m.calls) && !in.opened, m.calls)
	worth := id && !(a.guaranteed && a.plain && f.flags&opened != 0) || (m.collection == "" || m.calls || m.unique) && f.label >= least && (in.complete || m.unique || a.l.searchedFor(f, a.at))
	worth = worth && (in.complete || !a.cased || id && a.closed()) && (!a.cased || !a.guaranteed || m.calls)
	return in.mine && !in.other && worth && f.node == rec && (!a.hash || m.calls), in.other
}

// least is what a name that is no id has to be worth; called says that it is what people call the
// record, ours that strangers gave nothing there that name.
func (a *anchoring) least(ours, called bool) writ.Label {
	switch {
	case a.guaranteed && a.plain && !ours, a.free && called:
		return writ.Operator // which no result has
	case a.guaranteed:
		return writ.System
	}
	return writ.External
}

// members is what the members of the collection asked for say that stand directly in a record:
// that it is the one asked for, of a whole list, and perhaps let in by an act; or another one.
type members struct{ mine, complete, opened, other bool }

// beside looks at those in the record of a fact.
func (a *anchoring) beside(i, rec uint32) (in members) {
	s := &a.l.store
	s.around(i, func(at uint32) bool {
		g := s.at(at)
		if a.visits--; a.visits < 0 || g.evidence != s.at(i).evidence {
			return false
		}
		if of, ok := s.record(g); !ok || of != rec {
			return s.within(g.node, rec) // of another record, in this one or after it
		}
		if m := &s.metas[g.meta]; m.collection != a.q.Collection || !m.named {
			return true
		}
		if !a.same(g) {
			in.other = true
		} else if g.label >= writ.System {
			in.mine, in.complete = true, in.complete || g.flags&listed != 0
			in.opened = in.opened || g.flags&opened != 0
		}
		return true
	})
	return in
}

// closed reports whether nobody adds to the collection asked for but whose it is: who has two
// of one name in two spellings there made both.
func (a *anchoring) closed() bool { return a.q.Closed != nil && a.q.Closed(a.q.Collection) }

// same reports whether a fact is of the very value asked for.
func (a *anchoring) same(f *fact) bool {
	t := a.l.store.metas[f.meta].typ
	return f.mark == once(a.marks, t, func() uint32 {
		k, _ := a.l.keyOf(t, a.q.Value)
		return k.mark()
	})
}

// mark tells keys apart in less room.
func (k key) mark() uint32 { return binary.LittleEndian.Uint32(k[12:]) }

// record returns the container of the record a fact stands in (R9); ok is false
// for one that is a record of its own.
func (s *store) record(f *fact) (n uint32, ok bool) {
	if f.flags&alone != 0 {
		return 0, false
	}
	if s.metas[f.meta].key {
		return f.node, true
	}
	if several(f.token) {
		return 0, false
	}
	for n = f.node; n != 0; n = s.nodes[n].parent {
		if several(s.nodes[n].token) || s.nodes[n].parent == 0 {
			return n, true
		}
	}
	return 0, false
}

// within reports whether a container is another or stands in it.
func (s *store) within(n, in uint32) bool {
	for ; n != 0; n = s.nodes[n].parent {
		if n == in {
			return true
		}
	}
	return false
}

// standing returns what a leaf is told apart by later, beside its label: that it
// stands in a whole listing (R9), and that an act may have chosen it from an
// open collection (R28).
func (l *Ledger) standing(o *Observation, c *call, leaf *Leaf) (f flags) {
	if leaf.alone {
		f |= alone
	}
	if leaf.Rule == nil {
		return f
	}
	if leaf.Rule.Authoritative && !o.Act && !c.asked {
		f |= listed
	}
	if _, whole := o.searched(leaf); whole && !o.Act {
		f |= found
	}
	if l.stale(o) {
		f |= late
	}
	if leaf.unread {
		f |= unread
	}
	if l.mayBeOf(leaf) && !l.member(leaf, opened) {
		f |= opened
	}
	return f
}

// mayBeOf reports whether a leaf may be what an act put into its collection: anything, or what is at a path that the
// act named, below it, or a directory that was made on the way there.
func (l *Ledger) mayBeOf(leaf *Leaf) bool {
	paths, is := l.opened[leaf.Rule.Collection]
	at, _, why := Canonical(Path, leaf.Value)
	return is && (paths == nil || leaf.Type != Path || why != "" || slices.ContainsFunc(paths, func(p string) bool {
		return at == p || strings.HasPrefix(at, strings.TrimSuffix(p, "/")+"/") || strings.HasPrefix(p, strings.TrimSuffix(at, "/")+"/")
	}))
}

// Opened says that an act chose from an open collection and answers with members
// of this one: what is listed of it from now on, and was not known before, is
// perhaps what a stranger offered (R28). name is what the act gave the one member that it
// made, "" where its answer says which; at are the paths that it named for what is new (Arg.New), where all that it makes
// in the collection is at one of these or below it, nil where it may make others.
func (l *Ledger) Opened(collection, name string, at []string) {
	if paths, is := l.opened[collection]; at == nil || is && paths == nil || len(paths)+len(at) > mostOpened {
		l.opened[collection] = nil
	} else {
		l.opened[collection] = append(paths, at...)
	}
	l.letIn.add(l.guest(collection, name), l)
	l.taints.changed++
}

// mostOpened bounds the paths that are kept of one collection.
const mostOpened = 256

// LetIn reports whether an act opened a collection so for a member of this name, or for any;
// or was sent the name, where nothing vouched for it and it named no member that is there: as
// the title of what it made.
func (l *Ledger) LetIn(collection, name string) bool {
	return l.letIn[l.guest(collection, "")] || l.letIn[l.guest(collection, name)] || l.letIn[l.guest("", name)]
}

// guest is the key of a member that an act let in, by its name as servers may write it; of
// any collection without one.
func (l *Ledger) guest(collection, name string) key {
	return l.digest("\x00guest\x00"+collection, strings.TrimFunc(fold(name), func(r rune) bool { return !isAlnum(r) }))
}

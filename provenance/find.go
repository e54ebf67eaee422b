package provenance

import (
	"cmp"
	"slices"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// Query asks what vouches for one argument leaf through `from: output`.
type Query struct {
	Value      strictjson.Value
	Type       Type   // declared type of the argument
	Collection string // declared collection of the argument
	// Server, Tool and At are the restriction of `output: server/tool#/pointer`;
	// "" and !HasAt mean any. At names a leaf of structuredContent, or of the
	// JSON found in a text.
	Server, Tool string
	At           Pattern
	HasAt        bool
	// Authority says that null and empty values never match (only const
	// vouches for them in a target, selector or amount).
	Authority bool
	// Target says that R28 applies: the fact's collection is closed, or its
	// owner is one of Owners.
	Target bool
	Closed func(collection string) bool // nil: none is closed
	Owners [][]byte                     // JSON literals
	// OwnerTyped says that an owner whom the user typed is one of them.
	OwnerTyped bool
	// Words are those that make a value of small space one of this argument when
	// the user types it after them (R8). Typed alone looks at them.
	Words []string
	// Orders are those of which the value has to be what one is of, where the user typed it
	// (OrderOf). Typed and Anchor alone look at them.
	Orders []string
	// Tag lets a word behind a # be what it is without one, where the user set it apart: the
	// value is a free text. Typed alone looks at it.
	Tag bool
	// Account lets an account of somebody be the same with an @ before it and without: the value
	// says whom or what an act is for. Typed alone looks at it.
	Account bool
	// Small lets a name be typed in small letters, of which nothing is known that is written so:
	// the value says what is written to or is entered, and its words are the user's, but for their first
	// letters. Typed alone looks at it.
	Small bool
	// One lets what one of a value is called be typed where one is ordered to be added (OrdersOne). Typed alone looks at it.
	One bool
	// Title lets a text of several words be typed with a small letter at its begin: the value is
	// what something new is called or is entered, and is written so. Typed alone looks at it.
	Title bool
	// Called is what else the user calls the value, by the operator's word (R6). Typed
	// alone looks at it.
	Called []Alias
	// Ours lets what stands intact at the one output that Server, Tool and At name vouch,
	// and nothing else: a person said that our own people alone write there.
	Ours bool
	// Minted says of Ours that the server alone gives it: the places of R38 do not count, nor
	// a read that named nothing, and nothing vouches but what can be such (Fact.Minted).
	Minted bool
	// InText says of Ours that At is a field of the JSON that the first text is.
	InText bool
	// Lifts is Observation.Lifts of the lines in force now, for Fact.Rests.
	Lifts func(rests [][]Line) bool
	// Cleared lets the places not count that other sessions lowered (R38): what would vouch if
	// a person cleared them and it was read again. Nothing may rest on what is found so.
	Cleared bool
	// Aim is what the call is done to, of a value that says its number: where the user says behind
	// that, or before its sentence, that it is elsewhere, he typed another. Typed alone looks at it.
	Aim Aim
	// Within says that the value is one word with the number that the words order, "acme/parser#50".
	// Typed alone looks at it.
	Within bool
	// Named asks of what could be words of any sentence that the user set it apart as a
	// name: strangers can be called so.
	Named bool
	// Spoken lets what people call a member of a closed collection (`names`) be known by a word for
	// such things right behind it, and behind one and in quotation marks in other letters too: the
	// act writes and sends, and no more. Chosen alone looks at it.
	Spoken bool
	// Proper lets a proper name within a sentence be set apart so. Typed alone looks at it.
	Proper bool
	// Ordered asks that the user said of the value that it is to be run (Orders). Typed
	// alone looks at it.
	Ordered bool
	// Secret asks that the user said of the value that it is a secret (SecretAt). Typed alone
	// looks at it.
	Secret bool
	// Party lets an authenticated third party's identity vouch, and what the session made
	// because a person allowed it (R13): the user typed the value whole (R3).
	Party bool
	// Enum says that the value is a member of an enum, which is of small space
	// whatever its length (R8).
	Enum bool
	// Agrees are arguments of the call of which what shows the value says the same (R37).
	Agrees []Said
	// Once lets one-time values vouch (R19): at Now, for an argument that accepts
	// their very output or has their collection.
	Once bool
	Now  time.Time
	// Rounded asks for decimals that round to the value, and for none that is it (R11).
	Rounded bool
	// Strict is profile strict: without a pointer a leaf needs no common
	// collection or type, only no other collection where both sides declare
	// one; nothing is derived, so path joins never match.
	Strict bool
	longer []string // Alias.Longer of the name that is looked for
	// isOrdered reports whether an order of the turn that is looked at is of a stretch of it,
	// nil where none has to be.
	isOne     bool // it is what one is called
	isAccount bool // it is one with an @ before it, which by itself orders nothing
	isOrdered func(span) bool
}

// Said is what stands in a call's arguments, and the name that it has there. The value does
// not exist where nothing does.
type Said struct {
	Name  string
	Value strictjson.Value
}

// Alias is what users call a member of a collection.
type Alias struct {
	Text string
	// Longer are those that Text is a part of: where one of them stands, it is that which
	// was said. "West Virginia" is not Virginia.
	Longer []string
}

// Answer is what Find found.
type Answer struct {
	// Vouched holds the origins accepted, best first: highest label, then
	// earliest evidence. Empty means refused for Reason.
	Vouched []Fact
	// Reason is "" when Vouched is not empty, else the first of unseen,
	// reflected, label, source, record, one_shot, small_space, open_target that applies. It tells
	// classes apart, never values (R24).
	Reason writ.Reason
	// Label is what the value is worth as an argument (R4): the label of the
	// best origin accepted; failing that the highest at which the value was seen
	// whole anywhere, but Model for a value of small space or one never seen.
	Label writ.Label
	// Contested says that something external carries the same value beside
	// what vouches (R25).
	Contested bool
	// Open says that anyone can have made it appear: none of Vouched is of a
	// closed collection or of an accepted owner (R28).
	Open bool
	// OneTime says that who relies on it uses it up (R19).
	OneTime bool
}

// Find answers a query. Its cost does not depend on how much the ledger holds.
//
// Without a pointer a leaf matches an argument of the same collection, or of
// the same declared type unless both declare collections and these differ. A
// value of small space needs a leaf of the same collection, or at a pointer the contract
// names, of the argument's declared type or of none (R8).
func (l *Ledger) Find(q Query) Answer {
	all := l.candidates(q)
	if len(all) == 0 {
		return Answer{Reason: writ.ProvenanceUnseen}
	}
	isSmall := q.Enum || SmallSpace(q.Type, q.Value)
	found, reason := l.pick(all, &q, isSmall)
	a := Answer{Reason: reason}
	if reason != "" {
		if !isSmall {
			for _, i := range all {
				a.Label = max(a.Label, l.store.at(i).label)
			}
		}
		return a
	}
	a.Vouched = l.restore(found)
	for i := range a.Vouched { // as the contract calls it: what places take from it does not count
		switch f := &a.Vouched[i]; {
		case q.Minted:
			f.Label, f.Rests = writ.External, nil
		case len(f.Rests) > 0:
			f.Label = max(f.Label, f.Lifted)
		}
	}
	a.OneTime = a.Vouched[0].OneTime
	a.Label = a.Vouched[0].Label
	a.Open = !slices.ContainsFunc(found, func(i uint32) bool {
		return l.chosen(&q, l.store.at(i))
	})
	a.Contested = l.contested(all, found)
	return a
}

// candidates returns every fact of the value, under its exact value and under
// its type, each once.
func (l *Ledger) candidates(q Query) []uint32 {
	if q.Rounded {
		if c, _, why := Canonical(Decimal, q.Value); why == "" {
			return slices.Clone(l.store.under(l.digest(roundDomain, c)))
		}
		return nil
	}
	k, ok := l.keyOf(Untyped, q.Value)
	if !ok {
		return nil
	}
	all := slices.Clone(l.store.under(k))
	if q.Type == Untyped {
		return all
	}
	if k, ok = l.keyOf(q.Type, q.Value); !ok {
		return nil
	}
	all = append(all, l.store.under(k)...)
	slices.Sort(all)
	return slices.Compact(all)
}

// pick keeps what vouches, or says at which question the last origin fell.
func (l *Ledger) pick(all []uint32, q *Query, isSmall bool) ([]uint32, writ.Reason) {
	issued := l.oneTime(all)
	if len(issued) > 0 {
		all = issued
	}
	keep := slices.DeleteFunc(slices.Clone(all), func(i uint32) bool { return !l.worth(q, l.store.at(i)) })
	if len(keep) == 0 {
		if slices.ContainsFunc(all, func(i uint32) bool { return l.store.at(i).flags&reflected == 0 }) {
			return nil, writ.ProvenanceLabel
		}
		return nil, writ.ProvenanceReflected
	}
	narrow := func(pass func(*fact) bool) bool {
		keep = slices.DeleteFunc(keep, func(i uint32) bool { return !pass(l.store.at(i)) })
		return len(keep) == 0
	}
	if narrow(func(f *fact) bool { return l.accepts(q, f) }) {
		return nil, writ.ProvenanceSource
	}
	if keep = slices.DeleteFunc(keep, func(i uint32) bool { return !l.agrees(q, i) }); len(keep) == 0 {
		return nil, writ.ProvenanceRecord
	}
	if len(issued) > 0 {
		if narrow(func(f *fact) bool {
			return q.HasAt || q.Collection != "" && q.Collection == l.store.metas[f.meta].collection
		}) {
			return nil, writ.ProvenanceSource
		}
		if !q.Once || l.usedUp(issued, q) {
			return nil, writ.ProvenanceOneShot
		}
	}
	if isSmall && (q.Authority && empty(q.Value) || narrow(func(f *fact) bool {
		m := &l.store.metas[f.meta]
		return q.KnowsSmall(m.collection, m.typ)
	})) {
		return nil, writ.ProvenanceSmall
	}
	if q.Target && narrow(func(f *fact) bool { return l.chosen(q, f) }) {
		return nil, writ.ProvenanceOpenTarget
	}
	return keep, ""
}

// worth is the question of label: is what stands there worth enough to vouch?
func (l *Ledger) worth(q *Query, f *fact) bool {
	m := &l.store.metas[f.meta]
	cleared := q.Cleared && f.flags&placed != 0
	if q.Ours {
		at := OutputRule{At: q.At}
		if q.InText {
			at = OutputRule{InText: true, Pointer: q.At}
		}
		if m.rule != source(&at) {
			return false
		}
		if q.Minted {
			return f.flags&minted != 0
		}
		return cleared && f.flags&stranger != 0 || f.label == writ.External && (f.flags&intact != 0 || f.flags&stranger != 0 && l.lifted(q, f))
	}
	return m.named && (f.label >= writ.System || f.flags&stranger == 0 && (cleared || l.lifted(q, f)) || q.Party && (f.label == writ.Party || f.allowed()))
}

// lifted reports whether lines in force have the places not count that a fact rests on.
func (l *Ledger) lifted(q *Query, f *fact) bool {
	return f.flags&resting != 0 && q.Lifts != nil && q.Lifts(l.resting[f.evidence])
}

// allowed reports whether it is what an act made because a person allowed it.
func (f *fact) allowed() bool { return f.flags&invented != 0 && f.label == writ.External }

// accepts is the question of source: does `from` name this origin?
func (l *Ledger) accepts(q *Query, f *fact) bool {
	m := &l.store.metas[f.meta]
	if q.Server != "" && q.Server != m.server || q.Tool != "" && q.Tool != m.tool {
		return false
	}
	if q.HasAt {
		return l.standsAt(q.At, f)
	}
	if q.Collection != "" && m.collection != "" && q.Collection != m.collection {
		return false
	}
	return q.Strict ||
		q.Collection != "" && q.Collection == m.collection ||
		q.Type != Untyped && q.Type == m.typ
}

// standsAt reports whether a pattern of an output names where the fact stands.
func (l *Ledger) standsAt(at Pattern, f *fact) bool {
	outer, _, inner, hasInner := l.store.pointer(f)
	if outer[0] != "structuredContent" {
		return hasInner && at.Match(inner)
	}
	return at.Match(outer[1:]) || hasInner && (at.Match(inner) || at.Match(append(outer[1:], inner...)))
}

// KnowsSmall is R8's demand on an origin of a small value: the collection, or that the
// argument names the output and says of what type it is, and the output says no other.
func (q *Query) KnowsSmall(collection string, t Type) bool {
	if q.Collection != "" && q.Collection == collection {
		return true
	}
	kind := q.Value.Kind()
	untyped := !q.Strict && t == Untyped && (kind == strictjson.Number || kind == strictjson.String)
	return q.HasAt && q.Type != Untyped && (q.Type == t || untyped) && (q.Collection == "" || collection == "")
}

// chosen is R28: was the referent chosen by the operator's or the user's side?
func (l *Ledger) chosen(q *Query, f *fact) bool {
	if m := &l.store.metas[f.meta]; m.collection != "" && (f.flags&opened == 0 || q.Party && f.allowed()) && q.Closed != nil && q.Closed(m.collection) {
		return true
	}
	if f.owner == 0 {
		return false
	}
	for _, raw := range q.Owners {
		if e, ok := exact(strictjson.Of(raw)); ok && !empty(strictjson.Of(raw)) && e == l.store.strings[f.owner-1] {
			return true
		}
	}
	if owner := l.store.strings[f.owner-1]; q.OwnerTyped && owner != "" && strictjson.Kind(owner[0]) == strictjson.String {
		_, why := l.Typed(Query{Value: strictjson.StringOf(owner[1:]), Authority: true, Account: true, Named: true, Words: q.Words})
		return why == ""
	}
	return false
}

// Unread answers R14 of a record that receives a text: does everything that showed it
// since the latest act say that nobody reads it but its owner, who is one of the query's
// or whose collection is closed? An act may have shared it, and a read that was under
// way meanwhile may show it as it was: what came after an act and before the user's next turn,
// or was asked for before an act, says nothing but who does read it.
func (l *Ledger) Unread(q Query) bool {
	all := l.candidates(q)
	if l.store.crowded(all) || q.Collection == "" {
		return false
	}
	is := false
	for _, i := range all {
		f := l.store.at(i)
		if i < l.acted || l.store.metas[f.meta].collection != q.Collection || f.flags&late != 0 && f.flags&unread != 0 {
			continue
		}
		if is = f.label >= writ.System && f.flags&unread != 0 && l.chosen(&q, f); !is {
			return false
		}
	}
	return is
}

// restore returns facts best first.
func (l *Ledger) restore(found []uint32) []Fact {
	slices.SortStableFunc(found, func(a, b uint32) int {
		fa, fb := l.store.at(a), l.store.at(b)
		return cmp.Or(cmp.Compare(fb.label, fa.label), cmp.Compare(fa.evidence, fb.evidence), cmp.Compare(a, b))
	})
	out := make([]Fact, len(found))
	for i, f := range found {
		out[i] = l.store.fact(f)
		if is := l.store.at(f).flags; is&resting != 0 {
			out[i].Rests, out[i].Lifted = l.resting[out[i].Evidence], writ.System
			if is&stranger != 0 {
				out[i].Lifted = writ.External
			}
		}
	}
	return out
}

// Returned reports whether a tool returned anything that counts, whatever that is.
func (l *Ledger) Returned(server, tool string) bool {
	return slices.ContainsFunc(l.store.metas, func(m meta) bool { return m.server == server && m.tool == tool })
}

// Contested says of a value that something besides outputs vouches for whether
// something external carries it too (R25).
func (l *Ledger) Contested(q Query) bool { return l.contested(l.candidates(q), nil) }

// contested looks for an external origin. The text beside structuredContent in
// the same result repeats it and contests nothing, nor does the field that vouches.
func (l *Ledger) contested(all, found []uint32) bool {
	for _, i := range all {
		f := l.store.at(i)
		// R4 may have lowered what a stranger wrote; it is his all the same,
		// unless the model said it first.
		if f.label > writ.External || f.flags&stranger == 0 && (f.label < writ.External || f.flags&reflected != 0) || f.flags&echoed != 0 {
			continue
		}
		twin := slices.ContainsFunc(found, func(j uint32) bool { return l.store.at(j).evidence == f.evidence })
		ours := slices.ContainsFunc(found, func(j uint32) bool {
			return l.store.at(j).flags&(intact|resting|minted) != 0 && l.store.at(j).meta == f.meta
		})
		if !ours && (f.flags&beside == 0 || !twin) {
			return true
		}
	}
	return false
}

// Seen reports whether a string stood in some result of this session as a whole
// leaf, byte for byte, or as a link in a text (R20), and where first. A host that
// stood without a scheme is seen with one too. What the model wrote, or can have
// written (R4 lowered it, or an earlier session's act could have put it there), is
// not seen but said. A secret is never seen, nor what may be used but once (R19).
func (l *Ledger) Seen(v strictjson.Value) (first Fact, ok bool) {
	text, isText := v.Text()
	if !isText {
		return Fact{}, false
	}
	k, valid := l.keyOf(Untyped, v)
	if !valid {
		return Fact{}, false
	}
	keys := []key{k, l.digest(linkDomain, text)}
	for _, scheme := range []string{"https://", "http://"} {
		if host, had := strings.CutPrefix(text, scheme); had {
			bare, _ := l.keyOf(Untyped, strictjson.StringOf(host))
			keys = append(keys, l.digest(linkDomain, host), bare)
		}
	}
	for n, k := range keys {
		for _, i := range l.store.under(k) {
			f := l.store.at(i)
			m := &l.store.metas[f.meta]
			switch kept := m.secret || m.lifetime > 0; {
			case kept && n == 0:
				return Fact{}, false
			case kept:
			case f.label > writ.Model && f.flags&(echoed|reflected) == 0 && !ok:
				first, ok = l.store.fact(i), true
			}
		}
	}
	return first, ok
}

// Join is what FindJoin found: what vouches for the directory and for the
// name, best first.
type Join struct {
	Dir, Name []Fact
	Reason    writ.Reason // "" or provenance.derived
}

// FindJoin answers `derived: path_join` (R13): is the value a canonical path
// whose directory is vouched whole as a path, and whose last element is vouched
// as a single name: a leaf of type name, or the last element of a vouched path.
// Both must meet the query's restrictions; for a target each must come from a
// closed collection or a constant owner. The query's type is not looked at.
func (l *Ledger) FindJoin(q Query) Join {
	none := Join{Reason: writ.ProvenanceDerived}
	text, ok := q.Value.Text()
	if !ok || q.Strict || visible(text) != "" {
		return none
	}
	dir, name, ok := splitPath(text)
	if !ok {
		return none
	}
	dirs := slices.DeleteFunc(slices.Clone(l.store.under(l.digest(string(Path), dir))), func(i uint32) bool {
		return l.store.metas[l.store.at(i).meta].typ != Path || !l.joins(&q, l.store.at(i))
	})
	names := slices.DeleteFunc(slices.Clone(l.store.under(l.digest(baseDomain, name))), func(i uint32) bool { return !l.joins(&q, l.store.at(i)) })
	if len(dirs) == 0 || len(names) == 0 {
		return none
	}
	j := Join{Dir: l.restore(dirs), Name: l.restore(names)}
	for i := range j.Name {
		j.Name[i].Derived = j.Name[i].Type == Path
	}
	return j
}

// joins reports whether a fact may be a part of a joined path.
func (l *Ledger) joins(q *Query, f *fact) bool {
	m := &l.store.metas[f.meta]
	switch {
	case f.label < writ.System && (!q.Cleared || f.flags&placed == 0 || f.flags&stranger != 0), !m.named, m.lifetime > 0,
		q.Server != "" && q.Server != m.server, q.Tool != "" && q.Tool != m.tool, q.HasAt && !l.standsAt(q.At, f),
		q.Collection != "" && m.collection != "" && q.Collection != m.collection:
		return false
	}
	return !q.Target || l.chosen(q, f)
}

// Worth returns what the ledger holds of a value that stood at a pointer of one
// piece of evidence. Of a value seen very often not every place is kept: then
// it is the lowest that any place of the same tool is worth. What is one-time is
// worth no more than a stranger's word: kept, it would vouch again (R19). ok is false
// where the evidence vouches for nothing, or has no such leaf.
func (l *Ledger) Worth(evidence uint32, server, tool, pointer string, v strictjson.Value) (f Fact, ok bool) {
	all := l.candidates(Query{Value: v})
	for _, t := range types {
		if k, fits := l.keyOf(t, v); fits {
			all = append(all, l.store.under(k)...)
		}
	}
	for _, i := range all {
		g := l.store.fact(i)
		if g.OneTime {
			g.Label = min(g.Label, writ.External)
		}
		if g.Key || g.Derived || g.Server != server || g.Tool != tool {
			continue
		}
		if g.Evidence == evidence && g.Pointer == pointer && g.Line == 0 && g.Inner == "" {
			return g, true
		}
		if !ok || g.Label < f.Label {
			f, ok = g, true
		}
	}
	f.Evidence, f.Pointer = evidence, pointer
	return f, ok
}

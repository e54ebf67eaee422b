package provenance

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// # Searches that are whole for a name (R9, R12)
//
// A narrowed list may hide a twin of what it shows. A search for a name hides no twin
// of that name, where the operator says that it shows every record that holds what was
// asked for (`matches`): what was asked for stands in the name as the user wrote it, so
// every record of that name was shown. Nothing else may narrow the search but the day of
// the records (`on`) that the user said right behind the name, as people tell two meetings
// of one title apart; a list of all records of that day (`on` alone) is whole as well. A
// page, a limit, a folder, the begin of a time hides what it likes, and so does an act
// that gave a record another day first.
//
// Whoever has read this can make a record appear that is called like another: then two
// are shown, and neither is named. That the user's own is not called so, and the other
// is, he can know no better than from a whole list. What an act of the session was sent
// is no name that a search finds, or the agent could call another record so first.

// searched reports whether nothing narrowed the result of a call but a search that a
// leaf matches, or none, and a day that the user said, which it returns.
func (o *Observation) searched(leaf *Leaf) (days []string, ok bool) {
	name, isText := leaf.Value.Text()
	if leaf.Rule == nil || leaf.Rule.Matches+leaf.Rule.On == "" || !isText {
		return nil, false
	}
	for _, a := range o.Args {
		if a.Fixed || empty(a.Value) {
			continue
		}
		asked, isText := a.Value.Text()
		switch {
		case !isText:
			return nil, false
		case a.Pointer == leaf.Rule.Matches:
			if !strings.Contains(name, asked) {
				return nil, false
			}
		default:
			if _, err := time.Parse(time.DateOnly, asked); err != nil || a.Label != writ.User || a.Pointer != leaf.Rule.On {
				return nil, false
			}
			days = append(days, asked)
		}
	}
	return days, leaf.Rule.Matches != "" || len(days) > 0
}

// lookedUp returns the name by which a read gave a member (`looked_up`): the text of that
// argument, where nothing else was asked for.
func (o *Observation) lookedUp(leaf *Leaf) (name string, ok bool) {
	if leaf.Rule == nil || leaf.Rule.LookedUp == "" || o.Act {
		return "", false
	}
	for _, a := range o.Args {
		if a.Fixed || empty(a.Value) {
			continue
		}
		text, isText := a.Value.Text()
		if ok || !isText || a.Pointer != leaf.Rule.LookedUp {
			return "", false
		}
		name, ok = text, true
	}
	return name, ok && len(name) <= longestName
}

// searchedFor reports whether a fact was found by a search that shows every record of
// the name that the user wrote at a place.
func (l *Ledger) searchedFor(f *fact, at Quote) bool {
	if f.flags&found == 0 {
		return false
	}
	i := l.turnAt(at.Evidence)
	if i < 0 {
		return false
	}
	text := l.turns[i].own.text
	if k, ok := l.keyOf(Untyped, strictjson.StringOf(text[at.Start:at.End])); !ok || l.made[k] {
		return false
	}
	for _, day := range l.narrowed[f.evidence] {
		if f.flags&late != 0 {
			return false
		}
		said, ok := l.SaidTime(strictjson.StringOf(day))
		if !ok || said[0].Evidence != at.Evidence || said[0].Start < at.End || !dated(text[at.End:said[0].Start]) {
			return false
		}
	}
	return true
}

// near reports whether what stands between two things is a few plain words, and perhaps
// a mark that ends or begins a quotation.
func near(between string) bool {
	return len(between) <= 24 && !strings.ContainsFunc(between, func(r rune) bool {
		return !unicode.IsLetter(r) && r != ' ' && !strings.ContainsRune(quotes, r)
	})
}

// dated reports whether what stands between a name and a day says that the day is of what
// is named, and of nothing else: but for what the thing is no word of another meaning.
func dated(between string) bool {
	words := wordsOf(between)
	last := len(words) - 1
	return near(between) && last >= 0 && datedBy[words[last]] && !slices.ContainsFunc(words[:last], func(w string) bool { return !things[w] })
}

// leads reports whether what stands between his words for a list and a name leaves the
// list that of what is named: of what stands after that, or of all but that, it is not.
func leads(between string) bool {
	return near(between) && !slices.ContainsFunc(wordsOf(between), func(w string) bool { return !things[w] && !definite[w] && !within[w] })
}

var (
	datedBy = wordSet("on of from am vom")
	within  = wordSet("in for at of im am vom")
	// things are words for what a name can be of.
	things = wordSet(`event meeting appointment call session file document note message mail email task list
		termin treffen besprechung datei dokument notiz nachricht aufgabe liste`)
)

// SaidBefore reports whether a time is of a day that the user named before a place in
// the same turn, and in none after that turn.
func (l *Ledger) SaidBefore(v strictjson.Value, at Quote) bool {
	text, _ := v.Text()
	said, ok := l.SaidTime(strictjson.StringOf(text[:min(len(text), len(time.DateOnly))]))
	return ok && said[0].Evidence == at.Evidence && said[0].Start < at.Start
}

// turnAt returns which turn is evidence of that number, -1 for none.
func (l *Ledger) turnAt(evidence uint32) int {
	for i := range l.turns {
		if l.turns[i].Evidence == evidence {
			return i
		}
	}
	return -1
}

// Named is what vouches for a value of a record that the user named (R12).
type Named struct {
	Value, Name Fact
	Phrase, At  Quote // his words for the list, and for the record
	// Dated says that a day narrowed the search for the record: of an act whose own day he
	// did not say before the phrase he may have said it.
	Dated bool
}

// OfNamed answers `from: of_named` (R12): is a value one of a list that the user asked
// for by the record it is of? "Invite the same participants as 'Kick-off'": a phrase of
// the operator's, meant, and right behind it, in quotation marks, the name of a record,
// whole, all in the latest turn. The query's source says where such values stand. Each
// record of that name which this tool showed has the value there, and one of them was
// in a whole list or found by a search that is whole for the name: so that where two are
// called so only what both have is meant. A model's record is none, and after an act of
// the session that followed his words no search shows what he had in mind.
//
// The record is as its owner wrote it, and the user asked for that. Who has read this can
// have himself accepted as one of a list that the user says is to be copied, by what he
// writes in the record of that name; the texts that go there are then the user's own.
func (n *Names) OfNamed(q Query, phrases []string) (as Named, ok bool) {
	l := n.l
	if q.Strict || empty(q.Value) || len(l.turns) == 0 {
		return as, false
	}
	t := &l.turns[len(l.turns)-1]
	cands := l.candidates(q)
	for _, name := range n.all() {
		at := span{name.at.Start, name.at.End}
		if name.at.Evidence != t.Evidence || !t.own.inQuotes(at) || strings.ContainsAny(name.word, quotes) || l.store.crowded(name.whole) {
			continue
		}
		phrase, said := t.calls(at, phrases)
		if !said {
			continue
		}
		as, whole, all := n.ofNamed(&q, &name, cands)
		if !all {
			return Named{}, false
		}
		if as.Phrase, as.At = phrase, name.at; whole {
			return as, true
		}
	}
	return Named{}, false
}

// ofNamed says of some facts whether all records of a name that the query's tool showed have one of
// them, and whether one of these counts and one of the records was shown whole.
func (n *Names) ofNamed(q *Query, name *named, cands []uint32) (as Named, whole, all bool) {
	l := n.l
	s := &l.store
	has := false
	for _, i := range name.whole {
		f := s.at(i)
		rec, is := s.record(f)
		if m := &s.metas[f.meta]; !is || f.node != rec || m.server != q.Server || m.tool != q.Tool || m.key || m.collection != "" {
			continue
		}
		held := n.heldIn(q, f.evidence, rec, cands)
		if len(held) == 0 {
			return as, false, false
		}
		if c := slices.IndexFunc(held, func(c uint32) bool { return s.at(c).label >= writ.External }); c >= 0 && f.label >= writ.External && !has {
			as.Value, as.Name, has = s.fact(held[c]), s.fact(i), true
		}
		switch {
		case f.flags&late != 0:
		case n.listed(i, rec):
			whole, as.Dated = true, false
		case !whole && l.searchedFor(f, name.at):
			whole, as.Dated = true, len(l.narrowed[f.evidence]) > 0
		}
	}
	return as, has && whole && n.visits >= 0, true
}

// heldIn returns those of some facts that stand in a record, where the query's source accepts them:
// none where they are too many to look at.
func (n *Names) heldIn(q *Query, evidence, rec uint32, cands []uint32) (held []uint32) {
	s := &n.l.store
	if n.visits -= len(cands); n.visits < 0 {
		return nil
	}
	for _, c := range cands {
		if f := s.at(c); f.evidence == evidence && s.within(f.node, rec) && n.l.accepts(q, f) {
			held = append(held, c)
		}
	}
	return held
}

// listed reports whether the server lists the record around a fact whole.
func (n *Names) listed(i, rec uint32) bool {
	s := &n.l.store
	found, _ := s.inside(i, rec, &n.visits, func(at uint32) bool {
		f := s.at(at)
		in, is := s.record(f)
		return is && in == rec && s.metas[f.meta].named && f.flags&listed != 0 && f.label >= writ.System
	})
	return found
}

// calls returns the phrase, meant, behind which a name stands, with a few plain words
// between them at most.
func (t *turn) calls(name span, phrases []string) (Quote, bool) {
	text := t.own.text
	for _, p := range phrases {
		for i := max(0, name.start-len(p)-24-utf8.UTFMax); i+len(p) < name.start; i++ {
			e := i + len(p)
			if strings.EqualFold(text[i:e], p) && wordAt(text, i) && t.own.end[e] && leads(text[e:name.start]) && Refers(text, i, e) {
				return Quote{t.Evidence, i, e}, true
			}
		}
	}
	return Quote{}, false
}

// Marked reports whether a place is in quotation marks.
func (l *Ledger) Marked(at Quote) bool {
	i := l.turnAt(at.Evidence)
	return i >= 0 && l.turns[i].own.inQuotes(span{at.Start, at.End})
}

// Quoted reports whether a place is of the user's latest turn, and in quotation marks
// that are those of one quotation: within it stands none but an apostrophe.
func (l *Ledger) Quoted(at Quote) bool {
	i := l.turnAt(at.Evidence)
	if i < 0 || i != len(l.turns)-1 || !l.turns[i].own.inQuotes(span{at.Start, at.End}) {
		return false
	}
	text := l.turns[i].own.text[at.Start:at.End]
	for k, r := range text {
		before, _ := utf8.DecodeLastRuneInString(text[:k])
		after, _ := utf8.DecodeRuneInString(text[k+utf8.RuneLen(r):])
		if strings.ContainsRune(quotes, r) && !(unicode.IsLetter(before) && unicode.IsLetter(after)) {
			return false
		}
	}
	return true
}

// SaidBy answers `from: said_by` (R12): is a value what somebody asked for whom the
// user named? The query's At names, in the results of one tool, the field that says
// who speaks, at party or better: it cannot be forged. The user typed what stands
// there whole in his latest turn, and of all he typed there one alone stands in that
// field. The value is a direct scalar, declared of the query's type, of a record of
// that origin; and in all such records seen in this session nothing else is of that
// type, so that nobody but the user chose which. A model's record is none.
//
// Whoever has read this can have his own value accepted only where the user names
// him, in the very turn, and then says it himself.
func (n *Names) SaidBy(q Query) (said, by Fact, at Quote, ok bool) {
	l := n.l
	s := &l.store
	k, typed := l.keyOf(q.Type, q.Value)
	if q.Type == Untyped || q.Strict || !typed || empty(q.Value) || len(l.turns) == 0 {
		return said, by, at, false
	}
	none := func() (Fact, Fact, Quote, bool) { return Fact{}, Fact{}, Quote{}, false }
	latest := l.turns[len(l.turns)-1].Evidence
	var origin *fact
	for _, name := range n.all() {
		for _, i := range name.whole {
			f := s.at(i)
			if m := &s.metas[f.meta]; name.at.Evidence != latest || !m.named || m.server != q.Server || m.tool != q.Tool || !l.standsAt(q.At, f) {
				continue
			}
			if s.crowded(name.whole) || origin != nil && origin.mark != f.mark {
				return none() // not all of it is known, or he named two
			}
			origin = f
			held, alone := n.only(i, q.Type, k.mark())
			if !alone {
				return none()
			}
			if held > 0 && f.label >= writ.Party && !ok {
				said, by, at, ok = s.fact(held-1), s.fact(i), name.at, true
			}
		}
	}
	return said, by, at, ok
}

// only reports whether an origin has a record and nothing in it is of a type but one value,
// and which fact, plus 1, holds it where it may be relied on.
func (n *Names) only(origin uint32, t Type, mark uint32) (held uint32, alone bool) {
	s := &n.l.store
	rec, alone := s.record(s.at(origin))
	if !alone {
		return 0, false
	}
	s.around(origin, func(i uint32) bool {
		g := s.at(i)
		if n.visits--; n.visits < 0 || g.evidence != s.at(origin).evidence || !s.within(g.node, rec) {
			return false
		}
		if m := &s.metas[g.meta]; m.typ == t && i != origin {
			alone = alone && g.mark == mark
			if _, is := s.record(g); is && g.mark == mark && g.node == rec && m.named && g.label >= writ.External && m.lifetime == 0 && held == 0 {
				held = i + 1
			}
		}
		return true
	})
	return held, alone && n.visits >= 0
}

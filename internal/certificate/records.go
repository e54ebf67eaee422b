package certificate

import (
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// anchored is R9: the user named the record that a value says, or the operator did, or
// the session made it. Of what receives something (R28, R14) strangers name nothing.
func (s *Session) anchored(c *call, l *leaf, guaranteed bool) bool {
	switch l.Rule {
	case "const", "user", "user:time", "user:day", "user:amount", "user:composite", "user:within", "party", keptCall, ruleElement:
		return true
	case "grown", grownOutput:
		if !c.destroys() || !l.names() {
			return true
		}
	}
	if c.strict {
		return false
	}
	return slices.ContainsFunc(l.Evidence[min(l.base(), len(l.Evidence)):], func(e gate.Ref) bool {
		return s.typed(l, e) || s.names(c, l.collection(), l.words(), l.value, e, guaranteed) && !(guaranteed && l.apart && s.plainly(c, l, e)) || s.partly(l, e) || !guaranteed && s.called(l, e) ||
			slices.ContainsFunc(s.system(e), func(p *place) bool { return s.creation(c, l, p) })
	})
}

// called reports whether a reference quotes what users call the one record of the last
// whole list of its kind that has the most, or the least, of something (R9).
func (s *Session) called(l *leaf, e gate.Ref) bool {
	t, words, ok := s.quote(e)
	if !ok || t != &s.turns[len(s.turns)-1] || !t.token(e.Start, e.End) || !provenance.Outright(t.own, e.Start, e.End) || l.collection() == "" {
		return false
	}
	return slices.ContainsFunc(s.holding(l.value, l.typ()), func(p *place) bool {
		if p.rule == nil || !p.listed || p.late || p.acts < t.acts || p.label < writ.System || !p.member(l.collection()) || !provenance.Equal(p.typ, l.value, p.value) || s.listedAgain(p) {
			return false
		}
		return slices.ContainsFunc(p.rule.Ranks, func(r provenance.Rank) bool {
			return slices.ContainsFunc(r.Phrases, func(f string) bool { return strings.EqualFold(f, words) }) && s.first(p, r)
		})
	})
}

// partSaid is where a turn says how something begins, or ends, and where the word for it
// stands.
type partSaid struct {
	noun, start, end int
	ends             bool
}

var saysPart = text.Pattern(`(?i)(?:[ \t](?:that|which|whose[ \t](?:name|title|number|id)))?[ \t](?:(?:starts?|starting|begins?|beginning)[ \t]with|(ends?|ending)[ \t](?:with|in))[ \t](` + quoteMark + `?)`)

// saidParts finds them: in quotation marks all that stands in them, else one word.
func (t *turn) saidParts() (out []partSaid) {
	for _, m := range saysPart().FindAllStringSubmatchIndex(t.own, 16) {
		p := partSaid{noun: m[0] + 1, start: m[1], ends: m[2] >= 0}
		within := t.own[p.start:min(len(t.own), p.start+256)]
		if m[4] < m[5] {
			for _, at := range anyMark().FindAllStringIndex(within, -1) {
				if p.end == 0 && at[0] > 0 && t.ends(p.start+at[0]) {
					p.end = p.start + at[0]
				}
			}
		} else {
			for n := 1; n <= len(within) && p.end == 0; n++ {
				if t.ends(p.start + n) {
					p.end = p.start + n
				}
			}
		}
		if p.end > 0 {
			out = append(out, p)
		}
	}
	return out
}

// partial reports whether a reference quotes something of a part that is said of the name
// of what the words are for.
func (t *turn) partial(e gate.Ref, words []string) bool {
	return slices.ContainsFunc(t.parts, func(p partSaid) bool {
		return e.Start < p.end && p.start < e.End && t.called(p.noun, false, words)
	})
}

// partly reports whether a reference quotes how the one member of its kind begins, or
// ends, that whole lists showed since the user's latest turn said so and before an act: in
// these letters, and no other one in whatever letters.
func (s *Session) partly(l *leaf, e gate.Ref) bool {
	t, words, ok := s.quote(e)
	if !ok || t != &s.turns[len(s.turns)-1] || l.collection() == "" || t.over(e.Start, e.End) || !naming(t, words) {
		return false
	}
	said := slices.IndexFunc(t.parts, func(p partSaid) bool { return p.start == e.Start && p.end == e.End })
	if said < 0 {
		return false
	}
	noun := strings.TrimRight(t.own[:t.parts[said].noun], " \t")
	if !slices.ContainsFunc(l.words(), func(w string) bool {
		at := len(noun) - len(w)
		return w != "" && t.called(t.parts[said].noun, false, []string{w}) && at >= 0 && provenance.Refers(t.own, at, e.End)
	}) {
		return false
	}
	has := strings.HasPrefix
	if t.parts[said].ends {
		has = strings.HasSuffix
	}
	is := false
	for ev, all := range s.places {
		for _, p := range all {
			text, isText := p.value.Text()
			if ev < t.evidence || p.key || !isText || !p.member(l.collection()) || !p.listed || p.late || p.label < writ.System || !has(text, words) && !has(fold(text), fold(words)) {
				continue
			}
			if !provenance.Equal(p.typ, l.value, p.value) || !has(text, words) {
				return false
			}
			is = true
		}
	}
	return is
}

// listedAgain reports whether the same tool gave a list of the same kind later.
func (s *Session) listedAgain(p *place) bool {
	for ev, all := range s.places {
		if ev > p.evidence && slices.ContainsFunc(all, func(q *place) bool {
			return q.rule != nil && len(q.rule.Ranks) > 0 && q.listed && !q.late && q.label >= writ.System && q.server == p.server && q.tool == p.tool && q.collection() == p.collection()
		}) {
			return true
		}
	}
	return false
}

// first reports whether a record has more of something than every other of its list, or
// less: of numbers, or of times, each of which the server guarantees.
func (s *Session) first(p *place, r provenance.Rank) bool {
	amount := func(of *place) (n *big.Rat, ok bool) {
		at, in := of.record()
		if !in {
			return nil, false
		}
		trail := append(slices.Clone(of.trail[:at]), r.By...)
		i := slices.IndexFunc(s.places[p.evidence], func(g *place) bool {
			return !g.key && g.rule != nil && g.label >= writ.System && slices.Equal(g.trail, trail)
		})
		if i < 0 {
			return nil, false
		}
		v := s.places[p.evidence][i].value
		if text, is := v.Text(); is {
			at, err := time.Parse("2006-01-02T15:04:05", text)
			if err != nil || len(text) != len("2006-01-02T15:04:05") {
				return nil, false
			}
			return big.NewRat(at.Unix(), 1), true
		}
		d, _, why := provenance.Canonical(provenance.Decimal, v)
		if why != "" {
			return nil, false
		}
		return new(big.Rat).SetString(d)
	}
	mine, ok := amount(p)
	if !ok {
		return false
	}
	records := map[string]bool{}
	for _, q := range s.places[p.evidence] {
		if q.rule != p.rule {
			continue
		}
		its, ok := amount(q)
		n, _ := q.record()
		key := strictjson.Pointer(q.trail[:n])
		if !ok || records[key] {
			return false
		}
		records[key] = true
		if c := mine.Cmp(its); q != p && (c == 0 || (c > 0) == r.Least) {
			return false
		}
	}
	return true
}

// base is how many references say where a value comes from; who named its record stands
// behind them.
func (l *leaf) base() int {
	if l.Rule == "output" || l.Rule == grownOutput || l.Rule == "seen" || l.Rule == "derived:fresh" || l.Rule == "invented" {
		return 1
	}
	return 2
}

// creation reports whether a place is where an act of this session said that it newly
// made what the argument names: nothing showed it before (R13).
func (s *Session) creation(c *call, l *leaf, p *place) bool {
	if p.rule == nil || !p.rule.Creates || p.label < writ.System || !equal(l.value, l.typ(), p) || !c.query(l).source(policy.Source{}, p) {
		return false
	}
	return s.holding(l.value, l.typ())[0] == p
}

// A calling is what the user wrote that may name a record: the words of a quote, and what
// they can name as he wrote them.
type calling struct {
	turn       *turn
	ref        gate.Ref
	words      string
	collection string
	value      strictjson.Value // of the record that is meant
	closed     bool             // strangers add no member
	guaranteed bool             // by its own id or by what the server guarantees alone, for it receives something
	hash       bool             // a # stands before them: what has a name is called so, or not named
	sent       bool             // a text that was sent has them, and may have become a name
	plain      bool             // a sentence may have them, and strangers a name
	free       bool             // the same of a name, in a collection that strangers add to
	unset      bool             // plain, and nothing sets them apart
	inLetters  bool             // set apart so that a name in other letters is meant
}

// calling returns what a reference quotes as what may name a record; false where it names none.
func (s *Session) calling(c *call, collection string, of []string, value strictjson.Value, e gate.Ref, guaranteed bool) (*calling, bool) {
	t, words, ok := s.quote(e)
	if !ok || collection == "" {
		return nil, false
	}
	n := &calling{turn: t, ref: e, words: words, collection: collection, value: value, closed: c.closed(collection), guaranteed: guaranteed, hash: t.hashed(e), sent: s.told[words]}
	whole := (n.hash || t.begins(e.Start)) && t.ends(e.End) && !t.over(e.Start, e.End) && !t.cut(e.Start, e.End) && !t.partial(e, of)
	short := (n.hash || n.closed && t.name(e) && utf8.RuneCountInString(words) == 3) && shortForm().MatchString(words) && !slices.Contains(crowd, strings.ToLower(words))
	if !whole || !short && !naming(t, words) {
		return nil, false
	}
	if n.hash && (n.sent || strings.ContainsFunc(words, blank) || provenance.Spares(t.own, e.Start-1) || tagless(words) && !t.called(e.Start, true, of)) {
		return nil, false
	}
	n.free = guaranteed && !n.closed && !n.hash && wordy(provenance.Name, strictjson.StringOf(words)) && !t.called(e.Start, false, of)
	n.plain = guaranteed && wordy(provenance.Untyped, strictjson.StringOf(words))
	n.stands(t.nounBehind(c, collection, e, of), c.spoken(), of)
	return n, true
}

// stands looks at what sets a name apart, as a word for such things behind it does.
func (n *calling) stands(noun, spoken bool, of []string) {
	t, e := n.turn, n.ref
	n.unset = n.plain && (n.sent || !n.hash && !(n.closed && (t.name(e) || t.apart(e, of))) && !noun)
	n.inLetters = n.closed && !n.sent && spoken && (noun || t.alone(e, of))
}

// alone reports whether a reference quotes a whole name: in quotation marks, or behind a word for
// such things, where no more of it stands behind.
func (t *turn) alone(e gate.Ref, words []string) bool {
	return t.marked(e.Start, e.End) || t.called(e.Start, false, words) && provenance.NameEnds(t.own, e.End)
}

// member reports whether a place has a member of the collection, and other whether it is
// another one than is meant.
func (n *calling) member(p *place) (is, other bool) {
	is = p.member(n.collection)
	return is, is && !provenance.Equal(p.typ, n.value, p.value)
}

// names reports whether a reference quotes what names the one record of a collection
// that holds a value. What receives something is named by its own id or by what the
// server guarantees alone; where strangers add no member by words of a sentence too, which
// the user set apart or wrote as a proper name.
func (s *Session) names(c *call, collection string, of []string, value strictjson.Value, e gate.Ref, guaranteed bool) bool {
	n, ok := s.calling(c, collection, of, value, e, guaranteed)
	if !ok {
		return false
	}
	named := false
	for _, way := range []func(*Session, *calling) (named, other bool){(*Session).byBase, (*Session).bySpelling, (*Session).byLookup} {
		is, other := way(s, n)
		if other {
			return false
		}
		named = named || is
	}
	return named
}

// byBase reports whether words name a record as a file's name without its directory does, or
// another one too.
func (s *Session) byBase(n *calling) (named, other bool) {
	if n.hash || !hasBase(n.words) {
		return false, false
	}
	for _, p := range s.same[baseKey(n.words)] {
		is, another := n.member(p)
		if another {
			return false, true
		}
		named = named || is && p.label >= writ.System && p.listed && !n.guaranteed
	}
	return named, false
}

// hasBase reports whether words may be a file's name with an extension.
func hasBase(words string) bool { return strings.Contains(strings.Trim(words, "."), ".") }

// spelled are the places where words stand, or where they do in no record, of what stands there in
// other letters: cased, by which nobody is sent anything, but what is set apart so.
func (s *Session) spelled(n *calling) (places []*place, cased bool) {
	if places = s.spelling(n.words); len(places) > 0 || n.hash || len(s.lookups[n.words]) > 0 || hasBase(n.words) && len(s.same[baseKey(n.words)]) > 0 {
		return places, false
	}
	least := 2
	if n.guaranteed {
		least = 1 // by one word nothing is destroyed
	}
	if k := casedKey(n.words, least); k != "" {
		return s.same[k], true
	}
	return nil, false
}

// bySpelling reports whether words stand in the record that is meant, or in another's too.
func (s *Session) bySpelling(n *calling) (named, other bool) {
	places, cased := s.spelled(n)
	if cased && n.guaranteed && !n.inLetters {
		return false, true
	}
	for _, p := range places {
		id, another := n.member(p)
		depth, in := p.record()
		var r members
		if in && !another {
			r, another = s.recordOf(n, p, depth)
		}
		switch {
		case another:
			return false, true
		case !in:
			named = named || cased && !n.guaranteed && id && p.label >= writ.System && (p.listed || n.closed)
		default:
			named = named || r.holds && s.worthOf(n, p, r, id, cased) && p.direct(depth) && (!n.hash || p.isName())
		}
	}
	return named, false
}

// nounBehind reports whether a word for such things stands behind what names a record that strangers
// do not make, for an act that writes and sends.
func (t *turn) nounBehind(c *call, collection string, e gate.Ref, words []string) bool {
	return c.spoken() && c.closed(collection) && provenance.NounBehind(t.own, e.Start, e.End, words)
}

// spoken reports whether an act takes what is called so as people speak of it.
func (c *call) spoken() bool {
	return !c.strict && c.effect&^(policy.Read|policy.Write|policy.Send) == 0
}

// worthOf reports whether what stands at a place may name its record, id where it is the very member.
func (s *Session) worthOf(n *calling, p *place, r members, id, cased bool) bool {
	if cased && (!r.complete && !(id && n.closed) || n.guaranteed && !p.isName()) {
		return false
	}
	return id && !(n.guaranteed && p.opened && wordy(p.typ, strictjson.StringOf(n.words))) ||
		(p.collection() == "" || p.isName() || p.isUnique()) && p.label >= n.least(p, r.chosen) && (r.complete || p.isUnique() || s.searchedFor(p, n.turn, n.ref))
}

// isName reports whether the operator says of a place that its record is called so.
func (p *place) isName() bool { return p.rule != nil && p.rule.Names }

// isUnique reports whether the server gives what stands at a place to one record alone.
func (p *place) isUnique() bool { return p.rule != nil && p.rule.Unique }

// least is the label that a field needs for words in it to name its record; one that
// no result has, where these name none.
func (n *calling) least(p *place, chosen bool) writ.Label {
	switch {
	case !n.guaranteed:
		return writ.External
	case n.unset, n.plain && (chosen || !p.isName()), n.free && p.isName():
		return writ.Operator
	}
	return writ.System
}

// members is what is known of the members of a collection in one record, of which the server
// guarantees.
type members struct {
	holds    bool // one is there
	complete bool // in a whole list
	chosen   bool // perhaps out of an open collection
}

// recordOf returns what the record around a place holds of what is meant, or that it holds another.
func (s *Session) recordOf(n *calling, p *place, depth int) (r members, other bool) {
	for _, g := range s.places[p.evidence] {
		m, in := g.record()
		if !in || m != depth || !within(g, p, depth) {
			continue
		}
		is, another := n.member(g)
		if another {
			return members{}, true
		}
		is = is && g.label >= writ.System
		r.holds = r.holds || is
		r.complete = r.complete || is && g.listed
		r.chosen = r.chosen || is && g.opened
	}
	return r, false
}

// byLookup reports whether the server gave the member that is meant for exactly these words, or another too.
func (s *Session) byLookup(n *calling) (named, other bool) {
	for _, p := range s.lookups[n.words] {
		is, another := n.member(p)
		if another {
			return false, true
		}
		named = named || !n.hash && is && p.label >= writ.System && !n.sent && !n.unset && !n.free && !(n.plain && p.opened)
	}
	return named, false
}

// hashed reports whether a # stands before what a reference quotes.
func (t *turn) hashed(e gate.Ref) bool {
	return e.Start > 0 && t.own[e.Start-1] == '#' && t.begins(e.Start-1)
}

// tagless reports whether what stands behind a # is a number of something, or a colour.
func tagless(words string) bool {
	hex := strings.Trim(words, "0123456789abcdefABCDEF") == ""
	return !strings.ContainsFunc(words, unicode.IsLetter) || hex && (len(words) == 3 || len(words) == 6 || len(words) == 8 || strings.ContainsAny(words, "0123456789"))
}

var shortForm = text.Pattern(`^\pL{2,3}$`)

// naming reports whether words can name a record: not too short, not of small space and
// no word for everybody.
func naming(t *turn, words string) bool {
	v := strictjson.StringOf(words)
	return utf8.RuneCountInString(words) >= part && !provenance.SmallSpace(provenance.Untyped, v) &&
		!strings.ContainsFunc(words, unicode.IsControl) && t.spells(&leaf{value: v}, words)
}

// lastOf is the last element of a path.
func lastOf(p *place) (string, bool) {
	full, _, why := provenance.Canonical(provenance.Path, p.value)
	if p.typ != provenance.Path || why != "" || full == "/" {
		return "", false
	}
	return full[strings.LastIndexByte(full, '/')+1:], true
}

// ofRecord reports whether a place is in the record that an argument names which
// another has to be of (R37).
func (s *Session) ofRecord(c *call, l *leaf, p *place) bool {
	return slices.ContainsFunc(c.bindings(), func(b policy.Binding) bool {
		first := c.first(b, l)
		return first != nil && first != l && s.inRecord(c, first, p, b.By)
	})
}

// agrees reports whether what shows a place says the same of the arguments that its own names
// (R37): its record says it, or the call that was answered, by their names; or neither says
// anything.
func (s *Session) agrees(c *call, l *leaf, p *place) bool {
	if l.rule == nil || c.strict || l.key || l.answer {
		return true
	}
	return !slices.ContainsFunc(l.rule.Agrees, func(at provenance.Pattern) bool {
		name, here := c.beside(l, at)
		all := s.askedWith[p.evidence].called(name)
		told := len(all) > 0
		if n, ok := p.record(); ok {
			for _, k := range s.places[p.evidence] {
				if m, ok := k.record(); !ok || m != n || !within(k, p, n) || k.key || k.rule == nil || k.rule.Label <= writ.External || k.trail[len(k.trail)-1] != name {
					continue
				}
				if told = true; k.label >= writ.System {
					all = append(all, k.value)
				}
			}
		}
		return told && !saysSame(all, here)
	})
}

// beside is what a call has at a pattern of another argument, for the list that a leaf is in, and
// the name that it has there.
func (c *call) beside(l *leaf, at provenance.Pattern) (name string, here strictjson.Value) {
	path := slices.Clone(at.Tokens)
	for i, n := 0, 0; i < len(path); i++ {
		if path[i] == "*" {
			for n < len(l.path) && (n >= len(l.rule.At.Tokens) || l.rule.At.Tokens[n] != "*") {
				n++
			}
			path[i] = l.path[n]
			n++
		}
	}
	for _, o := range c.leaves {
		if !o.key && !o.answer && slices.Equal(o.path, path) {
			here = o.value
		}
	}
	return path[len(path)-1], here
}

// saysSame reports whether one of some values is that which a call has.
func saysSame(all []strictjson.Value, here strictjson.Value) bool {
	return slices.ContainsFunc(all, func(v strictjson.Value) bool {
		return here.Exists() && provenance.Equal(provenance.Untyped, v, here)
	})
}

// listedThere reports whether a value chooses among what the targets of a call have that only sends, and
// was listed for them: who reads it is who reads that.
func (s *Session) listedThere(c *call, l *leaf) bool {
	return c.effect&^policy.Read == policy.Send && l.Rule == "output" && l.role == policy.Selector && l.rule != nil && !c.strict && len(l.rule.Agrees) > 0 && len(l.Evidence) > 0 && !slices.ContainsFunc(l.rule.Agrees, func(at provenance.Pattern) bool {
		name, here := c.beside(l, at)
		return empty(here) || !saysSame(s.askedWith[l.Evidence[0].Evidence].called(name), here) ||
			!slices.ContainsFunc(c.rules, func(r policy.ArgRule) bool { return r.At.Source == at.Source && r.Role == policy.Target })
	})
}

// inRecord reports whether a place is in a record that an argument names, or in one
// that a key names which stands directly in such a record: a member of by.
func (s *Session) inRecord(c *call, first *leaf, p *place, by string) bool {
	return slices.ContainsFunc(s.holding(first.value, first.typ()), func(f *place) bool {
		n, ok := f.record()
		if !ok || f.label < writ.System || f.rule == nil || !c.query(first).source(policy.Source{}, f) {
			return false
		}
		return within(p, f, n) && !s.another(p, n, first.collection()) ||
			slices.ContainsFunc(s.places[f.evidence], func(k *place) bool {
				m, ok := k.record()
				return ok && m == n && within(k, f, n) && k.member(by) && k.label >= writ.System && s.keyed(k, p)
			})
	})
}

// keyed reports whether a place is in a record that the same key names as stands in
// another one.
func (s *Session) keyed(k, p *place) bool {
	return slices.ContainsFunc(s.holding(k.value, k.typ), func(same *place) bool {
		n, ok := same.record()
		return ok && same.member(k.collection()) && same.typ == k.typ && same.label >= writ.System && provenance.Equal(k.typ, k.value, same.value) &&
			within(p, same, n) && !s.another(p, n, k.collection())
	})
}

// another reports whether between a place and the record around it, of n tokens, stands
// a record that a member of the same collection names.
func (s *Session) another(p *place, n int, collection string) bool {
	return collection != "" && slices.ContainsFunc(s.places[p.evidence], func(g *place) bool {
		m, ok := g.record()
		return ok && m > n && g.member(collection) && within(p, g, m) && g.lists(m-1)
	})
}

// unbound returns an argument that is of another record than the contract says, nil for
// none. What the user said and the operator listed is nobody's record.
func (s *Session) unbound(c *call) *leaf {
	for _, b := range c.bindings() {
		for _, l := range c.leaves {
			free := l.Rule == "const" || l.Rule == "catalog" || l.Rule == "local" || l.Rule == "open" || l.Rule == "approval" ||
				strings.HasPrefix(l.Rule, "user") || l.role == policy.Amount && strings.HasPrefix(l.Rule, "derived:")
			if free || l.answer || empty(l.value) || !l.other(b) {
				continue
			}
			first := c.first(b, l)
			if first == l {
				continue
			}
			// A first that a person let pass names no record.
			held := first != nil && first.Rule != "approval" && slices.ContainsFunc(l.Evidence, func(e gate.Ref) bool {
				return slices.ContainsFunc(s.system(e), func(p *place) bool {
					return equal(l.value, l.typ(), p) && s.vouches(c, l, p) && s.inRecord(c, first, p, b.By)
				}) || l.Rule == grownOutput && s.raised(c, l, e) && slices.ContainsFunc(s.at(e), func(p *place) bool { return s.inRecord(c, first, p, b.By) })
			})
			if !held && (l.role == policy.Amount || l.role == policy.TimeRole || !s.quoted(l)) {
				return l
			}
		}
	}
	return nil
}

// plainly reports whether the words that name a record could be any, and nothing sets
// them apart: a # does, and where strangers add nothing, a capital within a sentence.
func (s *Session) plainly(c *call, l *leaf, e gate.Ref) bool {
	t, words, ok := s.quote(e)
	of := provenance.Untyped
	if id, isText := l.value.Text(); isText && id == words {
		of = l.typ()
	}
	return ok && wordy(of, strictjson.StringOf(words)) && !t.hashed(e) && !t.apart(e, l.words()) && !(c.closed(l.collection()) && t.name(e)) && !t.nounBehind(c, l.collection(), e, l.words())
}

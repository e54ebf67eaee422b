package provenance

import (
	"slices"
	"strings"
	"sync"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// Place is where an act put text that is worth less than system (R38). The
// values of its targets and selectors name it; an act without any could have
// put it anywhere its tool reaches.
type Place struct {
	Server string     `json:"server"`
	Tool   string     `json:"tool"`
	Label  writ.Label `json:"label"` // the lowest the act sent
	At     []Resource `json:"at,omitempty"`
	// Links says that a read was asked for a link of the model's, which it may
	// show again anywhere its tool reaches: links alone are lowered (R20).
	Links bool `json:"links,omitempty"`
	// Rests are, where nothing but values that a person said yes to once lowers it, the
	// lines under which each of them would have left nothing there. While one of each
	// is in force, the place does not count.
	Rests [][]Line `json:"rests,omitempty"`
}

// Line is one by which a person lets what stands at an output be a value of an argument
// from now on, as policy.Grown has it.
type Line struct {
	Tool   string `json:"tool"`
	Arg    string `json:"arg"`
	From   string `json:"from"`
	In     string `json:"in,omitempty"`
	Writes string `json:"writes,omitempty"`
}

// maxRests bounds the lines that a place, or what was read, rests on; with more of them
// it counts as if it rested on nothing.
const maxRests = 64

func tooMany(rests [][]Line) bool { return len(slices.Concat(rests...)) > maxRests }

// add has a place hold what is worth label as well, and rests on these lines, on none
// where nothing would have kept it from lowering.
func (p *Place) add(label writ.Label, rests ...[]Line) {
	firm := p.Label < writ.System && len(p.Rests) == 0
	p.Label = min(p.Label, label)
	if label >= writ.System {
		return
	}
	if p.Rests = together(p.Rests, rests); firm || len(rests) == 0 || tooMany(p.Rests) {
		p.Rests = nil
	}
}

// together are the lines of both, one of each.
func together(all, more [][]Line) [][]Line {
	all = slices.Clip(all)
	for _, one := range more {
		if !slices.ContainsFunc(all, func(o []Line) bool { return slices.Equal(o, one) }) {
			all = append(all, one)
		}
	}
	return all
}

// CountsWith reports whether a place counts wherever another does, whatever lines are in
// force: it rests on nothing, or on all that the other rests on.
func (p *Place) CountsWith(o *Place) bool {
	return len(p.Rests) == 0 || len(o.Rests) > 0 && !slices.ContainsFunc(o.Rests, func(one []Line) bool {
		return !slices.ContainsFunc(p.Rests, func(of []Line) bool { return slices.Equal(of, one) })
	})
}

// Resource is one value that names a place.
type Resource struct {
	// Of is what the value is compared within: its collection, else its type
	// with a colon before it. Values of different kinds do not tell two places
	// apart, and one without a kind tells nothing.
	Of   string `json:"of,omitempty"`
	Text string `json:"text"` // canonical and folded, with / between its parts
}

// within returns the resources that a resource lies in, nearest first: a
// directory holds its files, an owner the repositories.
func (r Resource) within() []Resource {
	var out []Resource
	for at := len(r.Text) - 1; at >= 0; at-- {
		if r.Text[at] == '/' {
			out = append(out, Resource{r.Of, r.Text[:at]})
		}
	}
	return out
}

// maxParts bounds the parts of a resource; one of more names nothing.
const maxParts = 64

// comparedIn is what a value of a collection and type is compared within.
func comparedIn(collection string, t Type) string {
	if collection == "" && t != Untyped {
		return ":" + string(t)
	}
	return collection
}

// PlaceOf is the place an act with these arguments goes to; ok is false if all
// it sends is worth system, so that nothing is lowered.
func PlaceOf(server, tool string, args []Arg) (p Place, ok bool) {
	p = Place{Server: server, Tool: tool, Label: writ.Operator}
	for _, a := range args {
		if !a.Narrow && !a.Ours {
			p.add(a.Label, a.Rests...)
		}
		p.At = append(p.At, a.resources()...)
	}
	return p, p.Label < writ.System
}

// AskedOf is the place of a read with these arguments; ok is false if the model
// put no link in them.
func AskedOf(server, tool string, args []Arg) (p Place, ok bool) {
	return Place{Server: server, Tool: tool, Label: writ.Model, Links: true}, slices.ContainsFunc(args, func(a Arg) bool {
		if a.Label != writ.Model {
			return false
		}
		return slices.ContainsFunc(readings(a.Type, a.Value), func(text string) bool {
			return strings.ContainsAny(text, `./\`) && linkForm().MatchString(text) // which none matches that has none of them
		})
	})
}

// linkForm is what a server could make a link of: one with its scheme, or a name
// with dots and what follows it. A dotted name alone is no link yet.
var linkForm = text.Pattern(`[a-z][a-z0-9+.-]*:[/\\]|[/\\]{2}|\bwww\.|[\pL\pN]\.\pL[\pL\pN-]*(?::\d+)?(?:[/\\]|[?#]\S)`)

// isLink reports whether a leaf is what `from: seen` accepts.
func (l *Leaf) isLink() bool {
	if l.Value.Kind() != strictjson.String {
		return false
	}
	_, _, why := Canonical(URL, l.Value)
	return why == ""
}

// resources are the spellings under which a target or selector names a place.
func (a *Arg) resources() []Resource {
	if !a.Names {
		return nil
	}
	kind := comparedIn(a.Collection, a.Type)
	var out []Resource
	for _, t := range readings(a.Type, a.Value) {
		out = append(out, resource(kind, t))
	}
	for _, real := range a.Real {
		out = append(out, resource(kind, fold(real)))
	}
	return out
}

func resource(kind, folded string) Resource {
	r := Resource{kind, strings.TrimSuffix(strings.ReplaceAll(folded, `\`, "/"), "/")}
	if strings.Count(r.Text, "/") > maxParts {
		r.Of = "" // too deep to be told from what it lies in
	}
	return r
}

// Places are the lowered places of one state, in the order of their numbers. It
// is safe for concurrent use: sessions judge results while others act.
type Places struct {
	mu    sync.RWMutex
	tools map[[2]string]*placesOf
	links map[[2]string][]*lowered // of reads
	by    map[uint64]*lowered
	rest  []*lowered // those that rest on lines
}

// lowered is one place, in force from its number until the number that cleared
// it.
type lowered struct {
	Place
	since, until uint64
}

// placesOf are the places of one tool, by the kinds of values that name them.
type placesOf struct {
	groups map[string]*group
	n      int
}

// group are places that values of the same kinds name.
type group struct {
	kinds []string // sorted; none: anywhere the tool reaches
	every []*lowered
	at    map[Resource][]*lowered // by what names them
	below map[Resource][]*lowered // by what they lie in
}

// maxPlaces bounds the places told apart for one tool. Beyond it a place is
// anywhere the tool reaches.
const maxPlaces = 1 << 14

// NewPlaces returns no places.
func NewPlaces() *Places {
	return &Places{tools: map[[2]string]*placesOf{}, links: map[[2]string][]*lowered{}, by: map[uint64]*lowered{}}
}

// Lower adds a place under a number. Numbers rise.
func (ps *Places) Lower(n uint64, p Place) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	k := [2]string{p.Server, p.Tool}
	if p.Links {
		ps.by[n] = &lowered{Place: p, since: n}
		ps.links[k] = append(ps.links[k], ps.by[n])
		return
	}
	t := once(ps.tools, k, func() *placesOf { return &placesOf{groups: map[string]*group{}} })
	if t.n++; t.n > maxPlaces {
		p.At = nil
	}
	l := &lowered{Place: p, since: n}
	ps.by[n] = l
	if len(p.Rests) > 0 {
		ps.rest = append(ps.rest, l)
	}
	kinds := p.kinds()
	g := once(t.groups, strings.Join(kinds, " "), func() *group {
		return &group{kinds: kinds, at: map[Resource][]*lowered{}, below: map[Resource][]*lowered{}}
	})
	g.every = append(g.every, l)
	for _, r := range p.At {
		g.at[r] = append(g.at[r], l)
		for _, in := range r.within() {
			g.below[in] = append(g.below[in], l)
		}
	}
}

// kinds are those of the values that name the place, sorted. A value without a
// kind tells no two places apart.
func (p *Place) kinds() []string {
	var out []string
	for _, r := range p.At {
		if r.Of != "" && !slices.Contains(out, r.Of) {
			out = append(out, r.Of)
		}
	}
	slices.Sort(out)
	return out
}

// Carried is an act's place with what it takes along from the places that its own
// resources meet, of the tools that share a store with it: that goes where it puts it.
func (ps *Places) Carried(p Place, shares func(server, tool string) bool) Place {
	ps.mu.RLock()
	defer ps.mu.RUnlock()
	for tool, t := range ps.tools {
		if !shares(tool[0], tool[1]) {
			continue
		}
		for _, g := range t.groups {
			for _, r := range p.At {
				g.carried(r, &p)
			}
		}
	}
	return p
}

// carried adds what the places of a group hold that a resource meets.
func (g *group) carried(r Resource, to *Place) {
	if r.Of == "" {
		return
	}
	for _, l := range g.meeting(r) {
		if l.in(forever) {
			to.add(l.Label, l.Rests...)
		}
	}
}

// Clear ends the place that was lowered under number n, and under any other, from
// number at on. It reports whether there is one in force.
func (ps *Places) Clear(n, at uint64) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	l := ps.by[n]
	if l == nil || l.until != 0 {
		return false
	}
	end := func(ls []*lowered) {
		for _, o := range ls {
			if o.until == 0 && slices.Equal(o.At, l.At) {
				o.until = at
			}
		}
	}
	k := [2]string{l.Server, l.Tool}
	if l.Links {
		end(ps.links[k])
		return true
	}
	for _, g := range ps.tools[k].groups {
		end(g.every)
	}
	return true
}

// Covers reports whether a place is lowered as far already, by two acts at
// least, so that lowering it again changes no answer: of what an act itself
// answers its own place is left out, and one more has to be there. The place of a
// read counts for what it answers itself.
func (ps *Places) Covers(p Place) bool {
	ps.mu.RLock()
	defer ps.mu.RUnlock()
	if p.Links {
		return slices.ContainsFunc(ps.links[[2]string{p.Server, p.Tool}], func(l *lowered) bool { return l.in(forever) })
	}
	t := ps.tools[[2]string{p.Server, p.Tool}]
	if t == nil {
		return false
	}
	n := 0
	count := func(ls []*lowered) bool {
		for _, l := range ls {
			if l.in(forever) && l.Label <= p.Label && l.CountsWith(&p) && (len(l.At) == 0 || slices.Equal(l.At, p.At)) {
				n++
			}
		}
		return n > 1
	}
	if g := t.groups[""]; g != nil && count(g.every) {
		return true
	}
	g := t.groups[strings.Join(p.kinds(), " ")]
	return g != nil && len(g.kinds) > 0 && count(g.at[p.At[0]])
}

// forever is a number no event reaches.
const forever = ^uint64(0)

// in reports whether a place is in force at a number.
func (l *lowered) in(n uint64) bool { return l.since <= n && (l.until == 0 || l.until > n) }

// standing is what the places of a state, as of a number, say of one observation.
type standing struct {
	ps    *Places
	n     uint64
	o     *Observation
	named names // what the call's own targets and selectors name
	ids   map[*record][]identity
	reach map[reachKey]bool
	forge map[*OutputRule]bool
	known map[recordKey]writ.Label
	// counts says which places do, of those in force.
	counts func(*lowered) bool
	// beside are the places of the session, as of number m, where ps are those of the
	// state, and the other way round. own is the place that the observed call itself
	// lowered: what it answers was there before, or is judged by R5.
	beside *Places
	m      uint64
	own    uint64
}

// in reports whether a place counts for the observation.
func (s *standing) in(l *lowered) bool { return l.in(s.n) && l.since != s.own && s.counts(l) }

// lowest is the lowest label of those that count.
func (s *standing) lowest(ls []*lowered) writ.Label {
	low := writ.Operator
	for _, l := range ls {
		if l.Label < low && s.in(l) {
			low = l.Label
		}
	}
	return low
}

// recordKey is what places of one group say of the leaves of one record, or of
// those of them that stand in a list.
type recordKey struct {
	group  *group
	in     *record
	listed bool
}

// names are the values that name a leaf's resource, by kind.
type names map[string]map[string]bool

func (ns names) add(r Resource) {
	if r.Of != "" {
		once(ns, r.Of, func() map[string]bool { return map[string]bool{} })[r.Text] = true
	}
}

// hold reports whether a resource is one of the named, or lies in one.
func (ns names) hold(r Resource) bool {
	return ns[r.Of][r.Text] || slices.ContainsFunc(r.within(), func(in Resource) bool { return ns[in.Of][in.Text] })
}

type reachKey struct {
	tool [2]string
	rule *OutputRule
}

// identity is a leaf that says which resource its record is.
type identity struct {
	rule *OutputRule
	Resource
}

// newStanding returns nil where there are no places.
func newStanding(ps, beside *Places, n, m, own uint64, o *Observation, counts func(*lowered) bool) *standing {
	if ps == nil {
		return nil
	}
	ps.mu.RLock()
	defer ps.mu.RUnlock()
	if len(ps.tools)+len(ps.links) == 0 {
		return nil
	}
	s := &standing{ps: ps, beside: beside, n: n, m: m, own: own, o: o, named: names{}, reach: map[reachKey]bool{},
		counts: counts, forge: map[*OutputRule]bool{}, known: map[recordKey]writ.Label{}}
	for i := range o.Args {
		for _, r := range o.Args[i].resources() {
			s.named.add(r)
		}
	}
	return s
}

// label is the highest label a leaf may keep under the places it may come from.
// It may come from every place of a tool that reaches its field, unless what
// names its resource tells the place apart.
func (s *standing) label(leaf *Leaf) writ.Label {
	low := writ.Operator
	if s == nil {
		return low
	}
	for _, ps := range []*Places{s.ps, s.beside} {
		if ps != nil {
			ps.mu.RLock()
			defer ps.mu.RUnlock()
		}
	}
	for tool, t := range s.ps.tools {
		if !s.reaches(tool, leaf.Rule) {
			continue
		}
		for _, g := range t.groups {
			k := recordKey{g, leaf.record, leaf.inList()}
			low = min(low, once(s.known, k, func() writ.Label { return s.of(k) }))
		}
	}
	return low
}

// asked reports whether a read that was asked for a link of the model's could have
// left it where the leaf stands.
func (s *standing) asked(leaf *Leaf) bool {
	if s == nil {
		return false
	}
	s.ps.mu.RLock()
	defer s.ps.mu.RUnlock()
	for tool, ls := range s.ps.links {
		if slices.ContainsFunc(ls, func(l *lowered) bool { return l.in(s.n) }) && s.reaches(tool, leaf.Rule) {
			return true
		}
	}
	return false
}

// of is what one group of places leaves of the leaves of a record. A place is
// another's if what names the record's resource is of a kind the place is named
// by, and nothing of it meets the place: an act's second selector, such as a
// version, tells no place apart from what its first one names.
//
// A record is named by what stands in it where no lowering tool could have
// written. The call's own name is that of one record alone, and not where the
// record calls itself otherwise: what stands in a list, or under another name, may
// only be related to what was asked for. A name in the record that could have been
// written may hide that it is the place's.
func (s *standing) of(k recordKey) writ.Label {
	own, doubtful := names{}, names{}
	for _, id := range s.identities()[k.in] {
		if s.forged(id.rule) {
			doubtful.add(id.Resource)
		} else {
			own.add(id.Resource)
		}
	}
	told := false
	for _, kind := range k.group.kinds {
		called := s.named[kind]
		if k.listed {
			called = nil
		}
		for text := range doubtful[kind] {
			if r := (Resource{kind, text}); !own.hold(r) && !(names{kind: called}).hold(r) {
				return s.lowest(k.group.every)
			}
		}
		told = told || len(own[kind])+len(called) > 0
	}
	if !told {
		return s.lowest(k.group.every)
	}
	return min(s.met(k.group, s.named), s.met(k.group, own))
}

// met is the lowest label of the places of a group that what is named meets.
func (s *standing) met(g *group, ns names) writ.Label {
	low := writ.Operator
	for _, kind := range g.kinds {
		for text := range ns[kind] {
			low = min(low, s.lowest(g.meeting(Resource{kind, text})))
		}
	}
	return low
}

// meeting looks at the places that a resource names, lies in or holds.
func (g *group) meeting(r Resource) []*lowered {
	of := slices.Concat(g.at[r], g.below[r])
	for _, o := range r.within() {
		of = append(of, g.at[o]...)
	}
	return of
}

// forged reports whether any tool that lowered a place of this state or session so
// far reaches a field, so that what it says of itself names nothing. A place that was
// cleared goes on to count here.
func (s *standing) forged(r *OutputRule) bool {
	return once(s.forge, r, func() bool { return s.forgedIn(s.ps, s.n, r) || s.forgedIn(s.beside, s.m, r) })
}

func (s *standing) forgedIn(ps *Places, n uint64, r *OutputRule) bool {
	if ps == nil {
		return false
	}
	is := func(l *lowered) bool { return l.since <= n && s.counts(l) }
	for tool, t := range ps.tools {
		for _, g := range t.groups {
			if s.reaches(tool, r) && slices.ContainsFunc(g.every, is) {
				return true
			}
		}
	}
	return false
}

// sight is what the places of a session and those of its state say of one observation:
// all of them, those that no line in force lifts, and those that rest on nothing.
type sight struct {
	all, unlifted, firm [2]*standing
	rests               [][]Line // of the others
}

func every(*lowered) bool { return true }

func (l *Ledger) sight(o *Observation) (s sight) {
	by := func(counts func(*lowered) bool) [2]*standing {
		return [2]*standing{newStanding(l.places, o.Places, forever, o.Through, o.OwnPlace, o, counts), newStanding(o.Places, l.places, o.Through, forever, o.OwnThere, o, counts)}
	}
	s.all = by(every)
	s.unlifted, s.firm = s.all, s.all
	var rests [][]Line
	for _, of := range s.all {
		rests = of.resting(rests)
	}
	if len(rests) == 0 {
		return s
	}
	lifts := map[*lowered]bool{}
	s.unlifted = by(func(l *lowered) bool {
		if len(l.Rests) == 0 || o.Lifts == nil {
			return true
		}
		return !once(lifts, l, func() bool { return o.Lifts(l.Rests) })
	})
	if !tooMany(rests) {
		s.firm, s.rests = by(func(l *lowered) bool { return len(l.Rests) == 0 }), rests
	}
	return s
}

// resting adds what places rest on that can have reached the observation.
func (s *standing) resting(rests [][]Line) [][]Line {
	if s == nil {
		return rests
	}
	s.ps.mu.RLock()
	defer s.ps.mu.RUnlock()
	reached := map[[2]string]bool{}
	for _, l := range s.ps.rest {
		tool := [2]string{l.Server, l.Tool}
		is := once(reached, tool, func() bool {
			return slices.ContainsFunc(s.o.Leaves, func(leaf Leaf) bool { return s.reaches(tool, leaf.Rule) })
		})
		if is && s.in(l) {
			rests = together(rests, l.Rests)
		}
	}
	return rests
}

// lowest is the highest label a leaf may keep under the places of both.
func lowest(of [2]*standing, leaf *Leaf) writ.Label { return min(of[0].label(leaf), of[1].label(leaf)) }

// reaches reports whether what a tool was sent can come back in a field; nil is
// one that no rule names.
func (s *standing) reaches(tool [2]string, r *OutputRule) bool {
	if r != nil && r.Authoritative && s.o.Act {
		r = nil // an act enumerates nothing
	}
	return once(s.reach, reachKey{tool, r}, func() bool {
		if s.o.Reaches != nil {
			return s.o.Reaches(tool[0], tool[1], r)
		}
		return tool[0] == s.o.Server && (r == nil || !r.Authoritative)
	})
}

// once is what a map has for a key, computed where it has nothing yet.
func once[K comparable, V any](known map[K]V, k K, compute func() V) V {
	v, ok := known[k]
	if !ok {
		v = compute()
		known[k] = v
	}
	return v
}

// identities are the leaves of each record that a rule gives a kind.
func (s *standing) identities() map[*record][]identity {
	if s.ids != nil {
		return s.ids
	}
	s.ids = map[*record][]identity{}
	for i := range s.o.Leaves {
		l := &s.o.Leaves[i]
		if l.Rule == nil || l.Rule.Label < writ.System || l.record == nil {
			continue
		}
		kind := comparedIn(l.Rule.Collection, l.Type)
		if kind == "" {
			continue
		}
		for _, t := range readings(l.Type, l.Value) {
			s.ids[l.record] = append(s.ids[l.record], identity{l.Rule, resource(kind, t)})
		}
	}
	return s.ids
}

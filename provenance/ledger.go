package provenance

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/money"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// ErrFull is returned by Prepare and Commit when a result would exceed the
// ledger's caps. The ledger is unchanged and stays usable.
var ErrFull = errors.New("the session's evidence is at its cap")

// Caps bounds a ledger. At a cap new evidence is refused, whole results at a
// time; nothing is ever forgotten. A zero cap means that of DefaultCaps.
type Caps struct {
	Leaves int   // leaves taken in
	Bytes  int64 // estimated memory
}

// NoCaps bounds nothing: of what was recorded, all that was taken in then has room.
var NoCaps = Caps{Leaves: math.MaxInt, Bytes: math.MaxInt64}

// DefaultCaps is what one session may hold unless the operator says otherwise.
var DefaultCaps = Caps{Leaves: 1_000_000, Bytes: 256 << 20}

// Ledger is the evidence of one session, indexed by value. Of results it holds
// keyed digests and places, not the values; of the user's turns the text. A session's events have one order (R23),
// which the caller keeps: Sent and Commit run alone, what only asks may run
// beside other questions. The same events in the same order give the same
// answers.
type Ledger struct {
	key       [32]byte `snapshot:"-"` // it stays in the log
	caps      Caps
	store     store
	taints    taints
	places    *Places              // that this session's own acts lowered
	made      keys                 // what acts sent (R24)
	looked    keys                 // those of dirs that Writ alone listed, since the user's latest turn (R36)
	dirs      entries              // directories whose names are all known, with one fact of each that was listed, plus 1, 0 for one that was made empty (R24, R36)
	ranks     map[rankKey][]ranked // of the last whole list of each kind (R9)
	denied    bool                 // a person said no since the user's latest turn
	lastOrder uint32               // evidence of the user's latest turn that does not only agree
	agreed    []turn               // the latest that only agree: what stands in them he said
	parts     []parted             // what the latest turn says of how members begin or end (R9)
	// narrowed are the days that narrowed a search which is whole for what it was for.
	narrowed map[uint32][]string
	lookups  map[string][]uint32 // members by the names that they were looked up by
	resting  map[uint32][][]Line // what its facts rest on that are resting
	since    bool                // an act was made since the user's latest turn
	ordered  string              // the name that an act since then has of what he ordered (R36)
	inside   map[uint32][]string // facts of what was made: Arg.In (R36)
	asked    map[uint32][]string // what results were asked for with, as Standing spells it (R37)
	acts     uint64              // acts that were made
	acted    uint32              // facts that were held when the latest act was made
	opened   map[string][]string // closed collections an act put in what it chose from an open one: the paths below which, nil for anything
	letIn    keys                // what it named it there, and what else acts may have named somebody
	minting  map[fieldOf]bool    // of external fields: whether the server can have given all that was seen there
	turns    []turn
	begun    map[string][]int     // turns by what their tokens begin with, and by their typed forms
	moments  map[moment][]Quote   // what they name (R10), of the latest that does
	hours    map[string]uint32    // the latest of them that names an hour of a day
	zones    map[int]bool         // in which they were typed
	typed    int                  // bytes of all turns, lapsed ones too
	spent    keys                 // one-time values that an act was accepted with (R19)
	issued   map[uint32]time.Time // when the evidence that holds such values was recorded
	secrets  bool                 // a leaf marked secret was delivered (R30)
	leaves   int
	events   uint64 // commits
}

// NewLedger returns an empty ledger. The key must be secret and the session's
// own: it keeps values of two sessions apart and digests unguessable.
func NewLedger(key [32]byte, caps Caps) *Ledger {
	l := &Ledger{
		key: key, store: newStore(), taints: newTaints(), places: NewPlaces(), made: keys{}, looked: keys{}, spent: keys{}, dirs: entries{}, issued: map[uint32]time.Time{},
		opened: map[string][]string{}, letIn: keys{}, minting: map[fieldOf]bool{}, ranks: map[rankKey][]ranked{}, narrowed: map[uint32][]string{}, inside: map[uint32][]string{}, asked: map[uint32][]string{}, lookups: map[string][]uint32{}, resting: map[uint32][][]Line{},
		moments: map[moment][]Quote{}, hours: map[string]uint32{}, begun: map[string][]int{}, zones: map[int]bool{},
	}
	l.Bound(caps)
	return l
}

// Bound sets the caps for what comes from here on; what was taken in stays.
func (l *Ledger) Bound(caps Caps) {
	if caps.Leaves <= 0 {
		caps.Leaves = DefaultCaps.Leaves
	}
	if caps.Bytes <= 0 {
		caps.Bytes = DefaultCaps.Bytes
	}
	l.caps = caps
}

// Used returns how much of its caps the ledger takes, in percent of the nearer one.
func (l *Ledger) Used() int {
	return int(100 * max(float64(l.leaves)/float64(l.caps.Leaves), float64(l.Bytes())/float64(l.caps.Bytes), float64(l.typed)/maxTurns))
}

// Secrets reports whether the session's agent was given something a contract marks
// as secret (R30).
func (l *Ledger) Secrets() bool { return l.secrets }

// Len returns how many leaves were taken in.
func (l *Ledger) Len() int { return l.leaves }

// Bytes returns the estimated memory the ledger holds.
func (l *Ledger) Bytes() int64 { return l.store.bytes + l.taints.bytes }

// Share reports whether so many leaves are at most a quarter of what a session may hold.
func (l *Ledger) Share(leaves int) bool { return leaves <= l.caps.Leaves/4 }

// Digest returns the keyed digest of a literal's canonical form under t, in
// hex: what a trace shows instead of the value. A value without a canonical
// form is digested as written.
func (l *Ledger) Digest(t Type, v strictjson.Value) string {
	k, ok := l.keyOf(t, v)
	if !ok {
		k = l.digest("\x00raw", string(v.Literal()))
	}
	return string(hex.AppendEncode(make([]byte, 0, 2*len(k)), k[:]))
}

// keyOf returns the key a value of declared type t is found under.
func (l *Ledger) keyOf(t Type, v strictjson.Value) (key, bool) {
	if t == Untyped {
		e, ok := exact(v)
		return l.digest("", e), ok
	}
	c, _, why := Canonical(t, v)
	return l.digest(string(t), c), why == ""
}

// Arg is one leaf (or object key) of a call's arguments as the gate judged it:
// what R4 and R5 need to know of it.
type Arg struct {
	Pointer string           // within the arguments
	Value   strictjson.Value // a key is given as a string
	Type    Type
	Label   writ.Label // of what vouches for it, Model when nothing does
	// Fixed marks a value the contract leaves no other for: it narrows a listing no
	// further than the operator did (R9).
	Fixed bool
	// Narrow marks a boolean, a member of a pinned enum or an integer of role
	// control: it lowers only what equals it (R4).
	Narrow bool
	// Vague marks a value that names no one thing: Vague says which.
	Vague bool
	// Makes marks what names a thing that the act newly makes: it fails where there is one.
	Makes bool
	// New marks what may name what is not there yet: all that the act makes is at that path or below it.
	New bool
	// Shows marks what names a thing that the read shows: it fails where there is none, or its result says so with
	// Missing right behind the name, unless that is empty.
	Shows   bool
	Missing string
	// In is, of what is newly made, what says in what that is (R36): each such place of the
	// arguments and what stands there, as Ledger.Standing spells it.
	In []string
	// Allowed marks what a person said yes to, for this call.
	Allowed bool
	// Fresh marks a name that the agent made up in a directory which did not have it, or
	// where the act fails if there is one (R36).
	Fresh bool
	// Ours marks a value of the very server that the call goes to, from a field of which
	// a person said that our own people alone write it: it leaves nothing there that they
	// did not (R38).
	Ours bool
	// Rests are, of what a person said yes to for this call, the lines under which it would
	// have needed no yes, and left nothing either: one of each (R38).
	Rests [][]Line
	// Decides marks a target, selector, amount or secret: a handle gets the
	// lowest label of these (R5).
	Decides bool
	// Names marks a target or selector: it names the place an act goes to and
	// the resource a read is about (R38). Collection is the one the contract
	// gives it, and Real are the paths the door found it to lead to.
	Names      bool
	Collection string
	Real       []string
}

// Observation is one result on its way into the ledger.
type Observation struct {
	Evidence     uint32
	Server, Tool string
	// Act says that the call was gated (anything but a plain read): R5 applies
	// to its result.
	Act bool
	// OK is false for an error, a refusal, a cut, unvalidated or unknown
	// result: it has no facts, whatever Leaves holds (R4, attacks P02 and P23).
	OK bool
	// Look says that Writ read it for itself, and showed it to nobody: it says which names a
	// directory has, so that a new one is known to be new (R36), and vouches for none of them.
	Look   bool
	Time   time.Time // when the result was recorded, from which one-time values count (R19)
	Args   []Arg
	Asked  strictjson.Value // the arguments as they were sent
	Leaves []Leaf
	// Places are those of the state as of number Through (R38), beside the ones
	// this session's own acts lowered; nil for none. Reaches reports whether what
	// that tool was sent can come back in a field of this result, nil for one no
	// rule names; without it those are all fields of its own server that are not
	// authoritative.
	Places  *Places
	Through uint64
	// OwnPlace is what Sent returned for this very call, and OwnThere the number
	// of the place it lowered among Places; 0 for none. They do not count for what
	// it answers: R5 does.
	OwnPlace, OwnThere uint64
	// Acts is what Acts returned when this call was made.
	Acts    uint64
	Reaches func(server, tool string, field *OutputRule) bool
	// Lifts reports whether the lines that are in force have a place that rests on some not
	// count: one of each is among them. Without it each counts.
	Lifts func(rests [][]Line) bool
}

// Pending is an observation judged but not yet part of the ledger. The gateway
// makes the result durable between Prepare and Commit.
type Pending struct {
	of     Observation
	facts  []judged
	events uint64
	taint  uint64
	news   map[Origin]bool
	rests  [][]Line // what stands resting rests on
	asked  []string // Ledger.asked of it
}

// judged is what R4 and R5 made of a leaf.
type judged struct {
	label writ.Label
	flags flags
	owner bool // its owner leaf is worth system or better (R28)
	// written says that no server can have given it: it came in by a call, or looks so.
	written bool
}

// Facts returns how many leaves Commit will take in.
func (p *Pending) Facts() int { return len(p.facts) }

// Prepare judges an observation and changes nothing. It returns ErrFull if the
// result would exceed a cap.
func (l *Ledger) Prepare(o Observation) (*Pending, error) {
	p := &Pending{of: o, events: l.events, taint: l.taints.changed, news: map[Origin]bool{}}
	if !o.OK || len(o.Leaves) == 0 {
		return p, nil
	}
	if !o.Look && slices.ContainsFunc(o.Leaves, func(f Leaf) bool { return f.Rule != nil }) {
		p.asked = l.askedOf(o.Asked)
	}
	if l.leaves+len(o.Leaves) > l.caps.Leaves || l.Bytes()+l.estimate(o.Leaves)+askedCost(p.asked) > l.caps.Bytes {
		return nil, ErrFull
	}
	c := callOf(o.Args)
	at := l.sight(&o)
	p.rests = at.rests
	p.facts = make([]judged, len(o.Leaves))
	for i := range o.Leaves {
		leaf := &o.Leaves[i]
		p.facts[i] = l.judge(&o, &c, leaf, &at)
		if j := &p.facts[i]; j.label < writ.System && (at.all[0].asked(leaf) || at.all[1].asked(leaf)) && leaf.isLink() {
			j.label = writ.Model
			j.flags = j.flags&^(intact|resting|minted|placed) | reflected
		}
	}
	for i := range o.Leaves {
		leaf, j := &o.Leaves[i], &p.facts[i]
		j.owner = leaf.ownerAt > 0 && p.facts[leaf.ownerAt-1].label >= writ.System
		if leaf.Rule != nil && j.label >= writ.System && !o.Act && !o.Look {
			p.tell(l, &o, leaf)
		}
	}
	return p, nil
}

// estimate is an upper bound of what a result adds to the store.
func (l *Ledger) estimate(leaves []Leaf) int64 {
	n := int64(0)
	fresh := map[string]bool{}
	steps := make(map[*step]bool, len(leaves))
	name := func(t string) {
		if _, isIndex := small(t); isIndex || fresh[t] {
			return
		}
		if _, ok := l.store.number[t]; !ok {
			fresh[t] = true
			n += int64(len(t)) + 72
		}
	}
	for i := range leaves {
		f := &leaves[i]
		n += f.cost()
		for at := f.at; at != nil && !steps[at]; at = at.parent {
			if at != f.at || f.Key || at.member { // a container, shared by what follows
				steps[at] = true
				n += 8
			}
			name(at.token)
		}
		if f.owner != "" {
			name(f.owner)
		}
	}
	return n
}

// cost is what a leaf adds at most, without its place and the names in it.
func (f *Leaf) cost() int64 {
	n := 36 + 80 + 40*int64(min(maxLinks, bytes.Count(f.Value.Raw(), []byte("."))))
	switch f.Type {
	case Path, Name:
		n += 80
	case Decimal:
		n += 120 // and what it rounds to
	}
	for _, in := range f.in {
		n += int64(len(in)) + insideCost
	}
	if f.Rule != nil && f.Rule.LookedUp != "" {
		n += longestName + lookupCost + 8
	}
	return n
}

// insideCost is what a place takes that says in what something was made, beside its bytes.
const insideCost = 64

// lookupCost is what a name takes by which something was looked up, beside its bytes.
const lookupCost = 96

// member reports whether a leaf's value is a committed fact of the leaf's own
// collection at system or better, and with none of the given marks.
func (l *Ledger) member(leaf *Leaf, but flags) bool {
	for _, t := range [...]Type{Untyped, leaf.Type} {
		k, _ := l.keyOf(t, leaf.Value)
		for _, i := range l.store.under(k) {
			f := l.store.at(i)
			m := &l.store.metas[f.meta]
			// A text nobody gave the type is filed under it only to contest (R25).
			if f.label >= writ.System && f.flags&but == 0 && m.collection == leaf.Rule.Collection && (t == Untyped || m.typ == t) {
				return true
			}
		}
	}
	return false
}

// judge gives a leaf its label: its rule's, lowered by R5 for the result of an
// act and by R4 for a read's.
func (l *Ledger) judge(o *Observation, c *call, leaf *Leaf, at *sight) judged {
	j := judging{judged{label: writ.External}, l, o, c, leaf, at}
	if leaf.Rule != nil {
		j.label = leaf.Rule.Label
	} else if leaf.beside {
		j.flags |= beside
	}
	if leaf.Rule == nil || leaf.Rule.Label <= writ.External {
		j.flags |= stranger
	}
	most, echo := l.reflection(leaf, j.known)
	if echo || c.saidIn(leaf) {
		j.flags |= echoed
	}
	j.flags |= l.standing(o, c, leaf)
	switch {
	case o.Act && leaf.inCollection():
		most = j.handle()
	case o.Act:
		// What an act answers besides a handle may repeat what it was given.
		if min(most, c.lowest, j.place()) < writ.External {
			j.flags |= reflected
		}
		most = writ.External
	case leaf.Rule != nil && leaf.Rule.Authoritative:
		return j.judged
	default:
		most = j.read(most)
	}
	if most < j.label {
		j.label = most
		if !leaf.made && (!o.Act || leaf.inCollection()) {
			j.flags |= reflected
		}
	}
	return j.judged
}

// judging is a leaf on its way to a label.
type judging struct {
	judged
	l    *Ledger
	o    *Observation
	c    *call
	leaf *Leaf
	at   *sight
}

// inCollection reports whether a leaf's rule says of what it is a member.
func (l *Leaf) inCollection() bool { return l.Rule != nil && l.Rule.Collection != "" }

// place is what the places that the leaf may come from leave of it.
func (j *judging) place() writ.Label { return lowest(j.at.unlifted, j.leaf) }

// known reports whether the leaf's value is known as what it is, at system or better.
func (j *judging) known() bool {
	if j.leaf.inCollection() {
		return j.l.member(j.leaf, 0)
	}
	return j.l.known(j.leaf)
}

// handle is the highest label for one that an act answers (R5). It is no handle but an
// echo where an act said it.
func (j *judging) handle() writ.Label {
	leaf := j.leaf
	most := min(j.c.decides, j.l.taints.inside(leaf, j.known), j.l.repeats(j.c, leaf))
	if !leaf.Rule.Creates { // it may be what another act put there (R38)
		return min(most, j.place())
	}
	if p, _, why := Canonical(Path, leaf.Value); leaf.Type == Path && why == "" && j.c.fresh[p] || leaf.made && most < writ.System {
		j.flags |= invented
	} else if len(leaf.in) > 0 { // there alone, whoever named it
		return writ.Model
	}
	return most
}

// read is the highest label for a leaf of a read's result, which may have as much as most under
// what calls before it sent (R4).
func (j *judging) read(most writ.Label) writ.Label {
	leaf, c := j.leaf, j.c
	sent := most
	if most = min(most, j.l.repeats(c, leaf)); c.pointed {
		most = min(most, c.lowest)
	}
	if len(c.narrow) > 0 {
		for _, e := range spellings(leaf.Type, leaf.Value) {
			if n, ok := c.narrow[e]; ok {
				most = min(most, n)
			}
		}
	}
	asked, whole := j.l.taints.askedFor(leaf)
	if whole {
		sent = min(sent, writ.External)
	}
	c.minting(leaf, most, sent, &j.judged)
	most = min(most, c.lowest)
	external := leaf.Rule.WholeExternal()
	if most >= writ.System && (external && !asked && j.flags&echoed == 0 || leaf.Rule != nil && leaf.Rule.Label >= writ.System) {
		j.flags |= j.at.leaves(leaf, external)
	}
	return min(most, j.place())
}

// leaves are the marks of a leaf that nothing but places can lower, whose rule calls it external
// or worth more.
func (at *sight) leaves(leaf *Leaf, external bool) (f flags) {
	if lowest(at.all, leaf) >= writ.System {
		if external {
			f = intact
		}
		return f
	}
	if lowest(at.firm, leaf) >= writ.System {
		f |= resting
	}
	if at.all[0].label(leaf) >= writ.System {
		f |= placed
	}
	return f
}

// WholeExternal reports whether a rule calls leaves external as they stand, or as they
// stand in a text that is JSON as a whole: no pieces of prose, no keys and no secrets.
func (r *OutputRule) WholeExternal() bool {
	return r != nil && r.Label == writ.External && !r.Secret && !r.Keys &&
		(!r.InText && r.Extract == NoExtract || r.InText && r.Extract == ExtractJSON)
}

// known reports whether a leaf's exact value is a committed fact at system or
// better.
func (l *Ledger) known(leaf *Leaf) bool {
	k, _ := l.keyOf(Untyped, leaf.Value) // of a value without a form nothing is filed
	return slices.ContainsFunc(l.store.under(k), func(i uint32) bool { return l.store.at(i).label >= writ.System })
}

// Commit folds a pending observation into the ledger. If other events came in
// between it is judged again first, so that the answer is that of the order of
// commits; then it may return ErrFull. A pending observation is committed once.
func (l *Ledger) Commit(p *Pending) error {
	if p.events != l.events || p.taint != l.taints.changed {
		again, err := l.Prepare(p.of)
		if err != nil {
			return err
		}
		*p = *again
	}
	l.events++
	if len(p.rests) > 0 {
		l.resting[p.of.Evidence] = p.rests
	}
	if len(p.asked) > 0 {
		l.asked[p.of.Evidence] = p.asked
		l.store.bytes += askedCost(p.asked)
	}
	known := make(map[*step]uint32, len(p.facts))
	for i, j := range p.facts {
		l.keep(&p.of, &p.of.Leaves[i], j, known)
	}
	l.enumerate(&p.of, p.facts)
	l.rank(&p.of, p.facts)
	l.part(&p.of, p.facts)
	l.leaves += len(p.facts)
	return nil
}

// otherSpellings returns the keys under which a text nobody declared a type for
// contests a typed value (R25): an address or account number in another
// spelling than its canonical one is the same all the same.
func (l *Ledger) otherSpellings(v strictjson.Value) (keys []key) {
	text, ok := v.Text()
	if !ok || len(text) > 254 {
		return nil
	}
	text = strings.TrimSpace(text)
	for _, t := range [...]Type{Email, IBAN, Phone} {
		if t == Email && !strings.Contains(text, "@") || t == IBAN && !ibanStart().MatchString(text) || t == Phone && !strings.HasPrefix(text, "+") {
			continue
		}
		if c, _, why := Canonical(t, strictjson.StringOf(text)); why == "" && c != text {
			keys = append(keys, l.digest(string(t), c))
		}
	}
	return keys
}

// metaOf is what a leaf shares with others of its rule.
func metaOf(o *Observation, leaf *Leaf) meta {
	m := meta{server: o.Server, tool: o.Tool, key: leaf.Key}
	if r := leaf.Rule; r != nil {
		m.rule, m.named = source(r), true
		m.typ, m.collection, m.secret, m.creates, m.calls, m.unique, m.lifetime = leaf.Type, r.Collection, r.Secret, r.Creates, r.Names, r.Unique, r.Lifetime
	}
	return m
}

// keep files one fact under its exact value, under its type, and, if it is a
// path or a name, under its last element (R13).
func (l *Ledger) keep(o *Observation, leaf *Leaf, j judged, known map[*step]uint32) {
	s := &l.store
	k, typed := l.keyOf(leaf.Type, leaf.Value)
	f := fact{
		evidence: o.Evidence, token: ownToken, meta: s.meta(metaOf(o, leaf)),
		label: j.label, flags: j.flags, mark: k.mark(),
	}
	if leaf.Key || leaf.at.member {
		f.node = s.place(leaf.at, known)
	} else {
		f.node, f.token = s.place(leaf.at.parent, known), s.placed(leaf.at)
	}
	if leaf.owner != "" && j.owner {
		f.owner = s.intern(leaf.owner) + 1
	}
	if f.flags&found != 0 {
		if days, _ := o.searched(leaf); len(days) > 0 {
			l.narrowed[o.Evidence] = days
		}
	}
	i := s.push(f)
	l.secrets = l.secrets || leaf.Rule != nil && leaf.Rule.Secret
	if o.Look { // what is not filed is found by nobody who asks for a value
		if c, _, why := Canonical(Path, leaf.Value); leaf.Type == Path && why == "" {
			s.file(l.digest(foldDomain, text.Fold(c, text.Careless)), i)
		}
		return
	}
	l.remember(o, leaf, j, i)
	if typed {
		s.file(k, i)
		if j.written || j.flags&minted != 0 {
			l.mints(&s.metas[f.meta], i, j, s.under(k))
		}
	}
	if !leaf.Key {
		l.fileText(leaf, j, i)
	}
	l.fileForms(leaf, i)
}

// fileText files what a leaf's text can be found by: its links, where no model can have written
// them, and its words in any letters.
func (l *Ledger) fileText(leaf *Leaf, j judged, i uint32) {
	said, _ := leaf.Value.Text()
	if j.label > writ.Model && j.flags&(echoed|reflected) == 0 {
		for _, link := range links(said) {
			if link != said {
				l.store.file(l.digest(linkDomain, link), i)
			}
		}
	}
	if name, own := inAnyCase(said); leaf.Rule != nil && (own > 1 || own == 1 && leaf.Rule.Names) {
		l.store.file(l.digest(casedDomain, name), i)
	}
}

// remember notes of a fact what is asked by other than its value: in what it was made, by which
// name it was looked up, and when it was issued.
func (l *Ledger) remember(o *Observation, leaf *Leaf, j judged, i uint32) {
	s := &l.store
	if len(leaf.in) > 0 && j.label == writ.Model { // a person's yes has a rule of its own
		l.inside[i] = leaf.in
		for _, in := range leaf.in {
			s.bytes += int64(len(in)) + insideCost
		}
	}
	if name, ok := o.lookedUp(leaf); ok {
		if _, is := l.lookups[name]; !is {
			name = strings.Clone(name)
			s.bytes += int64(len(name)) + lookupCost
		}
		l.lookups[name] = append(l.lookups[name], i)
		s.bytes += 8
	}
	if leaf.Rule != nil && leaf.Rule.Lifetime > 0 {
		l.issued[o.Evidence] = o.Time
	}
}

// fileForms files a leaf in its other forms than that of its type.
func (l *Ledger) fileForms(leaf *Leaf, i uint32) {
	s := &l.store
	if leaf.Type == Untyped {
		for _, k := range l.otherSpellings(leaf.Value) {
			s.file(k, i)
		}
		return
	}
	if k, ok := l.keyOf(Untyped, leaf.Value); ok {
		s.file(k, i)
	}
	c, _, _ := Canonical(leaf.Type, leaf.Value)
	switch leaf.Type {
	case Decimal:
		if leaf.Rule != nil {
			for _, r := range money.Rounded(c) {
				s.file(l.digest(roundDomain, r), i)
			}
		}
	case Name:
		s.file(l.digest(baseDomain, c), i)
	case Path:
		if _, base, ok := splitPath(c); ok {
			s.file(l.digest(baseDomain, base), i)
			s.file(l.digest(foldDomain, text.Fold(c, text.Careless)), i)
		}
	}
}

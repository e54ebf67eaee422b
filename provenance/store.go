package provenance

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// The store keeps facts small: a value is only its keyed digest, a pointer is
// a parent and a token, and what a rule says is kept once. Roughly 36 bytes a
// fact and 40 a key it is found under.

// key is a keyed digest: without the session's key nobody can aim at one.
type key [16]byte

// domain separates the digests of different questions. A declared type is its
// own domain; the others cannot be spelt in a policy.
const (
	baseDomain  = "\x00base"  // last elements of paths and single names
	taintDomain = "\x00taint" // folded texts of sent arguments
	foldDomain  = "\x00fold"  // paths in any letters' case (R36)
	linkDomain  = "\x00link"  // links that stand in a text (R20)
	roundDomain = "\x00round" // decimals that a decimal rounds to (R11)
	casedDomain = "\x00cased" // texts of several words in any letters' case (R9)
)

// exact returns the untyped form of a literal with its JSON kind before it.
func exact(v strictjson.Value) (string, bool) {
	c, _, why := Canonical(Untyped, v)
	return string(rune(v.Kind())) + c, why == ""
}

func (l *Ledger) digest(domain, text string) (k key) {
	var buf [256]byte
	b := append(append(append(append(buf[:0], l.key[:]...), domain...), 0), text...)
	sum := sha256.Sum256(b)
	copy(k[:], sum[:])
	return k
}

// fact is a Fact at rest.
type fact struct {
	evidence uint32
	node     uint32 // the container, of a key and of what stands at one that tells things apart the key's own
	token    uint32 // the last step, ownToken where the node is that
	meta     uint32
	owner    uint32 // string number + 1, 0 for none
	mark     uint32 // tells its value from others of its type (R9)
	label    writ.Label
	flags    flags
}

type flags uint16

const (
	reflected flags = 1 << iota
	echoed          // the model said it first (R20)
	beside          // outside structuredContent and named by no rule
	stranger        // its rule, if any, says external or less
	listed          // by a server that lists its own and was asked for nothing else (R9)
	alone           // what stands beside it was put there by a model (R9, R35)
	opened          // of a closed collection, and perhaps what an act chose from an open one (R28)
	intact          // external by its rule alone: see Fact.Intact
	minted          // and given by the server, as far as can be told: see Fact.Minted
	found           // by a search that shows every record of that name (R9)
	late            // seen after an act that followed the user's latest turn (R12)
	unread          // of a record that nobody but its owner reads (R14)
	resting         // worth more but for places that rest on lines: see Fact.Rests
	placed          // worth more but for places that another session lowered: see Query.Cleared
	invented        // what an act newly made under a name that the agent made up, or a person allowed (R13)
)

// meta is what many facts share.
type meta struct {
	server, tool, rule string
	typ                Type
	collection         string
	key, named         bool
	secret, creates    bool
	calls              bool          // people call the record so
	unique             bool          // no other record ever has it
	lifetime           time.Duration // of a one-time value (R19), else 0
}

// node is one step of a pointer; node 0 is the result object.
type node struct{ parent, token uint32 }

// A token is a string number, or with one of these bits an index, a line
// number, or the step from a text into the JSON found in it.
const (
	indexToken  uint32 = 1 << 30
	lineToken   uint32 = 2 << 30
	innerToken  uint32 = 3 << 30
	tokenKind   uint32 = 3 << 30
	memberToken uint32 = 1 << 29 // of a string: one of several things
	ownToken    uint32 = innerToken | 1
)

// several reports whether a token tells one of several things apart.
func several(token uint32) bool { return token&(tokenKind|memberToken) != 0 }

const block = 256

type store struct {
	index   map[key]uint32 // a fact, or with the high bit a list of them
	lists   [][]uint32
	facts   []*[block]fact
	n       uint32
	nodes   []node
	metas   []meta
	metaOf  map[meta]uint32
	strings []string
	number  map[string]uint32
	bytes   int64
}

const isList uint32 = 1 << 31

// These bound how many facts are kept for one value: of one kind, and of kinds
// that differ by owner alone. More of them vouch for nothing more, and a
// listing of a million equal values must not make a decision slow.
const (
	maxOrigins = 16
	maxList    = 1024
)

func newStore() store {
	return store{index: map[key]uint32{}, nodes: []node{{}}, metaOf: map[meta]uint32{}, number: map[string]uint32{}}
}

func (s *store) at(i uint32) *fact { return &s.facts[i/block][i%block] }

func (s *store) push(f fact) uint32 {
	if s.n%block == 0 {
		s.facts = append(s.facts, new([block]fact))
	}
	s.n++
	*s.at(s.n - 1) = f
	s.bytes += 36
	return s.n - 1
}

// file files fact i under a key. Of one kind (same rule, label, source and
// owner) the first origins are kept and the newest.
func (s *store) file(k key, i uint32) {
	old, ok := s.index[k]
	switch {
	case !ok:
		s.index[k] = i
		s.bytes += 40
		return
	case old&isList == 0:
		s.index[k] = uint32(len(s.lists)) | isList
		s.lists = append(s.lists, []uint32{old, i})
		s.bytes += 40
		return
	}
	list := s.lists[old&^isList]
	f := s.at(i)
	same, last := 0, 0
	for at, j := range list {
		g := s.at(j)
		if g.meta != f.meta || g.label != f.label || g.flags != f.flags {
			continue
		}
		if g.owner == f.owner {
			same++
			last = at
		} else if len(list) >= maxList {
			same, last = maxOrigins, at
		}
	}
	if same >= maxOrigins {
		list[last] = i
		return
	}
	s.lists[old&^isList] = append(list, i)
	s.bytes += 4
}

// crowded reports whether these facts of one value may not be all there were.
func (s *store) crowded(list []uint32) bool {
	if len(list) < maxOrigins || len(list) >= maxList {
		return len(list) >= maxList
	}
	kinds := map[fact]int{}
	for _, i := range list {
		f := s.at(i)
		k := fact{meta: f.meta, owner: f.owner, label: f.label, flags: f.flags}
		if kinds[k]++; kinds[k] >= maxOrigins {
			return true
		}
	}
	return false
}

// under returns the facts of a key, earliest first. The answer is only valid
// until the next post.
func (s *store) under(k key) []uint32 {
	i, ok := s.index[k]
	switch {
	case !ok:
		return nil
	case i&isList != 0:
		return s.lists[i&^isList]
	}
	return []uint32{i}
}

func (s *store) intern(text string) uint32 {
	n, ok := s.number[text]
	if !ok {
		n = uint32(len(s.strings))
		text = strings.Clone(text) // not a piece of the result, which would be kept alive
		s.strings = append(s.strings, text)
		s.number[text] = n
		s.bytes += int64(len(text)) + 72
	}
	return n
}

func (s *store) meta(m meta) uint32 {
	n, ok := s.metaOf[m]
	if !ok {
		n = uint32(len(s.metas))
		s.metas = append(s.metas, m)
		s.metaOf[m] = n
		s.bytes += 256
	}
	return n
}

// small returns the number a token spells, if it spells one a pointer can hold.
func small(t string) (uint32, bool) {
	if !digits(t) || len(t) > 9 || len(t) > 1 && t[0] == '0' {
		return 0, false
	}
	n, _ := strconv.ParseUint(t, 10, 32)
	return uint32(n), true
}

func (s *store) token(t string) uint32 {
	if n, ok := small(t); ok {
		return n | indexToken
	}
	return s.intern(t)
}

// placed returns the number a step has among the tokens.
func (s *store) placed(at *step) uint32 {
	switch {
	case at.line > 0:
		return lineToken | uint32(at.line)
	case at.inner:
		return innerToken
	}
	n := s.token(at.token)
	if at.member && n&tokenKind == 0 {
		n |= memberToken
	}
	return n
}

// place returns the node of a container. known remembers those of one result,
// whose leaves share them.
func (s *store) place(at *step, known map[*step]uint32) uint32 {
	if at == nil {
		return 0
	}
	n, ok := known[at]
	if !ok {
		parent := s.place(at.parent, known)
		s.nodes = append(s.nodes, node{parent, s.placed(at)})
		s.bytes += 8
		n = uint32(len(s.nodes) - 1)
		known[at] = n
	}
	return n
}

// pointer rebuilds where a fact stands.
func (s *store) pointer(f *fact) (outer []string, line int, inner []string, hasInner bool) {
	var back []uint32
	if f.token != ownToken {
		back = append(back, f.token)
	}
	for n := f.node; n != 0; n = s.nodes[n].parent {
		back = append(back, s.nodes[n].token)
	}
	to := &outer
	for i := len(back) - 1; i >= 0; i-- {
		switch t := back[i]; t & tokenKind {
		case indexToken:
			*to = append(*to, strconv.Itoa(int(t&^tokenKind)))
		case lineToken:
			line = int(t &^ tokenKind)
		case innerToken:
			to, hasInner = &inner, true
		default:
			*to = append(*to, s.strings[t&^memberToken])
		}
	}
	return outer, line, inner, hasInner
}

// fact restores a Fact.
func (s *store) fact(i uint32) Fact {
	f := s.at(i)
	m := s.metas[f.meta]
	outer, line, inner, hasInner := s.pointer(f)
	out := Fact{
		Evidence: f.evidence, Server: m.server, Tool: m.tool, Rule: m.rule,
		Pointer: strictjson.Pointer(outer), Line: line,
		Label: f.label, Reflected: f.flags&reflected != 0, Intact: f.flags&intact != 0, Minted: f.flags&minted != 0,
		Type: m.typ, Collection: m.collection, Key: m.key, Secret: m.secret, Creates: m.creates, OneTime: m.lifetime > 0,
	}
	if hasInner {
		out.Inner = strictjson.Pointer(inner)
	}
	if f.owner > 0 {
		out.Owner = s.strings[f.owner-1]
	}
	return out
}

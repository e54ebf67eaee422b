package provenance

import (
	"maps"
	"path"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// What R24 asks of a ledger: what is news, and which refusals tell none.

// Origin is what leaves have in common that an argument may be taken from.
type Origin struct {
	Server, Tool, Collection string
	Type                     Type
}

// News returns where the observation brought values that this session had not
// seen, and that none of its acts sent or was answered (R24). After Commit it is
// what the commit found, in no order.
func (p *Pending) News() []Origin { return slices.Collect(maps.Keys(p.news)) }

// keys is a set of them.
type keys map[key]bool

func (s keys) add(k key, l *Ledger) {
	if !s[k] {
		s[k] = true
		l.store.bytes += 40
	}
}

// keysOf returns the keys a value of a type is found under.
func (l *Ledger) keysOf(t Type, v strictjson.Value) (out []key) {
	for _, of := range [...]Type{Untyped, t} {
		if k, ok := l.keyOf(of, v); ok {
			out = append(out, k)
		}
	}
	return out
}

// tell notes a leaf that may vouch, if its value is news.
func (p *Pending) tell(l *Ledger, o *Observation, leaf *Leaf) {
	at := Origin{o.Server, o.Tool, leaf.Rule.Collection, leaf.Type}
	if p.news[at] {
		return // one is enough
	}
	for _, k := range l.keysOf(leaf.Type, leaf.Value) {
		if l.made[k] || len(l.store.under(k)) > 0 {
			return
		}
	}
	if c, _, why := Canonical(Path, leaf.Value); leaf.Type == Path && why == "" {
		// A file an act made may have been told by its name alone.
		if k, _ := l.keyOf(Untyped, strictjson.StringOf(path.Base(c))); l.made[k] {
			return
		}
	}
	p.news[at] = true
}

// Acts returns how many acts were made: what a call shows may be how it was before those
// that were made since (Observation.Acts).
func (l *Ledger) Acts() uint64 { return l.acts }

// stale reports whether what an observation shows may be how it was before an act that
// followed the user's latest turn, or that was made while it was under way.
func (l *Ledger) stale(o *Observation) bool { return l.since || o.Acts != l.acts }

// Made remembers what an act sends: a listing that shows it again is no news. What is
// listed after it ranks nothing until the user speaks again (R9). A directory that it is
// about may hold other things from then on, and is listed no more (R36).
func (l *Ledger) Made(args []Arg) {
	l.since, l.acted = true, l.store.n
	l.acts++
	for _, a := range args {
		for _, k := range l.keysOf(a.Type, a.Value) {
			l.made.add(k, l)
		}
		if name, _ := a.Value.Text(); a.Makes && len(a.In) > 0 {
			l.ordered = name
		}
		if c, _, why := Canonical(Path, a.Value); a.Names && why == "" {
			delete(l.dirs, l.digest(dirDomain, c))
		}
	}
	l.taints.changed++ // what was prepared before is judged again
}

// enumerate remembers the directories an observation listed whole: a server's own
// list of single names, in which nobody chose anything but the directory, and no act was
// made meanwhile. One that an act newly made which was told of nothing else, to be put there,
// was empty: it is as good as listed (R36). Its facts were just kept.
func (l *Ledger) enumerate(o *Observation, facts []judged) {
	last, named := "", 0
	for i := range o.Args {
		if o.Args[i].Names {
			named++
		}
	}
	first := l.store.n - uint32(len(facts))
	for i := range facts {
		leaf := &o.Leaves[i]
		r := leaf.Rule
		if named == 1 && leaf.Type == Path && (facts[i].flags&invented != 0 || leaf.made) {
			c, _, _ := Canonical(Path, leaf.Value)
			l.lists(o, c, 0)
		}
		if o.Act || o.Acts != l.acts || r == nil || !r.HasJoin || !r.Authoritative {
			continue
		}
		c, _, why := Canonical(Path, leaf.Value)
		dir, _, ok := splitPath(c)
		if why != "" || !ok || dir == last {
			continue
		}
		last = dir
		if o.askedAll(r, dir) {
			l.lists(o, dir, first+uint32(i)+1)
		}
	}
}

// lists remembers that a directory was listed whole, with a fact that was, plus 1. The agent's own
// list is worth more than one that Writ alone has seen.
func (l *Ledger) lists(o *Observation, dir string, entry uint32) {
	k := l.digest(dirDomain, dir)
	_, is := l.dirs[k]
	if o.Look && is && !l.looked[k] {
		return
	}
	if !is {
		l.store.bytes += 44
	}
	if l.dirs[k] = entry; o.Look {
		l.looked.add(k, l)
	} else {
		delete(l.looked, k)
	}
}

// askedAll reports whether nothing but a directory was asked for, or what a rule's tree is below.
func (o *Observation) askedAll(r *OutputRule, dir string) bool {
	return !slices.ContainsFunc(o.Args, func(a Arg) bool {
		at, _, _ := Canonical(Path, a.Value)
		above := r.Extract == ExtractTree && a.Pointer == strictjson.Pointer(r.Join) && at != "" && strings.HasPrefix(dir, strings.TrimSuffix(at, "/")+"/")
		return !a.Fixed && !empty(a.Value) && at != dir && !above
	})
}

// Listed returns one of the names of a directory that was listed whole, of what the query
// accepts: it is there, as is what is in it, and a list of what is above it would have said so.
func (l *Ledger) Listed(q Query) (Fact, bool) {
	c, _, why := Canonical(Path, q.Value)
	i := l.dirs[l.digest(dirDomain, c)]
	if why != "" || i == 0 || q.Collection == "" {
		return Fact{}, false
	}
	f := l.store.at(i - 1)
	m := &l.store.metas[f.meta]
	if f.label < writ.System || m.lifetime > 0 || m.collection != q.Collection || q.Closed == nil || !q.Closed(q.Collection) {
		return Fact{}, false
	}
	return l.store.fact(i - 1), true
}

// entries are facts by keys, plus 1.
type entries map[key]uint32

// dirDomain is that of directories listed whole.
const dirDomain = "\x00dir"

// Enumerated reports whether a path stands directly in a directory that was
// listed whole in this session: whether it was listed there is no news.
func (l *Ledger) Enumerated(v strictjson.Value) bool {
	c, _, why := Canonical(Path, v)
	dir, _, ok := splitPath(c)
	_, listed := l.dirs[l.digest(dirDomain, dir)]
	return why == "" && ok && listed
}

package memory

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/writ-project/writ/memory"
)

// Names is how many people and companies M4 makes of each seed, Mentions how
// often each is named after it was introduced.
const (
	Names    = 120
	Mentions = 6
)

// percentNamesakes is how many of them have the very name of another one.
const percentNamesakes = 4

// Linking is M4.
type Linking struct {
	// Names are all that were introduced, Namesakes those with the name of
	// another.
	Names     int `json:"names"`
	Namesakes int `json:"namesakes"`
	// Links are all that were made. FalseMerge are those to somebody else.
	Links      int   `json:"links"`
	FalseMerge Share `json:"false_merge"`
	// OfNamesakes are the wrong links between two who have the very same name,
	// which no rule on names can tell apart.
	OfNamesakes int `json:"false_merge_of_namesakes"`
	// Matches are the mentions of somebody who was known. Unlinked are those that
	// were left so; Suggested are those of them for whom the right one stands
	// among what it may be the same as.
	Matches   int   `json:"true_matches"`
	Unlinked  Share `json:"unlinked"`
	Suggested Share `json:"suggested"`
	Refused   int   `json:"refused_proposals"`

	Kinds []LinkKind `json:"kinds"`
}

// LinkKind counts the mentions of one kind.
type LinkKind struct {
	Kind      string `json:"kind"`
	Mentions  int    `json:"mentions"`
	Right     int    `json:"linked_right"`
	Wrong     int    `json:"linked_wrong"`
	Unlinked  int    `json:"unlinked"`
	Suggested int    `json:"suggested"`
}

// spelling is a way to name somebody who is known.
type spelling struct {
	kind string
	of   func(d *draw, name string) string
}

// The spellings. "another" introduces somebody new and is in no list.
var spellings = []spelling{
	{"exact", func(_ *draw, n string) string { return n }},
	{"case", func(d *draw, n string) string {
		if d.in(50) {
			return strings.ToUpper(n)
		}
		return strings.ToLower(n)
	}},
	{"punctuation", func(d *draw, n string) string {
		return pick(d, []string{strings.ReplaceAll(n, " ", "-"), strings.ReplaceAll(n, " ", "  "), n + ".", "“" + n + "”", strings.ReplaceAll(n, " ", "_")})
	}},
	{"composed marks", func(_ *draw, n string) string { return norm.NFD.String(n) }},
	{"without marks", func(_ *draw, n string) string { return unmarked(n) }},
	{"initials", func(_ *draw, n string) string {
		first, rest, _ := strings.Cut(n, " ")
		return string([]rune(first)[:1]) + ". " + rest
	}},
	{"last name first", func(_ *draw, n string) string {
		first, rest, _ := strings.Cut(n, " ")
		return rest + ", " + first
	}},
	{"typing error", typingError},
	{"known alias", nil},
	{"shared alias", nil},
}

func unmarked(n string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0x300 && r < 0x370:
			return -1
		case r == 'ø':
			return 'o'
		}
		return r
	}, norm.NFD.String(n))
}

// typingError drops, doubles or swaps one letter inside of a name.
func typingError(d *draw, n string) string {
	rs := []rune(n)
	for {
		i := 1 + d.n(len(rs)-2)
		if rs[i] == ' ' || rs[i+1] == ' ' || rs[i] == rs[i+1] {
			continue
		}
		switch d.n(3) {
		case 0:
			return string(slices.Delete(rs, i, i+1))
		case 1:
			return string(slices.Insert(rs, i, rs[i]))
		}
		rs[i], rs[i+1] = rs[i+1], rs[i]
		return string(rs)
	}
}

var (
	markedFirst = strings.Fields("Zoë Jürgen Søren André Noël Íris Béla Åsa")
	markedLast  = strings.Fields("Håkansson Müller Brontë García Novák Þorsson Lefèvre Ørsted")
	nicknames   = strings.Fields("Sam Alex Chris Robin Max Kim Jo Charlie Nik Toni")
)

// somebody is who a name is of.
type somebody struct {
	name, kind, alias string
	entity            string
	namesake          bool
}

// link introduces people and companies of each seed, each with an alias some of
// them share, and then names them again in one spelling or another.
func link(m *Memory, p *memory.Policy, seeds ...uint64) *Linking {
	out := &Linking{Kinds: []LinkKind{{Kind: "introduced"}, {Kind: "namesake introduced"}}}
	for _, s := range spellings {
		out.Kinds = append(out.Kinds, LinkKind{Kind: s.kind})
	}
	for _, seed := range seeds {
		out.link(m, p, seed)
	}
	out.FalseMerge, out.Suggested = share(out.FalseMerge.Count, out.Links), share(out.Suggested.Count, out.Unlinked.Count)
	out.Unlinked = share(out.Unlinked.Count, out.Matches)
	return out
}

func (out *Linking) link(m *Memory, p *memory.Policy, seed uint64) {
	d := newDraw(seed, "names")
	g := newBelieving(m, p, false, newChain(seed, 0, false))
	count := func(kind string) *LinkKind {
		return &out.Kinds[slices.IndexFunc(out.Kinds, func(k LinkKind) bool { return k.Kind == kind })]
	}
	at := beginning
	mention := func(name, kind string, aliases []string) (created, to string, near []string) {
		at = at.Add(2 * time.Minute)
		g.session++ // each in a task of its own: an agent makes no more than it may
		text := "Note on " + name + ", received at the desk."
		if len(aliases) > 0 {
			text += " Also known as " + aliases[0] + "."
		}
		id := g.record(said{by: pick(d, tools), text: text, at: at}, "")
		if id == "" {
			out.Refused++
			return "", "", nil
		}
		payload := map[string]any{"name": name, "entity_type": kind, "observation_ids": []string{id}}
		if len(aliases) > 0 {
			payload["aliases"] = aliases
		}
		if !g.step(proposes, memory.ToolEntity, "somebody", voice{}, at, payload) {
			out.Refused++
			return "", "", nil
		}
		for _, e := range g.results["somebody"].Effects {
			switch e.Effect {
			case "entity.created":
				created = e.ID
			case "entity.linked_existing":
				to = e.ID
			case "entity.possible_same_as":
				near = append(near, e.ID)
			}
		}
		return created, to, near
	}

	var known []*somebody
	// by is who each entity is of. A namesake that was linked has the other's.
	by := map[string]*somebody{}
	taken := map[string]bool{}
	for i := range Names {
		s := &somebody{kind: "person"}
		switch {
		case len(known) > 0 && d.in(percentNamesakes):
			other := pick(d, known)
			s.name, s.kind, s.namesake = other.name, other.kind, true
		case d.in(35):
			s.kind = "company"
			for s.name == "" || taken[s.name] {
				s.name = companyValue(d).text
			}
		default:
			for s.name == "" || taken[s.name] {
				s.name = personName(d)
				if d.in(25) {
					s.name = pick(d, markedFirst) + " " + pick(d, markedLast)
				}
			}
		}
		taken[s.name] = true
		s.alias = pick(d, nicknames)
		if d.in(60) {
			s.alias += " " + strconv.Itoa(100+i) // nobody else's
		}
		created, to, near := mention(s.name, s.kind, []string{s.alias})
		k := count("introduced")
		if s.namesake {
			out.Namesakes++
			k = count("namesake introduced")
		}
		k.Mentions++
		switch {
		case created != "":
			s.entity, by[created] = created, s
			k.Unlinked++
			if len(near) > 0 {
				k.Suggested++
			}
		case to != "":
			out.Links++
			out.FalseMerge.Count++
			k.Wrong++
			if by[to] != nil && by[to].name == s.name {
				out.OfNamesakes++
			}
		}
		known = append(known, s)
	}
	out.Names += len(known)
	for range Mentions * Names {
		s := pick(d, known)
		sp := pick(d, spellings)
		name := s.alias
		switch {
		case sp.of != nil:
			name = sp.of(d, s.name)
			if name == s.name && sp.kind != "exact" {
				sp = spellings[0] // nothing to change in it
			}
		case strings.Contains(s.alias, " "):
			sp.kind = "known alias"
		default:
			sp.kind = "shared alias"
		}
		created, to, near := mention(name, s.kind, nil)
		k := count(sp.kind)
		k.Mentions++
		out.Matches++
		switch {
		case to != "":
			out.Links++
			if by[to] == s {
				k.Right++
			} else {
				k.Wrong++
				out.FalseMerge.Count++
				if by[to] != nil && by[to].name == s.name {
					out.OfNamesakes++
				}
			}
		default:
			k.Unlinked++
			out.Unlinked.Count++
			if s.entity != "" && slices.Contains(near, s.entity) {
				k.Suggested++
				out.Suggested.Count++
			}
			if created != "" {
				by[created] = s
			}
		}
	}
}

package memory

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/words"
)

// Ask is what somebody wants to recall.
type Ask struct {
	Query string
	// About narrows to what is about somebody or something, as About reads it; or
	// Entity does, by its id.
	About, Entity string
	// All also gives what is held back by itself, marked.
	All bool
	// Near are ids of observations, those nearest to the query in meaning first. They
	// rank and bring what the words did not find: they vouch for nothing.
	Near []string
	// Limit is how many items, 1 to 50; 0 is 10. Bytes bounds the answer; 0 is
	// maxAnswer.
	Limit, Bytes int
}

// maxAnswer is how many bytes ten items come to at most.
const maxAnswer = 3000

// Item is one quote that is recalled: what the user, a tool or the agent said, in
// the words it was said in.
type Item struct {
	ID    string `json:"id"`
	Trust Status `json:"trust"`
	// Text is the quote. Of a long one the sentence is shown that bears the value
	// out, or that was found, whole, with what stands beside it.
	Text string `json:"text"`
	From string `json:"from"`
	On   string `json:"on"` // the day it was recorded
	// About and Value are of the claim that the quote bears out, if it does.
	About string `json:"about,omitempty"`
	Value string `json:"value,omitempty"`
	// Note says what else there is to it.
	Note string `json:"note,omitempty"`
	// FoundBy is meaning where none of the words asked for led here.
	FoundBy string `json:"found_by,omitempty"`

	// Observation is the quote's.
	Observation string `json:"-"`
	// Quote and Answers say what text and value vouch for (R35).
	Quote   Recalled `json:"-"`
	Answers Recalled `json:"-"`

	after  string // the claim behind which it is shown
	rank   int    // of who says it: established, the agent's, then what others say
	fit    []int  // how well what it is an answer to was found
	upheld string // what an operator upheld
	shows  *excerpt
}

// Answers is what a recall gives.
type Answers struct {
	Notice string `json:"notice"`
	// Note says where something else was looked for than was asked.
	Note  string `json:"note,omitempty"`
	Items []Item `json:"items"`
	// HeldBack counts what was found and is not given by itself, by why.
	HeldBack []Withheld `json:"held_back,omitempty"`
	// More says in one line what gives more.
	More       string     `json:"more,omitempty"`
	Abstention Abstention `json:"abstention,omitempty"`
}

// Withheld counts what was found and not returned, by the reason.
type Withheld struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// The kinds of texts in the index: trust filters by them, words rank within.
const (
	kindEstablished = "established"
	kindReported    = "reported"
	kindOwn         = "own"     // the agent's, before its session saw anybody else's words
	kindExposed     = "exposed" // the agent's, after that
	kindClaim       = "claim"
)

// quoteKinds are those of quotes, in the order in which they are given.
var quoteKinds = []string{kindEstablished, kindOwn, kindReported, kindExposed}

// kindOf is the kind of a quote, by who says it.
func kindOf(o *Observation) string {
	switch {
	case o.Level >= 2:
		return kindEstablished
	case o.Level == 1:
		return kindReported
	case o.Exposed:
		return kindExposed
	}
	return kindOwn
}

// mostHits is how many texts of each kind a search looks at, mostBrought how many
// quotes come by the words of a claim on them beside those found by their own.
const (
	mostHits    = 400
	mostBrought = 5
)

// NearestOf is how many of each kind count as near, mostNear how many quotes come by
// nearness alone: something is always the nearest, whatever was asked.
const (
	NearestOf = 50
	mostNear  = 5
	byMeaning = "meaning"
)

// Recall finds quotes by their words and gives the established first, then the
// agent's own notes from before its session held anything of others. What is only
// reported, what the agent wrote after that, and what another's agent wrote come on
// request, and are counted. Words rank: nothing else puts one quote before
// another, but for the newer of two that are equally found. A claim brings its
// quote by its own words, beside and not instead of what is found by theirs. What
// the user or a trusted tool said is given where its words are found also if
// something took its place: behind that, and marked. What is near ranks with the words,
// within its kind and behind the same gate.
func (r *Reader) Recall(a Ask) Answers {
	g := &recalling{r: r, t: r.upTo(), ask: a}
	g.narrow()
	g.find()
	out := g.answer()
	if g.small && len(g.items) > 0 && !g.narrowed {
		out.Note = "of what was asked only small words were found"
	}
	if len(g.items) == 0 && g.asked != "" {
		subject, _, himself := About(a.About)
		if himself {
			subject = "me"
		}
		a.About = subject
		if wide := r.Recall(a); len(wide.Items) > 0 {
			wide.Note = "nothing found answers " + shown(g.predicate, 64) + ": this is about the same, whatever it answers"
			return wide
		}
	}
	return out
}

// find takes in what is found, in its order.
func (g *recalling) find() {
	g.at, g.over, g.same, g.held, g.old = map[string]bool{}, map[string]bool{}, map[string]int{}, map[string]int{}, map[string]int{}
	g.limit, g.words = g.ask.Limit, words.Content(g.ask.Query)
	more := 0 // what comes beside what is found
	if g.limit <= 0 || g.limit > 50 {
		g.limit, more = 10, mostBrought
	}
	hits, beside, full := g.search(g.ask.Query)
	if full && len(g.names) > 0 {
		// Of many that have the words those that name it come first.
		hits, beside, _ = g.search(g.ask.Query + " " + strings.Join(g.names, " "))
	}
	if len(g.ask.Near) > 0 {
		near := map[bool][]string{}
		for _, id := range g.ask.Near {
			is := g.r.State.besides(id)
			near[is] = append(near[is], id)
		}
		g.r.State.fuse(hits, near[false])
		g.r.State.fuse(beside, near[true])
	}
	g.take(hits, beside, more)
	if !g.narrowed || len(g.items) >= g.limit {
		return
	}
	// What is about it and was not found comes behind.
	hits, beside, _ = g.search(strings.Join(g.names, " "))
	g.byName = true
	beside[kindClaim] = nil
	for _, id := range slices.SortedFunc(maps.Keys(g.about), func(a, b string) int { return compareID(b, a) }) {
		beside[kindClaim] = append(beside[kindClaim], words.Hit{ID: id, Kind: kindClaim})
	}
	g.take(hits, beside, 0)
}

// search asks the indexes, for quotes and for what stands beside them; full says that there
// may be more of a kind.
func (g *recalling) search(query string) (hits, beside map[string][]words.Hit, full bool) {
	quotes, others, small := g.r.State.found(query, append(slices.Clone(quoteKinds), kindClaim), mostHits)
	g.small = g.small || small
	byKind := func(found []words.Hit) map[string][]words.Hit {
		to := map[string][]words.Hit{}
		for _, h := range found {
			to[h.Kind] = append(to[h.Kind], h)
			full = full || len(to[h.Kind]) == mostHits
		}
		for _, hs := range to {
			// Of ids of one kind the longer is the newer.
			slices.SortStableFunc(hs, func(a, b words.Hit) int {
				return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(len(b.ID), len(a.ID)), strings.Compare(b.ID, a.ID))
			})
		}
		return to
	}
	hits, beside = byKind(quotes), byKind(others)
	return hits, beside, full
}

// take takes in what was found, by kinds: quotes, then more of what is beside them.
func (g *recalling) take(hits, beside map[string][]words.Hit, more int) {
	g.more, g.brought = more, 0
	order := quoteKinds
	if !g.ask.All {
		order = order[:2] // established, and the agent's own
	}
	for _, kind := range order {
		for _, h := range hits[kind] {
			g.give(h, g.limit)
		}
		for _, h := range beside[kind] {
			n, room := len(g.items), g.limit
			if g.brought < more {
				room += more
			}
			if g.give(h, room); len(g.items) > max(n, g.limit) {
				g.brought++
			}
		}
		if kind == kindEstablished || kind == kindOwn {
			g.bring(beside[kindClaim], kind == kindEstablished)
		}
	}
	for _, id := range g.later {
		g.at[id] = false
		g.quote(id, g.limit, true)
	}
	g.later = nil
	if g.ask.All {
		return
	}
	for _, of := range []map[string][]words.Hit{hits, beside} {
		g.count("reported", of[kindReported])
		g.count("unverified_after_others_spoke", of[kindExposed])
		g.count("another_agents_note", of[kindOwn])
	}
}

// give takes in a quote that was found by its words, or by nearness alone.
func (g *recalling) give(h words.Hit, limit int) {
	if h.Score > 0 {
		g.quote(h.ID, limit, !g.byName)
	} else {
		g.nearby(h.ID, limit)
	}
}

// bring brings the quotes of claims: of those that somebody who counts said, or of the others.
func (g *recalling) bring(claims []words.Hit, said bool) {
	for _, h := range claims {
		if is := g.r.State.standing(h.ID, g.t).Level >= 2; is == said && (g.brought < g.more || len(g.items) < g.limit) && g.claim(h.ID, g.limit+g.more) {
			g.brought++
		}
	}
}

// recalling is one recall.
type recalling struct {
	r        *Reader
	t        upTo
	ask      Ask
	limit    int
	words    []string // of the query, those that say something
	narrowed bool
	about    map[string]bool // claims about what is asked for
	names    []string        // of that, in the form in which names are equal
	// asked is the key of the predicate asked for, which is worded so.
	asked, predicate string
	byName           bool // what is found is so by the name of what is asked for
	items            []Item
	at               map[string]bool // observations that were considered
	over             map[string]bool // replaced ones that a claim led to
	same             map[string]int  // texts that are given, and where
	old              map[string]int  // how many are given that a claim took the place of
	later            []string        // quotes that are given where there is room
	held             map[string]int
	near             int  // quotes that came by nearness alone
	small            bool // only function words found
	more, brought    int  // how many may come beside what is found, and do
}

// narrow reads what the asker wants to know about.
func (g *recalling) narrow() {
	s := g.r.State
	var entities []string
	subject, predicate, himself := About(g.ask.About)
	switch {
	case g.ask.Entity != "":
		entities = []string{s.resolve(g.ask.Entity)}
	case himself:
		entities = []string{s.Person(g.r.Principal)} // "" is no entity, and nothing is about it
	case subject != "":
		g.names = append(g.names, normName(subject))
		for _, id := range s.ix.named.of(normName(subject)) {
			entities = addOnce(entities, s.resolve(id))
		}
	default:
		return
	}
	g.narrowed, g.about = true, map[string]bool{}
	if predicate != "" {
		g.asked, g.predicate = s.declared(predicate), strings.ReplaceAll(predicate, "_", " ")
	}
	for _, en := range entities {
		for _, id := range append([]string{en}, s.ix.mergedFrom.of(en)...) {
			if e := s.entities.get(id); e != nil && !e.Names[0].Gone && e.Type != selfType {
				g.names = append(g.names, normName(e.Names[0].Text))
			}
			for _, p := range s.ix.about.of(id) {
				if g.asked == "" || s.declared(s.propositions.get(p).Predicate) == g.asked {
					g.about[p] = true
				}
			}
		}
	}
}

// wanted reports whether a quote is about what is asked for: a claim on it is, or
// where no one question is asked it names it.
func (g *recalling) wanted(o *Observation) bool {
	if !g.narrowed {
		return true
	}
	if slices.ContainsFunc(g.r.State.claimsOn(o.ID), func(p string) bool { return g.about[p] }) {
		return true
	}
	if g.asked != "" {
		return false
	}
	n := " " + normName(o.Raw) + " "
	return slices.ContainsFunc(g.names, func(name string) bool { return strings.Contains(n, " "+name+" ") })
}

// count counts what was found and not given.
func (g *recalling) count(reason string, hits []words.Hit) {
	for _, h := range hits {
		if o := g.r.State.observations.get(h.ID); h.Score > 0 && o != nil && !g.at[h.ID] && g.t.has(h.ID) && g.wanted(o) {
			g.at[h.ID] = true
			g.held[reason]++
		}
	}
}

// fuse puts what is near among what the words found, each kind by itself, in the order
// of the sums of reciprocal ranks (Cormack, Clarke and Büttcher 2009): a text stands
// before another only by being found well among its own kind. Of equals the words
// come first. What is near alone has no score.
func (s *State) fuse(hits map[string][]words.Hit, near []string) {
	const k = 60
	nearest, at := map[string]int{}, map[string]float64{}
	for _, kind := range quoteKinds {
		for i, h := range hits[kind] {
			at[h.ID] = 1 / float64(k+1+i)
		}
	}
	seen := map[string]bool{}
	for _, id := range near {
		kind, _ := s.Text(id)
		if seen[id] || nearest[kind] == NearestOf || !slices.Contains(quoteKinds, kind) {
			continue
		}
		if at[id] == 0 {
			hits[kind] = append(hits[kind], words.Hit{ID: id, Kind: kind})
		}
		seen[id] = true
		nearest[kind]++
		at[id] += 1 / float64(k+nearest[kind])
	}
	for _, kind := range quoteKinds {
		slices.SortStableFunc(hits[kind], func(a, b words.Hit) int { return cmp.Compare(at[b.ID], at[a.ID]) })
	}
}

// nearby takes in what nothing but nearness found, where there is room. What is held
// back of that is not counted: it would be so of every query.
func (g *recalling) nearby(id string, limit int) {
	if g.at[id] || g.near == mostNear || len(g.items) >= limit {
		return
	}
	n, held, over := len(g.items), maps.Clone(g.held), g.over[id]
	g.quote(id, limit, false)
	if g.held, g.over[id] = held, over; len(g.items) == n {
		delete(g.at, id) // a claim may lead here by its words
		return
	}
	g.items[n].FoundBy = byMeaning
	g.near++
}

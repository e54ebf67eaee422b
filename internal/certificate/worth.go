package certificate

import (
	"html"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// What a value of a result is worth (R4, R5): what the contract says of its place, and
// no more than the call that asked for it, than what calls before it sent and than what
// an act was decided by.

// part is the length from which a text lowers what holds it and what stands in it.
const part = 4

// sent is what an act sent that is worth less than system: it can come back in pieces
// and inside other texts.
type sent struct {
	text   string
	label  writ.Label
	pieces bool // several short texts, one after the other
}

// guest is a member that an act let in, of any collection without one.
type guest struct{ collection, name string }

// bare is a name without what a server may add to it or take away.
func bare(name string) string {
	return strings.TrimFunc(fold(name), func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) })
}

// made is a value that an act sent.
type made struct {
	typ   provenance.Type
	value strictjson.Value
}

// argument is a value of a call, as what it is asked with is judged.
type argument struct {
	value  strictjson.Value
	typ    provenance.Type
	label  writ.Label
	narrow bool // it says too little to be told by: it lowers only what equals it
	fresh  bool // a name that the agent made up
	names  bool // it names what is there already

	pointer string
}

// vague reports whether it names no one thing.
func (a *argument) vague() bool { return rowsOrWords(a.pointer, a.value) }

// arguments are those of a call, the names of form fields last.
func (c *call) arguments() []argument {
	var out []argument
	for _, l := range c.leaves {
		_, _, fraction := provenance.Canonical(provenance.Integer, l.value)
		small := l.role == policy.Control && l.value.Kind() == strictjson.Number && fraction == "" && provenance.SmallSpace(provenance.Untyped, l.value)
		label := l.Label
		if l.Rule == "approval" || l.Rule == grownOutput || l.Rule == keptCall { // a person let it pass, there; read back it is what it was
			label = min(label, writ.External)
		} else if l.Rule == "derived:"+policy.TypedIn { // the name is the user's
			label = writ.User
		}
		out = append(out, argument{l.value, l.typ(), label,
			l.value.Kind() == strictjson.Bool || l.enum || empty(l.value) || c.declined(l) || small || l.Rule == grownOutput && !c.effect.Gated(),
			l.Rule == "derived:fresh", l.names() && l.plain() && !l.makes(c), l.Pointer})
	}
	for _, name := range c.fields {
		out = append(out, argument{value: strictjson.StringOf(name), narrow: true})
	}
	return out
}

// fold is what a server may do to a text without meaning to.
func fold(s string) string { return text.Fold(s, text.Careless) }

// readings are the texts as which a value may come back.
func readings(t provenance.Type, v strictjson.Value) (out []string) {
	if k := v.Kind(); k != strictjson.String && k != strictjson.Number || empty(v) {
		return nil
	}
	exact, _, _ := provenance.Canonical(provenance.Untyped, v)
	out = []string{fold(exact)}
	if c, _, why := provenance.Canonical(t, v); t != provenance.Untyped && why == "" && c != "" && fold(c) != out[0] {
		out = append(out, fold(c))
	}
	if u := fold(unescaped(out[0])); u != out[0] && !slices.Contains(out, u) {
		out = append(out, u)
	}
	return out
}

var escape = text.Pattern(`%[0-9a-f]{2}|\\u[0-9a-f]{4}|\\["\\/]`)

// unescaped undoes percent-encoding, JSON's escapes and HTML's, four times at most.
func unescaped(s string) string {
	for range 4 {
		if !strings.ContainsAny(s, `%\&`) {
			return s
		}
		t := escape().ReplaceAllStringFunc(s, func(e string) string {
			n, err := strconv.ParseUint(strings.TrimLeft(e, `%\u`), 16, 16)
			switch {
			case e[0] == '%' && err == nil:
				return string([]byte{byte(n)})
			case e[0] == '\\' && e[1] == 'u' && err == nil:
				return string(rune(n))
			}
			return e[1:]
		})
		if t = html.UnescapeString(t); t == s {
			return s
		}
		s = strings.ToValidUTF8(t, "\ufffd")
	}
	return s
}

// send takes note of what a call sends: from now on it lowers what comes back. What goes to
// the governed memory reaches no server.
func (s *Session) send(c *call) {
	act, args := c.effect.Gated(), c.arguments()
	path, goes := c.Policy.Goes(c.server, c.tool, c.effect)
	busy := false // what is under way there may lead on, or list another page, before this one is answered or behind it
	for _, other := range s.calls {
		busy = busy || other != nil && other.server == c.server
	}
	if act || goes || busy {
		s.moves++
	}
	if c.moves = s.moves; busy {
		c.moves = 0
	}
	s.calls[c.Number] = c
	if act {
		s.act(c, args)
	}
	c.acts = s.acts
	s.press(c)
	if s.page != nil && s.page.server == c.server && !s.isTyping(c) {
		s.page = nil
	}
	if goes {
		s.visit(visit{server: c.server, tool: c.tool, host: c.goesTo(path)})
	}
	for _, a := range args {
		if !c.governed && a.label < writ.System {
			s.lower(a, act)
		}
	}
	s.used[c.answer] = c.answer > 0
}

// act takes note of what an act changes: what it sent and spent, of what it may have filled, and
// whom it may have let in.
func (s *Session) act(c *call, args []argument) {
	s.since = true
	s.acts++
	s.spend(c)
	if !c.governed {
		s.assembled(args)
	}
	for _, a := range args {
		s.made[string(a.typ)+"\x00"+string(a.value.Literal())] = made{a.typ, a.value}
		if text, ok := a.value.Text(); ok {
			s.told[text] = true
		}
	}
	for _, l := range c.leaves {
		if l.makes(c) && l.rule.In != nil {
			s.coined, _ = l.value.Text()
		}
		if !l.names() {
			continue
		}
		if dir, _, why := provenance.Canonical(provenance.Path, l.value); l.plain() && why == "" {
			delete(s.listed, dir) // something may be there now that was not
		}
		if l.open && c.contract != nil {
			s.letsIn(c)
		}
	}
}

// letsIn takes note of the collections that an act added to which names something of an open one.
func (s *Session) letsIn(c *call) {
	for _, o := range c.contract.Outputs {
		if o.Collection != "" {
			s.opened[o.Collection] = append(s.opened[o.Collection], c.creates(o)...)
			s.letIn[guest{o.Collection, ""}] = true
		}
	}
	for _, l := range c.leaves {
		if l.makes(c) {
			s.opened[l.collection()] = append(s.opened[l.collection()], "")
			name, _ := l.value.Text()
			s.letIn[guest{l.collection(), bare(name)}] = true
		}
	}
}

// creates are the paths at or below which all stands that an act creates by an output: those that it named, where the output
// is of what it newly makes. "" is anywhere.
func (c *call) creates(o provenance.OutputRule) (at []string) {
	for _, l := range c.leaves {
		if dir, _, why := provenance.Canonical(provenance.Path, l.value); o.Creates && !c.strict && why == "" && l.names() && l.plain() && l.rule.TakesNew() && l.collection() == o.Collection && l.typ() == provenance.Path {
			at = append(at, dir)
		}
	}
	if len(at) == 0 {
		return []string{""}
	}
	return at
}

// letInAt reports whether an act may have put a place's value into its collection.
func (s *Session) letInAt(p *place) bool {
	at, _, why := provenance.Canonical(provenance.Path, p.value)
	all := s.opened[p.rule.Collection]
	return len(all) > 0 && (p.typ != provenance.Path || why != "" || len(all) > 256 || slices.ContainsFunc(all, func(dir string) bool {
		return dir == "" || dir == "/" || at == "/" || at == dir || strings.HasPrefix(at, dir+"/") || strings.HasPrefix(dir, at+"/")
	}))
}

// assembled takes note of the short values of an act that stand side by side: of themselves
// they lower nothing, and together they may be a text that comes back.
func (s *Session) assembled(args []argument) {
	run, low := "", writ.Operator
	for _, a := range append(args, argument{}) { // the last one has no text, and ends what stands before it
		if plain := readings(provenance.Untyped, a.value); a.label < writ.System && !a.narrow && len(plain) > 0 && utf8.RuneCountInString(plain[0]) < part {
			run += plain[0]
			low = min(low, a.label)
			continue
		}
		if utf8.RuneCountInString(run) >= part {
			s.within[sent{run, low, true}] = true
		}
		run, low = "", writ.Operator
	}
}

// lower takes note of one value that a server gets, by which what comes back is worth no more.
func (s *Session) lower(a argument, act bool) {
	if name, ok := a.value.Text(); ok && act && !a.names {
		s.letIn[guest{"", bare(name)}] = true
	}
	s.acted = s.acted || act
	for _, t := range readings(a.typ, a.value) {
		long := utf8.RuneCountInString(t) >= part
		if old, ok := s.texts[t]; (!a.narrow || long) && (!ok || a.label < old) {
			s.texts[t] = a.label
		}
		switch {
		case a.narrow || !long:
		case act:
			s.within[sent{t, a.label, false}] = true
		case !s.requested[t] && !a.vague():
			s.requested[t] = true
		}
	}
}

// label finds what the values of a result are worth, and adds them.
func (s *Session) label(x *extraction) {
	args := x.arguments()
	act := x.effect.Gated()
	listed := map[string]uint32{}
	s.held += len(x.places)
	for _, p := range x.places {
		most := s.received(x, p, args)
		if p.rule != nil && p.rule.Authoritative && !act {
			if p.rule.HasJoin && x.acts == s.acts {
				if dir, ok := x.whole(p); ok {
					listed[dir] = x.evidence
				}
			}
			continue
		}
		handle := p.rule != nil && p.rule.Collection != ""
		switch {
		case act && handle:
			most = x.named(p, args, min(s.inside(p), repeats(s, args, p)), listed)
		case act:
			p.reflected = min(most, lowest(args)) < writ.External
			most = writ.External
		default:
			most = s.shown(p, args, most)
		}
		if most < p.label {
			p.label = most
			p.reflected = p.reflected || !p.argued() && (!act || handle)
		}
		if p.label != writ.Model { // by a person's yes it is what he allowed
			p.by, p.in = nil, nil
		}
	}
	for dir, by := range listed {
		if _, known := s.listed[dir]; !x.Record.Look || !known || s.looked[dir] {
			s.listed[dir], s.looked[dir] = by, x.Record.Look
		}
	}
	s.places[x.evidence] = x.places
	for _, p := range x.places {
		s.find(x, p)
	}
}

// received takes note of what the contract says of a value and of how it came, and returns the
// most that it is worth after what was sent.
func (s *Session) received(x *extraction, p *place, args []argument) (most writ.Label) {
	p.texts = readings(p.typ, p.value)
	p.label = writ.External
	if p.rule != nil {
		p.label = p.rule.Label
	}
	p.lowered = x.places38 || s.acted
	most, echo := s.reflection(p)
	if p.echoed = echo || said(args, p); p.rule == nil {
		return most
	}
	p.listed = p.rule.Authoritative && !x.effect.Gated() && !x.asked()
	p.late, p.acts = s.since || x.acts != s.acts, s.acts
	p.day, p.found = x.searched(p)
	p.opened = s.letInAt(p) && !s.member(p, func(q *place) bool { return !q.opened })
	return most
}

// shown returns the most that a value is worth which a read shows: it may be what the read was
// asked with.
func (s *Session) shown(p *place, args []argument, most writ.Label) writ.Label {
	most = min(most, repeats(s, args, p), narrowed(args, p))
	asked, whole := s.askedFor(p)
	p.given = most >= writ.System && !whole && !p.echoed && !holdsAsked(args, p) && !pointed(args)
	most = min(most, lowest(args))
	p.clear = most >= writ.System && !asked && !p.echoed
	return most
}

// named returns the most that a name is worth which the answer to an act has: what it newly made by
// a name of the agent's is whoever's the name was, and may be written to again.
func (x *extraction) named(p *place, args []argument, most writ.Label, listed map[string]uint32) writ.Label {
	for i, l := range x.leaves {
		if l.names() || l.role == policy.Amount || l.role == policy.SecretRole {
			most = min(most, args[i].label)
		}
	}
	if !p.rule.Creates {
		return most
	}
	fresh := p.typ == provenance.Path && slices.ContainsFunc(args, func(a argument) bool {
		return a.fresh && provenance.Equal(provenance.Path, a.value, p.value)
	})
	p.invented = fresh || p.argued() && most < writ.System
	if text, _ := p.value.Text(); p.typ == provenance.Path && (fresh || p.argued()) && x.namesOne() {
		listed[path.Clean(text)] = 0
	}
	if p.in != nil && most >= writ.System {
		return writ.Model // whoever named it
	}
	return most
}

// find adds a value to what is looked up by its texts.
func (s *Session) find(x *extraction, p *place) {
	if p.unshown = x.Record.Look; !p.unshown {
		for _, k := range p.keys() {
			s.same[k] = append(s.same[k], p)
		}
		if name := x.lookedUp(p); name != "" {
			s.lookups[name] = append(s.lookups[name], p)
		}
	}
	if full, _, why := provenance.Canonical(provenance.Path, p.value); p.typ == provenance.Path && why == "" {
		s.folded[fold(full)] = true
	}
	s.secrets = s.secrets || p.rule != nil && p.rule.Secret
}

// namesOne reports whether a call says one thing that it is about: what it newly made is
// not a copy of another one.
func (c *call) namesOne() bool {
	n := 0
	for _, l := range c.leaves {
		if l.names() && l.plain() {
			n++
		}
	}
	return n == 1
}

// searched reports whether a call was asked for nothing but what stands in a value that
// its contract matches with that, and at most one day that the user said, or for that day alone.
func (x *extraction) searched(p *place) (day string, ok bool) {
	name, isText := p.value.Text()
	if x.effect.Gated() || p.rule.Matches+p.rule.On == "" || !isText || len(x.fields) > 0 {
		return "", false
	}
	for _, l := range x.leaves {
		text, isText := l.value.Text()
		_, notDay := time.Parse("2006-01-02", text)
		switch {
		case l.fixed() || empty(l.value):
		case isText && l.Pointer == p.rule.Matches && strings.Contains(name, text):
		case isText && l.Pointer == p.rule.On && l.Label == writ.User && notDay == nil:
			day = text
		default:
			return "", false
		}
	}
	return day, p.rule.Matches != "" || day != ""
}

// lookedUp is the name for which a read gave a member, where it was asked for nothing else.
func (x *extraction) lookedUp(p *place) string {
	if p.rule == nil || p.rule.LookedUp == "" || x.effect.Gated() || len(x.fields) > 0 {
		return ""
	}
	wide := slices.DeleteFunc(slices.Clone(x.leaves), func(l *leaf) bool {
		return l.fixed() || empty(l.value)
	})
	if len(wide) != 1 || wide[0].Pointer != p.rule.LookedUp {
		return ""
	}
	name, _ := wide[0].value.Text()
	return name
}

// asked reports whether anything but the operator's constants narrowed a result.
func (x *extraction) asked() bool {
	return slices.ContainsFunc(x.leaves, func(l *leaf) bool {
		return !l.fixed() && !empty(l.value)
	}) || len(x.fields) > 0
}

// fixed reports whether a value leaves nothing out of a list.
func (l *leaf) fixed() bool { return !l.rule.Narrows(l.Rule) }

// whole is the directory of a path that is in a list which nothing but that directory
// narrowed.
func (x *extraction) whole(p *place) (dir string, ok bool) {
	full, _, why := provenance.Canonical(provenance.Path, p.value)
	dir = path.Dir(full)
	return dir, why == "" && full != "/" && len(x.fields) == 0 && !slices.ContainsFunc(x.leaves, func(l *leaf) bool {
		at, _, _ := provenance.Canonical(provenance.Path, l.value)
		within := p.rule.Extract == provenance.ExtractTree && l.Pointer == strictjson.Pointer(p.rule.Join) && (at == "/" || at != "" && strings.HasPrefix(dir, at+"/"))
		return !l.fixed() && !empty(l.value) && at != dir && !within
	})
}

// lowest is the lowest label of the arguments that lower everything.
func lowest(args []argument) writ.Label {
	low := writ.Operator
	for _, a := range args {
		if !a.narrow {
			low = min(low, a.label)
		}
	}
	return low
}

// said reports whether a value stands in something the model said in its own call.
func said(args []argument, p *place) bool {
	for _, a := range args {
		for _, t := range readings(a.typ, a.value) {
			if a.narrow || a.label != writ.Model || utf8.RuneCountInString(t) < part {
				continue
			}
			for _, r := range p.texts {
				if utf8.RuneCountInString(r) >= part && strings.Contains(t, r) {
					return true
				}
			}
		}
	}
	return false
}

// pointed reports whether a call was asked with something worth less than system that may
// name one thing.
func pointed(args []argument) bool {
	return slices.ContainsFunc(args, func(a argument) bool { return !a.narrow && a.label < writ.System && !a.vague() })
}

// askedFor reports whether a value is a piece of what a read was asked with, or holds it;
// and whether what it holds has a digit.
func (s *Session) askedFor(p *place) (asked, whole bool) {
	for was := range s.requested {
		for _, t := range p.texts {
			if utf8.RuneCountInString(t) < part {
				continue
			}
			in, holds := strings.Contains(was, t), strings.Contains(t, was)
			asked = asked || in || holds
			whole = whole || in || holds && strings.ContainsAny(was, "0123456789")
		}
	}
	return asked, whole
}

// holdsAsked reports whether something that its own call was asked with stands in a value.
func holdsAsked(args []argument, p *place) bool {
	return slices.ContainsFunc(args, func(a argument) bool {
		return !a.narrow && a.label < writ.System && slices.ContainsFunc(readings(a.typ, a.value), func(t string) bool {
			return utf8.RuneCountInString(t) >= part && slices.ContainsFunc(p.texts, func(r string) bool { return strings.Contains(r, t) })
		})
	})
}

// repeats says what a value is worth that repeats an argument of its own call: no more
// than the argument, and no member of its collection that it was not before (P01).
func repeats(s *Session, args []argument, p *place) writ.Label {
	at := writ.Operator
	for _, a := range args {
		if a.narrow || !meet(readings(a.typ, a.value), p.texts) {
			continue
		}
		if at = min(at, a.label); a.label == writ.System && p.collection() != "" && !s.member(p, nil) {
			at = min(at, writ.External)
		}
	}
	return at
}

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(t string) bool { return slices.Contains(b, t) })
}

// narrowed is what a narrow argument leaves of a value that is it, in whatever case,
// kind or sign.
func narrowed(args []argument, p *place) writ.Label {
	at := writ.Operator
	for _, a := range args {
		if a.narrow && meet(spellings(a.typ, a.value), spellings(p.typ, p.value)) {
			at = min(at, a.label)
		}
	}
	return at
}

func spellings(t provenance.Type, v strictjson.Value) (out []string) {
	exact, _, _ := provenance.Canonical(provenance.Untyped, v)
	out = []string{"\x00" + string(rune(v.Kind())) + exact}
	for _, r := range readings(t, v) {
		out = append(out, strings.TrimPrefix(r, "-"))
	}
	if s, ok := v.Text(); ok && s != "" {
		if d, _, why := provenance.Canonical(provenance.Decimal, v); why == "" {
			out = append(out, strings.TrimPrefix(d, "-"))
		}
	}
	return out
}

// member reports whether a value was seen as one of its own collection, at system or
// better.
func (s *Session) member(p *place, also func(*place) bool) bool {
	return slices.ContainsFunc(s.holding(p.value, p.typ), func(q *place) bool {
		return q.rule != nil && q.rule.Collection == p.rule.Collection && q.label >= writ.System && (also == nil || also(q))
	})
}

// known reports whether a value that stands in what an act sent was vouched before: an
// identifier stands in prose without having been made by it.
func (s *Session) known(p *place) bool {
	if p.collection() != "" {
		return s.member(p, nil)
	}
	return slices.ContainsFunc(s.holding(p.value, provenance.Untyped), func(q *place) bool { return q.label >= writ.System })
}

// longest is the length from which a text counts as holding all that was sent.
const longest = 64 << 10

// reflection is the highest label a value may keep under what was sent before, and
// whether the model said it first.
func (s *Session) reflection(p *place) (at writ.Label, echo bool) {
	at = writ.Operator
	for _, t := range p.texts {
		if was, ok := s.texts[t]; ok {
			at = min(at, was)
			echo = echo || was == writ.Model
		}
		for was := range s.within {
			if utf8.RuneCountInString(t) < part {
				continue
			}
			in := strings.Contains(was.text, t)
			holds := !was.pieces && (len(t) > longest || strings.Contains(t, was.text))
			if echo = echo || in && was.label == writ.Model; holds || in && !(atom(t) && s.known(p)) {
				at = min(at, was.label)
			}
		}
	}
	return at, echo
}

// inside is the lowest label of what acts sent in which a value stands.
func (s *Session) inside(p *place) writ.Label {
	at := writ.Operator
	for was := range s.within {
		for _, t := range p.texts {
			if utf8.RuneCountInString(t) >= part && strings.Contains(was.text, t) && !(atom(t) && s.known(p)) {
				at = min(at, was.label)
			}
		}
	}
	return at
}

// atom reports whether a text is one identifier as R14 lists them.
func atom(s string) bool {
	for _, t := range []provenance.Type{provenance.URL, provenance.Email, provenance.Path, provenance.IBAN, provenance.Phone, provenance.Host} {
		if _, _, why := provenance.Canonical(t, strictjson.StringOf(s)); why == "" && (t != provenance.Host || strings.Contains(s, ".")) {
			return true
		}
	}
	return len(s) >= 9 && strings.Trim(s, "0123456789") == ""
}

var (
	word   = text.Pattern(`^[0-9A-Za-z][0-9A-Za-z_#+=-]{0,127}$`)
	moment = text.Pattern(`^[0-9]{9,}\.[0-9]{1,9}$`)
	hashed = text.Pattern(`^[0-9a-f]+$`)
	wallet = text.Pattern(`^(?:0[xX][0-9a-fA-F]+|[1-9A-HJ-NP-Za-km-z]{25,}|(?i:[a-z]{1,15}1[02-9ac-hj-np-z]{38,}))$`)
	change = text.Pattern(`[a-z][A-Z0-9]|[A-Z][0-9]|[0-9][A-Za-z]`)
	marks  = text.Pattern(`[_#+=-]+`)
	phrase = text.Pattern(`^\s*\pL\p{Ll}*[,.;:!?]*(?:\s+\p{Ll}+[,.;:!?]*){2,}\s*$`)
	rows   = text.Pattern(`^(?:limit|count|pages?|size|offset|max(?:imum)?|top|take|skip|rows|results|depth|per|first|last)$`)
	thing  = text.Pattern(`^(?:ids?|number|no|key|name|ref)$`)
)

// numbered reports whether a value can be one that a server counts, stamps or draws: a
// number that is none of a card, or a word with such a piece that is no account or wallet.
func numbered(v strictjson.Value) bool {
	s, isText := v.Text()
	if !isText {
		n, _, fraction := provenance.Canonical(provenance.Integer, v)
		return v.Kind() == strictjson.Number && fraction == "" && !card(strings.TrimPrefix(n, "-"))
	}
	if strings.Trim(s, "0123456789") == "" {
		return s != "" && !card(s)
	}
	if moment().MatchString(s) {
		return true
	}
	return word().MatchString(s) && (!wallet().MatchString(s) || hashed().MatchString(s) && !strings.HasPrefix(s, "0x")) && !atom(fold(s)) &&
		slices.ContainsFunc(marks().Split(s, -1), func(piece string) bool {
			digits := len(piece) - len(strings.Map(func(r rune) rune {
				if '0' <= r && r <= '9' {
					return -1
				}
				return r
			}, piece))
			changes := 0
			for i := 1; i < len(piece); i++ {
				if change().MatchString(piece[i-1 : i+1]) {
					changes++
				}
			}
			return digits > 0 && (2*digits >= len(piece) || len(piece) >= 8 && changes+min(digits, 2) > 3)
		})
}

// card reports whether digits are too many to be counted, or those of a card: begun as
// one, and right by their sum.
func card(digits string) bool {
	if n := len(digits); n < 13 || n > 20 {
		return n > 20
	}
	sum := 0
	for i, double := len(digits)-1, false; i >= 0; i, double = i-1, !double {
		d := int(digits[i] - '0')
		if double {
			d = d*2/10 + d*2%10
		}
		sum += d
	}
	return len(digits) < 20 && digits[0] >= '2' && digits[0] <= '6' && sum%10 == 0
}

// rowsOrWords reports whether an argument says how many rows there may be, in which state or
// order, or what is searched for in words, and names no one thing.
func rowsOrWords(pointer string, v strictjson.Value) bool {
	if s, isText := v.Text(); v.Kind() == strictjson.Bool || empty(v) || isText && strings.ContainsAny(s, " \t\n\f\r") && phrase().MatchString(s) {
		return true
	}
	says := rows
	if s, isText := v.Text(); isText && states().MatchString(s) {
		says = narrowing
	} else if _, _, fraction := provenance.Canonical(provenance.Integer, v); fraction != "" || !provenance.SmallSpace(provenance.Untyped, v) {
		return false
	}
	words := text.NameWords(path.Base("/" + pointer))
	return slices.ContainsFunc(words, says().MatchString) && !slices.ContainsFunc(words, thing().MatchString)
}

// narrowing are the names of arguments that say in which state or order, and states are these.
var (
	narrowing = text.Pattern(`^(state|status|filter|sort|order|direction|priority|visibility)$`)
	states    = text.Pattern(`^(open(ed)?|closed|all|any|(in)?active|enabled|disabled|pending|new|todo|done|(un)?resolved|in_progress|completed|draft|published|` +
		`archived|merged|(a|de)sc(ending)?|created|updated|low|medium|high|urgent|public|private|(un)?read)$`)
)

// sentBefore reports whether an act of this session sent a value, or a path of that name.
func (s *Session) sentBefore(v strictjson.Value) bool {
	full, _ := v.Text()
	name := strictjson.StringOf(path.Base(full))
	for _, m := range s.made {
		if provenance.Equal(provenance.Untyped, m.value, v) || provenance.Equal(provenance.Path, m.value, v) && m.typ == provenance.Path ||
			provenance.Equal(provenance.Untyped, m.value, name) {
			return true
		}
	}
	return false
}

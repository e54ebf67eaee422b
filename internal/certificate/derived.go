package certificate

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/money"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// derived is a value that follows from others by an operation of the contract.
func (s *Session) derived(c *call, l *leaf, op string) (label writ.Label, ok bool) {
	label = writ.Operator
	for _, e := range l.Evidence {
		label = min(label, e.Label)
	}
	text, _ := l.value.Text()
	first := func(n int, is func(p *place) bool) bool {
		return n < len(l.Evidence) && slices.ContainsFunc(s.system(l.Evidence[n]), func(p *place) bool {
			return p.rule != nil && p.label >= writ.System && is(p)
		})
	}
	if op == policy.FreshName && l.rule != nil && len(l.rule.Begins) > 0 {
		return writ.Model, s.ordersName(c, l, text)
	}
	cut := strings.LastIndexByte(text, '/')
	if _, already, _ := provenance.Canonical(provenance.Path, l.value); (op == policy.PathJoin || op == policy.FreshName) && (!already || cut < 0 || text == "/") {
		return 0, false
	}
	directory := func() strictjson.Value {
		if cut == 0 {
			return strictjson.StringOf("/")
		}
		return strictjson.StringOf(text[:cut])
	}
	switch op {
	case policy.PathJoin:
		q := query{value: l.value, collection: l.collection(), loose: true}
		fits := func(p *place) bool {
			return q.source(policy.Source{}, p) && (!c.target(l) || s.chosen(c, l, p))
		}
		return label, c.accepts(l, policy.FromDerived, op) && !l.answer &&
			first(0, func(p *place) bool {
				return fits(p) && p.typ == provenance.Path && provenance.Equal(provenance.Path, p.value, directory())
			}) &&
			first(1, func(p *place) bool {
				if p.typ == provenance.Name {
					return fits(p) && provenance.Equal(provenance.Name, p.value, strictjson.StringOf(text[cut+1:]))
				}
				base, _ := lastOf(p)
				return fits(p) && base == text[cut+1:] && !provenance.Equal(provenance.Path, p.value, l.value)
			})
	case policy.TypedIn:
		return label, c.accepts(l, policy.FromDerived, op) && s.typedIn(c, l, text)
	case policy.FreshName:
		dir := *l
		dir.value = directory()
		return writ.Model, c.accepts(l, policy.FromDerived, op) && s.fresh(l, text[cut+1:], dir.value) &&
			(first(0, func(p *place) bool {
				q := c.query(l)
				q.typ = provenance.Path
				return q.source(policy.Source{}, p) && equal(dir.value, provenance.Path, p) && (!c.target(l) || s.chosen(c, l, p))
			}) || len(l.Evidence) == 1 && (s.invented(c, &dir) || c.accepts(l, policy.FromUser) && s.typed(&dir, l.Evidence[0]) || s.entry(c, &dir)))
	case string(money.Round):
		return label, len(l.Evidence) == 1 && l.role == policy.Amount && l.rule != nil && slices.Contains(l.rule.Forms, money.Round) && !l.key && !l.answer &&
			!c.binds(l) && first(0, func(p *place) bool {
			is, _, why := provenance.Canonical(provenance.Decimal, p.value)
			want, _, not := provenance.Canonical(provenance.Decimal, l.value)
			return why == "" && not == "" && p.typ == provenance.Decimal && p.rule.Lifetime == 0 &&
				s.vouches(c, l, p) && told(c, l, p) && slices.Contains(money.Rounded(is), want)
		})
	case "uri_template":
		return label, c.accepts(l, policy.FromDerived, op) && s.expands(c, l, text)
	}
	label = min(label, writ.User)
	return label, c.accepts(l, policy.FromUser) && s.follows(c, l, money.Form(op))
}

// typedIn reports whether a path of a closed collection is rested on a directory that is
// vouched for and on what the user typed of it: a name, or a path below that directory.
func (s *Session) typedIn(c *call, l *leaf, path string) bool {
	if len(l.Evidence) != 2 || len(path) > 4096 || l.answer || l.key || provenance.CheckText(l.value) != "" || l.commands || !c.closed(l.collection()) {
		return false
	}
	_, words, ok := s.quote(l.Evidence[1])
	dir, in := strings.CutSuffix(path, "/"+words)
	if !ok || !in || dir == "" {
		return false
	}
	name, rule := *l, *l.rule
	rule.Type = provenance.Untyped
	name.rule, name.value, name.called = &rule, strictjson.StringOf(words), nil
	if !strings.ContainsAny(words, "./") || strings.Contains(words, " ") {
		name.apart, name.proper = true, false // it is not of the form of a file's name
	}
	q := c.query(l)
	q.value, q.typ = strictjson.StringOf(dir), provenance.Path
	return (s.typed(&name, l.Evidence[1]) || l.rule.MakesDirs() && s.above(l.Evidence[1])) && slices.ContainsFunc(s.system(l.Evidence[0]), func(p *place) bool {
		return p.rule != nil && p.label >= writ.System && p.rule.Lifetime == 0 && equal(q.value, provenance.Path, p) && q.source(policy.Source{}, p) && (!c.target(l) || s.chosen(c, l, p))
	})
}

// above reports whether what the user typed at a place is a directory on the way of a path.
func (s *Session) above(r gate.Ref) bool {
	t, _, ok := s.quote(r)
	if !ok || !t.begins(r.Start) || !strings.HasPrefix(t.own[r.End:], "/") {
		return false
	}
	below, _ := utf8.DecodeRuneInString(t.own[r.End+1:])
	return unicode.IsLetter(below) || unicode.IsNumber(below) || unicode.IsMark(below)
}

// invented reports whether a value is rested on where the session newly made something of
// that name, which the agent had made up: nothing showed it before.
func (s *Session) invented(c *call, l *leaf) bool {
	q := c.query(l)
	accepts := l.output
	if l.Rule == "derived:fresh" { // the directory of a name
		q.typ, accepts = provenance.Path, func(policy.Source) bool { return true }
	}
	return slices.ContainsFunc(s.at(l.Evidence[0]), func(p *place) bool {
		return p.invented && p.in == nil && p.label == l.Evidence[0].Label && equal(l.value, q.typ, p) && p == s.holding(l.value, q.typ)[0] &&
			slices.ContainsFunc(c.from(l), func(src policy.Source) bool { return accepts(src) && q.source(src, p) })
	})
}

// madeThere reports whether a value is rested on what an act of the same server made in what
// other arguments said, and the call has the same there: nothing where that had nothing.
func (s *Session) madeThere(c *call, l *leaf) bool {
	return l.Rule == "invented" && l.names() && !l.key && !l.answer && c.lightly() && slices.ContainsFunc(s.at(l.Evidence[0]), func(p *place) bool {
		return p.in != nil && p.server == c.server && equal(l.value, l.typ(), p) &&
			slices.ContainsFunc(c.from(l), func(src policy.Source) bool {
				return l.output(src) && c.query(l).source(src, p) && s.ordersSource(c, src)
			}) &&
			!slices.ContainsFunc(p.in, func(at provenance.Pattern) bool {
				then, now := p.by.parts.Find(at.Tokens), c.parts.Find(at.Tokens)
				return then.Exists() != now.Exists() || then.Exists() && !provenance.Equal(provenance.Untyped, then, now)
			})
	})
}

// lightly reports whether a call only reads, writes and sends.
func (c *call) lightly() bool {
	return c.effect&(policy.Egress|policy.Transfer|policy.Delete|policy.Auth) == 0
}

// coined reports whether a value is a name that the agent made up by the user's order.
func (l *leaf) coined() bool {
	return l.Rule == "derived:fresh" && l.rule != nil && len(l.rule.Begins) > 0
}

// ordersName reports whether a name is one that the agent may make up because the user
// ordered something new, of what the act makes (R36): one for each order, that says nothing
// beside and could not tell a secret.
func (s *Session) ordersName(c *call, l *leaf, name string) bool {
	words := strings.Split(name, "/")
	if len(l.Evidence) != 1 || l.answer || l.key || !c.lightly() || s.secrets || s.coined != "" && s.coined != name ||
		len(words) > 2 || provenance.CheckText(l.value) != "" || utf8.RuneCountInString(name) > 128 || len(provenance.Atoms(name)) > 0 ||
		slices.ContainsFunc(words, func(w string) bool { return !nameWord().MatchString(w) }) ||
		slices.ContainsFunc(c.leaves, func(o *leaf) bool { other, _ := o.value.Text(); return o.coined() && other != name }) ||
		!slices.ContainsFunc(l.rule.Begins, func(b string) bool { return len(name) > len(b) && name[:len(b)] == b }) {
		return false
	}
	e := l.Evidence[0]
	t, said, ok := s.quote(e)
	latest := ok && (t == &s.turns[len(s.turns)-1] || slices.ContainsFunc(s.agreed, func(a turn) bool { return a.evidence == t.evidence }) && t.evidence > s.turns[len(s.turns)-1].evidence)
	return latest && t.speaksAt(e.Start) && t.ends(e.End) && provenance.Anew(t.own, e.Start, e.End) && slices.ContainsFunc(c.from(l), func(src policy.Source) bool {
		return src.Op == policy.FreshName && slices.ContainsFunc(src.Phrases, func(p string) bool {
			return slices.Contains(spokenOf(p).ends(said, 0), len(said))
		})
	})
}

// entry reports whether a directory of a closed collection is rested on one of the names that
// a whole list of it showed.
func (s *Session) entry(c *call, dir *leaf) bool {
	at, _ := dir.value.Text()
	return dir.collection() != "" && c.closed(dir.collection()) && s.listed[at] == dir.Evidence[0].Evidence && slices.ContainsFunc(s.at(dir.Evidence[0]), func(p *place) bool {
		full, _, why := provenance.Canonical(provenance.Path, p.value)
		return why == "" && p.rule != nil && p.rule.HasJoin && p.rule.Authoritative && p.rule.Lifetime == 0 && p.label >= writ.System && p.collection() == dir.collection() && path.Dir(full) == at
	})
}

var nameWord = text.Pattern(`^[\pL\pN][\pL\pN\pM._-]*$`)

// freshName reports whether a name has at most 128 characters and is made of words, a
// blank between two, that a program which splits it there takes for names too.
func freshName(name string) bool {
	for word := range strings.SplitSeq(name, " ") {
		if !nameWord().MatchString(word) {
			return false
		}
	}
	return utf8.RuneCountInString(name) <= 128
}

// device are names that are no file's on Windows.
var device = text.Pattern(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9]|conin\$|conout\$)(\.|$)`)

// fresh reports whether a name is one that the agent may make up (R36): new in a
// directory that was listed whole, and not sent by an act before.
func (s *Session) fresh(l *leaf, name string, dir strictjson.Value) bool {
	full, _ := l.value.Text()
	if l.rule == nil || s.folded[fold(full)] || device().MatchString(name) || !freshName(name) || provenance.CheckText(l.value) != "" || s.sentBefore(l.value) ||
		!slices.ContainsFunc(l.rule.Extensions, func(e string) bool {
			if e == "" {
				return !strings.ContainsRune(name, '.')
			}
			return strings.HasSuffix(name, e) && name != e
		}) {
		return false
	}
	whole, _ := dir.Text()
	_, listed := s.listed[whole]
	return listed && (!s.looked[whole] || s.speaksOf(name))
}

// speaksOf reports whether the user's latest turn has a name, or a word of it of three
// letters, but for its extension; of a script without an alphabet one letter is a word.
func (s *Session) speaksOf(name string) bool {
	return s.speaks(name) || slices.ContainsFunc(text.NameWords(strings.TrimSuffix(name, path.Ext(name))), func(word string) bool {
		letters := []rune(word)
		return (len(letters) > 2 || unicode.Is(unicode.Han, letters[0])) && s.speaks(word)
	})
}

var variable = text.Pattern(`\{\+?([A-Za-z0-9_.]+)\}`)

// templates are the places where a server listed its templates (R32).
func (s *Session) templates(c *call) (out []*place) {
	for _, of := range s.places {
		for _, p := range of {
			if p.server == c.server && p.tool == string(policy.ListTemplates) && p.trail[len(p.trail)-1] == "uriTemplate" {
				out = append(out, p)
			}
		}
	}
	return out
}

// variable reports whether a value is the name of a variable of a listed template.
func (s *Session) variable(c *call, l *leaf) bool {
	name, _ := l.value.Text()
	return slices.ContainsFunc(s.templates(c), func(p *place) bool {
		text, _ := p.value.Text()
		return slices.ContainsFunc(variable().FindAllStringSubmatch(text, -1), func(m []string) bool { return m[1] == name })
	})
}

// expands reports whether a URI is a listed template with the vouched values in it, as
// whoever decodes it once reads it.
func (s *Session) expands(c *call, l *leaf, uri string) bool {
	vouched := func(p *place, strict bool) bool {
		return p.rule != nil && p.label >= writ.System && s.chosen(c, l, p) && (!strict || !provenance.SmallSpace(provenance.Untyped, p.value))
	}
	for _, p := range s.system(l.Evidence[0]) {
		template, _ := p.value.Text()
		at := variable().FindAllStringIndex(template, -1)
		if len(at) != len(l.Evidence)-1 || !slices.Contains(s.templates(c), p) || !vouched(p, false) {
			continue
		}
		var b strings.Builder
		done := 0
		for i, v := range at {
			b.WriteString(template[done:v[0]])
			done = v[1]
			for _, q := range s.system(l.Evidence[i+1]) {
				if value, ok := q.value.Text(); ok && vouched(q, true) {
					b.WriteString(value)
					break
				}
			}
		}
		b.WriteString(template[done:])
		if b.String() == decoded(uri) && !slices.ContainsFunc(strings.FieldsFunc(b.String(), func(r rune) bool { return r == '/' || r == '\\' }),
			func(e string) bool { return e == "." || e == ".." }) {
			return true
		}
	}
	return false
}

var encoded = text.Pattern(`%[0-9A-Fa-f]{2}`)

// decoded undoes one layer of percent-encoding.
func decoded(s string) string {
	const digits = "0123456789abcdef"
	return encoded().ReplaceAllStringFunc(s, func(e string) string {
		e = strings.ToLower(e)
		return string([]byte{byte(strings.IndexByte(digits, e[1])<<4 | strings.IndexByte(digits, e[2]))})
	})
}

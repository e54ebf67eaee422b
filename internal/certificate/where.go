package certificate

import (
	"slices"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// Where an act is done of which no argument says it (R28), by the calls and results of a session
// that do.

// visit is a call that says where other acts are done, and the host, "" where it says none; told,
// it is its result that says so.
type visit struct {
	server, tool, host string
	told               bool
	name               string // told: of a location that is no link, what it says
}

// visit takes note of one, once.
func (s *Session) visit(at visit) {
	s.went = append(slices.DeleteFunc(s.went, func(v visit) bool { return v == at }), at)
}

// tell takes note of where a result says that its call left the browser, unless an act was under
// way or begun since.
func (s *Session) tell(x *extraction, result strictjson.Value) {
	var places []*place
	for _, p := range x.places {
		if p.rule != nil && p.rule.Location {
			places = append(places, p)
		}
	}
	if len(places) != 1 || x.moves != s.moves {
		return
	}
	text, _ := places[0].value.Text()
	if places[0].rule.Type != provenance.URL {
		s.visit(visit{server: x.server, told: true, name: text})
		return
	}
	s.visit(visit{server: x.server, host: provenance.LinkHost(text), told: true})
	s.listsPage(x, places[0], result)
}

// stillSo reports whether a source that holds until some calls gives this value yet: what the server
// said since the last of them is this, and never something else. No sign stands before it, which may be a command.
func (s *Session) stillSo(l *leaf, src policy.Source) bool {
	if len(src.Until) == 0 {
		return true
	}
	name, _ := l.value.Text()
	said := map[string]bool{}
	for _, v := range slices.Backward(s.went) {
		if slices.ContainsFunc(src.Until, func(w policy.Source) bool { return !v.told && w.Server == v.server && w.Tool == v.tool }) {
			break
		}
		if v.told && v.server == src.Server {
			said[v.name] = true
		}
	}
	return len(said) == 1 && said[name] && plainStart().MatchString(name)
}

var plainStart = text.Pattern(`^[\pL\p{Nd}_]`)

// whereDone is the host where the acts of a contract with places are done, "" where that is not known:
// where the latest call went, or what the browser said last where that names none; kept, not where it
// said another one.
func (s *Session) whereDone(c *call, kept bool) string {
	if c.paged() && slices.ContainsFunc(c.leaves, func(l *leaf) bool { return c.isPage(l) && l.role == policy.Content }) {
		return "" // the agent may choose any page
	}
	var calls, all []string
	for _, v := range s.went {
		if !slices.ContainsFunc(c.contract.Where, func(w policy.Source) bool { return w.Server == v.server && (v.told || w.Tool == v.tool) }) {
			continue
		}
		if all = append(all, v.host); !v.told {
			calls = append(calls, v.host)
		}
	}
	if len(all) == 0 || c.paged() && len(slices.Compact(slices.Clone(all))) > 1 {
		return ""
	}
	at, said := "", all[len(all)-1]
	if len(calls) > 0 {
		at = calls[len(calls)-1]
	}
	if at == "" {
		return said
	}
	if other := at != said && "www."+at != said && at != "www."+said; other && kept {
		return ""
	}
	return at
}

// isPage reports whether a leaf is that argument.
func (c *call) isPage(l *leaf) bool {
	return c.contract != nil && c.contract.Among != "" && slices.Equal(l.path, []string{c.contract.Among})
}

// paged reports whether an argument says which of several places.
func (c *call) paged() bool { return c.contract.Among != "" && c.args.Get(c.contract.Among).Exists() }

// goesTo returns the host that a call goes to by a link at a path: none where it fetches nothing.
func (c *call) goesTo(path []string) string {
	link, _ := c.args.Find(path).Text()
	if len(path) == 0 || c.effect&policy.Egress == 0 {
		return ""
	}
	return provenance.LinkHost(link)
}

// meant reports whether an act is done where the turn that a reference quotes says, or, where
// it names no place, at the only one that was named in the session (R28).
func (s *Session) meant(c *call, e gate.Ref) bool {
	if c.contract == nil || len(c.contract.Where) == 0 {
		return true
	}
	return s.isMeant(e, s.whereDone(c, false))
}

// isMeant reports whether a host is that place.
func (s *Session) isMeant(e gate.Ref, at string) bool {
	var named []string
	if at == "" {
		return false
	}
	for _, t := range s.turns {
		if t.evidence == e.Evidence {
			named = provenance.Hosts(t.own)
		}
	}
	if len(named) > 0 {
		return at == named[0] && len(named) == 1
	}
	for _, t := range s.turns {
		named = append(named, provenance.Hosts(t.own)...)
	}
	for _, v := range s.went {
		if v.host != "" {
			named = append(named, v.host)
		}
	}
	slices.Sort(named)
	return slices.Equal(slices.Compact(named), []string{at})
}

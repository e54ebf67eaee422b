package gate

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// # Where an act is done (R28)
//
// A text is typed into the page that a browser shows, and no argument says which that is: the
// latest call that went to one does. Who wrote another page that the user asked for may have
// the agent go back to his. So what the user ordered is done where he said in that turn, or at
// the only place of the session. Where an argument says which of several pages (among), a call
// that went to another page says nothing of this one: then all of them went to that place.
//
// A click may lead anywhere. Where it led the browser says, in its result or when it is asked
// (an output that is a location), if no other act was under way or begun since. What the user
// ordered is done where the calls went that he asked for; what a person keeps of a call holds only
// where the browser says nothing else since: a page or a key may have led on.

// visit is a call that says where other acts are done, by the host it went to, "" for none
// that it says; or, told, by that where its result says that its server is: then tool is the server.
type visit struct {
	tool, host string
	told       bool
	called     string // told: what the place is called, by a location that is no link
}

// visit notes such a call, each that is alike once: they are as many as the places. What does
// not fetch goes nowhere, whatever its arguments say.
func (s *Session) visit(tool string, effect policy.Effect, args strictjson.Value, path []string) {
	host := ""
	if to, ok := args.Find(path).Text(); ok && len(path) > 0 && effect&policy.Egress != 0 {
		host = provenance.LinkHost(to)
	}
	s.visited(visit{tool: tool, host: host})
}

func (s *Session) visited(v visit) {
	s.visits = append(slices.DeleteFunc(s.visits, func(o visit) bool { return o == v }), v)
}

// leading reports whether another call to the server of one that is made now is under way: it may lead
// elsewhere yet, or list another page.
func (s *Session) leading(d *Decision) bool {
	for k := range s.open {
		if k.server == d.Call.Server {
			return true
		}
	}
	return false
}

// toldBy is where a result says that its call left the browser, nil where it does not say.
func toldBy(d *Decision, leaves []provenance.Leaf) *visit {
	v := visit{tool: d.Call.Server, told: true}
	n := 0
	for _, l := range leaves {
		if l.Rule != nil && l.Rule.Location {
			text, _ := l.Value.Text()
			if n++; l.Rule.Type == provenance.URL {
				v.host = provenance.LinkHost(text)
			} else {
				v.called = text
			}
		}
	}
	if n != 1 {
		return nil
	}
	return &v
}

// called is what the place is called at which the calls of some tools left their server: what it
// said since, each time alike; "" where it did not, nor where a sign stands before it: a stranger may choose
// the name of a branch, and git pushes "+main" over what is there.
func (s *Session) called(until []policy.Source) (at string) {
	several := false
	for _, v := range s.visits {
		switch by := func(w policy.Source) bool { return w.Server+"/"+w.Tool == v.tool || v.told && w.Server == v.tool }; {
		case !slices.ContainsFunc(until, by):
		case !v.told:
			at, several = "", false
		default:
			at, several = v.called, several || at != "" && at != v.called
		}
	}
	if first, _ := utf8.DecodeRuneInString(at); several || first != '_' && !unicode.IsLetter(first) && !unicode.IsDigit(first) {
		return ""
	}
	return at
}

// at is the host where acts are done that one of some calls says it of: the latest, or what was
// told last since where that did not say. Looked at, it is none where these are two, but for a
// leading "www.". Under among all of them said this one.
func (s *Session) at(where []policy.Source, among, looked bool) string {
	went, told, n := "", "", 0
	for _, v := range s.visits {
		if !slices.ContainsFunc(where, func(w policy.Source) bool { return v.told && w.Server == v.tool || w.Server+"/"+w.Tool == v.tool }) {
			continue
		}
		if n++; among && n > 1 && v.host != told {
			return ""
		}
		if told = v.host; !v.told {
			went = v.host
		}
	}
	switch {
	case went == "":
		return told
	case looked && strings.TrimPrefix(told, "www.") != strings.TrimPrefix(went, "www."):
		return ""
	}
	return went
}

// place is where the act is done, "" where nobody knows or it makes no difference: a page that the
// agent may choose as it likes is one that was open before, perhaps.
func (j *judge) place(looked bool) string {
	if len(j.contract.Where) == 0 || j.session() == nil || j.several() && slices.ContainsFunc(j.leaves, func(l *leaf) bool { return j.isPage(l) && l.role == policy.Content }) {
		return ""
	}
	return j.session().at(j.contract.Where, j.several(), looked)
}

// several reports whether an argument says which of several places.
func (j *judge) several() bool {
	return j.contract.Among != "" && j.args.Get(j.contract.Among).Exists()
}

// isPage reports whether a leaf is that argument.
func (j *judge) isPage(l *leaf) bool {
	return j.contract.Among != "" && l.pointer == "/"+j.contract.Among
}

// there reports whether an act is done at the one place that a turn of the
// user's names; or, where it names none, at the only one that he or a call that says so named in this
// session.
func (j *judge) there(turn uint32) bool { return j.meansHost(turn, j.place(false)) }

// meansHost reports whether a host is that place.
func (j *judge) meansHost(turn uint32, at string) bool {
	s := j.session()
	all := s.ledger.Hosts(turn)
	if len(all) == 0 {
		all = s.ledger.Hosts(0)
		for _, v := range s.visits {
			if v.host != "" {
				all = append(all, v.host)
			}
		}
	}
	return at != "" && !slices.ContainsFunc(all, func(h string) bool { return h != at })
}

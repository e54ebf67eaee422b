package gates

import (
	"fmt"
	"strings"
	"time"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// callStep is one call of a session and what came back, or what the user said
// in it, on the channel of his own (R6), or that his turns lapsed.
type callStep struct {
	User  strictyaml.String `yaml:"user"` // the exact text of a turn
	Lapse bool              `yaml:"lapse"`

	Call    string            `yaml:"call"` // server/tool
	Args    string            `yaml:"args"`
	Answers string            `yaml:"answers"` // answers given inside the call
	Session string            `yaml:"session"` // "s_a" where it is left out, "none" for no session
	Result  strictyaml.String `yaml:"result"`  // the recorded result, when one came
	Status  string            `yaml:"status"`  // ok where it is left out, error, cut, unknown
	Refused bool              `yaml:"refused"` // it must be refused, else it must pass
}

// actCase is an act at the end of a session (STTI-001). It is judged under each
// of its profiles, both where none is named.
type actCase struct {
	ID     string `yaml:"id"`
	Expect string `yaml:"expect"`
	Attack string `yaml:"attack"`
	Note   string `yaml:"note"`

	World    string     `yaml:"world"`
	Profiles []string   `yaml:"profiles"`
	Before   []callStep `yaml:"before"`
	Call     string     `yaml:"call"`
	Args     string     `yaml:"args"`
	Answers  string     `yaml:"answers"`
	Session  string     `yaml:"session"`
}

// recordedAt is the recorded time of all decisions here: nothing decided
// depends on it.
var recordedAt = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func provenanceGate(g Gates, l *loader) *Section {
	s := newHandMade("provenance_gate")
	for _, c := range load(l, "provenance_gate", func(c *actCase) (id, expect string) { return c.ID, c.Expect }) {
		w := l.world(c.c.World)
		profiles := c.c.Profiles
		if len(profiles) == 0 {
			profiles = []string{string(policy.Standard), string(policy.Strict)}
		}
		for _, name := range profiles {
			id, p := c.id+"@"+name, policy.Profile(name)
			if w.policies[p] == nil {
				l.fault("provenance_gate: %s has no policy of profile %s", c.id, p)
				continue
			}
			run := &session{gates: g, world: w, profile: p, sessions: map[string]*gate.Session{}}
			s.score(id, c.kind, c.want, run.judge(&c.c))
		}
	}
	return s.finish()
}

// session plays one case.
type session struct {
	gates    Gates
	world    *world
	profile  policy.Profile
	sessions map[string]*gate.Session
}

func (r *session) enter(name string) *gate.Session {
	switch name {
	case "none":
		return nil
	case "":
		name = "s_a"
	}
	if r.sessions[name] == nil {
		r.sessions[name] = gate.NewSession(name, [32]byte{1, byte(len(r.sessions))}, provenance.Caps{})
	}
	return r.sessions[name]
}

func (r *session) decide(s *gate.Session, call, args, answers string) gate.Decision {
	server, tool, _ := strings.Cut(call, "/")
	c := gate.Call{Server: server, Tool: tool}
	if args != "" {
		c.Arguments = strictjson.Of([]byte(args))
	}
	if answers != "" {
		c.Answers = strictjson.Of([]byte(answers))
	}
	d := r.gates.Decide(gate.Input{
		Policy: r.world.policies[r.profile], Catalogue: r.world.catalogues[r.profile],
		Session: s, Call: c, Time: recordedAt, OwnPaths: r.world.ownPaths,
	})
	if s != nil {
		s.Decided(&d)
	}
	return d
}

func (r *session) judge(c *actCase) answer {
	for i, step := range c.Before {
		s := r.enter(step.Session)
		if step.User.Given() || step.Lapse {
			if s == nil || step.Call != "" || step.User.Given() == step.Lapse {
				return answer{reason: "none", wrong: fmt.Sprintf("step %d is not one thing", i+1)}
			}
			if step.Lapse {
				s.Lapse()
			} else {
				s.Commit(s.Turn(s.Next(), []byte(step.User.S), recordedAt))
			}
			continue
		}
		d := r.decide(s, step.Call, step.Args, step.Answers)
		if d.Allowed() == step.Refused {
			a := verdict(&d)
			a.wrong = fmt.Sprintf("at step %d already", i+1)
			return a
		}
		if !step.Result.Given() && step.Status == "" || !d.Allowed() {
			continue
		}
		res := gate.Result{Status: gate.OK, Time: recordedAt}
		if step.Status != "" {
			res.Status = gate.Status(step.Status)
		}
		if step.Result.Given() {
			res.Value = strictjson.Of([]byte(step.Result.S))
		}
		if s != nil {
			res.Evidence = s.Next()
		}
		o := s.Observe(&d, res)
		if s != nil {
			s.Commit(o)
		}
	}
	s := r.enter(c.Session)
	d := r.decide(s, c.Call, c.Args, c.Answers)
	a := verdict(&d)
	if d.Allowed() && string(d.Arguments.Raw()) != c.Args {
		a.wrong = "other arguments"
	}
	return a
}

// verdict is what a decision comes to: whether the call would be made.
func verdict(d *gate.Decision) answer {
	if d.Allowed() {
		return answer{}
	}
	if rj := d.Outcome.Rejection; rj != nil {
		return rejected(rj, true)
	}
	return answer{reason: "none"}
}

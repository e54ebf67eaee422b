package learn

import (
	"math"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// Session is what a log has of one session, in its order.
type Session struct {
	ID    string
	Key   [32]byte
	Steps []Step
}

// Step is one event of a session: what the user typed, a call, what one answered, what was
// said of one that was not, that turns lapsed, or that closures were lifted. Exactly one is given.
type Step struct {
	Turn   *Turn
	Call   *Call
	Result *Result
	// Settled is what a person said of an act of which no result says whether it happened.
	Settled *Settled
	Lapse   bool
	Reopen  bool // a person lifted what guesses had closed
}

// Turn is what the user typed.
type Turn struct {
	Text []byte
	At   time.Time
	Full bool // there was no room for it
}

// Call is a call as it was judged.
type Call struct {
	Input       gate.Input // without policy, catalogue and session
	Definitions *Definitions
	Made        bool   // it was made, whatever let it
	Again       bool   // not made, and the same call came again later
	Number      uint64 // of its record
	Was         Judged // as it was recorded
}

// Definitions are those of a catalogue. Calls of one catalogue share one.
type Definitions struct{ All []gate.Definition }

// Result is what a call that was made answered.
type Result struct {
	Of   int // the number of the call's step
	Gate gate.Result
}

// Settled is what a person said of a call that was made.
type Settled struct {
	Of       int // the number of the call's step
	Happened bool
}

// seen is told of each call that was judged.
type seen func(step int, in *gate.Input, d *gate.Decision)

// decide is the one place that has a call judged.
func decide(in gate.Input) gate.Decision { return gate.Decide(in) }

// rules are a policy, joined with each catalogue that calls were judged by.
type rules struct {
	policy     *policy.Policy
	catalogues map[*Definitions]*gate.Catalogue
	recorded   bool // what happened beside the calls counts as it did when it was recorded
}

// newRules are those of a policy, but that a replay may ask as often as it likes.
func newRules(p *policy.Policy) *rules {
	tireless, often := *p, math.MaxInt
	tireless.ApprovalsPerSession = &often
	return &rules{policy: &tireless, catalogues: map[*Definitions]*gate.Catalogue{}}
}

func (r *rules) catalogue(d *Definitions) *gate.Catalogue {
	c := r.catalogues[d]
	if c == nil {
		c, _ = gate.NewCatalogue(d.All, r.policy)
		r.catalogues[d] = c
	}
	return c
}

// standing are the places that calls of a replay lower (R38), for one after it.
type standing struct {
	places *provenance.Places
	n      uint64
}

// take lowers what a call would.
func (s *standing) take(d *gate.Decision) {
	if p, ok := d.Lowers(s.places); ok && !s.places.Covers(p) {
		s.n++
		s.places.Lower(s.n, p)
	}
}

// again judges a recorded session by other rules, as if nobody were there to ask. A call
// that was made then goes on with what it answered, by a person's yes where it would wait
// for one now; one that would be refused for good leaves nothing behind. It returns how
// many calls pass, wait and are refused, and the session as it is then. Where at is given,
// what is read is worth what it is after its acts, and not what it was when it was recorded.
func (r *rules) again(s *Session, at *standing, tell seen) (n Count, session *gate.Session) {
	caps := provenance.Caps{}
	if r.recorded {
		caps = provenance.NoCaps
	}
	j := judging{rules: r, Session: gate.NewSession(s.ID, s.Key, caps), at: at, tell: tell, made: map[int]*gate.Decision{}, acts: map[int]*gate.Decision{}}
	for i, step := range s.Steps {
		switch {
		case step.Turn != nil && step.Turn.Full && r.recorded:
			j.Commit(j.NoRoom(j.Next()))
		case step.Turn != nil:
			j.Commit(j.Turn(j.Next(), step.Turn.Text, step.Turn.At))
		case step.Lapse:
			j.Lapse()
		case step.Reopen && r.recorded:
			j.Reopen()
		case step.Call != nil && (r.recorded || !step.Call.Again): // else it counts as it was made last
			j.call(i, step.Call)
		case step.Settled != nil && j.acts[step.Settled.Of] != nil:
			j.Settle(j.acts[step.Settled.Of], step.Settled.Happened)
		case step.Result != nil:
			j.result(step.Result)
		}
	}
	return j.n, j.Session
}

// judging is a session as far as it was judged again.
type judging struct {
	*rules
	*gate.Session
	at         *standing
	tell       seen
	made, acts map[int]*gate.Decision // by the steps of their calls; made are those without an answer
	n          Count
}

func (j *judging) call(i int, c *Call) {
	in := c.Input
	if !j.recorded && away(j.policy, c) {
		return // another policy's
	}
	in.Policy, in.Catalogue, in.Session, in.Asked, in.Shadow = j.policy, j.catalogue(c.Definitions), j.Session, gate.NotAsked, in.Shadow && j.recorded
	d := decide(in)
	if j.n.add(&d); j.tell != nil {
		j.tell(i, &in, &d)
	}
	if ask := d.Ask(); ask != nil && c.Made {
		j.Commit(j.Approve(j.Next(), gate.Approval{Act: ask.Act, Covers: ask.Covers(), Yes: true, By: "a replay", Label: writ.User, At: in.Time}))
		d = decide(in)
	}
	j.Decided(&d)
	if d.Allowed() && c.Made {
		if j.made[i], j.acts[i] = &d, &d; j.at != nil {
			j.at.take(&d)
		}
	}
}

func (j *judging) result(r *Result) {
	d := j.made[r.Of]
	if d == nil {
		return
	}
	delete(j.made, r.Of)
	answered := r.Gate
	if answered.Evidence = j.Next(); j.at != nil {
		answered.Places, answered.Through, answered.Own = j.at.places, j.at.n, 0
	}
	j.Commit(j.Observe(d, answered))
}

// of are the sessions that a policy has something to say of, and how many others there
// are: those whose calls all went to servers that it does not name.
func of(p *policy.Policy, all []*Session) (out []*Session, elsewhere int) {
	for _, s := range all {
		here, others := false, false
		for _, step := range s.Steps {
			if step.Call != nil && step.Call.Input.Call.Server != "" {
				is := away(p, step.Call)
				here, others = here || !is, others || is
			}
		}
		if others && !here {
			elsewhere++
		} else {
			out = append(out, s)
		}
	}
	return out, elsewhere
}

// away reports whether a call went to a server that a policy does not name.
func away(p *policy.Policy, c *Call) bool {
	server := c.Input.Call.Server
	return server != "" && !p.Knows(server)
}

// Count is what becomes of calls.
type Count struct {
	Passed  int `json:"passed"`
	Asked   int `json:"asked"`
	Refused int `json:"refused"`
}

func (n *Count) add(d *gate.Decision) {
	switch {
	case d.Allowed():
		n.Passed++
	case d.Ask() != nil:
		n.Asked++
	default:
		n.Refused++
	}
}

func (n *Count) plus(o Count) {
	n.Passed, n.Asked, n.Refused = n.Passed+o.Passed, n.Asked+o.Asked, n.Refused+o.Refused
}

// all judges every session.
func (r *rules) all(sessions []*Session) (n Count) {
	for _, s := range sessions {
		one, _ := r.again(s, nil, nil)
		n.plus(one)
	}
	return n
}

// later judges every session as if the same work were done once more: after all that
// its calls sent, which is read back with less trust (R38). end is told of each session
// as it was the first time.
func (r *rules) later(sessions []*Session, end func(*gate.Session)) (n Count) {
	at := &standing{places: provenance.NewPlaces()}
	for _, s := range sessions {
		_, session := r.again(s, at, nil)
		end(session)
	}
	for _, s := range sessions {
		one, _ := r.again(s, at, nil)
		n.plus(one)
	}
	return n
}

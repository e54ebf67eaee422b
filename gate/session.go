package gate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// The bounds of R24.
const (
	guessesPerPointer = 5
	guessesPerSession = 50
)

// Session is the scope in which evidence counts: the fold of one session's
// records. It is made only of what Decided and Commit are given, in the order
// of the log, so that folding the log again gives the same session.
//
// Decide and Observe read it; Decided, Commit, Settle and Reopen change it. Calls that
// change it must not run beside any other. A result counts only for a decision
// that this session was given by Decided, and only once.
type Session struct {
	id     string
	keyed  hash.Cloner `snapshot:"-"` // the digests of bytes in records, begun; it is never written to
	self   string      // the session in a decision's basis: its id is not unique, and its key stays here
	ledger *provenance.Ledger
	next   uint32
	mode   mode
	full   bool // something it was shown found no room

	// unasked counts the values taken in of results of which no contract says anything.
	unasked int

	// templates are the listed URI templates of each server (R32).
	templates map[string][]string

	// open counts the allowed calls that were decided and have no result yet.
	open map[callKey]int

	// done holds the acts that are not idempotent (R23), by Decision.basis.act, in the
	// order in which they were made, or turned out to have happened.
	done map[string][]acted

	// roots are the results from which others were reached by seen links (R20).
	roots map[uint32]uint32
	// fetches counts the links of a result that were followed to one host (R20).
	fetches map[fetched]int

	// visits are the calls that say where other acts are done, the latest last (R28), and moves
	// how many calls may have led elsewhere.
	visits []visit
	moves  int

	// page is the newest listing of a page, nil once its server was called otherwise than to type, and clicked
	// what was clicked on there by the user's words (R28).
	page    *page
	clicked []click

	// spending is what was taken from budgets (R27).
	spending map[string][]spending

	// approvals are a person's answers that were not used, by Ask.Act, and asked
	// the questions that were put to one, by Ask.Question.
	approvals map[string]answer
	asked     map[string]bool

	// refused are the values guessed at, by the pointer of a tool (R24).
	refused map[string]*guesses
}

// guesses are the different values that were refused at one pointer since its
// set last had news, by keyed digest.
type guesses struct {
	set    string
	values map[string]bool
}

// guess is one refused value whose refusal tells what a set does not hold.
type guess struct{ pointer, set, value string }

// mode is whether a session shadows; the first decision fixes it.
type mode uint8

const (
	undecided mode = iota
	enforcing
	shadowing
)

// fits reports whether evidence of a session in this mode counts for a decision
// made with or without shadow. What a shadow session let pass vouches nowhere
// else; an enforcing session that is asked to shadow goes on enforcing.
func (m mode) fits(shadow bool) bool { return m != shadowing || shadow }

// mayShadow reports whether a decision in this session may shadow. A call
// without a session may.
func (s *Session) mayShadow() bool { return s == nil || s.mode != enforcing }

// NewSession returns a session without evidence. The id is its public name,
// "s_…"; the key keeps digests in records from being guessed and values from
// being aimed at the ledger's index, and never leaves the session.
func NewSession(id string, key [32]byte, caps provenance.Caps) *Session {
	s := &Session{
		id: id, keyed: begun(key), ledger: provenance.NewLedger(key, caps), next: 1,
		templates: map[string][]string{}, open: map[callKey]int{}, done: map[string][]acted{}, refused: map[string]*guesses{},
		fetches: map[fetched]int{}, roots: map[uint32]uint32{}, approvals: map[string]answer{}, asked: map[string]bool{}, spending: map[string][]spending{},
	}
	s.self = s.digest([]byte(id))
	return s
}

// Bound sets the caps of the evidence that comes from here on; what is there stays.
func (s *Session) Bound(caps provenance.Caps) { s.ledger.Bound(caps) }

// Used returns how much of its caps the session's evidence takes, in percent of the
// one that is nearer.
func (s *Session) Used() int { return s.ledger.Used() }

// begun is a keyed digest of exact bytes before the bytes.
func begun(key [32]byte) hash.Cloner {
	h := hmac.New(sha256.New, key[:])
	h.Write([]byte("writ/gate/bytes\x00"))
	return h.(hash.Cloner)
}

// callKey identifies an allowed call by what was decided, so that a session
// folded anew from the log knows the calls that its forerunner decided.
type callKey struct {
	session, server, tool string
	method                policy.Method
	effect                policy.Effect
	number                uint32
	time                  int64
	arguments, answers    string
}

func (d *Decision) key() callKey {
	return callKey{
		d.basis.self, d.Call.Server, d.Call.Tool, d.Call.Method, d.Effect,
		d.basis.number, d.basis.time.UnixMicro(), d.basis.arguments, d.basis.answers,
	}
}

// awaits reports whether the call was decided in this session, was folded in by
// Decided and has no result yet.
func (s *Session) awaits(d *Decision) bool { return s.open[d.key()] > 0 }

// Next returns the number the next evidence gets. Numbers are dense: each
// result that Commit is given takes one, whatever it is worth.
func (s *Session) Next() uint32 { return s.next }

// Facts returns how many facts the session holds.
func (s *Session) Facts() int { return s.ledger.Len() }

// Bytes estimates the memory the session's evidence takes.
func (s *Session) Bytes() int64 { return s.ledger.Bytes() }

// Mints is provenance.Ledger.Mints: whether what was seen of an output can have been given
// by its server alone.
func (s *Session) Mints(server, tool, rule string) (may, not bool) {
	return s.ledger.Mints(server, tool, rule)
}

// Decided folds a decision in, once it is durable and before the call is made:
// a refused guess counts for R24, an allowed call taints what comes later (R4).
// A decision that was not made in this session changes nothing.
func (s *Session) Decided(d *Decision) {
	if d == nil || d.basis.self != s.self {
		return
	}
	if s.mode == undecided {
		if s.mode = enforcing; d.basis.shadow {
			s.mode = shadowing
		}
	}
	if d.Allowed() {
		s.passed(d)
		return
	}
	if d.asked == writ.ApprovalPending || d.asked == writ.ApprovalExpired {
		s.asked[d.basis.asked] = true
	}
	for _, g := range d.basis.guesses {
		at := s.refused[g.pointer]
		if at == nil {
			at = &guesses{set: g.set, values: map[string]bool{}}
			s.refused[g.pointer] = at
		}
		at.values[g.value] = true
	}
}

// passed folds in a call that is made now: what it sends lowers what comes back, and what it
// takes is spent.
func (s *Session) passed(d *Decision) {
	leading := s.leading(d)
	s.open[d.key()]++
	if d.Call.Server != policy.OwnServer { // what the memory gives back has the label it was kept with (R35)
		d.placed = s.ledger.Sent(d.Call.Server, toolOf(d.Call), d.Effect.Gated(), d.args)
	}
	if d.Effect.Gated() {
		s.ledger.Made(d.args)
		s.ledger.Spend(d.args)
	}
	d.acts = s.ledger.Acts()
	if d.open {
		s.opened(d)
	}
	path, goes := d.policy.Goes(d.Call.Server, toolOf(d.Call), d.Effect)
	if goes || d.Effect.Gated() || leading {
		s.moves++
	}
	if d.moves = s.moves; leading {
		d.moves = 0 // where the browser is by its result is where it was, perhaps
	}
	s.clicked = append(s.clicked, d.basis.clicks...)
	if s.page != nil && s.page.server == d.Call.Server && !d.basis.types {
		s.page = nil
	}
	if goes {
		s.visit(d.Call.Server+"/"+toolOf(d.Call), d.Effect, d.Call.Arguments, path)
	}
	if d.basis.act != "" {
		s.done[d.basis.act] = append(s.done[d.basis.act], acted{call: d.key(), fresh: s.next})
	}
	for _, f := range d.basis.fetches {
		s.fetches[f]++
	}
	for _, take := range d.basis.spends {
		s.spend(take)
	}
	for _, act := range d.basis.approvals {
		delete(s.approvals, act)
	}
}

// opened notes that what an act answers or adds to is no more closed than what it chose
// from (R28).
func (s *Session) opened(d *Decision) {
	for _, o := range d.rules {
		if o.Collection == "" {
			continue
		}
		var at []string
		for _, a := range d.args {
			if path, _, why := provenance.Canonical(provenance.Path, a.Value); o.Creates && a.Names && a.New && a.Collection == o.Collection && a.Type == provenance.Path && why == "" {
				at = append(at, path)
			}
		}
		s.ledger.Opened(o.Collection, "", at)
	}
	for _, a := range d.args {
		if a.Makes {
			name, _ := a.Value.Text()
			s.ledger.Opened(a.Collection, name, nil)
		}
	}
}

// guessed returns how many guesses count, over all pointers.
func (s *Session) guessed() (n int) {
	for _, g := range s.refused {
		n += len(g.values)
	}
	return n
}

// Commit folds an observation in, once its result is durable and before the
// client gets it. A fact counts from the next decision on. An observation that
// another session made, or of a call that has its result already, changes
// nothing.
func (s *Session) Commit(o Observation) {
	if o.session != s {
		return
	}
	if o.call != nil {
		switch s.open[*o.call] {
		case 0:
			return
		case 1:
			delete(s.open, *o.call)
		default:
			s.open[*o.call]--
		}
	}
	if o.evidence >= s.next {
		s.next = o.evidence + 1
	}
	s.full = s.full || o.Why == WhyFull
	if o.act != "" {
		s.ended(&o)
	}
	if o.root > 0 {
		s.roots[o.evidence] = o.root
	}
	if o.approval != nil {
		s.approvals[o.approval.Act] = *o.approval
		if !o.approval.Yes {
			s.ledger.Deny()
		}
		s.asked[s.question(o.approval.Act, o.approval.Covers)] = true
	}
	if o.turn != nil {
		_ = s.ledger.CommitTurn(o.turn) // full: it vouches for nothing
	}
	if o.pending == nil || s.ledger.Commit(o.pending) != nil {
		return
	}
	if o.place != nil && o.moves == s.moves {
		s.visited(*o.place)
		if o.page != nil || s.page != nil && s.page.server == o.place.tool {
			s.page = o.page
		}
	}
	s.unasked += o.unasked
	for _, at := range o.pending.News() {
		// What was refused for want of it may be asked again.
		maps.DeleteFunc(s.refused, func(_ string, g *guesses) bool { return slices.Contains(setsOf(at), g.set) })
	}
	if o.list != nil {
		for _, t := range o.list.templates {
			if !slices.Contains(s.templates[o.server], t) {
				s.templates[o.server] = append(s.templates[o.server], t)
			}
		}
	}
}

// Lapse makes the user's turns so far vouch for nothing any more: the host
// cannot tell this conversation from the next, and too much time went by. It is
// an event of the session like any other, so it stands in the log.
func (s *Session) Lapse() { s.ledger.LapseTurns() }

// Turns returns how many of the user's turns vouch.
func (s *Session) Turns() int { return s.ledger.Turns() }

// Reopen lifts the closures of R24. Only a person may cause it.
func (s *Session) Reopen() {
	clear(s.refused)
}

// digest is a keyed digest of exact bytes, "" for nil.
func (s *Session) digest(b []byte) string {
	if b == nil {
		return ""
	}
	h, err := s.keyed.Clone() // of the standard library's, which has no error
	if err != nil {
		panic("gate: a digest cannot be begun: " + err.Error())
	}
	h.Write(b)
	var sum [sha256.Size]byte
	return string(hex.AppendEncode(make([]byte, 0, 2*sha256.Size), h.Sum(sum[:0])))
}

// listing is what a listing of R32 adds to a session beside facts.
type listing struct{ templates []string }

// templatesIn returns the URI templates of a resources/templates/list result.
func templatesIn(result strictjson.Value) []string {
	var out []string
	for _, e := range result.Get("resourceTemplates").Elements() {
		if t, ok := e.Get("uriTemplate").Text(); ok {
			out = append(out, strings.Clone(t)) // kept as long as the session
		}
	}
	return out
}

// Worth returns what a leaf of recorded evidence is worth in this session: its
// label as R4 and R5 left it, its type and its collection. ok is false where
// the evidence vouches for nothing.
func (s *Session) Worth(evidence uint32, server, tool, pointer string, v strictjson.Value) (f provenance.Fact, ok bool) {
	if s == nil {
		return f, false
	}
	return s.ledger.Worth(evidence, server, tool, pointer, v)
}

package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/certificate"
	"github.com/writ-project/writ/internal/learn"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// decide is the one place that calls gate.Decide: for the door, which acts on
// the answer, and for a Replayer, which repeats what was decided.
func decide(in gate.Input) gate.Decision { return gate.Decide(in) }

// ErrReplay says that a record does not follow from what it rests on.
var ErrReplay = errors.New("the recorded decision does not follow from what it rests on")

// values is what a Replayer needs of a store beside the records it is handed.
type values interface {
	Blob(ctx context.Context, name audit.Digest) ([]byte, error)
	Value(ctx context.Context, session string, n uint64, name string) ([]byte, error)
	placesStore
}

// Replayer makes a session of its records again, deciding every decision anew and
// comparing: the same code for a restart and for `writ audit verify`. No value
// of a session is erased but all, by a record that says so (audit.KindRedact): else
// one that is missing is audit.ErrAltered.
type Replayer struct {
	Tally
	store        values
	rules        *Rulesets
	session      *gate.Session
	data         openData
	opened       time.Time
	open         map[uint64]*gate.Decision // allowed decisions without a result yet
	unsettled    map[uint64]*gate.Decision // acts of which no record says whether they happened
	results      []resultOf                // in the order of the log
	conversation string                    // as session.conversation
	own          string                    // as session.own
	halted       *writ.Rejection           // the input policy ended the session's calls
	screen       *screen.Screen            // the gateway's; whoever checks a log has none
	screenedBy   [sha256.Size]byte         // its name
	places       map[string]*places        // by namespace
	certifies    bool
	certificates *certificate.Session // nil unless they are to be checked
	learns       *recording           // nil unless it is to be learned from
	index        *evidenceIndex       // of the snapshot, nil for none
	from         uint64               // the record of the snapshot that it goes on from, 0 for none
	redacted     bool                 // the values of the session are gone, by its last record
	blind        bool                 // a decision was skipped, so what follows cannot be made again
}

// resultOf is the number of the record that has some evidence.
type resultOf struct {
	evidence uint32
	n        uint64
}

// Tally counts what came of the records of sessions that were made again.
type Tally struct {
	Replayed     int `json:"replayed"`              // decisions that were decided again and matched
	Certificates int `json:"certificates"`          // of accepted acts, which hold for a verifier that shares no matching code with the gate
	Grounded     int `json:"grounded"`              // summaries whose quotes were found again
	Skipped      int `json:"skipped"`               // decisions of another engine, and what rests on them: not proven
	Redacted     int `json:"redacted"`              // decisions whose session is redacted: signed, and not made again
	Unfinished   int `json:"unfinished_redactions"` // redactions that were cut off before the values went
	Unended      int `json:"-"`                     // redacted sessions of which the record that says so was not among those
}

// Add adds what another counted.
func (t *Tally) Add(o Tally) {
	t.Replayed += o.Replayed
	t.Certificates += o.Certificates
	t.Grounded += o.Grounded
	t.Skipped += o.Skipped
	t.Redacted += o.Redacted
	t.Unfinished += o.Unfinished
	t.Unended += o.Unended
}

// Rulesets are the policies, catalogues and places of Writ's own that recorded calls
// were judged by, each read once for many sessions. They may be used side by side.
type Rulesets struct {
	store values

	mu       sync.Mutex
	rulesets map[[2]string]*ruleset
	rules    map[string]*recordedRules // by the name of their blob
	fleets   map[string]*recordedFleet // the same
}

// NewRulesets returns none yet: they are read when a record names them.
func NewRulesets(store values) *Rulesets {
	return &Rulesets{store: store, rulesets: map[[2]string]*ruleset{}, rules: map[string]*recordedRules{}, fleets: map[string]*recordedFleet{}}
}

const maxRulesets = 16

// Replayer returns one of a session's records, from the first. What found room when it was
// recorded finds it again.
func (rs *Rulesets) Replayer() *Replayer {
	return &Replayer{store: rs.store, rules: rs, open: map[uint64]*gate.Decision{}, unsettled: map[uint64]*gate.Decision{}, places: map[string]*places{}}
}

// Step folds one record. It returns ErrReplay, wrapped, when a decision comes
// out otherwise than recorded.
func (r *Replayer) Step(ctx context.Context, rec *audit.Record, it *audit.Item) error {
	if r.redacted {
		return r.without(rec, it)
	}
	for _, c := range rec.Commit {
		if _, ok := it.Value(c.Name); !ok {
			var err error
			if r.redacted, err = isRedacted(ctx, r.store, rec.Session); err != nil {
				return err
			}
			if r.redacted = r.redacted && rec.N == 1; r.redacted { // all go, and the first record has one
				r.Unended = 1
				return r.without(rec, it)
			}
			return &audit.AlteredError{Session: rec.Session, N: rec.N, Fault: audit.ValueMissing}
		}
	}
	if isPlaces(rec.Session) { // it can be read, or not
		return (&places{all: provenance.NewPlaces()}).fold(rec, it)
	}
	switch rec.Kind {
	case audit.KindOpen:
		r.opened = rec.Time
		if err := json.Unmarshal(rec.Data, &r.data); err != nil {
			return fmt.Errorf("open: %w", err)
		}
		if r.data.Anonymous {
			return nil
		}
		var k [32]byte
		if key, _ := it.Value(valueKey); len(key) == len(k) {
			copy(k[:], key)
		}
		r.session = gate.NewSession(rec.Session, k, provenance.NoCaps)
		r.learns.opened(rec.Session, k)
		if r.certifies {
			r.certificates = certificate.New(rec.Session, k)
		}
	case audit.KindDecision:
		return r.decision(ctx, rec, it)
	case audit.KindResult:
		return r.result(ctx, rec, it)
	case KindTurn:
		return r.turn(rec, it)
	case KindApproval:
		return r.approval(rec)
	case KindLapse:
		var data lapseData
		if err := json.Unmarshal(rec.Data, &data); err != nil {
			return fmt.Errorf("lapse: %w", err)
		}
		r.conversation = cmp.Or(data.Conversation, r.conversation)
		if r.session != nil {
			r.session.Lapse()
			r.learns.add(learn.Step{Lapse: true})
			if r.certificates != nil {
				r.certificates.Lapse()
			}
		}
	case KindSettle:
		return r.settled(rec)
	case KindReopen:
		if r.session != nil {
			r.session.Reopen()
			r.learns.add(learn.Step{Reopen: true})
		}
	case KindSummary:
		return r.summary(ctx, rec, it)
	case audit.KindRedact:
		if _, err := r.store.Value(ctx, rec.Session, 1, valueKey); err == nil {
			r.Unfinished++
		}
	}
	return nil
}

// without counts a record of a session whose values are gone. They go all at once.
func (r *Replayer) without(rec *audit.Record, it *audit.Item) error {
	if len(it.Values) > 0 {
		return &audit.AlteredError{Session: rec.Session, N: rec.N, Fault: audit.ValueMissing}
	}
	switch rec.Kind {
	case audit.KindDecision:
		r.Redacted++
	case audit.KindRedact:
		r.Unended = 0
	}
	return nil
}

func (r *Replayer) decision(ctx context.Context, rec *audit.Record, it *audit.Item) error {
	data, err := readDecision(rec.Data)
	if err != nil {
		return err
	}
	if data.Rules == "" && data.Engine == Engine {
		return fmt.Errorf("%w: a decision of this engine names its rules (n %d)", ErrReplay, rec.N)
	} else if data.Rules == "" { // of before, and so of another engine
		r.skips(data.Engine)
		return nil
	}
	w, err := r.rules.rulesOf(ctx, data.Rules)
	if err != nil {
		return err
	}
	if r.skips(w.Engine) {
		return nil
	}
	recorded, _ := it.Value(valueCall)
	c, err := readCall(recorded, &data)
	if err != nil {
		return err
	}
	r.own = cmp.Or(c.own, r.own)
	own, err := r.rules.fleetOf(ctx, r.own)
	if err != nil {
		return err
	}
	return r.again(rec, c.input(w.ruleset, own, rec.Time), !c.sessionless, w.ruleset, data.Continues, func(in *gate.Input, d *gate.Decision, state *gate.Record) bool {
		said, call := putDecision(data.Rules, own.statedOwn, c.own, in, d, state, data.Continues)
		return bytes.Equal(call, recorded) && bytes.Equal(said.append(make([]byte, 0, len(rec.Data))), rec.Data)
	})
}

// skips reports whether a decision of an engine is passed over: what another one made of it
// is not known, nor what rests on that.
func (r *Replayer) skips(engine string) bool {
	if r.blind = r.blind || engine != Engine; r.blind {
		r.Skipped++
	}
	return r.blind
}

// again makes a decision again, with the session or without; same reports whether it came
// out as it is recorded.
func (r *Replayer) again(rec *audit.Record, input gate.Input, session bool, w *ruleset, continues uint64, same func(*gate.Input, *gate.Decision, *gate.Record) bool) error {
	if session {
		input.Session = r.session
	}
	d := decide(input)
	state := d.State()
	if !same(&input, &d, state) {
		return fmt.Errorf("%w (n %d)", ErrReplay, rec.N)
	}
	r.Replayed++
	if r.session != nil && session {
		r.session.Decided(&d)
		r.learns.call(rec.N, input, w, &d)
	}
	if d.Allowed() {
		r.open[rec.N] = &d
		if input.Session != nil {
			if d.Effect.Gated() {
				delete(r.unsettled, continues)
				r.unsettled[rec.N] = &d
			}
			return r.certify(rec, &input, state, w)
		}
	}
	return nil
}

// Bytes estimates the memory it takes, in bytes.
func (r *Replayer) Bytes() int64 {
	const each, result, decision = 8 << 10, 20, 3 << 10
	n := int64(each + result*len(r.results) + decision*(len(r.open)+len(r.unsettled)))
	if r.session != nil {
		n += r.session.Bytes()
	}
	if r.certificates != nil {
		n += r.certificates.Bytes()
	}
	return n
}

// Blind reports that a decision is another engine's, so that the session can be
// read and verified but must not go on.
func (r *Replayer) Blind() bool { return r.blind }

// notNil copies b so that what was there stays distinct from what was not.
func notNil(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

func (r *Replayer) result(ctx context.Context, rec *audit.Record, it *audit.Item) error {
	data, err := readResult(rec.Data)
	if err != nil {
		return err
	}
	if data.Evidence != 0 {
		r.results = append(r.results, resultOf{data.Evidence, rec.N})
	}
	d, ok := r.open[data.Decision]
	if !ok && data.Decision <= r.from {
		return errFromStart
	}
	if !ok || r.session == nil || r.blind {
		return nil
	}
	delete(r.open, data.Decision)
	if heard(gate.Status(data.Status)) {
		delete(r.unsettled, data.Decision)
	}
	res := gate.Result{Evidence: data.Evidence, Status: gate.Status(data.Status), Time: rec.Time, Recalled: data.Recalled}
	if b, ok := it.Value(valueResult); ok {
		res.Value, _ = strictjson.Parse(notNil(b), strictjson.Result) // an item is not kept, a place is
	}
	res.Full, res.Crowded = !data.Admissible && data.Why == gate.WhyFull, !data.Admissible && data.Why == gate.WhyCrowded
	if at := data.Places; at != nil {
		p := r.places[at.Namespace]
		if p == nil {
			p = newPlaces(r.store, at.Namespace)
			r.places[at.Namespace] = p
		}
		if err := p.upTo(ctx, at.N); err != nil {
			return fmt.Errorf("%w (n %d): %w", ErrReplay, rec.N, err)
		}
		res.Places, res.Through, res.Own = p.all, at.N, at.Own
	}
	obs := r.session.Observe(d, res)
	if obs.Admissible != data.Admissible {
		return fmt.Errorf("%w: the result's worth (n %d)", ErrReplay, rec.N)
	}
	r.session.Commit(obs)
	r.learns.result(data.Decision, res)
	return r.certifyResult(rec, &data, res.Value)
}

// blob is a recorded blob by its name in hex.
func (rs *Rulesets) blob(ctx context.Context, hex string) ([]byte, error) {
	d, err := audit.ParseDigest(hex)
	if err != nil {
		return nil, err
	}
	b, err := rs.store.Blob(ctx, d)
	if errors.Is(err, audit.ErrNotFound) { // it is never erased
		err = fmt.Errorf("%w: %w", audit.ErrAltered, err)
	}
	return b, err
}

// Pinned is the definition that a pin of a server's tool is of, as it was listed when one of these
// records was judged, of so many rulesets as are held at once; nil for none.
func (rs *Rulesets) Pinned(ctx context.Context, records iter.Seq2[audit.Item, error], server, pin string) ([]byte, error) {
	var named []string // rules, by when they were named last
	err := turns(records, func(_ *audit.Record, rules string) {
		named = append(slices.DeleteFunc(named, func(r string) bool { return r == rules }), rules)
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(named)
	for _, rules := range named[:min(len(named), maxRulesets)] {
		_, all, err := rs.listed(ctx, rules)
		if err != nil {
			return nil, err
		}
		for _, d := range all {
			if d.Server == server && d.Kind == gate.ToolKind && gate.PinOf(server, d.Raw) == pin {
				return d.Raw, nil
			}
		}
	}
	return nil, nil
}

// turns tells of each decision that was judged by other rules than the one before it.
func turns(records iter.Seq2[audit.Item, error], f func(rec *audit.Record, rules string)) error {
	last := ""
	for it, err := range records {
		if err != nil {
			return err
		}
		rec, err := audit.ParseRecord(it.Leaf)
		if err != nil {
			return err
		}
		if rec.Kind != audit.KindDecision {
			continue
		}
		if d, err := readDecision(rec.Data); err == nil && d.Rules != "" && d.Rules != last {
			last = d.Rules
			f(rec, last)
		}
	}
	return nil
}

// listed are the rules of that name, and the definitions that calls were judged by.
func (rs *Rulesets) listed(ctx context.Context, rules string) (s *statedRules, all []gate.Definition, err error) {
	if s, err = rs.readRules(ctx, rules); err != nil {
		return nil, nil, err
	}
	b, err := rs.blob(ctx, s.Definitions)
	if err != nil {
		return nil, nil, err
	}
	all, err = decodeDefinitions(b)
	return s, all, err
}

// Turn is a call from which on calls were judged by other rules than those before it.
type Turn struct {
	Session string
	N       uint64
	Time    time.Time
	Policy  []byte            // its text
	Digest  string            // the SHA-256 of that
	Pins    map[string]string // that the policy has, by tools
	Listed  map[string]string // the pins of what servers listed, by tools
}

// Turns are the newest so many of those among records, in their order. Of the first nothing is
// known that was before.
func (rs *Rulesets) Turns(ctx context.Context, records iter.Seq2[audit.Item, error], most int) (out []Turn, err error) {
	var named []string
	err = turns(records, func(rec *audit.Record, rules string) {
		out, named = append(out, Turn{Session: rec.Session, N: rec.N, Time: rec.Time}), append(named, rules)
	})
	if err != nil {
		return nil, err
	}
	left := max(0, len(out)-most)
	out, named = out[left:], named[left:]
	read := map[string]Turn{}
	for i, rules := range named {
		t, known := read[rules]
		if !known {
			s, all, err := rs.listed(ctx, rules)
			if err != nil {
				return nil, err
			}
			if t.Policy, err = rs.blob(ctx, s.Policy); err != nil {
				return nil, err
			}
			t.Digest, t.Pins, t.Listed = s.Policy, map[string]string{}, map[string]string{}
			if p, _ := policy.Parse("recorded policy", t.Policy); p != nil {
				for id, c := range p.Contracts {
					t.Pins[id] = c.Pin
				}
			}
			for _, d := range all {
				if name, ok := strictjson.Of(d.Raw).Get("name").Text(); ok && d.Kind == gate.ToolKind {
					t.Listed[d.Server+"/"+name] = gate.PinOf(d.Server, d.Raw)
				}
			}
			read[rules] = t
		}
		t.Session, t.N, t.Time = out[i].Session, out[i].N, out[i].Time
		out[i] = t
	}
	return out, nil
}

func (rs *Rulesets) rulesetOf(ctx context.Context, rules, catalogue string) (*ruleset, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	k := [2]string{rules, catalogue}
	if w := rs.rulesets[k]; w != nil {
		return w, nil
	}
	src, err := rs.blob(ctx, rules)
	if err != nil {
		return nil, fmt.Errorf("the recorded policy: %w", err)
	}
	p, faults := policy.Parse("recorded policy", src)
	if len(faults) > 0 {
		return nil, errors.New("the recorded policy is not accepted any more")
	}
	w := &ruleset{policy: p}
	for of, had := range rs.rulesets {
		if of[1] == catalogue { // under a policy before a line was kept
			w.definitions, w.catalogue = had.definitions, had.catalogue
			break
		}
	}
	if w.catalogue == nil {
		defs, err := rs.blob(ctx, catalogue)
		if err != nil {
			return nil, fmt.Errorf("the recorded catalogue: %w", err)
		}
		if w.definitions, err = decodeDefinitions(defs); err != nil {
			return nil, err
		}
	}
	w.catalogue, _ = w.catalogue.Renewed(w.definitions, p)
	hold(rs.rulesets, k, w)
	return w, nil
}

// hold keeps what was read, and not without end.
func hold[K comparable, V any](all map[K]V, key K, value V) {
	if len(all) >= maxRulesets {
		clear(all)
	}
	all[key] = value
}

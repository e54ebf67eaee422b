package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// Names of the values records commit to.
const (
	valueKey       = "key"       // open: the ledger key, 32 bytes
	valueInput     = "input"     // decision: what it rested on beside the arguments
	valueArguments = "arguments" // decision: the exact bytes that were judged
	valueAnswers   = "answers"   // decision: the answers given inside the call
	valueDecision  = "decision"  // decision: gate.Decision.Record
	valueResult    = "result"    // result: the exact bytes of the result member
)

// Engine names the version of the rules a decision was made by. It changes
// with every change that could change a decision.
const Engine = gate.Engine

// decisionData is the data of a decision's record: what may be read when every
// value was erased. Names are those of the catalogue, never a caller's.
type decisionData struct {
	Server    string   `json:"server,omitempty"`
	Tool      string   `json:"tool,omitempty"`
	Method    string   `json:"method"`
	Effect    []string `json:"effect"`
	Status    string   `json:"status"`
	Code      string   `json:"code,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Shadow    bool     `json:"shadow,omitempty"`
	Policy    string   `json:"policy"`    // SHA-256 of the policy blob
	Catalogue string   `json:"catalogue"` // SHA-256 of the catalogue blob
	Engine    string   `json:"engine"`
}

// resultData is the data of a result's record.
type resultData struct {
	Decision   uint64 `json:"decision"` // n of the decision that allowed it
	Status     string `json:"status"`
	Evidence   uint32 `json:"evidence,omitempty"` // its ev number; 0 when it can never be evidence
	Admissible bool   `json:"admissible"`
	Why        string `json:"why,omitempty"`
	// Recalled says which leaves of an answer of the governed memory stand in
	// what it captured (R35).
	Recalled []provenance.Recalled `json:"recalled,omitempty"`
	// Places says which lowered places counted (R38), nil where there was none.
	Places *placesAt `json:"places,omitempty"`
}

// inputValue is the value "input" of a decision.
type inputValue struct {
	Server     string              `json:"server"`
	Tool       string              `json:"tool"`
	Method     string              `json:"method"`
	Shadow     bool                `json:"shadow,omitempty"`
	Session    bool                `json:"session"`
	OwnPaths   []string            `json:"own_paths,omitempty"`
	Programs   []string            `json:"programs,omitempty"`
	Bases      []string            `json:"bases,omitempty"`
	Elsewhere  bool                `json:"elsewhere,omitempty"`
	Resolved   map[string][]string `json:"resolved,omitempty"`
	Unresolved []string            `json:"unresolved,omitempty"`
}

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
// of a session is ever erased, so one that is missing is audit.ErrAltered.
type Replayer struct {
	store    values
	caps     provenance.Caps
	session  *gate.Session
	data     openData
	opened   time.Time
	rulesets map[[2]string]*ruleset
	open     map[uint64]gate.Decision // allowed decisions without a result yet
	Replayed int                      // decisions that were decided again and matched
	Grounded int                      // summaries whose quotes were found again
	Skipped  int                      // decisions of another engine, and what rests on them
	results  map[uint32]uint64        // evidence number to record number
	halted   *writ.Rejection          // the input policy ended the session's calls
	screen   *screen.Screen           // the gateway's; whoever checks a log has none
	places   map[string]*places       // by namespace
	blind    bool                     // a decision was skipped, so what follows cannot be made again
}

// NewReplayer returns a Replayer of a session's records, from the first.
func NewReplayer(store values, caps provenance.Caps) *Replayer {
	return &Replayer{store: store, caps: caps, rulesets: map[[2]string]*ruleset{}, open: map[uint64]gate.Decision{}, results: map[uint32]uint64{}, places: map[string]*places{}}
}

// Step folds one record. It returns ErrReplay, wrapped, when a decision comes
// out otherwise than recorded.
func (f *Replayer) Step(ctx context.Context, rec *audit.Record, it *audit.Item) error {
	for _, c := range rec.Commit {
		if _, ok := it.Value(c.Name); !ok {
			return &audit.AlteredError{Session: rec.Session, N: rec.N, Fault: audit.ValueMissing}
		}
	}
	if isPlaces(rec.Session) {
		return checkPlaces(rec, it)
	}
	switch rec.Kind {
	case audit.KindOpen:
		f.opened = rec.Time
		if err := json.Unmarshal(rec.Data, &f.data); err != nil {
			return fmt.Errorf("open: %w", err)
		}
		if f.data.Anonymous {
			return nil
		}
		var k [32]byte
		if key, _ := it.Value(valueKey); len(key) == len(k) {
			copy(k[:], key)
		}
		f.session = gate.NewSession(rec.Session, k, f.caps)
	case audit.KindDecision:
		return f.decision(ctx, rec, it)
	case audit.KindResult:
		return f.result(ctx, rec, it)
	case KindTurn:
		return f.turn(rec, it)
	case KindLapse:
		if f.session != nil {
			f.session.Lapse()
		}
	case KindReopen:
		if f.session != nil {
			f.session.Reopen()
		}
	case KindSummary:
		return f.summary(ctx, rec, it)
	}
	return nil
}

func (f *Replayer) decision(ctx context.Context, rec *audit.Record, it *audit.Item) error {
	var data decisionData
	if err := json.Unmarshal(rec.Data, &data); err != nil {
		return fmt.Errorf("decision: %w", err)
	}
	if f.blind || data.Engine != Engine {
		// What another engine made of it is not known, nor what rests on that.
		f.blind = true
		f.Skipped++
		return nil
	}
	rawInput, _ := it.Value(valueInput)
	recorded, _ := it.Value(valueDecision)
	var in inputValue
	if err := json.Unmarshal(rawInput, &in); err != nil {
		return fmt.Errorf("decision: %w", err)
	}
	w, err := f.rulesetOf(ctx, data.Policy, data.Catalogue)
	if err != nil {
		return err
	}
	input := gate.Input{
		Policy: w.policy, Catalogue: w.catalogue,
		Call: gate.Call{Server: in.Server, Tool: in.Tool, Method: policy.Method(in.Method)},
		Time: rec.Time, Shadow: in.Shadow, OwnPaths: in.OwnPaths, Programs: in.Programs, Bases: in.Bases,
		Elsewhere: in.Elsewhere, Resolved: in.Resolved, Unresolved: in.Unresolved,
	}
	if in.Session {
		input.Session = f.session
	}
	if b, ok := it.Value(valueArguments); ok {
		input.Call.Arguments = notNil(b) // an item is not kept, a decision is
	}
	if b, ok := it.Value(valueAnswers); ok {
		input.Call.Answers = notNil(b)
	}
	d := decide(input)
	if !bytes.Equal(d.Record(), recorded) {
		return fmt.Errorf("%w (n %d)", ErrReplay, rec.N)
	}
	f.Replayed++
	if f.session != nil && in.Session {
		f.session.Decided(&d)
	}
	if d.Allowed() {
		f.open[rec.N] = d
	}
	return nil
}

// Blind reports that a decision is another engine's, so that the session can be
// read and verified but must not go on.
func (f *Replayer) Blind() bool { return f.blind }

// notNil copies b so that what was there stays distinct from what was not.
func notNil(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

func (f *Replayer) result(ctx context.Context, rec *audit.Record, it *audit.Item) error {
	var data resultData
	if err := json.Unmarshal(rec.Data, &data); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	if data.Evidence != 0 {
		f.results[data.Evidence] = rec.N
	}
	d, ok := f.open[data.Decision]
	if !ok || f.session == nil || f.blind {
		return nil
	}
	delete(f.open, data.Decision)
	r := gate.Result{Evidence: data.Evidence, Status: gate.Status(data.Status), Recalled: data.Recalled}
	r.Bytes, _ = it.Value(valueResult)
	r.Full = !data.Admissible && data.Why == gate.WhyFull
	if at := data.Places; at != nil {
		p := f.places[at.Namespace]
		if p == nil {
			p = newPlaces(f.store, at.Namespace)
			f.places[at.Namespace] = p
		}
		if err := p.upTo(ctx, at.N); err != nil {
			return fmt.Errorf("%w (n %d): %w", ErrReplay, rec.N, err)
		}
		r.Places, r.Through, r.Own = p.all, at.N, at.Own
	}
	obs := f.session.Observe(&d, r)
	if obs.Admissible != data.Admissible {
		return fmt.Errorf("%w: the result's worth (n %d)", ErrReplay, rec.N)
	}
	f.session.Commit(obs)
	return nil
}

func (f *Replayer) rulesetOf(ctx context.Context, rules, catalogue string) (*ruleset, error) {
	k := [2]string{rules, catalogue}
	if w := f.rulesets[k]; w != nil {
		return w, nil
	}
	load := func(hex string) ([]byte, error) {
		d, err := audit.ParseDigest(hex)
		if err != nil {
			return nil, err
		}
		b, err := f.store.Blob(ctx, d)
		if errors.Is(err, audit.ErrNotFound) { // it is never erased
			err = fmt.Errorf("%w: %w", audit.ErrAltered, err)
		}
		return b, err
	}
	src, err := load(rules)
	if err != nil {
		return nil, fmt.Errorf("the recorded policy: %w", err)
	}
	p, faults := policy.Parse("recorded policy", src)
	if len(faults) > 0 {
		return nil, errors.New("the recorded policy is not accepted any more")
	}
	defs, err := load(catalogue)
	if err != nil {
		return nil, fmt.Errorf("the recorded catalogue: %w", err)
	}
	ds, err := decodeDefinitions(defs)
	if err != nil {
		return nil, err
	}
	c, _ := gate.NewCatalogue(ds, p)
	w := &ruleset{policy: p, catalogue: c}
	f.rulesets[k] = w
	return w, nil
}

// encodeDefinitions writes the definitions a catalogue was made from, byte for
// byte, as one JSON array: the catalogue's blob.
func encodeDefinitions(defs []gate.Definition) []byte {
	b := []byte{'['}
	for i, d := range defs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, `{"server":`...), strictjson.Quote(d.Server)...)
		b = append(append(b, `,"kind":`...), strictjson.Quote(string(d.Kind))...)
		b = append(append(append(b, `,"raw":`...), d.Raw...), '}')
	}
	return append(b, ']')
}

func decodeDefinitions(b []byte) ([]gate.Definition, error) {
	bad := errors.New("the recorded catalogue is not well formed")
	if strictjson.Check(b, strictjson.Limits{Depth: 200}) != nil {
		return nil, bad
	}
	es, ok := strictjson.Elements(b)
	if !ok {
		return nil, bad
	}
	defs := make([]gate.Definition, 0, len(es))
	for _, e := range es {
		server, ok1 := strictjson.Text(strictjson.Get(e, "server"))
		kind, ok2 := strictjson.Text(strictjson.Get(e, "kind"))
		raw := strictjson.Get(e, "raw")
		if !ok1 || !ok2 || raw == nil {
			return nil, bad
		}
		defs = append(defs, gate.Definition{Server: server, Kind: gate.Kind(kind), Raw: raw})
	}
	return defs, nil
}

// recordedCall is a call as the journal wants it.
type recordedCall struct {
	n    uint64
	done <-chan error
}

// writeDecision puts a decision behind the session's earlier records. The
// caller holds s.mu and folds the decision itself.
func (g *Gateway) writeDecision(s *session, v *ruleset, in *gate.Input, d *gate.Decision, at time.Time) (recordedCall, error) {
	data := decisionData{
		Method: methodName(in.Call.Method), Effect: d.Effect.Names(), Status: string(d.Outcome.Status),
		Shadow: d.Shadow, Policy: v.policyBlob, Catalogue: v.catalogueBlob, Engine: Engine,
	}
	if d.Tool != nil {
		data.Server, data.Tool = d.Tool.Server, d.Tool.Name
	}
	if r := d.Outcome.Rejection; r != nil {
		data.Code, data.Reason = string(r.Code), string(r.Reason)
	}
	vs := []value{
		{valueInput, mustJSON(inputValue{
			Server: in.Call.Server, Tool: in.Call.Tool, Method: string(in.Call.Method), Shadow: in.Shadow,
			Session: in.Session != nil, OwnPaths: in.OwnPaths, Programs: in.Programs, Bases: in.Bases,
			Elsewhere: in.Elsewhere, Resolved: in.Resolved, Unresolved: in.Unresolved,
		})},
		{valueDecision, d.Record()},
	}
	if in.Call.Arguments != nil {
		vs = append(vs, value{valueArguments, in.Call.Arguments})
	}
	if in.Call.Answers != nil {
		vs = append(vs, value{valueAnswers, in.Call.Answers})
	}
	until := processEnd
	switch {
	case d.Effect.Gated():
		until = powerCut // an act, or a refusal that R24 counts
	case d.Allowed():
		until = withNext
	}
	n, done, err := g.write(s, until, audit.KindDecision, at, data, vs...)
	return recordedCall{n, done}, err
}

func methodName(m policy.Method) string {
	if m == policy.CallTool {
		return "tools/call"
	}
	return string(m)
}

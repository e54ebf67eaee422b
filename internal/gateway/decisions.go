package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// # The record of a decision
//
// It says each thing once. What is the same for many calls stands in blobs: the policy, the
// catalogue and the engine in one that its data names, "rules"; what is Writ's own in
// one that its value names where it is another than that of the session's decision before.
// The data says what may be read when every value was erased. All else is in its one value,
// "call": a line of JSON, and behind its line feed the exact bytes of the arguments and of
// the answers. The members of that line stand in the order in which appendCall writes them,
// and are left out where there is nothing to say:
//
//	failures, forwarded, next, traces                as gate.Record has them
//	answers       of the bytes behind the line, so many of the last are the answers
//	asked         how far it was put to a person
//	bare          there are answers and no arguments
//	own           SHA-256 of the blob of a statedOwn
//	own_paths, programs, bases    where they are not those of it
//	elsewhere, resolved, unresolved    as gate.Input has them
//	server, tool  as the client named them, where the data does not
//	sessionless   it was decided without a session
//	shadow        the gateway shadows
//
// Records of before have "policy", "catalogue" and "engine" in their data, and the values
// input, decision, arguments and answers. They are shown as they are; each is of another engine.

// decisionData is the data of a decision's record: what may be read when every
// value was erased. Names are those of the catalogue, never a caller's.
type decisionData struct {
	Code string
	// Continues is the number of the decision whose place this one takes: of the same call,
	// before its client answered the server.
	Continues uint64
	Effect    []string
	Method    policy.Method // as gate.Call has it
	Reason    string
	Rules     string // SHA-256 of the blob of its rules, "" in a record of before
	Server    string
	Shadow    bool
	Status    string
	Tool      string

	Engine string // of a record of before
}

func (d *decisionData) append(b []byte) []byte {
	m := strictjson.Writer{B: append(b, '{')}
	m.Some("code", d.Code)
	m.Count("continues", int64(d.Continues))
	putTexts(&m, "effect", d.Effect)
	m.Some("method", string(d.Method))
	m.Some("reason", d.Reason)
	m.Some("rules", d.Rules)
	m.Some("server", d.Server)
	m.True("shadow", d.Shadow)
	m.Some("status", d.Status)
	m.Some("tool", d.Tool)
	return append(m.B, '}')
}

var errShape = errors.New("it is not of a form this version knows")

func readDecision(data []byte) (d decisionData, err error) {
	var r taken
	v := strictjson.Of(data)
	for name, v := range v.Members() {
		switch name {
		case "code":
			d.Code = r.text(v)
		case "continues":
			d.Continues = r.number(v, 64)
		case "effect":
			if d.Effect = r.texts(v); d.Effect == nil {
				d.Effect = []string{}
			}
			r.bad = r.bad || v.Kind() != strictjson.Array
		case "engine":
			d.Engine = r.text(v)
		case "method":
			d.Method = policy.Method(r.text(v))
		case "reason":
			d.Reason = r.text(v)
		case "rules":
			d.Rules = r.text(v)
		case "server":
			d.Server = r.text(v)
		case "shadow":
			d.Shadow = string(v.Raw()) == "true"
		case "status":
			d.Status = r.text(v)
		case "tool":
			d.Tool = r.text(v)
		}
	}
	if r.bad || v.Kind() != strictjson.Object || d.Rules == "" && d.Engine == "" {
		return d, fmt.Errorf("decision: %w", errShape)
	}
	if d.Rules == "" && d.Method == "tools/call" { // as records of before say it
		d.Method = policy.CallTool
	}
	return d, nil
}

// statedRules are what many calls are judged by, as a blob has it.
type statedRules struct {
	Catalogue   string         `json:"catalogue"`   // gate.Catalogue.Digest, in hex
	Definitions string         `json:"definitions"` // SHA-256 of the blob of the definitions it is made of
	Engine      string         `json:"engine"`
	Policy      string         `json:"policy"` // SHA-256 of the blob of the policy
	Profile     policy.Profile `json:"profile"`
	Version     int            `json:"v"`
}

// formRules is the version of statedRules, and of the records that name them.
const formRules = 2

// statedOwn is what the calls of a fleet are held against for R34, as a blob has it. It is
// named in values alone: who has a record without them cannot try which directories there are.
type statedOwn struct {
	Bases    map[string][]string `json:"bases"` // of each server
	OwnPaths []string            `json:"own_paths"`
	Programs []string            `json:"programs"`
}

// stateRules puts on record what calls are judged by.
func (rs *ruleset) stateRules(ctx context.Context, st Store) error {
	s := &statedRules{Catalogue: audit.Digest(rs.catalogue.Digest()).String(), Definitions: rs.catalogueBlob, Engine: Engine,
		Policy: rs.policyBlob, Profile: rs.policy.Profile, Version: formRules}
	d, err := st.PutBlob(ctx, mustJSON(s))
	rs.rulesBlob = d.String()
	return err
}

// stateOwn puts on record what the fleet's calls are held against.
func (rs *ruleset) stateOwn(ctx context.Context, st Store) error {
	s := &statedOwn{Bases: map[string][]string{}, OwnPaths: rs.fleet.ownPaths, Programs: rs.fleet.programs}
	for name, srv := range rs.fleet.servers {
		s.Bases[name] = srv.bases
	}
	d, err := st.PutBlob(ctx, mustJSON(s))
	rs.own, rs.ownBlob = s, d.String()
	return err
}

// putDecision is the data and the value of a decision's record. Who makes a decision again gets
// the same of the same, byte for byte. It states what is Writ's own where states is its blob.
func putDecision(rules string, own *statedOwn, states string, in *gate.Input, d *gate.Decision, r *gate.Record, continues uint64) (data decisionData, call []byte) {
	data = decisionData{Continues: continues, Effect: r.Effect, Method: in.Call.Method, Rules: rules, Shadow: d.Shadow, Status: string(d.Outcome.Status)}
	if d.Tool != nil {
		data.Server, data.Tool = d.Tool.Server, d.Tool.Name
	}
	if j := d.Outcome.Rejection; j != nil {
		data.Code, data.Reason = string(j.Code), string(j.Reason)
	}
	return data, appendCall(make([]byte, 0, 128+160*len(r.Traces)+len(in.Call.Arguments.Raw())+len(in.Call.Answers.Raw())), own, states, &data, in, r)
}

func appendCall(b []byte, own *statedOwn, states string, data *decisionData, in *gate.Input, r *gate.Record) []byte {
	m := strictjson.Writer{B: r.AppendFound(append(b, '{'))}
	unlike := func(n string, all, usual []string) {
		if !slices.Equal(all, usual) {
			putTexts(&m, n, all)
		}
	}
	arguments, answers := in.Call.Arguments.Exists(), in.Call.Answers.Exists()
	if answers {
		m.Number("answers", int64(len(in.Call.Answers.Raw())))
	}
	m.Some("asked", string(in.Asked))
	m.True("bare", answers && !arguments)
	m.Some("own", states)
	unlike("own_paths", in.OwnPaths, own.OwnPaths)
	unlike("programs", in.Programs, own.Programs)
	unlike("bases", in.Bases, own.Bases[in.Call.Server])
	m.True("elsewhere", in.Elsewhere)
	if len(in.Resolved) > 0 {
		m.Name("resolved")
		m.B = append(m.B, '{')
		for _, pointer := range slices.Sorted(maps.Keys(in.Resolved)) {
			putTexts(&m, pointer, in.Resolved[pointer])
		}
		m.B = append(m.B, '}')
	}
	unlike("unresolved", in.Unresolved, nil)
	if in.Call.Server != data.Server || in.Call.Tool != data.Tool {
		m.Text("server", in.Call.Server)
		m.Text("tool", in.Call.Tool)
	}
	m.True("sessionless", in.Session == nil)
	m.True("shadow", in.Shadow)
	b = append(m.B, '}')
	if arguments || answers {
		b = append(b, '\n')
		b = append(append(b, in.Call.Arguments.Raw()...), in.Call.Answers.Raw()...)
	}
	return b
}

// recordedCall is a value "call", read.
type recordedCall struct {
	gate.Input         // but for its policy, catalogue and session, and what is Writ's own where that is as the blob says
	own                string
	sessionless        bool
	differs            struct{ paths, programs, bases bool } // from the blob
	arguments, answers []byte
}

// readCall reads what appendCall wrote. What it is held to is what appendCall writes of the
// decision that comes of it.
func readCall(call []byte, data *decisionData) (c recordedCall, err error) {
	line, rest, args := bytes.Cut(call, []byte{'\n'})
	c.Call = gate.Call{Server: data.Server, Tool: data.Tool, Method: data.Method}
	var r taken
	bare := false
	header := strictjson.Of(line)
	for name, v := range header.Members() {
		switch name {
		case "answers":
			n := int(r.number(v, 31))
			if r.bad = r.bad || n > len(rest); !r.bad {
				c.answers, rest = rest[len(rest)-n:], rest[:len(rest)-n]
			}
		case "asked":
			c.Asked = gate.Asked(r.text(v))
		case "bare":
			bare = true
		case "own":
			c.own = r.text(v)
		case "own_paths":
			c.OwnPaths, c.differs.paths = r.texts(v), true
		case "programs":
			c.Programs, c.differs.programs = r.texts(v), true
		case "bases":
			c.Bases, c.differs.bases = r.texts(v), true
		case "elsewhere":
			c.Elsewhere = true
		case "look":
			c.Look = true
		case "resolved":
			c.Resolved = map[string][]string{}
			for pointer, names := range v.Members() {
				c.Resolved[pointer] = r.texts(names)
			}
		case "unresolved":
			c.Unresolved = r.texts(v)
		case "server":
			c.Call.Server = r.text(v)
		case "tool":
			c.Call.Tool = r.text(v)
		case "sessionless":
			c.sessionless = true
		case "shadow":
			c.Shadow = true
		}
	}
	if args && !bare {
		c.arguments = rest
	}
	if r.bad || header.Kind() != strictjson.Object || bare && (c.answers == nil || len(rest) > 0) {
		return c, fmt.Errorf("decision: %w", errShape)
	}
	return c, nil
}

// input is what a recorded call was decided on, but for its session.
func (c *recordedCall) input(w *ruleset, own *recordedFleet, at time.Time) gate.Input {
	in := c.Input
	in.Policy, in.Catalogue, in.Time = w.policy, w.catalogue, at
	if !c.differs.paths {
		in.OwnPaths = own.OwnPaths
	}
	if !c.differs.programs {
		in.Programs = own.Programs
	}
	if !c.differs.bases {
		in.Bases = own.Bases[in.Call.Server]
	}
	if !c.differs.paths && !c.differs.programs && !c.differs.bases {
		in.Own = own.places[in.Call.Server]
	}
	if c.arguments != nil {
		in.Call.Arguments, _ = strictjson.Parse(notNil(c.arguments), strictjson.Request) // an item is not kept, a decision is
	}
	if c.answers != nil {
		in.Call.Answers, _ = strictjson.Parse(notNil(c.answers), strictjson.Request)
	}
	return in
}

// recordedRules are the rules of recorded calls, read; of another engine without a ruleset.
type recordedRules struct {
	*statedRules
	*ruleset
}

// recordedFleet is what recorded calls were held against.
type recordedFleet struct {
	*statedOwn
	places map[string]*gate.OwnPlaces // of each server
}

// readRules reads the blob of rules alone. What another version wrote is of another engine.
func (rs *Rulesets) readRules(ctx context.Context, hex string) (*statedRules, error) {
	b, err := rs.blob(ctx, hex)
	if err != nil {
		return nil, fmt.Errorf("the recorded rules: %w", err)
	}
	s := &statedRules{}
	if json.Unmarshal(b, s) != nil {
		return nil, fmt.Errorf("the recorded rules: %w", errShape)
	}
	if s.Version != formRules {
		s.Engine = ""
	}
	return s, nil
}

// rulesOf are the rules of that name.
func (rs *Rulesets) rulesOf(ctx context.Context, hex string) (*recordedRules, error) {
	rs.mu.Lock()
	w := rs.rules[hex]
	rs.mu.Unlock()
	if w != nil {
		return w, nil
	}
	s, err := rs.readRules(ctx, hex)
	if err != nil {
		return nil, err
	}
	w = &recordedRules{statedRules: s}
	if s.Engine == Engine {
		if w.ruleset, err = rs.rulesetOf(ctx, s.Policy, s.Definitions); err != nil {
			return nil, err
		}
		if s.Catalogue != audit.Digest(w.catalogue.Digest()).String() || s.Profile != w.policy.Profile {
			return nil, fmt.Errorf("%w: the recorded rules are not those of their policy and catalogue", ErrReplay)
		}
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	hold(rs.rules, hex, w)
	return w, nil
}

// fleetOf is what calls were held against, of that name.
func (rs *Rulesets) fleetOf(ctx context.Context, hex string) (*recordedFleet, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if f := rs.fleets[hex]; f != nil {
		return f, nil
	}
	b, err := rs.blob(ctx, hex)
	if err != nil {
		return nil, fmt.Errorf("what is Writ's own: %w", err)
	}
	f := &recordedFleet{&statedOwn{}, map[string]*gate.OwnPlaces{}}
	if err := json.Unmarshal(b, f.statedOwn); err != nil {
		return nil, fmt.Errorf("what is Writ's own: %w", err)
	}
	for server, bases := range f.Bases {
		f.places[server] = gate.OwnPlacesOf(f.OwnPaths, f.Programs, bases)
	}
	hold(rs.fleets, hex, f)
	return f, nil
}

// Decision is the recorded decision that a record with its values is of; nil where the values are
// gone. It is what was written: whether it is right, a replay says.
func (rs *Rulesets) Decision(ctx context.Context, rec *audit.Record, it *audit.Item) (*gate.Record, error) {
	if b, kept := it.Value(valueDecision); kept {
		return gate.ParseRecord(b)
	}
	b, kept := it.Value(valueCall)
	if !kept {
		return nil, nil
	}
	data, err := readDecision(rec.Data)
	if err != nil {
		return nil, err
	}
	rules, err := rs.readRules(ctx, data.Rules)
	if err != nil {
		return nil, err
	}
	if rules.Version != formRules {
		return nil, fmt.Errorf("decision: %w", errShape)
	}
	c, err := readCall(b, &data)
	if err != nil {
		return nil, err
	}
	line, _, _ := bytes.Cut(b, []byte{'\n'})
	var found struct {
		Failures  []writ.Failure
		Forwarded string
		Look      bool
		Next      uint32
		Traces    []gate.Trace
	}
	if json.Unmarshal(line, &found) != nil {
		return nil, fmt.Errorf("decision: %w", errShape)
	}
	r := &gate.Record{
		Version: 1, Engine: rules.Engine, Next: found.Next, Time: gate.RecordTime(rec.Time), Policy: "sha256:" + rules.Policy, Catalogue: "sha256:" + rules.Catalogue,
		Profile: rules.Profile, Server: c.Call.Server, Tool: c.Call.Tool, Method: methodName(data.Method), Effect: data.Effect, Forwarded: found.Forwarded, Look: found.Look,
		Code: writ.Code(data.Code), Reason: writ.Reason(data.Reason), Failures: found.Failures, Traces: found.Traces,
		Status: writ.Status(data.Status), Shadow: data.Shadow, Allowed: data.Shadow || data.Status != string(writ.Rejected),
	}
	if r.Traces == nil {
		r.Traces = []gate.Trace{}
	}
	if !c.sessionless {
		r.Session = rec.Session
	}
	return r, nil
}

// Exact are the bytes of a recorded call's arguments, and of what was answered inside it; nil
// where there are none, or not any more.
func Exact(rec *audit.Record, it *audit.Item) (arguments, answers []byte) {
	b, kept := it.Value(valueCall)
	if !kept {
		arguments, _ = it.Value(valueArguments)
		answers, _ = it.Value(valueAnswers)
		return arguments, answers
	}
	data, err := readDecision(rec.Data)
	if err != nil {
		return nil, nil
	}
	c, err := readCall(b, &data)
	if err != nil {
		return nil, nil
	}
	return c.arguments, c.answers
}

// Told is what a list tells of a decision beside its record's data: what a refused call lacks,
// and the argument that names what the call acts on, nil where none does.
type Told struct {
	Failures []writ.Failure
	Pointer  string
	Value    []byte // its exact literal
}

// Tell reads that of the record of a decision. Of what was erased there is nothing.
func Tell(ctx context.Context, st interface {
	Value(ctx context.Context, session string, n uint64, name string) ([]byte, error)
}, rec *audit.Record) (t Told) {
	name := valueCall
	if !strictjson.Of(rec.Data).Get("rules").Exists() { // one of before
		name = valueDecision
	}
	b, err := st.Value(ctx, rec.Session, rec.N, name)
	line, arguments, _ := bytes.Cut(b, []byte{'\n'})
	var found struct {
		Answers  int
		Bare     bool
		Failures []writ.Failure
		Traces   []gate.Trace
	}
	if err != nil || json.Unmarshal(line, &found) != nil {
		return t
	}
	t.Failures = found.Failures
	i := slices.IndexFunc(found.Traces, func(t gate.Trace) bool { return t.Role == "target" })
	if i < 0 {
		i = slices.IndexFunc(found.Traces, func(t gate.Trace) bool { return t.Role == "selector" })
	}
	if i < 0 || found.Bare || found.Answers > len(arguments) {
		return t
	}
	if arguments = arguments[:len(arguments)-found.Answers]; name == valueDecision {
		arguments, _ = st.Value(ctx, rec.Session, rec.N, valueArguments)
	}
	if strictjson.Check(arguments, strictjson.Limits{Depth: 200}) == nil {
		t.Pointer, t.Value = found.Traces[i].Pointer, strictjson.Of(arguments).At(found.Traces[i].Pointer).Literal()
	}
	return t
}

// LabelAt is what the contract that a call was decided by says of a place in its result: what it
// does not name is external. It fails where there was no such contract, and for a text out of
// which that reads more.
func (rs *Rulesets) LabelAt(ctx context.Context, rec *audit.Record, pointer string) (label writ.Label, err error) {
	data, err := readDecision(rec.Data)
	if err != nil {
		return label, err
	}
	rules, err := rs.rulesOf(ctx, data.Rules)
	if err != nil {
		return label, err
	}
	path, err := strictjson.ParsePointer(pointer)
	if err != nil || rules.ruleset == nil || len(path) == 0 {
		return label, errShape
	}
	c := rules.policy.Contracts[data.Server+"/"+data.Tool]
	if c == nil {
		return label, errShape
	}
	label = writ.External
	var best *provenance.OutputRule
	for i := range c.Outputs {
		switch o := &c.Outputs[i]; {
		case o.InText && path[0] != "structuredContent" && o.Label > writ.External:
			return label, errShape
		case !o.InText && path[0] == "structuredContent" && o.At.Match(path[1:]) && (best == nil || o.At.Beats(best.At)):
			best, label = o, o.Label
		}
	}
	return label, nil
}

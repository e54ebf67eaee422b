package gateway

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"testing/quick"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// plainDecision is decisionData as any reader of JSON has it.
type plainDecision struct {
	Code      string        `json:"code,omitempty"`
	Continues uint64        `json:"continues,omitempty"`
	Effect    []string      `json:"effect"`
	Engine    string        `json:"engine,omitempty"`
	Method    policy.Method `json:"method,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	Rules     string        `json:"rules,omitempty"`
	Server    string        `json:"server,omitempty"`
	Shadow    bool          `json:"shadow,omitempty"`
	Status    string        `json:"status,omitempty"`
	Tool      string        `json:"tool,omitempty"`
}

func (p *plainDecision) data() decisionData {
	d := decisionData{p.Code, p.Continues, p.Effect, p.Method, p.Reason, p.Rules, p.Server, p.Shadow, p.Status, p.Tool, p.Engine}
	if d.Effect == nil {
		d.Effect = []string{}
	}
	return d
}

func plainly(t *testing.T, v any) []byte {
	t.Helper()
	b, err := strictjson.Canonical(mustJSON(v))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDecisionData holds what is written and read by hand to the JSON of a structure.
func TestDecisionData(t *testing.T) {
	if err := quick.Check(func(p plainDecision, r resultData) bool {
		p.Engine, p.Rules = "", "r"+p.Rules
		p.Continues >>= 12
		d := p.data()
		p.Effect = d.Effect
		b := d.append(nil)
		read, err := readDecision(b)
		if want := plainly(t, p); err != nil || !bytes.Equal(b, want) || !reflect.DeepEqual(read, d) {
			t.Errorf("%v\n%s\n%s\n%+v\n%+v", err, b, want, read, d)
		}
		r.Recalled, r.Decision = nil, r.Decision>>12
		b = mustJSON(r)
		result, err := readResult(b)
		if err != nil || !reflect.DeepEqual(result, r) {
			t.Errorf("%v\n%s\n%+v", err, b, result)
		}
		return !t.Failed()
	}, nil); err != nil {
		t.Error(err)
	}
}

// door is what of gate.Input the door knows.
type door struct {
	Method               policy.Method
	Shadow, Elsewhere    bool
	Resolved             map[string][]string
	Unresolved, OwnPaths []string
	Programs, Bases      []string
}

// TestCallValue: what a value says is read as it was written, whatever of it is not usual.
func TestCallValue(t *testing.T) {
	if err := quick.Check(func(server, tool string, asked gate.Asked, own statedOwn, states string, of door, arguments, answers []byte, usual [3]bool, none [2]bool, next uint32) bool {
		data := decisionData{Server: "s", Tool: "t", Method: of.Method, Rules: "r"}
		in := gate.Input{Call: gate.Call{Server: "s", Tool: "t", Method: of.Method}, Asked: asked, Shadow: of.Shadow, Elsewhere: of.Elsewhere,
			Resolved: of.Resolved, Unresolved: of.Unresolved, OwnPaths: own.OwnPaths, Programs: own.Programs}
		if usual[2] {
			in.Call.Server, in.Call.Tool = server, tool
		}
		in.Bases = own.Bases[in.Call.Server]
		if usual[0] {
			in.OwnPaths, in.Programs = of.OwnPaths, of.Programs
		}
		if usual[1] {
			in.Bases = of.Bases
		}
		if !none[0] {
			in.Call.Arguments = strictjson.Of(append([]byte{}, arguments...))
		}
		if !none[1] {
			in.Call.Answers = strictjson.Of(append([]byte{}, answers...))
		}
		b := appendCall(nil, &own, states, &data, &in, &gate.Record{Next: next})
		line, _, _ := bytes.Cut(b, []byte{'\n'})
		if !json.Valid(line) {
			t.Errorf("%s", line)
		}
		c, err := readCall(b, &data)
		got := c.input(&ruleset{}, &recordedFleet{statedOwn: &own}, in.Time)
		got.Own = nil
		same := func(a, b []string) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }
		if err != nil || c.own != states || !c.sessionless || got.Call.Server != in.Call.Server || got.Call.Tool != in.Call.Tool || got.Call.Method != in.Call.Method ||
			got.Asked != in.Asked || got.Shadow != in.Shadow || got.Elsewhere != in.Elsewhere || !same(got.OwnPaths, in.OwnPaths) || !same(got.Programs, in.Programs) ||
			!same(got.Bases, in.Bases) || !same(got.Unresolved, in.Unresolved) || len(got.Resolved) != len(in.Resolved) {
			t.Errorf("%v\n%s\n%+v\n%+v", err, b, got, in)
		}
		for pointer, names := range in.Resolved {
			if !same(got.Resolved[pointer], names) {
				t.Errorf("%s: %q", pointer, got.Resolved)
			}
		}
		for _, v := range [][2]strictjson.Value{{got.Call.Arguments, in.Call.Arguments}, {got.Call.Answers, in.Call.Answers}} {
			if v[0].Exists() != v[1].Exists() || !bytes.Equal(v[0].Raw(), v[1].Raw()) {
				t.Errorf("%q, %q\n%s", v[0].Raw(), v[1].Raw(), b)
			}
		}
		return !t.Failed()
	}, nil); err != nil {
		t.Error(err)
	}
}

// FuzzDecisionData: whatever a record's data is, it is read as any reader of JSON does, or not.
func FuzzDecisionData(f *testing.F) {
	for _, s := range []string{
		`{"effect":["read"],"rules":"640d","server":"tool","status":"accepted","tool":"look"}`,
		`{"catalogue":"b6e3","effect":["read"],"engine":"writ-gate/12","method":"tools/call","policy":"97fc","status":"rejected"}`,
		`{"code":"\u00e4","continues":7,"effect":[],"method":"resources/read","rules":"1","shadow":true,"status":""}`,
		`{"decision":4,"evidence":2,"places":{"namespace":"n","n":3},"recalled":[],"status":"ok","why":"unvalidated"}`, `{}`, `[]`, `{"status":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		readCall(b, &decisionData{})
		canon, err := strictjson.CanonicalWithin(b, strictjson.Request)
		if err != nil || !bytes.Equal(canon, b) { // a record's data is canonical
			readDecision(b)
			readResult(b)
			return
		}
		if d, err := readDecision(b); err == nil {
			var p plainDecision
			if strict(b, &p) {
				if was := p.data(); d.Rules == "" && was.Method == "tools/call" {
					was.Method = policy.CallTool
					p.Method = policy.CallTool
				}
				if d.Effect == nil {
					d.Effect = []string{}
				}
				if !reflect.DeepEqual(d, p.data()) {
					t.Errorf("%s\n%+v\n%+v", b, d, p)
				}
			}
		}
		if r, err := readResult(b); err == nil {
			var p resultData
			if strict(b, &p) && !reflect.DeepEqual(r, p) {
				t.Errorf("%s\n%+v\n%+v", b, r, p)
			}
		}
	})
}

// strict reads an object that has nothing else.
func strict(b []byte, to any) bool {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(to) == nil && bytes.Equal(bytes.ToLower(b), b) && !bytes.Contains(b, []byte("null"))
}

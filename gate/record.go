package gate

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/policy"
)

// Record is what the log says of one decision: everything it was made on, by
// digest, and everything it found. It holds no value of the call; digests of
// values are keyed by the session. The members stand in their canonical order, here and
// in Trace and Ref: nothing has to sort them.
type Record struct {
	Allowed   bool           `json:"allowed"`
	Answers   string         `json:"answers,omitzero"`
	Arguments string         `json:"arguments,omitzero"` // keyed digest of the judged bytes
	Catalogue string         `json:"catalogue"`
	Code      writ.Code      `json:"code,omitzero"`
	Effect    []string       `json:"effect"`
	Engine    string         `json:"engine"`
	Failures  []writ.Failure `json:"failures,omitempty"`
	Forwarded string         `json:"forwarded,omitzero"` // keyed digest, where it differs
	Look      bool           `json:"look,omitzero"`      // Input.Look
	Method    string         `json:"method"`
	Next      uint32         `json:"next,omitzero"`
	Policy    string         `json:"policy"`
	Profile   policy.Profile `json:"profile,omitzero"`
	Reason    writ.Reason    `json:"reason,omitzero"`
	Server    string         `json:"server"`
	// Session and Next say what evidence counted: that of the session with a
	// number below Next. Both are empty for a call without a session.
	Session string `json:"session,omitzero"`
	Shadow  bool   `json:"shadow,omitzero"`
	// Status is the outcome; Allowed says whether the call may be made, which
	// in shadow mode differs.
	Status  writ.Status `json:"status"`
	Time    string      `json:"time"` // RFC 3339, UTC, milliseconds
	Tool    string      `json:"tool,omitzero"`
	Traces  []Trace     `json:"traces"`
	Version int         `json:"v"`
}

// Record returns the decision as canonical JSON (RFC 8785). The same input
// gives the same bytes.
func (d *Decision) Record() []byte { return d.State().Bytes() }

// State returns the decision as its record: what ParseRecord reads of Record.
func (d *Decision) State() *Record {
	b := d.basis
	r := &Record{
		Version: 1, Engine: Engine, Session: b.session, Next: b.number,
		Time:   RecordTime(b.time),
		Policy: digestText(b.policy), Catalogue: digestText(b.catalogue),
		// Names reach here from requests the gateway parsed; what is not UTF-8 in
		// them is replaced rather than left out of the log.
		Profile: b.profile, Server: validText(d.Call.Server), Tool: validText(d.Call.Tool), Method: validText(methodName(d.Call.Method)),
		Effect: d.Effect.Names(), Arguments: b.arguments, Answers: b.answers, Forwarded: b.forwarded, Look: d.look,
		Status: d.Outcome.Status, Allowed: d.Allowed(), Shadow: d.Shadow, Traces: d.Traces,
	}
	if r.Traces == nil {
		r.Traces = []Trace{}
	}
	if r.Status == "" {
		r.Status = writ.Rejected // the zero decision denies
	}
	if j := d.Outcome.Rejection; j != nil {
		r.Code, r.Reason, r.Failures = j.Code, j.Reason, j.Failures
	}
	return r
}

// RecordTime is a time as records of decisions write it, in UTC to the millisecond: finer time
// than the log keeps would make a replay differ.
func RecordTime(t time.Time) string {
	t = t.UTC()
	var b [32]byte
	s := t.AppendFormat(b[:0], time.RFC3339) // which is quick
	ms := t.Nanosecond() / 1e6
	return string(append(s[:len(s)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z'))
}

func digestText(d [32]byte) string {
	return string(hex.AppendEncode(append(make([]byte, 0, 71), "sha256:"...), d[:]))
}

func methodName(m policy.Method) string {
	if m == policy.CallTool {
		return "tools/call"
	}
	return string(m)
}

// Bytes returns the record as canonical JSON, which ParseRecord reads.
func (r *Record) Bytes() []byte { return r.append(make([]byte, 0, 512+160*len(r.Traces))) }

func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// maxDecision bounds a decision's record, in bytes.
const maxDecision = 64 << 20

// ParseRecord reads what Decision.Record wrote. It accepts no other spelling
// of it and nothing beside it.
func ParseRecord(b []byte) (*Record, error) {
	if len(b) > maxDecision {
		return nil, errors.New("decision record: too long")
	}
	var r Record
	if json.Unmarshal(b, &r) != nil {
		return nil, errors.New("decision record: a member is of the wrong type")
	}
	switch {
	case r.Version != 1:
		return nil, errors.New("decision record: not of version 1")
	case r.Status != writ.Accepted && r.Status != writ.Rejected && r.Status != writ.Transformed:
		return nil, errors.New("decision record: no such status")
	case !bytes.Equal(r.Bytes(), b): // also what is unknown, stands twice, behind it or in another letter case, or is no UTF-8
		return nil, errors.New("decision record: not in canonical form")
	}
	return &r, nil
}

// Explain says in plain words, a line each, what was decided and why.
// Everything in it that came from a call or a server is escaped.
func Explain(r *Record) []string {
	what := "`" + shown(r.Tool) + "` of server `" + shown(r.Server) + "`"
	if r.Method != "tools/call" {
		what = shown(r.Method) + " of server `" + shown(r.Server) + "`"
	}
	head := string(r.Status)
	switch {
	case r.Shadow && r.Status == writ.Rejected:
		head = "passed in shadow mode; would have been rejected"
	case r.Shadow:
		head = "passed in shadow mode; would have been " + head
	}
	if r.Code != "" {
		head += " (" + shown(string(r.Code)) + ", " + shown(string(r.Reason)) + ")"
	}
	if r.Look {
		what += ", which Writ read for itself, to see whether a name is new"
	}
	lines := []string{head + ": " + what + ", effect " + shown(strings.Join(r.Effect, "+"))}
	for _, f := range r.Failures {
		where := shown(f.Pointer)
		if where == "" {
			where = "the call"
		}
		lines = append(lines, "refused: "+where+": "+shown(string(f.Reason))+": "+plain(f.Need))
	}
	for _, t := range r.Traces {
		lines = append(lines, explainTrace(r, t))
	}
	return lines
}

func explainTrace(r *Record, t Trace) string {
	var b strings.Builder
	b.WriteString(shown(t.Pointer) + " (" + shown(t.Role) + ")")
	switch {
	case t.Rule == "const":
		b.WriteString(" is a constant of the operator")
	case t.Rule == "grown":
		b.WriteString(" is a value that a person allowed from now on")
	case t.Rule == keptCall:
		b.WriteString(" is of a call that a person allowed from now on")
	case t.Rule == grownOutput:
		b.WriteString(" stood where no stranger writes, as a person said from now on:")
	case t.Rule == "catalog":
		b.WriteString(" is a value the tool's approved definition lists")
	case t.Rule == "protocol":
		b.WriteString(" declines and carries nothing")
	case t.Rule == "local":
		b.WriteString(" is free text into a local file; the text itself is unproven")
	case t.Rule == "open":
		b.WriteString(" is free text, which is unproven, and nothing in it needs more")
		if len(t.Evidence) > 0 {
			b.WriteString(" than")
		}
	case t.Rule == "approval":
		b.WriteString(" was allowed by a person:")
	case t.Rule == "governed":
		b.WriteString(" is for the memory's own policy to judge, and vouches for nothing")
	case len(t.Evidence) == 0 && t.Rule == "":
		b.WriteString(" rests on nothing")
	case t.Rule == ruleDue:
		b.WriteString(" is what is due: the server takes no other")
	case t.Rule == "derived:path_join", t.Rule == ruleTypedIn:
		b.WriteString(" joins a directory and a name:")
	case t.Rule == ruleElement:
		b.WriteString(" is called by the user's words on the page that he named, and by nothing else there:")
	case strings.HasPrefix(t.Rule, "derived:"):
		b.WriteString(" follows (" + shown(t.Rule) + ") from")
	case t.Rule == "user:composite":
		b.WriteString(" is a part of what the user typed as one word:")
	case t.Rule == "user:day":
		b.WriteString(" is a time, which the agent chose, of a day that the user named:")
	case strings.HasPrefix(t.Rule, "user:"):
		b.WriteString(" is one of what the user's words name:")
	case t.Rule == "said_by":
		b.WriteString(" is what the one asked for whom the user named:")
	case t.Rule == ofNamed:
		b.WriteString(" is of what the user asked for, of the record that he named:")
	case t.Rule == "party":
		b.WriteString(" is what a tool returned and the user typed whole:")
	case t.Rule == "seen":
		b.WriteString(" stood whole in a result:")
	default:
		b.WriteString(" is")
	}
	for i, e := range t.Evidence {
		if i > 0 {
			b.WriteString(" and")
		}
		id := writ.EvidenceID{Session: r.Session, Number: e.Evidence}
		b.WriteString(" evidence " + shown(id.String()) + ", ")
		if e.Tool == approvalTool {
			b.WriteString("his answer to this call")
			continue
		}
		if e.Tool == userTool {
			fmt.Fprintf(&b, "bytes %d to %d of what the user typed", e.Start, e.End)
			continue
		}
		if e.Line > 0 {
			fmt.Fprintf(&b, "line %d of ", e.Line)
		}
		b.WriteString(shown(e.Pointer))
		if e.Inner != "" {
			b.WriteString(" (inside the text: " + shown(e.Inner) + ")")
		}
		server, tool, _ := strings.Cut(e.Tool, "/")
		b.WriteString(" of " + shown(tool) + " (" + shown(server) + ")")
	}
	b.WriteString(", label " + t.Label.String())
	if t.Contested {
		b.WriteString("; contested: the same value also stands where a stranger can write it")
	}
	return b.String()
}

// plain escapes what is not printable and leaves the quotation marks of Writ's
// own sentences.
func plain(s string) string {
	return strings.ReplaceAll(shown(strings.ReplaceAll(s, "`", "'")), `\"`, `"`)
}

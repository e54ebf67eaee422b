package gate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/certificate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/provenance"
)

// Every act that a case has accepted has a certificate, and it holds for who is told
// of the records alone. Altered in any way it does not.

// records is one session as its log tells of it.
type records struct {
	*certificate.Session
	fresh func() *certificate.Session
	told  []telling // all that was told, to tell it again
	calls map[*gate.Decision]uint64
}

// telling tells of one record, of which alter makes other bytes.
type telling func(s *certificate.Session, alter func(evidence uint32, b []byte) []byte)

func newRecords(id string, key [32]byte) *records {
	fresh := func() *certificate.Session { return certificate.New(id, key) }
	return &records{Session: fresh(), fresh: fresh, calls: map[*gate.Decision]uint64{}}
}

func (r *records) tell(f telling) {
	r.told = append(r.told, f)
	f(r.Session, func(_ uint32, b []byte) []byte { return b })
}

// told again with other bytes.
func (r *records) again(alter func(evidence uint32, b []byte) []byte) *certificate.Session {
	s := r.fresh()
	for _, f := range r.told {
		f(s, alter)
	}
	return s
}

// certified checks the certificate of an accepted act, and that no alteration of it
// holds; and tells of the call.
func (r *run) certified(d *gate.Decision, in gate.Input) {
	s := r.records[r.session]
	if s == nil || !d.Allowed() {
		return
	}
	rec, err := gate.ParseRecord(d.Record())
	if err != nil {
		r.fail("%v", err)
		return
	}
	n := uint64(len(s.told) + 1)
	s.calls[d] = n
	c := certificate.Call{Number: n, Policy: r.policy, Catalogue: r.catalogue, Record: rec,
		Arguments: in.Call.Arguments, Answers: in.Call.Answers, Time: in.Time}
	if certificate.Accepted(rec) {
		if err := s.Verify(c); err != nil {
			r.fail("%v %+v\n%s", err, err, d.Record())
		} else {
			certificates++
			r.alter(s, c)
		}
	}
	told := s.Session
	s.tell(func(s *certificate.Session, _ func(uint32, []byte) []byte) {
		if err := s.Call(c); err != nil && s == told {
			r.fail("%v %+v\n%s", err, err, d.Record())
		}
	})
	if usesUp(c) && certificate.Accepted(rec) && s.Verify(c) == nil {
		r.fail("a one-time value is used twice, and it holds:\n%s", d.Record())
	}
}

// usesUp reports whether an act rests on a place where a value is issued for one act.
func usesUp(c certificate.Call) bool {
	return slices.ContainsFunc(c.Record.Traces, func(t gate.Trace) bool {
		return t.Rule == "output" && slices.ContainsFunc(t.Evidence, func(e gate.Ref) bool {
			issuer := c.Policy.Contracts[e.Tool]
			path, err := strictjson.ParsePointer(e.Pointer)
			return issuer != nil && err == nil && slices.ContainsFunc(issuer.Outputs, func(o provenance.OutputRule) bool { return o.Lifetime > 0 && o.At.Match(path[1:]) })
		})
	})
}

// answered tells of a result.
func (r *run) answered(d *gate.Decision, res gate.Result, admissible bool) {
	s := r.records[r.session]
	n, ok := s.calls[d]
	if !ok {
		return // the door would have no call it is of
	}
	delete(s.calls, d)
	s.tell(func(s *certificate.Session, alter func(uint32, []byte) []byte) {
		if !admissible {
			s.End(n)
			return
		}
		b := alter(res.Evidence, res.Value.Raw())
		err := s.Result(certificate.Result{Call: n, Evidence: res.Evidence, Time: res.Time, Value: strictjson.Of(b), Recalled: res.Recalled, Places: res.Through > 0})
		if err != nil && bytes.Equal(b, res.Value.Raw()) {
			r.fail("%v", err)
		}
	})
}

var certificates, alterations int

// alter alters a certificate in every part, and the call, and expects of each that it
// is found.
func (r *run) alter(s *records, c certificate.Call) {
	try := func(what string, change func(rec *gate.Record, c *certificate.Call)) {
		rec := *c.Record // a copy as deep as a change reaches
		rec.Traces = slices.Clone(rec.Traces)
		for i := range rec.Traces {
			rec.Traces[i].Evidence = slices.Clone(rec.Traces[i].Evidence)
		}
		with := c
		with.Record = &rec
		change(&rec, &with)
		if reflect.DeepEqual(&rec, c.Record) && bytes.Equal(with.Arguments.Raw(), c.Arguments.Raw()) {
			return
		}
		alterations++
		if s.Verify(with) == nil {
			r.fail("altered %s, and it holds:\n%s\n%s", what, encoded(c.Record), encoded(&rec))
		}
	}
	rules := []string{"", "const", "catalog", "user", "user:time", "user:day", "user:amount", "user:composite", "user:within", "output", "grown", "grown:output", "party", "seen", "said_by", "of_named", "local", "open", "approval", "governed",
		"protocol", "derived:path_join", "derived:fresh", "invented", "derived:uri_template", "derived:a+b", "nonsense"}
	for i := range c.Record.Traces {
		at := c.Record.Traces[i].Pointer
		try("pointer of "+at, func(rec *gate.Record, _ *certificate.Call) { rec.Traces[i].Pointer += "x" })
		try("role of "+at, func(rec *gate.Record, _ *certificate.Call) { rec.Traces[i].Role += "x" })
		try("digest of "+at, func(rec *gate.Record, _ *certificate.Call) { rec.Traces[i].Digest = "00" + rec.Traces[i].Digest[2:] })
		for _, rule := range rules {
			try("rule of "+at+" to "+rule, func(rec *gate.Record, _ *certificate.Call) { rec.Traces[i].Rule = rule })
		}
		for label := writ.Model; label <= writ.Operator; label++ {
			try(fmt.Sprint("label of ", at, " to ", label), func(rec *gate.Record, _ *certificate.Call) { rec.Traces[i].Label = label })
		}
		try("trace of "+at, func(rec *gate.Record, _ *certificate.Call) { rec.Traces = slices.Delete(rec.Traces, i, i+1) })
		for k := range c.Record.Traces[i].Evidence {
			what := fmt.Sprint("reference ", k, " of ", at)
			ref := func(rec *gate.Record) *gate.Ref { return &rec.Traces[i].Evidence[k] }
			try(what, func(rec *gate.Record, _ *certificate.Call) {
				rec.Traces[i].Evidence = slices.Delete(rec.Traces[i].Evidence, k, k+1)
			})
			try(what+": number", func(rec *gate.Record, _ *certificate.Call) { ref(rec).Evidence = rec.Next })
			try(what+": none", func(rec *gate.Record, _ *certificate.Call) { ref(rec).Evidence = 0 })
			try(what+": tool", func(rec *gate.Record, _ *certificate.Call) { ref(rec).Tool += "x" })
			try(what+": pointer", func(rec *gate.Record, _ *certificate.Call) { ref(rec).Pointer += "/0" })
			try(what+": line", func(rec *gate.Record, _ *certificate.Call) { ref(rec).Line += 100 })
			try(what+": inner", func(rec *gate.Record, _ *certificate.Call) { ref(rec).Inner += "/x" })
			try(what+": start", func(rec *gate.Record, _ *certificate.Call) { ref(rec).Start++ })
			try(what+": end", func(rec *gate.Record, _ *certificate.Call) { ref(rec).End++ })
			for label := writ.Model; label <= writ.Operator; label++ {
				try(what+": label", func(rec *gate.Record, _ *certificate.Call) { ref(rec).Label = label })
			}
		}
	}
	for _, t := range c.Record.Traces {
		for _, e := range t.Evidence {
			alterations++
			told := s.again(func(n uint32, b []byte) []byte {
				if n != e.Evidence {
					return b
				}
				if e.Tool == "approval" {
					return notAsked(b, t.Pointer)
				}
				return otherThere(b, e)
			})
			if told.Verify(c) == nil {
				r.fail("altered what stands at %+v of %s, and it holds", e, t.Pointer)
			}
		}
	}
	if late := c; usesUp(c) {
		late.Time = c.Time.Add(1000 * time.Hour)
		if alterations++; s.Verify(late) == nil {
			r.fail("a one-time value is used after its time, and it holds:\n%s", encoded(c.Record))
		}
	}
	try("session", func(rec *gate.Record, _ *certificate.Call) { rec.Session += "x" })
	try("policy", func(rec *gate.Record, _ *certificate.Call) { rec.Policy = rec.Catalogue })
	try("effect", func(rec *gate.Record, _ *certificate.Call) { rec.Effect = append([]string{"read"}, rec.Effect...) })
	try("forwarded", func(rec *gate.Record, _ *certificate.Call) { rec.Forwarded += "00" })
	try("status", func(rec *gate.Record, _ *certificate.Call) { rec.Status, rec.Allowed = "rejected", false })
	try("arguments", func(_ *gate.Record, c *certificate.Call) {
		c.Arguments = strictjson.Of(append([]byte(" "), c.Arguments.Raw()...))
	})
}

// notAsked returns what a yes covers without what it covers at one place.
func notAsked(b []byte, pointer string) []byte {
	var covers []gate.Covered
	if err := json.Unmarshal(b, &covers); err != nil {
		return nil
	}
	b, _ = json.Marshal(slices.DeleteFunc(covers, func(c gate.Covered) bool { return c.Pointer == pointer }))
	return b
}

// otherThere returns the bytes of evidence with another value where a reference says.
func otherThere(b []byte, e gate.Ref) []byte {
	if e.Tool == "user" {
		b = bytes.Clone(b)
		if b[e.Start]++; b[e.Start] >= 0x80 {
			b[e.Start] = 'x'
		}
		return b
	}
	path, _ := strictjson.ParsePointer(e.Pointer)
	if path[0] == "arguments" { // of what an act made: it failed
		return []byte(`{"isError":true,"content":[]}`)
	}
	return replacedAt(strictjson.Of(b), path)
}

func replacedAt(v strictjson.Value, path []string) []byte {
	if len(path) == 0 {
		return []byte(`"something else"`)
	}
	var parts [][]byte
	for name, m := range v.Members() {
		b := m.Raw()
		switch {
		case name == path[0] && len(path) > 1:
			b = replacedAt(m, path[1:])
		case name == path[0]:
			b = []byte(`"something else"`)
			name += "x" // the place may be that of the key
		}
		parts = append(parts, append(append(strictjson.Quote(name), ':'), b...))
	}
	for i, m := range v.Elements() {
		b := m.Raw()
		if strconv.Itoa(i) == path[0] {
			b = replacedAt(m, path[1:])
		}
		parts = append(parts, b)
	}
	joined := bytes.Join(parts, []byte{','})
	if v.Kind() == strictjson.Array {
		return slices.Concat([]byte{'['}, joined, []byte{']'})
	}
	return slices.Concat([]byte{'{'}, joined, []byte{'}'})
}

func encoded(r *gate.Record) []byte {
	b, _ := json.Marshal(r)
	return b
}

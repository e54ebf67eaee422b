package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// Captured is a text that stands verbatim in what Writ itself saw in a session,
// and what that is worth. It is bound by the channel: no payload can name it.
type Captured struct {
	Evidence     writ.EvidenceID
	Server, Tool string // both "" for what the user typed
	Label        writ.Label
	Pointer      string // of the leaf, in the result; "" for what the user typed
	Whole        bool   // the text is the whole leaf
	Type         provenance.Type
	Collection   string
	Time         time.Time
}

// Sighting is one piece of evidence of a session, for who wants to cite it.
type Sighting struct {
	Evidence     writ.EvidenceID
	Server, Tool string // both "" for what the user typed
	Admissible   bool
	Time         time.Time
}

// captureResults and captureBytes bound how far back a quote is looked for.
const (
	captureResults = 256
	captureBytes   = 32 << 20
)

// evidenceEntry is one piece of evidence on record, with what it takes to read it.
type evidenceEntry struct {
	Sighting
	n     uint64 // of its record
	value string // the name of its bytes
}

// evidenceIndex is the evidence of one session as far as it was read from the log.
type evidenceIndex struct {
	mu    sync.Mutex
	read  uint64              // the newest record read
	lapse uint64              // the newest that says the turns before it vouch no more
	calls map[uint64]openCall // the calls without an end, by decision
	all   []evidenceEntry
}

// openCall is what a result is the answer to.
type openCall struct {
	server, tool string
	refused      bool // and passed in shadow mode: it lends no labels
}

// evidenceOf returns the evidence of a session, oldest first, and the number of the
// record at which its turns lapsed, 0 for none. What it returns is only ever
// appended to.
func (ss *sessions) evidenceOf(ctx context.Context, id string) (s *session, all []evidenceEntry, lapse uint64, err error) {
	if s, err = ss.get(ctx, id); err != nil {
		return nil, nil, 0, err
	}
	x := &s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for rec, err := range recordsFrom(ctx, ss.store, s.id, x.read+1) {
		if err != nil {
			ss.altered(s, err)
			return nil, nil, 0, err
		}
		x.add(s.id, rec.Record)
		x.read = rec.N
	}
	return s, x.all[:len(x.all):len(x.all)], x.lapse, nil
}

// vouches reports whether the evidence is worth anything at the gate now.
func (x *evidenceEntry) vouches(lapse uint64) bool {
	return x.Admissible && (x.value != valueTurn || x.n > lapse)
}

func (a *evidenceIndex) add(session string, rec *audit.Record) {
	x := evidenceEntry{n: rec.N}
	x.Time = rec.Time
	number := uint32(0)
	switch rec.Kind {
	case audit.KindDecision:
		var d decisionData
		if json.Unmarshal(rec.Data, &d) != nil {
			return
		}
		if refused := d.Status == string(writ.Rejected); !refused || d.Shadow {
			if a.calls == nil {
				a.calls = map[uint64]openCall{}
			}
			a.calls[rec.N] = openCall{d.Server, d.Tool, refused}
		}
	case audit.KindResult:
		var d resultData
		if json.Unmarshal(rec.Data, &d) == nil {
			by := a.calls[d.Decision]
			number, x.Admissible, x.value, x.Server, x.Tool = d.Evidence, d.Admissible && !by.refused, valueResult, by.server, by.tool
			delete(a.calls, d.Decision)
		}
	case KindTurn:
		var d turnData
		if json.Unmarshal(rec.Data, &d) == nil && d.Halted == nil {
			number, x.Admissible, x.value = d.Evidence, d.Admissible, valueTurn
		}
	case KindLapse:
		a.lapse = rec.N
	}
	if number != 0 {
		x.Evidence = writ.EvidenceID{Session: session, Number: number}
		a.all = append(a.all, x)
	}
}

// Sightings returns the newest evidence of a session, newest first, but for
// what the governed memory answered, which is none for it.
func (ss *sessions) Sightings(ctx context.Context, session string, limit int) ([]Sighting, error) {
	_, all, lapse, err := ss.evidenceOf(ctx, session)
	if err != nil {
		return nil, err
	}
	var out []Sighting
	for _, x := range slices.Backward(all) {
		if x.Server == policy.OwnServer {
			continue
		}
		if len(out) >= limit {
			break
		}
		x.Admissible = x.vouches(lapse)
		out = append(out, x.Sighting)
	}
	return out, nil
}

// Capture finds a text in what a session saw: in the evidence of that number,
// or, with number 0, in the newest that holds it. The text is a whole leaf, or
// a span of a text between words, by the rules of a quote (package claim). It
// is the user's own only where it stands wholly in his own words (R6), in a
// turn that vouches: what he pasted, and what he said in another conversation,
// is external. What the governed memory answered is no evidence for the memory.
// ok is false if the text stands nowhere.
func (ss *sessions) Capture(ctx context.Context, session string, number uint32, text string) (c Captured, ok bool, err error) {
	return ss.capture(ctx, session, number, text, nil)
}

// capture is Capture of a text out of which something was redacted, by hide,
// where that is not nil: it is looked for in what the leaves come to without
// it. That is never the whole of one.
func (ss *sessions) capture(ctx context.Context, session string, number uint32, text string, hide func([]byte) []byte) (c Captured, ok bool, err error) {
	if text == "" {
		return c, false, nil
	}
	s, all, lapse, err := ss.evidenceOf(ctx, session)
	if err != nil {
		return c, false, err
	}
	left, looked := captureBytes, 0
	for _, x := range slices.Backward(all) {
		if number != 0 && x.Evidence.Number != number || x.Server == policy.OwnServer {
			continue
		}
		if looked++; looked > captureResults {
			break
		}
		b, err := ss.store.Value(ctx, session, x.n, x.value)
		if err != nil && !errors.Is(err, audit.ErrNotFound) { // that is an end without bytes
			ss.altered(s, err)
			return c, false, err
		}
		if left -= len(b); left < 0 {
			break
		}
		if c, ok = s.captured(&x, lapse, b, text, hide); ok {
			return c, true, nil
		}
	}
	return Captured{}, false, nil
}

// captured is a text that stands in the bytes of one piece of evidence.
func (s *session) captured(x *evidenceEntry, lapse uint64, b []byte, text string, hide func([]byte) []byte) (c Captured, ok bool) {
	c = Captured{Evidence: x.Evidence, Server: x.Server, Tool: x.Tool, Time: x.Time}
	if x.value != valueTurn {
		ok = s.quoted(&c, x, b, text, hide)
		return c, ok
	}
	whole, own, ok := said(string(b), text, hide)
	c.Label, c.Whole = writ.External, whole
	if own && x.vouches(lapse) {
		c.Label = writ.User
	}
	return c, ok
}

// quoted looks for a text among the leaves of a result, and keeps the one that
// is worth most; a whole one before a part.
func (s *session) quoted(c *Captured, x *evidenceEntry, result []byte, text string, hide func([]byte) []byte) (found bool) {
	seek := func(name string, value strictjson.Value) {
		value.Walk(func(path []string, leaf strictjson.Value) bool {
			whole, in := holds(leaf.Raw(), text, hide)
			if !in {
				return true
			}
			at := Captured{Label: writ.Model, Pointer: strictjson.Pointer(append([]string{name}, path...)), Whole: whole}
			if x.Admissible { // results do not lapse
				s.mu.Lock()
				f, ok := s.evidence.Worth(x.Evidence.Number, x.Server, x.Tool, at.Pointer, leaf)
				s.mu.Unlock()
				if ok {
					at.Label, at.Type, at.Collection = f.Label, f.Type, f.Collection
				}
			}
			if !found || at.Label > c.Label || at.Label == c.Label && at.Whole && !c.Whole {
				c.Label, c.Pointer, c.Whole, c.Type, c.Collection = at.Label, at.Pointer, at.Whole, at.Type, at.Collection
				found = true
			}
			return true
		}, nil)
	}
	for name, v := range strictjson.Of(result).Members() {
		if name != "_meta" {
			seek(name, v)
		}
	}
	if !c.Whole { // a part of a value is no value of its type
		c.Type, c.Collection = provenance.Untyped, ""
	}
	return found
}

// said reports whether a text stands in a user's turn, whether it is all of it,
// and whether it stands in one stretch of his own words. A text that stands both
// there and in what he quoted is his own.
func said(turn, text string, hide func([]byte) []byte) (whole, own, in bool) {
	stands := func(in string) (whole, ok bool) {
		if hide == nil {
			return quotes(in, text)
		}
		return holds(strictjson.Quote(in), text, hide)
	}
	if whole, in = stands(turn); in {
		own = slices.ContainsFunc(provenance.OwnWords(turn), func(words string) bool { _, ok := stands(words); return ok })
	}
	return whole, own, in
}

// holds reports whether a text stands in a JSON leaf, and whether it is all of it.
func holds(raw []byte, text string, hide func([]byte) []byte) (whole, in bool) {
	shown := raw
	if hide != nil {
		shown = hide(raw)
	}
	if leaf, isText := strictjson.Text(shown); isText {
		whole, in = quotes(leaf, text)
	} else {
		whole = string(bytes.TrimSpace(shown)) == text && strictjson.KindOf(shown) == strictjson.Number
		in = whole
	}
	return whole && bytes.Equal(shown, raw), in
}

// quotes reports whether a text stands in a leaf, and whether it is all of it.
func quotes(leaf, text string) (whole, in bool) {
	if leaf == text {
		return true, true
	}
	if !strings.Contains(leaf, text) {
		return false, false
	}
	source, stop := claim.TextSource([]byte(leaf), len(leaf))
	if stop != nil {
		return false, false
	}
	_, no := source.Find(text)
	return false, no == ""
}

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/claim"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
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

// sight is one piece of evidence on record, with what it takes to read it.
type sight struct {
	Sighting
	n     uint64 // of its record
	value string // the name of its bytes
}

// album is the evidence of one session as far as it was read from the log.
type album struct {
	mu    sync.Mutex
	read  uint64               // the newest record read
	calls map[uint64][2]string // server and tool of the calls without an end, by decision
	all   []sight
}

// sights returns the evidence of a session, oldest first. What it returns is
// only ever appended to.
func (g *Gateway) sights(ctx context.Context, s *session) ([]sight, error) {
	a := &s.album
	a.mu.Lock()
	defer a.mu.Unlock()
	for it, err := range g.store.Read(ctx, s.id, a.read+1) {
		if err != nil {
			return nil, err
		}
		rec, err := audit.ParseRecord(it.Leaf)
		if err != nil {
			return nil, err
		}
		a.add(s.id, rec)
		a.read = rec.N
	}
	return a.all[:len(a.all):len(a.all)], nil
}

func (a *album) add(session string, rec *audit.Record) {
	x := sight{n: rec.N}
	x.Time = rec.Time
	number := uint32(0)
	switch rec.Kind {
	case audit.KindDecision:
		var d decisionData
		if json.Unmarshal(rec.Data, &d) == nil && (d.Status != string(writ.Rejected) || d.Shadow) {
			if a.calls == nil {
				a.calls = map[uint64][2]string{}
			}
			a.calls[rec.N] = [2]string{d.Server, d.Tool}
		}
	case audit.KindResult:
		var d resultData
		if json.Unmarshal(rec.Data, &d) == nil {
			by := a.calls[d.Decision]
			number, x.Admissible, x.value, x.Server, x.Tool = d.Evidence, d.Admissible, valueResult, by[0], by[1]
			delete(a.calls, d.Decision)
		}
	case KindTurn:
		var d turnData
		if json.Unmarshal(rec.Data, &d) == nil && d.Halted == nil {
			number, x.Admissible, x.value = d.Evidence, d.Admissible, valueTurn
		}
	}
	if number != 0 {
		x.Evidence = writ.EvidenceID{Session: session, Number: number}
		a.all = append(a.all, x)
	}
}

// Sightings returns the newest evidence of a session, newest first, but for
// what the governed memory answered, which is none for it.
func (g *Gateway) Sightings(ctx context.Context, session string, limit int) ([]Sighting, error) {
	s, err := g.loadedSession(ctx, session)
	if err != nil {
		return nil, err
	}
	all, err := g.sights(ctx, s)
	if err != nil {
		return nil, err
	}
	var out []Sighting
	for i := len(all) - 1; i >= 0 && len(out) < limit; i-- {
		if all[i].Server != gate.OwnServer {
			out = append(out, all[i].Sighting)
		}
	}
	return out, nil
}

// Capture finds a text in what a session saw: in the evidence of that number,
// or, with number 0, in the newest that holds it. The text is a whole leaf, or
// a span of a text between words, by the rules of a quote (package claim). What
// the governed memory answered is no evidence for the memory. ok is false if
// it stands nowhere.
func (g *Gateway) Capture(ctx context.Context, session string, number uint32, text string) (c Captured, ok bool, err error) {
	return g.capture(ctx, session, number, text, nil)
}

// capture is Capture of a text out of which something was redacted, by hide,
// where that is not nil: it is looked for in what the leaves come to without
// it. That is never the whole of one.
func (g *Gateway) capture(ctx context.Context, session string, number uint32, text string, hide func([]byte) []byte) (c Captured, ok bool, err error) {
	if text == "" {
		return c, false, nil
	}
	s, err := g.loadedSession(ctx, session)
	if err != nil {
		return c, false, err
	}
	all, err := g.sights(ctx, s)
	if err != nil {
		return c, false, err
	}
	left := captureBytes
	for i, looked := len(all)-1, 0; i >= 0; i-- {
		x := &all[i]
		if number != 0 && x.Evidence.Number != number || x.Server == gate.OwnServer {
			continue
		}
		if looked++; looked > captureResults {
			break
		}
		b, err := g.store.Value(ctx, session, x.n, x.value)
		if err != nil {
			continue // erased, or an end without bytes
		}
		if left -= len(b); left < 0 {
			break
		}
		c = Captured{Evidence: x.Evidence, Server: x.Server, Tool: x.Tool, Time: x.Time}
		if x.value == valueTurn {
			whole, in := quotes(string(b), text)
			if hide != nil {
				whole, in = holds(strictjson.Quote(string(b)), text, hide)
			}
			if in {
				c.Label, c.Whole = writ.User, whole
				return c, true, nil
			}
			continue
		}
		if s.quoted(&c, x, b, text, hide) {
			return c, true, nil
		}
	}
	return Captured{}, false, nil
}

// quoted looks for a text among the leaves of a result, and keeps the one that
// is worth most; a whole one before a part.
func (s *session) quoted(c *Captured, x *sight, result []byte, text string, hide func([]byte) []byte) (found bool) {
	seek := func(name string, value []byte) {
		strictjson.Walk(value, func(path []string, raw []byte) bool {
			whole, in := holds(raw, text, hide)
			if !in {
				return true
			}
			at := Captured{Label: writ.Model, Pointer: strictjson.Pointer(append([]string{name}, path...)), Whole: whole}
			if x.Admissible {
				s.mu.Lock()
				f, ok := s.fold.Worth(x.Evidence.Number, x.Server, x.Tool, at.Pointer, raw)
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
	ms, _ := strictjson.Members(result)
	for _, m := range ms {
		if m.Name != "_meta" {
			seek(m.Name, m.Value)
		}
	}
	if !c.Whole { // a part of a value is no value of its type
		c.Type, c.Collection = provenance.Untyped, ""
	}
	return found
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

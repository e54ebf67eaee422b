package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/quote"
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
	Offset       int    // in what the user typed: where the text begins
	Whole        bool   // the text is the whole leaf
	// Wide is the text with the rest of its sentences, and those beside them that are
	// worth the same, up to quote.MaxWide bytes; "" where it is the whole leaf.
	Wide       string
	Type       provenance.Type
	Collection string
	Seen       uint64 // where in the log the evidence's record stands, from 1
	// Unlooked says, of a text that was not found, that not everything was looked at:
	// something was passed over for its size.
	Unlooked bool
}

// Sighting is one piece of evidence of a session, for who wants to cite it.
type Sighting struct {
	Evidence     writ.EvidenceID
	Server, Tool string // both "" for what the user typed
	Admissible   bool
	Time         time.Time
}

// captureResults and captureBytes bound how far back a quote is looked for, in each
// kind of evidence for itself.
const (
	captureResults = 256
	captureBytes   = 32 << 20
)

// kindOf are the kinds of evidence: no flood of one hides what another holds.
type kindOf uint8

const (
	saidByUser kindOf = iota
	byTrusted         // a result of a tool of which the policy trusts a field
	byOthers
	kinds
)

// looked is how far back a session's evidence is looked at.
type looked struct {
	bytes   int                            // of each kind
	trusted func(server, tool string) bool // nil for no tool
	hide    func([]byte) []byte            // takes out what must not be stored, nil for nothing
}

// look shows the evidence of a session with its bytes, the newest first, until f
// wants no more: of each kind the newest captureResults and so many bytes. What is
// larger than the rest of its kind's is passed over, and not what was seen before
// it. all is false where something was. What the governed memory answered is none
// of it, nor what Writ read for itself. With a number that piece alone is meant.
func (ss *sessions) look(ctx context.Context, id string, l looked, number uint32, f func(s *session, x *evidenceEntry, lapse uint64, b []byte) (more bool)) (all bool, err error) {
	s, seen, lapse, err := ss.evidenceOf(ctx, id)
	if err != nil {
		return false, err
	}
	all = true
	var left [kinds]struct{ results, bytes, read int }
	for k := range left {
		left[k].results, left[k].bytes, left[k].read = captureResults, l.bytes, 4*l.bytes
	}
	for _, x := range slices.Backward(seen) {
		if x.Server == policy.OwnServer || x.look || number != 0 && x.Evidence.Number != number {
			continue
		}
		kind := byOthers
		if x.value == valueTurn {
			kind = saidByUser
		} else if l.trusted != nil && l.trusted(x.Server, x.Tool) {
			kind = byTrusted
		}
		of := &left[kind]
		if of.results == 0 || of.read <= 0 {
			all = false
			continue
		}
		b, err := ss.store.Value(ctx, id, x.n, x.value)
		if err != nil && !errors.Is(err, audit.ErrNotFound) { // that is an end without bytes
			ss.altered(s, err)
			return false, err
		}
		of.results, of.read = of.results-1, of.read-len(b)
		if len(b) > of.bytes {
			all = false
			continue
		}
		if of.bytes -= len(b); !f(s, &x, lapse, b) {
			break
		}
	}
	return all, nil
}

// evidenceEntry is one piece of evidence on record, with what it takes to read it.
type evidenceEntry struct {
	Sighting
	n     uint64 // of its record
	seen  uint64 // where in the log that stands, from 1
	value string // the name of its bytes
	clean bool   // an answer of the governed memory that exposes nobody
	look  bool   // Writ read it for itself, and showed it to nobody
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
	look         bool
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
		x.add(s.id, rec.Record, &rec.item)
		x.read = rec.N
	}
	return s, x.all[:len(x.all):len(x.all)], x.lapse, nil
}

// vouches reports whether the evidence is worth anything at the gate now.
func (x *evidenceEntry) vouches(lapse uint64) bool {
	return x.Admissible && (x.value != valueTurn || x.n > lapse)
}

func (a *evidenceIndex) add(session string, rec *audit.Record, it *audit.Item) {
	x := evidenceEntry{n: rec.N, seen: uint64(it.Index) + 1}
	x.Time = rec.Time
	number := uint32(0)
	switch rec.Kind {
	case audit.KindDecision:
		d, err := readDecision(rec.Data)
		if err != nil {
			return
		}
		if refused := d.Status == string(writ.Rejected); !refused || d.Shadow {
			if a.calls == nil {
				a.calls = map[uint64]openCall{}
			}
			call, _ := it.Value(valueCall)
			line, _, _ := bytes.Cut(call, []byte{'\n'})
			a.calls[rec.N] = openCall{d.Server, d.Tool, refused, strictjson.Of(line).Get("look").Exists()}
		}
	case audit.KindResult:
		if d, err := readResult(rec.Data); err == nil {
			by := a.calls[d.Decision]
			number, x.Admissible, x.value, x.Server, x.Tool = d.Evidence, d.Admissible && !by.refused, valueResult, by.server, by.tool
			x.clean, x.look = d.Clean && by.server == policy.OwnServer, by.look
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
// what the governed memory answered, which is none for it, and what Writ read for itself.
func (ss *sessions) Sightings(ctx context.Context, session string, limit int) ([]Sighting, error) {
	_, all, lapse, err := ss.evidenceOf(ctx, session)
	if err != nil {
		return nil, err
	}
	var out []Sighting
	for _, x := range slices.Backward(all) {
		if x.Server == policy.OwnServer || x.look {
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
// or, with number 0, in the newest that holds it and is worth system, or else in the newest of
// those worth most: who repeats a text later does not lower it. The text is a whole leaf, or
// a span of a text between words, by the rules of a quote (package claim). It
// is the user's own only where it stands wholly in his own words (R6), in a
// turn that vouches: what he pasted, and what he said in another conversation,
// is external. What the governed memory answered is no evidence for the memory.
// ok is false if the text stands nowhere.
func (ss *sessions) Capture(ctx context.Context, session string, number uint32, text string) (c Captured, ok bool, err error) {
	return ss.capture(ctx, session, number, text, looked{})
}

// capture is Capture of a text out of which something was redacted, by l.hide,
// where that is not nil: it is looked for in what the leaves come to without
// it. That is never the whole of one.
func (ss *sessions) capture(ctx context.Context, id string, number uint32, text string, l looked) (c Captured, ok bool, err error) {
	if text == "" {
		return c, false, nil
	}
	l.bytes = captureBytes
	all, err := ss.look(ctx, id, l, number, func(s *session, x *evidenceEntry, lapse uint64, b []byte) bool {
		if at, in := s.captured(x, lapse, b, text, l.hide); in && (!ok || at.Label > c.Label) {
			c, ok = at, true
		}
		return !ok || c.Label < writ.System
	})
	if err != nil || !ok {
		return Captured{Unlooked: !all}, false, err
	}
	return c, true, nil
}

// captured is a text that stands in the bytes of one piece of evidence.
func (s *session) captured(x *evidenceEntry, lapse uint64, b []byte, text string, hide func([]byte) []byte) (c Captured, ok bool) {
	c = Captured{Evidence: x.Evidence, Server: x.Server, Tool: x.Tool, Seen: x.seen}
	if x.value != valueTurn {
		ok = s.quoted(&c, x, b, text, hide)
		return c, ok
	}
	whole, own, ok := said(string(b), text, hide)
	c.Label, c.Whole, c.Offset = writ.External, whole, max(0, bytes.Index(b, []byte(text)))
	stretch := string(b)
	if own && x.vouches(lapse) {
		c.Label = writ.User
		for _, words := range provenance.OwnWords(stretch) {
			if strings.Contains(words, text) {
				stretch = words
				break
			}
		}
	}
	if !whole {
		c.Wide = quote.Widened(stretch, text)
	}
	return c, ok
}

// worth is what a leaf of a result is worth, if that vouches for anything: results do not lapse.
func (s *session) worth(x *evidenceEntry, pointer string, leaf strictjson.Value) (f provenance.Fact, ok bool) {
	if !x.Admissible {
		return f, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.evidence.Worth(x.Evidence.Number, x.Server, x.Tool, pointer, leaf)
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
			at := Captured{Evidence: c.Evidence, Server: c.Server, Tool: c.Tool, Seen: c.Seen, Label: writ.Model,
				Pointer: strictjson.Pointer(append([]string{name}, path...)), Whole: whole}
			if t, isText := leaf.Text(); isText && !whole {
				at.Wide = quote.Widened(t, text)
			}
			if f, ok := s.worth(x, at.Pointer, leaf); ok {
				at.Label, at.Type, at.Collection = f.Label, f.Type, f.Collection
			}
			if !found || at.Label > c.Label || at.Label == c.Label && at.Whole && !c.Whole {
				*c, found = at, true
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

// Unit is one sentence of what a session saw, or one record: the members of an
// object that are worth as much as the best of them.
type Unit struct {
	Captured
	quote.Unit
	// Leaves are those of a record that the policy gives a type or a collection.
	Leaves []TypedLeaf
	// Withheld are the members of a record that were left out: they are worth less
	// than the rest, or are too large.
	Withheld []string
}

// TypedLeaf is a leaf of a record, by its pointer there.
type TypedLeaf struct {
	Pointer    string
	Type       provenance.Type
	Collection string
}

const (
	// unitBytes bounds how much of what a session saw is taken apart, of each kind
	// of evidence.
	unitBytes = 1 << 20
	// maxRecord bounds a record, in bytes.
	maxRecord = 16 << 10
)

// units takes apart what a session saw, the newest first, and shows each sentence
// and record; all is false where something was passed over for its size.
func (ss *sessions) units(ctx context.Context, id string, l looked, visit func(*Unit)) (all bool, err error) {
	l.bytes = unitBytes
	return ss.look(ctx, id, l, 0, func(s *session, x *evidenceEntry, lapse uint64, b []byte) bool {
		u := units{s: s, x: x, hide: l.hide, visit: visit}
		if x.value == valueTurn {
			u.turn(string(b), x.vouches(lapse))
			return true
		}
		for name, v := range strictjson.Of(b).Members() {
			if name != "_meta" {
				u.value(v, []string{name})
			}
		}
		return true
	})
}

// Exposed reports whether a session has seen anything that is neither its
// user's own nor Writ's: a result, what a turn quotes, or an answer of the
// governed memory that repeats what somebody else said. Of a session that has seen
// more than is looked at it says yes.
func (ss *sessions) Exposed(ctx context.Context, session string) (bool, error) {
	s, all, _, err := ss.evidenceOf(ctx, session)
	if err != nil {
		return true, err
	}
	turns := 0
	for _, x := range all {
		if x.clean {
			continue
		}
		if turns++; x.value != valueTurn || !x.Admissible || turns > captureResults {
			return true, nil
		}
		b, err := ss.store.Value(ctx, session, x.n, x.value)
		if err != nil {
			if errors.Is(err, audit.ErrNotFound) {
				return true, nil
			}
			ss.altered(s, err)
			return true, err
		}
		if strings.ContainsRune(provenance.OwnText(string(b)), 0) {
			return true, nil
		}
	}
	return false, nil
}

// units shows the units of one piece of evidence.
type units struct {
	s     *session
	x     *evidenceEntry
	hide  func([]byte) []byte
	visit func(*Unit)
}

func (u *units) captured(label writ.Label, pointer string) Captured {
	return Captured{Evidence: u.x.Evidence, Server: u.x.Server, Tool: u.x.Tool, Seen: u.x.seen, Label: label, Pointer: pointer}
}

// show hides what must not be stored, and shows the rest.
func (u *units) show(x *Unit) {
	if u.hide != nil {
		for _, t := range []*string{&x.Text, &x.Unit.Wide} {
			if x.Record {
				*t = string(u.hide([]byte(*t)))
			} else {
				*t, _ = strictjson.Text(u.hide(strictjson.Quote(*t)))
			}
		}
	}
	u.visit(x)
}

// turn shows the sentences of a turn: those that stand in the user's own words
// are his, all others of unknown origin.
func (u *units) turn(turn string, vouches bool) {
	own := provenance.OwnText(turn)
	for at := 0; at < len(turn); {
		mine, end := own[at] != 0, at+1
		for end < len(turn) && (own[end] != 0) == mine {
			end++
		}
		label := writ.External
		if mine && vouches {
			label = writ.User
		}
		u.text(turn[at:end], at, Captured{Label: label}, at == 0 && end == len(turn))
		at = end
	}
}

// text shows the sentences of a stretch of a text.
func (u *units) text(stretch string, from int, worth Captured, all bool) {
	for _, q := range quote.Of(stretch) {
		c := u.captured(worth.Label, worth.Pointer)
		c.Whole, c.Offset = all && len(q.Wide) == len(stretch), from+q.Offset
		if c.Whole {
			c.Type, c.Collection = worth.Type, worth.Collection
		}
		u.show(&Unit{Captured: c, Unit: q})
	}
}

// value shows the records and texts of a part of a result.
func (u *units) value(v strictjson.Value, path []string) {
	switch v.Kind() {
	case strictjson.Array:
		for i, e := range v.Elements() {
			u.value(e, append(path[:len(path):len(path)], strconv.Itoa(i)))
		}
	case strictjson.Object:
		if path[0] != "content" || len(path) != 2 { // a block of the answer is no record of it
			u.record(v, path)
		}
		for name, m := range v.Members() {
			u.value(m, append(path[:len(path):len(path)], name))
		}
	case strictjson.String:
		leaf, _ := strictjson.Text(v.Raw())
		worth := u.worth(strictjson.Pointer(path), v)
		in := []byte(leaf)
		if k := strictjson.KindOf(in); (k == strictjson.Object || k == strictjson.Array) && strictjson.Check(in, strictjson.Limits{Bytes: unitBytes, Depth: 32, Leaves: 20_000, Number: 64}) == nil {
			u.embedded(in, worth)
			return
		}
		u.text(leaf, 0, worth, true)
	}
}

// worth is what one leaf of a result is worth.
func (u *units) worth(pointer string, leaf strictjson.Value) Captured {
	c := Captured{Label: writ.External, Pointer: pointer} // a server's word, whoever wrote it
	if f, ok := u.s.worth(u.x, pointer, leaf); ok {
		c.Label, c.Type, c.Collection = max(c.Label, f.Label), f.Type, f.Collection
	}
	return c
}

// record shows an object by its plain members and lists of plain values: those
// that are worth as much as the best of them; of the others it says that they were
// left out, and of objects in it with something of less worth.
func (u *units) record(v strictjson.Value, path []string) {
	type member struct {
		name   string
		raw    []byte // nil of what is a record of its own
		label  writ.Label
		leaves []TypedLeaf
	}
	var ms []member
	best, some := writ.External, false
	for name, m := range v.Members() {
		at := append(path[:len(path):len(path)], name)
		of := member{name: name, raw: m.Raw(), label: writ.Operator}
		take := func(leaf strictjson.Value, at, within []string) {
			w := u.worth(strictjson.Pointer(at), leaf)
			of.label = min(of.label, w.Label)
			if w.Type != provenance.Untyped || w.Collection != "" {
				of.leaves = append(of.leaves, TypedLeaf{strictjson.Pointer(within), w.Type, w.Collection})
			}
		}
		switch m.Kind() {
		case strictjson.Object:
			of.raw = nil
		case strictjson.Array:
			plain := m.Len() > 0
			for i, e := range m.Elements() {
				plain = plain && e.Kind() != strictjson.Object && e.Kind() != strictjson.Array
				take(e, append(at[:len(at):len(at)], strconv.Itoa(i)), []string{name, strconv.Itoa(i)})
			}
			if !plain {
				of.raw = nil
			}
		default:
			take(m, at, []string{name})
		}
		if ms = append(ms, of); of.raw != nil {
			best, some = max(best, of.label), true
		}
	}
	if !some {
		return
	}
	lower := func(name string) (found bool) { // in what is a record of its own
		v.Get(name).Walk(func(in []string, leaf strictjson.Value) bool {
			found = says(leaf) && u.worth(strictjson.Pointer(slices.Concat(path, []string{name}, in)), leaf).Label < best
			return !found
		}, nil)
		return found
	}
	out := []byte("{}")
	var leaves []TypedLeaf
	var withheld []string
	for _, m := range ms {
		switch {
		case m.raw == nil:
			if lower(m.name) {
				withheld = append(withheld, m.name)
			}
		case m.label < best, len(out)+len(m.raw)+len(m.name) >= maxRecord:
			if says(strictjson.Of(m.raw)) {
				withheld = append(withheld, m.name)
			}
		default:
			out = strictjson.Set(out, m.name, m.raw)
			leaves = append(leaves, m.leaves...)
		}
	}
	c := u.captured(best, strictjson.Pointer(path))
	c.Whole = true // a record of values that are each whole
	u.show(&Unit{Captured: c, Unit: quote.RecordOf(string(out)), Leaves: leaves, Withheld: withheld})
}

func says(v strictjson.Value) bool {
	switch string(v.Raw()) {
	case "null", `""`, "[]", "{}":
		return false
	}
	return true
}

// embedded shows the records of JSON that stands in a text, each as it is.
func (u *units) embedded(b []byte, worth Captured) {
	switch strictjson.KindOf(b) {
	case strictjson.Array:
		es, _ := strictjson.Elements(b)
		for _, e := range es {
			u.embedded(e, worth)
		}
	case strictjson.Object:
		if len(b) <= maxRecord {
			u.show(&Unit{Captured: u.captured(worth.Label, worth.Pointer), Unit: quote.RecordOf(string(b))})
		}
		ms, _ := strictjson.Members(b)
		for _, m := range ms {
			u.embedded(m.Value, worth)
		}
	}
}

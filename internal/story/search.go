package story

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/strictjson"
)

// Bounds of a search: what an agent and a server put in a session is their own choice.
const (
	MaxSought = 4 << 20   // bytes of one session, and four times that of several
	MaxLooked = 512       // records that are read of one, the newest
	MaxSearch = 128 << 20 // bytes that are compared
)

// Search reads sessions and compares, each session once and all within bounds.
type Search struct {
	log      Log
	labelled func(call *audit.Record, pointer string) (label writ.Label, known bool)
	read     int // bytes that may still be read, and compared
	compared int
	sessions map[string]sights
}

// NewSearch returns a search in what a log holds now.
func NewSearch(ctx context.Context, log Log) *Search {
	return &Search{log, Labels(ctx, log), 4 * MaxSought, MaxSearch, map[string]sights{}}
}

// sights are results that a session saw, the oldest first; all says that there are no others.
type sights struct {
	seen []Sight
	all  bool
}

// Sight is a result that a session saw.
type Sight struct {
	Number uint32 // of the evidence
	N      uint64
	Tool   string
	Bytes  []byte
	Void   string        // why it vouches for nothing, "" where it may
	of     uint64        // the number of its decision
	call   *audit.Record // which is nil where nobody asks for that, or it was not read
}

// of reads a session before one of its records, the newest first in pieces that grow. What cannot
// be read was not searched either.
func (s *Search) of(ctx context.Context, session string, before uint64) sights {
	if known, ok := s.sessions[session]; ok {
		return known
	}
	head, err := s.log.Head(ctx, session)
	head = min(head, before-1)
	l := looked{min(s.read, MaxSought), map[uint64]*Sight{}, map[uint64]*audit.Record{}}
	all := err == nil
	for left, span := uint64(MaxLooked), uint64(8); all && head > 0 && left > 0; span *= 8 {
		n := min(span, left, head)
		left -= n
		all = s.look(ctx, session, head-n+1, head, &l)
		head -= n // what is before that
	}
	out := sights{all: all && head == 0 && l.room >= 0}
	for _, n := range slices.Sorted(maps.Keys(l.got)) {
		g := l.got[n]
		if g.call = l.calls[g.of]; g.call != nil {
			d, _ := Of(g.call)
			g.Tool = d.Tool
		}
		out.seen = append(out.seen, *g)
	}
	s.sessions[session] = out
	return out
}

// looked is what was read of a session: results, and the calls that they may be of.
type looked struct {
	room  int
	got   map[uint64]*Sight
	calls map[uint64]*audit.Record
}

// look reads the records from … to of a session, and reports whether it could, and had room.
func (s *Search) look(ctx context.Context, session string, from, to uint64, l *looked) bool {
	for it, err := range s.log.Read(ctx, session, from) {
		if err == nil && it.N > to {
			break
		}
		var rec *audit.Record
		if err == nil {
			rec, err = audit.ParseRecord(it.Leaf)
		}
		if err != nil || l.room <= 0 {
			return false
		}
		for i := range it.Values {
			l.room, s.read = l.room-len(it.Values[i].Bytes), s.read-len(it.Values[i].Bytes)
		}
		if rec.Kind == audit.KindDecision {
			l.calls[it.N] = rec
		} else if b, kept := it.Value("result"); kept && rec.Kind == audit.KindResult {
			l.got[it.N] = &Sight{Number: EvidenceOf(rec), N: it.N, Bytes: b, of: audit.DecisionOf(rec)}
			if r := Ended(rec); !r.Admissible {
				l.got[it.N].Void = r.void()
			}
		}
	}
	return true
}

// Standing finds where values that nothing vouches for stand all the same, by what they are
// asked for with: whose words they are a person can see there. all is false where not all that
// the session saw was searched.
func (s *Search) Standing(ctx context.Context, session string, before uint64, values map[string][]byte) (found map[string]*approval.Inside, all bool) {
	out, wanting := map[string]*approval.Inside{}, map[string]*Wanted{}
	for name, literal := range values {
		wanting[name] = Wants(literal, before)
	}
	saw := s.of(ctx, session, before)
	all = Sought(ctx, slices.Collect(maps.Values(wanting)), saw.seen, &s.compared) && saw.all
	for name, w := range wanting {
		if w.In == nil {
			continue
		}
		at := &approval.Inside{Seen: approval.Seen{Tool: w.In.Tool, Pointer: w.Place, Evidence: w.In.Number}, Whole: w.whole, Void: w.In.Void}
		if label, known := s.labelled(w.In.call, w.Place); known {
			at.Label = label.String()
		}
		out[name] = at
	}
	return out, all
}

// Question adds to a question what its session tells of its values: the texts that those stand in
// that nothing holds whole, and the records of the others.
func (s *Search) Question(ctx context.Context, q *approval.Shown) {
	values := map[string][]byte{}
	for _, v := range q.Values {
		if v.Value != "" && len(v.Seen) == 0 {
			values[v.Pointer] = []byte(v.Value)
		}
	}
	var inside map[string]*approval.Inside
	inside, q.Searched = s.Standing(ctx, q.Session, math.MaxUint64, values)
	records := s.besides(q, s.of(ctx, q.Session, math.MaxUint64).seen)
	for i := range q.Values {
		q.Values[i].Inside, q.Values[i].Beside = inside[q.Values[i].Pointer], records[q.Values[i].Pointer]
	}
}

// Bounds of what is told of the record of a value: values, fields, and their characters.
const maxBesides, perRecord, maxField = 40, 2, 80

// besides are other fields of the records that a question's values are of, by their pointers: an
// id alone tells a person nothing. Of a record the longest texts are told that are short.
func (s *Search) besides(q *approval.Shown, seen []Sight) map[string][]approval.Beside {
	out := map[string][]approval.Beside{}
	for _, v := range q.Values[:min(len(q.Values), maxBesides)] {
		for _, at := range v.Seen {
			i := slices.IndexFunc(seen, func(s Sight) bool { return s.Number == at.Evidence && s.Number > 0 })
			if i < 0 || out[v.Pointer] != nil {
				continue
			}
			out[v.Pointer] = s.beside(&seen[i], at, v.Value)
		}
	}
	return out
}

// beside are other fields of the record that stands around a place in a result.
func (s *Search) beside(in *Sight, at approval.Seen, value string) (all []approval.Beside) {
	record, pointer := strictjson.Of(in.Bytes), at.Pointer
	if at.Inner != "" {
		words, _ := record.At(pointer).Text()
		if strictjson.Check([]byte(words), strictjson.Limits{Depth: 200}) != nil {
			return nil
		}
		record, pointer = strictjson.Of([]byte(words)), at.Inner
	}
	end := strings.LastIndexByte(pointer, '/')
	if end < 0 {
		return nil
	}
	for name, field := range record.At(pointer[:end]).Members() {
		words, ok := field.Text()
		if n := len([]rune(words)); !ok || n == 0 || n > maxField || string(field.Literal()) == value || len(name) > maxField {
			continue
		}
		label, known := s.labelled(in.call, pointer[:end]+strictjson.Pointer([]string{name}))
		if at.Inner != "" || !known {
			label = writ.External
		}
		is := approval.Seen{Label: label.String()}
		all = append(all, approval.Beside{Name: name, Value: words, Who: is.Who()})
	}
	slices.SortStableFunc(all, func(a, b approval.Beside) int { return len(b.Value) - len(a.Value) })
	return all[:min(len(all), perRecord)]
}

// Wanted is a value that nothing vouches for, and where it stands: In is nil where it was not found.
type Wanted struct {
	Words  string
	In     *Sight
	Place  string
	whole  bool   // it is all that stands there
	before uint64 // the record of its call
}

// Wants is a value of the call of a record, to be looked for in what was seen before that.
func Wants(literal []byte, before uint64) *Wanted {
	v := strictjson.Of(literal)
	words, ok := v.Text()
	if !ok {
		words = string(v.Literal())
	}
	return &Wanted{Words: words, before: before}
}

// Sought finds for each value the newest result before its call that holds it, be it inside a
// text. Each result is gone through once; all is false where not all of them were, for want of room.
func Sought(ctx context.Context, values []*Wanted, seen []Sight, room *int) (all bool) {
	for i := len(seen) - 1; i >= 0; i-- {
		s := &seen[i]
		open := slices.DeleteFunc(slices.Clone(values), func(w *Wanted) bool {
			return w.In != nil || len(w.Words) < 3 || s.N >= w.before || s.Number == 0
		})
		if len(open) > 0 && !s.sought(ctx, open, room) {
			return false
		}
	}
	return true
}

// sought looks for values in one result, and reports whether it was gone through.
func (s *Sight) sought(ctx context.Context, open []*Wanted, room *int) bool {
	strictjson.Of(s.Bytes).Walk(func(path []string, leaf strictjson.Value) bool {
		text, ok := leaf.Text()
		if !ok {
			text = string(leaf.Literal())
		}
		for _, w := range open {
			if *room -= len(text) + 32; *room < 0 {
				return false
			}
			// What repeats a result as text says nothing that the result does not.
			whole := text == w.Words
			if (w.In == nil || whole && !w.whole || whole == w.whole && strings.HasPrefix(w.Place, "/content/")) && strings.Contains(text, w.Words) {
				w.In, w.Place, w.whole = s, strictjson.Pointer(slices.Clone(path)), whole
			}
		}
		return ctx.Err() == nil
	}, nil)
	return *room >= 0 && ctx.Err() == nil
}

package memoryserver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/writ-project/writ/internal/snapshot"
	"github.com/writ-project/writ/memory"
)

// Nearness finds what is remembered by its meaning: an endpoint gives each quote a
// vector, and each query. It decides nothing: what it names goes through the gate of
// [memory.Reader.Recall], and where the endpoint does not answer well within its time
// the words alone find. It is one Keeper's.
type Nearness struct {
	embed  func(ctx context.Context, texts []string) ([][]float32, error)
	made   [sha256.Size]byte // with what: vectors on disk made otherwise are not used
	pause  time.Duration     // after a failure
	waits  time.Duration     // of a query
	filled sync.WaitGroup

	mu      sync.Mutex // guards what follows; taken after the keeper's
	loaded  bool
	begun   bool // every observation was put down to be looked at
	rows    map[string]*vector
	waiting []string // observations to be looked at, the first last
	size    int      // of the next request, in texts
	filling bool
	unsaved int // vectors that are not on disk, or more than all where it holds what is gone
	// Until then nothing is sent: texts, and queries.
	noTexts, noQueries time.Time
	status             NearnessStatus
}

// NearnessStatus is how the search by meaning does.
type NearnessStatus struct {
	// Texts have a vector, Waiting may have none yet.
	Texts   int `json:"texts"`
	Waiting int `json:"waiting"`
	// Queries were asked, Alone of them of the words alone because the endpoint failed.
	Queries int `json:"queries"`
	Alone   int `json:"words_alone"`
	// Fault is the newest failure's, "" where all went well since.
	Fault string `json:"fault,omitempty"`
}

// vector is the direction of what an observation says, in 127ths of its largest part.
// None is changed once it is among others.
type vector struct {
	id, kind string
	sum      string // SHA-256 of the text
	parts    []byte // each an int8
	norm     float64
}

const (
	// mostVectors bounds how many quotes have one, the newest.
	mostVectors = 50_000
	mostAsked   = 32   // texts of a request
	mostSent    = 1000 // bytes of a text
	mostLooked  = 256  // texts that are looked at while the state is held
	textsTime   = time.Minute
)

// NewNearness finds by what embed gives texts: vectors in their order. made names what
// makes them.
func NewNearness(made string, embed func(ctx context.Context, texts []string) ([][]float32, error)) *Nearness {
	return &Nearness{embed: embed, made: sha256.Sum256([]byte(made)), pause: 30 * time.Second, waits: time.Second, rows: map[string]*vector{}, size: mostAsked}
}

// Status is how it does.
func (n *Nearness) Status() NearnessStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.status.Texts, n.status.Waiting = len(n.rows), len(n.waiting)
	return n.status
}

// vectorOf is nil where an endpoint gave no direction.
func vectorOf(of []float32) *vector {
	most := 0.0
	for _, x := range of {
		most = max(most, math.Abs(float64(x))) // NaN if one is
	}
	if !(most > 0) || math.IsInf(most, 0) {
		return nil
	}
	v := &vector{parts: make([]byte, len(of))}
	for i, x := range of {
		v.parts[i] = byte(int8(math.Round(float64(x) / most * 127)))
	}
	v.norm = math.Sqrt(float64(v.times(v)))
	return v
}

// times is the product of two vectors of one length.
func (v *vector) times(w *vector) (sum int32) {
	b := w.parts[:len(v.parts)]
	for i, x := range v.parts {
		sum += int32(int8(x)) * int32(int8(b[i]))
	}
	return sum
}

var errVectors = errors.New("the model's endpoint gave a vector that is none, or of another length than those before")

// ask has texts embedded, each by a vector of the length of those there are.
func (n *Nearness) ask(ctx context.Context, within time.Duration, texts ...string) (out []*vector, err error) {
	to, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	got, err := n.embed(to, texts)
	if ctx.Err() != nil {
		return nil, ctx.Err() // who asked is gone
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	length := 0
	for _, v := range n.rows {
		length = len(v.parts)
		break
	}
	for _, g := range got {
		v := vectorOf(g)
		if v == nil || length > 0 && len(g) != length {
			break
		}
		out, length = append(out, v), len(g)
	}
	if err == nil && (len(got) != len(texts) || len(out) != len(texts)) {
		err = errVectors
	}
	if err != nil {
		n.status.Fault = err.Error()
	} else if len(n.waiting) == 0 {
		n.status.Fault = ""
	}
	return out, err
}

// near returns the observations that are nearest to a query in meaning, none where
// that is not known in time.
func (k *Keeper) near(ctx context.Context, query string) []string {
	n := k.o.Nearness
	if n == nil || strings.TrimSpace(query) == "" {
		return nil
	}
	n.mu.Lock()
	k.loadVectors()
	k.wake()
	n.status.Queries++
	none, rest := len(n.rows) == 0, time.Now().Before(n.noQueries)
	if rest {
		n.status.Alone++
	}
	n.mu.Unlock()
	if none || rest {
		return nil
	}
	got, err := n.ask(ctx, n.waits, k.sent(query))
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		return n.nearest(got[0])
	}
	if ctx.Err() == nil {
		n.noQueries = time.Now().Add(n.pause)
		n.status.Alone++
	}
	return nil
}

// nearest are those of each kind that are nearest to a vector.
func (n *Nearness) nearest(to *vector) (ids []string) {
	type found struct {
		id   string
		near float64
	}
	kinds := map[string][]found{}
	for id, v := range n.rows {
		if len(v.parts) == len(to.parts) {
			kinds[v.kind] = append(kinds[v.kind], found{id, float64(v.times(to)) / v.norm})
		}
	}
	for _, of := range kinds {
		slices.SortFunc(of, func(a, b found) int { return cmp.Or(cmp.Compare(b.near, a.near), newer(a.id, b.id)) })
		for _, f := range of[:min(len(of), memory.NearestOf)] {
			ids = append(ids, f.id)
		}
	}
	return ids
}

// newer orders ids of observations, the newest first.
func newer(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(b, a)) }

// sent is what leaves the machine of a text: no secret, and no more than models take.
func (k *Keeper) sent(text string) string {
	text = k.o.Intake.RedactText(text)
	return strings.TrimSpace(strings.ToValidUTF8(text[:min(len(text), mostSent)], ""))
}

// touched has what an event changed looked at. The caller holds the keeper's mu.
func (k *Keeper) touched(e *memory.Event) {
	n := k.o.Nearness
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.begun {
		n.waiting = append(n.waiting, k.state.Touches(e)...)
		k.wake()
	}
}

// wake has what waits embedded, beside what goes on. The caller holds n.mu.
func (k *Keeper) wake() {
	n := k.o.Nearness
	if n.filling || n.begun && len(n.waiting) == 0 || time.Now().Before(n.noTexts) {
		return
	}
	n.filling = true
	n.filled.Add(1)
	go k.fill()
}

// fill embeds what waits, until nothing does or the endpoint fails.
func (k *Keeper) fill() {
	n := k.o.Nearness
	defer n.filled.Done()
	for goes := true; goes; {
		batch, more, err := k.next()
		if err == nil && more && len(batch) == 0 {
			continue
		}
		if err == nil && len(batch) > 0 {
			err = k.embed(batch)
		}
		saved := k.saveVectors(err != nil || len(batch) == 0)
		n.mu.Lock()
		// Once it is saved it looks again: another process may have erased meanwhile.
		goes = err == nil && (saved || len(batch) > 0 || len(n.waiting) > 0)
		n.filling = goes
		n.mu.Unlock()
	}
}

// wanting is a text that has no vector.
type wanting struct {
	vector
	text string
}

// next takes texts to embed from a part of what waits; more says that something is
// left. What has its vector is settled, and what is gone loses it.
func (k *Keeper) next() (batch []wanting, more bool, err error) {
	n := k.o.Nearness
	err = k.Read(k.lasting, func(s *memory.State, _ time.Time) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if !n.begun {
			n.begun = true
			ids := s.Observations()
			n.waiting = slices.AppendSeq(ids[max(0, len(ids)-mostVectors):], maps.Keys(n.rows))
		}
		for looked := 0; looked < mostLooked && len(n.waiting) > 0 && len(batch) < n.size; looked++ {
			last := len(n.waiting) - 1
			id := n.waiting[last]
			n.waiting = n.waiting[:last]
			if !strings.HasPrefix(id, "obs_") {
				continue
			}
			kind, text := s.Text(id)
			text = k.sent(text)
			sum, has := sha256.Sum256([]byte(text)), n.rows[id]
			v := vector{id: id, kind: kind, sum: string(sum[:])}
			switch {
			case has != nil && text != "" && has.sum == v.sum:
				v.parts, v.norm = has.parts, has.norm
				n.rows[id] = &v
				continue
			case has != nil:
				delete(n.rows, id)
				n.unsaved += len(n.rows) + 1
			}
			if text != "" && !slices.ContainsFunc(batch, func(o wanting) bool { return o.id == id }) {
				batch = append(batch, wanting{v, text})
			}
		}
		more = len(n.waiting) > 0
	})
	return batch, more, err
}

// embed gives a batch its vectors. One that fails waits again, and comes one by one;
// what failed alone comes behind all others, so that no text keeps them from theirs.
func (k *Keeper) embed(batch []wanting) error {
	n := k.o.Nearness
	texts := make([]string, len(batch))
	for i := range batch {
		texts[i] = batch[i].text
	}
	got, err := n.ask(k.lasting, textsTime, texts...)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.noTexts, n.size = time.Now().Add(n.pause), 1
		for _, w := range slices.Backward(batch) {
			n.waiting = slices.Insert(n.waiting, len(n.waiting)*min(1, len(batch)-1), w.id)
		}
		return err
	}
	n.size = min(2*n.size, mostAsked)
	n.unsaved += len(batch)
	for i, w := range batch {
		v := w.vector
		v.parts, v.norm = got[i].parts, got[i].norm
		n.rows[v.id] = &v
	}
	if len(n.rows) > mostVectors+mostVectors/20 {
		for _, id := range slices.SortedFunc(maps.Keys(n.rows), newer)[mostVectors:] {
			delete(n.rows, id)
		}
	}
	return nil
}

// onDisk is the name of the vectors' file, beside the snapshot.
func (k *Keeper) onDisk() string { return k.log + ".vectors" }

// saveVectors writes the vectors, where enough of them are not on disk: the next
// process asks for those again. What waits may be gone, and is left out. end says that
// nothing follows for now.
func (k *Keeper) saveVectors(end bool) bool {
	n := k.o.Nearness
	if k.o.Snapshots == nil {
		return false
	}
	k.writing.Lock() // Purge waits for this, or what it erases waits to be looked at by now
	defer k.writing.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.begun || 4*n.unsaved <= len(n.rows) && !(end && 64*n.unsaved > len(n.rows)) {
		return false
	}
	rows := maps.Clone(n.rows)
	for _, id := range n.waiting {
		delete(rows, id)
	}
	n.unsaved = len(n.rows) - len(rows)
	n.mu.Unlock()
	err := k.o.Snapshots.Write(k.onDisk(), snapshot.At{Leaf: n.made}, func(w io.Writer) error { return snapshot.Encode(w, &rows) })
	n.mu.Lock()
	if err != nil {
		n.unsaved += len(n.rows) + 1
	}
	return err == nil
}

// loadVectors reads them, once. The caller holds n.mu.
func (k *Keeper) loadVectors() {
	n := k.o.Nearness
	if n.loaded {
		return
	}
	n.loaded = true
	at, body, ok := k.o.Snapshots.Read(k.onDisk())
	if !ok || at.Leaf != n.made {
		return
	}
	if rows := n.rows; snapshot.Decode(body, &rows) == nil {
		n.rows = rows
	}
}
